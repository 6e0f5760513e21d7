"""The order estimators against kept vectors, through the public faces: fixed orders, given orders, all orders, every DAG once."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pgm_bma import FixedOrderClassifier, GibbsSampler, OrderAveragedClassifier, OrderPosterior

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "order.json").read_text())["cases"]
PRIOR = {"fk": "friedman_koller", "mdl": "mdl", "uniform": "uniform"}
ATOL = 1e-9  # the agreement that the project asks for
cases = pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])


def parameters(case):
    names = [f"v{k}" for k in range(len(case["cards"]))]
    return {
        "max_indegree": case["max_parents"],
        "structure_prior": PRIOR[case["structure_prior"]],
        "equivalent_sample_size": case["ess"],
        "parameter_prior": "paper",
        "state_names": {name: list(range(card)) for name, card in zip(names, case["cards"])},
    }


def read(case):
    names = [f"v{k}" for k in range(len(case["cards"]))]
    target = names[case["class_index"]]
    frame = pd.DataFrame(np.array(case["data"], dtype=int).reshape(-1, len(names)), columns=names)
    rows = pd.DataFrame(case["rows"], columns=names)
    return names, target, frame, rows.drop(columns=target), rows[target]


def matrix(edges, names):
    return edges.loc[names, names].to_numpy()


@cases
def test_vectors_fixed_order(case):
    names, target, frame, X, y = read(case)
    for k, truth in enumerate(case["orders"]):
        order = [names[v] for v in truth["order"]]
        classifier = FixedOrderClassifier(order, **parameters(case)).fit(frame, target)
        assert classifier.order_ == tuple(order)
        assert classifier.order_log_score_ == pytest.approx(truth["log_score"], abs=ATOL)
        np.testing.assert_allclose(matrix(classifier.edge_posterior_, names), truth["edge_posterior"], atol=ATOL)
        np.testing.assert_allclose(classifier.log_joint(X, y), truth["log_joint"], atol=ATOL)
        np.testing.assert_allclose(classifier.predict_proba(X), truth["class_posterior"], atol=ATOL)
        hidden = X.astype(float)
        hidden.loc[:, [names[v] for v in case["missing"]["unobserved"]]] = np.nan
        expected = case["missing"]["log_marginal_class_included"][k]
        np.testing.assert_allclose(classifier.log_joint(hidden, y), expected, atol=ATOL)


@cases
def test_vectors_mean_of_given_orders(case):
    names, target, frame, X, _ = read(case)
    orders = [[names[v] for v in truth["order"]] for truth in case["orders"]]
    classifier = OrderAveragedClassifier(method="given", sampler=GibbsSampler(init=orders), **parameters(case)).fit(
        frame, target
    )
    np.testing.assert_allclose(classifier.predict_proba(X), case["class_posterior_mean_of_the_orders"], atol=ATOL)
    hidden = X.astype(float)
    hidden.loc[:, [names[v] for v in case["missing"]["unobserved"]]] = np.nan
    expected = case["missing"]["class_posterior_marginalised_mean_of_the_orders"]
    np.testing.assert_allclose(classifier.predict_proba(hidden), expected, atol=ATOL)
    assert classifier.orders_ == [tuple(order) for order in orders] and classifier.method_ == "given"


@cases
def test_vectors_all_orders(case):
    names, target, frame, X, y = read(case)
    truth = case["all_orders_exact"]
    classifier = OrderAveragedClassifier(random_state=0, **parameters(case)).fit(frame, target)
    np.testing.assert_allclose(classifier.log_joint(X, y), truth["log_joint"], atol=ATOL)
    np.testing.assert_allclose(classifier.predict_proba(X), truth["class_posterior"], atol=ATOL)
    posterior = OrderPosterior(random_state=0, **parameters(case)).fit(frame)
    for estimator in (classifier, posterior):
        assert estimator.method_ == "exact" and estimator.structure_weighting_ == "order"
        assert estimator.log_evidence_ == pytest.approx(truth["log_total"], abs=ATOL)
        np.testing.assert_allclose(matrix(estimator.edge_posterior_, names), truth["edge_posterior"], atol=ATOL)
        assert estimator.best_log_score_ == pytest.approx(case["map_dag"]["log_score"], abs=ATOL)
    arcs = {(names[p], names[v]) for v, parents in enumerate(case["map_dag"]["parents"]) for p in parents}
    assert set(posterior.causal_graph_.edges) == set(posterior.model_.edges) == arcs
    scores = posterior.family_scores_
    assert list(scores.columns) == ["child", "parents", "log_marginal_likelihood", "log_prior"]
    found = {(row.child, row.parents): row for row in scores.itertuples()}
    assert len(found) == len(scores) == len(case["family_scores"])
    for child, parents, log_score, log_marginal in case["family_scores"]:
        row = found[names[child], tuple(names[p] for p in parents)]
        assert row.log_marginal_likelihood == pytest.approx(log_marginal, abs=ATOL)
        assert row.log_prior + row.log_marginal_likelihood == pytest.approx(log_score, abs=ATOL)


@pytest.mark.parametrize("case", [c for c in VECTORS if "structure_modular_exact" in c], ids=lambda c: c["name"])
def test_vectors_every_dag_once(case):
    names, target, frame, X, y = read(case)
    truth = case["structure_modular_exact"]
    settings = {"structure_weighting": "dag", "random_state": 0, **parameters(case)}
    classifier = OrderAveragedClassifier(**settings).fit(frame, target)
    posterior = OrderPosterior(**settings).fit(frame)
    np.testing.assert_allclose(classifier.log_joint(X, y), truth["log_joint"], atol=ATOL)
    np.testing.assert_allclose(posterior.log_joint(X.assign(**{target: y})), truth["log_joint"], atol=ATOL)
    for estimator in (classifier, posterior):
        assert estimator.log_evidence_ == pytest.approx(truth["log_total"], abs=ATOL)
        np.testing.assert_allclose(matrix(estimator.edge_posterior_, names), truth["edge_posterior"], atol=ATOL)
        assert estimator.edge_posterior_.attrs["structure_weighting"] == "dag"
        assert estimator.edge_graph_.graph["structure_weighting"] == "dag"
