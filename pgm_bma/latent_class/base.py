"""What the latent-class clusterers share: parameters checked, the room called, and everything read off the fitted tables."""

from typing import Any

import numpy as np
import pandas as pd
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.foundation.faces.clusterer import check_n_clusters
from pgm_bma.foundation.faces.validation import (
    Choice,
    Either,
    Instance,
    Integer,
    Jobs,
    Number,
    Optional,
    Rule,
    Verbose,
    check,
    check_choice,
    check_parameters,
    resolve_preset,
)
from pgm_bma.foundation.numbers.dirichlet import PSEUDO_COUNT, PSEUDO_COUNT_OR_ZERO, arc_prior_array
from pgm_bma.foundation.runtime.messages import progress, warn
from pgm_bma.foundation.runtime.seeds import random_generator
from pgm_bma.foundation.tables.table import column_names
from pgm_bma.latent_class.cluster_number import scan_clusters
from pgm_bma.latent_class.loop import COMBINATIONS, LatentClassSettings, fit_latent_class
from pgm_bma.latent_class.mixed import no_numbers
from pgm_bma.latent_class.problem import PriorSettings
from pgm_bma.latent_class.results import LatentClassResults, keep_scores
from pgm_bma.latent_class.starts import PAPER_STARTS, Starts
from pgm_bma.latent_class.statistics import rows_statistics
from pgm_bma.networks.given import check_naive_bayes, is_network, known_states, read_cluster_network

MAX_TABLE_CELLS = 2**28  # probabilities of all starts: 2 GB, and some copies of those that run

# parameters that the scikit-learn and the pgmpy face name alike
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


def path_frame(path):
    """`n_clusters_path_`: one line per number tried."""
    frame = pd.DataFrame([step._asdict() for step in path])
    best = frame.groupby("n_clusters")["score"].max()
    frame.insert(2, "probability", frame["n_clusters"].map(pd.Series(softmax(best.to_numpy()), index=best.index)))
    statistics = pd.DataFrame([step.statistics._asdict() for step in path]).drop(columns="log_likelihood")
    return pd.concat([frame.drop(columns="statistics"), statistics], axis=1)


class LatentClassBase(LatentClassResults):
    """What the two clusterers share; they differ in priors and in the step that turns counts into tables."""

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
            self._refuse_numbers_of_scan()
            self._numbers = no_numbers(rows.schema)
        for name in ("n_clusters_path_", "_uncertainty", "_cached_fits", "_cached_rows"):
            self.__dict__.pop(name, None)
        with progress(self.verbose, "starts") as bar:
            self._result = self._find(rows, sample_rows, self._settings(self.schema_, bar))
        self._warn(rows.n_rows)
        self.n_clusters_ = len(self._result.theta_c)
        keep_scores(self, self._result)
        found = rows_statistics(rows, self._result)
        self.fit_statistics_ = pd.Series(found._asdict(), name="fit_statistics", dtype=float)

    def _settings(self, schema, bar=None):
        values = self._values()
        init = self._init_tables(schema) if is_network(self.init) else values["init"]
        return fit_settings(values, self._loop_names, init, values["tol"], bar, allow_zero=self._allow_zero)

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

    # ------------------------------------------------------------------------------------- checks and reading

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
        """What depends on two parameters."""
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
        return {**known_states(self.init, column_names(X)), **(declared or {})}

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
