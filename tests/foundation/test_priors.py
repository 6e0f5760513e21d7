"""Pseudo-counts: equal mass for the tables of a child, and the range in which computing is sound."""

import re

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.foundation.numbers.families import cell_pseudo_count


def test_tables_of_a_child_hold_equal_mass():
    q, r = np.array([1, 2, 3, 12]), 5
    consistent = cell_pseudo_count(q, r, 0.5, reference=3)
    np.testing.assert_allclose(consistent * q * r, 0.5 * 3 * r, rtol=1e-15)  # one division
    assert consistent[2] == 0.5  # the table with as many rows as the reference is the papers'
    assert cell_pseudo_count(q, r, 0.5, parameter_prior="paper", reference=3) == 0.5
    for prior in ("consistent", "paper"):  # BDeu overrides both
        spread = cell_pseudo_count(q, r, 1.0, 4.0, parameter_prior=prior, reference=3)
        np.testing.assert_allclose(spread * q * r, 4.0, rtol=1e-15)


@pytest.mark.parametrize("name", ["NaiveBayesClassifier", "AveragedNaiveBayesClassifier", "TANClassifier"])
@pytest.mark.parametrize("parameter", ["alpha", "equivalent_sample_size"])
def test_pseudo_counts_that_underflow_are_refused(name, parameter):
    X = np.random.default_rng(0).integers(0, 3, (30, 3))
    y = X[:, 0] % 2
    for value in (1e-320, 5e-324, 1e-150, 1e300):
        with pytest.raises(ValueError, match=re.escape(f"{parameter}={value!r} must be a number greater than 0")):
            getattr(pgm_bma, name)(**{parameter: value}).fit(X, y)
    for value in (1e-100, 1e100):
        assert np.isfinite(getattr(pgm_bma, name)(**{parameter: value}).fit(X, y).predict_proba(X)).all()


@pytest.mark.filterwarnings("ignore:.*starts? collapsed")  # the table shows no clusters
@pytest.mark.parametrize("name", ["LatentClassClusterer", "EMAClusterer"])
def test_clusterers_refuse_them_too(name):
    """EMA gave NaN for alpha=1e-320."""
    X = np.random.default_rng(0).integers(0, 3, (30, 3))
    cases = [{"alpha": 1e-320}, {"alpha": 1e300}, {"equivalent_sample_size": 1e-320}]
    if name == "EMAClusterer":
        cases.append({"alpha": {"cluster": 1e-320}})
    for case in cases:
        with pytest.raises(ValueError, match="where computing underflows"):
            getattr(pgm_bma, name)(2, n_init=2, random_state=0, **case).fit(X)
    for value in (1e-100, 1e100):
        fitted = getattr(pgm_bma, name)(2, alpha=value, n_init=2, random_state=0).fit(X)
        assert np.isfinite(fitted.predict_proba(X)).all()


def test_networks_refuse_them_too():
    from pgmpy.models import DiscreteBayesianNetwork

    frame = pd.DataFrame({"a": [0, 1, 1, None], "b": [0, 1, 0, 1]})
    for case in ({"alpha": 1e-320}, {"alpha": {"a": 1e300}}, {"equivalent_sample_size": 1e-320}):
        with pytest.raises(ValueError, match=r"alpha of 'a' must be 0 or between|where computing underflows"):
            pgm_bma.EMEstimator(**case, seed=0).fit(DiscreteBayesianNetwork([("a", "b")]), frame)
