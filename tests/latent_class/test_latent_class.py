"""EM, EMA and variational EMA: kernels against plain twins, steps against enumeration, objectives that climb."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln, logsumexp

from pgm_bma.foundation.numbers import _kernels as special
from pgm_bma.foundation.numbers.families import average_families, log_marginal_likelihood, posterior_mean
from pgm_bma.foundation.numbers.starts import start_weights
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.cluster_number import scan_clusters
from pgm_bma.latent_class.loop import ALIKE, BATCH, MIDDLE_UPDATES, SHORT_UPDATES, draw_starts, fit_latent_class
from pgm_bma.latent_class.problem import (
    PriorSettings,
    cluster_dependence,
    flatten,
    log_joint,
    make_problem,
    split_tables,
)
from tests.oracles import ema as oracle

AVERAGING = (None, "linear", "variational")
ROUNDING = 1e-9  # sums of a few hundred doubles, logarithms included


def random_case(seed, n_rows=12, cards=(2, 3, 2), n_clusters=2, missing=0.15):
    """Codes with holes, cardinalities, and start tables."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, r, n_rows) for r in cards])
    codes[rng.random(codes.shape) < missing] = -1
    theta_c = rng.dirichlet(np.ones(n_clusters))
    tables = [rng.dirichlet(np.ones(r), size=n_clusters) for r in cards]
    return np.asfortranarray(codes.astype(np.int8)), np.array(cards), theta_c, tables


def clustered(seed, n_rows=300, n_clusters=3, n_columns=8, n_states=3, sharpness=0.3):
    """Rows with clear clusters."""
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(n_states, sharpness), size=(n_columns, n_clusters))
    labels = rng.integers(0, n_clusters, n_rows)
    uniform = rng.random((n_rows, n_columns))
    codes = (uniform[:, :, None] > np.cumsum(tables, axis=2)[:, labels].transpose(1, 0, 2)[:, :, :-1]).sum(axis=2)
    return np.asfortranarray(codes.astype(np.int8)), np.full(n_columns, n_states), labels


def plain_expectation(codes, weights, theta_c, tables):
    """Twin of the kernel in plain numpy and logs: class counts, counts per column, log-likelihood."""
    log_p = np.tile(np.log(theta_c), (len(codes), 1))
    for i, table in enumerate(tables):
        seen = codes[:, i] >= 0
        log_p[seen] += np.log(table)[:, codes[seen, i]].T
    log_norm = logsumexp(log_p, axis=1)
    r = np.exp(log_p - log_norm[:, None]) * weights[:, None]
    counts = [
        np.array([[r[codes[:, i] == s, k].sum() for s in range(table.shape[1])] for k in range(len(theta_c))])
        for i, table in enumerate(tables)
    ]
    return r.sum(axis=0), counts, weights @ log_norm


# ------------------------------------------------------------------------------------------------------ kernels


@pytest.mark.parametrize(
    "n_rows, cards, n_clusters",
    [(200, (2,) * 12, 4), (300, (3, 2, 5, 2, 2, 4), 3), (7, (2, 3), 2), (400, (300, 2), 2), (150, (2, 1, 3), 1)],
)
def test_expectation_kernel_equals_its_plain_twin(n_rows, cards, n_clusters):
    codes, cards, theta_c, tables = random_case(n_rows, n_rows, cards, n_clusters)
    codes = np.asfortranarray(np.where(codes < 0, -1, np.abs(codes.astype(int)) % cards).astype(np.int16))
    weights = np.random.default_rng(0).integers(1, 4, n_rows).astype(float)
    problem = make_problem(table_rows(codes, cards, weights), n_clusters)
    class_counts, counts, total = problem.expected_counts(*flatten(theta_c, tables))
    want_class, want_counts, want_total = plain_expectation(codes, weights, theta_c, tables)
    np.testing.assert_allclose(class_counts, want_class, rtol=1e-12)
    for found, want in zip(split_tables(counts, problem.layout.state_start), want_counts):
        np.testing.assert_allclose(found, want, atol=1e-11)
    np.testing.assert_allclose(total, want_total, rtol=1e-12)


