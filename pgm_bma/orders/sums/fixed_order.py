"""Averaging over all DAGs that fit a given order (Dash and Cooper; ORD eq. 9), for one order or many at a time.

Given an order, every node chooses its parents on its own, so the averaged joint is a product over nodes of mixtures over parent
sets. The same holds for a layering of a DAG, in which a parent set must also touch the layer before: `before` says which
nodes may be parents, `touching` which of them one must be among. `Mixture` keeps the weights of the sets, prediction is
posterior means times weights (`foundation.numbers.families`), a matrix product per node.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from pgm_bma.foundation.numbers.families import family_counts, mix_families, posterior_mean, set_weights, state_offsets
from pgm_bma.orders.families.family_table import FamilyTable, binomials, bounds, members, n_families, tie
from pgm_bma.orders.sums._predict_kernels import MAX_CELLS, mean_tables, mix_completions, predict_families

BLOCK_BYTES = 32_000_000  # predictive probabilities held at a time
MAX_TABLE_BYTES = 256_000_000  # tables of one node's families; wider ones are looked up completion by completion


def order_masks(orders):
    """(n_orders, n, n) before[t, child, parent]: parent stands before child in order t."""
    orders = np.asarray(orders, dtype=np.int64)
    position = np.argsort(orders, axis=1)
    return position[:, None, :] < position[:, :, None]


def layer_masks(layers):
    """(before, touching), each (n_draws, n, n), from layer numbers (n_draws, n); the first layer has no parents to touch."""
    layers = np.asarray(layers)
    parent, child = layers[:, None, :], layers[:, :, None]
    return parent < child, parent == child - 1


def mixture(table, training, before, touching=None, lost_mass=0.0, log_scores=None):
    """Weights of the parent sets under every order (or layering).

    Parameters
    ----------
    table : FamilyTable
    training : Training
    before, touching : (n_structures, n, n) bool, from `order_masks` or `layer_masks`
    lost_mass : the least weighty sets of a node are dropped while their total weight stays below this
    log_scores : (n_structures, n_families) of every structure's own rows, or None: those of the table

    Returns
    -------
    Mixture
    """
    places, weights = [], []
    for child in range(len(table.cardinalities)):
        own = None if log_scores is None else log_scores[:, table.offsets[child] : table.offsets[child + 1]]
        sets = family_weights(table, child, before[:, child], None if touching is None else touching[:, child], own)
        sets = _prune(sets, lost_mass)
        used = np.flatnonzero(sets.any(0))
        places.append(table.offsets[child] + used)
        weights.append(np.ascontiguousarray(sets[:, used]))
    return Mixture(table, training, places, weights)


def family_weights(table, child, before, touching=None, log_scores=None):
    """(n_structures, n_sets of child) posterior weights of its parent sets, zero where a structure forbids the set.

    before, touching : (n_structures, n) bool    log_scores : (n_structures, n_sets) in place of the table's
    """
    scores = _allowed_scores(table, child, before, touching, log_scores)
    if np.isneginf(scores.max(1)).any():
        raise ValueError(f"an order leaves variable {child} without a parent set: a required parent stands behind it")
    return set_weights(scores)


def log_sums(table, child, before, touching=None):
    """(n_structures,) log of the summed weights of the parent sets of a child that every structure allows."""
    return logsumexp(_allowed_scores(table, child, before, touching), axis=1)


def _allowed_scores(table, child, before, touching, log_scores=None):
    """(n_structures, n_sets) log scores, -inf where a structure forbids the set."""
    sets = members(table, child)
    allowed = _inside(before, sets)
    if touching is not None:
        allowed &= ~_inside(~touching, sets) | ~before.any(1, keepdims=True)
    if log_scores is None:
        log_scores = _own_scores(table, child)
    return np.where(allowed, log_scores, -np.inf)


def _own_scores(table, child):
    """(n_sets,) log scores of one child; `table.log_scores` would add up those of all."""
    own = slice(table.offsets[child], table.offsets[child + 1])
    return table.log_marginal[own] + table.log_prior[own]


def _inside(nodes, sets):
    """(n_structures, n_sets) whether all members of a set are among the nodes (n_structures, n) bool; the empty set always is."""
    open_to = np.append(nodes, np.ones((len(nodes), 1), dtype=bool), axis=1)  # padding (-1) reads the last column
    inside = np.ones((len(nodes), len(sets)), dtype=bool)
    for slot in sets.T:
        inside &= open_to[:, slot]
    return inside


def _prune(weights, lost_mass):
    if lost_mass <= 0.0:
        return weights
    ranked = np.sort(weights, axis=1)
    # the cut is on the lost mass: with a flat posterior, a threshold on single weights would drop whole layers of sets
    n_lost = (np.cumsum(ranked, axis=1) < lost_mass).sum(1)
    cut = np.take_along_axis(ranked, np.minimum(n_lost, ranked.shape[1] - 1)[:, None], axis=1)
    kept = np.where(weights >= cut, weights, 0.0)
    return kept / kept.sum(1, keepdims=True)


def log_joints(mix, rows, class_index=None, n_classes=1, source=None, hidden=None):
    """(n_structures, n_rows, n_classes) natural log of ORD eq. 9 for every order, row and value of the class.

    rows : (n_rows, n) without missing values; the class column is overwritten by every class in turn. Without `class_index`
    the rows are taken as they are.
    source, hidden : for rows that complete others, (n_rows,) ascending number of the row it completes, and (n_sources, n) bool,
    the cells in which completions of the same row differ. The result is the same, the work is shared between them.
    """
    joints = np.zeros((len(mix.weights[0]), len(rows), n_classes))
    for term in _log_terms(mix, rows, class_index, n_classes, source, hidden):
        joints += term
    return joints


def log_terms(mix, rows, class_index=None, n_classes=1):
    """(n_structures, n, n_rows, n_classes) the summands of `log_joints`, node by node."""
    return np.stack(list(_log_terms(mix, rows, class_index, n_classes)), axis=1)


def _log_terms(mix, rows, class_index, n_classes, source=None, hidden=None):
    rows = np.asfortranarray(rows, dtype=np.int32)
    n_structures = len(mix.weights[0])
    if class_index is not None:
        per_class = np.repeat(rows, n_classes, axis=0)
        per_class[:, class_index] = np.tile(np.arange(n_classes), len(rows))
        per_class = np.asfortranarray(per_class)
    for child, (places, weights) in enumerate(zip(mix.places, mix.weights)):
        members = set_members(mix.table, child, places)
        if source is not None and _tables_fit(mix, child, members, hidden):
            yield np.log(_mix_completions(mix, child, members, weights, rows, source, hidden, class_index, n_classes))
            continue
        if class_index is None:
            yield np.log(_mix(mix, child, members, weights, rows))[:, :, None]
            continue
        varies = (members == class_index).any(1) | (child == class_index)  # families that see the class
        mixed = _mix(mix, child, members[varies], weights[:, varies], per_class).reshape(n_structures, -1, n_classes)
        if not varies.all():
            mixed = mixed + _mix(mix, child, members[~varies], weights[:, ~varies], rows)[:, :, None]
        yield np.log(mixed)


def _mix(mix, child, members, weights, rows):
    """(n_structures, n_rows) mixture of posterior means, in blocks of rows."""
    mixed = np.zeros((len(weights), len(rows)))
    block = max(BLOCK_BYTES // (8 * max(len(members), 1)), 256)
    for start in range(0, len(rows) if len(members) else 0, block):
        part = np.asfortranarray(rows[start : start + block])
        means = predict(mix.training, np.full(len(members), child), members, part)
        mixed[:, start : start + block] = mix_families(weights, means)  # ORD eq. 9
    return mixed


def _mix_completions(mix, child, members, weights, rows, source, hidden, class_index, n_classes):
    """(n_structures, n_rows, n_classes) the mixture at completions, all of a row at once."""
    training, cards = mix.training, mix.training.cardinalities
    hidden = hidden.copy()
    if class_index is not None:
        hidden[:, class_index] = True
    starts, tables = training.mean_tables(np.full(len(members), child), members)
    mixed = np.zeros((len(rows), n_classes, len(weights)))
    (n_sets, width), binomial = members.shape, binomials(len(cards), mix.table.max_indegree)
    n_ranks = binomial[hidden.sum(1), : width + 1].sum(1).max(initial=0)
    space = (
        *np.zeros((3, n_sets + 1), dtype=np.int64),  # rank and group by group and family, first cell of a group
        np.zeros((n_sets, width + 1), dtype=np.int64),  # hidden members of a group
        np.zeros((3, width + 1), dtype=np.int64),  # digits of a cell: sizes, strides, values
        np.zeros(len(cards), dtype=np.int64),  # place of a variable among the hidden ones
        np.zeros(n_sets, dtype=bool),  # groups that hold the class
        np.zeros(len(weights)),
    )
    mix_completions(
        tables, starts, np.ascontiguousarray(weights.T), child, members, np.array(rows, order="C"),
        np.searchsorted(source, np.arange(len(hidden) + 1)), hidden, -1 if class_index is None else class_index, cards,
        binomial, np.full(n_ranks, -1), space, np.empty((starts[-1], len(weights))), mixed,
    )  # fmt: skip
    return mixed.transpose(2, 0, 1)


def _tables_fit(mix, child, members, hidden):
    """Return whether the tables that `mix_completions` makes for a node are of a reasonable size."""
    cards = mix.training.cardinalities
    cells = np.append(cards, 1)[members].prod(axis=1, dtype=float).sum() * cards[child] * len(mix.weights[0])
    n_groups = n_families(1, int(hidden.sum(1).max()) + 1, mix.table.max_indegree)
    return 8 * max(cells, n_groups) <= MAX_TABLE_BYTES


def predict(training, children, parents, rows):
    """(n_families, n_rows) posterior mean of every row's value under every family; rows (n_rows, n) int32."""
    return training.predict(children, parents, rows)


