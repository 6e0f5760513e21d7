"""Numbers as they are in classifiers, tables for papers and for Excel, reports without rows, and the report of the demo."""

import json

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.commands import demo
from pgm_bma.report.live_data import network_data
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
    assert "numbers taken as they are: 'age'" in err and "What tells most about 'sick': 'age'" in " ".join(out.split())
    found = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
    assert found["accuracy"] > 0.7
    _, err = run(capsys, *words, "--discretize", "mdl")
    assert "discretised (mdl): 'age'" in err and "as they are" not in err


def test_clusters_still_ask_for_bins_and_name_only_what_they_can_use(measured, tmp_path, capsys):
    _, err = run(capsys, "cluster", measured, "--target", "sick", "--out", tmp_path / "out", code=1)
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
    assert ("standard_error" in long) == (method == "em")
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
