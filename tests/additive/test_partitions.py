"""Averages over discretisations against enumerations of every partition, and rows left out against new sums."""

from math import log

import numpy as np
import pytest
from scipy.stats import multivariate_t
from scipy.stats import t as student_t

from pgm_bma.additive import averages
from pgm_bma.foundation.tables.cut_points import bin_values, elementary_edges
from tests.oracles import numeric as oracle

STRENGTHS, CUT_PRIORS = (1.0, 10.0), (0.05, 0.3)
EXACT = 1e-12  # sums of at most 4,000 positive terms


def random_counts(shape, n_classes, seed):
    counts = np.random.default_rng(seed).integers(0, 4, (*shape, n_classes)).astype(float)
    shares = np.random.default_rng(seed).dirichlet(np.ones(n_classes))
    return counts, shares


@pytest.mark.parametrize("m, n_classes", [(1, 2), (2, 3), (6, 3), (10, 2)])
def test_the_sum_over_interval_partitions(m, n_classes):
    counts, shares = random_counts((m,), n_classes, m)
    found = averages.average_intervals(counts, shares, 1.0, STRENGTHS, CUT_PRIORS)
    weighted, flags = oracle.weigh_intervals(counts.tolist(), shares, STRENGTHS, CUT_PRIORS)
    for i in range(m):
        expected, log_z = oracle.mixture(weighted, i, shares)
        np.testing.assert_allclose(found.probability[i], expected, atol=EXACT)
    assert abs(found.log_evidence - (log_z - log(4))) < 1e-11
    weight = np.exp([w - log_z for w, _, _ in weighted])
    posterior = [sum(w for w, f in zip(weight, flags) if f[i]) for i in range(m - 1)]
    np.testing.assert_allclose(found.cut_posterior, posterior, atol=EXACT)


@pytest.mark.parametrize("m, n_classes, unit", [(5, 2, 1.0), (7, 3, 1.0), (4, 2, 0.5)])
def test_a_row_left_out_of_intervals_is_a_new_sum(m, n_classes, unit):
    counts, shares = random_counts((m,), n_classes, 20 + m)
    found = averages.average_intervals(counts, shares, unit, STRENGTHS, CUT_PRIORS)
    for i in range(m):
        for k in np.flatnonzero(counts[i]):
            less = counts.copy()
            less[i, k] -= unit
            expected = oracle.mixture(
                oracle.weigh_intervals(less.tolist(), shares, STRENGTHS, CUT_PRIORS)[0], i, shares
            )[0]
            np.testing.assert_allclose(found.left_out[i, k], expected, atol=EXACT)


@pytest.mark.parametrize("m, n_classes", [(2, 2), (5, 3)])
def test_categories_stay_together_or_apart(m, n_classes):
    counts, shares = random_counts((m,), n_classes, 40 + m)
    found = averages.average_categories(counts, shares, 1.0, STRENGTHS)

    def weigh(counts):
        weighted = []
        for s in STRENGTHS:
            total = counts.sum(axis=0).tolist()
            weighted.append((oracle.dirichlet_multinomial(total, s, shares), s, [(lambda i: True, total)]))
            apart = [(lambda i, j=j: i == j, row.tolist()) for j, row in enumerate(counts)]
            weighted.append((sum(oracle.dirichlet_multinomial(n, s, shares) for _, n in apart), s, apart))
        return weighted

    for i in range(m):
        np.testing.assert_allclose(found.probability[i], oracle.mixture(weigh(counts), i, shares)[0], atol=EXACT)
        for k in np.flatnonzero(counts[i]):
            less = counts.copy()
            less[i, k] -= 1
            np.testing.assert_allclose(found.left_out[i, k], oracle.mixture(weigh(less), i, shares)[0], atol=EXACT)


@pytest.mark.parametrize(
    "shape, n_classes, halves",
    [
        ((2, 2), 2, (True, True)),
        ((4, 2), 3, (True, True)),
        ((4, 3), 2, (True, True)),
        ((3, 4), 2, (False, True)),
        ((3, 3), 3, (False, False)),
        ((1, 4), 2, (False, True)),
    ],
)
def test_the_sum_over_partitions_of_a_rectangle(shape, n_classes, halves):
    counts, shares = random_counts(shape, n_classes, 60 + sum(shape))
    found = averages.average_rectangles(counts, shares, 1.0, STRENGTHS, halves)
    weighted = oracle.weigh_rectangles(counts.tolist(), shares, STRENGTHS, halves)
    for i in range(shape[0]):
        for j in range(shape[1]):
            expected, log_z = oracle.mixture(weighted, (i, j), shares)
            np.testing.assert_allclose(found.probability[i, j], expected, atol=EXACT)
    assert abs(found.log_evidence - (log_z - log(2))) < 1e-11
    i, j, k = np.argwhere(counts > 0)[0]
    less = counts.copy()
    less[i, j, k] -= 1
    expected = oracle.mixture(oracle.weigh_rectangles(less.tolist(), shares, STRENGTHS, halves), (i, j), shares)[0]
    np.testing.assert_allclose(found.left_out[i, j, k], expected, atol=EXACT)


