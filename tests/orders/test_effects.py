"""Draws of DAGs, parent sets and the effects of setting a variable, against all DAGs of four variables."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgm_bma import FamilyScore, GibbsSampler, OrderPosterior
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


@pytest.mark.parametrize(
    "settings", [{}, {"max_indegree": 1}, {"required_arcs": [("b", "d")], "forbidden_arcs": [("a", "b")]}]
)
@each_weighting
def test_ancestors_are_summed_over_more_dags_than_can_be_written_out(weighting, settings, monkeypatch):
    """All 29,281 DAGs of five variables; for eight, where there are 8 x 10^11, within 4.5 standard errors of 1000 draws."""
    rng = np.random.default_rng(3)
    for n in (5, 8):
        codes = rng.integers(0, 2, (150, n))
        for v in range(2, n):
            codes[:, v] = np.where(rng.random(150) < 0.6, codes[:, v - 2], codes[:, v])
        X = pd.DataFrame(codes, columns=list("abcdefgh")[:n])
        posterior = OrderPosterior(structure_weighting=weighting, random_state=0, **settings).fit(
            X, interventions=np.where(rng.random(150) < 0.2, "c", None)
        )
        found, sample = posterior.ancestor_posterior_, posterior._dags()
        paths = dags.paths(dags.arcs(sample.parents))
        assert found.attrs["n_dags"] is None and found.attrs["monte_carlo_error"] == 0.0
        assert (sample.states is None) == (n == 5)
        bound = 1e-9 if n == 5 else 4.5 * sample.error(paths)
        np.testing.assert_allclose(found, sample.share(paths), atol=bound)
        assert (found >= posterior.edge_posterior_ - 1e-9).all().all()


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
    sample = other._dags()
    paths = dags.paths(dags.arcs(sample.parents))
    error = sample.error(paths)
    assert len(sample.weights) == 1000 and 0 < error < 0.02
    np.testing.assert_allclose(sample.share(paths), truth.ancestors(), atol=4.5 * error)
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


@each_weighting
def test_chains_go_on_for_more_networks_than_they_kept_orders(weighting):
    sampler = GibbsSampler(tol=0.02, n_orders=1)
    posterior, truth = fitted(weighting, method="mcmc", sampler=sampler)
    assert len(posterior.orders_) == 4
    arcs = np.zeros((4, 4))
    for network in posterior.sample_dags(400):
        for a, b in network.edges:
            arcs[NAMES.index(a), NAMES.index(b)] += 1 / 400
    # 8 sweeps apart draws of four columns are close to independent; from the four kept orders alone they are off by .2 and more
    np.testing.assert_allclose(arcs, truth.arcs(), atol=4.5 * np.sqrt(0.25 / 400))


def test_trees_and_products_give_the_same_effects(monkeypatch):
    posterior, _ = fitted("dag")
    sample = posterior._drawn_dags()
    some = sample._replace(parents=sample.parents[:6], weights=sample.weights[:6])
    assert len(np.unique(some.parents, axis=0)) < 6, "equal DAGs share a tree"
    everything = list(range(4))

    def answers(of, on):
        blocks = list(effects.effect_blocks(posterior._question(some, of, on)))
        places = np.concatenate([places for places, _ in blocks])
        assert sorted(places) == list(range(6))
        return np.concatenate([values for _, values in blocks])[np.argsort(places)]

    by_products = answers(everything, everything)
    monkeypatch.setattr(effects, "MAX_JOINT", 0)
    np.testing.assert_allclose(answers(everything, everything), by_products, atol=1e-12)
    np.testing.assert_allclose(answers([2], [0]), by_products[:, 5:7, :2], atol=1e-12)


@each_weighting
def test_drawn_tables_have_the_spread_of_their_dirichlets_in_trees_too(weighting, monkeypatch):
    posterior, _ = fitted(weighting)
    by_products = posterior.effect("a", "c"), posterior.effects()
    monkeypatch.setattr(effects, "MAX_JOINT", 0)
    by_trees = posterior.effect("a", "c"), posterior.effects()
    for one, other in zip(by_products, by_trees):
        other = other if "do" in one else other.set_index(["of", "on"]).loc[list(zip(one["of"], one["on"]))]
        for column in {"mean", "sd", "low", "high", "size"} & set(one):
            # a thousand draws of values in 0..1: quantiles at 5 and 95 % err by about .01 where the density is near 1
            np.testing.assert_allclose(other[column], one[column], atol=0.05)


def test_all_effects_agree_with_single_ones():
    posterior, truth = fitted("order")
    table = posterior.effects()
    assert list(table.columns) == ["of", "on", "ancestor", "zero", "size", "low", "high", "jensen_shannon"]
    assert len(table) == 12 and np.allclose(table["zero"], 1 - table["ancestor"])
    assert (table["jensen_shannon"] <= np.log(2) * table["size"] + 1e-9).all()  # of any two distributions
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


@each_weighting
@pytest.mark.parametrize("ess", [None, 2.0])
def test_adjustment_for_parents_equals_enumeration(weighting, ess):
    posterior, truth = fitted(weighting, equivalent_sample_size=ess)
    targets = numbers(experiment()[2])
    for x, y in ((0, 2), (2, 0), (1, 3)):
        found = posterior.effect(NAMES[x], NAMES[y], adjust_for="parents")
        np.testing.assert_allclose(found["mean"], np.ravel(truth.adjusted(x, y, targets)), atol=1e-9)
        assert ((found["low"] <= found["mean"]) & (found["mean"] <= found["high"])).all()
        # 1000 draws: their mean is within 5 standard errors
        drawn = posterior._adjusted(x, y)[1]
        np.testing.assert_allclose(drawn.mean(0).ravel(), found["mean"], atol=5 * drawn.std(0).max() / np.sqrt(1000))


def test_soft_interventions_have_the_effects_of_enumeration():
    codes, cards, targets = experiment()
    posterior = OrderPosterior(**FREE).fit(frame_of(codes, cards), interventions=targets, intervention_type="soft")
    truth = Experiment(codes.tolist(), cards, numbers(targets), "order", soft=True)
    np.testing.assert_allclose(posterior.effect("a", "c")["mean"], np.ravel(truth.effect(0, 2)), atol=1e-9)


def test_contrasts():
    posterior, truth = fitted("order")
    want = np.array(truth.effect(1, 2))  # b has the states 0, 1, 2; c has 0, 1
    plain = posterior.effect("b", "c")
    difference = posterior.effect("b", "c", contrast="difference")
    assert list(difference.columns) == ["do", "against", "outcome", "mean", "sd", "low", "high"]
    assert list(zip(difference["do"], difference["against"], difference["outcome"])) == [
        (b, a, k) for b, a in ((1, 0), (2, 0), (2, 1)) for k in (0, 1)
    ]
    np.testing.assert_allclose(
        difference["mean"], np.ravel([want[1] - want[0], want[2] - want[0], want[2] - want[1]]), atol=1e-9
    )
    means = posterior.effect("b", "c", contrast="mean")  # a binary outcome: the difference of P(c = 1)
    np.testing.assert_allclose(means["mean"], difference["mean"][1::2], atol=1e-9)
    np.testing.assert_allclose(means["sd"], difference["sd"][1::2], atol=1e-12)
    ratio = posterior.effect("b", "c", contrast="ratio")
    rough = (want[1] / want[0])[1]
    assert ratio["mean"][1] == pytest.approx(rough, rel=0.3) and ratio["low"][1] < rough < ratio["high"][1]
    assert plain.attrs["zero"] == pytest.approx(1 - plain.attrs["ancestor"])
    with pytest.raises(ValueError, match="contrast='rate' is not one of"):
        posterior.effect("b", "c", contrast="rate")
    X = pd.DataFrame({"a": list("xyxy") * 5, "b": list("uuvv") * 5})
    with pytest.raises(ValueError, match="'b' has the states"):
        OrderPosterior().fit(X).effect("a", "b", contrast="mean")


def test_effects_among_rows_that_show_a_state(monkeypatch):
    """With tables so sure that nothing varies, P(c | do(a), d) is the ratio in the truncated network."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 60_000))
    c = np.where(rng.random(60_000) < np.array([[0.2, 0.5], [0.6, 0.9]])[a, b], 1, 0)
    d = np.where(rng.random(60_000) < np.array([0.3, 0.8])[b], 1, 0)
    X = pd.DataFrame({"a": a, "b": b, "c": c, "d": d})
    arcs = [("a", "c"), ("b", "c"), ("b", "d")]
    posterior = OrderPosterior(required_arcs=arcs, random_state=0).fit(X)
    p_b = np.array([0.3, 0.8]) / 1.1  # P(b | d = 1)
    want = [0.2 * p_b[0] + 0.5 * p_b[1], 0.6 * p_b[0] + 0.9 * p_b[1]]
    for limit in (4096, 0):
        monkeypatch.setattr(effects, "MAX_JOINT", limit)
        found = posterior.effect("a", "c", {"d": 1})
        np.testing.assert_allclose(found["mean"][1::2], want, atol=0.015)  # rows: a standard error of .003
    with pytest.raises(ValueError, match="which is on already"):
        posterior.effect("a", "c", given={"c": 1})
    with pytest.raises(ValueError, match="not a state of it"):
        posterior.effect("a", "c", given={"d": 2})


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
    with pytest.raises(ValueError, match="of='z' is not a variable"):
        posterior.effect("z", "a")
    with pytest.raises(ValueError, match="two different"):
        posterior.effect("a", "a")
    with pytest.raises(ValueError, match="node='z' is not a variable"):
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


