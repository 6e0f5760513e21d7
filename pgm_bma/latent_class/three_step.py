"""Covariates of membership and outcomes of clusters, with the error of classification corrected.

Step one is a fitted clusterer, step two gives every row its most probable cluster. Step three relates the given cluster s to
other variables, knowing how often a row of cluster c is given s (`Assigned.error`):

    ml    the likelihood of s:  sum over c of p(c | covariates) error[c, s], or  sizes[c] p(outcome | c) error[c, s]
          (Vermunt 2010; Bakk, Tekle, Vermunt 2013)
    bch   rows count for cluster c with the weights of the inverted error matrix, some of them negative
          (Bolck, Croon, Hagenaars 2004)
    none  as if s were known

All of them solve estimating equations, sum over rows of w x scores(parameters) = 0, in which a row belongs to cluster c with a
share (`_shares`) that is the corrected weight (bch) or the posterior given s and the other variables (ml). The covariance is the
sandwich of these equations, and carries the uncertainty of step one by way of the error matrix and the sizes (Bakk, Oberski,
Vermunt 2014). In: responsibilities and arrays. Out: a `Solution`.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc, log_softmax, logsumexp, softmax

CORRECTIONS = ("ml", "bch", "none")
MAX_UPDATES = 5000
TOLERANCE = 1e-9  # change of a parameter, in units of its own scale
STEP = 1e-6  # of central differences
TINY = 1e-12  # probabilities below this stay out of logarithms


class Assigned(NamedTuple):
    """Step two. labels : (n_rows,)     error : (n_clusters, n_clusters) P(given s | cluster c)     sizes : (n_clusters,)"""

    labels: np.ndarray
    error: np.ndarray
    sizes: np.ndarray


class Solution(NamedTuple):
    """Parameters of step three and their covariance; `converged` tells whether the equations were solved."""

    estimates: np.ndarray
    covariance: np.ndarray
    converged: bool


def assign(responsibilities, weights):
    """Give every row its most probable cluster, and count how often that errs."""
    n_clusters = responsibilities.shape[1]
    labels = responsibilities.argmax(axis=1)
    mass = weights @ responsibilities
    counts = np.array([np.bincount(labels, weights * responsibilities[:, c], n_clusters) for c in range(n_clusters)])
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.where(mass[:, None] > 0, counts / mass[:, None], np.eye(n_clusters))
    return Assigned(labels, error, mass / weights.sum())


def error_slopes(scores, weights, responsibilities):
    """(k + k n_lines, k k + k): change of the error matrix and the sizes with the parameters of a latent-class model.

    scores : of every cluster, (n_rows, n_lines), as `profiles.cluster_scores` has them     weights, responsibilities : of the rows
    """
    assigned = assign(responsibilities, weights)
    k, r = responsibilities.shape[1], responsibilities
    given = np.eye(k)[assigned.labels]
    mass, total, n_lines = weights @ r, weights.sum(), scores[0].shape[1]
    slopes = np.zeros((k + k * n_lines, k * k + k))
    for c in range(k):
        # a logit of cluster c raises the responsibility of c at the cost of all
        moved = r * (np.eye(k)[c] - r[:, [c]]) * weights[:, None]
        for d in range(k):
            by_given = moved[:, [d]] * (given - assigned.error[d]) / max(mass[d], TINY)
            ends = np.column_stack([by_given, moved[:, d] / total])
            places = [*range(d * k, d * k + k), k * k + d]
            slopes[c, places] = ends.sum(axis=0)
            slopes[k + c * n_lines : k + (c + 1) * n_lines, places] = scores[c].T @ ends
    return slopes


# ------------------------------------------------------------------------------------------------- step three


def regress_membership(design, assigned, weights, correction, squared=None, first_step=None):
    """Multinomial logistic regression of the cluster on covariates; cluster 0 is the reference.

    design : (n_rows, n_terms), of ones in its first column     Estimates: (n_clusters - 1) * n_terms, cluster by cluster.
    """
    scale = np.ones(design.shape[1])
    centre = np.zeros(design.shape[1])
    if design.shape[1] > 1:  # the same problem in numbers of like size
        centre[1:] = design[:, 1:].mean(axis=0)
        spread = design[:, 1:].std(axis=0)
        scale[1:] = np.where(spread > 0, spread, 1.0)
    inner = (design - centre) / scale
    k, n_terms = len(assigned.sizes), design.shape[1]
    beta = np.zeros((k - 1, n_terms))
    sizes = np.maximum(assigned.sizes, TINY)
    beta[:, 0] = np.log(sizes[1:] / sizes[0])
    value, converged = _membership_value(beta, inner, assigned, weights, correction), False
    for _ in range(200):
        gradient = weights @ _membership_scores(beta.ravel(), inner, correction, assigned)
        step = _newton_step(beta, inner, assigned, weights, correction, gradient).reshape(beta.shape)
        size = 1.0
        while size > 1e-8:
            moved = beta + size * step
            gained = _membership_value(moved, inner, assigned, weights, correction)
            if gained >= value - 1e-12 * abs(value):
                break
            size /= 2
        else:
            break
        beta, value = moved, gained
        if np.abs(size * step).max() < TOLERANCE:
            converged = True
            break
    scores = partial(_membership_scores, design=inner, correction=correction)
    information = _membership_information(beta, inner, assigned, weights, correction)
    covariance = _sandwich(scores, beta.ravel(), assigned, weights, squared, first_step, -information)
    one = np.diag(1 / scale)  # beta of the given columns: slopes / scale, and what centring took from the intercept
    one[0] -= centre / scale
    back = np.kron(np.eye(k - 1), one)
    found = back @ beta.ravel()
    return Solution(found, back @ covariance @ back.T, converged and bool(np.isfinite(found).all()))


def compare_means(values, assigned, weights, correction, squared=None, first_step=None):
    """Mean of a numeric outcome in every cluster; for "ml" the outcome is normal, with a variance of its own in each.

    Estimates: n_clusters means (and, for "ml", n_clusters variances behind them).
    """
    k = len(assigned.sizes)
    shares = _shares(None, assigned, "bch" if correction == "ml" else correction)
    means = _means(values, shares * weights[:, None])
    if correction != "ml":
        scores = partial(_mean_scores, values=values, correction=correction)
        return _solved(scores, means, assigned, weights, squared, first_step)
    overall = np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)
    theta = np.concatenate([means, np.full(k, max(overall, TINY))])
    floor = 1e-6 * max(overall, TINY)  # a variance that shrinks onto one value has no maximum

    def update(theta):
        shares = _shares(_normal_log_density(theta, values, assigned), assigned, "ml") * weights[:, None]
        mass = np.maximum(shares.sum(axis=0), TINY)
        means = _means(values, shares)
        spread = (shares * (values[:, None] - means) ** 2).sum(axis=0) / mass
        return np.concatenate([means, np.maximum(spread, floor)])

    theta, converged = _fixed_point(update, theta, np.sqrt(overall) + TINY)
    scores = partial(_normal_scores, values=values)
    return _solved(scores, theta, assigned, weights, squared, first_step, converged)


def compare_states(codes, n_states, assigned, weights, correction, squared=None, first_step=None):
    """Probability of every state of an outcome in every cluster. Estimates: n_clusters * n_states, cluster by cluster."""
    one_hot = np.eye(n_states)[codes]
    shares = _shares(None, assigned, "bch" if correction == "ml" else correction) * weights[:, None]
    theta = (shares.T @ one_hot / shares.sum(axis=0)[:, None]).ravel()
    converged = True
    if correction == "ml":
        k = len(assigned.sizes)
        start = np.maximum(theta.reshape(k, n_states), 0.5 / len(codes))

        def update(theta):
            shares = _shares(_state_log_density(theta, one_hot, assigned), assigned, "ml") * weights[:, None]
            counts = shares.T @ one_hot
            return (counts / np.maximum(counts.sum(axis=1), TINY)[:, None]).ravel()

        theta, converged = _fixed_point(update, (start / start.sum(axis=1, keepdims=True)).ravel(), 1.0)
    scores = partial(_state_scores, one_hot=one_hot, correction=correction)
    return _solved(scores, theta, assigned, weights, squared, first_step, converged)


def wald_test(differences, estimates, covariance):
    """(statistic, degrees of freedom, p-value) of differences @ estimates = 0."""
    gap, spread = differences @ estimates, differences @ covariance @ differences.T
    df = int(np.linalg.matrix_rank(spread, hermitian=True)) if np.isfinite(spread).all() else 0
    if not df or not np.isfinite(gap).all():
        return np.nan, df, np.nan
    statistic = float(gap @ np.linalg.pinv(spread, hermitian=True) @ gap)
    return statistic, df, float(gammaincc(df / 2, max(statistic, 0.0) / 2))


# ------------------------------------------------------------------------------------------ shares and scores


def _shares(log_density, assigned, correction):
    """(n_rows, n_clusters) for how much a row counts in every cluster; they add up to 1.

    log_density : log p(cluster, other variables), or of the cluster given them, up to a constant of the row; for "ml" only
    """
    k = len(assigned.sizes)
    if correction == "ml":
        with np.errstate(divide="ignore"):
            return softmax(log_density + np.log(np.maximum(assigned.error, TINY)).T[assigned.labels], axis=1)
    if correction == "bch":
        return np.linalg.pinv(assigned.error)[assigned.labels]
    return np.eye(k)[assigned.labels]


def _membership_scores(beta, design, correction, assigned):
    log_p = _log_membership(beta, design, len(assigned.sizes))
    residual = (_shares(log_p, assigned, correction) - np.exp(log_p))[:, 1:]
    return (residual[:, :, None] * design[:, None, :]).reshape(len(design), -1)


def _log_membership(beta, design, k):
    return log_softmax(np.column_stack([np.zeros(len(design)), design @ beta.reshape(k - 1, -1).T]), axis=1)


def _membership_value(beta, design, assigned, weights, correction):
    """Return what Newton's steps climb."""
    log_p = _log_membership(beta, design, len(assigned.sizes))
    if correction == "ml":
        log_error = np.log(np.maximum(assigned.error, TINY)).T[assigned.labels]
        return float(weights @ logsumexp(log_p + log_error, axis=1))
    return float(weights @ (_shares(None, assigned, correction) * log_p).sum(axis=1))


