"""Plain networkx graphs: built from positions and columns of attributes, and cleaned for export.

GraphML, node-link JSON and pyvis accept strings, numbers and booleans only, and choke on the set-valued ``roles`` and
the empty ``weight`` that pgmpy leaves on its networks; `export_copy` gives them a graph they can take.
"""

import numpy as np


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
    from pgm_bma.networks.shown_graph import ShownDiGraph

    nodes, edges = list(nodes), [(int(tail), int(head)) for tail, head in edges]
    if len(set(nodes)) != len(nodes):
        raise ValueError("a node is given twice")
    graph = ShownDiGraph(**graph_data)
    graph.add_nodes_from(zip(nodes, _records(node_data, len(nodes), "node")))
    pairs = [(nodes[tail], nodes[head]) for tail, head in edges]
    graph.add_edges_from((*pair, record) for pair, record in zip(pairs, _records(edge_data, len(pairs), "edge")))
    return graph


def structure_graph(model, arc_posteriors=None):
    """The structure of a pgmpy network as a plain ``networkx.DiGraph``; arcs carry `posterior` where it is given.

    arc_posteriors : dict (tail, head) -> probability
    """
    from pgm_bma.networks.shown_graph import ShownDiGraph

    graph = ShownDiGraph()
    graph.add_nodes_from(model.nodes())
    graph.add_edges_from(model.edges())
    for arc, posterior in (arc_posteriors or {}).items():
        graph.edges[arc]["posterior"] = float(posterior)
    return graph


def posterior_graph(nodes, arc_posteriors, threshold=0.0, **graph_data):
    """``networkx.DiGraph`` of all arcs with a posterior above `threshold`; it may be cyclic.

    arc_posteriors : dict (tail, head) -> probability
    """
    from pgm_bma.networks.shown_graph import ShownDiGraph

    graph = ShownDiGraph(**graph_data)
    graph.add_nodes_from(nodes)
    graph.add_edges_from((a, b, {"posterior": float(p)}) for (a, b), p in arc_posteriors.items() if p > threshold)
    return graph


def export_copy(graph):
    """Copy any graph or pgmpy network into a plain networkx graph with text nodes and simple attributes.

    Sets, lists and tuples become one text ("a, b"), numpy scalars Python numbers, None disappears, anything else
    becomes its text. Two nodes with the same text (1 beside "1") are kept apart by their ``repr``.

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
    records = [{} for _ in range(length)]
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


def interaction_graph(names, target, regions, strength=None):
    """Plain graph of a classifier's regions: an edge for every two variables that share one.

    names : columns     regions : frozensets of names and the target
    strength : DataFrame as `interaction_strength_`, or None; it fills the node attribute ``information_gain`` and the edge
        attribute ``interaction`` (information gain for an edge of the class).
    """
    from pgm_bma.networks.shown_graph import ShownGraph

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
