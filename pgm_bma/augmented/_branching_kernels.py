"""Maximum-weight arborescence of a dense graph, compiled (Chu and Liu 1965; Edmonds 1967).

Every node takes its best incoming arc; a cycle is contracted into one node, whose arcs know the members they came from, and
opened again at the end where the best arc from outside enters. Contracting leaves the best arcs of all other nodes as they are,
so the whole costs O(n^2), where networkx, which it is tested against, rebuilds graphs.
"""

from math import inf

from pgm_bma.foundation.runtime.compiling import compiled


@compiled
def branch(w, active, best, integers, lines, status, replaced):
    """Fill `best` with the parents of all nodes but the root, which is the last.

    status : (m,) zeros; 1: on the current walk, 2: known to lead to the root     integers, lines, replaced : space
    """
    root = len(w) - 1
    node_of, cycle = integers[0], integers[1]
    inside, enter, leave = lines[0], lines[1], lines[2]
    levels = 0
    top = replaced
    for u in range(root + 1):  # along the lines, which lie side by side in memory
        for v in range(root):
            if u != v and (best[v] < 0 or w[u, v] > top[v]):
                best[v], top[v] = u, w[u, v]
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
            _contract(w, active, best, root, cycle, size, inside[levels], enter[levels], leave[levels], replaced)
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


@compiled
def _contract(w, active, best, root, cycle, size, inside, enter, leave, replaced):
    """Merge a cycle into its first node; an arc from outside is worth what it gains over the arc that it replaces."""
    node = cycle[0]
    for u in range(len(w)):
        inside[u] = enter[u] = leave[u] = -1
    for position in range(size):
        x = cycle[position]
        active[x] = False
        inside[x] = best[x]
        replaced[position] = w[best[x], x]
    for u in range(len(w)):
        if not active[u]:
            continue
        top_in, top_out = -inf, -inf
        for position in range(size):
            x = cycle[position]
            if enter[u] < 0 or w[u, x] - replaced[position] > top_in:
                top_in, enter[u] = w[u, x] - replaced[position], x
            if leave[u] < 0 or w[x, u] > top_out:
                top_out, leave[u] = w[x, u], x
        w[u, node], w[node, u] = top_in, top_out
        if u != root and inside[best[u]] >= 0:
            best[u] = node
    active[node] = True


@compiled
def _best_parent(w, active, v):
    found = -1
    for u in range(len(w)):
        if active[u] and u != v and (found < 0 or w[u, v] > w[found, v]):
            found = u
    return found
