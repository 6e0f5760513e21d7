"""Compiled steps of sampling with missing cells: families scored again on a completed table, parents drawn given a state, and
cells drawn one by one where the junction tree would be too large."""

import numpy as np

from pgm_bma.foundation.compiling import compiled
from pgm_bma.orders._family_kernels import _log_rising
from pgm_bma.orders._layer_kernels import draw_set
from pgm_bma.orders._list_kernels import _pseudo_counts, best_below, score_set
from pgm_bma.orders._relocation_kernels import fresh

DENSE = 4  # cells per row up to which a family's counts are one dense table


@compiled(nogil=True)
def rescore(data, prior, chosen, children, sets, scores):
    """scores[k] = log marginal likelihood of family k, for every k in `chosen`; the others stay as they are.

    data, prior : as in `_family_kernels.score_families`    children : (n_families,)
    sets : (n_families, width) ascending members, padded with -1; neighbours that share their last members share work
    """
    _, _, codes, weights, cards = data
    n_rows, width = weights.size, sets.shape[1]
    limit = DENSE * n_rows + 64
    cells = np.zeros((width + 1, n_rows), dtype=np.int64)  # by number of members, taken from the last
    known = np.full(width + 1, np.int32(-1))  # the member that each of them ends with
    counts = np.zeros(limit)
    tables = prior[2]
    for k in chosen:
        child, size = children[k], 0
        r, product = cards[child], 1.0
        while size < width and sets[k, size] >= 0:
            product *= cards[sets[k, size]]
            size += 1
        if product * r > limit:
            scores[k] = score_set(child, sets[k], size, data, prior)
            continue
        for depth in range(1, size + 1):
            v = sets[k, size - depth]
            if known[depth] == v:
                continue
            card = cards[v]
            for row in range(n_rows):
                cells[depth, row] = cells[depth - 1, row] * card + codes[v, row]
            known[depth] = v
            for deeper in range(depth + 1, width + 1):
                known[deeper] = -1
        for row in range(n_rows):
            counts[cells[size, row] * r + codes[child, row]] += weights[row]
        a, row_a, b, row_b = _pseudo_counts(child, product, cards, prior)
        total = 0.0
        for q in range(0, int(product) * r, r):
            by_parents = 0.0
            for place in range(q, q + r):
                number = counts[place]
                if number > 0.0:
                    total += _log_rising(a, number, tables, row_a)
                    by_parents += number
                    counts[place] = 0.0
            if by_parents > 0.0:
                total -= _log_rising(b, by_parents, tables, row_b)
        scores[k] = total


@compiled(nogil=True)
def draw_parents(uniforms, number, reach_only, f, chosen):
    """chosen[node] = a family (in the order of `f`) drawn from those that positions, or layers, allow, read as in `add_edges`."""
    for node in range(chosen.size):
        high = number[node] - 1
        low = high if reach_only else np.int32(-1)
        x, level = fresh(node, number, low, high, f)
        chosen[node] = draw_set(uniforms[node], node, number, low, high, x, level, f)


@compiled(nogil=True)
def lost_share(scores, sets, binomials, m, max_indegree, kept):
    """Bound on the share of a node's sum that the sets outside `kept` have, in any order; arguments as in `_list_kernels.prune`.

    A dropped set is held against the best of its kept subsets, which is allowed wherever it is.
    """
    best = np.empty(scores.size)
    start = np.zeros(max_indegree + 2, dtype=np.int64)
    for size in range(max_indegree + 1):
        start[size + 1] = start[size] + binomials[m, size]
    lost = 0.0
    for k in range(scores.size):
        top = best_below(sets[k], binomials, start, best)
        if kept[k]:
            top = max(top, scores[k])
        elif scores[k] > -np.inf:
            lost += np.exp(scores[k] - top)
        best[k] = top
    return lost


@compiled(nogil=True)
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


@compiled(nogil=True)
def _cell(node, row, codes, cards, parents, starts):
    index = np.int64(0)
    for t in range(parents.shape[1]):
        p = parents[node, t]
        if p >= 0:
            index = index * cards[p] + codes[p, row]
    return starts[node] + index * cards[node] + codes[node, row]
