"""Kikuchi-Bayes: choose regions, make their interaction terms, weigh them (KIK section 3).

`terms` has tables and terms, `selection` and `criteria` say which regions, `weights` has tree and learned weights, `tuning` their
ridge and prior mass. Here they are put together, from a table that was read to a `KikuchiFit` that scores rows.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers import pairs
from pgm_bma.foundation.numbers._kernels import interaction
from pgm_bma.foundation.numbers.folds import weigh_repeats
from pgm_bma.foundation.numbers.graphs import maximum_tree
from pgm_bma.foundation.numbers.pairs import count_classes_and_pairs
from pgm_bma.foundation.rows.blocks import Rows, as_is
from pgm_bma.foundation.rows.scan import NeedsRows
from pgm_bma.foundation.runtime.compiling import few_threads
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import add_missing_state, fill_missing, with_missing_state
from pgm_bma.kikuchi.criteria import cross_validated_tests
from pgm_bma.kikuchi.selection import SelectionOptions, divergence_tests, maximal_sets, select_regions
from pgm_bma.kikuchi.terms import (
    MAX_CELLS,
    ClassData,
    Terms,
    check_regions,
    class_data,
    count_tables,
    downward_closure,
    flat_table,
    interaction_terms,
    make_layout,
)
from pgm_bma.kikuchi.tuning import DEFAULT_STRENGTH, tune_weights
from pgm_bma.kikuchi.weights import (
    LearnedWeights,
    find_copies,
    learned_weights,
    some_of_many,
    too_many_contrasts,
    tree_weights,
)

# choices that look at one row after the other
_ROW_BY_ROW = {"criterion": ("log_loss", "error"), "prior": ("marginal",), "ridge": ("loo",)}
_INSTEAD = {"criterion": "criterion='divergence'", "prior": "prior='consistent'", "ridge": "ridge='cv' or a number"}
_PAIR_WORK = 500_000_000  # pairs x rows up to which the interactions of all pairs are counted in fit


def fit_kikuchi(data, options, regions=None, progress=None, sample=None):
    """Fit a Kikuchi-Bayes classifier.

    Parameters
    ----------
    data : ClassData
    options : KikuchiOptions
    regions : attribute tuples of the initial regions that hold the class, or None to select them
    progress : function (number of steps done) or None
    sample : ClassData of some of the rows, on which the ridge is tuned where `data` is visited in passes

    Returns
    -------
    KikuchiFit
    """
    if regions is None:
        regions, tests = choose_regions(data, options, progress)
    else:
        check_regions(regions, data.cardinalities, data.n_classes)
        regions, tests = maximal_sets([(), *(tuple(sorted(r)) for r in regions)]), []
    sets = downward_closure(regions)
    n_rows = 0 if isinstance(data.codes, Rows) else len(data.codes)
    with few_threads(n_rows * (data.n_classes - 1) * len(sets)):
        return _weigh(data, options, regions, tests, sets, progress, sample)


def _weigh(data, options, regions, tests, sets, progress, sample):
    """Terms and weights of chosen regions: `KikuchiFit`."""
    learned = options.weights == "learned"
    strength, ridge, path = options.strength, options.ridge, []
    if learned and ridge == "cv":
        tuned = data if sample is None else sample
        if sample is None and too_many_contrasts(data, sets):
            tuned = some_of_many(data, sets)
        strength, ridge, path = tune_weights(tuned, sets, options.prior, strength, progress=progress)
    strength = DEFAULT_STRENGTH if strength is None else strength
    terms = interaction_terms(data, sets, options.prior, strength, leave_one_out=learned)
    result = None
    if learned:
        result = learned_weights(data, terms, ridge)
        weights = result.weights
        terms = terms._replace(reduced=None)
    elif options.weights == "tree":
        weights = tree_weights(sets, find_copies(data))
    else:
        weights = np.ones(len(sets))
    return KikuchiFit(regions, tests, terms, weights, strength, result, path)


def choose_regions(data, options, progress=None):
    """Initial regions by the criterion of the options: (attribute tuples, list of FocusTests)."""
    if options.structure == "tan":
        return tan_regions(data), []
    selection = SelectionOptions(
        options.prior,
        DEFAULT_STRENGTH if options.strength is None else options.strength,
        options.significance_level,
        options.n_resamples,
        screen=options.screen and options.cycles != "table",  # the table's order needs every z
    )

    def test(chosen, candidates, size):
        if options.criterion == "divergence":
            # only a comparison of p between foci asks for resamples of them all, and singles are never compared
            level_options = selection._replace(screen=options.screen) if size == 1 else selection
            return divergence_tests(data, chosen, candidates, level_options, progress)
        return cross_validated_tests(data, chosen, candidates, selection, options.criterion, progress)

    return select_regions(data, options.level, test, options.cycles, options.significance_level)


def tan_regions(data):
    """The pairs of the tree of highest I(X_i; X_j | C), as regions; all single attributes lie in them."""
    counts, _ = count_classes_and_pairs(data.codes, data.cardinalities, data.target, data.n_classes, data.weights)
    information = pairs.conditional_mutual_information(counts, data.cardinalities)
    parents = maximum_tree(information)
    arcs = [tuple(sorted((child, int(parent)))) for child, parent in enumerate(parents) if parent >= 0]
    return maximal_sets([(), *((a,) for a in range(len(parents))), *arcs])


def count_information(data, wanted):
    """(n, n) with the interactions of all pairs, or (n,) information gains when pairs are not wanted or too many."""
    n_features, n_rows = len(data.cardinalities), 0 if isinstance(data.codes, Rows) else len(data.codes)
    if wanted and n_features**2 * (data.n_classes + n_rows) <= _PAIR_WORK:
        return interaction_information(data)
    return information_gains(data)


def interaction_information(data):
    """`pairs.interaction_information` of rows in memory or visited in passes."""
    if not isinstance(data.codes, Rows):
        return pairs.interaction_information(
            data.codes, data.target, data.weights, data.cardinalities, data.n_classes, MAX_CELLS
        )
    n = len(data.cardinalities)
    result = np.diag(information_gains(data))
    layout = make_layout(list(combinations(range(n), 2)), data.cardinalities, data.n_classes)
    counts, totals = count_tables(data, layout)
    for t, (i, j) in enumerate(layout.sets):
        if totals[t] > 0:
            result[i, j] = result[j, i] = interaction(flat_table(counts, layout, t), totals[t])
    return result


def information_gains(data):
    """I(X_i; C) of every attribute in nats, over the rows that have it."""
    layout = make_layout([(a,) for a in range(len(data.cardinalities))], data.cardinalities, data.n_classes)
    counts, _ = count_tables(data, layout)
    return np.array([pairs.information_gain(flat_table(counts, layout, a)) for a in range(len(layout.sets))])


# ------------------------------------------------------------------------------------------------ from a table to data


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
            f"sample_weight adds up to {total:.3g} rows, more than {table.MAX_WEIGHT:.3g}, where priors are lost in "
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
                f"region {sorted(map(str, members))} holds {unknown[0]!r}, which is not a column and not the target {target!r}"
            )
        attributes = sorted(schema.index(name) for name in members - {target})
        sets.append((tuple(attributes), target in members))
    return sets


class KikuchiOptions(NamedTuple):
    """Every choice of a fit; the words are those of `KikuchiBayesClassifier`. structure "tan" replaces the selection."""

    level: int = 2
    significance_level: float = 0.1
    n_resamples: int = 100
    cycles: str = "allow"
    prior: str = "consistent"
    strength: float | None = None
    weights: str = "learned"
    ridge: float | str = "cv"
    criterion: str = "divergence"
    structure: str = "kikuchi"
    screen: bool = True

    @classmethod
    def from_values(cls, values: dict, structure: str) -> "KikuchiOptions":
        """Read them off the parameters of an estimator, by name."""
        own = {name: values[name] for name in cls._fields if name in values}
        return cls(**own, strength=values["prior_strength"], structure=structure)

    def check_tree(self, holding):
        """An error where tree weights meet regions of more than two attributes; holding : regions given by hand, or None."""
        if self.weights != "tree":
            return
        largest = self.level if holding is None else max((len(s) for s in holding), default=0)
        if largest > 2:
            what = f"level={self.level}" if holding is None else f"a region of {largest} attributes"
            raise ValueError(f"weights='tree' takes pairs only, but {what} was passed; use weights='learned'")


class KikuchiFit(NamedTuple):
    """regions: maximal attribute sets; tests: one FocusTests per level; terms with their weights (n_sets,).

    strength : total prior mass used; learned : LearnedWeights or None; tuning : points tried to choose mass and ridge
    """

    regions: list
    tests: list
    terms: Terms
    weights: np.ndarray
    strength: float
    learned: LearnedWeights | None
    tuning: list
