"""The fitted latent-class model as a pgmpy network: a latent cluster with an arc to every column."""

from pgm_bma.networks.objects import augmented_network


def cluster_network(cluster_name, schema, theta_c, tables):
    """theta_c : (n_clusters,)    tables : of every column, (n_clusters, cardinality)"""
    clusters = range(len(theta_c))
    return augmented_network(cluster_name, clusters, theta_c, schema.names, schema.states, tables, latent=True)
