"""Compiled kernels of the numbers that several methods share.

- Special functions for compiled loops: log Gamma, digamma, logistic and log-add, to about 1e-14. Compiled code reaches the C
  library's log Gamma one slow call at a time; these are shifted upwards by products and closed by Stirling's series, one or two
  logarithms each. Arguments are positive (expected counts plus a prior). And what numba compiles slowly from numpy or Python, as
  plain loops.
- Scores of all pairs of columns, Dirichlet and mutual information: millions of small tables in one sweep.
- One step of ancestral sampling: the states of one node in all rows.
- Colours of rows, for folds that follow from the data alone.
"""

from math import exp, inf, log, log1p

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled


@compiled
def stirling(x):
    """log Gamma(x), x >= 10; the first term left out is below 2e-14."""
    y = 1.0 / x
    z = y * y
    series = y * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188))))
    return (x - 0.5) * log(x) - x + 0.9189385332046727 + series


@compiled
def log_gamma(x):
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    return stirling(x) - log(product)


@compiled
def digamma(x):
    """psi(x), x > 0: shifted upwards to x >= 10, the reciprocals gathered over one denominator."""
    numerator, denominator = 0.0, 1.0
    while x < 10.0:
        numerator = numerator * x + denominator
        denominator *= x
        x += 1.0
    y = 1.0 / x
    z = y * y
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z / 132))))
    return log(x) - 0.5 * y - series - numerator / denominator


@compiled
def logistic(x):
    if x >= 0.0:
        return 1.0 / (1.0 + exp(-x))
    e = exp(x)
    return e / (1.0 + e)


@compiled
def log_add(a, b):
    high, low = larger(a, b), smaller(a, b)
    return high if low == -inf else high + log1p(exp(low - high))


