"""Scalar special functions for compiled loops: log Gamma, digamma, logistic and log-add, to about 1e-14.

Compiled code reaches the C library's log Gamma one slow call at a time; these are shifted upwards by products and closed by
Stirling's series, one logarithm or two each. Arguments are positive (expected counts plus a prior). And what numba compiles slowly
from numpy or Python, as plain loops.
"""

from math import exp, inf, log, log1p

from pgm_bma.foundation.runtime.compiling import compiled


@compiled
def stirling(x):
    """log Gamma(x), x >= 10; the first term left out is below 2e-14."""
    y = 1.0 / x
    z = y * y
    series = y * (1 / 12 - z * (1 / 360 - z * (1 / 1260 - z * (1 / 1680 - z / 1188))))
    return (x - 0.5) * log(x) - x + 0.9189385332046727 + series


@compiled
def log_gamma(x):
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    return stirling(x) - log(product)


@compiled
def digamma(x):
    """psi(x), x > 0: shifted upwards to x >= 10, the reciprocals gathered over one denominator."""
    numerator, denominator = 0.0, 1.0
    while x < 10.0:
        numerator = numerator * x + denominator
        denominator *= x
        x += 1.0
    y = 1.0 / x
    z = y * y
    series = z * (1 / 12 - z * (1 / 120 - z * (1 / 252 - z * (1 / 240 - z / 132))))
    return log(x) - 0.5 * y - series - numerator / denominator


@compiled
def logistic(x):
    if x >= 0.0:
        return 1.0 / (1.0 + exp(-x))
    e = exp(x)
    return e / (1.0 + e)


@compiled
def log_add(a, b):
    high, low = larger(a, b), smaller(a, b)
    return high if low == -inf else high + log1p(exp(low - high))


@compiled
def copy_into(source, target):
    """``target[:] = source`` for matrices. A loop: numba would compile the error messages of that line, five seconds of them."""
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]


@compiled
def largest(values):
    """``values.max()`` of a vector; a loop compiles in a tenth of the time."""
    top = values[0]
    for i in range(1, len(values)):
        top = larger(top, values[i])
    return top


@compiled
def larger(a, b):
    """``max(a, b)``, without the compiled function that numba makes of it for every pair of types."""
    return b if b > a else a


@compiled
def smaller(a, b):
    """``min(a, b)``"""
    return b if b < a else a
