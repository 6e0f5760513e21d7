"""scikit-learn's scorers of probabilities take columns as sorted labels; classes in another order would be scored wrongly.

``classes_`` keeps the order of a categorical target or of `state_names`. Metrics such as ``neg_log_loss`` see the columns of
`predict_proba` alone and would return a wrong number without a word. So a scorer of scikit-learn's own metrics that asks for
probabilities of unsorted classes gets an error with the cures instead.
"""

import sys

import numpy as np

# what may stand between a scorer and the estimator and passes the columns on as they are
_THROUGH = (
    "pgm_bma",
    "sklearn.pipeline",
    "sklearn.model_selection._search",
    "sklearn.utils",
    "sklearn.metrics._scorer",
)


def refuse_misread_order(classes):
    """An error when a scikit-learn scorer is about to read columns in the order of `classes` as if they were sorted."""
    metric = None if _is_sorted(classes) else _asking_metric(sys._getframe(2))
    if metric is not None:
        raise ValueError(
            f"scikit-learn's {metric} takes the columns of predict_proba as sorted classes, but the classes have a declared "
            f"order, {classes.tolist()[:6]}; pass the target as plain labels, np.asarray(y), without its state_names, or a scorer "
            "that reads classes_ (docs/overview.md has one)"
        )


def _is_sorted(classes):
    try:
        return bool(np.array_equal(np.unique(classes), classes))
    except TypeError:  # mixed types have no order, and scikit-learn's metrics refuse them
        return True


def _asking_metric(frame):
    """Name of the scikit-learn metric whose scorer called, or None; with `pos_label` a scorer finds the column by its name."""
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_THROUGH):
        scorer = frame.f_locals.get("self")
        if type(scorer).__name__ == "_Scorer" and frame.f_code.co_name == "_score":
            function, named = scorer._score_func, scorer._kwargs.get("pos_label") is not None
            ours = getattr(function, "__module__", "").startswith("sklearn.")
            return function.__name__ if ours and not named else None
        frame = frame.f_back
    return None
