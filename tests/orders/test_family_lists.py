"""Family lists: what is kept, what is lost at most, and that grown lists have the scores of the full table."""

from itertools import combinations

import numpy as np
import pytest

from pgm_bma.orders.families import family_table as family_tables
from pgm_bma.orders.families.family_table import family_table, grow_lists, members, parent_sets, prune_table
from tests.orders.test_order_mcmc import chain_data

PRIORS = [
    {"alpha": 1.0},
    {"equivalent_sample_size": 4.0, "structure_prior": "friedman_koller"},
    {"alpha": 0.5, "structure_prior": "uniform"},
]


def by_set(table, child):
    here = slice(table.offsets[child], table.offsets[child + 1])
    return dict(zip(parent_sets(table, child), table.log_scores[here]))


def mixed_data(n_rows=300, seed=0):
    rng = np.random.default_rng(seed)
    codes = chain_data(n_rows, n=7, seed=seed)
    codes[:, 2] += codes[:, 2] * rng.integers(0, 2, n_rows)
    codes[:, 5] = rng.integers(0, 4, n_rows)
    return codes, [2, 2, 3, 2, 2, 4, 2]


def largest_loss(full, kept):
    """Largest ratio, over all sets of variables before a child, of what its list leaves out to what it has; by enumeration."""
    candidates, top = sorted({v for z in full for v in z}), max(full.values())
    largest = 0.0
    for size in range(len(candidates) + 1):
        for before in map(set, combinations(candidates, size)):
            here = [sum(np.exp(s - top) for z, s in some.items() if before.issuperset(z)) for some in (full, kept)]
            largest = max(largest, here[0] / here[1] - 1)
    return largest


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("eps", [1e-3, 0.1])
@pytest.mark.parametrize("required", [[], [(0, 3), (5, 3), (1, 2)]])
def test_what_is_left_out_has_less_than_eps_whatever_stands_before(prior, eps, required):
    codes, cards = mixed_data()
    table = family_table(codes, cards, **prior, required=required)
    lists = prune_table(table, eps)
    for child in range(7):
        full = {z: s for z, s in by_set(table, child).items() if s > -np.inf}
        kept = by_set(lists, child)
        needs = {p for p, c in required if c == child}
        assert full.keys() >= kept.keys() and all(needs.issubset(z) for z in kept)
        full, kept = ({tuple(set(z) - needs): s for z, s in some.items()} for some in (full, kept))
        assert largest_loss(full, kept) <= lists.lost_mass[child] + 1e-12 <= eps + 2e-12  # rounding of sums
    assert len(lists.log_marginal) < len(table.log_marginal)


@pytest.mark.parametrize("margin", [0.01, 0.5])
def test_the_bound_of_grown_lists_holds_for_what_was_scored(margin):
    """With a wide beam, all kept sets are extended by every variable."""
    codes, cards = mixed_data()
    table = family_table(codes, cards)
    lists = grow_lists(codes, cards, eps=margin / family_tables.GROWN, beam=10_000)
    losses = []
    for child in range(7):
        full, kept = by_set(table, child), by_set(lists, child)
        scored = {z: s for z, s in full.items() if not z or any(tuple(v for v in z if v != x) in kept for x in z)}
        losses.append(largest_loss(scored, kept))
    assert (losses <= lists.lost_mass + 1e-8).all() and max(losses) > 0  # scores of lists are summed in another order


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("weights", [None, "whole", "fractions"])
def test_a_list_grown_without_limits_is_the_full_table(prior, weights):
    codes, cards = mixed_data()
    rng = np.random.default_rng(2)
    if weights is not None:
        weights = rng.integers(0, 4, len(codes)) if weights == "whole" else rng.random(len(codes)) * 3
    arcs = {"required": [(0, 3), (5, 3), (1, 2)], "forbidden": [(0, 4), (6, 0)]}
    table = family_table(codes, cards, weights, **prior, **arcs)
    lists = grow_lists(codes, cards, weights, **prior, **arcs, eps=1e-300, beam=10_000)
    for child in range(7):
        full = {z: s for z, s in by_set(table, child).items() if s > -np.inf}
        grown = by_set(lists, child)
        assert full.keys() == grown.keys()
        for z, score in full.items():
            assert grown[z] == pytest.approx(score, abs=1e-8)  # sums of lgamma in another order
        sizes = (members(lists, child) >= 0).sum(1)
        assert (np.diff(sizes) >= 0).all()
    np.testing.assert_array_equal(lists.lost_mass, 0.0)


def test_a_narrow_beam_keeps_the_strong_sets_and_does_not_depend_on_jobs():
    codes, cards = mixed_data(600)
    table = prune_table(family_table(codes, cards))
    narrow, again = grow_lists(codes, cards, beam=3), grow_lists(codes, cards, beam=3, n_jobs=2)
    np.testing.assert_array_equal(narrow.sets, again.sets)
    np.testing.assert_array_equal(narrow.log_marginal, again.log_marginal)
    for child in range(7):
        full, grown = by_set(table, child), by_set(narrow, child)
        best = max(full, key=full.get)
        assert grown[best] == pytest.approx(full[best], abs=1e-8)
    assert narrow.beam == 3 and table.beam == 0


def test_many_parents_are_finished():
    """2^11 and more cells a family: only those with rows are touched."""
    codes = np.random.default_rng(0).integers(0, 3, (200, 14))
    lists = grow_lists(codes, [3] * 14, max_indegree=11, eps=1e-300, beam=2)
    assert (members(lists, 0) >= 0).sum(1).max() == 11


@pytest.mark.parametrize("prior", PRIORS)
def test_columns_of_many_states_are_scored_by_the_cells_that_rows_are_in(prior):
    rng = np.random.default_rng(3)
    codes, cards = rng.integers(0, 30, (60, 5)), [30] * 5
    codes[:, 1] = np.where(rng.random(60) < 0.7, codes[:, 0], codes[:, 1])
    weights = rng.choice([1.0, 2.0, 0.5], 60)
    table = family_table(codes, cards, weights, **prior)
    lists = grow_lists(codes, cards, weights, **prior, eps=1e-300, beam=1000)
    for child in range(5):
        full, grown = by_set(table, child), by_set(lists, child)
        assert full.keys() == grown.keys()
        np.testing.assert_allclose([grown[z] for z in full], list(full.values()), atol=1e-8)  # sums in another order


def test_lists_that_are_too_large_end_after_few_variables(monkeypatch):
    codes, cards = mixed_data()
    seen = []
    with pytest.raises(family_tables.TooLarge):
        grow_lists(codes, cards, most_steps=10.0, progress=seen.append)
    assert not seen
    grow_lists(codes, cards, most_steps=1e12)
    monkeypatch.setattr(family_tables, "MAX_FAMILIES", 2)
    with pytest.raises(family_tables.TooLarge):
        grow_lists(codes, cards)
