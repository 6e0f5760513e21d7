"""Pictures of graphs: networks, and the difference of two structures."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
from pgm_bma.foundation.faces.validation import (
    NAME,
    Choice,
    Either,
    Instance,
    Integer,
    Number,
    Optional,
    as_numbers,
    brief,
    check,
    check_arguments,
    is_hashable,
    reading,
)
from pgm_bma.plotting._drawing import (
    BLUE,
    FONT,
    INK,
    MANY,
    ORANGE,
    PURPLE,
    RULE,
    SKY,
    SOFT,
    TITLE,
    VERMILION,
    Box,
    Line,
    bare,
    box_labels,
    box_sizes,
    inches,
    layout_graph,
    legend_below,
    name_rows,
    new_axes,
    number,
    paint,
    short_labels,
    text_size,
    titled,
)

MANY_LOOSE = 8
LAYOUT = Either(Choice("auto", "graphviz", "layered", "fan"), Instance(dict, "a dict node -> (x, y) in inches"))


@fill(drawn=DRAWN)
def plot_network(
    network: Any,
    *,
    highlight: Any = None,
    arc_posterior: Any = None,
    threshold: float = 0.05,
    layout: Any = "auto",
    max_nodes: int = 120,
    max_arcs: int | None = None,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw the structure of a network; the class or cluster stands out, the width of an arc is its posterior.

    Parameters
    ----------
    network : pgmpy network, networkx graph, fitted estimator, or list of arcs (tail, head)
        What to draw.
    highlight : node or list of nodes, optional
        Nodes to colour; None takes the latent nodes, or the target of an estimator.
    arc_posterior : dict, DataFrame or Series, optional
        (tail, head) -> probability; rows are tails, columns heads; or by column (arcs from the highlighted node). None
        takes the attribute ``posterior`` of the arcs where they have it.
    threshold : float, default=0.05
        Arcs with a smaller posterior are not drawn.
    layout : {"auto", "graphviz", "layered", "fan"} or dict, default="auto"
        "fan" puts the highlighted node in the middle; a dict node -> (x, y) in inches draws several structures alike.
    max_nodes : int, default=120
        Larger networks are cut down to the nodes with the strongest arcs, which the picture then says.
    max_arcs : int, optional
        Draw only this many arcs, those of highest posterior, which the picture then says; None means two per node where
        arcs have posteriors and there are more than 12 nodes, one per connected node above 40 (denser ones: see
        `plot_arc_posteriors`), else all. Above 40 nodes those without an arc are listed below the picture.
    {drawn}

    Examples
    --------
    >>> from pgm_bma.plotting import plot_network
    >>> ax = plot_network([("c", "x"), ("c", "y"), ("x", "y")], highlight="c", arc_posterior={("x", "y"): 0.3})
    >>> sorted(text.get_text() for text in ax.texts)
    ['c', 'x', 'y']
    """
    check_arguments(
        locals(), threshold=Number(0), layout=LAYOUT, max_nodes=Integer(1), max_arcs=Optional(Integer(0)), title=TITLE
    )
    graph = as_graph(network)
    marked = _highlighted(network, graph, highlight)
    nodes = list(graph.nodes())
    posterior = _posteriors(graph, arc_posterior, marked)
    joined = [(a, b) for a, b in dict.fromkeys([*graph.edges(), *posterior]) if a != b and a in graph and b in graph]
    arcs = [arc for arc in joined if posterior.get(arc, 1.0) >= threshold]
    shown = _strongest(nodes, arcs, posterior, marked, max_nodes)
    arcs = [arc for arc in arcs if arc[0] in shown and arc[1] in shown]
    shown = [v for v in nodes if v in shown]
    total = len(arcs)
    if max_arcs is None:
        linked = len({v for arc in arcs for v in arc})
        max_arcs = total if not posterior or len(shown) <= 12 else linked if len(shown) > MANY else 2 * len(shown)
    kept = set(sorted(arcs, key=lambda arc: -posterior.get(arc, 1.0))[:max_arcs])
    arcs = [arc for arc in arcs if arc in kept]
    remarks = []
    is_large = len(shown) > MANY and not isinstance(layout, dict)
    if is_large and _reaches_all(marked, shown, arcs, posterior):
        arcs = [arc for arc in arcs if arc[0] != marked[0]]
        remarks.append(f"every node is also a child of {marked[0]}: those arcs are not drawn")
    loose = _loose(shown, arcs, marked) if is_large else []
    shown = [v for v in shown if v not in set(loose)]

    labels = box_labels(shown)
    hub = marked[0] if marked and marked[0] in labels else None
    plan = layout_graph(shown, arcs, box_sizes(labels), layout, hub)
    latent = set(getattr(graph, "latents", ())) | {getattr(network, "cluster_name", None)}
    boxes = {v: _box(labels[v], v in marked, v in latent) for v in shown}
    from_hub = sum(tail == hub for tail, _ in arcs)
    # the arcs of a class or cluster to nearly everything recede behind the others
    faint = len(shown) > 12 and 0.6 * (len(shown) - 1) <= from_hub < len(arcs)
    lines = {}
    for arc in arcs:
        width = 1.2 if arc not in posterior else 0.4 + 3.0 * posterior[arc]
        behind = faint and arc[0] == hub
        lines[arc] = Line("#C9B27A" if behind else INK, width * (0.6 if behind else 1.0), level=1.0 if behind else 2.0)
    if len(shown) + len(loose) < len(nodes):
        remarks.append(f"{len(shown) + len(loose)} of {len(nodes)} nodes, those with the strongest arcs")
    if len(kept) < total:
        remarks.append(f"the {len(kept)} strongest of {total} arcs")
    elif posterior and min(posterior.values()) < threshold:
        remarks.append(f"arcs below {number(threshold)} not drawn")
    remark = "\n".join(["; ".join(remarks)] * bool(remarks) + [_listing(loose)] * bool(loose))
    return paint(plan, boxes, lines, ax, _width_legend() if posterior else (), title, remark)