def test_wide_rows_do_not_underflow():
    """4000 columns: the product is far below the smallest double, and the two halves pull a row apart by 2000 nats."""
    rng = np.random.default_rng(1)
    n = 4000
    codes = np.asfortranarray(rng.integers(0, 2, (9, n)).astype(np.int8))
    low, high = np.full(n, 0.1), np.full(n, 0.9)
    first = np.where(np.arange(n) < n // 2, low, high)  # cluster 0 loses the first half by far and wins it back
    tables = [np.array([[p, 1 - p], [1 - p, p]]) for p in first]
    problem = make_problem(table_rows(codes, np.full(n, 2)), 2)
    class_counts, _, total = problem.expected_counts(*flatten([0.5, 0.5], tables))
    want_class, _, want_total = plain_expectation(codes, np.ones(9), np.array([0.5, 0.5]), tables)
    np.testing.assert_allclose(total, want_total, rtol=1e-12)
    np.testing.assert_allclose(class_counts, want_class, atol=1e-9)  # differences of sums of 4000 logs


def test_zero_probabilities():
    """A zero rules a cluster out; a row that no cluster allows is impossible, and says nothing about the cluster."""
    codes = np.asfortranarray(np.array([[0, 0], [1, 0], [1, 1]], dtype=np.int8))
    tables = [np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[1.0, 0.0], [1.0, 0.0]])]
    problem = make_problem(table_rows(codes, np.array([2, 2])), 2)
    class_counts, _, total = problem.expected_counts(*flatten([0.4, 0.6], tables))
    assert total == -np.inf
    np.testing.assert_allclose(class_counts, [0.4 / 0.7 + 0 + 0.4, 0.3 / 0.7 + 1 + 0.6], rtol=1e-14)
    assert problem.expected_counts(*flatten([0.4, 0.6], [tables[0], np.full((2, 2), 0.5)]))[2] > -np.inf


def test_special_functions():
    for x in np.concatenate([np.geomspace(1e-8, 1e6, 200), [1.0, 2.0, 9.999, 10.0]]):
        assert special.log_gamma(x) == pytest.approx(gammaln(x), rel=1e-13, abs=1e-12)
        assert special.digamma(x) == pytest.approx(digamma(x), rel=1e-12, abs=1e-12)
    assert special.logistic(-800.0) == 0.0 and special.logistic(800.0) == 1.0
    assert special.log_add(-np.inf, -3.0) == -3.0 and special.log_add(-np.inf, -np.inf) == -np.inf


def test_family_scores_and_averaging_equal_the_statistics_layer():
    codes, cards, theta_c, tables = random_case(5, 60, (2, 4, 3), 3)
    priors = PriorSettings(cluster=0.7, dependent=0.4, independent=1.3, arc_prior=np.array([0.2, 0.5, 0.9]))
    problem = make_problem(table_rows(codes, cards), 3, priors, "linear")
    class_counts, counts, _ = problem.expected_counts(*flatten(theta_c, tables))
    fit = fit_latent_class(
        table_rows(codes, cards),
        3,
        averaging="linear",
        priors=priors,
        init=(theta_c, tables),
        n_init=1,
        max_iter=1,
        collapse="ignore",
    )
    np.testing.assert_allclose(fit.theta_c, posterior_mean(class_counts, 0.7), rtol=1e-12)
    for i, table in enumerate(split_tables(counts, problem.layout.state_start)):
        alone = table.sum(axis=0, keepdims=True)
        prior = priors.arc_prior[i]
        scores = [
            np.log(1 - prior) + log_marginal_likelihood(alone, 1.3),
            np.log(prior) + log_marginal_likelihood(table, 0.4),
        ]
        means = np.array([np.repeat(posterior_mean(alone, 1.3), 3, axis=0), posterior_mean(table, 0.4)])
        mixed, weights = average_families(scores, means)
        np.testing.assert_allclose(fit.tables[i], mixed, rtol=1e-11)
        assert fit.arc_posterior[i] == pytest.approx(weights[1], rel=1e-11)


