"""Pictures of how well clusters fit: criteria of every number tried, pairs left dependent, profiles with their intervals."""

import math
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import Integer, Rule, check, check_arguments
from pgm_bma.plotting._style import (
    BLUE,
    DRAWN,
    FONT,
    INK,
    PAPER,
    RULE,
    SERIES,
    SOFT,
    TITLE,
    bare,
    drawing_axes,
    new_axes,
    note,
    short_labels,
    text_size,
    titled,
)

# column of `n_clusters_path_` -> words; the score is turned round, so that all are lower for better models
CRITERIA = {
    "score": "evidence (-2 x score)",
    "bic": "BIC",
    "adjusted_bic": "adjusted BIC",
    "aic": "AIC",
    "caic": "CAIC",
    "icl": "ICL",
}
DASHES = ["-", (0, (5, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 2)), (0, (2, 2))]
MARKERS = "osD^vPX*"
LINE, SPAN, AXIS = 0.075, 2.3, 0.3  # inches: an interval, the scale from 0 to 1 at least, the room for its figures
TALLEST = 11.0  # inches of a block of profiles
LEAST = 4.4  # inches: width of a new figure of profiles


@fill(drawn=DRAWN)
def plot_criteria(path: Any, *, title: str | None = None, ax: Any = None) -> Any:
    """All criteria over the numbers of clusters tried, each as its distance from its own best; the choice is marked.

    Parameters
    ----------
    path : DataFrame or fitted clusterer
        `n_clusters_path_`, or what has it.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_criteria
    >>> path = pd.DataFrame({"n_clusters": [1, 2, 3], "score": [-90.0, -70.0, -75.0], "bic": [180.0, 150.0, 149.0]})
    >>> ax = plot_criteria(path)
    >>> [line.get_label() for line in ax.lines if not line.get_label().startswith("_")]
    ['evidence (-2 x score): 2', 'BIC: 3']
    """
    path = getattr(path, "n_clusters_path_", path)
    check_arguments(locals(), path=_table_rule("n_clusters", "score"), title=TITLE)
    if path["n_clusters"].nunique() < 2:
        raise ValueError("a single number of clusters was tried; fit with a range, such as n_clusters=range(1, 9)")
    best = path.loc[path.groupby("n_clusters")["score"].idxmax()].sort_values("n_clusters")
    numbers = best["n_clusters"].to_numpy()
    ax = new_axes(ax, 6.4, 3.6)
    shown = [name for name in CRITERIA if name in best and np.isfinite(best[name]).any()]
    chosen = int(numbers[np.argmax(best["score"].to_numpy())])
    ax.axvspan(chosen - 0.3, chosen + 0.3, color=PAPER, linewidth=0, zorder=0)
    highest = 1.0
    for i, name in enumerate(shown):
        values = best[name].to_numpy(dtype=float) * (-2 if name == "score" else 1)
        above = values - np.nanmin(values)
        highest = max(highest, float(np.nanmax(above)))
        at = int(np.nanargmin(values))
        style = {"color": SERIES[i % len(SERIES)], "linewidth": 2.2 if name == "score" else 1.2}
        ax.plot(numbers, above, linestyle=DASHES[i % 6], label=f"{CRITERIA[name]}: {numbers[at]}", **style)
        ax.plot(numbers[at], 0.0, MARKERS[i % 8], color=style["color"], markersize=9 - i, clip_on=False, zorder=5)
    ax.set_yscale("symlog", linthresh=2.0)
    ticks = [0, 2, *(10**e for e in range(1, math.ceil(math.log10(highest)) + 1) if 10**e <= 2 * highest)]
    ax.set_yticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set_ylim(0, 1.3 * highest)
    ax.set_xticks(numbers)
    bare(ax, "y", f"number of clusters (shaded: chosen by the evidence, {chosen})", "above its own best")
    ax.legend(
        loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=FONT - 1, title="criterion: its choice",
        title_fontsize=FONT - 1, handlelength=3.2,
    )  # fmt: skip
    return titled(ax, title)


