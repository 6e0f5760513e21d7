"""Metrics against their definitions, and their promises about size, names and errors."""

import math
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgm_bma import metrics, simulate
from pgm_bma.networks.objects import bayesian_network
from tests.oracles import metrics as oracle

labels = st.lists(st.integers(0, 4), min_size=1, max_size=12)


def random_network(seed, cards=(2, 3, 2, 2), parents=((), (0,), (0,), (0, 1)), latents=("h",), zeros=False):
    """h -> a, h -> b, (h, a) -> c unless told otherwise."""
    rng = np.random.default_rng(seed)
    names = ["h", "a", "b", "c", "d", "e"][: len(cards)]
    tables = []
    for i, family in enumerate(parents):
        table = rng.dirichlet(np.ones(cards[i]), int(np.prod([cards[p] for p in family], dtype=int)))
        if zeros:
            table[:, 0] = 0
            table /= table.sum(1, keepdims=True)
        tables.append(table)
    states = [[f"{name}{k}" for k in range(card)] for name, card in zip(names, cards)]
    return bayesian_network(names, states, parents, tables, latents=latents)


def renamed(model, node, order):
    """The same network with the states of one node listed, and called, differently: state k becomes order[k]."""
    from pgm_bma.networks.objects import network_arrays

    arrays = network_arrays(model)
    i = arrays.names.index(node)
    cpts = list(arrays.cpts)
    cpts[i] = cpts[i][:, order]
    for child, family in enumerate(arrays.parents):
        if i in family:
            cards = [len(arrays.states[p]) for p in family]
            cpts[child] = np.take(cpts[child].reshape(*cards, -1), order, axis=family.index(i)).reshape(
                math.prod(cards), -1
            )
    return bayesian_network(*arrays._replace(cpts=cpts)[:5])


# partitions


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_partition_distance_and_accuracy_equal_their_definitions(data):
    a = data.draw(labels)
    b = data.draw(st.lists(st.sampled_from("uvwx"), min_size=len(a), max_size=len(a)))
    assert metrics.partition_distance(a, b) == oracle.partition_distance(a, b)
    assert metrics.partition_distance(a, b, normalize=True) == pytest.approx(
        oracle.partition_distance(a, b) / len(a) ** 2
    )
    assert metrics.clustering_accuracy(a, b) == pytest.approx(oracle.clustering_accuracy(a, b), abs=1e-12)


def test_partition_distance_of_extremes():
    n = 30
    # all together against all apart: every pair of different rows differs, in both orders
    assert metrics.partition_distance([0] * n, range(n)) == n * (n - 1)
    assert metrics.partition_distance(range(n), [0] * n) == n * (n - 1)
    assert metrics.partition_distance(list("aabb"), [7, 7, 3, 3]) == 0
    assert metrics.partition_distance([1, "1", 1], pd.Categorical(["u", "v", "u"])) == 0


def test_weights_are_repetition():
    rng = np.random.default_rng(0)
    a, b, w = rng.integers(3, size=20), rng.integers(4, size=20), rng.integers(0, 4, 20)
    wide = np.repeat(a, w), np.repeat(b, w)
    assert metrics.partition_distance(a, b, sample_weight=w) == metrics.partition_distance(*wide)
    assert metrics.partition_distance(a, b, sample_weight=w, normalize=True) == pytest.approx(
        metrics.partition_distance(*wide, normalize=True)
    )
    assert metrics.clustering_accuracy(a, b, sample_weight=w) == pytest.approx(metrics.clustering_accuracy(*wide))


def test_partition_distance_needs_no_square_table():
    n = 300_000  # n x n, or one row and column per cluster, would need hundreds of gigabytes
    rng = np.random.default_rng(1)
    start = time.process_time()
    assert metrics.partition_distance(np.arange(n), rng.permutation(n)) == 0
    assert time.process_time() - start < 5  # measured 0.3 s


