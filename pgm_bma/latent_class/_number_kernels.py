"""Compiled steps for numeric columns: Gaussian given the cluster, with a Normal-inverse-gamma prior on the standardised column.

A numeric column has three lines where a column of states has one line per state. In counts they hold, per cluster, the weight
of the rows that have a value, the sum of the values and the sum of their squares; in tables the means of those, (1, E x, E x^2),
which mix and add up as probabilities do; in factors the logarithm of a density, c0 + c1 x + c2 x^2. So a row adds (1, x, x^2)
times the factors to its log joint, and the bound loses counts times factors, as with states. The lines stand behind those of all
states.
"""

from math import log, pi
from typing import NamedTuple

from pgm_bma.foundation.numbers._special_kernels import digamma, larger, log_gamma
from pgm_bma.foundation.runtime.compiling import compiled

LINES = 3


class NormalPrior(NamedTuple):
    """Normal-inverse-gamma prior of a column with mean 0 and standard deviation 1.

    mean : centre of the means; 0 is the centre of the column
    strength : rows that the centre counts for; a tenth of a row lets the means of clusters go as far as the column does
    shape, scale : of the inverse gamma of the variance; 2 is the smallest whole shape with a finite mean of the variance, which is
        scale / (shape - 1) = 1, the variance of the column; a cluster of one row keeps a variance
    """

    mean: float = 0.0
    strength: float = 0.1
    shape: float = 2.0
    scale: float = 1.0


@compiled
def normal_posterior(prior, n, s1, s2):
    """(mean, strength, shape, scale) after rows with these sums."""
    strength = prior.strength + n
    mean = (prior.strength * prior.mean + s1) / strength
    spread = s2 + prior.strength * prior.mean * prior.mean - strength * mean * mean
    return mean, strength, prior.shape + 0.5 * n, prior.scale + 0.5 * larger(spread, 0.0)


@compiled
def log_evidence(prior, n, s1, s2):
    """Log marginal likelihood of standardised values with these sums."""
    _, strength, shape, scale = normal_posterior(prior, n, s1, s2)
    gammas = log_gamma(shape) - log_gamma(prior.shape) + prior.shape * log(prior.scale) - shape * log(scale)
    return gammas + 0.5 * (log(prior.strength) - log(strength)) - 0.5 * n * log(2.0 * pi)


@compiled
def number_scores(prior, log_scale, lines, log_dependent):
    """Log marginal likelihood of every numeric column given the cluster, in the units of the table.

    lines : (3 n_numbers, n_clusters)
    """
    for i in range(len(log_scale)):
        score = 0.0
        for k in range(lines.shape[1]):
            n, s1, s2 = lines[3 * i, k], lines[3 * i + 1, k], lines[3 * i + 2, k]
            score += log_evidence(prior, n, s1, s2) - n * log_scale[i]
        log_dependent[i] = score


@compiled
def moments(prior, n, s1, s2, is_mode):
    """(E x, E x^2) of the next value; or of the density at the posterior mode, in mean and log variance, which EM climbs to."""
    mean, strength, shape, scale = normal_posterior(prior, n, s1, s2)
    if is_mode:
        variance = scale / (shape + 0.5)
    else:
        variance = scale / (shape - 1.0) * (1.0 + 1.0 / strength)
    return mean, mean * mean + variance


