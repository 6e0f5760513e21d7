"""The site: every public name and every page is in it, and it builds without a warning where Sphinx is installed."""

import re
import runpy
import sys
from pathlib import Path

import pytest

import pgm_bma
from pgm_bma import catalogue

DOCS = Path(__file__).parent.parent / "docs"


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
    index = (DOCS / "index.md").read_text()
    pages = {page.stem for page in DOCS.glob("*.md")} - {"README", "index"}
    listed = set(re.findall(r"^(\w+)$", index, re.MULTILINE))
    assert pages - listed == set(), "add the page to docs/index.md"


def test_names_of_ours_on_the_two_word_pages_exist():
    """Estimators and functions in the right columns of the tables."""
    for page in ("which_method.md", "coming_from.md"):
        for line in (DOCS / page).read_text().splitlines():
            ours = line.split("|")[2] if page == "coming_from.md" and line.count("|") == 3 else line
            for name in re.findall(r"`(\w*(?:Classifier|Clusterer|Posterior|Estimator|Discretizer))\b", ours):
                if page == "coming_from.md" and "|" not in line:
                    continue
                assert hasattr(pgm_bma, name), (page, name)
