"""Results of a fitted latent-class model: relevance, starts, profiles with their uncertainty."""

import copy
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.clusterer import ClustererBase
from pgm_bma.foundation.faces.validation import Fitted, check, check_choice, check_number, refuse_no_rows
from pgm_bma.foundation.numbers.starts import starts_table
from pgm_bma.foundation.tables.table import check_weights
from pgm_bma.latent_class.mixed import NumberColumns, log_gain, spike_hint
from pgm_bma.latent_class.problem import (
    cluster_dependence,
    log_joint,
    make_priors,
    means_and_variances,
    split_tables,
)
from pgm_bma.latent_class.profiles import uncertainty
from pgm_bma.latent_class.statistics import count_parameters, rows_statistics

SIGNIFICANT = 0.05  # p-values of one more cluster up to this call for it


def _needs_no_more(path):
    """1 for the first number at which one more cluster is not called for, 0 for the others."""
    p = path["blrt_p"].dropna()
    if not len(p):
        return (path["n_clusters"] == path["n_clusters"].min()).astype(float)
    last = path["n_clusters"][p.index[-1]]
    return (path["n_clusters"] == last + (p.iloc[-1] <= SIGNIFICANT)).astype(float)


# what can choose the number of clusters: name -> figure of every line of `n_clusters_path_`, higher is better
CRITERIA: dict[str, Callable] = {
    "evidence": lambda path: path["score"],
    "bic": lambda path: -path["bic"],
    "icl": lambda path: -path["icl"],
    "caic": lambda path: -path["caic"],
    "blrt": _needs_no_more,
}
CLEARLY = 10.0  # nats by which a logarithm must fit better before it is mentioned
CLUSTERER = Fitted("a fitted clusterer, such as LatentClassClusterer().fit(X)", "_encode", "predict_proba")


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


def weighted_rows(clusterer, X, sample_weight):
    """Codes of the rows, their weights or None, scaled to the number of rows where they are sampling weights."""
    check("clusterer", clusterer, CLUSTERER)
    codes = clusterer._encode(X)
    refuse_no_rows(codes)
    weights = check_weights(sample_weight, len(codes))
    if weights is not None and is_sampling(clusterer):
        weights = weights * ((weights > 0).sum() / weights.sum())
    return codes, weights


def profile_frame(schema, *figures, more=()):
    """`profiles_` from probabilities, standard errors, lower and upper ends: (1 + n_states_total + len(more), n_clusters).

    Sizes of the clusters come first, then the states of all columns, then `more`, pairs of names.
    """
    named = [
        (None, None),
        *((name, state) for name, states in zip(schema.names, schema.states) for state in states),
        *more,
    ]
    n_clusters = figures[0].shape[1]
    lines = [(c, *name, *(part[i, c] for part in figures)) for c in range(n_clusters) for i, name in enumerate(named)]
    names = ["cluster", "column", "state", "probability", "standard_error", "low", "high"]
    frame = pd.DataFrame(lines, columns=names, dtype=object)  # else a state 1 next to None becomes 1.0
    return frame.astype({"cluster": int, **dict.fromkeys(names[3:], float)})


class NoProfiles(ValueError, AttributeError):
    """A fit has no `profiles_`; an AttributeError too, so that ``hasattr`` and ``dir`` see that it is not there."""


def refuse_numbers(clusterer, what, cure):
    """An error where a fit has numeric columns."""
    if getattr(clusterer, "_numbers", None) is not None and clusterer._numbers.names:
        raise NoProfiles(
            f"{what} is for columns of states, and column {clusterer._numbers.names[0]!r} is numeric; {cure}, or take the numbers "
            "as states by categorical_columns"
        )


def is_sampling(clusterer):
    return getattr(clusterer, "weight_type", "repetition") == "sampling"


def _cheapest_subsets(costs, k):
    """The k subsets of positions with the smallest sums of costs, as (sum, positions), in rising order."""
    order = np.argsort(costs, kind="stable")
    costs = costs[order]
    found: list[tuple] = [(0.0, [])]
    heap: list[tuple] = []
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


