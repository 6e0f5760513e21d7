"""The order estimators: enumeration through the public faces, missing cells, results, errors."""

import pickle
import re
import signal
import sys
import threading
import warnings
from functools import partial
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import estimator_checks_generator

import pgm_bma
from pgm_bma import (
    FixedOrderClassifier,
    GibbsSampler,
    OrderAveragedClassifier,
    OrderPosterior,
    SwapSampler,
    effective_markov_blanket,
)
from pgm_bma.orders import results
from pgm_bma.orders.families.family_table import family_table
from pgm_bma.orders.sums import fixed_order, unobserved
from tests.oracles.orders import Problem, class_posterior, log_sum

ATOL = 1e-9  # the agreement that the project asks for


def frame(n_rows=60, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n_rows)
    b = np.where(rng.random(n_rows) < 0.7, a, rng.integers(0, 2, n_rows))
    c = np.where(rng.random(n_rows) < 0.7, a + b, rng.integers(0, 3, n_rows))
    d = np.where(rng.random(n_rows) < 0.6, c % 2, rng.integers(0, 2, n_rows))
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": d}), pd.Series(np.array(["no", "yes"])[(a + d) % 2], name="out")


def coded(X, y):
    return np.column_stack([X, (y == "yes").astype(int)]).tolist(), [2, 2, 3, 2, 2]


# small chains: long enough to mix over five variables, short enough for a test
PAPER = {"parameter_prior": "paper"}
SWAPS = SwapSampler(n_orders=40, burn_in=500, thin=50, n_chains=1)
QUICK = {"method": "mcmc", "sampler": SWAPS, "random_state": 0, **PAPER}


def quick(**changes):
    return {**QUICK, "sampler": SWAPS.set_params(**changes)}


def test_chains_of_orders_and_of_layers_are_near_the_exact_sums():
    """Sampled arcs near the exact ones: 4 x 100 orders, errors of a few per cent."""
    X, y = frame()
    layers = {**QUICK, "structure_weighting": "dag", "sampler": GibbsSampler(n_orders=100)}
    for weighting, run in (("order", quick(n_orders=100, n_chains=4)), ("dag", layers)):
        exact = OrderPosterior(structure_weighting=weighting, method="exact", random_state=0, **PAPER).fit(X)
        sampled = OrderPosterior(**run).fit(X)
        assert sampled.method_ == "mcmc" and len(sampled.orders_) == len(sampled.order_log_scores_) == 400
        swapped = 0 < sampled.acceptance_rate_ < 1
        assert swapped == (weighting == "order") and np.isnan(sampled.log_evidence_)
        difference = (sampled.edge_posterior_ - exact.edge_posterior_).abs().to_numpy().max()
        assert difference < 0.06  # 400 correlated draws of shares near one half: standard error about 0.02
        classifier = OrderAveragedClassifier(**run).fit(X, y)
        exact = OrderAveragedClassifier(structure_weighting=weighting, method="exact", random_state=0, **PAPER).fit(
            X, y
        )
        assert np.abs(classifier.predict_proba(X) - exact.predict_proba(X)).max() < 0.03  # means of 400 draws


def test_chain_does_not_depend_on_jobs_or_number_of_chains():
    X, _ = frame()
    one = OrderPosterior(**quick(n_chains=3), n_jobs=1).fit(X)
    two = OrderPosterior(**quick(n_chains=3), n_jobs=2).fit(X)
    assert one.orders_ == two.orders_
    np.testing.assert_array_equal(one.edge_posterior_, two.edge_posterior_)
    assert OrderPosterior(**QUICK).fit(X).orders_ == one.orders_[:40]


def test_paper_preset_keeps_the_papers_iterations():
    X, y = frame(30)
    paper = OrderAveragedClassifier(preset="paper", random_state=3).fit(X, y)
    assert len(paper.orders_) == 30 and paper.method_ == "mcmc" and paper.sampler is None
    run = {**quick(n_orders=1668, burn_in=10_000, thin=1), "random_state": 3}
    every = OrderAveragedClassifier(**run).fit(X, y)
    assert paper.orders_[:2] == [every.orders_[0], every.orders_[1667]]  # iterations 10,001 and 11,668
    with pytest.raises(
        ValueError, match=r"sets sampler=SwapSampler\(n_chains=1\), but sampler=SwapSampler\(thin=5\) was"
    ):
        OrderAveragedClassifier(preset="paper", sampler=SwapSampler(thin=5)).fit(X, y)


