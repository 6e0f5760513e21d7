"""Compiled sums over all orders by dynamic programming over subsets of the variables.

A subset S of the variables is a bit mask. What belongs to one node i is indexed by masks over the other n - 1 variables
(`without`). Sums over parent sets inside S come from one zeta transform per node, on weights relative to the node's best set;
subsets whose sum underflows are done again on a scale that is SHIFT nats lower, as often as needed.
"""

import numpy as np
from numba import njit

SHIFT = 575.0  # exp(575) is still finite and leaves room for sums
LANES = 8


@njit(cache=True, nogil=True, inline="always")
def without(subset, node):
    """The mask of `subset` over the variables other than `node`."""
    return (subset & ((1 << node) - 1)) | (subset >> (node + 1) << node)


@njit(cache=True, nogil=True)
def zeta(values):
    """values[S] = sum of values[T] over T inside S, in place."""
    step = 1
    while step < values.size:
        for block in range(0, values.size, 2 * step):
            for k in range(block, block + step):
                values[k + step] += values[k]
        step *= 2


@njit(cache=True, nogil=True)
def subset_sums(masks, log_scores, top, sums, scale):
    """sums[S] * exp(top - SHIFT * scale[S]) = sum of exp(score) over the sets inside S."""
    sums[:] = 0.0
    scale[:] = 0
    for k in range(masks.size):
        sums[masks[k]] += np.exp(log_scores[k] - top)
    zeta(sums)
    limit = 0.5 * np.exp(-SHIFT)
    level = 0
    while True:
        level += 1
        some_sets, some_subsets = False, False  # sets that can matter on this scale; subsets without anything better
        for k in range(masks.size):
            some_sets |= -np.inf < log_scores[k] - top + SHIFT * level <= 0.0
        for s in range(sums.size if some_sets else 0):
            some_subsets |= sums[s] < limit
        if not some_subsets:
            return
        lower = np.zeros(sums.size)
        for k in range(masks.size):
            exponent = log_scores[k] - top + SHIFT * level
            if exponent <= 0.0:
                lower[masks[k]] += np.exp(exponent)
        zeta(lower)
        for s in range(sums.size):
            if sums[s] < limit:
                sums[s] = lower[s]
                scale[s] = level


@njit(cache=True, nogil=True)
def forward(log_sums, totals):
    """totals[S] = log of the sum over all orders of S (each with weight 1) of the product of the nodes' sums."""
    n = log_sums.shape[0]
    terms = np.empty(n)
    totals[0] = 0.0
    for subset in range(1, totals.size):
        count, top = 0, -np.inf
        for node in range(n):
            if subset >> node & 1:
                before = subset ^ (1 << node)
                terms[count] = totals[before] + log_sums[node, without(before, node)]
                top = max(top, terms[count])
                count += 1
        total = 0.0
        if top > -np.inf:
            for t in range(count):
                total += np.exp(terms[t] - top)
            totals[subset] = top + np.log(total)
        else:
            totals[subset] = -np.inf


@njit(cache=True, nogil=True)
def backward(log_sums, totals):
    """totals[S] = log of the sum over all orders of the variables outside S, placed after S."""
    n = log_sums.shape[0]
    terms = np.empty(n)
    totals[-1] = 0.0
    for subset in range(totals.size - 2, -1, -1):
        count, top = 0, -np.inf
        for node in range(n):
            if not subset >> node & 1:
                terms[count] = totals[subset | (1 << node)] + log_sums[node, without(subset, node)]
                top = max(top, terms[count])
                count += 1
        total = 0.0
        if top > -np.inf:
            for t in range(count):
                total += np.exp(terms[t] - top)
            totals[subset] = top + np.log(total)
        else:
            totals[subset] = -np.inf


@njit(cache=True, nogil=True)
def node_edges(node, log_sums, before, after, sums, scale, column):
    """column[u] = P(u -> node), with u numbered among the other variables.

    P(S stands before node) times the share of the sum over S that is lost without u, added over S.
    """
    n_others = column.size
    present, absent = np.zeros(n_others), np.zeros(n_others)
    bit = 1 << node
    for s in range(sums.size):
        if sums[s] == 0.0:
            continue
        subset = (s & (bit - 1)) | (s >> node << (node + 1))
        p = np.exp(before[subset] + log_sums[node, s] + after[subset | bit] - before[-1])
        if p == 0.0:
            continue
        rate = p / sums[s]
        for u in range(n_others):
            if s >> u & 1:
                present[u] += p
                less = s ^ (1 << u)
                if scale[less] == scale[s]:
                    absent[u] += rate * sums[less]
    for u in range(n_others):
        column[u] = present[u] - absent[u]


