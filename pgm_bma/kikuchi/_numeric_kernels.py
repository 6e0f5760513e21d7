"""Compiled sums over interval partitions and over recursive dyadic partitions, with the row left out in closed form.

A partition of the bins of a column gives each of its cells (intervals, rectangles) a Dirichlet-multinomial of the class with
pseudo-counts s p, p the class shares. Every partition has one cell that holds a given bin, so all that prediction needs is the
posterior weight of each cell; a row that is left out divides that weight by the cell's own prediction of the row.
"""

from math import exp, lgamma, log

import numpy as np

from pgm_bma.foundation.compiling import compiled


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
def _log_add(a, b):
    top = max(a, b)
    if top == -np.inf:
        return top
    return top + log(exp(a - top) + exp(b - top))


@compiled
def sum_intervals(cumulated, shares, strengths, gammas, cut_priors, log_z, cell_weights, cuts):
    """Exact sum over all 2^(m - 1) interval partitions of m bins, for every strength and cut prior (forward and backward).

    cumulated : (m + 1, n_classes) cumulated counts
    log_z : (n_strengths, n_priors), filled with the log evidence of the column
    cell_weights : (n_strengths, n_priors, m, m + 1), posterior of the interval [a, b), given strength and prior
    cuts : (n_strengths, n_priors, m), posterior of a cut before bin i (0 has none)
    """
    m = len(cumulated) - 1
    evidence = np.empty((m, m + 1))
    forward, backward = np.empty(m + 1), np.empty(m + 1)
    for g in range(len(strengths)):
        for a in range(m):
            for b in range(a + 1, m + 1):
                evidence[a, b] = log_evidence(cumulated[b] - cumulated[a], strengths[g], shares, gammas[g])
        for h in range(len(cut_priors)):
            cut, stay = log(cut_priors[h]), log(1.0 - cut_priors[h])
            forward[0], backward[m] = 0.0, 0.0
            for b in range(1, m + 1):
                forward[b] = -np.inf
                for a in range(b):
                    weight = forward[a] + evidence[a, b] + (b - a - 1) * stay + (cut if a > 0 else 0.0)
                    forward[b] = _log_add(forward[b], weight)
            for a in range(m - 1, -1, -1):
                backward[a] = -np.inf
                for b in range(a + 1, m + 1):
                    weight = backward[b] + evidence[a, b] + (b - a - 1) * stay + (cut if b < m else 0.0)
                    backward[a] = _log_add(backward[a], weight)
            log_z[g, h] = forward[m]
            for a in range(m):
                before = forward[a] + (cut if a > 0 else 0.0)
                cuts[g, h, a] = exp(before + backward[a] - forward[m]) if a > 0 else 0.0
                for b in range(a + 1, m + 1):
                    after = backward[b] + (cut if b < m else 0.0)
                    cell_weights[g, h, a, b] = exp(before + evidence[a, b] + (b - a - 1) * stay + after - forward[m])


@compiled
def predict_cells(counts, weights, strengths, shares, unit, averaged, left_out):
    """Mix the predictions of the cells that hold one bin: P(c | bin), and the same for a row of class k left out of its cell.

    counts : (n_cells, n_classes)     weights : (n_cells,) posterior     strengths : (n_cells,)     unit : weight of a row
    averaged : (n_classes,)     left_out : (n_classes of the row, n_classes)
    """
    n_classes = counts.shape[1]
    averaged[:] = 0.0
    left_out[:] = 0.0
    norm = np.zeros(n_classes)
    for e in range(len(weights)):
        if weights[e] <= 0.0:
            continue
        s, total = strengths[e], counts[e].sum()
        for c in range(n_classes):
            averaged[c] += weights[e] * (counts[e, c] + s * shares[c]) / (total + s)
        for k in range(n_classes):
            taken = min(unit, counts[e, k])
            rest = total - taken + s
            own = (counts[e, k] - taken + s * shares[k]) / rest
            if taken != 1.0:  # the evidence of the cell over its evidence without the row
                n = counts[e, k] + s * shares[k]
                own = exp(lgamma(n) - lgamma(n - taken) + lgamma(rest) - lgamma(rest + taken))
            weight = weights[e] / own
            norm[k] += weight
            for c in range(n_classes):
                held = counts[e, c] - (taken if c == k else 0.0)
                left_out[k, c] += weight * (held + s * shares[c]) / rest
    for k in range(n_classes):
        if norm[k] > 0.0:
            left_out[k] /= norm[k]


