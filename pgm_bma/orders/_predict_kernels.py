"""Compiled posterior means of many families at many rows (second line of ORD eq. 7), and their mixtures at completed rows."""

import numpy as np

from pgm_bma.foundation._special_kernels import larger, smaller
from pgm_bma.foundation.compiling import compiled, compiled_loops

MAX_CELLS = 4_000_000  # larger family tables are counted row by row instead


@compiled(nogil=True)
def predict_families(codes, weights, cards, alpha, total, children, parents, rows, out):
    """out[k, r] = posterior mean of the value of children[k] in rows[r] given the row's values of parents[k].

    codes : (n, n_samples) training rows, one variable after another     weights : (n_samples,)
    alpha, total : most pseudo-counts of a cell and of a table (`family_table.bounds`)
    parents : (n_families, width), padded with -1     rows : (n, n_rows)
    """
    largest = 1
    for k in range(children.size):
        cells = n_cells(cards, children[k], parents[k])
        if cells <= MAX_CELLS:
            largest = larger(largest, int(cells))
    means = np.zeros(largest)
    place = np.zeros(rows.shape[1], dtype=np.int64)
    for k in range(children.size):
        child = children[k]
        r = cards[child]
        cells = n_cells(cards, child, parents[k])
        a = smaller(alpha, total / cells)
        if cells > MAX_CELLS:
            _predict_by_matching(codes, weights, child, parents[k], a, r, rows, out[k])
            continue
        _family_means(codes, weights, cards, child, parents[k], a, means[: int(cells)])
        place[:] = 0
        for t in range(parents.shape[1]):
            p = parents[k, t]
            if p < 0:
                break
            for row in range(rows.shape[1]):
                place[row] = place[row] * cards[p] + rows[p, row]
        for row in range(rows.shape[1]):
            out[k, row] = means[place[row] * r + rows[child, row]]


@compiled(nogil=True)
def mean_tables(codes, weights, cards, alpha, total, child, parents, starts, tables):
    """tables[starts[k] : starts[k + 1]] = posterior means of `child` given parents[k], the child's value counting fastest."""
    for k in range(len(parents)):
        a = smaller(alpha, total / (starts[k + 1] - starts[k]))
        _family_means(codes, weights, cards, child, parents[k], a, tables[starts[k] : starts[k + 1]])


@compiled(nogil=True)
def _family_means(codes, weights, cards, child, parents, a, means):
    r = cards[child]
    means[:] = 0.0
    for s in range(weights.size):
        index = 0
        for t in range(parents.size):
            p = parents[t]
            if p < 0:
                break
            index = index * cards[p] + codes[p, s]
        means[index * r + codes[child, s]] += weights[s]
    for q in range(0, means.size, r):
        total = a * r
        for value in range(r):
            total += means[q + value]
        for value in range(r):
            means[q + value] = (a + means[q + value]) / total


@compiled_loops
def n_cells(cards, child, parents):
    """Cells of a family; a float, because wide families are beyond integers."""
    cells = float(cards[child])
    for t in range(parents.size):
        if parents[t] >= 0:
            cells *= cards[parents[t]]
    return cells


