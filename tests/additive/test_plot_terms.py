"""Curves of columns: what `term_curves` sums to, and what `plot_terms` draws."""

import matplotlib
import numpy as np
import pandas as pd
import pytest

from pgm_bma import AdditiveBayesClassifier
from tests.additive.test_additive import mixed

matplotlib.use("agg")


def test_curves_are_what_a_column_says_alone(tmp_path):
    X, y = mixed(gaps=0.0)
    model = AdditiveBayesClassifier(terms=("single", "state")).fit(X, y)
    curves = model.term_curves()
    assert "numeric: a, b, c" in repr(model)
    for column in ("a", "kind"):
        lines = curves[curves.column == column]
        assert abs(lines["share"].sum() - 1) < 1e-12
        code = model._encode(X[:1]).codes[0, model.schema_.index(column)]
        found = lines.iloc[code][["other", "same"]].to_numpy(dtype=float)
        line = model.explain(X.iloc[0]).loc[column].to_numpy()
        np.testing.assert_allclose(found, line - line.mean(), atol=1e-10)
    figure = model.plot_terms(["c", "kind"], path=tmp_path / "terms.png")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["c", "kind"]
    assert (tmp_path / "terms.png").stat().st_size > 10_000
    # the curve that is drawn for c is the one of class "same", and it rises
    values = figure.axes[0].patches[-1].get_data().values
    np.testing.assert_allclose(values, curves[curves.column == "c"]["same"])
    assert values[-1] > values[0]
    with pytest.raises(ValueError, match="columns= names 'nope'"):
        model.plot_terms(["nope"])


def test_a_pair_is_a_heat_map_of_what_it_adds():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {"a": rng.choice(["u", "v"], 400), "b": rng.choice(["x", "y", "z"], 400), "c": rng.normal(size=400)}
    )
    y = np.where(rng.random(400) < np.where((X["a"] == "u") == (X["b"] == "x"), 0.9, 0.1), "yes", "no")
    model = AdditiveBayesClassifier().fit(X, y)
    figure = model.plot_terms([("b", "a")])
    (mesh,) = figure.axes[0].collections
    line = model.explain(pd.Series({"a": "v", "b": "y", "c": 0.0})).loc["a, b"]
    drawn = np.asarray(mesh.get_array()).reshape(2, 3)  # a upwards, b from left to right
    assert drawn[1, 1] == pytest.approx(line["yes"] - line.mean(), abs=1e-12)
    assert figure.axes[0].get_title(loc="left") == "b, a" and figure.axes[0].get_xlabel() == "b"
    titles = [ax.get_title(loc="left") for ax in model.plot_terms().axes]
    assert "a, b" in titles and "a, c" not in titles  # pairs beyond chance only
    z = np.where(rng.random(400) < 0.3, "maybe", y)
    three = AdditiveBayesClassifier().fit(X, z).plot_terms([("a", "b")])
    assert [ax.get_title(loc="left") for ax in three.axes[:3]] == ["a, b: maybe", "a, b: no", "a, b: yes"]
    with pytest.raises(ValueError, match="is neither a column of the fit nor a pair"):
        model.plot_terms([("a", "nope")])
