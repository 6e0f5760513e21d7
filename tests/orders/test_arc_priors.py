"""Opinions about arcs: log odds that are added to the structure prior."""

from math import comb, log

import numpy as np
import pandas as pd
import pytest

from pgm_bma import GibbsSampler, OrderPosterior
from pgm_bma.orders.families.family_table import family_table, grow_lists, prune_table, size_priors
from tests.oracles.causal import Experiment
from tests.orders.test_interventions import FREE, NAMES, each_weighting, experiment, frame_of, numbers

GIVEN = {("a", "b"): 0.9, ("b", "a"): 0.1, ("d", "c"): 0.75}


def odds_of(given):
    odds = np.zeros((4, 4))
    for (parent, child), p in given.items():
        odds[NAMES.index(parent), NAMES.index(child)] = log(p / (1 - p))
    return odds


@each_weighting
def test_arcs_equal_enumeration(weighting):
    codes, cards, targets = experiment(4, n_rows=30)
    truth = Experiment(codes.tolist(), cards, numbers(targets), weighting, odds=odds_of(GIVEN).tolist())
    matrix = pd.DataFrame(np.nan, index=NAMES, columns=NAMES)
    for arc, p in GIVEN.items():
        matrix.loc[arc] = p
    settings = {**FREE, "structure_weighting": weighting}
    for given in (GIVEN, matrix):
        posterior = OrderPosterior(**settings, arc_prior=given).fit(frame_of(codes, cards), interventions=targets)
        np.testing.assert_allclose(posterior.edge_posterior_, truth.arcs(), atol=1e-9)
    chains = OrderPosterior(**settings, arc_prior=GIVEN, method="mcmc", sampler=GibbsSampler(tol=0.02))
    chains.fit(frame_of(codes, cards), interventions=targets)
    np.testing.assert_allclose(chains.edge_posterior_, truth.arcs(), atol=0.04)


@pytest.mark.parametrize("p", [0.5, 0.2])
def test_one_number_for_all_arcs(p):
    codes, cards, targets = experiment(5, n_rows=30)
    every = {(a, b): p for a in NAMES for b in NAMES if a != b}
    truth = Experiment(codes.tolist(), cards, numbers(targets), "order", odds=odds_of(every).tolist())
    posterior = OrderPosterior(**FREE, arc_prior=p).fit(frame_of(codes, cards), interventions=targets)
    np.testing.assert_allclose(posterior.edge_posterior_, truth.arcs(), atol=1e-9)
    if p == 0.5:
        plain = OrderPosterior(**FREE).fit(frame_of(codes, cards), interventions=targets)
        np.testing.assert_array_equal(posterior.edge_posterior_, plain.edge_posterior_)


@pytest.mark.parametrize("required", [[], [(2, 1)]])
def test_grown_lists_have_the_scores_of_the_full_table(required):
    codes, cards, _ = experiment(6)
    odds = np.random.default_rng(0).normal(size=(4, 4))
    both = [
        prune_table(family_table(codes, cards, odds=odds, required=required), 1e-9),
        grow_lists(codes, cards, odds=odds, required=required, eps=1e-9),
    ]
    scores = [
        {
            (child, tuple(sorted(lists.sets[k]))): (lists.log_marginal[k], lists.log_prior[k])
            for child in range(4)
            for k in range(lists.offsets[child], lists.offsets[child + 1])
        }
        for lists in both
    ]
    assert scores[0].keys() == scores[1].keys()
    np.testing.assert_allclose([scores[1][key] for key in scores[0]], list(scores[0].values()), atol=1e-9)


def test_missing_values_are_sampled_under_the_same_opinions():
    codes, cards, _ = experiment(4, n_rows=60)
    X = frame_of(codes, cards).astype(object)
    X.loc[::9, "b"] = None
    sampler = GibbsSampler(max_sweeps=320)
    arcs = [
        OrderPosterior(random_state=0, sampler=sampler, arc_prior={("d", "a"): p}).fit(X).edge_posterior_.loc["d", "a"]
        for p in (0.01, 0.99)
    ]
    assert arcs[1] > arcs[0] + 0.1


def test_fair_priors():
    np.testing.assert_array_equal(size_priors(5, 3, "fair"), size_priors(5, 3, "friedman_koller"))
    want = [-log(comb(4, k) * (k + 1) ** 2) for k in range(4)]
    np.testing.assert_allclose(size_priors(5, 3, "fair+"), want, atol=1e-12)
    codes, cards, _ = experiment()
    both = [
        OrderPosterior(structure_prior=prior).fit(frame_of(codes, cards)).edge_posterior_
        for prior in ("fair", "friedman_koller")
    ]
    np.testing.assert_array_equal(*both)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (1.0, "required_arcs"),
        ("high", "probability between 0 and 1"),
        ({("a", "z"): 0.5}, "'z', which is not a variable"),
        ({("a", "b"): 0}, "arc_prior of 'a' -> 'b' is 0"),
        ({("a", "a"): 0.5}, "loop"),
        ({"a": 0.5}, "pairs"),
    ],
)
def test_errors_name_the_arc(given, words):
    codes, cards, _ = experiment()
    with pytest.raises(ValueError, match=words):
        OrderPosterior(arc_prior=given).fit(frame_of(codes, cards))
