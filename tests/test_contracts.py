"""What every public estimator obeys. A new estimator joins by a line in CLASSIFIERS or CLUSTERERS."""

import datetime
import hashlib
import json
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import pgm_bma
from pgm_bma.foundation.numbers.families import log_probabilities, most_probable
from pgm_bma.testing import check_estimator, checks, with_missing
from pgm_bma.testing import small_table as frame

# name of the public class -> parameters that keep it small and deterministic
CLASSIFIERS = {
    "NaiveBayesClassifier": {},
    "AveragedNaiveBayesClassifier": {},
    "TANClassifier": {},
    "ForestAveragedClassifier": {},
    "AdditiveBayesClassifier": {"n_bags": 2},
    "KikuchiBayesClassifier": {"random_state": 0},
    "FixedOrderClassifier": {"random_state": 0},
    "OrderAveragedClassifier": {
        "sampler": pgm_bma.GibbsSampler(tol=0.1, max_sweeps=1024, n_orders=5),
        "random_state": 0,
    },
}
CLUSTERERS = {
    "LatentClassClusterer": {"n_init": 4, "random_state": 0},
    "EMAClusterer": {"n_init": 4, "random_state": 0},
    "StructuralEMClusterer": {"n_init": 2, "random_state": 0},
    "ForestAveragedClusterer": {"n_init": 2, "random_state": 0},
}
# estimators whose result depends on a seed
SEEDED = {*CLUSTERERS, "KikuchiBayesClassifier", "OrderAveragedClassifier"}
# one more column, even a constant one, changes the average: it enters the prior of structures, or the hash that deals the folds
COLUMNS_COUNT = {"FixedOrderClassifier", "AdditiveBayesClassifier"}
# Markov networks: they leave the terms of a missing cell out instead of summing over it
UNDIRECTED = {"KikuchiBayesClassifier", "AdditiveBayesClassifier"}

ALL = {**CLASSIFIERS, **CLUSTERERS}
classifiers = pytest.mark.parametrize("name", CLASSIFIERS)
estimators = pytest.mark.parametrize("name", ALL)
clusterers = pytest.mark.parametrize("name", CLUSTERERS)


def build(name, **parameters):
    return getattr(pgm_bma, name)(**{**ALL[name], **parameters})


# what a fit needs to be one network exactly
NETWORK = {"AdditiveBayesClassifier": {"terms": ("single", "pair", "linear", "state", "gaussian", "cell", "tree")}}


def fitted(name, X=None, y=None, **keywords):
    if X is None:
        X, y = frame()
    return build(name).fit(X, y if name in CLASSIFIERS else None, **keywords)


@pytest.mark.parametrize(
    "name, check",
    [pytest.param(name, check, id=f"{name}-{what}") for name in ALL for what, check in checks(build(name))],
)
def test_checks_that_outside_estimators_can_run(name, check):
    check(build(name))


def test_a_check_that_fails_names_itself():
    class Forgetful(pgm_bma.NaiveBayesClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X)[:, :1]

    with pytest.raises(AssertionError, match="Forgetful fails check 'missing_values'"):
        check_estimator(Forgetful())
    with pytest.raises(ValueError, match="names no check"):
        check_estimator(Forgetful(), skip=["nothing_like_it"])


# ------------------------------------------------------------------------------------------------ before and after fit


@pytest.mark.filterwarnings("ignore:the best start did not converge")  # 1e9 rows make every step count
@estimators
def test_more_rows_than_scores_can_tell_apart_are_refused(name):
    """Weights of 1e300 gave a LinAlgError, an error about cycles, and in forests half and half without a word."""
    X, y = frame()
    for weight in (1e300, 1e307, 1e11):
        with pytest.raises(
            ValueError, match=r"sample_weight adds up to .* rows, more than 1e\+11, .* divide the weights"
        ):
            fitted(name, X, y, sample_weight=np.full(len(X), weight))
    heavy = fitted(name, X, y, sample_weight=np.full(len(X), 1e9 / len(X)))
    assert np.isfinite(heavy.predict_proba(X)).all()


@estimators
def test_what_a_fit_learns_is_not_there_before_it(name):
    learned = {n for n in dir(fitted(name)) if n.endswith("_") and not n.startswith("_")} - {"model_is_exact_"}
    assert {"model_", "schema_", "n_features_in_"} <= learned
    for attribute in sorted(learned):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(build(name), attribute)


