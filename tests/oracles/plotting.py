"""Geometry and sums behind the pictures, the slow way."""

from itertools import combinations, pairwise, product

import networkx as nx
import numpy as np


def overlaps(box_a, box_b):
    """Whether two rectangles (x0, y0, x1, y1) share an area."""
    return min(box_a[2], box_b[2]) > max(box_a[0], box_b[0]) and min(box_a[3], box_b[3]) > max(box_a[1], box_b[1])


def overlapping_pairs(boxes):
    """boxes : dict name -> rectangle"""
    return [(a, b) for a, b in combinations(boxes, 2) if overlaps(boxes[a], boxes[b])]


def inside(point, box):
    return box[0] < point[0] < box[2] and box[1] < point[1] < box[3]


def points_along(points, n=60):
    for (x0, y0), (x1, y1) in pairwise(points):
        for i in range(n + 1):
            yield x0 + (x1 - x0) * i / n, y0 + (y1 - y0) * i / n


def crossings(layers, pairs):
    """Number of crossing pairs between neighbouring layers, by comparing all pairs of links."""
    total = 0
    for upper, lower in pairwise(layers):
        here = [(upper.index(a), lower.index(b)) for a, b in pairs if a in upper and b in lower]
        total += sum((a - c) * (b - d) < 0 for (a, b), (c, d) in combinations(here, 2))
    return total


def conditional(model, variable, given):
    """P(variable | given) by summing the product of all tables over all joint states: list of lists."""
    cpds = model.get_cpds()
    states = {cpd.variable: cpd.state_names[cpd.variable] for cpd in cpds}
    table = [[0.0] * len(states[variable]) for _ in states[given]]
    for values in product(*states.values()):
        row = dict(zip(states, values))
        p = 1.0
        for cpd in cpds:
            p *= cpd.get_value(**{v: row[v] for v in cpd.variables})
        table[states[given].index(row[given])][states[variable].index(row[variable])] += p
    return [[p / sum(row) for p in row] for row in table]


def reliability(probabilities, happened, n_bins):
    """(mean probability, share that came true, share of rows) of every bin in use"""
    out = []
    for b in range(n_bins):
        rows = [
            (p, h)
            for p, h in zip(probabilities, happened)
            if b / n_bins <= p < (b + 1) / n_bins or (b == n_bins - 1 and p == 1)
        ]
        if rows:
            share = sum(h for _, h in rows) / len(rows)
            out.append((sum(p for p, _ in rows) / len(rows), share, len(rows) / len(probabilities)))
    return out


def random_dag(n, n_arcs, seed=0):
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph()
    graph.add_nodes_from(f"variable_{i}" if i % 5 else f"a_longer_name_{i}" for i in range(n))
    names = list(graph)
    while graph.number_of_edges() < n_arcs:
        i, j = sorted(rng.choice(n, 2, replace=False))
        graph.add_edge(names[i], names[j])
    return graph


def star(n):
    return nx.DiGraph([("class", f"x{i}") for i in range(n)])
