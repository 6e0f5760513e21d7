"""Choice of the pairs of columns that get a term, and of those that get a weight per cell and class, given all other terms.

A pair term has the shape that its two columns show together, and one weight. Terms of all pairs would be dear, so that pairs are
screened by what is left unexplained in coarse cells, and then chosen by a score test of their averaged term.

Where a class depends on many columns at once (an exact number of them in some state, say), every pair alone shows little, and only
free weights of cells add up to it. Such pairs of columns with states are chosen by what is unexplained in their cells, while the
weights are few.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from pgm_bma.additive import _kernels as kernels
from pgm_bma.additive.averages import MAX_PAIR_BINS, average_rectangles
from pgm_bma.additive.solve import SEARCH, against_own, fit_weights

_MOST_STATES = 64  # of a categorical column in a pair
_MOST_PAIR_COLUMNS = 100
_MOST_PRODUCTS = 5000  # columns all of whose products are looked at: a matrix of 200 MB
_SCREEN_BINS = 4  # of a numeric column, where pairs are screened
_FEWEST_PAIRS, MOST_PAIRS = 20, 60  # with a term; fewer of many rows, where each costs more
_PAIR_ROWS = 1e5  # rows x classes x pairs that cost little
MOST_CELL_WEIGHTS, _MOST_OF_ALL = 240, 300  # of cells, and with those of the other terms: Newton steps stay cheap
_MOST_CELLS = 64  # of one pair with cells
_MOST_CELL_COLUMNS = 100


def unexplained(data, contrasts):
    """Return what terms with the ridges of `SEARCH.screening` leave unexplained of the classes: `Unexplained`."""
    penalties = np.array([SEARCH.screening[k] for k in contrasts.kinds])
    centre = np.array([float(k in ("prior", "single")) for k in contrasts.kinds])
    weights = fit_weights(contrasts, data.weights, penalties, centre, centre, tolerance=1e-3)
    probability = _other_probabilities(contrasts.scores(weights))
    other = np.arange(data.n_classes)[None, :] != data.target[:, None]
    predicted = np.zeros(other.shape)
    predicted[other] = probability.ravel()
    predicted[~other] = 1.0 - probability.sum(axis=1)
    rows = data.weights[:, None]
    return Unexplained(probability, (~other - predicted) * rows, predicted * (1 - predicted) * rows)


def choose_pairs(data, shares, singles, logs, left, gammas):
    """Pairs by score test given all other terms: (pairs, log tables, left-out contrasts)."""
    probability = left.probability
    n_kept = int(min(MOST_PAIRS, max(_FEWEST_PAIRS, _PAIR_ROWS / (data.weights.sum() * data.n_classes))))
    candidates = _screened(data, singles, left, n_kept + n_kept // 2)
    found = []
    for i, j in candidates:
        average = _pair(data, i, j, shares, gammas)
        first, second = (coarse(data.codes[:, k], data.n_bins[k], data.numeric[k]) for k in (i, j))
        seen = (first >= 0) & (second >= 0)
        joint = np.log(average.left_out[np.maximum(first, 0), np.maximum(second, 0), data.target])
        term = np.where(seen[:, None], joint - logs[i] - logs[j] + np.log(shares), 0.0)
        contrast = against_own(term, data.target)
        inner = (probability * contrast).sum(axis=1)
        gain = -data.weights @ inner
        variance = data.weights @ ((probability * contrast**2).sum(axis=1) - inner**2)
        if gain > 0 and variance > 0:
            found.append((gain / np.sqrt(variance), (i, j), contrast, np.log(average.probability) - np.log(shares)))
    found = sorted(found, key=lambda item: -item[0])[:n_kept]
    found.sort(key=lambda item: item[1])
    _, chosen, chosen_contrasts, tables = zip(*found) if found else ((), (), (), ())
    return list(chosen), list(tables), list(chosen_contrasts)


def pair_gains(data, shares):
    """Largest of z^2 / 2 of a column's products with others, less the logarithm of the number of pairs per column: (n_columns,).

    z is the score test of a product of two columns, each as centred ranks of its bins with variance 1, against the class shares.
    So a column that says something in a pair only has a gain next to those of single columns.
    """
    used = np.flatnonzero((data.numeric | (np.asarray(data.n_bins) == 2)) & (data.monotone == 0))
    gains = np.full(len(data.n_bins), -np.inf)
    if not 1 < len(used) <= _MOST_PRODUCTS:
        return gains
    weights = data.weights / data.weights.sum()
    ranks = np.zeros((len(data.target), len(used)))
    for k, j in enumerate(used):
        bins = data.codes[:, j]
        seen = bins >= 0
        mass = np.bincount(bins[seen], weights[seen], minlength=int(data.n_bins[j]))
        middle = np.cumsum(mass) - (mass + mass.sum()) / 2
        spread = np.sqrt(mass @ middle**2)
        if spread > 0:
            ranks[seen, k] = middle[bins[seen]] / spread
    largest = np.zeros(len(used))
    for c in range(data.n_classes if data.n_classes > 2 else 1):
        left = data.weights * ((data.target == c) - shares[c])
        scores = np.abs((ranks * left[:, None]).T @ ranks)
        np.fill_diagonal(scores, 0.0)
        largest = np.maximum(largest, scores.max(axis=0) / np.sqrt(max(left @ left, 1e-300)))
    gains[used] = largest**2 / 2 - np.log(len(used) / 2)
    return gains


def _other_probabilities(scores):
    """(n, n_classes - 1) scores of the other classes against a row's own -> their probabilities."""
    top = np.maximum(scores.max(axis=1, initial=0.0), 0.0)[:, None]
    odds = np.exp(scores - top)
    return odds / (np.exp(-top) + odds.sum(axis=1, keepdims=True))


