"""`interactions_`: the pairs that are in the model, ranked by what they say, with intervals; pictures of them."""

import numpy as np
import pandas as pd
import pytest

from pgm_bma import AdditiveBayesClassifier, KikuchiBayesClassifier
from pgm_bma.additive.model import factor_errors
from pgm_bma.additive.terms import additive_data, make_terms
from pgm_bma.kikuchi.strength import corrected, plug_in


def mixed(n, seed, noise=False):
    """Numbers, states and a noise column of many states; the pairs num2 x num3 and cat0 x cat1 interact, unless all is noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5))).add_prefix("num")
    for k in range(3):
        X[f"cat{k}"] = rng.choice(list("abc"), n)
    X["noise"] = rng.integers(0, 150, n).astype(str)
    z = 0.8 * X.num0 - 0.6 * X.num1 + 1.5 * X.num2 * X.num3 + 2.0 * (X.cat0 == X.cat1)
    return X, np.where(rng.random(n) < 1 / (1 + np.exp(-(0 if noise else 1) * (z - 0.7))), "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    X, y = mixed(900, 0)
    return X, y, AdditiveBayesClassifier().fit(X, y)


def pairs_of(table):
    return [frozenset(pair) for pair in zip(table["first"], table["second"])]


def edges(ax):
    return [p.get_gid() for p in ax.patches if str(p.get_gid()).startswith("edge:")]


def test_true_pairs_come_first_and_alone_are_sure(fitted):
    _, _, model = fitted
    table = model.interactions_
    assert list(table.columns) == ["first", "second", "importance", "low", "high"]
    assert table["importance"].is_monotonic_decreasing and table["importance"].min() > 0
    assert set(pairs_of(table)) <= {frozenset(pair) for pair in model.pairs_}
    assert set(pairs_of(table[:2])) == {frozenset(["num2", "num3"]), frozenset(["cat0", "cat1"])}
    assert (table["low"] > 0).sum() == 2
    assert (table["low"] <= table["importance"]).all() and (table["importance"] <= table["high"]).all()
    assert len(edges(model.plot())) == 2


def test_importance_is_the_share_of_the_variance_of_the_scores(fitted):
    X, _, model = fitted
    line = model.interactions_.iloc[0]
    evidence = model.explain(X)
    label = f"{line['first']}, {line['second']}"
    part = np.stack([evidence.xs(r, level=0).loc[label].to_numpy(dtype=float) for r in evidence.index.unique(0)])
    scores = model.log_scores(X)
    spreads = [(s - s.mean(axis=1, keepdims=True)).var(axis=0).sum() for s in (part, scores)]
    assert line["importance"] == pytest.approx(spreads[0] / spreads[1], rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_errors_of_factors_are_those_of_the_curvature(n_classes):
    """Against differences of the penalised loss in the factors of all pairs, all columns and the rest."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(list("abc"), 150) for name in "uvw"})
    y = rng.integers(0, n_classes, 150)
    model = AdditiveBayesClassifier()
    training, values, _ = model._read_training(X, y, None)
    data = additive_data(training, values, [False] * 3)
    terms, contrasts = make_terms(data, ("single", "pair", "state", "cell"))
    theta = rng.normal(size=len(contrasts.kinds)) / 3
    stiff = rng.uniform(1, 5, len(theta))
    found = factor_errors(contrasts, data.weights, theta, stiff, terms)
    assert set(found) == {(0,), (1,), (2,), *terms.pairs, *terms.cells} and len(found) >= 5
    n_flat = contrasts.values.shape[2]
    own = {pair: np.zeros(len(theta), dtype=bool) for pair in found}
    for k, members in enumerate(terms.sets):
        if members in own:
            own[members][k] = True
    start = n_flat + (contrasts.design.shape[1] - 9 * len(terms.cells)) * (n_classes - 1)
    for j in range(3):  # the states of a column, after the level
        first = n_flat + (1 + 3 * j) * (n_classes - 1)
        own[j,][first : first + 3 * (n_classes - 1)] = True
    for k, pair in enumerate(terms.cells):
        own[pair][start + 9 * k * (n_classes - 1) : start + 9 * (k + 1) * (n_classes - 1)] = True
    masks = [*own.values(), ~np.any(list(own.values()), axis=0)]

    def loss(factors):
        scaled = sum(f * np.where(mask, theta, 0.0) for f, mask in zip(factors, masks))
        scores = contrasts.scores(scaled)
        penalty = sum(f**2 * (stiff[m] @ theta[m] ** 2) / 2 for f, m in zip(factors[:-1], masks[:-1]))
        return data.weights @ np.log1p(np.exp(scores).sum(axis=1)) + penalty

    size, h = len(masks), 1e-3
    steps = np.eye(size) * h
    curvature = np.array(
        [
            [
                loss(1 + a + b) - loss(1 + a - b) - loss(1 - a + b) + loss(1 - a - b)
                for b in steps
            ]
            for a in steps
        ]
    ) / (4 * h * h)  # fmt: skip
    expected = np.sqrt(np.diag(np.linalg.inv(curvature)))[:-1]
    np.testing.assert_allclose(list(found.values()), expected, rtol=1e-4)


