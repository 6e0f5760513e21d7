"""Every public callable with a good call; `tries` replaces one argument after the other by something bad.

A call is (function, arguments by name). Estimators are called as "make it, fit it, predict", so that every parameter, the table,
the target and the weights are arguments alike.
"""

import inspect
import tempfile
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow
from pgmpy.models import DiscreteBayesianNetwork
from pyarrow import dataset

import pgm_bma
from pgm_bma import evaluation, metrics, plotting
from pgm_bma.catalogue import named

SMALL: dict[str, dict] = {
    **{name: {} for name in named("classifier", "clusterer", "structure")},
    "LatentClassClusterer": {"n_init": 3, "random_state": 0},
    "EMAClusterer": {"n_init": 3, "random_state": 0},
    "StructuralEMClusterer": {"n_init": 2, "random_state": 0},
    "ForestAveragedClusterer": {"n_init": 2, "random_state": 0},
    "ForestAveragedClassifier": {"n_forests": 5},
    "KikuchiBayesClassifier": {"n_resamples": 10, "random_state": 0},
    "FixedOrderClassifier": {"random_state": 0},
    "OrderAveragedClassifier": {
        "sampler": pgm_bma.GibbsSampler(tol=0.1, max_sweeps=1024, n_orders=3),
        "random_state": 0,
    },
    "OrderPosterior": {"sampler": pgm_bma.GibbsSampler(tol=0.1, max_sweeps=1024, n_orders=3), "random_state": 0},
}
DISCRETIZERS = ("MDLDiscretizer", "FrequencyDiscretizer", "WidthDiscretizer")
PGMPY_FACES = {
    "EMAEstimator": {"latent_card": {"h": 2}, "n_init": 2, "seed": 0, "show_progress": False},
    "EMEstimator": {"latent_card": {"h": 2}, "n_init": 2, "seed": 0, "show_progress": False},
    "BoundCollapseEMEstimator": {"latent_card": {"h": 2}, "n_init": 2, "seed": 0, "show_progress": False},
    "AveragedNaiveBayesEstimator": {},
}
# other processes, and messages on the screen, cost more than they tell; tests of their own have them
LEFT_OUT = {"n_jobs", "verbose", "show_progress", "threads"}

# (callable, its answers hold NaN where there is none)
NAN_IS_AN_ANSWER = {
    "bivariate_residuals": "p-values, without bootstrap",
    "goodness_of_fit": "asymptotic p-values of few rows",
    "impute": "nothing known",
    "three_step": "errors of what is not identified",
}


def tries():
    """Every (name, argument, function, good arguments) whose argument can be spoilt."""
    for name, (function, good) in calls().items():
        for argument in good:
            if argument not in LEFT_OUT:
                yield name, argument, function, good


def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 2, (12, 3)), columns=list("abc"))
    return frame.assign(c=rng.integers(0, 3, 12)).map(str)


def target():
    return pd.Series(["x", "y", "x"] * 4, name="t")


def numbers():
    return pd.DataFrame(np.random.default_rng(0).normal(size=(12, 2)), columns=["a", "b"])


@cache
def fitted(name):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "all 3 starts collapsed")  # twelve random rows have no clusters
        return fit_and_predict(getattr(pgm_bma, name), **SMALL[name], X=table(), y=target())[0]


@cache
def _averaged_terms():
    return pgm_bma.AdditiveBayesClassifier(random_state=0).fit(numbers(), target())


@cache
def _with_numbers():
    return pgm_bma.LatentClassClusterer(2, n_init=2, random_state=0).fit(numbers())


def network():
    return fitted("AveragedNaiveBayesClassifier").model_


def fit_and_predict(kind, X, y=None, sample_weight=None, **parameters):
    """Make, fit, and what a user asks for next; probabilities add up to one."""
    estimator = kind(**parameters)
    if hasattr(kind, "classes_") or "Classifier" in kind.__name__:
        estimator.fit(X, y, sample_weight=sample_weight)
        if isinstance(y, str):
            X = X.drop(columns=y)
    else:
        estimator.fit(X, sample_weight=sample_weight)
    if kind.__name__ == "OrderPosterior":
        return estimator, estimator.edge_posterior_, estimator.log_joint(X)
    found = estimator.predict_proba(X)
    if len(found) and abs(found.sum(1) - 1).max() > 1e-9:
        raise AssertionError("probabilities that do not add up to one")
    return estimator, found, estimator.predict(X)


def fit_and_transform(kind, X, y=None, sample_weight=None, **parameters):
    estimator = kind(**parameters)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    estimator.fit(X, y, **weights)
    return estimator.transform(X)


def fit_network(kind, model, data, sample_weight=None, **parameters):
    estimator = kind(**parameters)
    if kind.__name__ == "AveragedNaiveBayesEstimator":
        estimator.fit(model, data)
    else:
        estimator.fit(model, data, sample_weight=sample_weight)
    return [cpd.values for cpd in estimator.parameters_]


