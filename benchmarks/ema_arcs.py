"""Are the arc posteriors of EMA as sure as they should be? Their Brier score against the one that calibration would give.

Tables of twelve binary columns and two clusters drawn from the prior: sizes and tables uniform, each column depends on the cluster
with a probability of one half. The Brier score is the mean of (posterior - truth) squared; posteriors that were frequencies would
have the mean of posterior x (1 - posterior).
"""

import numpy as np
import pandas as pd

import pgm_bma

from ._common import parser, print_table, run, save_csv

N_COLUMNS, SIZES = 12, (100, 300, 1000)


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--tables", type=int, default=40, help="tables of every size")
    arguments = arguments.parse_args(argv)
    lines = []
    for n_rows in SIZES:
        found = [one_table(n_rows, np.random.default_rng([arguments.seed, n_rows, i])) for i in range(arguments.tables)]
        posterior, truth = (np.array(part) for part in zip(*found))
        seen, expected = ((posterior - truth) ** 2).mean(axis=1), (posterior * (1 - posterior)).mean(axis=1)
        difference = seen - expected
        lines.append(
            {
                "rows": n_rows,
                "tables": arguments.tables,
                "Brier score": seen.mean(),
                "if calibrated": expected.mean(),
                "standard error of the difference": difference.std(ddof=1) / np.sqrt(arguments.tables),
            }
        )
    save_csv(lines, "ema_arcs", arguments.out)
    print_table(pd.DataFrame(lines))


def one_table(n_rows, rng):
    """(posteriors, truth) of the arcs of one table."""
    depends = rng.random(N_COLUMNS) < 0.5
    first = rng.random(N_COLUMNS)
    p = np.array([first, np.where(depends, rng.random(N_COLUMNS), first)])
    z = (rng.random(n_rows) < rng.random()).astype(int)
    X = pd.DataFrame((rng.random((n_rows, N_COLUMNS)) < p[z]).astype(int)).add_prefix("x")
    states = {name: [0, 1] for name in X}
    clusterer = pgm_bma.EMAClusterer(2, state_names=states, random_state=0).fit(X)
    return clusterer.arc_posterior_.to_numpy(), depends


if __name__ == "__main__":
    run(main)
