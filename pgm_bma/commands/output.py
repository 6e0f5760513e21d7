"""Output of a run: lines and tables on standard output, messages on standard error, and the files in its folder.

On a terminal progress is a bar; in a pipe or a log file it is one plain line per step. `Folder` remembers what it wrote, with
checksums. Every file is written whole or not at all. Files of an earlier run in the same folder are removed first, but only
those that its run.json lists; files that no run.json lists are not replaced unless that is asked for.
"""

import contextlib
import hashlib
import json
import numbers
import os
import platform
import re
import shutil
import signal
import sys
import textwrap
import threading
import warnings
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pgm_bma
from pgm_bma.foundation.runtime.atomic import replacing
from pgm_bma.report.page import column_cell, finite, picture, visible

WIDTH = 100  # of texts next to their names; less on a narrow terminal

RECORD = "run.json"
SHEET_ROWS, SHEET_COLUMNS = 1 << 20, 1 << 14  # of an xlsx file, at most
OURS = {
    "model.bif", "model.uai", "model.uai.json", "labels.csv", "profiles.csv", "profiles_wide.csv", "predictions.csv", "arcs.csv",
    "completed.csv", "comparison.csv",
    "covariates.csv", "outcome.csv", "tables.xlsx", "graph.graphml", "graph.png", "graph.svg", "bins.pgm",
    "estimator.pgm", "report.html", RECORD,
}  # fmt: skip


class UsageError(Exception):
    """The words of a command do not fit together; exit code 2."""


class ends_at_once:
    """Context manager under which Ctrl-C ends the program there and then, with exit code 130.

    Python would raise KeyboardInterrupt, and raised inside a compiled loop that can crash the interpreter. Where several
    processes do the work (`n_jobs`), no such loop runs here, and KeyboardInterrupt lets joblib end them. Code of other
    libraries may swallow it: then the next step of a progress bar, or the end of this block, raises it again.
    """

    asked = False  # Ctrl-C was pressed while several processes worked

    def __init__(self, n_jobs=1):
        self.n_jobs = n_jobs

    def __enter__(self):
        self.main = threading.current_thread() is threading.main_thread()
        if self.main:
            self.before = signal.signal(signal.SIGINT, self._leave if self.n_jobs == 1 else self._ask)

    def __exit__(self, *_):
        if self.main:
            signal.signal(signal.SIGINT, self.before)
            self.check()

    @classmethod
    def check(cls):
        if cls.asked:
            cls.asked = False
            raise KeyboardInterrupt

    @staticmethod
    def _ask(signum, frame):
        ends_at_once.asked = True
        raise KeyboardInterrupt

    @staticmethod
    def _leave(signum, frame):
        os.write(2, b"\npgm-bma: interrupted\n")
        os._exit(130)


class Console:
    """Collects the notes and warnings of a run while it prints them, so that the report can repeat them."""

    def __init__(self, out=None, err=None):
        self.out, self.err = out or sys.stdout, err or sys.stderr
        self.notes, self.warnings = [], []

    @property
    def is_terminal(self):
        return bool(getattr(self.err, "isatty", lambda: False)())

    def say(self, text=""):
        try:
            print(visible(text.replace("\u00a0", " ")), file=self.out, flush=True)
        except BrokenPipeError:  # the reader of a pipe has gone, as in `... | head -3`; the files are still wanted
            self.out = sys.stdout = open(os.devnull, "w", encoding="utf-8")

    def item(self, name, text):
        """A line with a name in a left column; long texts are wrapped next to it."""
        width = WIDTH
        if getattr(self.out, "isatty", lambda: False)():
            width = max(min(width, shutil.get_terminal_size().columns - 13), 20)
        wrapped = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False) or [""]
        for i, line in enumerate(wrapped):
            self.say(f"{name if i == 0 else '':<10}  {line}")

    def note(self, text):
        self.notes.append(text)
        print(f"note: {visible(text)}", file=self.err, flush=True)

    def warn(self, text):
        text = one_line(text)
        if text not in self.warnings:
            self.warnings.append(text)
            print(f"warning: {visible(text)}", file=self.err, flush=True)

    def step(self, text):
        """Say what is being done now; on a terminal the bars show it."""
        if not self.is_terminal:
            print(visible(text), file=self.err, flush=True)

    def compiling(self, line):
        """The line that says why the first call takes longer."""
        print(visible(line.removeprefix("pgm_bma: ")), file=self.err, flush=True)

    def progress(self, steps, total, label, brief=False, quiet=False):
        """Yield from `steps`, showing how far it is; `brief`: one line for all where there is no terminal, `quiet`: none."""
        from pgm_bma.foundation.runtime.jobs import progress  # brings numpy, which --help does without

        with progress(self.is_terminal, "steps", total=total, label=label, file=self.err) as advance:
            for number, step in enumerate(steps, start=1):
                ends_at_once.check()
                if advance is not None:
                    advance(1)
                elif not quiet and (not brief or number == total):
                    self.step(f"{label}: {number} of {total} done")
                yield step


