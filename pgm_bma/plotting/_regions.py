"""Pictures of Kikuchi-Bayes: the region graph with its counting numbers, and the interactions between columns."""

import math
from itertools import combinations
from typing import Any

import numpy as np

from pgm_bma.foundation.faces.docstrings import DRAWN, fill
from pgm_bma.foundation.faces.validation import LARGEST, NAME, Integer, Number, Optional, check_arguments, reading
from pgm_bma.foundation.numbers.graphs import check_region_graph
from pgm_bma.plotting._drawing import (
    BLUE,
    FONT,
    INK,
    MANY,
    SKY,
    SOFT,
    TITLE,
    VERMILION,
    Box,
    Line,
    box_labels,
    box_sizes,
    circle_layout,
    drawing_axes,
    layout_graph,
    legend_below,
    paint,
    short_labels,
    text_size,
    titled,
)


@fill(drawn=DRAWN)
def plot_region_graph(graph: Any, *, target: Any = None, title: str | None = None, ax: Any = None) -> Any:
    """Draw a region graph: one box per region with its counting number, larger regions first.

    Regions counted positively are blue, negatively vermilion, and those that cancel out white.

    Parameters
    ----------
    graph : networkx.DiGraph or fitted estimator
        Frozensets with the attribute ``counting_number``, or an estimator with `region_graph_`.
    target : node, optional
        Name of the class; said once below the picture where every region holds it, else written first.
    {drawn}

    Examples
    --------
    >>> import networkx as nx
    >>> from pgm_bma.plotting import plot_region_graph
    >>> graph = nx.DiGraph()
    >>> graph.add_node(frozenset("ca"), counting_number=1)
    >>> graph.add_node(frozenset("cb"), counting_number=1)
    >>> graph.add_node(frozenset("c"), counting_number=-1)
    >>> graph.add_edges_from([(frozenset("ca"), frozenset("c")), (frozenset("cb"), frozenset("c"))])
    >>> ax = plot_region_graph(graph, target="c")
    >>> sorted(text.get_text() for text in ax.texts)
    ['a\\n+1', 'b\\n+1', 'c\\n-1']
    """
    from matplotlib.patches import Patch

    check_arguments(locals(), target=Optional(NAME), title=TITLE)
    target = getattr(graph, "target_name_", None) if target is None else target
    graph = getattr(graph, "region_graph_", graph)
    check_region_graph(graph)
    regions = sorted(graph.nodes(), key=lambda region: (-len(region), [str(v) for v in _members(region, target)]))
    counts = {region: float(graph.nodes[region]["counting_number"]) for region in regions}
    shared = target is not None and all(target in region for region in regions)
    members = {region: _members(region, target)[shared and len(region) > 1 :] for region in regions}
    short = short_labels(
        dict.fromkeys(v for names in members.values() for v in names), 24 if len(regions) <= 20 else 18
    )
    labels = {r: f"{_wrapped([short[v] for v in members[r]])}\n{_signed(counts[r])}" for r in regions}
    layers = {region: -len(region) for region in regions}
    plan = layout_graph(regions, list(graph.edges()), box_sizes(labels), "layered", layers=layers)
    colour = {1: "#CFE3F2", -1: "#F6D5BF", 0: "#FFFFFF"}
    boxes = {r: Box(labels[r], colour[int(np.sign(counts[r]))]) for r in regions}
    lines = {arc: Line(SOFT, 0.9) for arc in graph.edges()}
    kinds = [(1, "counted positively"), (-1, "counted negatively"), (0, "cancels out")]
    present = {int(np.sign(c)) for c in counts.values()}
    handles = [Patch(facecolor=colour[s], edgecolor=SOFT, label=text) for s, text in kinds if s in present]
    remark = f"every region also holds {target}" if shared and len(regions) > 1 else None
    return paint(plan, boxes, lines, ax, handles, title, remark)


