"""Data in: tables of discrete values become integer codes, once, with a Schema that remembers what they meant.

Goes in: DataFrame (pandas, or polars and pyarrow through narwhals), 2-D array, one dict or Series as a single row.
Comes out: a `Table` of codes (n_samples, n_columns) in the smallest signed dtype, column-contiguous, -1 = missing.
States keep their Python types. Their order: as declared in `state_names`, else the categories of a categorical (unused
ones kept), else sorted, mixed types by (type name, value).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

MAX_FLOAT_STATES = 50
WIDE = 64  # columns of one dtype from which the whole block is factorized at once


@dataclass(frozen=True)
class Schema:
    """Names and states of the columns, in order.

    Examples
    --------
    >>> from pgm_bma.table import Schema
    >>> Schema(("smoker",), (("no", "yes"),)).cardinalities
    array([2])
    """

    names: tuple
    states: tuple

    @cached_property
    def cardinalities(self):
        return np.array([len(states) for states in self.states], dtype=np.int64)

    @cached_property
    def _positions(self):
        return {name: position for position, name in enumerate(self.names)}

    def index(self, name):
        if name not in self._positions:
            raise KeyError(f"no column {name!r}; the columns are {_shorten(self.names)}")
        return self._positions[name]

    def __getstate__(self):
        return {"names": self.names, "states": self.states}

    def __setstate__(self, state):
        self.__dict__.update(state)


class Table(NamedTuple):
    """Codes with their schema; `weights` is None or (n_samples,) positive floats."""

    schema: Schema
    codes: np.ndarray
    weights: np.ndarray | None


def encode(X, state_names=None, sample_weight=None):
    """Encode a table for fitting.

    Parameters
    ----------
    X : table
    state_names : dict column -> states, optional; may hold states never seen and columns that are not in X
    sample_weight : (n_samples,), optional; rows of weight 0 are absent, and so are states seen only there

    Returns
    -------
    Table

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.table import encode
    >>> table = encode(pd.DataFrame({"a": ["y", "n", None], "b": [3, 1, 3]}))
    >>> table.codes.tolist(), table.schema.states
    ([[1, 1], [0, 0], [-1, 1]], (('n', 'y'), (1, 3)))
    """
    names, columns, n_rows = read_columns(X)
    state_names = {} if state_names is None else dict(state_names)
    if not names:
        raise ValueError("the table has no columns; pass at least one column of discrete values")
    if n_rows == 0 and any(name not in state_names for name in names):
        unknown = [name for name in names if name not in state_names]
        raise ValueError(
            f"the table has 0 sample(s) (rows); declare state_names for {_shorten(unknown)} to get the prior"
        )
    weights = check_weights(sample_weight, n_rows)
    if weights is not None and (weights == 0).any():
        keep = weights > 0
        columns, weights = columns.take(keep), weights[keep]
    declared = {name: check_states(name, state_names[name]) for name in names if name in state_names}
    coded, states = columns.factorize(names, declared)
    for name, column_states in zip(names, states):
        if not column_states:
            raise ValueError(f"column {name!r} has no values; declare state_names={{{name!r}: [...]}} or drop it")
    return Table(Schema(tuple(names), tuple(tuple(s) for s in states)), pack(coded, states), weights)


def encode_like(X, schema, handle_unknown="error"):
    """Encode a table for prediction with the states of a fitted schema; columns are matched by name.

    Extra columns are ignored. An array is matched by position. An unseen value is an error, or missing when
    `handle_unknown="missing"`. Returns codes (n_samples, n_columns).
    """
    if handle_unknown not in ("error", "missing"):
        raise ValueError(f"handle_unknown={handle_unknown!r} is not one of 'error', 'missing'")
    names, columns, _ = read_columns(X)
    if columns.named:
        position = {name: i for i, name in enumerate(names)}
        absent = [name for name in schema.names if name not in position]
        if absent:
            raise ValueError(
                f"X lacks {'column' if len(absent) == 1 else 'columns'} {_shorten(absent)} that fit saw; "
                "add them, filled with NaN if unknown"
            )
        columns = columns.select([position[name] for name in schema.names])
    elif len(names) != len(schema.names):
        raise ValueError(f"X has {len(names)} features, but the model was fitted with {len(schema.names)}")
    coded, _ = columns.factorize(schema.names, dict(zip(schema.names, schema.states)), handle_unknown)
    return pack(coded, schema.states)


def encode_target(y, name, states=None):
    """Encode a target column: (codes, states). Missing targets are an error that tells their count."""
    column = _Columns([as_column(y)], named=True)
    declared = {} if states is None else {name: check_states(name, states)}
    coded, found = column.factorize([name], declared)
    n_missing = int((coded[0] < 0).sum())
    if n_missing:
        raise ValueError(
            f"target {name!r} has {n_missing} missing {'value' if n_missing == 1 else 'values'} (NaN); drop those rows"
        )
    return pack(coded, found)[:, 0], tuple(found[0])


def fold(codes, weights=None):
    """Fold equal rows into one.

    Returns (rows, row_weights, inverse): distinct rows in lexicographic order, their total weight, and for every row of
    `codes` the position of its distinct row. Sorted order makes a repeated row and a weight bit-equal.
    """
    n_rows = len(codes)
    if codes.shape[1] == 0:
        return codes[: min(n_rows, 1)], _total_weights(np.zeros(n_rows, int), weights), np.zeros(n_rows, dtype=np.int64)
    key = np.zeros(n_rows, dtype=np.int64)
    size = 1
    for column in range(codes.shape[1]):
        values = codes[:, column].astype(np.int64) + 1
        width = int(values.max(initial=0)) + 1
        if size * width > 2**62:
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
        key = key * width + values
        size *= width
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return np.asfortranarray(codes[first]), _total_weights(inverse, weights), inverse


def _total_weights(inverse, weights):
    return np.bincount(inverse, weights).astype(float)


def decode(codes, schema):
    """The inverse of `encode`: a DataFrame with the original values, NaN where missing."""
    columns = {}
    for position, (name, states) in enumerate(zip(schema.names, schema.states)):
        values = codes[:, position]
        labels = label_array(states)
        column = labels[np.maximum(values, 0)]
        columns[name] = column if (values >= 0).all() else pd.Series(column).where(values >= 0)
    return pd.DataFrame(columns)


def label_array(states):
    """States as a 1-D array: a plain dtype when they share one type, else objects."""
    kinds = {type(state) for state in states}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        try:
            return np.array(list(states))
        except OverflowError:
            pass
    labels = np.empty(len(states), dtype=object)
    labels[:] = list(states)
    return labels


def check_weights(sample_weight, n_rows):
    """Weights as floats, or None; negative, NaN, infinite or all-zero weights are errors."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=float)
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array")
    if weights.shape[0] != n_rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    for bad, word in ((~np.isfinite(weights), "NaN or infinite"), (weights < 0, "negative")):
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(f"sample_weight holds a {word} value, {weights[row]}, at row {row}; weights must be >= 0")
    if not (weights > 0).any():
        raise ValueError("sample_weight is zero for every row; at least one row must have a positive weight")
    return weights


