"""The last stage: trees over three or more numbers, where held-out rows ask for them."""

import json
import subprocess
from itertools import product
from pathlib import Path
from shutil import which

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma import AdditiveBayesClassifier
from pgm_bma.additive._kernels import grow_tree

WITHOUT_FOREST = ("single", "pair", "linear", "state", "gaussian", "cell", "tree")


def sine(n, seed):
    """The class follows a sine of the sum of three numbers, which no pair shows; some cells are missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-4 * np.sin(1.5 * x[:, :3].sum(axis=1)))), "up", "down")
    x[rng.random(x.shape) < 0.02] = np.nan
    return pd.DataFrame(x, columns=list("abcd")).assign(kind=rng.choice(list("uv"), n)), y


@pytest.fixture(scope="module")
def fitted():
    X, y = sine(3000, 0)
    return AdditiveBayesClassifier(terms=WITHOUT_FOREST).fit(X, y), *sine(2000, 1)


def loss(model, X, y):
    return -np.log(model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean()


def test_trees_find_what_pairs_do_not(fitted):
    model, X, y = fitted
    assert loss(model, X, y) < loss(model.remove_terms(["(trees)"]), X, y) - 0.05
    lines = model.explain(X[:20])
    np.testing.assert_allclose(lines.groupby(level=0, sort=False).sum(), model.log_scores(X[:20]), atol=1e-9)
    share = model.term_importances_.set_index("term").loc["(trees)", "importance"]
    assert 0.2 < share < 1.5
    assert not hasattr(model, "model_")


def test_trees_are_saved_and_written(fitted, tmp_path):
    model, X, _ = fitted
    wanted = model.predict_proba(X[:50])
    pgm_bma.save(model, tmp_path / "model.pgm")
    np.testing.assert_array_equal(pgm_bma.load(tmp_path / "model.pgm").predict_proba(X[:50]), wanted)
    content = json.loads(json.dumps(model.to_dict()))
    assert len(content["trees"]) == len(model._result[0].trees.splits)
    np.testing.assert_allclose(AdditiveBayesClassifier.from_dict(content).predict_proba(X[:50]), wanted, atol=1e-12)
    if which("node") is None:
        pytest.skip("node is not installed")
    (tmp_path / "model.json").write_text(json.dumps(content))
    rows = X[:50].astype(object).where(X[:50].notna(), None).to_numpy().tolist()
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    words = [
        "node",
        str(Path(__file__).with_name("score.js")),
        str(tmp_path / "model.json"),
        str(tmp_path / "rows.json"),
    ]
    found = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_there_are_none_where_terms_explain_all():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 4))).add_prefix("x")
    y = rng.random(2000) < 1 / (1 + np.exp(-X.x0 - X.x1 * X.x2))
    assert AdditiveBayesClassifier().fit(X, y)._result[0].trees is None
    few = AdditiveBayesClassifier(terms=("single", "pair")).fit(*sine(2000, 0))
    assert few._result[0].trees is None


def test_the_first_split_and_the_leaves_are_the_best():
    """Against all columns and bins, one by one."""
    rng = np.random.default_rng(0)
    bins, n_bins = rng.integers(0, 5, (3, 80)).astype(np.uint8), np.array([5, 5, 5])
    residuals, variances = rng.normal(size=(80, 2)), rng.random((80, 2))
    pulls = np.stack([residuals, variances], axis=2)
    splits, leaves, places = np.zeros((1, 2), dtype=np.int64), np.zeros((2, 2)), np.zeros(80, dtype=np.int64)
    grow_tree(bins, n_bins, pulls, 3.0, splits, leaves, places)

    def gain(column, last):
        sides = [bins[column] <= last, bins[column] > last]
        return sum((residuals[s].sum(axis=0) ** 2 / (variances[s].sum(axis=0) + 3)).sum() for s in sides)

    assert tuple(splits[0]) == max(product(range(3), range(4)), key=lambda split: gain(*split))
    for leaf in (0, 1):
        rows = (bins[splits[0, 0]] > splits[0, 1]) == leaf
        np.testing.assert_array_equal(places[rows], leaf)
        wanted = residuals[rows].sum(axis=0) / (variances[rows].sum(axis=0) + 3)
        np.testing.assert_allclose(leaves[leaf], wanted, rtol=1e-12)
