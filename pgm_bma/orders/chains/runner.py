"""One runner for all chains over structures: windows, convergence, a time limit, Ctrl-C and a file that survives a kill.

A chain is a dataclass with its state, its generator `rng`, the number of steps that it has made (`step`) and what it has
collected on the way. Moves (a subclass of `Moves`) say how chains walk:

    ends                              steps at which windows end; the last is the end of the run
    checks                            further steps at which the chains may be found to agree
    block(step)                       most steps of one call from here on: Ctrl-C, progress and the file wait no longer
    advance(chain, count, first, end) make `count` steps, part of the window from step `first` to `end`, each a proposal that is
                                      accepted or not (swaps), or an exact draw given the rest (Gibbs, missing cells)
    begin(chains, map_chains, saved)  what is needed before the first step; saved : what `saved()` gave the file, or None
    saved()                           what the chains share and the file must keep
    difference(chains)                largest difference between chains in the last window, for progress; None if unknown
    settled(chains, first)            whether the chains agree at a check, or at the end of a window, that began at `first`
    adapt(chains, map_chains)         what changes between two windows; within one, the law of a chain is fixed

`advance` depends on the chain and the window alone, and calls end at the same steps with or without a file or threads: runs with,
without and after a checkpoint, and for any number of threads, are equal to the last bit.

A window adds up the arc posteriors of the steps from `first` to `end`, in batches, and keeps some of the states, evenly spaced. It
says whether chains have converged: differences, split R-hat and effective sizes of every arc.
"""

import os
import time
from dataclasses import dataclass, is_dataclass
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.archive import Damaged, read_archive, write_archive
from pgm_bma.foundation.runtime.jobs import thread_map

WRITING = 0.05  # most of the time that goes into the file


class Moves:
    """Kind of moves of chains; see above. Every kind has its own `advance` and `block`."""

    ends: list[int]
    checks: tuple[int, ...] = ()

    def block(self, step):
        """Most steps of one call, from `step` on."""
        raise NotImplementedError

    def advance(self, chain, count, first, end):
        """`count` steps of one chain."""
        raise NotImplementedError

    def begin(self, chains, map_chains, saved):
        """Prepare the first step."""

    def saved(self):
        """Arrays and numbers by name."""
        return {}

    def difference(self, chains):
        """Largest difference between chains."""

    def settled(self, chains, first):
        """Return whether the chains agree."""
        return False

    def adapt(self, chains, map_chains):
        """Change the moves between two windows."""


def teller(tick, verbose):
    """Progress of the Gibbs chains: sweeps on the bar; with verbose >= 2, a line whenever the difference is new."""
    if tick is None:
        return None
    last = {"sweeps": 0, "difference": None}

    def tell(sweeps, difference, seconds):
        tick(sweeps - last["sweeps"])
        if difference is not None and difference != last["difference"] and verbose > 1:
            print(f"{sweeps} sweeps, {seconds:.1f} s: arcs of the chains differ by at most {difference:.3f}")
        last.update(sweeps=sweeps, difference=difference)

    return tell


def run_chains(moves, chains, file, *, max_time=None, n_jobs=1, tell=None):
    """Walk all chains to the end of a window at which they agree, or to the last.

    Parameters
    ----------
    moves : Moves        chains : dataclasses, changed in place        file : Checkpoint
    max_time : seconds, or None; the chains stop before a block of steps that would take them past it
    tell : function of (steps, difference of the chains or None, seconds), or None

    Returns
    -------
    None, or what stopped the chains before: "time" or "interrupted"
    """
    began, seconds = time.monotonic(), 0.0
    stops = sorted({*moves.ends, *moves.checks})
    with thread_map(n_jobs) as map_chains:
        moves.begin(chains, map_chains, file.read(chains))
        try:
            for first, end in zip([0, *moves.ends], moves.ends):
                while (step := chains[0].step) < end:
                    if step in moves.checks and moves.settled(chains, first):
                        return None
                    count = min(moves.block(step), min(stop for stop in stops if stop > step) - step)
                    map_chains(moves.advance, [(chain, count, first, end) for chain in chains])
                    before, seconds = seconds, time.monotonic() - began
                    if tell:
                        tell(step + count, moves.difference(chains), seconds)
                    file.write(chains, moves)
                    late = max_time is not None and 2 * seconds - before > max_time
                    if late and step + count < moves.ends[-1]:
                        return "time"
                if chains[0].step == end < moves.ends[-1]:  # else judged before the file was written
                    if moves.settled(chains, first):
                        break
                    moves.adapt(chains, map_chains)
        except KeyboardInterrupt:
            return "interrupted"
    return None


