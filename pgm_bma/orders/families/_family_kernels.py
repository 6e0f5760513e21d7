"""Compiled scoring of all families at once.

A family score splits into two sums over cells that do not depend on which variable is the child (ORD eq. 7):

    log S(child; Z) = A(Z + child) - B(Z, child)     A(T) = sum over the cells of T of lgamma(a + N) - lgamma(a)

so one table per *set* serves all of its members as children. With K2, a is `alpha`, and B uses alpha times the child's
cardinality; with BDeu, a is the equivalent sample size over the number of cells, and B(Z) is A(Z) itself.

The sets are walked depth first, so that a set extends the cells of its prefix. Cells are bitsets over rows, counted by AND
and popcount, or (`use_bits=False`: many weighted rows) row lists with cell numbers. Empty cells add nothing and are not kept.
"""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from pgm_bma.foundation.numbers._kernels import smaller
from pgm_bma.foundation.runtime.compiling import compiled


def _popcount(typingctx, word):
    """Number of ones in a 64-bit word: one machine instruction."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen  # signed: int64 + uint64 would be a float


popcount: Any = intrinsic(_popcount)


@compiled
def score_families(data, prior, layout, use_bits, space, walk, scores, depth, n_sets):
    """Add the log marginal likelihood of families to `scores` (n_families,), which comes in as zeros.

    depth : -1 at first, then what the last call returned, until that is -1 again     n_sets : steps of this call, so that Ctrl-C
    is heard between two calls

    data : (bits (n_values, n_words), first_value (n,), codes (n, n_rows), weights (n_rows,), cardinalities (n,))
    prior : (most per cell, most per table, lgamma tables or empty, child_row (n,), products), see `family_table.lgamma_tables`
    layout : (local (n, n) position of a variable among the candidates of a child or -1, offsets (n + 1,),
              n_candidates (n,), binomials (n + 1, max_indegree + 2), max_indegree)
    space : from `family_table.scratch`
    walk : (covered (max_indegree + 1, n), members and others (3, max_indegree + 1), known (n + 2,), value_of (n + 2,)), space too
    """
    bits, first_value, codes, weights, cards = data
    local, max_indegree = layout[0], layout[4]
    n, n_rows, n_words = cards.size, codes.shape[1], bits.shape[1]
    cell_bits, cell_of_row, counts, scratch, labels, n_cells, products = space
    covered, places, known, value_of = walk  # covered: children whose candidates cover the set
    members, following, base = places[0], places[1], places[2]
    if n_rows == 0:
        return depth
    if depth < 0:
        for row in range(n_rows):
            counts[0, 0] += weights[row]
        n_cells[0] = 1
        if use_bits:
            for value in range(first_value[0], first_value[0] + cards[0]):
                for w in range(n_words):
                    cell_bits[0, 0, w] |= bits[value, w]
        depth += 1  # no literal: the functions below would be compiled once more for it
        _subtract_parents(
            members, depth, covered[0], counts[0], n_cells[0], 1.0, cards, prior, layout, known, value_of, scores
        )
    while depth >= 0 and n_sets > 0:
        n_sets -= 1
        if depth == max_indegree:
            cells = cell_bits[depth] if use_bits else cell_bits[0]
            _add_leaves(
                members, depth, covered[depth], cells, cell_of_row[depth], counts[depth], n_cells[depth], products[depth],
                data, prior, layout, use_bits, scratch, base, scores,
            )  # fmt: skip
            depth -= 1
            continue
        v = following[depth]
        if v == n:
            depth -= 1
            continue
        following[depth] = v + 1
        useful = False
        for i in range(n):
            covered[depth + 1, i] = covered[depth, i] and (i == v or local[i, v] >= 0)
            useful |= covered[depth + 1, i]
        if not useful:
            continue
        members[depth] = v
        depth += 1
        following[depth] = v + 1
        products[depth] = products[depth - 1] * cards[v]
        if use_bits:
            values = bits[first_value[v] : first_value[v] + cards[v]]
            n_cells[depth] = split_bits(
                cell_bits[depth - 1], counts[depth - 1], n_cells[depth - 1], values, counts[depth], cell_bits[depth]
            )
        else:
            n_cells[depth] = split_rows(
                cell_of_row[depth - 1], n_cells[depth - 1], codes[v], cards[v], weights, scratch, labels,
                counts[depth], cell_of_row[depth],
            )  # fmt: skip
        value = cell_sum(counts[depth], n_cells[depth], np.int64(-1), products[depth], cards, prior)
        for k in range(depth):
            if covered[depth, members[k]]:
                scores[_family(members[k], members, depth, layout)] += value
        _subtract_parents(
            members, depth, covered[depth], counts[depth], n_cells[depth], products[depth], cards, prior, layout, known,
            value_of, scores,
        )  # fmt: skip
    return depth


@compiled
def _add_leaves(
    members, size, covered, cells, cell_of_row, counts, n_cells, product, data, prior, layout, use_bits, scratch, base, scores
):  # fmt: skip
    """A(T) of the largest sets, `members[:size]` and one variable behind them, added to the families inside T."""
    bits, first_value, codes, weights, cards = data
    alpha, total, tables, _, products = prior
    first_row = tables.shape[0] - 2 * products.size
    local, offsets, n_candidates, binomials, _ = layout
    for k in range(size):  # base: place of (member, other members and a variable still to be named)
        child = members[k]
        base[k] = _family(child, members, size, layout) - offsets[child]
        for t in range(size - 1):
            base[k] -= binomials[n_candidates[child], t]
        base[k] += offsets[child]
        for t in range(size):
            base[k] += binomials[n_candidates[child], t]
    row = 0
    first = members[size - 1] + 1 if size else 0
    for v in range(first, cards.size):
        useful = covered[v]
        for k in range(size):
            useful |= covered[members[k]] and local[members[k], v] >= 0
        if not useful:
            continue
        a = smaller(alpha, total / (product * cards[v]))
        if tables.shape[0]:
            row = first_row + _row_of(products, product * cards[v])
        if use_bits:
            value = leaf_by_bits(cells, counts, n_cells, bits, first_value[v], cards[v], a, tables, row)
        else:
            value = leaf_by_rows(cell_of_row, n_cells, codes[v], cards[v], weights, scratch, a, tables, row)
        for k in range(size):
            child = members[k]
            if covered[child] and local[child, v] >= 0:
                scores[base[k] + binomials[local[child, v], size]] += value
        if covered[v]:
            members[size] = v
            scores[_family(v, members, size + 1, layout)] += value


@compiled
def leaf_by_bits(cells, counts, n_cells, bits, first, cardinality, a, tables, row):
    """A(T) where T is a set with `cells` and one variable more, whose states are bits[first : first + cardinality]."""
    value = 0.0
    for c in range(n_cells):
        rest = np.int64(counts[c])
        if rest == 1:  # one row stays one row
            value += _log_rising(a, rest, tables, row)
            continue
        state, left = first, cardinality - 1
        while left > 0:  # two states in one pass over the words
            one, two = np.int64(0), np.int64(0)
            if left == 1:
                for w in range(bits.shape[1]):
                    one += popcount(cells[c, w] & bits[state, w])
            else:
                for w in range(bits.shape[1]):
                    word = cells[c, w]
                    one += popcount(word & bits[state, w])
                    two += popcount(word & bits[state + 1, w])
            value += _log_rising(a, one, tables, row) + _log_rising(a, two, tables, row)
            rest -= one + two
            state, left = state + 2, left - 2
        if rest:  # the last state takes what is left
            value += _log_rising(a, rest, tables, row)
    return value


@compiled
def leaf_by_rows(cell_of_row, n_cells, values, cardinality, weights, scratch, a, tables, row):
    """As `leaf_by_bits`, weighted; `values` are those of the variable more."""
    for c in range(n_cells * cardinality):
        scratch[c] = 0.0
    for r in range(weights.size):
        scratch[cell_of_row[r] * cardinality + values[r]] += weights[r]
    value = 0.0
    for c in range(n_cells * cardinality):
        count = scratch[c]
        if count > 0.0:
            value += _log_rising(a, count, tables, row)
    return value


@compiled
def _log_rising(a, count, tables, row):
    """lgamma(a + count) - lgamma(a)"""
    if tables.shape[0]:
        return tables[row, np.int64(count)]
    return math.lgamma(a + count) - math.lgamma(a)


@compiled
def _row_of(products, product):
    """Place of `product` in the ascending `products`, where it occurs."""
    low, high = np.int64(0), products.size
    while low < high:
        middle = (low + high) // 2
        if products[middle] < product:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _subtract_parents(members, size, covered, counts, n_cells, product, cards, prior, layout, known, value_of, scores):
    """Subtract B(Z, child) from every family whose parent set is exactly Z = `members[:size]`; known, value_of : (n + 2,) space."""
    child_row = prior[3]
    for row in range(known.size):
        known[row] = False
    for child in range(cards.size):
        if not covered[child]:
            continue
        inside = False
        for k in range(size):
            inside |= members[k] == child
        if inside:
            continue
        row = child_row[child]  # equal for children with equal B
        if not known[row]:
            value_of[row] = cell_sum(counts, n_cells, np.int64(child), product, cards, prior)
            known[row] = True
        scores[_family(child, members, size, layout)] -= value_of[row]


@compiled
def _family(child, members, size, layout):
    """Place of the family (child, members without child): by size, then colexicographic rank of local positions."""
    local, offsets, n_candidates, binomials, _ = layout
    rank, taken = 0, 0
    for k in range(size):
        if members[k] != child:
            taken += 1
            rank += binomials[local[child, members[k]], taken]
    for fewer in range(taken):
        rank += binomials[n_candidates[child], fewer]
    return offsets[child] + rank


@compiled
def cell_sum(counts, n_cells, child, product, cards, prior):
    """Sum of lgamma(a + N) - lgamma(a); `child` >= 0 asks for B of that child, else A of the set itself."""
    total = 0.0
    tables = prior[2]
    if child >= 0:
        a, row = by_parent_state(cards[child], child, product, prior)
    else:
        a, row = by_cell(product, prior)
    if tables.shape[0]:
        table = tables[row]
        for c in range(n_cells):
            total += table[np.int64(counts[c])]
        return total
    base = math.lgamma(a)
    for c in range(n_cells):
        total += math.lgamma(a + counts[c]) - base
    return total


@compiled
def by_cell(n_cells, prior):
    """(pseudo-count of a cell, its row of the lgamma tables) where the table of child and parents has `n_cells`."""
    alpha, total, tables, _, products = prior
    row = np.int64(0)
    if tables.shape[0]:
        row = tables.shape[0] - 2 * products.size + _row_of(products, n_cells)
    return smaller(alpha, total / n_cells), row


@compiled
def by_parent_state(cardinality, child, product, prior):
    """(pseudo-counts of one parent state together, their row) for a child whose parents have `product` states."""
    alpha, total, tables, child_row, products = prior
    if alpha * cardinality <= total / product:
        return alpha * cardinality, child_row[child]
    row = np.int64(0)
    if tables.shape[0]:
        row = tables.shape[0] - products.size + _row_of(products, product)
    return total / product, row


@compiled
def split_bits(cells, counts, n_cells, values, new_counts, new_cells):
    n_new = 0
    for c in range(n_cells):
        rest = counts[c]
        for s in range(values.shape[0]):
            if rest == 0.0:
                break
            found = 0
            for w in range(cells.shape[1]):
                word = cells[c, w] & values[s, w]
                new_cells[n_new, w] = word
                found += popcount(word)
            if found:
                new_counts[n_new] = found
                rest -= found
                n_new += 1
    return n_new


@compiled
def split_rows(cells, n_cells, values, cardinality, weights, sums, label, new_counts, new_cells):
    """Weighted version of the splits: cell numbers per row; new cells are numbered in cell order, empty ones left out."""
    size = n_cells * cardinality
    for c in range(size):
        sums[c] = 0.0
    for row in range(values.size):
        sums[cells[row] * cardinality + values[row]] += weights[row]
    n_new = 0
    for c in range(size):
        if sums[c] > 0.0:
            label[c] = n_new
            new_counts[n_new] = sums[c]
            n_new += 1
    for row in range(values.size):
        new_cells[row] = label[cells[row] * cardinality + values[row]]
    return n_new


# ---------------------------------------------------------------------------------------------------- rows in passes
# Of rows that are visited in passes every set has a table, one cell per joint state, its last variable counting fastest. The sums
# are taken in the same order as above: the same counts give the same bits.

CHUNK = 4096  # rows counted at a time: their cells stay in the processor's cache


@compiled
def count_sets(codes, weights, cards, sets, starts, counts):
    """Add the rows to counts[starts[s] : starts[s + 1]] of every set.

    codes : (n, n_rows) int32, none missing     weights : (n_rows,), or (0,) for one each
    sets : (n_sets, width) int64, ascending members padded with -1, best in lexicographic order: what two neighbours share is
    looked up once
    """
    n_rows, width = codes.shape[1], sets.shape[1]
    cells = np.zeros((width + 1, CHUNK), dtype=np.int64)  # cells[t]: joint state of the first t members
    for first in range(0, n_rows, CHUNK):
        m = min(CHUNK, n_rows - first)
        ready = np.int64(0)  # members of the last set whose joint state is in `cells`
        for s in range(len(sets)):
            size = 0
            while size < width and sets[s, size] >= 0:
                size += 1
            if size == 0:
                for row in range(first, first + m):
                    counts[starts[s]] += weights[row] if weights.size else 1.0
                continue
            shared = 0
            while shared < ready and shared < size - 1 and sets[s, shared] == sets[s - 1, shared]:
                shared += 1
            for t in range(shared, size - 1):
                v = sets[s, t]
                for k in range(m):
                    cells[t + 1, k] = cells[t, k] * cards[v] + codes[v, first + k]
            ready = np.int64(size - 1)
            v, before = sets[s, size - 1], cells[size - 1]
            r, start = cards[v], starts[s]
            if weights.size:
                for k in range(m):
                    counts[start + before[k] * r + codes[v, first + k]] += weights[first + k]
            else:
                for k in range(m):
                    counts[start + before[k] * r + codes[v, first + k]] += 1.0


@compiled
def score_counted(sets, starts, counts, cards, prior, layout, scores):
    """Add the log marginal likelihood of every family inside the sets to `scores`, which comes in as zeros.

    sets, starts, counts : as in `count_sets`     prior, layout, scores : as in `score_families`
    """
    local, max_indegree = layout[0], layout[4]
    n, width = cards.size, sets.shape[1]
    members, covered = np.zeros(width + 1, dtype=np.int64), np.ones(n, dtype=np.bool_)
    known, value_of = np.zeros(n + 2, dtype=np.bool_), np.zeros(n + 2)
    for s in range(len(sets)):
        size, product = np.int64(0), 1.0
        while size < width and sets[s, size] >= 0:
            members[size] = sets[s, size]
            product *= cards[members[size]]
            size += 1
        seen = np.empty(starts[s + 1] - starts[s])
        n_cells = np.int64(0)
        for c in range(starts[s], starts[s + 1]):
            if counts[c] > 0.0:
                seen[n_cells] = counts[c]
                n_cells += 1
        if n_cells == 0:
            continue
        for i in range(n):  # children whose candidates cover the set
            covered[i] = True
            for k in range(size):
                covered[i] &= i == members[k] or local[i, members[k]] >= 0
        if size:
            value = cell_sum(seen, n_cells, np.int64(-1), product, cards, prior)
            for k in range(size):
                if covered[members[k]]:
                    scores[_family(members[k], members, size, layout)] += value
        if size <= max_indegree:
            _subtract_parents(
                members, size, covered, seen, n_cells, product, cards, prior, layout, known, value_of, scores
            )


@compiled
def counted_means(counts, places, cards, alpha, total, children, parents, starts, tables):
    """tables[starts[k] : starts[k + 1]] = posterior means of children[k] given parents[k], the child's value counting fastest.

    places : (n_families,) where the table of child and parents begins in `counts`
    parents : (n_families, width), ascending, padded with -1
    """
    for k in range(len(parents)):
        child = children[k]
        r, high, low = cards[child], np.int64(1), np.int64(1)  # joint states of the parents before and behind the child
        for t in range(parents.shape[1]):
            p = parents[k, t]
            if p >= 0 and p < child:
                high *= cards[p]
            elif p >= 0:
                low *= cards[p]
        a = min(alpha, total / (high * low * r))
        for h in range(high):
            for q in range(low):
                below, first, out = a * r, places[k] + h * r * low + q, starts[k] + (h * low + q) * r
                for value in range(r):
                    below += counts[first + value * low]
                for value in range(r):
                    tables[out + value] = (a + counts[first + value * low]) / below


@compiled
def look_up(tables, starts, cards, children, parents, rows, out):
    """out[k, r] = the entry of table k at the values of rows[:, r]; arguments as `counted_means`, rows (n, n_rows)."""
    for k in range(len(parents)):
        for row in range(rows.shape[1]):
            place = np.int64(0)
            for t in range(parents.shape[1]):
                p = parents[k, t]
                if p < 0:
                    break
                place = place * cards[p] + rows[p, row]
            out[k, row] = tables[starts[k] + place * cards[children[k]] + rows[children[k], row]]