@njit(cache=True, nogil=True)
def last_node_shares(log_sums, totals, shares):
    """shares[node, S without node] = P(node is the last of S | an order of S), the backward step of the forward sum."""
    n = log_sums.shape[0]
    for subset in range(1, totals.size):
        for node in range(n):
            if subset >> node & 1:
                before = subset ^ (1 << node)
                s = without(before, node)
                if totals[subset] > -np.inf:
                    shares[node, s] = np.exp(totals[before] + log_sums[node, s] - totals[subset])


@njit(cache=True, nogil=True)
def predict_rows(shares, masks, offsets, weights, scales, sums, predictive, joint):
    """joint[row] = P(row | data) averaged over all orders: the forward sum with S replaced by S p(x | z).

    predictive : (n_families, n_rows) p(x_i | z) of every family     weights : (n_families, n_scales), scaled as `sums`
    Both sums share their scale, so their ratio, the mean of p over the sets inside S, is an ordinary number. LANES rows are
    walked together, so that the innermost loops run in vector registers.
    """
    n, size = shares.shape
    means = np.zeros((n, size, LANES))
    work = np.zeros((size, LANES))
    prefix = np.ones((2 * size, LANES))
    values = np.zeros(LANES)
    for first in range(0, joint.size, LANES):
        n_rows = min(LANES, joint.size - first)
        for node in range(n):
            for level in range(weights.shape[1]):
                work[:] = 0.0
                for k in range(offsets[node], offsets[node + 1]):
                    if weights[k, level] > 0.0:
                        for row in range(n_rows):
                            work[masks[k], row] += weights[k, level] * predictive[k, first + row]
                _zeta_lanes(work)
                for s in range(size):
                    if scales[node, s] == level and sums[node, s] > 0.0:
                        for row in range(LANES):
                            means[node, s, row] = work[s, row] / sums[node, s]
        for subset in range(1, 2 * size):
            values[:] = 0.0
            for node in range(n):
                if subset >> node & 1:
                    before = subset ^ (1 << node)
                    s = without(before, node)
                    share = shares[node, s]
                    if share > 0.0:
                        for row in range(LANES):
                            values[row] += share * prefix[before, row] * means[node, s, row]
            prefix[subset] = values
        joint[first : first + n_rows] = prefix[-1, :n_rows]


@njit(cache=True, nogil=True)
def _zeta_lanes(values):
    """`zeta` of every column."""
    step = 1
    while step < values.shape[0]:
        for block in range(0, values.shape[0], 2 * step):
            for k in range(block, block + step):
                for lane in range(LANES):
                    values[k + step, lane] += values[k, lane]
        step *= 2


@njit(cache=True, nogil=True)
def best_inside(masks, log_scores, best):
    """best[S] = highest score of a set inside S."""
    best[:] = -np.inf
    for k in range(masks.size):
        best[masks[k]] = max(best[masks[k]], log_scores[k])
    step = 1
    while step < best.size:
        for block in range(0, best.size, 2 * step):
            for k in range(block, block + step):
                best[k + step] = max(best[k + step], best[k])
        step *= 2


@njit(cache=True, nogil=True)
def best_prefixes(best, forwards, totals):
    """totals[S] = highest product of the nodes of S as a prefix (forwards) or of the nodes outside S as a suffix."""
    n = best.shape[0]
    if forwards:
        totals[0] = 0.0
        for subset in range(1, totals.size):
            top = -np.inf
            for node in range(n):
                if subset >> node & 1:
                    before = subset ^ (1 << node)
                    top = max(top, totals[before] + best[node, without(before, node)])
            totals[subset] = top
    else:
        totals[-1] = 0.0
        for subset in range(totals.size - 2, -1, -1):
            top = -np.inf
            for node in range(n):
                if not subset >> node & 1:
                    top = max(top, totals[subset | (1 << node)] + best[node, without(subset, node)])
            totals[subset] = top


@njit(cache=True, nogil=True)
def best_around(node, prefixes, suffixes, around):
    """around[Z] = best of prefix(S) + suffix(S + node) over the sets S that hold Z: what completes the family (node, Z)."""
    bit = 1 << node
    for s in range(around.size):
        subset = (s & (bit - 1)) | (s >> node << (node + 1))
        around[s] = prefixes[subset] + suffixes[subset | bit]
    step = 1
    while step < around.size:
        for block in range(0, around.size, 2 * step):
            for k in range(block, block + step):
                around[k] = max(around[k], around[k + step])
        step *= 2
