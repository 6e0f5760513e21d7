"""Chains over structures and missing cells together, run until their arcs agree: 20 sweeps of burn-in and 20 that count, doubled
again and again.

The families that the chains move over are all of them while they are few; beyond, lists that every chain grows on its first
completed tables, joined and then fixed: chains with different lists would have different laws. A sweep depends on a chain's own
state and generator only, so threads, checkpoints and interruptions change nothing.

What the lists leave out is measured on the kept tables, by scoring all families on them.
"""

import time
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.counts import state_offsets
from pgm_bma.foundation.parallel import thread_map
from pgm_bma.orders import _augment_kernels as kernels
from pgm_bma.orders.augment import GapChain, completed, first_filling, make_move, sweep
from pgm_bma.orders.checkpoints import read_checkpoint, write_checkpoint
from pgm_bma.orders.convergence import (
    BATCHES,
    R_HAT,
    R_HAT_SHARE,
    SETTLED,
    Window,
    difference,
    effective_size,
    split_r_hat,
)
from pgm_bma.orders.family_lists import FamilyLists, grow_lists, prune_table
from pgm_bma.orders.family_table import MAX_FAMILIES, binomials, family_table, local_sets, members, n_families

FIRST = 40  # sweeps of the first window, of which half count
PILOT = (2, 3, 3, 4, 4, 4)  # sweeps between two growings of the lists
ROUNDS = 4  # of growing, the last ones, whose families are kept
ALL_FAMILIES = 30_000  # up to which nothing is left out: 20 variables with three parents
EVERY_TABLE = (
    500_000  # families up to which what is left out is measured on every kept table: 42 variables with three parents
)
SLACK = 0.3  # of eps when lists are grown: what one table drops another may want
APART = 0.2  # chains whose means of an arc differ by more, with R-hat above its limit, are in different modes


