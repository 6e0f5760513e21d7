"""The rooms behind structural EM: E step, missing cells, scores and structure search against enumeration."""

import itertools
import json
import math
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from pgm_bma.augmented import general, search
from pgm_bma.augmented import model as anb
from pgm_bma.augmented.structural_em import CONVERGENCES, fit_em
from pgm_bma.augmented.structures import COMPLETIONS, AugmentedModel, tree_structure
from pgm_bma.foundation.numbers import pairs as pair_groups
from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.numbers.pairs import grouped_pair_counts, indicators, make_pair_groups, pair_counts
from tests.oracles import structural_em as oracle

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "structural_em.json").read_text())
CASES = VECTORS["cases"]
vectors = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
SEEDS = st.integers(0, 2**32 - 1)
PRIOR = anb.Prior()


def packed(model):
    return anb.Parameters(np.array(model["pC"]), anb.pack_tables(model["th"]))


def unpacked(parameters, layout):
    return parameters.class_probs.tolist(), [t.tolist() for t in anb.unpack_tables(parameters.table, layout)]


def model_of(case, parents=None, prior=PRIOR):
    cases = anb.make_cases(np.array(case["data"]), case["cardinalities"])
    return AugmentedModel.build(cases, case["parents"] if parents is None else parents, prior)


