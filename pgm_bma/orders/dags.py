"""DAGs of an average over structures: all of them with their weights where they are few, else drawn.

Of an exact average every draw takes its own order (or layers) from the exact law. Of chains and given orders, the kept states take
turns; within a state, parents are drawn exactly.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.orders.chains.weighting import WEIGHTINGS
from pgm_bma.orders.families.family_table import members
from pgm_bma.orders.sums import fixed_order

MAX_ENUMERATED = 5  # variables up to which all DAGs are written out: 29,281
N_DAGS = 1000  # draws otherwise: a share has a standard error of at most .016 when each draw has its own order
NEGLIGIBLE = 1e-17  # weight of a DAG that is left out
BLOCK = 128  # orders whose parent sets are weighed at a time


class WeightedDags(NamedTuple):
    """DAGs with their posterior weights."""

    parents: np.ndarray  # (n_dags, n, width), padded with -1
    weights: np.ndarray  # (n_dags,), of sum 1
    states: (
        np.ndarray | None
    )  # (n_dags,) number of the order or layering that each was drawn from; None: these are all DAGs

    def share(self, values):
        """Average of values (n_dags, ...) over the DAGs."""
        return np.tensordot(self.weights, values, axes=1)

    def error(self, values):
        """Largest Monte Carlo standard error of `share`: from how the means of the states differ; 0 where nothing was drawn."""
        if self.states is None:
            return 0.0
        values = np.asarray(values, dtype=float).reshape(len(self.weights), -1)
        distinct, number = np.unique(self.states, return_inverse=True)
        if len(distinct) == 1:
            return float(np.sqrt(values.var(0).max(initial=0.0) / len(values)))
        means = np.zeros((len(distinct), values.shape[1]))
        np.add.at(means, number, values)
        means /= np.bincount(number)[:, None]
        return float(np.sqrt(means.var(0, ddof=1).max(initial=0.0) / len(distinct)))


def weighted_dags(average, mixture, rng):
    """All DAGs where they are few, else N_DAGS draws: `WeightedDags`. mixture : makes the `Mixture` of the kept states"""
    if average.method == "exact" and len(average.table.cardinalities) <= MAX_ENUMERATED:
        return all_dags(average.table, average.weighting)
    if average.method == "exact":
        return WeightedDags(draw(average, mixture, N_DAGS, rng), np.full(N_DAGS, 1 / N_DAGS), np.arange(N_DAGS))
    mix = mixture()
    states = np.arange(N_DAGS) % len(mix.weights[0])
    return WeightedDags(fixed_order.draw_dags(mix, states, rng), np.full(N_DAGS, 1 / N_DAGS), states)


def draw(average, mixture, n_dags, rng):
    """(n_dags, n, width) parents, padded with -1. mixture : makes the `Mixture` of the kept states"""
    if average.method != "exact":
        mix = mixture()
        n_states = len(mix.weights[0])
        return fixed_order.draw_dags(mix, rng.permutation(n_states)[np.arange(n_dags) % n_states], rng)
    kind, table = WEIGHTINGS[average.weighting], average.table
    states = kind.draw(kind.sum_all(table), n_dags, rng)
    drawn = [np.zeros((0, len(table.cardinalities), max(table.max_indegree, 1)), dtype=np.int64)]
    for start in range(0, n_dags, BLOCK):
        before, touching = kind.masks(states[start : start + BLOCK])
        mix = fixed_order.mixture(table, average.training, before, touching)
        drawn.append(fixed_order.draw_dags(mix, np.arange(len(before)), rng))
    return np.concatenate(drawn)


def all_dags(table, weighting):
    """Every DAG of a full table with its posterior weight, but for those of no weight."""
    n = len(table.cardinalities)
    sets, masks, scores = [], [], []
    for child in range(n):
        own = table.log_scores[table.offsets[child] : table.offsets[child + 1]]
        possible = np.isfinite(own)
        sets.append(members(table, child)[possible])
        masks.append(np.append(1 << np.arange(n), 0)[sets[-1]].sum(1).astype(np.uint8))
        scores.append(own[possible])
    chosen = np.indices([len(some) for some in sets], dtype=np.int16).reshape(n, -1)
    above = [masks[v][chosen[v]] for v in range(n)]
    left = np.full(chosen.shape[1], 2**n - 1, dtype=np.uint8)
    for _ in range(n):  # nodes without parents that are left go
        for v in range(n):
            left[above[v] & left == 0] &= 255 ^ (1 << v)
    chosen = chosen[:, left == 0]
    logs = sum(scores[v][chosen[v]] for v in range(n))
    if weighting == "order":
        logs = logs + np.log(_count_orders([masks[v][chosen[v]] for v in range(n)]))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    kept = weights > NEGLIGIBLE
    parents = np.stack([sets[v][chosen[v, kept]] for v in range(n)], axis=1)
    if parents.shape[2] == 0:
        parents = np.full((len(parents), n, 1), -1)
    return WeightedDags(parents.astype(np.int64), weights[kept] / weights[kept].sum(), None)


def _count_orders(masks):
    """(n_dags,) orders that each DAG fits; masks : per node, (n_dags,) its parents as bits."""
    n = len(masks)
    counts = np.zeros((2**n, len(masks[0])))
    counts[0] = 1.0
    for subset in range(1, 2**n):
        for v in range(n):
            if subset >> v & 1:
                rest = subset ^ (1 << v)
                counts[subset] += np.where(masks[v] & ~np.uint8(rest) == 0, counts[rest], 0.0)
    return counts[-1]


def arcs(parents):
    """(n_dags, n, n) bool [dag, parent, child] of parents (n_dags, n, width)."""
    n_dags, n, width = parents.shape
    found = np.zeros((n_dags, n + 1, n), dtype=bool)  # the last row takes the padding
    for slot in range(width):
        found[np.arange(n_dags)[:, None], parents[:, :, slot], np.arange(n)] = True
    return found[:, :n]


def paths(arcs):
    """(n_dags, n, n) bool: a directed path from row to column."""
    reach = arcs
    while True:
        steps = reach.astype(np.float32)
        longer = reach | (steps @ steps > 0)
        if (longer == reach).all():
            return reach
        reach = longer


def blankets(arcs, node):
    """(n_dags, n) bool: who is a parent, a child or a child's other parent of `node` (or the node itself)."""
    children = arcs[:, node]
    return arcs[:, :, node] | children | (arcs & children[:, None, :]).any(2)


def as_tuples(parents):
    """The parents (n, width) of one DAG as tuples."""
    return tuple(tuple(int(p) for p in row if p >= 0) for row in parents)
