"""Every estimator in surroundings that are not kind: many processes and threads, forks, little memory, no home, a full disk.

Each line is one estimator in one place, in a process of its own with a limit of time. What may come out: the same numbers as in a
quiet process ("equal"), or an error of ours, of Python's memory or of the system that a caller can catch ("error: ..."). What must
not: a crash, a hang, other numbers.

    cold      eight processes at once, one empty cache of compiled kernels
    threads   four fits at once in one process, against the same fits one after the other
    fork      a fit in a child that was forked after a fit
    pickle    fitted in one process, asked in another
    memory    a larger table under limits of address space (ulimit -v), from what a small fit takes upwards
    homeless  no HOME, no cache folder
    readonly  a cache folder that cannot be written (left out for root, whom nothing stops)
    full      a cache folder and a file on a disk that is full: no file may grow
"""

import json
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from ._common import parser, print_line, run, save_csv

SMALL = {
    "LatentClassClusterer": {"n_init": 3, "random_state": 0},
    "EMAClusterer": {"n_init": 3, "random_state": 0},
    "StructuralEMClusterer": {"n_init": 2, "random_state": 0},
    "ForestAveragedClusterer": {"n_init": 2, "random_state": 0},
    "NaiveBayesClassifier": {},
    "AveragedNaiveBayesClassifier": {},
    "TANClassifier": {},
    "ForestAveragedClassifier": {"n_forests": 5},
    "AdditiveBayesClassifier": {},
    "KikuchiBayesClassifier": {"n_resamples": 10, "random_state": 0},
    "FixedOrderClassifier": {"random_state": 0},
    "OrderAveragedClassifier": {"random_state": 0},
    "OrderPosterior": {"random_state": 0},
}
LIMIT = 120  # CPU seconds of a child
IDLE = 30  # wall seconds in which a child that does not hang uses some CPU
EXTRA = (10, 50, 500)  # MB of address space above what the process has


def rows(n=300, n_columns=6, seed=0):
    """A table whose columns hang together, and a class."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    codes = np.where(rng.random((n, n_columns)) < 0.6, kind[:, None], rng.integers(0, 3, (n, n_columns)))
    return pd.DataFrame(codes, columns=[f"c{i}" for i in range(n_columns)]).astype(str), pd.Series(kind % 2, name="t")


def answer(name, n=300, n_columns=6, seed=0):
    """Numbers of a fit."""
    return ask(name, fitted(name, n, n_columns, seed))


def fitted(name, n=300, n_columns=6, seed=0):
    """The estimator, fitted."""
    return fit(name, *rows(n, n_columns, seed))


def fit(name, X, y):
    """The estimator, fitted to this table."""
    import pgm_bma

    estimator = getattr(pgm_bma, name)(**SMALL[name])
    return estimator.fit(X, y) if name.endswith("Classifier") else estimator.fit(X)


def ask(name, estimator):
    """Numbers of a fitted estimator."""
    if name == "OrderPosterior":
        return estimator.edge_posterior_.to_numpy()
    return estimator.predict_proba(rows(40, estimator.n_features_in_, 1)[0])


# ------------------------------------------------------------------------------------------------ in a process of its own


def told(work):
    """What became of `work()`: its text, or the error that it raised."""
    try:
        return work()
    except (ValueError, MemoryError, OSError) as error:
        return f"error: {type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"


def compare(found, wanted):
    """Equal to the last bit, as nothing random or parallel is between the two."""
    return "equal" if np.array_equal(found, wanted) else f"OTHER NUMBERS, by {np.abs(found - wanted).max():.1e}"


def forked(work):
    """What a forked child says, or how it died."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        os.write(write, told(work).encode())
        os._exit(0)
    os.close(write)
    used, since = 0.0, time.monotonic()
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        now = cpu_seconds(child)
        if now > used:
            used, since = now, time.monotonic()
        if now > LIMIT or time.monotonic() > since + IDLE:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"over {LIMIT} s" if now > LIMIT else "HANGS"
        time.sleep(0.02)
    with os.fdopen(read, "rb") as pipe:
        return pipe.read().decode() or "DIED"


