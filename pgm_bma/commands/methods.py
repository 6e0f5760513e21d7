"""The methods the command line offers, in words. Nothing is imported here: a method is offered once its class is public."""

from typing import NamedTuple

import pgm_bma


class Method(NamedTuple):
    """One choice of ``--method``: the public class behind it, its title, and a sentence for people who read reports."""

    estimator: str
    title: str
    sentence: str

    def make(self, **wanted):
        """The estimator with those of the `wanted` parameters that it has."""
        build = getattr(pgm_bma, self.estimator)
        known = build().get_params(deep=False)
        return build(**{name: value for name, value in wanted.items() if name in known})


CLUSTERERS = {
    "ema": Method(
        "EMAClusterer",
        "expectation model averaging",
        "Every column may or may not depend on the cluster; the model averages over all these choices, so that columns "
        "which say nothing about the clusters fall silent and the others are ranked by relevance.",
    ),
    "em": Method(
        "LatentClassClusterer",
        "latent-class model by EM",
        "Within a cluster the columns are taken as independent of each other, and every column depends on the cluster.",
    ),
    "structural": Method(
        "StructuralEMClusterer",
        "structural EM",
        "Beside the cluster a column may depend on one other column; the arcs between columns are searched for together "
        "with the clusters.",
    ),
    "forest": Method(
        "ForestAveragedClusterer",
        "clusters averaged over forests of arcs",
        "Beside the cluster a column may depend on one other column; the model averages over all ways of drawing these "
        "arcs instead of choosing one.",
    ),
}
CLASSIFIERS = {
    "averaged-nb": Method(
        "AveragedNaiveBayesClassifier",
        "averaged naive Bayes",
        "Every column may or may not depend on the class; the prediction averages exactly over all these choices.",
    ),
    "nb": Method(
        "NaiveBayesClassifier",
        "naive Bayes",
        "Given the class the columns are taken as independent of each other.",
    ),
    "tan": Method(
        "TANClassifier",
        "tree-augmented naive Bayes",
        "Beside the class every column depends on one other column, along the tree that carries most information.",
    ),
    "forest": Method(
        "ForestAveragedClassifier",
        "average over forests of arcs",
        "Beside the class a column may depend on one other column; the prediction averages exactly over all ways of "
        "drawing these arcs.",
    ),
    "order": Method(
        "OrderAveragedClassifier",
        "average over networks, by orders",
        "The prediction averages over many networks of all columns and the class, weighted by how well they explain the "
        "data.",
    ),
    "additive": Method(
        "AdditiveBayesClassifier",
        "averaged additive terms",
        "What every column and pair of columns says about the class is averaged over all ways to cut the columns and added up, "
        "with weights that predict held-out rows best.",
    ),
    "kikuchi": Method(
        "KikuchiBayesClassifier",
        "Kikuchi-Bayes",
        "Groups of columns that tell more about the class together than apart are found by tests and combined in closed "
        "form.",
    ),
}
STRUCTURES = {
    "order": Method(
        "OrderPosterior",
        "posterior of the arcs, by orders",
        "Every possible arc gets a probability: the share of all networks that have it, weighted by how well they explain "
        "the data. The direction of an arc often cannot be told from data alone.",
    ),
}


def default(command, offered):
    """(name, parameters as NAME=VALUE) of the method taken without ``--method``: the package's default estimator."""
    if command in ("structure", "impute"):
        return next(iter(offered)), []
    estimator = pgm_bma.default_classifier() if command == "classify" else pgm_bma.default_clusterer()
    name = next(name for name, method in offered.items() if method.estimator == type(estimator).__name__)
    plain = type(estimator)().get_params(deep=False)
    given = estimator.get_params(deep=False).items()
    return name, [f"{key}={value!r}" for key, value in given if repr(value) != repr(plain[key])]
