"""Our estimators as structure learners of pgmpy: its base class, its graphs, its metrics."""

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from pgmpy.base import DAG
from pgmpy.causal_discovery import HillClimbSearch
from pgmpy.metrics import SHD, AdjacencyConfusionMatrix, StructureScore
from sklearn.base import clone

import pgm_bma
from pgm_bma import (
    EMAClusterer,
    ForestAveragedClassifier,
    ForestAveragedClusterer,
    OrderPosterior,
    StructuralEMClusterer,
    StructureLearner,
    TANClassifier,
)

BASE = next(kind for kind in HillClimbSearch.__mro__ if kind.__name__.endswith("BaseCausalDiscovery"))


def rows(n=300):
    """Two clusters; d follows c inside them, the others follow the cluster alone."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, n)
    X = pd.DataFrame({name: np.where(rng.random(n) < 0.9, kind, 1 - kind) for name in "abc"})
    X["d"] = np.where(rng.random(n) < 0.9, X["c"], 1 - X["c"])
    return X.astype(str).assign(kind=kind.astype(str))


TRUE = DAG([("kind", name) for name in "abcd"] + [("c", "d")])
LEARNERS = {
    "structural": lambda: StructureLearner(
        StructuralEMClusterer(2, n_init=4, cluster_name="kind", random_state=0),
    ),
    "forest clusters": lambda: StructureLearner(
        ForestAveragedClusterer(2, n_init=4, cluster_name="kind", random_state=0)
    ),
    "forest": lambda: StructureLearner(ForestAveragedClassifier(), class_node="kind"),
    "tan": lambda: StructureLearner(TANClassifier(), class_node="kind"),
}


def fitted(name):
    learner = LEARNERS[name]()
    return learner.fit(rows() if learner.class_node else rows().drop(columns="kind"))


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_of_pgmpy_has_the_structure_of_its_estimator(name):
    learner = fitted(name)
    assert isinstance(learner, BASE) and isinstance(clone(learner), BASE)
    assert not hasattr(learner.estimator, "schema_")  # what was given stays as it was
    graph = learner.causal_graph_
    assert isinstance(graph, DAG) and set(graph.edges) == set(learner.estimator_.model_.edges)
    assert graph.latents == (set() if learner.class_node else {"kind"})
    found = {(a, b) for a in graph.nodes for b in graph.nodes if learner.adjacency_matrix_.loc[a, b]}
    assert found == set(graph.edges)
    assert list(learner.feature_names_in_) == list("abcd") + ["kind"] * bool(learner.class_node)
    assert learner.n_features_in_ == len(learner.feature_names_in_)
    again = pickle.loads(pickle.dumps(learner))
    assert set(again.causal_graph_.edges) == set(graph.edges)


@pytest.mark.parametrize("name", ["structural", "forest clusters", "forest"])
def test_metrics_of_pgmpy_take_it(name):
    learner = fitted(name)
    arcs, true = set(learner.causal_graph_.edges), set(TRUE.edges)
    apart = {frozenset(arc) for arc in arcs ^ true}  # pairs with an arc too many, too few or turned round
    assert learner.score(true_graph=TRUE) == SHD()(TRUE, learner.causal_graph_) == len(apart)
    pairs, true_pairs = ({frozenset(arc) for arc in some} for some in (arcs, true))
    found = AdjacencyConfusionMatrix(metrics=["precision"])(TRUE, learner.causal_graph_)
    assert found["precision"] == pytest.approx(len(pairs & true_pairs) / len(pairs))
    assert learner.score(true_graph=learner.causal_graph_, metric=SHD()) == 0


def test_metrics_of_data():
    data, learner = rows(), fitted("forest")
    own = StructureScore(scoring_method="bdeu")(X=data, causal_graph=learner.causal_graph_)
    assert learner.score(X=data, metric=StructureScore(scoring_method="bdeu")) == own
    with pytest.raises(ValueError, match=r"\['kind'\] are not in both"):
        fitted("structural").score(X=data.drop(columns="kind"))
    with pytest.raises(ValueError, match=r"\['kind'\] are not in both.*remove_node"):
        learner.score(true_graph=DAG([("c", "d"), ("a", "b")]))
    with pytest.raises(ValueError, match="either X or true_graph"):
        learner.score()


def test_weights_and_missing_cells_reach_the_estimator():
    data, weights = rows(60), np.arange(60) % 3
    learner = LEARNERS["forest"]().fit(data, sample_weight=weights)
    again = LEARNERS["forest"]().fit(data.loc[np.repeat(data.index, weights)].reset_index(drop=True))
    pd.testing.assert_frame_equal(learner.estimator_.edge_posterior_, again.estimator_.edge_posterior_)
    holes = rows(60).drop(columns="kind")
    holes.loc[3, "a"] = None
    assert LEARNERS["structural"]().fit(holes).causal_graph_.number_of_nodes() == 5


@pytest.mark.parametrize(
    "estimator, class_node, message",
    [
        (EMAClusterer(2), None, "has no causal_graph_"),
        ("forest", None, "estimator='forest' has no causal_graph_"),
        (
            ForestAveragedClassifier(),
            None,
            "class_node=None is not a column of X, which a ForestAveragedClassifier needs",
        ),
        (
            StructuralEMClusterer(2),
            "kind",
            "class_node='kind', but a StructuralEMClusterer has no class; leave class_node out",
        ),
        (ForestAveragedClassifier(), "color", "class_node='color' is not a column of X"),
    ],
)
def test_what_cannot_be_is_said(estimator, class_node, message):
    with pytest.raises(ValueError, match=message):
        StructureLearner(estimator, class_node).fit(rows())


def test_probabilities_under_the_names_of_pgmpy():
    posterior = OrderPosterior(equivalent_sample_size=1.0).fit(rows())
    edges = posterior.edge_posterior_
    edge, direction = posterior.edge_prob_, posterior.direction_prob_
    assert set(edge) == set(direction) == {(a, b) for a in edges for b in edges if a != b}
    for a, b in edge:
        assert edge[a, b] == edge[b, a] == pytest.approx(edges.loc[a, b] + edges.loc[b, a], abs=1e-12)
        assert edge[a, b] * direction[a, b] == pytest.approx(edges.loc[a, b], abs=1e-12)
    no_arcs = OrderPosterior(forbidden_arcs=[(a, b) for a in edges for b in edges if a != b]).fit(rows())
    assert no_arcs.edge_prob_ == no_arcs.direction_prob_ == {}


def test_estimators_of_scikit_learn_load_no_pgmpy():
    """The base class of pgmpy comes with the classes that derive from it, not with the others."""
    code = "import sys, pgm_bma; pgm_bma.{}; print('pgmpy' in sys.modules)"
    for name, expected in (("StructuralEMClusterer", "False"), ("ForestAveragedClassifier", "False")):
        assert (
            subprocess.run(
                [sys.executable, "-c", code.format(name)], capture_output=True, text=True, check=True
            ).stdout.strip()
            == expected
        )
    assert pgm_bma.StructureLearner is StructureLearner
