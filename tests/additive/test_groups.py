"""`groups`: rows that belong together are held out together."""

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.model_selection import GroupKFold, cross_validate

from pgm_bma import AdditiveBayesClassifier
from pgm_bma.foundation.numbers.folds import deal_groups


def patients(n_patients, seed, n_visits=10):
    """Each patient has one class and ten visits with nearly the same numbers, of which only the first says something."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_patients)
    own = rng.normal(size=(n_patients, 5))
    own[:, 0] += y
    groups = np.repeat(np.arange(n_patients), n_visits)
    x = own[groups] + 0.05 * rng.normal(size=(len(groups), 5))
    return pd.DataFrame(x).add_prefix("x"), y[groups], groups


def loss(model, X, y):
    return -np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()


def test_visits_of_a_patient_do_not_vouch_for_each_other():
    X, y, groups = patients(40, 0)
    held = patients(2000, 1, 1)[:2]
    alone = loss(AdditiveBayesClassifier().fit(X, y), *held)
    together = loss(AdditiveBayesClassifier().fit(X, y, groups=groups), *held)
    assert together < alone - 0.2
    assert together < 0.75  # one half is 0.69


def test_groups_tell_copies_from_data():
    """A sample with replacement: with the drawn row as its group a fit is hardly worse than that of the rows once."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 3, (2100, 6)).astype(str)).add_prefix("x")
    y = ((X["x0"] == X["x1"]) ^ (rng.random(2100) < 0.2)).astype(int).to_numpy()
    rows = rng.choice(100, 800)
    once = loss(AdditiveBayesClassifier().fit(X[:100], y[:100]), X[100:], y[100:])
    model = AdditiveBayesClassifier().fit(X.iloc[rows], y[rows], groups=rows)
    assert model.repeats_ == "copies"
    assert loss(model, X[100:], y[100:]) < once + 0.06  # draws weigh the 100 rows unevenly, which costs some of them
    apart = AdditiveBayesClassifier().fit(X.iloc[rows], y[rows], groups=np.arange(800))
    assert apart.repeats_ == "none"  # of so many groups each row is data


def test_names_and_order_of_groups_and_rows_do_not_matter():
    X, y, groups = patients(24, 2, 4)
    wanted = AdditiveBayesClassifier(n_bags=2).fit(X, y, groups=groups).predict_proba(X)
    order = np.random.default_rng(0).permutation(len(y))
    names = np.array([f"p{k * 7 % 24}" for k in range(24)])[groups]
    model = AdditiveBayesClassifier(n_bags=2).fit(X.iloc[order], y[order], groups=names[order])
    np.testing.assert_allclose(model.predict_proba(X), wanted, atol=1e-9)


def test_a_group_is_in_one_fold():
    rng = np.random.default_rng(0)
    groups, target, weights = rng.integers(0, 30, 200), rng.integers(0, 3, 200), rng.random(200)
    colours = rng.integers(0, 2**60, 200).astype(np.uint64)
    parts = deal_groups(target, weights, groups, 4, colours)
    np.testing.assert_allclose(parts.sum(axis=0), weights)
    for group in np.unique(groups):
        assert (parts[:, groups == group] > 0).any(axis=1).sum() == 1
    assert parts.sum(axis=1).max() < 2 * parts.sum(axis=1).min()
    assert len(deal_groups(target, weights, groups % 3, 8, colours)) == 3  # no fold is empty


def test_few_groups_make_few_fits():
    X, y, groups = patients(40, 3, 4)
    model = AdditiveBayesClassifier().fit(X, y, groups=groups % 3)
    assert model.n_bags_ == 3
    np.testing.assert_allclose(sum(fit.share for fit in model._result), model.shrinkage_)


def test_scikit_learn_hands_groups_on():
    X, y, groups = patients(20, 4, 4)
    with config_context(enable_metadata_routing=True):
        model = AdditiveBayesClassifier(n_bags=1).set_fit_request(groups=True)
        found = cross_validate(
            model, X, y, cv=GroupKFold(2), params={"groups": groups}, scoring="neg_log_loss", return_estimator=True
        )
    train, _ = next(GroupKFold(2).split(X, y, groups))
    wanted = AdditiveBayesClassifier(n_bags=1).fit(X.iloc[train], y[train], groups=groups[train]).predict_proba(X)
    np.testing.assert_array_equal(found["estimator"][0].predict_proba(X), wanted)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (np.zeros(40), "one group only"),
        (np.arange(39), "one value for each of the 40 rows"),
        ([None, *range(39)], "missing in row 0"),
    ],
)
def test_mistakes_are_named(groups, message):
    X, y, _ = patients(10, 0, 4)
    with pytest.raises(ValueError, match=message):
        AdditiveBayesClassifier().fit(X, y, groups=groups)


def test_rows_of_weight_zero_have_no_group():
    X, y, groups = patients(20, 5, 4)
    weights = np.where(groups < 15, 1.0, 0.0)
    wanted = AdditiveBayesClassifier(n_bags=2).fit(X[groups < 15], y[groups < 15], groups=groups[groups < 15])
    found = AdditiveBayesClassifier(n_bags=2).fit(X, y, sample_weight=weights, groups=groups)
    np.testing.assert_array_equal(found.predict_proba(X), wanted.predict_proba(X))
