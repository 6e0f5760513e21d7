"""Tree-augmented naive Bayes (Friedman, Geiger and Goldszmidt 1997): the tree of highest conditional mutual information.

A whole tree has arcs between columns that have nothing to do with each other; the forest of highest BIC leaves these out.

The paper leaves the root and ties open. Here the root is the column that tells most about the class, ties go by name, and so
the tree does not depend on the order of the columns.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.augmented.model import Parameters
from pgm_bma.foundation.numbers.families import (
    cell_alpha,
    class_information,
    family_counts,
    posterior_mean,
    state_offsets,
)
from pgm_bma.foundation.numbers.graphs import maximum_tree, topological_order
from pgm_bma.foundation.numbers.pairs import (
    blocked_information,
    class_parts,
    conditional_mutual_information,
    count_classes_and_pairs,
    pair_blocks,
)
from pgm_bma.foundation.rows.blocks import Rows

MAX_PAIR_CELLS = 1 << 26  # of the pair tables of all columns: half a GB
MAX_BLOCKED_CELLS = 1 << 29  # of tables that are counted some columns at a time: with 500 rows some 10 s
MAX_BLOCKED_COLUMNS = 4096  # the information between all columns is another half a GB
# information below this difference counts as equal: rounding is about 1e-16 and depends on the order of columns and states
TIE_DIGITS = 12


class TANFit(NamedTuple):
    """parents (n_columns,), -1 = the class alone; information (n_columns, n_columns), nats; tables per column (n_classes,
    cardinality of the parent or 1, cardinality); parameters: the same in the layout of `augmented_naive_bayes`."""

    parents: np.ndarray
    information: np.ndarray
    tables: list
    parameters: Parameters


def fit_tan(
    codes,
    cardinalities,
    target,
    n_classes,
    weights=None,
    *,
    alpha=1.0,
    equivalent_sample_size=None,
    name_ranks=None,
    arcs="all",
):
    """The tree, and posterior-mean tables, each family from the rows that have its cells.

    codes : (n_samples, n_columns), or `Rows`, which bring their classes and weights

    name_ranks : (n_columns,) place of every column among the sorted names, for ties; default: the order of the columns
    arcs : "all", a whole tree, or "bic", those of the forest of highest BIC
    """
    cardinalities = np.asarray(cardinalities)
    pairs, totals, information, counts = _informed(codes, cardinalities, target, n_classes, weights)
    ranks = np.arange(len(cardinalities)) if name_ranks is None else name_ranks
    gains = information - arc_penalties(cardinalities, n_classes, totals.sum()) if arcs == "bic" else information
    parents = rooted_tree(gains, _observed_information(counts, cardinalities), ranks)
    if arcs == "bic":
        parents = np.where(gains[np.arange(len(parents)), parents] > 0, parents, -1)
    tables = []
    for family in _families(pairs, parents, codes, cardinalities, target, n_classes, weights):
        rows = n_classes * family.shape[1]
        tables.append(posterior_mean(family, cell_alpha(rows, family.shape[2], alpha, equivalent_sample_size)))
    probability = posterior_mean(totals, cell_alpha(1, n_classes, alpha, equivalent_sample_size))
    flat = np.concatenate([table.reshape(n_classes, -1) for table in tables], axis=1).T
    return TANFit(parents, information, tables, Parameters(probability, np.ascontiguousarray(flat)))


def _informed(codes, cardinalities, target, n_classes, weights):
    """(counts of all pairs or None, of the classes, information between columns, counts of single states (n_classes, S)).

    Where the tables of all pairs would fill memory they are counted some columns at a time, and none is kept.
    """
    n_states = int(cardinalities.sum())
    if n_classes * n_states**2 <= MAX_PAIR_CELLS:
        pairs, totals = count_classes_and_pairs(codes, cardinalities, target, n_classes, weights)
        return pairs, totals, conditional_mutual_information(pairs, cardinalities), np.diagonal(pairs, axis1=1, axis2=2)
    in_blocks = not isinstance(codes, Rows) and len(cardinalities) <= MAX_BLOCKED_COLUMNS
    in_blocks = in_blocks and n_classes * n_states * cardinalities.max() <= MAX_PAIR_CELLS
    limit = MAX_BLOCKED_CELLS if in_blocks else MAX_PAIR_CELLS
    if n_classes * n_states**2 > limit:
        raise ValueError(
            f"{len(cardinalities)} columns with {n_states} states and {n_classes} classes make "
            f"{n_classes * n_states**2:.1e} pair counts, more than {limit:.1e}; select columns first, or join rare "
            "states of the columns that have many"
        )
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    blocks = pair_blocks(codes, cardinalities, class_parts(target, n_classes, weights), lower=True)
    return None, np.bincount(target, weights, minlength=n_classes), *blocked_information(blocks, cardinalities)


def _families(pairs, parents, codes, cardinalities, target, n_classes, weights):
    """Counts (n_classes, states of the parent or 1, states) of every column below its parent."""
    starts = state_offsets(cardinalities)
    for column, parent in enumerate(parents):
        own = slice(starts[column], starts[column + 1])
        if pairs is None:
            two = [target, codes[:, column]] if parent < 0 else [target, codes[:, parent], codes[:, column]]
            cards = [n_classes, *cardinalities[[column] if parent < 0 else [parent, column]]]
            counts = family_counts(np.column_stack(two), cards, len(two) - 1, range(len(two) - 1), weights)
            yield counts.reshape(n_classes, -1, cardinalities[column])
        elif parent < 0:
            yield np.diagonal(pairs[:, own, own], axis1=1, axis2=2)[:, None]
        else:
            yield pairs[:, starts[parent] : starts[parent + 1], own]


def rooted_tree(information, about_class, ranks):
    """Parents (n_columns,) of the maximum spanning tree, directed away from the column of most class information.

    Ties, in either, go to the lower of `ranks`.
    """
    root = np.lexsort((ranks, -np.round(about_class, TIE_DIGITS)))[0]
    # the root first, the others by name: that is the order in which equal pairs are taken
    order = np.argsort(np.where(np.arange(len(ranks)) == root, -1, ranks))
    tree = maximum_tree(np.round(information, TIE_DIGITS)[np.ix_(order, order)])
    parents = np.full(len(order), -1)
    parents[order] = np.where(tree < 0, -1, order[tree])
    return parents


def arc_penalties(cardinalities, n_classes, n_rows):
    """Return what BIC takes off I(X_i; X_j | class) in nats per row: ln N / 2N for each of the arc's further parameters: (n, n)."""
    further = n_classes * np.outer(cardinalities - 1, cardinalities - 1)
    return further * np.log(max(n_rows, 2.0)) / (2 * max(n_rows, 1.0))


def profiles(fit):
    """P(state | class) of every column, all side by side: (n_classes, sum of cardinalities)."""
    found: list[np.ndarray] = [np.empty(0)] * len(fit.tables)
    for column in topological_order([() if parent < 0 else (parent,) for parent in fit.parents]):
        above = np.ones((len(fit.tables[column]), 1)) if fit.parents[column] < 0 else found[fit.parents[column]]
        found[column] = np.einsum("cp,cps->cs", above, fit.tables[column])
    return np.concatenate(found, axis=1)


def _observed_information(counts, cardinalities):
    """Information about the class in the observed cells of every column: (n_columns,), nats."""
    columns = np.repeat(np.arange(len(cardinalities)), cardinalities)
    per_class = np.add.reduceat(counts, state_offsets(cardinalities)[:-1], axis=1)
    total = np.where(per_class.any(0), per_class.sum(0), 1.0)
    return class_information(counts / total[columns], (per_class / total)[:, columns], cardinalities)
