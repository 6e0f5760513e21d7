"""Tables that are not as they should be: a scan refuses them in words that name file, column and cure, or reads them as memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pgm_bma
from pgm_bma.foundation.rows import dask_scan as scan_dask
from pgm_bma.foundation.rows import duckdb_scan as scan_duckdb
from pgm_bma.foundation.rows import scanned_rows as scan_rows
from tests.foundation.scanned import make_table

N_ROWS = 120
GOOD = make_table(N_ROWS, missing=0.0)[["text", "number", "class"]]
DAYS = pd.date_range("2020", periods=3, tz="UTC")[np.arange(N_ROWS) % 3]


def scan(folder, parts, memory):
    for i, part in enumerate(parts):
        part = part if isinstance(part, pa.Table) else pa.Table.from_pandas(part, preserve_index=False)
        pq.write_table(part, folder / f"p{i}.parquet")
    return pgm_bma.scan_parquet(folder / "p*.parquet", memory=memory, sample_rows=None)


def fit(rows, **options):
    return pgm_bma.LatentClassClusterer(2, n_init=1, max_iter=3, random_state=0).fit(rows, **options)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("memory", ["1GB", 1000])
@pytest.mark.parametrize(
    "parts",
    [
        [GOOD.iloc[:0], GOOD, GOOD.iloc[:0]],
        [GOOD[:60], GOOD[60:][["class", "number", "text"]]],
        [GOOD.assign(day=DAYS)],
        [GOOD.assign(day=DAYS.date)],
        [pa.Table.from_pandas(GOOD).append_column("gaps", pa.array([1.0, None, np.nan, 2.0] * (N_ROWS // 4)))],
    ],
    ids=["empty files", "another order", "times with a zone", "dates", "NaN and null"],
)
def test_odd_tables_are_read_as_in_memory(parts, memory, tmp_path):
    got = fit(scan(tmp_path, parts, memory))
    frames = [part.to_pandas() if isinstance(part, pa.Table) else part for part in parts]
    want = fit(pd.concat([frame[frames[0].columns] for frame in frames if len(frame)], ignore_index=True))
    assert got.n_samples_ == N_ROWS and got.schema_ == want.schema_
    assert got.log_likelihood_ == pytest.approx(want.log_likelihood_, rel=1e-9)


TWICE = pa.table([pa.array(["x", "y"])] * 2, names=["a", "a"])
REFUSED = {
    "durations": ([GOOD.assign(x=pd.to_timedelta(np.arange(N_ROWS) % 3, unit="h"))], "'x' of .*p0.* holds durations; write"),
    "a name twice": ([TWICE], "p0.parquet has two columns 'a'; rename one"),
    "no columns": ([pa.table({})], "p0.parquet has no columns"),
    "another type": ([GOOD, GOOD.assign(number="1")], r"column 'number' holds numbers in .*p0.* and texts in .*p1"),
    "a column less": ([GOOD, GOOD.drop(columns="text")], "p1.parquet lacks the column 'text' that .*p0.parquet has"),
    "lists": ([GOOD.assign(x=[[1, 2]] * N_ROWS)], r"column 'x' holds \[1, 2\], which cannot be a state"),
}  # fmt: skip


@pytest.mark.parametrize("memory", ["1GB", 1000])
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_refusals_name_file_column_and_cure(name, memory, tmp_path):
    parts, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        fit(scan(tmp_path, parts, memory))


WEIGHTS = {"a missing value": np.nan, "-1": -1.0, "inf": np.inf}


def on_dask(frame, memory):
    import dask.dataframe as dd

    return pgm_bma.scan_table(dd.from_pandas(frame, npartitions=2), memory=memory, sample_rows=None)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("memory", ["1GB", 1000])
def test_weights_that_are_none(memory, tmp_path, monkeypatch):
    for engine in (scan_duckdb, scan_dask):
        monkeypatch.setattr(engine, "BATCH", 20)
    for told, value in WEIGHTS.items():
        frame = GOOD.assign(w=np.where(np.arange(N_ROWS) == 7, value, 2.0))
        for rows in (scan(tmp_path, [frame], memory), on_dask(frame, memory)):
            with pytest.raises(ValueError, match=f"the column 'w' of sample_weight holds {told}; weights are finite"):
                fit(rows, sample_weight="w")
    # batches, a whole file and a partition in which every row has weight 0
    half = np.arange(N_ROWS) < N_ROWS // 2
    frame = GOOD.assign(w=np.where(half, 0.0, 1.5), text=GOOD["text"].where(~half, "never with a weight"))
    want = fit(GOOD[~half], sample_weight=np.full((~half).sum(), 1.5))
    for rows in (scan(tmp_path, [frame[half], frame[~half]], memory), on_dask(frame, memory)):
        got = fit(rows, sample_weight="w")
        assert got.n_samples_ == (~half).sum() and got.schema_ == want.schema_
        assert got.log_likelihood_ == pytest.approx(want.log_likelihood_, rel=1e-9)


def test_a_key_is_no_variable(tmp_path, monkeypatch):
    monkeypatch.setattr(scan_rows, "MAX_STATES", 50)
    frame = GOOD.assign(key=[f"u{i}" for i in range(N_ROWS)])
    for rows in (scan(tmp_path, [frame], 1000), on_dask(frame, 1000)):
        with pytest.raises(ValueError, match=r"column 'key' has more than 50 different values, .* scan.drop\('key'\)"):
            fit(rows)
    assert len(scan_dask.partition_values(frame, ["key"], None, 50)[1][0][0]) == 51  # no more are sent


def test_rows_that_change_between_passes(tmp_path):
    rows = scan_rows.scanned_rows(scan(tmp_path, [GOOD], 1000))
    pq.write_table(pa.Table.from_pandas(GOOD.assign(text="new")), tmp_path / "p0.parquet")
    with pytest.raises(ValueError, match="column 'text' holds 'new', which the first pass over the rows did not find"):
        rows.collect(len)


def test_an_empty_csv_file(tmp_path):
    GOOD.to_csv(tmp_path / "a.csv", index=False)
    (tmp_path / "b.csv").write_text("")
    with pytest.raises(ValueError, match=r"b\.csv is empty; leave it out"):
        pgm_bma.scan_csv(tmp_path / "*.csv")


NAMES = ["d[1]", "d?", "d*", "~", "[!a]"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_of_that_name_wins_over_the_pattern(name, suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    read = pgm_bma.scan_csv if suffix == ".csv" else pgm_bma.scan_parquet
    for stem in ("d1", "dx", "root", "b", name):
        frame = pd.DataFrame({"file": [stem] * 3})
        frame.to_csv(stem + suffix, index=False) if suffix == ".csv" else frame.to_parquet(stem + suffix)
    assert read(name + suffix).fold().frame["file"].tolist() == [name]
    assert read(tmp_path / (name + suffix)).fold().frame["file"].tolist() == [name]
    if name == "d?":  # no file has that name any more: a pattern
        (tmp_path / f"d?{suffix}").unlink()
        assert set(read(f"d?{suffix}").fold().frame["file"]) == {"d1", "dx"}


def test_a_folder_called_like_a_value_makes_no_column(tmp_path):
    (tmp_path / "year=1").mkdir()
    pd.DataFrame({"a": ["x"]}).to_csv(tmp_path / "year=1" / "t.csv", index=False)
    assert pgm_bma.scan_csv(tmp_path / "year=1" / "t.csv").names == ["a"]


def test_a_column_without_a_name_is_refused(tmp_path):
    pq.write_table(pa.table({"": ["x"], "b": ["y"]}), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match="a column has an empty name"):
        pgm_bma.scan_parquet(tmp_path / "t.parquet")
