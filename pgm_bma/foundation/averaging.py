"""Averaging over candidate parent sets: mix posterior means with the softmax of log family scores.

Supervised averaged naive Bayes (Dash and Cooper 2002), the averaging step of EMA (EMA eq. 14) and fixed-order averaging
(ORD eq. 9) are this one function; only the counts and the candidate sets differ.
"""

import numpy as np
from scipy.special import expit, softmax


def average_families(log_scores, means):
    """Mix posterior means of one variable over its candidate parent sets (ORD eq. 9; EMA eq. 14 is the case of two sets).

    Parameters
    ----------
    log_scores : (n_sets,) log of (prior of the set x marginal likelihood of the family)
    means : (n_sets, ...) posterior means under each set, broadcast to one shape

    Returns
    -------
    mixed : (...) and weights : (n_sets,)

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
    log_scores = np.asarray(log_scores, dtype=float)
    if not np.isfinite(log_scores.max(initial=-np.inf)):
        raise ValueError(f"log_scores={log_scores} must hold a finite number, and neither NaN nor inf")
    weights = softmax(log_scores)
    return np.tensordot(weights, np.asarray(means, dtype=float), axes=1), weights


def arc_posteriors(log_with, log_without, arc_prior):
    """P(arc | counts) of many variables at once: the softmax over two parent sets, as one logistic function.

    log_with, log_without, arc_prior : (...) broadcastable; returns (...). Priors of exactly 0 and 1 are kept.
    """
    with np.errstate(divide="ignore"):
        log_prior_odds = np.log(arc_prior) - np.log1p(-np.asarray(arc_prior, dtype=float))
    return expit(log_with - log_without + log_prior_odds)
