"""Compiled Gibbs sampler over orders: take one node out and put it back in any place, with exactly the right probabilities.

Sums over parent sets are pairs (x, level), see `_pair_kernels`.

For a node v, its own sum at every place comes from its sets bucketed by the place of their last member. Every other node w has
A (v behind w) and B = A + H (v before w), H being summed over the sets of w that hold v. The one of the two that is not at hand is
made from the other and H; a difference below KEEP of what the sum has been since it was last taken afresh is taken afresh, but
only if the place that is drawn depends on it: until then a bound stands for it.
Several replicas at different temperatures (the order's probability to the power beta) exchange their places on the ladder.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.chains._pair_kernels import (
    DEEPER,
    NOTHING,
    TINY,
    add,
    ceiling,
    fresh,
    highest,
    log_of,
    ratio,
    sum_between,
)

KEEP = 1e-4
NEGLIGIBLE = -40.0  # log of a probability that is nothing
UNSEEN = 1e-9  # of an arc's probability, not added
UNLIKELY = 1e-6  # of a place, where only arcs are expected over it
FAR = 1e6  # a log ratio that no other outweighs
ROUNDING = 1e-9  # more than REFRESH updates can add up to
REFRESH = 1000  # updates of a sum before it is taken afresh: rounding stays below 1e-13 / KEEP
EXCHANGES = 8  # tries per sweep and pair of neighbours, every other one, where nodes are few
# Flatter laws are walked faster: replicas at other temperatures make one move in so many. Variance times CPU time of child's arcs:
# .00018 with all moves, .00013 with half of them, .00007 with a quarter.
FLAT = 4
MOST_EXCHANGES = 24  # where they are many: one for four nodes


@compiled
def to_the_end(weights, ends):
    """rest[k] = sum of the weights from k to the end of its stretch; ends : (n,) that end."""
    rest = np.empty(weights.size)
    later = 0.0
    for k in range(weights.size - 1, -1, -1):
        later = weights[k] + (later if k + 1 < ends[k] else 0.0)
        rest[k] = later
    return rest


class Replica(NamedTuple):
    """One order with the sums of all nodes."""

    order: np.ndarray
    position: np.ndarray  # (n + 1,) int32; the last place, -1, takes the padding of sets
    x: np.ndarray
    level: np.ndarray
    logs: np.ndarray
    peak: np.ndarray  # largest x since the last fresh sum
    updates: np.ndarray


class RelocationWork(NamedTuple):
    """Scratch of `relocate`: the moved node's own sums by place, and the other nodes' sums if v changes sides."""

    own_x: np.ndarray
    own_level: np.ndarray
    own_log: np.ndarray
    other_x: np.ndarray
    other_level: np.ndarray
    other_log: np.ndarray
    renewed: np.ndarray
    waits: np.ndarray  # by place: the gain there is a lower bound only
    share: np.ndarray  # of a node's sets, v before it, those that hold v
    gain: np.ndarray  # log B - log A of the node at a place
    mass: np.ndarray
    places: np.ndarray  # probabilities


@compiled
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


@compiled
def arcs_within(one, weight, f, edges):
    """Add `weight` times P(parent -> child | order) to edges[parent, child]."""
    n = one.order.size
    for v in range(n):
        k, stop = f.held_offsets[v], f.held_offsets[v + 1]
        while k < stop:
            w = f.held_child[k]
            x, level, high = one.x[w], one.level[w], one.position[w] - 1
            if one.position[v] <= high and f.held_level[k] <= level + 1:
                held = sum_between(
                    f.held_others,
                    f.held_weights,
                    f.held_rest,
                    f.held_starts[k],
                    f.held_starts[k + 1],
                    one.position,
                    -1,
                    high,
                    0.0,
                )
                edges[v, w] += weight * ratio(held, f.held_level[k], x, level)
            k += 1


@compiled
def new_work(n):
    """Scratch for orders of n nodes."""
    return RelocationWork(
        np.empty(n), np.empty(n, np.int32), np.empty(n), np.empty(n), np.empty(n, np.int32), np.empty(n),
        np.empty(n, np.bool_), np.empty(n, np.bool_), np.empty(n), np.empty(n), np.empty(n), np.empty(n),
    )  # fmt: skip


@compiled
def relocate(v, uniform, beta, one, f, work, edges):
    """Move node v of a replica to a place drawn from all n: exactly P(order)^beta given the order of the others.

    edges : (n, n), to which what `_expect_arcs` says is added, or empty
    """
    n = one.order.size
    old = one.position[v]
    for p in range(old, n - 1):  # the order without v
        one.order[p] = one.order[p + 1]
        one.position[one.order[p]] = p
    one.position[v] = n
    _own_places(v, one.position, f, work)
    _other_sides(v, old, one, f, work)
    after = 0.0
    for q in range(n - 1, -1, -1):
        if q < n - 1:
            after += work.gain[q]
        work.places[q] = work.own_log[q] + after
    _renew(uniform, beta, edges.size > 0, one, f, work)
    top, total = -np.inf, 0.0
    for q in range(n):
        top = max(top, work.places[q])
    for q in range(n):
        far = beta * (work.places[q] - top)
        work.places[q] = np.exp(far) if far > NEGLIGIBLE else 0.0
        total += work.places[q]
    sought, place = uniform * total, 0
    run = work.places[0]
    while place < n - 1 and run <= sought:
        place += 1
        run += work.places[place]
    while work.places[place] == 0.0:  # rounding led past the last place that is possible
        place -= 1
    if edges.size:
        for q in range(n):
            work.places[q] /= total
        _expect_arcs(v, one.position, f, work, edges)
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


@compiled
def _own_places(v, position, f, work):
    """The sum of v at every place of the order without it: sets by the place of their last member, then running sums."""
    n = position.size - 1
    sets, weights, levels = f.sets, f.weights, f.levels
    own_x, own_level, own_log, gain = work.own_x, work.own_level, work.own_log, work.gain
    for q in range(n):
        own_level[q] = NOTHING
        own_x[q] = 0.0
    start, stop = f.offsets[v], f.offsets[v + 1]
    while start < stop:
        level, end = levels[start], f.ends[start]
        for q in range(n):
            gain[q] = 0.0
        for k in range(start, end):
            behind = max(position[sets[0, k]], position[sets[1, k]], position[sets[2, k]])
            for t in range(3, sets.shape[0]):
                behind = max(behind, position[sets[t, k]])
            gain[behind + 1] += weights[k]
        for q in range(n):
            if gain[q] > 0.0:
                own_x[q], own_level[q] = add(own_x[q], own_level[q], gain[q], level)
        start = end
    top = f.tops[v]
    own_log[0] = log_of(own_x[0], own_level[0], top)
    for q in range(1, n):
        if own_level[q] == NOTHING:
            own_x[q], own_level[q], own_log[q] = own_x[q - 1], own_level[q - 1], own_log[q - 1]
        else:
            own_x[q], own_level[q] = add(own_x[q], own_level[q], own_x[q - 1], own_level[q - 1])
            own_log[q] = log_of(own_x[q], own_level[q], top)


@compiled
def _other_sides(v, old, one, f, work):
    """The other nodes' sums with v on their other side, and log B - log A by place."""
    n = one.order.size
    position, offsets, children = one.position, f.held_offsets, f.held_child
    levels, starts = f.held_level, f.held_starts
    others, weights, rest, tops = f.held_others, f.held_weights, f.held_rest, f.tops
    xs, x_levels, logs, peak, updates = one.x, one.level, one.logs, one.peak, one.updates
    other_x, other_level, other_log, renewed = work.other_x, work.other_level, work.other_log, work.renewed
    gain, share, waits = work.gain, work.share, work.waits
    for p in range(n):
        gain[p] = 0.0
        waits[p] = False
    k, stop = offsets[v], offsets[v + 1]
    while k < stop:
        w = children[k]
        here = position[w]
        x, level, log = xs[w], x_levels[w], logs[w]
        held, held_level = 0.0, NOTHING
        while k < stop and children[k] == w:
            if levels[k] <= level + 1:  # else nothing next to what w has
                cut = TINY * x if levels[k] == level else TINY * x / DEEPER if levels[k] > level else 0.0
                begin, end = starts[k], starts[k + 1]
                if rest[begin] > cut:
                    more = sum_between(others, weights, rest, begin, end, position, -1, here - 1, cut)
                    if more > 0.0:
                        held, held_level = add(held, held_level, more, levels[k])
            k += 1
        renewed[w] = False
        share[w] = 0.0
        if held_level == NOTHING:
            other_x[w], other_level[w], other_log[w] = x, level, log
        elif here < old:  # v stood behind w: A is at hand
            x, level = add(x, level, held, held_level)
            other_x[w], other_level[w], other_log[w] = x, level, log_of(x, level, tops[w])
            gain[here] = other_log[w] - log
            share[w] = ratio(held, held_level, x, level)
        else:
            share[w] = ratio(held, held_level, x, level)
            if held_level <= level + 1:
                x -= held if held_level == level else held * DEEPER
            if x < KEEP * peak[w] or updates[w] >= REFRESH:
                bound = log_of(max(x, 0.0) + ROUNDING * peak[w], level, tops[w])
                bound = min(bound, max(ceiling(w, position, here - 1, f), log - FAR))
                gain[here] = max(log - bound, 0.0)
                waits[here] = True
            else:
                other_x[w], other_level[w], other_log[w] = x, level, log_of(x, level, tops[w])
                gain[here] = log - other_log[w]


