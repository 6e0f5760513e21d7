"""Pictures: where things are, what they say, and that they can be read. Nothing here only checks that code ran."""

import subprocess
import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from pgm_bma import (
    AveragedNaiveBayesClassifier,
    GibbsSampler,
    KikuchiBayesClassifier,
    OrderPosterior,
    load_network,
    plotting,
    simulate,
)
from pgm_bma.networks.objects import bayesian_network
from pgm_bma.plotting import _drawing
from pgm_bma.plotting._clusters import conditional_table
from tests.oracles import plotting as oracle
from tests.oracles.plotting import random_dag, star

needs_dot = pytest.mark.skipif(not _drawing.has_graphviz(), reason="graphviz' dot and pydot are not both installed")
LAYOUTS = ["layered", pytest.param("graphviz", marks=needs_dot)]


def patches(ax, kind):
    """The drawn patches whose gid starts with kind, by the rest of the gid."""
    found = [p for p in ax.patches if str(p.get_gid()).startswith(kind)]
    return {p.get_gid().removeprefix(kind): p for p in found}


def drawn(ax):
    ax.figure.canvas.draw()
    return ax.figure.canvas.get_renderer()


def extent(artist, renderer):
    return artist.get_window_extent(renderer).extents


# networks


@pytest.mark.parametrize("method", LAYOUTS)
@pytest.mark.parametrize("n, n_arcs", [(8, 9), (60, 75)])
def test_network_text_fits_its_boxes(method, n, n_arcs):
    ax = plotting.plot_network(random_dag(n, n_arcs), layout=method)
    renderer = drawn(ax)
    boxes = {name: extent(patch, renderer) for name, patch in patches(ax, "node:").items()}
    assert len(boxes) == n and oracle.overlapping_pairs(boxes) == []
    centre = {name: ((b[0] + b[2]) / 2, (b[1] + b[3]) / 2) for name, b in boxes.items()}
    for text in ax.texts:
        t = extent(text, renderer)
        middle = ((t[0] + t[2]) / 2, (t[1] + t[3]) / 2)
        name = min(centre, key=lambda v: np.hypot(*np.subtract(centre[v], middle)))
        assert t[0] >= boxes[name][0] and t[2] <= boxes[name][2]  # not wider than its box
        assert text.get_fontsize() >= 7  # still legible in a figure of its own


@pytest.mark.parametrize("n", [70, 150, 200])
def test_large_networks_draw_the_strongest_arcs_and_list_unconnected_nodes(n):
    rng = np.random.default_rng(n)
    graph = nx.DiGraph()
    graph.add_nodes_from(f"node_{i}" for i in range(n))
    for j in range(1, n, 2):  # every second node stays alone
        for i in range(max(1, j - 10), j, 2):
            graph.add_edge(f"node_{i}", f"node_{j}", posterior=float(rng.random()))
    ax = plotting.plot_network(graph, max_nodes=200)
    renderer = drawn(ax)
    boxes = {name: extent(patch, renderer) for name, patch in patches(ax, "node:").items()}
    assert oracle.overlapping_pairs(boxes) == [] and all(text.get_fontsize() >= 7 for text in ax.texts)
    arcs = {tuple(name.split("->")) for name in patches(ax, "arc:")}
    assert set(boxes) == {v for arc in arcs for v in arc}
    weakest = min(graph.edges[arc]["posterior"] for arc in arcs)
    strong = [arc for arc in graph.edges if graph.edges[arc]["posterior"] > weakest]
    assert set(strong) <= arcs and len(arcs) <= n // 2
    remark = ax.get_legend().get_title().get_text()
    alone = [v for v in graph if v not in boxes]
    assert (
        remark.startswith(f"the {len(arcs)} strongest of ") and f"without an arc ({len(alone)}): {alone[0]}, " in remark
    )
    assert sum(f"{v}," in remark.replace("\n", " ") or remark.endswith(v) for v in alone) == len(alone)  # all are named
    for text in (ax.get_legend().get_title(), *ax.get_legend().get_texts()):
        box = extent(text, renderer)
        assert box[0] >= 0 and box[1] >= 0 and box[2] <= ax.figure.bbox.x1  # inside the figure
        assert box[3] <= min(b[1] for b in boxes.values()) + 1  # and below every box