def test_clear_errors_about_partitions():
    with pytest.raises(ValueError, match="3 and 2 rows"):
        metrics.partition_distance([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="second labels hold 1 missing"):
        metrics.clustering_accuracy([0, 1], ["a", None])
    with pytest.raises(ValueError, match="first labels must be one label per row"):
        metrics.partition_distance(np.array([[0, 1]]), [0])
    with pytest.raises(ValueError, match="zero for every row"):
        metrics.partition_distance([0, 1], [0, 1], sample_weight=[0, 0])
    with pytest.raises(ValueError, match="one label per row"):
        metrics.partition_distance([[0, 1]], [[0, 1]])


def test_labels_of_any_library():
    polars = pytest.importorskip("polars")
    for labels in (polars.Series([5, 5, 7]), pd.Series(["a", "a", "b"], dtype="category"), pd.Index([1, 1, 2])):
        assert metrics.partition_distance(labels, [1, "x", "x"]) == 4


def test_what_is_no_network_or_no_weight_is_refused():
    model = random_network(11)
    for call in (
        lambda: metrics.kl_divergence(model, 3),
        lambda: metrics.holdout_log2_likelihood("text", pd.DataFrame({"a": [1]})),
    ):
        with pytest.raises(TypeError, match="expected a DiscreteBayesianNetwork"):
            call()
    rows = simulate(model, 2, random_state=0)
    with pytest.raises(ValueError, match="negative"):
        metrics.holdout_log2_likelihood(model, rows, sample_weight=[1, -1])


# divergence


@pytest.mark.parametrize("seed", range(6))
def test_kl_divergence_equals_enumeration_over_all_renamings(seed):
    cards = [(2, 3, 2, 2), (3, 2, 2, 3), (4, 2, 2, 2)][seed % 3]
    p, q = random_network(seed, cards), random_network(100 + seed, cards)
    expected = oracle.kl_joint(p, q, ["h"])
    assert metrics.kl_divergence(p, q) == pytest.approx(expected, abs=1e-10)
    assert metrics.kl_divergence(p, q, base="nats") == pytest.approx(expected * math.log(2), abs=1e-10)
    assert metrics.kl_divergence(p, q, over="observed") == pytest.approx(oracle.kl_observed(p, q, ["h"]), abs=1e-10)
    assert metrics.kl_divergence(p, q, align=False) == pytest.approx(oracle.kl_joint(p, q, []), abs=1e-10)
    assert metrics.kl_divergence(p, q, align=False) >= metrics.kl_divergence(p, q) - 1e-12


def test_kl_divergence_does_not_see_names_of_clusters_or_order_of_states():
    p = random_network(1, (3, 2, 2, 2))
    q = renamed(p, "h", [2, 0, 1])
    assert metrics.kl_divergence(p, q) == pytest.approx(0, abs=1e-12)
    assert metrics.kl_divergence(p, q, align=False) > 0.01
    # an observed variable whose states stand in another order is the same variable
    from pgm_bma.networks.objects import network_arrays

    arrays = network_arrays(renamed(p, "b", [1, 0]))
    states = list(arrays.states)
    states[2] = states[2][::-1]
    assert metrics.kl_divergence(p, bayesian_network(*arrays._replace(states=states)[:5])) == pytest.approx(
        0, abs=1e-12
    )


def test_kl_divergence_with_two_latents_and_with_none():
    cards, parents = (2, 3, 2, 2, 2), ((), (), (0, 1), (0,), (1, 2))
    p, q = (random_network(s, cards, parents, latents=("h", "a")) for s in (1, 2))
    assert metrics.kl_divergence(p, q) == pytest.approx(oracle.kl_joint(p, q, ["h", "a"]), abs=1e-10)
    assert metrics.kl_divergence(p, q, over="observed") == pytest.approx(
        oracle.kl_observed(p, q, ["h", "a"]), abs=1e-10
    )
    assert metrics.kl_divergence(p, q, latents=()) == pytest.approx(oracle.kl_joint(p, q, []), abs=1e-10)


def test_kl_divergence_where_states_are_impossible():
    p, q = random_network(3), random_network(4, zeros=True)
    assert metrics.kl_divergence(p, q) == math.inf
    assert metrics.kl_divergence(p, q, method="sample", n_samples=100, random_state=0) == math.inf
    assert metrics.kl_divergence(q, p) == pytest.approx(oracle.kl_joint(q, p, ["h"]), abs=1e-10)
    # a renaming that avoids the impossible states is found
    one = bayesian_network(["h", "a"], [[0, 1], [0, 1]], [(), (0,)], [[[0.5, 0.5]], [[1, 0], [0, 1]]], latents=["h"])
    two = bayesian_network(["h", "a"], [[0, 1], [0, 1]], [(), (0,)], [[[0.5, 0.5]], [[0, 1], [1, 0]]], latents=["h"])
    assert metrics.kl_divergence(one, two) == 0 and metrics.kl_divergence(one, two, align=False) == math.inf


def test_sampled_divergence_covers_the_exact_one():
    p, q = random_network(5), random_network(6)
    for over in ("joint", "observed"):
        exact, none = metrics.kl_divergence(p, q, over=over, return_error=True)
        assert none == 0
        found = [
            metrics.kl_divergence(p, q, over=over, method="sample", n_samples=4000, random_state=s, return_error=True)
            for s in range(20)
        ]
        z = [(value - exact) / error for value, error in found]
        assert max(map(abs, z)) < 4 and 0.4 < np.std(z) < 1.8  # 20 standard normal numbers
        assert found[0] == metrics.kl_divergence(
            p, q, over=over, method="sample", n_samples=4000, random_state=0, return_error=True
        )


def test_divergence_refuses_what_is_too_large_and_says_what_to_do():
    cards = (2,) * 6
    parents = ((), (0,), (0,), (0,), (0,), (0,))
    p, q = random_network(7, cards, parents), random_network(8, cards, parents)
    with pytest.raises(ValueError, match=r"64 joint states are more than max_states=63; pass method='sample'"):
        metrics.kl_divergence(p, q, max_states=63)
    assert metrics.kl_divergence(p, q, max_states=64) > 0


def test_blocks_do_not_change_the_divergence(monkeypatch):
    from pgm_bma.networks import divergence

    p, q = random_network(9), random_network(10)
    expected = metrics.kl_divergence(p, q)
    monkeypatch.setattr(divergence, "BLOCK", 5)
    assert metrics.kl_divergence(p, q) == pytest.approx(expected, abs=1e-14)


def test_clear_errors_about_networks():
    p = random_network(1)
    with pytest.raises(ValueError, match=r"differ in their variables: \['c'\]"):
        metrics.kl_divergence(p, random_network(1, (2, 3, 2), ((), (0,), (0,))))
    with pytest.raises(ValueError, match="variable 'b' has states"):
        metrics.kl_divergence(p, random_network(1, (2, 3, 3, 2)))
    with pytest.raises(ValueError, match="latent 'h' has 2 states in p and 3 in q"):
        metrics.kl_divergence(p, random_network(1, (3, 3, 2, 2)))
    assert metrics.kl_divergence(p, random_network(1, (3, 3, 2, 2)), over="observed") == pytest.approx(
        oracle.kl_observed(p, random_network(1, (3, 3, 2, 2)), ["h"]), abs=1e-10
    )
    for wrong in ({"base": "dits"}, {"over": "all"}, {"method": "guess"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
            metrics.kl_divergence(p, p, **wrong)
    for n_samples in (1, -3, 2.5):
        with pytest.raises(ValueError, match=f"n_samples={n_samples} must be an integer at least 2"):
            metrics.kl_divergence(p, p, method="sample", n_samples=n_samples)


# holdout likelihood


def holdout_rows():
    frame = pd.DataFrame({"c": ["c0", "c1", "c1", None, "c0"], "a": ["a0", "a2", None, "a1", None], "b": list("01010")})
    frame["b"] = "b" + frame["b"]
    frame["unrelated"] = 1
    return frame


def test_holdout_likelihood_of_a_network_sums_out_latents_and_missing_cells():
    model, frame = random_network(11), holdout_rows()
    rows = [
        {v: s for v, s in row.items() if v != "unrelated" and isinstance(s, str)} for row in frame.to_dict("records")
    ]
    assert metrics.holdout_log2_likelihood(model, frame) == pytest.approx(
        oracle.holdout_log2_likelihood(model, rows), abs=1e-10
    )
    weighted = metrics.holdout_log2_likelihood(model, frame, sample_weight=[2, 0, 1, 0, 0])
    assert weighted == pytest.approx(oracle.holdout_log2_likelihood(model, [rows[0], rows[0], rows[2]]), abs=1e-10)
    # an absent column is a missing one; a column with the latent's name is not used
    without = oracle.holdout_log2_likelihood(model, [{v: s for v, s in r.items() if v != "a"} for r in rows])
    assert metrics.holdout_log2_likelihood(model, frame.drop(columns="a").assign(h="h0")) == pytest.approx(
        without, abs=1e-10
    )


def test_holdout_likelihood_of_an_estimator_uses_its_score_samples():
    class Fitted:
        def score_samples(self, X):
            return np.log([0.5, 0.25])

    assert metrics.holdout_log2_likelihood(Fitted(), [[0], [1]]) == pytest.approx(-1.5)


def test_holdout_likelihood_of_many_missing_leaves_needs_no_enumeration():
    n = 60
    rng = np.random.default_rng(12)
    names, parents = ["h", *[f"x{i}" for i in range(n)]], [(), *[(0,)] * n]
    tables = [rng.dirichlet([1, 1], 1), *[rng.dirichlet([1, 1], 2) for _ in range(n)]]
    model = bayesian_network(names, [[0, 1]] * (n + 1), parents, tables, latents=["h"])
    frame = pd.DataFrame({f"x{i}": [0, 1, None] for i in range(n)}, dtype=object)
    frame.loc[2, "x7"] = 1
    found = metrics.holdout_log2_likelihood(model, frame.iloc[[2]])
    assert found == pytest.approx(math.log2(tables[0][0] @ tables[8][:, 1]), abs=1e-12)


def test_clear_errors_about_holdout_rows():
    model = random_network(11)
    with pytest.raises(ValueError, match=r"'a' holds 'a9', which is not a state of that node"):
        metrics.holdout_log2_likelihood(model, pd.DataFrame({"a": ["a9"]}))
    with pytest.raises(ValueError, match="none of the network's observed variables"):
        metrics.holdout_log2_likelihood(model, pd.DataFrame({"z": [1]}))
    with pytest.raises(ValueError, match="6 joint states of 2 hidden"):
        metrics.holdout_log2_likelihood(model, pd.DataFrame({"c": ["c0"]}), max_states=5)
    with pytest.raises(ValueError, match="X has no rows"):
        metrics.holdout_log2_likelihood(model, pd.DataFrame({"a": ["a0"]}).iloc[:0])


# orders and comparisons


@settings(max_examples=60, deadline=None)
@given(st.permutations(list("abcdefg")), st.permutations(list("abcdefg")))
def test_order_correlation_equals_its_definition(a, b):
    assert metrics.order_correlation(a, b) == pytest.approx(oracle.spearman(a, b), abs=1e-12)
    np.testing.assert_allclose(
        metrics.order_correlation([a, b, b[::-1]], b), [oracle.spearman(a, b), 1, -1], atol=1e-12
    )


def test_order_correlation_with_tuples_as_nodes_and_with_wrong_orders():
    nodes = [("x", 1), ("x", 2), ("y", 1)]
    assert metrics.order_correlation(nodes[::-1], nodes) == -1
    assert metrics.order_correlation(np.array([[0, 1, 2], [2, 1, 0]]), [0, 1, 2]).tolist() == [1, -1]
    with pytest.raises(ValueError, match=r"same nodes: \['c', 'd'\]"):
        metrics.order_correlation("abc", "abd")
    with pytest.raises(ValueError, match="at least two nodes"):
        metrics.order_correlation("a", "a")


def test_wins_draws_losses_counts_and_tests():
    a, b = [3, 5, 5, 9, 1, 4, 7], [4, 5, 8, 3, 11, 8, 5]
    result = metrics.wins_draws_losses(a, b)
    assert result[:3] == (4, 1, 2) and str(result) == "4/1/2"
    assert result.p_value == pytest.approx(oracle.signed_rank_p([1, 3, -6, 10, 4, -2]), abs=1e-12)
    other = metrics.wins_draws_losses(b, a)
    assert other[:3] == (2, 1, 4) and other.p_value == pytest.approx(result.p_value)
    assert metrics.wins_draws_losses(a, b, lower_is_better=False)[:3] == (2, 1, 4)
    assert metrics.wins_draws_losses(a, b, tolerance=2)[:3] == (3, 3, 1)
    assert metrics.wins_draws_losses([0.5, 0.25], [0.5, 0.25]) == (0, 2, 0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert metrics.wins_draws_losses([np.inf, 1], [np.inf, 2])[:3] == (1, 1, 0)
    one_sided = metrics.wins_draws_losses(np.zeros(10), np.arange(1, 11))
    assert one_sided.p_value == pytest.approx(2 / 2**10)
    with pytest.raises(ValueError, match="NaN"):
        metrics.wins_draws_losses([1, np.nan], [1, 2])
    with pytest.raises(ValueError, match="same cases"):
        metrics.wins_draws_losses([1], [1, 2])
