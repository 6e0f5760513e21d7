"""Missing as one more state (``missing="state"``): the columns that lack cells in fit get one more state.

At prediction a cell that holds nothing has that state; a value that fit did not see is not "missing" but unknown, and stays
-1, to be left out or summed out like everywhere else.
"""

import numpy as np
import pandas as pd

from pgm_bma.foundation.tables import kinds, table
from pgm_bma.foundation.tables.table import Schema, fold, pack, read_columns

LABEL = "missing"
MAX_CELLS = 50_000_000  # of incomplete rows, each written out as often as it occurs


def unfold_incomplete(names, codes, weights, cure):
    """(rows, weights): complete rows folded, an incomplete one as often as it occurs, with weight 1: each has its own completion.

    cure : what to pass where weights are fractions or the rows too many, for the message
    """
    rows, row_weights, _ = fold(codes, weights)
    holes = (rows < 0).any(1)
    if (row_weights[holes] != np.rint(row_weights[holes])).any():
        at = int(np.argmax((rows[holes] < 0).sum(0)))
        raise ValueError(
            f"sample_weight has fractions for rows with missing cells (most in {names[at]!r}): a fraction of a row has no "
            f"separate completion; pass whole numbers (repetitions), or {cure}"
        )
    size = row_weights[holes].sum() * rows.shape[1]
    if size > MAX_CELLS:
        raise ValueError(
            f"the incomplete rows, each as often as its weight says, have {size:.3g} cells, more than {MAX_CELLS:.3g}; pass "
            f"fewer rows, or {cure}"
        )
    times = np.where(holes, row_weights, 1).astype(np.int64)
    return np.repeat(rows, times, axis=0), np.repeat(np.where(holes, 1.0, row_weights), times)


def add_missing_state(schema, codes):
    """Give every column with a missing cell one more state, the last, and those cells its code.

    Parameters
    ----------
    schema : Schema
    codes : (n_samples, n_columns), -1 = missing

    Returns
    -------
    schema : Schema
        With the further states, called "missing" (underscores are added where a column has such a state already).
    codes : (n_samples, n_columns) int32
    columns : (n_extended,) int64
        Positions of the columns that got the state.
    """
    columns = np.flatnonzero((codes < 0).any(axis=0))
    codes = np.array(codes, dtype=np.int32, order="F")
    for column in columns:
        codes[codes[:, column] < 0, column] = len(schema.states[column])
    return with_missing_state(schema, columns), codes, columns


def fill_missing(block, columns, cardinalities):
    """A block of rows whose missing cells in `columns` have the state past the last."""
    codes = np.array(block.codes, dtype=np.int32, order="F")
    for column in columns:
        codes[codes[:, column] < 0, column] = cardinalities[column]
    return block._replace(codes=codes)


def with_missing_state(schema, columns):
    """The schema in which `columns` have one more state."""
    states = list(schema.states)
    for column in columns:
        label = LABEL
        while label in states[column]:
            label += "_"
        states[column] = (*states[column], label)
    return Schema(schema.names, tuple(states))


def mark_missing(X, codes, schema, columns):
    """Codes of new rows in which the empty cells of `columns` have the state that `add_missing_state` gave them.

    Parameters
    ----------
    X : table that was encoded
    codes : (n_samples, n_columns) as `encode_like` made them, -1 = missing or unseen
    schema : Schema
        That of the fit, without the further states.
    columns : positions of the columns that have the further state
    """
    if not len(columns) or not (codes[:, columns] < 0).any():
        return codes
    found, read, _ = read_columns(X)
    position = {name: k for k, name in enumerate(found)} if read.named else {}
    wanted = [position.get(schema.names[c], int(c)) for c in columns]
    empty = pack(*read.select(wanted).factorize([found[k] for k in wanted], {})) < 0
    codes = codes.astype(np.int32)
    for k, column in enumerate(columns):
        codes[empty[:, k], column] = len(schema.states[column])
    return codes


def as_frame(data):
    """A table of another library, or a single row, as a DataFrame."""
    return kinds.as_frame(data) if table.is_named(data) else table.made_frame(list(data))


def labelled(column, states, codes):
    """Codes as values of the type that the states have, or of the categorical dtype that was there."""
    if isinstance(column.dtype, pd.CategoricalDtype) and set(states) <= set(column.dtype.categories):
        return pd.Categorical.from_codes(codes, categories=pd.Index(list(states))).astype(column.dtype)
    return table.label_array(states)[codes]


def filled_column(column, states, codes):
    """A column whose empty cells hold the states that `codes` name; its dtype stays, other cells stay as they are."""
    empty = column.isna().to_numpy()
    if not empty.any():
        return column
    values = np.fromiter((states[code] for code in codes), dtype=object, count=len(column))
    whole = column.astype(object).where(~empty, pd.Series(values, index=column.index))
    try:
        return whole.astype(column.dtype)
    except (TypeError, ValueError):  # an empty column of floats that was declared to hold texts
        return whole
