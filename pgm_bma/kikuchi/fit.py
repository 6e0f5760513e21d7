"""Kikuchi-Bayes: choose regions, make their interaction terms, weigh them (KIK section 3).

`terms` has tables and terms, `selection` and `criteria` say which regions, `weights` has tree and learned weights, `tuning` their
ridge and prior mass. Here they are put together, from codes to a `KikuchiFit` that scores rows. Nothing is iterated but the learned
weights.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers import pairs
from pgm_bma.foundation.numbers._score_kernels import interaction
from pgm_bma.foundation.numbers.graphs import maximum_tree
from pgm_bma.foundation.numbers.pair_groups import count_classes_and_pairs
from pgm_bma.foundation.rows.blocks import Rows
from pgm_bma.kikuchi.criteria import cross_validated_tests
from pgm_bma.kikuchi.selection import SelectionOptions, divergence_tests, maximal_sets, select_regions
from pgm_bma.kikuchi.terms import (
    MAX_CELLS,
    Terms,
    check_regions,
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
        """From the parameters of the face, by name."""
        own = {name: values[name] for name in cls._fields if name in values}
        return cls(**own, strength=values["prior_strength"], structure=structure)


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
