"""Pictures of what columns say about the class: all of them in one row, and each alone, as curves of evidence over its values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
from pgm_bma.foundation.faces.validation import Fitted, Integer, check_arguments, is_hashable, reading
from pgm_bma.foundation.runtime.atomic import file_path, replacing
from pgm_bma.foundation.tables.cut_points import state_text
from pgm_bma.plotting._drawing import (
    BLUE,
    FONT,
    INK,
    PALE,
    RULE,
    SERIES,
    SOFT,
    TITLE,
    VERMILION,
    bare,
    name_rows,
    new_axes,
    note,
    short_labels,
    text_size,
    titled,
)

MOST_PANELS, WIDTH, HEIGHT = 12, 3.4, 2.5  # inches
AVERAGED = Fitted("a fitted AdditiveBayesClassifier", "term_curves", "schema_", "target_name_")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":")


def plot_terms(
    classifier: Any, *, columns: Sequence | None = None, path: Any = None, n_columns: int = 3, title: str | None = None
) -> Any:
    """Draw the terms of an additive classifier: a curve for each column, a heat map for each pair of columns.

    Bands are two standard errors wide on either side of a curve, and the bars below show where the data are. A heat map shows what
    a pair says beyond its two columns; with more than two classes there is one for each class.

    Parameters
    ----------
    classifier : fitted AdditiveBayesClassifier
        The model whose terms are drawn.
    columns : sequence of names and pairs, optional
        Columns, and pairs (first, second) of the model, to draw. Default: the twelve columns of largest `feature_importances_`,
        and the pairs whose interval in `interactions_` lies above 0, as many as twelve panels show.
    path : str or path, optional
        File to write to.
    n_columns : int, default=3
        Panels side by side.
    title : str, optional
        Title above the picture.

    Returns
    -------
    matplotlib.figure.Figure
        The figure.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import AdditiveBayesClassifier
    >>> from pgm_bma.plotting import plot_terms
    >>> x = np.random.default_rng(0).normal(size=200)
    >>> model = AdditiveBayesClassifier().fit(pd.DataFrame({"x": x}), np.where(x > 0, "high", "low"))
    >>> [ax.get_title(loc="left") for ax in plot_terms(model).axes]
    ['x']
    """
    import matplotlib.pyplot as plt

    check_arguments(locals(), classifier=AVERAGED, n_columns=Integer(1), title=TITLE)
    if path is not None:
        path = file_path(path)
        path = path if path.suffix else path.with_name(f"{path.name}.png")
    names, classes = list(classifier.schema_.names), list(classifier.classes_)
    shown = classes[1:] if len(classes) == 2 else classes  # of two classes one curve is the other upside down
    if columns is None:
        order = np.argsort(-classifier.feature_importances_, kind="stable")
        sure = classifier.interactions_.query("low > 0")[["first", "second"]].head(MOST_PANELS // len(shown))
        columns = [*(names[j] for j in order[:MOST_PANELS]), *sure.itertuples(index=False, name=None)]
    pairs = _pair_tables(classifier)
    with reading("columns", columns, "a list of names of columns, and pairs of them"):
        columns = [columns] if isinstance(columns, str) else list(columns)
        unknown = [name for name in columns if name not in names and name not in pairs]
    if not columns:
        raise ValueError(f"columns= names no column; the columns are {names[:20]}")
    if unknown:
        raise ValueError(
            f"columns= names {unknown[0]!r}, which is neither a column of the fit nor a pair of its pairs_"
        )
    curves = classifier.term_curves()
    panels = [(name, None) for name in columns if name in names]
    panels += [(pair, c) for pair in columns if pair not in names for c in shown]
    n_columns = max(1, min(n_columns, len(panels)))
    n_rows = -(-len(panels) // n_columns)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=(WIDTH * n_columns, HEIGHT * n_rows + 0.5), squeeze=False, layout="constrained"
    )
    labels = short_labels(names, 34)
    mesh: Any = None
    largest = max((np.abs(pairs[pair]).max() for pair, c in panels if c is not None), default=0.0)
    for place, (ax, (name, c)) in enumerate(zip(axes.flat, panels)):
        if c is None:
            _draw_column(ax, curves[curves["column"] == name], shown, labels[name], name in classifier.numeric_columns_)
            if place % n_columns == 0:
                ax.set_ylabel("evidence (nats)", fontsize=FONT - 1, color=SOFT)
        else:
            parts = [(curves[curves["column"] == v], v in classifier.numeric_columns_, labels[v]) for v in name]
            mesh = _draw_pair(ax, pairs[name][:, :, classes.index(c)], parts, largest or 1.0)
            ax.set_title(f"{labels[name[0]]}, {labels[name[1]]}" + (f": {c}" if len(shown) > 1 else ""),
                         fontsize=FONT, color=INK, loc="left", parse_math=False)  # fmt: skip
    if mesh is not None:
        bar = figure.colorbar(mesh, ax=list(axes.flat), shrink=min(1.0, 1.6 / n_rows), aspect=25, pad=0.02)
        bar.set_label("evidence of pairs (nats)", fontsize=FONT - 1, color=SOFT)
        bar.ax.tick_params(labelsize=FONT - 2)
    for ax in axes.flat[len(panels) :]:
        ax.remove()
    handles = [
        plt.Line2D([], [], color=SERIES[k % len(SERIES)], linestyle=DASHES[k % len(DASHES)], label=str(c))
        for k, c in enumerate(shown)
    ]
    heading = title or f"evidence for {classifier.target_name_}" + (f" = {shown[0]}" if len(shown) == 1 else "")
    figure.suptitle(heading, fontsize=FONT + 2, color=INK)
    if len(shown) > 1:
        figure.legend(
            handles=handles, loc="outside lower center", ncol=min(len(handles), 6), frameon=False, fontsize=FONT - 1
        )
    if path is not None:
        with replacing(path) as file, reading("path", path, "the path of a picture, such as 'terms.png'"):
            figure.savefig(file, format=path.suffix[1:], dpi=150)
    return figure


def _draw_column(ax, part, classes, label, numeric):
    evidence, shares = part[classes].to_numpy(), part["share"].to_numpy()
    reach = 2 * np.nan_to_num(part[[f"{c} error" for c in classes]].to_numpy())
    bounds = _bounds(part) if numeric else np.arange(len(part) + 1) - 0.5
    top = max(np.abs(evidence).max(initial=0.0), 0.1) * 1.1
    top = min(
        max(top, (np.abs(evidence) + reach).max(initial=0.0) * 1.05), 3 * top
    )  # a band stays inside, unless it dwarfs all
    heights = shares / np.diff(bounds) if numeric else shares
    heights = np.minimum(heights, 3 * np.median(heights[heights > 0])) if (heights > 0).any() else heights
    heights = heights / max(heights.max(initial=0.0), 1e-300) * top * 0.5
    floor = -top * 1.6
    middles, widths = (bounds[1:] + bounds[:-1]) / 2, np.diff(bounds) * (1 if numeric else 0.8)
    ax.bar(middles, heights, widths, bottom=floor, color=PALE)
    ax.axhline(0, color=RULE, linewidth=0.8)
    for k in range(evidence.shape[1]):
        style = {"color": SERIES[k % len(SERIES)], "linestyle": DASHES[k % len(DASHES)], "linewidth": 1.5}
        low, high = np.clip(evidence[:, k] - reach[:, k], -top, top), np.clip(evidence[:, k] + reach[:, k], -top, top)
        if numeric:
            ax.stairs(high, bounds, baseline=low, fill=True, color=style["color"], alpha=0.15, linewidth=0)
            ax.stairs(evidence[:, k], bounds, baseline=None, **style)
        else:
            ax.bar(middles, high - low, widths, bottom=low, color=style["color"], alpha=0.15)
            ax.hlines(evidence[:, k], bounds[:-1] + 0.1, bounds[1:] - 0.1, **style)
    if not numeric:
        states = list(map(str, part["bin"]))
        texts = short_labels(states, 10)
        few = len(states) <= 12
        ax.set_xticks(range(len(states)) if few else [], [texts[s] for s in states] if few else [])
        if few and sum(len(texts[s]) for s in states) > 34:
            ax.tick_params(axis="x", labelrotation=30)
    ax.set_ylim(floor, top)
    ax.set_title(label, fontsize=FONT, color=INK, loc="left", parse_math=False)
    bare(ax)


def _pair_tables(classifier):
    """Tables of what pairs add, {(first, second): (n_bins, n_bins, n_classes)}, less the mean over the classes, in both orders."""
    found = {}
    for (first, second), cells in classifier.term_maps().groupby(["first", "second"], sort=False):
        table = cells[list(classifier.classes_)].to_numpy(dtype=float)
        table = table.reshape(cells["first bin"].nunique(), -1, len(classifier.classes_))
        found[first, second], found[second, first] = table, table.swapaxes(0, 1)
    return found


def _draw_pair(ax, table, parts, largest):
    """A heat map: bins of the first column from left to right, of the second upwards."""
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("evidence", [VERMILION, "white", BLUE])
    edges = [_bounds(part) if numeric else np.arange(len(part) + 1) - 0.5 for part, numeric, _ in parts]
    mesh = ax.pcolormesh(*edges, table.T, cmap=colours, vmin=-largest, vmax=largest, rasterized=True)
    for (part, numeric, label), axis in zip(parts, (ax.xaxis, ax.yaxis)):
        axis.set_label_text(label, fontsize=FONT - 1, color=SOFT, parse_math=False)
        if not numeric:
            states = [state_text(state) for state in part["bin"]]
            few, texts = len(states) <= 12, short_labels(states, 10)
            axis.set_ticks(range(len(states)) if few else [], [texts[s] for s in states] if few else [])
    bare(ax)
    return mesh


def _bounds(part):
    """Edges of the bins, the open ones closed at the width of their neighbours."""
    inner = part["to"].to_numpy()[:-1]
    if len(inner) == 0:
        return np.array([0.0, 1.0])
    width = (inner[-1] - inner[0]) / max(len(inner) - 1, 1) or 1.0
    return np.concatenate([[inner[0] - width], inner, [inner[-1] + width]])


@fill(drawn=DRAWN)
def plot_evidence(
    evidence: Any,
    *,
    log_odds: tuple[Any, Any] | None = None,
    top: int = 20,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw the evidence of each column for one class against another in one row, the strongest on top.

    Bars to the right (blue) speak for the first class, hatched bars to the left (vermilion) for the second; the numbers are nats,
    and their sum, below the picture, is the log odds.

    Parameters
    ----------
    evidence : Series or DataFrame
        What ``explain(row, log_odds=(a, b))`` or ``explain(row)`` of a classifier or clusterer returns.
    log_odds : (a, b), optional
        The two classes, where `evidence` is a table of all; None takes the two most probable ones.
    top : int, default=20
        Draw the strongest terms; the others are summed up in the last line.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_evidence
    >>> evidence = pd.DataFrame({"no": [-0.7, -2.3], "yes": [-0.7, -0.1]}, index=["(prior)", "smoker"])
    >>> ax = plot_evidence(evidence)
    >>> [text.get_text() for text in ax.get_yticklabels()], ax.get_xlabel()
    (['smoker', '(prior)'], 'nats for yes, against no')
    """
    check_arguments(locals(), top=Integer(1), title=TITLE)
    with reading("log_odds", log_odds, "two of the classes"):
        log_odds = None if log_odds is None else (*log_odds,)
        if log_odds is not None and len(log_odds) != 2:
            raise ValueError(f"there are {len(log_odds)}")
    with reading("evidence", evidence, "what explain(row) of a classifier or clusterer returns"):
        odds, names = _odds(evidence, log_odds)
        odds = odds.astype(float)
    if odds.empty or odds.isna().any():
        raise ValueError("evidence holds NaN, or nothing; pass what explain(row) of a classifier or clusterer returns")
    order = np.argsort(-np.abs(odds.to_numpy(dtype=float)), kind="stable")
    shown = odds.iloc[order[:top]]
    texts = short_labels(shown.index, 30)
    values, labels = [float(x) for x in shown], [texts[name] for name in shown.index]
    rest = order[top:]
    if len(rest):
        values.append(float(odds.iloc[rest].sum()))
        labels.append(f"{len(rest)} weaker ones together")
    finite = [abs(x) for x in values if np.isfinite(x)]
    longest = max(finite, default=0.0) or 1.0
    left = max(text_size(text)[0] for text in labels)
    ax = new_axes(ax, left + 4.2, 0.25 * len(values) + 0.9 + 0.3 * bool(title))
    for y, x in enumerate(values):
        length = x if np.isfinite(x) else float(np.copysign(1.15 * longest, x))
        is_for = x >= 0
        ax.barh(y, length, 0.7, color=BLUE if is_for else "white", edgecolor=BLUE if is_for else VERMILION,
                hatch=None if is_for else "////", linewidth=0.8, zorder=2)  # fmt: skip
        text = f"{x:+.2f}" if np.isfinite(x) else ("+∞" if is_for else "−∞")
        ax.annotate(text, (length, y), xytext=(3 if is_for else -3, 0), textcoords="offset points", va="center",
                    ha="left" if is_for else "right", fontsize=FONT - 2, color=INK)  # fmt: skip
    ax.axvline(0, color=SOFT, linewidth=0.8, zorder=3)
    low, high = min(0.0, *values, key=_bounded(longest)), max(0.0, *values, key=_bounded(longest))
    low, high = (float(np.clip(x, -1.15 * longest, 1.15 * longest)) for x in (low, high))
    ax.set_xlim(low - 0.22 * (high - low or 1), high + 0.22 * (high - low or 1))
    bare(ax, "x", f"nats for {names[0]}, against {names[1]}", parse_math=False)
    name_rows(ax, labels, FONT - 1)
    total = float(odds.sum())
    if np.isfinite(total):
        note_text = f"together {total:+.2f}: {names[0]} is {_times(abs(total))} times "
        note_text += f"{'more' if total >= 0 else 'less'} probable than {names[1]}"
        note(ax, note_text, shift=(0, -34))
    return titled(ax, title)