# -------------------------------------------------------------------------------------------------- enumeration


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_clusters=st.integers(1, 3),
    cards=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    prior=st.sampled_from([0.2, 0.5, 0.9]),
    kind=st.sampled_from(["consistent", "paper"]),
)
def test_averaging_step_is_the_literal_sum_over_structures(seed, n_clusters, cards, prior, kind):
    codes, cards, theta_c, tables = random_case(seed, 8, cards, n_clusters)
    fit = fit_latent_class(
        table_rows(codes, cards),
        n_clusters,
        averaging="linear",
        init=(theta_c, tables),
        n_init=1,
        max_iter=1,
        tol=0,
        collapse="ignore",
        priors=PriorSettings(0.8, 0.8, 0.8, arc_prior=prior, parameter_prior=kind),
    )
    start = [t.tolist() for t in tables]
    alone = 0.8 * n_clusters if kind == "consistent" else 0.8  # the same prior mass in both tables of a column
    want_c, want, arcs = oracle.ema_step(codes.tolist(), theta_c.tolist(), start, 0.8, prior, alone)
    np.testing.assert_allclose(fit.theta_c, want_c, atol=ROUNDING)
    for found, table in zip(fit.tables, want):
        np.testing.assert_allclose(found, table, atol=ROUNDING)
    if n_clusters > 1:
        np.testing.assert_allclose(fit.arc_posterior, arcs, atol=ROUNDING)


def test_missing_cells_are_summed_out():
    codes, cards, theta_c, tables = random_case(11, 20, (2, 3, 4), 3, missing=0.4)
    lists = [t.tolist() for t in tables]
    fit = fit_latent_class(table_rows(codes, cards), 3, init=(theta_c, tables), n_init=1, max_iter=0)
    log_p = log_joint(codes, fit.theta_c, fit.theta, fit.state_start)
    joint = [oracle.row_joint(row, theta_c.tolist(), lists) for row in codes.tolist()]
    np.testing.assert_allclose(np.exp(log_p), joint, rtol=1e-12)
    assert fit.log_likelihood == pytest.approx(
        oracle.log_likelihood(codes.tolist(), theta_c.tolist(), lists), rel=1e-12
    )
    fit = fit_latent_class(table_rows(codes, cards), 3, init=(theta_c, tables), n_init=1, max_iter=1, tol=0)
    want_c, want = oracle.em_step(codes.tolist(), theta_c.tolist(), lists)
    np.testing.assert_allclose(fit.theta_c, want_c, atol=ROUNDING)
    for found, table in zip(fit.tables, want):
        np.testing.assert_allclose(found, table, atol=ROUNDING)


@pytest.mark.parametrize("seed", range(4))
def test_scores_equal_enumeration(seed):
    codes, cards, theta_c, tables = random_case(seed, 7, (2, 3, 2), 2)
    X, lists = codes.tolist(), [t.tolist() for t in tables]
    R = oracle.responsibilities(X, theta_c.tolist(), lists)
    for averaging in AVERAGING:
        fit = fit_latent_class(
            table_rows(codes, cards),
            2,
            averaging=averaging,
            init=(theta_c, tables),
            n_init=1,
            max_iter=0,
            collapse="ignore",
            priors=PriorSettings(arc_prior=0.3),
        )
        want = oracle.cheeseman_stutz(X, theta_c.tolist(), lists, averaged=averaging is not None, prior_dep=0.3)
        assert fit.cheeseman_stutz == pytest.approx(want, abs=ROUNDING)
        bound = oracle.evidence_bound(X, R, cards.tolist(), prior_dep=0.3)
        assert fit.evidence_bound == pytest.approx(bound, abs=ROUNDING)
    np.testing.assert_allclose(
        cluster_dependence(fit.theta_c, fit.theta, fit.state_start),
        oracle.cluster_dependence(theta_c.tolist(), lists),
        atol=ROUNDING,
    )


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_is_below_the_exact_evidence(seed):
    codes, cards, _, _ = random_case(seed, 6, (2, 3, 2), 2)
    exact = oracle.exact_log_evidence(codes.tolist(), cards.tolist(), 2)
    fit = fit_latent_class(
        table_rows(codes, cards), 2, averaging="variational", rng=np.random.default_rng(0), collapse="ignore", n_init=10
    )
    assert fit.evidence_bound < exact < fit.evidence_bound + 3  # six rows cannot open a wider gap than a few nats


def test_oracle_gives_the_exact_marginal_likelihoods_of_the_vectors():
    cases = json.loads((Path(__file__).parents[1] / "vectors" / "ema.json").read_text())["cases"]
    checked = 0
    for case in cases:
        for structure, want in case.get("exact_log_p_D_given_S", {}).items():
            arcs = [int(arc) for arc in structure]
            assert oracle.exact_log_p_structure(case["X"], arcs, case["cards"], case["rC"]) == pytest.approx(want)
            checked += 1
    assert checked == 24


