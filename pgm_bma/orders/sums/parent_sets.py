"""Posteriors of the parent sets of one node: exact over all orders or all DAGs, or averaged over kept states."""

import numpy as np

from pgm_bma.orders.sums import _dag_kernels, _exact_kernels
from pgm_bma.orders.sums.exact_orders import families_by_mask


def over_orders(sums, node):
    """(n_sets,) P(parents | data) in the order of the table; sums : `OrderSums`.

    A set weighs its score times the sum, over all sets of predecessors that hold it, of the orders before and after.
    """
    masks, log_scores = families_by_mask(sums.table)
    suffixes = np.empty_like(sums.prefixes)
    _exact_kernels.order_totals(sums.log_sums, True, False, np.empty(len(masks)), suffixes)
    around = (sums.prefixes.reshape(-1, 2, 1 << node)[:, 0] + suffixes.reshape(-1, 2, 1 << node)[:, 1]).ravel()
    for place in range(len(masks) - 1):  # in place: the sum over all sets that hold a set
        pairs = around.reshape(-1, 2, 1 << place)
        pairs[:, 0] = np.logaddexp(pairs[:, 0], pairs[:, 1])
    return np.exp(log_scores[node] + around[masks[node]] - sums.log_evidence)


def over_dags(sums, node):
    """(n_sets,) P(parents | data) in the order of the table; sums : `DagSums`."""
    masks, log_scores = families_by_mask(sums.table)
    coefficients = np.zeros_like(sums.log_sums)
    _dag_kernels.backward_edges(sums.log_sums, sums.codes, sums.totals, sums.log_evidence, coefficients)
    subsets = np.flatnonzero(coefficients[node])
    shares = np.zeros(len(masks[node]))
    for k, (mask, score) in enumerate(zip(masks[node], log_scores[node])):
        holding = subsets[subsets & mask == mask]
        shares[k] = coefficients[node, holding] @ np.exp(score - sums.log_sums[node, holding])
    shares[masks[node] == 0] = 0.0  # the first layer, which has no parents, is not in the coefficients
    shares = np.clip(shares, 0.0, 1.0)
    shares[masks[node] == 0] = max(1.0 - shares.sum(), 0.0)
    return shares
