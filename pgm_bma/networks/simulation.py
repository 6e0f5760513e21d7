"""Rows and graphs at random: `simulate` draws rows from a pgmpy network, `random_dag` a DAG uniformly under its bounds.

Rows are drawn by ancestral sampling, one compiled step per node; `foundation.numbers.graphs.sample_codes` is the same for arrays.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pgm_bma.foundation.faces.validation import Flag, Integer, check
from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.runtime.jobs import in_moments, random_generator
from pgm_bma.networks.objects import network_arrays

if TYPE_CHECKING:
    import pandas as pd


MAX_CELLS = 2 * 10**10  # rows x nodes: 20 GB in the smallest integers


def simulate(model: Any, n: int, random_state: Any = None, include_latents: bool = False) -> "pd.DataFrame":
    """Draw `n` rows from a network.

    Parameters
    ----------
    model : DiscreteBayesianNetwork
        A pgmpy network with its tables.
    n : int
        Number of rows.
    random_state : int, Generator, RandomState or None
        A Generator or RandomState gives up one draw, which seeds the sampling.
    include_latents : bool, default=False
        Keep the columns of latent nodes, as in pgmpy's own ``model.simulate``. They are drawn in any case, so the other
        columns do not depend on this.

    Returns
    -------
    DataFrame
        Columns in the order of ``model.nodes``. They are categoricals whose categories are the states of the node, in
        its order, with their Python types; so a state that was never drawn is still known to every estimator.

    Examples
    --------
    >>> from pgm_bma import load_network, simulate
    >>> rows = simulate(load_network("cancer"), 1000, random_state=0)
    >>> rows.shape, list(rows["Smoker"].cat.categories)
    ((1000, 5), ['True', 'False'])
    """
    import pandas as pd

    arrays = network_arrays(model)
    check("n", n, Integer(0, MAX_CELLS // max(len(arrays.names), 1)))
    check("include_latents", include_latents, Flag())
    codes = sample_codes(arrays.cpts, arrays.parents, n, random_generator(random_state), names=arrays.names)
    hidden = set() if include_latents else set(arrays.latents)
    columns = {
        node: pd.Categorical.from_codes(column, dtype=_column_type(node, states), validate=False)
        for node, states, column in zip(arrays.names, arrays.states, codes.T)
        if node not in hidden
    }
    return pd.DataFrame(columns, copy=False) if columns else pd.DataFrame(index=range(n))


def _column_type(node, states):
    try:
        return _categories(states, tuple(map(type, states)))
    except ValueError as error:
        raise ValueError(
            f"the states {list(states)} of node {node!r} cannot label a column ({error}); rename them"
        ) from None


@lru_cache(maxsize=4096)
def _categories(states, types):
    """The categorical dtype of a node; `types` keeps 1 and True apart in the cache. Mixed types stay as they are."""
    import pandas as pd

    same = len(set(types)) == 1
    return pd.CategoricalDtype(pd.Index(list(states), dtype=None if same else object, tupleize_cols=False))


STEPS_AT_ONCE = 2**18
MAX_WORK = 1e12  # steps x (nodes + arcs); about 1e-9 s each
MAX_COUNT = 10**9  # of anything


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
    for done in range(0, n_steps, STEPS_AT_ONCE):  # bounds the memory of the proposals
        n = min(STEPS_AT_ONCE, n_steps - done)
        kinds = rng.integers(TOGGLE if n_arcs is None else REVERSE, 4, size=n)
        uniforms = rng.random(n)
        first, second = rng.integers(0, n_nodes, size=n), rng.integers(0, n_nodes - 1, size=n)
        second += second >= first  # a uniform ordered pair of different nodes
        for part in in_moments(n, n_nodes + most):
            proposals = kinds[part], uniforms[part], first[part], second[part]
            size = walk(source, target, size, n_nodes, bound, connected, *proposals)
    parents: list[list[int]] = [[] for _ in range(n_nodes)]
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


def _count(name, value, least):
    check(name, value, Integer(least, MAX_COUNT))
    return int(value)
