"""Three-step estimation the slow way: plain loops over rows and clusters, nothing from the package."""

import math


def error_matrix(responsibilities, weights):
    """(labels, P(given s | cluster c), sizes)."""
    k = len(responsibilities[0])
    labels = [max(range(k), key=lambda c: (row[c], -c)) for row in responsibilities]
    mass = [sum(w * row[c] for w, row in zip(weights, responsibilities)) for c in range(k)]
    error = [[0.0] * k for _ in range(k)]
    for w, row, s in zip(weights, responsibilities, labels):
        for c in range(k):
            error[c][s] += w * row[c] / mass[c]
    return labels, error, [m / sum(weights) for m in mass]


def membership_log_likelihood(beta, design, labels, error, weights):
    """beta : one list of terms per cluster but the first."""
    total = 0.0
    for z, s, w in zip(design, labels, weights):
        odds = [1.0, *(math.exp(sum(b * x for b, x in zip(line, z))) for line in beta)]
        total += w * math.log(sum(o / sum(odds) * error[c][s] for c, o in enumerate(odds)))
    return total


def normal_log_likelihood(means, variances, values, labels, error, sizes, weights):
    total = 0.0
    for y, s, w in zip(values, labels, weights):
        density = [math.exp(-((y - m) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v) for m, v in zip(means, variances)]
        total += w * math.log(sum(p * d * error[c][s] for c, (p, d) in enumerate(zip(sizes, density))))
    return total


def state_log_likelihood(tables, codes, labels, error, sizes, weights):
    total = 0.0
    for y, s, w in zip(codes, labels, weights):
        total += w * math.log(sum(p * tables[c][y] * error[c][s] for c, p in enumerate(sizes)))
    return total
