"""EM for any network: the room and its pgmpy face against all completions of every row."""

import json
from math import prod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.base import DAG
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork
from sklearn.exceptions import ConvergenceWarning

import pgm_bma
from pgm_bma import EMEstimator
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.networks.em import expected_family_counts, fit_network, flatten, relabel
from pgm_bma.networks.evidence import ImpossibleEvidence
from pgm_bma.networks.junction_tree import CliqueTooLarge
from tests.networks.test_junction_tree import coupled_latents, plain, random_network, random_rows
from tests.oracles import network_em as oracle

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # many runs are cut short
SEEDS = st.integers(0, 2**32 - 1)
VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "ema.json").read_text())["cases"]


# --------------------------------------------------------------------------------------------------- the room


@settings(max_examples=80, deadline=None)
@given(SEEDS)
def test_expected_counts_equal_the_sum_over_all_completions(seed):
    rng = np.random.default_rng(seed)
    cards, parents, cpts = random_network(rng)
    codes = random_rows(rng, cards)
    weights = rng.random(len(codes)) + 0.1
    counts, log_likelihood = expected_family_counts(codes, cards, parents, cpts, weights)
    arguments = (codes.tolist(), cards, parents, plain(cpts), weights)
    expected = oracle.expected_counts(*arguments)
    # a few thousand rounded products and sums
    np.testing.assert_allclose(flatten(counts), flatten([np.array(t) for t in expected]), atol=1e-12)
    assert log_likelihood == pytest.approx(oracle.log_likelihood(*arguments), abs=1e-11)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_counts_of_families_that_the_network_does_not_have(seed):
    rng = np.random.default_rng(seed)
    cards, parents, cpts = random_network(rng)
    codes = random_rows(rng, cards)
    wanted = []
    for child in range(len(cards)):
        others = [v for v in range(len(cards)) if v != child]
        chosen = rng.choice(others, size=min(2, len(others)), replace=False).tolist() if others else []
        wanted.append((child, tuple(chosen)))
    counts, _ = expected_family_counts(codes, cards, parents, cpts, families=wanted)
    for (child, others), table in zip(wanted, counts):
        expected = np.zeros([*(cards[v] for v in others), cards[child]])
        for row in codes.tolist():
            for full, p in oracle.completion_probabilities(row, cards, parents, plain(cpts)).items():
                expected[(*(full[v] for v in others), full[child])] += p
        np.testing.assert_allclose(table, expected.reshape(-1, cards[child]), atol=1e-12)


def test_many_families_at_once_are_asked_for_in_parts():
    rng = np.random.default_rng(3)
    cards, parents = [2] * 8, [(), *((i,) for i in range(7))]
    cpts = [rng.dirichlet([1, 1], 2 if ps else 1) for ps in parents]
    codes = np.full((1, 8), -1)
    pairs = [(a, (b,)) for a in range(8) for b in range(8) if a != b]  # all at once: one clique of 2**8
    whole, total = expected_family_counts(codes, cards, parents, cpts, families=pairs)
    parts, same = expected_family_counts(codes, cards, parents, cpts, families=pairs, max_clique_size=2**5)
    np.testing.assert_allclose(np.array(parts), np.array(whole), atol=1e-14)
    assert total == pytest.approx(same, abs=1e-14)


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]))
def test_updates_equal_the_oracle_and_climb_the_objective(seed, alpha):
    rng = np.random.default_rng(seed)
    cards, parents, cpts = random_network(rng, n_nodes=5)
    codes = random_rows(rng, cards)
    fixed = [v for v in range(len(cards)) if rng.random() < 0.2]
    weights = rng.random(len(codes)) + 0.1
    fit = fit_network(codes, cards, parents, weights=weights, alpha=alpha, init=cpts, fixed=fixed, max_iter=3, atol=0.0)
    expected = plain(cpts)
    for _ in range(3):
        expected = oracle.em_update(codes.tolist(), cards, parents, expected, alpha, weights, fixed)
    np.testing.assert_allclose(flatten(fit.cpts), flatten([np.array(t) for t in expected]), atol=1e-11)
    assert fit.n_iter == 3 and len(fit.score_path) == 4 and not fit.converged
    # rounding of sums of a dozen logarithms
    assert (np.diff(fit.score_path) >= -1e-10).all()
    assert fit.log_likelihood == pytest.approx(fit.log_likelihood_path[-1], abs=1e-11)
    if not fixed:
        assert fit.score_path[0] == pytest.approx(
            oracle.objective(codes.tolist(), cards, parents, plain(cpts), alpha, weights), abs=1e-9
        )


