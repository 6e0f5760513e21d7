"""The methods to begin with are those that the kept tables of benchmarks/default_methods name."""

from pathlib import Path

import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import pgm_bma
from tests.test_contracts import frame

RESULTS = Path(__file__).parent.parent / "benchmarks" / "results"


def test_the_default_classifier_is_the_best_of_the_kept_table():
    table = pd.read_csv(RESULTS / "default_methods_classes_summary.csv").set_index("method")
    best = table["mean"].idxmin()
    assert table["mean rank"].idxmin() == best and table["best"].idxmax() == best
    assert best == "Kikuchi" and isinstance(pgm_bma.default_classifier(), pgm_bma.AdditiveBayesClassifier)


def test_the_default_clusterer_is_the_compromise_of_the_kept_table():
    """More probable rows than EM in about its time; the methods that do better still take longer and find the classes less."""
    table = pd.read_csv(RESULTS / "default_methods_clusters_summary.csv").set_index("method")
    chosen, plain, others = table.loc["EMA"], table.loc["EM"], table.loc[["structural EM", "forest"]]
    assert chosen["mean"] > plain["mean"] and chosen["mean rank"] < plain["mean rank"]
    assert chosen["cpu s"] < 2 * plain["cpu s"] and (others["cpu s"] > 4 * chosen["cpu s"]).all()
    assert (others["mean Rand index"] < chosen["mean Rand index"]).all()
    assert isinstance(pgm_bma.default_clusterer(), pgm_bma.EMAClusterer)


@pytest.mark.parametrize("make", [pgm_bma.default_classifier, pgm_bma.default_clusterer])
def test_defaults_are_unfitted_and_take_parameters(make):
    X, y = frame()
    estimator = make(handle_unknown="error")
    assert estimator.handle_unknown == "error"
    with pytest.raises(NotFittedError):
        estimator.predict(X)
    assert len(estimator.fit(X, y).predict(X)) == len(X)
    with pytest.raises(TypeError, match="no_such_parameter"):
        make(no_such_parameter=1)
