"""`explain`: one row and many, log evidence and log odds, for every estimator that has it."""

import numpy as np
import pandas as pd
import pytest

import pgm_bma

CLASSIFIERS = {
    "naive": lambda: pgm_bma.AveragedNaiveBayesClassifier(),
    "tan": lambda: pgm_bma.TANClassifier(),
    "forest": lambda: pgm_bma.ForestAveragedClassifier(),
    "orders": lambda: pgm_bma.OrderAveragedClassifier(method="exact"),
    "additive": lambda: pgm_bma.AdditiveBayesClassifier(),
    "kikuchi": lambda: pgm_bma.KikuchiBayesClassifier(),
}
CLUSTERERS = {
    "ema": lambda: pgm_bma.EMAClusterer(3, n_init=2, random_state=0),
    "structural": lambda: pgm_bma.StructuralEMClusterer(3, n_init=2, random_state=0),
    "forest clusters": lambda: pgm_bma.ForestAveragedClusterer(3, n_init=2, random_state=0),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 3, 120)
    X = pd.DataFrame({name: np.where(rng.random(120) < 0.7, y, rng.integers(0, 3, 120)) for name in "abcd"}, dtype=str)
    X.index = [f"r{i}" for i in range(120)]
    return X, pd.Series(np.array(["low", "mid", "top"])[y], index=X.index, name="level")


@pytest.fixture(scope="module")
def fitted(rows):
    X, y = rows
    models = {name: make().fit(X, y) for name, make in CLASSIFIERS.items()}
    return {**models, **{name: make().fit(X) for name, make in CLUSTERERS.items()}}


@pytest.mark.parametrize("name", [*CLASSIFIERS, *CLUSTERERS])
def test_many_rows_are_each_row_by_itself(fitted, rows, name):
    model, X = fitted[name], rows[0].iloc[:7]
    many = model.explain(X)
    assert many.index.names == ["row", "term"] and list(many.index.levels[0]) == sorted(X.index)
    for label, row in X.iterrows():
        pd.testing.assert_frame_equal(many.loc[label], model.explain(row), check_names=False)
    # sums are log joints: their softmax is predict_proba
    sums = many.groupby(level=0, sort=False).sum().to_numpy()
    proba = np.exp(sums - sums.max(1, keepdims=True))
    np.testing.assert_allclose(proba / proba.sum(1, keepdims=True), model.predict_proba(X), rtol=1e-9)  # float order
    with pytest.warns(UserWarning, match="feature names"):
        np.testing.assert_array_equal(model.explain(X.to_numpy()).to_numpy(), many.to_numpy())


@pytest.mark.parametrize("name", [*CLASSIFIERS, *CLUSTERERS])
def test_log_odds_are_differences_whose_sum_is_the_log_odds(fitted, rows, name):
    model, X = fitted[name], rows[0].iloc[:5]
    a, b = ("top", "low") if name in CLASSIFIERS else (2, 0)
    odds = model.explain(X, log_odds=(a, b))
    assert list(odds.index) == list(X.index)
    proba = model.predict_proba(X)
    names = list(getattr(model, "classes_", range(3)))
    wanted = np.log(proba[:, names.index(a)] / proba[:, names.index(b)])
    np.testing.assert_allclose(odds.sum(axis=1), wanted, atol=1e-8)  # logs of rounded probabilities
    one = model.explain(X.iloc[2], log_odds=(a, b))
    np.testing.assert_array_equal(one, odds.iloc[2])
    assert one.name == f"log odds of {a} against {b}"


def test_a_table_of_one_row_is_one_row_and_no_rows_are_no_lines(fitted, rows):
    model, X = fitted["naive"], rows[0]
    pd.testing.assert_frame_equal(model.explain(X.iloc[[3]]), model.explain(X.iloc[3]))
    assert model.explain(X.iloc[:0]).shape == (0, 3) and model.explain(X.iloc[:0], log_odds=("top", "low")).shape == (
        0,
        5,
    )
    assert list(model.explain([dict(X.iloc[0]), X.iloc[1]]).index.levels[1]) == ["(prior)", "a", "b", "c", "d"]


def test_impossible_under_both_classes_says_nothing(rows):
    X = rows[0]
    declared = {"a": ["0", "1", "2", "never"]}
    model = pgm_bma.LatentClassClusterer(2, alpha=0, n_init=1, random_state=0, state_names=declared).fit(X)
    odds = model.explain({**X.iloc[0], "a": "never"}, log_odds=(0, 1))
    assert odds["a"] == 0.0 and np.isneginf(model.explain({**X.iloc[0], "a": "never"}).loc["a"]).all()


def test_mistakes_name_the_cure(fitted, rows):
    model, X = fitted["naive"], rows[0]
    with pytest.raises(ValueError, match="'high', which is not one of the classes 'low', 'mid', 'top'"):
        model.explain(X, log_odds=("high", "low"))
    with pytest.raises(ValueError, match="name two of the classes"):
        model.explain(X, log_odds="high")
    with pytest.raises(ValueError, match="the row has 2 values for the 4 columns"):
        model.explain(["0", "1"])