def set_members(table, child, places):
    """(n_places, max_indegree) variables of the parent sets at `places` of the table, padded with -1."""
    return members(table, child)[np.asarray(places) - table.offsets[child]].astype(np.int64)


def all_predictive(table, training, rows):
    """(n_families, n_rows) posterior means under every family of the table, in its order."""
    rows = np.asfortranarray(rows, dtype=np.int32)
    parts = []
    for child in range(len(table.cardinalities)):
        places = np.arange(table.offsets[child], table.offsets[child + 1])
        parts.append(predict(training, np.full(len(places), child), set_members(table, child, places), rows))
    return np.concatenate(parts)


def draw_dags(mix, structures, rng):
    """(n_draws, n, max_indegree) parents, padded with -1: one DAG from P(DAG | order, data) for every order named."""
    n = len(mix.places)
    dags = np.full((len(structures), n, max(mix.table.max_indegree, 1)), -1, dtype=np.int64)
    for child, (places, weights) in enumerate(zip(mix.places, mix.weights)):
        shares = np.cumsum(weights, axis=1)
        points = rng.random(len(structures)) * shares[structures, -1]
        chosen = [int(np.searchsorted(shares[t], x, side="right")) for t, x in zip(structures, points)]
        dags[:, child, : mix.table.max_indegree] = set_members(mix.table, child, places)[chosen]
    return dags


