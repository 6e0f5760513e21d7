"""KikuchiBayesClassifier: vectors, known special cases, results, presets and errors."""

import itertools
import json
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import softmax
from sklearn.base import clone

import pgm_bma
from pgm_bma import KikuchiBayesClassifier, MDLDiscretizer, NaiveBayesClassifier
from pgm_bma.evaluation import capped_log_loss, error_decomposition, marginal_losses, paper_error
from tests.oracles import kikuchi as oracle

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "kikuchi.json").read_text())
MODELS = {model["name"]: model for model in VECTORS["models"]}
CASES = [(model, case) for model in VECTORS["models"] for case in model["models"]]
case_ids = [f"{model['name']}-{case['regions']}" for model, case in CASES]


def table(model):
    """X (columns v0, v1, ...), y named after its column, and declared states."""
    rows = pd.DataFrame(model["rows"], columns=[f"v{k}" for k in range(len(model["card"]))])
    states = {f"v{k}": list(range(card)) for k, card in enumerate(model["card"])}
    target = f"v{model['class_column']}"
    return rows.drop(columns=target), rows[target], states


def named(regions):
    return [[f"v{v}" for v in region] for region in regions]


def queries(model, X):
    return pd.DataFrame(model["query_attributes"], columns=X.columns)


def small(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    y = pd.Series(rng.integers(0, 3, n_rows), name="c").map({0: "p", 1: "q", 2: "r"})
    code = y.map({"p": 0, "q": 1, "r": 2}).to_numpy()
    X = pd.DataFrame({"a": (code + rng.integers(0, 2, n_rows)) % 3, "b": rng.integers(0, 3, n_rows)})
    X["ab"] = (X.a + X.b + (rng.random(n_rows) < 0.2)) % 3
    X["noise"] = rng.choice(["u", "v"], n_rows)
    return X, y


# ------------------------------------------------------------------------------------------------ vectors


@pytest.mark.parametrize("model, case", CASES, ids=case_ids)
@pytest.mark.parametrize("key, prior", [("separate", "laplace"), ("marginalise", "marginal")])
def test_log_scores_and_posteriors(model, case, key, prior):
    X, y, states = table(model)
    classifier = KikuchiBayesClassifier(
        regions=named(case["initial"]), weights="counting", prior=prior, state_names=states
    ).fit(X, y)
    found = classifier.log_scores(queries(model, X))
    np.testing.assert_allclose(found, case[key]["log_scores"], atol=1e-9)
    np.testing.assert_allclose(classifier.predict_proba(queries(model, X)), case[key]["posterior"], atol=1e-9)
    counting = {frozenset(f"v{v}" for v in region): c for region, c in case["counting"] if c}
    graph = dict(classifier.region_graph_.nodes(data="counting_number"))
    assert {r: c for r, c in graph.items() if c} == counting


@pytest.mark.parametrize("model, case", CASES, ids=case_ids)
def test_the_markov_network_is_the_potential(model, case):
    """The product of all factors at a training row is Phi, class-free regions included, up to unused attributes' own marginal."""
    X, y, states = table(model)
    classifier = KikuchiBayesClassifier(
        regions=named(case["initial"]), weights="counting", prior="laplace", state_names=states
    ).fit(X, y)
    held = set().union(*classifier.initial_regions_)
    network = classifier.model_
    assert network.check_model()
    for row, expected in list(zip(model["rows"], case["log_potential_training_rows"]))[:8]:
        value = {f"v{k}": v for k, v in enumerate(row)}
        total = sum(math.log(f.get_value(**{n: value[n] for n in f.variables})) for f in network.factors)
        for name in set(value) - held:
            n = sum(other[int(name[1:])] == value[name] for other in model["rows"])
            total -= math.log((n + 1) / (len(model["rows"]) + len(states[name])))
        assert math.isclose(total, expected, abs_tol=1e-9)


@pytest.mark.parametrize("case", VECTORS["divergences"][::4], ids=lambda c: f"{c['data']}-{c['initial']}-{c['focus']}")
def test_region_loss_vectors(case):
    model = MODELS[case["data"]]
    X, y, states = table(model)
    classifier = KikuchiBayesClassifier(prior="laplace", state_names=states, random_state=0, n_resamples=1000)
    loss = classifier.region_loss(X, y, named(case["initial"]), named([case["focus"]])[0])
    assert math.isclose(loss, case["loss_empirical"], abs_tol=1e-9)
    assert abs(loss.p - case["bootstrap"]["p_value"]) <= case["bootstrap"]["p_tolerance_1000_draws"]
    assert len(loss.self_losses) == 1000 and math.isclose(loss.mean_self_loss, loss.self_losses.mean())
    assert not hasattr(classifier, "classes_")  # it needs no fit and leaves none behind


@pytest.mark.parametrize("case", VECTORS["selection"], ids=lambda case: case["method"])
def test_selection_vectors(case):
    grid = pd.DataFrame(itertools.product(range(3), range(3), range(2), range(3), range(4), range(2)))
    y = pd.Series(((grid[0] == grid[1]) | (grid[4] == 0)).astype(int), name=6)
    classifier = KikuchiBayesClassifier(preset=case["method"], random_state=0).fit(grid, y)
    assert sorted(sorted(r) for r in classifier.initial_regions_) == sorted(sorted(r) for r in case["initial_regions"])
    tests = classifier.tests_
    assert [sorted(r - {6}) for r in tests.region] == [attributes for attributes, *_ in case["tests"]]
    np.testing.assert_allclose(tests.loss, [loss for *_, loss in case["tests"]], atol=1e-9)
    np.testing.assert_allclose(tests.p, [p for _, p, _ in case["tests"]], atol=0.01)  # 0 and 1, a few resampled
    assert (tests.p[tests.taken] < 0.1).all() and (tests.p[~tests.taken] >= 0.1).all()


def test_remedy_vectors():
    case = VECTORS["remedies"]["posteriors"][0]
    X, y, states = table(MODELS["xor"])
    rows = pd.DataFrame(case["query_attributes"], columns=X.columns)
    pairs = [["v0", "v1", "v3"], ["v0", "v2", "v3"], ["v1", "v2", "v3"]]
    expected = {
        ("tree", "laplace", 1): "rho_weights_laplace_posterior",
        ("tree", "consistent", 2): "rho_weights_ess2_posterior",
    }
    for (weights, prior, strength), key in expected.items():
        classifier = KikuchiBayesClassifier(
            regions=pairs, weights=weights, prior=prior, prior_strength=strength, state_names=states
        )
        np.testing.assert_allclose(classifier.fit(X, y).predict_proba(rows), case[key], atol=1e-9)
    naive = KikuchiBayesClassifier(
        regions=[["v0", "v3"], ["v1", "v3"], ["v2", "v3"]], weights="counting", prior_strength=2
    )
    np.testing.assert_allclose(naive.fit(X, y).predict_proba(rows), case["naive_bayes_ess2_posterior"], atol=1e-9)
    learned = KikuchiBayesClassifier(regions=pairs, weights="learned", ridge=5, prior_strength=2).fit(X, y)
    regions = [frozenset(["v3", *(f"v{a}" for a in s)]) for s in case["sets"]]
    assert list(learned.term_weights_.index) == regions
    np.testing.assert_allclose(
        learned.term_weights_, case["learned_weights_ess2_ridge5"], atol=case["learned_tolerance"]
    )


@pytest.mark.filterwarnings("ignore:1 of 1 rows of y have a class that is not among")  # expected of this row
def test_error_measure_vectors():
    for example in VECTORS["error_measure"]["examples"]:
        assert math.isclose(paper_error(example["zero_one"], example["classes"]), example["paper"])
    assert math.isclose(capped_log_loss(["b"], [[1.0, 0.0]], ["a", "b"]), 11.5129, abs_tol=1e-4)
    assert math.isclose(capped_log_loss(["never"], [[1.0, 0.0]], ["a", "b"]), 11.5129, abs_tol=1e-4)


# ------------------------------------------------------------------------------------------------ special cases


def test_class_and_single_attributes_are_naive_bayes():
    """Posterior means with alpha 1 in the class and mass s / (r m) in a cell: the same as naive Bayes with the consistent prior."""
    X, y = small()
    singles = [[name, "c"] for name in X.columns]
    found = KikuchiBayesClassifier(regions=singles, weights="counting", prior_strength=3.0).fit(X, y)
    rows, cards = X.assign(c=y), []
    codes = rows.apply(lambda column: pd.factorize(column, sort=True)[0])
    cards = (codes.max() + 1).tolist()
    for r in range(6):
        scores = np.log([(sum(codes.c == k) + 1.0) / (len(codes) + 3.0) for k in range(3)])
        for j in range(4):
            for k in range(3):
                both = ((codes.iloc[:, j] == codes.iloc[r, j]) & (codes.c == k)).sum()
                scores[k] += np.log((both + 3.0 / (3 * cards[j])) / ((codes.c == k).sum() + 1.0))
        np.testing.assert_allclose(found.predict_proba(X.iloc[[r]])[0], softmax(scores), atol=1e-10)
    everything = KikuchiBayesClassifier(level=1, significance_level=1, weights="counting", prior_strength=3.0).fit(X, y)
    np.testing.assert_array_equal(everything.predict_proba(X), found.predict_proba(X))
    # with much data the prior does not matter
    many = pd.concat([X] * 50), pd.concat([y] * 50)
    naive = NaiveBayesClassifier().fit(*many).predict_proba(X)
    np.testing.assert_allclose(found.set_params(prior_strength=1.0).fit(*many).predict_proba(X), naive, atol=2e-3)


def test_acyclic_regions_are_the_exact_joint():
    """Without loops Phi is the maximum-entropy joint of its marginals (by iterative proportional fitting), as are both networks."""
    from pgmpy.inference import VariableElimination

    X, y = small()
    regions = [["a", "b", "c"], ["b", "ab", "c"], ["noise", "c"]]
    classifier = KikuchiBayesClassifier(regions=regions, weights="counting", prior_strength=2.0).fit(X, y)
    codes = X.assign(c=y).apply(lambda column: pd.factorize(column, sort=True)[0])
    cards, names = [3, 3, 3, 2, 3], list(codes.columns)
    rows = codes.to_numpy().tolist()
    marginals = {}
    for region in regions:
        columns = sorted(names.index(n) for n in region)
        size = oracle.n_cells(cards, columns)
        marginals[frozenset(columns)] = {
            v: (oracle.count(rows, columns, v) + 2.0 / size) / (len(rows) + 2.0) for v in oracle.cells(cards, columns)
        }
    joint = oracle.iterative_proportional_fitting(cards, marginals, n_sweeps=4)
    network = classifier.to_bayesian_network()
    assert network.check_model()
    tables = {cpd.variables[0]: cpd for cpd in network.cpds}
    states = {n: sorted(X[n].unique()) if n in X else sorted(y.unique()) for n in names}
    for values in list(joint)[::17]:
        row = {n: states[n][v] for n, v in zip(names, values)}
        directed = math.prod(cpd.get_value(**{n: row[n] for n in cpd.variables}) for cpd in tables.values())
        assert math.isclose(directed, joint[values], rel_tol=1e-8)
    engine = VariableElimination(classifier.model_)
    for r in range(3):
        factor = engine.query(["c"], evidence=X.iloc[r].to_dict(), show_progress=False)
        values = np.array([factor.get_value(c=state) for state in "pqr"])
        np.testing.assert_allclose(values / values.sum(), classifier.predict_proba(X.iloc[[r]])[0], atol=1e-9)


@pytest.mark.parametrize("prior", ["laplace", "consistent"])
def test_copies_do_not_change_the_tree_weighted_posterior(prior):
    X, y = small()
    pairs = [[*pair, "c"] for pair in itertools.combinations(["a", "b", "ab"], 2)]
    plain = KikuchiBayesClassifier(regions=pairs, weights="tree", prior=prior).fit(X, y).predict_proba(X)
    for n_copies in (1, 4):
        wide = X.assign(**{f"a{k}": X["a"] for k in range(n_copies)})
        names = ["a", "b", "ab", *(f"a{k}" for k in range(n_copies))]
        every = [[*pair, "c"] for pair in itertools.combinations(names, 2)]
        copied = KikuchiBayesClassifier(regions=every, weights="tree", prior=prior).fit(wide, y).predict_proba(wide)
        np.testing.assert_allclose(copied, plain, atol=1e-9)
    alone = KikuchiBayesClassifier(regions=[["a", "c"]], weights="counting", prior="laplace").fit(X, y).predict_proba(X)
    wide = pd.DataFrame({f"a{k}": X["a"] for k in range(5)})
    every = [[*pair, "c"] for pair in itertools.combinations(wide.columns, 2)]
    tree = KikuchiBayesClassifier(regions=every, weights="tree", prior="laplace").fit(wide, y).predict_proba(wide)
    np.testing.assert_allclose(tree, alone, atol=1e-9)
    loops = KikuchiBayesClassifier(regions=every, weights="counting", prior="laplace").fit(wide, y).predict_proba(wide)
    assert np.abs(loops - alone).max() > 0.3  # five copies count 5 (3 - 5) / 2 = -5 times


@pytest.mark.parametrize("seed", range(3))
def test_near_copies_behave_like_copies(seed):
    """Five copies beside two other columns; each of them differs in one row of 1000."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 1000)
    a = np.where(rng.random(1000) < 0.8, y, 1 - y)
    b, d = (np.where(rng.random(1000) < 0.65, source, rng.integers(0, 2, 1000)) for source in (a, y))
    alone = pd.DataFrame({"a": a, "b": b, "d": d})
    near = pd.DataFrame({**{f"a{k}": a for k in range(5)}, "b": b, "d": d})
    odd = rng.choice(1000, 5, replace=False)
    for k, row in enumerate(odd):
        near.loc[row, f"a{k}"] = 1 - a[row]

    def proba(X):
        every = [[*pair, "class"] for pair in itertools.combinations(X.columns, 2)]
        return KikuchiBayesClassifier(regions=every, weights="tree").fit(X, y).predict_proba(X)

    difference = np.abs(proba(near) - proba(alone)).max(axis=1)
    same = ~np.isin(np.arange(1000), odd)
    assert difference[same].max() <= 0.02
    assert difference[odd].max() <= 0.25  # one column of five says something else there


def test_tree_weights_are_counting_weights_on_a_forest():
    X, y = small()
    forest = [["a", "b", "c"], ["b", "ab", "c"], ["noise", "c"]]
    tree, counting = (KikuchiBayesClassifier(regions=forest, weights=w).fit(X, y) for w in ("tree", "counting"))
    np.testing.assert_allclose(tree.predict_proba(X), counting.predict_proba(X), atol=1e-10)


def test_learned_weights_do_best_on_new_rows():
    X, y = small(1200, seed=3)
    losses = {}
    for weights in ("counting", "learned"):
        model = KikuchiBayesClassifier(weights=weights, significance_level=1, random_state=0).fit(X[:600], y[:600])
        losses[weights] = capped_log_loss(y[600:], model.predict_proba(X[600:]), model.classes_)
    assert losses["learned"] < losses["counting"]
    assert model.ridge_.keys() == {1, 2} and model.prior_strength_ in (2.0, 10.0, 30.0, 100.0)
    by_likelihood = KikuchiBayesClassifier(ridge="loo", random_state=0).fit(X[:600], y[:600])
    assert len(set(by_likelihood.ridge_.values())) == 1


# ------------------------------------------------------------------------------------------------ results


def test_presets_are_the_six_columns():
    X, y = small()
    fitted = {name: KikuchiBayesClassifier(preset=name, random_state=0).fit(X, y) for name in
              ("NB", "K1", "TAN", "TK", "K2", "K2all")}  # fmt: skip
    regions = {name: {tuple(sorted(r - {"c"})) for r in f.initial_regions_} for name, f in fitted.items()}
    assert regions["NB"] == {("a",), ("ab",), ("b",), ("noise",)}
    assert regions["K1"] == {("a",)}
    assert regions["K2all"] == {tuple(sorted(p)) for p in itertools.combinations(X.columns, 2)}
    for name in ("TAN", "TK"):
        graph = nx.Graph(r for r in regions[name])
        assert nx.is_tree(graph) and set(graph) == set(X.columns)
    assert regions["K2"] >= {("a",)} or any("a" in r for r in regions["K2"])
    assert all(f.weights == "learned" and f.prior == "consistent" for f in fitted.values())  # parameters stay as passed
    with pytest.raises(ValueError, match="preset='K2' sets prior='laplace', but prior='marginal'"):
        KikuchiBayesClassifier(preset="K2", prior="marginal").fit(X, y)


@pytest.mark.filterwarnings("ignore:.*unseen in fit")  # expected of these rows
def test_explain_sums_to_the_scores():
    X, y = small()
    classifier = KikuchiBayesClassifier(random_state=0, handle_unknown="missing").fit(X, y)
    evidence = classifier.explain(X.iloc[4])
    assert evidence.index[0] == "(prior)" and list(evidence.columns) == ["p", "q", "r"]
    np.testing.assert_allclose(evidence.sum(), classifier.log_scores(X.iloc[[4]])[0], atol=1e-12)
    odd = classifier.explain({**X.iloc[4], "a": 99})
    held = [label for label in evidence.index if "a" in label.split(", ")]
    assert held and (odd.loc[held] == 0).all(axis=None)
    pd.testing.assert_frame_equal(odd.drop(held), evidence.drop(held))


@pytest.mark.filterwarnings("ignore:.*unseen in fit")  # expected of these rows
def test_missing_as_a_state_and_unseen_values():
    X, y = small()
    holes = X.assign(a=X.a.where(np.arange(len(X)) % 5 > 0).astype("Int64"))
    state = KikuchiBayesClassifier(preset="NB", random_state=0).fit(holes, y)
    explicit = KikuchiBayesClassifier(preset="NB").fit(holes.assign(a=holes.a.astype(object).fillna(7)), y)
    np.testing.assert_allclose(
        state.predict_proba(holes), explicit.predict_proba(holes.assign(a=holes.a.astype(object).fillna(7))), atol=1e-12
    )
    unseen = holes.head(3).assign(a=[55, 55, 55])
    rest = KikuchiBayesClassifier(preset="NB").fit(X.drop(columns="a"), y)
    np.testing.assert_allclose(state.predict_proba(unseen), rest.predict_proba(unseen.drop(columns="a")), atol=1e-12)
    assert state.explain(unseen.iloc[0]).loc["a"].abs().sum() == 0
    assert "missing" in state.model_.states["a"]
    taken = KikuchiBayesClassifier(preset="NB").fit(holes.assign(a=holes.a.astype(object).replace(1, "missing")), y)
    assert set(taken.model_.states["a"]) >= {"missing", "missing_"}
    ignoring = KikuchiBayesClassifier(level=1, significance_level=1, weights="counting").fit(holes, y)
    absent = holes.head(1).assign(a=[None])
    np.testing.assert_allclose(
        ignoring.predict_proba(absent),
        KikuchiBayesClassifier(regions=[[n, "c"] for n in ("b", "ab", "noise")], weights="counting")
        .fit(holes, y)
        .predict_proba(absent),
        atol=1e-12,
    )


def test_bayesian_network_goes_to_bif_or_is_refused_with_the_loop(tmp_path):
    X, y = small()
    gated = KikuchiBayesClassifier(cycles="gated", random_state=0, significance_level=0.5).fit(X, y)  # learned weights
    network = gated.to_bayesian_network()
    pgm_bma.write_bif(network, tmp_path / "gated.bif")
    back = pgm_bma.read_bif(tmp_path / "gated.bif")
    from pgmpy.inference import VariableElimination

    factor = VariableElimination(back).query(["c"], evidence=X.iloc[3].to_dict(), show_progress=False)
    found = np.array([factor.get_value(c=state) for state in "pqr"])
    np.testing.assert_allclose(found, gated.predict_proba(X.iloc[[3]])[0], atol=1e-9)
    loops = KikuchiBayesClassifier(significance_level=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"loop.*\{a, b, c\}.*cycles='gated'"):
        loops.to_bayesian_network()


def test_a_markov_network_is_no_bif_and_the_cure_is_named(tmp_path):
    X, y = small()
    with pytest.raises(TypeError, match=r"not a DiscreteMarkovNetwork.*to_bayesian_network\(\)"):
        pgm_bma.write_bif(KikuchiBayesClassifier(preset="NB").fit(X, y).model_, tmp_path / "loop.bif")
    assert not list(tmp_path.iterdir())


def test_attributes_for_people():
    X, y = small()
    classifier = KikuchiBayesClassifier(random_state=0, significance_level=0.3).fit(X, y)
    strength = classifier.interaction_strength_
    assert strength.index.tolist() == strength.columns.tolist() == list(X.columns)
    np.testing.assert_allclose(strength, strength.T)
    assert strength.loc["a", "a"] == strength.to_numpy().max()
    graph = classifier.to_networkx()
    assert graph.nodes["a"]["information_gain"] == strength.loc["a", "a"]
    for region in classifier.initial_regions_:
        assert all(graph.has_edge(*pair) for pair in itertools.combinations(region, 2))
    assert list(classifier.tests_.columns) == [
        "region", "level", "loss", "mean_self_loss", "p", "z", "resampled", "taken",
    ]  # fmt: skip
    assert len(classifier.tests_) == 4 + 6
    only_singles = KikuchiBayesClassifier(level=1, random_state=0).fit(X, y).interaction_strength_
    assert only_singles.notna().sum().sum() == 4
    assert "initial regions" in repr(classifier)


def test_class_alone_and_class_free_regions():
    X, y = small()
    prior = KikuchiBayesClassifier(regions=[], weights="counting", prior_strength=3.0).fit(X, y)
    assert prior.initial_regions_ == [frozenset("c")]
    expected = (y.value_counts().sort_index() + 1) / (len(y) + 3)
    np.testing.assert_allclose(prior.predict_proba(X.head(1))[0], expected, atol=1e-12)
    free = KikuchiBayesClassifier(regions=[["a", "b"]], weights="counting", prior_strength=3.0).fit(X, y)
    np.testing.assert_allclose(free.predict_proba(X.head(1)), prior.predict_proba(X.head(1)), atol=1e-12)
    assert set(free.initial_regions_) == {frozenset("c"), frozenset("ab")}


def test_criteria_and_level_three():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (300, 5)), columns=list("abcde"))
    y = pd.Series((X.a + X.b + X.c) % 2, name="parity")
    for criterion in ("divergence", "log_loss", "error"):
        model = KikuchiBayesClassifier(level=3, criterion=criterion, random_state=0, significance_level=0.01).fit(X, y)
        assert frozenset(["a", "b", "c", "parity"]) in model.initial_regions_
        assert (model.predict(X) == y).all()


def test_evaluation_tells_loops_apart():
    """Copies in loops: the approximation error on the training set itself is large, and the marginals are left."""
    X, y = small(400)
    wide = pd.DataFrame({f"a{k}": X["a"] for k in range(5)})
    pairs = [[*pair, "c"] for pair in itertools.combinations(wide.columns, 2)]
    loops = KikuchiBayesClassifier(regions=pairs, weights="counting").fit(wide[:200], y[:200])
    tree = KikuchiBayesClassifier(regions=pairs, weights="tree").fit(wide[:200], y[:200])
    parts = wide[:200], y[:200], wide[200:], y[200:]
    bad, good = error_decomposition(loops, *parts), error_decomposition(tree, *parts)
    assert bad.loc["approximation", "log_loss"] > 1.0 > good.loc["approximation", "log_loss"]
    np.testing.assert_allclose(bad.loc["approximation"] + bad.loc["generalisation"], bad.loc["total"])
    assert marginal_losses(loops, *parts[:2]).max() > 0.3
    assert marginal_losses(tree, *parts[:2]).max() < 0.02  # smoothing only


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"level": 0}, "level=0"),
        ({"level": 2.5}, "level=2.5"),
        ({"significance_level": 2}, "significance_level=2"),
        ({"cycles": "no"}, "cycles='no'.*'gated'"),
        ({"prior": "flat"}, "prior='flat'"),
        ({"prior_strength": 0}, "prior_strength=0"),
        ({"weights": "all"}, "weights='all'"),
        ({"weights": "tree", "level": 3}, "weights='tree' takes pairs only"),
        ({"ridge": "best"}, "ridge='best'"),
        ({"ridge": -1}, "ridge=-1"),
        ({"criterion": "auc"}, "criterion='auc'"),
        ({"missing": "drop"}, "missing='drop'"),
        ({"preset": "K3"}, "preset='K3'"),
        ({"regions": [["a", "zzz"]]}, "holds 'zzz'"),
        ({"regions": ["ab"]}, r"write \['ab'\]"),
        ({"regions": "ab"}, "list of lists"),
        ({"n_resamples": 0}, "n_resamples=0"),
    ],
    ids=str,
)
def test_errors_name_the_parameter(parameters, message):
    X, y = small(30)
    with pytest.raises(ValueError, match=message):
        KikuchiBayesClassifier(**parameters).fit(X, y)


def test_small_weights_do_not_turn_the_weights_around():
    """A row that weighs a twentieth is left out as a twentieth, not as a whole row."""
    X, y = small(400)
    whole = KikuchiBayesClassifier(ridge="loo", random_state=0, regions=[["a", "c"]]).fit(X, y)
    part = clone(whole).fit(X, y, sample_weight=np.full(400, 0.05))
    assert (part.term_weights_ > 0.5).all()
    assert (part.predict(X) == whole.predict(X)).mean() > 0.95


@pytest.mark.filterwarnings("ignore:column 'id' names the rows")  # expected of this table
def test_a_column_of_identifiers_is_counted_by_its_rows():
    """20,000 states: all pairs of states would be 3 GB a class."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.integers(0, 2, 20_000), "b": rng.integers(0, 2, 20_000), "id": np.arange(20_000)})
    y = pd.Series(X.a ^ X.b, name="c")
    model = KikuchiBayesClassifier(regions=[["a", "b", "c"]], weights="counting").fit(X, y)
    strength = model.interaction_strength_
    assert np.isfinite(strength).all(axis=None)
    assert math.isclose(strength.loc["id", "id"], math.log(2), abs_tol=1e-3)
    assert math.isclose(strength.loc["a", "b"], math.log(2), abs_tol=1e-3)


def test_tuples_as_column_names():
    X, y = small()
    wide = X.set_axis(pd.MultiIndex.from_product([["m", "n"], [1, 2]]), axis=1)
    graph = KikuchiBayesClassifier(significance_level=1, random_state=0).fit(wide, y).to_networkx()
    plain = KikuchiBayesClassifier(significance_level=1, random_state=0).fit(X, y).to_networkx()
    new = dict(zip(X.columns, wide.columns)) | {"c": "c"}
    for a, b, value in plain.edges(data="interaction"):
        assert graph.edges[new[a], new[b]]["interaction"] == value


def test_evaluation_matches_columns_by_name_and_refuses_other_lengths():
    X, y = small()
    model = KikuchiBayesClassifier(regions=[["a", "b", "c"], ["noise", "c"]], weights="counting").fit(X, y)
    expected = marginal_losses(model, X, y)
    pd.testing.assert_series_equal(
        marginal_losses(model, pl.DataFrame(X[X.columns[::-1]].to_dict("list")), y), expected
    )
    unnamed = KikuchiBayesClassifier(preset="K2all").fit(X.to_numpy(), y)
    assert len(marginal_losses(unnamed, X.to_numpy(), y)) == 6
    with pytest.raises(ValueError, match="inconsistent lengths"):
        marginal_losses(model, X, y[:10])
    with pytest.raises(ValueError, match="10 rows in y"):
        capped_log_loss(y[:10], model.predict_proba(X), model.classes_)


def test_region_loss_without_resamples_and_bad_names():
    X, y = small()
    loss = KikuchiBayesClassifier().region_loss(X, y, [["a", "c"]], ["a", "b"], n_resamples=0)
    assert loss > 0 and np.isnan([loss.p, loss.z, loss.mean_self_loss]).all()
    with pytest.raises(ValueError, match="names of columns"):
        KikuchiBayesClassifier(regions=[["a", ["b"]]]).fit(X, y)


@pytest.mark.parametrize("level, weights", [(2, "learned"), (3, "learned"), (2, "tree")])
@pytest.mark.parametrize("gaps", [0.0, 0.05])
def test_the_answer_comes_from_the_data(level, weights, gaps):
    """Not from the seed, nor from the order and the names of columns, rows, states and classes."""
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 300)
    noisy = [
        np.where(rng.random(300) < 0.5, (y + j * rng.integers(0, 2, 300)) % 3, rng.integers(0, 3, 300))
        for j in range(6)
    ]
    X = pd.DataFrame({f"c{j}": values for j, values in enumerate(noisy)}, dtype=float)
    X = X.mask(rng.random(X.shape) < gaps).map("s{:.0f}".format, na_action="ignore")

    def proba(X, y, seed=0):
        # near the threshold, so that regions are resampled
        return KikuchiBayesClassifier(level=level, weights=weights, random_state=seed).fit(X, y).predict_proba(X)

    expected = proba(X, y)
    np.testing.assert_array_equal(proba(X, y, seed=1), expected)
    order = rng.permutation(300)
    # 1e-6: only the order of additions differs
    np.testing.assert_allclose(proba(X[X.columns[::-1]], y), expected, atol=1e-6)
    np.testing.assert_allclose(proba(X.iloc[order], y[order]), expected[order], atol=1e-6)
    np.testing.assert_allclose(proba(X.replace({"s0": "z", "s1": "q", "s2": "b"}), y), expected, atol=1e-6)
    np.testing.assert_allclose(proba(X, 2 - y)[:, ::-1], expected, atol=1e-6)


