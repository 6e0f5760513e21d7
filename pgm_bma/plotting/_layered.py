"""A layered layout after Sugiyama, for networks of up to some hundred nodes.

Cycles are broken, every node comes below its parents (longest path, with a bound on the width of a layer), long arcs get a
dummy node in each layer they pass, the layers are ordered by barycentres to reduce crossings, and nodes are placed near
their neighbours without overlap. Units are inches; y grows upwards. Nothing depends on hashing.
"""

import math
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.graphs import topological_order

GAP_LAYERS = 0.5
MARGIN = 0.15


class LayerSpacing(NamedTuple):
    """Room between boxes of a layer, for an arc that passes the layer, and between two such arcs."""

    boxes: float
    arc: float
    arcs: float


UPRIGHT = LayerSpacing(0.26, 0.1, 0.06)
SIDEWAYS = LayerSpacing(0.12, 0.04, 0.06)  # boxes are stacked: text needs less space above and below than at its sides


class GraphLayout(NamedTuple):
    """positions : node -> centre (x, y)    routes : arc -> points from box to box    size : (width, height)"""

    positions: dict
    routes: dict
    size: tuple


def layered_layout(nodes, arcs, sizes, layers=None):
    """Layers from top to bottom or from left to right, whichever fits a page better."""
    options = []
    for sideways in (False, True):
        turned = {v: (h, w) if sideways else (w, h) for v, (w, h) in sizes.items()}
        options.append(_layered(nodes, arcs, turned, layers, sideways))
    return fitting_page(options)


def fitting_page(layouts):
    """The layout that a page, 1.4 times as wide as high, holds best."""
    return min(layouts, key=lambda layout: max(layout.size[0] / 1.4, layout.size[1]))


def _layered(nodes, arcs, sizes, layers, sideways):
    nodes, gaps = list(nodes), SIDEWAYS if sideways else UPRIGHT
    down = _without_cycles(nodes, [arc for arc in arcs if arc[0] != arc[1]])
    if layers is None:
        layers = _assign_layers(nodes, down, sizes, gaps)
    else:
        layers = _wrap_layers(nodes, layers, sizes, gaps)
    ranks, chains, widths = _with_dummies(nodes, down, layers, sizes, gaps)
    links = _links(chains)
    ranks = _reduce_crossings(ranks, links)
    x = _place(ranks, links, widths, gaps)
    tops = _layer_heights(ranks, sizes)
    total = -tops[-1][1] if tops else 0.0

    low = min((x[v] - widths[v] / 2 for v in x), default=0.0)
    high = max((x[v] + widths[v] / 2 for v in x), default=1.0)
    centre, spans = {}, {}
    for rank, (top, bottom) in zip(ranks, tops):
        for v in rank:
            centre[v] = (x[v] - low + MARGIN, total + MARGIN + (top + bottom) / 2)
            spans[v] = (total + MARGIN + top, total + MARGIN + bottom)
    routes = _routes(arcs, down, chains, centre, sizes, spans)
    width, height = high - low + 2 * MARGIN, total + 2 * MARGIN
    positions = {v: centre[v] for v in nodes}
    if not sideways:
        return GraphLayout(positions, routes, (width, height))
    # top to bottom becomes left to right; the first node of a layer stays on top
    turn = lambda point: (height - point[1], width - point[0])  # noqa: E731
    return GraphLayout(
        {v: turn(p) for v, p in positions.items()},
        {arc: [turn(p) for p in points] for arc, points in routes.items()},
        (height, width),
    )


def _without_cycles(nodes, arcs):
    """Pairs (upper, lower): the arcs, with those turned round that run against an order of few such arcs.

    Eades, Lin and Smyth (1993): take sources to the front and sinks to the back, else the node with most arcs to spare. An
    acyclic graph keeps all its arcs.
    """
    children: dict[Any, set] = {v: set() for v in nodes}
    parents: dict[Any, set] = {v: set() for v in nodes}
    for tail, head in arcs:
        children[tail].add(head)
        parents[head].add(tail)
    front: list = []
    back: list = []
    left = dict.fromkeys(nodes)

    def take(v, to):
        to.append(v)
        del left[v]
        for u in children[v]:
            parents[u].discard(v)
        for u in parents[v]:
            children[u].discard(v)

    while left:
        sink = next((v for v in left if not children[v]), None)
        source = next((v for v in left if not parents[v]), None)
        if source is not None:
            take(source, front)
        elif sink is not None:
            take(sink, back)
        else:
            take(max(left, key=lambda v: len(children[v]) - len(parents[v])), front)
    position = {v: i for i, v in enumerate([*front, *reversed(back)])}
    return list(dict.fromkeys(arc if position[arc[0]] < position[arc[1]] else arc[::-1] for arc in arcs))