def _times(total):
    ratio = np.exp(min(total, 700.0))
    if ratio < 10:
        return f"{ratio:.2g}"
    return f"{ratio:,.0f}" if ratio < 1e6 else f"more than {10 ** int(np.log10(ratio)):.0e}"


def _bounded(longest):
    return lambda x: float(np.clip(x, -2 * longest, 2 * longest))


def _odds(evidence, log_odds):
    """(Series of log odds, the two names)."""
    if isinstance(evidence, pd.Series):
        words = str(evidence.name or "").removeprefix("log odds of ").split(" against ")
        names = tuple(words) if len(words) == 2 else ("the first", "the second")
        return evidence, names if log_odds is None else tuple(log_odds)
    if not isinstance(evidence, pd.DataFrame) or evidence.shape[1] < 2 or isinstance(evidence.index, pd.MultiIndex):
        raise ValueError("plot_evidence draws one row: pass what explain(row) returns, not that of many rows")
    if log_odds is None:
        log_odds = tuple(evidence.sum().sort_values(ascending=False, kind="stable").index[:2])
    unknown = [name for name in log_odds if not is_hashable(name) or name not in evidence.columns]
    if unknown:
        raise ValueError(f"log_odds names {unknown[0]!r}; the classes are {', '.join(map(repr, evidence.columns[:6]))}")
    first, second = (evidence[name].to_numpy(dtype=float) for name in log_odds)
    with np.errstate(invalid="ignore"):
        odds = np.where(np.isneginf(first) & np.isneginf(second), 0.0, first - second)
    return pd.Series(odds, index=evidence.index), tuple(log_odds)
