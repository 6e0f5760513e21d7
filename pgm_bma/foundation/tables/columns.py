"""Columns of any table, read as arrays and coded as integers; `pgm_bma.foundation.tables.table` is built on this.

Read: a DataFrame (pandas, or polars and pyarrow through narwhals), a 2-D array, a list of rows, or a single row.
Code: each column becomes codes into its states, -1 = missing. States keep their Python types; their order is the declared
one, else the categories of a categorical (unused ones kept), else sorted, mixed types by (type name, value).
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import bounded, brief, is_hashable, is_unicode

MAX_FLOAT_STATES = 50
WIDE = 64  # columns of one dtype from which the whole table is coded at once
BLOCK_CELLS = 1 << 22  # larger tables are coded column by column, where one more call per column costs nothing
# what pandas calls an array of objects that all have one type: no True next to 1, nothing that cannot be a state
ONE_TYPE = ("string", "integer", "boolean", "floating", "bytes")


# ---------------------------------------------------------------------------------------------------- reading


def read_columns(X):
    """(names, columns, n_rows) of any accepted table; unnamed columns are x0, x1, ...

    `columns` has `named`, `width`, `take(mask)`, `select(positions)` and `factorize(names, declared, unknown, unseen)`.
    """
    if hasattr(X, "tocsr"):
        raise TypeError("sparse matrices are not discrete tables; pass X.toarray() or a DataFrame")
    if is_one_row(X):
        X = made_frame({name: [value] for name, value in X.items()})
    if isinstance(X, pd.DataFrame):
        names = list(X.columns)
        _refuse_duplicates(names)
        return names, _gather(_frame_arrays(X), named=True), len(X)
    if isinstance(X, (list, tuple)):
        rows = list(X)
        if rows and isinstance(rows[0], (Mapping, pd.Series)):
            return read_columns(made_frame(rows))
        X = made_frame(rows)
        return default_names(X.shape[1]), _gather(_frame_arrays(X), named=False), len(X)
    if isinstance(X, np.ndarray) or (hasattr(X, "__array__") and not is_named(X)):
        return _read_array(unmasked(X))
    return _read_narwhals(X)


def column_names(X):
    """Names of the columns, without reading them where the table tells."""
    if hasattr(X, "column_names"):  # pyarrow, whose `columns` are the columns themselves
        return list(X.column_names)
    return list(X.columns) if hasattr(X, "columns") else read_columns(X)[0]


def is_named(X):
    """Return whether a table brings names of its columns."""
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and isinstance(X[0], (Mapping, pd.Series))
    return is_one_row(X) or any(hasattr(X, a) for a in ("columns", "schema", "column_names"))


def is_one_row(X):
    """Return whether X is a dict or Series: one row, its values by column."""
    return isinstance(X, (pd.Series, Mapping)) and not hasattr(X, "columns") and not hasattr(X, "tocsr")


def categoricals(X):
    """Names of the columns of a DataFrame that were made categorical by somebody."""
    if isinstance(X, pd.DataFrame):
        return [name for name, dtype in X.dtypes.items() if isinstance(dtype, pd.CategoricalDtype)]
    kinds: Any = getattr(getattr(X, "schema", None), "items", tuple)()
    return [name for name, dtype in kinds if str(dtype).startswith(("Categorical", "Enum"))]


def default_names(n_columns):
    return [f"x{i}" for i in range(n_columns)]


def unmasked(X):
    """An array; the masked cells of a masked array become None."""
    if np.ma.isMaskedArray(X):
        cells = X.data.astype(object)
        cells[np.ma.getmaskarray(X)] = None
        return cells
    return np.asarray(X)


def take_column(X, name):
    """(column, table without it) of a DataFrame of any library."""
    if isinstance(X, pd.DataFrame):
        return as_column(X[name]), X.loc[:, [other != name for other in X.columns]]
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    return _narwhals_array(frame[name]), frame.drop(name).to_native()


def as_column(y):
    """A single column in any form as an array that `factorize` takes; a categorical keeps its categories."""
    if isinstance(y, (pd.Series, pd.Index)):
        return y.to_numpy() if isinstance(y.dtype, np.dtype) else y.array
    if isinstance(y, pd.api.extensions.ExtensionArray):
        return y
    if hasattr(y, "num_chunks") or (hasattr(y, "to_list") and hasattr(y, "dtype")):  # pyarrow, polars
        import narwhals as nw

        return _narwhals_array(nw.from_native(y, series_only=True))
    if hasattr(y, "__array__"):
        return unmasked(y)
    if isinstance(y, (str, bytes, Mapping, AbstractSet)) or not hasattr(y, "__iter__"):
        raise ValueError(f"cannot read a column from {brief(y, 60)}; pass a list, an array or a Series")
    return made_frame({"y": list(bounded("y", y))})["y"].to_numpy()


def made_frame(cells):
    """A DataFrame of a user's lists, with the types that pandas finds in them."""
    try:
        return pd.DataFrame(bounded("X", cells)).infer_objects()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a cell or a name is {brief(str(error.object))}, half a pair of UTF-16, which no file can hold; correct it, or set "
            "it to NaN"
        ) from None