def test_a_long_run_never_falls_and_ends_at_a_fixed_point():
    rng = np.random.default_rng(5)
    cards, parents = [3, 2, 3, 2, 4, 2], [(), (0,), (0,), (1, 2), (2,), (3, 4)]
    codes = np.stack([rng.integers(0, r, 200) for r in cards], axis=1)
    codes[rng.random(codes.shape) < 0.2] = -1
    codes[:, 2] = -1
    for alpha in (0.0, 1.0):
        fit = fit_network(codes, cards, parents, alpha=alpha, rng=np.random.default_rng(0), max_iter=3000, atol=1e-9)
        assert (np.diff(fit.score_path) >= -1e-9).all()  # 200 logarithms of size 10, rounded
        assert fit.score_path[-1] > fit.score_path[0] + 1
        if fit.converged:
            again = fit_network(codes, cards, parents, alpha=alpha, init=fit.cpts, max_iter=1, atol=0.0)
            assert np.abs(flatten(again.cpts) - flatten(fit.cpts)).max() < 2e-9


def test_complete_data_are_counted_once_and_for_all():
    codes = np.array([[0, 0], [0, 1], [1, 1], [1, 1], [1, 0]])
    fit = fit_network(codes, [2, 3], [(), (0,)], alpha=0.5)
    assert fit.n_iter == 2 and fit.converged  # the second update finds nothing to change
    np.testing.assert_allclose(fit.cpts[0], [[2.5 / 6, 3.5 / 6]], rtol=1e-15)
    np.testing.assert_allclose(fit.cpts[1], [[1.5 / 3.5, 1.5 / 3.5, 0.5 / 3.5], [1.5 / 4.5, 2.5 / 4.5, 0.5 / 4.5]])


def test_relabel_keeps_the_distribution():
    rng = np.random.default_rng(0)
    cards, parents = [2, 3, 2], [(), (0,), (0, 1)]
    cpts = [rng.dirichlet(np.ones(r), prod(cards[p] for p in ps)) for r, ps in zip(cards, parents)]
    order = [2, 0, 1]
    changed = relabel(cpts, parents, cards, 1, order)
    for a in range(2):
        for k in range(3):
            for c in range(2):
                new = oracle.joint((a, k, c), cards, parents, changed)
                assert new == pytest.approx(oracle.joint((a, order[k], c), cards, parents, cpts), rel=1e-15)


# --------------------------------------------------------------------------------------------------- the face


def as_model(cards, parents, latents=()):
    names = [f"n{i}" for i in range(len(cards))]
    model = DiscreteBayesianNetwork()
    model.add_nodes_from(names)
    model.add_edges_from((names[p], names[child]) for child, ps in enumerate(parents) for p in ps)
    model.latents = set(latents)
    return model


def as_cpds(cards, parents, cpts, states):
    """Tables with their parents in reversed order and states as named: the face must sort them out."""
    names = [f"n{i}" for i in range(len(cards))]
    cpds = {}
    for child, (ps, cpt) in enumerate(zip(parents, cpts)):
        values = np.asarray(cpt).reshape([cards[p] for p in ps] + [cards[child]])
        values = values.transpose([len(ps), *range(len(ps))[::-1]])
        back = ps[::-1]
        cpds[names[child]] = TabularCPD(
            names[child],
            cards[child],
            values.reshape(cards[child], -1),
            [names[p] for p in back],
            [cards[p] for p in back],
            state_names={names[v]: states[v] for v in (child, *back)},
        )
    return cpds


