"""A pgmpy network given as the start of a clusterer, read as arrays: columns and states in the order of the data."""

import numpy as np

from pgm_bma.networks.cpds import cpt_array


def is_network(init):
    return hasattr(init, "cpds") and hasattr(init, "latents")


def known_states(network, columns):
    """States by column, from the network's own tables."""
    columns = set(columns)
    return {cpd.variable: list(cpd.state_names[cpd.variable]) for cpd in network.cpds if cpd.variable in columns}


def read_cluster_network(network, schema, n_clusters):
    """(parents, tables) over the cluster, node 0, and the columns, nodes 1, 2, ...: parents sorted, tables to match.

    The cluster is the network's only latent, else its only node that is no column.
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
        raise ValueError(f"init has a node {strange[0]!r}, which is no column of X; drop it, or add the column")
    states = {cluster: list(cpds[cluster].state_names[cluster]), **dict(zip(schema.names, schema.states))}
    if len(states[cluster]) != n_clusters:
        raise ValueError(
            f"init has {len(states[cluster])} states of {cluster!r}, but n_clusters={n_clusters}; make them equal"
        )
    parents = tuple(tuple(sorted(position[p] for p in network.predecessors(node))) for node in nodes)
    tables = [cpt_array(cpds[node], [nodes[p] for p in ps], states, "init") for node, ps in zip(nodes, parents)]
    return parents, tables


def cluster_node(network, columns):
    """The node of an `init` network that is the cluster: its only latent, else its only node that is no column of X."""
    latents = list(network.latents)
    columns = set(columns)
    others = [node for node in network.nodes() if node not in columns]
    found = latents if len(latents) == 1 else others
    if len(found) != 1:
        raise ValueError(
            f"cannot tell the cluster of the network among {found}; the network needs one latent, or one node that is no column"
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
            f"the arc {names[parents[0][0]]!r} -> {names[0]!r} is not augmented naive Bayes: nothing stands above the cluster"
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