@compiled
def _renew(uniform, beta, sure, one, f, work):
    """Take afresh the sums that wait for it, but only where the place that `uniform` draws depends on them, or, if `sure`, where v
    comes to stand behind their nodes with a probability above UNLIKELY; no place is left beyond the first that is not.

    Up to the first place that waits, places compare; those behind it are at most what they seem to be.
    """
    n, places, mass = one.order.size, work.places, work.mass
    for p in range(n - 1):
        if not work.waits[p]:
            continue
        top, beyond, near, far, run = -np.inf, -np.inf, 0.0, 0.0, 0.0
        for q in range(p + 1):
            top = max(top, places[q])
        for q in range(p + 1, n):
            beyond = max(beyond, places[q])
        if beta * (beyond - top) < NEGLIGIBLE:  # none of the far places is drawn
            for q in range(p + 1, n):
                places[q] = -np.inf
            return
        top = max(top, beyond)
        for q in range(n):
            mass[q] = np.exp(beta * (places[q] - top))
            if q <= p:
                near += mass[q]
            else:
                far += mass[q]
        place = 0
        while place <= p and run <= uniform * near:
            run += mass[place]
            place += 1
        w = one.order[p]
        if run <= uniform * (near + far) or (sure and far > UNLIKELY * near):
            work.renewed[w] = True
            x, level = fresh(w, one.position, -1, p - 1, f)
            work.other_x[w], work.other_level[w], work.other_log[w] = x, level, log_of(x, level, f.tops[w])
            if level < NOTHING:
                more = one.logs[w] - work.other_log[w] - work.gain[p]
                for q in range(p + 1):
                    places[q] += more
                continue
        for q in range(p + 1, n):  # v is a required parent of w, or will not be drawn behind it
            places[q] = -np.inf
        return


