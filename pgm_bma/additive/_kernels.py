"""Compiled sums over interval partitions and over recursive dyadic partitions, with the row left out in closed form.

A partition of the bins of a column gives each of its cells (intervals, rectangles) a Dirichlet-multinomial of the class with
pseudo-counts s p, p the class shares. Every partition has one cell that holds a given bin, so all that prediction needs is the
posterior weight of each cell; a row that is left out divides that weight by the cell's own prediction of the row.
"""

from math import exp, lgamma, log

import numpy as np

from pgm_bma.foundation.numbers._kernels import sum_partitions
from pgm_bma.foundation.runtime.compiling import compiled


@compiled
def log_evidence(counts, strength, shares, gammas):
    """ln of the Dirichlet-multinomial probability of the classes, in the order of the rows: counts (n_classes,).

    gammas : (n_classes + 1, n) lnGamma(a + i) - lnGamma(a) for whole counts i < n; the last line is that of the total
    """
    total, value = 0.0, 0.0
    known = gammas.shape[1] > 0
    for c in range(len(counts)):
        total += counts[c]
        if counts[c] > 0.0:
            if known:
                value += gammas[c, int(counts[c])]
            else:
                value += lgamma(strength * shares[c] + counts[c]) - lgamma(strength * shares[c])
    if known:
        return value - gammas[-1, int(total)]
    return value + lgamma(strength) - lgamma(strength + total)


@compiled
def fill_gammas(strengths, shares, gammas):
    """Tables for `log_evidence`: (n_strengths, n_classes + 1, n)."""
    for g in range(gammas.shape[0]):
        for c in range(gammas.shape[1]):
            a = strengths[g] * shares[c] if c < len(shares) else strengths[g]
            total = 0.0
            for i in range(gammas.shape[2]):
                gammas[g, c, i] = total
                total += log(a + i)


@compiled
def sum_intervals(cumulated, shares, strengths, gammas, cut_priors, log_z, cell_weights, cuts):
    """Exact sum over all 2^(m - 1) interval partitions of m bins, for every strength and cut prior (forward and backward).

    cumulated : (m + 1, n_classes) cumulated counts
    log_z : (n_strengths, n_priors), filled with the log evidence of the column
    cell_weights : (n_strengths, n_priors, m, m + 1), posterior of the interval [a, b), given strength and prior
    cuts : (n_strengths, n_priors, m), posterior of a cut before bin i (0 has none)
    """
    m = len(cumulated) - 1
    evidence, counts = np.empty((m, m + 1)), np.empty(cumulated.shape[1])
    for g in range(len(strengths)):
        for a in range(m):
            for b in range(a + 1, m + 1):
                for c in range(len(counts)):
                    counts[c] = cumulated[b, c] - cumulated[a, c]
                evidence[a, b] = log_evidence(counts, strengths[g], shares, gammas[g])
        for h in range(len(cut_priors)):
            log_z[g, h] = sum_partitions(evidence, cut_priors[h], cell_weights[g, h], cuts[g, h])


@compiled
def add_cell(counts, weight, strength, shares, unit, out):
    """Add what one cell says of the bins it holds: sums that `finish_bin` divides.

    counts : (n_classes,)     weight : its posterior     unit : weight of a row that is left out
    out : (n_classes + 1, n_classes + 1); line 0 is the prediction, line k + 1 that without a row of class k, the last column
    the total weights
    """
    n_classes = len(counts)
    total = 0.0
    for c in range(n_classes):
        total += counts[c]
    for c in range(n_classes):
        out[0, c] += weight * (counts[c] + strength * shares[c]) / (total + strength)
    for k in range(n_classes):
        taken = min(unit, counts[k])
        if taken <= 0.0:  # no row of this class in any bin below
            continue
        rest = total - taken + strength
        if taken == 1.0:
            own = (counts[k] - taken + strength * shares[k]) / rest
        else:  # the evidence of the cell over its evidence without the row
            n = counts[k] + strength * shares[k]
            own = exp(lgamma(n) - lgamma(n - taken) + lgamma(rest) - lgamma(rest + taken))
        out[k + 1, n_classes] += weight / own
        scale = weight / own / rest
        for c in range(n_classes):
            out[k + 1, c] += scale * (counts[c] + strength * shares[c])
        out[k + 1, k] -= scale * taken


@compiled
def finish_bin(sums, averaged, left_out):
    """Predictions of a bin from the sums of `add_cell` over all cells that hold it."""
    n_classes = len(averaged)
    for c in range(n_classes):
        averaged[c] = sums[0, c]
        for k in range(n_classes):
            norm = sums[k + 1, n_classes]
            left_out[k, c] = sums[k + 1, c] / norm if norm > 0.0 else sums[0, c]


