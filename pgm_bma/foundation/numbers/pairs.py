"""Pair tables of all columns at once, in every class.

Layout: the states of all columns side by side (`families.state_offsets`), so that the counts of columns i and j under class c are
``pairs[c, offsets[i]:offsets[i+1], offsets[j]:offsets[j+1]]``. A missing cell is a row of zeros: pairs hold the rows in which both
cells are present.

`pair_counts` is one matrix product of indicator columns per class. `grouped_pair_counts` is faster: neighbouring columns with at
most 32 joint states become one super-column, one compiled sweep over the rows counts the pairs of super-columns, and small products
marginalise those tables to the pairs of states. A row costs (number of super-columns)^2 / 2 additions per cluster, where the
product costs (number of states)^2. The counts of whole weights are exact.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from pgm_bma.foundation.numbers import _kernels as kernels
from pgm_bma.foundation.numbers._kernels import (
    add_cells,
    add_filled_cells,
    add_information,
    add_scores,
    pair_interactions,
)
from pgm_bma.foundation.numbers.families import side_by_side_scores, state_offsets
from pgm_bma.foundation.rows.blocks import over_rows
from pgm_bma.foundation.runtime.jobs import in_moments

_BLOCK_CELLS = 1 << 24  # of what `pair_blocks` holds at a time
# of its lower half: what lies off the diagonal is counted in vain, and 8 MB stay near the core
_HALF_CELLS = 1 << 20
_KNOWN = 1 << 16  # whole counts whose log Gamma is looked up
WIDE = 2048  # states of all columns; the pairs of more are not held at once
MANY_STATES = 8  # of a column, from which the cells that rows fall in are cheaper than products of indicators; measured


def indicators(codes, cardinalities, dtype=np.float64):
    """One column of zeros and ones per state: (n_samples, sum of cardinalities)."""
    offsets = state_offsets(cardinalities)
    flags = np.zeros((len(codes), int(offsets[-1])), dtype=dtype)
    for column, offset in enumerate(offsets[:-1]):
        values = codes[:, column].astype(np.int64)
        rows = np.flatnonzero(values >= 0)
        flags[rows, offset + values[rows]] = 1
    return flags


def pair_counts(flags, class_weights):
    """Counts of all pairs of states under every class.

    flags : (n_samples, S) from `indicators`     class_weights : (n_samples, n_classes), observed, expected or weighted
    returns (n_classes, S, S)
    """
    pairs = np.empty((class_weights.shape[1], flags.shape[1], flags.shape[1]))
    for k in range(class_weights.shape[1]):
        half = flags * np.sqrt(class_weights[:, k])[:, None]  # numpy multiplies a matrix with itself in half the time
        np.matmul(half.T, half, out=pairs[k])
    return pairs


def conditional_mutual_information(pairs, cardinalities):
    """I(X_i; X_j | class) of all pairs, in nats: (n_columns, n_columns), symmetric, zero diagonal.

    pairs : (n_classes, S, S); each pair is normalised by its own total (the rows that have both cells).
    """
    return blocked_information([(0, len(cardinalities), pairs)], cardinalities)[0]


def blocked_information(blocks, cardinalities):
    """The same from `pair_blocks`, and the counts of single states (n_classes, S)."""
    n, offsets = len(cardinalities), state_offsets(cardinalities)
    information, total, singles = np.zeros((n, n)), np.zeros((n, n)), []
    for first, stop, pairs in blocks:
        singles.append(np.diagonal(pairs[:, :, offsets[first] : offsets[stop]], axis1=1, axis2=2).copy())
        for table in np.ascontiguousarray(pairs, dtype=float):
            add_information(table, offsets, first, information[first:stop], total[first:stop])
    below = np.maximum(information / np.where(total > 0, total, 1.0), 0.0)
    return below + below.T, np.concatenate(singles, axis=1)


class PairPrior(NamedTuple):
    """Pseudo-counts of one cell: alone (n,) of a column below the class alone; below (n, n), [parent, child], below both."""

    alone: np.ndarray
    below: np.ndarray


def interaction_information(codes, target, weights, cardinalities, n_classes, max_cells=50_000_000):
    """Information on the class in nats: I(X_i; C) on the diagonal, I(X_i; X_j; C) = I(X_i; X_j | C) - I(X_i; X_j) off it.

    Positive: the pair says more than its two columns (synergy); negative: they repeat each other.
    Returns (n_columns, n_columns), symmetric; NaN for a pair whose table has more than `max_cells` cells.
    """
    n = codes.shape[1]
    result = np.zeros((n, n))
    for lines in in_moments(n, n * len(codes) / 2):
        pair_interactions(codes, target, weights, cardinalities, n_classes, max_cells, lines.start, lines.stop, result)
    np.fill_diagonal(result, information_gains(codes, target, weights, cardinalities, n_classes))
    return result


def information_gains(codes, target, weights, cardinalities, n_classes):
    """I(X_i; C) of every column in nats, over the rows that have it: (n_columns,)."""
    gains = np.empty(codes.shape[1])
    for j, card in enumerate(cardinalities):
        seen = codes[:, j] >= 0
        cells = codes[seen, j].astype(np.int64) * n_classes + target[seen]
        gains[j] = information_gain(np.bincount(cells, weights[seen], card * n_classes).reshape(card, n_classes))
    return gains


def information_gain(counts):
    """I(X; C) in nats of a table (n_states, n_classes) of weights; 0 of an empty one."""
    total = counts.sum()
    if total == 0:
        return 0.0
    table = counts / total
    independent = table.sum(axis=1, keepdims=True) * table.sum(axis=0)
    filled = table > 0
    return max(float(table[filled] @ np.log(table[filled] / independent[filled])), 0.0)


def pair_prior(n_classes, cardinalities, alpha=1.0, equivalent_sample_size=None):
    """The same pseudo-count in every cell (K2 when 1), or BDeu's equivalent sample size spread over every table."""
    cardinalities = np.asarray(cardinalities)
    n = len(cardinalities)
    if equivalent_sample_size is None:
        return PairPrior(np.full(n, float(alpha)), np.full((n, n), float(alpha)))
    spread = equivalent_sample_size / n_classes
    return PairPrior(spread / cardinalities, spread / np.outer(cardinalities, cardinalities))


