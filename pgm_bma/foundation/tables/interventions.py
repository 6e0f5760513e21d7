"""Rows in which variables were set by an experiment.

Perfect interventions (Cooper and Yoo 1999): a row in which a variable was set says nothing about how that variable depends on
others. It is left out of the variable's own family and counts in all others. Soft interventions (Eaton and Murphy 2007): such rows
have another table of the variable with the same parents. They count in the score of the family, and not in the table that
describes the variable when nobody sets it.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.faces.validation import bounded, brief, check_choice, is_hashable, is_name
from pgm_bma.foundation.rows.scan import is_scan
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.columns import is_missing
from pgm_bma.foundation.tables.missing import as_frame

TYPES = ("perfect", "soft")
# parameters of `fit`, for docstrings
INTERVENTIONS = """interventions : list or str, optional
            For rows of experiments: per row the name of the variable that was set from outside, a list of such names, or None;
            or the name of a column of the table that holds these names, which is then no variable. A row in which a variable was
            set does not count in that variable's own family and counts in all others."""
PARAMETERS = f"""{INTERVENTIONS} This is what settles directions of
            arcs.
        intervention_type : {{"perfect", "soft"}}, default="perfect"
            "perfect": the set value depends on nothing. "soft": setting changes the table of the variable, which keeps its
            parents; such rows have another table in the score of the family."""
TARGETS = """intervention_targets : list or str, optional
            pgmpy's name for `interventions`."""
PARAMETERS_AND_TARGETS = f"{PARAMETERS}\n        {TARGETS}"


class Experiments(NamedTuple):
    """Variables that were set in each row, and how."""

    targets: list  # per row: a name, several names, or None
    soft: bool

    def held(self, names, codes, sample_weight):
        """(n_rows, n) bool: in which rows a variable was set. codes : of the rows with a weight, -1 missing"""
        return held_rows(self.targets, names, codes, sample_weight)


def given(interventions, intervention_targets, intervention_type="perfect"):
    """The experiments under either of their two names; an error if their type is unknown or stands alone."""
    if interventions is not None and intervention_targets is not None:
        raise ValueError("interventions and intervention_targets mean the same; pass one of them")
    check_choice("intervention_type", intervention_type, TYPES)
    found = intervention_targets if interventions is None else interventions
    if found is None and intervention_type == "soft":
        raise ValueError(
            "intervention_type='soft' says nothing without interventions; pass the variables that were set"
        )
    return found


def check_source(X, interventions):
    """Raise an error for interventions that cannot follow the rows of a scan, before it is folded."""
    if is_scan(X) and not _is_name(interventions):
        raise ValueError(
            "the rows of a scan have no order that interventions could follow; pass interventions= the name of a column"
        )


def split_experiments(X, interventions, intervention_type="perfect"):
    """(X without the column that holds the targets, `Experiments`); interventions : targets, or the name of that column."""
    soft = intervention_type == "soft"
    if not _is_name(interventions):
        return X, Experiments(list(bounded("interventions", interventions)), soft)
    if not table.is_named(X) or not is_name(interventions) or interventions not in table.column_names(X):
        raise ValueError(
            f"interventions={brief(interventions)} is not a column of X; pass the name of the column with the variables that "
            "were set, or a list with one entry per row"
        )
    frame = as_frame(X)
    return frame.drop(columns=[interventions]), Experiments(list(frame[interventions]), soft)


def _is_name(interventions):
    return isinstance(interventions, str) or not hasattr(interventions, "__iter__")


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
                    f"interventions names {brief(name)} in row {row}, which is not a variable; the variables are {list(names)}; "
                    "a row in which nothing was set has None"
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
