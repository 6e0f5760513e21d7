"""Data in: tables of discrete values become integer codes, once, with a Schema that remembers what they meant.

Goes in: DataFrame (pandas, or polars and pyarrow through narwhals), 2-D array, one dict or Series as a single row.
Comes out: a `Table` of codes (n_samples, n_columns) in the smallest signed dtype, column-contiguous, -1 = missing.
States keep their Python types. Their order: as declared in `state_names`, else the categories of a categorical (unused
ones kept), else sorted, mixed types by (type name, value).
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_array

from pgm_bma.foundation.faces.validation import Choice, bounded, check
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.columns import (
    MAX_FLOAT_STATES,
    WIDE,
    as_column,
    categoricals,
    check_states,
    code_columns,
    column_names,
    default_names,
    is_named,
    is_one_row,
    made_frame,
    missing_cells,
    order_states,
    read_columns,
    refuse_broken_texts,
    smallest_dtype,
    take_column,
    unmasked,
)

__all__ = [
    "MAX_FLOAT_STATES",
    "NO_VALUE",
    "WIDE",
    "Schema",
    "Table",
    "as_column",
    "categoricals",
    "check_states",
    "check_weights",
    "column_names",
    "decode",
    "default_names",
    "encode",
    "encode_like",
    "encode_target",
    "fold",
    "is_named",
    "is_one_row",
    "label_array",
    "made_frame",
    "missing_cells",
    "order_states",
    "pack",
    "read_columns",
    "refuse_broken_texts",
    "take_column",
    "unmasked",
]

MOST_NAMED = 6  # columns in one warning
MIN_WEIGHT = 1e-100
MAX_WEIGHT = 1e11  # rows; their log scores, near 1e12, are rounded to 1e-4; scores of more rows are noise
NO_VALUE = "(no value)"  # the one state of a column that holds nothing in the training rows


@dataclass(frozen=True)
class Schema:
    """Names and states of the columns, in order.

    Examples
    --------
    >>> from pgm_bma.foundation.tables.table import Schema
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

    A column with one value only, or with none, stays: it has one state and so adds nothing to any model. A warning names it.
    Where a column is empty and has no declared states, that state is `NO_VALUE`, which all its rows get.

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
    >>> from pgm_bma.foundation.tables.table import encode
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
    coded, states = columns.factorize(names, declared, "undeclared")
    states = [tuple(column_states) or (NO_VALUE,) for column_states in states]
    for name, column_states in zip(names, states):
        refuse_broken_texts(name, column_states)
    codes = pack(coded, states)
    if len(codes):
        nothing = {name for name, top in zip(names, codes.max(axis=0)) if top < 0}
        warn_of_idle(names, states, nothing, declared)
    return Table(Schema(tuple(names), tuple(states)), codes, weights)


def warn_of_idle(names, states, nothing, declared):
    """Warn once of columns without a value (those in `nothing` are) and of undeclared ones with one value only."""
    lone = {name: s[0] for name, s in zip(names, states) if len(s) == 1 and name not in declared}
    empty = [name for name in names if name in nothing or lone.get(name) == NO_VALUE]
    constant = [name for name in lone if name not in empty]
    parts = [_hold(some, what) for some, what in ((constant, "one value only"), (empty, "no value")) if some]
    if parts:
        many = len(constant) + len(empty) > 1
        cure = ", or declare states in state_names," if empty else ""
        warn(
            f"{' and '.join(parts)} in these rows: {'they add' if many else 'it adds'} nothing to the model; drop "
            f"{'them' if many else 'it'}{cure} to silence this"
        )


def _hold(names, what):
    return (
        f"{'columns' if len(names) > 1 else 'column'} {_shorten(names)} {'hold' if len(names) > 1 else 'holds'} {what}"
    )


