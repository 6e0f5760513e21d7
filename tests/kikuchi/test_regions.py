"""Region graphs: literal closure, counting numbers, entropy, acyclicity, and directed tables of acyclic products."""

import itertools
import json
import math
import random
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks._region_energies import region_entropy, region_free_energy
from pgm_bma import region_graph
from pgm_bma.kikuchi import regions as room
from pgm_bma.kikuchi.network import directed_tables
from tests.oracles.kikuchi import (
    cells,
    iterative_proportional_fitting,
    literal_covers,
    literal_region_graph,
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "kikuchi.json").read_text())
region_sets = st.lists(st.frozensets(st.integers(0, 6), min_size=1, max_size=5), min_size=1, max_size=7)


def numbers(graph):
    return dict(graph.nodes(data="counting_number"))


@st.composite
def junction_trees(draw):
    """(cliques, separators of the tree that made them)."""
    cliques, separators, fresh = [frozenset([0, 1])], [], 2
    for _ in range(draw(st.integers(0, 5))):
        anchor = sorted(draw(st.sampled_from(cliques)))
        separator = frozenset(draw(st.lists(st.sampled_from(anchor), unique=True, max_size=len(anchor) - 1)))
        added = draw(st.integers(1, 2))
        cliques.append(separator | set(range(fresh, fresh + added)))
        separators.append(separator)
        fresh += added
    return cliques, separators


@pytest.mark.parametrize("case", VECTORS["region_graphs"], ids=lambda case: case["name"])
def test_vectors(case):
    found = {"".join(sorted(region)): c for region, c in numbers(region_graph(case["initial"])).items() if c}
    assert found == {"".join(sorted(region)): c for region, c in case["counting"] if c}


@given(region_sets)
def test_closure_numbers_and_covers_are_the_literal_ones(initial):
    graph = region_graph(initial)
    expected = literal_region_graph(initial)
    assert numbers(graph) == expected
    assert set(graph.edges) == literal_covers(expected)


@given(region_sets, st.randoms())
def test_visiting_order_does_not_matter(initial, rng):
    shuffled = [sorted(region, key=lambda _: rng.random()) for region in initial]
    rng.shuffle(shuffled)
    assert numbers(region_graph(shuffled)) == numbers(region_graph(initial))
    assert set(region_graph(shuffled).edges) == set(region_graph(initial).edges)


@given(region_sets)
def test_every_subset_of_a_region_counts_once(initial):
    counts = numbers(region_graph(initial))
    for region in initial:
        for size in range(1, len(region) + 1):
            for subset in itertools.combinations(region, size):
                assert sum(c for other, c in counts.items() if other >= set(subset)) == 1


@given(junction_trees())
def test_junction_trees_give_separators(tree):
    cliques, separators = tree
    counts = numbers(region_graph(cliques))
    maximal = {c for c in cliques if not any(c < other for other in cliques)}
    expected = {}
    for clique in cliques:
        expected[clique] = expected.get(clique, 0) + 1
    for separator in separators:
        expected[separator] = expected.get(separator, 0) - 1
    assert {r: c for r, c in counts.items() if c} == {r: c for r, c in expected.items() if c and r}
    assert maximal <= set(counts)


@given(region_sets)
def test_both_ways_to_the_closure_agree(initial):
    fast = room.region_closure(initial)
    kept, room._MAX_SUBSETS = room._MAX_SUBSETS, 0
    try:
        slow = room.region_closure(initial)
    finally:
        room._MAX_SUBSETS = kept
    assert fast[0] == slow[0] and fast[1] == slow[1] and set(fast[2]) == set(slow[2])


def test_levels_are_the_longest_way_down():
    graph = region_graph([("A", "B", "X"), ("A", "B", "Y"), ("A", "Z")])
    levels = {"".join(sorted(region)): level for region, level in graph.nodes(data="level")}
    assert levels == {"ABX": 0, "ABY": 0, "AZ": 0, "AB": 1, "A": 2}
    for larger, smaller in graph.edges:
        assert smaller < larger and graph.nodes[smaller]["level"] > graph.nodes[larger]["level"]


def test_any_hashable_names_and_large_regions():
    graph = region_graph([[1, "1", (2, 3)], ["1", None]])
    assert numbers(graph) == {frozenset([1, "1", (2, 3)]): 1, frozenset(["1", None]): 1, frozenset(["1"]): -1}
    wide = region_graph([range(40), range(20, 60)])  # 2^40 subsets: the closure comes from intersections
    assert numbers(wide)[frozenset(range(20, 40))] == -1
    assert len(region_graph([])) == 0 and len(region_graph([[]])) == 0
    with pytest.raises(ValueError, match="pass a list"):
        region_graph("AB")
    with pytest.raises(ValueError, match=r"write \[7\]"):
        region_graph([["A"], 7])
    with pytest.raises(ValueError, match=r"flat list of names"):
        region_graph([["A", ["B"]]])


def test_thousands_of_regions():
    """All pairs of 60 attributes with a class: c = 1, n - 2 times less for the singles, binomial for the class."""
    counts = numbers(region_graph(("C", *pair) for pair in itertools.combinations(range(60), 2)))
    assert len(counts) == 1770 + 60 + 1
    assert counts[frozenset(["C", 3])] == 1 - 59
    assert counts[frozenset("C")] == 1 - 1770 + 60 * 58


