"""Blocks and their sums: a fixed tree, the same blocks however rows arrive, the same bits on any number of workers."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

import pgm_bma
from pgm_bma.foundation.rows import blocks
from pgm_bma.foundation.rows import scanned_rows as scan_margins
from pgm_bma.foundation.rows.blocks import Block, cut_blocks, tree_sum
from pgm_bma.foundation.rows.dask_scan import local_workers
from pgm_bma.foundation.rows.scan import as_scan
from pgm_bma.foundation.rows.scanned_rows import scanned_rows
from tests.foundation.scanned import CLASSIFIERS, cut, differences, make_table, write_parts

COUNTED = ["naive Bayes", "averaged naive Bayes"]
MODES = ["EM", "EMA variational", "EMA linear"]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)


@pytest.fixture(scope="module")
def parts():
    found = cut(make_table(900, missing=0.15), 3)
    return [part.assign(half=part["half"].astype(str)) for part in found]  # in memory, classifiers would cut fractions


@pytest.fixture(scope="module")
def pattern(parts, tmp_path_factory):
    return write_parts(parts, tmp_path_factory.mktemp("parts"))


def clusterer(mode, n_init=30, **options):
    kind = pgm_bma.LatentClassClusterer if mode == "EM" else pgm_bma.EMAClusterer
    averaging = {} if mode == "EM" else {"averaging": mode.removeprefix("EMA ")}
    return kind(2, n_init=n_init, tol=1e-9, random_state=0, categorical_columns=["half"], **averaging, **options)


def test_the_tree_is_fixed_by_position():
    values = np.random.default_rng(0).random(11) * 10.0 ** np.arange(11)
    v = values.tolist()
    left = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))
    assert tree_sum((x,) for x in v) == (left + ((v[8] + v[9]) + v[10]),)
    with pytest.raises(ValueError, match="no rows"):
        tree_sum([])


@pytest.mark.parametrize("sizes", [[1000], [97, 97, 806], [1] * 1000, [500, 0, 500]])
def test_blocks_do_not_depend_on_how_rows_arrive(sizes):
    codes = np.arange(2000, dtype=np.int16).reshape(1000, 2)
    weights = np.arange(1000.0)
    pieces = [Block(codes[a : a + n], weights[a : a + n]) for a, n in zip(np.cumsum([0, *sizes]), sizes)]
    found = list(cut_blocks(pieces))
    assert [len(block.codes) for block in found] == [97] * 10 + [30]
    assert (np.concatenate([block.codes for block in found]) == codes).all()
    assert (np.concatenate([block.weights for block in found]) == weights).all()


@pytest.mark.parametrize("mode", MODES)
def test_fits_in_passes_equal_the_fit_in_memory(mode, pattern, parts):
    """Missing cells, categoricals whose categories differ between files, 30 starts, converged."""
    want = clusterer(mode).fit(pd.concat(parts, ignore_index=True))
    scan = pgm_bma.scan_parquet(pattern, memory=1000, sample_rows=None)
    got = clusterer(mode).fit(scan)
    assert got.schema_ == want.schema_ and got.n_samples_ == want.n_samples_ == 900
    assert got.converged_ and got.feature_names_in_.tolist() == want.feature_names_in_.tolist()
    assert got.log_likelihood_ == pytest.approx(want.log_likelihood_, rel=1e-9)
    assert got.evidence_bound_ == pytest.approx(want.evidence_bound_, rel=1e-9)
    np.testing.assert_allclose(got.arc_posterior_, want.arc_posterior_, atol=1e-9)
    np.testing.assert_allclose(got.starts_["score"], want.starts_["score"], rtol=1e-9)
    frame = pd.concat(parts, ignore_index=True)
    np.testing.assert_allclose(got.predict_proba(frame), want.predict_proba(frame), atol=1e-9)
    with pytest.raises(AttributeError, match="predict_to"):
        _ = got.labels_


def test_declared_states_weights_and_a_range(parts, tmp_path):
    weighted = [part.assign(w=np.arange(len(part)) % 3) for part in parts]
    frame = pd.concat(weighted, ignore_index=True)
    options = {"n_init": 4, "state_names": {"text": ["high", "never seen", "low", "mid"]}}
    scan = pgm_bma.scan_parquet(write_parts(weighted, tmp_path), memory=1000, sample_rows=None)
    want = clusterer("EMA variational", **options).set_params(n_clusters=range(1, 4))
    got = clusterer("EMA variational", **options).set_params(n_clusters=range(1, 4)).fit(scan, sample_weight="w")
    want.fit(frame.drop(columns="w"), sample_weight=frame["w"])
    assert got.n_samples_ == want.n_samples_ == (frame["w"] > 0).sum()
    np.testing.assert_allclose(got.n_clusters_path_["score"], want.n_clusters_path_["score"], rtol=1e-9)
    assert got.log_likelihood_ == pytest.approx(want.log_likelihood_, rel=1e-9)
    with pytest.raises(ValueError, match=r"column 'text' holds '.*', which state_names\['text'\] does not list"):
        clusterer("EM", state_names={"text": ["high"]}).fit(scan)


@pytest.mark.filterwarnings("ignore:columns? .* holds? (one value only|no value)")  # expected of this table
def test_columns_without_values_and_bad_columns(parts, tmp_path):
    odd = [part.assign(nothing=pd.Series([None] * len(part), dtype=object), one="same") for part in parts]
    frame = pd.concat(odd, ignore_index=True)
    scan = pgm_bma.scan_parquet(write_parts(odd, tmp_path), memory=1000, sample_rows=None)
    with pytest.warns(UserWarning, match="'one' holds one value only.* 'nothing' holds no value"):
        got = clusterer("EMA linear", 3).fit(scan)
    want = clusterer("EMA linear", 3).fit(frame)
    assert got.schema_ == want.schema_ and got.log_likelihood_ == pytest.approx(want.log_likelihood_, rel=1e-9)
    with pytest.raises(ValueError, match=r"sample_weight='missing' is not a column; the columns are 'text', 'number'"):
        clusterer("EM").fit(scan, sample_weight="missing")
    with pytest.raises(ValueError, match=r"sample_weight='text' names a column that holds .*; weights are numbers"):
        clusterer("EM").fit(scan, sample_weight="text")
    pd.DataFrame({"x": np.random.default_rng(0).random(500)}).to_parquet(tmp_path / "floats.parquet")
    with pytest.raises(ValueError, match="column 'x' holds 500 different float values; discretise it first"):
        states = pgm_bma.LatentClassClusterer(2, categorical_columns=["x"])
        states.fit(pgm_bma.scan_parquet(tmp_path / "floats.parquet", memory=1000))


def test_csv_in_passes(tmp_path, parts):
    frame = pd.concat(parts, ignore_index=True)[["text", "half", "flag"]]
    for i in range(3):
        frame.iloc[i * 300 : (i + 1) * 300].to_csv(tmp_path / f"t{i}.csv", index=False)
    frame.to_csv(tmp_path / "all.csv", index=False)
    want = clusterer("EM", 4).fit(pd.read_csv(tmp_path / "all.csv"))
    got = clusterer("EM", 4).fit(pgm_bma.scan_csv(tmp_path / "t*.csv", memory=1000, sample_rows=None))
    assert got.schema_ == want.schema_
    assert got.log_likelihood_ == pytest.approx(want.log_likelihood_, rel=1e-9)


def test_screening_is_told_in_starts(pattern):
    got = clusterer("EMA variational", 10).fit(pgm_bma.scan_parquet(pattern, memory=1000, sample_rows=300))
    full = clusterer("EMA variational", 10).fit(pgm_bma.scan_parquet(pattern, memory=1000, sample_rows=None))
    assert set(got.starts_["stage"]) == {1, 2} and (got.starts_["weight"] > 0).any()
    assert (got.starts_.loc[got.starts_["stage"] == 1, "weight"] == 0).all()
    assert got.log_likelihood_ == pytest.approx(full.log_likelihood_, rel=1e-6)


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("name", COUNTED)
def test_naive_bayes_needs_counts_only(name, weight, parts, tmp_path):
    weighted = [part.assign(w=np.arange(len(part)) % 3) for part in parts]
    frame = pd.concat(weighted, ignore_index=True)
    scan = pgm_bma.scan_parquet(write_parts(weighted, tmp_path), memory=1000)
    X, scan = (frame, scan) if weight else (frame.drop(columns="w"), scan.drop("w"))
    want = CLASSIFIERS[name]().fit(X.drop(columns="w", errors="ignore"), "class", sample_weight=weight and X["w"])
    got = CLASSIFIERS[name]().fit(scan, "class", sample_weight=weight)
    assert differences(vars(want), vars(got)) == []  # whole numbers: the same bits
    with pytest.raises(ValueError, match="y='nothing' is not a column of X"):
        CLASSIFIERS[name]().fit(scan, "nothing")


def test_the_smallest_table_has_the_counts():
    rng = np.random.default_rng(0)
    shares = [rng.multinomial(1000, rng.dirichlet(np.ones(n))).astype(float) for n in (2, 3, 6)]
    codes, weights = scan_margins.lay_out(shares)
    assert len(weights) <= 2 + 3 + 6 and (weights > 0).all()
    for i, counts in enumerate(shares):
        slot = np.where(codes[:, i] < 0, len(counts) - 1, codes[:, i])
        assert np.bincount(slot, weights, minlength=len(counts)).tolist() == counts.tolist()


# ------------------------------------------------------------------------------------------------------------ dask


@pytest.fixture(scope="module")
def frames(parts):
    import dask.dataframe as dd

    paths = list(range(len(parts)))
    return dd.from_map(_part, paths, parts=parts, meta=parts[0].iloc[:0])


def _part(number, parts):
    return parts[number]


def _set_block_rows(n_rows):
    from pgm_bma.foundation.rows import blocks as module

    module.BLOCK_ROWS = n_rows


def bits(found):
    return found._result.theta.tobytes(), found.log_likelihood_, found.evidence_bound_, found.score_path_.tobytes()


def test_dask_without_a_cluster_has_the_bits_of_files(frames, pattern):
    for mode in MODES:
        got = clusterer(mode, 4).fit(pgm_bma.scan_table(frames, memory=1000, sample_rows=None))
        want = clusterer(mode, 4).fit(pgm_bma.scan_parquet(pattern, memory=1000, sample_rows=None))
        assert bits(got) == bits(want)  # partitions are the files: the same blocks


KILLED = {  # kind of passes -> (estimator, columns, in which pass a worker dies)
    "one pass": (pgm_bma.TANClassifier, ["text", "number", "half", "class"], 1),
    "passes over kept blocks": (lambda: clusterer("EMA variational", 4), None, 6),
}


@pytest.mark.skipif(os.name == "nt", reason="no SIGKILL on Windows")
def test_a_worker_killed_in_the_middle_changes_no_bit(frames, pattern, monkeypatch, tmp_path):
    real, passes, marks = blocks.ClusterRows.sums, [], []

    def sums(self, f, *args):
        passes.append(f)
        if len(passes) == marks[-1][1]:
            return real(self, die_once, str(marks[-1][0]), f, args)
        return real(self, f, *args)

    monkeypatch.setattr(blocks.ClusterRows, "sums", sums)
    with local_workers(2, "1GB") as client:
        client.register_plugin(_SmallBlocks())  # on workers that come later too
        for k, (make, columns, number) in enumerate(KILLED.values()):
            passes.clear()
            marks.append((tmp_path / f"died-{k}", number))
            files, dask = (
                pgm_bma.scan_parquet(pattern, memory=1000, sample_rows=None),
                pgm_bma.scan_table(frames, memory=1000, sample_rows=None),
            )
            files, dask = (scan if columns is None else scan.select(columns) for scan in (files, dask))
            want = make().fit(files, "class") if columns else make().fit(files)
            got = make().fit(dask, "class") if columns else make().fit(dask)
            died = int(marks[-1][0].read_text())
            assert died not in client.run(os.getpid).values() and len(passes) >= number
            assert differences(vars(want), vars(got)) == []


def die_once(block, mark, f, args):
    """Kill the worker with -9 in the middle of a pass, the first time."""
    try:
        with open(mark, "x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return f(block, *args)
    os.kill(os.getpid(), signal.SIGKILL)


try:
    from distributed import WorkerPlugin
except ImportError:  # the tests that need it fail by name
    WorkerPlugin = object


class _SmallBlocks(WorkerPlugin):
    def setup(self, worker):
        _set_block_rows(97)


def test_profile_of_partitions_equals_that_of_files(frames, pattern):
    a, b = (scanned_rows(as_scan(x)) for x in (frames, pgm_bma.scan_parquet(pattern)))
    assert a.schema == b.schema and a.n_rows == b.n_rows == 900
    assert a.state_counts.tolist() == b.state_counts.tolist()
    assert a.has_missing.tolist() == b.has_missing.tolist() == [True, True, True, True, False, False, False]