def test_fixed_order_choices():
    X, y = frame()
    data, cards = coded(X, y)
    truth = Problem(data, cards, 3)
    names = ["a", "b", "c", "d", "out"]

    def score(classifier):
        return truth.order_log_score([names.index(v) for v in classifier.order_])

    best = FixedOrderClassifier("best", **PAPER).fit(X, y)
    top = max(truth.order_log_score(order) for order in truth.all_orders())
    assert best.order_log_score_ == pytest.approx(score(best), abs=ATOL) == pytest.approx(top, abs=ATOL)
    greedy = FixedOrderClassifier("greedy", **PAPER).fit(X, y)
    assert truth.order_log_score(range(5)) <= score(greedy) + ATOL
    random = FixedOrderClassifier("random", random_state=1).fit(X, y)
    assert (
        sorted(random.order_) == names
        and random.order_ == FixedOrderClassifier("random", random_state=1).fit(X, y).order_
    )
    assert FixedOrderClassifier("random", random_state=2).fit(X, y).order_ != random.order_


def test_exact_network_is_the_average_and_large_ones_are_refused():
    from pgmpy.inference import VariableElimination

    X, y = frame()
    classifier = FixedOrderClassifier(["a", "out", "c", "b", "d"]).fit(X, y)
    assert classifier.model_is_exact_
    engine = VariableElimination(classifier.to_network())
    for row, proba in zip(X.head(5).to_dict("records"), classifier.predict_proba(X.head(5))):
        row.pop("c")
        gap = classifier.predict_proba({**row, "c": None})[0]
        answer = engine.query(["out"], evidence=row, show_progress=False)
        np.testing.assert_allclose([answer.get_value(out=s) for s in ("no", "yes")], gap, atol=ATOL)
        assert proba.shape == (2,)
    with pytest.raises(ValueError, match=r"has 90 cells, more than max_cells=10"):
        classifier.to_network(max_cells=10)


def test_missing_cells_equal_enumeration():
    X, y = frame()
    X = X[["a", "b", "c"]]
    data = np.column_stack([X, y == "yes"]).astype(int).tolist()
    truth = Problem(data, [2, 2, 3, 2], 2)
    holes = pd.DataFrame({"a": [None, 1, None], "b": [0, None, None], "c": [2, None, None]})
    rows = [[None if v is None or v != v else int(v) for v in row] + [0] for row in holes.to_numpy().tolist()]
    for weighting in ("order", "dag"):
        classifier = OrderAveragedClassifier(
            max_indegree=2, structure_weighting=weighting, random_state=0, **PAPER
        ).fit(X, y)
        joint = partial(truth.log_joint, weighting=weighting)
        expected = [class_posterior(joint, row, 3, 2) for row in rows]
        proba, error = classifier.predict_proba_with_error(holes)
        np.testing.assert_allclose(proba, expected, atol=ATOL)
        np.testing.assert_array_equal(error, 0.0)


@pytest.mark.parametrize("estimator", ["exact", "mcmc"])
def test_sampled_completions_have_honest_errors(estimator, monkeypatch):
    """Forced to sample: the exact value lies within five reported errors, and ten times the draws cut the error by sqrt(10)."""
    X, y = frame()
    holes = X.head(20).astype(float)
    holes[["a", "c"]] = np.nan
    settings = QUICK if estimator == "mcmc" else {"random_state": 0}
    exact = OrderAveragedClassifier(**settings).fit(X, y).predict_proba(holes)
    errors = []
    monkeypatch.setattr(results, "MAX_COMPLETIONS", 1)
    for draws in (200, 2000):
        monkeypatch.setattr(results, "N_COMPLETIONS", draws)
        sampled = OrderAveragedClassifier(**settings).fit(X, y)
        proba, error = sampled.predict_proba_with_error(holes)
        assert (error > 0).all() and (np.abs(proba - exact) < 5 * error + 1e-9).all()
        np.testing.assert_array_equal(proba, sampled.predict_proba(holes))  # equal calls, equal draws
        errors.append(error.mean())
    assert errors[0] / errors[1] == pytest.approx(np.sqrt(10), rel=0.25)  # the errors are themselves estimates