def check_states(name, states):
    """A declared list of states, checked: not empty, no duplicates, no missing value."""
    if isinstance(states, str) or not hasattr(states, "__iter__"):
        raise ValueError(f"state_names[{name!r}] must be a list of states, got {states!r}")
    states = [_plain(state) for state in states]
    if not states:
        raise ValueError(f"state_names[{name!r}] is empty; declare at least one state")
    if any(_is_missing(state) for state in states):
        raise ValueError(f"state_names[{name!r}] holds a missing value; NaN is not a state")
    if len(set(states)) != len(states):
        twice = next(s for i, s in enumerate(states) if s in states[:i])
        raise ValueError(f"state_names[{name!r}] holds {twice!r} twice")
    return states


def order_states(values):
    """Default order of observed states: sorted, mixed types by (type name, value)."""
    values = [_plain(value) for value in values]
    try:
        if len({type(value) for value in values}) <= 1:
            return sorted(values)
        return sorted(values, key=lambda value: (type(value).__name__, value))
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def pack(coded, states):
    """Column codes -> one (n_samples, n_columns) array in the smallest dtype, column-contiguous."""
    if isinstance(coded, np.ndarray):
        return coded
    largest = max((len(s) for s in states), default=1)
    codes = np.empty((len(coded[0]) if coded else 0, len(coded)), dtype=_smallest_dtype(largest), order="F")
    for position, column in enumerate(coded):
        codes[:, position] = column
    return codes


