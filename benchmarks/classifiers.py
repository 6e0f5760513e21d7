"""Judges: `AdditiveBayesClassifier` against what people would pick instead, on raw tables: loss, error, calibration, time.

In the kept tables its name is "Kikuchi-Bayes", and that of `KikuchiBayesClassifier` is "Kikuchi-Bayes, mdl".

Stratified 5 folds, everything fitted inside them; at most 1500 rows and 400,000 / (columns x classes) of a table, classes of fewer
than ten rows left out, p >= 1e-5 in the loss. Everyone is tuned. Boosting: up to 500 trees, rate 0.1 (0.05 below 400 rows), the
better of two sizes of trees (CatBoost: depth 6), early stopping on a sixth of the rows. Random forest: leaves of 1, 3 or 5 rows by
out-of-bag loss, 300 trees. Logistic regression: 10 penalties, 5 folds inside. ``--full`` adds boosting at its defaults.
Seconds are CPU, of fits and predictions in all folds. A line of the CSV is made once; ``--again METHOD ...`` makes those of some
methods anew.
"""

import time
import warnings

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from pgm_bma import AdditiveBayesClassifier, KikuchiBayesClassifier
from pgm_bma.foundation.tables.kinds import numeric_names

from . import _kikuchi as kikuchi
from ._common import need, parser, print_line, print_table, results_folder, run, save_csv

# all at hand but golub (7129 columns, where nothing is averaged), lung-cancer and o-ring-erosion (fewer than 40 rows left)
TABLES = (
    "iris", "wine", "ecoli", "heart", "ionosphere", "horse-colic", "yeast-class", "wdbc", "crx", "australian", "german",
    "breast-wisc", "hayes-roth", "voting", "shuttle-control", "breast-LJ", "monk1", "monk2", "monk3", "tic-tac-toe", "titanic",
    "lymphography", "soybean-small", "zoo", "krkp", "mushroom", "anneal", "car", "nursery", "audiology", "digits",
)  # fmt: skip
OURS = "Kikuchi-Bayes"
SIX = (OURS, "CatBoost", "LightGBM", "XGBoost", "random forest", "logistic, cv")
MOST_ROWS, MOST_CELLS = 1500, 400_000
MOST_TREES, PATIENCE = 500, 30
SIZES = {"catboost": (6,), "lightgbm": (7, 31), "xgboost": (3, 6)}  # depths; leaves of LightGBM


class Boosting:
    """One of three libraries as one estimator: labels as integer codes, early stopping on a part of the training rows."""

    def __init__(self, library, tuned, seed):
        self.library, self.tuned, self.seed = library, tuned, seed

    def fit(self, X, y):
        self.labels_ = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
        self.states_ = {name: X[name].dropna().astype(str).unique().tolist() or ["none"] for name in self.labels_}
        self.classes_, y = np.unique(y, return_inverse=True)
        X = self._coded(X)
        if not self.tuned:
            self.model_ = self._make({}).fit(X, y)
            return self
        inner, held = train_test_split(np.arange(len(y)), test_size=1 / 6, stratify=y, random_state=self.seed)
        tried = [self._stopped(size, X.iloc[inner], y[inner], X.iloc[held], y[held]) for size in SIZES[self.library]]
        self.model_ = min(tried, key=lambda pair: pair[1])[0]
        return self

    def _stopped(self, size, X, y, X_held, y_held):
        """(model that stopped early, its loss on the held rows)."""
        rate = 0.05 if len(y) < 400 else 0.1
        setting = {"n_estimators": MOST_TREES, "learning_rate": rate}
        if self.library == "catboost":
            model = self._make({**setting, "depth": size})
            model.fit(X, y, eval_set=(X_held, y_held), early_stopping_rounds=PATIENCE)
        elif self.library == "lightgbm":
            small = {
                "min_child_samples": 10,
                "min_data_per_group": 10,
                "max_cat_to_onehot": 16,
            }  # its defaults want large tables
            model = self._make({**setting, "num_leaves": size, **small})
            stop = need("lightgbm").early_stopping(PATIENCE, verbose=False)
            model.fit(X, y, eval_set=[(X_held, y_held)], callbacks=[stop])
        else:
            model = self._make({**setting, "max_depth": size, "subsample": 0.8, "early_stopping_rounds": PATIENCE})
            model.fit(X, y, eval_set=[(X_held, y_held)], verbose=False)
        own = model.predict_proba(X_held)[np.arange(len(y_held)), y_held]
        return model, -np.log(np.maximum(own, 1e-5)).mean()

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

    def _make(self, setting):
        common = {"random_state": self.seed, "n_jobs": 1, **setting}
        if self.library == "catboost":
            return need("catboost").CatBoostClassifier(
                verbose=0,
                thread_count=1,
                random_seed=self.seed,
                cat_features=self.labels_,
                allow_writing_files=False,
                **setting,
            )
        if self.library == "lightgbm":
            return need("lightgbm").LGBMClassifier(verbose=-1, **common)
        measure = "logloss" if len(self.classes_) == 2 else "mlogloss"
        return need("xgboost").XGBClassifier(enable_categorical=True, eval_metric=measure, **common)