@pytest.mark.parametrize(
    ("max_indegree", "ess", "table_bytes"), [(0, None, 10**9), (2, 3.0, 10**9), (3, None, 10**9), (3, None, 0)]
)
def test_work_shared_between_completions_changes_nothing(max_indegree, ess, table_bytes, monkeypatch):
    """Families grouped by hidden parents, against every completion on its own; tables that would not fit are not made."""
    monkeypatch.setattr(fixed_order, "MAX_TABLE_BYTES", table_bytes)
    cards = np.array([2, 3, 4, 2, 1, 3])
    rng = np.random.default_rng(0)
    train = rng.integers(0, cards, (40, 6)).astype(np.int32)
    orders = [rng.permutation(6) for _ in range(5)]
    scores = family_table(train, cards, max_indegree=max_indegree, equivalent_sample_size=ess)
    training = fixed_order.Training(np.asfortranarray(train), np.ones(40), cards, 1.0, ess)
    mix = fixed_order.mixture(scores, training, fixed_order.order_masks(orders))
    rows = rng.integers(0, cards, (25, 6))
    hidden = rng.random(rows.shape) < 0.5
    for class_index, n_classes in ((None, 1), (1, 3), (4, 1), (5, 3)):
        holes = hidden.copy()
        if class_index is not None:
            holes[:, class_index] = False
        completed, source = unobserved.complete(rows, holes, cards)
        plain = fixed_order.log_joints(mix, completed, class_index, n_classes)
        shared = fixed_order.log_joints(mix, completed, class_index, n_classes, source, holes)
        np.testing.assert_allclose(shared, plain, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "settings", [{}, quick(n_orders=30, burn_in=50, thin=5), {"method": "mcmc", "sampler": GibbsSampler(max_sweeps=16)}]
)
@pytest.mark.filterwarnings("ignore:.*the chains have not converged")  # short runs
def test_draws_of_a_row_do_not_depend_on_other_rows(settings, monkeypatch):
    monkeypatch.setattr(results, "MAX_COMPLETIONS", 1)
    X, y = frame()
    holes = X.head(20).astype(float)
    holes[["a", "c"]] = np.nan
    model = OrderAveragedClassifier(**{"random_state": 0, **settings}).fit(X, y)
    proba, error = model.predict_proba_with_error(holes)
    assert (error > 0).all()
    one_by_one = np.concatenate([model.predict_proba(holes.iloc[[k]]) for k in range(20)])
    np.testing.assert_allclose(one_by_one, proba, rtol=0, atol=1e-12)  # sums of draws in another order


def test_fractional_weights_are_exact():
    X, y = frame()
    X = X[["a", "b", "c"]]
    weights = np.random.default_rng(4).random(len(X)) * 3
    data = np.column_stack([X, y == "yes"]).astype(int).tolist()
    truth = Problem(data, [2, 2, 3, 2], 3, weights=weights.tolist())
    classifier = OrderAveragedClassifier(random_state=0, **PAPER).fit(X, y, sample_weight=weights)
    joint = partial(truth.log_joint, weighting="order")
    expected = [class_posterior(joint, row, 3, 2) for row in data[:3]]
    np.testing.assert_allclose(classifier.predict_proba(X.head(3)), expected, atol=ATOL)
    np.testing.assert_allclose(classifier.edge_posterior_, truth.edges("order"), atol=ATOL)


