"""Softmax regression with a ridge: the convex fit behind every learned weight of a term.

Rows come as contrasts, the terms of the other classes minus those of the row's own class. Newton steps while the curvature matrix
is small, else L-BFGS; rows may also be summed by the caller (`minimise`), in passes or without contrasts.
"""

from functools import partial

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

NEWTON_TERMS = 300  # above, the curvature matrix costs more than further steps
_NEWTON_STEPS, _EXACT = 50, 1e-9
MAX_CONTRASTS = 120_000_000  # kept in memory: 1 GB
_SQUARES_AT_ONCE = 50_000


def ridge_fit(contrasts, rows, centre, ridge, start, tolerance=1e-10):
    """argmin of sum_r rows_r ln(1 + sum_k exp(contrasts_rk . theta)) + sum_t ridge_t (theta_t - centre_t)^2 / 2.

    Newton steps while the curvature matrix is small, else L-BFGS. tolerance : promised gain, relative, at which it ends
    """
    return minimise(partial(loss_sums, contrasts, rows), centre, ridge, start, tolerance)


def loss_sums(contrasts, rows, theta, wanted):
    """Sums over rows at `theta`, each a tuple: "newton" (loss, its slope, its curvature), "gradient" (loss, slope) or "scale"
    (loss, slope, the curvature's diagonal)."""
    n, k, p = contrasts.shape
    flat = contrasts.reshape(n * k, p)
    loss, probability = other_classes(flat @ theta, rows, k)
    slope = (probability * rows[:, None]).ravel() @ flat
    if wanted == "gradient":
        return loss, slope
    if wanted == "scale":
        return loss, slope, _curvature_diagonal(contrasts, rows, probability)
    return loss, slope, curvature_matrix(contrasts, rows, probability, 0.0)


def minimise(sums, centre, ridge, start, tolerance=1e-10):
    """`ridge_fit` of a loss of which only sums over rows are seen.

    sums : (theta, what is wanted) -> as `loss_sums`
    """
    if len(centre) > NEWTON_TERMS:
        return _minimise_by_gradient(sums, centre, ridge, start, tolerance)

    def evaluate(theta):
        loss, slope, curvature = sums(theta, "newton")
        shift = theta - centre
        curvature[np.diag_indices(len(centre))] += ridge
        return loss + 0.5 * np.sum(ridge * shift * shift), slope + ridge * shift, curvature

    theta = start
    value, slope, curvature = evaluate(theta)
    for _ in range(_NEWTON_STEPS):
        factor = cho_factor(curvature, overwrite_a=True, check_finite=False)
        step = -cho_solve(factor, slope, check_finite=False)
        gain = -float(slope @ step)  # twice the fall that the quadratic model promises
        if gain < tolerance * (1.0 + abs(value)):
            # it squares what is left of the error; rough fits, which only compare ridges, stay where they are
            return theta + step if tolerance <= _EXACT else theta
        length = 1.0
        while True:
            trial = theta + length * step
            found, slope, curvature = evaluate(trial)
            if found <= value - 1e-4 * length * gain or length < 1e-6:
                break
            length /= 2
        theta, value = trial, found
    return theta


def _minimise_by_gradient(sums, centre, ridge, start, tolerance):
    # steps are scaled by the curvature at the start, so that strong and weak terms converge alike
    loss, slope, curvature = sums(start, "scale")
    began = loss + 0.5 * np.sum(ridge * (start - centre) ** 2), slope + ridge * (start - centre)
    scale = 1.0 / np.sqrt(ridge + curvature)
    length = float(np.linalg.norm(began[1] * scale))
    if length == 0.0:
        return start
    scale *= length  # the first step of L-BFGS-B has length 1: this makes it the Newton step of the scaled terms
    known = [began]

    def objective(u):
        if known:  # the start comes first, and was summed already
            value, slope = known.pop()
            return value, slope * scale
        shift = scale * u
        loss, slope = sums(centre + shift, "gradient")
        return loss + 0.5 * np.sum(ridge * shift * shift), (slope + ridge * shift) * scale

    options = {"maxiter": 500, "maxcor": 20, "ftol": max(tolerance / 10, 1e-11), "gtol": 1e-6 * length}
    result = minimize(objective, (start - centre) / scale, jac=True, method="L-BFGS-B", options=options)
    return centre + scale * result.x


def other_classes(scores, rows, k):
    """Loss, and the probabilities of the other classes (n, k)."""
    scores = scores.reshape(-1, k)
    top = np.maximum(scores.max(axis=1, initial=0.0), 0.0)
    weights = np.exp(scores - top[:, None])
    total = np.exp(-top) + weights.sum(axis=1)
    return rows @ (top + np.log(total)), weights / total[:, None]


def curvature_matrix(contrasts, rows, probability, ridge):
    """sum_r rows_r G_r' (diag(p) - p p') G_r + ridge, as two matrix products."""
    n, k, p = contrasts.shape
    if k == 1:
        spread = contrasts[:, 0] * np.sqrt(probability * (1 - probability) * rows[:, None])
        matrix = spread.T @ spread
    else:
        spread = contrasts.reshape(n * k, p) * np.sqrt(probability * rows[:, None]).reshape(-1, 1)
        mean = np.matmul(probability[:, None, :], contrasts)[:, 0] * np.sqrt(rows)[:, None]
        matrix = spread.T @ spread - mean.T @ mean
    matrix[np.diag_indices(p)] += ridge
    return matrix


def _curvature_diagonal(contrasts, rows, probability):
    """The diagonal of `_curvature` without its ridge, some rows at a time, so that their squares stay in the cache."""
    n, k, p = contrasts.shape
    step, diagonal = max(_SQUARES_AT_ONCE // max(k * p, 1), 1), np.zeros(p)
    for first in range(0, n, step):
        part, odds, weights = (
            contrasts[first : first + step],
            probability[first : first + step],
            rows[first : first + step],
        )
        mean = np.matmul(odds[:, None, :], part)[:, 0]
        part = part.reshape(-1, p)
        diagonal += (odds * weights[:, None]).ravel() @ (part * part) - weights @ (mean * mean)
    return np.maximum(diagonal, 0.0)
