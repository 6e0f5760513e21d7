"""Curves of columns: what `term_curves` sums to, and what `plot_terms` draws."""

import matplotlib
import numpy as np
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
