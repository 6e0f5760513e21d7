"""Fit statistics, standard errors and residuals: published fits, peers, second differences, simulations."""

import numpy as np
import pandas as pd
import pytest

from pgm_bma import (
    EMAClusterer,
    LatentClassClusterer,
    StructuralEMClusterer,
    bivariate_residuals,
    goodness_of_fit,
    likelihood_ratio_test,
    load,
    save,
)
from pgm_bma.foundation.rows.blocks import Block, table_rows
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings, make_problem, split_tables
from pgm_bma.latent_class.profiles import uncertainty
from pgm_bma.latent_class.statistics import bootstrap, fit_statistics, p_value
from tests.oracles import ema_information as oracle

# 118 slides judged by seven pathologists (Agresti 2002, Table 13.1): pattern and count
CARCINOMA = """0000000 34 0000100 2 0100000 6 0100001 1 0100100 4 0100101 5 1000000 2 1010101 1 1100000 2 1100001 1 1100100 2
1100101 7 1100111 1 1101001 1 1101101 2 1101111 3 1110101 13 1110111 5 1111101 10 1111111 16""".split()
# poLCA's published fits: log-likelihood, AIC, BIC, G2, X2, degrees of freedom
POLCA = {
    2: (-317.2568, 664.5137, 706.0739, 62.365, 92.648, 103),
    3: (-293.705, 633.41, 697.1357, 15.26171, 20.50335, 95),
    4: (-289.2858, 640.5717, 726.4629, 6.423, 10.086, 87),
}


def carcinoma():
    rows = np.array([[int(c) for c in pattern] for pattern in CARCINOMA[::2]])
    return pd.DataFrame(rows, columns=list("ABCDEFG")), np.array(CARCINOMA[1::2], dtype=float)


@pytest.mark.parametrize("n_clusters", POLCA)
def test_the_published_fits_of_the_carcinoma_table(n_clusters):
    X, weights = carcinoma()
    fit = fit_latent_class(
        table_rows(X.to_numpy(np.int8), np.full(7, 2), weights),
        n_clusters,
        rng=np.random.default_rng(0),
        n_init=60,
        priors=PriorSettings(0, 0, 0),
        tol=1e-9,
        max_iter=20_000,
        accelerate=True,
    )
    found = fit_statistics(X.to_numpy(np.int8), weights, np.full(7, 2), fit.theta_c, fit.theta, fit.state_start)
    log_likelihood, aic, bic, g2, x2, df = POLCA[n_clusters]
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=6e-4)  # published to 3 or 4 digits
    assert found.aic == pytest.approx(aic, abs=1e-3) and found.bic == pytest.approx(bic, abs=1e-3)
    # G2 and X2 are published to 3 digits, from a fit that stopped at a log-likelihood change of 1e-10
    assert found.g2 == pytest.approx(g2, abs=2e-3) and found.x2 == pytest.approx(x2, abs=5e-3)
    assert found.df == df and np.isnan(found.g2_p)  # 118 rows for 128 cells
    assert found.n_occupied == n_clusters
    n = weights.sum()
    assert found.caic == pytest.approx(found.bic + found.n_parameters)
    assert found.adjusted_bic == pytest.approx(-2 * found.log_likelihood + found.n_parameters * np.log((n + 2) / 24))


def test_missing_cells_and_empty_clusters():
    codes = np.array([[0, 0], [1, 1], [0, -1]], dtype=np.int8)
    theta_c, tables = np.array([0.6, 0.4, 0.0]), [np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])] * 2
    theta = np.concatenate([t.T for t in tables])
    weights = np.array([30.0, 20.0, 5.0])
    found = fit_statistics(codes, weights, np.array([2, 2]), theta_c, theta, np.array([0, 2, 4]))
    assert found.n_occupied == 2 and found.smallest_cluster == 0.0
    p = {
        (a, b): sum(c * tables[0][j, a] * tables[1][j, b] for j, c in enumerate(theta_c))
        for a in (0, 1)
        for b in (0, 1)
    }
    observed = {(0, 0): 30, (1, 1): 20, (0, 1): 0, (1, 0): 0}
    assert found.g2 == pytest.approx(2 * sum(n * np.log(n / (50 * p[cell])) for cell, n in observed.items() if n))
    assert found.x2 == pytest.approx(sum((n - 50 * p[cell]) ** 2 / (50 * p[cell]) for cell, n in observed.items()))
    assert found.df == 3 - 8 and np.isnan(found.g2_p)


