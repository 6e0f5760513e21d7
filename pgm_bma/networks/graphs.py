"""networkx graphs and pgmpy DAGs: built from positions, with pictures for notebooks, cleaned for export; and d-separation.

GraphML, node-link JSON and pyvis accept strings, numbers and booleans only, and choke on the set-valued ``roles`` and
the empty ``weight`` that pgmpy leaves on its networks; `export_copy` gives them a graph they can take.

`ShownDiGraph` and `ShownGraph` are made on first use, because networkx is imported only where it is needed; they are found by name
again, so that such graphs can be pickled.
"""

from collections.abc import Hashable, Iterable
from functools import cache
from typing import Any

import numpy as np

from pgm_bma.foundation.faces.validation import NAME, brief, check, reading


def directed_graph(nodes, edges, node_data=None, edge_data=None, **graph_data):
    """Build a ``networkx.DiGraph`` whose nodes and edges stand in the given order.

    Parameters
    ----------
    nodes : sequence of hashable
    edges : sequence of (int, int)
        Positions in `nodes` of tail and head.
    node_data, edge_data : dict of attribute -> sequence, optional
        One value per node, or per edge; numpy scalars become Python numbers.
    **graph_data
        Attributes of the graph itself.

    Examples
    --------
    >>> from pgm_bma.networks.graphs import directed_graph
    >>> graph = directed_graph(["c", "x"], [(0, 1)], edge_data={"posterior": [0.9]}, name="arcs")
    >>> graph.edges["c", "x"], graph.name
    ({'posterior': 0.9}, 'arcs')
    """
    nodes, edges = list(nodes), [(int(tail), int(head)) for tail, head in edges]
    if len(set(nodes)) != len(nodes):
        raise ValueError("a node is given twice")
    graph = _shown("ShownDiGraph")(**graph_data)
    graph.add_nodes_from(zip(nodes, _records(node_data, len(nodes), "node")))
    pairs = [(nodes[tail], nodes[head]) for tail, head in edges]
    graph.add_edges_from((*pair, record) for pair, record in zip(pairs, _records(edge_data, len(pairs), "edge")))
    return graph


def structure_graph(model, arc_posteriors=None):
    """The structure of a pgmpy network as a plain ``networkx.DiGraph``; arcs carry `posterior` where it is given.

    arc_posteriors : dict (tail, head) -> probability
    """
    graph = _shown("ShownDiGraph")()
    graph.add_nodes_from(model.nodes())
    graph.add_edges_from(model.edges())
    for arc, posterior in (arc_posteriors or {}).items():
        graph.edges[arc]["posterior"] = float(posterior)
    return graph


def posterior_graph(nodes, arc_posteriors, threshold=0.0, **graph_data):
    """``networkx.DiGraph`` of all arcs with a posterior above `threshold`; it may be cyclic.

    arc_posteriors : dict (tail, head) -> probability
    """
    graph = _shown("ShownDiGraph")(**graph_data)
    graph.add_nodes_from(nodes)
    graph.add_edges_from((a, b, {"posterior": float(p)}) for (a, b), p in arc_posteriors.items() if p > threshold)
    return graph


def export_copy(graph):
    """Copy any graph or pgmpy network into a plain networkx graph with text nodes and simple attributes.

    Sets, lists and tuples become one text ("a, b"), numpy scalars Python numbers, None disappears, anything else
    becomes its text. Two nodes with the same text (1 and "1") are kept apart by their ``repr``.

    Examples
    --------
    >>> import networkx as nx
    >>> from pgm_bma.networks.graphs import directed_graph, export_copy
    >>> regions = directed_graph([frozenset("ba"), frozenset("a")], [(0, 1)], node_data={"counting_number": [1, 0]})
    >>> list(export_copy(regions).edges)
    [('a, b', 'a')]
    """
    import networkx as nx

    labels = _distinct_texts(list(graph.nodes))
    clean = nx.DiGraph() if graph.is_directed() else nx.Graph()
    clean.graph.update(_simple_items(graph.graph))
    clean.add_nodes_from((labels[node], _simple_items(data)) for node, data in graph.nodes(data=True))
    clean.add_edges_from((labels[u], labels[v], _simple_items(data)) for u, v, data in graph.edges(data=True))
    return clean


