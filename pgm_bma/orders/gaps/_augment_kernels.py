"""Compiled steps of sampling with missing cells: families scored again on a completed table, parents drawn given a state, cells
drawn from a network, and arcs moved together with cells."""

import math

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.chains._layer_kernels import draw_set
from pgm_bma.orders.chains._pair_kernels import fresh
from pgm_bma.orders.families._family_kernels import (
    by_cell,
    cell_sum,
    leaf_by_bits,
    leaf_by_rows,
    split_bits,
    split_rows,
)

TINY = 1e-250  # of products that are written out; beyond, or above its inverse, logarithms are added


@compiled
def score_sets(data, prior, sets, use_bits, space, by_cells, by_parents):
    """The two sums of a family score (see `_family_kernels`) for chosen sets of variables.

    sets : (size, last member, first pair, children of the pairs), see `augment.Sets`
    by_cells[k] = A(set k)    by_parents[j] = B(its set, child) of pair j; other arguments as in `score_families`
    """
    bits, first_value, codes, weights, cards = data
    sizes, last, first_pair, pair_child = sets
    n_rows, n_words = codes.shape[1], bits.shape[1]
    cell_bits, cell_of_row, counts, scratch, labels, n_cells, products = space
    for row in range(n_rows):
        counts[0, 0] += weights[row]
    if use_bits:
        for value in range(first_value[0], first_value[0] + cards[0]):
            for w in range(n_words):
                cell_bits[0, 0, w] |= bits[value, w]
    for k in range(sizes.size):
        size, v = sizes[k], last[k]
        if size > 0:
            above = size - 1
            products[size] = products[above] * cards[v]
            if first_pair[k + 1] == first_pair[k] and (k + 1 == sizes.size or sizes[k + 1] <= size):
                a, row = by_cell(products[size], prior)
                if use_bits:
                    by_cells[k] = leaf_by_bits(
                        cell_bits[above],
                        counts[above],
                        n_cells[above],
                        bits,
                        first_value[v],
                        cards[v],
                        a,
                        prior[2],
                        row,
                    )
                else:
                    by_cells[k] = leaf_by_rows(
                        cell_of_row[above], n_cells[above], codes[v], cards[v], weights, scratch, a, prior[2], row
                    )
                continue
            if use_bits:
                values = bits[first_value[v] : first_value[v] + cards[v]]
                n_cells[size] = split_bits(
                    cell_bits[above], counts[above], n_cells[above], values, counts[size], cell_bits[size]
                )
            else:
                n_cells[size] = split_rows(
                    cell_of_row[above], n_cells[above], codes[v], cards[v], weights, scratch, labels, counts[size],
                    cell_of_row[size],
                )  # fmt: skip
            by_cells[k] = cell_sum(counts[size], n_cells[size], np.int64(-1), products[size], cards, prior)
        for j in range(first_pair[k], first_pair[k + 1]):
            by_parents[j] = cell_sum(counts[size], n_cells[size], pair_child[j], products[size], cards, prior)


@compiled
def draw_parents(uniforms, number, reach_only, f, chosen):
    """chosen[node] = a family (in the order of `f`) drawn from those that positions, or layers, allow, read as in `add_edges`."""
    for node in range(chosen.size):
        high = number[node] - 1
        low = high if reach_only else np.int32(-1)
        x, level = fresh(node, number, low, high, f)
        chosen[node] = draw_set(uniforms[node], node, number, low, high, x, level, f)


@compiled
def count_cells(codes, weights, held, network, counts):
    """counts[cell] += weight of every row, for all families at once; held : (n_rows, n) rows not to count for a child, or empty

    network : (cards, parents (n, width) padded with -1, starts, child_starts, children): the table of node v stands from starts[v],
    its own state fastest; children[child_starts[v] : child_starts[v + 1]] are the nodes that have v as a parent
    """
    for row in range(codes.shape[0]):
        for v in range(codes.shape[1]):
            if held.shape[0] == 0 or not held[row, v]:
                counts[_cell(v, codes[row], network)] += weights[row]


