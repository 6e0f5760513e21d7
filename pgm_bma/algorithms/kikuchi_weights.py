"""Weights of interaction terms: the cure for loops of regions.

Each pair term takes back evidence that its two attributes share, and only a tree of pairs takes back the right amount:
with n copies of one attribute and all pairs, its evidence is counted n (3 - n) / 2 times, inverted from 4 copies on.
Two remedies:

tree : a pair weighs as much as the share of spanning trees of the graph of chosen pairs that hold it, which is its
    effective resistance (all strengths 1). Exact for copies, and the same as weight 1 where the pairs form a forest.
learned : the weights that maximise the leave-one-out conditional likelihood with a ridge around naive Bayes (1 for the
    class and the single attributes, 0 for larger sets). Convex: a logistic regression with one feature per term. A
    row's own features come from tables without that row, so that the fitted tables do not flatter themselves.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from pgm_bma.algorithms import _kikuchi_kernels as kernels

RIDGE_GRID = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
# contrasts kept in memory: 250 million numbers are 2 GB
_MAX_CONTRASTS = 250_000_000


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
    bundles = {}
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


def find_copies(data):
    """Groups of attributes that are the same up to a renaming of their states, wherever both are seen.

    Candidates share their frequency table, so that most pairs are never compared.
    """
    kinds = {}
    for a in range(len(data.cardinalities)):
        codes = data.codes[:, a]
        counts = np.sort(np.bincount(codes[codes >= 0], minlength=1))
        if np.count_nonzero(counts) > 1:
            key = tuple(counts[counts > 0]), int((codes < 0).sum()), int(data.cardinalities[a])
            kinds.setdefault(key, []).append(a)
    groups = []
    for members in kinds.values():
        while len(members) > 1:
            first, rest = members[0], members[1:]
            same = [a for a in rest if _one_to_one(data.codes[:, first], data.codes[:, a])]
            if same:
                groups.append((first, *same))
            members = [a for a in rest if a not in same]
    return groups


def _one_to_one(a, b):
    pairs = np.unique(a.astype(np.int64) * (int(b.max()) + 2) + b)
    return len(pairs) == len(np.unique(a)) == len(np.unique(b))


def learned_weights(data, terms, ridge=5.0):
    """Weights by leave-one-out conditional likelihood with a ridge.

    terms : Terms with `reduced`
    ridge : number, or "loo": the one of RIDGE_GRID that is best when each row is left out of the weights as well
    returns LearnedWeights
    """
    sets = terms.layout.sets
    start = np.array([1.0 if len(s) <= 1 else 0.0 for s in sets])
    contrasts = leave_one_out_contrasts(data, terms)
    rows = data.weights
    if len(rows) == 0 or len(sets) == 0:
        return LearnedWeights(start, np.nan if ridge == "loo" else float(ridge), np.nan, {})
    if ridge != "loo":
        theta = ridge_fit(contrasts, rows, start, float(ridge), start)
        return LearnedWeights(theta, float(ridge), leave_one_out_loss(contrasts, rows, theta, float(ridge)), {})
    path, best = {}, None
    theta = start
    for value in reversed(RIDGE_GRID):  # from stiff to loose, each start near its solution
        theta = ridge_fit(contrasts, rows, start, value, theta)
        path[value] = leave_one_out_loss(contrasts, rows, theta, value)
        if best is None or path[value] < path[best[0]]:
            best = value, theta
    return LearnedWeights(best[1], best[0], path[best[0]], path)


def leave_one_out_contrasts(data, terms):
    """(n_samples, n_classes - 1, n_sets): terms of the other classes minus those of the row's own class, the row left out."""
    layout = terms.layout
    shape = len(data.codes), layout.n_classes - 1, len(layout.sets)
    if np.prod(shape, dtype=float) > _MAX_CONTRASTS:
        raise ValueError(
            f"weights='learned' needs {shape[0]} rows x {shape[1]} contrasts x {shape[2]} regions in memory; take fewer regions "
            "(a lower significance_level or level), fewer rows, or weights='tree'"
        )
    contrasts = np.zeros(shape)
    kernels.fill_contrasts(
        data.codes,
        data.target,
        layout.columns,
        layout.strides,
        layout.offsets,
        layout.n_classes,
        terms.values,
        terms.reduced,
        contrasts,
    )
    return contrasts


