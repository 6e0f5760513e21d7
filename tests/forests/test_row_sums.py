"""Forest sums of many rows in doubles against the sums with wide exponents, which are checked by enumeration."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgm_bma import ForestAveragedClassifier
from pgm_bma.forests import average as forest_average
from pgm_bma.forests.sums import lifts, log_forest_sums, priced_sets


def sums_in_doubles(arcs, roots):
    """`row_log_sums` of one row whose columns have one state each."""
    n = len(roots)
    table = np.column_stack([np.where(np.eye(n, dtype=bool), -np.inf, arcs), roots])
    scales = table.max(axis=1)
    found = np.empty((1, 1))
    forest_average.sum_rows(np.arange(n)[None], np.exp(table - scales[:, None])[None], scales[None], 1e-12, found)
    return found[0, 0]


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from([1, 2, 5, 40, 96, 97, 130, 200]),
    st.sampled_from([1.0, 10.0, 60.0]),
    st.integers(0, 10_000),
    st.sampled_from([0.0, 0.5]),
)
def test_doubles_agree_with_wide_exponents(n, spread, seed, forbidden):
    rng = np.random.default_rng(seed)
    arcs, roots = rng.normal(0, spread, (n, n)), rng.normal(0, spread, n)
    arcs[rng.random((n, n)) < forbidden] = -np.inf
    expected, found = log_forest_sums(arcs[None], roots[None])[0], sums_in_doubles(arcs, roots)
    # sums of positive numbers: rounding of a few hundred terms, relative to the largest of them
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-10) or (spread == 60.0 and np.isnan(found))


def test_what_doubles_cannot_hold_is_undecided_not_wrong():
    arcs = np.full((4, 4), 400.0)
    roots = np.array([-400.0, -390.0, -400.0, -395.0])
    assert np.isnan(sums_in_doubles(arcs, roots))  # a root is e^-790 of its node: 1e-343
    # nested: every pair of nodes holds the walk with 1 - 1e-120, and so does the ring of pairs
    arcs = np.full((6, 6), -500.0)
    for k in (0, 2, 4):
        arcs[k, k + 1] = arcs[k + 1, k] = 0.0
        arcs[k, (k + 2) % 6] = -276.0
    roots = np.full(6, -640.0)
    found, expected = sums_in_doubles(arcs, roots), log_forest_sums(arcs[None], roots[None])[0]
    assert np.isnan(found) or found == pytest.approx(expected, abs=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 30), st.sampled_from([100.0, 3000.0]), st.integers(0, 10_000))
def test_lifted_weights_have_the_same_sum_in_range(n, spread, seed):
    """Dependences like those of data: nearly symmetric, e^1000 and more above the roots."""
    rng = np.random.default_rng(seed)
    strength = np.triu(rng.exponential(spread, (n, n)) * (rng.random((n, n)) < 0.3), 1)
    arcs, roots = strength + strength.T + rng.normal(0, 3, (n, n)), rng.normal(0, 3, n)
    expected = log_forest_sums(arcs[None], roots[None])[0]
    low, high = lifts(arcs, roots)
    found = [sums_in_doubles(arcs + t.amounts[:, :n], roots + t.amounts[:, n]) - t.total for t in (low, high)]
    # prices and rounding: the sums are of order 1e5 here, a digit of them 1e-11
    assert np.isnan(found).any() or abs(found[0] - found[1]) > 1e-9 or found[1] == pytest.approx(expected, rel=1e-13)
    if spread == 100.0:
        assert not np.isnan(found[1])


def test_prices_by_hand():
    # two pairs that hold together with 50 and 30, the first entered at 0, the second at -3, and together by the root at 0
    arcs = np.full((4, 4), -10.0)
    arcs[0, 1] = arcs[1, 0] = 50.0
    arcs[2, 3] = arcs[3, 2] = 30.0
    roots = np.array([0.0, 0.0, -3.0, -20.0])
    found = {tuple(sorted(members.tolist())): price for members, price in priced_sets(arcs, roots)}
    assert found == {(0, 1): 50.0, (2, 3): 33.0}


def test_undecided_rows_take_the_wide_sum(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = pd.DataFrame({f"c{i}": np.where(rng.random(200) < 0.6, y, rng.integers(0, 3, 200)) for i in range(6)})
    X["copy"] = X["c0"]
    classifier = ForestAveragedClassifier(class_arcs="selective").fit(X, y)
    expected = classifier._log_joint(classifier._encode(X))
    monkeypatch.setattr(forest_average, "DOUBT", -1.0)  # nothing is decided in doubles
    np.testing.assert_allclose(classifier._log_joint(classifier._encode(X)), expected, atol=1e-10)