def read_back(model, parents, states):
    """Tables of a fitted pgmpy network in the oracle's layout."""
    names = [f"n{i}" for i in range(len(states))]
    tables = []
    for child, ps in enumerate(parents):
        cpd = model.get_cpds(names[child])
        axes = [cpd.variables.index(names[p]) for p in ps] + [0]
        assert list(cpd.state_names[names[child]]) == list(states[child])
        tables.append(np.asarray(cpd.values).transpose(axes).reshape(-1, len(states[child])))
    return tables


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_estimator_equals_enumeration_on_random_networks(seed):
    rng = np.random.default_rng(seed)
    cards, parents, cpts = random_network(rng, n_nodes=5)
    codes = random_rows(rng, cards)
    latent = [v for v in range(len(cards)) if (codes[:, v] < 0).all()]
    if len(latent) == len(cards):
        return
    states = [[f"s{v}{k}" for k in range(r)][::-1] for v, r in enumerate(cards)]
    columns = {
        f"n{v}": [states[v][k] if k >= 0 else None for k in codes[:, v]] for v in range(len(cards)) if v not in latent
    }
    model = as_model(cards, parents, [f"n{v}" for v in latent])
    alpha = float(rng.choice([0.0, 0.5, 1.0]))
    weights = rng.random(len(codes)) + 0.1
    estimator = EMEstimator(
        alpha=alpha,
        init_cpds=as_cpds(cards, parents, cpts, states),
        latent_card={f"n{v}": cards[v] for v in latent},
        n_init=1,
        max_iter=2,
        atol=0,
    )
    model.fit(pd.DataFrame(columns), estimator=estimator, sample_weight=weights)
    expected = plain(cpts)
    for _ in range(2):
        expected = oracle.em_update(codes.tolist(), cards, parents, expected, alpha, weights)
    found = read_back(model, parents, states)
    np.testing.assert_allclose(flatten(found), flatten([np.array(t) for t in expected]), atol=1e-11)
    assert estimator.log_likelihood_ == pytest.approx(
        oracle.log_likelihood(codes.tolist(), cards, parents, expected, weights), abs=1e-10
    )
    assert estimator.log_likelihood_ == pytest.approx(
        pgm_bma.log_likelihood(model, pd.DataFrame(columns), sample_weight=weights), abs=1e-10
    )


def latent_class_cpds(theta_c, theta):
    k = len(theta_c)
    cpds = [TabularCPD("cluster", k, np.array(theta_c)[:, None])]
    for i, table in enumerate(theta):
        cpds.append(TabularCPD(f"x{i}", len(table[0]), np.array(table).T, ["cluster"], [k]))
    return cpds


def naive_bayes(n):
    return DiscreteBayesianNetwork([("cluster", f"x{i}") for i in range(n)], latents={"cluster"})


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
@pytest.mark.parametrize("general", [False, True])
def test_reference_vectors(case, general):
    """Both rooms behind the face: a prior given node by node keeps the latent-class room out."""
    df = pd.DataFrame(case["X"], columns=[f"x{i}" for i in range(case["n"])])
    alpha = dict.fromkeys(["cluster", *df.columns], case["alpha"]) if general else case["alpha"]
    start = latent_class_cpds(case["theta_c0"], case["theta0"])
    if general:  # a start may be a list of tables or a network
        network = naive_bayes(case["n"])
        network.add_cpds(*start)
        start = network
    keywords = {"iter_0": (0, 0.0), "final": (1000, 1e-10)}
    runs = {
        "iter_0": {"theta_c": case["theta_c0"], "theta": case["theta0"], "loglik": case["loglik_theta0"]},
        **case["em"],
    }
    for name, expected in runs.items():
        max_iter, atol = keywords.get(name) or (int(name.removeprefix("iter_")), 0.0)
        estimator = EMEstimator(alpha=alpha, init_cpds=start, n_init=1, max_iter=max_iter, atol=atol)
        model = naive_bayes(case["n"]).fit(df, estimator=estimator)
        np.testing.assert_allclose(model.get_cpds("cluster").values, expected["theta_c"], atol=1e-9)
        for i, table in enumerate(expected["theta"]):
            np.testing.assert_allclose(model.get_cpds(f"x{i}").values.T, table, atol=1e-9)
        assert estimator.log_likelihood_ == pytest.approx(expected["loglik"], abs=1e-9)
        assert len(estimator.score_path_) == estimator.n_iter_ + 1
        if name == "final":
            assert estimator.n_iter_ == expected["iterations"] and estimator.converged_ == expected["converged"]


