"""Compiled forest sums of many rows in plain doubles, some ten times as fast as numbers with a wide exponent.

A matrix holds the weights of one row of data: column 0 the root of every node, column 1 a second root (below), column j + 2 its arc
from node j; every line of it is scaled to sum 1. Nodes are eliminated as in `_kernels`, without a subtraction, and where there are
many of them 48 at a time, so that the bulk of the work is a product of matrices. What doubles cannot hold (weights under 1e-290 of
their node's largest) is led, as an upper bound, to the second root: forests with a lost arc are fewer than those in which that node
became a root instead. So the sum with the second root is above the true one, the sum without it below, and a row in which the two
differ is reported as undecided.
"""

from math import exp, inf, log, nan

import numpy as np

from pgm_bma.foundation.numbers._kernels import largest
from pgm_bma.foundation.runtime.compiling import compiled

BLOCK = 48
_LOST = 1e-290
_SMALL = 1e-200


@compiled
def row_log_sums(cells, tables, scales, tolerance, sums, a, pivots):
    """Log forest sums of rows under every class into `sums` (rows, n_classes); nan where doubles do not decide it.

    cells : (rows, n) position of each column's state     tables : (n_classes, U, U + 1), [child state, parent state], the last
    column the roots, all divided by exp(scales) (n_classes, U) of the child's state     tolerance : of the log sums
    a, pivots : space, (n, n + 2) and (n,)
    """
    n = cells.shape[1]
    for row in range(len(cells)):
        for c in range(len(tables)):
            scale = _load(cells[row], tables[c], scales[c], a)
            total, doubt = _eliminate(a, n, pivots)
            sums[row, c] = scale + total if doubt <= tolerance else nan


@compiled
def blocked_row_log_sums(cells, tables, scales, tolerance, sums, a, pivots):
    """The same for many columns."""
    for row in range(len(cells)):
        for c in range(len(tables)):
            scale = _load(cells[row], tables[c], scales[c], a)
            stop, total, doubt = _eliminate_blocks(a, pivots)
            rest, rest_doubt = _eliminate(a, stop, pivots)
            sums[row, c] = scale + total + rest if doubt + rest_doubt <= tolerance else nan


@compiled
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
            return nan
        for j in range(n + 2):
            out[j] /= size
        out[1] = n * _LOST / size
        total += log(size) + scales[cells[i]]
    return total


@compiled
def _eliminate(a, n, pivots):
    """Eliminate the first n nodes of a matrix, which is used up; log sum and its doubt."""
    total, doubt = 0.0, 0.0
    for k in range(n - 1, -1, -1):
        s = a[k, 0]
        for j in range(2, k + 2):
            s += a[k, j]
        if not s > _SMALL:
            return nan, inf
        pivots[k] = s
        total += log(s)
        doubt += a[k, 1] / s
        for i in range(k):
            f = a[i, k + 2] / s
            for j in range(k + 2):  # the entry of a node for itself is written and never read
                a[i, j] += f * a[k, j]
    return total, doubt


@compiled
def _eliminate_blocks(a, pivots):
    """Eliminate blocks of nodes while many are left: (nodes left, log sum so far, its doubt).

    A block is eliminated on its own, all that stands outside it gathered in one column; what goes through the block then follows
    at once, by the expected visits between its nodes. Loops, not slices: these would compile numpy's error messages.
    """
    total, doubt = 0.0, 0.0
    stop = len(a)
    small, visits = np.empty((BLOCK, BLOCK + 2)), np.empty((BLOCK, BLOCK))
    while stop > 2 * BLOCK:
        first = stop - BLOCK
        for i in range(BLOCK):
            outside = a[first + i, 0]
            for j in range(2, first + 2):
                outside += a[first + i, j]
            small[i, 0], small[i, 1] = outside, a[first + i, 1]
            for j in range(BLOCK):
                small[i, j + 2] = a[first + i, first + 2 + j]
        log_part, doubt_part = _eliminate(small, BLOCK, pivots)
        total += log_part
        doubt += doubt_part
        _visits(small, pivots, visits)
        into, onward = np.empty((first, BLOCK)), np.empty((BLOCK, first + 2))
        for i in range(first):
            for j in range(BLOCK):
                into[i, j] = a[i, first + 2 + j]
        for i in range(BLOCK):
            for j in range(first + 2):
                onward[i, j] = a[first + i, j]
        led = np.dot(np.dot(into, visits), onward)
        for i in range(first):
            to, source = a[i], led[i]
            for j in range(first + 2):
                to[j] += source[j]
        stop = first
    return stop, total, doubt


@compiled
def _visits(a, pivots, visits):
    """Expected visits of a walk in an eliminated block before it leaves: [where it enters, whom it visits].

    1 - B = (1 - F) S (1 - H), F above and H below the diagonal, S the pivots; inverted factor by factor, all of it positive.
    """
    n = len(visits)
    for i in range(n):
        for j in range(n):
            visits[i, j] = 1.0 if i == j else 0.0
    for k in range(n - 1, -1, -1):
        for i in range(k):
            f = a[i, k + 2] / pivots[k]
            for j in range(k, n):
                visits[i, j] += f * visits[k, j]
    for k in range(n):
        for i in range(k):
            for j in range(n):
                visits[k, j] += a[k, i + 2] * visits[i, j]
        for j in range(n):
            visits[k, j] /= pivots[k]


# ------------------------------------------------------------------------------------------- rows of the clusterer


@compiled
def expect_rows(codes, log_cluster, offsets, single, first, second, starts, widths, tables, q, entropy):
    """Responsibilities of complete rows into q (n, n_clusters), the entropy of every row into entropy (n,).

    codes : (n, n_columns), of columns or super-columns     single : (S, n_clusters), states of column i from offsets[i]
    first, second : (n_pairs,) columns     starts : (n_pairs,) where a pair's table begins     widths : cardinality of second
    tables : (cells, n_clusters)
    """
    n_clusters = q.shape[1]
    for row in range(codes.shape[0]):
        line = q[row]
        for k in range(n_clusters):
            line[k] = log_cluster[k]
        for i in range(codes.shape[1]):
            state = offsets[i] + codes[row, i]
            for k in range(n_clusters):
                line[k] += single[state, k]
        for p in range(len(first)):
            cell = starts[p] + codes[row, first[p]] * widths[p] + codes[row, second[p]]
            for k in range(n_clusters):
                line[k] += tables[cell, k]
        entropy[row] = normalise(line)


@compiled
def normalise(line):
    """Log weights -> probabilities in place; returns their entropy."""
    peak = largest(line)
    total, weighted = 0.0, 0.0
    for k in range(len(line)):
        shifted = line[k] - peak
        line[k] = exp(shifted)
        total += line[k]
        weighted += line[k] * shifted
    for k in range(len(line)):
        line[k] /= total
    return log(total) - weighted / total
