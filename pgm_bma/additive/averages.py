"""P(class | value) of a column, of two, and of all numbers together, averaged: no bet on one discretisation.

One column: the values of a numeric column fall into at most 32 elementary bins. A partition joins neighbouring bins to intervals;
an interval predicts the class by its own Dirichlet-multinomial with pseudo-counts s p (p the class shares). All 2^(m - 1)
partitions are summed exactly, each boundary being cut with prior probability rho; s and rho are summed over grids. A categorical
column has two partitions: all states together, or each on its own.

Two columns: each has a tree over its bins, halves of halves for a numeric one (at most 16 bins), a root with all states right below
it for a categorical one. A rectangle is a product of two nodes. It stays whole with probability 1/2, else one of its sides is split
into its children: Phi(R) = M(R) / 2 + (1 / 2d) sum over the d sides that can be split of the product of Phi over the parts, M the
Dirichlet-multinomial evidence of its classes. Sums go bottom-up, posteriors of the cells top-down.

All numbers: how they vary together inside a class, as a Student-t density of their normal scores minus its diagonal version. Scores
are normal quantiles of a value's rank, so that a rising transformation changes nothing. A class has a normal-inverse-Wishart
posterior shrunk to the covariance that the classes share, with three strengths nu: three terms. What the columns say one by one is
in their single terms already, so that part of the density is taken off. A row is left out by rank-one downdates.
"""

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, ndtri

from pgm_bma.additive import _kernels as kernels
from pgm_bma.foundation.tables.cut_points import CUT_PRIORS

STRENGTHS = (1.0, 3.0, 10.0, 30.0)
MAX_PAIR_BINS = 16
_MOST_WHOLE = 200_000  # rows whose lnGamma are looked up
MOST_NUMBERS = 200  # columns of numbers that vary together
N_STRENGTHS = 3


def class_shares(target, weights, n_classes):
    """Shares of the classes, with half a row more of each: (n_classes,)."""
    counts = np.bincount(target, weights, minlength=n_classes) + 0.5
    return counts / counts.sum()


def average_intervals(counts, shares, unit=1.0, strengths=STRENGTHS, cut_priors=CUT_PRIORS, gammas=None):
    """Average over all interval partitions of the bins of a column.

    Parameters
    ----------
    counts : (n_bins, n_classes)
    shares : (n_classes,), p
    unit : weight of a row that is left out
    strengths, cut_priors : grids of s and rho, summed out with equal prior weights
    gammas : `gamma_tables` of the same shares and strengths, made here when None

    Returns
    -------
    ColumnAverage
    """
    counts, shares = np.ascontiguousarray(counts, dtype=float), np.asarray(shares, dtype=float)
    strengths, cut_priors = np.asarray(strengths, dtype=float), np.asarray(cut_priors, dtype=float)
    m, n_classes = counts.shape
    cumulated = np.concatenate([np.zeros((1, n_classes)), np.cumsum(counts, axis=0)])
    shape = len(strengths), len(cut_priors)
    log_z, cuts = np.empty(shape), np.empty((*shape, m))
    cells = np.zeros((*shape, m, m + 1))
    gammas = gamma_tables(counts.sum(), counts, shares, strengths) if gammas is None else gammas
    kernels.sum_intervals(cumulated, shares, strengths, gammas, cut_priors, log_z, cells, cuts)
    grid = _normalised(log_z)
    averaged, left_out = np.empty((m, n_classes)), np.empty((m, n_classes, n_classes))
    kernels.interval_predictions(cumulated, shares, strengths, grid, cells, unit, averaged, left_out)
    cut_posterior = np.tensordot(grid, cuts, axes=2)[1:]
    return ColumnAverage(averaged, left_out, cut_posterior, _log_mean(log_z))


def average_categories(counts, shares, unit=1.0, strengths=STRENGTHS):
    """The same for a categorical column: all states together or each apart, with probability 1/2 each."""
    counts, shares = np.ascontiguousarray(counts, dtype=float), np.asarray(shares, dtype=float)
    m, n_classes = counts.shape
    total = counts.sum(axis=0)
    none = np.empty((n_classes + 1, 0))
    apart = np.array([sum(kernels.log_evidence(row, s, shares, none) for row in counts) for s in strengths])
    together = np.array([kernels.log_evidence(total, s, shares, none) for s in strengths])
    grid = _normalised(np.stack([together, apart]))
    averaged, left_out = np.empty((m, n_classes)), np.empty((m, n_classes, n_classes))
    for i in range(m):
        sums = np.zeros((n_classes + 1, n_classes + 1))
        for g, s in enumerate(strengths):
            kernels.add_cell(total, grid[0, g], s, shares, unit, sums)
            kernels.add_cell(counts[i], grid[1, g], s, shares, unit, sums)
        kernels.finish_bin(sums, averaged[i], left_out[i])
    return ColumnAverage(
        averaged, left_out, np.full(max(m - 1, 0), grid[1].sum()), _log_mean(np.stack([together, apart]))
    )


