"""Compiled Gibbs sampler over the layers of DAGs, so that every DAG counts once, with edge reversals in between.

The state is the layer number of every node (partition MCMC, Kuipers and Moffa 2017). A node in layer l takes a parent set whose
highest member lies in layer l - 1 exactly; layer 0 takes the empty set. One node is taken out and put back, into any layer or as
a new layer between two, with exactly the right probabilities. For another node w in layer l of what remains, A is its sum
without v, H1 that over its sets with v whose other members reach l - 1, H2 that over those whose others do not pass l - 1:

    v in layer l or above: A       v joins l - 1: A + H2       v lower: A + H1       v a new layer just below w: H2

Then a DAG is drawn from the layers, some of its arcs are turned round (new parents for both ends, Grzegorczyk and Husmeier 2008),
and the layers of what comes out carry on. Sums are pairs (x, level) as in `_relocation_kernels`; none is made by subtraction.
"""

import numpy as np

from pgm_bma.foundation.compiling import compiled
from pgm_bma.orders._relocation_kernels import (
    DEEPER,
    EXCHANGES,
    NOTHING,
    STEP,
    add,
    add_edges,
    fresh,
    log_of,
    sum_between,
)

REVERSALS = 3  # per node and sweep
READINGS = 4  # of the arcs in a sweep: cheap beside the moves


@compiled(nogil=True)
def highest(sets, k, layers):
    """Highest layer among the members of a set; -1 for the empty set."""
    top = layers[sets[0, k]]
    for t in range(1, sets.shape[0]):
        top = max(top, layers[sets[t, k]])
    return top


@compiled(nogil=True)
def start_logs(layers, f, logs):
    """Log sums of all nodes, afresh; layers : (n + 1,), the last -1."""
    for node in range(logs.size):
        x, level = fresh(node, layers, layers[node] - 1, layers[node] - 1, f)
        logs[node] = log_of(x, level, f.tops[node])


@compiled(nogil=True)
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


@compiled(nogil=True)
def _own_layers(v, layers, n_layers, f, own, xs):
    """own[j] = log sum of v in layer j: its sets by their highest layer; xs : (n,) scratch."""
    levels = np.full(n_layers + 1, NOTHING)
    xs[: n_layers + 1] = 0.0
    for k in range(f.offsets[v], f.offsets[v + 1]):
        j = highest(f.sets, k, layers) + 1
        xs[j], levels[j] = add(xs[j], levels[j], f.weights[k], f.levels[k])
    for j in range(n_layers + 1):
        own[j] = log_of(xs[j], levels[j], f.tops[v])


@compiled(nogil=True)
def draw_dag(rng, layers, f, chosen):
    """chosen[node] = a family drawn from those that the layers allow."""
    for node in range(chosen.size):
        reach = layers[node] - 1
        x, level = fresh(node, layers, reach, reach, f)
        chosen[node] = draw_set(rng.random(), node, layers, reach, reach, x, level, f)


@compiled(nogil=True)
def descendants(start, chosen, f, marked):
    """marked[node] = 1: reached from `start` by arcs, itself included; families of -1 have no parents. marked : (n + 1,) int32"""
    marked[:] = 0
    marked[start] = 1
    found = True
    while found:
        found = False
        for w in range(chosen.size):
            k = chosen[w]
            if k >= 0 and marked[w] == 0 and highest(f.sets, k, marked) == 1:
                marked[w] = 1
                found = True


@compiled(nogil=True)
def sum_with(node, parent, marked, f):
    """The sum of a node over its sets that hold `parent` and no marked member."""
    x, level = 0.0, NOTHING
    for run in range(f.held_offsets[parent], f.held_offsets[parent + 1]):
        if f.held_child[run] == node:
            start, end = f.held_starts[run], f.held_starts[run + 1]
            more = sum_between(f.held_others, f.held_weights, f.held_rest, start, end, marked, 0, 0, 0.0)
            if more > 0.0:
                x, level = add(x, level, more, f.held_level[run])
    return x, level


@compiled(nogil=True)
def _draw_with(uniform, node, parent, marked, x, level, f):
    """A set of the node that holds `parent` and no marked member, in proportion to its weight; (x, level) from `sum_with`."""
    sought, last = uniform * x, np.int64(-1)
    for run in range(f.held_offsets[parent], f.held_offsets[parent + 1]):
        if f.held_child[run] == node and f.held_level[run] <= level + 1:
            for k in range(f.held_starts[run], f.held_starts[run + 1]):
                if sought >= 0.0 and highest(f.held_others, k, marked) == 0:
                    last = f.held_family[k]
                    sought -= f.held_weights[k] if f.held_level[run] == level else f.held_weights[k] * DEEPER
    return last


@compiled(nogil=True)
def draw_set(uniform, node, number, low, high, x, level, f):
    """A set of the node whose highest member's number lies in low .. high; (x, level) from `fresh`."""
    sought, last = uniform * x, np.int64(-1)
    for k in range(f.offsets[node], f.offsets[node + 1]):
        top = highest(f.sets, k, number)
        if f.levels[k] <= level + 1 and low <= top <= high:
            last = k
            sought -= f.weights[k] if f.levels[k] == level else f.weights[k] * DEEPER
            if sought < 0.0:
                break
    return last


