"""One runner for all chains over structures: windows, convergence, a time limit, Ctrl-C and a file that survives a kill.

A chain is a dataclass with its state, its generator `rng`, the number of steps that it has made (`step`) and what it has
collected on the way. Moves (a subclass of `Moves`) say how chains walk:

    ends                              steps at which windows end; the last is the end of the run
    block(step)                       most steps of one call from here on: Ctrl-C, progress and the file wait no longer
    advance(chain, count, first, end) make `count` steps, part of the window from step `first` to `end`, each a proposal that is
                                      accepted or not (swaps), or an exact draw given the rest (Gibbs, missing cells)
    begin(chains, map_chains, saved)  what is needed before the first step; saved : what `saved()` gave the file, or None
    saved()                           what the chains share and the file must keep
    difference(chains)                largest difference between chains in the last window, for progress; None if unknown
    settled(chains, first)            whether the chains agree at the end of a window that began at `first`
    adapt(chains, map_chains)         what changes between two windows; within one, the law of a chain is fixed

`advance` depends on the chain and the window alone, and calls end at the same steps with or without a file or threads: runs with,
without and after a checkpoint, and for any number of threads, are equal to the last bit.
"""

import os
import time
from dataclasses import is_dataclass

import numpy as np

from pgm_bma.foundation.runtime.archive import Damaged, read_archive, write_archive
from pgm_bma.foundation.runtime.parallel import thread_map

WRITING = 0.05  # most of the time that goes into the file


class Moves:
    """How chains walk; see above. `advance` and `block` are what every kind of moves has of its own."""

    ends: list[int]

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
        """Whether the chains agree."""
        return False

    def adapt(self, chains, map_chains):
        """Change the moves between two windows."""


def run_chains(moves, chains, file, *, max_time=None, n_jobs=1, tell=None):
    """Walk all chains to the end of a window at which they agree, or to the last.

    Parameters
    ----------
    moves : Moves        chains : dataclasses, changed in place        file : Checkpoint
    max_time : seconds, or None
    tell : function of (steps, difference of the chains or None, seconds), or None

    Returns
    -------
    None, or what stopped the chains before: "time" or "interrupted"
    """
    began = time.monotonic()
    with thread_map(n_jobs) as map_chains:
        moves.begin(chains, map_chains, file.read(chains))
        try:
            for first, end in zip([0, *moves.ends], moves.ends):
                while (step := chains[0].step) < end:
                    count = min(moves.block(step), end - step)
                    map_chains(moves.advance, [(chain, count, first, end) for chain in chains])
                    seconds = time.monotonic() - began
                    if tell:
                        tell(step + count, moves.difference(chains), seconds)
                    file.write(chains, moves)
                    if max_time is not None and seconds >= max_time and step + count < moves.ends[-1]:
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
    """What `_pack` was given. Chains, their windows and generators (`old`) are changed in place; array : by number"""
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
