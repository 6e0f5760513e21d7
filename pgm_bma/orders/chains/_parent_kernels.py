"""Compiled moves of one DAG: new parents for a node, and arcs turned round.

A DAG is a family for every node and an order in which parents stand before children, by which one pass finds all descendants.
New parents are drawn from all sets without descendants (a Gibbs step); whatever hangs below the node moves with it, which layers
cannot do: a node there that leaves its layer strands the children that it held up. An arc is turned round with new parents for
both of its ends (Grzegorczyk and Husmeier 2008).
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.chains._relocation_kernels import DEEPER, NOTHING, UNSEEN, add, fresh, log_of, sum_between


class Dag(NamedTuple):
    """One DAG, with scratch."""

    chosen: np.ndarray  # (n,) family of every node, -1: no parents for the moment
    order: np.ndarray  # (n,) parents before children
    place: np.ndarray  # (n,) in that order
    marked: np.ndarray  # (3, n + 1) int32 scratch; the last takes the padding of sets
    spare: np.ndarray  # (n,) scratch


@compiled
def new_dag(n):
    """Room for a DAG of n nodes."""
    return Dag(
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros((3, n + 1), np.int32),
        np.zeros(n, np.int64),
    )


@compiled
def highest(sets, k, numbers):
    """Highest number among the members of a set."""
    top = numbers[sets[0, k]]
    for t in range(1, sets.shape[0]):
        top = max(top, numbers[sets[t, k]])
    return top


@compiled
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
    sought, last = uniform, np.int64(-1)
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
