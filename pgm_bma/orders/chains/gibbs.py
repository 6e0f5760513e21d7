"""Tempered Gibbs chains over orders or layers, which run until the error of every pooled arc is small.

Independent chains, each a ladder of replicas, walk sweeps (one move per node: `_relocation_kernels`, `_layer_kernels`). Windows of
sweeps double in length. The last two count for arcs, or the last alone if the one before is not like it; states are kept from what
counts. A run is finished, at the end of a window or half way through it, when the error that is expected of the pooled arcs is
below `tol` and no chain has scores far below the best that are known; or at `max_sweeps` or `max_time`: then the result says that
it has not converged. One ladder serves all chains. From the exchanges of a window come the powers and the length of the ladder of
the next.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import erfcinv

from pgm_bma.orders.chains._pair_kernels import STEP, Ladder, WeightedLists, alone, by_member
from pgm_bma.orders.chains._relocation_kernels import to_the_end
from pgm_bma.orders.chains.runner import (
    APART,
    BATCHES,
    ChainRecord,
    Checkpoint,
    Moves,
    Window,
    all_kept,
    cut_short,
    difference,
    differences,
    effective_size,
    expected_error,
    halves,
    new_window,
    no_window,
    run_chains,
    split_r_hat,
)

BLOCK = 8  # sweeps of a compiled call
MANY = 150  # variables, from which a call is one sweep
BURN_IN = 64  # sweeps that never count once there are later ones
# Relocations of a chain before the first that may end a run: a sweep of few columns has few. Without it, one of 500 random problems
# (5 columns, one a copy of another) ended after 128 sweeps with an arc off by .18; other seeds need 1000 sweeps or more.
FEWEST = 1280
# A window counts with the next if the two are no further apart than FURTHER times what the halves of the next are (.9 is expected
# of chains that stand still), or than NEAR in any arc. On win95pts sweeps 200 to 400 are not burnt in: .3 apart. Strict limits
# (1.5, 0.05) leave out good windows where a rare one follows: alarm's largest error of 12 runs was then .061.
FURTHER, NEAR = 2.0, 0.1
# Of exchanges between neighbours. Default fits of 200 variables, two tables, three seeds each: with 0.4 nine to eleven replicas and
# 32 CPU seconds in the median, with 0.25 eight and 27, with 0.15 seven and 23; sweeps and errors are alike.
RATE = 0.2
# Where a ladder ends: at this power, or at a lower one, where the best order is no more than FLAT nats above a random one. Largest
# error of six to ten runs: alarm (320 sweeps) .045 with 0.15, .032 with 0.1; child (1024) .025 with 0.2, .016 with 0.1. On win95pts
# chains with a lowest power of 0.23 stay in different modes. These have 1000 rows: 520 to 670 nats between random and best
# orders; a million rows have hundreds of thousands. Wide tables have more nats without being harder, so there n^2 / WIDE stands for
# FLAT: on 200 variables, 7400 nats, a ladder to .067 has the spread of one to .022 in three fifths of the time.
FLATTEST, FLAT, WIDE = 0.1, 50.0, 80
COLDEST = 0.2  # part of that power which no ladder passes: near it everything is flat
# A chain whose scores are on average further below the best than so many times their variance, and ROOM nats, is in a minor mode.
# Of a normal density, the peak lies as many nats above the mean as the variance is.
VARIANCES, ROOM = 3.0, 5.0
REPLICAS = (3, 16)
FIRST = 4  # replicas to begin with
TYPICAL = 12  # replicas on wide tables


def run_gibbs(
    kernel, lists, starts, rngs, *, n_kept=30, tol=0.05, early=1.0, max_sweeps=4096, max_time=None, n_temperatures="auto",
    spread=0.0, checkpoint=None, checkpoint_every=10_000, fingerprint=None, n_jobs=1, tell=None,
):  # fmt: skip
    """Run one tempered chain per generator until they agree.

    Parameters
    ----------
    kernel : `_relocation_kernels.run_orders` or `_layer_kernels.run_layers`
    lists : `WeightedLists`, from `prepare_lists`
    starts : per chain, (n,) the state that all of its replicas start from
    n_kept : states kept per chain, evenly spaced in the window
    early : part of `tol` at which chains end
    n_temperatures : replicas of a chain, "auto" for as many as the exchanges ask for
    spread : nats from a random state's score to the best
    checkpoint_every : moves of a chain's coldest replica between two writes
    tell : as in `runner.run_chains`

    Returns
    -------
    GibbsRun
    """
    flat = max(FLAT, len(starts[0]) ** 2 / WIDE)
    flattest = min(FLATTEST, flat / max(spread, flat))
    moves = TemperedMoves(kernel, lists, n_kept, early * tol, max_sweeps, n_temperatures == "auto", flattest)
    n_replicas = FIRST if n_temperatures == "auto" else n_temperatures
    chains = [new_chain(start, rng, n_replicas) for start, rng in zip(starts, rngs)]
    file = Checkpoint(checkpoint, max(checkpoint_every // max(len(starts[0]), 1), 1), fingerprint)
    stopped = run_chains(moves, chains, file, max_time=max_time, n_jobs=n_jobs, tell=tell)
    return _collect(chains, tol, stopped)


def affordable_sweeps(seconds, n, n_families, n_chains):
    """Most sweeps that chains of TYPICAL replicas make in so many CPU seconds, by measurements at 37 to 500 variables."""
    one = 3e-9 * n_families + 18e-9 * n * n  # of one replica
    return max(int(seconds / (one * TYPICAL * n_chains)), BLOCK)


class TemperedMoves(Moves):
    """Sweeps of Gibbs moves of all replicas, with exchanges between them; free : the ladder finds its own length."""

    def __init__(self, kernel, lists, n_kept, tol, max_sweeps, free, flattest):
        self.kernel, self.lists, self.n_kept, self.tol, self.free = kernel, lists, n_kept, tol, free
        self.flattest = flattest
        self.ends = [max_sweeps]  # each twice the one before
        while self.ends[0] > BLOCK:
            self.ends.insert(0, -(-self.ends[0] // 2))
        self.checks = tuple(a + (b - a) // 2 for a, b in zip(self.ends, self.ends[1:]) if a >= 2 * BURN_IN)

    def block(self, step):
        """Sweeps to the next multiple of BLOCK, or one where they take long."""
        return BLOCK - step % BLOCK if len(self.lists.tops) < MANY else 1

    def advance(self, chain, count, first, end):
        """`count` sweeps of one chain, added to its window."""
        n, n_pairs = chain.states.shape[1], len(chain.gaps)
        if (chain.now.first, chain.now.end) != (first, end):
            kept = {"state": np.zeros((self.n_kept, n), dtype=np.int64), "score": np.zeros(self.n_kept)}
            chain.last, chain.now = chain.now, new_window(first, end, n, kept, n_pairs)
        now = chain.now
        batch, quarter = now.batch(chain.step)
        states, scores = np.empty((count, n), dtype=np.int64), np.empty(count)
        tried, taken = np.zeros((2, n_pairs))
        best = np.array([chain.best_score])
        found = self.kernel(
            chain.rng, chain.states, Ladder(chain.at, chain.betas, tried, taken), self.lists, count, states, scores,
            now.sums[batch], now.squares[quarter], best,
        )  # fmt: skip
        chain.top_score = max(chain.top_score, float(scores.max()))
        if found >= 0:
            chain.best_score, chain.best_state = float(best[0]), states[found].copy()
        now.counts[batch] += count
        now.tried += tried
        now.taken += taken
        for state, score in zip(states, scores):
            chain.step += 1
            if (place := now.place(chain.step)) >= 0:
                now.keep(place, state=state, score=score)

    def difference(self, chains):
        """Of the last window."""
        last = [chain.last for chain in chains]
        return difference(last) if last[0].length else None

    def settled(self, chains, first):
        """Return whether what counts agrees, once burn-in is over."""
        few = max(BURN_IN, FEWEST // chains[0].states.shape[1])
        return first >= few and _settled(chains, _pool(chains), self.tol)

    def adapt(self, chains, map_chains):
        """The ladder of the next window, from the exchanges of this one; chains in minor modes go on from the best one's state."""
        below = _below(chains, [chain.now for chain in chains])
        if below.any():
            best = max(chains, key=lambda chain: chain.now.kept["score"].mean())
            for chain in chains:
                chain.now = no_window()  # what was before does not count
            for k in np.flatnonzero(below):
                chains[k].states[chains[k].at[0]] = best.states[best.at[0]]
            return
        tried = sum(chain.now.tried for chain in chains)
        if not np.any(tried):
            return
        gaps = ladder(
            chains[0].gaps, sum(chain.now.taken for chain in chains) / np.maximum(tried, 1.0), self.free, self.flattest
        )
        for chain in chains:
            chain.gaps, chain.betas = gaps.copy(), _powers(gaps)
            more = len(gaps) + 1 - len(chain.at)
            if more < 0:  # the warmest go
                chain.states = chain.states[chain.at[:more]]
                chain.at = np.arange(len(gaps) + 1)
            elif more:  # and new ones are copies of the warmest
                warmest = np.repeat(chain.states[chain.at[-1:]], more, axis=0)
                chain.at = np.append(chain.at, len(chain.at) + np.arange(more))
                chain.states = np.concatenate([chain.states, warmest])


