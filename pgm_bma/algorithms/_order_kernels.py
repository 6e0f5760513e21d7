"""Compiled chain over node orders: swap two nodes, rescore only what changed (ORD section III-B, eq. 12).

The sum over the parent sets of a node is kept as ``sum of exp(score - best score of the node)``. A node between the two
swapped positions loses the sets that hold one of them and gains those that hold the other; its sum is updated by the
difference. The two swapped nodes are summed afresh. Guards: a sum is taken afresh when it falls below KEEP of its size at the
last fresh sum (cancellation), after REFRESH updates, and in log space below TINY (underflow).

Parent sets of size s are ranked colexicographically, so the sets whose larger members are fixed lie side by side and the
innermost loop stays within one stretch of memory.
"""

import numpy as np
from numba import njit

KEEP = 1e-3
REFRESH = 100
TINY = 1e-280
_REASSOCIATE = {"reassoc", "contract"}  # several partial sums at once; infinities stay legal


@njit(cache=True, nogil=True)
def split_by_member(
    weights, offsets, sets, set_offsets, n_candidates, member_offsets, binomials, max_indegree, holding
):
    """holding[child, member, rank of the others] = weight of the set: the sets that hold a member, side by side."""
    others = np.empty(max_indegree, dtype=np.int64)
    for child in range(n_candidates.size):
        m = n_candidates[child]
        width = (member_offsets[child + 1] - member_offsets[child]) // max(m, 1)
        for k in range(offsets[child + 1] - offsets[child]):
            members = sets[set_offsets[child] + k]
            for chosen in range(max_indegree):
                if members[chosen] < 0:
                    break
                size = 0
                for other in range(max_indegree):
                    if members[other] >= 0 and other != chosen:
                        others[size] = members[other]
                        size += 1
                rank = 0
                for t in range(size):
                    rank += binomials[others[t], t + 1] + binomials[m, t]
                holding[member_offsets[child] + members[chosen] * width + rank] = weights[offsets[child] + k]


@njit(cache=True, nogil=True, fastmath=_REASSOCIATE)
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


@njit(cache=True, nogil=True, fastmath=_REASSOCIATE)
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


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def log_sum_sets(log_scores, first, last, sets, set_first, allowed, touching):
    """Log of the summed exp(score) over the sets inside `allowed`, and touching `touching` if it is not empty.

    The slow exact way, for sums that underflow.
    """
    top, total = -np.inf, 0.0
    for k in range(last - first):
        score = log_scores[first + k]
        if score == -np.inf:
            continue
        inside, touches = True, touching.size == 0
        for t in range(sets.shape[1]):
            a = sets[set_first + k, t]
            if a < 0:
                break
            inside &= allowed[a]
            touches |= touching.size > 0 and touching[a]
        if inside and touches:
            if score > top:
                total = total * np.exp(top - score) + 1.0
                top = score
            else:
                total += np.exp(score - top)
    return top + np.log(total) if total > 0.0 else -np.inf


@njit(cache=True, nogil=True)
def fresh_sum(node, position, own_position, families, before, allowed):
    """(linear sum or 0, log sum) of a node over the parent sets among the nodes that stand before `own_position`."""
    weights, log_scores, tops, offsets, sets, set_offsets, candidates, n_candidates, _, _, binomials, max_indegree = (
        families
    )
    m = n_candidates[node]
    n_before = 0
    for a in range(m):
        allowed[a] = position[candidates[node, a]] < own_position
        if allowed[a]:
            before[n_before] = a
            n_before += 1
    linear = sum_subsets(weights, offsets[node], max_indegree, m, before, n_before, binomials)
    if linear >= TINY:
        return linear, tops[node] + np.log(linear)
    exact = log_sum_sets(log_scores, offsets[node], offsets[node + 1], sets, set_offsets[node], allowed, allowed[:0])
    return 0.0, exact


@njit(cache=True, nogil=True)
def score_order(order, families, linear, logs):
    """Fill the sums of every node for `order`; returns the log score of the order (the product in ORD eq. 9 below)."""
    n = order.size
    width = families[6].shape[1]
    before, allowed = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.bool_)
    position = np.empty(n, dtype=np.int64)
    for p in range(n):
        position[order[p]] = p
    total = 0.0
    for node in range(n):
        linear[node], logs[node] = fresh_sum(node, position, position[node], families, before, allowed)
        total += logs[node]
    return total


