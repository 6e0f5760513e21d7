"""The default classifier where others break: copies of rows, groups, columns of noise, more than pairs, curves that go one way.

Each part has one table, or one split, a line; losses are of rows that no fit has seen. Seconds are CPU, of the fit.
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification, make_hastie_10_2

from pgm_bma import AdditiveBayesClassifier

from . import _kikuchi as kikuchi
from ._common import parser, print_line, run, save_csv

N_NOISE = 2000
WITHOUT_TREES = ("single", "pair", "linear", "state", "gaussian", "cell")
# tables on which a rule or a setting of the part was chosen; all others only report
CHOSEN_ON = {
    "copies": ("car", "nursery", "tic-tac-toe", "krkp", "monk1", "balance-scale", "mushroom", "breast-LJ"),
    "noise": ("heart", "australian", "german", "products", "mixed"),
    "trees": ("sine", "product", "clusters"),
    "monotone": (),
}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    options = options.parse_args(argv)
    rows = []
    AdditiveBayesClassifier().fit(*generated("sine", 1200, 9))  # compiled code is loaded
    for part in options.parts:
        for line in PARTS[part](options.seed):
            half = "chosen on" if line["table"] in CHOSEN_ON[part] else "reported"
            rows.append({"part": part, "half": half, **line})
            print_line(rows[-1])
            save_csv(rows, "additive_limits", options.out)


def copies(seed):
    """200 rows once; 2,000 draws from them; the same with the drawn row as its group."""
    for table in CHOSEN_ON["copies"]:
        X, y = _loaded(table)
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(y))
        drawn, held = rng.choice(rows[:200], 2000), rows[200:2200] if len(y) > 300 else rows[200:]
        fits = {"once": (rows[:200], None), "drawn": (drawn, None), "drawn, groups": (drawn, drawn)}
        for variant, (train, groups) in fits.items():
            yield _line(table, variant, X, y, train, held, groups=groups)


def noise(seed):
    """A table without and with 2,000 columns of normal noise."""
    for table in ("heart", "australian", "german", "crx", "ionosphere", "breast-wisc", "products", "mixed"):
        made = table in GENERATED
        X, y = generated(table, 3000, seed) if made else _loaded(table)
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(y))[: 3000 if made else 700]
        n_train = 600 if made else int(0.7 * len(rows))
        wide = pd.concat([X, pd.DataFrame(rng.normal(size=(len(y), N_NOISE))).add_prefix("noise")], axis=1)
        for variant, frame in (("without", X), ("2000 columns of noise", wide)):
            yield _line(table, variant, frame, y, rows[:n_train], rows[n_train:])


def trees(seed):
    """Without and with the last stage."""
    for n_rows in (5000, 20_000):
        for table in ("sine", "product", "stripes", "clusters", "hastie", "plane"):
            X, y = generated(table, n_rows + 5000, seed)
            rows = np.arange(len(y))
            for variant, terms in (("without trees", {"terms": WITHOUT_TREES}), ("with trees", {})):
                yield _line(table, variant, X, y, rows[:n_rows], rows[n_rows:], **terms)


def monotone(seed):
    """What the law costs: 500 rows, the column free and monotone; "slopes" obeys the law, "mixed" has a pair in it."""
    for table, law in (("slopes", {"x0": 1, "x1": -1}), ("mixed", {"x1": 1})):
        X, y = generated(table, 5500, seed)
        rows = np.arange(len(y))
        for variant, parameters in (("free", {}), ("monotone", {"monotone": law})):
            yield _line(table, variant, X, y, rows[:500], rows[500:], **parameters)


PARTS = {"copies": copies, "noise": noise, "trees": trees, "monotone": monotone}


def _loaded(table):
    X, y = kikuchi.load_domain(table)
    return X.reset_index(drop=True), np.unique(y.astype(str), return_inverse=True)[1]


def _line(table, variant, X, y, train, held, groups=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model = AdditiveBayesClassifier(**parameters).fit(X.iloc[train], y[train], groups=groups)
        seconds = time.process_time() - start
        probability = np.full((len(held), y.max() + 1), 1e-12)
        probability[:, model.classes_] = model.predict_proba(X.iloc[held])
    own = np.maximum(probability[np.arange(len(held)), y[held]], 1e-5)
    grown = model._result[0].trees
    return {
        "table": table,
        "n_rows": len(train),
        "variant": variant,
        "log_loss": float(-np.log(own).mean()),
        "seconds": seconds,
        "repeats": model.repeats_,
        "n_columns": len(model._terms.columns),
        "n_trees": 0 if grown is None else len(grown.splits),
    }


GENERATED = {
    "sine": lambda x: 4 * np.sin(1.5 * x[:, :3].sum(axis=1)),
    "product": lambda x: 4 * np.sign(x[:, 0] * x[:, 1] * x[:, 2]),
    "stripes": lambda x: 6 * np.sign(np.sin(2 * (x[:, 0] + x[:, 1] - x[:, 2]))),
    "plane": lambda x: 6 * (x[:, 0] + x[:, 1] - x[:, 2]),
    "products": lambda x: 1.5 * x[:, 0] * x[:, 1] + 1.5 * np.sign(x[:, 2] * x[:, 3]),
    "mixed": lambda x: np.sin(2 * x[:, 0]) + 0.8 * x[:, 1] + x[:, 1] * x[:, 2],
    "slopes": lambda x: x[:, 0] - x[:, 1],
}


def generated(table, n_rows, seed):
    """(X, y) of a rule for the log odds of six normal numbers, or of scikit-learn's generators."""
    rng = np.random.default_rng(seed)
    if table == "clusters":
        X, y = make_classification(
            n_rows, 12, n_informative=8, n_clusters_per_class=6, flip_y=0.05, random_state=seed, shuffle=True
        )
    elif table == "hastie":
        X, y = make_hastie_10_2(n_rows, random_state=seed)
        y = (y > 0).astype(int)
    else:
        X = rng.normal(size=(n_rows, 6))
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-GENERATED[table](X)))).astype(int)
    return pd.DataFrame(X).add_prefix("x"), y


if __name__ == "__main__":
    run(main)
