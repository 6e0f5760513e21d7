"""Clustering averaged over all forest-augmented naive Bayes structures: a variational loop with a bound that never falls.

q(z) q(structure, tables): given the soft counts of q(z), the structures and tables have their exact posterior (one forest sum);
given these, the clusters of a row follow from expected logarithms, weighted by the posterior of every arc:

    log q(z=c) = E[log theta_c] + sum_i (P(root_i) E[log theta_i given c] + sum_j P(j -> i) E[log theta_i given c, x_j])
    bound = sum_i score({C}) + log forest sum + log p(cluster counts) + entropy of q(z)

The loop sees sums over rows only; `forests.rows` makes them, in memory or in passes. Missing cells are hidden too, and the bound
gains their entropy. Arcs whose posterior is below `PRUNED` are left out of the expectation step; what that can change is in
`ForestRun.pruned_loss`.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import digamma

from pgm_bma.augmented.model import Prior
from pgm_bma.augmented.structural_em import StructuralEMSettings, fit_em, run_structural_em
from pgm_bma.forests.average import ForestAverage, ForestPrior, average_from_counts, family_priors, log_arc_prior
from pgm_bma.forests.sums import forest_sum, uniform_forest_mass
from pgm_bma.foundation.numbers.families import cell_alpha, log_marginal_likelihood, state_offsets
from pgm_bma.foundation.numbers.pairs import pair_scores
from pgm_bma.foundation.numbers.starts import choose_starts, finish_best, start_weights

INITS = ("both", "em", "structural", "random")
PRUNED = 1e-9
SHORT_UPDATES = 10  # of every start, before the best are chosen
N_POLISHED = 2  # starts that were screened on a sample and are run on all rows
MAX_UPDATES = 500  # of a start
# Steps of compiled code, of about a nanosecond each, of all updates. The limit is by size, not by the clock, so that fits repeat.
BY_DEFAULT = 6e10
FEWEST_UPDATES = 10  # of a start that is run to the end
MIN_WEIGHT = 0.5  # a cluster with fewer expected rows is dropped from the answer


class ForestLoop(NamedTuple):
    """Prior and stopping rule of a run."""

    prior: ForestPrior = ForestPrior()
    max_iter: int = MAX_UPDATES
    tol: float = 1e-8  # relative gain of the bound
    short: int = SHORT_UPDATES


class ForestRun(NamedTuple):
    """state: gives the responsibilities, see `forests.rows`; bounds: at the start and after each update; pairs and totals: the
    counts behind the last structures; pruned_loss: the most that left-out arcs moved any log q."""

    state: Any
    bounds: np.ndarray
    converged: bool
    pairs: np.ndarray
    totals: np.ndarray
    pruned_loss: float


class ForestClusters(NamedTuple):
    """average: the model of the combined starts; bound: of the best start; runs: every start; weights (n_starts,);
    finished (n_starts,): which were run to the end."""

    average: ForestAverage
    bound: float
    runs: list
    weights: np.ndarray
    finished: np.ndarray
    best: int


def fit_forest_clusters(
    rows,
    n_clusters,
    rng,
    settings,
    n_init=10,
    n_final=None,
    init="both",
    combine_starts="evidence",
    run_all=map,
    sample=None,
):
    """Several starts, the best `n_final` of them (None: all) run to their bound, combined after alignment of their labels.

    rows : `forests.rows`     settings : ForestLoop
    init : where starts come from: "em" (latent-class EM), "structural" (structural EM from a tree), "both" in turns, or "random"
    combine_starts : "evidence" (soft counts averaged with weights exp(bound)) or "best"
    run_all : a map, so that a caller may run starts in parallel; start i is the same whatever `n_init` is
    sample : (rows, share of all rows that they are) to screen the starts on; None runs every start on all rows
    """
    first = rows if sample is None else sample[0]
    starts = make_starts(first, n_clusters, rng, n_init, init)
    runs, finished = run_stages(first, starts, settings, n_final, run_all)
    if sample is not None:
        # scores of a sample, scaled to all rows, for those that saw no more
        runs = [run._replace(bounds=run.bounds / sample[1]) for run in runs]
        chosen = choose_starts([run.bounds[-1] for run in runs], finished, N_POLISHED)
        counts = [(runs[i].pairs, runs[i].totals) for i in chosen]
        starts = [expected_logs_at(*some, rows.cardinalities, settings.prior) for some in counts]
        for i, run in zip(chosen, run_all(partial(run_start, rows, settings=settings), starts)):
            runs[i] = run
        finished = np.isin(np.arange(len(runs)), chosen)
    return combine(rows, runs, finished, combine_starts, settings.prior)


def affordable_updates(rows, n_clusters, n_init, n_final):
    """(updates before the best starts are chosen, of those that are then run to the end), so that all take about a minute.

    rows : HeldRows        n_clusters : of all numbers that are tried together        n_final : as in `fit_forest_clusters`
    """
    n_rows, n, n_states = len(rows.codes), len(rows.cardinalities), int(rows.cardinalities.sum())
    # the forest sum, pairs of columns in all rows, pairs of states in all clusters; measured at 200 and 500 columns
    update = 3.0 * n**3 + 3.0 * n_rows * len(rows.groups.members) ** 2 + 300.0 * n_clusters * n_states**2
    most = BY_DEFAULT / update
    n_final = n_init if n_final is None else min(n_final, n_init)
    # many rows take longer, by a measurement at 10,000 rows of 500 columns; the fewest updates must end too
    in_rows = 20.0 * n_rows * len(rows.groups.members) ** 2
    if most < n_init or in_rows * (n_init + n_final * FEWEST_UPDATES) > BY_DEFAULT:
        update += in_rows
        raise ValueError(
            f"an update of one start takes about {update * 1e-9:.0f} CPU seconds for {n_rows:,} rows of {n} columns, and there are "
            f"{n_init} starts: drop columns, take a sample of the rows, or lower n_init; a max_iter that is given takes the time "
            "that it needs"
        )
    short = int(np.clip(most / (2 * n_init), 1, SHORT_UPDATES))
    return short, int(np.clip((most - n_init * short) / n_final, FEWEST_UPDATES, MAX_UPDATES))


def make_starts(rows, n_clusters, rng, n_init, init):
    """Return the starts; start i does not depend on `n_init`."""
    if init == "random":
        return [rows.random_start(n_clusters, child) for child in rng.spawn(n_init)]
    for_em, for_trees = rng.spawn(2)
    if init == "em":
        return _em_starts(rows, n_clusters, for_em, n_init)
    if init == "structural":
        return _structural_starts(rows, n_clusters, for_trees, n_init)
    starts: list = [None] * n_init
    starts[::2] = _em_starts(rows, n_clusters, for_em, len(starts[::2]))
    starts[1::2] = _structural_starts(rows, n_clusters, for_trees, len(starts[1::2]))
    return starts


def _em_starts(rows, n_clusters, rng, n_init):
    """EM without arcs between columns."""
    model = rows.model(np.full(len(rows.cardinalities), -1), Prior())
    return [
        rows.start_of(model, fit_em(model, model.random_parameters(n_clusters, child), max_iter=100))
        for child in rng.spawn(n_init)
    ]


def _structural_starts(rows, n_clusters, rng, n_init):
    """Structural EM from the best structure without a cluster: dependences that all clusters share are not taken for clusters."""
    settings = StructuralEMSettings()
    model = rows.model(np.full(len(rows.cardinalities), -1), settings.prior)
    model = model.with_structure(model.tree())
    runs = [run_structural_em(model, model.random_parameters(n_clusters, c), settings) for c in rng.spawn(n_init)]
    return [rows.start_of(run.model, run) for run in runs]


def run_stages(rows, starts, settings, n_final, run_all):
    """Run all starts for a few updates, the best `n_final` of them (None: all) to the end: (runs, which are finished)."""
    short = None if n_final is None or n_final >= len(starts) else settings.short
    runs = list(run_all(partial(run_start, rows, settings=settings, max_updates=short), starts))

    def finish(chosen):
        for i, done in zip(chosen, run_all(partial(go_on, rows, settings=settings), [runs[i] for i in chosen])):
            runs[i] = done
        return np.ones(len(chosen), dtype=bool)

    finished = np.ones(len(runs), dtype=bool)
    if short is not None:
        finished = finish_best(np.array([run.bounds[-1] for run in runs]), finished, n_final, finish)
        finished |= [run.converged for run in runs]  # nothing was left to do for those that the first stage ended
    return runs, finished


def run_start(rows, start, settings, max_updates=None):
    """The loop from one start; `go_on` continues one that `max_updates` stopped earlier than `settings.max_iter`."""
    return climb(rows, rows.first(start), settings, max_updates=max_updates)


def go_on(rows, run, settings):
    """A run that was stopped early, run to its end."""
    if run.converged:
        return run
    # the last bound is computed again, with the counts behind it
    return climb(rows, run.state, settings, run.bounds[:-1], run.pruned_loss)


def climb(rows, state, settings, bounds=(), loss=0.0, max_updates=None):
    """The loop from a state; bounds, loss : so far"""
    max_updates = settings.max_iter if max_updates is None else min(max_updates, settings.max_iter)
    bounds, converged, sums = list(bounds), False, rows.sums(state)
    while True:
        pairs, totals, entropy = sums
        forest, bound = _structures(pairs, totals, rows.cardinalities, settings.prior)
        bounds.append(bound + entropy)
        if len(bounds) > 1 and bounds[-1] - bounds[-2] <= settings.tol * abs(bounds[-2]):
            converged = True
        if converged or len(bounds) > max_updates:
            return ForestRun(state, np.array(bounds), converged, pairs, totals, loss)
        *logs, pruned = expected_logs(pairs, totals, rows.cardinalities, forest, settings.prior)
        loss = max(loss, pruned)
        state, sums = rows.expect(state, logs)


def _structures(pairs, totals, cardinalities, prior):
    """Posterior of the structures given soft counts, and the bound without the entropies."""
    scores = pair_scores(pairs, cardinalities, family_priors(prior, len(totals), cardinalities)[0])
    n = len(cardinalities)
    log_cost = log_arc_prior(prior.structure_prior, n)
    forest = forest_sum(scores.with_parent - scores.alone[:, None] + log_cost, np.zeros(n))
    log_clusters = float(log_marginal_likelihood(totals[None], _cluster_alpha(prior, len(totals))))
    log_prior_mass = uniform_forest_mass(log_cost, n)
    return forest, float(scores.alone.sum()) + forest.log_sum - log_prior_mass + log_clusters


def _cluster_alpha(prior, n_clusters):
    return cell_alpha(1, n_clusters, prior.alpha, prior.equivalent_sample_size)


def expected_logs(pairs, totals, cardinalities, forest, prior):
    """Weighted expected logs: log_cluster (n_clusters,), single (n_clusters, S), both (n_clusters, S, S) symmetric in its use, and
    the pruned loss.

    both[c, a, b] for states a of column i and b of column j holds the two directions of the pair together; it is zero for i = j.
    """
    n, offsets = len(cardinalities), state_offsets(cardinalities)
    starts, column = offsets[:-1], np.repeat(np.arange(n), cardinalities)
    one, two = family_priors(prior, len(totals), cardinalities)[0]
    posterior = np.where(forest.arc_posterior >= PRUNED, forest.arc_posterior, 0.0)
    singles = np.diagonal(pairs, axis1=1, axis2=2) + one[column]
    logs = digamma(singles) - digamma(np.add.reduceat(singles, starts, axis=1))[:, column]
    single = forest.root_posterior[column] * logs
    cells = pairs + two[np.ix_(column, column)]
    log_cells = (
        digamma(cells) - digamma(np.add.reduceat(cells, starts, axis=2))[:, :, column]
    )  # child states in columns
    weighted = posterior.T[np.ix_(column, column)] * log_cells
    pruned = np.where(posterior == 0.0, forest.arc_posterior, 0.0)
    loss = float((pruned.T[np.ix_(column, column)] * -log_cells).max(initial=0.0) * n)
    alpha = _cluster_alpha(prior, len(totals))
    log_cluster = digamma(totals + alpha) - digamma((totals + alpha).sum())
    return log_cluster, single, weighted + weighted.swapaxes(1, 2), loss


def expected_logs_at(pairs, totals, cardinalities, prior):
    """(log_cluster, single, both) behind soft counts."""
    return expected_logs(pairs, totals, cardinalities, _structures(pairs, totals, cardinalities, prior)[0], prior)[:3]


def combine(rows, runs, finished, combine_starts, prior):
    """One model of several runs, clusters by falling size."""
    bounds = np.array([run.bounds[-1] for run in runs])
    best = int(np.argmax(np.where(finished, bounds, -np.inf)))
    shares = start_weights(combine_starts, bounds, bounds, finished, best)
    pairs, totals = np.zeros_like(runs[best].pairs), np.zeros_like(runs[best].totals)
    for i in np.flatnonzero(shares):
        order = np.arange(len(totals))
        if i != best:
            order = linear_sum_assignment(rows.overlap(runs[best].state, runs[i].state), maximize=True)[1]
        pairs += shares[i] * runs[i].pairs[order]
        totals += shares[i] * runs[i].totals[order]
    kept = [k for k in np.argsort(-totals, kind="stable") if totals[k] >= MIN_WEIGHT] or [int(np.argmax(totals))]
    average = average_from_counts(pairs[kept], totals[kept], rows.cardinalities, prior)
    return ForestClusters(average, float(bounds[best]), runs, shares, finished, best)
