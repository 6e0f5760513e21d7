"""Pictures of effects: the strongest as dots with intervals, or all of them as a matrix."""

from typing import Any

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
from pgm_bma.foundation.faces.validation import Choice, Integer, check, check_arguments
from pgm_bma.plotting._drawing import (
    FONT,
    INK,
    SOFT,
    TITLE,
    bare,
    name_rows,
    new_axes,
    note,
    shade,
    short_labels,
    table_rule,
    text_size,
    titled,
)
from pgm_bma.plotting._networks import plot_arc_posteriors


@fill(drawn=DRAWN)
def plot_effects(effects: Any, *, kind: str = "ranked", top: int = 20, title: str | None = None, ax: Any = None) -> Any:
    """Effects of setting each variable on each other one, with their posterior intervals.

    A dot is the expected size of an effect, the largest total variation between two states that the variable is set to; a line is
    its interval. A pale dot has a low probability that the one is an ancestor of the other; else there is no effect.

    Parameters
    ----------
    effects : DataFrame or fitted estimator
        What `effects()` returns, or an estimator that has it.
    kind : {"ranked", "matrix"}, default="ranked"
        The strongest effects as dots with their intervals, or all of them as a matrix.
    top : int, default=20
        Number of effects that "ranked" shows.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_effects
    >>> table = pd.DataFrame({"of": ["a", "b"], "on": ["b", "a"], "ancestor": [0.9, 0.1], "size": [0.4, 0.02],
    ...                       "low": [0.2, 0.0], "high": [0.6, 0.1]})
    >>> [label.get_text() for label in plot_effects(table).get_yticklabels()]
    ['a on b', 'b on a']
    """
    check_arguments(locals(), kind=Choice("ranked", "matrix"), top=Integer(1), title=TITLE)
    table = effects.effects() if hasattr(effects, "effects") else effects
    check("effects", table, table_rule("ancestor", "size", "low", "high", others=("of", "on")))
    return _matrix(table, title, ax) if kind == "matrix" else _ranked(table, top, title, ax)


def _ranked(table, top, title, ax):
    shown = table.sort_values("size", ascending=False, kind="stable").head(top)
    labels = short_labels(dict.fromkeys([*table["of"], *table["on"]]), 20)
    texts = [f"{labels[row.of]} on {labels[row.on]}" for row in shown.itertuples()]
    width = max(text_size(text, FONT - 1)[0] for text in texts)
    ax = new_axes(ax, width + 4.0, 0.22 * len(shown) + 0.9 + 0.3 * bool(title))
    for k, row in enumerate(shown.itertuples()):
        ax.plot([row.low, row.high], [k, k], color=SOFT, linewidth=1.4, solid_capstyle="butt", zorder=2)
        (dot,) = ax.plot(row.size, k, "o", color=shade(row.ancestor), markeredgecolor=INK, markersize=5.5, zorder=3)
        dot.set_gid(f"effect:{row.of}:{row.on}")
    ax.set_xlim(-0.02, 1.02)
    name_rows(ax, texts)
    bare(ax, "x", x="size of the effect (largest total variation)")
    remark = "pale dots: probably no effect"
    if len(shown) < len(table):
        remark = f"the strongest {len(shown)} of {len(table)}; {remark}"
    note(ax, remark, shift=(0, -30))
    return titled(ax, title)


def _matrix(table, title, ax):
    names = list(dict.fromkeys([*table["of"], *table["on"]]))
    place = {name: k for k, name in enumerate(table.attrs.get("variables", sorted(names, key=str)))}
    names.sort(key=lambda name: place.get(name, len(place)))
    square = table.pivot(index="of", columns="on", values="size").reindex(index=names, columns=names).fillna(0.0)
    ax = plot_arc_posteriors(square, title=title, ax=ax)
    ax.set_xlabel("effect on", fontsize=FONT)
    ax.set_ylabel("of setting", fontsize=FONT)
    ax.images[0].colorbar.set_label("size of the effect", fontsize=FONT - 1)
    return ax
