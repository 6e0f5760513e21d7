"""Pictures of arc posteriors: two runs or the chains of one against each other, and a comparison with a known graph."""

from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
from pgm_bma.foundation.faces.validation import Number, brief, check, check_arguments
from pgm_bma.plotting._drawing import (
    BLUE,
    FONT,
    GREEN,
    INK,
    MARKERS,
    ORANGE,
    RULE,
    SERIES,
    SOFT,
    TITLE,
    bare,
    new_axes,
    note,
    short_labels,
    table_rule,
    titled,
)

MOST_NAMED = 6  # arcs with their names in a picture


@fill(drawn=DRAWN)
def plot_runs(first: Any, second: Any = None, *, tol: float = 0.05, title: str | None = None, ax: Any = None) -> Any:
    """Arc posteriors of two runs against each other, or of every chain of one run against the chains together.

    A dot is an arc. Dots on the line agree; the band is `tol` wide on each side; arcs that are far outside it have names.

    Parameters
    ----------
    first : fitted order estimator or DataFrame
        A run, or its `edge_posterior_`.
    second : fitted order estimator or DataFrame, optional
        Another run on the same columns; None compares the chains of the first.
    tol : float, default=0.05
        Half the width of the band.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_runs
    >>> a = pd.DataFrame([[0, 0.9], [0.1, 0]], list("xy"), list("xy"))
    >>> b = pd.DataFrame([[0, 0.5], [0.1, 0]], list("xy"), list("xy"))
    >>> [text.get_text() for text in plot_runs(a, b).texts if "->" in text.get_text()]
    ['x -> y']
    """
    check_arguments(locals(), tol=Number(0, 1), title=TITLE)
    x, names = _posteriors("first", first)
    if second is None:
        if getattr(first, "method_", "") != "mcmc" or first.n_chains_ < 2:
            raise ValueError("first has no chains to compare; pass a second run, or fit with method='mcmc'")
        others, labels = first.chain_posteriors_, [f"chain {k + 1}" for k in range(first.n_chains_)]
        words = "all chains", "one chain"
    else:
        y, same = _posteriors("second", second)
        if sorted(map(str, same)) != sorted(map(str, names)):
            raise ValueError("the two runs have different columns; compare runs on the same columns")
        others, labels, words = [y.loc[names, names].to_numpy()], [""], ("first run", "second run")
    ax = new_axes(ax, 4.4, 4.6 + 0.3 * bool(title))
    ax.fill_between([0, 1], [-tol, 1 - tol], [tol, 1 + tol], color=RULE, linewidth=0, alpha=0.6, zorder=0)
    ax.plot([0, 1], [0, 1], color=SOFT, linewidth=0.8, zorder=1)
    pairs, x = ~np.eye(len(names), dtype=bool), x.to_numpy()
    for k, (y, label) in enumerate(zip(others, labels)):
        style = {"color": SERIES[k % len(SERIES)], "marker": MARKERS[k % len(MARKERS)], "label": label}
        ax.scatter(x[pairs], np.asarray(y)[pairs], s=14, alpha=0.6, linewidths=0, zorder=3, **style)
    off = np.max([np.abs(np.asarray(y) - x) for y in others], axis=0)
    _name_arcs(ax, x, others, off, names, max(2 * tol, 0.1))
    ax.set_xlim(-0.03, 1.03)
    ax.set_ylim(-0.03, 1.03)
    ax.set_aspect("equal", adjustable="box")
    bare(ax, "both", x=f"arc posterior, {words[0]}", y=f"arc posterior, {words[1]}")
    if second is None:
        ax.legend(loc="upper left", frameon=False, fontsize=FONT - 1, handletextpad=0.2)
    note(ax, f"largest difference {off[pairs].max(initial=0.0):.2f}", (1, 0), (-112, 16))
    return titled(ax, title)


def _name_arcs(ax, x, others, off, names, least):
    """Names at the arcs that are off by more than `least`, the worst first."""
    texts = short_labels(names, 12)
    for flat in np.argsort(-off, axis=None, kind="stable")[:MOST_NAMED]:
        u, v = np.unravel_index(flat, off.shape)
        if off[u, v] <= least:
            break
        y = max((float(np.asarray(some)[u, v]) for some in others), key=lambda value: abs(value - x[u, v]))
        left = x[u, v] > 0.6
        ax.annotate(
            f"{texts[names[u]]} -> {texts[names[v]]}", (x[u, v], y), xytext=(-5 if left else 5, 4), textcoords="offset points",
            ha="right" if left else "left", fontsize=FONT - 2, color=INK, parse_math=False,
        )  # fmt: skip


def _posteriors(parameter, run):
    """(DataFrame parent x child, names)"""
    table = getattr(run, "edge_posterior_", run)
    if not isinstance(table, pd.DataFrame) or not len(table) or set(table.index) != set(table.columns):
        raise ValueError(
            f"{parameter}={brief(run)} must be a fitted order estimator, or its edge_posterior_: a DataFrame parent x child"
        )
    names = list(table.index)
    return table.loc[names, names], names


@fill(drawn=DRAWN)
def plot_comparison(comparison: Any, *, title: str | None = None, ax: Any = None) -> Any:
    """Precision, recall and structural Hamming distance along the threshold, against a known graph.

    Parameters
    ----------
    comparison : DataFrame
        What `OrderPosterior.compare` returns.
    {drawn}

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma.plotting import plot_comparison
    >>> table = pd.DataFrame({"threshold": [0.1, 0.5, 0.9], "n_arcs": [3, 2, 1], "precision": [0.6, 1.0, 1.0],
    ...                       "recall": [1.0, 1.0, 0.5], "shd": [1, 0, 1]})
    >>> [line.get_label() for line in plot_comparison(table).lines]
    ['precision', 'recall']
    """
    check_arguments(locals(), title=TITLE)
    check("comparison", comparison, table_rule("threshold", "precision", "recall", "shd"))
    ax = new_axes(ax, 5.6, 3.4 + 0.3 * bool(title))
    at = comparison["threshold"].to_numpy()
    for name, colour, dash in (("precision", BLUE, "-"), ("recall", ORANGE, (0, (4, 1.5)))):
        ax.plot(at, comparison[name], color=colour, linestyle=dash, linewidth=1.6, label=name, drawstyle="steps-mid")
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.03)
    bare(ax, "y", x="threshold of the arc posterior", y="precision and recall")
    right = ax.twinx()
    (line,) = right.plot(at, comparison["shd"], color=GREEN, linestyle=":", linewidth=1.6, label="Hamming distance")
    right.set_ylim(0, max(float(comparison["shd"].max()) * 1.05, 1.0))
    right.set_ylabel("structural Hamming distance", fontsize=FONT)
    right.tick_params(labelsize=FONT - 1)
    right.spines["top"].set_visible(False)
    handles = [*ax.lines, line]
    ax.legend(handles=handles, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncol=3, frameon=False, fontsize=FONT - 1)
    return titled(ax, title, pad=22)
