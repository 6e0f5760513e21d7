"""Discretisers: published cut points, slow references, what a pipeline needs, names that BIF allows."""

import datetime
import pickle
import re
import time

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.estimator_checks import check_estimator

from pgm_bma import FrequencyDiscretizer, MDLDiscretizer, NaiveBayesClassifier, WidthDiscretizer, load, save
from pgm_bma.foundation.tables.cut_points import bin_labels, frequency_cut_points, mdl_cut_points, width_cut_points
from tests.oracles import discretize as oracle

DISCRETIZERS = [MDLDiscretizer(), FrequencyDiscretizer(n_bins=4), WidthDiscretizer(n_bins=4)]
SAFE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
# Fayyad and Irani's cut points of iris (sepal length, sepal width, petal length, petal width)
IRIS_CUTS = [[5.55, 6.15], [2.95, 3.35], [2.45, 4.75], [0.8, 1.75]]


BY_NAME = {"check_dataframe_column_names_consistency": "columns are matched by name, in any order, extra ones ignored"}


def sample(seed, n=60, levels=15, n_classes=3):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, n) / 4
    y = np.where(
        rng.random(n) < 0.7,
        np.minimum((x * 4 * n_classes / levels).astype(int), n_classes - 1),
        rng.integers(n_classes, size=n),
    )
    x[rng.random(n) < 0.05] = np.nan
    return x, y


# cut points


def test_mdl_cut_points_of_iris_are_the_known_ones():
    iris = load_iris(as_frame=True)
    found = MDLDiscretizer().fit(iris.data, iris.target).cut_points_
    assert list(found) == list(iris.data.columns)
    for cuts, expected in zip(found.values(), IRIS_CUTS):
        np.testing.assert_allclose(cuts, expected, atol=1e-9)  # midpoints of decimals: rounding only
    toy = MDLDiscretizer().fit(np.arange(1, 11)[:, None], [0] * 5 + [1] * 5)
    assert toy.cut_points_["x0"].tolist() == [5.5]


@pytest.mark.parametrize("seed", range(25))
def test_mdl_equals_the_slow_reference(seed):
    x, y = sample(seed, n=40 + 10 * seed, levels=5 + seed, n_classes=2 + seed % 4)
    assert mdl_cut_points(x, y).tolist() == oracle.mdl_cuts(x, y)


def test_the_random_cases_of_the_mdl_test_do_have_cuts():
    counts = [len(mdl_cut_points(*sample(s, n=40 + 10 * s, levels=5 + s, n_classes=2 + s % 4))) for s in range(25)]
    assert max(counts) >= 3 and min(counts) <= 1


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 8), min_size=1, max_size=25), st.integers(1, 7))
def test_frequency_and_width_equal_the_slow_reference(values, n_bins):
    assert frequency_cut_points(values, n_bins).tolist() == oracle.frequency_cuts(values, n_bins)
    np.testing.assert_allclose(width_cut_points(values, n_bins), oracle.width_cuts(values, n_bins), atol=1e-12)


@pytest.mark.parametrize("discretizer", DISCRETIZERS, ids=lambda d: type(d).__name__)
def test_weights_are_repetition_and_weight_zero_is_absence(discretizer):
    x, y = sample(3, n=80)
    weights = np.random.default_rng(0).integers(0, 4, 80)
    weights[np.argsort(x)[:5]] = 0  # the smallest values are absent
    weighted = clone(discretizer).fit(x[:, None], y, sample_weight=weights)
    repeated = clone(discretizer).fit(np.repeat(x, weights)[:, None], np.repeat(y, weights))
    assert weighted.cut_points_["x0"].tolist() == repeated.cut_points_["x0"].tolist()
    assert weighted.bin_labels_ == repeated.bin_labels_


