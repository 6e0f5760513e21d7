"""The command line: every command on awkward files, and its outputs opened again."""

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma import catalogue
from pgm_bma.commands import classify, findings, output, repeat, session, warm_up
from pgm_bma.commands import main as command_line
from pgm_bma.commands.main import build_parser
from pgm_bma.foundation.runtime import compiling
from tests.commands.command_line import run

CLASSIFIERS, CLUSTERERS, STRUCTURES = map(catalogue.METHODS.get, ("classifier", "clusterer", "structure"))
AWKWARD = ["été à la mer", "taille, cm", 'l\'"avis"', "santé", "constante"]  # columns of the awkward file that are data


def record(folder):
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def open_again(folder, nodes):
    """Read back every file that another program may open; returns our network."""
    import pyagrum
    from pgmpy.readwrite import BIFReader

    ours = pgm_bma.read_bif(folder / "model.bif")
    assert set(ours.nodes()) == set(nodes) and ours.check_model()
    assert len(BIFReader(str(folder / "model.bif")).get_model().nodes()) == len(nodes)
    assert pyagrum.loadBN(str(folder / "model.bif")).size() == len(nodes)
    graph = nx.read_graphml(folder / "graph.graphml")
    assert set(graph.nodes()) == set(nodes)
    assert (folder / "graph.png").read_bytes()[:4] == b"\x89PNG" and "<svg" in (folder / "graph.svg").read_text()
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "pgm-bma repeat" in page
    return ours


# ---------------------------------------------------------------------------------------------------- cluster


def test_cluster_an_awkward_file(awkward, tmp_path, capsys):
    words = ("--missing", "?", "--drop", "classe", "--clusters", "1:3", "--out", tmp_path / "out")
    out, err = run(capsys, "cluster", awkward, *words)
    assert "60 rows, 4 columns" in out and "'constante'" in err and "note: column 'row' numbers the rows" in err
    network = open_again(tmp_path / "out", ["cluster", *AWKWARD[:4]])
    assert set(network.latents) == {"cluster"}
    assert network.get_cpds("taille, cm").state_names["taille, cm"] == [1, 2, 3, 4, 5, 6]
    assert set(network.get_cpds("santé").state_names["santé"]) == {"à (b)", "ß{c}"}  # the question mark is not a state
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert labels["row"].tolist() == list(range(1, 61))
    proba = labels.filter(like="P(").to_numpy()
    # six decimals are written
    assert proba.shape[1] == len(network.get_cpds("cluster").values) and np.allclose(proba.sum(axis=1), 1, atol=2e-6)
    assert np.allclose(labels["probability"], proba.max(axis=1)) and (labels["cluster"] == proba.argmax(axis=1)).all()
    written = record(tmp_path / "out")
    assert written["pgm_bma"] == pgm_bma.__version__ and written["result"]["n_clusters"] == proba.shape[1]
    assert sum(written["result"]["cluster_sizes"]) == 60
    assert set(written["files"]) == {path.name for path in (tmp_path / "out").iterdir()}


@pytest.mark.usefixtures("no_pictures")
def test_cluster_gives_what_the_class_gives(capsys, tmp_path):
    run(capsys, "cluster", "zoo", "--clusters", 3, "--seed", 5, "--set", "n_init=4", "--out", tmp_path / "out")
    frame, target = pgm_bma.load_dataset("zoo")
    expected = pgm_bma.EMAClusterer(3, random_state=5, n_init=4).fit(frame.drop(columns=target))
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert labels["cluster"].tolist() == expected.labels_.tolist()
    loaded = pgm_bma.load(tmp_path / "out" / "estimator.pgm")
    assert np.array_equal(loaded.predict_proba(frame), expected.predict_proba(frame))


@pytest.mark.parametrize("method", CLUSTERERS)
def test_every_clusterer_runs_and_compares_with_known_classes(method, awkward, tmp_path, capsys):
    words = ("--target", "classe", "--missing", "?", "--set", "n_init=3", "--out", tmp_path / "out")
    out, err = run(capsys, "cluster", awkward, "--clusters", 2, "--method", method, *words)
    assert "adjusted Rand index" in out and "sain" in out and "takes no part" in err
    index = record(tmp_path / "out")["result"]["adjusted_rand_index"]
    assert -0.5 <= index <= 1 and len(pd.read_csv(tmp_path / "out" / "labels.csv")) == 60
    assert "cluster" in open_again(tmp_path / "out", ["cluster", *AWKWARD[:4]]).nodes()


