"""Every page is in the contents, its links lead somewhere, its code runs, and it prints what the page shows."""

import re
import runpy
import sys
from pathlib import Path

import pytest

import pgm_bma
from pgm_bma import catalogue

DOCS = Path(__file__).parent.parent / "docs"
BLOCKS = runpy.run_path(str(DOCS / "blocks.py"))
by_page = pytest.mark.parametrize("page", BLOCKS["pages"](), ids=lambda page: f"{page.parent.name}/{page.stem}")


@pytest.fixture(scope="module")
def conf():
    before = list(sys.path)
    yield runpy.run_path(str(DOCS / "conf.py"))
    sys.path[:] = before


def test_every_public_name_is_in_the_reference(conf, tmp_path):
    conf["reference"](tmp_path)
    text = "".join(page.read_text() for page in tmp_path.glob("*.rst"))
    listed = re.findall(r"auto(?:class|function):: pgm_bma\.(\S+)", text)
    assert set(pgm_bma.__all__) - set(catalogue.MODULES) <= set(listed) and len(listed) == len(set(listed))
    assert "plotting.plot_network" in listed


def test_every_page_is_in_the_contents():
    listed = set(re.findall(r"^([\w/]+)$", (DOCS / "index.md").read_text(), re.MULTILINE))
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in BLOCKS["pages"]() if DOCS in page.parents}
    assert pages - listed == {"index"}, "add the page to docs/index.md"


@by_page
def test_the_code_of_a_page_runs_and_prints_what_the_page_shows(page):
    for printed, shown, _ in BLOCKS["run"](page):
        assert BLOCKS["same"](printed, shown), f"python docs/blocks.py {page.name} writes it anew:\n{printed}"


def test_outputs_are_compared_number_by_number():
    same = BLOCKS["same"]
    assert same("a 0.12\nb 3\n", "a 0.13\nb 3\n") and same("a\nb\nc\nd", "a\n...\nd")
    assert (
        not same("a 0.12", "a 0.14")
        and not same("a 0.12", "b 0.12")
        and not same("a\nb", "a")
        and not same("a", "a\nb")
    )


@by_page
def test_links_of_a_page_lead_to_files(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)]+)\)", text):
        if not re.match(r"https?:", link):
            inside = re.sub(r"^((?:\.\./)*)tutorials/", r"\1../tutorials/", link) if DOCS in page.parents else link
            assert (page.parent / inside.partition("#")[0]).exists(), f"{page.name}: {link}"


@by_page
def test_pages_for_users_are_short_and_speak_of_public_names(page):
    """The evidence, and the details next to the benchmarks, are tables to look things up in."""
    text = page.read_text(encoding="utf-8")
    if page.name != "evidence.md" and page.parent.name != "benchmarks":
        assert len(text.split()) <= 1500
    assert not re.search(
        r"pgm_bma\.(?:foundation|orders|latent_class|augmented|kikuchi|additive|forests|networks)\b", text
    )


@by_page
def test_names_of_ours_exist(page):
    """Estimators in code, except in the left column of a table about another program."""
    foreign = {"pgmpy.md", "coming_from.md"}
    for line in page.read_text(encoding="utf-8").splitlines():
        ours = line.split("|", 2)[-1] if page.name in foreign and line.startswith("|") else line
        for name in re.findall(r"`(\w*(?:Classifier|Clusterer|Posterior|Estimator|Discretizer))\b", ours):
            assert hasattr(pgm_bma, name), name


def test_the_first_page_of_the_site_is_the_readme(conf):
    text = conf["first_page"]()
    assert "pgm-bma demo" in text and "pytest" not in text
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert link.startswith(("http", "tutorials/")) or (DOCS / link).exists(), link
