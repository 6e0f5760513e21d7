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
    "average_families": "foundation.numbers.averaging",
    "default_classifier": "defaults",
    "default_clusterer": "defaults",
    "NaiveBayesClassifier": "naive_bayes.classifier",
    "AveragedNaiveBayesClassifier": "naive_bayes.classifier",
    "TANClassifier": "naive_bayes.tan_classifier",
    "LatentClassClusterer": "latent_class.clusterer",
    "EMAClusterer": "latent_class.clusterer",
    "EMAEstimator": "latent_class.pgmpy_face",
    "bivariate_residuals": "latent_class.fit_tests",
    "goodness_of_fit": "latent_class.fit_tests",
    "three_step": "latent_class.three_step_results",
    "likelihood_ratio_test": "latent_class.fit_tests",
    "StructuralEMClusterer": "augmented.clusterer",
    "ForestAveragedClassifier": "forests.classifier",
    "ForestAveragedClusterer": "forests.clusterer",
    "AdditiveBayesClassifier": "additive.classifier",
    "KikuchiBayesClassifier": "kikuchi.classifier",
    "region_graph": "kikuchi.network",
    "AveragedNaiveBayesEstimator": "naive_bayes.pgmpy_face",
    "EMEstimator": "networks.pgmpy_face",
    "BoundCollapseEMEstimator": "augmented.pgmpy_face",
    "bound_and_collapse": "augmented.intervals",
    "FixedOrderClassifier": "orders.classifier",
    "OrderAveragedClassifier": "orders.classifier",
    "OrderPosterior": "orders.posterior",
    "effective_markov_blanket": "networks.structures",
    "log_likelihood": "networks.inference",
    "predict_proba": "networks.inference",
    "impute": "networks.inference",
    "load_dataset": "datasets",
    "list_datasets": "datasets",
    "load_network": "datasets",
    "list_networks": "datasets",
    "simulate": "networks.simulation",
    "random_selective_naive_bayes": "networks.random_models",
    "random_augmented_naive_bayes": "networks.random_models",
    "random_network_classifier": "networks.random_models",
    "random_dag": "networks.random_models",
    "write_bif": "files.bif",
    "read_bif": "files.bif",
    "scan_parquet": "foundation.rows.scan",
    "scan_csv": "foundation.rows.scan",
    "scan_table": "foundation.rows.scan",
    "save": "files.storage",
    "load": "files.storage",
}
_MODULES = ("metrics", "plotting", "evaluation")

__all__ = [*_PUBLIC, *_MODULES]


def __getattr__(name):
    if name in _PUBLIC:
        value = getattr(import_module(f"pgm_bma.{_PUBLIC[name]}"), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"pgm_bma.{name}")
    from pgm_bma.foundation.faces.hints import NAMES, hint

    raise AttributeError(f"module 'pgm_bma' has no attribute {name!r}{hint(NAMES, name)}")


def __dir__():
    return sorted([*globals(), *__all__])
