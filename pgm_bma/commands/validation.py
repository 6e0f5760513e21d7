"""How well classifiers predict: cross-validation with progress, and scores with standard errors.

Standard errors are over rows: the spread of the rows' losses divided by the root of their number. In a cross-validation the
folds share training rows, so they are a little too small; differences between two methods are taken row by row, which
removes what is common to both.
"""

import re
import time
import warnings
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.commands.console import one_line

SMALLEST = 1e-15  # a probability below it counts as this much in the log loss


class Predictions(NamedTuple):
    """proba : (n_samples, n_classes)   fold : (n_samples,)   messages : warnings of the fits   seconds : of all fits"""

    proba: np.ndarray
    fold: np.ndarray
    messages: list
    seconds: float


class Scores(NamedTuple):
    """Accuracy and mean natural log loss with their standard errors; `losses` row by row."""

    accuracy: float
    accuracy_error: float
    log_loss: float
    log_loss_error: float
    losses: np.ndarray


def cross_predict(estimator, X, y, n_folds, seed, n_jobs=1, follow=None, weights=None):
    """Predict every row by a model that has not seen it.

    Parameters
    ----------
    estimator : classifier or pipeline, cloned for every fold
    X, y : DataFrame; categorical Series without missing values
    n_folds : stratified and shuffled by `seed`
    n_jobs : folds at a time
    follow : function (steps, total) -> steps that shows progress
    weights : (n_samples,) of the rows in the fits, or None

    Returns
    -------
    Predictions
    """
    from joblib import Parallel, delayed

    fold = stratified_folds(y.cat.codes.to_numpy(), n_folds, seed)
    began = time.perf_counter()
    work = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_one_fold)(estimator, X, y, fold == k, weights) for k in range(n_folds)
    )
    proba, messages = np.zeros((len(y), len(y.cat.categories))), {}
    for k, (found, said) in enumerate(follow(work, n_folds) if follow else work):
        proba[fold == k] = found
        for message in said:  # every fold says it with its own numbers: once is enough
            messages.setdefault(re.sub(r"\d+(\.\d+)?", "#", message), f"in fold {k + 1}: {message}")
    return Predictions(proba, fold, list(messages.values()), time.perf_counter() - began)


def stratified_folds(codes, n_folds, seed):
    """Fold of every row: rows shuffled inside each class, then dealt out in turn, so that every class is spread evenly."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(codes))
    dealt = shuffled[np.argsort(codes[shuffled], kind="stable")]
    fold = np.empty(len(codes), dtype=np.int64)
    fold[dealt] = np.arange(len(codes)) % n_folds
    return fold


def _one_fold(estimator, X, y, held_out, weights):
    from sklearn.base import clone

    with collected_warnings() as messages:
        model = fitted(clone(estimator), X[~held_out], y[~held_out], None if weights is None else weights[~held_out])
        proba = class_probabilities(model, X[held_out], y.cat.categories)
    return proba, messages


def fitted(model, X, y=None, weights=None):
    """Fit an estimator, or the pipeline that ends with it; weights are scaled to the number of rows."""
    given = {}
    if weights is not None:
        name = "model__sample_weight" if hasattr(model, "steps") else "sample_weight"
        given[name] = scaled(weights)
    return model.fit(X, y, **given) if y is not None else model.fit(X, **given)


def scaled(weights):
    """Weights that add up to the number of rows."""
    return weights * (len(weights) / weights.sum())


def class_probabilities(model, X, classes):
    """`predict_proba` with one column per class of the whole table, also for classes that a fold did not have."""
    found = pd.DataFrame(model.predict_proba(X), columns=list(model.classes_))
    return found.reindex(columns=list(classes), fill_value=0.0).to_numpy()


@contextmanager
def collected_warnings():
    """A list of the messages of warnings, each once; what pgmpy says about its own future is left out."""
    messages = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield messages
    messages += dict.fromkeys(one_line(each.message) for each in caught)


def scores(codes, proba):
    """`Scores` of predicted probabilities against the true classes `codes`.

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma.commands.validation import scores
    >>> found = scores(np.array([0, 1]), np.array([[0.5, 0.5], [0.25, 0.75]]))
    >>> float(found.accuracy), round(float(found.log_loss), 4)
    (1.0, 0.4904)
    """
    right = (np.argmax(proba, axis=1) == codes).astype(float)
    losses = -np.log(np.maximum(proba[np.arange(len(codes)), codes], SMALLEST))
    return Scores(right.mean(), standard_error(right), losses.mean(), standard_error(losses), losses)


def standard_error(values):
    """Of the mean of `values`; NaN for a single one."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def class_frequencies(codes, n_classes, fold):
    """The prediction of somebody who knows no column: class frequencies of the other folds, one pseudo-count each."""
    proba = np.empty((len(codes), n_classes))
    for k in np.unique(fold):
        counts = np.bincount(codes[fold != k], minlength=n_classes) + 1.0
        proba[fold == k] = counts / counts.sum()
    return proba
