"""What the latent-class clusterers share: parameters checked, the room called, and everything read off the fitted tables."""

from heapq import heappop, heappush
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.foundation.clusterer import ClustererBase, Folded, check_n_clusters
from pgm_bma.foundation.priors import arc_prior_array
from pgm_bma.foundation.progress import progress
from pgm_bma.foundation.rows import Rows
from pgm_bma.foundation.scan import NotFolded
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.starts import starts_table
from pgm_bma.foundation.table import column_names
from pgm_bma.foundation.validation import (
    Choice,
    Either,
    Flag,
    Integer,
    Jobs,
    Number,
    Optional,
    Verbose,
    check_choice,
    check_number,
    check_parameters,
    resolve_preset,
)
from pgm_bma.foundation.warn import warn
from pgm_bma.latent_class.cluster_number import fresh, scan_clusters, scan_numbers, search_clusters
from pgm_bma.latent_class.loop import COMBINATIONS, Settings, fit_latent_class
from pgm_bma.latent_class.passes import fit_blocks, join_rows, sample_codes
from pgm_bma.latent_class.problem import PriorSettings, cluster_dependence, log_joint, split_tables
from pgm_bma.networks.cluster_network import check_naive_bayes, is_network, known_states, read_cluster_network

# parameters that the scikit-learn and the pgmpy face name alike
RULES = {
    "averaging": Choice("linear", "variational"),
    "parameter_prior": Choice("consistent", "paper"),
    "n_init": Either(Integer(1), "until-replicated"),
    "n_final": Optional(Integer(1)),
    "combine_starts": Choice("auto", *COMBINATIONS),
    "collapse": Choice("stop", "ignore"),
    "max_iter": Integer(0),
    "accelerate": Flag(),
    "n_jobs": Jobs(),
}
# `preset="paper"`: EMA as published, and the EM that it was compared with
PAPER_EM = {
    "parameter_prior": "paper",
    "n_final": None,
    "combine_starts": "best",
    "init": "random",
    "collapse": "ignore",
    "accelerate": False,
}
PAPER_EMA = {**PAPER_EM, "averaging": "linear", "combine_starts": "likelihood"}


class GivenTables:
    """Rule of `init`: a pgmpy network with its tables."""

    def admits(self, value):
        return hasattr(value, "cpds")

    def __str__(self):
        return "a pgmpy network with its CPDs"


def resolve_init(init, averaging):
    """ "auto" is what was measured to serve each method best: EM solutions for the variational twin, else random tables."""
    if isinstance(init, str) and init == "auto":
        return "em" if averaging == "variational" else "random"
    return init


def resolve_combination(combine_starts, averaging):
    """ "auto" is the best start for EM, the paper's likelihood average for EMA, weights by evidence for its twin."""
    if combine_starts == "auto":
        return {None: "best", "linear": "likelihood", "variational": "evidence"}[averaging]
    return combine_starts


def prior_settings(alpha, equivalent_sample_size, arc_prior, allow_zero, parameter_prior="paper"):
    """PriorSettings from the public parameters: `alpha` a number or a dict by role, or BDeu's sample size."""
    if equivalent_sample_size is not None:
        check_number("equivalent_sample_size", equivalent_sample_size, 0.0, open_low=True)
        if alpha != 1.0:
            raise ValueError(
                f"alpha={alpha!r} and equivalent_sample_size={equivalent_sample_size!r} exclude each other"
            )
        return PriorSettings(arc_prior=arc_prior, equivalent_sample_size=float(equivalent_sample_size))
    roles = ("cluster", "dependent", "independent")
    if isinstance(alpha, dict):  # pseudo-counts that were spelled out are taken as they are
        for role, value in alpha.items():
            check_choice("a key of alpha", role, roles)
            check_number(f"alpha[{role!r}]", value, 0.0, open_low=True)
        return PriorSettings(*(float(alpha.get(role, 1.0)) for role in roles), arc_prior=arc_prior)
    check_number("alpha", alpha, 0.0, open_low=not allow_zero)
    return PriorSettings(*[float(alpha)] * 3, arc_prior=arc_prior, parameter_prior=parameter_prior)


