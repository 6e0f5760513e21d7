"""Shared parts of the Kikuchi-Bayes experiments: domains of Table 2, methods, protocols and ranks."""

import itertools
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata, studentized_range
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import pgm_bma
from pgm_bma import KikuchiBayesClassifier
from pgm_bma.evaluation import capped_log_loss

from ._aode import AODE
from ._common import paper_table

PAPER = {"NB": "NB", "K1": "K1", "TAN": "TN", "TK": "TK", "K2": "K2", "K2all": "K2all"}  # preset -> column of the paper
OWN = {
    "tree": {"weights": "tree"},
    "learned": {},
    "learned, all pairs": {"significance_level": 1.0},
    "learned, level 3": {"level": 3},
}
# domains whose results were looked at while defaults and grids were chosen; all others were not
DEVELOPMENT = ("breast-LJ", "car", "lymphography", "monk2", "tic-tac-toe", "voting", "wine", "zoo")
# network -> class node; rows are simulated
SIMULATED = {
    "alarm": "CATECHOL",
    "asia": "dysp",
    "child": "Disease",
    "hailfinder": "R5Fcst",
    "insurance": "PropCost",
    "sachs": "Akt",
    "survey": "T",
    "win95pts": "Problem1",
}


def make_method(name, seed=0):
    """A fresh classifier by its name in the tables."""
    if name in PAPER:
        return KikuchiBayesClassifier(preset=name, random_state=seed)
    if name in OWN:
        return KikuchiBayesClassifier(**OWN[name], handle_unknown="missing", random_state=seed)
    others = {
        "logistic": lambda: make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=2000)),
        "AODE": AODE,
        "averaged NB": lambda: pgm_bma.AveragedNaiveBayesClassifier(handle_unknown="missing"),
        "forest": lambda: pgm_bma.ForestAveragedClassifier(handle_unknown="missing"),
        "boosting": lambda: make_pipeline(
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan),
            HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=seed, max_iter=100),
        ),
    }
    return others[name]()


METHODS = [*PAPER, *OWN, "logistic", "AODE", "averaged NB", "forest", "boosting"]


def all_domains():
    """The 44 domains of Table 2."""
    return paper_table("kikuchi_table2")["domain"].tolist()


def load_domain(name):
    """(X, y), continuous columns as floats; None when it is not at hand (never a download)."""
    if name in _GENERATED:
        return _GENERATED[name]()
    outside = os.environ.get("PGM_BMA_DATA")
    found = outside and any((Path(outside) / f"{name}{end}").exists() for end in (".csv", ".csv.gz"))
    if name not in pgm_bma.list_datasets() and not found:
        return None
    frame, target = pgm_bma.load_dataset(name)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    X, y = frame.drop(columns=target), frame[target]
    if name == "breast-wisc" or name not in pgm_bma.list_datasets():
        X = X.apply(_numbers)
    if name == "breast-LJ":
        X = X.apply(_first_numbers)
    return X, y


def _first_numbers(column):
    """Intervals such as 30-34 by their first number, as a continuous column to be cut by MDL; digits of one column (a grade) too.

    With these cuts TAN is the paper's to the digit (28.8 / .57), as labels it is not: the authors' file held numbers.
    """
    first = pd.to_numeric(column.str.extract(r"^(\d+)", expand=False), errors="coerce")
    return first.astype(float) if first.notna().sum() == column.notna().sum() else column


def _numbers(column):
    """Labels that are all numbers, nine different ones or more (as in breast-wisc), as a continuous column."""
    values = pd.to_numeric(column, errors="coerce")
    return values if values.notna().sum() == column.notna().sum() and values.nunique() >= 9 else column


def _wdbc():
    from sklearn.datasets import load_breast_cancer

    bunch = load_breast_cancer(as_frame=True)
    return bunch.data, pd.Series(bunch.target_names[bunch.target], name="class")


def _balance_scale():
    """All weights and distances 1..5 on both sides; the heavier side, or balanced."""
    grid = np.array(list(itertools.product(range(1, 6), repeat=4)))
    torque = grid[:, 0] * grid[:, 1] - grid[:, 2] * grid[:, 3]
    names = ["left-weight", "left-distance", "right-weight", "right-distance"]
    return pd.DataFrame(grid.astype(str), columns=names), pd.Series(np.array(["R", "B", "L"])[np.sign(torque) + 1])


def _lenses():
    """Cendrowska's rules for fitting contact lenses, on all 24 patients."""
    rows = []
    for age, sight, astigmatic, tears in itertools.product(
        ("young", "pre-presbyopic", "presbyopic"), ("myope", "hypermetrope"), ("no", "yes"), ("reduced", "normal")
    ):
        lens = "none"
        if tears == "normal" and astigmatic == "no" and (age, sight) != ("presbyopic", "myope"):
            lens = "soft"
        if tears == "normal" and astigmatic == "yes" and (sight == "myope" or age == "young"):
            lens = "hard"
        rows.append((age, sight, astigmatic, tears, lens))
    frame = pd.DataFrame(rows, columns=["age", "sight", "astigmatic", "tears", "class"])
    return frame.drop(columns="class"), frame["class"]


