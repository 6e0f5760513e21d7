"""Augmented naive Bayes: the class is a parent of every column, and every column has at most one other column as a parent.

Goes in: codes (n_samples, n_columns) and an `AugmentedTree`. Comes out: log p(class, row), missing cells summed out exactly
by one upward pass over the forest of columns, in which a message is the probability of everything below an arc.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.stats.counts import family_counts
from pgm_bma.stats.dirichlet import cell_alpha, posterior_mean

ROWS_AT_ONCE = 4096


class AugmentedTree(NamedTuple):
    """class_probability (n_classes,); parents (n_columns,), -1 = the class alone; tables: per column
    (n_classes, cardinality of the parent or 1, cardinality)."""

    class_probability: np.ndarray
    parents: np.ndarray
    tables: list


def fit_augmented_tree(
    codes, cardinalities, target, n_classes, parents, weights=None, alpha=1.0, equivalent_sample_size=None
):
    """Posterior-mean tables for a given structure, each family from the rows that have its cells."""
    joined = np.column_stack([target, codes])
    sizes = np.concatenate([[n_classes], cardinalities])
    totals = np.bincount(target, weights, minlength=n_classes).astype(float)
    probability = posterior_mean(totals, cell_alpha(1, n_classes, alpha, equivalent_sample_size))
    tables = []
    for column, parent in enumerate(parents):
        family = [0] if parent < 0 else [0, parent + 1]
        counts = family_counts(joined, sizes, column + 1, family, weights)
        mean = posterior_mean(counts, cell_alpha(*counts.shape, alpha, equivalent_sample_size))
        tables.append(mean.reshape(n_classes, -1, sizes[column + 1]))
    return AugmentedTree(probability, np.asarray(parents), tables)


def augmented_log_joint(tree, codes):
    """log p(class, row): (n_samples, n_classes)."""
    result = np.empty((len(codes), len(tree.class_probability)))
    incomplete = (codes < 0).any(axis=1)
    if not incomplete.all():
        complete = codes[~incomplete].astype(np.int64)
        terms = column_terms(tree, complete)
        result[~incomplete] = np.log(tree.class_probability) + sum(terms, np.zeros((len(complete), result.shape[1])))
    rows = np.flatnonzero(incomplete)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        block = rows[start : start + ROWS_AT_ONCE]
        result[block] = np.log(tree.class_probability) + _sum_missing_out(tree, codes[block].astype(np.int64))
    return result


def column_terms(tree, codes):
    """log P(x_i | class, parent) for complete rows, one (n_samples, n_classes) array per column."""
    terms = []
    for column, (parent, table) in enumerate(zip(tree.parents, tree.tables)):
        parent_state = codes[:, parent] if parent >= 0 else 0
        terms.append(np.log(table)[:, parent_state, codes[:, column]].T)
    return terms


def _sum_missing_out(tree, codes):
    n_rows, n_classes = len(codes), len(tree.class_probability)
    log_below = [0.0] * codes.shape[1]  # log of the product of the messages from below, per state of the column
    total = np.zeros((n_rows, n_classes))
    for column in reversed(topological_order(tree.parents)):
        table = tree.tables[column]
        states = np.arange(table.shape[2])
        allowed = (codes[:, column, None] == states) | (codes[:, column, None] < 0)
        log_belief = np.where(
            allowed[:, None, :], log_below[column] + np.zeros((n_rows, n_classes, len(states))), -np.inf
        )
        peak = log_belief.max(axis=2, keepdims=True)
        message = np.einsum("cpk,nck->ncp", table, np.exp(log_belief - peak))
        log_message = np.log(message) + peak
        if tree.parents[column] < 0:
            total += log_message[:, :, 0]
        else:
            log_below[tree.parents[column]] = log_below[tree.parents[column]] + log_message
    return total


def topological_order(parents):
    """Columns with every parent before its children."""
    order, placed = [], set()
    for column in range(len(parents)):
        chain = []
        while column >= 0 and column not in placed:
            chain.append(column)
            placed.add(column)
            column = int(parents[column])
        order += reversed(chain)
    return order
