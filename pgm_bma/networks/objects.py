"""Arrays to networks and back: the one place where pgmpy objects are built and taken apart.

Inside the package a network is a handful of arrays: names, states, parents as tuples of node indices, and one table
``(n_parent_states, n_states)`` per node, the first parent slowest (C order). pgmpy is imported inside the functions,
because it takes seconds to load and most fits never ask for their network.
"""

from math import prod
from typing import Any, NamedTuple

import numpy as np

# pgmpy's check_model lets a row of a table miss 1 by this much; published networks are rounded to a few digits.
_ROW_SUM_TOLERANCE = 0.01


def bayesian_network(names, states, parents, cpts, latents=(), name=None):
    """Build a pgmpy ``DiscreteBayesianNetwork``; nodes and tables stand in the order of `names`.

    Parameters
    ----------
    names : sequence of hashable
        Node names, all different.
    states : sequence of sequences
        States of every node; they reach the network as the Python values they are.
    parents : sequence of sequences of int
        Positions in `names` of the parents of every node.
    cpts : sequence of arrays, each ``(n_parent_states, n_states)``
        Conditional probabilities, first parent slowest. ``(*parent_cardinalities, n_states)`` is accepted too.
    latents : iterable of names
        Nodes that were not observed.
    name : str, optional
        Name of the network.

    Examples
    --------
    >>> from pgm_bma.networks.objects import bayesian_network
    >>> tables = [[[0.8, 0.2]], [[1, 0], [0.1, 0.9]]]
    >>> model = bayesian_network(["rain", "wet"], [("no", "yes"), (0, 1)], [(), (0,)], tables)
    >>> model.check_model(), list(model.edges)
    (True, [('rain', 'wet')])
    """
    import networkx as nx
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    names, states, parents = list(names), [list(s) for s in states], [[int(p) for p in ps] for ps in parents]
    latents = list(latents)
    _check_parts(names, states, parents, cpts, latents)
    model = DiscreteBayesianNetwork()
    model.add_nodes_from(names)
    # pgmpy's add_edge looks for a cycle at every arc and its add_cpds compares with every earlier table: both are
    # quadratic at thousands of nodes, so arcs and tables are put in place at once and the cycle is looked for once.
    arcs = [(names[p], child) for child, ps in zip(names, parents) for p in ps]
    nx.DiGraph.add_edges_from(model, arcs, weight=None)
    model._check_cycles()
    cpds = []
    for i, (node, ps) in enumerate(zip(names, parents)):
        n_states, cards = len(states[i]), [len(states[p]) for p in ps]
        table = _checked_cpt(node, cpts[i], prod(cards), n_states)
        family = {names[j]: list(states[j]) for j in (i, *ps)}
        cpds.append(TabularCPD(node, n_states, table.T, [names[p] for p in ps], cards, state_names=family))
    model.cpds = cpds
    model.latents = set(latents)  # a new set: updating the property's value in place does nothing
    if name is not None:
        model.name = name
    return model


def augmented_network(class_name, class_states, class_probability, names, states, tables, parents=None, latent=False):
    """Network with `class_name` as a parent of every column.

    class_probability : (n_classes,)     parents : (n_columns,) attribute parents, -1 = none (default: naive Bayes)
    tables : per column (n_classes, cardinality) or (n_classes, cardinality of the parent, cardinality)
    latent : the class is a cluster that nobody observed
    """
    parents = [-1] * len(names) if parents is None else parents
    families = [(0,) if parent < 0 else (0, int(parent) + 1) for parent in parents]
    cpts = [np.reshape(table, (-1, np.shape(table)[-1])) for table in tables]
    return bayesian_network(
        [class_name, *names],
        [class_states, *states],
        [(), *families],
        [np.reshape(class_probability, (1, -1)), *cpts],
        latents=[class_name] if latent else [],
    )


def network_arrays(model):
    """Take a pgmpy ``DiscreteBayesianNetwork`` apart: the inverse of `bayesian_network`.

    Returns
    -------
    NetworkArrays
        ``bayesian_network(*network_arrays(model))`` has the same nodes, states, tables, latents and name.
    """
    if not hasattr(model, "cpds"):
        raise TypeError(
            f"expected a DiscreteBayesianNetwork, got {type(model).__name__}; an estimator has one in model_"
        )
    names = tuple(model.nodes)
    index = {node: i for i, node in enumerate(names)}
    cpds = {cpd.variable: cpd for cpd in model.cpds}
    for node in names:
        if node not in cpds:
            raise ValueError(f"node {node!r} has no conditional probabilities; add a TabularCPD for it")
        if not hasattr(cpds[node], "variables"):
            raise TypeError(f"node {node!r} has a {type(cpds[node]).__name__}; only TabularCPD is understood")
        if set(cpds[node].variables[1:]) != set(model.predecessors(node)):
            raise ValueError(f"the table of {node!r} and the graph name different parents; run model.check_model()")
    states = tuple(tuple(cpds[node].state_names[node]) for node in names)
    parents, cpts = [], []
    for node in names:
        cpd = cpds[node]
        evidence = cpd.variables[1:]  # get_evidence() is reversed
        for parent in evidence:
            if tuple(cpd.state_names[parent]) != states[index[parent]]:
                raise ValueError(
                    f"the table of {node!r} lists other states, or another order, for its parent {parent!r}"
                )
        parents.append(tuple(index[p] for p in evidence))
        values = np.asarray(cpd.values, dtype=float)
        cpts.append(np.ascontiguousarray(values.reshape(values.shape[0], -1).T))
    hidden = set(model.latents)  # a property that walks all nodes: read it once
    latents = tuple(node for node in names if node in hidden)
    return NetworkArrays(names, states, tuple(parents), tuple(cpts), latents, model.name or None)


