"""Chance that comes from the data: folds and samples of rows are a function of the table's content alone.

A fit that shuffles rows by a seed gives another answer for another seed, and for other names or orders of columns, rows and states
too. Here rows are shuffled by a hash of what they hold, in which only counts enter: colours of rows and states are refined in turn
(as in graph isomorphism tests), so that two rows share a colour only where the table is symmetric in them.
"""

import numpy as np

from pgm_bma.foundation.numbers import _kernels as kernels

_ROUNDS = 3
# see `weigh_repeats`: different rows from which on a common factor is no chance, and from which on there are copies
_FACTOR_ROWS, _FEWEST_DIFFERENT = 20, 50
_EVEN, _FEW_PAIRS = 0.2, 0.05  # evenness of the weights of copies, equal pairs per row that do no harm


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


def deal(target, weights, n_folds, colours, together=False, n_kept=None):
    """Weight of every row in every fold: (n_folds, n_samples), or in the first `n_kept` of them.

    Whole units go round class by class, in the order of `colours`.
    What is left of fractional weights goes round too. Folds thus follow from the data, not from a seed.
    together : a row goes to one fold with all its weight, because copies in other folds would vouch for it
    """
    parts = np.zeros((n_folds if n_kept is None else n_kept, len(target)))
    for c in np.unique(target):
        rows = np.flatnonzero(target == c)
        rows = rows[np.argsort(colours[rows], kind="stable")]
        whole = np.zeros(len(rows), dtype=np.int64) if together else np.floor(weights[rows]).astype(np.int64)
        first = int(np.bitwise_xor.reduce(colours[rows]) % np.uint64(n_folds))
        ends = np.cumsum(whole) + first
        starts = ends - whole
        for f in range(len(parts)):  # units starts..ends-1 go to fold unit % n_folds
            parts[f, rows] = (ends - f + n_folds - 1) // n_folds - (starts - f + n_folds - 1) // n_folds
        places = (np.arange(len(rows)) + first) % n_folds
        kept = places < len(parts)
        parts[places[kept], rows[kept]] += (weights[rows] - whole)[kept]
    return parts


def weigh_repeats(cells, target, weights):
    """(weights, how repeats were taken): "none", "data", or "copies", which say nothing new and stay together in folds.

    Whole weights with a common factor come from a table that was copied as a whole, or from one weight for all: the factor is
    taken out. Copies are scaled so that a row that is left out weighs one; their sum is the effective number of rows,
    (sum w)^2 / sum w^2 (Kish).

    cells : (n_samples, n_columns) different rows, with their number or weight in `weights`; any codes, -1 = missing
    """
    if len(weights) >= _FACTOR_ROWS and weights.max() < 2**53 and np.array_equal(weights, np.floor(weights)):
        weights = weights / np.gcd.reduce(weights.astype(np.int64))
    if not len(weights) or weights.max() <= 1:
        return weights, "none"
    if not _are_copies(cells, target, weights):
        return weights, "data"
    return weights * (weights.sum() / (weights @ weights)), "copies"


def _are_copies(cells, target, weights):
    """Return whether more rows are equal than drawing rows anew would give.

    Two rows of one class are equal with probability q = prod_j sum_s p(x_j = s | class)^2 if the columns are independent in it.
    Dependent columns give more, so repeats are data while no more pairs are equal than with the square root of q; they are data
    too where few different rows, or a few of them, make up most of the table.
    """
    total, squares = weights.sum(), weights @ weights
    if len(weights) < _FEWEST_DIFFERENT or total**2 < _EVEN * squares * len(weights):
        return False
    cells = np.stack(list({(column := _relabelled(c)).tobytes(): column for c in cells.T}.values()), axis=1)
    expected = 0.0
    for c in np.unique(target):
        rows, mass = cells[target == c], weights[target == c]
        chances = [np.square(np.bincount(column, mass) / mass.sum()).sum() for column in rows.T]
        expected += mass.sum() ** 2 / 2 * np.sqrt(np.prod(chances))
    equal = np.maximum(weights * (weights - 1), 0.0).sum() / 2
    return bool(equal > expected + _FEW_PAIRS * total)


def _relabelled(column):
    """States numbered in the order of their first rows, so that columns that say the same are equal."""
    _, first, inverse = np.unique(column, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.ravel()]
