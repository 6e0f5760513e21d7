"""Codes back into a table's own columns: missing cells filled, everything else left as it is."""

import numpy as np
import pandas as pd

from pgm_bma.foundation.tables import numeric_columns, table


def as_frame(data):
    """A table of another library, or a single row, as a DataFrame."""
    return numeric_columns.as_frame(data) if table.is_named(data) else table.made_frame(list(data))


def labelled(column, states, codes):
    """Codes as values of the type that the states have, or of the categorical dtype that was there."""
    if isinstance(column.dtype, pd.CategoricalDtype) and set(states) <= set(column.dtype.categories):
        return pd.Categorical.from_codes(codes, categories=list(states)).astype(column.dtype)
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