@compiled
def average_numbers(prior, lines, arcs, means_alone, is_averaged, theta):
    """`_average` for the lines of numeric columns; returns the largest change."""
    change = 0.0
    for i in range(len(theta) // 3):
        arc = arcs[i] if is_averaged else 1.0
        for k in range(theta.shape[1]):
            first, second = moments(prior, lines[3 * i, k], lines[3 * i + 1, k], lines[3 * i + 2, k], not is_averaged)
            if is_averaged:
                first = arc * first + (1.0 - arc) * means_alone[3 * i + 1]
                second = arc * second + (1.0 - arc) * means_alone[3 * i + 2]
            change = larger(change, larger(abs(first - theta[3 * i + 1, k]), abs(second - theta[3 * i + 2, k])))
            theta[3 * i, k], theta[3 * i + 1, k], theta[3 * i + 2, k] = 1.0, first, second
    return change


@compiled
def expected_log_lines(prior, lines, arcs, factors):
    """P(arc) x E log density as factors."""
    for i in range(len(factors) // 3):
        for k in range(factors.shape[1]):
            mean, strength, shape, scale = normal_posterior(
                prior, lines[3 * i, k], lines[3 * i + 1, k], lines[3 * i + 2, k]
            )
            precision = shape / scale
            constant = digamma(shape) - log(scale) - log(2.0 * pi) - precision * mean * mean - 1.0 / strength
            factors[3 * i, k] = arcs[i] * 0.5 * constant
            factors[3 * i + 1, k] = arcs[i] * precision * mean
            factors[3 * i + 2, k] = -0.5 * arcs[i] * precision


@compiled
def log_density_lines(log_scale, theta, factors):
    """Tables as factors: the log density of the Gaussians that they describe, in the units of the table."""
    for i in range(len(log_scale)):
        for k in range(theta.shape[1]):
            mean = theta[3 * i + 1, k]
            variance = theta[3 * i + 2, k] - mean * mean
            factors[3 * i, k] = -0.5 * (log(2.0 * pi * variance) + mean * mean / variance) - log_scale[i]
            factors[3 * i + 1, k] = mean / variance
            factors[3 * i + 2, k] = -0.5 / variance


@compiled
def log_prior_density(prior, theta):
    """Log prior density of the means and log variances that tables describe, up to a constant: EM climbs it with the likelihood."""
    total = 0.0
    for i in range(len(theta) // 3):
        for k in range(theta.shape[1]):
            mean = theta[3 * i + 1, k]
            variance = theta[3 * i + 2, k] - mean * mean
            away = mean - prior.mean
            total -= (prior.shape + 0.5) * log(variance)
            total -= (prior.scale + 0.5 * prior.strength * away * away) / variance
    return total


@compiled
def keep_proper(lines, last):
    """Raise extrapolated sums of squares where a variance would fall below a tenth of the last one."""
    for i in range(len(lines) // 3):
        for k in range(lines.shape[1]):
            n, s1, least = lines[3 * i, k], lines[3 * i + 1, k], 0.0
            if last[3 * i, k] > 0.0:
                least = 0.1 * (last[3 * i + 2, k] - last[3 * i + 1, k] * last[3 * i + 1, k] / last[3 * i, k])
            if n > 0.0:
                least += s1 * s1 / n
            lines[3 * i + 2, k] = larger(lines[3 * i + 2, k], least)


@compiled
def add_log_densities(values, start, size, factors, logs):
    """Add the factors of numeric cells to logs (n_rows, n_clusters); a missing cell (NaN) adds nothing.

    values : (n_numbers, n_rows)
    """
    for i in range(len(values)):
        column = values[i]
        for k in range(factors.shape[1]):
            c0, c1, c2 = factors[3 * i, k], factors[3 * i + 1, k], factors[3 * i + 2, k]
            for row in range(size):
                x = column[start + row]
                added = c0 + x * (c1 + x * c2)
                logs[row, k] += added if x == x else 0.0


@compiled(fastmath={"reassoc", "contract"})  # measured: sums of several rows at a time
def add_sums(values, start, size, p, lines):
    """Add weight, value and square of numeric cells, shared out by p (n_rows, n_clusters), to lines."""
    for i in range(len(values)):
        column = values[i]
        for k in range(lines.shape[1]):
            n, s1, s2 = 0.0, 0.0, 0.0
            for row in range(size):
                x = column[start + row]
                share, known = (p[row, k], x) if x == x else (0.0, 0.0)
                n += share
                s1 += share * known
                s2 += share * known * known
            lines[3 * i, k] += n
            lines[3 * i + 1, k] += s1
            lines[3 * i + 2, k] += s2
