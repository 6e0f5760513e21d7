"""Weights of interaction terms: the cure for loops of regions.

Each pair term takes back evidence that its two attributes share, and only a tree of pairs takes back the right amount:
with n copies of one attribute and all pairs, its evidence is counted n (3 - n) / 2 times, inverted from 4 copies on.
Two remedies:

tree : a pair weighs as much as the share of spanning trees of the graph of chosen pairs that hold it, which is its
    effective resistance (all strengths 1). Attributes that repeat each other, but for a few rows, are one node of that graph
    (an infinite strength between them), so that n copies or near-copies count as one. The same as weight 1 where the pairs
    form a forest.
learned : the weights that maximise the leave-one-out conditional likelihood with a ridge around naive Bayes (1 for the
    class and the single attributes, 0 for larger sets). Convex: a logistic regression with one feature per term. A
    row's own features come from tables without that row, so that the fitted tables do not flatter themselves.
"""

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse.csgraph import connected_components

from pgm_bma.foundation.numbers import softmax_ridge
from pgm_bma.foundation.numbers.folds import some_rows
from pgm_bma.foundation.numbers.softmax_ridge import (
    MAX_CONTRASTS,
    curvature_matrix,
    loss_sums,
    minimise,
    other_classes,
    ridge_fit,
)
from pgm_bma.foundation.rows.blocks import Rows, tree_sum
from pgm_bma.kikuchi import _kernels as kernels
from pgm_bma.kikuchi.terms import class_data, count_tables, flat_table, make_layout

NEAR_COPY = 0.9  # of the larger entropy in common
RIDGE_GRID = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
MOST_CONTRASTS = 400_000_000  # those beyond MAX_CONTRASTS are made anew in every step: a minute
SOME_ROWS = 50_000  # that stand for many
_CONTRASTS_AT_ONCE = 1_000_000  # of rows that are visited in parts: memory that is used again and again
_TABLE_CLASSES = 8  # from which on terms are read from their tables: as fast as contrasts, in a tenth of the memory
_PAIRS_AT_ONCE = 20_000


def tree_weights(sets, copies=()):
    """Weights of the terms by effective resistance.

    sets : attribute tuples of at most two attributes     copies : groups of attributes that repeat each other
    returns (n_sets,). A group of n copies counts as one attribute: each single term weighs 1 / n, pairs inside weigh nothing, and
    the weight of a pair of groups is shared equally by its chosen pairs.
    """
    larger = [s for s in sets if len(s) > 2]
    if larger:
        raise ValueError(f"weights='tree' needs regions of at most two attributes, got attributes {list(larger[0])}")
    group, size = {}, {}
    for number, members in enumerate(copies):
        for attribute in members:
            group[attribute] = ("copies", number)
            size[attribute] = len(members)
    bundles: dict[frozenset, list[tuple]] = {}
    for s in sets:
        if len(s) == 2:
            ends = [group.get(a, a) for a in s]
            if ends[0] != ends[1]:
                bundles.setdefault(frozenset(ends), []).append(s)
    nodes = {node: k for k, node in enumerate(dict.fromkeys(end for pair in bundles for end in sorted(pair, key=str)))}
    edges = [tuple(nodes[end] for end in pair) for pair in bundles]
    share = {}
    for pairs, rho in zip(bundles.values(), spanning_edge_probability(len(nodes), edges)):
        for s in pairs:
            share[s] = rho / len(pairs)
    return np.array([share.get(s, 0.0) if len(s) == 2 else 1.0 / size.get(s[0], 1) if s else 1.0 for s in sets])


def spanning_edge_probability(n_nodes, edges):
    """Share of spanning forests (one tree per component) that hold each edge: its effective resistance at unit strength.

    edges : list of (i, j), each pair once     returns (n_edges,)
    """
    if not len(edges):
        return np.zeros(0)
    i, j = np.asarray(edges, dtype=np.int64).T
    laplacian = np.zeros((n_nodes, n_nodes))
    np.add.at(laplacian, (i, i), 1.0)
    np.add.at(laplacian, (j, j), 1.0)
    np.add.at(laplacian, (i, j), -1.0)
    np.add.at(laplacian, (j, i), -1.0)
    # components only shift the null space: the pseudo-inverse takes care of it
    inverse = np.linalg.pinv(laplacian, hermitian=True)
    return inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]


