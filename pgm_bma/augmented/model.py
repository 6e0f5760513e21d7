"""Augmented naive Bayes with a hidden class: parameters, expected counts and scores for a given structure.

Paper: SEM (Peña, Lozano, Larrañaga 2000). The cluster is a parent of every attribute and an attribute may have one other
attribute as a parent (-1 = none), without cycles. All tables of a model lie in one array (n_cells, n_clusters), described
by a `AugmentedLayout`; the rows of the data lie in a `Cases` record, distinct rows with weights, the complete ones first.

Missing cells are summed out exactly: given the cluster the attributes form a forest, so one pass up and one down a row's
forest gives its likelihood and its expected counts.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from pgm_bma.augmented import _kernels as kernels
from pgm_bma.foundation.numbers.families import log_marginal_likelihood, side_by_side_scores, state_offsets

_GROUP_COLUMNS = 30  # in its scope; constant columns do not fill one, and arrays have 64 dimensions at most
_GROUP_STATES = 64  # joint states of a super-column: few enough to stay in the nearest cache


def make_cases(codes, cardinalities, weights=None):
    """Rows as the kernels want them: complete rows first, int32 codes, float weights.

    codes : (n_samples, n_features), -1 = missing; equal rows are best folded before
    """
    codes = np.asarray(codes)
    cardinalities = np.asarray(cardinalities, dtype=np.int64)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    incomplete = (codes < 0).any(axis=1)
    order = np.argsort(incomplete, kind="stable")
    codes = np.ascontiguousarray(codes[order], dtype=np.int32)
    n_complete = int(len(codes) - incomplete.sum())
    return Cases(codes, weights[order], cardinalities, n_complete, order)


def make_layout(parents, cardinalities):
    """Layout of the cells of a structure.

    parents : (n_features,) position of the attribute parent or -1
    """
    parents = np.asarray(parents, dtype=np.int64)
    cardinalities = np.asarray(cardinalities, dtype=np.int64)
    n_lines = np.where(parents >= 0, cardinalities[np.maximum(parents, 0)], 1)
    sizes = np.repeat(cardinalities, n_lines)  # one line of `cardinality` cells per parent value
    line_starts = state_offsets(sizes)[:-1]
    offsets = state_offsets(n_lines * cardinalities)
    line_of_cell = np.repeat(np.arange(len(sizes)), sizes)
    return AugmentedLayout(
        parents, cardinalities, offsets, line_starts, sizes, line_of_cell, np.array(forest_order(parents))
    )


def forest_order(parents):
    """Attributes, parents before children; an error names a cycle. A tree at a time (`foundation.numbers.graphs.topological_order`
    goes level by level), so that families stand side by side, where super-columns can join them."""
    children: list[list[int]] = [[] for _ in parents]
    for i, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(i)
    order, stack = [], [i for i, parent in enumerate(parents) if parent < 0][::-1]
    while stack:
        order.append(stack.pop())
        stack.extend(children[order[-1]][::-1])
    if len(order) < len(parents):
        loop = sorted(set(range(len(parents))) - set(order))
        raise ValueError(f"the attribute parents of columns {loop} form a cycle")
    return order


def group_columns(cases, layout):
    """Join neighbouring attributes into super-columns, so that a row costs one gather per group instead of per attribute.

    Attributes are taken down the forest while the joint states of a group and its parents stay few. A group's table is the
    product of its members' tables, made once per pass; its counts are marginalised back. Only complete rows are grouped, and
    the groups do not depend on them: a row gets the same digits in any company.
    """
    codes, cards = cases.codes[: cases.n_complete], layout.cardinalities
    plans: list[tuple] = []
    scope: list[int] = []
    members: list[int] = []
    for i in layout.order.tolist():
        family = [i] if layout.parents[i] < 0 else [int(layout.parents[i]), i]
        wider = scope + [v for v in family if v not in scope]
        if members and (np.prod(cards[wider]) > _GROUP_STATES or len(wider) > _GROUP_COLUMNS):
            plans.append((scope, members))
            wider, members = family, []
        scope, members = wider, [*members, i]
    plans.append((scope, members))
    columns = np.empty((len(codes), len(plans)), dtype=np.int32)
    links, size = [], 0
    for g, (scope, members) in enumerate(plans):
        column = np.zeros(len(codes), dtype=np.int32)
        for v in scope:
            column = column * np.int32(cards[v]) + codes[:, v]
        columns[:, g] = column + np.int32(size)
        states = dict(zip(scope, np.indices(cards[scope]).reshape(len(scope), -1)))
        for i in members:
            parent = layout.parents[i]
            cell = layout.offsets[i] + (states[parent] * cards[i] if parent >= 0 else 0) + states[i]
            links.append(np.stack([size + np.arange(len(cell)), cell]))
        size += int(np.prod(cards[scope]))
    return Groups(columns, size, np.ascontiguousarray(np.concatenate(links, axis=1)))


def expect(cases, layout, parameters, groups=None):
    """E step: responsibilities and log-likelihood of all rows, in the order of `cases`.

    returns responsibilities : (n, n_clusters), log_likelihood : float
    """
    joint, shift = joint_rows(cases, layout, parameters, groups)
    log_likelihood = kernels.responsibilities_pass(joint, shift, cases.weights)
    return joint, float(log_likelihood)


def joint_rows(cases, layout, parameters, groups=None):
    """p(cluster, row) = joint * exp(shift): (n, n_clusters) and (n,); missing cells are summed out."""
    m = cases.n_complete
    groups = group_columns(cases, layout) if groups is None else groups
    joint, shift = np.empty((len(cases.codes), len(parameters.class_probs))), np.empty(len(cases.codes))
    kernels.complete_pass(
        groups.columns, parameters.class_probs, _group_table(parameters, groups), joint[:m], shift[:m]
    )
    if m < len(cases.codes):
        _missing_joint(cases, layout, parameters, joint[m:], shift[m:])
    return joint, shift


def _group_table(parameters, groups):
    """Tables of the super-columns, (size, n_clusters)."""
    table = np.ones((groups.size, len(parameters.class_probs)))
    kernels.expand(parameters.table, groups.links, table)
    return table


def _missing_joint(cases, layout, parameters, joint, shift):
    forest = layout.cardinalities, layout.parents, layout.order, layout.offsets
    space = make_space(layout.cardinalities, joint.shape[1])
    kernels.missing_pass(
        cases.codes[cases.n_complete :], *forest, parameters.class_probs, parameters.table, joint, shift, space
    )


def make_space(cards, n_clusters):
    """Space of the passes over rows with missing cells, for columns of these cardinalities."""
    n, widest = len(cards), int(cards.max(initial=1))
    return kernels.StructurePassSpace(
        np.empty((n, widest)), np.empty((n, widest)), np.empty((widest, widest)), np.empty(n, dtype=bool), np.empty(n_clusters)
    )  # fmt: skip


def em_counts(cases, layout, parameters, groups, hard=False):
    """E step of one EM update in one sweep: log-likelihood, expected counts and, when asked, hard counts (else None)."""
    k, m = len(parameters.class_probs), cases.n_complete
    counts, completed = _no_counts(layout, k), _no_counts(layout, k)
    grouped, grouped_hard = np.zeros((groups.size, k)), np.zeros((groups.size if hard else 1, k))
    log_likelihood = kernels.em_pass(
        groups.columns,
        cases.weights[:m],
        parameters.class_probs,
        _group_table(parameters, groups),
        counts.classes,
        grouped,
        hard,
        completed.classes,
        grouped_hard,
        np.empty(k),
    )
    kernels.fold_back(grouped, groups.links, counts.table)
    if hard:
        kernels.fold_back(grouped_hard, groups.links, completed.table)
    if m < len(cases.codes):
        joint, shift = np.empty((len(cases.codes) - m, k)), np.empty(len(cases.codes) - m)
        _missing_joint(cases, layout, parameters, joint, shift)
        log_likelihood += kernels.responsibilities_pass(joint, shift, cases.weights[m:])
        _add_missing(cases, layout, parameters, joint, False, counts)
        if hard:
            _add_missing(cases, layout, parameters, one_hot(joint.argmax(axis=1), k), True, completed)
    return float(log_likelihood), counts, completed if hard else None


def log_joint(codes, cardinalities, parents, parameters):
    """Natural log p(cluster, row) of any rows, missing cells summed out: (n_samples, n_clusters)."""
    cases, layout = make_cases(codes, cardinalities), make_layout(parents, cardinalities)
    groups = group_columns(cases, layout)
    joint, shift = joint_rows(cases, layout, parameters, groups)
    out = np.empty_like(joint)
    with np.errstate(divide="ignore"):
        out[cases.order] = np.log(joint) + shift[:, None]
        # a cluster that vanishes next to another one of its row is asked on its own; what stays zero is impossible
        for c in np.flatnonzero((joint == 0).any(axis=0)):
            alone = Parameters(parameters.class_probs[c : c + 1], np.ascontiguousarray(parameters.table[:, c : c + 1]))
            single, shift = joint_rows(cases, layout, alone, groups)
            out[cases.order, c] = np.log(single[:, 0]) + shift
    return out


def expected_counts(cases, layout, parameters, responsibilities, groups=None, every_cell=False):
    """Counts behind the next update: class counts (n_clusters,) and cells (n_cells, n_clusters).

    Missing cells are completed by their posterior under `parameters`. Those with nothing observed below them add nothing
    (EM is exact without them) unless `every_cell`.
    """
    m = cases.n_complete
    groups = group_columns(cases, layout) if groups is None else groups
    k = responsibilities.shape[1]
    counts, grouped = _no_counts(layout, k), np.zeros((groups.size, k))
    kernels.complete_counts(
        groups.columns, cases.weights[:m], responsibilities[:m], counts.classes, grouped, np.empty(k)
    )
    kernels.fold_back(grouped, groups.links, counts.table)
    if m < len(cases.codes):
        _add_missing(cases, layout, parameters, responsibilities[m:], every_cell, counts)
    return counts


def _add_missing(cases, layout, parameters, responsibilities, every_cell, counts):
    m = cases.n_complete
    kernels.missing_counts(
        cases.codes[m:],
        layout.cardinalities,
        layout.parents,
        layout.order,
        layout.offsets,
        cases.weights[m:],
        parameters.table,
        np.ascontiguousarray(responsibilities),
        every_cell,
        counts.classes,
        counts.table,
        make_space(layout.cardinalities, responsibilities.shape[1]),
    )


def _no_counts(layout, n_clusters):
    return Counts(np.zeros(n_clusters), np.zeros((layout.offsets[-1], n_clusters)))


def update(counts, layout, prior):
    """M step, the "MAP" of the paper: (n + alpha) / (sum + r alpha); lines without cases or prior become uniform."""
    alpha_classes, alpha_cells = prior_cells(layout, len(counts.classes), prior)
    classes = counts.classes + alpha_classes
    table = counts.table + alpha_cells[:, None]
    totals = np.add.reduceat(table, layout.line_starts, axis=0)
    empty = totals <= 0
    totals[empty] = 1.0
    table /= totals[layout.line_of_cell]
    if empty.any():
        table += np.where(empty, 1.0 / layout.line_sizes[:, None], 0.0)[layout.line_of_cell]
    total = classes.sum()
    return Parameters(classes / total if total > 0 else np.full(len(classes), 1.0 / len(classes)), table)


def log_prior(parameters, layout, prior):
    """sum of alpha log theta: what EM with `update` climbs is the log-likelihood plus this."""
    alpha_classes, alpha_cells = prior_cells(layout, len(parameters.class_probs), prior)
    if alpha_classes == 0:  # 0 log 0 = 0
        return 0.0
    with np.errstate(divide="ignore"):
        total = alpha_classes * np.log(parameters.class_probs).sum()
        return float(total + alpha_cells @ np.log(parameters.table).sum(axis=1))


def log_score(counts, layout, prior):
    """Log marginal likelihood of completed data, parameters integrated out (K2 or BDeu; expected counts are accepted)."""
    alpha_classes, alpha_cells = prior_cells(layout, len(counts.classes), prior.for_scores())
    lines = side_by_side_scores(counts.table.T, alpha_cells, layout.line_starts)
    return float(log_marginal_likelihood(counts.classes[None], alpha_classes) + lines.sum())


def expected_log_joint(counts, parameters):
    """Log probability of completed data with these counts: sum of count x log parameter."""
    return float(xlogy(counts.classes, parameters.class_probs).sum() + xlogy(counts.table, parameters.table).sum())


def random_parameters(layout, n_clusters, rng):
    """Every distribution from Dirichlet(1)."""
    class_probs = rng.dirichlet(np.ones(n_clusters))
    table = rng.standard_exponential((layout.offsets[-1], n_clusters))
    table /= np.add.reduceat(table, layout.line_starts, axis=0)[layout.line_of_cell]
    return Parameters(class_probs, table)


def prior_cells(layout, n_clusters, prior):
    """Pseudo-count of a class cell, and of every cell of the flat table (n_cells,)."""
    if prior.equivalent_sample_size is None:
        return prior.alpha, np.full(layout.offsets[-1], float(prior.alpha))
    ess = prior.equivalent_sample_size
    per_attribute = ess / (n_clusters * np.diff(layout.offsets))
    return ess / n_clusters, np.repeat(per_attribute, np.diff(layout.offsets))


def one_hot(winner, n_clusters):
    return (winner[:, None] == np.arange(n_clusters)).astype(float)


def pack_tables(tables):
    """Tables (n_clusters, n_parent_values, n_states), one per attribute (or without the middle axis) -> flat array."""
    k = len(tables[0])
    return np.ascontiguousarray(np.concatenate([np.asarray(t, dtype=float).reshape(k, -1).T for t in tables]))


def unpack_tables(table, layout):
    """Flat array -> tables (n_clusters, n_parent_values, n_states), one per attribute."""
    out = []
    for i, r in enumerate(layout.cardinalities):
        block = table[layout.offsets[i] : layout.offsets[i + 1]]
        out.append(block.T.reshape(table.shape[1], -1, int(r)))
    return out


class Prior(NamedTuple):
    """alpha per cell, or BDeu's equivalent sample size. With alpha 0 (maximum likelihood) structures are scored by K2."""

    alpha: float = 1.0
    equivalent_sample_size: float | None = None

    def for_scores(self):
        if self.equivalent_sample_size is None and self.alpha == 0:
            return Prior(1.0)
        return self


class Cases(NamedTuple):
    """codes (n, n_features) int32 with the complete rows first, weights (n,), and `order`: the rows they came from."""

    codes: np.ndarray
    weights: np.ndarray
    cardinalities: np.ndarray
    n_complete: int
    order: np.ndarray


class AugmentedLayout(NamedTuple):
    """Cells of attribute i: offsets[i] .. offsets[i+1], one line of cells (a distribution) per parent value."""

    parents: np.ndarray
    cardinalities: np.ndarray
    offsets: np.ndarray
    line_starts: np.ndarray
    line_sizes: np.ndarray
    line_of_cell: np.ndarray
    order: np.ndarray


class Groups(NamedTuple):
    """Super-columns of the complete rows: columns (n_complete, n_groups) of rows of a table (size, n_clusters), and links
    (2, n_links) from those rows to the cells they are products of."""

    columns: np.ndarray
    size: int
    links: np.ndarray


class Parameters(NamedTuple):
    """class_probs (n_clusters,) and table (n_cells, n_clusters)."""

    class_probs: np.ndarray
    table: np.ndarray


class Counts(NamedTuple):
    """classes (n_clusters,) and table (n_cells, n_clusters)."""

    classes: np.ndarray
    table: np.ndarray
