"""Bound and Collapse: intervals against all completions, collapsed values against the definition, and the faces."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.base import DAG
from pgmpy.models import DiscreteBayesianNetwork
from sklearn.exceptions import ConvergenceWarning

import pgm_bma
from pgm_bma import BoundCollapseEMEstimator, EMEstimator, bound_and_collapse
from pgm_bma.augmented.bound_collapse import bound_and_collapse_families
from pgm_bma.networks.objects import augmented_network, bayesian_network
from tests.oracles import structural_em as oracle

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "structural_em.json").read_text())["cases"]
vectors = pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])


def columns(case):
    return [f"a{i}" for i in range(len(case["cardinalities"]))]


def data_of(case):
    return pd.DataFrame(case["data"], columns=columns(case))


def network_of(case, model, parents=None):
    """The vectors' model as a pgmpy network with a latent cluster."""
    states = [list(range(r)) for r in case["cardinalities"]]
    parents = case["parents"] if parents is None else parents
    clusters = range(case["clusters"])
    return augmented_network("cluster", clusters, model["pC"], columns(case), states, model["th"], parents, latent=True)


def assert_tables_equal(cpds, network, tolerance=1e-9):
    for cpd in cpds:
        expected = network.get_cpds(cpd.variable)
        assert cpd.variables == expected.variables
        np.testing.assert_allclose(cpd.values, expected.values, atol=tolerance)


# ------------------------------------------------------------------------------------------------ intervals


@st.composite
def small_tables(draw):
    """A few rows over a child and up to two parents, with at most six holes, so that completions can be enumerated."""
    n_parents = draw(st.integers(0, 2))
    cards = draw(st.lists(st.integers(1, 3), min_size=n_parents + 1, max_size=n_parents + 1))
    n_rows = draw(st.integers(0, 5))
    rows = [[draw(st.integers(0, r - 1)) for r in cards] for _ in range(n_rows)]
    holes = draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, n_parents)), max_size=6))
    for row, column in holes:
        if row < n_rows:
            rows[row][column] = None
    return rows, cards


