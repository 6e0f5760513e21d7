"""The forest: trees against plain loops, rows that are left out, weights, names and orders, and that it is shown."""

import json
import subprocess
from pathlib import Path
from shutil import which

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma import AdditiveBayesClassifier
from pgm_bma.additive import _forest_kernels as kernels
from pgm_bma.additive import forest as forests
from pgm_bma.additive.fit import _colours, fit_additive
from tests.additive.test_trees import loss, sine

TERMS = ("single", "pair", "linear", "state", "gaussian", "forest")


def grown(bins, ordered, target, weights, n_try=None):
    """(columns, masks, children, leaves) of one tree."""
    size = 2 * len(target) + 1
    tree, leaves = np.zeros((3, size), dtype=np.int64), np.zeros((len(target) + 1, target.max() + 1))
    sizes, state = bins.max(axis=1).astype(np.int64) + 1, np.zeros(1, dtype=np.uint64)
    n_nodes, n_leaves = kernels.grow(bins, sizes, ordered, target, weights, n_try or len(bins), state, *tree, leaves)
    return *tree[:, :n_nodes], leaves[:n_leaves]


def reached(tree, row):
    columns, masks, children, leaves = tree
    node = 0
    while children[node] >= 0:
        inside = masks[node] >> int(row[columns[node]]) & 1
        node = children[node] + (0 if inside else 1)
    return leaves[-1 - children[node]]


def impurity(target, weights, inside):
    """Sum over both sides of the squared class weights over the weight: what the best split has most of."""
    total = 0.0
    for side in (inside, ~inside):
        counts = np.bincount(target[side], weights[side])
        total += (counts**2).sum() / counts.sum()
    return total


def test_the_first_split_is_the_best_of_all_and_leaves_hold_the_shares_of_their_rows():
    rng = np.random.default_rng(0)
    bins = np.vstack([rng.integers(0, 6, (2, 60)), rng.integers(0, 4, (1, 60))]).astype(np.uint8)
    target, weights = rng.integers(0, 2, 60), rng.integers(1, 4, 60).astype(float)
    tree = grown(bins, np.array([True, True, False]), target, weights)
    splits = [bins[j] <= b for j in (0, 1) for b in range(5)]
    splits += [
        np.isin(bins[2], [s for s in range(4) if mask >> s & 1]) for mask in range(1, 15)
    ]  # all ways to part states
    best = max(impurity(target, weights, inside) for inside in splits)
    first = (tree[1][0] >> bins[tree[0][0]].astype(np.int64) & 1).astype(bool)
    assert impurity(target, weights, first) == pytest.approx(best, rel=1e-12)
    for row in np.unique(bins.T, axis=0):  # rows that differ are told apart where their classes differ
        same = (bins.T == row).all(axis=1)
        share = np.bincount(target[same], weights[same], minlength=2) / weights[same].sum()
        found = reached(tree, row)
        assert (found == share).all() or found.max() == 1.0


def test_a_row_is_judged_by_the_trees_that_did_not_draw_it(monkeypatch):
    """Every tree is grown once more without the row, which changes nothing where it was not drawn."""
    X, y = sine(60, 0)
    data = read(X, y)
    drawn = []
    old = forests._Draws.next

    def keep(self):
        drawn.append(old(self))
        return drawn[-1]

    monkeypatch.setattr(forests._Draws, "next", keep)
    shares, places = np.array([0.5, 0.5]), np.arange(60)
    forest, term = forests.fit_forest(data, shares, _colours(data), places)
    bins = forests.forest_bins(data.codes, data.values, forest.numbers, forest.edges)
    ends = [*forest.roots[1:], len(forest.children)]
    for r in range(0, 60, 7):
        found = []
        for (weights, counted), root, end in zip(drawn, forest.roots, ends):
            assert counted[r] == (weights[r] == 0)
            if counted[r]:
                own = [part[root:end] for part in (forest.columns, forest.masks, forest.children)]
                own[2] = np.where(own[2] >= 0, own[2] - root, own[2])
                found.append(reached((*own, forest.leaves), bins[:, r]))
        wanted = np.log((np.mean(found, axis=0) + forests.MIXED * shares) / (1 + forests.MIXED))
        np.testing.assert_allclose(term[r], wanted, rtol=1e-12)


def read(X, y, **parameters):
    """The training data of a fit."""
    from pgm_bma.additive import classifier

    kept = {}

    def keep(data, *others):
        kept["data"] = data
        return fit_additive(data, *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "fit_additive", keep)
        AdditiveBayesClassifier(terms=("single",), n_bags=1).fit(X, y, **parameters)
    return kept["data"]


