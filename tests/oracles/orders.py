"""Slow truths for averaging over orders: every DAG and every order written out, formulas taken literally (ORD eq. 7-13).

Nothing here comes from pgm_bma. Conventions: `data` is a list of rows of state numbers, `cards` the cardinalities, an
order names the earliest node first, a DAG is a tuple of parent tuples, all logarithms are natural.
"""

from itertools import combinations, permutations, product
from math import comb, exp, lgamma, log


def log_sum(values):
    values = [v for v in values if v > float("-inf")]
    if not values:
        return float("-inf")
    top = max(values)
    return top + log(sum(exp(v - top) for v in values))


def family_counts(data, child, parents, weights=None):
    counts = {}
    for row, weight in zip(data, weights or [1] * len(data)):
        key = (tuple(row[p] for p in parents), row[child])
        counts[key] = counts.get(key, 0) + weight
    return counts


def cell_prior(cards, child, parents, alpha, ess):
    if ess is None:
        return alpha
    cells = cards[child]
    for p in parents:
        cells *= cards[p]
    return ess / cells


def log_marginal_likelihood(data, cards, child, parents, alpha=1.0, ess=None, weights=None):
    """One family of eq. 7, every parent configuration written out, the empty ones too."""
    counts = family_counts(data, child, parents, weights)
    a = cell_prior(cards, child, parents, alpha, ess)
    total = 0.0
    for configuration in product(*(range(cards[p]) for p in parents)):
        cells = [counts.get((configuration, k), 0) for k in range(cards[child])]
        total += lgamma(a * cards[child]) - lgamma(a * cards[child] + sum(cells))
        total += sum(lgamma(a + c) - lgamma(a) for c in cells)
    return total


def log_prior(n, size, structure_prior):
    if structure_prior == "mdl":
        return -log(n * comb(n, size))  # eq. 13 as read: 1/(n binom(n, size))
    if structure_prior == "friedman_koller":
        return -log(comb(n - 1, size))
    return 0.0


def predictive(data, cards, child, parents, row, alpha=1.0, ess=None, weights=None):
    """Second line of eq. 7: posterior mean of the row's value under the row's parent values."""
    counts = family_counts(data, child, parents, weights)
    a = cell_prior(cards, child, parents, alpha, ess)
    configuration = tuple(row[p] for p in parents)
    cells = [counts.get((configuration, k), 0) for k in range(cards[child])]
    return (a + cells[row[child]]) / (a * cards[child] + sum(cells))


