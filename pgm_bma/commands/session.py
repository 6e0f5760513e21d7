"""One run of a command that learns from a table: its data, its estimator, its folder, and the report at the end.

A command is a function (arguments, console) that reads, fits, says what was found, and writes. Data and model problems are
ValueErrors with one clear line; `UsageError` means that the words of the command do not fit together.
"""

import ast
import os
import shlex
import sys
import time
from functools import partial
from pathlib import Path

import pandas as pd

import pgm_bma
from pgm_bma import catalogue, plotting
from pgm_bma.commands.findings import MANY_REGIONS
from pgm_bma.commands.output import (
    Folder,
    UsageError,
    bayesian_network,
    closed_after,
    collected_warnings,
    count,
    drawn,
    ends_at_once,
    need_openpyxl,
    text_table,
)
from pgm_bma.commands.preparation import Roles, named, pipeline, prepare
from pgm_bma.commands.tabular_files import Scanned, closest, codes_text, is_scanned, read_table
from pgm_bma.foundation.rows.blocks import watching
from pgm_bma.foundation.runtime.jobs import progress
from pgm_bma.foundation.tables.kinds import cut_frame
from pgm_bma.report.live_data import interaction_data, network_data, region_data, with_target
from pgm_bma.report.page import Report

WIDEST_TABLE = 240  # characters
CODES = "missing_codes"
NOT_RECORDED = ("run", "command", "words", "overwrite")  # of the parsed arguments
OPTIONS = {
    "n_clusters": "--clusters",
    "random_state": "--seed",
    "n_jobs": "--jobs",
}  # parameters that have their own options


