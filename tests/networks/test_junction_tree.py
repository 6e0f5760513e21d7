"""Junction trees and evidence plans: structure, kernels against plain twins, scaling, refusals."""

import itertools
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgm_bma.networks import _junction_tree_kernels as kernels
from pgm_bma.networks import evidence
from pgm_bma.networks.em import flatten
from pgm_bma.networks.junction_tree import CliqueTooLarge, build_tree, relevant_variables
from tests.oracles import network_em as oracle

SEEDS = st.integers(0, 2**32 - 1)


def random_network(rng, n_nodes=6, max_parents=3, max_card=3):
    """Cardinalities (one-state nodes included), parents along a random order, and tables."""
    n = int(rng.integers(1, n_nodes + 1))
    cards = [int(r) for r in rng.integers(1, max_card + 1, n)]
    order = rng.permutation(n).tolist()
    parents = [()] * n
    for position, node in enumerate(order):
        k = int(rng.integers(0, min(position, max_parents) + 1))
        parents[node] = tuple(rng.choice(order[:position], size=k, replace=False).tolist()) if k else ()
    cpts = [rng.dirichlet(np.ones(r), prod(cards[p] for p in ps)) for r, ps in zip(cards, parents)]
    return cards, parents, cpts


def random_rows(rng, cards, n_rows=6):
    """Rows with few, some or most cells missing, and sometimes a latent column."""
    codes = np.stack([rng.integers(0, r, n_rows) for r in cards], axis=1)
    codes[rng.random(codes.shape) < rng.choice([0.1, 0.4, 0.8])] = -1
    if rng.random() < 0.5:
        codes[:, rng.integers(len(cards))] = -1
    return codes


def hidden_in(codes):
    return np.flatnonzero((codes < 0).any(axis=0))


def plain(cpts):
    return [table.tolist() for table in cpts]


# -------------------------------------------------------------------------------------------------- the tree


@settings(max_examples=150, deadline=None)
@given(SEEDS)
def test_tree_holds_every_family_and_every_variable_in_one_connected_piece(seed):
    rng = np.random.default_rng(seed)
    cards, parents, _ = random_network(rng, n_nodes=12)
    hidden = np.flatnonzero(rng.random(len(cards)) < rng.choice([0.2, 0.7, 1.0])).tolist()
    tree = build_tree(cards, parents, hidden)
    for family, home in zip(tree.families, tree.home):
        assert set(family) <= set(tree.scopes[home])
    for cluster, above in enumerate(tree.parent):
        assert above < cluster
    for v in hidden:  # running intersection: exactly one cluster with v has no parent with v
        inside = [c for c, scope in enumerate(tree.scopes) if v in scope]
        tops = [c for c in inside if tree.parent[c] < 0 or v not in tree.scopes[tree.parent[c]]]
        assert len(tops) == 1
    cliques = [set(scope) for scope in tree.scopes if set(scope) <= set(hidden)]
    for a, b in itertools.permutations(cliques, 2):
        assert not a < b
    assert tree.largest_clique == max(prod(cards[v] for v in scope) for scope in tree.scopes)


def test_known_treewidths():
    ring = [(), (0,), (1,), (2,), (3, 0)]  # 0-1-2-3-4-0, the moral edge 3-0 closes a ring of four: two cliques of three
    assert build_tree([2] * 5, ring, range(5)).largest_clique == 8
    chain = [(), *((i,) for i in range(99))]
    assert build_tree([3] * 100, chain, range(100)).largest_clique == 9
    star = [(), *((0,),) * 500]
    tree = build_tree([2] * 501, star, [0])
    assert tree.scopes[0] == (0,) and (tree.parent[1:] == 0).all()


def test_always_observed_variables_never_enlarge_a_clique():
    parents = [(), *((0,),) * 30, tuple(range(1, 11))]  # ten observed parents of one observed child, latent root
    assert build_tree([2] * 32, parents, [0]).largest_clique == 2**11  # the family's own table and nothing more


