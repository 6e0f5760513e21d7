"""The posterior over structures of all columns, without a class."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.docstrings import ROWS, fill
from pgm_bma.foundation.faces.validation import Choice, brief, check_number, resolve_preset
from pgm_bma.foundation.rows.scan import NeedsRows, NotFolded
from pgm_bma.foundation.runtime.jobs import random_generator
from pgm_bma.foundation.tables import interventions as experiments
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import add_missing_state, as_frame, filled_column
from pgm_bma.foundation.tables.table import as_table
from pgm_bma.networks.discovery import BaseCausalDiscovery
from pgm_bma.orders import fitting, parameters
from pgm_bma.orders.families.family_table import MAX_FAMILIES, FamilyTable
from pgm_bma.orders.gaps.augmented_average import draw_completions
from pgm_bma.orders.network import graph_metric
from pgm_bma.orders.pooling import as_estimates, pool
from pgm_bma.orders.results import OrderResults
from pgm_bma.orders.samplers import GibbsSampler, SwapSampler
from pgm_bma.orders.score_files import ScoresOnly, given_families
from pgm_bma.orders.structure_average import WEIGHTINGS


@fill(
    sampler=parameters.SAMPLER,
    families=parameters.FAMILIES_BY_EVIDENCE,
    arcs=parameters.ARCS,
    rows=parameters.ROWS,
    run=parameters.RUN,
    results=parameters.RESULTS,
    columns=ROWS,
)
class OrderPosterior(OrderResults, BaseCausalDiscovery):
    """Posterior of arcs and structures: exact for up to 20 variables, sampled over orders beyond (Friedman and Koller; Hwang and
    Zhang 2005).

    Parameters
    ----------
    method : {"auto", "exact", "mcmc"}, default="auto"
        "auto" is exact up to 20 variables, up to 12 under structure_weighting="dag".
    {sampler}
    {families}
    {arcs}
    arc_prior : float, dict or DataFrame, default=0.5
        Prior probability of arcs: one for all, a dict (parent, child) -> probability, or a DataFrame parent x child (NaN: no
        opinion). The log odds are added to the structure prior for every arc that a set of parents has; 0.5 changes nothing.
    {rows}
    {run}
    state_names : dict, optional
        States of columns, in order; may hold states never seen.
    handle_unknown : {"missing", "ignore", "error"}, default="missing"
        Treatment of a state that `fit` has not seen, in `score_samples`.

    Attributes
    ----------
    {results}
    edge_prob_ : dict
        (a, b) -> P(an arc between a and b | data), under the name that pgmpy plans.
    direction_prob_ : dict
        (a, b) -> P(a -> b | data and an arc between them), under the name that pgmpy plans.
    equivalent_sample_size_ : float or None
        Total pseudo-count of every table that was used: the given one, or the one of most evidence; None under other priors.
    {columns}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import OrderPosterior
    >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 6, "c": list("0101") * 6})
    >>> posterior = OrderPosterior(equivalent_sample_size=1, random_state=0).fit(X)
    >>> posterior.edge_posterior_.round(2).loc["a"].tolist()
    [0.0, 0.5, 0.02]
    >>> list(posterior.model_.edges), posterior.structure_weighting_
    ([('a', 'b')], 'order')
    """

    model_is_exact_ = False
    _rules = {
        **fitting.FAMILY_RULES,
        **fitting.RUN_RULES,
        "parameter_prior": Choice("evidence", "consistent", "paper"),
    }
    _default_records = {"sampler": GibbsSampler()}

    def __init__(
        self,
        *,
        method: str = "auto",
        sampler: GibbsSampler | SwapSampler | None = None,
        max_indegree: int = 3,
        structure_prior: str = "mdl",
        structure_weighting: str = "order",
        alpha: float | None = None,
        equivalent_sample_size: float | None = None,
        parameter_prior: str = "evidence",
        required_arcs: Iterable | None = None,
        forbidden_arcs: Iterable | None = None,
        arc_prior: Any = 0.5,
        expert_knowledge: Any = None,
        missing: str = "auto",
        unobserved: str = "sum_out",
        preset: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
        state_names: dict | None = None,
        handle_unknown: str = "missing",
    ):
        self.method = method
        self.sampler = sampler
        self.max_indegree = max_indegree
        self.structure_prior = structure_prior
        self.structure_weighting = structure_weighting
        self.alpha = alpha
        self.equivalent_sample_size = equivalent_sample_size
        self.parameter_prior = parameter_prior
        self.required_arcs = required_arcs
        self.forbidden_arcs = forbidden_arcs
        self.arc_prior = arc_prior
        self.expert_knowledge = expert_knowledge
        self.missing = missing
        self.unobserved = unobserved
        self.preset = preset
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.state_names = state_names
        self.handle_unknown = handle_unknown

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
        """Learn the posterior over structures of the columns of `X`.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features)
            Discrete values.
        y : None
            Not used.
        sample_weight : array of shape (n_samples,), optional
            A weight is a repetition of the row.
        {experiments}

        Returns
        -------
        self : object
            The fitted estimator.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 6, "b": list("0011") * 3 + list("0101") * 3})
        >>> X["set"] = [None] * 12 + ["b"] * 12
        >>> seen = OrderPosterior(equivalent_sample_size=1).fit(X[["a", "b"]][:12])
        >>> experiment = OrderPosterior(equivalent_sample_size=1).fit(X, interventions="set")
        >>> [round(float(each.edge_posterior_.loc["a", "b"]), 2) for each in (seen, experiment)]
        [0.5, 1.0]
        """
        with self._unchanged_by_failure():
            interventions = experiments.given(interventions, intervention_targets, intervention_type)
            has_experiments = interventions is not None
            if has_experiments:
                experiments.check_source(X, interventions)
            try:
                X, sample_weight = self._fold_scan(X, sample_weight)
            except NotFolded as refusal:
                with self._in_passes(refusal):
                    if has_experiments:
                        raise NeedsRows("interventions", "fewer columns or states") from None
                    self._fit_rows(sample_weight)
                return self
            found = None
            if has_experiments:
                X, found = experiments.split_experiments(X, interventions, intervention_type)
            self._fit(X, sample_weight, found)
        return self

    def fit_scores(self, scores: Any) -> Self:
        """Learn the posterior over structures from scores of families, which another program may have computed.

        Only parameters of the run matter (method, sampler, structure_weighting): the scores hold the priors. Families that are not
        listed are not possible. What needs rows (`model_`, `sample_dags`, effects, probabilities of rows) raises an error.

        Parameters
        ----------
        scores : path, DataFrame or fitted order estimator
            A file in the format .jkl, or what `read_scores` returns: `child`, `parents` (tuple of names) and `log_score` (natural
            logarithm, prior included). Every variable has a score without parents.

        Returns
        -------
        self : object
            The fitted estimator.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> scores = pd.DataFrame({"child": list("aabb"), "parents": [(), ("b",), (), ("a",)], "log_score": [-9, -8, -9, -9]})
        >>> OrderPosterior().fit_scores(scores).edge_posterior_.round(2).to_numpy().tolist()
        [[0.0, 0.17], [0.48, 0.0]]
        """
        with self._unchanged_by_failure():
            settings = self._settings()
            ruled = [
                name
                for name in ("required_arcs", "forbidden_arcs", "expert_knowledge")
                if getattr(settings, name) is not None
            ]
            if ruled or settings.arc_prior != 0.5:
                name = (ruled or ["arc_prior"])[0]
                raise ValueError(
                    f"fit_scores takes the scores as they are; {name} changes nothing there: leave it at its default"
                )
            reach = self._reach(settings)
            names, families = given_families(scores, reach)
            if settings.method == "exact" and not isinstance(families, FamilyTable):
                raise ValueError(
                    f"method='exact' reaches {reach} variables with at most {MAX_FAMILIES} families; pass method='auto'"
                )
            settings = settings._replace(max_indegree=families.max_indegree)
            self._forget()
            self.__dict__.pop("_cached_model", None)
            self._variables = table.Schema(tuple(names), ((),) * len(names))
            self._feature_states = self._variables.states
            self._set_columns(self._variables, True)
            self.n_samples_ = 0
            self._set_missing(np.zeros(len(names)), 0.0, 0.0)
            self._average_over(ScoresOnly(families.cardinalities), settings, predicts=False, families=families)
            self._warn_if_chains_disagree()
        return self

    def _reach(self, settings):
        """Most variables of a full table of families."""
        if settings.swaps:
            return np.inf
        return 0 if settings.method == "mcmc" else WEIGHTINGS[settings.structure_weighting].exact_arcs

    def _fit_rows(self, sample_weight):
        settings = self._settings()
        rows, _ = self._read_rows(sample_weight, None)
        self._finish(self._count_passes(rows, settings), settings)

    def _settings(self):
        """The parameters, checked; an alpha that is given takes the place of "evidence"."""
        values = resolve_preset(self, fitting.PRESETS)
        if values["alpha"] is None:
            values["alpha"] = 1.0
        elif values["parameter_prior"] == "evidence":
            values["parameter_prior"] = "consistent"
        return fitting.checked_settings(self, values)

    def _fit(self, X, sample_weight, found):
        settings = self._settings()
        read = self._read_features(X, sample_weight, None)
        self._forget()
        self._feature_states = read.schema.states
        schema, codes = read.schema, read.codes
        held = None if found is None else found.held(schema.names, codes, sample_weight)
        self._count_missing(codes, read.weights)
        if settings.missing == "state":
            schema, codes, _ = add_missing_state(schema, codes)
        self._variables = table.Schema(schema.names, schema.states)
        soft = found is not None and found.soft
        self._finish(fitting.training_rows(schema, codes, read.weights, settings, held, soft), settings)

    def _finish(self, training, settings):
        training = fitting.with_sample_size(training, list(self._variables.names), settings)
        ready = self._average_over(training, settings, predicts=False)
        if self._average.gaps is not None:
            self._mixture(ready)
        self._warn_if_chains_disagree()

    def complete(self, X: Any, n: int = 1, random_state: Any = None) -> list[pd.DataFrame]:
        """Multiple imputation: completed copies of a table, drawn from the averaged posterior.

        Every copy is drawn from another kept structure, whose tables are drawn from their posterior too, and all missing
        cells of a row jointly: what is not known about structure and parameters shows in how the copies differ.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features)
            Rows with missing cells: those of the fit or others.
        n : int, default=1
            Number of copies.
        random_state : int, Generator, RandomState or None, default=None
            Seed; without it, equal calls give equal tables.

        Returns
        -------
        list of DataFrame
            Copies of `X` in its own dtypes, empty cells filled. A value that the fit has not seen stays, and counts as
            missing.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 10, "b": list("0011") * 10})
        >>> X.loc[3, "b"] = None
        >>> posterior = OrderPosterior(random_state=0).fit(X)
        >>> [table.loc[3, "b"] for table in posterior.complete(X, 3)]
        ['1', '1', '1']
        """
        codes = self._encode(X)
        if self.missing == "state":
            raise ValueError(
                "missing='state' makes missing a value: there is nothing to complete; fit with missing='auto'"
            )
        check_number("n", n, 0, integer=True)
        rng = np.random.default_rng([self._seed, 5]) if random_state is None else random_generator(random_state)
        drawn = draw_completions(self._average, self._mixture(), codes, n, rng)
        frame = X.copy() if isinstance(X, pd.DataFrame) else as_frame(X if table.is_named(X) else as_table(X, self))
        columns = {}
        for k, name in enumerate(self.schema_.names):
            columns[name if name in frame.columns else frame.columns[k]] = k
        tables = []
        for codes in drawn:
            filled = frame.copy()
            for column, k in columns.items():
                filled[column] = filled_column(frame[column], self.schema_.states[k], codes[:, k])
            tables.append(filled)
        return tables

    def with_copies(
        self, analysis: Callable, n: int = 20, X: Any = None, *, level: float = 0.95, random_state: Any = None
    ) -> pd.DataFrame:
        """Run an analysis on completed copies of a table and pool its estimates by Rubin's rules.

        Parameters
        ----------
        analysis : function
            Takes a completed DataFrame and returns (estimates, variances), or (estimates, variances, degrees of freedom of complete
            rows); the first two are numbers, dicts, Series or lists. Or it returns an object with `params` and `bse`, as the fits
            of statsmodels are.
        n : int, default=20
            Number of copies, at least 2.
        X : DataFrame or array of shape (n_samples, n_features), optional
            The table; by default the rows of the fit, in another order and without further columns.
        level : float, default=0.95
            Probability between `low` and `high`.
        random_state : int, Generator, RandomState or None, default=None
            Seed; without it, equal calls give equal results.

        Returns
        -------
        DataFrame
            By estimate: `estimate`, `std_error`, `df`, `low`, `high` and `missing_information`, the share of the information that
            the missing cells took.

        Examples
        --------
        >>> import pandas as pd
        >>> from pgm_bma import OrderPosterior
        >>> X = pd.DataFrame({"a": list("0011") * 10, "b": list("0011") * 10})
        >>> X.loc[:4, "b"] = None
        >>> def share(table):
        ...     p = (table["b"] == "1").mean()
        ...     return {"P(b = 1)": p}, {"P(b = 1)": p * (1 - p) / len(table)}
        >>> OrderPosterior(random_state=0).fit(X).with_copies(share, 10).round(2)[["estimate", "std_error"]]
                  estimate  std_error
        P(b = 1)       0.5       0.08
        """
        check_is_fitted(self)
        check_number("n", n, 2, integer=True)
        check_number("level", level, 0, 1, open_low=True)
        if not callable(analysis):
            raise ValueError(f"analysis={brief(analysis)} must be a function of a completed DataFrame")
        words = "analysis must return (estimates, variances), or an object with params and bse"
        found = [
            as_estimates(analysis(copy), words)
            for copy in self.complete(self._rows_of_fit() if X is None else X, n, random_state)
        ]
        if any(not each[0].index.equals(found[0][0].index) for each in found):
            raise ValueError(
                "analysis returned other estimates on other copies; it must return the same ones each time"
            )
        return pool(found, level)

    def _rows_of_fit(self):
        """The rows of the fit as a DataFrame, empty where cells are missing."""
        gaps = self._average.gaps
        if gaps is None:
            raise ValueError("the fit kept no rows with missing cells; pass the table as X")
        codes = np.repeat(gaps.codes, gaps.weights.astype(np.int64), axis=0)
        states = [np.array([*some, None], dtype=object) for some in self.schema_.states]
        return pd.DataFrame({name: states[k][codes[:, k]] for k, name in enumerate(self.schema_.names)})

    def log_joint(self, X: Any) -> np.ndarray:
        """Natural log P(row | data) of every row, averaged over structures, missing cells summed out.

        Exact under method "exact" up to 16 variables (9 under structure_weighting="dag"); else averaged over the kept orders.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Log probabilities.
        """
        return self._joint_with_error(self._encode(X), None, 1)[0][:, 0]

    def score_samples(self, X: Any) -> np.ndarray:
        """The same as `log_joint`.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        array of shape (n_samples,)
            Log probabilities.
        """
        return self.log_joint(X)

    def score(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, *, true_graph: Any = None, metric: Any = None
    ) -> Any:
        """Weighted mean natural log P(row | data), or a metric of pgmpy for the best DAG.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features), optional
            Rows.
        y : None
            Not used.
        sample_weight : array of shape (n_samples,), optional
            Weights of the rows.
        true_graph : pgmpy DAG or PDAG, optional
            Graph that `causal_graph_` is compared with.
        metric : str or pgmpy metric, optional
            Which comparison, by name or as an object; with `X` instead of `true_graph`, a metric that reads data. By default
            pgmpy's own choice for `true_graph`, and the log probability for `X`.

        Returns
        -------
        float or what the metric returns
            The score.
        """
        check_is_fitted(self)
        if true_graph is None and metric is None and X is not None:
            log_p = self.log_joint(X)
            return float(np.average(log_p, weights=table.check_weights(sample_weight, len(log_p))))
        return graph_metric(self.causal_graph_, X, true_graph, metric)

    @property
    def edge_prob_(self):
        """Dict (a, b) -> P(an arc between a and b | data): `skeleton_posterior_` under the name that pgmpy plans, pairs above 0."""
        return self._by_pair(self.skeleton_posterior_.to_numpy())

    @property
    def direction_prob_(self):
        """Dict (a, b) -> P(a -> b | data and an arc between them), under the name that pgmpy plans, pairs with an arc above 0."""
        skeleton = self.skeleton_posterior_.to_numpy()
        return self._by_pair(skeleton, self._average.edges / np.where(skeleton > 0, skeleton, 1.0))

    def _by_pair(self, skeleton, values=None):
        names, values = self._variables.names, skeleton if values is None else values
        return {(names[u], names[v]): float(values[u, v]) for u, v in zip(*np.nonzero(skeleton))}

    @property
    def equivalent_sample_size_(self):
        """Total pseudo-count of every table (BDeu): the given one, or the one of most evidence; None under other priors."""
        return getattr(self._average.training, "equivalent_sample_size", None)

    def _fitted_summary(self):
        return f", {self.method_} over {self._weighting().words}"
