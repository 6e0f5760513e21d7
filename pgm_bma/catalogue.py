"""Every public name once: what it is, where it is defined, and what other parts of the package call it.

`pgm_bma.__init__`, saved files, the command line, the reference pages and the contract tests read this file. It imports
nothing, so that ``import pgm_bma`` stays light. A new estimator joins by one record in `ESTIMATORS`.
"""

from typing import NamedTuple


class Estimator(NamedTuple):
    """One public estimator class.

    kind : "classifier", "clusterer", "structure" (a structure learner), "network" (a pgmpy parameter estimator) or "columns"
    group : title of its page in the reference
    method : its value of ``--method`` on the command line; empty if it has none
    title, sentence : what reports say of the method
    key : what saved files call it; never given to another class
    """

    name: str
    module: str
    kind: str
    group: str
    method: str = ""
    title: str = ""
    sentence: str = ""

    @property
    def key(self):
        return self.name


ESTIMATORS = (
    Estimator(
        "AdditiveBayesClassifier",
        "additive.classifier",
        "classifier",
        "Classifiers",
        "additive",
        "averaged additive terms",
        "What every column and pair of columns says about the class is averaged over all ways to cut the columns and added up, "
        "with weights that predict held-out rows best.",
    ),
    Estimator(
        "KikuchiBayesClassifier",
        "kikuchi.classifier",
        "classifier",
        "Classifiers",
        "kikuchi",
        "Kikuchi-Bayes",
        "Groups of columns that tell more about the class together than apart are found by tests and combined in closed form.",
    ),
    Estimator(
        "OrderAveragedClassifier",
        "orders.classifier",
        "classifier",
        "Classifiers",
        "order",
        "average over networks, by orders",
        "The prediction averages over many networks of all columns and the class, weighted by how well they explain the data.",
    ),
    Estimator("FixedOrderClassifier", "orders.classifier", "classifier", "Classifiers"),
    Estimator(
        "ForestAveragedClassifier",
        "forests.classifier",
        "classifier",
        "Classifiers",
        "forest",
        "average over forests of arcs",
        "A column may depend on the class and on one other column; the prediction averages exactly over all ways of drawing "
        "these arcs.",
    ),
    Estimator(
        "TANClassifier",
        "naive_bayes.tan_classifier",
        "classifier",
        "Classifiers",
        "tan",
        "tree-augmented naive Bayes",
        "Every column depends on the class and on one other column, along the tree that carries most information.",
    ),
    Estimator(
        "AveragedNaiveBayesClassifier",
        "naive_bayes.classifier",
        "classifier",
        "Classifiers",
        "averaged-nb",
        "averaged naive Bayes",
        "Every column may or may not depend on the class; the prediction averages exactly over all these choices.",
    ),
    Estimator(
        "NaiveBayesClassifier",
        "naive_bayes.classifier",
        "classifier",
        "Classifiers",
        "nb",
        "naive Bayes",
        "Given the class, the columns are taken as independent of each other.",
    ),
    Estimator(
        "EMAClusterer",
        "latent_class.clusterer",
        "clusterer",
        "Clusterers",
        "ema",
        "expectation model averaging",
        "Every column may or may not depend on the cluster; the model averages over all these choices, so columns that say "
        "nothing about the clusters have no influence, and the others are ranked by relevance.",
    ),
    Estimator(
        "LatentClassClusterer",
        "latent_class.clusterer",
        "clusterer",
        "Clusterers",
        "em",
        "latent-class model by EM",
        "Within a cluster the columns are taken as independent of each other, and every column depends on the cluster.",
    ),
    Estimator(
        "StructuralEMClusterer",
        "augmented.clusterer",
        "clusterer",
        "Clusterers",
        "structural",
        "structural EM",
        "A column may depend on the cluster and on one other column; the arcs between columns are searched for together with "
        "the clusters.",
    ),
    Estimator(
        "ForestAveragedClusterer",
        "forests.clusterer",
        "clusterer",
        "Clusterers",
        "forest",
        "clusters averaged over forests of arcs",
        "A column may depend on the cluster and on one other column; the model averages over all ways of drawing these arcs "
        "instead of choosing one.",
    ),
    Estimator(
        "OrderPosterior",
        "orders.posterior",
        "structure",
        "Structure",
        "order",
        "posterior of the arcs, by orders",
        "Every possible arc gets a probability: the share of all networks that have it, weighted by how well they explain the "
        "data. The direction of an arc often cannot be decided from data alone.",
    ),
    Estimator("EMEstimator", "networks.pgmpy_face", "network", "Networks of pgmpy"),
    Estimator("EMAEstimator", "latent_class.pgmpy_face", "network", "Networks of pgmpy"),
    Estimator("BoundCollapseEMEstimator", "augmented.pgmpy_face", "network", "Networks of pgmpy"),
    Estimator("AveragedNaiveBayesEstimator", "naive_bayes.pgmpy_face", "network", "Networks of pgmpy"),
    Estimator("MDLDiscretizer", "discretize", "columns", "Data"),
    Estimator("FrequencyDiscretizer", "discretize", "columns", "Data"),
    Estimator("WidthDiscretizer", "discretize", "columns", "Data"),
)
# kind -> {value of ``--method``: `Estimator`}, for the command line
METHODS: dict[str, dict[str, Estimator]] = {
    kind: {each.method: each for each in ESTIMATORS if each.kind == kind and each.method}
    for kind in ("clusterer", "classifier", "structure")
}
# other public names: group -> {name: module}
FUNCTIONS = {
    "Classifiers": {"default_classifier": "defaults"},
    "Clusterers": {"default_clusterer": "defaults"},
    "Latent class analysis": {
        "three_step": "latent_class.three_step_results",
        "likelihood_ratio_test": "latent_class.fit_tests",
        "goodness_of_fit": "latent_class.fit_tests",
        "bivariate_residuals": "latent_class.fit_tests",
    },
    "Structure": {
        "Starts": "latent_class.base",
        "GibbsSampler": "orders.samplers",
        "SwapSampler": "orders.samplers",
        "effective_markov_blanket": "networks.graphs",
        "average_families": "foundation.numbers.families",
    },
    "Regions": {"region_graph": "kikuchi.network"},
    "Networks of pgmpy": {
        "StructureLearner": "networks.discovery",
        "FamilyScore": "orders.pgmpy_face",
        "bound_and_collapse": "augmented.intervals",
        "log_likelihood": "networks.inference",
        "predict_proba": "networks.inference",
        "impute": "networks.inference",
        "simulate": "networks.simulation",
        "random_dag": "networks.simulation",
    },
    "Data": {
        "load_dataset": "datasets",
        "list_datasets": "datasets",
        "load_network": "datasets",
        "list_networks": "datasets",
        "scan_parquet": "foundation.rows.scan",
        "scan_csv": "foundation.rows.scan",
        "scan_table": "foundation.rows.scan",
    },
    "Files": {
        "save": "files.storage",
        "load": "files.storage",
        "write_bif": "files.bif",
        "read_bif": "files.bif",
        "write_scores": "orders.score_files",
        "read_scores": "orders.score_files",
    },
}
MODULES = {  # public modules and their titles
    "plotting": "Pictures",
    "metrics": "Metrics",
    "evaluation": "Evaluation",
    "testing": "Checks of estimators",
}
# what may change in a minor release: a public name, or one of its methods or parameters, and the reason; all else is stable
EXPERIMENTAL = {
    "OrderPosterior.effect": "the form of effects is not settled",
    "OrderPosterior.effects": "the form of effects is not settled",
    "OrderPosterior.edge_prob_": "pgmpy has not released the name",
    "OrderPosterior.direction_prob_": "the same",
    "EMAClusterer.numeric_columns": "the prior of numeric columns is not settled",
    "LatentClassClusterer.numeric_columns": "the prior of numeric columns is not settled",
    "testing": "checks may be added",
}

