"""Judges: Kikuchi-Bayes at its defaults against what people would pick instead, on raw tables: loss, error, calibration, time.

Stratified 5 folds, everything fitted inside them, rows drawn down to 1500, classes of fewer than ten rows left out, p >= 1e-5 in
the loss. The boosting methods are tuned as their users do: many trees, a small rate, early stopping on a sixth of the rows;
``--full`` adds them at their defaults, and more tables. Logistic regression has 10 penalties and 5 folds inside. Seconds are CPU.
"""

import time
import warnings

import numpy as np
import pandas as pd
from scipy.stats import studentized_range, wilcoxon
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from pgm_bma import KikuchiBayesClassifier

from . import _kikuchi as kikuchi
from ._common import need, parser, print_table, results_folder, run, save_csv

QUICK = ("iris", "heart", "wine", "ecoli", "voting", "car", "breast-wisc", "australian", "ionosphere", "lymphography", "german",
         "wdbc", "monk2", "tic-tac-toe", "zoo", "breast-LJ", "crx", "horse-colic")  # fmt: skip
MORE = (
    "hayes-roth",
    "monk1",
    "monk3",
    "anneal",
    "yeast-class",
    "soybean-small",
    "titanic",
    "balance-scale",
    "mushroom",
    "nursery",
)
OURS = "Kikuchi-Bayes"
SIX = (OURS, "CatBoost", "LightGBM", "XGBoost", "random forest", "logistic, cv")
MOST_ROWS = 1500


class Boosting:
    """One of three libraries behind one face: labels as integer codes, early stopping on a part of the training rows."""

    def __init__(self, library, tuned, seed):
        self.library, self.tuned, self.seed = library, tuned, seed

    def fit(self, X, y):
        self.labels_ = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
        self.states_ = {name: X[name].dropna().astype(str).unique().tolist() for name in self.labels_}
        self.classes_, y = np.unique(y, return_inverse=True)
        X = self._coded(X)
        if not self.tuned:
            self.model_ = self._make(None).fit(X, y)
            return self
        inner, held = train_test_split(np.arange(len(y)), test_size=1 / 6, stratify=y, random_state=self.seed)
        part = (X.iloc[held], y[held])
        model = self._make(400)
        if self.library == "catboost":
            model.fit(X.iloc[inner], y[inner], eval_set=part, early_stopping_rounds=30)
        elif self.library == "lightgbm":
            stop = need("lightgbm").early_stopping(30, verbose=False)
            model.fit(X.iloc[inner], y[inner], eval_set=[part], callbacks=[stop])
        else:
            model.fit(X.iloc[inner], y[inner], eval_set=[part], verbose=False)
        self.model_ = model
        return self

    def predict_proba(self, X):
        proba = self.model_.predict_proba(self._coded(X))
        return proba / proba.sum(axis=1, keepdims=True)

    def _coded(self, X):
        X = X.copy()
        for name, states in self.states_.items():
            if self.library == "catboost":
                X[name] = X[name].astype(object).where(X[name].notna(), "(missing)").astype(str)
            else:
                X[name] = pd.Categorical(X[name].astype(object).map(str, na_action="ignore"), categories=states)
        return X

    def _make(self, n_trees):
        common = {"random_state": self.seed, "n_jobs": 1}
        tuned = {} if n_trees is None else {"n_estimators": n_trees, "learning_rate": 0.05}
        if self.library == "catboost":
            catboost = need("catboost")
            return catboost.CatBoostClassifier(
                verbose=0,
                thread_count=1,
                random_seed=self.seed,
                cat_features=self.labels_,
                allow_writing_files=False,
                **tuned,
            )
        if self.library == "lightgbm":
            small = {} if n_trees is None else {"num_leaves": 15, "min_child_samples": 10}
            return need("lightgbm").LGBMClassifier(verbose=-1, **common, **tuned, **small)
        stop = {} if n_trees is None else {"early_stopping_rounds": 30, "max_depth": 4, "subsample": 0.8}
        return need("xgboost").XGBClassifier(
            enable_categorical=True,
            eval_metric="logloss" if len(self.classes_) == 2 else "mlogloss",
            **common,
            **tuned,
            **stop,
        )