def test_network_on_small_given_axes_scales_its_text():
    figure, axes = plt.subplots(1, 2, figsize=(9, 4))
    assert plotting.plot_network(random_dag(30, 35), ax=axes[0], layout="layered") is axes[0]
    renderer = drawn(axes[0])
    boxes = [extent(p, renderer) for p in patches(axes[0], "node:").values()]
    widths = sorted(b[2] - b[0] for b in boxes)
    texts = sorted(extent(t, renderer)[2] - extent(t, renderer)[0] for t in axes[0].texts)
    assert all(t <= b * 1.02 for t, b in zip(texts, widths))  # 2 %: glyphs snap to whole pixels
    assert len(figure.axes) == 2 and not axes[1].patches


def test_width_of_an_arc_is_its_posterior():
    posterior = {("c", "x"): 1.0, ("c", "y"): 0.5, ("c", "z"): 0.06, ("x", "y"): 0.01}
    ax = plotting.plot_network(list(posterior), highlight="c", arc_posterior=posterior)
    width = {name: patch.get_linewidth() for name, patch in patches(ax, "arc:").items()}
    assert set(width) == {"c->x", "c->y", "c->z"}  # 0.01 is below the threshold
    assert width["c->x"] > 1.7 * width["c->y"] > 2 * width["c->z"]
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["posterior 0.1", "posterior 0.5", "posterior 1"]
    assert ax.get_legend().get_title().get_text() == "arcs below 0.05 not drawn"
    nodes = patches(ax, "node:")
    assert nodes["c"].get_facecolor()[:3] == to_rgb(_drawing.ORANGE) != nodes["x"].get_facecolor()[:3]
    everything = plotting.plot_network(list(posterior), arc_posterior=posterior, threshold=0)
    assert len(patches(everything, "arc:")) == 4


def test_posteriors_may_come_as_table_as_column_or_on_the_graph():
    graph = star(3)
    table = pd.DataFrame(0.0, index=list(graph), columns=list(graph))
    table.loc["class", ["x0", "x1", "x2"]] = [0.9, 0.5, 0.2]
    nx.set_edge_attributes(graph, {("class", f"x{i}"): p for i, p in enumerate([0.9, 0.5, 0.2])}, "posterior")
    column = table.loc["class"].drop("class")
    widths = [
        {name: round(p.get_linewidth(), 9) for name, p in patches(ax, "arc:").items()}
        for ax in (
            plotting.plot_network(graph, highlight="class"),
            plotting.plot_network(star(3), highlight="class", arc_posterior=table),
            plotting.plot_network(star(3), highlight="class", arc_posterior=column),
        )
    ]
    assert widths[0] == widths[1] == widths[2] and len(set(widths[0].values())) == 3
    with pytest.raises(ValueError, match="highlight="):
        plotting.plot_network(star(3), arc_posterior=column)
    with pytest.raises(ValueError, match="highlight names 'nobody'"):
        plotting.plot_network(star(3), highlight="nobody")


def test_latent_nodes_are_dashed_and_highlighted_without_being_named():
    tables = [[[0.5, 0.5]], [[0.9, 0.1], [0.2, 0.8]]]
    model = bayesian_network(["cluster", "vote"], [[0, 1], ["n", "y"]], [(), (0,)], tables, latents=["cluster"])
    nodes = patches(plotting.plot_network(model), "node:")
    assert nodes["cluster"].get_linestyle() == "--" and nodes["vote"].get_linestyle() == "-"
    assert nodes["cluster"].get_facecolor()[:3] == to_rgb(_drawing.ORANGE)

    class Clusterer:
        cluster_name = "cluster"

        def to_networkx(self):
            return nx.DiGraph([("cluster", "vote")])

    assert patches(plotting.plot_network(Clusterer()), "node:")["cluster"].get_linestyle() == "--"


def test_too_large_networks_are_cut_down_and_say_so():
    graph = star(300)
    posterior = {("class", f"x{i}"): 1 / (1 + i) for i in range(300)}
    ax = plotting.plot_network(graph, highlight="class", arc_posterior=posterior, max_nodes=40, threshold=0)
    assert set(patches(ax, "node:")) == {"class", *(f"x{i}" for i in range(39))}
    assert "40 of 301 nodes" in ax.get_legend().get_title().get_text()
    dense = {(f"v{i}", f"v{j}"): (1 + i + j) / 60 for i in range(20) for j in range(20) if i != j}
    ax = plotting.plot_network(list(dense), arc_posterior=dense, layout="layered")
    arcs = patches(ax, "arc:")
    assert len(arcs) == 40 and "the 40 strongest of" in ax.get_legend().get_title().get_text()
    assert min(p.get_linewidth() for p in arcs.values()) >= 0.8 * max(p.get_linewidth() for p in arcs.values())