@njit(cache=True, nogil=True)
def run_swaps(rng, order, families, n_steps, first_step, burn_in, thin, kept_orders, kept_scores, trace):
    """Walk `n_steps` swaps from `order` (changed in place), sums recomputed from scratch at the start.

    Step numbers run from `first_step`; steps burn_in + 1 + thin t are kept. A rejected proposal repeats the order.
    trace : (n_steps,) to receive the score after every step, or (0,)
    returns (accepted, incremental score, best score seen at some step, order of that step)
    """
    weights, _, tops, offsets, _, _, candidates, n_candidates, holding, member_offsets, binomials, max_indegree = (
        families
    )
    n = order.size
    width = candidates.shape[1]
    before, allowed = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.bool_)
    linear, logs = np.zeros(n), np.zeros(n)
    score_order(order, families, linear, logs)
    peak, updates = linear.copy(), np.zeros(n, dtype=np.int64)
    new_linear, new_logs, fresh = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.bool_)
    ceilings = _ceilings(families)
    position = np.empty(n, dtype=np.int64)
    for p in range(n):
        position[order[p]] = p
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
        new_linear[v], new_logs[v] = fresh_sum(v, position, i, families, before, allowed)
        fresh[v] = True
        change = new_logs[v] - logs[v]
        for p in range(i + 1, j):
            if change + hope < threshold - 1e-6:
                break
            x = order[p]
            hope -= ceilings[x] - logs[x]
            m = n_candidates[x]
            local_u, local_v, n_before = -1, -1, 0
            for a in range(m):
                other = candidates[x, a]
                if other == u:
                    local_u = a
                elif other == v:
                    local_v = a
                elif position[other] < p:
                    before[n_before] = a
                    n_before += 1
            fresh[x] = False
            if max_indegree == 0 or (local_u < 0 and local_v < 0):
                new_linear[x], new_logs[x] = linear[x], logs[x]
                continue
            row = (member_offsets[x + 1] - member_offsets[x]) // m
            value = linear[x]
            if value > 0.0:
                plus = member_offsets[x] + local_v * row if local_v >= 0 else -1
                minus = member_offsets[x] + local_u * row if local_u >= 0 else -1
                gained, lost = sum_differences(holding, plus, minus, max_indegree - 1, m, before, n_before, binomials)
                value += gained - lost
            if value < KEEP * peak[x] or value < TINY or updates[x] >= REFRESH:
                new_linear[x], new_logs[x] = fresh_sum(x, position, p, families, before, allowed)
                fresh[x] = True
            else:
                new_linear[x], new_logs[x] = value, tops[x] + np.log(value)
            change += new_logs[x] - logs[x]
        if change + hope >= threshold - 1e-6:
            new_linear[u], new_logs[u] = fresh_sum(u, position, j, families, before, allowed)
            fresh[u] = True
            change += new_logs[u] - logs[u]
        else:
            change = -np.inf
        if threshold < change:  # ORD eq. 12, symmetric proposal
            accepted += 1
            order[i], order[j] = v, u
            for p in range(i, j + 1):
                x = order[p]
                linear[x], logs[x] = new_linear[x], new_logs[x]
                if fresh[x]:
                    peak[x], updates[x] = linear[x], 0
                else:
                    peak[x], updates[x] = max(peak[x], linear[x]), updates[x] + 1
        else:
            position[u], position[v] = i, j
        if trace.size:
            trace[step - first_step] = logs.sum()
        if step > burn_in and (step - burn_in - 1) % thin == 0:
            k = (step - burn_in - 1) // thin
            if k < kept_orders.shape[0]:
                kept_orders[k] = order
                kept_scores[k] = logs.sum()
        if step % 100 == 0:
            score = logs.sum()
            if score > best:
                best = score
                best_order[:] = order
    return accepted, logs.sum(), best, best_order


@njit(cache=True, nogil=True)
def _ceilings(families):
    """Log sum of every node over all of its sets: what no predecessor set can exceed."""
    weights, _, tops, offsets = families[:4]
    ceilings = np.empty(tops.size)
    for node in range(tops.size):
        ceilings[node] = tops[node] + np.log(weights[offsets[node] : offsets[node + 1]].sum())
    return ceilings


@njit(cache=True, nogil=True)
def order_edges(order, families, edges):
    """edges[parent, child] += P(parent -> child | order), from every parent set exactly."""
    (
        weights,
        log_scores,
        _,
        offsets,
        sets,
        set_offsets,
        candidates,
        n_candidates,
        holding,
        member_offsets,
        binomials,
        max_indegree,
    ) = families
    n = order.size
    width = candidates.shape[1]
    before, allowed = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.bool_)
    position = np.empty(n, dtype=np.int64)
    for p in range(n):
        position[order[p]] = p
    for x in range(n):
        linear, log_total = fresh_sum(x, position, position[x], families, before, allowed)
        m = n_candidates[x]
        if linear == 0.0:
            for k in range(offsets[x + 1] - offsets[x]):
                inside = True
                for t in range(max_indegree):
                    a = sets[set_offsets[x] + k, t]
                    inside &= a < 0 or allowed[a]
                if inside:
                    share = np.exp(log_scores[offsets[x] + k] - log_total)
                    for t in range(max_indegree):
                        a = sets[set_offsets[x] + k, t]
                        if a >= 0:
                            edges[candidates[x, a], x] += share
            continue
        n_before = 0
        for a in range(m):
            n_before += allowed[a]
        row = (member_offsets[x + 1] - member_offsets[x]) // max(m, 1)
        for a in range(m if max_indegree else 0):
            if not allowed[a]:
                continue
            n_others = 0
            for b in range(m):
                if allowed[b] and b != a:
                    before[n_others] = b
                    n_others += 1
            start = member_offsets[x] + a * row
            held = sum_subsets(holding, start, max_indegree - 1, m, before, n_others, binomials)
            edges[candidates[x, a], x] += held / linear
