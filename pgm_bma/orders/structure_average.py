"""Averages over structures in one call: score the families, sum or sample, and keep what results and predictions need.

method "exact" sums over everything, "mcmc" samples, "given" averages the orders it is handed with equal weight (ORD eq. 11).
weighting "order": every order counts once, so a DAG counts once per order it fits; "dag": every DAG counts once. What is kept is
a list of states, orders or layer numbers, under each of which nodes choose parents independently.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from pgm_bma.orders import exact_dags, exact_orders, fixed_order, order_mcmc, partition_mcmc

MANY_FAMILIES = 20_000  # tables past this size drop the least weighty parent sets when they predict
LOST_MASS = 1e-6  # of every node's posterior, then; on ALARM no class probability moved by more than 2e-6


def average_structures(
    table, training, method, weighting, *, n_kept, rngs, orders=None, starts=None, required=(), **run
):
    """Run one method over a family table.

    Parameters
    ----------
    table : FamilyTable        training : fixed_order.Training
    method : "exact", "mcmc" or "given"        weighting : "order" or "dag"
    n_kept : states kept per chain (draws, under "exact")
    rngs : one Generator per chain
    orders : (n_orders, n), under "given"
    starts : list of orders to start the chains from, or None for random ones
    run : further settings of `chains.run_chains`

    Returns
    -------
    StructureAverage
    """
    n = len(table.cardinalities)
    families = order_mcmc.prepare(table)
    log_evidence, acceptance, finished, visited = np.nan, np.full(len(rngs), np.nan), True, []
    trace = np.zeros((len(rngs), 0))
    if method == "exact" and weighting == "order":
        sums = exact_orders.sum_over_orders(table)
        states = exact_orders.draw_orders(sums, n_kept, rngs[0])[None]
        edges, log_evidence = exact_orders.edge_posterior(sums), sums.log_evidence
    elif method == "exact":
        sums = exact_dags.sum_over_dags(table)
        states = exact_dags.draw_layers(sums, n_kept, rngs[0])[None]
        edges, log_evidence = exact_dags.edge_posterior(sums), sums.log_evidence
    elif method == "given":
        states = np.asarray(orders, dtype=np.int64)[None]
    else:
        if weighting == "order":
            firsts = starts or [order_mcmc.random_order(n, rng, required) for rng in rngs]
            sample = order_mcmc.sample_orders
        else:
            firsts = [partition_mcmc.start_layers(n, required)] * len(rngs)
            if starts:
                firsts = [partition_mcmc.dag_layers(_best(table, order, "order")[0]) for order in starts]
            sample = partition_mcmc.sample_layers
        result = sample(families, firsts, rngs, n_kept=n_kept, **run)
        states, acceptance, finished, trace = result.states, result.acceptance, result.finished, result.trace
        visited = [result.best_state]
    flat = states.reshape(-1, n)
    chain_edges = state_edges(table, families, flat, weighting).reshape(*states.shape[:2], n, n)
    score = order_mcmc.order_log_score if weighting == "order" else partition_mcmc.layers_log_score
    log_scores = np.array([score(families, state) for state in flat]).reshape(states.shape[:2])
    if method != "exact":
        edges = chain_edges.mean((0, 1))
    if method == "exact":
        best, best_score = exact_orders.best_dag(table)
    else:
        found = [_best(table, state, weighting) for state in np.unique([*flat, *visited], axis=0)]
        top = max(value for _, value in found)
        tied = [parents for parents, value in found if value >= top - exact_orders.TIE]
        best, best_score = min(tied, key=lambda parents: (sum(map(len, parents)), parents)), top
    return StructureAverage(
        table, training, method, weighting, states, log_scores, acceptance, chain_edges, edges, float(log_evidence),
        [tuple(z) for z in best], best_score, trace, finished,
    )  # fmt: skip


def state_edges(table, families, states, weighting):
    """(n_states, n, n) arc posteriors under every state, exactly."""
    if weighting == "order":
        return order_mcmc.edge_posteriors(families, states)
    return partition_mcmc.edge_posteriors(table, states)


def state_mixture(average):
    """The `Mixture` over the kept states, from which predictions and DAGs are drawn."""
    states = average.states.reshape(-1, average.states.shape[-1])
    if average.weighting == "order":
        masks = fixed_order.order_masks(states), None
    else:
        masks = fixed_order.layer_masks(states)
    lost = LOST_MASS if len(average.table.log_marginal) > MANY_FAMILIES else 0.0
    return fixed_order.mixture(average.table, average.training, *masks, lost_mass=lost)


def exact_predictor(average):
    """Function (n_families, n_rows) predictive -> (n_rows,) log joint, summed over all structures; None beyond exact reach."""
    n = len(average.table.cardinalities)
    if average.method != "exact":
        return None
    if average.weighting == "order" and n <= exact_orders.MAX_PREDICTION:
        sums = exact_orders.sum_over_orders(average.table)
        return lambda predictive: exact_orders.log_joint(sums, predictive)
    if average.weighting == "dag" and n <= exact_dags.MAX_PREDICTION:
        sums = exact_dags.sum_over_dags(average.table)
        return lambda predictive: exact_dags.log_joint(sums, predictive)
    return None


def exact_log_joint(predictor, average, rows, class_index, n_classes):
    """(n_rows, n_classes) log joint by `exact_predictor`, in blocks of rows."""
    block = max(fixed_order.BLOCK_BYTES // (8 * len(average.table.log_marginal) * n_classes), 16)
    parts = [np.empty((0, n_classes))]
    for start in range(0, len(rows), block):
        part = np.repeat(rows[start : start + block], n_classes, axis=0)
        if class_index is not None:
            part[:, class_index] = np.tile(np.arange(n_classes), len(part) // n_classes)
        predictive = fixed_order.all_predictive(average.table, average.training, part)
        parts.append(predictor(predictive).reshape(-1, n_classes))
    return np.concatenate(parts)


def mixed_log_joint(mix, rows, class_index, n_classes, source=None, hidden=None):
    """(n_rows, n_classes) log of the joint averaged over the states with equal weight (ORD eq. 11)."""
    joints = fixed_order.log_joints(mix, rows, class_index, n_classes, source, hidden)
    return logsumexp(joints, axis=0) - np.log(len(joints))


def _best(table, state, weighting):
    state = np.asarray(state)[None]
    before = fixed_order.order_masks(state)[0] if weighting == "order" else fixed_order.layer_masks(state)[0][0]
    return fixed_order.best_parents(table, before)


class StructureAverage(NamedTuple):
    """An average over structures."""

    table: object  # FamilyTable
    training: object  # fixed_order.Training
    method: str
    weighting: str
    states: np.ndarray  # (n_chains, n_kept, n) orders, or layer numbers under weighting "dag"
    log_scores: np.ndarray  # (n_chains, n_kept)
    acceptance: np.ndarray  # (n_chains,), NaN unless sampled by a chain
    chain_edges: np.ndarray  # (n_chains, n_kept, n, n) arc posteriors given every state
    edges: np.ndarray  # (n, n) arc posteriors: exact, or the mean of chain_edges
    log_evidence: float  # NaN unless exact
    best_parents: list  # the best DAG: exact, or the best one within a state looked at
    best_log_score: float
    trace: np.ndarray
    finished: bool
