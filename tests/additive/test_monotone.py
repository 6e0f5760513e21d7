"""`monotone`: the probability goes one way in a column, for every row, exactly."""

import json

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma import AdditiveBayesClassifier
from pgm_bma.additive.monotone import pooled
from tests.oracles import isotonic

ROUNDING = 1e-12  # of a softmax of sums of a hundred terms


def source(n, seed):
    """Numbers that depend on each other and interact, one that rises and falls, whole numbers, states, missing cells."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    x[:, 1] += x[:, 0]
    score = 2 * np.sin(2 * x[:, 2]) - x[:, 1] + 1.5 * x[:, 0] * x[:, 3]
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    x[rng.random(x.shape) < 0.02] = np.nan
    X = pd.DataFrame(x, columns=list("abcd"))
    return X.assign(whole=rng.integers(0, 4, n), state=rng.choice(list("uvw"), n)), y


def largest_step_back(model, X, name, sign, n_rows=25):
    """Largest fall (sign 1) or rise of P(this class or a later one) on the way up of a column, other cells being fixed."""
    rng, found = np.random.default_rng(5), -np.inf
    values = np.sort(np.concatenate([rng.normal(size=80) * 3, X[name].dropna()[:120], [-1e9, 1e9]]))
    for r in range(n_rows):
        rows = X.iloc[[r] * len(values)].assign(**{name: values})
        probability = model.predict_proba(rows)
        later = np.cumsum(probability[:, ::-1], axis=1)[:, :-1]
        found = max(found, (-sign * np.diff(later, axis=0)).max())
    return found


@pytest.mark.parametrize("n", [120, 1100])  # nine fits; one fit, and trees are asked for
def test_probabilities_never_turn(n):
    X, y = source(n, 0)
    others, _ = source(25, 1)
    signs = {"a": 1, "b": -1, "c": 1, "whole": 1}
    free = AdditiveBayesClassifier().fit(X, y)
    model = AdditiveBayesClassifier(monotone=signs).fit(X, y)
    for name, sign in signs.items():
        assert largest_step_back(model, others, name, sign) <= ROUNDING
    assert max(largest_step_back(free, others, name, signs[name]) for name in "abc") > 0.01
    assert not any(set(pair) & set(signs) for pair in model.pairs_)
    assert np.ptp(model.predict_proba(others), axis=0).min() > 0.1  # not by saying nothing


def test_of_more_classes_all_later_ones_together():
    X, y = source(400, 2)
    y = y + (X["a"] > 0.3).to_numpy()
    model = AdditiveBayesClassifier(n_bags=2, monotone={"a": 1, "c": -1}).fit(X, y)
    assert len(model.classes_) == 3
    for name, sign in {"a": 1, "c": -1}.items():
        assert largest_step_back(model, X, name, sign) <= ROUNDING


def test_pooling_is_the_nearest_curve():
    rng = np.random.default_rng(0)
    for n_classes, sign in ((2, 1), (2, -1), (4, 1)):
        curve, mass = rng.normal(size=(9, n_classes)), rng.random(9)
        found = pooled(curve, mass, sign)
        for c in range(n_classes - 1):
            wanted = sign * isotonic.rising(sign * (curve[:, c + 1] - curve[:, c]), mass)
            np.testing.assert_allclose(found[:, c + 1] - found[:, c], wanted, atol=1e-12)
    empty = pooled(np.array([[0.0, 0.0], [0.0, 5.0], [0.0, 1.0]]), np.array([1.0, 0.0, 1.0]), 1)
    np.testing.assert_allclose(
        np.diff(empty, axis=1)[:, 0], [0, 1, 1], atol=1e-6
    )  # a bin without rows follows the others


def test_a_rule_that_holds_costs_nothing():
    """Slopes alone: the law is true of them, so the loss of new rows stays (within the chance of 300 rows)."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(6300, 3)), columns=list("abc"))
    y = (rng.random(6300) < 1 / (1 + np.exp(-X["a"] + X["b"]))).astype(int)

    def loss(model):
        model.fit(X[:300], y[:300])
        return -np.log(model.predict_proba(X[300:])[np.arange(6000), y[300:]]).mean()

    assert loss(AdditiveBayesClassifier(monotone={"a": 1, "b": -1})) < loss(AdditiveBayesClassifier()) + 0.01
    assert loss(AdditiveBayesClassifier(monotone={"a": -1})) > 0.6  # a law that is wrong leaves the column out


def test_lines_add_up_and_files_keep_the_law(tmp_path):
    X, y = source(300, 4)
    model = AdditiveBayesClassifier(monotone={"a": 1}).fit(X, y)
    lines = model.explain(X[:10])
    np.testing.assert_allclose(lines.groupby(level=0, sort=False).sum(), model.log_scores(X[:10]), atol=1e-9)
    curve = model.term_curves().query("column == 'a'")
    assert (np.diff(curve[1] - curve[0]) >= -ROUNDING).all()
    wanted = model.predict_proba(X)
    pgm_bma.save(model, tmp_path / "model.pgm")
    np.testing.assert_array_equal(pgm_bma.load(tmp_path / "model.pgm").predict_proba(X), wanted)
    written = AdditiveBayesClassifier.from_dict(json.loads(json.dumps(model.to_dict())))
    np.testing.assert_allclose(written.predict_proba(X), wanted, atol=1e-12)


def test_wide_tables_keep_the_law():
    X, y = source(150, 6)
    noise = pd.DataFrame(np.random.default_rng(0).normal(size=(150, 60))).add_prefix("z")
    X = pd.concat([X, noise], axis=1)
    model = AdditiveBayesClassifier(n_bags=2, monotone={"b": 1, "z7": -1}).fit(X, y)
    for name, sign in {"b": 1, "z7": -1}.items():
        assert largest_step_back(model, X, name, sign, 5) <= ROUNDING


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"monotone": {"z": 1}}, "'z', which is not a column of X"),
        ({"monotone": {"a": 2}}, "must be 1 .* or -1"),
        ({"monotone": {"a": True}}, "must be 1 .* or -1"),
        ({"monotone": ["a"]}, "must be a dict"),
        ({"monotone": {"state": 1}}, "'state', which holds no numbers"),
        ({"monotone": {"whole": 1}, "categorical_columns": ["whole"]}, "'whole' is named in monotone and as"),
    ],
)
def test_mistakes_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        AdditiveBayesClassifier(**parameters).fit(*source(60, 0))


def test_the_order_of_classes_must_be_known():
    X, _ = source(60, 0)
    with pytest.raises(ValueError, match="code them as numbers"):
        AdditiveBayesClassifier(monotone={"a": 1}).fit(X, np.array(["low", "mid", "high"])[np.arange(60) % 3])
