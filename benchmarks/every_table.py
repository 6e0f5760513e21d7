"""scikit-learn's tools around every classifier on every table of labels, raw: is any score or probability not a number?

cross_val_score (accuracy and log loss), GridSearchCV, CalibratedClassifierCV and StackingClassifier on the embedded tables and
those of the folder PGM_BMA_DATA. Rows without a class are left out, and classes with fewer than six rows, which no split into
folds can keep. By default at most 150 rows and 8 columns of a table, spread over it; --full takes all. Refusals of size are
listed as such; any other error stops nothing, it is a row of the result.
"""

import os
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

import pgm_bma
from pgm_bma.datasets import CONTINUOUS

from ._common import parser, print_line, print_table, run, save_csv

CLASSIFIERS = {
    "NaiveBayesClassifier": {},
    "AveragedNaiveBayesClassifier": {},
    "TANClassifier": {},
    "ForestAveragedClassifier": {},
    "KikuchiBayesClassifier": {"random_state": 0},
    "FixedOrderClassifier": {"random_state": 0},
    "OrderAveragedClassifier": {"sampler": pgm_bma.GibbsSampler(n_orders=5), "random_state": 0},
}
ORDERS = (
    "FixedOrderClassifier",
    "OrderAveragedClassifier",
)  # where hardly a row is complete they ask for missing="state"


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", default="", help="names, separated by commas (default: all)")
    options.add_argument("--rows", type=int, default=150)
    options.add_argument("--columns", type=int, default=8)
    arguments = options.parse_args(argv)
    limits = (10**9, 10**9) if arguments.full else (arguments.rows, arguments.columns)
    rows = []
    for table in arguments.tables.split(",") if arguments.tables else table_names():
        X, y = part(table, *limits)
        for name in CLASSIFIERS:
            rows.append({"table": table, "rows": len(X), "columns": X.shape[1], **measure(name, X, y)})
            print_line(rows[-1])
        save_csv(rows, "every_table", arguments.out, keys=["table", "classifier"] if arguments.tables else None)
    print_table([row for row in rows if row["found"] != "numbers"], "everything that is not a number")
    print(
        f"{sum(row['found'] == 'numbers' for row in rows)} of {len(rows)} pairs of table and classifier gave numbers only"
    )


def table_names():
    folder = os.environ.get("PGM_BMA_DATA")
    beside = [path.name.split(".")[0] for path in Path(folder).glob("*.csv*")] if folder else []
    return sorted({*pgm_bma.list_datasets(), *beside} - CONTINUOUS)


def part(table, n_rows, n_columns):
    """(X, y) with at least six rows of every class."""
    data, target = pgm_bma.load_dataset(table)
    data = data[data[target].notna()]
    sizes = data[target].value_counts()
    data = data[data[target].isin(sizes.index[: max(2, (sizes >= 6).sum())])].sample(frac=1, random_state=0)
    within = data.groupby(target, observed=True).cumcount()
    share = within / data[target].map(data[target].value_counts()).astype(float)
    data = data[(within < 6) | (share < n_rows / len(data))]
    columns = [column for column in data if column != target]
    return data[columns[:: -(-len(columns) // n_columns)]], data[target]


def measure(name, X, y):
    """Which of the four tools gave a nan or an error, and CPU seconds."""
    more = {"missing": "state"} if name in ORDERS and X.isna().any(axis=1).mean() > 0.8 else {}
    estimator = getattr(pgm_bma, name)(**CLASSIFIERS[name], **more)
    folds = 3 if y.value_counts().min() >= 3 else 2
    began, found = time.process_time(), []
    for tool in (cross_validated, searched, calibrated, stacked):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # unknown and idle values, which are the point here
                if not np.isfinite(tool(estimator, X, y, folds)).all():
                    found.append(f"{tool.__name__}: nan")
        except Exception as error:
            found.append(f"{tool.__name__}: {type(error).__name__}: {error}"[:300])
    return {"classifier": name, "found": "; ".join(found) or "numbers", "seconds": time.process_time() - began}


def cross_validated(estimator, X, y, folds):
    scoring = ["accuracy", "neg_log_loss"]
    scores = cross_validate(estimator, X, y, cv=folds, scoring=scoring, error_score="raise")
    return np.concatenate([scores[f"test_{each}"] for each in scoring])


def searched(estimator, X, y, folds):
    grid = {"handle_unknown": ["missing"]}
    search = GridSearchCV(estimator, grid, cv=folds, scoring="neg_log_loss", error_score="raise").fit(X, y)
    return np.append(search.predict_proba(X).ravel(), search.best_score_)


def calibrated(estimator, X, y, folds):
    return CalibratedClassifierCV(estimator, cv=folds).fit(X, y).predict_proba(X)


def stacked(estimator, X, y, folds):
    stack = StackingClassifier([("own", estimator)], LogisticRegression(max_iter=1000), cv=folds)
    return stack.fit(X.astype(object), y).predict_proba(X.astype(object))


if __name__ == "__main__":
    run(main)
