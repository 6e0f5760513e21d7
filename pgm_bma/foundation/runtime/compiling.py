"""Compiled kernels and where their machine code is kept: one folder of the user's, shared by all his environments.

`compiled` is numba's ``njit`` with a cache of our own. The folder is ``NUMBA_CACHE_DIR`` where that is set, else the user's
cache folder (platformdirs); below it one folder per kernel file and per content of that file and of all kernel files that it
imports, so that an edited checkout never runs stale code (a kernel inlines others, which numba's own stamp does not see) and
equal sources share, wherever they are installed. numba itself adds its version, Python's and the processor to the key.
Nothing is written beside the sources, and the caches of other packages stay where they are. A folder that cannot be written
costs the time to compile, nothing else.
"""

import contextlib
import hashlib
import os
import re
import sys
from functools import lru_cache
from pathlib import Path

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

_PACKAGE = Path(__file__).parents[1]
_KERNEL_IMPORT = re.compile(r"^from pgm_bma\.(\w+)(?:\.(_\w*kernels))? import (_\w*kernels)?", re.MULTILINE)
announce = {"to": None, "said": False}  # who wants to hear that code is compiled: a function of one line, or None


def compiled(function=None, **options):
    """numba's ``njit`` for a kernel of this package, kept in the folder of `cache_folder`; a division by zero is inf or nan.

    Parameters
    ----------
    function : function, optional
        Use as ``@compiled`` or ``@compiled(nogil=True)``.
    options : as in ``numba.njit``

    Returns
    -------
    numba dispatcher
    """
    if function is None:
        return lambda function: compiled(function, **options)
    options = {"error_model": "numpy", **options}
    dispatcher = None
    with contextlib.suppress(ImportError, AttributeError):
        from pgm_bma.foundation.runtime.kernel_compiler import njit

        dispatcher = njit(function, options)
    if dispatcher is None:  # another numba: its own way, which takes longer
        dispatcher = numba.njit(**options)(function)
    with contextlib.suppress(RuntimeError, OSError, AttributeError):  # no place for a cache: compile every time
        dispatcher._cache = _Cache(function)
    return dispatcher


def compiled_loops(function=None, **options):
    """`compiled` for kernels that fill arrays and make none: no memory is counted, so there is less to compile. Others may run."""
    return compiled(function, nogil=True, _nrt=False, **options)


def cache_folder():
    """Where compiled kernels are kept; it need not exist yet."""
    base = numba.config.CACHE_DIR
    if not base:
        from platformdirs import user_cache_dir

        base = os.path.join(user_cache_dir("pgm_bma", appauthor=False), "kernels")
    return base


@lru_cache
def content_key(file):
    """Hash of a kernel source, of every kernel source that it imports, directly or not, and of how they are compiled."""
    here = Path(__file__)
    found, waiting = {here, *(here.with_name(f"kernel_{part}.py") for part in ("compiler", "lowering"))}, [Path(file)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            for folder, module, name in _KERNEL_IMPORT.findall(path.read_text(encoding="utf-8")):
                waiting.append(_PACKAGE / folder / f"{module or name}.py")
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


class _Locator:
    """What numba asks of a place for the code of one function."""

    def __init__(self, function, file):
        self._py_file = file
        self._key = content_key(file)
        self._line = function.__code__.co_firstlineno
        self._module = function.__module__.removeprefix("pgm_bma.")

    @classmethod
    def from_function(cls, function, file):
        return cls(function, file)

    def get_cache_path(self):
        return os.path.join(cache_folder(), f"{self._module}-{self._key}")

    def get_source_stamp(self):
        return self._key

    def get_disambiguator(self):
        return str(self._line)

    def ensure_cache_path(self):
        os.makedirs(self.get_cache_path(), exist_ok=True)


class _Place(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _Cache(FunctionCache):
    _impl_class = _Place

    def load_overload(self, sig, target_context):
        found = None
        with contextlib.suppress(OSError, EOFError, ValueError):  # unreadable is as good as absent
            found = super().load_overload(sig, target_context)
        if found is None:
            _tell()
        return found

    def save_overload(self, sig, data):
        with contextlib.suppress(OSError):  # an unwritable folder, a full disk
            super().save_overload(sig, data)


@contextlib.contextmanager
def announcing(to):
    """Within this block the line goes to the function `to`, or to standard error (True); who already listens is left alone."""
    if not to or announce["to"] is not None:
        yield
        return
    announce["to"] = to if callable(to) else lambda line: print(line, file=sys.stderr, flush=True)
    try:
        yield
    finally:
        announce["to"] = None


def _tell():
    """Say once that code is being compiled: to `announce`, else to a person at a terminal."""
    if announce["said"]:
        return
    line = "pgm_bma: compiling, once per installation (pgm-bma warm-up does it all at once)"
    if announce["to"] is not None:
        announce["said"] = True
        announce["to"](line)
    elif sys.stderr is not None and sys.stderr.isatty():
        announce["said"] = True
        print(line, file=sys.stderr)