@compiled
def draw_blocks(uniforms, turn, rows, offsets, columns, codes, network, theta, limit):
    """Draw the missing cells of rows given the others: cells that share a family, directly or through others, are drawn together,
    by writing out their joint states. Where these are more than `limit`, a block of them is drawn given the rest, then the rest.
    Returns how many rows had such blocks.

    uniforms, columns : (n_cells,), those of rows[k] from offsets[k] to offsets[k + 1]      codes : (n_rows, n), changed in place
    turn : number that says which cell of a row comes first, so that blocks are not always the same       theta : flat tables
    """
    cards, parents, _, child_starts, children = network
    n = cards.size
    hidden, member_of = np.zeros(n, dtype=np.bool_), np.full(n, -1)  # member_of: place in the present block
    members, families, seen = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.full(n, -1)
    at, strides, digits = np.empty(n, dtype=np.int64), np.empty((n, n), dtype=np.int64), np.empty(n, dtype=np.int64)
    sums, n_blocks, n_cut = np.empty(max(limit, cards.max())), 0, 0
    for r in range(rows.size):
        values, first, count = codes[rows[r]], offsets[r], offsets[r + 1] - offsets[r]
        cut = False
        for k in range(first, first + count):
            hidden[columns[k]] = True
        for k in range(count):
            start = first + (k + turn) % count
            if not hidden[columns[start]]:
                continue  # drawn with a cell before it
            members[0], n_members, n_families, reached, size = columns[start], 1, 0, 0, cards[columns[start]]
            member_of[columns[start]] = 0
            while reached < n_members:
                v = members[reached]
                reached += 1
                for c in range(child_starts[v] - 1, child_starts[v + 1]):
                    family = children[c] if c >= child_starts[v] else v
                    if seen[family] == n_blocks:
                        continue
                    seen[family] = n_blocks
                    families[n_families] = family
                    n_families += 1
                    for t in range(-1, parents.shape[1]):
                        u = parents[family, t] if t >= 0 else family
                        if u < 0 or not hidden[u] or member_of[u] >= 0:
                            continue
                        if size * cards[u] > limit:
                            cut = True
                            continue
                        size *= cards[u]
                        member_of[u] = n_members
                        members[n_members] = u
                        n_members += 1
            n_blocks += 1
            _first_cells(values, families[:n_families], member_of, n_members, network, at, strides)
            total = _write_out(members[:n_members], n_families, cards, theta, at, strides, digits, sums)
            if total < TINY:
                total = _write_out_logs(members[:n_members], n_families, cards, theta, at, strides, digits, sums)
            state, target = 0, uniforms[start] * total
            while state < size - 1 and sums[state] <= target:
                state += 1
            for m in range(n_members):
                v = members[m]
                values[v] = state % cards[v]
                state //= cards[v]
                hidden[v], member_of[v] = False, -1
        n_cut += cut
    return n_cut


@compiled
def _first_cells(values, families, member_of, n_members, network, at, strides):
    """at[f] = the cell of a family with all members of the block in their first state, strides[f, m] = its step by member m"""
    cards, parents, starts = network[:3]
    for f in range(families.size):
        strides[f, :n_members] = 0
        at[f], step = starts[families[f]], 1
        for t in range(parents.shape[1], -1, -1):
            u = families[f] if t == parents.shape[1] else parents[families[f], t]
            if u < 0:
                continue
            if member_of[u] >= 0:
                strides[f, member_of[u]] = step
            else:
                at[f] += step * values[u]
            step *= cards[u]


@compiled
def _write_out(members, n_families, cards, theta, at, strides, digits, sums):
    """Total of the products of a block's families over all joint states; sums : running totals, the first member fastest"""
    total, state, n_first = 0.0, 0, 0
    for f in range(
        n_families
    ):  # those of the first member to the front: all others are multiplied once for all its states
        if strides[f, 0] > 0:
            at[f], at[n_first] = at[n_first], at[f]
            for m in range(members.size):
                strides[f, m], strides[n_first, m] = strides[n_first, m], strides[f, m]
            n_first += 1
    digits[: members.size] = 0
    while True:
        others = 1.0
        for f in range(n_first, n_families):
            others *= theta[at[f]]
        for digit in range(cards[members[0]]):
            weight = others
            for f in range(n_first):
                weight *= theta[at[f] + strides[f, 0] * digit]
            total += weight
            sums[state] = total
            state += 1
        m = 1
        while m < members.size and digits[m] == cards[members[m]] - 1:
            for f in range(n_families):
                at[f] -= strides[f, m] * digits[m]
            digits[m] = 0
            m += 1
        if m == members.size:
            return total
        digits[m] += 1
        for f in range(n_families):
            at[f] += strides[f, m]


