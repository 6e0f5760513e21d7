"""One column, averaged over all ways to cut it: P(class | value) without betting on one discretisation.

The values of a numeric column fall into at most 32 elementary bins. A partition joins neighbouring bins to intervals; an
interval predicts the class by its own Dirichlet-multinomial with pseudo-counts s p (p the class shares). All 2^(m - 1)
partitions are summed exactly, each boundary being cut with prior probability rho; s and rho are summed over grids. A
categorical column has two partitions: all states together, or each on its own.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.additive import _kernels as kernels
from pgm_bma.foundation.tables.cut_points import CUT_PRIORS

STRENGTHS = (1.0, 3.0, 10.0, 30.0)
_MOST_WHOLE = 200_000


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
