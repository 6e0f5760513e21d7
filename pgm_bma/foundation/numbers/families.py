"""Families of tables: counts from integer codes, Dirichlet marginal likelihoods and posterior means, and their average.

Rows in which a needed cell is missing (-1) are left out of that table. Priors are K2 or BDeu (Cooper and Herskovits).

Averaging over candidate parent sets mixes posterior means with the softmax of log family scores. Supervised averaged naive Bayes
(Dash and Cooper 2002), the averaging step of EMA (EMA eq. 14) and fixed-order averaging (ORD eq. 9) are this one function; only the
counts and the candidate sets differ. `set_weights` and `mix_families` are its halves; `average_many_families` is both for many
variables side by side. EMA's compiled loop (`latent_class._kernels.average`) is the case of two sets, equal to this by test.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp, rel_entr, softmax

from pgm_bma.foundation.faces.validation import Choice, Number, Optional, as_numbers, check, check_number

CELLS_AT_ONCE = 1 << 20  # cells of one vectorised step: bounds the memory on tall tables, the calls on wide ones


def family_counts(codes, cardinalities, child, parents=(), weights=None):
    """Weighted counts of `child` under every joint state of `parents`.

    codes : (n_samples, n_variables) integers, -1 = missing     weights : (n_samples,) or None
    returns (n_parent_states, n_states); the first parent varies slowest.
    """
    columns = [*parents, child]
    index, seen = joint_index(codes, cardinalities, columns)
    n_cells = int(np.prod([int(cardinalities[c]) for c in columns]))
    counts = np.bincount(index[seen], None if weights is None else weights[seen], minlength=n_cells)
    return counts.astype(float).reshape(-1, int(cardinalities[child]))


def joint_index(codes, cardinalities, columns):
    """Mixed-radix cell of every row over `columns` (first column slowest), and the mask of rows that have them all."""
    index = np.zeros(len(codes), dtype=np.int64)
    seen = np.ones(len(codes), dtype=bool)
    for column in columns:
        values = codes[:, column]
        index = index * int(cardinalities[column]) + values
        seen &= values >= 0
    return index, seen


def state_offsets(cardinalities):
    """Return where the states of every column begin when all columns are laid side by side: (n_columns + 1,), with the end.

    Of any sizes: where each of several stretches begins that stand one after another.
    """
    return np.concatenate([[0], np.cumsum(cardinalities)]).astype(np.int64)


def class_counts(codes, cardinalities, target, n_classes, weights=None):
    """Counts of every column under every class, all columns side by side.

    codes : (n_samples, n_columns)     target : (n_samples,) class codes, none missing
    returns (n_classes, sum of cardinalities); missing cells are left out column by column (available cases).
    """
    offsets = state_offsets(cardinalities)
    width = int(offsets[-1]) + 1  # the last slot takes the missing cells
    row_start = np.asarray(target, dtype=np.int64)[:, None] * width
    counts = np.zeros(n_classes * width)
    for start, stop in column_groups(codes):
        index = flat_index(codes, offsets, start, stop) + row_start
        cell_weights = None if weights is None else np.repeat(weights, stop - start)
        counts += np.bincount(index.ravel(), cell_weights, minlength=n_classes * width)
    return counts.reshape(n_classes, width)[:, :-1]


def gather_sum(codes, cardinalities, tables):
    """Sum over the columns of ``tables[:, state]``; a missing cell adds nothing.

    tables : (n_classes, sum of cardinalities)     returns (n_samples, n_classes)
    """
    offsets = state_offsets(cardinalities)
    padded = np.concatenate([tables.T, np.zeros((1, tables.shape[0]))])
    total = np.zeros((len(codes), tables.shape[0]))
    for start, stop in column_groups(codes):
        total += padded[flat_index(codes, offsets, start, stop)].sum(axis=1)
    return total


def column_groups(codes):
    """(start, stop) ranges of columns that hold about `CELLS_AT_ONCE` cells each."""
    n_columns = codes.shape[1]
    step = max(1, min(n_columns, CELLS_AT_ONCE // max(len(codes), 1)))
    return [(start, min(start + step, n_columns)) for start in range(0, n_columns, step)]


def flat_index(codes, offsets, start, stop):
    """Position of every cell among all states laid side by side; missing cells go to the slot past the end."""
    block = codes[:, start:stop].astype(np.int64)
    return np.where(block >= 0, block + offsets[start:stop], offsets[-1])


def cell_alpha(n_parent_states, n_states, alpha=1.0, equivalent_sample_size=None):
    """Pseudo-count of one cell: `alpha` itself (K2 when 1), or BDeu's equivalent sample size spread over the table."""
    if equivalent_sample_size is None:
        return alpha
    return equivalent_sample_size / (n_parent_states * n_states)


