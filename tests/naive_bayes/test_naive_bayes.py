"""Naive Bayes family against enumeration of all selective structures, and TAN against its own network."""

from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork

from pgm_bma import AveragedNaiveBayesClassifier, AveragedNaiveBayesEstimator, NaiveBayesClassifier, TANClassifier
from pgm_bma.foundation.numbers.graphs import maximum_tree
from tests.oracles.naive_bayes import selective_naive_bayes


def small_case(seed, n_columns=5, n_rows=14):
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, n_columns)
    X = np.column_stack([rng.integers(-1, r, n_rows) for r in cards])
    y = rng.integers(0, 3, n_rows)
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(n_columns)]).astype(object).where(X >= 0)
    states = {f"c{i}": list(range(r)) for i, r in enumerate(cards)} | {"class": [0, 1, 2]}
    rows = [[None if v < 0 else int(v) for v in row] for row in X]
    return frame, y, states, cards, rows


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("prior", ["consistent", "paper", "ess"])
def test_averaged_naive_bayes_equals_enumeration(seed, prior):
    frame, y, states, cards, rows = small_case(seed, n_columns=6)
    arc_prior = {f"c{i}": 0.2 + 0.1 * i for i in range(6)}
    parameters, alphas = {
        "consistent": (
            {},
            (1.0, np.ones(6), np.full(6, 3.0)),
        ),  # three classes: three times the pseudo-count without the arc
        "paper": ({"parameter_prior": "paper"}, (1.0, np.ones(6), np.ones(6))),
        "ess": ({"equivalent_sample_size": 3.0}, (3.0 / 3, 3.0 / (3 * cards), 3.0 / cards)),
    }[prior]
    classifier = AveragedNaiveBayesClassifier(state_names=states, arc_prior=arc_prior, **parameters)
    classifier.fit(frame, y)
    for row, proba in zip(rows[:3], classifier.predict_proba(frame)):
        joint, arcs, log_evidence = selective_naive_bayes(rows, y, cards, 3, alphas, list(arc_prior.values()), row)
        np.testing.assert_allclose(proba, joint / joint.sum(), atol=1e-10)  # the tolerance of the contract
        np.testing.assert_allclose(classifier.arc_posterior_, arcs, atol=1e-10)
        assert classifier.log_evidence_ == pytest.approx(log_evidence, abs=1e-9)


@pytest.mark.parametrize("n_states", [2, 20, 100, 200, 350, 2000])
def test_noise_of_many_states_is_not_relevant(n_states):
    """690 rows, two classes. With alpha in every cell flat noise rewards the arc, from 200 states on: the table with it holds
    twice the uniform mass."""
    rng = np.random.default_rng(n_states)
    y, X = rng.integers(0, 2, 690), pd.DataFrame(rng.integers(0, n_states, (690, 20)))
    assert AveragedNaiveBayesClassifier().fit(X, y).arc_posterior_.mean() < 0.3
    paper = AveragedNaiveBayesClassifier(preset="paper").fit(X, y).arc_posterior_
    assert paper.mean() > 0.8 if n_states >= 200 else paper.mean() < 0.3


def test_the_preset_is_the_papers_prior():
    frame, y, states, *_ = small_case(1)
    preset = AveragedNaiveBayesClassifier(state_names=states, preset="paper").fit(frame, y)
    spelled = AveragedNaiveBayesClassifier(state_names=states, parameter_prior="paper").fit(frame, y)
    np.testing.assert_array_equal(preset.predict_proba(frame), spelled.predict_proba(frame))
    assert preset.parameter_prior == "consistent"  # presets are resolved inside fit
    with pytest.raises(ValueError, match=r"preset='paper' sets alpha=1\.0, but alpha=2\.0 was passed"):
        AveragedNaiveBayesClassifier(state_names=states, preset="paper", alpha=2.0).fit(frame, y)
    with pytest.raises(ValueError, match="parameter_prior='flat' is not one of 'consistent', 'paper'"):
        AveragedNaiveBayesClassifier(state_names=states, parameter_prior="flat").fit(frame, y)


def test_arc_prior_of_one_is_plain_naive_bayes():
    frame, y, states, *_ = small_case(1)
    plain = NaiveBayesClassifier(state_names=states).fit(frame, y)
    certain = AveragedNaiveBayesClassifier(state_names=states, arc_prior=1.0).fit(frame, y)
    np.testing.assert_array_equal(plain.predict_proba(frame), certain.predict_proba(frame))
    never = AveragedNaiveBayesClassifier(state_names=states, arc_prior=0.0).fit(frame, y)
    assert (never.arc_posterior_ == 0).all()
    np.testing.assert_allclose(
        never.predict_proba(frame), np.tile(never.class_probability_, (len(frame), 1)), atol=1e-15
    )


