"""Compiled steps of sampling with missing cells: families scored again on a completed table, parents drawn given a state, and
cells drawn from a network."""

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
from pgm_bma.orders.families._list_kernels import best_below, enter, size_starts


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
def lost_share(scores, sets, binomials, m, max_indegree, kept):
    """Bound on the share of a node's sum that the sets outside `kept` have, in any order; arguments and bound as in
    `_list_kernels.prune`. inf: a set that is possible has no kept subset."""
    best = np.empty(scores.size)  # of every set, the best of its kept subsets
    holder = np.empty(scores.size, dtype=np.int64)  # and its place
    shares = np.zeros(scores.size)
    size_start = size_starts(binomials, m, max_indegree)
    for k in range(scores.size):
        below = best_below(sets[k], binomials, size_start, best)
        top = best[below] if below >= 0 else -np.inf
        if not kept[k] and scores[k] > -np.inf and top == -np.inf:
            return np.inf
        enter(k, kept[k], scores[k], below, top, best, holder, shares)
    return shares.max()


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
    total, state = 0.0, 0
    digits[: members.size] = 0
    while True:
        weight = 1.0
        for f in range(n_families):
            weight *= theta[at[f]]
        total += weight
        sums[state] = total
        state += 1
        m = 0
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
def _cell(node, values, network):
    cards, parents, starts = network[:3]
    index = np.int64(0)
    for t in range(parents.shape[1]):
        p = parents[node, t]
        if p >= 0:
            index = index * cards[p] + values[p]
    return starts[node] + index * cards[node] + values[node]