class CommandRun:
    """One run of a command: its data, its estimator, its folder, and the report at the end."""

    def __init__(self, arguments, console, kind, method=None):
        self.arguments, self.console, self.began = arguments, console, time.perf_counter()
        with collected_warnings() as messages:
            data = [getattr(arguments, "target", None), arguments.weight, *arguments.categorical, *arguments.numeric]
            data += [getattr(arguments, "outcome", None), *getattr(arguments, "covariates", [])]
            self.scanned = Scanned(arguments) if is_scanned(arguments) else None
            if self.scanned is not None:
                self.raw = self.scanned.table
            else:
                self.raw = read_table(arguments.file, arguments.missing, not arguments.no_header, data)
        self.raw.notes += messages
        offered = catalogue.METHODS[kind]
        if method is None and arguments.method is None:
            arguments.method, given = default(arguments.command, offered)
            arguments.set = [*given, *arguments.set]
        self.method = offered[method or arguments.method]
        self.name = Path(self.raw.source).name
        out = arguments.out or f"{self.name.split('.')[0]}-{arguments.command}"
        self.folder = Folder(out, arguments.overwrite, arguments.excel)
        self.folder.check()
        if arguments.format == "xlsx":
            need_openpyxl()
        self.others: dict[str, dict] = {}
        self.tables: dict[str, pd.DataFrame | None] = {}
        _quiet_pictures()

    def read(self, target):
        """Prepare the columns, and say what there is."""
        arguments = self.arguments
        self.roles = Roles.of(arguments, self.raw)
        self.data = prepare(
            self.raw,
            target,
            arguments.drop,
            arguments.keep_constant,
            arguments.discretize,
            self.roles,
            takes_numbers=self.scanned is None and self._takes_numbers(),
            aside=self.set_aside(),
        )
        if arguments.discretize and not self.data.to_bin:
            self.data.notes.append("no column needs to be discretised: none has many different numbers")
        if self.data.weights is not None:
            self.data.notes.append(
                f"rows are weighted by {arguments.weight!r}, scaled to the number of rows; counts and scores that are reported "
                "count every row once"
            )
        self.console.item("data", self.data.in_brief())
        for note in self.data.notes:
            self.console.note(note)
        if self.arguments.command != "compare":
            self.console.item("method", f"{self.method.title} ({self.method.name}), seed {arguments.seed}")

    def _takes_numbers(self):
        """Return whether the method takes numbers as they are."""
        command = self.arguments.command
        return command in ("classify", "compare") or (
            command == "cluster" and hasattr(make(self.method.name), "numeric_columns")
        )

    def set_aside(self):
        """Columns that are no variables: covariates and outcome of a clustering, names of experiments."""
        covariates = named("covariates", getattr(self.arguments, "covariates", []), self.raw)
        single = [(option, getattr(self.arguments, option, None)) for option in ("outcome", "interventions")]
        return (*covariates, *(name for option, given in single if given for name in named(option, [given], self.raw)))

    def note(self, text):
        self.data.notes.append(text)
        self.console.note(text)

    def estimator(self, **more):
        """The chosen estimator with seed, jobs and what --set says."""
        if self.arguments.weight is not None:
            more["weight_type"] = "sampling"
        if self.data.numbers:
            more["numeric_columns"] = self.data.numbers  # also where a fold has few different ones
        if self.scanned is not None and self.arguments.command == "cluster" and self._takes_numbers():
            # in files that are scanned, columns were prepared as states
            more["categorical_columns"] = [name for name in self.data.frame if name not in self.arguments.ordered]
        estimator = make(self.method.name, random_state=self.arguments.seed, handle_unknown="missing", **more)
        known = estimator.get_params(deep=False)
        for entry in getattr(self.arguments, "set", None) or []:
            name, separator, text = entry.partition("=")
            if not separator:
                raise UsageError(f"--set needs NAME=VALUE, got {entry!r}")
            if name in OPTIONS and name in known:
                raise UsageError(f"--set {entry}: take {OPTIONS[name]} instead")
            owner = name.partition("__")[0]  # sampler__tol is a field of the record sampler
            if owner not in known:
                raise UsageError(f"{self.method.name} has no parameter {name!r}: {closest(name, known)}")
            try:
                estimator.set_params(**{name: _value(text)})
            except ValueError as error:
                raise UsageError(f"--set {entry}: {error}") from None
        return estimator

    def fit(self, X, y=None, weights=None, rows=None, **more):
        """Fit on all given rows; warnings of the method become lines. rows : more arguments of the estimator's `fit`, by name"""
        console, arguments = self.console, self.arguments
        more.update(n_jobs=arguments.jobs, verbose=int(console.is_terminal and self.scanned is None))
        estimator = self.estimator(**more)
        if self.scanned is not None:
            return self._fit_scan(self.scanned, estimator, y)
        model = pipeline(estimator, self.data, arguments.discretize, arguments.bins)
        console.step(f"fitting {self.method.name} to {count(len(X), 'row')}")
        try:
            with collected_warnings() as messages, ends_at_once():
                fitted(model, X, y, weights, **(rows or {}))
        except ValueError as error:
            raise ValueError(with_option(str(error), estimator)) from error
        for message in messages:
            console.warn(with_option(message, estimator))
        return model

    def _fit_scan(self, scanned, estimator, y):
        """Fit on all rows of a scan, and say how many passes they took where they did not collapse."""
        console, rows, passes = self.console, scanned.scan.n_rows, []
        console.step(f"fitting {self.method.name} to {count(rows, 'row')}")
        columns, target = list(self.data.frame.columns), None if y is None else y.name
        with progress(console.is_terminal, "passes", label="rows", file=console.err) as tick:

            def tell():
                passes.append(1)
                if tick is not None:
                    tick(1)

            with collected_warnings() as messages, watching(tell):
                try:
                    scanned.fit(estimator, columns, target)
                except MemoryError as error:
                    raise ValueError(f"{error} (here by --memory, --drop, or one file)") from error
        for message in messages:
            console.warn(with_option(message, estimator))
        how = f"visited in {count(len(passes), 'pass', 'passes')}" if passes else "folded into distinct rows"
        self.note(f"all {rows} rows were {how}")
        return estimator

    def finish(self, title, found, model, table_name=None, table=None):
        """Say what was found, write everything, and end with where it is."""
        console, folder = self.console, self.folder
        self._say(found)
        folder.prepare()
        tables = {table_name: table, **self.tables}
        for name, each in tables.items():
            if each is not None:
                folder.csv(name, each)
        if self.arguments.format == "xlsx":
            sheets = {Path(name).stem: each for name, each in tables.items() if each is not None}
            folder.workbook({**sheets, **{heading: frame for heading, frame, _ in found.headline + found.tables}})
        about_model = self._report(title, found, model)
        self._record(found)
        console.say()
        console.item("files", f"in {folder.path}{os.sep}: {', '.join(folder.files)}")
        if about_model:
            console.item("", about_model)
        console.item("read", str(folder.path / "report.html"))
        if self.scanned is not None:
            self.scanned.close()

    def finish_scan(self, title, found, estimator, name):
        """`finish`, after the predictions of all rows of a scan went to separate files."""
        scanned = self.scanned
        assert scanned is not None  # nosec B101 # for the type checker
        self.console.step(f"predicting {count(scanned.scan.n_rows, 'row')}")
        self.folder.prepare()
        self.note(scanned.predict_to(estimator, self.folder.path, name))
        self.finish(title, found, estimator)

    def _say(self, found):
        console = self.console
        for message in found.warnings:
            console.warn(message)
        console.say()
        for number, paragraph in enumerate(found.words):
            console.item("" if number else "result", paragraph)
        for heading, frame, _ in found.headline:
            console.say(f"\n{heading}")
            lines = text_table(frame)
            wide = max(map(len, lines.splitlines())) > WIDEST_TABLE
            console.say(
                f"({count(frame.shape[1], 'column')}, too wide to show here: see report.html)" if wide else lines
            )

    def _report(self, title, found, model):
        """Write the model, its graph and report.html; returns a line about the model, or nothing where there is none."""
        if model is None:
            report, about_model, show_model = Report(title), "", None
        else:
            report = Report(title, f"pgm-bma {self.arguments.command}, {self.method.title}")
            about_model, show_model = self._write_model(model)
        report.words("Result", found.words)
        report.warnings(self.console.warnings)
        self._pictures(report, found)
        for heading, frame, caption in found.headline:
            report.table(heading, frame, caption)
        if show_model is not None:
            show_model(report)
        for heading, frame, caption in found.tables:
            report.table(heading, frame, caption)
        report.facts("Data", self._data_facts())
        report.table(
            "Columns",
            column_table(self.data.frame),
            "Different values, the most frequent one or the range of numbers, and missing cells.",
        )
        if model is not None:
            report.code("Use the model", self._how_to_load(last_step(model)))
        report.facts("What was asked", self._asked(model is not None))
        again = f"pgm-bma repeat {shlex.quote(str(self.folder.path / 'run.json'))}"
        report.code("Repeat this run", [("The file run.json next to this report holds all that is needed:", again)])
        self.folder.report(report)
        return about_model

    def _pictures(self, report, found):
        """Pictures of the findings, then what can be explored."""
        console = self.console
        for heading, draw, caption in console.progress(found.figures, len(found.figures), "drawing", quiet=True):
            ax, problem = drawn(draw)
            if ax is None:
                console.note(f"picture left out, {heading!r}: {problem}")
                continue
            with closed_after(ax):
                report.figure(heading, ax, caption)
        shown = [each for each in found.live if not (self.arguments.no_rows and each[1] == "rows")]
        for heading, kind, make, caption, draw in shown:
            self._explore(report, heading, kind, make, caption, draw)

    def _explore(self, report, heading, kind, make, caption, draw):
        data = make()
        ax, problem = drawn(draw) if draw is not None else (None, None)
        if problem:
            self.console.note(f"picture left out, {heading!r}: {problem}")
        if data is None:
            return
        if ax is None:
            report.live(heading, kind, data, caption)
            return
        with closed_after(ax):
            report.live(heading, kind, data, caption, ax)

    def _write_model(self, model):
        """(line about the model, function that adds its picture to a report)"""
        estimator = last_step(model)
        with collected_warnings() as messages:
            about = f"{self.folder.model(estimator)}."
            self.folder.estimator(estimator, model.named_steps["bins"] if hasattr(model, "steps") else None)
        for message in messages:
            self.console.note(message)
        rows = with_target(as_states(estimator, as_seen(model, self.data.frame)), self.data.target)
        graph, draw, make = views(estimator, rows)
        image, problem = self.folder.graph(graph, draw)
        if problem:
            self.console.note(problem)
        return about, lambda report: report.live("The model", "graph", make(), about, image)

    def _asked(self, one_method):
        pairs = [("command", shlex.join(["pgm-bma", *self.arguments.words]))]
        if one_method:
            pairs.append(("method", f"{self.method.title} ({self.method.name}). {self.method.sentence}"))
        return [*pairs, ("seed", self.arguments.seed), ("SHA-256 of the data", self.raw.sha256)]

    def _data_facts(self):
        pairs = [("source", self.raw.source), ("size", self.data.in_brief().partition(": ")[2])]
        if self.data.target is not None:
            sizes = self.data.target.value_counts()
            classes = ", ".join(f"{name} ({size})" for name, size in sizes.items())
            pairs.append(("target", f"{self.data.target.name}: {classes}"))
        for note in self.data.notes:
            pairs.append(("note", note))
        return pairs

    def _how_to_load(self, estimator):
        network, _ = bayesian_network(estimator)
        bins = 'rows = pgm_bma.load("bins.pgm").transform(rows)  # numbers to bins\n' if self.data.to_bin else ""
        load = f'import pgm_bma\n\n{bins}estimator = pgm_bma.load("estimator.pgm")\nestimator.predict_proba(rows)'
        saved = ("The estimator itself, with everything it learned; rows is a DataFrame with the columns above:", load)
        if network is None and not hasattr(estimator, "model_"):
            return [saved]
        if network is None:
            reader = 'from pgmpy.readwrite import UAIReader\n\nmodel = UAIReader("model.uai").get_model()  # names: model.uai.json'
            return [("In pgmpy, as an undirected model:", reader), saved]
        names = list(network.nodes())
        asked = getattr(estimator, "target_name_", None) or getattr(estimator, "cluster_name", None)
        asked = asked if asked in names else names[0]
        given = next(name for name in [*names[::-1], asked] if name != asked or len(names) == 1)
        state = network.get_cpds(given).state_names[given][0]
        code = (
            'import pgm_bma\nfrom pgmpy.inference import VariableElimination\n\nmodel = pgm_bma.read_bif("model.bif")\n'
            f"print(VariableElimination(model).query([{asked!r}], evidence={{{given!r}: {state!r}}}))"
        )
        return [("In pgmpy, with all names, states and latent variables as they are here:", code), saved]

    def _record(self, found):
        self.folder.record(
            command=self.arguments.command,
            arguments=in_words(vars(self.arguments)),
            data={**source_record(self.raw, self.folder.path), "rows": len(self.data.frame)},
            **self.others,
            result=found.numbers,
            notes=self.data.notes,
            warnings=self.console.warnings,
            seconds=round(time.perf_counter() - self.began, 3),
        )


