"""Processes that are killed while they write, and writes that the system cuts short: the old file or the new one, never a part.

Checkpoints under kill -9 are in tests/orders, closed pipes and Ctrl-C in tests/commands, a cache that cannot be written in
tests/foundation/test_compiling.py, flipped and missing bytes in tests/files.
"""

import multiprocessing
import os
import signal
import sys
import time

import pandas as pd
import pytest

import pgm_bma
from pgm_bma.commands.main import main

resource = pytest.importorskip("resource", reason="not on Windows")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="forks, and limits of the system"),
    # Python 3.12; the children do not use threads
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning"),
]
FORK = multiprocessing.get_context("fork") if sys.platform == "linux" else None  # nothing to import again


def estimator(alpha):
    X = pd.DataFrame({"a": list("uvw") * 40, "b": list("xy") * 60})
    return pgm_bma.TANClassifier(alpha=alpha).fit(X, pd.Series(list("pqqp") * 30))


def save_for_ever(fitted, path):
    while True:
        for one in fitted:
            pgm_bma.save(one, path)


def test_killed_while_saving(tmp_path):
    """kill -9 at thirty moments: every time the file is one of the two models."""
    path, fitted = tmp_path / "model", [estimator(0.25), estimator(0.5)]
    seen = []
    for moment in range(30):
        before = path.stat().st_ino if path.exists() else None
        writer = FORK.Process(target=save_for_ever, args=(fitted[:: -1 if moment % 2 else 1], path))
        writer.start()
        while not path.exists() or path.stat().st_ino == before:  # it has come to writing
            time.sleep(0.001)
        time.sleep(0.0005 * moment)
        os.kill(writer.pid, signal.SIGKILL)
        writer.join()
        seen.append(pgm_bma.load(path).alpha)
    assert set(seen) == {0.25, 0.5}, "killed at different places"
    pgm_bma.save(fitted[0], path)
    assert pgm_bma.load(path).alpha == 0.25


def limited(write, path, n_bytes, told):
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, n_bytes))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        write(path)
    except OSError as error:
        told.send(str(error))
    else:
        told.send("written")


def test_a_write_that_the_system_cuts_short(tmp_path):
    """As on a full disk, by a limit of the system itself: some bytes of the draft are written, then an error comes."""
    path, fitted = tmp_path / "model.pgm", estimator(0.5)
    pgm_bma.save(fitted, path)
    before, network = path.read_bytes(), fitted.model_
    assert len(before) > 500
    for n_bytes in (0, 1, 500):
        for write, file in (
            (lambda p: pgm_bma.save(fitted, p), path),
            (lambda p: pgm_bma.write_bif(network, p), tmp_path / "new.bif"),
        ):
            read, told = FORK.Pipe(duplex=False)
            writer = FORK.Process(target=limited, args=(write, file, n_bytes, told))
            writer.start()
            said = read.recv()
            writer.join()
            assert file.name in said and f"could not be written in {tmp_path}" in said
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["model.pgm"]


def command(words):
    sys.stdout = sys.stderr = open(os.devnull, "w")
    os._exit(main(words))


@pytest.mark.usefixtures("no_pictures")
def test_the_command_line_killed_and_run_again(tmp_path):
    """kill -9 while the files of a run are written: what is there can be read, and the same command writes all of it."""
    words = ["classify", "zoo", "--method=nb", "--cv=2", "--seed=0"]
    whole = FORK.Process(target=command, args=([*words, "--out", str(tmp_path / "whole")],))
    whole.start()
    whole.join()
    assert whole.exitcode == 0
    wanted = {p.name for p in (tmp_path / "whole").iterdir()}
    cut = 0
    for moment in (0.0, 0.1):
        folder = tmp_path / f"killed{moment}"
        run = FORK.Process(target=command, args=([*words, "--out", str(folder)],))
        run.start()
        while run.is_alive() and not (folder.exists() and any(folder.iterdir())):
            time.sleep(0.001)
        time.sleep(moment)
        os.kill(run.pid, signal.SIGKILL)
        run.join()
        cut += run.exitcode == -signal.SIGKILL
        for table in folder.glob("*.csv"):
            assert len(pd.read_csv(table))  # whole, or not there
        again = FORK.Process(target=command, args=([*words, "--out", str(folder)],))
        again.start()
        again.join()
        assert again.exitcode == 0
        assert {p.name for p in folder.iterdir() if not p.name.startswith(".")} == wanted
        assert (folder / "predictions.csv").read_bytes() == (tmp_path / "whole" / "predictions.csv").read_bytes()
    assert cut, "no run was caught in the middle"
