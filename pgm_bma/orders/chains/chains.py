"""Driving Markov chains over structures: parallel chains, checkpoints that survive a kill, interruption that keeps samples.

A chain is a state vector, a generator and a step number; a kernel walks it. The kernel recomputes its running sums whenever it
is called, and it is called in blocks that end at every multiple of `checkpoint_every` (and, within those, every BLOCK
steps), with or without a file: that is why runs with, without and after a checkpoint are equal to the last bit.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.parallel import thread_map
from pgm_bma.orders.chains.checkpoints import read_checkpoint, write_checkpoint

BLOCK = 20_000  # longest compiled call, so that Ctrl-C is answered soon


def run_chains(
    kernel,
    families,
    starts,
    rngs,
    *,
    n_kept,
    burn_in,
    thin,
    checkpoint_every=10_000,
    checkpoint=None,
    fingerprint=None,
    n_jobs=1,
    progress=None,
    trace=False,
):
    """Run one chain per generator and keep the states of steps burn_in + 1 + thin t, t = 0 .. n_kept - 1.

    Parameters
    ----------
    kernel : compiled function with the signature of `_order_kernels.run_swaps`
    starts : list of state vectors        rngs : list of Generators
    checkpoint : path or None; written every `checkpoint_every` steps, read if it exists
    fingerprint : dict name -> str that a checkpoint must share
    progress : function of the number of steps just done, or None
    trace : keep the log score after every step (not resumable)

    Returns
    -------
    ChainResult
    """
    last_step = burn_in + 1 + thin * (n_kept - 1)
    chains = [_new_chain(start, rng, n_kept, last_step if trace else 0) for start, rng in zip(starts, rngs)]
    _restore(chains, checkpoint, fingerprint)
    if progress and chains[0].step:
        progress(sum(chain.step for chain in chains))
    finished = True
    with thread_map(n_jobs) as map_chains:
        try:
            while any(chain.step < last_step for chain in chains):
                steps = [_until_boundary(chain.step, checkpoint_every, last_step) for chain in chains]
                map_chains(
                    _advance, [(kernel, families, chain, k, burn_in, thin) for chain, k in zip(chains, steps) if k]
                )
                if progress:
                    progress(sum(steps))
                step = chains[0].step
                if checkpoint is not None and (step % checkpoint_every == 0 or step == last_step):
                    _write(chains, checkpoint, fingerprint or {})
        except KeyboardInterrupt:
            finished = False
    return _collect(chains, burn_in, thin, n_kept, finished)


def _new_chain(start, rng, n_kept, n_trace):
    state = np.array(start, dtype=np.int64)
    kept = np.zeros((n_kept, len(state)), dtype=np.int64)
    return Chain(state, rng, 0, 0, kept, np.zeros(n_kept), -np.inf, state.copy(), np.zeros(n_trace))


def _until_boundary(step, every, last_step):
    """Steps to the next multiple of `every`, of BLOCK counted from the last such multiple, or the end."""
    into = step % every
    return min(every - into, BLOCK - into % BLOCK, last_step - step)


def _advance(kernel, families, chain, n_steps, burn_in, thin):
    trace = chain.trace[chain.step : chain.step + n_steps]
    accepted, _, best, best_state = kernel(
        chain.rng, chain.state, families, n_steps, chain.step + 1, burn_in, thin, chain.kept, chain.kept_scores, trace
    )
    if best > chain.best_score:
        chain.best_score, chain.best_state = best, best_state
    chain.accepted += accepted
    chain.step += n_steps


def _collect(chains, burn_in, thin, n_kept, finished):
    """Equal numbers of kept states from every chain; after an interruption, as many as the slowest has."""
    steps = min(chain.step for chain in chains)
    have = n_kept if finished else max(0, min(n_kept, (steps - burn_in - 1) // thin + 1 if steps > burn_in else 0))
    if have == 0:
        raise KeyboardInterrupt(f"interrupted at step {steps}, before the first kept state (burn_in={burn_in})")
    best = max(chains, key=lambda chain: chain.best_score)
    return ChainResult(
        np.stack([chain.kept[:have] for chain in chains]),
        np.stack([chain.kept_scores[:have] for chain in chains]),
        np.array([chain.accepted / max(chain.step, 1) for chain in chains]),
        best.best_state,
        np.stack([chain.trace for chain in chains]),
        finished,
    )


_KEPT = ("state", "kept", "kept_scores", "best_state")


def _write(chains, path, fingerprint):
    arrays = {f"{name}_{k}": getattr(chain, name) for k, chain in enumerate(chains) for name in _KEPT}
    document = [
        {
            "step": chain.step,
            "accepted": int(chain.accepted),
            "best_score": float(chain.best_score),
            "generator": chain.rng.bit_generator.state,
        }
        for chain in chains
    ]
    write_checkpoint(path, fingerprint, document, arrays)


def _restore(chains, path, fingerprint):
    found = read_checkpoint(path, fingerprint)
    if found is None:
        return
    for k, (chain, values) in enumerate(zip(chains, found[0])):
        for name in _KEPT:
            setattr(chain, name, found[1][f"{name}_{k}"])
        chain.step, chain.accepted, chain.best_score = values["step"], values["accepted"], values["best_score"]
        chain.rng.bit_generator.state = values["generator"]


class ChainResult(NamedTuple):
    """What `run_chains` returns."""

    states: np.ndarray  # (n_chains, n_kept, n)
    log_scores: np.ndarray  # (n_chains, n_kept)
    acceptance: np.ndarray  # (n_chains,)
    best_state: np.ndarray  # (n,) highest score among the steps looked at (every 100th)
    trace: np.ndarray  # (n_chains, n_steps), or (n_chains, 0)
    finished: bool  # False after Ctrl-C


@dataclass
class Chain:
    """One chain on its way."""

    state: np.ndarray
    rng: np.random.Generator
    step: int
    accepted: int
    kept: np.ndarray
    kept_scores: np.ndarray
    best_score: float
    best_state: np.ndarray
    trace: np.ndarray