# ------------------------------------------------------------------------------------------- standard errors


def drawn(seed=0, n_rows=300, missing=0.1, cards=(2, 3, 2, 2)):
    rng = np.random.default_rng(seed)
    z = rng.random(n_rows) < 0.4
    codes = np.column_stack([np.where(rng.random(n_rows) < 0.75, z, rng.integers(0, r, n_rows)) for r in cards])
    codes[rng.random(codes.shape) < missing] = -1
    rows, counts = np.unique(codes.astype(np.int8), axis=0, return_counts=True)
    return np.asfortranarray(rows), counts.astype(float), np.array(cards)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_standard_errors_equal_second_differences(alpha):
    codes, weights, cards = drawn()
    priors = PriorSettings(alpha, alpha, alpha)
    fit = fit_latent_class(
        table_rows(codes, cards, weights), 2, rng=np.random.default_rng(0), priors=priors, tol=1e-10, accelerate=True
    )
    found = uncertainty(Block(codes, weights), fit, make_problem(table_rows(codes, cards, weights), 2, priors).priors)
    want_c, want = oracle.standard_errors(
        codes.tolist(), weights, fit.theta_c.tolist(), [t.tolist() for t in fit.tables], alpha
    )
    np.testing.assert_allclose(found.size_error, want_c, rtol=1e-4)  # second differences with a step of 1e-3
    for table, errors in zip(split_tables(found.error, fit.state_start), want):
        np.testing.assert_allclose(table, errors, rtol=1e-4)
    assert (found.low < fit.theta).all() and (fit.theta < found.high).all()
    # sampling weights: a weight of 2 for every row says the same about the spread as a weight of 1
    ones = uncertainty(
        Block(codes, weights), fit, make_problem(table_rows(codes, cards, weights), 2, priors).priors, 0.95, weights
    )
    if alpha == 0.0:
        assert 0.5 < np.median(ones.error / found.error) < 1.5


def test_a_probability_at_the_boundary_gets_a_posterior_interval():
    codes = np.array([[0, 0, 0], [1, 1, 1]], dtype=np.int8)
    weights, priors = np.array([30.0, 30.0]), PriorSettings(0, 0, 0)
    fit = fit_latent_class(table_rows(codes, np.full(3, 2), weights), 2, rng=np.random.default_rng(0), priors=priors)
    found = uncertainty(
        Block(codes, weights), fit, make_problem(table_rows(codes, np.full(3, 2), weights), 2, priors).priors
    )
    assert (found.low[fit.theta < 1e-6] == 0).all() and (found.high[fit.theta > 1 - 1e-6] == 1).all()
    # Jeffreys: the upper limit after 0 of 30 is 0.08
    np.testing.assert_allclose(found.high[fit.theta < 1e-6], 0.0802, atol=1e-3)


# ------------------------------------------------------------------------------------------------ the faces

BOTH = pytest.mark.parametrize("build", [LatentClassClusterer, EMAClusterer])


def survey(n_rows=400, seed=0, n_columns=5, strength=0.8):
    rng = np.random.default_rng(seed)
    z = rng.random(n_rows) < 0.4
    return pd.DataFrame({f"q{i}": np.where(rng.random(n_rows) < strength, z, ~z).astype(int) for i in range(n_columns)})


def test_figures_agree_with_stepmix():
    stepmix = pytest.importorskip("stepmix.stepmix")
    X = survey()
    theirs = stepmix.StepMix(
        2, measurement="binary", n_init=10, abs_tol=1e-12, random_state=0, progress_bar=0, max_iter=5000
    )
    theirs.fit(X)
    ours = LatentClassClusterer(2, alpha=1e-10, n_init=10, tol=1e-9, random_state=0).fit(X)
    found = ours.fit_statistics_
    assert ours.log_likelihood_ == pytest.approx(theirs.score(X) * len(X), abs=1e-5)
    assert found["aic"] == pytest.approx(theirs.aic(X), abs=1e-4)
    assert found["bic"] == pytest.approx(theirs.bic(X), abs=1e-4) and ours.bic(X) == pytest.approx(found["bic"])
    assert found["caic"] == pytest.approx(theirs.caic(X), abs=1e-4)
    # theirs takes ln(n (n + 2) / 24) a parameter, Sclove (1987), Mplus and poLCA ln((n + 2) / 24)
    assert found["adjusted_bic"] == pytest.approx(theirs.sabic(X) - theirs.n_parameters * np.log(len(X)), abs=1e-4)
    assert found["entropy_r2"] == pytest.approx(theirs.relative_entropy(X), abs=1e-5)


