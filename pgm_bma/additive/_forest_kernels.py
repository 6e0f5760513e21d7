"""Kernels of the forest: one tree over bins and states, and the leaves that rows reach."""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled

_TIE = 1e-9  # gains that differ by rounding are equal: the first split stays


@compiled
def next_random(state):
    """The next 64 pseudo-random bits (splitmix64) of `state` (1,), uint64."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@compiled
def grow(bins, sizes, ordered, target, weights, n_try, state, columns, masks, children, leaves):
    """One tree, to the end: nodes are split by the best of `n_try` random columns until they hold one class.

    bins : (n_columns, n_samples), bytes; 0 is missing     sizes : (n_columns,), at most 63
    ordered : (n_columns,) bool, bins have an order; else the states of a node are ordered by the share of its largest class
    weights : (n_samples,), above 0     state : (1,) of `next_random`
    columns, masks, children : (n_nodes,), filled; a row whose bin is a bit of the mask goes to the child, others to the next node
    behind it; a leaf has child -1 - its number     leaves : (n_leaves, n_classes), filled with class shares

    Returns (number of nodes, number of leaves).
    """
    n_classes = leaves.shape[1]
    rows = np.arange(len(target))
    spare = np.empty_like(rows)
    order = np.arange(len(bins))
    starts, stops = np.empty(len(columns), dtype=np.int64), np.empty(len(columns), dtype=np.int64)
    starts[0], stops[0] = 0, len(rows)
    held, total = np.zeros((63, n_classes)), np.zeros(n_classes)
    below = np.zeros(n_classes)
    mass, place = np.zeros(63), np.zeros(63, dtype=np.int64)
    n_nodes, n_leaves, node = 1, 0, 0
    while node < n_nodes:
        start, stop = starts[node], stops[node]
        total[:] = 0.0
        for i in range(start, stop):
            total[target[rows[i]]] += weights[rows[i]]
        whole, largest = total.sum(), total.argmax()
        best, found = -1.0, 0
        if total[largest] < whole:
            n_tried = 0
            for k in range(len(order)):
                drawn = k + np.int64(next_random(state) % np.uint64(len(order) - k))
                order[k], order[drawn] = order[drawn], order[k]
                j = order[k]
                size = sizes[j]
                held[:size] = 0.0
                for i in range(start, stop):
                    held[bins[j, rows[i]], target[rows[i]]] += weights[rows[i]]
                n_seen = 0
                for b in range(size):
                    mass[b] = held[b].sum()
                    if mass[b] > 0:
                        place[n_seen] = b
                        n_seen += 1
                if n_seen < 2:
                    continue
                if not ordered[j]:
                    for a in range(1, n_seen):
                        b, at = place[a], a
                        share = held[b, largest] / mass[b]
                        while at > 0 and held[place[at - 1], largest] / mass[place[at - 1]] > share:
                            place[at] = place[at - 1]
                            at -= 1
                        place[at] = b
                below[:] = 0.0
                side, mask = 0.0, 0
                for a in range(n_seen - 1):
                    b = place[a]
                    side += mass[b]
                    mask |= 1 << b
                    gain = 0.0
                    for c in range(n_classes):
                        below[c] += held[b, c]
                        gain += below[c] ** 2 / side + (total[c] - below[c]) ** 2 / (whole - side)
                    if gain > best * (1 + _TIE):
                        best, found, columns[node] = gain, mask, j
                        if ordered[j]:  # the cut lies in the middle between two bins
                            last = (b + place[a + 1] - 1) // 2
                            found = (2 << last) - 1
                n_tried += 1
                if n_tried == n_try:
                    break
        if best < 0:
            leaves[n_leaves] = total / whole
            n_leaves += 1
            children[node] = -n_leaves
            node += 1
            continue
        masks[node], children[node] = found, n_nodes
        n_left, n_right = 0, 0
        column = bins[columns[node]]
        for i in range(start, stop):
            r = rows[i]
            if (found >> np.int64(column[r])) & 1:
                rows[start + n_left] = r
                n_left += 1
            else:
                spare[n_right] = r
                n_right += 1
        rows[start + n_left : stop] = spare[:n_right]
        starts[n_nodes], stops[n_nodes] = start, start + n_left
        starts[n_nodes + 1], stops[n_nodes + 1] = start + n_left, stop
        n_nodes += 2
        node += 1
    return n_nodes, n_leaves


@compiled
def add_leaves(bins, root, columns, masks, children, leaves, rows, sums):
    """Add rows (n_samples,) x the shares of the leaf that a row reaches in one tree to sums (n_samples, n_classes)."""
    for r in range(bins.shape[1]):
        if rows[r] == 0.0:
            continue
        node = root
        while children[node] >= 0:
            node = children[node] + 1 - ((masks[node] >> np.int64(bins[columns[node], r])) & 1)
        leaf = -1 - children[node]
        for c in range(sums.shape[1]):
            sums[r, c] += rows[r] * leaves[leaf, c]