def test_paper_is_k2_and_importances_follow_the_terms():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = pd.DataFrame({"good": np.where(rng.random(200) < 0.9, y, 1 - y), "noise": rng.integers(0, 3, 200)})
    paper, k2 = (KikuchiBayesClassifier(preset=name).fit(X, y) for name in ("paper", "K2"))
    np.testing.assert_array_equal(paper.predict_proba(X), k2.predict_proba(X))
    naive = KikuchiBayesClassifier(preset="NB").fit(X, y)
    spread = [np.std([naive.explain(row).loc[name] for _, row in X.iterrows()], axis=1).mean() for name in X]
    np.testing.assert_allclose(naive.feature_importances_, spread, atol=1e-12)
    assert KikuchiBayesClassifier().fit(X, y).feature_importances_.argmax() == 0


def test_too_much_work_is_refused_with_size_limit_and_cure(monkeypatch):
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (60, 40))).add_prefix("x")
    y = pd.Series(np.arange(60) % 2, name="class")
    for region in ([*X.columns, "class"], list(X.columns)):  # with the class, and without
        with pytest.raises(ValueError, match=r"40 attributes has 1.1e\+12 subsets \(limit 8192\).*smaller regions"):
            KikuchiBayesClassifier(regions=[region]).fit(X, y)
    many = [[*X.columns[k : k + 12], "class"] for k in range(25)]
    with pytest.raises(ValueError, match=r"25 regions have up to 1.02e.05 subsets .limit 81920."):
        KikuchiBayesClassifier(regions=many).fit(X, y)
    monkeypatch.setattr("pgm_bma.kikuchi.selection._MAX_CANDIDATES", 100)
    with pytest.raises(ValueError, match=r"means 780 groups \(limit 100\); drop columns.*lower the level"):
        KikuchiBayesClassifier().fit(X, y)


