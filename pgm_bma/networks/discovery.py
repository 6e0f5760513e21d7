"""pgmpy's base of structure learners, from wherever the installed version has it, and a learner of pgmpy around our estimators.

The base is private in pgmpy 1.1.2 and public later. It is imported with a class that derives from it, which takes some 0.4 s, so
clusterers and classifiers do not derive from it: `StructureLearner` holds one of them. What a structure learner of pgmpy has, ours
have in their own way, so nothing but the type is taken from the base.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.validation import brief, is_name
from pgm_bma.networks.graphs import adjacency, graph_metric

try:
    from pgmpy.causal_discovery import BaseCausalDiscovery
except ImportError:
    from pgmpy.causal_discovery._base import _BaseCausalDiscovery as BaseCausalDiscovery

__all__ = ["BaseCausalDiscovery", "StructureLearner"]


class StructureLearner(BaseCausalDiscovery):
    """Structure learner of pgmpy around an estimator with arcs: structural EM, forests, TAN.

    For code of pgmpy that takes one of its structure learners. `OrderPosterior` is one already.

    Parameters
    ----------
    estimator : clusterer or classifier
        An estimator of this package with `causal_graph_`, such as ``StructuralEMClusterer(3)``; it is cloned, not changed.
    class_node : str, optional
        Column of `X` that is the class, for a classifier.

    Attributes
    ----------
    causal_graph_ : pgmpy DAG
        The structure; the cluster of a clusterer is a latent node of it.
    adjacency_matrix_ : DataFrame
        The structure as 0 and 1, parent x child.
    estimator_ : estimator
        The fitted estimator, with all its results.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, where all are texts.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import ForestAveragedClassifier, StructureLearner
    >>> X = pd.DataFrame({"a": list("0011") * 9, "b": list("0011") * 9, "kind": list("0101") * 9})
    >>> learner = StructureLearner(ForestAveragedClassifier(), class_node="kind").fit(X)
    >>> sorted(learner.causal_graph_.edges)
    [('a', 'b'), ('kind', 'a'), ('kind', 'b')]
    >>> learner.score(true_graph=learner.causal_graph_)
    0
    """

    def __init__(self, estimator: Any, class_node: Any = None):
        self.estimator = estimator
        self.class_node = class_node

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the structure of the columns of `X`.

        Parameters
        ----------
        X : DataFrame
            Discrete values, the column `class_node` included.
        y : None
            Not used.
        sample_weight : array of shape (n_samples,), optional
            A weight is a repetition of the row.

        Returns
        -------
        self : object
            The fitted learner.
        """
        if not hasattr(type(self.estimator), "causal_graph_"):
            raise ValueError(
                f"estimator={brief(self.estimator)} has no causal_graph_; pass a clusterer or classifier that learns arcs, such as "
                "StructuralEMClusterer(3)"
            )
        columns = list(getattr(X, "columns", ()))
        if is_classifier(self.estimator):
            if not is_name(self.class_node) or self.class_node not in columns:
                raise ValueError(
                    f"class_node={brief(self.class_node)} is not a column of X, which a {type(self.estimator).__name__} needs "
                    f"as the class; the columns are {columns}"
                )
        elif self.class_node is not None:
            raise ValueError(
                f"class_node={brief(self.class_node)}, but a {type(self.estimator).__name__} has no class; leave class_node out"
            )
        target = () if self.class_node is None else (self.class_node,)
        self.estimator_ = clone(self.estimator).fit(X, *target, sample_weight=sample_weight)
        self.causal_graph_ = self.estimator_.causal_graph_
        self.adjacency_matrix_ = adjacency(self.causal_graph_)
        self.n_features_in_ = self.estimator_.n_features_in_ + len(target)
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = np.array(columns, dtype=object)
        return self

    def score(self, X: Any = None, true_graph: Any = None, metric: Any = None) -> Any:
        """Evaluate `causal_graph_` by a metric of pgmpy.

        Parameters
        ----------
        X : DataFrame, optional
            Rows, for a metric that reads data. A graph with a cluster has none: no column holds the cluster.
        true_graph : pgmpy DAG or PDAG, optional
            Graph on the same nodes that `causal_graph_` is compared with.
        metric : str or pgmpy metric, optional
            Which metric, by name or as an object; by default pgmpy's own choice.

        Returns
        -------
        float or what the metric returns
            The score.
        """
        check_is_fitted(self)
        return graph_metric(self.causal_graph_, X, true_graph, metric)
