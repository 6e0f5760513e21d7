"""Colours, axes and labels that all pictures share. Colours are Okabe and Ito's, which colour-blind readers can tell apart;
whatever a colour says is also said by a dash pattern, a marker or a text."""

import math

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import TEXT, Optional, Rule

ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, BLACK = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#000000",
)  # fmt: skip
SERIES = [BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, BLACK, "#8C8C8C"]  # grey: yellow lines vanish on white
INK, SOFT, PAPER, RULE = "#222222", "#6B7780", "#EEF3F7", "#D5DCE2"
PALE = "#B9D3E6"
MARKERS = "osD^vPX*"
FONT = 9.0
MANY = 40  # nodes: with more, pictures show less of each

TITLE = Optional(TEXT)

# the end of every picture's parameters, and what it returns
DRAWN = """title : str, optional
        Title above the picture.
    ax : matplotlib axes, optional
        Where to draw; None makes a new figure of fitting size.

    Returns
    -------
    matplotlib axes
        Where it was drawn."""


def new_axes(ax, width, height, largest=40.0):
    """The given axes, or new ones of about this size in inches."""
    if ax is not None:
        return _given(ax)
    import matplotlib.pyplot as plt

    shrink = min(1.0, largest / max(width, height))
    _, ax = plt.subplots(figsize=(max(width * shrink, 2.0), max(height * shrink, 1.5)), layout="constrained")
    return ax


def drawing_axes(ax, width, height, around=0.0, least=3.0):
    """Axes for a drawing whose data units are inches, and the factor by which it is shrunk (or grown) to fit.

    width, height : of the drawing      around : height of what stands above and below      least : width of a new figure
    """
    if ax is None:
        ax = new_axes(None, max(width, least), height + around)
        figure = ax.figure.get_size_inches()
        scale = 0.97 * min(1.0, figure[0] / max(width, least), figure[1] / (height + around))  # 3 % for the paddings
    else:
        room = inches(_given(ax))
        scale = min(room[0] / width, room[1] / height, 1.3)
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    ax.set_aspect("equal", adjustable="box")
    ax.set_axis_off()
    return ax, scale


def _given(ax):
    if not hasattr(ax, "get_window_extent") or not hasattr(ax, "plot"):
        raise TypeError(f"ax must be the axes of a matplotlib figure, or None, got a {type(ax).__name__}")
    return ax


def inches(ax):
    """Width and height of the axes as they stand."""
    box = _given(ax).get_window_extent()
    dpi = ax.figure.dpi
    return box.width / dpi, box.height / dpi


def text_size(text, fontsize=FONT):
    """Width and height of a text in inches, without drawing it."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=fontsize)
    lines = text.split("\n")
    width = max(text_to_path.get_text_width_height_descent(line or " ", font, ismath=False)[0] for line in lines)
    return width / 72, len(lines) * fontsize * 1.25 / 72


def short_labels(names, limit):
    """name -> text of at most about `limit` characters, shortened in the middle and still distinct."""
    names = list(names)
    texts = {name: str(name) for name in names}
    while True:
        labels = {name: _shorten(text, limit) for name, text in texts.items()}
        if len(set(labels.values())) == len(set(texts.values())) or limit >= max(map(len, texts.values()), default=0):
            return labels
        limit += 4


def _shorten(text, limit):
    if len(text) <= limit:
        return text
    tail = max(1, (limit - 1) // 3)
    return text[: limit - 1 - tail] + "…" + text[-tail:]


def note(ax, text, corner=(0, 0), shift=(0, -4), va="top", fontsize=FONT - 1.5):
    """A remark at a corner of the axes, shifted by points; below them unless said otherwise."""
    how = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False, "parse_math": False}
    ax.annotate(text, corner, xytext=shift, va=va, fontsize=fontsize, color=SOFT, **how)


def legend_below(ax, handles, remark=None, columns=None):
    """Legend and remark under the axes, where they hide nothing."""
    if not handles:
        return note(ax, remark) if remark else None
    legend = ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncol=columns or len(handles), frameon=False,
        fontsize=FONT - 1, title=remark, title_fontsize=FONT - 1.5, handlelength=2.6, columnspacing=1.4,
    )  # fmt: skip
    legend.get_title().set_color(SOFT)
    return legend


def bare(ax, grid=None, x=None, y=None, parse_math=True):
    """Only the axis lines that help reading, and what stands along them."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(SOFT)
    ax.tick_params(colors=INK, labelsize=FONT - 1)
    if grid:
        ax.grid(axis=grid, color=RULE, linewidth=0.6)
        ax.set_axisbelow(True)
    for text, write in ((x, ax.set_xlabel), (y, ax.set_ylabel)):
        if text is not None:
            write(text, fontsize=FONT, parse_math=parse_math)


def name_rows(ax, labels, size=None):
    """Lines from top to bottom with their names; `size` of the letters is what the axes have room for."""
    size = float(np.clip(inches(ax)[1] * 72 / max(len(labels), 1) * 0.72, 4.0, FONT - 1)) if size is None else size
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0, labelsize=size)


def shade(probability):
    """Blue that pales as the probability falls; the palest still shows on white."""
    low, high = (tuple(int(code[i : i + 2], 16) for i in (1, 3, 5)) for code in ("#D3E3EF", BLUE))
    p = 0.0 if math.isnan(probability) else min(max(float(probability), 0.0), 1.0)
    return "#" + "".join(f"{round(a + p * (b - a)):02X}" for a, b in zip(low, high))


def titled(ax, title, pad=6):
    """The axes, with a title where there is one."""
    if title:
        ax.set_title(title, fontsize=FONT + 2, color=INK, pad=pad)
    return ax


def number(value):
    """A short number for a label."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    return f"{value:.3g}" if abs(value) < 1e4 else f"{value:,.0f}"


def table_rule(*numbers, others=()):
    """A table with rows, with these columns of numbers, and with others."""
    names = [*others, *numbers]

    def admits(value):
        if not isinstance(value, pd.DataFrame) or value.empty or not {*names} <= {*value.columns}:
            return False
        return all(value[name].dtype.kind in "iuf" for name in numbers)

    listed = ", ".join(map(repr, names))
    return Rule(
        f"a table with the columns {listed} (numbers: {', '.join(numbers)}), or an estimator that has it", admits
    )