class Problem:
    """Data with its family scores; `allowed(child, parents)` can forbid families (required and forbidden arcs, candidates)."""

    def __init__(
        self, data, cards, max_indegree, structure_prior="mdl", alpha=1.0, ess=None, weights=None, allowed=None
    ):
        self.data, self.cards, self.n = data, list(cards), len(cards)
        self.alpha, self.ess, self.weights = alpha, ess, weights
        self.scores, self.known = {}, {}
        for child in range(self.n):
            others = [v for v in range(self.n) if v != child]
            for size in range(min(max_indegree, self.n - 1) + 1):
                for parents in combinations(others, size):
                    if allowed is None or allowed(child, parents):
                        self.scores[child, parents] = log_prior(
                            self.n, size, structure_prior
                        ) + log_marginal_likelihood(data, cards, child, parents, alpha, ess, weights)

    def sets(self, child):
        return [parents for c, parents in self.scores if c == child]

    def p(self, child, parents, row):
        key = child, parents, tuple(row)
        if key not in self.known:
            self.known[key] = predictive(self.data, self.cards, child, parents, row, self.alpha, self.ess, self.weights)
        return self.known[key]

    def sets_before(self, order, child):
        before = set(order[: list(order).index(child)])
        return [parents for parents in self.sets(child) if before.issuperset(parents)]

    def order_log_score(self, order):
        return sum(log_sum([self.scores[i, z] for z in self.sets_before(order, i)]) for i in range(self.n))

    def order_edges(self, order):
        edges = [[0.0] * self.n for _ in range(self.n)]
        for child in range(self.n):
            sets = self.sets_before(order, child)
            total = log_sum([self.scores[child, z] for z in sets])
            for z in sets:
                for parent in z:
                    edges[parent][child] += exp(self.scores[child, z] - total)
        return edges

    def order_log_joint(self, order, row):
        """Eq. 9; a value None in the row is summed out by writing out every completion."""
        if None in row:
            return log_sum([self.order_log_joint(order, full) for full in completions(row, self.cards)])
        total = 0.0
        for child in range(self.n):
            sets = self.sets_before(order, child)
            total += log_sum([self.scores[child, z] + log(self.p(child, z, row)) for z in sets])
            total -= log_sum([self.scores[child, z] for z in sets])
        return total

    def all_orders(self):
        return list(permutations(range(self.n)))

    def dags(self):
        return [dag for dag in product(*(self.sets(child) for child in range(self.n))) if not has_cycle(dag)]

    def dag_log_score(self, dag):
        return sum(self.scores[child, parents] for child, parents in enumerate(dag))

    def dag_log_joint(self, dag, row):
        if None in row:
            return log_sum([self.dag_log_joint(dag, full) for full in completions(row, self.cards)])
        return sum(log(self.p(child, parents, row)) for child, parents in enumerate(dag))

    def evidence(self, weighting):
        if weighting == "order":
            return log_sum([self.order_log_score(order) for order in self.all_orders()])
        return log_sum([self.dag_log_score(dag) for dag in self.dags()])

    def edges(self, weighting):
        """All arcs averaged over every order (eq. 10) or over every DAG once."""
        total = self.evidence(weighting)
        edges = [[0.0] * self.n for _ in range(self.n)]
        if weighting == "order":
            parts = [(self.order_log_score(o), self.order_edges(o)) for o in self.all_orders()]
        else:
            parts = [
                (self.dag_log_score(d), [[float(u in d[v]) for v in range(self.n)] for u in range(self.n)])
                for d in self.dags()
            ]
        for score, part in parts:
            for u, v in product(range(self.n), repeat=2):
                edges[u][v] += exp(score - total) * part[u][v]
        return edges

    def log_joint(self, row, weighting):
        if weighting == "order":
            terms = [self.order_log_score(o) + self.order_log_joint(o, row) for o in self.all_orders()]
        else:
            terms = [self.dag_log_score(d) + self.dag_log_joint(d, row) for d in self.dags()]
        return log_sum(terms) - self.evidence(weighting)

    def best_dag(self):
        """Highest score; ties (1e-9) to the fewest arcs, then to the lexicographically first tuple of parent tuples."""
        scored = [(self.dag_log_score(d), d) for d in self.dags()]
        top = max(score for score, _ in scored)
        return min((d for score, d in scored if score > top - 1e-9), key=lambda d: (sum(map(len, d)), d)), top


def has_cycle(dag):
    left = set(range(len(dag)))
    while left:
        free = [v for v in left if not left.intersection(dag[v])]
        if not free:
            return True
        left.difference_update(free)
    return False


def completions(row, cards):
    choices = [range(card) if value is None else [value] for value, card in zip(row, cards)]
    return [list(full) for full in product(*choices)]


def class_posterior(log_joint, row, class_index, n_classes):
    """`log_joint(row)` over the classes, normalised (eq. 3)."""
    values = [log_joint([*row[:class_index], c, *row[class_index + 1 :]]) for c in range(n_classes)]
    total = log_sum(values)
    return [exp(v - total) for v in values]


def ordered_partitions(items):
    """Every ordered partition of `items` into non-empty layers (for the chain over layered DAGs)."""
    items = list(items)
    if not items:
        yield ()
        return
    for size in range(1, len(items) + 1):
        for layer in combinations(items, size):
            rest = [v for v in items if v not in layer]
            for tail in ordered_partitions(rest):
                yield (layer, *tail)


def layers_of(dag):
    """The layers of a DAG: nodes without parents, then nodes whose parents are all placed and touch the layer before."""
    placed, layers = set(), []
    while len(placed) < len(dag):
        layer = tuple(v for v in range(len(dag)) if v not in placed and placed.issuperset(dag[v]))
        layers.append(layer)
        placed.update(layer)
    return tuple(layers)