def test_bad_pseudo_counts_are_named():
    frame, y, states, *_ = small_case(1)
    for parameters in ({"alpha": np.ones(2)}, {"alpha": np.ones(2), "equivalent_sample_size": 1.0}, {"alpha": 0}):
        with pytest.raises(ValueError, match=r"alpha=.* must be a number greater than 0"):
            NaiveBayesClassifier(state_names=states, **parameters).fit(frame, y)
    with pytest.raises(ValueError, match=r"alpha=2\.0 and equivalent_sample_size=1\.0 exclude each other"):
        NaiveBayesClassifier(state_names=states, alpha=2.0, equivalent_sample_size=1.0).fit(frame, y)


def test_thousands_of_columns_do_not_overflow():
    rng = np.random.default_rng(0)
    y = np.arange(72) % 2
    X = (rng.random((72, 7129)) < np.where(y[:, None] == 1, 0.9, 0.1)).astype(int)
    classifier = AveragedNaiveBayesClassifier().fit(X, y)
    log_proba = classifier.predict_log_proba(X)
    assert np.isfinite(log_proba).all() and (classifier.predict(X) == y).all()
    assert np.isfinite(classifier.log_evidence_)
    assert log_proba.min() < -1000  # far past what a product of probabilities could hold


def test_both_faces_give_equal_tables():
    frame, y, states, *_ = small_case(2)
    frame = frame.assign(**{"class": y})
    classifier = AveragedNaiveBayesClassifier(state_names=states, arc_prior=0.3).fit(frame, y="class")
    network = DiscreteBayesianNetwork([("class", f"c{i}") for i in range(5)])
    network = network.fit(frame, estimator=AveragedNaiveBayesEstimator(state_names=states, arc_prior=0.3))
    for node in network.nodes():
        np.testing.assert_array_equal(network.get_cpds(node).values, classifier.model_.get_cpds(node).values)
        assert network.get_cpds(node).state_names == classifier.model_.get_cpds(node).state_names
    paper = AveragedNaiveBayesEstimator(state_names=states, preset="paper")
    network.fit(frame, estimator=paper)
    expected = AveragedNaiveBayesClassifier(state_names=states, preset="paper").fit(frame, y="class").arc_posterior_
    assert paper.arc_posterior_ == expected.to_dict()


def test_pgmpy_face_wants_a_table_with_names():
    frame, *_ = small_case(2)
    network = DiscreteBayesianNetwork([("class", "c0")])
    with pytest.raises(ValueError, match="data is a ndarray; pass a DataFrame whose columns are nodes"):
        AveragedNaiveBayesEstimator().fit(network, frame.to_numpy())


def test_pgmpy_face_refuses_other_structures():
    frame, y, states, *_ = small_case(2)
    network = DiscreteBayesianNetwork([("class", f"c{i}") for i in range(5)] + [("c0", "c1")])
    with pytest.raises(ValueError, match="'c0' -> 'c1'"):
        network.fit(frame.assign(**{"class": y}), estimator=AveragedNaiveBayesEstimator(state_names=states))


def test_tan_finds_the_tree_and_its_parameters():
    rng = np.random.default_rng(4)
    n = 3000
    y = rng.integers(0, 2, n)
    a = rng.integers(0, 3, n)
    b = np.where(rng.random(n) < 0.8, a, rng.integers(0, 3, n))
    c = np.where(rng.random(n) < 0.8, (b + y) % 3, rng.integers(0, 3, n))
    X = pd.DataFrame({"a": a, "c": c, "b": b})
    tan = TANClassifier().fit(X, y)
    assert tan.parents_.to_dict() == {
        "a": "b",
        "c": None,
        "b": "c",
    }  # c tells something about the class, a and b nothing
    counts = np.zeros(3)
    np.add.at(counts, b[(y == 1) & (c == 2)], 1)
    table = tan.model_.get_cpds("b")
    assert table.variables[1:] == ["class", "c"]
    np.testing.assert_allclose(table.values[:, 1, 2], (counts + 1) / (counts.sum() + 3), atol=1e-15)
    assert tan.score(X, y) > NaiveBayesClassifier().fit(X, y).score(X, y) + 0.1


