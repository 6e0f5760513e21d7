"""Covariates and outcomes with the error of classification corrected: likelihoods by loops, a peer, closed forms."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from pgm_bma import LatentClassClusterer, StructuralEMClusterer, three_step
from pgm_bma.latent_class import three_step as steps
from pgm_bma.latent_class.profiles import cluster_scores
from tests.oracles import three_step as oracle

ITEMS = np.array([[0.85, 0.8, 0.2, 0.3, 0.8, 0.2], [0.2, 0.85, 0.8, 0.7, 0.3, 0.2], [0.2, 0.15, 0.3, 0.8, 0.85, 0.75]])
STATES = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])


def pick(p, rng):
    return (rng.random(len(p))[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)


def generated(n_rows=500, seed=0):
    rng = np.random.default_rng(seed)
    number, group = rng.normal(size=n_rows), rng.integers(0, 2, n_rows)
    eta = np.column_stack([np.zeros(n_rows), 0.3 + 0.8 * number, -0.5 + group])
    z = pick(np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True), rng)
    X = pd.DataFrame((rng.random((n_rows, 6)) < ITEMS[z]).astype(int), columns=[f"q{i}" for i in range(6)])
    aside = pd.DataFrame(
        {
            "number": number,
            "group": np.array(["a", "b"])[group],
            "income": rng.normal(np.array([20, 30, 5])[z], np.array([5, 3, 7])[z]),
            "vote": np.array(list("xyz"))[pick(STATES[z], rng)],
        }
    )
    return X, aside


@pytest.fixture(scope="module")
def fitted():
    X, aside = generated()
    settings = {"alpha": 1e-10, "n_init": 10, "tol": 1e-9, "max_iter": 5000, "random_state": 0}
    return LatentClassClusterer(3, **settings).fit(X), X, aside


@pytest.fixture(scope="module")
def second(fitted):
    clusterer, X, _ = fitted
    return oracle.error_matrix(clusterer.predict_proba(X).tolist(), [1.0] * len(X))


def slopes(function, point, step=1e-5):
    found = []
    for i in range(len(point)):
        up, down = point.copy(), point.copy()
        up[i] += step
        down[i] -= step
        found.append((function(up) - function(down)) / (2 * step))
    return np.array(found)


# ------------------------------------------------------------------------------------------- against loops


def test_the_error_matrix_counts_what_is_given_elsewhere(fitted, second):
    clusterer, X, aside = fitted
    found = three_step(clusterer, X, covariates=aside[["number"]])
    np.testing.assert_allclose(found.classification.to_numpy(), second[1], rtol=1e-12)


def test_ml_estimates_are_stationary_points_of_the_likelihood(fitted, second):
    clusterer, X, aside = fitted
    labels, error, sizes = second
    ones = [1.0] * len(X)
    found = three_step(clusterer, X, covariates=aside[["number", "group"]])
    design = np.column_stack([np.ones(len(X)), aside["number"], aside["group"] == "b"]).tolist()
    beta = found.estimates["estimate"].to_numpy()
    assert found.correction == "ml" and found.converged
    assert found.estimates["term"].tolist() == ["(intercept)", "number", "group=b"] * 2

    def likelihood(beta):
        return oracle.membership_log_likelihood(beta.reshape(2, 3).tolist(), design, labels, error, ones)

    # rounding of a likelihood of some 500 nats over a step of 1e-5
    np.testing.assert_allclose(slopes(likelihood, beta), 0, atol=1e-4)
    assert likelihood(beta) > max(likelihood(beta + d) for d in 0.05 * np.eye(6))
    votes = three_step(clusterer, X, outcome=aside["vote"])
    tables = votes.estimates["estimate"].to_numpy().reshape(3, 3)
    codes = aside["vote"].map({"x": 0, "y": 1, "z": 2}).tolist()

    def by_two(free):  # the last state follows from the others
        full = np.column_stack([free.reshape(3, 2), 1 - free.reshape(3, 2).sum(axis=1)])
        return oracle.state_log_likelihood(full.tolist(), codes, labels, error, sizes, ones)

    np.testing.assert_allclose(tables.sum(axis=1), 1)
    np.testing.assert_allclose(slopes(by_two, tables[:, :2].ravel()), 0, atol=1e-4)
    incomes = three_step(clusterer, X, outcome=aside["income"], correction="ml").estimates["estimate"].to_numpy()
    solution = steps.compare_means(
        aside["income"].to_numpy(), steps.Assigned(*map(np.array, second)), np.ones(len(X)), "ml"
    )
    np.testing.assert_allclose(solution.estimates[:3], incomes, rtol=1e-9)

    def normal(theta):
        return oracle.normal_log_likelihood(*theta.reshape(2, 3), aside["income"], labels, error, sizes, ones)

    np.testing.assert_allclose(slopes(normal, solution.estimates), 0, atol=1e-4)


def test_bch_weights_invert_the_error_matrix(fitted, second):
    clusterer, X, aside = fitted
    labels, error, _ = second
    weights = np.linalg.inv(error)[labels]
    found = three_step(clusterer, X, outcome=aside["income"])
    assert found.correction == "bch" and found.n_samples == 500 and found.n_left_out == 0
    wanted = aside["income"].to_numpy() @ weights / weights.sum(axis=0)
    np.testing.assert_allclose(found.estimates["estimate"], wanted, rtol=1e-9)


def test_the_slopes_of_the_error_matrix_are_differences(fitted):
    clusterer, X, _ = fitted
    fit, step = clusterer._result, 1e-6
    codes, k = clusterer._encode(X), 3
    weights = np.random.default_rng(0).random(len(codes)) + 0.5

    def error_and_sizes(sizes, table):
        log_p = np.log(sizes) + np.log(table)[codes + fit.state_start[:-1]].sum(axis=1)
        r = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        r /= r.sum(axis=1, keepdims=True)
        _, error, shares = oracle.error_matrix(r.tolist(), weights)
        return np.concatenate([np.ravel(error), shares])

    def moved(p, i, by):
        q = p.copy()
        q[i] *= np.exp(by)
        return q / q.sum()

    scores = [cluster_scores(codes, None, fit, c) for c in range(k)]
    found = steps.error_slopes(scores, weights, clusterer.predict_proba(X))
    sizes = [error_and_sizes(moved(fit.theta_c, 1, by), fit.theta) for by in (step, -step)]
    np.testing.assert_allclose(found[1], (sizes[0] - sizes[1]) / (2 * step), atol=1e-6)
    for cluster, state in ((0, 3), (2, 8)):  # the second state of column 1, the first of column 4
        first = fit.state_start[state // 2]
        ends = []
        for by in (step, -step):
            table = fit.theta.copy()
            table[first : first + 2, cluster] = moved(table[first : first + 2, cluster], state - first, by)
            ends.append(error_and_sizes(fit.theta_c, table))
        line = found[k + cluster * len(fit.theta) + state]
        np.testing.assert_allclose(line, (ends[0] - ends[1]) / (2 * step), atol=1e-6)


# ------------------------------------------------------------------------------- against peers and closed forms


@pytest.mark.parametrize("correction", ["ML", "BCH"])
@pytest.mark.parametrize("structural", ["covariate", "gaussian_diag", "categorical"])
def test_estimates_agree_with_stepmix(fitted, correction, structural):
    stepmix = pytest.importorskip("stepmix.stepmix")
    clusterer, X, aside = fitted
    given = {
        "covariate": np.column_stack([aside["number"], aside["group"] == "b"]).astype(float),
        "gaussian_diag": aside[["income"]].to_numpy(),
        "categorical": aside[["vote"]].replace({"x": 0, "y": 1, "z": 2}).to_numpy(int),
    }[structural]
    newton = {"max_iter": 100, "tol": 1e-10} if structural == "covariate" else {}
    theirs = stepmix.StepMix(
        3,
        n_steps=3,
        measurement="binary",
        structural=structural,
        correction=correction,
        structural_params=newton,
        n_init=4,
        abs_tol=1e-11,
        rel_tol=1e-14,
        max_iter=3000,
        random_state=1,
        progress_bar=0,
    )
    theirs.fit(X, given)
    ours = clusterer.predict_proba(X)
    gaps = np.abs(ours[:, :, None] - theirs.predict_proba_class(X)[:, None, :]).mean(axis=0)
    order = gaps.argmin(axis=1)
    assert gaps.min(axis=1).max() < 1e-4  # the same clusters
    what = {
        "covariate": {"covariates": given},
        "gaussian_diag": {"outcome": aside["income"]},
        "categorical": {"outcome": aside["vote"]},
    }[structural]
    found = three_step(clusterer, X, correction=correction.lower(), **what).estimates["estimate"].to_numpy()
    parameters = theirs.get_parameters()["structural"]
    wanted = np.asarray(parameters[{"covariate": "beta", "gaussian_diag": "means", "categorical": "pis"}[structural]])
    wanted = wanted[order]
    if structural == "covariate":
        wanted = (wanted - wanted[0])[1:]
    np.testing.assert_allclose(found, wanted.ravel(), atol=1e-3)


def test_without_a_correction_it_is_plain_regression_and_plain_means(fitted):
    clusterer, X, aside = fitted
    labels = clusterer.labels_
    found = three_step(clusterer, X, outcome=aside["income"], correction="none").estimates
    for c in range(3):
        values = aside["income"][labels == c]
        assert found["estimate"][c] == pytest.approx(values.mean())
        assert found["standard_error"][c] == pytest.approx(values.std(ddof=0) / np.sqrt(len(values)), rel=1e-6)
    found = three_step(clusterer, X, covariates=aside[["number"]], correction="none", reference=1).estimates
    plain = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(aside[["number"]], labels)
    coefficients = (plain.coef_ - plain.coef_[1])[[0, 2], 0]
    np.testing.assert_allclose(found["estimate"][found["term"] == "number"], coefficients, atol=1e-4)
    assert found["cluster"].tolist() == [0, 0, 2, 2]
    np.testing.assert_allclose(found["odds_ratio"], np.exp(found["estimate"]))


def test_the_correction_undoes_the_shrinkage_and_widens_the_intervals(fitted):
    clusterer, X, aside = fitted
    plain, corrected = (
        three_step(clusterer, X, outcome=aside["income"], correction=c).estimates for c in ("none", "bch")
    )
    assert np.ptp(plain["estimate"]) < 0.9 * 25 and abs(np.ptp(corrected["estimate"]) - 25) < 2.5
    assert (corrected["standard_error"] > plain["standard_error"]).all()


# ------------------------------------------------------------------------------------------------- the face


def test_weights_repeat_rows_or_count_by_their_proportions():
    X, aside = generated(300)
    weights = np.random.default_rng(1).integers(0, 3, 300)
    repeated = np.repeat(np.arange(300), weights)
    settings = {"alpha": 0.1, "n_init": 4, "random_state": 0}
    clusterer = LatentClassClusterer(3, **settings).fit(X, sample_weight=weights)
    one = three_step(clusterer, X, covariates=aside[["number"]], sample_weight=weights)
    two = three_step(clusterer, X.iloc[repeated], covariates=aside[["number"]].iloc[repeated])
    pd.testing.assert_frame_equal(one.estimates, two.estimates, rtol=1e-6)
    sampling = LatentClassClusterer(3, weight_type="sampling", **settings).fit(X, sample_weight=weights)
    one, ten = (
        three_step(sampling, X, outcome=aside["vote"], sample_weight=factor * weights).estimates for factor in (1, 10)
    )
    pd.testing.assert_frame_equal(one, ten, rtol=1e-6)


def test_columns_of_x_by_name_and_rows_with_gaps(fitted):
    clusterer, X, aside = fitted
    both = X.join(aside)
    named = three_step(clusterer, both, covariates=["number", "group"])
    given = three_step(clusterer, X, covariates=aside[["number", "group"]])
    pd.testing.assert_frame_equal(named.estimates, given.estimates)
    assert named.tests["test"].tolist() == ["number", "group"] and named.tests["df"].tolist() == [2, 2]
    assert (named.tests["p_value"] < 0.01).all()
    gaps = aside["vote"].mask(np.arange(500) < 20)
    found = three_step(clusterer, X, outcome=gaps)
    assert (found.n_samples, found.n_left_out) == (480, 20)
    assert found.tests["test"].tolist() == ["all clusters are equal", "0 = 1", "0 = 2", "1 = 2"]
    assert found.tests["df"].tolist() == [4, 2, 2, 2]
    structural = StructuralEMClusterer(2, n_init=1, random_state=0).fit(X)
    assert len(three_step(structural, X, outcome=aside["income"]).estimates) == 2


def test_a_result_prints_as_its_estimates(fitted):
    clusterer, X, aside = fitted
    found = three_step(clusterer, X, outcome=aside["income"])
    first, header, *lines = repr(found).splitlines()
    assert first == "ThreeStep(correction='bch', 500 rows, converged=True)"
    assert header.split()[-1] == found.estimates.columns[-1]
    assert len(lines) == len(found.estimates)


def test_refusals_name_the_column_and_the_cure(fitted):
    clusterer, X, aside = fitted
    for given, said in (
        ({}, "one of the two"),
        ({"covariates": aside, "outcome": aside["vote"]}, "one of the two"),
        ({"outcome": "vote"}, "'vote' is not a column of X"),
        ({"outcome": aside["vote"][:10]}, "'vote' has 10 values for 500 rows"),
        ({"covariates": aside[["number"]].assign(twice=2 * aside["number"])}, "are redundant"),
        ({"covariates": aside[["number"]].assign(number=np.inf)}, "'number' holds infinite numbers"),
        ({"outcome": aside["number"].astype(str)}, "500 different values, the limit is 50"),
        ({"covariates": aside[["number"]], "correction": "BCH?"}, "correction='BCH\\?'"),
        ({"covariates": aside[["number"]], "reference": 3}, "reference=3"),
    ):
        with pytest.raises(ValueError, match=said):
            three_step(clusterer, X, **given)
    with pytest.raises(ValueError, match="one cluster"):
        three_step(LatentClassClusterer(1).fit(X), X, outcome=aside["vote"])
    copy = pd.Series(np.where(clusterer.labels_ == 0, "in", "out"), name="copy")
    with pytest.warns(UserWarning, match="told apart by a value"):
        three_step(clusterer, X, covariates=copy, correction="none")