def _records(columns, length, what):
    """Turn {attribute: values} into one dict per node or edge."""
    records: list[dict] = [{} for _ in range(length)]
    for attribute, values in (columns or {}).items():
        values = values.tolist() if isinstance(values, np.ndarray) else list(values)
        if len(values) != length:
            raise ValueError(f"{what} attribute {attribute!r} has {len(values)} values for {length} {what}s")
        for record, value in zip(records, values):
            record[attribute] = value.item() if isinstance(value, np.generic) else value
    return records


def _distinct_texts(nodes):
    texts = [_text(node) for node in nodes]
    repeated = {text for text in texts if texts.count(text) > 1} if len(set(texts)) < len(texts) else ()
    texts = [repr(node) if text in repeated else text for node, text in zip(nodes, texts)]
    if len(set(texts)) < len(texts):
        raise ValueError("two nodes have the same text and the same repr; rename one of them")
    return dict(zip(nodes, texts))


def _simple_items(data):
    return {str(key): _simple(value) for key, value in data.items() if value is not None}


def _simple(value):
    if isinstance(value, np.generic):
        value = value.item()
    return value if isinstance(value, (bool, int, float, str)) else _text(value)


def _text(value):
    if isinstance(value, (set, frozenset)):  # set order depends on the hash seed
        return ", ".join(sorted(map(str, value)))
    if isinstance(value, (list, tuple, np.ndarray)):
        return ", ".join(map(str, value))
    return str(value)


def dag(names, parents):
    """A pgmpy ``DAG`` from parent tuples of positions.

    Examples
    --------
    >>> from pgm_bma.networks.graphs import dag
    >>> list(dag(["rain", "wet"], [(), (0,)]).edges)
    [('rain', 'wet')]
    """
    from pgmpy.base import DAG

    graph = DAG()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[p], names[child]) for child, ps in enumerate(parents) for p in ps)
    return graph


def adjacency(graph):
    """DataFrame parent x child of 0 and 1: the arcs of a pgmpy graph, as pgmpy's structure learners have it."""
    import networkx as nx

    return nx.to_pandas_adjacency(graph, weight=1, dtype=int)  # pgmpy's arcs have a weight of None


def effective_markov_blanket(model: Any, target: Hashable, unobserved: Iterable = ()) -> set:
    """The observed variables that a prediction of `target` depends on when some variables are not observed.

    With everything observed this is the Markov blanket: parents, children and the children's other parents. A member that
    is not observed lets through what lies behind it, so the blanket grows (ORD Fig. 1). By d-separation: an observed
    variable belongs to it unless it is separated from the target by all other observed variables.

    Parameters
    ----------
    model : DiscreteBayesianNetwork, DAG, networkx.DiGraph or fitted estimator
        Acyclic; of an estimator its `causal_graph_`, else its `model_`. Latent variables of a pgmpy network count as
        unobserved.
    target : node
        What is predicted.
    unobserved : iterable of nodes, default=()
        Variables without a value.

    Returns
    -------
    set of nodes
        The blanket, without the target.

    Examples
    --------
    >>> import networkx as nx
    >>> from pgm_bma import effective_markov_blanket
    >>> chain = nx.DiGraph([("a", "b"), ("b", "c"), ("c", "d")])
    >>> sorted(effective_markov_blanket(chain, "d"))
    ['c']
    >>> sorted(effective_markov_blanket(chain, "d", unobserved=["c"]))
    ['b']
    """
    import networkx as nx

    given = model
    for name in ("causal_graph_", "model_"):
        if not isinstance(model, nx.Graph):
            model = getattr(given, name, given)
    if not isinstance(model, nx.Graph):
        raise TypeError(
            f"expected a pgmpy network, a DAG, a networkx DiGraph or a fitted estimator, got {brief(given, 60)}"
        )
    if not model.is_directed() or not nx.is_directed_acyclic_graph(model):
        raise ValueError("d-separation needs a directed graph without a cycle; this one is undirected or has one")
    graph = nx.DiGraph(model)  # without what a network of pgmpy asks of its arcs
    with reading("unobserved", unobserved, "the name of a node, or a list of names"):
        alone = isinstance(unobserved, str) or not isinstance(unobserved, Iterable)
        hidden = {unobserved} if alone else set(unobserved)
    check("target", target, NAME)
    for node in [target, *hidden]:
        if node not in graph:
            raise ValueError(f"{node!r} is not a node of the model; the nodes are {list(graph.nodes)}")
    if target in hidden:
        raise ValueError(f"the target {target!r} cannot be among the unobserved variables: it is what is predicted")
    observed = set(graph.nodes) - hidden - set(getattr(model, "latents", ())) - {target}
    return {node for node in observed if not nx.is_d_separator(graph, {target}, {node}, observed - {node})}