@compiled
def _write_out_logs(members, n_families, cards, theta, at, strides, digits, sums):
    """The same, slower, but for a factor on all of them: where the products of very many families underflow."""
    size, total = 1, 0.0
    for v in members:
        size *= cards[v]
    for state in range(size):
        rest = state
        for m in range(members.size):
            digits[m] = rest % cards[members[m]]
            rest //= cards[members[m]]
        sums[state] = 0.0
        for f in range(n_families):
            cell = at[f]
            for m in range(members.size):
                cell += strides[f, m] * digits[m]
            sums[state] += np.log(theta[cell])
    top = sums[:size].max()
    for state in range(size):
        total += np.exp(sums[state] - top)
        sums[state] = total
    return total


@compiled
def _cell(node, values, network):
    cards, parents, starts = network[:3]
    index = np.int64(0)
    for t in range(parents.shape[1]):
        p = parents[node, t]
        if p >= 0:
            index = index * cards[p] + values[p]
    return starts[node] + index * cards[node] + values[node]


@compiled
def anneal(rng, seen, codes, weights, cards, free, parents, children, prior, log_odds, ascending):
    """Replace the first family by the second, for one child, and redraw missing cells on the way; returns whether that was
    accepted. If so, `codes` (completed rows) have the new cells.

    In step k = 0 .. 4 the families count with the powers 1 - k / 4 and k / 4. More steps are accepted more often, but not in the
    same time.

    seen : (n_rows, n) codes, -1 = missing      free : columns whose missing cells are drawn
    parents : (n_families, width) padded with -1, of children : (n_families,); then all others with a free column
    prior : (pseudo-count of a cell at most, of a table at most)    log_odds : of the priors of the second family and the first
    ascending : in which order cells are drawn
    """
    n_families, n_rows, n = children.size, codes.shape[0], codes.shape[1]
    # of lines and of cells, here and in `at` and `steps`: where tables begin, and their pseudo-counts
    starts, pseudo = np.zeros((2, n_families + 1), dtype=np.int64), np.empty((2, n_families))
    at = np.empty((2, n_rows, n_families), dtype=np.int64)  # of every row
    # families that a column is in
    within, n_within = np.empty((n, n_families), dtype=np.int64), np.zeros(n, dtype=np.int64)
    steps = np.zeros((2, n, n_families), dtype=np.int64)  # from one state of a column to the next
    for f in range(n_families):
        c, size = children[f], 1
        for t in range(-1, parents.shape[1]):
            v = parents[f, t] if t >= 0 else c
            if v < 0:
                continue
            within[v, n_within[v]] = f
            n_within[v] += 1
            if t >= 0:
                steps[0, v, f], steps[1, v, f] = size, size * cards[c]
                size *= cards[v]
            else:
                steps[1, v, f] = 1
        starts[0, f + 1], starts[1, f + 1] = starts[0, f] + size, starts[1, f] + size * cards[c]
        pseudo[1, f] = min(prior[0], prior[1] / (size * cards[c]))
        pseudo[0, f] = pseudo[1, f] * cards[c]
    totals, counts = np.empty(starts[0, n_families]), np.empty(starts[1, n_families])
    for f in range(n_families):
        totals[starts[0, f] : starts[0, f + 1]] = pseudo[0, f]
        counts[starts[1, f] : starts[1, f + 1]] = pseudo[1, f]
    for row in range(n_rows):
        for f in range(n_families):
            line, cell = starts[0, f], starts[1, f] + codes[row, children[f]]
            for t in range(parents.shape[1]):
                v = parents[f, t]
                if v >= 0:
                    line += steps[0, v, f] * codes[row, v]
                    cell += steps[1, v, f] * codes[row, v]
            at[0, row, f], at[1, row, f] = line, cell
            totals[line] += weights[row]
            counts[cell] += weights[row]
    rows, columns = np.nonzero(seen[:, free] < 0)
    old = np.empty(rows.size, dtype=codes.dtype)
    for k in range(rows.size):
        columns[k] = free[columns[k]]
        old[k] = codes[rows[k], columns[k]]
    log_ratio, sums = log_odds, np.empty(cards.max())
    # logarithm of the largest and of the smallest product of a cell's families, at most
    largest, smallest = n_within.max() * np.log(totals.max()), n_within.max() * np.log(counts.min() / totals.max())
    is_far = max(largest, -smallest) > -np.log(TINY)
    for step in range(4):
        if step > 0:
            for j in range(rows.size):
                k = j if ascending else rows.size - 1 - j
                row, v = rows[k], columns[k]
                if is_far:
                    codes[row, v] = _draw_cell_by_logs(
                        rng.random(), row, v, codes[row, v], cards[v], step, within, n_within, steps, at, totals, counts, sums,
                    )  # fmt: skip
                else:
                    codes[row, v] = _draw_cell(
                        rng.random(), row, v, codes[row, v], cards[v], step, within, n_within, steps, at, totals, counts, sums,
                    )  # fmt: skip
        for f in range(2):
            found = _log_marginal(totals[starts[0, f] : starts[0, f + 1]], pseudo[0, f], -1.0)
            found += _log_marginal(counts[starts[1, f] : starts[1, f + 1]], pseudo[1, f], 1.0)
            log_ratio += 0.25 * (found if f == 1 else -found)
    if math.log(1.0 - rng.random()) < log_ratio:
        return True
    for k in range(rows.size):
        codes[rows[k], columns[k]] = old[k]
    return False


