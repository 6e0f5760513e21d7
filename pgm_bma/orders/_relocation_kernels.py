"""Compiled Gibbs sampler over orders: take one node out and put it back in any place, with exactly the right probabilities.

A sum over parent sets is a pair (x, level) that stands for x exp(-STEP level), relative to the node's best set: no exponential is
taken inside, and nothing underflows, however far apart scores lie. A set's x lies in (exp(-STEP), 1], so of two sums whose levels
differ by two or more, the deeper one is nothing.

For a node v, its own sum at every place comes from its sets bucketed by the place of their last member. Every other node w has
A (v behind w) and B = A + H (v before w), H being summed over the sets of w that hold v. The one of the two that is not at hand is
made from the other and H; a difference below KEEP of what the sum has been since it was last taken afresh is taken afresh.
Several replicas at different temperatures (the order's probability to the power beta) exchange their places on the ladder.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.compiling import compiled

STEP = 400.0
DEEPER = np.exp(-STEP)
NOTHING = np.int32(1 << 30)  # level of an empty sum
KEEP = 1e-4
REFRESH = 1000  # updates of a sum before it is taken afresh: rounding stays below 1e-13 / KEEP
_REASSOCIATE = {"reassoc", "contract"}  # several partial sums at once; infinities stay legal
EXCHANGES = 8  # tries per sweep and pair of neighbours, every other one


class Lists(NamedTuple):
    """Family lists as the kernels want them."""

    tops: np.ndarray  # (n,) best log score of every child
    offsets: np.ndarray  # (n + 1,) first family of every child
    sets: (
        np.ndarray
    )  # (max_indegree or more, n_families) int32 members, padded with n; a child's families by rising level
    weights: np.ndarray  # (n_families,) exp(score - top + STEP level)
    levels: np.ndarray  # (n_families,) int32
    held_offsets: np.ndarray  # (n + 1,) first run of every member: families of one child and level that hold the member
    held_child: np.ndarray  # (n_runs,) child of a run, ascending for one member
    held_level: np.ndarray  # (n_runs,) int32
    held_starts: np.ndarray  # (n_runs + 1,) first entry of a run
    held_others: (
        np.ndarray
    )  # (max_indegree - 1 or more, n_entries) the other members of the families in a run, padded with n
    held_weights: np.ndarray  # (n_entries,)
    held_family: np.ndarray  # (n_entries,)


@compiled(nogil=True, inline="always")
def add(x, level, more, more_level):
    """The sum of two pairs."""
    if more_level == level:
        return x + more, level
    if more_level > level:
        return (x + more * DEEPER, level) if more_level == level + 1 else (x, level)
    return (more + x * DEEPER, more_level) if level == more_level + 1 else (more, more_level)


@compiled(nogil=True, inline="always")
def log_of(x, level, top):
    """Log of a pair."""
    return top - STEP * level + np.log(x) if level < NOTHING else -np.inf


@compiled(nogil=True, fastmath=_REASSOCIATE)
def sum_between(sets, weights, start, stop, number, low, high):
    """Sum of the weights of the sets in a stretch whose highest member's number lies in low .. high; no branch inside.

    number : (n + 1,) int32, the last for the padding of sets
    """
    total = 0.0
    if sets.shape[0] == 2:
        first, second = sets[0], sets[1]
        for k in range(start, stop):
            top = max(number[first[k]], number[second[k]])
            total += weights[k] if (top >= low) & (top <= high) else 0.0
    elif sets.shape[0] == 3:
        first, second, third = sets[0], sets[1], sets[2]
        for k in range(start, stop):
            top = max(max(number[first[k]], number[second[k]]), number[third[k]])
            total += weights[k] if (top >= low) & (top <= high) else 0.0
    else:
        for k in range(start, stop):
            top = number[sets[0, k]]
            for t in range(1, sets.shape[0]):
                top = max(top, number[sets[t, k]])
            total += weights[k] if (top >= low) & (top <= high) else 0.0
    return total


@compiled(nogil=True)
def fresh(node, number, low, high, f):
    """The sum of a node over its sets whose highest member's number lies in low .. high."""
    x, level = 0.0, NOTHING
    start, stop = f.offsets[node], f.offsets[node + 1]
    while start < stop and f.levels[start] <= level + 1:
        end = start + 1
        while end < stop and f.levels[end] == f.levels[start]:
            end += 1
        held = sum_between(f.sets, f.weights, start, end, number, low, high)
        if held > 0.0:
            x, level = add(x, level, held, f.levels[start])
        start = end
    return x, level


class Replica(NamedTuple):
    """One order with the sums of all nodes."""

    order: np.ndarray
    position: np.ndarray  # (n + 1,) int32; the last place, -1, takes the padding of sets
    x: np.ndarray
    level: np.ndarray
    logs: np.ndarray
    peak: np.ndarray  # largest x since the last fresh sum
    updates: np.ndarray


class Work(NamedTuple):
    """Scratch of `relocate`: the moved node's own sums by place, and the other nodes' sums if v changes sides."""

    own_x: np.ndarray
    own_level: np.ndarray
    own_log: np.ndarray
    other_x: np.ndarray
    other_level: np.ndarray
    other_log: np.ndarray
    renewed: np.ndarray
    gain: np.ndarray
    places: np.ndarray


