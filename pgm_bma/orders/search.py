"""One good order: climbed to from the order of the columns, or the best that a chain and a climb find."""

import numpy as np

from pgm_bma.orders.chains import order_mcmc
from pgm_bma.orders.chains._relocation_kernels import run_orders
from pgm_bma.orders.chains.gibbs import prepare_lists, run_gibbs
from pgm_bma.orders.families.arcs import random_order
from pgm_bma.orders.families.family_lists import FamilyLists, prune_table

SWEEPS = 256  # of the chain behind "best"
FROZEN = 1e6  # a power that leaves only the best place


def find_order(families, how, required, rng):
    """An order from a full table or from lists; how : "greedy" or "best"."""
    start = random_order(len(families.cardinalities), _InOrder(), required)
    lists = families if isinstance(families, FamilyLists) else prune_table(families)
    if how == "best":
        run = run_gibbs(run_orders, prepare_lists(lists), [start], [rng], n_kept=1, max_sweeps=SWEEPS, tol=1e-9)
        start = run.best_state
    if lists is not families:
        return order_mcmc.climb(order_mcmc.prepare(families), start)
    return _climb(lists, start, rng)


def _climb(lists, order, rng):
    """Sweeps of moves to the best place, until one gains nothing."""
    prepared, n = prepare_lists(lists), len(order)
    orders, score = np.array([order], dtype=np.int64), -np.inf
    nothing = np.zeros(0)
    while True:
        scores, edges, squares = np.empty(1), np.zeros((n, n)), np.zeros((n, n))
        run_orders(
            rng, orders, np.zeros(1, dtype=np.int64), np.array([FROZEN]), prepared, 1, nothing, nothing,
            np.empty((1, n), dtype=np.int64), scores, edges, squares, np.array([-np.inf]),
        )  # fmt: skip
        if scores[0] <= score + 1e-9:  # rounding of equal scores is no gain
            return orders[0]
        score = scores[0]


class _InOrder:
    """Stands in for a generator where ties go to the first variable."""

    @staticmethod
    def random(n):
        return np.arange(n)
