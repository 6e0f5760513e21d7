"""The first fit of every estimator in a fresh process: CPU seconds with an empty cache of compiled code, and with a warm one.

Each row is two processes with their own NUMBA_CACHE_DIR: the first finds it empty and compiles, the second finds what the
first left. CPU time of the process (imports apart), because wall time depends on what else runs; "files" is how many compiled
functions the first left behind. The table (votes) has missing cells; "complete" is the same one with them as states: where cells
are missing, forests and orders compile their ways with them too.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ._common import parser, print_line, print_table, run, save_csv

# estimator -> parameters of a small but ordinary fit
FITS = {
    "NaiveBayesClassifier": {},
    "AveragedNaiveBayesClassifier": {},
    "TANClassifier": {},
    "ForestAveragedClassifier": {},
    "KikuchiBayesClassifier": {},
    "OrderAveragedClassifier": {},
    "OrderPosterior": {},
    "LatentClassClusterer": {"n_clusters": 2},
    "EMAClusterer": {"n_clusters": 2},
    "StructuralEMClusterer": {"n_clusters": 2},
    "ForestAveragedClusterer": {"n_clusters": 2},
}
SCRIPT = """
import sys, time, warnings
warnings.simplefilter("ignore")
import pgm_bma
name, parameters = sys.argv[1], eval(sys.argv[2])
estimator = getattr(pgm_bma, name)(**parameters)
frame, target = pgm_bma.load_dataset("voting")
X, y = frame.drop(columns=target).iloc[:, :8], frame[target]
if sys.argv[3] == "complete":
    X = X.fillna("?")
began = time.process_time()
if name.endswith("Classifier"):
    estimator.fit(X, y).predict_proba(X)
elif name.endswith("Clusterer"):
    estimator.fit(X).predict_proba(X)
else:
    estimator.fit(X)
print(time.process_time() - began)
"""


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--only", default="", help="estimators, separated by commas")
    arguments = options.parse_args(argv)
    rows = []
    for name, parameters in FITS.items():
        if not arguments.only or name in arguments.only.split(","):
            rows.append(measure(name, parameters))
            print_line(rows[-1])
    print_table(rows)
    save_csv(rows, "first_call", arguments.out, keys=["estimator"] if arguments.only else None)


def measure(name, parameters):
    with tempfile.TemporaryDirectory() as cache:
        cold = first_fit(name, parameters, cache)
        files = sum(path.is_file() for path in Path(cache).rglob("*.nbc"))
        warm = first_fit(name, parameters, cache)
    with tempfile.TemporaryDirectory() as cache:
        complete = first_fit(name, parameters, cache, "complete")
    return {"estimator": name, "cold": cold, "cold, complete": complete, "warm": warm, "files": files}


def first_fit(name, parameters, cache, rows="gaps"):
    """CPU seconds of the first fit and prediction in a fresh process that keeps compiled code in `cache`."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": path}
    words = [sys.executable, "-c", SCRIPT, name, repr(parameters), rows]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    run(main)
