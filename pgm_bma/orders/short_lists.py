"""Chains over a short part of long family lists, corrected to the law of all of them.

Lists that lose little are long on wide tables, because thousands of parent sets have next to nothing each, and a sweep takes as
long as the lists are. So chains walk over the sets that their subsets do not outweigh. The sums over these and over all sets differ
by nearly the same factor in every state. With w, the ratio of a state's scores under both, scaled to mean 1,

    P(arc) = mean of P(arc | state, short lists) over all sweeps + mean of w P(arc | state, long) - P(arc | state, short)

The second mean varies little from state to state, so that some kept states show it. Of these, states are drawn again in proportion
to w: the ones that results and predictions keep.
"""

import numpy as np
from scipy.special import softmax

from pgm_bma.orders.chains._relocation_kernels import arcs_within, new_replica, run_orders
from pgm_bma.orders.chains.gibbs import prepare_lists, walk
from pgm_bma.orders.chains.runner import chain_error
from pgm_bma.orders.families.family_table import choose
from pgm_bma.orders.search import climb

LONG = 20_000  # families, from which chains walk over a part of them
SHARES = 1.0, 0.3, 0.1  # most that sets left out may have of their best subset together, tried one after the other
# Standard deviation of the log of w, in nats, up to which a part is good enough: kept states are then worth 70 % of as many.
# With .45, seeds decided on two of four tables of win95pts, and a sweep over the next part takes 2.6 times as long.
EVEN = 0.6
PILOT = 32  # sweeps that show it, after as many
READ = 6e7  # families that are read, of all states of a chain together, for the difference of the arcs
KEPT = 128, 512  # fewest and most of these states
EARLY = 0.9  # part of tol at which chains end; the correction adds to the error


def choose_lists(table, order, rng):
    """(lists that chains walk over, lists to correct to or None, number of families of the first), of a `FamilyLists`: the shortest
    part that is good enough along a short walk from a climb.

    order : to climb from
    """
    long, size = prepare_lists(table), len(table.log_marginal)
    for share in SHARES:
        part = choose(table, outweigh(table, share))
        if len(part.log_marginal) > size / 2:
            break
        short = prepare_lists(part)
        states = walk(run_orders, short, climb(short, order, rng), 2 * PILOT, rng)[0][PILOT:]
        if (_scores(states, long) - _scores(states, short)).std() <= EVEN:
            return short, long, len(part.log_marginal)
    return long, None, size


def outweigh(lists, share):
    """(n_families,) bool: False for sets that together have at most `share` of the best of their subsets, the least first.

    A set's best subset is never left out itself: no subset of it is better. share : at most 1
    """
    kept = np.ones(len(lists.log_marginal), dtype=bool)
    words = np.random.default_rng(0).integers(2**64, size=len(lists.cardinalities) + 1, dtype=np.uint64)
    words[-1] = 0  # of the padding -1
    scores, sizes = lists.log_scores, (lists.sets >= 0).sum(1)
    for start, end in zip(lists.offsets, lists.offsets[1:]):
        own, sets, size = scores[start:end], lists.sets[start:end], sizes[start:end]
        keys = np.bitwise_xor.reduce(words[sets], axis=1)  # a set by the words of its members
        ranked = np.argsort(keys)
        best = np.arange(end - start)  # the set itself, or a better one inside it
        below = np.full(end - start, -1)  # the best one inside it
        for members in range(1, size.max(initial=0) + 1):
            here = np.flatnonzero(size == members)
            for slot in range(members):
                inside = keys[here] ^ words[sets[here, slot]]
                place = ranked[np.searchsorted(keys, inside, sorter=ranked).clip(max=end - start - 1)]
                better = best[place]
                found = (keys[place] == inside) & ((below[here] < 0) | (own[better] > own[below[here]]))
                below[here[found]] = better[found]
            wins = here[(below[here] >= 0) & (own[below[here]] > own[here])]
            best[wins] = below[wins]
        light = np.flatnonzero(best != np.arange(end - start))
        shares = np.exp(own[light] - own[best[light]])
        ranked = np.lexsort((shares, best[light]))
        light, shares = light[ranked], shares[ranked]
        total = np.cumsum(shares)
        first = np.append(True, best[light][1:] != best[light][:-1]) if len(light) else np.zeros(0, dtype=bool)
        before = (total - shares)[first][np.cumsum(first) - 1]
        kept[start + light[total - before <= share]] = False
    return kept


def n_states(table):
    """States of a chain that the correction reads."""
    return int(np.clip(READ / len(table.log_marginal), *KEPT))


def corrected(found, short, long, n_kept, tol):
    """A `GibbsRun` over short lists as one over long ones, with `n_kept` orders of every chain."""
    n_chains, n_read, n = found.states.shape
    means = found.chains.means.copy()
    states, scores = np.empty((n_chains, n_kept, n), dtype=np.int64), np.empty((n_chains, n_kept))
    for chain, (orders, short_scores) in enumerate(zip(found.states, found.log_scores)):
        replicas = [new_replica(order.copy(), long) for order in orders]
        long_scores = np.array([one.logs.sum() for one in replicas])
        weights = softmax(long_scores - short_scores)
        for one, order, weight in zip(replicas, orders, weights):
            arcs_within(one, weight, long, means[chain])
            arcs_within(new_replica(order.copy(), short), -1 / n_read, short, means[chain])
        drawn = np.searchsorted(np.cumsum(weights), (np.arange(n_kept) + 0.5) / n_kept).clip(max=n_read - 1)
        states[chain], scores[chain] = orders[drawn], long_scores[drawn]
    error = max(found.chains.error, chain_error(means))
    chains = found.chains._replace(
        means=means.clip(0.0, 1.0), error=error, converged=found.chains.converged and error < tol
    )
    return found._replace(states=states, log_scores=scores, chains=chains)


def _scores(orders, f):
    return np.array([new_replica(order.copy(), f).logs.sum() for order in orders])
