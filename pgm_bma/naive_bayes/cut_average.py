"""One numeric column of naive Bayes, averaged exactly over all ways to cut it into intervals.

The values fall into m elementary bins. A partition joins neighbouring bins to intervals B: the class says in which interval a
value lies, and inside an interval the bins do not depend on the class.

    p(bin i | class c, partition) = theta_cB * phi_i|B        i in B

theta_c is Dirichlet with alpha for every bin, so alpha |B| in an interval; phi_B is Dirichlet with the pseudo-count that a
bin has without the class. Both multiply over intervals, so that all 2^(m - 1) partitions are summed forward and backward. One
interval is the structure without the arc, m intervals are the table with the arc of a column whose bins are states.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, softmax

from pgm_bma.foundation.numbers._kernels import sum_partitions
from pgm_bma.foundation.tables.cut_points import CUT_PRIORS


class CutAverage(NamedTuple):
    """tables (n_classes, n_bins) p(bin | class); arc_posterior: 1 - P(no cut); cut_posterior (n_bins - 1,) P(cut before bin i + 1);
    log_evidence of the bins given the classes."""

    tables: np.ndarray
    arc_posterior: float
    cut_posterior: np.ndarray
    log_evidence: float


def average_cuts(counts, alpha, alpha_alone, arc_prior, cut_priors=CUT_PRIORS):
    """Average p(bin | class) over all partitions of a column into intervals.

    Parameters
    ----------
    counts : (n_classes, n_bins), at least two bins
    alpha, alpha_alone : pseudo-counts of a bin with the class and without
    arc_prior : prior probability that there is a cut; given one, each boundary is cut with probability rho
    cut_priors : the grid of rho, summed out with equal prior weights

    Returns
    -------
    CutAverage
    """
    m = counts.shape[1]
    cumulated = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    inside = np.maximum(cumulated[:, None, :] - cumulated[:, :-1, None], 0.0)  # (n_classes, m, m + 1), of [a, b)
    length = np.maximum(np.arange(m + 1) - np.arange(m)[:, None], 1.0)
    together = inside.sum(axis=0)
    evidence = (gammaln(alpha * length + inside) - gammaln(alpha * length)).sum(axis=0)
    evidence += gammaln(alpha_alone * length) - gammaln(alpha_alone * length + together)

    cells, cuts = np.zeros((len(cut_priors) + 1, m, m + 1)), np.zeros((len(cut_priors) + 1, m))
    log_weights = np.empty(len(cut_priors) + 1)
    with np.errstate(divide="ignore"):  # an arc that is certain, or impossible
        log_weights[-1] = np.log1p(-arc_prior) + evidence[0, m]
        cells[-1, 0, m] = 1.0  # no cut
        for h, rho in enumerate(cut_priors):
            log_z = sum_partitions(evidence, rho, cells[h], cuts[h])
            cells[h, 0, m] = 0.0
            # the first bin lies in one interval: the posterior of any cut, without cancellation
            some = cells[h, 0].sum()
            cells[h] /= some
            cuts[h] /= some
            log_prior = np.log(arc_prior / len(cut_priors)) - np.log(-np.expm1((m - 1) * np.log1p(-rho)))
            log_weights[h] = log_prior + log_z + np.log(some)
    weights = softmax(log_weights)

    cells = np.tensordot(weights, cells, axes=1) / (alpha_alone * length + together)
    per_interval = cells * (alpha * length + inside)  # [a, b) holds bin i where a <= i < b
    reached = np.cumsum(per_interval, axis=1)
    held = np.cumsum(reached[:, :, ::-1], axis=2)[:, :, ::-1]
    bins, totals = counts.sum(axis=0), counts.sum(axis=1)
    tables = held[:, np.arange(m), np.arange(m) + 1] * (alpha_alone + bins) / (alpha * m + totals)[:, None]
    constant = (gammaln(alpha_alone + bins) - gammaln(alpha_alone)).sum()
    constant += (gammaln(alpha * m) - gammaln(alpha * m + totals)).sum()
    return CutAverage(
        tables, float(weights[:-1].sum()), weights @ cuts[:, 1:], float(np.logaddexp.reduce(log_weights) + constant)
    )
