"""Augmented naive Bayes as a family of structures for structural EM: the cluster above every attribute, and attribute forests.

Paper: SEM (Peña, Lozano, Larrañaga 2000), section 5. A model is a structure with its data; parameters, counts and scores come
from `augmented.model`, the search from `augmented.search`. `AugmentedModel` has its rows in memory; `BlocksModel` visits them in
passes, and the loops of `structural_em` see no difference, but for responsibilities, of which it has none: what is made of them is
a sum over blocks.
"""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from weakref import WeakValueDictionary

import numpy as np

from pgm_bma.augmented import model as anb
from pgm_bma.augmented.bound_collapse import bound_and_collapse_families
from pgm_bma.augmented.expectation import expected_class_score, expected_pair_scores
from pgm_bma.augmented.search import (
    PairSource,
    best_structure,
    complete,
    completed_pairs,
    family_scores,
    graph_change,
    make_pair_source,
    maximum_branching,
    scores_of_pairs,
    total_score,
)
from pgm_bma.foundation.numbers.families import cell_alpha, state_offsets
from pgm_bma.foundation.numbers.pairs import pair_prior
from pgm_bma.foundation.rows.blocks import Rows

COMPLETIONS = ("expected", "most_probable", "expectation")
SEARCHES = ("branching", "hill_climb")


def tree_structure(cases, prior=None):
    """The best structure without a cluster: a start that already knows the dependences all clusters share.

    A pair with missing cells is judged on the rows that have both.
    """
    return maximum_branching(family_scores(cases, np.ones((len(cases.codes), 1)), prior))


def attribute_families(parents):
    """Parents of all nodes, as a general structure: the cluster is node 0 and stands above every column, column i is i + 1."""
    return ((), *((0,) if p < 0 else (0, int(p) + 1) for p in parents))


class StructureModel:
    """Scores of a structure with its data, from what every kind of structure has: the methods that raise."""

    def e_step(self, parameters, hard=False):
        """Log-likelihood, expected counts, and counts of the most probable clusters or None."""
        raise NotImplementedError

    def expected_completion(self, parameters):
        """Log-likelihood, and expected counts in which every missing cell is completed."""
        raise NotImplementedError

    def expected_score(self, parameters):
        """Expectation of the log score over all completions."""
        raise NotImplementedError

    def update(self, counts):
        """Parameters: posterior means."""
        raise NotImplementedError

    def log_score(self, counts):
        """Log marginal likelihood of completed data."""
        raise NotImplementedError

    def expected_log_joint(self, counts, parameters):
        """Log probability of completed data with these counts."""
        raise NotImplementedError

    def completed_score(self, parameters, completion):
        """Score of data completed by a model: at expected counts, with the most probable cluster, or expected over completions."""
        if completion == "most_probable":
            return self.log_score(self.e_step(parameters, True)[2])
        if completion == "expectation":
            return self.expected_score(parameters)
        return self.log_score(self.expected_completion(parameters)[1])

    def run_score(self, parameters, completion):
        """The score that a run must not lower: the completed score plus the entropy of the completion (0 when hard)."""
        if completion == "most_probable":
            return self.completed_score(parameters, completion)
        log_likelihood, counts = self.expected_completion(parameters)
        if log_likelihood == -np.inf:  # the start finds a row impossible
            return log_likelihood
        score = self.expected_score(parameters) if completion == "expectation" else self.log_score(counts)
        # log p(observed) = E log p(completion, observed) + entropy, under the parameters that complete
        return score + log_likelihood - self.expected_log_joint(counts, parameters)

    def cheeseman_stutz(self, parameters):
        """Cheeseman-Stutz approximation of log p(data | structure), in nats.

        W = expected counts of the model, theta' = posterior mean of W: log p(W) - sum W log theta' + log p(data | theta').
        """
        counts = self.e_step(parameters)[1]
        mean = self.update(counts)
        return self.log_score(counts) - self.expected_log_joint(counts, mean) + self.e_step(mean)[0]


class Structured(StructureModel):
    """Part of augmented naive Bayes that does not depend on the kind of rows; sums over rows are left to others."""

    layout: anb.AugmentedLayout
    prior: anb.Prior

    @property
    def parents(self):
        return self.layout.parents

    def random_parameters(self, n_clusters, rng):
        return anb.random_parameters(self.layout, n_clusters, rng)

    def update(self, counts):
        return anb.update(counts, self.layout, self.prior)

    def log_prior(self, parameters):
        return anb.log_prior(parameters, self.layout, self.prior)

    def log_score(self, counts):
        return anb.log_score(counts, self.layout, self.prior)

    def expected_log_joint(self, counts, parameters):
        return anb.expected_log_joint(counts, parameters)