@pytest.mark.parametrize("discretizer", DISCRETIZERS, ids=lambda d: type(d).__name__)
def test_constant_tied_missing_and_huge_columns(discretizer, tmp_path):
    frame = pd.DataFrame(
        {
            "constant": [3.0] * 6,
            "missing": [np.nan] * 6,
            "ties": [0, 0, 0, 0, 0, 9],
            "huge": [-1.7e308, -1.6e308, -1.5e308, 1.5e308, 1.6e308, 1.7e308],
            "close": [1.0, 1.0, 1.0, *[np.nextafter(1.0, 2)] * 3],
        }
    )
    y = [0, 0, 0, 1, 1, 1]
    found = clone(discretizer).fit(frame, y)
    for name in ("constant", "missing"):
        assert len(found.cut_points_[name]) == 0 and found.bin_labels_[name] == ["all_values"]
    out = found.transform(frame)
    assert out["missing"].isna().all() and out["constant"].tolist() == ["all_values"] * 6
    assert np.isfinite(found.cut_points_["huge"]).all()
    halves = out["huge"].astype(str)
    assert set(halves[:3]).isdisjoint(halves[3:])
    assert out["close"].iloc[0] != out["close"].iloc[5]  # neighbouring floats are still told apart
    for name in frame:
        assert (np.diff(found.cut_points_[name]) > 0).all()
    save(found, tmp_path / "bins.pgm")
    pd.testing.assert_frame_equal(load(tmp_path / "bins.pgm").transform(frame), out)


def test_a_classifier_of_huge_numbers_is_loaded_again(tmp_path):
    y = np.arange(40) % 2
    X = pd.DataFrame({"a": (2 * y - 1) * np.linspace(1e307, 1.7e308, 40)})
    with pytest.warns(UserWarning, match="were cut into intervals"):
        fitted = NaiveBayesClassifier().fit(X, y)
    save(fitted, tmp_path / "model.pgm")
    found = load(tmp_path / "model.pgm").predict_proba(X)
    np.testing.assert_array_equal(found, fitted.predict_proba(X))
    assert found[y == 1, 1].min() > 0.9


# labels