def _screened(data, singles, left, n_candidates):
    """Pairs of columns in whose coarse cells the other terms leave most unexplained; all, while they are few."""
    usable = [
        j
        for j in range(len(singles))
        if not data.monotone[j] and 1 < data.n_bins[j] and (data.numeric[j] or data.n_bins[j] <= _MOST_STATES)
    ]
    spread = [float(np.std(np.log(t.probability), axis=1).mean()) for t in singles]
    usable = sorted(sorted(usable, key=lambda j: -spread[j])[:_MOST_PAIR_COLUMNS])
    pairs = np.array(list(combinations(usable, 2)), dtype=np.int64).reshape(-1, 2)
    if len(pairs) > n_candidates:
        columns = [coarse(data.codes[:, j], data.n_bins[j], data.numeric[j], _SCREEN_BINS) for j in usable]
        codes = np.array(columns, dtype=np.int64)
        scores = np.empty(len(pairs))
        kernels.screen_pairs(
            codes, codes.max(axis=1) + 1, left.residuals, left.variances, np.searchsorted(usable, pairs), scores
        )
        pairs = pairs[np.sort(np.argsort(-scores, kind="stable")[:n_candidates])]
    return [(int(i), int(j)) for i, j in pairs]


def _pair(data, i, j, shares, gammas):
    first, second = (coarse(data.codes[:, k], data.n_bins[k], data.numeric[k]) for k in (i, j))
    sizes = [int(coarse(data.n_bins[k] - 1, data.n_bins[k], data.numeric[k])) + 1 for k in (i, j)]
    counts = np.zeros((*sizes, data.n_classes))
    seen = (first >= 0) & (second >= 0)
    np.add.at(counts, (first[seen], second[seen], data.target[seen]), data.weights[seen])
    halves = bool(data.numeric[i]), bool(data.numeric[j])
    return average_rectangles(counts, shares, data.unit, halves=halves, gammas=gammas)


def coarse(bins, n_bins, numeric, n_wanted=MAX_PAIR_BINS):
    """Bins of a pair: neighbours of a numeric column are joined until 16 are left; -1 stays."""
    if not numeric or n_bins <= n_wanted:
        return bins
    step = -(-int(n_bins) // n_wanted)
    return np.where(bins >= 0, bins // step, -1)


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
    pairs = [(i, j) for i, j in combinations(usable[:_MOST_CELL_COLUMNS], 2) if sizes[i] * sizes[j] <= _MOST_CELLS]
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
    chosen, left_over = [], min(MOST_CELL_WEIGHTS, _MOST_OF_ALL - n_known) // max(data.n_classes - 1, 1)
    for t in np.argsort(-scores, kind="stable"):
        i, j = pairs[t]
        if sizes[i] * sizes[j] <= left_over:
            chosen.append((i, j))
            left_over -= sizes[i] * sizes[j]
    return sorted(chosen)


class Unexplained(NamedTuple):
    """probability (n, n_classes - 1) of the classes that are not a row's own; residuals and variances (n, n_classes) of all."""

    probability: np.ndarray
    residuals: np.ndarray
    variances: np.ndarray