def text_table(frame, digits=3):
    """A DataFrame as plain text: texts left, numbers right."""
    columns = []
    for name, values in frame.items():
        cells = [column_cell(name, value, digits) for value in values]
        left = any(isinstance(value, str) for value in values)
        width = max(map(len, [str(name), *cells]))
        columns.append([cell.ljust(width) if left else cell.rjust(width) for cell in (str(name), "-" * width, *cells)])
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns))


def one_line(text):
    return " ".join(str(text).split())


def listed(names, limit=6):
    """'a', 'b' and 3 more."""
    names = [repr(name) if isinstance(name, str) else str(name) for name in names]
    return f"{', '.join(names[:limit])} and {len(names) - limit} more" if len(names) > limit else joined(names)


def joined(texts):
    """a, b and c."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def count(number, word, plural=None):
    """1 row, 2 rows."""
    return f"{number} {word if number == 1 else plural or word + 's'}"


@contextlib.contextmanager
def collected_warnings():
    """A list of the messages of warnings, each once; what pgmpy says about its own future is left out."""
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield messages
    messages += dict.fromkeys(one_line(each.message) for each in caught)


# ------------------------------------------------------------------------------------------------------ files


class Folder:
    """A folder for the results of one run."""

    def __init__(self, path, overwrite=False, for_excel=False):
        self.path, self.overwrite, self.for_excel = Path(path), overwrite, for_excel
        self.files = {}

    def check(self, ours=OURS):
        """Refuse a place that cannot take files, or holds other people's of these names, before anything is fitted."""
        there = next(place for place in (self.path, *self.path.absolute().parents) if place.exists())
        if not there.is_dir():
            raise ValueError(f"--out {self.path}: {there} is a file, not a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise ValueError(f"--out {self.path}: no permission to write in {there}")
        strange = [] if self.overwrite else sorted(n for n in ours - self._earlier() if (self.path / n).exists())
        if strange:
            raise ValueError(
                f"{self.path} holds {listed(strange)}, which no earlier run of pgm-bma wrote (no run.json lists it); choose "
                "another folder with --out, or add --overwrite to replace what is there"
            )

    def prepare(self):
        """Make the folder, and clear it of an earlier run of ours."""
        self.path.mkdir(parents=True, exist_ok=True)
        for name in self._earlier() & OURS:
            (self.path / name).unlink(missing_ok=True)
        # until the end is written: whatever stops this run, the next one knows that the files here are not the user's
        names = dict.fromkeys(sorted(OURS))
        write_json(self.path / RECORD, {"pgm_bma": pgm_bma.__version__, "unfinished": True, "files": names})

    def _earlier(self):
        """Names of the files that an earlier run left here."""
        try:
            document = json.loads((self.path / RECORD).read_text(encoding="utf-8"))
            return set(document["files"]) if "pgm_bma" in document else set()
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return set()

    def wrote(self, *names):
        for name in names:
            self.files[name] = hashlib.sha256((self.path / name).read_bytes()).hexdigest()

    def csv(self, name, frame):
        write_csv(self.path / name, frame, self.for_excel)
        self.wrote(name)

    def workbook(self, tables):
        """tables.xlsx: a sheet for each of {title: frame}; long ones end where a sheet does."""
        write_xlsx(self.path / "tables.xlsx", tables)
        self.wrote("tables.xlsx")

    def graph(self, graph, draw):
        """graph.graphml for other programs, graph.png and graph.svg to look at.

        Returns (picture for the report, None), or (None, why it could not be drawn).
        """
        import networkx as nx

        from pgm_bma.networks.graphs import export_copy

        with replacing(self.path / "graph.graphml") as file:
            nx.write_graphml(export_copy(graph), file)
        self.wrote("graph.graphml")
        ax, problem = drawn(draw)
        if ax is None:
            return None, f"the graph was not drawn: {problem}"
        with closed_after(ax):
            image = picture(ax, self.path / "graph")
        self.wrote("graph.png", "graph.svg")
        return image, None

    def model(self, estimator):
        """model.bif where the model is a Bayesian network, else model.uai; returns a line about what the file holds."""
        from pgm_bma.files.bif import write_bif

        network, why_not = bayesian_network(estimator)
        if network is None and not hasattr(estimator, "model_"):
            return f"There is no model.bif: {why_not}; estimator.pgm holds the model"
        if network is None:
            write_uai(estimator.model_, self.path / "model.uai")
            self.wrote("model.uai", "model.uai.json")
            part = "" if getattr(estimator, "model_is_exact_", True) else " without its forest"
            return f"There is no model.bif: {why_not}. model.uai holds the undirected model{part}, model.uai.json its names"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "BIF holds tables of states")  # said below
            write_bif(network, self.path / "model.bif")
        self.wrote("model.bif")
        if len(getattr(estimator, "densities_", ())):
            return "model.bif holds the columns of states, densities.csv those of numbers, estimator.pgm both"
        if getattr(estimator, "model_is_exact_", True):
            return "model.bif is the fitted model itself"
        if getattr(estimator, "numeric_columns_", ()):
            return "model.bif holds the columns of states; estimator.pgm holds the numeric columns too"
        predicts = hasattr(estimator, "predict_proba")
        averaged = "the predictions average" if predicts else "the probabilities of the arcs are averages"
        return f"model.bif holds the single best network; {averaged} over many, which estimator.pgm keeps"

    def estimator(self, estimator, bins=None):
        """estimator.pgm for `pgm_bma.load`; bins.pgm is the discretiser in front of it."""
        for name, part in (("bins.pgm", bins), ("estimator.pgm", estimator)):
            if part is not None:
                pgm_bma.save(part, self.path / name)
                self.wrote(name)

    def report(self, report):
        report.write(self.path / "report.html")
        self.wrote("report.html")

    def record(self, **content):
        """run.json: everything needed to repeat the run, and checksums to see whether it came out the same."""
        document = {
            "pgm_bma": pgm_bma.__version__,
            **content,
            "versions": versions(),
            "files": {**self.files, RECORD: None},
        }
        write_json(self.path / RECORD, document)
        self.files[RECORD] = None


