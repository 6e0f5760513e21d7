"""What a saved file may speak of: a stable short key for every class, and what changed between format versions.

A file never names code. It holds keys, and this table says which class a key means today, so that classes and modules may
move and be renamed. A key is never given to another class.

``MIGRATIONS[v]`` turns what format v wrote into what format v + 1 expects: key -> `Change`. A parameter or field that did
not exist in format v gets the value that keeps the old behaviour.
"""

from typing import NamedTuple

VERSION = 5

# key in files -> (module below pgm_bma, class)
ESTIMATORS = {
    "NaiveBayesClassifier": ("naive_bayes.classifier", "NaiveBayesClassifier"),
    "AveragedNaiveBayesClassifier": ("naive_bayes.classifier", "AveragedNaiveBayesClassifier"),
    "TANClassifier": ("naive_bayes.tan_classifier", "TANClassifier"),
    "ForestAveragedClassifier": ("forests.classifier", "ForestAveragedClassifier"),
    "ForestAveragedClusterer": ("forests.clusterer", "ForestAveragedClusterer"),
    "AdditiveBayesClassifier": ("additive.classifier", "AdditiveBayesClassifier"),
    "KikuchiBayesClassifier": ("kikuchi.classifier", "KikuchiBayesClassifier"),
    "FixedOrderClassifier": ("orders.classifier", "FixedOrderClassifier"),
    "OrderAveragedClassifier": ("orders.classifier", "OrderAveragedClassifier"),
    "OrderPosterior": ("orders.posterior", "OrderPosterior"),
    "LatentClassClusterer": ("latent_class.clusterer", "LatentClassClusterer"),
    "EMAClusterer": ("latent_class.clusterer", "EMAClusterer"),
    "StructuralEMClusterer": ("augmented.clusterer", "StructuralEMClusterer"),
    "MDLDiscretizer": ("discretize", "MDLDiscretizer"),
    "FrequencyDiscretizer": ("discretize", "FrequencyDiscretizer"),
    "WidthDiscretizer": ("discretize", "WidthDiscretizer"),
    "SampleQuantileBinarizer": ("discretize", "SampleQuantileBinarizer"),
    "AveragedNaiveBayesEstimator": ("naive_bayes.pgmpy_face", "AveragedNaiveBayesEstimator"),
    "EMAEstimator": ("latent_class.pgmpy_face", "EMAEstimator"),
    "EMEstimator": ("networks.pgmpy_face", "EMEstimator"),
    "BoundCollapseEMEstimator": ("augmented.pgmpy_face", "BoundCollapseEMEstimator"),
}
RECORDS = {
    "schema": ("foundation.tables.table", "Schema"),
    "network": ("networks.objects", "NetworkArrays"),
    "naive-bayes-fit": ("naive_bayes.selective", "NaiveBayesFit"),
    "tan-fit": ("naive_bayes.tan", "TANFit"),
    "augmented-parameters": ("augmented.model", "Parameters"),
    "augmented-model": ("augmented.structures", "AugmentedModel"),
    "general-model": ("augmented.general", "GeneralModel"),
    "latent-class-fit": ("latent_class.loop", "LatentClassFit"),
    "latent-class-starts": ("latent_class.loop", "Starts"),
    "latent-class-uncertainty": ("latent_class.profiles", "Uncertainty"),
    "forest-average": ("forests.average", "ForestAverage"),
    "family-table": ("orders.families.family_table", "FamilyTable"),
    "family-lists": ("orders.families.family_lists", "FamilyLists"),
    "order-chains": ("orders.structure_average", "ChainRecord"),
    "order-gaps": ("orders.gaps.augmented_average", "Gaps"),
    "order-training": ("orders.sums.fixed_order", "Training"),
    "order-counted-training": ("orders.families.counted", "CountedTraining"),
    "order-set-counts": ("orders.families.counted", "SetCounts"),
    "structure-average": ("orders.structure_average", "StructureAverage"),
    "kikuchi-fit": ("kikuchi.fit", "KikuchiFit"),
    "kikuchi-tests": ("kikuchi.selection", "FocusTests"),
    "kikuchi-layout": ("kikuchi.terms", "Layout"),
    "kikuchi-terms": ("kikuchi.terms", "Terms"),
    "additive-fit": ("additive.fit", "AdditiveFit"),
    "additive-terms": ("additive.terms", "AverageTerms"),
    "additive-term-weights": ("additive.terms", "TermWeights"),
    "additive-gaussian-terms": ("additive.gaussian", "GaussianTerms"),
    "kikuchi-cuts": ("foundation.tables.numeric_columns", "Cuts"),
    "kikuchi-learned-weights": ("kikuchi.weights", "LearnedWeights"),
    "node-bounds": ("augmented.bounds", "NodeBounds"),
}


