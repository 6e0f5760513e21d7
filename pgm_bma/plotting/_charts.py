"""Pictures of numbers: arc posteriors, relevance, traces, starts, intervals, calibration."""

import numpy as np
import pandas as pd

from ._networks import as_graph
from ._style import BLUE, FONT, INK, ORANGE, RULE, SERIES, SKY, SOFT, VERMILION, bare, new_axes, number, short_labels

MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]


def plot_arc_posteriors(posteriors, *, title=None, ax=None):
    """Heat map of arc posteriors: rows are tails, columns heads, dark is 0 and yellow 1.

    Parameters
    ----------
    posteriors : square DataFrame, networkx graph with the attribute ``posterior`` on its arcs, or an estimator that has
        `edge_graph_`
    title, ax : title, and matplotlib axes or None for a new figure

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_arc_posteriors
    >>> ax = plot_arc_posteriors(pd.DataFrame([[0.0, 0.9], [0.1, 0.0]], ["a", "b"], ["a", "b"]))
    >>> [text.get_text() for text in ax.texts]
    ['0.90', '0.10']
    """
    table = _posterior_table(posteriors)
    values = table.to_numpy(dtype=float).copy()
    if np.nanmin(values, initial=0.0) < 0 or np.nanmax(values, initial=0.0) > 1 + 1e-9:
        raise ValueError("arc posteriors must lie between 0 and 1")
    rows, columns = list(table.index), list(table.columns)
    same = np.equal.outer(np.array(rows, dtype=object), np.array(columns, dtype=object)).astype(bool)
    values[same] = np.nan
    n = max(len(rows), len(columns))
    small = n <= 12
    cell = 0.42 if small else max(0.16, 0.34 - 0.004 * n)
    ax = new_axes(ax, cell * len(columns) + 2.2, cell * len(rows) + 1.4)
    import matplotlib

    colours = matplotlib.colormaps["viridis"].with_extremes(bad="#E6E6E6")
    image = ax.imshow(values, cmap=colours, vmin=0, vmax=1, aspect="equal", interpolation="nearest")
    size = FONT - 1 if small else max(5.0, min(FONT - 1, cell * 72 * 0.75))
    for axis, names, turn in ((ax.xaxis, columns, 90), (ax.yaxis, rows, 0)):
        labels = short_labels(names, 22)
        axis.set_ticks(range(len(names)))
        axis.set_ticklabels([labels[v] for v in names], fontsize=size, rotation=turn, parse_math=False)
    ax.tick_params(length=0)
    ax.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=0.6 if small else 0.25)
    ax.tick_params(which="minor", length=0)
    ax.set_xlabel("to", fontsize=FONT)
    ax.set_ylabel("from", fontsize=FONT)
    if small:
        for i, j in zip(*np.nonzero(np.isfinite(values))):
            ink = "white" if values[i, j] < 0.6 else "black"
            ax.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize=FONT - 2, color=ink)
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 3.0 / (cell * len(rows))), pad=0.02)
    bar.set_label("posterior of the arc", fontsize=FONT - 1)
    bar.ax.tick_params(labelsize=FONT - 2)
    return _titled(ax, title)


def plot_relevance(relevance, *, top=60, threshold=None, label=None, title=None, ax=None):
    """Ranking of variables as bars, the most relevant on top.

    Parameters
    ----------
    relevance : Series (or dict) variable -> number, or a fitted estimator with `arc_posterior_`
    top : show at most this many
    threshold : draws a line there; bars below it are paler
    label : name of the number; None takes the name of the Series
    title, ax : title, and matplotlib axes or None for a new figure

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_relevance
    >>> ax = plot_relevance(pd.Series({"x": 0.2, "y": 0.9}))
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['y', 'x']
    """
    if hasattr(relevance, "arc_posterior_") and not hasattr(relevance, "items"):
        relevance, label = relevance.arc_posterior_, label or "posterior of the arc"
    series = pd.Series(relevance).astype(float)
    ranked = series.dropna().sort_values(ascending=False, kind="stable")
    shown = ranked.iloc[:top]
    ax = new_axes(ax, 6.0, 0.9 + 0.2 * len(shown))
    y = np.arange(len(shown))
    colours = [BLUE if threshold is None or value >= threshold else "#B9D3E6" for value in shown]
    ax.barh(y, shown.to_numpy(), color=colours, height=0.72)
    labels = short_labels(shown.index, 28)
    ax.set_yticks(y, [labels[v] for v in shown.index], fontsize=_tick_size(ax, len(shown)), parse_math=False)
    ax.invert_yaxis()
    ax.set_ylim(len(shown) - 0.4, -0.6)
    bare(ax, "x")
    ax.tick_params(axis="y", length=0, labelsize=_tick_size(ax, len(shown)))
    ax.set_xlabel(label or (str(series.name) if series.name is not None else "relevance"), fontsize=FONT)
    if threshold is not None:
        ax.axvline(threshold, color=VERMILION, linewidth=1.2, linestyle=(0, (4, 2)))
    if len(shown) < len(ranked):
        ax.set_title(f"{len(shown)} of {len(ranked)} variables", fontsize=FONT - 1, color=SOFT, loc="right")
    return _titled(ax, title)


