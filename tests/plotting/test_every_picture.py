"""What holds for every picture: axes and a title are taken, nothing leaves the canvas, colours can be told apart."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from pgm_bma import LatentClassClusterer, plotting
from pgm_bma.plotting import _drawing
from tests.plotting.test_plotting import (
    augmented_model,
    drawn,
    extent,
    interaction_table,
    pair_regions,
)


def two_clusters():
    halves = np.repeat([0, 1], 20)
    X = pd.DataFrame({name: np.where(np.arange(40) % (5 + k), halves, 1 - halves) for k, name in enumerate("abc")})
    return LatentClassClusterer(2, n_init=2, random_state=0).fit(X)


def mixed_clusters():
    halves = np.repeat([0, 1], 20)
    X = pd.DataFrame({"length": 3.0 * halves + np.sin(np.arange(40)), "b": halves})
    return LatentClassClusterer(2, n_init=2, random_state=0).fit(X)


def calls():
    table = pd.DataFrame([[0, 0.9], [0.1, 0]], list("ab"), list("ab"))
    path = pd.DataFrame({"n_clusters": [1, 2], "score": [-90.0, -70.0], "bic": [180.0, 150.0]})
    pairs = pd.DataFrame({"first": ["a"], "second": ["b"], "residual": [9.0]})
    evidence = pd.DataFrame({"no": [-0.7, -2.3], "yes": [-0.7, -0.1]}, index=["(prior)", "smoker"])
    along = pd.DataFrame({"threshold": [0.2, 0.8], "precision": [0.5, 1.0], "recall": [1.0, 0.5], "shd": [2, 1]})
    effects = pd.DataFrame(
        {
            "of": ["a", "b"],
            "on": ["b", "a"],
            "ancestor": [0.9, 0.1],
            "size": [0.4, 0.02],
            "low": [0.2, 0.0],
            "high": [0.6, 0.1],
        }
    )
    return {
        "plot_effects": lambda **k: plotting.plot_effects(effects, **k),
        "plot_runs": lambda **k: plotting.plot_runs(table, table.T, **k),
        "plot_comparison": lambda **k: plotting.plot_comparison(along, **k),
        "plot_network": lambda **k: plotting.plot_network([("a", "b")], **k),
        "plot_arc_posteriors": lambda **k: plotting.plot_arc_posteriors(table, **k),
        "plot_region_graph": lambda **k: plotting.plot_region_graph(pair_regions(3), **k),
        "plot_interactions": lambda **k: plotting.plot_interactions(interaction_table(5), **k),
        "plot_relevance": lambda **k: plotting.plot_relevance({"a": 0.4, "b": 0.1}, **k),
        "plot_cluster_profiles": lambda **k: plotting.plot_cluster_profiles(augmented_model(3), **k),
        "plot_score_traces": lambda **k: plotting.plot_score_traces([[-2.0, -1.0]], **k),
        "plot_starts": lambda **k: plotting.plot_starts([-2.0, -1.0], **k),
        "plot_bound_collapse": lambda **k: plotting.plot_bound_collapse([0.1], [0.5], [0.3], **k),
        "plot_calibration": lambda **k: plotting.plot_calibration([0, 1], [0.2, 0.7], **k),
        "plot_densities": lambda **k: plotting.plot_densities(mixed_clusters(), **k),
        "plot_criteria": lambda **k: plotting.plot_criteria(path, **k),
        "plot_residuals": lambda **k: plotting.plot_residuals(pairs, **k),
        "plot_profile_intervals": lambda **k: plotting.plot_profile_intervals(two_clusters(), **k),
        "plot_evidence": lambda **k: plotting.plot_evidence(evidence, **k),
        "plot_structure_difference": lambda **k: plotting.plot_structure_difference([("a", "b")], [("b", "a")], **k),
    }


@pytest.mark.parametrize("name", sorted(calls()))
def test_every_picture_takes_axes_and_a_title(name):
    _, axes = plt.subplots(1, 2, figsize=(8, 4))
    assert calls()[name](ax=axes[1], title="a title") is axes[1]
    assert axes[1].get_title() == "a title"
    assert not (axes[0].patches or axes[0].lines or axes[0].texts or axes[0].collections)
    own = calls()[name]()
    assert own not in axes and own.figure is not axes[0].figure
    renderer = drawn(own)
    canvas = own.figure.bbox.extents
    for text in own.texts:
        x0, y0, x1, y1 = extent(text, renderer)
        assert x0 >= canvas[0] - 1 and y0 >= canvas[1] - 1 and x1 <= canvas[2] + 1 and y1 <= canvas[3] + 1
    if own.get_legend() is not None:
        x0, y0, x1, y1 = extent(own.get_legend(), renderer)
        assert x0 >= canvas[0] - 1 and y0 >= canvas[1] - 1 and x1 <= canvas[2] + 1


def test_all_public_pictures_are_in_that_list():
    figures = {"plot_terms"}  # of several axes: takes none
    assert sorted({*calls(), *figures}) == plotting.__all__


def test_colours_can_be_told_apart_by_colour_blind_readers():
    """Machado et al. (2009), complete deuteranopia and protanopia, on linear RGB; distances in CIELAB."""
    simulations = {
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    }
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])

    def lab(colour, matrix):
        rgb = np.array(to_rgb(colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        xyz = to_xyz @ np.clip(np.array(matrix) @ linear, 0, 1) / [0.9505, 1.0, 1.089]
        f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
        return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])

    def closest(colours, matrix):
        seen = [lab(c, matrix) for c in colours]
        return min(np.linalg.norm(a - b) for i, a in enumerate(seen) for b in seen[:i])

    for matrix in simulations.values():
        assert (
            closest([_drawing.SOFT, _drawing.VERMILION, _drawing.BLUE, _drawing.PURPLE], matrix) > 9
        )  # also dashed differently
        assert closest(_drawing.SERIES[:4], matrix) > 18
        assert closest([_drawing.BLUE, _drawing.VERMILION], matrix) > 60
