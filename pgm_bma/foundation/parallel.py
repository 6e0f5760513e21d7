"""The same work on many inputs, one after the other or side by side: joblib everywhere, so that its backends apply."""

from joblib import Parallel, delayed, effective_n_jobs

from pgm_bma.foundation.validation import check_number


def check_n_jobs(n_jobs):
    """An error unless joblib would take it: None, a positive number, or -1, -2, ... (all cores, all but one, ...)."""
    if n_jobs is None:
        return
    check_number("n_jobs", abs(n_jobs) if isinstance(n_jobs, int) else n_jobs, 1, integer=True)


def n_workers(n_jobs):
    """How many run at once under `n_jobs`, as joblib reads it."""
    check_n_jobs(n_jobs)
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
