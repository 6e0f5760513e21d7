"""The nearest rising curve by the max-min formula: no pooling, all intervals."""

import numpy as np


def rising(values, weights):
    """argmin of sum of weights (z - values)^2 over z_1 <= z_2 <= ...: z_i = max over a <= i of min over b >= i of mean(a..b)."""
    n = len(values)
    mean = {
        (a, b): np.dot(weights[a : b + 1], values[a : b + 1]) / np.sum(weights[a : b + 1])
        for a in range(n)
        for b in range(a, n)
    }
    return np.array([max(min(mean[a, b] for b in range(i, n)) for a in range(i + 1)) for i in range(n)])