@estimators
def test_parameters_are_checked_in_fit(name):
    X, y = frame()
    for parameter, value in (
        ("handle_unknown", "guess"),
        ("state_names", ["text"]),
        ("cluster_name", None),
        ("cluster_name", ""),
        ("target_name", []),
        ("alpha", np.inf),
        ("equivalent_sample_size", np.inf),
    ):
        if parameter in build(name).get_params():
            with pytest.raises(ValueError, match=f"{parameter}="):
                build(name, **{parameter: value}).fit(X, y)
    with pytest.raises(ValueError, match="Series is one row"):
        build(name).fit(X["text"], y)


# ------------------------------------------------------------------------------------------------ reading tables


@estimators
def test_strings_categories_and_polars_give_equal_results(name):
    polars = pytest.importorskip("polars")
    X, y = frame()
    X = X.drop(columns="level")
    expected = fitted(name, X, y).predict_proba(X)
    as_object = X.astype(object)
    as_polars = polars.DataFrame({column: X[column].tolist() for column in X})
    as_arrow = as_polars.to_arrow()
    for table in (as_object, X.astype("category"), as_polars, as_arrow):
        np.testing.assert_array_equal(fitted(name, table, y).predict_proba(table), expected)


@estimators
def test_one_row_as_dict_series_or_frame(name):
    X, _ = frame()
    estimator = fitted(name)
    expected = estimator.predict_proba(X.iloc[[3]])
    np.testing.assert_array_equal(estimator.predict_proba(X.iloc[3]), expected)
    np.testing.assert_array_equal(estimator.predict_proba(X.iloc[3].to_dict()), expected)


@estimators
def test_unseen_values_and_missing_columns_are_named(name):
    X, _ = frame()
    estimator = fitted(name)
    odd = X.head(3).assign(text=["no", "maybe", "never"], count=[0, 0, 99])
    expected = estimator.predict_proba(odd.assign(text=["no", None, None], count=pd.array([0, 0, None], dtype="Int64")))
    with pytest.warns(UserWarning, match="unseen in fit") as caught:  # missing by default
        np.testing.assert_array_equal(estimator.predict_proba(odd), expected)
    (message,) = [str(warning.message) for warning in caught if "unseen" in str(warning.message)]
    assert "2 columns hold values unseen in fit: 'text' (2, such as" in message and "'count' (1, such as" in message
    silent = fitted(name).set_params(handle_unknown="ignore")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(silent.predict_proba(odd), expected)
    with pytest.raises(ValueError, match=r"column 'text' holds 'maybe', unseen in fit.*handle_unknown='missing'"):
        fitted(name).set_params(handle_unknown="error").predict(odd)
    with pytest.raises(ValueError, match="lacks column 'flag'"):
        estimator.predict(X.drop(columns="flag"))
    numbered = X.set_axis([f"x{i}" for i in range(4)], axis=1)  # names that look like those of an array
    with pytest.raises(ValueError, match="lacks column 'x3'"):
        fitted(name, numbered, frame()[1]).predict(numbered.rename(columns={"x3": "other"}))


@pytest.mark.filterwarnings("ignore:2 columns hold values unseen in fit")  # has its own test
@estimators
def test_columns_without_information_change_nothing(name):
    """A constant and an empty column stay in the schema, are warned of once and leave the probabilities as they are."""
    X, y = frame()
    y = y if name in CLASSIFIERS else None
    idle = X.assign(empty=[None] * len(X), same="x")
    plain = build(name).fit(X, y).predict_proba(X)
    with pytest.warns(UserWarning) as caught:
        estimator = build(name).fit(idle, y)
    messages = [str(warning.message) for warning in caught]
    told = "column 'same' holds one value only and column 'empty' holds no value in these rows"
    assert sum(message.startswith(told) for message in messages) == 1
    assert estimator.schema_.names[-2:] == ("empty", "same")
    assert estimator.model_.check_model()
    for rows in (idle, X.assign(empty="new", same="other"), X.assign(empty=None, same=None)):
        proba = estimator.predict_proba(rows)
        if name in SEEDED | COLUMNS_COUNT:  # more columns, other random numbers or another prior
            np.testing.assert_allclose(proba, estimator.predict_proba(idle), atol=1e-9)
        else:
            np.testing.assert_allclose(proba, plain, atol=1e-9)  # rounding


