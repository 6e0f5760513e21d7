"""Judges: `AdditiveBayesClassifier` against what people would pick instead, on raw tables: loss, error, calibration, time.

Tables are in two halves (column `half`): "chosen on" are the development tables, "reported" are tables on which nothing was
chosen, by `_reported.py`. Stratified 5 folds, everything fitted inside them; at most 1500 rows and 400,000 / (columns x
classes) of a table, classes of fewer than ten rows left out, p >= 1e-5 in the loss. Everyone is tuned. Boosting: up to 500
trees, rate 0.1 (0.05 below 400 rows), the best of two or three sizes of trees, early stopping on a sixth of the rows.
InterpretML's EBM: its defaults, 14 fits on parts of the rows that stop early. Random forest: leaves of 1, 3 or 5 rows by out-
of-bag loss, 300 trees. Logistic regression: 10 penalties, 5 folds inside. ``--full`` adds boosting at its defaults.

Seconds are CPU, of fits and predictions in all folds. A line of the CSV is made once. ``--again METHOD ...`` makes the lines of
these methods anew and no others; a kept line goes when its new one is there.
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
from . import _reported as reported
from ._common import need, parser, print_line, replace_table, results_folder, run, save_csv

# all at hand but golub (7129 columns, where nothing is averaged), lung-cancer and o-ring-erosion (fewer than 40 rows left)
TABLES = (
    "iris", "wine", "ecoli", "heart", "ionosphere", "horse-colic", "yeast-class", "wdbc", "crx", "australian", "german",
    "breast-wisc", "hayes-roth", "voting", "shuttle-control", "breast-LJ", "monk1", "monk2", "monk3", "tic-tac-toe", "titanic",
    "lymphography", "soybean-small", "zoo", "krkp", "mushroom", "anneal", "car", "nursery", "audiology", "digits",
)  # fmt: skip
OURS, REGIONS = "AdditiveBayesClassifier", "KikuchiBayesClassifier"
# "CatBoost, depth 6" is what the development tables have of CatBoost so far: lines of an earlier version of this script
JUDGED = (OURS, "EBM", "CatBoost", "CatBoost, depth 6", "LightGBM", "XGBoost", "random forest", "logistic, cv")
NAMES = {"random forest": "the random forest", "logistic, cv": "logistic regression"}
TITLES = {
    OURS: f"`{OURS}()`",
    REGIONS: f"`{REGIONS}()`",
    "EBM": "EBM (InterpretML), its defaults",
    "CatBoost": "CatBoost, early stopping, depth 4, 6 or 8",
    "CatBoost, depth 6": "CatBoost, early stopping, depth 6",
    "LightGBM": "LightGBM, tuned",
    "XGBoost": "XGBoost, tuned",
    "random forest": "random forest, tuned",
    "logistic, cv": "logistic regression, cross-validated",
}
LIBRARIES = {"EBM": "interpret", "CatBoost": "catboost", "LightGBM": "lightgbm", "XGBoost": "xgboost"}
MOST_ROWS, MOST_CELLS = 1500, 400_000
MOST_TREES, PATIENCE = 500, 30
SIZES = {"catboost": (4, 6, 8), "lightgbm": (7, 31), "xgboost": (3, 6)}  # depths; leaves of LightGBM


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
        if self.library == "catboost":
            return _as_text(X)
        X = X.copy()
        for name, states in self.states_.items():
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


class Explainable:
    """InterpretML's EBM at its defaults; it reads numbers, labels and missing cells itself."""

    def __init__(self, seed):
        self.seed = seed

    def fit(self, X, y):
        boosting = need("interpret.glassbox").ExplainableBoostingClassifier
        self.model_ = boosting(random_state=self.seed, n_jobs=1).fit(_as_text(X), y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(_as_text(X))


def _as_text(X):
    """Labels as text, a missing one as a label of its own; numbers as they are."""
    labels = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    return X.assign(**{name: X[name].astype(object).where(X[name].notna(), "(missing)").astype(str) for name in labels})


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
        REGIONS: KikuchiBayesClassifier,
        "logistic, cv": lambda: make_pipeline(scaled, logistic),
        "random forest": lambda: make_pipeline(ordinal, Forest(seed)),
        "CatBoost": lambda: Boosting("catboost", True, seed),
        "LightGBM": lambda: Boosting("lightgbm", True, seed),
        "XGBoost": lambda: Boosting("xgboost", True, seed),
        "EBM": lambda: Explainable(seed),
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
    arguments.add_argument("--page", default="", help="write the tables into this page (docs/evidence.md)")
    options = arguments.parse_args(argv)
    path = results_folder(options.out) / "classifiers.csv"
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    if not options.summary:
        fill(rows, options)
    try:
        summarise(pd.DataFrame(rows), options)
    except (KeyError, ValueError) as error:
        print(f"no summary yet: {error}")


def fill(rows, options):
    """Add the lines that are not there, replace those of ``--again``; the CSV is written after each."""
    makers = methods(options.seed)
    wanted = (
        options.methods or options.again or [name for name in makers if options.full or not name.endswith("default")]
    )
    for name in set(wanted) & set(LIBRARIES):
        need(LIBRARIES[name], "pip install 'pgm-bma[bench]'")
    place = {(row["domain"], row["method"]): k for k, row in enumerate(rows)}
    few = pd.DataFrame(np.arange(60).reshape(20, 3) % 7).astype(str).add_prefix("x")
    for name in (OURS, REGIONS):
        makers[name]().fit(few, np.arange(20) % 2)  # compiled code is loaded
    for domain in options.domains or (*TABLES, *reported.TABLES):
        todo = [name for name in wanted if name in options.again or (domain, name) not in place]
        loaded = load(domain) if todo else None
        for name in todo if loaded else ():
            half = "reported" if domain in reported.TABLES else "chosen on"
            line = {"domain": domain, "half": half, "method": name, **evaluate(makers[name], *loaded, options.seed)}
            k = place.setdefault((domain, name), len(rows))
            rows[k : k + 1] = [line]
            print_line(line)
            save_csv(rows, "classifiers", options.out)


def load(domain):
    """(X, y) of a table, None where it is not at hand."""
    if domain == "digits":
        from sklearn.datasets import load_digits

        bunch = load_digits(as_frame=True)
        return bunch.data, bunch.target
    loaded = reported.load(domain) if domain in reported.TABLES else kikuchi.load_domain(domain)
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


def complete(results, half, without=()):
    """(methods, their lines on the tables of a half that all of them were run on)."""
    part = results[results["half"] == half]
    judged = [name for name in JUDGED if name in set(part["method"]) - set(without)]
    loss = part.pivot(index="domain", columns="method", values="log_loss")[judged].dropna()
    return judged, part[part["domain"].isin(loss.index)]


def as_markdown(results, half):
    """The table of a half as it stands on the page, by falling quality."""
    judged, part = complete(results, half)
    ranks, _ = kikuchi.mean_ranks(part, "log_loss", judged)
    means = part.groupby("method")[["log_loss", "error", "calibration", "seconds"]].mean().loc[[*judged, REGIONS]]
    lines = [
        f"| {half} | log loss | mean rank of {len(judged)} | error | calibration | CPU s |",
        "|---|---|---|---|---|---|",
    ]
    for name, (loss, error, calibration, seconds) in means.sort_values("log_loss").iterrows():
        rank = f"{ranks[name]:.2f}" if name in ranks else "-"
        lines.append(
            f"| {TITLES.get(name, name)} | {loss:.3f} | {rank} | {error:.3f} | {calibration:.3f} | {seconds:.1f} |"
        )
    return "\n".join(lines)


def sentences(results):
    """What the pages say of the reported half."""
    said = {}
    for key, without in (("rank", ()), ("rank without EBM", ("EBM",))):
        judged, part = complete(results, "reported", without)
        ranks, n = kikuchi.mean_ranks(part, "log_loss", judged)
        said[key] = f"mean rank {ranks[OURS]:.2f} of {len(judged)} by log loss on {n} tables"
        loss = part.pivot(index="domain", columns="method", values="log_loss")
        behind = (loss[OURS] - loss["logistic, cv"] > 0.02).sum()
    said["behind"] = f"more than 0.02 behind logistic regression on {behind} of {n} tables"
    judged, part = complete(results, "reported")
    loss = part.pivot(index="domain", columns="method", values="log_loss")
    lower = (f"{NAMES.get(name, name)} on {(loss[OURS] < loss[name]).sum()}" for name in judged[1:])
    said["lower"] = f"Of the {len(loss)} tables it has a lower log loss than {', '.join(lower)}"
    seconds = part.groupby("method")["seconds"].sum()
    times = (f"{NAMES.get(name, name)} {seconds[name] / seconds[OURS]:.2g}" for name in judged[1:])
    said["seconds"] = f"CPU time of the others over its own: {', '.join(times)}"
    return said


def summarise(results, options):
    """Tables and sentences of the page, differences to every peer, and the critical-difference picture of the reported half."""
    for half in ("chosen on", "reported"):
        table = as_markdown(results, half)
        print(f"\n{table}")
        if options.page:
            replace_table(options.page, table)
        judged, part = complete(results, half)
        loss = part.pivot(index="domain", columns="method", values="log_loss")
        for peer in (*judged[1:], REGIONS):
            print(f"{half}: log loss against {peer}: {_against(loss[[OURS, peer]])}")
    print("\n".join(sentences(results).values()))
    ranks, n_tables = kikuchi.mean_ranks(part, "log_loss", judged)
    kikuchi.plot_ranks(ranks, n_tables, "log loss", results_folder(options.out) / "classifiers.png")


def _against(losses):
    ours, peer = losses.iloc[:, 0], losses.iloc[:, 1]
    gap = ours - peer
    return (
        f"{ours.mean():.4f} / {peer.mean():.4f} = {ours.mean() / peer.mean():.3f}; difference {gap.mean():.4f} +- {gap.sem():.4f}, "
        f"lower on {(gap < 0).sum()} of {len(gap)}, Wilcoxon p {wilcoxon(gap).pvalue:.4f}"
    )


if __name__ == "__main__":
    run(main)
