"""The files of one run: model, tables, graph, report, and run.json, from which ``pgm-bma repeat`` runs it again.

`Folder` remembers what it wrote, with checksums. Every file is written whole or not at all. Files of an earlier run in the
same folder are removed first, but only those that its run.json lists; files that nobody's run.json lists are not replaced
unless that is asked for.
"""

import contextlib
import glob
import hashlib
import io
import json
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pgm_bma
from pgm_bma.commands.console import listed, one_line
from pgm_bma.commands.tabular_files import PARQUET, codes_text, files_checksum, read_table
from pgm_bma.foundation.rows.duckdb_scan import find_files
from pgm_bma.foundation.runtime.atomic import replacing
from pgm_bma.report.page import finite, picture

RECORD = "run.json"
CODES = "missing_codes"
NOT_RECORDED = ("run", "command", "words", "overwrite")  # of the parsed arguments
REPEATABLE = ("cluster", "classify", "structure", "impute", "compare")
OURS = {
    "model.bif", "model.uai", "model.uai.json", "labels.csv", "profiles.csv", "profiles_wide.csv", "predictions.csv", "arcs.csv",
    "completed.csv", "comparison.csv",
    "covariates.csv", "outcome.csv", "graph.graphml", "graph.png", "graph.svg", "bins.pgm", "estimator.pgm", "report.html", RECORD,
}  # fmt: skip


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
            return f"There is no model.bif: {why_not}. model.uai holds the undirected model, model.uai.json its names"
        write_bif(network, self.path / "model.bif")
        self.wrote("model.bif")
        if getattr(estimator, "model_is_exact_", True):
            return "model.bif is the fitted model itself"
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
    texts = [i for i, dtype in enumerate(frame.dtypes) if dtype.kind not in "biuf"]
    safe = frame.rename(columns=_not_a_formula)
    for i in texts:
        safe.isetitem(i, [_not_a_formula(cell) for cell in safe.iloc[:, i]])
    style = {"sep": ";", "decimal": ","} if for_excel else {}
    with replacing(path, "w", encoding="utf-8-sig" if for_excel else "utf-8", newline="") as file:
        safe.to_csv(file, **{"index": False, "float_format": "%.6f", **style, **keywords})


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


# ---------------------------------------------------------------------------------------- run.json, and a run again


def to_argv(command, arguments):
    """Words of the command line that give these arguments; what equals nothing is left out."""
    words = [command, str(arguments["file"])]
    for name, value in in_words(arguments).items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(option)
        elif name != "file":
            words += [f"{option}={each}" for each in (value if isinstance(value, list) else [value])]
    return words


def in_words(arguments):
    """Parsed arguments as a record keeps them; what equals nothing is left out."""
    found = {name: value for name, value in arguments.items() if name not in NOT_RECORDED}
    if "clusters" in found:
        numbers = found["clusters"]
        found["clusters"] = f"{numbers.start}:{numbers.stop - 1}" if isinstance(numbers, range) else str(numbers)
    found[CODES] = [each if isinstance(each, str) else codes_text(each) for each in found.get(CODES, [])]
    return {name: value for name, value in found.items() if value is not None and value is not False and value != []}


def source_record(raw, folder):
    """Where a table came from: as it was named, as seen from the folder of the results, and its checksum."""
    record = {"source": raw.source, "sha256": raw.sha256}
    if Path(raw.source).is_file():
        try:
            record["path"] = os.path.relpath(raw.source, folder)
        except ValueError:  # another drive
            record["path"] = str(Path(raw.source).resolve())
    return record


def read_record(path):
    """A run.json, checked: (document, folder it stands in)."""
    path = Path(path)
    path = path / RECORD if path.is_dir() else path
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no run.json: {error}") from None
    if isinstance(document, dict) and document.get("unfinished") is True:
        raise ValueError(f"{path}: that run was not finished; run its command again")
    missing = set(_RECORD_SHAPE) - {"test", "versions"} - set(document if isinstance(document, dict) else ())
    if missing:
        raise ValueError(f"{path} is no run.json of pgm-bma: it lacks {', '.join(sorted(missing))}")
    for name, is_right in _RECORD_SHAPE.items():
        if name in document and not is_right(document[name]):
            raise ValueError(f"{path} is no run.json of pgm-bma: {name!r} is not as it was written")
    return document, path.parent