@settings(max_examples=300, deadline=None)
@given(st.sets(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
def test_labels_are_unique_and_legal_in_bif(cuts):
    labels = bin_labels(sorted({c + 0.0 for c in cuts}))  # -0.0 and 0.0 are one cut
    assert len({label.lower() for label in labels}) == len({c + 0.0 for c in cuts}) + 1
    assert all(SAFE.fullmatch(label) for label in labels)


@pytest.mark.parametrize(
    "cuts, low, high, expected",
    [
        ([2.45, 4.75], 1.0, 6.9, ["lt_2_45", "from_2_45_to_4_75", "ge_4_75"]),
        ([1000.15], 1000.1, 1000.2, ["lt_1000_15", "ge_1000_15"]),  # enough digits for a narrow range
        ([0.123456789, 12.3456789], -50, 100, ["lt_0_1", "from_0_1_to_12_3", "ge_12_3"]),
        ([-2.0, 0.0], -9, 9, ["lt_neg2", "from_neg2_to_0", "ge_0"]),
        ([1.5e-7, 1.5e20], 0, 1e21, ["lt_1_5eneg7", "from_1_5eneg7_to_1_5e20", "ge_1_5e20"]),
        ([250000.0], 0, 1e6, ["lt_250000", "ge_250000"]),
    ],
)
def test_labels_read_well(cuts, low, high, expected):
    assert bin_labels(cuts, low, high) == expected


# faces


@pytest.mark.parametrize("estimator", DISCRETIZERS, ids=lambda d: type(d).__name__)
@pytest.mark.filterwarnings("ignore:Skipping check check_array_api_input")
def test_check_estimator_ordinal_passes_everything(estimator):
    check_estimator(clone(estimator).set_params(encode="ordinal"), expected_failed_checks=BY_NAME)


@pytest.mark.parametrize("estimator", DISCRETIZERS, ids=lambda d: type(d).__name__)
def test_check_estimator_label_fails_only_where_outputs_are_subtracted(estimator):
    """Scikit-learn's checks compare outputs by their difference, which strings do not have; nothing else may fail."""
    results = check_estimator(clone(estimator), expected_failed_checks=BY_NAME, on_fail=None, on_skip=None)
    failed = [result for result in results if result["status"] == "failed"]
    assert failed
    for result in failed:
        assert isinstance(result["exception"], TypeError), result
        assert "unsupported operand type(s) for -: 'str' and 'str'" in str(result["exception"]), result


@pytest.mark.parametrize("discretizer", DISCRETIZERS, ids=lambda d: type(d).__name__)
def test_frame_gives_categoricals_that_declare_every_bin(discretizer):
    x, y = sample(1)
    frame = pd.DataFrame(
        {
            "x": x,
            "colour": pd.Series(list("rgb") * 20, dtype="category"),
            "flag": [True, False] * 30,
            "whole": pd.array([1, 2, None, 4, 5, 60] * 10, dtype="Int64"),
            "when": pd.date_range("2024-01-01", periods=60),
        },
        index=np.arange(60) + 7,
    )
    fitted = clone(discretizer).fit(frame, y)
    out = fitted.transform(frame)
    assert list(out.columns) == list(frame.columns) and out.index.equals(frame.index)
    assert list(fitted.cut_points_) == ["x", "whole"]
    for name in ("colour", "flag", "when"):
        pd.testing.assert_series_equal(out[name], frame[name])
    for name in ("x", "whole"):
        assert out[name].cat.ordered and out[name].cat.categories.tolist() == fitted.bin_labels_[name]
        assert len(fitted.bin_labels_[name]) == len(fitted.cut_points_[name]) + 1
        expected = [oracle.bin_of(v, fitted.cut_points_[name]) for v in frame[name].to_numpy(float, na_value=np.nan)]
        assert out[name].cat.codes.tolist() == [-1 if b is None else b for b in expected]
    one = fitted.transform(frame.iloc[[0]])
    assert one["x"].cat.categories.tolist() == fitted.bin_labels_["x"]  # no bin is lost in a single row
    assert fitted.get_feature_names_out().tolist() == list(frame.columns)


def test_values_on_a_cut_and_beyond_the_data():
    fitted = WidthDiscretizer(n_bins=2).fit(np.array([[0.0], [10.0]]))
    codes = fitted.set_params(encode="ordinal").transform(
        np.array([[5.0], [4.999], [-99.0], [np.inf], [-np.inf], [np.nan]])
    )
    np.testing.assert_array_equal(codes.ravel(), [1, 0, 0, 1, 0, np.nan])


def test_array_gives_labels_and_keeps_missing_cells_and_text():
    X = np.array([[1.0, "a"], [2.0, "b"], [None, "c"], [9.0, None]], dtype=object)
    out = FrequencyDiscretizer(n_bins=2).fit_transform(X)
    assert out.dtype == object and out[[0, 1, 3], 0].tolist() == ["lt_1_5", "ge_1_5", "ge_1_5"]
    assert pd.isna(out[2, 0]) and out[:, 1].tolist() == ["a", "b", "c", None]


def test_columns_restricts_and_names_errors():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 2.0, 3.0, 4.0], "c": list("wxyz")})
    out = FrequencyDiscretizer(n_bins=2, columns=["b"]).fit_transform(frame)
    pd.testing.assert_series_equal(out["a"], frame["a"])
    assert out["b"].tolist() == ["lt_2_5", "lt_2_5", "ge_2_5", "ge_2_5"]
    array = FrequencyDiscretizer(n_bins=2, columns=[1]).fit_transform(frame[["a", "b"]].to_numpy())
    assert array[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0] and array[0, 1] == "lt_2_5"
    with pytest.raises(ValueError, match="'nope', which X does not have"):
        FrequencyDiscretizer(columns=["nope"]).fit(frame)
    with pytest.raises(ValueError, match="column 'c' holds 'w', which is not a number"):
        FrequencyDiscretizer(columns=["c"]).fit(frame)


def test_clear_errors():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"requires y.*FrequencyDiscretizer"):
        MDLDiscretizer().fit(X)
    with pytest.raises(ValueError, match="y holds 1 missing"):
        MDLDiscretizer().fit(X, ["u", None, "v"])
    with pytest.raises(ValueError, match="y has 2 labels, X has 3 rows"):
        MDLDiscretizer().fit(X, ["u", "v"])
    with pytest.raises(ValueError, match="column 'a' holds infinite values"):
        WidthDiscretizer().fit(X.replace(3.0, np.inf))
    with pytest.raises(ValueError, match="n_bins=0"):
        WidthDiscretizer(n_bins=0).fit(X)
    for discretizer in (WidthDiscretizer(n_bins=10**7), FrequencyDiscretizer(n_bins=10**12)):  # hours, or all memory
        with pytest.raises(ValueError, match=r"n_bins=10+ must be an integer at least 1 and at most 1000"):
            discretizer.fit(X)
    with pytest.raises(ValueError, match="at least one"):
        WidthDiscretizer().fit(X, sample_weight=[0, 0, 0])
    with pytest.raises(ValueError, match="encode='onehot'"):
        WidthDiscretizer(encode="onehot").fit(X)
    with pytest.raises(ValueError, match="'a' occurs twice"):
        WidthDiscretizer().fit(pd.concat([X, X], axis=1))
    with pytest.raises(ValueError, match="column 'a' holds 'x', which is not a number"):
        WidthDiscretizer().fit(X).transform(pd.DataFrame({"a": ["x", "y"]}))