def log_marginal_likelihood(counts, alpha):
    """Log probability of the data behind a family table, parameters integrated out.

    counts : (..., n_parent_states, n_states), observed or expected
    alpha : number or array that broadcasts to `counts`
    returns (...), in nats. Unobserved parent states add exactly nothing. A cell with alpha 0 is legal when it is empty.
    """
    counts = np.asarray(counts, dtype=float)
    alpha = np.broadcast_to(np.asarray(alpha, dtype=float), counts.shape)
    posterior = counts + alpha
    # gammaln(0) is inf: an empty cell without prior mass contributes nothing
    cells = np.where(counts > 0, gammaln(np.where(counts > 0, posterior, 1.0)) - _gammaln_or_zero(alpha), 0.0)
    total, prior = counts.sum(-1), alpha.sum(-1)
    rows = np.where(total > 0, _gammaln_or_zero(prior) - gammaln(np.where(total > 0, total + prior, 1.0)), 0.0)
    return cells.sum((-2, -1)) + rows.sum(-1)


def side_by_side_scores(counts, alpha, starts):
    """`log_marginal_likelihood` of every row of families laid side by side, one pass for thousands of columns.

    counts : (q, S), all columns side by side     alpha : (S,), above 0     starts : (n_columns,) first state of each
    returns (q, n_columns); the score of a column is the sum of its q rows.
    """
    total, prior = np.add.reduceat(counts, starts, axis=1), np.add.reduceat(alpha, starts)
    cells = np.add.reduceat(gammaln(counts + alpha) - gammaln(alpha), starts, axis=1)
    return cells + gammaln(prior) - gammaln(total + prior)


def _gammaln_or_zero(values):
    return np.where(values > 0, gammaln(np.where(values > 0, values, 1.0)), 0.0)


def posterior_mean(counts, alpha):
    """Posterior mean table of a family; rows with neither counts nor prior mass become uniform.

    counts : (..., n_states)   alpha : broadcastable   returns (..., n_states), rows sum to 1
    """
    posterior = np.asarray(counts, dtype=float) + alpha
    total = posterior.sum(-1, keepdims=True)
    return np.where(total > 0, posterior / np.where(total > 0, total, 1.0), 1.0 / posterior.shape[-1])


# rules for the tables of the estimators
PARAMETER_PRIOR = Choice("consistent", "paper")
PSEUDO_COUNT = Number(0, 1e100, open_low=True, tiny=1e-100)  # beyond, sums over- and ratios underflow (NaN at 1e-320)
PSEUDO_COUNT_OR_ZERO = Number(0, 1e100, tiny=1e-100)
SHARE = 0.25  # of the rows; lowest mean log loss of those tried on 12 tables, 1/8 hardly worse; 1/2 lets noise win arcs


def cell_pseudo_count(
    n_parent_states, n_states, alpha=1.0, equivalent_sample_size=None, *, parameter_prior="consistent", reference=1
):
    """Pseudo-count of one cell of a child's table with `n_parent_states` rows.

    n_parent_states, n_states : numbers or arrays that broadcast
    equivalent_sample_size : total mass of every table (BDeu); where given, nothing else counts
    parameter_prior : "paper", `alpha` in every cell; "consistent", every table of the child holds the mass
        alpha * reference * n_states
    reference : parent states of the table whose cells hold `alpha` itself: the number of classes or clusters in the naive
        Bayes family, where the table with the arc is the papers'

    Examples
    --------
    >>> from pgm_bma.foundation.numbers.families import cell_pseudo_count
    >>> [cell_pseudo_count(q, 4, reference=3) for q in (3, 1)]
    [1.0, 3.0]
    >>> [cell_pseudo_count(q, 4, parameter_prior="paper", reference=3) for q in (3, 1)]
    [1.0, 1.0]
    """
    if equivalent_sample_size is not None:
        return equivalent_sample_size / (np.asarray(n_parent_states) * n_states)
    if parameter_prior == "paper":
        return alpha
    return float(alpha) * reference / n_parent_states


def most_mass(n_rows):
    """Most pseudo-counts of a table whose parents may be many (orders), where `n_rows` is the total weight of the rows."""
    return max(SHARE * float(n_rows), 1.0)


