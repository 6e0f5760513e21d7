"""Two columns together, averaged over recursive partitions of their rectangle.

Each column has a tree over its bins: halves of halves for a numeric one (at most 16 bins), a root with all states right below it
for a categorical one. A rectangle is a product of two nodes. It stays whole with probability 1/2, else one of its sides is split
into its children: Phi(R) = M(R) / 2 + (1 / 2d) sum over the d sides that can be split of the product of Phi over the parts, M the
Dirichlet-multinomial evidence of its classes. Sums go bottom-up, posteriors of the cells top-down.
"""

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from pgm_bma.additive import _kernels as kernels
from pgm_bma.additive.cuts import STRENGTHS, _log_mean, _normalised, gamma_tables

MAX_PAIR_BINS = 16


@lru_cache(maxsize=200)
def bin_tree(n_bins, halves=True):
    """Tree over bins 0..n_bins - 1: halves of halves, or (a categorical column) a root with all bins below: `BinTree`."""
    spans, children, sizes = [(0, n_bins)], [], []
    node = 0
    while node < len(spans):
        first, stop = spans[node]
        bounds = [first, (first + stop) // 2, stop] if halves else list(range(first, stop + 1))
        parts = list(pairwise(bounds)) if stop - first > 1 else []
        children.append(len(spans))
        sizes.append(len(parts))
        spans += parts
        node += 1
    members = np.array([[first <= i < stop for i in range(n_bins)] for first, stop in spans], dtype=float)
    leaves = np.array([spans.index((i, i + 1)) for i in range(n_bins)], dtype=np.int64)
    parents = np.full(len(spans), -1, dtype=np.int64)
    for node, (child, size) in enumerate(zip(children, sizes)):
        parents[child : child + size] = node
    return BinTree(np.array(children, dtype=np.int64), np.array(sizes, dtype=np.int64), parents, leaves, members)


def average_rectangles(counts, shares, unit=1.0, strengths=STRENGTHS, halves=(True, True), gammas=None):
    """Average over recursive partitions of the rectangle of two columns.

    Parameters
    ----------
    counts : (n_first_bins, n_second_bins, n_classes)
    shares : (n_classes,)
    unit : weight of a row that is left out
    strengths : grid of s, summed out
    halves : for each column, whether it is split by halves (numeric) or into all its states at once
    gammas : as in `average_intervals`

    Returns
    -------
    PairAverage
    """
    counts, shares = np.ascontiguousarray(counts, dtype=float), np.asarray(shares, dtype=float)
    strengths = np.asarray(strengths, dtype=float)
    n_first, n_second, n_classes = counts.shape
    first, second = bin_tree(n_first, halves[0]), bin_tree(n_second, halves[1])
    held = (first.members @ counts.reshape(n_first, -1)).reshape(-1, n_second, n_classes)
    held = np.ascontiguousarray(np.matmul(second.members, held))
    log_z, stop = np.empty(len(strengths)), np.empty((len(strengths), *held.shape[:2]))
    children, sizes = (first.children, second.children), (first.n_children, second.n_children)
    gammas = gamma_tables(counts.sum(), counts, shares, strengths) if gammas is None else gammas
    kernels.sum_rectangles(held, children, sizes, shares, strengths, gammas, log_z, stop)
    averaged = np.empty((n_first, n_second, n_classes))
    left_out = np.empty((n_first, n_second, n_classes, n_classes))
    parents, leaves = (first.parents, second.parents), (first.leaves, second.leaves)
    grid = _normalised(log_z)
    kernels.rectangle_predictions(held, parents, leaves, shares, strengths, grid, stop, unit, averaged, left_out)
    return PairAverage(averaged, left_out, _log_mean(log_z))


class BinTree(NamedTuple):
    """children, n_children (n_nodes,): number of the first child and how many follow, 0 at a leaf.

    parents (n_nodes,), -1 at the root     leaves (n_bins,) : the node of a bin     members (n_nodes, n_bins) : bins of a node
    """

    children: np.ndarray
    n_children: np.ndarray
    parents: np.ndarray
    leaves: np.ndarray
    members: np.ndarray


class PairAverage(NamedTuple):
    """probability (n_first, n_second, n_classes), left_out (..., n_classes, n_classes) and log_evidence, as in `ColumnAverage`."""

    probability: np.ndarray
    left_out: np.ndarray
    log_evidence: float
