"""How the numeric columns vary together inside a class: a Student-t density of their normal scores minus its diagonal version.

Scores are normal quantiles of a value's rank, so that a rising transformation changes nothing. A class has a normal-inverse-Wishart
posterior shrunk to the covariance that the classes share, with three strengths nu: three terms. What the columns say one by one is
in their single terms already, so that part of the density is taken off. A row is left out by rank-one downdates.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, ndtri

MOST_COLUMNS = 200
N_STRENGTHS = 3


def fit_gaussian(values, target, n_classes, weights):
    """`GaussianTerms` of the rows without a missing value; None with fewer than two columns, more than 200, or too few rows."""
    d = values.shape[1]
    kept = ~np.isnan(values).any(axis=1)
    if not 2 <= d <= MOST_COLUMNS or weights[kept].sum() < d + n_classes + 2:
        return None
    knots = [_score_knots(values[:, j], weights) for j in range(d)]
    z, target, weights = normal_scores(values[kept], knots), target[kept], weights[kept]
    # each class has one more row, at the origin, which is the prior of its mean
    masses = np.bincount(target, weights, minlength=n_classes) + 1.0
    sums = np.stack([weights[target == c] @ z[target == c] for c in range(n_classes)])
    means = sums / masses[:, None]
    scatters = np.stack([(z[target == c] * weights[target == c, None]).T @ z[target == c] for c in range(n_classes)])
    scatters -= masses[:, None, None] * means[:, :, None] * means[:, None, :]
    pooled = scatters.sum(axis=0) / masses.sum() + 1e-3 * np.eye(d)
    return GaussianTerms(knots, masses, means, scatters, pooled)


def _score_knots(column, weights):
    """Distinct values of a column and the normal quantile of the middle of their ranks."""
    kept = ~np.isnan(column)
    distinct, inverse = np.unique(column[kept], return_inverse=True)
    mass = np.bincount(inverse, weights[kept])
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return distinct, ndtri(middle)


def normal_scores(values, knots):
    """Scores of values, those between two known ones like the lower of them, so that only their order counts."""
    columns = []
    for j, (distinct, scores) in enumerate(knots):
        place = np.maximum(np.searchsorted(distinct, values[:, j], side="right") - 1, 0)
        columns.append(np.where(np.isnan(values[:, j]), np.nan, scores[place]))
    return np.column_stack(columns)


def gaussian_terms(terms, values, target=None, unit=1.0):
    """(n_samples, n_classes, 3) log density minus its diagonal version; zero for a row with a missing value.

    target : classes of training rows, each of which is then left out of its own class, with the weight `unit` (n_samples,)
    """
    z = normal_scores(values, terms.knots)
    seen = ~np.isnan(z).any(axis=1)
    z = np.nan_to_num(z)
    n_classes, d = terms.means.shape
    result = np.zeros((len(z), n_classes, N_STRENGTHS))
    for g, nu in enumerate((d + 3.0, 4.0 * (d + 3), 1e6)):
        for c in range(n_classes):
            taken = np.zeros(len(z)) if target is None else np.where(target == c, unit, 0.0)
            result[:, c, g] = _difference(
                z - terms.means[c], terms.masses[c], nu, terms.scatters[c], terms.pooled, taken
            )
    return np.where(seen[:, None, None], result, 0.0)


def _difference(v, mass, nu, scatter, pooled, taken):
    """ln t(z) - sum of ln t(z_j), v = z minus the mean of the class, `taken` the weight of the row that is left out of it."""
    d = v.shape[1]
    psi = (nu - d - 1) * pooled + scatter
    factor = np.linalg.cholesky(psi)
    form = (solve_triangular(factor, v.T, lower=True) ** 2).sum(axis=0)
    forms = v**2 / np.diag(psi)
    rest = mass - taken
    down = (taken * mass / rest)[:, None]
    grown = (mass / rest)[:, None] ** 2  # the mean moves away from the row
    log_det = 2 * np.log(np.diag(factor)).sum() + np.log1p(-down[:, 0] * form)
    log_dets = np.log(np.diag(psi)) + np.log1p(-down * forms)
    form, forms = grown[:, 0] * form / (1 - down[:, 0] * form), grown * forms / (1 - down * forms)
    freedom = nu + rest - d  # the row at the origin is no observation of the covariance
    spread = rest / (rest + 1)
    joint = (
        gammaln((freedom + d) / 2) - gammaln(freedom / 2) - 0.5 * log_det - (freedom + d) / 2 * np.log1p(form * spread)
    )
    one = gammaln((freedom + 1) / 2) - gammaln(freedom / 2)
    single = one[:, None] - 0.5 * log_dets - ((freedom + 1) / 2)[:, None] * np.log1p(forms * spread[:, None])
    return joint - single.sum(axis=1)


class GaussianTerms(NamedTuple):
    """knots of the normal scores of each column; masses, means and scatters of the classes, and the covariance they share."""

    knots: list
    masses: np.ndarray
    means: np.ndarray
    scatters: np.ndarray
    pooled: np.ndarray
