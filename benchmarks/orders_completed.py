"""Classifiers with missing values: how many completed tables class probabilities need, and what a default fit takes.

Tables like soybean: columns of two to five states that depend on the class, half of them on another column too, 10 % of the cells
missing; 300 rows are kept back. "default" is the default fit, "long" has four chains and 160 sweeps over the missing cells.
"""

import time
import warnings

import numpy as np
import pandas as pd

from pgm_bma import FixedOrderClassifier, GibbsSampler, OrderAveragedClassifier

from ._common import parser, print_table, run, save_csv

SIZES = ((155, 13, 2), (683, 35, 19))
TEST = 300


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
    for n_rows, n, n_classes in SIZES:
        for seed in range(options.tables):
            X, y = table(seed, n_rows + TEST, n, n_classes)
            for kind in (FixedOrderClassifier, OrderAveragedClassifier):
                for name, sampler in (
                    ("default", None),
                    ("long", GibbsSampler(n_chains=4, max_sweeps=640 if n > 20 else 160)),
                ):
                    if name == "long" and n > 20 and not options.full:
                        continue
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        began = time.process_time()
                        model = kind(sampler=sampler, random_state=seed).fit(X[:n_rows], y[:n_rows])
                        seconds = time.process_time() - began
                        loss = log_loss(model, X[n_rows:], y[n_rows:])
                    about = {
                        "rows": n_rows,
                        "columns": n,
                        "classes": n_classes,
                        "table": seed,
                        "estimator": kind.__name__,
                    }
                    rows.append({**about, "run": name, "cpu_s": round(seconds, 2), "log_loss": round(loss, 4)})
    save_csv(rows, "orders_completed", options.out)
    print_table(rows)


if __name__ == "__main__":
    run(main)
