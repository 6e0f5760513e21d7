"""Compiled elimination for forest sums, in numbers with a wide exponent.

A weight is a pair (mantissa, exponent) that stands for mantissa * 2**(512 * exponent), mantissa in [2**-256, 2**256) or 0. Only
sums, products and one division of positive numbers occur, so nothing cancels and nothing under- or overflows, at a few
nanoseconds an operation instead of the exponential and logarithm that log space would take. All space comes from outside.
"""

from math import exp, floor, inf, log
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers._kernels import copy_into, larger, largest, smaller
from pgm_bma.foundation.runtime.compiling import compiled

_STEP_LOG = 512.0 * log(2.0)
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
            if value == -inf:
                mantissa[i, j], exponent[i, j] = 0.0, 0
            else:
                e = floor(value / _STEP_LOG + 0.5)
                mantissa[i, j], exponent[i, j] = _normal(exp(value - e * _STEP_LOG), e)


@compiled
def _eliminate(mantissa, exponent, k, last, shares, keep):
    """Eliminate node k from columns 0..k-1 and the `last` (root) column; log s_k, and with `keep` in `shares` the part of every
    new weight that came through k."""
    s, es = mantissa[k, last], exponent[k, last]
    for j in range(k):
        s, es = _add(s, es, mantissa[k, j], exponent[k, j])
    if s == 0.0:
        return -inf
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
    return log(s) + es * _STEP_LOG


class EliminationSpace(NamedTuple):
    """Of one table of n nodes; `block` eliminations keep their shares."""

    mantissa: np.ndarray  # (n, n + 1)
    exponent: np.ndarray  # (n, n + 1) integers
    saved_mantissa: np.ndarray  # (n_blocks, n, n + 1)
    saved_exponent: np.ndarray
    shares: np.ndarray  # (block, n, n + 1) zeros


def make_space(n, block, n_blocks):
    """EliminationSpace for `log_sums` (no blocks) and `log_sum_and_posteriors`."""
    shape = (n, n + 1)
    return EliminationSpace(
        np.empty(shape),
        np.empty(shape, dtype=np.int64),
        np.empty((n_blocks, *shape)),
        np.empty((n_blocks, *shape), dtype=np.int64),
        np.zeros((block, *shape)),
    )


@compiled
def log_sums(log_weights, space, result):
    """Log forest sums of a batch: log_weights (batch, n, n + 1), the last column the roots; the diagonal is not read."""
    n, mantissa, exponent = log_weights.shape[1], space.mantissa, space.exponent
    for b in range(len(log_weights)):
        _load(log_weights[b], mantissa, exponent)
        total = 0.0
        for k in range(n - 1, -1, -1):
            total += _eliminate(mantissa, exponent, k, n, mantissa, False)
        result[b] = total


