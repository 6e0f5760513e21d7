"""pgmpy and networkx objects of the order estimators: graphs of arc posteriors, single DAGs, the average given one order."""

import numpy as np

from pgm_bma.networks.graphs import adjacency, dag, graph_metric, posterior_graph
from pgm_bma.networks.objects import bayesian_network
from pgm_bma.orders.sums import fixed_order

__all__ = ["adjacency", "arc_graph", "averaged_network", "consensus_dag", "dag", "dag_network", "graph_metric"]


def arc_graph(names, edges, labels):
    """All arcs with a positive posterior in edges (n, n), row parent; labels : attributes of the graph. It may be cyclic."""
    arcs = {(names[u], names[v]): edges[u, v] for u, v in zip(*np.nonzero(edges))}
    return posterior_graph(names, arcs, **labels)


def consensus_dag(names, edges, arcs, labels):
    """pgmpy DAG of some arcs (pairs of positions) with their posteriors in edges (n, n); labels : attributes of the graph."""
    graph = dag(names, [[u for u, v in arcs if v == child] for child in range(len(names))])
    for u, v in arcs:
        graph.edges[names[u], names[v]]["posterior"] = float(edges[u, v])
    graph.graph.update(labels)
    return graph


def dag_network(variables, training, parents):
    """One DAG with posterior-mean tables; variables : Schema; training : `fixed_order.Training`; parents : of every node."""
    cpts = [fixed_order.family_cpt(training, child, z) for child, z in enumerate(parents)]
    return bayesian_network(variables.names, variables.states, parents, cpts)


def averaged_network(variables, mix):
    """The average given one order itself; the caller has checked its size (`fixed_order.averaged_cells`)."""
    return bayesian_network(variables.names, variables.states, *fixed_order.averaged_network(mix))
