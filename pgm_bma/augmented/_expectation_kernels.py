"""E log Gamma(N + alpha) of counts N that are sums of independent 0/1 variables, compiled.

A count enters by its power sums p_j = sum of r^j over its rows, r the probability that the row is counted. Where the count is large
or nearly certain, log Gamma is expanded about the mean in the central moments, which power sums give exactly. Elsewhere its
distribution is made: rows with small r together, from their power sums, log E z^N = sum of (-1)^(j+1) p_j (z - 1)^j / j; then every
other row by the recursion of the Poisson-binomial distribution.
"""

from math import comb, exp, factorial

import numpy as np

from pgm_bma.foundation.numbers._kernels import log_gamma
from pgm_bma.foundation.runtime.compiling import compiled

N_POWERS = 10
SMALL = 0.05  # probabilities up to this enter by power sums: what is lost of a row is below 0.05^11
LENGTH = 320  # of a distribution; means are below 120 where one is made, and 1e-17 of such counts lies beyond 250
_ERROR = 1e-8  # of one expanded count
_CERTAIN = 1.0 - 1e-15
_LOST = 1e-18  # probability at an end of a distribution that is dropped
_FIRST = 16.0  # the series of the derivatives is good from here: 1e-10 of the tenth


def _cumulants():
    """[n, j]: coefficient of r^j in the n-th cumulant of a 0/1 variable. The next one is r (1 - r) times the derivative."""
    rows = np.zeros((N_POWERS + 1, N_POWERS + 1))
    rows[1, 1] = 1.0
    for n in range(1, N_POWERS):
        for j in range(1, N_POWERS + 1):
            rows[n + 1, j] = j * rows[n, j] - (j - 1) * rows[n, j - 1]
    return rows


def _derivatives():
    """[n, t]: coefficient of x^-(n - 1 + t) in the n-th derivative of log Gamma(x) / n!, n >= 2 (Stirling's series)."""
    bernoulli = {2: 1 / 6, 4: -1 / 30, 6: 1 / 42, 8: -1 / 30, 10: 5 / 66, 12: -691 / 2730}
    rows = np.zeros((N_POWERS + 1, 13))
    for n in range(2, N_POWERS + 1):
        rows[n, :2] = factorial(n - 2) / factorial(n), factorial(n - 1) / (2 * factorial(n))
        for t, b in bernoulli.items():
            rows[n, t] = b * factorial(t + n - 2) / factorial(t) / factorial(n)
        rows[n] *= (-1) ** n
    return rows


_CUMULANTS, _DERIVATIVES = _cumulants(), _derivatives()
_CHOOSE = np.array([[float(comb(n, j)) for j in range(N_POWERS + 1)] for n in range(N_POWERS + 1)])


@compiled
def expect_cells(cells, weights, shares, likely, powers, alphas, tables, out):
    """Fill out (n_alphas, n_cells) with the expectations of one cluster.

    cells, weights, shares : (n,) of the rows; whole weights     likely : the rows with a share above SMALL
    powers : (N_POWERS, n_cells), overwritten     alphas : (n_alphas,)     tables : (n_alphas, LENGTH), log Gamma(n + alpha)
    """
    n_cells = out.shape[1]
    cumulants, moments = np.empty(N_POWERS + 1), np.empty(N_POWERS + 1)
    smallest = alphas.min()
    place = np.full(n_cells, -1)  # of the distributions that are made
    n_made = 0
    for cell in range(n_cells):
        _cumulate(powers[:, cell], cumulants)
        if not _is_expandable(cumulants[1] + smallest, cumulants[2]):
            place[cell] = n_made
            n_made += 1
            continue
        _centre(cumulants, moments)
        for a in range(len(alphas)):
            out[a, cell] = _expand(cumulants[1] + alphas[a], cumulants[2], moments)
    if n_made == 0:
        return
    space = np.empty((n_made, LENGTH))
    first, last, certain = np.zeros(n_made, np.int64), np.empty(n_made, np.int64), np.zeros(n_made, np.int64)
    for s in likely:
        if place[cells[s]] >= 0:
            power = weights[s]
            for j in range(N_POWERS):
                power *= shares[s]
                powers[j, cells[s]] -= power
    for cell in range(n_cells):
        if place[cell] >= 0:
            last[place[cell]] = _unlikely(powers[:, cell], cumulants, space[place[cell]])
    for s in likely:
        p = place[cells[s]]
        if p < 0:
            continue
        if shares[s] >= _CERTAIN:
            certain[p] += int(weights[s])
            continue
        for _ in range(int(weights[s])):
            first[p], last[p] = _add_row(space[p], first[p], last[p], shares[s])
    for cell in range(n_cells):
        p = place[cell]
        if p < 0:
            continue
        for a in range(len(alphas)):
            total = 0.0
            for n in range(first[p], last[p] + 1):
                count = n + certain[p]
                value = tables[a, count] if count < LENGTH else log_gamma(count + alphas[a])
                total += space[p, n] * value
            out[a, cell] = total


