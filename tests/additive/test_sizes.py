"""Large and wide tables: more rows never harm, and columns of noise hardly."""

import numpy as np
import pandas as pd
import pytest

from pgm_bma import AdditiveBayesClassifier
from pgm_bma.additive import fit as fitting
from pgm_bma.additive.choice import pair_gains
from pgm_bma.additive.terms import WIDE, additive_data, column_gains, make_terms, strong_columns


def source(n, seed, n_noise=0):
    """Numbers and states of which some matter, one pair among them; then numbers of noise."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4))).add_prefix("n").assign(c=rng.choice(list("abc"), n))
    score = np.sin(2 * X.n0) + 0.8 * X.n1 + X.n1 * X.n2 + 0.7 * (X.c == "a")
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    return pd.concat([X, pd.DataFrame(rng.normal(size=(n, n_noise))).add_prefix("z")], axis=1), y


def loss(model, X, y):
    return -np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean()


def test_more_rows_never_harm():
    """From nine fits to one, from four folds to two, from all rows to a sample for the ridges: no step goes up."""
    X, y = source(30_000, 0)
    held = source(10_000, 1)
    losses = []
    for n, starts in (
        (480, range(0, 3000, 1000)),
        (1000, range(0, 3000, 1000)),
        (3000, [0]),
        (10_000, [0]),
        (30_000, [0]),
    ):
        rows = [slice(start, start + n) for start in starts]  # means of three: one small table is good or bad by chance
        losses.append(np.mean([loss(AdditiveBayesClassifier().fit(X[own], y[own]), *held) for own in rows]))
    assert (np.diff(losses) < 0.002).all()  # chance of the training rows
    assert losses[-1] < losses[0] - 0.005


@pytest.mark.parametrize(("n", "n_noise"), [(300, 100), (600, 600)])
def test_columns_of_noise_cost_little(n, n_noise):
    X, y = source(n, 2, n_noise)
    held, classes = source(4000, 3, n_noise)
    rows = slice(0, 5)
    without = AdditiveBayesClassifier(n_bags=1).fit(X.iloc[:, rows], y)
    model = AdditiveBayesClassifier(n_bags=1).fit(X, y)
    # of 300 rows the pair may be lost, as one of its columns says nothing alone; before: .03 and .3 more than without pairs
    pairless = AdditiveBayesClassifier(n_bags=1, terms=("single", "linear", "state")).fit(X.iloc[:, rows], y)
    assert loss(model, held, classes) < loss(pairless, held.iloc[:, rows], classes) + 0.03
    assert loss(without, held.iloc[:, rows], classes) < 0.65
    assert len(model._terms.columns) < 20
    assert model.n_bags_ == 1


def test_pairs_alone_are_found_in_noise():
    """Four numbers that say something in two products only, next to 300 of noise."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2600, 304))).add_prefix("x")
    score = 1.5 * X.x0 * X.x1 + 1.5 * np.sign(X.x2 * X.x3)
    y = (rng.random(2600) < 1 / (1 + np.exp(-score))).astype(int)
    few = [f"x{j}" for j in range(4)]
    alone = AdditiveBayesClassifier().fit(X.loc[:599, few], y[:600])
    model = AdditiveBayesClassifier().fit(X[:600], y[:600])
    assert set(few) <= {X.columns[j] for j in model._terms.columns}
    assert loss(model, X[600:], y[600:]) < loss(alone, X.loc[600:, few], y[600:]) + 0.03