def best_parents(table, before):
    """Best parents of every node under one order, and their log score; ties to the fewest arcs, then the first set.

    before : (n, n) bool
    """
    parents, total = [], 0.0
    for child in range(len(table.cardinalities)):
        sets = members(table, child)
        scores = np.where(_inside(before[child : child + 1], sets)[0], _own_scores(table, child), -np.inf)
        equal = np.flatnonzero(scores >= scores.max() - tie(scores.max()))
        tied = [tuple(int(p) for p in sets[k] if p >= 0) for k in equal]
        parents.append(min(tied, key=lambda z: (len(z), z)))
        total += scores.max()
    return parents, float(total)


def family_cpt(training, child, parents):
    """Posterior-mean table (n_parent_states, n_states) of one family."""
    counts = training.family_counts(child, parents)
    alpha, total = bounds(*training.prior)
    return posterior_mean(counts, min(alpha, total / counts.size))


def averaged_network(mix):
    """The averaged joint under one order as a network: parents and CPTs, every node with all parents that carry weight.

    The caller has checked the size with `averaged_cells`.
    """
    parents, cpts = [], []
    for child, scope in enumerate(averaged_parents(mix)):
        cards = [int(mix.training.cardinalities[p]) for p in (*scope, child)]
        rows = np.zeros((int(np.prod(cards)), len(mix.training.cardinalities)), dtype=np.int32)
        rows[:, [*scope, child]] = list(product(*map(range, cards)))
        members = set_members(mix.table, child, mix.places[child])
        cpts.append(_mix(mix, child, members, mix.weights[child], np.asfortranarray(rows))[0].reshape(-1, cards[-1]))
        parents.append(scope)
    return parents, cpts