def encode_like(X, schema, handle_unknown="error", *, by_position=False, of_network=False, quiet=False):
    """Encode a table for prediction with the states of a fitted schema; columns are matched by name.

    Extra columns are ignored. An array (with `by_position` any table) is matched by position. An unseen value is an error,
    or missing when `handle_unknown="missing"`, with one warning that counts them by column (none under "ignore" or `quiet`);
    `of_network` words it for a network that the caller gave. Returns codes (n_samples, n_columns).

    Examples
    --------
    >>> from pgm_bma.foundation.tables.table import Schema, encode_like
    >>> encode_like({"b": 7, "a": "y"}, Schema(("a",), (("n", "y"),))).tolist()
    [[1]]
    """
    check("handle_unknown", handle_unknown, Choice("error", "missing", "ignore"))
    names, columns, _ = read_columns(X)
    if columns.named and not by_position:
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
    unknown = "no state" if of_network and handle_unknown == "error" else handle_unknown
    quiet, unknown = quiet or unknown == "ignore", "missing" if unknown == "ignore" else unknown
    unseen: dict = {}
    coded, _ = columns.factorize(schema.names, dict(zip(schema.names, map(list, schema.states))), unknown, unseen)
    if unseen and not quiet:
        warn(_unseen_words(unseen, of_network))
    return pack(coded, schema.states)


def _unseen_words(unseen, of_network):
    """One message for all columns. unseen : {column: (number of cells, one value)}"""
    whose = "outside the states of that node" if of_network else "unseen in fit"
    cure = "pass handle_unknown='error' to raise an error instead"
    if len(unseen) == 1:
        ((name, (n_cells, value)),) = unseen.items()
        values = f"{n_cells} {'value' if n_cells == 1 else 'values'} {whose}, such as {value!r}"
        declare = "" if of_network else f", or declare them: state_names={{{name!r}: [...]}}"
        return f"column {name!r} holds {values}: taken as missing; {cure}{declare}"
    shown = [f"{name!r} ({n_cells}, such as {value!r})" for name, (n_cells, value) in list(unseen.items())[:MOST_NAMED]]
    more = f" and {len(unseen) - len(shown)} more" if len(unseen) > len(shown) else ""
    declare = "" if of_network else ", 'ignore' to silence this, or declare them in state_names"
    return f"{len(unseen)} columns hold values {whose}: {', '.join(shown)}{more}; taken as missing; {cure}{declare}"


def encode_target(y, name, states=None, unknown="undeclared", keep_missing=False, cure="drop those rows"):
    """Encode a target column: (codes, states). Missing targets are an error that tells their count, or -1 under `keep_missing`.

    A value that is not among `states` is an error too, or gets the code -1 when `unknown="missing"`.
    """
    column = as_column(y)
    n_missing = int(missing_cells(name, column).sum())
    if n_missing and not keep_missing:
        raise ValueError(
            f"target {name!r} has {n_missing} missing {'value' if n_missing == 1 else 'values'} (NaN); {cure}"
        )
    if len(column) == 0 and states is None and not isinstance(column.dtype, pd.CategoricalDtype):
        raise ValueError(f"target {name!r} has no rows; declare its classes in state_names to get the prior")
    declared = {} if states is None else {name: check_states(name, states)}
    coded, found = code_columns([column], [name], declared, unknown)
    refuse_broken_texts(name, found[0])
    return pack(coded, found)[:, 0], tuple(found[0])


def fold(codes, weights=None):
    """Fold equal rows into one; the code -1 (missing) is a value like any other.

    Returns (rows, row_weights, inverse): distinct rows in lexicographic order, their total weight, and for every row of
    `codes` the position of its distinct row. Sorted order makes a repeated row and a weight bit-equal.
    """
    key, size = np.zeros(len(codes), dtype=np.int64), 1
    for column in range(codes.shape[1]):
        values = codes[:, column].astype(np.int64) + 1
        width = int(values.max(initial=0)) + 1
        if size * width > 2**62:
            distinct, key = np.unique(key, return_inverse=True)
            size = len(distinct)
        key = key * width + values
        size *= width
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    totals = np.bincount(inverse, weights).astype(float)
    return np.take(codes.T, first, axis=1).T, totals, inverse  # column-contiguous


