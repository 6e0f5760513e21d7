"""Forest sums against enumeration of every forest."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgm_bma.forests.sums import best_forest, draw_forests, forest_sum, log_forest_sums, sample_forests
from tests.oracles.forests import forests, log_forest_sum


def weights(n, spread, seed, forbidden=0.0):
    rng = np.random.default_rng(seed)
    arcs, roots = rng.uniform(-spread, spread, (n, n)), rng.uniform(-spread, spread, n)
    arcs[rng.random((n, n)) < forbidden] = -np.inf
    return arcs, roots


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 5), st.sampled_from([1.0, 30.0, 700.0]), st.integers(0, 10_000), st.sampled_from([0.0, 0.4]))
def test_sum_and_posteriors_equal_enumeration(n, spread, seed, forbidden):
    arcs, roots = weights(n, spread, seed, forbidden)
    expected, arc_posterior, root_posterior = log_forest_sum(arcs, roots)
    found = forest_sum(arcs, roots)
    assert found.log_sum == pytest.approx(expected, rel=1e-12, abs=1e-9)
    np.testing.assert_allclose(found.arc_posterior, arc_posterior, atol=1e-9)  # the tolerance of the contract
    np.testing.assert_allclose(found.root_posterior, root_posterior, atol=1e-9)
    assert log_forest_sums(arcs[None], roots[None])[0] == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_strong_cycles_with_faint_roots():
    arcs = np.full((4, 4), 700.0)
    roots = np.array([-700.0, -690.0, -700.0, -695.0])
    expected, arc_posterior, root_posterior = log_forest_sum(arcs, roots)
    found = forest_sum(arcs, roots)
    assert found.log_sum == pytest.approx(expected, rel=1e-13)
    np.testing.assert_allclose(found.root_posterior, root_posterior, atol=1e-12)
    np.testing.assert_allclose(found.arc_posterior, arc_posterior, atol=1e-12)


@pytest.mark.parametrize("n", [60, 230])
def test_large_sums_against_the_determinant(n):
    arcs, roots = weights(n, 2.0, 1)
    a = np.exp(arcs)
    np.fill_diagonal(a, 0.0)
    laplacian = np.diag(np.exp(roots) + a.sum(1)) - a
    found = forest_sum(arcs, roots)
    # mild weights: the determinant itself is accurate
    assert found.log_sum == pytest.approx(np.linalg.slogdet(laplacian)[1], rel=1e-11)
    inverse = np.linalg.inv(laplacian)
    np.testing.assert_allclose(found.root_posterior, np.exp(roots) * np.diag(inverse), atol=1e-10)
    np.testing.assert_allclose(found.arc_posterior, a * (np.diag(inverse)[:, None] - inverse.T), atol=1e-10)
    np.testing.assert_allclose(found.arc_posterior.sum(1) + found.root_posterior, 1.0, atol=1e-12)


def test_no_forest_is_an_error():
    arcs = np.zeros((2, 2))
    with pytest.raises(ValueError, match="every forest has weight 0"):
        forest_sum(arcs, np.full(2, -np.inf))
    with pytest.raises(ValueError, match="every forest has weight 0"):
        sample_forests(arcs, np.full(2, -np.inf), 1, np.random.default_rng(0))


@pytest.mark.parametrize("spread", [1.0, 9.0])
def test_sampled_forests_follow_their_weights(spread):
    arcs, roots = weights(3, spread, 4)
    if spread > 1:  # a cycle that a random walk would not leave
        arcs[0, 1] = arcs[1, 0] = 30.0
    logs = np.array([sum(roots[i] if p < 0 else arcs[i, p] for i, p in enumerate(f)) for f in forests(3)])
    probability = np.exp(logs - np.logaddexp.reduce(logs))
    n_samples = 4000
    drawn = sample_forests(arcs, roots, n_samples, np.random.default_rng(0))
    position = {f: i for i, f in enumerate(forests(3))}
    counts = np.bincount([position[tuple(f)] for f in drawn.tolist()], minlength=len(position))
    deviation = np.abs(counts / n_samples - probability)
    assert (deviation <= 5 * np.sqrt(probability * (1 - probability) / n_samples) + 1e-3).all()  # five standard errors


@pytest.mark.parametrize("seed", range(5))
def test_best_forest_by_enumeration(seed):
    arcs, roots = weights(4, 3.0, seed, 0.3)
    value = {f: sum(roots[i] if p < 0 else arcs[i, p] for i, p in enumerate(f)) for f in forests(4)}
    assert value[tuple(best_forest(arcs, roots).tolist())] == pytest.approx(max(value.values()), abs=1e-12)


@pytest.mark.parametrize("block", [1, 4, 12])
@pytest.mark.parametrize("spread", [3.0, 300.0])
def test_sampled_forests_follow_the_arc_posteriors_for_any_block(block, spread):
    arcs, roots = weights(12, spread, 7, 0.2)
    arcs[3, 8] = arcs[8, 3] = 2 * spread  # a cycle between two blocks
    expected = forest_sum(arcs, roots)
    posterior = np.column_stack([expected.arc_posterior, expected.root_posterior])
    table = np.column_stack([np.where(np.eye(12, dtype=bool), -np.inf, arcs), roots])
    uniforms = np.random.default_rng(0).random((3000, 12))
    drawn = draw_forests(table, uniforms, block)
    shares = np.stack([np.bincount(drawn[:, i] % 13, minlength=13) for i in range(12)]) / 3000
    # five standard errors of 156 shares, and one draw more or less for the faint ones
    assert (np.abs(shares - posterior) <= 5 * np.sqrt(posterior * (1 - posterior) / 3000) + 1e-3).all()
