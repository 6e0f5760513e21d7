"""Which pairs of columns get a term: by a score test of their averaged term, given all terms of other kinds.

The terms of all pairs would be dear, so that pairs are screened first by what is left unexplained in coarse cells.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from pgm_bma.additive import _kernels as kernels
from pgm_bma.additive import pairs as numeric_pairs
from pgm_bma.additive.solve import against_own, fit_weights

_PENALTIES = {"prior": 5.0, "level": 0.1, "single": 5.0, "linear": 10.0, "state": 30.0, "gaussian": 30.0}
_MOST_STATES = 64  # of a categorical column in a pair
_MOST_PAIR_COLUMNS = 100
_SCREEN_BINS = 4  # of a numeric column, where pairs are screened


def unexplained(data, contrasts):
    """What terms with the ridges of `_PENALTIES` leave unexplained of the classes: `Unexplained`."""
    penalties = np.array([_PENALTIES[k] for k in contrasts.kinds])
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
    n_kept = int(min(60, max(20, 1e5 / (data.weights.sum() * data.n_classes))))
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


def _other_probabilities(scores):
    """(n, n_classes - 1) scores of the other classes against a row's own -> their probabilities."""
    top = np.maximum(scores.max(axis=1, initial=0.0), 0.0)[:, None]
    odds = np.exp(scores - top)
    return odds / (np.exp(-top) + odds.sum(axis=1, keepdims=True))


def _screened(data, singles, left, n_candidates):
    """Pairs of columns in whose coarse cells the other terms leave most unexplained; all, while they are few."""
    usable = [
        j for j in range(len(singles)) if 1 < data.n_bins[j] and (data.numeric[j] or data.n_bins[j] <= _MOST_STATES)
    ]
    spread = [float(np.std(np.log(t.probability), axis=1).mean()) for t in singles]
    usable = sorted(sorted(usable, key=lambda j: -spread[j])[:_MOST_PAIR_COLUMNS])
    pairs = np.array(list(combinations(usable, 2)), dtype=np.int64).reshape(-1, 2)
    if len(pairs) > n_candidates:
        columns = [coarse(data.codes[:, j], data.n_bins[j], data.numeric[j], _SCREEN_BINS) for j in usable]
        columns = np.array(columns, dtype=np.int64)
        scores = np.empty(len(pairs))
        kernels.screen_pairs(
            columns, columns.max(axis=1) + 1, left.residuals, left.variances, np.searchsorted(usable, pairs), scores
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
    return numeric_pairs.average_rectangles(counts, shares, data.unit, halves=halves, gammas=gammas)


def coarse(bins, n_bins, numeric, n_wanted=numeric_pairs.MAX_PAIR_BINS):
    """Bins of a pair: neighbours of a numeric column are joined until 16 are left; -1 stays."""
    if not numeric or n_bins <= n_wanted:
        return bins
    step = -(-int(n_bins) // n_wanted)
    return np.where(bins >= 0, bins // step, -1)


class Unexplained(NamedTuple):
    """probability (n, n_classes - 1) of the classes that are not a row's own; residuals and variances (n, n_classes) of all."""

    probability: np.ndarray
    residuals: np.ndarray
    variances: np.ndarray
