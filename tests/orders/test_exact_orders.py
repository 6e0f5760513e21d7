"""Sums over all orders and all DAGs against enumeration, with gaps far beyond the range of a double."""

import json
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest

from pgm_bma.orders.families.family_table import family_table, parent_sets
from pgm_bma.orders.sums import exact_dags, exact_orders, fixed_order
from tests.oracles.orders import Problem

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "order.json").read_text())["cases"]
PRIOR = {"fk": "friedman_koller", "mdl": "mdl", "uniform": "uniform"}
ATOL = 1e-9  # the agreement that the project asks for
cases = pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])


def table_of(case):
    codes = np.array(case["data"], dtype=np.int32).reshape(-1, len(case["cards"]))
    cards = np.array(case["cards"])
    table = family_table(
        codes,
        cards,
        max_indegree=case["max_parents"],
        equivalent_sample_size=case["ess"],
        structure_prior=PRIOR[case["structure_prior"]],
    )
    return table, fixed_order.Training(np.asfortranarray(codes), np.ones(len(codes)), cards, 1.0, case["ess"])


def strong_data(n_rows, n=4, seed=0):
    """Copies with little noise: family scores lie thousands of nats apart."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 2, (n_rows, n))
    for v in range(1, n):
        codes[:, v] = np.where(rng.random(n_rows) < 0.98, codes[:, v - 1], codes[:, v])
    return codes


@cases
def test_vectors(case):
    table, training = table_of(case)
    rows = np.array(case["rows"])
    predictive = fixed_order.all_predictive(table, training, rows)
    sums, truth = exact_orders.sum_over_orders(table), case["all_orders_exact"]
    assert sums.log_evidence == pytest.approx(truth["log_total"], abs=ATOL)
    np.testing.assert_allclose(exact_orders.edge_posterior(sums), truth["edge_posterior"], atol=ATOL)
    np.testing.assert_allclose(exact_orders.log_joint(sums, predictive), truth["log_joint"], atol=ATOL)
    parents, score = exact_orders.best_dag(table)
    assert [list(z) for z in parents] == case["map_dag"]["parents"]
    assert score == pytest.approx(case["map_dag"]["log_score"], abs=ATOL)
    if "structure_modular_exact" in case:
        dags, truth = exact_dags.sum_over_dags(table), case["structure_modular_exact"]
        assert dags.log_evidence == pytest.approx(truth["log_total"], abs=ATOL)
        np.testing.assert_allclose(exact_dags.edge_posterior(dags), truth["edge_posterior"], atol=ATOL)
        np.testing.assert_allclose(exact_dags.log_joint(dags, predictive), truth["log_joint"], atol=ATOL)


@pytest.mark.parametrize("n_rows", [30, 4000])  # at 4000 rows, gaps of thousands of nats: the lower scales are used
@pytest.mark.parametrize("arcs", ["free", "constrained"])
def test_both_weightings_equal_enumeration(n_rows, arcs):
    codes = strong_data(n_rows)
    required, forbidden = ([(2, 1)], [(3, 0)]) if arcs == "constrained" else ([], [])

    def allowed(child, parents):
        return all(p in parents for p, c in required if c == child) and not any(
            p in parents for p, c in forbidden if c == child
        )

    table = family_table(codes, [2] * 4, max_indegree=3, required=required, forbidden=forbidden)
    truth = Problem(codes.tolist(), [2] * 4, 3, allowed=allowed)
    training = fixed_order.Training(
        np.asfortranarray(codes, dtype=np.int32), np.ones(n_rows), table.cardinalities, 1.0, None
    )
    rows = np.array([[0, 0, 1, 0], [1, 1, 1, 1]])
    predictive = fixed_order.all_predictive(table, training, rows)
    for weighting, room, sums in (
        ("order", exact_orders, exact_orders.sum_over_orders(table)),
        ("dag", exact_dags, exact_dags.sum_over_dags(table)),
    ):
        # scores near 1e4 carry rounding of 1e-11 each
        assert sums.log_evidence == pytest.approx(truth.evidence(weighting), abs=1e-8)
        np.testing.assert_allclose(room.edge_posterior(sums), truth.edges(weighting), atol=1e-8)
        expected = [truth.log_joint(row, weighting) for row in rows.tolist()]
        np.testing.assert_allclose(room.log_joint(sums, predictive), expected, atol=1e-8)


@pytest.mark.parametrize("repeat", [1, 1000, 10**9])
def test_sums_inside_subsets_for_any_number_of_rows(repeat):
    """Sets of 4 x 10^12 rows differ by 10^12 nats: such sums are done in logs."""
    table = family_table(strong_data(4000), [2] * 4, np.full(4000, float(repeat)))
    masks, log_scores = exact_orders.families_by_mask(table)
    sums = np.empty(8)
    for node in range(4):
        exact_orders.log_subset_sums(masks[node], log_scores[node], sums)
        for subset in range(8):
            inside = [s for mask, s in zip(masks[node], log_scores[node]) if mask & ~subset == 0]
            assert sums[subset] == pytest.approx(np.logaddexp.reduce(inside), rel=1e-14, abs=1e-9)


@pytest.mark.parametrize("weighting", ["order", "dag"])
def test_exact_averages_of_a_million_rows_equal_enumeration(weighting):
    """Tolerances: scores near 10^6 carry 1e-10 each, and some twenty of them are added."""
    codes, weights = strong_data(400), np.full(400, 2500.0)
    table = family_table(codes, [2] * 4, weights)
    room = exact_orders if weighting == "order" else exact_dags
    sums = room.sum_over_orders(table) if weighting == "order" else room.sum_over_dags(table)
    scores = [dict(zip(parent_sets(table, v), table.log_scores[table.offsets[v] :])) for v in range(4)]
    totals = []
    training = fixed_order.Training(codes.astype(np.int32), weights, np.array([2] * 4), 1.0, None)
    predictive = fixed_order.all_predictive(table, training, codes[:3])
    means = [dict(zip(parent_sets(table, v), predictive[table.offsets[v] :])) for v in range(4)]
    for order in permutations(range(4)):
        for dag in product(*[[z for z in scores[v] if set(z) <= set(order[: order.index(v)])] for v in range(4)]):
            totals.append((dag, sum(scores[v][z] for v, z in enumerate(dag))))
    if weighting == "dag":
        totals = list(dict(totals).items())
    log_weights = np.array([score for _, score in totals])
    evidence = np.logaddexp.reduce(log_weights)
    shares = np.exp(log_weights - evidence)
    edges, joints = np.zeros((4, 4)), np.zeros(3)
    for (dag, _), share in zip(totals, shares):
        for v, z in enumerate(dag):
            edges[list(z), v] += share
        joints += share * np.prod([means[v][z] for v, z in enumerate(dag)], axis=0)
    assert sums.log_evidence == pytest.approx(evidence, rel=1e-13)
    np.testing.assert_allclose(room.edge_posterior(sums), edges, atol=1e-8)
    np.testing.assert_allclose(room.log_joint(sums, predictive), np.log(joints), atol=1e-8)


def test_draws_follow_the_posterior():
    """Frequencies of all orders and of all layerings within five standard errors."""
    codes = strong_data(25, n=4, seed=3)
    table = family_table(codes, [2] * 4, max_indegree=2)
    truth = Problem(codes.tolist(), [2] * 4, 2)
    n_draws = 4000
    rng = np.random.default_rng(0)
    drawn = exact_orders.draw_orders(exact_orders.sum_over_orders(table), n_draws, rng)
    total = truth.evidence("order")
    for order in truth.all_orders():
        p = np.exp(truth.order_log_score(order) - total)
        found = (drawn == np.array(order)).all(1).mean()
        assert abs(found - p) < 5 * np.sqrt(p * (1 - p) / n_draws) + 1e-12
    layers = exact_dags.draw_layers(exact_dags.sum_over_dags(table), n_draws, rng)
    from tests.oracles.orders import layers_of

    total = truth.evidence("dag")
    weight = {}
    for dag in truth.dags():
        key = layers_of(dag)
        weight[key] = weight.get(key, 0.0) + np.exp(truth.dag_log_score(dag) - total)
    for key, p in weight.items():
        numbers = np.empty(4, dtype=int)
        for level, nodes in enumerate(key):
            numbers[list(nodes)] = level
        found = (layers == numbers).all(1).mean()
        assert abs(found - p) < 5 * np.sqrt(p * (1 - p) / n_draws) + 1e-12


def test_best_order_and_best_dag_with_ties():
    """BDeu scores all members of an equivalence class alike: ties go to the first parents of the first node."""
    for seed in range(4):
        codes = strong_data(40, n=4, seed=seed)
        table = family_table(codes, [2] * 4, equivalent_sample_size=2.0, structure_prior="uniform")
        truth = Problem(codes.tolist(), [2] * 4, 3, "uniform", ess=2.0)
        parents, score = exact_orders.best_dag(table)
        expected, best = truth.best_dag()
        assert tuple(parents) == expected
        assert score == pytest.approx(best, abs=1e-9)
        order = exact_orders.best_order(exact_orders.sum_over_orders(table))
        best = max(truth.order_log_score(o) for o in truth.all_orders())
        assert truth.order_log_score(order.tolist()) == pytest.approx(best, abs=1e-9)


def test_required_cycle_is_an_error():
    table = family_table(strong_data(20, n=3), [2] * 3, required=[(0, 1), (1, 0)])
    with pytest.raises(ValueError, match="cycle"):
        exact_orders.sum_over_orders(table)
    with pytest.raises(ValueError, match="cycle"):
        exact_dags.sum_over_dags(table)


def test_orders_and_dags_differ_where_they_should():
    """With no data the two weightings are two priors: 11/72 and 4/17 for every arc of three variables."""
    table = family_table(np.zeros((0, 3), dtype=int), [2, 3, 2], max_indegree=2)
    orders = exact_orders.edge_posterior(exact_orders.sum_over_orders(table))
    dags = exact_dags.edge_posterior(exact_dags.sum_over_dags(table))
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(orders[off], 11 / 72, atol=1e-12)
    np.testing.assert_allclose(dags[off], 4 / 17, atol=1e-12)
