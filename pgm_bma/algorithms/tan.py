"""Tree-augmented naive Bayes (Friedman, Geiger and Goldszmidt 1997): the tree of highest conditional mutual information."""

import numpy as np

from pgm_bma.stats.pairs import conditional_mutual_information, indicators, pair_counts


def tan_parents(codes, cardinalities, target, n_classes, weights=None):
    """Attribute parent of every column, -1 for the root (the first column): (n_columns,); and the information (n, n)."""
    class_weights = np.zeros((len(codes), n_classes))
    class_weights[np.arange(len(codes)), target] = 1.0 if weights is None else weights
    pairs = pair_counts(indicators(codes, cardinalities), class_weights)
    information = conditional_mutual_information(pairs, cardinalities)
    return maximum_tree(information), information


def maximum_tree(strengths):
    """Maximum spanning tree of a symmetric matrix, directed away from column 0; ties go to the first pair."""
    import networkx as nx

    n_columns = len(strengths)
    graph = nx.Graph()
    graph.add_nodes_from(range(n_columns))
    graph.add_weighted_edges_from((i, j, strengths[i, j]) for i in range(n_columns) for j in range(i + 1, n_columns))
    parents = np.full(n_columns, -1)
    for parent, child in nx.bfs_edges(nx.maximum_spanning_tree(graph), 0, sort_neighbors=sorted):
        parents[child] = parent
    return parents
