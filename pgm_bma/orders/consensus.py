"""One acyclic graph from arc posteriors: by a threshold, of least expected loss or of least expected distance."""

import numpy as np

MAX_EXACT = 16  # the exact graph takes 2^n n steps in numpy


def above_threshold(edges, threshold):
    """Arcs with posterior >= threshold, the most probable first, leaving out what would close a cycle.

    edges : (n, n) P(parent -> child); returns a list of (parent, child). Ties go to the first arc in row order.
    """
    return _greedy(np.where(edges >= threshold, edges, 0.0))


def least_expected_loss(edges, false_arc=1.0, missed_arc=1.0):
    """The acyclic graph that costs least on average, when a false arc costs `false_arc` and a missed one `missed_arc`.

    Including an arc gains p missed_arc - (1 - p) false_arc.
    """
    return _most_gain(edges * missed_arc - (1.0 - edges) * false_arc)


def least_expected_distance(edges):
    """The acyclic graph of least expected structural Hamming distance: a missing, false or reversed arc counts one.

    Without an arc, a pair costs the probability p + q that there is one; with the arc of probability p, it costs 1 - p. So the arc
    gains 2 p + q - 1.
    """
    return _most_gain(2.0 * edges + edges.T - 1.0)


def _most_gain(gains):
    """The acyclic graph with the largest sum of gains (n, n).

    Exact up to MAX_EXACT nodes (the best order of the nodes by dynamic programming over subsets); greedy beyond.
    """
    gains = np.maximum(gains, 0.0)
    np.fill_diagonal(gains, 0.0)
    if len(gains) > MAX_EXACT:
        return _greedy(gains)
    position = np.argsort(_best_order(gains))
    return sorted((int(u), int(v)) for u, v in zip(*np.nonzero(gains)) if position[u] < position[v])


def along_threshold(edges):
    """[(parent, child, posterior)] of `above_threshold` at every threshold: those of at least its posterior come first."""
    return [(u, v, float(edges[u, v])) for u, v in _chosen(edges)]


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
        last[group] = n - 1 - values[:, ::-1].argmax(1)  # of ties, the last column: arcs go from left to right
        best[group] = values.max(1)
    order, subset = [], 2**n - 1
    while subset:
        order.append(last[subset])
        subset ^= 1 << int(last[subset])
    return np.array(order[::-1])


def _greedy(values):
    return sorted(_chosen(values))


def _chosen(values):
    """Arcs with positive values (n, n) in falling order, leaving out what would close a cycle."""
    reach = np.eye(len(values), dtype=bool)  # reach[u, v]: a path from u to v
    arcs = []
    ranked = np.argsort(-values, axis=None, kind="stable")
    for u, v in zip(*np.unravel_index(ranked, values.shape)):
        if values[u, v] <= 0.0:
            break
        if not reach[v, u]:
            arcs.append((int(u), int(v)))
            reach |= reach[:, u, None] & reach[None, v, :]
    return arcs