@compiled
def _expect_arcs(v, position, f, work, edges):
    """Add half of the expected arcs into and out of v, over all its places, the others' order held: two such halves a sweep, one
    from either end, estimate every arc with less noise than the order alone.

    position : (n + 1,) of the order without v
    """
    n = position.size - 1
    sets, weights, levels = f.sets, f.weights, f.levels
    places, gain = work.places, work.gain
    start, stop = f.offsets[v], f.offsets[v + 1]
    while start < stop:
        level, later = levels[start], 0.0
        for q in range(n - 1, -1, -1):  # gain[q] : the places from q on, their probabilities over v's sums there
            if places[q] > 0.0:
                later += places[q] * ratio(0.5, level, work.own_x[q], work.own_level[q])
            gain[q] = later
        end = f.ends[start]
        for k in range(start, end):
            if f.rest[k] * gain[0] < UNSEEN:
                break
            behind = max(position[sets[0, k]], position[sets[1, k]], position[sets[2, k]])
            for t in range(3, sets.shape[0]):
                behind = max(behind, position[sets[t, k]])
            held = weights[k] * gain[behind + 1]
            for t in range(sets.shape[0]):
                if sets[t, k] < n:
                    edges[v, sets[t, k]] += held
        start = end
    before = 0.0
    for q in range(n):
        before += 0.5 * places[q]
        gain[q] = before
    w = np.int64(-1)
    for k in range(f.held_offsets[v], f.held_offsets[v + 1]):
        if f.held_child[k] != w:
            w = f.held_child[k]
            edges[w, v] += work.share[w] * gain[position[w]]