@pytest.mark.parametrize("weighting", ["order", "dag"])
def test_weights_up_to_the_limit_keep_the_sums_and_beyond_are_refused(weighting):
    """b copies a: a -> b and b -> a share one. Scores near 1e12 are rounded to 1e-4, of which some ten are added."""
    a = np.random.default_rng(0).integers(0, 2, 60)
    X = pd.DataFrame({"a": a, "b": np.where(np.arange(60) % 6, a, 1 - a), "c": np.arange(60) % 3})
    weights = np.full(60, 1.6e9)
    posterior = OrderPosterior(structure_weighting=weighting, random_state=0).fit(X, sample_weight=weights)
    edges = posterior.edge_posterior_
    assert edges.loc["a", "b"] + edges.loc["b", "a"] == pytest.approx(1.0, abs=2e-3)
    few = OrderPosterior(structure_weighting=weighting, random_state=0).fit(X, sample_weight=weights / 1e5)
    np.testing.assert_allclose(posterior.log_joint(X), few.log_joint(X), atol=2e-3)
    with pytest.raises(ValueError, match=r"adds up to 1\.2e\+11 rows, more than 1e\+11, .* divide the weights"):
        OrderPosterior().fit(X, sample_weight=np.full(60, 2e9))


@pytest.mark.filterwarnings("ignore:column 'b' holds one value only")
def test_imputing_and_missing_as_a_state():
    X, y = frame(200)
    holes = X.astype(float).mask(np.random.default_rng(0).random(X.shape) < 0.2)
    imputed = OrderAveragedClassifier(unobserved="fill", random_state=0).fit(X, y)
    row = holes[holes.isna().sum(axis=1) == 1].iloc[[0]]
    column = row.columns[row.isna().any()][0]
    completed = [imputed.predict_proba(row.assign(**{column: v}))[0] for v in sorted(X[column].unique())]
    found = imputed.predict_proba(row)[0]
    assert min(np.abs(found - p).max() for p in completed) < 1e-12  # one of the completions, not their average
    np.testing.assert_array_equal(
        imputed.predict_proba(X), OrderAveragedClassifier(random_state=0).fit(X, y).predict_proba(X)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no row is left out
        state = OrderAveragedClassifier(missing="state", random_state=0).fit(holes, y)
    assert "missing" in state.model_.get_cpds("a").state_names["a"]
    marked = holes.astype(object).where(holes.notna(), "missing")
    plain = OrderAveragedClassifier(
        random_state=0, state_names={name: [*sorted(X[name].unique() * 1.0), "missing"] for name in X}
    ).fit(marked, y)
    np.testing.assert_allclose(state.predict_proba(holes), plain.predict_proba(marked), atol=ATOL)
    with pytest.warns(UserWarning, match="rows have missing values"):
        OrderAveragedClassifier(missing="drop", random_state=0).fit(holes, y)
    with pytest.raises(ValueError, match="every row has a missing value"):
        OrderPosterior(missing="drop").fit(pd.DataFrame({"a": [0, 1, None], "b": [None, None, 1]}))


def started(init):
    return {"method": "mcmc", "sampler": GibbsSampler(init=init)}


@pytest.mark.filterwarnings("ignore:.*the chains have not converged")  # short runs
def test_constraints_by_name():
    X, y = frame()
    knowledge = {"required_edges": [("out", "a")], "forbidden_edges": [("c", "d"), ("d", "c")]}
    gibbs = {"structure_weighting": "dag", "sampler": GibbsSampler(n_chains=1, max_sweeps=64)}
    for run in ({}, gibbs):
        for method in ("exact", "mcmc"):
            settings = {**QUICK, **run, "expert_knowledge": knowledge, "method": method}
            edges = OrderAveragedClassifier(**settings).fit(X, y).edge_posterior_
            assert edges.loc["out", "a"] == pytest.approx(1.0, abs=ATOL)
            assert edges.loc["c", "d"] == edges.loc["d", "c"] == edges.loc["a", "out"] == 0.0
    cases = [
        ({"required_arcs": [("a", "zz")]}, r"required_arcs names 'zz'"),
        ({"required_arcs": [("a", "b")], "forbidden_arcs": [("a", "b")]}, r"'a' -> 'b' is required, and forbidden"),
        ({"required_arcs": [("a", "b"), ("c", "b")], "max_indegree": 1}, r"gives 'b' 2 parents"),
        (
            {"required_arcs": [("a", "b"), ("b", "c"), ("c", "b")]},
            r"hold a cycle among 'b' -> 'c', 'c' -> 'b'; drop one",
        ),
        ({"required_arcs": 5}, r"required_arcs needs pairs \(parent, child\), got 5"),
        ({"required_arcs": ["ab"]}, r"required_arcs needs pairs \(parent, child\), got 'ab'"),
        ({"forbidden_arcs": [(["a"], "b")]}, r"forbidden_arcs names \['a'\], which is not a variable"),
        (started("abcd"), r"init: an order is a list of all variables, earliest first, got 'abcd'"),
        (started(3), r"init: an order is a list of all variables, earliest first, got 3"),
        (
            {**started(list("bacd")), "required_arcs": [("a", "b")]},
            r"init puts 'a', a required parent of 'b'",
        ),
        ({"sampler": GibbsSampler(checkpoint=3)}, r"checkpoint=3 must be the name of a file"),
        (
            {"sampler": GibbsSampler(checkpoint="no/such/folder/file")},
            r"checkpoint='no/such/folder/file' cannot be written: there is no folder",
        ),
        ({"method": "guess"}, r"method='guess' is not one of"),
        ({"structure_prior": "x"}, r"structure_prior='x' is not one of"),
        ({"sampler": SwapSampler(n_orders=0)}, r"n_orders=0 must be an integer at least 1"),
        (started(["a", "b"]), r"init: an order names every variable once, this one lacks 'c'"),
        ({"sampler": "gibbs"}, r"sampler='gibbs' must be a GibbsSampler or a SwapSampler, or None"),
        (
            {"sampler": SwapSampler(), "structure_weighting": "dag"},
            r"SwapSampler works with structure_weighting='order' only",
        ),
        ({"expert_knowledge": {"required": []}}, r"expert_knowledge has 'required'; its fields are required_edges, "),
        ({"expert_knowledge": 3}, r"expert_knowledge=3 is not an ExpertKnowledge of pgmpy"),
        ({"missing": "ignore"}, r"missing='ignore' is not one of"),
    ]
    for settings, message in cases:
        with pytest.raises(ValueError, match=message):
            OrderPosterior(**settings).fit(X)
    with pytest.raises(ValueError, match="names 'q', which is not a variable"):
        FixedOrderClassifier(["a", "b", "c", "d", "q"]).fit(X, y)
    for orders in ([], 3):
        with pytest.raises(ValueError, match="a list of at least one order"):
            OrderAveragedClassifier(method="given", sampler=GibbsSampler(init=orders)).fit(X, y)
    with pytest.raises(ValueError, match="method='given' takes its orders from sampler=GibbsSampler"):
        OrderAveragedClassifier(method="given", sampler=SwapSampler()).fit(X, y)
    given = {"method": "given", "sampler": GibbsSampler(init=[["a", "b", "c", "d", "out"]])}
    with pytest.raises(ValueError, match="init puts 'out', a required parent of 'a', behind it"):
        OrderAveragedClassifier(**given, expert_knowledge=knowledge).fit(X, y)
    with pytest.raises(ValueError, match="order puts 'out', a required parent of 'a', behind it"):
        FixedOrderClassifier(["a", "b", "c", "d", "out"], expert_knowledge=knowledge).fit(X, y)
    with pytest.raises(ValueError, match=r"reaches 9 variables for predictions, here are 11; pass method='mcmc'"):
        wide = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (20, 10)))
        OrderAveragedClassifier(method="exact", structure_weighting="dag").fit(wide, [0, 1] * 10)


