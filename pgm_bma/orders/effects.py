"""Effects of setting a variable on others, averaged over DAGs and their tables: P(y | do(x)) by truncated factorisation.

In one DAG, a full configuration takes one cell of every table and tables are independent a posteriori. So the posterior mean of
P(y | do(x)) is that of the network of posterior-mean tables without x's own; for the spread, tables are drawn from their
Dirichlets. Small tables are multiplied out, all DAGs at once; larger networks have a junction tree per DAG, in which every variable
that is set has a switch for a parent: switched on, its table is flat. Switches are observed, so they cost nothing, and one pass
answers for all variables and states.

The classical estimate (parent adjustment; BIDA of Pensar and others 2020) is sum over z of P(y | x, z) P(z), z the parents of x,
from one Dirichlet table of (z, x, y).
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from pgm_bma.foundation.numbers.families import posterior_mean, state_offsets
from pgm_bma.networks import evidence
from pgm_bma.networks.junction_tree import build_tree, relevant_variables
from pgm_bma.orders.families.family_table import bounds
from pgm_bma.orders.gaps.augment import draw_tables

MAX_JOINT = 4096  # joint states up to which tables are multiplied out
BLOCK_CELLS = 4_000_000  # of such products at a time


class EffectQuestion(NamedTuple):
    """DAGs, where their tables come from, and what is asked."""

    dags: list  # per DAG, parent tuples of every variable
    sources: np.ndarray  # (n_dags,) which completed table a DAG belongs to; 0 without missing values
    counts: Callable[[int, int, tuple], np.ndarray]  # of a source, a child and its parents: (n_parent_states, n_states)
    prior: tuple  # arguments of `family_table.bounds`
    cardinalities: np.ndarray
    of: list  # variables that are set
    on: list  # outcomes
    given: dict  # variable -> state that is observed after the setting

    def tables(self, source, child, parents, n_draws, rng):
        """(n_draws, n_cells) tables of one family: drawn, or without `rng` posterior means (1, n_cells)."""
        counts = self.counts(source, child, parents)
        if rng is None:
            alpha, total = bounds(*self.prior)
            return posterior_mean(counts, min(alpha, total / counts.size)).reshape(1, -1)
        return draw_tables(self.prior, [counts] * n_draws, rng).reshape(n_draws, -1)


def effect_blocks(asked, rng=None):
    """Yield (positions of DAGs, P(y | do(x))) block by block: (n_dags, states of all x, states of all y).

    rng : draws one table of every family for each DAG; None takes posterior means
    """
    if np.prod(asked.cardinalities.astype(float)) <= MAX_JOINT:
        yield from _by_joint(asked, rng)
        return
    groups: dict[tuple, list] = {}
    for k, dag in enumerate(asked.dags):
        groups.setdefault((int(asked.sources[k]), dag), []).append(k)
    for (source, dag), places in groups.items():
        yield from _by_tree(asked, source, dag, places, rng)


def _by_joint(asked, rng):
    cards = asked.cardinalities
    digits = np.indices(cards).reshape(len(cards), -1)
    size = digits.shape[1]
    outcomes = np.concatenate([digits[y] == np.arange(cards[y])[:, None] for y in asked.on])  # (states of all y, size)
    seen = np.logical_and.reduce(
        [digits[z] == state for z, state in asked.given.items()] or [np.ones(size, dtype=bool)]
    )
    block = max(BLOCK_CELLS // (size * len(cards)), 1)
    for start in range(0, len(asked.dags), block):
        chosen = np.arange(start, min(start + block, len(asked.dags)))
        factors = np.stack([_factors(asked, chosen, child, digits, rng) for child in range(len(cards))])
        found = []
        for x in asked.of:
            rest = factors[np.arange(len(cards)) != x].prod(0)
            for state in range(cards[x]):
                matching = rest * (seen & (digits[x] == state))
                joint = matching @ outcomes.T
                found.append(joint / matching.sum(1, keepdims=True) if asked.given else joint)
        yield chosen, np.stack(found, axis=1)


def _factors(asked, chosen, child, digits, rng):
    """(n_chosen, size) the table of a child at every configuration, DAG by DAG."""
    groups: dict[tuple, list] = {}
    for place, k in enumerate(chosen):
        groups.setdefault((int(asked.sources[k]), asked.dags[k][child]), []).append(place)
    values = np.empty((len(chosen), digits.shape[1]))
    for (source, parents), places in groups.items():
        scope = [*parents, child]
        cells = np.ravel_multi_index(tuple(digits[scope]), tuple(asked.cardinalities[scope]))
        values[places] = asked.tables(source, child, parents, len(places), rng)[:, cells]
    return values


def _by_tree(asked, source, dag, places, rng):
    """The blocks of equal DAGs, whose positions are `places`: one tree for all of them."""
    cards = asked.cardinalities
    used = relevant_variables(dag, [*asked.of, *asked.on, *asked.given])
    place = {v: i for i, v in enumerate(used)}
    n, n_switches = len(used), len(asked.of)
    switch = {x: n + i for i, x in enumerate(asked.of)}
    parents, tables = [], []
    for v in used:
        table = asked.tables(source, v, dag[v], len(places), rng)  # one line of all for posterior means
        table = np.broadcast_to(table, (len(places), table.shape[1])).reshape(len(places), -1, 1, cards[v])
        own = tuple(place[p] for p in dag[v])
        if v in switch:
            table, own = np.concatenate([table, np.full_like(table, 1.0 / cards[v])], axis=2), (*own, switch[v])
        parents.append(own)
        tables.append(table.reshape(len(places), -1))
    sizes = [*(int(cards[v]) for v in used), *[2] * n_switches]
    tree = build_tree(sizes, [*parents, *[()] * n_switches], range(n))
    starts = state_offsets([cards[x] for x in asked.of])
    rows = np.full((starts[-1], n + n_switches), -1, dtype=np.int64)
    rows[:, n:] = 0
    for z, state in asked.given.items():
        rows[:, place[z]] = state
    for x, first in zip(asked.of, starts):
        for state in range(cards[x]):
            rows[first + state, [place[x], switch[x]]] = state, 1
    plan = evidence.plan_rows(tree, rows)
    for position, *theta in zip(places, *tables):
        found = evidence.posteriors(
            plan, np.concatenate([*theta, np.full(2 * n_switches, 0.5)]), [place[y] for y in asked.on]
        )
        yield np.array([position]), np.concatenate(found, axis=1)[None]


def total_variation(effects, of_cards, on_cards):
    """(n_dags, n_of, n_on) largest total variation between two states that x is set to; effects : from `effect_blocks`."""
    rows, columns = state_offsets(of_cards), state_offsets(on_cards)
    sizes = np.zeros((len(effects), len(of_cards), len(on_cards)))
    for x, (first, stop) in enumerate(pairwise(rows)):
        for a in range(first, stop):
            apart = np.abs(effects[:, a + 1 : stop] - effects[:, a : a + 1])
            moved = np.add.reduceat(apart, columns[:-1], axis=2) / 2
            sizes[:, x] = np.maximum(sizes[:, x], moved.max(1, initial=0.0))
    return sizes


def jensen_shannon(effects, of_cards, on_cards):
    """(n_dags, n_of, n_on) Jensen-Shannon divergence, in nats, of the distributions of y under all states of x, equally weighed."""
    rows, columns = state_offsets(of_cards), state_offsets(on_cards)

    def entropy(p):
        return -np.add.reduceat(xlogy(p, p), columns[:-1], axis=-1)

    parts = [effects[:, first:stop] for first, stop in pairwise(rows)]
    found = [entropy(part.mean(1)) - entropy(part).mean(1) for part in parts]
    return np.maximum(np.stack(found, axis=1), 0.0)


def spread(values, level):
    """(sd, low, high) of drawn values (n_dags, ...) with equal weights, `level` of them between low and high."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return values.std(0), low, high


