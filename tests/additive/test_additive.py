"""AdditiveBayesClassifier: what is numeric, laws of the averaged fit, results and errors."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import pgm_bma
from pgm_bma import AdditiveBayesClassifier, KikuchiBayesClassifier
from pgm_bma.additive import fit as fitting
from pgm_bma.additive import terms as additive_terms
from pgm_bma.additive.terms import additive_data
from pgm_bma.foundation.tables.kinds import numeric_names


def mixed(n=200, seed=0, gaps=0.05):
    """Two numeric columns that tell the class together, one that does alone, and two with states."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n))
    y = np.where((a * b > 0) ^ (rng.random(n) < 0.1), "same", "other")
    X = pd.DataFrame(
        {"a": a, "b": b, "c": c + (y == "same"), "kind": rng.choice(["p", "q", "r"], n), "few": rng.integers(0, 4, n)}
    )
    return X.mask(rng.random(X.shape) < gaps), y


@pytest.fixture(scope="module")
def fitted():
    X, y = mixed()
    return X, y, AdditiveBayesClassifier(n_bags=2).fit(X, y)  # few bags: a fit takes a third of the time


def test_what_is_numeric():
    frame = pd.DataFrame(
        {
            "half": [0.5, 1.0, None] * 10,
            "whole": [0.0, 1.0, None] * 10,
            "many": np.arange(30),
            "flag": [True, False, True] * 10,
            "text": ["1.5", "2", "3"] * 10,
            3: pd.Categorical([1.5, 2.5, 1.5] * 10),
        }
    )
    assert numeric_names(frame) == ["half", "many"]
    assert numeric_names(frame, ["whole", "text"], ["many"]) == ["half", "whole", "text"]
    for arguments, message in (
        ((["nope"],), "numeric_columns names 'nope', which is not a column"),
        ((None, "many"), r"categorical_columns must be a list of columns, got 'many'; write \['many'\]"),
        ((["many"], ["many"]), "column 'many' is named as numeric and as categorical"),
    ):
        with pytest.raises(ValueError, match=message):
            numeric_names(frame, *arguments)


def test_the_pair_is_found_and_explained(fitted):
    X, y, model = fitted
    assert model.numeric_columns_ == ["a", "b", "c"]
    assert ("a", "b") in model.pairs_
    fresh, truth = mixed(300, seed=1, gaps=0.0)
    assert model.score(fresh, truth) > 0.8  # by singles alone: 0.7
    singles = AdditiveBayesClassifier(terms=["single"]).fit(X, y)
    assert singles.score(fresh, truth) < 0.75
    table = model.explain(fresh.iloc[0])
    np.testing.assert_allclose(table.sum(), model.log_scores(fresh[:1])[0], atol=1e-10)
    assert {"c", "kind", "a, b", "(gaussian)"} <= set(table.index)
    alone = AdditiveBayesClassifier(n_bags=1).fit(X, y)
    assert len(alone.term_weights_) == sum(np.count_nonzero(part) for part in alone._result[0].weights)
    assert set(alone.term_weights_.index) <= set(model.term_weights_.index)
    assert model.feature_importances_[:2].min() > 3 * model.feature_importances_[3:].max()
    curves = singles.term_curves()
    c = curves[curves.column == "c"]
    assert c["same"].iloc[-1] > c["same"].iloc[0] and c["from"].iloc[1] == c["to"].iloc[0]
    assert set(model.cut_posterior_) == {"a", "b", "c"}


def test_the_answer_comes_from_the_data(fitted):
    X, y, model = fitted
    expected = model.predict_proba(X)
    order = np.random.default_rng(5).permutation(len(X))
    again = AdditiveBayesClassifier(n_bags=2, random_state=9)
    # 1e-6: only the order of additions differs
    np.testing.assert_allclose(again.fit(X.iloc[order], y[order]).predict_proba(X), expected, atol=1e-6)
    np.testing.assert_allclose(again.fit(X[X.columns[::-1]], y).predict_proba(X), expected, atol=1e-6)
    renamed = X.replace({"kind": {"p": "z", "r": "b"}})
    np.testing.assert_allclose(again.fit(renamed, y).predict_proba(renamed), expected, atol=1e-6)
    weighted = again.fit(X, y, sample_weight=np.where(np.arange(len(X)) < 150, 1, 0)).predict_proba(X)
    np.testing.assert_array_equal(again.fit(X[:150], y[:150]).predict_proba(X), weighted)