@pytest.mark.usefixtures("no_pictures")
def test_numbers_are_discretised_before_clustering(tmp_path, capsys):
    words = ("--discretize", "frequency", "--bins", 4, "--set", "n_init=3", "--out", tmp_path / "out")
    _, err = run(capsys, "cluster", "wine", "--clusters", 3, *words)
    assert "note: discretised (frequency): 'A1'" in err
    model = pgm_bma.read_bif(tmp_path / "out" / "model.bif")
    assert len(model.get_cpds("A1").state_names["A1"]) == 4
    bins, estimator = (pgm_bma.load(tmp_path / "out" / name) for name in ("bins.pgm", "estimator.pgm"))
    frame, _ = pgm_bma.load_dataset("wine")
    rows = bins.transform(frame.drop(columns="class"))
    assert estimator.predict(rows).tolist() == pd.read_csv(tmp_path / "out" / "labels.csv")["cluster"].tolist()


@pytest.mark.usefixtures("no_pictures")
def test_warnings_reach_the_terminal_the_report_and_the_record(tmp_path, capsys):
    words = ("--clusters", 3, "--set", "max_iter=2", "--set", "n_init=2", "--out", tmp_path)
    _, err = run(capsys, "cluster", "zoo", *words)
    (line,) = [line for line in err.splitlines() if "did not converge" in line]
    assert line.startswith("warning: ") and line.endswith("(here by --set NAME=VALUE)")
    assert "did not converge in max_iter=2" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert line.removeprefix("warning: ") in record(tmp_path)["warnings"]


# --------------------------------------------------------------------------------------------------- classify


@pytest.mark.parametrize("method", CLASSIFIERS)
def test_every_classifier_on_an_awkward_file(method, awkward, tmp_path, capsys):
    words = ("--method", method, "--target", "classe", "--missing", "?", "--cv", 4, "--out", tmp_path / "out")
    out, _ = run(capsys, "classify", awkward, *words)
    predictions = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert list(predictions.columns) == ["row", "fold", "true", "predicted", "probability", "P(malade)", "P(sain)"]
    assert predictions["fold"].value_counts().to_dict() == {1: 15, 2: 15, 3: 15, 4: 15}
    accuracy = record(tmp_path / "out")["result"]["accuracy"]
    assert accuracy == pytest.approx((predictions["true"] == predictions["predicted"]).mean())
    assert accuracy > 0.8  # the columns were made to tell the class
    assert f"{100 * accuracy:.1f} %".replace("100.0", "100") in out
    if "model.bif" in record(tmp_path / "out")["files"] and method not in ("kikuchi", "additive"):
        open_again(tmp_path / "out", ["classe", *AWKWARD[:4]])


@pytest.mark.usefixtures("no_pictures")
def test_cross_validation_predicts_rows_it_has_not_seen(awkward, tmp_path, capsys):
    """The written probabilities are those of a model fitted without the rows of the fold."""
    words = ("--target", "classe", "--missing", "?", "--cv", 3, "--method", "averaged-nb", "--out", tmp_path / "out")
    run(capsys, "classify", awkward, *words)
    written = pd.read_csv(tmp_path / "out" / "predictions.csv")
    frame = pd.read_csv(awkward, index_col=0, na_values=["?"], skipinitialspace=True).drop(columns="constante")
    frame = frame.rename(columns=str.strip).map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    states = {name: sorted(frame[name].dropna().unique().tolist()) for name in frame}
    for fold in (1, 2, 3):
        held_out = (written["fold"] == fold).to_numpy()
        model = pgm_bma.AveragedNaiveBayesClassifier(state_names=states).fit(frame[~held_out], y="classe")
        found = model.predict_proba(frame[held_out].drop(columns="classe"))
        assert np.allclose(
            found, written.loc[held_out, ["P(malade)", "P(sain)"]], atol=1e-6
        )  # six decimals are written