@compiled(nogil=True)
def _size(k, f, n):
    size = 0
    for t in range(f.sets.shape[0]):
        size += f.sets[t, k] < n
    return size


@compiled(nogil=True)
def reverse(rng, chosen, f, marked):
    """Turn a random arc i -> j round: i takes new parents with j among them, then j any that fit; accepted or not."""
    n = chosen.size
    n_arcs = 0
    for w in range(n):
        n_arcs += _size(chosen[w], f, n)
    if n_arcs == 0:
        return False
    number, j = int(rng.random() * n_arcs), 0
    while number >= _size(chosen[j], f, n):
        number -= _size(chosen[j], f, n)
        j += 1
    i = np.int64(f.sets[number, chosen[j]])  # the padding comes last
    first, second, third = rng.random(), rng.random(), rng.random()
    old_i, old_j = chosen[i], chosen[j]
    chosen[i], chosen[j] = -1, -1
    descendants(j, chosen, f, marked)
    back_j, back_j_level = sum_with(j, i, marked, f)
    descendants(i, chosen, f, marked)
    with_j, with_j_level = sum_with(i, j, marked, f)
    if with_j_level == NOTHING:
        chosen[i], chosen[j] = old_i, old_j
        return False
    new_i = _draw_with(first, i, j, marked, with_j, with_j_level, f)
    chosen[j] = old_j
    descendants(i, chosen, f, marked)
    back_i, back_i_level = fresh(i, marked, 0, 0, f)
    chosen[i], chosen[j] = new_i, -1
    descendants(j, chosen, f, marked)
    any_j, any_j_level = fresh(j, marked, 0, 0, f)
    if any_j_level == NOTHING:
        chosen[i], chosen[j] = old_i, old_j
        return False
    new_j = draw_set(second, j, marked, 0, 0, any_j, any_j_level, f)
    n_new = n_arcs + _size(new_i, f, n) + _size(new_j, f, n) - _size(old_i, f, n) - _size(old_j, f, n)
    ratio = np.log(n_arcs / n_new)
    ratio += log_of(with_j, with_j_level, 0.0) - log_of(back_i, back_i_level, 0.0)
    ratio += log_of(any_j, any_j_level, 0.0) - log_of(back_j, back_j_level, 0.0)
    if np.log(third) < ratio:
        chosen[j] = new_j
        return True
    chosen[i], chosen[j] = old_i, old_j
    return False


@compiled(nogil=True)
def layers_of(chosen, f, layers):
    """Layers of a DAG: one more than the highest layer among the parents. layers : (n + 1,)"""
    n = chosen.size
    layers[:n] = 0
    layers[n] = -1
    found = True
    while found:
        found = False
        for w in range(n):
            layer = highest(f.sets, chosen[w], layers) + 1
            if layer != layers[w]:
                layers[w] = layer
                found = True


@compiled(nogil=True)
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
    chosen, marked = np.zeros(n, dtype=np.int64), np.zeros(n + 1, dtype=np.int32)
    sequence, column = np.arange(n), np.zeros(n + 1)
    edges, squares = np.zeros((n, n)), np.zeros((n, n))
    found, turn = -1, 0
    for sweep in range(n_sweeps):
        for p in range(n - 1, 0, -1):
            q = int(rng.random() * (p + 1))
            sequence[p], sequence[q] = sequence[q], sequence[p]
        for part in range(EXCHANGES):
            for temperature in range(n_temperatures):
                k = at[temperature]
                for p in range(part * n // EXCHANGES, (part + 1) * n // EXCHANGES):
                    relocate(sequence[p], rng.random(), betas[temperature], layers[k], logs[k], f, sums, others)
            turn += 1
            for t in range(turn % 2, n_temperatures - 1, 2):
                cold, warm = logs[at[t]].sum(), logs[at[t + 1]].sum()
                tried[t] += 1
                chance = np.exp(min((betas[t] - betas[t + 1]) * (warm - cold), 0.0))
                taken[t] += chance  # what is expected: less noise than what is drawn
                if rng.random() < chance:
                    at[t], at[t + 1] = at[t + 1], at[t]
            if part < EXCHANGES - 1 and (part + 1) % (EXCHANGES // READINGS) == 0:
                add_edges(layers[at[0]], True, f, column, edges, squares)
        cold_layers, cold_logs = layers[at[0]], logs[at[0]]
        draw_dag(rng, cold_layers, f, chosen)
        turned = False
        for _ in range(REVERSALS * n):
            turned |= reverse(rng, chosen, f, marked)
        if turned:
            layers_of(chosen, f, cold_layers)
            start_logs(cold_layers, f, cold_logs)
        states_out[sweep] = cold_layers[:n]
        scores_out[sweep] = cold_logs.sum()
        score = add_edges(cold_layers, True, f, column, edges, squares)
        if score > best[0]:
            best[0] = score
            found = sweep
        for p in range(n):
            for c in range(n):
                mean = edges[p, c] / READINGS
                edge_sums[p, c] += mean
                edge_squares[p, c] += mean * mean
                edges[p, c] = 0.0
    for k in range(n_temperatures):
        states[k] = layers[k, :n]
    return found