# what saved files call the records inside estimators: key -> (module, class); a key is never given to another class
RECORDS = {
    "schema": ("foundation.tables.table", "Schema"),
    "network": ("networks.objects", "NetworkArrays"),
    "naive-bayes-fit": ("naive_bayes.selective", "NaiveBayesFit"),
    "tan-fit": ("naive_bayes.tan", "TANFit"),
    "augmented-parameters": ("augmented.model", "Parameters"),
    "latent-class-fit": ("latent_class.problem", "LatentClassFit"),
    "latent-class-starts": ("latent_class.problem", "LatentClassStarts"),
    "latent-class-start-rules": ("latent_class.base", "Starts"),
    "latent-class-numbers": ("latent_class.mixed", "NumberColumns"),
    "latent-class-uncertainty": ("latent_class.profiles", "Uncertainty"),
    "forest-average": ("forests.average", "ForestAverage"),
    "family-table": ("orders.families.family_table", "FamilyTable"),
    "family-lists": ("orders.families.family_table", "FamilyLists"),
    "order-chains": ("orders.chains.runner", "ChainRecord"),
    "order-gaps": ("orders.gaps.augmented_average", "MissingCells"),
    "order-training": ("orders.sums.fixed_order", "Training"),
    "order-counted-training": ("orders.families.counted", "CountedTraining"),
    "order-scores-only": ("orders.score_files", "ScoresOnly"),
    "order-set-counts": ("orders.families.counted", "SetCounts"),
    "structure-average": ("orders.structure_average", "StructureAverage"),
    "kikuchi-fit": ("kikuchi.fit", "KikuchiFit"),
    "kikuchi-tests": ("kikuchi.selection", "FocusTests"),
    "kikuchi-layout": ("kikuchi.terms", "Layout"),
    "kikuchi-terms": ("kikuchi.terms", "Terms"),
    "additive-fit": ("additive.fit", "AdditiveFit"),
    "additive-terms": ("additive.terms", "AverageTerms"),
    "additive-term-weights": ("additive.terms", "TermWeights"),
    "additive-gaussian-terms": ("additive.averages", "GaussianTerms"),
    "additive-trees": ("additive.model", "Trees"),
    "additive-forest": ("additive.forest", "Forest"),
    "kikuchi-cuts": ("foundation.tables.kinds", "Cuts"),
    "kikuchi-learned-weights": ("kikuchi.weights", "LearnedWeights"),
    "gibbs-sampler": ("orders.samplers", "GibbsSampler"),
    "swap-sampler": ("orders.samplers", "SwapSampler"),
}


def public():
    """{name: module below pgm_bma} of every public class and function."""
    names = {estimator.name: estimator.module for estimator in ESTIMATORS}
    return {**names, **{name: module for group in FUNCTIONS.values() for name, module in group.items()}}


def named(*kinds):
    """Names of the estimators of some kinds, in the order of the catalogue."""
    return [estimator.name for estimator in ESTIMATORS if estimator.kind in kinds]


def groups():
    """{title of a reference page: names}, functions that choose an estimator before the estimators."""
    found = {}
    for title, functions in FUNCTIONS.items():
        estimators = [estimator.name for estimator in ESTIMATORS if estimator.group == title]
        first = [name for name in functions if name.startswith("default_")]
        found[title] = [*first, *estimators, *(name for name in functions if name not in first)]
    return found
