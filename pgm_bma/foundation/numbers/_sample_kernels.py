"""Compiled step of ancestral sampling: the states of one node in all rows."""

from math import exp, log

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled


@compiled
def draw_states(uniform, codes, node, family, cpt, cardinalities, index):
    """Write ``codes[node]``: the number of thresholds of the row's parent state at or below its uniform draw.

    codes : (n_nodes, n_rows)    family : (n_parents,) nodes, first slowest    cpt : (n_parent_states, n_states)
    cardinalities : (n_nodes,)   index : (n_rows,) working space
    returns False, and writes nothing, where a row of the table is no distribution
    """
    thresholds = np.empty((cpt.shape[1] - 1, cpt.shape[0]))
    for row in range(cpt.shape[0]):
        total = 0.0
        for k in range(cpt.shape[1]):
            if not cpt[row, k] >= 0:
                return False
            total += cpt[row, k]
        if not 0 < total < np.inf:
            return False
        # dividing the running sum by its own last entry makes it exactly 1 once the mass is used up: a state of
        # probability 0 is never drawn
        running = 0.0
        for k in range(cpt.shape[1] - 1):
            running += cpt[row, k]
            thresholds[k, row] = running / total
    index[:] = 0
    for j in range(len(family)):
        parent, cardinality = codes[family[j]], cardinalities[family[j]]
        for i in range(len(index)):
            index[i] = index[i] * cardinality + parent[i]
    states = codes[node]
    states[:] = 0
    for k in range(len(thresholds)):
        threshold = thresholds[k]
        for i in range(len(index)):
            states[i] += uniform[i] >= threshold[index[i]]
    return True


@compiled
def _log_sum(values, start, stop):
    """ln of the sum of exp(values[start:stop])."""
    top = -np.inf
    for i in range(start, stop):
        top = max(top, values[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(start, stop):
        total += exp(values[i] - top)
    return top + log(total)


@compiled
def sum_partitions(evidence, cut_prior, cell_weights, cuts):
    """ln of the exact sum over all 2^(m - 1) interval partitions of m bins, each boundary cut with prior probability `cut_prior`.

    evidence : (m, m + 1), ln of the evidence of the interval [a, b)
    cell_weights : (m, m + 1), filled with the posterior of the interval [a, b)
    cuts : (m,), filled with the posterior of a cut before bin i (0 has none)
    """
    m = len(evidence)
    forward, backward, weights = np.empty(m + 1), np.empty(m + 1), np.empty(m + 1)
    cut, stay = log(cut_prior), log(1.0 - cut_prior)
    forward[0], backward[m] = 0.0, 0.0
    for b in range(1, m + 1):
        for a in range(b):
            weights[a] = forward[a] + evidence[a, b] + (b - a - 1) * stay + (cut if a > 0 else 0.0)
        forward[b] = _log_sum(weights, 0, b)
    for a in range(m - 1, -1, -1):
        for b in range(a + 1, m + 1):
            weights[b] = backward[b] + evidence[a, b] + (b - a - 1) * stay + (cut if b < m else 0.0)
        backward[a] = _log_sum(weights, a + 1, m + 1)
    for a in range(m):
        before = forward[a] + (cut if a > 0 else 0.0)
        cuts[a] = exp(before + backward[a] - forward[m]) if a > 0 else 0.0
        for b in range(a + 1, m + 1):
            after = backward[b] + (cut if b < m else 0.0)
            cell_weights[a, b] = exp(before + evidence[a, b] + (b - a - 1) * stay + after - forward[m])
    return forward[m]