def test_bdeu_priors_reach_every_table():
    codes, cards, theta_c, tables = random_case(2, 25, (2, 3), 2)
    keywords = {
        "init": (theta_c, tables),
        "n_init": 1,
        "max_iter": 1,
        "priors": PriorSettings(equivalent_sample_size=6.0),
    }
    fit = fit_latent_class(table_rows(codes, cards), 2, **keywords)
    class_counts, counts, _ = plain_expectation(codes, np.ones(25), theta_c, tables)
    np.testing.assert_allclose(fit.theta_c, (class_counts + 3) / (25 + 6), rtol=1e-12)
    for found, table, r in zip(fit.tables, counts, cards):
        np.testing.assert_allclose(found, posterior_mean(table, 6 / (2 * r)), rtol=1e-12)


# ------------------------------------------------------------------------------------------------- what climbs


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 40),
    n_clusters=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.3, 1.0, 2.5]),
)
def test_em_never_decreases_its_objective(seed, n_rows, n_clusters, alpha):
    codes, cards, theta_c, tables = random_case(seed, n_rows, (2, 3, 4), n_clusters)
    weights = np.random.default_rng(seed).integers(1, 5, n_rows).astype(float)
    fit = fit_latent_class(
        table_rows(codes, cards, weights),
        n_clusters,
        init=(theta_c, tables),
        n_init=1,
        max_iter=60,
        priors=PriorSettings(alpha, alpha, alpha),
        collapse="ignore",
    )
    gains = np.diff(fit.score_path)
    # rounding of a sum, which is near zero where the tables know every row
    assert (gains >= -1e-9 * np.abs(fit.score_path[:-1]) - 1e-12).all()
    if alpha == 1.0 and (fit.theta > 0).all():
        rows = np.repeat(codes, weights.astype(int), axis=0).tolist()
        want = oracle.em_objective(rows, fit.theta_c.tolist(), [t.tolist() for t in fit.tables])
        assert fit.score_path[-1] == pytest.approx(want, rel=1e-10)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 40),
    n_clusters=st.integers(1, 4),
    alpha=st.sampled_from([0.2, 1.0]),
)
def test_the_evidence_bound_never_falls(seed, n_rows, n_clusters, alpha):
    codes, cards, theta_c, tables = random_case(seed, n_rows, (2, 3, 4), n_clusters)
    fit = fit_latent_class(
        table_rows(codes, cards),
        n_clusters,
        averaging="variational",
        init=(theta_c, tables),
        n_init=1,
        max_iter=60,
        priors=PriorSettings(alpha, alpha, 1.0, arc_prior=0.4),
        collapse="ignore",
    )
    gains = np.diff(fit.score_path)
    assert (gains >= -1e-9 * np.abs(fit.score_path[:-1]) - 1e-12).all()  # rounding of a sum
    assert fit.evidence_bound == fit.score_path[-1]


def test_ema_with_certain_arcs_is_em():
    codes, cards, _ = clustered(3)
    em = fit_latent_class(table_rows(codes, cards), 3, rng=np.random.default_rng(1), n_init=3)
    priors = PriorSettings(arc_prior=1.0)
    ema = fit_latent_class(
        table_rows(codes, cards),
        3,
        averaging="linear",
        priors=priors,
        rng=np.random.default_rng(1),
        n_init=3,
        combine_starts="best",
    )
    np.testing.assert_allclose(ema.theta, em.theta, atol=1e-12)
    assert ema.n_iter == em.n_iter


# ------------------------------------------------------------------------------------------------------- starts


@pytest.mark.parametrize("averaging", AVERAGING)
def test_start_i_does_not_depend_on_the_number_of_starts_or_threads(averaging):
    codes, cards, _ = clustered(4, n_rows=120)
    keywords = {"averaging": averaging, "collapse": "ignore"}
    many = fit_latent_class(table_rows(codes, cards), 2, rng=np.random.default_rng(7), n_init=BATCH + 5, **keywords)
    few = fit_latent_class(table_rows(codes, cards), 2, rng=np.random.default_rng(7), n_init=3, **keywords)
    threads = fit_latent_class(
        table_rows(codes, cards), 2, rng=np.random.default_rng(7), n_init=BATCH + 5, n_jobs=2, **keywords
    )
    np.testing.assert_array_equal(many.starts.theta[:3], few.starts.theta)
    np.testing.assert_array_equal(many.theta, threads.theta)
    assert len(np.unique(many.starts.log_likelihood.round(6))) > 1  # the starts are different ones


