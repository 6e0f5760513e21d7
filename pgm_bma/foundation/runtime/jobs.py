"""Seeds, parallel work and progress bars.

A seed in any accepted form becomes one root; starts and chains are spawned from it. Parallel work goes through joblib, so that its
backends apply; chains use threads.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from mmap import mmap

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs

from pgm_bma.foundation.faces.validation import Jobs, brief, check

MOMENT = 5e7  # steps of compiled code
ROOM = 2**25  # bytes of a thread that begins: its stack, and what Python needs
DELAY = 2  # seconds before a bar appears


def seed_sequence(random_state):
    """The root SeedSequence behind a seed: an int as it is, None fresh, a Generator or RandomState by one 128-bit draw."""
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence([int(w) for w in random_state.integers(0, 2**32, size=4, dtype=np.uint64)])
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence([int(w) for w in random_state.randint(0, 2**32, size=4, dtype=np.uint64)])
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool) and random_state >= 0:
        return np.random.SeedSequence(int(random_state))
    raise ValueError(
        f"random_state={brief(random_state)} (seed= in the pgmpy estimators): pass a non-negative integer, None, "
        "a numpy Generator or a numpy RandomState"
    )


def random_generator(random_state):
    """One generator from a seed in any accepted form: ``default_rng(seed)`` for an int. Starts and chains spawn from it."""
    return np.random.default_rng(seed_sequence(random_state))


def fresh(rng):
    """A generator with the seed of `rng` and none of its starts spawned yet."""
    seeds = rng.bit_generator.seed_seq
    return np.random.default_rng(np.random.SeedSequence(seeds.entropy, spawn_key=seeds.spawn_key))


def n_workers(n_jobs):
    """Return how many run at once under `n_jobs`, as joblib reads it."""
    check("n_jobs", n_jobs, Jobs())
    return effective_n_jobs(n_jobs)


def map_jobs(function, jobs, n_jobs=None, *, threads=False):
    """``[function(*job) for job in jobs]``, in order, `n_jobs` at a time.

    threads : the function releases the GIL (compiled kernels) or shares memory: threads will do where no other backend was
    asked for
    """
    jobs = list(jobs)
    if n_workers(n_jobs) == 1 or len(jobs) < 2:
        return [function(*job) for job in jobs]
    return Parallel(n_jobs=n_jobs, prefer="threads" if threads else None)(delayed(function)(*job) for job in jobs)


def in_moments(n: int, cost: float) -> Iterator[slice]:
    """Parts of `n` items whose compiled call ends within a fraction of a second, so that Ctrl-C is heard.

    cost : steps that compiled code makes for an item, of some nanoseconds each
    """
    size = max(int(MOMENT / max(cost, 1.0)), 1)
    return (slice(start, min(start + size, n)) for start in range(0, n, size))


@contextmanager
def thread_map(n_jobs: int) -> Iterator[Callable[[Callable, Iterable], list]]:
    """A map (function, jobs) -> results for work that comes in rounds, such as the blocks of a chain.

    The work is always in threads, one of them included: Ctrl-C then reaches the caller, who waits, and not the middle of a compiled
    call.
    """
    try:
        mmap(-1, n_jobs * ROOM).close()
    except OSError:  # Python waits for ever for a thread that finds no memory to begin with
        raise MemoryError(f"no memory for {n_jobs} threads of {ROOM >> 20} MB") from None
    with ThreadPoolExecutor(n_jobs) as pool:
        yield lambda function, jobs: [found.result() for found in [pool.submit(function, *job) for job in jobs]]


@contextmanager
def progress(show, unit, *, total=None, label=None, file=None):
    """A function that counts what is done, or None when nothing is to be shown.

    show : whether to show a bar     unit : what is counted, in the plural     total : how many, if known
    label : before the bar     file : where it is shown, standard error unless given
    """
    if not show:
        yield None
        return
    from tqdm.auto import tqdm

    shown = {"desc": label, "total": total, "unit": f" {unit}", "unit_scale": (total or 10_000) >= 10_000, "file": file}
    with tqdm(**shown, delay=DELAY, leave=False) as bar:
        yield bar.update
