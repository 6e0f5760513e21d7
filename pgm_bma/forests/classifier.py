"""Classifier averaged exactly over all forest-augmented naive Bayes structures."""

import numpy as np

from pgm_bma.forests.average import fit_forest_average
from pgm_bma.forests.results import ForestResults
from pgm_bma.foundation.classifier import ClassifierBase
from pgm_bma.foundation.priors import arc_prior_array, check_prior
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.validation import check_choice


class ForestAveragedClassifier(ForestResults, ClassifierBase):
    """Class posterior averaged exactly over every structure in which each column has the class as a parent and at most one
    other column, without cycles. The sum over all of them is a determinant (directed matrix-tree theorem).

    Parameters
    ----------
    class_arcs : "all" (the class is a parent of every column) or "selective" (each column with or without it)
    arc_prior : prior of an arc class -> column under "selective"; a number or a dict by column
    structure_prior : "arc_cost" (every arc between columns costs log n), "friedman_koller" (log(n - 1)) or "uniform"
    forbidden_arcs : pairs (parent, child) of columns that no structure may have, or "all"
    alpha, equivalent_sample_size : pseudo-count per cell (K2 when 1), or BDeu's total
    max_completions : rows with missing cells are summed out exactly up to this many completions
    n_forests : forests sampled for rows past that; the standard error is in `predict_proba_with_error`
    random_state : seeds those samples
    state_names, target_name, handle_unknown : as in `NaiveBayesClassifier`

    Attributes
    ----------
    edge_posterior_ : DataFrame parent x child, P(parent -> child | data) between columns
    class_arc_posterior_ : Series, P(class -> column | data); 1 under class_arcs="all"
    edge_graph_ : networkx DiGraph with `posterior`
    log_evidence_ : log p(data), structures and parameters summed out
    model_ : the most probable structure with posterior-mean tables (a pgmpy network; `model_is_exact_` is False)
    classes_, target_name_, target_states_, feature_names_in_, n_features_in_, n_samples_, schema_ : as in `NaiveBayesClassifier`

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import ForestAveragedClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> y = ["even", "odd", "odd", "even"] * 6
    >>> classifier = ForestAveragedClassifier().fit(X, y)
    >>> classifier.predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    >>> round(float(classifier.edge_posterior_.loc["a", "b"]), 2)
    0.5
    """

    def __init__(
        self,
        *,
        class_arcs="all",
        arc_prior=0.5,
        structure_prior="arc_cost",
        forbidden_arcs=None,
        alpha=1.0,
        equivalent_sample_size=None,
        max_completions=64,
        n_forests=200,
        random_state=0,
        state_names=None,
        target_name=None,
        handle_unknown="missing",
    ):
        self.class_arcs = class_arcs
        self.arc_prior = arc_prior
        self.structure_prior = structure_prior
        self.forbidden_arcs = forbidden_arcs
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.max_completions = max_completions
        self.n_forests = n_forests
        self.random_state = random_state
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown

    def _fit(self, training):
        check_prior(self.alpha, self.equivalent_sample_size)
        check_choice("class_arcs", self.class_arcs, ("all", "selective"))
        names, cardinalities = list(training.schema.names), training.schema.cardinalities
        class_arc_prior = arc_prior_array(self.arc_prior, names)
        self._check_sampling(training.schema, len(training.classes))
        self._result = fit_forest_average(
            training.codes,
            cardinalities,
            training.target,
            len(training.classes),
            training.weights,
            alpha=self.alpha,
            equivalent_sample_size=self.equivalent_sample_size,
            class_arc_prior=class_arc_prior if self.class_arcs == "selective" else None,
            structure_prior=self.structure_prior,
            forbidden=forbidden_matrix(self.forbidden_arcs, names),
        )
        self._read_result(random_generator(self.random_state))
        self.log_evidence_ = self._result.log_evidence

    def _class_node(self):
        return self.target_name_, self.target_states_, False


def forbidden_matrix(forbidden_arcs, names):
    """(n, n) bool [child, parent], or None."""
    if forbidden_arcs is None:
        return None
    forbidden = np.zeros((len(names), len(names)), dtype=bool)
    if isinstance(forbidden_arcs, str):
        check_choice("forbidden_arcs", forbidden_arcs, ("all",))
        forbidden[:] = True
        return forbidden
    if not hasattr(forbidden_arcs, "__iter__"):
        raise ValueError(f"forbidden_arcs={forbidden_arcs!r} must be a list of pairs (parent, child), or 'all'")
    for arc in forbidden_arcs:
        if isinstance(arc, str) or not hasattr(arc, "__len__") or len(arc) != 2:
            raise ValueError(f"forbidden_arcs holds {arc!r}, which is no pair (parent, child) of columns")
        parent, child = arc
        for name in (parent, child):
            if name not in names:
                raise ValueError(f"forbidden_arcs names {name!r}, which is no column of X")
        forbidden[names.index(child), names.index(parent)] = True
    return forbidden