def _topological(nodes, down):
    parents: dict[Any, list] = {v: [] for v in nodes}
    children: dict[Any, list] = {v: [] for v in nodes}
    for upper, lower in down:
        parents[lower].append(upper)
        children[upper].append(lower)
    index = {v: i for i, v in enumerate(nodes)}
    order = topological_order([[index[p] for p in parents[v]] for v in nodes])
    return [nodes[i] for i in order], parents, children


def _capacity(nodes, sizes, gaps):
    """Width of a layer beyond which nodes move to the next one: about that of a page that holds them all."""
    area = sum((sizes[v][0] + gaps.boxes) * (sizes[v][1] + GAP_LAYERS) for v in nodes)
    widest = max(sizes[v][0] for v in nodes) + gaps.boxes
    return max(7.0, 1.5 * math.sqrt(area), widest)


def _assign_layers(nodes, down, sizes, gaps):
    """node -> layer: below all parents, in a layer that has room; then near the neighbours; lone nodes come last."""
    order, parents, children = _topological(nodes, down)
    capacity = _capacity(nodes, sizes, gaps)
    longest = dict.fromkeys(nodes, 0)
    for v in reversed(order):
        longest[v] = max((longest[c] + 1 for c in children[v]), default=0)
    layers: dict[Any, int] = {}
    used: dict[int, float] = {}
    linked = [v for v in order if parents[v] or children[v]]
    # parents come before children; among equals those with long tails first
    position = {v: i for i, v in enumerate(order)}
    depth: dict[Any, int] = {}
    for v in linked:
        depth[v] = max((depth[p] + 1 for p in parents[v]), default=0)
    for v in sorted(linked, key=lambda v: (depth[v], -longest[v], position[v])):
        layer = max((layers[p] + 1 for p in parents[v]), default=0)
        while used.get(layer, 0.0) + sizes[v][0] + gaps.boxes > capacity and used.get(layer, 0.0) > 0:
            layer += 1
        layers[v] = layer
        used[layer] = used.get(layer, 0.0) + sizes[v][0] + gaps.boxes
    for _ in range(10):  # a source drops down to just above its children: short arcs
        for v in linked:
            if children[v] and len(children[v]) > len(parents[v]):
                target = min(layers[c] for c in children[v]) - 1
                width = sizes[v][0] + gaps.boxes
                while target > layers[v] and used.get(target, 0.0) + width > capacity:
                    target -= 1
                if target > layers[v]:
                    used[layers[v]] -= width
                    used[target] = used.get(target, 0.0) + width
                    layers[v] = target
    last, row = max(layers.values(), default=-1) + 1, 0.0
    for v in order:
        if v not in layers:
            width = sizes[v][0] + gaps.boxes
            if row and row + width > capacity:
                last, row = last + 1, 0.0
            layers[v] = last
            row += width
    return _dense(layers)


def _wrap_layers(nodes, layers, sizes, gaps):
    """Given layers, with those that are too wide broken into several rows."""
    capacity = _capacity(nodes, sizes, gaps)
    out, next_row = {}, 0
    for layer in sorted(set(layers.values())):
        members = [v for v in nodes if layers[v] == layer]
        total = sum(sizes[v][0] + gaps.boxes for v in members)
        n_rows = math.ceil(total / capacity)
        for i, v in enumerate(members):
            out[v] = next_row + i * n_rows // len(members)
        next_row += n_rows
    return _dense(out)


def _dense(layers):
    numbers = {layer: i for i, layer in enumerate(sorted(set(layers.values())))}
    return {v: numbers[layer] for v, layer in layers.items()}


