"""Compiled Gibbs sampler over the layers of DAGs, so that every DAG counts once, with edge reversals in between.

The state is the layer number of every node (partition MCMC, Kuipers and Moffa 2017). A node in layer l takes a parent set whose
highest member lies in layer l - 1 exactly; layer 0 takes the empty set. One node is taken out and put back, into any layer or as
a new layer between two, with exactly the right probabilities. For another node w in layer l of what remains, A is its sum
without v, H1 that over its sets with v whose other members reach l - 1, H2 that over those whose others do not pass l - 1:

    v in layer l or above: A       v joins l - 1: A + H2       v lower: A + H1       v a new layer just below w: H2

Then a DAG is drawn from the layers and walks by its own moves, and the layers of what comes out carry on. It is a family for
every node and an order in which parents stand before children, by which one pass finds all descendants. New parents are drawn
from all sets without descendants (a Gibbs step); all descendants of the node move with it, which layers cannot do: a node there
that leaves its layer strands the children that it held up. An arc is turned round with new parents for both of its ends
(Grzegorczyk and Husmeier 2008). Arcs are read where new parents are drawn, as probabilities given all other families, and once
more given the layers. Sums are pairs (x, level) as in `_pair_kernels`; none is made by subtraction.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.chains._pair_kernels import DEEPER, NOTHING, STEP, add, fresh, highest, log_of, sum_between
from pgm_bma.orders.chains._relocation_kernels import UNSEEN

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
def relocate(v, uniform, layers, logs, f, sums, others):
    """Move node v to a layer, or between two layers, drawn from all places.

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
        total += np.exp(sums[4, j] - top) + np.exp(sums[3, j] - top)
    sought, place = uniform * total, -1
    total = 0.0
    for j in range(n_layers + 1):
        for joins in range(2):
            value = sums[4 - joins, j]
            if value > -np.inf and (place < 0 or total <= sought):
                place = 2 * j + joins
                total += np.exp(value - top)
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


class Dag(NamedTuple):
    """One DAG, with scratch."""

    chosen: np.ndarray  # (n,) family of every node, -1: no parents for the moment
    order: np.ndarray  # (n,) parents before children
    place: np.ndarray  # (n,) in that order
    marked: np.ndarray  # (3, n + 1) int32 scratch; the last takes the padding of sets
    spare: np.ndarray  # (n,) scratch


@compiled
def new_dag(n):
    """Space for a DAG of n nodes."""
    return Dag(
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((3, n + 1), np.int32),
        np.zeros(n, np.int64),
    )


@compiled
def draw_set(uniform, node, number, low, high, x, level, f):
    """A set of the node whose highest member's number lies in low .. high; (x, level) from `fresh`."""
    sought, last = uniform * x, -1
    for k in range(f.offsets[node], f.offsets[node + 1]):
        top = highest(f.sets, k, number)
        if f.levels[k] <= level + 1 and low <= top <= high:
            last = k
            sought -= f.weights[k] if f.levels[k] == level else f.weights[k] * DEEPER
            if sought < 0.0:
                break
    return last


@compiled
def sort_nodes(one, number, n_numbers):
    """Nodes of low numbers first, else as they stand."""
    n, p = one.order.size, 0
    for wanted in range(n_numbers):
        for q in range(n):
            if number[one.order[q]] == wanted:
                one.spare[p] = one.order[q]
                p += 1
    for q in range(n):
        one.order[q] = one.spare[q]
        one.place[one.order[q]] = q


@compiled
def descendants(start, one, f, marked):
    """marked[node] = 1: reached from `start` by arcs, itself included; marked : (n + 1,)"""
    n = one.order.size
    for w in range(n + 1):
        marked[w] = 0
    marked[start] = 1
    for p in range(one.place[start] + 1, n):
        w = one.order[p]
        if one.chosen[w] >= 0 and highest(f.sets, one.chosen[w], marked) == 1:
            marked[w] = 1