_GENERATED = {"wdbc": _wdbc, "balance-scale": _balance_scale, "lenses": _lenses}


def simulated_domain(network, n_rows, seed):
    """Rows of a published network and one of its nodes as the class."""
    frame = pgm_bma.simulate(pgm_bma.load_network(network), n_rows, random_state=seed)
    target = SIMULATED[network]
    y = frame[target].astype(str)
    kept = y.isin(y.value_counts().loc[lambda counts: counts >= 5].index)  # stratified folds need five of a class
    return frame.drop(columns=target)[kept].reset_index(drop=True), y[kept].reset_index(drop=True)


def evaluate(name, X, y, protocol, repeats, seed, n_folds=5):
    """Error and capped log loss of a method by stratified cross-validation.

    protocol : "paper" cuts continuous columns once on all rows and takes a missing value as a state; "honest" cuts inside
    the folds and leaves missing cells to the method.
    """
    if protocol == "paper":
        X = discretise(X, y, X)[0]
        X = X.astype(object).where(X.notna(), "(missing)")
    wrong, losses = [], []
    began = time.perf_counter()
    for repeat in range(repeats):
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=seed + repeat)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # classes with fewer rows than folds; solvers that stop early
            splits = list(folds.split(X, y))
        for train, test in splits:
            X_train, X_test = X.iloc[train], X.iloc[test]
            if protocol == "honest":
                X_train, X_test = discretise(X_train, y.iloc[train], X_train, X_test)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make_method(name, seed + repeat).fit(X_train, y.iloc[train])
                proba = model.predict_proba(X_test)
            wrong.append(np.mean(model.classes_[proba.argmax(axis=1)] != y.iloc[test].to_numpy()) * len(test))
            losses.append(capped_log_loss(y.iloc[test], proba, model.classes_) * len(test))
    n = repeats * len(X)
    return {"error": sum(wrong) / n, "log_loss": sum(losses) / n, "seconds": time.perf_counter() - began}


def discretise(X, y, *tables):
    """`tables` with the float columns cut where Fayyad and Irani's criterion says on X, y."""
    floats = [column for column in X if X[column].dtype.kind == "f" or X[column].dtype.kind == "i"]
    if not floats:
        return tables
    cutter = pgm_bma.MDLDiscretizer().fit(X[floats], y)
    cut = []
    for table in tables:
        labels = pd.DataFrame(cutter.transform(table[floats]), index=table.index, columns=floats)
        cut.append(pd.concat([labels, table.drop(columns=floats)], axis=1)[list(X.columns)].astype(object))
    return cut


def mean_ranks(results, measure, methods):
    """Series method -> mean rank over the domains (1 is best, ties share); results has domain, method and the measure."""
    table = results.pivot(index="domain", columns="method", values=measure)[methods].dropna()
    return pd.Series(rankdata(table.to_numpy().round(6), axis=1).mean(axis=0), index=methods), len(table)


def critical_difference(n_methods, n_domains, alpha=0.05):
    """Nemenyi: mean ranks that differ by less are not told apart."""
    q = studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_domains)))


def plot_ranks(ranks, n_domains, title, path):
    """Critical-difference picture: methods along the axis of mean rank, bars over groups that are not told apart."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ranks = ranks.sort_values()
    width = critical_difference(len(ranks), n_domains)
    figure, axes = plt.subplots(figsize=(9, 0.34 * len(ranks) + 1.4))
    for k, (name, rank) in enumerate(ranks.items()):
        axes.plot([rank, rank], [0, -k - 1], color="0.7", linewidth=0.8)
        axes.plot([rank, len(ranks) + 0.1], [-k - 1, -k - 1], color="0.7", linewidth=0.8)
        axes.text(len(ranks) + 0.2, -k - 1, f"{name} ({rank:.2f})", va="center", fontsize=9)
    level, last = 0.0, -1.0
    for start, rank in enumerate(ranks):
        stop = int((ranks <= rank + width).sum()) - 1
        if stop > start and stop > last:
            level -= 0.28
            axes.plot([rank - 0.04, ranks.iloc[stop] + 0.04], [level, level], color="black", linewidth=3)
            last = stop
    axes.hlines(0, 1, len(ranks), color="black", linewidth=1)
    for tick in range(1, len(ranks) + 1):
        axes.text(tick, 0.25, str(tick), ha="center", fontsize=8)
    axes.set_title(f"{title}; critical difference {width:.2f} over {n_domains} domains", fontsize=10)
    axes.set_xlim(0.7, len(ranks) + 4.5)
    axes.axis("off")
    figure.savefig(path, dpi=130, bbox_inches="tight")
    plt.close(figure)