def _smallest_dtype(cardinality):
    return next(t for t in (np.int8, np.int16, np.int32, np.int64) if cardinality - 1 <= np.iinfo(t).max)


# ---------------------------------------------------------------------------------------------------- reading


def read_columns(X):
    """(names, columns, n_rows) of any accepted table; unnamed columns are x0, x1, ..."""
    if isinstance(X, pd.Series) or (isinstance(X, Mapping) and not hasattr(X, "columns")):
        X = _one_row(X)
    if isinstance(X, pd.DataFrame):
        names = list(X.columns)
        _refuse_duplicates(names)
        dtypes = set(X.dtypes)
        if len(names) >= WIDE and len(dtypes) == 1 and _can_be_block(next(iter(dtypes))):
            return names, _Block(X.to_numpy(), named=True), len(X)
        return names, _Columns([column for _, column in X.items()], named=True), len(X)
    if isinstance(X, (list, tuple)):
        X = pd.DataFrame(list(X)).infer_objects()
        return [f"x{i}" for i in range(X.shape[1])], _Columns([c for _, c in X.items()], named=False), len(X)
    if isinstance(X, np.ndarray) or (
        hasattr(X, "__array__") and not hasattr(X, "columns") and not hasattr(X, "schema")
    ):
        return _read_array(np.asarray(X))
    if hasattr(X, "tocsr"):
        raise TypeError("sparse matrices are not discrete tables; pass X.toarray() or a DataFrame")
    return _read_narwhals(X)


def _read_array(X):
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape your data: one row per sample, one column per variable"
        )
    if X.dtype.kind == "c":
        raise ValueError("Complex data not supported: codes are made from discrete values")
    names = [f"x{i}" for i in range(X.shape[1])]
    if X.shape[1] >= WIDE and X.dtype.kind != "M":
        return names, _Block(X, named=False), len(X)
    return names, _Columns([X[:, i] for i in range(X.shape[1])], named=False), len(X)


def _read_narwhals(X):
    import narwhals as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        raise TypeError(
            f"cannot read a table from {type(X).__name__}; pass a pandas, polars or pyarrow table, or a 2-D array"
        ) from None
    names = frame.columns
    _refuse_duplicates(names)
    return list(names), _Columns([_narwhals_column(frame[name], nw) for name in names], named=True), len(frame)


def _narwhals_column(series, nw):
    missing = series.is_null().to_numpy()
    present = series.filter(~series.is_null())
    if series.dtype in (nw.Categorical, nw.Enum):
        categories = series.dtype.categories if series.dtype == nw.Enum else series.cat.get_categories().to_list()
        return pd.Series(pd.Categorical(_spread(present.to_list(), missing), categories=list(categories)))
    if not missing.any() and series.dtype.is_numeric():
        return series.to_numpy()
    return _spread(present.to_list(), missing)


def _spread(values, missing):
    column = np.empty(len(missing), dtype=object)
    column[~missing] = values
    column[missing] = None
    return column


