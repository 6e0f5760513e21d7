"""Pair tables of all columns at once: one matrix product of indicator columns per class.

Layout: the states of all columns side by side (`foundation.counts.state_offsets`), so that the counts of columns i and j under
class c are ``pairs[c, offsets[i]:offsets[i+1], offsets[j]:offsets[j+1]]``. A missing cell is a row of zeros: pairs hold
the rows in which both cells are present.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from pgm_bma.foundation.counts import state_offsets
from pgm_bma.foundation.dirichlet import side_by_side_scores


def indicators(codes, cardinalities, dtype=np.float64):
    """One column of zeros and ones per state: (n_samples, sum of cardinalities)."""
    offsets = state_offsets(cardinalities)
    flags = np.zeros((len(codes), int(offsets[-1])), dtype=dtype)
    for column, offset in enumerate(offsets[:-1]):
        values = codes[:, column].astype(np.int64)
        rows = np.flatnonzero(values >= 0)
        flags[rows, offset + values[rows]] = 1
    return flags


def pair_counts(flags, class_weights):
    """Counts of all pairs of states under every class.

    flags : (n_samples, S) from `indicators`     class_weights : (n_samples, n_classes), observed, expected or weighted
    returns (n_classes, S, S)
    """
    pairs = np.empty((class_weights.shape[1], flags.shape[1], flags.shape[1]))
    for k in range(class_weights.shape[1]):
        np.matmul(flags.T * class_weights[:, k], flags, out=pairs[k])
    return pairs


def conditional_mutual_information(pairs, cardinalities):
    """I(X_i; X_j | class) of all pairs, in nats: (n_columns, n_columns), symmetric, zero diagonal.

    pairs : (n_classes, S, S); each pair is normalised by its own total (the rows that have both cells).
    """
    cardinalities = np.asarray(cardinalities)
    starts = state_offsets(cardinalities)[:-1]
    columns = np.repeat(np.arange(len(cardinalities)), cardinalities)
    # scaled by a power of two, which is exact: products of very large or very small weights stay finite
    pairs = np.ldexp(pairs, -np.frexp(pairs.max(initial=0.0))[1])
    total, information = np.zeros((2, len(starts), len(starts)))
    for table in pairs:
        rows, lines = np.add.reduceat(table, starts, axis=1), np.add.reduceat(table, starts, axis=0)
        per_class = np.add.reduceat(rows, starts, axis=0)
        seen = table > 0
        independent = rows[:, columns] * lines[columns]
        ratio = np.divide(table * per_class[columns][:, columns], independent, out=np.ones_like(table), where=seen)
        information += _block_sums(table * np.log(ratio), starts)
        total += per_class
    below = np.tril(np.maximum(information / np.where(total > 0, total, 1.0), 0.0), -1)
    return below + below.T  # the two halves differ by the order of their sums


class PairPrior(NamedTuple):
    """Pseudo-counts of one cell: alone (n,) of a column below the class alone; below (n, n), [parent, child], below both."""

    alone: np.ndarray
    below: np.ndarray


def pair_prior(n_classes, cardinalities, alpha=1.0, equivalent_sample_size=None):
    """The same pseudo-count in every cell (K2 when 1), or BDeu's equivalent sample size spread over every table."""
    cardinalities = np.asarray(cardinalities)
    n = len(cardinalities)
    if equivalent_sample_size is None:
        return PairPrior(np.full(n, float(alpha)), np.full((n, n), float(alpha)))
    spread = equivalent_sample_size / n_classes
    return PairPrior(spread / cardinalities, spread / np.outer(cardinalities, cardinalities))


def mass_consistent_prior(cardinalities, alone):
    """Every table of a column holds the same pseudo-counts in sum: those of `alone` (n,), split among the parent's states."""
    return PairPrior(alone, alone[None, :] / np.asarray(cardinalities)[:, None])


class PairScores(NamedTuple):
    """Log marginal likelihoods, all [child, parent] where there are two axes.

    with_parent (n, n): the child given the class and the parent, on the rows that have both cells
    without_parent (n, n): the child given the class alone, on those same rows
    alone (n,): the child given the class alone, on all rows that have it
    """

    with_parent: np.ndarray
    without_parent: np.ndarray
    alone: np.ndarray


def pair_scores(pairs, cardinalities, prior):
    """Dirichlet scores of all families with the class and one other column as parents.

    pairs : (n_classes, S, S) from `pair_counts`; pass ``pairs.sum(0, keepdims=True)`` to leave the class out.
    Without missing cells `without_parent` repeats `alone`; with them it is the fair opponent of `with_parent`.
    """
    cardinalities = np.asarray(cardinalities)
    n = len(cardinalities)
    starts, column = state_offsets(cardinalities)[:-1], np.repeat(np.arange(n), cardinalities)
    alpha_cells = prior.below[np.ix_(column, column)]
    line_mass = prior.below * cardinalities  # (n, n): prior mass of child i given a state of j
    alpha_lines, alpha_states = line_mass[column], prior.alone[column]
    # what the prior alone contributes is the same in all cells of a block
    constant = cardinalities[:, None] * (gammaln(line_mass) - cardinalities * gammaln(prior.below))
    symmetric = bool((prior.below == prior.below.T).all())
    with_parent, without_parent, alone = len(pairs) * constant, np.zeros((n, n)), np.zeros(n)
    for table in pairs:  # rows: states of the parent, columns: states of the child
        lines = gammaln(alpha_lines + np.add.reduceat(table, starts, axis=1))
        with_parent += _cell_sums(table, alpha_cells, starts, symmetric) - np.add.reduceat(lines, starts, axis=0)
        margin = np.add.reduceat(table, starts, axis=0)  # (n, S): the child's states on the rows that have the parent
        without_parent += side_by_side_scores(margin, alpha_states, starts)
        alone += side_by_side_scores(np.diagonal(table)[None], alpha_states, starts)[0]
    return PairScores(with_parent.T, without_parent.T, alone)


def _cell_sums(table, alpha, starts, symmetric, parts=8):
    """Sums of log Gamma(table + alpha) over the blocks of all pairs of columns (n, n); where they are symmetric, nearly half of
    them are read off the other half."""
    if not symmetric or len(starts) < 2 * parts:
        return _block_sums(gammaln(table + alpha), starts)
    n, stops = len(starts), np.append(starts[1:], len(table))
    sums = np.empty((n, n))
    for columns in np.array_split(np.arange(n), parts):
        first, last = columns[0], columns[-1] + 1
        rows, below = slice(starts[first], stops[last - 1]), slice(starts[first], None)
        block = np.add.reduceat(
            gammaln(table[rows, below] + alpha[rows, below]), starts[first:] - starts[first], axis=1
        )
        sums[first:last, first:] = np.add.reduceat(block, starts[first:last] - starts[first], axis=0)
        sums[first:, first:last] = sums[first:last, first:].T
    return sums


def _block_sums(table, starts):
    return np.add.reduceat(np.add.reduceat(table, starts, axis=0), starts, axis=1)


def pair_means(pairs, cardinalities, prior):
    """Posterior means P(child state | class, parent state): (n_classes, S, S), rows parents; and alone: (n_classes, S)."""
    starts = state_offsets(cardinalities)[:-1]
    column = np.repeat(np.arange(len(cardinalities)), cardinalities)
    cells = pairs + prior.below[np.ix_(column, column)]
    totals = np.add.reduceat(cells, starts, axis=2)
    single = np.diagonal(pairs, axis1=1, axis2=2) + prior.alone[column]
    single_totals = np.add.reduceat(single, starts, axis=1)
    return cells / totals[:, :, column], single / single_totals[:, column]
