"""Forest-averaged classification against naive Bayes, TAN, AODE, Kikuchi, order averaging and logistic regression."""

import time
import warnings

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import pgm_bma

from ._aode import AODE
from ._common import Skip, need_dataset, parser, print_table, run, save_csv

DOMAINS = [
    "voting", "breast-wisc", "breast-LJ", "krkp", "zoo", "lymphography", "iris", "wine", "monk1", "monk2", "monk3",
    "tic-tac-toe", "nursery", "car", "titanic",
]  # fmt: skip
OPTIONAL = ["mushroom", "soybean-small"]
CURVE_DOMAINS = ["voting", "breast-wisc", "krkp", "nursery", "tic-tac-toe", "car"]
METHODS = {
    "NB": lambda: pgm_bma.NaiveBayesClassifier(handle_unknown="missing"),
    "averaged NB": lambda: pgm_bma.AveragedNaiveBayesClassifier(handle_unknown="missing"),
    "TAN": lambda: pgm_bma.TANClassifier(handle_unknown="missing"),
    "AODE": AODE,
    "forest": lambda: pgm_bma.ForestAveragedClassifier(handle_unknown="missing"),
    "forest selective": lambda: pgm_bma.ForestAveragedClassifier(class_arcs="selective", handle_unknown="missing"),
    "logistic": lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=2000)),
    "Kikuchi counting": lambda: pgm_bma.KikuchiBayesClassifier(weights="counting", handle_unknown="missing"),
    "Kikuchi tree": lambda: pgm_bma.KikuchiBayesClassifier(weights="tree", handle_unknown="missing"),
    "Kikuchi learned": lambda: pgm_bma.KikuchiBayesClassifier(weights="learned", handle_unknown="missing"),
    "order average": lambda: pgm_bma.OrderAveragedClassifier(
        method="mcmc", max_indegree=2, random_state=0, handle_unknown="missing"
    ).set_params(sampler__n_orders=10),
}
SLOW = ("order average",)  # left out of the quick version


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=800, help="at most this many rows of a domain")
    arguments.add_argument("--methods", nargs="+", default=None, help=f"of {', '.join(METHODS)}")
    arguments.add_argument("--curves", action="store_true", help="learning curves from 25 rows on instead of the table")
    options = arguments.parse_args(argv)
    methods = options.methods or [m for m in METHODS if options.full or m not in SLOW]
    if options.curves:
        learning_curves(methods, options)
        return
    rows = []
    for name in DOMAINS + OPTIONAL:
        try:
            X, y = load(name, options.rows, options.seed)
        except Skip as reason:
            print(f"{name}: {reason}")
            continue
        for method in methods:
            rows.append({"domain": name, "method": method, **evaluate(METHODS[method], X, y, options.seed)})
        print_table([r for r in rows if r["domain"] == name])
    summarise(rows, methods)
    save_csv(rows, "forest_classification", options.out)


def load(name, n_rows, seed):
    frame, target = pgm_bma.load_dataset(name) if name in DOMAINS else need_dataset(name)
    if len(frame) > n_rows:
        frame = frame.sample(n_rows, random_state=seed)
    counts = frame[target].value_counts()
    frame = frame[frame[target].isin(counts[counts >= 5].index)]  # stratified folds need five of a class
    return frame.drop(columns=target).reset_index(drop=True), frame[target].reset_index(drop=True)


def evaluate(make, X, y, seed, n_folds=5):
    errors, losses = [], []
    began = time.perf_counter()
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(X, y):
        errors_losses = one_split(make, X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test])
        errors.append(errors_losses[0])
        losses.append(errors_losses[1])
    return {"error": np.mean(errors), "log_loss": np.mean(losses), "seconds": time.perf_counter() - began}


def one_split(make, X_train, y_train, X_test, y_test):
    """Discretised inside the fold; probabilities below 1e-5 count as 1e-5."""
    if any(dtype.kind == "f" for dtype in X_train.dtypes if hasattr(dtype, "kind")):
        cutter = pgm_bma.MDLDiscretizer().fit(X_train, y_train)
        X_train, X_test = cutter.transform(X_train), cutter.transform(X_test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make().fit(X_train, y_train)
        proba = model.predict_proba(X_test)
    true = proba[np.arange(len(y_test)), [list(model.classes_).index(c) for c in y_test]]
    wrong = model.classes_[proba.argmax(1)] != y_test.to_numpy()
    return float(np.mean(wrong)), float(-np.log(np.maximum(true, 1e-5)).mean())


def summarise(rows, methods):
    frame = pd.DataFrame(rows)
    ranks = []
    for measure in ("log_loss", "error"):
        table = frame.pivot(index="domain", columns="method", values=measure)[methods]
        ranks.append(pd.Series(rankdata(table.to_numpy(), axis=1).mean(0), index=methods))
    means = frame.groupby("method")[["log_loss", "error"]].mean()
    print_table(
        [
            {
                "method": m,
                "rank log loss": ranks[0][m],
                "rank error": ranks[1][m],
                "mean log loss": means.log_loss[m],
                "mean error": means.error[m],
            }
            for m in sorted(methods, key=lambda m: ranks[0][m])
        ],
        f"mean ranks over {frame.domain.nunique()} domains (lower is better)",
    )


def learning_curves(methods, options):
    rows = []
    sizes, repeats = ([25, 50, 100, 200, 400], 10) if options.full else ([25, 100, 400], 3)
    for name in CURVE_DOMAINS:
        X, y = load(name, 10**9, options.seed)
        for size in sizes:
            if size > 0.6 * len(X):
                continue
            for repeat in range(repeats):
                order = np.random.default_rng([options.seed, repeat, size]).permutation(len(X))
                train, test = order[:size], order[-min(1000, len(X) - size) :]
                if y.iloc[train].nunique() < 2 or not set(y.iloc[test]) <= set(y.iloc[train]):
                    test = test[y.iloc[test].isin(set(y.iloc[train])).to_numpy()]
                for method in methods:
                    parts = X.iloc[train], y.iloc[train], X.iloc[test], y.iloc[test]
                    error, loss = one_split(METHODS[method], *parts)
                    rows.append({"domain": name, "rows": size, "method": method, "error": error, "log_loss": loss})
    frame = pd.DataFrame(rows)
    table = frame.groupby(["rows", "method"])["log_loss"].mean().unstack().reset_index()
    print_table(table, f"mean log loss by training rows, {frame.domain.nunique()} domains, {repeats} repeats")
    save_csv(frame.groupby(["domain", "rows", "method"]).mean().reset_index(), "forest_learning_curves", options.out)


if __name__ == "__main__":
    run(main)
