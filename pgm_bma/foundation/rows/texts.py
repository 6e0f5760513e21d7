"""Cells of CSV files: distinct texts of a column become what ``pandas.read_csv`` would have read."""

import csv
import io

import pandas as pd

from pgm_bma.foundation.tables.columns import is_missing

# what pandas.read_csv takes for missing
NA_TEXTS = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
            "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip


def missing_texts(na_values):
    """The texts that mean missing: pandas' own and those that are given."""
    given = [] if na_values is None else [na_values] if isinstance(na_values, str) else list(na_values)
    return frozenset([*NA_TEXTS, *map(str, given)])


def read_texts(values, missing):
    """Distinct texts of a column -> what ``pandas.read_csv`` makes of them, in the same order."""
    if not values:
        return []
    buffer = io.StringIO()
    csv.writer(buffer, quoting=csv.QUOTE_ALL).writerows([value] for value in values)
    buffer.seek(0)
    read = pd.read_csv(
        buffer, header=None, na_values=sorted(missing), keep_default_na=False, skip_blank_lines=False, low_memory=False
    )[0]
    return [None if is_missing(value) else value for value in read.tolist()]


def texts_like(values, states, missing):
    """The same for new rows, whose types are known from the fitted `states`; no change where `missing` is None."""
    if missing is None:
        return values
    if any(isinstance(state, str) for state in states):
        return [None if value in missing else value for value in values]
    return read_texts(values, missing)
