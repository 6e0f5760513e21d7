"""Orders over rows that are visited in passes: a table of counts for every set of variables up to the size of a family.

All that families ask of rows are counts, and the counts of a set serve each of its members as the child. So a pass or more over
the rows counts every set of at most ``max_indegree + 1`` variables, block by block, and scores, predictions and networks are made
of these counts with the sums that rows in memory give.
"""

from typing import Any, NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.rows.blocks import as_is
from pgm_bma.foundation.rows.scan import NeedsRows
from pgm_bma.foundation.tables.missing import fill_missing
from pgm_bma.foundation.tables.table import fold
from pgm_bma.orders.families import _family_kernels as kernels
from pgm_bma.orders.families.family_table import (
    MAX_FAMILIES,
    bounds,
    family_layout,
    lgamma_tables,
    local_sets,
    n_families,
    with_priors,
)

MAX_SET_CELLS = 32_000_000  # of all tables together: 256 MB
CELLS_A_PASS = 4_000_000  # sums of a few blocks are held at a time
FIRST_ROWS = 50  # distinct rows that are kept, the first in lexicographic order: diagnostics look at them


def check_size(names, cardinalities, max_indegree):
    """A refusal unless the families and the counts of all sets of ``max_indegree + 1`` variables have room."""
    n = len(cardinalities)
    families, cells = n_families(n, n - 1, max_indegree), set_cells(cardinalities, max_indegree + 1)
    what = f"an average over orders of {n} variables with max_indegree={max_indegree}"
    cure = "lower max_indegree, fewer columns, or fewer states"
    if families > MAX_FAMILIES:
        raise NeedsRows(
            f"{what} ({families:.3g} families, more than {MAX_FAMILIES:.3g}, so that lists are grown)", cure
        )
    if cells > MAX_SET_CELLS:
        name = names[int(np.argmax(cardinalities))]
        most = f"{name!r} has {int(np.max(cardinalities))} states"
        raise NeedsRows(f"{what} (counts of {cells:.3g} cells, more than {MAX_SET_CELLS:.3g}; {most})", cure)


def set_cells(cardinalities, max_size):
    """Cells of the tables of all sets of at most `max_size` variables; a float, because they may be very many."""
    by_size = np.zeros(max_size + 1)
    by_size[0] = 1.0
    for r in cardinalities:
        by_size[1:] += by_size[:-1] * float(r)
    return by_size.sum()


