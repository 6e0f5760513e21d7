"""EMA with one attribute parent: clusters averaged over all structures that an order of the columns allows.

Every column takes, with the cluster or without it, at most one column that stands before it in the order: candidate parent
sets {}, {C}, {X_j}, {C, X_j}. Given the order the columns choose independently, so the average over all structures is, column by
column, `average_families` over these sets at the expected counts (EMA eq. 10-14 with more sets; ORD eq. 9).
The average is not one network with few parents: a column's distribution mixes over all its predecessors.

In: complete integer codes, an order, responsibilities to start from. Out: an `EmaTanFit`. All pairs of columns are counted by
one matrix product of one-hot rows per cluster.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, logsumexp

from pgm_bma.foundation.numbers.families import log_marginal_likelihood, side_by_side_scores, state_offsets
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.problem import log_joint


def fit_ema_tan(
    codes,
    cardinalities,
    n_clusters,
    *,
    order=None,
    averaging="linear",
    responsibilities=None,
    n_init=10,
    rng=None,
    alpha=1.0,
    max_iter=200,
    tol=1e-4,
):
    """Fit from given responsibilities; or from `n_init` random tables and the EM solutions that they lead to.

    EM without attribute arcs takes dependences between columns for clusters, so its solutions alone would be poor starts. Of all
    runs the one with the best bound is kept.

    Parameters
    ----------
    codes : (n_rows, n_columns) integers without missing cells
    order : column positions, earliest first; default: as they stand
    averaging : "linear" (mix probabilities) or "variational" (mix expected logs in the expectation step)
    responsibilities : (n_rows, n_clusters), optional

    Returns
    -------
    EmaTanFit
    """
    codes = np.asarray(codes)
    if (codes < 0).any():
        raise ValueError("averaging over attribute parents wants complete rows; drop or impute the missing cells first")
    tables = _Tables(codes, np.asarray(cardinalities, dtype=np.int64), order, alpha)
    if responsibilities is not None:
        return _run(tables, np.asarray(responsibilities, dtype=float), averaging, max_iter, tol)
    best = None
    keywords = {"n_init": n_init, "tol": 1e-3, "collapse": "ignore"}
    rng = np.random.default_rng() if rng is None else rng
    for max_updates in (0, 200):
        starts = fit_latent_class(
            table_rows(codes, cardinalities), n_clusters, rng=rng.spawn(1)[0], max_iter=max_updates, **keywords
        )
        for theta_c, theta in zip(starts.starts.theta_c, starts.starts.theta):
            log_p = log_joint(np.asfortranarray(codes), theta_c, theta, starts.state_start)
            begin = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
            fit = _run(tables, begin, averaging, max_iter, tol)
            if best is None or fit.evidence_bound > best.evidence_bound:
                best = fit
    return best


def _run(tables, responsibilities, averaging, max_iter, tol):
    path, converged, n_iter = [], False, 0
    log_p = None
    while True:
        model = tables.average(responsibilities, averaging)
        path.append(model.score + entropy(responsibilities))
        if converged or n_iter == max_iter:
            break
        log_p = tables.log_joint(model)
        renewed = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
        change = np.abs(renewed - responsibilities).max()
        responsibilities, n_iter = renewed, n_iter + 1
        converged = change < tol
    model = tables.average(responsibilities, "linear")  # what is returned mixes probabilities in both cases
    log_p = tables.log_joint(model)
    return EmaTanFit(
        theta_c=model.theta_c,
        log_joint=log_p,
        family_weights=model.weights,
        cluster_arc_posterior=model.weights[:, [1, 3]].sum(axis=(1, 2)),
        log_likelihood=float(logsumexp(log_p, axis=1).sum()),
        evidence_bound=float(path[-1]),
        score_path=np.array(path),
        n_iter=n_iter,
        converged=bool(converged),
    )


def entropy(responsibilities):
    """Entropy of independent rows, nats."""
    positive = responsibilities[responsibilities > 0]
    return float(-(positive * np.log(positive)).sum())


class _Tables:
    """One-hot rows and what does not change over the iterations: scores and means of {} and {X_j}."""

    def __init__(self, codes, cardinalities, order, alpha):
        n = len(cardinalities)
        self.cardinalities, self.alpha = cardinalities, alpha
        self.start = state_offsets(cardinalities)[:-1]
        self.column = np.repeat(np.arange(n), cardinalities)  # column of every state
        self.one_hot = np.zeros((len(codes), int(cardinalities.sum())))
        self.one_hot[np.arange(len(codes))[:, None], self.start + codes] = 1.0
        position = np.empty(n, dtype=np.int64)
        position[np.arange(n) if order is None else np.asarray(order)] = np.arange(n)
        self.allowed = position[:, None] < position[None, :]  # [j, i]: j stands before i
        pairs = self.one_hot.T @ self.one_hot
        self.alone = np.diag(pairs).copy()
        self.score_none = self._scores(self.alone[None, None])[0]  # (n,)
        self.score_pair = self._pair_scores(pairs[None])  # (n, n), [j, i]
        self.pairs = pairs

    def _scores(self, counts):
        """Log marginal likelihood of families: counts (..., n_parent_states, n_states_total) -> (..., n)."""
        return self._lines(counts).sum(axis=-2)

    def _lines(self, counts):
        """The part of every line of a table: (..., n_states_total) -> (..., n)."""
        flat = counts.reshape(-1, counts.shape[-1])
        lines = side_by_side_scores(flat, np.full(flat.shape[1], float(self.alpha)), self.start)
        return lines.reshape(*counts.shape[:-1], -1)

    def _pair_scores(self, pairs):
        """Scores of {C, X_j} from (n_clusters, n_states_total, n_states_total) counts: (n, n), [j, i]."""
        return np.add.reduceat(self._lines(pairs), self.start, axis=1).sum(axis=0)

    def _means(self, counts):
        a = self.alpha
        totals = np.add.reduceat(counts + a, self.start, axis=-1)
        return (counts + a) / totals[..., self.column]

    def _expected_logs(self, counts):
        a = self.alpha
        totals = np.add.reduceat(counts + a, self.start, axis=-1)
        return digamma(counts + a) - digamma(totals[..., self.column])

    def average(self, responsibilities, averaging):
        """Weights of all candidate sets and the mixed tables at the expected counts."""
        n = len(self.cardinalities)
        class_counts = responsibilities.sum(axis=0)
        counts = responsibilities.T @ self.one_hot  # (n_clusters, n_states_total)
        pairs = np.stack([(self.one_hot * r[:, None]).T @ self.one_hot for r in responsibilities.T])
        log_weights = np.full((n, 4, n), -np.inf)  # [i, kind, j]; kinds {}, {C}, {X_j}, {C, X_j}
        log_weights[:, 0, 0] = self.score_none
        log_weights[:, 1, 0] = self._scores(counts)
        log_weights[:, 2] = np.where(self.allowed, self.score_pair, -np.inf).T
        log_weights[:, 3] = np.where(self.allowed, self._pair_scores(pairs), -np.inf).T
        totals = logsumexp(log_weights, axis=(1, 2))
        weights = np.exp(log_weights - totals[:, None, None])
        values = self._expected_logs if averaging == "variational" else self._means
        per_state = weights[self.column]  # (n_states_total, 4, n)
        single = per_state[:, 0, 0] * values(self.alone) + per_state[:, 1, 0] * values(counts)  # (n_clusters, states)
        by_parent = per_state[:, 2].T[self.column] * values(self.pairs)  # [state of j, state of i]
        paired = by_parent + per_state[:, 3].T[self.column] * values(pairs)  # (n_clusters, states of j, states of i)
        log_class = log_marginal_likelihood(class_counts[None], self.alpha)
        theta_c = (class_counts + self.alpha) / (class_counts + self.alpha).sum()
        log_c = np.log(theta_c)
        if averaging == "variational":
            log_c = digamma(class_counts + self.alpha) - digamma((class_counts + self.alpha).sum())
        return _Model(theta_c, log_c, single, paired, weights, float(totals.sum() + log_class), averaging)

    def log_joint(self, model):
        """log p(c, x) of the averaged model, or the expected logs of the variational one: (n_rows, n_clusters)."""
        found = np.tile(model.log_c, (len(self.one_hot), 1))
        for c in range(found.shape[1]):
            mixed = (self.one_hot @ model.paired[c] + model.single[c]) * self.one_hot
            by_column = np.add.reduceat(mixed, self.start, axis=1)
            found[:, c] += by_column.sum(axis=1) if model.averaging == "variational" else np.log(by_column).sum(axis=1)
        return found


class _Model(NamedTuple):
    theta_c: np.ndarray
    log_c: np.ndarray
    single: np.ndarray  # (n_clusters, n_states_total) part without an attribute parent
    paired: np.ndarray  # (n_clusters, n_states_total of the parent, n_states_total)
    weights: np.ndarray  # (n, 4, n)
    score: float  # log p(expected counts), averaged over structures
    averaging: str


class EmaTanFit(NamedTuple):
    """The averaged model on its rows. `family_weights[i, kind, j]`: kinds {}, {C} (both at j = 0), {X_j}, {C, X_j}."""

    theta_c: np.ndarray
    log_joint: np.ndarray  # (n_rows, n_clusters)
    family_weights: np.ndarray
    cluster_arc_posterior: np.ndarray  # (n,) P(C is a parent)
    log_likelihood: float
    evidence_bound: float
    score_path: np.ndarray  # bound at the start and after every update
    n_iter: int
    converged: bool
