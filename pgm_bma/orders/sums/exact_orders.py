"""All orders at once: evidence, arc posteriors and predictions by dynamic programming over subsets (ORD eq. 10).

Every order has prior weight 1, so a DAG counts once for each order it fits (order-modular). The same recursions give the best
order, the best DAG and independent draws of orders. For one vote per DAG see `exact_dags`.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.orders.families.family_table import members, parent_sets, tie
from pgm_bma.orders.sums import _exact_kernels as kernels
from pgm_bma.orders.sums._dag_kernels import ternary_codes

MAX_VARIABLES = 20  # 2^20 subsets: 84 MB of sums per table
MAX_PREDICTION = 16  # "auto" stops at AUTO_PREDICTION
AUTO_PREDICTION = 12
MAX_ANCESTORS = 12  # 3^n states for each of them


def sum_over_orders(table):
    """The forward sums over all orders; everything else here starts from this record.

    Returns
    -------
    OrderSums
    """
    masks, log_scores = families_by_mask(table)
    n = len(masks)
    log_sums = np.empty((n, 2 ** (n - 1)))
    for node in range(n):
        log_subset_sums(masks[node], log_scores[node], log_sums[node])
    prefixes = np.empty(2**n)
    kernels.order_totals(log_sums, False, False, np.empty(n), prefixes)
    if np.isneginf(prefixes[-1]):
        raise ValueError("no order satisfies the required arcs: they form a cycle, or a parent set was forbidden")
    return OrderSums(table, log_sums, prefixes, float(prefixes[-1]))


def edge_posterior(sums):
    """(n, n) P(parent -> child | data), row parent, column child, over all orders."""
    n = len(sums.log_sums)
    suffixes = np.empty_like(sums.prefixes)
    kernels.order_totals(sums.log_sums, True, False, np.empty(n), suffixes)
    edges = np.zeros((n, n))
    for node in range(n):
        present, absent = np.zeros(n - 1), np.zeros(n - 1)
        kernels.node_edges(node, sums.log_sums, sums.prefixes, suffixes, present, absent)
        edges[np.arange(n) != node, node] = np.clip(present - absent, 0.0, 1.0)
    return edges


def ancestor_posterior(sums):
    """(n, n) P(a directed path from row to column | data), over all orders."""
    n = len(sums.log_sums)
    paths, codes, space = np.zeros((n, n)), ternary_codes(n), np.empty(3**n)
    for source in range(n):
        kernels.descendants(source, sums.log_sums, sums.prefixes, codes, space, paths[source])
    np.fill_diagonal(paths, 0.0)
    return np.clip(paths, 0.0, 1.0)


def parent_set_posterior(sums, node):
    """(n_sets,) P(parents | data) in the order of the table; sums : `OrderSums`.

    A set weighs its score times the sum, over all sets of predecessors that hold it, of the orders before and after.
    """
    masks, log_scores = families_by_mask(sums.table)
    suffixes = np.empty_like(sums.prefixes)
    kernels.order_totals(sums.log_sums, True, False, np.empty(len(masks)), suffixes)
    around = (sums.prefixes.reshape(-1, 2, 1 << node)[:, 0] + suffixes.reshape(-1, 2, 1 << node)[:, 1]).ravel()
    for place in range(len(masks) - 1):  # in place: the sum over all sets that hold a set
        pairs = around.reshape(-1, 2, 1 << place)
        pairs[:, 0] = np.logaddexp(pairs[:, 0], pairs[:, 1])
    return np.exp(log_scores[node] + around[masks[node]] - sums.log_evidence)


def log_joint(sums, predictive):
    """(n_rows,) log P(row | data), averaged over all orders.

    predictive : (n_families, n_rows) posterior mean of every row's value under every family, in the order of the table
    """
    last_shares = np.zeros_like(sums.log_sums)
    kernels.last_node_shares(sums.log_sums, sums.prefixes, last_shares)
    masks, set_shares = mixing_shares(sums.table)
    joint = np.empty(predictive.shape[1])
    n, size = last_shares.shape
    space = np.empty((n, size, kernels.LANES)), np.ones((2 * size, kernels.LANES)), np.empty(kernels.LANES)
    kernels.predict_rows(last_shares, masks, sums.table.offsets, set_shares, predictive, *space, joint)
    return np.log(joint)


def draw_orders(sums, n_orders, rng):
    """Independent draws from P(order | data), (n_orders, n): the last node first, by its share of the forward sum."""
    n = len(sums.log_sums)
    orders = np.empty((n_orders, n), dtype=np.int64)
    points = rng.random((n_orders, n))
    subsets = np.full(n_orders, 2**n - 1)  # still to be placed, by draw
    for step, place in enumerate(range(n - 1, -1, -1)):
        terms = np.full((n_orders, n), -np.inf)
        for node in range(n):
            inside = np.flatnonzero(subsets >> node & 1)
            here = subsets[inside]
            terms[inside, node] = sums.prefixes[here ^ (1 << node)] + sums.log_sums[node, _without(here, node)]
        shares = np.cumsum(np.exp(terms - terms.max(1, keepdims=True)), axis=1)
        orders[:, place] = (shares <= (points[:, step] * shares[:, -1])[:, None]).sum(1)
        subsets ^= 1 << orders[:, place]
    return orders


def best_order(sums):
    """The order of highest score; ties go to the highest variable last."""
    n = len(sums.log_sums)
    prefixes = np.empty(2**n)
    kernels.order_totals(sums.log_sums, False, True, np.empty(n), prefixes)
    order, subset = [], 2**n - 1
    while subset:
        nodes = [v for v in range(n) if subset >> v & 1]
        terms = [prefixes[subset ^ (1 << v)] + sums.log_sums[v, _without(subset, v)] for v in nodes]
        chosen = max(v for v, term in zip(nodes, terms) if term >= max(terms) - tie(max(terms)))
        order.append(chosen)
        subset ^= 1 << chosen
    return np.array(order[::-1], dtype=np.int64)


def best_dag(table):
    """(parents of every node, log score) of the best DAG; ties to the fewest arcs, then to the first parents of the first node.

    One pass finds every family that occurs in some best DAG. Where a node has several, it is fixed to the first and the pass is
    repeated, so that the choices fit together.
    """
    masks, log_scores = families_by_mask(table)
    n = len(masks)
    sets = [parent_sets(table, node) for node in range(n)]
    size = sum(float(np.abs(scores[np.isfinite(scores)]).max()) for scores in log_scores)
    arc_cost = 10 * tie(size)  # breaks ties towards fewer arcs; above rounding, below any real difference
    costed = [scores - arc_cost * np.array([len(z) for z in node_sets]) for scores, node_sets in zip(log_scores, sets)]
    best = np.empty((n, 2 ** (n - 1)))
    for node in range(n):
        _best_inside(masks[node], costed[node], best[node])
    prefixes, suffixes = np.empty(2**n), np.empty(2**n)
    chosen = [0] * n
    stale = True
    for node in range(n):
        if stale:
            kernels.order_totals(best, False, True, np.empty(n), prefixes)
            kernels.order_totals(best, True, True, np.empty(n), suffixes)
        values = costed[node] + _best_around(node, prefixes, suffixes)[masks[node]]
        tied = np.flatnonzero(values >= min(prefixes[-1], values.max()) - tie(size))
        chosen[node] = min(tied.tolist(), key=lambda k: sets[node][k])
        stale = len(tied) > 1
        if stale:
            _best_inside(masks[node][[chosen[node]]], costed[node][[chosen[node]]], best[node])
    parents = [sets[node][k] for node, k in enumerate(chosen)]
    return parents, float(sum(log_scores[node][k] for node, k in enumerate(chosen)))


def log_subset_sums(masks, log_scores, log_sums):
    """log_sums[S] = log of the sum of exp(score) over the sets inside S, in logs where sums of weights underflow."""
    if not kernels.log_subset_sums(masks, log_scores, log_sums):
        kernels.log_zeta(masks, log_scores, log_sums, np.zeros((0, 0)))


def mixing_shares(table):
    """(masks of all families, shares of every node for `mix_lanes`)."""
    masks, log_scores = families_by_mask(table)
    n = len(masks)
    shares = np.zeros((n, n - 1, 2 ** (n - 1) // 2))
    for node in range(n):
        kernels.log_zeta(masks[node], log_scores[node], np.empty(2 ** (n - 1)), shares[node])
    return np.concatenate(masks), shares


_without = kernels.without.py_func


def _best_inside(masks, log_scores, best):
    """best[S] = highest score of a set inside S."""
    best[:] = -np.inf
    best[masks] = log_scores
    for absent, present in _pairs(best):
        np.maximum(absent, present, out=present)


def _best_around(node, prefixes, suffixes):
    """[Z] = best of prefix(S) + suffix(S + node) over the sets S that hold Z: what completes the family (node, Z)."""
    around = (prefixes.reshape(-1, 2, 1 << node)[:, 0] + suffixes.reshape(-1, 2, 1 << node)[:, 1]).ravel()
    for absent, present in _pairs(around):
        np.maximum(absent, present, out=absent)
    return around


def _pairs(values):
    """For every variable, views of what belongs to the subsets without it and with it."""
    for place in range(len(values).bit_length() - 1):
        step = 1 << place
        if step < 32:  # a few long strides are faster than many short rows
            for first in range(step):
                yield values[first :: 2 * step], values[first + step :: 2 * step]
        else:
            pairs = values.reshape(-1, 2, step)
            yield pairs[:, 0], pairs[:, 1]


def families_by_mask(table):
    """Masks (over the other variables) and log scores of every node's sets."""
    masks, log_scores = [], []
    all_scores = table.log_scores
    for node in range(len(table.cardinalities)):
        variables = np.arange(len(table.cardinalities))
        bits = np.append(1 << (variables - (variables > node)), 0)  # the padding of a set, -1, adds nothing
        masks.append(bits[members(table, node)].sum(1).astype(np.int64))
        log_scores.append(all_scores[table.offsets[node] : table.offsets[node + 1]])
    empty = [node for node, scores in enumerate(log_scores) if np.isneginf(scores).all()]
    if empty:
        raise ValueError(f"variable {empty[0]} has no parent set left; loosen the required arcs")
    return masks, log_scores


class OrderSums(NamedTuple):
    """Forward sums over all orders."""

    table: object  # FamilyTable
    log_sums: np.ndarray  # (n, 2^(n-1)) log of the sum over the parent sets of a node inside a subset of the others
    prefixes: np.ndarray  # (2^n,) log of the sum over the orders of a subset
    log_evidence: float  # log of the sum over all orders, each with weight 1