def count_rows(rows, cardinalities, max_indegree, columns=()):
    """(`SetCounts` and first rows of the complete rows; number and weight of the others), in as many passes as the counts need.

    rows : Rows of blocks with or without a class, which comes last     cardinalities : of all variables
    columns : features whose missing cells are the state past their last one
    """
    sets = all_sets(len(cardinalities), max_indegree + 1)
    starts = state_offsets(np.append(cardinalities, 1)[sets].prod(axis=1))
    fills = columns, rows.schema.cardinalities
    passes = np.unique(starts[:-1] // CELLS_A_PASS, return_index=True)[1]
    if len(passes) > 1:
        rows = rows.prepared(as_is)
    found, n_holes, weight = [], 0, 0.0
    first: Any = None
    for a, b in zip(passes, [*passes[1:], len(sets)]):
        some = starts[a : b + 1] - starts[a]
        counts, first, n_holes, weight = rows.reduce(count_block, np.asarray(cardinalities), sets[a:b], some, *fills)
        found.append(counts)
    keys = set_keys(sets, len(cardinalities))
    return SetCounts(keys, starts, np.concatenate(found)), first.codes, int(n_holes), float(weight)


def count_block(block, cardinalities, sets, starts, columns, own):
    """(counts of the sets, `SmallestRows`, incomplete rows, their weight) of one block.

    columns, own : features whose missing cells are a state, and the cardinalities without it
    """
    weights, holes = block.weights, (block.codes < 0).any(1)
    lost = float(holes.sum()) if weights is None else weights[holes].sum()
    codes = fill_missing(block, columns, own).codes if len(columns) else block.codes
    if hasattr(block, "target"):
        codes = np.column_stack([codes, block.target])
    if holes.any() and not len(columns):
        codes, weights = codes[~holes], None if weights is None else weights[~holes]
    counts = np.zeros(starts[-1])
    weights = np.zeros(0) if weights is None else np.ascontiguousarray(weights, dtype=float)
    kernels.count_sets(np.ascontiguousarray(codes.T, dtype=np.int32), weights, cardinalities, sets, starts, counts)
    return counts, SmallestRows(codes), int(holes.sum()), lost


class SmallestRows:
    """The first `FIRST_ROWS` distinct rows in lexicographic order; a sum of two are those of all their rows.

    codes : (n_rows, n)
    """

    def __init__(self, codes):
        self.codes = np.asfortranarray(fold(codes)[0][:FIRST_ROWS], dtype=np.int32)

    def __add__(self, other):
        return SmallestRows(np.concatenate([self.codes, other.codes]))


def all_sets(n, max_size):
    """(n_sets, max_size) all sets of at most `max_size` of n variables: ascending, padded with -1, in lexicographic order."""
    sets = local_sets.__wrapped__(n, max_size)  # not kept: there may be millions
    return np.ascontiguousarray(sets[np.argsort(set_keys(sets, n))])


def set_keys(sets, n):
    """(n_sets,) a number for every set (ascending members padded with -1), ascending in lexicographic order."""
    keys = np.zeros(len(sets), dtype=np.int64)
    for column in np.asarray(sets).T:
        keys = keys * (n + 1) + column + 1
    return keys


def sets_of(keys, n, width):
    """The inverse of `set_keys`."""
    sets = np.empty((len(keys), width), dtype=np.int64)
    for t in range(width - 1, -1, -1):
        keys, rest = np.divmod(keys, n + 1)
        sets[:, t] = rest - 1
    return sets


def counted_table(training, scoring):
    """The `FamilyTable` of counted rows; scoring : `family_table.Scoring` with the prior of the rows."""
    cards, counts, max_indegree = training.cardinalities, training.sets, scoring.max_indegree
    table, layout = family_layout(cards, scoring)
    weighed = _Weighed(cards, training.weights, bool((counts.counts == np.rint(counts.counts)).all()))
    scores = np.zeros(table.offsets[-1])
    sets = sets_of(counts.keys, len(cards), max_indegree + 1)
    prior = lgamma_tables(weighed, scoring.prior, max_indegree)
    kernels.score_counted(sets, counts.starts, counts.counts, cards, prior, layout, scores)
    return with_priors(table, scores, scoring)


class SetCounts(NamedTuple):
    """Tables of counts; that of the set with the key ``keys[s]`` is ``counts[starts[s] : starts[s + 1]]``."""

    keys: np.ndarray  # (n_sets,) ascending, see `set_keys`
    starts: np.ndarray  # (n_sets + 1,)
    counts: np.ndarray


class CountedTraining(NamedTuple):
    """Counts behind a family table, and the parameter prior: what `fixed_order.Training` is for rows in memory."""

    sets: Any  # SetCounts
    width: int  # most variables of a set
    first_rows: np.ndarray  # (at most FIRST_ROWS, n) int32, distinct
    weights: np.ndarray  # (1,) that of all complete rows
    cardinalities: np.ndarray
    alpha: float
    equivalent_sample_size: float | None
    max_total: float | None = None

    @property
    def prior(self):
        """Arguments of `family_table.bounds`."""
        return self.alpha, self.equivalent_sample_size, self.max_total

    def sized(self, total):
        """The same with a total pseudo-count of every table (BDeu)."""
        return self._replace(equivalent_sample_size=total)

    @property
    def digested(self):
        """Arrays by which the data are known again."""
        return (*self.sets, self.cardinalities)

    def predict(self, children, parents, rows):
        """(n_families, n_rows) posterior mean of every row's value under every family; rows (n_rows, n) int32."""
        children = np.asarray(children, dtype=np.int64)
        starts, tables = self.mean_tables(children, parents)
        out = np.empty((len(children), len(rows)))
        kernels.look_up(tables, starts, self.cardinalities, children, parents, np.ascontiguousarray(rows.T), out)
        return out

    def mean_tables(self, children, parents):
        """(starts, tables): posterior means of every child under its parents, one table after the other."""
        cards = self.cardinalities
        starts = state_offsets(np.append(cards, 1)[parents].prod(axis=1) * cards[children])
        tables = np.empty(starts[-1])
        places = self.sets.starts[self.find(children, parents)]
        kernels.counted_means(self.sets.counts, places, cards, *bounds(*self.prior), children, parents, starts, tables)
        return starts, tables

    def family_counts(self, child, parents):
        """(n_parent_states, n_states) counts of one family; the first parent varies slowest."""
        members = sorted([*parents, child])
        at = self.find(np.array([child]), np.array([parents], dtype=np.int64).reshape(1, -1))[0]
        table = self.sets.counts[self.sets.starts[at] : self.sets.starts[at + 1]]
        table = table.reshape([self.cardinalities[v] for v in members])
        return table.transpose([members.index(v) for v in (*parents, child)]).reshape(-1, self.cardinalities[child])

    def find(self, children, parents):
        """(n_families,) positions of the sets of every child and its parents; parents padded with -1."""
        n, size = len(self.cardinalities), parents.shape[1] + 1
        everyone = np.column_stack([np.where(parents < 0, n, parents), children])
        everyone.sort(axis=1)  # the padding goes behind
        sets = np.full((len(everyone), max(self.width, size)), -1, dtype=np.int64)
        sets[:, :size] = np.where(everyone == n, -1, everyone)
        return np.searchsorted(self.sets.keys, set_keys(sets[:, : self.width], n))

    def only(self, children, parents):
        """The same with the sets of these families alone."""
        at = np.unique(self.find(children, parents))
        starts = self.sets.starts
        sizes = np.diff(starts)[at]
        places = np.repeat(starts[at] - state_offsets(sizes)[:-1], sizes) + np.arange(sizes.sum())
        return self._replace(sets=SetCounts(self.sets.keys[at], state_offsets(sizes), self.sets.counts[places]))


class _Weighed(NamedTuple):
    cardinalities: np.ndarray
    weights: np.ndarray
    integral: bool
