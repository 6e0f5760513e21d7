"""Tables with numeric columns: which columns are numeric, and the same table with them cut into intervals."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import brief, is_hashable
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.cut_points import bin_labels, bin_values, elementary_edges, mdl_cut_points

MOST_STATES = 20  # distinct whole numbers that are still states
_GLANCE = 2000  # rows


def as_frame(X, names=None):
    """Any table as a pandas DataFrame; unnamed columns are x0, x1, ... (or `names`)."""
    if isinstance(X, pd.DataFrame):
        return X
    if table.is_one_row(X):
        return table.made_frame([dict(X)])
    if table.is_named(X) and not isinstance(X, (list, tuple)):
        return table.made_frame({name: table.take_column(X, name)[0] for name in table.column_names(X)})
    frame = table.made_frame(X)
    if not table.is_named(X):
        wanted = table.default_names(frame.shape[1])
        frame.columns = wanted if names is None or len(names) != frame.shape[1] else list(names)
    return frame


def warn_of_cuts(names):
    """One line that says which columns were cut, and by what."""
    shown = ", ".join(repr(name) for name in names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    warn(
        f"numbers of {'column' if len(names) == 1 else 'columns'} {shown} were cut into intervals as MDLDiscretizer does, "
        "inside this fit, other columns are states; name them in numeric_columns, or take them as states by "
        "categorical_columns, to silence this"
    )


def numeric_names(frame, numeric_columns=None, categorical_columns=None, many=True):
    """Columns that are numeric: named so, or numbers that are not whole, or more than 20 different numbers.

    Columns named as categorical are not; nor are flags, texts and categoricals. many=False: whole numbers are states, however many.
    """
    given = {
        parameter: _listed(parameter, columns, frame.columns)
        for parameter, columns in (("numeric_columns", numeric_columns), ("categorical_columns", categorical_columns))
    }
    both = set(given["numeric_columns"]) & set(given["categorical_columns"])
    if both:
        raise ValueError(f"column {sorted(both, key=str)[0]!r} is named as numeric and as categorical; drop one")
    found = []
    for name in frame.columns:
        if name in given["categorical_columns"]:
            continue
        if name in given["numeric_columns"] or _looks_numeric(frame[name], many):
            found.append(name)
    return found


def _listed(parameter, columns, known):
    """The names of columns that a parameter lists, checked."""
    if columns is None:
        return []
    if isinstance(columns, (str, bytes)) or not hasattr(columns, "__iter__") or getattr(columns, "ndim", 1) != 1:
        raise ValueError(f"{parameter} must be a list of columns, got {brief(columns)}; write [{brief(columns, 40)}]")
    names = list(columns)
    unknown = [name for name in names if not is_hashable(name) or name not in known]
    if unknown:
        raise ValueError(f"{parameter} names {brief(unknown[0])}, which is no column of X")
    return names


def _looks_numeric(column, many):
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return False
    if pd.api.types.is_complex_dtype(column):
        raise ValueError(
            f"column {column.name!r} holds complex numbers; split them into real columns, or make them texts"
        )
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
        values = column.to_numpy()
        return many and _has_many(values, len(values) and int(values.max()) - int(values.min()))
    values = numbers(column)
    values = values[~np.isnan(values)]
    if not _is_whole(values):
        return True
    return many and _has_many(values, len(values) and values.max() - values.min())


def _has_many(values, span):
    """Whether whole numbers are more than can be states; a look at a few of them often tells."""
    if span < MOST_STATES:
        return False
    return len(np.unique(values[:_GLANCE])) > MOST_STATES or len(np.unique(values)) > MOST_STATES


def numbers(column):
    """Floats, NaN where a value is missing or no number; infinite values are an error that names the column."""
    if isinstance(column.dtype, pd.ArrowDtype):
        column = column.astype(object)  # pandas loses the missing cells of Arrow's decimals
    values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    if np.isinf(values).any():
        raise ValueError(
            f"column {column.name!r} holds an infinite value; replace it, or set it to NaN to call it missing"
        )
    return values


def find_cuts(frame, names, how, target, weights):
    """`Cuts` of the numeric columns: MDL cut points, or (how = "average") the edges of the elementary bins."""
    edges = []
    for name in names:
        values = numbers(frame[name])
        if np.isnan(values).all():
            raise ValueError(f"numeric column {name!r} has no values; drop it")
        if how == "average":
            edges.append(elementary_edges(values, weights=weights))
        else:
            edges.append(mdl_cut_points(values, target, weights))
    return Cuts(tuple(names), edges)


def without_uncut_wholes(cuts, frame, named):
    """The cuts, but for columns of whole numbers in which there is none: these stay states, so that nothing is lost.

    named : columns that are numeric in any case
    """
    values = [numbers(frame[name]) for name in cuts.names]
    kept = [
        len(edges) > 0 or name in named or not _is_whole(v[~np.isnan(v)])
        for name, edges, v in zip(cuts.names, cuts.edges, values)
    ]
    names, edges = zip(cuts.names, kept), zip(cuts.edges, kept)
    return Cuts(tuple(name for name, keep in names if keep), [edge for edge, keep in edges if keep])


def _is_whole(values):
    return np.array_equal(values, np.floor(values))


def cut_frame(frame, cuts):
    """The frame with intervals, as ordered categories, in place of numbers."""
    edges_of = dict(zip(cuts.names, cuts.edges))

    def column(name):
        if name not in edges_of:
            return frame[name]
        bins = bin_values(numbers(frame[name]), edges_of[name])
        return pd.Categorical.from_codes(bins, categories=bin_labels(edges_of[name]), ordered=True)

    return pd.DataFrame({name: column(name) for name in frame.columns}, index=frame.index)


def raw_values(frame, cuts):
    """(n_samples, n_numeric) floats, NaN where missing."""
    columns = [numbers(frame[name]) for name in cuts.names]
    return np.column_stack(columns) if columns else np.zeros((len(frame), 0))


def cut_series(cuts, posteriors):
    """{column: Series of the probability of a cut below each value of the index}."""
    return {
        name: pd.Series(posterior, index=edges, name=name)
        for name, edges, posterior in zip(cuts.names, cuts.edges, posteriors)
    }


def nothing_cut():
    """`Cuts` of no column."""
    return Cuts((), [])


class Cuts(NamedTuple):
    """Numeric columns and, for each, the rising edges of its bins."""

    names: tuple
    edges: list
