"""Metropolis moves of one arc with the missing cells of both of its ends summed out.

A table that was completed under an arc supports it, so a chain that draws structures given tables and tables given structures
keeps an arc, or does without it, for long. Here an arc u -> v is taken away or added given the order, all other arcs, tables and
cells. The new conditional table of v is proposed from a Dirichlet density near its posterior. The missing cells of u and v are
summed out of both sides of the ratio, and are drawn anew where the move is accepted.
"""

import numpy as np
from scipy.special import gammaln

from pgm_bma.orders.families.family_table import bounds

TINY = 1e-300
SHARE = 0.5  # of the expected counts of rows with missing cells in the proposal, which is wider than the posterior so


def toggle(gaps, codes, parents, tables, log_prior, pair, rng):
    """One move; `codes` (completed rows), `parents` and `tables` (per node, parents' states by states) are changed in place.

    pair : (u, v), u before v       log_prior : parents of v, ascending -> log prior, None where they are not possible
    """
    u, v = pair
    now = parents[v]
    new = tuple(sorted({*now, u} if u not in now else {*now} - {u}))
    priors = log_prior(v, now), log_prior(v, new)
    if None in priors:
        return
    hidden = (gaps.codes[:, [u, v]] < 0).any(1)
    rest = _rest(gaps, codes, parents, tables, u, v, np.flatnonzero(hidden))
    sides = [_Side(gaps, codes, some, u, v, hidden, rest) for some in (now, new)]
    proposed = sides[1].draw(rng)
    ratio = priors[1] + sides[1].log_weight(proposed) - priors[0] - sides[0].log_weight(tables[v])
    if np.log(rng.random()) >= ratio:
        return
    parents[v], tables[v] = new, proposed
    joint = (rest * sides[1].chances(proposed)).reshape(len(rest), rest.shape[1] * rest.shape[2])
    sums = joint.cumsum(1)
    drawn = (sums <= rng.random(len(sums))[:, None] * sums[:, -1:]).sum(1).clip(0, joint.shape[1] - 1)
    rows, n_states = np.flatnonzero(hidden), int(gaps.cardinalities[v])
    codes[rows, u], codes[rows, v] = drawn // n_states, drawn % n_states


def _rest(gaps, codes, parents, tables, u, v, rows):
    """(n_rows, states of u, states of v) what all families but that of v, and the cells that are seen, say of both."""
    cards = gaps.cardinalities
    found = np.ones((len(rows), int(cards[u]), int(cards[v])))
    for end, shape in ((u, (-1, 1)), (v, (1, -1))):
        seen = gaps.codes[rows, end]
        states = np.arange(cards[end]).reshape(1, *shape)
        found *= (seen[:, None, None] < 0) | (seen[:, None, None] == states)
    for child, some in enumerate(parents):
        if child != v and (child == u or u in some or v in some):
            found *= tables[child][_places(codes, rows, cards, (*some, child), u, v)]
    return found


def _places(codes, rows, cards, family, u, v):
    """(line, state) of the family's table, with the ends of the arc free."""
    values = [
        np.arange(cards[u])[None, :, None] if p == u else np.arange(cards[v])[None, None] if p == v
        else codes[rows, p][:, None, None]
        for p in family
    ]  # fmt: skip
    line = np.zeros((1, 1, 1), dtype=np.int64)
    for p, value in zip(family[:-1], values):
        line = line * cards[p] + value
    return line, values[-1]


class _Side:
    """The child of an arc with some parents: proposal and weight of its table."""

    def __init__(self, gaps, codes, parents, u, v, hidden, rest):
        cards = gaps.cardinalities
        n_lines, n_states = int(np.prod(cards[list(parents)], dtype=np.int64)), int(cards[v])
        alpha, total = bounds(*gaps.prior)
        self.alpha = min(alpha, total / (n_lines * n_states))
        self.places, self.rest = _places(codes, np.flatnonzero(hidden), cards, (*parents, v), u, v), rest
        seen = ~hidden
        line = np.zeros(int(seen.sum()), dtype=np.int64)
        for p in parents:
            line = line * cards[p] + codes[seen, p]
        at = line * n_states + codes[seen, v]
        counts = np.bincount(at, gaps.weights[seen], minlength=n_lines * n_states).reshape(n_lines, n_states)
        first = counts + self.alpha
        shares = rest * self.chances(first / first.sum(1, keepdims=True))
        shares /= shares.sum((1, 2), keepdims=True)
        at = np.broadcast_to(self.places[0] * n_states + self.places[1], shares.shape)
        self.expected = SHARE * np.bincount(at.ravel(), shares.ravel(), minlength=counts.size).reshape(counts.shape)
        self.counts = counts + self.expected

    def chances(self, table):
        """P(state of v | parents) of every row, with the ends free."""
        return table[self.places]

    def draw(self, rng):
        """A table from the proposal."""
        shape = self.counts + self.alpha
        logs = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape
        table = np.exp(logs - logs.max(1, keepdims=True))
        return np.maximum(table / table.sum(1, keepdims=True), TINY)

    def log_weight(self, table):
        """Log of prior density x likelihood of the seen cells / density of the proposal."""
        own = self.counts + self.alpha
        change = gammaln(own).sum() - gammaln(own.sum(1)).sum()
        change -= own.size * gammaln(self.alpha) - len(own) * gammaln(self.alpha * own.shape[1])
        rows = (self.rest * self.chances(table)).sum((1, 2))
        return change - (self.expected * np.log(table)).sum() + np.log(np.maximum(rows, TINY)).sum()
