"""A report as one HTML file that needs nothing else: no network, no files beside it. Pictures are inline, tables sort.

`Report` collects sections in reading order and writes them, with a glossary of those terms (`glossary`) that occur. What a
section says is decided elsewhere (`findings`); here are only the page, its style and the few lines of script that sort
tables. A content policy in the page forbids it to fetch anything.
"""

import base64
import html
import io
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pgm_bma.foundation.atomic import replacing
from pgm_bma.report.cells import format_cell
from pgm_bma.report.glossary import TERMS

LARGEST_SVG = 500_000  # bytes; a larger picture is put in as PNG
MAX_ROWS = 400


class Report:
    """Sections of a report in reading order.

    Parameters
    ----------
    title : str
        The heading of the page.
    subtitle : str, optional
        A line below it.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.report import Report
    >>> report = Report("Two fruits")
    >>> report.words("Result", ["Apples are heavier."])
    >>> report.table("Weights", pd.DataFrame({"fruit": ["apple", "plum"], "gram": [150.0, 40.0]}), "Means of ten.")
    >>> "Apples are heavier." in report.html()
    True
    """

    def __init__(self, title: str, subtitle: str = ""):
        self.title, self.subtitle = title, subtitle
        self._parts: list[str] = []

    def words(self, title: str, paragraphs: Iterable[str]) -> None:
        """Paragraphs of plain text.

        Parameters
        ----------
        title : str
            The heading of the section.
        paragraphs : iterable of str
            The texts; nothing in them is read as HTML.
        """
        self._section(title, "".join(f"<p>{_text(paragraph)}</p>" for paragraph in paragraphs))

    def facts(self, title: str, pairs: Iterable[tuple[str, Any]]) -> None:
        """Names with short texts, as a two-column list.

        Parameters
        ----------
        title : str
            The heading of the section.
        pairs : iterable of (str, object)
            Name and text of each line.
        """
        rows = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in pairs)
        self._section(title, f"<dl>{rows}</dl>")

    def warnings(self, messages: Iterable[str]) -> None:
        """A box that is seen first; nothing when there is nothing to warn of.

        Parameters
        ----------
        messages : iterable of str
            One line each.
        """
        items = "".join(f"<li>{_text(message)}</li>" for message in messages)
        if items:
            self._section("Warnings", f"<ul>{items}</ul>", kind="warnings")

    def figure(self, title: str, drawing: Any, caption: str = "") -> None:
        """A picture: matplotlib axes, or what `picture` made of them.

        Parameters
        ----------
        title : str
            The heading of the section.
        drawing : matplotlib axes or str
            What is drawn, or its data address.
        caption : str, optional
            A line that says what is seen.
        """
        source = drawing if isinstance(drawing, str) else picture(drawing)
        self._section(
            title,
            f'<figure><img src="{source}" alt="{_text(title)}"><figcaption>{_text(caption)}</figcaption></figure>',
        )

    def table(self, title: str, frame: Any, caption: str = "", digits: int = 3) -> None:
        """A DataFrame; a click on a heading sorts by that column, another one turns the order round.

        Parameters
        ----------
        title : str
            The heading of the section.
        frame : pandas.DataFrame
            Its first rows, at most MAX_ROWS, are shown; the index is not.
        caption : str, optional
            A line that says what is seen.
        digits : int, optional
            Decimals of numbers that are not whole.
        """
        shown = frame.iloc[:MAX_ROWS]
        if len(shown) < len(frame):
            caption = f"{caption} The first {len(shown)} of {len(frame)} rows.".strip()
        is_number = [all(_is_number(value) or _is_empty(value) for value in column) for _, column in shown.items()]
        heads = "".join(
            f'<th scope="col"{_number_class(flag)}><button type="button">{_text(name)}</button></th>'
            for name, flag in zip(shown.columns, is_number)
        )
        body = "".join(
            "<tr>" + "".join(_cell(value, flag, digits) for value, flag in zip(row, is_number)) + "</tr>"
            for row in shown.itertuples(index=False, name=None)
        )
        note = f"<p class='caption'>{_text(caption)}</p>" if caption else ""
        table = f"<table class='sortable'><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        self._section(title, f"{note}<div class='wide'>{table}</div>")

    def code(self, title: str, blocks: Iterable[tuple[str, str]]) -> None:
        """Pairs (explanation, program text).

        Parameters
        ----------
        title : str
            The heading of the section.
        blocks : iterable of (str, str)
            What to do, and the lines that do it.
        """
        parts = "".join(f"<p>{_text(words)}</p><pre><code>{_text(code)}</code></pre>" for words, code in blocks)
        self._section(title, parts)

    def html(self) -> str:
        """The whole page.

        Returns
        -------
        str
            HTML that refers to nothing outside itself.
        """
        subtitle = f"<p class='subtitle'>{_text(self.subtitle)}</p>" if self.subtitle else ""
        body = "\n".join(self._parts)
        words = re.sub(r"<[^>]*>", " ", body)
        terms = [entry for pattern, entry in TERMS.items() if re.search(pattern, words)]
        if terms:
            rows = "".join(f"<dt>{_text(word)}</dt><dd>{_text(meaning)}</dd>" for word, meaning in terms)
            body += f"\n<section id='glossary'><h2>Words used here</h2><dl>{rows}</dl></section>"
            subtitle += "<p class='subtitle'><a href='#glossary'>Words used here, explained</a></p>"
        return _PAGE.format(title=_text(self.title), subtitle=subtitle, style=_STYLE, body=body, script=_SCRIPT)

    def write(self, path: Any) -> Path:
        """Write the page, whole or not at all.

        Parameters
        ----------
        path : str or path-like
            An existing file is replaced, once the new one is complete.

        Returns
        -------
        pathlib.Path
            The file.
        """
        path = Path(path)
        with replacing(path, "w", encoding="utf-8") as file:
            file.write(self.html())
        return path

    def _section(self, title, body, kind=""):
        self._parts.append(f"<section{f' class={kind!r}' if kind else ''}><h2>{_text(title)}</h2>{body}</section>")


