"""Records of parameters: scikit-learn's nested parameters, cloning and saving, without a shared record that changes."""

import dataclasses

import numpy as np
import pytest
from sklearn.base import clone

import pgm_bma
from pgm_bma import GibbsSampler, OrderAveragedClassifier, OrderPosterior, SwapSampler


def test_nested_parameters_replace_the_record_of_one_estimator():
    shared = GibbsSampler(tol=0.1)
    one, two = OrderPosterior(sampler=shared), OrderPosterior(sampler=shared)
    one.set_params(sampler__tol=0.2, sampler__n_chains=2)
    assert one.sampler == GibbsSampler(tol=0.2, n_chains=2) and two.sampler is shared and shared.tol == 0.1
    assert one.get_params()["sampler__tol"] == 0.2 and "sampler__tol" not in one.get_params(deep=False)
    one.set_params(sampler=SwapSampler(), sampler__thin=5)
    assert one.sampler == SwapSampler(thin=5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        shared.tol = 0.3
    with pytest.raises(ValueError, match="SwapSampler has no parameter 'tol'; it has n_orders, burn_in"):
        one.set_params(sampler__tol=0.1)
    with pytest.raises(ValueError, match="sampler=3 has no parameters; pass GibbsSampler"):
        OrderPosterior(sampler=3).set_params(sampler__tol=0.1)


def test_none_is_the_record_of_the_estimator():
    assert OrderPosterior().set_params(sampler__n_chains=2).sampler == GibbsSampler(n_chains=2)
    classifier = OrderAveragedClassifier().set_params(sampler__n_chains=2)
    assert classifier.sampler == GibbsSampler(tol=0.1, max_sweeps=1024, n_chains=2)
    assert OrderAveragedClassifier().sampler is None
    assert OrderAveragedClassifier().get_params()["sampler"] is None


def test_clones_files_and_what_is_shown(tmp_path):
    init = np.array([["a", "b"], ["b", "a"]])
    for sampler in (GibbsSampler(tol=0.2, init=init), SwapSampler(init=init, n_chains=2)):
        posterior = OrderPosterior(sampler=sampler)
        posterior.save(tmp_path / "posterior")
        for copy in (clone(posterior), pgm_bma.load(tmp_path / "posterior")):
            assert copy.sampler == sampler and hash(copy.sampler) == hash(sampler)
            np.testing.assert_array_equal(copy.sampler.init, init)
        assert posterior.sampler != type(sampler)()
    assert repr(OrderPosterior(sampler=SwapSampler(thin=5))) == "OrderPosterior(sampler=SwapSampler(thin=5))"
