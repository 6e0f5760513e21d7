"""What a saved file may speak of: a stable short key for every class, and what changed between format versions.

A file never names code. It holds keys, and this table says which class a key means today, so that classes and modules may
move and be renamed. A key is never given to another class.

``MIGRATIONS[v]`` turns what format v wrote into what format v + 1 expects: key -> `Change`. A parameter or field that did
not exist in format v gets the value that keeps the old behaviour.
"""

from typing import NamedTuple

VERSION = 2

# key in files -> (module below pgm_bma, class)
ESTIMATORS = {
    "NaiveBayesClassifier": ("estimators.naive_bayes", "NaiveBayesClassifier"),
    "AveragedNaiveBayesClassifier": ("estimators.naive_bayes", "AveragedNaiveBayesClassifier"),
    "TANClassifier": ("estimators.tan", "TANClassifier"),
    "ForestAveragedClassifier": ("estimators.forests", "ForestAveragedClassifier"),
    "ForestAveragedClusterer": ("estimators.forest_clusterer", "ForestAveragedClusterer"),
    "KikuchiBayesClassifier": ("estimators.kikuchi", "KikuchiBayesClassifier"),
    "FixedOrderClassifier": ("estimators.orders", "FixedOrderClassifier"),
    "OrderAveragedClassifier": ("estimators.orders", "OrderAveragedClassifier"),
    "OrderPosterior": ("estimators.order_posterior", "OrderPosterior"),
    "LatentClassClusterer": ("estimators.latent_class", "LatentClassClusterer"),
    "EMAClusterer": ("estimators.latent_class", "EMAClusterer"),
    "StructuralEMClusterer": ("estimators.structural_em", "StructuralEMClusterer"),
    "MDLDiscretizer": ("discretize", "MDLDiscretizer"),
    "FrequencyDiscretizer": ("discretize", "FrequencyDiscretizer"),
    "WidthDiscretizer": ("discretize", "WidthDiscretizer"),
    "SampleQuantileBinarizer": ("discretize", "SampleQuantileBinarizer"),
    "AveragedNaiveBayesEstimator": ("estimators.parameters_naive_bayes", "AveragedNaiveBayesEstimator"),
    "EMAEstimator": ("estimators.parameters_ema", "EMAEstimator"),
    "EMEstimator": ("estimators.parameters_em", "EMEstimator"),
    "BoundCollapseEMEstimator": ("estimators.parameters_bound_collapse", "BoundCollapseEMEstimator"),
}
RECORDS = {
    "schema": ("table", "Schema"),
    "network": ("results.networks", "NetworkArrays"),
    "naive-bayes-fit": ("algorithms.naive_bayes", "NaiveBayesFit"),
    "tan-fit": ("algorithms.tan", "TANFit"),
    "augmented-parameters": ("algorithms.augmented_naive_bayes", "Parameters"),
    "augmented-model": ("algorithms.augmented_structures", "AugmentedModel"),
    "general-model": ("algorithms.general_structures", "GeneralModel"),
    "latent-class-fit": ("algorithms.latent_class", "LatentClassFit"),
    "latent-class-starts": ("algorithms.latent_class", "Starts"),
    "forest-average": ("algorithms.forest_average", "ForestAverage"),
    "family-table": ("algorithms.family_table", "FamilyTable"),
    "order-training": ("algorithms.fixed_order", "Training"),
    "structure-average": ("algorithms.structure_average", "StructureAverage"),
    "kikuchi-fit": ("algorithms.kikuchi", "KikuchiFit"),
    "kikuchi-tests": ("algorithms.kikuchi_selection", "FocusTests"),
    "kikuchi-layout": ("algorithms.kikuchi_terms", "Layout"),
    "kikuchi-terms": ("algorithms.kikuchi_terms", "Terms"),
    "kikuchi-learned-weights": ("algorithms.kikuchi_weights", "LearnedWeights"),
    "node-bounds": ("results.bounds", "NodeBounds"),
}


class Change(NamedTuple):
    """added: name -> value that keeps the old behaviour; renamed: old name -> new; removed: names that are dropped."""

    added: dict = {}
    renamed: dict = {}
    removed: tuple = ()


MIGRATIONS: dict[int, dict[str, Change]] = {}


def migrate(key, fields, version):
    """The fields (name -> value) that format `version` wrote for `key`, as this version expects them."""
    for step in range(version, VERSION):
        change = MIGRATIONS.get(step, {}).get(key, Change())
        fields = {change.renamed.get(name, name): v for name, v in fields.items() if name not in change.removed}
        fields = {**change.added, **fields}
    return fields
