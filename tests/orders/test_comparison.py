"""Compelled arcs, the graph of least expected distance, and comparisons with a known graph, against all DAGs of four variables."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from pgm_bma import GibbsSampler, OrderPosterior, load_network, simulate
from pgm_bma.orders import consensus, dags
from tests.oracles.causal import compelled, hamming
from tests.orders.test_effects import fitted
from tests.orders.test_interventions import NAMES, each_weighting


def arcs_of(dag):
    return {(p, v) for v, z in enumerate(dag) for p in z}


def padded(dag):
    return [[*z, *[-1] * (3 - len(z))] for z in dag]


def test_compelled_arcs_of_all_dags_of_four_variables():
    _, truth = fitted("dag")
    want = compelled(truth.all_dags)
    assert len(want) == 543
    found = dags.compelled(np.array([padded(dag) for dag in want]))
    for mine, arcs in zip(found, want.values()):
        assert {(int(u), int(v)) for u, v in np.argwhere(mine)} == arcs


@each_weighting
def test_compelled_posterior_equals_enumeration(weighting):
    posterior, truth = fitted(weighting, equivalent_sample_size=2.0)
    shared = compelled(truth.all_dags)
    want = [[truth.share(lambda dag, u=u, v=v: (u, v) in shared[dag]) for v in range(4)] for u in range(4)]
    found = posterior.compelled_posterior_
    np.testing.assert_allclose(found, want, atol=1e-9)
    assert found.attrs["monte_carlo_error"] == 0.0 and list(found.columns) == NAMES
    assert (found.to_numpy() <= posterior.edge_posterior_.to_numpy() + 1e-9).all()


@pytest.fixture(scope="module")
def distances():
    """Of every two DAGs of four variables: (arcs of each DAG, matrix)."""
    _, truth = fitted("dag")
    graphs = [arcs_of(dag) for dag in truth.all_dags]
    table = np.zeros((len(graphs), len(graphs)))
    for i, j in combinations(range(len(graphs)), 2):
        table[i, j] = table[j, i] = hamming(graphs[i], graphs[j], 4)
    return graphs, table


@each_weighting
def test_consensus_by_data_has_the_least_expected_distance(weighting, distances):
    graphs, table = distances
    for seed in range(3):
        posterior, truth = fitted(weighting, seed)
        assert [arcs_of(dag) for dag in truth.all_dags] == graphs
        expected = table @ np.array(truth.shares)
        graph = posterior.consensus("data")
        assert nx.is_directed_acyclic_graph(graph)
        mine = {(NAMES.index(u), NAMES.index(v)) for u, v in graph.edges}
        assert expected[graphs.index(mine)] == pytest.approx(expected.min(), abs=1e-9)


def test_consensus_by_data_beyond_exact_reach_is_acyclic_and_no_worse_than_nothing():
    rng = np.random.default_rng(0)
    raw = rng.random((20, 20)) * (1 - np.eye(20))
    edges = raw / np.maximum(raw + raw.T, 1.0)
    arcs = consensus.least_expected_distance(edges)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(arcs)) and len(arcs) > 10
    assert sum(2 * edges[u, v] + edges[v, u] - 1 for u, v in arcs) > 0


def test_compare_counts_what_the_graphs_of_all_thresholds_have():
    posterior, _ = fitted("order")
    arcs = [("a", "b"), ("c", "b"), ("c", "d")]
    true = {(NAMES.index(u), NAMES.index(v)) for u, v in arcs}
    edges = {frozenset(arc) for arc in true}
    table = posterior.compare(nx.DiGraph(arcs))
    for row in table.iloc[::7].itertuples():
        mine = {(NAMES.index(u), NAMES.index(v)) for u, v in posterior.consensus(row.threshold).edges}
        assert row.n_arcs == len(mine) and row.shd == hamming(mine, true, 4)
        joined = sum(frozenset(arc) in edges for arc in mine)
        if mine:
            assert row.precision == len(mine & true) / len(mine) and row.skeleton_precision == joined / len(mine)
        assert row.recall == len(mine & true) / 3 and row.skeleton_recall == joined / 3


def test_summaries_of_compare():
    posterior, truth = fitted("dag")
    arcs = [("a", "b"), ("c", "b")]
    true = {(0, 1), (2, 1)}
    summary = posterior.compare(arcs).attrs
    expected = sum(share * hamming(true, arcs_of(dag), 4) for share, dag in zip(truth.shares, truth.all_dags))
    assert summary["expected_shd"] == pytest.approx(expected, abs=1e-9)
    best = {(NAMES.index(u), NAMES.index(v)) for u, v in posterior.consensus("data").edges}
    assert summary["consensus_shd"] == hamming(best, true, 4)
    wanted, given = zip(*(((u, v) in true, truth.arcs()[u][v]) for u in range(4) for v in range(4) if u != v))
    assert summary["average_precision"] == pytest.approx(average_precision_score(wanted, given), abs=1e-9)


def test_compare_takes_networks_and_says_what_is_wrong():
    network = load_network("cancer")
    posterior = OrderPosterior(random_state=0).fit(simulate(network, 200, random_state=0))
    assert posterior.compare(network).equals(posterior.compare(list(network.edges)))
    with pytest.raises(ValueError, match="both ways between"):
        posterior.compare([("Smoker", "Cancer"), ("Cancer", "Smoker")])
    with pytest.raises(ValueError, match="'moon', which is not a variable"):
        posterior.compare([("moon", "Cancer")])
    with pytest.raises(ValueError, match="true_graph needs pairs"):
        posterior.compare(3)
    assert np.isnan(posterior.compare([]).attrs["average_precision"])


def test_chains_one_by_one():
    X = simulate(load_network("asia"), 200, random_state=0)
    sampled = OrderPosterior(method="mcmc", random_state=0, sampler=GibbsSampler(n_chains=3)).fit(X)
    assert sampled.chain_posteriors_.shape == (3, 8, 8)
    np.testing.assert_allclose(sampled.chain_posteriors_.mean(0), sampled.edge_posterior_, atol=1e-12)
    exact = OrderPosterior().fit(X)
    assert (exact.chain_posteriors_[0] == exact.edge_posterior_.to_numpy()).all()


def test_compelled_posterior_from_draws():
    X = simulate(load_network("asia"), 500, random_state=0)
    posterior = OrderPosterior(equivalent_sample_size=1, random_state=0).fit(X)
    found, edges = posterior.compelled_posterior_, posterior.edge_posterior_
    assert found.attrs["n_dags"] == 1000 and 0 < found.attrs["monte_carlo_error"] < 0.02
    assert (found.to_numpy() <= edges.to_numpy() + 0.06).all()  # four standard errors of 1000 draws
    assert found.to_numpy().max() > 0.2