def write_csv(path, frame, for_excel=False, **keywords):
    """A table for people, who open it with a spreadsheet: a text that would be a formula there stands behind a quote.

    for_excel : with a byte order mark, semicolons and decimal commas, as Excel opens it where numbers are written 0,5
    """
    style = {"sep": ";", "decimal": ","} if for_excel else {}
    with replacing(path, "w", encoding="utf-8-sig" if for_excel else "utf-8", newline="") as file:
        _without_formulas(frame).to_csv(file, **{"index": False, "float_format": "%.6f", **style, **keywords})


def need_openpyxl():
    """A UsageError where the package that writes xlsx files is not installed."""
    if find_spec("openpyxl") is None:
        raise UsageError("--format xlsx needs the package openpyxl: pip install 'pgm-bma[excel]', or take --excel")


def write_xlsx(path, tables):
    """A workbook with a sheet for each of {title: frame}. Longer tables than a sheet holds end with its last row."""
    import pandas as pd

    sheets: dict[str, pd.DataFrame] = {}
    for title, frame in tables.items():
        name = re.sub(r"[\[\]:*?/\\\x00-\x1f']", " ", title)[:31]
        while name.lower() in (other.lower() for other in sheets):
            name = f"{name[:28]} {len(sheets)}"
        sheets[name] = frame.head(SHEET_ROWS - 1).iloc[:, :SHEET_COLUMNS]
    with replacing(path) as file, pd.ExcelWriter(file, engine="openpyxl") as book:
        for name, frame in sheets.items():
            _without_formulas(frame).map(_cell).to_excel(book, sheet_name=name, index=False, freeze_panes=(1, 0))


