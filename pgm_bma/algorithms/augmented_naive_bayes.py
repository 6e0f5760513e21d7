"""Augmented naive Bayes with a hidden class: parameters, expected counts and scores for a given structure.

Paper: SEM (Peña, Lozano, Larrañaga 2000). The cluster is a parent of every attribute and an attribute may have one other
attribute as a parent (-1 = none), without cycles. All tables of a model lie in one array (n_cells, n_clusters), described
by a `Layout`; the rows of the data lie in a `Cases` record, distinct rows with weights, the complete ones first.

Missing cells are summed out exactly: given the cluster the attributes form a forest, so one pass up and one down a row's
forest gives its likelihood and its expected counts.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from . import _augmented_kernels as kernels


def make_cases(codes, cardinalities, weights=None):
    """Rows as the kernels want them: complete rows first, int32 codes, float weights, and the one-hot matrix.

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
    """Where the cells of a structure lie.

    parents : (n_features,) position of the attribute parent or -1
    """
    parents = np.asarray(parents, dtype=np.int64)
    cardinalities = np.asarray(cardinalities, dtype=np.int64)
    n_lines = np.where(parents >= 0, cardinalities[np.maximum(parents, 0)], 1)
    sizes = np.repeat(cardinalities, n_lines)  # one line of `cardinality` cells per parent value
    line_starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    offsets = np.concatenate([[0], np.cumsum(n_lines * cardinalities)])
    line_of_cell = np.repeat(np.arange(len(sizes)), sizes)
    return Layout(
        parents, cardinalities, offsets, line_starts, sizes, line_of_cell, np.array(topological_order(parents))
    )


def topological_order(parents):
    """Attributes, parents before children; an error names a cycle."""
    children = [[] for _ in parents]
    for i, parent in enumerate(parents):
        if parent >= 0:
            children[parent].append(i)
    order = [i for i, parent in enumerate(parents) if parent < 0]
    for i in order:  # grows while it is walked
        order.extend(children[i])
    if len(order) < len(parents):
        loop = sorted(set(range(len(parents))) - set(order))
        raise ValueError(f"the attribute parents of columns {loop} form a cycle")
    return order


def cell_index(codes, layout):
    """Position in the flat table of every cell of complete rows: (n_samples, n_features) int32."""
    codes = np.asarray(codes, dtype=np.int32)
    above = np.where(layout.parents >= 0, layout.parents, 0)
    value = np.where(layout.parents >= 0, codes[:, above], 0)
    cells = layout.offsets[:-1] + value * layout.cardinalities + codes
    return np.ascontiguousarray(cells, dtype=np.int32)


def expect(cases, layout, parameters, cells=None):
    """E step: responsibilities and log-likelihood of all rows, in the order of `cases`.

    returns responsibilities : (n, n_clusters), log_likelihood : float
    """
    joint, shift = joint_rows(cases, layout, parameters, cells)
    log_likelihood = kernels.responsibilities_pass(joint, shift, cases.weights)
    return joint, float(log_likelihood)


def joint_rows(cases, layout, parameters, cells=None):
    """p(cluster, row) = joint * exp(shift): (n, n_clusters) and (n,); missing cells are summed out."""
    k = len(parameters.class_probs)
    joint, shift = np.empty((len(cases.codes), k)), np.empty(len(cases.codes))
    m = cases.n_complete
    cells = cell_index(cases.codes[:m], layout) if cells is None else cells
    kernels.complete_pass(cells, parameters.class_probs, parameters.table, joint[:m], shift[:m])
    if m < len(cases.codes):
        kernels.missing_pass(
            cases.codes[m:],
            layout.cardinalities,
            layout.parents,
            layout.order,
            layout.offsets,
            parameters.class_probs,
            parameters.table,
            joint[m:],
            shift[m:],
        )
    return joint, shift


def log_joint(codes, cardinalities, parents, parameters):
    """Natural log p(cluster, row) of any rows, missing cells summed out: (n_samples, n_clusters)."""
    cases, layout = make_cases(codes, cardinalities), make_layout(parents, cardinalities)
    joint, shift = joint_rows(cases, layout, parameters)
    out = np.empty_like(joint)
    with np.errstate(divide="ignore"):
        out[cases.order] = np.log(joint) + shift[:, None]
    return out


