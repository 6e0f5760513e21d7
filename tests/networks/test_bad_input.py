"""Public functions of networks answer bad input with an error that names the parameter, at once."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgm_bma
from pgm_bma.networks import simulation

ASIA = pgm_bma.load_network("asia")
ROWS = pgm_bma.simulate(ASIA, 20, random_state=0)


@pytest.mark.parametrize(
    "model", [None, 3, "asia", [], {}, pd.DataFrame(), nx.DiGraph([("a", "b")])], ids=lambda value: type(value).__name__
)
@pytest.mark.parametrize("function", [pgm_bma.log_likelihood, pgm_bma.predict_proba, pgm_bma.impute])
def test_what_is_no_network_is_refused(function, model):
    with pytest.raises(TypeError, match="expected a DiscreteBayesianNetwork, got"):
        function(model, ROWS)


@pytest.mark.parametrize("model", [None, "asia", nx.Graph([("a", "b")])], ids=lambda value: type(value).__name__)
def test_em_wants_a_structure(model):
    with pytest.raises(TypeError, match="model must be a DiscreteBayesianNetwork or a DAG"):
        pgm_bma.EMEstimator().fit(model, ROWS)


@pytest.mark.parametrize("weight", ["x", {}, -1.0, np.nan, [1.0]])
def test_em_names_the_weight_that_is_wrong(weight):
    model = DiscreteBayesianNetwork([("smoke", "lung")])
    with pytest.raises(ValueError, match="sample_weight"):
        pgm_bma.EMEstimator().fit(model, ROWS, sample_weight=weight)


@pytest.mark.parametrize("model", [None, 3, "asia", [], {}], ids=repr)
def test_a_blanket_wants_a_graph(model):
    with pytest.raises(TypeError, match="expected a pgmpy network"):
        pgm_bma.effective_markov_blanket(model, "lung")


def test_a_blanket_wants_directions_and_known_nodes():
    with pytest.raises(ValueError, match="undirected"):
        pgm_bma.effective_markov_blanket(nx.Graph([("a", "b")]), "a")
    with pytest.raises(ValueError, match="cycle"):
        pgm_bma.effective_markov_blanket(nx.DiGraph([("a", "b"), ("b", "a")]), "a")
    for unobserved in (3, None, "nobody", ["nobody"]):
        with pytest.raises(ValueError, match="is not a node of the model"):
            pgm_bma.effective_markov_blanket(ASIA, "lung", unobserved)


def test_a_blanket_of_a_fitted_estimator_is_that_of_its_graph():
    posterior = pgm_bma.OrderPosterior(method="exact").fit(ROWS.iloc[:, :3])
    node = ROWS.columns[0]
    wanted = pgm_bma.effective_markov_blanket(posterior.causal_graph_, node)
    assert pgm_bma.effective_markov_blanket(posterior, node) == wanted


@pytest.mark.parametrize("n", [-1, 1.5, "x", None, True, 10**12, 10**30])
def test_a_number_of_rows_that_cannot_be_drawn(n):
    with pytest.raises(ValueError, match=f"n={n!r} must be an integer at least 0"):
        pgm_bma.simulate(ASIA, n)


@pytest.mark.parametrize("connected", [None, {}, "yes", 1.0])
def test_connected_is_a_flag(connected):
    with pytest.raises(ValueError, match=r"connected=.* must be True or False"):
        pgm_bma.random_dag(4, connected=connected)


def test_work_is_estimated_before_it_begins():
    with pytest.raises(ValueError, match=r"20 minutes.*n_steps"):
        pgm_bma.random_dag(5000)


def test_a_long_chain_in_pieces_has_the_law_of_one_piece(monkeypatch):
    """Number of arcs of uniform connected DAGs with 4 nodes: their mean over 2000 draws within 4 standard errors."""
    rng = np.random.default_rng(0)

    def sizes():
        return [sum(map(len, simulation.draw_parents(4, 3, rng, n_steps=300))) for _ in range(2000)]

    whole = sizes()
    monkeypatch.setattr(simulation, "STEPS_AT_ONCE", 7)
    pieces = sizes()
    error = np.sqrt((np.var(whole) + np.var(pieces)) / 2000)
    assert abs(np.mean(whole) - np.mean(pieces)) < 4 * error
