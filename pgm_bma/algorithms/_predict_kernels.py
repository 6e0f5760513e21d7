"""Compiled posterior means of many families at many rows (second line of ORD eq. 7)."""

import numpy as np
from numba import njit

MAX_CELLS = 4_000_000  # larger family tables are counted row by row instead


@njit(cache=True, nogil=True)
def predict_families(codes, weights, cards, alpha, sample_size, children, parents, rows, out):
    """out[k, r] = posterior mean of the value of children[k] in rows[r] given the row's values of parents[k].

    codes : (n, n_samples) training rows, one variable after another     weights : (n_samples,)
    alpha, sample_size : K2's pseudo-count, or BDeu's total if it is positive
    parents : (n_families, width), padded with -1     rows : (n, n_rows)
    """
    largest = 1
    for k in range(children.size):
        cells = _n_cells(cards, children[k], parents[k])
        if cells <= MAX_CELLS:
            largest = max(largest, cells)
    counts = np.zeros(largest)
    totals = np.zeros(largest)
    place = np.zeros(rows.shape[1], dtype=np.int64)
    for k in range(children.size):
        child = children[k]
        r = cards[child]
        cells = _n_cells(cards, child, parents[k])
        a = sample_size / cells if sample_size > 0.0 else alpha
        if cells > MAX_CELLS:
            _predict_by_matching(codes, weights, child, parents[k], a, r, rows, out[k])
            continue
        counts[:cells] = 0.0
        for s in range(weights.size):
            index = 0
            for t in range(parents.shape[1]):
                p = parents[k, t]
                if p < 0:
                    break
                index = index * cards[p] + codes[p, s]
            counts[index * r + codes[child, s]] += weights[s]
        for q in range(cells // r):
            total = a * r
            for value in range(r):
                total += counts[q * r + value]
            for value in range(r):
                totals[q * r + value] = (a + counts[q * r + value]) / total
        place[:] = 0
        for t in range(parents.shape[1]):
            p = parents[k, t]
            if p < 0:
                break
            for row in range(rows.shape[1]):
                place[row] = place[row] * cards[p] + rows[p, row]
        for row in range(rows.shape[1]):
            out[k, row] = totals[place[row] * r + rows[child, row]]


@njit(cache=True, nogil=True)
def _n_cells(cards, child, parents):
    cells = cards[child]
    for t in range(parents.size):
        if parents[t] >= 0:
            cells *= cards[parents[t]]
    return cells


@njit(cache=True, nogil=True)
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
