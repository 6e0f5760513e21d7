"""Latent-class models: EM, EMA (EM that averages over selective naive Bayes structures) and its variational twin.

One cluster variable C, columns independent given it. The three methods share one loop (`_latent_class_kernels.run_start`)
and differ in the step that turns expected counts into tables:

- ``averaging=None``: EM, posterior means (EMA eq. 7);
- ``averaging="linear"``: EMA, the average over all 2^n structures in which every column may or may not depend on C: the
  mean with the arc and the mean without it, mixed by the posterior of the arc (EMA eq. 10-14; `foundation.averaging` is the
  same formula for observed counts);
- ``averaging="variational"``: the same mixture, but the expectation step uses expected logs, and an evidence bound climbs.

In: integer codes (-1 = missing, exactly marginalised), weights, cardinalities. Out: a `LatentClassFit` of arrays.
Santafe, Lozano, Larranaga, "Bayesian model averaging of naive Bayes for clustering", IEEE Trans. SMC-B 36 (2006).
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, softmax

from pgm_bma.foundation.parallel import map_jobs
from pgm_bma.foundation.starts import align_labels, start_weights
from pgm_bma.latent_class import _kernels as kernels

MODES = {None: kernels.EM, "linear": kernels.LINEAR, "variational": kernels.VARIATIONAL}
COMBINATIONS = ("best", "uniform", "likelihood", "evidence")
BATCH = 8  # starts in one compiled call; fixed, so that the number of threads changes nothing
MAX_JOINT_STATES = 128  # of a super-column
REPLICATE_LIMIT = 200  # starts tried by n_init="until-replicated"
IDENTICAL = 1e-3  # EM ends without clusters when no table differs between them by more than this


def fit_latent_class(
    codes,
    cardinalities,
    n_clusters,
    *,
    weights=None,
    rng=None,
    averaging=None,
    priors=None,
    n_init=30,
    init="random",
    combine_starts="best",
    collapse="stop",
    max_iter=1000,
    tol=1e-6,
    n_jobs=1,
    progress=None,
    keep_order=None,
):
    """Fit a latent-class model with a given number of clusters.

    Parameters
    ----------
    codes : (n_rows, n_columns) integers, -1 = missing
    cardinalities : (n_columns,)
    n_clusters : int
    weights : (n_rows,), optional
    rng : numpy.random.Generator
        Start i is drawn from its i-th spawned child, whatever `n_init` is.
    averaging : None (EM), "linear" (EMA) or "variational"
    priors : PriorSettings, optional
        By default alpha = 1 in every cell and an arc prior of 0.5.
    n_init : int or "until-replicated"
        Starts; or as many as it takes to find the best score twice (at most ``REPLICATE_LIMIT``).
    init : "random", "em", or (theta_c, tables)
        Dirichlet(1) tables; the EM solutions that such tables lead to; or given ones, (n_clusters,) and a list of
        (n_clusters, cardinality), as start 0 with random starts after it.
    combine_starts : "best", "uniform", "likelihood" or "evidence"
        The best start, or an average of the aligned starts with those weights.
    collapse : "stop" or "ignore"
    max_iter, tol : updates at most, and the largest parameter change that counts as converged
    n_jobs : int
        Threads; -1 for all processors. The result does not depend on it.
    progress : callable (n_done) -> None, optional
    keep_order : bool, optional
        Keep the order of the given tables; else clusters are numbered by falling probability. Default: as `init` is given.

    Returns
    -------
    LatentClassFit
    """
    codes = np.asfortranarray(codes)
    cardinalities = np.asarray(cardinalities, dtype=np.int64)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    problem = make_problem(codes, cardinalities, weights, n_clusters, priors, averaging)
    rng = np.random.default_rng() if rng is None else rng
    starts = run_all_starts(problem, n_clusters, init, n_init, rng, collapse, max_iter, tol, n_jobs, progress)
    keep_order = not isinstance(init, str) if keep_order is None else keep_order
    return conclude(problem, starts, combine_starts, collapse, keep_order)


# ------------------------------------------------------------------------------------------------- the problem


def make_problem(codes, cardinalities, weights, n_clusters, settings=None, averaging=None):
    """Data and priors in the form that the compiled loop reads."""
    settings = PriorSettings() if settings is None else settings
    state_start = np.concatenate([[0], np.cumsum(cardinalities)]).astype(np.int64)
    alone, has_missing = np.zeros(state_start[-1]), np.zeros(len(cardinalities), dtype=np.bool_)
    kernels.column_counts(codes, weights, state_start, alone, has_missing)
    priors = _priors(settings, alone, state_start, cardinalities, n_clusters)
    if averaging is not None and not (priors.cluster > 0 and (priors.dependent > 0).all()):
        raise ValueError("averaging over structures needs proper priors: every alpha must be greater than 0")
    layout = _layout(codes, weights, cardinalities, state_start, has_missing)
    return Problem(codes, cardinalities, settings, layout, priors, averaging)


def _layout(codes, weights, cardinalities, state_start, has_missing):
    """Consecutive columns join a super-column while its joint states stay few."""
    slots = cardinalities + has_missing
    # measured: on few rows a large joint table costs more than the look-ups that it saves
    limit = min(int(2 * np.sqrt(len(codes))), MAX_JOINT_STATES)
    group_start, sizes, size = [0], [], 1
    for i, n_slots in enumerate(slots.tolist()):
        if i > group_start[-1] and size * n_slots > limit:
            group_start.append(i)
            sizes.append(size)
            size = 1
        size *= n_slots
    group_start.append(len(slots))
    sizes.append(size)
    group_start = np.array(group_start, dtype=np.int64)
    table_start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    joined = np.empty((len(sizes), len(codes)), dtype=np.uint8 if max(sizes) <= 256 else np.int32)
    kernels.join_codes(codes, group_start, cardinalities, slots, joined)
    return kernels.Layout(joined, weights, group_start, table_start, state_start, slots)


def _priors(settings, alone, state_start, cardinalities, n_clusters):
    n_columns = len(cardinalities)
    mass = settings.equivalent_sample_size
    if mass is None:
        cluster = float(settings.cluster)
        dependent = np.full(n_columns, float(settings.dependent))
        independent = np.full(n_columns, float(settings.independent))
    else:  # BDeu: the same mass in every table
        cluster, dependent, independent = mass / n_clusters, mass / (n_clusters * cardinalities), mass / cardinalities
    per_state = np.repeat(independent, cardinalities)
    totals = np.add.reduceat(alone + per_state, state_start[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        log_alone = np.add.reduceat(gammaln(alone + per_state) - gammaln(per_state), state_start[:-1])
        log_alone += gammaln(independent * cardinalities) - gammaln(totals)
        means = np.where(
            np.repeat(totals, cardinalities) > 0, (alone + per_state) / np.repeat(totals, cardinalities), 0
        )
        arc_prior = np.broadcast_to(np.asarray(settings.arc_prior, dtype=float), n_columns)
        log_arc, log_no_arc = np.log(arc_prior), np.log1p(-arc_prior)
    return kernels.Priors(cluster, dependent, log_arc, log_alone, log_no_arc + log_alone, means)


# -------------------------------------------------------------------------------------------------- the starts


def run_all_starts(problem, n_clusters, init, n_init, rng, collapse, max_iter, tol, n_jobs, progress):
    """Draw and iterate the starts, batch by batch."""
    given = None if isinstance(init, str) else flatten(*init)
    warm = isinstance(init, str) and init == "em"
    stop = collapse == "stop" and n_clusters > 1  # one cluster has nothing to lose

    def run(batch):
        theta_c, theta = batch
        arcs = np.empty((len(theta_c), len(problem.layout.slots)))
        if warm:
            kernels.run_starts(problem.layout, problem.priors, theta_c, theta, arcs, kernels.EM, False, max_iter, tol)
        found, paths = kernels.run_starts(
            problem.layout, problem.priors, theta_c, theta, arcs, problem.mode, stop, max_iter, tol
        )
        log_likelihood = found[:, 0]
        if problem.mode == kernels.VARIATIONAL:  # the loop normalised expected logs; this is p(D | averaged tables)
            log_likelihood = np.array([expected_counts(problem, *tables)[2] for tables in zip(theta_c, theta)])
        if progress is not None:
            progress(len(theta_c))
        return Starts(
            theta_c,
            theta,
            arcs,
            log_likelihood,
            found[:, 1],
            found[:, 2].astype(np.int64),
            found[:, 3] == kernels.CONVERGED,
            (found[:, 3] == kernels.COLLAPSED) | (stop & _all_identical(problem, theta)),
            tuple(path[: int(n) + 1] for path, n in zip(paths, found[:, 2])),
        )

    def draw(n, is_first):
        theta_c, theta = draw_starts(problem.layout, n_clusters, rng.spawn(n))
        if given is not None and is_first:
            theta_c[0], theta[0] = given
        return theta_c, theta

    if n_init != "until-replicated":
        theta_c, theta = draw(n_init, True)
        batches = [(theta_c[i : i + BATCH], theta[i : i + BATCH]) for i in range(0, n_init, BATCH)]
        return _join(map_jobs(run, [(batch,) for batch in batches], n_jobs, threads=True))
    starts = run(draw(BATCH, True))
    while len(starts.collapsed) < REPLICATE_LIMIT and not _is_replicated(problem, starts):
        starts = _join([starts, run(draw(BATCH, False))])
    return starts


def draw_starts(layout, n_clusters, generators):
    """Dirichlet(1) tables for every generator: theta_c (n_starts, n_clusters), theta (n_starts, n_states, n_clusters)."""
    cardinalities = np.diff(layout.state_start)
    theta_c = np.empty((len(generators), n_clusters))
    theta = np.empty((len(generators), layout.state_start[-1], n_clusters))
    for start, rng in enumerate(generators):
        theta_c[start] = rng.standard_exponential(n_clusters)
        theta[start] = rng.standard_exponential(theta.shape[1:])
    theta_c /= theta_c.sum(axis=1, keepdims=True)
    totals = np.add.reduceat(theta, layout.state_start[:-1], axis=1)
    theta /= np.repeat(totals, cardinalities, axis=1)
    return theta_c, theta


def _all_identical(problem, theta):
    """(n_starts,) whether a start of EM ended with one and the same table in every cluster."""
    if problem.mode != kernels.EM or theta.shape[2] == 1:
        return np.zeros(len(theta), dtype=bool)
    return (theta.max(axis=2) - theta.min(axis=2)).max(axis=1) < IDENTICAL


def _is_replicated(problem, starts):
    scores = np.sort(start_scores(problem, starts)[~starts.collapsed])[::-1]
    # two runs into one optimum differ by what `tol` leaves open, far below a thousandth of a nat
    return len(scores) > 1 and scores[0] - scores[1] < 1e-3 + 1e-7 * abs(scores[0])


def start_scores(problem, starts):
    """What ranks the starts: the evidence bound where it is climbed, else the log-likelihood (as in the paper)."""
    return starts.evidence_bound if problem.mode == kernels.VARIATIONAL else starts.log_likelihood


def _join(batches):
    return Starts(
        *(np.concatenate(parts) if isinstance(parts[0], np.ndarray) else sum(parts, ()) for parts in zip(*batches))
    )


# ---------------------------------------------------------------------------------------------- the conclusion


def conclude(problem, starts, combine_starts, collapse, keep_order):
    """Choose or average the starts, put the clusters in order, and score what is returned."""
    alive = ~starts.collapsed if collapse == "stop" else np.ones(len(starts.collapsed), dtype=bool)
    if not alive.any():
        return _one_cluster(problem, starts, collapse)
    by_evidence = combine_starts == "evidence" or (
        combine_starts != "likelihood" and problem.mode == kernels.VARIATIONAL
    )
    score = starts.evidence_bound if by_evidence else starts.log_likelihood
    best = int(np.argmax(np.where(alive, score, -np.inf)))
    weights = start_weights(combine_starts, starts.log_likelihood, starts.evidence_bound, alive, best)
    reference = 0 if keep_order and alive[0] else best
    theta_c, theta, arcs = _average_starts(problem, starts, weights, reference)
    if not keep_order:
        order = np.argsort(-theta_c, kind="stable")
        theta_c, theta = theta_c[order], np.ascontiguousarray(theta[:, order])
    return _fit_record(problem, starts, weights, best, theta_c, theta, arcs, False)


def _one_cluster(problem, starts, collapse):
    """Every start collapsed: the data show no clusters to this method, and the answer is the one-cluster model."""
    single = problem.with_one_cluster()
    run = run_all_starts(single, 1, "random", 1, np.random.default_rng(0), "ignore", 100, 1e-12, 1, None)
    fit = _fit_record(single, run, np.ones(1), 0, run.theta_c[0], run.theta[0], run.arcs[0], True)
    return fit._replace(starts=starts, weights=np.zeros(len(starts.collapsed)))


def _average_starts(problem, starts, weights, reference):
    used = np.flatnonzero(weights)
    if len(used) == 1 and used[0] == reference:
        return starts.theta_c[reference], starts.theta[reference], starts.arcs[reference]
    target = _responsibilities(problem, starts.theta_c[reference], starts.theta[reference])
    theta_c, theta = np.zeros_like(starts.theta_c[0]), np.zeros_like(starts.theta[0])
    for start in used:
        start_c, start_theta = starts.theta_c[start], starts.theta[start]
        if start == reference:
            order = np.arange(len(start_c))
        else:
            order = align_labels(target, _responsibilities(problem, start_c, start_theta), problem.layout.weights)
        theta_c += weights[start] * start_c[order]
        theta += weights[start] * start_theta[:, order]
    return theta_c, theta, weights @ starts.arcs


def _responsibilities(problem, theta_c, theta):
    return softmax(log_joint(problem.codes, theta_c, theta, problem.layout.state_start), axis=1)


def log_joint(codes, theta_c, theta, state_start):
    """log p(cluster, row) of a fitted model, (n_rows, n_clusters); missing cells (-1) are summed out."""
    with np.errstate(divide="ignore"):
        return kernels.log_joint(codes, state_start, np.log(theta_c), np.log(theta))


def _fit_record(problem, starts, weights, best, theta_c, theta, arcs, all_collapsed):
    layout = problem.layout
    class_counts, counts, log_likelihood = expected_counts(problem, theta_c, theta)
    return LatentClassFit(
        theta_c=theta_c,
        theta=theta,
        state_start=layout.state_start,
        arc_posterior=np.zeros_like(arcs) if len(theta_c) == 1 else arcs,  # one cluster: nothing to depend on
        class_counts=class_counts,
        counts=counts,
        log_likelihood=log_likelihood,
        evidence_bound=float(starts.evidence_bound[best]),
        cheeseman_stutz=cheeseman_stutz(problem, class_counts, counts),
        n_iter=int(starts.n_iter[best]),
        converged=bool(starts.converged[best]),
        score_path=starts.paths[best],
        starts=starts,
        weights=weights,
        best=best,
        all_collapsed=all_collapsed,
    )


def expected_counts(problem, theta_c, theta):
    """Expected counts under given tables: (n_clusters,), (n_states_total, n_clusters), and the log-likelihood."""
    class_counts, counts = np.empty(len(theta_c)), np.empty_like(theta)
    work = np.empty((2, problem.layout.table_start[-1], len(theta_c)))
    factors = theta.copy()  # the kernel raises tiny factors in place
    total = kernels.expectation(problem.layout, theta_c, factors, class_counts, counts, work)
    return class_counts, counts, float(total)


def cheeseman_stutz(problem, class_counts, counts):
    """Cheeseman-Stutz score in nats: log p(W) - sum W log theta' + log p(D | theta'), W the expected counts.

    When the method averages over structures, so does the score: every column's factor of log p(W) is the average over
    "depends on the cluster" and "does not".
    """
    layout, priors = problem.layout, problem.priors
    if not (priors.cluster > 0 and (priors.dependent > 0).all()):
        return np.nan  # without a prior there is no p(W)
    theta_c, theta = np.empty(len(class_counts)), np.empty_like(counts)
    kernels.maximise(layout, priors, class_counts, counts, theta_c, theta)
    log_dependent = np.empty(len(layout.slots))
    kernels.family_scores(layout, priors, class_counts, counts, log_dependent)
    if problem.mode == kernels.EM:
        log_p = log_dependent.sum()
    else:
        log_p = np.logaddexp(priors.log_arc + log_dependent, priors.log_independent).sum()
    prior = np.full(len(class_counts), priors.cluster)
    log_p += gammaln(prior.sum()) - gammaln(prior.sum() + class_counts.sum())
    log_p += (gammaln(prior + class_counts) - gammaln(prior)).sum()
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


# ----------------------------------------------------------------------------------------------------- records


class PriorSettings(NamedTuple):
    """Pseudo-counts per cell, or BDeu's equivalent sample size; prior of the arcs, a number or one per column."""

    cluster: float = 1.0
    dependent: float = 1.0
    independent: float = 1.0
    arc_prior: float | np.ndarray = 0.5
    equivalent_sample_size: float | None = None


