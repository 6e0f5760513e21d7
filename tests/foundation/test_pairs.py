"""Scores of all pairs of columns: the compiled walk against families counted one by one."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

from pgm_bma.foundation.numbers import pairs
from pgm_bma.foundation.numbers.pairs import (
    complete_pair_scores,
    indicators,
    mass_consistent_prior,
    pair_counts,
    pair_prior,
    pair_scores,
)

CARDS = np.array([2, 3, 1, 4, 2])
PRIORS = {
    "K2": lambda: pair_prior(3, CARDS),
    "BDeu": lambda: pair_prior(3, CARDS, equivalent_sample_size=2.0),
    "tiny": lambda: pair_prior(3, CARDS, alpha=1e-200),
    "consistent": lambda: mass_consistent_prior(CARDS, np.array([1.0, 2.0, 2.0, 0.5, 3.0])),
}


def family(table, cell):
    """Log marginal likelihood of a (n_parent_states, n_states) table."""
    mass = cell * table.shape[1]
    cells = gammaln(table + cell) - gammaln(cell)
    return float(cells.sum() + (gammaln(mass) - gammaln(table.sum(1) + mass)).sum())


@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("soft", [False, True])
def test_scores_of_all_pairs(kind, gaps, soft):
    rng = np.random.default_rng(3)
    codes = rng.integers(0, CARDS, (60, 5))
    codes[(rng.random(codes.shape) < gaps) & (CARDS > 1)] = -1
    weights = rng.dirichlet(np.ones(3), 60) * 7.3 if soft else np.eye(3)[rng.integers(0, 3, 60)]
    prior = PRIORS[kind]()
    found = pair_scores(pair_counts(indicators(codes, CARDS), weights), CARDS, prior)
    for child in range(5):
        alone = [counted(codes, weights, child, None, c) for c in range(3)]
        # sums of some 60 logarithms of order 100: rounding is about 1e-13 of them
        assert found.alone[child] == pytest.approx(sum(family(t, prior.alone[child]) for t in alone), rel=1e-11)
        for parent in set(range(5)) - {child}:
            tables = [counted(codes, weights, child, parent, c) for c in range(3)]
            score = sum(family(t, prior.below[parent, child]) for t in tables)
            assert found.with_parent[child, parent] == pytest.approx(score, rel=1e-11)
            margins = [t.sum(0, keepdims=True) for t in tables]
            score = sum(family(t, prior.alone[child]) for t in margins)
            assert found.without_parent[child, parent] == pytest.approx(score, rel=1e-11)


def counted(codes, weights, child, parent, c):
    table = np.zeros((1 if parent is None else CARDS[parent], CARDS[child]))
    for row, weight in zip(codes, weights[:, c], strict=True):
        if row[child] >= 0 and (parent is None or row[parent] >= 0):
            table[0 if parent is None else row[parent], row[child]] += weight
    return table


def test_large_counts_keep_their_digits():
    """1e11 rows, the most that is allowed."""
    rng = np.random.default_rng(0)
    codes, cards = rng.integers(0, 2, (40, 4)), np.full(4, 2)
    weights = np.full((40, 1), 2.5e9)
    prior = pair_prior(1, cards)
    pairs = pair_counts(indicators(codes, cards), weights)
    found = pair_scores(pairs, cards, prior)
    for child, parent in ((0, 1), (2, 0), (3, 2)):
        score = family(pairs[0, 2 * parent : 2 * parent + 2, 2 * child : 2 * child + 2], 1.0)
        assert found.with_parent[child, parent] == pytest.approx(score, rel=1e-13)


@pytest.mark.parametrize("kind", ["K2", "BDeu", "tiny"])
@pytest.mark.parametrize("weights", ["classes", "repeated", "soft"])
@pytest.mark.parametrize("way", [{"_HALF_CELLS": 10**6}, {"_HALF_CELLS": 60}, {"WIDE": 0, "MANY_STATES": 0}])
def test_complete_rows_are_scored_some_columns_or_one_pair_at_a_time(kind, weights, way, monkeypatch):
    """Half of the pairs, whole counts looked up, rows without weight left out: the same scores."""
    monkeypatch.setattr(pairs, "_add_in_blocks", pairs._add_in_blocks if "_HALF_CELLS" in way else None)
    for name, value in way.items():
        monkeypatch.setattr(pairs, name, value)
    monkeypatch.setattr(pairs, "_KNOWN", 30)  # some counts are beyond what is looked up
    rng = np.random.default_rng(1)
    codes, prior = rng.integers(0, CARDS, (90, 5)), PRIORS[kind]()
    weights = {
        "classes": np.eye(3)[rng.integers(0, 3, 90)],
        "repeated": rng.integers(0, 3, (90, 3)).astype(float),
        "soft": rng.dirichlet(np.full(3, 0.1), 90) * (rng.random((90, 3)) < 0.8),
    }[weights]
    wanted = pair_scores(pair_counts(indicators(codes, CARDS), weights), CARDS, prior)
    found = complete_pair_scores(codes, CARDS, weights, prior)
    apart = ~np.eye(5, dtype=bool)
    # the plain product multiplies roots of weights: a count of nothing may be 1e-17, which "tiny" would see
    close = {
        "rtol": 1e-11 if kind != "tiny" else 1e-9,
        "atol": 1e-10,
    }  # terms of thousands; a constant column is worth 0
    np.testing.assert_allclose(found.with_parent[apart], wanted.with_parent[apart], **close)
    np.testing.assert_allclose(found.without_parent[apart], wanted.without_parent[apart], **close)
    np.testing.assert_allclose(found.alone, wanted.alone, **close)


@pytest.mark.parametrize("cells", [10**6, 230, 60], ids=["at once", "indicators kept", "rows in parts"])
def test_blocks_of_pairs_are_the_counts_of_each_pair(cells, monkeypatch):
    rng = np.random.default_rng(0)
    cards = np.array([2, 3, 4, 2])
    codes = np.column_stack([rng.integers(-1, card, 20) for card in cards])
    weights, classes = rng.random((20, 2)), np.flatnonzero(rng.random(20) < 0.5)
    parts = [(slice(None), weights[:, 0]), (classes, weights[classes, 1])]
    monkeypatch.setattr(pairs, "_BLOCK_CELLS", cells)
    blocks = list(pairs.pair_blocks(codes, cards, parts))
    assert (len(blocks) > 1) == (cells < 10**6)
    found, offsets = np.concatenate([block for _, _, block in blocks], axis=1), np.cumsum([0, *cards])
    for first, stop, block in pairs.pair_blocks(codes, cards, parts, lower=True):
        np.testing.assert_allclose(block, found[:, offsets[first] : offsets[stop], : offsets[stop]], atol=1e-12)
    for k, (rows, row_weights) in enumerate(parts):
        for i, j in itertools.product(range(4), repeat=2):
            table = np.zeros((cards[i], cards[j]))
            for row, weight in zip(codes[rows], row_weights):
                if row[i] >= 0 and row[j] >= 0:
                    table[row[i], row[j]] += weight
            here = found[k, offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
            np.testing.assert_allclose(here, table, atol=1e-12)  # sums of 20 numbers
