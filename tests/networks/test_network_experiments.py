"""`EMEstimator` on rows of experiments, against all completions of every row."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.models import DiscreteBayesianNetwork

import pgm_bma
from pgm_bma import EMEstimator
from pgm_bma.networks.em import fit_network, flatten
from tests.networks.test_junction_tree import plain, random_network, random_rows
from tests.oracles import network_em as oracle


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 1.0]))
def test_rows_of_experiments_leave_out_the_table_of_what_was_set(seed, alpha):
    rng = np.random.default_rng(seed)
    cards, parents, cpts = random_network(rng, n_nodes=5)
    codes = random_rows(rng, cards)
    held = (codes >= 0) & (rng.random(codes.shape) < 0.3)
    sets = [tuple(np.flatnonzero(row).tolist()) for row in held]
    fixed = [v for v in range(len(cards)) if rng.random() < 0.2]
    weights = rng.random(len(codes)) + 0.1
    fit = fit_network(
        codes, cards, parents, weights=weights, held=held, alpha=alpha, init=cpts, fixed=fixed, max_iter=3, atol=0.0
    )
    expected = plain(cpts)
    for _ in range(3):
        expected = oracle.em_update(codes.tolist(), cards, parents, expected, alpha, weights, fixed, sets)
    np.testing.assert_allclose(flatten(fit.cpts), flatten([np.array(t) for t in expected]), atol=1e-11)
    assert (np.diff(fit.score_path) >= -1e-10).all()
    assert fit.log_likelihood == pytest.approx(
        oracle.log_likelihood(codes.tolist(), cards, parents, expected, weights, sets), abs=1e-10
    )
    counts = oracle.expected_counts(codes.tolist(), cards, parents, expected, weights, sets)
    np.testing.assert_allclose(flatten(fit.expected_counts), flatten([np.array(t) for t in counts]), atol=1e-10)


def with_experiments(seed=0, n=200):
    """(model, table with missing cells, the column `was_set`, tables of the model as arrays): a -> b -> c, a -> c."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.8, a, 1 - a)
    was_set = rng.choice(["b", "c", None], n)
    b = np.where(was_set == "b", rng.integers(0, 2, n), b)
    c = np.where(was_set == "c", 1, np.where(rng.random(n) < 0.7, a ^ b, 1 - (a ^ b)))
    table = pd.DataFrame({"a": a, "b": b, "c": c}).astype(object)
    table[(rng.random(table.shape) < 0.2) & np.column_stack([was_set != name for name in "abc"])] = None
    model = DiscreteBayesianNetwork([("a", "b"), ("a", "c"), ("b", "c")])
    return model, table, was_set


def test_the_estimator_takes_experiments_as_a_list_or_a_column_with_weights():
    model, table, was_set = with_experiments()
    fit = EMEstimator(atol=1e-12).fit(model, table, interventions=was_set)
    codes = table.fillna(-1).to_numpy(dtype=int).tolist()
    sets = [() if name is None else ("abc".index(name),) for name in was_set]
    cards, parents = [2, 2, 2], [(), (0,), (0, 1)]
    found = [cpd.get_values().T for cpd in fit.parameters_]
    again = oracle.em_update(codes, cards, parents, plain(found), 1.0, held=sets)
    # a fixed point of the enumeration, as near as `atol` leaves it
    np.testing.assert_allclose(flatten([np.array(t) for t in again]), flatten(found), atol=1e-10)
    assert fit.log_likelihood_ == pytest.approx(
        oracle.log_likelihood(codes, cards, parents, plain(found), held=sets), abs=1e-9
    )
    column = table.assign(was_set=was_set)
    lists = [[] if name is None else [name] for name in was_set]
    weights = np.ones(len(table))
    weights[:3] = 0, 2, 3
    repeated = np.repeat(np.arange(len(table)), weights.astype(int))
    same = [
        (EMEstimator().fit(model, column, interventions="was_set"), EMEstimator().fit(model, table, interventions=was_set)),
        (EMEstimator().fit(model, column, intervention_targets="was_set"), EMEstimator().fit(model, table, interventions=lists)),
        (
            EMEstimator().fit(model, column, weights, interventions="was_set"),
            EMEstimator().fit(model, table.iloc[repeated], interventions=was_set[repeated]),
        ),
        (EMEstimator().fit(model, table, interventions=[None] * len(table)), EMEstimator().fit(model, table)),
    ]  # fmt: skip
    for one, other in same:
        assert one.log_likelihood_ == other.log_likelihood_
        for left, right in zip(one.parameters_, other.parameters_):
            np.testing.assert_array_equal(left.values, right.values)
    plainly = EMEstimator().fit(model, table)
    assert np.abs(plainly.parameters_[1].values - fit.parameters_[1].values).max() > 0.05


def test_experiments_with_a_latent_variable_and_a_scan(tmp_path):
    model, table, was_set = with_experiments(1)
    hidden = DiscreteBayesianNetwork([("h", name) for name in "abc"], latents={"h"})
    fit = EMEstimator(seed=0, n_init=3, atol=1e-10).fit(hidden, table, interventions=was_set)
    cards, parents = [2, 2, 2, 2], [(), (0,), (0,), (0,)]
    codes = np.column_stack([np.full(len(table), -1), table.fillna(-1).to_numpy(dtype=int)]).tolist()
    sets = [() if name is None else ("habc".index(name),) for name in was_set]
    found = [cpd.get_values().T for cpd in fit.parameters_]
    again = oracle.em_update(codes, cards, parents, plain(found), 1.0, held=sets)
    np.testing.assert_allclose(flatten([np.array(t) for t in again]), flatten(found), atol=1e-8)
    column = table.fillna("?").astype(str).assign(was_set=was_set)
    column.to_csv(tmp_path / "rows.csv", index=False)
    scan = pgm_bma.scan_csv(tmp_path / "rows.csv")
    states = {name: ["0", "1", "?"] for name in "abc"}
    scanned = EMEstimator(states).fit(model, scan, interventions="was_set")
    read = EMEstimator(states).fit(model, column, interventions="was_set")
    for left, right in zip(scanned.parameters_, read.parameters_):
        np.testing.assert_allclose(left.values, right.values, atol=1e-12)  # rows in another order


def test_experiments_that_cannot_be_read():
    model, table, was_set = with_experiments()
    hidden = DiscreteBayesianNetwork([("h", name) for name in "abc"], latents={"h"})
    with pytest.raises(ValueError, match="mean the same"):
        EMEstimator().fit(model, table, interventions=was_set, intervention_targets=was_set)
    with pytest.raises(ValueError, match="has 199 entries"):
        EMEstimator().fit(model, table, interventions=was_set[1:])
    with pytest.raises(ValueError, match="'nobody' is not a column"):
        EMEstimator().fit(model, table, interventions="nobody")
    with pytest.raises(ValueError, match="names 'h' in row 0, which is not a variable"):
        EMEstimator().fit(hidden, table, interventions=["h"] * len(table))
    with pytest.raises(ValueError, match=r"'a' was set in .* rows where its value is missing"):
        EMEstimator().fit(model, table, interventions=["a"] * len(table))
