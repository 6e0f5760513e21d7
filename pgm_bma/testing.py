"""Checks that an estimator keeps the contract of this package, for estimators that are written outside it.

`check_estimator` runs all checks that apply, as scikit-learn's function of this name does. The estimators of this package pass them
in its own tests.
"""

import inspect
import os
import pickle  # nosec B403 # only our own bytes are read
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_clusterer
from sklearn.exceptions import NotFittedError

__all__ = ["check_estimator", "checks", "small_table"]


def small_table(n_rows: int = 80, seed: int = 0) -> tuple[pd.DataFrame, pd.Series]:
    """Make a small table of text, ordered levels, counts and flags that depend on a class.

    Parameters
    ----------
    n_rows : int, default=80
        Number of rows.
    seed : int, default=0
        Seed of the random numbers.

    Returns
    -------
    X : pandas.DataFrame
        Columns text, level, count and flag.
    y : pandas.Series
        The class, "bad" or "good".

    Examples
    --------
    >>> from pgm_bma.testing import small_table
    >>> X, y = small_table()
    >>> list(X), y.name
    (['text', 'level', 'count', 'flag'], 'outcome')
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    noisy = np.where(rng.random(n_rows) < 0.8, y, 1 - y)
    level = pd.Categorical(rng.choice(["low", "mid"], n_rows), categories=["low", "mid", "high"], ordered=True)
    X = pd.DataFrame(
        {
            "text": np.array(["no", "yes"])[noisy],
            "level": level,
            "count": np.where(rng.random(n_rows) < 0.3, 2, y),
            "flag": rng.random(n_rows) < 0.4 + 0.2 * y,
        }
    )
    return X, pd.Series(np.array(["bad", "good"])[y], name="outcome")


def check_estimator(estimator: Any, skip: Iterable[str] = ()) -> list[str]:
    """Run all checks that apply to an estimator; the first that fails raises an AssertionError.

    Parameters
    ----------
    estimator : classifier or clusterer
        Not fitted. Choose parameters that keep a fit short, and a seed if it draws random numbers.
    skip : iterable of str, optional
        Names of checks to leave out.

    Returns
    -------
    list of str
        Names of the checks that passed.

    Examples
    --------
    >>> import pgm_bma
    >>> from pgm_bma.testing import check_estimator
    >>> passed = check_estimator(pgm_bma.NaiveBayesClassifier())
    >>> "missing_values" in passed
    True
    """
    skip, passed = set(skip), []
    unknown = skip - {name for name, _ in checks(estimator)}
    if unknown:
        raise ValueError(
            f"skip={sorted(unknown)} names no check; there are: {', '.join(n for n, _ in checks(estimator))}"
        )
    for name, check in checks(estimator):
        if name not in skip:
            try:
                check(clone(estimator))
            except Exception as error:
                raise AssertionError(f"{type(estimator).__name__} fails check {name!r}: {error}") from error
            passed.append(name)
    return passed


def checks(estimator: Any) -> Iterator[tuple[str, Callable[[Any], None]]]:
    """Name the checks that apply to an estimator, for tests that run each of them alone.

    Parameters
    ----------
    estimator : classifier or clusterer
        Not fitted.

    Yields
    ------
    name : str
        What is checked.
    check : callable
        Takes an estimator that is not fitted and raises an error if it fails.

    Examples
    --------
    >>> import pgm_bma
    >>> from pgm_bma.testing import checks
    >>> [name for name, _ in checks(pgm_bma.EMAClusterer())][:3]
    ['clone', 'failed_fit', 'column_order']
    """
    apply = [*_ALL, *(_CLASSIFIERS if is_classifier(estimator) else _CLUSTERERS if is_clusterer(estimator) else ())]
    if "sample_weight" in inspect.signature(estimator.fit).parameters:
        apply += _WEIGHTS
    if "random_state" in estimator.get_params():
        apply.append(_seeds)
    if hasattr(estimator, "save"):
        apply.append(_saved_file)
    for check in apply:
        yield check.__name__.removeprefix("_"), check


def _fitted(estimator, X=None, y=None, **keywords):
    """Fit a copy, on the small table by default."""
    if X is None:
        X, y = small_table()
    return clone(estimator).fit(X, y if is_classifier(estimator) else None, **keywords)


def _demand(holds, message):
    """Assert also under ``python -O``, which drops assert statements."""
    if not holds:
        raise AssertionError(message)


def _raises(kind, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError(f"{getattr(function, '__qualname__', function)} did not raise {kind.__name__}")


def with_missing(X, seed=1):
    """Take a seventh of the cells of the small table away."""
    mask = np.random.default_rng(seed).random(X.shape) < 0.15
    return X.astype({"count": "Int64", "flag": "boolean"}).mask(mask)


def _clone(estimator):
    """A copy has the same parameters and nothing that was learned."""
    copy = clone(_fitted(estimator))
    _demand(copy.get_params().keys() == estimator.get_params().keys(), "a copy has other parameters")
    _raises(NotFittedError, copy.predict, small_table()[0])
    learned = [name for name in vars(copy) if name.endswith("_") and not name.startswith("_")]
    _demand(not learned, f"a copy has learned attributes: {learned}")


def _failed_fit(estimator):
    """A fit that fails leaves the estimator as it was."""
    X, outcome = small_table()
    y = outcome if is_classifier(estimator) else None
    bad = (X, ["same"] * len(X)) if is_classifier(estimator) else (X.iloc[:0], None)
    before = repr(estimator)
    _raises(ValueError, estimator.fit, *bad)
    _raises(NotFittedError, estimator.predict, X)
    _demand(repr(estimator) == before, "a failed fit changed a parameter")
    expected = estimator.fit(X, y).predict_proba(X)
    _raises(ValueError, estimator.fit, *bad)
    np.testing.assert_array_equal(estimator.predict_proba(X), expected)


def _column_order(estimator):
    """The order of columns and columns that were not fitted do not matter."""
    X, _ = small_table()
    fitted = _fitted(estimator)
    shuffled = X[X.columns[::-1]].assign(extra="ignored")
    np.testing.assert_array_equal(fitted.predict_proba(shuffled), fitted.predict_proba(X))


def _kinds_of_columns(estimator):
    """Objects, categories and texts of equal values give equal results."""
    X, y = small_table()
    X = X.drop(columns="level")
    expected = _fitted(estimator, X, y).predict_proba(X)
    for table in (X.astype(object), X.astype("category")):
        np.testing.assert_array_equal(_fitted(estimator, table, y).predict_proba(table), expected)


def _missing_values(estimator):
    """Missing values are taken in fit and in prediction, and probabilities sum to one."""
    X, y = small_table()
    holes = with_missing(X)
    proba = _fitted(estimator, holes, y).predict_proba(holes)
    _demand(np.isfinite(proba).all(), "a probability is not finite")
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)  # rounding of a few terms


def _unseen_values(estimator):
    """A value that was not seen in fit is missing, with a warning, or an error that names the column."""
    X, _ = small_table()
    odd = X.head(3).assign(text=["no", "maybe", "never"])
    fitted = _fitted(estimator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            proba = fitted.predict_proba(odd)
        except ValueError as error:
            _demand("text" in str(error), f"the error does not name the column: {error}")
            return
    _demand(np.isfinite(proba).all(), "a probability is not finite")
    _demand(any("text" in str(warning.message) for warning in caught), "no warning names the column")


def _pickled(estimator):
    """A pickled estimator predicts the same."""
    X, _ = small_table()
    fitted = _fitted(estimator)
    copy = pickle.loads(pickle.dumps(fitted))  # nosec B301 # bytes that were written in this line
    np.testing.assert_array_equal(copy.predict_proba(X), fitted.predict_proba(X))


def _saved_file(estimator):
    """A saved estimator predicts the same and keeps its parameters."""
    X, _ = small_table()
    fitted = _fitted(estimator)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.pgm")
        fitted.save(path)
        loaded = type(fitted).load(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    _demand(loaded.get_params().keys() == fitted.get_params().keys(), "a loaded estimator has other parameters")


def _seeds(estimator):
    """Equal seeds give equal results, also where the seed is a generator."""
    for seed in (lambda: 3, lambda: np.random.default_rng(3)):
        X, _ = small_table()
        first, second = (_fitted(clone(estimator).set_params(random_state=seed())).predict_proba(X) for _ in range(2))
        np.testing.assert_array_equal(first, second)


def _weights_are_repetitions(estimator):
    """A row of weight two is two rows."""
    X, y = small_table(40)
    weights = np.random.default_rng(5).integers(0, 4, len(X))
    repeated = np.repeat(np.arange(len(X)), weights)
    weighted = _fitted(estimator, X, y, sample_weight=weights)
    plain = _fitted(estimator, X.iloc[repeated], y.iloc[repeated])
    known = X.iloc[repeated]
    np.testing.assert_array_equal(weighted.predict_proba(known), plain.predict_proba(known))


def _bad_weights(estimator):
    """Weights that are negative, not numbers or all zero raise an error."""
    X, y = small_table(10)
    for bad in ([-1] + [1] * 9, [np.nan] + [1] * 9, [0] * 10):
        _raises(ValueError, lambda bad=bad: _fitted(estimator, X, y, sample_weight=bad))


def _probabilities_of_classes(estimator):
    """Classes are sorted, and predictions are the most probable class."""
    X, y = small_table()
    fitted = _fitted(estimator)
    proba = fitted.predict_proba(X)
    _demand(list(fitted.classes_) == sorted(set(y)), "classes_ is not sorted")
    _demand(proba.shape == (len(X), len(fitted.classes_)), "probabilities are not of shape (rows, classes)")
    np.testing.assert_array_equal(fitted.predict(X), fitted.classes_[proba.argmax(axis=1)])
    if hasattr(fitted, "predict_log_proba"):
        np.testing.assert_allclose(np.exp(fitted.predict_log_proba(X)), proba, atol=1e-15)


def _clusters(estimator):
    """Labels are those of the most probable cluster."""
    X, _ = small_table(120)
    fitted = _fitted(estimator, X)
    proba = fitted.predict_proba(X)
    _demand(proba.shape[0] == len(fitted.labels_) == len(X), "a row has no label or no probabilities")
    np.testing.assert_array_equal(fitted.predict(X), proba.argmax(axis=1))
    np.testing.assert_array_equal(fitted.labels_, fitted.predict(X))


_ALL = [_clone, _failed_fit, _column_order, _kinds_of_columns, _missing_values, _unseen_values, _pickled]
_CLASSIFIERS = [_probabilities_of_classes]
_CLUSTERERS = [_clusters]
_WEIGHTS = [_weights_are_repetitions, _bad_weights]
