"""Chains over short lists: what is left out, and that the correction gives the law of the long lists."""

import numpy as np
import pandas as pd
import pytest

from pgm_bma import OrderPosterior
from pgm_bma.orders import short_lists
from pgm_bma.orders.chains._relocation_kernels import arcs_within, new_replica, run_orders
from pgm_bma.orders.chains.gibbs import prepare_lists, run_gibbs
from pgm_bma.orders.families.family_table import choose, family_table, prune_table
from pgm_bma.orders.structure_average import WEIGHTINGS, state_edges
from pgm_bma.orders.sums import exact_orders
from tests.orders.test_family_lists import PRIORS, by_set, largest_loss, mixed_data

EVERYTHING = 1e-12  # share of lists that leave out nothing that matters


def long_lists(seed=0, n_rows=60, **prior):
    codes, cards = mixed_data(n_rows, seed)
    table = family_table(codes, cards, **prior)
    return table, prune_table(table, EVERYTHING)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_sets_left_out_have_at_most_the_share_of_their_best_subset(prior, share):
    _, lists = long_lists(**prior)
    short = choose(lists, short_lists.outweigh(lists, share))
    assert len(short.log_marginal) < len(lists.log_marginal)
    for child in range(7):
        full, kept = by_set(lists, child), by_set(short, child)
        charged = dict.fromkeys(full, 0.0)
        for z, score in full.items():
            if z not in kept:
                best = max((y for y in full if set(y) < set(z)), key=full.get)
                assert best in kept and full[best] > score
                charged[best] += np.exp(score - full[best])
        assert max(charged.values()) <= share + 1e-12  # rounding of sums
        assert largest_loss(full, kept) <= share + 1e-12


def test_arcs_given_an_order_are_those_of_the_table():
    _, lists = long_lists()
    prepared, rng = prepare_lists(lists), np.random.default_rng(0)
    for _ in range(5):
        order, arcs = rng.permutation(7), np.zeros((7, 7))
        arcs_within(new_replica(order.copy(), prepared), 0.5, prepared, arcs)
        expected = state_edges(lists, WEIGHTINGS["order"], order[None])[0]
        np.testing.assert_allclose(2 * arcs, expected, atol=1e-12)  # sums of 42 sets


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_correction_gives_the_exact_arcs(seed):
    table, lists = long_lists(seed, alpha=0.5, structure_prior="uniform")
    exact = exact_orders.edge_posterior(exact_orders.sum_over_orders(table))
    part = choose(lists, short_lists.outweigh(lists, 1.0))
    short, long = prepare_lists(part), prepare_lists(lists)
    rngs = [np.random.default_rng([seed, k]) for k in range(4)]
    starts = [rng.permutation(7) for rng in rngs]
    found = run_gibbs(run_orders, short, starts, rngs, n_kept=400, tol=1e-9, max_sweeps=1600, n_temperatures=1)
    right = short_lists.corrected(found, short, long, 30, 0.05)
    before, after = (np.abs(run.chains.means.mean(0) - exact).max() for run in (found, right))
    assert after < 0.02 < before  # 1600 orders read: standard errors up to .006, three of them
    assert right.states.shape == (4, 30, 7) and right.log_scores.shape == (4, 30)
    scores = [new_replica(order.copy(), long).logs.sum() for order in right.states[0]]
    np.testing.assert_allclose(right.log_scores[0], scores, atol=1e-9)


def test_lists_are_short_where_that_changes_little(monkeypatch):
    _, lists = long_lists(alpha=0.5, structure_prior="uniform")
    start, rng = np.arange(7), np.random.default_rng(0)
    monkeypatch.setattr(short_lists, "EVEN", 10.0)
    short, long, size = short_lists.choose_lists(lists, start, rng)
    assert len(short.weights) == size < len(long.weights) / 2 and len(long.weights) == len(lists.log_marginal)
    monkeypatch.setattr(short_lists, "EVEN", 0.0)  # every part has another law
    _, long, size = short_lists.choose_lists(lists, start, rng)
    assert long is None and size == len(lists.log_marginal)


def test_chains_over_short_lists_agree_with_exact_sums(monkeypatch):
    codes, _ = mixed_data(400)
    X = pd.DataFrame(codes, columns=list("abcdefg"))
    exact = OrderPosterior(method="exact", parameter_prior="consistent").fit(X).edge_posterior_.to_numpy()
    monkeypatch.setattr("pgm_bma.orders.structure_average.LONG", 0)
    fit = OrderPosterior(method="mcmc", parameter_prior="consistent", random_state=0).fit(X)
    assert fit.converged_ and np.abs(fit.edge_posterior_.to_numpy() - exact).max() < 0.05  # tol
    assert len(fit.orders_) == 4 * 30
