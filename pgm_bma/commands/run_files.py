"""The files of one run: model, tables, graph, report, and run.json, from which it can be repeated.

`Folder` remembers what it wrote, with checksums. Files of an earlier run in the same folder are removed first, but only
those that its run.json lists.
"""

import hashlib
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pgm_bma
from pgm_bma.report import picture

RECORD = "run.json"
OURS = {
    "model.bif", "model.uai", "model.uai.json", "labels.csv", "predictions.csv", "arcs.csv", "comparison.csv",
    "graph.graphml", "graph.png", "graph.svg", "bins.pgm", "estimator.pgm", "report.html", RECORD,
}  # fmt: skip


class Folder:
    """A folder for the results of one run."""

    def __init__(self, path):
        self.path = Path(path)
        self.files = {}

    def check(self):
        """Refuse a place that cannot take files before anything is fitted."""
        there = next(place for place in (self.path, *self.path.absolute().parents) if place.exists())
        if not there.is_dir():
            raise ValueError(f"--out {self.path}: {there} is a file, not a folder")
        if not os.access(there, os.W_OK | os.X_OK):
            raise ValueError(f"--out {self.path}: no permission to write in {there}")

    def prepare(self):
        """Make the folder, and clear it of an earlier run of ours."""
        self.path.mkdir(parents=True, exist_ok=True)
        record = self.path / RECORD
        if record.is_file():
            try:
                earlier = set(json.loads(record.read_text(encoding="utf-8"))["files"])
            except (ValueError, KeyError, TypeError):
                earlier = set()
            for name in earlier & OURS:
                (self.path / name).unlink(missing_ok=True)

    def wrote(self, name):
        self.files[name] = hashlib.sha256((self.path / name).read_bytes()).hexdigest()

    def csv(self, name, frame):
        frame.to_csv(self.path / name, index=False, float_format="%.6f")
        self.wrote(name)

    def graph(self, graph, draw):
        """graph.graphml for other programs, graph.png and graph.svg to look at.

        Returns (picture for the report, None), or (None, why it could not be drawn).
        """
        import networkx as nx

        from pgm_bma.networks.graphs import export_copy

        nx.write_graphml(export_copy(graph), self.path / "graph.graphml")
        self.wrote("graph.graphml")
        ax, problem = drawn(draw)
        if ax is None:
            return None, f"the graph was not drawn: {problem}"
        with closed_after(ax):
            image = picture(ax, self.path / "graph")
        self.wrote("graph.png")
        self.wrote("graph.svg")
        return image, None

    def model(self, estimator):
        """model.bif where the model is a Bayesian network, else model.uai; returns a line about what the file holds."""
        from pgm_bma.files.bif import write_bif

        network, why_not = bayesian_network(estimator)
        if network is None:
            write_uai(estimator.model_, self.path / "model.uai")
            self.wrote("model.uai")
            self.wrote("model.uai.json")
            return f"There is no model.bif: {why_not}. model.uai holds the undirected model, model.uai.json its names"
        write_bif(network, self.path / "model.bif")
        self.wrote("model.bif")
        if getattr(estimator, "model_is_exact_", True):
            return "model.bif is the fitted model itself"
        averaged = (
            "the predictions average"
            if hasattr(estimator, "predict_proba")
            else "the probabilities of the arcs are averages"
        )
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
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False, default=str)
        (self.path / RECORD).write_text(text + "\n", encoding="utf-8")
        self.files[RECORD] = None


def read_record(path):
    """A run.json, checked: (document, folder it stands in)."""
    path = Path(path)
    path = path / RECORD if path.is_dir() else path
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no run.json: {error}") from None
    missing = {"pgm_bma", "command", "arguments", "data", "files"} - set(document if isinstance(document, dict) else ())
    if missing:
        raise ValueError(f"{path} is no run.json of pgm-bma: it lacks {', '.join(sorted(missing))}")
    data = [document["data"], *([document["test"]] if "test" in document else [])]
    wrong = [name for name in ("arguments", "files") if not isinstance(document[name], dict)]
    if wrong or not all(isinstance(each, dict) and {"source", "sha256"} <= set(each) for each in data):
        raise ValueError(f"{path} is no run.json of pgm-bma: {wrong[0] if wrong else 'data'} is not as it was written")
    return document, path.parent


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
        return estimator.model_, None
    try:
        return estimator.to_bayesian_network(), None
    except ValueError as reason:
        return None, " ".join(str(reason).split()).rstrip(".")


def write_uai(model, path):
    """A DiscreteMarkovNetwork in the UAI format; it knows numbers only, so names and states go to ``<path>.json``."""
    factors = model.get_factors()
    states = {}
    for factor in factors:
        for variable in factor.variables:
            states.setdefault(variable, list(factor.state_names[variable]))
    names = [node for node in model.nodes() if node in states]
    number = {name: i for i, name in enumerate(names)}
    lines = ["MARKOV", str(len(names)), " ".join(str(len(states[name])) for name in names), str(len(factors))]
    lines += [" ".join(map(str, [len(f.variables), *(number[v] for v in f.variables)])) for f in factors]
    for factor in factors:
        lines += ["", str(factor.values.size), " ".join(repr(float(value)) for value in factor.values.ravel())]
    Path(path).write_text("\n".join(lines) + "\n", encoding="ascii")
    variables = [{"name": name, "states": states[name]} for name in names]
    text = json.dumps({"variables": variables}, indent=1, ensure_ascii=False, default=str)
    Path(f"{path}.json").write_text(text + "\n", encoding="utf-8")


def drawn(draw):
    """(axes, None), or (None, reason) where a picture cannot be drawn; a missing picture does not end a run."""
    try:
        return draw(), None
    except (ValueError, RuntimeError, np_error()) as error:
        return None, " ".join(str(error).split())


def np_error():
    from numpy.linalg import LinAlgError

    return LinAlgError


class closed_after:
    """Context manager that closes the figure of some axes at the end, so that many pictures do not pile up."""

    def __init__(self, ax):
        self.figure = ax.figure

    def __enter__(self):
        return self.figure

    def __exit__(self, *_):
        import matplotlib.pyplot as plt

        plt.close(self.figure)
