"""Family counts from integer codes. Rows in which a needed cell is missing (-1) are left out of that table."""

import numpy as np


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


def class_counts(codes, cardinalities, class_codes, n_classes, weights=None):
    """Counts of every column under every class.

    codes : (n_samples, n_features)     class_codes : (n_samples,) without missing values
    returns a list of (n_classes, cardinality) arrays; missing cells are left out column by column (available cases).
    """
    tables = []
    class_codes = np.asarray(class_codes, dtype=np.int64)
    for column, cardinality in enumerate(cardinalities):
        values = codes[:, column]
        index = class_codes * (int(cardinality) + 1) + values + 1  # slot 0 takes the missing cells
        counts = np.bincount(index, weights, minlength=n_classes * (int(cardinality) + 1))
        tables.append(counts.astype(float).reshape(n_classes, -1)[:, 1:])
    return tables