def _learned(X, sample_weight, **parameters):
    return pgm_bma.StructureLearner(**parameters).fit(X, sample_weight=sample_weight).adjacency_matrix_


def calls():
    """dict name -> (function, dict of good arguments, names of the arguments to spoil)."""
    found = {}
    for name, small in SMALL.items():
        kind = getattr(pgm_bma, name)
        good = {**_defaults(kind), **small, "X": table(), "sample_weight": None}
        if "Classifier" in name:
            good["y"] = target()
        found[name] = _bound(fit_and_predict, kind), good
    for name in DISCRETIZERS:
        kind = getattr(pgm_bma, name)
        good = {**_defaults(kind), "X": numbers(), "y": target(), "sample_weight": None}
        found[name] = _bound(fit_and_transform, kind), good
    latent = DiscreteBayesianNetwork([("h", "a"), ("h", "b"), ("h", "c")], latents={"h"})
    naive = DiscreteBayesianNetwork([("a", "b"), ("a", "c")])
    for name, small in PGMPY_FACES.items():
        kind = getattr(pgm_bma, name)
        model = naive if "Naive" in name else latent
        found[name] = (
            _bound(fit_network, kind),
            {**_defaults(kind), **small, "model": model, "data": table(), "sample_weight": None},
        )
    score = {**_defaults(pgm_bma.FamilyScore), "data": table()}
    found["FamilyScore"] = lambda **words: pgm_bma.FamilyScore(**words).local_score("a", ("b",)), score
    learner = {"estimator": pgm_bma.TANClassifier(), "class_node": "c", "X": table(), "sample_weight": None}
    found["StructureLearner"] = _learned, learner
    for name in ("predict", "predict_proba", "predict_log_proba", "explain", "score"):
        for kind in ("KikuchiBayesClassifier", "ForestAveragedClassifier", "OrderAveragedClassifier"):
            method = getattr(fitted(kind), name)
            found[f"{kind}.{name}"] = (
                method,
                {"X": table(), "y": target()} if name == "score" else {_first(method): table().iloc[:2]},
            )
    for name in ("predict", "predict_proba", "transform", "score", "bic", "explain", "sample"):
        for kind in ("EMAClusterer", "StructuralEMClusterer", "ForestAveragedClusterer"):
            method = getattr(fitted(kind), name)
            found[f"{kind}.{name}"] = method, {_first(method): 2 if name == "sample" else table()}
    found |= _functions() | _files() | _pictures()
    return found


