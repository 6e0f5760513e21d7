"""The rows of a forest clusterer: in memory, or complete ones that are visited in passes, behind one interface.

What `clustering` asks of them, the state of a run being whatever gives the responsibilities of its rows:

    cardinalities                    model(parents, prior) -> a model that structural EM can fit to the rows
    start_of(model, fit) -> where a run begins that goes on from such a fit             random_start(n_clusters, rng) -> the same
    first(start) -> state            sums(state) -> soft counts of all pairs and of the clusters, entropy
    expect(state, logs) -> the state that follows from expected logs, and its sums
    overlap(state, state) -> (n_clusters, n_clusters) rows that two runs put together

In memory a state is the responsibilities and, where cells are missing, q(x_i given z) of these, updated one column at a time.
In passes, without missing cells, responsibilities follow from the expected logs, so that nothing is kept per row: the state is
these, or at the start a fitted augmented naive Bayes model. Complete rows are counted and looked up by super-columns
(`pair_groups`): ten tables instead of 210 for twenty binary columns.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.augmented import model as anb
from pgm_bma.augmented.structures import AugmentedModel, BlocksModel
from pgm_bma.forests._row_kernels import expect_rows, normalise
from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.numbers.pairs import PairGroups, grouped_pair_counts, indicators, make_pair_groups
from pgm_bma.foundation.rows.blocks import Rows


class HeldRows(NamedTuple):
    """Distinct rows in memory: the n_complete ones with every cell first. groups: super-columns of the complete rows; flags
    (n_incomplete, S): indicators of the others, zero where missing; order: where the rows were."""

    codes: np.ndarray
    weights: np.ndarray
    cardinalities: np.ndarray
    groups: PairGroups
    flags: np.ndarray
    n_complete: int
    order: np.ndarray

    def model(self, parents, prior):
        return AugmentedModel.build(anb.make_cases(self.codes, self.cardinalities, self.weights), parents, prior)

    def start_of(self, model, fit):
        return fit.responsibilities

    def random_start(self, n_clusters, rng):
        return rng.dirichlet(np.ones(n_clusters), size=len(self.codes))[self.order]

    def first(self, start):
        """start : responsibilities (n, n_clusters), in the order of these rows"""
        return RowState(start, _start_hidden(self, start.shape[1]))

    def sums(self, state):
        return *_soft_counts(self, state), float(self.weights @ _entropy(self, state))

    def expect(self, state, logs):
        state, entropy = _expect(self, state.hidden, *logs)
        return state, (*_soft_counts(self, state), float(self.weights @ entropy))

    def overlap(self, first, second):
        return first.responsibilities.T @ (second.responsibilities * self.weights[:, None])


class RowState(NamedTuple):
    """responsibilities (n, n_clusters) in the order of the rows; hidden (n_clusters, n_incomplete, S): soft indicators."""

    responsibilities: np.ndarray
    hidden: np.ndarray


class PassedRows(NamedTuple):
    """Complete rows of `Block`, visited in passes."""

    rows: Rows

    @property
    def cardinalities(self):
        return self.rows.schema.cardinalities

    def model(self, parents, prior):
        return BlocksModel.build(self.rows, parents, prior)

    def start_of(self, model, fit):
        return model.layout, fit.parameters

    def first(self, start):
        """start : (layout, parameters) of an augmented naive Bayes model, or expected logs (log_cluster, single, both)"""
        return tuple(start)

    def sums(self, state):
        return self.rows.reduce(sums_of_block, self.cardinalities, state)

    def expect(self, state, logs):
        return tuple(logs), self.sums(tuple(logs))

    def overlap(self, first, second):
        return self.rows.reduce(overlap_of_block, self.cardinalities, first, second)[0]


def hold_rows(codes, cardinalities, weights):
    """`HeldRows` of codes (n, n_columns), -1 = missing; equal rows are best folded before."""
    incomplete = (codes < 0).any(axis=1)
    order = np.argsort(incomplete, kind="stable")
    codes = np.ascontiguousarray(codes[order], dtype=np.int64)
    m = int((~incomplete).sum())
    groups, flags = make_pair_groups(codes[:m], cardinalities), indicators(codes[m:], cardinalities)
    return HeldRows(codes, weights[order], np.asarray(cardinalities), groups, flags, m, order)


# ------------------------------------------------------------------------------------------------- complete rows


def expect_complete(groups, log_cluster, single, both, q):
    """Responsibilities of complete rows into `q`; returns the entropy of every row."""
    entropy = np.empty(len(groups.columns))
    expect_rows(groups.columns, log_cluster, *_group_tables(groups, single, both), q, entropy)
    return entropy


def _expect(rows, hidden, log_cluster, single, both):
    """The new state, and the entropy of every row."""
    m, q = rows.n_complete, np.empty((len(rows.codes), len(log_cluster)))
    entropy = np.empty(len(q))
    entropy[:m] = expect_complete(rows.groups, log_cluster, single, both, q[:m])
    if m < len(q):
        hidden = _update_hidden(rows, hidden, single, both)
        cells = np.empty_like(q[m:])
        for k, soft in enumerate(hidden):
            quadratic = 0.5 * np.einsum("ns,ns->n", soft @ both[k], soft)
            cells[:, k] = _cell_entropy(soft)
            q[m:, k] = log_cluster[k] + soft @ single[k] + quadratic + cells[:, k]
        entropy[m:] = [normalise(line) for line in q[m:]]
        entropy[m:] += (q[m:] * cells).sum(1)
    return RowState(q, hidden), entropy


def _group_tables(groups, single, both):
    """Expected logs by joint states of super-columns, as `expect_rows` wants them; pairs that no arc joins are left out.

    single (n_clusters, S), both (n_clusters, S, S) from `clustering.expected_logs`
    """
    owns, pairs, blocks = [], [], []
    for g, (flags, here) in enumerate(zip(groups.flags, groups.places)):
        own = single[:, here] @ flags.T
        if flags[0].sum() > 1:  # several columns in one
            own += 0.5 * ((flags @ both[:, here, here]) * flags).sum(axis=2)
        owns.append(own)
        for h in range(g + 1, len(groups.flags)):
            block = both[:, here, groups.places[h]]
            if block.any():
                pairs.append((g, h))
                blocks.append((flags @ block @ groups.flags[h].T).reshape(len(single), -1))
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    starts = np.cumsum([0, *(table.shape[1] for table in blocks)])[:-1]
    tables = np.concatenate([np.zeros((len(single), 0)), *blocks], axis=1)
    own = np.ascontiguousarray(np.concatenate(owns, axis=1).T)
    return state_offsets(groups.sizes), own, first, second, starts, groups.sizes[second], np.ascontiguousarray(tables.T)


# ------------------------------------------------------------------------------------------------- missing cells


def _start_hidden(rows, n_clusters):
    """Soft indicators (n_clusters, n_incomplete, S): missing cells begin at the column's observed frequencies."""
    soft = rows.flags.copy()
    offsets, m = state_offsets(rows.cardinalities), rows.n_complete
    complete = grouped_pair_counts(rows.groups, rows.weights[:m, None])[0]
    frequency = np.diagonal(complete) + rows.weights[m:] @ rows.flags + 1.0
    for i in range(len(rows.cardinalities)):
        own = slice(offsets[i], offsets[i + 1])
        missing = rows.codes[m:, i] < 0
        soft[missing, own] = frequency[own] / frequency[own].sum()
    return np.repeat(soft[None], n_clusters, axis=0)


