"""Rows with unobserved cells: summed out by writing out the completions while they are few, else by importance sampling.

`evaluate(rows)` gives the log joint (n_rows, n_classes) of complete rows; for completions it is given the row that each belongs to
and which cells were hidden there. A row with missing cells gets the log of the sum over its completions. Past `max_completions`,
completions are drawn from a network (parents and tables) given the row's values above them, and weighted by joint / proposal:
unbiased for the joint, with a standard error. The draws of a row depend on its values and the seed, not on other rows.
"""

from math import prod

import numpy as np
from scipy.special import logsumexp

from pgm_bma.foundation.numbers.graphs import topological_order
from pgm_bma.foundation.tables.table import fold

BLOCK = 50_000  # completed rows evaluated at a time


def log_joint(evaluate, codes, cardinalities, class_index, n_classes, max_completions, n_draws, proposal, seed):
    """Log joint of rows with missing cells.

    Parameters
    ----------
    evaluate : function (rows (n_rows, n), and for completions: source (n_rows,) ascending, hidden (n_sources, n)) ->
        (n_rows, n_values); n_values is n_classes, or more (classes of several models)
    codes : (n_rows, n), -1 = missing; the class column is not read
    class_index : int, or None when there is no class (then n_classes is 1)
    proposal : function () -> (parents, cpts) of the network that completions are drawn from
    seed : of the draws, a non-negative integer

    Returns
    -------
    log_joint : (n_rows, n_values)
    error : (n_rows, n_values) standard error of the class posterior, or of the log joint without a class; 0 where exact
    """
    rows, _, inverse = fold(codes)
    hidden = rows < 0
    if class_index is not None:
        hidden[:, class_index] = False
    n_completions = np.where(hidden, cardinalities, 1).prod(axis=1, dtype=float)
    log_joint: dict[int, np.ndarray] = {}
    error: dict[int, np.ndarray] = {}
    whole = np.flatnonzero(~hidden.any(1))
    for part in _blocks(whole, n_completions[whole]):
        values = evaluate(rows[part])
        log_joint.update(zip(part, values))
        error.update(zip(part, np.zeros_like(values)))
    exact = np.flatnonzero(hidden.any(1) & (n_completions <= max_completions))
    for part in _blocks(exact, n_completions[exact]):
        completed, source = complete(rows[part], hidden[part], cardinalities)
        values = evaluate(completed, source, hidden[part])
        starts = np.searchsorted(source, np.arange(len(part)))
        top = np.maximum.reduceat(values, starts)
        sums = top + np.log(np.add.reduceat(np.exp(values - top[source]), starts))
        log_joint.update(zip(part, sums))
        error.update(zip(part, np.zeros_like(sums)))
    sampled = np.flatnonzero(n_completions > max_completions)
    if len(sampled):
        parents, cpts = proposal()
        for part in _blocks(sampled, np.full(len(sampled), n_draws)):
            uniforms = np.concatenate([_uniforms(row, n_draws, seed) for row in rows[part]])
            drawn, log_q = _draw(rows[part], hidden[part], parents, cpts, class_index, n_classes, uniforms)
            source = np.repeat(np.arange(len(part)), n_draws)
            distinct, _, where = fold(
                np.column_stack([source, drawn])
            )  # draws repeat themselves where values are nearly sure
            values = evaluate(distinct[:, 1:], distinct[:, 0], hidden[part])
            log_weights = (values[where] - log_q[:, None]).reshape(len(part), n_draws, -1)
            log_joint.update(zip(part, logsumexp(log_weights, axis=1) - np.log(n_draws)))
            error.update(zip(part, _standard_error(log_weights, class_index is not None)))
    order = range(len(rows))
    if not len(rows):
        return np.empty((0, n_classes)), np.empty((0, n_classes))
    return np.array([log_joint[k] for k in order])[inverse], np.array([error[k] for k in order])[inverse]