class Checkpoint:
    """The file that keeps a run: written whole or not at all; one that is damaged or of another run raises an error.

    every : steps between two writes, or more, so that they take no more than WRITING of the time
    fingerprint : dict name -> str that the file must share with the run, or None
    """

    FORMAT = 1

    def __init__(self, path, every, fingerprint=None):
        self.path, self.every, self.fingerprint = path, every, fingerprint or {}
        self.written = 0  # steps
        self.not_before = 0.0  # on the clock

    def write(self, chains, moves):
        """Keep the chains, if it is time or the run is at its end."""
        step, now = chains[0].step, time.monotonic()
        due = step - self.written >= self.every and now >= self.not_before
        if self.path is None or not (due or step == moves.ends[-1]):
            return
        arrays: list[np.ndarray] = []
        run = {"chains": [_pack(chain, arrays) for chain in chains], "moves": _pack(moves.saved(), arrays)}
        write_archive(self.path, {"format": self.FORMAT, "fingerprint": self.fingerprint, "run": run}, arrays)
        self.written, done = step, time.monotonic()
        self.not_before = done + (done - now) / WRITING

    def read(self, chains):
        """Put the chains where the file left them; returns what the moves had saved, None where there is no file."""
        if self.path is None or not os.path.exists(self.path):
            return None
        try:
            with open(self.path, "rb") as file:
                archive = read_archive(file.read())
            record = archive.document
            if record["format"] != self.FORMAT:
                raise Damaged(f"it has format {record['format']}, this version writes {self.FORMAT}")
            saved, run = record["fingerprint"], record["run"]
            self._compare(saved)
            for chain, packed in zip(chains, run["chains"]):
                _unpack(chain, packed, archive.array)
            self.written = chains[0].step
            return _unpack(None, run["moves"], archive.array)
        except AnotherRun:
            raise
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(
                f"checkpoint {self.path} cannot be read ({error}); delete it to start again, or name another file"
            ) from error

    def _compare(self, saved):
        for field in [*self.fingerprint, *(name for name in saved if name not in self.fingerprint)]:
            if saved.get(field) != self.fingerprint.get(field):
                raise AnotherRun(
                    f"checkpoint {self.path} belongs to another run: {field} was {saved.get(field)}, "
                    f"now it is {self.fingerprint.get(field)}; restore it, or name another file"
                )


class AnotherRun(ValueError):
    """A checkpoint whose fingerprint is not that of the run."""


def _pack(value, arrays):
    """A chain, or a part of one, as JSON can have it; arrays are appended to `arrays`."""
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, np.random.Generator):
        return value.bit_generator.state
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {name: _pack(part, arrays) for name, part in value.items()}
    return value


def _unpack(old, packed, array):
    """Return what `_pack` was given. Chains, their windows and generators (`old`) are changed in place; array : by number"""
    if isinstance(old, np.random.Generator):
        old.bit_generator.state = packed
        return old
    if is_dataclass(old):
        for name, part in packed.items():
            setattr(old, name, _unpack(getattr(old, name), part, array))
        return old
    if isinstance(packed, dict) and set(packed) == {"array"}:
        return np.array(array(packed["array"]))
    if isinstance(packed, dict):
        return {name: _unpack(None, part, array) for name, part in packed.items()}
    return packed


# ---------------------------------------------------------------------------------------------------- windows

BATCHES = 8  # of a window, for R-hat and effective sizes
R_HAT = 1.1
SURE = 2.5, 2.5, 2.0  # standard errors by batches, halves and chains; few parts make a largest spread too large
APART = 0.2  # chains whose means of an arc differ by more are in different modes


@dataclass
class Window:
    """Sums over the steps `first` .. `end` of one chain."""

    first: int
    end: int
    sums: np.ndarray  # (BATCHES or, pooled, 3 BATCHES / 2, n, n) of arc posteriors
    squares: np.ndarray  # (4, n, n) by quarters; pooled, (2, n, n) by halves
    counts: np.ndarray  # steps of the batches
    kept: dict[str, np.ndarray]  # name -> (n_kept, ...), "state", "score" and what else moves keep
    has: np.ndarray  # (n_kept,) which of them are there
    tried: np.ndarray  # (n_temperatures - 1,) exchanges
    taken: np.ndarray

    @property
    def length(self):
        """Steps that are in it."""
        return int(self.counts.sum())

    @property
    def mean(self):
        """(n, n) arc posteriors."""
        return self.sums.sum(0) / max(self.length, 1)

    def batch(self, step):
        """(batch, quarter) that the step behind `step` belongs to."""
        number = (step - self.first) * BATCHES // (self.end - self.first)
        return number, number * 4 // BATCHES

    def place(self, step):
        """Place among the kept of what a chain has after `step`, or -1; short windows keep fewer."""
        k, length = step - self.first, self.end - self.first
        place = k * len(self.has) // length
        return place - 1 if place > (k - 1) * len(self.has) // length else -1

    def keep(self, place, **values):
        """Keep values by name."""
        for name, value in values.items():
            self.kept[name][place] = value
        self.has[place] = True


