"""The command line ``pgm-bma``. Help starts at once: libraries are imported by the command that needs them.

Exit codes: 0 done, 1 a problem with the data or the model (one line on standard error), 2 wrong words, 130 interrupted.
Set PGM_BMA_TRACEBACK=1 to see where a problem arose.
"""

import argparse
import os
import re
import shutil
import sys
import textwrap
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from pgm_bma import __version__, catalogue
from pgm_bma.commands.output import Console, UsageError, one_line

TABLES_FOLDER = "pgm-bma-tables"
EPILOG = """FILE is a CSV, TSV or Parquet file (also compressed), a pattern of such files that are one table, or the name of an
embedded data set.

examples:
  pgm-bma cluster voting --clusters 2:6 --out votes
  pgm-bma classify patients.csv --target outcome --missing '?'
  pgm-bma compare car
  pgm-bma cluster 'part-*.parquet' --clusters 2:6 --memory 2GB
  pgm-bma repeat votes/run.json
"""


def main(argv=None):
    """Run one command; returns the exit code."""
    parser = build_parser()
    argv = sys.argv[1:] if argv is None else list(argv)
    arguments = parser.parse_args(argv)
    arguments.words = argv
    for stream in (sys.stdout, sys.stderr):  # a label that the terminal cannot show must not end a run
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    if arguments.command is None:
        parser.print_help()
        return 2
    try:
        return arguments.run(arguments) or 0
    except UsageError as error:
        return _problem(f"pgm-bma {arguments.command}: {one_line(error)}", 2)
    except BrokenPipeError:  # the reader of a pipe has gone, as in `pgm-bma datasets | head -1`
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
        return 0
    except KeyboardInterrupt:
        return _problem("pgm-bma: interrupted", 130)
    except Exception as error:
        if os.environ.get("PGM_BMA_TRACEBACK"):
            raise
        return _problem(f"pgm-bma: {_message(error, argv)}", 1)


class WholeWords(argparse.ArgumentParser):
    """Options are not abbreviated: --k would be read as --keep-constant."""

    def __init__(self, **keywords):
        super().__init__(**keywords, allow_abbrev=False)


def build_parser():
    parser = WholeWords(
        prog="pgm-bma",
        description="Average over graphical-model structures of discrete data instead of betting on one.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pgm-bma {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=WholeWords)
    _add_demo(commands)
    _add_cluster(commands)
    _add_classify(commands)
    _add_structure(commands)
    _add_impute(commands)
    _add_compare(commands)
    datasets = commands.add_parser("datasets", help="list the embedded data sets and networks")
    datasets.set_defaults(run=_datasets)
    _add_reproduce(commands)
    _add_repeat(commands)
    warm_up = commands.add_parser(
        "warm-up", help="compile everything now, once per installation, instead of when needed"
    )
    warm_up.set_defaults(run=_warm_up)
    return parser


# --------------------------------------------------------------------------------------------------- options


def _add_demo(commands):
    demo = commands.add_parser("demo", help="run the main jobs on embedded data and write what they find")
    _out(demo, "%(default)s", default="pgm-bma-demo")
    demo.set_defaults(run=_demo)


def _add_cluster(commands):
    parser = _table_command(commands, "cluster", "find clusters, the values that mark them and the columns that matter")
    parser.add_argument(
        "--clusters",
        type=_clusters,
        default=range(1, 9),
        metavar="K",
        help="a number (3) or a range (2:8) (default: 1:8)",
    )
    parser.add_argument(
        "--criterion",
        choices=("evidence", "bic", "icl", "caic", "blrt"),
        help="criterion that chooses among several numbers of clusters (default: evidence); blrt is the bootstrapped "
        "likelihood-ratio test; "
        "where others disagree, the result says so",
    )
    parser.add_argument(
        "--blrt",
        action="store_true",
        help="test by bootstrap whether one more cluster would fit better than chance explains",
    )
    _method(parser, "clusterer")
    parser.add_argument(
        "--target", metavar="COLUMN", help="known classes: left out, and compared with the clusters afterwards"
    )
    after = "take no part in the clustering; how far they predict the cluster is reported afterwards"
    _repeatable(parser, "--covariates", f"{after}; repeatable, or a,b,c")
    parser.add_argument(
        "--outcome", metavar="COLUMN", help="takes no part in the clustering; compared between the clusters afterwards"
    )
    parser.set_defaults(run=_learn)


def _add_classify(commands):
    parser = _table_command(commands, "classify", "fit a classifier, judge it on rows it has not seen, and predict")
    _class_column(parser)
    _method(parser, "classifier")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--test", metavar="FILE", help="predict the rows of this file, and judge by them if it has the target"
    )
    _cross_validation(how)
    parser.set_defaults(run=_learn)


