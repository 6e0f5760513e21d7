"""Numeric, ordered and categorical columns together: terms averaged over discretisations in one convex fit of weights.

A term gives every class a log evidence. "single": ln P(c | bin) - ln p_c of a column, averaged over all ways to cut it. "pair":
ln P(c | i, j) - ln P(c | i) - ln P(c | j) + ln p_c, averaged over recursive partitions. "linear": one coefficient per numeric
column and class on the standardised values. "gaussian": how the numeric columns vary together (see `numeric_gaussian`). The
weights maximise the conditional likelihood of rows that are left out of their own terms, with one ridge per kind that is chosen
by cross-validation, all terms made anew in every fold.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from pgm_bma.kikuchi import _numeric_kernels as kernels
from pgm_bma.kikuchi import numeric_cuts as cuts
from pgm_bma.kikuchi import numeric_pairs
from pgm_bma.kikuchi.content import row_colours
from pgm_bma.kikuchi.numeric_gaussian import N_STRENGTHS, GaussianTerms, fit_gaussian, gaussian_terms
from pgm_bma.kikuchi.terms import class_data
from pgm_bma.kikuchi.tuning import deal, walk
from pgm_bma.kikuchi.weights import MAX_CONTRASTS, ridge_fit

KINDS = ("single", "pair", "linear", "gaussian")
CENTRE = {"single": 1.0, "pair": 0.0, "linear": 0.0, "gaussian": 0.0}
RIDGES = {
    "single": (1.0, 5.0, 25.0, 100.0),
    "pair": (1.0, 5.0, 30.0, 200.0, 1000.0),
    "linear": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0),
    "gaussian": (1.0, 5.0, 30.0, 200.0, 1000.0),
}
START = {"single": 5.0, "pair": 30.0, "linear": 10.0, "gaussian": 30.0}
CLIP = 4.0  # standard deviations at which a value stops to pull
_MOST_STATES = 64  # of a categorical column in a pair
_MOST_PAIR_COLUMNS = 100
_SCREEN_BINS = 4  # of a numeric column, where pairs are screened


def fit_average(data, kinds, progress=None):
    """Fit the weights of averaged terms.

    Parameters
    ----------
    data : NumericData
    kinds : some of KINDS
    progress : function (number of steps done) or None

    Returns
    -------
    AverageFit
    """
    ridge = _choose_ridges(data, kinds, progress)
    terms = make_terms(data, kinds)
    weights = _fit_weights(terms, data, ridge)
    return AverageFit(terms.without_rows(), weights, ridge)


def _choose_ridges(data, kinds, progress):
    point = {kind: START[kind] for kind in kinds}
    total = data.weights.sum()
    if total < 10:
        return point
    parts = deal(data.target, data.weights, 4 if total < 1000 else 2, _colours(data))
    folds = _Folds(data, kinds, parts, progress)
    tried = {}
    for kind in (*kinds, *kinds):  # twice, because the best ridge of one kind depends on those of the others
        walk(point, kind, RIDGES[kind], folds, tried)
    return point


def _colours(data):
    """Colours of the rows by their bins (see `content`), ties by their values, so that the order of rows does not matter."""
    bins = row_colours(class_data(data.codes, data.target, data.n_bins, data.n_classes, data.weights))
    bits = np.nan_to_num(data.values).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    order = np.lexsort(((bits ^ (bits >> np.uint64(29))).sum(axis=1), bins))
    ranks = np.empty(len(order), dtype=np.uint64)
    ranks[order] = np.arange(len(order), dtype=np.uint64)
    return ranks


class _Folds:
    """Training problems of the folds, and the loss of their held-out rows; see `tuning`."""

    def __init__(self, data, kinds, parts, progress):
        self.parts, self.data, self.progress = parts, data, progress
        self.problems, self.starts = [], [None] * len(parts)
        for part in parts:
            rest = data.weights - part
            train = data.take(rest > 0, rest[rest > 0])
            terms = make_terms(train, kinds)
            held = part > 0
            scores = features(terms, data.codes[held], data.values[held])
            self.problems.append((train, terms, held, scores))

    def loss(self, _, ridge):
        total = 0.0
        for f, (train, terms, held, scores) in enumerate(self.problems):
            weights = _fit_weights(terms, train, ridge, self.starts[f], tolerance=1e-3)
            self.starts[f] = weights
            log_joint = scores @ weights
            own = log_joint[np.arange(len(log_joint)), self.data.target[held]]
            total += self.parts[f][held] @ (np.logaddexp.reduce(log_joint, axis=1) - own)
            if self.progress is not None:
                self.progress(1)
        return float(total / self.parts.sum())


def _fit_weights(terms, data, ridge, start=None, tolerance=1e-10):
    penalties = np.array([ridge[kind] for kind in terms.kinds])
    centre = np.array([CENTRE[kind] for kind in terms.kinds])
    return ridge_fit(terms.contrasts, data.weights, centre, penalties, centre if start is None else start, tolerance)


def make_terms(data, kinds):
    """All terms of training data with their left-out contrasts: `AverageTerms`."""
    shares = cuts.class_shares(data.target, data.weights, data.n_classes)
    gammas = cuts.gamma_tables(data.weights.sum(), data.weights, shares)
    singles = [_single(data, j, shares, gammas) for j in range(data.codes.shape[1])]
    scale = standardisation(data)
    base = [_contrast_prior(data, shares), *(_contrast_single(data, j, t, shares) for j, t in enumerate(singles))]
    labels, names = ["single"] * len(base), [(), *((j,) for j in range(len(singles)))]
    smooth, smooth_labels, gaussian = np.zeros((len(data.target), data.n_classes - 1, 0)), [], None
    if "linear" in kinds:
        smooth = _contrast_linear(data, scale)
        smooth_labels = ["linear"] * smooth.shape[2]
    if "gaussian" in kinds:
        gaussian = fit_gaussian(data.values, data.target, data.n_classes, data.weights)
    if gaussian is not None:
        densities = gaussian_terms(gaussian, data.values, data.target, data.unit)
        against = [_against_own(densities[:, :, g], data.target) for g in range(N_STRENGTHS)]
        smooth = np.concatenate([smooth, np.stack(against, axis=2)], axis=2)
        smooth_labels = smooth_labels + ["gaussian"] * N_STRENGTHS
    columns = np.stack(base, axis=2)
    pairs, tables = [], []
    if "pair" in kinds:
        pairs, tables, contrasts = _choose_pairs(
            data, shares, singles, np.concatenate([columns, smooth], axis=2), labels + smooth_labels, gammas
        )
        columns = np.concatenate([columns, *(c[:, :, None] for c in contrasts)], axis=2)
        labels, names = labels + ["pair"] * len(pairs), names + pairs
    labels = labels + smooth_labels
    columns = np.concatenate([columns, smooth], axis=2)
    if columns.size > MAX_CONTRASTS:
        raise ValueError(
            f"numeric='average' needs {columns.shape[0]} rows x {columns.shape[1]} contrasts x {columns.shape[2]} terms in "
            f"memory (limit {MAX_CONTRASTS:.3g} numbers); take fewer rows or columns, or numeric='mdl'"
        )
    logs = [np.log(t.probability) - np.log(shares) for t in singles]
    cut_posteriors = [t.cut_posterior for t in singles]
    return AverageTerms(
        shares, logs, cut_posteriors, pairs, tables, scale, gaussian, labels, names, data.numeric, columns
    )


def _single(data, j, shares, gammas):
    seen = data.codes[:, j] >= 0
    counts = np.zeros((int(data.n_bins[j]), data.n_classes))
    np.add.at(counts, (data.codes[seen, j], data.target[seen]), data.weights[seen])
    if data.numeric[j]:
        return cuts.average_intervals(counts, shares, data.unit, gammas=gammas)
    return cuts.average_categories(counts, shares, data.unit)


def _against_own(values, target):
    """(n, n_classes) -> (n, n_classes - 1): the other classes, in order, minus the row's own."""
    n, n_classes = values.shape
    other = np.arange(n_classes)[None, :] != target[:, None]
    return values[other].reshape(n, n_classes - 1) - values[np.arange(n), target][:, None]