@estimators
def test_bad_tables_get_a_clear_error(name):
    X, y = frame(60)
    rng = np.random.default_rng(0)
    cases = (
        []
        if name in CLASSIFIERS or "numeric_columns" in build(name).get_params()
        else [(X.assign(count=rng.random(60)), r"column 'count' holds 60 different float values; discretise")]
    )
    cases += [
        (X.assign(count=[np.inf] + [1.0] * 59), r"column 'count' holds an infinite value"),
        (X.set_axis(["a", "b", "b", "d"], axis=1), r"column name 'b' occurs twice"),
        (X.iloc[:0], r"0 sample\(s\)"),
        (X[[]], r"no columns"),
    ]
    for table, message in cases:
        with pytest.raises(ValueError, match=message):
            build(name).fit(table, y.iloc[: len(table)] if name in CLASSIFIERS else None)


@pytest.mark.filterwarnings("ignore:column 'flag' holds one value only")  # after the cut
@classifiers
def test_numbers_are_cut_inside_the_fit(name, tmp_path):
    """Numbers that are not whole are no states: they are cut by the class, with a warning that names columns and discretiser."""
    X, y = frame(60)
    numbers = X.assign(count=np.where(y == "good", 1.0, 0.0) + np.linspace(0, 1.2, 60), flag=np.linspace(0.1, 0.9, 60))
    if name == "AdditiveBayesClassifier":  # averages over all cuts instead
        estimator = build(name).fit(numbers, y)
    else:
        with pytest.warns(UserWarning, match="numbers of columns 'count', 'flag' were cut.*MDLDiscretizer"):
            estimator = build(name).fit(numbers, y)
        cut = pgm_bma.MDLDiscretizer().fit(numbers[["count", "flag"]], y).transform(numbers[["count", "flag"]])
        by_hand = build(name).fit(numbers.assign(count=np.asarray(cut)[:, 0], flag=np.asarray(cut)[:, 1]), y)
        seen = numbers.assign(count=np.asarray(cut)[:, 0], flag=np.asarray(cut)[:, 1])
        np.testing.assert_allclose(estimator.predict_proba(numbers), by_hand.predict_proba(seen), atol=1e-12)
    expected = estimator.predict_proba(numbers)
    assert estimator.score(numbers, y) > 0.6
    estimator.save(tmp_path / "cut.pgm")
    np.testing.assert_array_equal(pgm_bma.load(tmp_path / "cut.pgm").predict_proba(numbers), expected)
    evidence = estimator.explain(numbers.iloc[3])
    assert "count" in evidence.index
    # a declared column keeps its numbers as states
    few = numbers.assign(flag=np.arange(60) % 30 / 4)
    declared = build(name, state_names={"flag": (np.arange(30) / 4).tolist()}).fit(few.drop(columns="count"), y)
    assert len(dict(zip(declared.schema_.names, declared.schema_.states))["flag"]) == 30


@estimators
def test_declared_states_are_kept_in_order(name):
    X, y = frame()
    declared = {"text": ["yes", "no", "never"], "count": [2, 1, 0, 7]}
    estimator = build(name, state_names=declared).fit(X, y if name in CLASSIFIERS else None)
    assert list(estimator.schema_.states[0]) == declared["text"]
    assert list(estimator.schema_.states[2]) == declared["count"]
    assert list(estimator.schema_.states[1]) == ["low", "mid", "high"]  # unused category kept
    assert np.isfinite(estimator.predict_proba({**X.iloc[0], "text": "never", "count": 7})).all()


@classifiers
def test_target_contract(name):
    X, y = frame()
    by_name = build(name).fit(X.assign(outcome=y), y="outcome")
    np.testing.assert_array_equal(by_name.predict_proba(X), fitted(name).predict_proba(X))
    assert by_name.target_name_ == "outcome"
    assert build(name).fit(X, y.to_numpy()).target_name_ == "class"
    with pytest.raises(ValueError, match="target_name="):
        build(name).fit(X, y.rename("text"))
    with pytest.raises(ValueError, match="'outcome' has 2 missing"):
        build(name).fit(X, y.where(np.arange(len(y)) > 1))
    with pytest.raises(ValueError, match="one class"):
        build(name).fit(X, ["same"] * len(X))
    declared = build(name, state_names={"outcome": ["good", "bad", "ugly"]}).fit(X, y)
    assert declared.classes_.tolist() == ["bad", "good", "ugly"]  # sorted, as scikit-learn has it
    assert declared.predict_proba(X).shape == (len(X), 3)


