"""Slow twins for random DAGs: all graphs by enumeration, and the chain in plain Python over sets of arcs."""

from itertools import combinations, permutations

import networkx as nx


def all_dags(n_nodes, max_indegree, connected=True, n_arcs=None):
    """Every allowed graph as a frozenset of arcs."""
    pairs = list(permutations(range(n_nodes), 2))
    sizes = range(len(pairs) + 1) if n_arcs is None else [n_arcs]
    return [
        frozenset(arcs)
        for size in sizes
        for arcs in combinations(pairs, size)
        if allowed(arcs, n_nodes, max_indegree, connected)
    ]


def allowed(arcs, n_nodes, max_indegree, connected):
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n_nodes))
    graph.add_edges_from(arcs)
    return (
        max(degree for _, degree in graph.in_degree) <= max_indegree
        and nx.is_directed_acyclic_graph(graph)
        and (not connected or nx.is_weakly_connected(graph))
    )


def walk(arcs, n_nodes, max_indegree, connected, kinds, uniforms, first, second):
    """The chain on a list of arcs; the list order matters, because a uniform number picks an arc by its place."""
    arcs = list(arcs)
    for kind, uniform, a, b in zip(kinds, uniforms, first, second):
        proposal = list(arcs)
        if kind == 0:  # toggle
            if (a, b) in proposal:
                place = proposal.index((a, b))
                proposal[place], proposal[-1] = proposal[-1], proposal[place]
                arcs = list(proposal)  # the kernel keeps this exchange even when the removal is refused
                proposal.pop()
            else:
                proposal.append((a, b))
        elif arcs:
            place = int(uniform * len(arcs))
            i, j = arcs[place]
            if kind == 1:
                new = (j, i)
            elif kind == 2:
                new = (b if a == j else a, j)
            else:
                new = (a, b)
            if new in arcs:
                continue
            proposal[place] = new
        if allowed(proposal, n_nodes, max_indegree, connected):
            arcs = proposal
    return arcs
