"""``pgm-bma structure`` with experiments, effects and opinions about arcs."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.commands.command_line import run


@pytest.fixture
def table(tmp_path):
    """a -> b -> c; in a third of the rows b was set, in some c or both."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 240)
    b = np.where(rng.random(240) < 0.85, a, 1 - a)
    was_set = np.array([["", "b", "b;c", ""][k % 4] for k in range(240)])
    b = np.where(np.char.find(was_set, "b") >= 0, rng.integers(0, 2, 240), b)
    c = np.where(rng.random(240) < 0.85, b, 1 - b)
    c = np.where(np.char.find(was_set, "c") >= 0, rng.integers(0, 2, 240), c)
    path = tmp_path / "rows.csv"
    pd.DataFrame({"a": a, "b": b, "c": c, "was_set": was_set}).to_csv(path, index=False)
    return path


def test_experiments_and_effects(table, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["structure", table, "--interventions", "was_set", "--effects", "b,c", "--out", out]
    said, _ = run(capsys, *words)
    assert "c when b is set" in said and "come from the prior" in said and "50.0 %" in said
    arcs = pd.read_csv(out / "arcs.csv").set_index(["from", "to"])["posterior"]
    assert set(arcs.index.get_level_values(0)) == {"a", "b", "c"}
    assert arcs["a", "b"] > 0.95 and arcs["b", "c"] > 0.95
    effects = pd.read_csv(out / "effects.csv").set_index(["of", "on"])
    assert effects.loc[("b", "c"), "size"] == pytest.approx(0.7, abs=0.15) and effects.loc[("c", "b"), "zero"] > 0.95
    page = (out / "report.html").read_text()
    assert "Effects of every column on every other" in page
    run(capsys, "repeat", out / "run.json", "--out", tmp_path / "again")
    assert (tmp_path / "again" / "effects.csv").read_bytes() == (out / "effects.csv").read_bytes()


@pytest.mark.usefixtures("no_pictures")
def test_opinions_about_arcs(table, tmp_path, capsys):
    words = ["structure", table, "--drop", "was_set", "--out", tmp_path / "out", "--overwrite"]
    said, _ = run(capsys, *words, "--tiers", "c|b,a", "--require", "c:b", "--forbid", "a:b")
    assert "--tiers, --forbid and --require settled some arcs" in said
    arcs = pd.read_csv(tmp_path / "out" / "arcs.csv").set_index(["from", "to"])["posterior"]
    assert arcs["c", "b"] == 1 and arcs["a", "b"] == arcs["b", "c"] == arcs["a", "c"] == 0
    assert json.loads((tmp_path / "out" / "run.json").read_text())["arguments"]["tiers"] == "c|b,a"


@pytest.mark.usefixtures("no_pictures")
def test_a_direction_that_only_the_prior_knows_is_said_to_be_open(tmp_path, capsys):
    """In a star without a collider all directions are open, but of its 12 orders 10 have any one arc point outwards."""
    rng = np.random.default_rng(0)
    b = rng.integers(0, 2, 400)
    leaves = {name: np.where(rng.random(400) < 0.9, b, 1 - b) for name in "acd"}
    pd.DataFrame({"b": b, **leaves}).to_csv(tmp_path / "rows.csv", index=False)
    said, _ = run(capsys, "structure", tmp_path / "rows.csv", "--out", tmp_path / "out")
    arcs = pd.read_csv(tmp_path / "out" / "arcs.csv").set_index(["from", "to"])["posterior"]
    assert arcs["b", "a"] > 0.81
    assert "the data do not show the direction: b - " in " ".join(said.split())
    assert said.count("b - ") == 3
    assert "which direction is more probable rests on the prior" in " ".join(said.split())


@pytest.mark.parametrize(
    "words, message",
    [
        (["--forbid", "a-b"], "--forbid a-b: give two columns as A:B"),
        (["--require", "a:z"], "--require names 'z', which is not a column here"),
        (["--tiers", "a|b"], "--tiers leaves out 'c'"),
        (["--effects", "a,z"], "--effects names 'z', which is not a column here"),
        (["--interventions", "who"], "--interventions names 'who'"),
    ],
)
def test_wrong_words(table, tmp_path, capsys, words, message):
    aside = [] if "--interventions" in words else ["--interventions", "was_set"]
    code = 1 if "--interventions" in words else 2
    _, err = run(capsys, "structure", table, "--out", tmp_path / "out", *aside, *words, code=code)
    assert message in err and "fitting" not in err, "found before any work is done"


@pytest.mark.usefixtures("no_pictures")
def test_copies_say_what_stands_in_them(tmp_path, capsys):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"x": x.round(3), "a": np.where(x > 0, "no", "yes"), "b": rng.choice(["u", "v"], 60)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    out, _ = run(capsys, "impute", tmp_path / "t.csv", "--discretize=frequency", "--out", tmp_path / "out")
    said = " ".join(out.split())
    assert "No cell is missing, so the copies are equal" in said and "in place of the numbers of 'x'" in said


@pytest.mark.usefixtures("no_pictures")
def test_more_columns_than_rows_have_a_warning(tmp_path, capsys):
    rng = np.random.default_rng(0)
    pd.DataFrame({f"c{i}": rng.choice(["u", "v"], 13) for i in range(14)}).to_csv(tmp_path / "t.csv", index=False)
    _, err = run(capsys, "structure", tmp_path / "t.csv", "--out", tmp_path / "out")
    assert "14 columns in 13 rows" in err and "arc_prior" in err
