"""The expectation of the log score over all completions: against the sum over all of them, and what its parts are."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import gammaln

from pgm_bma import StructuralEMClusterer
from pgm_bma.augmented import general
from pgm_bma.augmented import model as anb
from pgm_bma.augmented.expectation import CellRows, expected_log_gammas
from pgm_bma.augmented.structural_em import StructuralEMSettings, run_structural_em
from pgm_bma.augmented.structures import AugmentedModel, attribute_families
from tests.oracles import structural_em as oracle

PRIOR = anb.Prior()
SEEDS = st.integers(0, 2**32 - 1)
SHARES = {
    "any": lambda rng, n: rng.random(n),
    "clear": lambda rng, n: rng.beta(0.1, 0.1, n),
    "unlikely": lambda rng, n: rng.beta(0.2, 10, n),
    "likely": lambda rng, n: rng.beta(5, 0.1, n),
    "equal": lambda rng, n: np.full(n, rng.random() ** 4),
}


def random_model(seed, n_rows, n_missing=0, n_features=3, n_clusters=2, prior=PRIOR, weights=None):
    """A random structure over random rows, its parameters, and the same parameters for the oracle."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, n_features)
    codes = np.column_stack([rng.integers(0, r, n_rows) for r in cards])
    codes.flat[rng.choice(codes.size, n_missing, replace=False)] = -1
    forests = oracle.forests(n_features)
    parents = np.array(forests[rng.integers(len(forests))])
    layout = anb.make_layout(parents, cards)
    parameters = anb.random_parameters(layout, n_clusters, rng)
    literal = parameters.class_probs.tolist(), [t.tolist() for t in anb.unpack_tables(parameters.table, layout)]
    model = AugmentedModel.build(anb.make_cases(codes, cards, weights), parents, prior)
    return model, parameters, literal, codes


@pytest.mark.parametrize("seed", range(20))
def test_the_expectation_is_the_sum_over_all_completions(seed):
    model, parameters, literal, codes = random_model(seed, n_rows=8 + seed % 5)
    wanted = oracle.expected_log_score(codes.tolist(), model.cases.cardinalities, model.parents, literal)
    assert model.completed_score(parameters, "expectation") == pytest.approx(wanted, abs=1e-10)
    assert model.completed_score(parameters, "expected") < wanted  # Jensen


@pytest.mark.parametrize("seed", range(6))
def test_missing_cells_are_completed_together_with_the_cluster(seed):
    model, parameters, literal, codes = random_model(seed, n_rows=5, n_missing=1 + seed % 3)
    wanted = oracle.expected_log_score(codes.tolist(), model.cases.cardinalities, model.parents, literal)
    assert model.completed_score(parameters, "expectation") == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("shares", SHARES)
@pytest.mark.parametrize("n_rows", [5, 40, 150, 1500])
def test_the_expected_log_gamma_of_a_count(shares, n_rows):
    """Against the recursion over all rows; 1e-8 a count, so that no score of less than a hundred counts is 1e-6 off."""
    rng = np.random.default_rng(n_rows)
    alphas = [0.01, 1.0, 3.0]
    for _ in range(5):
        probabilities, weights = SHARES[shares](rng, n_rows), rng.integers(1, 3, n_rows)
        distribution = np.ones(1)
        for r in np.repeat(probabilities, weights):
            distribution = np.convolve(distribution, [1 - r, r])
        wanted = [distribution @ gammaln(np.arange(len(distribution)) + a) for a in alphas]
        rows = CellRows(np.zeros(n_rows, dtype=int), weights.astype(float), probabilities[:, None], 1)
        np.testing.assert_allclose(expected_log_gammas(rows, alphas)[:, 0, 0], wanted, rtol=0, atol=1e-8)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from([PRIOR, anb.Prior(0.3), anb.Prior(1.0, 2.0)]), st.sampled_from([0, 6]))
def test_family_scores_add_up_to_the_score_of_every_structure(seed, prior, n_missing):
    model, parameters, _, _ = random_model(seed, n_rows=30, n_missing=n_missing, prior=prior)
    shares = model.responsibilities(parameters)
    own, scores = model._expected_scores(parameters, shares)
    assert model.completed_score(parameters, "expectation") == pytest.approx(
        own + oracle.total(scores, model.parents), abs=1e-8
    )
    # rows whose cluster is certain have one completion, if their cells are complete
    hard = anb.one_hot(shares.argmax(axis=1), 2)
    if not n_missing:
        certain = model.family_scores(parameters, hard)
        np.testing.assert_allclose(model.family_scores(parameters, hard, "expectation"), certain, atol=1e-9)