def _functions():
    model, data = network(), table().assign(t=target().to_numpy())
    clusterer, kikuchi = fitted("LatentClassClusterer"), fitted("KikuchiBayesClassifier")
    truth, guess = ["a", "b"] * 6, [0, 1] * 6
    proba = np.tile([0.25, 0.75], (12, 1))
    found = {
        "average_families": {"log_scores": [0.0, 1.0], "means": [[0.5, 0.5], [0.1, 0.9]]},
        "default_classifier": {"terms": ("single", "pair")},
        "default_clusterer": {"n_clusters": 2},
        "bivariate_residuals": {"clusterer": clusterer, "X": table()},
        "three_step": {"clusterer": clusterer, "X": table(), "covariates": numbers()},
        "likelihood_ratio_test": {"clusterer": clusterer, "X": table(), "n_bootstrap": 2, "random_state": 0},
        "goodness_of_fit": {"clusterer": clusterer, "X": table(), "n_bootstrap": 2, "random_state": 0},
        "region_graph": {"initial_regions": [["a", "b"], ["b", "c"]]},
        "bound_and_collapse": {"model": model, "data": data},
        "effective_markov_blanket": {"model": model, "target": "a", "unobserved": ()},
        "log_likelihood": {"model": model, "data": data},
        "predict_proba": {"model": model, "data": data.drop(columns="a")},
        "impute": {"model": model, "data": data.drop(columns="a"), "random_state": 0},
        "load_dataset": {"name": "zoo"},
        "load_network": {"name": "asia"},
        "simulate": {"model": model, "n": 3, "random_state": 0},
        "random_dag": {"n_nodes": 3, "random_state": 0},
        "scan_table": {"table": dataset.dataset(pyarrow.table(table()))},
        "save": {"estimator": clusterer, "path": "x"},
        "metrics.clustering_accuracy": {"labels_true": truth, "labels_pred": guess},
        "metrics.holdout_log2_likelihood": {"model": clusterer, "X": table()},
        "metrics.kl_divergence": {"p": model, "q": model, "random_state": 0},
        "metrics.order_correlation": {"order": ["a", "b", "c"], "reference": ["b", "a", "c"]},
        "metrics.partition_distance": {"labels_a": truth, "labels_b": guess},
        "metrics.wins_draws_losses": {"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 4.0]},
        "evaluation.capped_log_loss": {"y": truth, "proba": proba, "classes": ["a", "b"]},
        "evaluation.paper_error": {"zero_one_error": 0.5, "n_classes": 2},
        "evaluation.marginal_losses": {"classifier": kikuchi, "X": table(), "y": target()},
        "evaluation.error_decomposition": {
            "classifier": kikuchi,
            "X_train": table(),
            "y_train": target(),
            "X_test": table(),
            "y_test": target(),
        },
    }
    return {name: (_by_name(name), {**_defaults(_by_name(name)), **good}) for name, good in found.items()}


def _files():
    """Files are spoilt elsewhere; here it is the path and the options."""
    folder = Path(tempfile.mkdtemp(prefix="pgm_bma_hostile_"))
    csv, bif, saved = folder / "a.csv", folder / "a.bif", folder / "a.pgm"
    table().to_csv(csv, index=False)
    table().to_parquet(folder / "a.parquet")
    pgm_bma.write_bif(network(), bif)
    pgm_bma.save(fitted("EMAClusterer"), saved)
    return {
        "write_bif": (pgm_bma.write_bif, {"model": network(), "path": folder / "b.bif"}),
        "read_bif": (pgm_bma.read_bif, {"path": bif}),
        "load": (pgm_bma.load, {"path": saved}),
        "write_scores": (pgm_bma.write_scores, {"scores": fitted("OrderPosterior"), "path": folder / "b.jkl"}),
        "read_scores": (
            pgm_bma.read_scores,
            {"path": pgm_bma.write_scores(fitted("OrderPosterior"), folder / "a.jkl")},
        ),
        "scan_csv": (pgm_bma.scan_csv, {**_defaults(pgm_bma.scan_csv), "files": csv}),
        "scan_parquet": (pgm_bma.scan_parquet, {**_defaults(pgm_bma.scan_parquet), "files": folder / "a.parquet"}),
    }


def _pictures():
    """Every picture of what estimators hold; closed at once."""
    clusterer, kikuchi, regions = (
        fitted("EMAClusterer"),
        fitted("KikuchiBayesClassifier"),
        pgm_bma.region_graph([["a", "b"], ["b", "c"]]),
    )
    found = {
        "plot_arc_posteriors": {"posteriors": fitted("OrderPosterior").edge_posterior_},
        "plot_bound_collapse": {"lower": [0.1, 0.2], "upper": [0.5, 0.6], "collapsed": [0.3, 0.4]},
        "plot_calibration": {"y_true": [0, 1, 1], "probabilities": [0.1, 0.5, 0.9]},
        "plot_cluster_profiles": {"model": clusterer},
        "plot_comparison": {"comparison": fitted("OrderPosterior").compare([])},
        "plot_criteria": {
            "path": pd.DataFrame({"n_clusters": [1, 2, 3], "score": [-9.0, -7.0, -8.0], "bic": [18.0, 15.0, 14.0]})
        },
        "plot_densities": {"clusterer": _with_numbers()},
        "plot_effects": {
            "effects": pd.DataFrame(
                {
                    "of": ["a", "b"],
                    "on": ["b", "a"],
                    "ancestor": [0.9, 0.1],
                    "size": [0.4, 0.02],
                    "low": [0.2, 0.0],
                    "high": [0.6, 0.1],
                }
            )
        },
        "plot_evidence": {"evidence": kikuchi.explain(table().iloc[:1])},
        "plot_interactions": {"interactions": {("a", "b"): 0.4, ("b", "c"): -0.1}},
        "plot_network": {"network": network()},
        "plot_profile_intervals": {"profiles": fitted("LatentClassClusterer")},
        "plot_residuals": {"pairs": pgm_bma.bivariate_residuals(fitted("LatentClassClusterer"), table())},
        "plot_region_graph": {"graph": regions},
        "plot_relevance": {"relevance": pd.Series({"a": 0.1, "b": 0.4})},
        "plot_runs": {"first": fitted("OrderPosterior").edge_posterior_, "second": fitted("OrderPosterior")},
        "plot_score_traces": {"traces": [[1.0, 2.0], [1.5, 2.5]]},
        "plot_starts": {"starts": clusterer.starts_},
        "plot_structure_difference": {"a": network(), "b": network()},
        "plot_terms": {"classifier": _averaged_terms()},
    }
    return {
        f"plotting.{name}": (_drawn(getattr(plotting, name)), {**_defaults(getattr(plotting, name)), **good})
        for name, good in found.items()
    }


def _drawn(function):
    def draw(**arguments):
        import matplotlib.pyplot as plt

        try:
            function(**arguments)
        finally:
            plt.close("all")

    return draw


def _by_name(name):
    modules = {"metrics": metrics, "evaluation": evaluation}
    place, _, short = name.rpartition(".")
    return getattr(modules.get(place, pgm_bma), short)


def _bound(function, kind):
    return lambda **arguments: function(kind, **arguments)


def _first(method):
    return next(iter(inspect.signature(method).parameters))


def _defaults(function):
    parameters = inspect.signature(function).parameters.items()
    return {name: each.default for name, each in parameters if each.default is not inspect.Parameter.empty}
