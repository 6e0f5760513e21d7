"""Counts, Dirichlet scores and averaging against row-by-row truths."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgm_bma.foundation.numbers.families import (
    average_families,
    average_many_families,
    cell_alpha,
    class_counts,
    family_counts,
    gather_sum,
    log_marginal_likelihood,
    posterior_mean,
    side_by_side_scores,
)
from pgm_bma.foundation.numbers.pairs import conditional_mutual_information, indicators, pair_counts
from tests.oracles.naive_bayes import log_dirichlet_multinomial, prequential_log_probability


@given(st.integers(0, 10_000), st.integers(0, 12), st.sampled_from([0.3, 1.0, 2.0]))
def test_scores_equal_the_prequential_product(seed, n_rows, alpha):
    rng = np.random.default_rng(seed)
    cards = [3, 2, 4]
    codes = np.column_stack([rng.integers(0, r, n_rows) for r in cards]).astype(np.int8)
    counts = family_counts(codes, cards, 2, (0, 1))
    parent_states = [int(a) * 2 + int(b) for a, b, _ in codes]
    expected = prequential_log_probability(codes[:, 2].tolist(), parent_states, 4, alpha)
    # a dozen logarithms of order one: rounding only
    assert log_marginal_likelihood(counts, alpha) == pytest.approx(expected, abs=1e-11)


def test_scores_of_fractional_counts_and_uneven_priors():
    rng = np.random.default_rng(0)
    counts, alpha = rng.random((5, 4)) * 9, rng.random((5, 4)) + 0.1
    assert log_marginal_likelihood(counts, alpha) == pytest.approx(log_dirichlet_multinomial(counts, alpha), abs=1e-11)


def test_unobserved_parent_states_add_exactly_nothing():
    counts = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    assert log_marginal_likelihood(counts, 1.0) == log_marginal_likelihood(counts[:1], 1.0)


def test_scores_of_families_side_by_side():
    rng = np.random.default_rng(1)
    cards = [2, 1, 4]
    counts, alpha = rng.random((3, 7)) * 5, rng.random(7) + 0.1
    counts[1] = 0  # a parent state that nobody saw
    scores = side_by_side_scores(counts, alpha, np.array([0, 2, 3]))
    for i, part in enumerate(np.split(np.arange(7), np.cumsum(cards)[:-1])):
        for row, found in zip(counts, scores[:, i]):
            # a dozen logarithms of order one: rounding only
            assert found == pytest.approx(log_marginal_likelihood(row[None, part], alpha[part]), abs=1e-12)
    assert (scores[1] == 0).all()


def test_no_prior_mass_is_legal_where_nothing_was_seen():
    counts = np.array([[3.0, 0.0], [0.0, 0.0]])
    assert np.isfinite(log_marginal_likelihood(counts, 0.0))
    np.testing.assert_array_equal(posterior_mean(counts, 0.0), [[1.0, 0.0], [0.5, 0.5]])


def test_bdeu_spreads_the_sample_size():
    assert cell_alpha(6, 2, equivalent_sample_size=3.0) == 0.25
    assert cell_alpha(6, 2, alpha=0.7) == 0.7


def test_family_counts_leave_out_rows_with_missing_cells():
    codes = np.array([[0, 1], [0, -1], [-1, 1], [1, 0], [0, 1]], dtype=np.int8)
    np.testing.assert_array_equal(family_counts(codes, [2, 2], 1, (0,)), [[0, 2], [1, 0]])
    np.testing.assert_array_equal(family_counts(codes, [2, 2], 1), [[1, 3]])
    weighted = family_counts(codes, [2, 2], 1, (0,), np.array([0.5, 9, 9, 2, 1]))
    np.testing.assert_array_equal(weighted, [[0, 1.5], [2, 0]])


@given(st.integers(0, 10_000))
def test_flat_counts_equal_family_counts(seed):
    rng = np.random.default_rng(seed)
    cards = np.array([2, 3, 5])
    codes = np.column_stack([rng.integers(-1, r, 20) for r in cards]).astype(np.int8)
    target, weights = rng.integers(0, 3, 20), rng.integers(1, 5, 20).astype(float)
    flat = class_counts(codes, cards, target, 3, weights)
    joined = np.column_stack([target, codes])
    expected = [family_counts(joined, [3, *cards], i + 1, (0,), weights) for i in range(3)]
    np.testing.assert_array_equal(flat, np.concatenate(expected, axis=1))


def test_gather_sum_skips_missing_cells():
    tables = np.arange(10.0).reshape(2, 5)
    codes = np.array([[1, 2], [-1, 0], [-1, -1]], dtype=np.int8)
    np.testing.assert_array_equal(gather_sum(codes, [2, 3], tables), [[1 + 4, 6 + 9], [2, 7], [0, 0]])


def test_averaging_two_sets_is_the_logistic_of_their_difference():
    scores, means = np.array([-800.0, -803.0]), np.array([[0.2, 0.8], [0.6, 0.4]])
    mixed, weights = average_families(scores, means)
    weight = 1 / (1 + np.exp(scores[1] - scores[0]))
    assert weights[0] == pytest.approx(weight, abs=1e-15)
    np.testing.assert_allclose(mixed, weight * means[0] + (1 - weight) * means[1], atol=1e-15)
    assert average_families([-np.inf, 3.0], means)[1].tolist() == [0.0, 1.0]
    for bad in ([-np.inf, -np.inf], [np.nan, 1.0], [np.inf, 1.0]):
        with pytest.raises(ValueError, match=r"log_scores=.* must hold a finite number"):
            average_families(bad, means)
    with pytest.raises(ValueError, match="a score for each set"):
        average_families([], means)


def test_many_variables_at_once_are_each_by_itself():
    rng = np.random.default_rng(0)
    scores, variables = rng.normal(size=(3, 2)) * 4, np.array([0, 0, 1, 1, 1])
    means = [rng.random((4, 5)), rng.random((1, 5)), rng.random((4, 5))]
    mixed, weights = average_many_families(scores, means, variables)
    for variable in range(2):
        cells = variables == variable
        alone = np.array([np.broadcast_to(mean[:, cells], (4, cells.sum())) for mean in means])
        expected, expected_weights = average_families(scores[:, variable], alone)
        np.testing.assert_allclose(mixed[:, cells], expected, atol=1e-15)  # the same sums of three products
        np.testing.assert_allclose(weights[:, variable], expected_weights, atol=1e-15)


def test_conditional_mutual_information_by_definition():
    rng = np.random.default_rng(3)
    cards = np.array([2, 3])
    codes = np.column_stack([rng.integers(0, r, 50) for r in cards]).astype(np.int8)
    target = rng.integers(0, 2, 50)
    pairs = pair_counts(indicators(codes, cards), np.eye(2)[target])
    joint = np.zeros((2, 2, 3))
    np.add.at(joint, (target, codes[:, 0], codes[:, 1]), 1 / 50)
    expected = sum(
        joint[c, a, b] * np.log(joint[c, a, b] * joint[c].sum() / (joint[c, a].sum() * joint[c, :, b].sum()))
        for c in range(2)
        for a in range(2)
        for b in range(3)
        if joint[c, a, b] > 0
    )
    assert conditional_mutual_information(pairs, cards)[0, 1] == pytest.approx(expected, abs=1e-13)
    for scale in (1e300, 1e-300):  # products of counts would leave the range of floats
        assert conditional_mutual_information(pairs * scale, cards)[1, 0] == pytest.approx(expected, abs=1e-13)
