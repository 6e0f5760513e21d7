"""``pgm-bma reproduce``: the tables of the papers, from the benchmarks inside the package or beside it in a checkout."""

import shutil
import sys
import textwrap
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from pgm_bma.commands.console import UsageError

FOLDER = "pgm-bma-tables"


def reproduce(table=None, options=()):
    """List the tables, or run one of them (or all) with its options; returns the exit code."""
    entry = _benchmarks()
    tables = {name: line for name, (line, is_table) in entry.benchmarks().items() if is_table}
    if table is None:
        return _show(tables)
    options = list(options)
    if not any(option == "--out" or option.startswith("--out=") for option in options):
        options += ["--out", FOLDER]  # a quick run must not write over the kept results of a checkout
    if table == "all":
        return entry.run_all(list(tables), options)
    name = table.replace("-", "_")
    if name not in tables:
        from pgm_bma.commands.tabular_files import closest

        raise UsageError(f"no table {table!r}: {closest(name, tables)}")
    return entry.run(entry.load(name), options)


def _benchmarks():
    """The entry module of the benchmarks: pgm_bma._benchmarks when installed, else the folder beside the package."""
    try:
        return import_module("pgm_bma._benchmarks.__main__")
    except ModuleNotFoundError as error:
        if error.name not in ("pgm_bma._benchmarks", "pgm_bma._benchmarks.__main__"):
            raise
    return _beside("benchmarks")


def _beside(name):
    """The entry module of a package that stands beside this one in a checkout, wherever Python was started."""
    folder = Path(__file__).resolve().parents[2] / name
    if not (folder / "__main__.py").is_file():
        raise FileNotFoundError("the tables are neither in the package nor beside it; reinstall pgm-bma")
    if name not in sys.modules:
        spec = spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return import_module(f"{name}.__main__")


def _show(tables):
    print(
        "Tables of the papers, quick versions by default; run one by\n"
        f"  pgm-bma reproduce TABLE [--full] [--seed N] [--out FOLDER]   (FOLDER is {FOLDER} unless given)\n"
    )
    width = max(map(len, tables), default=0)
    columns = max(shutil.get_terminal_size().columns, width + 40)
    for name, line in tables.items():
        indent = " " * (width + 4)
        print(textwrap.fill(line, columns, initial_indent=f"  {name:<{width}}  ", subsequent_indent=indent))
    if not tables:
        print("  (none)")