class LatentClassResults(ClustererBase):
    """Results and hooks of the latent-class clusterers; `_result` is the `LatentClassFit`."""

    _numbers: NumberColumns

    def __getattr__(self, name):
        """`fit_statistics_` is computed on first access, from the rows of fit."""
        if name == "fit_statistics_" and "_cached_rows" in self.__dict__:
            found = rows_statistics(self._cached_rows[0], self._result)
            self.fit_statistics_ = pd.Series(found._asdict(), name="fit_statistics", dtype=float)
            return self.fit_statistics_
        return super().__getattr__(name)

    def __getstate__(self):
        if "_cached_rows" in self.__dict__:
            self.fit_statistics_  # noqa: B018  # a copy has no rows
        return super().__getstate__()

    def _by_column(self, values):
        """Results of the loop for every column (..., n_columns), in the order of the table."""
        place = {name: i for i, name in enumerate(self._loop_names)}
        return np.asarray(values)[..., [place[name] for name in self._fitted_names]]

    def _decode(self, encoded):
        codes, values = self._split(encoded)
        frame = super()._decode(codes)
        if values is None:
            return frame
        frame = pd.concat([frame, pd.DataFrame(values, columns=list(self._numbers.names))], axis=1)
        return frame[list(self._fitted_names)]

    @property
    def densities_(self) -> pd.DataFrame:
        """Mean and standard deviation of every numeric column in every cluster, in the units of the table.

        For EMA both average over the structures with and without the arc, as the tables of states do.
        """
        fit, columns = self._result, self._numbers
        mean, variance = means_and_variances(fit.theta[fit.state_start[-1] :])
        lines = [
            (name, k, center + scale * mean[i, k], scale * np.sqrt(variance[i, k]))
            for i, (name, center, scale) in enumerate(zip(columns.names, columns.centers, columns.scales))
            for k in range(self.n_clusters_)
        ]
        return pd.DataFrame(lines, columns=["column", "cluster", "mean", "sd"])

    @property
    def hints_(self) -> list:
        """Sentences about numeric columns that a normal density does not suit, each with a cure.

        A column is named when its logarithm would fit better, by its evidence inside the clusters, or when one value has half
        of the rows of a cluster. Nothing is transformed by itself. Computed from the rows of `fit`; copies and files have none.
        """
        check_is_fitted(self)
        rows = self.__dict__.get("_cached_rows", (None,))[0]
        if rows is None or not rows.in_memory or not self._numbers.names:
            return []
        (block,), fit = rows.blocks, self._result
        log_p = log_joint(block.codes, fit.theta_c, fit.theta, fit.state_start, block.numbers, fit.log_scale)
        weights = np.ones(len(log_p)) if block.weights is None else block.weights
        shares = np.exp(log_p - np.logaddexp.reduce(log_p, axis=1)[:, None]) * weights[:, None]
        values = block.numbers * self._numbers.scales + self._numbers.centers
        found = []
        for name, column in zip(self._numbers.names, values.T):
            spike = spike_hint(name, column, shares)
            found += spike
            if not spike and (gain := log_gain(column, shares)) > CLEARLY:
                cure = f"cluster with X[{name!r}] = np.log(X[{name!r}])"
                found.append(f"column {name!r} is skewed: its logarithm fits better by {gain:.0f} nats; {cure}")
        return found

    @property
    def model_is_exact_(self) -> bool:  # type: ignore[override]  # the base has the plain value
        """Return whether `model_` is the fitted distribution itself; with numeric columns, which tables cannot hold, it is not."""
        return not self._numbers.names

    @property
    def profiles_(self) -> pd.DataFrame:
        """Cluster sizes and P(state | cluster) with standard errors and 95 % intervals.

        One line per cluster, column and state: `cluster`, `column` (None: the size of the cluster), `state`, `probability`,
        `standard_error`, `low`, `high`. A numeric column has two lines, whose states are the texts "mean" and "sd" and whose
        `probability` is the value of these. From the observed information of the model; estimates at the boundary get an interval
        from the posterior of their counts. For EMA the average over structures enters. Under sampling weights the errors are
        those of the sandwich. Computed on first access, from the rows of `fit`; a file keeps what was computed.
        """
        fit = self._result
        if "_uncertainty" not in self.__dict__:
            if "_cached_rows" not in self.__dict__:
                raise NoProfiles(
                    "profiles_ is computed from the rows of fit, which copies and files do not hold; read it once before saving"
                )
            rows, squares = self._cached_rows
            if not rows.in_memory:
                raise NoProfiles(
                    "profiles_ needs the rows in memory, and they were visited in passes; fit a sample of them"
                )
            (block,) = rows.blocks
            priors = self._priors(rows)
            self._uncertainty = uncertainty(
                block, fit, priors, squared_weights=squares, is_averaged=self._values().get("averaging") is not None
            )
        found, end, numbers = self._uncertainty, fit.state_start[-1], self._numbers
        figures = fit.theta[:end], found.error[:end], found.low[:end], found.high[:end]
        sizes = fit.theta_c, found.size_error, found.size_low, found.size_high
        mean, variance = means_and_variances(fit.theta[end:])
        values = np.stack([mean, np.sqrt(variance)], axis=1).reshape(-1, self.n_clusters_)
        scale = np.repeat(np.asarray(numbers.scales, dtype=float), 2)[:, None]
        shift = np.array([[center, 0.0] for center in numbers.centers], dtype=float).reshape(-1, 1)
        measured = (
            shift + scale * values,
            scale * found.error[end:],
            *(shift + scale * x[end:] for x in (found.low, found.high)),
        )
        more = [(name, word) for name in numbers.names for word in ("mean", "sd")]
        return profile_frame(self.schema_, *(np.vstack(part) for part in zip(sizes, figures, measured)), more=more)

    def chosen_by(
        self,
        criterion: str,
        X: Any = None,
        *,
        sample_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> Self:
        """The clusterer with the number of clusters that another criterion chooses among those tried; it is not fitted again.

        Parameters
        ----------
        criterion : {"evidence", "bic", "icl", "caic", "blrt"}
            What chooses: the highest evidence, the lowest criterion, or the first number at which the bootstrapped
            likelihood-ratio test of one more cluster has p > 0.05 (`likelihood_ratio_test`, at most 99 tables a number).
        X : table of discrete values, optional
            The rows of `fit`, for `labels_`; without them there are no labels. "blrt" needs them.
        sample_weight : array-like (n_samples,), optional
            Weights of the rows, for "blrt".
        random_state : int, Generator, RandomState or None, default=None
            Seed of the tables that "blrt" draws.
        n_jobs : int or None, default=None
            Threads over these tables, as joblib reads it; the result does not depend on it.
        verbose : int, default=0
            1 shows a progress bar over these tables.

        Returns
        -------
        clusterer
            A fitted copy. It has no `starts_`, unless the number stays. With "blrt" its `n_clusters_path_` has the column `blrt_p`,
            the p-value of one more cluster, NaN where it was not tested.

        Examples
        --------
        >>> from pgm_bma import LatentClassClusterer, load_dataset
        >>> frame, target = load_dataset("voting")
        >>> X = frame.drop(columns=target)
        >>> clusterer = LatentClassClusterer(range(1, 5), n_init=4, random_state=0).fit(X)
        >>> clusterer.chosen_by("bic", X).n_clusters_
        4
        """
        check_choice("criterion", criterion, tuple(CRITERIA))
        path, fits = getattr(self, "n_clusters_path_", None), self.__dict__.get("_cached_fits")
        if path is None or fits is None:
            raise ValueError(
                "chosen_by needs a fit of several numbers to rows in memory, such as n_clusters=range(1, 9); a file, a copy and a "
                "scan in passes keep one number only: fit that number"
            )
        other = copy.copy(self)
        if criterion == "blrt":
            from pgm_bma.latent_class.fit_tests import one_more_cluster  # which reads this file

            if X is None:
                raise ValueError("chosen_by('blrt') draws tables like the rows of fit: pass them as X")
            tested = one_more_cluster(self, X, fits, sample_weight, random_state, n_jobs, verbose)
            path = other.n_clusters_path_ = path.assign(blrt_p=path["n_clusters"].map(tested).astype(float))
        line = CRITERIA[criterion](path).idxmax()
        other._cached_fits, other._cached_rows = fits, self._cached_rows
        for name in ("labels_", "fit_statistics_"):
            other.__dict__.pop(name, None)
        if int(path["n_clusters"][line]) != self.n_clusters_:
            other._result = fits[int(path["n_clusters"][line])]
            other.n_clusters_ = len(other._result.theta_c)
            other.__dict__.pop("_uncertainty", None)
            other._keep_scores()
        if X is not None:
            other.labels_ = other.predict(X)
        return other

    # -------------------------------------------------------------------------------------------- results

    @property
    def arc_posterior_(self) -> pd.Series:
        """P(cluster -> column) at the expected counts: a ranking of relevance; as a probability it is too sure."""
        values = self._by_column(self._result.arc_posterior)
        return pd.Series(values, index=list(self._fitted_names), name="arc_posterior")

    @property
    def cluster_dependence_(self) -> pd.Series:
        """I_P of every column in nats (EMA eq. 16): how far the clusters pull the column apart; 0 = independent."""
        fit = self._result
        values = self._by_column(cluster_dependence(fit.theta_c, fit.theta, fit.state_start))
        return pd.Series(values, index=list(self._fitted_names), name="cluster_dependence")

    @property
    def starts_(self) -> pd.DataFrame:
        """One line per start (see the class), with the I_P of every column as its last columns."""
        fit, starts = self._result, self._result.starts
        dependence = [cluster_dependence(c, t, fit.state_start) for c, t in zip(starts.theta_c, starts.theta)]
        columns = [f"I_P[{name}]" for name in self._fitted_names]
        frame = starts_frame(fit, self._values().get("averaging"))
        return pd.concat([frame, pd.DataFrame(self._by_column(dependence), columns=columns)], axis=1)

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
            Number to draw.

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
        names = np.array(self._fitted_names, dtype=object)
        rows = []
        for log_loss, flipped in _cheapest_subsets(log_odds, k):
            mask = likely.copy()
            mask[flipped] = ~mask[flipped]
            rows.append((np.exp(log_best - log_loss), tuple(names[mask]), int(mask.sum())))
        return pd.DataFrame(rows, columns=["probability", "dependent", "n_dependent"])

    def _known_arc_posterior(self):
        posterior = self._by_column(self._result.arc_posterior)
        if np.isnan(posterior).any():
            raise ValueError("alpha=0 leaves the arcs without a posterior; pass alpha > 0 to rank the columns")
        return posterior

    # ---------------------------------------------------------------------------------------------- hooks

    def _evidence(self, codes):
        fit, (codes, values) = self._result, self._split(codes)
        rows = [fit.theta_c]
        for value, first in zip(codes[0], fit.state_start):
            rows.append(fit.theta[first + value] if value >= 0 else np.ones(self.n_clusters_))
        with np.errstate(divide="ignore"):
            evidence = np.log(np.array(rows))
        if values is None:
            return evidence
        mean, variance = means_and_variances(fit.theta[fit.state_start[-1] :])
        z = self._numbers.standardised(values)[0][:, None]
        densities = -0.5 * (np.log(2 * np.pi * variance) + (z - mean) ** 2 / variance) - fit.log_scale[:, None]
        evidence = np.concatenate([evidence, np.where(np.isnan(z), 0.0, densities)])
        return np.concatenate([evidence[:1], self._by_column(evidence[1:].T).T])

    def _number_marks(self, k):
        fit, columns = self._result, self._numbers
        if not columns.names:
            return []
        lines = fit.theta[fit.state_start[-1] :]
        mean, variance = means_and_variances(lines)
        whole_mean, whole_variance = (part[:, 0] for part in means_and_variances((lines @ fit.theta_c)[:, None]))
        ratio = variance[:, k] / whole_variance
        # how far the cluster's density is from that of all rows, the sum over states of probability x log lift
        divergence = 0.5 * (ratio - 1 - np.log(ratio) + (mean[:, k] - whole_mean) ** 2 / whole_variance)
        found = self.densities_.query("cluster == @k")
        return [
            (score, name, f"{float(f'{m:.4g}'):g} ± {float(f'{sd:.2g}'):g}", np.nan, np.nan)
            for score, name, m, sd in zip(divergence, columns.names, found["mean"], found["sd"])
        ]

    def _priors(self, rows):
        """Pseudo-counts of the fitted tables, as these rows make them."""
        settings = self._settings(self.schema_)
        return make_priors(settings.priors, rows, self.n_clusters_, settings.averaging)

    def _profiles(self):
        return self._result.theta_c, self._result.tables

    def _n_parameters(self):
        return count_parameters(self.n_clusters_, self.schema_.cardinalities, len(self._numbers.names))

    def _sample_codes(self, n_samples, rng):
        fit = self._result
        clusters = rng.choice(self.n_clusters_, size=n_samples, p=fit.theta_c / fit.theta_c.sum()).astype(np.int64)
        codes = np.empty((n_samples, len(self.schema_.names)), dtype=np.int64, order="F")
        for i, lines in enumerate(fit.tables):
            steps = np.cumsum(lines, axis=1)[clusters, :-1]
            codes[:, i] = (rng.random(n_samples)[:, None] >= steps).sum(axis=1)
        if not self._numbers.names:
            return codes, clusters
        mean, variance = means_and_variances(fit.theta[fit.state_start[-1] :])
        z = rng.standard_normal((n_samples, len(mean))) * np.sqrt(variance.T[clusters]) + mean.T[clusters]
        return np.column_stack([codes, z * self._numbers.scales + self._numbers.centers]), clusters

    def _build_model(self):
        return self._network(self._result.theta_c, self._result.tables)

    def _network(self, theta_c, tables):
        from pgm_bma.networks.objects import augmented_network

        names, states = self.schema_.names, self.schema_.states
        built = augmented_network(self.cluster_name, range(len(theta_c)), theta_c, names, states, tables, latent=True)
        if self._numbers.names:
            built.graph["left_out"] = list(self._numbers.names)  # `write_bif` says so
        return built

    def _arc_posteriors(self):
        """Of the arcs that `model_` has."""
        posterior = self.arc_posterior_
        return {(self.cluster_name, column): float(posterior[column]) for column in self.schema_.names}
