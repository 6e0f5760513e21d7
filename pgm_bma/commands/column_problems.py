"""Columns that need a decision: ids, dates, texts and numbers that a table leaves unclear, each with the words to add."""

import shlex
from typing import NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.commands.output import count, listed
from pgm_bma.foundation.tables.kinds import WHAT_IT_IS, column_kind, looks_like_weights, missing_codes
from pgm_bma.foundation.tables.table import MAX_FLOAT_STATES

MANY_TEXTS, FEW_ROWS = 100, 10  # with more texts than the first, of fewer rows each than the second, a note says so
MOST_LINES = 8  # of columns with the same problem
FEW_NUMBERS = 10  # columns of at most so many different numbers keep them as states under --discretize


class ColumnProblem(NamedTuple):
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
        head = _shortened(self.problems)
        if len(head) > 1:
            head = [f"{self.source}: some columns need a decision from you:", *(f"  {line}" for line in head)]
        return [*head, f"run instead: {shlex.join(['pgm-bma', *self.command(words)])}"]

    def command(self, words):
        added: dict[str, list[str]] = {}
        for problem in self.problems:
            for option, value in problem.words:
                if value not in added.setdefault(option, []):
                    added[option].append(value)
        new = []
        for option, values in added.items():
            joined = option in ("--drop", "--missing-codes") and not any("," in value for value in values)
            new += [f"{option}={value}" for value in ([",".join(values)] if joined else values)]
        return [*words, *new]


def _shortened(problems):
    """Lines of the problems: of many with the same cure the first `MOST_LINES`, and how many more there are."""
    options = [problem.words[0][0] if problem.words else "" for problem in problems]
    lines, shown = [], dict.fromkeys(options, 0)
    for problem, option in zip(problems, options):
        shown[option] += 1
        if shown[option] <= MOST_LINES:
            lines.append(problem.line)
    more = {option: n - MOST_LINES for option, n in shown.items() if n > MOST_LINES}
    lines += [f"{count(n, 'more column')} with the same cure, {option}" for option, n in more.items()]
    return lines


def is_number(column):
    return pd.api.types.is_numeric_dtype(column.dtype)


def has_code(column, codes):
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.isin(codes)
    return pd.to_numeric(column.astype(object), errors="coerce").isin(codes)


def problems_of(frame, roles, has_id, takes_numbers):
    """List what the columns leave unclear: a list of `ColumnProblem`."""
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
            found.append(ColumnProblem(_kind_line(name, column, kind, cure[0][0]), cure))
        elif weighted and column.nunique() > MAX_FLOAT_STATES:
            line = f"column {name!r} looks like weights of the rows; say so with --weight {quoted(name)}"
            found.append(ColumnProblem(f"{line}, or --numeric {quoted(name)}", [("--weight", name)]))
        elif (problem := discrete_problem(name, column, takes_numbers)) is not None:
            found.append(problem)
    return found


def discrete_problem(name, column, takes_numbers=False):
    """Numbers with many values that nobody bins, numbers with a few texts among them, texts that are nearly all different."""
    values = column.dropna()
    different = values.nunique()
    if takes_numbers and pd.api.types.is_numeric_dtype(column.dtype):
        return None
    if different <= MAX_FLOAT_STATES and not _is_measured(values, different):
        return None
    if pd.api.types.is_numeric_dtype(column.dtype):
        line = (
            f"column {name!r} holds {different} different numbers; add --discretize frequency or width, or leave it out with "
            f"--drop {quoted(name)}"
        )
        return ColumnProblem(line, [("--discretize", "frequency")])
    strange = _strange_texts(column)
    if strange:
        return _strange_problem(name, column, strange)
    if different > len(values) / 2:
        line = f"column {name!r} holds {different} different texts in {len(values)} rows; leave it out with --drop {quoted(name)}"
        return ColumnProblem(line, [("--drop", name)])
    return None


def rare_texts(frame, said):
    """A note on every column whose many texts occur a few times each: no problem, and seldom what was meant."""
    found = []
    for name, column in frame.items():
        if is_number(column) or name in said.categorical or name in said.ordered:
            continue
        different, n = column.nunique(), int(column.notna().sum())
        if different > MANY_TEXTS and n < FEW_ROWS * different:
            found.append(
                f"{name!r} has {different} different texts, {n / different:.1f} rows each: little can be learned from it; "
                f"--drop {quoted(name)} leaves it out, --categorical {quoted(name)} silences this"
            )
    return found


def _is_measured(values, different):
    """Numbers that are not all whole and differ from row to row: no states, however few the rows."""
    return (
        pd.api.types.is_numeric_dtype(values.dtype)
        and different > max(FEW_NUMBERS, len(values) / 2)
        and bool((values != values.round()).any())
    )


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
    return ColumnProblem(line, [("--missing", each) for each in strange])


def code_suspicions(frame, roles):
    """(lines, the option as text, words to add): codes such as -9 or 99 outside the run of the other values."""
    suspects: dict[int, list] = {}
    for name, column in frame.items():
        if name not in roles.categorical and not isinstance(column.dtype, pd.CategoricalDtype):
            for code in missing_codes(column):
                suspects.setdefault(code, []).append(name)
    if not suspects:
        return [], "", []
    lines, everywhere = [], []
    words: dict[str, list[str]] = {}
    for code, names in sorted(suspects.items()):
        holders = [name for name, column in frame.items() if has_code(column, [code]).any()]
        if holders == names:
            everywhere.append(str(code))
        else:
            for name in names:
                words.setdefault(name, []).append(str(code))
    values = ([",".join(everywhere)] if everywhere else []) + [f"{name}:{','.join(c)}" for name, c in words.items()]
    options = [("--missing-codes", value) for value in values]
    for code, names in sorted(suspects.items()):
        n_cells = sum(int(has_code(frame[name], [code]).sum()) for name in names)
        verb = "holds" if n_cells == 1 else "hold"
        lines.append(f"{count(n_cells, 'cell')} of {listed(names, 3)} {verb} {code}, far from the other values")
    return lines, " ".join(shlex.quote(f"{option}={value}") for option, value in options), options


def _kind_line(name, column, kind, option):
    what = "different number" if pd.api.types.is_numeric_dtype(column.dtype) else "different text"
    different, cure = count(column.nunique(), what), "leave it out with --drop"
    if option == "--id":
        cure = f"say so with --id {quoted(name)}, or {cure}"
    return (
        f"column {name!r} {WHAT_IT_IS[kind]} ({different} in {count(int(column.notna().sum()), 'row')}); {cure} {quoted(name)}, or "
        f"take it as it is with --categorical {quoted(name)}"
    )


def quoted(text):
    return str(text) if str(text).replace("-", "").replace("_", "").isalnum() else repr(str(text))
