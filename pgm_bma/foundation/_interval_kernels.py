"""Compiled sum over all partitions of the bins of a column into intervals, forward and backward."""

from math import exp, log

import numpy as np

from pgm_bma.foundation.compiling import compiled


@compiled
def _log_add(a, b):
    top = max(a, b)
    if top == -np.inf:
        return top
    return top + log(exp(a - top) + exp(b - top))


@compiled
def sum_partitions(evidence, cut_prior, cell_weights, cuts):
    """ln of the exact sum over all 2^(m - 1) interval partitions of m bins, each boundary cut with prior probability `cut_prior`.

    evidence : (m, m + 1), ln of the evidence of the interval [a, b)
    cell_weights : (m, m + 1), filled with the posterior of the interval [a, b)
    cuts : (m,), filled with the posterior of a cut before bin i (0 has none)
    """
    m = len(evidence)
    forward, backward = np.empty(m + 1), np.empty(m + 1)
    cut, stay = log(cut_prior), log(1.0 - cut_prior)
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
    for a in range(m):
        before = forward[a] + (cut if a > 0 else 0.0)
        cuts[a] = exp(before + backward[a] - forward[m]) if a > 0 else 0.0
        for b in range(a + 1, m + 1):
            after = backward[b] + (cut if b < m else 0.0)
            cell_weights[a, b] = exp(before + evidence[a, b] + (b - a - 1) * stay + after - forward[m])
    return forward[m]