class Known:
    """State that models of the same rows share: structures found, by what they were found for; models in use, by their parents.

    It does not travel: on another machine it begins empty."""

    def __init__(self):
        self.structures: dict = {}
        self.models: WeakValueDictionary = WeakValueDictionary()

    def __reduce__(self):
        return Known, ()


def in_one_order(responsibilities):
    """Responsibilities rounded to 2^-48, clusters sorted: equal for starts that differ by rounding and by names of clusters.

    Where columns are many, most starts end in the same few completions, and most responsibilities are 0 or 1.
    """
    rounded = np.rint(responsibilities * 2.0**48) / 2.0**48
    order = sorted(range(rounded.shape[1]), key=lambda c: rounded[:, c].tobytes())
    return np.ascontiguousarray(rounded[:, order])


@dataclass(frozen=True)
class AugmentedModel(Structured):
    """A structure (`parents` of `layout`) over the rows of `cases`, with a prior; `source` counts pairs, `known` is shared."""

    cases: anb.Cases
    layout: anb.AugmentedLayout
    prior: anb.Prior
    source: PairSource
    known: Known

    @classmethod
    def build(cls, cases, parents, prior, source=None):
        source = make_pair_source(cases) if source is None else source
        return cls(cases, anb.make_layout(parents, cases.cardinalities), prior, source, Known())

    @cached_property
    def groups(self):
        return anb.group_columns(self.cases, self.layout)

    @property
    def weights(self):
        return self.cases.weights

    @property
    def order(self):
        """The rows as they were given, in the order in which the passes take them."""
        return self.cases.order

    def with_structure(self, parents):
        key = np.asarray(parents, dtype=np.int64).tobytes()
        found = self.known.models.get(key)
        if found is None:
            found = replace(self, layout=anb.make_layout(parents, self.cases.cardinalities))
            self.known.models[key] = found
        return found

    def read_tables(self, families, tables):
        """Parameters from the tables of a network whose families, cluster first or last, are those of this structure."""
        n_clusters = tables[0].shape[-1]
        cards = np.array([n_clusters, *self.cases.cardinalities])
        turned = [swap_parents(t, ps, cards) if ps[0] else t for t, ps in zip(tables[1:], families[1:])]
        packed = anb.pack_tables([t.reshape(n_clusters, -1) for t in turned])
        return anb.Parameters(np.ascontiguousarray(tables[0][0]), packed)

    def write_tables(self, families, parameters):
        """The inverse of `read_tables`."""
        cards = np.array([len(parameters.class_probs), *self.cases.cardinalities])
        tables = [t.reshape(-1, t.shape[-1]) for t in anb.unpack_tables(parameters.table, self.layout)]
        back = [swap_parents(t, ps[::-1], cards) if ps[0] else t for t, ps in zip(tables, families[1:])]
        return [parameters.class_probs[None], *back]

    def e_step(self, parameters, hard=False):
        return anb.em_counts(self.cases, self.layout, parameters, self.groups, hard)

    def tree(self):
        return tree_structure(self.cases, self.prior)

    def responsibilities(self, parameters):
        return anb.expect(self.cases, self.layout, parameters, self.groups)[0]

    def expected_completion(self, parameters):
        weights, log_likelihood = anb.expect(self.cases, self.layout, parameters, self.groups)
        counts = anb.expected_counts(self.cases, self.layout, parameters, weights, self.groups, every_cell=True)
        return log_likelihood, counts

    def family_scores(self, parameters, responsibilities, completion="expected"):
        """[i, j + 1]: score of attribute i with the cluster and attribute j as parents; [i, 0]: the cluster alone."""
        if completion == "expectation":
            return self._expected_scores(parameters, responsibilities)[1]
        return family_scores(self.cases, responsibilities, self.prior, self.layout, parameters, self.source)

    def expected_score(self, parameters):
        own, scores = self._expected_scores(parameters, self.responsibilities(parameters), self.parents)
        return own + total_score(scores, self.parents)

    def _expected_scores(self, parameters, responsibilities, parents=None):
        """Expected over all completions: score of the cluster, and scores of all families or of those of one structure."""
        completion = complete(self.cases, responsibilities, self.layout, parameters, self.source)
        alpha, sample_size = self.prior.for_scores()
        n_clusters = responsibilities.shape[1]
        own = expected_class_score(completion, cell_alpha(1, n_clusters, alpha, sample_size))
        cells = pair_prior(n_clusters, self.cases.cardinalities, alpha, sample_size)
        return own, expected_pair_scores(completion, cells, parents)

    def collapse(self, assigned, n_clusters):
        """Parameters by Bound and Collapse from the rows and a partly known cluster column (-1 = unknown)."""
        cluster = len(self.cases.cardinalities)
        cards = [*self.cases.cardinalities.tolist(), n_clusters]
        families = [(cluster,) if p < 0 else (cluster, int(p)) for p in self.parents]
        alpha_class, alpha_cells = anb.prior_cells(self.layout, n_clusters, self.prior)
        alphas = [*alpha_cells[self.layout.offsets[:-1]], alpha_class]
        codes = np.column_stack([self.cases.codes, assigned])
        records = bound_and_collapse_families(codes, cards, [*families, ()], self.weights, alphas)
        tables = [record.collapsed.reshape(n_clusters, -1) for record in records[:-1]]
        return anb.Parameters(records[-1].collapsed[0], anb.pack_tables(tables))

    def next_structure(self, parameters, responsibilities, search, completion):
        weights = responsibilities
        if completion == "most_probable":
            weights = anb.one_hot(weights.argmax(axis=1), weights.shape[1])
        found = self._best_structure(parameters, weights, search, completion)
        if np.array_equal(found, self.parents):
            return None
        new = self.with_structure(found)
        # the completion by this model makes the first parameters of the new structure
        first = new.update(self._counts_for(new, parameters, responsibilities))
        return new, first, graph_change(attribute_families(self.parents), attribute_families(found))

    def _best_structure(self, parameters, weights, search, completion):
        """The best structure for a completion; of complete rows it is looked up where another start came by the same one."""
        if not self._is_shared(weights.shape[1]):
            return best_structure(self.family_scores(parameters, weights, completion), self.parents, search)
        weights = in_one_order(weights)
        key = search, completion, hashlib.blake2b(weights.tobytes()).digest()
        found = self.known.structures.get((key, self.parents.tobytes()))
        if found is None:
            found = best_structure(self.family_scores(parameters, weights, completion), self.parents, search)
            for parents in (self.parents, found):  # what was found is the best for the same completion when asked again
                self.known.structures[key, parents.tobytes()] = found
        return found

    def _is_shared(self, n_clusters):
        """Return whether responsibilities alone decide the structure, and rounding them moves no score: counts that are lost, up to
        2^-49 a row, change a cell by their part of its pseudo-count."""
        if self.cases.n_complete < len(self.cases.codes):
            return False
        prior = self.prior.for_scores()
        smallest = prior.alpha
        if prior.equivalent_sample_size is not None:
            smallest = prior.equivalent_sample_size / n_clusters / self.cases.cardinalities.max(initial=1) ** 2
        return smallest > 1e-4

    def _counts_for(self, new, parameters, responsibilities):
        """Expected counts, under this model, of the families of a new structure."""
        cases, layout = self.cases, new.layout
        if cases.n_complete == len(cases.codes):
            return anb.expected_counts(cases, layout, None, responsibilities, new.groups)
        pairs = completed_pairs(cases, responsibilities, self.layout, parameters, self.source)
        return counts_of_pairs(pairs, cases.weights @ responsibilities, layout)


