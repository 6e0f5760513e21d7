"""Tables of states and numbers: which columns are numeric, and rows that hold codes first and numbers after them.

An encoded row of such a table is a line of floats: the codes of the columns of states (-1 = missing), then the numbers as they
were given (NaN = missing). Without numeric columns it is a line of codes, as everywhere else. Numbers are standardised where the
model sees them, so that the prior means the same whatever their units are.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.clusterer import ClustererBase
from pgm_bma.foundation.faces.validation import brief, check_parameters
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.column_kinds import column_kind
from pgm_bma.foundation.tables.numeric_columns import as_frame, numbers, numeric_names


class NumberColumns(NamedTuple):
    """Numeric columns of a fit: their names, weighted means and standard deviations, and the names of all columns of the table."""

    names: tuple
    centers: np.ndarray
    scales: np.ndarray
    order: tuple

    def standardised(self, values):
        """(n_rows, n_numbers) with mean 0 and standard deviation 1 in the rows of fit."""
        return (values - self.centers) / self.scales


LARGEST = 1e100  # of a number: sums of squares stay finite


def no_numbers(schema):
    """`NumberColumns` of a table without any."""
    return NumberColumns((), np.empty(0), np.empty(0), schema.names)


def standardisation(values, weights):
    """Weighted (means, standard deviations) over the cells that are there; a column of one value, or none, has deviation 1."""
    seen = ~np.isnan(values)
    shares = np.where(seen, weights[:, None], 0.0)
    totals = shares.sum(axis=0)
    shares = shares / np.where(totals > 0, totals, 1.0)
    rough = (shares * np.where(seen, values, 0.0)).sum(axis=0)
    centers = rough + (shares * np.where(seen, values - rough, 0.0)).sum(axis=0)  # the first sum was rounded
    scales = np.sqrt((shares * np.where(seen, values - centers, 0.0) ** 2).sum(axis=0))
    is_flat = scales <= 1e-12 * np.abs(centers)
    return centers, np.where(is_flat, 1.0, scales)


def read_numbers(frame, names, handle_unknown):
    """(n_rows, n_numbers) floats, NaN = missing; a text that is no number is an error, or missing with a warning."""
    columns = []
    for name in names:
        values = numbers(frame[name])
        strange = np.isnan(values) & ~frame[name].isna().to_numpy()
        if strange.any():
            value = frame[name].iloc[int(np.argmax(strange))]
            if handle_unknown == "error":
                raise ValueError(
                    f"column {name!r} is numeric and holds {brief(value)}, which is no number; set it to NaN to call it missing, "
                    f"or name the column in categorical_columns"
                )
            warn(f"numeric column {name!r} holds {int(strange.sum())} texts such as {brief(value)}: taken as missing")
        large = np.abs(np.nan_to_num(values, nan=0.0)) > LARGEST
        if large.any():
            raise ValueError(
                f"numeric column {name!r} holds {values[large][0]:.3g}, beyond {LARGEST:g}, whose square is not finite; divide the "
                "column, set the value to NaN, or name the column in categorical_columns"
            )
        columns.append(values)
    return np.column_stack(columns)


class MixedTables(ClustererBase):
    """Reading of tables with numeric columns; a child has `numeric_columns`, `categorical_columns`, `preset` and `init`."""

    _numbers: NumberColumns
    numeric_columns: Any
    categorical_columns: Any
    preset: Any

    @property
    def numeric_columns_(self) -> list:
        """Columns that were taken as numbers."""
        return list(self._numbers.names)

    @property
    def _fitted_names(self):
        return self._numbers.order

    @property
    def _loop_names(self):
        """Columns as the loop has them: those of states first."""
        return (*self.schema_.names, *self._numbers.names)

    def _by_column(self, values):
        """What the loop found of every column (..., n_columns), in the order of the table."""
        place = {name: i for i, name in enumerate(self._loop_names)}
        return np.asarray(values)[..., [place[name] for name in self._fitted_names]]

    # ------------------------------------------------------------------------------------------------ rows of fit

    def _find_numeric(self, X, sample_weight):
        """Columns of X that are numeric: never those whose states somebody declared."""
        if "_cached_scan" in self.__dict__:
            self._refuse_numbers_of_scan()
            return []
        frame = as_frame(X)
        if not frame.columns.is_unique:
            return []  # the error comes with the states
        weights = table.check_weights(sample_weight, len(frame))
        if weights is not None and (weights == 0).any():
            frame = frame[weights > 0]  # a row of weight 0 is absent
        many = self.preset is None  # papers have states
        found = numeric_names(frame, self.numeric_columns, self.categorical_columns, many)
        declared = self._declared(X)
        clash = [name for name in found if name in declared and name in (self.numeric_columns or ())]
        if clash:
            raise ValueError(f"column {clash[0]!r} is named in numeric_columns and has declared states; drop one")
        if table.is_named(
            X
        ):  # whole numbers that name the rows, or are days, stay states: the reader of states warns of them
            settled = set(self.numeric_columns or ())
            found = [name for name in found if name in settled or column_kind(str(name), frame[name]) is None]
        return [name for name in found if name not in declared]

    def _declared(self, X):
        """Columns with declared states."""
        return set(self._feature_state_names(X, self.cluster_name) or ())

    def _read_features(self, X, sample_weight, forbidden_name):
        check_parameters(self, {name: getattr(self, name) for name in self._read_first})
        numeric = self._find_numeric(X, sample_weight)
        order = tuple(table.column_names(X))
        if not numeric:
            read = super()._read_features(X, sample_weight, forbidden_name)
            self._numbers = no_numbers(read.schema)
            return read
        frame = as_frame(X)
        if is_given(self.init):
            raise ValueError(
                f"init= a network has tables of states only, and column {numeric[0]!r} is numeric; pass another init, or name "
                "the column in categorical_columns"
            )
        values = read_numbers(frame, numeric, "error")
        weights = table.check_weights(sample_weight, len(frame))
        kept = slice(None) if weights is None else weights > 0
        named = table.is_named(X)
        states = frame.drop(columns=numeric)
        if states.shape[1]:
            read = super()._read_features(states, sample_weight, forbidden_name)
        else:
            self.__dict__.pop("_cached_model", None)
            n_rows = len(values[kept])
            codes = np.empty((n_rows, 0), dtype=np.int8)
            read = table.Table(table.Schema((), ()), codes, None if weights is None else weights[kept])
        self._numbers = NumberColumns(tuple(numeric), np.zeros(len(numeric)), np.ones(len(numeric)), order)
        self._set_columns(table.Schema(order, ((),) * len(order)), named)  # scikit-learn's names, of all columns
        self.schema_ = read.schema
        self.n_samples_ = len(read.codes)
        return read._replace(codes=np.column_stack([read.codes.astype(float), values[kept]]))

    def _split(self, encoded):
        """(codes, numbers) of encoded rows."""
        n_states = len(self.schema_.names)
        if not self._numbers.names:
            return encoded, None
        return np.asfortranarray(np.nan_to_num(encoded[:, :n_states], nan=-1.0).astype(np.int64)), encoded[:, n_states:]

    def _fold(self, read):
        """As `table.fold`; numbers are folded by their ranks."""
        if not self._numbers.names:
            return super()._fold(read)
        n_states = len(read.schema.names)
        distinct, ranks = zip(*(np.unique(column, return_inverse=True) for column in read.codes[:, n_states:].T))
        joined = np.column_stack([read.codes[:, :n_states].astype(np.int64), *ranks])
        rows, weights, inverse = table.fold(joined, read.weights)
        back = [values[rows[:, n_states + i]] for i, values in enumerate(distinct)]
        return np.column_stack([rows[:, :n_states].astype(float), *back]), weights, inverse

    def _table_rows(self, folded, weights):
        """`Rows` of what `_fold` made; the means and standard deviations of numeric columns are kept."""
        codes, values = self._split(folded.codes)
        if values is None:
            return table_rows(codes, folded.schema.cardinalities, weights)
        of_rows = np.ones(len(codes)) if weights is None else weights
        centers, scales = standardisation(values, of_rows)
        self._numbers = self._numbers._replace(centers=centers, scales=scales)
        numbers = self._numbers.standardised(values)
        return table_rows(codes, folded.schema.cardinalities, weights, numbers, np.log(scales))

    def _refuse_numbers_of_scan(self):
        """The numbers of a scan are states, whether its rows fold or not."""
        if self.numeric_columns is not None and len(self.numeric_columns):
            raise ValueError(
                f"numeric_columns={brief(self.numeric_columns)} needs the rows in memory, and the numbers of a scan are states; "
                "read the table (or a sample of it) into a DataFrame"
            )

    # ------------------------------------------------------------------------------------------------- other rows

    def _codes_of(self, X, handle_unknown, by_position=False, quiet=False):
        if not self._numbers.names:
            return super()._codes_of(X, handle_unknown, by_position, quiet)
        order = list(self._fitted_names)
        frame = as_frame(X, order)
        if by_position:
            frame = frame.set_axis(order, axis=1)
        absent = [name for name in order if name not in frame.columns]
        if absent:
            raise ValueError(
                f"X lacks column {absent[0]!r} that fit saw ({len(absent)} in all); add it, filled with NaN if unknown"
            )
        values = read_numbers(frame, self._numbers.names, handle_unknown)
        if not self.schema_.names:
            return values
        codes = super()._codes_of(frame[list(self.schema_.names)], handle_unknown, False, quiet)
        return np.column_stack([codes.astype(float), values])

    def _decode(self, encoded):
        codes, values = self._split(encoded)
        frame = super()._decode(codes)
        if values is None:
            return frame
        frame = pd.concat([frame, pd.DataFrame(values, columns=list(self._numbers.names))], axis=1)
        return frame[list(self._fitted_names)]


def is_given(init):
    """Whether `init` holds tables."""
    return not isinstance(init, str)
