"""Networks at random, what the experiments are made of: selective naive Bayes, augmented naive Bayes and Bayesian network
classifiers with the cluster as a latent root, as pgmpy networks or (``as_arrays=True``) as plain arrays for loops that need
many; and `random_dag`, uniform over the DAGs that its bounds allow.
"""

from collections.abc import Sequence
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import TEXT, Flag, Integer, Number, check, check_arguments
from pgm_bma.foundation.runtime.seeds import random_generator
from pgm_bma.networks.objects import NetworkArrays, bayesian_network

STEPS_AT_ONCE = 2**18
MAX_WORK = 1e12  # steps x (nodes + arcs); about 1e-9 s each
MAX_COUNT = 10**9  # of anything
MAX_CELLS = 2**27  # probabilities of all tables together: 1 GB

MODEL = """min_cluster_arcs : int, default=0
        Draw the arcs again until there are at least so many; 0 allows a cluster that nothing depends on.
    min_cardinality, max_cardinality : int, default=2 and 5
        The number of states of each feature is uniform on min..max, both included.
    cardinalities : sequence of int, optional
        The numbers of states themselves, one per feature; then nothing is drawn.
    alpha : float, default=1.0
        Rows of the tables, and the cluster probabilities, are Dirichlet(alpha, ..., alpha).
    cluster_name, prefix : str, default="cluster" and "x"
        Name of the latent node; features are called prefix + "0", prefix + "1", ... All states are 0, 1, 2, ...
    random_state : int, Generator, RandomState or None
        Seed.
    as_arrays : bool, default=False
        Return `NetworkArrays` (names, states, parents, cpts, latents; the cluster is node 0) instead of a pgmpy network.

    Returns
    -------
    DiscreteBayesianNetwork or NetworkArrays
        The model, with the cluster as its latent."""


@fill(model=MODEL)
def random_selective_naive_bayes(
    n_features: int,
    n_clusters: int,
    *,
    arc_probability: float = 0.5,
    min_cluster_arcs: int = 0,
    min_cardinality: int = 2,
    max_cardinality: int = 5,
    cardinalities: Sequence[int] | None = None,
    alpha: float = 1.0,
    cluster_name: str = "cluster",
    prefix: str = "x",
    random_state: Any = None,
    as_arrays: bool = False,
) -> Any:
    """A selective naive Bayes model: a latent cluster, and features that depend on it or not, by chance.

    Parameters
    ----------
    n_features, n_clusters : int
        Number of features, and of states of the cluster.
    arc_probability : float, default=0.5
        Each feature has the cluster as a parent with this probability, independently.
    {model}

    Examples
    --------
    >>> from pgm_bma import random_selective_naive_bayes, simulate
    >>> model = random_selective_naive_bayes(6, 3, random_state=0)
    >>> list(model.nodes), model.latents
    (['cluster', 'x0', 'x1', 'x2', 'x3', 'x4', 'x5'], {'cluster'})
    >>> simulate(model, 100, random_state=0, include_latents=True).shape
    (100, 7)
    """
    return _clustered(locals(), lambda n, rng: [()] * n)


@fill(model=MODEL)
def random_augmented_naive_bayes(
    n_features: int,
    n_clusters: int,
    n_arcs: int,
    *,
    max_indegree: int = 1,
    n_steps: int | None = None,
    arc_probability: float = 1.0,
    min_cluster_arcs: int = 0,
    min_cardinality: int = 2,
    max_cardinality: int = 5,
    cardinalities: Sequence[int] | None = None,
    alpha: float = 1.0,
    cluster_name: str = "cluster",
    prefix: str = "x",
    random_state: Any = None,
    as_arrays: bool = False,
) -> Any:
    """An augmented naive Bayes model: the cluster is a parent of every feature, and `n_arcs` arcs join features.

    The feature graph is uniform over the DAGs with exactly `n_arcs` arcs in which no feature has more than
    `max_indegree` feature parents (see `random_dag`); with the default 1 these are forests.

    Parameters
    ----------
    n_features, n_clusters : int
        Number of features, and of states of the cluster.
    n_arcs : int
        Number of arcs between features, beside those from the cluster.
    max_indegree : int, default=1
        Largest number of feature parents, the cluster not counted.
    n_steps : int, optional
        Length of the chain that draws the feature graph (see `random_dag`).
    arc_probability : float, default=1.0
        Each feature has the cluster as a parent with this probability, independently.
    {model}

    Examples
    --------
    >>> from pgm_bma import random_augmented_naive_bayes
    >>> model = random_augmented_naive_bayes(20, 4, 10, cardinalities=[2] * 20, random_state=0)
    >>> len(model.edges)
    30
    """
    more = {"connected": False, "n_arcs": n_arcs, "n_steps": n_steps}
    return _clustered(locals(), lambda n, rng: draw_parents(n, max_indegree, rng, **more))


