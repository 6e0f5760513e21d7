"""Kinds of columns: ids, dates, free text and weights by name and values; numeric columns, and tables with these cut.

Columns that name rows or hold dates are pointed out, never changed. A column is a pandas Series of texts or numbers.
"""

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import bounded, brief, is_hashable
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.cut_points import bin_labels, bin_values, elementary_edges, mdl_cut_points

WHAT_IT_IS = {
    "id": "names the rows",
    "date": "holds dates or times",
    "text": "holds free text",
    "code": "holds codes, whose size means nothing",
}
LARGEST = 1e100  # of a number: sums of squares stay finite
FEW = 12  # rows; fewer say nothing about what a column is
_ID_NAME = re.compile(
    r"(?:(?:.*[ _.-])?(?:id|ids|uuid|guid|nr|no|num|number|key|caseid|case|row|index|rowid|respid|respondent|lfd|lfdn|kennung))"
    r"|.*(?:ID|Id|Nr|_id)"
)
_REPEATED_ID = re.compile(
    r"(?:.*[ _.-])?(?:[Ii]d|ID|uuid|UUID|guid|GUID)|.*[a-z](?:ID|Id)"
)  # of a user or a hospital, in several rows
_CODE_NAME = re.compile(
    r"(?:.*[ _.-])?(?:(?:post|postal|zip)[ _.-]?(?:code|codes)?|postcodes?|zipcodes?|plz|phone|telephone|tel|fips|iban|isbn)\d*",
    re.IGNORECASE,
)
_WEIGHT_NAME = re.compile(
    r"(?:.*[ _.-])?(?:w|wt|wgt|weight|weights|gewicht|gewichtung|poids|peso|pond|wtg|pweight)\d*", re.IGNORECASE
)
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](?:\d{4}|\d{2})"
    r"|\d{1,2}[- ]?(?:jan|feb|mar|mär|apr|may|mai|jun|jul|aug|sep|oct|okt|nov|dec|dez)\w*[- ]?\d{2,4})"
    r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?|\d{1,2}:\d{2}(?::\d{2})?",
    re.IGNORECASE,
)
_CODES = [
    sign * code for sign in (-1, 1) for code in (7, 8, 9, 77, 88, 97, 98, 99, 997, 998, 999, 9997, 9998, 9999, 99999)
]
MISSING_CODES = frozenset(code for code in _CODES if code < 0 or code > 90)


def column_kind(name: str, column: pd.Series) -> str | None:
    """Return what the column is, where it is nothing to learn from as it stands.

    Parameters
    ----------
    name : str
        Its name; "id" in it helps.
    column : pandas.Series
        Texts or numbers; missing cells do not count.

    Returns
    -------
    str or None
        "id" (names the rows: unique and named so, or counting up, or one text each), "code" (a postcode, or an id that
        several rows share), "date", "text" (free text), or None.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.foundation.tables.kinds import column_kind
    >>> column_kind("when", pd.Series([f"{day}.03.2024" for day in range(1, 29)]))
    'date'
    >>> column_kind("case", pd.Series(range(5000, 5040)))
    'id'
    """
    values = column.dropna()
    if len(values) < FEW:
        return None
    distinct = values.nunique()
    if pd.api.types.is_numeric_dtype(values.dtype):
        if distinct >= FEW and _is_whole(values) and _CODE_NAME.fullmatch(str(name).strip()):
            return "code"
        if distinct < len(values) and _is_repeated_id(name, values):
            return "code"
        if distinct < len(values) or not _is_whole(values):
            return "date" if _is_whole(values) and distinct >= FEW and _are_days(values) else None
        counts = (values.diff().iloc[1:] == 1).all()
        return "id" if counts or _ID_NAME.fullmatch(str(name).strip()) else "date" if _are_days(values) else None
    texts = values.astype(str).str.strip()
    if distinct >= FEW and texts.iloc[:500].str.fullmatch(_DATE).mean() > 0.95:
        return "date"
    n_words = texts.str.count(r"\S+").mean()
    if distinct > max(20, 0.2 * len(texts)) and (n_words >= 3 or texts.str.len().mean() >= 30):
        return "text"
    if distinct == len(texts):
        return "id"
    return None


def _is_repeated_id(name, values):
    """Numbers of users, hospitals and the like, by their name."""
    if not pd.api.types.is_numeric_dtype(values.dtype) or not _REPEATED_ID.fullmatch(str(name).strip()):
        return False
    return values.nunique() > MOST_STATES and _is_whole(values)