@compiled
def interval_predictions(cumulated, shares, strengths, prior_weights, cell_weights, unit, averaged, left_out):
    """Predictions of every bin of a column; averaged (m, n_classes), left_out (m, n_classes, n_classes).

    prior_weights : (n_strengths, n_priors) posterior of the grid
    A bin lies in the intervals [a, b) with a <= bin < b: sums run over a first, then over b.
    """
    m, n_classes = len(cumulated) - 1, cumulated.shape[1]
    reached = np.zeros((m + 1, n_classes + 1, n_classes + 1))  # by b, summed over a up to the bin
    sums = np.empty((n_classes + 1, n_classes + 1))
    counts = np.empty(n_classes)
    for i in range(m):
        for b in range(i + 1, m + 1):
            for c in range(n_classes):
                counts[c] = cumulated[b, c] - cumulated[i, c]
            for g in range(len(strengths)):
                weight = 0.0
                for h in range(prior_weights.shape[1]):
                    weight += prior_weights[g, h] * cell_weights[g, h, i, b]
                if weight > 0.0:
                    add_cell(counts, weight, strengths[g], shares, unit, reached[b])
        for k in range(n_classes + 1):
            for c in range(n_classes + 1):
                total = 0.0
                for b in range(i + 1, m + 1):
                    total += reached[b, k, c]
                sums[k, c] = total
        finish_bin(sums, averaged[i], left_out[i])


@compiled
def _sum_children(phi, i, j, first, n_children, side):
    """Log of the product of Phi over the children of one side of the rectangle (i, j)."""
    total = 0.0
    for child in range(first, first + n_children):
        total += phi[child, j] if side == 0 else phi[i, child]
    return total


@compiled
def sum_rectangles(counts, children, n_children, shares, strengths, gammas, log_z, stop):
    """Sum over recursive partitions of a rectangle: Phi(R) = M(R) / 2 + sum over the d sides to split of prod Phi / (2 d).

    counts : (n_first, n_second, n_classes) of the products of tree nodes (roots are 0, children come after their parent)
    children, n_children : of each side (n_nodes,), number of the first child and how many there are, 0 at a leaf
    log_z : (n_strengths,)     stop : (n_strengths, n_first, n_second), posterior of being a cell of the partition
    """
    n_first, n_second = counts.shape[0], counts.shape[1]
    phi, reach = np.empty((n_first, n_second)), np.empty((n_first, n_second))
    shares_of = np.empty((n_first, n_second, 3))  # of staying whole, of a split of the first side, of the second
    for g in range(len(strengths)):
        for i in range(n_first - 1, -1, -1):
            for j in range(n_second - 1, -1, -1):
                here = log_evidence(counts[i, j], strengths[g], shares, gammas[g])
                split = (n_children[0][i] > 0) + (n_children[1][j] > 0)
                shares_of[i, j, 0], shares_of[i, j, 1], shares_of[i, j, 2] = 1.0, 0.0, 0.0
                phi[i, j] = here
                if here == 0.0 or split == 0:  # no row inside, so that every partition says the same; or one bin
                    continue
                first, second = -np.inf, -np.inf
                if n_children[0][i] > 0:
                    first = _sum_children(phi, i, j, children[0][i], n_children[0][i], 0)
                if n_children[1][j] > 0:
                    second = _sum_children(phi, i, j, children[1][j], n_children[1][j], 1)
                top = max(here, first, second)
                stay = 0.5 * exp(here - top)
                first, second = 0.5 / split * exp(first - top), 0.5 / split * exp(second - top)
                total = stay + first + second
                phi[i, j] = top + log(total)
                shares_of[i, j, 0], shares_of[i, j, 1], shares_of[i, j, 2] = stay / total, first / total, second / total
        log_z[g] = phi[0, 0]
        reach[:] = 0.0
        reach[0, 0] = 1.0
        for i in range(n_first):
            for j in range(n_second):
                stop[g, i, j] = reach[i, j] * shares_of[i, j, 0]
                if shares_of[i, j, 1] > 0.0:
                    for child in range(children[0][i], children[0][i] + n_children[0][i]):
                        reach[child, j] += reach[i, j] * shares_of[i, j, 1]
                if shares_of[i, j, 2] > 0.0:
                    for child in range(children[1][j], children[1][j] + n_children[1][j]):
                        reach[i, child] += reach[i, j] * shares_of[i, j, 2]