@pytest.mark.usefixtures("no_pictures")
def test_cut_points_are_found_inside_the_folds(monkeypatch, tmp_path, capsys):
    seen, fit = [], pgm_bma.MDLDiscretizer.fit
    monkeypatch.setattr(pgm_bma.MDLDiscretizer, "fit", lambda self, X, y=None: seen.append(len(X)) or fit(self, X, y))
    run(capsys, "classify", "iris", "--discretize", "mdl", "--cv", 5, "--method", "nb", "--out", tmp_path / "out")
    assert seen == [120] * 5 + [150]


@pytest.mark.usefixtures("no_pictures")
def test_columns_that_mdl_finds_useless_are_left_out(table, tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 80)
    path = table({"useful": y + rng.normal(0, 0.1, 80), "useless": rng.normal(size=80), "y": np.where(y, "a", "b")})
    run(capsys, "classify", path, "--target", "y", "--discretize", "mdl", "--method", "nb", "--out", tmp_path / "out")
    assert set(pgm_bma.read_bif(tmp_path / "out" / "model.bif").nodes()) == {"y", "useful"}


@pytest.mark.usefixtures("no_pictures")
def test_a_test_file(table, tmp_path, capsys):
    frame, _ = pgm_bma.load_dataset("zoo")
    train, test = table(frame[:70], "train.csv"), frame[70:].copy()
    test.loc[70, "legs"] = "7"  # never seen
    known = table(test, "known.csv")
    words = ("--target", "class", "--method", "tan", "--out", tmp_path / "out")
    out, err = run(capsys, "classify", train, *words, "--test", known)
    assert "2 cells of 'legs' taken as missing; '7' is not among the values" in err  # the other is a five
    written = pd.read_csv(tmp_path / "out" / "predictions.csv")
    result = record(tmp_path / "out")
    assert len(written) == 31 and result["test"]["rows"] == 31
    assert result["result"]["accuracy"] == pytest.approx((written["true"] == written["predicted"]).mean())
    unknown = table(test.drop(columns="class"), "unknown.csv")
    out, _ = run(capsys, "classify", train, *words, "--test", unknown)
    again = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert "the file does not hold their true classes" in " ".join(out.split()) and "true" not in again
    assert again["predicted"].tolist() == written["predicted"].tolist()


@pytest.mark.usefixtures("no_pictures")
def test_rows_without_a_class_are_predicted(table, tmp_path, capsys):
    frame, _ = pgm_bma.load_dataset("zoo")
    frame.loc[[3, 50], "class"] = None
    words = ("--target", "class", "--method", "nb", "--cv", 3, "--out", tmp_path / "out")
    _, err = run(capsys, "classify", table(frame), *words)
    assert "note: 2 rows without a value of 'class': they are predicted only" in err
    written = pd.read_csv(tmp_path / "out" / "predictions.csv")
    assert written["fold"].isna().to_numpy().nonzero()[0].tolist() == [3, 50]
    assert written["predicted"].notna().all() and (written["probability"] > 0).all()


@pytest.mark.usefixtures("no_pictures")
def test_a_column_that_looks_like_row_numbers_is_data_where_it_is_asked_for(table, tmp_path, capsys):
    frame, _ = pgm_bma.load_dataset("zoo")
    frame = frame[["legs", "milk", "eggs", "class"]]
    three = frame.drop_duplicates("legs")[:3].assign(legs=[0, 1, 2], milk="0")
    words = ("--target", "class", "--method", "nb", "--cv", 3, "--out", tmp_path / "out")
    frame.insert(0, "id", range(500, 500 + len(frame)))
    _, err = run(capsys, "classify", table(frame), *words, "--drop", "id")  # set apart already
    assert "column 'id' numbers the rows" in err
    _, err = run(capsys, "classify", table(frame), "--target", "id", "--out", tmp_path / "out", code=1)
    assert "the target 'id' holds 101 different numbers" in err
    train, test = table(frame.drop(columns="id")), table(three, "three.csv")
    run(capsys, "classify", train, "--target", "class", "--method", "nb", "--test", test, "--out", tmp_path / "out")
    assert pd.read_csv(tmp_path / "out" / "predictions.csv")["row"].tolist() == [1, 2, 3]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("name", ["fold", "true", "P(p)", "cluster"])
