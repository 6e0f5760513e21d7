"""Reports: what they say, that they need nothing from outside, and that they work in a browser."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from pgm_bma.commands.main import main
from pgm_bma.report.page import MAX_ROWS, Report, picture

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr --virtual-time-budget=5000 --dump-dom"
).split()
# clicks a heading once, then again, and writes what the page then shows into its own title
PROBE = """
<script>
window.addEventListener("load", () => {
  const said = [];
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      const cells = () => Array.from(table.tBodies[0].rows).map(row => row.cells[column].textContent);
      head.querySelector("button").click();
      const rising = cells(), first = head.getAttribute("aria-sort");
      head.querySelector("button").click();
      said.push({ head: head.textContent, first, second: head.getAttribute("aria-sort"), rising, falling: cells(),
        number: head.classList.contains("number") });
    });
  }
  const images = Array.from(document.images).map(image => [image.alt, image.naturalWidth]);
  document.title = "PROBE" + JSON.stringify({ said, images, wide: document.documentElement.scrollWidth - innerWidth });
});
</script>
"""


class Links(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.found, self.tags = [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.found += [value for name, value in attributes if name in ("src", "href", "action", "data")]


@pytest.fixture(scope="module")
def cluster_report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    assert main(["cluster", "zoo", "--clusters", "2:3", "--set", "n_init=5", "--out", str(folder)]) == 0
    return folder / "report.html"


@pytest.fixture
def tables():
    report = Report("Tables & <things>")
    frame = pd.DataFrame(
        {
            "name": ["b10", "b9", "A", "é"],
            "size": [10, 9, 100, -1],
            "share": [0.5, np.nan, 1e-3, 0.25],
            "<b>mixed</b>": [1, "x", None, 2.5],
        }
    )
    report.table("Some <table>", frame, 'Caption with "quotes" & <tags>.')
    return report


def test_texts_are_escaped(tables):
    tables.words("Result", ["a < b & c"])
    tables.warnings(["<script>alert(1)</script>"])
    tables.facts("Facts", [("<i>", "x'y")])
    tables.code("Use", [("Say:", 'print("<&>")')])
    page = tables.html()
    assert page.count("<script>") == 1 and "a &lt; b &amp; c" in page and "&lt;script&gt;" in page
    assert "<i>" not in page and "<b>mixed" not in page and "print(&quot;&lt;&amp;&gt;&quot;)" in page


def test_cells_carry_numbers_for_sorting(tables):
    page = tables.html()
    assert "<td class='number' data-value=\"0.001\">0.001</td>" in page and "<td class='number'></td>" in page
    assert "<td class='number' data-value=\"-1.0\">-1</td>" in page  # whole numbers without decimals


def test_no_warnings_no_box():
    report = Report("Calm")
    report.warnings([])
    assert "Warnings" not in report.html()


def test_long_tables_are_cut_and_say_so():
    report = Report("Long")
    report.table("Rows", pd.DataFrame({"n": range(MAX_ROWS + 5)}), "All of them.")
    assert report.html().count("<tr>") == MAX_ROWS + 1
    assert f"The first {MAX_ROWS} of {MAX_ROWS + 5} rows." in report.html()


def test_large_pictures_become_png_and_equal_pictures_are_equal():
    _, ax = plt.subplots()
    ax.plot([0, 1])
    small = picture(ax)
    assert small.startswith("data:image/svg+xml;base64,") and picture(ax) == small
    ax.scatter(*np.random.default_rng(0).random((2, 20_000)))
    assert picture(ax).startswith("data:image/png;base64,")
    plt.close(ax.figure)


def test_a_report_needs_nothing_from_outside(cluster_report):
    page = cluster_report.read_text(encoding="utf-8")
    links = Links(page)
    assert links.found and all(link.startswith(("data:image/", "#")) for link in links.found)
    assert "link" not in links.tags and "iframe" not in links.tags and "default-src 'none'" in page
    assert not re.search(r"url\(|@import", page)


def test_a_report_says_all_that_was_promised(cluster_report):
    page = cluster_report.read_text(encoding="utf-8")
    heads = re.findall(r"<h2>(.*?)</h2>", page)
    for head in ("What was asked", "Data", "Result", "The model", "Relevance of the columns", "Use the model"):
        assert head in heads
    assert "101 rows, 16 columns" in page and "stands out for" in page and "read_bif" in page
    assert "pgm-bma cluster zoo --clusters 2:3" in page and page.count("<img ") >= 4


def test_the_code_in_a_report_runs(cluster_report, monkeypatch, capsys):
    import html

    import pgm_bma

    blocks = [
        html.unescape(code)
        for code in re.findall(r"<code>(.*?)</code>", cluster_report.read_text(encoding="utf-8"), re.S)
    ]
    monkeypatch.chdir(cluster_report.parent)
    rows = pgm_bma.load_dataset("zoo")[0]
    for block in blocks[:2]:
        exec(block, {"rows": rows})
    assert "cluster" in capsys.readouterr().out and "VariableElimination" in blocks[0]


def browse(path, tmp_path):
    """Open a page with the probe in it; returns (what the probe saw, console messages)."""
    import html
    import json

    page = path.read_text(encoding="utf-8").replace("</body>", PROBE + "</body>")
    copy = tmp_path / "page.html"
    copy.write_text(page, encoding="utf-8")
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", copy.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = re.search(r"<title>PROBE(.*?)</title>", done.stdout, re.S)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found[1])), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt-get install chromium)")
def test_tables_sort_in_a_browser(tables, tmp_path):
    seen, messages = browse(tables.write(tmp_path / "tables.html"), tmp_path)
    assert messages == []
    by_head = {entry["head"]: entry for entry in seen["said"]}
    assert all((entry["first"], entry["second"]) == ("ascending", "descending") for entry in by_head.values())
    assert by_head["size"]["rising"] == ["-1", "9", "10", "100"]  # by value, not by text
    assert by_head["size"]["falling"] == ["100", "10", "9", "-1"]
    assert by_head["share"]["rising"] == ["0.001", "0.250", "0.500", ""]  # missing ones last, both ways
    assert by_head["share"]["falling"] == ["0.500", "0.250", "0.001", ""]
    assert by_head["name"]["rising"] == ["A", "b9", "b10", "é"]  # as people sort


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (Debian: apt-get install chromium)")
def test_a_report_opens_in_a_browser(cluster_report, tmp_path):
    seen, messages = browse(cluster_report, tmp_path)
    assert messages == []  # no script error, nothing refused by the content policy
    assert "The model" in dict(seen["images"]) and all(width > 100 for _, width in seen["images"])
    assert seen["wide"] <= 0  # tables scroll inside the page, the page itself does not
    for entry in seen["said"]:
        if entry["number"]:
            numbers = [float(text) for text in entry["rising"] if text]
            assert numbers == sorted(numbers), entry["head"]


def test_the_glossary_says_what_i_p_is():
    report = Report("t")
    report.words("Result", ["I_P of a column"])
    assert "the mean over clusters of KL(p(X) || p(X given cluster))" in report.html()


def test_p_and_huge_statistics_are_readable():
    report = Report("t")
    report.table("Tests", pd.DataFrame({"p": [1e-9, 0.2], "X2": [8980165.605, 12.0], "BIC": [8980165.605, 1.0]}))
    page = report.html()
    assert ">&lt; .001<" in page and ">9.0e6<" in page and ">8980165.605<" in page and 'data-value="1e-09"' in page
