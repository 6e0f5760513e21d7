"""Naive Bayes with a class that is observed: plain, and averaged exactly over all 2^n selective structures.

Each column either has the class as its parent or has none. Under independent Dirichlet priors the average over all 2^n
structures is itself a naive Bayes table (Dash and Cooper 2002; EMA eq. 14 with observed counts):

    theta_ick = w_i * mean_ick + (1 - w_i) * mean_ik        w_i = P(arc class -> X_i | counts)

Goes in: counts (n_classes, sum of cardinalities), all columns side by side. Comes out: a `NaiveBayesFit` in the same layout.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from pgm_bma.foundation.numbers.families import (
    average_many_families,
    cell_pseudo_count,
    class_counts,
    gather_sum,
    side_by_side_scores,
    state_offsets,
)
from pgm_bma.naive_bayes.cut_average import average_cuts


class NaiveBayesPrior(NamedTuple):
    """alpha: pseudo-count per cell; equivalent_sample_size: mass of every table instead; parameter_prior: "consistent" or
    "paper", for the tables without the class; arc_prior: number or (n_columns,), 1 for plain naive Bayes."""

    alpha: float = 1.0
    equivalent_sample_size: float | None = None
    parameter_prior: str = "consistent"
    arc_prior: float | np.ndarray = 1.0


class NaiveBayesFit(NamedTuple):
    """class_probability (n_classes,); tables (n_classes, sum of cardinalities); arc_posterior (n_columns,);
    log_evidence: log probability of classes and columns, structures and parameters summed out; cut_posteriors: for each column
    that was averaged over its cuts, P(cut before bin i + 1), None where none was asked for."""

    class_probability: np.ndarray
    tables: np.ndarray
    arc_posterior: np.ndarray
    log_evidence: float
    cut_posteriors: list | None = None


def fit_naive_bayes(codes, cardinalities, target, n_classes, weights, prior, numeric=None):
    """Posterior-mean naive Bayes; with ``prior.arc_prior`` below 1 averaged over selective structures.

    codes : (n_samples, n_columns), -1 = missing     target : (n_samples,)     weights : (n_samples,) or None
    numeric : positions of columns whose states are bins, to be averaged over all ways to cut them, or None
    """
    cardinalities = np.asarray(cardinalities)
    class_totals = np.bincount(target, weights, minlength=n_classes).astype(float)
    counts = class_counts(codes, cardinalities, target, n_classes, weights)
    columns = np.repeat(np.arange(len(cardinalities)), cardinalities)  # the column of every flat state

    def pseudo_counts(n_parent_states):
        per_column = cell_pseudo_count(
            n_parent_states,
            cardinalities,
            prior.alpha,
            prior.equivalent_sample_size,
            parameter_prior=prior.parameter_prior,
            reference=n_classes,
        )
        return np.broadcast_to(np.asarray(per_column, dtype=float), cardinalities.shape)[columns]

    dependent, log_with = _family(counts, pseudo_counts(n_classes), cardinalities, columns)
    independent, log_without = _family(counts.sum(0, keepdims=True), pseudo_counts(1), cardinalities, columns)
    with np.errstate(divide="ignore"):  # an arc that is certain, or impossible
        log_prior = np.log(prior.arc_prior), np.log1p(-np.asarray(prior.arc_prior, dtype=float))
    log_scores = np.array([log_prior[0] + log_with, log_prior[1] + log_without])
    tables, arcs = average_many_families(log_scores, [dependent, independent], columns)  # EMA eq. 14
    log_columns = logsumexp(log_scores, axis=0)
    cut_posteriors: list[np.ndarray] = []
    starts, arc_prior = state_offsets(cardinalities), np.broadcast_to(prior.arc_prior, cardinalities.shape)
    for j in () if numeric is None else numeric:
        if cardinalities[j] < 2:  # nothing to cut
            cut_posteriors.append(np.zeros(0))
            continue
        own = slice(starts[j], starts[j + 1])
        # bins are not states: a numeric column has the mass of one with two states, however many its bins
        share = 2 / cardinalities[j] if prior.equivalent_sample_size is None else 1.0
        alphas = share * pseudo_counts(n_classes)[starts[j]], share * pseudo_counts(1)[starts[j]]
        found = average_cuts(counts[:, own], *alphas, arc_prior[j])
        tables[:, own], arcs[0, j], log_columns[j] = found.tables, found.arc_posterior, found.log_evidence
        cut_posteriors.append(found.cut_posterior)
    ess = prior.equivalent_sample_size
    alpha_class = np.full(n_classes, prior.alpha if ess is None else ess / n_classes)
    class_probability, log_class = _family(class_totals[None, :], alpha_class, [n_classes], [0] * n_classes)
    log_evidence = float(log_class[0] + log_columns.sum())
    cut = None if numeric is None else cut_posteriors
    return NaiveBayesFit(class_probability[0], tables, arcs[0], log_evidence, cut)


def naive_bayes_log_joint(fit, codes, cardinalities):
    """log p(class, row): (n_samples, n_classes). A missing cell adds nothing, which is exact marginalisation."""
    return np.log(fit.class_probability) + gather_sum(codes, cardinalities, np.log(fit.tables))


def split_tables(fit, cardinalities):
    """The table of every column by itself: (n_classes, cardinality) each."""
    return np.split(fit.tables, state_offsets(cardinalities)[1:-1], axis=1)


def _family(counts, alpha, cardinalities, columns):
    """Posterior means (q, S) and log marginal likelihoods (n_columns,) of families laid side by side.

    counts : (q, S)   alpha : (S,)
    """
    starts = state_offsets(cardinalities)[:-1]
    posterior = counts + alpha
    means = posterior / np.add.reduceat(posterior, starts, axis=1)[:, columns]
    return means, side_by_side_scores(counts, alpha, starts).sum(0)
