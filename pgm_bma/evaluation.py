"""Judging probabilistic classifiers as the Kikuchi-Bayes paper does, and telling approximation from generalisation error.

A model that is put together from marginals can be wrong in two ways: the marginals of new data differ from those it learned
(generalisation), or the marginals are right and the way they are combined is not (approximation). The second shows on the
training set itself, where the marginals are exactly those of the model.
"""

import numpy as np
import pandas as pd

from pgm_bma.foundation import table

LOG_LOSS_FLOOR = 1e-5


def paper_error(zero_one_error, n_classes):
    """Error as printed in the tables of the Kikuchi-Bayes paper: 2 x error / number of classes.

    Examples
    --------
    >>> from pgm_bma.evaluation import paper_error
    >>> round(paper_error(0.143, 4), 4)
    0.0715
    """
    return 2.0 * zero_one_error / n_classes


def capped_log_loss(y, proba, classes, floor=LOG_LOSS_FLOOR, sample_weight=None):
    """Mean natural log loss with every probability counted as at least `floor`; a class that `classes` lacks has the floor.

    y : (n_samples,) classes     proba : (n_samples, n_classes), columns in the order of `classes`

    Examples
    --------
    >>> from pgm_bma.evaluation import capped_log_loss
    >>> round(capped_log_loss(["a", "b"], [[1.0, 0.0], [1.0, 0.0]], ["a", "b"]), 4)
    5.7565
    """
    proba = np.asarray(proba, dtype=float)
    if proba.shape != (len(y), len(classes)):
        raise ValueError(f"proba has shape {proba.shape}, but there are {len(y)} rows in y and {len(classes)} classes")
    column = {label: k for k, label in enumerate(classes)}
    own = np.array([proba[row, column[label]] if label in column else 0.0 for row, label in enumerate(y)])
    return float(np.average(-np.log(np.maximum(own, floor)), weights=sample_weight))


def error_decomposition(classifier, X_train, y_train, X_test, y_test):
    """Training loss, test loss and their difference of a fitted classifier, by error and by capped log loss.

    Parameters
    ----------
    classifier : fitted on ``X_train, y_train``

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
    losses = []
    for X, y in ((X_train, y_train), (X_test, y_test)):
        proba = classifier.predict_proba(X)
        wrong = classifier.classes_[proba.argmax(axis=1)] != np.asarray(y)
        losses.append((float(np.mean(wrong)), capped_log_loss(y, proba, classifier.classes_)))
    train, test = np.array(losses)
    return pd.DataFrame(
        [train, test - train, test],
        index=["approximation", "generalisation", "total"],
        columns=["error", "log_loss"],
    )


def marginal_losses(classifier, X, y):
    """How far a fitted Kikuchi-Bayes model leaves each marginal it was made of: a Series region -> nats.

    For every initial region R with the class, D(P(C | x_R) || mean of the model's P(C | x) over the rows with that x_R),
    weighted by the rows. On the training set and without loops it stays near 0; large values show what the loops
    destroyed. Rows with a missing value in the region are left out.

    Examples
    --------
    >>> import pandas as pd, pgm_bma
    >>> from pgm_bma.evaluation import marginal_losses
    >>> X, y = pd.DataFrame({"a": list("0011")}), pd.Series([0, 1, 1, 0], name="c")
    >>> model = pgm_bma.KikuchiBayesClassifier(regions=[["a", "c"]], weights="counting").fit(X, y)
    >>> float(marginal_losses(model, X, y).round(6).iloc[0])
    0.0
    """
    codes = pd.DataFrame(classifier._encode(X))
    codes = codes.where(codes >= 0)
    proba = classifier.predict_proba(X)
    target, _ = table.encode_target(y, classifier.target_name_, list(classifier.target_states_))
    if len(target) != len(proba):
        raise ValueError(f"X and y have inconsistent lengths: {len(proba)} rows and {len(target)} targets")
    own = np.eye(len(classifier.classes_))[target]
    regions = [region for region in classifier.initial_regions_ if classifier.target_name_ in region]
    losses = []
    for region in regions:
        columns = [k for k, name in enumerate(classifier.schema_.names) if name in region]
        group = np.zeros(len(own), dtype=np.int64)
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
