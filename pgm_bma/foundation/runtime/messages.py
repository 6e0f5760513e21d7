"""Warnings that point at the line of the caller, and errors for packages that are not installed."""

import sys
import warnings
from importlib import import_module
from pathlib import Path

_INNER = ("pgm_bma", "sklearn", "joblib", "pgmpy", "concurrent", "threading")
_BENCHMARKS = str(Path(__file__).parents[2] / "_benchmarks")


def warn(message, category=UserWarning):
    """``warnings.warn`` with the first line outside this package (and the libraries that call it) as its place."""
    level, frame = 1, sys._getframe().f_back
    while frame is not None and _is_inner(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1 if frame is not None else 2)


def _is_inner(frame):
    module = frame.f_globals.get("__name__", "")
    return module.partition(".")[0] in _INNER and not frame.f_code.co_filename.startswith(_BENCHMARKS)


EXTRAS = {"duckdb": "duckdb", "pyarrow": "duckdb", "dask": "dask", "distributed": "dask"}


def needed(module, use):
    """The module, or an ImportError that says which extra to install for `use`."""
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise ImportError(f"{use} needs {name}; pip install 'pgm_bma[{EXTRAS[name]}]'") from None