def _with_dummies(nodes, down, layers, sizes, gaps):
    """Layers as lists (nodes and dummies), the chain of every pair, and the width of everything."""
    ranks: list[list] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    order, _, _ = _topological(nodes, down)
    for v in order:
        ranks[layers[v]].append(v)
    widths = {v: sizes[v][0] for v in nodes}
    chains = {}
    for k, (upper, lower) in enumerate(down):
        if layers[upper] == layers[lower]:  # only with given layers: nothing to route
            chains[upper, lower] = [upper, lower]
            continue
        step = 1 if layers[lower] > layers[upper] else -1
        chain = [upper]
        for layer in range(layers[upper] + step, layers[lower], step):
            dummy = _Dummy(k, layer)
            ranks[layer].append(dummy)
            widths[dummy] = gaps.arc
            chain.append(dummy)
        chains[upper, lower] = [*chain, lower]
    return ranks, chains, widths


class _Dummy(NamedTuple):
    arc: int
    layer: int


def _links(chains):
    """Neighbours of every node or dummy in the layers above and below."""
    links: dict[Any, list] = {}
    for chain in chains.values():
        for a, b in pairwise(chain):
            links.setdefault(a, []).append(b)
            links.setdefault(b, []).append(a)
    return links


def _reduce_crossings(ranks, links, sweeps=24):
    best = [list(rank) for rank in ranks]
    fewest = _crossings(best, links)
    current = [list(rank) for rank in ranks]
    for sweep in range(sweeps):
        if fewest == 0:
            break
        downwards = sweep % 2 == 0
        indices = range(1, len(current)) if downwards else range(len(current) - 2, -1, -1)
        for i in indices:
            current[i] = _by_barycentre(current[i], current[i - 1 if downwards else i + 1], links)
        _swap_neighbours(current, links)
        crossings = _crossings(current, links)
        if crossings < fewest:
            fewest, best = crossings, [list(rank) for rank in current]
    return best


def _by_barycentre(rank, fixed_rank, links):
    fixed = {v: j for j, v in enumerate(fixed_rank)}
    keys = {}
    for j, v in enumerate(rank):
        known = [fixed[u] for u in links.get(v, ()) if u in fixed]
        keys[v] = sum(known) / len(known) if known else j * max(len(fixed), 1) / len(rank)
    return sorted(rank, key=lambda v: keys[v])


def _swap_neighbours(ranks, links):
    for i, rank in enumerate(ranks):
        around = [{v: j for j, v in enumerate(ranks[k])} for k in (i - 1, i + 1) if 0 <= k < len(ranks)]
        seen = {v: [sorted(where[u] for u in links.get(v, ()) if u in where) for where in around] for v in rank}
        for j in range(len(rank) - 1):
            a, b = seen[rank[j]], seen[rank[j + 1]]
            now = sum(_pair_crossings(x, y) for x, y in zip(a, b))
            after = sum(_pair_crossings(y, x) for x, y in zip(a, b))
            if after < now:
                rank[j], rank[j + 1] = rank[j + 1], rank[j]


def _pair_crossings(left, right):
    return sum(1 for a in left for b in right if a > b)


def _crossings(ranks, links):
    total = 0
    for upper, lower in pairwise(ranks):
        where = {v: j for j, v in enumerate(lower)}
        ends = np.array([j for v in upper for j in sorted(where[u] for u in links.get(v, ()) if u in where)])
        total += sum(int((ends[:i] > end).sum()) for i, end in enumerate(ends))
    return total


def _place(ranks, links, widths, gaps, sweeps=16):
    """x of everything: near the mean of the neighbours, in the order of the layer, boxes apart."""
    x, offsets = {}, []
    for rank in ranks:
        steps = [
            (widths[a] + widths[b]) / 2 + (gaps.arcs if isinstance(a, _Dummy) and isinstance(b, _Dummy) else gaps.boxes)
            for a, b in pairwise(rank)
        ]
        offsets.append(np.concatenate([[0.0], np.cumsum(steps)]))
        x.update({v: float(offset - offsets[-1][-1] / 2) for v, offset in zip(rank, offsets[-1])})
    for sweep in range(sweeps):
        order = range(len(ranks)) if sweep % 2 == 0 else range(len(ranks) - 1, -1, -1)
        for i in order:
            rank = ranks[i]
            wish = np.array([np.mean([x[u] for u in links[v]]) if links.get(v) else x[v] for v in rank])
            weight = np.array([4.0 if isinstance(v, _Dummy) else 1.0 + len(links.get(v, ())) for v in rank])
            x.update(zip(rank, (_rising(wish - offsets[i], weight) + offsets[i]).tolist()))
    return x


