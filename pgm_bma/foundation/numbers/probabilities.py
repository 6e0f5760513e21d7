"""From log p(class, row) to probabilities and to the most probable class; clusters are classes here."""

import numpy as np
from scipy.special import logsumexp

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