def _contrast_prior(data, shares):
    return _against_own(np.tile(np.log(shares), (len(data.target), 1)), data.target)


def _contrast_single(data, j, table, shares):
    seen = (data.codes[:, j] >= 0)[:, None]
    return _against_own(_left_out_logs(data, j, table) - np.where(seen, np.log(shares), 0.0), data.target)


def _left_out_logs(data, j, table):
    """ln P(c | bin) without the row, zero where the cell is missing: (n, n_classes)."""
    bins = data.codes[:, j]
    logs = np.log(table.left_out[np.maximum(bins, 0), data.target])
    return np.where((bins >= 0)[:, None], logs, 0.0)


def standardisation(data):
    """(2, n_numeric) mean and spread of the numeric columns, by weight; a constant column has spread 1."""
    weights = np.where(np.isnan(data.values), 0.0, data.weights[:, None])
    total = np.maximum(weights.sum(axis=0), 1e-300)
    filled = np.nan_to_num(data.values)
    mean = (weights * filled).sum(axis=0) / total
    spread = np.sqrt((weights * (filled - mean) ** 2).sum(axis=0) / total)
    return np.stack([mean, np.where(spread > 0, spread, 1.0)])


def standardised(values, scale):
    """Clipped, zero where missing."""
    return np.nan_to_num(np.clip((values - scale[0]) / scale[1], -CLIP, CLIP))


