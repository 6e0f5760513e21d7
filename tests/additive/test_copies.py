"""Rows that were copied, and weights: what says nothing new must not make a fit surer."""

import numpy as np
import pandas as pd
import pytest

from pgm_bma import AdditiveBayesClassifier, KikuchiBayesClassifier
from pgm_bma.foundation.numbers.folds import deal, weigh_repeats


def numbers(n, seed):
    """Six weak numbers and a column of noise: a fit that trusts copies is far too sure."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 6)) + 0.4 * y[:, None]
    return pd.DataFrame(X.round(2)).add_prefix("x").assign(k=rng.integers(0, 5, n).astype(str)), y


def states(n, seed):
    """Sixteen columns of five states."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.integers(0, 4, (n, 16)) + (rng.random((n, 16)) < 0.3 * y[:, None])
    return pd.DataFrame(X.astype(str)).add_prefix("x"), y


CASES = pytest.mark.parametrize(
    ("estimator", "source"), [(AdditiveBayesClassifier(n_bags=2), numbers), (KikuchiBayesClassifier(), states)]
)


def loss(model, source):
    X, y = source(1000, 9)
    return -np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()


@CASES
def test_a_table_twice_or_with_one_weight_is_the_table(estimator, source):
    X, y = source(150, 0)
    expected = estimator.fit(X, y).predict_proba(X)
    assert estimator.repeats_ == "none"
    np.testing.assert_array_equal(estimator.fit(pd.concat([X, X]), np.tile(y, 2)).predict_proba(X), expected)
    np.testing.assert_array_equal(estimator.fit(X, y, sample_weight=np.full(len(y), 2.0)).predict_proba(X), expected)


@CASES
def test_some_rows_more_often_than_others_keep_the_quality(estimator, source):
    X, y = source(200, 1)
    once = loss(estimator.fit(X, y), source)
    times = np.random.default_rng(2).integers(1, 6, len(y))
    rows = np.repeat(np.arange(len(y)), times)
    often = loss(estimator.fit(X.iloc[rows], y[rows]), source)
    assert estimator.repeats_ == "copies"
    assert often < once + 0.06  # 0.3 and 0.4 above once, when copies were left out one by one
    weighted = loss(estimator.fit(X, y, sample_weight=times), source)
    assert weighted == pytest.approx(often, abs=1e-9)


def test_of_weights_that_are_not_whole_only_the_proportions_count():
    """Weights that add up to one row, or to a million, are the weights: they gave the shares of the classes before."""
    X, y = numbers(150, 0)
    plain = AdditiveBayesClassifier(n_bags=1).fit(X, y).predict_proba(X)
    own = np.random.default_rng(0).uniform(0.5, 1.5, len(y))
    wanted = AdditiveBayesClassifier(n_bags=1).fit(X, y, sample_weight=own).predict_proba(X)
    for factor in (1 / own.sum(), 1e4 / 3):
        equal = AdditiveBayesClassifier(n_bags=1).fit(X, y, sample_weight=np.full(len(y), factor))
        np.testing.assert_array_equal(equal.predict_proba(X), plain)
        found = AdditiveBayesClassifier(n_bags=1).fit(X, y, sample_weight=own * factor)
        np.testing.assert_allclose(found.predict_proba(X), wanted, atol=1e-6)  # weights are kept in single precision


