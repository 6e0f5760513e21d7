"""Laws of every estimator: what must not matter does not. Seed, order of columns, order of rows, labels of states.

A law that cannot hold for an estimator is listed with its reason. Clusters are compared up to their numbering; where several
starts compete, all runs get the same start by `init`.
"""

import warnings

import numpy as np
import pytest

import pgm_bma
from tests.test_contracts import ALL, CLASSIFIERS, CLUSTERERS, SEEDED, frame, with_missing

# (estimator, law): why it does not hold exactly, and the tolerance that does
EXCEPTIONS = {
    ("OrderAveragedClassifier", "seed"): ("a sample of orders: the Monte Carlo error", None),
    ("OrderAveragedClassifier", "columns"): ("the chain walks over positions: the Monte Carlo error", None),
    ("FixedOrderClassifier", "columns"): ("the order of the columns is its default order", None),
    **{(name, "seed"): ("starts are random: another local optimum", None) for name in CLUSTERERS},
    **{(name, "columns"): ("random starts are drawn column by column", None) for name in CLUSTERERS},
    **{(name, "labels"): ("random starts are drawn state by state", None) for name in CLUSTERERS},
}
# cells that are missing in training are sampled state by state: with gaps, the law holds for complete rows only
COMPLETE_ROWS = {name: {"missing": "drop"} for name in ("FixedOrderClassifier", "OrderAveragedClassifier")}
AS_TEXT = {"AdditiveBayesClassifier"}  # whole numbers have a slope there, which names have not
TOLERANCE = 1e-8  # rounding: sums in another order, amplified by up to 1e8 in log odds of thousands of nats


def fitted(name, X, y, **given):
    parameters = {**ALL[name], **given}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(pgm_bma, name)(**parameters).fit(X, y if name in CLASSIFIERS else None)


def tables():
    X, y = frame(120)
    return {"complete": (X, y), "missing": (with_missing(X), y)}


cases = pytest.mark.parametrize("kind", ["complete", "missing"])


def names(law):
    return pytest.mark.parametrize("name", [name for name in ALL if (name, law) not in EXCEPTIONS])


@cases
@names("seed")
def test_seed(name, kind):
    if name not in SEEDED:
        pytest.skip("draws nothing")
    X, y = tables()[kind]
    first, second = (fitted(name, X, y, random_state=seed).predict_proba(X) for seed in (1, 2))
    np.testing.assert_allclose(first, second, atol=TOLERANCE)


@cases
@names("columns")
def test_order_of_columns(name, kind):
    X, y = tables()[kind]
    turned = X[X.columns[::-1]]
    expected = fitted(name, X, y).predict_proba(X)
    np.testing.assert_allclose(fitted(name, turned, y).predict_proba(X), expected, atol=TOLERANCE)


@cases
@names("rows")
def test_order_of_rows(name, kind):
    X, y = tables()[kind]
    order = np.random.default_rng(0).permutation(len(X))
    expected = fitted(name, X, y).predict_proba(X)
    found = fitted(name, X.iloc[order], y.iloc[order]).predict_proba(X)
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


@cases
@names("labels")
def test_labels_of_states(name, kind):
    """Other names, which sort the other way."""
    X, y = tables()[kind]
    other = X.astype(object).copy()
    for column in X:
        states = sorted(X[column].dropna().unique(), key=str)
        other[column] = X[column].map({state: f"s{9 - k}" for k, state in enumerate(states)}).astype(object)
    other = other.mask(X.isna())
    plain = X.assign(level=X["level"].astype(object)) if "level" in X else X  # no unused category on either side
    if name in AS_TEXT:
        plain = plain.astype(object).map(lambda value: f"t{value}", na_action="ignore")
    given = COMPLETE_ROWS.get(name, {})
    expected = fitted(name, plain, y, **given).predict_proba(plain)
    classes = y.map({"bad": "z", "good": "a"})
    found = fitted(name, other, classes, **given).predict_proba(other)
    found = found[:, ::-1] if name in CLASSIFIERS else found
    np.testing.assert_allclose(found, expected, atol=TOLERANCE)


def test_clusterers_from_equal_starts_do_not_depend_on_names_and_orders():
    """With one start that is given, the laws that random starts break hold for the clusterers too."""
    X, _ = frame(120)
    X = X.assign(level=X["level"].astype(object))
    for name in ("LatentClassClusterer", "EMAClusterer"):
        start = fitted(name, X, None).model_
        given = {"init": start, "n_init": 1}
        expected = fitted(name, X, None, **given).predict_proba(X)
        turned = X[X.columns[::-1]].iloc[::-1]
        np.testing.assert_allclose(fitted(name, turned, None, **given).predict_proba(X), expected, atol=1e-6)
