"""Clustering averaged over all forest-augmented naive Bayes structures: a variational loop with a bound that never falls.

q(z) q(structure, tables): given the soft counts of q(z), the structures and tables have their exact posterior (one forest sum);
given these, the clusters of a row follow from expected logarithms, weighted by the posterior of every arc:

    log q(z=c) = E[log theta_c] + sum_i (P(root_i) E[log theta_i given c] + sum_j P(j -> i) E[log theta_i given c, x_j])
    bound = sum_i score({C}) + log forest sum + log p(cluster counts) + entropy of q(z)

Missing cells are hidden too, with q(x_i given z) of their own, updated one column at a time; the bound gains their entropy.
Arcs whose posterior is below `PRUNED` are left out of the expectation step; what that can change is in `Run.pruned_loss`.
Complete rows are counted and looked up by super-columns (`pair_groups`): ten tables instead of 210 for twenty binary columns.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, log_softmax

from pgm_bma.augmented import model as anb
from pgm_bma.augmented.structural_em import Settings as StructuralSettings
from pgm_bma.augmented.structural_em import fit_em, run_structural_em
from pgm_bma.augmented.structures import AugmentedModel, tree_structure
from pgm_bma.forests._cluster_kernels import expect_rows, normalise
from pgm_bma.forests.average import ForestAverage, ForestPrior, average_from_counts, family_priors, log_arc_prior
from pgm_bma.forests.sums import forest_sum, uniform_forest_mass
from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.foundation.numbers.dirichlet import cell_alpha, log_marginal_likelihood
from pgm_bma.foundation.numbers.pair_groups import PairGroups, grouped_pair_counts, make_pair_groups
from pgm_bma.foundation.numbers.pairs import indicators, pair_scores
from pgm_bma.foundation.numbers.starts import align_labels, finish_best, start_weights

PRUNED = 1e-9
SHORT_UPDATES = 10  # of every start, before the best are chosen
MIN_WEIGHT = 0.5  # a cluster with fewer expected rows is dropped from the answer


class Settings(NamedTuple):
    """Prior and stopping rule of a run."""

    prior: ForestPrior = ForestPrior()
    max_iter: int = 500
    tol: float = 1e-8  # relative gain of the bound


class Rows(NamedTuple):
    """Distinct rows: the n_complete ones with every cell first. groups: super-columns of the complete rows; flags (n_incomplete,
    S): indicators of the others, zero where missing; order: where the rows were."""

    codes: np.ndarray
    weights: np.ndarray
    cardinalities: np.ndarray
    groups: PairGroups
    flags: np.ndarray
    n_complete: int
    order: np.ndarray


class Run(NamedTuple):
    """responsibilities (n, n_clusters) in the order the rows were given; bounds: at the start and after each update;
    pairs and totals: the counts behind the last structures; pruned_loss: the most that left-out arcs moved any log q; hidden: of
    the missing cells."""

    responsibilities: np.ndarray
    bounds: np.ndarray
    converged: bool
    pairs: np.ndarray
    totals: np.ndarray
    pruned_loss: float
    hidden: np.ndarray


def make_rows(codes, cardinalities, weights):
    """Rows as the loop wants them."""
    incomplete = (codes < 0).any(axis=1)
    order = np.argsort(incomplete, kind="stable")
    codes = np.ascontiguousarray(codes[order], dtype=np.int64)
    m = int((~incomplete).sum())
    groups, flags = make_pair_groups(codes[:m], cardinalities), indicators(codes[m:], cardinalities)
    return Rows(codes, weights[order], np.asarray(cardinalities), groups, flags, m, order)


def run_start(rows, responsibilities, settings, max_updates=None):
    """The loop from one start: responsibilities (n, n_clusters) in the order that `make_rows` was given.

    max_updates : stop earlier than `settings.max_iter`; `go_on` continues such a run
    """
    q = np.array(responsibilities[rows.order], dtype=float)
    hidden = _start_hidden(rows, q.shape[1])
    return _run(rows, q, hidden, _entropy(rows, q, hidden), [], 0.0, settings, max_updates)


def go_on(run, rows, settings):
    """A run that was stopped early, run to its end."""
    if run.converged:
        return run
    q, hidden = run.responsibilities[rows.order], run.hidden
    # the last bound is computed again, with the counts behind it
    return _run(rows, q, hidden, _entropy(rows, q, hidden), list(run.bounds[:-1]), run.pruned_loss, settings)


def _run(rows, q, hidden, entropy, bounds, loss, settings, max_updates=None):
    state = [q, hidden]

    def expect(logs):
        state[0], state[1], entropy = _expect(rows, state[1], *logs)
        return *_soft_counts(rows, *state), float(rows.weights @ entropy)

    first = *_soft_counts(rows, q, hidden), float(rows.weights @ entropy)
    climbed = climb(first, expect, rows.cardinalities, settings, bounds, loss, max_updates)
    result = np.empty_like(q)
    result[rows.order] = state[0]
    return Run(result, *climbed[:-1], state[1])


def climb(sums, expect, cardinalities, settings, bounds=(), loss=0.0, max_updates=None):
    """The loop, which sees sums over rows only: soft counts of all pairs and of the clusters, and the entropy.

    sums : (pairs, totals, entropy) of the start     expect : (expected logs) -> the next ones     bounds, loss : so far
    """
    max_updates = settings.max_iter if max_updates is None else min(max_updates, settings.max_iter)
    bounds, converged, logs = list(bounds), False, None
    while True:
        pairs, totals, entropy = sums
        forest, bound = _structures(pairs, totals, cardinalities, settings.prior)
        bounds.append(bound + entropy)
        if len(bounds) > 1 and bounds[-1] - bounds[-2] <= settings.tol * abs(bounds[-2]):
            converged = True
        if converged or len(bounds) > max_updates:
            return Climb(np.array(bounds), converged, pairs, totals, loss, logs)
        *logs, pruned = _expected_logs(pairs, totals, cardinalities, forest, settings.prior)
        loss = max(loss, pruned)
        sums = expect(logs)


class Climb(NamedTuple):
    """See `Run`; logs: (log_cluster, single, both), the expected logs that the last responsibilities follow from, None for those
    of the start."""

    bounds: np.ndarray
    converged: bool
    pairs: np.ndarray
    totals: np.ndarray
    pruned_loss: float
    logs: list | None


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


def _expected_logs(pairs, totals, cardinalities, forest, prior):
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
    return _expected_logs(pairs, totals, cardinalities, _structures(pairs, totals, cardinalities, prior)[0], prior)[:3]


def expect_complete(groups, log_cluster, single, both, q):
    """Responsibilities of complete rows into `q`; returns the entropy of every row."""
    entropy = np.empty(len(groups.columns))
    expect_rows(groups.columns, log_cluster, *_group_tables(groups, single, both), q, entropy)
    return entropy


def _expect(rows, hidden, log_cluster, single, both):
    """New responsibilities, hidden cells, and the entropy of every row."""
    m, q = rows.n_complete, np.empty((len(rows.codes), len(log_cluster)))
    entropy = np.empty(len(q))
    entropy[:m] = expect_complete(rows.groups, log_cluster, single, both, q[:m])
    if m < len(q):
        hidden = _update_hidden(rows, hidden, single, both)
        cells = np.empty_like(q[m:])
        for k, soft in enumerate(hidden):
            quadratic = 0.5 * np.einsum("ns,ns->n", soft @ both[k], soft)
            cells[:, k] = _cell_entropy(soft)
            q[m:, k] = log_cluster[k] + soft @ single[k] + quadratic + cells[:, k]
        entropy[m:] = [normalise(line) for line in q[m:]]
        entropy[m:] += (q[m:] * cells).sum(1)
    return q, hidden, entropy


def _group_tables(groups, single, both):
    """Expected logs by joint states of super-columns, as `expect_rows` wants them; pairs that no arc joins are left out.

    single (n_clusters, S), both (n_clusters, S, S) from `_expected_logs`
    """
    owns, pairs, tables = [], [], []
    for g, (flags, here) in enumerate(zip(groups.flags, groups.places)):
        own = single[:, here] @ flags.T
        if flags[0].sum() > 1:  # several columns in one
            own += 0.5 * ((flags @ both[:, here, here]) * flags).sum(axis=2)
        owns.append(own)
        for h in range(g + 1, len(groups.flags)):
            block = both[:, here, groups.places[h]]
            if block.any():
                pairs.append((g, h))
                tables.append((flags @ block @ groups.flags[h].T).reshape(len(single), -1))
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    starts = np.cumsum([0, *(table.shape[1] for table in tables)])[:-1]
    tables = np.concatenate([np.zeros((len(single), 0)), *tables], axis=1)
    own = np.ascontiguousarray(np.concatenate(owns, axis=1).T)
    return state_offsets(groups.sizes), own, first, second, starts, groups.sizes[second], np.ascontiguousarray(tables.T)


# ------------------------------------------------------------------------------------------------- missing cells


def _start_hidden(rows, n_clusters):
    """Soft indicators (n_clusters, n_incomplete, S): missing cells begin at the column's observed frequencies."""
    soft = rows.flags.copy()
    offsets, m = state_offsets(rows.cardinalities), rows.n_complete
    complete = grouped_pair_counts(rows.groups, rows.weights[:m, None])[0]
    frequency = np.diagonal(complete) + rows.weights[m:] @ rows.flags + 1.0
    for i in range(len(rows.cardinalities)):
        own = slice(offsets[i], offsets[i + 1])
        missing = rows.codes[m:, i] < 0
        soft[missing, own] = frequency[own] / frequency[own].sum()
    return np.repeat(soft[None], n_clusters, axis=0)