def structure_of(model):
    """The structure of a network as a pgmpy ``DAG`` with the same latents, for pgmpy's structure metrics."""
    from pgmpy.base import DAG

    graph = DAG()
    graph.add_nodes_from(model.nodes())
    graph.add_edges_from(model.edges())
    graph.latents = set(model.latents)
    return graph


class HasStructure:
    """Part of the estimators whose structure is that of `model_`."""

    @property
    def causal_graph_(self: Any) -> Any:
        """The structure of `model_` as a pgmpy DAG, a cluster as its latent."""
        return structure_of(self.model_)


def markov_network(names, states, factors, latents=()):
    """Build a pgmpy ``DiscreteMarkovNetwork`` from non-negative tables over subsets of the variables.

    Parameters
    ----------
    factors : iterable of (positions, values)
        Positions in `names` of the scope, and values of shape ``(*cardinalities of the scope)``. A variable that no
        factor holds gets a factor of ones, so that pgmpy knows its states.

    Examples
    --------
    >>> from pgm_bma.networks.objects import markov_network
    >>> markov_network(["a", "b"], [(0, 1), ("x", "y")], [((0, 1), [[1, 2], [3, 4]])]).check_model()
    True
    """
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork

    names, states, latents = list(names), [list(s) for s in states], list(latents)
    factors = [(tuple(int(i) for i in scope), np.asarray(values, dtype=float)) for scope, values in factors]
    _check_parts(names, states, [()] * len(names), names, latents)
    held = {i for scope, _ in factors for i in scope}
    factors += [((i,), np.ones(len(states[i]))) for i in range(len(names)) if i not in held]
    model = DiscreteMarkovNetwork(latents=latents)
    model.add_nodes_from(names)
    model.add_edges_from((names[i], names[j]) for scope, _ in factors for k, i in enumerate(scope) for j in scope[:k])
    built = []
    for scope, values in factors:
        scope_names, cards = [names[i] for i in scope], [len(states[i]) for i in scope]
        if values.shape != tuple(cards):
            raise ValueError(
                f"the factor over {scope_names} has shape {values.shape}, but its states need {tuple(cards)}"
            )
        if not (np.isfinite(values).all() and (values >= 0).all()):
            raise ValueError(f"the factor over {scope_names} holds a negative or non-finite value")
        family = {names[i]: list(states[i]) for i in scope}
        built.append(DiscreteFactor(scope_names, cards, values, state_names=family))
    model.factors = built
    return model


def _check_parts(names, states, parents, cpts, latents):
    if not len(names) == len(states) == len(parents) == len(cpts):
        lengths = f"{len(names)} names, {len(states)} lists of states, {len(parents)} of parents, {len(cpts)} tables"
        raise ValueError(f"a network needs the four parts for every node, got {lengths}")
    if len(set(names)) != len(names):
        twice = next(name for position, name in enumerate(names) if name in names[:position])
        raise ValueError(f"node name {twice!r} is used twice")
    for node, node_states, ps in zip(names, states, parents):
        if not node_states:
            raise ValueError(f"node {node!r} has no states")
        if len(set(node_states)) != len(node_states):
            raise ValueError(f"node {node!r} has equal states among {node_states!r} (Python holds 1 == 1.0 == True)")
        if any(not 0 <= p < len(names) for p in ps) or len(set(ps)) != len(ps):
            raise ValueError(f"node {node!r} has parents {ps}: expected different positions in 0..{len(names) - 1}")
    unknown = sorted(set(latents) - set(names), key=str)
    if unknown:
        raise ValueError(f"latents {unknown!r} are not nodes of the network")


def _checked_cpt(node, cpt, n_parent_states, n_states):
    cpt = np.asarray(cpt, dtype=float)
    if cpt.size != n_parent_states * n_states or cpt.ndim == 0 or cpt.shape[-1] != n_states:
        raise ValueError(f"the table of {node!r} has shape {cpt.shape}, expected ({n_parent_states}, {n_states})")
    cpt = cpt.reshape(n_parent_states, n_states)
    # `not all(>=)` also catches NaN
    if not (cpt >= 0).all() or not (np.abs(cpt.sum(axis=1) - 1) <= _ROW_SUM_TOLERANCE).all():
        row = int(np.argmin((cpt >= 0).all(axis=1) & (np.abs(cpt.sum(axis=1) - 1) <= _ROW_SUM_TOLERANCE)))
        raise ValueError(f"row {row} of the table of {node!r} is not a probability distribution: {cpt[row].tolist()}")
    return cpt


class NetworkArrays(NamedTuple):
    """A network as arrays; the fields are the arguments of `bayesian_network`, in its order."""

    names: tuple
    states: tuple
    parents: tuple
    cpts: tuple
    latents: tuple = ()
    name: str | None = None
