"""Ctrl-C is heard within a moment: compiled calls are short, whatever the size of the table."""

import numpy as np
import pytest

from pgm_bma.forests import average as forests
from pgm_bma.foundation.numbers import pairs
from pgm_bma.foundation.runtime import jobs
from pgm_bma.orders.families import family_table as families


def heard(monkeypatch, module, name):
    """Calls of a compiled function of a module are counted."""
    calls, function = [], getattr(module, name)

    def counted(*arguments):
        calls.append(arguments)
        return function(*arguments)

    monkeypatch.setattr(module, name, counted)
    return calls


def test_parts_cover_all_and_none_is_longer_than_a_moment():
    for n, cost in ((0, 1.0), (7, 1e30), (10**6, 1e3), (3, 0.0)):
        parts = list(jobs.in_moments(n, cost))
        assert [i for part in parts for i in (part.start, part.stop)][1:-1:2] == [part.start for part in parts[1:]]
        assert sum(part.stop - part.start for part in parts) == n
        assert all(part.stop - part.start == 1 or (part.stop - part.start) * cost <= jobs.MOMENT for part in parts)


@pytest.mark.parametrize("n_states", [2, 7])  # rows as bits, and not
def test_families_are_scored_in_many_calls(n_states, monkeypatch):
    codes = np.random.default_rng(0).integers(0, n_states, (300, 6))
    whole = families.family_table(codes, [n_states] * 6, max_indegree=3).log_marginal
    monkeypatch.setattr(families, "MOMENT", 5 * 6 * 300)
    calls = heard(monkeypatch, families, "score_families")
    parts = families.family_table(codes, [n_states] * 6, max_indegree=3).log_marginal
    np.testing.assert_array_equal(parts, whole)
    assert len(calls) > 10  # 42 sets of at most three columns


def test_pairs_are_counted_in_many_calls(monkeypatch):
    rng = np.random.default_rng(0)
    codes, target = rng.integers(0, 40, (500, 6)), rng.integers(0, 2, 500)
    cards, weights = np.full(6, 40), rng.random(500)
    groups, clusters = pairs.make_pair_groups(codes, cards), rng.random((500, 3))

    def count():
        return (
            pairs.count_class_pairs(codes, cards, target, 2, weights),
            pairs.grouped_pair_counts(groups, clusters),
            pairs.interaction_information(codes, target, weights, cards, 2),
        )

    monkeypatch.setattr(pairs, "products_are_faster", lambda *_: False)
    whole = count()
    monkeypatch.setattr(jobs, "MOMENT", 2000.0)
    by_class = heard(monkeypatch, pairs.kernels, "class_group_pairs")
    by_cluster = heard(monkeypatch, pairs.kernels, "group_pairs")
    between = heard(monkeypatch, pairs, "pair_interactions")
    for part, all_at_once in zip(count(), whole):
        np.testing.assert_array_equal(part, all_at_once)
    assert min(map(len, (by_class, by_cluster, between))) > 5


def test_forests_predict_in_many_calls(monkeypatch):
    rng = np.random.default_rng(0)
    codes, cards = rng.integers(0, 3, (200, 5)), np.full(5, 3)
    average = forests.fit_forest_average(codes, cards, rng.integers(0, 2, 200), 2)
    whole = forests.complete_log_joint(average, codes)
    monkeypatch.setattr(jobs, "MOMENT", 1000.0)
    calls = heard(monkeypatch, forests, "row_log_sums")
    np.testing.assert_array_equal(forests.complete_log_joint(average, codes), whole)
    assert len(calls) > 10
