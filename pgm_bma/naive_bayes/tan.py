"""Tree-augmented naive Bayes (Friedman, Geiger and Goldszmidt 1997): the tree of highest conditional mutual information."""

from typing import NamedTuple

import numpy as np

from pgm_bma.augmented.model import Parameters
from pgm_bma.foundation.counts import family_counts
from pgm_bma.foundation.dirichlet import cell_alpha, posterior_mean
from pgm_bma.foundation.graphs import maximum_tree
from pgm_bma.foundation.pairs import conditional_mutual_information, indicators, pair_counts

MAX_PAIR_CELLS = 1 << 28  # of the pair tables of all columns: 2 GB


class TANFit(NamedTuple):
    """parents (n_columns,), -1 = the class alone; information (n_columns, n_columns), nats; tables per column (n_classes,
    cardinality of the parent or 1, cardinality); parameters: the same in the layout of `augmented_naive_bayes`."""

    parents: np.ndarray
    information: np.ndarray
    tables: list
    parameters: Parameters


def fit_tan(codes, cardinalities, target, n_classes, weights=None, *, alpha=1.0, equivalent_sample_size=None):
    """The tree, and posterior-mean tables, each family from the rows that have its cells."""
    n_states = int(np.sum(cardinalities))
    if n_classes * n_states**2 > MAX_PAIR_CELLS:
        raise ValueError(
            f"{len(cardinalities)} columns with {n_states} states and {n_classes} classes make "
            f"{n_classes * n_states**2:.1e} pair counts, more than {MAX_PAIR_CELLS:.1e}; select columns first"
        )
    class_weights = np.zeros((len(codes), n_classes))
    class_weights[np.arange(len(codes)), target] = 1.0 if weights is None else weights
    pairs = pair_counts(indicators(codes, cardinalities), class_weights)
    information = conditional_mutual_information(pairs, cardinalities)
    parents = maximum_tree(information)
    joined, sizes = np.column_stack([target, codes]), [n_classes, *cardinalities]
    tables = []
    for column, parent in enumerate(parents):
        family = [0] if parent < 0 else [0, parent + 1]
        counts = family_counts(joined, sizes, column + 1, family, weights)
        mean = posterior_mean(counts, cell_alpha(*counts.shape, alpha, equivalent_sample_size))
        tables.append(mean.reshape(n_classes, -1, sizes[column + 1]))
    probability = posterior_mean(class_weights.sum(0), cell_alpha(1, n_classes, alpha, equivalent_sample_size))
    flat = np.concatenate([table.reshape(n_classes, -1) for table in tables], axis=1).T
    return TANFit(parents, information, tables, Parameters(probability, np.ascontiguousarray(flat)))
