"""From a table that was read to what the rooms of Kikuchi-Bayes see: folded codes, and regions as attribute numbers."""

import numpy as np

from pgm_bma.foundation import table
from pgm_bma.foundation.missing import add_missing_state
from pgm_bma.kikuchi.terms import class_data

MAX_WEIGHT = 1e12


def read_class_data(training, missing):
    """(ClassData of the folded rows, columns that have a state for missing cells, which is so when `missing` is "state")."""
    schema, codes, columns = training.schema, training.codes, np.zeros(0, dtype=np.int64)
    if missing == "state":
        schema, codes, columns = add_missing_state(schema, codes)
    rows, weights, _ = table.fold(
        np.column_stack([codes.astype(np.int32), training.target.astype(np.int32)]), training.weights
    )
    if weights.sum() > MAX_WEIGHT:
        raise ValueError(
            f"sample_weight adds up to {weights.sum():.3g} rows, more than {MAX_WEIGHT:.3g}, beside which priors are lost in "
            "rounding; divide the weights by a constant"
        )
    unit = 1.0
    if training.weights is not None:  # weights from 1 on are repetitions, smaller ones parts of a row
        shares = training.weights / training.weights.sum()
        unit = min(float(shares @ training.weights), 1.0)
    return class_data(rows[:, :-1], rows[:, -1], schema.cardinalities, len(training.classes), weights, unit), columns


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