def _frame_arrays(X):
    # the private iterator spares a Series per column, most of the time at thousands of columns
    arrays = getattr(X, "_iter_column_arrays", None)
    return list(arrays()) if arrays is not None else [as_column(column) for _, column in X.items()]


def _read_array(X):
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape your data: one row per sample, one column per variable"
        )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: codes are made from discrete values")
    return default_names(X.shape[1]), _gather(list(X.T), named=False), len(X)


def _read_narwhals(X):
    import narwhals as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise TypeError(
            f"cannot read a table from {type(X).__name__}; pass a pandas, polars or pyarrow table, or a 2-D array"
        ) from None
    names, n_rows = list(frame.columns), len(frame)
    _refuse_duplicates(names)
    special = (nw.Categorical, nw.Enum, nw.List, nw.Array, nw.Struct)
    if _is_wide(len(names), n_rows) and not any(dtype in special for dtype in frame.schema.values()):
        cells = np.array(frame.rows(), dtype=object).reshape(n_rows, len(names))  # two calls instead of four per column
        return names, _gather(list(cells.T), named=True), n_rows
    return names, _Columns(list(frame.iter_columns()), named=True, read=_narwhals_array), n_rows


def _narwhals_array(series):
    import narwhals as nw

    if series.dtype in (nw.Categorical, nw.Enum):
        if series.implementation.is_pyarrow():
            return series.to_native().unify_dictionaries().to_pandas().array
        if not series.implementation.is_polars():
            return series.to_pandas().array
        if series.dtype == nw.Enum:
            return pd.Categorical(series.to_list(), categories=list(series.dtype.categories))
        # a polars Categorical declares nothing and is ordered as text; by first appearance, rows would order the states
    if series.dtype.is_numeric() and not series.is_null().any():
        return series.to_numpy()
    values = series.to_list()
    return np.fromiter(values, dtype=object, count=len(values))  # one by one: numpy would look into lists


def _refuse_duplicates(names):
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"column name {twice!r} occurs twice; rename or drop one of the two")


def _is_wide(n_columns, n_rows):
    return n_columns >= WIDE and n_columns * n_rows <= BLOCK_CELLS


def _gather(columns, named):
    """The columns as one block where that is faster and the same, else as they are."""
    if columns and len(columns[0]) and _is_wide(len(columns), len(columns[0])):
        dtype = columns[0].dtype
        if not isinstance(dtype, pd.CategoricalDtype) and all(column.dtype == dtype for column in columns):
            numpy = isinstance(dtype, np.dtype)
            flat = np.concatenate(columns) if numpy else type(columns[0])._concat_same_type(columns)
            if dtype != np.dtype(object) or pd.api.types.infer_dtype(flat, skipna=True) in ONE_TYPE:
                return _Block(flat, len(columns[0]), named)
    return _Columns(columns, named)


# ---------------------------------------------------------------------------------------------------- coding


def code_columns(arrays, names, declared, unknown="error"):
    """(codes, states) of every array; `unknown`: "error", "undeclared" and "no state" raise, "missing" codes -1.

    `unseen`, a dict that a caller of `factorize` may give, is filled with column -> (number of unknown cells, one value).
    """
    return _Columns(arrays, named=True).factorize(names, declared, unknown)


class _Columns:
    """Columns coded one by one; `read` turns a stored column into an array when it is needed."""

    def __init__(self, columns, named, read=None):
        self.columns, self.named, self.read = columns, named, read

    @property
    def width(self):
        return len(self.columns)

    def take(self, keep):
        return _Columns([self._array(column)[keep] for column in self.columns], self.named)

    def select(self, positions):
        return _Columns([self.columns[i] for i in positions], self.named, self.read)

    def factorize(self, names, declared, unknown="error", unseen=None):
        known: dict = {}  # states of categorical dtypes met before: thousands of columns often share a few
        unknowns = _Unknowns(unknown, {} if unseen is None else unseen)
        pairs = [
            _code_column(self._array(column), name, declared.get(name), unknowns, known)
            for name, column in zip(names, self.columns)
        ]
        return [codes for codes, _ in pairs], [states for _, states in pairs]

    def _array(self, column):
        return column if self.read is None else self.read(column)


