"""Data and priors of a latent-class model as the compiled loop reads them, and what is read off given tables.

Arrays: the states of all columns stand one after another, ``theta (n_states_total, n_clusters)``.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.foundation.numbers.dirichlet import (
    cell_pseudo_count,
    log_marginal_likelihood,
    posterior_mean,
    side_by_side_scores,
)
from pgm_bma.foundation.numbers.starts import align_labels
from pgm_bma.latent_class import _kernels as kernels

MODES = {None: kernels.EM, "linear": kernels.LINEAR, "variational": kernels.VARIATIONAL}
BATCH = 8  # starts in one compiled call
MAX_JOINT_STATES = 128  # of a super-column
MAX_UPDATES = 1_000_000  # of a start in one call: their path is kept


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


class Problem(NamedTuple):
    """Data and priors as the compiled loop reads them, and the step."""

    codes: np.ndarray
    cardinalities: np.ndarray
    settings: PriorSettings
    layout: kernels.Layout
    priors: kernels.Priors
    averaging: str | None
    n_clusters: int

    @property
    def mode(self):
        return MODES[self.averaging]

    def with_one_cluster(self):
        return make_problem(self.codes, self.cardinalities, self.layout.weights, 1, self.settings, self.averaging)

    def advance(self, runs, mode, stop, n_updates, tol, accelerate):
        """Take a batch of starts further; see `kernels.advance`. The paths of the objective come as a list."""
        n_updates = min(n_updates, MAX_UPDATES)
        work = kernels.make_work(self.layout, *runs.theta_c.shape, n_updates, accelerate)
        kernels.advance(self.layout, self.priors, runs, work, mode, stop, n_updates, tol, accelerate)
        lengths = work.found[:, 2].astype(np.int64) + 1
        return work.found, np.split(work.path[: lengths.sum()].copy(), np.cumsum(lengths)[:-1])

    def expected_counts(self, theta_c, theta):
        """See the function of that name."""
        found, counts = self._look(theta_c[None], theta[None])
        return counts[0], counts[1:], float(found[0, 0])

    @property
    def batch(self):
        """Starts in one compiled call; fixed, so that the number of threads changes nothing."""
        return BATCH

    def log_likelihoods(self, theta_c, theta):
        """(n_starts,) log p(data) at the tables of several starts."""
        return self._look(theta_c, theta)[0][:, 0]

    def _look(self, theta_c, theta):
        """`kernels.advance` without an update: `kernels.expectation` itself would be compiled a second time for it."""
        arcs, idle = np.empty((len(theta), len(self.layout.slots))), np.zeros(len(theta), dtype=np.int64)
        tables = (np.ascontiguousarray(theta_c), np.ascontiguousarray(theta))
        runs = kernels.Runs(*tables, np.empty_like(tables[0]), np.empty_like(tables[1]), arcs, idle)
        work = kernels.make_work(self.layout, *runs.theta_c.shape, 0, False)
        kernels.advance(self.layout, self.priors, runs, work, kernels.EM, False, 0, 0.0, False)
        return work.found, work.counts

    def alignment(self, reference, tables):
        """Order of the clusters of `tables` that fits those of the reference, both (theta_c, theta)."""
        responsibilities = (
            softmax(log_joint(self.codes, *t, self.layout.state_start), axis=1) for t in (reference, tables)
        )
        return align_labels(*responsibilities, self.layout.weights)


def make_problem(codes, cardinalities, weights, n_clusters, settings=None, averaging=None):
    """Data and priors in the form that the compiled loop reads."""
    settings = PriorSettings() if settings is None else settings
    alone, has_missing = column_counts(codes, weights, cardinalities)
    priors = make_priors(settings, alone, cardinalities, n_clusters, averaging)
    layout = join_columns(codes, weights, empty_layout(len(codes), cardinalities, has_missing))
    return Problem(codes, cardinalities, settings, layout, priors, averaging, n_clusters)


def make_priors(settings, alone, cardinalities, n_clusters, averaging):
    """The priors; an error where an average over structures has none. alone : (n_states_total,) counts of every state"""
    priors = _priors(settings, alone, state_offsets(cardinalities), cardinalities, n_clusters)
    if averaging is not None and not _is_proper(priors):
        raise ValueError("averaging over structures needs proper priors: every alpha must be greater than 0")
    return priors


def _is_proper(priors):
    return priors.cluster > 0 and bool((priors.dependent > 0).all())


def empty_layout(n_rows, cardinalities, has_missing):
    """Consecutive columns join a super-column while its joint states stay few; without rows as yet."""
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
    joined = np.empty((len(sizes), 0), dtype=np.uint8 if max(sizes) <= 256 else np.int32)
    starts = np.array(group_start, dtype=np.int64), state_offsets(sizes), state_offsets(cardinalities)
    return kernels.Layout(joined, np.empty(0), *starts, slots)


def join_columns(codes, weights, layout):
    """An empty layout with rows in it."""
    joined = np.zeros((len(layout.codes), len(codes)), dtype=layout.codes.dtype)
    for g, (first, last) in enumerate(pairwise(layout.group_start)):
        for i in range(first, last):
            n_states, slots = layout.state_start[i + 1] - layout.state_start[i], layout.slots[i]
            column = codes[:, i] if slots == n_states else np.where(codes[:, i] < 0, n_states, codes[:, i])
            if i > first:
                joined[g] *= int(slots)
            joined[g] += column.astype(joined.dtype, copy=False)
    return layout._replace(codes=joined, weights=weights)


def column_counts(codes, weights, cardinalities):
    """Weighted counts of every column on its own, one after another, and which columns have missing cells."""
    has_missing = np.array([len(codes) > 0 and column.min() < 0 for column in codes.T], dtype=bool)
    counts = [
        np.bincount(column.astype(np.int64) + 1, weights, minlength=1 + r)[1:]
        for column, r in zip(codes.T, cardinalities.tolist())
    ]
    return np.concatenate([np.empty(0), *counts]), has_missing


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
    return kernels.Priors(cluster, dependent, log_arc, log_alone, log_no_arc + log_alone, means)


# ---------------------------------------------------------------------------------------------- at given tables


def expected_counts(problem, theta_c, theta):
    """Expected counts under given tables: (n_clusters,), (n_states_total, n_clusters), and the log-likelihood."""
    return problem.expected_counts(theta_c, theta)


def layout_counts(layout, theta_c, theta):
    """The same on the rows of a layout."""
    class_counts, counts = np.empty(len(theta_c)), np.empty_like(theta)
    work = kernels.make_work(layout, 0, len(theta_c), 0, False)
    factors = theta.copy()  # the kernel raises tiny factors in place
    total = kernels.expectation(layout, theta_c, factors, class_counts, counts, work.tables, work.block, work.chunk_end)
    return class_counts, counts, float(total)


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
    if not _is_proper(priors):
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
    return float(log_p + expected_counts(problem, theta_c, theta)[2])


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