@fill(drawn=DRAWN)
def plot_residuals(pairs: Any, *, top: int = 40, title: str | None = None, ax: Any = None) -> Any:
    """Heat map of the pairs of columns that clusters leave dependent.

    Parameters
    ----------
    pairs : DataFrame
        What `pgm_bma.bivariate_residuals` returns.
    top : int, default=40
        Draw at most so many columns, those with the largest residuals.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_residuals
    >>> pairs = pd.DataFrame({"first": ["a", "a", "b"], "second": ["b", "c", "c"], "residual": [9.0, 1.0, 0.2]})
    >>> ax = plot_residuals(pairs)
    >>> [tick.get_text() for tick in ax.get_xticklabels()]
    ['a', 'b', 'c']
    """
    from matplotlib.colors import LinearSegmentedColormap, LogNorm

    table = _table_rule("residual", others=("first", "second"))
    check_arguments(locals(), pairs=table, top=Integer(1), title=TITLE)
    names = list(dict.fromkeys([*pairs["first"], *pairs["second"]]))
    largest = pd.concat([pairs.groupby(end)["residual"].max() for end in ("first", "second")])
    largest = largest.groupby(level=0).max()
    kept = set(sorted(names, key=lambda name: -largest[name])[:top])
    shown = [name for name in names if name in kept]
    place = {name: i for i, name in enumerate(shown)}
    n = len(shown)
    values = np.full((n, n), np.nan)
    for a, b, value in zip(pairs["first"], pairs["second"], pairs["residual"]):
        if a in place and b in place:
            values[place[a], place[b]] = values[place[b], place[a]] = value
    labels = short_labels(shown, 18)
    cell = 0.42 if n <= 14 else 0.24
    edge = max(text_size(labels[name])[0] for name in shown) + 0.2
    if n < len(names):
        title = title or f"{n} of {len(names)} columns, those with the largest residuals"
    # a figure of its own has the right size; an equal aspect would hide from the layout what the labels need
    aspect = "auto" if ax is None else "equal"
    ax = new_axes(ax, n * cell + edge + 1.1, n * cell + edge + 0.3 + 0.3 * bool(title))
    high = max(float(np.nanmax(values, initial=10.0, where=np.isfinite(values))), 10.0)
    blues = LinearSegmentedColormap.from_list("residuals", ["#FFFFFF", "#B9D3E6", BLUE, "#00304D"])
    colours = blues.with_extremes(bad=RULE)
    drawn = np.clip(np.where(np.isinf(values), high, values), 1.0, high)  # at most 1 is what chance gives: white
    image = ax.imshow(drawn, cmap=colours, norm=LogNorm(1.0, high), aspect=aspect)
    ax.set_xticks(range(n), [labels[name] for name in shown], rotation=90, fontsize=FONT - 1.5, parse_math=False)
    ax.set_yticks(range(n), [labels[name] for name in shown], fontsize=FONT - 1.5, parse_math=False)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    if n <= 14:
        for i, j in np.argwhere(np.isfinite(values) & ~np.eye(n, dtype=bool)):
            text = f"{values[i, j]:.1f}" if values[i, j] < 99.5 else f"{values[i, j]:.0f}"
            ink = "white" if values[i, j] > math.sqrt(high) else INK
            ax.text(j, i, text, ha="center", va="center", fontsize=FONT - 2.5, color=ink)
    length = min(1.0, 2.4 / (n * cell))
    bar = ax.figure.colorbar(image, ax=ax, shrink=length, fraction=min(0.15, 0.6 / (n * cell)), pad=0.02)
    bar.set_label("X2 / degrees of freedom (white: chance)", fontsize=FONT - 1.5)
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000, 100_000) if t <= high]
    bar.set_ticks(ticks, labels=[str(t) for t in ticks], fontsize=FONT - 2)
    bar.minorticks_off()
    bar.outline.set_visible(False)
    return titled(ax, title)


