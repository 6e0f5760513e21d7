"""Explorable parts of a report, as data for its scripts: graphs, clusters, and rows with their explanation.

Graphs: where nodes stand, every arc with its posterior, and what a click on a node shows. The layout is that of `plotting`,
made for the strongest arcs, plus the strongest one of every node that has none among them; weaker arcs, which the slider
brings in, run between the places where nodes then stand already. A click shows the node's table, P(x | parents) of the fitted
network (the single best one where many are averaged), and the rows of the data behind it. Where the model has no such
tables, they are shares of the rows by class. Everything is cut to a size that a page can hold, and says so.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.numbers.families import information
from pgm_bma.foundation.tables.cut_points import state_text
from pgm_bma.plotting._drawing import box_labels, box_sizes, circle_layout, layout_graph
from pgm_bma.plotting._layered import MARGIN, GraphLayout

PIXELS = 96  # an inch of the layout
LEAST = 0.01  # posteriors below are not written
MOST_ARCS = 6000
START = 0.5
HINT = "Click a node, or find one by name: here come its neighbours, its table and the rows behind it. Drag and zoom as you like."
INTERACTIONS = (
    "Solid: two columns together say more about the class than both apart. Dashed: partly the same.",
    "Two columns together say more about the class than the sum of both; the share is that of the explained log odds.",
)  # of Kikuchi-Bayes, of additive terms
MARKED, LATENT, POSITIVE, NEGATIVE, NEUTRAL = 1, 2, 3, 4, 5  # classes of boxes in page.css
MOST_CELLS = 400  # of one node's table
MOST_STATES = 40
MOST_NUMBERS = 60_000  # of all profiles, or of all explained rows
MOST_ROWS = 120


def network_data(estimator, frame=None):
    """A network, or a posterior over networks.

    estimator : fitted      frame : the rows as categoricals, target included, where they are to be counted
    """
    graph = estimator.edge_graph_ if hasattr(estimator, "edge_graph_") else estimator.to_networkx()
    names = list(graph.nodes())
    cluster = getattr(estimator, "cluster_name", None)
    root = next((name for name in (getattr(estimator, "target_name_", None), cluster) if name in names), None)
    # the fitted model is one network, whose arcs are all shown; a method that weighs no arcs has no posterior to show
    is_exact = getattr(estimator, "model_is_exact_", True)
    weighs_arcs = not is_exact or hasattr(estimator, "arc_prior")
    posterior = {
        (a, b): data.get("posterior") if weighs_arcs else None for a, b, data in graph.edges(data=True) if a != b
    }
    has_posterior = any(p is not None for p in posterior.values())
    values = {arc: 1.0 if p is None else float(p) for arc, p in posterior.items()}
    values = dict(sorted(values.items(), key=lambda item: -item[1])[:MOST_ARCS])
    least = 0.0 if is_exact else LEAST
    values = {arc: p for arc, p in values.items() if p >= least}
    start = START if max(values.values(), default=1.0) >= START else max(values.values()) / 2
    start = 0.0 if is_exact else start
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
        "least": least,
        "step": 0.01,
        "start": round(start, 2),
        "hint": HINT,
        "details": _network_details(estimator, names, frame),
    }


def interaction_data(estimator, frame=None):
    """Pairs of columns that interact about the class beyond chance, on a circle; frame as in `network_data`."""
    names, found = list(estimator.schema_.names), estimator.interactions_
    sure = found[(found["low"] > 0) | (found["high"] < 0)].sort_values("importance", key=abs, ascending=False)
    # as `_arcs` writes them, so that the slider and what it hides speak of equal numbers
    pairs = [(a, b, round(float(w), 4)) for a, b, w, *_ in sure.head(MOST_ARCS).itertuples(index=False)]
    largest = max((abs(pair[2]) for pair in pairs), default=1.0)
    values = {(a, b): w for a, b, w in pairs if abs(w) >= 0.005 * largest}
    start = sorted((abs(w) for w in values.values()), reverse=True)[: 2 * len(names)][-1:] or [0.0]
    step = largest / 200
    placed = [name for name in names if any(name in pair for pair in values)] or names
    labels, drawn = box_labels(placed), [pair for pair in pairs if pair[:2] in values][: 3 * len(names)]
    own = estimator.feature_importances_
    notes = {name: f"Its terms change the evidence for the class by {w:.3f} nats." for name, w in zip(names, own)}
    shares = hasattr(estimator, "pairs_")  # of the explained log odds, without a sign
    return {
        **_drawn(names, labels, _ring(placed, drawn, box_sizes(labels)), {}, notes),
        "arcs": _arcs(names, values, {}, None),
        "directed": False,
        "measure": "share of the log odds" if shares else "interaction in nats",
        "format": "share" if shares else "signed",
        "slider": "Interactions of at least",
        "sliding": bool(values),
        "least": 0.005 * largest,
        "step": step,
        "start": max(
            0.005 * largest, start[0] - step
        ),  # the slider stops at whole steps, not above the weakest one shown
        "links": "Interacts with" if shares else "Interacts with (+ more together, − partly the same)",
        "hint": f"{INTERACTIONS[shares]} {HINT}",
        "details": _column_details(estimator, names, frame),
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
    return GraphLayout({v: (x + across, y + up) for v, (x, y) in places.items()}, {}, (2 * across, 2 * up))


def _strengths(values, frame):
    """Mutual information in nats of both ends of every arc, in the rows where both are known."""
    if frame is None:
        return {}
    codes = {name: _state_codes(column) for name, column in frame.items()}
    found: dict[Any, float | None] = {}
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


# ------------------------------------------------------------------------------------------- what a click shows


def _network_details(estimator, names, frame):
    """One dict (or None) per node: the table of the network and the counts of the rows."""
    model = estimator.model_
    if not hasattr(model, "get_cpds"):
        return _column_details(estimator, names, frame)
    tables = {cpd.variable: cpd for cpd in model.cpds}
    columns = {} if frame is None else {name: frame[name] for name in frame}
    labels = getattr(estimator, "labels_", None)
    if frame is not None and labels is not None and len(labels) == len(frame):
        columns[estimator.cluster_name] = pd.Series(pd.Categorical(labels))
    # with numeric columns, which a network cannot hold, the tables are still those of the model
    is_best = not getattr(estimator, "model_is_exact_", True) and not getattr(estimator, "numeric_columns_", ())
    details = []
    for name in names:
        detail = _table(tables[name], columns, is_best) if name in tables else {}
        detail.update(_counts(columns.get(name)))
        details.append(detail or None)
    return details


def _column_details(estimator, names, frame):
    """Shares of every state by class, from the rows: for models without conditional tables."""
    details = []
    target = getattr(estimator, "target_name_", None)
    for name in names:
        detail = {}
        if frame is not None and name in frame and target in frame and name != target:
            table = pd.crosstab(frame[target].astype(object), frame[name].astype(object), dropna=False)
            table = table.loc[table.sum(axis=1) > 0]
            shown = table.iloc[: max(1, MOST_CELLS // max(table.shape[1], 1)), :MOST_STATES]
            sums = table.sum(axis=1).to_numpy()[: len(shown)]
            detail = {
                "title": f"Shares in the rows, by {target}",
                "given": [str(target)],
                "states": [state_text(state) for state in shown.columns],
                "at": [[state_text(state)] for state in shown.index],
                "p": (shown.to_numpy() / sums[:, None]).round(4).tolist(),
                "n": sums.tolist(),
                "cut": _cut(shown.shape, table.shape),
            }
        detail.update(_counts(frame[name] if frame is not None and name in frame else None))
        details.append(detail or None)
    return details


def _state_codes(column):
    """(codes, number of states) of a column."""
    codes = column.cat if hasattr(column, "cat") else column.astype("category").cat
    return codes.codes.to_numpy().astype(np.int64), len(codes.categories)


def _table(cpd, columns, is_best):
    variable, parents = cpd.variable, list(cpd.variables[1:])
    states = [state_text(state) for state in cpd.state_names[variable]]
    values = np.asarray(cpd.values, dtype=float).reshape(len(states), -1).T  # a line per configuration
    shape = tuple(len(cpd.state_names[parent]) for parent in parents)
    rows = _rows_behind(cpd, parents, columns, shape)
    order = np.arange(len(values)) if rows is None else np.argsort(-rows, kind="stable")
    kept = order[: max(1, MOST_CELLS // min(len(states), MOST_STATES))]
    kept = np.sort(kept) if len(kept) == len(order) else kept
    at = np.stack(np.unravel_index(kept, shape), axis=1) if parents else np.zeros((len(kept), 0), dtype=int)
    given = f"P({variable} | {', '.join(map(str, parents))})" if parents else f"P({variable})"
    return {
        "title": f"{given} in the single best network" if is_best else given,
        "given": [str(parent) for parent in parents],
        "states": states[:MOST_STATES],
        "at": [[state_text(cpd.state_names[parent][i]) for parent, i in zip(parents, line)] for line in at],
        "p": values[kept, :MOST_STATES].round(4).tolist(),
        "n": None if rows is None else rows[kept].tolist(),
        "cut": _cut((len(kept), min(len(states), MOST_STATES)), (len(values), len(states))),
    }


def _rows_behind(cpd, parents, columns, shape):
    """Rows of the data with every configuration of the parents; None where a parent is not in the data."""
    if cpd.variable not in columns or any(parent not in columns for parent in parents):
        return None
    n_rows = len(columns[cpd.variable])
    place, known = np.zeros(n_rows, dtype=np.int64), np.ones(n_rows, dtype=bool)
    for parent, size in zip(parents, shape):
        codes = pd.Index(cpd.state_names[parent], dtype=object).get_indexer(columns[parent].astype(object))
        known &= codes >= 0
        place = place * size + codes
    return np.bincount(place[known], minlength=int(np.prod(shape, dtype=np.int64)))


def _counts(column):
    if column is None:
        return {}
    counts = column.value_counts(sort=False)
    counts = counts[counts > 0]
    shown = counts if len(counts) <= MOST_STATES else counts.sort_values(ascending=False, kind="stable")[:MOST_STATES]
    return {
        "counts": [[state_text(state), int(number)] for state, number in shown.items()],
        "missing": int(column.isna().sum()),
    }


def _cut(shown, whole):
    said = []
    if shown[0] < whole[0]:
        said.append(f"the {shown[0]} lines with most rows of {whole[0]}")
    if shown[1] < whole[1]:
        said.append(f"the first {shown[1]} of {whole[1]} states")
    return f"Shown: {' and '.join(said)}." if said else ""


# ------------------------------------------------------------------------------------------- clusters and rows


def cluster_data(estimator):
    """Sizes and profiles of a fitted clusterer; columns that depend most on the cluster first, as many as a page can hold."""
    sizes, profiles = estimator._profiles()
    schema = estimator.schema_
    items = []
    for name, states, profile in zip(schema.names, schema.states, profiles):
        profile = np.asarray(profile, dtype=float)
        overall = np.asarray(sizes) @ profile
        ratio = np.divide(profile, overall, out=np.ones_like(profile), where=(overall > 0) & (profile > 0))
        tells = float((np.asarray(sizes)[:, None] * profile * np.log(ratio)).sum())
        items.append((tells, name, states, profile, overall))
    items.sort(key=lambda item: -item[0])
    shown, room = [], MOST_NUMBERS
    for _, name, states, profile, overall in items:
        room -= profile.size
        if room < 0:
            break
        shown.append(
            {
                "name": str(name),
                "states": [state_text(state) for state in states],
                "p": profile.round(4).tolist(),
                "overall": overall.round(4).tolist(),
            }
        )
    return {
        "names": [str(k) for k in range(estimator.n_clusters_)],
        "sizes": [round(float(size), 4) for size in sizes],
        "items": shown,
        "n_columns": len(items),
    }


def row_data(estimator, frame, truth=None, names=None):
    """Explained rows, or None where the estimator cannot explain any of them.

    frame : rows as the estimator sees them      truth : their classes, categorical      names : their names in the file
    """
    classes = [str(c) for c in estimator._evidence_classes()]
    terms = estimator._evidence_labels()
    complete = np.flatnonzero(~frame.isna().any(axis=1).to_numpy())
    room = min(MOST_ROWS, MOST_NUMBERS // max(len(terms) * len(classes), 1))
    if room < 1 or not len(complete):
        return None
    if len(complete) > 20_000:
        complete = complete[np.linspace(0, len(complete) - 1, 20_000).astype(int)]
    proba = estimator.predict_proba(frame.iloc[complete])
    told = None
    if truth is not None:
        told = [classes.index(str(c)) if str(c) in classes else None for c in truth.iloc[complete]]
    chosen = _chosen(proba, told, room)
    rows = frame.iloc[complete[chosen]]
    evidence = np.stack(list(estimator._rows_of_evidence(rows)))
    columns = {
        str(name): [f"{value:g}" if isinstance(value, float) else str(value) for value in rows[name]] for name in rows
    }
    names = complete if names is None else [names[i] for i in complete]
    return {
        "classes": classes,
        "terms": ["(numbers together)" if term == "(gaussian)" else str(term) for term in terms],
        "rows": [
            {
                "label": _label(names[i], classes, proba[i], None if told is None else told[i]),
                "truth": None if told is None else told[i],
                "p": proba[i].round(4).tolist(),
                "values": [_value(str(term), columns, r) for term in terms],
                "e": [float(f"{x:.4g}") for x in evidence[r].ravel()],
            }
            for r, i in enumerate(chosen)
        ],
    }


def _value(term, columns, row):
    """Return the value of a column in a row, or those of the columns of a group; None where the term has no columns."""
    if term in columns:
        return columns[term][row]
    members = term.split(", ")
    return ", ".join(columns[name][row] for name in members) if all(name in columns for name in members) else None


def _chosen(proba, told, room):
    """Half of the room for rows that went most wrong, the worst first; the rest spread evenly."""
    n_rows = len(proba)
    wrong: list = []
    if told is not None:
        given = np.array([1.0 if t is None else p[t] for t, p in zip(told, proba)])
        order = np.argsort(given, kind="stable")
        wrong = [int(i) for i in order[: room // 2] if told[i] is not None and told[i] != int(np.argmax(proba[i]))]
    spread = np.linspace(0, n_rows - 1, min(room - len(wrong), n_rows)).astype(int)
    return [*wrong, *(int(i) for i in spread if int(i) not in set(wrong))]


def _label(name, classes, proba, truth):
    best = int(np.argmax(proba))
    said = f"{name}: {classes[best]} ({proba[best]:.2f})"
    return said if truth is None or truth == best else f"{said}, truly {classes[truth]}"