def test_classes_may_be_of_any_type():
    X, high = np.arange(40.0)[:, None], np.arange(40) > 20
    for classes in ([1, "a"], [datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)], [False, True]):
        y = np.array(classes, dtype=object)[high.astype(int)]
        np.testing.assert_array_equal(MDLDiscretizer().fit(X, y).cut_points_["x0"], [20.5])
    with pytest.raises(ValueError, match="continuous"):
        MDLDiscretizer().fit(X, np.arange(40) / 3)


def test_columns_are_matched_by_name():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [4.0, 9.0, 2.0, 1.0]})
    fitted = FrequencyDiscretizer(n_bins=2).fit(X)
    expected = fitted.transform(X)
    pd.testing.assert_frame_equal(fitted.transform(X[["b", "a"]].assign(extra="?")), expected)
    with pytest.raises(ValueError, match=r"lacks columns \['b'\]"):
        fitted.transform(X[["a"]])


def test_missing_only_at_prediction():
    fitted = WidthDiscretizer().fit(pd.DataFrame({"a": [1.0, 2.0, 3.0]}))
    assert fitted.transform(pd.DataFrame({"a": [None, None]}))["a"].isna().all()


@pytest.mark.parametrize("discretizer", DISCRETIZERS, ids=lambda d: type(d).__name__)
def test_in_a_pipeline(discretizer):
    iris = load_iris(as_frame=True)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=7)
    for X in (iris.data, iris.data.to_numpy()):
        pipeline = make_pipeline(clone(discretizer), encoder, CategoricalNB(min_categories=8))
        assert cross_val_score(pipeline, X, iris.target, cv=5).mean() > 0.8  # chance is 0.33, without bins 0.95
    mixed = make_column_transformer((clone(discretizer), [0, 1]), remainder="drop").set_output(transform="pandas")
    assert mixed.fit_transform(iris.data, iris.target).shape == (150, 2)


def test_set_output_keeps_the_categories():
    X = np.array([[1.0], [2.0], [30.0]])
    pandas_out = WidthDiscretizer(n_bins=3).set_output(transform="pandas").fit_transform(X)
    assert pandas_out["x0"].cat.categories.tolist() == bin_labels(width_cut_points(X.ravel(), 3), 1, 30)
    polars_out = WidthDiscretizer(n_bins=3).set_output(transform="polars").fit_transform(X)
    assert isinstance(polars_out, pl.DataFrame) and polars_out["x0"].to_list() == pandas_out["x0"].tolist()


def test_polars_and_arrow_frames():
    data = {"a": [1.0, 2.0, None, 8.0], "t": ["u", "v", "w", None]}
    expected = ["lt_2_75", "lt_2_75", None, "ge_6_25"]
    fitted = WidthDiscretizer(n_bins=4).fit(pl.DataFrame(data))
    out = fitted.transform(pl.DataFrame(data))
    assert isinstance(out, pl.DataFrame)
    assert out["a"].to_list() == expected and out["t"].to_list() == data["t"]
    assert out["a"].dtype.categories.to_list() == fitted.bin_labels_["a"]
    pa = pytest.importorskip("pyarrow")
    arrow = WidthDiscretizer(n_bins=4).fit_transform(pa.table(data))
    assert nw.from_native(arrow)["a"].to_list() == expected


def test_pickle_and_clone():
    x, y = sample(2)
    fitted = MDLDiscretizer().fit(x[:, None], y)
    again = pickle.loads(pickle.dumps(fitted))
    assert again.transform(x[:, None]).astype(str).tolist() == fitted.transform(x[:, None]).astype(str).tolist()
    assert not hasattr(clone(fitted), "cut_points_")


# size


def test_a_hundred_thousand_rows_are_quick():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(100_000, 10))
    y = (X[:, :3].sum(1) + rng.normal(size=100_000) > 0).astype(int) + (X[:, 3] > 1)
    start = time.process_time()
    MDLDiscretizer().fit_transform(X, y)
    # measured 0.6 s; the limit leaves room for a busy machine
    assert time.process_time() - start < 2
