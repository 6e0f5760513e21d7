"""Averages over structures in one call: sum or sample, and keep what results and predictions need.

method "exact" sums over everything, "mcmc" samples, "given" averages the orders it is handed with equal weight (ORD eq. 11).
weighting "order": every order counts once, so a DAG counts once per order it fits; "dag": every DAG counts once. What is kept is
a list of states, orders or layer numbers, under each of which nodes choose parents independently.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from pgm_bma.orders.chains import order_mcmc
from pgm_bma.orders.chains.convergence import ChainRecord
from pgm_bma.orders.chains.gibbs import prepare_lists, run_gibbs
from pgm_bma.orders.chains.weighting import WEIGHTINGS, state_edges
from pgm_bma.orders.families.family_lists import FamilyLists
from pgm_bma.orders.families.family_table import tie
from pgm_bma.orders.sums import exact_orders, fixed_order

MANY_FAMILIES = 20_000  # tables past this size drop the least weighty parent sets when they predict
LOST_MASS = 1e-6  # of every node's posterior, then; on ALARM no class probability moved by more than 2e-6


def exact_average(table, training, weighting, n_kept, rng):
    """The sums over all structures: a `StructureAverage`. They are returned with it, for predictions."""
    kind = WEIGHTINGS[weighting]
    sums = kind.sum_all(table)
    states = kind.draw(sums, n_kept, rng)[None]
    best, best_score = exact_orders.best_dag(table)
    average = _average(table, training, "exact", weighting, states, kind.edges(sums), best, best_score)
    return average._replace(log_evidence=float(sums.log_evidence)), sums


def given_average(table, training, orders):
    """The average over the orders that are handed over."""
    states = np.asarray(orders, dtype=np.int64)[None]
    edges = state_edges(table, WEIGHTINGS["order"], states[0]).mean(0)
    return _average(table, training, "given", "order", states, edges, *best_within(table, states[0], "order"))


def sampled_average(table, training, weighting, starts, rngs, **run):
    """Chains of Gibbs moves over family lists until they agree; `run` as in `gibbs.run_gibbs`."""
    kind = WEIGHTINGS[weighting]
    if not kind.ladder:
        run["n_temperatures"] = 1
    found = run_gibbs(kind.gibbs, prepare_lists(table), starts, rngs, **run)
    best = best_within(table, found.best_state[None], weighting)
    average = _average(table, training, "mcmc", weighting, found.states, found.chains.means.mean(0), *best)
    return average._replace(log_scores=found.log_scores, finished=found.finished, chains=found.chains)


def swapped_average(table, training, weighting, starts, rngs, **run):
    """Chains of the paper's swaps over a full family table; `run` as in `order_mcmc.sample_orders`."""
    if weighting != "order":
        raise ValueError(
            f"swaps walk over orders, so they cannot be had with structure_weighting={weighting!r}; use Gibbs moves"
        )
    families = order_mcmc.prepare(table)
    found = order_mcmc.sample_orders(families, starts, rngs, **run)
    flat = found.states.reshape(-1, found.states.shape[-1])
    edges = state_edges(table, WEIGHTINGS["order"], flat).mean(0)
    best = best_within(table, np.concatenate([flat, found.best_state[None]]), "order")
    average = _average(table, training, "mcmc", "order", found.states, edges, *best)
    log_scores = np.array([order_mcmc.order_log_score(families, order) for order in flat])
    return average._replace(
        log_scores=log_scores.reshape(found.states.shape[:2]), acceptance=found.acceptance, finished=found.finished
    )


def _average(table, training, method, weighting, states, edges, best, best_score):
    scores = _state_scores(table, WEIGHTINGS[weighting], states) if method != "mcmc" else np.zeros(states.shape[:2])
    nothing = np.full(len(states), np.nan)
    return StructureAverage(
        table, training, method, weighting, states, scores, nothing, edges, np.nan, [tuple(z) for z in best],
        float(best_score), True, None,
    )  # fmt: skip


def _state_scores(table, kind, states):
    """Log score of every state from the table alone, node by node."""
    flat = states.reshape(-1, states.shape[-1])
    before, touching = kind.masks(flat)
    total = np.zeros(len(flat))
    for child in range(flat.shape[1]):
        total += fixed_order.log_sums(table, child, before[:, child], None if touching is None else touching[:, child])
    return total.reshape(states.shape[:2])


def chain_edges(average):
    """(n_chains, n_kept, n, n) arc posteriors given every kept state."""
    states = average.states
    edges = state_edges(average.table, WEIGHTINGS[average.weighting], states.reshape(-1, states.shape[-1]))
    return edges.reshape(*states.shape[:2], *edges.shape[1:])


def state_mixture(average):
    """The `Mixture` over the kept states, from which predictions and DAGs are drawn."""
    states = average.states.reshape(-1, average.states.shape[-1])
    before, touching = WEIGHTINGS[average.weighting].masks(states)
    lost = LOST_MASS if len(average.table.log_marginal) > MANY_FAMILIES else 0.0
    return fixed_order.mixture(average.table, average.training, before, touching, lost)


def exact_predictor(average, sums=None):
    """Function (n_families, n_rows) predictive -> (n_rows,) log joint, summed over all structures; None beyond exact reach."""
    kind = WEIGHTINGS[average.weighting]
    if average.method != "exact" or len(average.table.cardinalities) > kind.exact_rows:
        return None
    sums = kind.sum_all(average.table) if sums is None else sums
    return lambda predictive: kind.log_joint(sums, predictive)


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


def best_within(table, states, weighting):
    """The best DAG within the states: its parents and log score; ties to the fewest arcs, then the first parents."""
    before, _ = WEIGHTINGS[weighting].masks(np.unique(states, axis=0))
    found = [fixed_order.best_parents(table, mask) for mask in before]
    top = max(value for _, value in found)
    tied = [parents for parents, value in found if value >= top - tie(top)]
    return min(tied, key=lambda parents: (sum(map(len, parents)), parents)), top


class StructureAverage(NamedTuple):
    """An average over structures."""

    table: Any  # FamilyTable or FamilyLists
    training: Any  # fixed_order.Training
    method: str
    weighting: str
    states: np.ndarray  # (n_chains, n_kept, n) orders, or layer numbers under weighting "dag"
    log_scores: np.ndarray  # (n_chains, n_kept)
    acceptance: np.ndarray  # (n_chains,), NaN unless sampled by a chain of swaps
    edges: np.ndarray  # (n, n) arc posteriors: exact, of all sweeps that count, or of the kept states
    log_evidence: float  # NaN unless exact
    best_parents: list  # the best DAG: exact, or the best one within a state looked at
    best_log_score: float
    finished: bool
    chains: ChainRecord | None  # None unless sampled by Gibbs moves
    gaps: Any = None  # augmented_average.MissingCells where missing cells were sampled with the structures


def lost_mass(average):
    """Largest bound over the nodes (and kept tables) on the share that dropped parent sets had; 0 for a full table."""
    lists = average.table
    return float(np.fmax.reduce(lists.lost_mass, axis=None, initial=0.0)) if isinstance(lists, FamilyLists) else 0.0