def coupled_latents(n):
    """n latent roots and an observed child for every pair: small families, one clique of all latents."""
    pairs = list(itertools.combinations(range(n), 2))
    return [2] * (n + len(pairs)), [()] * n + pairs


def test_too_large_cliques_are_refused_with_their_size():
    cards, parents = coupled_latents(25)
    with pytest.raises(CliqueTooLarge, match="33,554,432 joint states over 25 variables") as refusal:
        build_tree(cards, parents, range(25))
    assert refusal.value.size == 2**25 and refusal.value.variables == tuple(range(25))
    with pytest.raises(CliqueTooLarge, match="1,099,511,627,776"):  # a family alone may be too large
        build_tree([2] * 40, [()] * 39 + [tuple(range(39))], [])


def test_relevant_variables_are_the_ancestors():
    assert relevant_variables([(), (0,), (1,), (1,), ()], [2]) == [0, 1, 2]


# ------------------------------------------------------------------------------------- kernels and plain twins


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_cluster_and_family_tables_equal_their_plain_twins(seed):
    rng = np.random.default_rng(seed)
    cards, parents, cpts = random_network(rng)
    tree = build_tree(cards, parents, range(len(cards)))
    psi = evidence.cluster_tables(tree, flatten(cpts))
    counts = rng.random(len(psi))
    families = np.empty(tree.family_start[-1])
    kernels.family_tables(counts, *evidence._homes(tree, len(cards)), families)
    expected = np.zeros_like(families)
    for c, scope in enumerate(tree.scopes):
        for k, cell in enumerate(itertools.product(*[range(cards[v]) for v in scope])):
            value = dict(zip(scope, cell))
            product = 1.0
            for node in np.flatnonzero(tree.home == c):
                line = oracle.parent_state(value, node, cards, parents)
                product *= cpts[node][line, value[node]]
                expected[tree.family_start[node] + line * cards[node] + value[node]] += counts[tree.table_start[c] + k]
            # products of at most six factors in another order
            assert psi[tree.table_start[c] + k] == pytest.approx(product, rel=1e-14)
    np.testing.assert_allclose(families, expected, rtol=1e-13)  # sums of a few dozen terms


def test_mixed_radix_equals_nested_loops():
    for cards, steps in [((2, 3, 4), (12, 0, 1)), ((5,), (7,)), ((1, 2), (9, 3)), ((3, 1, 2), (0, 0, 0))]:
        out = np.empty(prod(cards), dtype=np.int32)
        kernels.mixed_radix(np.array(cards), np.array(steps), out)
        cells = itertools.product(*map(range, cards))
        assert out.tolist() == [sum(d * s for d, s in zip(cell, steps)) for cell in cells]


def test_normalise_tables_equals_its_plain_twin():
    rng = np.random.default_rng(0)
    lines = np.array([0, 2, 4, 7, 10])
    counts, theta, alpha = rng.random(10), rng.random(10), rng.random(10)
    counts[2:4] = alpha[2:4] = 0.0
    updated = np.empty(10)
    change = kernels.normalise_tables(counts, alpha, lines, np.array([True, True, False, True]), theta, updated)
    expected = theta.copy()
    for low, high in ((0, 2), (7, 10)):
        expected[low:high] = (counts + alpha)[low:high] / (counts + alpha)[low:high].sum()
    expected[2:4] = 0.5
    np.testing.assert_allclose(updated, expected, rtol=1e-14)
    assert change == np.abs(updated - theta).max()


