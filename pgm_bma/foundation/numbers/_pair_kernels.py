"""Compiled counting of pairs of super-columns, and what pairs of columns say of the class."""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled


@compiled
def group_pairs(columns, sizes, offsets, weights, counts):
    """Count super-columns (their own table at offsets[g, g]) and all pairs of them: adds to counts (n_lines, k)."""
    n, n_groups = columns.shape
    k = weights.shape[1]
    for s in range(n):
        for g in range(n_groups):
            a = columns[s, g]
            t = offsets[g, g] + a
            for c in range(k):
                counts[t, c] += weights[s, c]
            for h in range(g + 1, n_groups):
                t = offsets[g, h] + a * sizes[h] + columns[s, h]
                for c in range(k):
                    counts[t, c] += weights[s, c]


@compiled
def class_group_pairs(columns, sizes, offsets, target, weights, counts):
    """The same where every row belongs to one class: adds to counts (k, n_lines)."""
    n, n_groups = columns.shape
    for s in range(n):
        own, weight = counts[target[s]], weights[s]
        for g in range(n_groups):
            a = columns[s, g]
            own[offsets[g, g] + a] += weight
            for h in range(g + 1, n_groups):
                own[offsets[g, h] + a * sizes[h] + columns[s, h]] += weight


@compiled
def pair_interactions(codes, target, weights, cards, n_classes, max_cells):
    """I(X_i; X_j | C) - I(X_i; X_j) of all pairs, each over the rows that have both: (n, n) symmetric, zero diagonal.

    One table at a time, so that a column of many states costs its rows and cells only; NaN where it would exceed max_cells.
    """
    n_rows, n = codes.shape
    result = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            if float(cards[i]) * cards[j] * n_classes > max_cells:
                result[i, j] = result[j, i] = np.nan
                continue
            table = np.zeros((cards[i], cards[j], n_classes))
            total = 0.0
            for r in range(n_rows):
                if codes[r, i] >= 0 and codes[r, j] >= 0:
                    table[codes[r, i], codes[r, j], target[r]] += weights[r]
                    total += weights[r]
            if total > 0.0:
                result[i, j] = result[j, i] = interaction(table, total)
    return result


@compiled
def interaction(table, total):
    """The same of one table of weights (states, states, classes). Margins by loops: numba's sums compile for seconds."""
    one, two, three = table.shape
    pair, first, second = np.zeros((one, two)), np.zeros((one, three)), np.zeros((two, three))
    alone, other, classes = np.zeros((1, one)), np.zeros((1, two)), np.zeros((1, three))
    value = 0.0
    for a in range(one):
        for b in range(two):
            for c in range(three):
                share = table[a, b, c] / total
                if share > 0.0:
                    value += share * np.log(share)
                pair[a, b] += share
                first[a, c] += share
                second[b, c] += share
                alone[0, a] += share
                other[0, b] += share
                classes[0, c] += share
    value += _sum_x_log_x(alone) + _sum_x_log_x(other) + _sum_x_log_x(classes)
    return value - _sum_x_log_x(pair) - _sum_x_log_x(first) - _sum_x_log_x(second)


@compiled
def _sum_x_log_x(values):
    total = 0.0
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            if values[i, j] > 0.0:
                total += values[i, j] * np.log(values[i, j])
    return total
