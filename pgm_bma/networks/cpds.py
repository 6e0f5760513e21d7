"""Single pgmpy tables read as arrays: a table given as a start, kept fixed, or used as a prior."""

import numpy as np


def read_cpds(given, nodes, argument):
    """{node: TabularCPD} from a network, a dict or a list of tables; a table for an unknown node is an error."""
    if hasattr(given, "cpds"):
        given = given.cpds
    cpds = list(given.values()) if isinstance(given, dict) else list(given) if hasattr(given, "__iter__") else [given]
    for cpd in cpds:
        if not hasattr(cpd, "state_names") or not hasattr(cpd, "variable"):
            raise TypeError(
                f"{argument} holds a {type(cpd).__name__}; pass TabularCPD objects, a dict of them or a network"
            )
        if cpd.variable not in nodes:
            raise ValueError(f"{argument} has a table for {cpd.variable!r}, which is no node of the network")
    if isinstance(given, dict):
        for node, cpd in given.items():
            if node != cpd.variable:
                raise ValueError(f"{argument}[{node!r}] is the table of {cpd.variable!r}")
    return {cpd.variable: cpd for cpd in cpds}


def cpt_array(cpd, parents, states, argument):
    """Table of a TabularCPD as (n_parent_states, n_states), parents and states in the given order.

    parents : names      states : dict name -> states, of the node and its parents
    """
    node = cpd.variable
    evidence = list(cpd.variables[1:])  # get_evidence() is reversed
    if set(evidence) != set(parents):
        raise ValueError(f"{argument}: the table of {node!r} has parents {evidence}, the network has {list(parents)}")
    values = np.asarray(cpd.values, dtype=float)
    for axis, name in enumerate(cpd.variables):
        own = list(cpd.state_names[name])
        if len(own) != len(states[name]) or set(own) != set(states[name]):
            raise ValueError(
                f"{argument}: the table of {node!r} gives {name!r} the states {own}, but they are {list(states[name])}; "
                "pass state_names= to the table or to the estimator"
            )
        position = {state: k for k, state in enumerate(own)}
        values = np.take(values, [position[state] for state in states[name]], axis=axis)
    axes = [1 + evidence.index(parent) for parent in parents]
    table = np.transpose(values, [*axes, 0]).reshape(-1, values.shape[0])
    total = table.sum(axis=1, keepdims=True)
    # pgmpy accepts rows that miss one by 0.01; a start or a fixed table is made exact
    if not (table >= 0).all() or not (np.abs(total - 1) <= 0.01).all():
        raise ValueError(f"{argument}: the table of {node!r} has a line that is no probability distribution")
    return np.ascontiguousarray(table / total)
