"""Pair counts of all columns in all classes at once, faster than matrix products: columns are joined into super-columns.

Neighbouring columns with at most 32 joint states become one super-column. One compiled sweep over the rows counts the pairs of
super-columns, and small products marginalise those tables to the pairs of states. A row costs (number of super-columns)^2 / 2
additions per cluster, where the product of indicator columns (`foundation.numbers.pairs.pair_counts`, its plain twin) costs
(number of states)^2. The counts of whole weights are exact.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers import _score_kernels as kernels
from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.foundation.numbers.pairs import class_parts, indicators, pair_blocks, pair_counts
from pgm_bma.foundation.rows.blocks import over_rows

_GROUP_COLUMNS = 16  # of a super-column; constant columns do not fill one, and arrays have 64 dimensions at most
_GROUP_STATES = 32  # two super-columns make a table of 1024 lines, which stays in the second cache
_ROWS_AT_ONCE = 1 << 16


@over_rows
def count_classes_and_pairs(codes, cardinalities, target, n_classes, weights=None):
    """(counts of all pairs of states under an observed class (n_classes, S, S), counts of the classes); takes `Rows` too."""
    pairs = count_class_pairs(codes, cardinalities, target, n_classes, weights)
    return pairs, np.bincount(target, weights, minlength=n_classes).astype(float)


def count_class_pairs(codes, cardinalities, target, n_classes, weights=None):
    """Counts of all pairs of states under an observed class, block by block: (n_classes, S, S).

    codes : (n_samples, n_columns), -1 = missing: pairs hold the rows in which both cells are present
    """
    cards = np.asarray(cardinalities, dtype=np.int64)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    target = np.asarray(target, dtype=np.int64)
    gaps = np.array([bool((codes[:, i] < 0).any()) for i in range(len(cards))], dtype=bool)
    wider = cards + gaps  # a missing cell is one more state, the last, which is dropped in the end
    groups = plan_groups(wider)
    if products_are_faster(len(codes), groups, n_classes):
        return _mirrored(
            pair_blocks(codes, cards, class_parts(target, n_classes, weights), lower=True), cards, n_classes
        )
    counts = np.zeros((n_classes, groups.total))
    for start in range(0, len(codes), _ROWS_AT_ONCE):
        rows = slice(start, start + _ROWS_AT_ONCE)
        block = codes[rows].astype(np.int64)
        if gaps.any():
            block = np.where(block < 0, cards, block)
        joined = join_columns(block, wider, groups.members)
        kernels.class_group_pairs(joined, groups.sizes, groups.offsets, target[rows], weights[rows], counts)
    pairs = _marginalise(groups, counts)
    if not gaps.any():
        return pairs
    known = np.delete(np.arange(pairs.shape[1]), state_offsets(wider)[1:][gaps] - 1)
    return pairs[:, known[:, None], known]


def _mirrored(blocks, cardinalities, n_classes):
    """All pairs from the lower half of them."""
    offsets = state_offsets(cardinalities)
    pairs = np.empty((n_classes, offsets[-1], offsets[-1]))
    for first, stop, block in blocks:
        here = slice(offsets[first], offsets[stop])
        pairs[:, here, : offsets[stop]] = block
        pairs[:, : offsets[first], here] = block[:, :, : offsets[first]].swapaxes(1, 2)
    return pairs


def make_pair_groups(codes, cardinalities, products=False):
    """Join the columns of complete rows: codes (n, n_columns) -> PairGroups.

    products : keep indicators instead, for `grouped_pair_counts` alone, where matrix products are faster
    """
    groups = plan_groups(cardinalities)
    if products and products_are_faster(len(codes), groups, 1):
        return groups._replace(indicators=indicators(codes, cardinalities))
    return groups._replace(columns=join_columns(codes, np.asarray(cardinalities), groups.members))


def products_are_faster(n_rows, groups, n_tables):
    """Whether few rows of many columns are better multiplied out; nanoseconds, measured.

    n_tables : classes whose rows are counted apart, each into its tables of all pairs; 1 where every cluster takes all rows
    """
    return 0.1 * n_rows * groups.n_states**2 < 0.75 * n_rows * len(groups.members) ** 2 + 15 * n_tables * groups.total


def plan_groups(cardinalities):
    """Which columns are joined, and where the counts of their pairs lie: PairGroups without rows."""
    cards = np.asarray(cardinalities, dtype=np.int64)
    members: list[list[int]] = [[]]
    for i, card in enumerate(cards):
        if members[-1] and (np.prod(cards[members[-1]]) * card > _GROUP_STATES or len(members[-1]) == _GROUP_COLUMNS):
            members.append([])
        members[-1].append(i)
    flags = []
    for group in members:
        states = np.indices(tuple(cards[group])).reshape(len(group), -1)
        flags.append(np.concatenate([states[m][:, None] == np.arange(cards[i]) for m, i in enumerate(group)], axis=1))
    sizes = np.array([len(f) for f in flags], dtype=np.int64)
    tables = np.triu(np.outer(sizes, sizes), 1) + np.diag(sizes)
    offsets = np.ascontiguousarray(np.triu(state_offsets(tables.ravel())[:-1].reshape(tables.shape)))
    states = state_offsets(cards)
    places = [slice(states[group[0]], states[group[-1] + 1]) for group in members]
    nothing = np.empty((0, len(members)), dtype=np.int32)
    flags = [f.astype(float) for f in flags]
    return PairGroups(nothing, sizes, offsets, int(tables.sum()), flags, places, int(states[-1]), members)


def join_columns(codes, cardinalities, members):
    """Joint state of every super-column in complete rows: (n, n_groups) int32."""
    columns = np.empty((len(codes), len(members)), dtype=np.int32)
    for g, group in enumerate(members):
        column = np.zeros(len(codes), dtype=np.int32)
        for i in group:
            column = column * np.int32(cardinalities[i]) + codes[:, i]
        columns[:, g] = column
    return columns


def grouped_pair_counts(groups, weights):
    """Counts of all pairs of states under every cluster, the single states on the diagonal.

    weights : (n, n_clusters)     returns (n_clusters, n_states, n_states)
    """
    if groups.indicators is not None:
        return pair_counts(groups.indicators, weights)
    counts = np.zeros((groups.total, weights.shape[1]))
    kernels.group_pairs(groups.columns, groups.sizes, groups.offsets, np.ascontiguousarray(weights), counts)
    return _marginalise(groups, counts.T)


def _marginalise(groups, counts):
    """Tables of super-columns (k, total) -> pairs of states (k, n_states, n_states)."""
    k = len(counts)
    pairs = np.empty((k, groups.n_states, groups.n_states))
    for g, (flags, here) in enumerate(zip(groups.flags, groups.places)):
        size = len(flags)
        own = counts[:, groups.offsets[g, g] : groups.offsets[g, g] + size]
        if flags[0].sum() == 1:  # one column, perhaps of many states: a product would cost their cube
            pairs[:, here, here] = own[:, None, :] * flags
        else:
            pairs[:, here, here] = (flags.T * own[:, None, :]) @ flags
        for h in range(g + 1, len(groups.flags)):
            other, there = groups.flags[h], groups.places[h]
            first = groups.offsets[g, h]
            table = counts[:, first : first + size * len(other)].reshape(k, size, len(other))
            # a column that stands alone is its own margin: products with the unit matrix of thousands of states would not end
            block = table if flags[0].sum() == 1 else flags.T @ table
            block = block if other[0].sum() == 1 else block @ other
            pairs[:, here, there] = block
            pairs[:, there, here] = block.swapaxes(1, 2)
    return pairs


class PairGroups(NamedTuple):
    """columns (n, n_groups): joint state of every super-column; sizes (n_groups,); offsets (n_groups, n_groups): first line of
    the table of each pair, `total` of them; flags: states of its columns for every joint state; places: where these lie;
    members: the columns of every super-column. indicators (n, n_states), instead of columns, where products are faster."""

    columns: np.ndarray
    sizes: np.ndarray
    offsets: np.ndarray
    total: int
    flags: list
    places: list
    n_states: int
    members: list
    indicators: np.ndarray | None = None
