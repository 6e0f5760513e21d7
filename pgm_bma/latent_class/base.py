"""Base of the latent-class clusterers: checks of parameters, kinds of columns, and the call of the loop."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.foundation.faces.clusterer import check_n_clusters, is_network
from pgm_bma.foundation.faces.validation import (
    Choice,
    Either,
    Flag,
    Instance,
    Integer,
    Jobs,
    Number,
    Optional,
    ParameterRecord,
    Rule,
    Verbose,
    check,
    check_choice,
    check_parameters,
    resolve_preset,
)
from pgm_bma.foundation.numbers.families import PSEUDO_COUNT, PSEUDO_COUNT_OR_ZERO, arc_prior_array
from pgm_bma.foundation.numbers.starts import path_table
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.rows.scanned_rows import standardised_rows
from pgm_bma.foundation.runtime.jobs import progress, random_generator
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.kinds import as_frame, column_kind, numeric_names, ordered_names
from pgm_bma.latent_class.cluster_number import scan_clusters
from pgm_bma.latent_class.loop import COMBINATIONS, LatentClassSettings, fit_latent_class
from pgm_bma.latent_class.mixed import (
    NumberColumns,
    fold_rows,
    numbers_of_scan,
    read_numbers,
    sampled_frame,
    split_rows,
    standardised_table,
)
from pgm_bma.latent_class.problem import PriorSettings, log_joint
from pgm_bma.latent_class.results import LatentClassResults
from pgm_bma.networks.given import check_naive_bayes, known_states, read_cluster_network

MAX_TABLE_CELLS = 2**28  # probabilities of all starts: 2 GB, and some copies of those that run

STARTS_PARAMETER = """starts : Starts, optional
        How many of the starts are run to the end (8), whether they are accelerated, and what becomes of those that lose their
        clusters. One field is changed by ``set_params(starts__n_final=None)``."""


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Starts(ParameterRecord):
    """Settings of the starts of a latent-class model: how many are finished, accelerated, and given up.

    Parameters
    ----------
    n_final : int or None, default=8
        All starts are run for 8 updates and the best `n_final` of them to the end, further ones if all of those collapse;
        None runs all to the end. Start i is the same whatever `n_init` and `n_final` are.
    collapse : {"stop", "ignore"}, default="stop"
        A start whose clusters became equal (EM), or in which no column's counts speak for its arc (EMA; every arc posterior below
        1/2 with an even prior), has lost its clusters: stop it and leave it out; or iterate to `tol` and take the tables as they
        are (the paper).
    accelerate : bool, default=True
        After 8 updates extrapolate from every three of them, where what climbs would not fall (SQUAREM); False is the plain
        loop. Only where something climbs: EM and variational EMA.

    Examples
    --------
    >>> from pgm_bma import EMAClusterer, Starts
    >>> clusterer = EMAClusterer(starts=Starts(n_final=None))
    >>> clusterer.set_params(starts__accelerate=False).starts
    Starts(n_final=None, accelerate=False)
    """

    n_final: int | None = 8
    collapse: str = "stop"
    accelerate: bool = True

    _rules: ClassVar[dict[str, Any]] = {
        "n_final": Optional(Integer(1)),
        "collapse": Choice("stop", "ignore"),
        "accelerate": Flag(),
    }


PAPER_STARTS = Starts(n_final=None, collapse="ignore", accelerate=False)

# parameters that the scikit-learn and the pgmpy estimator name alike
RULES = {
    "averaging": Choice("linear", "variational"),
    "parameter_prior": Choice("consistent", "paper"),
    "alpha": Either(PSEUDO_COUNT_OR_ZERO, Instance(dict, "a dict of pseudo-counts by role")),
    "equivalent_sample_size": Optional(PSEUDO_COUNT),
    "n_init": Either(Integer(1), "until-replicated"),
    "combine_starts": Choice("auto", *COMBINATIONS),
    "max_iter": Integer(0),
    "starts": Optional(Instance(Starts, "a Starts record")),
    "n_jobs": Jobs(),
    "weight_type": Choice("repetition", "sampling"),
}
# `preset="paper"`: EMA as published, and the EM that it was compared with
PAPER_EM = {
    "parameter_prior": "paper",
    "combine_starts": "best",
    "init": "random",
    "starts": PAPER_STARTS,
}
PAPER_EMA = {**PAPER_EM, "averaging": "linear", "combine_starts": "likelihood"}
NO_SAMPLING = "weight_type='sampling' needs the weight of every row, which a scan folds; read the table first"
GIVEN_TABLES = Rule("a pgmpy network with its CPDs", lambda value: hasattr(value, "cpds"))


def prior_settings(alpha, equivalent_sample_size, arc_prior, allow_zero, parameter_prior="paper"):
    """PriorSettings from the public parameters: `alpha` a number or a dict by role, or BDeu's sample size."""
    if equivalent_sample_size is not None:
        if alpha != 1.0:
            raise ValueError(
                f"alpha={alpha!r} and equivalent_sample_size={equivalent_sample_size!r} exclude each other"
            )
        return PriorSettings(arc_prior=arc_prior, equivalent_sample_size=float(equivalent_sample_size))
    roles = ("cluster", "dependent", "independent")
    if isinstance(alpha, dict):  # pseudo-counts that were spelled out are taken as they are
        for role, value in alpha.items():
            check_choice("a key of alpha", role, roles)
            check(f"alpha[{role!r}]", value, PSEUDO_COUNT)
        cluster, dependent, independent = (float(alpha.get(role, 1.0)) for role in roles)
        return PriorSettings(cluster, dependent, independent, arc_prior=arc_prior)
    check("alpha", alpha, PSEUDO_COUNT_OR_ZERO if allow_zero else PSEUDO_COUNT)
    alpha = float(alpha)
    return PriorSettings(alpha, alpha, alpha, arc_prior=arc_prior, parameter_prior=parameter_prior)


