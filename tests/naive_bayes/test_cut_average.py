"""Averaged naive Bayes over all ways to cut a numeric column, against partitions that are written down."""

import warnings

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma import AveragedNaiveBayesClassifier
from pgm_bma.foundation.tables.cut_points import CUT_PRIORS
from tests.oracles.naive_bayes import column_over_partitions


def rows(seed, n_rows=25, n_bins=6, n_classes=3):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    bins = np.clip(rng.integers(0, n_bins, n_rows) + y * (seed % 2), 0, n_bins - 1)
    bins[:n_bins] = np.arange(n_bins)
    return bins, y


# pseudo-counts of a bin with the class and without: the mass of a column of two states, or what is given
PRIORS = {
    "consistent": ({}, lambda m: (2 / m, 6 / m)),
    "alpha": ({"alpha": 0.4}, lambda m: (0.8 / m, 2.4 / m)),
    "paper": ({"preset": "paper"}, lambda m: (2 / m, 2 / m)),
    "mass": ({"equivalent_sample_size": 2.0}, lambda m: (2 / (3 * m), 2 / m)),
}


@pytest.mark.parametrize(
    ("seed", "n_bins", "prior"), [(0, 6, "consistent"), (1, 6, "alpha"), (2, 2, "paper"), (3, 7, "mass")]
)
def test_equals_enumeration_of_partitions(seed, n_bins, prior):
    bins, y = rows(seed, n_bins=n_bins)
    parameters, alphas = PRIORS[prior]
    X = pd.DataFrame({"x": np.exp(bins + 0.5)})
    model = AveragedNaiveBayesClassifier(numeric="average", arc_prior=0.3, **parameters).fit(X, y)
    log_evidence, whole, cuts, tables = column_over_partitions(bins, y, n_bins, 3, alphas(n_bins), 0.3, CUT_PRIORS)
    np.testing.assert_allclose(model.arc_posterior_["x"], 1 - whole, rtol=1e-12)
    np.testing.assert_allclose(model.cut_posterior_["x"], cuts, rtol=1e-12)
    np.testing.assert_allclose(model._result.tables, tables, rtol=1e-11)
    alone = quietly(AveragedNaiveBayesClassifier(**parameters), pd.DataFrame({"z": ["a"] * len(y)}), y)
    np.testing.assert_allclose(model.log_evidence_ - alone.log_evidence_, log_evidence, rtol=1e-12)
    joint = model.class_probability_[:, None] * tables
    expected = (joint / joint.sum(axis=0)).T[bins]
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-11)


def test_two_bins_are_a_column_of_two_states():
    bins, y = rows(5, n_bins=2)
    cut = AveragedNaiveBayesClassifier(numeric="average").fit(pd.DataFrame({"x": bins + 0.5}), y)
    states = AveragedNaiveBayesClassifier().fit(pd.DataFrame({"x": bins}), y)
    np.testing.assert_allclose(cut.arc_posterior_, states.arc_posterior_, rtol=1e-12)
    np.testing.assert_allclose(cut._result.tables, states._result.tables, rtol=1e-12)
    np.testing.assert_allclose(cut.log_evidence_, states.log_evidence_, rtol=1e-12)


@pytest.mark.parametrize("arc_prior", [0.0, 1.0])
def test_arcs_that_are_impossible_or_certain(arc_prior):
    bins, y = rows(1, n_rows=60)
    model = AveragedNaiveBayesClassifier(numeric="average", arc_prior=arc_prior).fit(pd.DataFrame({"x": bins + 0.5}), y)
    assert model.arc_posterior_["x"] == pytest.approx(arc_prior, abs=1e-12)
    np.testing.assert_allclose(model._result.tables.sum(axis=1), 1, rtol=1e-12)
    assert (np.ptp(model._result.tables, axis=0).max() < 1e-12) == (arc_prior == 0)


def mixed(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = pd.DataFrame(
        {
            "useful": rng.normal(size=n) + 1.5 * y,
            "noise": rng.normal(size=n),
            "whole": rng.integers(0, 3, n),
            "text": np.where(rng.random(n) < 0.7, y, 1 - y).astype(str),
            "same": np.full(n, 0.5),
        }
    )
    X.loc[::17, "useful"] = np.nan
    return X, pd.Series(np.array(["no", "yes"])[y], name="answer")


def quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a column that is constant
        return model.fit(X, y)


def test_numbers_states_gaps_and_a_constant_together(tmp_path):
    X, y = mixed()
    model = quietly(AveragedNaiveBayesClassifier(numeric="average"), X, y)
    assert list(model.cut_posterior_) == ["useful", "noise", "same"] and len(model.cut_posterior_["same"]) == 0
    assert model.arc_posterior_["useful"] > 0.99 and model.arc_posterior_["noise"] < 0.2
    states = quietly(AveragedNaiveBayesClassifier(), X[["whole", "text"]], y)
    np.testing.assert_allclose(model.arc_posterior_[["whole", "text"]], states.arc_posterior_, rtol=1e-12)
    probability = model.predict_proba(X)
    rising = quietly(AveragedNaiveBayesClassifier(numeric="average"), X.assign(useful=np.exp(X["useful"])), y)
    moved = rising.predict_proba(X.assign(useful=np.exp(X["useful"])))
    np.testing.assert_allclose(moved, probability, rtol=1e-10)
    pgm_bma.save(model, tmp_path / "model.pgm")
    back = pgm_bma.load(tmp_path / "model.pgm")
    np.testing.assert_array_equal(back.predict_proba(X), probability)
    pd.testing.assert_series_equal(back.cut_posterior_["useful"], model.cut_posterior_["useful"])
    assert model.model_is_exact_ and model.model_.check_model()


def test_weights_are_repetitions():
    X, y = mixed(120)
    weights = np.random.default_rng(1).integers(0, 3, len(y))
    weights[:4] = 1
    repeated = np.repeat(np.arange(len(y)), weights)
    first = AveragedNaiveBayesClassifier(numeric="average")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first.fit(X, y, sample_weight=weights)
    second = quietly(AveragedNaiveBayesClassifier(numeric="average"), X.iloc[repeated], y.iloc[repeated])
    np.testing.assert_allclose(first.predict_proba(X), second.predict_proba(X), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_which_columns_are_numeric():
    X, y = mixed()
    with pytest.warns(UserWarning, match="MDLDiscretizer"):
        asked = AveragedNaiveBayesClassifier().fit(X, y)
    with pytest.raises(AttributeError, match="numeric='average'"):
        asked.cut_posterior_  # noqa: B018
    model = quietly(
        AveragedNaiveBayesClassifier(numeric="average", numeric_columns=["whole"], categorical_columns=["same"]), X, y
    )
    assert list(model.cut_posterior_) == ["useful", "noise", "whole"]
    with pytest.raises(ValueError, match="numeric_columns names 'absent'"):
        AveragedNaiveBayesClassifier(numeric="average", numeric_columns=["absent"]).fit(X, y)
    with pytest.raises(ValueError, match="numeric"):
        AveragedNaiveBayesClassifier(numeric="cut").fit(X, y)
    mdl = quietly(AveragedNaiveBayesClassifier(numeric="mdl"), X, y)
    np.testing.assert_allclose(mdl.predict_proba(X), asked.predict_proba(X), rtol=1e-12)
