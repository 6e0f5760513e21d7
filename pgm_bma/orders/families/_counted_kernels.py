"""Compiled counting of sets of variables over rows that are visited in passes, and what scores and predictions make of the counts.

A table of a set has one cell per joint state, its last variable counting fastest. One such table per set serves all of its
members as children, as in `_family_kernels`, whose sums are taken here in the same order: the same counts give the same bits.
"""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.families._family_kernels import _family, _subtract_parents, cell_sum

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
            while shared < min(ready, size - 1) and sets[s, shared] == sets[s - 1, shared]:
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

    sets, starts, counts : as in `count_sets`     prior, layout, scores : as in `_family_kernels.score_families`
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
