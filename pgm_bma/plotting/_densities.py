"""Densities of numeric columns in every cluster."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
from pgm_bma.foundation.faces.validation import Fitted, Integer, check, check_arguments, reading
from pgm_bma.plotting._drawing import (
    FONT,
    INK,
    RULE,
    SERIES,
    SOFT,
    TITLE,
    drawing_axes,
    note,
    number,
    short_labels,
    sized_heads,
    text_size,
    titled,
)

CLUSTERER = Fitted("a fitted clusterer with numeric columns", "densities_", "predict_proba")
ROW, SPAN, CURVE, RUG = 0.86, 4.2, 0.56, 0.1  # inches: a column, its scale, the highest density, a tick of the rug
MOST_TICKS = 400  # rows of the rug
REACH = 3.2  # standard deviations that are drawn


@fill(drawn=DRAWN)
def plot_densities(
    clusterer: Any,
    X: Any = None,
    *,
    columns: Sequence | None = None,
    top: int = 20,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw the density of every numeric column in every cluster, times the size of the cluster; ticks below are values of rows.

    Columns that matter most come first (`arc_posterior_`, then `cluster_dependence_`).

    Parameters
    ----------
    clusterer : fitted clusterer
        `EMAClusterer` or `LatentClassClusterer` of a table with numeric columns.
    X : table, optional
        Rows whose values are drawn as ticks, in the colours of their clusters; None draws none.
    columns : sequence of names, optional
        Numeric columns to draw, in this order; None takes all.
    top : int, default=20
        Draw at most so many.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import EMAClusterer
    >>> from pgm_bma.plotting import plot_densities
    >>> X = pd.DataFrame({"length": [1.1, 1.3, 0.9, 1.2, 4.1, 3.8, 4.4, 4.0] * 5, "b": list("uuuvvvvv") * 5})
    >>> ax = plot_densities(EMAClusterer(2, random_state=0).fit(X), X)
    >>> ax.texts[0].get_text()
    'length'
    """
    from pgm_bma.foundation.tables.kinds import as_frame, numbers  # pandas, when it is needed

    check_arguments(locals(), top=Integer(1), title=TITLE)
    check("clusterer", clusterer, CLUSTERER)
    names = _chosen(clusterer, columns)
    shown, k = names[:top], clusterer.n_clusters_
    sizes, labels = np.asarray(clusterer._profiles()[0]), short_labels(names[:top], 26)
    found = clusterer.densities_.set_index(["column", "cluster"])
    keys, more = sized_heads(range(k), sizes, SPAN / k)
    top_room = 0.3 + more
    left = max(text_size(labels[name])[0] for name in shown) + 0.2
    width, height = left + SPAN + 0.1, ROW * len(shown) + top_room
    ax, scale = drawing_axes(ax, width, height, 0.3 * bool(title) + 0.3)
    style = {"parse_math": False, "va": "center"}
    clusters = None if X is None else clusterer.predict(X)  # first: it says what is wrong with a table
    frame = None if X is None else as_frame(X, list(clusterer._fitted_names))
    for i, name in enumerate(shown):
        base = height - top_room - (i + 1) * ROW + 0.28
        mean, sd = (np.array([found.loc[(name, c), part] for c in range(k)]) for part in ("mean", "sd"))
        low, high = float((mean - REACH * sd).min()), float((mean + REACH * sd).max())
        values = None
        if frame is not None:
            with reading("X", X, "a table with the numeric columns of the fit"):
                values = numbers(frame[name])
            if np.isfinite(values).any() and np.nanmin(values) < np.nanmax(
                values
            ):  # a density may reach beyond all rows
                low, high = max(low, float(np.nanmin(values))), min(high, float(np.nanmax(values)))
        x = np.linspace(low, high, 201)
        densities = sizes[:, None] * np.exp(-0.5 * ((x - mean[:, None]) / sd[:, None]) ** 2) / sd[:, None]
        ax.text(left - 0.1, base + 0.2, labels[name], ha="right", fontsize=FONT * scale, color=INK, **style)
        ax.plot([left, left + SPAN], [base, base], color=RULE, linewidth=0.7 * scale, zorder=1)
        for value, place in ((low, "left"), (high, "right")):
            at = left + SPAN * (value - low) / (high - low)
            ax.text(at, base - 0.2, number(value), ha=place, fontsize=(FONT - 2) * scale, color=SOFT, **style)
        places = left + SPAN * (x - low) / (high - low)
        for c in range(k):
            colour, curve = SERIES[c % len(SERIES)], base + CURVE * densities[c] / densities.max()
            ax.fill_between(places, base, curve, color=colour, alpha=0.18, linewidth=0, zorder=2)
            (line,) = ax.plot(places, curve, color=colour, linewidth=1.3 * scale, zorder=3)
            line.set_gid(f"density:{name}:{c}")
        if values is not None and clusters is not None:
            rows = np.linspace(0, len(values) - 1, min(len(values), MOST_TICKS)).astype(int)
            rows = rows[(values[rows] >= low) & (values[rows] <= high)]
            for c in range(k):
                at = left + SPAN * (values[rows[clusters[rows] == c]] - low) / (high - low)
                ax.vlines(at, base - RUG, base - 0.02, color=SERIES[c % len(SERIES)], linewidth=0.5 * scale, alpha=0.6)
    for c, key in enumerate(keys):
        at = left + SPAN * (c + 0.5) / k
        ax.text(
            at,
            height - top_room / 2 + 0.01,
            key,
            ha="center",
            fontsize=FONT * scale,
            color=SERIES[c % len(SERIES)],
            **style,
        )
    if len(shown) < len(names):
        note(ax, f"{len(shown)} of {len(names)} numeric columns, those that matter most")
    return titled(ax, title)


def _chosen(clusterer, columns):
    """Names of the columns to draw."""
    known = list(getattr(clusterer, "numeric_columns_", ()))
    if not known:
        raise ValueError("the clusterer has no numeric columns; plot_cluster_profiles draws columns of states")
    if columns is not None:
        with reading("columns", columns, "a list of names of columns"):
            unknown = [name for name in columns if name not in known]
        if unknown:
            raise ValueError(f"columns= names {unknown[0]!r}, which is not a numeric column of the clusterer")
        return list(columns)
    relevance, dependence = clusterer.arc_posterior_, clusterer.cluster_dependence_
    return sorted(known, key=lambda name: (-round(float(relevance[name]), 6), -float(dependence[name])))
