"""Pair tables of all columns at once: one matrix product of indicator columns per class.

Layout: the states of all columns side by side (`stats.counts.state_offsets`), so that the counts of columns i and j under
class c are ``pairs[c, offsets[i]:offsets[i+1], offsets[j]:offsets[j+1]]``. A missing cell is a row of zeros: pairs hold
the rows in which both cells are present.
"""

import numpy as np

from pgm_bma.stats.counts import state_offsets


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
    offsets = state_offsets(cardinalities)
    n_columns = len(cardinalities)
    information = np.zeros((n_columns, n_columns))
    for i in range(n_columns):
        rows = slice(offsets[i], offsets[i + 1])
        for j in range(i):
            joint = pairs[:, rows, offsets[j] : offsets[j + 1]]
            total = joint.sum()
            if total > 0:
                independent = joint.sum(1, keepdims=True) * joint.sum(2, keepdims=True)
                per_class = joint.sum((1, 2), keepdims=True)
                seen = joint > 0
                ratio = (joint * per_class)[seen] / np.broadcast_to(independent, joint.shape)[seen]
                information[i, j] = information[j, i] = max(float(joint[seen] @ np.log(ratio)) / total, 0.0)
    return information