def decode(codes, schema):
    """The inverse of `encode`: a DataFrame with the original values, NaN where missing."""
    columns = {}
    for position, (name, states) in enumerate(zip(schema.names, schema.states)):
        values = codes[:, position]
        column = label_array(states)[np.maximum(values, 0)]
        known = (values >= 0) & (states != (NO_VALUE,))
        columns[name] = column if known.all() else pd.Series(column).where(known)
    return pd.DataFrame(columns)


def label_array(states):
    """States as a 1-D array: a plain dtype when they share one type, else objects."""
    kinds = {type(state) for state in states}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        labels = np.array(list(states))
        # numpy drops a NUL at the end of a text, and makes floats of -1 next to 2**63
        if labels.tolist() == list(states) and type(labels.tolist()[0]) in kinds:
            return labels
    return np.fromiter(states, dtype=object, count=len(states))


def check_weights(sample_weight, n_rows):
    """Weights as floats, or None; negative, NaN, infinite or all-zero weights are errors, and so is a sum above MAX_WEIGHT."""
    if sample_weight is None:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            weights = np.asarray(bounded("sample_weight", sample_weight), dtype=float)
    except (TypeError, ValueError, OverflowError, np.exceptions.ComplexWarning) as error:
        raise ValueError(f"sample_weight must hold one number per row; {error}") from None
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
    if n_rows and not (weights > 0).any():
        raise ValueError("sample_weight is zero for every row; at least one row must have a positive weight")
    with np.errstate(over="ignore"):
        total = weights.sum()
    if 0 < total < MIN_WEIGHT:
        raise ValueError(f"sample_weight adds up to {total:.3g} rows, where computing underflows; multiply the weights")
    if total > MAX_WEIGHT:
        raise ValueError(
            f"sample_weight adds up to {total:.3g} rows, more than {MAX_WEIGHT:.3g}, whose log scores are lost in rounding; "
            "divide the weights by a constant"
        )
    return weights


def pack(coded, states):
    """Column codes -> one (n_samples, n_columns) array in the smallest dtype, column-contiguous."""
    codes = coded
    if not isinstance(coded, np.ndarray):
        largest = max((len(s) for s in states), default=1)
        codes = np.empty((len(coded[0]) if coded else 0, len(coded)), dtype=smallest_dtype(largest), order="F")
        for position, column in enumerate(coded):
            codes[:, position] = column
    codes[:, [tuple(s) == (NO_VALUE,) for s in states]] = 0  # no value is what such a column always holds
    return codes


def _shorten(names, limit=6):
    names = list(names)
    shown = ", ".join(repr(name) for name in names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def whole_batch(X):
    """A pyarrow RecordBatch as the table of that one batch; anything else as it is."""
    if type(X).__name__ != "RecordBatch" or type(X).__module__ != "pyarrow.lib":
        return X
    import pyarrow

    return pyarrow.Table.from_batches([X])


def as_table(X, estimator, fitting=False):
    """X in a form that `table` reads, or a clear error; arrays go through scikit-learn's checks."""
    X = whole_batch(X)
    if fitting and table.is_one_row(X):
        raise ValueError(f"a {type(X).__name__} is one row, and fit needs a table; pass a DataFrame or 2D array")
    if X is None or isinstance(X, (str, bytes)) or np.isscalar(X):
        raise ValueError(
            f"{type(estimator).__name__} needs a table of discrete values, got {X!r}; pass a DataFrame or 2D array"
        )
    if np.ma.isMaskedArray(X) or (getattr(getattr(X, "dtype", None), "kind", "O") in "US" and np.ndim(X) == 2):
        return table.unmasked(X)  # check_array drops the mask, and refuses bytes
    if hasattr(X, "tocsr") or isinstance(X, np.ndarray) or (hasattr(X, "__array__") and not table.is_named(X)):
        return check_array(
            X, dtype=None, ensure_all_finite=False, ensure_min_samples=0, ensure_min_features=1, estimator=estimator
        )
    if not hasattr(X, "__len__"):
        raise TypeError(f"cannot read a table from {type(X).__name__}; pass a DataFrame or 2D array")
    return X
