"""Estimators for discrete data that average over graphical-model structures instead of betting on one.

Public names are loaded on first use, so that ``import pgm_bma`` itself imports nothing heavy.
"""

from importlib import import_module

__version__ = "0.2.0"

# public name -> module below pgm_bma that defines it
_PUBLIC = {
    "MDLDiscretizer": "discretize",
    "FrequencyDiscretizer": "discretize",
    "WidthDiscretizer": "discretize",
    "SampleQuantileBinarizer": "discretize",
    "average_families": "stats.averaging",
    "NaiveBayesClassifier": "estimators.naive_bayes",
    "AveragedNaiveBayesClassifier": "estimators.naive_bayes",
    "TANClassifier": "estimators.tan",
    "LatentClassClusterer": "estimators.latent_class",
    "EMAClusterer": "estimators.latent_class",
    "EMAEstimator": "estimators.parameters_ema",
    "StructuralEMClusterer": "estimators.structural_em",
    "ForestAveragedClassifier": "estimators.forests",
    "ForestAveragedClusterer": "estimators.forest_clusterer",
    "KikuchiBayesClassifier": "estimators.kikuchi",
    "region_graph": "results.regions",
    "region_entropy": "results.regions",
    "region_free_energy": "results.regions",
    "AveragedNaiveBayesEstimator": "estimators.parameters_naive_bayes",
    "EMEstimator": "estimators.parameters_em",
    "BoundCollapseEMEstimator": "estimators.parameters_bound_collapse",
    "bound_and_collapse": "estimators.bound_collapse",
    "FixedOrderClassifier": "estimators.orders",
    "OrderAveragedClassifier": "estimators.orders",
    "OrderPosterior": "estimators.order_posterior",
    "effective_markov_blanket": "results.structures",
    "log_likelihood": "inference",
    "predict_proba": "inference",
    "impute": "inference",
    "load_dataset": "datasets",
    "list_datasets": "datasets",
    "load_network": "datasets",
    "list_networks": "datasets",
    "random_selective_naive_bayes": "simulate",
    "random_augmented_naive_bayes": "simulate",
    "random_network_classifier": "simulate",
    "random_dag": "simulate",
    "write_bif": "bif",
    "read_bif": "bif",
    "save": "io",
    "load": "io",
}
_MODULES = ("simulate", "metrics", "plotting", "evaluation")  # a callable module: pgm_bma.simulate(model, n)

__all__ = [*_PUBLIC, *_MODULES]


def __getattr__(name):
    if name in _PUBLIC:
        value = getattr(import_module(f"pgm_bma.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"pgm_bma.{name}")
    raise AttributeError(f"module 'pgm_bma' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
