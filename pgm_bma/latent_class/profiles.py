"""Standard errors of cluster sizes and tables from the observed information of a latent-class model.

The parameters are softmax logits, one per cluster and one per cluster and state (the direction in which all logits of a table
move together changes nothing and is fixed). The observed information is Louis' (1982): expected complete information minus what
is missing,

    sum over rows  w (E[B | row] - E[S S' | row] + E[S | row] E[S | row]')

with S and B the score and information of a row whose cluster is known; the prior adds its pseudo-counts. Under sampling weights
the covariance is the sandwich. In: rows, weights and tables. Out: standard errors and intervals of the probabilities.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import betaincinv, expit, logit, ndtri, softmax

from pgm_bma.foundation.numbers.pairs import indicators
from pgm_bma.latent_class.problem import log_joint

MAX_PARAMETERS = 4000  # the information is a square of this side: 128 MB
ZERO = 1e-9  # a probability below this is on the boundary: its logit has no information
FEW = 1.0  # expected rows of a state (or of its complement) below which an interval comes from the posterior
ROWS_AT_ONCE = 4096


class Uncertainty(NamedTuple):
    """Standard errors and limits of the cluster sizes (n_clusters,) and of the tables (n_states_total, n_clusters)."""

    size_error: np.ndarray
    size_low: np.ndarray
    size_high: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray


def uncertainty(codes, weights, fit, priors, level=0.95, squared_weights=None):
    """`Uncertainty` of a `LatentClassFit`.

    codes, weights : distinct rows     priors : kernels.Priors of the fit
    squared_weights : (n_rows,) sums of squares of sampling weights, for the sandwich
    """
    theta_c, theta, starts = fit.theta_c, fit.theta, fit.state_start
    covariance = logit_covariance(
        codes, weights, theta_c, theta, starts, priors.cluster, priors.dependent, squared_weights
    )
    k, n_states = len(theta_c), len(theta)
    size_error = np.sqrt(_variances(theta_c, covariance[:k, :k]))
    error = np.empty_like(theta)
    for c in range(k):
        for first, last in pairwise(starts):
            block = slice(k + c * n_states + first, k + c * n_states + last)
            error[first:last, c] = np.sqrt(_variances(theta[first:last, c], covariance[block, block]))
    columns = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    totals = np.add.reduceat(fit.counts, starts[:-1], axis=0)[columns]
    error = _averaged(fit, priors, columns, totals, error)
    size_low, size_high = intervals(theta_c, size_error, fit.class_counts, weights.sum(), level)
    low, high = intervals(theta, error, fit.counts, totals, level)
    return Uncertainty(size_error, size_low, size_high, error, low, high)


def _averaged(fit, priors, columns, totals, error):
    """EMA: the table of a column is a mixture, with the arc and without it; total variance over the two."""
    arc = fit.arc_posterior[columns][:, None]
    if np.isnan(arc).any() or not (np.abs(fit.theta - _dependent_mean(fit, priors, columns, totals)) > 1e-6).any():
        return error  # EM: the arc is always there
    alone = priors.independent_mean[:, None]
    mass = np.add.reduceat(fit.counts.sum(axis=1), fit.state_start[:-1])[columns][:, None]
    gap = _dependent_mean(fit, priors, columns, totals) - alone
    return np.sqrt(arc * error**2 + (1 - arc) * alone * (1 - alone) / (mass + 1) + arc * (1 - arc) * gap**2)


def _dependent_mean(fit, priors, columns, totals):
    alpha = priors.dependent[columns][:, None]
    n_states = np.diff(fit.state_start)[columns][:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(totals + alpha * n_states > 0, (fit.counts + alpha) / (totals + alpha * n_states), fit.theta)


def intervals(p, error, counts, total, level=0.95):
    """Limits of probabilities: normal on the logit scale; from the Beta posterior of the counts at the boundary."""
    z, tail = ndtri(0.5 + level / 2), (1 - level) / 2
    spread = np.maximum(p * (1 - p), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = expit(logit(p) - z * error / spread), expit(logit(p) + z * error / spread)
    at_boundary = (np.minimum(counts, total - counts) < FEW) | ~np.isfinite(error)
    a, b = counts + 0.5, np.maximum(total - counts, 0.0) + 0.5  # Jeffreys
    low = np.where(at_boundary, np.where(counts < FEW, 0.0, betaincinv(a, b, tail)), low)
    high = np.where(at_boundary, np.where(total - counts < FEW, 1.0, betaincinv(a, b, 1 - tail)), high)
    return np.minimum(low, p), np.maximum(high, p)


def logit_covariance(codes, weights, theta_c, theta, state_start, alpha_c=0.0, alpha=0.0, squared_weights=None):
    """Covariance of the logits: of the clusters, then cluster by cluster of all states. NaN where there is none."""
    k, n_states = len(theta_c), len(theta)
    size = k + k * n_states
    if size > MAX_PARAMETERS:
        raise ValueError(
            f"standard errors of {size} probabilities need a matrix of that side, the limit is {MAX_PARAMETERS}; fit fewer "
            "columns or clusters, or take a bootstrap"
        )
    information, meat = np.zeros((size, size)), np.zeros((size, size))
    log_p = log_joint(np.asfortranarray(codes), theta_c, theta, state_start)
    r = softmax(log_p, axis=1)
    columns = np.repeat(np.arange(len(state_start) - 1), np.diff(state_start))
    alpha = np.broadcast_to(np.asarray(alpha, dtype=float), len(state_start) - 1)
    tables = [slice(k + c * n_states, k + (c + 1) * n_states) for c in range(k)]
    n_seen = np.zeros((k, len(state_start) - 1))  # rows of a cluster in which a column is seen
    for first in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        cells, w, part = codes[rows], weights[rows], r[rows]
        seen = cells >= 0
        one_hot = indicators(cells, np.diff(state_start))
        scores = np.empty((len(cells), size))  # E[S | row]
        scores[:, :k] = part - theta_c
        for c, block in enumerate(tables):
            deviations = one_hot - seen[:, columns] * theta[:, c]
            responsible = part[:, c] * w
            information[block, block] -= (deviations * responsible[:, None]).T @ deviations
            information[:k, block] -= np.outer(np.eye(k)[c] - theta_c, responsible @ deviations)
            n_seen[c] += responsible @ seen
            scores[:, block] = deviations * part[:, [c]]
        information += (scores * w[:, None]).T @ scores
        if squared_weights is not None:
            meat += (scores * squared_weights[rows][:, None]).T @ scores
    mass = r.T @ weights
    information[:k, :k] -= _spread(theta_c, mass)  # E[S S' | row] of the clusters, summed
    for c, block in enumerate(tables):
        information[block, :k] = information[:k, block].T
        for i, (a, b) in enumerate(pairwise(state_start)):
            here = slice(block.start + a, block.start + b)
            information[here, here] += (n_seen[c, i] + alpha[i] * (b - a)) * _multinomial(theta[a:b, c])
    information[:k, :k] += (weights.sum() + alpha_c * k) * _multinomial(theta_c)
    bounds = [(0, k), *((t.start + a, t.start + b) for t in tables for a, b in pairwise(state_start))]
    return _invert(information, bounds, np.concatenate([theta_c, theta.T.ravel()]), meat, squared_weights is not None)


def _spread(theta_c, mass):
    """sum over clusters of mass x (e_c - theta_c)(e_c - theta_c)'."""
    shift = np.eye(len(theta_c)) - theta_c
    return (shift * mass[:, None]).T @ shift


def _multinomial(p):
    return np.diag(p) - np.outer(p, p)


def _invert(information, bounds, p, meat, is_sandwich):
    """Inverse on what can be told: one free direction per table is fixed, logits of probabilities near 0 are left out."""
    scale = max(np.abs(np.diag(information)).max(), 1.0)
    for a, b in bounds:
        information[a:b, a:b] += scale / (b - a)  # along the vector of ones, which changes no probability
    free = p > ZERO
    covariance = np.full(information.shape, np.nan)
    try:
        inverse = cho_solve(cho_factor(information[np.ix_(free, free)]), np.eye(int(free.sum())))
    except LinAlgError:
        return covariance  # not a maximum, or not identified
    if is_sandwich:
        inverse = inverse @ meat[np.ix_(free, free)] @ inverse
    covariance[np.ix_(free, free)] = inverse
    return covariance


def _variances(p, covariance):
    """Variances of probabilities from the covariance of their logits (delta method)."""
    free = p > ZERO
    slope = _multinomial(p)[:, free]
    found = np.einsum("ij,jk,ik->i", slope, covariance[np.ix_(free, free)], slope)
    return np.maximum(found, 0.0)