def _update_hidden(rows, hidden, single, both):
    """q(x_i given z) of every missing cell, one column after another: each step raises the bound."""
    offsets = state_offsets(rows.cardinalities)
    codes = rows.codes[rows.n_complete :]
    hidden = hidden.copy()
    for k in range(len(hidden)):
        for i in range(codes.shape[1]):
            missing = codes[:, i] < 0
            own = slice(offsets[i], offsets[i + 1])
            logits = single[k, own] + hidden[k, missing] @ both[k][:, own]
            hidden[k, missing, own] = np.exp(log_softmax(logits, axis=1))
    return hidden


def _soft_counts(rows, q, hidden):
    m = rows.n_complete
    weighted = q * rows.weights[:, None]
    pairs = grouped_pair_counts(rows.groups, weighted[:m])
    for k in range(q.shape[1]) if m < len(q) else ():
        soft, weight = hidden[k], weighted[m:, k]
        more = (soft.T * weight) @ soft
        np.fill_diagonal(more, weight @ soft)  # a cell with itself: its expectation, not its square
        pairs[k] += more
    return pairs, weighted.sum(0)


def _cell_entropy(soft):
    """Entropy of the hidden cells of every incomplete row; observed cells have none."""
    return -(soft * np.log(np.where(soft > 0, soft, 1.0))).sum(axis=1)