def clustered(n_rows=300, n_columns=6, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 3, n_rows)
    probability = rng.dirichlet([0.5] * 3, (n_columns, 3))
    columns = {f"x{i}": [f"v{rng.choice(3, p=probability[i, k])}" for k in z] for i in range(n_columns)}
    return pd.DataFrame(columns)


def with_gaps(df, share=0.15, seed=1):
    return df.mask(np.random.default_rng(seed).random(df.shape) < share)


def tables(model):
    return {cpd.variable: np.asarray(cpd.values) for cpd in model.cpds}


def fit_naive_bayes(df, columns=None, **keywords):
    model = DiscreteBayesianNetwork([("cluster", c) for c in columns or df.columns], latents={"cluster"})
    estimator = EMEstimator(latent_card={"cluster": 3}, seed=0, **keywords)
    return model.fit(df, estimator=estimator), estimator


def test_naive_bayes_is_the_latent_class_room():
    df = clustered()
    # the order of the arcs must not matter, as the clusterer never sees it
    model, estimator = fit_naive_bayes(df, columns=list(df.columns)[::-1], n_init=4)
    codes = df.apply(lambda c: c.str[1].astype(int)).to_numpy()
    fit = fit_latent_class(
        table_rows(codes, [3] * 6), 3, rng=np.random.default_rng(0), n_init=4, max_iter=1000, tol=1e-6
    )
    np.testing.assert_allclose(tables(model)["cluster"], fit.theta_c, atol=1e-9)  # folded rows add up in another order
    for i, table in enumerate(fit.tables):
        np.testing.assert_allclose(tables(model)[f"x{i}"].T, table, atol=1e-9)
    assert estimator.log_likelihood_ == pytest.approx(fit.log_likelihood, abs=1e-9)
    general, other = fit_naive_bayes(df, n_init=4, alpha=dict.fromkeys(["cluster", *df.columns], 1.0))
    # a prior by node takes the junction tree and keeps the order of the start: the same clusters, perhaps permuted
    assert other.log_likelihood_ == pytest.approx(estimator.log_likelihood_, abs=1e-9)
    np.testing.assert_allclose(np.sort(tables(general)["cluster"]), np.sort(tables(model)["cluster"]), atol=1e-9)
    np.testing.assert_array_equal(other.starts_["n_iter"], estimator.starts_["n_iter"])


def test_naive_bayes_with_gaps_starts_alike_and_ends_at_the_same_limit():
    """The latent-class room leaves missing cells out of a column's counts: other steps, the same objective."""
    df = with_gaps(clustered())
    model, estimator = fit_naive_bayes(df, n_init=1, max_iter=5000, atol=1e-11)
    codes = df.apply(lambda c: c.str[1].astype(float)).fillna(-1).astype(int).to_numpy()
    fit = fit_latent_class(
        table_rows(codes, [3] * 6), 3, rng=np.random.default_rng(0), n_init=1, max_iter=5000, tol=1e-11
    )
    assert estimator.score_path_[0] == pytest.approx(fit.score_path[0], abs=1e-9)  # bit by bit the same draw
    assert estimator.log_likelihood_ == pytest.approx(fit.log_likelihood, abs=1e-6)  # both stop near the limit
    np.testing.assert_allclose(tables(model)["cluster"], fit.theta_c, atol=1e-5)


def two_latents():
    return DiscreteBayesianNetwork(
        [("h", "x0"), ("h", "x1"), ("g", "x1"), ("g", "x2"), ("x2", "x3"), ("h", "g"), ("x3", "x4"), ("x5", "x4")],
        latents={"h", "g"},
    )