@settings(max_examples=10, deadline=None)
@given(SEEDS)
def test_a_weight_is_a_number_of_rows(seed):
    weights = np.random.default_rng(seed).integers(1, 5, 12)
    model, parameters, _, codes = random_model(seed, n_rows=12, n_missing=4, weights=weights)
    cases = anb.make_cases(np.repeat(codes, weights, axis=0), model.cases.cardinalities)
    repeated = AugmentedModel.build(cases, model.parents, model.prior)
    wanted = repeated.completed_score(parameters, "expectation")
    assert model.completed_score(parameters, "expectation") == pytest.approx(wanted, abs=1e-9)


@settings(max_examples=6, deadline=None)
@given(SEEDS)
def test_general_structures_with_the_cluster_anywhere(seed):
    """A child of a column, a parent, or neither: all completions, one at a time."""
    rng = np.random.default_rng(seed)
    cards, parents = np.array([2, 2, 3, 2]), ((1,), (), (0, 1), (1, 2))
    codes = np.column_stack([rng.integers(0, r, 6) for r in cards[1:]])
    model = general.GeneralModel(general.with_cluster(codes), np.ones(6), cards, parents, PRIOR, 2)
    tables = general.random_tables(cards, parents, rng)
    shares = model.responsibilities(tables)
    wanted = 0.0
    for clusters in np.ndindex(*[2] * 6):
        counts = model._family_counts(tables, list(enumerate(parents)), np.array(clusters))
        wanted += shares[np.arange(6), clusters].prod() * model.log_score(counts)
    assert model.completed_score(tables, "expectation") == pytest.approx(wanted, abs=1e-10)


@settings(max_examples=10, deadline=None)
@given(SEEDS, st.sampled_from(["branching", "hill_climb"]), st.sampled_from(["augmented", "general"]))
def test_no_round_lowers_the_score_and_it_bounds_the_evidence(seed, search, structures):
    model, parameters, _, codes = random_model(seed, n_rows=40)
    if structures == "general":
        cards = np.array([2, *model.cases.cardinalities])
        families = attribute_families(model.parents)
        parameters = general.random_tables(cards, families, np.random.default_rng(seed))
        model = general.GeneralModel(general.with_cluster(codes), np.ones(40), cards, families, model.prior, 3)
    run = run_structural_em(model, parameters, StructuralEMSettings(search=search, completion="expectation"))
    assert (np.diff(run.scores[1:]) >= -1e-9 * abs(run.scores[-1])).all()
    at_expected = run.model.run_score(run.parameters, "expected")
    assert at_expected <= run.scores[-1] + 1e-8  # both bound log p(data | structure) from below


def test_the_estimator_and_its_errors():
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 2, 200)
    X = pd.DataFrame({name: np.where(rng.random(200) < 0.9, cluster, 1 - cluster) for name in "abcdef"})
    X["g"] = np.where(rng.random(200) < 0.9, X["f"], 1 - X["f"])
    choices = {"completion": "expectation", "n_init": 2, "random_state": 0}
    clusterer = StructuralEMClusterer(2, **choices).fit(X)
    assert {frozenset(arc) for arc in clusterer.model_.edges() if "cluster" not in arc} == {frozenset("fg")}
    score = clusterer.completed_score(X, "expectation")
    assert clusterer.completed_score(X, "expected") < score < clusterer.score_path_[-1]
    weights = np.full(200, 0.5)
    with pytest.raises(ValueError, match=r"one is 0\.5; pass whole numbers, or completion='expected'"):
        StructuralEMClusterer(2, **choices).fit(X, sample_weight=weights)
    with pytest.raises(ValueError, match=r"one is 0\.5"):
        clusterer.completed_score(X, "expectation", sample_weight=weights)
    gappy = X.astype(object).mask(rng.random(X.shape) < 0.1)
    StructuralEMClusterer(2, **choices).fit(gappy)
    with pytest.raises(ValueError, match=r"column 'a' has missing cells.*completion='expected'"):
        StructuralEMClusterer(2, structures="general", **choices).fit(gappy)
