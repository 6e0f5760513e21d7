"""Colours, axes and labels that all pictures share, and drawings of nodes and arcs.

Colours are Okabe and Ito's, which colour-blind readers can tell apart; whatever a colour says is also said by a dash pattern,
a marker or a text. Graphs are laid out in layers, as a fan for stars, or by graphviz when it is installed; they are painted
on axes whose data units are inches of the layout, y upwards. Nothing depends on hashing, so equal graphs give equal pictures.
"""

import math
import shutil
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import TEXT, Optional, Rule, reading
from pgm_bma.plotting._layered import MARGIN, GraphLayout, fitting_page, layered_layout

ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE, BLACK = (
    "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#000000",
)  # fmt: skip
SERIES = [BLUE, ORANGE, GREEN, VERMILION, SKY, PURPLE, BLACK, "#8C8C8C"]  # grey: yellow lines vanish on white
INK, SOFT, PAPER, RULE = "#222222", "#6B7780", "#EEF3F7", "#D5DCE2"
PALE = "#B9D3E6"
MARKERS = "osD^vPX*"
FONT = 9.0
MANY = 40  # nodes: with more, pictures show less of each

FEW_LOOSE = 3  # nodes without an arc that may stand among the others
GAP_LOOSE = (0.2, 0.12)

TITLE = Optional(TEXT)


def new_axes(ax, width, height, largest=40.0):
    """The given axes, or new ones of about this size in inches."""
    if ax is not None:
        return _given(ax)
    import matplotlib.pyplot as plt

    shrink = min(1.0, largest / max(width, height))
    _, ax = plt.subplots(figsize=(max(width * shrink, 2.0), max(height * shrink, 1.5)), layout="constrained")
    return ax


def drawing_axes(ax, width, height, around=0.0, least=3.0):
    """Axes for a drawing whose data units are inches, and the factor by which it is shrunk (or grown) to fit.

    width, height : of the drawing      around : height of what stands above and below      least : width of a new figure
    """
    if ax is None:
        ax = new_axes(None, max(width, least), height + around)
        figure = ax.figure.get_size_inches()
        scale = 0.97 * min(1.0, figure[0] / max(width, least), figure[1] / (height + around))  # 3 % for the paddings
    else:
        room = inches(_given(ax))
        scale = min(room[0] / width, room[1] / height, 1.3)
    ax.set_xlim(0, width)
    ax.set_ylim(0, height)
    ax.set_aspect("equal", adjustable="box")
    ax.set_axis_off()
    return ax, scale


def _given(ax):
    if not hasattr(ax, "get_window_extent") or not hasattr(ax, "plot"):
        raise TypeError(f"ax must be the axes of a matplotlib figure, or None, got a {type(ax).__name__}")
    return ax


def inches(ax):
    """Width and height of the axes as they stand."""
    box = _given(ax).get_window_extent()
    dpi = ax.figure.dpi
    return box.width / dpi, box.height / dpi


def text_size(text, fontsize=FONT):
    """Width and height of a text in inches, without drawing it."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=fontsize)
    lines = text.split("\n")
    width = max(text_to_path.get_text_width_height_descent(line or " ", font, ismath=False)[0] for line in lines)
    return width / 72, len(lines) * fontsize * 1.25 / 72


def short_labels(names, limit):
    """name -> text of at most about `limit` characters, shortened in the middle and still distinct."""
    names = list(names)
    texts = {name: str(name) for name in names}
    while True:
        labels = {name: _shorten(text, limit) for name, text in texts.items()}
        if len(set(labels.values())) == len(set(texts.values())) or limit >= max(map(len, texts.values()), default=0):
            return labels
        limit += 4


def _shorten(text, limit):
    if len(text) <= limit:
        return text
    tail = max(1, (limit - 1) // 3)
    return text[: limit - 1 - tail] + "…" + text[-tail:]


def note(ax, text, corner=(0, 0), shift=(0, -4), va="top", fontsize=FONT - 1.5):
    """A remark at a corner of the axes, shifted by points; below them unless said otherwise."""
    how = {"xycoords": "axes fraction", "textcoords": "offset points", "annotation_clip": False, "parse_math": False}
    ax.annotate(text, corner, xytext=shift, va=va, fontsize=fontsize, color=SOFT, **how)


def legend_below(ax, handles, remark=None, columns=None):
    """Legend and remark under the axes, where they hide nothing."""
    if not handles:
        return note(ax, remark) if remark else None
    legend = ax.legend(
        handles=handles, loc="upper center", bbox_to_anchor=(0.5, -0.01), ncol=columns or len(handles), frameon=False,
        fontsize=FONT - 1, title=remark, title_fontsize=FONT - 1.5, handlelength=2.6, columnspacing=1.4,
    )  # fmt: skip
    legend.get_title().set_color(SOFT)
    return legend


def bare(ax, grid=None, x=None, y=None, parse_math=True):
    """Only the axis lines that help reading, and what stands along them."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(SOFT)
    ax.tick_params(colors=INK, labelsize=FONT - 1)
    if grid:
        ax.grid(axis=grid, color=RULE, linewidth=0.6)
        ax.set_axisbelow(True)
    for text, write in ((x, ax.set_xlabel), (y, ax.set_ylabel)):
        if text is not None:
            write(text, fontsize=FONT, parse_math=parse_math)