def complete(rows, hidden, cardinalities):
    """All completions of every row, and the row each belongs to (ascending)."""
    completed, source = [], []
    for k, (row, holes) in enumerate(zip(rows, hidden)):
        columns = np.flatnonzero(holes)
        count = prod(int(cardinalities[c]) for c in columns)
        block = np.repeat(row[None], count, axis=0)
        step = count
        for column in columns:
            step //= int(cardinalities[column])
            block[:, column] = np.arange(count) // step % int(cardinalities[column])
        completed.append(block)
        source.append(np.full(count, k))
    return np.concatenate(completed), np.concatenate(source)


def impute_uniformly(codes, cardinalities, rng):
    """Missing cells filled with states drawn uniformly, the way of the paper's section IV-D."""
    drawn = (rng.random(codes.shape) * cardinalities).astype(codes.dtype)
    return np.where(codes < 0, drawn, codes)


def _blocks(rows, sizes):
    """Consecutive groups of `rows` whose sizes add up to at most BLOCK (at least one row each)."""
    start, total = 0, 0.0
    for stop, size in enumerate(sizes):
        if total + size > BLOCK and stop > start:
            yield rows[start:stop]
            start, total = stop, 0.0
        total += size
    if start < len(rows):
        yield rows[start:]


def _uniforms(row, n_draws, seed):
    """(n_draws, n) uniform numbers for the draws of a row."""
    return np.random.default_rng([seed, *(row + 1)]).random((n_draws, len(row)))


def _draw(rows, hidden, parents, cpts, class_index, n_classes, uniforms):
    """Completions from the network, hidden nodes drawn in its order given the class (uniform) and the values above them.

    uniforms : (n_rows * n_draws, n), a number per draw and node. Returns the rows and the log of their density, the class
    summed out of it.
    """
    n_draws = len(uniforms) // len(rows)
    drawn = np.repeat(rows, n_draws, axis=0).astype(np.int64)
    holes = np.repeat(hidden, n_draws, axis=0)
    log_q = np.zeros((len(drawn), n_classes))  # density of what was drawn, had the class been another
    if class_index is not None:
        drawn[:, class_index] = (uniforms[:, class_index] * n_classes).astype(np.int64)
    for node in topological_order(parents):
        if node == class_index or not holes[:, node].any():
            continue
        mine = np.flatnonzero(holes[:, node])
        table = cpts[node]
        index = _configuration(drawn[mine], parents[node], [cpts[p].shape[1] for p in parents[node]])
        cumulative = np.cumsum(table, axis=1)[index]
        drawn[mine, node] = (uniforms[mine, node, None] > cumulative[:, :-1]).sum(1)
        for c in range(n_classes):
            if class_index in parents[node]:
                as_if = drawn[mine].copy()
                as_if[:, class_index] = c
                index = _configuration(as_if, parents[node], [cpts[p].shape[1] for p in parents[node]])
            log_q[mine, c] += np.log(table[index, drawn[mine, node]])
    if class_index is not None:
        drawn[:, class_index] = 0  # it has served
    return drawn, logsumexp(log_q, axis=1) - np.log(n_classes)


def _configuration(rows, parents, cardinalities):
    index = np.zeros(len(rows), dtype=np.int64)
    for parent, cardinality in zip(parents, cardinalities):
        index = index * cardinality + rows[:, parent]
    return index


def _standard_error(log_weights, normalise):
    """Delta method over the draws: of the class posterior, or of the log joint. log_weights : (n_rows, n_draws, n_classes)"""
    weights = np.exp(log_weights - log_weights.max(axis=(1, 2), keepdims=True))
    n_draws = weights.shape[1]
    mean = weights.mean(1)
    if not normalise:
        return weights.std(1, ddof=1) / mean / np.sqrt(n_draws)
    total = mean.sum(1, keepdims=True)
    proba = mean / total
    residual = (weights - proba[:, None] * weights.sum(2, keepdims=True)) / total[:, None]
    return residual.std(1, ddof=1) / np.sqrt(n_draws)
