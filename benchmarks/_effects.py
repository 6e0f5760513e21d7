"""Networks with experiments that the benchmarks of effects share: drawn from the prior, simulated, and queried exactly."""

from math import comb

import numpy as np
import pandas as pd

from pgm_bma.orders import effects


def network_from_prior(rng, cards, max_indegree=3):
    """(parents, tables): an order at random, parents by the prior "mdl" among those before, tables from Dirichlet(1) lines."""
    n = len(cards)
    order = rng.permutation(n)
    parents, tables = [()] * n, [None] * n
    for place, v in enumerate(order):
        sizes = range(min(place, max_indegree) + 1)
        weights = np.array([comb(place, k) / (n * comb(n, k)) for k in sizes])
        size = rng.choice(len(weights), p=weights / weights.sum())
        parents[v] = tuple(sorted(int(p) for p in rng.choice(order[:place], size, replace=False)))
    for v in range(n):
        lines = int(np.prod([cards[p] for p in parents[v]], dtype=int))
        tables[v] = rng.dirichlet(np.ones(cards[v]), size=lines)
    return parents, tables


def simulate_experiments(rng, cards, parents, tables, n_rows, share):
    """(codes, targets): rows of a network; in a `share` of them one variable was set to a state at random."""
    n = len(cards)
    codes = np.zeros((n_rows, n), dtype=int)
    which = np.where(rng.random(n_rows) < share, rng.integers(0, n, n_rows), -1)
    for v in topological(parents):
        line = np.zeros(n_rows, dtype=int)
        for p in parents[v]:
            line = line * cards[p] + codes[:, p]
        drawn = (rng.random(n_rows)[:, None] > np.cumsum(tables[v], axis=1)[line]).sum(1)
        codes[:, v] = np.where(which == v, rng.integers(0, cards[v], n_rows), np.minimum(drawn, cards[v] - 1))
    return codes, [None if v < 0 else f"v{v}" for v in which]


def topological(parents):
    """Nodes, parents first."""
    done = []
    while len(done) < len(parents):
        done += [v for v, z in enumerate(parents) if v not in done and set(z) <= set(done)]
    return done


def as_frame(codes, cards):
    """Columns v0, v1, ... with all their states."""
    return pd.DataFrame({f"v{k}": pd.Categorical(codes[:, k], categories=range(r)) for k, r in enumerate(cards)})


def all_effects(cards, parents, tables):
    """(states of all x, states of all y) P(y | do(x)) of one network with known tables."""
    everything, cards = list(range(len(cards))), np.asarray(cards)
    sure = 1e12  # rows behind a table: its posterior mean is the table
    counts = lambda source, child, z: sure * tables[child]  # noqa: E731
    prior = 1e-6, None, None
    asked = effects.EffectQuestion(
        [tuple(parents)], np.zeros(1, dtype=int), counts, prior, cards, everything, everything, {}
    )
    return next(effects.effect_blocks(asked))[1][0]