@compiled
def _cumulate(powers, cumulants):
    for n in range(1, N_POWERS + 1):
        cumulants[n] = 0.0
        for j in range(1, n + 1):
            cumulants[n] += _CUMULANTS[n, j] * powers[j - 1]


@compiled
def _is_expandable(x, variance):
    """Return whether the first terms left out, 157 v^5 / x^10 and 79 v^6 / x^11 at most, are small; or the count is certain."""
    if variance < 1e-13:
        return True
    ratio = variance / (x * x)
    return x >= _FIRST and ratio * ratio * ratio * ratio * ratio * (157.0 + 79.0 * variance / x) < _ERROR


@compiled
def _centre(cumulants, moments):
    """Central moments from cumulants."""
    moments[0], moments[1] = 1.0, 0.0
    for n in range(2, N_POWERS + 1):
        moments[n] = 0.0
        for j in range(2, n + 1):
            moments[n] += _CHOOSE[n - 1, j - 1] * cumulants[j] * moments[n - j]


@compiled
def _expand(x, variance, moments):
    total = log_gamma(x)
    if variance < 1e-13:
        return total
    y = 1.0 / x
    lead = 1.0
    for n in range(2, N_POWERS + 1):
        lead *= y
        term = 0.0
        for t in range(_DERIVATIVES.shape[1] - 1, -1, -1):
            term = term * y + _DERIVATIVES[n, t]
        total += lead * term * moments[n]
    return total


@compiled
def _unlikely(powers, factors, distribution):
    """Distribution of the rows with small probabilities; returns its last place. factors : space, (N_POWERS + 1,)"""
    total = 0.0
    for j in range(N_POWERS):
        total -= powers[j] / (j + 1)
    for j in range(1, N_POWERS + 1):  # j times the coefficient of z^j
        factors[j] = 0.0
        for n in range(j, N_POWERS + 1):
            factors[j] += _CHOOSE[n, j] * powers[n - 1] / n
        factors[j] *= j if j % 2 else -j
    distribution[0] = exp(total)
    last = 0
    for n in range(1, LENGTH):
        value = 0.0
        for j in range(1, N_POWERS + 1):
            if j <= n:
                value += factors[j] * distribution[n - j]
        distribution[n] = value / n
        if n > powers[0] and abs(distribution[n]) < _LOST and abs(distribution[n - 1]) < _LOST:
            break
        last = n
    return last


@compiled
def _add_row(distribution, first, last, share):
    """One more row; returns the first and the last place that count."""
    top = distribution[last] * share
    grows = top > _LOST and last + 1 < LENGTH
    if grows:
        distribution[last + 1] = top
    for n in range(last, first, -1):
        distribution[n] += share * (distribution[n - 1] - distribution[n])
    distribution[first] *= 1.0 - share
    last += 1 if grows else 0
    while first < last and abs(distribution[first]) < _LOST:
        first += 1
    return first, last
