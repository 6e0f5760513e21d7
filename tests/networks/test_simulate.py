"""Sampling from networks and random models: laws by chi-square at fixed seeds, everything else exactly.

Each chi-square test rejects at 1e-4: a right sampler fails one in ten thousand seeds, and the seeds are fixed, so a test that
passed once keeps passing. Gross mistakes (a parent ignored, a lopsided proposal) were seen to fail at these sample sizes.
"""

import json
import os
import pickle
import subprocess
import sys
from collections import Counter
from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, kstest

import pgm_bma
from benchmarks._random_models import (
    random_augmented_naive_bayes,
    random_network_classifier,
    random_selective_naive_bayes,
)
from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.networks._random_dag_kernels import walk
from pgm_bma.networks.objects import bayesian_network, network_arrays
from pgm_bma.networks.simulation import draw_parents, simulate
from tests.oracles import random_dag as oracle

LEVEL = 1e-4


def small_network(latents=()):
    """Three nodes with mixed kinds of states, a collider with parents out of node order, and a state of probability 0."""
    return bayesian_network(
        ["c", "a", "b"],
        [("low", "mid", "high"), (True, False), (1, 2.5, "x")],
        [(2, 1), (), (1,)],
        [
            [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.5, 0.0], [0.0, 0.1, 0.9], [0.25, 0.25, 0.5], [1.0, 0.0, 0.0]],
            [[0.3, 0.7]],
            [[0.2, 0.3, 0.5], [0.6, 0.0, 0.4]],
        ],
        latents=latents,
    )


def joint_probabilities(model):
    """Product of table entries for every joint state, from the pgmpy tables by name."""
    nodes = list(model.nodes)
    states = {node: model.get_cpds(node).state_names[node] for node in nodes}
    joint = {}
    for values in product(*(states[node] for node in nodes)):
        row = dict(zip(nodes, values))
        joint[values] = np.prod([model.get_cpds(node).get_value(**family_of(model, node, row)) for node in nodes])
    return joint


def family_of(model, node, row):
    return {name: row[name] for name in model.get_cpds(node).variables}


def check_counts(counts, probabilities, n):
    observed = np.array([counts.get(key, 0) for key in probabilities])
    expected = n * np.array(list(probabilities.values()))
    assert observed.sum() == n  # nothing outside the support
    assert (observed[expected == 0] == 0).all()
    assert chisquare(observed[expected > 0], expected[expected > 0]).pvalue > LEVEL


# ----------------------------------------------------------------------------------------------------- simulate


def test_rows_follow_the_joint_distribution():
    model, n = small_network(), 50_000
    rows = simulate(model, n, random_state=1)
    check_counts(Counter(rows.itertuples(index=False, name=None)), joint_probabilities(model), n)


def test_marginals_of_asia_agree_with_exact_inference():
    from pgmpy.inference import VariableElimination

    model, n = pgm_bma.load_network("asia"), 20_000
    rows = simulate(model, n, random_state=2)
    inference = VariableElimination(model)
    for pair in [("dysp", "xray"), ("either", "bronc"), ("asia", "tub")]:
        factor = inference.query(list(pair), show_progress=False)
        names = factor.variables
        probabilities = {
            values: factor.get_value(**dict(zip(names, values)))
            for values in product(*(factor.state_names[v] for v in names))
        }
        check_counts(Counter(rows[names].itertuples(index=False, name=None)), probabilities, n)


def test_columns_are_the_nodes_and_values_the_states():
    rows = simulate(small_network(), 200, random_state=0)
    assert list(rows.columns) == ["c", "a", "b"]
    assert list(rows["c"].cat.categories) == ["low", "mid", "high"]
    assert {type(value) for value in rows["b"]} == {int, float, str}
    assert set(rows["a"]) == {True, False} and rows["a"].cat.categories.dtype == bool
    assert rows.index.equals(pd.RangeIndex(200))


def test_states_that_were_not_drawn_stay_known():
    rows = simulate(small_network(), 1, random_state=0)
    assert len(rows["c"].cat.categories) == 3
    empty = simulate(small_network(), 0)
    assert empty.shape == (0, 3) and list(empty["b"].cat.categories) == [1, 2.5, "x"]


