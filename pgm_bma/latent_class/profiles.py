"""Standard errors of cluster sizes and tables from the observed information of a latent-class model.

The parameters are softmax logits, one per cluster and one per cluster and state (the direction in which all logits of a table
move together changes nothing and is fixed). The observed information is Louis' (1982): expected complete information minus what
is missing,

    sum over rows  w (E[B | row] - E[S S' | row] + E[S | row] E[S | row]')

with S and B the score and information of a row whose cluster is known; the prior adds its pseudo-counts. A numeric column has two
parameters in every cluster, its mean and the logarithm of its standard deviation. Under sampling weights the covariance is the
sandwich. In: rows, weights and tables. Out: standard errors and intervals of probabilities, means and standard deviations.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import betaincinv, expit, logit, ndtri, softmax

from pgm_bma.foundation.numbers.pairs import indicators
from pgm_bma.latent_class.problem import log_joint, means_and_variances

MAX_PARAMETERS = 4000  # the information is a square of this side: 128 MB
ZERO = 1e-9  # a probability below this is on the boundary: its logit has no information
FEW = 1.0  # expected rows of a state (or of its complement) below which an interval comes from the posterior
ROWS_AT_ONCE = 4096


class Uncertainty(NamedTuple):
    """Standard errors and limits of the cluster sizes (n_clusters,) and of the tables: a line for every state, and two for every
    numeric column, its mean and standard deviation, (n_lines, n_clusters), standardised."""

    size_error: np.ndarray
    size_low: np.ndarray
    size_high: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray


def uncertainty(block, fit, priors, level=0.95, squared_weights=None, is_averaged=False):
    """`Uncertainty` of a `LatentClassFit`.

    block : distinct rows, their weights and numbers     priors : kernels.LatentClassPriors of the fit
    is_averaged : EMA, whose tables average over columns with and without their arcs
    squared_weights : (n_rows,) sums of squares of sampling weights, for the sandwich
    """
    weights = np.ones(len(block.codes)) if block.weights is None else block.weights
    theta_c, theta, starts = fit.theta_c, fit.theta[: fit.state_start[-1]], fit.state_start
    covariance = parameter_covariance(block._replace(weights=weights), fit, priors, squared_weights)
    k, n_states, n_lines = len(theta_c), len(theta), len(theta) + 2 * len(fit.log_scale)
    size_error = np.sqrt(_variances(theta_c, covariance[:k, :k]))
    error = np.empty((n_lines, k))
    for c in range(k):
        for first, last in pairwise(starts):
            part = slice(k + c * n_lines + first, k + c * n_lines + last)
            error[first:last, c] = np.sqrt(_variances(theta[first:last, c], covariance[part, part]))
        part = slice(k + c * n_lines + n_states, k + (c + 1) * n_lines)
        error[n_states:, c] = np.sqrt(np.maximum(np.diag(covariance)[part], 0.0))
    columns = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    counts = fit.counts[:n_states]
    totals = np.add.reduceat(counts, starts[:-1], axis=0)[columns] if n_states else counts
    is_averaged = is_averaged and not np.isnan(fit.arc_posterior).any()
    if is_averaged and n_states:
        error[:n_states] = _averaged(fit, priors, columns, totals, error[:n_states])
    size_low, size_high = intervals(theta_c, size_error, fit.class_counts, weights.sum(), level)
    low, high = intervals(theta, error[:n_states], counts, totals, level)
    if n_lines > n_states:
        mean, variance = means_and_variances(fit.theta[n_states:])
        if is_averaged:
            error[n_states:] = _averaged_numbers(fit, priors, error[n_states:])
        z, of_mean, of_log = ndtri(0.5 + level / 2), error[n_states::2], error[n_states + 1 :: 2]
        step = np.exp(z * of_log)
        limits = np.stack([mean - z * of_mean, mean + z * of_mean]), np.sqrt(variance) * np.stack([1 / step, step])
        low, high = (
            np.concatenate([part, _alternate(limits[0][i], limits[1][i])]) for i, part in enumerate((low, high))
        )
        error[n_states + 1 :: 2] = np.sqrt(variance) * of_log
    return Uncertainty(size_error, size_low, size_high, error, low, high)


def _alternate(first, second):
    """Lines of two arrays in turn."""
    return np.stack([first, second], axis=1).reshape(-1, first.shape[1])


def _averaged_numbers(fit, priors, error):
    """EMA: means and log standard deviations of a mixture, with the arc and without it; total variance over the two."""
    arc = np.repeat(fit.arc_posterior[len(fit.state_start) - 1 :], 2)[:, None]
    n = fit.counts[fit.state_start[-1] :: 3].sum(axis=1)[:, None]
    mean, variance = means_and_variances(fit.theta[fit.state_start[-1] :])
    whole, spread = means_and_variances(priors.independent_mean[fit.state_start[-1] :, None])
    with np.errstate(divide="ignore", invalid="ignore"):
        # the averaged mean is arc x mean with the arc + (1 - arc) x mean without it
        gaps = _alternate((mean - whole) / arc[::2], 0.5 * np.log(variance / spread) / arc[1::2])
        gaps = np.where(arc > 0, gaps, 0.0)
        alone = _alternate(np.broadcast_to(spread / n, mean.shape), np.broadcast_to(0.5 / n, mean.shape))
    return np.sqrt(arc * error**2 + (1 - arc) * alone + arc * (1 - arc) * gaps**2)


def _averaged(fit, priors, columns, totals, error):
    """EMA: the table of a column is a mixture, with the arc and without it; total variance over the two."""
    arc, n_states = fit.arc_posterior[columns][:, None], len(columns)
    alone = priors.independent_mean[:n_states, None]
    mass = np.add.reduceat(fit.counts[:n_states].sum(axis=1), fit.state_start[:-1])[columns][:, None]
    gap = _dependent_mean(fit, priors, columns, totals) - alone
    return np.sqrt(arc * error**2 + (1 - arc) * alone * (1 - alone) / (mass + 1) + arc * (1 - arc) * gap**2)


def _dependent_mean(fit, priors, columns, totals):
    alpha, counts = priors.dependent[columns][:, None], fit.counts[: len(columns)]
    total = totals + alpha * np.diff(fit.state_start)[columns][:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, (counts + alpha) / total, fit.theta[: len(columns)])


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


def parameter_covariance(block, fit, priors, squared_weights=None):
    """Covariance of the logits of the clusters, then cluster by cluster of the logits of all states, and of the mean and log
    standard deviation of every numeric column. NaN where there is none."""
    theta_c, theta, state_start = fit.theta_c, fit.theta[: fit.state_start[-1]], fit.state_start
    k, n_states, n_numbers = len(theta_c), len(theta), len(fit.log_scale)
    n_lines = n_states + 2 * n_numbers
    size = k + k * n_lines
    if size > MAX_PARAMETERS:
        raise ValueError(
            f"standard errors of {size} probabilities need a matrix of that side, the limit is {MAX_PARAMETERS}; fit fewer "
            "columns or clusters, or take a bootstrap"
        )
    information, meat = np.zeros((size, size)), np.zeros((size, size))
    codes, weights = block.codes, block.weights
    log_p = log_joint(np.asfortranarray(codes), theta_c, fit.theta, state_start, block.numbers, fit.log_scale)
    r = softmax(log_p, axis=1)
    mean, variance = means_and_variances(fit.theta[n_states:])
    tables = [slice(k + c * n_lines, k + (c + 1) * n_lines) for c in range(k)]
    n_seen = np.zeros((k, len(state_start) - 1))  # rows of a cluster in which a column is seen
    for first in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        w, part, numbers = weights[rows], r[rows], None if block.numbers is None else block.numbers[rows]
        scores = np.empty((len(w), size))  # E[S | row]
        scores[:, :k] = part - theta_c
        for c, here in enumerate(tables):
            deviations, responsible = cluster_scores(codes[rows], numbers, fit, c), part[:, c] * w
            if n_numbers:
                information[here, here][n_states:, n_states:] += _curvature(
                    numbers, mean[:, c], variance[:, c], responsible
                )
            information[here, here] -= (deviations * responsible[:, None]).T @ deviations
            information[:k, here] -= np.outer(np.eye(k)[c] - theta_c, responsible @ deviations)
            n_seen[c] += responsible @ (codes[rows] >= 0)
            scores[:, here] = deviations * part[:, [c]]
        information += (scores * w[:, None]).T @ scores
        if squared_weights is not None:
            meat += (scores * squared_weights[rows][:, None]).T @ scores
    mass = r.T @ weights
    information[:k, :k] -= _spread(theta_c, mass)  # E[S S' | row] of the clusters, summed
    for c, here in enumerate(tables):
        information[here, :k] = information[:k, here].T
        for i, (a, b) in enumerate(pairwise(state_start)):
            at = slice(here.start + a, here.start + b)
            information[at, at] += (n_seen[c, i] + priors.dependent[i] * (b - a)) * _multinomial(theta[a:b, c])
        for i in range(n_numbers):
            at = slice(here.start + n_states + 2 * i, here.start + n_states + 2 * i + 2)
            information[at, at] += _prior_curvature(priors.numbers, mean[i, c], variance[i, c])
    information[:k, :k] += (weights.sum() + priors.cluster * k) * _multinomial(theta_c)
    bounds = [(0, k), *((t.start + a, t.start + b) for t in tables for a, b in pairwise(state_start))]
    free = np.concatenate([theta, np.ones((2 * n_numbers, k))]).T.ravel()
    return _invert(information, bounds, np.concatenate([theta_c, free]), meat, squared_weights is not None)


def cluster_scores(codes, numbers, fit, c):
    """(n_rows, n_lines) what every row of cluster c adds to the slope of the log-likelihood, parameter by parameter."""
    starts = fit.state_start
    columns = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    of_states = indicators(codes, np.diff(starts)) - (codes >= 0)[:, columns] * fit.theta[: starts[-1], c]
    if numbers is None:
        return of_states
    mean, variance = (part[:, c] for part in means_and_variances(fit.theta[starts[-1] :]))
    z = np.nan_to_num((numbers - mean) / np.sqrt(variance))
    of_numbers = np.stack([z / np.sqrt(variance), ~np.isnan(numbers) * (z**2 - 1)], axis=2).reshape(len(z), -1)
    return np.concatenate([of_states, of_numbers], axis=1)


def _curvature(numbers, mean, variance, responsible):
    """Negative second derivatives in means and log standard deviations, summed over rows: (2 n_numbers, 2 n_numbers)."""
    n = numbers.shape[1]
    z, found = np.nan_to_num((numbers - mean) / np.sqrt(variance)), np.zeros((2 * n, 2 * n))
    at, log_at = np.arange(0, 2 * n, 2), np.arange(1, 2 * n, 2)
    found[at, at] = responsible @ ~np.isnan(numbers) / variance
    found[log_at, log_at] = 2 * responsible @ z**2
    found[at, log_at] = found[log_at, at] = 2 * responsible @ z / np.sqrt(variance)
    return found


def _prior_curvature(prior, mean, variance):
    """Negative second derivatives of the log prior of a mean and a log standard deviation, (2, 2)."""
    away, pull = mean - prior.mean, prior.strength
    log_log = 4 * (prior.scale + 0.5 * pull * away**2)
    return np.array([[pull, -2 * pull * away], [-2 * pull * away, log_log]]) / variance


def _spread(theta_c, mass):
    """sum over clusters of mass x (e_c - theta_c)(e_c - theta_c)'."""
    shift = np.eye(len(theta_c)) - theta_c
    return (shift * mass[:, None]).T @ shift


def _multinomial(p):
    return np.diag(p) - np.outer(p, p)


def _invert(information, bounds, p, meat, is_sandwich):
    """Invert on what the data determine: one free direction per table is fixed, logits of probabilities near 0 are left out."""
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