def test_several_latents_with_declared_states_and_gaps():
    df = with_gaps(clustered())
    estimator = EMEstimator(
        state_names={"g": ["low", "mid", "high"]}, latent_card={"h": 4}, n_init=3, seed=1, atol=1e-4
    )
    model = two_latents().fit(df, estimator=estimator)
    assert model.check_model() and model.latents == {"h", "g"}
    assert model.get_cpds("g").state_names["g"] == ["low", "mid", "high"]
    assert model.get_cpds("h").state_names["h"] == [0, 1, 2, 3]
    assert estimator.state_names_["x0"] == ["v0", "v1", "v2"] and list(estimator.state_names_) == list(model.nodes())
    assert [cpd.variable for cpd in estimator.parameters_] == list(model.nodes())
    assert (np.diff(estimator.score_path_) >= -1e-8).all()
    assert len(estimator.starts_) == 3 and estimator.starts_["weight"].sum() == 1
    assert estimator.log_likelihood_ == pytest.approx(estimator.starts_["log_likelihood"].max(), abs=1e-9)
    assert (np.diff(model.get_cpds("h").values) <= 0).all()  # latent states by falling probability
    assert estimator.log_likelihood_ == pytest.approx(pgm_bma.log_likelihood(model, df), abs=1e-8)


def test_weights_are_repetitions_and_threads_change_nothing():
    df = with_gaps(clustered(60))
    weights = np.random.default_rng(3).integers(0, 4, len(df))
    repeated = df.loc[df.index.repeat(weights)]
    keywords = dict(latent_card={"h": 2, "g": 3}, n_init=3, seed=2, max_iter=30)
    weighted = tables(two_latents().fit(df, estimator=EMEstimator(**keywords), sample_weight=weights))
    for other in (
        two_latents().fit(repeated.sample(frac=1, random_state=0), estimator=EMEstimator(**keywords)),
        two_latents().fit(df, estimator=EMEstimator(n_jobs=2, **keywords), sample_weight=weights),
    ):
        for name, table in tables(other).items():
            np.testing.assert_array_equal(table, weighted[name])


def test_a_start_does_not_depend_on_the_number_of_starts():
    df = with_gaps(clustered(60))
    keywords = dict(latent_card={"h": 2, "g": 3}, seed=2, max_iter=20)
    few, many = EMEstimator(n_init=2, **keywords), EMEstimator(n_init=5, **keywords)
    two_latents().fit(df, estimator=few)
    two_latents().fit(df, estimator=many)
    pd.testing.assert_frame_equal(few.starts_.drop(columns="weight"), many.starts_[:2].drop(columns="weight"))


def test_fixed_tables_stay_and_priors_by_node_are_used():
    df = with_gaps(clustered())
    known = TabularCPD("h", 2, [[0.3], [0.7]])
    noisy = TabularCPD(
        "x0", 3, [[0.8, 0.1], [0.1, 0.1], [0.1, 0.8]], ["h"], [2], state_names={"x0": ["v0", "v1", "v2"], "h": [0, 1]}
    )
    pseudo = np.arange(6.0).reshape(3, 2)
    estimator = EMEstimator(
        latent_card={"g": 2}, fixed_cpds=[known, noisy], alpha={"x2": pseudo, "x3": 0.0}, n_init=2, seed=0
    )
    model = two_latents().fit(df, estimator=estimator)
    np.testing.assert_array_equal(model.get_cpds("h").values, [0.3, 0.7])
    np.testing.assert_allclose(model.get_cpds("x0").values, noisy.values, rtol=1e-15)
    # at the fixed point theta = (counts + alpha) / total, with pgmpy's layout for the array
    states = estimator.state_names_
    names = ["h", "g", *df.columns]
    built = {cpd.variable: cpd for cpd in estimator.parameters_}
    parents = [tuple(names.index(p) for p in built[n].variables[1:]) for n in names]
    cpts = [built[n].get_values().T for n in names]
    codes = np.full((len(df), 8), -1)
    for i, c in enumerate(df.columns):
        codes[:, i + 2] = df[c].map({s: k for k, s in enumerate(states[c])}).fillna(-1)
    counts, _ = expected_family_counts(codes, [len(states[n]) for n in names], parents, cpts)
    expected = counts[names.index("x2")] + pseudo.T
    np.testing.assert_allclose(built["x2"].get_values().T, expected / expected.sum(axis=1, keepdims=True), atol=1e-5)


