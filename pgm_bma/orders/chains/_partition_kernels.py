"""Compiled chain over the layers of DAGs, so that every DAG counts once (partition MCMC after Kuipers and Moffa 2017).

The state is the layer number of every node. A node takes a parent set among the nodes of lower layers that touches the layer just
below; the product of these sums is the total weight of the DAGs with those layers. Two symmetric moves, half each: take one node
out and put it back into any layer or gap, all places alike; or swap two nodes of different layers.
"""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.chains._order_kernels import TINY, log_sum_sets, note, sum_subsets


@compiled
def layer_sum(node, layers, f, before, allowed, touching):
    """Log sum of a node over the parent sets that its layer allows: positive terms only, nothing is subtracted."""
    m, own = f.n_candidates[node], layers[node]
    for a in range(m):
        other = layers[f.candidates[node, a]]
        allowed[a], touching[a] = other < own, other == own - 1
    if own == 0:
        return f.log_scores[f.offsets[node]]
    total = 0.0
    if f.max_indegree > 0:
        row = (f.member_offsets[node + 1] - f.member_offsets[node]) // max(m, 1)
        for a in range(m):
            if not touching[a]:
                continue
            n_others = 0  # a is the first of the set's members in the layer below
            for b in range(m):
                if allowed[b] and (b > a or not touching[b]):
                    before[n_others] = b
                    n_others += 1
            start = f.member_offsets[node] + a * row
            total += sum_subsets(f.holding, start, f.max_indegree - 1, m, before, n_others, f.binomials)
    if total >= TINY:
        return f.tops[node] + np.log(total)
    return log_sum_sets(f, node, allowed[:m], touching[:m])


@compiled
def score_layers(layers, f, logs):
    """Fill the log sums of all nodes; returns their total, the log weight of the DAGs with these layers."""
    width = f.candidates.shape[1]
    before = np.zeros(width, dtype=np.int64)
    allowed, touching = np.zeros(width, dtype=np.bool_), np.zeros(width, dtype=np.bool_)
    for node in range(layers.size):
        logs[node] = layer_sum(node, layers, f, before, allowed, touching)
    return logs.sum()


@compiled
def propose(rng, layers, proposal):
    """Write a neighbour of `layers` into `proposal`; both directions are equally likely."""
    n = layers.size
    proposal[:] = layers
    v = int(rng.random() * n)
    if rng.random() < 0.5:
        w = int(rng.random() * (n - 1))
        w += w >= v
        proposal[v], proposal[w] = layers[w], layers[v]
        return
    alone, n_layers = True, 0
    for x in range(n):
        n_layers = max(n_layers, layers[x] + 1)
        alone &= x == v or layers[x] != layers[v]
    if alone:  # without v its layer is gone
        n_layers -= 1
        for x in range(n):
            if layers[x] > layers[v]:
                proposal[x] -= 1
    place = int(rng.random() * (2 * n_layers + 1))  # even: the gap below layer place / 2, odd: the layer itself
    proposal[v] = place // 2
    if place % 2 == 0:
        for x in range(n):
            if x != v and proposal[x] >= place // 2:
                proposal[x] += 1


@compiled
def run_layers(rng, layers, f, n_steps, first_step, burn_in, thin, kept, kept_scores, trace):
    """Walk `n_steps` from `layers` (changed in place); arguments and result as `_order_kernels.run_swaps`."""
    n, width = layers.size, f.candidates.shape[1]
    before = np.zeros(width, dtype=np.int64)
    allowed, touching = np.zeros(width, dtype=np.bool_), np.zeros(width, dtype=np.bool_)
    logs, new_logs = np.zeros(n), np.zeros(n)
    score = score_layers(layers, f, logs)
    proposal = layers.copy()
    accepted = 0
    best, best_layers = score, layers.copy()
    for step in range(first_step, first_step + n_steps):
        propose(rng, layers, proposal)
        threshold = np.log(rng.random())
        change = 0.0
        for x in range(n):
            new_logs[x] = logs[x]
            if _differs(x, layers, proposal, f):
                new_logs[x] = layer_sum(x, proposal, f, before, allowed, touching)
                change += new_logs[x] - logs[x]
        if threshold < change:
            accepted += 1
            layers[:] = proposal
            logs[:] = new_logs
        best = note(step, first_step, burn_in, thin, layers, logs, kept, kept_scores, trace, best, best_layers)
    return accepted, logs.sum(), best, best_layers


@compiled
def _differs(x, old, new, f):
    """Whether the candidates of x below it, or just below it, change."""
    if (old[x] == 0) != (new[x] == 0):
        return True
    for a in range(f.n_candidates[x]):
        y = f.candidates[x, a]
        if (old[y] < old[x]) != (new[y] < new[x]) or (old[y] == old[x] - 1) != (new[y] == new[x] - 1):
            return True
    return False
