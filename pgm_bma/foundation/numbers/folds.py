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
# mean of even weights, standard errors of their variance, factor on equal pairs
_OFTEN, _CHANCE, _BEYOND = 1.5, 2.5, 1.2


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


def deal_groups(target, weights, groups, n_folds, colours):
    """The same where all rows of a group go to one fold: (n_folds, n_samples); fewer folds where there are fewer groups.

    Groups go round by the class that most of their rows have, large ones first.
    """
    _, groups = np.unique(groups, return_inverse=True)
    n_groups, hashes = int(groups.max()) + 1, _hashed(colours)
    keys, class_keys = np.zeros(n_groups, dtype=np.uint64), np.zeros(int(target.max()) + 1, dtype=np.uint64)
    np.add.at(keys, groups, hashes)
    np.add.at(class_keys, target, hashes)
    mass = np.zeros((n_groups, len(class_keys)))
    np.add.at(mass, (groups, target), weights)
    most = mass[:, np.argsort(class_keys)].argmax(axis=1)  # classes in an order that their names do not change
    places, n_folds = np.empty(n_groups, dtype=np.int64), min(n_folds, n_groups)
    places[np.lexsort((keys, -mass.sum(axis=1), most))] = np.arange(n_groups) % n_folds
    return np.where(places[groups] == np.arange(n_folds)[:, None], weights, 0.0)


def weigh_repeats(cells, target, weights, grouped=False):
    """(weights, how repeats were taken): "none", "data", or "copies", which say nothing new and stay together in folds.

    Whole weights with a common factor come from a table that was copied as a whole, or from one weight for all: the factor is
    taken out. Copies are scaled so that a row that is left out weighs one; their sum is the effective number of rows,
    (sum w)^2 / sum w^2 (Kish).

    cells : (n_samples, n_columns) different rows, with their number or weight in `weights`; any codes, -1 = missing
    grouped : rows are different within groups, so that what repeats in a group is known to be a copy
    """
    if len(weights) >= _FACTOR_ROWS and weights.max() < 2**53 and np.array_equal(weights, np.floor(weights)):
        weights = weights / np.gcd.reduce(weights.astype(np.int64))
    if not len(weights) or weights.max() <= 1:
        return weights, "none"
    if not grouped and not _are_copies(cells, target, weights):
        return weights, "data"
    return weights * (weights.sum() / (weights @ weights)), "copies"


def _are_copies(cells, target, weights):
    """Return whether more rows are equal than drawing rows anew would give.

    Two rows of one class are equal with probability q = prod_j sum_s p(x_j = s | class)^2 if the columns are independent in it.
    Dependent columns give more, so repeats are data while no more pairs are equal than with the square root of q; they are data
    too where few different rows, or a few of them, make up most of the table. But what repeats by nature repeats unevenly, as rows
    of likely cells do so more often: where rows repeat as evenly as if each were equally likely (a table drawn with replacement
    from a smaller one), q itself is the limit.
    """
    total, squares = weights.sum(), weights @ weights
    if len(weights) < _FEWEST_DIFFERENT or total**2 < _EVEN * squares * len(weights):
        return False
    cells = np.stack(list({(column := _relabelled(c)).tobytes(): column for c in cells.T}.values()), axis=1)
    expected, root = 0.0, 1.0 if _as_even_as_draws(weights) else 0.5
    for c in np.unique(target):
        rows, mass = cells[target == c], weights[target == c]
        chances = [np.square(np.bincount(column, mass) / mass.sum()).sum() for column in rows.T]
        expected += mass.sum() ** 2 / 2 * np.prod(chances) ** root
    equal = np.maximum(weights * (weights - 1), 0.0).sum() / 2
    return bool(equal > _BEYOND * expected + _FEW_PAIRS * total)


def _as_even_as_draws(weights):
    """Return whether the variance of whole weights is at most that of a Poisson number without zero, within chance."""
    mean = weights.mean()
    if mean < _OFTEN or not np.array_equal(weights, np.floor(weights)):
        return False
    rate = mean
    for _ in range(100):  # the mean is rate / (1 - exp(-rate))
        rate = mean * -np.expm1(-rate)
    return bool(weights.var() <= mean * (1 + rate - mean) * (1 + _CHANCE * np.sqrt(2 / len(weights))))


def _relabelled(column):
    """States numbered in the order of their first rows, so that columns that say the same are equal."""
    _, first, inverse = np.unique(column, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse.ravel()]