def test_equivalent_sample_size_spreads_over_every_table():
    df = pd.DataFrame({"a": [0, 0, 1], "b": [0, 1, 2]})
    estimator = EMEstimator(equivalent_sample_size=6).fit(DiscreteBayesianNetwork([("a", "b")]), df)
    np.testing.assert_allclose(estimator.parameters_[0].values, [5 / 9, 4 / 9])
    np.testing.assert_allclose(estimator.parameters_[1].values.T, [[2 / 5, 2 / 5, 1 / 5], [1 / 4, 1 / 4, 2 / 4]])
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        EMEstimator(max_iter=1, n_init=1, seed=0).fit(two_latents(), clustered(20))


def test_both_faces_give_the_same_tables():
    df = clustered(200)
    model, estimator = fit_naive_bayes(df)
    clusterer = pgm_bma.LatentClassClusterer(
        n_clusters=3, starts=pgm_bma.Starts(n_final=None, accelerate=False), random_state=0
    ).fit(df)
    for name, table in tables(clusterer.model_).items():
        np.testing.assert_array_equal(tables(model)[name], table)
    assert estimator.log_likelihood_ == clusterer.log_likelihood_ and estimator.n_iter_ == clusterer.n_iter_
    np.testing.assert_array_equal(estimator.score_path_, clusterer.score_path_)


def test_maximum_likelihood_equals_pgmpys_em_from_the_same_start():
    from pgmpy.parameter_estimator import DiscreteEM

    df = clustered(40, 3)
    edges = [("h", "x0"), ("h", "x1"), ("x1", "x2"), ("h", "x2")]
    model = DiscreteBayesianNetwork(edges, latents={"h"})
    start = {}
    for seed, (node, parents) in enumerate([("h", []), ("x0", ["h"]), ("x1", ["h"]), ("x2", ["x1", "h"])]):
        cards = {"h": 2, "x0": 3, "x1": 3, "x2": 3}
        names = {v: list(range(2)) if v == "h" else ["v0", "v1", "v2"] for v in [node, *parents]}
        start[node] = TabularCPD.get_random(node, parents, {v: cards[v] for v in names}, state_names=names, seed=seed)
    theirs = model.copy().fit(df, estimator=DiscreteEM(init_cpds=start, max_iter=3, atol=0, show_progress=False))
    ours = model.copy().fit(df, estimator=EMEstimator(alpha=0, init_cpds=start, n_init=1, max_iter=3, atol=0))
    for name, table in tables(ours).items():
        np.testing.assert_allclose(table, tables(theirs)[name], atol=1e-9)


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_a_plain_dag_without_latents_and_with_gaps():
    df = with_gaps(clustered(100, 3), 0.3).assign(extra="ignored", one="always")
    estimator = EMEstimator(seed=0).fit(DAG([("x0", "x1"), ("x1", "x2"), ("x2", "one")]), df)
    assert len(estimator.starts_) == 1  # nothing is latent: one start, from the complete cases
    assert {cpd.variable for cpd in estimator.parameters_} == {"x0", "x1", "x2", "one"}
    again = EMEstimator(seed=0, n_init=6, atol=1e-9).fit(DAG([("x0", "x1"), ("x1", "x2"), ("x2", "one")]), df)
    # the later starts are drawn; here they all find the same optimum
    assert np.ptp(again.starts_["objective"]) < 1e-4 and again.starts_["n_iter"].nunique() > 1