class Problem(NamedTuple):
    """Data and priors as the compiled loop reads them, and the step."""

    codes: np.ndarray
    cardinalities: np.ndarray
    settings: PriorSettings
    layout: kernels.Layout
    priors: kernels.Priors
    averaging: str | None

    @property
    def mode(self):
        return MODES[self.averaging]

    def with_one_cluster(self):
        return make_problem(self.codes, self.cardinalities, self.layout.weights, 1, self.settings, self.averaging)


class Starts(NamedTuple):
    """All starts of a run, one entry each."""

    theta_c: np.ndarray  # (n_starts, n_clusters)
    theta: np.ndarray  # (n_starts, n_states_total, n_clusters)
    arcs: np.ndarray  # (n_starts, n_columns)
    log_likelihood: np.ndarray
    evidence_bound: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    collapsed: np.ndarray
    paths: tuple  # (n_iter + 1,) objective at the start and after every update


class LatentClassFit(NamedTuple):
    """The fitted model. `theta` holds the states of all columns one after another, (n_states_total, n_clusters)."""

    theta_c: np.ndarray
    theta: np.ndarray
    state_start: np.ndarray
    arc_posterior: np.ndarray
    class_counts: np.ndarray
    counts: np.ndarray
    log_likelihood: float
    evidence_bound: float
    cheeseman_stutz: float
    n_iter: int
    converged: bool
    score_path: np.ndarray
    starts: Starts
    weights: np.ndarray
    best: int
    all_collapsed: bool

    @property
    def tables(self):
        """List of (n_clusters, cardinality), rows sum to 1."""
        return split_tables(self.theta, self.state_start)


def split_tables(theta, state_start):
    """theta (n_states_total, n_clusters) -> list of (n_clusters, cardinality)."""
    columns = np.ascontiguousarray(theta.T)
    return [columns[:, a:b] for a, b in pairwise(state_start)]