@compiled
def renew_parents(v, uniform, one, f, edges):
    """Draw new parents for v, given all other families; add the probability of every parent to edges[v].

    Sets that have UNSEEN of the probability together are not looked at.
    """
    n, marked = one.order.size, one.marked[0]
    descendants(v, one, f, marked)
    x, level = fresh(v, marked, 0, 0, f)
    sought, last = uniform, -1
    for k in range(f.offsets[v], f.offsets[v + 1]):
        scale = 1.0 / x if f.levels[k] == level else DEEPER / x
        if f.levels[k] > level + 1 or (f.levels[k] >= level and f.rest[k] * scale < UNSEEN):
            break
        if highest(f.sets, k, marked) == 0:
            share = f.weights[k] * scale
            if sought >= 0.0:
                last = k
            sought -= share
            for t in range(f.sets.shape[0]):
                if f.sets[t, k] < n:
                    edges[v, f.sets[t, k]] += share
    one.chosen[v] = last
    behind = False
    for t in range(f.sets.shape[0]):
        w = f.sets[t, one.chosen[v]]
        behind |= w < n and one.place[min(w, n - 1)] > one.place[v]
    if behind:
        sort_nodes(one, marked, 2)


@compiled
def _first_run(node, parent, f):
    """First run of families of the node that hold `parent`, if it has any."""
    low, high = f.held_offsets[parent], f.held_offsets[parent + 1]
    while low < high:
        middle = (low + high) // 2
        if f.held_child[middle] < node:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _sum_with(node, parent, marked, f):
    """The sum of a node over its sets that hold `parent` and no marked member."""
    x, level = 0.0, NOTHING
    run, stop = _first_run(node, parent, f), f.held_offsets[parent + 1]
    while run < stop and f.held_child[run] == node:
        start, end = f.held_starts[run], f.held_starts[run + 1]
        more = sum_between(f.held_others, f.held_weights, f.held_rest, start, end, marked, 0, 0, 0.0)
        if more > 0.0:
            x, level = add(x, level, more, f.held_level[run])
        run += 1
    return x, level


@compiled
def _draw_with(uniform, node, parent, marked, x, level, f):
    """A set of the node that holds `parent` and no marked member, in proportion to its weight; (x, level) from `_sum_with`."""
    sought, last = uniform * x, np.int64(-1)
    run, stop = _first_run(node, parent, f), f.held_offsets[parent + 1]
    while run < stop and f.held_child[run] == node and f.held_level[run] <= level + 1:
        for k in range(f.held_starts[run], f.held_starts[run + 1]):
            if sought >= 0.0 and highest(f.held_others, k, marked) == 0:
                last = f.held_family[k]
                sought -= f.held_weights[k] if f.held_level[run] == level else f.held_weights[k] * DEEPER
        run += 1
    return last


@compiled
def _size(k, f, n):
    size = 0
    for t in range(f.sets.shape[0]):
        size += f.sets[t, k] < n
    return size


