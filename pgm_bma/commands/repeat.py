"""``pgm-bma repeat``: read a run.json, run the same command again, and check that its tables come out the same."""

import contextlib
import glob
import io
import json
import os
from pathlib import Path

import pgm_bma
from pgm_bma.commands.output import RECORD, versions
from pgm_bma.commands.session import in_words
from pgm_bma.commands.tabular_files import PARQUET, files_checksum, read_table
from pgm_bma.foundation.rows.duckdb_scan import find_files

REPEATABLE = ("cluster", "classify", "structure", "impute", "compare")


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


def read_record(path):
    """A run.json, checked: (document, folder it stands in)."""
    path = Path(path)
    path = path / RECORD if path.is_dir() else path
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a run.json: {error}") from None
    if isinstance(document, dict) and document.get("unfinished") is True:
        raise ValueError(f"{path}: that run was not finished; run its command again")
    missing = set(_RECORD_SHAPE) - {"test", "versions"} - set(document if isinstance(document, dict) else ())
    if missing:
        raise ValueError(f"{path} is not a run.json of pgm-bma: it lacks {', '.join(sorted(missing))}")
    for name, is_right in _RECORD_SHAPE.items():
        if name in document and not is_right(document[name]):
            raise ValueError(f"{path} is not a run.json of pgm-bma: {name!r} is not as it was written")
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
