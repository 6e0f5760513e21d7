"""What is read off a fitted latent-class model: relevance, starts, profiles with their uncertainty, tests of fit."""

from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone

from pgm_bma.foundation import table
from pgm_bma.foundation.clusterer import ClustererBase
from pgm_bma.foundation.progress import progress
from pgm_bma.foundation.seeds import random_generator
from pgm_bma.foundation.starts import starts_table
from pgm_bma.foundation.validation import check_number
from pgm_bma.latent_class.problem import cluster_dependence, log_joint, make_problem, split_tables
from pgm_bma.latent_class.profiles import uncertainty
from pgm_bma.latent_class.residuals import bootstrap, expected_pairs, likelihood_ratio, pair_residuals, refit
from pgm_bma.latent_class.statistics import count_parameters

EXPECTED_ROWS = 200_000  # drawn from a model whose pair probabilities have no closed form here


class LikelihoodRatioTest(NamedTuple):
    """Result of `likelihood_ratio_test`: 2 x the gain in log-likelihood, its p-value, and the values of the bootstrap."""

    statistic: float
    p_value: float
    n_clusters: int
    bootstrap: np.ndarray


def likelihood_ratio_test(
    clusterer: Any,
    X: Any,
    *,
    sample_weight: Any = None,
    n_bootstrap: int = 99,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> LikelihoodRatioTest:
    """Bootstrapped likelihood-ratio test: does one more cluster fit better than chance?

    Tables are drawn from the fitted model with k clusters; to each, and to `X`, models with k and with k + 1 clusters are fitted
    with the settings of the clusterer. The p-value is the share of tables, `X` among them, whose gain is at least that of `X`.

    Parameters
    ----------
    clusterer : LatentClassClusterer or EMAClusterer
        Fitted; its `n_clusters_` is k.
    X : table of discrete values
        The rows that it was fitted to.
    sample_weight : array-like (n_samples,), optional
        A weight is a repetition of the row.
    n_bootstrap : int, default=99
        Tables drawn.
    random_state : int, Generator, RandomState or None, default=None
        Seed; the same seed gives the same p.
    n_jobs : int or None, default=None
        Threads, as joblib reads it; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    LikelihoodRatioTest
        The fields are statistic, p_value, n_clusters (k) and bootstrap (the values under k clusters).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import LatentClassClusterer, likelihood_ratio_test
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(0, 2, 300)
    >>> X = pd.DataFrame({name: np.where(rng.random(300) < 0.85, z, 1 - z) for name in "abcde"})
    >>> one, two = (LatentClassClusterer(k, n_init=4, random_state=0).fit(X) for k in (1, 2))
    >>> bool(likelihood_ratio_test(one, X, n_bootstrap=19, random_state=0).p_value <= 0.05)
    True
    >>> bool(likelihood_ratio_test(two, X, n_bootstrap=19, random_state=0).p_value <= 0.05)
    False
    """
    check_number("n_bootstrap", n_bootstrap, 1, integer=True)
    codes, weights = _folded_rows(clusterer, X, sample_weight)
    cardinalities, k = clusterer.schema_.cardinalities, clusterer.n_clusters_
    settings = clusterer._settings(clusterer.schema_)._replace(n_jobs=1)
    rng = random_generator(random_state)
    statistic, small, _ = likelihood_ratio(codes, weights, cardinalities, k, settings, rng.spawn(1)[0])

    def again(drawn, drawn_weights, child):
        return likelihood_ratio(drawn, drawn_weights, cardinalities, k, settings, child)[0]

    with progress(verbose, "tables", total=n_bootstrap) as bar:
        values = bootstrap(codes, weights, cardinalities, small, again, n_bootstrap, rng, n_jobs, bar)
    return LikelihoodRatioTest(float(statistic), _p_value(values, statistic), k, values)


def bivariate_residuals(
    clusterer: Any,
    X: Any,
    *,
    sample_weight: Any = None,
    n_bootstrap: int = 0,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> pd.DataFrame:
    """Pairs of columns that the clusters leave dependent: observed against expected tables, largest residual first.

    Where pairs stay dependent, `StructuralEMClusterer` or `ForestAveragedClusterer` model the dependence; the same table of
    their fit shows what is left.

    Parameters
    ----------
    clusterer : fitted clusterer
        Any clusterer of the package. The expected tables of latent-class models are exact, those of the others are taken from
        200,000 rows drawn from the model.
    X : table of discrete values
        The rows to compare with; a pair is compared on the rows that have both values.
    sample_weight : array-like (n_samples,), optional
        A weight is a repetition of the row.
    n_bootstrap : int, default=0
        Tables drawn from the model, and fitted again, for the p-values; 0 leaves them out. 99 is a usual number.
    random_state : int, Generator, RandomState or None, default=None
        Seed of what is drawn.
    n_jobs : int or None, default=None
        Threads over the tables, as joblib reads it; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    DataFrame
        Columns `first`, `second`, `residual` (X2 / degrees of freedom; about 1 or less where nothing is left), `x2`, `df` and
        `p_value` (NaN without a bootstrap).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import LatentClassClusterer, bivariate_residuals
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(0, 2, 300)
    >>> X = pd.DataFrame({name: np.where(rng.random(300) < 0.85, z, 1 - z) for name in "abcd"})
    >>> X["copy"] = np.where(rng.random(300) < 0.95, X["a"], 1 - X["a"])
    >>> clusterer = LatentClassClusterer(2, alpha=0.01, n_init=4, random_state=0).fit(X[list("abcd")])
    >>> found = bivariate_residuals(clusterer, X[list("abcd")])
    >>> list(found), len(found), bool(found["residual"].max() < 4)
    (['first', 'second', 'residual', 'x2', 'df', 'p_value'], 6, True)
    """
    check_number("n_bootstrap", n_bootstrap, 0, integer=True)
    codes, weights = _folded_rows(clusterer, X, sample_weight)
    cardinalities = clusterer.schema_.cardinalities
    rng = random_generator(random_state)
    found = pair_residuals(codes, weights, cardinalities, _pair_probabilities(clusterer, rng))
    p_values = np.full(found.x2.shape, np.nan)
    if n_bootstrap:
        with progress(verbose, "tables", total=n_bootstrap) as bar:
            values = _bootstrap_residuals(clusterer, codes, weights, n_bootstrap, rng, n_jobs, bar)
        p_values = (1 + (values >= found.x2 * (1 - 1e-9)).sum(axis=0)) / (1 + n_bootstrap)
    names = list(clusterer.schema_.names)
    a, b = np.triu_indices(len(names), 1)
    frame = pd.DataFrame(
        {
            "first": [names[i] for i in a],
            "second": [names[j] for j in b],
            "residual": found.x2[a, b] / np.maximum(found.df[a, b], 1),
            "x2": found.x2[a, b],
            "df": found.df[a, b],
            "p_value": p_values[a, b],
        }
    )
    return frame.sort_values("residual", ascending=False, kind="stable", ignore_index=True)


def _bootstrap_residuals(clusterer, codes, weights, n_bootstrap, rng, n_jobs, bar):
    cardinalities = clusterer.schema_.cardinalities
    if isinstance(clusterer, LatentClassResults):
        settings, fit = clusterer._settings(clusterer.schema_), clusterer._result

        def again(drawn, drawn_weights, child):
            renewed = refit(drawn, drawn_weights, cardinalities, fit, settings)
            return pair_residuals(
                drawn, drawn_weights, cardinalities, expected_pairs(renewed.theta_c, renewed.theta)
            ).x2

        return bootstrap(codes, weights, cardinalities, fit, again, n_bootstrap, rng, n_jobs, bar)
    values = []
    for child in rng.spawn(n_bootstrap):
        drawn = clusterer.sample(round(float(weights.sum())), random_state=child)[0]
        renewed = clone(clusterer).set_params(n_clusters=clusterer.n_clusters_).fit(drawn)
        rows, counts = _folded_rows(clusterer, drawn, None)
        values.append(pair_residuals(rows, counts, cardinalities, _pair_probabilities(renewed, child)).x2)
        if bar is not None:
            bar(1)
    return np.array(values)


def _pair_probabilities(clusterer, rng):
    """(n_states_total, n_states_total) under the model."""
    if isinstance(clusterer, LatentClassResults):
        return expected_pairs(clusterer._result.theta_c, clusterer._result.theta)
    codes = clusterer._sample_codes(EXPECTED_ROWS, rng.spawn(1)[0])[0]
    cardinalities = clusterer.schema_.cardinalities
    columns = np.repeat(np.arange(len(cardinalities)), cardinalities)
    states = np.concatenate([np.arange(r) for r in cardinalities])
    one_hot = (codes[:, columns] == states).astype(np.float32)
    return (one_hot.T @ one_hot).astype(float) / len(codes)


def _folded_rows(clusterer, X, sample_weight):
    codes = clusterer._encode(X)
    weights = table.check_weights(sample_weight, len(codes))
    if weights is not None and getattr(clusterer, "weight_type", "repetition") == "sampling":
        weights = weights * ((weights > 0).sum() / weights.sum())
    rows, weights, _ = table.fold(codes, weights)
    return rows[weights > 0], weights[weights > 0]


def _p_value(values, statistic):
    return float((1 + (values >= statistic).sum()) / (1 + len(values)))


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


class LatentClassResults(ClustererBase):
    """Results and hooks of the latent-class clusterers; `_result` is the `LatentClassFit`."""

    @property
    def profiles_(self) -> pd.DataFrame:
        """Cluster sizes and P(state | cluster) with standard errors and 95 % intervals.

        One line per cluster, column and state: `cluster`, `column` (None: the size of the cluster), `state`, `probability`,
        `standard_error`, `low`, `high`. From the observed information of the model; estimates at the boundary get an interval
        from the posterior of their counts. For EMA the average over structures enters. Under sampling weights the errors are
        those of the sandwich. Computed on first access, from the rows of `fit`; a file keeps what was computed.
        """
        fit = self._result
        if "_uncertainty" not in self.__dict__:
            if "_cached_rows" not in self.__dict__:
                raise ValueError(
                    "profiles_ is computed from the rows of fit, which copies and files do not hold; read it once before saving"
                )
            codes, weights, squares = self._cached_rows
            settings = self._settings(self.schema_)
            problem = make_problem(
                codes, self.schema_.cardinalities, weights, self.n_clusters_, settings.priors, settings.averaging
            )
            self._uncertainty = uncertainty(codes, weights, fit, problem.priors, squared_weights=squares)
        found, lines = self._uncertainty, []
        for c in range(self.n_clusters_):
            lines.append((c, None, None, fit.theta_c[c], found.size_error[c], found.size_low[c], found.size_high[c]))
            flat = zip(
                ((name, state) for name, states in zip(self.schema_.names, self.schema_.states) for state in states),
                fit.theta[:, c],
                found.error[:, c],
                found.low[:, c],
                found.high[:, c],
            )
            lines += [(c, name, state, *numbers) for (name, state), *numbers in flat]
        names = ["cluster", "column", "state", "probability", "standard_error", "low", "high"]
        return pd.DataFrame(lines, columns=names)

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
        return count_parameters(self.n_clusters_, self.schema_.cardinalities)

    def _sample_codes(self, n_samples, rng):
        fit = self._result
        clusters = rng.choice(self.n_clusters_, size=n_samples, p=fit.theta_c / fit.theta_c.sum()).astype(np.int64)
        codes = np.empty((n_samples, len(self.schema_.names)), dtype=np.int64, order="F")
        for i, lines in enumerate(fit.tables):
            steps = np.cumsum(lines, axis=1)[clusters, :-1]
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