@compiled
def copy_into(source, target):
    """``target[:] = source`` for matrices. A loop: numba would compile the error messages of that line, five seconds of them."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@compiled
def largest(values):
    """``values.max()`` of a vector; a loop compiles in a tenth of the time."""
    top = values[0]
    for i in range(1, len(values)):
        top = larger(top, values[i])
    return top


@compiled
def larger(a, b):
    """``max(a, b)``, without the compiled function that numba makes of it for every pair of types."""
    return b if b > a else a


@compiled
def smaller(a, b):
    """``min(a, b)``"""
    return b if b < a else a


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
def add_filled_cells(codes, rows, weights, cards, below, start, stop, scores):
    """Add the sum of log Gamma(count + pseudo-count) of a class to `scores`, for columns start <= i < stop with those before them.

    One table at a time, of which the cells that some row falls in are counted: all the others are alike.
    codes : (n_columns, n_rows)     rows, weights : those of the class     cards : (n_columns,)
    below, scores : (n_columns, n_columns)
    """
    widest = 1
    for i in range(stop):
        widest = max(widest, cards[i])
    places, lines = np.full(widest * widest, -1, dtype=np.int32), np.empty(len(rows), dtype=np.int32)
    filled, counts = np.empty(len(rows), dtype=np.int32), np.empty((1, len(rows)))
    for i in range(start, stop):
        for s in range(len(rows)):
            lines[s] = codes[i, rows[s]]
        for j in range(i):
            card, n_cells = cards[j], cards[i] * cards[j]
            n_filled = 0
            if n_cells <= len(rows):  # most cells are filled: no need to know which
                n_filled = n_cells
                for cell in range(n_cells):
                    counts[0, cell] = 0.0
                for s in range(len(rows)):
                    counts[0, lines[s] * card + codes[j, rows[s]]] += weights[s]
            else:
                for s in range(len(rows)):
                    cell = lines[s] * card + codes[j, rows[s]]
                    place = places[cell]
                    if place < 0:
                        place = n_filled
                        places[cell], filled[place], counts[0, place] = place, cell, 0.0
                        n_filled += 1
                    counts[0, place] += weights[s]
                for place in range(n_filled):
                    places[filled[place]] = -1
            total = _log_gammas(counts, 0, 1, 0, n_filled, below[i, j])
            scores[i, j] += total + (n_cells - n_filled) * log_gamma(below[i, j])


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
    """Count super-columns (their own table at offsets[g, g]) and all pairs of them: adds to counts (n_lines, k).

    columns : (n_groups, n). One table after the other stays in the first cache; all of them together may not stay in any.
    """
    n_groups, n = columns.shape
    k = weights.shape[1]
    for g in range(n_groups):
        first = columns[g]
        for s in range(n):
            for c in range(k):
                counts[offsets[g, g] + first[s], c] += weights[s, c]
        for h in range(g + 1, n_groups):
            second, start, size = columns[h], offsets[g, h], sizes[h]
            for s in range(n):
                for c in range(k):
                    counts[start + first[s] * size + second[s], c] += weights[s, c]


@compiled
def class_group_pairs(columns, sizes, offsets, target, weights, counts):
    """The same where every row belongs to one class: adds to counts (k, n_lines)."""
    n_groups, n = columns.shape
    for g in range(n_groups):
        first = columns[g]
        for s in range(n):
            counts[target[s], offsets[g, g] + first[s]] += weights[s]
        for h in range(g + 1, n_groups):
            second, start, size = columns[h], offsets[g, h], sizes[h]
            for s in range(n):
                counts[target[s], start + first[s] * size + second[s]] += weights[s]


@compiled
def pair_interactions(codes, target, weights, cards, n_classes, max_cells, start, stop, result):
    """I(X_i; X_j | C) - I(X_i; X_j) of pairs j < i, start <= i < stop, each over the rows that have both: into (n, n), symmetric.

    One table at a time, so that a column of many states costs its rows and cells only; NaN where it would exceed max_cells.
    """
    n_rows = len(codes)
    for i in range(start, stop):
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


@compiled
def draw_states(uniform, codes, node, family, cpt, cardinalities, index):
    """Write ``codes[node]``: the number of thresholds of the row's parent state at or below its uniform draw.

    codes : (n_nodes, n_rows)    family : (n_parents,) nodes, first slowest    cpt : (n_parent_states, n_states)
    cardinalities : (n_nodes,)   index : (n_rows,) working space
    returns False, and writes nothing, where a row of the table is not a distribution
    """
    thresholds = np.empty((cpt.shape[1] - 1, cpt.shape[0]))
    for row in range(cpt.shape[0]):
        total = 0.0
        for k in range(cpt.shape[1]):
            if not cpt[row, k] >= 0:
                return False
            total += cpt[row, k]
        if not 0 < total < np.inf:
            return False
        # dividing the running sum by its own last entry makes it exactly 1 once the mass is used up: a state of
        # probability 0 is never drawn
        running = 0.0
        for k in range(cpt.shape[1] - 1):
            running += cpt[row, k]
            thresholds[k, row] = running / total
    index[:] = 0
    for j in range(len(family)):
        parent, cardinality = codes[family[j]], cardinalities[family[j]]
        for i in range(len(index)):
            index[i] = index[i] * cardinality + parent[i]
    states = codes[node]
    states[:] = 0
    for k in range(len(thresholds)):
        threshold = thresholds[k]
        for i in range(len(index)):
            states[i] += uniform[i] >= threshold[index[i]]
    return True


@compiled
def _log_sum(values, start, stop):
    """ln of the sum of exp(values[start:stop])."""
    top = -np.inf
    for i in range(start, stop):
        top = max(top, values[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(start, stop):
        total += exp(values[i] - top)
    return top + log(total)


@compiled
def sum_partitions(evidence, cut_prior, cell_weights, cuts):
    """ln of the exact sum over all 2^(m - 1) interval partitions of m bins, each boundary cut with prior probability `cut_prior`.

    evidence : (m, m + 1), ln of the evidence of the interval [a, b)
    cell_weights : (m, m + 1), filled with the posterior of the interval [a, b)
    cuts : (m,), filled with the posterior of a cut before bin i (0 has none)
    """
    m = len(evidence)
    forward, backward, weights = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1)
    cut, stay = log(cut_prior), log(1.0 - cut_prior)
    forward[0], backward[m] = 0.0, 0.0
    for b in range(1, m + 1):
        for a in range(b):
            weights[a] = forward[a] + evidence[a, b] + (b - a - 1) * stay + (cut if a > 0 else 0.0)
        forward[b] = _log_sum(weights, 0, b)
    for a in range(m - 1, -1, -1):
        for b in range(a + 1, m + 1):
            weights[b] = backward[b] + evidence[a, b] + (b - a - 1) * stay + (cut if b < m else 0.0)
        backward[a] = _log_sum(weights, a + 1, m + 1)
    for a in range(m):
        before = forward[a] + (cut if a > 0 else 0.0)
        cuts[a] = exp(before + backward[a] - forward[m]) if a > 0 else 0.0
        for b in range(a + 1, m + 1):
            after = backward[b] + (cut if b < m else 0.0)
            cell_weights[a, b] = exp(before + evidence[a, b] + (b - a - 1) * stay + after - forward[m])
    return forward[m]


@compiled
def refine_colours(codes, rows, n_rounds):
    """Colours of rows by the colours of their states, and back; the last column is the class. Sums of hashes, so no order counts.

    codes : (n_rows, n_columns) int64, -1 = missing     rows : (n_rows,) uint64, what tells rows apart beforehand
    """
    n_rows, n = codes.shape
    colours = np.empty(n_rows, np.uint64)
    for r in range(n_rows):
        colours[r] = _mix(rows[r])
    totals = np.empty(n_rows, np.uint64)
    for _ in range(n_rounds):
        totals[:] = np.uint64(0)
        for j in range(n):
            states = np.zeros(largest(codes[:, j]) + 2, np.uint64)  # the first is for missing cells
            for r in range(n_rows):
                states[codes[r, j] + 1] += _mix(colours[r])
            column = np.uint64(1 if j == n - 1 else 2)
            for s in range(1, len(states)):
                column += _mix(states[s])
            states[0] = _mix(states[0] + np.uint64(3))
            for r in range(n_rows):
                totals[r] += _mix(_mix(states[codes[r, j] + 1]) ^ column)
        for r in range(n_rows):
            colours[r] = _mix(colours[r] + totals[r])
    return colours


@compiled
def _mix(x):
    """A 64-bit hash (splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
