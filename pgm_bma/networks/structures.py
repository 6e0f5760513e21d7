"""DAGs as pgmpy and networkx objects, and what d-separation says about them."""


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


def effective_markov_blanket(model, target, unobserved=()):
    """The observed variables that a prediction of `target` depends on when some variables are not observed.

    With everything observed this is the Markov blanket: parents, children and the children's other parents. A member that
    is not observed lets through what lies behind it, so the blanket grows (ORD Fig. 1). By d-separation: an observed
    variable belongs to it unless it is separated from the target by all other observed variables.

    Parameters
    ----------
    model : pgmpy network or DAG, or networkx DiGraph, acyclic
        Latent variables of a pgmpy network count as unobserved.
    target : node
    unobserved : nodes

    Returns
    -------
    set of nodes

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

    graph = nx.DiGraph()
    graph.add_nodes_from(model.nodes())
    graph.add_edges_from(model.edges())
    if not nx.is_directed_acyclic_graph(graph):
        raise ValueError("the graph has a cycle; d-separation wants an acyclic graph")
    hidden = {unobserved} if isinstance(unobserved, str) else set(unobserved)
    for node in [target, *hidden]:
        if node not in graph:
            raise ValueError(f"{node!r} is no node of the model; the nodes are {list(graph.nodes)}")
    if target in hidden:
        raise ValueError(f"the target {target!r} cannot be among the unobserved variables: it is what is predicted")
    observed = set(graph.nodes) - hidden - set(getattr(model, "latents", ())) - {target}
    return {node for node in observed if not nx.is_d_separator(graph, {target}, {node}, observed - {node})}