def _cell(value):
    """Return what a sheet takes: numbers as they are, texts without control characters, all else as text."""
    if value is None or isinstance(value, numbers.Real):
        return value
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", " ", str(value))


def _without_formulas(frame):
    safe = frame.rename(columns=_not_a_formula)
    for i in (i for i, dtype in enumerate(frame.dtypes) if dtype.kind not in "biuf"):
        safe.isetitem(i, [_not_a_formula(cell) for cell in safe.iloc[:, i]])
    return safe


# what spreadsheets begin a formula or a command with, also in full width
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def _not_a_formula(cell):
    if not isinstance(cell, str) or not cell.startswith(_FORMULA):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def write_json(path, document):
    """JSON that any program reads: no NaN, and valid UTF-8 also where a file name is not."""
    text = json.dumps(finite(document), indent=2, ensure_ascii=False, allow_nan=False, default=str)
    text = re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half.group()):04x}", text)
    with replacing(path, "w", encoding="utf-8") as file:
        file.write(text + "\n")


def versions():
    found = {"python": platform.python_version()}
    for name in ("numpy", "scipy", "pandas", "scikit-learn", "numba", "networkx", "pgmpy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def bayesian_network(estimator):
    """(network, None), or (None, reason) where the model is undirected and has no Bayesian network."""
    if not hasattr(estimator, "to_bayesian_network"):
        network = getattr(estimator, "model_", None)
        return (network, None) if hasattr(network, "get_cpds") else (None, "a sum of terms has no directions")
    try:
        return estimator.to_bayesian_network(), None
    except ValueError as reason:
        return None, one_line(reason).rstrip(".")


def write_uai(model, path):
    """A DiscreteMarkovNetwork in the UAI format; it knows numbers only, so names and states go to ``<path>.json``."""
    factors = model.get_factors()
    states: dict[str, list] = {}
    for factor in factors:
        for variable in factor.variables:
            states.setdefault(variable, list(factor.state_names[variable]))
    names = [node for node in model.nodes() if node in states]
    number = {name: i for i, name in enumerate(names)}
    lines = ["MARKOV", str(len(names)), " ".join(str(len(states[name])) for name in names), str(len(factors))]
    lines += [" ".join(map(str, [len(f.variables), *(number[v] for v in f.variables)])) for f in factors]
    for factor in factors:
        lines += ["", str(factor.values.size), " ".join(repr(float(value)) for value in factor.values.ravel())]
    with replacing(path, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    write_json(f"{path}.json", {"variables": [{"name": name, "states": states[name]} for name in names]})


def drawn(draw):
    """(axes, None), or (None, reason) where a picture cannot be drawn; a missing picture does not end a run."""
    try:
        return draw(), None
    except (ValueError, RuntimeError) as error:
        return None, one_line(error)


@contextlib.contextmanager
def closed_after(ax):
    """Close the figure of some axes at the end, so that many pictures do not pile up."""
    import matplotlib.pyplot as plt

    try:
        yield
    finally:
        plt.close(ax.figure)