@dataclass(frozen=True)
class BlocksModel(Structured):
    """A structure (`parents` of `layout`) over rows of `Block`, with a prior."""

    rows: Rows
    layout: anb.AugmentedLayout
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
        log_likelihood, *counts = self.rows.reduce(complete_block, self.layout, parameters)
        return float(log_likelihood), anb.Counts(*counts)

    def responsibilities(self, parameters):
        """None: the rows stay where they are."""
        return None

    def tree(self):
        (pairs,) = self.rows.reduce(observed_pairs, self.layout.cardinalities)
        has_missing = bool(self.rows.has_missing.any())
        return maximum_branching(scores_of_pairs(pairs, self.layout.cardinalities, self.prior, has_missing))

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


def counts_of_pairs(pairs, classes, layout):
    """Counts of the families of a layout, read off the counts of all pairs (n_clusters, S, S) and of the clusters."""
    starts = state_offsets(layout.cardinalities)
    table = np.empty((layout.offsets[-1], len(pairs)))
    for i, parent in enumerate(layout.parents):
        own = slice(starts[i], starts[i + 1])
        if parent < 0:
            block = np.diagonal(pairs, axis1=1, axis2=2)[:, own]
        else:
            block = pairs[:, starts[parent] : starts[parent + 1], own]
        table[layout.offsets[i] : layout.offsets[i + 1]] = block.reshape(len(pairs), -1).T
    return anb.Counts(classes, table)


def swap_parents(cpt, parents, cards):
    """The table of a node with two parents, the other one first."""
    shaped = cpt.reshape(*(int(cards[p]) for p in parents), -1)
    return np.ascontiguousarray(shaped.swapaxes(0, 1)).reshape(cpt.shape)


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