def name_rows(ax, labels, size=None):
    """Lines from top to bottom with their names; `size` of the letters is what the axes have room for."""
    size = float(np.clip(inches(ax)[1] * 72 / max(len(labels), 1) * 0.72, 4.0, FONT - 1)) if size is None else size
    ax.set_yticks(range(len(labels)), labels, parse_math=False)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0, labelsize=size)


def shade(probability):
    """Blue that pales as the probability falls; the palest still shows on white."""
    low, high = (tuple(int(code[i : i + 2], 16) for i in (1, 3, 5)) for code in ("#D3E3EF", BLUE))
    p = 0.0 if math.isnan(probability) else min(max(float(probability), 0.0), 1.0)
    return "#" + "".join(f"{round(a + p * (b - a)):02X}" for a, b in zip(low, high))


def titled(ax, title, pad=6):
    """The axes, with a title where there is one."""
    if title:
        ax.set_title(title, fontsize=FONT + 2, color=INK, pad=pad)
    return ax


def number(value):
    """A short number for a label."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else str(value)
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:,.0f}"


def sized_heads(names, sizes, room):
    """(names of clusters with their sizes, height that a second line adds); sizes go below names that lack `room` in inches."""
    shares = ["<1 %" if 0 < size < 0.005 else f"{size:.0%}".replace("%", " %") for size in sizes]
    heads = [f"{name} ({share})" for name, share in zip(names, shares)]
    if max(text_size(head)[0] for head in heads) <= room:
        return heads, 0.0
    return [f"{name}\n({share})" for name, share in zip(names, shares)], 0.15


def table_rule(*numbers, others=()):
    """A table with rows, with these columns of numbers, and with others."""
    names = [*others, *numbers]

    def admits(value):
        if not isinstance(value, pd.DataFrame) or value.empty or not {*names} <= {*value.columns}:
            return False
        return all(value[name].dtype.kind in "iuf" for name in numbers)

    listed = ", ".join(map(repr, names))
    return Rule(
        f"a table with the columns {listed} (numbers: {', '.join(numbers)}), or an estimator that has it", admits
    )


# -------------------------------------------------------------------------------------------- nodes and arcs


class Box(NamedTuple):
    label: str
    fill: str = PAPER
    edge: str = SOFT
    style: str = "-"
    width: float = 0.9
    ink: str = INK


class Line(NamedTuple):
    color: str = INK
    width: float = 1.2
    style: Any = "-"  # of matplotlib: a text, or (offset, dashes)
    level: float = 2.0
    arrow: bool = True


def layout_graph(nodes, arcs, sizes, method="auto", hub=None, layers=None):
    """Choose and run a layout.

    nodes : list    arcs : list of (tail, head)    sizes : node -> (width, height)
    method : "auto", "graphviz", "layered", "fan" or node -> (x, y)    hub : node that may have arcs to nearly all others
    layers : node -> layer, if the layers are given (layered only)
    """
    if isinstance(method, dict):
        return given_layout(nodes, arcs, sizes, method)
    if method not in ("auto", "graphviz", "layered", "fan"):
        raise ValueError(f"layout={method!r}; choose 'auto', 'graphviz', 'layered', 'fan' or give a dict of places")
    linked = {v for arc in arcs for v in arc} | {hub}
    loose = [v for v in nodes if v not in linked]
    if len(loose) > FEW_LOOSE and layers is None and method != "fan":
        return _below([v for v in nodes if v in linked], loose, arcs, sizes, method, hub)
    hub_arcs = [arc for arc in arcs if arc[0] == hub]
    crowded = hub is not None and len(nodes) > 12 and len(hub_arcs) >= 0.6 * (len(nodes) - 1)
    if method == "fan" or (method == "auto" and crowded and len(hub_arcs) == len(arcs)):
        return fan_layout(nodes, arcs, sizes, hub)
    if crowded:
        return _above(nodes, arcs, sizes, method, hub)
    if method == "graphviz" or (method == "auto" and layers is None and has_graphviz()):
        return graphviz_layout(nodes, arcs, sizes)
    return layered_layout(nodes, arcs, sizes, layers)


def _above(nodes, arcs, sizes, method, hub):
    """The others by themselves, the hub above them with straight arcs: its many arcs would pull everything apart."""
    others = [v for v in nodes if v != hub]
    rest = layout_graph(others, [arc for arc in arcs if hub not in arc], sizes, method)
    width, height = rest.size
    centre = (width / 2, height + 0.5 + sizes[hub][1] / 2)
    routes = dict(rest.routes)
    for tail, head in arcs:
        if hub in (tail, head):
            other = head if tail == hub else tail
            x, y = rest.positions[other]
            points = [(centre[0], centre[1] - sizes[hub][1] / 2), (x, y + sizes[other][1] / 2)]
            routes[tail, head] = points if tail == hub else points[::-1]
    return GraphLayout({hub: centre, **rest.positions}, routes, (width, centre[1] + sizes[hub][1] / 2 + MARGIN))


def _below(linked, loose, arcs, sizes, method, hub):
    """Nodes without an arc in rows below the others: in the layers they would stand between them."""
    rest = layout_graph(linked, arcs, sizes, method, hub) if linked else GraphLayout({}, {}, (0.0, MARGIN))
    across, down = (max(sizes[v][k] for v in loose) + gap for k, gap in ((0, GAP_LOOSE[0]), (1, GAP_LOOSE[1])))
    square = math.sqrt(1.4 * len(loose) * down / across)  # columns that make the rows alone fit a page
    n_columns = min(len(loose), max(math.ceil(square), int((rest.size[0] - 2 * MARGIN) / across), 1))
    n_rows = -(-len(loose) // n_columns)
    width = max(rest.size[0], n_columns * across + 2 * MARGIN)
    raised = n_rows * down + MARGIN
    shift = lambda point: (point[0] + (width - rest.size[0]) / 2, point[1] + raised)  # noqa: E731
    positions = {v: shift(point) for v, point in rest.positions.items()}
    for i, v in enumerate(loose):
        row, column = divmod(i, n_columns)
        positions[v] = (width / 2 + (column - (n_columns - 1) / 2) * across, raised - (row + 0.5) * down)
    routes = {arc: [shift(point) for point in points] for arc, points in rest.routes.items()}
    return GraphLayout(positions, routes, (width, rest.size[1] + raised))


def has_graphviz():
    """Return whether both pydot and the program dot are there."""
    return shutil.which("dot") is not None and find_spec("pydot") is not None


def fan_layout(nodes, arcs, sizes, hub):
    """The hub in the middle, all others in a column on either side: readable for naive Bayes with many variables."""
    others = [v for v in nodes if v != hub]
    half = (len(others) + 1) // 2
    columns = [others[:half], others[half:]]
    step = max((sizes[v][1] for v in others), default=0.0) + 0.12
    widest = max((sizes[v][0] for v in others), default=0.0)
    # the farther the ends of a column, the flatter the arcs may run
    reach = sizes[hub][0] / 2 + widest / 2 + max(1.2, 0.22 * half * step)
    height = max(half * step, sizes[hub][1]) + 2 * MARGIN
    width = 2 * reach + widest + 2 * MARGIN
    positions = {hub: (width / 2, height / 2)}
    for column, side in zip(columns, (-1, 1)):
        for i, v in enumerate(column):
            inner = width / 2 + side * (reach - widest / 2)  # the sides towards the hub are in line
            positions[v] = (inner + side * sizes[v][0] / 2, height / 2 + ((len(column) - 1) / 2 - i) * step)
    routes = {}
    for tail, head in arcs:
        (x0, y0), (x1, y1) = positions[tail], positions[head]
        side = 1 if x1 > x0 else -1
        routes[tail, head] = [(x0 + side * sizes[tail][0] / 2, y0), (x1 - side * sizes[head][0] / 2, y1)]
    return GraphLayout(positions, routes, (width, height))


def given_layout(nodes, arcs, sizes, places):
    """Nodes where the caller wants them, straight arcs from border to border: pictures of several structures, all alike."""
    lacking = [v for v in nodes if v not in places]
    if lacking:
        raise ValueError(f"layout= has no place for {lacking[0]!r}; give every node its (x, y) in inches")
    with reading("layout", places, "a dict node -> (x, y) in inches"):
        places = {v: (float(places[v][0]), float(places[v][1])) for v in nodes}
    low = [min(places[v][k] - sizes[v][k] / 2 for v in nodes) - MARGIN for k in (0, 1)]
    high = [max(places[v][k] + sizes[v][k] / 2 for v in nodes) + MARGIN for k in (0, 1)]
    positions = {v: (places[v][0] - low[0], places[v][1] - low[1]) for v in nodes}
    routes = {}
    for tail, head in arcs:
        a, b = positions[tail], positions[head]
        routes[tail, head] = [_border(a, b, sizes[tail]), _border(b, a, sizes[head])]
    return GraphLayout(positions, routes, (high[0] - low[0], high[1] - low[1]))


def _border(centre, towards, size):
    """Return where the line from the centre of a box towards a point leaves the box."""
    dx, dy = towards[0] - centre[0], towards[1] - centre[1]
    reach = max(abs(dx) / (size[0] / 2), abs(dy) / (size[1] / 2))
    return (centre[0] + dx / reach, centre[1] + dy / reach) if reach else centre


def circle_layout(nodes, edges):
    """Angles on a circle; neighbours in the list are kept near each other so that chords stay short.

    returns node -> angle in radians, from the top clockwise
    """
    order = _ring_order(nodes, edges)
    return {v: math.pi / 2 - 2 * math.pi * i / max(len(order), 1) for i, v in enumerate(order)}


def graphviz_layout(nodes, arcs, sizes):
    """Positions and curves computed by graphviz' dot, read from its plain output."""
    if not has_graphviz():
        raise RuntimeError(
            "layout='graphviz' needs the package pydot (pip install 'pgm-bma[graphviz]') and the program dot"
        )
    options = [parse_plain(_run_dot(nodes, arcs, sizes, rankdir), nodes, arcs) for rankdir in ("TB", "LR")]
    return fitting_page(options)


