"""Clusterers of mixed tables: kinds of columns, invariance, weights, missing cells, all that reads a fit."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import adjusted_rand_score

import pgm_bma
from pgm_bma import EMAClusterer, LatentClassClusterer, Starts
from pgm_bma.latent_class.mixed import log_gain
from tests.latent_class.test_numeric_columns import mixed_table
from tests.oracles import mixed as oracle

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
    shown = model.profiles_
    model.save(tmp_path / "model.pgm")
    back = build.load(tmp_path / "model.pgm")
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    pd.testing.assert_frame_equal(back.densities_, model.densities_)
    pd.testing.assert_frame_equal(back.profiles_, shown)
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
    with pytest.warns(UserWarning, match=r"not in the file: \['length', 'width', 'noise'\]; save\(\) keeps them"):
        pgm_bma.write_bif(model.model_, tmp_path / "model.bif")
    assert set(pgm_bma.read_bif(tmp_path / "model.bif").nodes()) == {"cluster", "first", "second", "coin"}
    assert model.to_networkx().number_of_edges() == 3
    assert "length" in model.top_structures(1)["dependent"][0]
    assert list(model.starts_.columns[-6:]) == [f"I_P[{name}]" for name in X]
    assert model.predict(X.iloc[3].to_dict())[0] == model.predict(X)[3]
    np.testing.assert_array_equal(model.transform(X[X.columns[::-1]]), model.predict_proba(X))
    assert "<" in model._repr_html_inner()
    with pytest.raises(ValueError, match="'length' is numeric"):
        pgm_bma.goodness_of_fit(model, X)
    with pytest.raises(ValueError, match="X lacks column 'width'"):
        model.predict(X.drop(columns="width"))


@BOTH
def test_arrays_of_numbers_only(build):
    numbers, _, cluster = mixed_table(2, 150, 0.0, apart=5.0)
    model = build(**FIT).fit(numbers)
    assert model.n_features_in_ == 3 and model.numeric_columns_ == ["x0", "x1", "x2"]
    assert adjusted_rand_score(cluster, model.predict(numbers)) > 0.9
    assert set(model.model_.nodes()) == {"cluster"}
    assert {text.get_text() for text in model.plot().texts} >= {"x0", "x1", "x2"}
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
        ({"numeric_columns": ["first"]}, "column 'first' is numeric and holds '(low|mid|high)', which is not a number"),
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


def scans(X, folder, sample_rows=None, memory="1GB"):
    """Scans of a table that was cut into three parts, by engine."""
    dask = pytest.importorskip("dask.dataframe")
    parts = [X.iloc[rows] for rows in np.array_split(np.arange(len(X)), 3)]
    for i, part in enumerate(parts):
        part.to_parquet(folder / f"part-{i}.parquet", index=False)
        part.to_csv(folder / f"part-{i}.csv", index=False)
    how = {"memory": memory, "sample_rows": sample_rows}
    yield "parquet", pgm_bma.scan_parquet(str(folder / "part-*.parquet"), **how)
    yield "csv", pgm_bma.scan_csv(str(folder / "part-*.csv"), **how)
    yield "dask", pgm_bma.scan_table(dask.from_pandas(X, npartitions=3), **how)


@pytest.mark.parametrize("kind", [EMAClusterer, LatentClassClusterer])
@pytest.mark.parametrize("memory", ["1GB", "1KB"])  # distinct rows in memory, and passes over blocks
@pytest.mark.parametrize("columns", [slice(None), ["length", "width", "noise"]])
def test_a_scan_gives_the_fit_of_memory(kind, memory, columns, tmp_path):
    X, _ = frame(150)
    X = X[list(X)[columns] if isinstance(columns, slice) else columns]
    model = kind(2, n_init=4, random_state=0).fit(X)
    for engine, scan in scans(X, tmp_path, memory=memory):
        found = kind(2, n_init=4, random_state=0).fit(scan)
        assert found.numeric_columns_ == ["length", "width", "noise"], engine
        assert found.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-9), engine
        np.testing.assert_allclose(found.predict_proba(X), model.predict_proba(X), atol=1e-9)
        np.testing.assert_allclose(found.densities_["mean"], model.densities_["mean"], rtol=1e-9)
        assert found.fit_statistics_["bic"] == pytest.approx(model.fit_statistics_["bic"], rel=1e-9)
        files = found.predict_to(tmp_path / f"{engine}-{memory}")
        written = pd.concat([pd.read_parquet(file) for file in files])["cluster"].to_numpy()
        np.testing.assert_array_equal(written, model.predict(X))


def test_weights_and_screening_of_a_scan_in_passes(tmp_path):
    X, _ = frame(400, missing=0.05)
    X = X.assign(times=np.random.default_rng(0).integers(0, 4, len(X)))
    model = EMAClusterer(2, n_init=4, random_state=0).fit(X.drop(columns="times"), sample_weight=X["times"])
    for engine, scan in scans(X, tmp_path, sample_rows=100, memory="1KB"):
        found = EMAClusterer(2, n_init=4, random_state=0).fit(scan, sample_weight="times")
        # screened starts end at the same optimum to what `tol` leaves open
        assert found.log_likelihood_ == pytest.approx(model.log_likelihood_, rel=1e-6), engine
        assert adjusted_rand_score(found.predict(X), model.predict(X)) > 0.98


def test_a_text_in_a_numeric_column_of_a_scan_names_it(tmp_path):
    X, _ = frame(150)
    X = X.assign(width=X["width"].round(6).astype(object))
    X.loc[140, "width"] = "wide"
    X.to_csv(tmp_path / "a.csv", index=False)
    scan = pgm_bma.scan_csv(str(tmp_path / "a.csv"), memory="1KB")
    with pytest.raises(ValueError, match="'width' is numeric and holds 'wide', which is not a number"):
        EMAClusterer(**FIT, numeric_columns=["width"]).fit(scan)


def test_errors_of_profiles_equal_second_differences():
    """The inverse of minus the second differences of what EM climbs, in logits, means and log standard deviations."""
    X, _ = frame(120, missing=0.1)
    X = X[["first", "length", "width"]]
    model = LatentClassClusterer(2, n_init=6, tol=1e-12, max_iter=20000, random_state=0).fit(X)
    states = list(model.schema_.states[0])
    codes = np.array([states.index(v) if v in states else -1 for v in X["first"]])
    numbers = (X[["length", "width"]] - X[["length", "width"]].mean()) / X[["length", "width"]].std(ddof=0)
    numbers, r = numbers.to_numpy(), len(states)
    fit = model.profiles_

    def value(x):
        sizes, tables = x[:1], x[1 : 1 + 2 * (r - 1)].reshape(2, r - 1)
        rest = x[1 + 2 * (r - 1) :].reshape(2, 2, 2)
        log_c = np.append(0.0, sizes)
        log_c = log_c - np.logaddexp.reduce(log_c)
        log_p, prior = np.tile(log_c, (len(codes), 1)), log_c.sum()
        for c in range(2):
            line = np.append(0.0, tables[c])
            line = line - np.logaddexp.reduce(line)
            prior += line.sum()
            log_p[:, c] += np.where(codes >= 0, line[codes], 0.0)
            for i in range(2):
                mean, log_sd = rest[c, i]
                log_p[:, c] += np.nan_to_num(norm.logpdf(numbers[:, i], mean, np.exp(log_sd)))
                prior += -5.0 * log_sd - (1.0 + 0.05 * mean**2) * np.exp(-2 * log_sd)
        return np.logaddexp.reduce(log_p, axis=1).sum() + prior

    theta_c, theta = model._result.theta_c, model._result.theta
    mean, second = theta[r + 1 :: 3], theta[r + 2 :: 3]
    log_sd = 0.5 * np.log(second - mean**2)
    at = np.concatenate(
        [
            np.log(theta_c[1:] / theta_c[0]),
            np.log(theta[1:r] / theta[0]).T.ravel(),
            np.stack([mean, log_sd], axis=2).transpose(1, 0, 2).ravel(),
        ]
    )
    n, step = len(at), 1e-3
    steps = step * np.eye(n)
    hessian = np.array(
        [[value(at + a + b) - value(at + a - b) - value(at - a + b) + value(at - a - b) for b in steps] for a in steps]
    ) / (4 * step**2)
    covariance = np.linalg.inv(-hessian)
    scale = X[["length", "width"]].std(ddof=0).to_numpy()
    for c in range(2):
        for i, name in enumerate(("length", "width")):
            place = 1 + 2 * (r - 1) + 4 * c + 2 * i
            lines = fit[(fit["cluster"] == c) & (fit["column"] == name)].set_index("state")
            error = np.sqrt(np.diag(covariance)[place : place + 2])
            assert lines.loc["mean", "standard_error"] == pytest.approx(scale[i] * error[0], rel=1e-3)
            assert lines.loc["sd", "standard_error"] == pytest.approx(
                lines.loc["sd", "probability"] * error[1], rel=1e-3
            )
            assert (lines["low"] < lines["probability"]).all() and (lines["probability"] < lines["high"]).all()
    sizes = fit[fit["column"].isna()]
    error = theta_c[0] * theta_c[1] * np.sqrt(covariance[0, 0])
    np.testing.assert_allclose(sizes["standard_error"], error, rtol=1e-3)


def dependent_table(seed=0, n=1500, strength=0.0):
    """Two clusters; inside them y follows x, and z follows the state of s, by `strength`."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 2, n)
    state = rng.integers(0, 3, n)
    x, y, z, v = rng.standard_normal((4, n)) + 4.0 * cluster
    X = pd.DataFrame({"x": x, "y": y + strength * (x - 4.0 * cluster), "z": z + strength * (state - 1), "v": v})
    return X.assign(s=np.array(["a", "b", "c"])[state], t=np.where(rng.random(n) < 0.9, cluster, 1 - cluster))