def ridge_fit(contrasts, rows, centre, ridge, start):
    """argmin of sum_r rows_r ln(1 + sum_k exp(contrasts_rk . theta)) + ridge / 2 |theta - centre|^2."""
    n, k, p = contrasts.shape
    flat = contrasts.reshape(n * k, p)
    # steps are scaled by the curvature at even odds, so that strong and weak terms converge alike
    scale = 1.0 / np.sqrt(ridge + np.einsum("ij,ij,i->j", flat, flat, np.repeat(rows, k)) * 0.25)

    def objective(u):
        theta = centre + scale * u
        scores = (flat @ theta).reshape(n, k)
        top = np.maximum(scores.max(axis=1, initial=0.0), 0.0)
        weights = np.exp(scores - top[:, None])
        total = np.exp(-top) + weights.sum(axis=1)
        value = rows @ (top + np.log(total)) + 0.5 * ridge * np.sum((theta - centre) ** 2)
        slope = ((weights / total[:, None]) * rows[:, None]).ravel() @ flat + ridge * (theta - centre)
        return value, slope * scale

    result = minimize(
        objective,
        (start - centre) / scale,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "maxcor": 20, "ftol": 1e-12, "gtol": 1e-6},
    )
    return centre + scale * result.x


def leave_one_out_loss(contrasts, rows, theta, ridge):
    """Mean log loss when each row is left out of the weights as well: one Newton step from the full solution (approximate)."""
    n, k, p = contrasts.shape
    scores = contrasts.reshape(n * k, p) @ theta
    probability = _contrast_softmax(scores.reshape(n, k))
    leverage = _leverages(contrasts, rows, probability, ridge)
    # taking out one row of weight w moves theta by H^-1 G' p: its scores by A p (1 - w A W)^-1, where A = G H^-1 G'
    shifted = np.empty((n, k))
    for r in range(n):
        curvature = np.diag(probability[r]) - np.outer(probability[r], probability[r])
        step = (
            np.linalg.solve(np.eye(k) - leverage[r] @ curvature, leverage[r] @ probability[r])
            if k > 1
            else (leverage[r, 0] * probability[r] / max(1 - leverage[r, 0, 0] * curvature[0, 0], 1e-9))
        )
        shifted[r] = step
    scores = scores.reshape(n, k) + shifted
    return float(rows @ np.logaddexp(0.0, np.logaddexp.reduce(scores, axis=1)) / rows.sum())


def _contrast_softmax(scores):
    top = np.maximum(scores.max(axis=1, keepdims=True, initial=0.0), 0.0)
    weights = np.exp(scores - top)
    return weights / (np.exp(-top) + weights.sum(axis=1, keepdims=True))


def _leverages(contrasts, rows, probability, ridge):
    """G_r H^-1 G_r' of every row: (n, k, k)."""
    n, k, p = contrasts.shape
    flat = contrasts.reshape(n * k, p)
    root = _curvature_roots(probability, rows)  # (n, k, k), root root' = row weight x curvature
    weighted = np.einsum("rab,rap->rbp", root, contrasts).reshape(n * k, p)
    if p <= n * k:
        factor = cho_factor(weighted.T @ weighted + ridge * np.eye(p))
        solved = cho_solve(factor, flat.T).T.reshape(n, k, p)
        return np.einsum("rap,rbp->rab", contrasts, solved)
    # fewer rows than terms: (W'W + ridge)^-1 = (1 - W'(W W' + ridge)^-1 W) / ridge
    factor = cho_factor(weighted @ weighted.T + ridge * np.eye(n * k))
    cross = weighted @ flat.T
    inner = np.einsum("rap,rbp->rab", contrasts, contrasts)
    taken = (cross * cho_solve(factor, cross)).sum(axis=0) if k == 1 else None
    if k == 1:
        return (inner - taken.reshape(n, 1, 1)) / ridge
    solved = cho_solve(factor, cross)
    blocks = np.stack([cross[:, r * k : (r + 1) * k].T @ solved[:, r * k : (r + 1) * k] for r in range(n)])
    return (inner - blocks) / ridge


def _curvature_roots(probability, rows):
    """Square roots of diag(p) - p p' (times the row weight), row by row."""
    curvature = -probability[:, :, None] * probability[:, None, :]
    index = np.arange(probability.shape[1])
    curvature[:, index, index] += probability
    values, vectors = np.linalg.eigh(curvature)
    return vectors * np.sqrt(np.maximum(values, 0.0) * rows[:, None])[:, None, :]


class LearnedWeights(NamedTuple):
    """weights (n_sets,), the ridge used, its approximate leave-one-out log loss, and the loss of every ridge tried."""

    weights: np.ndarray
    ridge: float
    leave_one_out_loss: float
    ridge_path: dict