@fill(drawn=DRAWN)
def plot_interactions(
    interactions: Any,
    *,
    relevance: Any = None,
    max_edges: int = 12,
    threshold: float = 0.02,
    title: str | None = None,
    ax: Any = None,
) -> Any:
    """Draw an interaction graph: attributes on a circle, the strongest interactions as chords.

    Positive interactions (together two attributes say more about the class than each alone) are solid blue, negative ones
    (they say partly the same) dashed vermilion; the width is the size. A bar at the name shows an attribute's own relevance.

    Parameters
    ----------
    interactions : DataFrame, dict, Series, networkx graph or fitted estimator
        A symmetric table, numbers by pair (a, b), a graph whose edges have the attribute ``interaction`` (else
        ``weight``), or a fitted `KikuchiBayesClassifier` or `AdditiveBayesClassifier`: of its `interactions_` those whose
        interval does not hold 0.
    relevance : Series or dict attribute -> number, optional
        E.g. mutual information with the class; None takes the node attribute ``information`` where there is one (of a
        classifier: `feature_importances_`).
    max_edges : int, default=12
        Draw only this many of the strongest.
    threshold : float, default=0.02
        Leave out interactions below this share of the strongest.
    {drawn}

    Examples
    --------
    >>> from pgm_bma.plotting import plot_interactions
    >>> ax = plot_interactions({("a", "b"): 0.4, ("b", "c"): -0.1}, relevance={"a": 0.2, "b": 0.1, "c": 0.0})
    >>> sorted(text.get_text() for text in ax.texts)
    ['a', 'b', 'c']
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import PathPatch, Wedge
    from matplotlib.path import Path

    check_arguments(locals(), max_edges=Integer(0), threshold=Number(0), title=TITLE)
    nodes, edges, own = _interaction_parts(interactions, relevance)
    total = len(edges)
    strongest = max((abs(w) for *_, w in edges), default=1.0) or 1.0
    edges = [e for e in edges if abs(e[2]) >= threshold * strongest]
    edges = sorted(edges, key=lambda e: (-abs(e[2]), str(e[0]), str(e[1])))[:max_edges]
    remark = f"the {len(edges)} strongest of {total} interactions" if total > len(edges) else ""
    if not edges:
        remark = "no pair interacts beyond chance"
    if len(nodes) > MANY:  # names without a chord only make the ring larger
        held = {v for a, b, _ in edges for v in (a, b)}
        if held and len(held) < len(nodes):
            remark += f"{'; ' if remark else ''}{len(nodes) - len(held)} attributes without one of them are left out"
            nodes = [v for v in nodes if v in held]
            own = {v: x for v, x in own.items() if v in held}
    angles = circle_layout(nodes, edges)
    labels = box_labels(nodes)
    radius = max(1.4, len(nodes) * 0.19 / (2 * math.pi))
    largest = max(own.values(), default=0.0) or 1.0
    bars = {v: 0.3 * max(own.get(v, 0.0), 0.0) / largest for v in nodes}
    texts, (wide, high) = _ring_labels(angles, labels, {v: radius + 0.12 + bars[v] for v in nodes})
    ax, scale = drawing_axes(ax, 2 * wide, 2 * high, 0.9 + 0.3 * bool(title), 5.4)
    ax.set_xlim(-wide, wide)
    ax.set_ylim(-high, high)
    for a, b, w in reversed(edges):
        ends = [(radius * math.cos(angles[v]), radius * math.sin(angles[v])) for v in (a, b)]
        bend = tuple((p + q) / 2 * 0.35 for p, q in zip(*ends))  # chords bow towards the middle
        patch = PathPatch(
            Path([ends[0], bend, ends[1]], [Path.MOVETO, Path.CURVE3, Path.CURVE3]), fill=False,
            edgecolor=BLUE if w > 0 else VERMILION, linestyle="-" if w > 0 else (0, (3, 1.5)),
            linewidth=(0.5 + 4.0 * abs(w) / strongest) * scale, alpha=0.85, zorder=2,
        )  # fmt: skip
        patch.set_gid(f"edge:{a}--{b}")
        ax.add_patch(patch)
    half = min(4.0, 150 / len(nodes))
    for v, angle in angles.items():
        degrees = math.degrees(angle)
        ax.add_patch(Wedge((0, 0), radius + 0.04, degrees - half, degrees + half, width=0.04, color=INK, zorder=3))
        if own:
            wedge = Wedge(
                (0, 0), radius + 0.06 + bars[v], degrees - half, degrees + half, width=bars[v], color=SKY, zorder=3
            )
            wedge.set_gid(f"relevance:{v}")
            ax.add_patch(wedge)
        x, y, how = texts[v]
        ax.text(x, y, labels[v], fontsize=FONT * scale, color=INK, rotation_mode="anchor", parse_math=False, **how)
    handles = []
    if any(w > 0 for *_, w in edges):
        handles.append(Line2D([], [], color=BLUE, linewidth=2.5, label="say more together"))
    if any(w < 0 for *_, w in edges):
        handles.append(
            Line2D([], [], color=VERMILION, linewidth=2.5, linestyle=(0, (3, 1.5)), label="say partly the same")
        )
    if own:
        handles.append(Line2D([], [], color=SKY, linewidth=6, label="relevance (largest: full length)"))
    legend_below(ax, handles, remark or None)
    return titled(ax, title)


def _members(region, target):
    return sorted(region, key=lambda v: (v != target, str(v)))


def _wrapped(names, width=26, most=4):
    """Names with commas, broken into lines; of very large regions the first few."""
    lines = [""]
    for i, name in enumerate(names):
        item = name if i == len(names) - 1 else f"{name},"
        if lines[-1] and len(lines[-1]) + len(item) >= width:
            lines.append("")
        lines[-1] += f" {item}" if lines[-1] else item
    return "\n".join(lines if len(lines) <= most else [*lines[:most], "…"])


def _signed(value):
    return "0" if value == 0 else f"{value:+.3g}"


def _ring_labels(angles, labels, far):
    """Texts around a circle, upright where none touches another, else along the radius: node -> (x, y, how), reach (x, y)"""
    texts: dict[Any, tuple[float, float, dict[str, Any]]] = {}
    boxes = {}
    for v, angle in angles.items():
        x, y = far[v] * math.cos(angle), far[v] * math.sin(angle)
        width, height = text_size(labels[v])
        across = 0.0 if math.cos(angle) > 0.2 else 1.0 if math.cos(angle) < -0.2 else 0.5  # share of the text left of x
        down = 0.5 if across != 0.5 else float(math.sin(angle) < 0)  # share of it below y
        boxes[v] = (x - across * width, y - down * height, x + (1 - across) * width, y + (1 - down) * height)
        sides = {0.0: "left", 0.5: "center", 1.0: "right"}[across], {0.0: "bottom", 0.5: "center", 1.0: "top"}[down]
        texts[v] = (x, y, {"ha": sides[0], "va": sides[1]})
    if not any(_touch(boxes[a], boxes[b]) for a, b in combinations(boxes, 2)):
        reach = [max(abs(box[k]) for box in boxes.values() for k in (i, i + 2)) for i in (0, 1)]
        return texts, tuple(reach)
    for v, angle in angles.items():
        degrees, left = math.degrees(angle), math.cos(angle) < -1e-9
        turned = {"rotation": degrees + 180 if left else degrees, "ha": "right" if left else "left", "va": "center"}
        texts[v] = (*texts[v][:2], turned)
    reach = max(far[v] + text_size(labels[v])[0] for v in angles)
    return texts, (reach, reach)


def _touch(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _interaction_parts(interactions, relevance):
    """nodes, edges (a, b, number), own relevance by node"""
    with reading("relevance", relevance, "a Series or dict attribute -> number"):
        relevance = None if relevance is None else {v: float(x) for v, x in dict(relevance).items()}
    with reading("interactions", interactions, "an estimator, a graph, a square table, or a dict (a, b) -> number"):
        nodes, edges, own = _read_interactions(interactions, relevance)
    for node, value in own.items():
        if not abs(value) <= LARGEST:  # NaN is not
            raise ValueError(f"the relevance of {node!r} is {value}; leave it out, or make it 0")
    return nodes, edges, own


def _read_interactions(interactions, relevance):
    if hasattr(interactions, "interactions_"):
        names, found = list(interactions.schema_.names), interactions.interactions_
        if relevance is None:
            relevance = dict(zip(names, map(float, interactions.feature_importances_)))
        sure = found[(found["low"] > 0) | (found["high"] < 0)]
        edges = [tuple(line) for line in sure[["first", "second", "importance"]].itertuples(index=False)]
        return names, edges, dict(relevance)
    own = {} if relevance is None else dict(relevance)
    if hasattr(interactions, "edges"):
        graph = interactions
        nodes = list(graph.nodes())
        edges = [
            (a, b, float(data.get("interaction", data.get("weight", 1.0)))) for a, b, data in graph.edges(data=True)
        ]
        if relevance is None:
            found = {v: data.get("information") for v, data in graph.nodes(data=True)}
            own = {v: float(x) for v, x in found.items() if x is not None}
    elif hasattr(interactions, "columns"):
        nodes = list(interactions.columns)
        values = interactions.loc[nodes].to_numpy(dtype=float)
        pairs = zip(*np.triu_indices(len(nodes), 1))
        edges = [(nodes[i], nodes[j], float(values[i, j])) for i, j in pairs]
    else:
        edges = [(a, b, float(w)) for (a, b), w in dict(interactions).items()]
        nodes = list(dict.fromkeys([v for a, b, _ in edges for v in (a, b)] + list(own)))
    if not nodes:
        raise ValueError("there are no attributes to draw")
    return nodes, [e for e in edges if math.isfinite(e[2]) and e[2] != 0], own