@BOTH
def test_residuals_find_the_pairs_that_stay_dependent(build):
    X = dependent_table()
    free = pgm_bma.bivariate_residuals(build(2, random_state=0).fit(X), X)
    assert len(free) == 15 and free["residual"].max() < 7.9  # 1 of 200 in one degree of freedom, 15 pairs
    X = dependent_table(strength=0.6)
    model = build(2, random_state=0).fit(X)
    found = pgm_bma.bivariate_residuals(model, X).set_index(["first", "second"])
    assert {frozenset(pair) for pair in found.index[:2]} == {frozenset("xy"), frozenset("sz")}
    inside = X.groupby(model.labels_)[["x", "y"]].corr().loc[(slice(None), "x"), "y"].mean()
    assert found.loc[("x", "y"), "correlation"] == pytest.approx(inside, abs=0.01)  # the clusters are far apart
    # an analysis of variance inside the clusters, which are nearly certain here
    centred = X["z"] - X["z"].groupby(model.labels_).transform("mean")
    between = sum(len(part) * part.mean() ** 2 for _, part in centred.groupby(X["s"]))
    assert found.loc[("s", "z"), "x2"] == pytest.approx(between / centred.var(ddof=0), rel=0.05)
    few = pgm_bma.bivariate_residuals(build(2, n_init=2, random_state=0).fit(X), X, n_bootstrap=3, random_state=0)
    assert few["p_value"].iloc[0] == 0.25 and (few["p_value"] > 0).all()