class _Block:
    """Many columns of one dtype laid end to end: a wide table is factorized once, not thousands of times."""

    def __init__(self, flat, n_rows, named):
        self.flat, self.n_rows, self.named = flat, n_rows, named

    @property
    def width(self):
        return len(self.flat) // self.n_rows if self.n_rows else 0

    def take(self, keep):
        return self._cells(range(self.width), np.flatnonzero(keep))

    def select(self, positions):
        positions = list(positions)
        return self if positions == list(range(self.width)) else self._cells(positions, np.arange(self.n_rows))

    def _cells(self, columns, rows):
        cells = (np.asarray(columns, dtype=np.int64)[:, None] * self.n_rows + rows).ravel()
        return _Block(self.flat.take(cells), len(rows), self.named)

    def factorize(self, names, declared, unknown="error", unseen=None):
        flat, uniques = _factorize(self.flat, names[0])
        n_columns, found = self.width, _python_values(uniques)
        if len(found) * n_columns > max(4 * len(flat), 1 << 20):  # few shared values: no gain from the block
            columns = [self.flat[i * self.n_rows : (i + 1) * self.n_rows] for i in range(n_columns)]
            return _Columns(columns, self.named).factorize(names, declared, unknown, unseen)
        ordered = order_states(found)
        rank = {state: k for k, state in enumerate(ordered)}
        ranks = np.array([*(rank[state] for state in found), -1])[flat].reshape(n_columns, -1)  # -1 stays -1
        lines = np.arange(n_columns)[:, None]
        present = np.zeros((n_columns, len(ordered) + 1), dtype=bool)
        present[lines, ranks] = True  # the last slot takes the missing cells
        has_missing, present = present[:, -1], present[:, :-1]
        lookup = np.full((n_columns, len(ordered) + 1), -1, dtype=np.int64)
        lookup[:, :-1] = np.where(present, present.cumsum(1) - 1, -1)
        check_floats = bool(ordered) and isinstance(ordered[0], float)
        unknowns, states = _Unknowns(unknown, {} if unseen is None else unseen), []
        for column, name in enumerate(names):
            seen = [ordered[k] for k in np.flatnonzero(present[column])]
            if check_floats:
                refuse_floats(name, seen, has_missing[column], name in declared)
            states.append(declared.get(name, seen))
            if name in declared and declared[name] != seen:
                position = {state: code for code, state in enumerate(declared[name])}
                lookup[column, :-1] = [position.get(state, -1) for state in ordered]
                lost = np.flatnonzero(present[column] & (lookup[column, :-1] < 0))
                if len(lost):
                    unknowns.meet(name, ordered[lost[0]], int(np.isin(ranks[column], lost).sum()))
        largest = max(len(s) for s in states)
        return lookup.astype(smallest_dtype(largest))[lines, ranks].T, states


class _Unknowns:
    """Handle values that are not among the states: an error, or an entry in `unseen`."""

    def __init__(self, unknown, unseen):
        self.unknown, self.unseen = unknown, unseen

    def meet(self, name, value, n_cells):
        if self.unknown != "missing":
            raise unseen(name, value, self.unknown)
        self.unseen[name] = n_cells, value


def _code_column(column, name, declared, unknowns, known):
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        if id(dtype) not in known:
            known[id(dtype)] = dtype, _python_values(dtype.categories)  # the dtype too: a live object keeps its id
        found = known[id(dtype)][1]
        if declared is None or declared == found:
            return column.codes, found
        return _relabel(column.codes, found, declared, name, unknowns)
    codes, uniques = _factorize(column, name)
    found = _python_values(uniques)
    floats = [value for value in found if isinstance(value, float)]
    if floats:
        refuse_floats(name, floats, (codes < 0).any(), declared is not None)
    states = order_states(found) if declared is None else declared
    return _relabel(codes, found, states, name, unknowns)


def _factorize(values, name):
    if getattr(values, "dtype", None) is not None and getattr(values.dtype, "byteorder", "=") == ">":
        values = values.astype(values.dtype.newbyteorder("="))  # pandas reads the bytes of this machine only
    if np.ndim(values) != 1:
        raise ValueError(f"{name!r} has the shape {np.shape(values)}; pass one value per row")
    try:
        return pd.factorize(values)
    except (TypeError, NotImplementedError):  # the latter of pyarrow, for lists and structs
        bad = next((v for v in values if not is_hashable(v)), None)
        raise ValueError(f"column {name!r} holds {bad!r}, which cannot be a state; use a string or a number") from None


def _python_values(uniques):
    if isinstance(uniques, np.ndarray) and uniques.dtype.kind in "mM":
        uniques = pd.Index(uniques)  # numpy would list nanoseconds
    return [plain(value) for value in uniques.tolist()]


def _relabel(codes, found, states, name, unknowns):
    """Codes into `found` -> codes into `states`; -1 picks the last slot, which stays -1."""
    position = {state: code for code, state in enumerate(states)}
    table = np.array([position.get(state, -1) for state in found] + [-1], dtype=smallest_dtype(max(len(states), 1)))
    if (table[:-1] < 0).any():
        cells = np.where(table[:-1] < 0, np.bincount(codes[codes >= 0], minlength=len(found)), 0)
        if cells.any():  # a category that no cell holds is no unknown value
            unknowns.meet(name, found[int(np.argmax(cells > 0))], int(cells.sum()))
    return _look_up(table, codes), states