def mass_consistent_prior(cardinalities, alone):
    """Every table of a column holds the same pseudo-counts in sum: those of `alone` (n,), split among the parent's states."""
    return PairPrior(alone, alone[None, :] / np.asarray(cardinalities)[:, None])


class PairScores(NamedTuple):
    """Log marginal likelihoods, all [child, parent] where there are two axes.

    with_parent (n, n): the child given the class and the parent, on the rows that have both cells
    without_parent (n, n): the child given the class alone, on those same rows
    alone (n,): the child given the class alone, on all rows that have it
    """

    with_parent: np.ndarray
    without_parent: np.ndarray
    alone: np.ndarray


def pair_scores(pairs, cardinalities, prior):
    """Dirichlet scores of all families with the class and one other column as parents.

    pairs : (n_classes, S, S) from `pair_counts`; pass ``pairs.sum(0, keepdims=True)`` to leave the class out.
    Without missing cells `without_parent` repeats `alone`; with them it is the fair opponent of `with_parent`.
    """
    singles = np.ascontiguousarray(np.diagonal(pairs, axis1=1, axis2=2), dtype=float)
    cardinalities = np.asarray(cardinalities)
    n, offsets = len(cardinalities), state_offsets(cardinalities)
    below, own = np.ascontiguousarray(prior.below, dtype=float), np.ascontiguousarray(prior.alone, dtype=float)
    with_parent, without_parent = _of_the_prior(len(pairs), cardinalities, below), np.zeros((n, n))
    alone = side_by_side_scores(singles, np.repeat(own, cardinalities), offsets[:-1])  # (n_classes, n)
    is_symmetric = bool((below == below.T).all())
    # rows: states of the parent, columns: states of the child
    for table, single, score in zip(np.ascontiguousarray(pairs, dtype=float), singles, alone):
        add_scores(table, single, offsets, below, own, score, is_symmetric, with_parent, without_parent)
    return PairScores(with_parent.T, without_parent.T, alone.sum(0))


