"""What a notebook shows of fitted estimators and graphs, and what first guesses of names are answered with."""

import pickle
from itertools import pairwise
from types import SimpleNamespace

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.plotting.notebook import draw_estimator

SMALL = 300_000  # characters of a notebook's cell
MAKERS = {
    "NaiveBayesClassifier": {},
    "AveragedNaiveBayesClassifier": {},
    "TANClassifier": {},
    "ForestAveragedClassifier": {},
    "FixedOrderClassifier": {},
    "OrderAveragedClassifier": {"method": "exact"},
    "AdditiveBayesClassifier": {},
    "KikuchiBayesClassifier": {},
    "OrderPosterior": {"method": "exact"},
    "LatentClassClusterer": {"n_clusters": 2, "n_init": 2, "random_state": 0},
    "EMAClusterer": {"n_clusters": 2, "n_init": 2, "random_state": 0},
    "StructuralEMClusterer": {"n_clusters": 2, "n_init": 2, "random_state": 0},
    "ForestAveragedClusterer": {"n_clusters": 2, "n_init": 2, "random_state": 0},
}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 80)
    X = pd.DataFrame({c: np.where(rng.random(80) < 0.75, y, rng.integers(0, 2, 80)) for c in ("a<b", "c", "d", "e")})
    X, y = X.astype(str), pd.Series(y, name="class").map({0: "no", 1: "yes"})
    found = {}
    for name, parameters in MAKERS.items():
        estimator = getattr(pgm_bma, name)(**parameters)
        found[name] = estimator.fit(X, y) if "Classifier" in name else estimator.fit(X)
    return found


@pytest.mark.parametrize("name", MAKERS)
def test_a_notebook_shows_words_and_a_picture_beside_the_parameters(fitted, name):
    estimator, shown = fitted[name], plt.get_fignums()  # other tests may have left some
    html = estimator._repr_mimebundle_()["text/html"]
    assert html.count("data:image/png;base64,") == 1 and len(html) < SMALL
    assert f"<b>{name}</b> fitted on 80 rows x 4 columns" in html and "sk-" in html  # scikit-learn's box is there too
    assert "a<b" not in html.partition("class='pgm-bma'")[2]  # names are texts
    assert estimator._repr_html_().count("data:image/png") == 1
    assert "pgm-bma" not in getattr(pgm_bma, name)(**MAKERS[name])._repr_mimebundle_()["text/html"]  # not fitted
    assert plt.get_fignums() == shown  # nothing is shown twice


@pytest.mark.parametrize("name", MAKERS)
def test_every_estimator_plots(fitted, name):
    _, ax = plt.subplots()
    assert fitted[name].plot(ax=ax) is ax and (ax.patches or ax.images or ax.lines)
    plt.close("all")


def test_plot_of_an_unfitted_estimator_says_so():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        pgm_bma.EMAClusterer().plot()


def test_graphs_of_results_show_themselves_and_stay_networkx(fitted):
    regions = fitted["KikuchiBayesClassifier"].region_graph_
    posterior = fitted["OrderPosterior"].edge_graph_
    links = fitted["KikuchiBayesClassifier"].to_networkx()
    for graph in (regions, posterior, links, posterior.subgraph(["c", "d"]).copy()):
        assert isinstance(graph, nx.Graph) and len(graph._repr_html_()) < SMALL
        assert "data:image/png" in graph._repr_html_() and graph.plot().figure is not None
        again = pickle.loads(pickle.dumps(graph))
        assert type(again) is type(graph) and nx.utils.graphs_equal(again, graph)
        plt.close("all")
    assert isinstance(posterior, nx.DiGraph) and not links.is_directed()
    assert "arcs of posterior at least 0.5" in posterior._repr_html_()


def test_a_picture_that_cannot_be_drawn_leaves_the_words(fitted, monkeypatch):
    from pgm_bma import plotting

    def refuse(*_, **__):
        raise ValueError("too < large")

    monkeypatch.setattr(plotting, "plot_relevance", refuse)
    html = fitted["NaiveBayesClassifier"]._repr_html_()
    assert "No picture: too &lt; large" in html and "fitted on 80 rows" in html


def test_many_columns_are_drawn_as_a_network_not_as_cells():
    names = [f"v{i}" for i in range(60)]
    graph = nx.DiGraph()
    graph.add_weighted_edges_from([(a, b, 0.9) for a, b in pairwise(names)], weight="posterior")
    many = SimpleNamespace(_picture="plot_arc_posteriors", n_features_in_=60, edge_graph_=graph)
    ax = draw_estimator(many)
    assert not ax.images and {text.get_text() for text in ax.texts} >= set(names)
    few = SimpleNamespace(_picture="plot_arc_posteriors", n_features_in_=5, edge_graph_=graph.subgraph(names[:5]))
    assert draw_estimator(few).images
    plt.close("all")