def methods(seed):
    numbers, labels = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    scaled = make_column_transformer(
        (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore"), labels),
    )
    ordinal = make_column_transformer(
        (SimpleImputer(keep_empty_features=True), numbers),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2), labels),
    )
    logistic = LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000)
    forest = RandomForestClassifier(300, min_samples_leaf=2, random_state=seed)
    return {
        OURS: KikuchiBayesClassifier,
        "Kikuchi-Bayes, mdl": lambda: KikuchiBayesClassifier(numeric="mdl"),
        "logistic, cv": lambda: make_pipeline(scaled, logistic),
        "random forest": lambda: make_pipeline(ordinal, forest),
        "CatBoost": lambda: Boosting("catboost", True, seed),
        "LightGBM": lambda: Boosting("lightgbm", True, seed),
        "XGBoost": lambda: Boosting("xgboost", True, seed),
        "CatBoost, default": lambda: Boosting("catboost", False, seed),
        "LightGBM, default": lambda: Boosting("lightgbm", False, seed),
        "XGBoost, default": lambda: Boosting("xgboost", False, seed),
    }


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--domains", nargs="+", default=None)
    arguments.add_argument("--methods", nargs="+", default=None)
    options = arguments.parse_args(argv)
    for library in ("catboost", "lightgbm", "xgboost"):
        need(library, "pip install 'pgm-bma[bench]'")
    makers = methods(options.seed)
    wanted = options.methods or [name for name in makers if options.full or not name.endswith("default")]
    rows = []
    for domain in options.domains or (QUICK + MORE if options.full else QUICK):
        loaded = kikuchi.load_domain(domain)
        if loaded is None:
            print(f"{domain} is not at hand")
            continue
        for name in wanted:
            rows.append({"domain": domain, "method": name, **evaluate(makers[name], *loaded, options.seed)})
        print_table(rows[-len(wanted) :])
        save_csv(rows, "classifiers", options.out)
    summarise(pd.DataFrame(rows), options.out)


def out_of_fold(make, X, y, seed):
    """(class of every row, its probabilities from the folds that did not see it, CPU seconds) of five folds."""
    classes, target = np.unique(y, return_inverse=True)
    probability, seconds = np.full((len(target), len(classes)), 1e-12), 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, target):
            start = time.process_time()
            model = make().fit(X.iloc[train], target[train])
            probability[np.ix_(test, model.classes_)] = model.predict_proba(X.iloc[test])
            seconds += time.process_time() - start
    return target, probability, seconds


def evaluate(make, X, y, seed):
    y = y.astype(str)
    kept = (y.map(y.value_counts()) >= 10).to_numpy()
    X, y = X[kept].reset_index(drop=True), y[kept].reset_index(drop=True)
    if len(X) > MOST_ROWS:
        rows, _ = train_test_split(np.arange(len(X)), train_size=MOST_ROWS, stratify=y, random_state=seed)
        X, y = X.iloc[rows].reset_index(drop=True), y.iloc[rows]
    target, probability, seconds = out_of_fold(make, X, y, seed)
    own = np.maximum(probability[np.arange(len(target)), target], 1e-5)
    return {
        "n_rows": len(target),
        "log_loss": float(-np.log(own).mean()),
        "error": float(np.mean(probability.argmax(axis=1) != target)),
        "calibration": calibration_error(probability, target),
        "seconds": seconds,
    }


def calibration_error(probability, target, n_bins=10):
    """Mean distance of confidence and accuracy in ten bins of confidence, by their rows."""
    confidence, hit = probability.max(axis=1), probability.argmax(axis=1) == target
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = [abs(confidence[bins == b].sum() - hit[bins == b].sum()) for b in range(n_bins)]
    return float(sum(gaps) / len(target))


def summarise(results, out=None):
    """Means, mean ranks among the six, paired differences against CatBoost, and the critical-difference plot."""
    table = results.pivot(index="domain", columns="method", values="log_loss")
    six = [name for name in SIX if name in table]
    by = results.groupby("method")
    summary = by[["log_loss", "error", "calibration", "seconds"]].mean()
    summary.insert(1, "rank of six", table[six].rank(axis=1).mean())
    print_table(summary.sort_values("log_loss").reset_index(), f"{len(table)} domains")
    if {OURS, "CatBoost"} <= set(table):
        gap = table[OURS] - table["CatBoost"]
        ratio = table[OURS].mean() / table["CatBoost"].mean()
        print(
            f"mean log loss {ratio:.3f} of CatBoost's; difference {gap.mean():.4f} +- {gap.sem():.4f}, lower on "
            f"{(gap < 0).sum()} of {len(gap)}, Wilcoxon p {wilcoxon(gap).pvalue:.3f}"
        )
    draw(table[six].rank(axis=1), out)


def draw(ranks, out=None):
    """Critical-difference plot (Nemenyi, 5 %): mean ranks, methods that do not differ are joined."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    k, n = ranks.shape[1], len(ranks)
    apart = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n))
    mean = ranks.mean().sort_values()
    figure, ax = plt.subplots(figsize=(6.5, 0.4 * k + 1.2), layout="constrained")
    ax.scatter(mean, range(k), color="#0072B2", zorder=3)
    ax.hlines(range(k), mean, mean + apart, color="#6B7780", linewidth=1)
    ax.set_yticks(range(k), mean.index)
    ax.invert_yaxis()
    ax.set_xlabel(
        f"mean rank by log loss on {n} tables; a method right of a line is behind (critical difference {apart:.2f})"
    )
    figure.savefig(results_folder(out) / "classifiers.png", dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    run(main)