def test_unseen_states_categoricals_and_zero_weights():
    df = pd.DataFrame({"a": pd.Categorical(["p", "q", None], categories=["q", "r", "p"]), "b": [1, 2, 3]})
    estimator = EMEstimator(state_names={"b": [3, 2, 1, 0]}, alpha=1)
    estimator.fit(DiscreteBayesianNetwork([("a", "b")]), df, sample_weight=[1, 1, 0])
    assert estimator.state_names_ == {"a": ["q", "r", "p"], "b": [3, 2, 1, 0]}
    np.testing.assert_allclose(estimator.parameters_[0].values, [0.4, 0.2, 0.4])


@pytest.mark.parametrize(
    "keywords, message",
    [
        ({"latent_card": {"nobody": 2}}, "latent_card names 'nobody'"),
        ({"latent_card": {"h": 0}}, r"latent_card\['h'\]=0"),
        ({"latent_card": 3}, "latent_card=3 must be a dict"),
        ({"state_names": [1]}, "state_names must be a dict"),
        ({"init_cpds": 3}, "init_cpds holds a int"),
        ({"latent_card": {"h": 3}, "state_names": {"h": ["a", "b"]}}, "gives 'h' 3 states, but 2 are declared"),
        ({"state_names": {"nobody": [1]}}, "state_names declares 'nobody'"),
        ({"alpha": -1}, "alpha of 'h'"),
        ({"alpha": "one"}, r"alpha\['h'\]='one' must be a number"),
        ({"alpha": {"nobody": 1}}, "alpha names 'nobody'"),
        ({"alpha": {"x0": np.ones((2, 2))}}, r"alpha\['x0'\] has shape \(2, 2\)"),
        ({"combine_starts": "uniform"}, "use combine_starts='best'"),
        ({"combine_starts": "worst"}, "combine_starts='worst'"),
        ({"max_iter": -1}, "max_iter=-1"),
        ({"n_init": 0}, "n_init=0"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"collapse": "never"}, "collapse='never'"),
        ({"alpha": 2.0, "equivalent_sample_size": 1.0}, "exclude each other"),
        ({"init_cpds": "zeros"}, "init_cpds='zeros'"),
        ({"init_cpds": [TabularCPD("nobody", 2, [[0.5], [0.5]])]}, "table for 'nobody'"),
        (
            {"init_cpds": [TabularCPD("x0", 3, [[0.5], [0.25], [0.25]], state_names={"x0": ["v0", "v1", "v2"]})]},
            "has parents \\[\\], the network has \\['h'\\]",
        ),
        ({"init_cpds": {"h": TabularCPD("g", 2, [[0.5], [0.5]])}}, r"init_cpds\['h'\] is the table of 'g'"),
        ({"fixed_cpds": ["h"]}, "fixed_cpds holds a str"),
    ],
)
def test_errors_name_the_cure(keywords, message):
    with pytest.raises((ValueError, TypeError), match=message):
        EMEstimator(**keywords).fit(two_latents(), clustered(20))


def test_a_latent_column_with_values_is_refused_and_an_empty_one_ignored():
    df = clustered(30)
    with pytest.raises(ValueError, match="'h' is a latent variable of the network but also a column"):
        EMEstimator(n_init=1).fit(two_latents(), df.assign(h=1))
    EMEstimator(n_init=1, max_iter=1).fit(two_latents(), df.assign(h=None))


def test_huge_cliques_are_refused_by_name_before_any_work():
    cards, parents = coupled_latents(25)
    model = as_model(cards, parents, [f"n{i}" for i in range(25)])
    df = pd.DataFrame({f"n{i}": [0, 1] for i in range(25, len(cards))})
    with pytest.raises(CliqueTooLarge, match=r"33,554,432 joint states over 25 variables \('n0', 'n1'"):
        EMEstimator(seed=0).fit(model, df)
    small = EMEstimator(seed=0, max_clique_size=10, latent_card={"h": 4, "g": 4})
    with pytest.raises(ValueError, match="max_clique_size"):
        small.fit(two_latents(), clustered(20))