def test_one_of_pgmpys_structure_learners():
    from pgmpy.causal_discovery import HillClimbSearch
    from sklearn.base import clone

    base = next(kind for kind in HillClimbSearch.__mro__ if kind.__name__.endswith("BaseCausalDiscovery"))
    posterior, _ = fitted("order")
    assert isinstance(posterior, base) and isinstance(clone(posterior), base)
    graph = posterior.causal_graph_
    assert posterior.score(true_graph=graph) == 0  # pgmpy's default, a distance
    assert set(zip(*np.nonzero(posterior.adjacency_matrix_.to_numpy()))) == {
        (NAMES.index(a), NAMES.index(b)) for a, b in graph.edges
    }


def test_structure_score_has_the_family_scores_of_the_posterior():
    codes, cards, targets = experiment()
    X = frame_of(codes, cards)
    states = {name: list(range(card)) for name, card in zip(NAMES, cards)}
    for ess, kind in ((None, "perfect"), (2.0, "perfect"), (2.0, "soft")):
        posterior = OrderPosterior(**FREE, equivalent_sample_size=ess)
        posterior.fit(X, interventions=targets, intervention_type=kind)
        score = FamilyScore(
            X, equivalent_sample_size=ess, state_names=states, interventions=targets, intervention_type=kind
        )
        for row in posterior.family_scores_.itertuples():
            # eight digits: equal scores are equal
            assert score.local_score(row.child, row.parents) == pytest.approx(row.log_marginal_likelihood, abs=1e-8)
    weights = np.arange(len(X)) % 3
    again = np.repeat(np.arange(len(X)), weights)
    weighted = FamilyScore(X, sample_weight=weights, state_names=states)
    assert weighted.local_score("b", ("a", "d", "c")) == pytest.approx(
        FamilyScore(X.iloc[again], state_names=states).local_score("b", ("a", "d", "c")), abs=1e-8
    )


