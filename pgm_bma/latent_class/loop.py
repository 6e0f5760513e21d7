"""Latent-class models: EM, EMA (EM that averages over selective naive Bayes structures) and variational EMA.

One cluster variable C, columns independent given it. The three methods share one loop (`advance`): a pass over all rows gives every
active start its expected counts, and a compiled step turns them into tables. They differ in that step:

- ``averaging=None``: EM, posterior means (EMA eq. 7);
- ``averaging="linear"``: EMA, the average over all 2^n structures in which every column may or may not depend on C: the
  mean with the arc and the mean without it, mixed by the posterior of the arc (EMA eq. 10-14; `foundation.numbers.families` is the
  same formula for observed counts);
- ``averaging="variational"``: the same mixture, but the expectation step uses expected logs, and an evidence bound climbs.

Many starts are run for a few updates, the best few to the end; where the first updates tell little (variational EMA, scans over
numbers of clusters), the better ones go some way on before the few are chosen. Where rows are not in memory, starts may be screened
on a sample of them, and the best few are run on all rows. In: `Rows` of integer codes (-1 = missing, exactly marginalised).
Out: a `LatentClassFit` of arrays.
Santafe, Lozano, Larranaga, "Bayesian model averaging of naive Bayes for clustering", IEEE Trans. SMC-B 36 (2006).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.starts import choose_starts, finish_best, start_weights
from pgm_bma.foundation.runtime.jobs import map_jobs, n_workers
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.latent_class import _kernels as kernels
from pgm_bma.latent_class._column_kernels import LINES
from pgm_bma.latent_class.problem import (
    LatentClassFit,
    LatentClassStarts,
    PriorSettings,
    as_factors,
    cheeseman_stutz,
    expect_block,
    flatten,
    make_problem,
    sample_problem,
)

COMBINATIONS = ("best", "uniform", "likelihood", "evidence")
SHORT_UPDATES = 8  # of the first stage, which is plain; measured: 5 to 20 rank the starts alike
MIDDLE_UPDATES = 24  # of the middle stage, accelerated
ALIKE = 0.05, 0.01  # nats and cluster sizes: starts on their way that differ by less are taken to end in one optimum
WEAK = 0.05  # times the prior, in the first updates of the random starts of a scan
REPLICATE_LIMIT = 200  # starts tried by n_init="until-replicated"
BATCH = 8  # starts of a thread, and of a round of n_init="until-replicated"
BATCH_CELLS = 2**20  # probabilities of the starts that one thread takes further together: some copies of them are made
# starts x rows x joined columns x clusters, beyond which starts are fewer: up to 100 CPU seconds; and the fewest
ALL_STARTS_CELLS, FEWEST_STARTS = 1_500_000_000, 8
N_POLISHED = 4  # screened starts that are run on all rows
IDENTICAL = 1e-3  # EM ends without clusters when no table differs between them by more than this


class LatentClassSettings(NamedTuple):
    """Settings of a latent-class fit.

    averaging : None (EM), "linear" (EMA) or "variational"
    priors : by default alpha = 1 in every cell and an arc prior of 0.5
    n_init : starts; or "until-replicated", as many as it takes to find the best score twice (at most ``REPLICATE_LIMIT``)
    n_final : starts that are run to the end, the best after ``SHORT_UPDATES`` updates; None for all
    n_middle : starts that are run for ``MIDDLE_UPDATES`` more before those are chosen; None for none (variational EMA: all)
    init : "random" (Dirichlet(1) tables), "em" (what EM makes of such tables: its solutions, for variational EMA its first
        ``SHORT_UPDATES`` updates), or (theta_c, tables): (n_clusters,) and a list of (n_clusters, cardinality), as start 0
        with random starts after it
    combine_starts : the best start, or an average of the aligned starts with those weights (`COMBINATIONS`)
    collapse : "stop" or "ignore"
    max_iter, tol : updates at most, and the largest parameter change that counts as converged
    accelerate : extrapolate after the first stage where an objective climbs (EM and variational)
    n_jobs : threads, as joblib reads it; the result does not depend on it
    progress : (n_done) -> None, called after every finished start
    moves : a scan over numbers of clusters also starts from splits and merges of its neighbours
    keep_order : keep the order of the given tables; else clusters are numbered by falling probability. None: as `init` is given
    """

    averaging: str | None = None
    priors: PriorSettings = PriorSettings()
    n_init: int | str = 30
    n_final: int | None = None
    n_middle: int | None = None
    init: str | tuple = "random"
    combine_starts: str = "best"
    collapse: str = "stop"
    max_iter: int = 1000
    tol: float = 1e-6
    accelerate: bool = False
    n_jobs: int | None = None
    progress: Callable | None = None
    moves: bool = False
    keep_order: bool | None = None


def fit_latent_class(rows, n_clusters, settings=None, *, rng=None, sample_rows=None, **changes):
    """Fit a latent-class model with a given number of clusters.

    Parameters
    ----------
    rows : Rows
    n_clusters : int
    settings : LatentClassSettings; `changes` are fields of it with other values
    rng : numpy.random.Generator
        Start i is drawn from its i-th spawned child, whatever `n_init` is.
    sample_rows : int, optional
        Rows on which the starts are screened; None runs every start on all rows.

    Returns
    -------
    LatentClassFit
    """
    settings = (LatentClassSettings() if settings is None else settings)._replace(**changes)
    problem = make_problem(rows, n_clusters, settings.priors, settings.averaging)
    screen = None if sample_rows is None else sample_problem(problem, sample_rows)
    warn_of_fewer_starts(problem if screen is None else screen[0], settings, n_clusters)
    return fit_problem(problem, settings, np.random.default_rng() if rng is None else rng, screen)


def fit_problem(problem, settings, rng, screen=None):
    """The same of a problem; screen : see `sample_problem`."""
    starts = run_all_starts(problem, settings, rng) if screen is None else _screened(problem, settings, rng, *screen)
    return conclude(problem, starts, settings)


def advance(problem, state, rules):
    """The loop. Takes a batch of starts further in place, all of them in one pass over the rows an iteration.

    state : theta_c, theta, factor_c, factors and arcs, as in `kernels.Walkers`; idle (n_starts,), updates in a row that saw no arc
    returns (n_starts,) of `kernels.PLACE`, and the paths of the objective as a list
    """
    theta_c, theta, factor_c, factors, arcs, idle = state
    n_starts, n_states, n_clusters = theta.shape
    places = np.zeros(n_starts, dtype=kernels.PLACE)
    places["bound"], places["known"], places["limit"] = np.nan, -np.inf, 4.0
    places["n_idle"], places["ended"], places["is_last"] = idle, kernels.EXHAUSTED, rules.max_iter == 0
    kept = np.empty((n_starts, 3 if rules.accelerate else 0, 1 + n_states, n_clusters))
    walkers = kernels.Walkers(theta_c, theta, factor_c, factors, arcs, np.empty_like(theta), kept, places)
    is_variational = rules.mode == kernels.VARIATIONAL
    space, numbers, merges = np.empty(arcs.shape[1]), problem.priors.numbers, problem.priors.merges
    priors = problem.priors._replace(numbers=None, merges=None)  # what needs neither is compiled once for all tables
    if merges is not None:
        merges = merges._replace(chosen=np.empty_like(merges.chosen))  # threads have their own
    active = np.arange(n_starts)
    paths: list[list[float]] = [[] for _ in range(n_starts)]
    while len(active):
        if is_variational:
            tables = factor_c[active], factors[active]
        else:
            tables = theta_c[active], as_factors(theta[active], problem.layout)
        sums = problem.rows.reduce(expect_block, problem.layout, *tables)
        counts, totals = (np.require(part, requirements="W") for part in sums)
        kernels.step(problem.layout, priors, numbers, merges, walkers, active, counts, totals, space, rules)
        found = places[active]
        for start, value, is_taken_back in zip(
            active.tolist(), found["value"].tolist(), found["is_taken_back"].tolist()
        ):
            if not is_taken_back:
                paths[start].append(value)
        active = active[found["is_last"] < 2]
    idle[:] = places["n_idle"]
    return places, [np.array(path) for path in paths]


# -------------------------------------------------------------------------------------------------- the starts


def run_all_starts(problem, settings, rng):
    """Draw the starts, run all for a few updates and the best to the end."""
    if settings.n_init != "until-replicated":
        return run_starts(problem, settings, draw(problem, settings, affordable_starts(problem, settings), rng))
    settings = settings._replace(n_final=None)
    starts = run_starts(problem, settings, draw(problem, settings, BATCH, rng))
    while len(starts.collapsed) < REPLICATE_LIMIT and not _is_replicated(problem, starts):
        further = draw(problem, settings._replace(init="random"), BATCH, rng)
        starts = join([starts, run_starts(problem, settings, further)])
    return starts


def affordable_starts(problem, settings):
    """Starts that are run: of a large table in memory fewer than are asked for. By size, not by the clock, so that fits repeat."""
    if settings.n_final is None or isinstance(settings.n_init, str) or not problem.rows.in_memory:
        return settings.n_init
    n_columns = len(problem.layout.group_start) - 1 + len(problem.layout.log_scale)
    cells = max(problem.rows.n_rows * n_columns * problem.n_clusters, 1)
    return min(settings.n_init, max(ALL_STARTS_CELLS // cells, FEWEST_STARTS))


def warn_of_fewer_starts(problem, settings, n_clusters):
    """Warn where not all starts are run; n_clusters : the largest number that is fitted, which has the fewest starts."""
    few = affordable_starts(problem._replace(n_clusters=n_clusters), settings)
    if few != settings.n_init:
        numbered = f"{n_clusters} cluster{'s' * (n_clusters > 1)}"
        warn(
            f"the table is large: with {numbered}, {few} of the {settings.n_init} starts are run. n_init={few} asks for no more; "
            "starts=Starts(n_final=None) runs all of them, to the end"
        )


def _screened(problem, settings, rng, small, share):
    """All starts on the sample, the best of them that differ on all rows; `finished` says which those are."""
    starts = run_all_starts(small, settings, rng)
    chosen = choose_starts(start_scores(small, starts), starts.finished & ~starts.collapsed, N_POLISHED)
    if not isinstance(settings.init, str):
        chosen = np.union1d(chosen, [0])  # the given tables keep their place
    tables = starts.theta_c[chosen].copy(), starts.theta[chosen].copy()
    polished = run_starts(problem, settings._replace(init="random", n_final=None), tables)
    # scores of a sample, scaled to all rows, for those that saw no more
    merged = starts._replace(log_likelihood=starts.log_likelihood / share, evidence_bound=starts.evidence_bound / share)
    for old, new in zip(merged, polished):
        if isinstance(old, np.ndarray):
            old[chosen] = new
    replaced = dict(zip(chosen.tolist(), polished.paths))
    paths = tuple(replaced.get(i, path) for i, path in enumerate(starts.paths))
    return merged._replace(paths=paths, finished=np.isin(np.arange(len(starts.collapsed)), chosen))


def draw(problem, settings, n_starts, rng):
    """(theta_c, theta) of new starts, the given tables first."""
    theta_c, theta = draw_starts(problem.layout, problem.n_clusters, rng.spawn(n_starts))
    if not isinstance(settings.init, str):
        theta_c[0], theta[0] = flatten(*settings.init)
    return theta_c, theta


def draw_starts(layout, n_clusters, generators):
    """Dirichlet(1) tables for every generator: theta_c (n_starts, n_clusters), theta (n_starts, n_states, n_clusters).

    The means of numeric columns are drawn as a value of the standardised column would be, their variance is that of the column.
    """
    cardinalities, n_numbers = np.diff(layout.state_start), len(layout.log_scale)
    theta_c = np.empty((len(generators), n_clusters))
    theta = np.empty((len(generators), layout.state_start[-1], n_clusters))
    lines = np.ones((len(generators), n_numbers, LINES, n_clusters))
    for start, rng in enumerate(generators):
        theta_c[start] = rng.standard_exponential(n_clusters)
        theta[start] = rng.standard_exponential(theta.shape[1:])
        lines[start, :, 1] = rng.standard_normal((n_numbers, n_clusters))
        lines[start, :, 2] = lines[start, :, 1] ** 2 + 1.0
    theta_c /= theta_c.sum(axis=1, keepdims=True)
    totals = np.add.reduceat(theta, layout.state_start[:-1], axis=1)
    theta /= np.repeat(totals, cardinalities, axis=1)
    return theta_c, np.concatenate([theta, lines.reshape(len(theta), -1, n_clusters)], axis=1)


def soften(problem, settings, tables):
    """The tables after a few updates of EM with a weak prior: a strong one empties clusters before they have found their rows."""
    priors = problem.priors
    weak = priors._replace(cluster=WEAK * priors.cluster, dependent=WEAK * priors.dependent)
    run = _Running(problem._replace(priors=weak), settings, *tables)
    run.advance(np.arange(len(tables[0])), kernels.EM, False, min(SHORT_UPDATES, settings.max_iter), False)
    return run.theta_c, run.theta


def run_starts(problem, settings, tables):
    """All stages, from drawn tables."""
    n_starts = len(tables[0])
    run, everyone = _Running(problem, settings, *tables), np.arange(n_starts)
    is_warm = isinstance(settings.init, str) and settings.init == "em" and problem.mode != kernels.EM
    mode = kernels.EM if is_warm else problem.mode
    stop = settings.collapse == "stop" and problem.n_clusters > 1  # one cluster has nothing to lose
    n_done = min(SHORT_UPDATES, settings.max_iter)
    run.advance(everyone, mode, stop, n_done, False)
    if is_warm and problem.mode == kernels.VARIATIONAL:
        # measured: EM's solutions are poor places to climb the bound from, and its value there says little of where it ends
        is_warm, mode = False, problem.mode
        run.begin(everyone)
        run.advance(everyone, mode, stop, n_done, False)
    accelerate = settings.accelerate and mode != kernels.LINEAR
    alive = run.ended != kernels.COLLAPSED
    n_middle = n_starts if settings.n_middle is None and mode == kernels.VARIATIONAL else settings.n_middle
    if n_middle is not None and settings.n_final is not None and settings.n_final < n_starts:
        positions = np.flatnonzero(alive)
        chosen = _different(start_scores(problem, run.starts()), run.theta_c, positions)[0][:n_middle]
        if len(chosen) > settings.n_final:  # else all that differ are finished anyway
            n_more = min(MIDDLE_UPDATES, settings.max_iter - n_done)
            run.advance(chosen[run.ended[chosen] == kernels.EXHAUSTED], mode, stop, n_more, accelerate)
            n_done += n_more
            if settings.n_middle is not None:
                parts = _different(start_scores(problem, run.starts()), run.theta_c, chosen)
                alive = np.isin(everyone, np.concatenate(parts)[: settings.n_final])
            alive &= run.ended != kernels.COLLAPSED
    collapsed = run.ended == kernels.COLLAPSED

    def finish(positions):
        unfinished = positions[run.ended[positions] == kernels.EXHAUSTED]
        run.advance(unfinished, mode, stop, settings.max_iter - n_done, accelerate)
        if is_warm:
            n_short = min(SHORT_UPDATES, settings.max_iter)
            run.begin(positions)
            run.advance(positions, problem.mode, stop, n_short, False)
            unfinished = positions[run.ended[positions] == kernels.EXHAUSTED]
            run.advance(unfinished, problem.mode, stop, settings.max_iter - n_short, False)
        collapsed[positions] = run.ended[positions] == kernels.COLLAPSED
        if stop and problem.mode == kernels.EM:
            collapsed[positions] |= _all_identical(run.theta[positions])
        if settings.progress is not None:
            settings.progress(len(positions))
        return ~collapsed[positions] | (not stop)

    finished = finish_best(start_scores(problem, run.starts()), alive, settings.n_final, finish)
    return run.starts()._replace(collapsed=collapsed, finished=finished)


def _different(scores, theta_c, positions):
    """(first, copies): `positions` by falling score; a copy seems to be on its way to the optimum of a better one."""
    nats, size = ALIKE
    scores, sizes = np.nan_to_num(scores, nan=-np.inf), np.sort(theta_c, axis=1)
    first: list[int] = []
    copies: list[int] = []
    for start in sorted(positions, key=lambda start: -scores[start]):
        for other in reversed(first):
            if not scores[other] - scores[start] < nats:
                first.append(start)
                break
            if np.abs(sizes[start] - sizes[other]).max() < size:
                copies.append(start)
                break
        else:
            first.append(start)
    return np.array(first, dtype=np.int64), np.array(copies, dtype=np.int64)


class _Running:
    """All starts of a run, taken further batch by batch."""

    def __init__(self, problem, settings, theta_c, theta):
        self.problem, self.settings = problem, settings
        n_starts = len(theta_c)
        # tables of another layout, as splits and merges make them, would be another type and compile again
        theta_c, theta = np.ascontiguousarray(theta_c), np.ascontiguousarray(theta)
        self.theta_c, self.theta, self.arcs = theta_c, theta, np.empty((n_starts, len(problem.priors.log_arc)))
        self.idle = np.zeros(n_starts, dtype=np.int64)
        factors = as_factors(theta, problem.layout).copy()
        self.state = theta_c, theta, theta_c.copy(), factors, self.arcs, self.idle  # as `advance` takes them
        self.log_likelihood, self.bound = np.empty(n_starts), np.empty(n_starts)
        self.n_iter, self.ended = np.zeros(n_starts, dtype=np.int64), np.full(n_starts, kernels.EXHAUSTED)
        self.paths = [np.empty(0)] * n_starts

    def begin(self, positions):
        """These starts begin anew, from the tables that they have."""
        factor_c, factors = self.state[2:4]
        factor_c[positions] = self.theta_c[positions]
        factors[positions] = as_factors(self.theta[positions], self.problem.layout)
        self.idle[positions], self.n_iter[positions], self.ended[positions] = 0, 0, kernels.EXHAUSTED
        for start in positions:
            self.paths[start] = np.empty(0)

    def advance(self, positions, mode, stop, n_updates, accelerate):
        """At most `n_updates` further updates of the starts at `positions`."""
        if n_updates == 0 and self.settings.max_iter > 0:
            return
        rules = kernels.StepRules(mode, stop, n_updates, self.settings.tol, accelerate)
        problem, size = self.problem, self._batch_size()
        batches = [positions[i : i + size] for i in range(0, len(positions), size)]

        def run(batch):
            state = [array[batch] for array in self.state]
            places, paths = advance(problem, state, rules)
            log_likelihood = places["total"]
            if mode == kernels.VARIATIONAL:  # the loop normalised expected logs; this is p(D | averaged tables)
                log_likelihood = problem.log_likelihoods(*state[:2])
            return state, log_likelihood, places, paths

        for batch, (state, log_likelihood, places, paths) in zip(
            batches, map_jobs(run, [(batch,) for batch in batches], self.settings.n_jobs, threads=True)
        ):
            for array, part in zip(self.state, state):
                array[batch] = part
            self.log_likelihood[batch], self.bound[batch] = log_likelihood, places["bound"]
            self.ended[batch] = places["ended"]
            self.n_iter[batch] += places["n_iter"]
            for start, path in zip(batch, paths):
                self.paths[start] = np.concatenate([self.paths[start][:-1], path])

    def _batch_size(self):
        """Starts that go through the rows together; a start's numbers do not depend on the others."""
        if not self.problem.rows.in_memory:
            return len(self.theta_c)  # a pass is dear
        return BATCH if n_workers(self.settings.n_jobs) > 1 else max(BATCH_CELLS // self.theta[0].size, BATCH)

    def starts(self):
        """`LatentClassStarts` as they stand, none of them finished."""
        found = self.log_likelihood, self.bound, self.n_iter, self.ended == kernels.CONVERGED
        collapsed = self.ended == kernels.COLLAPSED
        unfinished = np.zeros(len(collapsed), dtype=bool)
        tables = self.theta_c, self.theta, self.arcs
        return LatentClassStarts(*tables, *found, tuple(self.paths), collapsed, unfinished)


def _all_identical(theta):
    """(n_starts,) whether a start of EM ended with one and the same table in every cluster."""
    if theta.shape[2] == 1:
        return np.zeros(len(theta), dtype=bool)
    return (theta.max(axis=2) - theta.min(axis=2)).max(axis=1) < IDENTICAL


def _is_replicated(problem, starts):
    scores = np.sort(start_scores(problem, starts)[~starts.collapsed])[::-1]
    # two runs into one optimum differ by what `tol` leaves open, far below a thousandth of a nat
    return len(scores) > 1 and scores[0] - scores[1] < 1e-3 + 1e-7 * abs(scores[0])


def start_scores(problem, starts):
    """Return what ranks the starts: the evidence bound where it is climbed, else the log-likelihood (as in the paper)."""
    return starts.evidence_bound if problem.mode == kernels.VARIATIONAL else starts.log_likelihood


def join(batches):
    parts = zip(*batches)
    return LatentClassStarts._make(
        np.concatenate(part) if isinstance(part[0], np.ndarray) else sum(part, ()) for part in parts
    )


# ---------------------------------------------------------------------------------------------- the conclusion


def conclude(problem, starts, settings):
    """Choose or average the starts, put the clusters in order, and score what is returned."""
    alive = starts.finished & (~starts.collapsed | (settings.collapse == "ignore"))
    if not alive.any():
        return _one_cluster(problem, starts)
    keep_order = not isinstance(settings.init, str) if settings.keep_order is None else settings.keep_order
    rule = settings.combine_starts
    by_evidence = rule == "evidence" or (rule != "likelihood" and problem.mode == kernels.VARIATIONAL)
    score = starts.evidence_bound if by_evidence else starts.log_likelihood
    best = int(np.argmax(np.where(alive, score, -np.inf)))
    weights = start_weights(rule, starts.log_likelihood, starts.evidence_bound, alive, best)
    reference = 0 if keep_order and alive[0] else best
    theta_c, theta, arcs = _average_starts(problem, starts, weights, reference)
    if not keep_order:
        order = np.argsort(-theta_c, kind="stable")
        theta_c, theta = theta_c[order], np.ascontiguousarray(theta[:, order])
    return _fit_record(problem, starts, weights, best, theta_c, theta, arcs, False)


def _one_cluster(problem, starts):
    """Every start collapsed: the data show no clusters to this method, and the answer is the one-cluster model."""
    single = problem.with_clusters(1)
    settings = LatentClassSettings(averaging=problem.averaging, n_init=1, collapse="ignore", max_iter=100, tol=1e-12)
    run = run_all_starts(single, settings, np.random.default_rng(0))
    fit = _fit_record(single, run, np.ones(1), 0, run.theta_c[0], run.theta[0], run.arcs[0], True)
    return fit._replace(starts=starts, weights=np.zeros(len(starts.collapsed)))


def _average_starts(problem, starts, weights, reference):
    used = np.flatnonzero(weights)
    if len(used) == 1 and used[0] == reference:
        return starts.theta_c[reference], starts.theta[reference], starts.arcs[reference]
    target = starts.theta_c[reference], starts.theta[reference]
    theta_c, theta = np.zeros_like(starts.theta_c[0]), np.zeros_like(starts.theta[0])
    for start in used:
        start_c, start_theta = starts.theta_c[start], starts.theta[start]
        if start == reference:
            order = np.arange(len(start_c))
        else:
            order = problem.alignment(target, (start_c, start_theta))
        theta_c += weights[start] * start_c[order]
        theta += weights[start] * start_theta[:, order]
    return theta_c, theta, weights @ starts.arcs


def _fit_record(problem, starts, weights, best, theta_c, theta, arcs, all_collapsed):
    class_counts, counts, log_likelihood = problem.expected_counts(theta_c, theta)
    return LatentClassFit(
        theta_c=theta_c,
        theta=theta,
        state_start=problem.layout.state_start,
        log_scale=problem.layout.log_scale,
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
