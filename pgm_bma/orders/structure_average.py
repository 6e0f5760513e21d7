"""Averages over structures in one call: sum or sample, and keep what results and predictions need.

method "exact" sums over everything, "mcmc" samples, "given" averages the orders it is handed with equal weight (ORD eq. 11).
weighting "order": every order counts once, so a DAG counts once per order it fits; "dag": every DAG counts once. What is kept is
a list of states, orders (earliest first) or layer numbers, under each of which nodes choose parents independently. A class per
weighting has the methods that differ; `table` may be a `FamilyTable` or `FamilyLists`, `sums` is what `sum_all` returns.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import logsumexp

from pgm_bma.orders.chains import order_mcmc
from pgm_bma.orders.chains._layer_kernels import run_layers
from pgm_bma.orders.chains._relocation_kernels import run_orders
from pgm_bma.orders.chains.gibbs import affordable_sweeps, prepare_lists, run_gibbs
from pgm_bma.orders.chains.runner import ChainRecord
from pgm_bma.orders.families.arcs import random_order
from pgm_bma.orders.families.family_table import FamilyLists, tie
from pgm_bma.orders.search import climbed_starts
from pgm_bma.orders.short_lists import EARLY, LONG, choose_lists, corrected, n_states
from pgm_bma.orders.sums import exact_dags, exact_orders, fixed_order

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


def sampled_average(table, training, weighting, orders, rngs, *, n_kept=30, tol=0.05, climbs=True, seconds=None, **run):
    """Chains of Gibbs moves over family lists until they agree; `run` as in `gibbs.run_gibbs`.

    orders : one to start from per chain; where `climbs`, most chains start from what a climb makes of theirs
    seconds : CPU seconds after which chains end, or None
    """
    kind = WEIGHTINGS[weighting]
    run.update(n_kept=n_kept, tol=tol)
    long, n_families = None, len(table.log_marginal)
    if weighting == "order" and n_families > LONG:
        prepared, long, n_families = choose_lists(table, orders[0], rngs[0])
    else:
        prepared = prepare_lists(table)
    climbed, run["spread"] = climbed_starts(prepared, orders, rngs)
    if seconds is not None:
        most = affordable_sweeps(seconds / kind.sweep, len(table.cardinalities), n_families, len(rngs))
        run["max_sweeps"] = min(run["max_sweeps"], most)
    if not kind.ladder:
        run["n_temperatures"] = 1
    if long is not None:  # the correction needs more states than results do, and adds to the error
        run.update(n_kept=max(n_kept, n_states(table)), early=EARLY)
    starts = [kind.from_order(table, order) for order in (climbed if climbs else orders)]
    found = run_gibbs(kind.gibbs, prepared, starts, rngs, **run)
    if long is not None:
        found = corrected(found, prepared, long, n_kept, tol)
    best = best_within(table, found.best_state[None], weighting)
    average = _average(table, training, "mcmc", weighting, found.states, found.chains.means.mean(0), *best)
    return average._replace(log_scores=found.log_scores, finished=found.finished, chains=found.chains)


def swapped_average(table, training, weighting, starts, rngs, **run):
    """Chains of the paper's swaps over a full family table; `run` as in `order_mcmc.sample_orders`."""
    if weighting != "order":
        raise ValueError(
            f"swaps walk over orders, so they do not work with structure_weighting={weighting!r}; use Gibbs moves"
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


# ---------------------------------------------------------------------------------------------------- weightings


class OrderWeighting:
    """Every order counts once, so a DAG counts once per order it fits."""

    name = "order"
    words = "orders"  # what is averaged over
    exact_arcs = exact_orders.MAX_VARIABLES  # most variables for exact arc posteriors
    exact_rows = exact_orders.MAX_PREDICTION  # for exact probabilities of rows
    exact_ancestors = exact_orders.MAX_ANCESTORS  # and for exact ancestors
    ladder = True  # replicas at other temperatures help
    sweep = 1.0  # time of one, in those of orders
    gibbs = staticmethod(run_orders)  # compiled sweeps
    # sums over all structures: made, read, and drawn from
    sum_all = staticmethod(exact_orders.sum_over_orders)
    edges = staticmethod(exact_orders.edge_posterior)
    ancestors = staticmethod(exact_orders.ancestor_posterior)
    log_joint = staticmethod(exact_orders.log_joint)
    draw = staticmethod(exact_orders.draw_orders)
    parent_sets = staticmethod(exact_orders.parent_set_posterior)

    def masks(self, states):
        """(before, touching or None) of states, see `fixed_order`."""
        return fixed_order.order_masks(states), None

    def start(self, n, rng, required):
        """A state to start a chain from."""
        return random_order(n, rng, required)

    def from_order(self, table, order):
        """The state that an order stands for."""
        return np.asarray(order, dtype=np.int64)

    def order(self, states):
        """(n_states, n) orders that fit the states."""
        return states

    def numbers(self, state):
        """(n + 1,) int32 position of every node; the last, -1, takes the padding of sets."""
        numbers = np.full(len(state) + 1, -1, dtype=np.int32)
        numbers[state] = np.arange(len(state))
        return numbers


class DagWeighting:
    """Every DAG counts once: sums and chains go over the layers of a DAG, which are unique."""

    name = "dag"
    words = "DAGs"
    exact_arcs = exact_dags.MAX_VARIABLES
    exact_rows = exact_dags.MAX_PREDICTION
    exact_ancestors = exact_dags.MAX_ANCESTORS
    ladder = False  # arcs are turned round instead
    sweep = 2.5
    gibbs = staticmethod(run_layers)
    sum_all = staticmethod(exact_dags.sum_over_dags)
    edges = staticmethod(exact_dags.edge_posterior)
    ancestors = staticmethod(exact_dags.ancestor_posterior)
    log_joint = staticmethod(exact_dags.log_joint)
    draw = staticmethod(exact_dags.draw_layers)
    parent_sets = staticmethod(exact_dags.parent_set_posterior)

    def masks(self, states):
        """(before, touching) of layers."""
        return fixed_order.layer_masks(states)

    def start(self, n, rng, required):
        """One layer, or what the required arcs ask for."""
        return dag_layers([tuple(p for p, c in required if c == v) for v in range(n)])

    def from_order(self, table, order):
        """Layers of the best DAG within the order."""
        before = fixed_order.order_masks([order])[0]
        return dag_layers(fixed_order.best_parents(table, before)[0])

    def order(self, states):
        """Orders by layer, then by number of the node."""
        return np.argsort(states, axis=1, kind="stable")

    def numbers(self, state):
        """(n + 1,) int32 layer of every node; the last, -1, takes the padding of sets."""
        return np.append(state, -1).astype(np.int32)


WEIGHTINGS: dict[str, OrderWeighting | DagWeighting] = {"order": OrderWeighting(), "dag": DagWeighting()}


def dag_layers(parents):
    """Layer number of every node of a DAG given as parent tuples: one more than the highest layer among its parents."""
    layers = np.full(len(parents), -1, dtype=np.int64)
    while (layers < 0).any():
        ready = [v for v, z in enumerate(parents) if layers[v] < 0 and all(layers[p] >= 0 for p in z)]
        if not ready:
            raise ValueError("the parents form a cycle")
        for v in ready:
            layers[v] = max((layers[p] + 1 for p in parents[v]), default=0)
    return layers


def state_edges(table, weighting, states, block=64):
    """(n_states, n, n) arc posteriors under every state, exactly: row parent, column child."""
    n = len(table.cardinalities)
    held = [_members_by_set(table, child) for child in range(n)]
    edges = np.zeros((len(states), n, n))
    for start in range(0, len(states), block):
        before, touching = weighting.masks(states[start : start + block])
        for child in range(n):
            weights = fixed_order.family_weights(
                table, child, before[:, child], None if touching is None else touching[:, child]
            )
            edges[start : start + block, :, child] = weights @ held[child]
    return edges


def _members_by_set(table, child):
    """(n_sets, n) sparse: 1 where a parent set of the child holds the variable."""
    sets = fixed_order.members(table, child)
    number, slot = np.nonzero(sets >= 0)
    return csr_matrix((np.ones(len(number)), (number, sets[number, slot])), (len(sets), len(table.cardinalities)))
