"""Distinct rows of parts of a table, and their union: what folding needs, whichever engine read the rows.

A `Piece` holds, column by column, the values met (in any order), codes into them (-1 = missing), and how often every distinct
row occurs. Pieces are made from Arrow batches or pandas partitions, joined, and end as a DataFrame of categoricals with one
weight per distinct row. Counts are whole numbers, so the result does not depend on how the rows were cut or joined.

Cells of CSV files: distinct texts of a column become what ``pandas.read_csv`` would have read.
"""

import csv
import io
from typing import NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import bounded, brief
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.columns import is_missing, order_states, plain, smallest_dtype


class Piece(NamedTuple):
    """Distinct rows: `values` a list per column, `codes` (n_distinct, n_columns) into it, `counts` (n_distinct,)."""

    values: list
    codes: np.ndarray
    counts: np.ndarray


class PieceBuilder:
    """Collects rows part by part; only codes are kept.

    names : list of str, the columns in order
    """

    def __init__(self, names):
        self.names = names
        self.positions: list[dict] = [{} for _ in names]
        self.codes, self.counts = [], []

    def add(self, coded, counts):
        """Rows whose columns are pairs (values, codes into them), and how often each occurs."""
        look_ups = [self._look_up(i, values) for i, (values, _) in enumerate(coded)]
        largest = max((len(known) for known in self.positions), default=1)
        part = np.empty((len(counts), len(coded)), dtype=smallest_dtype(max(largest, 1)), order="F")
        for i, (look_up, (_, codes)) in enumerate(zip(look_ups, coded)):
            part[:, i] = look_up[codes]
        self.codes.append(part)
        self.counts.append(np.asarray(counts, dtype=np.int64))

    def _look_up(self, column, values):
        """Codes of `values` among all values met so far; the last slot, which -1 picks, stays -1."""
        known = self.positions[column]
        try:
            codes = [-1 if is_missing(value) else known.setdefault(value, len(known)) for value in values]
        except TypeError:
            bad = next(value for value in values if isinstance(value, (list, dict, set, np.ndarray)))
            raise ValueError(
                f"column {self.names[column]!r} holds {brief(bad, 60)}, which cannot be a state; use a string or a number"
            ) from None
        return np.array([*codes, -1], dtype=np.int64)

    def finish(self):
        """The rows as one Piece, equal ones folded, in sorted order of their codes."""
        n_columns = len(self.names)
        codes = np.concatenate(self.codes) if self.codes else np.empty((0, n_columns), dtype=np.int8)
        counts = np.concatenate(self.counts) if self.counts else np.empty(0, dtype=np.int64)
        self.codes, self.counts = [], []
        rows, weights, _ = table.fold(np.asfortranarray(codes), counts)
        values = [_drop_unused(list(known), rows[:, i]) for i, known in enumerate(self.positions)]
        return Piece(values, rows, weights.astype(np.int64))


def _drop_unused(values, codes):
    """The values that occur; `codes` are renumbered in place. A category that no row has is no value of the rows."""
    used = np.zeros(len(values) + 1, dtype=bool)
    used[codes] = True
    used = used[:-1]
    if used.all():
        return values
    codes[:] = np.array([*np.where(used, np.cumsum(used) - 1, -1), -1])[codes]
    return [value for value, is_used in zip(values, used) if is_used]


def join_pieces(names, pieces):
    """One Piece of several."""
    builder = PieceBuilder(names)
    for piece in pieces:
        builder.add(list(zip(piece.values, piece.codes.T)), piece.counts)
    return builder.finish()


def arrow_codes(column):
    """(values, codes) of one Arrow column, -1 = null; values that occur, each once."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_nested(column.type):
        values = column.to_pylist()
        return values, np.arange(len(values))
    if not isinstance(column, pa.DictionaryArray):
        column = column.dictionary_encode()
    codes = column.indices if pa.types.is_signed_integer(column.indices.type) else column.indices.cast(pa.int64())
    codes = codes.fill_null(-1) if codes.null_count else codes
    return column.dictionary.to_pylist(), codes.to_numpy(zero_copy_only=False)


def pandas_codes(column):
    """(values, codes) of one pandas column; a categorical brings its categories."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories), column.cat.codes.to_numpy()
    codes, values = pd.factorize(column)
    return list(pd.Index(values)), codes


def folded_frame(names, piece, categories, weight=None):
    """Distinct rows as (DataFrame, weights, number of rows of positive weight), in sorted order of their states.

    names : list of str, the columns of the piece
    categories : dict column -> states in order, for columns that declare them; the others are sorted
    weight : name of the column that holds weights, optional
    """
    values_met, codes, counts = piece.values, piece.codes, piece.counts.astype(float)
    if weight is not None:
        position = names.index(weight)
        counts = counts * row_weights(weight, piece.values[position], codes[:, position])
    n_rows = int(piece.counts[counts > 0].sum())
    if 0 < n_rows < piece.counts.sum():  # rows of weight 0 are absent, and their values
        codes, counts = codes[counts > 0], counts[counts > 0]
        values_met = [_drop_unused(list(values), codes[:, i]) for i, values in enumerate(values_met)]
    columns, keys = {}, []
    for i, (name, values) in enumerate(zip(names, values_met)):
        if name == weight:
            continue
        states = categories.get(name)
        states = order_states(values) if states is None else states
        rank = {state: code for code, state in enumerate(states)}
        look_up = np.array([*(rank[value] for value in map(plain, values)), -1], dtype=np.int64)
        keys.append(look_up[codes[:, i]])
        columns[name] = _as_column(states, keys[-1], name in categories)
    order = np.lexsort(keys[::-1]) if keys else np.arange(len(counts))
    frame = pd.DataFrame(columns).take(order).reset_index(drop=True)
    return frame, counts[order], n_rows


def _as_column(states, codes, declared):
    """A categorical; floats stay floats, because reading them has its own rules."""
    n_types = len({*map(type, states)})
    if not declared and any(isinstance(state, float) for state in states):
        return np.array([*states, np.nan], dtype=object if n_types > 1 else float)[codes]
    return pd.Categorical.from_codes(codes, categories=pd.Index(states, dtype=None if n_types == 1 else object))


def row_weights(name, values, codes):
    """Weights of rows whose column `name` has these values and codes into them; what is no weight is an error, missing ones too."""
    try:
        numbers = np.array([*values, np.nan], dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight={name!r} names a column that holds {values[0]!r}; weights are numbers"
        ) from None
    weights = numbers[codes]
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        value = weights[np.argmax(bad)]
        told = "a missing value" if np.isnan(value) else f"{value:g}"
        raise ValueError(
            f"the column {name!r} of sample_weight holds {told}; weights are finite and >= 0: correct or drop those rows"
        )
    return weights


# what pandas.read_csv takes for missing
NA_TEXTS = ("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A",
            "NA", "NULL", "NaN", "None", "n/a", "nan", "null")  # fmt: skip


def missing_texts(na_values):
    """The texts that mean missing: pandas' own and those that are given."""
    given = (
        []
        if na_values is None
        else [na_values]
        if isinstance(na_values, str)
        else list(bounded("na_values", na_values))
    )
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
