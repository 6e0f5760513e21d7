"""A report as one HTML file that needs nothing else: no network, no other files. Pictures are inline, tables sort.

`Report` collects sections in reading order and writes them, with a glossary of those terms (`glossary`) that occur. What a
section says is decided elsewhere (`findings`); here is only the page. Its style (page.css) and scripts (*.js) lie next to this
file and are written into the page. A content policy in the page forbids it to fetch anything.

A section of one's own is `words`, `facts`, `figure`, `table` or `code`; `live` adds what can be explored: its data come from
`live_data`, and one script for each kind draws them. The picture given with it stays on paper
and where no script runs.
"""

import base64
import html
import io
import json
import math
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pgm_bma.foundation.runtime.atomic import replacing
from pgm_bma.report.glossary import TERMS

BROAD = 5.5  # inches: wider pictures scroll on a phone, where they could not be read if shrunk
LARGEST_SVG = 500_000  # bytes; a larger picture is put in as PNG
MAX_ROWS = 400
HUGE = 1e6  # a G2 or X2 from here on is written with a power of ten
KINDS = ("graph", "clusters", "rows")


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
        self._kinds: list[str] = []

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
        source, width = (
            (drawing, 0.0) if isinstance(drawing, str) else (picture(drawing), drawing.figure.get_figwidth())
        )
        broad = ' class="broad"' if width > BROAD else ""
        image = f'<div{broad}><img src="{source}" alt="{_text(title)}"></div>'
        self._section(title, f"<figure>{image}<figcaption>{_text(caption)}</figcaption></figure>")

    def live(self, title: str, kind: str, data: Any, caption: str = "", drawing: Any = None) -> None:
        """Render what the reader can explore with mouse, finger or keyboard.

        Parameters
        ----------
        title : str
            The heading of the section.
        kind : {"graph", "clusters", "rows"}
            Which script shows it.
        data : dict
            What a function of `live_data` made.
        caption : str, optional
            A line that says what is seen.
        drawing : matplotlib axes or str, optional
            The picture for paper, and for browsers without scripts; without one the section is not printed.
        """
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is not one of {', '.join(map(repr, KINDS))}")
        self._kinds.append(kind)
        content = json.dumps(
            finite({"title": title, **data}), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        # inside a script element only a tag could end it; surrogates of a strange file name cannot be written
        content = content.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        content = content.encode("utf-8", "replace").decode()
        still = ""
        if drawing is not None:
            source = drawing if isinstance(drawing, str) else picture(drawing)
            still = f'<figure class="still"><img src="{source}" alt="{_text(title)}"></figure>'
        note = f"<p class='caption'>{_text(caption)}</p>" if caption else ""
        self._section(
            title,
            f'{note}<div class="live" id="live-{len(self._kinds)}" data-kind="{kind}">'
            f'<script type="application/json">{content}</script></div>{still}',
            kind="" if drawing is not None else "unprinted",
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
            "<tr>" + "".join(_cell(*cell, digits) for cell in zip(shown.columns, row, is_number)) + "</tr>"
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
        words = re.sub(r"<script.*?</script>|<[^>]*>", " ", body, flags=re.S)
        terms = [entry for pattern, entry in TERMS.items() if re.search(pattern, words)]
        if terms:
            rows = "".join(f"<dt>{_text(word)}</dt><dd>{_text(meaning)}</dd>" for word, meaning in terms)
            body += f"\n<section id='glossary'><h2>Words used here</h2><dl>{rows}</dl></section>"
            subtitle += "<p class='subtitle'><a href='#glossary'>Words used here, explained</a></p>"
        names = ["base", "tables", *dict.fromkeys(self._kinds), "start"]
        script = "\n".join(_beside(f"{name}.js") for name in names)
        return _PAGE.format(
            title=_text(self.title), subtitle=subtitle, style=_beside("page.css"), body=body, script=script
        )

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


def format_cell(value: Any, digits: int = 3) -> str:
    """Numbers with `digits` decimals, whole numbers without, missing ones as nothing.

    Examples
    --------
    >>> from pgm_bma.report.page import format_cell
    >>> format_cell(2), format_cell(0.12345), format_cell(float("nan")), format_cell("a")
    ('2', '0.123', '', 'a')
    """
    if value is None or value != value:
        return ""
    if type(value).__name__ in ("bool", "bool_") or not hasattr(value, "__float__"):
        return str(value)
    if float(value).is_integer() and not isinstance(value, float):
        return str(int(value))
    return f"{value:.{digits}f}"


def column_cell(name: Any, value: Any, digits: int = 3) -> str:
    """`format_cell`, with small p as "< .001" and huge statistics in powers of ten.

    Examples
    --------
    >>> from pgm_bma.report.page import column_cell
    >>> column_cell("p", 1e-9), column_cell("p of G2", 0.04), column_cell("X2", 8980165.605), column_cell("BIC", 8980165.605)
    ('< .001', '0.040', '9.0e6', '8980165.605')
    """
    if _is_number(value) and not _is_empty(value):
        if re.match(r"p\b", str(name)) and 0 <= value < 0.001:
            return "< .001"
        if re.match(r"[GX]2\b", str(name)) and HUGE <= value < math.inf:
            power = math.floor(math.log10(value))
            return f"{value / 10**power:.1f}e{power}"
    return format_cell(value, digits)


def finite(node: Any) -> Any:
    """Lists and dicts with None for what JSON has no number for.

    Examples
    --------
    >>> from pgm_bma.report.page import finite
    >>> finite({"a": [1.0, float("nan")]})
    {'a': [1.0, None]}
    """
    if isinstance(node, dict):
        return {key: finite(value) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        return [finite(value) for value in node]
    return None if isinstance(node, float) and not math.isfinite(node) else node


# control characters but line ends and tabs, and marks that turn the direction of text
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""The text with control characters as escapes: a name must not steer a terminal or hide on a page.

    Examples
    --------
    >>> from pgm_bma.report.page import visible
    >>> visible("red \x1b[31m")
    'red \\x1b[31m'
    """
    return _CONTROLS.sub(lambda match: ascii(match.group())[1:-1], text)


def _text(value):
    # a file name that is not UTF-8 comes as surrogates, which no page can hold
    return html.escape(visible(str(value)).encode("utf-8", "replace").decode())


@cache
def _beside(name):
    """A style or script of this folder."""
    return files("pgm_bma.report").joinpath(name).read_text(encoding="utf-8")


def _is_empty(value):
    return value is None or value != value


def _is_number(value):
    return hasattr(value, "__float__") and not isinstance(value, (bool, str))


def _number_class(flag):
    return " class='number'" if flag else ""


def _cell(name, value, is_number, digits):
    key = f' data-value="{float(value)!r}"' if is_number and not _is_empty(value) else ""
    return f"<td{_number_class(is_number)}{key}>{_text(column_cell(name, value, digits))}</td>"


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