@BOTH
def test_the_path_over_numbers_holds_all_criteria(build):
    X = survey()
    model = build(range(1, 5), n_init=6, random_state=0).fit(X)
    path = model.n_clusters_path_
    wanted = [
        "n_clusters",
        "score",
        "probability",
        "log_likelihood",
        "n_effective",
        "n_parameters",
        "aic",
        "bic",
    ]
    assert list(path)[: len(wanted)] == wanted and path["n_clusters"].tolist() == [1, 2, 3, 4]
    assert path["probability"].sum() == pytest.approx(1) and path["probability"].idxmax() == 1
    assert (path["n_occupied"] <= path["n_effective"]).all() and path["bic"].idxmin() == 1
    chosen = path.set_index("n_clusters").loc[model.n_clusters_]
    for name, value in model.fit_statistics_.items():
        assert value == pytest.approx(chosen[name], nan_ok=True)


def test_sampling_weights_count_by_their_proportions_only():
    X = survey()
    weights = np.random.default_rng(1).exponential(size=len(X))
    parameters = {"n_clusters": range(1, 5), "n_init": 5, "random_state": 0, "weight_type": "sampling"}
    once = LatentClassClusterer(**parameters).fit(X, sample_weight=weights)
    tenfold = LatentClassClusterer(**parameters).fit(X, sample_weight=10 * weights)
    assert once.n_clusters_ == tenfold.n_clusters_ == 2
    assert once.log_likelihood_ == pytest.approx(tenfold.log_likelihood_, rel=1e-9)
    pd.testing.assert_frame_equal(once.profiles_, tenfold.profiles_, rtol=1e-6)
    even = LatentClassClusterer(2, n_init=5, random_state=0, weight_type="sampling").fit(
        X, sample_weight=np.full(400, 7.0)
    )
    plain = LatentClassClusterer(2, n_init=5, random_state=0).fit(X)
    assert even.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-12)
    # the sandwich of equal weights and the inverse information estimate the same errors where the model holds
    ratio = even.profiles_["standard_error"] / plain.profiles_["standard_error"]
    assert ratio.between(0.7, 1.4).all()
    # weights that differ waste rows: the errors grow
    assert (once.profiles_["standard_error"] / even.profiles_["standard_error"]).median() > 1.1


@BOTH
def test_profiles_hold_the_tables_and_survive_a_file(build, tmp_path):
    X = survey()
    model = build(2, n_init=5, random_state=0).fit(X)
    profiles = model.profiles_
    assert list(profiles) == ["cluster", "column", "state", "probability", "standard_error", "low", "high"]
    assert len(profiles) == 2 * (1 + 5 * 2)
    sizes = profiles[profiles["column"].isna()]
    np.testing.assert_allclose(sizes["probability"], model.model_.get_cpds("cluster").values)
    assert ((profiles["low"] < profiles["probability"]) & (profiles["probability"] < profiles["high"])).all()
    assert profiles["standard_error"].between(0.005, 0.2).all()
    save(model, tmp_path / "model.pgm")
    pd.testing.assert_frame_equal(load(tmp_path / "model.pgm").profiles_, profiles)
    fresh = build(2, n_init=5, random_state=0).fit(X)
    save(fresh, tmp_path / "fresh.pgm")
    with pytest.raises(ValueError, match="read it once before saving"):
        _ = load(tmp_path / "fresh.pgm").profiles_


def test_errors_match_the_spread_over_drawn_tables():
    truth = LatentClassClusterer(2, n_init=5, random_state=0).fit(survey(1000))
    estimates, errors = [], []
    for seed in range(60):
        X, _ = truth.sample(800, random_state=seed)
        model = LatentClassClusterer(
            2, alpha=0.01, init=truth.model_, n_init=1, state_names={c: [0, 1] for c in X}
        ).fit(X)
        estimates.append(model.profiles_["probability"])
        errors.append(model.profiles_["standard_error"])
    spread, mean_error = np.std(estimates, axis=0, ddof=1), np.mean(errors, axis=0)
    # a standard deviation of 60 values has a relative error of 9 %; four of them over the 22 entries
    np.testing.assert_allclose(mean_error / spread, 1.0, atol=0.36)
    assert np.mean(mean_error / spread) == pytest.approx(1.0, abs=0.1)


