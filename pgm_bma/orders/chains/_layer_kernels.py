"""Compiled Gibbs sampler over the layers of DAGs, so that every DAG counts once, with edge reversals in between.

The state is the layer number of every node (partition MCMC, Kuipers and Moffa 2017). A node in layer l takes a parent set whose
highest member lies in layer l - 1 exactly; layer 0 takes the empty set. One node is taken out and put back, into any layer or as
a new layer between two, with exactly the right probabilities. For another node w in layer l of what remains, A is its sum
without v, H1 that over its sets with v whose other members reach l - 1, H2 that over those whose others do not pass l - 1:

    v in layer l or above: A       v joins l - 1: A + H2       v lower: A + H1       v a new layer just below w: H2

Then a DAG is drawn from the layers, walks by the moves of `_parent_kernels`, and the layers of what comes out carry on. Arcs are
read where new parents are drawn, as probabilities given all other families, and once more given the layers. Sums are pairs
(x, level) as in `_relocation_kernels`; none is made by subtraction.
"""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.chains._parent_kernels import draw_set, highest, new_dag, renew_parents, reverse, sort_nodes
from pgm_bma.orders.chains._relocation_kernels import (
    EXCHANGES,
    NOTHING,
    STEP,
    add,
    add_edges,
    fresh,
    log_of,
    sum_between,
)

MOVED = 4  # one node in so many changes its layer in a sweep: what a DAG's own moves do costs less. Variance times CPU time of
# alarm's arcs: .00016 with this and eight rounds, .00034 with every node moved, .0007 with three reversals a node alone
FEWEST = 12  # nodes that do, if there are so many. On 12 columns of child, where a quarter was moved, single chains stayed in rare
# modes for tens of sweeps: errors above .03 in 6 of 80 runs with eight rounds, in 2 of 80 with these and as much time
ROUNDS = 4  # of a sweep: as many arcs turned round as there are nodes, then new parents for every node


@compiled
def start_logs(layers, f, logs):
    """Log sums of all nodes, afresh; layers : (n + 1,), the last -1."""
    for node in range(logs.size):
        x, level = fresh(node, layers, layers[node] - 1, layers[node] - 1, f)
        logs[node] = log_of(x, level, f.tops[node])


@compiled
def relocate(v, uniform, beta, layers, logs, f, sums, others):
    """Move node v to a layer or gap drawn from all of them.

    layers : (n + 1,)    logs : (n,)    sums : (6, n + 3) scratch by layer
    others : (4, n + 1) scratch by node: logs of A, A + H1, A + H2, H2
    """
    n = logs.size
    old, alone, n_layers = layers[v], True, 0
    for w in range(n):
        n_layers = max(n_layers, layers[w] + 1)
        alone &= w == v or layers[w] != layers[v]
    if alone:
        n_layers -= 1
        for w in range(n):
            layers[w] -= layers[w] > old
    layers[v] = n + 1  # sets that hold v reach no layer
    sums[:, : n_layers + 3] = 0.0
    _own_layers(v, layers, n_layers, f, sums[0], others[0])
    for w in range(n):
        if w != v:
            for kind in range(3):
                others[kind, w] = logs[w]
            others[3, w] = -np.inf
    run, stop = f.held_offsets[v], f.held_offsets[v + 1]
    while run < stop:
        w = f.held_child[run]
        reach = layers[w] - 1
        x1, level1, x2, level2 = 0.0, NOTHING, 0.0, NOTHING
        while run < stop and f.held_child[run] == w:
            start, end = f.held_starts[run], f.held_starts[run + 1]
            more = sum_between(f.held_others, f.held_weights, f.held_rest, start, end, layers, -1, reach, 0.0)
            if more > 0.0:
                x2, level2 = add(x2, level2, more, f.held_level[run])
                more = sum_between(f.held_others, f.held_weights, f.held_rest, start, end, layers, reach, reach, 0.0)
                if more > 0.0:
                    x1, level1 = add(x1, level1, more, f.held_level[run])
            run += 1
        if level2 == NOTHING:
            continue
        if layers[w] < old or (layers[w] == old and not alone):  # v stood no lower than w, whose sum is A as it is
            below = f.tops[w] - logs[w]
            level = np.int32(below / STEP)
            x = np.exp(STEP * level - below)
        else:
            x, level = fresh(w, layers, reach, reach, f)
            others[0, w] = log_of(x, level, f.tops[w])
        joined = add(x, level, x1, level1) if level1 < NOTHING else (x, level)
        others[1, w] = log_of(joined[0], joined[1], f.tops[w])
        joined = add(x, level, x2, level2)
        others[2, w] = log_of(joined[0], joined[1], f.tops[w])
        others[3, w] = log_of(x2, level2, f.tops[w])
    for w in range(n):
        if w != v:
            for kind in range(4):
                sums[kind + 1, layers[w]] += others[kind, w]
    after = 0.0  # of A + H1 over the layers above
    for j in range(n_layers, -1, -1):
        sums[5, j] = after
        after += sums[2, j]
    before, top = 0.0, -np.inf
    for j in range(n_layers + 1):  # places 2 j: a new layer below layer j, 2 j + 1: layer j itself
        gap = sums[0, j] + before + sums[5, j]
        if j < n_layers:
            gap += sums[4, j]
        before += sums[1, j]
        join = -np.inf
        if j < n_layers:
            join = sums[0, j] + before + sums[3, j + 1] + sums[5, j + 1]
        sums[4, j], sums[3, j] = gap, join  # both were read for the last time
        top = max(top, max(gap, join))
    total = 0.0
    for j in range(n_layers + 1):
        total += np.exp(beta * (sums[4, j] - top)) + np.exp(beta * (sums[3, j] - top))
    sought, place = uniform * total, -1
    total = 0.0
    for j in range(n_layers + 1):
        for joins in range(2):
            value = sums[4 - joins, j]
            if value > -np.inf and (place < 0 or total <= sought):
                place = 2 * j + joins
                total += np.exp(beta * (value - top))
    j, joins = place // 2, place % 2
    for w in range(n):
        if w == v:
            continue
        kind = 0
        if layers[w] == j + 1 and joins:
            kind = 2
        elif layers[w] > j:
            kind = 1
        elif layers[w] == j and not joins:
            kind = 3
        logs[w] = others[kind, w]
        layers[w] += not joins and layers[w] >= j
    layers[v] = j
    logs[v] = sums[0, j]


