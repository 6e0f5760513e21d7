"""What a fit of averaged terms says: scores, evidence of one row, importances, and factors over the elementary bins."""

from dataclasses import dataclass
from itertools import product

import numpy as np

from pgm_bma.additive.choice import coarse
from pgm_bma.additive.gaussian import N_STRENGTHS
from pgm_bma.additive.ridges import KINDS
from pgm_bma.additive.terms import AdditiveData, design, has_level, row_features
from pgm_bma.foundation.numbers.folds import weigh_repeats
from pgm_bma.foundation.tables.table import fold

_BLOCK = 4096  # rows scored at a time


def check_terms(terms):
    """The kinds of terms in their order, or an error."""
    if isinstance(terms, str) or not hasattr(terms, "__iter__"):
        raise ValueError(f"terms={terms!r} must be a sequence such as {KINDS!r}")
    unknown = [kind for kind in terms if kind not in KINDS]
    if unknown:
        raise ValueError(f"terms holds {unknown[0]!r}, which is not one of {', '.join(map(repr, KINDS))}")
    if "single" not in terms:
        raise ValueError(f"terms={tuple(terms)!r} lacks 'single', which the other kinds are built on; add it")
    return tuple(kind for kind in KINDS if kind in terms)


def additive_data(training, values, numeric):
    """`AdditiveData` of a table that was read and cut; equal rows are folded, in sorted order, so that weights are repetitions.

    What repeats weigh is decided by `folds.weigh_repeats`.
    """
    ranks = [np.unique(column, return_inverse=True)[1].ravel() for column in values.T]  # NaN is one value, the last
    keys = np.column_stack([training.codes, *ranks, training.target]).astype(np.int64)
    rows, weights, inverse = fold(keys, training.weights)
    first = np.full(len(rows), len(keys))
    np.minimum.at(first, inverse, np.arange(len(keys)))
    target = np.asarray(training.target, dtype=np.int64)[first]
    cells = np.column_stack(
        [training.codes[first][:, ~np.array(numeric, dtype=bool)], *(rank[first] for rank in ranks)]
    )
    weights, repeats = weigh_repeats(cells, target, weights)
    total = weights.sum()
    return AdditiveData(
        np.asfortranarray(training.codes[first], dtype=np.int32),
        values[first],
        np.array(numeric, dtype=bool),
        training.schema.cardinalities,
        target,
        len(training.classes),
        weights,
        min(float(weights @ weights / total), 1.0) if total > 0 else 1.0,
        [None if is_number else _whole_levels(s) for s, is_number in zip(training.schema.states, numeric)],
        repeats,
    )


def _whole_levels(states):
    """States as numbers where all of them are numbers whose squares can be added, else None."""
    if all(isinstance(s, (int, float, np.integer, np.floating)) and not isinstance(s, bool) for s in states):
        return np.array(states, dtype=float) if all(-1e100 < s < 1e100 for s in states) else None
    return None


