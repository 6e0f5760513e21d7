"""From a table as read to a table to learn from: columns chosen, numbers binned, every column a categorical with its states.

A survey file has columns that are no answers: numbers of cases, dates, weights, remarks, codes for "no answer". What the user
says of the columns are `Roles`; what the words of the command do not settle is collected over all columns and raised once, as
`ColumnProblems`, with the command to run instead. States are declared from the whole table, so that all folds of a
cross-validation know the same states; cut points that look at the class are found inside the folds, by a pipeline
(`pipeline`). Whatever is left out is said in one line.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from pgm_bma import discretize
from pgm_bma.commands.column_problems import (
    FEW_NUMBERS,
    ColumnProblem,
    ColumnProblems,
    code_suspicions,
    discrete_problem,
    has_code,
    is_number,
    problems_of,
    rare_texts,
)
from pgm_bma.commands.output import count, listed
from pgm_bma.commands.tabular_files import closest, is_code, number_text
from pgm_bma.foundation.tables.table import MAX_FLOAT_STATES, order_states

BINNINGS = {
    "mdl": discretize.MDLDiscretizer,
    "frequency": discretize.FrequencyDiscretizer,
    "width": discretize.WidthDiscretizer,
}
LISTS = ("categorical", "numeric", "ordered")
_LEADING_NUMBER = re.compile(r"[^\d-]*(-?\d+(?:[.,]\d+)?)")


class Roles(NamedTuple):
    """Columns by what the user says of them. missing_codes : pairs (column or None for all, numbers that mean missing)."""

    id: str | None = None
    weight: str | None = None
    categorical: tuple = ()
    numeric: tuple = ()
    ordered: tuple = ()
    missing_codes: tuple = ()

    @classmethod
    def of(cls, arguments, raw):
        """From the words of a command, checked against the columns of the table."""
        for option in ("id", "weight"):
            name = getattr(arguments, option)
            if name is not None and name not in raw.frame and name != raw.index.name:
                raise ValueError(_no_column(option, name, raw))
        lists = {option: named(option, getattr(arguments, option), raw) for option in LISTS}
        twice = [name for name in lists["categorical"] if name in lists["numeric"]]
        if twice:
            raise ValueError(f"{twice[0]!r} is both --categorical and --numeric; say which")
        for name, _ in arguments.missing_codes:
            if name is not None and name not in raw.frame:
                raise ValueError(_no_column("missing-codes", name, raw))
        return cls(arguments.id, arguments.weight, **lists, missing_codes=tuple(arguments.missing_codes))


@dataclass
class Prepared:
    """Table as the methods see it. `frame` holds categoricals, and floats in the columns `to_bin`, which a discretiser cuts, and
    `numbers`, which the method takes as they are."""

    frame: pd.DataFrame
    index: pd.Index
    source: str
    target: pd.Series | None = None
    to_bin: list = field(default_factory=list)
    numbers: list = field(default_factory=list)
    weights: np.ndarray | None = None
    notes: list = field(default_factory=list)
    aside: pd.DataFrame | None = None

    def in_brief(self):
        missing = int(self.frame.isna().sum().sum())
        cells = max(self.frame.size, 1)
        share = f"{100 * missing / cells:.1f} % of the cells missing" if missing else "no cell missing"
        return f"{self.source}: {count(len(self.frame), 'row')}, {count(self.frame.shape[1], 'column')}, {share}"


NOTHING_SAID = Roles()


def prepare(
    raw, target=None, drop=(), keep_constant=False, binning=None, said=NOTHING_SAID, takes_numbers=False, aside=()
):
    """Choose and check the columns of a `RawTable`.

    Parameters
    ----------
    raw : RawTable
    target : name of the class column, or None; it leaves the frame
    drop : names of columns to leave out
    keep_constant : keep columns that have one value only
    binning : whether (and how) numbers will be binned
    said : Roles, what the user said of the columns
    takes_numbers : whether the method takes numbers as they are; if not, many different ones that nobody bins are a problem
    aside : names of columns that take no part, and are kept as they are

    Returns
    -------
    Prepared

    Raises
    ------
    ColumnProblems
        All that the columns leave unclear, with the command to run instead.
    """
    frame, index, weights, more = apply_roles(raw, said)
    notes = [*raw.notes, *more]
    if target is not None and target not in frame:
        if target in raw.frame:
            raise ValueError(f"{target!r} is the target; it cannot be --id or --weight too")
        raise ValueError(f"{raw.source} has no column {target!r}: {closest(target, frame.columns)}")
    frame = frame.drop(columns=[name for name in named("drop", drop, raw) if name in frame])
    if target is not None and target not in frame:
        raise ValueError(f"--drop names the target {target!r}; it cannot be left out")
    kept_aside = _set_aside(frame, aside, target, said)
    frame = frame.drop(columns=list(kept_aside.columns))
    classes = None
    if target is not None:
        classes = _classes(frame.pop(target), raw.source)
    constant = [name for name, column in frame.items() if column.nunique() < (1 if keep_constant else 2)]
    if constant:
        what = "column has" if len(constant) == 1 else "columns have"
        notes.append(f"left out: {listed(constant)}, because the {what} no more than one value")
        frame = frame.drop(columns=constant)
    if not frame.shape[1]:
        raise ValueError(f"{raw.source} has no column with more than one value to learn from")
    suspicions, told, cures = code_suspicions(frame, said)
    problems = problems_of(frame, said, index.name != "row", binning or takes_numbers)
    if problems:
        if suspicions:
            problems.append(ColumnProblem(f"{'; '.join(suspicions)}; if that means missing, add {told}", cures))
        raise ColumnProblems(raw.source, problems)
    if suspicions:
        notes.append(f"{'; '.join(suspicions)}; taken as a value: if it means missing, add {told}")
    measured = [name for name, column in frame.items() if (binning or takes_numbers) and _is_to_bin(name, column, said)]
    to_bin, numbers = (measured, []) if binning else ([], measured)
    if to_bin:
        notes.append(f"discretised ({binning}): {listed(to_bin)}")
    if numbers:
        notes.append(f"numbers taken as they are: {listed(numbers)}")
    notes += rare_texts(frame, said)
    kept = [n for n, c in frame.items() if binning and n not in to_bin and is_number(c) and c.nunique() > FEW_NUMBERS]
    kept = [name for name in kept if name not in said.categorical]
    if kept:
        notes.append(
            f"whole numbers kept as they are: {listed(kept)}; --numeric {','.join(map(str, kept))} cuts them too"
        )
    for name in frame.columns:
        if name in measured:
            frame[name] = frame[name].astype(float)
        else:
            frame[name] = _categorical(frame[name], name in said.ordered)
    return Prepared(frame, index, raw.source, classes, to_bin, numbers, weights, notes, kept_aside)


def conform(raw, prepared, said=NOTHING_SAID):
    """A second table in the states of the first: (frame, target texts or None, index, notes). Unseen values become missing."""
    given_frame, index, _, notes = apply_roles(raw, said, is_test=True)
    absent = [name for name in prepared.frame.columns if name not in given_frame]
    if absent:
        raise ValueError(
            f"{raw.source} lacks {listed(absent)}, which {prepared.source} has; add the column, empty if unknown"
        )
    notes, columns = [*raw.notes, *notes], {}
    for name, known in prepared.frame.items():
        column = given_frame[name]
        if name in prepared.to_bin or name in prepared.numbers:
            columns[name] = pd.to_numeric(column, errors="coerce").astype(float)
        else:
            columns[name] = _in_categories(column, known.cat.categories)
        lost = column.notna() & columns[name].isna()
        if lost.any():
            value = str(column[lost].iloc[0])
            notes.append(
                f"{raw.source}: {count(int(lost.sum()), 'cell')} of {name!r} taken as missing; {value!r} is not among the values "
                f"of {prepared.source}"
            )
    target = None
    if prepared.target is not None and prepared.target.name in given_frame:
        given = given_frame[prepared.target.name]
        target = _in_categories(given, prepared.target.cat.categories).rename(prepared.target.name)
        lost = given.notna() & target.isna()
        if lost.any():
            raise ValueError(
                f"{raw.source}: the target {target.name!r} holds {str(given[lost].iloc[0])!r}, a class that {prepared.source} "
                "does not have"
            )
    return pd.DataFrame(columns), target, index, notes


def pipeline(estimator, prepared, binning=None, n_bins=3):
    """The estimator, behind a discretiser if there are numbers to bin; cut points are then found anew in every fit."""
    if not prepared.to_bin:
        return estimator
    from sklearn.pipeline import Pipeline

    options = {} if binning == "mdl" else {"n_bins": n_bins}
    bins = BINNINGS[binning](columns=prepared.to_bin, **options)
    return Pipeline([("bins", bins), ("columns", InformativeColumns()), ("model", estimator)])


class InformativeColumns(TransformerMixin, BaseEstimator):
    """Drop categoricals that have a single state, such as the one bin of a number that tells nothing about the class."""

    def fit(self, X, y=None):
        several = [name for name, column in X.items() if len(column.cat.categories) > 1]
        self.columns_ = several or list(X.columns[:1])
        return self

    def transform(self, X):
        return X[self.columns_]


def _set_aside(frame, names, target, said):
    """The columns `names`: numbers as they are, unless they are said to be names; all others as categoricals."""
    absent = [name for name in names if name not in frame]
    if absent or target in names:
        wrong = absent[0] if absent else target
        raise ValueError(f"{wrong!r} is a covariate or outcome; it cannot be dropped, or be id, weight or target, too")
    aside = frame[list(names)].copy()
    for name in names:
        if not is_number(aside[name]) or name in said.categorical:
            aside[name] = _categorical(aside[name])
    return aside


def _classes(column, source):
    present = column.dropna()
    if present.empty:
        raise ValueError(f"{source}: the target {column.name!r} has no values")
    if present.nunique() < 2:
        raise ValueError(
            f"{source}: the target {column.name!r} has one class only, {listed(present.iloc[:1])}; at least two are needed"
        )
    if is_number(column) and present.nunique() > MAX_FLOAT_STATES:
        raise ValueError(
            f"{source}: the target {column.name!r} holds {present.nunique()} different numbers; cut it into a few classes first"
        )
    problem = None if is_number(column) else discrete_problem(column.name, column)
    if problem is not None:
        raise ColumnProblems(source, [problem])
    return _categorical(column)


def _is_to_bin(name, column, said):
    """Measured numbers, and what the user calls numeric; a nominal number (whole, few values) is cut on request only."""
    if not is_number(column) or name in said.categorical or name in said.ordered:
        return False
    values = column.dropna()
    different = values.nunique()
    if name in said.numeric:
        return different > 2
    return different > (FEW_NUMBERS if (values != values.round()).any() else MAX_FLOAT_STATES)


def _categorical(column, ordered=False):
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    values = column.dropna()
    if is_number(column) and (values == values.round()).all():
        states = sorted({int(value) for value in values})
    else:
        states = order_states(values.unique().tolist())
    if ordered:
        states = order_by_number(states)
    return pd.Series(pd.Categorical(column, categories=states, ordered=ordered), name=column.name, index=column.index)


def order_by_number(states):
    """States by the first number in them (30-34 before 100), those without one behind, in their own order."""

    def key(state):
        found = _LEADING_NUMBER.match(str(state))
        return (0, float(found.group(1).replace(",", ".")), str(state)) if found else (1, 0.0, str(state))

    return sorted(states, key=key)


def _in_categories(column, categories):
    if pd.api.types.is_numeric_dtype(categories.dtype):
        column = pd.to_numeric(column, errors="coerce")
    elif is_number(column):
        numbers = pd.to_numeric(categories.astype(str).to_series(), errors="coerce")  # 1 may be written 1.0 there
        texts = {number: text for number, text in zip(numbers[::-1], categories[::-1]) if not is_code(str(text))}
        column = column.map(lambda value: value if pd.isna(value) else texts.get(float(value), number_text(value)))
    known = column.where(column.isin(categories))  # other values are missing; pandas 4 refuses them
    return pd.Series(pd.Categorical(known, categories=categories), index=column.index)


# ------------------------------------------------------------------------------------- what the user says of columns


def named(option, entries, raw):
    """--option a --option b, or --option a,b; a name that holds a comma is tried first as it is."""
    found = []
    for entry in entries:
        found += [entry] if entry in raw.frame else [part.strip() for part in entry.split(",")]
    for name in found:
        if name not in raw.frame and name != raw.index.name:
            raise ValueError(_no_column(option, name, raw))
    return tuple(dict.fromkeys(found))


def _no_column(option, name, raw):
    return f"--{option} names {name!r}, which {raw.source} does not have: {closest(name, raw.frame.columns)}"


def apply_roles(raw, roles, is_test=False):
    """(frame without id and weights, index, weights or None, notes): the roles that need no look at the other columns."""
    frame, index, weights, notes = raw.frame.copy(), raw.index, None, []
    for name, codes in roles.missing_codes:
        for column in [name] if name is not None else frame.columns:
            if column in frame and column not in (roles.id, roles.weight):
                frame[column] = frame[column].mask(has_code(frame[column], codes))
    for name in roles.numeric:
        if name in frame and not pd.api.types.is_numeric_dtype(frame[name].dtype):
            numbers = pd.to_numeric(frame[name].str.replace(",", ".", regex=False), errors="coerce")
            lost = frame[name].notna() & numbers.isna()
            if lost.any():
                text = str(frame[name][lost].iloc[0])
                notes.append(
                    f"{name!r}: {count(int(lost.sum()), 'cell')} without a number, such as {text!r}, taken as missing"
                )
            frame[name] = numbers
    if roles.id is not None and roles.id in frame:
        index = pd.Index(frame.pop(roles.id), name=roles.id)
    if roles.weight is not None and roles.weight in frame:
        weights = _weights(frame.pop(roles.weight), raw.source)
    elif roles.weight is not None and not is_test:
        raise ValueError(f"--weight names {roles.weight!r}, which numbers the rows")
    return frame, index, weights, notes


def _weights(column, source):
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = numbers.isna() | ~(numbers >= 0) | np.isinf(numbers)
    if wrong.any():
        row = int(np.argmax(wrong.to_numpy())) + 1
        raise ValueError(
            f"{source}: {count(int(wrong.sum()), 'row')} without a weight of at least zero in {column.name!r} (the first is row "
            f"{row}); give every row one"
        )
    if not numbers.sum() > 0:
        raise ValueError(f"{source}: all weights in {column.name!r} are zero")
    return numbers.to_numpy(dtype=float)
