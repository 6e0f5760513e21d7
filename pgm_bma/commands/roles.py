"""What the user says about columns (`Roles`), what the table itself says about them, and one message for all that is unclear.

A survey file has columns that are no answers: numbers of cases, dates, weights, remarks, codes for "no answer". What the words
of the command do not settle is collected over all columns and raised once, as `ColumnProblems`, with the command to run
instead.
"""

import re
import shlex
from typing import NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.commands.console import count, listed
from pgm_bma.commands.tabular_files import closest, number_text
from pgm_bma.foundation.tables.column_kinds import WHAT_IT_IS, column_kind, looks_like_weights, missing_codes
from pgm_bma.foundation.tables.table import MAX_FLOAT_STATES

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


LISTS = ("categorical", "numeric", "ordered")


class Problem(NamedTuple):
    """line : what is wrong with a column and the cure in words      words : what to add to the command"""

    line: str
    words: list


class ColumnProblems(ValueError):
    """All that the columns leave unclear; `lines` is the message, `command` gives the words to run instead."""

    def __init__(self, source, problems):
        super().__init__("; ".join(problem.line for problem in problems))
        self.source, self.problems = source, problems

    def lines(self, words):
        """The message, with the command to run instead."""
        head = [problem.line for problem in self.problems]
        if len(head) > 1:
            head = [f"{self.source}: the columns need some words from you:", *(f"  {line}" for line in head)]
        return [*head, f"run instead: {shlex.join(['pgm-bma', *self.command(words)])}"]

    def command(self, words):
        added = {}
        for problem in self.problems:
            for option, value in problem.words:
                if value not in added.setdefault(option, []):
                    added[option].append(value)
        new = []
        for option, values in added.items():
            joined = option in ("--drop", "--missing-codes") and not any("," in value for value in values)
            new += [f"{option}={value}" for value in ([",".join(values)] if joined else values)]
        return [*words, *new]


def parse_codes(text):
    """``-9,99`` or ``COLUMN:-9,99`` as (column or None, numbers)."""
    name, separator, codes = text.rpartition(":")
    numbers = tuple(float(code) for code in codes.split(",") if code.strip())
    if not numbers or not np.isfinite(numbers).all():
        raise ValueError(f"{text!r} holds no numbers")
    return (name if separator else None), numbers


def codes_text(pair):
    """The inverse of `parse_codes`."""
    name, numbers = pair
    codes = ",".join(number_text(number) for number in numbers)
    return codes if name is None else f"{name}:{codes}"


def apply(raw, roles, is_test=False):
    """(frame without id and weights, index, weights or None, notes): the roles that need no look at the other columns."""
    frame, index, weights, notes = raw.frame.copy(), raw.index, None, []
    for name, codes in roles.missing_codes:
        for column in [name] if name is not None else frame.columns:
            if column in frame and column not in (roles.id, roles.weight):
                frame[column] = frame[column].mask(_is_code(frame[column], codes))
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


def problems_of(frame, roles, has_id, binning, supervised):
    """What the columns leave unclear: a list of `Problem`."""
    found = []
    for name, column in frame.items():
        if name in roles.categorical or name in roles.ordered or isinstance(column.dtype, pd.CategoricalDtype):
            continue
        strange = _strange_texts(column)
        if strange:
            found.append(_strange_problem(name, column, strange))
            continue
        kind = None if name in roles.numeric else column_kind(name, column)
        weighted = roles.weight is None and name not in roles.numeric and looks_like_weights(name, column)
        if kind is not None:
            cure = [("--id", name)] if kind == "id" and not has_id else [("--drop", name)]
            has_id = has_id or kind == "id"
            found.append(Problem(_kind_line(name, column, kind, cure[0][0]), cure))
        elif weighted and column.nunique() > MAX_FLOAT_STATES:
            line = f"column {name!r} looks like weights of the rows; say so with --weight {quoted(name)}"
            found.append(Problem(f"{line}, or --numeric {quoted(name)}", [("--weight", name)]))
        elif (problem := discrete_problem(name, column, binning, supervised)) is not None:
            found.append(problem)
    return found


