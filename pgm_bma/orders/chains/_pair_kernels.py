"""Compiled sums over the parent sets of a node, in family lists that are sorted by weight.

A sum over parent sets is a pair (x, level) that stands for x exp(-STEP level), relative to the node's best set: no exponential is
taken inside, and nothing underflows, however far apart scores lie. A set's x lies in (exp(-STEP), 1], so of two sums whose levels
differ by two or more, the deeper one is nothing.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled

STEP = 400.0
DEEPER = np.exp(-STEP)
NOTHING = np.int32(1 << 30)  # level of an empty sum
TINY = 1e-13  # a part of a sum that is not looked for: rounding


class WeightedLists(NamedTuple):
    """Family lists as the kernels want them."""

    tops: np.ndarray  # (n,) best log score of every child
    offsets: np.ndarray  # (n + 1,) first family of every child
    # a child's families are by rising level, then by falling weight
    # members are unsigned: places are then looked up twice as fast
    sets: np.ndarray  # (max_indegree, at least 3, n_families) uint16 members, padded with n
    weights: np.ndarray  # (n_families,) exp(score - top + STEP level)
    levels: np.ndarray  # (n_families,) int32
    rest: np.ndarray  # (n_families,) the weights from here to the end of the child's level, added up
    ends: np.ndarray  # (n_families,) that end
    held_offsets: np.ndarray  # (n + 1,) first run of every member: families of one child and level that hold the member
    held_child: np.ndarray  # (n_runs,) child of a run, ascending for one member
    held_level: np.ndarray  # (n_runs,) int32
    held_starts: np.ndarray  # (n_runs + 1,) first entry of a run
    held_others: np.ndarray  # (max_indegree - 1, at least 2, n_entries) uint16 other members of the families in a run
    held_weights: np.ndarray  # (n_entries,) falling in a run
    held_rest: np.ndarray  # (n_entries,) the weights from here to the end of the run, added up
    held_family: np.ndarray  # (n_entries,)


class Ladder(NamedTuple):
    """Replicas of one state at their temperatures; all but `betas` are changed in place."""

    at: np.ndarray  # (n_temperatures,) replica at every temperature
    betas: np.ndarray  # (n_temperatures,) powers of the state's probability, falling from 1
    tried: np.ndarray  # (n_temperatures - 1,) exchanges
    taken: np.ndarray


def alone(beta=1.0):
    """The ladder of a state without replicas."""
    return Ladder(np.zeros(1, dtype=np.int64), np.full(1, beta), np.zeros(0), np.zeros(0))


@compiled
def by_member(sets, children, levels, n):
    """Runs of families of one child and level that hold a member: (family of every entry, its other members, first entry of every
    run, first run of every member (n + 1,)), as `WeightedLists` has them.

    sets : (width, n_families) members, ascending, padded with n    children : ascending
    """
    width, n_families = sets.shape
    ends = np.zeros(n + 1, dtype=np.int64)
    for k in range(n_families):
        for t in range(width):
            if sets[t, k] < n:
                ends[sets[t, k] + 1] += 1
    for member in range(n):
        ends[member + 1] += ends[member]
    family = np.empty(ends[n], dtype=np.int64)
    others = np.empty((width - 1, family.size), dtype=sets.dtype)
    for k in range(n_families):
        for t in range(width):
            member = sets[t, k]
            if member < n:
                entry = ends[member]  # the first of the member that is free; in the end, the first of the next member
                family[entry] = k
                for s in range(width - 1):
                    others[s, entry] = sets[s if s < t else s + 1, k]
                ends[member] += 1
    starts, offsets, n_runs, entry = np.empty(family.size, dtype=np.int64), np.empty(n + 1, dtype=np.int64), 0, 0
    for member in range(n):
        offsets[member], before = n_runs, np.int64(-1)
        while entry < ends[member]:
            k = family[entry]
            if before < 0 or children[k] != children[before] or levels[k] != levels[before]:
                starts[n_runs] = entry
                n_runs += 1
            before = k
            entry += 1
    offsets[n] = n_runs
    return family, others, starts[:n_runs].copy(), offsets


@compiled(inline="always")
def add(x, level, more, more_level):
    """The sum of two pairs."""
    if more_level == level:
        return x + more, level
    if more_level > level:
        return (x + more * DEEPER, level) if more_level == level + 1 else (x, level)
    return (more + x * DEEPER, more_level) if level == more_level + 1 else (more, more_level)


@compiled(inline="always")
def log_of(x, level, top):
    """Log of a pair."""
    return top - STEP * level + np.log(x) if level < NOTHING else -np.inf


@compiled(inline="always")
def ratio(x, level, whole, whole_level):
    """A part of a pair over the pair: its level is not lower."""
    if level == whole_level:
        return x / whole
    return x * DEEPER / whole if level == whole_level + 1 else 0.0


@compiled
def highest(sets, k, numbers):
    """Highest number among the members of a set."""
    top = numbers[sets[0, k]]
    for t in range(1, sets.shape[0]):
        top = max(top, numbers[sets[t, k]])
    return top


@compiled
def sum_between(sets, weights, rest, start, stop, number, low, high, cut):
    """Sum of the weights of the sets in a stretch whose highest member's number lies in low .. high.

    Weights fall; the sum ends where all that is left is below `cut` or a TINY part of what is there.
    number : (n + 1,) int32, the last for the padding of sets
    """
    total = 0.0
    for k in range(start, stop):
        if rest[k] <= cut + TINY * total:
            break
        top = max(number[sets[0, k]], number[sets[1, k]])
        for t in range(2, sets.shape[0]):
            top = max(top, number[sets[t, k]])
        total += weights[k] if (top >= low) & (top <= high) else 0.0
    return total


@compiled
def fresh(node, number, low, high, f):
    """The sum of a node over its sets whose highest member's number lies in low .. high."""
    x, level = 0.0, NOTHING
    start, stop = f.offsets[node], f.offsets[node + 1]
    while start < stop and f.levels[start] <= level + 1:
        end = f.ends[start]
        held = sum_between(f.sets, f.weights, f.rest, start, end, number, low, high, 0.0)
        if held > 0.0:
            x, level = add(x, level, held, f.levels[start])
        start = end
    return x, level


@compiled
def ceiling(node, position, high, f):
    """A bound on the log sum of a node over its sets up to the place `high`: the best of these and all behind it in the list."""
    for k in range(f.offsets[node], f.offsets[node + 1]):
        if highest(f.sets, k, position) <= high:  # deeper levels are nothing next to 1e-9
            return log_of(f.rest[k] * (1.0 + 1e-9), f.levels[k], f.tops[node])
    return -np.inf
