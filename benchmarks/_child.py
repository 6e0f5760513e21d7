"""CPU seconds and memory of a piece of work: in a process of its own with a limit of CPU time, forked after the imports."""

import json
import math
import os
import resource
import signal
import sys
import time
import traceback


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
