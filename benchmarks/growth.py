"""How fits grow: every estimator at its defaults over rows, columns and states; each cell ends in time, or says what to do.

A cell is a table in a process of its own: the fit must end within 120 CPU seconds and 4 GB, or raise an error that
names a cure. "whole": fitted, and asked for one hundred rows. "refused": an error of ours. All else is a fault: "over 120 s",
"killed", a MemoryError. The default cells are the corners that tell most; --full is the grid of all.
"""

import resource
import warnings
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from ._child import in_child
from ._common import parser, print_line, run, save_csv

NAMES = (
    "NaiveBayesClassifier",
    "AveragedNaiveBayesClassifier",
    "TANClassifier",
    "ForestAveragedClassifier",
    "AdditiveBayesClassifier",
    "KikuchiBayesClassifier",
    "FixedOrderClassifier",
    "OrderAveragedClassifier",
    "OrderPosterior",
    "LatentClassClusterer",
    "EMAClusterer",
    "StructuralEMClusterer",
    "ForestAveragedClusterer",
)
LIMIT, MEMORY = 120, 4 * 2**30
GRID = list(product((100, 1000, 10_000, 100_000), (5, 50, 500), (2, 10, 100)))
CORNERS = ((100, 500, 100), (100_000, 5, 100), (100_000, 50, 2), (1000, 500, 2), (100_000, 500, 100))


def table(n_rows, n_columns, n_states, seed=0):
    """Columns that follow one of a few hidden causes or noise."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_states, (n_rows, max(n_columns // 10, 1)))
    causes = rng.integers(0, hidden.shape[1], n_columns)
    codes = np.where(
        rng.random((n_rows, n_columns)) < 0.4, hidden[:, causes], rng.integers(0, n_states, (n_rows, n_columns))
    )
    frame = pd.DataFrame(codes, columns=[f"c{i}" for i in range(n_columns)])
    return frame.astype("category"), pd.Series(hidden[:, 0] % 2, name="t")


def fit(name, *cell):
    """The work of a cell."""
    import pgm_bma

    warnings.simplefilter("ignore")
    X, y = table(*cell)

    def work():
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY,) * 2)
        kind = getattr(pgm_bma, name)
        estimator = kind(**({"random_state": 0} if "random_state" in kind().get_params() else {}))
        estimator.fit(X, y) if name.endswith("Classifier") else estimator.fit(X)
        if name != "OrderPosterior":
            found = estimator.predict_proba(X[:100])
            return {"sound": bool(np.isfinite(found).all())}
        return {}

    return work


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    options.add_argument("--cells", nargs="+", help="rows,columns,states")
    arguments = options.parse_args(argv)
    cells = [tuple(map(int, cell.split(","))) for cell in arguments.cells or ()]
    for cell in cells or (GRID if arguments.full else CORNERS):
        for name in arguments.names:
            found = in_child(fit(name, *cell), LIMIT)
            line = {"estimator": name, **dict(zip(("rows", "columns", "states"), cell))}
            line |= {key: found.get(key) for key in ("cpu", "mb", "ended")}
            print_line(line)
            save_csv([line], "growth", arguments.out, keys=["estimator", "rows", "columns", "states"])
    return None


if __name__ == "__main__":
    run(main)
