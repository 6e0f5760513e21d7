"""Compiled elimination for forest sums, in numbers with a wide exponent.

A weight is a pair (mantissa, exponent) that stands for mantissa * 2**(512 * exponent), mantissa in [2**-256, 2**256) or 0. Only
sums, products and one division of positive numbers occur, so nothing cancels and nothing under- or overflows, at a few
nanoseconds an operation instead of the exponential and logarithm that log space would take.
"""

import numpy as np
from numba import njit

_STEP_LOG = 512.0 * np.log(2.0)
_UP, _DOWN = 2.0**512, 2.0**-512
_HIGH, _LOW = 2.0**256, 2.0**-256


@njit(cache=True, inline="always")
def _normal(mantissa, exponent):
    if mantissa >= _HIGH:
        return mantissa * _DOWN, exponent + 1
    if mantissa < _LOW and mantissa > 0.0:
        return mantissa * _UP, exponent - 1
    return mantissa, exponent


@njit(cache=True, inline="always")
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


@njit(cache=True, inline="always")
def _ratio(a, ea, b, eb):
    """a / b as a plain float, for a <= b (up to rounding)."""
    if a == 0.0 or eb - ea > 1:
        return 0.0
    value = a / b
    return value if ea == eb else (value * _DOWN if eb > ea else value * _UP)


@njit(cache=True)
def _load(log_weights, mantissa, exponent):
    for i in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            value = log_weights[i, j]
            if value == -np.inf:
                mantissa[i, j], exponent[i, j] = 0.0, 0
            else:
                e = int(np.round(value / _STEP_LOG))
                mantissa[i, j], exponent[i, j] = _normal(np.exp(value - e * _STEP_LOG), e)


@njit(cache=True)
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
                shares[i, :] = 0.0
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


@njit(cache=True)
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


@njit(cache=True)
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
            saved_m[step // block], saved_e[step // block] = mantissa, exponent
        in_last = step >= (n_blocks - 1) * block
        total += _eliminate(mantissa, exponent, n - 1 - step, shares[step % block] if in_last else nothing)
    posterior = np.zeros((n, n + 1))
    if total == -np.inf:
        return total, posterior
    for b in range(n_blocks - 1, -1, -1):
        first, stop = b * block, min((b + 1) * block, n)
        if b < n_blocks - 1:
            mantissa[:], exponent[:] = saved_m[b], saved_e[b]
            for step in range(first, stop):
                _eliminate(mantissa, exponent, n - 1 - step, shares[step - first])
        for step in range(stop - 1, first - 1, -1):
            _reverse(mantissa, exponent, n - 1 - step, shares[step - first], posterior)
    return total, np.minimum(np.maximum(posterior, 0.0), 1.0)  # rounding of differences of terms of order one


@njit(cache=True)
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


@njit(cache=True)
def draw_forest(log_weights, uniforms):
    """One forest with probability proportional to its weight: (n,) parents, -1 = root.

    Nodes decide one after another. A node that has decided is merged into its parent's tree: what pointed to it now points to
    that tree's undecided top, so every decision is drawn from the exact posterior in a smaller graph. `uniforms` is (n, 2).
    """
    n = log_weights.shape[0]
    top = np.arange(n + 1)  # the undecided node (or n, the root) that a node's tree hangs from
    merged = log_weights.copy()  # weight of node i choosing any member of the tree below column j
    parents = np.empty(n, dtype=np.int64)
    for node in range(n):
        size = n - node
        small = np.empty((size, size + 1))
        small[:, :size] = merged[node:, node:n]
        small[:, size] = merged[node:, n]
        _, posterior = log_sum_and_posteriors(small, min(size, 64))
        choice = node + _pick(posterior[0], uniforms[node, 0])
        members = np.empty(n + 1)
        for m in range(n + 1):
            members[m] = log_weights[node, m] if (top[m] == choice and m != node) else -np.inf
        members = np.exp(members - members.max())
        parent = _pick(members, uniforms[node, 1])
        parents[node] = -1 if parent == n else parent
        for m in range(n + 1):
            if top[m] == node:
                top[m] = choice
        for i in range(node + 1, n):
            if i != choice:
                merged[i, choice] = np.logaddexp(merged[i, choice], merged[i, node])
    return parents


@njit(cache=True)
def _pick(weights, uniform):
    """Index drawn with probability proportional to `weights`."""
    target = uniform * weights.sum()
    running = 0.0
    last = 0
    for i in range(len(weights)):
        if weights[i] > 0.0:
            last = i
            running += weights[i]
            if running > target:
                return i
    return last