def test_labels_with_dollars_newer_alphabets_and_long_names():
    names = ["$cost$", "größe", "a" * 60 + "1", "a" * 60 + "2", "x_1^2"]
    ax = plotting.plot_network([(names[0], v) for v in names[1:]])
    drawn(ax)  # mathematics in names would raise here
    texts = [text.get_text() for text in ax.texts]
    assert "$cost$" in texts and "größe" in texts and "x_1^2" in texts
    assert len(set(texts)) == 5 and max(map(len, texts)) <= 30


def test_structure_difference_tells_four_kinds_of_arcs_apart():
    a = [("u", "v"), ("v", "w"), ("w", "x"), ("u", "y")]
    b = [("u", "v"), ("w", "v"), ("x", "y"), ("u", "y")]
    ax = plotting.plot_structure_difference(a, b, names=("truth", "found"))
    arcs = patches(ax, "arc:")
    assert set(arcs) == {"u->v", "u->y", "v->w", "w->x", "x->y"}
    kinds = {name: (to_rgb(p.get_edgecolor()[:3]), str(p.get_linestyle())) for name, p in arcs.items()}
    assert kinds["u->v"] == kinds["u->y"] and len(set(kinds.values())) == 4
    assert len({style for _, style in kinds.values()}) == 4  # readable without colour
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [
        "in both (2)",
        "only truth (1)",
        "only found (1)",
        "turned round in found (1)",
    ]


# regions and interactions


def pair_regions(n):
    """Regions {class, x_i, x_i+1} of a chain, their intersections and counting numbers."""
    graph = nx.DiGraph()
    for i in range(n):
        graph.add_node(frozenset({"class", f"x{i}", f"x{i + 1}"}), counting_number=1)
    for i in range(1, n):
        graph.add_node(frozenset({"class", f"x{i}"}), counting_number=-1)
        for j in (i - 1, i):
            graph.add_edge(frozenset({"class", f"x{j}", f"x{j + 1}"}), frozenset({"class", f"x{i}"}))
    return graph


@pytest.mark.parametrize("n", [4, 30])
def test_region_graph_shows_members_and_counting_numbers(n):
    graph = pair_regions(n)
    graph.add_node(frozenset({"class"}), counting_number=0)
    ax = plotting.plot_region_graph(graph, target="class")
    texts = {text.get_text() for text in ax.texts}
    assert {"x0, x1\n+1", "x1\n-1", "class\n0"} <= texts and len(texts) == len(graph)
    assert ax.get_legend().get_title().get_text() == "every region also holds class"
    renderer = drawn(ax)
    boxes = patches(ax, "node:")
    assert oracle.overlapping_pairs({k: extent(p, renderer) for k, p in boxes.items()}) == []
    colours = {p.get_facecolor() for p in boxes.values()}
    assert len(colours) == 3 and len(ax.get_legend().get_texts()) == 3
    free = plotting.plot_region_graph(graph)
    assert "class, x0, x1\n+1" in {text.get_text() for text in free.texts}


def interaction_table(n, seed=0):
    rng = np.random.default_rng(seed)
    names = [f"attribute_{i}" for i in range(n)]
    values = np.triu(rng.normal(size=(n, n)), 1)
    return pd.DataFrame(values + values.T, index=names, columns=names)