def average_scores(fit, codes, values):
    """Sum of the weighted terms: (n_samples, n_classes)."""
    scores = np.empty((len(codes), len(fit.terms.shares)))
    for start in range(0, len(codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        scores[block] = row_features(fit.terms, codes[block], values[block]).scores(fit.weights)
    return scores


def explained(fit, codes, values):
    """Evidence (n_samples, n_terms, n_classes): prior and level, all that a column says alone, pairs, and the densities."""
    terms, weights = fit.terms, fit.weights
    rows = row_features(terms, codes, values)
    lines = (rows.sets * weights.sets).transpose(0, 2, 1)
    places = {members: k for k, members in enumerate(line_sets(terms))}
    more = np.zeros((len(codes), len(places) - lines.shape[1], lines.shape[2]))
    lines = np.concatenate([lines, more], axis=1)
    for members, _, columns in design_owners(terms):
        lines[:, places[members]] += rows.design[:, columns] @ weights.slopes[columns]
    if terms.gaussian is None:
        return lines
    return np.concatenate([lines, (rows.densities @ weights.densities)[:, None]], axis=1)


def explained_labels(fit, names):
    """Names of the lines of `explained`."""
    labels = set_labels(line_sets(fit.terms), names)
    return labels if fit.terms.gaussian is None else [*labels, "(gaussian)"]


def line_sets(terms):
    """Sets of columns with a line of evidence each: those with one weight, then those that have cells alone."""
    return [*terms.sets, *(s for s in terms.cells if s not in terms.sets)]


def design_owners(terms):
    """[(set of columns, kind, columns of the design)]: levels belong to the empty set, slopes and states to their column."""
    parts: list[tuple[tuple[int, ...], str, int]] = [((), "level", 1)] if has_level(terms) else []
    if terms.linear:
        parts += [((int(j),), "linear", 1) for j in np.flatnonzero(terms.numeric)]
    parts += [((j,), "linear", 1) for j, _ in terms.levels]
    parts += [((j,), "state", len(terms.singles[j])) for j in terms.indicated]
    parts += [((i, j), "cell", len(terms.singles[i]) * len(terms.singles[j])) for i, j in terms.cells]
    ends = np.cumsum([size for _, _, size in parts])
    return [(members, kind, slice(int(end) - size, int(end))) for (members, kind, size), end in zip(parts, ends)]


def set_labels(sets, names):
    """Names of the terms of sets of columns, "(prior)" for the class alone."""
    return [", ".join(str(names[a]) for a in s) or "(prior)" for s in sets]


def weight_series(fit, names, states, classes):
    """All weights with their names: (labels, values)."""
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
    return labels, np.concatenate(values)


def average_importances(fit, data):
    """Mean over the rows of the standard deviation over the classes of a column's weighted terms: (n_columns,) in nats."""
    result, columns = np.zeros(data.codes.shape[1]), fit.terms.columns
    owners = [*(columns[list(s)] for s in line_sets(fit.terms)), columns[fit.terms.numeric]]  # the last: densities
    for start in range(0, len(data.codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        evidence = explained(fit, data.codes[block], data.values[block])
        spread = (data.weights[block] / data.weights.sum()) @ evidence.std(axis=2)
        for members, value in zip(owners, spread):
            if len(members):
                result[members] += value / len(members)
    return result


def column_evidence(fit, j, values):
    """Single, linear and state terms of column `j` for each of its bins: (n_bins, n_classes); values (n_bins, n_numeric)."""
    terms, weights = fit.terms, fit.weights
    n_bins = len(terms.singles[j])
    codes = np.full((n_bins, len(terms.singles)), -1)
    codes[:, j] = np.arange(n_bins)
    x = design(terms, codes, values)
    if has_level(terms):
        x[:, 0] = 0.0  # the level belongs to no column
    return weights.sets[1 + j] * terms.singles[j] + x @ weights.slopes


def average_factors(fit):
    """[(variables, logs)] over elementary bins, the class last; an error where other terms make the model no network of bins."""
    terms, weights = fit.terms, fit.weights
    if terms.gaussian is not None or (terms.linear and terms.numeric.any()):
        raise AttributeError(
            "linear and gaussian terms of numbers are no factors over bins, so that no network equals the model and model_ does "
            "not exist; fit with terms=('single', 'pair') to have it"
        )
    n = len(terms.singles)
    levels = weights.slopes[0] if has_level(terms) else 0.0
    factors: list[tuple[tuple[int, ...], np.ndarray]] = [((n,), weights.sets[0] * np.log(terms.shares) + levels)]
    for j, logs in enumerate(terms.singles):
        factors.append(((j, n), column_evidence(fit, j, np.zeros((len(logs), int(terms.numeric.sum()))))))
    for t, ((i, j), table) in enumerate(zip(terms.pairs, terms.tables), start=1 + n):
        first, second = (
            coarse(np.arange(len(terms.singles[k])), len(terms.singles[k]), terms.numeric[k]) for k in (i, j)
        )
        both = table[first[:, None], second[None, :]] - terms.singles[i][:, None] - terms.singles[j][None, :]
        factors.append(((i, j, n), weights.sets[t] * both))
    for members, kind, columns in design_owners(terms):
        if kind == "cell":
            shape = [len(terms.singles[j]) for j in members]
            factors.append(((*members, n), weights.slopes[columns].reshape(*shape, -1)))
    return factors


@dataclass(frozen=True)
class AdditiveRows:
    """Rows to be scored: codes of all columns and raw values of the numeric ones."""

    codes: np.ndarray
    values: np.ndarray

    def __len__(self):
        return len(self.codes)
