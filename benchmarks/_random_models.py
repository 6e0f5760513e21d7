"""Networks at random with the cluster as a latent root, what the papers' tables are made of.

Selective naive Bayes (EMA Table I), augmented naive Bayes (SEM Table 2) and Bayesian network classifiers (EMA Table II), as
pgmpy networks or (``as_arrays=True``) as plain arrays. Options of all three:

    arc_probability : each feature has the cluster as a parent with this probability, independently
    min_cluster_arcs : the arcs are drawn again until there are at least so many
    cardinalities : states of each feature; else uniform on min_cardinality..max_cardinality
    alpha : rows of the tables, and the cluster probabilities, are Dirichlet(alpha, ..., alpha)
    cluster_name, prefix : features are called prefix + "0", prefix + "1", ...; all states are 0, 1, 2, ...
"""

from math import prod

import numpy as np

from pgm_bma.foundation.runtime.jobs import random_generator
from pgm_bma.networks.objects import NetworkArrays, bayesian_network
from pgm_bma.networks.simulation import draw_parents


def random_selective_naive_bayes(n_features, n_clusters, *, arc_probability=0.5, **options):
    """A latent cluster, and features that depend on it or not, by chance."""
    return _clustered(n_features, n_clusters, lambda rng: [()] * n_features, arc_probability, **options)


def random_augmented_naive_bayes(n_features, n_clusters, n_arcs, *, max_indegree=1, arc_probability=1.0, **options):
    """The cluster is a parent of every feature; the feature graph is uniform over the DAGs with exactly `n_arcs` arcs in
    which no feature has more than `max_indegree` feature parents. With 1 these are forests."""

    def draw(rng):
        return draw_parents(n_features, max_indegree, rng, connected=False, n_arcs=n_arcs)

    return _clustered(n_features, n_clusters, draw, arc_probability, **options)


def random_network_classifier(n_features, n_clusters, max_indegree=2, *, arc_probability=0.5, **options):
    """A connected random network over the features, each with at most `max_indegree` of them as parents, then a cluster on
    top of some of them."""
    return _clustered(
        n_features, n_clusters, lambda rng: draw_parents(n_features, max_indegree, rng), arc_probability, **options
    )


def _clustered(
    n_features,
    n_clusters,
    draw,
    arc_probability,
    *,
    min_cluster_arcs=0,
    min_cardinality=2,
    max_cardinality=5,
    cardinalities=None,
    alpha=1.0,
    cluster_name="cluster",
    prefix="x",
    random_state=None,
    as_arrays=False,
):
    """The model whose parents among features are `draw(rng)`; the cluster is node 0."""
    rng = random_generator(random_state)
    if cardinalities is None:
        cardinalities = rng.integers(min_cardinality, max_cardinality + 1, size=n_features).tolist()
    dependent = rng.random(n_features) < arc_probability
    while dependent.sum() < min_cluster_arcs:
        dependent = rng.random(n_features) < arc_probability
    shifted = [tuple(parent + 1 for parent in of_node) for of_node in draw(rng)]
    families = ((), *((0, *of_node) if arc else of_node for arc, of_node in zip(dependent, shifted)))
    sizes = [n_clusters, *cardinalities]
    cpts = tuple(
        rng.dirichlet(np.full(size, float(alpha)), size=prod(sizes[p] for p in family))
        for size, family in zip(sizes, families)
    )
    names = (cluster_name, *(f"{prefix}{i}" for i in range(n_features)))
    arrays = NetworkArrays(names, tuple(tuple(range(size)) for size in sizes), families, cpts, (cluster_name,))
    return arrays if as_arrays else bayesian_network(*arrays)
