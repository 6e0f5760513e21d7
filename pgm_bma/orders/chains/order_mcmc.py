"""Sampling node orders in proportion to P(order | data) (ORD section III-B), and exact sums for one given order.

The chain sees the family table only, never a row. Every node's sum over parent sets is prepared once as weights relative to
its best set (`prepare`); `run_chains` of `chains` walks the compiled swaps of `_order_kernels`.
"""

import numpy as np

from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.orders.chains._order_kernels import Families, run_swaps, score_order, split_by_member
from pgm_bma.orders.chains.chains import run_chains
from pgm_bma.orders.families.family_table import binomials, local_sets


def sample_orders(families, starts, rngs, **settings):
    """Chains of swap moves from `starts` (one order per generator); settings and result as in `chains.run_chains`."""
    return run_chains(run_swaps, families, starts, rngs, **settings)


def prepare(table):
    """The family table as the kernels want it (`_order_kernels.Families`): weights relative to the best set of every node."""
    n = len(table.cardinalities)
    log_scores = table.log_scores
    tops = np.maximum.reduceat(log_scores, table.offsets[:-1])
    if np.isneginf(tops).any():
        child = int(np.argmax(np.isneginf(tops)))
        raise ValueError(f"variable {child} has no parent set left; loosen required or forbidden arcs, or max_indegree")
    weights = np.exp(log_scores - np.repeat(tops, np.diff(table.offsets)))
    blocks, block_start = [], {}
    for m in np.unique(table.n_candidates):
        block_start[int(m)] = sum(map(len, blocks))
        blocks.append(local_sets(int(m), table.max_indegree))
    sets = np.concatenate(blocks)
    set_offsets = np.array([block_start[int(m)] for m in table.n_candidates], dtype=np.int64)
    table_of_binomials = binomials(max(n, 1), table.max_indegree)
    widths = [
        int(m) * sum(int(table_of_binomials[m, s]) for s in range(table.max_indegree)) for m in table.n_candidates
    ]
    member_offsets = state_offsets(widths)
    families = Families(
        weights, log_scores, tops, table.offsets, sets, set_offsets, table.candidates, table.n_candidates,
        np.zeros(member_offsets[-1]), member_offsets, table_of_binomials, table.max_indegree,
    )  # fmt: skip
    split_by_member(families)
    return families


def order_log_score(families, order):
    """log prod_i sum_Z S(X_i; Z) over the parent sets that `order` allows; -inf if a required arc contradicts it."""
    n = len(order)
    return score_order(np.asarray(order, dtype=np.int64), families, np.zeros(n), np.zeros(n))


def random_order(n, rng, required=()):
    """A random order in which every required parent stands before its child (uniform when nothing is required)."""
    priority = rng.random(n)
    waiting = {v: {p for p, c in required if c == v} for v in range(n)}
    order = []
    while waiting:
        free = [v for v, parents in waiting.items() if not parents]
        if not free:
            raise ValueError(f"the required arcs form a cycle among the variables {sorted(waiting)}")
        chosen = min(free, key=lambda v: priority[v])
        order.append(chosen)
        del waiting[chosen]
        for parents in waiting.values():
            parents.discard(chosen)
    return np.array(order, dtype=np.int64)


def climb(families, order):
    """Hill climbing from `order`: node by node to the place of highest score, until a whole round gains nothing."""
    order = [int(v) for v in order]
    score = order_log_score(families, order)
    gained = True
    while gained:
        gained = False
        for node in range(len(order)):
            rest = [v for v in order if v != node]
            proposals = [[*rest[:place], node, *rest[place:]] for place in range(len(order))]
            values = [order_log_score(families, proposal) for proposal in proposals]
            best = int(np.argmax(values))
            if values[best] > score + 1e-9:  # rounding of equal scores is no gain
                order, score, gained = proposals[best], values[best], True
    return np.array(order, dtype=np.int64)
