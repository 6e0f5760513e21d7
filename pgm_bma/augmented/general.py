"""Any directed acyclic graph over the cluster and the attributes as a family of structures for structural EM.

Paper: SEM (Peña, Lozano, Larrañaga 2000), section 3: greedy hill climbing over additions, removals and reversals of one arc, with
at most `max_indegree` parents per node. The cluster is node 0, column i of the data is node i + 1, and nothing forces an arc
from the cluster. Expected counts, of the network's own families and of those a move would make, come from the junction tree of
`network_em`; cells may be missing anywhere. Parameters are a list of tables (n_parent_states, n_states), one per node.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import xlogy

from pgm_bma.augmented.bound_collapse import bound_and_collapse_families
from pgm_bma.augmented.expectation import expected_family_score
from pgm_bma.augmented.model import Prior, make_cases
from pgm_bma.augmented.search import graph_change
from pgm_bma.augmented.structures import StructureModel, tree_structure
from pgm_bma.foundation.numbers.families import cell_alpha, family_counts, log_marginal_likelihood, posterior_mean
from pgm_bma.foundation.numbers.graphs import ancestors
from pgm_bma.networks import evidence
from pgm_bma.networks.em import expected_family_counts, flatten
from pgm_bma.networks.junction_tree import MAX_CLIQUE_SIZE, build_tree

_GAIN = 1e-9  # smaller gains are rounding


def climb_graphs(parents, score_families, max_indegree):
    """Greedy search over directed acyclic graphs.

    parents : tuple of tuples of nodes     score_families : callable(list of (child, sorted parents)) -> list of scores
    returns the parents of the best graph found. Ties: the first move, children ascending, removals and reversals by parent
    before additions by parent.
    """
    parents = [tuple(ps) for ps in parents]
    known: dict = {}

    def gains(moves):
        wanted = {(child, ps) for move in moves for child, ps in move} | {(i, ps) for i, ps in enumerate(parents)}
        missing = sorted(wanted - known.keys())
        known.update(zip(missing, score_families(missing)))
        return [sum(known[child, ps] - known[child, parents[child]] for child, ps in move) for move in moves]

    while True:
        moves = list(_moves(parents, max_indegree))
        found = gains(moves)
        best, best_gain = None, _GAIN
        for move, gain in zip(moves, found):
            if gain > best_gain + 1e-11 * abs(gain):
                best, best_gain = move, gain
        if best is None:
            return tuple(parents)
        for child, ps in best:
            parents[child] = ps


def _moves(parents, max_indegree):
    """Every legal move, as the list of (node, new parents) that it changes."""
    n = len(parents)
    above = [ancestors(parents, [node]) for node in range(n)]
    for child in range(n):
        for parent in parents[child]:
            without = tuple(p for p in parents[child] if p != parent)
            yield [(child, without)]
            # turned round, the arc closes a cycle when another path leads from parent to child
            other_path = any(parent == p or parent in above[p] for p in without)
            if not other_path and len(parents[parent]) < max_indegree:
                yield [(child, without), (parent, tuple(sorted((*parents[parent], child))))]
        if len(parents[child]) < max_indegree:
            for parent in range(n):
                if parent != child and parent not in parents[child] and child not in above[parent]:
                    yield [(child, tuple(sorted((*parents[child], parent))))]


def log_joint(codes, cardinalities, parents, tables, max_clique_size=MAX_CLIQUE_SIZE):
    """Natural log p(cluster, row), missing cells summed out.

    codes : (n_samples, n_features)     cardinalities : of the cluster and the columns     returns (n_samples, n_clusters)
    """
    hidden = 1 + np.flatnonzero((np.asarray(codes) < 0).any(axis=0))
    tree = build_tree(cardinalities, parents, hidden, max_clique_size=max_clique_size)
    theta = flatten(tables)
    out = np.empty((len(codes), int(cardinalities[0])))
    for c in range(int(cardinalities[0])):
        full = with_cluster(codes, np.full(len(codes), c))
        out[:, c] = evidence.row_log_likelihood(evidence.plan_rows(tree, full), theta)
    return out


def with_cluster(codes, cluster=None):
    """Codes with the cluster as column 0, unknown by default."""
    codes = np.asarray(codes)
    first = np.full(len(codes), -1) if cluster is None else cluster
    return np.column_stack([first, codes]).astype(np.int64)


def random_tables(cardinalities, parents, rng):
    """Every distribution from Dirichlet(1), nodes in order."""
    tables = []
    for node, ps in enumerate(parents):
        shape = int(np.prod([cardinalities[p] for p in ps], dtype=np.int64)), int(cardinalities[node])
        drawn = rng.standard_exponential(shape)
        tables.append(drawn / drawn.sum(axis=1, keepdims=True))
    return tables


@dataclass(frozen=True)
class GeneralModel(StructureModel):
    """A graph over the cluster (node 0) and the columns, with their rows.

    codes : (n, n_nodes), -1 = missing: column 0 is the cluster, unknown in every row (`with_cluster`)
    cardinalities : (n_nodes,)     parents : tuple of tuples of nodes
    """

    codes: np.ndarray
    weights: np.ndarray
    cardinalities: np.ndarray
    parents: tuple
    prior: Prior
    max_indegree: int
    max_clique_size: int = MAX_CLIQUE_SIZE

    @cached_property
    def plan(self):
        hidden = np.flatnonzero((self.codes < 0).any(axis=0))
        tree = build_tree(self.cardinalities, self.parents, hidden, max_clique_size=self.max_clique_size)
        return evidence.plan_rows(tree, self.codes, self.weights)

    @property
    def order(self):
        return slice(None)

    def with_structure(self, parents):
        return replace(self, parents=parents)

    def random_parameters(self, n_clusters, rng):
        return random_tables(self.cardinalities, self.parents, rng)

    def tree(self):
        return tree_structure(make_cases(self.codes[:, 1:], self.cardinalities[1:], self.weights), self.prior)

    def read_tables(self, families, tables):
        return tables

    def write_tables(self, families, parameters):
        return parameters

    def e_step(self, parameters, hard=False):
        flat, log_likelihood = evidence.expected_counts(self.plan, flatten(parameters))
        starts = self.plan.tree.family_start
        tables = [flat[a:b].reshape(-1, int(r)) for a, b, r in zip(starts, starts[1:], self.cardinalities)]
        return log_likelihood, tables, self._hard_counts(parameters) if hard else None

    def responsibilities(self, parameters):
        return np.ascontiguousarray(evidence.posteriors(self.plan, flatten(parameters), [0])[0])

    def _hard_counts(self, parameters):
        winner = self.responsibilities(parameters).argmax(axis=1)
        return self._family_counts(parameters, [(i, ps) for i, ps in enumerate(self.parents)], winner)

    def _family_counts(self, parameters, families, cluster=None):
        """Expected counts of any families; with `cluster` given (n,) as if it had been observed."""
        full = self._with(cluster)
        if cluster is not None and (full >= 0).all():
            return [family_counts(full, self.cardinalities, child, ps, self.weights) for child, ps in families]
        return expected_family_counts(
            full, self.cardinalities, self.parents, parameters, self.weights, families, self.max_clique_size
        )[0]

    def _with(self, cluster):
        """The codes, with the cluster column given."""
        return self.codes if cluster is None else with_cluster(self.codes[:, 1:], cluster)

    def update(self, counts):
        return [posterior_mean(table, a) for table, a in zip(counts, self._alphas())]

    def _alphas(self):
        return [self._alpha(child, ps, self.prior) for child, ps in enumerate(self.parents)]

    def _alpha(self, child, ps, prior):
        lines = int(np.prod(self.cardinalities[list(ps)], dtype=np.int64))
        return cell_alpha(lines, int(self.cardinalities[child]), prior.alpha, prior.equivalent_sample_size)

    def log_prior(self, parameters):
        return float(sum(xlogy(a, table).sum() for a, table in zip(self._alphas(), parameters)))

    def log_score(self, counts):
        return float(sum(self._score(child, ps, table) for (child, ps), table in zip(enumerate(self.parents), counts)))

    def _score(self, child, ps, table):
        return float(log_marginal_likelihood(table, self._alpha(child, ps, self.prior.for_scores())))

    def expected_completion(self, parameters):
        return self.e_step(parameters)[:2]

    def expected_log_joint(self, counts, parameters):
        return float(sum(xlogy(n, theta).sum() for n, theta in zip(counts, parameters)))

    def expected_score(self, parameters):
        shares = self.responsibilities(parameters)
        return float(sum(self._expected_score(child, ps, shares) for child, ps in enumerate(self.parents)))

    def _expected_score(self, child, ps, shares):
        """Expected score of a family over all clusters of complete rows."""
        if child and 0 not in ps:
            return self._score(child, ps, family_counts(self.codes, self.cardinalities, child, ps, self.weights))
        alpha = self._alpha(child, ps, self.prior.for_scores())
        return expected_family_score(self.codes, self.cardinalities, self.weights, shares, child, ps, alpha)

    def collapse(self, assigned, n_clusters):
        codes = self._with(assigned)
        records = bound_and_collapse_families(codes, self.cardinalities, self.parents, self.weights, self._alphas())
        return [record.collapsed for record in records]

    def next_structure(self, parameters, responsibilities, search, completion):
        winner = responsibilities.argmax(axis=1) if completion == "most_probable" else None

        def scores(families):
            if completion == "expectation":
                return [self._expected_score(child, ps, responsibilities) for child, ps in families]
            counts = self._family_counts(parameters, families, winner)
            return [self._score(child, ps, table) for (child, ps), table in zip(families, counts)]

        found = climb_graphs(self.parents, scores, self.max_indegree)
        if found == tuple(tuple(sorted(ps)) for ps in self.parents):
            return None
        new = self.with_structure(found)
        first = new.update(self._family_counts(parameters, list(enumerate(found))))
        return new, first, graph_change(self.parents, found)
