"""``pgm-bma repeat``: run again what a run.json describes, on the same data, and see whether it comes out the same."""

import contextlib
import glob
import io
import json
import os
from pathlib import Path

from pgm_bma import __version__
from pgm_bma.commands.run_files import RECORD, read_record
from pgm_bma.commands.scanned import PARQUET, files_checksum
from pgm_bma.commands.session import to_argv
from pgm_bma.commands.tabular_files import read_table
from pgm_bma.foundation.rows.duckdb_scan import find_files


def repeat(record, out, parser, console, overwrite=False):
    """Repeat a run into folder `out`; tables that come out differently are a ValueError that names them."""
    document, folder = read_record(record)
    arguments = dict(document["arguments"])
    arguments["file"] = _same_data(document["data"], folder, arguments)
    if "test" in document:
        arguments["test"] = _same_data(document["test"], folder, arguments)
        arguments.pop("cv", None)
    arguments["out"] = str(out or f"{folder.resolve()}-repeat")
    if document["pgm_bma"] != __version__:
        console.warn(f"the run was made by version {document['pgm_bma']}, this is {__version__}")
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
        said = said.getvalue().strip().splitlines() or ["the parser refused"]
        raise ValueError(f"{record}: the arguments are not as they were written: {said[-1]}") from None
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
    from pgm_bma.commands.run_files import versions

    now = versions()
    other = [
        f"{name} {then}, now {now.get(name)}"
        for name, then in document.get("versions", {}).items()
        if now.get(name) != then
    ]
    return f"; other versions were in use: {', '.join(other)}" if other else ""
