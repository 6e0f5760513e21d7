"""Compiled expectation step of the forest clusterer: look-ups over the columns, and the pairs of columns that matter."""

from math import exp, log

from pgm_bma.foundation.numbers._special_kernels import largest
from pgm_bma.foundation.runtime.compiling import compiled


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
