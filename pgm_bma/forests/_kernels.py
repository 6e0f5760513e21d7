"""Compiled elimination for forest sums, in numbers with a wide exponent.

A weight is a pair (mantissa, exponent) that stands for mantissa * 2**(512 * exponent), mantissa in [2**-256, 2**256) or 0. Only
sums, products and one division of positive numbers occur, so nothing cancels and nothing under- or overflows, at a few
nanoseconds an operation instead of the exponential and logarithm that log space would take.
"""

import numpy as np

from pgm_bma.foundation._special_kernels import copy_into, largest
from pgm_bma.foundation.compiling import compiled

_STEP_LOG = 512.0 * np.log(2.0)
_UP, _DOWN = 2.0**512, 2.0**-512
_HIGH, _LOW = 2.0**256, 2.0**-256


@compiled
def _normal(mantissa, exponent):
    if mantissa >= _HIGH:
        return mantissa * _DOWN, exponent + 1
    if mantissa < _LOW and mantissa > 0.0:
        return mantissa * _UP, exponent - 1
    return mantissa, exponent


@compiled
def _add(a, ea, b, eb):
    if b == 0.0:
        return a, ea
    if a == 0.0:
        return b, eb
    if ea == eb:
        return _normal(a + b, ea)
    if ea == eb + 1:
        return _normal(a + b * _DOWN, ea)
    if eb == ea + 1:
        return _normal(b + a * _DOWN, eb)
    return (a, ea) if ea > eb else (b, eb)


@compiled
def _ratio(a, ea, b, eb):
    """a / b as a plain float, for a <= b (up to rounding)."""
    if a == 0.0 or eb - ea > 1:
        return 0.0
    value = a / b
    return value if ea == eb else (value * _DOWN if eb > ea else value * _UP)


@compiled
def _load(log_weights, mantissa, exponent):
    for i in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            value = log_weights[i, j]
            if value == -np.inf:
                mantissa[i, j], exponent[i, j] = 0.0, 0
            else:
                e = int(np.floor(value / _STEP_LOG + 0.5))
                mantissa[i, j], exponent[i, j] = _normal(np.exp(value - e * _STEP_LOG), e)


@compiled
def _eliminate(mantissa, exponent, k, shares):
    """Eliminate node k from columns 0..k-1 and the last (root) column; log s_k, and with `shares` the part of every
    new weight that came through k."""
    last = mantissa.shape[1] - 1
    s, es = mantissa[k, last], exponent[k, last]
    for j in range(k):
        s, es = _add(s, es, mantissa[k, j], exponent[k, j])
    if s == 0.0:
        return -np.inf
    keep = shares.shape[0] > 0
    for i in range(k):
        m, e = mantissa[i, k], exponent[i, k]
        if m == 0.0:
            if keep:
                for j in range(shares.shape[1]):
                    shares[i, j] = 0.0
            continue
        m, e = _normal(m / s, e - es)
        for column in range(k + 1):
            j = last if column == k else column
            if j == i:
                continue
            b, eb = _normal(m * mantissa[k, j], e + exponent[k, j])
            new, enew = _add(mantissa[i, j], exponent[i, j], b, eb)
            if keep:
                shares[i, column] = _ratio(b, eb, new, enew)
            mantissa[i, j], exponent[i, j] = new, enew
    return np.log(s) + es * _STEP_LOG


@compiled
def log_sums(log_weights):
    """Log forest sums of a batch: log_weights (batch, n, n + 1), the last column the roots; the diagonal is not read."""
    batch, n = log_weights.shape[0], log_weights.shape[1]
    mantissa = np.empty((n, n + 1))
    exponent = np.empty((n, n + 1), dtype=np.int64)
    nothing = np.empty((0, 0))
    result = np.empty(batch)
    for b in range(batch):
        _load(log_weights[b], mantissa, exponent)
        total = 0.0
        for k in range(n - 1, -1, -1):
            total += _eliminate(mantissa, exponent, k, nothing)
        result[b] = total
    return result