def test_bins_do_not_change_under_a_rising_transformation():
    values = np.random.default_rng(0).normal(size=500)
    values[7] = np.nan
    edges, other = elementary_edges(values), elementary_edges(np.exp(values) + 3)
    bins = bin_values(values, edges)
    assert len(edges) == 31 and bins[7] == -1
    np.testing.assert_array_equal(bin_values(np.exp(values) + 3, other), bins)
    new = np.linspace(-4, 4, 77)  # values that fit did not see
    np.testing.assert_array_equal(bin_values(new, edges), bin_values(np.exp(new) + 3, other))
    sizes = np.bincount(bins[bins >= 0], minlength=32)
    assert sizes.min() >= 14 and sizes.max() <= 17  # 499 / 32 is 15.6
    np.testing.assert_array_equal(elementary_edges(np.array([2.0, 1.0, 1.0, 5.0])), [2.0, 5.0])


def test_a_clear_boundary_is_found_and_noise_is_not_cut():
    rng = np.random.default_rng(0)
    x, y = rng.random(400), rng.integers(0, 2, 400)
    edges = elementary_edges(x)
    bins = bin_values(x, edges)
    clear = (x > 0.5).astype(int)
    table = np.zeros((2, 32, 2))
    np.add.at(table, (0, bins, clear), 1)
    np.add.at(table, (1, bins, y), 1)
    found = averages.average_intervals(table[0], [0.5, 0.5]).cut_posterior
    at = np.argsort(found)[-2:]
    assert found[at].max() > 0.9 and np.abs(edges[at] - 0.5).max() < 0.06
    assert averages.average_intervals(table[1], [0.5, 0.5]).cut_posterior.max() < 0.2


def test_gaussian_terms_are_student_densities_and_leave_rows_out():
    """Against scipy's multivariate t; the pooled covariance and the scores stay those of all rows."""
    rng = np.random.default_rng(0)
    values, target = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)), rng.integers(0, 2, 40)
    terms = averages.fit_gaussian(values, target, 2, np.ones(40))
    z = averages.normal_scores(values, terms.knots)
    found, left_out = averages.gaussian_terms(terms, values), averages.gaussian_terms(terms, values, target)

    def literal(rows, x, nu):
        rows = np.vstack([rows, np.zeros(3)])  # the prior of the mean
        n, m = len(rows), rows.mean(axis=0)
        psi = (nu - 4) * terms.pooled + (rows - m).T @ (rows - m)
        freedom = nu + n - 1 - 3 + 1
        scale = psi * (n + 1) / (n * freedom)
        joint = multivariate_t(m, scale, freedom).logpdf(x)
        return joint - sum(student_t.logpdf(x[j], freedom, m[j], np.sqrt(scale[j, j])) for j in range(3))

    for row in (0, 5, 11):
        for c in (0, 1):
            for g, nu in enumerate((6.0, 24.0)):  # with nu = 1e6 the differences are below what scipy resolves
                inside = target == c
                assert abs(found[row, c, g] - literal(z[inside], z[row], nu)) < 1e-8
                inside[row] = False
                assert abs(left_out[row, c, g] - literal(z[inside], z[row], nu)) < 1e-8
    twisted = averages.fit_gaussian(np.exp(values), target, 2, np.ones(40))
    np.testing.assert_allclose(averages.gaussian_terms(twisted, np.exp(values)), found, atol=1e-12)
    gap = values[:2].copy()
    gap[0, 1] = np.nan
    assert not averages.gaussian_terms(terms, gap)[0].any() and averages.gaussian_terms(terms, gap)[1].any()
    # a row with a missing value is in no scatter: leaving it out of one would make that negative
    line = np.linspace(-1.0, 1.0, 40)
    apart = np.column_stack([line, line + 0.01 * rng.normal(size=40), line + 0.01 * rng.normal(size=40)])
    classes = np.where(np.arange(40) < 3, 2, np.arange(40) % 2)
    apart[:3] = [[-1, 1, 0], [-1, 1, np.nan], [np.nan, 1, 0]]
    with np.errstate(all="raise"):
        terms = averages.fit_gaussian(apart, classes, 3, np.ones(40))
        assert not averages.gaussian_terms(terms, apart, classes)[1:3].any()
    assert averages.fit_gaussian(values[:, :1], target, 2, np.ones(40)) is None
