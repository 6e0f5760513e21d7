"""Base of the clusterers: one hook, ``_log_joint(codes)``, behind responsibilities, labels and scores."""

from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.base import ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pgm_bma.foundation.faces.explanation import Explains
from pgm_bma.foundation.faces.face import DiscreteEstimator
from pgm_bma.foundation.faces.validation import NAME, brief, check_number, refuse_no_rows
from pgm_bma.foundation.numbers.families import log_probabilities, most_probable
from pgm_bma.foundation.rows.predict import PredictsToFiles
from pgm_bma.foundation.rows.scan import NotFolded
from pgm_bma.foundation.runtime.jobs import random_generator
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.table import as_table


class Folded(NamedTuple):
    """Training data as a clusterer's algorithm sees them: distinct sorted rows, their weights, and where every given row went.

    Rows that are visited in passes stand in `codes`, as `Rows`; then the others are None.
    """

    schema: table.Schema
    codes: Any
    weights: np.ndarray | None
    inverse: np.ndarray | None
    row_weights: np.ndarray | None = None  # of every given row, where there are any


MAX_DRAWN_CELLS = 10**9  # of a table that `sample` gives back, as labels: 8 GB of them


MOST_NUMBERS = 1000  # of clusters that are tried


def check_n_clusters(n_clusters):
    """The numbers of clusters that are asked for, as a list."""
    several = np.iterable(n_clusters) and not isinstance(n_clusters, str)
    numbers = list(islice(n_clusters, MOST_NUMBERS + 1)) if several else [n_clusters]
    if len(numbers) > MOST_NUMBERS:
        raise ValueError(f"n_clusters={brief(n_clusters)} names more than {MOST_NUMBERS} numbers; pass a shorter range")
    if not numbers:
        raise ValueError(f"n_clusters={n_clusters!r} names no number; pass an integer or a range such as range(1, 9)")
    for number in numbers:
        check_number("n_clusters", number, 1, integer=True)
    return [int(number) for number in numbers]  # whatever scalar type, so that products do not overflow


def is_network(init):
    """Return whether `init` is a network to start from."""
    return hasattr(init, "cpds") and hasattr(init, "latents")


class Network:
    """Rule of a parameter: a pgmpy network with tables."""

    def admits(self, value):
        return is_network(value)

    def __str__(self):
        return "a pgmpy network"


