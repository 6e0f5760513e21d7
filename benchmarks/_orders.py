"""Shared parts of the experiments of the order paper: its chain, its choices of orders, and accuracies by number of orders."""

import numpy as np
from scipy.special import logsumexp

from pgm_bma import load_network, simulate
from pgm_bma.foundation.tables.table import encode
from pgm_bma.orders.chains import order_mcmc
from pgm_bma.orders.families.arcs import random_order
from pgm_bma.orders.families.family_table import family_table
from pgm_bma.orders.sums import fixed_order

N_STEPS, BURN_IN, THIN, N_ORDERS = 60_000, 10_000, 1667, 30
# of the 30 kept orders: 10 = every third, 5 = every sixth, 1 = the first
CHOICES = {1: slice(0, 1), 5: slice(0, None, 6), 10: slice(0, None, 3), 30: slice(None)}
LOST_MASS = 1e-5  # no class probability of alarm at N=100 moved by more than 2e-5


def alarm():
    """(network, order of its nodes: parents first, ties in the order of the file)"""
    import networkx as nx

    model = load_network("alarm")
    names = list(model.nodes)
    first = {name: k for k, name in enumerate(names)}
    order = list(nx.lexicographical_topological_sort(model, key=first.get))
    return model, np.array([first[name] for name in order])


def alarm_rows(model, n_rows, seed):
    """(codes, cardinalities, names); cardinalities are the network's, not the sample's."""
    read = encode(simulate(model, n_rows, random_state=seed))
    return np.ascontiguousarray(read.codes, dtype=np.int64), read.schema.cardinalities, read.schema.names


def training(codes, cards):
    return fixed_order.Training(np.asfortranarray(codes, dtype=np.int32), np.ones(len(codes)), cards, 1.0, None)


def paper_chain(families, start, rng, every_order=False, burn_in=BURN_IN):
    """The chain of the paper. Kept: iterations 10,001 + 1667 t, or every one after `burn_in`."""
    kept = (N_STEPS - burn_in, 1) if every_order else (N_ORDERS, THIN)
    return order_mcmc.sample_orders(families, [np.asarray(start)], [rng], n_kept=kept[0], burn_in=burn_in, thin=kept[1])


class Fitted:
    """One training set: family table, 30 orders of the paper's chain, and the mixtures that predict."""

    def __init__(self, codes, cards, rng, start=None, extra_orders=()):
        self.table = family_table(codes, cards)
        families = order_mcmc.prepare(self.table)
        start = random_order(len(cards), rng) if start is None else start
        sampled = paper_chain(families, start, rng).states[0]
        orders = np.concatenate([sampled, np.array(extra_orders, dtype=np.int64).reshape(-1, len(cards))])
        self.mix = fixed_order.mixture(
            self.table, training(codes, cards), fixed_order.order_masks(orders), lost_mass=LOST_MASS
        )

    def joints(self, rows, class_index, n_classes, *holes):
        """(n_orders, n_rows, n_classes) log joints; the extra orders come last."""
        return fixed_order.log_joints(self.mix, rows, class_index, n_classes, *holes)


def predictions(joints):
    """Number of orders -> predicted classes, joints averaged over the chosen orders (ORD eq. 11)."""
    return {k: logsumexp(joints[:N_ORDERS][chosen], axis=0).argmax(1) for k, chosen in CHOICES.items()}


def summary(values):
    """Mean and standard error of accuracies in per cent."""
    values = 100 * np.asarray(values)
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return {"accuracy": values.mean(), "error": error, "n": len(values)}