def find_copies(data, similarity=NEAR_COPY):
    """Groups of attributes that are the same up to a renaming of their states and a few rows: list of tuples.

    Two attributes are joined when I(X_i; X_j) is at least `similarity` of the larger of their entropies, over the rows that have
    both; a group is what is joined directly or through others, so that no order of columns matters. Pair terms of near-copies
    hold nothing but the rows in which they differ, and those hardly tell a class.
    """
    n, blind = len(data.cardinalities), data._replace(n_classes=1)
    joined = np.full((n, n), False)
    singles = make_layout([(i,) for i in range(n)], data.cardinalities, 1)
    counts, seen = count_tables(blind, singles)
    own = [_entropy(flat_table(counts, singles, i)) for i in range(n)]
    # I(X_i; X_j) is below the smaller entropy
    alike = [
        (j, i) for i in range(n) for j in range(i) if min(own[i], own[j]) >= similarity * max(own[i], own[j], 1e-300)
    ]
    for first in range(0, len(alike), _PAIRS_AT_ONCE):
        pairs = make_layout(alike[first : first + _PAIRS_AT_ONCE], data.cardinalities, 1)
        counts, both = count_tables(blind, pairs)
        for t, (j, i) in enumerate(pairs.sets):
            if both[t] <= 0 or both[t] < similarity * max(seen[i], seen[j]):
                continue
            table = flat_table(counts, pairs, t)[..., 0]
            marginal = [_entropy(table.sum(axis=axis)) for axis in (0, 1)]
            joined[i, j] = sum(marginal) - _entropy(table) >= similarity * max(*marginal, 1e-300)
    labels = connected_components(joined, directed=False)[1]
    groups = [tuple(np.flatnonzero(labels == label).tolist()) for label in np.unique(labels)]
    return [group for group in groups if len(group) > 1]


def _entropy(counts):
    if not counts.any():
        return 0.0
    share = counts[counts > 0] / counts.sum()
    return -float(share @ np.log(share))


def learned_weights(data, terms, ridge=5.0):
    """Weights by leave-one-out conditional likelihood with a ridge.

    terms : Terms with `reduced`
    ridge : number; dict order of a set -> number (the class counts as order 1); or "loo": the number of RIDGE_GRID that is
        best when each row is left out of the weights as well
    returns LearnedWeights
    """
    sets = terms.layout.sets
    start = naive_weights(sets)
    if data.weights.sum() == 0:
        return LearnedWeights(start, {}, {})
    if isinstance(data.codes, Rows):
        theta = minimise(partial(_sums_in_passes, data, terms), start, ridge_vector(sets, ridge), start)
        return LearnedWeights(theta, _by_order(sets, ridge), {})
    if ridge != "loo" and too_many_contrasts(data, sets):
        _refuse_contrasts(len(data.codes), data.n_classes - 1, len(sets), MOST_CONTRASTS)
        few, penalties = some_of_many(data, sets), ridge_vector(sets, ridge)
        share = few.weights.sum() / data.weights.sum()
        near = ridge_fit(dense_contrasts(few, terms), few.weights, start, penalties * share, start)
        kept = dense_contrasts(_some(data, slice(_kept_rows(data, sets))), terms)
        theta = minimise(partial(_sums_in_parts, data, terms, kept), start, penalties, near)
        return LearnedWeights(theta, _by_order(sets, ridge), {})
    contrasts = dense_contrasts(data, terms) if ridge == "loo" else leave_one_out_contrasts(data, terms)
    rows, path = data.weights, {}
    if ridge == "loo":
        theta, solutions = start, {}
        for value in reversed(RIDGE_GRID):  # from stiff to loose, each start near its solution
            theta = ridge_fit(contrasts, rows, start, np.full(len(sets), value), theta)
            path[value] = leave_one_out_loss(contrasts, rows, theta, np.full(len(sets), value))
            solutions[value] = theta
        ridge = min(path, key=path.__getitem__)
        theta = solutions[ridge]
    else:
        theta = fit_contrasts(contrasts, rows, start, ridge_vector(sets, ridge), start)
    return LearnedWeights(theta, _by_order(sets, ridge), path)


def _by_order(sets, ridge):
    return {max(len(s), 1): float(r) for s, r in zip(sets, ridge_vector(sets, ridge))}


def _sums_in_passes(data, terms, theta, wanted):
    return data.codes.reduce(sums_of_block, data.cardinalities, data.n_classes, terms, theta, wanted)