def ladder(gaps, rates, free, flattest):
    """Steps between the logs of the powers at which all exchanges have RATE, from the rates seen over the present steps.

    A step's rate is about erfc(c); c adds up along the ladder and is taken as evenly spread within a step, and past the last one as
    in it. So a rate says how hard a stretch of powers is, wherever the steps of the next ladder fall.
    free : as many steps as the power `flattest` needs, at most twice the present ones
    """
    lengths = erfcinv(np.clip(rates, 0.01, 0.99))
    along, depth = np.append(0.0, np.cumsum(lengths)), np.append(0.0, np.cumsum(gaps))
    slope = gaps[-1] / lengths[-1]
    n_steps = len(gaps)
    if free:
        needed = np.interp(-np.log(flattest), depth, along) + max(-np.log(flattest) - depth[-1], 0.0) / slope
        n_steps = int(np.clip(np.ceil(needed / erfcinv(RATE)), REPLICAS[0] - 1, min(2 * len(gaps), REPLICAS[1] - 1)))
    wanted = erfcinv(RATE) * np.arange(1, n_steps + 1)
    found = np.interp(wanted, along, depth) + np.maximum(wanted - along[-1], 0.0) * slope
    found *= min(
        1.0, 2.0 * depth[-1] / found[-1], -np.log(COLDEST * flattest) / found[-1]
    )  # a few exchanges may mislead
    return np.diff(found, prepend=0.0)