@compiled
def log_sum_and_posteriors(log_weights, block):
    """Log forest sum of one (n, n + 1) table and the posterior of every choice, by the reverse sweep of the elimination.

    Shares are kept for `block` eliminations at a time; earlier states are kept as snapshots and run again, so that the memory is
    n * n * (block + n / block) numbers, not n ** 3.
    """
    n = log_weights.shape[0]
    mantissa = np.empty((n, n + 1))
    exponent = np.empty((n, n + 1), dtype=np.int64)
    _load(log_weights, mantissa, exponent)
    n_blocks = (n + block - 1) // block
    saved_m = np.empty((n_blocks, n, n + 1))
    saved_e = np.empty((n_blocks, n, n + 1), dtype=np.int64)
    nothing = np.empty((0, 0))
    total = 0.0
    shares = np.zeros((block, n, n + 1))
    for step in range(n):
        if step % block == 0:
            copy_into(mantissa, saved_m[step // block])
            copy_into(exponent, saved_e[step // block])
        in_last = step >= (n_blocks - 1) * block
        total += _eliminate(mantissa, exponent, n - 1 - step, shares[step % block] if in_last else nothing)
    posterior = np.zeros((n, n + 1))
    if total == -np.inf:
        return total, posterior
    for b in range(n_blocks - 1, -1, -1):
        first, stop = b * block, min((b + 1) * block, n)
        if b < n_blocks - 1:
            copy_into(saved_m[b], mantissa)
            copy_into(saved_e[b], exponent)
            for step in range(first, stop):
                _eliminate(mantissa, exponent, n - 1 - step, shares[step - first])
        for step in range(stop - 1, first - 1, -1):
            _reverse(mantissa, exponent, n - 1 - step, shares[step - first], posterior)
    for i in range(n):
        for j in range(n + 1):
            posterior[i, j] = min(max(posterior[i, j], 0.0), 1.0)  # rounding of differences of terms of order one
    return total, posterior


@compiled
def _reverse(mantissa, exponent, k, shares, posterior):
    """Undo the elimination of k: what came through k goes back to the two arcs that made it."""
    last = mantissa.shape[1] - 1
    s, es = mantissa[k, last], exponent[k, last]
    for j in range(k):
        s, es = _add(s, es, mantissa[k, j], exponent[k, j])
    through = 0.0
    for i in range(k):
        into = 0.0
        for column in range(k + 1):
            j = last if column == k else column
            if j == i:
                continue
            part = posterior[i, j] * shares[i, column]
            if part > 0.0:
                posterior[i, j] -= part
                posterior[k, j] += part
                into += part
        posterior[i, k] = into
        through += into
    free = 1.0 - through  # d log sum / d log s_k, at most 1; negative where k has several children
    for column in range(k + 1):
        j = last if column == k else column
        posterior[k, j] += free * _ratio(mantissa[k, j], exponent[k, j], s, es)


@compiled
def draw_forest(log_weights, uniforms, block):
    """One forest with probability proportional to its weight: (n,) parents, -1 = root.

    Nodes decide one after another. Node i takes j with probability proportional to its weight times the escape of j: the
    chance that a random walk from j reaches the root before i. A node that has decided keeps one arc only, so that the next
    decision is exact too. For `block` nodes at a time all others are eliminated once; substitution gives their escapes.
    uniforms : (n,)
    """
    n = log_weights.shape[0]
    mantissa, placed = np.empty((n, n + 1)), np.empty((n, n + 1))
    exponent = np.empty((n, n + 1), dtype=np.int64)
    nothing = np.empty((0, 0))
    order = np.empty(n + 1, np.int64)  # the nodes of the block first
    parents = np.empty(n, np.int64)
    for i in range(n + 1):
        order[i] = i
        parents[i % n] = -2
    choice_weights = np.empty(n + 1)
    for first in range(0, n, block):
        size = min(block, n - first)
        for i in range(size + first):
            order[i] = first + i if i < size else i - size
        for a in range(n):
            for b in range(n + 1):
                decided = parents[order[a]]
                if decided == -2:
                    placed[a, b] = log_weights[order[a], order[b]] if a != b else -np.inf
                else:
                    placed[a, b] = 0.0 if order[b] == decided % (n + 1) else -np.inf
        _load(placed, mantissa, exponent)
        for k in range(n - 1, size - 1, -1):
            _eliminate(mantissa, exponent, k, nothing)
        for own in range(size):
            log_escape = _log_escapes(mantissa, exponent, size, own)
            for b in range(n + 1):
                choice_weights[b] = log_weights[first + own, order[b]] + log_escape[b] if b != own else -np.inf
            chosen = _pick(choice_weights, uniforms[first + own])
            parents[first + own] = order[chosen] if chosen < n else -1
            _point(mantissa, exponent, size, own, chosen)
    return parents


@compiled
def _log_escapes(mantissa, exponent, size, own):
    """Log chance that a walk from each node reaches the root (the last column) before node `own`; nodes from `size` on are
    eliminated already."""
    n = mantissa.shape[0]
    order = np.empty(size + 1, np.int64)  # `own` goes last, that is first
    for k in range(size):
        order[k] = k
    order[0], order[own] = own, 0
    order[size] = n
    nothing = np.empty((0, 0))
    small, small_exponent = np.empty((size, size + 1)), np.empty((size, size + 1), dtype=np.int64)
    for a in range(size):
        for b in range(size + 1):
            small[a, b] = mantissa[order[a], order[b]] if a != b else 0.0
            small_exponent[a, b] = exponent[order[a], order[b]]
    for k in range(size - 1, 0, -1):
        _eliminate(small, small_exponent, k, nothing)
    h, eh = np.empty(n + 1), np.empty(n + 1, np.int64)
    found, found_exponent = np.empty(size + 1), np.empty(size + 1, np.int64)
    for k in range(n + 1):
        h[k], eh[k] = 0.0, 0
        found[k % (size + 1)], found_exponent[k % (size + 1)] = 0.0, 0
    h[n], found[size] = 1.0, 1.0
    for k in range(1, size):
        found[k], found_exponent[k] = _mean(small[k], small_exponent[k], found, found_exponent, k)
        h[order[k]], eh[order[k]] = found[k], found_exponent[k]
    for k in range(size, n):
        h[k], eh[k] = _mean(mantissa[k], exponent[k], h, eh, k)
    result = np.empty(n + 1)
    for k in range(n + 1):
        result[k] = np.log(h[k]) + eh[k] * _STEP_LOG if h[k] > 0.0 else -np.inf
    return result


@compiled
def _mean(weights, exponents, values, value_exponents, k):
    """Mean of `values` over columns 0..k-1 and the last, with these weights."""
    last = len(weights) - 1
    top, etop, total, etotal = 0.0, 0, 0.0, 0
    for column in range(k + 1):
        j = last if column == k else column
        if weights[j] > 0.0:
            total, etotal = _add(total, etotal, weights[j], exponents[j])
            part, epart = _normal(weights[j] * values[j], exponents[j] + value_exponents[j])
            top, etop = _add(top, etop, part, epart)
    return _normal(top / total, etop - etotal) if total > 0.0 else (0.0, 0)


@compiled
def _point(mantissa, exponent, size, own, target):
    """Node `own` of the block keeps one arc, to `target`; an arc to an eliminated node is led on to the nodes that remain."""
    last = mantissa.shape[1] - 1
    row, erow = mantissa[own], exponent[own]
    for j in range(last + 1):
        row[j], erow[j] = 0.0, 0
    row[target] = 1.0
    for k in range(target if target < last else -1, size - 1, -1):
        if row[k] == 0.0:
            continue
        s, es = mantissa[k, last], exponent[k, last]
        for j in range(k):
            s, es = _add(s, es, mantissa[k, j], exponent[k, j])
        m, e = _normal(row[k] / s, erow[k] - es)
        for column in range(k + 1):
            j = last if column == k else column
            if j != own and mantissa[k, j] > 0.0:
                b, eb = _normal(m * mantissa[k, j], e + exponent[k, j])
                row[j], erow[j] = _add(row[j], erow[j], b, eb)


@compiled
def _pick(log_weights, uniform):
    """Index drawn with probability proportional to exp of these."""
    top, total = largest(log_weights), 0.0
    for i in range(len(log_weights)):
        total += np.exp(log_weights[i] - top)
    running, last = 0.0, 0
    for i in range(len(log_weights)):
        weight = np.exp(log_weights[i] - top)
        if weight > 0.0:
            last = i
            running += weight
            if running > uniform * total:
                return i
    return last