def plot_score_traces(traces, *, burn_in=None, label="log score of the order", names=None, title=None, ax=None):
    """Scores of the chains along their iterations; chains that have not met are seen at once.

    Parameters
    ----------
    traces : (n_chains, n_iterations) array, one sequence, or a list or dict of sequences
    burn_in : number of first iterations that are discarded; they are shaded
    label : what the score is      names : of the chains
    title, ax : title, and matplotlib axes or None for a new figure

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from pgm_bma.plotting import plot_score_traces
    >>> ax = plot_score_traces([[-9.0, -7.0, -6.5], [-8.0, -6.6, -6.4]], burn_in=1)
    >>> [line.get_label() for line in ax.lines]
    ['chain 1', 'chain 2']
    """
    if isinstance(traces, dict):
        names, traces = list(traces), list(traces.values())
    traces = list(traces)
    if traces and np.ndim(traces[0]) == 0:
        traces = [traces]
    traces = [np.asarray(trace, dtype=float) for trace in traces]
    names = [f"chain {i + 1}" for i in range(len(traces))] if names is None else list(names)
    ax = new_axes(ax, 7.5, 3.6)
    for i, (trace, name) in enumerate(zip(traces, names)):
        steps, values = _thinned(trace)
        style = "-" if i < len(SERIES) else (0, (4, 1.5))
        ax.plot(steps, values, color=SERIES[i % len(SERIES)], linewidth=1.0, linestyle=style, label=name, alpha=0.9)
    longest = max((len(trace) for trace in traces), default=1)
    if burn_in:
        ax.axvspan(0, min(burn_in, longest), color=RULE, alpha=0.6, linewidth=0, zorder=0)
        ax.annotate(
            "burn-in", (0, 1), xycoords=("data", "axes fraction"), xytext=(4, -4), textcoords="offset points",
            va="top", fontsize=FONT - 1.5, color=SOFT,
        )  # fmt: skip
    ax.set_xlim(0, max(longest - 1, 1))
    ax.set_xlabel("iteration", fontsize=FONT)
    ax.set_ylabel(label, fontsize=FONT)
    bare(ax, "y")
    ax.ticklabel_format(style="plain", useOffset=False)
    if 1 < len(traces) <= 16:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=FONT - 1.5, handlelength=1.6)
    return _titled(ax, title)


