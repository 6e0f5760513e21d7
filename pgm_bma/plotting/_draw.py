"""Node-and-arc drawings: boxes with text, smooth arrows, on axes whose data units are inches of the layout."""

import math
from typing import Any, NamedTuple

from pgm_bma.plotting._style import FONT, INK, PAPER, SOFT, drawing_axes, legend_below, short_labels, text_size, titled


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
        patch = FancyArrowPatch(
            path=smooth_path(points), arrowstyle="-|>" if line.arrow else "-", color=line.color,
            linewidth=line.width * scale, linestyle=line.style, shrinkA=0, shrinkB=0,
            mutation_scale=(6 + 1.8 * line.width) * scale, zorder=line.level, joinstyle="miter", capstyle="butt",
        )  # fmt: skip
        patch.set_gid(f"arc:{tail}->{head}")
        ax.add_patch(patch)
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