@fill(drawn=DRAWN)
def plot_structure_difference(
    a: Any,
    b: Any,
    *,
    names: Sequence[str] = ("first", "second"),
    highlight: Any = None,
    layout: Any = "auto",
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw two structures over one set of nodes: common arcs, arcs of only one of them, and reversed arcs.

    Parameters
    ----------
    a, b : network, graph, fitted estimator or list of arcs
        The two structures.
    names : (str, str), default=("first", "second")
        How the legend calls the two.
    highlight : node or list of nodes, optional
        Nodes to colour.
    layout : str or dict, default="auto"
        As in `plot_network`.
    {drawn}

    Examples
    --------
    >>> from pgm_bma.plotting import plot_structure_difference
    >>> ax = plot_structure_difference([("x", "y"), ("y", "z")], [("y", "x"), ("y", "z"), ("x", "z")])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['in both (1)', 'only first (0)', 'only second (1)', 'turned round in second (1)']
    """
    from matplotlib.lines import Line2D

    check_arguments(locals(), layout=LAYOUT, title=TITLE)
    with reading("names", names, "two texts, one for each structure"):
        of_a, of_b = (str(name) for name in names)
    first, second = as_graph(a, "a"), as_graph(b, "b")
    nodes = list(dict.fromkeys([*first.nodes(), *second.nodes()]))
    new_a, new_b = ([e for e in g.edges() if not h.has_edge(*e)] for g, h in ((first, second), (second, first)))
    turned = [e for e in new_a if second.has_edge(*e[::-1]) and not first.has_edge(*e[::-1])]
    kinds = [
        ("in both", [e for e in first.edges() if second.has_edge(*e)], Line(SOFT, 1.2)),
        (f"only {of_a}", [e for e in new_a if not second.has_edge(*e[::-1])], Line(VERMILION, 1.8, (0, (4, 2)))),
        (f"only {of_b}", [e for e in new_b if not first.has_edge(*e[::-1])], Line(BLUE, 1.8, (0, (1, 1.2)))),
        (f"turned round in {of_b}", turned, Line(PURPLE, 1.8, (0, (6, 1.5, 1, 1.5)))),
    ]
    lines = {arc: line for _, arcs, line in kinds for arc in arcs}
    handles = [
        Line2D([], [], color=line.color, linewidth=line.width, linestyle=line.style, label=f"{text} ({len(arcs)})")
        for text, arcs, line in kinds
    ]
    marked = _highlighted(a, first, highlight)
    loose = _loose(nodes, list(lines), marked) if len(nodes) > MANY and not isinstance(layout, dict) else []
    nodes = [v for v in nodes if v not in set(loose)]
    labels = box_labels(nodes)
    hub = marked[0] if marked and marked[0] in labels else None
    plan = layout_graph(nodes, list(lines), box_sizes(labels), layout, hub)
    boxes = {v: _box(labels[v], v in marked) for v in nodes}
    remark = _listing(loose) if loose else None
    ax = paint(plan, boxes, lines, ax, handles, title, remark)
    legend_below(ax, handles, remark, columns=2 if plan.size[0] < 7 else 4)
    return ax


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

    colours = matplotlib.colormaps["Blues"].with_extremes(bad="#DDDDDD")  # most arcs are improbable: white
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
    ax.grid(which="minor", color=RULE, linewidth=0.6 if small else 0.25)
    ax.tick_params(which="minor", length=0)
    ax.set_xlabel("to", fontsize=FONT)
    ax.set_ylabel("from", fontsize=FONT)
    if small:
        for i, j in np.argwhere(np.isfinite(values)):
            ink = "black" if values[i, j] < 0.6 else "white"
            ax.text(j, i, f"{values[i, j]:.2f}", ha="center", va="center", fontsize=FONT - 2, color=ink)
    bar = ax.figure.colorbar(image, ax=ax, shrink=min(1.0, 3.0 / (cell * len(rows))), pad=0.02)
    bar.set_label("posterior of the arc", fontsize=FONT - 1)
    bar.ax.tick_params(labelsize=FONT - 2)
    return titled(ax, title)


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


def _box(label, is_marked, is_latent=False):
    style = "--" if is_latent else "-"
    return Box(label, ORANGE, INK, style) if is_marked else Box(label, style=style)


def as_graph(network, parameter="network"):
    """A networkx graph of whatever was given: a graph or pgmpy network, an estimator, or a list of arcs."""
    import networkx as nx

    if isinstance(network, nx.Graph):
        return network
    if isinstance(getattr(network, "edge_graph_", None), nx.Graph):
        return network.edge_graph_
    if hasattr(network, "to_networkx"):
        return network.to_networkx()
    for name in ("causal_graph_", "model_"):
        if isinstance(getattr(network, name, None), nx.Graph):
            return getattr(network, name)
    graph = nx.DiGraph()
    with reading(parameter, network, "a network, a graph, a fitted estimator or a list of arcs (tail, head)"):
        graph.add_edges_from((tail, head) for tail, head in network)
    return graph


def _highlighted(network, graph, highlight):
    if highlight is None:
        names = [getattr(network, attribute, None) for attribute in ("target_name_", "cluster_name")]
        found = sorted(getattr(graph, "latents", ()), key=str)
        return found or [name for name in names if isinstance(name, str) and name in graph][:1]
    several = isinstance(highlight, list | tuple | set) and not (is_hashable(highlight) and highlight in graph)
    wanted = list(highlight) if several else [highlight]
    unknown = [v for v in wanted if not NAME.admits(v) or v not in graph]
    if unknown:
        raise ValueError(
            f"highlight names {brief(unknown[0])}, which is not a node; the nodes are {list(graph.nodes())[:20]}"
        )
    return wanted


def _posteriors(graph, given, marked):
    """(tail, head) -> probability; empty where nothing is known."""
    if given is None:
        found = {(u, v): data.get("posterior") for u, v, data in graph.edges(data=True)}
        return {arc: float(p) for arc, p in found.items() if p is not None}
    with reading("arc_posterior", given, "a table, or a dict (tail, head) -> probability, or one by column"):
        return _read_posteriors(given, marked)


def _read_posteriors(given, marked):
    if hasattr(given, "columns"):
        return {(u, v): float(given.at[u, v]) for u in given.index for v in given.columns if u != v}
    items = dict(given).items()
    if all(isinstance(key, tuple) and len(key) == 2 for key, _ in items):
        return {arc: float(p) for arc, p in items}
    if not marked:
        raise ValueError("arc_posterior is given by column; say with highlight= from which node the arcs come")
    return {(marked[0], v): float(p) for v, p in items}


def _strongest(nodes, arcs, posterior, marked, max_nodes):
    if len(nodes) <= max_nodes:
        return set(nodes)
    strength = dict.fromkeys(nodes, 0.0)
    for arc in arcs:
        for v in arc:
            strength[v] = max(strength[v], posterior.get(arc, 1.0))
    order = sorted(nodes, key=lambda v: -strength[v])
    return set([*marked, *(v for v in order if v not in marked)][:max_nodes])


def _reaches_all(marked, nodes, arcs, posterior):
    """Return whether the class or cluster is a parent of all others, for certain, and they have arcs besides."""
    certain = {head for tail, head in arcs if marked and tail == marked[0] and (tail, head) not in posterior}
    return bool(marked) and len(certain) == len(nodes) - 1 < len(arcs)


def _loose(nodes, arcs, marked):
    """Nodes without an arc, unless all are; those would be boxes that say nothing."""
    linked = {v for arc in arcs for v in arc} | set(marked)
    found = [v for v in nodes if v not in linked]
    return found if MANY_LOOSE < len(found) < len(nodes) else []


def _listing(names, most=150):
    """Nodes that are not drawn, as a text of several lines."""
    texts = list(box_labels(names).values())
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return "\n".join(textwrap.wrap(f"without an arc ({len(texts)}): {', '.join(texts[:most])}{more}", 150))


def _width_legend():
    from matplotlib.lines import Line2D

    return [Line2D([], [], color=INK, linewidth=0.4 + 3.0 * p, label=f"posterior {p:g}") for p in (0.1, 0.5, 1.0)]


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
