"""Compiled kernels, the folder that keeps their machine code, and the threads of matrix products.

`compiled` is ``numba.njit(cache=True)``. The folder is ``NUMBA_CACHE_DIR`` where that is set, else the user's cache folder
(platformdirs). Below it stands one folder for each content of all kernel files, since kernels include code of others, which numba's
own time stamp does not see; each version of numba has its own, too. In it stands a folder for each kernel file.
Nothing is written next to the sources.
Without a folder that can be written, kernels are compiled in every process.
"""

import contextlib
import hashlib
import os
import sys
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numba
from threadpoolctl import threadpool_limits

_CONFIG: Any = numba.config  # its attributes are made at run time

_SMALL_MATRIX = 4_000_000  # numbers in a matrix below which a second thread of a product costs more than it saves
_PACKAGE = Path(__file__).parents[2]
announce: dict[str, Any] = {
    "to": None,
    "said": False,
    "waits": False,
}  # who wants to hear that code is compiled: a function of one line


def compiled(function=None, **options):
    """``numba.njit`` for a kernel of this package: threads run it side by side, and a division by zero is inf or nan.

    Parameters
    ----------
    function : function, optional
        Use as ``@compiled`` or ``@compiled(fastmath=True)``.
    options : as in ``numba.njit``

    Returns
    -------
    numba dispatcher
    """
    if function is None:
        return lambda function: compiled(function, **options)
    folder = _folder_of(function)
    if folder is None or not any(Path(folder).rglob("*.nbi")):  # no kernel of that file has been compiled yet
        _tell()
    if folder is not None and not list(Path(folder).rglob(f"*.{function.__name__}-*.nbi")) and not _takes_files(folder):
        folder = None
    before = _CONFIG.CACHE_DIR
    try:
        _CONFIG.CACHE_DIR = folder
        return numba.njit(cache=folder is not None, error_model="numpy", nogil=True, **options)(function)
    finally:
        _CONFIG.CACHE_DIR = before


def cache_folder():
    """Folder of the compiled kernels; it need not exist yet."""
    base = _CONFIG.CACHE_DIR
    if not base:
        from platformdirs import user_cache_dir

        base = os.path.join(user_cache_dir("pgm_bma", appauthor=False), "kernels")
    return base


def _folder_of(function):
    """Folder for the code of a function, or None if it cannot be written."""
    folder = os.path.join(cache_folder(), content_key(), function.__module__.removeprefix("pgm_bma."))
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


@lru_cache
def _takes_files(folder):
    """Return whether a file of some kernels' size can be written there: on a full disk numba's own writing would end the fit."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(2**20))
            file.flush()
    except OSError:
        return False
    return True


@lru_cache
def content_key():
    """Hash of all kernel sources, of what compiles them, and of the version of numba.

    All of them, because a kernel's file of compiled code names the records that it was called with, wherever they are defined.
    """
    digest = hashlib.sha256(numba.__version__.encode())
    for path in (Path(__file__), *sorted(_PACKAGE.rglob("_*kernels.py"))):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def announcing(to):
    """Within this block the line goes to the function `to`, or to standard error (True); who already listens is left alone."""
    if not to or announce["to"] is not None:
        yield
        return
    announce["to"] = to if callable(to) else lambda line: print(line, file=sys.stderr, flush=True)
    if announce["waits"]:
        _tell()
    try:
        yield
    finally:
        announce["to"] = None


def _tell():
    """Say once that code is being compiled: to `announce`, else to a person at a terminal, else when somebody listens."""
    if announce["said"]:
        return
    line = "pgm_bma: compiling what is needed here, once per installation (pgm-bma warm-up compiles everything)"
    if announce["to"] is not None:
        announce["said"] = True
        announce["to"](line)
    elif sys.stderr is not None and sys.stderr.isatty():
        announce["said"] = True
        print(line, file=sys.stderr)
    else:
        announce["waits"] = True


def few_threads(n_numbers):
    """A context in which matrix products have one thread, while the matrices are small.

    On a busy machine the threads of many small products wait for each other, and spin while they wait.
    """
    return threadpool_limits(1, user_api="blas") if n_numbers < _SMALL_MATRIX else contextlib.nullcontext()