@lru_cache(maxsize=200)
def bin_tree(n_bins, halves=True):
    """Tree over bins 0..n_bins - 1: halves of halves, or (a categorical column) a root with all bins below: `BinTree`."""
    spans, children, sizes = [(0, n_bins)], [], []
    node = 0
    while node < len(spans):
        first, stop = spans[node]
        bounds = [first, (first + stop) // 2, stop] if halves else list(range(first, stop + 1))
        parts = list(pairwise(bounds)) if stop - first > 1 else []
        children.append(len(spans))
        sizes.append(len(parts))
        spans += parts
        node += 1
    members = np.array([[first <= i < stop for i in range(n_bins)] for first, stop in spans], dtype=float)
    leaves = np.array([spans.index((i, i + 1)) for i in range(n_bins)], dtype=np.int64)
    parents = np.full(len(spans), -1, dtype=np.int64)
    for node, (child, size) in enumerate(zip(children, sizes)):
        parents[child : child + size] = node
    return BinTree(np.array(children, dtype=np.int64), np.array(sizes, dtype=np.int64), parents, leaves, members)


def average_rectangles(counts, shares, unit=1.0, strengths=STRENGTHS, halves=(True, True), gammas=None):
    """Average over recursive partitions of the rectangle of two columns.

    Parameters
    ----------
    counts : (n_first_bins, n_second_bins, n_classes)
    shares : (n_classes,)
    unit : weight of a row that is left out
    strengths : grid of s, summed out
    halves : for each column, whether it is split by halves (numeric) or into all its states at once
    gammas : as in `average_intervals`

    Returns
    -------
    PairAverage
    """
    counts, shares = np.ascontiguousarray(counts, dtype=float), np.asarray(shares, dtype=float)
    strengths = np.asarray(strengths, dtype=float)
    n_first, n_second, n_classes = counts.shape
    first, second = bin_tree(n_first, halves[0]), bin_tree(n_second, halves[1])
    held = (first.members @ counts.reshape(n_first, -1)).reshape(-1, n_second, n_classes)
    held = np.ascontiguousarray(np.matmul(second.members, held))
    log_z, stop = np.empty(len(strengths)), np.empty((len(strengths), *held.shape[:2]))
    children, sizes = (first.children, second.children), (first.n_children, second.n_children)
    gammas = gamma_tables(counts.sum(), counts, shares, strengths) if gammas is None else gammas
    kernels.sum_rectangles(held, children, sizes, shares, strengths, gammas, log_z, stop)
    averaged = np.empty((n_first, n_second, n_classes))
    left_out = np.empty((n_first, n_second, n_classes, n_classes))
    parents, leaves = (first.parents, second.parents), (first.leaves, second.leaves)
    grid = _normalised(log_z)
    kernels.rectangle_predictions(held, parents, leaves, shares, strengths, grid, stop, unit, averaged, left_out)
    return PairAverage(averaged, left_out, _log_mean(log_z))


def gamma_tables(total, weights, shares, strengths=STRENGTHS):
    """lnGamma of whole counts up to `total`, for the kernels; empty when the weights are not whole, or too many."""
    whole = total <= _MOST_WHOLE and np.array_equal(weights, np.floor(weights))
    gammas = np.empty((len(strengths), len(shares) + 1, int(total) + 1 if whole else 0))
    kernels.fill_gammas(np.asarray(strengths, dtype=float), np.asarray(shares, dtype=float), gammas)
    return gammas


def _normalised(log_weights):
    weights = np.exp(log_weights - log_weights.max())
    return weights / weights.sum()


def _log_mean(log_weights):
    return float(np.logaddexp.reduce(log_weights, axis=None) - np.log(log_weights.size))


class ColumnAverage(NamedTuple):
    """probability (n_bins, n_classes) P(c | bin); left_out (n_bins, n_classes, n_classes) the same for a row of class k (second
    axis) that is left out; cut_posterior (n_bins - 1,) P(cut before bin i + 1); log_evidence of the classes given the column.
    """

    probability: np.ndarray
    left_out: np.ndarray
    cut_posterior: np.ndarray
    log_evidence: float


class BinTree(NamedTuple):
    """children, n_children (n_nodes,): number of the first child and how many follow, 0 at a leaf.

    parents (n_nodes,), -1 at the root     leaves (n_bins,) : the node of a bin     members (n_nodes, n_bins) : bins of a node
    """

    children: np.ndarray
    n_children: np.ndarray
    parents: np.ndarray
    leaves: np.ndarray
    members: np.ndarray


class PairAverage(NamedTuple):
    """probability (n_first, n_second, n_classes), left_out (..., n_classes, n_classes) and log_evidence, as in `ColumnAverage`."""

    probability: np.ndarray
    left_out: np.ndarray
    log_evidence: float


# ----------------------------------------------------------------------------------------------- all numbers together


def fit_gaussian(values, target, n_classes, weights, free=None):
    """`GaussianTerms` of the rows without a missing value; None with fewer than two columns, more than 200, or too few rows.

    free : (d,) bool, columns that have a say, default all; the score of another is always 0
    """
    d = values.shape[1]
    kept = ~np.isnan(values).any(axis=1)
    free = np.ones(d, dtype=bool) if free is None else free
    if not 2 <= free.sum() <= d <= MOST_NUMBERS or weights[kept].sum() < d + n_classes + 2:
        return None
    knots = [_score_knots(values[:, j], weights) if free[j] else (np.zeros(1), np.zeros(1)) for j in range(d)]
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
    for g, nu in enumerate(number_strengths(d)):
        for c in range(n_classes):
            # a row with a missing value is in no scatter, so that nothing can be left out of it
            taken = np.zeros(len(z)) if target is None else np.where((target == c) & seen, unit, 0.0)
            result[:, c, g] = _difference(
                z - terms.means[c], terms.masses[c], nu, terms.scatters[c], terms.pooled, taken
            )
    return np.where(seen[:, None, None], result, 0.0)


def number_strengths(d):
    """The strengths nu of `d` columns of numbers."""
    return d + 3.0, 4.0 * (d + 3), 1e6


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
