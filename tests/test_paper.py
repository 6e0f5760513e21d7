"""Figures of the software paper equal the kept results, and its references and pictures exist."""

import re
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parent.parent
PAPER = ROOT / "paper" / "paper.md"

pytestmark = pytest.mark.skipif(not PAPER.exists(), reason="the paper is part of a checkout, not of the package")


def kept(name):
    return pd.read_csv(ROOT / "benchmarks" / "results" / f"{name}.csv")


def share(value):
    return f"{value:.3f}".removeprefix("0")


def clusters():
    means = kept("ema_table1_means")[["EM", "EMA", "twin from EM"]].mean()
    em, published, variational = map(share, means)
    yield f"is {em} for EM, {published} for the published algorithm and {variational} for the variational form"


def calibration():
    rows = kept("orders_calibration").set_index("posterior")
    z = rows["z overall"].abs()
    assert rows.loc[["order, exact", "dag, exact"], "data sets"].tolist() == [300, 300]
    yield f"by {z['order, exact']:.1f} standard errors under orders and by {z['dag, exact']:.1f} under directed acyclic graphs"


def classifiers():
    from benchmarks import classifiers as judges

    said = judges.sentences(kept("classifiers"))
    yield from (said["rank"], said["rank without EBM"])


def families():
    line = kept("speed_orders").set_index("what")["ratio"].filter(regex="sumu's scorer")
    n = int(re.search(r"score (\d+) families", line.index[0]).group(1))
    yield f"all {n:,} families of the alarm network {line.iloc[0]:.0f} times as fast as sumu's scorer"


@pytest.mark.parametrize("claims", [clusters, calibration, classifiers, families], ids=lambda claims: claims.__name__)
def test_figures_are_those_of_the_kept_results(claims):
    text = " ".join(PAPER.read_text(encoding="utf-8").split())
    for claim in claims():
        assert claim in text


def test_references_and_pictures_exist():
    text = PAPER.read_text(encoding="utf-8")
    cited = set(re.findall(r"@(\w+)", text.partition("# Summary")[2]))
    known = set(re.findall(r"^@\w+\{(\w+),", (PAPER.parent / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE))
    assert cited == known
    pictures = re.findall(r"\]\((\S+\.png)\)", text)
    assert pictures and all((PAPER.parent / picture).exists() for picture in pictures)


def test_every_command_names_a_benchmark():
    for name in re.findall(r"python -m benchmarks (\w+)", PAPER.read_text(encoding="utf-8")):
        assert (ROOT / "benchmarks" / f"{name}.py").exists()