@pytest.mark.parametrize("state", [None, float("nan")])
def test_a_state_that_means_missing_is_refused(state):
    with pytest.raises(ValueError, match=r"the states .* of node 'a' cannot label a column .*; rename them"):
        simulate(bayesian_network(["a"], [(state, "x")], [()], [[[0.5, 0.5]]]), 3)


def test_latents_are_drawn_and_left_out():
    model = small_network(latents={"a"})
    shown, full = simulate(model, 100, 3), simulate(model, 100, 3, include_latents=True)
    assert list(shown.columns) == ["c", "b"] and list(full.columns) == ["c", "a", "b"]
    pd.testing.assert_frame_equal(shown, full[["c", "b"]])


def test_equal_seeds_give_equal_rows():
    model = small_network()
    assert simulate(model, 50, 7).equals(simulate(model, 50, 7))
    assert not simulate(model, 50, 7).equals(simulate(model, 50, 8))
    assert not simulate(model, 50).equals(simulate(model, 50))
    for make in (np.random.default_rng, np.random.RandomState):
        shared = make(5)
        first, second = simulate(model, 50, shared), simulate(model, 50, shared)
        assert first.equals(simulate(model, 50, make(5))) and not first.equals(second)


def test_draws_do_not_depend_on_the_hash_seed():
    """On arrays: a fresh interpreter need not load pgmpy, and `simulate` only adds the order of ``model.nodes``."""
    script = (
        "import json, numpy as np; from pgm_bma.foundation.numbers.graphs import sample_codes\n"
        "from benchmarks._random_models import random_network_classifier\n"
        "m = random_network_classifier(9, 3, 2, random_state=4, as_arrays=True)\n"
        "print(json.dumps([m.parents, sample_codes(m.cpts, m.parents, 20, np.random.default_rng(0)).tolist()]))"
    )
    code, other = [sys.executable, "-c", script], {**os.environ, "PYTHONHASHSEED": "123"}
    told = json.loads(subprocess.run(code, env=other, capture_output=True, text=True, check=True).stdout)
    model = random_network_classifier(9, 3, 2, random_state=4, as_arrays=True)
    assert told[0] == [list(of_node) for of_node in model.parents]
    assert told[1] == sample_codes(model.cpts, model.parents, 20, np.random.default_rng(0)).tolist()


def test_simulate_is_a_plain_function():
    assert pgm_bma.simulate is simulate


def test_codes_choose_the_smallest_type_and_normalise():
    rng = np.random.default_rng(0)
    assert sample_codes([[2, 2]], [()], 3, rng).dtype == np.int8
    assert sample_codes([np.ones(300)], [()], 3, rng).dtype == np.int16
    codes = sample_codes([[3.0, 1.0]], [()], 40_000, rng)[:, 0]
    check_counts(Counter(codes.tolist()), {0: 0.75, 1: 0.25}, 40_000)
    shaped = np.zeros((2, 3, 2))
    shaped[..., 0] = np.arange(6).reshape(2, 3) % 2  # the first parent varies slowest
    shaped[..., 1] = 1 - shaped[..., 0]
    codes = sample_codes([[0.5, 0.5], np.ones((1, 3)), shaped], [(), (), (0, 1)], 500, rng)
    assert (codes[:, 2] == 1 - (codes[:, 0] * 3 + codes[:, 1]) % 2).all()


@pytest.mark.parametrize(
    "cpts, parents, n, message",
    [
        ([[1.0, 1.0]], [()], -1, "n=-1"),
        ([np.ones((2, 2)), np.ones((2, 2))], [(1,), (0,)], 5, r"cycle among \[0, 1\]"),
        ([[1.0, 1.0], np.ones((3, 2))], [(), (0,)], 5, "node 1 .*2 joint states"),
        ([[0.0, 0.0]], [()], 5, "not a distribution"),
        ([[np.nan, 1.0]], [()], 5, "not a distribution"),
        ([[-0.5, 1.5]], [()], 5, "not a distribution"),
    ],
)
def test_bad_arrays_are_refused(cpts, parents, n, message):
    with pytest.raises(ValueError, match=message):
        sample_codes(cpts, parents, n, np.random.default_rng(0))


# -------------------------------------------------------------------------------------------------- random DAGs


