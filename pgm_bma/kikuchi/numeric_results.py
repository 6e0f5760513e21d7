"""What a fit of averaged terms says: scores, evidence of one row, importances, and factors over the elementary bins."""

import numpy as np

from pgm_bma.kikuchi.numeric_fit import KINDS
from pgm_bma.kikuchi.numeric_gaussian import N_STRENGTHS
from pgm_bma.kikuchi.numeric_pair_choice import coarse
from pgm_bma.kikuchi.numeric_terms import NumericData, row_features

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


def numeric_data(training, values, numeric):
    """`NumericData` of a table that was read and cut."""
    weights = np.ones(len(training.codes)) if training.weights is None else training.weights
    unit = min(float(weights @ weights / weights.sum()), 1.0)
    return NumericData(
        np.asfortranarray(training.codes, dtype=np.int32),
        values,
        np.array(numeric, dtype=bool),
        training.schema.cardinalities,
        np.asarray(training.target, dtype=np.int64),
        len(training.classes),
        weights.astype(float),
        unit,
    )


def average_scores(fit, codes, values):
    """Sum of the weighted terms: (n_samples, n_classes)."""
    scores = np.empty((len(codes), len(fit.terms.shares)))
    for start in range(0, len(codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        scores[block] = row_features(fit.terms, codes[block], values[block]).scores(fit.weights)
    return scores


def explained(fit, codes, values):
    """Evidence (n_samples, n_terms, n_classes): a line per set, linear column, column of states, and one for the densities."""
    terms, weights = fit.terms, fit.weights
    rows = row_features(terms, codes, values)
    lines = [(rows.sets * weights.sets).transpose(0, 2, 1)]
    for _, columns in _design_lines(terms, range(len(terms.singles))):
        lines.append((rows.design[:, columns] @ weights.slopes[columns])[:, None])
    if terms.gaussian is not None:
        lines.append((rows.densities @ weights.densities)[:, None])
    return np.concatenate(lines, axis=1)


def explained_labels(fit, names):
    """Names of the lines of `explained`."""
    labels = set_labels(fit.terms, names) + [label for label, _ in _design_lines(fit.terms, names)]
    return labels if fit.terms.gaussian is None else [*labels, "(gaussian)"]


def _design_lines(terms, names):
    """[(label, columns of the design)]: the free levels, each numeric column, each column of states."""
    lines, first = [], 0
    if terms.linear or terms.indicated:
        lines, first = [("(level)", slice(0, 1))], 1
    if terms.linear:
        for j in np.flatnonzero(terms.numeric):
            lines.append((f"{names[j]} (linear)", slice(first, first + 1)))
            first += 1
    for j in terms.indicated:
        lines.append((f"{names[j]} (states)", slice(first, first + len(terms.singles[j]))))
        first += len(terms.singles[j])
    return lines


def set_labels(terms, names):
    """Names of the single and pair terms, "(prior)" for the class alone."""
    return [", ".join(str(names[a]) for a in s) or "(prior)" for s in terms.sets]


def weight_series(fit, names, states, classes):
    """All weights with their names: (labels, values)."""
    terms, weights = fit.terms, fit.weights
    labels, values = set_labels(terms, names), [weights.sets]
    for label, columns in _design_lines(terms, names):
        parts = [label]
        if columns.stop - columns.start > 1 or label.endswith("(states)"):
            column = label.removesuffix(" (states)")
            parts = [f"{column} = {state} (state" for state in states[[str(n) for n in names].index(column)]]
        labels += [f"{part.removesuffix(')')}, {c})" for part in parts for c in classes]
        values.append(weights.slopes[columns].ravel())
    if terms.gaussian is not None:
        labels += [f"(gaussian, {k})" for k in range(N_STRENGTHS)]
        values.append(weights.densities)
    return labels, np.concatenate(values)


def average_importances(fit, data):
    """Mean over the rows of the standard deviation over the classes of a column's weighted terms: (n_columns,) in nats."""
    result = np.zeros(data.codes.shape[1])
    total = data.weights.sum()
    owners = [list(s) for s in fit.terms.sets]
    if fit.terms.linear or fit.terms.indicated:
        owners.append([])
    numeric = list(np.flatnonzero(data.numeric))
    owners += [[j] for j in (numeric if fit.terms.linear else [])] + [[j] for j in fit.terms.indicated] + [numeric]
    for start in range(0, len(data.codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        evidence = explained(fit, data.codes[block], data.values[block])
        spread = (data.weights[block] / total) @ evidence.std(axis=2)
        for members, value in zip(owners, spread):
            if members:
                result[members] += value / len(members)
    return result


def average_factors(fit):
    """[(variables, logs)] over elementary bins, the class last; an error where other terms make the model no network of bins."""
    terms = fit.terms
    if terms.gaussian is not None or terms.linear or terms.indicated:
        raise ValueError(
            "linear, state and gaussian terms are no factors over bins, so that no network of them equals the model; fit with "
            "terms=('single', 'pair')"
        )
    n = len(terms.singles)
    factors = [((n,), fit.weights.sets[0] * np.log(terms.shares))]
    factors += [((j, n), fit.weights.sets[1 + j] * logs) for j, logs in enumerate(terms.singles)]
    for t, ((i, j), table) in enumerate(zip(terms.pairs, terms.tables), start=1 + n):
        first, second = (
            coarse(np.arange(len(terms.singles[k])), len(terms.singles[k]), terms.numeric[k]) for k in (i, j)
        )
        both = table[first[:, None], second[None, :]] - terms.singles[i][:, None] - terms.singles[j][None, :]
        factors.append(((i, j, n), fit.weights.sets[t] * both))
    return factors