def test_refusals_of_size_name_columns_not_positions(monkeypatch):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.integers(0, 20, 100) for name in ("age", "town", "job")}).astype(str)
    y = pd.Series(rng.integers(0, 2, 100), name="class")
    monkeypatch.setattr("pgm_bma.kikuchi.terms.MAX_CELLS", 500)
    with pytest.raises(ValueError, match=r"the largest, of 'age' and 'town', has \d+: merge rare states"):
        KikuchiBayesClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"\(limit 500\), that of 'age', 'town' and 'job'; give smaller regions"):
        KikuchiBayesClassifier(regions=[("age", "town", "job")]).fit(X, y)


def test_of_too_many_regions_the_most_significant_are_kept(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.integers(0, 2, (80, 12))).add_prefix("x"), rng.integers(0, 2, 80)
    loose = KikuchiBayesClassifier(weights="counting", significance_level=0.5)
    pairs = loose.fit(X, y).tests_.query("level == 2 and taken")
    monkeypatch.setattr("pgm_bma.kikuchi.selection.MAX_TAKEN", 2)
    with pytest.warns(UserWarning, match=f"{len(pairs)} of 66 regions of 2 attributes.*only the 2 with the lowest p"):
        few = loose.fit(X, y).tests_.query("level == 2 and taken")
    best = pairs.sort_values(["p", "z"], ascending=[True, False]).region[:2]
    assert set(few.region) == set(best) and len(pairs) > 2


