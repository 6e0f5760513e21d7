"""The family table against the literal formulas, its compiled splits against each other, and many variables."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln

from pgm_bma import OrderPosterior
from pgm_bma.orders.families import family_table as room
from pgm_bma.orders.families.family_table import (
    family_table,
    grow_lists,
    local_sets,
    most_cells,
    n_families,
    parent_sets,
)
from pgm_bma.orders.sums import fixed_order
from tests.oracles.orders import Problem

# Scores are sums of about a hundred lgamma values of size up to 1e3: rounding stays below 1e-10.
ROUNDING = 1e-10


def draw(cards, n_rows, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, cards, (n_rows, len(cards)))
    codes[:, 1] = np.where(rng.random(n_rows) < 0.6, codes[:, 0] % cards[1], codes[:, 1])
    return codes


def scores_of(table):
    return {
        (child, z): table.log_scores[table.offsets[child] + k]
        for child in range(len(table.cardinalities))
        for k, z in enumerate(parent_sets(table, child))
    }


def plain_scores(codes, cards, max_indegree, alpha, ess, weights=None):
    """The plain twin of the kernel: one bincount and one sum of gammaln per family."""
    weights = np.ones(len(codes)) if weights is None else weights
    found = {}
    for child in range(len(cards)):
        others = [v for v in range(len(cards)) if v != child]
        for size in range(max_indegree + 1):
            for z in combinations(others, size):
                index = np.zeros(len(codes), dtype=int)
                for v in (*z, child):
                    index = index * cards[v] + codes[:, v]
                shape = [cards[v] for v in (*z, child)]
                counts = np.bincount(index, weights, minlength=int(np.prod(shape))).reshape(-1, cards[child])
                a = alpha if ess is None else ess / counts.size
                value = (gammaln(counts + a) - gammaln(a)).sum()
                value -= (gammaln(counts.sum(1) + a * cards[child]) - gammaln(a * cards[child])).sum()
                found[child, z] = value
    return found


@pytest.mark.parametrize("prior", ["mdl", "friedman_koller", "uniform"])
@pytest.mark.parametrize("alpha, ess", [(1.0, None), (0.3, None), (1.0, 2.5)])
@pytest.mark.parametrize("weighting", ["none", "integer", "fraction"])
def test_scores_equal_the_formula(prior, alpha, ess, weighting):
    cards = [2, 3, 4, 1, 2]  # a one-state variable among them
    codes = draw(cards, 40)
    rng = np.random.default_rng(1)
    weights = {"none": None, "integer": rng.integers(1, 4, 40).astype(float), "fraction": rng.random(40)}[weighting]
    table = family_table(
        codes, cards, weights, max_indegree=3, alpha=alpha, equivalent_sample_size=ess, structure_prior=prior
    )
    truth = Problem(codes.tolist(), cards, 3, prior, alpha, ess, None if weights is None else weights.tolist()).scores
    ours = scores_of(table)
    assert ours.keys() == truth.keys()
    for family, value in truth.items():
        assert abs(ours[family] - value) < ROUNDING, family


@pytest.mark.parametrize("n_rows", [1, 63, 64, 65, 300])
@pytest.mark.parametrize("ess", [None, 4.0])
def test_bitsets_and_row_lists_agree_with_the_plain_twin(n_rows, ess, monkeypatch):
    cards = np.array([3, 2, 5, 2, 4, 2])
    codes = draw(cards, n_rows)
    truth = plain_scores(codes, cards, 3, 1.0, ess)
    for bits in (True, False):
        monkeypatch.setattr(room, "_bits_pay", lambda *_, bits=bits: bits)
        for table_size in (room.MAX_LGAMMA, 0):  # lgamma looked up, and computed
            monkeypatch.setattr(room, "MAX_LGAMMA", table_size)
            table = family_table(codes, cards, equivalent_sample_size=ess, structure_prior="uniform")
            ours = scores_of(table)
            assert max(abs(ours[family] - truth[family]) for family in truth) < ROUNDING


def test_a_few_wide_columns_are_not_counted_by_bitsets():
    """The cells of three 40-state columns hold 64,000 bitsets of 50,000 rows: gigabytes, where row lists take 0.4 MB."""
    assert room._bits_pay(np.array([2] * 20), 50_000, 50_000, 3)
    assert not room._bits_pay(np.array([2] * 17 + [40] * 3), 50_000, 50_000, 3)
    assert not room._bits_pay(np.array([2] * 197 + [40] * 3), 50_000, 50_000, 3)


def test_repeated_rows_and_weights_are_bit_equal():
    cards = np.array([2, 3, 2])
    codes = draw(cards, 20)
    weights = np.random.default_rng(2).integers(1, 5, 20)
    repeated = family_table(np.repeat(codes, weights, axis=0), cards)
    weighted = family_table(codes, cards, weights.astype(float))
    np.testing.assert_array_equal(repeated.log_marginal, weighted.log_marginal)


def test_no_rows_have_score_zero():
    table = family_table(np.zeros((0, 3), dtype=int), [2, 3, 2], max_indegree=2)
    np.testing.assert_array_equal(table.log_marginal, 0.0)


def test_required_and_forbidden_arcs():
    cards = [2, 2, 3, 2]
    codes = draw(cards, 30)
    required, forbidden = [(0, 2), (1, 3)], [(3, 0), (0, 1)]
    table = family_table(codes, cards, max_indegree=2, required=required, forbidden=forbidden)

    def allowed(child, parents):
        wanted = all(p in parents for p, c in required if c == child)
        return wanted and not any(p in parents for p, c in forbidden if c == child)

    truth = Problem(codes.tolist(), cards, 2, allowed=allowed).scores
    ours = {family: value for family, value in scores_of(table).items() if value > -np.inf}
    assert ours.keys() == truth.keys()
    assert max(abs(ours[family] - truth[family]) for family in truth) < ROUNDING


def test_contradicting_arcs_are_errors():
    codes = draw([2, 2, 2], 10)
    with pytest.raises(ValueError, match="both required and forbidden"):
        family_table(codes, [2, 2, 2], required=[(0, 1)], forbidden=[(0, 1)])
    with pytest.raises(ValueError, match="max_indegree=1"):
        family_table(codes, [2, 2, 2], max_indegree=1, required=[(0, 2), (1, 2)])


def test_sets_are_ranked_by_size_then_colexicographically():
    sets = local_sets(5, 3)
    assert len(sets) == n_families(1, 5, 3)
    plain = [tuple(int(k) for k in row if k >= 0) for row in sets]
    expected = [z for size in range(4) for z in sorted(combinations(range(5), size), key=lambda z: z[::-1])]
    assert plain == expected


@pytest.mark.filterwarnings("ignore:column '(id|copy)' names the rows")
def test_columns_of_many_states_cost_what_their_tables_hold():
    """Room for the two largest columns together was taken twice: 1.6 GB for one column of 10,000 states."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": np.arange(10_000), "b": rng.integers(0, 3, 10_000), "c": rng.integers(0, 2, 10_000)})
    assert most_cells([10_000, 3, 2], 10_000, 3) == 60_000  # 'id' below b and c
    assert most_cells([10_000, 10_000], 500, 1) == 5_000_000  # no more parents than rows
    OrderPosterior().fit(X)
    with pytest.raises(
        ValueError, match=r"most states \('id' 10000, 'copy' 10000, .* 100,000,000 cells, more than .* merge rare"
    ):
        OrderPosterior().fit(X.assign(copy=rng.permutation(10_000)))