@fill(drawn=DRAWN)
def plot_profile_intervals(profiles: Any, *, top: int = 60, title: str | None = None, ax: Any = None) -> Any:
    """P(state | cluster) as points with their 95 % intervals, one line per column and state, on a scale from 0 to 1.

    Of columns with two states the second is drawn. Columns that differ most between the clusters come first.

    Parameters
    ----------
    profiles : DataFrame or fitted clusterer
        `profiles_`, or what has it.
    top : int, default=60
        Draw at most so many columns.
    {drawn}

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import LatentClassClusterer
    >>> from pgm_bma.plotting import plot_profile_intervals
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(0, 2, 200)
    >>> X = pd.DataFrame({name: np.where(rng.random(200) < 0.9, z, 1 - z) for name in "abc"})
    >>> ax = plot_profile_intervals(LatentClassClusterer(2, n_init=4, random_state=0).fit(X))
    >>> sorted(text.get_text() for text in ax.texts if "=" in text.get_text())
    ['a = 1', 'b = 1', 'c = 1']
    """
    frame = getattr(profiles, "profiles_", profiles)
    check_arguments(locals(), top=Integer(1), title=TITLE)
    check("profiles", frame, _table_rule("probability", "low", "high", others=("column", "state", "cluster")))
    sizes = frame[frame["column"].isna()]
    tables = frame[frame["column"].notna()]
    clusters = list(sizes["cluster"])
    names = _by_difference(tables)
    lines = _lines(tables, names[:top])
    labels = short_labels(names[:top], 30)
    texts = [f"{labels[name]} = {_state_text(state)}" for name, state, _ in lines]
    label_width = max(text_size(text, FONT - 1)[0] for text in texts) + 0.15
    row = max(0.19, LINE * len(clusters) + 0.09)
    n_blocks = max(1, math.ceil(len(lines) * row / TALLEST))
    per_block = math.ceil(len(lines) / n_blocks)
    span = max(SPAN, LEAST / n_blocks - label_width - 0.3)
    block, height = label_width + span + 0.3, per_block * row + 2 * AXIS
    keys = [_key_text(line) for line in sizes.itertuples()]
    per_line = max(1, int(n_blocks * block / (max(text_size(text, FONT - 1)[0] for text in keys) + 0.55)))
    above = 0.32 + 0.19 * math.ceil(len(keys) / per_line) + 0.3 * bool(title)
    ax, scale = drawing_axes(ax, n_blocks * block, height, above + 0.25 * (len(names) > top), LEAST)
    ax.set_anchor("S")  # what room is to spare stands above, where the key is
    style = {"parse_math": False, "va": "center"}
    for b in range(n_blocks):
        left, n_here = b * block + label_width, min(per_block, len(lines) - b * per_block)
        bottom = height - AXIS - n_here * row
        for share, text in ((0.0, "0"), (0.25, ""), (0.5, ".5"), (0.75, ""), (1.0, "1")):
            x = left + span * share
            ax.plot([x, x], [bottom, height - AXIS], color=RULE, linewidth=0.7 * scale, zorder=0)
            for y in (height - AXIS / 2, bottom - AXIS / 2):
                ax.text(x, y, text, ha="center", fontsize=(FONT - 1.5) * scale, color=SOFT, **style)
    for i, ((_, _, values), text) in enumerate(zip(lines, texts)):
        left = (i // per_block) * block + label_width
        middle = height - AXIS - (i % per_block + 0.5) * row
        ax.text(left - 0.1, middle, text, ha="right", fontsize=(FONT - 1) * scale, color=INK, **style)
        if i % 2 == 0:
            ax.axhspan(
                middle - row / 2, middle + row / 2, xmin=left / (n_blocks * block), facecolor=PAPER, zorder=-1,
                xmax=(left + span) / (n_blocks * block), linewidth=0,
            )  # fmt: skip
        for c, line in enumerate(values.itertuples()):
            y = middle + LINE * ((len(clusters) - 1) / 2 - c)
            colour = SERIES[c % len(SERIES)]
            ax.plot([left + span * line.low, left + span * line.high], [y, y], color=colour, linewidth=1.1 * scale)
            (point,) = ax.plot(
                left + span * line.probability, y, MARKERS[c % 8], color=colour, markersize=3.4 * scale, zorder=4
            )
            point.set_gid(f"profile:{line.column}:{line.state}:{line.cluster}")
    _key(ax, keys, min(per_line, len(keys)), scale)
    if len(names) > top:
        note(ax, f"{top} of {len(names)} columns, those that differ most between the clusters")
    return titled(ax, title, pad=72 * (above - 0.3))


def _table_rule(*numbers, others=()):
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


def _key(ax, texts, per_line, scale):
    """Clusters and their sizes, above the drawing."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=SERIES[c % len(SERIES)], marker=MARKERS[c % 8], markersize=4, label=text)
        for c, text in enumerate(texts)
    ]
    ax.legend(
        handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=per_line, frameon=False,
        fontsize=(FONT - 1) * scale, handlelength=1.8, columnspacing=1.2, title="cluster: size (95 % interval)",
        title_fontsize=(FONT - 1) * scale, borderpad=0.2,
    )  # fmt: skip


def _key_text(line):
    return f"{line.cluster}: {100 * line.probability:.0f} % ({100 * line.low:.0f}-{100 * line.high:.0f})"


def _state_text(state):
    """1.0, which a gap in a column of whole numbers makes of 1, as 1."""
    text = str(int(state)) if isinstance(state, float) and state.is_integer() else str(state)
    return short_labels([text], 18)[text]


def _by_difference(tables):
    """Columns by the largest difference of a state's probability between two clusters."""
    spread = tables.groupby(["column", "state"], sort=False, dropna=False)["probability"].agg(np.ptp)
    largest = spread.groupby(level=0, sort=False).max()
    return list(largest.sort_values(ascending=False, kind="stable").index)


def _lines(tables, names):
    """(column, state, lines of all clusters); of two states the second only."""
    found = []
    for name in names:
        here = tables[tables["column"] == name]
        states = list(dict.fromkeys(here["state"]))
        for state in states[1:] if len(states) == 2 else states:
            found.append((name, state, here[here["state"] == state]))
    return found
