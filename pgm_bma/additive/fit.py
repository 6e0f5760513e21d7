"""One convex fit of the weights of averaged terms, with a ridge per kind of term, averaged over the ridges that predict well.

The weights maximise the conditional likelihood of rows that are left out of their own terms (see `terms`). Each kind has a grid of
ridges (`ridges.RidgeSearch`); single terms are drawn to weight 1 (naive Bayes) or, where their ridge is negative, to 0, which with
a stiff ridge leaves them out: then what is left is a logistic regression. Ridges are judged by the loss of held-out rows, with all
terms made anew in every fold. The search begins at the best of a few starts and walks along one kind after the other, a step only
where the gain is beyond 1.5 of its paired standard errors: the best of many points is too often the luckiest. The weights of all
points tried are then averaged by their held-out loss; those with cells, which have many weights, only where held-out rows gain by
cells at all.

Where rows are few one fit varies too much. Then there are more fits, each without one of `n_bags` parts of the rows. Scores are the
mean of the fit of all rows and the mean of the others, which is again a sum of terms, times one factor that is chosen by the rows
that each fit did not see. How the fits differ gives the errors of curves and pairs (jackknife).

What three or more numbers decide together is beyond these terms. Where rows are many, a last stage adds symmetric trees over the
bins of the numbers, grown on what the scores of left-out rows leave unexplained, as many as held-out rows ask for: none where they
do not gain beyond chance.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from pgm_bma.additive._kernels import grow_tree
from pgm_bma.additive.averages import N_STRENGTHS
from pgm_bma.additive.choice import MOST_CELL_WEIGHTS, MOST_PAIRS
from pgm_bma.additive.model import Trees, additive_model, factor_errors, model_scores, tree_lines
from pgm_bma.additive.monotone import only_curves, with_pooled_curves
from pgm_bma.additive.solve import OFF, SEARCH, TREES, fit_weights
from pgm_bma.additive.terms import (
    MOST_COLUMNS,
    MOST_INDICATORS,
    WIDE,
    AverageTerms,
    TermWeights,
    column_gains,
    make_terms,
    row_features,
    strong_columns,
)
from pgm_bma.foundation.numbers.folds import deal, deal_groups, row_colours
from pgm_bma.foundation.numbers.softmax_ridge import MAX_CONTRASTS
from pgm_bma.foundation.runtime.compiling import few_threads
from pgm_bma.foundation.runtime.messages import warn

_MOST_NUMBERS = MAX_CONTRASTS // 2  # rows x classes x terms: Newton steps copy them twice
N_BAGS, FEW_ROWS = (
    8,
    500,
)  # chosen on 22 tables of at most 351 rows; from 500 rows on the gain is not worth nine times the time
_MOST_IN_BAGS = 2_000_000  # rows x classes x terms: more of them take too long
_FACTOR_RIDGE = 20.0  # nats: the logarithm of the factor has a prior spread of .16


def fit_additive(data, kinds, n_bags=None, progress=None):
    """Fit the weights of averaged terms.

    Parameters
    ----------
    data : AdditiveData
    kinds : some of KINDS
    n_bags : number of further fits, each without a part of the rows; 1 for none, None for `N_BAGS` where rows are few
    progress : function (number of steps done) or None

    Returns
    -------
    list of AdditiveFit, whose scores are to be added: that of all rows first
    """
    data, with_trees = _sampled(data), "tree" in kinds
    kinds = [kind for kind in kinds if kind != "tree"]
    size = len(data.target) * (data.n_classes - 1) * _most_terms(data)
    if n_bags is None:
        n_bags = N_BAGS if data.weights.sum() < FEW_ROWS and size < _MOST_IN_BAGS else 1
    with few_threads(size):
        first = _fit(data, kinds, progress, with_trees=with_trees and n_bags < 2)
        screened = len(first.terms.columns) < len(
            data.n_bins
        )  # by all rows, so that none would be held out of a further fit
        if n_bags < 2 or screened or data.weights.sum() < max(2 * n_bags, SEARCH.fewest_rows):
            return [first]
        return _with_bags(first, data, kinds, n_bags, progress)


def _with_bags(first, data, kinds, n_bags, progress):
    """The fit of all rows and those without a part of them, each with its share in the sum of scores."""
    fits, scores, targets, rows = [], [], [], []
    for part in deal_rows(data, n_bags, _colours(data)):
        held = part > 0
        fit = _fit(data.without(part), kinds, progress, all_columns=True)
        scores.append(model_scores(additive_model([fit]), data.codes[held], data.values[held]))
        targets.append(data.target[held])
        rows.append(part[held])
        fits.append(fit)
    factor = _held_out_factor(np.concatenate(scores), np.concatenate(targets), np.concatenate(rows))
    return [first.scaled(factor / 2), *(fit.scaled(factor / 2 / len(fits)) for fit in fits)]


def _held_out_factor(scores, target, rows):
    """Factor on scores at which the loss of held-out rows is least, drawn to 1."""

    def loss(log_factor):
        scaled = np.exp(log_factor) * scores
        losses = np.logaddexp.reduce(scaled, axis=1) - scaled[np.arange(len(target)), target]
        return rows @ losses + _FACTOR_RIDGE * log_factor**2

    return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 1.0), method="bounded").x))


def _fit(data, kinds, progress, all_columns=False, with_trees=False):
    points, shares, bar = choose_ridges(data, kinds, progress, all_columns)
    columns = None if all_columns else strong_columns(column_gains(data, "pair" in kinds), bar)
    terms, contrasts = make_terms(data, kinds, columns)
    theta = _averaged_weights(contrasts, data.weights, points, shares)
    looser = {kind: min((point[kind] for point in points), key=abs) for kind in kinds}
    errors = factor_errors(contrasts, data.weights, theta, np.abs(_ridge_values(contrasts, looser)), terms)
    fit = AdditiveFit(terms, TermWeights.from_flat(theta, terms), points[0], errors)
    shown = data.take_columns(terms.columns)
    if np.any(shown.monotone):
        terms, contrasts = with_pooled_curves(shown, terms, contrasts, additive_model([fit]))
        theta = _averaged_weights(contrasts, data.weights, points, shares)
        fit = fit._replace(terms=terms, weights=only_curves(shown, terms, TermWeights.from_flat(theta, terms)))
    n_numbers = int((shown.numeric & (shown.monotone == 0)).sum())
    if not with_trees or data.weights.sum() < TREES.fewest_rows or n_numbers < TREES.fewest_numbers:
        return fit
    others = np.arange(data.n_classes)[None, :] != data.target[:, None]
    scores = np.zeros(others.shape)
    scores[others] = contrasts.scores(theta).ravel()
    return fit._replace(trees=grow_trees(shown, scores, _colours(data)))


def _averaged_weights(contrasts, rows, points, shares):
    """Weights of all points by their shares."""
    thetas = [_fit_weights(contrasts, rows, points[0])]
    thetas += [_fit_weights(contrasts, rows, point, thetas[0], SEARCH.rough) for point in points[1:]]
    return sum(share * theta for share, theta in zip(shares, thetas))


def grow_trees(data, scores, colours):
    """`Trees` on top of scores (n, n_classes) of left-out rows; None where held-out rows do not gain by them beyond chance."""
    part = deal_rows(data, TREES.n_parts, colours)[0]
    held, rows = part > 0, part[part > 0]
    numbers = np.flatnonzero(data.numeric & (data.monotone == 0))
    bins = np.maximum(data.codes.T[numbers], 0).astype(np.uint8)  # a missing value is with the lowest
    n_bins = np.asarray(data.n_bins, dtype=np.int64)[numbers]
    boosting = _Boosting(data, bins, n_bins, scores, data.weights - part)
    target, found, held_bins = data.target[held], scores[held].T, bins[:, held]
    before = _losses(found, target)
    best, n_best, gain = 0.0, 0, before
    for n_trees in range(1, TREES.most + 1):
        tree = boosting.grow()
        found = found + tree_lines(Trees(tree.splits[None], tree.leaves[None]), held_bins).T
        losses = _losses(found, target)
        if rows @ (before - losses) > best:
            best, n_best, gain = rows @ (before - losses), n_trees, before - losses
        if n_trees - n_best >= TREES.patience:
            break
    mean = best / rows.sum()
    if n_best == 0 or best <= SEARCH.sure * np.sqrt(rows @ (gain - mean) ** 2):
        return None
    boosting = _Boosting(data, bins, n_bins, scores, data.weights)
    grown = [boosting.grow() for _ in range(n_best)]
    splits = np.stack([tree.splits for tree in grown])
    splits[:, :, 0] = numbers[splits[:, :, 0]]
    return Trees(splits, np.stack([tree.leaves for tree in grown]))


def _losses(scores, target):
    """(n,) log losses of scores (n_classes, n): sums over few classes are fast when the rows come last."""
    top = scores.max(axis=0)
    return top + np.log(np.exp(scores - top).sum(axis=0)) - scores[target, np.arange(len(target))]


class _Boosting:
    """Rows that trees are grown on, one after the other; scores (n_classes, n)."""

    def __init__(self, data, bins, n_bins, scores, rows):
        kept = rows > 0
        self.bins, self.n_bins = np.ascontiguousarray(bins[:, kept]), n_bins
        self.scores, self.rows = np.ascontiguousarray(scores[kept].T), rows[kept]
        self.own = np.arange(data.n_classes)[:, None] == data.target[kept]
        self.places = np.empty(kept.sum(), dtype=np.int64)

    def grow(self):
        """The next tree, which is added to the scores."""
        odds = np.exp(self.scores - self.scores.max(axis=0))
        p = odds / odds.sum(axis=0)
        n_own = 1 if len(p) == 2 else len(p)  # of two classes one is the other upside down
        p, own = p[:n_own], self.own[:n_own]
        pulls = np.stack([(self.rows * (own - p)).T, (self.rows * (p * (1 - p))).T], axis=2)
        splits, leaves = np.zeros((TREES.depth, 2), dtype=np.int64), np.zeros((2**TREES.depth, n_own))
        grow_tree(self.bins, self.n_bins, pulls, TREES.ridge, splits, leaves, self.places)
        leaves = TREES.rate * (np.hstack([leaves, -leaves]) if n_own == 1 else leaves)
        self.scores += leaves.T[:, self.places]
        return Trees(splits, leaves)


def _most_terms(data):
    """Largest number of terms that rows of such a table can have."""
    n_columns = min(len(data.n_bins), MOST_COLUMNS)
    n_states = min(int(data.n_bins[~data.numeric].sum()), MOST_INDICATORS)
    n_cells = MOST_CELL_WEIGHTS if (~data.numeric).sum() > 1 else 0
    return 2 + 2 * n_columns + MOST_PAIRS + N_STRENGTHS + n_states + n_cells


def _sampled(data):
    """All rows, or of more than memory takes a sample, which follows from the data."""
    most = _MOST_NUMBERS // ((data.n_classes - 1) * _most_terms(data))
    n_parts = -(-len(data.target) // most)
    if n_parts <= 1:
        return data
    part = _sample(data, n_parts, _colours(data))
    kept = part > 0
    warn(
        f"terms and weights are those of {kept.sum()} of the {len(kept)} different rows: all of them would take more than "
        f"{_MOST_NUMBERS:.3g} numbers in memory; drop columns, or merge states, to use more rows"
    )
    return data.take(kept, part[kept])


def choose_ridges(data, kinds, progress=None, all_columns=False):
    """Ridges by held-out loss: (list of kind -> ridge, best first; their shares in the average; bar of `strong_columns`).

    Of a wide table all columns (as many as may be) are tried, and those that say something beyond the chance of so many.
    """
    known = SEARCH.starts + (SEARCH.wide_starts if len(data.n_bins) > WIDE else ())
    starts = [{kind: start[kind] for kind in kinds} for start in known]
    total = data.weights.sum()
    if total < SEARCH.fewest_rows:
        return starts[:1], np.ones(1), -np.inf
    colours = _colours(data)
    n_parts = int(total // SEARCH.enough_rows)
    if n_parts > 1:  # ridges do not ask for all rows
        sample = _sample(data, n_parts, colours)
        data, colours = data.take(sample > 0, sample[sample > 0]), colours[sample > 0]
    parts = deal_rows(data, SEARCH.n_folds[int(total >= SEARCH.many_rows)], colours)
    gains = [None if all_columns else column_gains(data.without(part), "pair" in kinds) for part in parts]
    bars = [-np.inf] if gains[0] is None else [-np.inf, np.log(len(gains[0]))]
    tried = []
    for bar in bars:
        folds = _TermFolds(data, kinds, parts, progress, [strong_columns(gain, bar) for gain in gains])
        tried.append((bar, folds.present, _tried_points(folds, starts)))
    bar, present, totals = min(tried, key=lambda found: min(found[2].values()))
    keys = sorted(totals, key=totals.get)[: SEARCH.most_points]
    losses = np.array([totals[key] for key in keys])
    shares = np.exp((losses[0] - losses) / SEARCH.spread)
    used = shares > SEARCH.smallest_share * shares.sum()
    points = [{**starts[0], **dict(zip(present, key))} for key, kept in zip(keys, used) if kept]
    return points, shares[used] / shares[used].sum(), bar


def _tried_points(folds, starts):
    """Held-out loss of the points on the way of the search: {ridges of the kinds that are present: loss}."""
    if folds.parts[0].sum() >= SEARCH.telling_rows:  # one fold shows which are far off
        starts = sorted(starts, key=lambda start: folds.total(start, 1))[: SEARCH.n_final_starts]
    point = dict(min(starts, key=folds.total))
    _search(point, [kind for kind in folds.present if kind != "cell"], folds)
    if "cell" in folds.present:  # many weights: asked for after all else, and only where they gain beyond chance
        cells = {kind: SEARCH.cells[kind] for kind in point}
        rival = min({**point, "cell": SEARCH.cells["cell"]}, cells, key=folds.total)
        if folds.gains(rival, point):
            point = dict(rival)
            _search(point, folds.present, folds, 1)
        elif folds.total(rival) >= folds.total(point):
            folds.forget("cell")
    return folds.totals()


def _search(point, kinds, folds, n_rounds=2):
    """Walk along every kind, then again, because the best ridge of one depends on those of the others."""
    for _ in range(n_rounds):
        before = dict(point)
        for kind in kinds:
            _walk(point, kind, folds)
        if point == before:
            return


def _walk(point, kind, folds):
    """Move `point` along the grid of one kind, down or else up, while a step gains more than chance would."""
    grid = SEARCH.grids[kind]
    position = grid.index(point[kind])
    for step in (-1, 1):
        k = position + step
        while 0 <= k < len(grid) and folds.gains({**point, kind: grid[k]}, point):
            point[kind] = grid[k]
            k += step
        if point[kind] != grid[position]:
            break


def _colours(data):
    """Colours of the rows by their bins (see `folds`), ties by their values, so that the order of rows does not matter."""
    bins = row_colours(data.codes, data.target, data.weights)
    bits = np.nan_to_num(data.values).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(29))).sum(axis=1)
    if data.groups is not None:  # equal rows of two groups have one colour
        return bins ^ bits
    order = np.lexsort((bits, bins))
    ranks = np.empty(len(order), dtype=np.uint64)
    ranks[order] = np.arange(len(order), dtype=np.uint64)
    return ranks


def deal_rows(data, n_folds, colours):
    """Weight of every row in every fold, see `folds.deal`: copies, and rows of a group, stay together."""
    if data.groups is not None:
        return deal_groups(data.target, data.weights, data.groups, n_folds, colours)
    return deal(data.target, data.weights, n_folds, colours, data.repeats == "copies")


def _sample(data, n_parts, colours):
    """Weights of the rows in one of so many parts; rows of a group need not stay together, as the rest is not held out."""
    return deal(data.target, data.weights, n_parts, colours, data.repeats == "copies", n_kept=1)[0]


class _TermFolds:
    """Training problems of the folds, and the losses of their held-out rows."""

    def __init__(self, data, kinds, parts, progress, columns):
        self.parts, self.data, self.progress = parts, data, progress
        self.problems, self.starts = [], [None] * len(parts)
        for part, own in zip(parts, columns):
            train = data.without(part)
            terms, contrasts = make_terms(train, kinds, own)
            held = part > 0
            features = row_features(terms, data.codes[held], data.values[held])
            self.problems.append((train.weights, terms, contrasts, held, features))
        found = {kind for _, _, contrasts, _, _ in self.problems for kind in contrasts.kinds}
        self.present = [kind for kind in kinds if kind in found]
        self.rows = np.concatenate([part[part > 0] for part in parts])
        self.tried = {}  # ridges of the kinds that are present -> losses of the held-out rows, fold by fold

    def losses(self, ridge, n_folds=None):
        """Losses of the held-out rows of the first folds, default all."""
        n_folds = n_folds or len(self.problems)
        found = self.tried.setdefault(tuple(ridge[kind] for kind in self.present), [])
        for f in range(len(found), n_folds):
            rows, terms, contrasts, held, features = self.problems[f]
            theta = _fit_weights(contrasts, rows, ridge, self.starts[f], SEARCH.rough)
            self.starts[f] = theta
            scores = features.scores(TermWeights.from_flat(theta, terms))
            own = scores[np.arange(len(scores)), self.data.target[held]]
            found.append(np.logaddexp.reduce(scores, axis=1) - own)
            if self.progress is not None:
                self.progress(1)
        return np.concatenate(found[:n_folds])

    def total(self, ridge, n_folds=None):
        losses = self.losses(ridge, n_folds)
        return float(self.rows[: len(losses)] @ losses)

    def totals(self):
        """Held-out loss of every point that was tried in all folds."""
        whole = {key: found for key, found in self.tried.items() if len(found) == len(self.problems)}
        return {key: float(self.rows @ np.concatenate(found)) for key, found in whole.items()}

    def forget(self, kind):
        """Points with a kind by which held-out rows did not gain at all have no part in the average."""
        place = self.present.index(kind)
        self.tried = {key: found for key, found in self.tried.items() if key[place] == OFF}

    def gains(self, ridge, present):
        """Return whether `ridge` beats `present` beyond `sure` paired standard errors."""
        gain = self.losses(present) - self.losses(ridge)
        mean = self.rows @ gain / self.rows.sum()
        error = np.sqrt(self.rows @ (gain - mean) ** 2)
        return self.rows @ gain > max(SEARCH.sure * error, SEARCH.rounding)


def _fit_weights(contrasts, rows, ridge, start=None, tolerance=1e-10):
    """Weights of the contrasts; a kind that is off is held at its centre."""
    ridge = {**SEARCH.fixed, **ridge}
    values = _ridge_values(contrasts, ridge)
    drawn = np.array([kind in ("prior", "single", "curve") for kind in contrasts.kinds])
    centre = np.where(drawn & (values > 0), 1.0, 0.0)
    free = np.abs(values) < OFF
    theta = centre.copy()
    begin = centre if start is None else np.where(free, start, centre)
    used = contrasts.take([kind for kind, value in ridge.items() if abs(value) < OFF])
    theta[free] = fit_weights(used, rows, np.abs(values[free]), centre[free], begin[free], tolerance)
    return theta


def _ridge_values(contrasts, ridge):
    ridge = {**SEARCH.fixed, **ridge}
    return np.array([ridge[kind] for kind in contrasts.kinds])


class AdditiveFit(NamedTuple):
    """The terms, their weights, the ridge of every kind, errors by set of columns (see `model.factor_errors`).

    share : factor that the weights hold already, the share of the fit in the sum of scores
    """

    terms: AverageTerms
    weights: TermWeights
    ridge: dict
    errors: dict
    share: float = 1.0
    trees: Trees | None = None

    def scaled(self, share):
        """With all weights times `share`."""
        weights = TermWeights(*(share * part for part in self.weights))
        return self._replace(weights=weights, share=self.share * share)