def test_tan_does_not_depend_on_the_order_of_the_columns():
    rng = np.random.default_rng(7)
    y = rng.integers(0, 2, 60)
    X = pd.DataFrame(rng.integers(0, 3, (60, 5)), columns=list("edcba")).assign(copy=lambda table: table["a"])
    holes = X.astype("Int64").mask(rng.random(X.shape) < 0.1)
    for rows in (X, holes):
        tan = TANClassifier().fit(rows, y)
        for columns in (sorted(rows), sorted(rows)[::-1], list(rng.permutation(rows.columns))):
            other = TANClassifier().fit(rows[columns], y)
            assert other.parents_.to_dict() == tan.parents_.to_dict()
            np.testing.assert_allclose(other.predict_proba(rows), tan.predict_proba(rows), atol=1e-12)


def test_importances_are_the_information_of_the_network():
    frame, y, states, *_ = small_case(3)
    for kind in (NaiveBayesClassifier, AveragedNaiveBayesClassifier, TANClassifier):
        classifier = kind(state_names=states).fit(frame, y)
        engine = VariableElimination(classifier.model_)
        expected = []
        for column in frame:
            joint = engine.query(["class", column], show_progress=False).values
            expected.append((joint * np.log(joint / joint.sum(0) / joint.sum(1, keepdims=True))).sum())
        np.testing.assert_allclose(classifier.feature_importances_, expected, atol=1e-12)  # rounding
        assert set(classifier.causal_graph_.edges) == set(classifier.model_.edges)


@pytest.mark.parametrize("gaps", [0.0, 0.1])
def test_tan_of_wide_tables_counts_some_columns_at_a_time(gaps, monkeypatch):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 200)
    X = pd.DataFrame({f"x{i}": (rng.integers(0, 2 + i % 3, 200) + y) % (2 + i % 3) for i in range(9)})
    X = X.mask(rng.random(X.shape) < gaps)
    weights = rng.integers(0, 4, 200)
    whole = TANClassifier().fit(X, y, sample_weight=weights)
    monkeypatch.setattr("pgm_bma.naive_bayes.tan.MAX_PAIR_CELLS", 3 * 27 * 4)  # what the widest column needs
    monkeypatch.setattr("pgm_bma.foundation.numbers.pairs._BLOCK_CELLS", 400)
    blocks = TANClassifier().fit(X, y, sample_weight=weights)
    pd.testing.assert_series_equal(blocks.parents_, whole.parents_)
    np.testing.assert_allclose(
        blocks.conditional_mutual_information_, whole.conditional_mutual_information_, atol=1e-13
    )  # rounding of sums of logarithms
    np.testing.assert_allclose(blocks.predict_proba(X), whole.predict_proba(X), atol=1e-12)


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_tan_refuses_tables_that_do_not_fit_in_memory():
    X = np.random.default_rng(0).integers(0, 2, (4, 7129))
    with pytest.raises(ValueError, match=r"7129 columns with .* select columns first"):
        TANClassifier().fit(X, [0, 1, 0, 1])


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4))
def test_the_tree_is_the_one_of_networkx(seed, n, n_values):
    """Few different strengths: many ties, which go to the first pair."""
    rng = np.random.default_rng(seed)
    strengths = np.triu(rng.integers(0, n_values, (n, n)) / 7.0, 1)
    strengths += strengths.T
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_weighted_edges_from((i, j, strengths[i, j]) for i in range(n) for j in range(i + 1, n))
    expected = np.full(n, -1)
    for parent, child in nx.bfs_edges(nx.maximum_spanning_tree(graph), 0):
        expected[child] = parent
    np.testing.assert_array_equal(maximum_tree(strengths), expected)


AVERAGES = ["averaged NB", "EMA", "forest selective", "forest", "orders"]


def test_the_page_shows_the_kept_results():
    root = Path(__file__).parents[2]
    if not (root / "docs" / "evidence.md").exists():
        pytest.skip("docs/ is part of a checkout, not of the package")
    page = (root / "docs" / "evidence.md").read_text(encoding="utf-8")
    noise = pd.read_csv(root / "benchmarks" / "results" / "prior_noise.csv")
    for _, line in noise.iterrows():
        cells = [f"{line[name]:.2f}" for name in AVERAGES]
        assert f"| {line['prior']} | {line['states']} | {' | '.join(cells)} |" in page
    sound = noise[noise["prior"] == "consistent"]
    assert (sound[AVERAGES] < 0.3).all(axis=None)
    kept = pd.read_csv(root / "benchmarks" / "results" / "prior_noise_relevant.csv")
    for (name, n_rows), line in kept.pivot(index=["data", "rows"], columns="prior", values="mean P(arc)").iterrows():
        assert f"| {name} | {n_rows} | {line['consistent']:.3f} | {line['paper']:.3f} |" in page