# ------------------------------------------------------------------------------------------------ entropy


@settings(deadline=None)
@given(st.lists(st.frozensets(st.sampled_from("ABCD"), min_size=1), min_size=1, max_size=5), st.integers(0, 999))
def test_theorem_2(initial, seed):
    """The region-based entropy is -sum P ln Phi."""
    joint = np.random.default_rng(seed).dirichlet(np.ones(2 * 3 * 2 * 2)).reshape(2, 3, 2, 2)
    graph = region_graph(initial)
    log_phi = np.zeros(joint.shape)
    for region, number in numbers(graph).items():
        others = tuple(k for k, name in enumerate("ABCD") if name not in region)
        log_phi += number * np.log(joint.sum(axis=others, keepdims=True))
    expected = -np.sum(joint * log_phi)
    assert math.isclose(region_entropy(graph, joint, "ABCD"), expected, abs_tol=1e-10)  # 24 cells, rounding


def test_free_energy_of_factors_is_minus_log_partition_on_a_tree():
    """With the exact marginals of a tree of factors, F = -ln Z; every factor's energy stands in the regions that hold it."""
    rng = np.random.default_rng(0)
    f_ab, f_bc = rng.random((2, 3)) + 0.1, rng.random((3, 2)) + 0.1
    product = f_ab[:, :, None] * f_bc[None]
    graph = region_graph(["AB", "BC"])
    energies = {frozenset("AB"): -np.log(f_ab), frozenset("BC"): -np.log(f_bc)}
    free = region_free_energy(graph, product / product.sum(), energies, "ABC")
    assert math.isclose(free, -math.log(product.sum()), abs_tol=1e-12)


# ------------------------------------------------------------------------------------------------ acyclic regions


@given(region_sets)
def test_acyclic_means_that_a_junction_tree_exists(initial):
    """A maximum spanning tree of the overlaps is a junction tree if and only if its weight is sum of sizes - number of names."""
    maximal = [r for r in set(initial) if not any(r < other for other in initial)]
    overlaps = nx.Graph()
    overlaps.add_nodes_from(range(len(maximal)))
    for i, j in itertools.combinations(range(len(maximal)), 2):
        overlaps.add_edge(i, j, weight=len(maximal[i] & maximal[j]))
    weight = sum(d["weight"] for *_, d in nx.maximum_spanning_tree(overlaps).edges(data=True))
    acyclic = weight == sum(map(len, maximal)) - len(frozenset().union(*maximal))
    steps, core = room.elimination_order(initial)
    assert (steps is not None) == acyclic == (not core)
    if acyclic:
        last = random.Random(0).choice(sorted(frozenset().union(*maximal)))
        assert room.elimination_order(initial, last=last)[0][-1][0] == last


@settings(deadline=None, max_examples=30)
@given(junction_trees(), st.integers(0, 99))
def test_directed_tables_multiply_to_the_normalised_product(tree, seed):
    cliques = [c for c in tree[0] if max(c) < 7]
    rng = np.random.default_rng(seed)
    names = sorted(frozenset().union(*cliques))
    cardinalities = {v: int(rng.integers(2, 4)) for v in names}
    factors = [(tuple(sorted(c)), rng.normal(size=[cardinalities[v] for v in sorted(c)])) for c in cliques]
    steps, _ = room.elimination_order(cliques)
    families = directed_tables(factors, cardinalities, steps)
    product, directed = {}, {}
    for y in cells(cardinalities, names):
        row = dict(zip(names, y))
        product[y] = math.exp(sum(values[tuple(row[v] for v in scope)] for scope, values in factors))
        directed[y] = math.prod(table[(*(row[p] for p in parents), row[v])] for v, (parents, table) in families.items())
    total = sum(product.values())
    for y, p in product.items():
        assert math.isclose(directed[y], p / total, rel_tol=1e-9)


@settings(deadline=None, max_examples=15)
@given(junction_trees(), st.integers(0, 99))
def test_acyclic_regions_equal_iterative_proportional_fitting(tree, seed):
    """Phi of the marginals of an arbitrary joint is the maximum-entropy distribution with these marginals."""
    cliques = [c for c in tree[0] if max(c) < 5]
    n = max(max(c) for c in cliques) + 1
    cardinalities = [2] * n
    joint = np.random.default_rng(seed).dirichlet(np.ones(2**n)).reshape(cardinalities)
    marginal = {r: joint.sum(axis=tuple(k for k in range(n) if k not in r)) for r in numbers(region_graph(cliques))}
    maximal = [r for r in marginal if not any(r < other for other in marginal)]
    tables = {r: {values: float(marginal[r][values]) for values in cells(cardinalities, sorted(r))} for r in maximal}
    fitted = iterative_proportional_fitting(cardinalities, tables, n_sweeps=len(maximal) + 1)  # a tree needs few sweeps
    counts = numbers(region_graph(cliques))
    for y, p in fitted.items():
        phi = math.prod(float(marginal[r][tuple(y[k] for k in sorted(r))]) ** c for r, c in counts.items())
        assert math.isclose(phi, p, rel_tol=1e-8)
