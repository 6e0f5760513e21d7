"""Metropolis moves of one arc together with the missing cells around it, all tables summed out.

A table that was completed under an arc supports it, so a chain that draws structures given tables and tables given structures
keeps an arc, or does without it, for long: where a column that is rarely in one of its states has many missing cells, for hundreds
of sweeps. Here an arc u -> v is taken away or added given the order and all other arcs, and the missing cells of v and of all its
parents change on the way (annealed importance sampling; Neal 2001, and Karagiannis and Andrieu 2013 for moves between models): the
old and the new family of v share the likelihood, the new one with a power that rises from 0 to 1, and at every power all these
cells are drawn once, one by one. The product of the ratios by which the powers change
the likelihood is accepted or not; the way back draws cells in reverse.
"""

import numpy as np

from pgm_bma.orders.families.family_table import bounds
from pgm_bma.orders.gaps import _augment_kernels as kernels

POWERS = np.linspace(0.0, 1.0, 5)  # twice as many are accepted more often, but not in the same time


def toggle(gaps, codes, parents, log_prior, pair, rng):
    """One move; `codes` (completed rows) and `parents` are changed in place.

    pair : (u, v), u before v       log_prior : (v, parents of v, ascending) -> log prior, None where they are not possible
    """
    u, v = pair
    now = parents[v]
    new = tuple(sorted({*now} ^ {u}))
    before, after = log_prior(v, now), log_prior(v, new)
    if before is None or after is None:
        return
    free = {*now, *new, v}
    others = [(c, some) for c, some in enumerate(parents) if c != v and not free.isdisjoint((c, *some))]
    children, families = zip((v, now), (v, new), *others)
    width = max(map(len, families))
    padded = np.array([(*some, *[-1] * (width - len(some))) for some in families], dtype=np.int64)
    if kernels.anneal(
        rng, gaps.codes, codes, gaps.weights, gaps.cardinalities, np.array(sorted(free)), padded, np.array(children),
        tuple(map(float, bounds(*gaps.prior))), after - before, POWERS, u in new,
    ):  # fmt: skip
        parents[v] = new
