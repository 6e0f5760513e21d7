"""EM and EMA against the reference vectors, through the public classes of both faces."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgm_bma import EMAClusterer, EMAEstimator, EMEstimator, LatentClassClusterer
from pgm_bma.networks.objects import augmented_network

CASES = json.loads((Path(__file__).parents[1] / "vectors" / "ema.json").read_text())["cases"]
TOLERANCE = 1e-9  # the contract's own
BITS = np.log(2)
UPDATES = [
    (case, method, key)
    for case in CASES
    for method in ("em", "ema")
    for key in ("start", *(key for key in case[method] if key.startswith("iter_")), "final")
]
ids = [f"{case['name']}-{method}-{key}" for case, method, key in UPDATES]


def table_and_start(case):
    names = [f"v{i}" for i in range(case["n"])]
    states = [range(r) for r in case["cards"]]
    start = augmented_network(
        "cluster", range(case["rC"]), case["theta_c0"], names, states, case["theta0"], latent=True
    )
    return pd.DataFrame(case["X"], columns=names), start


def iterations(key):
    """max_iter and tol that reach a key of the vectors."""
    if key == "final":
        return 1000, 1e-10
    return (0 if key == "start" else int(key.split("_")[1])), 0.0


def clusterer(case, method, key, **changes):
    max_iter, tol = iterations(key)
    X, start = table_and_start(case)
    parameters = {
        "n_clusters": case["rC"],
        "alpha": case["alpha"],
        "init": start,
        "n_init": 1,
        "preset": "paper",
        "max_iter": max_iter,
        "tol": tol,
    }
    if method == "ema":
        parameters |= {"arc_prior": case["prior_dep"]}
    build = EMAClusterer if method == "ema" else LatentClassClusterer
    return build(**{**parameters, **changes}).fit(X), X


@pytest.mark.filterwarnings("ignore:n_clusters=")  # one case has a single row
@pytest.mark.parametrize("case, method, key", UPDATES, ids=ids)
def test_scikit_learn_face(case, method, key):
    model, X = clusterer(case, method, key)
    if key == "start":
        np.testing.assert_allclose(model.predict_proba(X), case["responsibilities_theta0"], atol=TOLERANCE)
        np.testing.assert_allclose(model.log_likelihood_, case["loglik_theta0"], atol=TOLERANCE)
        assert model.n_iter_ == 0 and len(model.score_path_) == 1
        return
    expected = case[method][key]
    sizes, tables = model._profiles()
    np.testing.assert_allclose(sizes, expected["theta_c"], atol=TOLERANCE)
    for table, want in zip(tables, expected["theta"]):
        np.testing.assert_allclose(table, want, atol=TOLERANCE)
    np.testing.assert_allclose(model.log_likelihood_, expected["loglik"], atol=TOLERANCE)
    np.testing.assert_allclose(model.cluster_dependence_ / BITS, expected["I_P_bits"], atol=TOLERANCE)
    if method == "ema":
        np.testing.assert_allclose(model.arc_posterior_, expected["arc_posterior"], atol=TOLERANCE)
    if key == "final":
        np.testing.assert_allclose(model.predict_proba(X), expected["responsibilities"], atol=TOLERANCE)
        assert model.labels_.tolist() == expected["labels"]
        assert model.n_iter_ == expected["iterations"] and model.converged_ == expected["converged"]
    else:
        assert model.n_iter_ == int(key.split("_")[1]) and len(model.score_path_) == model.n_iter_ + 1
    if "cheeseman_stutz" in expected:
        np.testing.assert_allclose(model.cheeseman_stutz_, expected["cheeseman_stutz"], atol=TOLERANCE)


@pytest.mark.parametrize("case, method, key", UPDATES, ids=ids)
def test_pgmpy_face(case, method, key):
    max_iter, atol = iterations(key)
    X, start = table_and_start(case)
    keywords = {"init_cpds": start, "n_init": 1, "alpha": case["alpha"], "max_iter": max_iter, "atol": atol}
    if method == "ema":
        keywords |= {"preset": "paper", "arc_prior": case["prior_dep"]}
    estimator = (EMAEstimator if method == "ema" else EMEstimator)(**keywords).fit(start, X)
    expected = case[method].get(
        key, {"theta_c": case["theta_c0"], "theta": case["theta0"], "loglik": case["loglik_theta0"]}
    )
    tables = {cpd.variable: cpd for cpd in estimator.parameters_}
    np.testing.assert_allclose(tables["cluster"].values, expected["theta_c"], atol=TOLERANCE)
    for name, want in zip(X, expected["theta"]):
        np.testing.assert_allclose(tables[name].values.T, want, atol=TOLERANCE)
    np.testing.assert_allclose(estimator.log_likelihood_, expected["loglik"], atol=TOLERANCE)
    if key == "final":
        assert estimator.n_iter_ == expected["iterations"]


@pytest.mark.filterwarnings("ignore:n_clusters=")  # one case has a single row
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_largest_change_of_an_update(case):
    """`max_abs_change` of the vectors is what `tol` is compared with: just above it the loop stops, just below it goes on."""
    for method in ("em", "ema"):
        change = case[method]["iter_1"]["max_abs_change"]
        stopped, _ = clusterer(case, method, "start", max_iter=2, tol=change * (1 + 1e-9))
        went_on, _ = clusterer(case, method, "start", max_iter=2, tol=change * (1 - 1e-9))
        assert (stopped.n_iter_, went_on.n_iter_) == (1, 2)
