"""Where compiled kernels are kept: never beside the sources, shared by equal sources, given up where it cannot be written."""

import os
import subprocess
import sys
from pathlib import Path

import pgm_bma
from pgm_bma.foundation import compiling

SOURCES = Path(pgm_bma.__file__).parent
CODE = """
import numpy as np
from pgm_bma.foundation import compiling
from pgm_bma.foundation._special_kernels import log_gamma
print(log_gamma(3.0), sum(log_gamma.stats.cache_hits.values()), compiling.cache_folder())
"""


def run(**environment):
    environment = {**os.environ, "PYTHONPATH": str(SOURCES.parent), **environment}
    environment = {name: value for name, value in environment.items() if value is not None}
    return subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


def test_kernels_are_kept_in_the_cache_folder_of_the_user(tmp_path):
    value, hits, folder = run(XDG_CACHE_HOME=str(tmp_path), NUMBA_CACHE_DIR=None)
    assert abs(float(value) - 0.6931471805599453) < 1e-12  # log 2!
    assert (hits, Path(folder).is_relative_to(tmp_path)) == ("0", True)
    assert list(Path(folder).rglob("*.nbi"))
    assert run(XDG_CACHE_HOME=str(tmp_path), NUMBA_CACHE_DIR=None)[1] == "1"


def test_numba_cache_dir_wins(tmp_path):
    folder = run(XDG_CACHE_HOME=str(tmp_path / "a"), NUMBA_CACHE_DIR=str(tmp_path / "b"))[2]
    assert Path(folder).is_relative_to(tmp_path / "b")
    assert not (tmp_path / "a").exists()


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path):
    (tmp_path / "file").write_text("in the way")
    value, hits, _ = run(XDG_CACHE_HOME=str(tmp_path / "file"), NUMBA_CACHE_DIR=None)
    assert (round(float(value), 6), hits) == (0.693147, "0")


def test_nothing_is_written_beside_the_sources():
    assert not [*SOURCES.rglob("*.nbi"), *SOURCES.rglob("*.nbc")]


def test_the_key_follows_the_content_of_all_kernels(monkeypatch, tmp_path):
    before = compiling._content_key()
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "_x_kernels.py").write_text("a = 1")
    monkeypatch.setattr(compiling, "_PACKAGE", tmp_path)
    monkeypatch.setattr(compiling, "__file__", str(tmp_path / "compiling.py"))
    (tmp_path / "compiling.py").write_text("")
    keys = {before}
    for text in ("a = 1", "a = 2"):
        (tmp_path / "orders" / "_x_kernels.py").write_text(text)
        compiling._content_key.cache_clear()
        keys.add(compiling._content_key())
    compiling._content_key.cache_clear()
    assert len(keys) == 3
