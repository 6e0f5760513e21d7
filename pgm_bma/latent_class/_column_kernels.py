"""Compiled steps for columns that are more than states: numbers, and states with an order.

A numeric column is Gaussian given the cluster, with a Normal-inverse-gamma prior on the standardised column. It has three lines
where a column of states has one line per state. In counts they hold, per cluster, the weight of the rows that have a value, the
sum of the values and the sum of their squares; in tables the means of those, (1, E x, E x^2), which mix and add up as
probabilities do; in factors the logarithm of a density, c0 + c1 x + c2 x^2. So a row adds (1, x, x^2) times the factors to its log
joint, and the bound loses counts times factors, as with states. The lines stand behind those of all states.

An ordered column is averaged over all ways to merge neighbouring levels into runs. A cluster has a probability of every run; inside
a run all clusters share the proportions of its levels. All levels in one run is the column without its arc, every level its own run
is the table without an order. Given the arc, that table has prior 1/2, and the ways between have the other half in equal parts. The
evidence is a product over the runs, so that the sum over all 2^(r-1) ways takes r^2 / 2 runs, forwards and backwards as in a chain.
"""

from math import exp, inf, log, pi
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers._kernels import digamma, larger, log_add, log_gamma
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


# ------------------------------------------------------------------------------------------------ ordered columns


class Merges(NamedTuple):
    """Runs of levels of the ordered columns, those of a column in a square [first, last] level."""

    which: np.ndarray  # (n_columns,) number of an ordered column, -1 for the others
    start: np.ndarray  # (n_ordered + 1,) first cell of its square
    log_weight: np.ndarray  # of a run: log probability of the levels of its rows given that they are in the run
    log_prior: (
        np.ndarray
    )  # (n_ordered,) of every way to merge that leaves two runs or more, but for levels that stay apart
    log_apart: (
        np.ndarray
    )  # (n_ordered,) log of what levels that all stay apart have more than that, as a multiple of it
    chosen: np.ndarray  # space: posterior of every run given the arc, which `merge_scores` fills


@compiled
def merge_scores(merges, i, a, counts):
    """Log marginal likelihood of an ordered column given the cluster, at expected counts (n_levels, n_clusters).

    Fills `chosen` with the posterior of its runs, for the next two functions.
    """
    o, (n_levels, n_clusters) = merges.which[i], counts.shape
    runs, log_weight = merges.chosen[merges.start[o] :], merges.log_weight[merges.start[o] :]
    whole = 0.0
    for first in range(n_levels):
        for last in range(first, n_levels):
            run = first * n_levels + last
            runs[run] = log_weight[run] - n_clusters * log_gamma((last - first + 1) * a)
        for k in range(n_clusters):
            n = 0.0
            for last in range(first, n_levels):
                n += counts[last, k]
                runs[first * n_levels + last] += log_gamma(n + (last - first + 1) * a)
            if first == 0:
                whole += log_gamma(n_levels * a) - log_gamma(n + n_levels * a)
    runs[n_levels - 1] = -inf  # all levels: the column without its arc
    ahead, behind = np.empty(n_levels + 1), np.empty(n_levels + 1)
    ahead[0] = behind[n_levels] = 0.0
    for last in range(n_levels):
        total = -inf
        for first in range(last + 1):
            total = log_add(total, ahead[first] + runs[first * n_levels + last])
        ahead[last + 1] = total
    for first in range(n_levels - 1, -1, -1):
        total = -inf
        for last in range(first, n_levels):
            total = log_add(total, runs[first * n_levels + last] + behind[last + 1])
        behind[first] = total
    apart = merges.log_apart[o]
    for level in range(n_levels):
        apart += runs[level * n_levels + level]
    total = log_add(ahead[n_levels], apart)
    for first in range(n_levels):
        for last in range(first, n_levels):
            run = first * n_levels + last
            runs[run] = exp(ahead[first] + runs[run] + behind[last + 1] - total)
        runs[first * n_levels + first] += exp(apart - total)
    return total + whole + merges.log_prior[o]


@compiled
def average_merged(merges, i, a, counts, arc, alone, theta):
    """`_average` for an ordered column: posterior means, averaged over its runs; returns the largest change.

    alone : (n_levels,) posterior mean without the arc
    """
    n_levels, n_clusters = counts.shape
    runs = merges.chosen[merges.start[merges.which[i]] :]
    lifts, found, change = np.empty(n_levels), np.empty(n_levels), 0.0
    for k in range(n_clusters):
        total = n_levels * a
        for level in range(n_levels):
            total += counts[level, k]
            found[level] = 0.0
        for first in range(n_levels):
            n, share = 0.0, 0.0
            for last in range(first, n_levels):
                n += counts[last, k]
                share += alone[last]
                lifts[last] = runs[first * n_levels + last] * (n + (last - first + 1) * a) / (total * share)
            _add_to_levels(lifts, first, found)
        for level in range(n_levels):
            value = (arc * found[level] + 1.0 - arc) * alone[level]
            change = larger(change, abs(value - theta[level, k]))
            theta[level, k] = value
    return change


@compiled
def expected_log_merged(merges, i, a, counts, arc, log_factors, factors):
    """P(arc) x E log of the probabilities of the runs; the proportions inside a run are the same for all clusters and left out."""
    n_levels, n_clusters = counts.shape
    runs = merges.chosen[merges.start[merges.which[i]] :]
    logs, found = np.empty(n_levels), np.empty(n_levels)
    for k in range(n_clusters):
        total = n_levels * a
        for level in range(n_levels):
            total += counts[level, k]
            found[level] = 0.0
        base = digamma(total)
        for first in range(n_levels):
            n = 0.0
            for last in range(first, n_levels):
                n += counts[last, k]
                logs[last] = runs[first * n_levels + last] * (digamma(n + (last - first + 1) * a) - base)
            _add_to_levels(logs, first, found)
        for level in range(n_levels):
            log_factors[level, k] = arc * found[level]
            factors[level, k] = exp(log_factors[level, k])


@compiled
def _add_to_levels(of_runs, first, found):
    """Add the values of the runs that begin at `first`, by their last level, to all levels that they hold."""
    added = 0.0
    for last in range(len(found) - 1, first - 1, -1):
        added += of_runs[last]
        found[last] += added