def test_sampling_weights_are_no_rows():
    """Of a table of few states, where repeats are data, 150 rows that stand for 150,000 stay 150 rows."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (150, 4))).add_prefix("x")
    y = rng.integers(0, 2, 150)
    weights = rng.integers(900, 1100, 150)
    plain = AdditiveBayesClassifier().fit(X, y)
    often = AdditiveBayesClassifier().fit(X, y, sample_weight=weights)
    sampled = AdditiveBayesClassifier(weight_type="sampling").fit(X, y, sample_weight=weights)
    spread = [np.ptp(model.predict_proba(X)) for model in (plain, sampled, often)]
    assert spread[1] < spread[0] + 0.05 < spread[2]
    with pytest.raises(ValueError, match="weight_type"):
        AdditiveBayesClassifier(weight_type="rows").fit(X, y)


def test_fractions_of_copies_have_gaussian_terms():
    X, y = numbers(120, 3)
    weights = np.random.default_rng(0).choice([0.3, 1.0, 4.0], len(y))
    assert np.isfinite(loss(AdditiveBayesClassifier().fit(X, y, sample_weight=weights), numbers))


def test_rows_that_repeat_by_nature_are_data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (600, 4))).add_prefix("x")
    y = np.where(rng.random(600) < 0.8, X.x0 ^ X.x1, rng.integers(0, 2, 600))
    model = AdditiveBayesClassifier().fit(X, y)
    assert model.repeats_ == "data"
    same = pd.concat([X.x0] * 8, axis=1).set_axis([f"x{j}" for j in range(8)], axis=1)
    assert KikuchiBayesClassifier().fit(same, y).repeats_ == "data"


def test_dependent_columns_repeat_by_nature():
    """Twelve columns that follow one hidden state, as in votes: far more equal rows than independent columns would give."""
    rng = np.random.default_rng(1)
    hidden = rng.integers(0, 2, (500, 1))
    cells = np.where(rng.random((500, 12)) < 0.9, hidden, 1 - hidden)
    rows, weights = np.unique(np.column_stack([cells, rng.integers(0, 2, 500)]), axis=0, return_counts=True)
    assert weights.max() > 20
    found, repeats = weigh_repeats(rows[:, :-1], rows[:, -1], weights.astype(float))
    assert repeats == "data"
    np.testing.assert_array_equal(found, weights)


def test_a_sample_with_replacement_of_few_rows_is_copies():
    """Columns of so few states that equal rows could be chance, but all repeat equally often, as they never do by nature."""
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 3, (200, 6))
    drawn = np.bincount(rng.choice(200, 2000), minlength=200).astype(float)
    rows, first = np.unique(cells, axis=0, return_index=True)
    target = rng.integers(0, 2, len(rows))
    assert weigh_repeats(rows, target, drawn[first])[1] == "copies"
    uneven = np.random.default_rng(1).poisson(rng.gamma(0.5, 20, len(rows))) + 1.0
    assert weigh_repeats(rows, target, uneven)[1] == "data"
    often = np.unique(
        rng.integers(0, 3, (3000, 5)), axis=0, return_counts=True
    )  # all 243 cells, as often as chance has it
    assert weigh_repeats(often[0], np.zeros(len(often[0]), dtype=int), often[1].astype(float))[1] == "data"


def test_weights_of_copies_sum_to_the_effective_number_of_rows():
    rng = np.random.default_rng(0)
    cells, weights = (
        np.arange(60).reshape(-1, 1).repeat(3, axis=1) * [[1, 2, 3]] % 47,
        rng.integers(1, 9, 60).astype(float),
    )
    found, repeats = weigh_repeats(cells, np.zeros(60, dtype=int), weights)
    assert repeats == "data"  # the three columns are one
    found, repeats = weigh_repeats(rng.integers(0, 40, (60, 3)), np.zeros(60, dtype=int), weights)
    assert repeats == "copies"
    assert found.sum() == pytest.approx(weights.sum() ** 2 / (weights @ weights))
    assert found @ found / found.sum() == pytest.approx(1.0)


def test_copies_go_to_one_fold():
    rng = np.random.default_rng(0)
    target, weights = rng.integers(0, 2, 40), rng.uniform(0.5, 4, 40)
    colours = rng.integers(0, 2**60, 40).astype(np.uint64)
    parts = deal(target, weights, 4, colours, together=True)
    assert ((parts > 0).sum(axis=0) == 1).all()
    np.testing.assert_allclose(parts.sum(axis=0), weights)
    ones = np.ones(40)
    np.testing.assert_array_equal(deal(target, ones, 4, colours, True), deal(target, ones, 4, colours))
