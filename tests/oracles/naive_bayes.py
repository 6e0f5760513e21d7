"""Slow truths about Dirichlet families and selective naive Bayes: products over rows, sums over all structures."""

from itertools import product
from math import lgamma, log

import numpy as np


def prequential_log_probability(values, parent_states, n_states, alpha):
    """Log probability of a column row by row: each value from the counts seen so far under the same parent state."""
    seen, total = {}, 0.0
    for value, parent in zip(values, parent_states):
        counts = seen.setdefault(parent, [0.0] * n_states)
        total += log((counts[value] + alpha) / (sum(counts) + n_states * alpha))
        counts[value] += 1
    return total


def selective_naive_bayes(X, y, cardinalities, n_classes, alphas, arc_prior, query):
    """Joint p(class, query row) and arc posteriors by enumeration of all 2^n structures.

    alphas : (class, dependent (n,), independent (n,)); X rows as lists with None for missing; returns (joint, arcs, log p(D))
    """
    n_columns = len(cardinalities)
    alpha_class, alpha_dependent, alpha_independent = alphas
    log_weights, joints, structures = [], [], list(product([0, 1], repeat=n_columns))
    for arcs in structures:
        log_weight = prequential_log_probability(y, [0] * len(y), n_classes, alpha_class)
        joint = np.array(
            [(sum(v == c for v in y) + alpha_class) / (len(y) + n_classes * alpha_class) for c in range(n_classes)]
        )
        for i, dependent in enumerate(arcs):
            rows = [(row[i], c) for row, c in zip(X, y) if row[i] is not None]
            alpha = alpha_dependent[i] if dependent else alpha_independent[i]
            parents = [c if dependent else 0 for _, c in rows]
            log_weight += prequential_log_probability([v for v, _ in rows], parents, cardinalities[i], alpha)
            log_weight += log(arc_prior[i] if dependent else 1 - arc_prior[i])
            if query[i] is not None:
                for c in range(n_classes):
                    group = [v for v, p in zip([v for v, _ in rows], parents) if p == (c if dependent else 0)]
                    hits = sum(v == query[i] for v in group)
                    joint[c] *= (hits + alpha) / (len(group) + cardinalities[i] * alpha)
        log_weights.append(log_weight)
        joints.append(joint)
    peak = max(log_weights)
    weights = np.exp(np.array(log_weights) - peak)
    log_evidence = peak + log(weights.sum())
    weights /= weights.sum()
    arcs = np.array([sum(w for w, s in zip(weights, structures) if s[i]) for i in range(n_columns)])
    return weights @ np.array(joints), arcs, log_evidence


def log_dirichlet_multinomial(counts, alpha):
    """The same probability in closed form with the standard library's lgamma, for fractional counts."""
    total = 0.0
    for row, prior in zip(counts, alpha):
        total += lgamma(sum(prior)) - lgamma(sum(prior) + sum(row))
        total += sum(lgamma(a + n) - lgamma(a) for a, n in zip(prior, row))
    return total