def _powers(gaps):
    """Powers of the state's probability at all temperatures, from the steps of their logs."""
    return np.exp(-np.concatenate([[0.0], np.cumsum(gaps)]))


def _pool(chains):
    """Per chain, a window of all that counts: the present one and, where burn-in seems to be over, the one before.

    Of a present window that is half done, the second half of its batches is left out.
    """
    half = all(c.now.counts[BATCHES // 2 :].sum() == 0 for c in chains)
    done, quarters = BATCHES // 2 if half else BATCHES, 2 if half else 4
    windows = [
        replace(
            c.now,
            sums=c.now.sums[:done],
            counts=c.now.counts[:done],
            squares=c.now.squares[:quarters].reshape(2, quarters // 2, *c.now.squares.shape[1:]).sum(1),
        )
        for c in chains
    ]
    if not _burnt_in(chains, windows):
        return windows
    return [
        replace(
            now,
            first=last.first,
            sums=np.concatenate([last.sums[::2] + last.sums[1::2], now.sums]),  # batches of equal lengths
            squares=np.array(
                [last.squares.sum(0), now.squares.sum(0)] if half else [last.squares.sum(0) + own[0], own[1:].sum(0)]
            ),
            counts=np.append(last.counts[::2] + last.counts[1::2], now.counts),
            **(_kept_of_both(last, now) if half else {}),
        )
        for last, now, own in ((chain.last, now, chain.now.squares) for chain, now in zip(chains, windows))
    ]


def _kept_of_both(last, now):
    """The fields `kept` and `has` of a window that is half done, filled up with states of the window before."""
    there, here = np.flatnonzero(last.has), np.flatnonzero(now.has)
    wanted = min(len(now.has) - len(here), len(there))
    there = there[np.linspace(0, len(there) - 1, wanted).round().astype(int)]
    kept = {name: np.concatenate([last.kept[name][there], now.kept[name][here]]) for name in now.kept}
    return {"kept": kept, "has": np.ones(wanted + len(here), dtype=bool)}


def _burnt_in(chains, windows):
    """Return whether the window before, which is half as long, counts.

    It does if its arcs are about as far from those of the present one as the halves of that are apart. It does too if its scores
    were as good: then chains went from one mode to another of the same height, and both belong to the posterior.
    """
    last = [chain.last for chain in chains]
    if last[0].length == 0 or last[0].first < BURN_IN:
        return False
    means, _, length = halves(windows)
    if length == 0:
        return False
    before = np.mean([w.mean for w in last], axis=0)
    first, second = means[::2].mean(0), means[1::2].mean(0)
    apart = np.abs(before - (first + second) / 2).max()
    if apart <= max(FURTHER * np.abs(first - second).max(), NEAR):
        return True
    now, then = all_kept(windows, "score"), all_kept(last, "score")
    return now.shape[1] > 0 and bool((now.mean(1) - then.mean(1) <= np.maximum(now.std(1), 1.0)).all())


def _settled(chains, windows, tol):
    """Return whether the pooled arcs are expected to be within `tol`, and all chains among the best scores."""
    return expected_error(windows) < tol and not _below(chains, windows).any()


def _below(chains, windows):
    """(n_chains,) whether a chain's scores lie far below the best that any chain has seen."""
    top, kept = max(chain.top_score for chain in chains), all_kept(windows, "score")
    if not kept.shape[1]:
        return np.zeros(len(chains), dtype=bool)
    return top - kept.mean(1) > VARIANCES * kept.var(1) + ROOM


def _collect(chains, tol, stopped):
    if cut_short(chains, stopped):
        chains = [replace(chain, now=chain.last, last=no_window()) for chain in chains]
    windows = _pool(chains)
    if min(window.length for window in windows) == 0:
        raise KeyboardInterrupt("interrupted before the first sweeps were done")
    if not np.logical_and.reduce([window.has for window in windows]).any():
        for window, chain in zip(windows, chains):
            for place in range(len(window.has)):
                window.keep(place, state=chain.best_state, score=chain.best_score)
    tried, taken = np.array([w.tried for w in windows]), np.array([w.taken for w in windows])
    record = ChainRecord(
        np.array([w.mean for w in windows]),
        split_r_hat(windows),
        effective_size(windows),
        difference(windows),
        int((differences(windows) > APART).sum()),
        chains[0].step,
        np.array([chain.betas for chain in chains]),
        taken / np.maximum(tried, 1.0),
        stopped is None and _settled(chains, windows, tol),
        expected_error(windows),
    )
    best = max(chains, key=lambda chain: chain.best_score)
    states, scores = (all_kept(windows, name) for name in ("state", "score"))
    return GibbsRun(states, scores, best.best_state, record, stopped != "interrupted")


def new_chain(start, rng, n_temperatures):
    """A chain before its first sweep, all replicas at `start`."""
    states = np.repeat(np.asarray(start, dtype=np.int64)[None], n_temperatures, axis=0)
    gaps = np.full(n_temperatures - 1, 0.4)
    return TemperedChain(
        states, np.arange(n_temperatures), _powers(gaps), gaps, rng, 0, -np.inf, states[0].copy(), -np.inf, no_window(),
        no_window(),
    )  # fmt: skip


@dataclass
class TemperedChain:
    """One tempered chain on its way."""

    states: np.ndarray  # (n_temperatures, n) by replica
    at: np.ndarray  # replica at every temperature
    betas: np.ndarray
    gaps: np.ndarray  # (n_temperatures - 1,) between the logs of the betas
    rng: np.random.Generator
    step: int  # sweeps
    best_score: float  # of a DAG
    best_state: np.ndarray
    top_score: float  # of a state
    last: Window
    now: Window


class GibbsRun(NamedTuple):
    """Result of `run_gibbs`."""

    states: np.ndarray  # (n_chains, n_kept, n)
    log_scores: np.ndarray  # (n_chains, n_kept)
    best_state: np.ndarray  # (n,) the state with the best DAG in it
    chains: ChainRecord
    finished: bool  # False after Ctrl-C


# ---------------------------------------------------------------------------------------------------- lists for the kernels


def walk(sweeps, prepared, state, n_sweeps, rng):
    """(states (n_sweeps, n), their log scores, sum of their arc posteriors (n, n)) of one chain without replicas.

    sweeps : the compiled sweeps of a weighting     prepared : of `prepare_lists`     state : where it begins
    """
    n = len(state)
    states = np.asarray(state, dtype=np.int64)[None].copy()
    out, scores = np.empty((n_sweeps, n), dtype=np.int64), np.empty(n_sweeps)
    edges, squares, best = np.zeros((n, n)), np.zeros((n, n)), np.array([-np.inf])
    sweeps(rng, states, alone(), prepared, n_sweeps, out, scores, edges, squares, best)
    return out, scores, edges


def prepare_lists(lists):
    """(x, level) weights of every family, and for every variable the families that hold it: a `WeightedLists`."""
    scores, n = lists.log_scores, len(lists.cardinalities)
    sizes = np.diff(lists.offsets)
    if (sizes == 0).any():
        child = int(np.argmin(sizes))
        raise ValueError(f"variable {child} has no parent set left; loosen required or forbidden arcs, or max_indegree")
    tops = np.maximum.reduceat(scores, lists.offsets[:-1])
    behind = np.repeat(tops, sizes) - scores
    levels = np.floor(behind / STEP).astype(np.int32)
    weights = np.exp(STEP * levels - behind)
    bounds = zip(lists.offsets, lists.offsets[1:])
    ranked = np.concatenate([start + np.argsort(behind[start:end], kind="stable") for start, end in bounds])
    levels, weights, sets = levels[ranked], weights[ranked], lists.sets[ranked]
    width = max(lists.max_indegree, 3)
    sets = np.pad(np.where(sets < 0, n, sets), ((0, 0), (0, width - sets.shape[1])), constant_values=n).astype(
        np.uint16
    )
    children = np.repeat(np.arange(n), sizes)
    ends = _ends(np.flatnonzero(_changes(children, levels)), len(weights))
    by_slot = np.ascontiguousarray(sets.T)
    family, others, starts, held_offsets = by_member(by_slot, children, levels, n)
    firsts = family[starts]
    return WeightedLists(
        tops, lists.offsets, by_slot, weights, levels, to_the_end(weights, ends), ends,
        held_offsets, children[firsts], levels[firsts], np.append(starts, len(family)), others, weights[family],
        to_the_end(weights[family], _ends(starts, len(family))), family,
    )  # fmt: skip


def _changes(*columns):
    """Return where a row differs from the one before it; the first does."""
    differs = np.zeros(len(columns[0]), dtype=bool)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


def _ends(starts, n):
    """For each of n places, the end of its stretch; `starts` are the first places of all."""
    bounds = np.append(starts, n)
    return np.repeat(bounds[1:], np.diff(bounds))