def _is_source(value):
    texts = isinstance(value, dict) and all(
        isinstance(value.get(name, ""), str) for name in ("source", "sha256", "path")
    )
    return texts and {"source", "sha256"} <= set(value)


def _is_arguments(value):
    """Words, numbers, switches, and lists of words: what the parser gives."""
    plain = (str, int, float, bool, type(None))
    return isinstance(value, dict) and all(
        isinstance(each, plain) or (isinstance(each, list) and all(isinstance(word, plain) for word in each))
        for each in value.values()
    )


_RECORD_SHAPE = {
    "pgm_bma": lambda value: isinstance(value, str),
    "command": lambda value: value in REPEATABLE,
    "arguments": _is_arguments,
    "data": _is_source,
    "test": _is_source,
    "files": lambda value: isinstance(value, dict),
    "versions": lambda value: isinstance(value, dict),
}


def repeat(record, out, parser, console, overwrite=False):
    """Repeat a run into folder `out`; tables that come out differently are a ValueError that names them."""
    document, folder = read_record(record)
    arguments = dict(document["arguments"])
    arguments["file"] = _same_data(document["data"], folder, arguments)
    if "test" in document:
        arguments["test"] = _same_data(document["test"], folder, arguments)
        arguments.pop("cv", None)
    arguments["out"] = str(out or f"{folder.resolve()}-repeat")
    if document["pgm_bma"] != pgm_bma.__version__:
        console.warn(f"the run was made by version {document['pgm_bma']}, this is {pgm_bma.__version__}")
    again = _parsed(parser, to_argv(document["command"], arguments), record)
    again.overwrite = overwrite
    again.run(again)
    found = json.loads((Path(arguments["out"]) / RECORD).read_text(encoding="utf-8"))
    tables = {name: digest for name, digest in document["files"].items() if name.endswith(".csv")}
    changed = [name for name, digest in tables.items() if found["files"].get(name) != digest]
    same = f"{', '.join(tables)} came out the same, byte for byte"
    if not tables:  # a scan, whose tables are Parquet files
        changed = ["the result"] if found["result"] != document["result"] else []
        same = "the numbers of the result came out the same"
    if changed:
        raise ValueError(f"{', '.join(changed)} came out differently from the recorded run{_other_versions(document)}")
    console.item("repeated", same)


def _parsed(parser, words, record):
    """The words as the command line reads them; what a hand put into the record is a ValueError that names it."""
    try:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            again = parser.parse_args(words)
    except SystemExit:
        lines = said.getvalue().strip().splitlines() or ["the parser refused"]
        raise ValueError(f"{record}: the arguments are not as they were written: {lines[-1]}") from None
    again.words = words
    return again


def _same_data(data, folder, arguments):
    """The path or name of the data, once their checksum is the recorded one."""
    places = [Path(os.path.normpath(folder / data["path"]))] if "path" in data else []
    found = next((str(place) for place in [*places, Path(data["source"])] if place.is_file()), None)
    if found is None and "path" in data:
        raise ValueError(f"{data['source']} is gone: neither {places[0]} nor {data['source']} exists")
    if found is None and (glob.has_magic(data["source"]) or Path(data["source"]).is_dir()):
        sha256 = files_checksum(find_files(data["source"], PARQUET))
    elif {"memory", "workers", "scheduler"} & arguments.keys():
        sha256 = files_checksum([found or data["source"]])
    else:
        header = not arguments.get("no_header", False)
        sha256 = read_table(found or data["source"], arguments.get("missing", ()), header).sha256
    if sha256 != data["sha256"]:
        raise ValueError(
            f"{found or data['source']} is not the table of the recorded run (SHA-256 {sha256[:12]}..., "
            f"then {data['sha256'][:12]}...)"
        )
    return found or data["source"]


def _other_versions(document):
    now = versions()
    other = [
        f"{name} {then}, now {now.get(name)}"
        for name, then in document.get("versions", {}).items()
        if now.get(name) != then
    ]
    return f"; other versions were in use: {', '.join(other)}" if other else ""