def random_problem(seed, n_rows=25, missing=0.0, n_features=4, n_clusters=None):
    """Codes, cardinalities, a random forest and random parameters."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, n_features)
    k = int(rng.integers(1, 4)) if n_clusters is None else n_clusters
    codes = np.column_stack([rng.integers(0, r, n_rows) for r in cards])
    codes[rng.random(codes.shape) < missing] = -1
    forests = oracle.forests(n_features)
    parents = np.array(forests[rng.integers(len(forests))])
    parameters = anb.random_parameters(anb.make_layout(parents, cards), k, rng)
    return codes, cards, parents, parameters, rng.integers(1, 4, n_rows).astype(float)


# ------------------------------------------------------------------------------------------------ EM on complete rows


@vectors
@pytest.mark.parametrize("updates", [1, 2, 5])
def test_em_updates_of_the_vectors(case, updates):
    for key, alpha in (("posterior_mean_pseudo1", 1.0), ("mode_pseudo0", 0.0)):
        expected = case["em"][key][f"after_{updates}"]
        model = model_of(case, prior=anb.Prior(alpha))
        fit = fit_em(model, packed(case["initial"]), max_iter=updates, tol=0.0)
        assert fit.n_updates == updates
        np.testing.assert_allclose(fit.parameters.class_probs, expected["model"]["pC"], atol=1e-9)
        np.testing.assert_allclose(fit.parameters.table, packed(expected["model"]).table, atol=1e-9)


@vectors
def test_em_limit_and_convergence_of_the_vectors(case):
    model, start = model_of(case), packed(case["initial"])
    expected = case["em"]["posterior_mean_pseudo1"]
    limit = fit_em(model, start, max_iter=5000, tol=0.0)
    np.testing.assert_allclose(limit.parameters.table, packed(expected["limit_5000"]["model"]).table, atol=1e-9)
    for convergence, key in (("completed_score", "hard_k2"), ("log_likelihood", "observed_loglik")):
        fit = fit_em(model, start, convergence)
        assert fit.n_updates == expected[f"converged_{key}"]["iterations"] and fit.converged
        np.testing.assert_allclose(fit.value, expected[f"converged_{key}"]["value"], atol=1e-9)
        np.testing.assert_allclose(fit.parameters.table, packed(expected[f"converged_{key}"]["model"]).table, atol=1e-9)


@vectors
def test_readings_of_the_vectors(case):
    model = model_of(case)
    points = [(case["initial"], case["em"]["initial_readings"])]
    points += [(p["model"], p["readings"]) for p in case["em"]["posterior_mean_pseudo1"].values()]
    for given_model, expected in points:
        parameters = packed(given_model)
        found = {
            "hard_k2": model.completed_score(parameters, "most_probable"),
            "soft_k2": model.completed_score(parameters, "expected"),
            "cheeseman_stutz": model.cheeseman_stutz(parameters),
            "observed_loglik": model.e_step(parameters)[0],
        }
        assert found == pytest.approx(expected, abs=1e-9)
    weights = model.responsibilities(packed(case["initial"]))
    np.testing.assert_allclose(weights, case["posterior_initial"], atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_e_step_equals_the_literal_one(seed):
    codes, cards, parents, parameters, weights = random_problem(seed)
    model = AugmentedModel.build(anb.make_cases(codes, cards, weights), parents, PRIOR)
    literal = unpacked(parameters, model.layout)
    repeated = np.repeat(codes, weights.astype(int), axis=0).tolist()
    soft = [oracle.posterior(literal, parents, row) for row in repeated]
    log_likelihood, counts, completed = model.e_step(parameters, True)
    assert log_likelihood == pytest.approx(oracle.observed_log_likelihood(literal, parents, repeated), rel=1e-12)
    for found, resp in ((counts, soft), (completed, oracle.hard(soft))):
        class_counts, tables = oracle.expected_counts(repeated, cards, parents, resp)
        np.testing.assert_allclose(found.classes, class_counts, atol=1e-10)
        np.testing.assert_allclose(found.table, anb.pack_tables(tables), atol=1e-10)
    assert model.log_score(completed) == pytest.approx(
        oracle.completed_score(repeated, cards, parents, oracle.hard(soft)), rel=1e-12
    )
    assert model.log_prior(parameters) == pytest.approx(
        oracle.log_posterior(literal, parents, repeated) - log_likelihood, rel=1e-9
    )


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]), st.sampled_from([0.0, 0.2]))
def test_em_climbs_what_it_says(seed, alpha, missing):
    codes, cards, parents, parameters, weights = random_problem(seed, missing=missing)
    model = AugmentedModel.build(anb.make_cases(codes, cards, weights), parents, anb.Prior(alpha))
    path = fit_em(model, parameters, "log_posterior", max_iter=30, tol=0.0).path
    assert np.diff(path).min() > -1e-9 * abs(path[-1])  # rounding of sums over all rows


def test_super_columns_are_the_plain_gather():
    """The compiled sweep over joined columns against numpy over single columns; rows that underflow go through logs."""
    rng = np.random.default_rng(0)
    cards = rng.integers(2, 5, 40)
    parents = np.array([-1, *[int(rng.integers(-1, i)) for i in range(1, 40)]])
    layout = anb.make_layout(parents, cards)
    parameters = anb.random_parameters(layout, 3, rng)
    codes = np.column_stack([rng.integers(0, r, 60) for r in cards])
    cases = anb.make_cases(codes, cards)
    above = np.where(parents >= 0, codes[:, np.maximum(parents, 0)], 0)
    cells = layout.offsets[:-1] + above * cards + codes
    with np.errstate(divide="ignore"):
        expected = np.log(parameters.class_probs) + np.log(parameters.table)[cells].sum(axis=1)
    np.testing.assert_allclose(anb.log_joint(codes, cards, parents, parameters), expected, rtol=1e-12)
    groups = anb.group_columns(cases, layout)
    assert groups.columns.shape[1] < 30 and groups.size <= 64 * groups.columns.shape[1]
    log_likelihood, counts, _ = anb.em_counts(cases, layout, parameters, groups)
    assert log_likelihood == pytest.approx(logsumexp(expected, axis=1).sum(), rel=1e-12)
    resp = np.exp(expected - logsumexp(expected, axis=1, keepdims=True))
    plain = np.zeros_like(counts.table)
    for i in range(40):
        np.add.at(plain, cells[:, i], resp)
    np.testing.assert_allclose(counts.table, plain, atol=1e-10)
    wide = anb.make_layout(np.full(2000, -1), np.full(2000, 2))
    many = anb.random_parameters(wide, 2, rng)
    many.table[::97] *= 1e-250  # each alone would end a product
    rows = rng.integers(0, 2, (3, 2000))
    with np.errstate(divide="ignore"):
        expected = np.log(many.class_probs) + np.log(many.table)[wide.offsets[:-1] + rows].sum(axis=1)
    assert expected.max() < -1000  # below the smallest float
    np.testing.assert_allclose(anb.log_joint(rows, np.full(2000, 2), wide.parents, many), expected, rtol=1e-12)


def test_an_impossible_row_is_minus_infinity_and_split_evenly():
    layout = anb.make_layout([-1], [2])
    parameters = anb.Parameters(np.array([0.5, 0.5]), np.array([[1.0, 1.0], [0.0, 0.0]]))
    cases = anb.make_cases(np.array([[0], [1]]), [2])
    log_likelihood, counts, _ = anb.em_counts(cases, layout, parameters, anb.group_columns(cases, layout))
    assert log_likelihood == -np.inf
    np.testing.assert_allclose(counts.table, [[0.5, 0.5], [0.5, 0.5]])
    assert (anb.log_joint(np.array([[1]]), [2], [-1], parameters) == -np.inf).all()


# ------------------------------------------------------------------------------------------------ missing cells


def completions_of(codes, cards, parents, parameters):
    """Every completion of every row and cluster with its joint probability: the literal sum over missing cells."""
    literal = unpacked(parameters, anb.make_layout(parents, cards))
    for row in codes:
        choices = [[v] if v >= 0 else range(r) for v, r in zip(row, cards)]
        filled = list(itertools.product(*choices))
        yield filled, np.array([oracle.joint(literal, parents, f) for f in filled])


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_missing_cells_are_summed_out_exactly(seed):
    codes, cards, parents, parameters, weights = random_problem(seed, n_rows=8, missing=0.4)
    model = AugmentedModel.build(anb.make_cases(codes, cards, weights), parents, PRIOR)
    k, n = len(parameters.class_probs), len(cards)
    starts = state_offsets(cards)
    expected, pairs = anb._no_counts(model.layout, k), np.zeros((k, starts[-1], starts[-1]))
    log_joint = []
    for (filled, joint), w in zip(completions_of(codes, cards, parents, parameters), weights):
        log_joint.append(np.log(joint.sum(axis=0)))
        share = w * joint / joint.sum()
        expected.classes[:] += share.sum(axis=0)
        for values, s in zip(filled, share):
            for i, v in enumerate(values):
                cell = model.layout.offsets[i] + (values[parents[i]] * cards[i] if parents[i] >= 0 else 0) + v
                expected.table[cell] += s
            ones = [starts[i] + v for i, v in enumerate(values)]
            for a, b in itertools.product(ones, ones):
                pairs[:, a, b] += s
    np.testing.assert_allclose(anb.log_joint(codes, cards, parents, parameters), log_joint, atol=1e-10)
    weights_now = model.responsibilities(parameters)
    counts = anb.expected_counts(model.cases, model.layout, parameters, weights_now, every_cell=True)
    np.testing.assert_allclose(counts.classes, expected.classes, atol=1e-10)
    np.testing.assert_allclose(counts.table, expected.table, atol=1e-10)
    completed = search.completed_pairs(model.cases, weights_now, model.layout, parameters, model.source)
    for c, found in enumerate(completed):
        # pairs of an attribute with itself hold the single states on their diagonal
        for i, j in itertools.product(range(n), range(n)):
            block = np.s_[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
            mine, theirs = found[block], pairs[c][block]
            if i == j:
                mine, theirs = np.diag(mine), np.diag(theirs)
            np.testing.assert_allclose(mine, theirs, atol=1e-10)


def test_leaving_out_cells_without_information_does_not_move_the_limit():
    codes, cards, parents, parameters, _ = random_problem(5, n_rows=60, missing=0.3, n_clusters=2)
    model = AugmentedModel.build(anb.make_cases(codes, cards), parents, PRIOR)
    fit = fit_em(model, parameters, max_iter=20000, tol=0.0)
    weights = model.responsibilities(fit.parameters)
    full = anb.expected_counts(model.cases, model.layout, fit.parameters, weights, every_cell=True)
    again = anb.update(full, model.layout, PRIOR)
    np.testing.assert_allclose(again.table, fit.parameters.table, atol=1e-7)  # where twenty thousand updates have come
    fewer = anb.expected_counts(model.cases, model.layout, fit.parameters, weights)
    assert fewer.table.sum() < full.table.sum() - 1  # the two are different counts


def test_a_naive_model_ignores_missing_cells():
    codes, cards, _, _, _ = random_problem(3, missing=0.3)
    layout = anb.make_layout(np.full(4, -1), cards)
    parameters = anb.random_parameters(layout, 2, np.random.default_rng(0))
    cases = anb.make_cases(codes, cards)
    counts = anb.em_counts(cases, layout, parameters, anb.group_columns(cases, layout))[1]
    seen = [np.bincount(column[column >= 0], minlength=r) for column, r in zip(codes.T, cards)]
    np.testing.assert_allclose(counts.table.sum(axis=1), np.concatenate(seen), atol=1e-10)


# ------------------------------------------------------------------------------------------------ structure search


@vectors
def test_structure_vectors(case):
    cases = anb.make_cases(np.array(case["data"]), case["cardinalities"])
    hard = anb.one_hot(np.array(case["completed_class_column"]), case["clusters"])
    soft = np.array(case["posterior_initial"])
    naive = np.full(len(case["cardinalities"]), -1)
    for key, weights in (("structure_hard", hard), ("structure_soft_posterior_initial", soft)):
        expected = case[key]
        scores = search.family_scores(cases, weights)
        wanted = np.array([[np.nan if v is None else v for v in line] for line in expected["family_scores"]])
        np.testing.assert_allclose(scores, wanted, atol=1e-9)
        found = search.maximum_branching(scores)
        assert found.tolist() in expected["exhaustive"]["maximisers"]
        assert search.total_score(scores, found) == pytest.approx(expected["branching"]["families_total"], abs=1e-9)
        climbed, moves = search.hill_climb(scores, naive)
        assert climbed.tolist() == expected["hill_climbing_from_naive"]["parents"]
        assert len(moves) == expected["hill_climbing_from_naive"]["moves"]
        assert search.total_score(scores, naive) == pytest.approx(expected["naive_total"], abs=1e-9)


def test_the_oracle_counts_the_forests():
    assert {str(n): len(oracle.forests(n)) for n in range(1, 6)} == VECTORS["rooted_forests"]


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.integers(1, 5), st.booleans())
def test_branching_is_the_best_of_all_and_hill_climbing_is_literal(seed, n, with_ties):
    rng = np.random.default_rng(seed)
    scores = rng.integers(-3, 3, (n, n + 1)).astype(float) if with_ties else rng.normal(size=(n, n + 1)) * 5
    scores[np.arange(n), np.arange(n) + 1] = np.nan
    best, maximisers = oracle.exhaustive(scores.tolist())
    found = search.maximum_branching(scores)
    assert search.total_score(scores, found) == pytest.approx(best, abs=1e-9)
    assert found.tolist() in maximisers
    start = np.array(oracle.forests(n)[rng.integers(len(oracle.forests(n)))])
    assert search.hill_climb(scores, start)[0].tolist() == oracle.hill_climb(scores.tolist(), start.tolist())[0]
    kept = search.best_structure(scores, found, "branching")
    assert kept.tolist() == found.tolist()  # nothing gains on the best


@pytest.mark.parametrize("n", [2, 9, 25])
def test_branching_equals_networkx(n):
    """The compiled contraction of cycles against its plain twin, on symmetric gains, where cycles nest deeply."""
    rng = np.random.default_rng(n)
    scores = np.full((n, n + 1), -1.0)
    scores[:, 1:] = rng.normal(size=(n, n)) * 4
    scores[:, 1:] += scores[:, 1:].T.copy()
    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    for child, parent in itertools.permutations(range(n), 2):
        if scores[child, parent + 1] > scores[child, 0]:
            graph.add_edge(parent, child, weight=scores[child, parent + 1] - scores[child, 0])
    twin = np.full(n, -1)
    for parent, child in nx.maximum_branching(graph).edges:
        twin[child] = parent
    found = search.maximum_branching(scores)
    assert search.total_score(scores, found) == pytest.approx(search.total_score(scores, twin), rel=1e-12)
    assert len(anb.forest_order(found)) == n


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_family_scores_equal_the_literal_ones(seed):
    codes, cards, _, parameters, weights = random_problem(seed)
    resp = np.random.default_rng(seed).dirichlet(np.ones(len(parameters.class_probs)), len(codes))
    found = search.family_scores(anb.make_cases(codes, cards, weights), resp)
    repeats = weights.astype(int)
    literal = oracle.family_scores(
        np.repeat(codes, repeats, axis=0).tolist(), cards.tolist(), np.repeat(resp, repeats, axis=0).tolist()
    )
    wanted = np.array([[np.nan if v is None else v for v in line] for line in literal])
    np.testing.assert_allclose(found, wanted, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_class_pairs_equal_matrix_products(missing, monkeypatch):
    monkeypatch.setattr(pair_groups, "_LEAST_COST", 1e6)  # fifty rows
    rng = np.random.default_rng(0)
    cards = np.array([2, 3, 40, 2, 2, 5, 1])
    codes = np.column_stack([rng.integers(0, r, 200) for r in cards]).astype(np.int8)
    codes[:, :3][rng.random((200, 3)) < missing] = -1
    target, weights = rng.integers(0, 3, 200), rng.integers(1, 4, 200).astype(float)
    plain = pair_counts(indicators(codes, cards), np.eye(3)[target] * weights[:, None])
    found = pair_groups.count_class_pairs(codes, cards, target, 3, weights)
    np.testing.assert_array_equal(found, np.rint(found))  # whole weights: exact
    np.testing.assert_allclose(found, plain, rtol=1e-14, atol=1e-12)  # the product multiplies roots of weights


@pytest.mark.parametrize("n_features", [1, 3, 20])
def test_grouped_pair_counts_equal_matrix_products(n_features):
    """The compiled sweep over joined columns against its plain twin, exactly so for whole weights."""
    rng = np.random.default_rng(n_features)
    cards = rng.integers(1, 6, n_features)
    codes = np.column_stack([rng.integers(0, r, 200) for r in cards])
    groups = make_pair_groups(codes, cards)
    for weights in (rng.integers(0, 4, (200, 3)).astype(float), rng.random((200, 3))):
        found, plain = grouped_pair_counts(groups, weights), pair_counts(indicators(codes, cards), weights)
        np.testing.assert_allclose(found, plain, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(
        grouped_pair_counts(groups, np.ones((200, 1))).diagonal(axis1=1, axis2=2).sum(), 200 * n_features
    )


def test_k2_oracle_is_the_prequential_product():
    assert oracle.log_k2([2, 0, 1]) == pytest.approx(oracle.log_k2_prequential([0, 2, 0], 3), rel=1e-12)


def test_bdeu_scores_do_not_see_the_direction_of_an_arc():
    codes, cards, _, _, _ = random_problem(11, n_rows=80)
    resp = np.random.default_rng(0).dirichlet(np.ones(2), len(codes))
    scores = search.family_scores(anb.make_cases(codes, cards), resp, anb.Prior(1.0, 4.0))
    pair = scores[:, 1:] + scores[:, 0]  # child i below j, and j alone
    off = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(pair[off], pair.T[off], rtol=1e-12)
    model = AugmentedModel.build(anb.make_cases(codes, cards), [-1, 0, -1, 2], anb.Prior(1.0, 4.0))
    counts = anb.expected_counts(model.cases, model.layout, None, resp)
    total = search.total_score(scores, [-1, 0, -1, 2])
    sizes = counts.classes
    top = math.lgamma(4) - math.lgamma(4 + sizes.sum()) + sum(math.lgamma(2 + n) - math.lgamma(2) for n in sizes)
    assert model.log_score(counts) == pytest.approx(total + top, rel=1e-12)


def test_the_tree_start_finds_what_all_clusters_share():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 400)
    codes = np.column_stack([a, (a + (rng.random(400) < 0.1)) % 3, rng.integers(0, 2, 400)])
    parents = tree_structure(anb.make_cases(codes, [3, 3, 2]))
    assert sorted(parents.tolist()) in ([-1, -1, 0], [-1, -1, 1]) and parents[2] == -1
    codes[rng.random(codes.shape) < 0.2] = -1
    assert tree_structure(anb.make_cases(codes, [3, 3, 2]))[2] == -1


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match=r"columns \[0, 1\] form a cycle"):
        anb.make_layout([1, 0, -1], [2, 2, 2])


# ------------------------------------------------------------------------------------------------ general structures


@settings(max_examples=15, deadline=None)
@given(SEEDS)
def test_the_general_room_agrees_on_an_augmented_structure(seed):
    codes, cards, parents, parameters, weights = random_problem(seed, n_clusters=2)
    model = AugmentedModel.build(anb.make_cases(codes, cards, weights), parents, PRIOR)
    families = ((), *[(0,) if p < 0 else (0, int(p) + 1) for p in parents])
    everything = np.array([2, *cards])
    other = general.GeneralModel(general.with_cluster(codes), weights, everything, families, PRIOR, 3)
    tables = [parameters.class_probs[None]]
    tables += [t.reshape(-1, t.shape[-1]) for t in anb.unpack_tables(parameters.table, model.layout)]
    for convergence in CONVERGENCES:
        mine = fit_em(model, parameters, convergence, max_iter=3, tol=0.0)
        theirs = fit_em(other, tables, convergence, max_iter=3, tol=0.0)
        np.testing.assert_allclose(mine.path, theirs.path, rtol=1e-10)
        np.testing.assert_allclose(mine.responsibilities, theirs.responsibilities, atol=1e-9)
    for completion in COMPLETIONS:
        # the expectation of one count is right to 3e-9, by series that add rows in another order; there are some hundred counts
        slack = 1e-6 if completion == "expectation" else 1e-8
        assert model.run_score(parameters, completion) == pytest.approx(
            other.run_score(tables, completion), rel=0, abs=slack
        )
    assert model.cheeseman_stutz(parameters) == pytest.approx(other.cheeseman_stutz(tables), rel=1e-10)
    assigned = np.random.default_rng(seed).integers(-1, 2, len(codes))
    collapsed = other.collapse(assigned, 2)
    np.testing.assert_allclose(model.collapse(assigned, 2).class_probs, collapsed[0][0], atol=1e-12)
    joint = anb.log_joint(codes, cards, parents, parameters)
    np.testing.assert_allclose(general.log_joint(codes, everything, families, tables), joint, atol=1e-10)


@pytest.mark.parametrize("completion", ["expected", "most_probable"])
def test_the_general_search_ends_in_a_local_optimum(completion):
    codes, cards, _, _, weights = random_problem(8, n_rows=60, missing=0.1, n_clusters=2)
    codes[:, 1] = np.where(codes[:, 0] >= 0, np.minimum(codes[:, 0], cards[1] - 1), codes[:, 1])
    everything = np.array([2, *cards])
    naive = ((), *((0,) for _ in cards))
    model = general.GeneralModel(general.with_cluster(codes), weights, everything, naive, PRIOR, 2)
    fit = fit_em(model, general.random_tables(everything, naive, np.random.default_rng(0)))
    found, _, change = model.next_structure(fit.parameters, fit.responsibilities, "hill_climb", completion)
    assert change["added"] and max(map(len, found.parents)) <= 2
    winner = fit.responsibilities.argmax(axis=1) if completion == "most_probable" else None

    def score(parents):
        counts = model._family_counts(fit.parameters, list(enumerate(parents)), winner)
        return sum(model._score(i, ps, n) for (i, ps), n in zip(enumerate(parents), counts))

    reached = score(found.parents)
    assert reached > score(naive)
    for child, parent in itertools.permutations(range(5), 2):  # add or drop one arc, by brute force
        others = set(found.parents[child]) ^ {parent}
        changed = [tuple(sorted(others)) if i == child else ps for i, ps in enumerate(found.parents)]
        graph = nx.DiGraph([(p, i) for i, ps in enumerate(changed) for p in ps])
        if len(others) <= 2 and nx.is_directed_acyclic_graph(graph):
            assert score(changed) <= reached + 1e-8


def test_moves_are_all_legal_neighbours():
    """Against networkx: every addition, removal and reversal that keeps a small graph acyclic, and no other."""
    parents = [(), (0,), (0, 1), (2,)]
    found = set()
    for move in general._moves(parents, 2):
        changed = list(parents)
        for child, ps in move:
            changed[child] = ps
        found.add(tuple(changed))
    wanted = set()
    arcs = {(p, i) for i, ps in enumerate(parents) for p in ps}
    for a, b in itertools.permutations(range(4), 2):
        for changed in ({(a, b)} ^ arcs, arcs - {(a, b)} | {(b, a)}) if (a, b) in arcs else ({(a, b)} ^ arcs,):
            above = tuple(tuple(sorted(p for p, i in changed if i == node)) for node in range(4))
            if nx.is_directed_acyclic_graph(nx.DiGraph(list(changed))) and max(map(len, above)) <= 2:
                wanted.add(above)
    assert found == wanted
