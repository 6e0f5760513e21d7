"""The number of clusters in words: by which criterion, who disagrees, dependent columns, and whether the model fits."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.commands.findings import fit_words
from tests.commands.command_line import run


def three_classes(n_rows, seed, is_dependent):
    """Three classes of five binary columns and two of three states; if dependent, q2 copies q0 in eight of ten rows."""
    rng = np.random.default_rng(seed)
    z = rng.choice(3, n_rows, p=[0.45, 0.33, 0.22])
    probabilities = [
        (0.9, 0.2, 0.5),
        (0.1, 0.85, 0.6),
        (0.3, 0.6, 0.9),
        (0.9, 0.1, 0.2),
        (0.15, 0.2, 0.9),
        (0.8, 0.2, 0.7),
    ]
    X = pd.DataFrame({f"q{i}": (rng.random(n_rows) < np.array(p)[z]).astype(int) for i, p in enumerate(probabilities)})
    X["q6"] = (z + rng.choice(3, n_rows, p=[0.7, 0.2, 0.1])) % 3
    if is_dependent:
        X["q2"] = np.where(rng.random(n_rows) < 0.8, X["q0"], X["q2"])
    return X


@pytest.fixture(scope="module")
def dependent(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / "dependent.csv"
    three_classes(1200, 3, True).to_csv(path, index=False)
    return path


@pytest.mark.usefixtures("no_pictures")
def test_dependent_columns_are_named_as_the_reason_of_too_many_clusters(dependent, tmp_path, capsys):
    words = ["cluster", dependent, "--clusters", "2:5", "--set", "n_init=6", "--out", tmp_path / "out"]
    out, err = run(capsys, *words)
    said = " ".join(out.split())
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["result"]["n_clusters"] > 3 and record["result"]["n_clusters_with_arcs"] == 3
    assert "This number is probably too large" in said and "q0 with q2" in said
    assert f"pgm-bma cluster {dependent} --clusters 2:5 --method forest (or structural)" in said
    assert "probability if independent" in out and " probability  " not in out
    assert "warning: the number of clusters rests on independence inside clusters" in err
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    heads = re.findall("<h2>(.*?)</h2>", page)
    wanted = ["Result", "Warnings", "Explore the clusters", "Numbers of clusters tried", "Profiles of the clusters", "Data",
              "What was asked", "Repeat this run"]  # fmt: skip
    assert [head for head in heads if head in wanted] == wanted and heads[0] == "Result"
    assert page.index("SHA-256") > page.index("What was asked")


@pytest.mark.usefixtures("no_pictures")
def test_independent_columns_give_no_such_warning(tmp_path, capsys):
    three_classes(1200, 4, False).to_csv(tmp_path / "table.csv", index=False)
    words = ["cluster", tmp_path / "table.csv", "--clusters", "2:4", "--set", "n_init=6", "--out", tmp_path / "out"]
    out, err = run(capsys, *words)
    said = " ".join(out.split())
    assert "The rows fall into 3 clusters by the evidence" in said and "BIC and ICL choose the same number." in said
    assert "too large" not in said and "rests on independence" not in err and " probability  " in out


@pytest.mark.usefixtures("no_pictures")
def test_criterion_chooses_the_number(dependent, tmp_path, capsys):
    words = ["cluster", dependent, "--clusters", "2:5", "--set", "n_init=6", "--criterion", "icl"]
    out, _ = run(capsys, *words, "--out", tmp_path / "out")
    record = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
    assert record["n_clusters"] == record["n_clusters_by"]["icl"] < record["n_clusters_by"]["evidence"]
    assert f"The rows fall into {record['n_clusters']} clusters by ICL" in out
    wanted = f"the evidence(?: and bic)? would take {record['n_clusters_by']['evidence']}"
    assert re.search(wanted, " ".join(out.split()).lower())
    assert pd.read_csv(tmp_path / "out" / "labels.csv")["cluster"].nunique() == record["n_clusters"]


@pytest.mark.parametrize("more, saying", [
    (["--clusters", "3"], "--criterion bic chooses among several numbers"),
    (["--method", "forest"], "--criterion bic is for --method em and ema"),
])  # fmt: skip
def test_criterion_that_has_no_choice(dependent, tmp_path, capsys, more, saying):
    _, err = run(capsys, "cluster", dependent, "--criterion", "bic", *more, "--out", tmp_path / "out", code=2)
    assert saying in err


def test_chosen_by_is_the_fit_of_that_number():
    X = three_classes(400, 0, True)
    clusterer = pgm_bma.LatentClassClusterer(range(1, 5), n_init=4, random_state=0).fit(X)
    path = clusterer.n_clusters_path_
    for criterion in ("evidence", "bic", "icl", "caic"):
        other = clusterer.chosen_by(criterion, X)
        line = path.loc[path["score"].idxmax() if criterion == "evidence" else path[criterion].idxmin()]
        assert other.n_clusters_ == line["n_clusters"] == other.predict_proba(X).shape[1]
        assert other.bic(X) == pytest.approx(line["bic"]) and other.fit_statistics_["icl"] == line["icl"]
        assert (other.labels_ == other.predict(X)).all() and len(other.model_.get_cpds()) == 8
        assert other.profiles_["cluster"].nunique() == other.n_clusters_
    assert {str(state) for state in clusterer.profiles_["state"]} == {"None", "0", "1", "2"}  # not 1.0
    with pytest.raises(ValueError, match="chosen_by needs a fit of several numbers"):
        pgm_bma.LatentClassClusterer(2, n_init=2, random_state=0).fit(X).chosen_by("bic")
    with pytest.raises(ValueError, match="criterion='aicc'"):
        clusterer.chosen_by("aicc")


def test_pairs_reject_one_cluster_where_g2_cannot():
    """Many columns, few rows: nearly every pattern occurs once, whatever made it."""
    rng = np.random.default_rng(1)
    z = rng.integers(0, 2, 150)
    X = pd.DataFrame({f"q{i}": np.where(rng.random(150) < 0.68, z, 1 - z) for i in range(12)})
    one = pgm_bma.LatentClassClusterer(1, random_state=0).fit(X)
    found = pgm_bma.goodness_of_fit(one, X, n_bootstrap=49, random_state=0).iloc[0]
    assert found["pairs_p"] <= 0.02 < found["g2_p"]
    residuals = pgm_bma.bivariate_residuals(one, X)
    assert found["pairs"] == pytest.approx(residuals["x2"].sum())


def goodness(**p_values):
    line = {"g2": 50.0, "x2": 8980165.6, "pairs": 20.0, "g2_p": 0.4, "x2_p": 0.3, "pairs_p": 0.5}
    before = {**line, "n_clusters": 1, "pairs_p": 0.01}
    return pd.DataFrame([before, {**line, **p_values, "n_clusters": 2}])


def test_words_of_the_fit_have_their_power():
    (sparse,) = fit_words(goodness(), 2, 100, 4096.0, 99).words
    assert (
        "100 complete rows are too few to test whether all 4096 possible patterns" in sparse
        and "it does find one with 1 cluster" in sparse
    )
    (dense,) = fit_words(goodness(), 2, 100, 16.0, 99).words
    assert dense.startswith("No test finds a misfit") and "X2 9.0e6, p = 0.30" in dense
    (bad,) = fit_words(goodness(pairs_p=0.01), 2, 100, 4096.0, 99).words
    assert bad.startswith("The model does not fit everywhere") and "p ≤ 0.01" in bad
    weak = goodness()
    weak["pairs_p"] = 0.5
    assert "so it cannot tell the two apart" in fit_words(weak, 2, 100, 4096.0, 99).words[0]


@pytest.mark.usefixtures("no_pictures")
def test_the_bootstrapped_test_is_a_criterion_and_an_option(tmp_path, capsys):
    path = tmp_path / "rows.csv"
    three_classes(400, 1, False).to_csv(path, index=False)
    words = ["cluster", path, "--set", "n_init=4", "--out", tmp_path / "out"]
    out, err = run(capsys, *words, "--clusters", "2:4", "--criterion", "blrt")
    assert "3 clusters by the bootstrapped likelihood-ratio test" in " ".join(out.split())
    assert "p of one more" in out and "testing whether one more cluster fits better" in err
    record = json.loads((tmp_path / "out" / "run.json").read_text())["result"]
    assert record["n_clusters"] == record["n_clusters_by"]["blrt"] == 3
    out, _ = run(capsys, *words, "--clusters", "2", "--blrt")
    assert "One more cluster would fit better than chance allows" in " ".join(out.split())
    _, err = run(capsys, *words, "--method", "forest", "--blrt", code=2)
    assert "--blrt is for --method em and ema" in err