def test_row_numbers_under_a_name_of_ours(name, table, tmp_path, capsys):
    path = table({name: range(1, 61), "a": ["u", "v"] * 30, "y": ["p", "q"] * 30})
    run(capsys, "classify", path, "--method", "nb", "--target", "y", "--cv", 2, "--out", tmp_path / "classes")
    run(capsys, "cluster", path, "--method", "em", "--clusters", 2, "--out", tmp_path / "clusters")
    for written in (tmp_path / "classes" / "predictions.csv", tmp_path / "clusters" / "labels.csv"):
        written = pd.read_csv(written)
        assert written.iloc[:, 0].tolist() == list(range(1, 61)) and written.columns[0] in (name, "row")
        assert written.columns.is_unique and len({"true", "cluster"} & set(written.columns[1:])) == 1


@pytest.mark.usefixtures("no_pictures")
def test_empty_clusters_are_not_counted(table, tmp_path, capsys):
    path = table({"a": ["x", "y"] * 30, "b": ["u", "v"] * 30})
    out, err = run(capsys, "cluster", path, "--method", "em", "--clusters", 9, "--out", tmp_path / "out")
    sizes = np.array(record(tmp_path / "out")["result"]["cluster_sizes"])
    assert f"The rows fall into {(sizes > 0).sum()} clusters: of 9 clusters only {(sizes > 0).sum()} have rows" in out
    assert out.count(" stands out for ") == (sizes > 0).sum() < 9 and "only 0 rows" not in err
    assert "n_clusters=9 exceeds the 2 distinct rows" in err and "(here by --clusters)" in err


@pytest.mark.usefixtures("no_pictures")
def test_errors_say_how_a_parameter_is_given_here(table, tmp_path, capsys):
    path = table({"cluster": ["x", "y"] * 30, "b": ["u", "v"] * 30})
    _, err = run(capsys, "cluster", path, "--out", tmp_path / "out", code=1)
    assert "pass another cluster_name (here by --set NAME=VALUE)" in err
    run(capsys, "cluster", path, "--clusters", 2, "--set", "cluster_name=group", "--out", tmp_path / "out")


@pytest.mark.usefixtures("no_pictures")
def test_jobs_do_not_change_the_result(tmp_path, capsys):
    for jobs in (1, 2):
        run(capsys, "classify", "zoo", "--cv", 4, "--method", "nb", "--jobs", jobs, "--out", tmp_path / str(jobs))
    assert record(tmp_path / "1")["files"]["predictions.csv"] == record(tmp_path / "2")["files"]["predictions.csv"]


# -------------------------------------------------------------------------------------- structure and compare


@pytest.mark.skipif(not STRUCTURES, reason="no structure learner is public yet")
def test_groups_are_told_by_the_sign_of_their_interaction():
    rng = np.random.default_rng(0)
    a, b, c = rng.integers(0, 2, (3, 600))
    X = pd.DataFrame({"a": a, "b": b, "c": c, "d": np.where(rng.random(600) < 0.9, c, 1 - c)})
    y = np.where(rng.random(600) < 0.95, 2 * (a ^ b) + c, rng.integers(0, 4, 600))
    fitted = pgm_bma.KikuchiBayesClassifier(significance_level=0.01).fit(X, y)
    found = findings.region_findings(fitted, X, pd.Series(y, name="class"))
    words, taken = " ".join(found.words), found.tables[0][1]["taken"].tolist()
    assert taken == sorted(taken, reverse=True) and taken[0] == "yes" and taken[-1] == "no"
    assert "more about 'class' together than apart: a with b." in words
    assert "tell partly the same: c with d." in words