def test_residuals_point_at_the_dependent_pair_and_structural_em_takes_it_away():
    X = survey(800, n_columns=6, strength=0.85)
    X["copy"] = np.where(np.random.default_rng(5).random(800) < 0.85, X["q0"], 1 - X["q0"])
    model = LatentClassClusterer(2, alpha=0.1, n_init=5, random_state=0).fit(X)
    found = bivariate_residuals(model, X, n_bootstrap=39, random_state=0)
    assert set(found.loc[0, ["first", "second"]]) == {"q0", "copy"} and found.loc[0, "residual"] > 20
    assert found.loc[0, "p_value"] == 1 / 40 and found["df"].eq(1).all() and len(found) == 21
    pd.testing.assert_frame_equal(found, bivariate_residuals(model, X, n_bootstrap=39, random_state=0, n_jobs=2))
    structural = StructuralEMClusterer(2, n_init=2, random_state=0).fit(X)
    after = bivariate_residuals(structural, X, random_state=0)
    pair = after[(after["first"] == "q0") & (after["second"] == "copy")]
    assert pair["residual"].item() < 2 and after["p_value"].isna().all()


def test_residuals_are_pearsons_x2():
    X = survey(60, n_columns=3).mask(np.random.default_rng(0).random((60, 3)) < 0.1)
    model = LatentClassClusterer(2, n_init=3, random_state=0).fit(X)
    sizes, tables = model._profiles()
    both = X[["q0", "q2"]].dropna()
    expected = np.einsum("c,ca,cb->ab", sizes, tables[0], tables[2]) * len(both)
    observed = pd.crosstab(both["q0"], both["q2"]).to_numpy()
    found = bivariate_residuals(model, X)
    line = found[(found["first"] == "q0") & (found["second"] == "q2")]
    assert line["x2"].item() == pytest.approx(((observed - expected) ** 2 / expected).sum(), rel=1e-9)


def test_the_likelihood_ratio_test_repeats_and_tells_two_clusters_from_one():
    X = survey(200)
    one, two = (LatentClassClusterer(k, alpha=0.1, n_init=4, random_state=0).fit(X) for k in (1, 2))
    found = likelihood_ratio_test(one, X, n_bootstrap=19, random_state=3)
    again = likelihood_ratio_test(one, X, n_bootstrap=19, random_state=3, n_jobs=2)
    assert found.p_value == again.p_value == 1 / 20 and found.statistic == again.statistic
    np.testing.assert_array_equal(found.bootstrap, again.bootstrap)
    assert likelihood_ratio_test(two, X, n_bootstrap=19, random_state=3).p_value > 0.05


def plain_em(X, k, alpha, seed):
    """Log-likelihood of binary columns after EM with pseudo-counts, the best of 30 random starts."""
    rng = np.random.default_rng(seed)
    rows, times = np.unique(X.to_numpy(), axis=0, return_counts=True)
    sizes, p = rng.dirichlet(np.ones(k), 30), rng.random((30, k, X.shape[1]))
    for _ in range(1500):  # all starts at once
        log_p = np.log(sizes)[:, None] + rows @ np.log(p).mT + (1 - rows) @ np.log(1 - p).mT
        total = np.logaddexp.reduce(log_p, axis=2)
        share = np.exp(log_p - total[:, :, None]) * times[:, None]
        sizes = (share.sum(axis=1) + alpha) / (len(X) + k * alpha)
        p = (share.mT @ rows + alpha) / (share.sum(axis=1) + 2 * alpha)[:, :, None]
    return (total @ times).max()


def test_the_statistic_of_one_more_cluster_is_that_of_plain_em():
    X = survey(150)
    for k in (1, 2):
        model = LatentClassClusterer(k, alpha=0.5, n_init=4, random_state=0).fit(X)
        found = likelihood_ratio_test(model, X, n_bootstrap=1, random_state=0).statistic
        # EM with pseudo-counts climbs the posterior: two runs end apart by what tol=1e-6 leaves open
        assert found == pytest.approx(2 * (plain_em(X, k + 1, 0.5, 1) - plain_em(X, k, 0.5, 2)), abs=5e-3)


