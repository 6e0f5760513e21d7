"""Cells of two columns with states, with a weight per class each: what one weight for a whole pair term cannot say.

A pair term has the shape that its two columns show on their own, and one weight. Where a class depends on many columns at once
(an exact number of them in some state, say), every pair alone shows little, and only free weights of cells add up to it. Pairs are
chosen by what the other terms leave unexplained in their cells, while the weights are few.
"""

from itertools import combinations

import numpy as np

from pgm_bma.additive import _kernels as kernels

_MOST_WEIGHTS, _MOST_OF_ALL = 240, 300  # of cells, and with those of the other terms: Newton steps stay cheap
_MOST_CELLS = 64  # of one pair
_MOST_COLUMNS = 100


def cell_indicators(codes, pair, n_bins):
    """(n_samples, n_cells) ones and zeros, zeros where a column is missing."""
    i, j = pair
    number = np.where(
        (codes[:, i] >= 0) & (codes[:, j] >= 0), codes[:, i].astype(np.int64) * n_bins[j] + codes[:, j], -1
    )
    return (number[:, None] == np.arange(n_bins[i] * n_bins[j])).astype(float)


def choose_cells(data, left, n_known):
    """Pairs of columns with states whose cells hold most that is unexplained, while their weights are few: list of tuples.

    left : Unexplained     n_known : weights of the other terms
    """
    sizes = [int(size) for size in data.n_bins]
    usable = [j for j, size in enumerate(sizes) if not data.numeric[j] and 1 < size <= _MOST_CELLS // 2]
    pairs = [(i, j) for i, j in combinations(usable[:_MOST_COLUMNS], 2) if sizes[i] * sizes[j] <= _MOST_CELLS]
    if not pairs:
        return []
    scores = np.empty(len(pairs))
    kernels.screen_pairs(
        np.ascontiguousarray(data.codes.T, dtype=np.int64),
        np.asarray(data.n_bins, dtype=np.int64),
        left.residuals,
        left.variances,
        np.array(pairs, dtype=np.int64),
        scores,
    )
    chosen, room = [], min(_MOST_WEIGHTS, _MOST_OF_ALL - n_known) // max(data.n_classes - 1, 1)
    for t in np.argsort(-scores, kind="stable"):
        i, j = pairs[t]
        if sizes[i] * sizes[j] <= room:
            chosen.append((i, j))
            room -= sizes[i] * sizes[j]
    return sorted(chosen)
