"""The tutorials run, their conclusions hold, and the notebooks in the repository are their scripts, executed."""

import base64
import importlib.util
import runpy
import warnings
from pathlib import Path

import numpy as np
import pytest

TUTORIALS = Path(__file__).resolve().parents[1] / "tutorials"


def number(path):
    """The number before the underscore."""
    return int(path.name.split("_")[0])


SCRIPTS = sorted(TUTORIALS.glob("[0-9]*.py"), key=number)

pytestmark = pytest.mark.skipif(not SCRIPTS, reason="the tutorials are part of a checkout, not of the package")
by_name = pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)


def test_they_are_numbered_from_one_each_with_its_conclusions():
    assert [number(path) for path in SCRIPTS] == list(range(1, 14)) == list(CONCLUSIONS)
    assert _build().scripts() == SCRIPTS


@by_name
def test_script_runs_and_its_conclusions_hold(path, tmp_path, monkeypatch):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)  # files that a tutorial writes
    with warnings.catch_warnings(), matplotlib.rc_context():
        names = runpy.run_path(str(path))
        assert plt.get_fignums(), "a tutorial without a picture"
        plt.close("all")
    CONCLUSIONS[number(path)](names)


@by_name
def test_notebook_is_the_script_executed(path):
    nbformat, build = pytest.importorskip("nbformat"), _build()
    pytest.importorskip("jupytext")
    notebook = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    script = build.read_script(path)
    assert [(c.cell_type, c.source) for c in notebook.cells] == [(c.cell_type, c.source) for c in script.cells], (
        f"{path.name} was edited after its notebook was made: run python tutorials/build.py {path.name}"
    )
    assert [c.execution_count for c in notebook.cells if c.cell_type == "code"] == list(
        range(1, 1 + sum(c.cell_type == "code" for c in notebook.cells))
    )


