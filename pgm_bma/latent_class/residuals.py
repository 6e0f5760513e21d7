"""What a model leaves unexplained, pair by pair; and parametric bootstraps of latent-class models.

The residual of a pair of columns is Pearson's X2 between its observed table and the one that the model expects, over the rows
that have both. In: codes, weights, tables. Out: arrays.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.numbers.pairs import indicators
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.runtime.parallel import map_jobs
from pgm_bma.latent_class.loop import fit_latent_class

ROWS_AT_ONCE = 1 << 14


class PairResiduals(NamedTuple):
    """X2 of every pair (n_columns, n_columns), symmetric, and its degrees of freedom (r_i - 1)(r_j - 1)."""

    x2: np.ndarray
    df: np.ndarray


def pair_residuals(codes, weights, cardinalities, expected):
    """expected : (n_states_total, n_states_total) probability of every pair of states of different columns."""
    starts = state_offsets(cardinalities)
    observed = np.zeros_like(expected)
    columns = np.repeat(np.arange(len(cardinalities)), cardinalities)
    for first in range(0, len(codes), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        one_hot = indicators(codes[rows], cardinalities)
        observed += (one_hot * weights[rows][:, None]).T @ one_hot
    totals = _by_pair(observed, starts)
    wanted = totals[np.ix_(columns, columns)] * expected
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(wanted > 0, (observed - wanted) ** 2 / wanted, np.where(observed > 0, np.inf, 0.0))
    x2 = _by_pair(terms, starts)
    np.fill_diagonal(x2, 0.0)
    free = np.asarray(cardinalities) - 1
    return PairResiduals(x2, np.outer(free, free))


def _by_pair(cells, starts):
    return np.add.reduceat(np.add.reduceat(cells, starts[:-1], axis=0), starts[:-1], axis=1)


def expected_pairs(theta_c, theta):
    """Probability of every pair of states under a latent-class model; pairs of one column with itself mean nothing."""
    return (theta * theta_c) @ theta.T


def bootstrap(codes, weights, cardinalities, fit, statistic, n_samples, rng, n_jobs=None, progress=None):
    """(n_samples, ...) values of ``statistic(codes, weights, rng)`` on tables drawn from a fitted model.

    A sample has as many rows as the weights add up to, and the missing cells of the rows.
    """

    def one(child):
        found = statistic(*simulated(codes, weights, cardinalities, fit, child), child)
        if progress is not None:
            progress(1)
        return found

    return np.array(map_jobs(one, [(child,) for child in rng.spawn(n_samples)], n_jobs, threads=True))


def simulated(codes, weights, cardinalities, fit, rng):
    """(codes, weights) of one table drawn from a fitted model, equal rows folded."""
    n_rows = max(round(float(weights.sum())), 1)
    tables = [fit.theta_c[None], *fit.tables]
    drawn = sample_codes(tables, [(), *[(0,)] * len(cardinalities)], n_rows, rng)[:, 1:]
    if (codes < 0).any():
        is_whole = (weights == np.round(weights)).all()
        rows = np.repeat(np.arange(len(codes)), weights.astype(int)) if is_whole else None
        rows = rng.choice(len(codes), n_rows, p=weights / weights.sum()) if rows is None else rows
        drawn = np.where(codes[rows] < 0, -1, drawn)
    rows, counts = np.unique(drawn, axis=0, return_counts=True)
    return np.asfortranarray(rows), counts.astype(float)


def refit(codes, weights, cardinalities, fit, settings):
    """The model fitted to other rows, from the tables of `fit` on."""
    settings = settings._replace(n_init=1, init=(fit.theta_c, fit.tables), collapse="ignore", progress=None, n_jobs=1)
    rows = table_rows(codes, cardinalities, weights)
    return fit_latent_class(rows, len(fit.theta_c), settings, rng=np.random.default_rng(0))


def likelihood_ratio(codes, weights, cardinalities, n_clusters, settings, rng):
    """2 (log-likelihood with one more cluster - log-likelihood), and the two fits; both from the same seed."""
    settings = settings._replace(
        collapse="ignore", progress=None, init="random" if settings.averaging is None else "em"
    )
    seed = rng.integers(0, 2**63)
    rows = table_rows(codes, cardinalities, weights)
    small, large = (
        fit_latent_class(rows, k, settings, rng=np.random.default_rng(seed)) for k in (n_clusters, n_clusters + 1)
    )
    return 2 * (large.log_likelihood - small.log_likelihood), small, large
