"""From a table with gaps to an average over structures and completions: what `fitting.average` is for complete rows.

Every kept state predicts with the weights of its own completed table. Posterior means come from one training table, in which at
most TABLES kept completions are stacked and folded, each row with weight 1 / (number of tables).
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import unfold_incomplete
from pgm_bma.orders.chains.weighting import WEIGHTINGS
from pgm_bma.orders.gaps.augment import GapTable, completed, draw_cells, draw_tables, make_move, score
from pgm_bma.orders.gaps.augment_run import run_augmented
from pgm_bma.orders.structure_average import (
    LOST_MASS,
    MANY_FAMILIES,
    ChainRecord,
    StructureAverage,
    best_within,
)
from pgm_bma.orders.sums import exact_orders, fixed_order
from pgm_bma.orders.sums.fixed_order import Training

TABLES = 16  # completed tables behind posterior means; more move no class probability by .001


def gap_table(names, codes, weights, cardinalities, alpha, sample_size, max_total):
    """Rows with gaps as a `GapTable`; weights of incomplete rows must be whole numbers."""
    rows, row_weights = unfold_incomplete(names, codes, weights, "missing='drop' or 'state'")
    return GapTable(
        np.ascontiguousarray(rows, dtype=np.int32), row_weights, np.asarray(cardinalities, dtype=np.int64),
        (float(alpha), sample_size, max_total),
    )  # fmt: skip


def augmented_average(gaps, weighting, starts, rngs, families, **run):
    """(average, mixture) of chains over states and completed tables; arguments as in `augment_run.run_augmented`."""
    found = run_augmented(gaps, weighting, starts, rngs, families, **run)
    return _average(gaps, weighting, found, "mcmc")


def given_augmented(gaps, orders, rngs, families, **run):
    """(average, mixture) over given orders with equal weight, the missing cells sampled given each of them.

    rngs : as many for every order, order after order
    """
    each = len(rngs) // len(orders)
    starts = [order for order in orders for _ in range(each)]
    found = run_augmented(gaps, "order", starts, rngs, families, fixed=True, group=each, **run)
    return _average(gaps, "order", found, "given")


def _average(gaps, weighting, found, method):
    flat = found.filled.reshape(-1, found.filled.shape[2])
    marginal = _marginals(gaps, weighting, found.lists, flat)
    lists = found.lists._replace(log_marginal=marginal.mean(0))
    states = found.states.reshape(len(flat), -1)
    n = len(gaps.cardinalities)
    if method == "mcmc" and n <= exact_orders.AUTO_PREDICTION:
        best = exact_orders.best_dag(lists)
    else:
        best = best_within(lists, states, weighting)
    chains = ChainRecord(
        found.chain_means, found.r_hat, found.effective_size, found.difference, found.n_apart, found.n_sweeps,
        np.ones((len(found.states), 1)), np.zeros((len(found.states), 0)), found.converged,
    )  # fmt: skip
    record = Gaps(gaps.codes, gaps.weights, found.filled, found.spread, found.by_cells)
    average = StructureAverage(
        lists, stacked(gaps, flat), method, weighting, found.states, found.log_scores, np.full(len(found.states), np.nan),
        found.chain_means.mean(0), np.nan, [tuple(z) for z in best[0]], float(best[1]), np.zeros((len(found.states), 0)),
        found.finished, chains, record,
    )  # fmt: skip
    return average, _mixture(average, states, marginal)


def stacked(gaps, filled):
    """One training table of evenly spaced completed tables, each with the weight 1 / (number of them): a `Training`."""
    chosen = filled[np.unique(np.linspace(0, len(filled) - 1, TABLES).round().astype(int))]
    holes = (gaps.codes < 0).any(1)
    rows = np.concatenate([gaps.codes[~holes], *(completed(gaps, some)[holes] for some in chosen)])
    weights = np.concatenate([gaps.weights[~holes], np.full(len(rows) - int((~holes).sum()), 1.0 / len(chosen))])
    rows, weights, _ = table.fold(rows, weights)
    return Training(np.asfortranarray(rows, dtype=np.int32), weights, gaps.cardinalities, *gaps.prior)


def own_mixture(average):
    """The `Mixture` of an augmented average: every state with the weights of its own table."""
    gaps = gaps_of(average)
    flat = average.gaps.filled.reshape(-1, average.gaps.filled.shape[2])
    marginal = _marginals(gaps, average.weighting, average.table, flat)
    return _mixture(average, average.states.reshape(len(flat), -1), marginal)


def _marginals(gaps, weighting, lists, flat):
    """(n_tables, n_families) log marginal likelihoods of families on completed tables; flat : (n_tables, n_cells)"""
    move = make_move(lists, gaps, weighting)
    marginal, last = np.empty((len(flat), len(move.children))), None
    for k, filled in enumerate(flat):
        last = marginal[k] = score(move, gaps, completed(gaps, filled), last)
    return marginal


def _mixture(average, states, marginal):
    lists = average.table
    masks = WEIGHTINGS[average.weighting].masks(states)
    lost = LOST_MASS if len(lists.log_prior) > MANY_FAMILIES else 0.0
    return fixed_order.mixture(lists, average.training, *masks, lost_mass=lost, log_scores=marginal + lists.log_prior)


def gaps_of(average):
    """The `GapTable` of an augmented average."""
    training, record = average.training, average.gaps
    return _table_of(training, record.codes, record.weights)


def _table_of(training, codes, weights):
    codes = np.ascontiguousarray(codes, dtype=np.int32)
    return GapTable(codes, weights, training.cardinalities, training.prior)


def draw_completions(average, mix, codes, n_tables, rng):
    """(n_tables, n_rows, n) `codes` with the missing cells drawn: each time from another structure with its own drawn tables."""
    training, gaps = average.training, average.gaps
    n_states = len(mix.weights[0])
    structures = rng.permutation(n_states)[np.arange(n_tables) % n_states]
    asked = _table_of(training, codes, np.ones(len(codes)))
    tables = []
    for structure in structures:
        dag = fixed_order.draw_dags(mix, [structure], rng)[0]
        parents = [tuple(int(p) for p in row if p >= 0) for row in dag]
        if gaps is not None:
            own = gaps_of(average)
            rows = completed(own, gaps.filled.reshape(n_states, -1)[structure])
            training = training._replace(codes=rows, weights=own.weights)
        theta = draw_tables(training.prior, [training.family_counts(v, z) for v, z in enumerate(parents)], rng)
        start = np.zeros(int((asked.codes < 0).sum()), dtype=np.int32)
        tables.append(completed(asked, draw_cells(asked, start, parents, theta, rng)[0]))
    return np.array(tables).reshape(n_tables, *codes.shape)


class Gaps(NamedTuple):
    """The table with gaps behind an average, and how its cells were filled."""

    codes: np.ndarray  # (n_rows, n) int32, -1 = missing
    weights: np.ndarray
    filled: np.ndarray  # (n_chains, n_kept, n_cells) the missing cells, row by row, on which every kept state was drawn
    spread: np.ndarray  # (n, n) standard deviation of the arc posteriors from completed table to completed table
    by_cells: float  # share of sweeps in which cells were drawn one by one
