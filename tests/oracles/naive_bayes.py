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


def column_over_partitions(bins, y, n_bins, n_classes, alphas, arc_prior, cut_priors):
    """log p(bins | y), P(no cut), P(cut) of each boundary, p(bin | class) (n_classes, n_bins); all partitions are written down.

    A row's interval is drawn given its class, then its bin inside the interval whatever the class; both from the counts so far.
    """
    weights, hypotheses = [], []
    for flags in product([False, True], repeat=n_bins - 1):
        interval = np.concatenate([[0], np.cumsum(flags)]).astype(int)
        log_p = _log_p_partition(bins, y, interval, n_classes, alphas)
        if not any(flags):
            weights.append(log(1 - arc_prior) + log_p)
            hypotheses.append((flags, interval))
            continue
        for rho in cut_priors:
            n = sum(flags)
            prior = rho**n * (1 - rho) ** (n_bins - 1 - n) / (1 - (1 - rho) ** (n_bins - 1))
            weights.append(log(arc_prior * prior / len(cut_priors)) + log_p)
            hypotheses.append((flags, interval))
    log_evidence = np.logaddexp.reduce(weights)
    posterior = np.exp(np.array(weights) - log_evidence)
    tables = np.zeros((n_classes, n_bins))
    for p, (_, interval) in zip(posterior, hypotheses):
        before = _log_p_partition(bins, y, interval, n_classes, alphas)
        for c, i in product(range(n_classes), range(n_bins)):
            tables[c, i] += p * np.exp(_log_p_partition([*bins, i], [*y, c], interval, n_classes, alphas) - before)
    cuts = posterior @ np.array([flags for flags, _ in hypotheses], dtype=float)
    return log_evidence, posterior[0], cuts, tables


def _log_p_partition(bins, y, interval, n_classes, alphas):
    """Row by row: alphas are the pseudo-counts of a bin with the class and without."""
    size = np.bincount(interval)
    by_class = np.tile(alphas[0] * size.astype(float), (n_classes, 1))
    by_bin, inside = np.full(len(interval), float(alphas[1])), alphas[1] * size.astype(float)
    total = 0.0
    for i, c in zip(bins, y):
        b = interval[i]
        total += log(by_class[c, b] / by_class[c].sum()) + log(by_bin[i] / inside[b])
        by_class[c, b] += 1
        by_bin[i] += 1
        inside[b] += 1
    return total
