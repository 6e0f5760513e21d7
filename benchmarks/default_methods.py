"""The method to begin with: log loss and processor time of every classifier and clusterer on the development tables, 5 folds.

The tables are the embedded ones and those of PGM_BMA_DATA whose columns have at most 30 states (others hold numbers); at most 400
rows each, with --full all. Classes: mean -log P(class). Clusters: mean log p(row) of held-out rows, and the adjusted Rand index
between the clusters of all rows and the classes, with as many clusters as classes (tables up to 18 columns and 8 classes; with
--full all). Order averaging is left out above 12 columns.
`pgm_bma.default_classifier` and `default_clusterer` follow these tables. With --datasets the lines of other tables stay in the kept
file: a run in pieces.
"""

import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import KFold, StratifiedKFold

import pgm_bma

from ._common import parser, print_line, print_table, run, save_csv

CLASSIFIERS = {
    "naive Bayes": pgm_bma.NaiveBayesClassifier,
    "averaged NB": pgm_bma.AveragedNaiveBayesClassifier,
    "TAN": pgm_bma.TANClassifier,
    "forest": pgm_bma.ForestAveragedClassifier,
    "forest selective": lambda **given: pgm_bma.ForestAveragedClassifier(class_arcs="selective", **given),
    "Kikuchi": lambda **given: pgm_bma.AdditiveBayesClassifier(**given),
    "orders": lambda **given: pgm_bma.OrderAveragedClassifier(max_indegree=2, random_state=0, **given).set_params(
        sampler__n_orders=10
    ),
}
CLUSTERERS = {
    "EM": pgm_bma.LatentClassClusterer,
    "EMA": pgm_bma.EMAClusterer,
    "structural EM": pgm_bma.StructuralEMClusterer,
    "forest": pgm_bma.ForestAveragedClusterer,
}
MAX_STATES, MAX_ORDER_COLUMNS = 30, 12


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--datasets", nargs="+", default=None, help="default: all that qualify")
    arguments.add_argument("--jobs", choices=("classes", "clusters", "both"), default="both")
    options = arguments.parse_args(argv)
    warnings.simplefilter("ignore")
    tables = list(development_tables(options.datasets, None if options.full else 400, options.seed))
    if options.jobs != "clusters":
        rows = [line for table in tables for line in classify(*table, options.seed)]
        report(rows, "log loss", "default_methods_classes", options)
    if options.jobs != "classes":
        small = [t for t in tables if options.full or (t[1].shape[1] <= 18 and t[2].nunique() <= 8)]
        rows = [line for table in small for line in cluster(*table, options.seed)]
        report(rows, "log p(row)", "default_methods_clusters", options)


def development_tables(names, n_rows, seed):
    folder = os.environ.get("PGM_BMA_DATA")
    beside = [path.name.split(".")[0] for path in Path(folder).glob("*.csv")] if folder else []
    for name in names or sorted({*pgm_bma.list_datasets(), *beside} - pgm_bma.datasets.CONTINUOUS):
        data, target = pgm_bma.load_dataset(name)
        data = data[data[target].notna()]
        if data.drop(columns=target).nunique().max() > MAX_STATES and not names:
            print(f"{name} left out: a column of more than {MAX_STATES} states")
            continue
        if n_rows is not None and len(data) > n_rows:
            data = data.sample(n_rows, random_state=seed)
        yield name, data.drop(columns=target), data[target].astype(str)


def classify(name, X, y, seed):
    smallest = y.value_counts().min()
    kind = StratifiedKFold if smallest >= 2 else KFold
    folds = list(kind(5, shuffle=True, random_state=seed).split(X, y))
    for method, make in CLASSIFIERS.items():
        if method == "orders" and X.shape[1] > MAX_ORDER_COLUMNS:
            continue
        losses, seconds = [], -time.process_time()
        for train, test in folds:
            fitted = make(state_names={y.name: sorted(set(y))}).fit(X.iloc[train], y.iloc[train])
            columns = [fitted.classes_.tolist().index(label) for label in y.iloc[test]]
            losses.append(-fitted.predict_log_proba(X.iloc[test])[np.arange(len(test)), columns])
        seconds += time.process_time()
        losses = np.concatenate(losses)
        error = losses.std() / np.sqrt(len(losses))
        line = {"data": name, "method": method, "log loss": losses.mean(), "standard error": error, "cpu s": seconds}
        print_line(line)
        yield line


def cluster(name, X, y, seed):
    folds = list(KFold(5, shuffle=True, random_state=seed).split(X))
    for method, make in CLUSTERERS.items():
        scores, seconds = [], -time.process_time()
        for train, test in folds:
            fitted = make(n_clusters=y.nunique(), random_state=seed).fit(X.iloc[train])
            scores.append(fitted.score_samples(X.iloc[test]))
        seconds += time.process_time()
        labels = make(n_clusters=y.nunique(), random_state=seed).fit(X).labels_
        mean, rand = float(np.concatenate(scores).mean()), adjusted_rand_score(y, labels)
        line = {"data": name, "method": method, "log p(row)": mean, "Rand index": rand, "cpu s": seconds}
        print_line(line)
        yield line


def report(rows, measure, name, options):
    """The table of all cells, and per method: mean, mean rank (1 = best), tables where it is best, seconds."""
    frame = pd.read_csv(save_csv(rows, name, options.out, keys=["data", "method"] if options.datasets else None))
    wide = frame.pivot(index="data", columns="method", values=measure)
    complete = wide.drop(columns="orders", errors="ignore").dropna()
    ranks = complete.rank(axis=1, ascending=measure == "log loss")
    summary = pd.DataFrame(
        {"tables": len(complete), "mean": complete.mean(), "mean rank": ranks.mean(), "best": (ranks == 1).sum()}
    )
    if "orders" in wide:
        few = wide.dropna()
        summary["mean of the narrow tables"] = few.mean().reindex(summary.index)
        summary.loc["orders", ["tables", "mean of the narrow tables"]] = len(few), few["orders"].mean()
    if "Rand index" in frame:
        summary["mean Rand index"] = frame.groupby("method")["Rand index"].mean()
    summary["cpu s"] = frame.groupby("method")["cpu s"].sum()
    table = summary.rename_axis("method").reset_index()
    print_table(table, f"{measure}, 5 folds")
    save_csv(table, f"{name}_summary", options.out)


if __name__ == "__main__":
    run(main)
