"""Draws of DAGs, parent sets and the effects of setting a variable, against all DAGs of four variables."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgm_bma import GibbsSampler, OrderPosterior
from pgm_bma.orders import dags, effects
from tests.oracles.causal import Experiment, is_ancestor
from tests.orders.test_interventions import FREE, NAMES, each_weighting, experiment, frame_of, numbers

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "causal.json").read_text())["cases"]


def fitted(weighting, seed=0, **settings):
    codes, cards, targets = experiment(seed)
    posterior = OrderPosterior(**{**FREE, "structure_weighting": weighting, **settings})
    posterior.fit(frame_of(codes, cards), interventions=targets)
    truth = Experiment(codes.tolist(), cards, numbers(targets), weighting, ess=settings.get("equivalent_sample_size"))
    return posterior, truth


def as_sets(frame):
    return {tuple(NAMES.index(name) for name in z): p for z, p in zip(frame["parents"], frame["probability"])}


@each_weighting
@pytest.mark.parametrize("case", VECTORS, ids=lambda case: f"seed{case['seed']}")
def test_vectors(case, weighting):
    targets = [None if t < 0 else NAMES[t] for t in case["target"]]
    settings = {**FREE, "equivalent_sample_size": case["ess"], "structure_weighting": weighting}
    posterior = OrderPosterior(**settings).fit(frame_of(np.array(case["X"]), case["cards"]), interventions=targets)
    want = case[weighting]
    np.testing.assert_allclose(posterior.ancestor_posterior_, want["ancestors"], atol=1e-9)
    for v, sets in enumerate(want["parent_sets"]):
        found = as_sets(posterior.parent_set_posterior(NAMES[v]))
        listed = {tuple(int(p) for p in key.split(",") if p): p for key, p in sets.items()}
        assert found.keys() == listed.keys()
        np.testing.assert_allclose([found[z] for z in listed], list(listed.values()), atol=1e-9)
    for x, y in ((0, 2), (3, 0), (2, 1)):
        found = posterior.effect(NAMES[x], NAMES[y])
        shape = case["cards"][x], case["cards"][y]
        wanted = [[want["do_mean"][str(x)][s][y][k] for k in range(shape[1])] for s in range(shape[0])]
        np.testing.assert_allclose(found["mean"].to_numpy().reshape(shape), wanted, atol=1e-9)


@each_weighting
@pytest.mark.parametrize("ess", [None, 2.0])
def test_sums_over_dags_equal_enumeration(weighting, ess):
    posterior, truth = fitted(weighting, equivalent_sample_size=ess)
    np.testing.assert_allclose(posterior.ancestor_posterior_, truth.ancestors(), atol=1e-9)
    assert posterior.ancestor_posterior_.attrs["monte_carlo_error"] == 0.0
    for v in range(4):
        frame = posterior.parent_set_posterior(NAMES[v])
        assert (np.diff(frame["probability"]) <= 0).all()
        found, want = as_sets(frame), truth.parent_sets(v)
        assert found.keys() == want.keys()
        np.testing.assert_allclose([found[z] for z in want], list(want.values()), atol=1e-9)
    for x, y in ((0, 2), (2, 0), (1, 3)):
        found = posterior.effect(NAMES[x], NAMES[y])
        np.testing.assert_allclose(found["mean"], np.ravel(truth.effect(x, y)), atol=1e-9)
        assert found.groupby("do")["mean"].sum().to_numpy() == pytest.approx(1.0)
        assert ((found["low"] <= found["mean"]) & (found["mean"] <= found["high"])).all()
        assert found.attrs["ancestor"] == pytest.approx(truth.share(lambda dag: is_ancestor(dag, x, y)), abs=1e-9)  # noqa: B023


@each_weighting
def test_every_exact_draw_is_a_draw(weighting, monkeypatch):
    """4000 draws: every share within 4.5 standard errors, which 30 kept orders in turn miss by far."""
    posterior, truth = fitted(weighting)
    drawn = dags.draw(posterior._average, posterior._mixture, 4000, np.random.default_rng(0))
    arcs = dags.arcs(drawn)
    np.testing.assert_allclose(arcs.mean(0), truth.arcs(), atol=4.5 * np.sqrt(0.25 / 4000))
    np.testing.assert_allclose(dags.paths(arcs).mean(0), truth.ancestors(), atol=4.5 * np.sqrt(0.25 / 4000))
    monkeypatch.setattr(dags, "MAX_ENUMERATED", 3)
    other, _ = fitted(weighting)
    ancestors = other.ancestor_posterior_
    assert ancestors.attrs["n_dags"] == 1000 and 0 < ancestors.attrs["monte_carlo_error"] < 0.02
    np.testing.assert_allclose(ancestors, truth.ancestors(), atol=4.5 * ancestors.attrs["monte_carlo_error"])
    blanket = other.markov_blanket_posterior("a")
    np.testing.assert_allclose(blanket, posterior.markov_blanket_posterior("a"), atol=0.08)
    for x, y in ((0, 2), (2, 1)):
        np.testing.assert_allclose(other.effect(NAMES[x], NAMES[y])["mean"], np.ravel(truth.effect(x, y)), atol=0.05)


@each_weighting
def test_networks_drawn_are_those_draws(weighting):
    posterior, truth = fitted(weighting)
    networks = posterior.sample_dags(300)
    arcs = np.zeros((4, 4))
    for network in networks:
        for a, b in network.edges:
            arcs[NAMES.index(a), NAMES.index(b)] += 1 / 300
    np.testing.assert_allclose(arcs, truth.arcs(), atol=4.5 * np.sqrt(0.25 / 300))
    assert len({tuple(sorted(network.edges)) for network in networks}) > 30


@pytest.mark.parametrize(
    "settings", [{}, {"max_indegree": 2, "forbidden_arcs": [("a", "b")], "required_arcs": [("c", "d")]}]
)
@each_weighting
def test_enumerated_dags_have_the_exact_arcs(weighting, settings):
    posterior, _ = fitted(weighting, **settings)
    sample = posterior._dags()
    np.testing.assert_allclose(sample.share(dags.arcs(sample.parents)), posterior.edge_posterior_, atol=1e-9)
    for v, name in enumerate(NAMES):
        found = as_sets(posterior.parent_set_posterior(name))
        for z, p in found.items():
            holds = [dags.as_tuples(parents)[v] == z for parents in sample.parents]
            assert p == pytest.approx(sample.share(np.array(holds)), abs=1e-9)


def test_chains_have_parent_sets_ancestors_and_effects():
    sampler = GibbsSampler(tol=0.02, n_orders=250)
    posterior, truth = fitted("order", method="mcmc", sampler=sampler)
    ancestors = posterior.ancestor_posterior_
    assert 0 < ancestors.attrs["monte_carlo_error"] < 0.03
    np.testing.assert_allclose(ancestors, truth.ancestors(), atol=0.08)
    found = as_sets(posterior.parent_set_posterior("c"))
    assert sum(found.values()) == pytest.approx(1.0)
    for z, p in truth.parent_sets(2).items():
        assert found.get(z, 0.0) == pytest.approx(p, abs=0.05)
    np.testing.assert_allclose(posterior.effect("a", "c")["mean"], np.ravel(truth.effect(0, 2)), atol=0.05)


def test_trees_and_products_give_the_same_effects(monkeypatch):
    posterior, _ = fitted("dag")
    sample = posterior._drawn_dags()
    some = sample._replace(parents=sample.parents[:6], weights=sample.weights[:6])
    everything = list(range(4))
    answers = []
    for limit in (4096, 0):
        monkeypatch.setattr(effects, "MAX_JOINT", limit)
        blocks = effects.effect_blocks(posterior._question(some, everything, everything))
        answers.append(np.concatenate([values for _, values in blocks]))
    np.testing.assert_allclose(answers[1], answers[0], atol=1e-12)
    blocks = effects.effect_blocks(posterior._question(some, [2], [0]))
    np.testing.assert_allclose(np.concatenate([v for _, v in blocks]), answers[0][:, 5:7, :2], atol=1e-12)


def test_all_effects_agree_with_single_ones():
    posterior, truth = fitted("order")
    table = posterior.effects()
    assert list(table.columns) == ["of", "on", "ancestor", "size", "low", "high"] and len(table) == 12
    assert (np.diff(table["size"]) <= 0).all()
    ancestors = truth.ancestors()
    for row in table.itertuples():
        assert row.ancestor == pytest.approx(ancestors[NAMES.index(row.of)][NAMES.index(row.on)], abs=1e-9)
        assert 0 <= row.low <= row.high <= 1
        assert row.size <= row.ancestor + 4.5 * np.sqrt(0.25 / 1000)  # no path, no effect
    single = posterior.effect("a", "b")
    means = single["mean"].to_numpy().reshape(2, 3)
    size = table.set_index(["of", "on"]).loc[("a", "b"), "size"]
    assert size >= np.abs(means[0] - means[1]).sum() / 2 - 0.03  # total variation is convex


def test_intervals_hold_the_truth():
    """Networks a -> b with tables from the prior, a third of the rows with a variable set: 90 % intervals of P(b | do(a))."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(60):
        p, q = rng.random(), rng.random(2)
        set_a, set_b = rng.random(60) < 0.2, rng.random(60) < 0.2
        a = np.where(set_a, rng.integers(0, 2, 60), rng.random(60) < p).astype(int)
        b = np.where(set_b, rng.integers(0, 2, 60), rng.random(60) < q[a]).astype(int)
        targets = [[name for name, yes in zip("ab", pair) if yes] for pair in zip(set_a, set_b)]
        X = pd.DataFrame({"a": pd.Categorical(a, [0, 1]), "b": pd.Categorical(b, [0, 1])})
        posterior = OrderPosterior(**FREE, required_arcs=[("a", "b")]).fit(X, interventions=targets)
        found = posterior.effect("a", "b")
        ones = found[found["outcome"] == 1]
        inside += list((ones["low"].to_numpy() <= q) & (q <= ones["high"].to_numpy()))
    assert 0.82 <= np.mean(inside) <= 0.97  # 120 intervals: three standard errors are .08


