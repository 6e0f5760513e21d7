"""Tree-augmented naive Bayes classifier."""

import numpy as np
import pandas as pd

from pgm_bma.augmented.model import log_joint
from pgm_bma.foundation.classifier import ClassifierBase
from pgm_bma.foundation.priors import check_prior
from pgm_bma.naive_bayes.tan import fit_tan


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
    classes_, class_probability_, model_, target_name_ : as in `NaiveBayesClassifier`
    target_states_, feature_names_in_, n_features_in_, n_samples_, schema_ : as in `NaiveBayesClassifier`

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import TANClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> TANClassifier().fit(X, ["even", "odd", "odd", "even"] * 6).predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    """

    def __init__(
        self, *, alpha=1.0, equivalent_sample_size=None, state_names=None, target_name=None, handle_unknown="missing"
    ):
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown

    def _fit(self, training):
        check_prior(self.alpha, self.equivalent_sample_size)
        names, cardinalities = list(training.schema.names), training.schema.cardinalities
        self._result = fit_tan(
            training.codes,
            cardinalities,
            training.target,
            len(training.classes),
            training.weights,
            alpha=self.alpha,
            equivalent_sample_size=self.equivalent_sample_size,
        )
        parents = [names[p] if p >= 0 else None for p in self._result.parents]
        self.class_probability_ = self._result.parameters.class_probs
        self.parents_ = pd.Series(parents, index=names, dtype=object, name="parent")
        self.conditional_mutual_information_ = pd.DataFrame(self._result.information, index=names, columns=names)

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
        from pgm_bma.networks.augmented import augmented_network

        return augmented_network(
            self.target_name_,
            self.target_states_,
            self.class_probability_,
            self.schema_.names,
            self.schema_.states,
            self._result.tables,
            self._result.parents,
        )
