"""Chains over structures and missing cells, which run until the error of every pooled arc is small.

A chain keeps what it sees from its first sweep on: sums of arcs in slots of equally many sweeps, and evenly spaced states. When all
SLOTS are full, neighbours are joined. The first quarter of the slots is burn-in, whatever their length. Chains are judged at every
second slot of the last ten, so that a run grows by a tenth or a sixth from one to the next.

Which families the chains move over, and what is left out: `augment_lists`. Now and then a chain looks at all families on its table;
what it wants is added to the lists of all chains, and what the lists lacked is kept: where its mean is large, users are warned.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pgm_bma.orders.chains.runner import (
    APART,
    ChainRecord,
    Checkpoint,
    Moves,
    Window,
    difference,
    effective_size,
    halves,
    run_chains,
    split_r_hat,
)
from pgm_bma.orders.families.family_table import BEAM, EPS, FamilyLists
from pgm_bma.orders.gaps import augment_lists
from pgm_bma.orders.gaps.augment import sweep

SLOTS = 24
JUDGED = (14, 16, 18, 20, 22, 24)  # full slots at which chains are judged
# Sweeps before which no run has converged. Two columns that are never seen together forget their first table slowly: after 36
# sweeps two of four runs, all of whose chains began with independent columns, said that they had converged, with arcs off by .08.
FEWEST = 72
# most pairs of columns whose arcs move alone, and the least standard deviation of an arc over slots
PAIRS, STILL = 12, 0.03
ADAPT = 12  # sweeps between two growings of the lists
SURE = 2.5, 2.0  # standard errors by slots and halves, and by chains
MORE = 2.5, 4.0  # times the variance that slots tell, from where that of halves and of chains is no accident


def run_augmented(
    gaps, weighting, starts, rngs, scoring, *, fixed=False, group=None, n_kept=30, tol=0.05, max_sweeps=1024, max_time=None,
    eps=EPS, beam=BEAM, checkpoint=None, checkpoint_every=16, fingerprint=None, n_jobs=1, tell=None,
):  # fmt: skip
    """Run one chain per generator until their arcs agree.

    Parameters
    ----------
    `gaps` : `augment.GapTable`
    starts : per chain, (n,) order or layers; they stay under `fixed`
    group : chains that have the same law, one after the other; by default all of them
    scoring : `family_table.Scoring`, with the parameter prior of `gaps`
    tol : of the pooled arcs    max_sweeps : sweeps of a chain
    checkpoint_every : sweeps between two writes

    Returns
    -------
    AugmentedRun
    """
    families = augment_lists.AugmentedFamilies(gaps, weighting, scoring, fixed, eps, beam)
    n_cells = len(gaps.cells[0])
    chains = [new_chain(start, rng, n_kept, n_cells) for start, rng in zip(starts, rngs)]
    moves = AugmentedMoves(families, n_kept, tol, max_sweeps, group or len(chains))
    file = Checkpoint(checkpoint, checkpoint_every, fingerprint)
    stopped = run_chains(moves, chains, file, max_time=max_time, n_jobs=n_jobs, tell=tell)
    return _collect(moves, chains, stopped)


@dataclass
class Trace:
    """Arcs and states that a chain has collected."""

    sums: np.ndarray  # (SLOTS, n, n) of arc posteriors
    squares: np.ndarray
    counts: np.ndarray  # (SLOTS,) sweeps
    state: np.ndarray  # (3 n_kept, n) kept states
    filled: np.ndarray  # (3 n_kept, n_cells) the tables that they were drawn on
    score: np.ndarray  # (3 n_kept,)
    at: np.ndarray  # (3 n_kept,) their sweeps, from 1 on; 0: nothing kept yet
    lost: np.ndarray  # (n_looks, n) what the lists lacked, by node
    looked: np.ndarray  # (n_looks,) sweeps
    length: int = 1  # sweeps of a slot
    every: int = 1  # sweeps between two kept states

    def add(self, step, swept, state, filled):
        """One sweep more, the `step`th; filled : the table that its state was drawn on"""
        if step > SLOTS * self.length:
            for array in (self.sums, self.squares, self.counts):
                array[: SLOTS // 2] = array[::2] + array[1::2]
                array[SLOTS // 2 :] = 0
            self.length *= 2
        slot = (step - 1) // self.length
        self.sums[slot] += swept.edges
        self.squares[slot] += swept.edges**2
        self.counts[slot] += 1
        if step % self.every:
            return
        place = int((self.at > 0).sum())
        if place == len(self.at):
            stay = np.flatnonzero(self.at % (2 * self.every) == 0)
            place = len(stay)
            for array in (self.state, self.filled, self.score, self.at):
                array[:place] = array[stay]
            self.at[place:] = 0
            self.every *= 2
            if step % self.every:
                return
        self.state[place], self.filled[place], self.score[place], self.at[place] = state, filled, swept.log_score, step

    def window(self, step, n_kept=0):
        """Sweeps that count after `step` of them: a `Window` with at most `n_kept` states."""
        used = -(-step // self.length)
        first = used // 4
        sums, squares, counts = self.sums[first:used], self.squares[first:used], self.counts[first:used]
        middle = len(counts) // 2
        there = np.flatnonzero(self.at > first * self.length)
        there = there[np.unique(np.linspace(0, len(there) - 1, min(n_kept, len(there))).round().astype(int))]
        kept = {name: getattr(self, name)[there] for name in ("state", "filled", "score")}
        by_halves = np.array([squares[:middle].sum(0), squares[middle:].sum(0)])
        has, nothing = np.ones(len(there), dtype=bool), np.zeros(0)
        return Window(first * self.length, step, sums, by_halves, counts, kept, has, nothing, nothing)


@dataclass
class AugmentedChain:
    """One chain on its way: its state is a structure and the missing cells."""

    state: np.ndarray
    filled: np.ndarray
    rng: np.random.Generator
    trace: Trace
    pairs: np.ndarray  # (n_pairs, 2) columns whose arcs are moved alone
    shares: np.ndarray  # (n_pairs,) of such moves
    wanted: np.ndarray  # families that a look has found and the lists lack, as bits
    log_marginal: np.ndarray | None = None  # of the last table; None: nothing is known
    step: int = 0  # sweeps
    cut: float = 0.0  # shares of the rows that were drawn in blocks


def new_chain(start, rng, n_kept=1, n_cells=0):
    """A chain before its first sweep."""
    n, room = len(start), 3 * n_kept
    trace = Trace(
        np.zeros((SLOTS, n, n)), np.zeros((SLOTS, n, n)), np.zeros(SLOTS, dtype=np.int64), np.zeros((room, n), dtype=np.int64),
        np.zeros((room, n_cells), dtype=np.int32), np.zeros(room), np.zeros(room, dtype=np.int64), np.zeros((0, n)),
        np.zeros(0, dtype=np.int64),
    )  # fmt: skip
    nothing = np.zeros(0, dtype=np.int32)
    pairs, shares, wanted = np.zeros((0, 2), dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.uint8)
    return AugmentedChain(np.asarray(start, dtype=np.int64), nothing, rng, trace, pairs, shares, wanted)


class AugmentedMoves(Moves):
    """Sweeps of `augment.sweep`; group : chains that have the same law."""

    lists: Any  # `augment_lists.Lists`, which the chains share

    def __init__(self, families, n_kept, tol, max_sweeps, group):
        self.families, self.n_kept, self.tol, self.group = families, n_kept, tol, group
        self.judged = {slots * 2**k for slots in JUDGED for k in range(max(max_sweeps, 1).bit_length())}
        ends = {*range(ADAPT, max_sweeps, ADAPT), *(step for step in self.judged if step < max_sweeps), max_sweeps}
        self.ends = sorted(ends)

    def begin(self, chains, map_chains, saved):
        """Return which families the chains move over."""
        self.lists = augment_lists.first_lists(self.families, chains, map_chains, saved)

    def saved(self):
        """The lists, which the chains share."""
        return self.lists.saved()

    def block(self, step):
        """A sweep over structures and cells takes long."""
        return 1

    def advance(self, chain, count, first, end):
        """One sweep."""
        before, trace = chain.filled, chain.trace
        if self.lists.due(chain.step):
            lost = self.lists.look(chain)
            trace.lost, trace.looked = np.vstack([trace.lost, lost]), np.append(trace.looked, chain.step)
        swept = sweep(self.lists.move, self.families.gaps, chain)
        trace.add(chain.step, swept, chain.state, before)

    def difference(self, chains):
        """Of what counts by now."""
        return difference([chain.trace.window(chain.step) for chain in chains])

    def settled(self, chains, first):
        """Return whether chains of the same law agree."""
        step = chains[0].step
        return step >= FEWEST and step in self.judged and self.agree(chains)

    def agree(self, chains):
        """Return whether the pooled arcs of every group are expected to be within `tol`, on lists that lack little."""
        groups = self.groups([chain.trace.window(chain.step) for chain in chains])
        loss = augment_lists.expected_loss(lost_on_what_counts(chains))
        return loss.max(initial=0.0) <= augment_lists.LOST and all(expected_error(some) < self.tol for some in groups)

    def groups(self, windows):
        """Windows of chains with the same law together."""
        return [windows[k : k + self.group] for k in range(0, len(windows), self.group)]

    def adapt(self, chains, map_chains):
        """Lists grow by what the chains have wanted, and the arcs that move slowest move alone."""
        judged = chains[0].step in self.judged
        self.lists.grow(chains, map_chains, judged)
        if judged:
            found = slow_pairs([chain.trace.window(chain.step) for chain in chains])
            for chain in chains:
                chain.pairs, chain.shares = found


def expected_error(windows):
    """Largest error that is to be expected of an arc posterior, pooled over the chains.

    2.5 standard errors by the spread of slots, or of neighbouring slots joined, which are many and tell it well. Halves of chains
    and whole chains are few, and the largest of so many arcs would be too large by accident: they count where they differ by
    more than slots explain, as those of chains that stay in modes do.
    """
    slots, joined = [], []
    for w in windows:
        counts, n_pairs = w.counts[w.counts > 0], (w.counts > 0).sum() // 2
        means = w.sums[: len(counts)] / counts[:, None, None]
        slots.append(means)
        joined.append(means[: 2 * n_pairs].reshape(n_pairs, 2, *means.shape[1:]).mean(1))
    parts = [np.concatenate(slots), np.concatenate(joined), halves(windows)[0], np.array([w.mean for w in windows])]
    by_slots, by_pairs, by_halves, by_chains = (
        some.var(0, ddof=1) / len(some) if len(some) > 1 else np.zeros(some.shape[1:]) for some in parts
    )
    told = np.maximum(by_slots, by_pairs)
    least = [SURE[0] ** 2 * told, SURE[0] ** 2 * by_halves * (by_halves > MORE[0] * told)]
    least.append(SURE[1] ** 2 * by_chains * (by_chains > MORE[1] * told))
    return float(np.sqrt(np.max(least)))


def slow_pairs(windows):
    """((n_pairs, 2), (n_pairs,)): columns between which arcs differ most from slot to slot and from chain to chain, and how often
    they move: in proportion to the standard deviation to the power 1.5."""
    counts = np.concatenate([w.counts for w in windows])
    slots = np.concatenate([w.sums for w in windows])[counts > 0] / counts[counts > 0, None, None]
    means = slots + slots.transpose(0, 2, 1)
    spread = np.triu(means.std(0), 1)
    ends = np.column_stack(np.unravel_index(np.argsort(spread, axis=None)[::-1][:PAIRS], spread.shape))
    ends = ends[spread[tuple(ends.T)] > STILL]
    shares = spread[tuple(ends.T)] ** 1.5
    return ends, shares / max(shares.sum(), STILL**1.5)


def lost_on_what_counts(chains):
    """(n_looks, n) what the lists lacked whenever chains looked, burn-in left out; of few looks, all."""
    first = chains[0].trace.window(chains[0].step).first
    late = [chain.trace.lost[chain.trace.looked >= first] for chain in chains]
    return np.concatenate(late if all(map(len, late)) else [chain.trace.lost[-1:] for chain in chains])


def _collect(moves, chains, stopped):
    if chains[0].step == 0:
        raise KeyboardInterrupt("interrupted before the first sweeps were done")
    step = min(chain.step for chain in chains)
    windows = [chain.trace.window(step, moves.n_kept) for chain in chains]
    n_kept = min(len(w.has) for w in windows)
    means, groups = np.array([w.mean for w in windows]), moves.groups(windows)
    squares = np.sum([w.squares.sum(0) for w in windows], axis=0) / sum(w.length for w in windows)
    within = np.max([np.ptp([w.mean for w in some], axis=0) for some in groups], axis=0)
    states, filled, scores = (np.stack([w.kept[k][:n_kept] for w in windows]) for k in ("state", "filled", "score"))
    lists, lost = moves.lists.move.lists, lost_on_what_counts(chains)
    if len(lost):
        lists = lists._replace(lost_mass=lost)
    with np.errstate(invalid="ignore"):
        r_hat = np.fmax.reduce([split_r_hat(some) for some in groups])
    record = ChainRecord(
        means, r_hat, effective_size(windows), max(difference(some) for some in groups), int((within > APART).sum()),
        step, np.ones((len(chains), 1)), np.zeros((len(chains), 0)), stopped is None and moves.agree(chains),
        max(expected_error(some) for some in groups),
    )  # fmt: skip
    spread = np.sqrt(np.maximum(squares - means.mean(0) ** 2, 0.0))
    by_cells = sum(chain.cut for chain in chains) / sum(chain.step for chain in chains)
    return AugmentedRun(lists, states, filled, scores, record, spread, by_cells, stopped != "interrupted")


class AugmentedRun(NamedTuple):
    """Result of `run_augmented`."""

    lists: FamilyLists  # those of all chains at their end; lost_mass (n_looks, n), where it was measured
    states: np.ndarray  # (n_chains, n_kept, n)
    filled: np.ndarray  # (n_chains, n_kept, n_cells) missing cells of the table that each state was drawn on
    log_scores: np.ndarray  # (n_chains, n_kept)
    chains: ChainRecord
    spread: np.ndarray  # (n, n) standard deviation of arc posteriors from table to table
    by_cells: float  # share of the incomplete rows that were drawn in blocks
    finished: bool