class Forest(ClassifierMixin, BaseEstimator):
    """Random forest whose smallest leaf is chosen by the loss of the rows out of bag."""

    def __init__(self, seed=0):
        self.seed = seed

    def fit(self, X, y):
        self.classes_, y = np.unique(y, return_inverse=True)
        tried = {leaf: self._out_of_bag(X, y, leaf) for leaf in (1, 3, 5)}
        leaf = min(tried, key=tried.get)
        self.model_ = RandomForestClassifier(300, min_samples_leaf=leaf, random_state=self.seed).fit(X, y)
        return self

    def _out_of_bag(self, X, y, leaf):
        model = RandomForestClassifier(100, min_samples_leaf=leaf, oob_score=True, random_state=self.seed).fit(X, y)
        own = model.oob_decision_function_[np.arange(len(y)), y]
        return -np.log(np.maximum(np.nan_to_num(own), 1e-5)).mean()

    def predict_proba(self, X):
        return self.model_.predict_proba(X)


NUMBERS, LABELS = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")


def readers():
    """What scikit-learn's peers see: (scaled numbers and indicators of states, numbers and codes of states)."""
    scaled = make_column_transformer(
        (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), NUMBERS),
        (OneHotEncoder(handle_unknown="ignore"), LABELS),
    )
    ordinal = make_column_transformer(
        (SimpleImputer(keep_empty_features=True), NUMBERS),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2), LABELS),
    )
    return scaled, ordinal


