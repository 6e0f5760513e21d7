"""Fit of a latent-class model: criteria, how clear the clusters are, goodness of fit, residuals of pairs, and bootstraps.

In: tables, distinct rows and their weights. Out: records of arrays and numbers. With averaged tables (EMA) the figures are those
of the tables that are returned. Rows with missing cells count in the log-likelihood, not in the comparison of observed and
expected frequencies (as in poLCA). The residual of a pair of columns is Pearson's X2 between its observed table and the one that
the model expects, over the rows that have both.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from scipy.special import gammaincc, softmax

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.numbers.pairs import indicators
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.runtime.jobs import map_jobs
from pgm_bma.latent_class.loop import conclude, draw, fit_latent_class, run_starts
from pgm_bma.latent_class.problem import flatten, log_joint, make_problem, means_and_variances

ROWS_PER_CELL = 5  # rows that a cell of the full table needs before the law of G2 and X2 is near its limit
N_SPLITS, N_RANDOM, N_FINISHED = 2, 4, 3  # starts with one more cluster: of each cluster, random, and run to the end
ENOUGH = 10  # tables of a bootstrap that fit no better; then it ends (Besag and Clifford, Biometrika 78, 1991)
TABLES_AT_ONCE = 8


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
    """Return the statistics of a fit: all figures where rows are in memory, else those that its log-likelihood gives."""
    cardinalities, n_numbers = rows.schema.cardinalities, len(rows.log_scale)
    if not rows.in_memory:
        return size_statistics(fit.log_likelihood, fit.theta_c, cardinalities, rows.total_weight, n_numbers)
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
    """Return what the log-likelihood of `total` rows and the size of the model tell; what needs the rows themselves is NaN."""
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


# ------------------------------------------------------------------------------------- residuals and bootstraps


class PairResiduals(NamedTuple):
    """X2 of every pair (n_columns, n_columns), symmetric, and its degrees of freedom (r_i - 1)(r_j - 1)."""

    x2: np.ndarray
    df: np.ndarray
    correlation: np.ndarray | None = None  # of two numbers inside clusters, NaN for other pairs


def pair_residuals(codes, weights, cardinalities, expected):
    """expected : (n_states_total, n_states_total) probability of every pair of states of different columns."""
    if not len(cardinalities):
        return PairResiduals(np.zeros((0, 0)), np.zeros((0, 0), dtype=np.int64))
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


def mixed_residuals(codes, numbers, weights, cardinalities, fit):
    """`PairResiduals` of a latent-class model with numeric columns, which come after those of states.

    Deviations of numbers from the means of the clusters, in their standard deviations, are shared out by responsibilities. Two
    numbers: rows x squared correlation. A number and a column of states: the variance of the deviations between the states, as in
    an analysis of variance.
    """
    of_states = pair_residuals(
        codes, weights, cardinalities, expected_pairs(fit.theta_c, fit.theta[: fit.state_start[-1]])
    )
    r = softmax(log_joint(codes, fit.theta_c, fit.theta, fit.state_start, numbers, fit.log_scale), axis=1)
    mean, variance = means_and_variances(fit.theta[fit.state_start[-1] :])
    seen, n_numbers = (~np.isnan(numbers)).astype(float), numbers.shape[1]
    one_hot = indicators(codes, cardinalities)
    rows = (seen * weights[:, None]).T @ one_hot  # of numbers and states
    both = (seen * weights[:, None]).T @ seen
    sums, products, squares = np.zeros_like(rows), np.zeros_like(both), np.zeros_like(both)
    for c in range(r.shape[1]):
        z = np.nan_to_num((numbers - mean[:, c]) / np.sqrt(variance[:, c]))
        shared = z * (weights * r[:, c])[:, None]
        sums += shared.T @ one_hot
        products += shared.T @ z
        squares += (shared * z).T @ seen
    n_columns = len(cardinalities)
    x2, df = np.zeros((2, n_columns + n_numbers, n_columns + n_numbers))
    x2[:n_columns, :n_columns], df[:n_columns, :n_columns] = of_states.x2, of_states.df
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num(products / np.sqrt(squares * squares.T))
        spread = np.diag(squares) / np.diag(both)
        if n_columns:
            starts = state_offsets(cardinalities)[:-1]
            between = np.add.reduceat(np.nan_to_num(sums**2 / rows), starts, axis=1)
            between -= np.add.reduceat(sums, starts, axis=1) ** 2 / np.add.reduceat(rows, starts, axis=1)
            x2[n_columns:, :n_columns] = np.nan_to_num(between / spread[:, None])
            df[n_columns:, :n_columns] = np.asarray(cardinalities) - 1
            x2[:n_columns, n_columns:], df[:n_columns, n_columns:] = (
                x2[n_columns:, :n_columns].T,
                df[n_columns:, :n_columns].T,
            )
    x2[n_columns:, n_columns:], df[n_columns:, n_columns:] = both * correlation**2, 1
    np.fill_diagonal(x2, 0.0)
    named = np.full(x2.shape, np.nan)
    named[n_columns:, n_columns:] = correlation
    return PairResiduals(x2, df.astype(np.int64), named)


def _by_pair(cells, starts):
    return np.add.reduceat(np.add.reduceat(cells, starts[:-1], axis=0), starts[:-1], axis=1)


def expected_pairs(theta_c, theta):
    """Probability of every pair of states under a latent-class model; pairs of one column with itself mean nothing."""
    return (theta * theta_c) @ theta.T


def bootstrap(codes, weights, cardinalities, fit, statistic, n_samples, rng, n_jobs=None, progress=None, seen=np.inf):
    """Values of ``statistic(codes, weights, rng)`` on `n_samples` tables drawn from a fitted model, (n_samples, ...).

    A table has as many rows as the weights add up to, and the missing cells of the rows. With a number `seen` the values end at the
    `ENOUGH`-th that is at least as large; `p_value` is then Besag and Clifford's.
    """

    def one(child):
        found = statistic(*simulated(codes, weights, cardinalities, fit, child), child)
        if progress is not None:
            progress(1)
        return found

    jobs = [(child,) for child in rng.spawn(n_samples)]
    size = TABLES_AT_ONCE if np.isfinite(seen) else len(jobs)  # a constant: the result does not depend on n_jobs
    values: list = []
    for first in range(0, len(jobs), size):
        values += map_jobs(one, jobs[first : first + size], n_jobs, threads=True)
        if np.isfinite(seen) and len(over := np.flatnonzero(np.array(values) >= seen)) >= ENOUGH:
            return np.array(values[: over[ENOUGH - 1] + 1])
    return np.array(values)


def p_value(values, statistic, n_samples):
    """Share of the tables, the observed one among them, whose value is at least the statistic; `values` of `bootstrap`."""
    n_over = int((values >= statistic).sum())
    return n_over / len(values) if len(values) < n_samples else (1 + n_over) / (1 + n_samples)


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


def likelihood_ratio(codes, weights, cardinalities, fit, settings, rng):
    """(2 x the gain in log-likelihood by one more cluster, the model without it), both by EM whatever the settings average.

    The smaller model goes on from the tables of `fit`. The larger one has warm starts, every cluster of the smaller one split at
    random, and a few random ones: on 1000 rows such a fit takes a third of the time of 30 random starts and ends as high.
    """
    settings = settings._replace(
        averaging=None, init="random", keep_order=False, combine_starts="best", collapse="ignore", n_middle=None,
        n_final=N_FINISHED, accelerate=True, progress=None, n_jobs=1,
    )  # fmt: skip
    problem = make_problem(table_rows(codes, cardinalities, weights), len(fit.theta_c), settings.priors)
    given = tuple(np.array(part)[None] for part in flatten(fit.theta_c, fit.tables))  # copies: starts change in place
    small = conclude(problem, run_starts(problem, settings, given), settings)
    problem = problem.with_clusters(len(fit.theta_c) + 1)
    parts = zip(draw(problem, settings, N_RANDOM, rng), _split_at_random(small, rng))
    starts = tuple(np.concatenate(part) for part in parts)
    large = conclude(problem, run_starts(problem, settings, starts), settings)
    return 2 * (large.log_likelihood - small.log_likelihood), small


def _split_at_random(fit, rng):
    """(theta_c, theta) of `N_SPLITS` starts for every cluster, which two clusters of half its size and opposite tables replace."""
    k, cardinalities = len(fit.theta_c), np.diff(fit.state_start)
    theta_c, theta = [], []
    for c in np.repeat(np.arange(k), N_SPLITS):
        factor = np.exp(rng.standard_normal(len(fit.theta)))[:, None] ** [1, -1]
        halves = fit.theta[:, [c]] * factor
        halves /= np.repeat(np.add.reduceat(halves, fit.state_start[:-1], axis=0), cardinalities, axis=0)
        theta_c.append(np.append(np.delete(fit.theta_c, c), [fit.theta_c[c] / 2] * 2))
        theta.append(np.column_stack([np.delete(fit.theta, c, axis=1), halves]))
    return np.array(theta_c), np.array(theta)
