"""What users see while code runs: warnings that point at their line, progress bars, packages that are not installed."""

import sys
import warnings
from contextlib import contextmanager
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


DELAY = 2  # seconds before a bar appears


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
