"""Averages of starts against a literal computation, and splits and merges of a scan on many small tables."""

from itertools import permutations
from math import exp

import numpy as np
import pytest

from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.cluster_number import make_search
from pgm_bma.latent_class.loop import LatentClassSettings, fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings
from tests.oracles import ema as oracle


def small_table(seed, n_rows=40, n_columns=4, n_clusters=3):
    """Rows of a latent-class model, and the cardinalities."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, n_columns)
    labels = rng.integers(0, n_clusters, n_rows)
    tables = [rng.dirichlet(np.full(r, 0.6), n_clusters) for r in cards]
    codes = np.column_stack([[rng.choice(r, p=t[c]) for c in labels] for r, t in zip(cards, tables)])
    codes[:3] = np.arange(3)[:, None] % cards  # every state occurs
    return np.asfortranarray(codes.astype(np.int8)), cards


def by_column(theta, cards):
    """theta[i][j][k] of the oracle from (n_states, n_clusters)."""
    return [part.T.tolist() for part in np.split(theta, np.cumsum(cards)[:-1])]


@pytest.mark.parametrize("rule", ["uniform", "likelihood"])
@pytest.mark.parametrize("averaging", [None, "linear"])
def test_averages_of_starts_are_literal(rule, averaging):
    """EMA's policies: weights of the starts, clusters by the best of all permutations, mean of the parameters."""
    moved = 0
    for seed in range(4):
        codes, cards = small_table(seed)
        settings = {
            "averaging": averaging,
            "n_init": 5,
            "max_iter": 8,
            "collapse": "ignore",
        }  # starts that still differ
        fit = fit_latent_class(
            table_rows(codes, cards), 3, rng=np.random.default_rng(seed), combine_starts=rule, **settings
        )
        models = [(c.tolist(), by_column(t, cards)) for c, t in zip(fit.starts.theta_c, fit.starts.theta)]
        X = codes.tolist()
        likelihoods = [oracle.log_likelihood(X, *model) for model in models]
        best = likelihoods.index(max(likelihoods))
        weights = [1.0 if rule == "uniform" else exp(value - max(likelihoods)) for value in likelihoods]
        weights = [w / sum(weights) for w in weights]
        reference = oracle.responsibilities(X, *models[best])
        theta_c, theta = np.zeros(3), np.zeros((cards.sum(), 3))
        for weight, model, start_c, start in zip(weights, models, fit.starts.theta_c, fit.starts.theta):
            own = oracle.responsibilities(X, *model)
            overlap = {
                order: sum(r[k] * o[order[k]] for r, o in zip(reference, own) for k in range(3))
                for order in permutations(range(3))
            }
            order = list(max(overlap, key=overlap.get))
            moved += order != [0, 1, 2]
            theta_c += weight * start_c[order]
            theta += weight * start[:, order]
        falling = np.argsort(-theta_c)
        np.testing.assert_allclose(fit.weights, weights, atol=1e-9)
        np.testing.assert_allclose(fit.theta_c, theta_c[falling], atol=1e-9)
        np.testing.assert_allclose(fit.theta, theta[:, falling], atol=1e-9)
    assert moved > 5  # labels did differ


def test_no_split_falls_below_the_fit_it_came_from():
    """50 tables. A cluster's rows are fitted as well by two clusters as by one, and what one cluster gains the mixture gains
    (EM's inequality). It is one of likelihoods: the prior is next to nothing."""
    nothing = PriorSettings(1e-6, 1e-6, 1e-6)
    n_splits, gains = 0, []
    for seed in range(50):
        codes, cards = small_table(seed)
        settings = LatentClassSettings(priors=nothing, n_init=2, n_final=1, moves=True, collapse="ignore", tol=1e-8)
        search = make_search(table_rows(codes, cards), settings, np.random.default_rng(seed))
        fit = fit_latent_class(table_rows(codes, cards), 2, settings, rng=np.random.default_rng(seed))
        X = codes.tolist()
        for theta_c, tables in search.splits(fit, 3):
            after = oracle.log_likelihood(X, theta_c.tolist(), [t.tolist() for t in tables])
            assert after >= fit.log_likelihood - 1e-3  # what tol = 1e-3 of the fit inside the cluster leaves open
            n_splits, gains = n_splits + 1, [*gains, after - fit.log_likelihood]
    assert n_splits > 50 and np.median(gains) > 0.5


@pytest.mark.parametrize("averaging", [None, "variational"])
def test_moves_never_lower_the_best_start_of_a_number(averaging):
    """Splits on the way up, merges on the way down: at every number the best start is no worse than before they were tried."""
    for seed in range(6):
        codes, cards = small_table(seed)
        settings = LatentClassSettings(averaging, PriorSettings(0.1, 0.1, 0.1), n_init=2, moves=True)
        search = make_search(table_rows(codes, cards), settings, np.random.default_rng(seed))
        fits = {k: search.fit_number(k, []) for k in (1, 2, 3)}
        for k, other, tables in (
            (2, 1, search.splits),
            (3, 2, search.splits),
            (2, 3, search.merges),
            (1, 2, search.merges),
        ):
            moved = search.fit_number(k, tables(fits[other], k), fits[k])
            n_before = len(fits[k].starts.finished)
            assert np.array_equal(moved.starts.theta_c[:n_before], fits[k].starts.theta_c)
            assert search.start_scores(moved).max() >= search.start_scores(fits[k]).max()
            if averaging is None:
                assert moved.log_likelihood == pytest.approx(search.start_scores(moved).max(), abs=1e-9)
