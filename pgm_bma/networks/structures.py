"""DAGs as pgmpy and networkx objects, and what d-separation says about them."""

from collections.abc import Hashable, Iterable
from typing import Any

from pgm_bma.foundation.faces.validation import NAME, brief, check, reading


def dag(names, parents):
    """A pgmpy ``DAG`` from parent tuples of positions.

    Examples
    --------
    >>> from pgm_bma.networks.structures import dag
    >>> list(dag(["rain", "wet"], [(), (0,)]).edges)
    [('rain', 'wet')]
    """
    from pgmpy.base import DAG

    graph = DAG()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[p], names[child]) for child, ps in enumerate(parents) for p in ps)
    return graph


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
            f"wanted a pgmpy network, a DAG, a networkx DiGraph or a fitted estimator, got {brief(given, 60)}"
        )
    if not model.is_directed() or not nx.is_directed_acyclic_graph(model):
        raise ValueError("d-separation wants a directed graph without a cycle; this one is undirected or has one")
    graph = nx.DiGraph(model)  # without what a network of pgmpy asks of its arcs
    with reading("unobserved", unobserved, "the name of a node, or a list of names"):
        alone = isinstance(unobserved, str) or not isinstance(unobserved, Iterable)
        hidden = {unobserved} if alone else set(unobserved)
    check("target", target, NAME)
    for node in [target, *hidden]:
        if node not in graph:
            raise ValueError(f"{node!r} is no node of the model; the nodes are {list(graph.nodes)}")
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
        raise ValueError("score wants either X or true_graph")
    if metric is None:
        metric = get_metrics(
            **{"requires_data" if true_graph is None else "requires_true_graph": True}, is_default=True
        )[0]()
    elif isinstance(metric, str):
        found = get_metrics(name=metric)
        if not found:
            raise ValueError(f"metric={metric!r} is no metric of pgmpy; pgmpy.metrics.get_metrics() lists them")
        metric = found[0]()
    if true_graph is None:
        return metric.evaluate(X, graph)
    return metric.evaluate(true_causal_graph=true_graph, est_causal_graph=graph)