def arc_prior_array(arc_prior, names):
    """Prior of every class arc: (n_columns,), from a number or a dict by column (others 0.5)."""
    if not isinstance(arc_prior, dict):
        check_number("arc_prior", arc_prior, 0.0, 1.0)
        return np.full(len(names), float(arc_prior))
    for name, prior in arc_prior.items():
        if name not in names:
            raise ValueError(f"arc_prior names {name!r}, which is not a column of X")
        check_number(f"arc_prior[{name!r}]", prior, 0.0, 1.0)
    return np.array([float(arc_prior.get(name, 0.5)) for name in names])


def check_prior(alpha, equivalent_sample_size):
    """Positive pseudo-counts, and only one of the two ways to state them."""
    check("alpha", alpha, PSEUDO_COUNT)
    check("equivalent_sample_size", equivalent_sample_size, Optional(PSEUDO_COUNT))
    if equivalent_sample_size is not None and alpha != 1.0:
        raise ValueError(f"alpha={alpha!r} and equivalent_sample_size={equivalent_sample_size!r} exclude each other")


def average_families(log_scores: Any, means: Any) -> tuple[np.ndarray, np.ndarray]:
    """Mix posterior means of one variable over its candidate parent sets by the softmax of their scores.

    Parameters
    ----------
    log_scores : array-like of shape (n_sets,)
        Log of (prior of the set x marginal likelihood of the family).
    means : array-like of shape (n_sets, ...)
        Posterior means under each set, broadcast to one shape.

    Returns
    -------
    mixed : ndarray of shape (...)
        The means, mixed.
    weights : ndarray of shape (n_sets,)
        Posterior probabilities of the sets.

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma import average_families
    >>> mixed, weights = average_families(np.log([1.0, 3.0]), np.array([[0.5, 0.5], [0.9, 0.1]]))
    >>> mixed
    array([0.8, 0.2])
    >>> weights
    array([0.25, 0.75])
    """
    log_scores, means = as_numbers("log_scores", log_scores), as_numbers("means", means)
    if log_scores.ndim != 1 or means.ndim < 1 or len(means) != len(log_scores) or not np.isfinite(means).all():
        raise ValueError(
            f"log_scores of shape {log_scores.shape} and means of shape {means.shape} must be a score for each set, and a table of "
            "finite numbers for each set"
        )
    if not np.isfinite(log_scores.max(initial=-np.inf)):
        raise ValueError(f"log_scores={log_scores} must hold a finite number, and neither NaN nor inf")
    weights = set_weights(log_scores)
    return mix_families(weights, means), weights


def set_weights(log_scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """Posterior probabilities of the candidate sets that stand along `axis`. A set of prior 0 has the score -inf."""
    return softmax(log_scores, axis=axis)


def mix_families(weights: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The mixture (..., cells) of posterior means (n_sets, cells) under weights (..., n_sets), such as one line per order."""
    return np.tensordot(weights, means, axes=1)


def average_many_families(
    log_scores: np.ndarray, means: Sequence[np.ndarray], variables: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`average_families` of many variables at once, their cells side by side.

    log_scores : (n_sets, n_variables)     means : per set (..., n_cells), broadcast     variables : (n_cells,) owner of a cell
    returns mixed (..., n_cells) and weights (n_sets, n_variables). A set of prior 0 has the score -inf.
    """
    weights = set_weights(log_scores, axis=0)
    return sum(weight[variables] * mean for weight, mean in zip(weights, means)), weights


def information(joint):
    """Mutual information in nats of a joint table of probabilities (n_classes, n_states)."""
    independent = joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)
    return float(rel_entr(joint, independent).sum())


def class_information(joint, class_share, cardinalities):
    """Information of every column about the class, nats: (n_columns,).

    joint : (n_classes, sum of cardinalities), P(class, state) of all columns side by side
    class_share : P(class), (n_classes, 1) or (n_classes, sum of cardinalities) where it differs by column
    """
    return np.add.reduceat(rel_entr(joint, class_share * joint.sum(0)).sum(0), state_offsets(cardinalities)[:-1])


ROWS_AT_ONCE = 1 << 16


def log_probabilities(log_joint):
    """log p(class | row) from log p(class, row): (n_samples, n_classes)."""
    return log_joint - logsumexp(log_joint, axis=1, keepdims=True)


def most_probable(log_joint):
    """Position of the largest probability of every row. Taken from the probabilities, so that those which round to a tie
    go to the lowest index, as the argmax of `predict_proba` does. Block by block, to spare memory on tall tables."""
    chosen = np.empty(len(log_joint), dtype=np.int64)
    for start in range(0, len(log_joint), ROWS_AT_ONCE):
        block = slice(start, start + ROWS_AT_ONCE)
        chosen[block] = np.argmax(np.exp(log_probabilities(log_joint[block])), axis=1)
    return chosen
