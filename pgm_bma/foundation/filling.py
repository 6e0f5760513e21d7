"""Codes back into a table's own columns: missing cells filled, everything else left as it is."""

import numpy as np
import pandas as pd

from pgm_bma.foundation import table


def as_frame(data):
    """A table of another library, or a single row, as a DataFrame."""
    if table.is_one_row(data):
        return table.made_frame({name: [value] for name, value in data.items()})
    if not hasattr(data, "columns") and not hasattr(data, "column_names"):
        return table.made_frame(list(data))
    return table.made_frame({name: table.take_column(data, name)[0] for name in table.column_names(data)})


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
    values = np.empty(len(column), dtype=object)
    values[:] = [states[code] for code in codes]
    whole = column.astype(object).where(~empty, pd.Series(values, index=column.index))
    try:
        return whole.astype(column.dtype)
    except (TypeError, ValueError):  # an empty column of floats that was declared to hold texts
        return whole