def graph_metric(graph, X=None, true_graph=None, metric=None):
    """pgmpy's metric for a learned graph, against a true graph or against data, as pgmpy's own structure learners have it.

    graph, true_graph : pgmpy DAG or PDAG
    metric : name, object of pgmpy.metrics or None for pgmpy's default
    """
    from pgmpy.metrics import get_metrics

    if (X is None) == (true_graph is None):
        raise ValueError("score needs either X or true_graph")
    nodes = set(graph.nodes())
    apart = nodes - set(X.columns) if true_graph is None else nodes ^ set(true_graph.nodes())
    if apart:
        other = "columns of X" if true_graph is None else "nodes of true_graph"
        raise ValueError(
            f"pgmpy's metrics need the {other} to be the nodes of the learned graph; {sorted(map(str, apart))} are not in both: "
            "add them there, or compare a copy of causal_graph_ without them (remove_node)"
        )
    if metric is None:
        metric = get_metrics(
            **{"requires_data" if true_graph is None else "requires_true_graph": True}, is_default=True
        )[0]()
    elif isinstance(metric, str):
        found = get_metrics(name=metric)
        if not found:
            raise ValueError(f"metric={metric!r} is not a metric of pgmpy; pgmpy.metrics.get_metrics() lists them")
        metric = found[0]()
    if true_graph is None:
        return metric.evaluate(X, graph)
    return metric.evaluate(true_causal_graph=true_graph, est_causal_graph=graph)


def __getattr__(name):
    if name in ("ShownDiGraph", "ShownGraph"):
        return _shown(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@cache
def _shown(name):
    import networkx as nx

    def plot(self, **options):
        """The picture of the graph: see `pgm_bma.plotting`."""
        from pgm_bma.plotting.notebook import draw_graph

        return draw_graph(self, **options)

    def _repr_html_(self):
        from pgm_bma.plotting.notebook import graph_html

        return graph_html(self)

    base = nx.DiGraph if name == "ShownDiGraph" else nx.Graph
    # copies and subgraphs keep the class; what turns arcs into edges gets the other one
    return type(name, (base,), {"plot": plot, "_repr_html_": _repr_html_, "__module__": __name__,
                                "__doc__": f"networkx.{base.__name__} with `plot()`."})  # fmt: skip


def interaction_graph(names, target, regions, strength=None):
    """Plain graph of a classifier's regions: an edge for every two variables that share one.

    names : columns     regions : frozensets of names and the target
    strength : DataFrame as `interaction_strength_`, or None; it fills the node attribute ``information_gain`` and the edge
        attribute ``interaction`` (information gain for an edge of the class).
    """
    from pgm_bma.networks.graphs import ShownGraph

    graph = ShownGraph()
    graph.add_node(target)
    graph.add_nodes_from(names)
    order = {name: k for k, name in enumerate([target, *names])}
    for region in regions:
        members = sorted(region, key=order.__getitem__)
        graph.add_edges_from((a, b) for k, a in enumerate(members) for b in members[k + 1 :])
    if strength is not None:
        values, position = strength.to_numpy(), {name: k for k, name in enumerate(names)}
        for name, k in position.items():
            graph.nodes[name]["information_gain"] = float(values[k, k])
        for a, b, data in graph.edges(data=True):
            i, j = position.get(a, position.get(b)), position.get(b, position.get(a))  # of the class: the other end
            value = values[i, j]
            if np.isfinite(value):
                data["interaction"] = float(value)
    return graph