@fill(model=MODEL)
def random_network_classifier(
    n_features: int,
    n_clusters: int,
    max_indegree: int = 2,
    *,
    connected: bool = True,
    n_steps: int | None = None,
    arc_probability: float = 0.5,
    min_cluster_arcs: int = 0,
    min_cardinality: int = 2,
    max_cardinality: int = 5,
    cardinalities: Sequence[int] | None = None,
    alpha: float = 1.0,
    cluster_name: str = "cluster",
    prefix: str = "x",
    random_state: Any = None,
    as_arrays: bool = False,
) -> Any:
    """A Bayesian network classifier: a random network over the features, then a cluster on top of some of them.

    Parameters
    ----------
    n_features, n_clusters : int
        Number of features, and of states of the cluster.
    max_indegree : int, default=2
        Largest number of feature parents; the cluster comes in addition.
    connected : bool, default=True
        Whether the feature graph must hang together; it is uniform over what is allowed (see `random_dag`).
    n_steps : int, optional
        Length of the chain that draws the feature graph (see `random_dag`).
    arc_probability : float, default=0.5
        Each feature has the cluster as a parent with this probability, independently.
    {model}

    Examples
    --------
    >>> from pgm_bma import random_network_classifier
    >>> model = random_network_classifier(8, 2, max_indegree=3, random_state=0)
    >>> max(len(model.get_parents(node)) for node in model.nodes) <= 4
    True
    """
    more = {"connected": connected, "n_steps": n_steps}
    return _clustered(locals(), lambda n, rng: draw_parents(n, max_indegree, rng, **more))


def random_dag(
    n_nodes: int,
    max_indegree: int | None = None,
    *,
    connected: bool = True,
    n_arcs: int | None = None,
    n_steps: int | None = None,
    random_state: Any = None,
) -> Any:
    """A DAG drawn uniformly from the connected DAGs whose nodes have at most `max_indegree` parents.

    A Markov chain over the allowed graphs, in the manner of Melançon, Dutour and Bousquet-Mélou (2001) and of Ide and
    Cozman (2002). Each step proposes one of four moves with equal probability and stays where it is if the result is
    cyclic, disconnected or breaks the bound:

    - toggle: take an ordered pair of nodes; remove its arc, or add it;
    - reverse a uniformly chosen arc;
    - new parent: give a uniformly chosen arc another source;
    - move a uniformly chosen arc to a uniformly chosen ordered pair.

    Every move is as likely as the move back, so the chain is uniform in the limit. It reaches everything: drop arcs until a
    tree is left; where a node has two parents, cut one off and hang that part, by a node without parents, below the
    node; this ends in a rooted tree, and reversals at the root and new parents lead from one rooted tree to any other.
    Rejected steps make it aperiodic. With `n_arcs` only the last three moves are used.

    The chain starts at a random tree with shuffled labels, hence node labels are exchangeable after any number of steps.
    Features such as the longest path or the number of arcs had autocorrelation times of 1 to 4 times n_nodes^2 steps
    (up to 40 nodes, in-degrees 2 to 19); the default runs 20 n_nodes^2 steps, at least 1000.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.
    max_indegree : int, optional
        Largest number of parents; None is no bound.
    connected : bool, default=True
        Ask for weakly connected graphs.
    n_arcs : int, optional
        Draw from the DAGs with exactly this number of arcs instead; only with ``connected=False``.
    n_steps : int, optional
        Length of the chain; None takes the default above.
    random_state : int, Generator, RandomState or None
        Seed.

    Returns
    -------
    networkx.DiGraph
        Nodes are 0..n_nodes-1.

    Examples
    --------
    >>> from pgm_bma import random_dag
    >>> dag = random_dag(10, max_indegree=2, random_state=0)
    >>> dag.number_of_nodes(), max(degree for _, degree in dag.in_degree) <= 2
    (10, True)
    """
    import networkx as nx

    rng = random_generator(random_state)
    parents = draw_parents(n_nodes, max_indegree, rng, connected=connected, n_arcs=n_arcs, n_steps=n_steps)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(parents)))
    graph.add_edges_from((parent, child) for child, of_node in enumerate(parents) for parent in of_node)
    return graph


