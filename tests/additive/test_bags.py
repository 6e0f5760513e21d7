"""Several fits, each without a part of the rows: their scores are added, and how they differ gives errors."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq

from pgm_bma import AdditiveBayesClassifier
from pgm_bma.additive import fit as fitting
from pgm_bma.additive.model import additive_model, jackknife, model_scores
from tests.additive.test_additive import mixed


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"x": rng.normal(size=n), "z": rng.normal(size=n), "kind": rng.choice(list("abc"), n)})
    return X, np.where(X["x"] + (X["kind"] == "a") + rng.normal(size=n) > 0, "yes", "no")


def test_the_scores_are_half_of_all_rows_and_half_of_the_parts():
    """The parts are dealt anew here and fitted one by one; the factor is found by the zero of the slope of the loss."""
    X, y = table()
    terms = ("single", "pair", "linear", "state", "gaussian")
    model = AdditiveBayesClassifier(terms=terms, n_bags=4).fit(X, y)
    assert model.n_bags_ == 4 and len(model._result) == 5
    alone = AdditiveBayesClassifier(terms=terms, n_bags=1)
    alone.fit(X, y)
    data = {}

    def keep(found, kinds, n_bags, progress):
        data["all"], data["kinds"] = found, kinds
        return keep.old(found, kinds, n_bags, progress)

    keep.old = fitting.fit_additive
    from pgm_bma.additive import classifier

    classifier.fit_additive = keep
    try:
        alone.fit(X, y)
    finally:
        classifier.fit_additive = keep.old
    whole, kinds = data["all"], data["kinds"]
    parts = fitting.deal(whole.target, whole.weights, 4, fitting._colours(whole))
    np.testing.assert_array_equal(parts.sum(axis=0), whole.weights)  # every row is left out once
    rows, scores, held = model._encode(X), [], []
    for part in parts:
        (fit,) = fitting.fit_additive(whole.take(part == 0, whole.weights[part == 0]), kinds, 1)
        fit = fit.scaled(1 / fit.share)
        scores.append(model_scores(additive_model([fit]), rows.codes, rows.values))
        out = part > 0
        held.append((model_scores(additive_model([fit]), whole.codes[out], whole.values[out]), whole.target[out]))
    margins = np.concatenate([(s[:, 1] - s[:, 0]) * np.where(t == 1, 1, -1) for s, t in held])
    slope = lambda f: np.sum(-margins / (1 + np.exp(f * margins))) + 10 * (f - 1)  # noqa: E731
    factor = brentq(slope, 0.2, 2.5)
    assert model.shrinkage_ == pytest.approx(factor, rel=1e-6)
    expected = model.shrinkage_ * (alone.log_scores(X) / alone.shrinkage_ / 2 + np.mean(scores, axis=0) / 2)
    np.testing.assert_allclose(model.log_scores(X), expected, atol=1e-9)


def test_the_mean_of_fits_is_a_sum_of_terms():
    X, y = mixed(150)
    model = AdditiveBayesClassifier().fit(X, y)
    assert model.n_bags_ == fitting.N_BAGS and 0.1 < model.shrinkage_ < 2
    lines = model.explain(X)
    total = lines.groupby(level=0, sort=False).sum().to_numpy()
    np.testing.assert_allclose(total, model.log_scores(X), atol=1e-9)
    assert (model.term_weights_ != 0).all() and model.term_weights_.index.is_unique


def test_the_network_of_several_fits_predicts_as_the_model():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 3, (90, 3)).astype(str), columns=list("abc"))
    y = np.where(rng.random(90) < np.where(X["a"] == X["b"], 0.8, 0.2), "yes", "no")
    model = AdditiveBayesClassifier(terms=("single", "pair", "state", "cell"), n_bags=3).fit(X, y)
    states = [model.model_.get_cardinality(name) for name in "abc"]
    assert states == [3, 3, 3]
    product = model.model_.factors[0]
    for factor in model.model_.factors[1:]:
        product = product * factor
    for row, wanted in zip(X.to_numpy()[:5], model.predict_proba(X)[:5]):
        seen = product.reduce(list(zip("abc", row)), inplace=False)
        np.testing.assert_allclose(seen.values / seen.values.sum(), wanted, atol=1e-9)


def test_the_jackknife_of_a_mean_is_its_standard_error():
    """Means of all rows but one: the jackknife gives s / sqrt(n) exactly."""
    x = np.random.default_rng(0).normal(size=30)
    without = np.array([np.delete(x, i).mean() for i in range(30)])
    assert jackknife(without) == pytest.approx(x.std(ddof=1) / np.sqrt(30), rel=1e-12)


@pytest.mark.parametrize("n_bags", [1, 8])
def test_curves_have_errors_that_fall_with_the_rows(n_bags):
    few, many = (AdditiveBayesClassifier(n_bags=n_bags).fit(*table(n, 1)).term_curves() for n in (60, 960))
    errors = [curve.loc[curve["column"] == "x", "yes error"].to_numpy() for curve in (few, many)]
    assert np.isfinite(np.concatenate(errors)).all() and np.median(errors[1]) < np.median(errors[0])
    with pytest.raises(ValueError, match="n_bags=0"):
        AdditiveBayesClassifier(n_bags=0).fit(*table())


def test_many_rows_have_one_fit():
    model = AdditiveBayesClassifier().fit(*table(fitting.FEW_ROWS + 10))
    assert model.n_bags_ == 1 and 0.7 < model.shrinkage_ < 1.2  # the held-out rows of the ridges ask for little


def test_terms_that_are_removed_say_nothing_and_the_others_the_same():
    X, y = mixed(150)
    model = AdditiveBayesClassifier(n_bags=2).fit(X, y)
    pair = model.pairs_[0]
    fewer = model.remove_terms(["kind", pair, "(gaussian)"])
    whole, part = model.explain(X[:5]), fewer.explain(X[:5])
    gone = ["kind", ", ".join(pair), "(gaussian)"]
    stays = whole[~whole.index.get_level_values(1).isin(gone)]
    np.testing.assert_allclose(part[(part != 0).any(axis=1)], stays[(stays != 0).any(axis=1)], atol=1e-12)
    np.testing.assert_allclose(fewer.log_scores(X[:5]), stays.groupby(level=0, sort=False).sum(), atol=1e-10)
    assert pair not in fewer.pairs_ and pair in model.pairs_
    assert fewer.term_weights_.index.str.contains("kind (state", regex=False).sum() == 0
    for wrong in (["nothing"], [("a", "nothing")], "kind"):
        with pytest.raises(ValueError, match="terms"):
            model.remove_terms(wrong)
