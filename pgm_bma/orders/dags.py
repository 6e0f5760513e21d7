"""DAGs of an average over structures: all of them with their weights where they are few, else drawn.

Of an exact average every draw takes its own order (or layers) from the exact law. Chains go on from every kept state until there
is a state for every draw. Given orders, and states with their own completed tables, take turns. Within a state, parents are drawn
exactly.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.orders.chains.gibbs import prepare_lists, walk
from pgm_bma.orders.families.family_table import FamilyLists, members
from pgm_bma.orders.structure_average import WEIGHTINGS
from pgm_bma.orders.sums import fixed_order

MAX_ENUMERATED = 5  # variables up to which all DAGs are written out: 29,281
N_DAGS = 1000  # draws otherwise: a share has a standard error of at most .016 when each draw has its own order
NEGLIGIBLE = 1e-17  # weight of a DAG that is left out
THIN = 8  # sweeps of a chain that goes on from a kept state, between two states that DAGs are drawn from
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
    few = len(average.table.cardinalities) <= MAX_ENUMERATED
    if average.method == "exact" and few:
        return all_dags(average.table, average.weighting)
    if average.method == "given" and few and average.gaps is None and average.states.size == average.states.shape[2]:
        return all_dags(average.table, "dag", fixed_order.order_masks(average.states[0])[0])
    weights = np.full(N_DAGS, 1 / N_DAGS)
    if average.method == "exact":
        return WeightedDags(draw(average, mixture, N_DAGS, rng), weights, np.arange(N_DAGS))
    if goes_on(average):
        walked, numbers = more_states(average, N_DAGS, rng)
        return WeightedDags(draw_each(average, walked, rng), weights, numbers)
    mix = mixture()
    states = np.arange(N_DAGS) % len(mix.weights[0])
    return WeightedDags(fixed_order.draw_dags(mix, states, rng), weights, states)


def goes_on(average):
    """Return True if there are chains that can make more states."""
    return average.method == "mcmc" and average.gaps is None and isinstance(average.table, FamilyLists)


def more_states(average, n_states, rng):
    """(states (n_states, n), number of the kept state that each comes from): chains that go on from every kept state."""
    kind, prepared = WEIGHTINGS[average.weighting], prepare_lists(average.table)
    kept = average.states.reshape(-1, average.states.shape[2])
    each = -(-n_states // len(kept))
    found = [walk(kind.gibbs, prepared, state, each * THIN, rng)[0][THIN - 1 :: THIN] for state in kept]
    chosen = np.linspace(0, each * len(kept) - 1, n_states).round().astype(int)
    return np.concatenate(found)[chosen], chosen // each


def draw(average, mixture, n_dags, rng):
    """(n_dags, n, width) parents, padded with -1. mixture : makes the `Mixture` of the kept states"""
    kind = WEIGHTINGS[average.weighting]
    if average.method == "exact":
        return draw_each(average, kind.draw(kind.sum_all(average.table), n_dags, rng), rng)
    if goes_on(average) and n_dags > average.states[:, :, 0].size:  # more than there are kept states
        return draw_each(average, rng.permutation(more_states(average, n_dags, rng)[0]), rng)
    mix = mixture()
    n_states = len(mix.weights[0])
    return fixed_order.draw_dags(mix, rng.permutation(n_states)[np.arange(n_dags) % n_states], rng)


def draw_each(average, states, rng):
    """(n_states, n, width) parents, padded with -1: one DAG of every state, drawn given the state."""
    kind, table = WEIGHTINGS[average.weighting], average.table
    drawn = [np.zeros((0, len(table.cardinalities), max(table.max_indegree, 1)), dtype=np.int64)]
    for start in range(0, len(states), BLOCK):
        before, touching = kind.masks(states[start : start + BLOCK])
        mix = fixed_order.mixture(table, average.training, before, touching)
        drawn.append(fixed_order.draw_dags(mix, np.arange(len(before)), rng))
    return np.concatenate(drawn)


def all_dags(table, weighting, before=None):
    """Every DAG of a full table with its posterior weight, but for those of no weight.

    before : (n, n) bool, who may be a parent of whom by row, or None
    """
    n = len(table.cardinalities)
    sets, masks, scores = [], [], []
    for child in range(n):
        own = table.log_scores[table.offsets[child] : table.offsets[child + 1]]
        possible = np.isfinite(own)
        if before is not None:
            possible &= np.append(before[child], True)[members(table, child)].all(1)
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


def compelled(parents):
    """(n_dags, n, n) bool [dag, parent, child]: arcs that all equivalent DAGs have (Chickering 1995).

    parents : (n_dags, n, width), padded with -1. Equal DAGs are looked at once.
    """
    distinct, number = np.unique(parents, axis=0, return_inverse=True)
    found = np.zeros((len(distinct), parents.shape[1], parents.shape[1]), dtype=bool)
    for mine, dag in zip(found, distinct):
        for parent, child in _compelled_arcs([set(z) for z in as_tuples(dag)]):
            mine[parent, child] = True
    return found[number.reshape(-1)]


def _compelled_arcs(parents):
    """[(parent, child)] of one DAG given as sets of parents, from the top down: the nearest parent settles all arcs of a child."""
    order: list[int] = []
    while len(order) < len(parents):
        order += [v for v, z in enumerate(parents) if v not in order and z <= set(order)]
    place = {v: k for k, v in enumerate(order)}
    fixed: list[set] = [set() for _ in parents]  # compelled parents of every node
    for y in order:
        if parents[y]:
            x = max(parents[y], key=place.__getitem__)
            collides = fixed[x] - parents[y] or parents[y] - parents[x] - {x}
            fixed[y] = parents[y] if collides else fixed[x]
    return [(x, y) for y, some in enumerate(fixed) for x in some]