def fit_settings(values, names, init, tol, progress, *, allow_zero=False):
    """The public parameters `values` as the loop's settings.

    names : of the columns     init : "auto", "random", "em" or (theta_c, tables)     allow_zero : of alpha
    """
    averaging = values.get("averaging")
    arc_prior = arc_prior_array(values.get("arc_prior", 0.5), names)
    alpha, mass, combine_starts = values["alpha"], values["equivalent_sample_size"], values["combine_starts"]
    starts = Starts() if values["starts"] is None else values["starts"]
    starts.check()
    if combine_starts == "auto":
        combine_starts = {None: "best", "linear": "likelihood", "variational": "evidence"}[averaging]
    if isinstance(init, str) and init == "auto":
        init = "em" if averaging == "variational" else "random"
    return LatentClassSettings(
        averaging=averaging,
        priors=prior_settings(alpha, mass, arc_prior, allow_zero, values["parameter_prior"]),
        n_init=values["n_init"],
        n_final=starts.n_final,
        init=init,
        combine_starts=combine_starts,
        collapse=starts.collapse,
        max_iter=int(values["max_iter"]),  # numpy's own types would compile the loop once more
        tol=float(tol),
        accelerate=bool(starts.accelerate),
        n_jobs=values["n_jobs"],
        progress=progress,
        moves=values["preset"] is None,
    )


def keep_scores(estimator, fit):
    """Set what both estimators report of a fit as attributes."""
    for name in ("log_likelihood", "evidence_bound", "cheeseman_stutz", "n_iter", "converged", "score_path"):
        setattr(estimator, f"{name}_", getattr(fit, name))


def path_frame(path):
    """`n_clusters_path_`: one line per number tried."""
    frame = path_table(**pd.DataFrame([step._asdict() for step in path]))
    statistics = pd.DataFrame([step.statistics._asdict() for step in path]).drop(columns="log_likelihood")
    return pd.concat([frame.drop(columns="statistics"), statistics], axis=1)