def _look_up(table, codes):
    """``table[codes]``; few states go through a byte translation, several times faster than fancy indexing."""
    if table.dtype != np.int8 or len(table) > 256:
        return table[codes]
    translation = np.full(256, -1, dtype=np.int8)  # -1 as an unsigned byte is 255
    translation[: len(table) - 1] = table[:-1]
    return np.frombuffer(codes.astype(np.uint8).tobytes().translate(translation.tobytes()), dtype=np.int8)


def unseen(name, value, unknown):
    """The error for a value that is not a state of its column."""
    told = {
        "undeclared": f"which state_names[{name!r}] does not list; add it there, or set it to NaN",
        "no state": "which is not a state of that node of the network; correct it, or set it to NaN",
        "error": f"unseen in fit; pass state_names={{{name!r}: [...]}} or handle_unknown='missing'",
    }
    return ValueError(f"column {name!r} holds {value!r}, {told[unknown]}")


def refuse_floats(name, values, has_missing, declared):
    """Refuse infinite values, and many different ones unless they are whole numbers that a missing cell made floats."""
    infinite = [value for value in values if value in (np.inf, -np.inf)]
    if infinite:
        raise ValueError(
            f"column {name!r} holds an infinite value ({infinite[0]}); replace it, or set it to NaN to call it missing"
        )
    if declared or len(values) <= MAX_FLOAT_STATES or (has_missing and all(value.is_integer() for value in values)):
        return
    raise ValueError(
        f"column {name!r} holds {len(values)} different float values; discretise it first, "
        "for example with pgm_bma.MDLDiscretizer (needs a target) or pgm_bma.FrequencyDiscretizer"
    )


# ---------------------------------------------------------------------------------------------------- states


def check_states(name, states):
    """A declared list of states, checked: ordered, not empty, no duplicates, no missing value."""
    if isinstance(states, str) or not hasattr(states, "__iter__"):
        raise ValueError(f"state_names[{name!r}] must be a list of states, got {states!r}")
    if isinstance(states, AbstractSet) and not hasattr(states, "mapping"):
        raise ValueError(f"state_names[{name!r}] is a set, which has no order; pass a list of states")
    states = [plain(state) for state in states]
    if not states:
        raise ValueError(f"state_names[{name!r}] is empty; declare at least one state")
    for state in states:
        if not is_hashable(state):
            raise ValueError(
                f"state_names[{name!r}] holds {state!r}, which cannot be a state; use a string or a number"
            )
        if is_missing(state):
            raise ValueError(f"state_names[{name!r}] holds a missing value; NaN is not a state")
    if len(set(states)) != len(states):
        twice = next(s for i, s in enumerate(states) if s in states[:i])
        raise ValueError(f"state_names[{name!r}] holds {twice!r} twice")
    return states


def refuse_broken_texts(name, states):
    """Refuse names and states that are no text at all (half a pair of UTF-16), and names that are missing values.

    A fit would be spent on them: nothing could be written or drawn, and no node be found by NaN.
    """
    if is_missing(name):
        raise ValueError(f"a column has the name {name!r}, which is a missing value; give it a text or a number")
    if not is_unicode(name):
        raise ValueError(f"column {name!r} has a name with half a pair of UTF-16, which no file can hold; rename it")
    bad = next((state for state in states if not is_unicode(state)), None)
    if bad is not None:
        raise ValueError(
            f"column {name!r} holds {bad!r}, half a pair of UTF-16, which no file can hold; correct it, or set it to NaN"
        )


def order_states(values):
    """Default order of observed states: sorted, mixed types by (type name, value)."""
    values = [plain(value) for value in values]
    try:
        if len({type(value) for value in values}) <= 1:
            return sorted(values)
        return sorted(values, key=lambda value: (type(value).__name__, value))
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def plain(value):
    """numpy scalars as Python scalars; everything else as it is."""
    if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
        return value.item()
    return value


def smallest_dtype(cardinality):
    """The smallest signed integer type for the codes 0 .. cardinality - 1."""
    return next(t for t in (np.int8, np.int16, np.int32, np.int64) if cardinality - 1 <= np.iinfo(t).max)


def missing_cells(name, values):
    """Return where a column has no value; a signalling NaN raises an error."""
    try:
        return pd.isna(values)
    except ArithmeticError:
        raise ValueError(f"column {name!r} holds Decimal('sNaN'), which cannot be a state; set it to NaN") from None


def is_missing(value):
    """None, NaN, NaT and pandas' NA."""
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)
