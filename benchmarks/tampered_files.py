"""Saved files that a stranger changed: every array of every kind of file, several ways, with checksums that fit again.

A changed file must give an error at load, or numbers as sound as before: probabilities that are finite and sum to one. A line says
how many changes an estimator had, how many were found at load, how many left the answers as they were, how many gave other sound
numbers (another probability is no damage that a reader could see), and how many ended otherwise: a crash, NaN, an error at use.
Each estimator is tried in a process of its own, so that a crash is counted and does not end the run.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from ._common import parser, print_line, run, save_csv


def judge(name, path, parts, wanted):
    """What became of one changed file."""
    import pgm_bma
    from tests.files.tampering import write_tampered
    from tests.saved.make import KIND, answers

    write_tampered(path, *parts)
    try:
        estimator = pgm_bma.load(path)
    except ValueError as error:
        return "found at load" if str(error).startswith(str(path)) else f"error in other words: {error}"
    try:
        found = answers(name, estimator)
    except Exception as error:
        return f"error at use: {type(error).__name__}: {error}"
    if found.shape != wanted.shape or not np.isfinite(found).all():
        return "NaN or another shape"
    if KIND[name] in ("classifier", "clusterer") and np.abs(found.sum(axis=1) - 1).max() > 1e-7:
        return "probabilities that do not sum to one"
    return "equal" if np.allclose(found, wanted, rtol=1e-9, atol=1e-12) else "other sound numbers"


def child(name, every):
    """All changes of one estimator; a line of JSON each, before it is tried and after."""
    import pgm_bma
    from tests.files.tampering import read_parts, tampered
    from tests.saved.make import answers, fitted

    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "changed.pgm"
        pgm_bma.save(fitted(name), path)
        wanted = answers(name, pgm_bma.load(path))
        for number, (what, *parts) in enumerate(tampered(*read_parts(path))):
            if number % every == 0:
                os.write(1, (json.dumps({"what": what}) + "\n").encode())
                os.write(1, (json.dumps({"outcome": judge(name, path, parts, wanted)}) + "\n").encode())


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--every", type=int, default=1, help="try every k-th change only")
    options.add_argument("--names", nargs="+", help="estimators (default: all)")
    options.add_argument("--child", default="", help="one estimator in this process")
    arguments = options.parse_args(argv)
    if arguments.child:
        return child(arguments.child, arguments.every)
    from tests.saved.make import ALL

    rows = []
    for name in arguments.names or ALL:
        words = [sys.executable, "-m", "benchmarks", "tampered_files", "--child", name, "--every", str(arguments.every)]
        done = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[1])
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        tried = [line["what"] for line in lines if "what" in line]
        outcomes = [line["outcome"] for line in lines if "outcome" in line]
        if done.returncode:
            outcomes.append(f"died ({done.returncode}): {done.stderr[-200:]}")
        good = ("found at load", "equal", "other sound numbers")
        bad = [f"{what}: {outcome}" for what, outcome in zip(tried, outcomes) if outcome not in good]
        rows.append(
            {
                "estimator": name,
                "changes": len(tried),
                **{each.replace(" ", "_"): outcomes.count(each) for each in good},
                "otherwise": len(bad),
                "first_of_these": bad[0][:200] if bad else "",
            }
        )
        print_line(rows[-1])
        for line in bad[:5]:
            print("   ", line[:200])
    save_csv(rows, "tampered_files", arguments.out, keys=["estimator"])
    print(f"{sum(row['changes'] for row in rows)} changes, {sum(row['otherwise'] for row in rows)} ended otherwise")
    return None


if __name__ == "__main__":
    run(main)