@compiled
def reverse(rng, one, f):
    """Turn a random arc i -> j round: i takes new parents with j among them, then j any that fit; accepted or not.

    With neither's parents in the DAG, i reaches one set of nodes and j another. New parents of i avoid the first; those of j, and
    on the way back those of i, avoid both, since an arc then leads from one to the other.
    """
    n, chosen = one.order.size, one.chosen
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
    below_i, below_j, either = one.marked[0], one.marked[1], one.marked[2]
    descendants(i, one, f, below_i)
    descendants(j, one, f, below_j)
    for w in range(n):
        either[w] = max(below_i[w], below_j[w])
    chosen[i], chosen[j] = old_i, old_j
    with_j, with_j_level = _sum_with(i, j, below_i, f)
    if with_j_level == NOTHING:
        return False
    back_j, back_j_level = _sum_with(j, i, below_j, f)
    n_left = n_arcs - _size(old_i, f, n) - _size(old_j, f, n)
    gain = log_of(with_j, with_j_level, 0.0) - log_of(back_j, back_j_level, 0.0) - np.log(third)
    most = gain + np.log(n_arcs / (n_left + 1)) - log_of(f.weights[old_i], f.levels[old_i], 0.0)
    if most + np.log(f.rest[f.offsets[j]] * (1.0 + 1e-9)) <= 0.0:  # whatever the two sums below are
        return False
    any_j, any_j_level = fresh(j, either, 0, 0, f)
    if any_j_level == NOTHING:
        return False
    back_i, back_i_level = fresh(i, either, 0, 0, f)
    gain += log_of(any_j, any_j_level, 0.0) - log_of(back_i, back_i_level, 0.0)
    new_i = _draw_with(first, i, j, below_i, with_j, with_j_level, f)
    new_j = draw_set(second, j, either, 0, 0, any_j, any_j_level, f)
    if gain + np.log(n_arcs / (n_left + _size(new_i, f, n) + _size(new_j, f, n))) <= 0.0:
        return False
    chosen[i], chosen[j] = new_i, new_j
    for w in range(n):  # first what neither reaches, then what j alone does
        either[w] += below_i[w]
    sort_nodes(one, either, 3)
    return True


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
def read_child(child, number, reach_only, f, column):
    """(x, level, largest weight of a set) of a child's sum, in one pass; column[p] gets the weights of its sets that hold p."""
    high = number[child] - 1
    low = high if reach_only else np.int32(-1)
    x, level, top = 0.0, NOTHING, 0.0
    for k in range(f.offsets[child], f.offsets[child + 1]):
        if f.levels[k] > level + 1:
            break
        if low <= highest(f.sets, k, number) <= high:
            if level == NOTHING:
                level = f.levels[k]
            weight = f.weights[k] if f.levels[k] == level else f.weights[k] * DEEPER
            x += weight
            top = max(top, weight)
            for t in range(f.sets.shape[0]):
                column[f.sets[t, k]] += weight
    return x, level, top


@compiled
def add_edges(number, reach_only, f, column, sums, squares):
    """Add P(parent -> child | state) and its square; returns the log score of the best DAG within the state.

    number : (n + 1,) positions, of which parents have lower ones; with `reach_only`, layers, of which the highest parent has the
    one before the child's        column : (n + 1,) zeros
    """
    n, total = number.size - 1, 0.0
    for child in range(n):
        x, level, top = read_child(child, number, reach_only, f, column)
        total += log_of(top, level, f.tops[child])
        for parent in range(n):
            if column[parent] > 0.0:
                share = column[parent] / x
                sums[parent, child] += share
                squares[parent, child] += share * share
                column[parent] = 0.0
        column[n] = 0.0
    return total


@compiled
def run_layers(rng, states, ladder, f, n_sweeps, states_out, scores_out, edge_sums, edge_squares, best):
    """Walk `n_sweeps` sweeps; arguments and result as in `_relocation_kernels.run_orders`. States are layer numbers, (1, n): arcs
    are turned round instead of replicas exchanged."""
    n = states.shape[1]
    layers, logs = np.full(n + 1, np.int32(-1)), np.empty(n)
    layers[:n] = states[0]
    start_logs(layers, f, logs)
    sums, others = np.zeros((6, n + 3)), np.zeros((4, n + 1))
    one = new_dag(n)
    sequence, column = np.arange(n), np.zeros(n + 1)
    edges, readings, squares = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    found, moved = -1, max(-(-n // MOVED), min(n, FEWEST))
    for sweep in range(n_sweeps):
        for p in range(n - 1, 0, -1):
            q = int(rng.random() * (p + 1))
            sequence[p], sequence[q] = sequence[q], sequence[p]
        for v in sequence[:moved]:
            relocate(v, rng.random(), layers, logs, f, sums, others)
        draw_dag(rng, layers, f, one)
        for _ in range(ROUNDS):
            for _ in range(n):
                reverse(rng, one, f)
            for v in sequence:
                renew_parents(v, rng.random(), one, f, edges)
        layers_of(one, f, layers)
        start_logs(layers, f, logs)
        states_out[sweep] = layers[:n]
        scores_out[sweep] = logs.sum()
        score = add_edges(layers, True, f, column, readings, squares)
        if score > best[0]:
            best[0] = score
            found = sweep
        for p in range(n):
            for c in range(n):
                mean = (edges[c, p] + readings[p, c]) / (ROUNDS + 1)
                edge_sums[p, c] += mean
                edge_squares[p, c] += mean * mean
                edges[c, p], readings[p, c] = 0.0, 0.0
    states[0] = layers[:n]
    return found