def test_starts_are_dirichlet_one():
    problem = make_problem(table_rows(np.zeros((3, 2), dtype=np.int8), np.array([2, 3])), 2)
    theta_c, theta = draw_starts(problem.layout, 2, np.random.default_rng(0).spawn(4000))
    np.testing.assert_allclose(theta_c.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(theta[:, 2:].sum(axis=1), 1.0, rtol=1e-12)
    # Dirichlet(1): variance (r - 1) / (r^2 (r + 1)); four standard errors of a variance at 4000 draws
    assert theta[:, 0, 0].var() == pytest.approx(1 / 12, rel=0.09)
    assert theta[:, 3, 1].var() == pytest.approx(2 / 36, rel=0.13)


def test_averages_align_the_labels_first():
    """One model under three orders of its labels: the aligned average is that model."""
    codes, cards, _ = clustered(6)
    fit = fit_latent_class(table_rows(codes, cards), 3, averaging="linear", rng=np.random.default_rng(0), n_init=12)
    best = fit.starts.theta_c[fit.best], fit.starts.theta[fit.best]
    same = np.abs(fit.starts.log_likelihood - fit.starts.log_likelihood[fit.best]) < 0.01
    assert same.sum() >= 3 and len({tuple(np.argsort(c)) for c in fit.starts.theta_c[same]}) > 1
    for rule in ("likelihood", "evidence"):
        averaged = fit_latent_class(
            table_rows(codes, cards),
            3,
            averaging="linear",
            rng=np.random.default_rng(0),
            n_init=12,
            combine_starts=rule,
        )
        order = np.argsort(-best[0], kind="stable")
        np.testing.assert_allclose(averaged.theta_c, best[0][order], atol=1e-4)  # starts agree to what `tol` leaves
        np.testing.assert_allclose(averaged.theta, best[1][:, order], atol=1e-4)


def test_weights_of_starts_are_kept_in_logs():
    likelihood = np.array([-90_000.0, -90_001.0, -95_000.0, -89_000.0])
    alive = np.array([True, True, True, False])
    weights = start_weights("likelihood", likelihood, likelihood, alive, 0)
    np.testing.assert_allclose(weights, [1 / (1 + np.exp(-1)), np.exp(-1) / (1 + np.exp(-1)), 0, 0], rtol=1e-12)
    assert start_weights("uniform", likelihood, likelihood, alive, 0).tolist() == [1 / 3, 1 / 3, 1 / 3, 0]
    assert start_weights("best", likelihood, likelihood, alive, 1).tolist() == [0, 1, 0, 0]
    impossible = np.full(4, -np.inf)
    assert start_weights("likelihood", impossible, impossible, alive, 0).sum() == pytest.approx(1.0)


def test_until_replicated_finds_the_best_score_twice():
    codes, cards, _ = clustered(8, n_clusters=4)
    fit = fit_latent_class(table_rows(codes, cards), 4, rng=np.random.default_rng(0), n_init="until-replicated")
    top = np.sort(fit.starts.log_likelihood)[::-1]
    assert top[0] - top[1] < 1e-2 and len(top) % BATCH == 0
    more = fit_latent_class(table_rows(codes, cards), 4, rng=np.random.default_rng(0), n_init=len(top))
    np.testing.assert_array_equal(more.starts.theta, fit.starts.theta)


def test_short_starts_are_the_beginnings_of_long_ones_and_the_best_are_finished():
    codes, cards, _ = clustered(4, n_rows=150, sharpness=0.6)
    for averaging, init in ((None, "random"), ("linear", "random"), ("variational", "random"), ("variational", "em")):
        keywords = {"averaging": averaging, "init": init, "collapse": "ignore", "n_init": BATCH + 3, "tol": 1e-9}
        plain = fit_latent_class(table_rows(codes, cards), 3, rng=np.random.default_rng(7), **keywords)
        some = fit_latent_class(table_rows(codes, cards), 3, rng=np.random.default_rng(7), n_final=3, **keywords)
        finished = some.starts.finished
        assert finished.sum() == 3 and plain.starts.finished.all()
        np.testing.assert_allclose(some.starts.theta[finished], plain.starts.theta[finished], atol=1e-12)
        assert (some.weights[~finished] == 0).all() and some.weights.sum() == pytest.approx(1.0)
        for short, long in zip(some.starts.paths, plain.starts.paths):
            if not finished.all():
                n = min(len(short), SHORT_UPDATES)
                np.testing.assert_allclose(short[:n], long[:n], rtol=1e-12)
        score = some.starts.evidence_bound if averaging == "variational" else some.starts.log_likelihood
        n_ranked = SHORT_UPDATES + MIDDLE_UPDATES * (averaging == "variational")
        values = np.array([path[min(n_ranked, len(path) - 1)] for path in plain.starts.paths])
        if averaging is not None:  # EM's path is the log posterior, its rank the log-likelihood
            assert values[finished].min() > values[~finished].max() - ALIKE[0]  # less: taken as one optimum
        assert some.best == np.argmax(np.where(finished, score, -np.inf))
        fast = fit_latent_class(
            table_rows(codes, cards), 3, rng=np.random.default_rng(7), n_final=3, accelerate=True, **keywords
        )
        if averaging != "variational":  # whose starts are ranked after accelerated updates
            np.testing.assert_array_equal(fast.starts.finished, finished)
        threads = fit_latent_class(
            table_rows(codes, cards), 3, rng=np.random.default_rng(7), n_final=3, accelerate=True, n_jobs=2, **keywords
        )
        np.testing.assert_array_equal(fast.theta, threads.theta)


def test_when_the_finalists_collapse_the_next_ones_are_finished():
    codes, cards, _ = clustered(9, n_rows=60, n_columns=6, sharpness=0.6)
    keywords = {"averaging": "linear", "n_init": 40, "combine_starts": "uniform"}
    every = fit_latent_class(table_rows(codes, cards), 3, rng=np.random.default_rng(0), **keywords)
    few = fit_latent_class(table_rows(codes, cards), 3, rng=np.random.default_rng(0), n_final=1, **keywords)
    assert not few.all_collapsed and not few.starts.collapsed[few.weights > 0].any()
    noise = np.asfortranarray(np.random.default_rng(0).integers(0, 2, (50, 4)).astype(np.int8))
    nothing = fit_latent_class(table_rows(noise, np.full(4, 2)), 3, rng=np.random.default_rng(0), n_final=2, **keywords)
    assert nothing.all_collapsed and nothing.starts.finished.all() and 0 < every.starts.collapsed.sum() < 40


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 40),
    n_clusters=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.3, 1.0]),
    averaging=st.sampled_from([None, "variational"]),
)
def test_acceleration_climbs_to_a_fixed_point_of_the_plain_step(seed, n_rows, n_clusters, alpha, averaging):
    codes, cards, theta_c, tables = random_case(seed, n_rows, (2, 3, 4), n_clusters)
    priors = PriorSettings(*[alpha if averaging is None else max(alpha, 0.3)] * 3)
    keywords = {"averaging": averaging, "priors": priors, "n_init": 1, "collapse": "ignore", "tol": 1e-8}
    fast = fit_latent_class(
        table_rows(codes, cards), n_clusters, init=(theta_c, tables), accelerate=True, max_iter=3000, **keywords
    )
    path = fast.score_path
    assert (np.diff(path) >= -1e-9 * np.abs(path[:-1]) - 1e-12).all()  # rounding of a sum
    assert len(path) == fast.n_iter + 1
    if fast.converged and averaging is None:
        again = fit_latent_class(
            table_rows(codes, cards), n_clusters, init=(fast.theta_c, fast.tables), max_iter=1, **keywords
        )
        np.testing.assert_allclose(again.theta, fast.theta, atol=1e-7)  # the change that `tol` leaves, once more