def picture(ax: Any, path: Any = None) -> str:
    """Axes as a data address: SVG while it is small, else PNG.

    Parameters
    ----------
    ax : matplotlib axes
        Their whole figure is taken.
    path : str or path-like, optional
        Also write the picture to path.svg and path.png.

    Returns
    -------
    str
        ``data:image/...``, for the source of an image in HTML.
    """
    drawings = {}
    for ending in ("svg", "png"):
        drawings[ending] = _saved(ax, ending)
        if path is not None:
            with replacing(f"{path}.{ending}") as file:
                file.write(drawings[ending])
        elif len(drawings[ending]) <= LARGEST_SVG:
            break
    kind, content = ("svg+xml", drawings["svg"]) if len(drawings["svg"]) <= LARGEST_SVG else ("png", drawings["png"])
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def _saved(ax, ending):
    import matplotlib

    drawing = io.BytesIO()
    options = {"metadata": {"Date": None}} if ending == "svg" else {"dpi": 130}
    with matplotlib.rc_context({"svg.hashsalt": "pgm_bma"}):  # neither a date nor random names: equal runs, equal files
        ax.figure.savefig(drawing, format=ending, bbox_inches="tight", **options)
    return drawing.getvalue()


def _text(value):
    # a file name that is not UTF-8 comes as surrogates, which no page can hold
    return html.escape(str(value).encode("utf-8", "replace").decode())


def _is_empty(value):
    return value is None or value != value


def _is_number(value):
    return hasattr(value, "__float__") and not isinstance(value, (bool, str))


def _number_class(flag):
    return " class='number'" if flag else ""


def _cell(value, is_number, digits):
    key = f' data-value="{float(value)!r}"' if is_number and not _is_empty(value) else ""
    return f"<td{_number_class(is_number)}{key}>{_text(format_cell(value, digits))}</td>"


_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{title}</h1>{subtitle}</header>
<main>
{body}
</main>
<script>{script}</script>
</body>
</html>
"""

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #222; background: #fff;
  max-width: 64rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.7rem; margin: 0; line-height: 1.25; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; border-bottom: 1px solid #d5dce2; padding-bottom: .2rem; }
.subtitle { color: #55606a; margin: .3rem 0 0; }
p { margin: .5rem 0; max-width: 48rem; overflow-wrap: anywhere; }
.caption, figcaption { color: #55606a; font-size: .9rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.2rem; margin: 0; }
dt { color: #55606a; }
dd { margin: 0; overflow-wrap: anywhere; }
figure { margin: 0; }
figure img { max-width: 100%; height: auto; }
.warnings { background: #fff6e5; border-left: 4px solid #e69f00; padding: .1rem 1rem .6rem; margin-top: 1.5rem; }
.warnings h2 { border: 0; margin: .6rem 0 .2rem; }
.warnings ul { margin: 0; padding-left: 1.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .92rem; margin-top: .3rem; }
th, td { padding: .25rem .55rem; text-align: left; border-bottom: 1px solid #e6ebef; vertical-align: top;
  max-width: 24rem; overflow-wrap: break-word; }
th { border-bottom: 2px solid #aab4bd; vertical-align: bottom; }
th button { all: unset; cursor: pointer; font-weight: 600; max-width: 24rem; overflow-wrap: break-word; }
th button:focus-visible { outline: 2px solid #0072b2; outline-offset: 2px; }
th button::after { content: "\\a0\\2195"; color: #aab4bd; }
th[aria-sort=ascending] button::after { content: " \\2191"; color: #0072b2; }
th[aria-sort=descending] button::after { content: " \\2193"; color: #0072b2; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #eef3f7; padding: .7rem 1rem; overflow-x: auto; font-size: .88rem; border-radius: 4px; }
@media print { th button::after { content: ""; } section { break-inside: avoid; } }
"""

_SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const rising = head.getAttribute("aria-sort") !== "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", rising ? "ascending" : "descending");
    const number = head.classList.contains("number");
    const key = row => {
      const cell = row.cells[column];
      if (!number) return cell.textContent;
      return cell.dataset.value === undefined ? null : Number(cell.dataset.value);
    };
    const order = (a, b) => number ? a - b : a.localeCompare(b, undefined, { numeric: true });
    const rows = Array.from(table.tBodies[0].rows).map(row => [key(row), row]);
    rows.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return rising ? order(a, b) : order(b, a);
    });
    table.tBodies[0].append(...rows.map(([, row]) => row));
  }));
}
"""