@pytest.mark.parametrize("n", [8, 60])
def test_interactions_show_sign_size_and_relevance(n):
    table = interaction_table(n)
    relevance = pd.Series(np.linspace(0, 1, n), index=table.index)
    ax = plotting.plot_interactions(table, relevance=relevance, max_edges=25)
    edges = patches(ax, "edge:")
    assert len(edges) == 25
    sizes = {}
    for name, patch in edges.items():
        a, b = name.split("--")
        value = table.at[a, b]
        assert to_rgb(patch.get_edgecolor()[:3]) == to_rgb(_drawing.BLUE if value > 0 else _drawing.VERMILION)
        assert (patch.get_linestyle() in ("-", "solid")) == (value > 0)
        sizes[abs(value)] = patch.get_linewidth()
    assert [sizes[v] for v in sorted(sizes)] == sorted(sizes.values())
    upper = np.abs(table.to_numpy()[np.triu_indices(n, 1)])
    assert min(sizes) == pytest.approx(np.sort(upper)[-25])  # the strongest ones
    assert "25 strongest of" in ax.get_legend().get_title().get_text()
    bars = {name: wedge.r - 0.06 - (wedge.r - wedge.width - 0.06) for name, wedge in patches(ax, "relevance:").items()}
    ends = {v for name in edges for v in name.split("--")}
    assert set(bars) == (set(relevance.index) if n == 8 else ends)  # of many attributes only those with a chord
    assert f"{n - len(ends)} attributes without" in ax.get_legend().get_title().get_text() or n == 8
    ranked = [v for v in relevance.index if v in bars]
    assert [bars[v] for v in ranked] == sorted(bars.values()) and bars[ranked[-1]] == pytest.approx(0.3)


def test_arcs_of_a_cluster_to_all_of_many_nodes_are_said_and_not_drawn():
    arcs = [("c", f"v{i}") for i in range(60)] + [(f"v{i}", f"v{i + 1}") for i in range(0, 40, 2)]
    ax = plotting.plot_network(arcs, highlight="c")
    assert set(patches(ax, "arc:")) == {f"{a}->{b}" for a, b in arcs if a != "c"}
    assert "c" in patches(ax, "node:") and len(patches(ax, "node:")) == 41
    said = " ".join(text.get_text() for text in ax.texts)
    assert (
        "every node is also a child of c: those arcs are not drawn" in said and "without an arc (20): v40, v41," in said
    )
    star = plotting.plot_network(arcs[:60], highlight="c")  # nothing besides: the fan itself is the picture
    assert len(patches(star, "arc:")) == 60
    few = plotting.plot_network([("c", "a"), ("c", "b"), ("a", "b")], highlight="c")
    assert len(patches(few, "arc:")) == 3


@pytest.mark.parametrize("n", [8, 60])
def test_interaction_labels_do_not_touch(n):
    ax = plotting.plot_interactions(interaction_table(n))
    drawn(ax)
    centre = ax.transData.transform((0, 0))
    anchors = [ax.transData.transform(t.get_position()) - centre for t in ax.texts]
    angles = np.sort([np.arctan2(y, x) for x, y in anchors])
    radius = np.hypot(*anchors[0])
    closest = np.diff(np.append(angles, angles[0] + 2 * np.pi)).min() * radius
    assert closest >= ax.texts[0].get_fontsize() * ax.figure.dpi / 72  # a line of text between neighbours


def test_interactions_accept_pairs_and_graphs():
    pairs = {("a", "b"): 0.4, ("b", "c"): -0.2, ("a", "c"): 0.0}
    graph = nx.Graph()
    for (a, b), w in pairs.items():
        graph.add_edge(a, b, interaction=w)
    nx.set_node_attributes(graph, {"a": 0.1, "b": 0.2, "c": 0.3}, "information")
    from_pairs, from_graph = plotting.plot_interactions(pairs), plotting.plot_interactions(graph)
    assert set(patches(from_pairs, "edge:")) == set(patches(from_graph, "edge:")) == {"a--b", "b--c"}
    assert not patches(from_pairs, "relevance:") and len(patches(from_graph, "relevance:")) == 3
    pairs["b", "d"] = 0.4 * 0.019  # below two percent of the strongest
    faint = plotting.plot_interactions(pairs)
    assert set(patches(faint, "edge:")) == {"a--b", "b--c"}
    assert faint.get_legend().get_title().get_text() == "the 2 strongest of 3 interactions"


def test_interactions_of_a_classifier_are_its_table_and_its_diagonal():
    X = pd.DataFrame({"a": list("0011") * 20, "b": list("0101") * 20, "c": list("00001111") * 10})
    y = pd.Series(["even", "odd", "odd", "even"] * 20, name="parity")
    classifier = KikuchiBayesClassifier(random_state=0).fit(X, y)
    ax = plotting.plot_interactions(classifier)
    assert set(patches(ax, "edge:")) == {"a--b"}
    assert len(patches(ax, "relevance:")) == 3