def test_arcs_and_orders_as_arrays_and_sets():
    X, _ = frame()
    arcs = [("d", "a"), ("b", "c")]
    orders = [["d", "a", "b", "c"], ["b", "d", "c", "a"]]
    plain = OrderPosterior(**quick(n_chains=2, init=orders), required_arcs=arcs).fit(X)
    for same in (np.array(arcs), set(arcs), nx.DiGraph(arcs).edges):
        again = OrderPosterior(**quick(n_chains=2, init=np.array(orders)), required_arcs=same).fit(X)
        assert again.orders_ == plain.orders_


def test_methods_before_fit_and_bad_arguments():
    X, _ = frame()
    for call in ("consensus", "sample_dags", "to_arviz"):
        with pytest.raises(NotFittedError):
            getattr(OrderPosterior(), call)()
    with pytest.raises(NotFittedError):
        FixedOrderClassifier().to_network()
    posterior = OrderPosterior(random_state=0).fit(X)
    with pytest.raises(ValueError, match="n_dags=-1 must be an integer at least 0"):
        posterior.sample_dags(-1)
    with pytest.raises(ValueError, match="false_arc=-1 must be a number at least 0"):
        posterior.consensus(false_arc=-1)
    with pytest.raises(ValueError, match="threshold='x' is not one of 'data'"):
        posterior.consensus("x")