def _sums_in_parts(data, terms, kept, theta, wanted):
    """`loss_sums` of all rows; kept : contrasts of the first of them, those of the others are made anew"""
    first, rest = _some(data, slice(len(kept))), _some(data, slice(len(kept), None))
    sums = loss_sums(kept, first.weights, theta, wanted)
    return tree_sum([sums, sums_of_block(rest, data.cardinalities, data.n_classes, terms, theta, wanted)])


def _kept_rows(data, sets):
    """Rows whose contrasts may stay in memory."""
    return MAX_CONTRASTS // (max(data.n_classes - 1, 1) * len(sets))


def _some(data, rows):
    return data._replace(codes=data.codes[rows], target=data.target[rows], weights=data.weights[rows])


def too_many_contrasts(data, sets):
    """Return whether the contrasts of all rows at once would fill memory."""
    return len(data.codes) > _kept_rows(data, sets)


def some_of_many(data, sets):
    """Some of the rows where the contrasts of all do not fit: the ridge is tuned on them, and the weights begin at theirs."""
    size = max(min(SOME_ROWS, _kept_rows(data, sets) // 2), 1)
    some = _some(data, some_rows(data.codes, data.target, data.weights, size))
    return some._replace(codes=np.asfortranarray(some.codes))


def _refuse_contrasts(n_rows, n_contrasts, n_sets, limit):
    if float(n_rows) * n_contrasts * n_sets > limit:
        raise ValueError(
            f"weights='learned' needs {n_rows} rows x {n_contrasts} contrasts x {n_sets} regions = "
            f"{float(n_rows) * n_contrasts * n_sets:.3g} numbers (limit {limit:.3g}); take fewer regions (a lower "
            "significance_level or level), fewer rows, or weights='tree'"
        )


def sums_of_block(block, cardinalities, n_classes, terms, theta, wanted):
    """`loss_sums` of a block; contrasts are made for a part of its rows at a time."""
    n_rows = len(block.codes)
    step = max(_CONTRASTS_AT_ONCE // (len(theta) * max(n_classes - 1, 1)), 1)
    weights = np.ones(n_rows) if block.weights is None else block.weights
    parts = []
    for first in range(0, n_rows, step):
        rows = slice(first, first + step)
        part = class_data(block.codes[rows], block.target[rows], cardinalities, n_classes, weights[rows])
        parts.append(loss_sums(dense_contrasts(part, terms), part.weights, theta, wanted))
    return tree_sum(parts)


def naive_weights(sets):
    """The centre of the ridge: naive Bayes."""
    return np.array([1.0 if len(s) <= 1 else 0.0 for s in sets])


def ridge_vector(sets, ridge):
    """One ridge per set, from a number or from a dict order -> number (a larger order takes that of the largest)."""
    if not isinstance(ridge, dict):
        return np.full(len(sets), float(ridge))
    return np.array([ridge[min(max(len(s), 1), max(ridge))] for s in sets], dtype=float)


def leave_one_out_contrasts(data, terms):
    """Return what `fit_contrasts` takes: `dense_contrasts`, or of many terms and classes the tables that they are read from."""
    n_sets, n_classes = len(terms.layout.sets), terms.layout.n_classes
    if (
        n_sets > softmax_ridge.NEWTON_TERMS
        and n_classes >= _TABLE_CLASSES
        and len(data.codes) * n_sets <= MAX_CONTRASTS // 2
    ):
        return table_contrasts(data, terms)
    return dense_contrasts(data, terms)


def table_contrasts(data, terms):
    """The contrasts as `TableContrasts`."""
    layout = terms.layout
    shape = len(layout.sets), len(data.codes)
    lines, own = np.empty(shape, dtype=np.int32), np.empty(shape)  # MAX_CELLS fits
    kernels.find_lines(data.codes, data.target, layout.tables, terms.reduced, lines, own)
    return TableContrasts(lines, own, terms.values, data.target, layout.n_classes)


def dense_contrasts(data, terms):
    """(n_samples, n_classes - 1, n_sets): terms of the other classes minus those of the row's own class, the row left out."""
    layout = terms.layout
    shape = len(data.codes), layout.n_classes - 1, len(layout.sets)
    _refuse_contrasts(*shape, MAX_CONTRASTS)
    contrasts = np.empty(shape)
    kernels.fill_contrasts(data.codes, data.target, layout.tables, terms.values, terms.reduced, contrasts)
    return contrasts


def fit_contrasts(contrasts, rows, centre, ridge, start, tolerance=1e-10):
    """`ridge_fit` of contrasts that are written out or not."""
    if isinstance(contrasts, TableContrasts):
        return minimise(partial(table_sums, contrasts, rows), centre, ridge, start, tolerance)
    return ridge_fit(contrasts, rows, centre, ridge, start, tolerance)


def table_sums(tables, rows, theta, wanted):
    """`loss_sums` ("gradient" or "scale") without contrasts: scores of the row's class come from the terms that lack the row."""
    lines, own, values, target, n_classes = tables
    scores = np.zeros((len(target), n_classes))
    kernels.line_scores(lines, values, theta, scores)
    each = np.arange(len(target)), target
    scores -= (theta @ own)[:, None]
    scores[each] = 0.0
    top = scores.max(axis=1, keepdims=True)
    odds = np.exp(scores - top)
    total = odds.sum(axis=1, keepdims=True)
    loss = rows @ (top + np.log(total))[:, 0]
    odds /= total
    odds[each] = 0.0
    weighted = odds * rows[:, None]
    slope = -(own @ weighted.sum(axis=1))
    kernels.line_slopes(lines, values, weighted, np.empty(n_classes), slope)
    if wanted == "gradient":
        return loss, slope
    diagonal = np.zeros(len(theta))
    kernels.line_curvatures(lines, values, own, odds, rows, diagonal)
    return loss, slope, np.maximum(diagonal, 0.0)


def leave_one_out_loss(contrasts, rows, theta, ridge):
    """Mean log loss when each row is left out of the weights as well: one Newton step from the full solution (approximate).

    Without one row of G_r and probabilities p_r, theta moves by H^-1 G_r' p_r to first order, and the scores of the row by
    (1 - A W)^-1 A p with A = G_r H^-1 G_r', W = diag(p) - p p'.
    """
    n, k, p = contrasts.shape
    scores = (contrasts.reshape(n * k, p) @ theta).reshape(n, k)
    probability = other_classes(scores, rows, k)[1]
    leverage = _leverages(contrasts, rows, probability, ridge)
    curvature = -probability[:, :, None] * probability[:, None, :]
    curvature[:, np.arange(k), np.arange(k)] += probability
    system = np.eye(k) - leverage @ curvature
    scores = scores + np.linalg.solve(system, leverage @ probability[:, :, None])[:, :, 0]
    return float(rows @ np.logaddexp(0.0, np.logaddexp.reduce(scores, axis=1)) / rows.sum())


def _leverages(contrasts, rows, probability, ridge):
    """G_r H^-1 G_r' of every row: (n, k, k)."""
    n, k, p = contrasts.shape
    flat = contrasts.reshape(n * k, p)
    if p <= n * k:
        factor = cholesky(curvature_matrix(contrasts, rows, probability, ridge), lower=True)
        solved = solve_triangular(factor, flat.T, lower=True).T.reshape(n, k, p)
        return solved @ solved.transpose(0, 2, 1)
    # fewer rows than terms: with columns divided by sqrt(ridge), (W'W + 1)^-1 = 1 - W'(W W' + 1)^-1 W
    scaled = contrasts / np.sqrt(ridge)
    weighted = (_curvature_roots(probability, rows) @ scaled).reshape(n * k, p)
    factor = cholesky(weighted @ weighted.T + np.eye(n * k), lower=True)
    solved = solve_triangular(factor, weighted @ scaled.reshape(n * k, p).T, lower=True).T.reshape(n, k, n * k)
    return scaled @ scaled.transpose(0, 2, 1) - solved @ solved.transpose(0, 2, 1)


def _curvature_roots(probability, rows):
    """R_r with R_r' R_r = row weight x (diag(p) - p p'): (n, k, k)."""
    curvature = -probability[:, :, None] * probability[:, None, :]
    index = np.arange(probability.shape[1])
    curvature[:, index, index] += probability
    values, vectors = np.linalg.eigh(curvature)
    return np.sqrt(np.maximum(values, 0.0) * rows[:, None])[:, :, None] * vectors.transpose(0, 2, 1)


class TableContrasts(NamedTuple):
    """Contrasts that are not written out: (n_sets, n_samples) where the line of a row begins in the flat `values`, -1 where a cell
    is missing, and the term of the row's own class with the row left out (0 there)."""

    lines: np.ndarray
    own: np.ndarray
    values: np.ndarray
    target: np.ndarray
    n_classes: int


class LearnedWeights(NamedTuple):
    """weights (n_sets,), ridge by order of the set, and the approximate leave-one-out log loss of every ridge tried."""

    weights: np.ndarray
    ridge: dict
    path: dict