# ---------------------------------------------------------------------------------------------------- contrasts


def contrast_pairs(n_states):
    """Pairs (state, state that it is compared with) of a variable that is set."""
    return [(b, a) for a in range(n_states) for b in range(a + 1, n_states)]


def contrasts(values, kind, numbers=None):
    """(..., n_pairs, n_outcomes) comparisons of P(y | do(x)) (..., states of x, states of y) between two states of x.

    kind : "difference" or "ratio" of probabilities, or "mean", the difference of the means of `numbers`, the values of y
    """
    pairs = contrast_pairs(values.shape[-2])
    to, of = ([pair[k] for pair in pairs] for k in (0, 1))
    if kind == "mean":
        values = (values @ np.asarray(numbers, dtype=float))[..., None]
    if kind == "ratio":
        return values[..., to, :] / values[..., of, :]
    return values[..., to, :] - values[..., of, :]


# ---------------------------------------------------------------------------------------------------- adjustment


def adjusted_rows(training, x):
    """The `Training` of rows in which nothing but x was set: its parents and what follows from x are there as in nature."""
    if training.held is None:
        return training
    rows = ~np.delete(training.held, x, axis=1).any(1)
    return training._replace(codes=np.asfortranarray(training.codes[rows]), weights=training.weights[rows], held=None)


def adjusted(training, x, y, parents, n_draws, rng=None):
    """(n_draws, states of x, states of y) P(y | do(x)) by adjustment for the parents of x; without `rng` its mean, (1, ...).

    training : of `adjusted_rows`
    """
    cards, prior = training.cardinalities, training.prior

    def tables(counts, cell):
        if rng is None:
            return posterior_mean(counts, cell)[None]
        return draw_tables((cell, None, None), [counts] * n_draws, rng).reshape(n_draws, *counts.shape)

    alpha, total = bounds(*prior)
    if y in parents:  # what comes before x is not moved
        counts = training.family_counts(y, ())
        return np.repeat(tables(counts, min(alpha, total / counts.size)), cards[x], axis=1)
    counts = training.family_counts(y, (*parents, x))
    cell = min(alpha, total / counts.size)
    outcome = tables(counts, cell)
    outcome = outcome.reshape(len(outcome), -1, cards[x], cards[y])
    weights = tables(counts.reshape(1, outcome.shape[1], -1).sum(2), cell * cards[x] * cards[y])[:, 0]
    return np.einsum("dz,dzxy->dxy", weights, outcome)