def plot_starts(starts, *, score="score", label=None, title=None, ax=None):
    """Scores of all starts from best to worst: how often the best was found again, and which starts collapsed.

    Parameters
    ----------
    starts : DataFrame such as `starts_`, with a column of scores and, where present, the columns collapsed, converged and
        weight; or a sequence of scores; or a fitted estimator with `starts_`
    score : the column of the scores
    label : name of the score      title, ax : title, and matplotlib axes or None for a new figure

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_starts
    >>> ax = plot_starts(pd.DataFrame({"score": [-5.0, -4.0, -4.0], "collapsed": [True, False, False]}))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['start', 'collapsed']
    """
    starts = getattr(starts, "starts_", starts)
    table = (
        starts.copy() if isinstance(starts, pd.DataFrame) else pd.DataFrame({score: np.asarray(starts, dtype=float)})
    )
    if score not in table:
        raise ValueError(f"starts has no column {score!r}; its columns are {list(table.columns)}")
    table = table.sort_values(score, ascending=False, kind="stable").reset_index(drop=True)
    values = table[score].to_numpy(dtype=float)
    ax = new_axes(ax, max(5.0, min(12.0, 3.0 + 0.12 * len(values))), 3.4)
    rank = np.arange(1, len(values) + 1)
    collapsed = _flags(table, "collapsed", False)
    unfinished = ~_flags(table, "converged", True) & ~collapsed
    finite = np.isfinite(values)
    best = values[finite].max() if finite.any() else 0.0
    ax.axhline(best, color=SOFT, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
    size = 34 if len(values) <= 80 else 14
    groups = [
        (~collapsed & ~unfinished, "start", {"color": BLUE, "marker": "o"}),
        (unfinished, "not converged", {"color": ORANGE, "marker": "^"}),
        (collapsed, "collapsed", {"facecolors": "white", "edgecolors": VERMILION, "marker": "X"}),
    ]
    for mask, name, style in groups:
        mask = mask & finite
        if mask.any():
            ax.scatter(rank[mask], values[mask], s=size, linewidth=1.0, label=name, zorder=3, **style)
    again = int((np.abs(values[finite] - best) <= 1e-6 * max(1.0, abs(best))).sum())
    ax.annotate(
        f"best {number(best)}, found {again} {'time' if again == 1 else 'times'} in {len(values)} starts", (0, 1),
        xycoords="axes fraction", xytext=(0, 4), textcoords="offset points", va="bottom", fontsize=FONT - 1, color=SOFT,
    )  # fmt: skip
    ax.set_xlim(0.3, len(values) + 0.7)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("rank of the start", fontsize=FONT)
    ax.set_ylabel(label or str(score).replace("_", " "), fontsize=FONT)
    ax.ticklabel_format(axis="y", style="plain", useOffset=False)
    bare(ax, "y")
    if collapsed.any() or unfinished.any():
        ax.legend(frameon=False, fontsize=FONT - 1, loc="best")
    return _titled(ax, title, pad=18)


def plot_bound_collapse(lower, upper, collapsed, *, labels=None, reference=None, title=None, ax=None):
    """Intervals that bound probabilities under missing data, with the point they collapse to.

    Parameters
    ----------
    lower, upper, collapsed : arrays of equal length (any shape, read in order)
    labels : one per interval
    reference : values to compare with, e.g. the true ones or those of EM
    title, ax : title, and matplotlib axes or None for a new figure

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from pgm_bma.plotting import plot_bound_collapse
    >>> ax = plot_bound_collapse([0.1, 0.4], [0.5, 0.9], [0.3, 0.7], labels=["yes", "no"])
    >>> [text.get_text() for text in ax.get_yticklabels()]
    ['yes', 'no']
    """
    lower, upper, collapsed = (np.asarray(part, dtype=float).ravel() for part in (lower, upper, collapsed))
    if not len(lower) == len(upper) == len(collapsed):
        raise ValueError(f"lower, upper and collapsed have lengths {len(lower)}, {len(upper)} and {len(collapsed)}")
    labels = [str(i + 1) for i in range(len(lower))] if labels is None else [str(v) for v in labels]
    if len(labels) != len(lower):
        raise ValueError(f"{len(labels)} labels for {len(lower)} intervals")
    ax = new_axes(ax, 6.5, 1.2 + 0.21 * len(lower))
    y = np.arange(len(lower))
    ax.hlines(y, lower, upper, color=SKY, linewidth=5, alpha=0.75, zorder=2, label="bounds")
    ax.scatter(collapsed, y, s=26, color=BLUE, zorder=4, label="collapsed")
    if reference is not None:
        ax.scatter(
            np.ravel(reference), y, s=34, marker="|", linewidth=1.8, color=VERMILION, zorder=5, label="reference"
        )
    ax.set_yticks(y, [text if len(text) <= 34 else text[:33] + "…" for text in labels], parse_math=False)
    ax.set_ylim(len(lower) - 0.4, -0.6)
    ax.set_xlim(-0.01, 1.01)
    bare(ax, "x")
    ax.tick_params(axis="y", length=0, labelsize=_tick_size(ax, len(lower)))
    ax.set_xlabel("probability", fontsize=FONT)
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=3, frameon=False, fontsize=FONT - 1)
    return _titled(ax, title, pad=22)


