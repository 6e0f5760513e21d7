"""Chains that run until they agree: tempered Gibbs chains over orders or layers, doubled until every arc is settled.

Independent runs, each a ladder of replicas, walk sweeps (one move per node). The number of sweeps is doubled again and again, and
the last two windows count for arcs, three quarters of all sweeps, or the last alone if the one before is not like it; states are
kept from the last. A run is finished when the largest difference of any arc posterior between two runs is below `tol` and split
R-hat holds, or at `max_sweeps` or `max_time`; then the result says that it has not converged. One ladder serves all runs. Within
a window it is fixed; from the exchanges of a window come the powers and the length of the ladder of the next.

The kernel recomputes its sums whenever it is called, and it is called in blocks that end at the same sweeps with or without a
file or threads: runs with, without and after a checkpoint, and for any number of threads, are equal to the last bit.
"""

import time
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import erfcinv

from pgm_bma.foundation.runtime.parallel import thread_map
from pgm_bma.orders.chains.checkpoints import read_checkpoint, write_checkpoint

BLOCK = 8  # sweeps of a compiled call, so that Ctrl-C is answered soon
BURN_IN = 64  # sweeps that never count once there are later ones
# A window counts with the next if the two are no further apart than FURTHER times what the halves of the next are (.9 is expected
# of chains that stand still), or than NEAR in any arc. On win95pts sweeps 200 to 400 are not burnt in: .3 apart. Strict limits
# (1.5, 0.05) leave out good windows where a rare one follows: alarm's largest error of 12 runs was then .061.
FURTHER, NEAR = 2.0, 0.1
RATE = 0.4  # of exchanges between neighbours
COLDEST = 0.02  # lowest power on a ladder of given length: near it everything is flat
# Power that an "auto" ladder passes. Largest error of six to ten runs: alarm (320 sweeps) .045 with 0.15, .032 with 0.1; child
# (1024) .025 with 0.2, .016 with 0.1. On win95pts chains with a lowest power of 0.23 stay in modes of their own.
FLATTEST = 0.1
REPLICAS = (3, 16)
FIRST = 4  # replicas to begin with
BATCHES = 8  # of a window, for R-hat and effective sizes
SETTLED = (0.02, 0.98)  # arcs outside need no R-hat: they hardly vary
R_HAT, R_HAT_SHARE = 1.1, 0.9