@settings(max_examples=60, deadline=None)
@given(small_tables(), st.sampled_from([1.0, 0.25, 0.0]))
def test_bounds_hold_for_all_completions_and_are_reached(table, alpha):
    rows, cards = table
    n = len(cards)
    codes = np.array([[-1 if v is None else v for v in row] for row in rows], dtype=int).reshape(-1, n)
    parents = list(range(n - 1))
    record = bound_and_collapse_families(codes, cards, [()] * (n - 1) + [tuple(parents)], alpha=alpha)[-1]
    extremes = oracle.bounds_by_enumeration(rows, n - 1, parents, cards, alpha)
    for line, configuration in enumerate(product(*[range(cards[p]) for p in parents])):
        for k in range(cards[-1]):
            low, high = extremes[configuration, k]
            # a ratio of small numbers computed twice
            np.testing.assert_allclose([record.lower[line, k], record.upper[line, k]], [low, high], atol=1e-12)
            assert low - 1e-12 <= record.collapsed[line, k] <= high + 1e-12
    np.testing.assert_allclose(record.collapsed.sum(axis=1), 1.0, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(small_tables())
def test_collapsed_values_are_the_weighted_local_tables(table):
    rows, cards = table
    if 1 in cards:  # a variable with one state is never missing here, the definition takes it literally
        cards = [max(r, 2) for r in cards]
    n = len(cards)
    codes = np.array([[-1 if v is None else v for v in row] for row in rows], dtype=int).reshape(-1, n)
    parents = list(range(n - 1))
    record = bound_and_collapse_families(codes, cards, [()] * (n - 1) + [tuple(parents)])[-1]
    for line, configuration in enumerate(product(*[range(cards[p]) for p in parents])):
        expected = oracle.bound_and_collapse(rows, n - 1, parents, cards, configuration)
        for key, field in {"n": "counts", "u": "possible", "phi": "weights", "collapsed": "collapsed"}.items():
            np.testing.assert_allclose(getattr(record, field)[line], expected[key], atol=1e-12)


def test_a_missing_pattern_moves_the_collapsed_value_between_the_bounds():
    data = pd.DataFrame({"a": ["x", "x", "y", None, None, None]})
    structure = DAG()
    structure.add_node("a")
    low = bound_and_collapse(structure, data, {"a": [0.0, 1.0]})["a"]
    high = bound_and_collapse(structure, data, {"a": [1.0, 0.0]})["a"]
    np.testing.assert_allclose(low.collapsed[0, 0], low.lower[0, 0])  # all missing cases are y
    np.testing.assert_allclose(high.collapsed[0, 0], high.upper[0, 0])
    at_random = bound_and_collapse(structure, data)["a"]
    np.testing.assert_allclose(at_random.collapsed, at_random.weights)  # every missing case may be anything
    with pytest.raises(ValueError, match=r"missing_pattern\['a'\] has shape \(3,\)"):
        bound_and_collapse(structure, data, {"a": [1, 1, 1]})
    with pytest.raises(ValueError, match="missing_pattern names 'b'"):
        bound_and_collapse(structure, data, {"b": [1, 1]})


def test_without_missing_cells_the_interval_is_the_estimate():
    data = pd.DataFrame({"a": list("xxyy"), "b": list("uvvv")})
    bounds = bound_and_collapse(DAG([("a", "b")]), data)["b"]
    expected = [[0.5, 0.5], [0.25, 0.75]]  # (1 + n) / (2 + sum n)
    for field in ("lower", "collapsed", "upper"):
        np.testing.assert_allclose(getattr(bounds, field), expected)
    assert (bounds.possible == 0).all()
    frame = bounds.to_frame()
    assert list(frame.columns) == ["a", "b", "lower", "collapsed", "upper", "width", "counts", "possible"]
    assert frame.loc[3, ["a", "b"]].tolist() == ["y", "v"] and frame.loc[3, "counts"] == 2
    assert bounds.labels[3] == "v | a=y"


def test_weights_are_repetitions_and_latents_are_wide_open():
    data = pd.DataFrame({"a": ["x", None, "y"], "b": ["u", "v", None]})
    structure = DAG([("h", "a"), ("a", "b")], latents={"h"})
    weighted = bound_and_collapse(structure, data, sample_weight=[2, 1, 3], latent_card={"h": 3})
    repeated = bound_and_collapse(structure, data.iloc[[0, 0, 1, 2, 2, 2]], latent_card={"h": 3})
    for node in ("h", "a", "b"):
        np.testing.assert_array_equal(weighted[node].lower, repeated[node].lower)
        np.testing.assert_array_equal(weighted[node].collapsed, repeated[node].collapsed)
    np.testing.assert_allclose(weighted["h"].lower, 1 / 9)
    np.testing.assert_allclose(weighted["h"].upper, 7 / 9)


@vectors
def test_vectors(case):
    """lower, upper, local means and counts of every family from a partly known cluster column."""
    given_column = case["bound_and_collapse"]["class_column"]
    data = data_of(case).assign(cluster=given_column)
    states = {"cluster": list(range(case["clusters"]))}
    states.update({name: list(range(r)) for name, r in zip(columns(case), case["cardinalities"])})
    latent = network_of(case, case["initial"])
    structure = DiscreteBayesianNetwork(latent.edges())
    bounds = bound_and_collapse(structure, data, state_names=states)
    fields = {"n": "counts", "lower": "lower", "upper": "upper", "phi": "weights", "collapsed": "collapsed"}
    for family in case["bound_and_collapse"]["families"]:
        found = bounds[f"a{family['attribute']}"]
        wanted = {"cluster": family["cls"]}
        if case["parents"][family["attribute"]] >= 0:
            wanted[f"a{case['parents'][family['attribute']]}"] = family["parent_state"]
        lines = list(product(*found.parent_states))
        line = lines.index(tuple(wanted[p] for p in found.parents))
        for key, field in {**fields, "u": "possible"}.items():
            np.testing.assert_allclose(getattr(found, field)[line], family[key], atol=1e-9)
    for key, field in fields.items():
        np.testing.assert_allclose(getattr(bounds["cluster"], field)[0], case["bound_and_collapse"]["class"][key])


# ------------------------------------------------------------------------------------------------ BC+EM


@vectors
@pytest.mark.parametrize("loop", ["released", "alternating"])
def test_bound_collapse_em_vectors(case, loop):
    expected = case[f"bcem_{loop}"]
    start = network_of(case, case["initial"])
    estimator = BoundCollapseEMEstimator(
        init_cpds=start, n_init=1, convergence="completed_score", bound_collapse_loop=loop
    ).fit(start, data_of(case))
    assert_tables_equal(estimator.parameters_, network_of(case, expected["model"]))
    assert estimator.n_iter_ == expected["em_iterations"] and len(estimator.score_path_) == estimator.n_iter_ + 1
    np.testing.assert_allclose(estimator.rounds_["value"], [r["cur"] for r in expected["rounds"]], atol=1e-9)
    assert estimator.rounds_["unassigned"].tolist() == [r["unassigned"] for r in expected["rounds"]]
    assert estimator.rounds_["em_updates"].tolist() == [r["it"] for r in expected["rounds"]]
    np.testing.assert_allclose(estimator.log_likelihood_, expected["readings"]["observed_loglik"], atol=1e-9)


def cases_with_gaps(n_rows=150, seed=0, missing=0.15):
    rng = np.random.default_rng(seed)
    h = rng.integers(0, 2, n_rows)
    a = (rng.random(n_rows) < np.where(h, 0.9, 0.2)).astype(int)
    b = (rng.random(n_rows) < np.where(h ^ a, 0.8, 0.3)).astype(int)
    c = rng.integers(0, 2, n_rows) + (rng.random(n_rows) < np.where(h, 0.1, 0.8))
    frame = pd.DataFrame({"a": a, "b": b, "c": c}).astype("Int64")
    return frame.mask(rng.random(frame.shape) < missing)


@pytest.mark.parametrize("arcs", [[("a", "b")], [("b", "a"), ("c", "a")]], ids=["augmented", "general"])
def test_it_ends_where_em_does_not_move(arcs):
    """Both rooms, with missing cells: the tables that BC+EM returns are a fixed point of exact EM on the same data."""
    data = cases_with_gaps()
    model = DiscreteBayesianNetwork([("h", "a"), ("h", "b"), ("h", "c"), *arcs], latents={"h"})
    estimator = BoundCollapseEMEstimator(seed=1, n_init=2, max_iter=4000, atol=1e-13).fit(model, data)
    given = {cpd.variable: cpd for cpd in estimator.parameters_}
    moved = EMEstimator(init_cpds=given, n_init=1, max_iter=1, atol=1e-5).fit(model, data)
    # a relative change of the log posterior below 1e-13 leaves the tables within its square root: 1e-5 is far above
    assert moved.converged_
    np.testing.assert_allclose(moved.score_path_[0], max(estimator.starts_["score"]), rtol=1e-12)


def test_order_of_parents_does_not_matter():
    """The order in which a node lists its two parents must not matter to the faster room."""
    data = cases_with_gaps(missing=0.0)
    ahead = DiscreteBayesianNetwork([("a", "b"), ("h", "a"), ("h", "b"), ("h", "c")], latents={"h"})
    behind = DiscreteBayesianNetwork([("h", "a"), ("h", "b"), ("h", "c"), ("a", "b")], latents={"h"})
    first = BoundCollapseEMEstimator(seed=2, n_init=1).fit(behind, data)
    given = {cpd.variable: cpd for cpd in first.parameters_}
    again = BoundCollapseEMEstimator(init_cpds=given, n_init=1).fit(ahead, data)
    np.testing.assert_allclose(again.score_path_[0], first.starts_["score"].max(), rtol=1e-12)


def test_without_a_latent_it_is_a_start_for_em():
    data = cases_with_gaps()
    model = DiscreteBayesianNetwork([("a", "b"), ("c", "b")])
    estimator = BoundCollapseEMEstimator(atol=1e-12, max_iter=2000).fit(model, data)
    reference = EMEstimator(atol=1e-10).fit(model, data)
    np.testing.assert_allclose(estimator.log_likelihood_, reference.log_likelihood_, rtol=1e-8)
    collapsed = bound_and_collapse(model, data)
    names, nodes = list(model.nodes()), list(collapsed.values())
    parents = [[names.index(p) for p in found.parents] for found in nodes]
    start = bayesian_network(names, [found.states for found in nodes], parents, [found.collapsed for found in nodes])
    with pytest.warns(ConvergenceWarning):  # one update on purpose
        first = EMEstimator(init_cpds=start, max_iter=1).fit(model, data)
    np.testing.assert_allclose(estimator.score_path_[:2], first.score_path_, rtol=1e-12)
    assert np.diff(estimator.score_path_).min() > -1e-9  # EM climbs its log posterior


def test_refusals_name_the_cause():
    data = cases_with_gaps()
    two = DiscreteBayesianNetwork([("h", "a"), ("g", "b"), ("h", "c")], latents={"h", "g"})
    with pytest.raises(ValueError, match="one latent variable"):
        BoundCollapseEMEstimator().fit(two, data)
    model = DiscreteBayesianNetwork([("h", "a"), ("h", "b"), ("h", "c")], latents={"h"})
    with pytest.raises(ValueError, match="bound_collapse_loop='other'"):
        BoundCollapseEMEstimator(bound_collapse_loop="other").fit(model, data)
    with pytest.raises(ValueError, match="fixing_probability_threshold"):
        BoundCollapseEMEstimator(fixing_probability_threshold=1.5).fit(model, data)


def test_weights_are_repetitions_and_n_jobs_changes_nothing():
    data = cases_with_gaps(60)
    weights = np.random.default_rng(3).integers(0, 3, len(data))
    model = DiscreteBayesianNetwork([("h", "a"), ("h", "b"), ("h", "c")], latents={"h"})
    repeated = data.iloc[np.repeat(np.arange(len(data)), weights)]
    how = {"seed": 0, "n_init": 3, "state_names": {"a": [0, 1], "b": [0, 1], "c": [0, 1, 2]}, "show_progress": False}
    one = BoundCollapseEMEstimator(**how).fit(model, data, sample_weight=weights)
    two = BoundCollapseEMEstimator(n_jobs=2, **how).fit(model, repeated)
    for left, right in zip(one.parameters_, two.parameters_):
        np.testing.assert_array_equal(left.values, right.values)
    sizes = next(cpd.values for cpd in one.parameters_ if cpd.variable == "h")
    assert sizes[0] >= sizes[1]  # numbered by falling probability


def test_public_names():
    assert pgm_bma.bound_and_collapse is bound_and_collapse
    model = DiscreteBayesianNetwork([("h", "a"), ("h", "b"), ("h", "c")], latents={"h"})
    fitted = model.fit(cases_with_gaps(), estimator=BoundCollapseEMEstimator(seed=0, n_init=2, atol=1e-4))
    assert fitted.check_model() and fitted.latents == {"h"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"data": np.zeros((3, 2))}, "data is a ndarray; pass a DataFrame"),
        ({"data": pd.DataFrame({"a": [0, 1]})}, "node 'b' is not a column of data; add it"),
        ({"missing_pattern": [1, 2]}, "missing_pattern must be a dict"),
        ({"missing_pattern": {"a": "often"}}, r"missing_pattern\['a'\]='often' must hold numbers"),
        ({"model": "a -> b"}, "expected a pgmpy DAG"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    given = {"model": DAG([("a", "b")]), "data": pd.DataFrame({"a": [0, 1, None], "b": [0, 1, 1]}), **arguments}
    with pytest.raises((ValueError, TypeError), match=message):
        bound_and_collapse(**given)


def test_threads_say_nothing_about_a_short_fit(capsys):
    data = pd.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 1, 1]})
    model = DiscreteBayesianNetwork([("h", "a"), ("h", "b")], latents={"h"})
    BoundCollapseEMEstimator(n_init=4, n_jobs=2, seed=0, atol=1e-2).fit(model, data)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_tables_too_large_are_refused_before_memory_is_taken():
    names = [f"p{i}" for i in range(24)]
    data = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (30, 25)), columns=[*names, "x"])
    with pytest.raises(ValueError, match=r"'x' below its 24 parents has 33,554,432 cells, and the limit is 4,194,304"):
        pgm_bma.bound_and_collapse(DAG([(name, "x") for name in names]), data)
