"""Experiments and effects by enumeration of all DAGs of a few variables; nothing here comes from pgm_bma.

`targets` has per row the variables that were set there (a tuple of numbers). A row does not count in the family of a variable
that was set in it; where interventions are `soft`, such rows have a table of their own. A DAG is a tuple of parent tuples.
"""

from functools import partial
from itertools import permutations, product
from math import exp

from tests.oracles.orders import (
    Problem,
    cell_prior,
    family_counts,
    has_cycle,
    log_marginal_likelihood,
    log_prior,
    log_sum,
)


class Experiment(Problem):
    """All DAGs with their posterior weights."""

    def __init__(
        self,
        data,
        cards,
        targets,
        weighting,
        *,
        ess=None,
        weights=None,
        structure_prior="uniform",
        odds=None,
        soft=False,
    ):
        self.data, self.cards, self.n, self.ess, self.alpha = data, list(cards), len(cards), ess, 1.0
        self.weights = weights or [1] * len(data)
        self.rows = []  # per variable: rows and weights that count in its family
        for v in range(self.n):
            own = [(row, w) for row, w, t in zip(data, self.weights, targets) if v not in t]
            self.rows.append(([row for row, _ in own], [w for _, w in own]))
        self.scores = {}
        for v in range(self.n):
            others = [u for u in range(self.n) if u != v]
            for inside in product([False, True], repeat=len(others)):
                z = tuple(u for u, yes in zip(others, inside) if yes)
                score = log_marginal_likelihood(self.rows[v][0], cards, v, z, 1.0, ess, self.rows[v][1])
                if soft:  # another table of v with the same parents, in the rows in which it was set
                    own = [(row, w) for row, w, t in zip(data, self.weights, targets) if v in t]
                    own_rows, own_weights = [row for row, _ in own], [w for _, w in own]
                    score += log_marginal_likelihood(own_rows, cards, v, z, 1.0, ess, own_weights)
                score += log_prior(self.n, len(z), structure_prior)
                self.scores[v, z] = score + sum(odds[u][v] for u in z) if odds else score
        self.all_dags = self.dags()
        logs = [self.dag_log_score(dag) for dag in self.all_dags]
        if weighting == "order":
            logs = [score + log_count(dag) for score, dag in zip(logs, self.all_dags)]
        total = log_sum(logs)
        self.log_evidence = total
        self.shares = [exp(score - total) for score in logs]

    def share(self, holds):
        """Posterior of what `holds(dag)` says."""
        return sum(share for share, dag in zip(self.shares, self.all_dags) if holds(dag))

    def arcs(self):
        return self._pairs(lambda dag, u, v: u in dag[v])

    def ancestors(self):
        return self._pairs(is_ancestor)

    def _pairs(self, holds):
        return [[self.share(partial(holds, u=u, v=v)) for v in range(self.n)] for u in range(self.n)]

    def parent_sets(self, v):
        found = dict.fromkeys(self.sets(v), 0.0)
        for share, dag in zip(self.shares, self.all_dags):
            found[dag[v]] += share
        return found

    def table(self, v, parents):
        """Posterior mean of P(v | parents) as a function of a full configuration."""
        counts = family_counts(self.rows[v][0], v, parents, self.rows[v][1])
        a = cell_prior(self.cards, v, parents, self.alpha, self.ess)

        def mean(x):
            z = tuple(x[p] for p in parents)
            total = sum(counts.get((z, k), 0) for k in range(self.cards[v]))
            return (a + counts.get((z, x[v]), 0)) / (a * self.cards[v] + total)

        return mean

    def effect(self, x, y):
        """[state of x][state of y] posterior mean of P(y | do(x)), over all DAGs."""
        configurations = list(product(*map(range, self.cards)))
        means = {key: [self.table(*key)(c) for c in configurations] for key in self.scores}
        result = [[0.0] * self.cards[y] for _ in range(self.cards[x])]
        for share, dag in zip(self.shares, self.all_dags):
            used = [means[v, z] for v, z in enumerate(dag) if v != x]
            for k, c in enumerate(configurations):
                p = share
                for values in used:
                    p *= values[k]
                result[c[x]][c[y]] += p
        return result

    def adjusted(self, x, y, targets):
        """[state of x][state of y] mean over all DAGs of sum over z of P(y | x, z) P(z), z the parents of x, from one Dirichlet
        table of (z, x, y) and the rows in which nothing but x was set."""
        rows = [(row, w) for row, w, t in zip(self.data, self.weights, targets) if set(t) <= {x}]
        result = [[0.0] * self.cards[y] for _ in range(self.cards[x])]
        for share, dag in zip(self.shares, self.all_dags):
            z = dag[x]
            scope = [y] if y in z else [*z, x, y]
            cells = list(product(*(range(self.cards[v]) for v in scope)))
            a = self.alpha if self.ess is None else self.ess / len(cells)
            counts = dict.fromkeys(cells, a)
            for row, w in rows:
                counts[tuple(row[v] for v in scope)] += w
            total = sum(counts.values())
            for i in range(self.cards[x]):
                for cell, count in counts.items():
                    if y in z:
                        result[i][cell[-1]] += share * count / total
                    elif cell[-2] == i:
                        of_z = sum(n for c, n in counts.items() if c[:-2] == cell[:-2])
                        of_zx = sum(n for c, n in counts.items() if c[:-1] == cell[:-1])
                        result[i][cell[-1]] += share * of_z / total * count / of_zx
        return result


def is_ancestor(dag, u, v):
    return any(p == u or is_ancestor(dag, u, p) for p in dag[v])


def log_count(dag):
    """Log of the number of orders that a DAG fits."""
    assert not has_cycle(dag)
    fits = sum(
        all(order.index(p) < order.index(v) for v, z in enumerate(dag) for p in z)
        for order in permutations(range(len(dag)))
    )
    return log_sum([0.0] * fits)


def compelled(dags):
    """{dag: arcs (parent, child) that all of `dags` with the same independences have}: same edges, same unmarried parents."""
    classes = {}
    for dag in dags:
        edges = frozenset(frozenset((p, v)) for v, z in enumerate(dag) for p in z)
        pairs = [(p, v, q) for v, z in enumerate(dag) for p in z for q in z if p < q]
        meeting = frozenset((p, v, q) for p, v, q in pairs if frozenset((p, q)) not in edges)
        classes.setdefault((edges, meeting), []).append(dag)
    found = {}
    for same in classes.values():
        shared = set.intersection(*({(p, v) for v, z in enumerate(dag) for p in z} for dag in same))
        found.update(dict.fromkeys(same, shared))
    return found


def hamming(a, b, n):
    """Structural Hamming distance of two sets of arcs: pairs of nodes that are not joined in the same way."""
    return sum(((u, v) in a, (v, u) in a) != ((u, v) in b, (v, u) in b) for u in range(n) for v in range(u + 1, n))
