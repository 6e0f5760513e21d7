"""Shared parts of all benchmarks: arguments, timing, printing and saving tables, reading the published ones, skipping.

A benchmark is a module with a docstring (its first line is the description in the list), `main(argv=None)`, and
`TABLE = True` when it reproduces a table of a paper. Its last lines are ``if __name__ == "__main__": run(main)``.
"""

import argparse
import os
import time
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent


class Skip(Exception):
    """Raised by a benchmark that cannot run here; the message is the reason."""


def run(main, argv=None):
    """Call `main(argv)`; a benchmark that skips prints its reason and counts as success. Returns the exit code."""
    try:
        main(argv)
    except Skip as reason:
        print(f"skipped: {reason}")
    return 0


def parser(description, seed=0):
    """Argument parser with the options of every benchmark; `description` is usually the module's ``__doc__``.

    Examples
    --------
    >>> parser("An example.").parse_args(["--full"]).full
    True
    """
    arguments = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    arguments.add_argument("--full", action="store_true", help="the sizes of the paper instead of a quick version")
    arguments.add_argument(
        "--out", type=Path, default=None, help="folder for the CSV (default: results/ next to the module)"
    )
    arguments.add_argument("--seed", type=int, default=seed, help=f"seed of everything random (default {seed})")
    return arguments


def need(module, cure=None):
    """Import a peer, or skip the benchmark and say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        cure = cure or f"pip install {module.split('.')[0]}"
        raise Skip(f"{module} is not installed here ({cure})") from error


def need_dataset(name):
    """`load_dataset(name)` for sets that are not embedded: from the folder PGM_BMA_DATA, or skip (never a download)."""
    folder = os.environ.get("PGM_BMA_DATA")
    if not folder or not any((Path(folder) / f"{name}{end}").exists() for end in (".csv", ".csv.gz")):
        raise Skip(f"data set {name!r} may not be redistributed; set PGM_BMA_DATA to a folder that holds {name}.csv")
    return import_module("pgm_bma.datasets").load_dataset(name)


def best_of(function, repeats=5):
    """Smallest wall time in seconds of `repeats` calls of `function()`; warm up first if it compiles.

    The minimum, not the mean: other work on the machine only ever adds time.
    """
    return best_of_each({"": function}, repeats)[""]


def best_of_each(functions, repeats=5):
    """`best_of` of several functions (dict name -> function), in turns, so that a busy spell does not hit only one."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def paper_table(name):
    """A published table as a DataFrame: the file ``published/<name>.csv``, e.g. ``"kikuchi_table2"``."""
    import pandas as pd

    path = HERE / "published" / f"{name}.csv"
    if not path.exists():
        known = ", ".join(sorted(p.stem for p in path.parent.glob("*.csv")))
        raise ValueError(f"no published table {name!r}; there are: {known}")
    return pd.read_csv(path)


def print_table(rows, title=None, digits=3):
    """Print a DataFrame (or a list of dicts) in full width, numbers with `digits` decimals."""
    import pandas as pd

    frame = pd.DataFrame(rows)
    if title:
        print(f"\n{title}")
    text = frame.to_string(index=False, na_rep="", float_format=lambda value: f"{value:.{digits}f}", line_width=10_000)
    print(text, flush=True)


def print_line(line):
    """One finished cell of a table as a line: "N 10, EMA 35/6/9, distance 0.335"."""
    parts = (f"{name} {value:.3f}" if isinstance(value, float) else f"{name} {value}" for name, value in line.items())
    print(", ".join(parts), flush=True)


def save_csv(rows, name, out=None, keys=None):
    """Write rows (DataFrame or list of dicts) to ``<folder>/<name>.csv``, say where, and return the path.

    keys : columns; lines of a kept file with other values in them stay, in the order of the keys (a run in pieces)
    """
    import pandas as pd

    path, frame = results_folder(out) / f"{name}.csv", pd.DataFrame(rows)
    if keys and path.exists():
        frame = (
            pd.concat([pd.read_csv(path), frame]).drop_duplicates(keys, keep="last").sort_values(keys, kind="stable")
        )
    frame.to_csv(path, index=False)
    print(f"saved {path}", flush=True)
    return path


def kept_rows(name, out, column, measured):
    """Rows of the kept ``<name>.csv`` whose `column` is none of `measured`: what a run of some parts leaves as it is."""
    import pandas as pd

    path = results_folder(out) / f"{name}.csv"
    if not path.exists():
        return []
    found = pd.read_csv(path).astype(object)
    return found[~found[column].isin(measured)].where(found.notna(), None).to_dict("records")


def replace_table(page, table):
    """Put a Markdown table into a page in the place of the one that has the same header; pages hold what their command printed."""
    text, header = Path(page).read_text(encoding="utf-8"), table.split("\n", 1)[0]
    start = text.index(header)
    end = text.find("\n\n", start)
    Path(page).write_text(text[:start] + table + (text[end:] if end >= 0 else "\n"), encoding="utf-8")


def results_folder(out=None):
    """`out` (made if missing); else results/ next to this module, if there and writable; else the current folder."""
    if out is not None:
        out = Path(out)
        out.mkdir(parents=True, exist_ok=True)
        return out
    beside = HERE / "results"
    return beside if beside.is_dir() and os.access(beside, os.W_OK) else Path.cwd()