@compiled
def log_sum_and_posteriors(log_weights, space, posterior):
    """Log forest sum of one (n, n + 1) table and the posterior of every choice, by the reverse sweep of the elimination.

    Shares are kept for `block` eliminations at a time; earlier states are kept as snapshots and run again, so that the memory is
    n * n * (block + n / block) numbers, not n ** 3.
    posterior : (n, n + 1) zeros, to be filled
    """
    n, mantissa, exponent, shares = len(log_weights), space.mantissa, space.exponent, space.shares
    n_blocks, block = len(space.saved_mantissa), len(shares)
    _load(log_weights, mantissa, exponent)
    total = 0.0
    for step in range(n):
        if step % block == 0:
            copy_into(mantissa, space.saved_mantissa[step // block])
            copy_into(exponent, space.saved_exponent[step // block])
        in_last = step >= (n_blocks - 1) * block
        total += _eliminate(mantissa, exponent, n - 1 - step, n, shares[step % block], in_last)
    if total == -inf:
        return total
    for b in range(n_blocks - 1, -1, -1):
        first, stop = b * block, smaller((b + 1) * block, n)
        if b < n_blocks - 1:
            copy_into(space.saved_mantissa[b], mantissa)
            copy_into(space.saved_exponent[b], exponent)
            for step in range(first, stop):
                _eliminate(mantissa, exponent, n - 1 - step, n, shares[step - first], True)
        for step in range(stop - 1, first - 1, -1):
            _reverse(mantissa, exponent, n - 1 - step, shares[step - first], posterior)
    for i in range(n):
        for j in range(n + 1):
            posterior[i, j] = smaller(
                larger(posterior[i, j], 0.0), 1.0
            )  # rounding of differences of terms of order one
    return total


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


class DrawSpace(NamedTuple):
    """Of `draw_forest`, for n nodes and blocks of a given size."""

    mantissa: np.ndarray  # (n, n + 1)
    exponent: np.ndarray  # (n, n + 1) integers
    placed: np.ndarray  # (n, n + 1)
    small: np.ndarray  # (block, block + 1)
    small_exponent: np.ndarray
    numbers: np.ndarray  # (4, n + 1)
    integers: np.ndarray  # (4, n + 1)


def make_draw_space(n, block):
    """EliminationSpace for `draw_forest`."""
    shape, small = (n, n + 1), (block, block + 1)
    return DrawSpace(
        np.empty(shape), np.empty(shape, np.int64), np.empty(shape), np.empty(small), np.empty(small, np.int64),
        np.empty((4, n + 1)), np.empty((4, n + 1), np.int64),
    )  # fmt: skip


@compiled
def draw_forest(log_weights, uniforms, space, parents):
    """One forest with probability proportional to its weight: fills (n,) parents, -1 = root.

    Nodes decide one after another. Node i takes j with probability proportional to its weight times the escape of j: the
    chance that a random walk from j reaches the root before i. A node that has decided keeps one arc only, so that the next
    decision is exact too. For a block of nodes at a time all others are eliminated once; substitution gives their escapes.
    uniforms : (n,)
    """
    n, block = len(log_weights), len(space.small)
    mantissa, exponent, placed = space.mantissa, space.exponent, space.placed
    order = space.integers[0]  # the nodes of the block first
    choice_weights, log_escape = space.numbers[0], space.numbers[1]
    order[n] = n
    for i in range(n):
        order[i], parents[i] = i, -2
    for first in range(0, n, block):
        size = smaller(block, n - first)
        for i in range(size + first):
            order[i] = first + i if i < size else i - size
        for a in range(n):
            for b in range(n + 1):
                decided = parents[order[a]]
                if decided == -2:
                    placed[a, b] = log_weights[order[a], order[b]] if a != b else -inf
                else:
                    placed[a, b] = 0.0 if order[b] == decided % (n + 1) else -inf
        _load(placed, mantissa, exponent)
        for k in range(n - 1, size - 1, -1):
            _eliminate(mantissa, exponent, k, n, mantissa, False)
        for own in range(size):
            _log_escapes(space, size, own, log_escape)
            for b in range(n + 1):
                choice_weights[b] = log_weights[first + own, order[b]] + log_escape[b] if b != own else -inf
            chosen = _pick(choice_weights, uniforms[first + own])
            parents[first + own] = order[chosen] if chosen < n else -1
            _point(mantissa, exponent, size, own, chosen)


@compiled
def _log_escapes(space, size, own, result):
    """Log chance that a walk from each node reaches the root (the last column) before node `own`; nodes from `size` on are
    eliminated already."""
    mantissa, exponent, small, small_exponent = space.mantissa, space.exponent, space.small, space.small_exponent
    n = len(mantissa)
    order = space.integers[1]  # `own` goes last, that is first
    for k in range(size):
        order[k] = k
    order[0], order[own] = own, 0
    order[size] = n
    for a in range(size):
        for b in range(size + 1):
            small[a, b] = mantissa[order[a], order[b]] if a != b else 0.0
            small_exponent[a, b] = exponent[order[a], order[b]]
    for k in range(size - 1, 0, -1):
        _eliminate(small, small_exponent, k, size, small, False)
    h, eh = space.numbers[2], space.integers[2]
    found, found_exponent = space.numbers[3], space.integers[3]
    for k in range(n + 1):
        h[k], eh[k], found[k], found_exponent[k] = 0.0, 0, 0.0, 0
    h[n], found[size] = 1.0, 1.0
    for k in range(1, size):
        found[k], found_exponent[k] = _mean(small[k], small_exponent[k], found, found_exponent, k, size)
        h[order[k]], eh[order[k]] = found[k], found_exponent[k]
    for k in range(size, n):
        h[k], eh[k] = _mean(mantissa[k], exponent[k], h, eh, k, n)
    for k in range(n + 1):
        result[k] = log(h[k]) + eh[k] * _STEP_LOG if h[k] > 0.0 else -inf


@compiled
def _mean(weights, exponents, values, value_exponents, k, last):
    """Mean of `values` over columns 0..k-1 and the last, with these weights."""
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
        total += exp(log_weights[i] - top)
    running, last = 0.0, 0
    for i in range(len(log_weights)):
        weight = exp(log_weights[i] - top)
        if weight > 0.0:
            last = i
            running += weight
            if running > uniform * total:
                return i
    return last
