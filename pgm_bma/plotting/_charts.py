"""Pictures of numbers: arc posteriors, relevance, intervals, calibration."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
from pgm_bma.foundation.faces.validation import (
    LARGEST,
    NAME,
    TEXT,
    Integer,
    Number,
    Optional,
    as_numbers,
    bounded,
    brief,
    check_arguments,
    reading,
)
from pgm_bma.plotting._clusters import mutual_information
from pgm_bma.plotting._drawing import (
    BLUE,
    FONT,
    ORANGE,
    PALE,
    RULE,
    SERIES,
    SOFT,
    TITLE,
    VERMILION,
    bare,
    inches,
    name_rows,
    new_axes,
    note,
    number,
    shade,
    short_labels,
    titled,
)

INVISIBLE = 5e-3  # a bar of this share of the longest cannot be seen
FLAT = 1e-3  # values this near to each other are no ranking
MARKERS = ["o", "s", "^", "D", "v", "P", "X", "*"]


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
    """Ranking of variables as bars, the most relevant on top: the length is how much, the shade how probable.

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
        below = "at 0" if rest.iloc[0] == 0 else f"below {INVISIBLE * largest:.1g}"
        remark = "\n" + textwrap.fill(f"{len(rest)} more {below}{names}", 48, break_long_words=False)
    ax = new_axes(ax, 5.4, 0.9 + 0.2 * len(shown) + 0.2 * remark.count("\n"))
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
def plot_calibration(
    y_true: Any,
    probabilities: Any,
    y: Any = None,
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
    y_true : (n_samples,) array, or fitted classifier
        True classes. As in scikit-learn's ``from_estimator``, a fitted classifier may stand here, the rows that it predicts in
        `probabilities` and their true classes in `y`.
    probabilities : (n_samples, n_classes) array, (n_samples,) array or dict of them
        As from `predict_proba`, or for the positive class alone; a dict name -> array compares classifiers.
    y : (n_samples,) array, optional
        True classes of the rows that a classifier predicts.
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

    Of a fitted classifier:

    >>> from pgm_bma import NaiveBayesClassifier, load_dataset
    >>> frame, target = load_dataset("voting")
    >>> X, y = frame.drop(columns=target), frame[target]
    >>> ax = plot_calibration(NaiveBayesClassifier().fit(X[:300], y[:300]), X[300:], y[300:])
    """
    if hasattr(y_true, "predict_proba"):
        if y is None:
            raise ValueError("plot_calibration of a classifier needs the true classes of the rows: pass them as y")
        classes = list(y_true.classes_)
        y_true, probabilities = y, y_true.predict_proba(probabilities)
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
            elinewidth=0.9, capsize=2, zorder=3, label=f"{name + ': ' if name else ''}mean distance {gap:.3f}",
        )  # fmt: skip
        if not several:
            quarter = "share of the rows (drawn at a quarter)"
            ax.bar(middle, weight * 0.25, width=0.6 / n_bins, color=RULE, zorder=0, label=quarter)
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(-0.02, 1.02)
    ax.set_aspect("equal")
    bare(ax, "both", f"predicted probability of {next(iter(judged.values()))[2]}", "how often it came true")
    ax.legend(framealpha=0.85, edgecolor="white", fontsize=FONT - 1, loc="best")
    return titled(ax, title)


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
        positive = classes[-1] if positive is None else bounded("positive", positive)
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
    """Scores of the chains along their iterations; chains that do not agree are seen at once.

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
