"""Pictures of numbers: arc posteriors, relevance, intervals, calibration."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import (
    LARGEST,
    NAME,
    TEXT,
    Integer,
    Number,
    Optional,
    as_numbers,
    brief,
    check,
    check_arguments,
    reading,
)
from pgm_bma.plotting._networks import as_graph
from pgm_bma.plotting._profiles import mutual_information
from pgm_bma.plotting._style import (
    BLUE,
    DRAWN,
    FONT,
    PALE,
    RULE,
    SERIES,
    SKY,
    SOFT,
    TITLE,
    VERMILION,
    bare,
    inches,
    name_rows,
    new_axes,
    number,
    shade,
    short_labels,
    text_size,
    titled,
)

INVISIBLE = 1e-3  # a bar of this share of the longest cannot be seen
FLAT = 1e-3  # values this near to each other are no ranking
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]


@fill(drawn=DRAWN)
def plot_arc_posteriors(posteriors: Any, *, title: str | None = None, ax: Any = None) -> Any:
    """Heat map of arc posteriors: rows are tails, columns heads, dark is 0 and yellow 1.

    Parameters
    ----------
    posteriors : DataFrame, networkx graph or fitted estimator
        Square table (rows are tails, columns heads), a graph with the attribute ``posterior`` on its arcs, or an
        estimator that has `edge_graph_`.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_arc_posteriors
    >>> ax = plot_arc_posteriors(pd.DataFrame([[0.0, 0.9], [0.1, 0.0]], ["a", "b"], ["a", "b"]))
    >>> [text.get_text() for text in ax.texts]
    ['0.90', '0.10']
    """
    check("title", title, TITLE)
    with reading(
        "posteriors", posteriors, "a table of probabilities, an estimator or a graph whose arcs have posteriors"
    ):
        table = _posterior_table(posteriors)
        values = table.to_numpy(dtype=float).copy()
    if np.nanmin(values, initial=0.0) < 0 or np.nanmax(values, initial=0.0) > 1 + 1e-9:
        raise ValueError("arc posteriors must lie between 0 and 1")
    rows, columns = list(table.index), list(table.columns)
    if not rows or not columns:
        raise ValueError(f"posteriors has {len(rows)} rows and {len(columns)} columns; there is no arc to show")
    with reading("posteriors", posteriors, "a table whose rows and columns are named by variables"):
        place = {name: j for j, name in enumerate(columns)}
        itself = [(i, place[name]) for i, name in enumerate(rows) if name in place]
        values[tuple(np.array(itself, dtype=int).reshape(-1, 2).T)] = np.nan
    n = max(len(rows), len(columns))
    small = n <= 12
    cell = 0.42 if small else max(0.16, 0.34 - 0.004 * n)
    labels = short_labels(dict.fromkeys([*rows, *columns]), 22)
    size = FONT - 1 if small else max(5.0, min(FONT - 1, cell * 72 * 0.75))
    longest = max(text_size(text, size)[0] for text in labels.values())
    given = ax is not None
    ax = new_axes(ax, cell * len(columns) + longest + 1.6, cell * len(rows) + longest + 0.8 + 0.3 * bool(title))
    import matplotlib

    colours = matplotlib.colormaps["viridis"].with_extremes(bad="#E6E6E6")
    image = ax.imshow(values, cmap=colours, vmin=0, vmax=1, aspect="equal", interpolation="nearest")
    for axis, names, turn, room in ((ax.xaxis, columns, 90, 0), (ax.yaxis, rows, 0, 1)):
        every = 1
        if given:  # where the axes are small, smaller letters, then only every second, third ... name
            fitting = inches(ax)[room] * 72 / len(names) * 0.75
            size, every = min(FONT - 1, max(5.0, fitting)), math.ceil(5.0 / fitting)
        axis.set_ticks(range(0, len(names), every))
        texts = [labels[v] for v in names[::every]]
        axis.set_ticklabels(texts, fontsize=size, rotation=turn, parse_math=False)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=0.6 if small else 0.25)
    ax.tick_params(which="minor", length=0)
    ax.set_xlabel("to", fontsize=FONT)
    ax.set_ylabel("from", fontsize=FONT)
    if small:
        for i, j in np.argwhere(np.isfinite(values)):
            ink = "white" if values[i, j] < 0.6 else "black"
            ax.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize=FONT - 2, color=ink)
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 3.0 / (cell * len(rows))), pad=0.02)
    bar.set_label("posterior of the arc", fontsize=FONT - 1)
    bar.ax.tick_params(labelsize=FONT - 2)
    return titled(ax, title)


@fill(drawn=DRAWN)
def plot_relevance(
    relevance: Any,
    *,
    posterior: Any = None,
    top: int = 60,
    threshold: float | None = None,
    label: str | None = None,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Ranking of variables as bars, the most relevant on top: the length is how much, the shade how surely.

    Of an estimator the length is the dependence on the class or cluster (`cluster_dependence_`, I_P of EMA eq. 16, where
    there is one, else the mutual information in the fitted network) and the shade the posterior of the arc: posteriors alone
    would not rank, since most are near one. Variables at zero are cut off, and values that are all equal are said to be no
    ranking.

    Parameters
    ----------
    relevance : Series, dict or fitted estimator
        Variable -> number, or an estimator with `arc_posterior_`, `class_arc_posterior_` or `cluster_dependence_`.
    posterior : Series or dict, optional
        Variable -> probability that it is relevant at all, shown as shade; None takes that of the estimator.
    top : int, default=60
        Show at most this many.
    threshold : float, optional
        Bars of a smaller posterior are hollow; without posteriors a line is drawn there, and bars below it are paler.
    label : str, optional
        Name of the number; None takes the name of the Series.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_relevance
    >>> ax = plot_relevance(pd.Series({"x": 0.2, "y": 0.9}))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['y', 'x']
    """
    number_or_none = Optional(Number(-LARGEST))
    check_arguments(locals(), top=Integer(1), threshold=number_or_none, label=Optional(TEXT), title=TITLE)
    series, posterior, label = _relevance_parts(relevance, posterior, label)
    ranked = series.dropna().sort_values(ascending=False, kind="stable")
    if not len(ranked):
        raise ValueError("there is nothing to rank: no variable has a number")
    largest, is_flat = float(ranked.abs().max()), len(ranked) > 1 and np.ptp(ranked) <= FLAT * ranked.abs().max()
    shown, remark = ranked.iloc[:top], ""
    if not is_flat and ranked.iloc[-1] >= 0:
        shown = shown[shown > INVISIBLE * largest]
    if ax is not None:  # only as many as can be read
        shown = shown.iloc[: max(1, int(inches(ax)[1] * 72 / 7.5))]
    rest = ranked.iloc[len(shown) :]
    if is_flat:
        remark = f"\nall {len(ranked)} are {number(ranked.iloc[0])}: no ranking"
    elif len(rest) and rest.iloc[0] > INVISIBLE * largest:
        remark = f"\n{len(shown)} of {len(ranked)} variables"
    elif len(rest):
        names = "" if len(rest) > 3 else f": {', '.join(short_labels(rest.index, 28).values())}"
        remark = f"\n{len(rest)} more below {INVISIBLE * largest:.1g}{names}"
    ax = new_axes(ax, 6.0, 0.9 + 0.2 * len(shown) + 0.2 * bool(remark))
    y = np.arange(len(shown))
    sure = None if posterior is None else posterior.reindex(shown.index).to_numpy(dtype=float)
    ax.barh(y, shown.to_numpy(), height=0.72, **_bar_colours(shown, sure, threshold, is_flat))
    labels = short_labels(shown.index, 28)
    bare(ax, "x", f"{label}{remark}", parse_math=False)
    name_rows(ax, [labels[v] for v in shown.index])  # the best on top
    if sure is not None:
        _shade_legend(ax, sure, threshold)
    elif threshold is not None:
        ax.axvline(threshold, color=VERMILION, linewidth=1.2, linestyle=(0, (4, 2)))
    return titled(ax, title)