def _contrast_linear(data, scale):
    x = standardised(data.values, scale)
    n, d = x.shape
    result = np.zeros((n, data.n_classes, d * data.n_classes))
    for c in range(data.n_classes):
        result[:, c, c * d : (c + 1) * d] = x
    own = result[np.arange(n), data.target]
    other = np.arange(data.n_classes)[None, :] != data.target[:, None]
    return result[other].reshape(n, data.n_classes - 1, -1) - own[:, None, :]


def _choose_pairs(data, shares, singles, contrasts, kinds, gammas):
    """Pairs by score test given all other terms: (pairs, log tables, left-out contrasts)."""
    penalties, centre = np.array([START[k] for k in kinds]), np.array([CENTRE[k] for k in kinds])
    weights = ridge_fit(contrasts, data.weights, centre, penalties, centre, tolerance=1e-3)
    probability = _other_probabilities(contrasts @ weights)
    n_kept = int(min(60, max(20, 1e5 / (data.weights.sum() * data.n_classes))))
    candidates = _screened(data, singles, probability, n_kept + n_kept // 2)
    logs = [_left_out_logs(data, j, singles[j]) for j in range(len(singles))]
    found = []
    for i, j in candidates:
        average = _pair(data, i, j, shares, gammas)
        first, second = (coarse(data.codes[:, k], data.n_bins[k], data.numeric[k]) for k in (i, j))
        seen = (first >= 0) & (second >= 0)
        joint = np.log(average.left_out[np.maximum(first, 0), np.maximum(second, 0), data.target])
        term = np.where(seen[:, None], joint - logs[i] - logs[j] + np.log(shares), 0.0)
        contrast = _against_own(term, data.target)
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


def _screened(data, singles, probability, n_candidates):
    """Pairs of columns in whose coarse cells the other terms leave most unexplained; all, while they are few."""
    usable = [
        j for j in range(len(singles)) if 1 < data.n_bins[j] and (data.numeric[j] or data.n_bins[j] <= _MOST_STATES)
    ]
    spread = [float(np.std(np.log(t.probability), axis=1).mean()) for t in singles]
    usable = sorted(sorted(usable, key=lambda j: -spread[j])[:_MOST_PAIR_COLUMNS])
    pairs = np.array(list(combinations(usable, 2)), dtype=np.int64).reshape(-1, 2)
    if len(pairs) > n_candidates:
        other = np.arange(data.n_classes)[None, :] != data.target[:, None]
        predicted = np.zeros(other.shape)
        predicted[other] = probability.ravel()
        predicted[~other] = 1.0 - probability.sum(axis=1)
        residuals = (~other - predicted) * data.weights[:, None]
        variances = predicted * (1 - predicted) * data.weights[:, None]
        columns = [coarse(data.codes[:, j], data.n_bins[j], data.numeric[j], _SCREEN_BINS) for j in usable]
        columns = np.array(columns, dtype=np.int64)
        scores = np.empty(len(pairs))
        kernels.screen_pairs(columns, columns.max(axis=1) + 1, residuals, variances, np.searchsorted(usable, pairs), scores)
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


def features(terms, codes, values):
    """Terms of new rows: (n_samples, n_classes, n_terms); a term with a missing cell is zero."""
    n, n_classes = len(codes), len(terms.shares)
    columns = [np.tile(np.log(terms.shares), (n, 1))]
    for j, logs in enumerate(terms.singles):
        columns.append(np.where((codes[:, j] >= 0)[:, None], logs[np.maximum(codes[:, j], 0)], 0.0))
    singles = columns[1:]
    for (i, j), table in zip(terms.pairs, terms.tables):
        first = coarse(codes[:, i], len(terms.singles[i]), terms.numeric[i])
        second = coarse(codes[:, j], len(terms.singles[j]), terms.numeric[j])
        seen = (first >= 0) & (second >= 0)
        both = table[np.maximum(first, 0), np.maximum(second, 0)]
        columns.append(np.where(seen[:, None], both - singles[i] - singles[j], 0.0))
    result = np.stack(columns, axis=2)
    if "linear" in terms.kinds:
        x = standardised(values, terms.scale)
        linear = np.zeros((n, n_classes, x.shape[1] * n_classes))
        for c in range(n_classes):
            linear[:, c, c * x.shape[1] : (c + 1) * x.shape[1]] = x
        result = np.concatenate([result, linear], axis=2)
    if terms.gaussian is not None:
        result = np.concatenate([result, gaussian_terms(terms.gaussian, values)], axis=2)
    return result


class NumericData(NamedTuple):
    """codes (n, d) elementary bins or states, -1 = missing; values (n, d_numeric) raw numbers, NaN = missing; numeric (d,) bool.

    n_bins (d,); target (n,); weights (n,); unit : weight of a row that is left out
    """

    codes: np.ndarray
    values: np.ndarray
    numeric: np.ndarray
    n_bins: np.ndarray
    target: np.ndarray
    n_classes: int
    weights: np.ndarray
    unit: float

    def take(self, rows, weights):
        return self._replace(
            codes=self.codes[rows], values=self.values[rows], target=self.target[rows], weights=weights
        )


class AverageTerms(NamedTuple):
    """Tables of all terms, ln P(c | ...) - ln p_c: singles (n_bins, n_classes) each, pairs of columns; scale of linear terms.

    kinds and sets name the terms in the order of the weights; contrasts (n, n_classes - 1, n_terms) are those of the training rows.
    """

    shares: np.ndarray
    singles: list
    cut_posteriors: list
    pairs: list
    tables: list
    scale: np.ndarray
    gaussian: GaussianTerms | None
    kinds: list
    sets: list
    numeric: np.ndarray
    contrasts: np.ndarray | None

    def without_rows(self):
        return self._replace(contrasts=None)


class AverageFit(NamedTuple):
    """The terms, their weights (n_terms,) and the ridge of every kind."""

    terms: AverageTerms
    weights: np.ndarray
    ridge: dict