def test_structure_score_is_pgmpys_bdeu_and_serves_its_searches():
    from pgmpy.causal_discovery import GES, HillClimbSearch
    from pgmpy.structure_score import BDeu

    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 400)
    b = np.where(rng.random(400) < 0.8, a, 1 - a)
    X = pd.DataFrame({"a": a, "b": b, "c": rng.integers(0, 30, 400), "d": rng.integers(0, 30, 400)}).astype("category")
    ours, theirs = FamilyScore(X, equivalent_sample_size=5), BDeu(X, equivalent_sample_size=5)
    for child, parents in (("a", ()), ("a", ("b",)), ("b", ("c", "d")), ("c", ("d", "a", "b"))):
        assert ours.local_score(child, parents) == pytest.approx(theirs.local_score(child, parents), abs=1e-7)
    set_b = np.arange(400) < 150
    X.loc[set_b, "b"] = rng.integers(0, 2, 150)
    score = FamilyScore(X, equivalent_sample_size=5, interventions=np.where(set_b, "b", None))
    climbed = HillClimbSearch(scoring_method=score, return_type="dag", show_progress=False).fit(X)
    assert ("a", "b") in climbed.causal_graph_.edges
    (found,) = GES(scoring_method=score, return_type="dag").fit(X).causal_graph_.edges
    assert set(found) == {"a", "b"}
    with pytest.raises(ValueError, match="cells are missing"):
        FamilyScore(X.astype(object).mask(X == 29))
    with pytest.raises(ValueError, match="'z' is not a column"):
        score.local_score("a", ("z",))
