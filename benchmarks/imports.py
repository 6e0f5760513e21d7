"""What a first fit in a new process costs above ``import numba, pandas, sklearn.base``: CPU seconds, compiled code in the cache.

Each line is the median of several processes. A process imports the three, makes a small table, and then the clock runs over
the import of the estimator and its fit; so base and difference are from the same run. "brings" are the packages that this
imports beyond the three and what they import; numba's own parts ("numba", loaded when the first kernel is) are most of the time.
"""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from ._common import parser, print_line, print_table, run, save_csv
from .first_call import FITS

SCRIPT = """
import time
import numba, pandas, sklearn.base
base = time.process_time()
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
name, parameters = sys.argv[1], json.loads(sys.argv[2])
X = pandas.DataFrame(np.random.default_rng(0).choice(list("abc"), (200, 6)), columns=list("uvwxyz"))
y = X.pop("z")
before, began = set(sys.modules), time.process_time()
import pgm_bma
estimator = getattr(pgm_bma, name)(**parameters)
imported = time.process_time()
estimator.fit(X, y) if name.endswith("Classifier") else estimator.fit(X)
ended = time.process_time()
brings = sorted({module.split(".")[0] for module in set(sys.modules) - before} - {"pgm_bma"} - set(sys.stdlib_module_names))
print(json.dumps({"base": base, "import": imported - began, "fit": ended - imported, "brings": brings}))
"""


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--only", default="", help="estimators, separated by commas")
    options.add_argument("--repeats", type=int, default=5, help="processes per estimator (default 5)")
    arguments = options.parse_args(argv)
    rows = []
    for name, parameters in {**FITS, "EMAClusterer": {}}.items():
        if not arguments.only or name in arguments.only.split(","):
            rows.append(measure(name, parameters, arguments.repeats))
            print_line(rows[-1])
    print_table(rows)
    save_csv(rows, "imports", arguments.out)


def measure(name, parameters, repeats):
    in_new_process(name, parameters)  # leaves its compiled code in the cache
    said = [in_new_process(name, parameters) for _ in range(repeats)]
    cost = {part: statistics.median(one[part] for one in said) for part in ("base", "import", "fit")}
    above = statistics.median(one["import"] + one["fit"] for one in said)
    return {"estimator": name, **cost, "above base": above, "brings": " ".join(said[0]["brings"])}


def in_new_process(name, parameters):
    """CPU seconds of base, import and fit, and the packages that came with the last two."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-c", SCRIPT, name, json.dumps(parameters)]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    run(main)