def draw_parents(n_nodes, max_indegree, rng, *, connected=True, n_arcs=None, n_steps=None):
    """`random_dag` as a tuple of sorted parent tuples."""
    n_nodes = _count("n_nodes", n_nodes, 1)
    check("connected", connected, Flag())
    bound = n_nodes - 1 if max_indegree is None else min(_count("max_indegree", max_indegree, 0), n_nodes - 1)
    n_steps = max(1000, 20 * n_nodes**2) if n_steps is None else _count("n_steps", n_steps, 0)
    most = sum(min(before, bound) for before in range(n_nodes))
    if n_arcs is not None:
        n_arcs = _count("n_arcs", n_arcs, 0)
        if connected:
            raise ValueError("n_arcs is drawn over all DAGs with that many arcs; pass connected=False with it")
        if n_arcs > most:
            raise ValueError(f"n_arcs={n_arcs}: {n_nodes} nodes with at most {bound} parents each hold {most} arcs")
    elif connected and most < n_nodes - 1:
        raise ValueError(
            f"max_indegree={max_indegree} does not connect {n_nodes} nodes; use 1 or more, or connected=False"
        )
    if most == 0 or n_arcs == 0:
        return ((),) * n_nodes
    from pgm_bma.networks._random_dag_kernels import REVERSE, TOGGLE, walk

    likely = n_arcs or min(most, n_nodes * bound, n_nodes**2 // 4)  # arcs that a step has to look through
    work = n_steps * (n_nodes + likely)
    if work > MAX_WORK:
        raise ValueError(
            f"a chain of {n_steps:,} steps over {n_nodes} nodes with up to {likely:,} arcs is {work:.1e} steps of work, more "
            f"than {MAX_WORK:.0e} (about 20 minutes); pass a smaller n_steps, max_indegree or number of nodes"
        )
    source, target, size = _first_graph(n_nodes, bound, most, n_arcs, rng)
    for done in range(0, n_steps, STEPS_AT_ONCE):  # bounds the memory of the proposals, and lets Ctrl-C through
        n = min(STEPS_AT_ONCE, n_steps - done)
        kinds = rng.integers(TOGGLE if n_arcs is None else REVERSE, 4, size=n)
        uniforms = rng.random(n)
        first, second = rng.integers(0, n_nodes, size=n), rng.integers(0, n_nodes - 1, size=n)
        second += second >= first  # a uniform ordered pair of different nodes
        size = walk(source, target, size, n_nodes, bound, connected, kinds, uniforms, first, second)
    parents = [[] for _ in range(n_nodes)]
    for a, b in zip(source[:size].tolist(), target[:size].tolist()):
        parents[b].append(a)
    return tuple(tuple(sorted(of_node)) for of_node in parents)


def _first_graph(n_nodes, bound, most, n_arcs, rng):
    """A random recursive tree under shuffled labels; with `n_arcs`, earlier nodes first take all the parents they may."""
    label = rng.permutation(n_nodes)
    source, target = np.zeros(most, dtype=np.int64), np.zeros(most, dtype=np.int64)
    size = 0
    for place in range(1, n_nodes):
        wanted = 1 if n_arcs is None else min(place, bound, n_arcs - size)
        for other in rng.permutation(place)[:wanted]:
            source[size], target[size] = label[other], label[place]
            size += 1
    return source, target, size


def _clustered(given, draw):
    """Draw what the arguments `given` ask for, the parents among features by `draw(n_features, rng)`; the cluster is node 0."""
    asked = SimpleNamespace(**given)
    rng, n_features = random_generator(asked.random_state), _count("n_features", asked.n_features, 1)
    sizes = _draw_cardinalities(n_features, asked.min_cardinality, asked.max_cardinality, asked.cardinalities, rng)
    dependent = _draw_cluster_arcs(n_features, asked.arc_probability, asked.min_cluster_arcs, rng)
    parents = draw(n_features, rng)
    sizes = [_count("n_clusters", asked.n_clusters, 1), *sizes]
    positive = Number(0, open_low=True)
    check_arguments(given, alpha=positive, cluster_name=TEXT, prefix=TEXT, as_arrays=Flag())
    cluster = asked.cluster_name
    names = (cluster, *(f"{asked.prefix}{i}" for i in range(n_features)))
    if cluster in names[1:]:
        raise ValueError(f"cluster_name={cluster!r} is also the name of a feature; choose another or change prefix")
    shifted = [tuple(p + 1 for p in of_node) for of_node in parents]
    families = ((), *((0, *p) if arc else p for arc, p in zip(dependent, shifted)))
    cells = sum(size * prod(sizes[p] for p in family) for size, family in zip(sizes, families))
    if cells > MAX_CELLS:
        raise ValueError(
            f"the tables would hold {cells:,} probabilities, the limit is {MAX_CELLS:,}; ask for fewer features, parents or "
            "states"
        )
    cpts = tuple(
        rng.dirichlet(np.full(size, float(asked.alpha)), size=prod(sizes[p] for p in family))
        for size, family in zip(sizes, families)
    )
    arrays = NetworkArrays(names, tuple(tuple(range(size)) for size in sizes), families, cpts, (cluster,))
    return arrays if asked.as_arrays else bayesian_network(*arrays)


def _draw_cardinalities(n_features, low, high, given, rng):
    if given is not None:
        sizes = [_count("cardinalities", size, 1) for size in given]
        if len(sizes) != n_features:
            raise ValueError(f"cardinalities has {len(sizes)} entries for {n_features} features")
        return sizes
    low = _count("min_cardinality", low, 1)
    return rng.integers(low, _count("max_cardinality", high, low) + 1, size=n_features).tolist()


def _draw_cluster_arcs(n_features, probability, at_least, rng):
    check("arc_probability", probability, Number(0, 1))
    at_least = _count("min_cluster_arcs", at_least, 0)
    if at_least > n_features or (at_least > 0 and probability == 0):
        raise ValueError(f"min_cluster_arcs={at_least} cannot be had with {n_features} features at {probability}")
    while True:
        arcs = rng.random(n_features) < probability
        if arcs.sum() >= at_least:
            return arcs.tolist()


def _count(name, value, least):
    check(name, value, Integer(least, MAX_COUNT))
    return int(value)