@compiled(nogil=True)
def new_replica(order, f):
    """The sums of an order (which the replica changes in place), afresh."""
    n = order.size
    one = Replica(
        order,
        np.empty(n + 1, np.int32),
        np.empty(n),
        np.empty(n, np.int32),
        np.empty(n),
        np.empty(n),
        np.zeros(n, np.int64),
    )
    for p in range(n):
        one.position[order[p]] = p
    one.position[n] = -1
    for node in range(n):
        one.x[node], one.level[node] = fresh(node, one.position, -1, one.position[node] - 1, f)
        one.logs[node] = log_of(one.x[node], one.level[node], f.tops[node])
        one.peak[node] = one.x[node]
    return one


@compiled(nogil=True)
def new_work(n):
    """Scratch for orders of n nodes."""
    return Work(
        np.empty(n), np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n, np.int32), np.empty(n),
        np.empty(n, np.bool_), np.empty(n), np.empty(n),
    )  # fmt: skip


@compiled(nogil=True)
def relocate(v, uniform, beta, one, f, work):
    """Move node v of a replica to a place drawn from all n: exactly P(order)^beta given the order of the others."""
    n = one.order.size
    old = one.position[v]
    for p in range(old, n - 1):  # the order without v
        one.order[p] = one.order[p + 1]
        one.position[one.order[p]] = p
    one.position[v] = n
    _own_places(v, one.position, f, work)
    last = _other_sides(v, old, one, f, work)
    after, top = 0.0, -np.inf
    for q in range(n - 1, -1, -1):
        if q < n - 1:
            after += work.gain[q]
        work.places[q] = work.own_log[q] + after if q <= last else -np.inf
        top = max(top, work.places[q])
    total = 0.0
    for q in range(n):
        if work.places[q] > -np.inf:
            total += np.exp(beta * (work.places[q] - top))
        work.places[q] = total
    sought, place = uniform * total, 0
    while place < n - 1 and work.places[place] <= sought:
        place += 1
    for p in range(n - 1, place, -1):
        one.order[p] = one.order[p - 1]
        one.position[one.order[p]] = p
    one.order[place] = v
    one.position[v] = place
    one.x[v], one.level[v], one.logs[v] = work.own_x[place], work.own_level[place], work.own_log[place]
    one.peak[v], one.updates[v] = one.x[v], 0
    w = np.int64(-1)
    for k in range(f.held_offsets[v], f.held_offsets[v + 1]):
        if f.held_child[k] == w:
            continue
        w = f.held_child[k]
        stands = one.position[w]
        if (stands > place) != (stands - (stands > place) >= old):  # v changed sides
            one.updates[w] = 0 if work.renewed[w] else one.updates[w] + 1
            if work.renewed[w] or work.other_level[w] != one.level[w] or work.other_x[w] > one.peak[w]:
                one.peak[w] = work.other_x[w]
            one.x[w], one.level[w], one.logs[w] = work.other_x[w], work.other_level[w], work.other_log[w]


@compiled(nogil=True)
def _own_places(v, position, f, work):
    """The sum of v at every place of the order without it: sets by the place of their last member, then running sums."""
    n = position.size - 1
    for q in range(n):
        work.own_level[q] = NOTHING
        work.own_x[q] = 0.0
    start, stop = f.offsets[v], f.offsets[v + 1]
    while start < stop:
        level, end = f.levels[start], start
        for q in range(n):
            work.gain[q] = 0.0
        while end < stop and f.levels[end] == level:
            behind = position[f.sets[0, end]]
            for t in range(1, f.sets.shape[0]):
                behind = max(behind, position[f.sets[t, end]])
            if behind < n - 1:  # a place before the last: n stands for v itself
                work.gain[behind + 1] += f.weights[end]
            end += 1
        for q in range(n):
            if work.gain[q] > 0.0:
                work.own_x[q], work.own_level[q] = add(work.own_x[q], work.own_level[q], work.gain[q], level)
        start = end
    work.own_log[0] = log_of(work.own_x[0], work.own_level[0], f.tops[v])
    for q in range(1, n):
        if work.own_level[q] == NOTHING:
            work.own_x[q], work.own_level[q] = work.own_x[q - 1], work.own_level[q - 1]
            work.own_log[q] = work.own_log[q - 1]
        else:
            x, level = add(work.own_x[q], work.own_level[q], work.own_x[q - 1], work.own_level[q - 1])
            work.own_x[q], work.own_level[q] = x, level
            work.own_log[q] = log_of(x, level, f.tops[v])


