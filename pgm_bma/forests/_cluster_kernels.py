"""Compiled expectation step of the forest clusterer: look-ups over the columns, and the pairs of columns that matter."""

import numpy as np

from pgm_bma.foundation.compiling import compiled


@compiled
def expect_rows(codes, log_cluster, offsets, single, first, second, starts, widths, tables, q):
    """Responsibilities of complete rows into q (n, n_clusters); returns the entropy of every row.

    codes : (n, n_columns), of columns or super-columns     single : (S, n_clusters), states of column i from offsets[i]
    first, second : (n_pairs,) columns     starts : (n_pairs,) where a pair's table begins     widths : cardinality of second
    tables : (cells, n_clusters)
    """
    n_clusters = q.shape[1]
    entropy = np.empty(codes.shape[0])
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
    return entropy


@compiled
def normalise(line):
    """Log weights -> probabilities in place; returns their entropy."""
    peak = line[0]
    for k in range(1, len(line)):
        peak = max(peak, line[k])
    total, weighted = 0.0, 0.0
    for k in range(len(line)):
        shifted = line[k] - peak
        line[k] = np.exp(shifted)
        total += line[k]
        weighted += line[k] * shifted
    for k in range(len(line)):
        line[k] /= total
    return np.log(total) - weighted / total
