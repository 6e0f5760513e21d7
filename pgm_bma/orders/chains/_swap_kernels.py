"""Compiled chain over node orders: swap two nodes, rescore only what changed (ORD section III-B, eq. 12).

The sum over the parent sets of a node is kept as ``sum of exp(score - best score of the node)``. A node between the two
swapped positions loses the sets that hold one of them and gains those that hold the other; its sum is updated by the
difference. The two swapped nodes are summed afresh. Guards: a sum is taken afresh when it falls below KEEP of its size at the
last fresh sum (cancellation), after REFRESH updates, and in log space below TINY (underflow).

Parent sets of size s are ranked colexicographically, so the sets whose larger members are fixed lie side by side and the
innermost loop stays within one stretch of memory.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled

KEEP = 1e-3
REFRESH = 100
TINY = 1e-280
_REASSOCIATE = {"reassoc", "contract"}  # several partial sums at once; infinities stay legal


class SwapFamilies(NamedTuple):
    """The family table as the kernels want it."""

    weights: np.ndarray  # (n_families,) exp(score - best score of the child)
    log_scores: np.ndarray  # (n_families,)
    tops: np.ndarray  # (n,) best score of every child
    offsets: np.ndarray  # (n + 1,) first family of every child
    sets: np.ndarray  # (n_rows, max_indegree) members as positions among the candidates, padded with -1
    set_offsets: np.ndarray  # (n,) first row of a child in `sets`; children with equally many candidates share rows
    candidates: np.ndarray  # (n, most candidates)
    n_candidates: np.ndarray
    holding: np.ndarray  # weights again, child by child and member by member: the sets that hold the member
    member_offsets: np.ndarray  # (n + 1,) first place of a child in `holding`
    binomials: np.ndarray
    max_indegree: int


@compiled
def split_by_member(f):
    """Fill ``f.holding``: [child, member, rank of the others] = weight of the set."""
    others = np.empty(max(f.max_indegree, 1), dtype=np.int64)
    for child in range(f.n_candidates.size):
        m = f.n_candidates[child]
        width = (f.member_offsets[child + 1] - f.member_offsets[child]) // max(m, 1)
        for k in range(f.offsets[child + 1] - f.offsets[child]):
            members = f.sets[f.set_offsets[child] + k]
            for chosen in range(f.max_indegree):
                if members[chosen] < 0:
                    break
                size = 0
                for other in range(f.max_indegree):
                    if members[other] >= 0 and other != chosen:
                        others[size] = members[other]
                        size += 1
                rank = 0
                for t in range(size):
                    rank += f.binomials[others[t], t + 1] + f.binomials[m, t]
                f.holding[f.member_offsets[child] + members[chosen] * width + rank] = f.weights[f.offsets[child] + k]


@compiled(fastmath=_REASSOCIATE)
def sum_subsets(weights, base, limit, m, before, n_before, binomials):
    """Sum of weights[base + place] over all subsets, of size <= limit, of the positions `before[:n_before]` (ascending)."""
    total = weights[base]
    if limit == 0:
        return total
    singles = base + 1
    for i in range(n_before):
        total += weights[singles + before[i]]
    if limit == 1:
        return total
    pairs = singles + m
    for i in range(1, n_before):
        row = pairs + binomials[before[i], 2]
        for h in range(i):
            total += weights[row + before[h]]
    if limit == 2:
        return total
    start = pairs + binomials[m, 2]
    for j in range(2, n_before):
        column = start + binomials[before[j], 3]
        for i in range(1, j):
            row = column + binomials[before[i], 2]
            for h in range(i):
                total += weights[row + before[h]]
    for size in range(4, limit + 1):
        start += binomials[m, size - 1]
        total += _sum_size(weights, start, size, before, n_before, binomials)
    return total


@compiled(fastmath=_REASSOCIATE)
def sum_differences(weights, plus, minus, limit, m, before, n_before, binomials):
    """(sum from base `plus`, sum from base `minus`) of `sum_subsets` in one walk."""
    if limit > 2 or plus < 0 or minus < 0:
        gained = sum_subsets(weights, plus, limit, m, before, n_before, binomials) if plus >= 0 else 0.0
        lost = sum_subsets(weights, minus, limit, m, before, n_before, binomials) if minus >= 0 else 0.0
        return gained, lost
    gained, lost = weights[plus], weights[minus]
    if limit > 0:
        for i in range(n_before):
            gained += weights[plus + 1 + before[i]]
            lost += weights[minus + 1 + before[i]]
    if limit > 1:
        for i in range(1, n_before):
            row = 1 + m + binomials[before[i], 2]
            for h in range(i):
                gained += weights[plus + row + before[h]]
                lost += weights[minus + row + before[h]]
    return gained, lost


@compiled
def _sum_size(weights, start, size, before, n_before, binomials):
    """The subsets of one size; all members but the smallest are walked, the smallest is the inner loop."""
    total = 0.0
    if n_before < size:
        return total
    chosen = np.arange(1, size)  # places in `before`, ascending
    while True:
        row = start
        for t in range(size - 1):
            row += binomials[before[chosen[t]], t + 2]
        for h in range(chosen[0]):
            total += weights[row + before[h]]
        t = size - 2
        while t >= 0 and chosen[t] == n_before - (size - 1) + t:
            t -= 1
        if t < 0:
            return total
        chosen[t] += 1
        for k in range(t + 1, size - 1):
            chosen[k] = chosen[k - 1] + 1


@compiled
def _log_sum_sets(f, node, allowed):
    """Log of the summed exp(score) over the sets inside `allowed`: the slow exact way, for sums that underflow."""
    top, total = -np.inf, 0.0
    for k in range(f.offsets[node + 1] - f.offsets[node]):
        score = f.log_scores[f.offsets[node] + k]
        inside = score > -np.inf
        for t in range(f.max_indegree):
            a = f.sets[f.set_offsets[node] + k, t]
            if a < 0:
                break
            inside &= allowed[a]
        if inside:
            if score > top:
                total = total * np.exp(top - score) + 1.0
                top = score
            else:
                total += np.exp(score - top)
    return top + np.log(total) if total > 0.0 else -np.inf


@compiled
def fresh_sum(node, position, own_position, f, before, allowed):
    """(linear sum or 0, log sum) of a node over the parent sets among the nodes that stand before `own_position`."""
    m = f.n_candidates[node]
    n_before = 0
    for a in range(m):
        allowed[a] = position[f.candidates[node, a]] < own_position
        if allowed[a]:
            before[n_before] = a
            n_before += 1
    linear = sum_subsets(f.weights, f.offsets[node], f.max_indegree, m, before, n_before, f.binomials)
    if linear >= TINY:
        return linear, f.tops[node] + np.log(linear)
    return 0.0, _log_sum_sets(f, node, allowed)


@compiled
def score_order(order, f, linear, logs):
    """Fill the sums of every node for `order`; returns the log score of the order (the denominator of ORD eq. 9)."""
    n, width = order.size, f.candidates.shape[1]
    before, allowed = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.bool_)
    position = _positions(order)
    total = 0.0
    for node in range(n):
        linear[node], logs[node] = fresh_sum(node, position, position[node], f, before, allowed)
        total += logs[node]
    return total


@compiled
def _positions(order):
    position = np.empty(order.size, dtype=np.int64)
    for p in range(order.size):
        position[order[p]] = p
    return position


@compiled
def run_swaps(rng, order, f, n_steps, first_step, burn_in, thin, kept_orders, kept_scores):
    """Walk `n_steps` swaps from `order` (changed in place), sums recomputed from scratch at the start.

    Step numbers run from `first_step`; steps burn_in + 1 + thin t are kept. A rejected proposal repeats the order.
    returns (accepted, incremental score, best score seen at every 100th step, order of that step)
    """
    n, width = order.size, f.candidates.shape[1]
    before, allowed = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.bool_)
    linear, logs = np.zeros(n), np.zeros(n)
    score_order(order, f, linear, logs)
    peak, updates = linear.copy(), np.zeros(n, dtype=np.int64)
    new_linear, new_logs, fresh = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.bool_)
    ceilings = _ceilings(f)
    position = _positions(order)
    accepted = 0
    best, best_order = logs.sum(), order.copy()
    for step in range(first_step, first_step + n_steps):
        i = int(rng.random() * n)
        j = int(rng.random() * (n - 1))
        j += j >= i
        i, j = min(i, j), max(i, j)
        threshold = np.log(rng.random())
        u, v = order[i], order[j]
        position[u], position[v] = j, i
        # A node still to be rescored cannot end above its sum over all sets: when even that fails, stop early.
        hope = 0.0
        for p in range(i, j):
            hope += ceilings[order[p]] - logs[order[p]]
        change = 0.0
        for t in range(j - i + 1):
            p = j if t == 0 else i + t if t < j - i else i  # v first (it only loses), then from the left, u last
            x = order[p]
            if change + hope < threshold - 1e-6:
                change = -np.inf
                break
            if p < j:
                hope -= ceilings[x] - logs[x]
            fresh[x] = p == i or p == j
            if not fresh[x]:
                value = _updated_sum(x, p, u, v, linear[x], position, f, before)
                fresh[x] = value < KEEP * peak[x] or value < TINY or updates[x] >= REFRESH
                if not fresh[x]:
                    new_linear[x], new_logs[x] = value, f.tops[x] + np.log(value)
            if fresh[x]:
                new_linear[x], new_logs[x] = fresh_sum(x, position, position[x], f, before, allowed)
            change += new_logs[x] - logs[x]
        if threshold < change:  # ORD eq. 12, symmetric proposal
            accepted += 1
            order[i], order[j] = v, u
            for p in range(i, j + 1):
                x = order[p]
                linear[x], logs[x] = new_linear[x], new_logs[x]
                peak[x] = linear[x] if fresh[x] else max(peak[x], linear[x])
                updates[x] = 0 if fresh[x] else updates[x] + 1
        else:
            position[u], position[v] = i, j
        if step > burn_in and (step - burn_in - 1) % thin == 0:
            k = (step - burn_in - 1) // thin
            if k < kept_orders.shape[0]:
                kept_orders[k] = order
                kept_scores[k] = logs.sum()
        if step % 100 == 0 and logs.sum() > best:
            best = logs.sum()
            best_order[:] = order
    return accepted, logs.sum(), best, best_order


@compiled
def _updated_sum(x, p, u, v, value, position, f, before):
    """The sum of node x at position p when u leaves its predecessors and v joins them."""
    m = f.n_candidates[x]
    local_u, local_v, n_before = -1, -1, 0
    for a in range(m):
        other = f.candidates[x, a]
        if other == u:
            local_u = a
        elif other == v:
            local_v = a
        elif position[other] < p:
            before[n_before] = a
            n_before += 1
    if f.max_indegree == 0 or value == 0.0 or (local_u < 0 and local_v < 0):
        return value
    row = (f.member_offsets[x + 1] - f.member_offsets[x]) // m
    plus = f.member_offsets[x] + local_v * row if local_v >= 0 else -1
    minus = f.member_offsets[x] + local_u * row if local_u >= 0 else -1
    gained, lost = sum_differences(f.holding, plus, minus, f.max_indegree - 1, m, before, n_before, f.binomials)
    return value + gained - lost


@compiled
def _ceilings(f):
    """Log sum of every node over all of its sets: what no predecessor set can exceed."""
    ceilings = np.empty(f.tops.size)
    for node in range(f.tops.size):
        ceilings[node] = f.tops[node] + np.log(f.weights[f.offsets[node] : f.offsets[node + 1]].sum())
    return ceilings