def with_option(message, estimator):
    """The message, and how a parameter that it names is given here."""
    named = [name for name in estimator.get_params(deep=False) if f"{name}=" in message]
    return f"{message} (here by {OPTIONS.get(named[0], '--set NAME=VALUE')})" if named else message


def last_step(model):
    return model.steps[-1][1] if hasattr(model, "steps") else model


def with_last_step(model, estimator):
    """The model with another fitted estimator as its last step."""
    if not hasattr(model, "steps"):
        return estimator
    return type(model)([*model.steps[:-1], (model.steps[-1][0], estimator)])


def as_seen(model, frame):
    """The rows as the last step sees them."""
    return model[:-1].transform(frame) if hasattr(model, "steps") else frame


def as_states(estimator, frame):
    """The rows with numbers in intervals: those of a network's own states, else ten of about as many rows."""
    numbers = [name for name, column in frame.items() if column.dtype.kind == "f"]
    if not numbers:
        return frame
    cuts = estimator.__dict__.get("_cuts")
    if cuts is not None and bayesian_network(estimator)[0] is not None:
        return cut_frame(frame, cuts)
    return frame.assign(**{name: pd.qcut(frame[name], 10, duplicates="drop") for name in numbers})


def views(estimator, rows):
    """(graph of the model, how to draw it, how to make the data of its live picture)"""
    if hasattr(estimator, "pairs_"):
        draw = partial(plotting.plot_interactions, estimator)
        return estimator.to_networkx(), draw, partial(interaction_data, estimator, rows)
    if not hasattr(estimator, "region_graph_"):
        graph = estimator.edge_graph_ if hasattr(estimator, "edge_graph_") else estimator.to_networkx()
        name = getattr(estimator, "target_name_", None) or getattr(estimator, "cluster_name", None)
        draw = partial(plotting.plot_network, graph, highlight=name if name in graph else None)
        return graph, draw, partial(network_data, estimator, rows)
    graph = estimator.region_graph_
    if graph.number_of_nodes() > MANY_REGIONS:
        draw = partial(plotting.plot_interactions, estimator)
        return graph, draw, partial(interaction_data, estimator, rows)
    draw = partial(plotting.plot_region_graph, graph, target=estimator.target_name_)
    return graph, draw, partial(region_data, estimator)