def run_augmented(
    gaps, weighting, starts, rngs, families, *, fixed=False, group=None, n_kept=30, max_sweeps=1024, max_time=None,
    eps=1e-3, beam=60, checkpoint=None, checkpoint_every=16, fingerprint=None, n_jobs=1, tell=None,
):  # fmt: skip
    """Run one chain per generator until their arcs agree.

    Parameters
    ----------
    gaps : `augment.GapTable`
    starts : per chain, (n,) order or layers; they stay under `fixed`
    group : chains that have the same law, one after the other; by default all of them
    families : Scoring, with the parameter prior of `gaps`
    max_sweeps : sweeps of a chain; the last window of 40 x 2^k sweeps below it is the last
    checkpoint_every : sweeps between two writes

    Returns
    -------
    Augmented
    """
    began = time.monotonic()
    chains = [GapChain(np.asarray(start, dtype=np.int64), None, rng) for start, rng in zip(starts, rngs)]
    ends = _window_ends(max_sweeps)
    n_kept = min(n_kept, ends[-1] - ends[-1] // 2)
    found = read_checkpoint(checkpoint, fingerprint)
    with thread_map(n_jobs) as map_chains:
        if found is None:
            lists = _first_lists(gaps, weighting, chains, families, fixed, eps, beam, map_chains)
            for chain in chains:
                chain.log_marginal = None
        else:
            lists = _restore(chains, found, gaps)
        move, measure = make_move(lists, gaps, weighting, fixed), measure_of(lists, gaps, families)
        stopped, written = None, chains[0].sweep
        try:
            for end in ends:
                while chains[0].sweep < end:
                    map_chains(_advance, [(move, gaps, chain, end, n_kept, measure) for chain in chains])
                    at = chains[0].sweep
                    if tell:
                        last = [chain.last for chain in chains]
                        tell(at, difference(last) if last[0] is not None else None, time.monotonic() - began)
                    if checkpoint is not None and (at == end or at - written >= checkpoint_every):
                        _write(chains, lists, checkpoint, fingerprint or {})
                        written = at
                    if max_time is not None and time.monotonic() - began >= max_time and at < ends[-1]:
                        stopped = "time"
                        break
                if stopped or settled(_groups([chain.now for chain in chains], group)):
                    break
        except KeyboardInterrupt:
            stopped = "interrupted"
    return _collect(move, chains, measure, stopped, group)


def _window_ends(max_sweeps):
    ends = [min(FIRST, max_sweeps)]
    while 2 * ends[-1] <= max_sweeps:
        ends.append(2 * ends[-1])
    return ends


# ---------------------------------------------------------------------------------------------------- families


def _first_lists(gaps, weighting, chains, families, fixed, eps, beam, map_chains):
    """The families to move over; every chain gets its first completed table on the way."""
    n = len(gaps.cardinalities)
    for chain in chains:
        chain.filled = first_filling(gaps, chain.rng)
    size = n_families(n, n - 1, min(families.max_indegree, n - 1))
    full = size <= MAX_FAMILIES
    if size <= ALL_FAMILIES:
        return all_families(_table(gaps, completed(gaps, chains[0].filled), families))
    return join_lists(
        map_chains(_pilot, [(gaps, weighting, chain, families, fixed, eps, beam, full) for chain in chains])
    )


def _pilot(gaps, weighting, chain, families, fixed, eps, beam, full):
    """Grow a list on the chain's table, walk some sweeps over it, and again: all families of the last rounds."""
    kept = []
    for count in (*PILOT, 0):
        codes = completed(gaps, chain.filled)
        if full:
            lists = prune_table(_table(gaps, codes, families), SLACK * eps)
        else:
            lists = grow_lists(codes, gaps.cardinalities, gaps.weights, families, eps=SLACK * eps, beam=beam)
        kept = [*kept, lists][-ROUNDS:]
        move = make_move(join_lists(kept), gaps, weighting, fixed)
        chain.log_marginal = None
        for _ in range(count):
            sweep(move, gaps, chain)
    chain.sweep = chain.n_by_cells = 0
    return join_lists(kept)


def _table(gaps, codes, families):
    return family_table(codes, gaps.cardinalities, gaps.weights, families)


def all_families(table):
    """All possible families of a full table as lists."""
    parts = [_possible(table, child) for child in range(len(table.cardinalities))]
    return _lists(table.cardinalities, table.max_indegree, *zip(*parts), np.zeros(len(parts)), 0)


def _possible(table, child):
    here = slice(table.offsets[child], table.offsets[child + 1])
    kept = table.log_prior[here] > -np.inf
    return members(table, child)[kept], table.log_marginal[here][kept], table.log_prior[here][kept]


def join_lists(many):
    """The families that are in any of the lists, in the order of full tables: by size, the last member slowest."""
    first = many[0]
    parts = []
    for child in range(len(first.cardinalities)):
        sets = np.concatenate([members(lists, child) for lists in many])
        priors = np.concatenate([lists.log_prior[lists.offsets[child] : lists.offsets[child + 1]] for lists in many])
        sets, at = np.unique(sets, axis=0, return_index=True)
        sizes, width = (sets >= 0).sum(1), sets.shape[1]
        last_first = np.where(sizes[:, None] > np.arange(width), np.sort(sets, axis=1)[:, ::-1], -1)
        ranked = np.lexsort((*last_first.T[::-1], sizes))
        parts.append((sets[ranked], np.zeros(len(ranked)), priors[at[ranked]]))
    lost = np.max([lists.lost_mass for lists in many], axis=0)
    return _lists(first.cardinalities, first.max_indegree, *zip(*parts), lost, first.beam)


def _lists(cardinalities, max_indegree, sets, log_marginal, log_prior, lost, beam):
    offsets = state_offsets([len(some) for some in sets])
    return FamilyLists(
        cardinalities, max_indegree, offsets, np.concatenate(sets).astype(np.int32), np.concatenate(log_marginal),
        np.concatenate(log_prior), np.asarray(lost, dtype=float), beam,
    )  # fmt: skip


def held_by(lists, table):
    """(n_families,) whether `lists` have the families of a full table."""
    radix = (len(table.cardinalities) + 1) ** np.arange(table.max_indegree, dtype=np.int64)  # a set as one number
    return np.concatenate(
        [
            np.isin((members(table, child) + 1) @ radix, (members(lists, child).astype(np.int64) + 1) @ radix)
            for child in range(len(table.cardinalities))
        ]
    )


def lost_on(held, table):
    """(n,) bound on the share of a node's sum that the families outside `held` have on the rows behind a full table."""
    lost, scores = np.zeros(len(table.cardinalities)), table.log_scores
    for child, m in enumerate(table.n_candidates.tolist()):
        here = slice(table.offsets[child], table.offsets[child + 1])
        ranks = binomials(max(m, 1), table.max_indegree)
        sets = local_sets(m, table.max_indegree)
        lost[child] = kernels.lost_share(scores[here], sets, ranks, m, table.max_indegree, held[here])
    return lost


def measure_of(lists, gaps, families):
    """The `Measure` of what lists leave out; None where nothing is, or where all families are too many to score."""
    n = len(gaps.cardinalities)
    size = n_families(n, n - 1, lists.max_indegree)
    if not ALL_FAMILIES < size <= MAX_FAMILIES:
        return None
    held = held_by(lists, _table(gaps, np.maximum(gaps.codes, 0), families))
    return Measure(families, held, size <= EVERY_TABLE)


class Measure(NamedTuple):
    """How to find what lists leave out on a table."""

    families: dict  # arguments of `family_table`
    held: np.ndarray  # (all families,) those in the lists
    every: bool  # on every kept table; else on the first and the last one of a window


# ---------------------------------------------------------------------------------------------------- windows


class GapWindow(NamedTuple):
    """The second half of the sweeps up to `end`: sums of arcs, and evenly spaced states with their tables."""

    arcs: Window
    states: np.ndarray  # (n_kept, n)
    filled: np.ndarray  # (n_kept, n_cells)
    marginal: np.ndarray  # (n_kept, n_families)
    scores: np.ndarray  # (n_kept,)
    lost: np.ndarray  # (n_kept, n) bound on what the lists leave out, by node; NaN: not measured
    has: np.ndarray  # (n_kept,)

    @property
    def sums(self):
        """Of arc posteriors, by batch."""
        return self.arcs.sums

    @property
    def squares(self):
        """Of arc posteriors, by half."""
        return self.arcs.squares

    @property
    def counts(self):
        """Sweeps by batch."""
        return self.arcs.counts

    @property
    def length(self):
        """Sweeps that are in it."""
        return int(self.arcs.counts.sum())


def _new_window(end, n, n_cells, n_families, n_kept):
    nothing = np.zeros(0)
    arcs = Window(
        end // 2, end, np.zeros((BATCHES, n, n)), np.zeros((2, n, n)), np.zeros(BATCHES, dtype=np.int64), nothing, nothing,
        nothing, nothing, nothing,
    )  # fmt: skip
    return GapWindow(
        arcs, np.zeros((n_kept, n), dtype=np.int64), np.zeros((n_kept, n_cells), dtype=np.int32),
        np.zeros((n_kept, n_families)), np.zeros(n_kept), np.full((n_kept, n), np.nan), np.zeros(n_kept, dtype=bool),
    )  # fmt: skip


def _advance(move, gaps, chain, end, n_kept, measure):
    """One sweep, added to the window that ends at `end`."""
    table_before = chain.filled
    edges, log_score = sweep(move, gaps, chain)
    if chain.now is None or chain.now.arcs.end != end:
        chain.last = chain.now
        chain.now = _new_window(end, len(edges), len(chain.filled), len(move.children), n_kept)
    now, first = chain.now, end // 2
    k, length = chain.sweep - first, end - first
    if k < 1:
        return
    batch = (k - 1) * BATCHES // length
    now.sums[batch] += edges
    now.squares[batch * 2 // BATCHES] += edges**2
    now.counts[batch] += 1
    place = k * n_kept // length
    if place > (k - 1) * n_kept // length:
        now.states[place - 1], now.filled[place - 1] = chain.state, table_before
        now.marginal[place - 1], now.scores[place - 1], now.has[place - 1] = chain.log_marginal, log_score, True
        if measure is not None and (measure.every or place in (1, n_kept)):
            table = _table(gaps, completed(gaps, table_before), measure.families)
            now.lost[place - 1] = lost_on(measure.held, table)


def _groups(windows, size):
    """Windows of chains with the same law together."""
    size = size or len(windows)
    return [windows[k : k + size] for k in range(0, len(windows), size)]


def settled(groups):
    """Whether split R-hat of the open arcs holds, and no two chains of a group are in different modes."""
    for windows in groups:
        r_hat, mean, apart = _judged(windows)
        open_ones = (mean > SETTLED[0]) & (mean < SETTLED[1]) & ~np.isnan(r_hat)
        if apart.any() or (open_ones.any() and np.quantile(r_hat[open_ones], R_HAT_SHARE) >= R_HAT):
            return False
    return True


def _judged(windows):
    """(R-hat, mean, arcs on which chains are in different modes), each (n, n)."""
    means = np.array([w.sums.sum(0) / max(w.length, 1) for w in windows])
    r_hat = split_r_hat(windows)
    return r_hat, means.mean(0), (np.ptp(means, axis=0) > APART) & ~(r_hat <= R_HAT)


def _collect(move, chains, measure, stopped, group):
    now, last = ([getattr(chain, name) for chain in chains] for name in ("now", "last"))
    windows = now
    if last[0] is not None and min(w.length for w in now) < min(w.length for w in last):
        windows = last
    if any(w is None for w in windows) or not np.logical_and.reduce([w.has for w in windows]).any():
        raise KeyboardInterrupt("interrupted before the first sweeps were done")
    has = np.logical_and.reduce([w.has for w in windows])
    means = np.array([w.sums.sum(0) / w.length for w in windows])
    squares = np.sum([w.squares.sum(0) for w in windows], axis=0) / sum(w.length for w in windows)
    groups = _groups(windows, group)
    within = [np.ptp(means[k : k + len(groups[0])], axis=0) for k in range(0, len(means), len(groups[0]))]
    filled = np.stack([w.filled[has] for w in windows])
    lists = move.lists
    if measure is not None:
        lists = lists._replace(lost_mass=np.concatenate([w.lost[has] for w in windows]))
    with np.errstate(invalid="ignore"):
        r_hat = np.fmax.reduce([split_r_hat(some) for some in groups])
    return Augmented(
        lists, np.stack([w.states[has] for w in windows]), filled,
        np.stack([w.marginal[has] for w in windows]), np.stack([w.scores[has] for w in windows]), means, r_hat,
        effective_size(windows), max(difference(some) for some in groups), int((np.max(within, axis=0) > APART).sum()),
        np.sqrt(np.maximum(squares - means.mean(0) ** 2, 0.0)), chains[0].sweep,
        sum(chain.n_by_cells for chain in chains) / sum(chain.sweep for chain in chains),
        stopped is None and settled(groups), stopped != "interrupted",
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------- the file

_LISTS = ("offsets", "sets", "log_prior", "lost_mass")
_WINDOW = ("states", "filled", "marginal", "scores", "lost", "has")
_ARCS = ("sums", "squares", "counts")


def _write(chains, lists, path, fingerprint):
    arrays = {f"lists_{name}": getattr(lists, name) for name in _LISTS}
    document = {"max_indegree": lists.max_indegree, "beam": lists.beam, "chains": []}
    for k, chain in enumerate(chains):
        arrays.update({f"state_{k}": chain.state, f"filled_{k}": chain.filled, f"marginal_{k}": chain.log_marginal})
        entry = {"sweep": chain.sweep, "by_cells": chain.n_by_cells, "generator": chain.rng.bit_generator.state}
        for which in ("last", "now"):
            window = getattr(chain, which)
            entry[which] = None if window is None else window.arcs.end
            if window is not None:
                arrays.update({f"{which}_{name}_{k}": getattr(window, name) for name in (*_WINDOW, *_ARCS)})
        document["chains"].append(entry)
    write_checkpoint(path, fingerprint, document, arrays)


def _restore(chains, found, gaps):
    document, arrays = found
    parts = {name: arrays[f"lists_{name}"] for name in _LISTS}
    n_sets = len(parts["sets"])
    for k, (chain, entry) in enumerate(zip(chains, document["chains"])):
        chain.state, chain.filled, chain.log_marginal = (
            arrays[f"{name}_{k}"] for name in ("state", "filled", "marginal")
        )
        chain.sweep, chain.n_by_cells = entry["sweep"], entry["by_cells"]
        chain.rng.bit_generator.state = entry["generator"]
        for which in ("last", "now"):
            if entry[which] is None:
                continue
            kept = {name: arrays[f"{which}_{name}_{k}"] for name in _WINDOW}
            arcs = _new_window(entry[which], len(chain.state), 0, 0, 0).arcs
            for name in _ARCS:
                setattr(arcs, name, arrays[f"{which}_{name}_{k}"])
            setattr(chain, which, GapWindow(arcs, **kept))
    return FamilyLists(
        gaps.cardinalities, document["max_indegree"], log_marginal=np.zeros(n_sets), beam=document["beam"], **parts
    )


class Augmented(NamedTuple):
    """What `run_augmented` returns."""

    lists: FamilyLists  # lost_mass (n_chains * n_kept, n), where it was measured on kept tables
    states: np.ndarray  # (n_chains, n_kept, n)
    filled: np.ndarray  # (n_chains, n_kept, n_cells) missing cells of the table that each state was drawn on
    marginal: np.ndarray  # (n_chains, n_kept, n_families) log marginal likelihoods on it
    log_scores: np.ndarray  # (n_chains, n_kept)
    chain_means: np.ndarray  # (n_chains, n, n) arc posteriors
    r_hat: np.ndarray
    effective_size: np.ndarray
    difference: float
    n_apart: int
    spread: np.ndarray  # (n, n) standard deviation of arc posteriors from table to table
    n_sweeps: int
    by_cells: float  # share of sweeps in which cells were drawn one by one
    converged: bool
    finished: bool
