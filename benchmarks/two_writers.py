"""Two processes that save to one path without waiting for each other: is every file read one of the two models?

For `save` and `write_bif`, 5 seconds each; --full 60 seconds each. A load that fails, or gives a third model, counts as torn.
"""

import multiprocessing
import os
import tempfile
import time
from pathlib import Path

from ._common import parser, print_table, run, save_csv


def main(argv=None):
    options = parser(__doc__)
    seconds = 60 if (arguments := options.parse_args(argv)).full else 5
    rows = [measure(kind, seconds) for kind in ("save", "write_bif")]
    print_table(rows)
    save_csv(rows, "two_writers", arguments.out)


def measure(kind, seconds):
    """How many files were written by two processes and how many of the loads meanwhile gave one of the two models."""
    import pgm_bma

    models = {alpha: fitted(alpha) for alpha in (0.5, 2.0)}
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        path, written = Path(folder) / "model", fork.Value("q", 0)
        end = time.monotonic() + seconds
        arguments = [(kind, model, path, end, written) for model in models.values()]
        writers = [fork.Process(target=write_until, args=each) for each in arguments]
        for writer in writers:
            writer.start()
        loads, torn = 0, 0
        while any(writer.is_alive() for writer in writers):
            if not path.exists():
                continue
            loads += 1
            try:
                found = pgm_bma.load(path).model_ if kind == "save" else pgm_bma.read_bif(path)
                torn += not any(same(found, model.model_) for model in models.values())
            except Exception:
                torn += 1
        left = len(os.listdir(folder)) - 1
    return {
        "writer": kind,
        "seconds": seconds,
        "written": written.value,
        "loads": loads,
        "torn": torn,
        "left over": left,
    }


def fitted(alpha):
    import pgm_bma

    frame, target = pgm_bma.load_dataset("zoo")
    return pgm_bma.TANClassifier(alpha=alpha).fit(frame.drop(columns=target), frame[target])


def write_until(kind, model, path, end, written):
    import pgm_bma

    while time.monotonic() < end:
        pgm_bma.save(model, path) if kind == "save" else pgm_bma.write_bif(model.model_, path)
        with written.get_lock():
            written.value += 1


def same(one, other):
    return all((one.get_cpds(node).values == other.get_cpds(node).values).all() for node in other.nodes())


if __name__ == "__main__":
    run(main)
