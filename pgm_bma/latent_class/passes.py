"""Latent-class models on rows that are not in memory: the loop of `_kernels.advance`, one pass over all blocks an iteration.

Every start is a small process that asks for the expected counts at its tables and goes on when it has them; all active starts are
answered by one pass. What happens between two passes is done by the same compiled functions as in memory, so that one block
gives the same bits as `_kernels.advance`, and many blocks differ by the rounding of their sums.

Starts are screened on a sample of the rows in memory, and the best few of them are run to the end on all rows.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

from pgm_bma.foundation.numbers.starts import choose_starts
from pgm_bma.foundation.rows.blocks import Rows
from pgm_bma.latent_class import _kernels as kernels
from pgm_bma.latent_class.loop import Starts, conclude, run_all_starts, run_starts, start_scores
from pgm_bma.latent_class.problem import (
    MODES,
    PriorSettings,
    empty_layout,
    join_columns,
    layout_counts,
    log_joint,
    make_priors,
    make_problem,
)

N_POLISHED = 4  # screened starts that are run on all rows


class Joined(NamedTuple):
    """A block as the loop reads it: joint states of the super-columns (n_groups, n_rows), and weights or None."""

    codes: np.ndarray
    weights: np.ndarray | None


class BlocksProblem(NamedTuple):
    """What `problem.Problem` is for rows in memory."""

    rows: Rows  # of `Joined` blocks
    settings: PriorSettings
    layout: kernels.Layout  # without rows
    priors: kernels.Priors
    averaging: str | None
    n_clusters: int

    @property
    def mode(self):
        return MODES[self.averaging]

    @property
    def batch(self):
        """Starts in one pass: all."""
        return 1 << 30

    def with_one_cluster(self):
        return blocks_problem(self.rows, self.layout, 1, self.settings, self.averaging)

    def advance(self, runs, mode, stop, n_updates, tol, accelerate):
        """As `kernels.advance`, all starts of the batch in one pass an iteration."""
        walks = [
            _walk(self.layout, self.priors, _Run(*arrays), runs.idle[i : i + 1], mode, stop, n_updates, tol, accelerate)
            for i, arrays in enumerate(zip(*runs[:-1]))
        ]
        found, paths = np.empty((len(walks), 4)), [np.empty(0)] * len(walks)
        asked = {start: next(walk) for start, walk in enumerate(walks)}
        while asked:
            tables = [np.stack(arrays) for arrays in zip(*asked.values())]
            sums = self.rows.reduce(expect_block, self.layout, *tables)
            asked, answered = {}, list(asked)
            for start, answer in zip(answered, zip(*sums)):
                try:
                    asked[start] = walks[start].send(answer)
                except StopIteration as end:
                    found[start], paths[start] = end.value
        return found, paths

    def expected_counts(self, theta_c, theta):
        """See `problem.expected_counts`."""
        (class_counts,), (counts,), (total,) = self.rows.reduce(expect_block, self.layout, theta_c[None], theta[None])
        return class_counts, counts, float(total)

    def log_likelihoods(self, theta_c, theta):
        """(n_starts,), in one pass."""
        return self.rows.reduce(expect_block, self.layout, theta_c, theta)[2]

    def alignment(self, reference, tables):
        """See `problem.Problem.alignment`: the overlap of two partitions is a sum over rows."""
        (overlap,) = self.rows.reduce(overlap_block, self.layout, reference, tables)
        return linear_sum_assignment(overlap, maximize=True)[1]


def fit_blocks(joined, layout, n_clusters, settings, rng, sample=None):
    """Fit a latent-class model with a given number of clusters on blocks.

    joined, layout : see `join_rows`
    settings, rng : as for `loop.fit_latent_class`
    sample : (codes, share of the rows that they are) to screen the starts on; None runs every start on all rows
    returns a `LatentClassFit`
    """
    problem = blocks_problem(joined, layout, n_clusters, settings.priors, settings.averaging)
    if sample is None:
        return conclude(problem, run_all_starts(problem, settings, rng), settings)
    return conclude(problem, _screened(problem, settings, rng, *sample), settings)


def join_rows(rows):
    """(rows of `Joined` blocks, layout without rows) of rows of codes."""
    layout = empty_layout(rows.n_rows, rows.schema.cardinalities, rows.has_missing)
    return rows.prepared(join_block, layout), layout


def sample_codes(joined, layout, size):
    """(codes, share) of at most about `size` evenly spaced rows of joined blocks; weights are drawn with their rows."""
    step = max(-(-joined.n_rows // size), 1)
    parts = joined.collect(every_row, step)
    states = np.concatenate([states for states, _ in parts], axis=1)
    weights = None if parts[0][1] is None else np.concatenate([w for _, w in parts])
    total = states.shape[1] if weights is None else weights.sum()
    return (split_columns(states, layout), weights), total / joined.total_weight


def blocks_problem(joined, layout, n_clusters, settings, averaging):
    """The problem of a number of clusters."""
    cardinalities = np.diff(layout.state_start)
    priors = make_priors(settings, joined.state_counts, cardinalities, n_clusters, averaging)
    return BlocksProblem(joined, settings, layout, priors, averaging, n_clusters)


def _screened(problem, settings, rng, rows, share):
    """All starts on the sample, the best of them that differ on all rows; `finished` tells which those are."""
    codes, weights = rows
    weights = np.ones(len(codes)) if weights is None else weights
    cardinalities = np.diff(problem.layout.state_start)
    small = make_problem(codes, cardinalities, weights, problem.n_clusters, problem.settings, problem.averaging)
    starts = run_all_starts(small, settings, rng)
    chosen = choose_starts(start_scores(small, starts), starts.finished & ~starts.collapsed, N_POLISHED)
    if not isinstance(settings.init, str):
        chosen = np.union1d(chosen, [0])  # the given tables keep their place
    tables = starts.theta_c[chosen].copy(), starts.theta[chosen].copy()
    polished = run_starts(problem, settings._replace(init="random", n_final=None), tables)
    finished = np.isin(np.arange(len(starts.collapsed)), chosen)
    merged = []
    for name, old, new in zip(Starts._fields, starts, polished):
        if name == "finished":
            merged.append(finished)
        elif name == "paths":
            replaced = dict(zip(chosen.tolist(), new))
            merged.append(tuple(replaced.get(i, path) for i, path in enumerate(old)))
        else:
            # scores of a sample, scaled to all rows, for those that saw no more
            scaled = old / share if name in ("log_likelihood", "evidence_bound") else old.copy()
            scaled[chosen] = new
            merged.append(scaled)
    return Starts(*merged)


# ------------------------------------------------------------------------------------------------------ one start


class _Run(NamedTuple):
    """The tables of one start, renewed in place; see `kernels.Runs`."""

    theta_c: np.ndarray
    theta: np.ndarray
    factor_c: np.ndarray
    factors: np.ndarray
    arcs: np.ndarray


def _walk(layout, priors, run, idle, mode, stop_collapsed, max_iter, tol, accelerate):
    """One start of `kernels.advance` as a generator: it yields (factor_c, factors) and is sent (class counts, counts, total).

    Returns (total, bound, updates, how it ended) and the path of the objective.
    """
    theta_c, theta, factor_c, factors, arcs = run
    has_scores = priors.cluster > 0.0 and bool((priors.dependent > 0.0).all())
    log_factors, log_dependent = np.empty_like(theta), np.empty(len(layout.slots))
    counts = np.empty((1 + len(theta), len(theta_c)))
    kept = np.empty((3, *counts.shape))
    path, bound, n_iter, ended, is_last = [], np.nan, 0, kernels.EXHAUSTED, max_iter == 0
    cycle, is_trial, known, limit = 0, False, -np.inf, 4.0
    while True:
        if mode != kernels.VARIATIONAL:
            factor_c[:], factors[:] = theta_c, theta
        if has_scores and ((mode != kernels.VARIATIONAL and is_last) or n_iter == 0):
            kernels.log_into(factors, log_factors)
        counts[0], counts[1:], total = yield factor_c, factors
        if has_scores and (mode != kernels.EM or is_last):
            kernels.family_scores(layout, priors, counts[0], counts[1:], log_dependent)
            if mode == kernels.VARIATIONAL or is_last:
                bound = kernels.bound_at(
                    layout, priors, total, factor_c, log_factors, counts[0], counts[1:], log_dependent
                )
        value = kernels.objective(layout, priors, mode, total, bound, theta_c, theta)
        is_taken_back = is_trial and not value >= known - 1e-12 * abs(known)
        if is_taken_back:
            counts[:] = kept[2]
            limit = max(limit / 4.0, 1.0)
        else:
            path.append(value)
            if is_last:
                break
            n_iter += 1
        is_trial = False
        if accelerate and not is_taken_back:
            kept[cycle] = counts
            if cycle == 2:
                step = kernels.step_length(kept)
                if step > limit:
                    step, limit = limit, 4.0 * limit
                is_trial = step > 1.0
                if is_trial:
                    kernels.extrapolate(kept, step, counts)
            known, cycle = value, (cycle + 1) % 3
        if has_scores and mode != kernels.EM and (is_trial or is_taken_back):
            kernels.family_scores(layout, priors, counts[0], counts[1:], log_dependent)
        is_averaged = mode != kernels.EM
        change = kernels.average(
            layout, priors, counts[0], counts[1:], is_averaged, log_dependent, theta_c, theta, arcs
        )
        if mode == kernels.VARIATIONAL:
            kernels.expected_logs(layout, priors, counts[0], counts[1:], arcs, factor_c, factors, log_factors)
        if mode != kernels.EM and stop_collapsed:
            idle[0] = idle[0] + 1 if kernels.no_arc(priors, log_dependent) else 0
        if idle[0] >= kernels.PATIENCE or (idle[0] > 0 and change < tol):
            ended = kernels.COLLAPSED
        elif change < tol and not is_trial and not is_taken_back and (mode != kernels.VARIATIONAL or n_iter > 1):
            ended = kernels.CONVERGED
        is_last = ended != kernels.EXHAUSTED or n_iter == max_iter
    if mode == kernels.EM or max_iter == 0:
        kernels.arc_posteriors(priors, log_dependent, has_scores, arcs)
    return np.array([total, bound, n_iter, ended]), np.array(path)


# -------------------------------------------------------------------------------------------------------- on a block


def join_block(block, layout):
    """Super-columns of a block of codes."""
    return Joined(join_columns(np.asfortranarray(block.codes), None, layout).codes, block.weights)


def expect_block(block, layout, all_factor_c, all_factors):
    """(class counts, counts, sums of log normalisers) of every start, first axis the starts."""
    filled = _filled(block, layout)
    parts = [layout_counts(filled, factor_c, factors) for factor_c, factors in zip(all_factor_c, all_factors)]
    class_counts, counts, totals = zip(*parts)
    return np.array(class_counts), np.array(counts), np.array(totals)


def overlap_block(block, layout, reference, tables):
    """K x K overlap of two partitions of a block."""
    codes = split_columns(block.codes, layout)
    first, second = (softmax(log_joint(codes, *t, layout.state_start), axis=1) for t in (reference, tables))
    return (first.T @ (second * _weights(block)[:, None]),)


def every_row(block, step):
    """(joint states, weights) of every `step`-th row."""
    return np.array(block.codes[:, ::step]), None if block.weights is None else np.array(block.weights[::step])


def split_columns(states, layout):
    """The inverse of `problem.join_columns`: codes (n_rows, n_columns), -1 = missing."""
    slots, cardinalities = layout.slots, np.diff(layout.state_start)
    codes = np.empty((states.shape[1], len(slots)), dtype=np.int32, order="F")
    for group, first in enumerate(layout.group_start[:-1]):
        rest = np.asarray(states[group], dtype=np.int64)
        for i in range(layout.group_start[group + 1] - 1, first - 1, -1):
            rest, code = np.divmod(rest, slots[i])
            codes[:, i] = np.where(code < cardinalities[i], code, -1)
    return codes


def _filled(block, layout):
    # a copy of read-only arrays alone (blocks that dask sent to another worker): for those, functions would be compiled once more
    return layout._replace(codes=np.require(block.codes, requirements="W"), weights=_weights(block))


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
