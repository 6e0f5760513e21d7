"""Compiled scores of all pairs of columns, Dirichlet and mutual information: millions of small tables in one walk."""

import numpy as np

from pgm_bma.foundation.numbers._special_kernels import log_gamma, stirling
from pgm_bma.foundation.runtime.compiling import compiled

_SAME = 1e-11  # relative: two sums over the same rows in another order


@compiled
def add_scores(table, singles, starts, below, alone, single_scores, symmetric, with_parent, without_parent):
    """Add the scores of every child [parent, child] in one class, without what the prior alone contributes to `with_parent`.

    table : counts of pairs of states, rows those of the parents     singles : (S,) of single states
    starts : (n + 1,) states of a column     below : (n, n), alone : (n,) pseudo-counts of a cell
    single_scores : (n,) of every column on its own     with_parent, without_parent : (n, n)
    symmetric : `below` is; half of the cells are then read off the other half
    """
    n = len(with_parent)
    cells = np.empty((n, n) if symmetric else (1, 1))
    widest = 1
    for i in range(n):
        widest = max(widest, starts[i + 1] - starts[i])
    lines, line_scores, masses = np.empty(widest), np.empty(widest), np.empty(widest)
    margin = np.empty(widest)
    for i in range(n):
        top, n_lines = starts[i], starts[i + 1] - starts[i]
        for s in range(n_lines):
            masses[s] = -1.0
        for j in range(n):
            begin, end = starts[j], starts[j + 1]
            mass = below[i, j] * (end - begin)
            if symmetric and j < i:
                total = cells[j, i]
            else:
                total = _log_gammas(table, top, top + n_lines, begin, end, below[i, j])
            if symmetric:
                cells[i, j] = total
            for t in range(end - begin):
                margin[t] = 0.0
            for s in range(n_lines):
                line = 0.0
                for t in range(end - begin):
                    line += table[top + s, begin + t]
                    margin[t] += table[top + s, begin + t]
                single = singles[starts[i] + s]
                if abs(line - single) <= _SAME * single:  # no missing cells: the same for all children
                    line = single
                if masses[s] != mass or lines[s] != line:
                    masses[s], lines[s], line_scores[s] = mass, line, log_gamma(line + mass)
                total -= line_scores[s]
            with_parent[i, j] += total
            without_parent[i, j] += _alone(singles, begin, end, margin, alone[j], single_scores[j])


@compiled
def add_cells(table, starts, first, below, known, cells):
    """Add the sum of log Gamma(count + pseudo-count) of a class to `cells`, for every column with those before it.

    table : counts of pairs of states, rows those of some columns from `first` on     below : (n, n) pseudo-counts of a cell
    known : log Gamma(m + pseudo-count) of the whole numbers m, where all pseudo-counts are the same; else empty
    """
    for p in range(len(cells)):
        i = first + p
        top, stop = starts[i] - starts[first], starts[i + 1] - starts[first]
        for j in range(i + 1):
            total, is_known = 0.0, len(known) > 0
            for s in range(top, stop):
                for t in range(starts[j], starts[j + 1]):
                    if is_known:
                        m = int(table[s, t])
                        if m < len(known) and m == table[s, t]:
                            total += known[m]
                        else:
                            is_known = False
            if not is_known:
                total = _log_gammas(table, top, stop, starts[j], starts[j + 1], below[i, j])
            cells[p, j] += total


@compiled
def _log_gammas(table, first, stop, begin, end, a):
    """Sum of log Gamma(cell + a) over a block; Gamma functions are shifted upwards by products, closed by one logarithm."""
    total, up = 0.0, 1.0
    for s in range(first, stop):
        for t in range(begin, end):
            x = table[s, t] + a
            if x < 1e-100:
                total -= np.log(x)
                x += 1.0
            while x < 10.0:
                up *= x
                x += 1.0
            total += stirling(x)
            if up > 1e150 or up < 1e-150:
                total -= np.log(up)
                up = 1.0
    return total - np.log(up)


@compiled
def _alone(singles, begin, end, margin, alpha, single_score):
    """Score of a child without its parent on the rows that have both."""
    same = True
    for t in range(end - begin):
        single = singles[begin + t]
        same = same and abs(margin[t] - single) <= _SAME * single
    if same:
        return single_score
    score, total, mass = 0.0, 0.0, alpha * (end - begin)
    for t in range(end - begin):
        score += log_gamma(margin[t] + alpha) - log_gamma(alpha)
        total += margin[t]
    return score + log_gamma(mass) - log_gamma(total + mass)


@compiled
def add_information(table, starts, first, information, total):
    """Add count times log ratio of a class, and its counts, (rows' columns, n): of every column with those before it.

    table : counts of pairs of states, rows those of some columns from `first` on     starts : (n + 1,) states of a column
    """
    widest = 1
    for i in range(len(starts) - 1):
        widest = max(widest, starts[i + 1] - starts[i])
    rows, lines = np.empty(widest), np.empty(widest)
    for p in range(len(information)):
        i = first + p
        top, n_rows = starts[i] - starts[first], starts[i + 1] - starts[i]
        for j in range(i):
            begin, n_lines = starts[j], starts[j + 1] - starts[j]
            count = 0.0
            for t in range(n_lines):
                lines[t] = 0.0
            for s in range(n_rows):
                rows[s] = 0.0
                for t in range(n_lines):
                    x = table[top + s, begin + t]
                    rows[s] += x
                    lines[t] += x
                count += rows[s]
            value = 0.0
            for s in range(n_rows):
                for t in range(n_lines):
                    x = table[top + s, begin + t]
                    if x > 0.0:
                        value += x * np.log(x / rows[s] * (count / lines[t]))
            information[p, j] += value
            total[p, j] += count


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
