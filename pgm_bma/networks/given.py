"""Tables and networks that a user gives, read as arrays: a table as a start, kept fixed or as a prior, and the network that a
clusterer starts from, columns and states in the order of the data."""

import numpy as np

from pgm_bma.foundation.faces.validation import bounded


def known_states(network, columns):
    """States by column, from the network's own tables."""
    columns = set(columns)
    return {cpd.variable: list(cpd.state_names[cpd.variable]) for cpd in network.cpds if cpd.variable in columns}


def read_cluster_network(network, schema, n_clusters):
    """(parents, tables) over the cluster, node 0, and the columns, nodes 1, 2, ...: parents sorted, tables to match.

    The cluster is the network's only latent, else its only node that is not a column.
    """
    cluster = cluster_node(network, schema.names)
    nodes = [cluster, *schema.names]
    cpds = {cpd.variable: cpd for cpd in network.cpds}
    lacking = [name for name in nodes if name not in cpds]
    if lacking:
        raise ValueError(f"init has no conditional probabilities for {lacking[0]!r}; it needs every column of X")
    position = {node: i for i, node in enumerate(nodes)}
    strange = [node for node in network.nodes() if node not in position]
    if strange:
        raise ValueError(f"init has a node {strange[0]!r}, which is not a column of X; drop it, or add the column")
    states = {cluster: list(cpds[cluster].state_names[cluster]), **dict(zip(schema.names, schema.states))}
    if len(states[cluster]) != n_clusters:
        raise ValueError(
            f"init has {len(states[cluster])} states of {cluster!r}, but n_clusters={n_clusters}; make them equal"
        )
    parents = tuple(tuple(sorted(position[p] for p in network.predecessors(node))) for node in nodes)
    tables = [cpt_array(cpds[node], [nodes[p] for p in ps], states, "init") for node, ps in zip(nodes, parents)]
    return parents, tables


def cluster_node(network, columns):
    """The node of an `init` network that is the cluster: its only latent, else its only node that is not a column of X."""
    latents = list(network.latents)
    columns = set(columns)
    others = [node for node in network.nodes() if node not in columns]
    found = latents if len(latents) == 1 else others
    if len(found) != 1:
        raise ValueError(
            f"cannot find the cluster of the network among {found}; the network needs one latent, or one node that is not a column"
        )
    return found[0]


def check_naive_bayes(network, columns):
    """The cluster of a network that must be naive Bayes; else an error that names the arc."""
    cluster = cluster_node(network, columns)
    for parent, child in network.edges():
        if parent != cluster:
            raise ValueError(f"the arc {parent!r} -> {child!r} is not naive Bayes below {cluster!r}; drop it")
    return cluster


def as_augmented(parents, tables, names):
    """The same network as augmented naive Bayes: (attribute parents, class_probs, tables (n_clusters, q, r)); else an error."""
    if parents[0]:
        raise ValueError(
            f"the arc {names[parents[0][0]]!r} -> {names[0]!r} is not augmented naive Bayes: the cluster has no parents there"
        )
    attribute_parents, reshaped = [], []
    for node in range(1, len(parents)):
        ps = parents[node]
        if 0 not in ps:
            raise ValueError(
                f"the arc {names[0]!r} -> {names[node]!r} is missing: in augmented naive Bayes the cluster is a parent of "
                "every column; add it, or pass structures='general'"
            )
        if len(ps) > 2:
            raise ValueError(
                f"the arc {names[ps[2]]!r} -> {names[node]!r} is one too many: in augmented naive Bayes a column has the "
                "cluster and at most one other parent; drop it, or pass structures='general'"
            )
        attribute_parents.append(ps[1] - 1 if len(ps) == 2 else -1)
        k = tables[0].shape[1]
        reshaped.append(tables[node].reshape(k, -1, tables[node].shape[1]))
    return np.array(attribute_parents), tables[0][0], reshaped


def read_cpds(given, nodes, argument):
    """{node: TabularCPD} from a network, a dict or a list of tables; a table for an unknown node is an error."""
    if hasattr(given, "cpds"):
        given = given.cpds
    tables = list(given.values()) if isinstance(given, dict) else bounded(argument, given)
    cpds: list = list(tables) if hasattr(tables, "__iter__") else [tables]
    for cpd in cpds:
        if not hasattr(cpd, "state_names") or not hasattr(cpd, "variable"):
            raise TypeError(
                f"{argument} holds a {type(cpd).__name__}; pass TabularCPD objects, a dict of them or a network"
            )
        if cpd.variable not in nodes:
            raise ValueError(f"{argument} has a table for {cpd.variable!r}, which is not a node of the network")
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
        raise ValueError(f"{argument}: the table of {node!r} has a line that is not a probability distribution")
    return np.ascontiguousarray(table / total)