def looks_like_weights(name: str, column: pd.Series) -> bool:
    """Return whether a column of positive numbers is called as weights are.

    Parameters
    ----------
    name : str
        Its name.
    column : pandas.Series
        Texts or numbers; missing cells do not count.

    Returns
    -------
    bool
        True for numbers of at least zero, not all whole, under a name such as weight, wt or Gewicht.
    """
    values = column.dropna()
    numeric = pd.api.types.is_numeric_dtype(values.dtype) and len(values) >= FEW
    return bool(numeric and _WEIGHT_NAME.fullmatch(str(name).strip()) and (values >= 0).all() and not _is_whole(values))


def missing_codes(column: pd.Series) -> list[int]:
    """Codes such as -9, 98 or 999 that stand outside the run of the other values, and so probably mean missing.

    Parameters
    ----------
    column : pandas.Series
        Texts or numbers; missing cells do not count.

    Returns
    -------
    list of int
        The codes, in rising order.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.foundation.tables.kinds import missing_codes
    >>> missing_codes(pd.Series([1, 2, 3, 4, 5, 2, 3, 1, 4, 5, -9, 99]))
    [-9, 99]
    >>> missing_codes(pd.Series(range(90, 110)))
    []
    """
    found = column.dropna().unique()
    if len(found) < 3:
        return []
    if not pd.api.types.is_numeric_dtype(column.dtype):
        numbers = pd.to_numeric(pd.Series(found), errors="coerce").to_numpy(dtype=float)
        codes = sorted(int(value) for value in numbers if value in MISSING_CODES)
        return codes if np.isnan(numbers).sum() == len(numbers) - len(codes) else []
    suspects = sorted(int(value) for value in found if value in MISSING_CODES)
    others = np.sort(np.array([value for value in found if value not in MISSING_CODES], dtype=float))
    if not suspects or len(others) < 2:
        return []
    gap = max(3 * float(np.diff(others).max()), 5.0)  # differences inside a run
    below = [code for code in suspects if code < 0 <= others[0]]
    return below + [code for code in suspects if code > 0 and code - others[-1] > gap]


def _is_whole(values):
    return pd.api.types.is_integer_dtype(values.dtype) or bool((values == values.round()).all())


