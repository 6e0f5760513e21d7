"""Scans: every estimator gives the same bits on a table in files as on its rows in memory."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.foundation.rows import scan as scanning
from tests.foundation.scanned import CLASSIFIERS, CLUSTERERS, STRUCTURES, cut, differences, make_table, write_parts

ALL = {**CLUSTERERS, **CLASSIFIERS, **STRUCTURES}
pytestmark = [  # numbers of this table that classifiers cut into one interval
    pytest.mark.filterwarnings("ignore:numbers of column 'half' were cut"),
    pytest.mark.filterwarnings("ignore:column 'half' holds one value only"),
]


@pytest.fixture(scope="module")
def parts():
    return cut(make_table(400), 3)


@pytest.fixture(scope="module")
def pattern(parts, tmp_path_factory):
    return write_parts(parts, tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def frame(parts):
    """The raw rows: pandas makes objects of categoricals whose categories differ."""
    return pd.concat(parts, ignore_index=True)


def fit(estimator, X, name):
    return estimator.fit(X, "class") if name in CLASSIFIERS else estimator.fit(X)


@pytest.mark.parametrize("name", ALL)
def test_same_bits_as_raw_rows(name, pattern, frame):
    raw = fit(ALL[name](), frame, name)
    scanned = fit(ALL[name](), pgm_bma.scan_parquet(pattern), name)
    assert differences(vars(raw), vars(scanned)) == []
    assert scanned.n_samples_ == len(frame)


@pytest.mark.parametrize("name", ["EMA variational", "averaged naive Bayes", "order posterior"])
def test_declared_states(name, pattern, frame):
    declared = {"text": ["high", "never seen", "low", "mid"], "category": ["a", "b"]}
    raw = fit(ALL[name](state_names=declared), frame, name)
    scanned = fit(ALL[name](state_names=declared), pgm_bma.scan_parquet(pattern), name)
    assert scanned.schema_.states[0] == tuple(declared["text"])
    assert differences(vars(raw), vars(scanned)) == []
    with pytest.raises(ValueError, match=r"column 'text' holds 'mid', which state_names\['text'\] does not list"):
        fit(ALL[name](state_names={"text": ["high", "low"]}), pgm_bma.scan_parquet(pattern), name)


def test_states_and_their_order(pattern):
    schema = pgm_bma.EMAClusterer(2, n_init=1, random_state=0).fit(pgm_bma.scan_parquet(pattern)).schema_
    states = dict(zip(schema.names, schema.states))
    assert states["category"] == ("never", "b", "a")  # the same in all files: kept, unused ones too
    assert states["differs"] == ("high", "low", "mid", "only 0", "only 1", "only 2")  # not the same: sorted
    assert states["number"] == (1, 2, 3) and all(type(state) is int for state in states["number"])
    assert states["flag"] == (False, True)


def sources(pattern, parts, tmp_path):
    import dask.dataframe as dd
    import duckdb
    import pyarrow.dataset as ds

    files = scanning.as_scan(pgm_bma.scan_parquet(pattern))._rows.parts
    paths = [path for path, _ in files]
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE kept AS SELECT * FROM read_parquet('{pattern}')")
    connection.execute("ALTER TABLE kept ALTER category TYPE ENUM('never', 'b', 'a')")
    return {
        "list of files": pgm_bma.scan_parquet(paths),
        "folder": pgm_bma.scan_parquet(paths[0].rsplit("/", 1)[0]),
        "relation": connection.sql("SELECT * FROM kept"),
        "table": connection.table("kept"),
        "dataset": ds.dataset(paths),
        "dask": dd.from_map(lambda i: parts[i], range(len(parts)), meta=parts[0].iloc[:0]),
    }


@pytest.mark.parametrize("name", ["EMA variational", "TAN"])
def test_every_source(name, pattern, parts, frame, tmp_path):
    raw = fit(ALL[name](), frame, name)
    for source, X in sources(pattern, parts, tmp_path).items():
        assert differences(vars(raw), vars(fit(ALL[name](), X, name))) == [], source


def test_csv_is_read_as_pandas_reads_it(tmp_path):
    texts = ['a,b,c,d\n1,01,yes,True\n2,NA,no,False\n,2,"x,y",\n', "a,b,c,d\n1,1,yes,True\nlate,2.0,no,none\n"]
    for i, text in enumerate(texts):
        (tmp_path / f"t{i}.csv").write_text(text * 1)
    scan = pgm_bma.scan_csv(tmp_path / "t*.csv", na_values="none")
    (tmp_path / "all.csv").write_text(texts[0] + texts[1].split("\n", 1)[1])
    frame = pd.read_csv(tmp_path / "all.csv", na_values="none")
    raw = pgm_bma.LatentClassClusterer(2, n_init=2, random_state=0).fit(frame)
    scanned = pgm_bma.LatentClassClusterer(2, n_init=2, random_state=0).fit(scan)
    assert raw.schema_.states == (("1", "2", "late"), (1.0, 2.0), ("no", "x,y", "yes"), (False, True))
    assert differences(vars(raw), vars(scanned)) == []


def test_texts_that_mean_missing_are_those_of_pandas():
    from pandas._libs.parsers import STR_NA_VALUES

    from pgm_bma.foundation.rows.pieces import NA_TEXTS

    assert set(NA_TEXTS) == set(STR_NA_VALUES)


def test_csv_without_header(tmp_path):
    (tmp_path / "t.tsv").write_text("1\tx\n2\ty\n1\tx\n")
    scan = pgm_bma.scan_csv(tmp_path / "t.tsv", header=False, separator="\t")
    assert (scan.names, scan.n_rows) == (["x0", "x1"], 3)
    assert scan.fold().frame.to_dict("list") == {"x0": [1, 2], "x1": ["x", "y"]}


def test_weights_from_a_column(pattern, parts, tmp_path):
    rng = np.random.default_rng(1)
    weighted = [part.assign(weight=rng.integers(0, 3, len(part))) for part in parts]
    frame = pd.concat(weighted, ignore_index=True)
    scan = pgm_bma.scan_parquet(write_parts(weighted, tmp_path))
    raw = pgm_bma.EMAClusterer(2, n_init=2, random_state=0, categorical_columns=["half"]).fit(
        frame.drop(columns="weight"), sample_weight=frame["weight"]
    )
    scanned = pgm_bma.EMAClusterer(2, n_init=2, random_state=0, categorical_columns=["half"]).fit(
        scan, sample_weight="weight"
    )
    assert differences(vars(raw), vars(scanned)) == []
    with pytest.raises(ValueError, match="pass sample_weight= the name"):
        pgm_bma.EMAClusterer().fit(scan, sample_weight=np.ones(len(frame)))
    with pytest.raises(ValueError, match="pass y= the name"):
        pgm_bma.NaiveBayesClassifier().fit(scan, frame["class"])


def test_labels_are_absent_and_the_error_names_predict_to(pattern, frame):
    clusterer = pgm_bma.EMAClusterer(2, n_init=1, random_state=0).fit(pgm_bma.scan_parquet(pattern))
    with pytest.raises(AttributeError, match="predict_to"):
        _ = clusterer.labels_
    with pytest.raises(AttributeError, match="predict_to"):
        pgm_bma.EMAClusterer(2, n_init=1, random_state=0).fit_predict(pgm_bma.scan_parquet(pattern))
    assert len(clusterer.fit(frame).labels_) == len(frame)  # a refit on rows in memory has them again


def test_refusal_names_size_limit_and_cure(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 1000, 20_000) for i in range(6)})
    frame.to_parquet(tmp_path / "wide.parquet")
    scan = pgm_bma.scan_parquet(tmp_path / "wide.parquet", memory="1MB")
    before = pgm_bma.KikuchiBayesClassifier(ridge="loo")
    with pytest.raises(
        MemoryError, match=r"20k rows have .* distinct ones in 6 columns, more than the .* that memory=1MB"
    ):
        before.fit(scan, "c0")
    assert "schema_" not in vars(before)
    folded = scan.select(["c0"]).fold()
    assert folded.n_rows == 20_000 and folded.weights.sum() == 20_000 and len(folded.frame) <= 1000


def test_folding_stops_at_the_limit(pattern):
    scan = pgm_bma.scan_parquet(pattern)
    assert scan._rows.fold(scan.names, 10) is None


@pytest.mark.parametrize("n_states", [2, 40])
def test_distinct_bounds_hold_the_truth(n_states):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, n_states, (200_000, 3)) @ [1, 1000, 1_000_000]
    _, counts = np.unique(rows[:5000], return_counts=True)
    low, high = scanning.distinct_bounds(counts, len(rows))
    assert low * 0.9 <= len(np.unique(rows)) <= high  # Chao's estimate has a spread of its own


def test_hostile_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file matches"):
        pgm_bma.scan_parquet(tmp_path / "nothing-*.parquet")
    pd.DataFrame({"a": [1], "b": ["x"]}).to_parquet(tmp_path / "p0.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "p1.parquet")
    with pytest.raises(ValueError, match=r"p1.parquet lacks the column 'b' that .*p0.parquet has"):
        pgm_bma.scan_parquet(tmp_path / "p*.parquet")
    pd.DataFrame({"a": ["1"], "b": ["x"]}).to_parquet(tmp_path / "p1.parquet")
    with pytest.raises(ValueError, match=r"column 'a' holds numbers in .*p0.parquet and texts in"):
        pgm_bma.scan_parquet(tmp_path / "p*.parquet")
    pd.DataFrame({"a": [1], "A": [2]}).to_parquet(tmp_path / "case.parquet")
    with pytest.raises(ValueError, match="differ in case only"):
        pgm_bma.scan_parquet(tmp_path / "case.parquet")
    pd.DataFrame({"a": [[1], [2]]}).to_parquet(tmp_path / "lists.parquet")
    with pytest.raises(ValueError, match=r"column 'a' holds \[[12]\], which cannot be a state"):
        pgm_bma.EMAClusterer().fit(pgm_bma.scan_parquet(tmp_path / "lists.parquet"))
    (tmp_path / "text.parquet").write_text("no Parquet")
    with pytest.raises(ValueError, match=r"text\.parquet is not a Parquet file"):
        pgm_bma.scan_parquet(tmp_path / "text.parquet")
    gaps = pd.DataFrame({"a": list("xyxyxyxy"), "y": ["p", "q", None, "q", None, None, "p", "q"]})
    gaps.to_parquet(tmp_path / "gaps.parquet")
    for memory in ("1GB", 100):  # folded, and by counts
        with pytest.raises(ValueError, match="target 'y' has 3 missing values"):
            pgm_bma.NaiveBayesClassifier().fit(pgm_bma.scan_parquet(tmp_path / "gaps.parquet", memory=memory), "y")
    with pytest.raises(ValueError, match="memory='much' is not a size"):
        pgm_bma.scan_parquet(tmp_path / "p0.parquet", memory="much")
    with pytest.raises(ValueError, match="no column 'z'"):
        pgm_bma.scan_parquet(tmp_path / "p0.parquet", columns=["z"])


def test_odd_names_and_values(tmp_path):
    frame = pd.DataFrame({'q"u{o}te': ["it's", None, "; DROP"], "with space": [float("nan"), 1.0, 1.0]})
    path = tmp_path / "it's [odd].parquet"
    frame.set_index(pd.Index(list("xyz"), name="row")).to_parquet(path)
    scan = pgm_bma.scan_parquet(path)
    assert scan.names == list(frame.columns)  # the index of pandas is not a column
    folded = scan.fold()
    assert folded.frame.isna().sum().tolist() == [1, 1] and folded.weights.tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("module", "make", "extra"),
    [
        ("duckdb", lambda path: pgm_bma.scan_parquet(path), "duckdb"),
        ("pyarrow.parquet", lambda path: pgm_bma.scan_parquet(path), "duckdb"),
    ],
)
def test_missing_extra_is_named(module, make, extra, tmp_path, monkeypatch):
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "p.parquet")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install 'pgm_bma\[{extra}\]'"):
        make(tmp_path / "p.parquet")


def test_import_and_fit_in_memory_load_no_engine():
    code = (
        "import sys, pandas as pd, pgm_bma; pgm_bma.scan_parquet; "
        "pgm_bma.EMAClusterer(2, n_init=1).fit(pd.DataFrame({'a': [0, 1, 1]})); "
        "print([m for m in ('duckdb', 'dask', 'distributed') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
