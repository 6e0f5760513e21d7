"""Judging probabilistic classifiers as the Kikuchi-Bayes paper does, and telling approximation from generalisation error.

A model that is put together from marginals can be wrong in two ways: the marginals of new data differ from those it learned
(generalisation), or the marginals are right and the way they are combined is not (approximation). The second shows on the
training set itself, where the marginals are exactly those of the model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import Fitted, Integer, Number, as_numbers, check, reading
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.columns import is_missing, plain

__all__ = ["capped_log_loss", "error_decomposition", "marginal_losses", "paper_error"]

LOG_LOSS_FLOOR = 1e-5


def paper_error(zero_one_error: float, n_classes: int) -> float:
    """Error as printed in the tables of the Kikuchi-Bayes paper: 2 x error / number of classes.

    Parameters
    ----------
    zero_one_error : float
        Share of rows that are predicted wrongly.
    n_classes : int
        Number of classes, at least 2.

    Returns
    -------
    float
        The error in the unit of the paper.

    Examples
    --------
    >>> from pgm_bma.evaluation import paper_error
    >>> round(paper_error(0.143, 4), 4)
    0.0715
    """
    check("zero_one_error", zero_one_error, Number(0, 1))
    check("n_classes", n_classes, Integer(2))
    return 2.0 * zero_one_error / n_classes


def capped_log_loss(
    y: Any, proba: Any, classes: Sequence, floor: float = LOG_LOSS_FLOOR, sample_weight: Any = None
) -> float:
    """Mean natural log loss with every probability counted as at least `floor`.

    Parameters
    ----------
    y : (n_samples,) array
        True classes. One that `classes` lacks (a class that no training row had) counts with the floor; a warning says
        how many there are.
    proba : (n_samples, n_classes) array
        Probabilities as from `predict_proba`, columns in the order of `classes`; every row sums to 1.
    classes : sequence
        Class of every column.
    floor : float, default=1e-5
        Smallest probability that is believed, above 0 and at most 1.
    sample_weight : (n_samples,) array, optional
        Weight of every row.

    Returns
    -------
    float
        Mean loss in nats.

    Examples
    --------
    >>> from pgm_bma.evaluation import capped_log_loss
    >>> round(capped_log_loss(["a", "b"], [[1.0, 0.0], [1.0, 0.0]], ["a", "b"]), 4)
    5.7565
    """
    check("floor", floor, Number(0, 1, open_low=True))
    with reading("classes", classes, "a list of classes, one for each column of proba"):
        column = {label: k for k, label in enumerate(classes)}
        classes = list(classes)
    with reading("y", y, "one class for each row"):
        labels = list(table.as_column(y))
        gone = [row for row, label in enumerate(labels) if is_missing(plain(label))]
        unknown = [label for label in labels if label not in column]
    proba = _probabilities(proba, len(labels), len(classes))
    if gone:
        raise ValueError(f"y holds {len(gone)} missing labels, the first in row {gone[0]}; drop those rows")
    if unknown:
        warn(
            f"{len(unknown)} of {len(labels)} rows of y have a class that is not among classes={classes!r}, the first "
            f"{unknown[0]!r}: each counts with the probability floor={floor}"
        )
    own = np.array([proba[row, column[label]] if label in column else 0.0 for row, label in enumerate(labels)])
    weights = table.check_weights(sample_weight, len(own))
    return float(np.average(-np.log(np.maximum(own, floor)), weights=weights))


def _probabilities(proba, n_rows, n_classes):
    """Checked probabilities: (n_rows, n_classes) floats whose rows are distributions."""
    proba = as_numbers("proba", proba, "an array of numbers, (n_samples, n_classes)")
    if proba.shape != (n_rows, n_classes) or n_rows == 0:
        raise ValueError(f"proba has shape {proba.shape}, but there are {n_rows} rows in y and {n_classes} classes")
    # float32 probabilities miss 1 by about 1e-6; percentages, scores and logs miss it by far more
    proper = ((proba >= 0) & (proba <= 1 + 1e-4)).all(axis=1) & (np.abs(proba.sum(axis=1) - 1) <= 1e-4)
    if not proper.all():
        row = int(np.argmin(proper))
        raise ValueError(
            f"row {row} of proba is not a probability distribution: {proba[row].tolist()}; pass predict_proba, not logs, "
            "scores or percentages"
        )
    return proba


def error_decomposition(classifier: Any, X_train: Any, y_train: Any, X_test: Any, y_test: Any) -> pd.DataFrame:
    """Training loss, test loss and their difference of a fitted classifier, by error and by capped log loss.

    Parameters
    ----------
    classifier : estimator
        Fitted on ``X_train, y_train``.
    X_train, X_test : table
        Rows of the training set and of the test set.
    y_train, y_test : (n_samples,) array
        Their classes.

    Returns
    -------
    DataFrame
        Rows "approximation" (loss on the training set, against the model's own marginals), "generalisation" (what the
        test set adds) and "total"; columns "error" and "log_loss".

    Examples
    --------
    >>> import pgm_bma
    >>> from pgm_bma.evaluation import error_decomposition
    >>> frame, target = pgm_bma.load_dataset("monk1")
    >>> X, y = frame.drop(columns=target), frame[target]
    >>> model = pgm_bma.KikuchiBayesClassifier(preset="K2", random_state=0).fit(X[:124], y[:124])
    >>> list(error_decomposition(model, X[:124], y[:124], X[124:], y[124:]).index)
    ['approximation', 'generalisation', 'total']
    """
    check("classifier", classifier, Fitted("a fitted classifier", "predict_proba", "classes_"))
    losses = []
    for X, y in ((X_train, y_train), (X_test, y_test)):
        proba = classifier.predict_proba(X)
        loss = capped_log_loss(y, proba, classifier.classes_)  # which looks at y first
        wrong = classifier.classes_[proba.argmax(axis=1)] != np.asarray(table.as_column(y))
        losses.append((float(np.mean(wrong)), loss))
    train, test = np.array(losses)
    return pd.DataFrame(
        [train, test - train, test],
        index=["approximation", "generalisation", "total"],
        columns=["error", "log_loss"],
    )


def marginal_losses(classifier: Any, X: Any, y: Any) -> pd.Series:
    """Measure how far a fitted Kikuchi-Bayes model leaves each marginal it was made of.

    For every initial region R with the class, D(P(C | x_R) || mean of the model's P(C | x) over the rows with that x_R),
    weighted by the rows. On the training set and without loops it stays near 0; large values show what the loops
    destroyed. Rows with a missing value in the region are left out.

    Parameters
    ----------
    classifier : KikuchiBayesClassifier
        Fitted.
    X : table
        Rows, usually those of the training set.
    y : (n_samples,) array
        Their classes.

    Returns
    -------
    Series
        Region -> nats.

    Examples
    --------
    >>> import pandas as pd, pgm_bma
    >>> from pgm_bma.evaluation import marginal_losses
    >>> X, y = pd.DataFrame({"a": list("0011")}), pd.Series([0, 1, 1, 0], name="c")
    >>> model = pgm_bma.KikuchiBayesClassifier(regions=[["a", "c"]], weights="counting").fit(X, y)
    >>> float(marginal_losses(model, X, y).round(6).iloc[0])
    0.0
    """
    check("classifier", classifier, Fitted("a fitted KikuchiBayesClassifier", "schema_", "initial_regions_"))
    proba = classifier.predict_proba(X)
    by_position = not table.is_named(X)
    codes = pd.DataFrame(table.encode_like(X, classifier.schema_, "missing", by_position=by_position))
    codes = codes.where(codes >= 0)
    target, _ = table.encode_target(y, classifier.target_name_, list(classifier.target_states_))
    if len(target) != len(proba):
        raise ValueError(f"X and y have inconsistent lengths: {len(proba)} rows and {len(target)} targets")
    own = np.eye(len(classifier.classes_))[target]
    regions = [region for region in classifier.initial_regions_ if classifier.target_name_ in region]
    losses = []
    for region in regions:
        columns = [k for k, name in enumerate(classifier.schema_.names) if name in region]
        group: np.ndarray = np.zeros(len(own), dtype=np.int64)
        if columns:
            group = codes.groupby(columns, dropna=True).ngroup().fillna(-1).to_numpy(dtype=np.int64)
        seen = group >= 0
        size = np.bincount(group[seen]).astype(float)
        empirical, model = (
            np.stack([np.bincount(group[seen], values[seen, c]) for c in range(own.shape[1])], axis=1)
            for values in (own, proba)
        )
        filled = empirical > 0
        ratio = empirical[filled] / np.maximum(model[filled], 1e-300)
        losses.append(float(empirical[filled] @ np.log(ratio)) / size.sum() if len(size) else np.nan)
    index = pd.Index(regions, dtype=object, tupleize_cols=False, name="region")
    return pd.Series(losses, index=index, name="marginal_loss")