def test_structure_of_an_awkward_file(awkward, tmp_path, capsys):
    run(capsys, "structure", awkward, "--missing", "?", "--drop", "santé", "--out", tmp_path / "out")
    arcs = pd.read_csv(tmp_path / "out" / "arcs.csv")
    nodes = ["été à la mer", "taille, cm", 'l\'"avis"', "classe"]
    assert len(arcs) == 12 and set(arcs["from"]) == set(arcs["to"]) == set(nodes)
    assert arcs["posterior"].between(0, 1).all() and arcs["posterior"].is_monotonic_decreasing
    open_again(tmp_path / "out", nodes)
    connected = arcs[[{a, b} == {"classe", "taille, cm"} for a, b in zip(arcs["from"], arcs["to"])]]
    assert connected["posterior"].sum() > 0.9  # the size tells the class in the awkward file


@pytest.mark.usefixtures("no_pictures")
def test_impute_writes_completed_copies_and_tells_what_was_missing(table, tmp_path, capsys):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 90)
    columns = {"a": np.array(["u", "v"])[a], "b": np.array(["p", "q"])[np.where(rng.random(90) < 0.9, a, 1 - a)]}
    frame = pd.DataFrame(columns).astype(object)
    frame.loc[rng.choice(90, 20, replace=False), "b"] = ""
    path = table({name: frame[name].tolist() for name in frame})
    out, _ = run(capsys, "impute", path, "--copies", 3, "--out", tmp_path / "out")
    written = pd.read_csv(tmp_path / "out" / "completed.csv")
    assert len(written) == 270 and written["copy"].tolist() == [1] * 90 + [2] * 90 + [3] * 90
    assert written.notna().all(axis=None)
    seen = (frame["b"] != "").to_numpy()
    for k in (1, 2, 3):
        assert (written[written["copy"] == k]["b"].to_numpy()[seen] == frame["b"].to_numpy()[seen]).all()
    said = " ".join(out.split())
    assert "20 cells in 1 column are missing ('b'), in 22.2 % of the rows; they were sampled together" in said
    assert "3 completed copies of the table" in said
    out, _ = run(capsys, "repeat", tmp_path / "out")
    assert "completed.csv came out the same" in out


def test_compare_all_classifiers(tmp_path, capsys):
    _, err = run(capsys, "compare", "zoo", "--cv", 2, "--out", tmp_path / "out")
    written = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert set(written["method"]) == {*CLASSIFIERS, "(class frequencies)"}
    assert written["log loss"].is_monotonic_increasing and written["more than best"].iloc[0] == 0
    assert (written["± accuracy"] > 0).all() and (written["± log loss"] > 0).all()
    assert all(f"{name}: 2 of 2 done" in err for name in CLASSIFIERS) and "tiny classes" in err
    alone = record(tmp_path / "out")["result"]["nb"]
    run(capsys, "classify", "zoo", "--method", "nb", "--cv", 2, "--out", tmp_path / "nb")
    assert record(tmp_path / "nb")["result"]["log_loss"] == pytest.approx(alone["log_loss"])


@pytest.mark.usefixtures("no_pictures")
def test_compare_says_when_columns_tell_nothing_and_when_methods_agree(table, tmp_path, capsys):
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, 3, 80) for name in "abcdef"}
    path = table({**columns, "y": rng.permutation(["no"] * 70 + ["yes"] * 10)})
    out, _ = run(capsys, "compare", path, "--target", "y", "--methods", "nb,tan", "--out", tmp_path / "out")
    assert "No method predicts 'y' better than the class frequencies alone." in " ".join(out.split())
    path = table({"a": ["u", "v"] * 30, "y": ["p", "q"] * 30})  # one column: TAN is naive Bayes
    out, _ = run(capsys, "compare", path, "--target", "y", "--methods", "nb,tan", "--out", tmp_path / "out")
    assert "the difference may be chance (within two standard errors of it): tan." in " ".join(out.split())


def test_the_structure_of_one_column(table, tmp_path, capsys):
    out, _ = run(capsys, "structure", table({"a": ["u", "v"] * 30}), "--out", tmp_path / "out")
    assert "There is one column only" in out and (tmp_path / "out" / "report.html").is_file()


