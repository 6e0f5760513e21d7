"""Predictions of scans in files: equal to `predict`, whole or absent, restarted where they stopped."""

import os

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.foundation.rows import predict as scan_predict
from tests.foundation.scanned import cut, make_table, write_parts


@pytest.fixture(scope="module")
def parts():
    return [part.assign(key=[f"{i}-{j}" for j in range(len(part))]) for i, part in enumerate(cut(make_table(400), 3))]


@pytest.fixture(scope="module")
def pattern(parts, tmp_path_factory):
    return write_parts(parts, tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def scan(pattern):
    return pgm_bma.scan_parquet(pattern).drop("key")


@pytest.fixture(scope="module")
def clusterer(scan):
    return pgm_bma.EMAClusterer(2, n_init=2, random_state=0).fit(scan)


def test_clusters_part_by_part(clusterer, parts, tmp_path):
    files = clusterer.predict_to(tmp_path / "labels", keep=["key"])
    assert len(files) == len(parts)
    for file, part in zip(files, parts):
        found = pd.read_parquet(file)
        assert found["cluster"].tolist() == clusterer.predict(part).tolist()
        assert found["key"].tolist() == part["key"].tolist()
    for file, part in zip(clusterer.predict_proba_to(tmp_path / "proba"), parts):
        found = pd.read_parquet(file)
        assert list(found) == ["cluster0", "cluster1"]
        assert found.to_numpy().tobytes() == clusterer.predict_proba(part).tobytes()


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
@pytest.mark.filterwarnings("ignore:numbers of columns? .* were cut")  # expected of this table
def test_classes_keep_their_type(scan, parts, tmp_path):
    classifier = pgm_bma.TANClassifier().fit(scan, "class")
    found = pd.concat([pd.read_parquet(file) for file in classifier.predict_to(tmp_path / "classes")])
    assert found["class"].dtype == np.int64
    assert found["class"].tolist() == np.concatenate([classifier.predict(part) for part in parts]).tolist()
    assert list(pd.read_parquet(classifier.predict_proba_to(tmp_path / "proba")[0])) == ["0", "1"]


def test_restart_skips_what_is_whole(clusterer, tmp_path, monkeypatch):
    real, done = scan_predict._predicted, []

    def fail_on_second_part(job, frame, kind):
        done.append(len(frame))
        if len(done) == 2:
            raise KeyboardInterrupt
        return real(job, frame, kind)

    monkeypatch.setattr(scan_predict, "_predicted", fail_on_second_part)
    with pytest.raises(KeyboardInterrupt):
        clusterer.predict_to(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["part-00000.parquet"]  # no draft is left, no half file
    before = os.stat(tmp_path / "part-00000.parquet").st_mtime_ns
    files = clusterer.predict_to(tmp_path)
    assert len(done) == 4 and len(files) == 3  # parts two and three
    assert os.stat(tmp_path / "part-00000.parquet").st_mtime_ns == before
    clusterer.predict_to(tmp_path)
    assert len(done) == 4


def test_a_changed_part_is_written_again_and_another_model_is_refused(parts, tmp_path):
    scan = pgm_bma.scan_parquet(write_parts(parts, tmp_path)).drop("key")
    clusterer = pgm_bma.LatentClassClusterer(2, n_init=2, random_state=0).fit(scan)
    files = clusterer.predict_to(tmp_path / "out")
    times = [os.stat(file).st_mtime_ns for file in files]
    parts[1].iloc[:7].to_parquet(tmp_path / "part-1.parquet")
    files = clusterer.predict_to(tmp_path / "out", pgm_bma.scan_parquet(tmp_path / "part-*.parquet"))
    assert [os.stat(file).st_mtime_ns == time for file, time in zip(files, times)] == [True, False, True]
    assert len(pd.read_parquet(files[1])) == 7
    other = pgm_bma.LatentClassClusterer(3, n_init=2, random_state=0).fit(scan)
    with pytest.raises(FileExistsError, match="holds predictions of another model"):
        other.predict_to(tmp_path / "out")
    parts[0].to_parquet(tmp_path / "out" / "part-00000.parquet")
    with pytest.raises(FileExistsError, match="was not written by predict_to"):
        clusterer.predict_to(tmp_path / "out")


def test_a_loaded_model_goes_on(clusterer, scan, tmp_path):
    files = clusterer.predict_to(tmp_path / "out")
    times = [os.stat(file).st_mtime_ns for file in files]
    clusterer.save(tmp_path / "model.zip")
    loaded = pgm_bma.load(tmp_path / "model.zip")
    with pytest.raises(ValueError, match="pass the rows as X="):
        loaded.predict_to(tmp_path / "out")
    assert [os.stat(file).st_mtime_ns for file in loaded.predict_to(tmp_path / "out", scan)] == times


@pytest.mark.parametrize("source", ["csv", "dataset", "dask", "relation"])
def test_every_source(source, tmp_path):
    import dask.dataframe as dd
    import duckdb
    import pyarrow.dataset as ds

    parts = [
        pd.DataFrame({"a": ["x", "y", None] * 20, "b": [1.0, 2.0, 1.0] * 20}),
        pd.DataFrame({"a": ["y"], "b": [None]}),
    ]
    for i, part in enumerate(parts):
        part.to_csv(tmp_path / f"t{i}.csv", index=False)
        part.astype({"b": float}).to_parquet(tmp_path / f"t{i}.parquet")
    parquet = [str(tmp_path / f"t{i}.parquet") for i in range(2)]
    X = {
        "csv": lambda: pgm_bma.scan_csv(tmp_path / "t*.csv"),
        "dataset": lambda: ds.dataset(parquet),
        "dask": lambda: dd.from_map(lambda i: pd.read_parquet(parquet[i]), range(2)),
        "relation": lambda: duckdb.connect().sql(f"SELECT * FROM read_parquet({parquet})"),
    }[source]()
    clusterer = pgm_bma.LatentClassClusterer(2, n_init=2, random_state=0).fit(X)
    files = clusterer.predict_to(tmp_path / "out", keep=["a"])
    found = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    expected = pd.concat(parts, ignore_index=True)
    assert len(files) == (1 if source == "relation" else 2)
    assert found["cluster"].tolist() == clusterer.predict(expected).tolist()
    assert found["a"].fillna("").tolist() == expected["a"].fillna("").tolist()


def test_unknown_values(clusterer, parts, tmp_path):
    late = [parts[0].assign(text="unheard"), parts[1]]
    scan = pgm_bma.scan_parquet(write_parts(late, tmp_path))
    with pytest.warns(UserWarning, match=rf"column 'text' holds {len(late[0])} values that fit did not see"):
        files = clusterer.predict_to(tmp_path / "out", scan)
    missing = parts[0].assign(text=pd.Series([None] * len(parts[0]), dtype=object))
    assert pd.read_parquet(files[0])["cluster"].tolist() == clusterer.predict(missing).tolist()
    # numbers of a table in memory are no states unless they are named
    strict = pgm_bma.EMAClusterer(2, n_init=2, random_state=0, handle_unknown="error", categorical_columns=["half"])
    strict.fit(pd.concat(parts, ignore_index=True).drop(columns="key"))
    with pytest.raises(ValueError, match="column 'text' holds 'unheard', unseen in fit"):
        strict.predict_to(tmp_path / "strict", scan)
    assert os.listdir(tmp_path / "strict") == []


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
@pytest.mark.filterwarnings("ignore:numbers of columns? .* were cut")  # expected of this table
def test_scores_of_scans(clusterer, scan, pattern, parts):
    frame = pd.concat(parts, ignore_index=True)
    # the same sums in another order
    assert clusterer.score(scan) == pytest.approx(clusterer.score(frame), rel=1e-12)
    assert clusterer.bic(scan) == pytest.approx(clusterer.bic(frame), rel=1e-12)
    classifier = pgm_bma.NaiveBayesClassifier().fit(scan, "class")
    assert classifier.score(scan, "class") == pytest.approx(classifier.score(frame, "class"), rel=1e-12)
    with pytest.raises(TypeError, match="predict_to"):
        clusterer.predict(scan)


def test_clear_errors(clusterer, scan, parts, tmp_path):
    with pytest.raises(TypeError, match="use predict for a table in memory"):
        clusterer.predict_to(tmp_path, parts[0])
    with pytest.raises(ValueError, match="the scan lacks the column 'text'"):
        clusterer.predict_to(
            tmp_path, pgm_bma.scan_parquet(write_parts([p.drop(columns="text") for p in parts], tmp_path))
        )
    with pytest.raises(ValueError, match="the scan lacks the column 'nothing'"):
        clusterer.predict_to(tmp_path, scan, keep=["nothing"])


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_numbers_that_the_fit_cut_are_predicted_as_numbers(kind, tmp_path, recwarn):
    rng = np.random.default_rng(0)
    number = np.round(rng.random(300), 2)
    frame = pd.DataFrame({"number": number, "class": np.where(rng.random(300) < 0.9, number > 0.6, number <= 0.6)})
    frame.loc[::20, "number"] = np.nan
    path = tmp_path / f"rows.{kind}"
    frame.to_parquet(path) if kind == "parquet" else frame.to_csv(path, index=False)
    read = pgm_bma.scan_parquet if kind == "parquet" else pgm_bma.scan_csv
    classifier = pgm_bma.NaiveBayesClassifier().fit(read(path), "class")
    want = classifier.predict_proba(frame[["number"]])
    got = pd.read_parquet(classifier.predict_proba_to(tmp_path / "out")[0]).to_numpy()
    assert np.ptp(want[:, 0]) > 0.5 and got.tobytes() == want.tobytes()
    assert not [w for w in recwarn if "did not see" in str(w.message)]
    other = pgm_bma.NaiveBayesClassifier().fit(frame[["number"]], (frame["number"] > 0.3).rename("class"))
    assert scan_predict.fingerprint(other, True, []) != scan_predict.fingerprint(classifier, True, [])
    assert classifier.score(read(path), "class") == classifier.score(frame[["number"]], frame["class"])
