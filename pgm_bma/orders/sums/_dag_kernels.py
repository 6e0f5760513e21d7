"""Compiled sums in which every DAG counts once, over the layers of a DAG.

A DAG has one decomposition into layers: the nodes without parents, then the nodes whose parents are all placed and include one of
the layer before. With U the nodes placed and J the last layer among them, a new node i takes a parent set inside U that touches
J. Their sum is q_i(U, J) = a_i(U) - a_i(U without J), a_i as in `_exact_kernels`. The difference is harmless: where it cancels, the
DAGs that use it weigh as little against those in which i takes a set outside J.

A pair (U, J) is the number with ternary digits 0 (not placed), 1 (placed), 2 (last layer): code[U] + code[J].
"""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.sums._exact_kernels import LANES, mix_lanes, without


@compiled
def ternary_codes(n):
    codes = np.zeros(1 << n, dtype=np.int64)
    power = 1
    for v in range(n):
        for mask in range(1 << v):
            codes[(1 << v) | mask] = codes[mask] + power
        power *= 3
    return codes


@compiled
def layer_log_weights(log_sums, placed, layer, log_q):
    """log q_i(U, J) for the nodes outside U; the first layer has no parents."""
    for i in range(log_sums.shape[0]):
        if placed >> i & 1:
            continue
        whole = log_sums[i, without(placed, i)]
        if placed == 0:
            log_q[i] = whole
            continue
        rest = log_sums[i, without(placed & ~layer, i)]
        log_q[i] = whole + np.log(-np.expm1(rest - whole)) if rest < whole else -np.inf


@compiled
def forward_layers(log_sums, codes, outer, first, totals):
    """totals[U, J] = log of the sum over the DAGs on U whose last layer is J; returns the log sum over all DAGs.

    outer : nodes that have their parents already and may be parents of all others (0: none)
    first : what the first layer is; its parents are not counted (0: any)
    """
    n = log_sums.shape[0]
    full = ((1 << n) - 1) & ~outer
    tops = np.full(totals.size, -np.inf)
    totals[:] = 0.0  # sums relative to tops until a state is read, logs afterwards
    log_q, products = np.empty(n), np.empty(1 << n)
    tops[2 * codes[first]], totals[2 * codes[first]] = 0.0, 1.0
    top, total = -np.inf, 0.0
    for placed in range(1 << n):
        layer = placed
        while True:
            state = codes[placed] + codes[layer]
            if totals[state] > 0.0:
                here = tops[state] + np.log(totals[state])
                totals[state] = here
                if placed == full:
                    top, total = _add(top, total, here)
                else:
                    layer_log_weights(log_sums, placed | outer, layer, log_q)
                    outside = full & ~placed
                    products[0] = 0.0
                    new = 0
                    while True:
                        new = (new - outside) & outside  # the subsets of `outside` in ascending order
                        if new == 0:
                            break
                        products[new] = products[new & (new - 1)] + log_q[_lowest(new)]
                        target = codes[placed | new] + codes[new]
                        tops[target], totals[target] = _add(tops[target], totals[target], here + products[new])
            else:
                totals[state] = -np.inf
            if layer == 0:
                break
            layer = (layer - 1) & placed
            if layer == 0:
                break
    return top + np.log(total)


@compiled
def descendants(source, log_sums, codes, totals, log_evidence, space, found):
    """found[v] += P(v is the source or a descendant of it), every DAG once.

    The nodes that are not below the source, B, form a DAG without the others; the source takes parents from B; each other node
    takes parents from anywhere, at least one from below the source. So the layers of the others begin with the source.
    totals : of `forward_layers` with all nodes     space : (3^n,)
    """
    n = log_sums.shape[0]
    bit = 1 << source
    for outer in range(1 << n):
        if outer & bit:
            continue
        top, total, layer = -np.inf, 0.0, outer
        while layer:
            top, total = _add(top, total, totals[codes[outer] + codes[layer]])
            layer = (layer - 1) & outer
        value = log_sums[source, without(outer, source)] + (top + np.log(total) if outer else 0.0)
        if value > -np.inf:
            value += forward_layers(log_sums, codes, outer, bit, space)
            share = np.exp(value - log_evidence)
            for node in range(n):
                if not outer >> node & 1:
                    found[node] += share


@compiled(inline="always")
def _add(top, total, value):
    """Add exp(value) to total * exp(top)."""
    if value > top:
        return value, total * np.exp(top - value) + 1.0
    if value == -np.inf:
        return top, total
    return top, total + np.exp(value - top)


@compiled(inline="always")
def _lowest(mask):
    node = 0
    while not mask >> node & 1:
        node += 1
    return node


