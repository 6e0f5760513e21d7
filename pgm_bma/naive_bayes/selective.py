"""Naive Bayes with a class that is observed: plain, and averaged exactly over all 2^n selective structures.

Each column either has the class as its parent or has none. Under independent Dirichlet priors the average over all 2^n
structures is itself a naive Bayes table (Dash and Cooper 2002; EMA eq. 14 with observed counts):

    theta_ick = w_i * mean_ick + (1 - w_i) * mean_ik        w_i = P(arc class -> X_i | counts)

Goes in: counts (n_classes, sum of cardinalities), all columns side by side. Comes out: a `NaiveBayesFit` in the same layout.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.averaging import arc_posteriors
from pgm_bma.foundation.counts import gather_sum, state_offsets
from pgm_bma.foundation.dirichlet import side_by_side_scores


class NaiveBayesFit(NamedTuple):
    """class_probability (n_classes,); tables (n_classes, sum of cardinalities); arc_posterior (n_columns,);
    log_evidence: log probability of classes and columns, structures and parameters summed out."""

    class_probability: np.ndarray
    tables: np.ndarray
    arc_posterior: np.ndarray
    log_evidence: float


def fit_naive_bayes(class_totals, counts, cardinalities, *, alpha=1.0, equivalent_sample_size=None, arc_prior=1.0):
    """Posterior-mean naive Bayes; with `arc_prior` below 1 (number or (n_columns,)) averaged over selective structures.

    class_totals : (n_classes,) counts of the class     counts : (n_classes, sum of cardinalities)
    """
    cardinalities = np.asarray(cardinalities)
    n_classes = len(class_totals)
    columns = np.repeat(np.arange(len(cardinalities)), cardinalities)  # the column of every flat state
    if equivalent_sample_size is None:
        alpha_class = alpha_dependent = alpha_independent = alpha
    else:
        alpha_class = equivalent_sample_size / n_classes
        alpha_dependent = (equivalent_sample_size / (n_classes * cardinalities))[columns]
        alpha_independent = (equivalent_sample_size / cardinalities)[columns]
    dependent, log_with = _family(counts, alpha_dependent, cardinalities, columns)
    independent, log_without = _family(counts.sum(0, keepdims=True), alpha_independent, cardinalities, columns)
    arc_prior = np.broadcast_to(np.asarray(arc_prior, dtype=float), (len(cardinalities),))
    weight = arc_posteriors(log_with, log_without, arc_prior)
    tables = weight[columns] * dependent + (1.0 - weight[columns]) * independent  # EMA eq. 14
    class_probability, log_class = _family(np.asarray(class_totals)[None, :], alpha_class, [n_classes], [0] * n_classes)
    with np.errstate(divide="ignore"):
        log_columns = np.logaddexp(np.log(arc_prior) + log_with, np.log1p(-arc_prior) + log_without)
    return NaiveBayesFit(class_probability[0], tables, weight, float(log_class[0] + log_columns.sum()))


def naive_bayes_log_joint(fit, codes, cardinalities):
    """log p(class, row): (n_samples, n_classes). A missing cell adds nothing, which is exact marginalisation."""
    return np.log(fit.class_probability) + gather_sum(codes, cardinalities, np.log(fit.tables))


def _family(counts, alpha, cardinalities, columns):
    """Posterior means (q, S) and log marginal likelihoods (n_columns,) of families laid side by side.

    counts : (q, S)   alpha : number or (S,)
    """
    starts = state_offsets(cardinalities)[:-1]
    alpha = np.broadcast_to(np.asarray(alpha, dtype=float), counts.shape[-1:])
    posterior = counts + alpha
    means = posterior / np.add.reduceat(posterior, starts, axis=1)[:, columns]
    return means, side_by_side_scores(counts, alpha, starts).sum(0)
