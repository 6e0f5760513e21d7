"""Data and priors of a latent-class model as the loop reads them, and what is read off given tables.

Rows come as `Rows`: one block in memory, or many that are visited in passes. Everything that is wanted of them is a sum over
blocks, so that one block gives the same bits wherever it lies, and many differ by the rounding of their sums.
Arrays: the states of all columns stand one after another, ``theta (n_states_total, n_clusters)``.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.foundation.numbers.dirichlet import (
    cell_pseudo_count,
    log_marginal_likelihood,
    posterior_mean,
    side_by_side_scores,
)
from pgm_bma.foundation.rows.blocks import Rows, table_rows
from pgm_bma.foundation.tables.columns import smallest_dtype
from pgm_bma.latent_class import _kernels as kernels

MODES = {None: kernels.EM, "linear": kernels.LINEAR, "variational": kernels.VARIATIONAL}
MAX_JOINT_STATES = 128  # of a super-column


class PriorSettings(NamedTuple):
    """Pseudo-counts per cell, or BDeu's equivalent sample size; prior of the arcs, a number or one per column.

    parameter_prior : "paper" takes `independent` as it is; "consistent" multiplies it by the number of clusters, so that a
    column's table holds the same prior mass with and without the arc
    """

    cluster: float = 1.0
    dependent: float = 1.0
    independent: float = 1.0
    arc_prior: float | np.ndarray = 0.5
    equivalent_sample_size: float | None = None
    parameter_prior: str = "paper"


class JoinedBlock(NamedTuple):
    """A block as the loop reads it: joint states of the super-columns (n_groups, n_rows), and weights or None."""

    codes: np.ndarray
    weights: np.ndarray | None


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
        cardinalities, alone = np.diff(self.layout.state_start), self.rows.state_counts
        priors = make_priors(self.settings, alone, cardinalities, n_clusters, self.averaging)
        return self._replace(n_clusters=n_clusters, priors=priors)

    def expected_counts(self, theta_c, theta):
        """Expected counts under given tables: (n_clusters,), (n_states_total, n_clusters), and the log-likelihood."""
        (counts,), (total,) = self.rows.reduce(expect_block, self.layout, theta_c[None], theta[None])
        return counts[0], counts[1:], float(total)

    def log_likelihoods(self, theta_c, theta):
        """(n_starts,) log p(data) at the tables of several starts."""
        return self.rows.reduce(expect_block, self.layout, theta_c, theta)[1]

    def alignment(self, reference, tables):
        """Order of the clusters of `tables` that fits those of the reference, both (theta_c, theta)."""
        (overlap,) = self.rows.reduce(overlap_block, self.layout, reference, tables)
        return linear_sum_assignment(overlap, maximize=True)[1]


def make_problem(rows, n_clusters, settings=None, averaging=None):
    """The problem of rows of codes; an error where an average over structures has no proper prior."""
    settings = PriorSettings() if settings is None else settings
    layout = group_columns(rows.n_rows, rows.schema.cardinalities, rows.has_missing)
    priors = make_priors(settings, rows.state_counts, rows.schema.cardinalities, n_clusters, averaging)
    return LatentClassProblem(rows.prepared(join_block, layout), layout, settings, priors, averaging, n_clusters)


def sample_problem(problem, size):
    """The same problem on at most about `size` evenly spaced rows in memory, and the share of all weight that they have."""
    rows, layout = problem.rows, problem.layout
    parts = rows.collect(every_row, max(-(-rows.n_rows // size), 1))
    codes = split_columns(np.concatenate([part.codes for part in parts], axis=1), layout)
    weights = None if parts[0].weights is None else np.concatenate([part.weights for part in parts])
    sample = table_rows(codes, np.diff(layout.state_start), weights)
    small = make_problem(sample, problem.n_clusters, problem.settings, problem.averaging)
    return small, sample.total_weight / rows.total_weight


def make_priors(settings, alone, cardinalities, n_clusters, averaging):
    """The priors; an error where an average over structures has none. alone : (n_states_total,) counts of every state"""
    priors = _priors(settings, alone, state_offsets(cardinalities), cardinalities, n_clusters)
    if averaging is not None and not priors.has_scores:
        raise ValueError("averaging over structures needs proper priors: every alpha must be greater than 0")
    return priors


def group_columns(n_rows, cardinalities, has_missing):
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
    return kernels.ColumnGroups(*starts, slots)


def _priors(settings, alone, state_start, cardinalities, n_clusters):
    n_columns = len(cardinalities)
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
        arc_prior = np.broadcast_to(np.asarray(settings.arc_prior, dtype=float), n_columns)
        log_arc, log_no_arc = np.log(arc_prior), np.log1p(-arc_prior)
    has_scores = cluster > 0 and bool((dependent > 0).all())
    return kernels.LatentClassPriors(cluster, dependent, log_arc, log_alone, log_no_arc + log_alone, means, has_scores)


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
    return JoinedBlock(joined, block.weights)


def split_columns(states, layout):
    """The inverse of `join_block`: codes (n_rows, n_columns), -1 = missing."""
    slots, cardinalities = layout.slots, np.diff(layout.state_start)
    codes = np.empty((states.shape[1], len(slots)), dtype=smallest_dtype(int(cardinalities.max())), order="F")
    for group, first in enumerate(layout.group_start[:-1]):
        rest = np.asarray(states[group], dtype=np.int64)
        for i in range(layout.group_start[group + 1] - 1, first - 1, -1):
            rest, code = np.divmod(rest, slots[i])
            codes[:, i] = np.where(code < cardinalities[i], code, -1)
    return codes


def every_row(block, step):
    """Every `step`-th row of a joined block."""
    weights = None if block.weights is None else np.array(block.weights[::step])
    return JoinedBlock(np.array(block.codes[:, ::step]), weights)


def expect_block(block, layout, all_factor_c, all_factors):
    """(counts (n_starts, 1 + n_states_total, n_clusters), sums of log normalisers (n_starts,)) at the tables of every start."""
    n_starts, n_states, n_clusters = all_factors.shape
    counts, totals = np.empty((n_starts, 1 + n_states, n_clusters)), np.empty(n_starts)
    space = np.empty((2, layout.table_start[-1], n_clusters)), np.empty((2, kernels.BLOCK, n_clusters))
    kernels.expect(
        layout,
        # a copy of read-only arrays alone (blocks that dask sent to another worker): for those, kernels would be compiled once more
        np.require(block.codes, requirements="W"),
        _weights(block),
        np.array(all_factor_c, order="C"),
        np.array(all_factors, order="C"),  # a copy: the kernel raises tiny factors in place
        counts,
        totals,
        *space,
        np.empty(len(layout.table_start) - 1, dtype=np.int64),
    )
    return counts, totals


def overlap_block(block, layout, reference, tables):
    """K x K overlap of two partitions of a block."""
    codes = split_columns(block.codes, layout)
    first, second = (softmax(log_joint(codes, *t, layout.state_start), axis=1) for t in (reference, tables))
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


def log_joint(codes, theta_c, theta, state_start):
    """log p(cluster, row) of a fitted model, (n_rows, n_clusters); missing cells (-1) are summed out."""
    with np.errstate(divide="ignore"):
        logs = np.log(theta_c), np.log(theta)
    joint = np.empty((len(codes), len(theta_c)))
    kernels.log_joint(codes, state_start, *logs, joint)
    return joint


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
    posterior = counts + np.repeat(priors.dependent, cardinalities)[:, None]
    theta = posterior / np.repeat(np.add.reduceat(posterior, starts, axis=0), cardinalities, axis=0)
    theta_c = posterior_mean(class_counts, priors.cluster)
    log_dependent = side_by_side_scores(counts.T, np.repeat(priors.dependent, cardinalities), starts).sum(axis=0)
    if problem.mode == kernels.EM:
        log_p = log_dependent.sum()
    else:
        log_p = np.logaddexp(priors.log_arc + log_dependent, priors.log_independent).sum()
    log_p += log_marginal_likelihood(class_counts[None], priors.cluster)
    log_p -= class_counts @ np.log(theta_c) + (counts * np.log(theta)).sum()
    return float(log_p + problem.expected_counts(theta_c, theta)[2])


def cluster_dependence(theta_c, theta, state_start):
    """I_P of every column in nats: mean over clusters of KL(p(X_i), p(X_i | c)) (EMA eq. 16); large = dependent."""
    marginal = (theta @ theta_c)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(marginal > 0, marginal * np.log(marginal / theta), 0.0)
    # a divergence is not negative: what rounding leaves below zero is zero
    return np.maximum(np.add.reduceat(terms.mean(axis=1), state_start[:-1]), 0.0)


def flatten(theta_c, tables):
    """(theta_c, list of (n_clusters, cardinality)) -> (theta_c, theta (n_states_total, n_clusters))."""
    return np.asarray(theta_c, dtype=float), np.concatenate([np.asarray(table, dtype=float).T for table in tables])


def split_tables(theta, state_start):
    """theta (n_states_total, n_clusters) -> list of (n_clusters, cardinality)."""
    columns = np.ascontiguousarray(theta.T)
    return [columns[:, a:b] for a, b in pairwise(state_start)]