@compiled(nogil=True)
def mix_completions(tables, starts, weights, child, parents, rows, first, hidden, class_index, cards, binomials, out):
    """Add to out[k, c] the mixture over the families of `child` at completion k with class c; (n_rows, n_classes, n_structures).

    tables, starts : from `mean_tables`     weights : (n_families, n_structures)
    rows : (n_rows, n) completions, of source i in first[i] : first[i + 1]; their class (unless class_index is -1) is overwritten
    hidden : (n_sources, n) cells in which the completions of a source may differ, the class among them
    binomials : (n + 1, at least the width of parents + 1)

    Families of a source with the same hidden parents are one small table over those, summed once: a completion then looks
    up one entry per group of hidden parents, not one per family.
    """
    n_families, width = parents.shape
    n_classes, n_structures = out.shape[1:]
    n_ranks = 0
    for i in range(len(hidden)):
        at_most, n_hidden = 0, 0
        for v in range(cards.size):
            n_hidden += hidden[i, v]
        for size in range(width + 1):
            at_most += binomials[n_hidden, size]
        n_ranks = larger(n_ranks, at_most)
    group_at = np.zeros(n_ranks, dtype=np.int64)  # by rank of the hidden parents: by size, then colexicographic
    for rank in range(n_ranks):
        group_at[rank] = -1
    rank_of, group_of = np.zeros(n_families, dtype=np.int64), np.zeros(n_families, dtype=np.int64)
    members = np.zeros((n_families, width + 1), dtype=np.int64)
    group_start = np.zeros(n_families + 1, dtype=np.int64)
    place = np.zeros(cards.size, dtype=np.int64)
    sizes, strides = np.zeros(width + 1, dtype=np.int64), np.zeros(width + 1, dtype=np.int64)
    counter = np.zeros(width + 1, dtype=np.int64)
    holds_class = np.zeros(n_families, dtype=np.bool_)
    sums, shared = np.zeros((1, n_structures)), np.zeros(n_structures)
    for i in range(len(hidden)):
        m = 0
        for v in range(cards.size):
            place[v] = m
            m += hidden[i, v]
        n_groups = 0
        for k in range(n_families):
            size, rank = 0, 0
            for t in range(width):
                p = parents[k, t]
                if p >= 0 and hidden[i, p]:
                    size += 1
                    rank += binomials[place[p], size]
            for fewer in range(size):
                rank += binomials[m, fewer]
            if group_at[rank] < 0:
                group_at[rank], rank_of[n_groups] = n_groups, rank
                cells, size = 1, 0
                holds_class[n_groups] = False
                for t in range(width + 1):
                    members[n_groups, t] = -1
                for t in range(width + 1):
                    p = parents[k, t] if t < width else child
                    if p >= 0 and hidden[i, p]:
                        members[n_groups, size] = p
                        holds_class[n_groups] |= p == class_index
                        cells *= cards[p]
                        size += 1
                group_start[n_groups + 1] = group_start[n_groups] + cells
                n_groups += 1
            group_of[k] = group_at[rank]
        for g in range(n_groups):
            group_at[rank_of[g]] = -1
        if group_start[n_groups] > len(sums):
            sums = np.zeros((group_start[n_groups], n_structures))
        for place_in_sums in range(group_start[n_groups]):
            for s in range(n_structures):
                sums[place_in_sums, s] = 0.0
        for k in range(n_families):
            at, stride, n_digits = starts[k], 1, 0
            for t in range(width, -1, -1):
                p = child if t == width else parents[k, t]
                if p < 0:
                    continue
                if hidden[i, p]:
                    sizes[n_digits], strides[n_digits] = cards[p], stride
                    n_digits += 1
                else:
                    at += rows[first[i], p] * stride
                stride *= cards[p]
            for place_in_sums in range(group_start[group_of[k]], group_start[group_of[k] + 1]):
                for s in range(n_structures):
                    sums[place_in_sums, s] += weights[k, s] * tables[at]
                for d in range(n_digits):  # the next values of the hidden members, the child's fastest
                    counter[d] += 1
                    at += strides[d]
                    if counter[d] < sizes[d]:
                        break
                    at -= strides[d] * sizes[d]
                    counter[d] = 0
        for k in range(first[i], first[i + 1]):
            for s in range(n_structures):
                shared[s] = 0.0
            for c in range(-1, n_classes):  # first the groups that do not hold the class
                if c >= 0:
                    for s in range(n_structures):
                        out[k, c, s] += shared[s]
                    if class_index >= 0:
                        rows[k, class_index] = c
                for g in range(n_groups):
                    if holds_class[g] != (c >= 0):
                        continue
                    index = 0
                    for t in range(width + 1):
                        p = members[g, t]
                        if p < 0:
                            break
                        index = index * cards[p] + rows[k, p]
                    index += group_start[g]
                    for s in range(n_structures):
                        if c >= 0:
                            out[k, c, s] += sums[index, s]
                        else:
                            shared[s] += sums[index, s]


@compiled_loops
def _predict_by_matching(codes, weights, child, parents, a, r, rows, out):
    for row in range(rows.shape[1]):
        above, below = a, a * r
        for s in range(weights.size):
            same = True
            for t in range(parents.size):
                if parents[t] >= 0 and codes[parents[t], s] != rows[parents[t], row]:
                    same = False
                    break
            if same:
                below += weights[s]
                if codes[child, s] == rows[child, row]:
                    above += weights[s]
        out[row] = above / below
