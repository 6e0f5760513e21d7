"""What it means that every order counts once, or every DAG: a class each, with the methods that the rest of the folder calls.

A state is an order (earliest first) under "order", the layer number of every node under "dag"; given it, nodes choose parents
independently. `table` may be a `FamilyTable` or `FamilyLists`; `sums` is what `sum_all` returns.
"""

import numpy as np
from scipy.sparse import csr_matrix

from pgm_bma.orders.chains._layer_kernels import run_layers
from pgm_bma.orders.chains._relocation_kernels import run_orders
from pgm_bma.orders.families.arcs import random_order
from pgm_bma.orders.sums import exact_dags, exact_orders, fixed_order, parent_sets


class OrderWeighting:
    """Every order counts once, so a DAG counts once per order it fits."""

    name = "order"
    words = "orders"  # what is averaged over
    exact_arcs = exact_orders.MAX_VARIABLES  # most variables for exact arc posteriors
    exact_rows = exact_orders.MAX_PREDICTION  # and for exact probabilities of rows
    ladder = True  # replicas at other temperatures help
    gibbs = staticmethod(run_orders)  # compiled sweeps
    # sums over all structures: made, read, and drawn from
    sum_all = staticmethod(exact_orders.sum_over_orders)
    edges = staticmethod(exact_orders.edge_posterior)
    log_joint = staticmethod(exact_orders.log_joint)
    draw = staticmethod(exact_orders.draw_orders)
    parent_sets = staticmethod(parent_sets.over_orders)

    def masks(self, states):
        """(before, touching or None) of states, see `fixed_order`."""
        return fixed_order.order_masks(states), None

    def start(self, n, rng, required):
        """A state to start a chain from."""
        return random_order(n, rng, required)

    def from_order(self, table, order):
        """The state that an order stands for."""
        return np.asarray(order, dtype=np.int64)

    def order(self, states):
        """(n_states, n) orders that fit the states."""
        return states

    def numbers(self, state):
        """(n + 1,) int32 position of every node; the last, -1, takes the padding of sets."""
        numbers = np.full(len(state) + 1, -1, dtype=np.int32)
        numbers[state] = np.arange(len(state))
        return numbers


class DagWeighting:
    """Every DAG counts once: sums and chains go over the layers of a DAG, which are unique."""

    name = "dag"
    words = "DAGs"
    exact_arcs = exact_dags.MAX_VARIABLES
    exact_rows = exact_dags.MAX_PREDICTION
    ladder = False  # arcs are turned round instead
    gibbs = staticmethod(run_layers)
    sum_all = staticmethod(exact_dags.sum_over_dags)
    edges = staticmethod(exact_dags.edge_posterior)
    log_joint = staticmethod(exact_dags.log_joint)
    draw = staticmethod(exact_dags.draw_layers)
    parent_sets = staticmethod(parent_sets.over_dags)

    def masks(self, states):
        """(before, touching) of layers."""
        return fixed_order.layer_masks(states)

    def start(self, n, rng, required):
        """One layer, or what the required arcs ask for."""
        return dag_layers([tuple(p for p, c in required if c == v) for v in range(n)])

    def from_order(self, table, order):
        """Layers of the best DAG within the order."""
        before = fixed_order.order_masks([order])[0]
        return dag_layers(fixed_order.best_parents(table, before)[0])

    def order(self, states):
        """Orders by layer, then by number of the node."""
        return np.argsort(states, axis=1, kind="stable")

    def numbers(self, state):
        """(n + 1,) int32 layer of every node; the last, -1, takes the padding of sets."""
        return np.append(state, -1).astype(np.int32)


WEIGHTINGS: dict[str, OrderWeighting | DagWeighting] = {"order": OrderWeighting(), "dag": DagWeighting()}


def dag_layers(parents):
    """Layer number of every node of a DAG given as parent tuples: one more than the highest layer among its parents."""
    layers = np.full(len(parents), -1, dtype=np.int64)
    while (layers < 0).any():
        ready = [v for v, z in enumerate(parents) if layers[v] < 0 and all(layers[p] >= 0 for p in z)]
        if not ready:
            raise ValueError("the parents form a cycle")
        for v in ready:
            layers[v] = max((layers[p] + 1 for p in parents[v]), default=0)
    return layers


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