@pytest.mark.parametrize(
    "n_nodes, max_indegree, connected, n_arcs, n_graphs",
    [
        (3, 1, True, None, 9),  # the rooted trees on 3 labels: 3^2
        (3, 2, True, None, 18),
        (4, 1, True, None, 64),  # 4^3 rooted trees: reachable only by moves that keep the number of arcs
        (4, 2, True, None, None),
        (4, None, True, None, 446),  # connected DAGs on 4 labels
        (3, None, False, None, 25),  # all DAGs on 3 labels
        (4, 1, False, 2, None),  # forests with two arcs
        (4, 2, False, 4, None),
        (4, 2, False, 5, None),  # as many arcs as the bound allows
    ],
)
def test_random_dags_are_uniform(n_nodes, max_indegree, connected, n_arcs, n_graphs):
    graphs = oracle.all_dags(n_nodes, max_indegree or n_nodes - 1, connected, n_arcs)
    assert n_graphs is None or len(graphs) == n_graphs
    rng, n = np.random.default_rng(4), max(12 * len(graphs), 600)  # 12 expected per cell: chi-square is a fair guide
    counts = Counter()
    for _ in range(n):
        parents = draw_parents(n_nodes, max_indegree, rng, connected=connected, n_arcs=n_arcs, n_steps=300)
        counts[frozenset((a, b) for b, of_node in enumerate(parents) for a in of_node)] += 1
    check_counts(counts, dict.fromkeys(graphs, 1 / len(graphs)), n)


@pytest.mark.parametrize("connected", [True, False])
@pytest.mark.parametrize("n_nodes, max_indegree", [(5, 2), (7, 3), (6, 1), (6, 5)])
def test_the_compiled_chain_equals_its_plain_twin(n_nodes, max_indegree, connected):
    rng, n_steps = np.random.default_rng(n_nodes), 1500
    start = [(0, node) for node in range(1, n_nodes)]
    kinds, uniforms = rng.integers(0, 4, n_steps), rng.random(n_steps)
    first, second = rng.integers(0, n_nodes, n_steps), rng.integers(0, n_nodes - 1, n_steps)
    second += second >= first
    source, target = np.zeros((2, n_nodes * max_indegree), dtype=np.int64)
    source[: n_nodes - 1], target[: n_nodes - 1] = zip(*start)
    n_arcs = walk(source, target, n_nodes - 1, n_nodes, max_indegree, connected, kinds, uniforms, first, second)
    plain = oracle.walk(start, n_nodes, max_indegree, connected, kinds, uniforms, first, second)
    assert list(zip(source[:n_arcs], target[:n_arcs])) == plain


def test_random_dag_keeps_its_bounds():
    for seed in range(5):
        dag = pgm_bma.random_dag(25, 3, random_state=seed)
        assert nx.is_directed_acyclic_graph(dag) and nx.is_weakly_connected(dag)
        assert max(degree for _, degree in dag.in_degree) == 3
    forest = pgm_bma.random_dag(10, 1, connected=False, n_arcs=6, random_state=0)
    assert forest.number_of_edges() == 6 and nx.is_branching(forest)
    assert list(pgm_bma.random_dag(1).nodes) == [0]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(n_nodes=0), "n_nodes=0"),
        (dict(n_nodes=3, max_indegree=0), "does not connect"),
        (dict(n_nodes=3, n_arcs=2), "connected=False"),
        (dict(n_nodes=4, max_indegree=1, n_arcs=4, connected=False), "hold 3 arcs"),
        (dict(n_nodes=4, n_steps=1.5), "n_steps=1.5"),
    ],
)
def test_random_dag_refuses(arguments, message):
    with pytest.raises(ValueError, match=message):
        pgm_bma.random_dag(**arguments)


# ------------------------------------------------------------------------------------------------ random models