@pytest.mark.parametrize("terms", [("single",), ("single", "pair", "gaussian")])
def test_rising_transformations_change_nothing(terms):
    X, y = mixed()
    model = AdditiveBayesClassifier(n_bags=2, terms=terms)
    fresh, _ = mixed(50, seed=3)
    expected = model.fit(X, y).predict_proba(fresh)
    found = model.fit(X.assign(a=np.exp(X.a), c=X.c**3), y).predict_proba(fresh.assign(a=np.exp(fresh.a), c=fresh.c**3))
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_left_out_terms_are_those_of_a_refit(fitted):
    """Every row's contrasts equal the terms of tables made without it; class shares, bins and scale stay those of all rows."""
    X, y, _ = fitted
    model = AdditiveBayesClassifier(terms=["single"])
    training, values, _ = model._read_training(X, y, None)
    data = additive_data(training, values, [name in model._cuts.names for name in training.schema.names])
    kinds = ("single", "linear", "state")
    terms, contrasts = additive_terms.make_terms(data, kinds)
    assert np.abs(contrasts.values).max() > 0.1
    theta = np.random.default_rng(0).normal(size=len(contrasts.kinds))
    weights = additive_terms.TermWeights.from_flat(theta, terms)
    keep_shares = additive_terms.averages.class_shares
    keep_scale, keep_levels = additive_terms.standardisation, additive_terms.level_scale
    additive_terms.averages.class_shares = lambda *_: terms.shares
    additive_terms.standardisation = lambda *_: terms.scale
    additive_terms.level_scale = lambda *_: terms.levels
    try:
        for row in (0, 7, 50):
            rest = np.arange(len(y)) != row
            less, _ = additive_terms.make_terms(data.take(rest, data.weights[rest]), kinds)
            scores = additive_terms.row_features(less, data.codes[[row]], data.values[[row]]).scores(weights)[0]
            own = int(data.target[row])
            np.testing.assert_allclose(contrasts.scores(theta)[row, 0], scores[1 - own] - scores[own], atol=1e-10)
    finally:
        additive_terms.averages.class_shares = keep_shares
        additive_terms.standardisation, additive_terms.level_scale = keep_scale, keep_levels


def test_dependence_inside_a_class_is_seen_by_the_gaussian_terms():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    shared, own = rng.normal(size=(600, 1)), rng.normal(size=(600, 6))
    X = np.where(y[:, None] == 1, (own + shared) / np.sqrt(2), own)  # equal margins, one class correlated
    X[::50, 0] = np.nan
    gaussian = AdditiveBayesClassifier(terms=("single", "gaussian")).fit(X[:300], y[:300])
    singles = AdditiveBayesClassifier(terms=["single"]).fit(X[:300], y[:300])
    assert gaussian.score(X[300:], y[300:]) > 0.7 > 0.6 > singles.score(X[300:], y[300:])


def test_the_network_over_bins_is_the_model():
    X, y = mixed(gaps=0.0)
    model = AdditiveBayesClassifier(terms=("single", "pair")).fit(X[["a", "kind"]], y)
    network = model.model_
    from pgmpy.inference import VariableElimination

    codes = model._encode(X[:3]).codes
    states = dict(zip(model.schema_.names, model.schema_.states))
    for row in range(3):
        evidence = {name: states[name][codes[row, j]] for j, name in enumerate(states)}
        found = VariableElimination(network).query(["class"], evidence=evidence, show_progress=False)
        found.normalize()
        np.testing.assert_allclose(found.values, model.predict_proba(X[:3])[row], atol=1e-9)
    without = AdditiveBayesClassifier().fit(X[["a", "kind"]], y)
    with pytest.raises(AttributeError, match=r"fit with terms=\('single', 'pair'\)"):
        _ = without.model_


def test_what_a_fit_does_not_have_is_an_attribute_error(fitted):
    """Tab completion and hasattr ask for every name."""
    _, _, model = fitted
    found = {name for name in dir(model) if hasattr(model, name)}
    assert {"term_weights_", "pairs_", "cut_posterior_"} <= found
    assert not found & {"model_", "region_graph_", "tests_", "initial_regions_"}
    assert all(hasattr(KikuchiBayesClassifier(), name) for name in ("level", "region_loss"))
    for name in ("numeric", "terms", "level", "preset"):
        with pytest.raises(TypeError):
            (KikuchiBayesClassifier if name in ("numeric", "terms") else AdditiveBayesClassifier)(**{name: None})


def test_the_model_is_the_same_on_tables_of_any_size(monkeypatch):
    """Wide tables have terms of the columns that say most, long ones those of a sample, with a warning."""
    X, y = mixed(400, gaps=0.0)
    rng = np.random.default_rng(3)
    wide = X.assign(**{f"noise{k}": rng.normal(size=400) for k in range(12)})
    monkeypatch.setattr(additive_terms, "MOST_COLUMNS", 6)
    monkeypatch.setattr(additive_terms, "WIDE", 6)
    narrow = AdditiveBayesClassifier().fit(wide, y)
    fresh, truth = mixed(300, seed=1, gaps=0.0)
    fresh = fresh.assign(**{f"noise{k}": 0.0 for k in range(12)})
    columns = set(narrow.term_curves()["column"])
    assert 2 <= len(columns) <= 6 and "c" in columns and set(narrow.cut_posterior_) == columns - {"kind", "few"}
    assert narrow.feature_importances_.shape == (17,) and (narrow.feature_importances_ > 0).sum() <= 6
    np.testing.assert_allclose(narrow.explain(fresh.iloc[0]).sum(), narrow.log_scores(fresh[:1])[0], atol=1e-10)
    monkeypatch.undo()
    monkeypatch.setattr(fitting, "_MOST_NUMBERS", 60_000)
    with pytest.warns(UserWarning, match=r"terms and weights are those of \d+ of the 400 different rows"):
        few = AdditiveBayesClassifier().fit(X, y)
    assert few.score(fresh, truth) > 0.7


