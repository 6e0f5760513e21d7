"""Dirichlet-multinomial families: log marginal likelihoods and posterior means (Cooper-Herskovits; K2 and BDeu)."""

import numpy as np
from scipy.special import gammaln


def cell_alpha(n_parent_states, n_states, alpha=1.0, equivalent_sample_size=None):
    """Pseudo-count of one cell: `alpha` itself (K2 when 1), or BDeu's equivalent sample size spread over the table."""
    if equivalent_sample_size is None:
        return alpha
    return equivalent_sample_size / (n_parent_states * n_states)


def log_marginal_likelihood(counts, alpha):
    """Log probability of the data behind a family table, parameters integrated out.

    counts : (..., n_parent_states, n_states), observed or expected
    alpha : number or array that broadcasts to `counts`
    returns (...), in nats. Unobserved parent states add exactly nothing. A cell with alpha 0 is legal when it is empty.
    """
    counts = np.asarray(counts, dtype=float)
    alpha = np.broadcast_to(np.asarray(alpha, dtype=float), counts.shape)
    posterior = counts + alpha
    # gammaln(0) is inf: an empty cell without prior mass contributes nothing
    cells = np.where(counts > 0, gammaln(np.where(counts > 0, posterior, 1.0)) - _gammaln_or_zero(alpha), 0.0)
    total, prior = counts.sum(-1), alpha.sum(-1)
    rows = np.where(total > 0, _gammaln_or_zero(prior) - gammaln(np.where(total > 0, total + prior, 1.0)), 0.0)
    return cells.sum((-2, -1)) + rows.sum(-1)


def side_by_side_scores(counts, alpha, starts):
    """`log_marginal_likelihood` of every row of families laid side by side, one pass for thousands of columns.

    counts : (q, S), all columns side by side     alpha : (S,), above 0     starts : (n_columns,) first state of each
    returns (q, n_columns); the score of a column is the sum of its q rows.
    """
    total, prior = np.add.reduceat(counts, starts, axis=1), np.add.reduceat(alpha, starts)
    cells = np.add.reduceat(gammaln(counts + alpha) - gammaln(alpha), starts, axis=1)
    return cells + gammaln(prior) - gammaln(total + prior)


def _gammaln_or_zero(values):
    return np.where(values > 0, gammaln(np.where(values > 0, values, 1.0)), 0.0)


def posterior_mean(counts, alpha):
    """Posterior mean table of a family; rows with neither counts nor prior mass become uniform.

    counts : (..., n_states)   alpha : broadcastable   returns (..., n_states), rows sum to 1
    """
    posterior = np.asarray(counts, dtype=float) + alpha
    total = posterior.sum(-1, keepdims=True)
    return np.where(total > 0, posterior / np.where(total > 0, total, 1.0), 1.0 / posterior.shape[-1])
