"""A fitted additive model as plain tables: what rows are scored by, and what `json_model` writes.

All fits of a model share the bins of the columns, so that their sum is one table per column and one per pair of columns, over
elementary bins or states; slopes of numbers and densities of all numbers together stay apart, one for each fit. The score of a
class is the sum of its prior, of the line of each column and pair at the row's bins, of slope x clipped standardised number, and of
the densities, of the forest and of leaves of trees. A missing value takes out the lines, slopes and pairs of its column, and all
densities.

The term of a column is all that it says alone, that of a pair all that its one weight and its cells add to the scores. Its
importance is the variance of that over the rows (summed over the classes, each score less its mean over them), as a share of the
same variance of the whole score. The interval is that of a factor on the term: its standard error follows from the curvature of the
penalised likelihood of left-out rows, given factors on all other terms and on the rest.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, stdtrit

from pgm_bma.additive.averages import N_STRENGTHS, normal_scores, number_strengths
from pgm_bma.additive.choice import coarse
from pgm_bma.additive.forest import Forest, forest_lines
from pgm_bma.additive.terms import CLIP, design_owners, has_level
from pgm_bma.foundation.numbers.softmax_ridge import curvature_matrix, other_classes

_BLOCK = 4096  # rows scored at a time
SURE = 1.96  # standard errors on either side
_MOST_ERRORS = 20_000_000  # rows x classes x terms whose errors are found together
GAUSSIAN, FOREST, TREE = "(gaussian)", "(forest)", "(trees)"  # lines of evidence of no one or two columns


def additive_model(fits):
    """`AdditiveModel` of fits whose scores are to be added."""
    first = fits[0].terms
    prior = np.zeros(len(first.shares))
    tables = [np.zeros_like(table) for table in first.singles]
    pairs: dict[tuple[int, int], np.ndarray] = {}
    slopes, densities = [], []
    trees = tuple(fit.trees for fit in fits if fit.trees is not None)
    for terms, weights in ((fit.terms, fit.weights) for fit in fits):
        n_bins = [len(table) for table in terms.singles]
        prior += weights.sets[0] * np.log(terms.shares)
        prior += weights.slopes[0] if has_level(terms) else 0.0
        for j, single in enumerate(terms.singles):
            tables[j] += weights.sets[1 + j] * single
        for (i, j), table, weight in zip(terms.pairs, terms.tables, weights.sets[1 + len(n_bins) :]):
            if weight == 0:
                continue
            rows, columns = (coarse(np.arange(n_bins[k]), n_bins[k], terms.numeric[k]) for k in (i, j))
            both = table[rows[:, None], columns] - terms.singles[i][:, None] - terms.singles[j]
            pairs[i, j] = pairs.get((i, j), 0.0) + weight * both
        levels = dict(terms.levels)
        for members, kind, place in design_owners(terms):
            own = weights.slopes[place]
            if kind == "state":
                tables[members[0]] += own
            elif kind == "cell":
                pairs[members] = pairs.get(members, 0.0) + own.reshape(*(n_bins[j] for j in members), -1)
            elif kind == "linear" and members[0] in levels:
                tables[members[0]] += levels[members[0]][:, None] * own
            elif kind == "linear" and np.any(own):
                number = int(np.cumsum(terms.numeric)[members[0]]) - 1
                mean, spread = terms.scale[:, number]
                slopes.append(Slope(members[0], number, float(mean), float(spread), own[0]))
        if terms.gaussian is not None and np.any(weights.densities):
            densities.append(_density(terms.gaussian, weights.densities))
    return AdditiveModel(
        first.columns,
        first.numbers,
        prior,
        tables,
        slopes,
        dict(sorted(pairs.items())),
        densities,
        trees,
        fits[0].forest,
    )


def _density(terms, weights):
    """ln t(z) - sum of ln t(z_j), see `averages`, as a constant and two sums of logarithms for each strength and class."""
    d, parts = len(terms.knots), []
    for nu, weight in zip(number_strengths(d), weights):
        for c, mass in enumerate(terms.masses):
            psi = (nu - d - 1) * terms.pooled + terms.scatters[c]
            factor = np.linalg.cholesky(psi)
            freedom = nu + mass - d
            constant = gammaln((freedom + d) / 2) - gammaln(freedom / 2) - np.log(np.diag(factor)).sum()
            constant -= d * (gammaln((freedom + 1) / 2) - gammaln(freedom / 2)) - 0.5 * np.log(np.diag(psi)).sum()
            inverse = solve_triangular(factor, np.eye(d), lower=True) * np.sqrt(mass / (mass + 1))
            widths = np.sqrt(mass / (mass + 1) / np.diag(psi))
            joint, single = float(freedom + d) / 2, float(freedom + 1) / 2
            parts.append(DensityPart(c, float(weight), float(constant), joint, single, inverse, widths))
    return Density([tuple(knot) for knot in terms.knots], terms.means, parts)


def model_scores(model, codes, values):
    """(n_samples, n_classes) sums of all that the model says of rows of the whole table."""
    scores = np.empty((len(codes), len(model.prior)))
    for start in range(0, len(codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        total = np.tile(model.prior, (len(codes[block]), 1))
        for _, line in _lines(model, codes[block], values[block]):
            total += line
        scores[block] = total
    return scores


def model_evidence(model, codes, values):
    """(n_samples, n_lines, n_classes): the evidence of `line_sets`."""
    places = {members: k for k, members in enumerate(line_sets(model))}
    lines = np.zeros((len(codes), len(places), len(model.prior)))
    lines[:, 0] = model.prior
    for members, line in _lines(model, codes, values):
        lines[:, places[members]] += line
    return lines


def line_sets(model):
    """Sets of columns with a line of evidence each: none (the prior), one, two; then those without columns that there are."""
    more = [name for name, found in ((GAUSSIAN, model.densities), (FOREST, model.forest), (TREE, model.trees)) if found]
    return [(), *((j,) for j in range(len(model.tables))), *model.pairs, *more]


def _lines(model, codes, values):
    """Yield (set of columns, (n_samples, n_classes)), see `line_sets`."""
    if model.forest is not None:
        yield FOREST, forest_lines(model.forest, codes, values)
    codes, values = codes[:, model.columns], values[:, model.numbers]
    seen = codes >= 0
    bins = np.where(seen, codes, 0)
    for j, table in enumerate(model.tables):
        yield (j,), np.where(seen[:, j, None], table[bins[:, j]], 0.0)
    for (i, j), table in model.pairs.items():
        yield (i, j), np.where((seen[:, i] & seen[:, j])[:, None], table[bins[:, i], bins[:, j]], 0.0)
    for slope in model.slopes:
        x = np.nan_to_num(np.clip((values[:, slope.number] - slope.mean) / slope.spread, -CLIP, CLIP))
        yield (slope.column,), x[:, None] * slope.weights
    for density in model.densities:
        yield GAUSSIAN, density_scores(density, values)
    for trees in model.trees:
        yield TREE, tree_lines(trees, codes.T)


def tree_lines(trees, bins):
    """Sums of the leaves that rows reach: (n_samples, n_classes); bins (n_columns, n_samples), missing ones are below all."""
    total = np.zeros((bins.shape[1], trees.leaves.shape[2]))
    for splits, leaves in zip(trees.splits, trees.leaves):
        places = np.zeros(bins.shape[1], dtype=np.int64)
        for column, last in splits:
            places = 2 * places + (bins[column] > last)
        total += leaves[places]
    return total


def density_scores(density, values):
    """(n_samples, n_classes), zeros for a row with a missing number."""
    z = normal_scores(values, density.knots)
    known = ~np.isnan(z).any(axis=1)
    scores = np.zeros((len(z), len(density.means)))
    z = z[known]
    for part in density.parts:
        v = z - density.means[part.group]
        joint = part.joint_power * np.log1p(np.square(v @ part.inverse.T).sum(axis=1))
        alone = part.single_power * np.log1p(np.square(v * part.widths)).sum(axis=1)
        scores[known, part.group] += part.weight * (part.constant - joint + alone)
    return scores


def column_curve(model, j, middles):
    """Return what column `j` says alone in each bin: (n_bins, n_classes); middles (n_bins,) of a numeric column, else None."""
    curve = model.tables[j].copy()
    for slope in model.slopes:
        if slope.column == j:
            curve += np.clip((middles - slope.mean) / slope.spread, -CLIP, CLIP)[:, None] * slope.weights
    return curve


def factors(model):
    """[(variables, logs)] over elementary bins, the class last, without the forest; an error where terms use the numbers."""
    if model.slopes or model.densities or model.trees:
        raise AttributeError(
            "model_ does not exist: linear, gaussian and tree terms use the numbers themselves, and a network has tables of bins "
            "only; fit with terms=('single', 'pair') to have it"
        )
    n = len(model.tables)
    singles = [((j, n), table) for j, table in enumerate(model.tables)]
    return [((n,), model.prior), *singles, *(((*pair, n), table) for pair, table in model.pairs.items())]


# ------------------------------------------------------------------------------------- weights, importances, errors


def named_sets(terms, place, pairs):
    """{positions, or the name of a term without columns} of the named terms; place {name: position}, pairs {(name, name)}."""
    sets = set()
    for term in terms:
        if term in place:
            sets.add((place[term],))
        elif isinstance(term, tuple) and {term, term[::-1]} & pairs:
            sets.add(tuple(sorted(place[name] for name in term)))
        elif term in (GAUSSIAN, FOREST, TREE):
            sets.add(term)
        else:
            raise ValueError(
                f"terms holds {term!r}, which is neither a column with a term, nor a pair of pairs_, nor '(gaussian)', "
                "'(forest)' or '(trees)'"
            )
    return sets


def set_labels(sets, names):
    """Names of the terms of `line_sets`, "(prior)" for the class alone."""
    return [s if isinstance(s, str) else ", ".join(str(names[a]) for a in s) or "(prior)" for s in sets]


def weight_series(fits, names, states, classes):
    """All weights with their names, summed over the fits: {label: weight}."""
    found: dict[str, float] = {}
    for fit in fits:
        terms, weights = fit.terms, fit.weights
        labels, values = set_labels(terms.sets, names), [weights.sets]
        for members, kind, columns in design_owners(terms):
            owner = "".join(f"{names[j]}, " for j in members)[:-2]
            parts = [f"{owner} ({kind}".lstrip()]
            if kind in ("state", "cell"):
                parts = [f"{parts[0]} {', '.join(map(str, cell))}" for cell in product(*(states[j] for j in members))]
            labels += [f"{part}, {c})" for part in parts for c in classes]
            values.append(weights.slopes[columns].ravel())
        if terms.gaussian is not None:
            labels += [f"(gaussian, {k})" for k in range(N_STRENGTHS)]
            values.append(weights.densities)
        for label, value in zip(labels, np.concatenate(values).tolist()):
            found[label] = found.get(label, 0.0) + value
    return found


def average_importances(model, data):
    """Mean over the rows of the standard deviation over the classes of a column's weighted terms: (n_columns,) in nats."""
    result, columns = np.zeros(data.codes.shape[1]), model.columns
    numbers = columns[data.numeric[columns]]
    owners = [numbers if isinstance(s, str) else columns[list(s)] for s in line_sets(model)]
    if model.forest is not None:
        owners[line_sets(model).index(FOREST)] = np.unique(model.forest.columns[model.forest.children >= 0])
    for start in range(0, len(data.codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        evidence = model_evidence(model, data.codes[block], data.values[block])
        spread = (data.weights[block] / data.weights.sum()) @ evidence.std(axis=2)
        for members, value in zip(owners, spread):
            if len(members):
                result[members] += value / len(members)
    return result


def curve_errors(fits, j, middles):
    """Standard errors of `column_curve` less its mean over the classes: from the fits without parts of the rows, else from the
    error of a factor on the curve; NaN where neither is known."""
    if len(fits) > 1:
        total = sum(fit.share for fit in fits)
        models = ((additive_model([fit]), total / fit.share) for fit in fits[1:])
        curves = np.stack([column_curve(model, j, middles) * factor for model, factor in models])
        return jackknife(curves - curves.mean(axis=2, keepdims=True))
    curve = column_curve(additive_model(fits), j, middles)
    return np.abs(curve - curve.mean(axis=1, keepdims=True)) * fits[0].errors.get((j,), np.nan)


def jackknife(values):
    """Standard error of the mean of fits that each lack one part of the rows: values (n_bags, ...)."""
    n_bags = len(values)
    return np.sqrt((n_bags - 1) / n_bags * np.square(values - values.mean(axis=0)).sum(axis=0))


def factor_errors(contrasts, rows, theta, stiffness, terms):
    """Standard error of a factor on all that each pair, and each column alone, adds in the model: {set of columns: error}.

    Of so many rows and columns that memory would fill, pairs alone have errors.

    rows : (n,) weights     theta, stiffness : (n_weights,) the fitted weights and their ridges
    """
    parts = {members: part for members, part in _own_weights(contrasts, terms).items() if np.any(theta[part])}
    if len(parts) * len(rows) * (contrasts.n_classes - 1) > _MOST_ERRORS:
        parts = {members: part for members, part in parts.items() if len(members) == 2}
    if not parts:
        return {}
    total = contrasts.scores(theta)
    features = [contrasts.scores(np.where(part, theta, 0.0)) for part in parts.values()]
    stacked = np.stack([*features, total - sum(features)], axis=2)
    _, probability = other_classes(total.ravel(), rows, total.shape[1])
    penalty = [float(stiffness[part] @ theta[part] ** 2) for part in parts.values()]
    curvature = curvature_matrix(stacked, rows, probability, np.array([*penalty, 0.0]))
    errors = np.sqrt(np.maximum(np.diag(np.linalg.pinv(curvature, hermitian=True)), 0.0))
    return dict(zip(parts, errors.tolist()))


def _own_weights(contrasts, terms):
    """{pair or column: (n_weights,) which weights are its own}."""
    n_flat = contrasts.values.shape[2]
    n_directions = contrasts.n_classes - 1
    size = n_flat + contrasts.design.shape[1] * n_directions
    found = {}
    for k, members in enumerate(terms.sets):
        if members:
            found[members] = np.arange(size) == k
    for members, _, columns in design_owners(terms):
        if members:
            first, stop = (n_flat + place * n_directions for place in (columns.start, columns.stop))
            own = (np.arange(size) >= first) & (np.arange(size) < stop)
            found[members] = found.get(members, False) | own
    return found


def importance_lines(fits, data):
    """All that the model has beyond the prior: [(set of columns, (importance, low, high))], falling, see `line_sets`.

    Intervals come from the error of a factor on the term; where fits lack parts of the rows, also from how these differ, and
    the wider one is taken; NaN where neither is known.
    """
    model = additive_model(fits)
    sets = line_sets(model)[1:]
    shares = _variance_shares(model, data, sets)
    unknown = [1.0 if s in model.pairs else np.nan for s in sets]
    reach = SURE * np.array([fits[0].errors.get(s, default) for s, default in zip(sets, unknown)])
    low, high = shares * np.maximum(1.0 - reach, 0.0) ** 2, shares * (1.0 + reach) ** 2
    if len(fits) > 1:
        found = np.stack([_variance_shares(additive_model([fit]), data, sets) for fit in fits[1:]])
        reach = float(stdtrit(len(found) - 1, 0.975)) * jackknife(found)
        reach[[s == FOREST for s in sets]] = np.nan  # which is of the fit of all rows only
        low, high = np.fmin(low, np.maximum(shares - reach, 0.0)), np.fmax(high, shares + reach)
    lines = [(s, values) for s, *values in zip(sets, *(v.tolist() for v in (shares, low, high))) if values[0] > 0]
    return sorted(lines, key=lambda line: -line[1][0])


def _variance_shares(model, data, sets):
    """Variance over the rows of what `sets` of `line_sets` say, over that of the whole score: (n_sets,)."""
    own = line_sets(model)
    weights = data.weights / data.weights.sum()
    means, squares = (np.zeros((len(own) + 1, data.n_classes)) for _ in range(2))
    for start in range(0, len(data.codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        lines = model_evidence(model, data.codes[block], data.values[block])
        lines = np.concatenate([lines, lines.sum(axis=1, keepdims=True)], axis=1)
        lines -= lines.mean(axis=2, keepdims=True)
        means += np.tensordot(weights[block], lines, axes=1)
        squares += np.tensordot(weights[block], lines**2, axes=1)
    spread = np.maximum(squares - np.square(means), 0.0).sum(axis=1)
    found = dict(zip(own, spread[:-1] / spread[-1] if spread[-1] > 0 else spread[:-1]))
    return np.array([found.get(members, 0.0) for members in sets])


def without_terms(fit, sets):
    """The fit with zero weights for all that `sets` of `line_sets` say."""
    terms, weights = fit.terms, fit.weights
    slopes = weights.slopes.copy()
    for members, _, place in design_owners(terms):
        if members in sets:
            slopes[place] = 0.0
    kept = np.array([float(members not in sets) for members in terms.sets])
    parts = weights._replace(
        sets=weights.sets * kept, slopes=slopes, densities=weights.densities * (0.0 if GAUSSIAN in sets else 1.0)
    )
    fit = fit._replace(trees=None) if TREE in sets else fit
    fit = fit._replace(forest=None) if FOREST in sets else fit
    return fit._replace(weights=parts, errors={s: error for s, error in fit.errors.items() if s not in sets})


class Slope(NamedTuple):
    """Weights (n_classes,) of a number: `column` counts the columns with terms, `number` the numeric ones among them."""

    column: int
    number: int
    mean: float
    spread: float
    weights: np.ndarray


class DensityPart(NamedTuple):
    """One strength and class: weight x (constant - joint_power ln(1 + |inverse v|^2) + single_power sum ln(1 + (widths v)^2))."""

    group: int
    weight: float
    constant: float
    joint_power: float
    single_power: float
    inverse: np.ndarray
    widths: np.ndarray


class Density(NamedTuple):
    """knots of the normal scores of each number (values, scores), means of the classes (n_classes, d), parts."""

    knots: list
    means: np.ndarray
    parts: list


class Trees(NamedTuple):
    """splits (n_trees, depth, 2) : column with terms and last bin of the lower side; leaves (n_trees, 2^depth, n_classes)."""

    splits: np.ndarray
    leaves: np.ndarray


class AdditiveModel(NamedTuple):
    """columns, numbers : positions of the columns with terms in the table, and of the numeric ones in its numbers

    prior (n_classes,); tables (n_bins, n_classes) each; pairs {(i, j): (n_bins_i, n_bins_j, n_classes)}, by columns with terms
    """

    columns: np.ndarray
    numbers: np.ndarray
    prior: np.ndarray
    tables: list
    slopes: list
    pairs: dict
    densities: list
    trees: tuple = ()
    forest: Forest | None = None