@compiled
def _draw_cell(uniform, row, v, now, card, step, within, n_within, steps, at, totals, counts, sums):
    """State of a cell of column v, now in state `now`, drawn given all other cells, tables summed out: each family says (count +
    pseudo-count) / total without this row.

    within, n_within : families that the column is in        step : as in `anneal`
    """
    total = 0.0
    _count(-1.0, row, v, within, n_within, at, totals, counts)
    for state in range(card):
        above, under, more, less = 1.0, 1.0, 1.0, 1.0
        for j in range(n_within[v]):
            f = within[v, j]
            chance = counts[at[1, row, f] + steps[1, v, f] * (state - now)]
            whole = totals[at[0, row, f] + steps[0, v, f] * (state - now)]
            if f != 1:
                above *= chance
                under *= whole
            if f == 0:
                more *= whole
                less *= chance
            elif f == 1:
                more *= chance
                less *= whole
        root = math.sqrt(more / less)  # the power 2 / 4
        if step != 2:
            root = math.sqrt(root)
        if step == 3:
            root *= root * root
        total += above / under * root
        sums[state] = total
    return _settle(uniform * total, row, v, now, card, within, n_within, steps, at, totals, counts, sums)


@compiled
def _draw_cell_by_logs(uniform, row, v, now, card, step, within, n_within, steps, at, totals, counts, sums):
    """The same, slower, where the products of very many families could over- or underflow."""
    total = 0.0
    _count(-1.0, row, v, within, n_within, at, totals, counts)
    for state in range(card):
        sums[state] = 0.0
        for j in range(n_within[v]):
            f = within[v, j]
            power = 1.0 if f > 1 else step / 4 if f == 1 else 1.0 - step / 4
            chance = counts[at[1, row, f] + steps[1, v, f] * (state - now)]
            sums[state] += power * math.log(chance / totals[at[0, row, f] + steps[0, v, f] * (state - now)])
    top = sums[:card].max()
    for state in range(card):
        total += math.exp(sums[state] - top)
        sums[state] = total
    return _settle(uniform * total, row, v, now, card, within, n_within, steps, at, totals, counts, sums)


@compiled(inline="always")
def _settle(target, row, v, now, card, within, n_within, steps, at, totals, counts, sums):
    """The state whose running total is the first above `target`; the row is counted with it."""
    state = 0
    while state < card - 1 and sums[state] <= target:
        state += 1
    for j in range(n_within[v]):
        f = within[v, j]
        at[0, row, f] += steps[0, v, f] * (state - now)
        at[1, row, f] += steps[1, v, f] * (state - now)
    _count(1.0, row, v, within, n_within, at, totals, counts)
    return state


@compiled(inline="always")
def _count(sign, row, v, within, n_within, at, totals, counts):
    for j in range(n_within[v]):
        f = within[v, j]
        totals[at[0, row, f]] += sign
        counts[at[1, row, f]] += sign


@compiled
def _log_marginal(counts, pseudo, sign):
    """Part of a log marginal likelihood; counts : of cells or, with sign -1, of lines, pseudo-counts included"""
    found, start = 0.0, math.lgamma(pseudo)
    for k in range(counts.size):
        if counts[k] != pseudo:
            found += math.lgamma(counts[k]) - start
    return sign * found
