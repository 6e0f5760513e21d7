"""Forest averages of a table with missing values: the exact average over all forests on each of several completed tables.

Missing cells are sampled together with networks of any shape (`orders.gaps.augmented_average`), the class being one of the columns,
for cells that are missing at random. Completions under the forests' own posterior were tried and predict worse: what a forest
leaves out between columns is then left out of the cells too.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.forests.average import ForestAverage, average_from_counts
from pgm_bma.foundation.numbers.families import most_mass
from pgm_bma.foundation.numbers.pairs import count_classes_and_pairs
from pgm_bma.foundation.tables.missing import unfold_incomplete
from pgm_bma.orders.families.family_table import Scoring, most_cells
from pgm_bma.orders.gaps.augment import GapTable, completed
from pgm_bma.orders.gaps.augmented_average import run_augmented
from pgm_bma.orders.structure_average import WEIGHTINGS

N_CHAINS = 4
KEPT = 4  # tables of a chain
SWEEPS = 40  # of a chain, half of them burn-in; four times as many moved the log loss by .003 (child, 30 % missing)
MAX_INDEGREE = 3
MAX_FAMILY = 2**24  # cells of a family's table; past it, fewer parents


class CompletedForests(NamedTuple):
    """Result of `augmented_forests`."""

    average: ForestAverage  # mean posteriors and log weights; posterior means of the mean counts; no evidence
    tables: tuple  # a ForestAverage per completed table
    n_apart: int  # arcs of the networks on which chains differ by more than 0.2


def augmented_forests(names, codes, cardinalities, target, n_classes, weights, prior, rng):
    """Average over N_CHAINS * KEPT completed tables; `names` are those of the columns, then the class."""
    cardinalities = np.asarray(cardinalities)
    codes = np.where(cardinalities == 1, 0, codes)  # a cell with one possible value is never missing
    rows, row_weights = unfold_incomplete(names, np.column_stack([codes, target]), weights, "missing='auto'")
    rows = np.ascontiguousarray(rows, dtype=np.int32)
    found, used = _complete(rows, row_weights, np.append(cardinalities, n_classes), rng)
    counts = []
    for cells in found.filled.reshape(N_CHAINS * KEPT, -1):
        table = rows.copy()
        table[:, used] = completed(_gaps(rows, row_weights, used, None), cells)
        counts.append(count_classes_and_pairs(table[:, :-1], cardinalities, table[:, -1], n_classes, row_weights))
    tables = tuple(average_from_counts(pairs, totals, cardinalities, prior) for pairs, totals in counts)
    pairs, totals = (np.mean([some[part] for some in counts], axis=0) for part in (0, 1))
    mean = average_from_counts(pairs, totals, cardinalities, prior)._replace(
        log_arcs=np.mean([one.log_arcs for one in tables], axis=0),
        log_roots=np.mean([one.log_roots for one in tables], axis=0),
        arc_posterior=np.mean([one.arc_posterior for one in tables], axis=0),
        class_arc_posterior=np.mean([one.class_arc_posterior for one in tables], axis=0),
        log_sum=np.nan,
        log_evidence=np.nan,
    )
    return CompletedForests(mean, tables, found.chains.n_apart)


def _gaps(rows, weights, used, cardinalities):
    return GapTable(np.ascontiguousarray(rows[:, used]), weights, cardinalities, (1.0, None, most_mass(weights.sum())))


def _complete(rows, weights, cardinalities, rng):
    """(what the chains found, the columns that they saw: those with more than one state)"""
    used = np.flatnonzero(cardinalities > 1)
    gaps = _gaps(rows, weights, used, cardinalities[used].astype(np.int64))
    n = len(used)
    max_indegree = min(MAX_INDEGREE, n - 1)
    while max_indegree > 1 and most_cells(gaps.cardinalities, len(rows), max_indegree) > MAX_FAMILY:
        max_indegree -= 1
    rngs = [np.random.default_rng(int(seed)) for seed in rng.integers(2**63, size=N_CHAINS)]
    starts = [WEIGHTINGS["order"].start(n, one, ()) for one in rngs]
    return run_augmented(
        gaps, "order", starts, rngs, Scoring(max_indegree, *gaps.prior), n_kept=KEPT, max_sweeps=SWEEPS
    ), used