@pytest.mark.parametrize("length, upright", [(1, True), (24, False)])
def test_labels_of_few_attributes_are_upright_where_they_fit(length, upright):
    names = [letter * length for letter in "abcdefghijklmnopqrst"]
    table = interaction_table(len(names)).set_axis(names, axis=0).set_axis(names, axis=1)
    ax = plotting.plot_interactions(table)
    drawn(ax)
    assert all(text.get_rotation() == 0 for text in ax.texts) == upright
    boxes = [text.get_window_extent() for text in ax.texts]
    if upright:
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(ax.figure.bbox.containsx(x) for box in boxes for x in (box.x0, box.x1))


# tables and charts


@pytest.mark.parametrize("n", [8, 60])
def test_arc_posterior_heat_map(n):
    rng = np.random.default_rng(2)
    names = [f"variable_{i}" for i in range(n)]
    table = pd.DataFrame(rng.random((n, n)), index=names, columns=names)
    ax = plotting.plot_arc_posteriors(table)
    image = ax.images[0]
    shown = np.ma.filled(image.get_array(), np.nan)
    off = ~np.eye(n, dtype=bool)
    np.testing.assert_array_equal(shown[off], table.to_numpy()[off])
    assert np.isnan(shown[~off]).all() and image.get_clim() == (0, 1) and image.get_cmap().name == "Blues"
    assert [t.get_text() for t in ax.get_yticklabels()] == names and ax.get_xlabel() == "to"
    assert len(ax.texts) == (n * n - n if n <= 12 else 0)
    renderer = drawn(ax)
    for axis in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert oracle.overlapping_pairs({t.get_text(): extent(t, renderer) for t in axis}) == []
    canvas = ax.figure.bbox.extents
    assert all(
        extent(t, renderer)[0] >= canvas[0] and extent(t, renderer)[1] >= canvas[1] for t in ax.get_yticklabels()
    )


def test_heat_map_reads_a_graph_and_refuses_wrong_numbers():
    graph = nx.DiGraph()
    graph.add_edge("a", "b", posterior=0.7)
    shown = np.ma.filled(plotting.plot_arc_posteriors(graph).images[0].get_array(), np.nan)
    np.testing.assert_array_equal(shown, [[np.nan, 0.7], [0.0, np.nan]])
    with pytest.raises(ValueError, match="between 0 and 1"):
        plotting.plot_arc_posteriors(pd.DataFrame([[0, 2.0], [0, 0]], list("ab"), list("ab")))
    with pytest.raises(ValueError, match="'a' -> 'b' has no attribute"):
        plotting.plot_arc_posteriors([("a", "b")])


def test_small_axes_get_fewer_names_that_do_not_touch():
    names = [f"variable_{i}" for i in range(60)]
    _, ax = plt.subplots(figsize=(4, 4))
    plotting.plot_arc_posteriors(pd.DataFrame(np.zeros((60, 60)), names, names), ax=ax)
    renderer = drawn(ax)
    labels = {t.get_text(): extent(t, renderer) for t in ax.get_yticklabels()}
    assert 10 < len(labels) < 60 and oracle.overlapping_pairs(labels) == []


@pytest.mark.parametrize("n", [8, 60, 500])
def test_relevance_ranks_from_the_top(n):
    series = pd.Series(
        0.01 + np.random.default_rng(3).random(n), index=[f"variable_{i}" for i in range(n)], name="arc posterior"
    )
    ax = plotting.plot_relevance(series, threshold=0.5)
    expected = series.sort_values(ascending=False).iloc[:60]
    assert [t.get_text() for t in ax.get_yticklabels()] == list(expected.index)
    bars = [patch.get_width() for patch in ax.patches]
    np.testing.assert_allclose(bars, expected)
    colours = {patch.get_facecolor() for patch, v in zip(ax.patches, expected) if v >= 0.5}
    assert len(colours) == 1 and colours.isdisjoint(p.get_facecolor() for p, v in zip(ax.patches, expected) if v < 0.5)
    low, high = ax.get_ylim()
    assert low > high  # the best on top
    assert ax.get_xlabel() == "arc posterior" + ("\n60 of 500 variables" if n == 500 else "")
    renderer = drawn(ax)
    assert oracle.overlapping_pairs({t.get_text(): extent(t, renderer) for t in ax.get_yticklabels()}) == []


