"""The forest average against enumeration of every structure."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from pgm_bma import AveragedNaiveBayesClassifier, ForestAveragedClassifier
from pgm_bma.forests import average as forest_average
from tests.oracles.forests import class_joint

CARDS = [2, 3, 2, 2]


def small_case(seed, n_rows=25, cards=CARDS, n_classes=2):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, r, n_rows) for r in cards])
    X[:, -1] = np.where(rng.random(n_rows) < 0.8, X[:, 0] % cards[-1], X[:, -1])  # one real arc
    y = rng.integers(0, n_classes, n_rows)
    states = {f"c{i}": list(range(r)) for i, r in enumerate(cards)} | {"class": list(range(n_classes))}
    return pd.DataFrame(X, columns=[f"c{i}" for i in range(len(cards))]), y, states


# pseudo-count of a cell in a table of q parent configurations and r states, two classes, and that of a class
PRIORS = {
    "paper": ({"parameter_prior": "paper"}, lambda q, r: 1.0, 1.0),
    "bdeu": ({"equivalent_sample_size": 2.0}, lambda q, r: 2.0 / (q * r), 1.0),
    # every table of a column holds 2 classes x 2 x r x alpha in sum
    "consistent": ({"alpha": 0.7}, lambda q, r: 0.7 * 2 * 2 / q, 0.7),
}


@pytest.mark.parametrize("class_arcs", ["all", "selective"])
@pytest.mark.parametrize("prior", PRIORS)
def test_classifier_equals_enumeration(class_arcs, prior):
    X, y, states = small_case(3)
    parameters, alpha, class_alpha = PRIORS[prior]
    classifier = ForestAveragedClassifier(class_arcs=class_arcs, arc_prior=0.3, state_names=states, **parameters)
    classifier.fit(X, y)
    queries = X.astype(object).head(4).copy()
    queries.iloc[1, 0] = None
    queries.iloc[2, [1, 3]] = None
    queries.iloc[3, :] = None
    proba = classifier.predict_proba(queries)
    for (_, row), found in zip(queries.iterrows(), proba):
        query = [None if pd.isna(v) else int(v) for v in row]
        joint, arcs, class_arcs_found, _ = class_joint(
            X.to_numpy().tolist(),
            y.tolist(),
            CARDS,
            2,
            alpha,
            -np.log(len(CARDS)),
            0.3 if class_arcs == "selective" else None,
            query,
            class_alpha,
        )
        np.testing.assert_allclose(found, joint / joint.sum(), atol=1e-9)  # the tolerance of the contract
        np.testing.assert_allclose(
            np.exp(classifier._log_joint(classifier._encode(row.to_dict())))[0], joint, rtol=1e-9
        )
    np.testing.assert_allclose(classifier.edge_posterior_.to_numpy().T, arcs, atol=1e-9)
    np.testing.assert_allclose(classifier.class_arc_posterior_, class_arcs_found, atol=1e-9)


def test_evidence_is_that_of_all_structures_under_a_normalised_prior():
    X, y, states = small_case(5)
    classifier = ForestAveragedClassifier(state_names=states, structure_prior="uniform", preset="paper").fit(X, y)
    *_, log_sum = class_joint(X.to_numpy().tolist(), y.tolist(), CARDS, 2, lambda q, r: 1.0, 0.0, None, [0] * 4)
    # Cayley: 5 ** 3 rooted forests on four labelled nodes
    assert classifier.log_evidence_ == pytest.approx(log_sum - np.log(5**3), abs=1e-9)


@pytest.mark.parametrize("prior", ["consistent", "paper"])
def test_without_arcs_it_is_averaged_naive_bayes(prior):
    X, y, states = small_case(7, n_rows=60)
    X = X.astype(object).mask(np.random.default_rng(0).random(X.shape) < 0.1)
    common = {"state_names": states, "parameter_prior": prior}
    forest = ForestAveragedClassifier(class_arcs="selective", forbidden_arcs="all", **common).fit(X, y)
    plain = AveragedNaiveBayesClassifier(**common).fit(X, y)
    complete = X.dropna()
    np.testing.assert_allclose(forest.predict_proba(complete), plain.predict_proba(complete), atol=1e-10)
    np.testing.assert_allclose(forest.class_arc_posterior_, plain.arc_posterior_, atol=1e-10)
    assert forest.log_evidence_ == pytest.approx(plain.log_evidence_, abs=1e-9)


def test_forbidden_arcs_have_no_posterior():
    X, y, _ = small_case(1)
    classifier = ForestAveragedClassifier(forbidden_arcs=[("c0", "c3"), ("c3", "c0")]).fit(X, y)
    assert classifier.edge_posterior_.loc["c0", "c3"] == classifier.edge_posterior_.loc["c3", "c0"] == 0
    with pytest.raises(ValueError, match="'zz'"):
        ForestAveragedClassifier(forbidden_arcs=[("c0", "zz")]).fit(X, y)


def test_many_missing_cells_are_sampled_with_an_honest_error():
    X, y, states = small_case(11, n_rows=80)
    holes = X.astype(object).head(12).copy()
    holes.iloc[:, 1:3] = None
    exact = ForestAveragedClassifier(class_arcs="selective", state_names=states).fit(X, y)
    sampled = ForestAveragedClassifier(class_arcs="selective", state_names=states, max_completions=1, n_forests=800)
    sampled.fit(X, y)
    proba, error = sampled.predict_proba_with_error(holes)
    assert (error > 0).all() and (error < 0.05).all()
    assert (np.abs(proba - exact.predict_proba(holes)) <= 5 * error).all()  # five standard errors
    np.testing.assert_array_equal(exact.predict_proba_with_error(holes)[1], 0.0)


def test_an_arc_to_a_mostly_missing_column_is_not_favoured():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (300, 3)), columns=list("abc")).astype(object)
    X.loc[rng.random(300) < 0.9, "c"] = None  # independent noise, seen in a tenth of the rows
    classifier = ForestAveragedClassifier().fit(X, rng.integers(0, 2, 300))
    assert classifier.edge_posterior_.loc["c", "a"] < 0.5


def test_best_and_sampled_models():
    X, y, states = small_case(3, n_rows=200)
    classifier = ForestAveragedClassifier(class_arcs="selective", state_names=states).fit(X, y)
    assert classifier.model_.check_model()
    assert classifier.model_.has_edge("c0", "c3") or classifier.model_.has_edge("c3", "c0")
    models = classifier.sample_models(300, random_state=1)
    share = np.mean([m.has_edge("c0", "c3") for m in models])
    expected = classifier.edge_posterior_.loc["c0", "c3"]
    assert abs(share - expected) <= 4 * np.sqrt(expected * (1 - expected) / 300) + 1e-9
    graph = classifier.edge_graph_
    assert graph.edges["c0", "c3"]["posterior"] == expected


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
@pytest.mark.parametrize("position", [0, 2, 4])
def test_a_missing_cell_of_a_constant_column_is_its_only_value(position):
    X, y, _ = small_case(2)
    X.insert(position, "constant", "x")
    classifier = ForestAveragedClassifier().fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X.assign(constant=None)), classifier.predict_proba(X))
    holes = X.astype(object).assign(constant=None, c1=None)
    np.testing.assert_allclose(
        classifier.predict_proba(holes), classifier.predict_proba(holes.assign(constant="x")), atol=1e-12
    )


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_without_a_complete_one_are_judged_without_a_word():
    X = pd.DataFrame({"a": list("0011") * 5, "b": list("0101") * 5})
    classifier = ForestAveragedClassifier().fit(X, [0, 1, 1, 0] * 5)
    assert classifier.predict_proba(X.head(2).assign(a=None)) == pytest.approx(np.full((2, 2), 0.5))


def test_rows_are_predicted_in_blocks_of_bounded_memory(monkeypatch):
    X, y, _ = small_case(2)
    classifier = ForestAveragedClassifier().fit(X, y)
    expected = classifier.predict_proba(X)
    monkeypatch.setattr(forest_average, "WEIGHTS_AT_ONCE", 100)  # three rows
    np.testing.assert_array_equal(classifier.predict_proba(X), expected)


@pytest.mark.parametrize(
    "bad, message",
    [
        ({"forbidden_arcs": 5}, "list of pairs"),
        ({"forbidden_arcs": [("c0",)]}, r"\('c0',\), which is not a pair"),
        ({"forbidden_arcs": ["c0"]}, "'c0', which is not a pair"),
        ({"arc_prior": 2}, "arc_prior=2"),
    ],
)
def test_errors_name_the_parameter(bad, message):
    X, y, _ = small_case(1)
    with pytest.raises(ValueError, match=message):
        ForestAveragedClassifier(**bad).fit(X, y)


@pytest.mark.filterwarnings("ignore:column 'id' names the rows")  # expected of this table
def test_too_many_states_are_refused_by_name():
    rows = pd.DataFrame({"few": [0, 1] * 4000, "id": range(8000)})
    with pytest.raises(ValueError, match="'id' alone 8000"):
        ForestAveragedClassifier().fit(rows, [0, 1] * 4000)


def test_sample_models_checks_its_number_and_the_fit():
    X, y, _ = small_case(1)
    with pytest.raises(NotFittedError):
        ForestAveragedClassifier().sample_models()
    with pytest.raises(ValueError, match="n_models=-1"):
        ForestAveragedClassifier().fit(X, y).sample_models(-1)


@pytest.mark.parametrize("n_states", [2, 20, 200, 2000])
@pytest.mark.parametrize("class_arcs", ["all", "selective"])
def test_noise_of_many_states_wins_no_arc(n_states, class_arcs):
    """Issue: alpha in every cell makes arcs into flat noise certain from 200 states on."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 690)
    X = pd.DataFrame({f"c{i}": np.where(rng.random(690) < 0.8, y, 1 - y) for i in range(4)})
    X["copy"] = np.where(rng.random(690) < 0.9, X["c0"], rng.integers(0, 2, 690))
    X["noise"] = rng.integers(0, n_states, 690)
    classifier = ForestAveragedClassifier(class_arcs=class_arcs).fit(X, y)
    edges = classifier.edge_posterior_
    assert edges["noise"].sum() < 0.3 and edges.loc["noise"].max() < 0.3
    assert edges.loc["c0", "copy"] + edges.loc["copy", "c0"] > 0.99
    if class_arcs == "selective":
        assert classifier.class_arc_posterior_["noise"] < 0.3 and classifier.class_arc_posterior_[:4].min() > 0.99
    paper = ForestAveragedClassifier(class_arcs=class_arcs, preset="paper").fit(X, y)
    assert (paper.edge_posterior_["noise"].sum() > 0.9) == (n_states >= 200)


def test_relevance_structure_and_preset():
    X, y, _ = small_case(3, n_rows=200)
    X["c1"] = y
    classifier = ForestAveragedClassifier(class_arcs="selective").fit(X, y)
    assert np.argmax(classifier.feature_importances_) == 1 and classifier.feature_importances_.shape == (4,)
    assert set(classifier.causal_graph_.edges) == set(classifier.model_.edges)
    paper = ForestAveragedClassifier(parameter_prior="paper").fit(X, y)
    np.testing.assert_array_equal(
        ForestAveragedClassifier(preset="paper").fit(X, y).predict_proba(X), paper.predict_proba(X)
    )
    with pytest.raises(ValueError, match=r"preset='paper' sets alpha=1\.0"):
        ForestAveragedClassifier(preset="paper", alpha=2.0).fit(X, y)
