"""One acyclic graph from arc posteriors: a threshold, or the graph of least expected loss."""

import numpy as np

MAX_EXACT = 16  # the exact graph takes 2^n n steps in numpy


def above_threshold(edges, threshold):
    """Arcs with posterior >= threshold, the most probable first, leaving out what would close a cycle.

    edges : (n, n) P(parent -> child); returns a list of (parent, child). Ties go to the first arc in row order.
    """
    values = np.where(edges >= threshold, edges, 0.0)
    return _greedy(values)


def least_expected_loss(edges, false_arc=1.0, missed_arc=1.0):
    """The acyclic graph that costs least on average, when a false arc costs `false_arc` and a missed one `missed_arc`.

    Including an arc gains p missed_arc - (1 - p) false_arc. The best acyclic choice is exact up to MAX_EXACT nodes (the best
    order of the nodes by dynamic programming over subsets), and greedy, strongest arcs first, beyond.
    """
    gains = edges * missed_arc - (1.0 - edges) * false_arc
    np.fill_diagonal(gains, 0.0)
    gains = np.maximum(gains, 0.0)
    n = len(edges)
    if n > MAX_EXACT:
        return _greedy(gains)
    order = _best_order(gains)
    position = np.argsort(order)
    return [(int(u), int(v)) for u, v in zip(*np.nonzero(gains)) if position[u] < position[v]]


def _best_order(gains):
    """Order of the nodes that keeps the largest sum of gains[u, v] over u before v."""
    n = len(gains)
    subsets = np.arange(2**n)
    inside = (subsets[:, None] >> np.arange(n) & 1).astype(bool)
    into = inside @ gains  # (2^n, n) gain of a node placed after a subset
    best = np.zeros(2**n)
    last = np.zeros(2**n, dtype=np.int64)
    size = inside.sum(1)
    for k in range(1, n + 1):  # all subsets of one size at a time
        group = subsets[size == k]
        values = np.full((len(group), n), -np.inf)
        for v in range(n):
            has = inside[group, v]
            without = group[has] ^ (1 << v)
            values[has, v] = best[without] + into[without, v]
        last[group] = values.argmax(1)
        best[group] = values.max(1)
    order, subset = [], 2**n - 1
    while subset:
        order.append(last[subset])
        subset ^= 1 << int(last[subset])
    return np.array(order[::-1])


def _greedy(values):
    n = len(values)
    reach = np.eye(n, dtype=bool)  # reach[u, v]: a path from u to v
    arcs = []
    ranked = np.argsort(-values, axis=None, kind="stable")
    for u, v in zip(*np.unravel_index(ranked, values.shape)):
        if values[u, v] <= 0.0:
            break
        if u != v and not reach[v, u]:
            arcs.append((int(u), int(v)))
            reach |= reach[:, u, None] & reach[None, v, :]
    return sorted(arcs)
