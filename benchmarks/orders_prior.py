"""The prior of families in order averaging: what it does to classification, and to noise columns of many states.

"consistent" (alpha in every cell, no table with more pseudo-counts than a quarter of the rows), "paper" (alpha in every cell), BDeu
of one total for all tables (the square of the median number of states, 1 and 10), and for noise "evidence", BDeu with the total of
most evidence, the default of `OrderPosterior`. Classification: mean -log P(class) and error of
`OrderAveragedClassifier` (at most two parents), 5 folds, development tables of at most 12 columns and 400 rows. Noise: expected
number of arcs into a column of random states next to four binary columns that depend on each other.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold

import pgm_bma

from ._common import parser, print_line, print_table, run, save_csv
from .default_methods import development_tables

PRIORS = {
    "consistent": lambda cards: {"parameter_prior": "consistent"},
    "paper": lambda cards: {"parameter_prior": "paper"},
    "BDeu, median squared": lambda cards: {"equivalent_sample_size": float(np.median(cards) ** 2)},
    "BDeu, 1": lambda cards: {"equivalent_sample_size": 1.0},
    "BDeu, 10": lambda cards: {"equivalent_sample_size": 10.0},
}
OF_ARCS = {**PRIORS, "evidence": lambda cards: {}}  # classifiers do not have it
STATES = (2, 20, 50, 100, 200, 350, 2000)
ROWS = (100, 690)
MAX_COLUMNS = 12


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    warnings.simplefilter("ignore")
    tables = [t for t in development_tables(None, 400, options.seed) if t[1].shape[1] <= MAX_COLUMNS]
    rows = [classify(*table, prior, options.seed) for table in tables for prior in PRIORS]
    save_csv(rows, "orders_prior", options.out)
    means = pd.DataFrame(rows).groupby("prior", sort=False)[["log loss", "error"]].mean().reset_index()
    print_table(means, f"means of {len(tables)} tables, 5 folds", 4)
    repeats = 20 if options.full else 5
    kept = [noise(n, k, prior, options.seed, repeats) for n in ROWS for k in STATES for prior in OF_ARCS]
    print_table(kept, "arcs into a noise column", 3)
    save_csv(kept, "orders_prior_noise", options.out)


def classify(name, X, y, prior, seed):
    kind = StratifiedKFold if y.value_counts().min() >= 2 else KFold
    cards = [*X.nunique(), y.nunique()]
    losses, wrong = [], []
    for train, test in kind(5, shuffle=True, random_state=seed).split(X, y):
        fitted = pgm_bma.OrderAveragedClassifier(
            max_indegree=2,
            sampler=pgm_bma.GibbsSampler(tol=0.1, max_sweeps=1024, n_orders=10),
            missing="drop",
            random_state=seed,
            state_names={y.name: sorted(set(y))},
            **PRIORS[prior](cards),
        ).fit(X.iloc[train], y.iloc[train])
        columns = [fitted.classes_.tolist().index(label) for label in y.iloc[test]]
        log_proba = fitted.predict_log_proba(X.iloc[test])
        losses.append(-log_proba[np.arange(len(test)), columns])
        wrong.append(log_proba.argmax(1) != columns)
    line = {
        "data": name,
        "prior": prior,
        "log loss": np.concatenate(losses).mean(),
        "error": np.concatenate(wrong).mean(),
    }
    print_line(line)
    return line


def noise(n_rows, n_states, prior, seed, repeats):
    found = []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat, n_states])
        hidden = rng.integers(0, 2, n_rows)
        X = pd.DataFrame({f"c{i}": np.where(rng.random(n_rows) < 0.8, hidden, 1 - hidden) for i in range(4)})
        X["noise"] = rng.integers(0, n_states, n_rows)
        posterior = pgm_bma.OrderPosterior(method="exact", max_indegree=2, **OF_ARCS[prior](X.nunique()))
        found.append(posterior.fit(X).edge_posterior_["noise"].sum())
    return {"rows": n_rows, "states": n_states, "prior": prior, "arcs": np.mean(found), "most": np.max(found)}


if __name__ == "__main__":
    run(main)
