"""Forest sums of many rows in doubles against the sums with wide exponents, which are checked by enumeration."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgm_bma import ForestAveragedClassifier
from pgm_bma.forests import average as forest_average
from pgm_bma.forests._row_kernels import row_log_sums
from pgm_bma.forests.sums import log_forest_sums


def sums_in_doubles(arcs, roots):
    """`row_log_sums` of one row whose columns have one state each."""
    n = len(roots)
    table = np.column_stack([np.where(np.eye(n, dtype=bool), -np.inf, arcs), roots])
    scales = table.max(axis=1)
    found = np.empty((1, 1))
    row_log_sums(np.arange(n)[None], np.exp(table - scales[:, None])[None], scales[None], 1e-12, found)
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


def test_undecided_rows_take_the_wide_sum(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    X = pd.DataFrame({f"c{i}": np.where(rng.random(200) < 0.6, y, rng.integers(0, 3, 200)) for i in range(6)})
    X["copy"] = X["c0"]
    classifier = ForestAveragedClassifier(class_arcs="selective").fit(X, y)
    expected = classifier._log_joint(classifier._encode(X))
    monkeypatch.setattr(forest_average, "DOUBT", -1.0)
    np.testing.assert_allclose(classifier._log_joint(classifier._encode(X)), expected, atol=1e-10)
