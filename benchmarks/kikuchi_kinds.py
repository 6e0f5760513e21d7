"""Kinds of averaged terms on categorical tables: does `AdditiveBayesClassifier` lose by cells or slopes where they say nothing?

The default against the same without cells of two columns, without slopes of whole numbers that are states, and against regions of
states (`KikuchiBayesClassifier`), the default before there were averaged terms. Stratified 5 folds, repeated with other
folds; p >= 1e-5 in the loss. A difference has two errors: over the repeats (chance of the folds), and over the rows, whose mean
difference over the repeats is taken first (chance of the table).
"""

import numpy as np
import pandas as pd

from pgm_bma import AdditiveBayesClassifier, KikuchiBayesClassifier

from ._common import parser, print_line, print_table, run, save_csv
from .classifiers import load, out_of_fold

TABLES = ("voting", "hayes-roth", "lymphography", "breast-wisc", "audiology")
KINDS = ("single", "pair", "linear", "state", "gaussian")
DEFAULT = "default"


def methods(X):
    return {
        DEFAULT: AdditiveBayesClassifier,
        "without cells": lambda: AdditiveBayesClassifier(terms=KINDS),
        "without slopes": lambda: AdditiveBayesClassifier(categorical_columns=list(X)),
        "regions of states": lambda: KikuchiBayesClassifier(),
    }


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--domains", nargs="+", default=TABLES)
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args(argv)
    rows = []
    for domain in options.domains:
        loaded = load(domain)
        if loaded is None:
            continue
        X, y = loaded
        kept = (y.astype(str).map(y.astype(str).value_counts()) >= 10).to_numpy()
        X, y = X[kept].reset_index(drop=True), y[kept].astype(str)
        losses = {
            name: np.array([row_losses(make, X, y, options.seed + k) for k in range(options.repeats)])
            for name, make in methods(X).items()
        }
        for name, found in losses.items():
            rows.append({"domain": domain, "method": name, "log_loss": found.mean(), **gap(losses[DEFAULT] - found)})
            print_line(rows[-1])
        save_csv(rows, "kikuchi_kinds", options.out)
    print_table(pd.DataFrame(rows))


def row_losses(make, X, y, seed):
    """Loss of every row in the fold that did not see it."""
    target, probability, _ = out_of_fold(make, X, y, seed)
    return -np.log(np.maximum(probability[np.arange(len(target)), target], 1e-5))


def gap(difference):
    """The default's loss minus another's, (n_repeats, n_rows): its mean, and its errors over repeats and over rows."""
    repeats, rows = difference.mean(axis=1), difference.mean(axis=0)
    return {
        "default_minus_this": difference.mean(),
        "error_over_repeats": repeats.std(ddof=1) / np.sqrt(len(repeats)),
        "error_over_rows": rows.std(ddof=1) / np.sqrt(len(rows)),
    }


if __name__ == "__main__":
    run(main)
