"""A fit of many columns and one of a few of them become one fit, whose scores are the sum of theirs."""

import numpy as np
import pytest

from pgm_bma import AdditiveBayesClassifier
from pgm_bma.additive import fit as fitting
from pgm_bma.additive.model import additive_model, model_scores
from pgm_bma.additive.solve import OFF, RIDGED
from pgm_bma.additive.terms import additive_data
from tests.additive.test_additive import mixed


def some_fit(data, columns, kinds, share, **ridges):
    choice = fitting.Choice(-np.inf, [{**dict.fromkeys(kinds, 1.0), **ridges}], np.ones(1), None)
    return fitting._fit_points(data, kinds, choice, np.array(columns))[0].scaled(share)


@pytest.fixture(scope="module")
def data():
    X, y = mixed(120)
    X = X.assign(more=X["kind"].shift(), b2=X["b"] ** 2)
    y = np.where(X["c"].fillna(0) > 1.5, "far", y)  # three classes: weights have two directions
    training, values, _ = AdditiveBayesClassifier()._read_training(X, y, None)
    return additive_data(training, values, [name in ("a", "b", "c", "b2") for name in X])


@pytest.mark.parametrize(
    "kinds", [RIDGED, ("single", "linear", "gaussian")]
)  # all that the other has; much that it lacks
@pytest.mark.parametrize("few", [[0, 6], [1, 2, 5], [3, 4, 5], [0, 1, 2, 3, 4, 5, 6]])
def test_scores_are_the_sum(data, few, kinds):
    wide = some_fit(data, range(7), kinds, 0.3)
    narrow = some_fit(data, few, RIDGED, 0.6, gaussian=OFF)
    both = fitting.merged(wide, narrow)

    def scores(fit):
        return model_scores(additive_model([fit]), data.codes, data.values)

    assert np.abs(scores(narrow)).max() > 0.1
    np.testing.assert_allclose(scores(both), scores(wide) + scores(narrow), atol=1e-12)  # sums in another order
    assert both.share == pytest.approx(0.9)
    assert len(both.terms.sets) == len(both.terms.kinds) == len(both.weights.sets)
    assert set(both.errors) >= set(wide.errors)
