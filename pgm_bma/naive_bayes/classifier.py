"""Naive Bayes classifiers: plain, and averaged exactly over all selective structures (Dash and Cooper 2002)."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.classifier import ClassifierBase
from pgm_bma.foundation.faces.docstrings import CLASSES, NAMES, fill
from pgm_bma.foundation.faces.validation import (
    Choice,
    Either,
    Instance,
    Number,
    Optional,
    check,
    check_parameters,
    resolve_preset,
)
from pgm_bma.foundation.numbers.families import (
    PARAMETER_PRIOR,
    PSEUDO_COUNT,
    arc_prior_array,
    check_prior,
    class_information,
    state_offsets,
)
from pgm_bma.foundation.tables.kinds import cut_series, nothing_cut
from pgm_bma.naive_bayes.selective import NaiveBayesPrior, fit_naive_bayes, naive_bayes_log_joint, split_tables
from pgm_bma.networks.objects import HasStructure, augmented_network

PAPER = {"alpha": 1.0, "parameter_prior": "paper"}
ARC_PRIOR = Either(Number(0.0, 1.0), Instance(dict, "a dict column -> probability"))


@fill(names=NAMES, classes=CLASSES)
class NaiveBayesClassifier(HasStructure, ClassifierBase):
    """Naive Bayes with Dirichlet posterior means.

    Missing cells: at fit every column counts the rows that have it; at predict a missing cell adds nothing, which is exact.

    Parameters
    ----------
    alpha : float, default=1.0
        Pseudo-count of a cell (K2 when 1).
    equivalent_sample_size : float, optional
        Total prior mass spread evenly over every table (BDeu), instead of `alpha`.
    {names}

    Attributes
    ----------
    class_probability_ : array of shape (n_classes,)
        Posterior means.
    feature_importances_ : array of shape (n_features_in_,)
        Information of every column about the class in the fitted model, nats.
    log_evidence_ : float
        log p(columns and class) of the training rows, parameters summed out.
    model_ : DiscreteBayesianNetwork
        The fitted distribution itself (`model_is_exact_` is True), built on first access.
    causal_graph_ : pgmpy DAG
        Its structure.
    {classes}

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

    _margins_suffice = True
    _picture = "plot_relevance"
    _rules: dict[str, Any] = {"alpha": PSEUDO_COUNT, "equivalent_sample_size": Optional(PSEUDO_COUNT)}

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        state_names: dict | None = None,
        target_name: Any = None,
        handle_unknown: str = "missing",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
    ):
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns

    def _fit(self, training):
        check_parameters(self)
        check_prior(self.alpha, self.equivalent_sample_size)
        self._learn(training, NaiveBayesPrior(self.alpha, self.equivalent_sample_size))

    def _learn(self, training, prior, numeric=None):
        cardinalities, n_classes = training.schema.cardinalities, len(training.classes)
        self._result = fit_naive_bayes(
            training.codes, cardinalities, training.target, n_classes, training.weights, prior, numeric
        )
        self.class_probability_ = self._result.class_probability
        self.log_evidence_ = self._result.log_evidence

    @property
    def feature_importances_(self) -> np.ndarray:
        """Information of every column about the class, nats: for scikit-learn's SelectFromModel."""
        check_is_fitted(self)
        share = self.class_probability_[:, None]
        return class_information(share * self._result.tables, share, self.schema_.cardinalities)

    def _log_joint(self, codes):
        return naive_bayes_log_joint(self._result, codes, self.schema_.cardinalities)

    def _evidence(self, codes):
        tables = np.log(self._result.tables)
        rows = [np.log(self._result.class_probability)]
        for value, offset in zip(codes[0], state_offsets(self.schema_.cardinalities)):
            rows.append(tables[:, offset + value] if value >= 0 else np.zeros(len(self.classes_)))
        return np.array(rows)

    def _build_model(self):
        fit, schema = self._result, self.schema_
        tables = split_tables(fit, schema.cardinalities)
        names = self.target_name_, self.target_states_
        return augmented_network(*names, fit.class_probability, schema.names, schema.states, tables)