def test_acceleration_saves_updates_on_slow_tails():
    codes, cards, _ = clustered(2, n_rows=400, sharpness=3.0)  # clusters that overlap: EM creeps
    plain, fast = (
        fit_latent_class(
            table_rows(codes, cards), 3, rng=np.random.default_rng(1), n_init=5, max_iter=5000, accelerate=accelerate
        )
        for accelerate in (False, True)
    )
    assert fast.starts.converged.all() and fast.starts.n_iter.sum() < plain.starts.n_iter.sum() / 2
    assert max(path[-1] for path in fast.starts.paths) > max(path[-1] for path in plain.starts.paths) - 1e-3


# ----------------------------------------------------------------------------------------------------- collapse


def test_collapsed_starts_are_stopped_and_left_out():
    codes, cards, _ = clustered(9, n_rows=60, n_columns=6, sharpness=0.6)
    fit = fit_latent_class(
        table_rows(codes, cards),
        3,
        averaging="linear",
        rng=np.random.default_rng(0),
        n_init=40,
        combine_starts="uniform",
    )
    collapsed = fit.starts.collapsed
    assert 0 < collapsed.sum() < 40  # the case holds both kinds
    assert (fit.weights[collapsed] == 0).all() and fit.weights.sum() == pytest.approx(1.0)
    assert (fit.starts.arcs[collapsed] < 0.5).all()
    assert (fit.starts.arcs[~collapsed].max(axis=1) >= 0.5).all()
    ignored = fit_latent_class(
        table_rows(codes, cards), 3, averaging="linear", rng=np.random.default_rng(0), n_init=40, collapse="ignore"
    )
    assert fit.starts.n_iter[collapsed].mean() < ignored.starts.n_iter[collapsed].mean() / 2
    assert not ignored.starts.collapsed.any()


