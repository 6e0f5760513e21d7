"""Instructions of five kernels, counted by callgrind, as a ratio between two commits: a busy machine does not change them.

    python -m benchmarks instructions COMMIT [COMMIT]

The second commit is HEAD by default. Every work of `over_time.works.SMALL` runs once to compile and once to be counted, on
the package of the commit, with code for a plain processor (callgrind does not know every instruction). Imports and
preparation are not counted.
It needs valgrind and a few minutes.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from ._common import Skip, parser, print_table, run, save_csv

HERE = Path(__file__).resolve().parent
PLAIN = {
    "NUMBA_CPU_NAME": "generic",
    "NUMBA_CPU_FEATURES": "",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("commits", nargs="+", help="one or two commits")
    chosen = options.parse_args(argv)
    if shutil.which("valgrind") is None:
        raise Skip("valgrind is not installed here (apt install valgrind)")
    before, after = [*chosen.commits, "HEAD"][:2]
    first, second = counted(before), counted(after)
    rows = [
        {"work": work, "before": first[work], "after": second[work], "ratio": second[work] / first[work]}
        for work in first
    ]
    print_table(rows, f"instructions at {before} and {after}")
    save_csv(rows, "instructions", chosen.out)


def counted(commit):
    """{work: instructions} on the package of a commit, with the works of this checkout."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        archive = subprocess.run(["git", "archive", commit, "pgm_bma", "data"], cwd=HERE.parent, capture_output=True)
        if archive.returncode:
            raise SystemExit(f"commit {commit!r} cannot be read: {archive.stderr.decode().strip()}")
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as file:
            file.extractall(tree, filter="data")
        environment = {**os.environ, **PLAIN, "PYTHONPATH": str(tree), "XDG_CACHE_HOME": folder}
        child = [sys.executable, str(HERE / "_counted.py"), str(HERE / "over_time")]
        call = {"env": environment, "cwd": folder, "check": True, "capture_output": True, "text": True}
        subprocess.run([*child, "compile"], **call)
        tool = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/count"]
        names = subprocess.run([*tool, *child, "count"], **call).stdout.splitlines()
        totals = [(Path(folder) / f"count.{i}").read_text(encoding="utf-8") for i in range(1, len(names) + 1)]
        return {name: int(re.search(r"^totals: (\d+)", text, re.M)[1]) for name, text in zip(names, totals)}


if __name__ == "__main__":
    run(main)