def _of_the_prior(n_classes, cardinalities, below):
    """Return what the prior alone contributes to a score with a parent, [parent, child]: the same in all cells of a table."""
    return n_classes * cardinalities[:, None] * (gammaln(below * cardinalities) - cardinalities * gammaln(below))


def complete_pair_scores(codes, cardinalities, weights, prior):
    """`pair_scores` of complete rows, counted some columns or, of many states, one pair at a time; half of the pairs are read off
    the other half.

    weights : (n_samples, n_classes)     prior : from `pair_prior`, symmetric, and equal for columns of equal cardinality
    The margins of a pair are the counts of its columns here, so that a table is only asked for the sum over its cells.
    """
    cardinalities = np.asarray(cardinalities)
    offsets, n_classes = state_offsets(cardinalities), weights.shape[1]
    singles = np.empty((n_classes, offsets[-1]))
    for i, (first, stop) in enumerate(pairwise(offsets)):
        for k, weight in enumerate(weights.T):
            singles[k, first:stop] = np.bincount(codes[:, i], weight, minlength=stop - first)
    below = np.ascontiguousarray(prior.below, dtype=float)
    scores = np.zeros(below.shape)  # [parent, child]; the lower half first
    parts = [(np.flatnonzero(weight), weight[weight != 0]) for weight in weights.T]
    n = len(cardinalities)
    if offsets[-1] > max(WIDE, MANY_STATES * n):
        turned = np.ascontiguousarray(codes.T, dtype=np.int32)
        for some in in_moments(n, n * len(codes) * n_classes):
            for part in parts:
                add_filled_cells(turned, *part, cardinalities, below, some.start, some.stop, scores)
    else:
        _add_in_blocks(codes, cardinalities, parts, below, scores)
    scores += np.tril(scores, -1).T
    _, examples, kinds = np.unique(cardinalities, return_index=True, return_inverse=True)
    constant = _of_the_prior(n_classes, cardinalities[examples], below[np.ix_(examples, examples)])
    masses = np.repeat(below[:, examples] * cardinalities[examples], cardinalities, axis=0)  # (S, n_kinds)
    lines = np.add.reduceat(sum(gammaln(single[:, None] + masses) for single in singles), offsets[:-1])
    scores += (constant[kinds] - lines)[:, kinds]
    alone = side_by_side_scores(singles, np.repeat(prior.alone, cardinalities), offsets[:-1]).sum(0)
    return PairScores(scores.T, np.broadcast_to(alone[:, None], scores.shape), alone)


def _add_in_blocks(codes, cardinalities, parts, below, scores):
    """Add the sums of log Gamma(count + pseudo-count), by products of indicators of some columns at a time."""
    offsets = state_offsets(cardinalities)
    same = below.size and (below == below[0, 0]).all()
    most = int(sum(weights.sum() for _, weights in parts))
    known = gammaln(np.arange(min(most, _KNOWN) + 1) + below[0, 0]) if same else np.empty(0)
    for first, stop, pairs in pair_blocks(codes, cardinalities, parts, lower=True):
        for table in pairs:
            add_cells(table, offsets, first, below, known, scores[first:stop])


def class_parts(target, n_classes, weights):
    """The `parts` of `pair_blocks` where the class is observed."""
    rows = [np.flatnonzero(target == c) for c in range(n_classes)]
    return [(some, weights[some]) for some in rows]