def _entropy(rows, q, hidden):
    """Entropy of every row's cluster and hidden cells."""
    terms = -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=1)
    m = rows.n_complete
    for k in range(q.shape[1]) if m < len(q) else ():
        terms[m:] += q[m:, k] * _cell_entropy(hidden[k])
    return terms


# ------------------------------------------------------------------------------------------------- several starts


INITS = ("both", "em", "structural", "random")


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
    codes,
    cardinalities,
    weights,
    n_clusters,
    rng,
    settings,
    n_init=10,
    n_final=None,
    init="both",
    combine_starts="evidence",
    run_all=map,
):
    """Several starts, the best `n_final` of them (None: all) run to their bound, combined after alignment of their labels.

    init : where starts come from: "em" (latent-class EM), "structural" (structural EM from a tree), "both" in turns, or "random"
    combine_starts : "evidence" (responsibilities averaged with weights exp(bound)) or "best"
    run_all : a map, so that a caller may run starts in parallel; start i is the same whatever `n_init` is
    """
    rows = make_rows(codes, cardinalities, weights)
    starts = starting_responsibilities(codes, cardinalities, weights, n_clusters, rng, n_init, init)
    runs, finished = run_stages(
        starts,
        partial(_run_one, rows=rows, settings=settings),
        partial(go_on, rows=rows, settings=settings),
        n_final,
        run_all,
    )

    def align(best, run):
        return align_labels(best.responsibilities, run.responsibilities, weights)

    return combine(runs, finished, combine_starts, align, rows.cardinalities, settings.prior)


