"""Are probabilities from averages over cut points calibrated? Predicted against observed shares on generated numeric tables.

Classes are drawn with known probabilities given numeric columns, in four worlds: "smooth" (a logistic curve of two columns),
"steps" (different shares on both sides of cut points), "pair" (the class depends on the product of two columns) and "noise" (on
none). Every model is fitted on few and on many rows and asked for fresh rows. Predictions are put into ten bins; a line
compares the mean prediction of a bin with the share of the class in it, by its standard error. The summary has the mean
distance of the two over all bins ("gap", weighted by rows), the gap that perfect predictions would have by chance alone
("gap_by_chance", drawn from the predictions themselves), and the slope of a logistic regression of the class on the predicted
log odds: below 1 is overconfident.
"""

import warnings

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pgm_bma

from ._common import parser, print_table, run, save_csv

N_COLUMNS, N_TEST = 5, 4000


def smooth(X):
    """Log odds of the second class."""
    return 1.2 * X[:, 0] - 0.8 * X[:, 1]


def steps(X):
    """The same with jumps."""
    return 1.5 * (X[:, 0] > 0.3) - 2.0 * (X[:, 1] < -0.5) + 1.0 * (np.abs(X[:, 2]) < 0.6) - 0.3


def pair(X):
    """The same by a product."""
    return 1.5 * X[:, 0] * X[:, 1]


def noise(X):
    """The same without a column."""
    return np.full(len(X), -0.6)


WORLDS = {world.__name__: world for world in (smooth, steps, pair, noise)}
MODELS = {
    "additive": lambda: pgm_bma.AdditiveBayesClassifier(random_state=0),
    "averaged naive Bayes": pgm_bma.AveragedNaiveBayesClassifier,
    "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
}


def draw(world, n, rng):
    """Columns and classes."""
    X = rng.normal(size=(n, N_COLUMNS))
    y = np.where(rng.random(n) < expit(WORLDS[world](X)), "yes", "no")
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(N_COLUMNS)]), y


def gap(p, y):
    """Mean distance of prediction and share over ten bins, weighted by rows; and the lines of the bins."""
    bins = np.minimum((p * 10).astype(int), 9)
    lines = []
    for b in np.unique(bins):
        here = bins == b
        share, mean, n = y[here].mean(), p[here].mean(), int(here.sum())
        lines.append({"bin": b / 10, "rows": n, "predicted": mean, "observed": share})
    weights = np.array([line["rows"] for line in lines])
    distance = np.array([abs(line["predicted"] - line["observed"]) for line in lines])
    return float(weights @ distance / len(p)), lines


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=5, help="tables per world and size (--full: 20)")
    options.add_argument("--sizes", nargs="+", type=int, default=[100, 1000])
    arguments = options.parse_args(argv)
    warnings.simplefilter("ignore")
    n_tables = 20 if arguments.full else arguments.tables
    summary, details = [], []
    for world in WORLDS:
        for size in arguments.sizes:
            found = {name: ([], []) for name in MODELS}
            for number in range(n_tables):
                rng = np.random.default_rng([arguments.seed, list(WORLDS).index(world), size, number])
                X, y = draw(world, size, rng)
                fresh, truth = draw(world, N_TEST, rng)
                for name, make in MODELS.items():
                    model = make().fit(X, y)
                    found[name][0].append(model.predict_proba(fresh)[:, list(model.classes_).index("yes")])
                    found[name][1].append(truth == "yes")
            for name, (predicted, happened) in found.items():
                p, happened = np.concatenate(predicted), np.concatenate(happened)
                distance, lines = gap(p, happened)
                rng = np.random.default_rng(arguments.seed)
                chance = np.mean([gap(p, rng.random(len(p)) < p)[0] for _ in range(20)])
                odds = logit(np.clip(p, 1e-9, 1 - 1e-9))
                slope = (
                    np.nan if world == "noise" else LogisticRegression(C=1e6).fit(odds[:, None], happened).coef_[0, 0]
                )
                loss = -np.mean(np.log(np.where(happened, p, 1 - p)))
                key = {"world": world, "rows": size, "model": name}
                summary.append({**key, "gap": distance, "gap_by_chance": chance, "slope": slope, "log_loss": loss})
                for line in lines:
                    error = np.sqrt(line["predicted"] * (1 - line["predicted"]) / line["rows"])
                    details.append({**key, **line, "z": (line["observed"] - line["predicted"]) / max(error, 1e-12)})
    print_table(summary, f"{n_tables} tables each, {N_TEST} fresh rows per table")
    save_csv(summary, "numeric_calibration", arguments.out)
    save_csv(details, "numeric_calibration_bins", arguments.out)


if __name__ == "__main__":
    run(main)
