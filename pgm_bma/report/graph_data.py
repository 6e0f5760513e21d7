"""Graphs as data for the page: where nodes stand, every arc with its posterior, and what a click on a node tells.

The layout is that of `plotting`, made for the strongest arcs, plus the strongest one of every node that has none among them;
weaker arcs, which the slider brings in, run between the places where nodes then stand already. What a click tells is made by
`node_details`.
"""

import math

import numpy as np
import pandas as pd

from pgm_bma.foundation.numbers.averaging import information
from pgm_bma.plotting._draw import box_labels, box_sizes
from pgm_bma.plotting._layered import MARGIN, Layout
from pgm_bma.plotting._layout import circle_layout, layout_graph
from pgm_bma.report.node_details import column_details, network_details, state_codes

PIXELS = 96  # an inch of the layout
LEAST = 0.01  # posteriors below are not written
MOST_ARCS = 6000
START = 0.5
HINT = "Click a node, or find one by name: here come its neighbours, its table and the rows behind it. Drag and zoom as you like."
MARKED, LATENT, POSITIVE, NEGATIVE, NEUTRAL = 1, 2, 3, 4, 5  # classes of boxes in page.css


def network_data(estimator, frame=None):
    """A network, or a posterior over networks.

    estimator : fitted      frame : the rows as categoricals, target included, where they are to be counted
    """
    graph = estimator.edge_graph_ if hasattr(estimator, "edge_graph_") else estimator.to_networkx()
    names = list(graph.nodes())
    cluster = getattr(estimator, "cluster_name", None)
    root = next((name for name in (getattr(estimator, "target_name_", None), cluster) if name in names), None)
    posterior = {(a, b): data.get("posterior") for a, b, data in graph.edges(data=True) if a != b}
    has_posterior = any(p is not None for p in posterior.values())
    values = {arc: 1.0 if p is None else float(p) for arc, p in posterior.items()}
    values = dict(sorted(values.items(), key=lambda item: -item[1])[:MOST_ARCS])
    values = {arc: p for arc, p in values.items() if p >= LEAST}
    start = START if max(values.values(), default=1.0) >= START else max(values.values()) / 2
    backbone = _backbone(values, start)
    labels = box_labels({v for arc in values for v in arc} | {root} - {None} or names)
    placed = [v for v in names if v in labels]
    layout = layout_graph(placed, backbone, box_sizes(labels), "auto", root)
    marks = {} if root is None else {root: LATENT if root == cluster else MARKED}
    return {
        **_drawn(names, labels, layout, marks),
        "arcs": _arcs(names, values, _strengths(values, frame), layout),
        "directed": True,
        "measure": "posterior" if has_posterior else "",
        "format": "share",
        "slider": "Arcs of posterior at least",
        "sliding": has_posterior and min(values.values(), default=1.0) < 1.0,
        "least": LEAST,
        "step": 0.01,
        "start": round(start, 2),
        "hint": HINT,
        "details": network_details(estimator, names, frame),
    }


def interaction_data(estimator, frame=None):
    """Interactions of pairs of columns about the class (Kikuchi-Bayes), on a circle; frame as in `network_data`."""
    strength = estimator.interaction_strength_
    names, numbers = list(strength.columns), strength.to_numpy(dtype=float)
    first, second = np.triu_indices(len(names), 1)
    order = np.argsort(-np.abs(numbers[first, second]), kind="stable")[:MOST_ARCS]
    pairs = [(names[first[i]], names[second[i]], float(numbers[first[i], second[i]])) for i in order]
    pairs = [pair for pair in pairs if math.isfinite(pair[2]) and pair[2] != 0]
    largest = max((abs(pair[2]) for pair in pairs), default=1.0)
    values = {(a, b): w for a, b, w in pairs if abs(w) >= 0.005 * largest}
    start = sorted((abs(w) for w in values.values()), reverse=True)[: 2 * len(names)][-1:] or [0.0]
    labels = box_labels(names)
    notes = {name: f"By itself it tells {numbers[i, i]:.3f} nats about the class." for i, name in enumerate(names)}
    return {
        **_drawn(names, labels, _ring(names, pairs[: 3 * len(names)], box_sizes(labels)), {}, notes),
        "arcs": _arcs(names, values, {}, None),
        "directed": False,
        "measure": "interaction in nats",
        "format": "signed",
        "slider": "Interactions of at least",
        "sliding": bool(values),
        "least": 0.005 * largest,
        "step": largest / 200,
        "start": start[0],
        "links": "Interacts with (+ more together, − partly the same)",
        "hint": f"Solid: two columns together tell more about the class than both apart. Dashed: partly the same. {HINT}",
        "details": column_details(estimator, names, frame),
    }