def test_a_deep_region_is_the_saturated_model():
    """Twelve attributes in one region: the sum of all terms is the region's own table."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (40, 12))).add_prefix("x")
    y = pd.Series(rng.integers(0, 2, 40), name="class")
    model = KikuchiBayesClassifier(regions=[[*X.columns, "class"]], weights="counting", prior="laplace").fit(X, y)
    counts = np.array([[np.sum((X == row).all(axis=1) & (y == c)) for c in (0, 1)] for _, row in X[:5].iterrows()])
    expected = np.log((counts + 1) / (40 + 2**13))
    np.testing.assert_allclose(model.log_scores(X[:5]), expected, atol=1e-8)  # 4096 alternating logs are added


def test_numbers_are_cut_once_with_a_warning_and_give_regions():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = pd.DataFrame(
        {"a": rng.normal(size=200) + 2 * y, "c": rng.normal(size=200) - y, "kind": rng.choice(["p", "q"], 200)}
    )
    cut = pd.DataFrame(MDLDiscretizer().fit(X[["a", "c"]], y).transform(X[["a", "c"]]), columns=["a", "c"])
    cut = cut.assign(kind=X.kind)
    by_hand = KikuchiBayesClassifier().fit(cut, y)
    with pytest.warns(UserWarning, match="numbers of columns 'a', 'c' were cut into intervals as MDLDiscretizer"):
        inside = KikuchiBayesClassifier().fit(X, y)
    np.testing.assert_allclose(inside.predict_proba(X), by_hand.predict_proba(cut), atol=1e-12)
    assert inside.numeric_columns_ == ["a", "c"] and len(inside.tests_) and inside.region_graph_.number_of_nodes()
    assert inside.model_.check_model() and not hasattr(inside, "cut_posterior_")
    assert all(hasattr(inside, name) for name in dir(inside))
