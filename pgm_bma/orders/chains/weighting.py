"""What it means that every order counts once, or every DAG: one object each, with the functions that the rest of the folder calls.

A state is an order (earliest first) under "order", the layer number of every node under "dag"; given it, nodes choose parents
independently.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from pgm_bma.orders.chains import order_mcmc, partition_mcmc
from pgm_bma.orders.chains._layer_kernels import run_layers
from pgm_bma.orders.chains._relocation_kernels import run_orders
from pgm_bma.orders.sums import exact_dags, exact_orders, fixed_order


class Weighting(NamedTuple):
    """`sums` below is what `sum_all` returns; `table` may be a `FamilyTable` or `FamilyLists`."""

    name: str
    words: str  # what is averaged over
    exact_arcs: int  # most variables for exact arc posteriors
    exact_rows: int  # and for exact probabilities of rows
    sum_all: Callable  # (table) -> sums over all structures
    draw: Callable  # (sums, n, rng) -> (n, n_variables) independent states
    edges: Callable  # (sums) -> (n, n) arc posteriors
    log_joint: Callable  # (sums, predictive) -> (n_rows,)
    swap: Callable  # (families, starts, rngs, **settings) -> ChainResult: the paper's moves
    gibbs: Callable  # compiled sweeps
    masks: Callable  # (states) -> (before, touching or None), see `fixed_order`
    score: Callable  # (families, state) -> log score
    start: Callable  # (n, rng, required) -> state
    from_order: Callable  # (table, order) -> state
    order: Callable  # (states) -> (n_states, n) orders that fit them
    ladder: bool  # whether replicas at other temperatures help


def _layers_from_order(table, order):
    before = fixed_order.order_masks([order])[0]
    return partition_mcmc.dag_layers(fixed_order.best_parents(table, before)[0])


WEIGHTINGS = {
    "order": Weighting(
        "order",
        "orders",
        exact_orders.MAX_VARIABLES,
        exact_orders.MAX_PREDICTION,
        exact_orders.sum_over_orders,
        exact_orders.draw_orders,
        exact_orders.edge_posterior,
        exact_orders.log_joint,
        order_mcmc.sample_orders,
        run_orders,
        lambda states: (fixed_order.order_masks(states), None),
        order_mcmc.order_log_score,
        order_mcmc.random_order,
        lambda table, order: np.asarray(order, dtype=np.int64),
        lambda states: states,
        True,
    ),
    "dag": Weighting(
        "dag",
        "DAGs",
        exact_dags.MAX_VARIABLES,
        exact_dags.MAX_PREDICTION,
        exact_dags.sum_over_dags,
        exact_dags.draw_layers,
        exact_dags.edge_posterior,
        exact_dags.log_joint,
        partition_mcmc.sample_layers,
        run_layers,
        fixed_order.layer_masks,
        partition_mcmc.layers_log_score,
        lambda n, rng, required: partition_mcmc.start_layers(n, required),
        _layers_from_order,
        lambda states: np.argsort(states, axis=1, kind="stable"),
        False,
    ),
}


def state_edges(table, weighting, states, block=64):
    """(n_states, n, n) arc posteriors under every state, exactly: row parent, column child."""
    n = len(table.cardinalities)
    held = [_members_by_set(table, child) for child in range(n)]
    edges = np.zeros((len(states), n, n))
    for start in range(0, len(states), block):
        before, touching = weighting.masks(states[start : start + block])
        for child in range(n):
            weights = fixed_order.family_weights(
                table, child, before[:, child], None if touching is None else touching[:, child]
            )
            edges[start : start + block, :, child] = weights @ held[child]
    return edges


def _members_by_set(table, child):
    """(n_sets, n) sparse: 1 where a parent set of the child holds the variable."""
    sets = fixed_order.members(table, child)
    number, slot = np.nonzero(sets >= 0)
    return csr_matrix((np.ones(len(number)), (number, sets[number, slot])), (len(sets), len(table.cardinalities)))