def test_of_noise_nothing_is_drawn_and_the_picture_says_so():
    """Intervals are of 95 %: of six tables of noise one may show a pair."""
    models = [AdditiveBayesClassifier().fit(*mixed(200, seed, noise=True)) for seed in range(6)]
    silent = [model for model in models if not (model.interactions_["low"] > 0).any()]
    assert len(silent) >= 5
    ax = silent[0].plot()
    assert edges(ax) == []
    assert "no pair interacts beyond chance" in ax.get_legend().get_title().get_text()


def test_weights_are_those_of_terms_in_the_model(fitted):
    _, _, model = fitted
    assert (model.term_weights_ != 0).all()
    kept = sum((part != 0).sum() for part in model._result[0].weights)
    assert len(model.term_weights_) == kept


def test_kikuchi_ranks_the_true_pair_above_a_column_of_many_states():
    X, y = mixed(900, 1)
    model = KikuchiBayesClassifier().fit(X[["cat0", "cat1", "cat2", "noise"]], y)
    table = model.interactions_
    assert list(table.columns) == ["first", "second", "importance", "low", "high"]
    assert table["importance"].is_monotonic_decreasing
    assert pairs_of(table)[0] == {"cat0", "cat1"}
    assert pairs_of(table[table["low"] > 0]) == [{"cat0", "cat1"}]
    assert {*pairs_of(table)} == {
        frozenset(region - {"class"}) for region in model.term_weights_.index if len(region) == 3
    }
    assert len(edges(model.plot())) == 1
    lone = KikuchiBayesClassifier(level=1).fit(X[["cat0", "cat1"]], y)
    assert lone.interactions_.empty and list(lone.interactions_.columns) == list(table.columns)
    assert "no pair interacts" in lone.plot().get_legend().get_title().get_text()


def test_strength_of_noise_is_centred_at_zero():
    found, plain = [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        counts = np.zeros((100, 3, 2))
        np.add.at(counts, (rng.integers(0, 100, 500), rng.integers(0, 3, 500), rng.integers(0, 2, 500)), 1.0)
        found.append(corrected(counts))
        plain.append(plug_in(counts)[0])
    strength, low, high = np.array(found).T
    assert np.mean(plain) > 0.1  # what was shown before
    assert abs(strength.mean()) < 3 * strength.std() / np.sqrt(50)
    assert ((low <= 0) & (high >= 0)).mean() >= 0.9


def test_plug_in_strength_is_that_of_the_definition():
    counts = np.random.default_rng(0).integers(0, 5, (3, 2, 4)).astype(float)
    p = counts / counts.sum()

    def entropy(*axes):
        q = p.sum(axis=tuple(a for a in range(3) if a not in axes)).ravel()
        return -sum(x * np.log(x) for x in q if x > 0)

    conditional = entropy(0, 2) + entropy(1, 2) - entropy(0, 1, 2) - entropy(2)
    assert plug_in(counts)[0] == pytest.approx(conditional - (entropy(0) + entropy(1) - entropy(0, 1)), abs=1e-12)


@pytest.mark.parametrize("estimator", [AdditiveBayesClassifier, KikuchiBayesClassifier])
@pytest.mark.filterwarnings("ignore")
def test_looking_at_a_model_never_raises(estimator):
    X, y = mixed(60, 0)
    for model in (estimator(), estimator().fit(X[["num0", "cat0"]], y)):
        for name in dir(model):
            hasattr(model, name)