def averaged_parents(mix):
    """Every node's parents in the averaged network of one order."""
    return [
        tuple(int(p) for p in np.unique(set_members(mix.table, child, places)) if p >= 0)
        for child, places in enumerate(mix.places)
    ]


def averaged_cells(mix):
    """Number of cells of the averaged network."""
    cards = mix.training.cardinalities.astype(float)
    return sum(float(np.prod(cards[[*scope, child]])) for child, scope in enumerate(averaged_parents(mix)))


class Training(NamedTuple):
    """The rows behind a family table, and the parameter prior."""

    codes: np.ndarray  # (n_samples, n) int32, column-contiguous, no missing values
    weights: np.ndarray  # (n_samples,) float
    cardinalities: np.ndarray
    alpha: float
    equivalent_sample_size: float | None
    max_total: float | None = None  # most pseudo-counts of a table
    # (n_samples, n) bool: rows in which a variable was set, which do not count in the tables of its families
    held: np.ndarray | None = None
    soft: bool = False  # in the scores, those rows have another table with the same parents

    def free(self, child):
        """The rows that count in the families of `child`, nothing held."""
        if self.held is None:
            return self
        rows = ~self.held[:, child]
        return self._replace(codes=np.asfortranarray(self.codes[rows]), weights=self.weights[rows], held=None)

    @property
    def prior(self):
        """Arguments of `family_table.bounds`."""
        return self.alpha, self.equivalent_sample_size, self.max_total

    def sized(self, total):
        """The same with a total pseudo-count of every table (BDeu)."""
        return self._replace(equivalent_sample_size=total)

    @property
    def first_rows(self):
        """Distinct rows in lexicographic order: all of them."""
        return self.codes

    @property
    def digested(self):
        """Arrays by which the data are known again."""
        parts = self.codes, self.weights, self.cardinalities
        return parts if self.held is None else (*parts, self.held, np.array(self.soft))

    def predict(self, children, parents, rows):
        """(n_families, n_rows) posterior mean of every row's value under every family; rows (n_rows, n) int32."""
        out = np.empty((len(children), len(rows)))
        if self.held is not None:
            for child in np.unique(children):
                own = np.flatnonzero(children == child)
                out[own] = self.free(child).predict(children[own], parents[own], rows)
            return out
        cells = np.append(self.cardinalities, 1.0)[parents].prod(axis=1) * self.cardinalities[children]
        space = np.empty(int(cells[cells <= MAX_CELLS].max(initial=1))), np.empty(len(rows), dtype=np.int64)
        predict_families(
            # transposed: the type of a transposed array does not change when there is a single row
            np.ascontiguousarray(self.codes.T), self.weights, self.cardinalities, *bounds(*self.prior),
            np.asarray(children, dtype=np.int64), parents, cells, np.ascontiguousarray(rows.T), *space, out,
        )  # fmt: skip
        return out

    def mean_tables(self, children, parents):
        """(starts, tables): posterior means of one child, named for every family, one table after the other."""
        if self.held is not None:
            return self.free(children[0]).mean_tables(children, parents)
        cards = self.cardinalities
        starts = state_offsets(np.append(cards, 1)[parents].prod(axis=1) * cards[children])
        tables = np.empty(starts[-1])
        mean_tables(
            np.ascontiguousarray(self.codes.T), self.weights, cards, *bounds(*self.prior), children[0], parents, starts, tables,
        )  # fmt: skip
        return starts, tables

    def family_counts(self, child, parents):
        """(n_parent_states, n_states) counts of one family; the first parent varies slowest."""
        rows = self.free(child)
        return family_counts(rows.codes, self.cardinalities, child, parents, rows.weights)


class Mixture(NamedTuple):
    """Parent sets with their weights under one or more orders."""

    table: FamilyTable
    training: Training
    places: list  # per node: places of the used sets in the family table
    weights: list  # per node: (n_structures, n_used)
