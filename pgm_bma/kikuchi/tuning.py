"""Ridge and prior mass of learned weights, chosen by cross-validation with tables and weights made anew in every fold.

The leave-one-out likelihood that the weights maximise is no fair judge of the ridge: a row left out of its own features
still stands in the features of its neighbours, so terms of sparse cells look better than they are. Here a fold is out of
everything. The search walks along one grid after the other (prior mass, ridge of pairs, of triples, of single attributes)
from a middle value as long as the held-out log loss falls.
"""

from typing import Any, NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.folds import deal, row_colours
from pgm_bma.kikuchi.terms import class_data, count_tables, log_scores, make_layout, set_faces, terms_of_tables
from pgm_bma.kikuchi.weights import fit_contrasts, leave_one_out_contrasts, naive_weights, ridge_vector

STRENGTHS = (2.0, 10.0, 30.0, 100.0)
RIDGES = {1: (1.0, 5.0, 25.0), 2: (1.0, 5.0, 30.0, 200.0, 1000.0), 3: (1.0, 5.0, 30.0, 200.0, 1000.0)}
START_STRENGTH, START = 10.0, {1: 1.0, 2: 30.0, 3: 200.0}  # the ridges by order
DEFAULT_STRENGTH = 2.0
_FEWEST_ROWS, _MANY_ROWS = 10, 1000
_ROUNDING = 1e-9  # a gain below is noise of the order in which numbers were added
_KEPT_CONTRASTS = 60_000_000  # numbers: half a gigabyte


def tune_weights(data, sets, prior, strength, n_folds=None, progress=None):
    """Best prior mass and ridge by held-out log loss.

    Parameters
    ----------
    data : ClassData
    sets : downward closed attribute sets
    strength : total prior mass, or None to choose it (prior "consistent" only)
    n_folds : default 3, from 1000 rows on 2; a row of weight w is w rows

    Returns
    -------
    Tuned
    """
    choose_strength = strength is None and prior == "consistent"
    orders = sorted({min(max(len(s), 1), 3) for s in sets}, key=lambda order: (order == 1, order))
    point: dict[Any, Any] = {"strength": START_STRENGTH if choose_strength else strength or DEFAULT_STRENGTH}
    point |= {order: START[order] for order in orders}
    if data.weights.sum() < _FEWEST_ROWS:
        return Tuned(point["strength"], {order: point[order] for order in orders}, [])
    n_folds = n_folds or (3 if data.weights.sum() < _MANY_ROWS else 2)
    colours = row_colours(data.codes, data.target, data.weights)
    parts = deal(data.target, data.weights, n_folds, colours, data.repeats == "copies")
    folds = _RegionFolds(data, sets, prior, parts, progress)
    tried: dict[tuple, float] = {}
    if choose_strength:
        walk(point, "strength", STRENGTHS, folds, tried)
    for order in orders:
        walk(point, order, RIDGES[order], folds, tried)
    path = [{**dict(key), "log_loss": loss} for key, loss in tried.items()]
    return Tuned(point["strength"], {order: point[order] for order in orders}, path)


def walk(point, axis, grid, folds, tried):
    """Move `point` along one axis, down or else up, while the loss falls."""
    position = grid.index(point[axis])
    best = _loss(point, folds, tried)
    for step in (-1, 1):
        k = position + step
        while 0 <= k < len(grid):
            loss = _loss({**point, axis: grid[k]}, folds, tried)
            if loss >= best - _ROUNDING:
                break
            best, point[axis] = loss, grid[k]
            k += step
        if point[axis] != grid[position]:  # it fell on this side: not looked for on the other
            break


def _loss(point, folds, tried):
    key = tuple(point.items())
    if key not in tried:
        ridge = {order: value for order, value in point.items() if order != "strength"}
        tried[key] = folds.loss(point.get("strength"), ridge)
    return tried[key]


class _RegionFolds:
    """Training problems of the folds. Weights are kept as the next start, contrasts while they are small enough."""

    def __init__(self, data, sets, prior, parts, progress=None):
        self.data, self.sets, self.prior, self.parts, self.progress = data, sets, prior, parts, progress
        self.centre = naive_weights(sets)
        self.starts = [self.centre] * len(parts)
        self.keep = len(parts) * len(data.codes) * (data.n_classes - 1) * len(sets) <= _KEPT_CONTRASTS
        self.strength, self.problems = None, {}
        self.layout = make_layout(sets, data.cardinalities, data.n_classes)
        self.faces = set_faces(self.layout)
        self.counted = []
        for part in parts:
            rest = data.weights - part
            kept = rest > 0
            train = class_data(
                data.codes[kept], data.target[kept], data.cardinalities, data.n_classes, rest[kept], data.unit
            )
            self.counted.append((train, *count_tables(train, self.layout)))

    def problem(self, f, strength):
        """(training data, terms, contrasts) of fold `f`."""
        if strength != self.strength:
            self.strength, self.problems = strength, {}
        if f in self.problems:
            return self.problems[f]
        train, counts, totals = self.counted[f]
        terms = terms_of_tables(self.layout, self.faces, counts, totals, self.prior, strength, train.unit)
        problem = train, terms, leave_one_out_contrasts(train, terms)
        if self.keep:
            self.problems[f] = problem
        return problem

    def loss(self, strength, ridge):
        """Mean held-out log loss."""
        penalties = ridge_vector(self.sets, ridge)
        data, total = self.data, 0.0
        for f, part in enumerate(self.parts):
            train, terms, contrasts = self.problem(f, strength)
            # a rough optimum is enough to compare penalties
            theta = fit_contrasts(contrasts, train.weights, self.centre, penalties, self.starts[f], tolerance=1e-3)
            self.starts[f] = theta
            held = part > 0
            scores = log_scores(terms, data.codes[held], theta)
            own = scores[np.arange(len(scores)), data.target[held]]
            total += part[held] @ (np.logaddexp.reduce(scores, axis=1) - own)
            if self.progress is not None:
                self.progress(1)
        return float(total / self.parts.sum())


class Tuned(NamedTuple):
    """Prior mass, ridge by order of the set, and every point tried with its held-out log loss."""

    strength: float
    ridge: dict
    path: list
