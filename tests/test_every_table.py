"""scikit-learn's tools around every classifier on every table of labels, raw: no nan, whatever a fold lacks.

The tables are the embedded ones and those of the folder PGM_BMA_DATA. To keep this short each gives 60 rows (of classes with at
least six) and four columns spread over its width; classes keep their shares.
"""

import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_validate

import pgm_bma
from pgm_bma.datasets import CONTINUOUS
from tests.test_contracts import CLASSIFIERS, build, classifiers

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # unknown and idle values, which are the point here


def lean(name, X):
    """Settings that keep the runs short where cells are missing: few sweeps over structures and cells, or none."""
    incomplete = X.isna().any(axis=1).mean()
    if name == "OrderAveragedClassifier" and incomplete:
        sweeps = 40 if X.nunique().max() < 30 else 2  # tables of 50 x 50 x 50 states are drawn in every sweep
        return {"sampler": pgm_bma.GibbsSampler(tol=0.1, max_sweeps=sweeps, n_orders=5)}
    if name == "FixedOrderClassifier" and incomplete:
        return {"missing": "state" if incomplete > 0.8 else "drop"}
    return {}


def table_names():
    folder = os.environ.get("PGM_BMA_DATA")
    beside = [path.name.split(".")[0] for path in Path(folder).glob("*.csv*")] if folder else []
    return sorted({*pgm_bma.list_datasets(), *beside} - CONTINUOUS)


def small(name, n_rows=60, n_columns=4):
    """(X, y): a part of the table in which every class has rows for the folds."""
    data, target = pgm_bma.load_dataset(name)
    data = data[data[target].notna()]
    sizes = data[target].value_counts()
    data = data[data[target].isin(sizes.index[: max(2, (sizes >= 6).sum())])].sample(frac=1, random_state=0)
    shares = data.groupby(target, observed=True).cumcount() / data.groupby(target, observed=True)[target].transform(
        "size"
    )
    at_least = data.groupby(target, observed=True).cumcount() < 6
    data = data[at_least | (shares < n_rows / len(data))]
    columns = [column for column in data if column != target]
    return data[columns[:: -(-len(columns) // n_columns)]], data[target]


@pytest.mark.parametrize("table", table_names())
def test_cross_validation_has_no_nan(table):
    X, y = small(table)
    for name in CLASSIFIERS:
        scores = cross_validate(
            build(name, **lean(name, X)), X, y, cv=2, scoring=["accuracy", "neg_log_loss"], error_score="raise"
        )
        assert np.isfinite(scores["test_accuracy"]).all(), name
        assert np.isfinite(scores["test_neg_log_loss"]).all(), name


# every classifier on missing cells and 11-state columns, and on seven classes; one each, in turn, on all other tables
PAIRS = [(table, name) for table in ("breast-LJ", "zoo") for name in CLASSIFIERS]
PAIRS += [(table, list(CLASSIFIERS)[i % len(CLASSIFIERS)]) for i, table in enumerate(table_names())]


@pytest.mark.parametrize("table, name", sorted(set(PAIRS)))
def test_tools_run_without_nan(table, name):
    X, y = small(table)
    more = lean(name, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid = GridSearchCV(
            build(name, **more), {"handle_unknown": ["missing"]}, cv=2, scoring="neg_log_loss", error_score="raise"
        )
        stack = StackingClassifier([("own", build(name, **more))], LogisticRegression(), cv=2)
        for tool in (grid, CalibratedClassifierCV(build(name, **more), cv=2), stack):
            given = X if tool is not stack else X.astype(object)
            assert np.isfinite(tool.fit(given, y).predict_proba(given)).all()
        assert np.isfinite(grid.best_score_)


@classifiers
def test_a_column_that_is_empty_in_one_fold(name):
    """'bc' has values in the last third of the rows only: empty in one training fold, constant in another."""
    rng = np.random.default_rng(0)
    y = np.tile(["no", "yes"], 30)
    X = pd.DataFrame({"a": rng.integers(0, 3, 60), "bc": [None] * 40 + ["u"] * 19 + ["v"], "c": y}).astype(
        {"bc": object}
    )
    folds = [(np.r_[0:40], np.r_[40:60]), (np.r_[20:59], np.r_[0:20]), (np.r_[0:20, 40:60], np.r_[20:40])]
    scores = cross_validate(build(name), X, y, cv=folds, scoring="neg_log_loss", error_score="raise")["test_score"]
    assert np.isfinite(scores).all()