def test_arrays_files_and_rows(fitted, tmp_path):
    X, y, model = fitted
    pgm_bma.save(model, tmp_path / "model.pgm")
    loaded = pgm_bma.load(tmp_path / "model.pgm")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    numbers = X[["a", "b", "c"]].to_numpy()
    plain = AdditiveBayesClassifier(n_bags=2).fit(numbers, y)
    assert not hasattr(plain, "feature_names_in_") and plain.numeric_columns_ == ["x0", "x1", "x2"]
    named = AdditiveBayesClassifier(n_bags=2).fit(X[["a", "b", "c"]], y)
    np.testing.assert_allclose(plain.predict_proba(numbers), named.predict_proba(X), atol=1e-12)
    whole = AdditiveBayesClassifier(n_bags=2).fit(X.assign(outcome=y), "outcome")
    assert whole.target_name_ == "outcome"
    np.testing.assert_allclose(whole.predict_proba(X.iloc[3]), model.predict_proba(X.iloc[[3]]), atol=1e-9)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"terms": ["pair"]}, "lacks 'single'"),
        ({"terms": ["single", "cubic"]}, "terms holds 'cubic', which is not one of"),
        ({"terms": "single"}, "must be a sequence"),
        ({"numeric_columns": ["nope"]}, "names 'nope'"),
    ],
)
def test_errors_name_the_parameter(parameters, message):
    X, y = mixed(60)
    with pytest.raises(ValueError, match=message):
        AdditiveBayesClassifier(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="column 'a' holds an infinite value"):
        AdditiveBayesClassifier().fit(X.assign(a=np.inf), y)
    with pytest.raises(ValueError, match=r"column 'a' holds .*e\+\d*, beyond 1e\+100.*divide the column"):
        AdditiveBayesClassifier().fit(X.assign(a=1e200 * X["a"]), y)


def test_pipelines_and_a_grid_over_terms():
    rng = np.random.default_rng(2)
    X = pd.DataFrame({"a": rng.normal(size=120), "b": rng.normal(size=120), "kind": rng.choice(["p", "q"], 120)})
    y = np.where(X["a"] + X["b"] + (X["kind"] == "p") > 0.5, "high", "low")
    scaled = make_column_transformer(
        (StandardScaler(), ["a", "b"]), remainder="passthrough", verbose_feature_names_out=False
    )
    pipeline = Pipeline(
        [("scaled", scaled.set_output(transform="pandas")), ("additive", AdditiveBayesClassifier(n_bags=1))]
    )
    grid = {"additive__terms": [("single",), ("single", "linear")]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss", error_score="raise").fit(X, y)
    assert search.best_estimator_.named_steps["additive"].numeric_columns_ == ["a", "b"]
    assert search.best_params_["additive__terms"] == ("single", "linear") and search.score(X, y) > -0.2


def test_whole_numbers_in_categorical_columns_are_names():
    """No slope: the answer is that of other names for the states, and not that of the numbers."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 200)
    X = pd.DataFrame({"a": np.clip(2 * y + rng.integers(0, 4, 200), 0, 5), "b": rng.integers(0, 3, 200)})

    def proba(frame):
        return AdditiveBayesClassifier(random_state=0).fit(frame, y).predict_proba(frame)

    as_names = proba(X.map("s{}".format))
    np.testing.assert_allclose(
        AdditiveBayesClassifier(random_state=0, categorical_columns=np.array(["a", "b"])).fit(X, y).predict_proba(X),
        as_names,
        atol=1e-9,  # only the order of additions may differ
    )
    assert np.abs(proba(X) - as_names).max() > 1e-3


def test_a_number_that_names_the_rows_is_no_silent_evidence():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"patient_id": np.arange(5000, 5080), "dose": rng.normal(size=80)})
    y = rng.choice(["no", "yes"], 80)
    with pytest.warns(UserWarning, match=r"'patient_id' names the rows .* numeric_columns=\['patient_id'\]"):
        AdditiveBayesClassifier(terms=("single",), n_bags=1).fit(X, y)
    AdditiveBayesClassifier(terms=("single",), n_bags=1, numeric_columns=np.array(["patient_id"])).fit(X, y)
    AdditiveBayesClassifier(terms=("single",), n_bags=1).fit(X.to_numpy(), y)