def column_table(frame):
    rows = []
    for name, column in frame.items():
        values = column.value_counts()
        values = values[values > 0]
        usual = ""
        if column.dtype.kind == "f" and len(values):
            usual = f"{column.min():.4g} to {column.max():.4g}, median {column.median():.4g}"
        elif len(values) and values.iloc[0] > 1:
            usual = f"{values.index[0]} ({values.iloc[0]})"
        rows.append((name, len(values), usual, int(column.isna().sum())))
    return pd.DataFrame(rows, columns=["column", "different values", "most frequent (rows), or range", "missing"])


def with_row_names(table, index):
    """The table behind a column that names its rows as the file does; called row if that name is taken."""
    table.insert(0, "row" if index.name in table else index.name, index)
    return table


def fitted(model, X, y=None, weights=None, **rows):
    """Fit an estimator, or the pipeline that ends with it; weights are scaled to the number of rows."""
    if weights is not None:
        rows["sample_weight"] = scaled(weights)
    given = {f"model__{name}": each for name, each in rows.items()} if hasattr(model, "steps") else rows
    return model.fit(X, y, **given) if y is not None else model.fit(X, **given)


def scaled(weights):
    """Weights that add up to the number of rows."""
    return weights * (len(weights) / weights.sum())


def make(name, **wanted):
    """The estimator of a name with those of the `wanted` parameters that it has."""
    build = getattr(pgm_bma, name)
    known = build().get_params(deep=False)
    return build(**{name: value for name, value in wanted.items() if name in known})


