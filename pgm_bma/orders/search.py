"""Good orders: climbed to from the order of the columns or from random ones, or the best that a chain and a climb find; and which
prior of the tables has most evidence under all orders, or under good ones."""

import numpy as np

from pgm_bma.orders.chains import order_mcmc
from pgm_bma.orders.chains._pair_kernels import alone
from pgm_bma.orders.chains._relocation_kernels import new_replica, run_orders
from pgm_bma.orders.chains.gibbs import affordable_sweeps, prepare_lists, run_gibbs
from pgm_bma.orders.families.arcs import random_order
from pgm_bma.orders.families.family_table import FamilyLists, prune_table
from pgm_bma.orders.sums.exact_orders import sum_over_orders

# Totals of pseudo-counts (BDeu) that evidence chooses from. 30 has most evidence where columns are noise of equally frequent states
# and makes twice as many arcs or more out of nothing than 10; of 120 tables of known networks none chose it.
SAMPLE_SIZES = (1.0, 3.0, 10.0)
# missing cells are drawn once under this total, which draws the choice by a step at times: with 10 to 30 % missing, 52 of 64
# tables had the size of the complete table; 51 under 10
COMPLETED = 3.0
EXACT = 16  # most variables for evidence over all orders: .05 CPU seconds
BEAM = 3  # of the lists beyond: in 99 of 100 tables they choose as all orders do, and lose 0.1 nats in the other
SWEEPS, SECONDS = 256, 20  # of the chain behind "best", CPU seconds
FROZEN = 1e6  # a power that leaves only the best place


def find_order(families, how, required, rng):
    """An order from a full table or from lists; how : "greedy" or "best"."""
    start = random_order(len(families.cardinalities), _InOrder(), required)
    lists = families if isinstance(families, FamilyLists) else prune_table(families)
    if how == "best":
        sweeps = min(SWEEPS, affordable_sweeps(SECONDS, len(start), len(lists.log_marginal), 1))
        run = run_gibbs(run_orders, prepare_lists(lists), [start], [rng], n_kept=1, max_sweeps=sweeps, tol=1e-9)
        start = run.best_state
    if lists is not families:
        return order_mcmc.climb(order_mcmc.prepare(families), start)
    return climb(prepare_lists(lists), start, rng)


def log_evidences(families, required):
    """Log evidence of the same rows under several priors: of all orders up to EXACT variables, else of the best order that climbs
    find. Each prior also climbs from the orders of the others, so that no prior wins by a lucky climb.

    families : per prior, a full table up to EXACT variables, else lists        required : arcs, pairs of positions
    """
    n = len(families[0].cardinalities)
    if n <= EXACT:
        return np.array([sum_over_orders(some).log_evidence for some in families])
    rng = np.random.default_rng(0)  # the same rows have the same evidence, whatever the seed of the chains
    start, prepared = random_order(n, rng, required), [prepare_lists(some) for some in families]
    orders = [climb(some, start, rng) for some in prepared]
    return np.array([max(order_score(some, climb(some, order, rng)) for order in orders) for some in prepared])


def climbed_starts(prepared, orders, rngs):
    """(orders to start chains from, nats from a random order's score to the best), by climbs from random orders.

    All but the last of several chains start from their own climb, the first from the best of all.
    prepared : `WeightedLists`        orders : a random one per chain        rngs : a generator per chain
    """
    climbs = [climb(prepared, order, rng) for order, rng in zip(orders, rngs)]
    scores = [order_score(prepared, order) for order in climbs]
    spread = max(scores) - np.mean([order_score(prepared, order) for order in orders])
    best = int(np.argmax(scores))
    return [climbs[best], *(climbs[:best] + climbs[best + 1 :])[: len(orders) - 2], orders[-1]][: len(orders)], spread


def order_score(prepared, order):
    """Log score of an order."""
    return float(new_replica(np.array(order, dtype=np.int64), prepared).logs.sum())


def climb(prepared, order, rng):
    """Sweeps of moves to the best place, until one gains nothing."""
    n = len(order)
    orders, score = np.array([order], dtype=np.int64), -np.inf
    while True:
        scores, edges, squares = np.empty(1), np.zeros((n, n)), np.zeros((n, n))
        out, best = np.empty((1, n), dtype=np.int64), np.array([-np.inf])
        run_orders(rng, orders, alone(FROZEN), prepared, 1, out, scores, edges, squares, best)
        if scores[0] <= score + 1e-9:  # rounding of equal scores is no gain
            return orders[0]
        score = scores[0]


class _InOrder:
    """Stands in for a generator where ties go to the first variable."""

    @staticmethod
    def random(n):
        return np.arange(n)