def test_gains_of_products_are_score_tests():
    """Against all pairs, one by one: numbers as ranks, a column of two states, three classes, missing cells."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(90, 4))).add_prefix("x").assign(flag=rng.choice(["no", "yes"], 90))
    X.iloc[3, 0] = np.nan
    y = rng.integers(0, 3, 90)
    model = AdditiveBayesClassifier()
    training, values, _ = model._read_training(X.assign(kind=rng.choice(list("abc"), 90)), y, None)
    numeric = [name.startswith("x") for name in training.schema.names]
    data = additive_data(training, values, numeric)
    shares = np.array([0.3, 0.3, 0.4])
    found = pair_gains(data, shares)
    scores = []
    for j in range(5):
        known = data.codes[:, j] >= 0
        # middle of the ranks of all rows in the same bin
        below = np.array([(data.codes[known, j] < code).sum() for code in data.codes[known, j]])
        same = np.array([(data.codes[known, j] == code).sum() for code in data.codes[known, j]])
        middle = below + same / 2
        column = np.zeros(90)
        column[known] = middle - middle.mean()
        scores.append(column / column.std())  # of all rows: a missing cell is 0
    for j in range(5):
        largest = 0.0
        for c in range(3):
            left = (data.target == c) - shares[c]
            products = [abs((left * scores[j] * scores[k]).sum()) for k in range(5) if k != j]
            largest = max(largest, max(products) / np.sqrt((left**2).sum()))
        assert found[j] == pytest.approx(largest**2 / 2 - np.log(5 / 2), abs=1e-9)
    assert found[5] == -np.inf  # three states


def test_weak_columns_that_speak_together_stay():
    """150 slopes, each too weak to be seen alone: held-out rows ask for all columns."""
    rng = np.random.default_rng(0)
    slopes = 2 * rng.normal(size=150) / np.sqrt(150)
    X = pd.DataFrame(rng.normal(size=(3000, 150))).add_prefix("x")
    y = (rng.random(3000) < 1 / (1 + np.exp(-X.to_numpy() @ slopes))).astype(int)
    model = AdditiveBayesClassifier().fit(X[:1500], y[:1500])
    assert len(model._terms.columns) == 150
    assert loss(model, X[1500:], y[1500:]) < 0.62


def test_strong_columns_are_those_above_the_bar():
    gains = np.array([3.0, -1.0, 9.0, 5.0])
    np.testing.assert_array_equal(strong_columns(gains, 4.0), [2, 3])
    np.testing.assert_array_equal(strong_columns(gains, 50.0), [2, 3])  # never fewer than two
    np.testing.assert_array_equal(strong_columns(gains, -np.inf), [0, 1, 2, 3])
    assert strong_columns(None, 4.0) is None


def test_gains_are_ratios_of_evidence():
    """Of two states: all together or each apart, probability 1/2 each, over four strengths; enumerated."""
    from math import lgamma

    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.integers(0, 2, (40, WIDE + 1)).astype(str)).add_prefix("x")
    y = rng.integers(0, 2, 40)
    training, values, _ = AdditiveBayesClassifier()._read_training(X, y, None)
    data = additive_data(training, values, [False] * X.shape[1])
    gains = column_gains(data)
    shares = (np.bincount(y) + 0.5) / 41

    def evidence(classes, s):
        counts = np.bincount(classes, minlength=2)
        own = sum(lgamma(s * p + k) - lgamma(s * p) for p, k in zip(shares, counts))
        return own + lgamma(s) - lgamma(s + counts.sum())

    together = np.array([evidence(y, s) for s in (1, 3, 10, 30)])
    for j in (0, 7):
        apart = [sum(evidence(y[X.iloc[:, j] == v], s) for v in "01") for s in (1, 3, 10, 30)]
        ratio = np.logaddexp.reduce([*together, *apart]) - np.log(2) - np.logaddexp.reduce(together)
        assert gains[j] == pytest.approx(ratio, abs=1e-9)
    assert column_gains(data.take_columns(np.arange(WIDE))) is None
    assert len(make_terms(data, ("single",), strong_columns(gains, 0.0))[0].singles) == max((gains >= 0).sum(), 2)


def test_numbers_that_no_fold_has_rows_enough_for_have_no_density():
    """The densities of 48 numbers take 54 rows and no fold of them, so nothing judges them."""
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame(rng.normal(size=(254, 48))).rename(columns=str), rng.integers(0, 2, 254)
    model = AdditiveBayesClassifier(n_bags=1).fit(X[:54], y[:54])
    assert loss(model, X[54:], y[54:]) < 0.9  # ln 2 knows nothing; with the densities it was 7.9


def test_the_luckiest_of_many_columns_do_not_stand_alone(monkeypatch):
    """200 of 700 columns follow the class a little: 500 win by held-out rows, but next to the few strong ones they do better."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1120)
    factors = rng.normal(size=(1120, 5)) + np.outer(y, [0.8, 0.8, 0, 0, 0])
    loads = np.hstack([0.5 * rng.normal(size=(5, 200)), np.zeros((5, 500))])
    X = pd.DataFrame(factors @ loads + rng.normal(size=(1120, 700))).add_prefix("x")
    choose, found = fitting.choose_ridges, []

    def kept(*parts):
        found.extend(choose(*parts))
        return found

    def fit_loss():
        model = AdditiveBayesClassifier(terms=("single", "linear"), n_bags=1).fit(X[:120], y[:120])
        return len(model._terms.columns), loss(model, X[120:], y[120:])

    monkeypatch.setattr(fitting, "choose_ridges", kept)
    n_columns, both = fit_loss()
    assert n_columns == 500
    assert [choice.bar for choice in found] == [-np.inf, np.log(700)]
    alone = []
    for choice in list(found):
        monkeypatch.setattr(fitting, "choose_ridges", lambda *parts, own=choice: [own._replace(share=1.0)])
        alone.append(fit_loss()[1])
    assert both < alone[0] - 0.005  # the 500 columns alone
