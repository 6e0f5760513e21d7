"""Pair counts of all columns in all clusters at once, faster than matrix products: columns are joined into super-columns.

Neighbouring columns with at most 32 joint states become one super-column. One compiled sweep over the rows counts the pairs of
super-columns, and small products marginalise those tables to the pairs of states. A row costs (number of super-columns)^2 / 2
additions per cluster, where the product of indicator columns (`foundation.pairs.pair_counts`, its plain twin) costs
(number of states)^2. Rows must be complete. The counts of whole weights are exact.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.augmented import _kernels as kernels
from pgm_bma.foundation.counts import state_offsets

_GROUP_STATES = 32  # two super-columns make a table of 1024 lines, which stays in the second cache


def make_pair_groups(codes, cardinalities):
    """Join the columns of complete rows: codes (n, n_features) -> PairGroups."""
    cards = np.asarray(cardinalities, dtype=np.int64)
    members = [[]]
    for i, card in enumerate(cards):
        if members[-1] and np.prod(cards[members[-1]]) * card > _GROUP_STATES:
            members.append([])
        members[-1].append(i)
    columns = np.empty((len(codes), len(members)), dtype=np.int32)
    flags = []
    for g, group in enumerate(members):
        column = np.zeros(len(codes), dtype=np.int32)
        for i in group:
            column = column * np.int32(cards[i]) + codes[:, i]
        columns[:, g] = column
        states = np.indices(cards[group]).reshape(len(group), -1)
        flags.append(np.concatenate([states[m][:, None] == np.arange(cards[i]) for m, i in enumerate(group)], axis=1))
    sizes = np.array([len(f) for f in flags], dtype=np.int64)
    n = len(members)
    offsets = np.zeros((n, n), dtype=np.int64)
    total = 0
    for g in range(n):
        for h in range(g, n):
            offsets[g, h] = total
            total += sizes[g] if g == h else sizes[g] * sizes[h]
    states = state_offsets(cards)
    places = [slice(states[group[0]], states[group[-1] + 1]) for group in members]
    return PairGroups(columns, sizes, offsets, int(total), [f.astype(float) for f in flags], places, int(states[-1]))


def grouped_pair_counts(groups, weights):
    """Counts of all pairs of states under every cluster, the single states on the diagonal.

    weights : (n, n_clusters)     returns (n_clusters, n_states, n_states)
    """
    k = weights.shape[1]
    counts = np.zeros((groups.total, k))
    kernels.group_pairs(groups.columns, groups.sizes, groups.offsets, np.ascontiguousarray(weights), counts)
    pairs = np.empty((k, groups.n_states, groups.n_states))
    for g, (flags, here) in enumerate(zip(groups.flags, groups.places)):
        size = len(flags)
        own = counts[groups.offsets[g, g] : groups.offsets[g, g] + size].T
        if flags[0].sum() == 1:  # one column, perhaps of many states: a product would cost their cube
            pairs[:, here, here] = own[:, None, :] * flags
        else:
            pairs[:, here, here] = (flags.T * own[:, None, :]) @ flags
        for h in range(g + 1, len(groups.flags)):
            other, there = groups.flags[h], groups.places[h]
            first = groups.offsets[g, h]
            table = counts[first : first + size * len(other)].T.reshape(k, size, len(other))
            block = flags.T @ table @ other
            pairs[:, here, there] = block
            pairs[:, there, here] = block.swapaxes(1, 2)
    return pairs


class PairGroups(NamedTuple):
    """columns (n, n_groups): joint state of every super-column; sizes (n_groups,); offsets (n_groups, n_groups): first line of
    the table of each pair, `total` of them; flags: states of its columns for every joint state; places: where these lie."""

    columns: np.ndarray
    sizes: np.ndarray
    offsets: np.ndarray
    total: int
    flags: list
    places: list
    n_states: int