def test_repeats_that_are_data_are_left_out_one_by_one():
    """A row of weight 3 that a tree drew m times lacks one of its three with probability (2/3)^m."""
    data = read(*sine(80, 0))
    data = data._replace(weights=np.where(np.arange(80) < 40, 3.0, 1.0), repeats="data")
    draws = forests._Draws(data, np.arange(80))
    drawn, counted = draws.next()
    np.testing.assert_allclose(counted[:40], (2 / 3) ** drawn[:40])
    np.testing.assert_array_equal(counted[40:], drawn[40:] == 0)
    copies = forests._Draws(data._replace(repeats="copies"), np.arange(80))
    drawn, counted = copies.next()
    np.testing.assert_array_equal(counted, drawn == 0)
    groups = forests._Draws(data._replace(groups=np.arange(80) // 4), np.arange(80))
    drawn, counted = groups.next()
    together = counted.reshape(20, 4)
    np.testing.assert_array_equal(together, np.repeat(together[:, :1], 4, axis=1))
    assert 0 < counted.mean() < 1


def test_edges_lie_between_values_at_even_shares():
    values = np.concatenate([np.arange(200.0), [np.nan]])
    edges = forests.number_edges(values, np.ones(201))
    assert len(edges) == forests.MOST_BINS - 1 and not np.isin(edges, values).any()
    sizes = np.diff(np.searchsorted(values[:-1], [-1, *edges, 200]))
    assert sizes.min() >= 3 and sizes.max() <= 4
    np.testing.assert_array_equal(forests.number_edges(np.array([1.0, 1.0, 2.0]), np.ones(3)), [1.5])
    above = np.nextafter(1.0, 2.0)
    np.testing.assert_array_equal(forests.number_edges(np.array([1.0, above]), np.ones(2)), [above])


@pytest.fixture(scope="module")
def fitted():
    X, y = sine(1500, 0)
    y = np.where(X["kind"] == "u", y, np.where(y == "up", "down", "up"))  # a state takes part
    held, classes = sine(2000, 1)
    classes = np.where(held["kind"] == "u", classes, np.where(classes == "up", "down", "up"))
    return AdditiveBayesClassifier(terms=TERMS, n_bags=1).fit(X, y), X, y, held, classes


def test_the_forest_finds_what_pairs_do_not_and_is_shown(fitted):
    model, _, _, X, y = fitted
    without = model.remove_terms(["(forest)"])
    assert loss(model, X, y) < loss(without, X, y) - 0.02
    lines = model.explain(X[:20])
    np.testing.assert_allclose(lines.groupby(level=0, sort=False).sum(), model.log_scores(X[:20]), atol=1e-9)
    assert "(forest)" in set(model.term_importances_["term"]) and "(forest)" not in set(
        without.term_importances_["term"]
    )
    assert model.feature_importances_[: len(X.columns)].min() > 0


def test_the_network_of_states_lacks_the_forest():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (300, 4)), columns=list("abcd")).astype(str)
    y = (X == "1").sum(axis=1) % 2 == 1  # no one, two or three columns say anything
    model = AdditiveBayesClassifier(n_bags=1, terms=("single", "pair", "forest")).fit(X, y)
    assert not model.model_is_exact_
    without = model.remove_terms(["(forest)"])
    assert without.model_is_exact_
    for own, other in zip(model.model_.factors, without.model_.factors):
        assert own == other
    product = without.model_.factors[0]
    for factor in without.model_.factors[1:]:
        product = product * factor
    seen = product.reduce(list(zip("abcd", X.iloc[0])), inplace=False)
    np.testing.assert_allclose(seen.values / seen.values.sum(), without.predict_proba(X[:1])[0], atol=1e-9)


def test_the_forest_is_saved_and_written(fitted, tmp_path):
    model, _, _, X, _ = fitted
    wanted = model.predict_proba(X[:50])
    pgm_bma.save(model, tmp_path / "model.pgm")
    np.testing.assert_array_equal(pgm_bma.load(tmp_path / "model.pgm").predict_proba(X[:50]), wanted)
    content = json.loads(json.dumps(model.to_dict()))
    np.testing.assert_allclose(AdditiveBayesClassifier.from_dict(content).predict_proba(X[:50]), wanted, atol=1e-12)
    if which("node") is None:
        pytest.skip("node is not installed")
    rows = X[:50].astype(object).where(X[:50].notna(), None).to_numpy().tolist()
    paths = [tmp_path / name for name in ("model.json", "rows.json")]
    for path, what in zip(paths, (content, rows)):
        path.write_text(json.dumps(what))
    words = ["node", str(Path(__file__).with_name("score.js")), *map(str, paths)]
    found = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_orders_and_names_do_not_matter(fitted):
    model, X, y, held, _ = fitted
    rows = np.random.default_rng(0).permutation(len(X))
    names = {"u": "z", "v": "a"}
    columns = [3, 4, 0, 2, 1]
    other, new = (frame.assign(kind=frame["kind"].map(names)).iloc[:, columns] for frame in (X, held))
    again = AdditiveBayesClassifier(terms=TERMS, n_bags=1).fit(other.iloc[rows], y[rows])
    np.testing.assert_allclose(again.predict_proba(new[:200]), model.predict_proba(held[:200]), atol=1e-9)


def test_a_monotone_column_has_no_part_in_it(fitted):
    _, X, y, _, _ = fitted
    model = AdditiveBayesClassifier(terms=TERMS, n_bags=1, monotone={"a": 1}).fit(X, y)
    forest = model._result[0].forest
    assert forest is None or 0 not in forest.columns[forest.children >= 0]


def test_noise_gains_little_by_it():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2300, 8))).add_prefix("x")
    y = rng.integers(0, 2, 2300)
    model = AdditiveBayesClassifier().fit(X[:300], y[:300])
    assert loss(model, X[300:], y[300:]) < np.log(2) + 0.01


def test_a_forest_that_leads_astray_is_an_error(fitted):
    model, _, _, _, _ = fitted
    content = json.dumps(model.to_dict())
    for name, place, value in (
        ("children", 0, 10**6),
        ("children", -1, -(10**6)),
        ("children", 0, 0),
        ("columns", 0, 99),
        ("roots", 1, -1),
    ):
        changed = json.loads(content)
        changed["forest"][name][place] = value
        with pytest.raises(ValueError, match="the forest in content leads to"):
            AdditiveBayesClassifier.from_dict(changed)