def methods(seed):
    scaled, ordinal = readers()
    logistic = LogisticRegressionCV(Cs=10, cv=5, scoring="neg_log_loss", max_iter=2000)
    return {
        OURS: AdditiveBayesClassifier,
        "Kikuchi-Bayes, mdl": lambda: KikuchiBayesClassifier(),
        "logistic, cv": lambda: make_pipeline(scaled, logistic),
        "random forest": lambda: make_pipeline(ordinal, Forest(seed)),
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
    arguments.add_argument("--again", nargs="+", default=(), metavar="METHOD")
    arguments.add_argument("--summary", action="store_true", help="only the summary of the kept lines")
    options = arguments.parse_args(argv)
    rows = kept_rows(options.out, options.again, options.domains)
    if not options.summary:
        for library in ("catboost", "lightgbm", "xgboost"):
            need(library, "pip install 'pgm-bma[bench]'")
        fill(rows, options)
    summarise(pd.DataFrame(rows), options.out)


def kept_rows(out, again, domains):
    """Lines of the kept CSV but those that are to be made anew."""
    path = results_folder(out) / "classifiers.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    return [row for row in rows if row["method"] not in again or row["domain"] not in (domains or TABLES)]


def fill(rows, options):
    """Add the lines that are not there; the CSV is written after each."""
    makers = methods(options.seed)
    wanted = options.methods or [name for name in makers if options.full or not name.endswith("default")]
    AdditiveBayesClassifier().fit(np.arange(60.0).reshape(20, 3) % 7.5, np.arange(20) % 2)  # compiled code is loaded
    for domain in options.domains or TABLES:
        there = {row["method"] for row in rows if row["domain"] == domain}
        loaded = load(domain) if set(wanted) - there else None
        if loaded is None:
            continue
        for name in wanted:
            if name not in there:
                line = {"domain": domain, "method": name, **evaluate(makers[name], *loaded, options.seed)}
                rows.append(line)
                print_line(line)
                save_csv(rows, "classifiers", options.out)


def load(domain):
    """(X, y) of a table, None where it is not at hand."""
    if domain == "digits":
        from sklearn.datasets import load_digits

        bunch = load_digits(as_frame=True)
        return bunch.data, bunch.target
    loaded = kikuchi.load_domain(domain)
    if loaded is None:
        print(f"{domain} is not at hand")
    return loaded


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
    limit = min(MOST_ROWS, MOST_CELLS // (X.shape[1] * y.nunique()))
    if len(X) > limit:
        rows, _ = train_test_split(np.arange(len(X)), train_size=limit, stratify=y, random_state=seed)
        X, y = X.iloc[rows].reset_index(drop=True), y.iloc[rows]
    target, probability, seconds = out_of_fold(make, X, y, seed)
    own = np.maximum(probability[np.arange(len(target)), target], 1e-5)
    return {
        "n_rows": len(target),
        "n_columns": X.shape[1],
        "n_numeric": len(numeric_names(X)),
        "n_classes": probability.shape[1],
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
    """Means, mean ranks among the six, what was asked for, and the critical-difference picture."""
    missing = {*SIX, "Kikuchi-Bayes, mdl"} - set(results["method"])
    if missing:
        print(f"no summary yet: {', '.join(sorted(missing))} to come")
        return
    six = list(SIX)
    ranks, n_tables = kikuchi.mean_ranks(results, "log_loss", six)
    loss = results.pivot(index="domain", columns="method", values="log_loss")
    complete = results[results["domain"].isin(loss[six].dropna().index)]
    summary = complete.groupby("method")[["log_loss", "error", "calibration", "seconds"]].mean()
    summary.insert(1, "rank of six", ranks)
    print_table(summary.sort_values("log_loss").reset_index(), f"{n_tables} tables")
    for peer in ("CatBoost", "CatBoost, default"):
        if peer in loss:
            print(f"log loss against {peer}: {_against(loss[[OURS, peer]].dropna())}")
    numeric = results.loc[results["n_numeric"] > 0, "domain"].unique()
    gain = (loss[OURS] < loss["Kikuchi-Bayes, mdl"])[numeric]
    print(
        f"lower loss than with one MDL cut on {gain.sum()} of {len(gain)} tables with numbers (not {list(gain.index[~gain])})"
    )
    seconds = results.pivot(index="domain", columns="method", values="seconds")
    ratio = seconds[OURS] / seconds["logistic, cv"]
    over = ", ".join(f"{name} {value:.1f}" for name, value in ratio[ratio > 2].items())
    total = seconds[OURS].sum() / seconds["logistic, cv"].sum()
    print(
        f"CPU time over that of logistic regression: {total:.2f} in all, median {ratio.median():.2f}, above 2: {over or 'none'}"
    )
    kikuchi.plot_ranks(ranks, n_tables, "log loss", results_folder(out) / "classifiers.png")


def _against(losses):
    ours, peer = losses.iloc[:, 0], losses.iloc[:, 1]
    gap = ours - peer
    return (
        f"{ours.mean():.4f} / {peer.mean():.4f} = {ours.mean() / peer.mean():.3f}; difference {gap.mean():.4f} +- {gap.sem():.4f}, "
        f"lower on {(gap < 0).sum()} of {len(gap)}, Wilcoxon p {wilcoxon(gap).pvalue:.4f}"
    )


if __name__ == "__main__":
    run(main)