def discrete_problem(name, column, binning=None, supervised=False):
    """Numbers with many values that nobody bins, numbers with a few texts among them, texts that are nearly all different."""
    values = column.dropna()
    different = values.nunique()
    if different <= MAX_FLOAT_STATES or (binning and pd.api.types.is_numeric_dtype(column.dtype)):
        return None
    if pd.api.types.is_numeric_dtype(column.dtype):
        more = " (or mdl, where a class is predicted)"
        line = (
            f"column {name!r} holds {different} different numbers; add --discretize frequency or width{more}, or leave it out "
            f"with --drop {quoted(name)}"
        )
        return Problem(line, [("--discretize", "mdl" if supervised else "frequency")])
    strange = _strange_texts(column)
    if strange:
        return _strange_problem(name, column, strange)
    if different > len(values) / 2:
        line = f"column {name!r} holds {different} different texts in {len(values)} rows; leave it out with --drop {quoted(name)}"
        return Problem(line, [("--drop", name)])
    return None


def _strange_texts(column):
    """The one to five texts of a column whose many other values are numbers."""
    if pd.api.types.is_numeric_dtype(column.dtype) or column.nunique() <= MAX_FLOAT_STATES:
        return []
    texts = pd.Series(column.dropna().unique())
    strange = texts[~np.isfinite(pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float))]
    return list(strange) if len(strange) <= 5 else []


def _strange_problem(name, column, strange):
    row = int(np.argmax((column == strange[0]).to_numpy())) + 1
    cure = f"correct it, or add --missing {quoted(strange[0])}"
    line = f"column {name!r} holds numbers, but also {strange[0]!r} (row {row}); {cure}"
    return Problem(line, [("--missing", each) for each in strange])


def code_suspicions(frame, roles):
    """(lines, the option as text, words to add): codes such as -9 or 99 outside the run of the other values."""
    suspects = {}
    for name, column in frame.items():
        if name not in roles.categorical and not isinstance(column.dtype, pd.CategoricalDtype):
            for code in missing_codes(column):
                suspects.setdefault(code, []).append(name)
    if not suspects:
        return [], "", []
    lines = []
    everywhere, words = [], {}
    for code, names in sorted(suspects.items()):
        holders = [name for name, column in frame.items() if _is_code(column, [code]).any()]
        if holders == names:
            everywhere.append(str(code))
        else:
            for name in names:
                words.setdefault(name, []).append(str(code))
    values = ([",".join(everywhere)] if everywhere else []) + [f"{name}:{','.join(c)}" for name, c in words.items()]
    options = [("--missing-codes", value) for value in values]
    for code, names in sorted(suspects.items()):
        n_cells = sum(int(_is_code(frame[name], [code]).sum()) for name in names)
        verb = "holds" if n_cells == 1 else "hold"
        lines.append(f"{count(n_cells, 'cell')} of {listed(names, 3)} {verb} {code}, far from the other values")
    return lines, " ".join(shlex.quote(f"{option}={value}") for option, value in options), options


def order_by_number(states):
    """States by the first number in them (30-34 before 100), those without one behind, in their own order."""

    def key(state):
        found = _LEADING_NUMBER.match(str(state))
        return (0, float(found.group(1).replace(",", ".")), str(state)) if found else (1, 0.0, str(state))

    return sorted(states, key=key)


def quoted(text):
    return str(text) if str(text).replace("-", "").replace("_", "").isalnum() else repr(str(text))


def _kind_line(name, column, kind, option):
    what = "different number" if pd.api.types.is_numeric_dtype(column.dtype) else "different text"
    different, cure = count(column.nunique(), what), "leave it out with --drop"
    if option == "--id":
        cure = f"say so with --id {quoted(name)}, or {cure}"
    return (
        f"column {name!r} {WHAT_IT_IS[kind]} ({different} in {count(int(column.notna().sum()), 'row')}); {cure} {quoted(name)}, or "
        f"take it as it is with --categorical {quoted(name)}"
    )


def _is_code(column, codes):
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.isin(codes)
    return pd.to_numeric(column.astype(object), errors="coerce").isin(codes)


def _weights(column, source):
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = numbers.isna() | ~(numbers >= 0) | np.isinf(numbers)
    if wrong.any():
        row = int(np.argmax(wrong.to_numpy())) + 1
        raise ValueError(
            f"{source}: {count(int(wrong.sum()), 'row')} without a weight of at least zero in {column.name!r} (row {row} first); "
            "give every row one"
        )
    if not numbers.sum() > 0:
        raise ValueError(f"{source}: all weights in {column.name!r} are zero")
    return numbers.to_numpy(dtype=float)


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
