"""From a table as read to a table to learn from: columns chosen, numbers binned, every column a categorical with its states.

States are declared from the whole table, so that all folds of a cross-validation know the same states; cut points that look
at the class are found inside the folds, by a pipeline (`pipeline`). Whatever is left out is said in one line.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from pgm_bma import discretize
from pgm_bma.commands.console import count, listed
from pgm_bma.commands.tabular_files import closest, is_code, number_text
from pgm_bma.foundation.table import MAX_FLOAT_STATES, order_states

FEW_NUMBERS = 10  # columns of at most so many different numbers keep them as states under --discretize
BINNINGS = {
    "mdl": discretize.MDLDiscretizer,
    "frequency": discretize.FrequencyDiscretizer,
    "width": discretize.WidthDiscretizer,
}


@dataclass
class Prepared:
    """What the methods see. `frame` holds categoricals, and floats in the columns that are still to be binned."""

    frame: pd.DataFrame
    index: pd.Index
    source: str
    target: pd.Series | None = None
    to_bin: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def in_brief(self):
        missing = int(self.frame.isna().sum().sum())
        cells = max(self.frame.size, 1)
        share = f"{100 * missing / cells:.1f} % of the cells missing" if missing else "no cell missing"
        return f"{self.source}: {count(len(self.frame), 'row')}, {count(self.frame.shape[1], 'column')}, {share}"


def prepare(raw, target=None, drop=(), keep_constant=False, binning=None):
    """Choose and check the columns of a `RawTable`.

    Parameters
    ----------
    raw : RawTable
    target : name of the class column, or None; it leaves the frame
    drop : names of columns to leave out
    keep_constant : keep columns that have one value only
    binning : whether (and how) numbers will be binned; None makes many different numbers an error

    Returns
    -------
    Prepared
    """
    frame, notes = raw.frame.copy(), list(raw.notes)
    if target is not None and target not in frame:
        raise ValueError(f"{raw.source} has no column {target!r}: {closest(target, frame.columns)}")
    frame = frame.drop(columns=_columns_to_drop(frame, drop, raw))
    if target is not None and target not in frame:
        raise ValueError(f"--drop names the target {target!r}; it cannot be left out")
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
    to_bin = [name for name, column in frame.items() if binning and _is_many_numbers(column)]
    if to_bin:
        notes.append(f"discretised ({binning}): {listed(to_bin)}")
    for name in frame.columns:
        if name in to_bin:
            frame[name] = frame[name].astype(float)
        else:
            _check_discrete(name, frame[name])
            frame[name] = _categorical(frame[name])
    return Prepared(frame, raw.index, raw.source, classes, to_bin, notes)


def conform(raw, prepared):
    """A second table in the states of the first: (frame, target texts or None, notes). Unseen values become missing."""
    absent = [name for name in prepared.frame.columns if name not in raw.frame]
    if absent:
        raise ValueError(
            f"{raw.source} lacks {listed(absent)}, which {prepared.source} has; add the column, empty if unknown"
        )
    notes, columns = list(raw.notes), {}
    for name, known in prepared.frame.items():
        column = raw.frame[name]
        if name in prepared.to_bin:
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
    if prepared.target is not None and prepared.target.name in raw.frame:
        given = raw.frame[prepared.target.name]
        target = _in_categories(given, prepared.target.cat.categories).rename(prepared.target.name)
        lost = given.notna() & target.isna()
        if lost.any():
            raise ValueError(
                f"{raw.source}: the target {target.name!r} holds {str(given[lost].iloc[0])!r}, a class that {prepared.source} "
                "does not have"
            )
    return pd.DataFrame(columns), target, notes


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


def _columns_to_drop(frame, drop, raw):
    """--drop a --drop b, or --drop a,b; a name that holds a comma is tried first as it is; what numbers the rows has left."""
    wanted = []
    for entry in drop:
        wanted += [entry] if entry in frame else [part.strip() for part in entry.split(",")]
    for name in wanted:
        if name not in frame and name != raw.index.name:
            raise ValueError(f"--drop names {name!r}, which {raw.source} does not have: {closest(name, frame.columns)}")
    return [name for name in dict.fromkeys(wanted) if name in frame]


def _classes(column, source):
    present = column.dropna()
    if present.empty:
        raise ValueError(f"{source}: the target {column.name!r} has no values")
    if present.nunique() < 2:
        raise ValueError(
            f"{source}: the target {column.name!r} has one class only, {listed(present.iloc[:1])}; at least two are needed"
        )
    if _is_number(column) and present.nunique() > MAX_FLOAT_STATES:
        raise ValueError(
            f"{source}: the target {column.name!r} holds {present.nunique()} different numbers; cut it into a few classes first"
        )
    _check_discrete(column.name, column)
    return _categorical(column)


def _is_number(column):
    return pd.api.types.is_numeric_dtype(column.dtype)


def _is_many_numbers(column):
    return _is_number(column) and column.nunique() > FEW_NUMBERS


def _check_discrete(name, column):
    """Refuse numbers with many values, and texts that are nearly all different."""
    values = column.dropna()
    different = values.nunique()
    if different <= MAX_FLOAT_STATES:
        return
    if _is_number(column):
        raise ValueError(
            f"column {name!r} holds {different} different numbers; add --discretize frequency or width (or mdl, where a class "
            f"is predicted), or leave it out with --drop {_quoted(name)}"
        )
    texts = pd.Series(values.unique())
    strange = texts[~np.isfinite(pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float))]
    if 0 < len(strange) <= 5:
        text = strange.iloc[0]
        row = int(np.argmax((column == text).to_numpy())) + 1
        raise ValueError(
            f"column {name!r} holds numbers, but also {text!r} (row {row}); correct it, or add --missing {_quoted(text)}"
        )
    if different > len(values) / 2:
        raise ValueError(
            f"column {name!r} holds {different} different texts in {len(values)} rows; leave it out with --drop {_quoted(name)}"
        )


def _categorical(column):
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    values = column.dropna()
    if _is_number(column) and (values == values.round()).all():
        states = sorted({int(value) for value in values})
    else:
        states = order_states(values.unique().tolist())
    return pd.Series(pd.Categorical(column, categories=states), name=column.name, index=column.index)


def _in_categories(column, categories):
    if pd.api.types.is_numeric_dtype(categories.dtype):
        column = pd.to_numeric(column, errors="coerce")
    elif _is_number(column):
        numbers = pd.to_numeric(categories.astype(str).to_series(), errors="coerce")  # 1 may be written 1.0 there
        texts = {number: text for number, text in zip(numbers[::-1], categories[::-1]) if not is_code(str(text))}
        column = column.map(lambda value: value if pd.isna(value) else texts.get(float(value), number_text(value)))
    return pd.Series(pd.Categorical(column, categories=categories), index=column.index)


def _quoted(text):
    return str(text) if str(text).replace("-", "").replace("_", "").isalnum() else repr(str(text))
