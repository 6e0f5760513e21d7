"""Structures as tuples of parent positions: topological order, ancestors, ancestral sampling, maximum spanning trees."""

from math import prod

import numpy as np

from pgm_bma.foundation.faces.validation import check_number, reading
from pgm_bma.foundation.numbers._kernels import draw_states


def topological_order(parents, names=None):
    """Positions so that every node comes after its parents, first come first served.

    parents : sequence of collections of positions      names : for the message about a cycle
    """
    waiting = [len(set(of_node)) for of_node in parents]
    children: list[list[int]] = [[] for _ in parents]
    for child, of_node in enumerate(parents):
        for parent in set(of_node):
            children[parent].append(child)
    order = [node for node, count in enumerate(waiting) if count == 0]
    for node in order:
        for child in children[node]:
            waiting[child] -= 1
            if waiting[child] == 0:
                order.append(child)
    if len(order) < len(parents):
        stuck = [node if names is None else names[node] for node, count in enumerate(waiting) if count]
        raise ValueError(f"the arcs form a directed cycle among {stuck}")
    return order


def ancestors(parents, nodes):
    """The set of everything above `nodes`; a node itself only where it is above another."""
    found, waiting = set(), list(nodes)
    while waiting:
        for parent in parents[waiting.pop()]:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    return found


def sample_codes(cpts, parents, n, rng, names=None):
    """Ancestral sampling on arrays.

    cpts : (n_parent_states, n_states) or (*parent_cardinalities, n_states) per node, first parent slowest
    parents : tuples of node positions      rng : numpy Generator      names : for messages
    returns (n, n_nodes) state codes in the smallest signed integer type. Rows of tables are normalised.

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma.foundation.numbers.graphs import sample_codes
    >>> sample_codes([[0.5, 0.5], np.eye(2)], [(), (0,)], 4, np.random.default_rng(0)).tolist()
    [[1, 1], [0, 0], [0, 0], [0, 0]]
    """
    check_number("n", n, 0, integer=True)
    names = range(len(cpts)) if names is None else names
    cpts = [np.ascontiguousarray(cpt, dtype=float) for cpt in cpts]
    cardinalities = np.array([cpt.shape[-1] for cpt in cpts], dtype=np.int64)
    codes = np.empty((len(cpts), int(n)), dtype=np.min_scalar_type(-max([1, *cardinalities])))
    uniform, index = np.empty(n), np.empty(n, dtype=np.int32)
    for node in topological_order(parents, names):
        family, cpt = np.array(parents[node], dtype=np.int64), cpts[node]
        n_parent_states = prod(cardinalities[family].tolist())
        if cpt.size != n_parent_states * cpt.shape[-1]:
            raise ValueError(
                f"the table of node {names[node]!r} has shape {cpt.shape}; its parents have {n_parent_states} joint states"
            )
        rng.random(out=uniform)
        if not draw_states(uniform, codes, node, family, cpt.reshape(n_parent_states, -1), cardinalities, index):
            raise ValueError(
                f"the table of node {names[node]!r} has a row that is not a distribution: negative, not finite or all zero"
            )
    return codes.T


def maximum_tree(strengths):
    """Maximum spanning tree of a symmetric matrix, directed away from column 0; ties go to the first pair.

    Prim's algorithm on the dense matrix. The strength and then the place of a pair order all pairs strictly, so the tree is
    the one that any other algorithm would find under that order.
    """
    n_columns = len(strengths)
    parents, best = np.full(n_columns, -1), np.full(n_columns, -np.inf)
    first = np.full(n_columns, n_columns**2)  # the pair behind `best`, by its place
    outside, others = np.ones(n_columns, dtype=bool), np.arange(n_columns)
    node = 0
    for _ in range(n_columns - 1):
        outside[node] = False
        place = np.minimum(others, node) * n_columns + np.maximum(others, node)
        better = outside & ((strengths[node] > best) | ((strengths[node] == best) & (place < first)))
        parents[better], best[better], first[better] = node, strengths[node, better], place[better]
        strongest = np.flatnonzero(outside & (best == best[outside].max()))
        node = strongest[np.argmin(first[strongest])]
    return parents


def check_region_graph(graph):
    """An error, unless `graph` is a graph whose nodes are regions with a counting number."""
    with reading("graph", graph, "a region graph, as made by region_graph, or an estimator that has one"):
        for region, number in graph.nodes(data="counting_number"):
            len(region), float(number)
