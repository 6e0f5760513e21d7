"""Averaging over candidate parent sets: mix posterior means with the softmax of log family scores.

Supervised averaged naive Bayes (Dash and Cooper 2002), the averaging step of EMA (EMA eq. 14) and fixed-order averaging
(ORD eq. 9) are this one function; only the counts and the candidate sets differ. Its halves serve where one of them is wanted
alone: `set_weights` once for every order, `mix_families` for every block of rows; `average_many_families` is both for many
variables side by side. EMA's compiled loop (`latent_class._kernels.average`) is the case of two sets, equal to this by test.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp, rel_entr, softmax

from pgm_bma.foundation.faces.validation import as_numbers
from pgm_bma.foundation.numbers.counts import state_offsets


def average_families(log_scores: Any, means: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mix posterior means of one variable over its candidate parent sets (ORD eq. 9; EMA eq. 14 is the case of two sets).

    Parameters
    ----------
    log_scores : array-like of shape (n_sets,)
        Log of (prior of the set x marginal likelihood of the family).
    means : array-like of shape (n_sets, ...)
        Posterior means under each set, broadcast to one shape.

    Returns
    -------
    mixed : ndarray of shape (...)
        The means, mixed.
    weights : ndarray of shape (n_sets,)
        Posterior probabilities of the sets.

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma import average_families
    >>> mixed, weights = average_families(np.log([1.0, 3.0]), np.array([[0.5, 0.5], [0.9, 0.1]]))
    >>> mixed
    array([0.8, 0.2])
    >>> weights
    array([0.25, 0.75])
    """
    log_scores, means = as_numbers("log_scores", log_scores), as_numbers("means", means)
    if log_scores.ndim != 1 or means.ndim < 1 or len(means) != len(log_scores) or not np.isfinite(means).all():
        raise ValueError(
            f"log_scores of shape {log_scores.shape} and means of shape {means.shape} must be a score for each set, and a table of "
            "finite numbers for each set"
        )
    if not np.isfinite(log_scores.max(initial=-np.inf)):
        raise ValueError(f"log_scores={log_scores} must hold a finite number, and neither NaN nor inf")
    weights = set_weights(log_scores)
    return mix_families(weights, means), weights


def set_weights(log_scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """Posterior probabilities of the candidate sets that stand along `axis`. A set of prior 0 has the score -inf."""
    return softmax(log_scores, axis=axis)


def mix_families(weights: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The mixture (..., cells) of posterior means (n_sets, cells) under weights (..., n_sets), such as one line per order."""
    return np.tensordot(weights, means, axes=1)


def average_many_families(
    log_scores: np.ndarray, means: Sequence[np.ndarray], variables: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`average_families` of many variables at once, their cells side by side.

    log_scores : (n_sets, n_variables)     means : per set (..., n_cells), broadcast     variables : (n_cells,) owner of a cell
    returns mixed (..., n_cells) and weights (n_sets, n_variables). A set of prior 0 has the score -inf.
    """
    weights = set_weights(log_scores, axis=0)
    return sum(weight[variables] * mean for weight, mean in zip(weights, means)), weights


def information(joint):
    """Mutual information in nats of a joint table of probabilities (n_classes, n_states)."""
    independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    return float(rel_entr(joint, independent).sum())


def class_information(joint, class_share, cardinalities):
    """Information of every column about the class, nats: (n_columns,).

    joint : (n_classes, sum of cardinalities), P(class, state) of all columns side by side
    class_share : P(class), (n_classes, 1) or (n_classes, sum of cardinalities) where it differs by column
    """
    return np.add.reduceat(rel_entr(joint, class_share * joint.sum(0)).sum(0), state_offsets(cardinalities)[:-1])


ROWS_AT_ONCE = 1 << 16


def log_probabilities(log_joint):
    """log p(class | row) from log p(class, row): (n_samples, n_classes)."""
    return log_joint - logsumexp(log_joint, axis=1, keepdims=True)


def most_probable(log_joint):
    """Position of the largest probability of every row. Taken from the probabilities, so that those which round to a tie
    go to the lowest index, as the argmax of `predict_proba` does. Block by block, to spare memory on tall tables."""
    chosen = np.empty(len(log_joint), dtype=np.int64)
    for start in range(0, len(log_joint), ROWS_AT_ONCE):
        block = slice(start, start + ROWS_AT_ONCE)
        chosen[block] = np.argmax(np.exp(log_probabilities(log_joint[block])), axis=1)
    return chosen