class Change(NamedTuple):
    """added: name -> value that keeps the old behaviour; renamed: old name -> new; removed: names that are dropped."""

    added: dict = {}
    renamed: dict = {}
    removed: tuple = ()


# parameters of the order estimators that format 2 did not know
_FAMILIES = {"parameter_prior": "paper", "expert_knowledge": None, "eps": 1e-3, "beam": 60}
_CHAINS = {
    **_FAMILIES, "moves": "swap", "n_temperatures": 4, "tol": 0.05, "max_sweeps": 4096, "max_time": None,
    "show_progress": None,
}  # fmt: skip

# format 3: version 0.2.0. A table by class; values keep what files of format 2 meant
_ALL_STARTS = {"n_final": None, "accelerate": False, "parameter_prior": "paper", "preset": None}
MIGRATIONS: dict[int, dict[str, Change]] = {
    2: {
        **dict.fromkeys(
            ("AveragedNaiveBayesClassifier", "AveragedNaiveBayesEstimator"),
            Change(added={"parameter_prior": "paper", "preset": None}),
        ),
        "KikuchiBayesClassifier": Change(
            added={
                "verbose": 0,
                "numeric": None,
                "terms": ("single", "pair", "linear", "gaussian"),
                "numeric_columns": None,
                "categorical_columns": None,
                "_cuts": None,
            },
            removed=("tests_",),
        ),
        "FixedOrderClassifier": Change(added=_FAMILIES),
        "OrderAveragedClassifier": Change(added=_CHAINS, renamed={"show_progress": "verbose"}),
        "OrderPosterior": Change(added=_CHAINS, renamed={"show_progress": "verbose"}),
        "structure-average": Change(added={"chains": None}, removed=("chain_edges",)),
        "ForestAveragedClassifier": Change(added={"parameter_prior": "paper", "preset": None}),
        "ForestAveragedClusterer": Change(added={"parameter_prior": "paper", "preset": None, "n_final": None}),
        "EMAEstimator": Change(added=_ALL_STARTS),
        **dict.fromkeys(
            ("LatentClassClusterer", "EMAClusterer"), Change(added={**_ALL_STARTS, "weight_type": "repetition"})
        ),
        "latent-class-starts": Change(added={"finished": None}),
    },
    # `missing` governed prediction; its former values are still read as such
    3: {
        **dict.fromkeys(
            ("FixedOrderClassifier", "OrderAveragedClassifier", "OrderPosterior"),
            Change(added={"unobserved": "sum_out", "_missing_counts": None}),
        ),
        "AveragedNaiveBayesClassifier": Change(
            added={"numeric": "auto", "numeric_columns": None, "categorical_columns": None}
        ),
        "naive-bayes-fit": Change(added={"cut_posteriors": None}),
        "structure-average": Change(added={"gaps": None}),
        "order-training": Change(added={"max_total": None}),
        "ForestAveragedClassifier": Change(added={"missing": "auto", "_tables": ()}),
    },
    4: dict.fromkeys(
        (
            "NaiveBayesClassifier",
            "TANClassifier",
            "ForestAveragedClassifier",
            "FixedOrderClassifier",
            "OrderAveragedClassifier",
        ),
        Change(added={"numeric_columns": None, "categorical_columns": None}),
    ),
}


def migrate(key, fields, version):
    """The fields (name -> value) that format `version` wrote for `key`, as this version expects them."""
    for step in range(version, VERSION):
        change = MIGRATIONS.get(step, {}).get(key, Change())
        fields = {change.renamed.get(name, name): v for name, v in fields.items() if name not in change.removed}
        fields = {**change.added, **fields}
    return fields