@pytest.mark.usefixtures("no_pictures")
def test_a_method_that_fails_does_not_stop_the_comparison(monkeypatch, awkward, tmp_path, capsys):
    def fail(self, training):
        raise ValueError("too many\nstates")

    monkeypatch.setattr(pgm_bma.TANClassifier, "_fit", fail)
    words = ("--target", "classe", "--missing", "?", "--cv", 2, "--methods", "tan,nb", "--out", tmp_path / "out")
    _, err = run(capsys, "compare", awkward, *words)
    assert "warning: tan is left out: too many states" in err
    written = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert set(written["method"]) == {"nb", "(class frequencies)"}


def test_scores_have_the_standard_errors_of_the_textbook():
    proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]])
    found = classify.scores(np.array([0, 1, 1, 0]), proba)
    losses = -np.log([0.9, 0.4, 0.8, 0.3])
    assert found.accuracy == 0.5 and found.accuracy_error == pytest.approx(np.sqrt(0.25 / 3))
    assert found.log_loss == pytest.approx(losses.mean())
    assert found.log_loss_error == pytest.approx(np.sqrt(((losses - losses.mean()) ** 2).sum() / 3 / 4))


@pytest.mark.parametrize("n_folds", [2, 7, 10])
def test_folds_spread_every_class(n_folds):
    codes = np.repeat([0, 1, 2], [50, 23, 9])
    fold = classify.stratified_folds(codes, n_folds, seed=4)
    for which in (np.ones(82, bool), *(codes == c for c in range(3))):
        sizes = np.bincount(fold[which], minlength=n_folds)
        assert sizes.max() - sizes.min() <= 1
    assert not np.array_equal(fold, classify.stratified_folds(codes, n_folds, seed=5))


# ------------------------------------------------------------------------------------------ repeat, reproduce


@pytest.mark.usefixtures("no_pictures")
def test_repeat(table, tmp_path, capsys, monkeypatch):
    frame, _ = pgm_bma.load_dataset("zoo")
    path = table(frame)
    monkeypatch.chdir(tmp_path)
    words = ("--target", "class", "--method", "nb", "--drop", "legs,tail", "--cv", 3, "--out", "first")
    run(capsys, "classify", "table.csv", *words)
    monkeypatch.chdir(tmp_path.parent)  # another folder: the data are found beside run.json
    out, _ = run(capsys, "repeat", tmp_path / "first", "--out", tmp_path / "second")
    assert "predictions.csv came out the same" in out
    assert record(tmp_path / "second")["arguments"]["drop"] == ["legs,tail"]
    changed = record(tmp_path / "first")
    changed["files"]["predictions.csv"] = "0" * 64
    (tmp_path / "first" / "run.json").write_text(json.dumps(changed))
    _, err = run(capsys, "repeat", tmp_path / "first", code=1)
    assert "predictions.csv came out differently" in err and (tmp_path / "first-repeat" / "run.json").exists()
    table(frame[:-1])
    _, err = run(capsys, "repeat", tmp_path / "first" / "run.json", code=1)
    assert f"{Path(path).name} is not the table of the recorded run" in err
    (tmp_path / "first" / "run.json").write_text("{}")
    _, err = run(capsys, "repeat", tmp_path / "first", code=1)
    assert "is not a run.json of pgm-bma" in err


@pytest.mark.parametrize("clusters", ["3", "2:4"])
def test_arguments_survive_the_record(clusters):
    words = [
        "cluster",
        "f.csv",
        "--clusters",
        clusters,
        "--missing=-",
        "--missing=?",
        "--keep-constant",
        "--seed=0",
        "--set=a=b",
    ]
    first = vars(build_parser().parse_args(words))
    again = vars(build_parser().parse_args(repeat.to_argv("cluster", first)))
    assert {k: v for k, v in first.items() if k != "run"} == {k: v for k, v in again.items() if k != "run"}


@pytest.mark.usefixtures("no_pictures")
def test_an_earlier_run_leaves_the_folder_but_other_files_stay(tmp_path, capsys):
    (tmp_path / "diary.txt").write_text("mine")
    run(capsys, "cluster", "zoo", "--clusters", 2, "--set", "n_init=2", "--out", tmp_path)
    run(capsys, "classify", "zoo", "--cv", 2, "--method", "nb", "--out", tmp_path)
    assert not (tmp_path / "labels.csv").exists() and (tmp_path / "predictions.csv").exists()
    assert (tmp_path / "diary.txt").read_text() == "mine"


