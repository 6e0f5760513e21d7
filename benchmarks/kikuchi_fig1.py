"""Kikuchi-Bayes, Fig. 1: training-set error of K1, K2 and TK against the threshold, on tic-tac-toe and voting."""

import warnings

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma import KikuchiBayesClassifier
from pgm_bma.evaluation import capped_log_loss, marginal_losses

from ._common import parser, print_table, results_folder, run, save_csv

TABLE = True
PAPER = {"prior": "laplace", "weights": "counting", "missing": "state"}
MODELS = {"K1": {"level": 1}, "K2": {"level": 2}, "TK": {"level": 2, "cycles": "gated"}}


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    logits = np.linspace(-6, 6, 25 if options.full else 9)
    n_resamples = 1000 if options.full else 100
    rows = []
    for domain in ("tic-tac-toe", "voting"):
        frame, target = pgm_bma.load_dataset(domain)
        X, y = frame.drop(columns=target), frame[target]
        for logit in logits:
            for name, choice in MODELS.items():
                rows.append(one_point(domain, X, y, name, choice, logit, n_resamples, options.seed))
        rows += [
            one_point(domain, X, y, name, choice, np.inf, n_resamples, options.seed) for name, choice in MODELS.items()
        ]
    results = pd.DataFrame(rows)
    for domain, part in results.groupby("domain", sort=False):
        table = part.pivot(index="logit", columns="model", values=["error", "log_loss", "regions"])
        table = table.astype({column: int for column in table if column[0] == "regions"})
        table.columns = [f"{model} {measure}" for measure, model in table.columns]
        print_table(table.reset_index(), f"{domain}: loss on the training set itself by logit of the threshold")
    save_csv(results, "kikuchi_fig1", options.out)
    draw(results, results_folder(options.out) / "kikuchi_fig1.png")


def one_point(domain, X, y, name, choice, logit, n_resamples, seed):
    """Error, log loss and the largest loss of a marginal, all on the training set: approximation error."""
    gamma = 1.0 if np.isinf(logit) else 1 / (1 + np.exp(-logit))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KikuchiBayesClassifier(
            **PAPER, **choice, significance_level=gamma, n_resamples=n_resamples, random_state=seed
        ).fit(X, y)
    proba = model.predict_proba(X)
    return {
        "domain": domain,
        "model": name,
        "logit": logit,
        "gamma": gamma,
        "regions": len(model.initial_regions_),
        "error": float(np.mean(model.classes_[proba.argmax(axis=1)] != y.to_numpy())),
        "log_loss": capped_log_loss(y, proba, model.classes_),
        "worst_marginal": float(marginal_losses(model, X, y).max()),
    }


def draw(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    domains = list(results.domain.unique())
    figure, axes = plt.subplots(1, len(domains), figsize=(5 * len(domains), 3.6))
    for ax, domain in zip(np.atleast_1d(axes), domains):
        for name, style in (("K1", ":"), ("K2", "-"), ("TK", "--")):
            part = results[(results.domain == domain) & (results.model == name) & np.isfinite(results.logit)]
            ax.plot(part.logit, part.error, style, color="black", label=name)
        ax.set_title(domain)
        ax.set_xlabel("logit of the threshold")
        ax.set_ylabel("error on the training set")
        ax.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"saved {path}")


if __name__ == "__main__":
    run(main)
