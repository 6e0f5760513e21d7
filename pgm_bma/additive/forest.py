"""A random forest as one more term: what many columns decide together, without a picture.

Trees are grown to the end on rows drawn with replacement, over states and bins of the numbers (finer than those of the other
terms), with the best of a few random columns at each node. The term of a class is ln P(class | row), P the mean of the class shares
in the leaves that the row reaches, mixed with a little of those of the table. A training row is judged by the trees that did not
draw it (Breiman 2001).

A row of weight w is w / u units of weight u, u what is taken away where a row is left out. Units are drawn a Poisson number of
times, so that a tree that drew m units of a row lacks a given one with probability (1 - u / w)^m: so much the tree counts for it.
Nothing depends on the order and names of rows, columns and states: rows are drawn in the order of their colours (see `folds`),
columns in an order that follows from their cells, and states are numbered by their first rows.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.additive import _forest_kernels as kernels

# 100, 200 and 300 trees are level from 100 on; where rows are many fewer trees keep a model small
_N_TREES, _MANY_ROWS = (200, 100), 2000
_MOST_DRAWN = 5000  # rows of a tree
MIXED = 0.02  # weight of the class shares, so that no probability is 0
MOST_BINS = 62  # of a number, or states: a mask of 63 bits holds them and the missing value


def fit_forest(data, shares, colours, places):
    """`Forest` of weight 1 and its term for some rows that are left out of it: (m, n_classes); None where nothing can be split.

    colours : (n,) of the rows     places : (m,) rows
    """
    sizes = np.asarray(data.n_bins)
    columns = np.flatnonzero((sizes > 1) & (data.numeric | (sizes <= MOST_BINS)) & (data.monotone == 0))
    if not len(columns):
        return None
    numbers = np.flatnonzero(data.numeric)
    edges = [number_edges(v, data.weights) for v in data.values.T]
    bins = forest_bins(data.codes, data.values, numbers, edges)
    ranks = np.argsort(np.argsort(colours, kind="stable"))
    order = _ColumnOrder(bins, columns, data.numeric, ranks)
    draws = _Draws(data, ranks)
    n_trees = _N_TREES[int(draws.n_units.sum() > _MANY_ROWS)]
    n_try, state = max(int(np.sqrt(len(columns))), 1), np.zeros(1, dtype=np.uint64)
    sums, counts = np.zeros((len(places), data.n_classes)), np.zeros(len(places))
    left_out = np.ascontiguousarray(order.bins[:, places])
    parts, roots, n_nodes, n_leaves = [], [], 0, 0
    for _ in range(n_trees):
        drawn, lacking = draws.next()
        rows = np.flatnonzero(drawn)
        rows = rows[np.argsort(ranks[rows])]
        tree = np.zeros((3, 2 * len(rows) + 1), dtype=np.int64)  # columns, masks, children
        leaves = np.zeros((len(rows) + 1, data.n_classes))
        own = np.ascontiguousarray(order.bins[:, rows])
        size, n_own = kernels.grow(
            own, order.sizes, order.ordered, data.target[rows], drawn[rows], n_try, state, *tree, leaves
        )
        kernels.add_leaves(left_out, 0, *tree, leaves, lacking[places], sums)
        counts += lacking[places]
        places_of, masks, children = (part[:size] for part in tree)
        children = np.where(children < 0, children - n_leaves, children + n_nodes)
        parts.append((places_of, masks, children, leaves[:n_own]))
        roots.append(n_nodes)
        n_nodes, n_leaves = n_nodes + size, n_leaves + n_own
    own, masks, children, leaves = (np.concatenate(part) for part in zip(*parts))
    split = children >= 0
    masks = np.where(split, order.outside(own, masks), 0)
    own = np.where(split, order.columns[own], 0)
    used = set(own[split].tolist())
    edges = [edge if j in used else np.zeros(0) for j, edge in zip(numbers.tolist(), edges)]
    forest = Forest(numbers, edges, own, masks, children, leaves, np.array(roots, dtype=np.int64), shares, 1.0)
    known = np.maximum(counts, 1e-300)[:, None]
    return forest, np.where(counts[:, None] > 0, _log_mixed(sums / known, shares), np.log(shares))


def number_edges(values, weights):
    """Middles between neighbouring values, at most `MOST_BINS` - 1 of them at even shares of the rows."""
    seen = ~np.isnan(values)
    distinct, inverse = np.unique(values[seen], return_inverse=True)
    if len(distinct) < 2:
        return np.zeros(0)
    lower = np.arange(len(distinct) - 1)
    if len(distinct) > MOST_BINS:
        mass = np.cumsum(np.bincount(inverse.ravel(), weights[seen]))
        wanted = mass[-1] * np.arange(1, MOST_BINS) / MOST_BINS
        lower = np.unique(np.minimum(np.searchsorted(mass, wanted), len(distinct) - 2))
    below, above = distinct[lower], distinct[lower + 1]
    with np.errstate(invalid="ignore"):
        middle = below / 2 + above / 2
    return np.where(middle > below, middle, above)


def forest_bins(codes, values, numbers, edges):
    """(n_columns, n_samples) bytes: 0 is missing; bins of numbers are those between `edges`."""
    bins = (codes.T + 1).astype(np.uint8)
    for j, column, edge in zip(numbers, values.T, edges):
        bins[j] = np.where(np.isnan(column), 0, np.searchsorted(edge, column, side="right") + 1)
    return bins


class _ColumnOrder:
    """Usable columns in an order that follows from their cells; states numbered by their first rows in the order of `ranks`."""

    def __init__(self, bins, columns, numeric, ranks):
        first = np.argsort(ranks)
        found = []
        for j in columns:
            size = int(bins[j].max()) + 1
            numbering = np.arange(size) if numeric[j] else _by_first_row(bins[j][first], size)
            found.append((numbering, numbering[bins[j]].astype(np.uint8)))
        odd = np.random.default_rng(0).integers(2**63, size=len(first), dtype=np.uint64)[ranks]
        order = np.argsort([(column * odd).sum(dtype=np.uint64) for _, column in found], kind="stable")
        self.columns, self.ordered = columns[order], numeric[columns[order]]
        self.numberings = [found[k][0] for k in order]
        self.sizes = np.array([len(numbering) for numbering in self.numberings], dtype=np.int64)
        self.bins = np.stack([found[k][1] for k in order])

    def outside(self, places, masks):
        """Masks over the bins and states as they are known outside."""
        result = masks.copy()
        for k in np.flatnonzero(~self.ordered):
            own = places == k
            result[own] = 0
            for state, number in enumerate(self.numberings[k]):
                result[own] |= ((masks[own] >> number) & 1) << state
        return result


def _by_first_row(column, size):
    """New numbers of the states of a column: 0, which is missing, stays."""
    first = np.full(size, len(column))
    np.minimum.at(first, column, np.arange(len(column)))
    first[0] = -1
    return np.argsort(np.argsort(first, kind="stable"), kind="stable")


class _Draws:
    """Rows of one tree after the other."""

    def __init__(self, data, ranks):
        self.rng, self.ranks = np.random.default_rng(0), ranks
        self.weights, self.unit, self.owner = data.weights, data.left_out_weights(), None
        groups = data.groups
        if groups is not None:  # all rows of a group are drawn, and left out, together
            first = np.full(int(groups.max()) + 1, len(groups))
            np.minimum.at(first, groups, ranks)
            self.owner, self.unit = np.argsort(np.argsort(first))[groups], data.weights
        self.n_units = self.weights / self.unit
        self.share = min(1.0, _MOST_DRAWN / self.n_units.sum())

    def next(self):
        """(weights of the rows in the tree, how much the tree counts for a row that is left out): (n,) each."""
        if self.owner is None:
            units = np.empty_like(self.n_units)
            units[self.ranks] = self.n_units
            times = self.rng.poisson(units * self.share)[self.ranks]
        else:
            times = self.rng.poisson(self.share, int(self.owner.max()) + 1)[self.owner]
        return times * self.unit, np.power(1 - self.unit / self.weights, times)


def forest_lines(forest, codes, values):
    """Return what the forest says of rows of the whole table: (n_samples, n_classes)."""
    bins = forest_bins(codes, values, forest.numbers, forest.edges)
    sums, rows = np.zeros((len(codes), len(forest.shares))), np.ones(len(codes))
    for root in forest.roots:
        kernels.add_leaves(bins, root, forest.columns, forest.masks, forest.children, forest.leaves, rows, sums)
    return forest.weight * _log_mixed(sums / len(forest.roots), forest.shares)


def _log_mixed(probability, shares):
    return np.log((probability + MIXED * shares) / (1 + MIXED))


class Forest(NamedTuple):
    """numbers : positions of the numeric columns in the table     edges : between the bins of each, none where it has no split

    columns, masks, children (n_nodes,) : a row whose bin in the column is a bit of the mask goes to the child, others to the node
    behind it; bins and states count from 1, 0 is missing; a leaf has child -1 - its number
    leaves (n_leaves, n_classes); roots (n_trees,); shares (n_classes,) of the classes; weight of the term
    """

    numbers: np.ndarray
    edges: list
    columns: np.ndarray
    masks: np.ndarray
    children: np.ndarray
    leaves: np.ndarray
    roots: np.ndarray
    shares: np.ndarray
    weight: float