def _membership_information(beta, design, assigned, weights, correction, complete=False):
    """Minus the second derivatives of `_membership_value`; `complete` leaves out what is missing, and is never indefinite."""
    log_p = _log_membership(beta, design, len(assigned.sizes))
    p = np.exp(log_p)[:, 1:]
    q = _shares(log_p, assigned, "ml")[:, 1:] if correction == "ml" and not complete else None
    k, n_terms = p.shape[1], design.shape[1]
    information = np.empty((k, n_terms, k, n_terms))
    for c in range(k):
        for d in range(c, k):
            spread = p[:, c] * ((c == d) - p[:, d])
            if q is not None:
                spread = spread - q[:, c] * ((c == d) - q[:, d])
            block = (design * (weights * spread)[:, None]).T @ design
            information[c, :, d, :], information[d, :, c, :] = block, block
    return information.reshape(k * n_terms, k * n_terms)


def _newton_step(beta, design, assigned, weights, correction, gradient):
    information = _membership_information(beta, design, assigned, weights, correction)
    try:
        np.linalg.cholesky(information)
    except np.linalg.LinAlgError:  # far from a maximum: a step of generalised EM
        information = _membership_information(beta, design, assigned, weights, correction, complete=True)
    return np.linalg.pinv(information, hermitian=True) @ gradient