@compiled
def rectangle_predictions(counts, parents, leaves, shares, strengths, grid, stop, unit, averaged, left_out):
    """Predictions of every pair of bins: a bin sums over the rectangles above it, first along one side, then along the other.

    parents : two arrays (n_nodes,), -1 at the root     leaves : two arrays (n_bins,), the node of a bin
    averaged : (n_first_bins, n_second_bins, n_classes)     left_out : (..., n_classes, n_classes)
    """
    n_first, n_second, n_classes = counts.shape
    width = n_classes + 1
    sums = np.zeros((n_first, n_second, width, width))
    for i in range(n_first):
        for j in range(n_second):
            if parents[0][i] >= 0:
                above = sums[parents[0][i], j]
                for k in range(width):
                    for c in range(width):
                        sums[i, j, k, c] = above[k, c]
            for g in range(len(strengths)):
                if grid[g] * stop[g, i, j] > 0.0:
                    add_cell(counts[i, j], grid[g] * stop[g, i, j], strengths[g], shares, unit, sums[i, j])
    for x in range(len(leaves[0])):
        i = leaves[0][x]
        for j in range(1, n_second):
            above = sums[i, parents[1][j]]
            for k in range(width):
                for c in range(width):
                    sums[i, j, k, c] += above[k, c]
        for y in range(len(leaves[1])):
            finish_bin(sums[i, leaves[1][y]], averaged[x, y], left_out[x, y])


@compiled
def screen_pairs(bins, n_bins, residuals, variances, pairs, found):
    """Measure what is left unexplained in the cells of pairs of columns: (X^2 - its mean) / its spread, with the cells as bins.

    bins : (n_columns, n_samples), -1 = missing     n_bins : (n_columns,)
    residuals, variances : (n_samples, n_classes) of the classes given all other terms
    pairs : (n_pairs, 2)     found : (n_pairs,)
    """
    n_classes = residuals.shape[1]
    for t in range(len(pairs)):
        first, second = pairs[t]
        size = n_bins[second]
        left = np.zeros((n_bins[first] * size, n_classes))
        spread = np.zeros((n_bins[first] * size, n_classes))
        for r in range(bins.shape[1]):
            if bins[first, r] >= 0 and bins[second, r] >= 0:
                cell = bins[first, r] * size + bins[second, r]
                for c in range(n_classes):
                    left[cell, c] += residuals[r, c]
                    spread[cell, c] += variances[r, c]
        total, freedom = 0.0, 0.0
        for cell in range(len(left)):
            for c in range(n_classes):
                if spread[cell, c] > 1e-3:
                    total += left[cell, c] ** 2 / spread[cell, c]
                    freedom += 1.0
        found[t] = (total - freedom) / (2.0 * freedom + 1.0) ** 0.5


@compiled
def grow_tree(bins, n_bins, pulls, ridge, splits, leaves, places):
    """One symmetric tree: at every depth all leaves are split by the same column and bin, the pair that explains most.

    bins : (n_columns, n_samples), bytes; a missing one is 0, with the lowest     n_bins : (n_columns,)
    pulls : (n_samples, n_scores, 2), residuals and variances
    splits : (depth, 2), filled with column and last bin of the lower side
    leaves : (2^depth, n_scores), filled with Newton steps     places : (n_samples,), filled with the leaf of every row
    """
    n_scores = pulls.shape[1]
    places[:] = 0
    for level in range(len(splits)):
        best = -1.0
        for j in range(len(bins)):
            sums = np.zeros((1 << level, n_bins[j], n_scores, 2))
            add_pulls(bins[j], pulls, places, sums)
            gains = np.zeros(n_bins[j])
            for leaf in range(1 << level):
                for c in range(n_scores):
                    total, mass = sums[leaf, :, c, 0].sum(), sums[leaf, :, c, 1].sum()
                    below, held = 0.0, 0.0
                    for b in range(n_bins[j] - 1):
                        below += sums[leaf, b, c, 0]
                        held += sums[leaf, b, c, 1]
                        gains[b] += below**2 / (held + ridge) + (total - below) ** 2 / (mass - held + ridge)
            for b in range(n_bins[j] - 1):
                if gains[b] > best:
                    best, splits[level, 0], splits[level, 1] = gains[b], j, b
        for r in range(len(places)):
            places[r] = 2 * places[r] + (bins[splits[level, 0], r] > splits[level, 1])
    sums = np.zeros((len(leaves), 1, n_scores, 2))
    add_pulls(np.zeros(len(places), dtype=np.uint8), pulls, places, sums)
    leaves[:] = sums[:, 0, :, 0] / (sums[:, 0, :, 1] + ridge)


@compiled
def add_pulls(column, pulls, places, sums):
    """Add the pulls of all rows to their leaf and bin: sums (n_leaves, n_bins, n_scores, 2)."""
    for r in range(len(places)):
        for c in range(pulls.shape[1]):
            sums[places[r], column[r], c, 0] += pulls[r, c, 0]
            sums[places[r], column[r], c, 1] += pulls[r, c, 1]
