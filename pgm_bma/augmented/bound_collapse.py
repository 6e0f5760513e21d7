"""Bound and Collapse: intervals for conditional probabilities from incomplete cases, and one value inside each of them.

Paper: SEM (Peña, Lozano, Larrañaga 2000, section 4), after Ramoni and Sebastiani 1998. For one parent state of a family
let n_k be the complete cases with value k, u_k the incomplete cases that could become (parent state, k), and
a = r alpha + sum n. Every completion of the missing cells gives an estimate (alpha + n'_k) / (r alpha + sum n');

    upper_k = (alpha + n_k + u_k) / (a + u_k)          every case that can become k here does, the others stay away
    lower_k = (alpha + n_k) / (a + those that can become another value here)

are its extremes. If all u_l cases went to value l the table would be local_l; the collapsed value is the mean of the
local tables under the pattern w_l = P(a missing case is l). By default w is the estimate from the complete cases (missing
at random). In: integer codes, -1 = missing. Out: one record of arrays per family.
"""

from math import prod
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.families import posterior_mean

MAX_CELLS = 2**22  # of one table: its intervals hold seven arrays of that size, and the collapse one more per state


def bound_and_collapse_families(codes, cardinalities, parents, weights=None, alpha=1.0, patterns=None):
    """Intervals and collapsed tables of every node of a network.

    codes : (n_samples, n_nodes), -1 = missing      parents : for each node a sequence of node positions
    weights : (n_samples,) or None      alpha : pseudo-count per cell, or one per node
    patterns : None, or for each node None or (n_parent_states, n_states) weights of the values a missing case may take
    returns a list of FamilyBounds
    """
    check_table_sizes(cardinalities, parents)
    codes = fill_constant_columns(codes, cardinalities)
    alphas = np.broadcast_to(np.asarray(alpha, dtype=float), len(cardinalities))
    records = []
    for node, node_parents in enumerate(parents):
        n, u, open_child = family_cases(codes, cardinalities, node, node_parents, weights)
        pattern = None if patterns is None else patterns[node]
        records.append(family_bounds(n, u, open_child, alphas[node], pattern))
    return records


def check_table_sizes(cardinalities, parents, names=None):
    """An error before memory is taken where a table is too large."""
    for node, above in enumerate(parents):
        cells = prod(int(cardinalities[c]) for c in (*above, node))
        if cells > MAX_CELLS:
            raise ValueError(
                f"the table of {node if names is None else names[node]!r} below its {len(above)} parents has {cells:,} cells, and "
                f"the limit is {MAX_CELLS:,}: give it fewer parents, or merge states"
            )


def family_bounds(counts, possible, open_child, alpha=1.0, pattern=None):
    """Lower, upper and collapsed tables of one family.

    counts, possible : (n_parent_states, n_states)    open_child : (n_parent_states,), incomplete cases without a value
    """
    n_states = counts.shape[-1]
    cell, base = counts + alpha, counts.sum(-1, keepdims=True) + n_states * alpha  # base is a of the module docstring
    phi = posterior_mean(counts, alpha)
    if pattern is None:
        weight = phi
    else:
        total = np.sum(pattern, axis=-1, keepdims=True)
        weight = np.where(total > 0, pattern / np.where(total > 0, total, 1.0), 1.0 / n_states)
    upper = _ratio(cell + possible, base + possible)
    known = possible - open_child[:, None]  # the value is known, the parent state is not
    elsewhere = open_child[:, None] + known.sum(-1, keepdims=True) - known
    lower = _ratio(cell, base + elsewhere)
    # sum over l of weight_l * local_l[k]: the share of k in every local table, and what the u_k cases add to its own
    stay = _ratio(cell[:, None, :], (base + possible)[:, :, None])
    collapsed = np.einsum("ql,qlk->qk", weight, stay) + weight * _ratio(possible, base + possible, 0.0)
    return FamilyBounds(lower, upper, collapsed, counts, possible, weight)


def family_cases(codes, cardinalities, child, parents=(), weights=None):
    """Complete and possible counts of one family: (n_parent_states, n_states) twice, and the possible cases without a value.

    An incomplete case is possible for every cell that agrees with the cells it has. Rows are grouped by their pattern of
    missing cells: each pattern is one table over the cells it has, spread over the ones it lacks.
    """
    columns = [*parents, child]
    shape = tuple(int(cardinalities[c]) for c in columns)
    values = [np.ascontiguousarray(codes[:, c], dtype=np.int64) for c in columns]
    pattern = np.zeros(len(codes), dtype=np.int64)
    for k, column in enumerate(values):
        pattern |= (column < 0).astype(np.int64) << k
    counts, possible, open_child = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    for code in np.flatnonzero(np.bincount(pattern)):
        rows = np.flatnonzero(pattern == code)
        have = [k for k in range(len(columns)) if not code >> k & 1]
        index = np.zeros(len(rows), dtype=np.int64)
        for k in have:
            index = index * shape[k] + values[k][rows]
        size = int(np.prod([shape[k] for k in have], dtype=np.int64))
        table = np.bincount(index, None if weights is None else weights[rows], minlength=size)
        table = table.reshape([shape[k] if k in have else 1 for k in range(len(columns))])
        if code == 0:
            counts += table
        else:
            possible += table
            if code >> (len(columns) - 1) & 1:
                open_child += table
    n_states = shape[-1]
    return counts.reshape(-1, n_states), possible.reshape(-1, n_states), open_child.reshape(-1, n_states)[:, 0]


def fill_constant_columns(codes, cardinalities):
    """A variable with one state is never really missing: its cells are filled, so that the intervals stay exact."""
    constant = np.asarray(cardinalities) == 1
    if not constant.any():
        return codes
    codes = np.array(codes)
    codes[:, constant] = 0
    return codes


def _ratio(above, below, otherwise=None):
    """above / below, and the uniform value (or `otherwise`) where there is neither a case nor a prior."""
    otherwise = 1.0 / above.shape[-1] if otherwise is None else otherwise
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), otherwise)


class FamilyBounds(NamedTuple):
    """Bounds and collapsed values of one family; every array is (n_parent_states, n_states).

    lower, upper : extremes of the estimate over all completions      collapsed : the value chosen between them
    counts : complete cases      possible : incomplete cases that could become this cell      weights : collapse weights
    """

    lower: np.ndarray
    upper: np.ndarray
    collapsed: np.ndarray
    counts: np.ndarray
    possible: np.ndarray
    weights: np.ndarray
