"""The same work on many inputs, one after the other or side by side: joblib, so that its backends apply, but for chains."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from joblib import Parallel, delayed, effective_n_jobs

from pgm_bma.foundation.faces.validation import Jobs, check


def n_workers(n_jobs):
    """How many run at once under `n_jobs`, as joblib reads it."""
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


@contextmanager
def thread_map(n_jobs: int) -> Iterator[Callable[[Callable, Iterable], list]]:
    """A map (function, jobs) -> results for work that comes in rounds, such as the blocks of a chain.

    The work is always in threads, one of them included: Ctrl-C then reaches the caller, who waits, and not the middle of a compiled
    call.
    """
    with ThreadPoolExecutor(n_jobs) as pool:
        yield lambda function, jobs: [found.result() for found in [pool.submit(function, *job) for job in jobs]]