@classifiers
def test_targets_in_many_forms(name):
    polars = pytest.importorskip("polars")
    X, y = frame(40)
    weights = np.arange(40) % 3
    ordered = pd.Categorical(y, categories=["good", "bad", "ugly"])
    for given, node, classes in (
        (list(y), "class", ["bad", "good"]),
        (ordered, "class", ["bad", "good", "ugly"]),
        (pd.Index(y), "outcome", ["bad", "good"]),
        (y.set_axis(range(100, 140)).rename(0), 0, ["bad", "good"]),
        (pd.DataFrame({"only": y}), "only", ["bad", "good"]),
        (polars.Series("p", list(y)), "p", ["bad", "good"]),
        (polars.Series(list(y)), "class", ["bad", "good"]),
    ):
        estimator = build(name).fit(X, given, sample_weight=weights)
        assert estimator.target_name_ == node and estimator.classes_.tolist() == classes
        assert estimator.score(X, given) == np.mean(estimator.predict(X) == y)
    with pytest.raises(ValueError, match="inconsistent lengths: 40 rows and 3 targets"):
        build(name).fit(X, ["a", "b", "a"], sample_weight=weights)


@classifiers
def test_accuracy_of_classes_of_any_type(name):
    X, y = frame(60)
    for classes in ([1, "a"], [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], [(0, 1), (1, 1)]):
        labels = [classes[value == "good"] for value in y]
        estimator = build(name).fit(X, labels)
        hits = [a == b for a, b in zip(estimator.predict(X).tolist(), labels)]
        assert estimator.score(X, labels) == np.mean(hits)
        weights = np.arange(60.0)
        assert estimator.score(X, labels, weights) == pytest.approx(np.average(hits, weights=weights), abs=1e-12)
    numbered = X.set_axis([0, 1, 2, 3], axis=1).assign(**{"4": y}).rename(columns={"4": 4})
    tuples = pd.concat({"made": X, "seen": y.to_frame()}, axis=1)  # columns ("made", "text"), ...
    for table, column in ((numbered, 4), (tuples, ("seen", "outcome"))):
        by_name = build(name).fit(table, y=column)
        assert by_name.target_name_ == column
        assert by_name.score(table, column) == np.mean(by_name.predict(table) == y)
    with pytest.raises(ValueError, match="X has no rows"):
        by_name.score(tuples.iloc[:0], ("seen", "outcome"))


@classifiers
def test_no_rows_with_everything_declared_is_the_prior(name):
    X, y = frame()
    states = {"text": ["no", "yes"], "level": ["low", "mid"], "count": [0, 1, 2], "flag": [False, True]}
    prior = build(name, state_names={**states, "outcome": ["bad", "good"]}).fit(X.iloc[:0], y.iloc[:0])
    np.testing.assert_allclose(prior.predict_proba(X), 0.5, atol=1e-12)  # symmetric prior, rounding of a few terms
    with pytest.raises(ValueError, match="'outcome' has no rows; declare"):
        build(name, state_names=states).fit(X.iloc[:0], y.iloc[:0])


# ------------------------------------------------------------------------------------------------ weights and seeds


@estimators
def test_bad_weights(name):
    X, y = frame(10)
    for bad, message in (([-1] + [1] * 9, "negative"), ([np.nan] + [1] * 9, "NaN"), ([0] * 10, "zero for every row")):
        with pytest.raises(ValueError, match=message):
            fitted(name, X, y, sample_weight=bad)


@estimators
def test_a_row_of_weight_zero_is_absent(name):
    X, y = frame(30)
    X.loc[0, "text"] = "odd"
    weights = np.ones(30)
    weights[0] = 0
    estimator = fitted(name, X, y, sample_weight=weights)
    assert estimator.schema_.states[0] == ("no", "yes")


FRESH = """
import json, sys
sys.path.insert(0, {root!r})
from tests.test_contracts import ALL, fingerprint
print(json.dumps({{name: fingerprint(name) for name in ALL}}))
"""


def fingerprint(name):
    return hashlib.sha256(fitted(name).predict_proba(frame()[0]).tobytes()).hexdigest()


@pytest.fixture(scope="module")
def fingerprints_elsewhere(request):
    """What a fresh interpreter with another PYTHONHASHSEED finds: one run for all estimators."""
    code = FRESH.format(root=str(request.config.rootpath))
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    return json.loads(there.stdout.splitlines()[-1])


@estimators
def test_equal_in_a_fresh_interpreter_with_another_hash_seed(name, fingerprints_elsewhere):
    assert fingerprints_elsewhere[name] == fingerprint(name)


