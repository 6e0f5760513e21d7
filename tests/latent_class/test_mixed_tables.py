"""Clusterers of mixed tables: kinds of columns, invariance, weights, missing cells, all that reads a fit."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score

import pgm_bma
from pgm_bma import EMAClusterer, LatentClassClusterer, Starts
from tests.latent_class.test_numeric_columns import mixed_table

BOTH = pytest.mark.parametrize("build", [LatentClassClusterer, EMAClusterer])
FIT = {"n_clusters": 2, "n_init": 6, "random_state": 0}


def frame(n=120, seed=0, missing=0.05):
    numbers, codes, cluster = mixed_table(seed, n, missing, apart=4.0)
    states = np.where(codes < 0, None, np.array(["low", "mid", "high"], dtype=object)[codes])
    X = pd.DataFrame({"first": states[:, 0], "length": 30 + 5 * numbers[:, 0], "second": states[:, 1]})
    return X.assign(width=numbers[:, 1], noise=numbers[:, 2], coin=states[:, 2]), cluster


@BOTH
def test_clusters_and_relevance_of_a_mixed_table(build):
    X, cluster = frame(300)
    model = build(**FIT).fit(X)
    assert adjusted_rand_score(cluster, model.labels_) > 0.85
    assert model.numeric_columns_ == ["length", "width", "noise"] and list(model.arc_posterior_.index) == list(X)
    assert model.arc_posterior_[["first", "length", "second", "width"]].min() > 0.95
    assert model.arc_posterior_[["noise", "coin"]].max() < 0.3
    assert model.get_support().tolist() == [True, True, True, True, False, False]
    assert list(model.cluster_dependence_.index) == list(X)
    assert model.cluster_dependence_["length"] > 20 * model.cluster_dependence_["noise"]
    found = model.densities_.set_index(["column", "cluster"])
    for k in range(2):
        mine = X["length"][model.labels_ == k]
        assert found.loc[("length", k), "mean"] == pytest.approx(mine.mean(), abs=0.5)
        assert found.loc[("length", k), "sd"] == pytest.approx(mine.std(), rel=0.25)


@pytest.mark.parametrize("averaging", ["variational", "linear"])
def test_shift_and_scale_change_nothing(averaging):
    X, _ = frame()
    moved = X.assign(length=1000 * X["length"] + 5, width=1e-6 * X["width"] - 3)
    plain, other = (EMAClusterer(averaging=averaging, **FIT).fit(table) for table in (X, moved))
    np.testing.assert_array_equal(plain.labels_, other.labels_)
    np.testing.assert_allclose(plain.arc_posterior_, other.arc_posterior_, atol=1e-9)
    np.testing.assert_allclose(plain.predict_proba(X), other.predict_proba(moved), atol=1e-7)
    jacobian = X["length"].notna().sum() * np.log(1000) + X["width"].notna().sum() * np.log(1e-6)
    assert plain.log_likelihood_ - other.log_likelihood_ == pytest.approx(jacobian, rel=1e-6)


@BOTH
def test_weights_are_repetitions(build):
    X, _ = frame(40)
    times = np.arange(len(X)) % 3
    weighted = build(**FIT).fit(X, sample_weight=times)
    repeated = build(**FIT).fit(X.loc[np.repeat(X.index, times)])
    assert weighted.log_likelihood_ == repeated.log_likelihood_
    np.testing.assert_array_equal(weighted.arc_posterior_, repeated.arc_posterior_)
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))
    np.testing.assert_array_equal(weighted.labels_, weighted.predict(X))  # rows of weight 0 too


@BOTH
def test_score_is_the_density_of_the_fitted_mixture(build):
    X, _ = frame(60)
    model = build(**FIT).fit(X)
    sizes, tables = model._profiles()
    densities = model.densities_.set_index(["column", "cluster"])
    row = X.iloc[7]
    total = 0.0
    for k in range(2):
        p = sizes[k]
        for name, states, profile in zip(model.schema_.names, model.schema_.states, tables):
            p *= 1.0 if pd.isna(row[name]) else profile[k, states.index(row[name])]
        for name in model.numeric_columns_:
            if not np.isnan(row[name]):
                p *= norm.pdf(row[name], *densities.loc[(name, k)])
        total += p
    assert model.score_samples(X)[7] == pytest.approx(np.log(total), abs=1e-9)
    assert model.score_samples(X).sum() == pytest.approx(model.log_likelihood_, abs=1e-8)
    explained = model.explain(X)
    assert list(explained.loc[7].index) == ["(prior)", *X]
    assert np.logaddexp.reduce(explained.loc[7].sum().to_numpy()) == pytest.approx(np.log(total), abs=1e-9)
    assert model.fit_statistics_["n_parameters"] == 1 + 2 * (sum(len(s) - 1 for s in model.schema_.states) + 6)
    assert model.bic(X) == pytest.approx(model.fit_statistics_["bic"])


@BOTH
def test_what_reads_a_fit(build, tmp_path):
    X, _ = frame(60)
    model = build(**FIT).fit(X)
    model.save(tmp_path / "model.pgm")
    back = build.load(tmp_path / "model.pgm")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    pd.testing.assert_frame_equal(back.densities_, model.densities_)
    drawn, labels = model.sample(20_000, random_state=0)
    assert list(drawn) == list(X)
    wanted = model.densities_.set_index(["column", "cluster"]).loc[("length", 1)]
    # four standard errors of a mean and of a standard deviation
    mine = drawn["length"][labels == 1]
    assert mine.mean() == pytest.approx(wanted["mean"], abs=4 * wanted["sd"] / len(mine) ** 0.5)
    assert mine.std() == pytest.approx(wanted["sd"], rel=4 / (2 * len(mine)) ** 0.5)
    shown = model.describe(4)
    text = shown.loc[shown["column"] == "length", "state"].iloc[0]
    assert "±" in text and shown["cluster"].tolist() == [0] * 4 + [1] * 4
    assert set(model.model_.nodes()) == {"cluster", "first", "second", "coin"} and not model.model_is_exact_
    assert model.to_networkx().number_of_edges() == 3
    assert "length" in model.top_structures(1)["dependent"][0]
    assert list(model.starts_.columns[-6:]) == [f"I_P[{name}]" for name in X]
    assert model.predict(X.iloc[3].to_dict())[0] == model.predict(X)[3]
    np.testing.assert_array_equal(model.transform(X[X.columns[::-1]]), model.predict_proba(X))
    assert "<" in model._repr_html_inner()
    with pytest.raises(ValueError, match="'length' is numeric; densities_ has"):
        _ = model.profiles_
    with pytest.raises(ValueError, match="'length' is numeric"):
        pgm_bma.bivariate_residuals(model, X)
    with pytest.raises(ValueError, match="X lacks column 'width'"):
        model.predict(X.drop(columns="width"))


@BOTH
def test_arrays_of_numbers_only(build):
    numbers, _, cluster = mixed_table(2, 150, 0.0, apart=5.0)
    model = build(**FIT).fit(numbers)
    assert model.n_features_in_ == 3 and model.numeric_columns_ == ["x0", "x1", "x2"]
    assert adjusted_rand_score(cluster, model.predict(numbers)) > 0.9
    assert set(model.model_.nodes()) == {"cluster"}
    with pytest.raises(ValueError, match="no columns of states to draw; densities_"):
        model.plot()
    with pytest.raises(ValueError, match="X has 2 features"):
        model.predict(numbers[:, :2])
    scan = build(n_clusters=range(1, 4), n_init=4, random_state=0).fit(numbers)
    assert scan.n_clusters_ == 2


def test_kinds_of_columns():
    X, _ = frame(60, missing=0.0)
    X["age"], X["grade"] = np.arange(60) % 30, np.arange(60) % 5
    fit = EMAClusterer(**FIT)
    assert fit.fit(X).numeric_columns_ == ["length", "width", "noise", "age"]
    named = EMAClusterer(**FIT, numeric_columns=["grade"], categorical_columns=["age"]).fit(X)
    assert named.numeric_columns_ == ["length", "width", "noise", "grade"]
    declared = EMAClusterer(**FIT, state_names={"age": list(range(30))}).fit(X)
    assert "age" in declared.schema_.names
    states = pd.DataFrame({"a": [0, 1, 2, 1] * 5, "b": list("xyxy") * 5})
    discrete = EMAClusterer(**FIT, starts=Starts(collapse="ignore")).fit(states)
    assert discrete.numeric_columns_ == [] and discrete.model_is_exact_ and discrete.densities_.empty
    for given, message in (
        ({"numeric_columns": ["no"]}, "numeric_columns names 'no'"),
        ({"numeric_columns": ["first"]}, "column 'first' is numeric and holds '(low|mid|high)', which is no number"),
        ({"numeric_columns": ["age"], "state_names": {"age": list(range(30))}}, "has declared states"),
        ({"cluster_name": "length"}, "cluster_name='length' is also a column"),
    ):
        with pytest.raises(ValueError, match=message):
            EMAClusterer(**FIT, **given).fit(X)
    with pytest.raises(ValueError, match="'length' holds an infinite value"):
        fit.fit(X.assign(length=np.inf))
    with pytest.warns(UserWarning, match="numeric column 'age' holds 1 texts such as 'old'"):
        fit.predict(X.astype({"age": object}).replace({"age": {3: "old"}}).iloc[:4])


def test_constant_and_empty_columns_add_nothing():
    X, cluster = frame(200, missing=0.0)
    odd = X.assign(flat=0.5, empty=np.nan)
    model = EMAClusterer(**FIT, numeric_columns=["empty"]).fit(odd)
    assert adjusted_rand_score(cluster, model.labels_) > 0.85
    assert model.arc_posterior_["flat"] < 0.5 and model.arc_posterior_["empty"] == pytest.approx(0.5)


def test_the_numbers_of_a_scan_are_states(tmp_path):
    X, _ = frame(60)
    X.to_parquet(tmp_path / "part.parquet")
    scan = pgm_bma.scan_parquet(str(tmp_path / "part.parquet"))
    with pytest.raises(ValueError, match="numbers of a scan are states; read the table"):
        EMAClusterer(**FIT, numeric_columns=["width"]).fit(scan)
    model = EMAClusterer(**FIT).fit(X)
    with pytest.raises(ValueError, match="'length' is numeric in this model; read the rows in pieces"):
        model.predict_to(tmp_path / "out", scan)
