"""Survey files: ids, dates, weights, remarks and codes for "no answer", in one message with the command to run instead."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.commands import findings, preparation, repeat
from pgm_bma.commands.findings import column_dependence
from pgm_bma.commands.main import build_parser
from pgm_bma.foundation.tables.kinds import column_kind, looks_like_weights, missing_codes
from tests.commands.command_line import run


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    """Semicolons, latin-1, decimal commas; ids that count up from anywhere, dates, -9, weights, free text."""
    rng = np.random.default_rng(4)
    words = "die das sehr gut Frage war nicht klar für mich und über den Weg später Müll".split()
    lines = ["Interviewdatum;Fragebogen-Nr;Alter;Größe;F1;F2;F3;Region;Gewicht;Anmerkung"]
    for i in range(150):
        kind = rng.integers(0, 3)
        answers = [min(5, max(1, round(rng.normal([1.5, 3, 4.6][kind], 0.7)))) for _ in range(3)]
        answers = ["-9" if rng.random() < 0.08 else str(answer) for answer in answers]
        size, weight = (f"{value:.3f}".replace(".", ",") for value in (rng.normal(170, 9), rng.uniform(0.3, 2.5)))
        remark = " ".join(rng.choice(words, rng.integers(3, 9)))
        date, age, region = (
            f"{rng.integers(1, 29):02d}.{rng.integers(1, 13):02d}.2023",
            rng.integers(18, 80),
            rng.integers(1, 17),
        )
        lines.append(";".join([date, str(40017 + i), str(age), size, *answers, str(region), weight, remark]))
    path = tmp_path_factory.mktemp("survey") / "umfrage.csv"
    path.write_bytes(("\r\n".join(lines) + "\r\n").encode("latin-1"))
    return path


@pytest.mark.usefixtures("no_pictures")
def test_two_tries_are_enough(survey, tmp_path, capsys):
    words = ["cluster", str(survey), "--clusters", "2-4", "--set", "n_init=3", "--out", str(tmp_path / "out")]
    _, err = run(capsys, *words, code=1)
    for said in ("'Fragebogen-Nr' names the rows", "'Interviewdatum' holds dates", "'Anmerkung' holds free text",
                 "'Gewicht' looks like weights", "hold -9"):  # fmt: skip
        assert said in err
    instead = shlex.split(err.splitlines()[-1].removeprefix("run instead: "))
    assert instead[: len(words) + 1] == ["pgm-bma", *words]
    out, err = run(capsys, *instead[1:])
    assert "150 rows, 6 columns" in out and "weighted by 'Gewicht'" in err
    labels = pd.read_csv(tmp_path / "out" / "labels.csv")
    assert labels["Fragebogen-Nr"].tolist() == list(range(40017, 40167))
    model = pgm_bma.read_bif(tmp_path / "out" / "model.bif")
    assert set(model.get_cpds("F1").state_names["F1"]) <= {1, 2, 3, 4, 5}
    assert len(model.get_cpds("Region").state_names["Region"]) == 16  # a nominal number is not cut
    assert set(pd.read_csv(tmp_path / "out" / "densities.csv")["column"]) == {"Alter", "Größe"}  # numbers stay numbers
    out, _ = run(capsys, "repeat", tmp_path / "out")
    assert "came out the same" in out


@pytest.mark.usefixtures("no_pictures")
def test_weights_are_scaled_and_change_the_fit(survey, tmp_path, capsys):
    frame = pd.read_csv(survey, sep=";", decimal=",", encoding="latin-1")
    fits = {}
    for name, factor in (("one", 1.0), ("ten", 10.0), ("none", None)):
        table = frame[["F1", "F2", "F3", "Gewicht"]].assign(Gewicht=frame["Gewicht"] * (factor or 1))
        table.to_csv(tmp_path / "t.csv", index=False)
        weight = ["--weight", "Gewicht"] if factor else ["--drop", "Gewicht"]
        run(
            capsys,
            "cluster",
            tmp_path / "t.csv",
            "--clusters",
            2,
            "--set",
            "n_init=2",
            *weight,
            "--out",
            tmp_path / name,
        )
        fits[name] = pd.read_csv(tmp_path / name / "labels.csv")["probability"].to_numpy()
    np.testing.assert_allclose(fits["one"], fits["ten"], atol=1e-6)  # six decimals are written
    assert np.abs(fits["one"] - fits["none"]).max() > 1e-3


@pytest.mark.parametrize(
    "name, values, kind",
    [
        ("case", range(70000, 70040), "id"),
        ("Patienten-Nr", np.random.default_rng(0).permutation(40) * 7 + 3, "id"),
        ("income", np.random.default_rng(0).permutation(40) * 7 + 3, None),
        ("user_id", np.arange(90) // 2 + 500, "code"),
        ("hospitalId", np.arange(90) // 2 + 500, "code"),
        ("PAID", np.arange(90) // 2 + 500, None),
        ("site_id", np.arange(90) // 9 + 500, None),  # ten sites are states
        ("height", np.arange(40) / 7, None),
        ("x", [f"A-{i:04d}" for i in range(40)], "id"),
        ("when", [f"2024-0{1 + i % 9}-{10 + i // 9}" for i in range(40)], "date"),
        ("when", [f"{1 + i % 9}/{10 + i // 9}/98 12:30" for i in range(40)], "date"),
        ("when", [20240101 + i for i in range(28)], "id"),
        ("when", [20240101 + 100 * (i % 12) + i // 12 for i in range(40)], "date"),
        ("why", [f"because it was {i} times as good as before" for i in range(40)], "text"),
        ("answer", ["a good deal more than before", "the same as before"] * 20, None),
        ("size", ["small", "large"] * 20, None),
        ("Postcode", np.random.default_rng(0).integers(10000, 99999, 40), "code"),
        ("home_zip", np.random.default_rng(0).integers(10000, 99999, 40), "code"),
        ("postcode", [1, 2, 3, 4] * 10, None),
        ("few", ["a", "b", "c"], None),
    ],
)
def test_what_columns_are(name, values, kind):
    assert column_kind(name, pd.Series(list(values))) == kind


def test_weights_are_known_by_name_and_values():
    numbers = pd.Series(np.linspace(0.2, 3, 30))
    assert looks_like_weights("Gewicht", numbers) and looks_like_weights("post_weight", numbers)
    assert not looks_like_weights("weight", numbers.round()) and not looks_like_weights("weight", -numbers)
    assert not looks_like_weights("height", numbers)


@pytest.mark.parametrize(
    "values, codes",
    [
        ([1, 2, 3, 4, 5, -9], [-9]),
        ([1, 2, 3, 4, 5, -8, -9, 99], [-9, -8, 99]),
        ([*range(18, 90), 99, 98], [98, 99]),
        ([*range(18, 98), 99], []),  # the run goes on
        ([-20, -9, 0, 5, 17], []),  # temperatures
        ([0.5, 1.25, 2.75, 999], [999]),
        ([1, 2, 3, 97], [97]),
        (["yes", "no", "-9"], [-9]),
        (["1", "2", "x", "-9"], []),  # other numbers among the texts: who knows
        ([99, 1], []),
    ],
)
def test_codes_outside_the_run(values, codes):
    assert missing_codes(pd.Series(values)) == codes


@pytest.mark.usefixtures("no_pictures")
def test_codes_alone_are_pointed_out_and_taken_as_told(table, tmp_path, capsys):
    path = table({"a": [1, 2, 3, -9] * 10, "b": [10, 20, 99, 30] * 10, "c": ["x", "y"] * 20})
    words = ["structure", path, "--out", tmp_path / "out"]
    _, err = run(capsys, *words)
    assert "hold -9, far from the other values" in err and "10 cells of 'b' hold 99" in err
    assert "add --missing-codes=-9,99" in err
    out, err = run(capsys, *words, "--missing-codes=-9", "--missing-codes=b:99")
    assert "far from" not in err and "16.7 %" in out
    arguments = json.loads((tmp_path / "out" / "run.json").read_text(encoding="utf-8"))["arguments"]
    assert arguments["missing_codes"] == ["-9", "b:99"]


def test_a_code_that_is_a_value_elsewhere_is_named_with_its_column():
    frame = pd.DataFrame({"a": [1, 2, 3, 99], "percent": [98, 99, 100, 97]})
    lines, told, words = preparation.code_suspicions(frame, preparation.Roles())
    assert len(lines) == 1 and told == "--missing-codes=a:99" and words == [("--missing-codes", "a:99")]


@pytest.mark.usefixtures("no_pictures")
def test_what_the_user_says_of_columns(table, tmp_path, capsys):
    rng = np.random.default_rng(0)
    columns = {
        "zip": rng.integers(1000, 1060, 400),
        "age": [*rng.integers(20, 60, 399).astype(str), "unknown"],
        "band": rng.choice(["5-9", "10-14", "100+", "none"], 400),
        "y": rng.choice(["p", "q"], 400),
    }
    said = [
        "--categorical",
        "zip",
        "--numeric",
        "age",
        "--ordered",
        "band",
        "--discretize",
        "frequency",
        "--clusters",
        2,
    ]
    _, err = run(capsys, "cluster", table(columns), *said, "--set", "n_init=2", "--out", tmp_path / "out")
    assert "discretised (frequency): 'age'" in err and "1 cell without a number, such as 'unknown'" in err
    model = pgm_bma.read_bif(tmp_path / "out" / "model.bif")
    assert len(model.get_cpds("zip").state_names["zip"]) > 50 and len(model.get_cpds("age").state_names["age"]) == 3
    assert model.get_cpds("band").state_names["band"] == ["5-9", "10-14", "100+", "none"]


@pytest.mark.parametrize(
    "words, said",
    [
        (["--id", "nummer"], "--id names 'nummer'"),
        (["--weight", "b"], "4 rows without a weight of at least zero in 'b' (the first is row 1)"),
        (["--weight", "a", "--drop", "a"], None),
        (["--categorical", "a,q"], "--categorical names 'q'"),
        (["--categorical", "a", "--numeric", "a"], "both --categorical and --numeric"),
        (["--missing-codes=q:1"], "--missing-codes names 'q'"),
        (["--target", "b", "--id", "b"], "it cannot be --id or --weight too"),
    ],
)
def test_roles_that_do_not_fit(words, said, table, tmp_path, capsys, no_pictures):
    path = table({"a": [1, 2, 3, 4], "b": ["x", "y", "x", "z"], "c": ["x", "y", "x", "y"]})
    _, err = run(capsys, "cluster", path, "--clusters", 1, *words, "--out", tmp_path / "out", code=1 if said else 0)
    assert said is None or said in err


@pytest.mark.parametrize("text", ["-9,99", "age:-9,99", "a:b:0.5"])
def test_codes_survive_the_record(text):
    words = ["cluster", "f.csv", f"--missing-codes={text}", "--weight=w", "--id=n", "--ordered=a,b"]
    first = vars(build_parser().parse_args(words))
    again = vars(build_parser().parse_args(repeat.to_argv("cluster", first)))
    assert {k: v for k, v in first.items() if k != "run"} == {k: v for k, v in again.items() if k != "run"}


@pytest.mark.parametrize(
    "words", [["--k", "3"], ["--cluster", "3"], ["--keep", "--clusters", "2"], ["--missing-codes=x"]]
)
def test_no_option_is_abbreviated(words, capsys):
    _, err = run(capsys, "cluster", "zoo", *words, code=2)
    assert "unrecognized arguments" in err or "is neither -9,99 nor" in err


@pytest.mark.parametrize("text, numbers", [("2-6", range(2, 7)), ("2:6", range(2, 7)), ("2..6", range(2, 7)), ("4", 4)])
def test_ways_to_write_a_choice_of_clusters(text, numbers):
    assert build_parser().parse_args(["cluster", "zoo", "--clusters", text]).clusters == numbers


@pytest.mark.usefixtures("no_pictures")
def test_relevance_is_sorted_by_dependence_and_terms_are_explained(tmp_path, capsys):
    out, _ = run(capsys, "classify", "zoo", "--method", "averaged-nb", "--cv", 2, "--out", tmp_path)
    assert "Columns that say most about 'class'" in out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    table = page[page.index("<h2>Relevance of the columns") :]
    values = [
        float(v)
        for v in re.findall(r"<td class='number' data-value=\"([^\"]+)\">", table[: table.index("</table>")])[::2]
    ]
    assert values == sorted(values, reverse=True) and values[0] > 0.3
    assert "href='#glossary'" in page and "id='glossary'" in page and "<dt>nat, natural log</dt>" in page
    assert "Rand index" not in page  # only what occurs is explained


def test_dependence_is_the_information_less_what_chance_gives():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    frame = pd.DataFrame({"copy": y, "noise": rng.integers(0, 2, 300), "many": rng.integers(0, 60, 300)}).astype(
        "category"
    )
    frame["empty"] = pd.Categorical([None] * 300, categories=["a", "b"])
    found = column_dependence(frame, np.eye(2)[y])
    share = y.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert found["copy"] == pytest.approx(entropy - 1 / 600)
    # 60 states of noise would reach 0.1 nats
    assert found["many"] < 0.05 and found["noise"] < 0.02 and found["empty"] == 0


def test_numbers_tried_count_clusters_with_rows_and_explain_a_falling_likelihood():
    path = pd.DataFrame(
        {
            "n_clusters": [2, 3, 4],
            "score": [-20.0, -10.0, -12.0],
            "probability": [0.0, 0.88, 0.12],
            "log_likelihood": [-15.0, -8.0, -9.0],
            "n_effective": [2, 3, 4],
            "n_occupied": [2, 3, 3],
            "aic": [1.0, 2.0, 3.0],
            "g2_p": [np.nan] * 3,
        }
    )
    found = findings.numbers_tried(path)
    (_, table, caption), (_, more, _) = found.headline
    assert table.columns.tolist() == ["clusters", "score", "probability", "log likelihood", "clusters with rows"]
    assert table["clusters with rows"].tolist() == [2, 3, 3] and "can fall with more clusters" in caption
    assert more.columns.tolist() == ["clusters", "AIC"]  # what could not be computed is not shown
    tested = pd.DataFrame({"n_clusters": [2, 3, 4], "g2_p": [0.01, 0.4, 0.5], "x2_p": [0.01, 0.3, 0.6]})
    tested = tested.assign(pairs=1.0, pairs_p=0.5)
    more, caption = findings.numbers_tried(path, tested).headline[1][1:]
    assert more["p of G2"].tolist() == [0.01, 0.4, 0.5] and "bootstrap" in caption
    rising = findings.numbers_tried(path.assign(log_likelihood=[-15.0, -8.0, -7.0]))
    assert "can fall" not in rising.headline[0][2]


@pytest.mark.skipif("bivariate_residuals" not in pgm_bma.__all__, reason="not there yet")
@pytest.mark.usefixtures("no_pictures")
def test_pairs_that_stay_dependent_name_the_method_that_models_them(table, tmp_path, capsys):
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 600)
    columns = {name: np.where(rng.random(600) < 0.9, z, 1 - z) for name in "abcd"}
    columns["copy of a"] = np.where(rng.random(600) < 0.9, columns["a"], 1 - columns["a"])
    words = ["cluster", table(columns), "--clusters", 2, "--set", "n_init=3", "--out", tmp_path / "out"]
    out, _ = run(capsys, *words)
    said = " ".join(out.split())
    assert "a with copy of a" in said and "--method structural or forest" in said
    profiles = pd.read_csv(tmp_path / "out" / "profiles.csv")
    sizes = profiles[profiles["column"] == "(size of the cluster)"]
    assert sizes["probability"].sum() == pytest.approx(1, abs=1e-5) and (profiles["low"] <= profiles["high"]).all()


@pytest.mark.usefixtures("no_pictures")
def test_covariates_and_outcome_take_no_part_and_are_told_afterwards(table, tmp_path, capsys):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, 500)
    z = rng.random(500) < 1 / (1 + np.exp(-(age - 45) / 8))
    columns = {name: np.where((rng.random(500) < 0.85) == z, "yes", "no") for name in "abcde"}
    columns |= {"age": age, "sex": rng.choice(["f", "m"], 500), "income": np.round(rng.normal(2000 + 900 * z, 300), 2)}
    path, out = table(columns), tmp_path / "out"
    words = ["cluster", path, "--clusters", 2, "--set", "n_init=3", "--out", out]
    said, _ = run(capsys, *words, "--covariates", "age,sex", "--outcome", "income")
    said = " ".join(said.split())
    assert "500 rows, 5 columns" in said  # neither age nor income was clustered, nor do they need --discretize
    assert "Covariates that predict the cluster: age (Wald" in said and "Not clearly: sex." in said
    assert "income differs between the clusters (Wald" in said
    covariates, outcome = pd.read_csv(out / "covariates.csv"), pd.read_csv(out / "outcome.csv")
    assert covariates["term"].tolist() == ["(intercept)", "age", "sex=m"]
    assert abs(covariates["estimate"][1]) == pytest.approx(1 / 8, abs=0.04)
    assert np.ptp(outcome["estimate"]) == pytest.approx(900, abs=120)  # three standard errors
    page = (out / "report.html").read_text(encoding="utf-8")
    for title in ("What predicts the cluster", "income by cluster", "How sure the clusters are"):
        assert f"<h2>{title}</h2>" in page
    record = json.loads((out / "run.json").read_text())
    assert record["arguments"]["covariates"] == ["age,sex"] and record["result"]["outcome"]["income"] < 1e-6
    again, _ = run(capsys, "repeat", out)
    assert "came out the same" in again
    for wrong, message in (
        (["--covariates", "agee"], "--covariates names 'agee'"),
        (["--outcome", "sex", "--target", "sex"], "'sex' is a covariate or outcome"),
        (["--covariates", "age", "--drop", "age"], "'age' is a covariate or outcome"),
    ):
        _, err = run(capsys, *words, *wrong, code=1)
        assert message in err


def test_measurements_of_few_rows_are_no_states(tmp_path, capsys):
    rng = np.random.default_rng(0)
    pd.DataFrame({"height": rng.normal(size=30).round(3), "sex": rng.choice(["f", "m"], 30)}).to_csv(
        tmp_path / "few.csv", index=False
    )
    _, err = run(capsys, "structure", tmp_path / "few.csv", code=1)
    assert "'height' holds 30 different numbers" in err and err.rstrip().endswith("--discretize=frequency")


@pytest.mark.usefixtures("no_pictures")
def test_texts_that_hardly_repeat_have_a_note(tmp_path, capsys):
    rng = np.random.default_rng(0)
    codes = np.array([f"{i:04x}" for i in range(150)])
    frame = pd.DataFrame({"session": codes[np.arange(900) % 150], "answer": rng.choice(["no", "yes"], 900)})
    frame.to_csv(tmp_path / "log.csv", index=False)
    words = ("cluster", tmp_path / "log.csv", "--clusters", "1", "--set", "n_init=1", "--out", tmp_path / "out")
    assert "'session' has 150 different texts, 6.0 rows each" in run(capsys, *words)[1]
    assert "different texts" not in run(capsys, *words, "--categorical", "session")[1]
