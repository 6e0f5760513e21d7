"""Compiled forest sums of many rows in plain doubles, which are six times as fast as numbers with a wide exponent.

A matrix holds the weights of one row of data: column 0 the root of every node, column j + 1 its arc from node j, every row of the
matrix scaled to sum 1. Nodes are eliminated as in `_kernels`, without a subtraction, 64 at a time so that the bulk of the work
is a product of matrices. What doubles cannot hold (weights under 1e-290 of their node's largest) is led, as an upper bound, to
a second root in the last column: forests with a lost arc are fewer than those in which that node became a root instead. So the
sum with the second root is above the true one, the sum without it below, and a row in which the two differ is told as undecided.
"""

import numpy as np

from pgm_bma.foundation.compiling import compiled

_BLOCK = 48
_LOST = 1e-290
_SMALL = 1e-200


@compiled(nogil=True)
def row_log_sums(cells, tables, scales, tolerance, sums):
    """Log forest sums of rows under every class into `sums` (rows, n_classes); nan where doubles do not decide it.

    cells : (rows, n) position of each column's state     tables : (n_classes, U, U + 1), [child state, parent state], the last
    column the roots, all divided by exp(scales) (n_classes, U) of the child's state     tolerance : of the log sums
    """
    n = cells.shape[1]
    a = np.empty((n, n + 2))
    for row in range(len(cells)):
        for c in range(len(tables)):
            sums[row, c] = _load(cells[row], tables[c], scales[c], a)
            if sums[row, c] == sums[row, c]:
                sums[row, c] += _log_sum(a, tolerance)


@compiled(nogil=True)
def _load(cells, table, scales, a):
    """Fill the matrix of one row and class; returns the logarithm of what was divided out, nan if a node has no weight."""
    n = len(cells)
    total = 0.0
    for i in range(n):
        line, out = table[cells[i]], a[i]
        out[0] = line[len(line) - 1]
        size = out[0]
        for j in range(n):
            out[j + 2] = line[cells[j]]
            size += out[j + 2]
        if not size > _SMALL:
            return np.nan
        for j in range(n + 2):
            out[j] /= size
        out[1] = n * _LOST / size
        total += np.log(size) + scales[cells[i]]
    return total


@compiled(nogil=True)
def _log_sum(a, tolerance):
    """Logarithm of the sum of one scaled matrix, which is used up; nan where the doubt is above `tolerance`."""
    total, doubt = 0.0, 0.0
    stop = len(a)
    small, visits = np.empty((_BLOCK, _BLOCK + 2)), np.empty((_BLOCK, _BLOCK))
    while stop > 2 * _BLOCK:
        # a block of nodes is eliminated on its own, all that stands outside it gathered in one column; what goes through the
        # block then follows at once, by the expected visits between its nodes
        first = stop - _BLOCK
        for i in range(_BLOCK):
            outside = a[first + i, 0]
            for j in range(2, first + 2):
                outside += a[first + i, j]
            small[i, 0], small[i, 1] = outside, a[first + i, 1]
            for j in range(_BLOCK):
                small[i, j + 2] = a[first + i, first + 2 + j]
                visits[i, j] = 1.0 if i == j else 0.0
        log_part, doubt_part = _eliminate(small, visits, True)
        total += log_part
        doubt += doubt_part
        into = np.dot(np.ascontiguousarray(a[:first, first + 2 : stop + 2]), visits)
        led = np.dot(into, np.ascontiguousarray(a[first:stop, : first + 2]))
        for i in range(first):
            to, source = a[i], led[i]
            for j in range(first + 2):
                to[j] += source[j]
        stop = first
    log_part, doubt_part = _eliminate(a[:stop, : stop + 2], visits, False)
    return total + log_part if doubt + doubt_part <= tolerance else np.nan


@compiled(nogil=True)
def _eliminate(a, visits, keep):
    """Eliminate all nodes of (n, n + 2); log sum and its doubt. With `keep`, `visits` (n, n), the unit matrix before, becomes the
    expected visits of a walk that enters at a node, [where it enters, whom it visits], before it leaves the block."""
    n = len(a)
    total, doubt = 0.0, 0.0
    pivots = np.empty(n)
    for k in range(n - 1, -1, -1):
        source = a[k]
        s = source[0]
        for j in range(2, k + 2):
            s += source[j]
        if not s > _SMALL:
            return np.nan, np.inf
        pivots[k] = s
        total += np.log(s)
        doubt += source[1] / s
        for i in range(k):
            to = a[i]
            f = to[k + 2] / s
            for j in range(k + 2):  # the entry of a node for itself is written and never read
                to[j] += f * source[j]
            if keep:  # 1 - B = (1 - F) S (1 - H), F above and H below the diagonal, S the pivots: first 1 / (1 - F)
                for j in range(k, n):
                    visits[i, j] += f * visits[k, j]
    if keep:  # then 1 / S and 1 / (1 - H)
        for k in range(n):
            for i in range(k):
                for j in range(n):
                    visits[k, j] += a[k, i + 2] * visits[i, j]
            for j in range(n):
                visits[k, j] /= pivots[k]
    return total, doubt