@fill(names=NAMES, classes=CLASSES)
class AveragedNaiveBayesClassifier(NaiveBayesClassifier):
    """Naive Bayes averaged exactly over all 2^n selective structures: each column depends on the class, or does not.

    Parameters
    ----------
    arc_prior : float or dict, default=0.5
        Prior probability of the arc class -> column; a number, or by column (others 0.5).
    alpha : float, default=1.0
        Pseudo-count of a cell in the tables with the arc (K2 when 1).
    equivalent_sample_size : float, optional
        Total prior mass spread evenly over every table (BDeu), instead of `alpha` and `parameter_prior`.
    parameter_prior : {"consistent", "paper"}, default="consistent"
        "consistent": n_classes * alpha in a cell without the arc, so that both tables of a column hold the same mass and
        noise of many states is not called relevant. "paper": alpha in every cell.
    preset : {"paper"}, optional
        Dash and Cooper's setting: one pseudo-count in every cell.
    {names}
    numeric : {"auto", "average", "mdl"} or None, default="auto"
        "average": numeric columns are averaged exactly over all ways to cut them into intervals; no cut
        means no arc. "mdl": they are cut by minimum description length of the class. None: every value is a state. "auto": "mdl",
        with a warning that names the columns.

    Attributes
    ----------
    arc_posterior_ : Series
        P(class -> column | data); exact, because the class is observed.
    cut_posterior_ : dict of Series
        With ``numeric="average"``: for each numeric column, the probability that it is cut below the values in the index.
    feature_importances_ : array of shape (n_features_in_,)
        Information of every column about the class in the average, nats.
    class_probability_ : array of shape (n_classes,)
        Posterior means.
    log_evidence_ : float
        log p(columns and class) of the training rows, structures and parameters summed out.
    model_ : DiscreteBayesianNetwork
        The average, which is itself a naive Bayes network (`model_is_exact_` is True), built on first access.
    causal_graph_ : pgmpy DAG
        Its structure: an arc to every column.
    {classes}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import AveragedNaiveBayesClassifier
    >>> X = pd.DataFrame({"useful": list("aabb") * 5, "noise": list("abab") * 5})
    >>> classifier = AveragedNaiveBayesClassifier().fit(X, ["no", "no", "yes", "yes"] * 5)
    >>> classifier.arc_posterior_.round(2).to_dict()
    {'useful': 1.0, 'noise': 0.26}
    """

    _rules = {
        "arc_prior": ARC_PRIOR,
        "parameter_prior": PARAMETER_PRIOR,
        "preset": Optional(Choice("paper")),
        "numeric": Optional(Choice("auto", "average", "mdl")),
    }

    def __init__(
        self,
        *,
        arc_prior: float | dict = 0.5,
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        parameter_prior: str = "consistent",
        preset: str | None = None,
        state_names: dict | None = None,
        target_name: Any = None,
        handle_unknown: str = "missing",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
        numeric: str | None = "auto",
    ):
        super().__init__(
            alpha=alpha,
            equivalent_sample_size=equivalent_sample_size,
            state_names=state_names,
            target_name=target_name,
            handle_unknown=handle_unknown,
            numeric_columns=numeric_columns,
            categorical_columns=categorical_columns,
        )
        self.arc_prior = arc_prior
        self.parameter_prior = parameter_prior
        self.preset = preset
        self.numeric = numeric

    def _fit(self, training):
        prior, cuts = averaged_prior(self, training.schema.names), self.__dict__.get("_cuts") or nothing_cut()
        averaged = [training.schema.index(name) for name in cuts.names] if self.numeric == "average" else None
        self._learn(training, prior, averaged)

    def _numeric_plan(self, X):
        check("numeric", self.numeric, self._rules["numeric"])
        if self.numeric == "auto":
            return super()._numeric_plan(X)
        return ([], "mdl") if self.numeric is None else (self._numeric_names(X), self.numeric)

    @property
    def arc_posterior_(self) -> pd.Series:
        """P(class -> column | data) of every column."""
        check_is_fitted(self)
        return pd.Series(self._result.arc_posterior, index=list(self.schema_.names), name="arc_posterior")

    @property
    def cut_posterior_(self) -> dict:
        """For each numeric column, the probability of a cut below each value of the index; averaged cuts only."""
        check_is_fitted(self)
        if self._result.cut_posteriors is None:
            raise AttributeError("cut_posterior_ exists with averaged cuts only; fit with numeric='average'")
        return cut_series(self.__dict__.get("_cuts") or nothing_cut(), self._result.cut_posteriors)

    def _arc_posteriors(self):
        return {(self.target_name_, column): float(p) for column, p in self.arc_posterior_.items()}


def averaged_prior(estimator, names):
    """The checked prior of an estimator of the average, preset included: a `NaiveBayesPrior`."""
    values = resolve_preset(estimator, {"paper": PAPER})
    check_parameters(estimator, values)
    check_prior(values["alpha"], values["equivalent_sample_size"])
    return NaiveBayesPrior(
        values["alpha"],
        values["equivalent_sample_size"],
        values["parameter_prior"],
        arc_prior_array(values["arc_prior"], names),
    )