MAKERS = {
    "selective": lambda **options: random_selective_naive_bayes(6, 3, **options),
    "augmented": lambda **options: random_augmented_naive_bayes(6, 3, 4, **options),
    "network": lambda **options: random_network_classifier(6, 3, 2, **options),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_network_and_arrays_are_one_model(maker):
    model, arrays = MAKERS[maker](random_state=3), MAKERS[maker](random_state=3, as_arrays=True)
    assert model.check_model() and model.latents == {"cluster"}
    read = network_arrays(model)
    assert read[:3] == arrays[:3] and read.latents == arrays.latents == ("cluster",)
    for ours, theirs in zip(arrays.cpts, read.cpts):
        np.testing.assert_array_equal(ours, theirs)
    rows = simulate(model, 30, 1, include_latents=True)
    codes = sample_codes(arrays.cpts, arrays.parents, 30, np.random.default_rng(1))
    np.testing.assert_array_equal(rows.to_numpy(), codes)  # states are 0, 1, 2, ...


@pytest.mark.parametrize("maker", MAKERS)
def test_every_choice_is_an_argument(maker):
    sizes = [2, 3, 4, 2, 3, 4]
    arrays = MAKERS[maker](
        cardinalities=sizes, arc_probability=0.0, cluster_name="C", prefix="gene", as_arrays=True, random_state=0
    )
    assert arrays.names == ("C", *(f"gene{i}" for i in range(6)))
    assert [len(states) for states in arrays.states] == [3, *sizes]
    assert all(0 not in of_node for of_node in arrays.parents)
    arrays = MAKERS[maker](
        arc_probability=0.1, min_cluster_arcs=5, min_cardinality=4, max_cardinality=4, as_arrays=True
    )
    assert sum(0 in of_node for of_node in arrays.parents) >= 5
    assert {len(states) for states in arrays.states[1:]} == {4}
    flat = MAKERS[maker](alpha=1e6, as_arrays=True, random_state=0)
    # Dirichlet(1e6): the standard deviation of an entry is below 0.5 / sqrt(2e6) = 4e-4; ten of them is safe
    assert max(abs(cpt - 1 / cpt.shape[1]).max() for cpt in flat.cpts) < 4e-3


def test_default_laws():
    """Cardinalities uniform on 2..5, cluster arcs Bernoulli(1/2), rows of tables Dirichlet(1)."""
    rng = np.random.default_rng(0)
    models = [random_selective_naive_bayes(10, 2, random_state=rng, as_arrays=True) for _ in range(1000)]
    sizes = Counter(len(states) for model in models for states in model.states[1:])
    check_counts(sizes, dict.fromkeys((2, 3, 4, 5), 0.25), 10_000)
    arcs = Counter(bool(of_node) for model in models for of_node in model.parents[1:])
    check_counts(arcs, {True: 0.5, False: 0.5}, 10_000)
    # an entry of Dirichlet(1, ..., 1) over r states has distribution function 1 - (1 - x)^(r - 1)
    for r in (2, 5):
        entries = [cpt[0, 0] for model in models for cpt in model.cpts[1:] if cpt.shape[1] == r]
        assert kstest(entries, lambda x, r=r: 1 - (1 - np.asarray(x)) ** (r - 1)).pvalue > LEVEL
    assert kstest([model.cpts[0][0, 0] for model in models], "uniform").pvalue > LEVEL


def test_augmented_has_all_cluster_arcs_and_a_forest():
    for n_arcs in (0, 2, 18, 19):
        arrays = random_augmented_naive_bayes(20, 4, n_arcs, cardinalities=[2] * 20, random_state=1, as_arrays=True)
        families = arrays.parents[1:]
        assert all(of_node[0] == 0 and len(of_node) <= 2 for of_node in families)
        assert sum(map(len, families)) == 20 + n_arcs


def test_network_classifier_bounds_feature_parents_only():
    arrays = random_network_classifier(12, 2, 3, arc_probability=1.0, random_state=0, as_arrays=True)
    counts = [len(of_node) for of_node in arrays.parents]
    assert counts[0] == 0 and max(counts) == 4
    for cpt, of_node, states in zip(arrays.cpts, arrays.parents, arrays.states):
        assert cpt.shape == (np.prod([len(arrays.states[p]) for p in of_node], dtype=int), len(states))
        np.testing.assert_allclose(cpt.sum(axis=1), 1, atol=1e-12)  # rounding of a sum of at most five numbers


def test_the_module_is_its_function_and_can_be_sent_to_other_processes():
    assert pickle.loads(pickle.dumps(pgm_bma.simulate)) is pgm_bma.simulate
    model = pgm_bma.load_network("asia")
    pd.testing.assert_frame_equal(pgm_bma.simulate(model, 5, random_state=0), simulate(model, 5, random_state=0))