def _add_structure(commands):
    parser = _table_command(commands, "structure", "posterior probabilities of the arcs between all columns")
    _method(parser, "structure")
    parser.add_argument(
        "--interventions",
        metavar="COLUMN",
        help="this column names the variable that was set by an experiment in each row, several with ; between them; empty: none",
    )
    _repeatable(parser, "--effects", "effects of setting X on Y, with those of all columns; repeatable", "X,Y")
    parser.add_argument(
        "--tiers", metavar="'A,B|C'", help="no arc goes back from a later group of columns to an earlier"
    )
    _repeatable(parser, "--forbid", "no structure has the arc from A to B; repeatable", "A:B")
    _repeatable(parser, "--require", "every structure has the arc from A to B; repeatable", "A:B")
    parser.set_defaults(run=_learn)


def _add_impute(commands):
    parser = _table_command(
        commands, "impute", "completed copies of a table with missing values, averaged over structures"
    )
    _method(parser, "structure")
    parser.add_argument(
        "--copies", type=_positive, default=5, metavar="N", help="completed tables to write (default: %(default)s)"
    )
    parser.set_defaults(run=_learn)


def _add_compare(commands):
    parser = _table_command(commands, "compare", "all classifiers on the same folds, in one table with standard errors")
    _class_column(parser)
    _cross_validation(parser)
    offered = ", ".join(catalogue.METHODS["classifier"])
    parser.add_argument("--methods", metavar="A,B", help=f"compare only some of: {offered}")
    parser.set_defaults(run=_learn)


def _add_reproduce(commands):
    parser = commands.add_parser(
        "reproduce", help="list the tables of the papers, or compute one and compare it with the paper"
    )
    parser.add_argument(
        "table", nargs="?", metavar="TABLE", help="a name from the list, or all; without it the list is shown"
    )
    parser.add_argument(
        "options", nargs=argparse.REMAINDER, metavar="...", help="options of the table: --full, --seed N, --out FOLDER"
    )
    parser.set_defaults(run=_reproduce)


def _add_repeat(commands):
    parser = commands.add_parser("repeat", help="repeat a run from its run.json and check that it comes out the same")
    parser.add_argument("record", metavar="RUN.JSON", help="the file, or the folder that holds it")
    _out(parser, "the old one with -repeat behind it")
    parser.set_defaults(run=_repeat)