def test_reproduce_lists_and_runs_tables(monkeypatch, capsys):
    entry = command_line._benchmarks()
    tables = [name for name, (_, is_table) in entry.benchmarks().items() if is_table]
    out, _ = run(capsys, "reproduce")
    assert all(name in out for name in tables) and "speed_" not in out
    given = []
    monkeypatch.setattr(entry, "benchmarks", lambda: {"paper_table9": ("Nine.", True), "speed_x": ("X.", False)})
    monkeypatch.setattr(entry, "load", lambda name: lambda argv: given.append((name, argv)))
    run(capsys, "reproduce", "paper-table9", "--full", "--seed", 3)
    run(capsys, "reproduce", "all", "--out", "x")
    assert given == [
        ("paper_table9", ["--full", "--seed", "3", "--out", command_line.TABLES_FOLDER]),
        ("paper_table9", ["--out", "x"]),
    ]
    _, err = run(capsys, "reproduce", "paper_table8", code=2)
    assert "did you mean 'paper_table9'?" in err
    run(capsys, "reproduce", "speed_x", code=2)


@pytest.mark.skipif(os.name == "nt", reason="links need a permission on Windows")
def test_tables_are_found_in_a_checkout_and_in_an_installed_package(tmp_path):
    """The wheel carries benchmarks/ as pgm_bma/_benchmarks. Both layouts are put together here; -S hides installed packages."""
    root = Path(pgm_bma.__file__).resolve().parents[1]
    skip = shutil.ignore_patterns("__pycache__", "_benchmarks")
    for layout in ("installed", "checkout"):
        shutil.copytree(root / "pgm_bma", tmp_path / layout / "pgm_bma", ignore=skip)
    (tmp_path / "installed" / "pgm_bma" / "_benchmarks").symlink_to(root / "benchmarks")
    (tmp_path / "checkout" / "benchmarks").symlink_to(root / "benchmarks")
    script = "from pgm_bma.commands import main as cli; print(cli._benchmarks().__name__); cli.main(['reproduce'])"
    names = {}
    for layout in ("installed", "checkout"):
        done = subprocess.run(
            [sys.executable, "-S", "-c", script], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path / layout)},
            capture_output=True, text=True,
        )  # fmt: skip
        names[layout], *listed = done.stdout.splitlines()
        assert any(line.startswith("  ema_") or line.startswith("  kikuchi_") for line in listed), done.stderr
    assert names == {"installed": "pgm_bma._benchmarks.__main__", "checkout": "benchmarks.__main__"}


def test_datasets(capsys):
    out, _ = run(capsys, "datasets")
    assert all(name in out for name in pgm_bma.list_datasets()) and "alarm" in out


def test_without_a_method_the_default_of_the_package_is_taken(monkeypatch, tmp_path, capsys, no_pictures):
    def choose(**parameters):
        return pgm_bma.TANClassifier(alpha=0.25, **parameters)

    monkeypatch.setattr(pgm_bma, "default_classifier", choose)
    out, _ = run(capsys, "classify", "zoo", "--cv", 2, "--out", tmp_path / "one")
    assert "(TANClassifier), seed 0" in out
    arguments = record(tmp_path / "one")["arguments"]  # a repetition does not depend on what is default then
    assert arguments["method"] == "tan" and arguments["set"] == ["alpha=0.25"]
    assert pgm_bma.load(tmp_path / "one" / "estimator.pgm").alpha == 0.25
    run(capsys, "classify", "zoo", "--cv", 2, "--set", "alpha=2", "--out", tmp_path / "two")
    assert pgm_bma.load(tmp_path / "two" / "estimator.pgm").alpha == 2


def test_warm_up_goes_on_when_a_job_fails(monkeypatch, capsys):
    done = []
    jobs = {"a": lambda: done.append("a"), "b": lambda: 1 / 0, "c": lambda: done.append("c")}
    monkeypatch.setattr(warm_up, "jobs_to_do", lambda: jobs)
    out, err = run(capsys, "warm-up")
    assert done == ["a", "c"] and "warm-up: 3 of 3 done" in err and "b: division by zero" in err and "kept in" in out