def _rising(wish, weight):
    """Nearest non-falling sequence (pool adjacent violators)."""
    pools = []
    for value, w in zip(wish, weight):
        pools.append([value, w, 1])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            b, a = pools.pop(), pools.pop()
            total = a[1] + b[1]
            pools.append([(a[0] * a[1] + b[0] * b[1]) / total, total, a[2] + b[2]])
    return np.concatenate([np.full(n, value) for value, _, n in pools])


def _layer_heights(ranks, sizes):
    """(top, bottom) of every layer, going down from 0."""
    out, y = [], 0.0
    for i, rank in enumerate(ranks):
        tall = max((sizes[v][1] for v in rank if not isinstance(v, _Dummy)), default=0.0)
        n_arcs = len(rank)
        y -= (GAP_LAYERS + min(0.5, 0.012 * n_arcs)) if i else 0.0  # crowded layers stand farther apart
        out.append((y, y - tall))
        y -= tall
    return out


def _routes(arcs, down, chains, centre, sizes, spans):
    """Points of every arc from box to box; arcs that meet on one side of a box are spread along it."""
    ends: dict[Any, list] = {}
    for upper, lower in down:
        chain = chains[upper, lower]
        for v, towards, side in ((upper, chain[1], -1), (lower, chain[-2], 1)):
            ends.setdefault((v, side), []).append((centre[towards][0], len(ends), (upper, lower)))
    ports = {}
    for (v, side), items in ends.items():
        items.sort()
        width = sizes[v][0] * 0.7
        for i, (_, _, pair) in enumerate(items):
            shift = 0.0 if len(items) == 1 else min(width, 0.16 * (len(items) - 1)) * (i / (len(items) - 1) - 0.5)
            ports[v, side, pair] = (centre[v][0] + shift, centre[v][1] + side * sizes[v][1] / 2)
    boxes = {v: (*centre[v], *sizes[v]) for v in sizes if v in centre}
    routes = {}
    known, both = set(down), set(arcs)
    for tail, head in arcs:
        if tail == head:
            continue
        pair = (tail, head) if (tail, head) in known else (head, tail)
        upper, lower = pair
        # straight through a layer, so that no corner of a box is cut
        inner = [(centre[d][0], y) for d in chains[pair][1:-1] for y in spans[d]]
        start, end = ports[upper, -1, pair], ports[lower, 1, pair]
        # boxes of a layer differ in height: out of the own layer first, then to the other
        points = [start, (start[0], spans[upper][1]), *inner, (end[0], spans[lower][0]), end]
        points = _pull_tight(points, np.array([box for v, box in boxes.items() if v not in pair]))
        if centre[upper][1] == centre[lower][1]:
            side = 1 if centre[lower][0] > centre[upper][0] else -1
            points = [
                (centre[upper][0] + side * sizes[upper][0] / 2, centre[upper][1]),
                (centre[lower][0] - side * sizes[lower][0] / 2, centre[lower][1]),
            ]
        if (head, tail) in both:  # an arc each way: side by side
            points = [(a + (0.05 if pair == (tail, head) else -0.05), b) for a, b in points]
        routes[tail, head] = points if pair == (tail, head) else points[::-1]
    return routes


def _pull_tight(points, boxes, margin=0.07):
    """Leave out points of a route as long as the straight line meets no box.   boxes : (n, 4) centre and size"""
    if len(points) < 3 or not len(boxes):
        return points
    low = boxes[:, :2] - boxes[:, 2:] / 2 - margin
    high = boxes[:, :2] + boxes[:, 2:] / 2 + margin
    out, i = [points[0]], 0
    while i < len(points) - 1:
        j = len(points) - 1
        while j > i + 1 and _meets(points[i], points[j], low, high):
            j -= 1
        out.append(points[j])
        i = j
    return out


def _meets(start, end, low, high):
    """Return whether a segment meets any of the rectangles (slab test)."""
    start, step = np.asarray(start), np.subtract(end, start)
    with np.errstate(divide="ignore", invalid="ignore"):
        t0, t1 = (low - start) / step, (high - start) / step
    enter, leave = np.fmin(t0, t1), np.fmax(t0, t1)
    outside = (step == 0) & ((start <= low) | (start >= high))
    return bool(((np.fmax(enter.max(1), 0.0) < np.fmin(leave.min(1), 1.0)) & ~outside.any(1)).any())
