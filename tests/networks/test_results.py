"""Networks and graphs: arrays in, the same arrays out; pgmpy and networkx accept what was built."""

import itertools
import json
import time

import networkx as nx
import numpy as np
import pytest

from pgm_bma.networks.graphs import directed_graph, export_copy
from pgm_bma.networks.objects import bayesian_network, markov_network, network_arrays


def random_parts(rng, n_nodes, max_parents=3):
    """A random DAG whose node order is not its topological order."""
    order = rng.permutation(n_nodes)
    cards = rng.integers(1, 5, size=n_nodes)
    states = [tuple(f"s{k}" for k in range(c)) if c % 2 else tuple(range(c)) for c in cards]
    parents = [()] * n_nodes
    for position, node in enumerate(order):
        k = min(position, int(rng.integers(0, max_parents + 1)))
        parents[node] = tuple(int(p) for p in rng.choice(order[:position], size=k, replace=False)) if k else ()
    cpts = [rng.dirichlet(np.ones(cards[i]), size=int(np.prod(cards[list(parents[i])]))) for i in range(n_nodes)]
    return [f"v{i}" for i in range(n_nodes)], states, parents, cpts


def joint_by_hand(states, parents, cpts):
    """The joint table, one cell at a time."""
    cards = [len(s) for s in states]
    joint = np.ones(cards)
    for cell in itertools.product(*map(range, cards)):
        for i, ps in enumerate(parents):
            row = 0
            for p in ps:
                row = row * cards[p] + cell[p]
            joint[cell] *= cpts[i][row, cell[i]]
    return joint


def joint_by_pgmpy(model, names):
    product = None
    for cpd in model.cpds:
        factor = cpd.to_factor()
        product = factor if product is None else product * factor
    return np.transpose(product.values, [product.variables.index(name) for name in names])


@pytest.mark.parametrize("seed", range(5))
def test_network_has_the_joint_of_its_arrays(seed):
    names, states, parents, cpts = random_parts(np.random.default_rng(seed), 5)
    model = bayesian_network(names, states, parents, cpts)
    assert model.check_model()
    # products of five numbers in another order: a few roundings
    np.testing.assert_allclose(joint_by_pgmpy(model, names), joint_by_hand(states, parents, cpts), rtol=1e-14)


@pytest.mark.parametrize("seed", range(5))
def test_round_trip_is_exact(seed):
    names, states, parents, cpts = random_parts(np.random.default_rng(seed), 12)
    back = network_arrays(bayesian_network(names, states, parents, cpts, latents=["v7", "v2"], name="net"))
    assert back.names == tuple(names)
    assert back.states == tuple(states)
    assert back.parents == tuple(parents)
    assert back.latents == ("v2", "v7")
    assert back.name == "net"
    for ours, theirs in zip(back.cpts, cpts):
        assert ours.shape == theirs.shape
        assert np.array_equal(ours, theirs)


def test_network_arrays_reads_a_network_made_with_pgmpy():
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork([("b", "c"), ("a", "c")])
    table = np.array([[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]])
    model.add_cpds(
        TabularCPD("a", 3, [[0.2], [0.3], [0.5]]),
        TabularCPD("b", 2, [[0.4], [0.6]]),
        TabularCPD("c", 2, table, evidence=["a", "b"], evidence_card=[3, 2]),
    )
    arrays = network_arrays(model)
    assert arrays.names == ("b", "c", "a")
    assert arrays.parents == ((), (2, 0), ())
    assert arrays.name is None
    assert np.array_equal(arrays.cpts[1], table.T)
    model.cpds[2].state_names["a"] = [2, 1, 0]
    with pytest.raises(ValueError, match="another order, for its parent 'a'"):
        network_arrays(model)


def test_states_keep_their_python_values():
    states = [(False, True), (1, 2.5, "x", None, (1, "a"))]
    model = bayesian_network(["a", ("b", 1)], states, [(), (0,)], [[[0.5, 0.5]], np.full((2, 5), 0.2)])
    assert model.check_model()
    for node, expected in zip(["a", ("b", 1)], states):
        got = model.get_cpds(node).state_names[node]
        assert [(type(g), g) for g in got] == [(type(e), e) for e in expected]