def test_impossible_rows_are_named():
    df = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 1, None]})
    never = [TabularCPD("a", 2, [[0.5], [0.5]]), TabularCPD("b", 2, [[1, 0.5], [0, 0.5]], ["a"], [2])]
    model = DiscreteBayesianNetwork([("a", "b")])
    for keywords in ({"max_iter": 5}, {"max_iter": 0}):
        with pytest.raises(ImpossibleEvidence, match="row 1 have probability zero"):
            EMEstimator(init_cpds=never, **keywords).fit(model, df)
    hidden = [*never[1:], TabularCPD("h", 2, [[1], [0]]), TabularCPD("a", 2, [[0, 1], [1, 0]], ["h"], [2])]
    latent = DiscreteBayesianNetwork([("h", "a"), ("a", "b")], latents={"h"})
    with pytest.raises(ImpossibleEvidence, match="row 0 have probability zero"):
        EMEstimator(init_cpds=hidden, n_init=1).fit(latent, df)


def test_progress_bar_appears_only_in_long_fits(capsys):
    df = with_gaps(clustered(50))
    EMEstimator(latent_card={"h": 2}, n_init=1, max_iter=5, seed=0).fit(two_latents(), df)
    assert capsys.readouterr().err == ""


def test_progress_counts_updates_and_waits_two_seconds(monkeypatch):
    seen = {"count": 0}

    class Bar:
        def __init__(self, **keywords):
            seen.update(keywords)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def update(self, n):
            seen["count"] += n

    monkeypatch.setattr("tqdm.auto.tqdm", Bar)
    df = with_gaps(clustered(50))
    estimator = EMEstimator(latent_card={"h": 2}, n_init=2, max_iter=5, atol=0, seed=0).fit(two_latents(), df)
    assert seen["count"] == estimator.starts_["n_iter"].sum() == 10 and seen["delay"] == 2
    seen.clear()
    EMEstimator(n_init=1, max_iter=1, seed=0, show_progress=False).fit(two_latents(), df)
    assert not seen


def test_parameters_are_stored_unchanged_and_shown():
    card = {"h": 3}
    estimator = EMEstimator(latent_card=card, alpha=0.5)
    assert estimator.get_params()["latent_card"] is card and estimator.get_params()["alpha"] == 0.5
    assert estimator.get_tag("supports_latent_variables") and estimator.get_tag("supports_weighted_data")


def test_data_without_columns_are_refused():
    with pytest.raises(ValueError, match="data is a ndarray; pass a DataFrame"):
        EMEstimator().fit(two_latents(), np.zeros((3, 3)))


@pytest.mark.parametrize("weight", [None, "w"])
def test_rows_that_do_not_fit_are_visited_in_passes(weight, tmp_path, monkeypatch):
    from pgm_bma.foundation.rows import blocks
    from tests.foundation.scanned import cut, make_table, write_parts

    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)
    parts = [part.assign(w=np.arange(len(part)) % 3) for part in cut(make_table(600, missing=0.15), 3)]
    pattern, frame = write_parts(parts, tmp_path), pd.concat(parts, ignore_index=True)
    arcs = [("h", "text"), ("h", "flag"), ("text", "half"), ("h", "half"), ("half", "class"), ("class", "category")]
    model = DiscreteBayesianNetwork(arcs, latents={"h"})
    make = lambda: EMEstimator(latent_card={"h": 3}, n_init=3, max_iter=40, seed=0, show_progress=False)  # noqa: E731
    given = None if weight is None else frame["w"].to_numpy()
    want = make().fit(model, frame, sample_weight=given)
    folded = make().fit(model, pgm_bma.scan_parquet(pattern), sample_weight=weight)
    passes = make().fit(model, pgm_bma.scan_parquet(pattern, memory=1000), sample_weight=weight)
    for got in (folded, passes):
        assert got.state_names_ == want.state_names_ and got.n_iter_ == want.n_iter_
        assert got.log_likelihood_ == pytest.approx(want.log_likelihood_, rel=1e-9)
        np.testing.assert_allclose(got.starts_["score"], want.starts_["score"], rtol=1e-9)
        for a, b in zip(got.parameters_, want.parameters_):
            assert a.variables == b.variables
            np.testing.assert_allclose(a.values, b.values, atol=1e-9)
