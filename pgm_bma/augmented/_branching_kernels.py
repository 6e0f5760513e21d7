"""Maximum-weight arborescence of a dense graph, compiled (Chu and Liu 1965; Edmonds 1967).

Every node takes its best incoming arc; a cycle is contracted into one node, whose arcs know the members they came from, and
opened again at the end where the best arc from outside enters. Contracting leaves the best arcs of all other nodes as they are,
so the whole costs O(n^2), where networkx, its plain twin, rebuilds graphs.
"""

import numpy as np

from pgm_bma.foundation.compiling import compiled


@compiled(nogil=True)
def maximum_arborescence(weights):
    """Parents (n,) of all nodes but the root in the arborescence of highest total weight.

    weights : (n + 1, n + 1), [u, v] for the arc u -> v, -inf where there is none; the last node is the root, and it has an arc
    to every other. Ties go to the lowest parent.
    """
    w = weights.copy()
    m = len(w)
    root = m - 1
    active = np.ones(m, dtype=np.bool_)
    best = np.full(m, -1)
    for v in range(root):
        best[v] = _best_parent(w, active, v)
    # one line per contraction: its node, the members of its cycle with their parents in it, and the member through which an arc
    # enters from each outside node and leaves to each
    node_of = np.empty(m, dtype=np.int64)
    inside = np.full((m, m), -1, dtype=np.int32)
    enter = np.full((m, m), -1, dtype=np.int32)
    leave = np.full((m, m), -1, dtype=np.int32)
    levels = 0
    status = np.zeros(m, dtype=np.int8)  # 1: on the current walk, 2: known to lead to the root
    cycle = np.empty(m, dtype=np.int64)
    for s in range(root):
        if not active[s]:
            continue
        v = s
        while v != root and status[v] != 2:
            if status[v] == 0:
                status[v] = 1
                v = best[v]
                continue
            size = 0
            x = v
            while size == 0 or x != v:
                cycle[size] = x
                size += 1
                x = best[x]
            _contract(w, active, best, root, cycle[:size], inside[levels], enter[levels], leave[levels])
            status[v] = 0
            node_of[levels] = v
            levels += 1
            best[v] = _best_parent(w, active, v)
        for x in range(root):
            if status[x] == 1:
                status[x] = 2
    for level in range(levels - 1, -1, -1):
        rep = node_of[level]
        outside = best[rep]
        for v in range(root):
            if active[v] and v != rep and best[v] == rep:
                best[v] = leave[level, v]
        for x in range(root):
            if inside[level, x] >= 0:
                best[x] = inside[level, x]
                active[x] = True
        best[enter[level, outside]] = outside
    return best[:root]


@compiled(nogil=True)
def _contract(w, active, best, root, cycle, inside, enter, leave):
    """Merge a cycle into its first node; an arc from outside is worth what it gains over the arc that it replaces."""
    node = cycle[0]
    replaced = np.empty(len(cycle))
    for position, x in enumerate(cycle):
        active[x] = False
        inside[x] = best[x]
        replaced[position] = w[best[x], x]
    for u in range(len(w)):
        if not active[u]:
            continue
        top_in, top_out = -np.inf, -np.inf
        for position, x in enumerate(cycle):
            if enter[u] < 0 or w[u, x] - replaced[position] > top_in:
                top_in, enter[u] = w[u, x] - replaced[position], x
            if leave[u] < 0 or w[x, u] > top_out:
                top_out, leave[u] = w[x, u], x
        w[u, node], w[node, u] = top_in, top_out
        if u != root and inside[best[u]] >= 0:
            best[u] = node
    active[node] = True


@compiled(nogil=True)
def _best_parent(w, active, v):
    found = -1
    for u in range(len(w)):
        if active[u] and u != v and (found < 0 or w[u, v] > w[found, v]):
            found = u
    return found