def fit_settings(values, names, init, tol, progress, *, allow_zero=False):
    """The public parameters `values` as the loop's settings.

    names : of the columns     init : "auto", "random", "em" or (theta_c, tables)     allow_zero : of alpha
    """
    averaging = values.get("averaging")
    arc_prior = arc_prior_array(values.get("arc_prior", 0.5), names)
    alpha, mass = values["alpha"], values["equivalent_sample_size"]
    return Settings(
        averaging=averaging,
        priors=prior_settings(alpha, mass, arc_prior, allow_zero, values["parameter_prior"]),
        n_init=values["n_init"],
        n_final=values["n_final"],
        init=resolve_init(init, averaging),
        combine_starts=resolve_combination(values["combine_starts"], averaging),
        collapse=values["collapse"],
        max_iter=values["max_iter"],
        tol=tol,
        accelerate=bool(values["accelerate"]),
        n_jobs=values["n_jobs"],
        progress=progress,
    )


def starts_frame(fit, averaging):
    """`starts_` of a fit."""
    starts = fit.starts
    return starts_table(
        starts.evidence_bound if averaging == "variational" else starts.log_likelihood,
        starts.converged,
        starts.n_iter,
        fit.weights,
        starts.finished,
        log_likelihood=starts.log_likelihood,
        evidence_bound=starts.evidence_bound,
        collapsed=starts.collapsed,
    )


def _cheapest_subsets(costs, k):
    """The k subsets of positions with the smallest sums of costs, as (sum, positions), in rising order."""
    order = np.argsort(costs, kind="stable")
    costs = costs[order]
    found, heap = [(0.0, [])], []
    if len(costs):
        heappush(heap, (costs[0], (0,)))
    while heap and len(found) < k and np.isfinite(heap[0][0]):
        total, chosen = heappop(heap)
        found.append((total, order[list(chosen)]))
        last = chosen[-1]
        if last + 1 < len(costs):
            heappush(heap, (total + costs[last + 1], (*chosen, last + 1)))
            heappush(heap, (total - costs[last] + costs[last + 1], (*chosen[:-1], last + 1)))
    return found[:k]