def new_window(first, end, n, kept, n_pairs=0):
    """A window still without steps; kept : name -> array to be filled"""
    return Window(
        first, end, np.zeros((BATCHES, n, n)), np.zeros((4, n, n)), np.zeros(BATCHES, dtype=np.int64), kept,
        np.zeros(len(kept["state"]) if kept else 0, dtype=bool), np.zeros(n_pairs), np.zeros(n_pairs),
    )  # fmt: skip


def no_window():
    """The window before the first: empty."""
    return new_window(0, 0, 0, {})


def cut_short(chains, stopped):
    """Return whether chains were stopped when they had hardly begun a window, so that the one before counts."""
    now, last = (min(getattr(chain, name).length for chain in chains) for name in ("now", "last"))
    return stopped is not None and now < last


def all_kept(windows, name):
    """(n_chains, n_kept, ...) what all chains have kept under a name."""
    has = np.logical_and.reduce([window.has for window in windows])
    return np.stack([window.kept[name][has] for window in windows])


def difference(windows):
    """Largest difference of an arc posterior between two chains; of one chain alone, between its two halves."""
    return float(differences(windows).max(initial=0.0))


def differences(windows):
    """(n, n) the same of every arc."""
    means = np.array([w.mean for w in windows])
    return np.ptp(means if len(means) > 1 else halves(windows)[0], axis=0)


def halves(windows):
    """(means, variances), each (2 n_chains, n, n), and the length of a half."""
    means, variances, lengths = [], [], []
    for window in windows:
        middle, parts = len(window.counts) // 2, len(window.squares) // 2
        for half in range(2):
            batches = slice(half * middle, (half + 1) * middle)
            length = int(window.counts[batches].sum())
            mean = window.sums[batches].sum(0) / max(length, 1)
            squares = window.squares[half * parts : (half + 1) * parts].sum(0)
            means.append(mean)
            variances.append(np.maximum(squares / max(length, 1) - mean**2, 0.0))
            lengths.append(length)
    return np.array(means), np.array(variances), min(lengths)


def split_r_hat(windows):
    """(n, n) split R-hat of every arc posterior; NaN where it does not vary."""
    means, variances, length = halves(windows)
    within, between = variances.mean(0), means.var(0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = np.sqrt((within * (length - 1) / max(length, 1) + between) / within)
    still = (within <= 1e-20) & (between <= 1e-20)
    return np.where(still | (length < 2), np.nan, r_hat)


def expected_error(windows):
    """Largest error that is to be expected of an arc posterior, pooled over the chains.

    The largest of so many standard errors as SURE says: by the spread of all batches, of halves of chains, and of chains. Many
    batches tell the spread well, but too small where neighbours are alike; chains that stay in modes differ whatever batches do.
    """
    counts = np.concatenate([w.counts for w in windows])
    batches = np.concatenate([w.sums for w in windows])[counts > 0] / counts[counts > 0, None, None]
    means = np.array([w.mean for w in windows])
    return max(_error(batches, SURE[0]), _error(halves(windows)[0], SURE[1]), chain_error(means))


def chain_error(means):
    """Largest error to be expected of the mean of all chains; means : (n_chains, n, n)"""
    return _error(means, SURE[2])


def _error(parts, sure):
    if len(parts) < 2:
        return 0.0
    return float(sure * parts.std(0, ddof=1).max(initial=0.0) / np.sqrt(len(parts)))


def effective_size(windows):
    """(n, n) number of independent states that the windows are worth, from the spread of batch means."""
    counts = np.concatenate([w.counts for w in windows])
    full = counts > 0
    means = np.concatenate([w.sums / np.maximum(w.counts, 1)[:, None, None] for w in windows])[full]
    if len(means) < 2:  # one batch says nothing of their spread
        return np.full(means.shape[1:], np.nan)
    variance = np.mean(halves(windows)[1], axis=0) + means.var(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        size = variance / means.var(0, ddof=1) * full.sum()
    return np.where(np.isfinite(size), np.minimum(size, counts.sum()), np.nan)


class ChainRecord(NamedTuple):
    """Diagnostics of the arcs of chains."""

    means: np.ndarray  # (n_chains, n, n) arc posteriors
    r_hat: np.ndarray  # (n, n) split R-hat
    effective_size: np.ndarray  # (n, n)
    difference: float  # largest of any arc between two chains
    n_apart: int  # arcs whose chains differ by more than APART
    n_sweeps: int
    betas: np.ndarray  # (n_chains, n_temperatures)
    exchange_rates: np.ndarray  # (n_chains, n_temperatures - 1)
    converged: bool
    error: float = np.nan  # largest that is expected of a pooled arc
