"""What a notebook shows of fitted estimators and graphs, and what first guesses of names are answered with."""

import inspect
import pickle

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.foundation.faces.hints import LEARNED, NAMES, PARAMETERS

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


# ------------------------------------------------------------------------------------------------- first guesses

# what a scikit-learn person tries first: (kind, guess), with what must come: None = it is there
SKLEARN = [
    ("classifier", "predict"), ("classifier", "predict_proba"), ("classifier", "predict_log_proba"), ("classifier", "score"),
    ("classifier", "classes_"), ("classifier", "feature_importances_"), ("classifier", "feature_names_in_"),
    ("classifier", "n_features_in_"), ("classifier", "coef_"), ("classifier", "class_log_prior_"),
    ("classifier", "feature_log_prob_"), ("classifier", "decision_function"), ("classifier", "partial_fit"),
    ("clusterer", "labels_"), ("clusterer", "fit_predict"), ("clusterer", "cluster_centers_"), ("clusterer", "means_"),
    ("clusterer", "weights_"), ("clusterer", "inertia_"), ("clusterer", "lower_bound_"), ("clusterer", "score_samples"),
    ("clusterer", "bic"), ("clusterer", "sample"), ("clusterer", "n_iter_"), ("clusterer", "converged_"),
]  # fmt: skip
PGMPY = [
    ("classifier", "model_"), ("classifier", "get_cpds"), ("classifier", "cpds"), ("classifier", "nodes"),
    ("classifier", "edges"), ("classifier", "query"), ("classifier", "map_query"), ("classifier", "check_model"),
    ("classifier", "get_markov_blanket"), ("classifier", "predict_probability"), ("classifier", "simulate"),
    ("classifier", "states"), ("classifier", "causal_graph_"), ("posterior", "estimate"), ("posterior", "causal_graph_"),
    ("posterior", "adjacency_matrix_"), ("posterior", "dag_"), ("posterior", "to_dag"), ("posterior", "local_score"),
    ("clusterer", "get_parameters"), ("clusterer", "to_bif"), ("clusterer", "state_names_"),
]  # fmt: skip
KINDS = {"classifier": "AveragedNaiveBayesClassifier", "clusterer": "EMAClusterer", "posterior": "OrderPosterior"}


@pytest.mark.parametrize(("kind", "guess"), SKLEARN + PGMPY)
def test_a_first_guess_is_there_or_names_the_right_one(fitted, kind, guess):
    estimator = fitted[KINDS[kind]]
    if guess not in LEARNED:
        assert getattr(estimator, guess) is not None
        return
    with pytest.raises(AttributeError, match=f"{guess}'; here it is "):
        getattr(estimator, guess)
    assert not hasattr(estimator, guess)


def test_guesses_of_the_package_are_answered():
    for guess in NAMES:
        with pytest.raises(AttributeError, match=f"'{guess}'; here it is "):
            getattr(pgm_bma, guess)
    with pytest.raises(AttributeError, match=r"'nothing_like_it'$"):
        _ = pgm_bma.nothing_like_it


def test_answers_name_what_exists(fitted):
    """Every name of ours in an answer must exist: hints must not lie."""
    import re

    names = set(pgm_bma.__all__)
    for answer in NAMES.values():
        own = re.findall(r"(?<![.\w])([A-Za-z_]+)(?=[(,;. ]|$)", answer)
        assert names & set(own) or "pgmpy." in answer or "sklearn." in answer or "plot" in answer, answer
    estimators = list(fitted.values())
    for guess, answer in LEARNED.items():
        first = re.match(r"(?:pgm_bma\.)?(\w+)", answer)[1]
        assert any(hasattr(e, first) for e in estimators) or hasattr(pgm_bma, first), (guess, answer)


@pytest.mark.parametrize("guess", PARAMETERS)
def test_parameters_of_other_libraries_name_ours(guess):
    classes = [getattr(pgm_bma, name) for name in MAKERS]
    having = [c for c in classes if PARAMETERS[guess] in c._get_param_names() and guess not in c._get_param_names()]
    assert having
    for c in having:
        with pytest.raises(TypeError, match=f"{c.__name__} has no parameter '{guess}'; here it is {PARAMETERS[guess]}"):
            c(**{guess: 1})
        assert "n_jobs" in inspect.signature(c).parameters or "state_names" in inspect.signature(c).parameters


def test_evidence_is_drawn(fitted):
    from pgm_bma.plotting import plot_evidence

    model = fitted["AveragedNaiveBayesClassifier"]
    row = {"a<b": "0", "c": "1", "d": "1", "e": "1"}
    odds = model.explain(row, log_odds=("yes", "no"))
    ax = plot_evidence(odds, top=3)
    lengths = [bar.get_width() for bar in ax.patches]
    wanted = odds.iloc[np.argsort(-odds.abs().to_numpy(), kind="stable")]
    np.testing.assert_allclose(lengths, [*wanted[:3], wanted[3:].sum()])
    assert [t.get_text() for t in ax.get_yticklabels()][-1] == "2 weaker ones together"
    assert ax.get_xlabel() == "nats for yes, against no"
    both = plot_evidence(model.explain(row), log_odds=("no", "yes"))
    np.testing.assert_allclose(both.patches[0].get_width(), -wanted.iloc[0])
    with pytest.raises(ValueError, match="draws one row"):
        plot_evidence(model.explain(pd.DataFrame([row, row])))
    assert plot_evidence(pd.Series([np.inf, -1.0], ["x", "y"])).texts[0].get_text() == "+∞"
    plt.close("all")
