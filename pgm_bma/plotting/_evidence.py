"""Why a row is predicted as it is: the evidence of its columns as bars for one class and against another."""

from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import Integer, check_arguments, is_hashable, reading
from pgm_bma.plotting._style import (
    BLUE,
    DRAWN,
    FONT,
    INK,
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


@fill(drawn=DRAWN)
def plot_evidence(
    evidence: Any,
    *,
    log_odds: tuple[Any, Any] | None = None,
    top: int = 20,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw how each column speaks for one class against another in one row, the strongest on top.

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
