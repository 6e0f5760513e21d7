"""Tree-augmented naive Bayes classifier."""

import numpy as np
import pandas as pd

from pgm_bma.algorithms.augmented_tree import augmented_log_joint, column_terms, fit_augmented_tree
from pgm_bma.algorithms.tan import tan_parents
from pgm_bma.estimators._classifier import ClassifierBase
from pgm_bma.estimators.naive_bayes import check_prior


class TANClassifier(ClassifierBase):
    """Naive Bayes with a tree of arcs between the columns, the one of highest conditional mutual information.

    Missing cells: each family counts the rows that have its cells; at predict they are summed out exactly over the tree.

    Parameters
    ----------
    alpha, equivalent_sample_size, state_names, target_name, handle_unknown : as in `NaiveBayesClassifier`

    Attributes
    ----------
    parents_ : Series, the column that each column has as a parent beside the class (None for the root)
    conditional_mutual_information_ : DataFrame, I(X_i; X_j | class) in nats
    classes_, class_probability_, model_ (pgmpy DiscreteBayesianNetwork)

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import TANClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> TANClassifier().fit(X, ["even", "odd", "odd", "even"] * 6).predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    """

    def __init__(
        self, *, alpha=1.0, equivalent_sample_size=None, state_names=None, target_name=None, handle_unknown="error"
    ):
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown

    def _fit(self, training):
        check_prior(self.alpha, self.equivalent_sample_size)
        names, cardinalities = list(training.schema.names), training.schema.cardinalities
        data = (training.codes, cardinalities, training.target, len(training.classes))
        parents, information = tan_parents(*data, training.weights)
        self._result = fit_augmented_tree(*data, parents, training.weights, self.alpha, self.equivalent_sample_size)
        self.class_probability_ = self._result.class_probability
        self.parents_ = pd.Series(
            [names[p] if p >= 0 else None for p in parents], index=names, dtype=object, name="parent"
        )
        self.conditional_mutual_information_ = pd.DataFrame(information, index=names, columns=names)

    def _log_joint(self, codes):
        return augmented_log_joint(self._result, codes)

    def _evidence(self, codes):
        missing = [name for name, code in zip(self.schema_.names, codes[0]) if code < 0]
        if missing:
            raise ValueError(
                f"the row has no value for {missing[0]!r}; a tree's evidence is split by column for complete rows only"
            )
        return np.array([np.log(self._result.class_probability), *(t[0] for t in column_terms(self._result, codes))])

    def _build_model(self):
        from pgm_bma.results.augmented import augmented_network

        return augmented_network(
            self.target_name_,
            self.target_states_,
            self.class_probability_,
            self.schema_.names,
            self.schema_.states,
            self._result.tables,
            self._result.parents,
        )