def _run_dot(nodes, arcs, sizes, rankdir):
    import pydot

    graph = pydot.Dot("g", graph_type="digraph", rankdir=rankdir, nodesep="0.2", ranksep="0.4")
    name = {v: f"n{i}" for i, v in enumerate(nodes)}  # safe names: labels are drawn by us
    for v in nodes:
        width, height = sizes[v]
        graph.add_node(
            pydot.Node(name[v], label='""', shape="box", fixedsize="true", width=f"{width:.3f}", height=f"{height:.3f}")
        )
    for tail, head in arcs:
        graph.add_edge(pydot.Edge(name[tail], name[head], arrowhead="none"))  # the curve then reaches the box
    plain: Any = graph.create(prog="dot", format="plain")  # bytes, which pydot calls str
    return plain.decode()


def parse_plain(text, nodes, arcs):
    """GraphLayout from the output of ``dot -Tplain`` whose nodes are called n0, n1, ..."""
    positions, routes, size = {}, {}, (1.0, 1.0)
    by_name = {f"n{i}": v for i, v in enumerate(nodes)}
    for line in text.replace("\\\n", "").splitlines():
        kind, *rest = line.split()
        if kind == "graph":
            size = (float(rest[1]) + 2 * MARGIN, float(rest[2]) + 2 * MARGIN)
        elif kind == "node":
            positions[by_name[rest[0]]] = (float(rest[1]) + MARGIN, float(rest[2]) + MARGIN)
        elif kind == "edge":
            n = int(rest[2])
            numbers = [float(r) + MARGIN for r in rest[3 : 3 + 2 * n]]
            points = list(zip(numbers[::2], numbers[1::2]))
            routes[by_name[rest[0]], by_name[rest[1]]] = _points_on_bezier(points)
    return GraphLayout(positions, {arc: routes[arc] for arc in arcs if arc in routes}, size)


