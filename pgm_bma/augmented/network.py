"""pgmpy objects of structural EM: the fitted network with its latent cluster."""

from pgm_bma.networks.objects import bayesian_network


def cluster_network(cluster_name, schema, families, tables):
    """``DiscreteBayesianNetwork`` over the cluster, node 0 and latent, and the columns of `schema`.

    families, tables : of every node, as `kinds` gives them
    """
    clusters = range(tables[0].shape[-1])
    names, states = [cluster_name, *schema.names], [clusters, *schema.states]
    return bayesian_network(names, states, families, tables, latents=[cluster_name])
