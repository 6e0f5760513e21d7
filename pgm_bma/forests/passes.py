"""Forest clustering of complete rows that are not in memory: the loop of `clustering.climb`, one pass over all blocks an update.

Without missing cells a row's responsibilities follow from the expected logs, so that nothing is kept per row. A start is a fitted
augmented naive Bayes model, as in memory, or the expected logs of a run on a sample.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from pgm_bma.augmented import model as anb
from pgm_bma.augmented.passes import BlocksModel, tree_of_blocks
from pgm_bma.augmented.structural_em import Settings as StructuralSettings
from pgm_bma.augmented.structural_em import fit_em, run_structural_em
from pgm_bma.forests.average import complete_log_joint
from pgm_bma.forests.clustering import (
    climb,
    combine,
    expect_complete,
    expected_logs_at,
    fit_forest_clusters,
    in_turns,
    run_stages,
)
from pgm_bma.foundation.numbers.pair_groups import grouped_pair_counts, make_pair_groups
from pgm_bma.foundation.numbers.starts import choose_starts

N_POLISHED = 2  # screened starts that are run on all rows


class BlocksRun(NamedTuple):
    """What `clustering.Run` is for rows in memory; `state` gives the responsibilities of any row."""

    bounds: np.ndarray
    converged: bool
    pairs: np.ndarray
    totals: np.ndarray
    pruned_loss: float
    state: tuple


def fit_forest_blocks(rows, n_clusters, rng, settings, n_init, n_final, init, combine_starts, run_all=map, sample=None):
    """`clustering.fit_forest_clusters` of rows of complete `Block`.

    sample : (codes, weights, share of the rows that they are) to screen the starts on; None runs every start on all rows
    """
    cardinalities = rows.schema.cardinalities
    go_on = partial(_go_on, rows=rows, settings=settings)
    if sample is None:
        starts = in_turns(
            partial(_em_starts, rows, n_clusters), partial(_tree_starts, rows, n_clusters), rng, n_init, init
        )
        run = partial(_run, rows=rows, settings=settings)
        runs, finished = run_stages(starts, run, go_on, n_final, run_all)
    else:
        codes, weights, share = sample
        small = fit_forest_clusters(
            codes, cardinalities, weights, n_clusters, rng, settings, n_init, n_final, init, combine_starts, run_all
        )
        # scores of a sample, scaled to all rows, for those that saw no more
        runs = [run._replace(bounds=run.bounds / share) for run in small.runs]
        chosen = choose_starts([run.bounds[-1] for run in runs], small.finished, N_POLISHED)
        starts = [tuple(expected_logs_at(runs[i].pairs, runs[i].totals, cardinalities, settings.prior)) for i in chosen]
        for i, run in zip(chosen, run_all(partial(_run, rows=rows, settings=settings), starts)):
            runs[i] = run
        finished = np.isin(np.arange(len(runs)), chosen)

    def align(best, run):
        (overlap,) = rows.reduce(overlap_block, cardinalities, best.state, run.state)
        return linear_sum_assignment(overlap, maximize=True)[1]

    return combine(runs, finished, combine_starts, align, cardinalities, settings.prior)


def log_likelihood(rows, average):
    """log p(all rows) under an average over forests."""
    return float(rows.reduce(likelihood_block, average)[0])


def _run(state, rows, settings, max_updates=None):
    return _climb(state, rows, settings, (), 0.0, max_updates)


def _go_on(run, rows, settings):
    if run.converged:
        return run
    # the last bound is computed again, with the counts behind it
    return _climb(run.state, rows, settings, run.bounds[:-1], run.pruned_loss)


def _climb(state, rows, settings, bounds, loss, max_updates=None):
    cardinalities = rows.schema.cardinalities

    def expect(state):
        return rows.reduce(expect_block, cardinalities, tuple(state))

    *found, logs = climb(expect(state), expect, cardinalities, settings, bounds, loss, max_updates)
    return BlocksRun(*found, state if logs is None else tuple(logs))


def _em_starts(rows, n_clusters, rng, n_init):
    """EM without arcs between columns."""
    model = BlocksModel.build(rows, np.full(len(rows.schema.names), -1), anb.Prior())
    fits = [fit_em(model, model.random_parameters(n_clusters, child), max_iter=100) for child in rng.spawn(n_init)]
    return [(model.layout, fit.parameters) for fit in fits]


def _tree_starts(rows, n_clusters, rng, n_init):
    """Structural EM from the best structure without a cluster."""
    settings = StructuralSettings()
    model = BlocksModel.build(rows, tree_of_blocks(rows), settings.prior)
    runs = [run_structural_em(model, model.random_parameters(n_clusters, c), settings) for c in rng.spawn(n_init)]
    return [(run.model.layout, run.parameters) for run in runs]


# -------------------------------------------------------------------------------------------------------- on a block


def expect_block(block, cardinalities, state):
    """(counts of all pairs, of the clusters, entropy) of a block, the responsibilities being those of `state`."""
    groups, q, entropy = _responsibilities(block, cardinalities, state)
    weights = np.ones(len(q)) if block.weights is None else block.weights
    weighted = q * weights[:, None]
    return grouped_pair_counts(groups, weighted), weighted.sum(0), float(weights @ entropy)


def overlap_block(block, cardinalities, first, second):
    """K x K overlap of two partitions of a block."""
    first, second = (_responsibilities(block, cardinalities, state)[1] for state in (first, second))
    return (first.T @ (second if block.weights is None else second * block.weights[:, None]),)


def likelihood_block(block, average):
    """(log-likelihood,) of a block."""
    log_p = logsumexp(complete_log_joint(average, np.asarray(block.codes, dtype=np.int64)), axis=1)
    return (float(log_p.sum() if block.weights is None else block.weights @ log_p),)


def _responsibilities(block, cardinalities, state):
    """(groups of the rows, responsibilities, entropy of every row).

    state : (layout, parameters) of an augmented naive Bayes model, or expected logs (log_cluster, single, both)
    """
    codes = np.ascontiguousarray(block.codes, dtype=np.int64)
    groups = make_pair_groups(codes, cardinalities)
    if len(state) == 3:
        q = np.empty((len(codes), len(state[0])))
        return groups, q, expect_complete(groups, *state, q)
    layout, parameters = state
    q = anb.expect(anb.make_cases(codes, cardinalities), layout, parameters)[0]
    return groups, q, -(q * np.log(np.where(q > 0, q, 1.0))).sum(axis=1)
