"""Numbers as they are in classifiers, tables for papers and for Excel, reports without rows, and the report of the demo."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.commands import demo
from pgm_bma.commands.session import column_table
from pgm_bma.report.live_data import interaction_data, network_data
from tests.commands.command_line import run

pytestmark = pytest.mark.usefixtures("no_pictures")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    rng = np.random.default_rng(0)
    age, group = rng.normal(50, 15, 300).round(1), rng.integers(0, 3, 300)
    sick = rng.random(300) < 1 / (1 + np.exp(-0.15 * (age - 50)))
    frame = pd.DataFrame({"age": age, "group": np.array(list("abc"))[group], "sick": np.where(sick, "yes", "no")})
    frame.loc[:9, "age"] = np.nan
    path = tmp_path_factory.mktemp("tables") / "measured.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("method", ["additive", "tan"])
def test_classifiers_take_numbers_as_they_are(measured, tmp_path, capsys, method):
    words = ["classify", measured, "--target", "sick", "--method", method, "--cv", "3", "--out", tmp_path / "out"]
    out, err = run(capsys, *words)
    said = {
        "additive": "The evidence for 'sick' changes most with this column: 'age'",
        "tan": "Columns that say most about 'sick': 'age'",
    }
    assert "numbers taken as they are: 'age'" in err and said[method] in " ".join(out.split())
    found = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
    assert found["accuracy"] > 0.7
    _, err = run(capsys, *words, "--discretize", "mdl")
    assert "discretised (mdl): 'age'" in err and "as they are" not in err


@pytest.mark.usefixtures("no_pictures")
def test_a_pair_whose_columns_say_nothing_alone_is_named_and_drawn(tmp_path, capsys):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: rng.choice(["u", "v"], 600) for name in "abcd"})
    table["noise"] = rng.choice([f"z{i}" for i in range(60)], 600)
    is_odd = (table["a"] == "u") != (table["b"] == "u")
    table["y"] = np.where(rng.random(600) < np.where(is_odd, 0.9, 0.1), "yes", "no")
    table.to_csv(tmp_path / "t.csv", index=False)
    out, _ = run(capsys, "classify", tmp_path / "t.csv", "--target", "y", "--cv", "2", "--out", tmp_path / "out")
    said = " ".join(out.split())
    assert re.search("The evidence for 'y' changes most with these columns: ('a' and 'b'|'b' and 'a')\\.", said)
    assert re.search(
        r"say more about 'y' together than apart: a with b \([\d.]+ % of the explained log odds[^;]*\)\.", said
    )
    data = interaction_data(pgm_bma.load(tmp_path / "out" / "estimator.pgm"))
    weakest = min(abs(value) for _, _, value, _, _ in data["arcs"])
    at_most = data["least"] + data["step"] * np.ceil((data["start"] - data["least"]) / data["step"])
    assert at_most <= weakest  # a slider stops at whole steps
    assert {name for name, _, x, *_ in data["nodes"] if x is not None} == {"a", "b"}


@pytest.mark.usefixtures("no_pictures")
def test_dependent_answers_next_to_a_number_are_not_called_numbers(tmp_path, capsys):
    rng = np.random.default_rng(2)
    z = rng.integers(0, 2, 600)
    table = pd.DataFrame({name: (rng.random(600) < np.where(z, 0.85, 0.15)).astype(int) for name in "abcd"})
    table["b"] = np.where(rng.random(600) < 0.7, table["a"], table["b"])
    table["size"] = rng.normal(170 + 20 * z, 5).round(1)
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["cluster", tmp_path / "t.csv", "--method", "em", "--clusters", "1:2", "--set", "n_init=4"]
    out, _ = run(capsys, *words, "--out", tmp_path / "out")
    said = " ".join(out.split())
    assert "dependent: a with b." in said and "numbers that depend" not in said
    assert f"pgm-bma cluster {tmp_path / 't.csv'} --clusters 1:2 --method forest --discretize frequency." in said
    assert "degrees of freedom" not in said  # a table with numbers has no cells to count
    assert "model.bif holds the columns of states" in said and "single best network" not in said
    ranges = column_table(table[["size"]])["most frequent (rows), or range"].iloc[0]
    assert ranges.startswith(f"{table['size'].min():.4g} to {table['size'].max():.4g}")


@pytest.mark.usefixtures("no_pictures")
def test_clusters_of_numbers_ordered_answers_and_categories_in_one_call(tmp_path, capsys):
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, 200)
    table = pd.DataFrame(
        {
            "size": rng.normal(170 + 20 * z, 5).round(1),
            "answer": np.clip(np.round(rng.normal(2.5 + 2 * z, 1)), 1, 7).astype(int),
            "place": np.where(rng.random(200) < 0.8, np.array(["a", "b"])[z], "c"),
        }
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["cluster", tmp_path / "t.csv", "--clusters", "1-3", "--ordered", "answer", "--set", "n_init=4"]
    out, err = run(capsys, *words, "--out", tmp_path / "out")
    assert "numbers taken as they are: 'size'" in err and "The rows fall into 2 clusters" in out
    assert re.search(r"stands out for size 1(89|90|91)", " ".join(out.split()))
    page = (tmp_path / "out" / "report.html").read_text()
    assert "model.bif holds the columns of states, densities.csv those of numbers" in page + out + err
    model = pgm_bma.load(tmp_path / "out" / "estimator.pgm")
    assert model.numeric_columns_ == ["size"] and model.ordered_columns_ == ["answer"]
    profiles = pd.read_csv(tmp_path / "out" / "profiles.csv")
    assert set(profiles.loc[profiles["column"] == "size", "state"]) == {"mean", "sd"}


def test_methods_without_numbers_ask_for_bins_and_name_only_what_they_can_use(measured, tmp_path, capsys):
    words = ["cluster", measured, "--target", "sick", "--method", "forest", "--out", tmp_path / "out"]
    _, err = run(capsys, *words, code=1)
    assert "add --discretize frequency or width, or leave it out" in err and "mdl" not in err


def test_a_report_without_rows(measured, tmp_path, capsys):
    words = ["classify", measured, "--target", "sick", "--cv", "2", "--method", "nb"]
    run(capsys, *words, "--out", tmp_path / "with")
    run(capsys, *words, "--no-rows", "--out", tmp_path / "without")
    heading = "Why a row is predicted as it is"
    assert heading in (tmp_path / "with" / "report.html").read_text(encoding="utf-8")
    assert heading not in (tmp_path / "without" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("method", ["em", "structural", "forest"])
def test_profiles_of_every_method_also_as_a_wide_table_for_excel(tmp_path, capsys, method):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 200)
    table = pd.DataFrame({name: np.where(rng.random(200) < 0.85, z, 1 - z) for name in "abcd"})
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["cluster", tmp_path / "t.csv", "--clusters", "2", "--set", "n_init=3", "--method", method, "--excel"]
    run(capsys, *words, "--out", tmp_path / "out")
    assert (tmp_path / "out" / "profiles_wide.csv").read_bytes().startswith(b"\xef\xbb\xbfcolumn;state;cluster 0;")
    wide, long = (
        pd.read_csv(tmp_path / "out" / name, sep=";", decimal=",") for name in ("profiles_wide.csv", "profiles.csv")
    )
    assert len(wide) == 9 and wide["cluster 0"][0] + wide["cluster 1"][0] == pytest.approx(1, abs=1e-5)
    assert wide["cluster 0"][1:3].sum() == pytest.approx(1, abs=1e-5)
    assert sorted(long["probability"]) == sorted(wide[["cluster 0", "cluster 1"]].to_numpy().ravel())
    assert "standard_error" in long
    if method != "em":
        found = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
        model = pgm_bma.load(tmp_path / "out" / "estimator.pgm")
        assert found["bic"] == pytest.approx(model.bic(table)) and found["icl"] >= found["bic"]
        assert 0 < found["entropy_r2"] < 1 and "dependent_pairs" in found


@pytest.mark.parametrize("name", ["LatentClassClusterer", "EMAClusterer", "StructuralEMClusterer"])
def test_the_view_of_a_model_has_the_arcs_of_its_file(name):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 200)
    X = pd.DataFrame({name: np.where(rng.random(200) < 0.85, z, 1 - z) for name in "abcd"})
    X["noise"] = rng.integers(0, 5, 200)
    estimator = getattr(pgm_bma, name)(2, n_init=3, random_state=0).fit(X)
    data = network_data(estimator, X.astype("category"))
    shown = {(data["nodes"][a][0], data["nodes"][b][0]) for a, b, p, *_ in data["arcs"] if p >= data["start"]}
    assert shown == set(estimator.model_.edges)


def test_the_demo_has_a_report(tmp_path):
    (tmp_path / "voting-arcs.png").write_bytes(b"picture")
    texts = ["\nTitle\n=====\ndata: d\n\na table\n\nwrote x/voting-arcs.png\n"] + ["\nOther\n=====\nx\n"] * 5
    page = demo._page(tmp_path, texts).html()
    assert "<h2>Title</h2>" in page and "a table" in page and "data:image/png;base64,cGljdHVyZQ==" in page
    assert "wrote" not in page and "pgm-bma cluster FILE.csv" in page


def test_all_tables_as_sheets_of_one_workbook(tmp_path, capsys):
    openpyxl = pytest.importorskip("openpyxl")
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 60)
    frame = pd.DataFrame({f"=q{i}": np.where(rng.random(60) < 0.9, z, 1 - z) for i in range(4)})
    frame.replace({0: "=no\x07", 1: "yes"}).to_csv(tmp_path / "t.csv", index=False)
    words = ["cluster", tmp_path / "t.csv", "--clusters", "2", "--set", "n_init=3", "--out", tmp_path / "out"]
    run(capsys, *words, "--format", "xlsx")
    book = openpyxl.load_workbook(tmp_path / "out" / "tables.xlsx")
    assert {"labels", "profiles", "profiles_wide", "Profiles of the clusters"} <= set(book.sheetnames)
    sheet = pd.read_csv(tmp_path / "out" / "profiles_wide.csv")
    cells = [[cell.value for cell in line] for line in book["profiles_wide"].iter_rows()]
    assert cells[0] == list(sheet) and len(cells) == 1 + len(sheet)
    np.testing.assert_allclose([line[2] for line in cells[1:]], sheet["cluster 0"], atol=5e-7)  # six digits in the file
    kinds = {cell.data_type for line in book["profiles_wide"].iter_rows() for cell in line}
    assert "f" not in kinds and "n" in kinds  # no formula, and numbers are numbers
    assert "tables.xlsx" in json.loads((tmp_path / "out" / "run.json").read_text())["files"]
    run(capsys, "repeat", tmp_path / "out", "--out", tmp_path / "again")
    assert (tmp_path / "again" / "tables.xlsx").exists()


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("method", ["structural", "forest"])
def test_models_with_arcs_write_what_em_writes(method, tmp_path, capsys):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 300)
    frame = pd.DataFrame({f"q{i}": np.where(rng.random(300) < 0.85, z, 1 - z) for i in range(5)})
    frame["copy"] = np.where(rng.random(300) < 0.9, frame["q0"], 1 - frame["q0"])
    frame["age"] = 30 + 20 * z + rng.normal(0, 3, 300).round(1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    words = [
        "cluster",
        tmp_path / "t.csv",
        "--method",
        method,
        "--clusters",
        "1:3",
        "--set",
        "n_init=3",
        "--outcome",
        "age",
    ]
    out, _ = run(capsys, *words, "--out", tmp_path / "out")
    assert "clusters     score  probability" in out and "age differs between the clusters" in " ".join(out.split())
    profiles = pd.read_csv(tmp_path / "out" / "profiles.csv")
    assert list(profiles) == ["cluster", "column", "state", "probability", "standard_error", "low", "high"]
    inside = (profiles["low"] <= profiles["probability"]) & (profiles["probability"] <= profiles["high"])
    assert inside.all() and profiles["standard_error"].between(1e-4, 0.1).all()
    binomial = np.sqrt(0.5 * 0.5 / 150)  # of a share of one half in a cluster of 150 rows: no error can be far above it
    assert profiles["standard_error"].max() < 2 * binomial
    result = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
    assert {"bic", "icl", "entropy_r2", "dependent_pairs", "outcome"} <= set(result) and result["n_clusters"] == 2


@pytest.mark.usefixtures("no_pictures")
def test_a_gain_that_may_be_chance_says_so(tmp_path, capsys):
    rng = np.random.default_rng(3)
    noise = pd.DataFrame({"a": rng.choice(list("xyz"), 120), "b": rng.choice(list("uv"), 120)})
    said = {}
    for name, y in (("noise", rng.choice(["no", "yes"], 120)), ("copy", noise["b"])):
        noise.assign(y=y).to_csv(tmp_path / f"{name}.csv", index=False)
        words = ("classify", tmp_path / f"{name}.csv", "--target", "y", "--cv", 3, "--method", "nb")
        said[name] = " ".join("".join(run(capsys, *words, "--out", tmp_path / name)).split())
    assert "may be chance" in said["noise"] or "worse than class frequencies" in said["noise"]
    assert "may be chance" not in said["copy"]
