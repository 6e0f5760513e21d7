"""Where compiled kernels are kept: never beside the sources, shared by equal sources, given up where it cannot be written."""

import os
import subprocess
import sys
from pathlib import Path

import pgm_bma
from pgm_bma.foundation.runtime import compiling

SOURCES = Path(pgm_bma.__file__).parent
CODE = """
import numpy as np
from pgm_bma.foundation.runtime import compiling
compiling.announce["to"] = lambda line: None
from pgm_bma.foundation.numbers._kernels import log_gamma
print(log_gamma(3.0), sum(log_gamma.stats.cache_hits.values()), compiling.cache_folder(), compiling.announce["said"])
"""


def run(**environment):
    environment = {**os.environ, "PYTHONPATH": str(SOURCES.parent), **environment}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


def test_kernels_are_kept_in_the_cache_folder_of_the_user(tmp_path):
    value, hits, folder, was_announced = run(XDG_CACHE_HOME=str(tmp_path), NUMBA_CACHE_DIR=None)
    assert abs(float(value) - 0.6931471805599453) < 1e-12  # log 2!
    assert (hits, Path(folder).is_relative_to(tmp_path), was_announced) == ("0", True, "True")
    assert list(Path(folder).rglob("*.nbi"))
    # the other kernels of that file were never called: that they have no code yet is no reason to announce anything
    _, hits, _, was_announced = run(XDG_CACHE_HOME=str(tmp_path), NUMBA_CACHE_DIR=None)
    assert (hits, was_announced) == ("1", "False")


def test_numba_cache_dir_wins(tmp_path):
    folder = run(XDG_CACHE_HOME=str(tmp_path / "a"), NUMBA_CACHE_DIR=str(tmp_path / "b"))[2]
    assert Path(folder).is_relative_to(tmp_path / "b")
    assert not (tmp_path / "a").exists()


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "file").write_text("in the way")
    value, hits, *_ = run(XDG_CACHE_HOME=str(tmp_path / "file"), NUMBA_CACHE_DIR=None)
    assert (round(float(value), 6), hits) == (0.693147, "0")


def test_nothing_is_written_beside_the_sources():
    assert not [*SOURCES.rglob("*.nbi"), *SOURCES.rglob("*.nbc")]


def key():
    compiling.content_key.cache_clear()
    return compiling.content_key()


def test_the_key_follows_the_content_of_all_kernels(monkeypatch, tmp_path):
    monkeypatch.setattr(compiling, "_PACKAGE", tmp_path)
    kernels, other = tmp_path / "a" / "_kernels.py", tmp_path / "a" / "other.py"
    kernels.parent.mkdir()
    keys = []
    for text, aside in (("a = 1", ""), ("a = 2", ""), ("a = 1", "b = 1")):
        kernels.write_text(text)
        other.write_text(aside)
        keys.append(key())
    (tmp_path / "_more_kernels.py").write_text("")  # a new file may bring new records for old kernels
    assert keys[0] != keys[1] and keys[0] == keys[2] and key() not in keys
    monkeypatch.undo()
    key()


def test_each_version_of_numba_has_its_own_folders(monkeypatch):
    before = key()
    monkeypatch.setattr(compiling.numba, "__version__", "0.60.0")
    assert key() != before
    monkeypatch.undo()
    assert key() == before


def test_small_products_have_one_thread_and_large_ones_what_they_had():
    from threadpoolctl import threadpool_info, threadpool_limits

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        before = threads()
        with compiling.few_threads(1000):
            assert threads() == {1}
        assert threads() == before
        with compiling.few_threads(10**9):
            assert threads() == before
