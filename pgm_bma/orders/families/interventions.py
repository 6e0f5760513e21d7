"""Rows in which variables were set by an experiment (perfect interventions; Cooper and Yoo 1999).

A row in which a variable was set says nothing about how that variable depends on others: it is left out of the variable's own
family and counts in all others.
"""

import numpy as np

from pgm_bma.foundation.faces.validation import brief, is_hashable
from pgm_bma.foundation.rows.scan import is_scan
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.columns import is_missing
from pgm_bma.foundation.tables.missing import as_frame


def split_targets(X, interventions):
    """(X without the column that holds the targets, targets per row); interventions : targets, or the name of that column."""
    if is_scan(X):
        raise ValueError("interventions need the rows in memory; pass a DataFrame instead of a scan")
    if isinstance(interventions, str) or not hasattr(interventions, "__iter__"):
        if not table.is_named(X) or interventions not in table.column_names(X):
            raise ValueError(
                f"interventions={brief(interventions)} is no column of X; pass the name of the column with the variables that "
                "were set, or a list with one entry per row"
            )
        frame = as_frame(X)
        return frame.drop(columns=[interventions]), list(frame[interventions])
    return X, list(interventions)


def held_rows(targets, names, codes, sample_weight):
    """(n_rows, n) bool: in which rows a variable was set. codes : of the rows with a weight, -1 missing"""
    weights = np.ones(len(codes)) if np.ndim(sample_weight) == 0 else np.asarray(sample_weight, dtype=float)
    if len(targets) != len(weights):
        raise ValueError(
            f"interventions has {len(targets)} entries, X has {len(weights)} rows; pass one entry per row, None where nothing "
            "was set"
        )
    held = np.zeros((len(targets), len(names)), dtype=bool)
    position = {name: k for k, name in enumerate(names)}
    for row, target in enumerate(targets):
        for name in _names_in(target, position):
            if not is_hashable(name) or name not in position:
                raise ValueError(
                    f"interventions names {brief(name)} in row {row}, which is no variable; the variables are {list(names)}, and a "
                    "row in which nothing was set has None"
                )
            held[row, position[name]] = True
    held = held[weights > 0]
    wrong = np.argwhere(held & (codes < 0))
    if len(wrong):
        name = names[wrong[0, 1]]
        raise ValueError(
            f"interventions says that {name!r} was set in {len(wrong)} rows where its value is missing; fill in the value that it "
            "was set to, or drop these rows"
        )
    return held


def _names_in(target, position):
    if is_hashable(target) and target in position:
        return [target]
    if isinstance(target, (list, tuple, set, frozenset, np.ndarray)):
        return list(target)
    return [] if is_missing(target) else [target]