def test_hash_groups_are_checked_for_equality():
    start, values = np.array([0, 2, 4, 6, 7]), np.array([1, 2, 1, 2, 2, 1, 1])
    group, first = evidence._group(start, values)
    assert group[0] == group[1] and len({group[0], group[2], group[3]}) == 3 and len(first) == 3
    assert not kernels.same_jobs(start, values, np.array([0, 0, 0, 3]))  # what a colliding hash would claim
    assert not kernels.same_jobs(start, values, np.array([0, 0, 2, 0]))


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_jobs_cover_the_hidden_clusters_of_every_row_once(seed):
    rng = np.random.default_rng(seed)
    cards, parents, cpts = random_network(rng)
    codes = random_rows(rng, cards)
    tree = build_tree(cards, parents, hidden_in(codes))
    folded, single = evidence.plan_rows(tree, codes), evidence.plan_rows(tree, codes, fold=False)
    for c, scope in enumerate(tree.scopes):
        np.testing.assert_array_equal(folded.job_of[:, c] >= 0, (codes[:, scope] < 0).any(axis=1))
    assert len(folded.job_weights) <= len(single.job_weights)
    assert folded.job_weights.sum() == single.job_weights.sum()
    theta = flatten(cpts)
    for a, b in zip(evidence.expected_counts(folded, theta), evidence.expected_counts(single, theta)):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)  # the same sums in another order


def test_equal_pieces_of_evidence_are_computed_once():
    # a hidden node between two observed neighbours in a long chain: four different jobs, however many rows
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (1000, 7))
    codes[:, 3] = -1
    tree = build_tree([2] * 7, [(), *((i,) for i in range(6))], [3])
    assert len(evidence.plan_rows(tree, codes).job_weights) == 4


# ------------------------------------------------------------------------------------------- floating-point range


def test_long_chain_does_not_underflow():
    """3000 hidden states with one observation each, against the forward recursion in logs."""
    rng = np.random.default_rng(1)
    n = 3000
    start, move, emit = rng.dirichlet([1, 1]), rng.dirichlet([1, 1], 2), rng.dirichlet([1] * 4, 2)
    parents = [()] + [(i,) for i in range(n - 1)] + [(i,) for i in range(n)]
    cards = [2] * n + [4] * n
    seen = rng.integers(0, 4, n)
    codes = np.concatenate([np.full(n, -1), seen])[None, :]
    theta = flatten([start[None], *[move] * (n - 1), *[emit] * n])
    plan = evidence.plan_rows(build_tree(cards, parents, range(n)), codes)
    log_forward = np.log(start) + np.log(emit[:, seen[0]])
    for value in seen[1:]:
        log_forward = np.logaddexp.reduce(log_forward[:, None] + np.log(move), axis=0) + np.log(emit[:, value])
    expected = np.logaddexp.reduce(log_forward)
    assert expected < -3000  # far beyond what a float could hold
    assert evidence.row_log_likelihood(plan, theta)[0] == pytest.approx(expected, rel=1e-12)
    counts, total = evidence.expected_counts(plan, theta)
    assert total == pytest.approx(expected, rel=1e-12)
    assert counts[:2].sum() == pytest.approx(1.0, abs=1e-12)


def test_many_messages_into_one_clique_and_tiny_tables():
    """2000 leaves below a latent root, tables down to 1e-250: the product leaves the float range many times over."""
    rng = np.random.default_rng(2)
    n = 2000
    leaf = rng.dirichlet([1, 1], (n, 3))
    leaf[0] = [[1 - 1e-250, 1e-250], [1 - 2e-250, 2e-250], [1 - 1e-250, 1e-250]]
    codes = np.concatenate([[-1], rng.integers(0, 2, n)])[None, :]
    codes[0, 1] = 1
    root = np.array([[0.2, 0.3, 0.5]])
    plan = evidence.plan_rows(build_tree([3] + [2] * n, [(), *[(0,)] * n], [0]), codes)
    theta = flatten([root, *leaf])
    log_joint = np.log(root[0]) + sum(np.log(leaf[i][:, codes[0, i + 1]]) for i in range(n))
    expected = np.logaddexp.reduce(log_joint)
    assert evidence.row_log_likelihood(plan, theta)[0] == pytest.approx(expected, rel=1e-12)
    posterior = evidence.posteriors(plan, theta, [0])[0][0]
    np.testing.assert_allclose(posterior, np.exp(log_joint - expected), atol=1e-10)  # 2000 factors, 1e-13 relative each