def test_a_bootstrap_ends_at_the_tenth_table_that_fits_no_better():
    X = survey(60, n_columns=2)
    fit = LatentClassClusterer(1, random_state=0).fit(X)._result
    parts = X.to_numpy(dtype=np.int8), np.ones(60), np.array([2, 2]), fit
    draw = lambda codes, weights, rng: rng.random()  # noqa: E731
    whole = bootstrap(*parts, draw, 99, np.random.default_rng(1))
    for n_jobs in (1, 2):
        values = bootstrap(*parts, draw, 99, np.random.default_rng(1), n_jobs, seen=0.4)
        assert len(values) == np.flatnonzero(whole >= 0.4)[9] + 1
        np.testing.assert_array_equal(values, whole[: len(values)])
    assert p_value(values, 0.4, 99) == 10 / len(values) and p_value(whole, 2.0, 99) == 0.01
    # of an observed value like the others p is at most 5 % in 5 % of the tables (exactly 5 of 100 ranks)
    p = [
        p_value(bootstrap(*parts, draw, 99, np.random.default_rng([2, i]), seen=i / 1000), i / 1000, 99)
        for i in range(0, 1000, 4)
    ]
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.03)  # 2 standard errors of 250 tables


def test_the_test_of_one_more_cluster_chooses_a_number():
    X = survey(300)
    model = LatentClassClusterer(range(1, 4), n_init=4, random_state=0).fit(X)
    chosen = model.chosen_by("blrt", X, random_state=0)
    p = chosen.n_clusters_path_["blrt_p"]
    assert chosen.n_clusters_ == 2 and p[0] == 0.01 and p[1] > 0.05 and np.isnan(p[2])
    assert "blrt_p" not in model.n_clusters_path_ and len(chosen.labels_) == 300
    again = model.chosen_by("blrt", X, random_state=0, n_jobs=2, sample_weight=np.ones(300))
    pd.testing.assert_frame_equal(chosen.n_clusters_path_, again.n_clusters_path_)
    few = LatentClassClusterer(range(1, 3), n_init=4, random_state=0).fit(X).chosen_by("blrt", X, random_state=0)
    assert few.n_clusters_ == 2  # the largest number tried, and one more was never tested
    with pytest.raises(ValueError, match="pass them as X"):
        model.chosen_by("blrt")


def test_bootstrap_p_values_of_sparse_tables():
    """118 slides for 128 cells: by its limiting law G2 = 62.4 with 103 degrees of freedom would be no misfit of two clusters."""
    X, weights = carcinoma()
    model = LatentClassClusterer(range(2, 4), alpha=1e-6, n_init=20, random_state=0).fit(X, sample_weight=weights)
    found = goodness_of_fit(model, X, sample_weight=weights, n_bootstrap=39, random_state=1)
    assert found["n_clusters"].tolist() == [2, 3] and found["df"].tolist() == [103, 95]
    np.testing.assert_allclose(found["g2"], [62.365, 15.262], atol=2e-3)  # as published
    assert found["g2_p"][0] == 1 / 40 and found["g2_p"][1] > 0.05
    assert found["x2_p"][0] <= 0.05 and found["x2_p"][1] > 0.05 and found["g2_asymptotic_p"].isna().all()
    again = goodness_of_fit(model, X, sample_weight=weights, n_bootstrap=39, random_state=1, n_jobs=2)
    pd.testing.assert_frame_equal(found, again)
    with pytest.raises(TypeError, match="bivariate_residuals takes any clusterer"):
        goodness_of_fit(StructuralEMClusterer(), X)


def test_goodness_of_fit_of_a_file_is_that_of_the_chosen_number(tmp_path):
    X = survey(200)
    model = LatentClassClusterer(range(1, 4), n_init=3, random_state=0).fit(X)
    save(model, tmp_path / "model.pgm")
    found = goodness_of_fit(load(tmp_path / "model.pgm"), X, n_bootstrap=9, random_state=0)
    assert found["n_clusters"].tolist() == [2] and found["g2"].item() == pytest.approx(model.fit_statistics_["g2"])
    # 200 rows for 32 cells are enough for the limiting law, which the bootstrap then repeats
    found = goodness_of_fit(model, X, n_bootstrap=99, random_state=0).set_index("n_clusters")
    assert found.loc[2, "g2_p"] == pytest.approx(
        found.loc[2, "g2_asymptotic_p"], abs=0.2
    )  # 4 standard errors of 99 tables
    assert found.loc[1, "g2_p"] == 0.01
