"""The last stage: symmetric trees over the bins of the numbers, grown on what all other terms leave unexplained of left-out rows.

There are as many as held-out rows ask for, and none where these do not gain beyond chance.
"""

import numpy as np

from pgm_bma.additive._kernels import grow_tree
from pgm_bma.additive.model import Trees, tree_lines
from pgm_bma.additive.solve import SEARCH, TREES


def grow_trees(data, scores, part):
    """`Trees` on top of scores (n, n_classes) of left-out rows; None where held-out rows do not gain by them beyond chance.

    part : (n,) weights of the rows that are held out of them
    """
    held, rows = part > 0, part[part > 0]
    numbers = np.flatnonzero(data.numeric & (data.monotone == 0))
    bins = np.maximum(data.codes.T[numbers], 0).astype(np.uint8)  # a missing value is with the lowest
    n_bins = np.asarray(data.n_bins, dtype=np.int64)[numbers]
    boosting = _Boosting(data, bins, n_bins, scores, data.weights - part)
    target, found, held_bins = data.target[held], scores[held].T, bins[:, held]
    before = _losses(found, target)
    best, n_best, gain = 0.0, 0, before
    for n_trees in range(1, TREES.most + 1):
        tree = boosting.grow()
        found = found + tree_lines(Trees(tree.splits[None], tree.leaves[None]), held_bins).T
        losses = _losses(found, target)
        if rows @ (before - losses) > best:
            best, n_best, gain = rows @ (before - losses), n_trees, before - losses
        if n_trees - n_best >= TREES.patience:
            break
    mean = best / rows.sum()
    if n_best == 0 or best <= SEARCH.sure * np.sqrt(rows @ (gain - mean) ** 2):
        return None
    boosting = _Boosting(data, bins, n_bins, scores, data.weights)
    grown = [boosting.grow() for _ in range(n_best)]
    splits = np.stack([tree.splits for tree in grown])
    splits[:, :, 0] = numbers[splits[:, :, 0]]
    return Trees(splits, np.stack([tree.leaves for tree in grown]))


def _losses(scores, target):
    """(n,) log losses of scores (n_classes, n): sums over few classes are fast when the rows come last."""
    top = scores.max(axis=0)
    return top + np.log(np.exp(scores - top).sum(axis=0)) - scores[target, np.arange(len(target))]


class _Boosting:
    """Rows that trees are grown on, one after the other; scores (n_classes, n)."""

    def __init__(self, data, bins, n_bins, scores, rows):
        kept = rows > 0
        self.bins, self.n_bins = np.ascontiguousarray(bins[:, kept]), n_bins
        self.scores, self.rows = np.ascontiguousarray(scores[kept].T), rows[kept]
        self.own = np.arange(data.n_classes)[:, None] == data.target[kept]
        self.places = np.empty(kept.sum(), dtype=np.int64)

    def grow(self):
        """The next tree, which is added to the scores."""
        odds = np.exp(self.scores - self.scores.max(axis=0))
        p = odds / odds.sum(axis=0)
        n_own = 1 if len(p) == 2 else len(p)  # of two classes one is the other upside down
        p, own = p[:n_own], self.own[:n_own]
        pulls = np.stack([(self.rows * (own - p)).T, (self.rows * (p * (1 - p))).T], axis=2)
        splits, leaves = np.zeros((TREES.depth, 2), dtype=np.int64), np.zeros((2**TREES.depth, n_own))
        grow_tree(self.bins, self.n_bins, pulls, TREES.ridge, splits, leaves, self.places)
        leaves = TREES.rate * (np.hstack([leaves, -leaves]) if n_own == 1 else leaves)
        self.scores += leaves.T[:, self.places]
        return Trees(splits, leaves)
