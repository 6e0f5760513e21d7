"""Kikuchi-Bayes classifier: regions of attributes and the class, combined in closed form."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from pgm_bma.foundation.faces.classifier import ClassifierBase, interaction_frame
from pgm_bma.foundation.faces.docstrings import NUMBERS, fill
from pgm_bma.foundation.faces.validation import (
    Choice,
    Either,
    Integer,
    Number,
    Optional,
    Verbose,
    check,
    check_parameters,
    resolve_preset,
)
from pgm_bma.foundation.runtime.jobs import progress, random_generator
from pgm_bma.foundation.tables.missing import mark_missing, with_missing_state
from pgm_bma.kikuchi import selection
from pgm_bma.kikuchi.fit import (
    KikuchiOptions,
    attribute_sets,
    count_information,
    fit_kikuchi,
    read_class_data,
    read_data,
)
from pgm_bma.kikuchi.strength import interaction_lines
from pgm_bma.kikuchi.terms import (
    attribute_importances,
    check_regions,
    downward_closure,
    interaction_terms,
    log_scores,
    naming,
    term_evidence,
)
from pgm_bma.kikuchi.tuning import DEFAULT_STRENGTH

if TYPE_CHECKING:
    import networkx as nx
    from pgmpy.models import DiscreteBayesianNetwork

_PAPER = {
    "cycles": "allow",
    "prior": "laplace",
    "weights": "counting",
    "criterion": "divergence",
    "regions": None,
    "missing": "state",
    "handle_unknown": "missing",
}
# the six columns of Table 2 of the paper
PRESETS = {
    "NB": {**_PAPER, "level": 1, "significance_level": 1.0},
    "K1": {**_PAPER, "level": 1, "significance_level": 0.1},
    "TAN": {**_PAPER, "level": 2},
    "TK": {**_PAPER, "level": 2, "significance_level": 0.1, "cycles": "table"},
    "K2": {**_PAPER, "level": 2, "significance_level": 0.1},
    "K2all": {**_PAPER, "level": 2, "significance_level": 1.0},
}
PRESETS["paper"] = PRESETS["K2"]


@fill(numbers=NUMBERS)
class KikuchiBayesClassifier(ClassifierBase):
    """Classifier from naive Bayes and groups of columns that say more together, in closed form (Jakulin, Bratko, Rish 2004).

    A region is the class with one, two or more attributes. Regions that tell more about the class than the smaller regions
    inside them are found by tests; counting numbers of the region graph combine their probabilities in closed form. Regions may
    overlap in loops, where counting numbers take back too much or too little; weights on the interaction terms cure that. Columns
    of numbers are cut into intervals first, as `MDLDiscretizer` does, with a warning.

    Parameters
    ----------
    level : int, default=2
        Largest number of attributes in a region. 1 is naive Bayes with selected attributes. A level tests all sets of so many
        attributes; where these are too many (two million triples, half as many with each attribute more), from triples on, it
        tests the regions of the level below with one attribute more, with a warning.
    significance_level : float, default=0.1
        A region is taken when its p is below; 1 takes every region (good with learned weights).
    n_resamples : int, default=100
        Resamples of a region's table behind a p near the threshold; far from it a chi-square tail decides.
    cycles : {"allow", "gated", "table"}, default="allow"
        "gated": significant regions by rising p, without closing a cycle; "table": all regions that way.
    prior : {"consistent", "laplace", "marginal"}, default="consistent"
        "consistent": one total mass spread over the cells of every table; "laplace" (paper): one per cell; "marginal": only the
        maximal regions are estimated, smaller ones are the mean of their marginals.
    prior_strength : float, optional
        Total mass of the consistent prior; None is 2, or chosen together with the ridge when ``ridge="cv"``.
    weights : {"learned", "tree", "counting"}, default="learned"
        Weight of each interaction term. "counting" (paper): 1. "tree": pairs by their effective resistance, so that copies of an
        attribute count once. "learned": by leave-one-out conditional likelihood with a ridge around naive Bayes.
    ridge : {"cv", "loo"} or float, default="cv"
        Ridge of the learned weights: chosen by cross-validation (one each for single attributes, pairs, larger sets), by the
        approximate leave-one-out likelihood of the weights, or given. "loo" is cheaper and too trusting where cells are sparse.
        Where rows x classes x terms pass 120 million numbers, "cv" looks at 50,000 of the rows, and the weights at all of them.
    criterion : {"divergence", "log_loss", "error"}, default="divergence"
        What a region is judged by: divergence against resamples (paper), or the left-out loss, first of the region alone and then
        of the whole model.
    regions : list of lists of names, optional
        Initial regions by hand, the target's name included where a region holds the class; ``[]`` is the class alone.
    missing : {"ignore", "state"}, default="ignore"
        Missing cells in fit: left out of the tables that need them, or one more state of the column (paper).
    preset : {"paper", "NB", "K1", "TAN", "TK", "K2", "K2all"}, optional
        The six columns of Table 2 of the paper, and "paper", which is K2; sets everything above but `n_resamples`, and
        ``handle_unknown="missing"``.
    state_names : dict, optional
        Column -> list of its states (the target's too), in their order; may hold states never seen.
    target_name : str, optional
        Name of the class variable; default the name of `y`, else "class".
    handle_unknown : {"missing", "ignore", "error"}, default="missing"
        Values at predict that fit did not see: every term with such a value is left out, as with a missing one, or an error.
    random_state : int, Generator, RandomState or None, default=None
        For the resamples of `region_loss`. A fit does not depend on it: folds and resamples follow from the data, whatever the
        order and names of rows, columns and states.
    verbose : bool or int, default=0
        Show a progress bar when a fit takes longer than two seconds.
    {numbers}

    Attributes
    ----------
    initial_regions_ : list of frozensets
        The maximal regions.
    region_graph_ : networkx.DiGraph
        The regions and their intersections with `counting_number` and `level`.
    tests_ : DataFrame
        One row per focus with region, level, loss, mean_self_loss, p, z, resampled, taken; with another criterion than divergence
        `loss` and `mean_self_loss` are the left-out losses of the approximation and of the region's own table.
    term_weights_ : Series
        Weight of the interaction term of each region.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Mean over the rows of the spread over the classes of a column's terms, in nats.
    interaction_strength_ : DataFrame
        In nats, I(X_i; class) on the diagonal, I(X_i; X_j | class) - I(X_i; X_j) off it: positive where a pair says more than
        its attributes, negative where they repeat each other; NaN where not counted.
    ridge_ : dict or None
        Ridge by number of attributes (learned weights only).
    prior_strength_ : float
        Total mass of the consistent prior.
    interactions_ : DataFrame
        The pairs of attributes in the model (tested and taken, or given), columns `first`, `second`, `importance`, `low`, `high`,
        falling: I(X_i; X_j | class) - I(X_i; X_j) in nats less its mean over tables whose classes were dealt anew, with a 95 %
        interval; of more than 200 pairs the 200 strongest.
    repeats_ : {"none", "data", "copies"}
        How equal rows (same cells and class), or weights, were taken where weights are learned, else "data". "data": they count as
        so many rows. "copies": many more rows are equal than the frequencies of the columns would give, so repeats say nothing
        new; weights are scaled to the effective number of rows, and copies stay in one fold. A factor that all weights share is
        taken out before.
    model_ : pgmpy DiscreteMarkovNetwork
        Its factors are exp(weight x term); on complete rows its normalised query equals `predict_proba`.
    numeric_columns_ : list of names
        Columns of numbers that were cut into intervals.
    classes_ : ndarray of shape (n_classes,)
        The classes, in the order of `predict_proba`.
    target_name_ : str
        Name of the class variable.
    target_states_ : tuple
        The classes as Python values.
    schema_ : Schema
        Names and states of the columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where they are texts.
    n_features_in_ : int
        Number of columns.
    n_samples_ : int
        Number of rows with a positive weight.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import KikuchiBayesClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 20, "b": list("0101") * 20, "noise": list("01101001") * 10})
    >>> parity = KikuchiBayesClassifier().fit(X, ["even", "odd", "odd", "even"] * 20)
    >>> [sorted(region) for region in parity.initial_regions_]
    [['a', 'b', 'class']]
    >>> parity.predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    """

    _picture = "plot_interactions"
    _rules = {
        "level": Integer(1),
        "significance_level": Number(0, 1),
        "n_resamples": Integer(1),
        "cycles": Choice("allow", "gated", "table"),
        "prior": Choice("consistent", "laplace", "marginal"),
        "prior_strength": Optional(Number(0, open_low=True, tiny=1e-100)),
        "weights": Choice("learned", "tree", "counting"),
        "ridge": Either(Choice("cv", "loo"), Number(0, open_low=True)),
        "criterion": Choice("divergence", "log_loss", "error"),
        "missing": Choice("ignore", "state"),
        "verbose": Verbose(),
    }

    def __init__(
        self,
        *,
        level: int = 2,
        significance_level: float = 0.1,
        n_resamples: int = 100,
        cycles: str = "allow",
        prior: str = "consistent",
        prior_strength: float | None = None,
        weights: str = "learned",
        ridge: float | str = "cv",
        criterion: str = "divergence",
        regions: Any = None,
        missing: str = "ignore",
        preset: str | None = None,
        state_names: dict | None = None,
        target_name: str | None = None,
        handle_unknown: str = "missing",
        random_state: Any = None,
        verbose: int = 0,
        numeric_columns: Any = None,
        categorical_columns: Any = None,
    ) -> None:
        self.level = level
        self.significance_level = significance_level
        self.n_resamples = n_resamples
        self.cycles = cycles
        self.prior = prior
        self.prior_strength = prior_strength
        self.weights = weights
        self.ridge = ridge
        self.criterion = criterion
        self.regions = regions
        self.missing = missing
        self.preset = preset
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.random_state = random_state
        self.verbose = verbose
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns

    def log_scores(self, X: Any) -> np.ndarray:
        """Sum of the weighted terms that hold the class, not normalised.

        With counting weights this is the sum over the regions that hold the class of c_R ln P(x_R, c).

        Parameters
        ----------
        X : table
            Rows, with the columns of the fit.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In nats.
        """
        return self._log_joint(self._encode(X))

    def region_loss(
        self, X: Any, y: Any, regions: Any, focus: Any, *, n_resamples: int | None = None, random_state: Any = None
    ) -> selection.RegionLoss:
        """Loss of an approximation inside a focus, D(P(C | X_F) || Phi(C | X_F)), with the self-loss of the focus.

        Needs no fit; prior and treatment of missing cells are those of the estimator.

        Parameters
        ----------
        X : table
            Rows, as in `fit`.
        y : array or name of a column
            Classes, as in `fit`.
        regions : lists of names
            The initial regions of the approximation, the target's name in those that hold the class.
        focus : list of names
            The focus; the target is added.
        n_resamples : int, optional
            Number of resamples; default that of the estimator.
        random_state : int, Generator or RandomState, optional
            For the resamples; default that of the estimator.

        Returns
        -------
        RegionLoss
            A float, the loss in nats, with `self_losses` (n_resamples,), `mean_self_loss`, `p` and `z`.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import KikuchiBayesClassifier
        >>> X = pd.DataFrame({"a": list("0011") * 20, "b": list("0101") * 20})
        >>> y = pd.Series([0, 1, 1, 0] * 20, name="odd")
        >>> loss = KikuchiBayesClassifier(random_state=0).region_loss(X, y, [["a", "odd"], ["b", "odd"]], ["a", "b"])
        >>> round(loss, 3), loss.p
        (0.693, 0.0)
        """
        reader = clone(self)
        values = reader._resolve()
        training = reader._read_training(X, y, None)
        data, _ = read_class_data(training, values["missing"])
        name = reader.target_name_
        sets = [s for s, holds in attribute_sets(regions, training.schema, name) if holds]
        ((inside, _),) = attribute_sets([focus], training.schema, name)
        n_resamples = values["n_resamples"] if n_resamples is None else n_resamples
        check("n_resamples", n_resamples, Integer(0))
        options = selection.SelectionOptions(
            values["prior"], values["prior_strength"] or DEFAULT_STRENGTH, n_resamples=n_resamples
        )
        rng = random_generator(self.random_state if random_state is None else random_state)
        return selection.region_loss(data, [(), *sets], inside, options, rng)

    def _rows_of_evidence(self, X):
        """The weighted term of every region, zeros where a value is missing."""
        rows = self._encode(X)
        return (term_evidence(self._result.terms, codes, self._result.weights) for codes in rows)

    def _evidence_labels(self):
        """Regions, named by their attributes; "(prior)" is the class alone."""
        from pgm_bma.kikuchi.network import region_labels

        return region_labels(self._result.terms.layout.sets, self.schema_.names)

    def to_bayesian_network(self) -> DiscreteBayesianNetwork:
        """The fitted model as a directed network: exact, so that it can be written as BIF.

        Possible where the regions are acyclic (naive Bayes, ``cycles="gated"``, hand-made trees), else an error tells the loop.

        Returns
        -------
        pgmpy.models.DiscreteBayesianNetwork
            The normalised model.
        """
        from pgm_bma.kikuchi.network import kikuchi_bayesian_network

        names, states = self._variables()
        position = {name: k for k, name in enumerate(names)}
        regions = [frozenset(position[name] for name in region) for region in self.initial_regions_]
        regions += [frozenset([k]) for k in range(len(names))]
        return kikuchi_bayesian_network(self._factors(), regions, names, states)

    def to_networkx(self) -> nx.Graph:
        """The regions as a plain graph: variables that share a region are joined, edges carry `interaction`.

        Returns
        -------
        networkx.Graph
            The columns and the class.
        """
        from pgm_bma.networks.graphs import interaction_graph

        return interaction_graph(
            self.schema_.names, self.target_name_, self.initial_regions_, self.interaction_strength_
        )

    @property
    def numeric_columns_(self) -> list:
        """Columns of numbers that were cut into intervals."""
        names, cuts = self.schema_.names, self.__dict__.get("_cuts")
        return [] if cuts is None else [name for name in names if name in cuts.names]

    @property
    def region_graph_(self) -> nx.DiGraph:
        """Region graph of the initial regions, built on first access."""
        if "_cached_region_graph" not in self.__dict__:
            from pgm_bma.kikuchi.network import region_graph

            self._cached_region_graph = region_graph(self.initial_regions_)
        return self._cached_region_graph

    @property
    def tests_(self) -> pd.DataFrame:
        """All tests of region selection, one row per focus, built on first access."""
        if "_cached_tests" not in self.__dict__:
            from pgm_bma.kikuchi.network import tests_frame

            self._cached_tests = tests_frame(self._result.tests, list(self.schema_.names), self.target_name_)
        return self._cached_tests

    @property
    def interactions_(self) -> pd.DataFrame:
        """The pairs of attributes in the model by falling strength, built on first access."""
        if "_cached_interactions" not in self.__dict__:
            self._cached_interactions = interaction_frame(interaction_lines(self._result.terms, self.schema_.names))
        return self._cached_interactions

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean over the rows of the spread (standard deviation over the classes) of a column's weighted terms, in nats.

        The term of several columns counts for each of them in equal parts.
        """
        return attribute_importances(self._result.terms, self._result.weights, self.n_features_in_)

    @property
    def interaction_strength_(self) -> pd.DataFrame:
        """Information on the class in nats: of each attribute on the diagonal, of each pair beyond its attributes off it."""
        names, values = list(self.schema_.names), self._information
        if values.ndim == 1:
            values = np.where(np.eye(len(names), dtype=bool), values, np.nan)
        return pd.DataFrame(values, index=names, columns=names)

    # ---------------------------------------------------------------------------------------------------- hooks

    def _fit(self, training):
        with naming(training.schema.names):
            self._fit_terms(training)

    def _fit_terms(self, training):
        from pgm_bma.kikuchi.network import named_region, region_series

        values = self._resolve()
        for name in ("_cached_region_graph", "_cached_tests", "_cached_interactions"):
            self.__dict__.pop(name, None)
        size = self.__dict__.pop("_cached_sample_rows", None)
        data, self._state_columns, sample = read_data(training, values, size)
        given = values["regions"]
        if given is not None:
            given = attribute_sets(given, training.schema, self.target_name_)
        options = KikuchiOptions.from_values(values, "tan" if self.preset == "TAN" else "kikuchi")
        holding = None if given is None else [s for s, holds in given if holds]
        options.check_tree(holding)
        with progress(self.verbose, "steps", label="regions and weights") as step:
            result = fit_kikuchi(data, options, holding, step, sample)
        names, target = list(training.schema.names), self.target_name_
        self._result = result
        self._free_terms = self._terms_without_class(data, options, [s for s, holds in given or [] if not holds])
        self._handle_unknown = values["handle_unknown"]
        regions = [named_region(s, names, target) for s in result.regions]
        free = [frozenset(names[a] for a in s) for s, holds in given or [] if not holds and s]
        self.initial_regions_ = regions
        if free:
            everything = list(dict.fromkeys([*regions, *free]))
            self.initial_regions_ = [r for r in everything if not any(r < other for other in everything)]
        self.term_weights_ = region_series(result.terms.layout.sets, result.weights, names, target, "weight")
        self.ridge_ = None if result.learned is None else result.learned.ridge
        self.prior_strength_, self.repeats_ = result.strength, data.repeats
        self._information = count_information(data, values["level"] > 1 or given is not None)

    def _fit_rows(self, training):
        self.__dict__.pop("_cuts", None)
        self._fit(training)

    def _log_joint(self, codes):
        return log_scores(self._result.terms, codes, self._result.weights)

    def _build_model(self):
        from pgm_bma.kikuchi.network import kikuchi_markov_network

        return kikuchi_markov_network(self._factors(), *self._variables())

    def _fitted_summary(self):
        numeric = f", numeric: {', '.join(map(str, self.numeric_columns_))}" if self.numeric_columns_ else ""
        return f"{super()._fitted_summary()}, {len(self.initial_regions_)} initial regions{numeric}"

    # ---------------------------------------------------------------------------------------------------- helpers

    def _resolve(self):
        """Checked parameter values under the preset."""
        values = resolve_preset(self, PRESETS)
        check_parameters(self, values)
        return values

    def _terms_without_class(self, data, options, free_regions):
        """Terms of class-free regions, and of attributes that are in no region: they say nothing of the class."""
        held = {a for s in [*self._result.regions, *free_regions] for a in s}
        alone = [(a,) for a in range(len(data.cardinalities)) if a not in held]
        check_regions(free_regions, data.cardinalities, 1)
        sets = downward_closure([*free_regions, *alone])
        if len(sets) == 1:
            return None
        return interaction_terms(data._replace(n_classes=1), sets, options.prior, self._result.strength)

    def _variables(self):
        """Names and states of the model's variables, the class last."""
        states = with_missing_state(self.schema_, self._state_columns).states
        return [*self.schema_.names, self.target_name_], [*map(list, states), list(self.target_states_)]

    def _factors(self):
        from pgm_bma.kikuchi.network import log_factors

        return log_factors(self._result, self._free_terms, self.n_features_in_)

    def _encode(self, X):
        reader = self
        if self.__dict__.get("_handle_unknown", self.handle_unknown) != self.handle_unknown and self.preset is not None:
            reader = copy(self)  # a preset decides on unseen values, and parameters stay as they were passed
            reader.handle_unknown = self._handle_unknown
        codes = super(KikuchiBayesClassifier, reader)._encode(X)
        return mark_missing(X, codes, self.schema_, self._state_columns)
