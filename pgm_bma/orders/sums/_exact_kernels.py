"""Compiled sums over all orders by dynamic programming over subsets of the variables.

A subset S of the variables is a bit mask. What belongs to one node i is indexed by masks over the other n - 1 variables
(`without`). Sums over parent sets inside S come from one zeta transform per node, on weights relative to the node's best set, or
on their logarithms where those weights underflow: with a million rows, sets differ by a million nats.
"""

import numpy as np

from pgm_bma.foundation.numbers._kernels import larger, largest, smaller
from pgm_bma.foundation.runtime.compiling import compiled

TINY = 1e-250  # smaller sums of weights are done in logs: what they leave out must stay below rounding
LANES = 8


@compiled(inline="always")
def without(subset, node):
    """The mask of `subset` over the variables other than `node`."""
    return (subset & ((1 << node) - 1)) | (subset >> (node + 1) << node)


@compiled
def zeta(values):
    """values[S] = sum of values[T] over T inside S, in place."""
    step = 1
    while step < values.size:
        for block in range(0, values.size, 2 * step):
            for k in range(block, block + step):
                values[k + step] += values[k]
        step *= 2


@compiled
def log_subset_sums(masks, log_scores, log_sums):
    """log_sums[S] = log of the sum of exp(score) over the sets inside S. False: a sum underflows, only `log_zeta` will do."""
    top = largest(log_scores)
    for s in range(log_sums.size):
        log_sums[s] = 0.0
    for k in range(masks.size):
        log_sums[masks[k]] = np.exp(log_scores[k] - top)
    zeta(log_sums)
    for k in range(masks.size):
        if log_sums[masks[k]] < TINY and log_scores[k] > -np.inf:
            return False
    for s in range(log_sums.size):
        log_sums[s] = top + np.log(log_sums[s])
    return True


@compiled
def log_zeta(masks, log_scores, log_sums, shares):
    """`log_subset_sums`, all in logs. What each step adds, as a share of the new sum, is kept in `shares` unless that is empty.

    shares : (n - 1, 2^(n-2)); with them `mix_lanes` averages over the sets inside S, whatever the size of the scores
    """
    for k in range(log_sums.size):
        log_sums[k] = -np.inf
    for k in range(masks.size):
        log_sums[masks[k]] = log_scores[k]
    step, level = 1, 0
    while step < log_sums.size:
        pair = 0
        for block in range(0, log_sums.size, 2 * step):
            for k in range(block, block + step):
                more, old = log_sums[k], log_sums[k + step]
                if more > -np.inf:
                    log_sums[k + step] = larger(more, old) + np.log1p(np.exp(-abs(more - old)))
                    if shares.size:
                        shares[level, pair] = np.exp(more - log_sums[k + step])
                pair += 1
        step *= 2
        level += 1


@compiled
def log_total(terms, count, top):
    """log of the sum of exp over the first `count` terms, of which `top` is the largest."""
    if top == -np.inf:
        return top
    total = 0.0
    for t in range(count):
        total += np.exp(terms[t] - top)
    return top + np.log(total)


@compiled
def order_totals(log_sums, is_suffix, is_highest, terms, totals):
    """totals[S] = log of the sum over all orders of S (each with weight 1) of the product of the nodes' sums.

    is_suffix : over all orders of the variables outside S instead, placed after S
    is_highest : the highest product instead of the sum     terms : (n,) space
    """
    n = log_sums.shape[0]
    flip = totals.size - 1 if is_suffix else 0
    totals[flip] = 0.0
    for ordered in range(1, totals.size):
        subset = ordered ^ flip
        count, top = 0, -np.inf
        for node in range(n):
            if ordered >> node & 1:
                terms[count] = totals[subset ^ (1 << node)] + log_sums[node, without(subset, node)]
                top = larger(top, terms[count])
                count += 1
        totals[subset] = top if is_highest else log_total(terms, count, top)


