"""Pictures of how a search went and how well its result fits: chains, starts, criteria of every number of clusters, residuals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import NAME, TEXT, Integer, Number, Optional, check_arguments, reading
from pgm_bma.plotting._style import (
    BLUE,
    DRAWN,
    FONT,
    INK,
    MARKERS,
    ORANGE,
    PAPER,
    RULE,
    SERIES,
    SOFT,
    TITLE,
    VERMILION,
    bare,
    new_axes,
    note,
    short_labels,
    table_rule,
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


@fill(drawn=DRAWN)
def plot_score_traces(
    traces: Any,
    *,
    burn_in: int | None = None,
    label: str | None = None,
    names: Sequence | None = None,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Scores of the chains along their iterations; chains that have not met are seen at once.

    Parameters
    ----------
    traces : (n_chains, n_iterations) array, sequence, list or dict of sequences, or fitted estimator
        Scores of one chain or several; of a fitted order estimator whose chains were sampled the scores of its kept
        orders.
    burn_in : int, optional
        Number of first iterations that are discarded; they are shaded, and the scale fits what comes after them.
    label : str, optional
        What the score is; None means the log score of the order.
    names : sequence of str, optional
        Names of the chains.
    {drawn}

    Examples
    --------
    >>> from pgm_bma.plotting import plot_score_traces
    >>> ax = plot_score_traces([[-9.0, -7.0, -6.5], [-8.0, -6.6, -6.4]], burn_in=1)
    >>> [line.get_label() for line in ax.lines]
    ['chain 1', 'chain 2']
    """
    check_arguments(locals(), burn_in=Optional(Number(0)), label=Optional(TEXT), title=TITLE)
    what = "iteration"
    if hasattr(traces, "order_log_scores_"):
        if traces.method_ != "mcmc":
            raise ValueError(
                f"nothing was sampled by a chain: the average is {traces.method_!r}; fit with method='mcmc'"
            )
        traces, what = traces.order_log_scores_.reshape(traces.n_chains_, -1), "kept order"
    label = "log score of the order" if label is None else label
    if isinstance(traces, dict):
        names, traces = list(traces), list(traces.values())
    with reading("traces", traces, "numbers of one chain, a list or dict of those of several, or a fitted estimator"):
        traces = list(traces)
        if traces and np.ndim(traces[0]) == 0:
            traces = [traces]
        traces = [np.asarray(trace, dtype=float).reshape(len(trace)) for trace in traces]
    with reading("names", names, "one text for each chain"):
        names = [f"chain {i + 1}" for i in range(len(traces))] if names is None else [str(name) for name in names]
    beside = {"loc": "best"} if ax is not None else {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    ax = new_axes(ax, 7.5, 3.6)
    for i, (trace, name) in enumerate(zip(traces, names)):
        steps, values = _thinned(trace)
        style = "-" if i < len(SERIES) else (0, (4, 1.5))
        ax.plot(steps, values, color=SERIES[i % len(SERIES)], linewidth=1.0, linestyle=style, label=name, alpha=0.9)
    longest = max((len(trace) for trace in traces), default=1)
    if burn_in:
        ax.axvspan(0, min(burn_in, longest), color=RULE, alpha=0.6, linewidth=0, zorder=0)
        note(ax, "burn-in", (0, 1), (4, -4))
        _zoom_after(ax, traces, burn_in)
    ax.set_xlim(0, max(longest - 1, 1))
    bare(ax, "y", what, label)
    ax.ticklabel_format(style="plain", useOffset=False)
    if 1 < len(traces) <= 16:
        ax.legend(**beside, framealpha=0.85, edgecolor="white", fontsize=FONT - 1.5, handlelength=1.6)
    return titled(ax, title)


@fill(drawn=DRAWN)
def plot_starts(
    starts: Any, *, score: str = "score", label: str | None = None, title: str | None = None, ax: Any = None
) -> Any:
    """Scores of all starts from best to worst: how often the best was found again, and which starts collapsed.

    Parameters
    ----------
    starts : DataFrame, sequence of numbers or fitted estimator
        A table such as `starts_`, with a column of scores and, where present, the columns collapsed and converged; or
        the scores alone; or an estimator with `starts_`.
    score : str, default="score"
        The column of the scores.
    label : str, optional
        Name of the score; None takes that of the column.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_starts
    >>> ax = plot_starts(pd.DataFrame({"score": [-5.0, -4.0, -4.0], "collapsed": [True, False, False]}))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['start', 'collapsed']
    """
    check_arguments(locals(), score=NAME, label=Optional(TEXT), title=TITLE)
    starts = getattr(starts, "starts_", starts)
    with reading("starts", starts, "a table of starts, a list of scores, or a fitted estimator"):
        table = starts if isinstance(starts, pd.DataFrame) else pd.DataFrame({score: np.asarray(starts, dtype=float)})
    if score not in table:
        raise ValueError(f"starts has no column {score!r}; its columns are {list(table.columns)}")
    with reading("starts", starts, f"a table whose column {score!r} holds numbers"):
        table = table.sort_values(score, ascending=False, kind="stable").reset_index(drop=True)
        values = table[score].to_numpy(dtype=float)
    ax = new_axes(ax, max(5.0, min(12.0, 3.0 + 0.12 * len(values))), 3.4)
    rank = np.arange(1, len(values) + 1)
    collapsed = _flags(table, "collapsed", False)
    short = (table["stage"] == 1).to_numpy() & ~collapsed if "stage" in table else np.zeros(len(table), dtype=bool)
    unfinished = ~_flags(table, "converged", True) & ~collapsed & ~short
    finite = np.isfinite(values)
    best = values[finite].max() if finite.any() else 0.0
    ax.axhline(best, color=SOFT, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    size = 34 if len(values) <= 80 else 14
    groups = [
        (~collapsed & ~unfinished & ~short, "start", {"color": BLUE, "marker": "o"}),
        (short, "stopped early", {"facecolors": "white", "edgecolors": SOFT, "marker": "o"}),
        (unfinished, "not converged", {"color": ORANGE, "marker": "^"}),
        (collapsed, "collapsed", {"facecolors": "white", "edgecolors": VERMILION, "marker": "X"}),
    ]
    for mask, name, style in groups:
        mask = mask & finite
        if mask.any():
            ax.scatter(rank[mask], values[mask], s=size, linewidth=1.0, label=name, zorder=3, **style)
    again = int((np.abs(values[finite] - best) <= 1e-6 * max(1.0, abs(best))).sum())
    found = f"best {best:,.2f}, found {again} {'time' if again == 1 else 'times'} in {len(values)} starts"
    note(ax, found, (0, 1), (0, 4), "bottom", FONT - 1)
    if finite.any() and best - values[finite].min() < 0.1:  # do not blow up differences that mean nothing
        ax.set_ylim(best - 0.1, best + 0.02)
    ax.set_xlim(0.3, len(values) + 0.7)
    ax.xaxis.get_major_locator().set_params(integer=True)
    bare(ax, "y", "rank of the start", label or str(score).replace("_", " "))
    ax.ticklabel_format(axis="y", style="plain", useOffset=False)
    if collapsed.any() or unfinished.any() or short.any():
        ax.legend(framealpha=0.85, edgecolor="white", fontsize=FONT - 1, loc="best")
    return titled(ax, title, pad=18)


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
    check_arguments(locals(), path=table_rule("n_clusters", "score"), title=TITLE)
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

    table = table_rule("residual", others=("first", "second"))
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


def _thinned(trace, most=4000):
    """Steps and values of a long trace, each stretch shown by its extremes so that no spike is lost."""
    if len(trace) <= most:
        return np.arange(len(trace)), trace
    pieces = np.array_split(np.arange(len(trace)), most // 2)
    keep = np.array(sorted({i for p in pieces for i in (p[np.argmin(trace[p])], p[np.argmax(trace[p])])}))
    return keep, trace[keep]


def _zoom_after(ax, traces, burn_in):
    """Scale y for what comes after the burn-in, where chains must agree, and say how far the first scores go down."""
    later = np.concatenate([trace[burn_in:] for trace in traces])
    later = later[np.isfinite(later)]
    if not len(later):
        return
    low, high = later.min(), later.max()
    span = max(high - low, 1e-9 * max(1.0, abs(high)))
    first = min(np.nanmin(trace) for trace in traces)
    if first < low - 0.35 * span:
        ax.set_ylim(low - 0.35 * span, high + 0.1 * span)
        note(ax, f"first scores down to {first:,.0f}", (0, 0), (4, 4), "baseline")


def _flags(table, column, otherwise):
    if column not in table:
        return np.full(len(table), otherwise)
    return table[column].to_numpy(dtype=bool)
