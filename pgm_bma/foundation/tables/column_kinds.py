"""What a column of a survey is, seen from its name and values: an id, a date, free text, weights; codes that mean missing.

Only pointed out, never acted upon. A column is a pandas Series of texts or numbers.
"""

import re

import numpy as np
import pandas as pd

from pgm_bma.foundation.runtime.messages import warn

WHAT_IT_IS = {
    "id": "names the rows",
    "date": "holds dates or times",
    "text": "holds free text",
}
FEW = 12  # rows; fewer say nothing about what a column is
_ID_NAME = re.compile(
    r"(?:(?:.*[ _.-])?(?:id|ids|uuid|guid|nr|no|num|number|key|caseid|case|row|index|rowid|respid|respondent|lfd|lfdn|kennung))"
    r"|.*(?:ID|Id|Nr|_id)"
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
    """What the column is, where it is nothing to learn from as it stands.

    Parameters
    ----------
    name : str
        Its name; "id" in it helps.
    column : pandas.Series
        Texts or numbers; missing cells do not count.

    Returns
    -------
    str or None
        "id" (names the rows: unique and named so, or counting up, or one text each), "date", "text" (free text), or None.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.foundation.tables.column_kinds import column_kind
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


def looks_like_weights(name: str, column: pd.Series) -> bool:
    """Whether a column of positive numbers is called as weights are.

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
    >>> from pgm_bma.foundation.tables.column_kinds import missing_codes
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
    gap = max(3 * float(np.diff(others).max()), 5.0)  # a run has its own gaps
    below = [code for code in suspects if code < 0 <= others[0]]
    return below + [code for code in suspects if code > 0 and code - others[-1] > gap]


def _is_whole(values):
    return pd.api.types.is_integer_dtype(values.dtype) or bool((values == values.round()).all())


def _are_days(values):
    """Whether all are days written as 20240131."""
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
        Columns that somebody has declared: nothing is said about them.

    Raises
    ------
    ValueError
        When no column is left that could be learned from.
    """
    found = {}
    for position, (name, values) in enumerate(zip(names, states)):
        if len(values) >= FEW and name not in settled:
            seen = codes[:, position] >= 0
            n_seen = int(seen.sum()) if weights is None else float(weights[seen].sum())
            kind = _kind_of_states(name, values, n_seen)
            if kind is not None:
                found[name] = f"column {name!r} {WHAT_IT_IS[kind]} ({len(values)} different values in {n_seen:g} rows)"
    if found and len(found) == len(names):
        told = "; ".join(list(found.values())[:3])
        cure = "pass columns of answers, or categoricals to take them as they are"
        raise ValueError(f"{told}: there is nothing to learn from; {cure}")
    for name, told in found.items():
        cure = f"X.drop(columns=[{name!r}]) leaves it out, X[{name!r}].astype('category') takes it as it is"
        warn(f"{told} and adds noise only: {cure}")


def _kind_of_states(name, values, n_seen):
    """`column_kind` from the different values and the number of rows that have one."""
    values = pd.Series(list(values))
    if pd.api.types.is_datetime64_any_dtype(values.dtype):
        return "date"
    kind = column_kind(name, values)
    is_unique = len(values) >= n_seen
    if (kind == "id" and not is_unique) or (kind == "text" and len(values) <= max(20, 0.2 * n_seen)):
        return None
    return kind