def test_relevance_of_an_estimator_ranks_by_dependence_and_shades_by_posterior():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    X = pd.DataFrame(
        {"strong": y ^ (rng.random(400) < 0.05), "weak": y ^ (rng.random(400) < 0.35), "noise": rng.integers(0, 2, 400)}
    )
    classifier = AveragedNaiveBayesClassifier().fit(X, y)
    posterior = classifier.arc_posterior_
    assert posterior["strong"] > 0.99 and posterior["weak"] > 0.99 > 0.5 > posterior["noise"]  # no ranking by posterior
    ax = plotting.plot_relevance(classifier)
    widths = dict(zip([t.get_text() for t in ax.get_yticklabels()], [patch.get_width() for patch in ax.patches]))
    cpd = classifier.model_.get_cpds("strong").values  # (state, class)
    joint = cpd * classifier.model_.get_cpds("class").values
    by_hand = (joint * np.log(joint / np.outer(joint.sum(1), joint.sum(0)))).sum()
    assert list(widths)[:2] == ["strong", "weak"] and abs(widths["strong"] - by_hand) < 1e-12
    assert ax.get_xlabel().startswith("dependence on class (nats)") and "noise" in ax.get_xlabel() + str(list(widths))
    assert ax.get_legend().get_title().get_text() == "posterior of the arc"
    darkness = [
        1 - patch.get_facecolor()[0]
        for patch in plotting.plot_relevance({"a": 2.0, "b": 1.0}, posterior={"a": 0.2, "b": 1.0}).patches
    ]
    assert darkness[1] > darkness[0] + 0.3  # the shorter bar is the surer one
    hollow = plotting.plot_relevance({"a": 2.0, "b": 1.0}, posterior={"a": 0.2, "b": 1.0}, threshold=0.5).patches
    assert hollow[0].get_facecolor()[:3] == (1.0, 1.0, 1.0) != hollow[1].get_facecolor()[:3]


def test_relevance_leaves_out_zeros_and_says_when_nothing_is_ranked():
    values = {f"v{i}": 1.0 / (i + 1) for i in range(5)} | {f"z{i}": 0.0 for i in range(55)}
    ax = plotting.plot_relevance(values)
    assert len(ax.patches) == 5 and ax.get_xlabel() == "relevance\n55 more at 0"
    few = plotting.plot_relevance({"a": 1.0, "b": 0.5, "gone": 0.0})
    assert few.get_xlabel() == "relevance\n1 more at 0: gone"
    flat = plotting.plot_relevance(dict.fromkeys("cab", 1.0))
    assert flat.get_xlabel() == "relevance\nall 3 are 1: no ranking"
    assert [t.get_text() for t in flat.get_yticklabels()] == ["c", "a", "b"]  # as given
    assert len({patch.get_facecolor() for patch in flat.patches}) == 1
    signed = plotting.plot_relevance({"a": 1.0, "b": 0.0, "c": -1.0})
    assert len(signed.patches) == 3  # where some are negative, zero is a value like others


@pytest.mark.parametrize("wrong", [{}, {"a": None}, 3, [1, 2], "x"])
def test_relevance_of_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match="rank"):
        plotting.plot_relevance(wrong)
    with pytest.raises(ValueError, match="outside"):
        plotting.plot_relevance({"a": 1.0}, posterior={"a": 7.0})


