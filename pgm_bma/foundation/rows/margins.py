"""The smallest table with given counts of every column under every class: all that the naive Bayes family sees of its rows.

Columns are independent given the class there, so any table with the same counts of class and column is as good as the rows. Under
a class, every column's states are laid one after another over the rows of that class; between two cuts of any column all rows are
equal, and become one row with their number as its weight. That leaves at most one row per class and state of any column.
"""

import numpy as np
import pandas as pd

from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.foundation.rows.scan import Folded
from pgm_bma.foundation.rows.scanned_rows import scanned_rows


def margin_table(scan, target, declared=None, weight=None):
    """`Folded` rows with the same counts of every column of the scan under every value of the column `target`."""
    rows = scanned_rows(scan, declared, weight)
    schema, cardinalities = rows.schema, rows.schema.cardinalities
    position = schema.index(target)
    # one more slot for missing cells, of the target too
    (counts,) = rows.reduce(count_block, position, cardinalities)
    columns, weights = [], []
    for by_column in counts:
        codes, sizes = lay_out(np.split(by_column, state_offsets(cardinalities + 1)[1:-1]))
        columns.append(codes)
        weights.append(sizes)
    codes = np.concatenate(columns)
    frame = pd.DataFrame(
        {
            name: pd.Categorical.from_codes(codes[:, i], categories=pd.Index(states, dtype=object))
            for i, (name, states) in enumerate(zip(schema.names, schema.states))
        }
    )
    return Folded(frame, np.concatenate(weights), rows.n_rows)


def count_block(block, target, cardinalities):
    """(counts (n_classes + 1, sum of cardinalities + n_columns),) of a block, missing cells in the last slot of each."""
    slots = cardinalities + 1
    offsets = state_offsets(slots)
    n_classes = slots[target]
    classes = np.where(block.codes[:, target] < 0, n_classes - 1, block.codes[:, target]).astype(np.int64)
    counts = np.zeros((n_classes, offsets[-1]))
    for i, (first, n) in enumerate(zip(offsets, slots)):
        cell = classes * n + np.where(block.codes[:, i] < 0, n - 1, block.codes[:, i])
        counts[:, first : first + n] = np.bincount(cell, block.weights, minlength=n_classes * n).reshape(n_classes, n)
    return (counts,)


def lay_out(counts):
    """(codes (n_rows, n_columns), weights) of the smallest table whose columns have these counts, missing in the last slot."""
    ends = [np.cumsum(column) for column in counts]
    cuts = np.unique(np.concatenate([[0.0], *ends]))
    cuts = cuts[cuts <= ends[0][-1]]  # sums of fractions differ in their last digit
    starts = cuts[:-1]
    codes = [np.searchsorted(end, starts, side="right") for end in ends]
    codes = [np.where(code >= len(end) - 1, -1, code) for code, end in zip(codes, ends)]
    return np.stack(codes, axis=1), np.diff(cuts)