def take_column(X, name):
    """(column, table without it) of a DataFrame of any library."""
    if isinstance(X, pd.DataFrame):
        return X[name], X.drop(columns=[name])
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    return pd.Series(_narwhals_column(frame[name], nw), name=name), frame.drop(name).to_native()


def _one_row(X):
    return pd.DataFrame({name: [value] for name, value in X.items()})


def as_column(y):
    if isinstance(y, pd.Series):
        return y
    if hasattr(y, "to_list") and hasattr(y, "dtype") and not isinstance(y, np.ndarray):
        import narwhals as nw

        return _narwhals_column(nw.from_native(y, series_only=True), nw)
    if isinstance(y, np.ndarray) or hasattr(y, "__array__"):
        return np.asarray(y)
    return pd.Series(list(y)).infer_objects().to_numpy()


def _refuse_duplicates(names):
    if len(set(names)) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(f"column name {twice!r} occurs twice; rename or drop one of the two")


def _can_be_block(dtype):
    return (
        not isinstance(dtype, pd.CategoricalDtype) and getattr(dtype, "kind", "O") in "OiubfUS" and dtype != "category"
    )


# ---------------------------------------------------------------------------------------------------- coding


class _Columns:
    """Columns coded one by one."""

    def __init__(self, columns, named):
        self.columns, self.named = columns, named

    @property
    def width(self):
        return len(self.columns)

    def take(self, keep):
        return _Columns([column[keep] for column in self.columns], self.named)

    def select(self, positions):
        return _Columns([self.columns[i] for i in positions], self.named)

    def factorize(self, names, declared, handle_unknown="error"):
        pairs = [_code_column(c, n, declared.get(n), handle_unknown) for n, c in zip(names, self.columns)]
        return [codes for codes, _ in pairs], [states for _, states in pairs]


class _Block:
    """Many columns of one dtype, factorized as one block: a wide table costs one pass, not thousands."""

    def __init__(self, values, named):
        self.values, self.named = values, named

    @property
    def width(self):
        return self.values.shape[1]

    def take(self, keep):
        return _Block(self.values[keep], self.named)

    def select(self, positions):
        return self if positions == list(range(self.values.shape[1])) else _Block(self.values[:, positions], self.named)

    def factorize(self, names, declared, handle_unknown="error"):
        values = self.values
        n_rows, n_columns = values.shape
        flat, uniques = _factorize(values.ravel(), names[0])
        if len(uniques) * n_columns > max(4 * values.size, 1 << 20):  # few shared values: no gain from the block
            return _Columns([values[:, i] for i in range(n_columns)], self.named).factorize(
                names, declared, handle_unknown
            )
        plain = pd.Index(uniques).tolist()
        order = {state: rank for rank, state in enumerate(order_states(plain))}
        rank = np.array([order[_plain(state)] for state in plain] + [-1], dtype=np.int64)
        ranks = rank[flat].reshape(n_rows, n_columns)  # -1 stays -1
        ordered = sorted(order, key=order.get)
        present = np.zeros((n_columns, len(ordered) + 1), dtype=bool)
        present[np.arange(n_columns), ranks] = True  # slot -1 takes the missing cells
        present = present[:, :-1]
        lookup = np.full((n_columns, len(ordered) + 1), -1, dtype=np.int64)
        states = []
        free = np.array([name not in declared for name in names])
        lookup[:, :-1][free] = np.where(present[free], present[free].cumsum(1) - 1, -1)
        is_float = values.dtype.kind == "f"
        counts = present.sum(1)
        for column, name in enumerate(names):
            if free[column]:
                found = [ordered[i] for i in np.flatnonzero(present[column])]
                if is_float and counts[column] > MAX_FLOAT_STATES:
                    _check_float_states(name, np.array(found), bool((ranks[:, column] < 0).any()))
                states.append(found)
            else:
                states.append(declared[name])
                for code, state in enumerate(declared[name]):
                    if state in order:
                        lookup[column, order[state]] = code
                unseen = np.flatnonzero(present[column] & (lookup[column, :-1] < 0))
                if len(unseen) and handle_unknown == "error":
                    raise _unseen(name, ordered[unseen[0]])
        if is_float:
            _refuse_infinite(names, ordered, present)
        codes = lookup[np.arange(n_columns), ranks]
        largest = max(len(s) for s in states)
        return np.asfortranarray(codes.astype(_smallest_dtype(largest))), states


