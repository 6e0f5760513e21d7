"""First guesses: names that people who know scikit-learn, pgmpy or R try first, and what they are called here.

`NAMES` is for ``pgm_bma.<guess>``, `LEARNED` for ``estimator.<guess>``, `PARAMETERS` for ``Estimator(<guess>=...)``. A guess that
has an exact counterpart of the same meaning exists under its own name and is not listed here.
"""

from functools import wraps
from inspect import signature

NAMES = {
    # scikit-learn
    "CategoricalNB": "NaiveBayesClassifier or AveragedNaiveBayesClassifier",
    "NaiveBayes": "NaiveBayesClassifier, or pgmpy.models.NaiveBayes",
    "TAN": "TANClassifier",
    "KMeans": "EMAClusterer or LatentClassClusterer",
    "GaussianMixture": "LatentClassClusterer (mixtures of discrete columns)",
    "LatentClassAnalysis": "LatentClassClusterer",
    "LCA": "LatentClassClusterer",
    "KBinsDiscretizer": "MDLDiscretizer, FrequencyDiscretizer or WidthDiscretizer",
    "cross_val_score": "sklearn.model_selection.cross_val_score: every classifier here works with it",
    "load_iris": "load_dataset('iris'); list_datasets() names all",
    "make_classification": "simulate",
    "plot": "pgm_bma.plotting, or estimator.plot()",
    # pgmpy
    "BayesianNetwork": "pgmpy.models.DiscreteBayesianNetwork; estimators here have it as model_",
    "DiscreteBayesianNetwork": "pgmpy.models.DiscreteBayesianNetwork; estimators here have it as model_",
    "BIFReader": "read_bif",
    "BIFWriter": "write_bif",
    "get_example_model": "load_network",
    "HillClimbSearch": "OrderPosterior (posteriors of all arcs); its causal_graph_ is one DAG",
    "TreeSearch": "TANClassifier",
    "ExpectationMaximization": "EMEstimator",
    "DiscreteEM": "EMEstimator",
    "MaximumLikelihoodEstimator": "EMEstimator, which needs no missing cells to work",
    "BayesianEstimator": "EMEstimator",
    "VariableElimination": "predict_proba(model, rows), or pgmpy.inference.VariableElimination(estimator.model_)",
    "BayesianModelSampling": "simulate",
    "StructuralEM": "StructuralEMClusterer",
    "EMA": "EMAClusterer",
    "BDeu": "OrderPosterior(equivalent_sample_size=...)",
}
LEARNED = {
    # scikit-learn
    "coef_": "feature_importances_, or explain(X) for single rows",
    "feature_log_prob_": "model_.get_cpds(name), whose tables are P(column | class)",
    "class_log_prior_": "model_.get_cpds(target_name_)",
    "class_prior_": "model_.get_cpds(target_name_)",
    "decision_function": "predict_log_proba, or explain(X, log_odds=(a, b))",
    "partial_fit": "fit on a scan (scan_csv, scan_parquet) for rows that do not fit in memory",
    "cluster_centers_": "describe(), or plot() for all profiles",
    "means_": "describe(), or plot() for all profiles",
    "weights_": "model_.get_cpds(cluster_name), the sizes of the clusters",
    "inertia_": "log_likelihood_, or score(X)",
    "lower_bound_": "score_path_",
    "n_components": "n_clusters",
    "feature_importance": "feature_importances_",
    "support_": "arc_posterior_, how probable it is that a column matters at all",
    # pgmpy
    "get_cpds": "model_.get_cpds",
    "cpds": "model_.cpds",
    "nodes": "model_.nodes",
    "edges": "model_.edges, or edge_graph_.edges with posteriors",
    "query": "predict_proba, or pgmpy.inference.VariableElimination(model_).query",
    "map_query": "predict, or pgmpy.inference.VariableElimination(model_).map_query",
    "estimate": "fit; the network is model_",
    "get_parameters": "model_.cpds after fit",
    "check_model": "model_.check_model",
    "simulate": "pgm_bma.simulate(estimator.model_, n)",
    "get_markov_blanket": "model_.get_markov_blanket, or pgm_bma.effective_markov_blanket",
    "predict_probability": "predict_proba",
    "to_dag": "causal_graph_",
    "dag_": "causal_graph_",
    "states": "schema_.states",
    "state_names_": "schema_.states, by schema_.names",
    "to_bif": "pgm_bma.write_bif(estimator.model_, path)",
    "local_score": "log_evidence_",
}
PARAMETERS = {
    "n_components": "n_clusters",
    "k": "n_clusters",
    "n_classes": "n_clusters",
    "latent_card": "n_clusters",
    "seed": "random_state",
    "n_starts": "n_init",
    "nrep": "n_init",
    "atol": "tol",
    "max_parents": "max_indegree",
    "pseudo_counts": "alpha",
    "show_progress": "verbose",
    "fit_prior": "alpha",
}


def hint(table, name):
    """What a guess is called here, as the end of a message, or nothing.

    Examples
    --------
    >>> from pgm_bma.foundation.faces.hints import NAMES, hint
    >>> hint(NAMES, "BIFReader"), hint(NAMES, "nothing")
    ('; here it is read_bif', '')
    """
    return f"; here it is {table[name]}" if name in table else ""


def answering(init):
    """`__init__` with the same signature, whose error for a parameter of another library names ours."""

    @wraps(init)
    def checked(self, *given, **named):
        known = signature(init).parameters if named.keys() & PARAMETERS.keys() else named
        for name in named.keys() - known.keys() & PARAMETERS.keys():
            if PARAMETERS[name] in known:
                raise TypeError(f"{type(self).__name__} has no parameter {name!r}; here it is {PARAMETERS[name]}")
        init(self, *given, **named)

    return checked