def _relevance_parts(relevance, posterior, label):
    """(numbers by variable, posteriors by variable or None, name of the numbers)."""
    if not isinstance(relevance, pd.Series) and not isinstance(relevance, dict):
        estimator = relevance
        found = [getattr(estimator, name, None) for name in ("arc_posterior_", "class_arc_posterior_")]
        posterior = next((p for p in found if p is not None), None) if posterior is None else posterior
        relevance = getattr(estimator, "cluster_dependence_", None)
        root = getattr(estimator, "target_name_", getattr(estimator, "cluster_name", None))
        if relevance is None and root is not None:
            columns = [v for v in estimator.model_.nodes() if v != root]
            relevance = pd.Series({v: mutual_information(estimator.model_, v, root) for v in columns}, dtype=float)
        if relevance is None:
            raise ValueError(
                f"cannot rank variables of {brief(estimator, 60)}; pass a Series or dict variable -> number"
            )
        label = label or f"dependence on {root} (nats)"
    series = _numbers("relevance", relevance)
    label = label or (str(series.name) if series.name is not None else "relevance")
    posterior = None if posterior is None else _numbers("posterior", posterior)
    if posterior is None or posterior.isna().all():
        return series, None, label
    if posterior.min() < 0 or posterior.max() > 1 + 1e-9:
        raise ValueError("posterior= holds a number outside 0..1; pass probabilities")
    return series, posterior, label