def _points_on_bezier(points):
    out = [points[0]]
    for i in range(0, len(points) - 3, 3):
        piece = np.asarray(points[i : i + 4])
        for t in np.linspace(0.125, 1.0, 8):
            weights = np.array([(1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3])
            out.append(tuple(map(float, weights @ piece)))
    return out


def _ring_order(nodes, edges):
    """Order on a circle: strongly connected nodes next to each other, by the angle of two smooth eigenvectors."""
    nodes = list(nodes)
    if len(nodes) < 4 or not edges:
        return nodes
    index = {v: i for i, v in enumerate(nodes)}
    weights = np.zeros((len(nodes), len(nodes)))
    for a, b, w in edges:
        weights[index[a], index[b]] += abs(w)
        weights[index[b], index[a]] += abs(w)
    weights /= weights.max() or 1.0
    weights += 1e-3  # one component
    laplacian = np.diag(weights.sum(1)) - weights
    _, vectors = np.linalg.eigh(laplacian)
    first, second = vectors[:, 1], vectors[:, 2]
    # the sign of an eigenvector is arbitrary: the largest entry is made positive
    first = first * np.sign(first[np.argmax(np.abs(first).round(9))])
    second = second * np.sign(second[np.argmax(np.abs(second).round(9))])
    angle = np.round(np.arctan2(second, first), 9)
    return [nodes[i] for i in np.lexsort((np.arange(len(nodes)), angle))]


# ------------------------------------------------------------------------------------------------- painting


def box_labels(names, limit=None):
    """Labels for boxes; long names are shortened more where there are many."""
    names = list(names)
    return short_labels(names, limit or (24 if len(names) <= 20 else 18))


def box_sizes(labels):
    """name -> (width, height) in inches of a box around each label."""
    texts = {name: text_size(label) for name, label in labels.items()}
    return {name: (max(width + 0.18, 0.42), height + 0.12) for name, (width, height) in texts.items()}


def paint(layout, boxes, lines, ax=None, handles=(), title=None, remark=None):
    """Draw a layout. boxes : node -> Box    lines : arc -> Line    returns the axes

    Boxes carry the gid "node:<name>", arcs "arc:<tail>-><head>", so that an SVG can be searched and tests can look.
    """
    from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

    width, height = layout.size
    remarks = (remark or "").splitlines()
    around = 0.35 * bool(handles) + 0.2 * bool(remark) + 0.165 * len(remarks) + 0.3 * bool(title) + 0.08
    least = max([5.0 if handles else 3.0, *(text_size(line, FONT - 1.5)[0] + 0.2 for line in remarks)])
    ax, scale = drawing_axes(ax, width, height, around, least)
    for (tail, head), points in layout.routes.items():
        line = lines[tail, head]
        arrow = FancyArrowPatch(
            path=smooth_path(points), arrowstyle="-|>" if line.arrow else "-", color=line.color,
            linewidth=line.width * scale, linestyle=line.style, shrinkA=0, shrinkB=0,
            mutation_scale=(6 + 1.8 * line.width) * scale, zorder=line.level, joinstyle="miter", capstyle="butt",
        )  # fmt: skip
        arrow.set_gid(f"arc:{tail}->{head}")
        ax.add_patch(arrow)
    for node, (x, y) in layout.positions.items():
        box = boxes[node]
        w, h = box_sizes({node: box.label})[node]
        patch = FancyBboxPatch(
            (x - w / 2, y - h / 2), w, h, boxstyle="round,pad=0,rounding_size=0.07", facecolor=box.fill,
            edgecolor=box.edge, linestyle=box.style, linewidth=box.width * scale, zorder=3,
        )  # fmt: skip
        patch.set_gid(f"node:{node}")
        ax.add_patch(patch)
        ax.text(
            x, y, box.label, ha="center", va="center", fontsize=FONT * scale, color=box.ink, zorder=4, parse_math=False,
            linespacing=1.15,
        )  # fmt: skip
    legend_below(ax, list(handles), remark)
    return titled(ax, title)


def smooth_path(points, radius=0.45):
    """A line through the points with rounded corners; it never leaves the hull of its corners."""
    from matplotlib.path import Path

    vertices, codes = [points[0]], [Path.MOVETO]
    for before, corner, after in zip(points, points[1:], points[2:]):
        vertices += [_towards(corner, before, radius), corner, _towards(corner, after, radius)]
        codes += [Path.LINETO, Path.CURVE3, Path.CURVE3]
    return Path([*vertices, points[-1]], [*codes, Path.LINETO])


def _towards(point, other, distance):
    """A point that far along the way, at most half of it."""
    length = math.dist(point, other)
    share = min(distance / length, 0.5) if length else 0.0
    return (point[0] + (other[0] - point[0]) * share, point[1] + (other[1] - point[1]) * share)