class ClustererBase(ClusterMixin, TransformerMixin, Explains, PredictsToFiles, DiscreteEstimator):
    """A child implements ``_fit(folded)``, ``_log_joint(codes)`` -> (n_samples, n_clusters), ``_build_model()``,
    ``_n_parameters()`` and ``_sample_codes(n, rng)`` -> (codes, cluster), and sets ``n_clusters_``.

    Its parameters include `state_names`, `cluster_name`, `handle_unknown` and `random_state`.
    """

    _rules: dict[str, Any] = {"cluster_name": NAME}
    _picture = "plot_cluster_profiles"
    _read_first = ("state_names", "handle_unknown", "cluster_name")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of rows `X`.

        Parameters
        ----------
        X : table
            DataFrame of any library, 2-D array, or a scan; NaN and None are missing.
        y : object, optional
            Not used; there for pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            A weight is a repetition of the row.

        Returns
        -------
        estimator
            The estimator itself.
        """
        with self._unchanged_by_failure():
            try:
                X, sample_weight = self._fold_scan(X, sample_weight)
            except NotFolded as refusal:
                with self._in_passes(refusal):
                    self._fit_rows(*self._read_rows(sample_weight, self.cluster_name))
                self.__dict__.pop("labels_", None)
                return self
            X = as_table(X, self, fitting=True)
            read = self._read_features(X, sample_weight, self.cluster_name)
            if self.cluster_name in self._fitted_names:
                raise ValueError(f"cluster_name={self.cluster_name!r} is also a column of X; pass another cluster_name")
            rows, weights, inverse = self._fold(read)
            self._fit(Folded(read.schema, rows, weights, inverse, read.weights))
            self.__dict__.pop("labels_", None)
            if "_cached_scan" not in self.__dict__:
                self.labels_ = self._labels_of(X, rows, inverse)
        return self

    def _fold(self, read):
        """(distinct rows, their weights, where every row went) of an encoded table."""
        return table.fold(read.codes, read.weights)

    def _labels_of(self, X, codes, inverse):
        if len(inverse) < len(X):
            # rows of weight 0 took no part, yet every row gets a label; states seen only there count as missing
            codes, inverse = self._codes_of(X, "missing", quiet=True), slice(None)
        return most_probable(self._cluster_log_joint(codes))[inverse]

    def __getattr__(self, name):
        if name == "labels_" and "schema_" in self.__dict__:
            raise AttributeError(
                "labels_ is not kept for a scan, whose rows stay where they are; call predict_to(path)"
            )
        return super().__getattr__(name)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> np.ndarray:
        """Fit and return ``labels_``.

        Parameters
        ----------
        X : table
            Rows, as in `fit`.
        y : object, optional
            Not used; there for pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        array of shape (n_samples,)
            Cluster of every row.
        """
        return self.fit(X, y, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> np.ndarray:
        """The most probable cluster of every row; ties go to the lowest.

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.

        Returns
        -------
        array of shape (n_samples,)
            Clusters, 0 .. n_clusters_ - 1.
        """
        return most_probable(self._cluster_log_joint(self._encode(X)))

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(cluster | row): responsibilities.

        A row that is impossible in every cluster (with ``alpha=0`` only) tells nothing: it gets the sizes of the clusters.

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.

        Returns
        -------
        array of shape (n_samples, n_clusters_)
            Probabilities, columns 0 .. n_clusters_ - 1.
        """
        return np.exp(log_probabilities(self._cluster_log_joint(self._encode(X))))

    def transform(self, X: Any) -> Any:
        """Responsibilities, as features for a later step.

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.

        Returns
        -------
        array of shape (n_samples, n_clusters_)
            What `predict_proba` returns, in the container that `set_output` asks for.
        """
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features : object, optional
            Not used; there for pipelines.

        Returns
        -------
        array of shape (n_clusters_,)
            The cluster's name and a number.
        """
        check_is_fitted(self)
        return np.array([f"{self.cluster_name}{k}" for k in range(self.n_clusters_)], dtype=object)

    def score_samples(self, X: Any) -> np.ndarray:
        """Natural log p(row) of every row, missing cells summed out.

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.

        Returns
        -------
        array of shape (n_samples,)
            log p(row).
        """
        return logsumexp(self._log_joint(self._encode(X)), axis=1)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Weighted mean natural log p(row).

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.
        y : object, optional
            Not used; there for pipelines.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Mean log p(row); higher is better.
        """
        log_p, weights = self._weighted_log_p(X, sample_weight)
        return float(np.average(log_p, weights=weights))

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion, scikit-learn's sign.

        Parameters
        ----------
        X : table
            Rows, columns matched by name (those of an array by position); one dict or Series is one row.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Lower is better.
        """
        log_p, weights = self._weighted_log_p(X, sample_weight)
        return float(-2.0 * weights @ log_p + self._n_parameters() * np.log(weights.sum()))

    def _weighted_log_p(self, X, sample_weight):
        """log p(row) and weight of the rows that count."""
        X, sample_weight, _ = self._folded(X, sample_weight)
        log_p = self.score_samples(X)
        refuse_no_rows(log_p)
        weights = table.check_weights(sample_weight, len(log_p))
        weights = np.ones(len(log_p)) if weights is None else weights
        return log_p[weights > 0], weights[weights > 0]  # a row of weight 0 is absent, even if it is impossible

    def _cluster_log_joint(self, codes):
        """log p(cluster, row), where an impossible row counts as one with all its cells missing."""
        log_joint = self._log_joint(codes)
        impossible = np.isneginf(log_joint).all(axis=1)
        if impossible.any():
            nothing = np.nan if codes.dtype.kind == "f" else -1
            log_joint[impossible] = self._log_joint(np.full((1, codes.shape[1]), nothing))
        return log_joint

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[pd.DataFrame, np.ndarray]:
        """Draw rows from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            Number to draw.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the draws; without it the estimator's own.

        Returns
        -------
        rows : DataFrame
            Values of all columns.
        labels : array of shape (n_samples,)
            The clusters they were drawn from.
        """
        check_is_fitted(self)
        check_number("n_samples", n_samples, 0, MAX_DRAWN_CELLS // max(len(self._fitted_names), 1), integer=True)
        rng = random_generator(self.random_state if random_state is None else random_state)
        codes, labels = self._sample_codes(int(n_samples), rng)
        return self._decode(codes), labels

    def _decode(self, codes):
        """DataFrame of encoded rows."""
        return table.decode(codes, self.schema_)

    def _evidence_classes(self):
        return list(range(self.n_clusters_))

    def describe(self, n_states: int = 5) -> pd.DataFrame:
        """Cluster sizes and the states that mark each cluster, by lift P(state | cluster) / P(state).

        The state of a numeric column is a text of its mean and standard deviation in the cluster; it has no probability and lift.

        Parameters
        ----------
        n_states : int, default=5
            States per cluster: those whose probability it raises most, by probability x log lift, so that rare states do
            not crowd in.

        Returns
        -------
        DataFrame
            Columns cluster, size, column, state, probability, lift.
        """
        check_is_fitted(self)
        check_number("n_states", n_states, 0, integer=True)
        sizes, tables = self._profiles()
        rows = []
        for k in range(self.n_clusters_):
            found = []
            for name, states, profile in zip(self.schema_.names, self.schema_.states, tables):
                overall = sizes @ profile
                for state, p, base in zip(states, profile[k], overall):
                    if base > 0 and p > 0:
                        found.append((p * np.log(p / base), name, state, p, p / base))
            found += self._number_marks(k)
            found.sort(key=lambda item: -item[0])
            rows += [(k, sizes[k], name, state, p, lift) for _, name, state, p, lift in found[:n_states]]
        return pd.DataFrame(rows, columns=["cluster", "size", "column", "state", "probability", "lift"])

    def _number_marks(self, k):
        """Lines of `describe` for numeric columns, with what ranks them first."""
        return []

    def _fitted_summary(self):
        return f", {self.n_clusters_} cluster{'' if self.n_clusters_ == 1 else 's'}"
