"""Threads, forks, other processes, little memory, no home, a full disk: the same numbers, or an error that a caller can catch.

`benchmarks/surroundings.py` has larger tables, and eight processes that compile every kernel at once.
"""

import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.saved.make import ALL, KIND, answers, fitted

resource = pytest.importorskip("resource", reason="not on Windows")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks, and limits of the system"),
    pytest.mark.filterwarnings("ignore"),
]
FORK = multiprocessing.get_context("fork") if sys.platform == "linux" else None
# pgmpy's own estimators keep a switch that all threads share
NAMES = [name for name in ALL if KIND[name] in ("classifier", "clusterer", "structure", "columns")]
TOP = Path(__file__).parents[2]


@cache
def quiet(name):
    """What an estimator answers in a quiet process."""
    return answers(name, fitted(name))


@pytest.mark.parametrize("name", NAMES)
def test_threads_that_fit_at_once(name):
    wanted = quiet(name)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: answers(name, fitted(name)), range(4)):
            np.testing.assert_array_equal(found, wanted)


def in_child(work, *arguments):
    """What `work` returns in a forked child, or "died"."""
    read, told = FORK.Pipe(duplex=False)

    def run():
        try:
            told.send(work(*arguments))
        except (ValueError, MemoryError, OSError) as error:
            told.send(type(error).__name__)

    child = FORK.Process(target=run)
    child.start()
    told.close()
    found = "hangs"
    try:
        if read.poll(120):
            found = read.recv()
    except EOFError:
        found = "died"
    child.kill()
    child.join()
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_fork_after_a_fit(name):
    wanted = quiet(name)
    np.testing.assert_array_equal(in_child(lambda: answers(name, fitted(name))), wanted)


def little_memory(name, megabytes):
    """Fit until memory is used up; what is left of the limit grows with every try."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + megabytes * 2**20,) * 2)
    return answers(name, fitted(name))


@pytest.mark.parametrize("name", NAMES)
def test_little_memory_is_an_error_of_memory_or_no_error(name):
    wanted = quiet(name)
    for megabytes in (0, 1, 10, 300):
        found = in_child(little_memory, name, megabytes)
        if isinstance(found, str):
            assert found == "MemoryError" and megabytes < 300, found
        else:
            np.testing.assert_array_equal(found, wanted)


PICKLES = """
import pickle, sys
from tests.saved.make import answers
with open(sys.argv[1], "rb") as file:
    models = pickle.load(file)
found = {name: answers(name, model) for name, model in models.items()}
with open(sys.argv[1], "wb") as file:
    pickle.dump(found, file)
"""


def run(code, *words, **environment):
    environment = {**os.environ, "PYTHONPATH": str(TOP), **environment}
    environment = {name: value for name, value in environment.items() if value is not None}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *words], env=environment, capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return done.stdout


def test_models_travel_between_processes(tmp_path):
    path, models = tmp_path / "models", {name: fitted(name) for name in NAMES}
    path.write_bytes(pickle.dumps(models))
    run(PICKLES, str(path))
    for name, found in pickle.loads(path.read_bytes()).items():
        np.testing.assert_array_equal(found, answers(name, models[name]))


KERNEL = """
import resource, signal, sys
if "full" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
import numpy as np
from pgm_bma.foundation.numbers._kernels import log_gamma
assert abs(log_gamma(3.0) - np.log(2)) < 1e-12
"""


def test_a_full_disk_costs_only_time(tmp_path):
    run(KERNEL, "full", NUMBA_CACHE_DIR=str(tmp_path))
    assert not list(tmp_path.rglob("*.nb?"))


def test_no_home(tmp_path):
    run(KERNEL, HOME=None, XDG_CACHE_HOME=None, NUMBA_CACHE_DIR=None)


def test_processes_that_share_a_cold_cache(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(TOP), "NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-c", KERNEL]
    started = [subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(4)]
    assert [process.communicate()[1] for process in started] == [""] * 4
    assert [process.returncode for process in started] == [0] * 4
    assert list(tmp_path.rglob("*.nbi"))