@pytest.mark.parametrize("fractional", [False, True])
def test_a_limit_of_mass_is_k2_in_small_tables_and_bdeu_of_the_limit_in_large_ones(fractional):
    rng = np.random.default_rng(3)
    cards = np.array([2, 3, 2, 4, 7])
    codes = np.column_stack([rng.integers(0, r, 80) for r in cards])
    weights = rng.integers(1, 4, 80) + (0.5 if fractional else 0.0)
    both = {"max_indegree": 2, "structure_prior": "uniform"}
    limited = family_table(codes, cards, weights, alpha=0.5, max_total=9.0, **both)
    k2 = family_table(codes, cards, weights, alpha=0.5, **both)
    bdeu = family_table(codes, cards, weights, equivalent_sample_size=9.0, **both)
    cells = np.concatenate([[cards[[child, *z]].prod() for z in parent_sets(k2, child)] for child in range(5)])
    small = 0.5 * cells <= 9.0
    assert 0 < small.sum() < len(small)
    np.testing.assert_allclose(limited.log_marginal, np.where(small, k2.log_marginal, bdeu.log_marginal), rtol=1e-12)
    lists = grow_lists(codes, cards, weights, alpha=0.5, max_total=9.0, eps=1e-300, beam=1000, **both)
    found = {(c, tuple(z[z >= 0])): v for c in range(5) for z, v in zip(*_of(lists, c))}
    expected = {(c, z): v for c in range(5) for z, v in zip(parent_sets(limited, c), _values(limited, c))}
    assert found.keys() == expected.keys()
    assert all(found[key] == pytest.approx(value, rel=1e-12) for key, value in expected.items())
    prior = {True: (0.5, None, None), False: (0.5, 9.0, None)}
    rows, some = np.asfortranarray(codes, dtype=np.int32), codes[:3].astype(np.int32)
    for (child, z), is_small in zip(expected, small):
        parents = np.full((1, 2), -1)
        parents[0, : len(z)] = z
        made, plain = (
            fixed_order.predict(fixed_order.Training(rows, weights, cards, *p), [child], parents, some)
            for p in ((0.5, None, 9.0), prior[bool(is_small)])
        )
        np.testing.assert_allclose(made, plain, rtol=1e-12)


def _of(lists, child):
    here = slice(lists.offsets[child], lists.offsets[child + 1])
    return lists.sets[here], lists.log_marginal[here]


def _values(table, child):
    return table.log_marginal[table.offsets[child] : table.offsets[child + 1]]