@estimators
def test_n_jobs_does_not_change_the_result(name):
    if "n_jobs" not in build(name).get_params():
        pytest.skip("has no n_jobs")
    X, y = frame()
    y = y if name in CLASSIFIERS else None
    one = build(name, n_jobs=1).fit(X, y).predict_proba(X)
    two = build(name, n_jobs=2).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(one, two)


# ------------------------------------------------------------------------------------------------ results


@estimators
def test_the_network_is_not_pickled(name):
    estimator = fitted(name)
    before = len(pickle.dumps(estimator))
    _ = estimator.model_
    assert len(pickle.dumps(estimator)) == before


@pytest.mark.filterwarnings("ignore:43 of 80 rows have missing values")  # asked for: missing="drop"
@estimators
def test_predict_proba_equals_variable_elimination(name):
    from pgmpy.inference import VariableElimination

    X, y = frame()
    given = {"missing": "drop"} if name == "FixedOrderClassifier" else {}  # else it averages over completed tables
    estimator = build(name, **NETWORK.get(name, {}), **given).fit(with_missing(X), y if name in CLASSIFIERS else None)
    if not estimator.model_is_exact_:
        pytest.skip("model_ is not the fitted distribution itself")
    target = estimator.target_name_ if name in CLASSIFIERS else estimator.cluster_name
    rows = (X if name in UNDIRECTED else with_missing(X, seed=9)).head(6)
    engine = VariableElimination(estimator.model_)
    for (_, row), proba in zip(rows.iterrows(), estimator.predict_proba(rows)):
        evidence = {column: value for column, value in row.items() if not pd.isna(value)}
        factor = engine.query([target], evidence=evidence, show_progress=False)
        states = list(estimator.target_states_ if name in CLASSIFIERS else range(estimator.n_clusters_))
        values = np.array([factor.get_value(**{target: state}) for state in states])
        np.testing.assert_allclose(proba, values / values.sum(), atol=1e-9)  # the contract's own tolerance


@classifiers
def test_log_proba_argmax_and_explain_agree(name):
    X, _ = frame()
    estimator = fitted(name)
    proba = estimator.predict_proba(X)
    np.testing.assert_allclose(np.exp(estimator.predict_log_proba(X)), proba, atol=1e-15)
    np.testing.assert_array_equal(estimator.predict(X), estimator.classes_[proba.argmax(axis=1)])
    evidence = estimator.explain(X.iloc[0])
    assert list(evidence.columns) == list(estimator.classes_)
    weights = np.exp(evidence.sum() - evidence.sum().max())
    np.testing.assert_allclose(weights / weights.sum(), proba[0], atol=1e-9)


def test_probabilities_that_round_to_a_tie_go_to_the_first():
    almost = np.array([[0.0, 1e-17], [-5.0, np.nextafter(-5.0, 0)], [np.log(0.4), np.log(0.6)]])
    chosen = most_probable(almost)
    np.testing.assert_array_equal(chosen, np.exp(log_probabilities(almost)).argmax(axis=1))
    assert chosen[0] == 0 and chosen[2] == 1


@estimators
def test_repr_and_graph(name):
    estimator = fitted(name)
    assert name in repr(build(name)) and "fitted on 80 rows x 4 columns" in repr(estimator)
    graph = estimator.to_networkx()
    assert {"text", "level", "count", "flag"} <= set(graph.nodes)


@clusterers
def test_clusterer_contract(name):
    X, _ = frame(120)
    estimator = fitted(name, X)
    proba = estimator.predict_proba(X)
    assert estimator.labels_.dtype == np.int64 and len(estimator.labels_) == len(X)
    assert proba.shape == (len(X), estimator.n_clusters_)
    np.testing.assert_array_equal(estimator.predict(X), proba.argmax(axis=1))
    np.testing.assert_array_equal(estimator.labels_, estimator.predict(X))
    np.testing.assert_array_equal(estimator.transform(X), proba)
    np.testing.assert_allclose(estimator.score(X), estimator.score_samples(X).mean(), rtol=1e-12)
    with pytest.raises(ValueError, match="n_samples=-1"):
        estimator.sample(-1)
    with pytest.raises(NotFittedError):
        build(name).sample(2)
    rows, labels = estimator.sample(7, random_state=0)
    assert list(rows.columns) == list(X.columns) and len(rows) == len(labels) == 7
    frame_out = estimator.set_output(transform="pandas").transform(X)
    assert list(frame_out.columns) == [f"cluster{k}" for k in range(estimator.n_clusters_)]