@by_name
def test_notebook_has_pictures_and_no_complaints(path):
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(path.with_suffix(".ipynb"), as_version=4)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [o for o in outputs if o.output_type == "error"]
    assert not [o.text for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    pictures = [o.data["image/png"] for o in outputs if "data" in o and "image/png" in o.data]
    assert pictures and all(base64.b64decode(p)[:8] == b"\x89PNG\r\n\x1a\n" for p in pictures)
    assert path.with_suffix(".ipynb").stat().st_size < 700_000


def test_readme_links_every_notebook():
    text = (TUTORIALS / "README.md").read_text()
    assert all(f"]({path.stem}.ipynb)" in text for path in SCRIPTS)


def _build():
    spec = importlib.util.spec_from_file_location("tutorials_build", TUTORIALS / "build.py")
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    return build


# what the text of each tutorial says about its numbers


def first_steps(names):
    arcs = names["clusterer"].arc_posterior_
    assert arcs["immigration"] < 0.5 and arcs.idxmin() == "immigration"
    assert 0.4 < arcs["water-project-cost-sharing"] < 0.7  # "the data do not decide"
    assert set(names["both"].nsmallest(2, "dependence").index) == {"immigration", "water-project-cost-sharing"}
    others = arcs.drop(["immigration", "water-project-cost-sharing"])
    assert others.min() > 0.95
    np.testing.assert_allclose(sum(p for _, p in names["structures"].values()), 1)
    mixed = names["table"]
    # by hand from the shares of the fitted model; the fit itself stops at changes of 1e-6 in its own shares
    np.testing.assert_allclose(mixed["mixed by hand"], mixed["fitted"], atol=5e-4)
    assert names["best"] - names["worst"] < 0.01 and not names["clusterer"].starts_["collapsed"].any()
    groups = names["groups"]
    assert names["several"].n_clusters_ == 5 and len(groups) == 5
    assert f"{names['agreement']:.1%}" == "86.9%" and round(groups.max(axis=1).sum() / 435, 3) == 0.954
    assert list(groups["republican"] > groups["democrat"]) == [True, False, False, False, True]
    aid = {
        row.cluster: row.state for row in names["several"].describe(3).itertuples() if row.column == "el-salvador-aid"
    }
    assert (aid[1], aid[2], aid[3]) == ("n", "n", "y")


def structural_em(names):
    index = {name: adjusted for name, (adjusted, _) in names["result"].items()}
    assert index["no arcs (EM)"] + 0.1 < min(index["structural EM"], index["averaged over forests"])
    way = index["the true network"] - index["no arcs (EM)"]
    for name in ("structural EM", "averaged over forests"):
        assert (index[name] - index["no arcs (EM)"]) / way > 0.9  # "close to what is possible"
    assert index["the true network"] == max(index.values())
    sure = names["sure"]
    assert len(sure) / 2 < sure["true"].sum() < len(sure)  # "most of the arcs it is sure of are true, but not all"
    table = names["table"]
    with_arcs = table[["structural EM", "structural BC+EM", "averaged over forests"]]
    ratio = with_arcs.div(table["no arcs (EM)"], axis=0)
    assert ratio.loc["mean"].between(1.7, 2.4).all() and (ratio.to_numpy() > 1.2).all()
    assert with_arcs.drop("mean").idxmax(axis=1).nunique() > 1  # "which is best changes"
    assert names["simple"].n_clusters_ == 3 and names["with_arcs"].n_clusters_ == 1
    assert names["evidence"].loc[1, "with arcs"] > names["evidence"]["without arcs"].max() + 50
    votes = names["evidence_votes"]
    assert votes["with arcs"].idxmax() == 3 and votes["without arcs"].idxmax() == 5
    assert votes.loc[3, "with arcs"] > votes["without arcs"].max()
    starts = names["groups"].starts_["score"]
    assert starts.max() - starts.min() > 10


def averaging_over_orders(names):
    pairs = names["pairs"]
    assert pairs["true"].head(6).all() and pairs["posterior"].iloc[5] > 0.8
    assert {("lung", "dysp"), ("either", "dysp")} == set(pairs.index[6:8])
    assert pairs.loc[("asia", "tub"), "posterior"] < 0.3
    assert names["both_ways"]["difference"].abs().max() > 0.1
    level = names["scores"][:, 40:]
    assert abs(level.mean(1)[0] - level.mean(1)[1]) < 10 and (names["scores"][:, 0] < level.min() - 100).all()
    arcs = names["arcs"]
    sure = arcs[arcs["posterior"] > 0.9]
    assert sure["true"].sum() == 43 and sure["true"].all() and arcs["true"].sum() == 46
    accuracy = names["accuracy"]
    gain = accuracy.loc["orders, summed out"] - accuracy.loc["orders, filled in"]
    assert gain.iloc[0] == 0 and gain.is_monotonic_increasing and (gain.iloc[1:] > 0).all()
    for share in ("30% missing", "50% missing"):
        assert accuracy.at["orders, filled in", share] < accuracy.at["naive Bayes", share]


def kikuchi_bayes(names):
    regions = names["regions"]
    assert sorted(regions(names["monk"])) == ["a b", "e"]
    monks = names["monks"]
    assert monks.at["Kikuchi, pairs", "monk1"] == 1
    assert monks.drop("most frequent class")["monk2"].max() < monks.at["most frequent class", "monk2"]
    assert monks.at["naive Bayes", "monk3"] > 0.95
    strength = names["pairs"].interaction_strength_
    assert np.diag(strength).argmax() == list(strength).index("mm")
    upper = strength.where(np.triu(np.ones(strength.shape, bool), 1)).stack().sort_values(ascending=False)
    assert {frozenset(pair) for pair in upper.index[:2]} == {frozenset(["tm", "bm"]), frozenset(["ml", "mr"])}
    assert all("mm" in pair for pair in upper.index[2:6])
    tests = names["tests"].sort_values("loss", ascending=False)
    assert len(tests) == 84 and tests["is a line"].head(8).all() and tests["is a line"].sum() == 8
    assert "buying maint" in regions(names["car"])
    assert 0.25 < 1 - names["scores"]["tic-tac-toe"]["naive Bayes"] < 0.35
    assert names["scores"]["tic-tac-toe"]["Kikuchi, triples"] == 1
    assert round(names["scores"]["tic-tac-toe"]["logistic regression"], 2) == 0.98
    voting = names["scores"]["voting"]
    assert voting["counting numbers (K2)"] < 0.5 < voting["naive Bayes"] < voting["tree weights"]
    assert max(voting, key=voting.get) == "learned weights"


def working_with_pgmpy(names):
    model, truth = names["model"], names["truth"]
    for node in truth.nodes():  # errors() compares tables position by position
        assert model.get_cpds(node).variables == truth.get_cpds(node).variables
    mean = names["comparison"].loc["mean"]
    assert 1.5 < mean["complete files only"] / mean["all files"] < 3
    gain = names["right"]["right: impute"] - names["right"]["right: most frequent"]
    assert gain.between(0.005, 0.055).all()
    changed = abs(names["errors"](names["with_known"]).drop("xray") - names["errors"](model).drop("xray"))
    assert changed.mean() < 0.01
    assert names["same"] and set(names["back"].latents) == {"illness"}
    if "other" in names:  # pyAgrum
        posterior = names["engine"].posterior("illness").tolist()
        np.testing.assert_allclose(posterior, names["asked"].to_numpy()[0], atol=1e-6)  # it reads float32


def which_method_when(names):
    log_loss, error, small = names["log_loss"], names["error"], names["small"]
    ours = [m for m in log_loss if m != "logistic regression"]
    assert names["summary"]["rank, log loss"].idxmin() == "additive terms"
    assert names["verdicts"]["additive terms"]["better"] > names["verdicts"]["additive terms"]["worse"]
    assert (log_loss["forest average"] < log_loss["TAN (best tree)"]).sum() == 6
    assert (small.loc["forest average"] < small.loc["TAN (best tree)"]).all()
    assert list(small[25].sort_values().index[:2]) == ["logistic regression", "selective forest average"]
    assert small[200].idxmin() == "additive terms"
    assert (small.loc["averaged naive Bayes", [25, 50]] < small.loc["naive Bayes", [25, 50]]).all()
    assert (log_loss["averaged naive Bayes"] < log_loss["naive Bayes"]).sum() < 5  # "on most ... it gained nothing"
    assert (
        max(names["seconds"].values()) < 60
    )  # "seconds, not minutes"; process time, so a busy machine does not matter
    by_error, by_loss = error.rank(axis=1).mean(), log_loss.rank(axis=1).mean()
    for ranks in (by_error, by_loss):
        assert list(ranks.sort_values().index[:2]) == ["additive terms", "logistic regression"]
    assert by_error[ours].sort_values().index[1] == "order average"
    assert by_loss[ours].min() < by_loss["order average"] < by_loss[ours].max()


def larger_than_memory(names):
    arcs = names["clusterer"].arc_posterior_.to_numpy()
    assert (arcs[:8] > 0.95).all() and (arcs[8:] < 0.05).all()  # "the four questions come out as what they are"
    assert names["same_bits"] and names["raw"].log_likelihood_ == names["clusterer"].log_likelihood_
    assert len(names["folded"].frame) < names["n_rows"] / 3
    assert names["accuracy"] > 0.75 and len(names["labels"]) == names["n_rows"]
    assert set(names["in_passes"].starts_["stage"]) == {1, 2}
    assert names["difference"] < 1e-9


def latent_class_analysis(names):
    every, path = names["every"].n_clusters_path_, names["table_1"]
    for name in ("aic", "bic"):
        assert (
            every[name].idxmin() == 4 and path[name].idxmin() == 3
        )  # five classes with the dependent pair, three without
    assert every["probability"].idxmax() == 4 and path["probability"].idxmax() == 3
    assert set(names["residuals"].loc[0, ["first", "second"]]) == {"owns a bicycle", "has a helmet"}
    assert names["structural"].n_clusters_ == 3 and names["left"]["residual"].max() < 4  # "nothing much is left"
    goodness = names["goodness"]
    assert (goodness.loc[[1, 2], "g2_p"] < 0.05).all() and goodness.loc[3, "g2_p"] > 0.1
    assert names["ratio"]["2 against 3"].p_value <= 0.05 and names["ratio"]["3 against 4"].p_value > 0.1
    assert (names["membership"].tests["p_value"] < 0.001).all()
    both, truth = names["both"], np.array([55, 50, 75])
    assert np.ptp(both["estimate"]) > np.ptp(both["uncorrected"])
    assert (np.abs(both["estimate"] - truth) < 2 * both["standard_error"]).all()
    assert names["table_2"].index[0] == "(size)" and names["table_2"].shape == (8, 3)


def tables_with_gaps(names):
    table, pairs = names["table"], names["pairs"]
    assert 0.4 < 1 - names["n_complete"] / len(table) < 0.45  # "two out of five rows are lost"
    assert table.isna().sum().sum() == 280 and table.size == 3915
    assert pairs["difference"].abs().max() > 0.5  # "by more than a half"
    assert names["posterior"].converged_
    assert not any(copy.isna().any(axis=None) for copy in names["copies"])
    assert names["shares"].min() < names["shares"].max()


def numeric_columns(names):
    likely, table, grower = names["likely"], names["table"], names["grower"]
    assert set(names["model"].numeric_columns_) == set(table)
    flavanoids = likely.loc["flavanoids"]
    assert flavanoids["its probability"] > 0.99 and round(flavanoids["most likely cut"], 1) == 2.3
    own = table.loc[grower == "A", "flavanoids"]
    assert (own >= flavanoids["most likely cut"]).mean() > 0.95  # "where the wines of grower A begin"
    unsure = likely.loc["od280_od315"]
    assert unsure["its probability"] < 0.6 and 3 < unsure["expected number of cuts"] < 4
    assert names["strongest"].idxmax() == "flavanoids"
    others = names["comparison"].drop("additive, averaged cuts")
    ratio = others["more than averaged cuts"] / others["standard error"]
    assert names["comparison"]["log loss"].idxmin() == "additive, averaged cuts"
    assert ratio["logistic regression"] > 4
    assert (ratio.drop("logistic regression") < 2).all() and (ratio > 0).all()
    worst = names["losses"][["Kikuchi, one MDL cut", "histogram boosting"]].apply(lambda loss: loss.nlargest(5).sum())
    assert (worst / names["losses"].sum()[worst.index] > 0.5).all()  # "it comes from a few wines"


def build_your_own(names):
    arcs = names["arcs"]
    gain = arcs["time prior"] - arcs["no opinion"]
    assert gain.min() > -0.02 and (gain > 0.3).sum() >= 3  # "there the prior speaks"
    assert {"missing_values", "weights_are_repetitions", "seeds"} <= set(names["passed"])
    losses = names["losses"]
    assert max(losses["two latent classes each"], losses["three latent classes each"]) < losses["naive Bayes"] / 3


def mixed_tables(names):
    rand = names["adjusted_rand_score"]
    assert len(names["first"].hints_) == 1 and "wind" in names["first"].hints_[0]
    assert names["model"].n_clusters_ == 3 and not names["model"].hints_
    assert rand(names["kind"], names["model"].labels_) > 0.85
    assert rand(names["kind"], names["found"].labels_) > rand(names["kind"], names["mixture"]) + 0.1


def effects_from_experiments(names):
    arcs, two, single = names["comparison"], names["two"], names["single"]
    few, many, ignored, used = (arcs.loc[name] for name in names["fits"])
    assert 0.3 < few["turned round"] / few[["true arcs", "turned round"]].sum() < 0.37  # "one out of three"
    assert round(many[["true arcs", "turned round"]].sum(), 1) == 17 and 4 < many["turned round"] < 5
    assert 4 < ignored["turned round"] < 5 and used["turned round"] < 1 and used["average precision"] > 0.99
    unsure = {(a, b) for a, b in names["network"].edges if names["used"].edge_posterior_.loc[a, b] < 0.9}
    assert unsure == {("Plcg", "PIP3")}
    free = names["fits"]["1080 rows, no experiments"].edge_posterior_
    back = [free.loc[b, a] for a, b in names["network"].edges]
    assert sum(p > 0.505 for p in back) == 3 and max(back) < 0.8  # "none of them surely"
    other = names["directions"].xs("consistent", axis=1, level=1)
    assert (
        other["1080 rows, no experiments"].round(2).tolist() == [0, 0, 1]
        and other.at["PIP3 to PIP2", "experiments used"] < 0.5
    )
    directions = names["directions"].xs("default", axis=1, level=1)
    assert directions["1080 rows, no experiments"].between(0.2, 0.8).all()  # "leave all three arcs open"
    assert (directions["experiments used"].drop("Plcg to PIP3") > 0.99).all()
    assert round(directions.at["Plcg to PIP3", "experiments used"], 2) == 0.5
    there = two[two["truth"] > 1e-9]
    missed = there[~there["truth"].between(there["low"], there["high"])]
    assert len(there) == 13 and len(missed) == 3 and (missed["of"] == "PKA").all()
    assert there["size"].corr(there["truth"], method="spearman") > 0.85  # "close to the true one"
    assert (two.drop(there.index)["zero"] > 0.99).all() and len(two) == 20
    assert (single["mean"] - single["truth"]).abs().max() < 0.05 and single["low"].min() > 0
    outside = single[~single["truth"].between(single["low"], single["high"])]
    assert len(outside) == 3 and (outside["truth"] < 0.01).sum() == 1


CONCLUSIONS = {
    1: first_steps,
    2: structural_em,
    3: averaging_over_orders,
    4: kikuchi_bayes,
    5: working_with_pgmpy,
    6: which_method_when,
    7: larger_than_memory,
    8: latent_class_analysis,
    9: tables_with_gaps,
    10: numeric_columns,
    11: build_your_own,
    12: mixed_tables,
    13: effects_from_experiments,
}