def augmented_model(n, k=3, seed=4):
    """A latent cluster above n variables, each with the one before as a second parent."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, n)
    parents = [(), (0,), *[(0, i) for i in range(1, n)]]
    sizes = [k, *cards]
    tables = [
        rng.dirichlet(np.ones(sizes[i]), int(np.prod([sizes[p] for p in ps], dtype=int)))
        for i, ps in enumerate(parents)
    ]
    states = [list(range(k)), *[["no", "yes", "?"][:c] for c in cards]]
    return bayesian_network(["cluster", *[f"v{i}" for i in range(n)]], states, parents, tables, latents=["cluster"])


def test_cluster_profiles_are_the_conditional_probabilities():
    model = augmented_model(5)
    for v in ("v0", "v2", "v4"):
        np.testing.assert_allclose(
            conditional_table(model, v, "cluster"), oracle.conditional(model, v, "cluster"), atol=1e-12
        )
    ax = plotting.plot_cluster_profiles(model, sort=False)
    bars = patches(ax, "bar:")
    for v in ("v0", "v3"):
        expected = oracle.conditional(model, v, "cluster")
        heights = [[bars[f"{v}:{k}:{s}"].get_height() for s in range(len(expected[0]))] for k in range(3)]
        np.testing.assert_allclose(np.array(heights) / 0.26, expected, atol=1e-12)
    weights = model.get_cpds("cluster").values
    texts = [t.get_text() for t in ax.texts]
    assert texts[:3] == [f"{k} ({w:.0%})".replace("%", " %") for k, w in enumerate(weights)]
    assert [t for t in texts if t.startswith("v")] == [f"v{i}" for i in range(5)]


@pytest.mark.parametrize("n", [8, 60])
def test_cluster_profiles_are_sorted_and_do_not_overlap(n):
    names = ["cluster", *[f"variable_{i}" for i in range(n)]]
    spread = np.linspace(0, 0.4, n)  # the last variable depends most on the cluster
    tables = [[[0.5, 0.5]], *[[[0.5 - s, 0.5 + s], [0.5 + s, 0.5 - s]] for s in spread]]
    model = bayesian_network(names, [[0, 1]] * (n + 1), [(), *[(0,)] * n], tables, latents=["cluster"])
    ax = plotting.plot_cluster_profiles(model)
    shown = [t.get_text() for t in ax.texts if t.get_text().startswith("variable")]
    assert shown == [f"variable_{i}" for i in reversed(range(n))]
    renderer = drawn(ax)
    texts = {i: extent(t, renderer) for i, t in enumerate(ax.texts)}
    shrunk = {i: (b[0], b[1] + 0.2 * (b[3] - b[1]), b[2], b[3] - 0.2 * (b[3] - b[1])) for i, b in texts.items()}
    assert oracle.overlapping_pairs(shrunk) == []  # without the empty room above and below the letters
    chosen = plotting.plot_cluster_profiles(model, columns=["variable_2", "variable_0"])
    assert [t.get_text() for t in chosen.texts if t.get_text().startswith("variable")] == ["variable_2", "variable_0"]
    with pytest.raises(ValueError, match="'nope'"):
        plotting.plot_cluster_profiles(model, columns=["nope"])
    model.latents = set()
    with pytest.raises(ValueError, match="0 latent variables"):
        plotting.plot_cluster_profiles(model)


@pytest.mark.filterwarnings("ignore:the chains disagree")
def test_score_traces_of_an_estimator():
    rows = simulate(load_network("asia"), 100, random_state=0)
    sampled = OrderPosterior(method="mcmc", sampler=GibbsSampler(n_orders=6, n_chains=2), random_state=0).fit(rows)
    ax = plotting.plot_score_traces(sampled)
    drawn = np.concatenate([line.get_ydata() for line in ax.lines])
    np.testing.assert_array_equal(drawn, sampled.order_log_scores_)
    assert len(ax.lines) == 2 and ax.get_xlabel() == "kept order"
    with pytest.raises(ValueError, match="fit with method='mcmc'"):
        plotting.plot_score_traces(OrderPosterior(method="exact").fit(rows))


def test_score_traces_keep_extremes_and_zoom_after_burn_in():
    rng = np.random.default_rng(6)
    traces = [np.r_[np.linspace(-9000, -1000, 500), -1000 + rng.normal(size=30_000)] for _ in range(3)]
    traces[1][20_000] = -1030.0
    ax = plotting.plot_score_traces(traces, burn_in=500)
    assert [line.get_label() for line in ax.lines] == ["chain 1", "chain 2", "chain 3"]
    assert all(len(line.get_xdata()) <= 4000 for line in ax.lines)
    assert -1030.0 in ax.lines[1].get_ydata() and 20_000 in ax.lines[1].get_xdata()  # thinning loses no spike
    low, high = ax.get_ylim()
    assert -1060 < low < -1030 and high > max(t[500:].max() for t in traces)
    assert any("down to -9,000" in t.get_text() for t in ax.texts)
    one = plotting.plot_score_traces([-3.0, -2.0, -1.0])
    assert one.lines[0].get_ydata().tolist() == [-3, -2, -1] and one.get_legend() is None
    assert len({line.get_color() for line in plotting.plot_score_traces(np.zeros((8, 5))).lines}) == 8


def test_starts_are_ranked_and_marked():
    table = pd.DataFrame(
        {"score": [-7.0, -5.0, -6.0, -5.0, -9.0], "collapsed": [True, False, False, False, False]}
    ).assign(converged=[True, True, False, True, True])
    ax = plotting.plot_starts(table)
    points = {c.get_label(): c.get_offsets().tolist() for c in ax.collections}
    assert points == {
        "start": [[1, -5], [2, -5], [5, -9]],
        "not converged": [[3, -6]],
        "collapsed": [[4, -7]],
    }
    assert any(t.get_text() == "best -5.00, found 2 times in 5 starts" for t in ax.texts)

    class Fitted:
        starts_ = table

    assert len(plotting.plot_starts(Fitted()).collections) == 3
    low, high = plotting.plot_starts([-100.0, -100.00001]).get_ylim()
    assert high - low > 0.1  # rounding is not shown as a difference
    with pytest.raises(ValueError, match="no column 'bound'"):
        plotting.plot_starts(table, score="bound")


@pytest.mark.parametrize("n", [8, 60])
def test_bound_collapse_intervals(n):
    rng = np.random.default_rng(7)
    lower, gap = rng.random(n) * 0.5, rng.random(n) * 0.5
    ax = plotting.plot_bound_collapse(
        lower, lower + gap, lower + gap / 2, labels=[f"P(x{i})" for i in range(n)], reference=lower + gap / 3
    )
    segments = np.array(ax.collections[0].get_segments())
    np.testing.assert_allclose(segments[:, :, 0], np.column_stack([lower, lower + gap]))
    np.testing.assert_allclose(ax.collections[1].get_offsets()[:, 0], lower + gap / 2)
    np.testing.assert_allclose(ax.collections[2].get_offsets()[:, 0], lower + gap / 3)
    assert [t.get_text() for t in ax.get_yticklabels()] == [f"P(x{i})" for i in range(n)]
    renderer = drawn(ax)
    assert oracle.overlapping_pairs({t.get_text(): extent(t, renderer) for t in ax.get_yticklabels()}) == []
    with pytest.raises(ValueError, match="lengths 2, 1 and 2"):
        plotting.plot_bound_collapse([0, 0], [1], [0, 0])


def test_calibration_bins():
    rng = np.random.default_rng(8)
    p = rng.random(400)
    y = (rng.random(400) < p**2).astype(int)
    ax = plotting.plot_calibration(y, p, n_bins=5)
    expected = np.array(oracle.reliability(p, y, 5))
    curve = ax.containers[0].lines[0]
    np.testing.assert_allclose(np.column_stack([curve.get_xdata(), curve.get_ydata()]), expected[:, :2], atol=1e-12)
    gap = np.sum(expected[:, 2] * np.abs(expected[:, 1] - expected[:, 0]))
    assert ax.get_legend().get_texts()[0].get_text() == f"mean distance {gap:.3f}"
    both = plotting.plot_calibration(y, {"one": np.column_stack([1 - p, p]), "two": p**2}, n_bins=5)
    assert [t.get_text().split(":")[0] for t in both.get_legend().get_texts()] == ["one", "two"]
    np.testing.assert_allclose(both.containers[0].lines[0].get_ydata(), expected[:, 1], atol=1e-12)


def test_calibration_of_several_classes():
    probabilities = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4], [0.1, 0.1, 0.8]])
    y = np.array(["a", "c", "c", "c"])
    ax = plotting.plot_calibration(y, probabilities, classes=list("abc"), n_bins=2)
    curve = ax.containers[0].lines[0]
    np.testing.assert_allclose(curve.get_xdata(), [0.4, (0.8 + 0.7 + 0.8) / 3])
    np.testing.assert_allclose(curve.get_ydata(), [1.0, 2 / 3])
    assert ax.get_xlabel() == "predicted probability of the predicted class"
    one = plotting.plot_calibration(y, probabilities, classes=list("abc"), positive="c", n_bins=1)
    np.testing.assert_allclose(one.containers[0].lines[0].get_ydata(), [0.75])
    with pytest.raises(ValueError, match=r"shape \(4, 3\)"):
        plotting.plot_calibration(y, probabilities, classes=["a", "c"])


def test_importing_the_module_does_not_import_matplotlib():
    code = "import sys, pgm_bma.plotting; assert not {'matplotlib', 'pgmpy', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
