"""Regions of four and more attributes: found at their level, judged as the definitions say, bounded in number."""

import numpy as np
import pandas as pd
import pytest

from pgm_bma import KikuchiBayesClassifier
from tests.oracles import kikuchi as oracle


def parity_of_four(n=400, n_noise=2):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (n, 4 + n_noise)), columns=list("abcdefgh")[: 4 + n_noise])
    return X, pd.Series(X[list("abcd")].sum(axis=1) % 2, name="parity")


def test_parity_of_four_columns_is_found_at_level_four_and_at_no_lower_one():
    X, y = parity_of_four()
    for level in (1, 2, 3, 4, 5):
        model = KikuchiBayesClassifier(level=level, significance_level=0.001).fit(X, y)
        held = [sorted(region - {"parity"}) for region in model.initial_regions_]
        assert (["a", "b", "c", "d"] in held) == (level >= 4)
        accuracy = model.score(X, y)
        assert accuracy == 1.0 if level >= 4 else accuracy < 0.65  # at chance, but for what chance gives 400 rows
    assert KikuchiBayesClassifier(level=99, significance_level=0.001).fit(X, y).tests_.level.max() == X.shape[1]


def test_every_focus_of_level_four_is_judged_by_enumeration():
    """Losses of all foci, given what the levels below took, and the scores of the whole model: literal definitions."""
    X, y = parity_of_four(n=60, n_noise=1)
    options = {"prior": "laplace", "weights": "counting", "significance_level": 0.2}
    model = KikuchiBayesClassifier(level=4, **options).fit(X, y)
    below = KikuchiBayesClassifier(level=3, **options).fit(X, y)
    rows = np.column_stack([X, y]).tolist()
    place = {name: k for k, name in enumerate([*X.columns, "parity"])}
    numbers = [[place[name] for name in region] for region in below.initial_regions_]
    tested = model.tests_.query("level == 4")
    assert len(tested) == 5
    for region, found in zip(tested.region, tested.loss):
        assert found == pytest.approx(oracle.loss(rows, [2] * 6, numbers, [place[n] for n in region], 5), abs=1e-12)
    assert (tested.taken == (tested.p < 0.2)).all() and tested.taken.any()
    final = [[place[name] for name in region] for region in model.initial_regions_]
    for row in rows[:10]:
        expected = oracle.log_scores(rows, [2] * 6, [frozenset(r) for r in final], 5, row[:5])
        np.testing.assert_allclose(
            model.predict_proba(X.iloc[[rows.index(row)]])[0], oracle.normalise(expected), atol=1e-10
        )


def test_of_too_many_foci_those_above_the_level_below_are_tested(monkeypatch):
    X, y = parity_of_four(n=300, n_noise=4)
    y = (y + 2 * (X[list("efg")].sum(axis=1) % 2)).rename("sum")  # parities of four and of three
    monkeypatch.setattr("pgm_bma.kikuchi.selection._MAX_CANDIDATES", 56)  # all triples of eight, 28 sets of four
    with pytest.warns(UserWarning, match="level 4 with 8 columns means 70 groups .limit 28.: only those are tested"):
        model = KikuchiBayesClassifier(level=4, significance_level=0.001).fit(X, y)
    taken = {region - {"sum"} for region in model.tests_.query("level == 3 and taken").region}
    larger = {region - {"sum"} for region in model.tests_.query("level == 4").region}
    assert taken and larger == {s | {a} for s in taken for a in X.columns if a not in s}


def test_levels_that_take_minutes_are_refused_before_a_row_is_counted(monkeypatch):
    """100,000 rows of 500 columns with 100 states ran for minutes."""
    X = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (60, 40))).add_prefix("x")
    y = pd.Series(np.arange(60) % 2, name="class")
    monkeypatch.setattr("pgm_bma.kikuchi.selection._MAX_TESTED", 6000.0)
    with pytest.raises(ValueError, match=r"tests 780 groups .* have 6.2e\+03 cells \(limit 6e\+03\).*merge rare"):
        KikuchiBayesClassifier().fit(X, y)
    monkeypatch.setattr("pgm_bma.kikuchi.selection._MAX_COUNTED", 40_000.0)
    with pytest.raises(
        ValueError, match=r"counts 780 groups of columns in 60 rows \(limit of the product 4e\+04\): take a"
    ):
        KikuchiBayesClassifier().fit(X, y)