def expected_counts(cases, layout, parameters, responsibilities, cells=None, every_cell=False):
    """Counts behind the next update: class counts (n_clusters,) and cells (n_cells, n_clusters).

    Missing cells are completed by their posterior under `parameters`. Those with nothing observed below them add nothing
    (EM is exact without them) unless `every_cell`.
    """
    counts = Counts(np.zeros(responsibilities.shape[1]), np.zeros((layout.offsets[-1], responsibilities.shape[1])))
    m = cases.n_complete
    cells = cell_index(cases.codes[:m], layout) if cells is None else cells
    kernels.complete_counts(cells, cases.weights[:m], responsibilities[:m], counts.classes, counts.table)
    if m < len(cases.codes):
        _add_missing(cases, layout, parameters, responsibilities, every_cell, counts)
    return counts


def completed_counts(cases, layout, parameters, responsibilities, cells=None):
    """Counts of the data completed with the most probable cluster (ties to the lowest); missing cells at expectation."""
    winner = responsibilities.argmax(axis=1)
    k = responsibilities.shape[1]
    counts = Counts(np.zeros(k), np.zeros((layout.offsets[-1], k)))
    m = cases.n_complete
    cells = cell_index(cases.codes[:m], layout) if cells is None else cells
    kernels.hard_counts(cells, cases.weights[:m], winner[:m], counts.classes, counts.table)
    if m < len(cases.codes):
        _add_missing(cases, layout, parameters, one_hot(winner, k), True, counts)
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
        responsibilities[m:],
        every_cell,
        counts.classes,
        counts.table,
    )


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
    k = len(counts.classes)
    totals = np.add.reduceat(counts.table, layout.line_starts, axis=0)
    alpha_lines = np.add.reduceat(alpha_cells, layout.line_starts)
    score = gammaln(k * alpha_classes) - gammaln(k * alpha_classes + counts.classes.sum())
    score += (gammaln(alpha_classes + counts.classes) - gammaln(alpha_classes)).sum()
    score += (gammaln(alpha_lines)[:, None] - gammaln(alpha_lines[:, None] + totals)).sum()
    score += (gammaln(alpha_cells[:, None] + counts.table) - gammaln(alpha_cells)[:, None]).sum()
    return float(score)


def cheeseman_stutz(cases, layout, parameters, prior):
    """Cheeseman-Stutz approximation of log p(data | structure), in nats.

    W = expected counts of the model, theta' = posterior mean of W: log p(W) - sum W log theta' + log p(data | theta').
    """
    cells = cell_index(cases.codes[: cases.n_complete], layout)
    responsibilities, _ = expect(cases, layout, parameters, cells)
    counts = expected_counts(cases, layout, parameters, responsibilities, cells)
    mean = update(counts, layout, prior)
    complete = _cross(counts.classes, mean.class_probs) + _cross(counts.table, mean.table)
    return log_score(counts, layout, prior) - complete + expect(cases, layout, mean, cells)[1]


def _cross(counts, probabilities):
    return float((counts * np.log(np.where(counts > 0, probabilities, 1.0))).sum())


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


def pack_tables(tables, layout):
    """Tables (n_clusters, n_parent_values, n_states), one per attribute (or without the middle axis) -> flat array."""
    k = len(tables[0])
    return np.concatenate([np.asarray(t, dtype=float).reshape(k, -1).T for t in tables])


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


class Layout(NamedTuple):
    """Cells of attribute i: offsets[i] .. offsets[i+1], one line of cells (a distribution) per parent value."""

    parents: np.ndarray
    cardinalities: np.ndarray
    offsets: np.ndarray
    line_starts: np.ndarray
    line_sizes: np.ndarray
    line_of_cell: np.ndarray
    order: np.ndarray


class Parameters(NamedTuple):
    """class_probs (n_clusters,) and table (n_cells, n_clusters)."""

    class_probs: np.ndarray
    table: np.ndarray


class Counts(NamedTuple):
    """classes (n_clusters,) and table (n_cells, n_clusters)."""

    classes: np.ndarray
    table: np.ndarray
