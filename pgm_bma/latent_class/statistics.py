"""How well a latent-class model fits: criteria that weigh fit against size, how clear the clusters are, goodness of fit.

In: tables, distinct rows and their weights. Out: a `FitStatistics`. With averaged tables (EMA) the figures are those of the
tables that are returned. Rows with missing cells count in the log-likelihood, not in the comparison of observed and expected
frequencies (as in poLCA).
"""

from math import prod
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc

from pgm_bma.latent_class.problem import log_joint

ROWS_PER_CELL = 5  # rows that a cell of the full table needs before the law of G2 and X2 is near its limit


class FitStatistics(NamedTuple):
    """Figures of one fitted model; criteria are lower for better models, NaN is not known."""

    log_likelihood: float
    n_parameters: int
    aic: float
    bic: float
    adjusted_bic: float  # ln((N + 2) / 24) instead of ln N
    caic: float
    icl: float = np.nan  # BIC + twice the entropy of the responsibilities
    entropy_r2: float = np.nan  # 1: every row is sure of its cluster, 0: none is
    g2: float = np.nan  # 2 sum of observed x ln(observed / expected), over the complete rows
    x2: float = np.nan  # Pearson's
    df: int = 0  # min(N, cells - 1) - n_parameters
    g2_p: float = np.nan  # asymptotic; NaN where there are too few rows for the cells, or no degrees of freedom
    x2_p: float = np.nan
    smallest_cluster: float = np.nan  # its share
    n_occupied: float = np.nan  # clusters that are the most probable one of some row


ROWS_AT_ONCE = 1 << 16


def rows_statistics(rows, fit):
    """What is known of a fit: all figures where rows are in memory, else those that its log-likelihood gives."""
    cardinalities, n_numbers = rows.schema.cardinalities, len(rows.log_scale)
    if not rows.in_memory:
        return size_statistics(fit.log_likelihood, fit.theta_c, cardinalities, rows.total_weight)
    (block,) = rows.blocks
    weights = np.ones(rows.n_rows) if block.weights is None else block.weights
    tables = fit.theta_c, fit.theta, fit.state_start
    if not n_numbers:
        return fit_statistics(block.codes, weights, cardinalities, *tables)
    return fit_statistics(block.codes, weights, cardinalities, *tables, block.numbers, fit.log_scale)


def fit_statistics(codes, weights, cardinalities, theta_c, theta, state_start, numbers=None, log_scale=None):
    """`FitStatistics` of given tables on distinct rows `codes` (and standardised `numbers`) with their weights.

    With numbers there are no cells, so that G2 and X2 are not known.
    """
    log_row, entropy, occupied = np.empty(len(codes)), 0.0, np.zeros(len(theta_c), dtype=bool)
    for start in range(0, len(codes), ROWS_AT_ONCE):  # a part of the rows at a time: several arrays of rows x clusters
        part = slice(start, start + ROWS_AT_ONCE)
        values = None if numbers is None else numbers[part]
        log_p = log_joint(np.asfortranarray(codes[part]), theta_c, theta, state_start, values, log_scale)
        log_row[part] = np.logaddexp.reduce(log_p, axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_r = log_p - log_row[part, None]
            terms = np.where(log_r > -np.inf, np.exp(log_r) * log_r, 0.0)
        entropy -= float(weights[part] @ terms.sum(axis=1))
        occupied[log_p[weights[part] > 0].argmax(axis=1)] = True
    total = float(weights.sum())
    n_numbers = 0 if numbers is None else numbers.shape[1]
    known = size_statistics(float(weights @ log_row), theta_c, cardinalities, total, n_numbers)
    g2 = x2 = g2_p = x2_p = np.nan
    if not n_numbers:
        g2, x2 = goodness(codes, weights, log_row)
        g2_p, x2_p = (_asymptotic(value, codes, weights, cardinalities, known.df) for value in (g2, x2))
    return known._replace(
        icl=known.bic + 2 * entropy,
        entropy_r2=1.0 if len(theta_c) == 1 else 1 - entropy / (total * np.log(len(theta_c))),
        g2=g2,
        x2=x2,
        g2_p=g2_p,
        x2_p=x2_p,
        n_occupied=int(occupied.sum()),
    )


def size_statistics(log_likelihood, theta_c, cardinalities, total, n_numbers=0):
    """What the log-likelihood of `total` rows and the size of the model tell; what needs the rows themselves is NaN."""
    n_parameters = count_parameters(len(theta_c), cardinalities, n_numbers)
    n_cells = prod(int(r) for r in cardinalities)
    with np.errstate(divide="ignore"):
        bic = -2 * log_likelihood + n_parameters * np.log(total)
    return FitStatistics(
        log_likelihood=log_likelihood,
        n_parameters=n_parameters,
        aic=-2 * log_likelihood + 2 * n_parameters,
        bic=bic,
        adjusted_bic=-2 * log_likelihood + n_parameters * np.log((total + 2) / 24),
        caic=bic + n_parameters,
        df=0 if n_numbers else min(round(total), n_cells - 1) - n_parameters,
        smallest_cluster=float(theta_c.min()),
    )


def count_parameters(n_clusters, cardinalities, n_numbers=0):
    """Free probabilities of a latent-class model, and a mean and a variance per cluster of every numeric column."""
    return n_clusters - 1 + n_clusters * (int((np.asarray(cardinalities) - 1).sum()) + 2 * n_numbers)


def goodness(codes, weights, log_row):
    """G2 and X2 over the complete rows; NaN where there are none. log_row : log p(row)"""
    complete = _is_complete(codes, weights)
    observed, total = weights[complete], float(weights[complete].sum())
    if not total:
        return np.nan, np.nan
    expected = total * np.exp(log_row[complete])
    with np.errstate(divide="ignore"):
        g2 = float(2 * (observed * np.log(observed / expected)).sum())
        # cells without rows add what is expected of them
        x2 = float(((observed - expected) ** 2 / expected).sum() + max(total - expected.sum(), 0.0))
    return g2, x2


def _is_complete(codes, weights):
    return (codes >= 0).all(axis=1) & (weights > 0)


def _asymptotic(value, codes, weights, cardinalities, df):
    """p-value from the limiting law, NaN where there are too few complete rows for the cells."""
    total = float(weights[_is_complete(codes, weights)].sum())
    if df <= 0 or not total or total < ROWS_PER_CELL * prod(int(r) for r in cardinalities):
        return np.nan
    return float(gammaincc(df / 2, max(value, 0.0) / 2))
