"""Every DAG once (structure-modular): evidence, arc posteriors, predictions and draws, exact for few variables.

The sums over orders count a DAG once per order it fits, which favours DAGs with many orders. Here the sum runs over the layers of
a DAG, which are unique; it takes 4^n steps (`_dag_kernels`).
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.orders.sums import _dag_kernels as kernels
from pgm_bma.orders.sums.exact_orders import families_by_mask, log_subset_sums, mixing_shares

MAX_VARIABLES = 12
MAX_PREDICTION = 9
MAX_ANCESTORS = 10  # 2^n sums over layers for each of them


def sum_over_dags(table):
    """Forward sums over layers; `log_evidence` is the log of the sum over all DAGs, each with weight 1.

    Returns
    -------
    DagSums
    """
    masks, log_scores = families_by_mask(table)
    n = len(masks)
    log_sums = np.empty((n, 2 ** (n - 1)))
    for node in range(n):
        log_subset_sums(masks[node], log_scores[node], log_sums[node])
    codes = kernels.ternary_codes(n)
    totals = np.empty(3**n)
    log_evidence = kernels.forward_layers(log_sums, codes, 0, 0, totals)
    if not np.isfinite(log_evidence):
        raise ValueError("no DAG satisfies the required arcs: they form a cycle, or a parent set was forbidden")
    return DagSums(table, log_sums, codes, totals, float(log_evidence))


def edge_posterior(sums):
    """(n, n) P(parent -> child | data), row parent, column child, every DAG once."""
    n = len(sums.log_sums)
    coefficients = np.zeros_like(sums.log_sums)
    kernels.backward_edges(sums.log_sums, sums.codes, sums.totals, sums.log_evidence, coefficients)
    subsets = np.arange(2 ** (n - 1))
    edges = np.zeros((n, n))
    for child in range(n):
        for place, parent in enumerate(v for v in range(n) if v != child):
            holds = subsets[(subsets >> place & 1 == 1) & (coefficients[child] != 0)]
            share = -np.expm1(sums.log_sums[child, holds ^ (1 << place)] - sums.log_sums[child, holds])
            edges[parent, child] = coefficients[child, holds] @ share
    return np.clip(edges, 0.0, 1.0)


def ancestor_posterior(sums):
    """(n, n) P(a directed path from row to column | data), every DAG once."""
    n = len(sums.log_sums)
    paths, space = np.zeros((n, n)), np.empty_like(sums.totals)
    for source in range(n):
        kernels.descendants(source, sums.log_sums, sums.codes, sums.totals, sums.log_evidence, space, paths[source])
    np.fill_diagonal(paths, 0.0)
    return np.clip(paths, 0.0, 1.0)


def parent_set_posterior(sums, node):
    """(n_sets,) P(parents | data) in the order of the table; sums : `DagSums`."""
    masks, log_scores = families_by_mask(sums.table)
    coefficients = np.zeros_like(sums.log_sums)
    kernels.backward_edges(sums.log_sums, sums.codes, sums.totals, sums.log_evidence, coefficients)
    subsets = np.flatnonzero(coefficients[node])
    shares = np.zeros(len(masks[node]))
    for k, (mask, score) in enumerate(zip(masks[node], log_scores[node])):
        holding = subsets[subsets & mask == mask]
        shares[k] = coefficients[node, holding] @ np.exp(score - sums.log_sums[node, holding])
    shares[masks[node] == 0] = 0.0  # the first layer, which has no parents, is not in the coefficients
    shares = np.clip(shares, 0.0, 1.0)
    shares[masks[node] == 0] = max(1.0 - shares.sum(), 0.0)
    return shares


def log_joint(sums, predictive):
    """(n_rows,) log P(row | data), every DAG once; `predictive` as in `exact_orders.log_joint`."""
    masks, set_shares = mixing_shares(sums.table)
    joint = np.empty(predictive.shape[1])
    kernels.predict_rows(
        sums.log_sums,
        sums.codes,
        sums.totals,
        sums.log_evidence,
        masks,
        sums.table.offsets,
        set_shares,
        predictive,
        joint,
    )
    return np.log(joint)


def draw_layers(sums, n_draws, rng):
    """Independent draws of the layers of a DAG, (n_draws, n): the layer number of every node, from the last layer back."""
    n = len(sums.log_sums)
    draws = np.zeros((n_draws, n), dtype=np.int64)
    space = np.empty(2**n), np.empty(2**n, dtype=np.int64), np.empty(n)
    kernels.draw_layers(rng, sums.log_sums, sums.codes, sums.totals, *space, draws)
    return draws


class DagSums(NamedTuple):
    """Forward sums over layers."""

    table: object  # FamilyTable
    log_sums: np.ndarray  # (n, 2^(n-1)) log of the sum over the parent sets of a node inside a subset of the others
    codes: np.ndarray  # (2^n,) ternary code of a subset
    totals: np.ndarray  # (3^n,) log of the sum over the DAGs on U whose last layer is J
    log_evidence: float
