"""Structural EM on rows that are not in memory: a model whose sums over rows are passes over all blocks.

`BlocksModel` is what `structures.AugmentedModel` is for rows in memory; the loops of `structural_em` see no difference, but for
responsibilities, of which there are none: what is made of them is a sum over blocks.
"""

from dataclasses import dataclass

import numpy as np

from pgm_bma.augmented import model as anb
from pgm_bma.augmented.search import best_structure, completed_pairs, graph_change, maximum_branching, scores_of_pairs
from pgm_bma.augmented.structures import Structured, attribute_families, counts_of_pairs
from pgm_bma.foundation.rows.blocks import Rows


@dataclass(frozen=True)
class BlocksModel(Structured):
    """A structure (`parents` of `layout`) over rows of `Block`, with a prior."""

    rows: Rows
    layout: anb.Layout
    prior: anb.Prior

    @classmethod
    def build(cls, rows, parents, prior):
        return cls(rows, anb.make_layout(parents, rows.schema.cardinalities), prior)

    def with_structure(self, parents):
        return BlocksModel.build(self.rows, parents, self.prior)

    def e_step(self, parameters, hard=False):
        log_likelihood, *counts = self.rows.reduce(expect_block, self.layout, parameters, hard)
        return float(log_likelihood), anb.Counts(*counts[:2]), anb.Counts(*counts[2:]) if hard else None

    def expected_completion(self, parameters):
        """See `AugmentedModel`."""
        log_likelihood, *counts = self.rows.reduce(complete_block, self.layout, parameters)
        return float(log_likelihood), anb.Counts(*counts)

    def responsibilities(self, parameters):
        """None: the rows stay where they are."""
        return None

    def pairs(self, parameters, hard=False):
        """Expected counts of all pairs of states in every cluster, (n_clusters, S, S), and of the clusters."""
        return self.rows.reduce(pairs_of_block, self.layout, parameters, hard)

    def next_structure(self, parameters, responsibilities, search, completion):
        soft, classes = self.pairs(parameters)
        pairs = self.pairs(parameters, True)[0] if completion == "most_probable" else soft
        found = best_structure(scores_of_pairs(pairs, self.layout.cardinalities, self.prior), self.parents, search)
        if np.array_equal(found, self.parents):
            return None
        new = self.with_structure(found)
        first = new.update(counts_of_pairs(soft, classes, new.layout))
        return new, first, graph_change(attribute_families(self.parents), attribute_families(found))


def tree_of_blocks(rows, prior=None):
    """`structures.tree_structure` of rows that are visited in passes."""
    (pairs,) = rows.reduce(observed_pairs, rows.schema.cardinalities)
    return maximum_branching(scores_of_pairs(pairs, rows.schema.cardinalities, prior, bool(rows.has_missing.any())))


# -------------------------------------------------------------------------------------------------------- on a block


def _cases(block, cardinalities):
    return anb.make_cases(block.codes, cardinalities, block.weights)


def expect_block(block, layout, parameters, hard):
    """(log-likelihood, class counts, counts), and when `hard` the last two of the most probable clusters too."""
    cases = _cases(block, layout.cardinalities)
    log_likelihood, soft, completed = anb.em_counts(cases, layout, parameters, anb.group_columns(cases, layout), hard)
    return log_likelihood, *soft, *(completed or ())


def complete_block(block, layout, parameters):
    """(log-likelihood, class counts, counts) in which every missing cell is completed."""
    cases = _cases(block, layout.cardinalities)
    groups = anb.group_columns(cases, layout)
    weights, log_likelihood = anb.expect(cases, layout, parameters, groups)
    return log_likelihood, *anb.expected_counts(cases, layout, parameters, weights, groups, every_cell=True)


def pairs_of_block(block, layout, parameters, hard):
    """(counts of all pairs in every cluster, counts of the clusters), missing cells completed."""
    cases = _cases(block, layout.cardinalities)
    weights, _ = anb.expect(cases, layout, parameters)
    if hard:
        weights = anb.one_hot(weights.argmax(axis=1), weights.shape[1])
    return completed_pairs(cases, weights, layout, parameters), cases.weights @ weights


def observed_pairs(block, cardinalities):
    """(counts of all pairs of states (1, S, S),) over the rows that have both cells."""
    cases = _cases(block, cardinalities)
    return (completed_pairs(cases, np.ones((len(cases.codes), 1))),)
