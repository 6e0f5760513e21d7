"""Naive Bayes classifiers: plain, and averaged exactly over all selective structures (Dash and Cooper 2002)."""

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.classifier import ClassifierBase
from pgm_bma.foundation.counts import class_counts, state_offsets
from pgm_bma.foundation.priors import arc_prior_array, check_prior
from pgm_bma.naive_bayes.selective import fit_naive_bayes, naive_bayes_log_joint


class NaiveBayesClassifier(ClassifierBase):
    """Naive Bayes with Dirichlet posterior means.

    Missing cells: at fit every column counts the rows that have it; at predict a missing cell adds nothing, which is exact.

    Parameters
    ----------
    alpha : pseudo-count per cell (1: K2)
    equivalent_sample_size : total prior mass spread evenly over every table (BDeu), instead of `alpha`
    state_names : dict column -> states, target included; the order is kept and states never seen may be declared
    target_name : name of the class node; default: the name of `y`, else "class"
    handle_unknown : "error" or "missing", for values that fit has not seen

    Attributes
    ----------
    classes_ : (n_classes,) array in the order of the columns of `predict_proba`
    class_probability_ : (n_classes,) array, posterior means
    model_ : pgmpy DiscreteBayesianNetwork, built on first access
    model_is_exact_ : bool, whether `model_` is the fitted distribution itself and not one network out of an average
    log_evidence_ : float, log p(columns and class) of the training rows, parameters summed out
    target_name_, target_states_ : name of the class node; its states as a tuple, with their Python types
    feature_names_in_, n_features_in_, n_samples_ : columns and rows seen in fit
    schema_ : names and states of the columns

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import NaiveBayesClassifier
    >>> X = pd.DataFrame({"sky": ["sun", "rain", "sun", "rain"], "wind": ["no", "no", "yes", "yes"]})
    >>> classifier = NaiveBayesClassifier().fit(X, pd.Series(["walk", "stay", "walk", "stay"], name="plan"))
    >>> classifier.predict({"sky": "sun", "wind": None}).tolist()
    ['walk']
    >>> classifier.predict_proba({"sky": "sun", "wind": "no"})
    array([[0.25, 0.75]])
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
        cardinalities = training.schema.cardinalities
        n_classes = len(training.classes)
        self._result = fit_naive_bayes(
            np.bincount(training.target, training.weights, minlength=n_classes).astype(float),
            class_counts(training.codes, cardinalities, training.target, n_classes, training.weights),
            cardinalities,
            alpha=self.alpha,
            equivalent_sample_size=self.equivalent_sample_size,
            arc_prior=self._arc_prior(training.schema.names),
        )
        self.class_probability_ = self._result.class_probability
        self.log_evidence_ = self._result.log_evidence

    def _arc_prior(self, names):
        return 1.0

    def _log_joint(self, codes):
        return naive_bayes_log_joint(self._result, codes, self.schema_.cardinalities)

    def _evidence(self, codes):
        tables = np.log(self._result.tables)
        rows = [np.log(self._result.class_probability)]
        for value, offset in zip(codes[0], state_offsets(self.schema_.cardinalities)):
            rows.append(tables[:, offset + value] if value >= 0 else np.zeros(len(self.classes_)))
        return np.array(rows)

    def _build_model(self):
        from pgm_bma.networks.augmented import augmented_network

        split = np.split(self._result.tables, state_offsets(self.schema_.cardinalities)[1:-1], axis=1)
        return augmented_network(
            self.target_name_,
            self.target_states_,
            self.class_probability_,
            self.schema_.names,
            self.schema_.states,
            split,
        )


class AveragedNaiveBayesClassifier(NaiveBayesClassifier):
    """Naive Bayes averaged exactly over all 2^n selective structures: each column depends on the class, or does not.

    Parameters
    ----------
    arc_prior : prior probability of the arc class -> column; a number, or a dict by column (others 0.5)
    alpha, equivalent_sample_size, state_names, target_name, handle_unknown : as in `NaiveBayesClassifier`

    Attributes
    ----------
    arc_posterior_ : Series, P(class -> column | data); exact, because the class is observed
    classes_, class_probability_, model_, log_evidence_, target_name_ : as in `NaiveBayesClassifier`
    target_states_, feature_names_in_, n_features_in_, n_samples_, schema_ : as in `NaiveBayesClassifier`

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import AveragedNaiveBayesClassifier
    >>> X = pd.DataFrame({"useful": list("aabb") * 5, "noise": list("abab") * 5})
    >>> classifier = AveragedNaiveBayesClassifier().fit(X, ["no", "no", "yes", "yes"] * 5)
    >>> classifier.arc_posterior_.round(2).to_dict()
    {'useful': 1.0, 'noise': 0.34}
    """

    def __init__(
        self,
        *,
        arc_prior=0.5,
        alpha=1.0,
        equivalent_sample_size=None,
        state_names=None,
        target_name=None,
        handle_unknown="missing",
    ):
        super().__init__(
            alpha=alpha,
            equivalent_sample_size=equivalent_sample_size,
            state_names=state_names,
            target_name=target_name,
            handle_unknown=handle_unknown,
        )
        self.arc_prior = arc_prior

    @property
    def arc_posterior_(self):
        """P(class -> column | data) of every column."""
        check_is_fitted(self)
        return pd.Series(self._result.arc_posterior, index=list(self.schema_.names), name="arc_posterior")

    def _arc_prior(self, names):
        return arc_prior_array(self.arc_prior, names)

    def _arc_posteriors(self):
        return {(self.target_name_, column): float(p) for column, p in self.arc_posterior_.items()}