def pair_blocks(codes, cardinalities, parts, lower=False):
    """Counts of pairs of states, some columns with all columns at a time: yields (first, stop, (n_parts, states, S)).

    parts : (rows, weights) of every class or cluster, `rows` a slice or positions in codes
    lower : with the columns up to the last of themselves only, (n_parts, states, states before `stop`)
    For tables so wide that all pairs at once would fill memory; a cell may be missing (-1).
    """
    cardinalities = np.asarray(cardinalities)
    offsets = state_offsets(cardinalities)
    n_states = int(offsets[-1])
    n_rows = max(_BLOCK_CELLS // n_states, 1)  # at once
    at_once = min(_BLOCK_CELLS, _HALF_CELLS) if lower else _BLOCK_CELLS
    states = max(at_once // (len(parts) * n_states), 1)
    kept = None
    if len(codes) <= n_rows:  # all indicators fit: made once, not again for every block
        everything = indicators(codes, cardinalities, _exact_type([weights for _, weights in parts]))
        kept = [everything[rows] for rows, _ in parts]
    first = 0
    while first < len(cardinalities):
        stop = max(int(np.searchsorted(offsets, offsets[first] + states, side="right")) - 1, first + 1)
        here, width = slice(offsets[first], offsets[stop]), offsets[stop] if lower else n_states
        pairs = np.zeros((len(parts), offsets[stop] - offsets[first], width))
        for k, (rows, weights) in enumerate(parts):
            if kept is not None:
                flags = kept[k]
                pairs[k] = (flags[:, here] * weights[:, None].astype(flags.dtype)).T @ flags[:, :width]
                continue
            some = codes[rows]
            for start in range(0, len(some), n_rows):
                flags = indicators(some[start : start + n_rows], cardinalities)
                pairs[k] += (flags[:, here] * weights[start : start + n_rows, None]).T @ flags[:, :width]
        yield first, stop, pairs
        first = stop


def _exact_type(weights):
    """Whole numbers are summed without rounding in single precision, in half the time, as long as they stay below 2^24."""
    is_exact = all((weight == np.rint(weight)).all() and weight.sum() < 2**24 for weight in weights)
    return np.float32 if is_exact else np.float64


def pair_means(pairs, cardinalities, prior):
    """Posterior means P(child state | class, parent state): (n_classes, S, S), rows parents; and alone: (n_classes, S)."""
    starts = state_offsets(cardinalities)[:-1]
    column = np.repeat(np.arange(len(cardinalities)), cardinalities)
    cells = pairs + prior.below[np.ix_(column, column)]
    totals = np.add.reduceat(cells, starts, axis=2)
    single = np.diagonal(pairs, axis1=1, axis2=2) + prior.alone[column]
    single_totals = np.add.reduceat(single, starts, axis=1)
    return cells / totals[:, :, column], single / single_totals[:, column]


_GROUP_COLUMNS = 16  # of a super-column; constant columns do not fill one, and arrays have 64 dimensions at most
_GROUP_STATES = 32  # two super-columns make a table of 1024 lines, which stays in the second cache
_LEAST_COST = 1000  # of a row: fifty thousand at a time keep the copies of their codes small


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
    for rows in in_moments(len(codes), max(len(groups.members) ** 2 / 2, _LEAST_COST)):
        block = codes[rows].astype(np.int64)
        if gaps.any():
            block = np.where(block < 0, cards, block)
        joined = np.ascontiguousarray(join_columns(block, wider, groups.members).T)
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
    """Return whether few rows of many columns are better multiplied out; nanoseconds, measured.

    n_tables : classes whose rows are counted apart, each into its tables of all pairs; 1 where every cluster takes all rows
    """
    return 0.1 * n_rows * groups.n_states**2 < 0.75 * n_rows * len(groups.members) ** 2 + 15 * n_tables * groups.total


def plan_groups(cardinalities):
    """Joined columns, and where the counts of their pairs lie: PairGroups without rows."""
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
    counts, weights = np.zeros((groups.total, weights.shape[1])), np.ascontiguousarray(weights)
    for rows in in_moments(len(weights), len(groups.members) ** 2 * weights.shape[1] / 2):
        columns = np.ascontiguousarray(groups.columns[rows].T)
        kernels.group_pairs(columns, groups.sizes, groups.offsets, weights[rows], counts)
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