def _mean_scores(means, values, correction, assigned):
    return _shares(None, assigned, correction) * (values[:, None] - means)


def _normal_log_density(theta, values, assigned):
    means, variances = np.split(theta, 2)
    distance = (values[:, None] - means) ** 2 / variances
    return np.log(np.maximum(assigned.sizes, TINY)) - (distance + np.log(variances)) / 2


def _normal_scores(theta, values, assigned):
    means, variances = np.split(theta, 2)
    shares = _shares(_normal_log_density(theta, values, assigned), assigned, "ml")
    gap = values[:, None] - means
    return np.column_stack([shares * gap, shares * (gap**2 - variances)])


def _state_log_density(theta, one_hot, assigned):
    table = np.maximum(theta.reshape(len(assigned.sizes), -1), TINY)
    return np.log(np.maximum(assigned.sizes, TINY)) + one_hot @ np.log(table).T


def _state_scores(theta, one_hot, correction, assigned):
    log_density = _state_log_density(theta, one_hot, assigned) if correction == "ml" else None
    shares = _shares(log_density, assigned, correction)
    table = theta.reshape(len(assigned.sizes), -1)
    return (shares[:, :, None] * (one_hot[:, None, :] - table)).reshape(len(one_hot), -1)


def _means(values, shares):
    with np.errstate(invalid="ignore", divide="ignore"):
        return values @ shares / shares.sum(axis=0)


def _fixed_point(update, theta, scale):
    for _ in range(MAX_UPDATES):
        before, theta = theta, update(theta)
        if np.abs(theta - before).max() < TOLERANCE * scale:
            return theta, True
    return theta, False


# -------------------------------------------------------------------------------------------------- covariance


def _solved(scores, theta, assigned, weights, squared, first_step, converged=True):
    def total(theta):
        return weights @ scores(theta, assigned=assigned)

    slopes = np.column_stack([_central(total, theta, i) for i in range(len(theta))])
    covariance = _sandwich(scores, theta, assigned, weights, squared, first_step, slopes)
    return Solution(theta, covariance, converged and bool(np.isfinite(theta).all()))


def _sandwich(scores, theta, assigned, weights, squared, first_step, slopes):
    """Covariance of the solution of estimating equations.

    squared : (n_rows,) squares of sampling weights; None: a weight is a repetition
    first_step : (covariance of the logits of step one, `error_slopes`), or None: the error matrix is taken as known
    """
    rows = scores(theta, assigned=assigned)
    meat = (rows * (weights if squared is None else squared)[:, None]).T @ rows
    if first_step is not None:
        logits, by_logit = first_step
        k = len(assigned.sizes)
        flat = np.concatenate([assigned.error.ravel(), assigned.sizes])

        def total(flat):
            moved = assigned._replace(error=flat[: k * k].reshape(k, k), sizes=flat[k * k :])
            return weights @ scores(theta, assigned=moved)

        by_error = np.column_stack([_central(total, flat, i) for i in range(len(flat))])
        effect = by_error @ by_logit.T
        meat = meat + effect @ np.nan_to_num(logits) @ effect.T
    if not (np.isfinite(slopes).all() and np.isfinite(meat).all()):
        return np.full_like(meat, np.nan)
    bread = np.linalg.pinv(slopes)
    return bread @ meat @ bread.T


def _central(function, point, i):
    shift = np.zeros(len(point))
    shift[i] = STEP * max(abs(point[i]), 1e-3)
    return (function(point + shift) - function(point - shift)) / (2 * shift[i])