class LatentClassBase(ClustererBase):
    """What the two clusterers share; they differ in priors and in the step that turns counts into tables."""

    _rules = {
        **RULES,
        "init": Either(Choice("auto", "random", "em"), GivenTables()),
        "tol": Number(0),
        "verbose": Verbose(),
    }
    _paper = PAPER_EM
    _allow_zero = False

    def _fit(self, folded: Folded) -> None:
        values = self._values()
        check_parameters(self, values)
        self._check_numbers(values)
        names = folded.schema.names
        init = self._init_tables(folded.schema) if is_network(self.init) else values["init"]
        with progress(self.verbose, "starts") as bar:
            settings = fit_settings(values, names, init, values["tol"], bar, allow_zero=self._allow_zero)
            self.__dict__.pop("n_clusters_path_", None)
            self._result = self._find(folded, settings)
        self._warn(folded.n_rows if isinstance(folded, Rows) else len(folded.codes))
        fit = self._result
        self.n_clusters_ = len(fit.theta_c)
        self.log_likelihood_ = fit.log_likelihood
        self.evidence_bound_ = fit.evidence_bound
        self.cheeseman_stutz_ = fit.cheeseman_stutz
        self.n_iter_ = fit.n_iter
        self.converged_ = fit.converged
        self.score_path_ = fit.score_path

    def _values(self):
        """The parameters under the preset."""
        paper = {name: value for name, value in self._paper.items() if not (is_network(self.init) and name == "init")}
        return resolve_preset(self, {"paper": paper})

    def _find(self, folded, settings):
        rng = random_generator(self.random_state)
        if isinstance(folded, Rows):
            return self._find_in_passes(folded, settings, rng)
        data = folded.codes, folded.schema.cardinalities
        if isinstance(self.n_clusters, (int, np.integer)):
            return fit_latent_class(*data, int(self.n_clusters), settings, weights=folded.weights, rng=rng)
        if isinstance(self.n_clusters, str):
            found = search_clusters(*data, settings, weights=folded.weights, rng=rng)
        else:
            found = scan_clusters(*data, self.n_clusters, settings, weights=folded.weights, rng=rng)
        self.n_clusters_path_ = pd.DataFrame([step._asdict() for step in found.path])
        return found.fit

    def _fit_rows(self, rows, sample_rows):
        """Fit on rows that are visited in passes; starts are screened on `sample_rows` of them, None for no screening."""
        self._cached_sample_rows = sample_rows
        self._fit(rows)

    def _find_in_passes(self, rows, settings, rng):
        if isinstance(self.n_clusters, str):
            raise NotFolded(
                "n_clusters='auto' splits and merges clusters of rows in memory; pass a range such as range(1, 9)"
            )
        size = self.__dict__.pop("_cached_sample_rows")
        joined, layout = join_rows(rows)
        sample = None if size is None else sample_codes(joined, layout, size)

        def fit_number(n_clusters):
            return fit_blocks(joined, layout, n_clusters, settings, fresh(rng), sample)

        if isinstance(self.n_clusters, (int, np.integer)):
            return fit_number(int(self.n_clusters))
        found = scan_numbers(fit_number, self.n_clusters, settings.averaging)
        self.n_clusters_path_ = pd.DataFrame([step._asdict() for step in found.path])
        return found.fit

    # -------------------------------------------------------------------------------------------- results

    @property
    def arc_posterior_(self) -> pd.Series:
        """P(cluster -> column) at the expected counts: a ranking of relevance, too sure of itself as a probability."""
        return pd.Series(self._result.arc_posterior, index=list(self.schema_.names), name="arc_posterior")

    @property
    def cluster_dependence_(self) -> pd.Series:
        """I_P of every column in nats (EMA eq. 16): how far the clusters pull the column apart; 0 = independent."""
        fit = self._result
        values = cluster_dependence(fit.theta_c, fit.theta, fit.state_start)
        return pd.Series(values, index=list(self.schema_.names), name="cluster_dependence")

    @property
    def starts_(self) -> pd.DataFrame:
        """One line per start (see the class), with the I_P of every column as its last columns."""
        fit, starts = self._result, self._result.starts
        dependence = [cluster_dependence(c, t, fit.state_start) for c, t in zip(starts.theta_c, starts.theta)]
        columns = [f"I_P[{name}]" for name in self.schema_.names]
        frame = starts_frame(fit, self._values().get("averaging"))
        return pd.concat([frame, pd.DataFrame(np.array(dependence), columns=columns)], axis=1)

    def start_model(self, start: int) -> Any:
        """The network that one start ended in, its clusters in its own order.

        Parameters
        ----------
        start : int
            Number of the start, as in `starts_`.

        Returns
        -------
        DiscreteBayesianNetwork
            The tables of that start.
        """
        starts = self._result.starts
        check_number("start", start, 0, len(starts.theta) - 1, integer=True)
        tables = split_tables(starts.theta[start], self._result.state_start)
        return self._network(starts.theta_c[start], tables)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Relevance of every column, for scikit-learn's SelectFromModel."""
        return self._known_arc_posterior()

    def get_support(self, threshold: float = 0.5, indices: bool = False) -> np.ndarray:
        """The columns whose arc posterior is at least `threshold`.

        Parameters
        ----------
        threshold : float, default=0.5
            Smallest arc posterior of a column that counts as relevant.
        indices : bool, default=False
            Positions instead of a mask.

        Returns
        -------
        ndarray
            Mask (n_features_in_,), or positions.
        """
        check_number("threshold", threshold, 0.0, 1.0)
        mask = self._known_arc_posterior() >= threshold
        return np.flatnonzero(mask) if indices else mask

    def top_structures(self, k: int = 10) -> pd.DataFrame:
        """The most probable selective structures at the expected counts.

        Columns are independent of each other here, so a structure's probability is a product.

        Parameters
        ----------
        k : int, default=10
            How many.

        Returns
        -------
        DataFrame
            Columns `probability`, `dependent` (tuple of the columns that depend on the cluster) and `n_dependent`.
        """
        check_number("k", k, 1, integer=True)
        posterior = self._known_arc_posterior()
        with np.errstate(divide="ignore"):
            log_odds = np.abs(np.log(posterior) - np.log1p(-posterior))
        likely = posterior >= 0.5
        log_best = np.log(np.maximum(posterior, 1 - posterior)).sum()
        names = np.array(self.schema_.names, dtype=object)
        rows = []
        for log_loss, flipped in _cheapest_subsets(log_odds, k):
            mask = likely.copy()
            mask[flipped] = ~mask[flipped]
            rows.append((np.exp(log_best - log_loss), tuple(names[mask]), int(mask.sum())))
        return pd.DataFrame(rows, columns=["probability", "dependent", "n_dependent"])

    def _known_arc_posterior(self):
        posterior = self._result.arc_posterior
        if np.isnan(posterior).any():
            raise ValueError("alpha=0 leaves the arcs without a posterior; pass alpha > 0 to rank the columns")
        return posterior

    # ---------------------------------------------------------------------------------------------- hooks

    def _log_joint(self, codes):
        fit = self._result
        return log_joint(np.asfortranarray(codes), fit.theta_c, fit.theta, fit.state_start)

    def _evidence(self, codes):
        fit = self._result
        rows = [fit.theta_c]
        for value, first in zip(codes[0], fit.state_start):
            rows.append(fit.theta[first + value] if value >= 0 else np.ones(self.n_clusters_))
        with np.errstate(divide="ignore"):
            return np.log(np.array(rows))

    def _profiles(self):
        return self._result.theta_c, self._result.tables

    def _n_parameters(self):
        return self.n_clusters_ - 1 + self.n_clusters_ * int((self.schema_.cardinalities - 1).sum())

    def _sample_codes(self, n_samples, rng):
        fit = self._result
        clusters = rng.choice(self.n_clusters_, size=n_samples, p=fit.theta_c / fit.theta_c.sum()).astype(np.int64)
        codes = np.empty((n_samples, len(self.schema_.names)), dtype=np.int64, order="F")
        for i, table in enumerate(fit.tables):
            steps = np.cumsum(table, axis=1)[clusters, :-1]
            codes[:, i] = (rng.random(n_samples)[:, None] >= steps).sum(axis=1)
        return codes, clusters

    def _build_model(self):
        return self._network(self._result.theta_c, self._result.tables)

    def _network(self, theta_c, tables):
        from pgm_bma.networks.augmented import augmented_network

        return augmented_network(
            self.cluster_name,
            range(len(theta_c)),
            theta_c,
            self.schema_.names,
            self.schema_.states,
            tables,
            latent=True,
        )

    def _arc_posteriors(self):
        return {(self.cluster_name, column): float(p) for column, p in self.arc_posterior_.items()}

    # ------------------------------------------------------------------------------------- checks and reading

    def _check_numbers(self, values):
        """What depends on two parameters."""
        if isinstance(self.n_clusters, str):
            check_choice("n_clusters", self.n_clusters, ("auto",))
        else:
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
                "columns, or collapse='ignore' to see the tables as they are"
            )
        elif not fit.converged and self.max_iter > 0 and self.tol > 0:
            warn(
                f"the best start did not converge in max_iter={self.max_iter} updates; raise max_iter or tol",
                ConvergenceWarning,
            )
