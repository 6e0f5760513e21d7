"""Compiled steps of sampling with missing cells: families scored again on a completed table, parents drawn given a state, and
cells drawn one by one where the junction tree would be too large."""

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
def sweep_cells(uniforms, rows, columns, codes, cards, parents, theta, starts, child_starts, children):
    """Draw every missing cell given all other cells of its row, one after the other.

    uniforms, rows, columns : (n_cells,)    codes : (n, n_rows), changed in place    parents : (n, width), padded with -1
    theta : flat tables, the child's state fastest, that of node v from starts[v]
    children[child_starts[v] : child_starts[v + 1]] : the nodes that have v as a parent
    """
    weights = np.zeros(cards.max())
    for k in range(rows.size):
        row, v = rows[k], columns[k]
        total = 0.0
        for state in range(cards[v]):
            codes[v, row] = state
            weight = theta[_cell(v, row, codes, cards, parents, starts)]
            for c in range(child_starts[v], child_starts[v + 1]):
                weight *= theta[_cell(children[c], row, codes, cards, parents, starts)]
            total += weight
            weights[state] = total
        state = 0
        while state < cards[v] - 1 and weights[state] <= uniforms[k] * total:
            state += 1
        codes[v, row] = state


@compiled
def _cell(node, row, codes, cards, parents, starts):
    index = np.int64(0)
    for t in range(parents.shape[1]):
        p = parents[node, t]
        if p >= 0:
            index = index * cards[p] + codes[p, row]
    return starts[node] + index * cards[node] + codes[node, row]
