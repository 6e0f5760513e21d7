"""Layouts behind the pictures: no overlaps, arcs that point one way and meet no box, the same for any hash seed."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from pgm_bma.plotting import _drawing, _layered
from pgm_bma.plotting._drawing import box_labels, box_sizes, smooth_path
from tests.oracles import plotting as oracle
from tests.oracles.plotting import random_dag, star

needs_dot = pytest.mark.skipif(not _drawing.has_graphviz(), reason="graphviz' dot and pydot are not both installed")
LAYOUTS = ["layered", pytest.param("graphviz", marks=needs_dot)]


def rectangles(positions, sizes):
    return {
        v: (x - sizes[v][0] / 2, y - sizes[v][1] / 2, x + sizes[v][0] / 2, y + sizes[v][1] / 2)
        for v, (x, y) in positions.items()
    }


@pytest.mark.parametrize("method", LAYOUTS)
@pytest.mark.parametrize("n, n_arcs", [(8, 9), (60, 75), (60, 110)])
def test_boxes_do_not_overlap_and_arcs_join_them(method, n, n_arcs):
    graph = random_dag(n, n_arcs)
    sizes = box_sizes(box_labels(graph))
    plan = _drawing.layout_graph(list(graph), list(graph.edges()), sizes, method)
    boxes = rectangles(plan.positions, sizes)
    assert set(boxes) == set(graph) and set(plan.routes) == set(graph.edges())
    assert oracle.overlapping_pairs(boxes) == []
    width, height = plan.size
    assert all(b[0] >= 0 and b[1] >= 0 and b[2] <= width and b[3] <= height for b in boxes.values())
    for (tail, head), points in plan.routes.items():
        for point, box in ((points[0], boxes[tail]), (points[-1], boxes[head])):
            wider = (box[0] - 0.03, box[1] - 0.03, box[2] + 0.03, box[3] + 0.03)
            narrower = (box[0] + 0.03, box[1] + 0.03, box[2] - 0.03, box[3] - 0.03)
            assert oracle.inside(point, wider) and not oracle.inside(point, narrower)  # ends on the border


@pytest.mark.parametrize("seed", range(4))
def test_layered_arcs_point_one_way_and_pass_no_other_box(seed):
    graph = random_dag(40, 55, seed)
    sizes = box_sizes(box_labels(graph))
    plan = _layered.layered_layout(list(graph), list(graph.edges()), sizes)
    boxes = rectangles(plan.positions, sizes)
    steps = [np.subtract(plan.positions[head], plan.positions[tail]) for tail, head in graph.edges()]
    downwards, rightwards = all(s[1] < 0 for s in steps), all(s[0] > 0 for s in steps)
    assert downwards or rightwards
    for (tail, head), points in plan.routes.items():
        others = [box for v, box in boxes.items() if v not in (tail, head)]
        assert not any(oracle.inside(point, box) for point in oracle.points_along(points) for box in others)


def test_cycles_and_arcs_both_ways_are_drawn_apart():
    arcs = [("a", "b"), ("b", "a"), ("b", "c"), ("c", "a"), ("c", "d")]
    sizes = dict.fromkeys("abcd", (0.5, 0.3))
    plan = _layered.layered_layout(list("abcd"), arcs, sizes)
    assert set(plan.routes) == set(arcs) and oracle.overlapping_pairs(rectangles(plan.positions, sizes)) == []
    there, back = np.array(plan.routes["a", "b"]), np.array(plan.routes["b", "a"])[::-1]
    assert np.abs(there - back).max() > 0.05  # not on top of each other
    acyclic = random_dag(20, 30)
    assert _layered._without_cycles(list(acyclic), list(acyclic.edges())) == list(acyclic.edges())


@pytest.mark.parametrize("n", [13, 60])
def test_fan_keeps_all_variables_in_two_columns(n):
    graph = star(n)
    sizes = box_sizes(box_labels(graph))
    plan = _drawing.layout_graph(list(graph), list(graph.edges()), sizes, "auto", hub="class")
    boxes = rectangles(plan.positions, sizes)
    assert oracle.overlapping_pairs(boxes) == []
    middle = plan.positions["class"][0]
    facing = {round(min(boxes[v][0], boxes[v][2], key=lambda x: abs(x - middle)), 6) for v in graph if v != "class"}
    assert len(facing) == 2  # two columns, in line where they face the class
    for (tail, head), points in plan.routes.items():
        others = [box for v, box in boxes.items() if v not in (tail, head)]
        assert not any(oracle.inside(point, box) for point in oracle.points_along(points) for box in others)


def test_a_class_with_arcs_to_all_stands_above_the_others():
    graph = star(30)
    graph.add_edges_from((f"x{i}", f"x{i + 1}") for i in range(0, 28, 2))
    sizes = box_sizes(box_labels(graph))
    plan = _drawing.layout_graph(list(graph), list(graph.edges()), sizes, "layered", hub="class")
    top = plan.positions["class"][1]
    assert all(y < top for v, (_, y) in plan.positions.items() if v != "class")
    assert set(plan.routes) == set(graph.edges())
    assert oracle.overlapping_pairs(rectangles(plan.positions, sizes)) == []


def test_given_places_are_kept_and_arcs_run_from_border_to_border():
    sizes = {"c": (1.0, 0.4), "x": (0.5, 0.4), "y": (2.0, 0.4)}
    places = {"c": (0.0, 1.0), "x": (-1.0, 0.0), "y": (1.0, 0.0), "elsewhere": (9.0, 9.0)}
    plan = _drawing.layout_graph(list("cxy"), [("c", "x"), ("c", "y")], sizes, places)
    for a, b in [("c", "x"), ("x", "y")]:
        for k in (0, 1):
            assert plan.positions[a][k] - plan.positions[b][k] == pytest.approx(places[a][k] - places[b][k])
    assert plan.positions["x"][0] - 0.25 == pytest.approx(_layered.MARGIN)
    assert plan.size[0] == pytest.approx(1.25 + 2.0 + 2 * _layered.MARGIN)  # from the left of x to the right of y
    boxes = rectangles(plan.positions, sizes)
    for (tail, head), points in plan.routes.items():
        assert points[0][1] == pytest.approx(boxes[tail][1]) and points[-1][1] == pytest.approx(boxes[head][3])
    with pytest.raises(ValueError, match="no place for 'z'"):
        _drawing.layout_graph(["c", "z"], [], {**sizes, "z": (1.0, 0.4)}, places)


def test_crossings_are_counted_right_and_trees_get_none():
    rng = np.random.default_rng(0)
    for _ in range(20):
        layers = [[(k, i) for i in range(5)] for k in range(3)]
        pairs = sorted({((k, int(rng.integers(5))), (k + 1, int(rng.integers(5)))) for k in (0, 1) for _ in range(7)})
        links = _layered._links({pair: list(pair) for pair in pairs})
        before = _layered._crossings(layers, links)
        assert before == oracle.crossings(layers, pairs)
        better = _layered._reduce_crossings(layers, links)
        assert oracle.crossings(better, pairs) <= before and [sorted(a) for a in better] == layers
    tree = [(0, 2), (0, 1), (1, 5), (2, 4), (1, 3), (2, 6), (0, 7)]
    layers = [[0], [1, 2, 7], [3, 4, 5, 6]]
    assert oracle.crossings(_layered._reduce_crossings(layers, _layered._links({p: list(p) for p in tree})), tree) == 0


def test_rising_is_isotonic_regression():
    rng = np.random.default_rng(1)
    for _ in range(20):
        wish, weight = rng.normal(size=9), rng.random(9) + 0.1
        expected = IsotonicRegression().fit_transform(np.arange(9), wish, sample_weight=weight)
        np.testing.assert_allclose(_layered._rising(wish, weight), expected, atol=1e-12)


def test_layout_does_not_depend_on_hashing():
    code = (
        "from pgm_bma.plotting import _drawing, _layered;"
        "nodes=[f'v{i}' for i in range(25)];"
        "arcs=[(f'v{i}', f'v{(i*7+3)%25}') for i in range(25)]+[(f'v{i}', f'v{i+4}') for i in range(20)];"
        "sizes={v:(0.6,0.3) for v in nodes};"
        "print(_layered.layered_layout(nodes, arcs, sizes));"
        "print(_drawing.circle_layout(nodes, [(a,b,1.0) for a,b in arcs]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "77")
    }
    assert len(outputs) == 1 and "v24" in outputs.pop()


def test_plain_output_of_dot_is_read():
    text = "graph 1 3.0 2.0\nnode n0 0.5 1.5 1 0.5 a solid box black white\nnode n1 2.5 0.5 1 0.5 b solid box black white\n"
    text += "edge n0 n1 4 1.0 1.5 1.5 1.5 1.5 0.5 2.0 0.5 solid black\nstop\n"
    plan = _drawing.parse_plain(text, ["a", "b"], [("a", "b")])
    margin = _layered.MARGIN
    assert plan.positions == {"a": (0.5 + margin, 1.5 + margin), "b": (2.5 + margin, 0.5 + margin)}
    points = plan.routes["a", "b"]
    assert points[0] == (1.0 + margin, 1.5 + margin) and points[-1] == pytest.approx((2.0 + margin, 0.5 + margin))
    assert points[4] == pytest.approx((1.5 + margin, 1.0 + margin))  # the middle of the curve
    with pytest.raises(ValueError, match="layout='circle'"):
        _drawing.layout_graph(["a"], [], {"a": (1, 1)}, "circle")


def test_without_graphviz_the_own_layout_is_taken(monkeypatch):
    monkeypatch.setattr(_drawing, "has_graphviz", lambda: False)
    graph = random_dag(10, 12)
    parts = list(graph), list(graph.edges()), box_sizes(box_labels(graph))
    assert _drawing.layout_graph(*parts, "auto") == _layered.layered_layout(*parts)
    with pytest.raises(RuntimeError, match="needs the package pydot"):
        _drawing.layout_graph(*parts, "graphviz")


def test_smooth_path_keeps_its_ends_and_stays_within_its_corners():
    points = [(0.0, 0.0), (1.0, 2.0), (3.0, 2.0), (4.0, 0.0)]
    path = smooth_path(points)
    curve = np.vstack([path.interpolated(20).vertices])
    assert tuple(path.vertices[0]) == points[0] and tuple(path.vertices[-1]) == points[-1]
    assert curve[:, 1].max() <= 2.0 and curve[:, 0].min() >= 0 and curve[:, 0].max() <= 4


@pytest.mark.parametrize("n_linked", [0, 3, 21])
def test_nodes_without_arcs_stand_in_rows_below(n_linked):
    nodes = [f"v{i}" for i in range(n_linked + 40)]
    arcs = [("v0", f"v{i}") for i in range(1, n_linked)]
    sizes = {v: (0.8, 0.3) for v in nodes}
    plan = _drawing.layout_graph(nodes, arcs, sizes, "layered", hub="v0" if n_linked else None)
    loose = np.array([plan.positions[v] for v in nodes[n_linked:]])
    assert len({y for _, y in loose.round(6)}) < 15, "rows, not one long column"
    lowest = min((plan.positions[v][1] for v in nodes[:n_linked]), default=np.inf)
    assert loose[:, 1].max() < lowest
    centres = np.array([plan.positions[v] for v in nodes])
    apart = np.abs(centres[:, None] - centres[None])
    assert ((apart[..., 0] > 0.8) | (apart[..., 1] > 0.3) | np.eye(len(nodes), dtype=bool)).all(), "no overlap"
    assert (centres > 0).all() and (centres < plan.size).all()