# ------------------------------------------------------------------------------------------------ results


@pytest.mark.parametrize("weighting", ["order", "dag"])
def test_sampled_dags_and_ancestors_follow_the_posterior(weighting):
    X, _ = frame()
    posterior = OrderPosterior(structure_weighting=weighting, sampler=GibbsSampler(n_orders=400), random_state=0).fit(X)
    networks = posterior.sample_dags(400)
    names = list(X.columns)
    shares = np.zeros((4, 4))
    paths = np.zeros((4, 4))
    for network in networks:
        assert nx.is_directed_acyclic_graph(network)
        shares += nx.to_numpy_array(network, nodelist=names, weight=None) / 400
        for node in names:
            for below in nx.descendants(network, node):
                paths[names.index(node), names.index(below)] += 1 / 400
    assert networks[0].check_model()
    error = 5 * np.sqrt(0.25 / 400)  # five standard errors of a share
    assert np.abs(shares - posterior.edge_posterior_.to_numpy()).max() < error
    ancestors = posterior.ancestor_posterior_
    assert np.abs(paths - ancestors.to_numpy()).max() < error
    assert (ancestors >= posterior.edge_posterior_ - error).all().all()
    again = posterior.sample_dags(3)
    assert [sorted(a.edges) for a in again] == [sorted(a.edges) for a in posterior.sample_dags(3)]


def test_consensus_is_acyclic_and_optimal():
    X, _ = frame(300)
    posterior = OrderPosterior(equivalent_sample_size=1.0, random_state=0).fit(X)
    edges = posterior.edge_posterior_
    for threshold in (0.05, 0.3, 0.5):
        graph = posterior.consensus(threshold)
        assert nx.is_directed_acyclic_graph(graph)
        assert all(p >= threshold for *_, p in graph.edges(data="posterior"))
        assert graph.graph["structure_weighting"] == "order"
    costs = posterior.consensus(false_arc=1.0, missed_arc=4.0)
    assert nx.is_directed_acyclic_graph(costs)

    def loss(arcs):
        p = edges.to_numpy()
        chosen = np.zeros((4, 4), dtype=bool)
        for u, v in arcs:
            chosen[list(X).index(u), list(X).index(v)] = True
        return ((1 - p) * chosen).sum() + 4.0 * (p * ~chosen).sum()

    best = min(loss(subset) for subset in all_dags(list(X)))
    assert loss(costs.edges) == pytest.approx(best, abs=1e-12)
    with pytest.raises(ValueError, match="not both"):
        posterior.consensus(0.5, false_arc=1.0)


def all_dags(names):
    pairs = [(u, v) for u in names for v in names if u != v]
    for mask in range(2 ** len(pairs)):
        arcs = [pair for k, pair in enumerate(pairs) if mask >> k & 1]
        if nx.is_directed_acyclic_graph(nx.DiGraph(arcs)):
            yield arcs


