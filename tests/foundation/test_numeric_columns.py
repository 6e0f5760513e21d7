"""What a column of numbers is to a classifier without `numeric=`: whole numbers, few or many, with and without a cut."""

import numpy as np
import pandas as pd
import pytest

import pgm_bma

CLASSIFIERS = ("NaiveBayesClassifier", "AveragedNaiveBayesClassifier", "TANClassifier", "ForestAveragedClassifier")
ALL = (*CLASSIFIERS, "FixedOrderClassifier", "OrderAveragedClassifier", "KikuchiBayesClassifier")


def people(n=200):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 90, n)
    X = pd.DataFrame({"age": age, "noise": rng.integers(0, 500, n), "grade": rng.integers(1, 6, n)})
    X["income"] = np.round(rng.normal(2000 + 10 * age, 100)) / 2
    return X, pd.Series(np.where(age + rng.normal(0, 5, n) > 50, "yes", "no"), name="retired")


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_many_whole_numbers_are_cut_where_a_cut_is_found(name):
    X, y = people()
    told = "numbers of columns 'age', 'income' were cut into intervals as MDLDiscretizer does.*other columns are states"
    with pytest.warns(UserWarning, match=told):
        model = getattr(pgm_bma, name)().fit(X, y)
    states = dict(zip(model.schema_.names, model.schema_.states))
    cut = pgm_bma.MDLDiscretizer().fit(X[["age", "income"]], y)
    assert len(states["age"]) == len(cut.cut_points_["age"]) + 1 <= 4
    assert list(states["grade"]) == [1, 2, 3, 4, 5]
    assert len(states["noise"]) == X["noise"].nunique()  # no cut is found: nothing is thrown away
    assert model.score(X, y) > 0.85


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.filterwarnings("error:numbers of")
def test_declared_states_and_categoricals_stay(name):
    X, y = people()
    X = X.drop(columns="income").assign(age=X["age"].astype("category"))
    model = getattr(pgm_bma, name)().fit(X, y)
    assert len(model.schema_.states[0]) == X["age"].nunique()
    declared = getattr(pgm_bma, name)(state_names={"age": list(range(18, 90))}).fit(
        X.assign(age=X["age"].astype(int)), y
    )
    assert len(declared.schema_.states[0]) == 72


@pytest.mark.filterwarnings("error:numbers of")
def test_weight_zero_and_presets():
    """A row of weight 0 brings no number; a preset of a paper takes whole numbers as states."""
    X, y = people()
    X = X[["age"]].where(X["age"] < 30, 18).astype(float)
    X.loc[0, "age"] = 18.5
    weights = np.ones(len(X))
    weights[0] = 0
    model = pgm_bma.NaiveBayesClassifier().fit(X, y, sample_weight=weights)
    assert len(model.schema_.states[0]) == X["age"][1:].nunique()
    X, y = people()
    paper = pgm_bma.AveragedNaiveBayesClassifier(preset="paper").fit(X[["age"]], y)
    assert len(paper.schema_.states[0]) == X["age"].nunique()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.filterwarnings("error:numbers of")
def test_columns_are_what_they_are_named(name):
    """Named columns are cut or kept without a warning: few whole numbers, many of them, and such that no cut is found for."""
    X, y = people()
    kind = getattr(pgm_bma, name)
    model = kind(numeric_columns=["age", "grade"], categorical_columns=["noise", "income"])
    X["grade"] = 1 + (X["age"] - 18) // 8
    X["income"] = X["income"].round(-3)
    model.fit(X, y)
    states = dict(zip(model.schema_.names, model.schema_.states))
    cut = pgm_bma.MDLDiscretizer().fit(X[["age", "grade"]], y)
    for column, points in cut.cut_points_.items():
        assert len(states[column]) == len(points) + 1
    assert len(states["noise"]) == X["noise"].nunique() and len(states["income"]) == X["income"].nunique()
    assert model.score(X, y) > 0.85
    for wrong, told in (
        ({"numeric_columns": ["size"]}, "names 'size'"),
        ({"categorical_columns": "age"}, "must be a list"),
    ):
        with pytest.raises(ValueError, match=told):
            kind(**wrong).fit(X, y)


@pytest.mark.filterwarnings("error:numbers of")
def test_a_named_column_without_a_cut_says_nothing():
    X, y = people()
    with pytest.warns(UserWarning, match="'noise' holds one value only"):
        model = pgm_bma.NaiveBayesClassifier(numeric_columns=["noise"]).fit(X[["noise", "grade"]], y)
    assert len(model.schema_.states[0]) == 1


def test_numbers_that_say_nothing_are_told_in_the_warning_about_cuts():
    """One cause, one warning: that a column has no cut is not a second one."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"good": rng.normal(size=200), "idle": rng.normal(size=200), "sex": rng.choice(["f", "m"], 200)})
    with pytest.warns(UserWarning) as caught:
        model = pgm_bma.TANClassifier().fit(X, (X["good"] > 0).to_numpy())
    (message,) = [str(warning.message) for warning in caught]
    assert message.startswith("numbers of columns 'good', 'idle' were cut") and "1 of them got no cut" in message
    assert [len(states) for states in model.schema_.states] == [2, 1, 2]
    assert "_cached_uncut" not in vars(model)