def cpu_seconds(process):
    """What a process has used so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def in_threads(name):
    """Four fits at once."""
    wanted, found = [answer(name, seed=s) for s in range(4)], [None] * 4

    def work(seed):
        found[seed] = answer(name, seed=seed)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if any(each is None for each in found):
        return "FAILED in a thread"
    return max((compare(a, b) for a, b in zip(found, wanted)), key=len)


def after_fork(name):
    """A fit in a child that was forked after a fit."""
    wanted = answer(name)
    return forked(lambda: compare(answer(name), wanted))


def by_pickle(name):
    """Fitted here, asked in a new process."""
    estimator = fitted(name)
    words = [sys.executable, "-m", "benchmarks", "surroundings", "--child", "unpickle", "--name", name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fitted"
        path.write_bytes(pickle.dumps(estimator))
        done = subprocess.run([*words, "--path", str(path)], capture_output=True, timeout=LIMIT)
        if done.returncode:
            return f"FAILED: {done.stderr.decode()[-200:]}"
        return compare(np.load(path.with_suffix(".npy")), ask(name, estimator))


def in_little_memory(name):
    """A larger table in as many MB more than the process has; the smallest in which it fits, and what came before."""
    answer(name, 300, 40)  # compiled code is in memory
    outcomes, table = [], rows(100_000, 40)
    for extra in EXTRA:

        def limited(extra=extra):
            held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (held + extra * 2**20,) * 2)
            found = ask(name, fit(name, *table))
            return "equal" if np.isfinite(found).all() else "NaN"

        outcomes.append(f"{extra} MB {forked(limited)}")
    return "; ".join(outcomes)


def without_home(name):
    """What a fit answers, to be compared with one at home."""
    return json.dumps(answer(name).tolist())


PLACES = {"threads": in_threads, "fork": after_fork, "pickle": by_pickle, "memory": in_little_memory}


def child(place, name, path):
    """One line, in this process."""
    warnings.simplefilter("ignore")
    if place == "unpickle":
        np.save(path, ask(name, pickle.loads(Path(path).read_bytes())))
    elif place == "answer":
        print(told(lambda: without_home(name)))
    elif place == "full":
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        os.write(1, told(lambda: without_home(name)).encode())
    else:
        print(told(lambda: PLACES[place](name)))


# ------------------------------------------------------------------------------------------------ all lines


def start(place, name, **environment):
    """A child process; None takes a variable away."""
    words = [sys.executable, "-m", "benchmarks", "surroundings", "--child", place, "--name", name]
    settings = {**os.environ, **{key: value for key, value in environment.items() if value is not None}}
    settings = {key: value for key, value in settings.items() if environment.get(key, "") is not None}
    return subprocess.Popen(
        words, env=settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    )


def said(process):
    """What a child said, or how it ended."""
    try:
        out, err = process.communicate(timeout=30 * LIMIT)  # of a loaded machine
    except subprocess.TimeoutExpired:
        process.kill()
        return "HANGS"
    if process.returncode:
        return f"DIED ({process.returncode}): {err[-200:]}"
    return out.strip()


def same(name, *processes):
    """Whether children answer as a quiet process does."""
    wanted = json.loads(said(start("answer", name)))
    for process in processes:
        text = said(process)
        if not text.startswith("["):
            return text
        if json.loads(text) != wanted:
            return "OTHER NUMBERS"
    return "equal"


def lines(name, places):
    """(place, outcome) of one estimator."""
    for place in places:
        with tempfile.TemporaryDirectory() as folder:
            if place == "cold":
                yield place, same(name, *(start("answer", name, NUMBA_CACHE_DIR=folder) for _ in range(8)))
            elif place == "homeless":
                yield place, same(name, start("answer", name, HOME=None, XDG_CACHE_HOME=None, NUMBA_CACHE_DIR=None))
            elif place == "readonly":
                os.chmod(folder, 0o500)
                if os.access(folder, os.W_OK):  # root
                    blocked = Path(folder) / "file"
                    blocked.write_text("")
                    yield place, same(name, start("answer", name, NUMBA_CACHE_DIR=str(blocked / "below")))
                else:
                    yield place, same(name, start("answer", name, NUMBA_CACHE_DIR=folder))
            elif place == "full":
                yield place, same(name, start("full", name, NUMBA_CACHE_DIR=folder))
            else:
                yield place, said(start(place, name))


ALL = ("threads", "fork", "pickle", "memory", "homeless", "readonly", "full", "cold")


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--places", nargs="+", choices=ALL, default=list(ALL))
    options.add_argument("--names", nargs="+", choices=list(SMALL), default=list(SMALL))
    for word in ("--child", "--name", "--path"):
        options.add_argument(word, default="", help="one line in this process")
    arguments = options.parse_args(argv)
    if arguments.child:
        return child(arguments.child, arguments.name, arguments.path)
    found = []
    for name in arguments.names:
        for place, outcome in lines(name, arguments.places):
            found.append({"estimator": name, "place": place, "outcome": outcome})
            print_line(found[-1])
    save_csv(found, "surroundings", arguments.out, keys=["estimator", "place"])
    return None


if __name__ == "__main__":
    run(main)
