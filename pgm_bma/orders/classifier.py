"""Classifiers averaged over networks: given one order (Dash and Cooper), or over many orders (Hwang and Zhang)."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.special import logsumexp
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.classifier import ClassifierBase
from pgm_bma.foundation.faces.docstrings import CLASSES, NAMES, fill
from pgm_bma.foundation.faces.validation import Choice, Instance, Optional, check_choice, resolve_preset
from pgm_bma.foundation.rows.blocks import Rows
from pgm_bma.foundation.rows.scan import NeedsRows
from pgm_bma.foundation.runtime.jobs import random_generator, seed_sequence
from pgm_bma.foundation.tables import interventions as experiments
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import add_missing_state
from pgm_bma.orders import fitting, network, parameters, search
from pgm_bma.orders.families.arcs import order_positions, random_order
from pgm_bma.orders.gaps.augment import GapTable
from pgm_bma.orders.gaps.augmented_average import counts_for
from pgm_bma.orders.results import N_DIAGNOSED_ROWS, OrderResults
from pgm_bma.orders.samplers import GibbsSampler, SwapSampler
from pgm_bma.orders.structure_average import given_average
from pgm_bma.orders.sums import exact_orders, fixed_order

MAX_CELLS = 1_000_000  # of the exact averaged network; pgmpy takes about a second to build that
# fewer sweeps than for arc posteriors: class posteriors settle sooner
CLASSIFIER_SAMPLER = GibbsSampler(tol=0.1, max_sweeps=1024)
# Sweeps of chains over missing cells where no sampler was given: three quarters of them count, so four chains average 48 completed
# tables. Twelve sweeps find an order. See benchmarks/orders_completed.
PREDICTION_SWEEPS, ORDER_SWEEPS = 16, 12


class _OrderClassifier(OrderResults, ClassifierBase):
    """Base of both classifiers: the class is the last variable, and every prediction comes from averaged joints."""

    sampler: Any
    _missing_target_cure = "drop those rows, or pass missing='augment' to learn from them too"

    @fill(experiments=experiments.PARAMETERS_AND_TARGETS)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        interventions: Any = None,
        intervention_type: str = "perfect",
        intervention_targets: Any = None,
    ) -> Self:
        """Learn from rows `X` with classes `y`.

        Parameters
        ----------
        X : table
            Discrete values: DataFrame of any library, 2-D array, or a scan; NaN and None are missing.
        y : array-like of shape (n_samples,), or name of a column of X
            Classes of the rows.
        sample_weight : array-like of shape (n_samples,), optional
            A weight is a repetition of the row.
        {experiments}

        Returns
        -------
        estimator
            The estimator itself.
        """
        interventions = experiments.given(interventions, intervention_targets, intervention_type)
        if interventions is not None:
            experiments.check_source(X, interventions)
        self._cached_experiments = None if interventions is None else (interventions, intervention_type)
        try:
            return super().fit(X, y, sample_weight)
        finally:
            self.__dict__.pop("_cached_experiments", None)

    def _read_training(self, X, y, sample_weight):
        if self._cached_experiments is not None:
            X, found = experiments.split_experiments(X, *self._cached_experiments)
            self._cached_experiments = found, sample_weight
        return super()._read_training(X, y, sample_weight)

    def _prepare(self, training, settings):
        """Codes of all variables with the class last, folded to complete rows."""
        given = self.__dict__.pop("_cached_experiments", None)
        if isinstance(training.codes, Rows):
            if given is not None:
                raise NeedsRows("interventions", "fewer columns or states")
            return self._count_passes(training.codes, settings, (self.target_name_, training.classes))
        self._forget()
        self._feature_states = training.schema.states
        schema, codes = training.schema, training.codes
        self._count_missing(np.column_stack([codes, training.target]), training.weights)
        if settings.missing == "state":
            schema, codes, _ = add_missing_state(schema, codes)
        self._variables = table.Schema((*schema.names, self.target_name_), (*schema.states, tuple(training.classes)))
        codes = np.column_stack([codes, training.target])
        held, soft = None, False
        if given is not None:
            found, sample_weight = given
            held, soft = found.held(self._variables.names, codes, sample_weight), found.soft
        return fitting.training_rows(self._variables, codes, training.weights, settings, held, soft)

    def _fit_rows(self, training):  # `_prepare` counts rows that are visited in passes
        self._fit(training)

    def _takes_missing_targets(self):
        return isinstance(self.missing, str) and self.missing == "augment"

    def _log_joint(self, codes):
        return self._log_joint_with_error(codes)[0]

    def _log_joint_with_error(self, codes):
        rows = np.column_stack([codes, np.zeros(len(codes), dtype=np.int64)])
        return self._joint_with_error(rows, len(self.schema_.names), len(self.classes_))

    def log_joint(self, X: Any, y: Any) -> np.ndarray:
        """Natural log P(row, class | data) of every row with its class, missing features summed out.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features)
            Rows.
        y : array of shape (n_samples,), or one class
            The class of every row.

        Returns
        -------
        array of shape (n_samples,)
            Log probabilities.
        """
        codes = self._encode(X)
        index = {label: k for k, label in enumerate(self.target_states_)}
        values = [y] * len(codes) if isinstance(y, str) or np.ndim(y) == 0 else list(y)
        unknown = [value for value in values if not isinstance(value, Hashable) or value not in index]
        if unknown:
            raise ValueError(
                f"y holds {unknown[0]!r}, which is not a class; the classes are {list(self.target_states_)}"
            )
        if len(values) != len(codes):
            raise ValueError(f"X and y have inconsistent lengths: {len(codes)} rows and {len(values)} classes")
        return self._log_joint(codes)[np.arange(len(codes)), [index[value] for value in values]]

    def predict_proba_with_error(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Class probabilities and their standard errors.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : array of shape (n_samples, n_classes)
            As `predict_proba` gives them.
        errors : array of shape (n_samples, n_classes)
            Standard errors, 0 where nothing was sampled.
        """
        log_joint, error = self._log_joint_with_error(self._encode(X))
        return np.exp(log_joint - logsumexp(log_joint, axis=1, keepdims=True)), error

    def _evidence(self, codes):
        """A variable's log probability given its parents, averaged over the kept orders as the row re-weights them.

        "(prior)" is the class given its own parents, "(orders)" what the averaging adds.
        """
        if (codes < 0).any():
            name = self.schema_.names[int(np.argmax(codes[0] < 0))]
            raise ValueError(f"the row has no value for {name!r}; evidence is split by variable for complete rows only")
        n_classes = len(self.classes_)
        rows = np.append(codes, [[0]], axis=1)
        # orders, nodes, classes
        terms = fixed_order.log_terms(self._mixture(), rows, codes.shape[1], n_classes)[:, :, 0]
        shares = terms.sum(1)
        shares = np.exp(shares - logsumexp(shares, axis=0))
        evidence = np.einsum("tc,tvc->vc", shares, terms)
        rest = self._log_joint_with_error(codes)[0] - evidence.sum(0)
        return np.vstack([evidence[-1:], evidence[:-1], rest])

    def _evidence_labels(self):
        return [*super()._evidence_labels(), "(orders)"]

    def _diagnosed(self):
        yield from super()._diagnosed()
        rows = self._average.training.first_rows[:N_DIAGNOSED_ROWS].astype(np.int64)
        if len(rows) == 0:
            return
        n_classes = len(self.classes_)
        joints = fixed_order.log_joints(self._mixture(), rows, rows.shape[1] - 1, n_classes)
        proba = np.exp(joints - logsumexp(joints, axis=2, keepdims=True))[:, :, 1:]
        labels = [f"P({c} | row {k})" for k in range(len(rows)) for c in self.target_states_[1:]]
        yield "class posterior", labels, proba.reshape(*self._average.states.shape[:2], -1)

    def _for_predictions(self, rows, settings):
        """The settings with as many sweeps over missing cells as class probabilities need, unless a sampler was given."""
        if not isinstance(rows, GapTable) or self.sampler is not None:
            return settings
        sweeps = PREDICTION_SWEEPS * counts_for(rows, settings.max_indegree)
        return settings._replace(sampler=replace(settings.sampler, max_sweeps=sweeps), quiet=True)


