"""Classifiers with missing values: how many completed tables class probabilities need, and what a default fit takes.

Tables like soybean: columns of two to five states that depend on the class, half of them on another column too, 10 % of the cells
missing; 300 rows are kept back (100 of the larger tables). "default" is the default fit, "long" has many more sweeps over
structures and missing cells. `tables_averaged` are the completed tables that a prediction averages over.
"""

import time
import warnings

import numpy as np
import pandas as pd

from pgm_bma import FixedOrderClassifier, GibbsSampler, OrderAveragedClassifier

from ._common import parser, print_line, run, save_csv

SIZES = (
    (155, 13, 2, 300, 400),
    (683, 35, 19, 100, 256),
)  # rows, columns, classes, rows kept back, max_sweeps of a long run


def table(seed, n_rows, n, n_classes, missing=0.1):
    """(X, y) with missing cells in X."""
    rng = np.random.default_rng(seed)
    y = rng.choice(n_classes, n_rows, p=rng.dirichlet(np.full(n_classes, 3.0)))
    sizes, codes = rng.integers(2, 6, size=n), np.zeros((n_rows, n), dtype=int)
    for v in range(n):
        if v and rng.random() < 0.5:
            parent = rng.integers(v)
            chances = rng.dirichlet(np.full(sizes[v], 2.0), size=(n_classes, sizes[parent]))[y, codes[:, parent]]
        else:
            chances = rng.dirichlet(np.full(sizes[v], 2.0), size=n_classes)[y]
        codes[:, v] = np.minimum((rng.random(n_rows)[:, None] > chances.cumsum(1)).sum(1), sizes[v] - 1)
    X = pd.DataFrame(codes, columns=[f"x{k}" for k in range(n)]).astype(object)
    return X.mask(rng.random(X.shape) < missing), pd.Series(y, name="class")


def log_loss(model, X, y):
    """Mean of -log P(class) over rows whose class was seen in training."""
    places = pd.Index(model.classes_).get_indexer(y)
    chances = model.predict_proba(X)[np.arange(len(y)), places]
    return float(-np.log(chances[places >= 0]).mean())


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument("--tables", type=int, default=3, help="of every size")
    options = reader.parse_args(argv)
    rows = []
    for n_rows, n, n_classes, n_test, sweeps in SIZES:
        X, y = table(99, n_rows, n, n_classes)
        fitted(OrderAveragedClassifier, X, y, 0, GibbsSampler(max_sweeps=1))  # compiled before the clock runs
        for seed in range(options.tables if n < 20 or options.full else 1):
            X, y = table(seed, n_rows + n_test, n, n_classes)
            for kind in (FixedOrderClassifier, OrderAveragedClassifier):
                for run_name in ("default", "long"):
                    given = GibbsSampler(max_sweeps=sweeps, tol=1e-9) if run_name == "long" else None
                    model, seconds = fitted(kind, X[:n_rows], y[:n_rows], seed, given)
                    loss = log_loss(model, X[n_rows:], y[n_rows:])
                    rows.append(
                        {
                            "rows": n_rows, "columns": n, "classes": n_classes, "table": seed, "estimator": kind.__name__,
                            "run": run_name, "sweeps": model.n_sweeps_, "tables_averaged": len(model.orders_),
                            "cpu_s": round(seconds, 2), "log_loss": round(loss, 4),
                        }
                    )  # fmt: skip
                    print_line(rows[-1])
                    save_csv(rows, "orders_completed", options.out)


def fitted(kind, X, y, seed, sampler):
    """(classifier, CPU seconds of the fit)"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        model = kind(sampler=sampler, random_state=seed).fit(X, y)
        return model, time.process_time() - began


if __name__ == "__main__":
    run(main)
