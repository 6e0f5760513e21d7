"""Compiled posterior means of many families at many rows (second line of ORD eq. 7), and their mixtures at completed rows."""

import numpy as np

from pgm_bma.foundation.numbers._kernels import smaller
from pgm_bma.foundation.runtime.compiling import compiled

MAX_CELLS = 4_000_000  # larger family tables are counted row by row instead


@compiled
def predict_families(codes, weights, cards, alpha, total, children, parents, cells, rows, means, place, out):
    """out[k, r] = posterior mean of the value of children[k] in rows[r] given the row's values of parents[k].

    codes : (n, n_samples) training rows, one variable after another     weights : (n_samples,)
    alpha, total : most pseudo-counts of a cell and of a table (`family_table.bounds`)
    parents : (n_families, width), padded with -1     rows : (n, n_rows)
    cells : (n_families,) of every family's table; floats, because wide families are beyond integers
    means, place : (most cells up to MAX_CELLS,), (n_rows,) space
    """
    for k in range(children.size):
        child = children[k]
        r = cards[child]
        a = smaller(alpha, total / cells[k])
        if cells[k] > MAX_CELLS:
            _predict_by_matching(codes, weights, child, parents[k], a, r, rows, out[k])
            continue
        _family_means(codes, weights, cards, child, parents[k], a, means[: np.int64(cells[k])])
        for row in range(rows.shape[1]):
            place[row] = 0
        for t in range(parents.shape[1]):
            p = parents[k, t]
            if p < 0:
                break
            for row in range(rows.shape[1]):
                place[row] = place[row] * cards[p] + rows[p, row]
        for row in range(rows.shape[1]):
            out[k, row] = means[place[row] * r + rows[child, row]]


@compiled
def mean_tables(codes, weights, cards, alpha, total, child, parents, starts, tables):
    """tables[starts[k] : starts[k + 1]] = posterior means of `child` given parents[k], the child's value counting fastest."""
    for k in range(len(parents)):
        a = smaller(alpha, total / (starts[k + 1] - starts[k]))
        _family_means(codes, weights, cards, child, parents[k], a, tables[starts[k] : starts[k + 1]])


@compiled
def _family_means(codes, weights, cards, child, parents, a, means):
    r = cards[child]
    for cell in range(means.size):
        means[cell] = 0.0
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


@compiled
def mix_completions(
    tables, starts, weights, child, parents, rows, first, hidden, class_index, cards, binomials, group_at, space, sums, out
):  # fmt: skip
    """Add to out[k, c] the mixture over the families of `child` at completion k with class c; (n_rows, n_classes, n_structures).

    tables, starts : from `mean_tables`     weights : (n_families, n_structures)
    rows : (n_rows, n) completions, of source i in first[i] : first[i + 1]; their class (unless class_index is -1) is overwritten
    hidden : (n_sources, n) cells in which the completions of a source may differ, the class among them
    binomials : (n + 1, at least the width of parents + 1)
    group_at : -1 for every set of hidden parents     space : see `fixed_order._mix_completions`
    sums : (cells of all tables, n_structures) space

    Families of a source with the same hidden parents are one small table over those, summed once: a completion then looks
    up one entry per group of hidden parents, not one per family.
    """
    n_families, width = parents.shape
    n_classes, n_structures = out.shape[1:]
    rank_of, group_of, group_start, members, digits, place, holds_class, shared = space
    sizes, strides, counter = digits[0], digits[1], digits[2]
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


@compiled
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
