"""Files are written whole or not at all, by everything that writes: two writers, a full disk, names of any bytes."""

import errno
import json
import multiprocessing
import os
import sys
import threading

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.commands.output import Folder, write_csv, write_json, write_uai
from pgm_bma.foundation.runtime import atomic
from pgm_bma.networks.objects import bayesian_network
from pgm_bma.report import Report, picture


def network(p):
    return bayesian_network(["x", "y"], [(0, 1), (0, 1)], [(), (0,)], [[[p, 1 - p]], [[p, 1 - p], [0.5, 0.5]]])


def axes():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots()[1]


def graph(path):
    Folder(path.parent).graph(nx.DiGraph([("a", "b")]), lambda: axes())


WRITERS = {
    "save": ("x.pgm", lambda path: pgm_bma.save(pgm_bma.TANClassifier(), path)),
    "bif": ("x.bif", lambda path: pgm_bma.write_bif(network(0.25), path)),
    "compressed bif": ("x.bif.gz", lambda path: pgm_bma.write_bif(network(0.25), path)),
    "report": ("x.html", lambda path: Report("x").write(path)),
    "csv": ("x.csv", lambda path: write_csv(path, pd.DataFrame({"a": [1]}))),
    "json": ("run.json", lambda path: write_json(path, {"a": 1})),
    "uai": ("x.uai", lambda path: write_uai(network(0.25).to_markov_model(), path)),
    "picture": ("x.png", lambda path: picture(axes(), path.with_suffix(""))),
    "graph": ("graph.graphml", graph),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_keeps_the_old_file_and_names_file_and_folder(name, tmp_path, monkeypatch):
    file, write = WRITERS[name]
    path = tmp_path / file
    path.write_text("old")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic.os, "fsync", full)  # where a disk says at the latest that it is full
    with pytest.raises(OSError, match=rf"No space left.*{path.stem}.*could not be written in .*{tmp_path.name}"):
        write(path)
    assert path.read_text() == "old" and [p.name for p in tmp_path.iterdir()] == [file]
    monkeypatch.undo()
    write(path)
    assert path.read_bytes() != b"old" and not [p for p in tmp_path.iterdir() if p.name.startswith(".")]


def write_often(write, p, path):
    for _ in range(60):
        pgm_bma.write_bif(network(p), path) if write == "bif" else pgm_bma.save(pgm_bma.TANClassifier(alpha=p), path)


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
@pytest.mark.filterwarnings(
    "ignore:.*multi-threaded, use of fork:DeprecationWarning"
)  # Python 3.12; the children do not use threads
@pytest.mark.parametrize("write, read", [("save", pgm_bma.load), ("bif", pgm_bma.read_bif)])
def test_two_processes_and_one_path(write, read, tmp_path):
    """Every load is one of the two models, while two processes write and nobody waits for anybody; a user's .part stays."""
    path = tmp_path / "model"
    (tmp_path / "model.part").write_text("mine")
    fork = multiprocessing.get_context("fork")  # nothing to import again
    writers = [fork.Process(target=write_often, args=(write, p, path)) for p in (0.25, 0.125)]
    [writer.start() for writer in writers]
    seen = []
    while any(writer.is_alive() for writer in writers):
        if path.exists():
            found = read(path)
            seen.append(found.alpha if write == "save" else float(found.get_cpds("x").values[0]))
    assert [writer.exitcode for writer in writers] == [0, 0] and len(seen) > 10 and set(seen) <= {0.25, 0.125}
    assert {p.name for p in tmp_path.iterdir()} == {"model", "model.part"}
    assert (tmp_path / "model.part").read_text() == "mine"


def test_threads_and_one_path(tmp_path):
    path = tmp_path / "table.csv"
    frames = [pd.DataFrame({"a": np.full(n, n)}) for n in (3, 4000)]
    for _ in range(10):
        threads = [threading.Thread(target=write_csv, args=(path, frame)) for frame in frames]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        assert set(pd.read_csv(path)["a"]) in ({3}, {4000})
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not take such names")
def test_names_that_are_not_utf8_and_names_as_long_as_a_system_takes(tmp_path):
    for name in (os.fsdecode(b"caf\xe9.pgm"), "ü" * 125 + ".pgm"):
        pgm_bma.save(pgm_bma.TANClassifier(), tmp_path / name)
        assert type(pgm_bma.load(tmp_path / name)).__name__ == "TANClassifier"
        assert pgm_bma.read_bif(pgm_bma.write_bif(network(0.5), tmp_path / name)).check_model()
    write_json(tmp_path / "names.json", {"name": name, "bytes": os.fsdecode(b"\xe9"), "nothing": [float("nan")]})
    text = (tmp_path / "names.json").read_bytes().decode("utf-8")  # valid, and the name survives
    assert json.loads(text) == {"name": name, "bytes": os.fsdecode(b"\xe9"), "nothing": [None]}
    Report(os.fsdecode(b"caf\xe9")).write(tmp_path / "page.html")
    assert "caf?" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_spreadsheets_find_no_formula(tmp_path):
    cells = ["=1+1", "+x", "-x", "@sum", "\tx", "-5", "+1e3", "a=b", "", None]
    frame = pd.DataFrame({"=name": cells, "n": np.arange(10) - 5.0, "i": pd.array([None, *range(9)], dtype="Int64")})
    write_csv(tmp_path / "table.csv", frame)
    found = pd.read_csv(tmp_path / "table.csv", dtype=str, keep_default_na=False)
    assert found.columns.tolist() == ["'=name", "n", "i"]
    # numbers stay numbers, also where they are texts
    assert found["'=name"].tolist() == ["'=1+1", "'+x", "'-x", "'@sum", "'\tx", "-5", "+1e3", "a=b", "", ""]
    assert found["n"][0] == "-5.000000" and found["i"].tolist() == ["", *map(str, range(9))]