def _table_command(commands, name, help):
    """A command that reads a table, with the options all of them share."""
    parser = commands.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.")
    parser.add_argument(
        "file",
        metavar="FILE",
        help="CSV, TSV or Parquet, also compressed; a pattern such as 'part-*.parquet', which is scanned and not read whole; "
        "or the name of an embedded data set",
    )
    _repeatable(parser, "--missing", "a cell with this text is missing, as an empty one is; repeatable", "TEXT")
    parser.add_argument(
        "--no-header", action="store_true", help="the first row is data; columns are called x1, x2, ..."
    )
    codes = "numbers that mean missing, as --missing-codes=-9,99, or in one column only: --missing-codes=age:-9,99"
    _repeatable(parser, "--missing-codes", codes, "CODES", type=_codes)
    for option, what in (
        ("drop", "leave this column out"),
        ("categorical", "the values of this column are names, also where they are numbers, dates or many"),
        ("numeric", "the values of this column are numbers: others are missing"),
        ("ordered", "the values of this column are names with an order, by the first number in them"),
    ):
        _repeatable(parser, f"--{option}", f"{what}; repeatable, or a,b,c")
    parser.add_argument("--id", metavar="COLUMN", help="this column names the rows; the results keep it")
    parser.add_argument("--weight", metavar="COLUMN", help="sampling weights of the rows")
    parser.add_argument("--keep-constant", action="store_true", help="keep columns that have one value only")
    parser.add_argument(
        "--discretize",
        choices=("mdl", "frequency", "width"),
        help="cut numbers into bins: where the class changes (mdl, inside the folds), equally full, or equally wide; without "
        "it classifiers and the methods ema and em take numbers as they are",
    )
    parser.add_argument(
        "--bins", type=_positive, default=3, metavar="N", help="bins of frequency and width (default: %(default)s)"
    )
    parser.add_argument(
        "--seed",
        type=partial(_at_least, 0),
        default=0,
        metavar="N",
        help="seed of all random numbers (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs", type=_jobs, default=1, metavar="N", help="processors, -1 for all; results do not depend on it"
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="such as 2GB: scan the files instead of reading them, within this memory (of each worker, with --workers)",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--workers", type=_positive, metavar="N", help="scan with this many processes of dask")
    where.add_argument("--scheduler", metavar="ADDRESS", help="scan on the dask cluster with this scheduler")
    parser.add_argument(
        "--excel", action="store_true", help="tables with a byte order mark, semicolons and decimal commas, for Excel"
    )
    parser.add_argument(
        "--format",
        choices=("csv", "xlsx"),
        default="csv",
        help="xlsx: all tables also as sheets of one file, tables.xlsx; needs openpyxl (default: %(default)s)",
    )
    parser.add_argument("--no-rows", action="store_true", help="show no single row of the table in the report")
    _out(parser, "the name of FILE and the command")
    return parser


def _out(parser, text, **keywords):
    parser.add_argument("--out", metavar="DIR", help=f"folder for the files (default: {text})", **keywords)
    parser.add_argument(
        "--overwrite", action="store_true", help="replace files of that folder which pgm-bma did not write"
    )


def _method(parser, kind):
    offered = catalogue.METHODS[kind]
    titles = "; ".join(f"{name}: {method.title}" for name, method in offered.items())
    more = " (default: the one that did best in measurements, see the page Evidence)" if len(offered) > 1 else ""
    parser.add_argument("--method", choices=list(offered), help=f"{titles}{more}")
    _repeatable(parser, "--set", "any parameter of the method's Python class; repeatable", "NAME=VALUE")


def _repeatable(parser, option, text, metavar="COLUMN", **keywords):
    parser.add_argument(option, action="append", default=[], metavar=metavar, help=text, **keywords)


def _class_column(parser):
    parser.add_argument("--target", metavar="COLUMN", help="the class (embedded data sets know theirs)")


def _cross_validation(parser):
    text = "cross-validation (default: %(default)s folds)"
    parser.add_argument("--cv", type=partial(_at_least, 2), default=10, metavar="FOLDS", help=text)


def _clusters(text):
    try:
        if match := re.fullmatch(r"(\d+)\s*(?::|-|\.\.)\s*(\d+)", text.strip()):
            first, last = map(int, match.groups())
            if not 1 <= first <= last:
                raise ValueError
            return range(first, last + 1)
        return _positive(text)
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number (3) nor a range (2:8)") from None


def _codes(text):
    from pgm_bma.commands.tabular_files import parse_codes

    try:
        return parse_codes(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither -9,99 nor COLUMN:-9,99") from None


def _at_least(least, text):
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return number


_positive = partial(_at_least, 1)


def _jobs(text):
    return -1 if text == "-1" else _positive(text)


# -------------------------------------------------------------------------------------------------- commands


def _learn(arguments):
    from pgm_bma.commands import classify, cluster, structure
    from pgm_bma.foundation.runtime.compiling import announcing

    jobs = {
        "cluster": cluster.cluster,
        "classify": classify.classify,
        "compare": classify.compare,
        "structure": structure.structure,
        "impute": structure.impute,
    }
    console = Console()
    with announcing(console.compiling):
        jobs[arguments.command](arguments, console)


def _demo(arguments):
    from pgm_bma.commands.demo import run

    run(arguments.out, arguments.overwrite)


def _datasets(arguments):
    from pgm_bma.datasets import list_datasets, list_networks, load_dataset

    print(f"{'data set':<16}{'rows':>8}{'columns':>9}  target")
    for name in list_datasets():
        frame, target = load_dataset(name)  # nosec B615 # a table of the package, nothing is downloaded
        print(f"{name:<16}{len(frame):>8}{frame.shape[1]:>9}  {target}")
    print(f"\nnetworks: {', '.join(list_networks())}")


def _reproduce(arguments):
    """List the tables, or run one of them (or all) with its options; returns the exit code."""
    entry, table, options = _benchmarks(), arguments.table, list(arguments.options)
    tables = {name: line for name, (line, is_table) in entry.benchmarks().items() if is_table}
    if table is None:
        return _show_tables(tables)
    if not any(option == "--out" or option.startswith("--out=") for option in options):
        options += ["--out", TABLES_FOLDER]  # a quick run must not write over the kept results of a checkout
    if table == "all":
        return entry.run_all(list(tables), options)
    name = table.replace("-", "_")
    if name not in tables:
        from pgm_bma.commands.tabular_files import closest

        raise UsageError(f"no table {table!r}: {closest(name, tables)}")
    return entry.run(entry.load(name), options)


def _benchmarks():
    """The entry module of the benchmarks: pgm_bma._benchmarks when installed, else the folder next to the package."""
    try:
        return import_module("pgm_bma._benchmarks.__main__")
    except ModuleNotFoundError as error:
        if error.name not in ("pgm_bma._benchmarks", "pgm_bma._benchmarks.__main__"):
            raise
    return _checkout("benchmarks")


def _checkout(name):
    """The entry module of a package that stands next to this one in a checkout, wherever Python was started."""
    folder = Path(__file__).resolve().parents[2] / name
    if not (folder / "__main__.py").is_file():
        raise FileNotFoundError("the tables are neither in the package nor next to it; reinstall pgm-bma")
    if name not in sys.modules:
        spec = spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        assert spec is not None and spec.loader is not None  # nosec B101 # for the type checker, the file is there
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return import_module(f"{name}.__main__")


def _show_tables(tables):
    print(
        "Tables of the papers, quick versions by default; run one by\n"
        f"  pgm-bma reproduce TABLE [--full] [--seed N] [--out FOLDER]   (FOLDER is {TABLES_FOLDER} unless given)\n"
    )
    width = max(map(len, tables), default=0)
    columns = max(shutil.get_terminal_size().columns, width + 40)
    for name, line in tables.items():
        indent = " " * (width + 4)
        print(textwrap.fill(line, columns, initial_indent=f"  {name:<{width}}  ", subsequent_indent=indent))
    if not tables:
        print("  (none)")


def _repeat(arguments):
    from pgm_bma.commands.repeat import repeat

    return repeat(arguments.record, arguments.out, build_parser(), Console(), arguments.overwrite)


def _warm_up(arguments):
    from pgm_bma.commands.warm_up import warm_up

    warm_up(Console())


def _message(error, argv):
    """One line for any exception; those that are not about data or model are named, because nobody expected them."""
    if hasattr(error, "problems"):  # of the columns: one line each, and the command to run instead
        return "\n".join(error.lines(argv))
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    text = one_line(error.args[0] if isinstance(error, KeyError) and error.args else error)
    if isinstance(error, (ValueError, OSError, KeyError)) and text:
        return text
    return f"{type(error).__name__}: {text} (PGM_BMA_TRACEBACK=1 shows where)"


def _problem(line, code):
    print(line, file=sys.stderr)
    return code
