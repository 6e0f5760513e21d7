"""What a fit of averaged terms says: scores, evidence of one row, importances, and factors over the elementary bins."""

import numpy as np

from pgm_bma.kikuchi.numeric_fit import KINDS, NumericData, coarse, features
from pgm_bma.kikuchi.numeric_gaussian import N_STRENGTHS

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
        scores[block] = features(fit.terms, codes[block], values[block]) @ fit.weights
    return scores


def explained(fit, codes, values):
    """Evidence (n_terms, n_classes) of one row; the linear terms of a column are one line, the densities another."""
    terms = fit.terms
    weighted = features(terms, codes, values)[0] * fit.weights
    lines = [weighted[:, : len(terms.sets)].T]
    if "linear" in terms.kinds:
        lines.append(_linear(weighted[None], terms)[0].T)
    if "gaussian" in terms.kinds:
        lines.append(weighted[:, -N_STRENGTHS:].sum(axis=1)[None])
    return np.concatenate(lines)


def explained_labels(fit, names):
    """Names of the lines of `explained`."""
    terms = fit.terms
    labels = set_labels(terms, names)
    if "linear" in terms.kinds:
        labels += [f"{names[j]} (linear)" for j in np.flatnonzero(terms.numeric)]
    return [*labels, "(gaussian)"] if "gaussian" in terms.kinds else labels


def _linear(weighted, terms):
    """Sum of the linear terms of every numeric column: (n_samples, n_classes, n_numeric)."""
    first, count = len(terms.sets), terms.kinds.count("linear")
    shape = *weighted.shape[:2], -1, int(terms.numeric.sum())
    return weighted[:, :, first : first + count].reshape(shape).sum(axis=2)


def set_labels(terms, names):
    """Names of the single and pair terms, "(prior)" for the class alone."""
    return [", ".join(str(names[a]) for a in s) or "(prior)" for s in terms.sets]


def term_labels(terms, names, classes):
    """Names of all weights."""
    labels = set_labels(terms, names)
    if "linear" in terms.kinds:
        columns = [names[j] for j in np.flatnonzero(terms.numeric)]
        labels += [f"{name} (linear, {c})" for c in classes for name in columns]
    if "gaussian" in terms.kinds:
        labels += [f"(gaussian, {k})" for k in range(N_STRENGTHS)]
    return labels


def average_importances(fit, data):
    """Mean over the rows of the standard deviation over the classes of a column's weighted terms: (n_columns,) in nats."""
    result = np.zeros(data.codes.shape[1])
    total = data.weights.sum()
    owners = [list(s) for s in fit.terms.sets]
    numeric = np.flatnonzero(data.numeric)
    for start in range(0, len(data.codes), _BLOCK):
        block = slice(start, start + _BLOCK)
        weighted = features(fit.terms, data.codes[block], data.values[block]) * fit.weights
        rows = data.weights[block] / total
        spread = rows @ weighted.std(axis=1)
        for t, members in enumerate(owners):
            if members:
                result[members] += spread[t] / len(members)
        if "linear" in fit.terms.kinds:
            result[numeric] += rows @ _linear(weighted, fit.terms).std(axis=1)
        if "gaussian" in fit.terms.kinds:
            density = weighted[:, :, -N_STRENGTHS:].sum(axis=2)
            result[numeric] += rows @ density.std(axis=1) / len(numeric)
    return result


def average_factors(fit):
    """[(variables, logs)] over elementary bins, the class last; an error where other terms make the model no network of bins."""
    terms = fit.terms
    if not {"single", "pair"} >= set(terms.kinds):
        raise ValueError(
            "linear and gaussian terms are no factors over bins, so that no network of them equals the model; fit with "
            "terms=('single', 'pair')"
        )
    n = len(terms.singles)
    factors = [((n,), fit.weights[0] * np.log(terms.shares))]
    factors += [((j, n), fit.weights[1 + j] * logs) for j, logs in enumerate(terms.singles)]
    for t, ((i, j), table) in enumerate(zip(terms.pairs, terms.tables), start=1 + n):
        first, second = (
            coarse(np.arange(len(terms.singles[k])), len(terms.singles[k]), terms.numeric[k]) for k in (i, j)
        )
        both = table[first[:, None], second[None, :]] - terms.singles[i][:, None] - terms.singles[j][None, :]
        factors.append(((i, j, n), fit.weights[t] * both))
    return factors