def _numbers(name, given):
    with reading(name, given, "a Series or dict variable -> number"):
        return pd.Series(given).astype(float)


def _bar_colours(shown, sure, threshold, is_flat):
    if is_flat:
        return {"color": RULE}
    if sure is None:
        return {"color": [BLUE if threshold is None or value >= threshold else PALE for value in shown]}
    hollow = np.zeros(len(sure), dtype=bool) if threshold is None else ~(sure >= threshold)
    faces = ["white" if empty else shade(p) for p, empty in zip(sure, hollow)]
    return {
        "color": faces,
        "edgecolor": [BLUE if empty else face for face, empty in zip(faces, hollow)],
        "linewidth": 0.8,
    }


def _shade_legend(ax, sure, threshold):
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=shade(p), label=f"{p:g}") for p in (1.0, 0.5, 0.0)]
    if threshold is not None and (sure < threshold).any():
        handles.append(Patch(facecolor="white", edgecolor=BLUE, label=f"below {threshold:g}"))
    ax.legend(
        handles=handles, title="posterior of the arc", fontsize=FONT - 2, title_fontsize=FONT - 2, loc="lower right",
        framealpha=0.9, edgecolor="white",
    )  # fmt: skip


@fill(drawn=DRAWN)
def plot_bound_collapse(
    lower: Any,
    upper: Any,
    collapsed: Any,
    *,
    labels: Sequence | None = None,
    reference: Any = None,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Intervals that bound probabilities under missing data, with the point they collapse to.

    Parameters
    ----------
    lower, upper, collapsed : array
        Of equal length (any shape, read in order).
    labels : sequence of str, optional
        One per interval; None numbers them.
    reference : array, optional
        Values to compare with, e.g. the true ones or those of EM.
    {drawn}

    Examples
    --------
    >>> from pgm_bma.plotting import plot_bound_collapse
    >>> ax = plot_bound_collapse([0.1, 0.4], [0.5, 0.9], [0.3, 0.7], labels=["yes", "no"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['yes', 'no']
    """
    check("title", title, TITLE)
    lower, upper, collapsed = (
        as_numbers(name, part, "one probability for each interval").ravel()
        for name, part in (("lower", lower), ("upper", upper), ("collapsed", collapsed))
    )
    if not len(lower) == len(upper) == len(collapsed):
        raise ValueError(f"lower, upper and collapsed have lengths {len(lower)}, {len(upper)} and {len(collapsed)}")
    if reference is not None:
        reference = as_numbers("reference", reference, "one probability for each interval").ravel()
        if len(reference) != len(lower):
            raise ValueError(f"reference has {len(reference)} numbers for {len(lower)} intervals")
    with reading("labels", labels, "one text for each interval"):
        labels = [str(i + 1) for i in range(len(lower))] if labels is None else [str(v) for v in labels]
    if len(labels) != len(lower):
        raise ValueError(f"{len(labels)} labels for {len(lower)} intervals")
    ax = new_axes(ax, 6.5, 1.2 + 0.21 * len(lower))
    y = np.arange(len(lower))
    ax.hlines(y, lower, upper, color=SKY, linewidth=5, alpha=0.75, zorder=2, label="bounds")
    ax.scatter(collapsed, y, s=26, color=BLUE, zorder=4, label="collapsed")
    if reference is not None:
        ax.scatter(reference, y, s=34, marker="|", linewidth=1.8, color=VERMILION, zorder=5, label="reference")
    ax.set_xlim(-0.01, 1.01)
    bare(ax, "x", "probability")
    name_rows(ax, [text if len(text) <= 34 else text[:33] + "…" for text in labels])
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=3, frameon=False, fontsize=FONT - 1)
    return titled(ax, title, pad=22)


@fill(drawn=DRAWN)
def plot_calibration(
    y_true: Any,
    probabilities: Any,
    *,
    classes: Sequence | None = None,
    positive: Any = None,
    n_bins: int = 10,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Reliability diagram: how often predictions of a given probability come true, with standard errors.

    Parameters
    ----------
    y_true : (n_samples,) array
        True classes.
    probabilities : (n_samples, n_classes) array, (n_samples,) array or dict of them
        As from `predict_proba`, or for the positive class alone; a dict name -> array compares classifiers.
    classes : sequence, optional
        The classes of the columns, as in `classes_`; None takes the sorted values of `y_true`.
    positive : class, optional
        The class whose probability is judged; None judges the predicted class of every row (two columns or a single one:
        the last class).
    n_bins : int, default=10
        Number of equal bins of the probability.
    {drawn}

    Examples
    --------
    >>> from pgm_bma.plotting import plot_calibration
    >>> ax = plot_calibration([0, 1, 1, 0], [0.1, 0.8, 0.9, 0.3], n_bins=2)
    >>> ax.get_xlabel()
    'predicted probability of 1'
    """

    check_arguments(locals(), n_bins=Integer(1, 10_000), positive=Optional(NAME), title=TITLE)
    with reading("y_true", y_true, "one class for each row"):
        y_true = np.atleast_1d(np.asarray(y_true))
        known = np.unique(y_true)
    with reading("classes", classes, "the classes in the order of the columns, or None"):
        classes = list(known) if classes is None else list(classes)
    several = isinstance(probabilities, dict)
    given = probabilities if several else {"": probabilities}
    judged = {
        name: _judged(y_true, _probabilities(values, len(y_true)), classes, positive) for name, values in given.items()
    }
    if not judged or not len(y_true):
        raise ValueError(
            f"y_true has {len(y_true)} rows, probabilities {len(judged)} entries; there is nothing to judge"
        )
    ax = new_axes(ax, 4.6, 4.6)
    ax.plot([0, 1], [0, 1], color=SOFT, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    for i, (name, (chosen, happened, _)) in enumerate(judged.items()):
        middle, share, error, weight = _bins(chosen, happened, n_bins)
        gap = float(np.sum(weight * np.abs(share - middle)))
        colour = SERIES[i % len(SERIES)]
        ax.errorbar(
            middle, share, yerr=error, color=colour, marker=MARKERS[i % len(MARKERS)], markersize=5, linewidth=1.4,
            elinewidth=0.9, capsize=2, zorder=3, label=f"{name + ': ' if name else ''}mean gap {gap:.3f}",
        )  # fmt: skip
        if not several:
            quarter = "share of rows (a quarter of its size)"
            ax.bar(middle, weight * 0.25, width=0.6 / n_bins, color=RULE, zorder=0, label=quarter)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    bare(ax, "both", f"predicted probability of {next(iter(judged.values()))[2]}", "how often it came true")
    ax.legend(framealpha=0.85, edgecolor="white", fontsize=FONT - 1, loc="best")
    return titled(ax, title)


def _posterior_table(posteriors):
    if isinstance(posteriors, pd.DataFrame):
        return posteriors
    graph = as_graph(posteriors)
    nodes = list(graph.nodes())
    table = pd.DataFrame(0.0, index=nodes, columns=nodes)
    for tail, head, data in graph.edges(data=True):
        if data.get("posterior") is None:
            raise ValueError(f"the arc {tail!r} -> {head!r} has no attribute 'posterior'")
        table.at[tail, head] = float(data["posterior"])
    return table


def _probabilities(values, n_rows):
    values = as_numbers("probabilities", values, "one probability, or one for each class, in each row")
    if values.ndim not in (1, 2) or len(values) != n_rows:
        raise ValueError(f"probabilities have shape {values.shape}; y_true has {n_rows} rows: pass a line for each")
    wrong = ~((values >= -1e-9) & (values <= 1 + 1e-9))  # sums of exponentials pass 1 by rounding
    if wrong.any():
        row = int(np.argwhere(wrong)[0][0])
        raise ValueError(f"probabilities hold {values[wrong][0]} in row {row}; pass numbers between 0 and 1")
    return values


def _judged(y_true, values, classes, positive):
    """Probabilities, whether they came true, and what they are of."""
    if values.ndim == 1:
        if len(classes) != 2 and positive is None:
            raise ValueError(f"one probability per row needs two classes, or positive=; the classes are {classes}")
        positive = classes[-1] if positive is None else positive
        return values, y_true == positive, str(positive)
    if values.shape != (len(y_true), len(classes)):
        raise ValueError(
            f"probabilities have shape {values.shape}; expected {(len(y_true), len(classes))} for {classes}"
        )
    if positive is None and len(classes) == 2:
        positive = classes[-1]
    if positive is not None:
        return values[:, classes.index(positive)], y_true == positive, str(positive)
    hits = np.array([classes[best] == y for best, y in zip(values.argmax(axis=1), y_true)])
    return values.max(axis=1), hits, "the predicted class"


def _bins(chosen, happened, n_bins):
    """Mean probability, share that came true, its standard error and the share of rows, for every bin that is used."""
    where = np.clip(chosen * n_bins, 0, n_bins - 1).astype(int)
    count = np.bincount(where, minlength=n_bins)
    used = count > 0
    middle = np.bincount(where, chosen, n_bins)[used] / count[used]
    share = np.bincount(where, happened.astype(float), n_bins)[used] / count[used]
    smooth = (share * count[used] + 1) / (count[used] + 2)  # no zero error for bins of one kind
    error = np.sqrt(smooth * (1 - smooth) / count[used])
    error = np.vstack([np.minimum(error, share), np.minimum(error, 1 - share)])
    return middle, share, error, count[used] / count.sum()