def plot_calibration(y_true, probabilities, *, classes=None, positive=None, n_bins=10, title=None, ax=None):
    """Reliability diagram: how often predictions of a given probability come true, with standard errors.

    Parameters
    ----------
    y_true : (n_samples,) classes
    probabilities : (n_samples, n_classes) as from `predict_proba`, (n_samples,) for the positive class, or a dict
        name -> such an array to compare classifiers
    classes : the classes of the columns, as in `classes_`; None takes the sorted values of `y_true`
    positive : the class whose probability is judged; None judges the predicted class of every row (two columns or a
        single one: the last class)
    n_bins : number of equal bins of the probability
    title, ax : title, and matplotlib axes or None for a new figure

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from pgm_bma.plotting import plot_calibration
    >>> ax = plot_calibration([0, 1, 1, 0], [0.1, 0.8, 0.9, 0.3], n_bins=2)
    >>> ax.get_xlabel()
    'predicted probability of 1'
    """

    y_true = np.asarray(y_true)
    classes = list(np.unique(y_true)) if classes is None else list(classes)
    several = isinstance(probabilities, dict)
    given = probabilities if several else {"": probabilities}
    ax = new_axes(ax, 4.6, 4.6)
    ax.plot([0, 1], [0, 1], color=SOFT, linewidth=1.0, linestyle=(0, (1, 2)), zorder=1)
    for i, (name, values) in enumerate(given.items()):
        chosen, happened, what = _judged(y_true, np.asarray(values, dtype=float), classes, positive)
        middle, share, error, weight = _bins(chosen, happened, n_bins)
        gap = float(np.sum(weight * np.abs(share - middle)))
        colour = SERIES[i % len(SERIES)]
        ax.errorbar(
            middle, share, yerr=error, color=colour, marker=MARKERS[i % len(MARKERS)], markersize=5, linewidth=1.4,
            elinewidth=0.9, capsize=2, zorder=3, label=f"{name + ': ' if name else ''}mean gap {gap:.3f}",
        )  # fmt: skip
        if not several:
            ax.bar(
                middle,
                weight * 0.25,
                width=0.6 / n_bins,
                color=RULE,
                zorder=0,
                label="share of rows (a quarter of its size)",
            )
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    bare(ax, "both")
    ax.set_xlabel(f"predicted probability of {what}", fontsize=FONT)
    ax.set_ylabel("how often it came true", fontsize=FONT)
    ax.legend(frameon=False, fontsize=FONT - 1, loc="upper left")
    return _titled(ax, title)


def _titled(ax, title, pad=6):
    if title:
        ax.set_title(title, fontsize=FONT + 2, color=INK, pad=pad)
    return ax


def _tick_size(ax, n_rows):
    """Font size at which n rows of text fit the height of the axes."""
    height = ax.figure.get_size_inches()[1] * ax.get_position().height
    return float(np.clip(height * 72 / max(n_rows, 1) * 0.72, 4.0, FONT - 1))


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


def _thinned(trace, most=4000):
    """Steps and values of a long trace, each stretch shown by its extremes so that no spike is lost."""
    if len(trace) <= most:
        return np.arange(len(trace)), trace
    pieces = np.array_split(np.arange(len(trace)), most // 2)
    keep = np.array(sorted({i for p in pieces for i in (p[np.argmin(trace[p])], p[np.argmax(trace[p])])}))
    return keep, trace[keep]


def _flags(table, column, otherwise):
    if column not in table:
        return np.full(len(table), otherwise)
    return table[column].to_numpy(dtype=bool)


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
    best = values.argmax(axis=1)
    return (
        values[np.arange(len(values)), best],
        np.array([classes[b] == y for b, y in zip(best, y_true)]),
        "the predicted class",
    )


def _bins(chosen, happened, n_bins):
    """Mean probability, share that came true, its standard error and the share of rows, for every bin that is used."""
    where = np.clip((chosen * n_bins).astype(int), 0, n_bins - 1)
    count = np.bincount(where, minlength=n_bins)
    used = count > 0
    middle = np.bincount(where, chosen, n_bins)[used] / count[used]
    share = np.bincount(where, happened.astype(float), n_bins)[used] / count[used]
    smooth = (share * count[used] + 1) / (count[used] + 2)  # no zero error for bins of one kind
    error = np.sqrt(smooth * (1 - smooth) / count[used])
    error = np.vstack([np.minimum(error, share), np.minimum(error, 1 - share)])
    return middle, share, error, count[used] / count.sum()
