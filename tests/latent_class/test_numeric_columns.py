"""Latent-class models with numeric columns: the loop against literal sums."""

from math import exp, log

import numpy as np
import pytest

from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class._column_kernels import NormalPrior, log_evidence
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings, log_joint
from tests.oracles import mixed as oracle

CONSISTENT = PriorSettings(parameter_prior="consistent")


def mixed_table(seed=0, n=60, missing=0.1, apart=2.5, n_noise=1):
    """(numbers (n, 2 + n_noise), codes (n, 3), cluster): two columns of each kind depend on two clusters, the others are noise."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 2, n)
    numbers = rng.standard_normal((n, 2 + n_noise))
    numbers[:, 0] += apart * cluster
    numbers[:, 1] = (1.0 + 1.5 * cluster) * numbers[:, 1] - cluster
    flips = rng.random((n, 3)) < [0.15, 0.2, 0.5]
    codes = np.where(flips, 1 - cluster[:, None], cluster[:, None])
    codes[:, 1] += (rng.random(n) < 0.3) * (codes[:, 1] == 1)
    numbers[rng.random(numbers.shape) < missing] = np.nan
    codes[rng.random(codes.shape) < missing] = -1
    numbers = (numbers - np.nanmean(numbers, axis=0)) / np.nanstd(numbers, axis=0)
    return numbers, codes, cluster


def as_columns(numbers, codes, cardinalities):
    states = [
        ("states", [None if c < 0 else int(c) for c in column], r) for column, r in zip(codes.T, cardinalities.tolist())
    ]
    return states + [("number", [None if np.isnan(x) else float(x) for x in column]) for column in numbers.T]


def test_evidence_is_the_integral():
    values = [0.3, -1.2, 0.9, 1.4]
    found = log_evidence(NormalPrior(), len(values), sum(values), sum(x * x for x in values))
    assert found == pytest.approx(oracle.log_evidence(*oracle.sums(values, [1.0] * 4)), abs=1e-12)
    assert exp(found) == pytest.approx(oracle.evidence_by_quadrature(values), rel=1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_updates_and_bound_are_the_sum_over_structures(missing):
    numbers, codes, _ = mixed_table(1, n=25, missing=missing)
    cardinalities = np.array([2, 3, 2])
    rows = table_rows(codes, cardinalities, None, numbers)
    start = draw_tables(rows, 2)
    settings = {"averaging": "variational", "priors": CONSISTENT, "n_init": 1, "init": start, "collapse": "ignore"}
    begin = fit_latent_class(rows, 2, max_iter=0, **settings)
    log_p = log_joint(codes, begin.theta_c, begin.theta, begin.state_start, numbers, begin.log_scale)
    R = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1)[:, None]).tolist()
    columns = as_columns(numbers, codes, cardinalities)
    arcs, _ = oracle.structure_sum(columns, R)
    np.testing.assert_allclose(begin.arc_posterior, arcs, atol=1e-10)
    assert begin.evidence_bound == pytest.approx(oracle.bound(columns, R), abs=1e-9)
    for n_updates in (1, 2, 3):
        fit = fit_latent_class(rows, 2, max_iter=n_updates, tol=0, **settings)
        arcs, _ = oracle.structure_sum(columns, R)
        np.testing.assert_allclose(fit.arc_posterior, arcs, atol=1e-10)  # of the tables that the last update built
        R = oracle.update(columns, R)
        assert fit.evidence_bound == pytest.approx(oracle.bound(columns, R), abs=1e-9)


def draw_tables(rows, n_clusters, seed=0):
    """(theta_c, tables) of any start."""
    rng = np.random.default_rng(seed)
    tables = [rng.dirichlet(np.ones(r), n_clusters) for r in rows.schema.cardinalities]
    for _ in rows.log_scale:
        mean, variance = rng.standard_normal(n_clusters), rng.uniform(0.5, 2, n_clusters)
        tables.append(np.stack([np.ones(n_clusters), mean, mean**2 + variance], axis=1))
    return rng.dirichlet(np.ones(n_clusters)), tables


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("averaging", [None, "variational"])
def test_what_climbs_never_falls(averaging, accelerate):
    for seed in range(200 if averaging == "variational" and accelerate else 20):
        numbers, codes, _ = mixed_table(seed, n=40, missing=0.1 * (seed % 2), apart=seed % 4)
        keep = slice(0, 3 * (seed % 3 != 0))  # every third table has numbers only
        rows = table_rows(codes[:, keep], np.array([2, 3, 2])[keep], None, numbers)
        fit = fit_latent_class(
            rows, 3, averaging=averaging, n_init=5, rng=np.random.default_rng(seed), accelerate=accelerate, tol=1e-9
        )
        for path in fit.starts.paths:
            assert (np.diff(path) > -1e-9 * np.abs(path[1:])).all()


def test_a_missing_number_is_a_factor_left_out():
    numbers, codes, _ = mixed_table(3, missing=0.0)
    rows = table_rows(codes, np.array([2, 3, 2]), None, numbers)
    fit = fit_latent_class(rows, 2, averaging="variational", n_init=5, rng=np.random.default_rng(0))
    holes = numbers.copy()
    holes[:, 1] = np.nan
    whole, without = (
        log_joint(codes, fit.theta_c, fit.theta, fit.state_start, values, fit.log_scale) for values in (numbers, holes)
    )
    mean, second = fit.theta[fit.state_start[-1] + 4], fit.theta[fit.state_start[-1] + 5]
    variance = second - mean**2
    density = -0.5 * np.log(2 * np.pi * variance) - 0.5 * (numbers[:, [1]] - mean) ** 2 / variance
    np.testing.assert_allclose(whole, without + density, atol=1e-10)


def test_em_ends_at_a_mode():
    """No small change of a mean or variance raises likelihood x prior."""
    numbers, codes, _ = mixed_table(4)
    rows = table_rows(codes, np.array([2, 3, 2]), None, numbers)
    fit = fit_latent_class(rows, 2, n_init=5, tol=1e-10, max_iter=5000, rng=np.random.default_rng(0))
    first = fit.state_start[-1]

    def objective(theta):
        log_p = log_joint(codes, fit.theta_c, theta, fit.state_start, numbers, fit.log_scale)
        mean, variance = theta[first + 1 :: 3], theta[first + 2 :: 3] - theta[first + 1 :: 3] ** 2
        prior = -2.5 * np.log(variance) - (1.0 + 0.05 * mean**2) / variance
        return np.logaddexp.reduce(log_p, axis=1).sum() + prior.sum()

    best = objective(fit.theta)
    for line in range(first, len(fit.theta)):
        for cluster in range(2):
            for change in (-0.01, 0.01):
                moved = fit.theta.copy()
                if (line - first) % 3 == 1:
                    variance = moved[line + 1, cluster] - moved[line, cluster] ** 2
                    moved[line, cluster] += change
                    moved[line + 1, cluster] = moved[line, cluster] ** 2 + variance
                elif (line - first) % 3 == 2:
                    moved[line, cluster] += change
                else:
                    continue
                assert objective(moved) < best


def test_log_scale_is_a_change_of_units():
    numbers, codes, _ = mixed_table(5, missing=0.2)
    scale = np.array([3.0, 0.01, 1.0])
    plain, scaled = (
        fit_latent_class(
            table_rows(codes, np.array([2, 3, 2]), None, numbers, units),
            2,
            averaging=averaging,
            n_init=4,
            rng=np.random.default_rng(0),
        )
        for averaging in ("variational",)
        for units in (None, np.log(scale))
    )
    shift = (~np.isnan(numbers)).sum(axis=0) @ np.log(scale)
    for score in ("log_likelihood", "evidence_bound", "cheeseman_stutz"):
        assert getattr(plain, score) - getattr(scaled, score) == pytest.approx(shift, abs=1e-8)
    np.testing.assert_allclose(plain.arc_posterior, scaled.arc_posterior, atol=1e-9)
    assert shift != pytest.approx(log(1.0))