def test_parents_given_by_axes_mean_the_same():
    names, states = ["a", "b", "c"], [(0, 1), (0, 1, 2), (0, 1)]
    cube = np.random.default_rng(0).dirichlet(np.ones(2), size=(2, 3))
    flat = bayesian_network(names, states, [(), (), (0, 1)], [[[0.5, 0.5]], [[0.2, 0.3, 0.5]], cube.reshape(6, 2)])
    axes = bayesian_network(names, states, [(), (), (0, 1)], [[0.5, 0.5], [0.2, 0.3, 0.5], cube])
    assert all(np.array_equal(x.values, y.values) for x, y in zip(flat.cpds, axes.cpds))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cpts": [[[0.5, 0.5]], [[0.5, 0.6], [0.5, 0.5]]]}, "row 0 of the table of 'b'"),
        ({"cpts": [[[0.5, 0.5]], [[0.5, 0.5], [np.nan, 0.5]]]}, "row 1 of the table of 'b'"),
        ({"cpts": [[[0.5, 0.5]], [[0.5, 0.5], [1.5, -0.5]]]}, "row 1 of the table of 'b'"),
        ({"cpts": [[[0.5, 0.5]], [[0.5, 0.5]]]}, r"expected \(2, 2\)"),
        ({"names": ["a", "a"]}, "'a' is used twice"),
        ({"states": [(1, True), (0, 1)]}, "equal states"),
        ({"states": [(), (0, 1)]}, "'a' has no states"),
        ({"parents": [(), (0, 0)]}, "'b' has parents"),
        ({"parents": [(), (-1,)]}, "'b' has parents"),
        ({"parents": [(1,), (0,)], "cpts": [np.full((2, 2), 0.5)] * 2}, "[Cc]ycle"),
        ({"latents": ["z"]}, "'z'"),
        ({"names": ["a"]}, "1 names, 2 lists of states"),
    ],
)
def test_broken_parts_are_refused(change, message):
    parts = {"names": ["a", "b"], "states": [(0, 1), (0, 1)], "parents": [(), (0,)]}
    parts["cpts"] = [[[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]]
    with pytest.raises(ValueError, match=message):
        bayesian_network(**{**parts, **change})


def test_wide_naive_bayes_builds_fast():
    n = 7129
    names = ["class", *(f"g{i}" for i in range(n))]
    cpts = [np.array([[0.5, 0.5]]), *[np.full((2, 3), 1 / 3)] * n]
    start = time.perf_counter()
    model = bayesian_network(names, [("x", "y"), *[(0, 1, 2)] * n], [(), *[(0,)] * n], cpts, latents={"class"})
    arrays = network_arrays(model)
    # about 1 s alone; the quadratic way takes over 15 s, so this bound tells them apart on a busy machine too
    assert time.perf_counter() - start < 6
    assert arrays.names == tuple(names)
    assert model.latents == {"class"}


def test_markov_network_multiplies_its_factors():
    rng = np.random.default_rng(0)
    names, states = ["a", "b", "c", "d"], [(0, 1), ("x", "y", "z"), (True, False), (0, 1)]
    ab, cb = rng.random((2, 3)), rng.random((2, 3))
    model = markov_network(names, states, [((0, 1), ab), ((2, 1), cb)], latents=["c"])
    assert model.check_model()
    assert list(model.nodes) == names
    assert model.latents == ["c"]
    assert model.states["b"] == ["x", "y", "z"]
    joint = ab[:, :, None] * cb.T[None]
    # the partition function sums 24 cells, d's ones included, in an order of pgmpy's own
    assert model.get_partition_function() == pytest.approx(2 * joint.sum(), rel=1e-12)
    with pytest.raises(ValueError, match="shape"):
        markov_network(names, states, [((0, 1), cb.T)])
    with pytest.raises(ValueError, match="non-finite"):
        markov_network(names, states, [((0, 1), ab * np.inf)])


def test_directed_graph_keeps_order_and_attributes():
    graph = directed_graph(
        ["b", "a", "c"],
        np.array([[2, 0], [0, 1]]),
        node_data={"weight": np.array([1.5, 2.5, 3.5])},
        edge_data={"posterior": np.array([0.25, 0.75]), "kind": ["x", "y"]},
        name="arcs",
    )
    assert list(graph.nodes(data=True)) == [("b", {"weight": 1.5}), ("a", {"weight": 2.5}), ("c", {"weight": 3.5})]
    assert graph.edges["c", "b"] == {"posterior": 0.25, "kind": "x"}
    assert type(graph.edges["b", "a"]["posterior"]) is float
    with pytest.raises(ValueError, match="1 values for 2 edges"):
        directed_graph("ab", [(0, 1), (1, 0)], edge_data={"posterior": [1.0]})
    with pytest.raises(ValueError, match="twice"):
        directed_graph("aa", [])


def test_export_copy_passes_graphml_and_json(tmp_path):
    names, states, parents, cpts = random_parts(np.random.default_rng(3), 6)
    model = bayesian_network(names, states, parents, cpts, latents=["v1"], name="net")
    clean = export_copy(model)
    assert type(clean) is nx.DiGraph
    assert list(clean.edges) == list(model.edges)
    assert clean.nodes["v1"] == {"roles": "latents"}
    nx.write_graphml(clean, tmp_path / "net.graphml")
    assert set(nx.read_graphml(tmp_path / "net.graphml").edges) == set(model.edges)
    again = nx.node_link_graph(json.loads(json.dumps(nx.node_link_data(clean, edges="links"))), edges="links")
    assert nx.utils.graphs_equal(again, clean)
    with pytest.raises((TypeError, nx.NetworkXError)):  # the trap that export_copy exists for
        nx.write_graphml(model, tmp_path / "raw.graphml")


def test_export_copy_keeps_like_texts_apart():
    clean = export_copy(directed_graph([1, "1", frozenset({"b", "a"})], [(0, 1), (1, 2)]))
    assert list(clean.nodes) == ["1", "'1'", "a, b"]
    assert not export_copy(nx.path_graph(3)).is_directed()