def test_warm_up_knows_every_estimator():
    from pgm_bma.files.storage import ESTIMATORS

    # bins are found without kernels, and the faces of pgmpy call those of the others
    fitted = {name for name in ESTIMATORS if name.endswith(("Classifier", "Clusterer", "Posterior"))}
    assert fitted <= {name.partition(",")[0] for name in warm_up.jobs_to_do()}


def test_warm_up_runs_every_kernel_of_missing_cells(monkeypatch):
    from pgm_bma.orders.gaps import _augment_kernels as kernels

    entered = [name for name, value in vars(kernels).items() if getattr(value, "__module__", "") == kernels.__name__]
    entered = {name for name in entered if not name.startswith("_")}
    called = set()
    for name in entered:
        real = getattr(kernels, name)
        monkeypatch.setattr(kernels, name, lambda *args, name=name, real=real: called.add(name) or real(*args))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warm_up.jobs_to_do()["OrderPosterior, missing cells"]()
    assert called == entered and len(entered) >= 4


def test_the_compiling_line_is_heard_by_who_asks(capsys):
    before = compiling.announce["said"]
    for to, said in ((False, ""), (True, "pgm_bma: compiling what is needed here, once per installation"), (print, "")):
        compiling.announce["said"] = False
        with compiling.announcing(to):
            compiling._tell()
            compiling._tell()
        found = capsys.readouterr()
        assert found.err.count("compiling") == (1 if said else 0) and said in found.err
        assert found.out.count("compiling") == (to is print)
    compiling.announce["said"] = before


def test_every_method_is_public():
    for offered in (CLASSIFIERS, CLUSTERERS, STRUCTURES):
        for method in offered.values():
            assert session.make(method.name, random_state=3).get_params().get("random_state", 3) == 3
    assert {"averaged-nb", "nb", "tan", "forest"} <= set(CLASSIFIERS) and {"ema", "em"} <= set(CLUSTERERS)


# ----------------------------------------------------------------------------------------- undirected models


def test_an_undirected_model_goes_to_uai(tmp_path):
    """A loop of three variables has no Bayesian network of its factors; the UAI file reads back as the same distribution."""
    from pgmpy.factors.discrete import DiscreteFactor
    from pgmpy.models import DiscreteMarkovNetwork
    from pgmpy.readwrite import UAIReader

    names, states = ["b é", "a", "c"], {"b é": ["x", "y"], "a": [1, 2, 3], "c": ["u", "v"]}
    rng = np.random.default_rng(0)
    model = DiscreteMarkovNetwork([("b é", "a"), ("a", "c"), ("c", "b é")])
    for pair in (("a", "b é"), ("c", "a"), ("b é", "c")):
        sizes = [len(states[name]) for name in pair]
        model.add_factors(DiscreteFactor(pair, sizes, rng.random(sizes), {name: states[name] for name in pair}))

    class Loopy:
        model_ = model

        def to_bayesian_network(self):
            raise ValueError("the regions close a loop")

    folder = output.Folder(tmp_path)
    said = folder.model(Loopy())
    assert said.startswith("There is no model.bif: the regions close a loop")
    assert set(folder.files) == {"model.uai", "model.uai.json"} and not (tmp_path / "model.bif").exists()
    label = json.loads((tmp_path / "model.uai.json").read_text(encoding="utf-8"))["variables"]
    assert {entry["name"]: entry["states"] for entry in label} == states
    joint = 1.0
    for factor in UAIReader(str(tmp_path / "model.uai")).get_model().get_factors():
        joint = factor if joint == 1.0 else joint * factor
    expected = model.get_factors()[0] * model.get_factors()[1] * model.get_factors()[2]
    place = {f"var_{i}": entry["name"] for i, entry in enumerate(label)}
    found = np.transpose(joint.values, [[place[v] for v in joint.variables].index(name) for name in names])
    wanted = np.transpose(expected.values, [list(expected.variables).index(name) for name in names])
    assert np.allclose(found, wanted, rtol=1e-12)  # the text holds every digit