def _update_hidden(rows, hidden, single, both):
    """q(x_i given z) of every missing cell, one column after another: each step raises the bound."""
    offsets = state_offsets(rows.cardinalities)
    codes = rows.codes[rows.n_complete :]
    missing = [np.flatnonzero(column < 0) for column in codes.T]
    columns = [i for i, some in enumerate(missing) if len(some)]
    hidden = hidden.copy()
    for soft, alone, joint in zip(hidden, single, both):
        for i in columns:
            own = slice(offsets[i], offsets[i + 1])
            values = alone[own] + soft[missing[i]] @ joint[:, own]
            # scipy's softmax takes longer than all the rest
            values = np.exp(values - values.max(axis=1, keepdims=True))
            soft[missing[i], own] = values / values.sum(axis=1, keepdims=True)
    return hidden


def _soft_counts(rows, state):
    (q, hidden), m = state, rows.n_complete
    weighted = q * rows.weights[:, None]
    pairs = grouped_pair_counts(rows.groups, weighted[:m])
    for k in range(q.shape[1]) if m < len(q) else ():
        soft, weight = hidden[k], weighted[m:, k]
        more = (soft.T * weight) @ soft
        np.fill_diagonal(more, weight @ soft)  # a cell with itself: its expectation, not its square
        pairs[k] += more
    return pairs, weighted.sum(0)


def _cell_entropy(soft):
    """Entropy of the hidden cells of every incomplete row; observed cells have none."""
    return -_plogp(soft)


def _entropy(rows, state):
    """Entropy of every row's cluster and hidden cells."""
    q, hidden = state
    terms = -_plogp(q)
    m = rows.n_complete
    for k in range(q.shape[1]) if m < len(q) else ():
        terms[m:] += q[m:, k] * _cell_entropy(hidden[k])
    return terms


def _plogp(q):
    """Sums of q log q over the last axis, 0 log 0 = 0."""
    return (q * np.log(np.where(q > 0, q, 1.0))).sum(axis=1)


# ------------------------------------------------------------------------------------------------- on a block


def sums_of_block(block, cardinalities, state):
    """(counts of all pairs, of the clusters, entropy) of a block, the responsibilities being those of `state`."""
    groups, q, entropy = _responsibilities(block, cardinalities, state)
    weights = np.ones(len(q)) if block.weights is None else block.weights
    weighted = q * weights[:, None]
    return grouped_pair_counts(groups, weighted), weighted.sum(0), float(weights @ entropy)


def overlap_of_block(block, cardinalities, first, second):
    """K x K overlap of two partitions of a block."""
    first, second = (_responsibilities(block, cardinalities, state)[1] for state in (first, second))
    return (first.T @ (second if block.weights is None else second * block.weights[:, None]),)


def _responsibilities(block, cardinalities, state):
    """(groups of the rows, responsibilities, entropy of every row)."""
    codes = np.ascontiguousarray(block.codes, dtype=np.int64)
    groups = make_pair_groups(codes, cardinalities)
    if len(state) == 3:  # expected logs
        q = np.empty((len(codes), len(state[0])))
        log_cluster, single, both = state
        return groups, q, expect_complete(groups, log_cluster, single, both, q)
    q = anb.expect(anb.make_cases(codes, cardinalities), *state)[0]
    return groups, q, -_plogp(q)
