"""From a table with missing values to an average over structures and completions: what `fitting.average` is for complete rows.

Chains over structures and missing cells (`augmented_chains`) run until their pooled arcs are settled.
Every kept state predicts with the weights of its own completed table. Posterior means come from one training table, in which at
most TABLES kept completions are stacked and folded, each row with weight 1 / (number of tables).
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import unfold_incomplete
from pgm_bma.orders.families.family_table import n_families
from pgm_bma.orders.gaps.augment import EXACT, GapTable, completed, draw_afresh, draw_tables, make_move, score
from pgm_bma.orders.gaps.augmented_chains import run_augmented
from pgm_bma.orders.structure_average import LOST_MASS, MANY_FAMILIES, WEIGHTINGS, StructureAverage, best_within
from pgm_bma.orders.sums import exact_orders, fixed_order
from pgm_bma.orders.sums.fixed_order import Training

ORDER_SWEEPS = 4  # that a sweep over structures and missing cells counts for at most in max_sweeps
# families x rows to which it counts for one: up to 20 columns and 1000 rows, where it takes some 20 ms and chains that need some
# hundred sweeps, as with 30 % missing values, shall have them
ONE_SWEEP = 25_000_000
SHORT = 10  # sweeps before a table is completed once, for the evidence of priors
TABLES = 16  # completed tables behind posterior means; more move no class probability by .001


def gap_table(names, codes, weights, cardinalities, alpha, sample_size, max_total, held=None, soft=False):
    """Rows with missing cells as a `GapTable`; weights of incomplete rows must be whole numbers."""
    n = codes.shape[1]
    if held is not None:  # equal rows of different experiments stay apart
        codes = np.column_stack([codes, held])
    rows, row_weights = unfold_incomplete(names, codes, weights, "missing='drop' or 'state'")
    held = None if held is None else rows[:, n:].astype(bool)
    return GapTable(
        np.ascontiguousarray(rows[:, :n], dtype=np.int32), row_weights, np.asarray(cardinalities, dtype=np.int64),
        (float(alpha), sample_size, max_total), held, soft,
    )  # fmt: skip


def affordable_sweeps(seconds, gaps, n_chains):
    """Most sweeps that chains make in so many CPU seconds, by measurements at 20 and 37 columns of 1000 rows."""
    n, n_rows = gaps.codes.shape[1], len(gaps.codes)
    one = 4e-3 + 8e-6 * n * n * (1.0 + n_rows / 1000) + (1e-6 * 2**n if n <= EXACT["order"] else 0.0)
    return max(int(seconds / (one * n_chains)), SHORT)


def counts_for(gaps, max_indegree):
    """Return how many of `max_sweeps` a sweep over structures and cells of a `GapTable` counts for: by size, not by the clock."""
    n = len(gaps.cardinalities)
    work = n_families(n, n - 1, min(max_indegree, n - 1)) * len(gaps.codes)
    return min(-(-work // ONE_SWEEP), ORDER_SWEEPS)


def augmented_average(gaps, weighting, starts, rngs, families, **run):
    """(average, mixture) of chains over states and completed tables; arguments as in `run_augmented`."""
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
    record = MissingCells(gaps.codes, gaps.weights, found.filled, found.spread, found.by_cells, gaps.held)
    average = StructureAverage(
        lists, stacked(gaps, flat), method, weighting, found.states, found.log_scores, np.full(len(found.states), np.nan),
        found.chains.means.mean(0), np.nan, [tuple(z) for z in best[0]], float(best[1]), found.finished, found.chains, record,
    )  # fmt: skip
    return average, _mixture(average, states, marginal)


def stacked(gaps, filled):
    """One training table of evenly spaced completed tables, each with the weight 1 / (number of them): a `Training`."""
    chosen = filled[np.unique(np.linspace(0, len(filled) - 1, TABLES).round().astype(int))]
    holes, n = (gaps.codes < 0).any(1), gaps.codes.shape[1]
    tables = [completed(gaps, some) for some in chosen]
    if gaps.held is not None:
        tables = [np.column_stack([some, gaps.held]) for some in tables]
    rows = np.concatenate([tables[0][~holes], *(some[holes] for some in tables)])
    weights = np.concatenate([gaps.weights[~holes], np.full(len(rows) - int((~holes).sum()), 1.0 / len(chosen))])
    rows, weights, _ = table.fold(rows, weights)
    held = None if gaps.held is None else rows[:, n:].astype(bool)
    codes = np.asfortranarray(rows[:, :n], dtype=np.int32)
    training = Training(codes, weights, gaps.cardinalities, *gaps.prior)
    return training._replace(held=held, soft=gaps.soft)


def one_completion(gaps, scoring, required):
    """The rows with the missing cells drawn once: a `Training`, from the end of a short chain whose seed is always the same.

    scoring : `family_table.Scoring`        required : arcs, pairs of positions
    """
    rng, kind = np.random.default_rng(0), WEIGHTINGS["order"]
    start = kind.start(len(gaps.cardinalities), rng, required)
    found = run_augmented(gaps, kind.name, [start], [rng], scoring, n_kept=1, max_sweeps=SHORT)
    codes = np.asfortranarray(completed(gaps, found.filled[0, -1]))
    training = Training(codes, gaps.weights, gaps.cardinalities, *gaps.prior)
    return training._replace(held=gaps.held, soft=gaps.soft)


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
    before, touching = WEIGHTINGS[average.weighting].masks(states)
    lost = LOST_MASS if len(lists.log_prior) > MANY_FAMILIES else 0.0
    return fixed_order.mixture(lists, average.training, before, touching, lost, marginal + lists.log_prior)


def gaps_of(average):
    """The `GapTable` of an augmented average."""
    training, record = average.training, average.gaps
    codes = np.ascontiguousarray(record.codes, dtype=np.int32)
    return GapTable(codes, record.weights, training.cardinalities, training.prior, record.held, training.soft)


def completed_training(average, state):
    """The `Training` that a kept state was drawn on: its own completed table."""
    gaps = gaps_of(average)
    rows = completed(gaps, average.gaps.filled.reshape(-1, average.gaps.filled.shape[2])[state])
    return average.training._replace(codes=rows, weights=gaps.weights, held=gaps.held)


def draw_completions(average, mix, codes, n_tables, rng):
    """(n_tables, n_rows, n) `codes` with the missing cells drawn: each time from another structure with its own drawn tables."""
    training = average.training
    n_states = len(mix.weights[0])
    structures = rng.permutation(n_states)[np.arange(n_tables) % n_states]
    asked = GapTable(
        np.ascontiguousarray(codes, dtype=np.int32), np.ones(len(codes)), training.cardinalities, training.prior
    )
    tables = []
    for structure in structures:
        dag = fixed_order.draw_dags(mix, [structure], rng)[0]
        parents = [tuple(int(p) for p in row if p >= 0) for row in dag]
        if average.gaps is not None:
            training = completed_training(average, structure)
        theta = draw_tables(training.prior, [training.family_counts(v, z) for v, z in enumerate(parents)], rng)
        tables.append(completed(asked, draw_afresh(asked, parents, theta, rng)))
    return np.array(tables).reshape(n_tables, *codes.shape)


class MissingCells(NamedTuple):
    """The table with missing cells behind an average, and how its cells were filled."""

    codes: np.ndarray  # (n_rows, n) int32, -1 = missing
    weights: np.ndarray
    filled: np.ndarray  # (n_chains, n_kept, n_cells) the missing cells, row by row, on which every kept state was drawn
    spread: np.ndarray  # (n, n) standard deviation of the arc posteriors from completed table to completed table
    by_cells: float  # share of the incomplete rows that were drawn in blocks
    held: np.ndarray | None = None  # (n_rows, n) bool: where a variable was set by an experiment