def test_diagnostics_and_disagreement():
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2, (3000, 4))
    noisy = {f"v{k}": np.where(rng.random(3000) < 0.95, base[:, k % 4], rng.integers(0, 2, 3000)) for k in range(12)}
    X = pd.DataFrame(noisy)
    y = pd.Series(base[:, 0], name="y")
    with pytest.warns(UserWarning, match="the chains disagree on"):
        stuck = OrderPosterior(**quick(n_chains=2, n_orders=10, burn_in=0, thin=1), max_indegree=2).fit(X)
    assert stuck.diagnostics_.r_hat.max() > 1.1
    run = quick(n_chains=2, n_orders=50, burn_in=2000, thin=100)
    classifier = OrderAveragedClassifier(**run, max_indegree=2).fit(X.head(60), y.head(60))
    diagnostics = classifier.diagnostics_
    assert set(diagnostics.kind) == {"arc", "class posterior"}
    assert (diagnostics.kind == "arc").sum() == 13 * 12
    arc = diagnostics[diagnostics.what == "v0 -> v4"].iloc[0]
    assert arc["mean"] == pytest.approx(classifier.edge_posterior_.loc["v0", "v4"], abs=1e-12)
    assert OrderPosterior(max_indegree=1, random_state=0).fit(X).diagnostics_.empty  # exact: nothing to diagnose


def old_from_dict(posterior=None, *, coords=None, dims=None):
    return {"posterior": posterior}, coords, dims


def new_from_dict(data, *, coords=None, dims=None):
    return data, coords, dims


@pytest.mark.parametrize("from_dict", [old_from_dict, new_from_dict])
def test_arviz_is_handed_the_chains(from_dict, monkeypatch):
    """Both calling conventions of arviz.from_dict, before and since 1.0."""
    X, _ = frame()
    posterior = OrderPosterior(**quick(n_chains=2)).fit(X)
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(from_dict=from_dict))
    data, coords, dims = posterior.to_arviz()
    assert data["posterior"]["arc"].shape == (2, 40, 4, 4) and data["posterior"]["order_log_score"].shape == (2, 40)
    assert coords["parent"] == list(X.columns) and dims["arc"] == ["parent", "child"]
    np.testing.assert_allclose(data["posterior"]["arc"].mean((0, 1)), posterior.edge_posterior_, atol=1e-12)
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        posterior.to_arviz()


