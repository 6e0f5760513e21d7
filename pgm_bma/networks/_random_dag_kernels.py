"""The Markov chain behind random DAGs, compiled: proposals drawn beforehand go in, the last graph comes out.

Graphs are lists of arcs (`source`, `target`, the first `n_arcs` entries count) with parent lists
``parents : (n_nodes, max_indegree)`` with ``indegree : (n_nodes,)``. What is proposed, and why the chain is uniform, is
given in `pgm_bma.random_dag`.
"""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled

TOGGLE, REVERSE, NEW_PARENT, MOVE = 0, 1, 2, 3


@compiled
def walk(source, target, n_arcs, n_nodes, max_indegree, connected, kinds, uniforms, first, second):
    """Run the chain over all proposals; `source` and `target` are changed in place. Returns the number of arcs.

    kinds : (n_steps,) which move      uniforms : (n_steps,) in [0, 1), picks an arc      first != second : (n_steps,)
    `connected` says whether graphs must be weakly connected; the start must be legal.
    """
    parents = np.zeros((n_nodes, max_indegree), dtype=np.int64)
    indegree = np.zeros(n_nodes, dtype=np.int64)
    stack, mark = np.empty(n_nodes, dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
    stamp = 0
    for arc in range(n_arcs):
        _add_parent(parents, indegree, source[arc], target[arc])
    for step in range(len(kinds)):
        kind, a, b = kinds[step], first[step], second[step]
        if kind == TOGGLE:
            arc = _find(source, target, n_arcs, a, b)
            if arc < 0:
                stamp += 1
                if indegree[b] < max_indegree and not _reaches(parents, indegree, b, a, stack, mark, stamp):
                    source[n_arcs], target[n_arcs] = a, b
                    n_arcs += 1
                    _add_parent(parents, indegree, a, b)
            else:
                last = n_arcs - 1
                source[arc], target[arc], source[last], target[last] = source[last], target[last], a, b
                if not connected or _is_connected(source, target, last, n_nodes, stack):
                    n_arcs = last
                    _remove_parent(parents, indegree, a, b)
            continue
        if n_arcs == 0:
            continue
        arc = int(uniforms[step] * n_arcs)
        i, j = source[arc], target[arc]
        if kind == REVERSE:
            a, b = j, i
        elif kind == NEW_PARENT:
            if a == j:
                a = b  # (first, second) is a uniform ordered pair: this makes `a` uniform over the nodes other than j
            b = j
        if _is_parent(parents, indegree, a, b):
            continue  # the arc is there already, perhaps as i -> j itself
        _remove_parent(parents, indegree, i, j)
        stamp += 1
        legal = indegree[b] < max_indegree and not _reaches(parents, indegree, b, a, stack, mark, stamp)
        if legal:
            source[arc], target[arc] = a, b
            if connected and kind != REVERSE and not _is_connected(source, target, n_arcs, n_nodes, stack):
                source[arc], target[arc] = i, j
                legal = False
        if legal:
            _add_parent(parents, indegree, a, b)
        else:
            _add_parent(parents, indegree, i, j)
    return n_arcs


@compiled
def _find(source, target, n_arcs, a, b):
    for arc in range(n_arcs):
        if source[arc] == a and target[arc] == b:
            return arc
    return -1


@compiled
def _is_parent(parents, indegree, a, b):
    for slot in range(indegree[b]):
        if parents[b, slot] == a:
            return True
    return False


@compiled
def _add_parent(parents, indegree, a, b):
    parents[b, indegree[b]] = a
    indegree[b] += 1


@compiled
def _remove_parent(parents, indegree, a, b):
    indegree[b] -= 1
    for slot in range(indegree[b]):
        if parents[b, slot] == a:
            parents[b, slot] = parents[b, indegree[b]]
            return


@compiled
def _reaches(parents, indegree, ancestor, node, stack, mark, stamp):
    """Is there a directed path from `ancestor` to `node`? Walks upwards from `node`; `mark` == `stamp` means seen."""
    if ancestor == node:
        return True
    size = 1
    stack[0] = node
    mark[node] = stamp
    while size > 0:
        size -= 1
        current = stack[size]
        for slot in range(indegree[current]):
            parent = parents[current, slot]
            if parent == ancestor:
                return True
            if mark[parent] != stamp:
                mark[parent] = stamp
                stack[size] = parent
                size += 1
    return False


@compiled
def _is_connected(source, target, n_arcs, n_nodes, root):
    """Are all nodes joined when directions are forgotten? Union-find with halving, in the work array `root`."""
    if n_arcs < n_nodes - 1:
        return False
    for node in range(n_nodes):
        root[node] = node
    parts = n_nodes
    for arc in range(n_arcs):
        a, b = source[arc], target[arc]
        while root[a] != a:
            root[a] = root[root[a]]
            a = root[a]
        while root[b] != b:
            root[b] = root[root[b]]
            b = root[b]
        if a != b:
            root[a] = b
            parts -= 1
    return parts == 1