@fill(
    families=parameters.FAMILIES,
    rows=parameters.ROWS,
    names=NAMES,
    results=parameters.RESULTS,
    classes=CLASSES,
)
class FixedOrderClassifier(_OrderClassifier):
    """Classifier averaged over all networks that fit one order of the variables (Dash and Cooper 2004).

    Parameters
    ----------
    order : list or {"best", "random", "greedy"}, default="best"
        All variables, the class among them, earliest first; or "random", "greedy" (from the order of the columns, one variable is
        moved at a time to where the score rises most) or "best" (exact up to 20 variables, else the best of a chain and a
        climb).
    sampler : GibbsSampler, optional
        Chains over missing values, given the order (n_chains, max_sweeps, max_time, n_orders, checkpoint), and the family lists of
        many variables (eps, beam). By default four chains make 16 sweeps each, and 48 completed tables are
        averaged; on three generated tables log loss was as good as that of long runs. Arcs may want more: pass GibbsSampler().
    {families}
    {rows}
    random_state : int, Generator, RandomState or None, default=None
        Seeds "random", "best" and the draws.
    {names}

    Attributes
    ----------
    order_ : tuple
        Names, earliest first.
    order_log_score_ : float
        Log of prod_i sum over parent sets of prior x marginal likelihood; with missing cells, its mean over completed tables.
    model_is_exact_ : bool
        Whether `model_` is the averaged network itself, which it is while that has at most a million cells and no cell of the
        training rows was missing.
    {results}
    {classes}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import FixedOrderClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> y = pd.Series(["even", "odd", "odd", "even"] * 6, name="sum")
    >>> classifier = FixedOrderClassifier(order=["a", "b", "sum"]).fit(X, y)
    >>> classifier.predict(X[:4]).tolist()
    ['even', 'odd', 'odd', 'even']
    >>> round(float(classifier.edge_posterior_.loc["a", "sum"]), 3)
    1.0
    >>> classifier.to_network().check_model()
    True
    """

    _rules = {**fitting.FAMILY_RULES, "sampler": Optional(Instance(GibbsSampler, "a GibbsSampler"))}
    _default_records = {"sampler": CLASSIFIER_SAMPLER}

    def __init__(
        self,
        order: Any = "best",
        *,
        sampler: GibbsSampler | None = None,
        max_indegree: int = 3,
        structure_prior: str = "mdl",
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        parameter_prior: str = "consistent",
        expert_knowledge: Any = None,
        missing: str = "auto",
        unobserved: str = "sum_out",
        random_state: Any = None,
        state_names: dict | None = None,
        target_name: str | None = None,
        handle_unknown: str = "missing",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
    ):
        self.order = order
        self.sampler = sampler
        self.max_indegree = max_indegree
        self.structure_prior = structure_prior
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.parameter_prior = parameter_prior
        self.expert_knowledge = expert_knowledge
        self.missing = missing
        self.unobserved = unobserved
        self.random_state = random_state
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns

    def _fit(self, training):
        settings = fitting.checked_settings(self, self.get_params(deep=False))
        rows = self._prepare(training, settings)
        settings = self._for_predictions(rows, settings)
        names = list(self._variables.names)
        ready = None
        if isinstance(rows, GapTable):
            order, ready = self._fit_gaps(rows, names, settings)
        else:
            families, arcs = fitting.score(rows, names, settings, True)
            rng = random_generator(self.random_state)
            order = self._choose_order(families, names, arcs.required, rng)
            self._average = given_average(families, rows, [order])
            self._seed = int(rng.integers(2**63))
        self.order_ = tuple(names[v] for v in order)
        self.order_log_score_ = float(self._average.log_scores.mean())
        self._get_ready(ready)

    def _fit_gaps(self, gaps, names, settings):
        """The average given one order with the missing cells sampled; an order to be found is the best over sampled tables."""
        root = seed_sequence(self.random_state)
        max_indegree, arcs = fitting.reach(names, settings)
        families = None
        if isinstance(self.order, str) and self.order in ("best", "greedy"):
            sweeps = ORDER_SWEEPS * counts_for(gaps, max_indegree)
            short = replace(settings.sampler, max_sweeps=sweeps, checkpoint=None)
            short = settings._replace(sampler=short, quiet=True)
            families = fitting.augment(gaps, names, short, self.random_state, root)[0].table
        rng = np.random.default_rng(root.spawn(1)[0])
        order = self._choose_order(families, names, arcs.required, rng)
        self._average, mix = fitting.augment(gaps, names, settings, self.random_state, root, orders=[order])
        self._seed = int(rng.integers(2**63))
        return order, mix

    def _choose_order(self, families, names, required, rng):
        if not isinstance(self.order, str):
            return order_positions("order", self.order, names, required)
        check_choice("order", self.order, ("random", "greedy", "best"))
        if self.order == "random":
            return random_order(len(names), rng, required)
        if self.order == "best" and len(names) <= exact_orders.MAX_VARIABLES:
            return exact_orders.best_order(exact_orders.sum_over_orders(families))
        return search.find_order(families, self.order, required, rng)

    @property
    def model_is_exact_(self):  # type: ignore[override]  # of the other classes it is a constant
        """Return whether `model_` is the averaged network itself."""
        return self._average.gaps is None and fixed_order.averaged_cells(self._mixture()) <= MAX_CELLS

    def to_network(self, max_cells: int = MAX_CELLS) -> Any:
        """The averaged joint itself as a pgmpy network: every variable has all parents that carry weight.

        Parameters
        ----------
        max_cells : int, default=1000000
            Most cells of its tables.

        Returns
        -------
        DiscreteBayesianNetwork
            The network.

        Raises
        ------
        ValueError
            If its tables would hold more than `max_cells` cells; the message tells the size. Or if cells were missing in training.
        """
        check_is_fitted(self)
        if self._average.gaps is not None:
            raise ValueError(
                "with missing cells the average runs over completed tables and is no single network; use sample_dags() or model_, "
                "the best single DAG, or fit with missing='drop' or 'state'"
            )
        mix = self._mixture()
        cells = fixed_order.averaged_cells(mix)
        if cells > max_cells:
            raise ValueError(
                f"the exact averaged network has {cells:.3g} cells, more than max_cells={max_cells}: every variable has all of its "
                "predecessors as parents; use sample_dags() or model_, the best single DAG"
            )
        return network.averaged_network(self._variables, mix)

    def _build_model(self):
        return self.to_network() if self.model_is_exact_ else super()._build_model()

    def _arc_posteriors(self):
        names, edges = self._variables.names, self._average.edges
        index = {name: k for k, name in enumerate(names)}
        return {(u, v): edges[index[u], index[v]] for u, v in self.model_.edges()}

    def _fitted_summary(self):
        return f"{super()._fitted_summary()}, given one order"


