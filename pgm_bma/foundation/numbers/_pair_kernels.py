"""Compiled counting of pairs of super-columns."""

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
