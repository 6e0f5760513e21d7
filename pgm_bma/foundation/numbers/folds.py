"""Chance that comes from the data: folds and samples of rows are a function of the table's content alone.

A fit that shuffles rows by a seed gives another answer for another seed, and for other names or orders of columns, rows and states
too. Here rows are shuffled by a hash of what they hold, in which only counts enter: colours of rows and states are refined in turn
(as in graph isomorphism tests), so that two rows share a colour only where the table is symmetric in them.
"""

import numpy as np

from pgm_bma.foundation.numbers import _fold_kernels as kernels

_ROUNDS = 3


def row_colours(codes, target, weights):
    """(n_samples,) uint64, pseudo-random, the same under any order and names of rows, columns, states and classes."""
    codes = np.column_stack([codes, target]).astype(np.int64)
    rows = np.ascontiguousarray(weights, dtype=np.float64).view(np.uint64)
    return kernels.refine_colours(codes, rows, _ROUNDS)


def some_rows(codes, target, weights, size):
    """Positions of about `size` of the rows, the same rows under any order and names of rows, columns and states.

    Rows are taken by a hash of how often their cells' states occur, which costs less than colours.
    """
    keys = np.zeros(len(codes), dtype=np.uint64)
    for column in [*codes.T, target]:
        counts = np.bincount(column + 1, weights)
        keys += _hashed(counts.view(np.uint64))[column + 1]
    return np.sort(np.argpartition(_hashed(keys), size)[:size]) if size < len(keys) else np.arange(len(keys))


def _hashed(values):
    """64-bit hashes (splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def deal(target, weights, n_folds, colours):
    """Weight of every row in every fold: (n_folds, n_samples). Whole units go round class by class, in the order of `colours`.

    What is left of fractional weights goes round too. Folds thus follow from the data , not from a seed.
    """
    parts = np.zeros((n_folds, len(target)))
    for c in np.unique(target):
        rows = np.flatnonzero(target == c)
        rows = rows[np.argsort(colours[rows], kind="stable")]
        whole = np.floor(weights[rows]).astype(np.int64)
        first = int(np.bitwise_xor.reduce(colours[rows]) % np.uint64(n_folds))
        ends = np.cumsum(whole) + first
        starts = ends - whole
        for f in range(n_folds):  # units starts..ends-1 go to fold unit % n_folds
            parts[f, rows] = (ends - f + n_folds - 1) // n_folds - (starts - f + n_folds - 1) // n_folds
        parts[(np.arange(len(rows)) + first) % n_folds, rows] += weights[rows] - whole
    return parts
