"""Pictures of graphs: networks, region graphs, interaction graphs and the difference of two structures."""

import math
import textwrap
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import (
    LARGEST,
    NAME,
    Choice,
    Either,
    Instance,
    Integer,
    Number,
    Optional,
    brief,
    check_arguments,
    is_hashable,
    reading,
)
from pgm_bma.foundation.numbers.graphs import check_region_graph
from pgm_bma.plotting._draw import Box, Line, box_labels, box_sizes, paint
from pgm_bma.plotting._layout import circle_layout, layout_graph
from pgm_bma.plotting._style import (
    BLUE,
    DRAWN,
    FONT,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    SOFT,
    TITLE,
    VERMILION,
    drawing_axes,
    legend_below,
    number,
    short_labels,
    text_size,
    titled,
)

MANY = 40  # nodes from which an arc per node is enough, and many unconnected ones are listed below the picture
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
    """Draw two structures over one set of nodes: common arcs, arcs of only one of them, and arcs that are turned round.

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
    max_edges: int = 60,
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
        ``weight``), or a fitted `KikuchiBayesClassifier` or `AdditiveBayesClassifier`.
    relevance : Series or dict attribute -> number, optional
        E.g. mutual information with the class; None takes the node attribute ``information`` where there is one (of a
        classifier: the diagonal of `interaction_strength_`).
    max_edges : int, default=60
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
    handles = [
        Line2D([], [], color=BLUE, linewidth=2.5, label="more together (positive)"),
        Line2D([], [], color=VERMILION, linewidth=2.5, linestyle=(0, (3, 1.5)), label="shared (negative)"),
    ]
    if own:
        handles.append(Line2D([], [], color=SKY, linewidth=6, label="relevance by itself"))
    legend_below(ax, handles, remark or None)
    return titled(ax, title)


def _box(label, is_marked, is_latent=False):
    style = "--" if is_latent else "-"
    return Box(label, ORANGE, INK, style) if is_marked else Box(label, style=style)


def _ring_labels(angles, labels, far):
    """Texts around a circle, upright where none touches another, else along the radius: node -> (x, y, how), reach (x, y)"""
    texts, boxes = {}, {}
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
            f"highlight names {brief(unknown[0])}, which is no node; the nodes are {list(graph.nodes())[:20]}"
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
    """Whether the class or cluster is a parent of all others, for certain, and they have arcs besides."""
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
    if hasattr(interactions, "interaction_strength_"):
        interactions = interactions.interaction_strength_
        if relevance is None:
            relevance = {v: interactions.at[v, v] for v in interactions}
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


__all__ = ["plot_interactions", "plot_network", "plot_region_graph", "plot_structure_difference"]