def _are_days(values):
    """Return whether all are days written as 20240131."""
    if values.min() < 19000101 or values.max() > 21001231:
        return False
    return bool(((values // 100 % 100).between(1, 12) & (values % 100).between(1, 31)).all())


def warn_of_kinds(names: list, states: list, codes: np.ndarray, weights: np.ndarray | None, settled: set) -> None:
    """Warn of columns that name the rows, hold dates or free text; an error where all columns do.

    Parameters
    ----------
    names : list
        Names of the columns.
    states : list of sequences
        Their different values.
    codes : array of shape (n_samples, n_columns)
        Positions of the values in `states`, -1 where missing.
    weights : array of shape (n_samples,), optional
        A weight is a repetition of the row.
    settled : set
        Columns that the user has declared; they cause no message.

    Raises
    ------
    ValueError
        When no column is left that could be learned from.
    """
    found, measured = {}, []
    for position, (name, values) in enumerate(zip(names, states)):
        if len(values) >= FEW and name not in settled:
            seen = codes[:, position] >= 0
            n_seen = int(seen.sum()) if weights is None else float(weights[seen].sum())
            if _are_measured(values, n_seen):
                measured.append(name)
                continue
            kind = _kind_of_states(name, values, n_seen)
            if kind is not None:
                found[name] = f"column {name!r} {WHAT_IT_IS[kind]} ({len(values)} different values in {n_seen:g} rows)"
    if found and len(found) == len(names):
        told = "; ".join(list(found.values())[:3])
        cure = "pass columns of answers, or categoricals to take them as they are"
        raise ValueError(f"{told}: there is nothing to learn from; {cure}")
    for name, told in found.items():
        cure = f"X.drop(columns=[{name!r}]) leaves it out, X[{name!r}].astype('category') takes it as it is"
        warn(f"{told}{'' if WHAT_IT_IS['code'] in told else ' and adds noise only'}: {cure}")
    if measured:
        few, more = measured[:3], f" and {len(measured) - 3} more" if len(measured) > 3 else ""
        warn(
            f"numbers that differ from row to row are taken as states, which says little: {', '.join(map(repr, few))}{more}; cut "
            "them first, for example with pgm_bma.FrequencyDiscretizer(), or take them as they are with .astype('category')"
        )


def _are_measured(values, n_seen):
    """Numbers that are not all whole, most of them in one row."""
    if len(values) <= n_seen / 2 or not all(isinstance(value, (float, np.floating)) for value in values):
        return False
    return not all(float(value).is_integer() for value in values)


def warn_of_named_numbers(frame: pd.DataFrame, names: list) -> None:
    """Warn of columns taken as numbers that name the rows, or hold days or codes.

    Parameters
    ----------
    frame : pandas.DataFrame
        The rows of the fit.
    names : list
        Columns that were taken as numbers and that the user has not declared.
    """
    for name in names:
        values = pd.Series(numbers(frame[name]))
        kind = column_kind(str(name), values)
        if kind is not None:
            told = f"column {name!r} {WHAT_IT_IS[kind]} ({values.nunique()} different values in {values.count()} rows)"
            cure = f"X.drop(columns=[{name!r}]) leaves it out, numeric_columns=[{name!r}] takes it as it is"
            if kind == "code":
                cure += f", categorical_columns=[{name!r}] takes its values as names"
            warn(f"{told} and was taken as a number: {cure}")


def _kind_of_states(name, values, n_seen):
    """`column_kind` from the different values and the number of rows that have one."""
    values = pd.Series(list(values))
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return "date"
    kind = column_kind(name, values)
    is_unique = len(values) >= n_seen
    if kind == "id" and not is_unique and _is_repeated_id(name, values):
        return "code"
    if (kind == "id" and not is_unique) or (kind == "text" and len(values) <= max(20, 0.2 * n_seen)):
        return None
    return kind


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


def warn_of_cuts(names, uncut):
    """One line that says which columns were cut, and by what; `uncut` are those of them in which no cut was found."""
    shown = ", ".join(repr(name) for name in names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    idle = f"; {len(uncut)} of them got no cut, because they alone say nothing about the class" if uncut else ""
    warn(
        f"numbers of {'column' if len(names) == 1 else 'columns'} {shown} were cut into intervals as MDLDiscretizer does, "
        f"inside this fit (other columns are states){idle}; name them in numeric_columns, or take them as states by "
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
        if name in given["numeric_columns"] or (len(frame) and _looks_numeric(frame[name], many)):
            found.append(name)
    return found


def ordered_names(frame, ordered_columns=None, numeric_columns=None, categorical_columns=None, declared=()):
    """Columns whose states have an order: named so, or ordered categoricals that are not named as categorical or numeric.

    declared : columns with declared states, whose order is that of the declaration
    """
    given = _listed("ordered_columns", ordered_columns, frame.columns)
    others = {
        "numeric": _listed("numeric_columns", numeric_columns, frame.columns),
        "categorical": _listed("categorical_columns", categorical_columns, frame.columns),
    }
    for kind, names in others.items():
        both = [name for name in given if name in names]
        if both:
            raise ValueError(f"column {both[0]!r} is named as ordered and as {kind}; drop one")
    found = []
    for name, dtype in zip(frame.columns, frame.dtypes):
        is_category = isinstance(dtype, pd.CategoricalDtype)
        if name in given:
            if not is_category and not pd.api.types.is_numeric_dtype(dtype) and name not in declared:
                raise ValueError(
                    f"column {name!r} is named in ordered_columns and holds texts, whose order is not known; pass "
                    f"state_names={{{name!r}: [lowest, ..., highest]}}, or an ordered categorical"
                )
            found.append(name)
        elif is_category and dtype.ordered and not any(name in names for names in others.values()):
            found.append(name)
    return found


def _listed(parameter, columns, known):
    """The names of columns that a parameter lists, checked."""
    if columns is None:
        return []
    if isinstance(columns, (str, bytes)) or not hasattr(columns, "__iter__") or getattr(columns, "ndim", 1) != 1:
        raise ValueError(f"{parameter} must be a list of columns, got {brief(columns)}; write [{brief(columns, 40)}]")
    names = list(bounded(parameter, columns))
    unknown = [name for name in names if not is_hashable(name) or name not in known]
    if unknown:
        raise ValueError(f"{parameter} names {brief(unknown[0])}, which is not a column of X")
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
    return many and _has_many(values, len(values) and float(values.max()) - float(values.min()))


def _has_many(values, span):
    """Return whether whole numbers are more than can be states; a look at a few of them often tells."""
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


def check_size(name, values):
    """An error where a number of a numeric column is too large to compute with."""
    large = np.abs(np.nan_to_num(values, nan=0.0)) > LARGEST
    if large.any():
        raise ValueError(
            f"numeric column {name!r} holds {values[large][0]:.3g}, beyond {LARGEST:g}, whose square is not finite; divide the "
            "column, set the value to NaN, or name the column in categorical_columns"
        )


def find_cuts(frame, names, how, target, weights):
    """`Cuts` of the numeric columns: MDL cut points, or (how = "average") the edges of the elementary bins."""
    edges = []
    for name in names:
        values = numbers(frame[name])
        if np.isnan(values).all():
            raise ValueError(f"numeric column {name!r} has no values; drop it")
        if how == "average":
            check_size(name, values)
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