def run_stages(starts, run, go_on, n_final, run_all):
    """Run all starts for a few updates, the best `n_final` of them (None: all) to the end: (runs, which are finished).

    run : (start, max_updates=) -> run     go_on : (run) -> run at its end
    """
    short = None if n_final is None or n_final >= len(starts) else SHORT_UPDATES
    runs = list(run_all(partial(run, max_updates=short), starts))

    def finish(chosen):
        for i, done in zip(chosen, run_all(go_on, [runs[i] for i in chosen])):
            runs[i] = done
        return np.ones(len(chosen), dtype=bool)

    finished = np.ones(len(runs), dtype=bool)
    if short is not None:
        finished = finish_best(np.array([run.bounds[-1] for run in runs]), finished, n_final, finish)
        finished |= [run.converged for run in runs]  # nothing was left to do for those that the first stage ended
    return runs, finished


def combine(runs, finished, combine_starts, align, cardinalities, prior):
    """One model of several runs, clusters by falling size.

    align : (best run, run) -> order of the clusters of the run that fits those of the best
    """
    bounds = np.array([run.bounds[-1] for run in runs])
    best = int(np.argmax(np.where(finished, bounds, -np.inf)))
    shares = start_weights(combine_starts, bounds, bounds, finished, best)
    pairs, totals = np.zeros_like(runs[best].pairs), np.zeros_like(runs[best].totals)
    for i in np.flatnonzero(shares):
        order = np.arange(len(totals)) if i == best else align(runs[best], runs[i])
        pairs += shares[i] * runs[i].pairs[order]
        totals += shares[i] * runs[i].totals[order]
    order = [k for k in np.argsort(-totals, kind="stable") if totals[k] >= MIN_WEIGHT] or [int(np.argmax(totals))]
    average = average_from_counts(pairs[order], totals[order], cardinalities, prior)
    return ForestClusters(average, float(bounds[best]), runs, shares, finished, best)


def _run_one(responsibilities, rows, settings, max_updates):
    return run_start(rows, responsibilities, settings, max_updates)


def starting_responsibilities(codes, cardinalities, weights, n_clusters, rng, n_init, init):
    """Responsibilities (n, n_clusters) of every start; start i does not depend on `n_init`."""
    if init == "random":
        return [child.dirichlet(np.ones(n_clusters), size=len(codes)) for child in rng.spawn(n_init)]
    data = codes, cardinalities, weights, n_clusters
    return in_turns(partial(_em_starts, *data), partial(_structural_starts, *data), rng, n_init, init)


def in_turns(em_starts, structural_starts, rng, n_init, init):
    """Starts of "em", of "structural", or of "both" in turns; each is a function (rng, number of starts) -> list."""
    for_em, for_trees = rng.spawn(2)
    if init == "em":
        return em_starts(for_em, n_init)
    if init == "structural":
        return structural_starts(for_trees, n_init)
    starts = [None] * n_init
    starts[::2] = em_starts(for_em, len(starts[::2]))
    starts[1::2] = structural_starts(for_trees, len(starts[1::2]))
    return starts


def _em_starts(codes, cardinalities, weights, n_clusters, rng, n_init):
    """EM without arcs between columns."""
    cases = anb.make_cases(codes, cardinalities, weights)
    model = AugmentedModel.build(cases, np.full(len(cardinalities), -1), anb.Prior())
    return [
        _in_given_order(fit_em(model, model.random_parameters(n_clusters, child), max_iter=100), cases)
        for child in rng.spawn(n_init)
    ]


def _in_given_order(fit, cases):
    found = np.empty_like(fit.responsibilities)
    found[cases.order] = fit.responsibilities
    return found


def _structural_starts(codes, cardinalities, weights, n_clusters, rng, n_init):
    """Structural EM from the best structure without a cluster: dependences that all clusters share are not taken for clusters."""
    cases = anb.make_cases(codes, cardinalities, weights)
    settings = StructuralSettings()
    model = AugmentedModel.build(cases, tree_structure(cases), settings.prior)
    return [
        _in_given_order(run_structural_em(model, model.random_parameters(n_clusters, child), settings), cases)
        for child in rng.spawn(n_init)
    ]
