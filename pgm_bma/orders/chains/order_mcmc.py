"""Order MCMC with the paper's moves: swaps of two nodes, accepted in proportion to P(order | data) (ORD section III-B, eq. 12).

The chain sees the family table only, never a row. Every node's sum over parent sets is prepared once as weights relative to
its best set (`prepare`); the compiled swaps are in `_swap_kernels`. They recompute their running sums at every call, so calls end
at every multiple of `checkpoint_every` (and, within those, every BLOCK steps or fewer), with or without a file.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.runtime.jobs import MOMENT
from pgm_bma.orders.chains._swap_kernels import SwapFamilies, run_swaps, score_order, split_by_member
from pgm_bma.orders.chains.runner import Checkpoint, Moves, run_chains
from pgm_bma.orders.families.family_table import binomials, local_sets

BLOCK = 20_000  # steps of the longest compiled call, less where a node has many families


def sample_orders(
    families, starts, rngs, *, n_kept, burn_in, thin, checkpoint=None, checkpoint_every=10_000, fingerprint=None,
    n_jobs=1, progress=None,
):  # fmt: skip
    """Run one chain of swaps per generator and keep the orders of steps burn_in + 1 + thin t, t = 0 .. n_kept - 1.

    Parameters
    ----------
    families : `SwapFamilies`, from `prepare`
    starts : list of orders        rngs : list of Generators
    checkpoint : path or None; written every `checkpoint_every` steps, read if it exists
    fingerprint : dict name -> str that a checkpoint must share
    progress : function of the number of steps just done, by all chains, or None

    Returns
    -------
    SwapRun
    """
    moves = SwapMoves(families, n_kept, burn_in, thin, checkpoint_every)
    chains = [_new_chain(start, rng, n_kept) for start, rng in zip(starts, rngs)]
    seen = [0]

    def tell(step, *_):
        progress(len(chains) * (step - seen[0]))
        seen[0] = step

    file = Checkpoint(checkpoint, checkpoint_every, fingerprint)
    stopped = run_chains(moves, chains, file, n_jobs=n_jobs, tell=tell if progress else None)
    return _collect(chains, moves, stopped is None)


class SwapMoves(Moves):
    """Swaps of two nodes: one window, nothing adapts, no chain ends before the others."""

    def __init__(self, families, n_kept, burn_in, thin, every):
        self.families, self.n_kept, self.burn_in, self.thin, self.every = families, n_kept, burn_in, thin, every
        self.ends = [burn_in + 1 + thin * (n_kept - 1)]
        # a step sums over the families of two nodes, and of others over those that hold one of the two, all over memory
        cost = 20 * len(families.weights) / max(len(families.tops), 1)
        self.longest = int(min(BLOCK, max(MOMENT / cost, 100)))

    def block(self, step):
        """Steps to the next multiple of `every`, or of the longest call counted from the last such multiple."""
        into = step % self.every
        return min(self.every - into, self.longest - into % self.longest)

    def advance(self, chain, count, first, end):
        """`count` swaps of one chain."""
        accepted, _, best, best_state = run_swaps(
            chain.rng, chain.state, self.families, count, chain.step + 1, self.burn_in, self.thin, chain.kept, chain.scores
        )  # fmt: skip
        if best > chain.best_score:
            chain.best_score, chain.best_state = float(best), best_state
        chain.accepted += int(accepted)
        chain.step += count


def _new_chain(start, rng, n_kept):
    state = np.array(start, dtype=np.int64)
    kept = np.zeros((n_kept, len(state)), dtype=np.int64)
    return SwapChain(state, rng, 0, 0, kept, np.zeros(n_kept), -np.inf, state.copy())


def _collect(chains, moves, finished):
    """Equal numbers of kept orders from every chain; after Ctrl-C as many as the slowest has, or as are averaged in a moment."""
    steps = min(chain.step for chain in chains)
    have = 0 if steps <= moves.burn_in else min(moves.n_kept, (steps - moves.burn_in - 1) // moves.thin + 1)
    if have == 0:
        raise KeyboardInterrupt(f"interrupted at step {steps}, before the first kept order (burn_in={moves.burn_in})")
    # whoever presses Ctrl-C does not want to wait: the average sums over the families of every order
    most = have if finished else max(int(MOMENT / (2 * len(chains) * len(moves.families.weights))), 1)
    picked = np.linspace(have - 1, 0, min(have, most)).astype(np.int64)[::-1]
    return SwapRun(
        np.stack([chain.kept[picked] for chain in chains]),
        np.stack([chain.scores[picked] for chain in chains]),
        np.array([chain.accepted / max(chain.step, 1) for chain in chains]),
        max(chains, key=lambda chain: chain.best_score).best_state,
        finished,
    )


@dataclass
class SwapChain:
    """One chain of swaps on its way."""

    state: np.ndarray
    rng: np.random.Generator
    step: int
    accepted: int
    kept: np.ndarray
    scores: np.ndarray
    best_score: float
    best_state: np.ndarray


class SwapRun(NamedTuple):
    """Result of `sample_orders`."""

    states: np.ndarray  # (n_chains, n_kept, n)
    log_scores: np.ndarray  # (n_chains, n_kept)
    acceptance: np.ndarray  # (n_chains,)
    best_state: np.ndarray  # (n,) highest score among the steps looked at (every 100th)
    finished: bool  # False after Ctrl-C


# ---------------------------------------------------------------------------------------------------- single orders


def prepare(table):
    """The family table as the kernels want it (`SwapFamilies`): weights relative to the best set of every node."""
    n = len(table.cardinalities)
    log_scores = table.log_scores
    tops = np.maximum.reduceat(log_scores, table.offsets[:-1])
    if np.isneginf(tops).any():
        child = int(np.argmax(np.isneginf(tops)))
        raise ValueError(f"variable {child} has no parent set left; loosen required or forbidden arcs, or max_indegree")
    weights = np.exp(log_scores - np.repeat(tops, np.diff(table.offsets)))
    distinct = np.unique(table.n_candidates)
    blocks = [local_sets(int(m), table.max_indegree) for m in distinct]
    set_offsets = state_offsets([len(block) for block in blocks])[np.searchsorted(distinct, table.n_candidates)]
    table_of_binomials = binomials(max(n, 1), table.max_indegree)
    widths = [
        int(m) * sum(int(table_of_binomials[m, s]) for s in range(table.max_indegree)) for m in table.n_candidates
    ]
    member_offsets = state_offsets(widths)
    families = SwapFamilies(
        weights, log_scores, tops, table.offsets, np.concatenate(blocks), set_offsets, table.candidates, table.n_candidates,
        np.zeros(member_offsets[-1]), member_offsets, table_of_binomials, table.max_indegree,
    )  # fmt: skip
    split_by_member(families)
    return families


def order_log_score(families, order):
    """log prod_i sum_Z S(X_i; Z) over the parent sets that `order` allows; -inf if a required arc contradicts it."""
    n = len(order)
    return score_order(np.asarray(order, dtype=np.int64), families, np.zeros(n), np.zeros(n))


def climb(families, order):
    """Hill climbing from `order`: node by node to the place of highest score, until a whole round gains nothing."""
    order = [int(v) for v in order]
    score = order_log_score(families, order)
    gained = True
    while gained:
        gained = False
        for node in range(len(order)):
            rest = [v for v in order if v != node]
            proposals = [[*rest[:place], node, *rest[place:]] for place in range(len(order))]
            values = [order_log_score(families, proposal) for proposal in proposals]
            best = int(np.argmax(values))
            if values[best] > score + 1e-9:  # rounding of equal scores is no gain
                order, score, gained = proposals[best], values[best], True
    return np.array(order, dtype=np.int64)