@compiled
def _own_layers(v, layers, n_layers, f, own, xs):
    """own[j] = log sum of v in layer j: its sets by their highest layer; xs : (n,) scratch."""
    levels = np.full(n_layers + 1, NOTHING)
    xs[: n_layers + 1] = 0.0
    for k in range(f.offsets[v], f.offsets[v + 1]):
        j = highest(f.sets, k, layers) + 1
        xs[j], levels[j] = add(xs[j], levels[j], f.weights[k], f.levels[k])
    for j in range(n_layers + 1):
        own[j] = log_of(xs[j], levels[j], f.tops[v])


@compiled
def draw_dag(rng, layers, f, one):
    """A DAG drawn from those that the layers allow."""
    n, n_layers = one.order.size, 0
    for node in range(n):
        reach = layers[node] - 1
        x, level = fresh(node, layers, reach, reach, f)
        one.chosen[node] = draw_set(rng.random(), node, layers, reach, reach, x, level, f)
        one.order[node] = node
        n_layers = max(n_layers, layers[node] + 1)
    sort_nodes(one, layers, n_layers)


@compiled
def layers_of(one, f, layers):
    """Layers of a DAG: one more than the highest layer among the parents. layers : (n + 1,), the last -1"""
    for node in one.order:
        layers[node] = highest(f.sets, one.chosen[node], layers) + 1


@compiled
def run_layers(
    rng, states, at, betas, f, n_sweeps, tried, taken, states_out, scores_out, edge_sums, edge_squares, best
):
    """Walk `n_sweeps` sweeps; arguments and result as in `_relocation_kernels.run_orders`, states are layer numbers."""
    n_temperatures, n = states.shape
    layers = np.full((n_temperatures, n + 1), np.int32(-1))
    logs = np.empty((n_temperatures, n))
    for k in range(n_temperatures):
        layers[k, :n] = states[k]
        start_logs(layers[k], f, logs[k])
    sums, others = np.zeros((6, n + 3)), np.zeros((4, n + 1))
    one = new_dag(n)
    sequence, column = np.arange(n), np.zeros(n + 1)
    edges, readings, squares = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    found, turn = -1, 0
    for sweep in range(n_sweeps):
        for p in range(n - 1, 0, -1):
            q = int(rng.random() * (p + 1))
            sequence[p], sequence[q] = sequence[q], sequence[p]
        moved = max(-(-n // MOVED), min(n, FEWEST))
        for part in range(EXCHANGES):
            for temperature in range(n_temperatures):
                k = at[temperature]
                for p in range(part * moved // EXCHANGES, (part + 1) * moved // EXCHANGES):
                    relocate(sequence[p], rng.random(), betas[temperature], layers[k], logs[k], f, sums, others)
            turn += 1
            for t in range(turn % 2, n_temperatures - 1, 2):
                cold, warm = logs[at[t]].sum(), logs[at[t + 1]].sum()
                tried[t] += 1
                chance = np.exp(min((betas[t] - betas[t + 1]) * (warm - cold), 0.0))
                taken[t] += chance  # what is expected: less noise than what is drawn
                if rng.random() < chance:
                    at[t], at[t + 1] = at[t + 1], at[t]
        cold_layers, cold_logs = layers[at[0]], logs[at[0]]
        draw_dag(rng, cold_layers, f, one)
        for _ in range(ROUNDS):
            for _ in range(n):
                reverse(rng, one, f)
            for v in sequence:
                renew_parents(v, rng.random(), one, f, edges)
        layers_of(one, f, cold_layers)
        start_logs(cold_layers, f, cold_logs)
        states_out[sweep] = cold_layers[:n]
        scores_out[sweep] = cold_logs.sum()
        score = add_edges(cold_layers, True, f, column, readings, squares)
        if score > best[0]:
            best[0] = score
            found = sweep
        for p in range(n):
            for c in range(n):
                mean = (edges[c, p] + readings[p, c]) / (ROUNDS + 1)
                edge_sums[p, c] += mean
                edge_squares[p, c] += mean * mean
                edges[c, p], readings[p, c] = 0.0, 0.0
    for k in range(n_temperatures):
        states[k] = layers[k, :n]
    return found