def region_data(estimator):
    """The region graph (Kikuchi-Bayes): a box per region with its counting number, larger regions above."""
    graph, target = estimator.region_graph_, estimator.target_name_
    regions = sorted(graph.nodes(), key=lambda region: (-len(region), sorted(map(str, region))))
    members = {r: ", ".join(sorted(str(v) for v in r if v != target)) or str(target) for r in regions}
    short = box_labels(members.values(), 26)
    counts = {r: float(graph.nodes[r]["counting_number"]) for r in regions}
    texts = {r: f"{short[members[r]]}\n{counts[r]:+.3g}" for r in regions}
    layers = {r: -len(r) for r in regions}
    layout = layout_graph(regions, list(graph.edges()), box_sizes(texts), "layered", layers=layers)
    marks = {r: POSITIVE if c > 0 else NEGATIVE if c < 0 else NEUTRAL for r, c in counts.items()}
    notes = {
        r: f"Counting number {counts[r]:+.3g}; a region of {len(r)} with {target}. Blue counts positively, orange negatively."
        for r in regions
    }
    data = _drawn(regions, texts, layout, marks, notes)
    for node, region in zip(data["nodes"], regions):
        node[0] = members[region]
    return {
        **data,
        "arcs": _arcs(regions, dict.fromkeys(graph.edges(), 1.0), {}, layout),
        "directed": True,
        "measure": "",
        "format": "share",
        "slider": "",
        "sliding": False,
        "least": 0,
        "step": 1,
        "start": 0,
        "hint": "Click a region for its counting number, the regions that hold it and those inside it. Drag and zoom as you like.",
        "details": [None] * len(regions),
    }


def _backbone(values, start):
    """The arcs that are laid out: those shown at first, two per node at most, and the best one of every other node."""
    nodes = {v for arc in values for v in arc}
    strong = [arc for arc, p in values.items() if p >= start][: 2 * len(nodes)]
    seen = {v for arc in strong for v in arc}
    for arc in values:  # falling
        if not seen.issuperset(arc):
            strong.append(arc)
            seen.update(arc)
    return strong


def _drawn(names, labels, layout, marks, notes=None):
    """Nodes as [name, label, x, y, width, height, mark, note], in pixels, y downwards; those without a place have x None."""
    width, height = layout.size
    sizes = box_sizes(labels)
    nodes = []
    for v in names:
        place = layout.positions.get(v)
        at = (None, None, 0, 0)
        if place is not None:
            at = (*_pixels(place, height), *(round(PIXELS * side, 1) for side in sizes[v]))
        nodes.append([str(v), labels.get(v, str(v)), *at, marks.get(v, 0), (notes or {}).get(v, "")])
    return {"nodes": nodes, "width": round(PIXELS * width), "height": round(PIXELS * height)}


def _arcs(names, values, strengths, layout):
    """Arcs as [tail, head, value, strength or None, points or None]."""
    index = {v: i for i, v in enumerate(names)}
    arcs = []
    for (a, b), value in values.items():
        route = layout.routes.get((a, b)) if layout is not None else None
        points = None if route is None else [x for p in route for x in _pixels(p, layout.size[1])]
        strength = strengths.get((a, b))
        arcs.append([index[a], index[b], round(value, 4), None if strength is None else round(strength, 4), points])
    return arcs


def _pixels(point, height):
    return round(PIXELS * point[0], 1), round(PIXELS * (height - point[1]), 1)


def _ring(names, pairs, sizes):
    """Two columns that bow outwards: the order of a circle, without its crowded top and bottom."""
    order = list(circle_layout(names, pairs))  # clockwise from the top
    half = (len(order) + 1) // 2
    wide = max((size[0] for size in sizes.values()), default=1.0)
    step = max((size[1] for size in sizes.values()), default=0.3) + 0.1
    height = half * step
    places = {}
    for column, side in ((order[:half], 1), (order[half:][::-1], -1)):
        for i, v in enumerate(column):
            y = (len(column) - 1) / 2 - i
            bow = math.sqrt(max(0.0, 1 - (2 * y / (half + 1)) ** 2))
            places[v] = (side * (0.6 + wide / 2 + 0.3 * height * bow), y * step)
    across = max(abs(x) for x, _ in places.values()) + wide / 2 + MARGIN
    up = height / 2 + MARGIN
    return Layout({v: (x + across, y + up) for v, (x, y) in places.items()}, {}, (2 * across, 2 * up))


def _strengths(values, frame):
    """Mutual information in nats of both ends of every arc, in the rows where both are known."""
    if frame is None:
        return {}
    codes = {name: state_codes(column) for name, column in frame.items()}
    found = {}
    for a, b in values:
        if (b, a) in found:
            found[a, b] = found[b, a]
        elif a in codes and b in codes:
            found[a, b] = _information(*codes[a], *codes[b])
    return found


def _information(first, n_first, second, n_second):
    known = (first >= 0) & (second >= 0)
    joint = np.bincount(first[known] * n_second + second[known], minlength=n_first * n_second).reshape(
        n_first, n_second
    )
    return max(information(joint / known.sum()), 0.0) if known.any() else None


def with_target(frame, target):
    """The rows with their class as a last column, as `network_data` counts them."""
    return frame if target is None or target.name in frame else pd.concat([frame, target], axis=1)
