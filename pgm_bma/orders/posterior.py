"""The posterior over structures of all columns, without a class."""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.docstrings import ROWS, fill
from pgm_bma.foundation.faces.validation import check_number, resolve_preset
from pgm_bma.foundation.rows.scan import NotFolded
from pgm_bma.foundation.runtime.seeds import random_generator
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import add_missing_state, as_frame, filled_column
from pgm_bma.foundation.tables.table import as_table
from pgm_bma.orders import fitting, parameters
from pgm_bma.orders.families.interventions import held_rows, split_targets
from pgm_bma.orders.gaps.augmented_average import draw_completions
from pgm_bma.orders.network import graph_metric
from pgm_bma.orders.results import OrderResults
from pgm_bma.orders.samplers import GibbsSampler, SwapSampler


@fill(
    sampler=parameters.SAMPLER,
    families=parameters.FAMILIES,
    arcs=parameters.ARCS,
    rows=parameters.ROWS,
    run=parameters.RUN,
    results=parameters.RESULTS,
    columns=ROWS,
)
class OrderPosterior(OrderResults):
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
        What a state that the fit has not seen is in `score_samples`.

    Attributes
    ----------
    {results}
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
    _rules = {**fitting.FAMILY_RULES, **fitting.RUN_RULES}
    _default_records = {"sampler": GibbsSampler()}

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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, interventions: Any = None) -> Self:
        """Learn the posterior over structures of the columns of `X`.

        Parameters
        ----------
        X : DataFrame or array of shape (n_samples, n_features)
            Discrete values.
        y : None
            Not used.
        sample_weight : array of shape (n_samples,), optional
            A weight is a repetition of the row.
        interventions : list or str, optional
            For rows of experiments: per row the name of the variable that was set from outside, a list of such names, or None;
            or the name of a column of `X` that holds these names, which is then no variable. A row in which a variable was set
            does not count in that variable's own family and counts in all others. This is what settles directions of arcs.

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
            targets = None
            if interventions is not None:
                X, targets = split_targets(X, interventions)
            try:
                X, sample_weight = self._fold_scan(X, sample_weight)
            except NotFolded as refusal:
                with self._in_passes(refusal):
                    self._fit_rows(sample_weight)
                return self
            self._fit(X, sample_weight, targets)
        return self

    def _fit_rows(self, sample_weight):
        settings = fitting.checked_settings(self, resolve_preset(self, fitting.PRESETS))
        rows, _ = self._read_rows(sample_weight, None)
        self._finish(self._count_passes(rows, settings), settings)

    def _fit(self, X, sample_weight, targets):
        settings = fitting.checked_settings(self, resolve_preset(self, fitting.PRESETS))
        read = self._read_features(X, sample_weight, None)
        self._forget()
        self._feature_states = read.schema.states
        schema, codes = read.schema, read.codes
        held = None if targets is None else held_rows(targets, schema.names, codes, sample_weight)
        self._count_missing(codes, read.weights)
        if settings.missing == "state":
            schema, codes, _ = add_missing_state(schema, codes)
        self._variables = table.Schema(schema.names, schema.states)
        self._finish(fitting.training_rows(schema, codes, read.weights, settings, held), settings)

    def _finish(self, training, settings):
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
            How many copies.
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

    def _fitted_summary(self):
        return f", {self.method_} over {self._weighting().words}"
