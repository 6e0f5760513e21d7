"""One convex fit of the weights of averaged terms, with a ridge per kind of term, averaged over the ridges that predict well.

The weights maximise the conditional likelihood of rows that are left out of their own terms (see `terms`). Each kind has a grid of
ridges (`ridges.RidgeSearch`); single terms are drawn to weight 1 (naive Bayes) or, where their ridge is negative, to 0, which with
a stiff ridge leaves them out: then what is left is a logistic regression. Ridges are judged by the loss of held-out rows, with all
terms made anew in every fold. The search begins at the best of a few starts and walks along one kind after the other, a step only
where the gain is beyond 1.5 of its paired standard errors: the best of many points is too often the luckiest. The weights of all
points tried are then averaged by their held-out loss; those with cells, which have many weights, only where held-out rows gain by
cells at all.

Where rows are few one fit varies too much. Then there are more fits, each without one of `n_bags` parts of the rows. Scores are
the mean of the fit of all rows and the mean of the others, which is again a sum of terms. How the fits differ gives the errors of
curves and pairs (jackknife).

What three or more columns decide together is beyond these terms, and left to a random forest (see `forest`). One factor on all
scores and the weight of the forest are fitted to rows that neither has seen: those that the further fits, or the folds of the
ridges, left out, and the trees that did not draw them. Where rows are many, a last stage adds symmetric trees (see `trees`).
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.additive.averages import N_STRENGTHS
from pgm_bma.additive.choice import MOST_CELL_WEIGHTS, MOST_PAIRS
from pgm_bma.additive.forest import Forest, fit_forest
from pgm_bma.additive.model import Trees, additive_model, factor_errors, model_scores
from pgm_bma.additive.monotone import only_curves, with_pooled_curves
from pgm_bma.additive.solve import OFF, RIDGED, SEARCH, TREES, against_own, fit_weights
from pgm_bma.additive.terms import (
    MOST_COLUMNS,
    MOST_INDICATORS,
    WIDE,
    AverageTerms,
    TermWeights,
    column_gains,
    design_kinds,
    design_owners,
    make_terms,
    row_features,
    strong_columns,
)
from pgm_bma.additive.trees import grow_trees
from pgm_bma.foundation.numbers.folds import deal, deal_groups, row_colours
from pgm_bma.foundation.numbers.softmax_ridge import MAX_CONTRASTS, ridge_fit
from pgm_bma.foundation.runtime.compiling import few_threads
from pgm_bma.foundation.runtime.messages import warn

_MOST_NUMBERS = MAX_CONTRASTS // 2  # rows x classes x terms: Newton steps copy them twice
# chosen on 22 tables of at most 351 rows; from 500 rows on the gain is not worth nine times the time
N_BAGS, FEW_ROWS = 8, 500
_MOST_IN_BAGS = 2_000_000  # rows x classes x terms: more of them take too long
# of the factor on all scores, which has a prior spread of .3, and of the weight of the forest; chosen on development tables
_LAST_RIDGES, _LEAST_FACTOR = (10.0, 2.0), 0.05


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
    data, last = _sampled(data), [kind for kind in kinds if kind not in RIDGED]
    kinds = [kind for kind in kinds if kind in RIDGED]
    size = len(data.target) * (data.n_classes - 1) * _most_terms(data)
    if n_bags is None:
        n_bags = N_BAGS if data.weights.sum() < FEW_ROWS and size < _MOST_IN_BAGS else 1
    with few_threads(size):
        fit, held_out, scores = _fit(data, kinds, progress)
        screened = len(fit.terms.columns) < len(data.n_bins)  # by all rows, so that none would be held out of more fits
        fits = [fit]
        if n_bags > 1 and not screened and data.weights.sum() >= max(2 * n_bags, SEARCH.fewest_rows):
            fits, held_out = _with_bags(fit, data, kinds, n_bags, progress)
        if held_out is None:
            return fits
        return _with_last(fits, held_out, scores, data, last)


def _with_bags(first, data, kinds, n_bags, progress):
    """The fit of all rows and those without a part of them, each with its share in the sum of scores; `HeldOut` of the latter."""
    fits, found = [], []
    for part in deal_rows(data, n_bags, _colours(data)):
        held = part > 0
        fit, _, _ = _fit(data.without(part), kinds, progress, all_columns=True)
        scores = model_scores(additive_model([fit]), data.codes[held], data.values[held])
        found.append(HeldOut(np.flatnonzero(held), part[held], scores))
        fits.append(fit)
    fits = [first.scaled(0.5), *(fit.scaled(0.5 / len(fits)) for fit in fits)]
    return fits, HeldOut(*(np.concatenate(parts) for parts in zip(*found)))


def _with_last(fits, held_out, scores, data, kinds):
    """The fits with a factor on all weights, the forest and the trees; scores (n, n_classes) of left-out rows, of the first fit."""
    colours, total = _colours(data), data.weights.sum()
    shown = data.take_columns(fits[0].terms.columns)
    n_numbers = (shown.numeric & (shown.monotone == 0)).sum()
    boosted = len(fits) == 1 and total >= TREES.fewest_rows and n_numbers >= TREES.fewest_numbers and "tree" in kinds
    places = np.arange(len(data.target)) if boosted else np.unique(held_out.places)
    found = fit_forest(data, fits[0].terms.shares, colours, places) if "forest" in kinds else None
    forest, term = found or (None, None)
    columns = [held_out.scores] if term is None else [held_out.scores, term[np.searchsorted(places, held_out.places)]]
    factor, *weight = _last_weights(columns, data.target[held_out.places], held_out.rows)
    first, *others = [fit.scaled(factor) for fit in fits]
    if weight and forest is not None:
        first = first._replace(forest=forest._replace(weight=weight[0]))
    if boosted:
        scores = factor * scores + (weight[0] * term if weight else 0.0)
        part = deal_rows(shown, TREES.n_parts, colours)[0]
        first = first._replace(trees=grow_trees(shown, scores, part))
    return [first, *others]


def _last_weights(columns, target, rows):
    """Factors on scores (m, n_classes) at which the loss of held-out rows is least: the first is drawn to 1, a second to 0.

    There is no second factor where it would not be above 0.
    """
    contrasts = np.stack([against_own(column, target) for column in columns], axis=2)
    centre, ridge = np.array([1.0, 0.0])[: len(columns)], np.array(_LAST_RIDGES)[: len(columns)]
    factors = ridge_fit(contrasts, rows, centre, ridge, centre)
    if len(factors) > 1 and factors[1] <= 0:
        return _last_weights(columns[:1], target, rows)
    return [max(float(factors[0]), _LEAST_FACTOR), *factors[1:].tolist()]


def _fit(data, kinds, progress, all_columns=False):
    """(AdditiveFit, HeldOut of the rows that chose the ridges or None, (n, n_classes) scores of left-out rows, own class 0)."""
    choices = choose_ridges(data, kinds, progress, all_columns)
    gains = None if all_columns else column_gains(data, "pair" in kinds)
    found = [_fit_points(data, kinds, choice, strong_columns(gains, choice.bar)) for choice in choices]
    if len(found) == 1:
        return found[0][0], choices[0].held_out, found[0][1]
    held_out = choices[0].held_out
    held_out = held_out._replace(scores=sum(choice.share * choice.held_out.scores for choice in choices))
    scores = sum(choice.share * scores for choice, (_, scores) in zip(choices, found))
    return merged(*(fit.scaled(choice.share) for choice, (fit, _) in zip(choices, found))), held_out, scores


def _fit_points(data, kinds, choice, columns):
    """(AdditiveFit of some columns, (n, n_classes) scores of left-out rows, own class 0)."""
    points, shares = choice.points, choice.shares
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
    others = np.arange(data.n_classes)[None, :] != data.target[:, None]
    scores = np.zeros(others.shape)
    scores[others] = contrasts.scores(theta).ravel()
    return fit, scores


def _averaged_weights(contrasts, rows, points, shares):
    """Weights of all points by their shares."""
    thetas = [_fit_weights(contrasts, rows, points[0])]
    thetas += [_fit_weights(contrasts, rows, point, thetas[0], SEARCH.rough) for point in points[1:]]
    return sum(share * theta for share, theta in zip(shares, thetas))


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
    """`Choice` of ridges and columns by held-out loss: list of one or two, whose fits are averaged.

    Of a wide table all columns (as many as may be) are tried, and those that say something beyond the chance of so many. Where not
    all may have terms, those that do are the luckiest of many: then they do not stand alone.
    """
    known = SEARCH.starts + (SEARCH.wide_starts if len(data.n_bins) > WIDE else ())
    starts = [{kind: start[kind] for kind in kinds} for start in known]
    total = data.weights.sum()
    if total < SEARCH.fewest_rows:
        return [Choice(-np.inf, starts[:1], np.ones(1), None)]
    places = np.arange(len(data.target))
    colours = _colours(data)
    n_parts = int(total // SEARCH.enough_rows)
    if n_parts > 1:  # ridges do not ask for all rows
        sample = _sample(data, n_parts, colours)
        data, colours, places = data.take(sample > 0, sample[sample > 0]), colours[sample > 0], places[sample > 0]
    parts = deal_rows(data, SEARCH.n_folds[int(total >= SEARCH.many_rows)], colours)
    gains = [None if all_columns else column_gains(data.without(part), "pair" in kinds) for part in parts]
    bars = [-np.inf] if gains[0] is None else [-np.inf, np.log(len(gains[0]))]
    tried = []
    for bar in bars:
        folds = _TermFolds(data, kinds, parts, progress, [strong_columns(gain, bar) for gain in gains])
        tried.append((bar, folds, _tried_points(folds, starts)))
    best = _choice(*min(tried, key=lambda found: min(found[2].values())), places, kinds)
    if best.bar == bars[-1] or len(data.n_bins) <= MOST_COLUMNS or np.any(data.monotone):
        return [best]
    bar, folds, totals = tried[1]  # the few strong ones, next to the best: all that may be
    if "gaussian" in folds.present:  # it has no part in `merged`
        k = folds.present.index("gaussian")
        totals = {key: total for key, total in totals.items() if key[k] == OFF}
    if not totals:
        return [best]
    choices = best, _choice(bar, folds, totals, places, kinds)
    held = [choice.held_out for choice in choices]
    target = np.concatenate([data.target[part > 0] for part in parts])
    contrasts = np.stack([against_own(each.scores, target) for each in held], axis=2)
    ridge, centre = np.full(2, _LAST_RIDGES[0]), np.full(2, 0.5)
    shares = ridge_fit(contrasts, held[0].rows, centre, ridge, centre)
    if min(shares) <= 0:
        return [best]
    return [choice._replace(share=float(share)) for choice, share in zip(choices, shares)]


def _choice(bar, folds, totals, places, kinds):
    """`Choice` of the best points that were tried: places (n,) of the rows of the folds in the whole table."""
    keys = sorted(totals, key=totals.get)[: SEARCH.most_points]
    losses = np.array([totals[key] for key in keys])
    shares = np.exp((losses[0] - losses) / SEARCH.spread)
    used = shares > SEARCH.smallest_share * shares.sum()
    keys, shares = [key for key, kept in zip(keys, used) if kept], shares[used] / shares[used].sum()
    # a kind that no fold could have (densities of many numbers ask for rows) was not judged, and stays out
    points = [{**dict.fromkeys(kinds, OFF), **dict(zip(folds.present, key))} for key in keys]
    return Choice(bar, points, shares, folds.held_out(keys, shares, places))


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
        self.scores = {}

    def losses(self, ridge, n_folds=None):
        """Losses of the held-out rows of the first folds, default all."""
        n_folds = n_folds or len(self.problems)
        key = tuple(ridge[kind] for kind in self.present)
        found = self.tried.setdefault(key, [])
        for f in range(len(found), n_folds):
            rows, terms, contrasts, held, features = self.problems[f]
            theta = _fit_weights(contrasts, rows, ridge, self.starts[f], SEARCH.rough)
            self.starts[f] = theta
            scores = features.scores(TermWeights.from_flat(theta, terms))
            own = scores[np.arange(len(scores)), self.data.target[held]]
            found.append(np.logaddexp.reduce(scores, axis=1) - own)
            self.scores[key, f] = scores
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

    def held_out(self, keys, shares, places):
        """`HeldOut` of the average of some points; places (n,) of the rows in the whole table."""
        scores = [sum(share * self.scores[key, f] for key, share in zip(keys, shares)) for f in range(len(self.parts))]
        return HeldOut(np.concatenate([places[part > 0] for part in self.parts]), self.rows, np.concatenate(scores))

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


def merged(wide, narrow):
    """One fit whose scores are the sum of those of two.

    The columns of `narrow` are among those of `wide`, and its densities have no weight.
    """
    place = np.searchsorted(wide.terms.columns, narrow.terms.columns).tolist()
    own = [range(len(wide.terms.columns)), place]
    tables: dict[tuple, np.ndarray] = {}
    errors: dict[tuple, float] = {}
    indicated: set[int] = set()
    cells: set[tuple] = set()
    for fit, columns in zip((narrow, wide), own[::-1]):
        tables.update((_placed(pair, columns), table) for pair, table in zip(fit.terms.pairs, fit.terms.tables))
        errors.update((_placed(members, columns), error) for members, error in fit.errors.items())
        indicated.update(columns[j] for j in fit.terms.indicated)
        cells.update(_placed(pair, columns) for pair in fit.terms.cells)
    pairs = sorted(tables)
    terms = wide.terms._replace(
        pairs=pairs,
        tables=[tables[pair] for pair in pairs],
        kinds=[kind for kind in wide.terms.kinds if kind != "pair"] + ["pair"] * len(pairs),
        sets=wide.terms.sets[: 1 + len(own[0])] + pairs,
        indicated=sorted(indicated),
        cells=sorted(cells),
    )
    lines = {members: k for k, members in enumerate(terms.sets)}
    blocks = {(members, kind): part for members, kind, part in design_owners(terms)}
    sets, slopes = np.zeros(len(lines)), np.zeros((len(design_kinds(terms)), len(terms.shares)))
    for fit, columns in zip((wide, narrow), own):
        sets[[lines[_placed(members, columns)] for members in fit.terms.sets]] += fit.weights.sets
        for members, kind, part in design_owners(fit.terms):
            slopes[blocks[_placed(members, columns), kind]] += fit.weights.slopes[part]
    return wide._replace(
        terms=terms,
        weights=TermWeights(sets, wide.weights.densities, slopes),
        errors=errors,
        share=wide.share + narrow.share,
    )


def _placed(members, columns):
    return tuple(columns[j] for j in members)


class HeldOut(NamedTuple):
    """Rows that a fit has not seen: places (m,) in the table, rows (m,) their weights, scores (m, n_classes)."""

    places: np.ndarray
    rows: np.ndarray
    scores: np.ndarray


class Choice(NamedTuple):
    """bar of `strong_columns`; points, kind -> ridge, best first; their shares in the average; share of the fit in the scores."""

    bar: float
    points: list
    shares: np.ndarray
    held_out: HeldOut | None
    share: float = 1.0


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
    forest: Forest | None = None

    def scaled(self, share):
        """With all weights times `share`."""
        weights = TermWeights(*(share * part for part in self.weights))
        return self._replace(weights=weights, share=self.share * share)
