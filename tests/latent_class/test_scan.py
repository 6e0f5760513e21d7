"""Searches that do not miss: where a scan over numbers of clusters begins, and where variational EMA goes from EM's solutions."""

import numpy as np
import pytest

from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.cluster_number import SCAN_STARTS, make_search, scan_clusters
from pgm_bma.latent_class.loop import (
    MIDDLE_UPDATES,
    SHORT_UPDATES,
    LatentClassSettings,
    draw,
    fit_latent_class,
    run_starts,
    soften,
)
from pgm_bma.latent_class.problem import PriorSettings, make_problem

WEAK_PRIOR = PriorSettings(0.1, 0.1, 0.1)


def overlapping(n_rows=80, n_columns=6, n_states=3, n_clusters=5):
    """Rows of a latent-class model with many optima."""
    rng = np.random.default_rng(3)
    tables = rng.dirichlet(np.ones(n_states), size=(n_columns, n_clusters))
    labels = rng.integers(0, n_clusters, n_rows)
    codes = [[rng.choice(n_states, p=table[c]) for c in labels] for table in tables]
    return np.asfortranarray(np.array(codes, dtype=np.int8).T), np.full(n_columns, n_states)


def a_search(**changes):
    codes, cards = overlapping()
    settings = LatentClassSettings(priors=WEAK_PRIOR, moves=True, **changes)
    return make_search(table_rows(codes, cards), settings, np.random.default_rng(0))


def test_a_scan_goes_on_from_splits_and_merges():
    rng = np.random.default_rng(3)
    tables = rng.dirichlet(np.full(3, 0.7), size=(8, 6))
    z = rng.integers(0, 6, 300)
    codes = np.column_stack([[rng.choice(3, p=tables[i, c]) for c in z] for i in range(8)]).astype(np.int8)
    keywords = {"priors": WEAK_PRIOR, "n_init": 3, "n_final": 2, "accelerate": True}
    plain, moved = (
        scan_clusters(
            table_rows(codes, np.full(8, 3)), range(1, 8), rng=np.random.default_rng(0), moves=moves, **keywords
        )
        for moves in (False, True)
    )
    gains = [b.log_likelihood - a.log_likelihood for a, b in zip(plain.path, moved.path)]
    assert min(gains) > -1e-3 and max(gains) > 1.0  # the same optimum, up to what `tol` leaves open, or a better one
    assert len(moved.fit.starts.finished) > 3


def test_crosses_take_clusters_of_two_solutions():
    search = a_search(n_init=4, n_final=4)
    fit = search.fit_number(4, [])
    scores = search.start_scores(fit)
    known = np.concatenate(fit.starts.theta[scores > -np.inf], axis=1)
    crosses = search.crosses(fit, np.random.default_rng(0))
    assert crosses
    for theta_c, tables in crosses:
        assert theta_c.sum() == pytest.approx(1)
        theta = np.concatenate([table.T for table in tables])
        assert theta.shape[1] == 4
        assert all((np.abs(known - cluster[:, None]).max(axis=0) == 0).any() for cluster in theta.T)
    better = search.improve(4, fit)
    assert search.start_scores(better).max() >= scores.max()
    assert len(better.starts.finished) > len(fit.starts.finished)


def test_a_scan_has_more_random_starts_and_keeps_all_of_them():
    search = a_search(n_init=5, n_final=2)
    one, two = search.fit_number(1, []), search.fit_number(2, [])
    assert len(one.starts.finished) == 5 and len(two.starts.finished) == SCAN_STARTS * 5
    assert two.starts.finished.sum() == 2  # the others stay in `starts_`, with their stage
    assert set(two.starts.n_iter[~two.starts.finished]) >= {8}


def test_a_weak_prior_keeps_clusters_that_a_strong_one_empties():
    rng = np.random.default_rng(0)
    codes = np.asfortranarray(rng.integers(0, 4, (60, 12)).astype(np.int8))
    problem = make_problem(table_rows(codes, np.full(12, 4)), 5, PriorSettings(1.0, 1.0, 1.0), None)
    tables = draw(problem, LatentClassSettings(), 20, rng)
    before = [part.copy() for part in tables]
    theta_c, theta = soften(problem, LatentClassSettings(), tables)
    plain = run_starts(problem, LatentClassSettings(max_iter=8), before)
    assert problem.log_likelihoods(theta_c, theta).mean() > plain.log_likelihood.mean() + 10
    np.testing.assert_allclose(np.add.reduceat(theta, np.arange(0, 48, 4), axis=1), 1)


def test_the_twin_goes_on_from_the_solution_of_em():
    """Its first update repeats the tables of EM's solution, whose expected logs it has not seen yet."""
    codes, cards = overlapping(300)
    em = fit_latent_class(
        table_rows(codes, cards), 5, rng=np.random.default_rng(0), priors=WEAK_PRIOR, n_init=4, tol=1e-9
    )
    given = {"init": (em.theta_c, em.tables), "n_init": 1, "averaging": "variational", "priors": WEAK_PRIOR}
    twin = fit_latent_class(table_rows(codes, cards), 5, **given)
    assert twin.converged and twin.n_iter > 5
    assert np.diff(twin.score_path).min() > -1e-9 * abs(twin.evidence_bound)  # rounding
    assert twin.evidence_bound > twin.score_path[0] + 1


def test_the_twin_finishes_the_starts_that_have_climbed_highest():
    codes, cards = overlapping(300)
    keywords = {"averaging": "variational", "init": "em", "priors": WEAK_PRIOR, "n_init": 20, "accelerate": True}
    starts = fit_latent_class(table_rows(codes, cards), 5, rng=np.random.default_rng(0), n_final=5, **keywords).starts
    n_updates = SHORT_UPDATES + MIDDLE_UPDATES
    reached = np.array([path[: n_updates + 1][-1] for path in starts.paths])
    assert starts.finished.sum() == 5 and starts.n_iter[~starts.finished].max() <= n_updates
    assert reached[starts.finished].min() >= reached[~starts.finished].max()
