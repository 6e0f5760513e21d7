"""Data and priors of a latent-class model as the loop reads them, and what is read off given tables.

Rows come as `Rows`: one block in memory, or many that are visited in passes. Everything that is wanted of them is a sum over
blocks, so that one block gives the same bits wherever it lies, and many differ by the rounding of their sums.
Arrays: the states of all columns stand one after another, ``theta (n_states_total, n_clusters)``; behind them every numeric column
has three lines, (1, E x, E x^2) of the standardised column (`_column_kernels`), which n_states_total counts too.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from pgm_bma.foundation.numbers.families import (
    cell_pseudo_count,
    log_marginal_likelihood,
    posterior_mean,
    side_by_side_scores,
    state_offsets,
)
from pgm_bma.foundation.rows.blocks import Rows, table_rows
from pgm_bma.foundation.tables.columns import smallest_dtype
from pgm_bma.latent_class import _kernels as kernels
from pgm_bma.latent_class import _pass_kernels as passes
from pgm_bma.latent_class._column_kernels import (
    LINES,
    Merges,
    NormalPrior,
    average_merged,
    log_density_lines,
    log_evidence,
    merge_scores,
    moments,
    number_scores,
)

MODES = {None: kernels.EM, "linear": kernels.LINEAR, "variational": kernels.VARIATIONAL}
MAX_JOINT_STATES = 128  # of a super-column


class PriorSettings(NamedTuple):
    """Pseudo-counts per cell, or BDeu's equivalent sample size; prior of the arcs, a number or one per column.

    parameter_prior : "paper" takes `independent` as it is; "consistent" multiplies it by the number of clusters, so that a
    column's table holds the same prior mass with and without the arc
    ordered : positions of the columns of states that are averaged over all ways to merge neighbouring levels. Given the arc, levels
    that all stay apart have prior 1/2, and the ways that merge some of them have the other half in equal parts
    """

    cluster: float = 1.0
    dependent: float = 1.0
    independent: float = 1.0
    arc_prior: float | np.ndarray = 0.5
    equivalent_sample_size: float | None = None
    parameter_prior: str = "paper"
    numbers: NormalPrior = NormalPrior()
    ordered: tuple = ()


class JoinedBlock(NamedTuple):
    """A block as the loop reads it: joint states of the super-columns (n_groups, n_rows), weights or None, and numbers
    (n_numbers, n_rows) or None."""

    codes: np.ndarray
    weights: np.ndarray | None
    numbers: np.ndarray | None


class LatentClassProblem(NamedTuple):
    """Data and priors as the loop reads them, and the step."""

    rows: Rows  # of `JoinedBlock`
    layout: kernels.ColumnGroups
    settings: PriorSettings
    priors: kernels.LatentClassPriors
    averaging: str | None
    n_clusters: int

    @property
    def mode(self):
        return MODES[self.averaging]

    def with_clusters(self, n_clusters):
        """The same problem with another number of clusters."""
        return self._replace(
            n_clusters=n_clusters, priors=make_priors(self.settings, self.rows, n_clusters, self.averaging)
        )

    def expected_counts(self, theta_c, theta):
        """Expected counts under given tables: (n_clusters,), (n_states_total, n_clusters), and the log-likelihood."""
        factors = as_factors(theta[None], self.layout)
        (counts,), (total,) = self.rows.reduce(expect_block, self.layout, theta_c[None], factors)
        return counts[0], counts[1:], float(total)

    def log_likelihoods(self, theta_c, theta):
        """(n_starts,) log p(data) at the tables of several starts."""
        return self.rows.reduce(expect_block, self.layout, theta_c, as_factors(theta, self.layout))[1]

    def alignment(self, reference, tables):
        """Order of the clusters of `tables` that fits those of the reference, both (theta_c, theta)."""
        (overlap,) = self.rows.reduce(overlap_block, self.layout, reference, tables)
        return linear_sum_assignment(overlap, maximize=True)[1]


def make_problem(rows, n_clusters, settings=None, averaging=None):
    """The problem of rows of codes; an error where an average over structures has no proper prior."""
    settings = PriorSettings() if settings is None else settings
    layout = group_columns(rows.n_rows, rows.schema.cardinalities, rows.has_missing, rows.log_scale)
    priors = make_priors(settings, rows, n_clusters, averaging)
    return LatentClassProblem(rows.prepared(join_block, layout), layout, settings, priors, averaging, n_clusters)


def sample_problem(problem, size):
    """The same problem on at most about `size` evenly spaced rows in memory, and the share of all weight that they have."""
    rows, layout = problem.rows, problem.layout
    parts = rows.collect(every_row, max(-(-rows.n_rows // size), 1))
    codes = split_columns(np.concatenate([part.codes for part in parts], axis=1), layout)
    weights = None if parts[0].weights is None else np.concatenate([part.weights for part in parts])
    numbers = None if parts[0].numbers is None else np.concatenate([part.numbers for part in parts], axis=1).T
    sample = table_rows(codes, np.diff(layout.state_start), weights, numbers, layout.log_scale)
    small = make_problem(sample, problem.n_clusters, problem.settings, problem.averaging)
    return small, sample.total_weight / rows.total_weight


def make_priors(settings, rows, n_clusters, averaging):
    """The priors, with what the rows say of columns on their own; an error where an average over structures has none."""
    cardinalities = rows.schema.cardinalities
    priors = _priors(settings, rows, state_offsets(cardinalities), cardinalities, n_clusters, averaging)
    if averaging is not None and not priors.has_scores:
        raise ValueError("averaging over structures needs proper priors: every alpha must be greater than 0")
    return priors


def group_columns(n_rows, cardinalities, has_missing, log_scale=()):
    """Consecutive columns join a super-column while its joint states stay few."""
    slots = cardinalities + has_missing
    # measured: on few rows a large joint table costs more than the look-ups that it saves
    limit = min(int(2 * np.sqrt(n_rows)), MAX_JOINT_STATES)
    group_start, sizes, size = [0], [], 1
    for i, n_slots in enumerate(slots.tolist()):
        if i > group_start[-1] and size * n_slots > limit:
            group_start.append(i)
            sizes.append(size)
            size = 1
        size *= n_slots
    group_start.append(len(slots))
    sizes.append(size)
    starts = np.array(group_start, dtype=np.int64), state_offsets(sizes), state_offsets(cardinalities)
    return kernels.ColumnGroups(*starts, slots, np.array(log_scale, dtype=float))


def _priors(settings, rows, state_start, cardinalities, n_clusters, averaging):
    n_columns, alone = len(cardinalities), rows.state_counts
    mass, kind = settings.equivalent_sample_size, settings.parameter_prior
    cluster = float(cell_pseudo_count(1, n_clusters, settings.cluster, mass, parameter_prior="paper"))
    # the table with the arc, n_clusters lines, is the paper's
    how = {"parameter_prior": kind, "reference": n_clusters}
    dependent, independent = (
        np.full(n_columns, cell_pseudo_count(q, cardinalities, alpha, mass, **how), dtype=float)
        for q, alpha in ((n_clusters, settings.dependent), (1, settings.independent))
    )
    per_state = np.repeat(independent, cardinalities)
    posterior = alone + per_state
    totals = np.repeat(np.add.reduceat(posterior, state_start[:-1]), cardinalities)
    with np.errstate(divide="ignore", invalid="ignore"):  # EM without a prior has no scores
        log_alone = side_by_side_scores(alone[None], per_state, state_start[:-1])[0]
        means = np.where(totals > 0, posterior / totals, 0)
        numbers = NormalPrior(*map(float, settings.numbers)) if len(rows.log_scale) else None
        if numbers is not None:
            number_scores_alone, number_means = _numbers_alone(numbers, rows)
            log_alone, means = np.append(log_alone, number_scores_alone), np.append(means, number_means)
        arc_prior = np.broadcast_to(np.asarray(settings.arc_prior, dtype=float), len(log_alone))
        log_arc, log_no_arc = np.log(arc_prior), np.log1p(-arc_prior)
    has_scores = cluster > 0 and bool((dependent > 0).all())
    ordered = [i for i in settings.ordered if cardinalities[i] > 2 and averaging is not None]
    merges = _merges(ordered, alone, independent, state_start) if ordered and has_scores else None
    return kernels.LatentClassPriors(
        cluster, dependent, log_arc, log_alone, log_no_arc + log_alone, means, has_scores, numbers, merges
    )


def _merges(ordered, alone, independent, state_start):
    """`Merges` of the columns `ordered`: inside a run, levels have the counts and pseudo-counts that they have without the arc."""
    which, squares = np.full(len(independent), -1), []
    for position, i in enumerate(ordered):
        counts, a = alone[state_start[i] : state_start[i + 1]], independent[i]
        r = len(counts)
        square = np.full((r, r), -np.inf)
        for first, last in zip(*np.triu_indices(r)):
            square[first, last] = log_marginal_likelihood(counts[None, first : last + 1], a)
        which[i] = position
        squares.append(square.ravel())
    log_weight = np.concatenate(squares)
    sizes = np.array([len(square) for square in squares])
    log_ways = (np.sqrt(sizes) - 1.0) * np.log(2.0)
    # levels that stay apart have prior 1/2; the 2^(r-1) - 2 ways that merge some but not all levels share the other half
    log_prior = -np.log(2.0) - log_ways - np.log1p(-2.0 * np.exp(-log_ways))
    log_apart = log_ways + np.log1p(-3.0 * np.exp(-log_ways))
    return Merges(which, state_offsets(sizes), log_weight, log_prior, log_apart, np.empty_like(log_weight))


def _numbers_alone(prior, rows):
    """Log evidence of every numeric column on its own (n_numbers,), and the lines of its posterior mean (LINES * n_numbers,)."""
    scores, lines = np.empty(len(rows.log_scale)), np.ones((len(rows.log_scale), LINES))
    for i, (sums, log_scale) in enumerate(zip(rows.number_sums.tolist(), rows.log_scale)):
        scores[i] = log_evidence(prior, *sums) - sums[0] * log_scale
        lines[i, 1:] = moments(prior, *sums, False)
    return scores, lines.ravel()


# ------------------------------------------------------------------------------------------------------- on a block


def join_block(block, layout):
    """Super-columns of a block of codes."""
    codes = np.asfortranarray(block.codes)
    n_groups, largest = len(layout.table_start) - 1, np.diff(layout.table_start).max()
    joined = np.zeros((n_groups, len(codes)), dtype=np.uint8 if largest <= 256 else np.int32)
    for g, (first, last) in enumerate(pairwise(layout.group_start)):
        for i in range(first, last):
            n_states, slots = layout.state_start[i + 1] - layout.state_start[i], layout.slots[i]
            column = codes[:, i] if slots == n_states else np.where(codes[:, i] < 0, n_states, codes[:, i])
            if i > first:
                joined[g] *= int(slots)
            joined[g] += column.astype(joined.dtype, copy=False)
    numbers = None if block.numbers is None else np.ascontiguousarray(block.numbers.T)
    return JoinedBlock(joined, block.weights, numbers)


def split_columns(states, layout):
    """The inverse of `join_block`: codes (n_rows, n_columns), -1 = missing."""
    slots, cardinalities = layout.slots, np.diff(layout.state_start)
    codes = np.empty((states.shape[1], len(slots)), dtype=smallest_dtype(int(cardinalities.max(initial=1))), order="F")
    for group, first in enumerate(layout.group_start[:-1]):
        rest = np.asarray(states[group], dtype=np.int64)
        for i in range(layout.group_start[group + 1] - 1, first - 1, -1):
            rest, code = np.divmod(rest, slots[i])
            codes[:, i] = np.where(code < cardinalities[i], code, -1)
    return codes


def every_row(block, step):
    """Every `step`-th row of a joined block."""
    weights = None if block.weights is None else np.array(block.weights[::step])
    numbers = None if block.numbers is None else np.array(block.numbers[:, ::step])
    return JoinedBlock(np.array(block.codes[:, ::step]), weights, numbers)


def expect_block(block, layout, all_factor_c, all_factors):
    """(counts (n_starts, 1 + n_states_total, n_clusters), sums of log normalisers (n_starts,)) at the factors of every start."""
    n_starts, n_states, n_clusters = all_factors.shape
    counts, totals = np.empty((n_starts, 1 + n_states, n_clusters)), np.empty(n_starts)
    passes.expect(
        layout,
        # a copy of read-only arrays alone (blocks that dask sent to another worker): for those, kernels would be compiled once more
        np.require(block.codes, requirements="W"),
        None if block.numbers is None else np.require(block.numbers, requirements="W"),
        _weights(block),
        np.array(all_factor_c, order="C"),
        np.array(all_factors, order="C"),  # a copy: the kernel raises tiny factors in place
        counts,
        totals,
        passes.pass_space(layout, n_clusters),
    )
    return counts, totals


def overlap_block(block, layout, reference, tables):
    """K x K overlap of two partitions of a block."""
    codes, numbers = split_columns(block.codes, layout), None if block.numbers is None else block.numbers.T
    first, second = (
        softmax(log_joint(codes, theta_c, theta, layout.state_start, numbers, layout.log_scale), axis=1)
        for theta_c, theta in (reference, tables)
    )
    return (first.T @ (second * _weights(block)[:, None]),)


_ones = np.ones(0)


def _weights(block):
    """Weights of a block; ones are shared by all blocks, so that they take no memory per row."""
    global _ones
    if block.weights is not None:
        return np.require(block.weights, requirements="W")
    n_rows = block.codes.shape[1]
    if len(_ones) < n_rows:
        _ones = np.ones(n_rows)
    return _ones[:n_rows]


# ---------------------------------------------------------------------------------------------- at given tables


def as_factors(theta, layout):
    """Tables (n_starts, n_states_total, n_clusters) as the expectation step takes them: numeric columns as log densities."""
    if not len(layout.log_scale):
        return theta
    factors, first = theta.copy(), layout.state_start[-1]
    for start in range(len(theta)):
        log_density_lines(layout.log_scale, theta[start, first:], factors[start, first:])
    return factors


def log_joint(codes, theta_c, theta, state_start, numbers=None, log_scale=None):
    """log p(cluster, row) of a fitted model, (n_rows, n_clusters); missing cells (-1, NaN) are summed out.

    numbers : (n_rows, n_numbers) standardised, where there are any     log_scale : (n_numbers,)
    """
    with np.errstate(divide="ignore"):
        logs = np.log(theta_c), np.log(theta[: state_start[-1]])
    joint = np.empty((len(codes), len(theta_c)))
    passes.log_joint(codes, state_start, *logs, joint)
    if numbers is None:
        return joint
    tables = np.ascontiguousarray(theta[state_start[-1] :])
    factors, sums = np.empty_like(tables), np.ascontiguousarray(joint.T)
    log_density_lines(log_scale, tables, factors)
    passes.add_log_densities(np.ascontiguousarray(numbers.T), 0, len(codes), factors, sums)
    return np.ascontiguousarray(sums.T)


def cheeseman_stutz(problem, class_counts, counts):
    """Cheeseman-Stutz score in nats: log p(W) - sum W log theta' + log p(D | theta'), W the expected counts.

    When the method averages over structures, so does the score: every column's factor of log p(W) is the average over
    "depends on the cluster" and "does not".
    """
    layout, priors = problem.layout, problem.priors
    if not priors.has_scores:
        return np.nan  # without a prior there is no p(W)
    # plain: once a fit is not worth compiling for
    starts, cardinalities = layout.state_start[:-1], np.diff(layout.state_start)
    all_counts, counts, n_numbers = (
        np.ascontiguousarray(counts),
        counts[: layout.state_start[-1]],
        len(layout.log_scale),
    )
    posterior = counts + np.repeat(priors.dependent, cardinalities)[:, None]
    theta = posterior / np.repeat(np.add.reduceat(posterior, starts, axis=0), cardinalities, axis=0)
    theta_c = posterior_mean(class_counts, priors.cluster)
    log_dependent = side_by_side_scores(counts.T, np.repeat(priors.dependent, cardinalities), starts).sum(axis=0)
    if priors.merges is not None:
        merges = priors.merges._replace(chosen=np.empty_like(priors.merges.chosen))
        for i in np.flatnonzero(merges.which >= 0):
            part = slice(*layout.state_start[i : i + 2])
            of_column = merges, i, priors.dependent[i], np.ascontiguousarray(counts[part])
            log_dependent[i] = merge_scores(*of_column)
            average_merged(*of_column, 1.0, priors.independent_mean[part], theta[part])
    log_factors = np.log(theta)
    if priors.numbers is not None:
        lines, tables, evidence = all_counts[len(theta) :], np.ones_like(all_counts[len(theta) :]), np.empty(n_numbers)
        number_scores(priors.numbers, layout.log_scale, lines, evidence)
        for i, k in np.ndindex(n_numbers, len(theta_c)):
            sums = lines[LINES * i : LINES * (i + 1), k]
            tables[LINES * i + 1 : LINES * (i + 1), k] = moments(priors.numbers, *sums, problem.mode == kernels.EM)
        log_dependent, theta = np.append(log_dependent, evidence), np.concatenate([theta, tables])
        log_factors = np.concatenate([log_factors, as_factors(theta[None], layout)[0, len(log_factors) :]])
    if problem.mode == kernels.EM:
        log_p = log_dependent.sum()
    else:
        log_p = np.logaddexp(priors.log_arc + log_dependent, priors.log_independent).sum()
    log_p += log_marginal_likelihood(class_counts[None], priors.cluster)
    log_p -= class_counts @ np.log(theta_c) + (all_counts * log_factors).sum()
    return float(log_p + problem.expected_counts(theta_c, theta)[2])


def cluster_dependence(theta_c, theta, state_start):
    """I_P of every column in nats: mean over clusters of KL(p(X_i), p(X_i | c)) (EMA eq. 16); large = dependent.

    p(X_i) of a numeric column is the Gaussian with the mean and variance of the mixture, whose divergences have a closed form.
    """
    theta, lines = theta[: state_start[-1]], theta[state_start[-1] :]
    marginal = (theta @ theta_c)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(marginal > 0, marginal * np.log(marginal / theta), 0.0)
    # a divergence is not negative: what rounding leaves below zero is zero
    of_states = np.maximum(np.add.reduceat(terms.mean(axis=1), state_start[:-1]), 0.0)
    if not len(lines):
        return of_states
    mean, variance = means_and_variances(lines)
    whole_mean, whole_variance = means_and_variances((lines @ theta_c)[:, None])
    ratio = whole_variance / variance
    divergence = 0.5 * (ratio - 1.0 - np.log(ratio) + (mean - whole_mean) ** 2 / variance)
    return np.append(of_states, np.maximum(divergence.mean(axis=1), 0.0))


def means_and_variances(lines):
    """Of every numeric column in every cluster, each (n_numbers, n_clusters), standardised."""
    return lines[1::LINES], lines[2::LINES] - lines[1::LINES] ** 2


def line_offsets(state_start, n_lines):
    """First line of every column of states and then of every numeric column, and the end."""
    return np.append(state_start, np.arange(state_start[-1] + LINES, n_lines + 1, LINES))


def flatten(theta_c, tables):
    """(theta_c, list of (n_clusters, cardinality)) -> (theta_c, theta (n_states_total, n_clusters))."""
    return np.asarray(theta_c, dtype=float), np.concatenate([np.asarray(table, dtype=float).T for table in tables])


def split_tables(theta, state_start):
    """theta (n_states_total, n_clusters) -> list of (n_clusters, cardinality)."""
    columns = np.ascontiguousarray(theta.T)
    return [columns[:, a:b] for a, b in pairwise(state_start)]


# ----------------------------------------------------------------------------------------------------- records


class LatentClassStarts(NamedTuple):
    """All starts of a run, one entry each."""

    theta_c: np.ndarray  # (n_starts, n_clusters)
    theta: np.ndarray  # (n_starts, n_states_total, n_clusters)
    arcs: np.ndarray  # (n_starts, n_columns)
    log_likelihood: np.ndarray
    evidence_bound: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    paths: tuple  # (n_iter + 1,) objective at the start and after every update
    collapsed: np.ndarray
    finished: np.ndarray  # whether it was run to the end


class LatentClassFit(NamedTuple):
    """The fitted model. `theta` holds the states of all columns one after another, then the lines of the numeric columns,
    (n_states_total, n_clusters)."""

    theta_c: np.ndarray
    theta: np.ndarray
    state_start: np.ndarray
    log_scale: np.ndarray  # (n_numbers,)
    arc_posterior: np.ndarray
    class_counts: np.ndarray
    counts: np.ndarray
    log_likelihood: float
    evidence_bound: float
    cheeseman_stutz: float
    n_iter: int
    converged: bool
    score_path: np.ndarray
    starts: LatentClassStarts
    weights: np.ndarray
    best: int
    all_collapsed: bool

    @property
    def tables(self):
        """List of (n_clusters, cardinality), rows sum to 1, of the columns of states."""
        return split_tables(self.theta, self.state_start)

    @property
    def line_start(self):
        """First line of every column, numeric ones too, and the end."""
        return line_offsets(self.state_start, len(self.theta))
