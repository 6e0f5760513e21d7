"""Sums over rooted forests by walking through every choice of parents, in exact rational or log arithmetic."""

from functools import cache
from itertools import product
from math import exp, inf, log

import numpy as np


@cache
def forests(n):
    """All acyclic choices of at most one parent for each of `n` nodes; -1 is the root."""
    return [p for p in product(range(-1, n), repeat=n) if _acyclic(p)]


def _acyclic(parents):
    for start in range(len(parents)):
        node, steps = start, 0
        while node >= 0:
            node, steps = parents[node], steps + 1
            if steps > len(parents):
                return False
    return True


def log_forest_sum(log_arcs, log_roots):
    """(log sum, arc posteriors (child, parent), root posteriors) by enumeration."""
    n = len(log_roots)
    logs = [sum(log_roots[i] if p < 0 else log_arcs[i][p] for i, p in enumerate(f)) for f in forests(n)]
    peak = max(logs)
    if peak == -inf:
        return -inf, None, None
    weights = [exp(value - peak) for value in logs]
    total = sum(weights)
    arcs, roots = np.zeros((n, n)), np.zeros(n)
    for weight, forest in zip(weights, forests(n)):
        for child, parent in enumerate(forest):
            if parent < 0:
                roots[child] += weight / total
            else:
                arcs[child, parent] += weight / total
    return peak + log(total), arcs, roots


def class_joint(X, y, cardinalities, n_classes, alpha, log_arc_prior, class_arc_prior, query, class_alpha=None):
    """p(class, query | data) by enumeration of all forest-augmented naive Bayes structures.

    X, y : complete training rows. class_arc_prior None: the class is a parent of every column; a number: each column has it
    with that probability. query may hold None (missing), summed over its completions. alpha : function (q, r) -> pseudo-count
    of a cell of a column's table with q parent configurations and r states; class_alpha : of the class, default alpha(1, n_classes)
    Returns (joint (n_classes,), arc posteriors (child, parent), class arc posteriors, log evidence of all structures).
    """
    n = len(cardinalities)
    choices = [1] if class_arc_prior is None else [0, 1]

    @cache
    def family(i, parent, with_class):
        q = (n_classes if with_class else 1) * (cardinalities[parent] if parent >= 0 else 1)
        a = alpha(q, cardinalities[i])
        seen, score = {}, 0.0
        for row, c in zip(X, y):
            key = (c if with_class else -1, row[parent] if parent >= 0 else -1)
            counts = seen.setdefault(key, [0] * cardinalities[i])
            score += log((counts[row[i]] + a) / (sum(counts) + a * cardinalities[i]))
            counts[row[i]] += 1
        return score, seen, a

    def probability(i, parent, with_class, c, row):
        _, seen, a = family(i, parent, with_class)
        counts = seen.get((c if with_class else -1, row[parent] if parent >= 0 else -1), [0] * cardinalities[i])
        return (counts[row[i]] + a) / (sum(counts) + a * cardinalities[i])

    a_class = alpha(1, n_classes) if class_alpha is None else class_alpha
    log_class = 0.0
    counts = [0] * n_classes
    for c in y:
        log_class += log((counts[c] + a_class) / (sum(counts) + a_class * n_classes))
        counts[c] += 1
    prior = [(counts[c] + a_class) / (sum(counts) + a_class * n_classes) for c in range(n_classes)]
    completions = [
        [cell if cell is not None else v for cell, v in zip(query, values)]
        for values in product(*[range(r) if q is None else [q] for q, r in zip(query, cardinalities)])
    ]
    logs, joints, kept = [], [], []
    for forest in forests(n):
        for flags in product(choices, repeat=n):
            value = log_class
            for i, (parent, with_class) in enumerate(zip(forest, flags)):
                value += family(i, parent, with_class)[0] + (log_arc_prior if parent >= 0 else 0.0)
                if class_arc_prior is not None:
                    value += log(class_arc_prior if with_class else 1 - class_arc_prior)
            joint = [
                prior[c]
                * sum(
                    float(np.prod([probability(i, p, w, c, row) for i, (p, w) in enumerate(zip(forest, flags))]))
                    for row in completions
                )
                for c in range(n_classes)
            ]
            logs.append(value)
            joints.append(joint)
            kept.append((forest, flags))
    peak = max(logs)
    weights = np.exp(np.array(logs) - peak)
    log_evidence = peak + log(weights.sum())
    weights /= weights.sum()
    arcs, class_arcs = np.zeros((n, n)), np.zeros(n)
    for weight, (forest, flags) in zip(weights, kept):
        for i in range(n):
            class_arcs[i] += weight * flags[i]
            if forest[i] >= 0:
                arcs[i, forest[i]] += weight
    return weights @ np.array(joints), arcs, class_arcs, log_evidence
