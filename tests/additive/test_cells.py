"""Weights of cells and of whole numbers, and the solver that columns with a weight per class share."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

import pgm_bma
from pgm_bma import AdditiveBayesClassifier
from pgm_bma.additive import solve
from pgm_bma.additive.choice import cell_indicators
from pgm_bma.additive.model import factors
from pgm_bma.additive.solve import OFF
from pgm_bma.foundation.numbers.softmax_ridge import loss_sums, ridge_fit


def two_of_six(n=500, seed=0):
    """The class says whether exactly two of six columns are in state a: no pair of columns shows much of it."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.choice(["a", "b", "c"], (n, 6)), columns=list("uvwxyz"))
    return X, np.where((X == "a").sum(axis=1) == 2, "yes", "no")


def problem(n_classes, n_terms=4, n_columns=3, n=30):
    rng = np.random.default_rng(n_classes)
    values, x = rng.normal(size=(n, n_classes - 1, n_terms)), rng.normal(size=(n, n_columns))
    kinds = ["single"] * n_terms, ["linear"] * n_columns
    return solve.Contrasts(values, x, rng.integers(0, n_classes, n), n_classes, *kinds), rng.integers(1, 4, n) * 1.0


def all_contrasts(contrasts):
    """Every weight as a contrast of its own: (n, n_classes - 1, n_weights), one score at a time."""
    columns = [contrasts.scores(one) for one in np.eye(len(contrasts.kinds))]
    return np.stack(columns, axis=2)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_columns_with_a_weight_per_class_are_terms_of_their_own(n_classes):
    contrasts, rows = problem(n_classes)
    flat, theta = all_contrasts(contrasts), np.random.default_rng(0).normal(size=len(contrasts.kinds))
    # a row's own score stays while another class rises by the direction's entry
    own = contrasts.target[0]
    other = [c for c in range(n_classes) if c != own]
    expected = contrasts.design[0, 0] * (
        solve.class_directions(n_classes)[other, 0] - solve.class_directions(n_classes)[own, 0]
    )
    np.testing.assert_allclose(flat[0, :, 4], expected, atol=1e-14)
    if n_classes > 2:
        wide = solve.own_zeros(contrasts)
        for wanted in ("scale", "gradient", "newton"):
            expected = loss_sums(flat, rows, theta, wanted)
            for found, known in zip(solve.sums(contrasts, wide, rows, theta, wanted), expected):
                np.testing.assert_allclose(found, known, rtol=1e-10, atol=1e-10)  # sums of 30 rows
    ridge, centre = np.linspace(0.5, 3, len(theta)), np.linspace(0, 1, len(theta))
    found = solve.fit_weights(contrasts, rows, ridge, centre, centre)
    np.testing.assert_allclose(found, ridge_fit(flat, rows, centre, ridge, centre), atol=1e-8)


def test_kinds_that_are_off_are_left_out():
    contrasts, _ = problem(3)
    contrasts = contrasts._replace(
        column_kinds=["level", "cell", "cell"], term_kinds=["prior", "pair", "pair", "single"]
    )
    less = contrasts.take(["prior", "single", "cell"])
    np.testing.assert_array_equal(less.values, contrasts.values[:, :, [0, 3]])
    np.testing.assert_array_equal(less.design, contrasts.design[:, 1:])
    assert less.kinds == ["prior", "single", "cell", "cell", "cell", "cell"]


def test_cells_of_two_columns():
    codes = np.array([[0, 1, 2], [1, 0, -1], [2, 1, 0]])
    found = cell_indicators(codes, (0, 2), [3, 2, 3])
    assert found.shape == (3, 9) and found.sum(axis=1).tolist() == [1.0, 0.0, 1.0]
    assert found[0, 2] == found[2, 6] == 1.0


@pytest.fixture(scope="module")
def counted():
    X, y = two_of_six()
    return X, y, AdditiveBayesClassifier().fit(X, y)


def test_a_class_that_needs_all_columns_at_once(counted):
    X, y, with_cells = counted
    fresh, truth = two_of_six(400, seed=1)
    without = AdditiveBayesClassifier(terms=("single", "pair", "linear", "state", "gaussian")).fit(X, y)
    assert log_loss(truth, with_cells.predict_proba(fresh)) < 0.1 < 0.4 < log_loss(truth, without.predict_proba(fresh))
    assert with_cells.ridge_["cell"] < 1.0


def test_cells_are_off_where_they_say_nothing():
    X, y = two_of_six(200)
    model = AdditiveBayesClassifier().fit(X, np.random.default_rng(2).permutation(y))
    assert model.ridge_["cell"] == OFF
    assert not model.term_weights_[model.term_weights_.index.str.contains("(cell", regex=False)].any()


def test_cells_are_factors_of_the_network_and_lines_of_evidence(counted, tmp_path):
    X, _, model = counted
    rows = X[:3]
    codes = model._encode(rows)
    scores = model.log_scores(rows)
    lines = model.explain(rows).groupby(level=0, sort=False).sum()
    np.testing.assert_allclose(lines, scores, atol=1e-10)
    total = np.zeros((3, 2))
    for variables, logs in factors(model._terms):  # the class comes last
        total += logs[tuple(codes.codes[:, j] for j in variables[:-1])]
    np.testing.assert_allclose(total, scores, atol=1e-10)
    model.save(tmp_path / "model.pgm")
    np.testing.assert_array_equal(pgm_bma.load(tmp_path / "model.pgm").predict_proba(rows), model.predict_proba(rows))
    weights = model.term_weights_
    assert weights["u, v (cell a, a, no)"] == pytest.approx(-weights["u, v (cell a, a, yes)"], abs=1e-12)


def test_whole_numbers_that_are_states_have_a_slope():
    """A rising line over ten whole numbers: the slope is found, and neither origin nor unit of the numbers matters."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 10, (150, 3))
    y = np.where(x.sum(axis=1) + rng.normal(size=150) > 13.5, "high", "low")
    X = pd.DataFrame(x, columns=list("abc"))
    model = AdditiveBayesClassifier().fit(X, y)
    assert model.numeric_columns_ == []
    assert model.term_weights_["a (linear, high)"] > 0 > model.term_weights_["a (linear, low)"]
    other = AdditiveBayesClassifier().fit(3 * X + 7, y)
    np.testing.assert_allclose(
        other.predict_proba(3 * X + 7), model.predict_proba(X), atol=1e-9
    )  # rounding of the scale
    for states, parameters in ((X > 4, {}), (X * 10.0**200, {}), (X, {"categorical_columns": list("abc")})):
        plain = AdditiveBayesClassifier(**parameters).fit(states, y)
        assert not plain.term_weights_.index.str.contains("linear").any()


def test_cells_that_gain_nothing_leave_no_trace():
    """Held-out rows do not gain by cells: the fit is the one without them, also in the average over the points tried."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.integers(0, 3, (100, 3)).astype(str), columns=list("abc"))
    y = np.where(rng.random(100) < np.where(X["a"] == X["b"], 0.8, 0.2), "yes", "no")
    kinds = ("single", "pair", "linear", "state", "gaussian")
    found = AdditiveBayesClassifier(n_bags=1).fit(X, y)
    without = AdditiveBayesClassifier(n_bags=1, terms=kinds).fit(X, y)
    assert found.ridge_["cell"] == OFF
    np.testing.assert_allclose(
        found.predict_proba(X), without.predict_proba(X), rtol=1e-12
    )  # rounding of wider products
