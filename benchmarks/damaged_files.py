"""Saved estimators with one byte changed: is the damage found, or the estimator the same? 500 places each, and 100 cuts.

The files are those kept in tests/saved (a checkout is needed). "found": a ValueError that names the file. "harmless": the
estimator loads and predicts the same to the bit. Anything else is counted as "other numbers" or "other errors": there must
be none. Quick version: 50 places, 10 cuts; --full 500 and 100.
"""

import random
import tempfile
from pathlib import Path

from ._common import Skip, parser, print_table, run, save_csv


def main(argv=None):
    try:
        from tests.saved.make import ALL
    except ImportError:
        raise Skip("the kept files are in tests/saved of a checkout; run it from there") from None
    arguments = parser(__doc__).parse_args(argv)
    flips, cuts = (500, 100) if arguments.full else (50, 10)
    rows = []
    for name in sorted(ALL):
        rows.append(measure(name, flips, cuts, arguments.seed))
        print(rows[-1], flush=True)
    rows.append({"estimator": "all", **{key: sum(row[key] for row in rows) for key in rows[0] if key != "estimator"}})
    print_table(rows)
    save_csv(rows, "damaged_files", arguments.out)


def measure(name, n_flips, n_cuts, seed):
    """Counts of what `pgm_bma.load` makes of the damaged files of one estimator."""
    import numpy as np

    import pgm_bma
    from tests.saved.make import FOLDER, VERSION, answers

    content = (FOLDER / f"format{VERSION}" / f"{name}.pgm").read_bytes()
    found = {"estimator": name, "bytes": len(content), "tries": 0, "found": 0, "harmless": 0}
    found |= {"other numbers": 0, "other errors": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.pgm"
        path.write_bytes(content)
        expected = answers(name, pgm_bma.load(path))
        for damaged in damages(content, n_flips, n_cuts, random.Random(f"{name} {seed}")):
            path.write_bytes(damaged)
            found["tries"] += 1
            try:
                same = np.array_equal(answers(name, pgm_bma.load(path)), expected)
                found["harmless" if same else "other numbers"] += 1
            except Exception as error:
                is_clear = isinstance(error, ValueError) and str(path) in str(error)
                found["found" if is_clear else "other errors"] += 1
    return found


def damages(content, n_flips, n_cuts, rng):
    for _ in range(n_flips):
        place = rng.randrange(len(content))
        yield content[:place] + bytes([content[place] ^ rng.randrange(1, 256)]) + content[place + 1 :]
    for _ in range(n_cuts):
        yield content[: rng.randrange(len(content))]


if __name__ == "__main__":
    run(main)