def default(command, offered):
    """(name, parameters as NAME=VALUE) of the method taken without ``--method``: the package's default estimator."""
    if command in ("structure", "impute"):
        return next(iter(offered)), []
    estimator = pgm_bma.default_classifier() if command == "classify" else pgm_bma.default_clusterer()
    name = next(name for name, method in offered.items() if method.name == type(estimator).__name__)
    plain = type(estimator)().get_params(deep=False)
    given = estimator.get_params(deep=False).items()
    return name, [f"{key}={value!r}" for key, value in given if repr(value) != repr(plain[key])]


def in_words(arguments):
    """Parsed arguments as a record keeps them; what equals nothing is left out."""
    found = {name: value for name, value in arguments.items() if name not in NOT_RECORDED}
    if "clusters" in found:
        numbers = found["clusters"]
        found["clusters"] = f"{numbers.start}:{numbers.stop - 1}" if isinstance(numbers, range) else str(numbers)
    found[CODES] = [each if isinstance(each, str) else codes_text(each) for each in found.get(CODES, [])]
    return {name: value for name, value in found.items() if value is not None and value is not False and value != []}


def source_record(raw, folder):
    """Return where a table came from: as it was named, as seen from the folder of the results, and its checksum."""
    record = {"source": raw.source, "sha256": raw.sha256}
    if Path(raw.source).is_file():
        try:
            record["path"] = os.path.relpath(raw.source, folder)
        except ValueError:  # another drive
            record["path"] = str(Path(raw.source).resolve())
    return record


def _value(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _quiet_pictures():
    """Draw to files only: no window system is asked for."""
    if "matplotlib.pyplot" not in sys.modules:
        import matplotlib

        matplotlib.use("Agg")