@compiled
def backward_edges(log_sums, codes, totals, log_total, coefficients):
    """coefficients[i, V]: P(u -> i) is the sum over V of coefficients[i, V] times the share of a_i(V) that holds u.

    One sweep from the full set down: the sum over what follows (U, J), and with it the posterior that i is next after (U, J).
    """
    n = log_sums.shape[0]
    full = (1 << n) - 1
    follows = np.full(totals.size, -np.inf)
    log_q, products, next_share = np.empty(n), np.empty(1 << n), np.empty(n)
    for placed in range(full, -1, -1):
        layer = placed
        while True:
            state = codes[placed] + codes[layer]
            if placed == full:
                follows[state] = 0.0
            elif totals[state] > -np.inf:
                layer_log_weights(log_sums, placed, layer, log_q)
                outside = full & ~placed
                products[0] = 0.0
                next_share[:] = 0.0
                top, total = -np.inf, 0.0
                new = 0
                while True:
                    new = (new - outside) & outside
                    if new == 0:
                        break
                    products[new] = products[new & (new - 1)] + log_q[_lowest(new)]
                    value = products[new] + follows[codes[placed | new] + codes[new]]
                    top, total = _add(top, total, value)
                    share = np.exp(totals[state] + value - log_total)
                    if share > 0.0:
                        for i in range(n):
                            if new >> i & 1:
                                next_share[i] += share
                if total > 0.0:
                    follows[state] = top + np.log(total)
                for i in range(n):
                    if next_share[i] > 0.0 and placed:
                        all_sets, rest = without(placed, i), without(placed & ~layer, i)
                        ratio = np.exp(log_sums[i, rest] - log_sums[i, all_sets])
                        coefficients[i, all_sets] += next_share[i] / (1.0 - ratio)
                        coefficients[i, rest] -= next_share[i] * ratio / (1.0 - ratio)
            if layer == 0:
                break
            layer = (layer - 1) & placed
            if layer == 0:
                break


@compiled
def draw_layers(rng, log_sums, codes, totals, values, subsets, log_q, draws):
    """Layer numbers (n_draws, n) of DAGs drawn from their law, the last layer first.

    values, subsets, log_q : (2^n,), (2^n,), (n,) space
    """
    n = log_sums.shape[0]
    for d in range(draws.shape[0]):
        placed, layer, depth = (1 << n) - 1, 0, 0
        while placed:
            count, top, previous = 0, -np.inf, placed
            while previous:  # which layer comes before the one that was drawn last
                value = totals[codes[placed] + codes[previous]]
                if layer:
                    layer_log_weights(log_sums, placed, previous, log_q)
                    for i in range(n):
                        if layer >> i & 1:
                            value += log_q[i]
                values[count], subsets[count] = value, previous
                top = max(top, value)
                count += 1
                previous = (previous - 1) & placed
            total = 0.0
            for k in range(count):
                total += np.exp(values[k] - top)
                values[k] = total
            point, k = rng.random() * total, 0
            while k < count - 1 and values[k] <= point:
                k += 1
            layer = subsets[k]
            for i in range(n):
                if layer >> i & 1:
                    draws[d, i] = depth
            placed ^= layer
            depth += 1
        for i in range(n):
            draws[d, i] = depth - 1 - draws[d, i]


@compiled
def predict_rows(log_sums, codes, totals, log_total, masks, offsets, set_shares, predictive, joint):
    """joint[row] = P(row | data) averaged over all DAGs; arguments as in `_exact_kernels.predict_rows`.

    Expectation over the layers: prefix[U, J] is the mean probability of the row's values in U over the DAGs on U that end in J.
    """
    n, size = log_sums.shape
    full = (1 << n) - 1
    inside = np.zeros((n, size, LANES))
    prefix = np.zeros(totals.size)
    log_q, products, means = np.empty(n), np.empty(1 << n), np.empty(n)
    probabilities = np.empty(1 << n)
    for row in range(joint.size):
        if row % LANES == 0:
            inside[:] = 0.0
            for node in range(n):
                for k in range(offsets[node], offsets[node + 1]):
                    for lane in range(min(LANES, joint.size - row)):
                        inside[node, masks[k], lane] = predictive[k, row + lane]
                mix_lanes(inside[node], set_shares[node])
        prefix[:] = 0.0
        prefix[0] = 1.0
        joint[row] = 0.0
        for placed in range(1 << n):
            layer = placed
            while True:
                state = codes[placed] + codes[layer]
                if totals[state] > -np.inf:
                    if placed == full:
                        joint[row] += np.exp(totals[state] - log_total) * prefix[state]
                    else:
                        layer_log_weights(log_sums, placed, layer, log_q)
                        _layer_means(placed, layer, inside[:, :, row % LANES], log_sums, means)
                        outside = full & ~placed
                        products[0], probabilities[0] = 0.0, 1.0
                        new = 0
                        while True:
                            new = (new - outside) & outside
                            if new == 0:
                                break
                            i = _lowest(new)
                            products[new] = products[new & (new - 1)] + log_q[i]
                            if products[new] == -np.inf:
                                continue
                            probabilities[new] = probabilities[new & (new - 1)] * means[i]
                            target = codes[placed | new] + codes[new]
                            share = np.exp(totals[state] + products[new] - totals[target])
                            prefix[target] += share * prefix[state] * probabilities[new]
                if layer == 0:
                    break
                layer = (layer - 1) & placed
                if layer == 0:
                    break


@compiled
def _layer_means(placed, layer, inside, log_sums, means):
    """Mean of p(x_i | z) over the sets inside `placed` that touch `layer`; cancelled differences are kept inside [0, 1]."""
    for i in range(means.size):
        if placed >> i & 1:
            continue
        whole, rest = without(placed, i), without(placed & ~layer, i)
        ratio = np.exp(log_sums[i, rest] - log_sums[i, whole]) if placed and log_sums[i, whole] > -np.inf else 0.0
        means[i] = 0.0
        if ratio < 1.0:
            means[i] = min(max((inside[i, whole] - ratio * inside[i, rest]) / (1.0 - ratio), 0.0), 1.0)
