"""Tree-augmented naive Bayes classifier."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.augmented.model import log_joint
from pgm_bma.foundation.faces.classifier import ClassifierBase
from pgm_bma.foundation.faces.docstrings import CLASSES, NAMES, fill
from pgm_bma.foundation.faces.validation import Choice, Optional, check_parameters
from pgm_bma.foundation.numbers.families import PSEUDO_COUNT, check_prior, class_information
from pgm_bma.foundation.tables.table import order_states
from pgm_bma.naive_bayes.tan import fit_tan, profiles
from pgm_bma.networks.objects import HasStructure, augmented_network


@fill(names=NAMES, classes=CLASSES)
class TANClassifier(HasStructure, ClassifierBase):
    """Naive Bayes with a tree of arcs between the columns, the one of highest conditional mutual information.

    The root is the column that tells most about the class; ties go by name, so that the order of the columns does not matter.
    Missing cells: each family counts the rows that have its cells; at predict they are summed out exactly over the tree.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of a cell (K2 when 1).
    equivalent_sample_size : float, optional
        Total prior mass spread evenly over every table (BDeu), instead of `alpha`.
    arcs : {"all", "bic"}, default="all"
        "all": a whole tree, as in the paper. "bic": the forest of highest BIC, which leaves out arcs that the rows do not support.
    {names}

    Attributes
    ----------
    parents_ : Series
        The column that each column has as a parent besides the class (None for a root).
    conditional_mutual_information_ : DataFrame
        I(X_i; X_j | class) in nats.
    feature_importances_ : array of shape (n_features_in_,)
        Information of every column about the class in the fitted model, nats.
    class_probability_ : array of shape (n_classes,)
        Posterior means.
    model_ : DiscreteBayesianNetwork
        The fitted distribution itself (`model_is_exact_` is True), built on first access.
    causal_graph_ : pgmpy DAG
        Its structure.
    {classes}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import TANClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> TANClassifier().fit(X, ["even", "odd", "odd", "even"] * 6).predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    """

    _rules = {"alpha": PSEUDO_COUNT, "equivalent_sample_size": Optional(PSEUDO_COUNT), "arcs": Choice("all", "bic")}

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        arcs: str = "all",
        state_names: dict | None = None,
        target_name: Any = None,
        handle_unknown: str = "missing",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
    ):
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.arcs = arcs
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns

    def _fit(self, training):
        check_parameters(self)
        check_prior(self.alpha, self.equivalent_sample_size)
        names, cardinalities = list(training.schema.names), training.schema.cardinalities
        by_name = {name: rank for rank, name in enumerate(order_states(names))}
        self._result = fit_tan(
            training.codes,
            cardinalities,
            training.target,
            len(training.classes),
            training.weights,
            alpha=self.alpha,
            equivalent_sample_size=self.equivalent_sample_size,
            name_ranks=np.array([by_name[name] for name in names]),
            arcs=self.arcs,
        )
        parents = [names[p] if p >= 0 else None for p in self._result.parents]
        self.class_probability_ = self._result.parameters.class_probs
        names = pd.Index(names, dtype=object)  # pandas' own texts refuse some
        self.parents_ = pd.Series(parents, index=names, dtype=object, name="parent")
        self.conditional_mutual_information_ = pd.DataFrame(self._result.information, index=names, columns=names)

    _fit_rows = _fit  # `fit_tan` counts rows that are visited in passes

    @property
    def feature_importances_(self) -> np.ndarray:
        """Information of every column about the class, nats: for scikit-learn's SelectFromModel."""
        check_is_fitted(self)
        share = self.class_probability_[:, None]
        return class_information(share * profiles(self._result), share, self.schema_.cardinalities)

    def _log_joint(self, codes):
        return log_joint(codes, self.schema_.cardinalities, self._result.parents, self._result.parameters)

    def _evidence(self, codes):
        missing = [name for name, code in zip(self.schema_.names, codes[0]) if code < 0]
        if missing:
            raise ValueError(
                f"the row has no value for {missing[0]!r}; a tree's evidence is split by column for complete rows only"
            )
        rows = [np.log(self.class_probability_)]
        for i, (parent, table) in enumerate(zip(self._result.parents, self._result.tables)):
            rows.append(np.log(table[:, codes[0, parent] if parent >= 0 else 0, codes[0, i]]))
        return np.array(rows)

    def _build_model(self):
        fit, schema = self._result, self.schema_
        names = self.target_name_, self.target_states_
        probability = fit.parameters.class_probs
        return augmented_network(*names, probability, schema.names, schema.states, fit.tables, fit.parents)