def test_effects_with_missing_values():
    codes, cards, _ = experiment(n_rows=80)
    X = frame_of(codes, cards).astype(object)
    X.loc[::7, "b"] = None
    posterior = OrderPosterior(random_state=0, sampler=GibbsSampler(max_sweeps=80, n_orders=10)).fit(X)
    found = posterior.effect("a", "b")
    assert found.groupby("do")["mean"].sum().to_numpy() == pytest.approx(1.0)
    assert len(posterior.effects()) == 12


def test_errors_name_the_variables():
    posterior, _ = fitted("order")
    with pytest.raises(ValueError, match="of='z' is no variable"):
        posterior.effect("z", "a")
    with pytest.raises(ValueError, match="two different"):
        posterior.effect("a", "a")
    with pytest.raises(ValueError, match="node='z' is no variable"):
        posterior.parent_set_posterior("z")
    with pytest.raises(ValueError, match="level"):
        posterior.effects(level=2)


def test_consensus_is_a_dag_of_pgmpy():
    from pgmpy.base import DAG
    from pgmpy.metrics import SHD

    posterior, _ = fitted("order")
    graph = posterior.consensus(0.3)
    assert isinstance(graph, DAG) and list(graph.nodes) == NAMES
    for a, b, data in graph.edges(data=True):
        assert data["posterior"] == posterior.edge_posterior_.loc[a, b]
    assert graph.graph["structure_weighting"] == "order"
    assert list(posterior.consensus(1.0).nodes) == NAMES
    assert SHD()(graph, graph) == 0
