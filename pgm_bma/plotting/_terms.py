"""What every column says alone in a fit of averaged additive terms: curves of evidence, with the density of the data below."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pgm_bma.foundation.faces.validation import Fitted, Integer, check_arguments, reading
from pgm_bma.foundation.runtime.atomic import file_path, replacing
from pgm_bma.plotting._style import FONT, INK, PALE, RULE, SERIES, SOFT, TITLE, bare, short_labels

MOST_PANELS, WIDTH, HEIGHT = 12, 3.4, 2.5  # inches
AVERAGED = Fitted("a fitted AdditiveBayesClassifier", "term_curves", "schema_", "target_name_")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":")


def plot_terms(
    classifier: Any, *, columns: Sequence | None = None, path: Any = None, n_columns: int = 3, title: str | None = None
) -> Any:
    """Draw the curves of `AdditiveBayesClassifier.term_curves`, a panel per column; grey bars show where the data are.

    Parameters
    ----------
    classifier : fitted AdditiveBayesClassifier
        The model whose terms are drawn.
    columns : sequence of names, optional
        Columns to draw, default the twelve of largest `feature_importances_`.
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
    names = list(classifier.schema_.names)
    if columns is None:
        order = np.argsort(-classifier.feature_importances_, kind="stable")
        columns = [names[j] for j in order[:MOST_PANELS]]
    with reading("columns", columns, "a list of names of columns"):
        columns = [columns] if isinstance(columns, str) else list(columns)
        unknown = [name for name in columns if name not in names]
    if not columns:
        raise ValueError(f"columns= names no column; the columns are {names[:20]}")
    if unknown:
        raise ValueError(f"columns= names {unknown[0]!r}, which is no column of the fit")
    curves, classes = classifier.term_curves(), list(classifier.classes_)
    shown = classes[1:] if len(classes) == 2 else classes  # of two classes one curve is the other upside down
    n_columns = max(1, min(n_columns, len(columns)))
    n_rows = -(-len(columns) // n_columns)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=(WIDTH * n_columns, HEIGHT * n_rows + 0.5), squeeze=False, layout="constrained"
    )
    labels = short_labels(columns, 34)
    for ax, name in zip(axes.flat, columns):
        _draw_column(ax, curves[curves["column"] == name], shown, labels[name], name in classifier.numeric_columns_)
    for ax in axes.flat[len(columns) :]:
        ax.remove()
    for row in axes:
        row[0].set_ylabel("evidence (nats)", fontsize=FONT - 1, color=SOFT)
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
    bounds = _bounds(part) if numeric else np.arange(len(part) + 1) - 0.5
    top = max(np.abs(evidence).max(initial=0.0), 0.1) * 1.1
    heights = shares / np.diff(bounds) if numeric else shares
    heights = np.minimum(heights, 3 * np.median(heights[heights > 0])) if (heights > 0).any() else heights
    heights = heights / max(heights.max(initial=0.0), 1e-300) * top * 0.5
    floor = -top * 1.6
    middles, widths = (bounds[1:] + bounds[:-1]) / 2, np.diff(bounds) * (1 if numeric else 0.8)
    ax.bar(middles, heights, widths, bottom=floor, color=PALE)
    ax.axhline(0, color=RULE, linewidth=0.8)
    for k in range(evidence.shape[1]):
        style = {"color": SERIES[k % len(SERIES)], "linestyle": DASHES[k % len(DASHES)], "linewidth": 1.5}
        if numeric:
            ax.stairs(evidence[:, k], bounds, baseline=None, **style)
        else:
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


def _bounds(part):
    """Edges of the bins, the open ones closed at the width of their neighbours."""
    inner = part["to"].to_numpy()[:-1]
    if len(inner) == 0:
        return np.array([0.0, 1.0])
    width = (inner[-1] - inner[0]) / max(len(inner) - 1, 1) or 1.0
    return np.concatenate([[inner[0] - width], inner, [inner[-1] + width]])
