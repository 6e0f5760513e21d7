"""Run the small works once each while callgrind counts, and print their names. `instructions` calls this file under valgrind."""

import os
import subprocess
import sys
import time
from pathlib import Path


def ask(*words):
    """Send a command to the valgrind that runs this process."""
    with subprocess.Popen(["vgdb", f"--pid={os.getpid()}", *words], stderr=subprocess.DEVNULL) as sent:
        while sent.poll() is None:  # valgrind answers between two instructions of this process, so it must not block
            time.sleep(0.01)


def main(folder, count):
    """Prepare every work of the folder `over_time`; count what one more call does."""
    sys.path.insert(0, str(Path(folder).parent))
    from over_time.works import SMALL, prepared

    for name, work in SMALL.items():
        run = prepared(work)
        if count == "count":
            ask("instrumentation", "on")
            run()
            ask("dump")
            ask("instrumentation", "off")
        print(name, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