@fill(
    sampler=parameters.SAMPLER.replace(
        "By default GibbsSampler()", "By default GibbsSampler(tol=0.1, max_sweeps=1024)"
    ),
    families=parameters.FAMILIES,
    rows=parameters.ROWS,
    run=parameters.RUN,
    names=NAMES,
    results=parameters.RESULTS,
    classes=CLASSES,
)
class OrderAveragedClassifier(_OrderClassifier):
    """Classifier averaged over networks of all variables: over all orders exactly while they are few, over sampled orders
    beyond (Hwang and Zhang 2005). Joints are averaged over orders, then normalised over the classes.

    With missing values in training and no `sampler`, 48 completed tables are averaged: on three generated tables log loss was
    at most .015 above that of long runs. `converged_` speaks of arcs, which may want more: pass ``sampler=GibbsSampler()``.

    Parameters
    ----------
    method : {"auto", "exact", "mcmc", "given"}, default="auto"
        "auto" is exact up to 12 variables, the class included; "exact" reaches 16. "given": the orders in
        ``GibbsSampler(init=[...])`` are averaged with equal weight; an order lists all variables, earliest first.
    {sampler}
    {families}
    {rows}
    {run}
    {names}

    Attributes
    ----------
    {results}
    {classes}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import OrderAveragedClassifier
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0101") * 6})
    >>> y = pd.Series(["even", "odd", "odd", "even"] * 6, name="sum")
    >>> classifier = OrderAveragedClassifier(random_state=0).fit(X, y)
    >>> classifier.predict(X[:4]).tolist(), classifier.method_
    (['even', 'odd', 'odd', 'even'], 'exact')
    >>> classifier.edge_posterior_.round(2).loc["a"].tolist()
    [0.0, 0.36, 0.36]
    """

    model_is_exact_ = False
    _rules = {
        **fitting.FAMILY_RULES,
        **fitting.RUN_RULES,
        "method": Choice("auto", "exact", "mcmc", "given"),
    }
    _default_records = {"sampler": CLASSIFIER_SAMPLER}

    def __init__(
        self,
        *,
        method: str = "auto",
        sampler: GibbsSampler | SwapSampler | None = None,
        max_indegree: int = 3,
        structure_prior: str = "mdl",
        structure_weighting: str = "order",
        alpha: float = 1.0,
        equivalent_sample_size: float | None = None,
        parameter_prior: str = "consistent",
        expert_knowledge: Any = None,
        missing: str = "auto",
        unobserved: str = "sum_out",
        preset: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        state_names: dict | None = None,
        target_name: str | None = None,
        handle_unknown: str = "missing",
        numeric_columns: Any = None,
        categorical_columns: Any = None,
    ):
        self.method = method
        self.sampler = sampler
        self.max_indegree = max_indegree
        self.structure_prior = structure_prior
        self.structure_weighting = structure_weighting
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.parameter_prior = parameter_prior
        self.expert_knowledge = expert_knowledge
        self.missing = missing
        self.unobserved = unobserved
        self.preset = preset
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.state_names = state_names
        self.target_name = target_name
        self.handle_unknown = handle_unknown
        self.numeric_columns = numeric_columns
        self.categorical_columns = categorical_columns

    def _fit(self, training):
        settings = fitting.checked_settings(self, resolve_preset(self, fitting.PRESETS))
        rows = self._prepare(training, settings)
        settings = self._for_predictions(rows, settings)
        self._get_ready(self._average_over(rows, settings, predicts=True))
        self._warn_if_chains_disagree()

    def _fitted_summary(self):
        return f"{super()._fitted_summary()}, {self.method_} over {self._weighting().words}"
