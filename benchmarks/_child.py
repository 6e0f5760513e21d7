"""CPU seconds and memory of a piece of work, in a process of its own with a limit of CPU time; and of a first fit."""

import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path

with suppress(ImportError):  # Windows: pages read kept results of what cannot be run there
    import resource

FIRST_FIT = """
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


def in_child(work, limit):
    """What `work()` costs in a forked process: a dict of "cpu" (s), "mb" (peak above what it had before) and "ended" ("whole",
    "refused: ...", "over N s", "killed" or "failed"), with the numbers of the dict that `work` may return. Once more where code
    had to be compiled."""
    told = {}
    for _ in range(2):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            code = 1
            try:
                os.write(write, json.dumps(_measured(work, limit)).encode())
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            said = pipe.read()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            signals = {signal.SIGXCPU: f"over {limit} s", signal.SIGKILL: "killed"}
            return {"ended": signals.get(os.WTERMSIG(status), f"signal {os.WTERMSIG(status)}")}
        told = json.loads(said) if said else {"ended": "failed"}
        if not told.pop("compiled", False):
            break
    return told


def _measured(work, limit):
    """The work of a child: what it cost, and whether code was compiled meanwhile."""
    from pgm_bma.foundation.runtime.compiling import announce

    heard = []
    announce.update(to=heard.append, said=False)
    before, began = peak(), time.process_time()
    allowed = math.ceil(began + limit)
    resource.setrlimit(resource.RLIMIT_CPU, (allowed, allowed + 5))
    try:
        more = work()
    except (ValueError, MemoryError) as error:
        return {"ended": f"refused: {str(error).splitlines()[0][:300]}"}
    cost = {"cpu": time.process_time() - began, "mb": peak() - before, "ended": "whole", "compiled": bool(heard)}
    return {**cost, **(more if isinstance(more, dict) else {})}


def peak():
    """Largest resident memory of this process so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def first_fit(name, parameters, repeats):
    """Medians of what a first fit in a new process costs above ``import numba, pandas, sklearn.base``, in CPU seconds."""
    in_new_process(name, parameters)  # leaves its compiled code in the cache
    said = [in_new_process(name, parameters) for _ in range(repeats)]
    cost = {part: statistics.median(one[part] for one in said) for part in ("base", "import", "fit")}
    above = statistics.median(one["import"] + one["fit"] for one in said)
    return {"estimator": name, **cost, "above base": above, "brings": " ".join(said[0]["brings"])}


def in_new_process(name, parameters):
    """CPU seconds of base, import and fit, and the packages that came with the last two."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    words = [sys.executable, "-c", FIRST_FIT, name, json.dumps(parameters)]
    done = subprocess.run(words, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)
