"""Family counts from integer codes. Rows in which a needed cell is missing (-1) are left out of that table."""

import numpy as np

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
    """Where the states of every column begin when all columns are laid side by side: (n_columns + 1,), with the end.

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
