"""The command line on files that are scanned: the fit sees all rows, what is told is told of a sample that says so."""

import json

import pandas as pd
import pytest

from pgm_bma.commands.main import main
from tests.foundation.scanned import cut, make_table, write_parts

DROP = ["--drop", "key,differs"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    parts = cut(make_table(600, missing=0.1), 3)
    return write_parts([part.assign(key=range(i, i + len(part))) for i, part in enumerate(parts)], folder)


def run(capsys, *words):
    code = main([str(word) for word in words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize("memory, how", [("1GB", "folded into distinct rows"), ("2kB", "visited in")])
def test_cluster(files, tmp_path, capsys, memory, how):
    words = ["cluster", files, "--clusters", "2:3", "--memory", memory, "--set", "n_init=4", *DROP]
    code, out, err = run(capsys, *words, "--out", tmp_path / "out")
    assert code == 0 and "600 rows in 3 files: the fit sees all of them" in err and f"all 600 rows were {how}" in err
    assert "The rows fall into 2 clusters" in out and (tmp_path / "out" / "report.html").exists()
    labels = pd.read_parquet(tmp_path / "out" / "labels")
    assert len(labels) == 600 and set(labels["cluster"]) == {0, 1}
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["result"]["n_clusters"] == 2 and record["arguments"]["memory"] == memory
    assert sum(record["result"]["cluster_sizes"]) == 600
    if how == "visited in":
        code, out, _ = run(capsys, "repeat", tmp_path / "out")
        assert code == 0 and "the numbers of the result came out the same" in out


@pytest.mark.usefixtures("no_pictures")
def test_classify_keeps_the_names_of_rows(files, tmp_path, capsys):
    words = ["classify", files, "--target", "class", "--method", "tan", "--cv", "2", "--id", "key", "--drop", "differs"]
    (tmp_path / "out" / "predictions").mkdir(parents=True)
    for name in (".part-00001.parquet.x1", "part-00007.parquet"):  # left by a run that was killed
        (tmp_path / "out" / "predictions" / name).write_text("")
    code, _out, err = run(capsys, *words, "--memory", "2kB", "--out", tmp_path / "out")
    assert code == 0 and "visited in 1 pass" in err and "cross-validation: on the sample" in err
    predicted = pd.read_parquet(tmp_path / "out" / "predictions")
    assert len(predicted) == 600 and list(predicted.columns) == ["key", "class"]


@pytest.mark.usefixtures("no_pictures")
def test_structure_and_compare(files, tmp_path, capsys):
    code, _, err = run(capsys, "structure", files, *DROP, "--set", "missing=state", "--out", tmp_path / "arcs")
    assert code == 0 and "folded into distinct rows" in err and (tmp_path / "arcs" / "arcs.csv").exists()
    words = ["structure", files, *DROP, "--memory", "2kB", "--set", "missing=state", "--set", "max_indegree=2"]
    code, _, err = run(capsys, *words, "--out", tmp_path / "passes")
    assert code == 0 and "all 600 rows were visited in 1 pass" in err and (tmp_path / "passes" / "arcs.csv").exists()
    words = ["compare", files, *DROP, "--target", "class", "--methods", "nb", "--cv", "2"]
    code, _out, err = run(capsys, *words, "--out", tmp_path / "compared")
    assert code == 0 and "compared on a sample of 600 of 600 rows in 3 files" in err


@pytest.mark.usefixtures("no_pictures")
def test_workers_of_a_scheduler_elsewhere(files, tmp_path, capsys):
    from distributed import LocalCluster

    words = ["classify", files, *DROP, "--target", "class", "--method", "tan", "--cv", "2", "--memory", "2kB"]
    options = {
        "n_workers": 2,
        "threads_per_worker": 1,
        "processes": False,
        "protocol": "tcp",
        "dashboard_address": None,
    }
    with LocalCluster(**options) as cluster:
        code, _, err = run(capsys, *words, "--scheduler", cluster.scheduler_address, "--out", tmp_path / "there")
    assert code == 0 and "all 600 rows were visited in 1 pass" in err
    code, _, _ = run(capsys, *words, "--out", tmp_path / "here")
    names = [tmp_path / where / "predictions" for where in ("there", "here")]
    assert code == 0 and pd.read_parquet(names[0]).equals(pd.read_parquet(names[1]))


@pytest.mark.parametrize(
    "words, line",
    [
        (["--discretize", "width"], "--discretize is for tables that are read whole"),
        (["--weight", "half"], "--weight is for tables that are read whole"),
        (["--memory", "plenty"], "memory='plenty' is not a size"),
    ],
)
def test_problems_are_one_line(files, tmp_path, capsys, words, line):
    code, _, err = run(capsys, "cluster", files, *DROP, *words, "--out", tmp_path / "out")
    assert code in (1, 2) and line in err and len(err.strip().splitlines()) == 1


def test_impute_reads_whole_tables(files, capsys):
    code, _, err = run(capsys, "impute", files)
    assert code == 2 and "impute completes tables that are read whole" in err


def test_no_such_files_and_workers_for_csv(tmp_path, capsys):
    code, _, err = run(capsys, "cluster", tmp_path / "none-*.parquet")
    assert code == 1 and "no file matches" in err
    (tmp_path / "a.csv").write_text("x,y\n1,2\n2,1\n")
    code, _, err = run(capsys, "cluster", tmp_path / "a.csv", "--workers", "2")
    assert code == 2 and "--workers and --scheduler read Parquet files" in err