def _code_column(column, name, declared, handle_unknown):
    dtype = getattr(column, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype):
        codes, found = column.array.codes, [_plain(c) for c in dtype.categories.tolist()]
        if declared is None:
            return codes, found
        used = np.zeros(len(found) + 1, dtype=bool)
        used[codes] = True
        return _relabel(codes, found, declared, name, handle_unknown, used[:-1])
    codes, uniques = _factorize(column, name)
    kind = getattr(uniques.dtype, "kind", "O")
    found = [_plain(value) for value in pd.Index(uniques).tolist()]
    if kind == "f" or (found and isinstance(found[0], float)):
        _refuse_infinite([name], found, np.ones((1, len(found)), dtype=bool))
        if declared is None and len(found) > MAX_FLOAT_STATES:
            _check_float_states(name, np.array([v for v in found if isinstance(v, float)]), bool((codes < 0).any()))
    if declared is not None:
        return _relabel(codes, found, declared, name, handle_unknown)
    states = order_states(found)
    return _relabel(codes, found, states, name, handle_unknown)


def _factorize(values, name):
    try:
        return pd.factorize(values)
    except TypeError:
        bad = next((v for v in values if not _hashable(v)), None)
        raise ValueError(f"column {name!r} holds {bad!r}, which cannot be a state; use a string or a number") from None


def _relabel(codes, found, states, name, handle_unknown, used=None):
    """Codes into `found` -> codes into `states`; -1 picks the last slot, which stays -1."""
    position = {state: code for code, state in enumerate(states)}
    table = np.array([position.get(state, -1) for state in found] + [-1], dtype=_smallest_dtype(max(len(states), 1)))
    if handle_unknown == "error" and (table[:-1] < 0).any():
        for state, code, is_used in zip(found, table, np.ones(len(found)) if used is None else used):
            if code < 0 and is_used:
                raise _unseen(name, state)
    return _look_up(table, codes), states


def _look_up(table, codes):
    """``table[codes]``; few states go through a byte translation, several times faster than fancy indexing."""
    if table.dtype != np.int8 or len(table) > 256:
        return table[codes]
    translation = np.full(256, -1, dtype=np.int8)  # -1 as an unsigned byte is 255
    translation[: len(table) - 1] = table[:-1]
    return np.frombuffer(codes.astype(np.uint8).tobytes().translate(translation.tobytes()), dtype=np.int8)


def _unseen(name, value):
    return ValueError(
        f"column {name!r} holds {value!r}, unseen in fit; pass state_names={{{name!r}: [...]}} or handle_unknown='missing'"
    )


def _check_float_states(name, values, has_missing):
    if has_missing and (values == np.round(values)).all():
        return  # integers that a missing cell turned into floats
    raise ValueError(
        f"column {name!r} holds {len(values)} different float values; discretise it first, "
        "for example with pgm_bma.MDLDiscretizer (needs a target) or pgm_bma.FrequencyDiscretizer"
    )


def _refuse_infinite(names, values, present):
    infinite = [i for i, value in enumerate(values) if isinstance(value, float) and not np.isfinite(value)]
    for i in infinite:
        column = int(np.argmax(present[:, i]))
        raise ValueError(
            f"column {names[column]!r} holds an infinite value ({values[i]}, inf); replace it, or set it to NaN to call it missing"
        )


def _plain(value):
    """numpy scalars as Python scalars; everything else as it is."""
    return (
        value.item()
        if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64))
        else value
    )


def _is_missing(value):
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def _hashable(value):
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _shorten(names, limit=6):
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"