def test_three_step_takes_the_uncertainty_of_numbers_along():
    X, cluster = frame(300, missing=0.0)
    rng = np.random.default_rng(1)
    outcome = pd.Series(np.where(rng.random(300) < 0.8, cluster, 1 - cluster), name="bought")
    model = LatentClassClusterer(2, n_init=6, random_state=0).fit(X)
    found = pgm_bma.three_step(model, X, outcome=outcome)
    plain = found.estimates["standard_error"]
    fixed = pgm_bma.three_step(model, X, outcome=outcome, correction="none").estimates["standard_error"]
    assert found.converged and (plain > fixed).all()  # clusters are not known for certain


@BOTH
def test_a_column_that_repeats_a_value_is_mentioned(build):
    X, _ = frame(300)
    rng = np.random.default_rng(0)
    few, many = rng.choice([0.48, 1.0], 300, p=[0.9, 0.1]), np.where(rng.random(300) < 0.7, 0.0, rng.normal(size=300))
    model = build(**FIT).fit(X.assign(lip=few, spent=many))
    first, second = model.hints_
    assert first.startswith("column 'lip' repeats a value: ") and first.endswith("by categorical_columns=['lip']")
    assert "are 0.48, which a normal density follows as a spike" in first
    assert second.endswith("make a flag of X['spent'] == 0, and set those cells of the column to NaN")
    assert build(**FIT).fit(X.assign(lip=rng.choice([0.1, 0.2, 0.3, 0.4], 300))).hints_ == []


@BOTH
def test_a_skewed_column_is_mentioned(build):
    X, cluster = frame(300, missing=0.05)
    X = X.assign(income=np.exp(np.random.default_rng(0).normal(7.0 + cluster, 0.8)))
    model = build(**FIT).fit(X)
    (hint,) = model.hints_
    assert hint.startswith("column 'income' is skewed: its logarithm fits better by ")
    assert build(**FIT).fit(X.assign(income=np.log(X["income"]))).hints_ == []
    # the gain is the difference of two evidences; with certain clusters these are those of two columns of numbers
    values, shares = X["income"].to_numpy(), np.eye(2)[cluster]

    def evidence(column):
        z = (column - column.mean()) / column.std()
        return sum(oracle.log_evidence(*oracle.sums(z, s)) for s in shares.T) - len(z) * np.log(column.std())

    wanted = evidence(np.log(values)) - np.log(values).sum() - evidence(values)
    assert log_gain(values, shares) == pytest.approx(wanted, abs=1e-8)
    assert log_gain(-values, shares) == -np.inf
