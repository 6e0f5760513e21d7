"""Numeric columns: additive terms averaged over all cuts against one MDL cut and what people would pick instead, by log loss.

Stratified 5 folds, everything fitted inside them; the loss is capped at p >= 1e-5; classes of fewer than ten rows are left out.
The peers: logistic regression with its penalty chosen by cross-validation, random forest, histogram boosting with early stopping.
Averaged naive Bayes with averaged cuts and with one MDL cut are compared too.
"""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from pgm_bma import AdditiveBayesClassifier, AveragedNaiveBayesClassifier, KikuchiBayesClassifier

from . import _kikuchi as kikuchi
from ._common import parser, print_table, run, save_csv
from .classifiers import LABELS, NUMBERS, out_of_fold, readers

QUICK = ("iris", "wine", "ecoli", "heart")
FULL = (
    *QUICK,
    "wdbc",
    "ionosphere",
    "australian",
    "crx",
    "german",
    "horse-colic",
    "breast-wisc",
    "anneal",
    "yeast-class",
)


def peers(seed):
    scaled, ordinal = readers()
    with_gaps = make_column_transformer(
        ("passthrough", NUMBERS), (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), LABELS)
    )
    return {
        "average": lambda: AdditiveBayesClassifier(),
        "average, singles": lambda: AdditiveBayesClassifier(terms=["single"]),
        "mdl": lambda: KikuchiBayesClassifier(),
        "naive Bayes, average": lambda: AveragedNaiveBayesClassifier(numeric="average"),
        "naive Bayes, mdl": lambda: AveragedNaiveBayesClassifier(numeric="mdl"),
        "logistic, cv": lambda: make_pipeline(
            scaled, LogisticRegressionCV(Cs=7, cv=4, scoring="neg_log_loss", max_iter=2000)
        ),
        "random forest": lambda: make_pipeline(ordinal, RandomForestClassifier(300, random_state=seed)),
        "boosting": lambda: make_pipeline(
            with_gaps, HistGradientBoostingClassifier(early_stopping=True, learning_rate=0.05, random_state=seed)
        ),
    }


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--domains", nargs="+", default=None)
    arguments.add_argument("--methods", nargs="+", default=None)
    options = arguments.parse_args(argv)
    methods = peers(options.seed)
    rows = []
    for domain in options.domains or (FULL if options.full else QUICK):
        loaded = kikuchi.load_domain(domain)
        if loaded is None:
            print(f"{domain} is not at hand")
            continue
        for name in options.methods or methods:
            rows.append({"domain": domain, "method": name, **evaluate(methods[name], *loaded, options.seed)})
            print_table(rows[-1:])
    results = pd.DataFrame(rows)
    table = results.pivot(index="domain", columns="method", values="log_loss")
    summary = pd.DataFrame({"mean log loss": table.mean(), "mean rank": table.rank(axis=1).mean()})
    summary["seconds"] = results.groupby("method")["seconds"].sum()
    print_table(summary.sort_values("mean rank").reset_index(), f"{len(table)} domains")
    save_csv(results, "kikuchi_numeric", options.out)


def evaluate(make, X, y, seed):
    y = y.astype(str)
    kept = (y.map(y.value_counts()) >= 10).to_numpy()
    target, probability, seconds = out_of_fold(make, X[kept].reset_index(drop=True), y[kept], seed)
    own = np.maximum(probability[np.arange(len(target)), target], 1e-5)
    return {
        "log_loss": float(-np.log(own).mean()),
        "error": float(np.mean(probability.argmax(axis=1) != target)),
        "seconds": seconds,
    }


if __name__ == "__main__":
    run(main)