class LatentClassBase(LatentClassResults):
    """Base of the two clusterers; they differ in priors and in the step that turns counts into tables."""

    _rules = {
        **RULES,
        "init": Either(Choice("auto", "random", "em"), GIVEN_TABLES),
        "tol": Number(0),
        "verbose": Verbose(),
    }
    _default_records = {"starts": Starts()}
    _paper = PAPER_EM
    _allow_zero = False

    def _fit(self, folded: Any) -> None:
        weights, squares = self._fitted_weights(folded)
        rows = self._table_rows(folded, weights)
        self._fit_rows(rows, None)
        self._cached_rows = rows, squares  # for `profiles_`

    def _fit_rows(self, rows, sample_rows):
        """Fit on `Rows`; starts are screened on `sample_rows` of them, None for no screening."""
        values = self._values()
        check_parameters(self, values)
        self._check_numbers(values)
        if not rows.in_memory:
            if self.weight_type == "sampling":
                raise ValueError(NO_SAMPLING)
        for name in ("n_clusters_path_", "fit_statistics_", "_uncertainty", "_cached_fits", "_cached_rows"):
            self.__dict__.pop(name, None)
        with progress(self.verbose, "starts") as bar:
            self._result = self._find(rows, sample_rows, self._settings(self.schema_, bar))
        self._warn(rows.n_rows)
        self.n_clusters_ = len(self._result.theta_c)
        self._keep_scores()
        self._cached_rows = rows, None

    def _keep_scores(self):
        keep_scores(self, self._result)

    def _settings(self, schema, bar=None):
        values = self._values()
        init = self._init_tables(schema) if is_network(self.init) else values["init"]
        settings = fit_settings(values, self._loop_names, init, values["tol"], bar, allow_zero=self._allow_zero)
        ordered = tuple(schema.names.index(name) for name in self.ordered_columns_)
        return settings._replace(priors=settings.priors._replace(ordered=ordered))

    def _fitted_weights(self, folded):
        """Weights of the distinct rows under `weight_type`: sampling weights add up to the number of rows; and their sums of
        squares, else None."""
        if not isinstance(self.weight_type, str) or self.weight_type != "sampling":
            return folded.weights, None
        if "_cached_scan" in self.__dict__:
            raise ValueError(NO_SAMPLING)
        n_rows = len(folded.inverse)
        scale = n_rows / folded.weights.sum()
        weights = np.ones(n_rows) if folded.row_weights is None else np.asarray(folded.row_weights, dtype=float)
        squares = np.bincount(folded.inverse, (weights[weights > 0] * scale) ** 2, minlength=len(folded.codes))
        return folded.weights * scale, squares

    def _values(self):
        """The parameters under the preset."""
        paper = {name: value for name, value in self._paper.items() if not (is_network(self.init) and name == "init")}
        return resolve_preset(self, {"paper": paper})

    def _find(self, rows, sample_rows, settings):
        self._refuse_large(rows.schema, settings)
        how = {"rng": random_generator(self.random_state), "sample_rows": sample_rows}
        if isinstance(self.n_clusters, (int, np.integer)):
            return fit_latent_class(rows, int(self.n_clusters), settings, **how)
        found = scan_clusters(rows, self.n_clusters, settings, **how)
        self.n_clusters_path_ = path_frame(found.path)
        if rows.in_memory:
            self._cached_fits = found.fits
        return found.fit

    # ------------------------------------------------------------------------------------------ kinds of columns

    @property
    def numeric_columns_(self) -> list:
        """Columns that were taken as numbers."""
        return list(self._numbers.names)

    @property
    def _fitted_names(self):
        return self._numbers.order

    @property
    def _loop_names(self):
        """Columns as the loop has them: those of states first."""
        return (*self.schema_.names, *self._numbers.names)

    def _read_features(self, X, sample_weight, forbidden_name):
        check_parameters(self, {name: getattr(self, name) for name in self._read_first})
        frame = as_frame(X)
        if "_cached_scan" in self.__dict__:
            frame = numbers_of_scan(frame, self._cached_scan)
        numeric = self._find_kinds(frame, X, table.check_weights(sample_weight, len(frame)))
        if numeric:
            return self._read_mixed(X, frame, numeric, sample_weight, forbidden_name)
        read = super()._read_features(X, sample_weight, forbidden_name)
        self._numbers = NumberColumns((), np.empty(0), np.empty(0), read.schema.names)
        return read

    def _find_kinds(self, frame, X, weights):
        """Numeric columns: never those whose states somebody declared. Keeps the names of the ordered ones."""
        self.ordered_columns_: list = []
        if not frame.columns.is_unique:
            return []  # the error comes with the states
        declared = set(self._feature_state_names(X, self.cluster_name) or ())
        ordered = getattr(self, "ordered_columns", None)
        if hasattr(self, "ordered_columns") and self.preset is None:  # papers have states
            others = self.numeric_columns, self.categorical_columns
            self.ordered_columns_ = ordered_names(frame, ordered, *others, declared)
        if weights is not None and (weights == 0).any():
            frame = frame[weights > 0]  # a row of weight 0 is absent
        found = numeric_names(frame, self.numeric_columns, self.categorical_columns, many=self.preset is None)
        named = set(self.numeric_columns or ())
        clash = [name for name in found if name in declared and name in named]
        if clash:
            raise ValueError(f"column {clash[0]!r} is named in numeric_columns and has declared states; drop one")
        if table.is_named(X):
            # whole numbers that name the rows, or are days, stay states: the reader of states warns of them
            found = [name for name in found if name in named or column_kind(str(name), frame[name]) is None]
        return [name for name in found if name not in declared and name not in self.ordered_columns_]

    def _read_rows(self, sample_weight, forbidden_name, target=None, numbers=()):
        scan = self._cached_scan
        frame = numbers_of_scan(sampled_frame(scan, sample_weight), scan)
        numeric = self._find_kinds(frame, frame, None)
        self._refuse_network(numeric)
        rows, sample_rows = super()._read_rows(sample_weight, forbidden_name, target, numeric)
        order = tuple(frame.columns)
        self._numbers = NumberColumns((), np.empty(0), np.empty(0), order)
        if numeric:
            rows, centers, scales = standardised_rows(rows)
            self._numbers = NumberColumns(tuple(numeric), centers, scales, order)
            self._set_columns(table.Schema(order, ((),) * len(order)), named=True)
            self.schema_ = rows.schema
        return rows, sample_rows

    def _refuse_network(self, numeric):
        if numeric and is_network(self.init):
            raise ValueError(
                f"init= a network has tables of states only, and column {numeric[0]!r} is numeric; pass another init, or name "
                "the column in categorical_columns"
            )

    def _read_mixed(self, X, frame, numeric, sample_weight, forbidden_name):
        """The table of a frame with numeric columns: lines of codes and numbers."""
        self._refuse_network(numeric)
        values = read_numbers(frame, numeric, "error")
        weights = table.check_weights(sample_weight, len(frame))
        kept = slice(None) if weights is None else weights > 0
        order, states = tuple(table.column_names(X)), as_frame(X).drop(columns=numeric)
        if states.shape[1]:
            read = super()._read_features(states, sample_weight, forbidden_name)
        else:
            self.__dict__.pop("_cached_model", None)
            codes = np.empty((len(values[kept]), 0), dtype=np.int8)
            read = table.Table(table.Schema((), ()), codes, None if weights is None else weights[kept])
        self._numbers = NumberColumns(tuple(numeric), np.zeros(len(numeric)), np.ones(len(numeric)), order)
        # scikit-learn's names, of all columns
        self._set_columns(table.Schema(order, ((),) * len(order)), table.is_named(X))
        self.schema_, self.n_samples_ = read.schema, len(read.codes)
        return read._replace(codes=np.column_stack([read.codes.astype(float), values[kept]]))

    def _split(self, encoded):
        """(codes, numbers or None) of encoded rows."""
        return split_rows(encoded, len(self.schema_.names)) if self._numbers.names else (encoded, None)

    def _fold(self, read):
        if not self._numbers.names:
            return super()._fold(read)
        return fold_rows(read.codes, len(read.schema.names), read.weights)

    def _table_rows(self, folded, weights):
        """`Rows` of what `_fold` made; the means and standard deviations of numeric columns are kept."""
        codes, values = self._split(folded.codes)
        if values is None:
            return table_rows(codes, folded.schema.cardinalities, weights)
        rows, self._numbers = standardised_table(codes, values, folded.schema.cardinalities, weights, self._numbers)
        return rows

    def _codes_of(self, X, handle_unknown, by_position=False, quiet=False):
        if not self._numbers.names:
            return super()._codes_of(X, handle_unknown, by_position, quiet)
        order = list(self._fitted_names)
        frame = as_frame(X, order)
        if by_position:
            frame = frame.set_axis(order, axis=1)
        absent = [name for name in order if name not in frame.columns]
        if absent:
            raise ValueError(
                f"X lacks column {absent[0]!r} that fit saw ({len(absent)} in all); add it, filled with NaN if unknown"
            )
        values = read_numbers(frame, self._numbers.names, handle_unknown)
        if not self.schema_.names:
            return values
        codes = super()._codes_of(frame[list(self.schema_.names)], handle_unknown, False, quiet)
        return np.column_stack([codes.astype(float), values])

    def _log_joint(self, codes):
        fit, (codes, values) = self._result, self._split(codes)
        values = None if values is None else self._numbers.standardised(values)
        tables = fit.theta_c, fit.theta, fit.state_start
        return log_joint(np.asfortranarray(codes), *tables, values, fit.log_scale)

    # ----------------------------------------------------------------------------------------------------- checks

    def _refuse_large(self, schema, settings):
        """The tables of all starts are held at once."""
        largest = max(check_n_clusters(self.n_clusters))
        n_starts = 1 if isinstance(settings.n_init, str) else settings.n_init
        n_states = int(schema.cardinalities.sum()) + 3 * len(self._numbers.names)
        if largest * n_starts * n_states > MAX_TABLE_CELLS:
            raise ValueError(
                f"n_init={n_starts} starts of n_clusters={largest} clusters over {n_states} states are "
                f"{largest * n_starts * n_states:.3g} probabilities, more than {MAX_TABLE_CELLS:.3g}; lower n_clusters or n_init"
            )

    def _check_numbers(self, values):
        """Check what depends on two parameters."""
        check_n_clusters(self.n_clusters)
        is_number = isinstance(self.n_clusters, (int, np.integer))
        if is_network(self.init) and not is_number:
            raise ValueError(
                f"init= a network fixes the number of clusters, but n_clusters={self.n_clusters!r}; pass a number"
            )
        if values["alpha"] == 0 and values["equivalent_sample_size"] is None:
            if not is_number:
                raise ValueError("alpha=0 leaves no evidence to choose the number of clusters by; pass alpha > 0")
            if values["combine_starts"] == "evidence":
                raise ValueError("combine_starts='evidence' needs a prior; pass alpha > 0")

    def _feature_state_names(self, X, forbidden_name):
        """States of the columns: declared ones, else those of the `init` network, in its order."""
        declared = super()._feature_state_names(X, forbidden_name)
        if not is_network(self.init):
            return declared
        return {**known_states(self.init, table.column_names(X)), **(declared or {})}

    def _init_tables(self, schema):
        """(theta_c, tables) of the `init` network, columns and states in the order of the schema."""
        check_naive_bayes(self.init, schema.names)
        tables = read_cluster_network(self.init, schema, self.n_clusters)[1]
        return tables[0][0], tables[1:]

    def _warn(self, n_distinct):
        largest = self.n_clusters if isinstance(self.n_clusters, (int, np.integer)) else 0
        if largest > n_distinct:
            warn(f"n_clusters={largest} exceeds the {n_distinct} distinct rows; some clusters must be empty or equal")
        fit = self._result
        if fit.all_collapsed:
            warn(
                f"all {len(fit.weights)} starts collapsed: their clusters became equal, the data show this method no "
                "clusters, and the one-cluster model is returned (n_clusters_ = 1). Try init='em', more rows, other "
                "columns, or starts=Starts(collapse='ignore') to see the tables as they are"
            )
        elif not fit.converged and self.max_iter > 0 and self.tol > 0:
            warn(
                f"the best start did not converge in max_iter={self.max_iter} updates; raise max_iter or tol",
                ConvergenceWarning,
            )