@compiled(nogil=True)
def _other_sides(v, old, one, f, work):
    """The other nodes' sums with v on their other side, and log B - log A by place; returns the last place that is possible."""
    n = one.order.size
    for p in range(n):
        work.gain[p] = 0.0
    last = n - 1  # a required parent must stay before its child
    k, stop = f.held_offsets[v], f.held_offsets[v + 1]
    while k < stop:
        w = f.held_child[k]
        here = one.position[w]
        held, held_level = 0.0, NOTHING
        while k < stop and f.held_child[k] == w:
            entries = f.held_starts[k], f.held_starts[k + 1]
            more = sum_between(f.held_others, f.held_weights, entries[0], entries[1], one.position, -1, here - 1)
            if more > 0.0:
                held, held_level = add(held, held_level, more, f.held_level[k])
            k += 1
        x, level, log = one.x[w], one.level[w], one.logs[w]
        work.renewed[w] = False
        if held_level == NOTHING:
            work.other_x[w], work.other_level[w], work.other_log[w] = x, level, log
        elif here < old:  # v stood behind w: A is at hand
            x, level = add(x, level, held, held_level)
            work.other_x[w], work.other_level[w], work.other_log[w] = x, level, log_of(x, level, f.tops[w])
            work.gain[here] = work.other_log[w] - log
        else:
            if held_level <= level + 1:
                x -= held if held_level == level else held * DEEPER
            if x < KEEP * one.peak[w] or one.updates[w] >= REFRESH:
                x, level = fresh(w, one.position, -1, here - 1, f)
                work.renewed[w] = True
            work.other_x[w], work.other_level[w], work.other_log[w] = x, level, log_of(x, level, f.tops[w])
            if level == NOTHING:
                last = min(last, here)
            else:
                work.gain[here] = log - work.other_log[w]
    return last


@compiled(nogil=True)
def run_orders(
    rng, orders, at, betas, f, n_sweeps, tried, taken, orders_out, scores_out, edge_sums, edge_squares, best
):
    """Walk `n_sweeps` sweeps of all replicas, sums recomputed from scratch at the start.

    orders : (n_temperatures, n) orders by replica, changed in place    at : (n_temperatures,) replica at every temperature
    betas : (n_temperatures,) falling from 1    tried, taken : (n_temperatures - 1,) exchanges, added to
    orders_out, scores_out : (n_sweeps, n), (n_sweeps,) the order at beta 1 after every sweep and its log score
    edge_sums, edge_squares : (n, n) the order's arc posteriors and their squares are added to them
    best : (1,) log score of the best DAG within an order, changed in place; returns the sweep that has it, or -1
    """
    n_temperatures, n = orders.shape
    replicas = [new_replica(orders[k], f) for k in range(n_temperatures)]
    work = new_work(n)
    sequence = np.arange(n)
    column = np.zeros(n + 1)
    found = -1
    turn = 0
    for sweep in range(n_sweeps):
        for p in range(n - 1, 0, -1):
            q = int(rng.random() * (p + 1))
            sequence[p], sequence[q] = sequence[q], sequence[p]
        for part in range(EXCHANGES if n_temperatures > 1 else 1):
            parts = EXCHANGES if n_temperatures > 1 else 1
            for temperature in range(n_temperatures):
                first, stop = part * n // parts, (part + 1) * n // parts
                if temperature > 0:  # flatter laws are walked faster: half the moves
                    first += (stop - first) // 2
                for p in range(first, stop):
                    relocate(sequence[p], rng.random(), betas[temperature], replicas[at[temperature]], f, work)
            turn += 1
            for t in range(turn % 2, n_temperatures - 1, 2):
                cold, warm = replicas[at[t]].logs.sum(), replicas[at[t + 1]].logs.sum()
                tried[t] += 1
                if np.log(rng.random()) < (betas[t] - betas[t + 1]) * (warm - cold):
                    at[t], at[t + 1] = at[t + 1], at[t]
                    taken[t] += 1
        one = replicas[at[0]]
        orders_out[sweep] = one.order
        scores_out[sweep] = one.logs.sum()
        score = add_edges(one.position, False, f, column, edge_sums, edge_squares)
        if score > best[0]:
            best[0] = score
            found = sweep
    return found


@compiled(nogil=True)
def add_edges(number, reach_only, f, column, sums, squares):
    """Add P(parent -> child | state) and its square; returns the log score of the best DAG within the state.

    number : (n + 1,) positions, of which parents have lower ones; with `reach_only`, layers, of which the highest parent has the
    one before the child's
    """
    n, total = number.size - 1, 0.0
    for child in range(n):
        high = number[child] - 1
        low = high if reach_only else np.int32(-1)
        x, level = fresh(child, number, low, high, f)
        top = 0.0
        for k in range(f.offsets[child], f.offsets[child + 1]):
            if f.levels[k] > level + 1:
                break
            last = number[f.sets[0, k]]
            for t in range(1, f.sets.shape[0]):
                last = max(last, number[f.sets[t, k]])
            if last < low or last > high:
                continue
            share = f.weights[k] / x if f.levels[k] == level else f.weights[k] * DEEPER / x
            top = max(top, share)
            for t in range(f.sets.shape[0]):
                column[f.sets[t, k]] += share
        total += log_of(x, level, f.tops[child]) + np.log(top)
        for parent in range(n):
            if column[parent] > 0.0:
                sums[parent, child] += column[parent]
                squares[parent, child] += column[parent] * column[parent]
                column[parent] = 0.0
        column[n] = 0.0
    return total