@compiled
def node_edges(node, log_sums, before, after, present, absent):
    """Add to present[u] - absent[u] P(u -> node), with u numbered among the other variables.

    P(S stands before node) times the share of the sum over S that is lost without u, added over S.
    """
    bit = 1 << node
    for s in range(log_sums.shape[1]):
        subset = (s & (bit - 1)) | (s >> node << (node + 1))
        p = np.exp(before[subset] + log_sums[node, s] + after[subset | bit] - before[-1])
        if p < 1e-30:  # 2^20 of them are nothing
            continue
        for u in range(present.size):
            if s >> u & 1:
                present[u] += p
                absent[u] += p * np.exp(log_sums[node, s ^ (1 << u)] - log_sums[node, s])


@compiled
def descendants(source, log_sums, prefixes, codes, totals, found):
    """found[v] += P(v is the source or a descendant of it), over all orders.

    totals[U, A] is the log of the sum over the orders of U, and the parents within them, in which A are the source and its
    descendants. The last node of U takes parents outside A, or is in A itself and takes at least one from it.
    codes, totals : (2^n,) of `_dag_kernels.ternary_codes`, (3^n,) space
    """
    n = log_sums.shape[0]
    full, bit = (1 << n) - 1, 1 << source
    terms = np.empty(n)
    for placed in range(bit, full + 1):
        if not placed & bit:
            continue
        others = placed ^ bit
        rest = others
        while True:  # the subsets of `others` are the possible descendants
            below = rest | bit
            count, top = 0, -np.inf
            for node in range(n):
                if not placed >> node & 1:
                    continue
                before = placed ^ (1 << node)
                whole = log_sums[node, without(before, node)]
                if node == source:
                    term = prefixes[before] + whole if rest == 0 else -np.inf
                else:
                    apart = log_sums[node, without(before & ~below, node)]
                    term = totals[codes[before] + codes[before & below]]
                    if not below >> node & 1:
                        term += apart
                    elif apart < whole:
                        term += whole + np.log(-np.expm1(apart - whole))
                    else:
                        term = -np.inf
                terms[count] = term
                top = larger(top, term)
                count += 1
            totals[codes[placed] + codes[below]] = log_total(terms, count, top)
            if placed == full:
                share = np.exp(totals[codes[placed] + codes[below]] - prefixes[full])
                for node in range(n):
                    if below >> node & 1:
                        found[node] += share
            if rest == 0:
                break
            rest = (rest - 1) & others


@compiled
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


@compiled
def predict_rows(last_shares, masks, offsets, set_shares, predictive, means, prefix, values, joint):
    """joint[row] = P(row | data) averaged over all orders: the forward sum with S replaced by S p(x | z).

    predictive : (n_families, n_rows) p(x_i | z) of every family     set_shares : (n, n - 1, 2^(n-2)) from `log_zeta`
    LANES rows are walked together, so that the innermost loops run in vector registers.
    means, prefix, values : (n, 2^(n-1), LANES), (2^n, LANES), (LANES,) space, prefix[0] is 1
    """
    n, size = last_shares.shape
    for first in range(0, joint.size, LANES):
        n_rows = smaller(LANES, joint.size - first)
        for node in range(n):
            for subset in range(size):
                for row in range(LANES):
                    means[node, subset, row] = 0.0
            for k in range(offsets[node], offsets[node + 1]):
                for row in range(n_rows):
                    means[node, masks[k], row] = predictive[k, first + row]
            mix_lanes(means[node], set_shares[node])
        for subset in range(1, 2 * size):
            for row in range(LANES):
                values[row] = 0.0
            for node in range(n):
                if subset >> node & 1:
                    before = subset ^ (1 << node)
                    s = without(before, node)
                    share = last_shares[node, s]
                    if share > 0.0:
                        for row in range(LANES):
                            values[row] += share * prefix[before, row] * means[node, s, row]
            for row in range(LANES):
                prefix[subset, row] = values[row]
        for row in range(n_rows):
            joint[first + row] = prefix[2 * size - 1, row]


@compiled
def mix_lanes(values, shares):
    """values[S] = mean of values[T] over the sets T inside S, in place, by the shares of `log_zeta`; (2^(n-1), LANES)."""
    step, level = 1, 0
    while step < values.shape[0]:
        pair = 0
        for block in range(0, values.shape[0], 2 * step):
            for k in range(block, block + step):
                share = shares[level, pair]
                for lane in range(LANES):
                    values[k + step, lane] += share * (values[k, lane] - values[k + step, lane])
                pair += 1
        step *= 2
        level += 1