def test_when_every_start_collapses_one_cluster_is_left():
    rng = np.random.default_rng(0)
    codes = np.asfortranarray(rng.integers(0, 2, (50, 4)).astype(np.int8))
    fit = fit_latent_class(table_rows(codes, np.full(4, 2)), 3, averaging="linear", rng=rng, n_init=10)
    assert fit.all_collapsed and fit.theta_c.tolist() == [1.0] and (fit.arc_posterior == 0).all()
    for i, table in enumerate(fit.tables):
        np.testing.assert_allclose(table[0], posterior_mean(np.bincount(codes[:, i], minlength=2), 1.0), rtol=1e-12)
    # with one cluster everything is exact: the two approximations of the evidence are the evidence
    exact = sum(log_marginal_likelihood(np.bincount(codes[:, i], minlength=2)[None], 1.0) for i in range(4))
    assert fit.evidence_bound == pytest.approx(exact, rel=1e-12)
    assert fit.cheeseman_stutz == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("averaging", AVERAGING)
def test_constant_columns_and_empty_tables_hold_no_clusters(averaging):
    constant = np.zeros((20, 3), dtype=np.int8)
    cases = [(constant, [1, 1, 1]), (constant[:0], [2, 3, 2])]
    if averaging is not None:  # EM's prior alone makes clusters of unequal size differ in a state that was never seen
        cases.append((constant, [2, 1, 2]))
    for codes, cards in cases:
        fit = fit_latent_class(
            table_rows(codes, np.array(cards)), 2, averaging=averaging, rng=np.random.default_rng(0), n_init=5
        )
        assert fit.all_collapsed
        one = fit_latent_class(
            table_rows(codes, np.array(cards)), 1, averaging=averaging, rng=np.random.default_rng(0), n_init=5
        )
        assert not one.all_collapsed and len(one.theta_c) == 1


def test_em_that_ends_with_equal_clusters_is_collapsed_too():
    fit = fit_latent_class(
        table_rows(np.array([[1, 2, 0]], dtype=np.int8), np.array([2, 3, 2])), 2, rng=np.random.default_rng(0)
    )
    assert fit.all_collapsed and len(fit.theta_c) == 1


# ------------------------------------------------------------------------------------------- number of clusters


@pytest.mark.parametrize("averaging", AVERAGING)
@pytest.mark.parametrize("true_number", [1, 3])
def test_the_number_of_clusters_is_found_by_a_scan(averaging, true_number):
    codes, cards, _ = clustered(20 + true_number, n_clusters=true_number)
    options = {"averaging": averaging, "n_init": 6, "tol": 1e-4}
    scan = scan_clusters(table_rows(codes, cards), range(1, 6), rng=np.random.default_rng(0), **options)
    assert len(scan.fit.theta_c) == true_number
    assert [step.n_clusters for step in scan.path] == [1, 2, 3, 4, 5]
    assert max(scan.path, key=lambda step: step.score).n_clusters == true_number
    alone = fit_latent_class(table_rows(codes, cards), true_number, rng=np.random.default_rng(0), **options)
    np.testing.assert_array_equal(alone.theta, scan.fit.theta)  # the scan's fit is the fit of that number alone