def run_until_converged(
    kernel,
    lists,
    starts,
    rngs,
    *,
    n_kept=30,
    tol=0.05,
    max_sweeps=4096,
    max_time=None,
    n_temperatures="auto",
    checkpoint=None,
    checkpoint_every=10_000,
    fingerprint=None,
    n_jobs=1,
    tell=None,
):
    """Run one tempered chain per generator until they agree.

    Parameters
    ----------
    kernel : `_relocation_kernels.run_orders` or `_layer_kernels.run_layers`
    lists : `_relocation_kernels.Lists`
    starts : per chain, (n,) the state that all of its replicas start from
    n_kept : states kept per chain, evenly spaced in the window
    n_temperatures : replicas of a chain, "auto" for as many as the exchanges ask for
    checkpoint_every : moves of a chain's coldest replica between two writes
    tell : function of (sweeps, largest difference or None, seconds), or None

    Returns
    -------
    Converged
    """
    began = time.monotonic()
    n = len(starts[0])
    free = n_temperatures == "auto"
    n_temperatures = FIRST if free else n_temperatures
    chains = [_new_chain(start, rng, n_temperatures, n_kept) for start, rng in zip(starts, rngs)]
    _restore(chains, checkpoint, fingerprint)
    every = max(checkpoint_every // max(n, 1), 1)
    written, cost = chains[0].sweep, 0.0
    stopped = None
    ends = _window_ends(max_sweeps)
    with thread_map(n_jobs) as map_chains:
        try:
            for first, end in zip([0, *ends], ends):
                while chains[0].sweep < end:
                    count = min(BLOCK - chains[0].sweep % BLOCK, end - chains[0].sweep)
                    map_chains(_advance, [(kernel, lists, chain, count, first, end) for chain in chains])
                    sweep = chains[0].sweep
                    if tell:
                        last = [chain.last for chain in chains]
                        tell(sweep, difference(last) if last[0].length else None, time.monotonic() - began)
                    if checkpoint is not None and (sweep == ends[-1] or sweep - written >= every):
                        # a write may take a twentieth of the time
                        if time.monotonic() - began >= cost or sweep == ends[-1]:
                            wrote = time.monotonic()
                            _write(chains, checkpoint, fingerprint or {})
                            cost = time.monotonic() - began + 20 * (time.monotonic() - wrote)
                            written = sweep
                    if max_time is not None and time.monotonic() - began >= max_time and sweep < ends[-1]:
                        stopped = "time"
                        break
                if stopped:
                    break
                if chains[0].sweep == end:
                    if first >= BURN_IN and _settled(_pool(chains), tol):
                        break
                    if end < ends[-1]:
                        _adapt(chains, free)
        except KeyboardInterrupt:
            stopped = "interrupted"
    return _collect(chains, tol, stopped)


def _window_ends(max_sweeps):
    """Sweep numbers at which windows end, each twice the one before, the last `max_sweeps` itself."""
    ends = [max_sweeps]
    while ends[0] > BLOCK:
        ends.insert(0, -(-ends[0] // 2))
    return ends


def _advance(kernel, lists, chain, count, first, end):
    """`count` sweeps of one chain, added to its window, which runs from sweep `first` to `end`."""
    if chain.now.first != first or chain.now.end != end:
        chain.last, chain.now = chain.now, _new_window(first, end, *chain.now.kept.shape, len(chain.gaps))
    now, n = chain.now, chain.states.shape[1]
    batch = (chain.sweep - first) * BATCHES // (end - first)
    squares = now.squares[batch * 4 // BATCHES]
    states, scores = np.empty((count, n), dtype=np.int64), np.empty(count)
    tried, taken = np.zeros((2, len(chain.gaps)))
    best = np.array([chain.best_score])
    found = kernel(
        chain.rng, chain.states, chain.at, chain.betas, lists, count, tried, taken, states, scores, now.sums[batch],
        squares, best,
    )  # fmt: skip
    if found >= 0:
        chain.best_score, chain.best_state = float(best[0]), states[found].copy()
    now.counts[batch] += count
    n_kept = len(now.kept)
    for k, (state, score) in enumerate(zip(states, scores), chain.sweep - first + 1):
        place = k * n_kept // (end - first)
        if place > (k - 1) * n_kept // (end - first):  # evenly spaced; short windows repeat nothing and keep fewer
            now.kept[place - 1], now.kept_scores[place - 1], now.has[place - 1] = state, score, True
    chain.sweep += count
    now.tried += tried
    now.taken += taken


def _adapt(chains, free):
    """The ladder of the next window, from the exchanges of this one; `free`: its length too."""
    tried = sum(chain.now.tried for chain in chains)
    if not np.any(tried):
        return
    gaps = ladder(chains[0].gaps, sum(chain.now.taken for chain in chains) / np.maximum(tried, 1.0), free)
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


def ladder(gaps, rates, free):
    """Steps between the logs of the powers at which all exchanges have RATE, from the rates seen over the present steps.

    A step's rate is about erfc(c); c adds up along the ladder and is taken as evenly spread within a step, and past the last one as
    in it. So a rate says how hard a stretch of powers is, wherever the steps of the next ladder fall.
    free : as many steps as FLATTEST needs, at most twice the present ones
    """
    lengths = erfcinv(np.clip(rates, 0.01, 0.99))
    along, depth = np.append(0.0, np.cumsum(lengths)), np.append(0.0, np.cumsum(gaps))
    slope = gaps[-1] / lengths[-1]
    n_steps = len(gaps)
    if free:
        needed = np.interp(-np.log(FLATTEST), depth, along) + max(-np.log(FLATTEST) - depth[-1], 0.0) / slope
        n_steps = int(np.clip(np.ceil(needed / erfcinv(RATE)), REPLICAS[0] - 1, min(2 * len(gaps), REPLICAS[1] - 1)))
    wanted = erfcinv(RATE) * np.arange(1, n_steps + 1)
    found = np.interp(wanted, along, depth) + np.maximum(wanted - along[-1], 0.0) * slope
    found *= min(1.0, 2.0 * depth[-1] / found[-1], -np.log(COLDEST) / found[-1])  # a few exchanges may mislead
    return np.diff(found, prepend=0.0)


def _powers(gaps):
    """Powers of the order's probability at all temperatures, from the steps of their logs."""
    return np.exp(-np.concatenate([[0.0], np.cumsum(gaps)]))


def difference(windows):
    """Largest difference of an arc posterior between two runs; of one run alone, between its two halves."""
    return float(_differences(windows).max(initial=0.0))


def _differences(windows):
    """(n, n) the same of every arc."""
    means = np.array([w.sums.sum(0) / max(w.length, 1) for w in windows])
    return np.ptp(means if len(means) > 1 else _halves(windows)[0], axis=0)


def _pool(chains):
    """Per chain, a window of all that counts: the present one and, where burn-in seems to be over, the one before."""
    windows = [replace(c.now, squares=c.now.squares[::2] + c.now.squares[1::2]) for c in chains]
    if not _burnt_in(chains, windows):
        return windows
    return [
        replace(
            now,
            first=last.first,
            sums=np.concatenate([last.sums[::2] + last.sums[1::2], now.sums]),  # batches of equal lengths
            squares=np.array([last.squares.sum(0) + now.squares[0], now.squares[1:].sum(0)]),
            counts=np.append(last.counts[::2] + last.counts[1::2], now.counts),
        )
        for last, now in ((chain.last, chain.now) for chain in chains)
    ]


def _burnt_in(chains, windows):
    """Whether the window before, which is half as long, is about as far from the present one as the halves of that are apart."""
    last = [chain.last for chain in chains]
    # without a ladder modes are left late
    if last[0].length == 0 or last[0].first < BURN_IN or not len(chains[0].gaps):
        return False
    means, _, length = _halves(windows)
    if length == 0:
        return False
    before = np.mean([w.sums.sum(0) / w.length for w in last], axis=0)
    first, second = means[::2].mean(0), means[1::2].mean(0)
    apart = np.abs(before - (first + second) / 2).max()
    return apart <= max(FURTHER * np.abs(first - second).max(), NEAR)


def _halves(windows):
    """(means, variances), each (2 n_chains, n, n), and the length of a half."""
    means, variances, lengths = [], [], []
    for window in windows:
        for half in range(2):
            middle = len(window.counts) // 2
            batches = slice(half * middle, (half + 1) * middle)
            length = int(window.counts[batches].sum())
            mean = window.sums[batches].sum(0) / max(length, 1)
            means.append(mean)
            variances.append(np.maximum(window.squares[half] / max(length, 1) - mean**2, 0.0))
            lengths.append(length)
    return np.array(means), np.array(variances), min(lengths)


def split_r_hat(windows):
    """(n, n) split R-hat of every arc posterior; NaN where it does not vary."""
    means, variances, length = _halves(windows)
    within, between = variances.mean(0), means.var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((within * (length - 1) / max(length, 1) + between) / within)
    still = (within <= 1e-20) & (between <= 1e-20)
    return np.where(still | (length < 2), np.nan, r_hat)


def effective_size(windows):
    """(n, n) number of independent orders that the windows are worth, from the spread of batch means."""
    counts = np.concatenate([w.counts for w in windows])
    full = counts > 0
    means = np.concatenate([w.sums / np.maximum(w.counts, 1)[:, None, None] for w in windows])[full]
    if len(means) < 2:  # one batch says nothing of their spread
        return np.full(means.shape[1:], np.nan)
    total = counts.sum()
    variance = np.mean(_halves(windows)[1], axis=0) + means.var(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = variance / means.var(0, ddof=1) * full.sum()
    return np.where(np.isfinite(size), np.minimum(size, total), np.nan)


def _settled(windows, tol):
    if difference(windows) >= tol:
        return False
    mean = np.mean([w.sums.sum(0) / w.length for w in windows], axis=0)
    r_hat = split_r_hat(windows)
    open_ones = (mean > SETTLED[0]) & (mean < SETTLED[1]) & ~np.isnan(r_hat)
    return not open_ones.any() or np.quantile(r_hat[open_ones], R_HAT_SHARE) < R_HAT


def _collect(chains, tol, stopped):
    """What counts; of a run cut short when it had hardly begun a window, the window before."""
    if stopped and min(chain.now.length for chain in chains) < min(chain.last.length for chain in chains):
        chains = [replace(chain, now=chain.last, last=_new_window(0, 0, 0, 0, 0)) for chain in chains]
    windows = _pool(chains)
    if min(window.length for window in windows) == 0:
        raise KeyboardInterrupt("interrupted before the first sweeps were done")
    has = np.logical_and.reduce([window.has for window in windows])
    if not has.any():
        has = windows[0].has | True
        for window, chain in zip(windows, chains):
            window.kept[:], window.kept_scores[:] = chain.best_state, chain.best_score
    means = np.array([w.sums.sum(0) / w.length for w in windows])
    best = max(chains, key=lambda chain: chain.best_score)
    tried, taken = np.array([w.tried for w in windows]), np.array([w.taken for w in windows])
    return Converged(
        np.stack([w.kept[has] for w in windows]),
        np.stack([w.kept_scores[has] for w in windows]),
        best.best_state,
        means,
        split_r_hat(windows),
        effective_size(windows),
        difference(windows),
        int((_differences(windows) > 0.2).sum()),
        chains[0].sweep,
        np.array([chain.betas for chain in chains]),
        taken / np.maximum(tried, 1.0),
        stopped is None and _settled(windows, tol),
        stopped != "interrupted",
    )


# ---------------------------------------------------------------------------------------------------- chains and their file


def _new_chain(start, rng, n_temperatures, n_kept):
    states = np.repeat(np.asarray(start, dtype=np.int64)[None], n_temperatures, axis=0)
    gaps = np.full(n_temperatures - 1, 0.4)
    last, now = (_new_window(0, 0, n_kept, states.shape[1], len(gaps)) for _ in range(2))
    return Chain(states, np.arange(n_temperatures), _powers(gaps), gaps, rng, 0, -np.inf, states[0].copy(), last, now)


def _new_window(first, end, n_kept, n, n_pairs):
    size = n if end > first else 0  # an empty window costs nothing
    return Window(
        first, end, np.zeros((BATCHES, size, size)), np.zeros((4, size, size)), np.zeros(BATCHES, dtype=np.int64),
        np.zeros((n_kept, n), dtype=np.int64), np.zeros(n_kept), np.zeros(n_kept, dtype=bool), np.zeros(n_pairs),
        np.zeros(n_pairs),
    )  # fmt: skip


_ARRAYS = ("states", "at", "betas", "gaps", "best_state")
_WINDOW_ARRAYS = ("sums", "squares", "counts", "kept", "kept_scores", "has", "tried", "taken")


def _write(chains, path, fingerprint):
    arrays, document = {}, []
    for k, chain in enumerate(chains):
        arrays.update({f"{name}_{k}": getattr(chain, name) for name in _ARRAYS})
        entry = {"sweep": chain.sweep, "best_score": chain.best_score, "generator": chain.rng.bit_generator.state}
        for which in ("last", "now"):
            window = getattr(chain, which)
            arrays.update({f"{which}_{name}_{k}": getattr(window, name) for name in _WINDOW_ARRAYS})
            entry[which] = [window.first, window.end]
        document.append(entry)
    write_checkpoint(path, fingerprint, document, arrays)


def _restore(chains, path, fingerprint):
    found = read_checkpoint(path, fingerprint)
    if found is None:
        return
    document, arrays = found
    for k, (chain, entry) in enumerate(zip(chains, document)):
        for name in _ARRAYS:
            setattr(chain, name, arrays[f"{name}_{k}"])
        chain.sweep, chain.best_score = entry["sweep"], entry["best_score"]
        chain.rng.bit_generator.state = entry["generator"]
        for which in ("last", "now"):
            parts = {name: arrays[f"{which}_{name}_{k}"] for name in _WINDOW_ARRAYS}
            setattr(chain, which, Window(*entry[which], **parts))


@dataclass
class Window:
    """What the sweeps `first` .. `end` of one chain added up to."""

    first: int
    end: int
    sums: np.ndarray  # (BATCHES or, pooled, 3 BATCHES / 2, n, n) of arc posteriors
    squares: np.ndarray  # (4, n, n) by quarters; pooled, or of tables with gaps: (2, n, n) by halves
    counts: np.ndarray  # sweeps of the batches
    kept: np.ndarray  # (n_kept, n) states
    kept_scores: np.ndarray
    has: np.ndarray  # (n_kept,) which of them are there
    tried: np.ndarray  # (n_temperatures - 1,) exchanges
    taken: np.ndarray

    @property
    def length(self):
        """Sweeps that are in it."""
        return int(self.counts.sum())


@dataclass
class Chain:
    """One tempered chain on its way."""

    states: np.ndarray  # (n_temperatures, n) by replica
    at: np.ndarray  # replica at every temperature
    betas: np.ndarray
    gaps: np.ndarray
    rng: np.random.Generator
    sweep: int
    best_score: float
    best_state: np.ndarray
    last: Window
    now: Window


class Converged(NamedTuple):
    """What `run_until_converged` returns."""

    states: np.ndarray  # (n_chains, n_kept, n)
    log_scores: np.ndarray  # (n_chains, n_kept)
    best_state: np.ndarray  # (n,) the state with the best DAG in it
    chain_means: np.ndarray  # (n_chains, n, n) arc posteriors
    r_hat: np.ndarray  # (n, n) split R-hat
    effective_size: np.ndarray  # (n, n)
    difference: float  # largest of any arc between two chains
    n_apart: int  # arcs whose chains differ by more than .2
    n_sweeps: int
    betas: np.ndarray  # (n_chains, n_temperatures)
    exchange_rates: np.ndarray  # (n_chains, n_temperatures - 1)
    converged: bool
    finished: bool  # False after Ctrl-C
