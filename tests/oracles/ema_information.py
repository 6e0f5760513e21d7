"""Oracle for standard errors of a latent-class model: second differences of the log posterior, free logits, delta method.

Shares no code with the package. Rows are lists of ints, a missing cell is -1; ``theta[i][j][k]`` is P(X_i = k | C = j).
"""

from math import exp, log

import numpy as np


def log_posterior(logits, rows, weights, cards, n_clusters, alpha):
    theta_c, theta = tables(logits, cards, n_clusters)
    total = alpha * sum(log(p) for p in theta_c) + alpha * sum(log(p) for t in theta for line in t for p in line)
    for row, weight in zip(rows, weights):
        p = 0.0
        for j in range(n_clusters):
            term = theta_c[j]
            for i, value in enumerate(row):
                term *= theta[i][j][value] if value >= 0 else 1.0
            p += term
        total += weight * log(p)
    return total


def tables(logits, cards, n_clusters):
    """Probabilities from free logits: the first state of every table has logit 0."""
    position = 0

    def take(n):
        nonlocal position
        raw = [1.0] + [exp(v) for v in logits[position : position + n - 1]]
        position += n - 1
        return [v / sum(raw) for v in raw]

    return take(n_clusters), [[take(r) for _ in range(n_clusters)] for r in cards]


def standard_errors(rows, weights, theta_c, theta, alpha, step=1e-3):
    """(errors of theta_c, errors[i][j][k]) by the inverse of minus the second differences."""
    cards, k = [len(t[0]) for t in theta], len(theta_c)
    lines = [theta_c] + [line for t in theta for line in t]
    at = np.array([log(p / line[0]) for line in lines for p in line[1:]])

    def value(x):
        return log_posterior(list(x), rows, weights, cards, k, alpha)

    n = len(at)
    hessian = np.empty((n, n))
    for a in range(n):
        for b in range(n):
            ea, eb = np.eye(n)[a] * step, np.eye(n)[b] * step
            hessian[a, b] = (value(at + ea + eb) - value(at + ea - eb) - value(at - ea + eb) + value(at - ea - eb)) / (
                4 * step**2
            )
    covariance = np.linalg.inv(-hessian)

    def flat(x):
        c, t = tables(list(x), cards, k)
        return np.array(c + [p for table in t for line in table for p in line])

    slope = np.array([(flat(at + e) - flat(at - e)) / (2 * step) for e in np.eye(n) * step])  # (n, n_probabilities)
    errors = np.sqrt(np.einsum("ap,ab,bp->p", slope, covariance, slope))
    found, position = [], k
    for r in cards:
        found.append(errors[position : position + k * r].reshape(k, r))
        position += k * r
    return errors[:k], found