@pytest.fixture
def plain_ctrl_c():
    """SIGINT raises KeyboardInterrupt, whatever the test runner made of it."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals reach the main thread only")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_what_was_sampled(n_jobs, plain_ctrl_c):
    X, _ = frame()
    endless = quick(n_orders=100_000, burn_in=100, thin=10_000, n_chains=2)
    OrderPosterior(**QUICK).fit(X)  # compiled before the clock runs
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        posterior = OrderPosterior(**endless, n_jobs=n_jobs).fit(X)
    timer.join()
    said = [str(each.message) for each in seen]  # the diagnostics of all arcs would take seconds: no second warning
    assert len(said) == 1 and re.match(r"interrupted: \d+ of 100000 orders per chain were kept", said[0])
    kept = len(posterior.orders_) // 2
    assert 0 < kept < 100_000 and posterior.edge_posterior_.to_numpy().max() <= 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the chains disagree")  # on five orders
        whole = OrderPosterior(**endless).set_params(sampler__n_orders=min(kept, 5)).fit(X)
    assert whole.orders_[: min(kept, 5)] == posterior.orders_[: min(kept, 5)]


def scikit_learn_checks():
    for _, check in estimator_checks_generator(OrderPosterior(**QUICK), mark=None):
        yield pytest.param(check, id=getattr(check, "func", check).__name__)


@pytest.mark.parametrize("check", list(scikit_learn_checks()))
def test_scikit_learn_check_of_the_posterior(check):
    check(OrderPosterior(**quick(n_orders=5)))


def test_explain_adds_up_and_pickles_are_equal():
    X, y = frame()
    for classifier in (
        FixedOrderClassifier("greedy"),
        OrderAveragedClassifier(**QUICK),
        OrderAveragedClassifier(random_state=0),
    ):
        classifier.fit(X, y)
        evidence = classifier.explain(X.iloc[3])
        total = [classifier.log_joint(X.iloc[[3]], label)[0] for label in classifier.classes_]
        np.testing.assert_allclose(evidence.sum(), total, atol=ATOL)
        assert list(evidence.index) == ["(prior)", "a", "b", "c", "d", "(orders)"]
        copy = pickle.loads(pickle.dumps(classifier))
        np.testing.assert_array_equal(copy.predict_proba(X), classifier.predict_proba(X))
    single = FixedOrderClassifier("greedy").fit(X, y).explain(X.iloc[3])
    np.testing.assert_allclose(single.loc["(orders)"], 0.0, atol=ATOL)


def test_checkpoint_through_the_face(tmp_path):
    X, y = frame()
    run = quick(n_chains=2, checkpoint_every=700)
    plain = OrderAveragedClassifier(**run).fit(X, y)
    file = str(tmp_path / "run")
    kept = OrderAveragedClassifier(**run).set_params(sampler__checkpoint=file)
    first, again = clone(kept).fit(X, y), clone(kept).fit(X, y)
    assert plain.orders_ == first.orders_ == again.orders_
    np.testing.assert_array_equal(plain.predict_proba(X), again.predict_proba(X))
    with pytest.raises(ValueError, match="another run: thin was 50, now it is 60"):
        clone(kept).set_params(sampler__thin=60).fit(X, y)
    pairs = [("a", "b"), ("c", "d")]
    other = clone(kept).set_params(sampler__checkpoint=file + "2")
    arcs = clone(other).set_params(expert_knowledge={"forbidden_edges": pairs}).fit(X, y)
    swapped = clone(other).set_params(expert_knowledge={"forbidden_edges": pairs[::-1]}).fit(X, y)
    assert arcs.orders_ == swapped.orders_  # the same arcs: a set of them is in another order in every process
    with pytest.raises(ValueError, match="another run: data was"):
        clone(kept).fit(X.iloc[1:], y.iloc[1:])
    with pytest.raises(ValueError, match="another run: random_state was"):
        clone(kept).set_params(random_state=1).fit(X, y)


def test_posterior_scores_rows_and_follows_pgmpy():
    X, _ = frame()
    data, cards = coded(X, pd.Series(["no"] * len(X)))
    truth = Problem([row[:4] for row in data], cards[:4], 3)
    posterior = OrderPosterior(random_state=0, **PAPER).fit(X)
    assert posterior.log_joint(X.head(3)).tolist() == pytest.approx(
        [truth.log_joint(row[:4], "order") for row in data[:3]], abs=ATOL
    )
    assert posterior.score(X) == pytest.approx(posterior.score_samples(X).mean())
    gap = X.head(1).astype(float).assign(c=np.nan)
    full = [truth.log_joint([*data[0][:2], c, data[0][3]], "order") for c in range(3)]
    assert posterior.log_joint(gap)[0] == pytest.approx(log_sum(full), abs=ATOL)
    assert set(posterior.causal_graph_.nodes) == set(X.columns)
    assert type(posterior.causal_graph_).__name__ == "DAG"
    assert "exact over orders" in repr(posterior)


# ------------------------------------------------------------------------------------------------ Markov blanket


def figure_1():
    """A network in which C has the blanket of the paper's Fig. 1, and the two hidden members have what lies behind them."""
    arcs = "f1 f4, f2 f5, f3 f5, f6 f5, f4 C, f5 C, C f8, C f9, f7 f8, f10 f9, f8 f11"
    return nx.DiGraph([tuple(arc.split()) for arc in arcs.split(", ")])


def test_effective_markov_blanket_of_figure_1():
    graph = figure_1()
    blanket = {"f4", "f5", "f7", "f8", "f9", "f10"}
    assert effective_markov_blanket(graph, "C") == blanket
    wider = effective_markov_blanket(graph, "C", ["f5", "f8"])
    assert wider == blanket - {"f5", "f8"} | {"f2", "f3", "f6", "f11"}
    assert len(wider) == 8  # as the paper says: from six to eight
    with pytest.raises(ValueError, match="not a node"):
        effective_markov_blanket(graph, "D")
    with pytest.raises(ValueError, match="cannot be among the unobserved"):
        effective_markov_blanket(graph, "C", ["C"])


def test_blanket_of_a_pgmpy_network():
    model = pgm_bma.load_network("cancer")
    assert effective_markov_blanket(model, "Cancer") == {"Pollution", "Smoker", "Xray", "Dyspnoea"}
    assert effective_markov_blanket(model, "Xray", ["Cancer"]) == {"Pollution", "Smoker", "Dyspnoea"}