@compiled
def interval_predictions(cumulated, shares, strengths, prior_weights, cell_weights, unit, averaged, left_out):
    """`predict_cells` of every bin of a column; averaged (m, n_classes), left_out (m, n_classes, n_classes).

    prior_weights : (n_strengths, n_priors) posterior of the grid
    """
    m, n_classes = len(cumulated) - 1, cumulated.shape[1]
    n_grid = len(strengths)
    for i in range(m):
        n_cells = n_grid * (i + 1) * (m - i)
        counts, weights, mass = np.empty((n_cells, n_classes)), np.empty(n_cells), np.empty(n_cells)
        e = 0
        for g in range(n_grid):
            for a in range(i + 1):
                for b in range(i + 1, m + 1):
                    counts[e] = cumulated[b] - cumulated[a]
                    weights[e] = 0.0
                    for h in range(prior_weights.shape[1]):
                        weights[e] += prior_weights[g, h] * cell_weights[g, h, a, b]
                    mass[e] = strengths[g]
                    e += 1
        predict_cells(counts, weights, mass, shares, unit, averaged[i], left_out[i])


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
    phi, own, reach = np.empty((n_first, n_second)), np.empty((n_first, n_second)), np.empty((n_first, n_second))
    for g in range(len(strengths)):
        for i in range(n_first - 1, -1, -1):
            for j in range(n_second - 1, -1, -1):
                own[i, j] = log_evidence(counts[i, j], strengths[g], shares, gammas[g])
                phi[i, j] = own[i, j]
                ways = (n_children[0][i] > 0) + (n_children[1][j] > 0)
                if ways > 0:
                    phi[i, j] -= log(2.0)
                for side in range(2):
                    node = i if side == 0 else j
                    if n_children[side][node] > 0:
                        parts = _sum_children(phi, i, j, children[side][node], n_children[side][node], side)
                        phi[i, j] = _log_add(phi[i, j], parts - log(2.0 * ways))
        log_z[g] = phi[0, 0]
        reach[:] = 0.0
        reach[0, 0] = 1.0
        for i in range(n_first):
            for j in range(n_second):
                here = reach[i, j]
                ways = (n_children[0][i] > 0) + (n_children[1][j] > 0)
                stop[g, i, j] = here * exp(own[i, j] - log(2.0) - phi[i, j]) if ways > 0 else here
                for side in range(2):
                    node = i if side == 0 else j
                    first, size = children[side][node], n_children[side][node]
                    if size > 0:
                        parts = _sum_children(phi, i, j, first, size, side)
                        share = here * exp(parts - log(2.0 * ways) - phi[i, j])
                        for child in range(first, first + size):
                            if side == 0:
                                reach[child, j] += share
                            else:
                                reach[i, child] += share


@compiled
def rectangle_predictions(counts, observed, paths, shares, strengths, grid, stop, unit, averaged, left_out):
    """`predict_cells` of every pair of bins; paths: two arrays (n_bins, depth) of the nodes above a bin, -1 fills up.

    observed : (n_first_bins, n_second_bins), cells that are wanted; the others are left as they are
    averaged : (n_first_bins, n_second_bins, n_classes)     left_out : (..., n_classes, n_classes)
    """
    n_classes = counts.shape[2]
    n_cells = len(strengths) * paths[0].shape[1] * paths[1].shape[1]
    held, weights, mass = np.empty((n_cells, n_classes)), np.empty(n_cells), np.empty(n_cells)
    for x in range(len(paths[0])):
        for y in range(len(paths[1])):
            if not observed[x, y]:
                continue
            e = 0
            for i in paths[0][x]:
                for j in paths[1][y]:
                    if i < 0 or j < 0:
                        continue
                    for g in range(len(strengths)):
                        held[e] = counts[i, j]
                        weights[e] = grid[g] * stop[g, i, j]
                        mass[e] = strengths[g]
                        e += 1
            predict_cells(held[:e], weights[:e], mass[:e], shares, unit, averaged[x, y], left_out[x, y])
