"""Chains over structures and missing cells together, run until their arcs agree: 20 sweeps of burn-in and 20 that count, doubled
again and again.

A sweep depends on a chain's own state and generator only, so threads, checkpoints and interruptions change nothing. Which families
the chains move over, and what is left out: `augment_lists`.
"""

import time
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.parallel import thread_map
from pgm_bma.orders.chains.checkpoints import read_checkpoint, write_checkpoint
from pgm_bma.orders.chains.convergence import (
    BATCHES,
    R_HAT,
    R_HAT_SHARE,
    SETTLED,
    Window,
    difference,
    effective_size,
    split_r_hat,
)
from pgm_bma.orders.families.family_lists import FamilyLists, choose
from pgm_bma.orders.gaps.augment import GapChain, sweep
from pgm_bma.orders.gaps.augment_lists import LOST, SCORED, Families, first_move, grown_move, missed, whole_move

FIRST = 40  # sweeps of the first window, of which half count
APART = 0.2  # chains whose means of an arc differ by more, with R-hat above its limit, are in different modes


def run_augmented(
    gaps, weighting, starts, rngs, scoring, *, fixed=False, group=None, n_kept=30, max_sweeps=1024, max_time=None,
    eps=1e-3, beam=60, checkpoint=None, checkpoint_every=16, fingerprint=None, n_jobs=1, tell=None,
):  # fmt: skip
    """Run one chain per generator until their arcs agree.

    Parameters
    ----------
    gaps : `augment.GapTable`
    starts : per chain, (n,) order or layers; they stay under `fixed`
    group : chains that have the same law, one after the other; by default all of them
    scoring : `family_table.Scoring`, with the parameter prior of `gaps`
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
    families = Families(gaps, weighting, scoring, fixed, eps, beam)
    found = read_checkpoint(checkpoint, fingerprint)
    with thread_map(n_jobs) as map_chains:
        move = first_move(families, chains, map_chains) if found is None else _restore(families, chains, found)
        stopped, written = None, chains[0].sweep
        try:
            for end in ends:
                if end < chains[0].sweep:  # judged before the file was written
                    continue
                while chains[0].sweep < end:
                    map_chains(_advance, [(families, move, chain, end, n_kept) for chain in chains])
                    at = chains[0].sweep
                    if tell:
                        last = [chain.last for chain in chains]
                        tell(at, difference(last) if last[0] is not None else None, time.monotonic() - began)
                    if checkpoint is not None and (at == end or at - written >= checkpoint_every):
                        _write(families, move, chains, checkpoint, fingerprint or {})
                        written = at
                    if max_time is not None and time.monotonic() - began >= max_time and at < ends[-1]:
                        stopped = "time"
                        break
                if stopped or end == ends[-1] or settled(_groups([chain.now for chain in chains], group)):
                    break
                if families.size > SCORED and _misses([chain.now for chain in chains]):
                    move = grown_move(families, move, chains, map_chains)
        except KeyboardInterrupt:
            stopped = "interrupted"
    return _collect(move, chains, stopped, group)


def _window_ends(max_sweeps):
    ends = [min(FIRST, max_sweeps)]
    while 2 * ends[-1] <= max_sweeps:
        ends.append(2 * ends[-1])
    return ends


# ---------------------------------------------------------------------------------------------------- windows


class GapWindow(NamedTuple):
    """The second half of the sweeps up to `end`: sums of arcs, and evenly spaced states with their tables."""

    arcs: Window
    states: np.ndarray  # (n_kept, n)
    filled: np.ndarray  # (n_kept, n_cells)
    held: (
        np.ndarray
    )  # (n_kept, n_bytes) the families that were moved over, as bits; none where they are always the same
    scores: np.ndarray  # (n_kept,)
    lost: np.ndarray  # (n_kept, n) bound on what was left out, by node; NaN: not measured
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


def _new_window(end, n, n_cells, n_bytes, n_kept):
    nothing = np.zeros(0)
    arcs = Window(
        end // 2, end, np.zeros((BATCHES, n, n)), np.zeros((2, n, n)), np.zeros(BATCHES, dtype=np.int64), nothing, nothing,
        nothing, nothing, nothing,
    )  # fmt: skip
    return GapWindow(
        arcs, np.zeros((n_kept, n), dtype=np.int64), np.zeros((n_kept, n_cells), dtype=np.int32),
        np.zeros((n_kept, n_bytes), dtype=np.uint8), np.zeros(n_kept), np.full((n_kept, n), np.nan), np.zeros(n_kept, dtype=bool),
    )  # fmt: skip


def _advance(families, move, chain, end, n_kept):
    """One sweep, added to the window that ends at `end`."""
    table_before = chain.filled
    edges, log_score = sweep(move, families.gaps, chain)
    if chain.now is None or chain.now.arcs.end != end:
        chain.last = chain.now
        n_bytes = 0 if chain.held is None else len(np.packbits(chain.held))
        chain.now = _new_window(end, len(edges), len(chain.filled), n_bytes, n_kept)
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
        now.scores[place - 1], now.has[place - 1] = log_score, True
        if chain.held is not None:
            now.held[place - 1], now.lost[place - 1] = np.packbits(chain.held), chain.lost
        elif place in (1, n_kept):  # more would cost more than the sweeps
            lost = missed(families, move, table_before)
            now.lost[place - 1] = np.nan if lost is None else lost


def _misses(windows):
    """Whether a measured table of the windows wanted more than lists have, or none could be measured."""
    lost = np.concatenate([w.lost for w in windows])
    return not (np.nanmax(lost, initial=-1.0) <= LOST) or np.isnan(lost).all()


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


def _collect(move, chains, stopped, group):
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
    lists, lost = move.lists, np.concatenate([w.lost[has] for w in windows])
    if move.n_candidates is not None:
        held = np.bitwise_or.reduce(np.concatenate([w.held[has] for w in windows]), axis=0)
        lists = choose(lists, np.unpackbits(held, count=len(move.children)).astype(bool))
    if not np.isnan(lost).all():
        lists = lists._replace(lost_mass=lost)
    with np.errstate(invalid="ignore"):
        r_hat = np.fmax.reduce([split_r_hat(some) for some in groups])
    return Augmented(
        lists, np.stack([w.states[has] for w in windows]), filled,
        np.stack([w.scores[has] for w in windows]), means, r_hat,
        effective_size(windows), max(difference(some) for some in groups), int((np.max(within, axis=0) > APART).sum()),
        np.sqrt(np.maximum(squares - means.mean(0) ** 2, 0.0)), chains[0].sweep,
        sum(chain.n_by_cells for chain in chains) / sum(chain.sweep for chain in chains),
        stopped is None and settled(groups), stopped != "interrupted",
    )  # fmt: skip


# ---------------------------------------------------------------------------------------------------- the file

_LISTS = ("offsets", "sets", "log_prior", "lost_mass")
_WINDOW = ("states", "filled", "held", "scores", "lost", "has")
_ARCS = ("sums", "squares", "counts")


def _write(families, move, chains, path, fingerprint):
    lists = move.lists
    arrays = {f"lists_{name}": getattr(lists, name) for name in _LISTS if families.size > SCORED}
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


def _restore(families, chains, found):
    document, arrays = found
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
    if families.size <= SCORED:
        return whole_move(families, chains[0].filled)
    parts = {name: arrays[f"lists_{name}"] for name in _LISTS}
    nothing, shape = np.zeros(len(parts["sets"])), (families.gaps.cardinalities, document["max_indegree"])
    return families.move(FamilyLists(*shape, log_marginal=nothing, beam=document["beam"], **parts))


class Augmented(NamedTuple):
    """What `run_augmented` returns."""

    lists: FamilyLists  # those of all kept tables; lost_mass (n_chains * n_kept, n), where it was measured
    states: np.ndarray  # (n_chains, n_kept, n)
    filled: np.ndarray  # (n_chains, n_kept, n_cells) missing cells of the table that each state was drawn on
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