@compiled
def run_orders(rng, orders, ladder, f, n_sweeps, orders_out, scores_out, edge_sums, edge_squares, best):
    """Walk `n_sweeps` sweeps of all replicas, sums recomputed from scratch at the start.

    orders : (n_temperatures, n) orders by replica, changed in place        ladder : `Ladder`
    orders_out, scores_out : (n_sweeps, n), (n_sweeps,) the order at beta 1 after every sweep and its log score
    edge_sums, edge_squares : (n, n) the order's arc posteriors and their squares are added to them
    best : (1,) log score of the best DAG within an order, changed in place; returns the sweep that has it, or -1
    """
    n_temperatures, n = orders.shape
    at, betas, tried, taken = ladder
    replicas = [new_replica(orders[k], f) for k in range(n_temperatures)]
    work = new_work(n)
    sequence = np.arange(n)
    edges, none = np.zeros((n, n)), np.zeros((0, 0))
    found = -1
    turn = 0
    parts = max(EXCHANGES, min(n // 4, MOST_EXCHANGES)) if n_temperatures > 1 else 1
    for sweep in range(n_sweeps):
        for p in range(n - 1, 0, -1):
            q = int(rng.random() * (p + 1))
            sequence[p], sequence[q] = sequence[q], sequence[p]
        for part in range(parts):
            for temperature in range(n_temperatures):
                one, arcs = replicas[at[temperature]], edges if temperature == 0 else none
                for p in range(part * n // parts, (part + 1) * n // parts):
                    if temperature == 0 or (p + sweep + temperature) % FLAT == 0:
                        relocate(sequence[p], rng.random(), betas[temperature], one, f, work, arcs)
            turn += 1
            for t in range(turn % 2, n_temperatures - 1, 2):
                cold, warm = replicas[at[t]].logs.sum(), replicas[at[t + 1]].logs.sum()
                tried[t] += 1
                chance = np.exp(min((betas[t] - betas[t + 1]) * (warm - cold), 0.0))
                taken[t] += chance  # what is expected: less noise than what is drawn
                if rng.random() < chance:
                    at[t], at[t + 1] = at[t + 1], at[t]
        one = replicas[at[0]]
        orders_out[sweep] = one.order
        scores_out[sweep] = one.logs.sum()
        for p in range(n):
            for c in range(n):
                edge_sums[p, c] += edges[c, p]
                edge_squares[p, c] += edges[c, p] * edges[c, p]
                edges[c, p] = 0.0
        score = best_dag(one.position, f)
        if score > best[0]:
            best[0] = score
            found = sweep
    return found


@compiled
def best_dag(position, f):
    """Log score of the best DAG within an order: a child's sets of one level are by falling weight."""
    n, total = position.size - 1, 0.0
    for child in range(n):
        for k in range(f.offsets[child], f.offsets[child + 1]):
            if highest(f.sets, k, position) < position[child]:
                total += log_of(f.weights[k], f.levels[k], f.tops[child])
                break
    return total
