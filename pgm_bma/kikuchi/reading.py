"""From a table that was read to what the rooms of Kikuchi-Bayes see: folded codes, and regions as attribute numbers."""

import numpy as np

from pgm_bma.foundation.numbers.folds import weigh_repeats
from pgm_bma.foundation.rows.blocks import Rows, as_is
from pgm_bma.foundation.rows.scan import NeedsRows
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import add_missing_state, fill_missing, with_missing_state
from pgm_bma.kikuchi.terms import ClassData, class_data

# choices that look at one row after the other
_ROW_BY_ROW = {"criterion": ("log_loss", "error"), "prior": ("marginal",), "ridge": ("loo",)}
_INSTEAD = {"criterion": "criterion='divergence'", "prior": "prior='consistent'", "ridge": "ridge='cv' or a number"}


def read_data(training, values, sample_rows):
    """(ClassData, columns that have a state for missing cells, a sample for what is tuned or None where that is all rows).

    values : parameters by name     sample_rows : rows of the sample, where rows are visited in passes
    """
    learned = values["weights"] == "learned"
    if not isinstance(training.codes, Rows):
        return *read_class_data(training, values["missing"], learned), None
    for name, refused in _ROW_BY_ROW.items():
        if values[name] in refused and (learned or name != "ridge"):
            raise NeedsRows(f"{name}={values[name]!r}", _INSTEAD[name])
    data, columns = rows_class_data(training, values["missing"])
    if not (learned and values["ridge"] == "cv"):
        return data, columns, None
    if sample_rows is None:
        raise NeedsRows("ridge='cv'", "sample_rows= a number, or ridge= a number")
    return data, columns, sample_data(data, sample_rows)


def read_class_data(training, missing, learned=False):
    """(ClassData of the folded rows, columns that have a state for missing cells, which is so when `missing` is "state").

    learned : weights are learned from rows that are left out, for which copies matter; else all repeats are data
    """
    schema, codes, columns = training.schema, training.codes, np.zeros(0, dtype=np.int64)
    if missing == "state":
        schema, codes, columns = add_missing_state(schema, codes)
    kind = np.result_type(codes, training.target)  # mostly a byte per cell
    cells = np.empty((len(codes), codes.shape[1] + 1), dtype=kind, order="F")
    cells[:, :-1], cells[:, -1] = codes, training.target
    rows, weights, _ = table.fold(cells, training.weights)
    del cells  # of a million rows every copy counts
    unit = 1.0
    if training.weights is not None:  # weights from 1 on are repetitions, smaller ones parts of a row
        shares = training.weights / training.weights.sum()
        unit = min(float(shares @ training.weights), 1.0)
    repeats = "data"
    if learned:
        weights, repeats = weigh_repeats(rows[:, :-1], rows[:, -1], weights)
        unit = 1.0 if repeats == "copies" else unit
    parts = rows[:, :-1], rows[:, -1], schema.cardinalities, len(training.classes), weights, unit, repeats
    return class_data(*parts), columns


def rows_class_data(training, missing):
    """The same of rows that are visited in passes, kept for many of them."""
    rows, columns, unit = training.codes, np.zeros(0, dtype=np.int64), 1.0
    _check_weight(rows.total_weight)
    schema = rows.schema
    if missing == "state":
        columns = np.flatnonzero(rows.has_missing)
        cardinalities, schema = schema.cardinalities, with_missing_state(schema, columns)
        rows = rows.viewed(fill_missing, columns, cardinalities)
    rows = rows.prepared(as_is)
    total, squares = rows.reduce(weight_sums)
    unit = min(float(squares / total), 1.0)
    return ClassData(rows, None, schema.cardinalities, len(training.classes), np.array([total]), unit, "data"), columns


def weight_sums(block):
    """(sum of the weights, sum of their squares) of a block."""
    if block.weights is None:
        return float(len(block.codes)), float(len(block.codes))
    return block.weights.sum(), block.weights @ block.weights


def sample_data(data, size):
    """`ClassData` in memory of about `size` evenly spaced rows of such data."""
    block, _ = data.codes.sample(size)
    rows, weights, _ = table.fold(np.column_stack([block.codes, block.target]).astype(np.int32), block.weights)
    return class_data(rows[:, :-1], rows[:, -1], data.cardinalities, data.n_classes, weights, data.unit)


def _check_weight(total):
    if total > table.MAX_WEIGHT:
        raise ValueError(
            f"sample_weight adds up to {total:.3g} rows, more than {table.MAX_WEIGHT:.3g}, beside which priors are lost in "
            "rounding; divide the weights by a constant"
        )


def attribute_sets(regions, schema, target):
    """[(sorted attribute numbers, whether the class is in)] of regions given by name."""
    if isinstance(regions, str) or not hasattr(regions, "__iter__"):
        raise ValueError(f"regions must be a list of lists of names, got {regions!r}")
    sets = []
    for region in regions:
        if isinstance(region, str) or not hasattr(region, "__iter__"):
            raise ValueError(f"a region must be a list of names, got {region!r}; write [{region!r}]")
        try:
            members = set(region)
        except TypeError:
            raise ValueError(f"region {list(region)!r} must hold names of columns, not lists of them") from None
        unknown = [name for name in region if name not in schema.names and name != target]
        if unknown:
            raise ValueError(
                f"region {sorted(map(str, members))} holds {unknown[0]!r}, which is no column and not the target {target!r}"
            )
        attributes = sorted(schema.index(name) for name in members - {target})
        sets.append((tuple(attributes), target in members))
    return sets
