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


@pytest.mark.parametrize("n_bags", [1, 3])
def test_curves_maps_and_what_is_named_add_up_to_the_log_odds(n_bags):
    """For rows whose numbers are middles of bins every term has its value in a table that is shown."""
    X, y = mixed(300, gaps=0.0)
    model = AdditiveBayesClassifier(n_bags=n_bags).fit(X, y)
    curves, maps = model.term_curves(), model.term_maps()
    assert list(dict.fromkeys(zip(maps["first"], maps["second"]))) == model.pairs_ and len(model.pairs_) > 0
    rng, rows, total = np.random.default_rng(0), [], []
    for _ in range(20):
        lines = {name: part.iloc[rng.integers(len(part))] for name, part in curves.groupby("column")}
        row = {name: line["bin"] if np.isnan(line["middle"]) else line["middle"] for name, line in lines.items()}
        rows.append(pd.DataFrame([row])[list(X.columns)].astype(X.dtypes))
        named = model.explain(rows[-1].iloc[0])
        odds = sum(line["same"] - line["other"] for line in lines.values())
        bins = {name: line["bin"] for name, line in lines.items()}
        here = (maps["first bin"] == maps["first"].map(bins)) & (maps["second bin"] == maps["second"].map(bins))
        assert here.sum() == len(model.pairs_)
        odds += (maps.loc[here, "same"] - maps.loc[here, "other"]).sum()
        for label in {"(prior)", "(gaussian)", "(forest)"} & set(named.index):
            odds += named.loc[label, "same"] - named.loc[label, "other"]
        total.append(odds)
    scores = model.log_scores(pd.concat(rows))
    np.testing.assert_allclose(total, scores[:, 1] - scores[:, 0], atol=1e-9)


UNKNOWN = {1: {"(gaussian)", "(forest)"}, 3: {"(forest)"}}  # terms without an interval, by the number of fits


@pytest.mark.parametrize("n_bags", [1, 3])
def test_importances_are_shares_of_the_variance_with_intervals(n_bags):
    X, y = mixed(300, gaps=0.0)
    model = AdditiveBayesClassifier(n_bags=n_bags).fit(X, y)
    found = model.term_importances_
    lines, scores = model.explain(X), model.log_scores(X)
    whole = (scores - scores.mean(axis=1, keepdims=True)).var(axis=0).sum()
    assert found["importance"].is_monotonic_decreasing and {"c", "(gaussian)"} <= set(found["term"])
    for term, importance, low, high in found.itertuples(index=False):
        part = lines.xs(term, level=1).to_numpy(dtype=float)
        assert importance == pytest.approx(
            (part - part.mean(axis=1, keepdims=True)).var(axis=0).sum() / whole, rel=1e-8
        )
        assert low <= importance <= high or (term in UNKNOWN[n_bags] and np.isnan(low))
    pairs = found[found["term"].str.contains(", ")]
    np.testing.assert_array_equal(pairs["importance"], model.interactions_["importance"])
    fewer = model.remove_terms(["c", "(gaussian)"])
    assert set(found["term"]) - set(fewer.term_importances_["term"]) == {"c", "(gaussian)"}


def test_what_a_fit_does_not_have_is_an_attribute_error():
    X, y = mixed(100, gaps=0.0)
    read = AdditiveBayesClassifier.from_dict(AdditiveBayesClassifier(n_bags=1).fit(X, y).to_dict())
    for model in (AdditiveBayesClassifier(), read):
        for name in ("term_importances_", "cut_posterior_", "interactions_", "model_"):
            assert not hasattr(model, name) and name not in vars(model)
    with pytest.raises(AttributeError):
        read.term_curves()
