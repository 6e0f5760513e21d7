"""Answers from 1 to 7 in EMA, with and without their order: adjusted Rand index, and log-likelihood of 2000 held-out rows.

Three clusters, six answers that depend on the cluster and two that do not, ten tables of each size and kind:
- shifted: rounded normals whose centre moves with the cluster;
- runs: clusters differ in how likely they answer 1 or 2, 3 to 5, 6 or 7, and share the proportions inside these;
- shuffled: the shifted answers with the levels of every column shuffled, so that their order means nothing.
The prior over merges was chosen on single columns with known clusters and on seed 0; the kept result is of seed 1.
"""

import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from pgm_bma import EMAClusterer

from ._common import parser, print_table, run, save_csv


def main(argv=None):
    options = parser(__doc__, seed=1).parse_args(argv)
    rows = []
    for n in (100, 300, 1000):
        for number in range(10):
            for levels in ("shifted", "runs", "shuffled"):
                X, test, y = tables(n, levels, np.random.default_rng([options.seed, number]))
                states = {name: list(range(1, 8)) for name in X}
                for taken in ("ordered", "states"):
                    columns = list(X) if taken == "ordered" else None
                    model = EMAClusterer(3, ordered_columns=columns, state_names=states, n_init=20, random_state=0)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model.fit(X)
                    found = {"rand": adjusted_rand_score(y, model.labels_), "held_out": model.score(test)}
                    rows.append({"rows": n, "table": number, "levels": levels, "taken as": taken, **found})
    save_csv(rows, "ema_ordered", options.out)
    found = pd.DataFrame(rows)
    keys = ["levels", "rows", "taken as"]
    print_table(found.groupby(keys)[["rand", "held_out"]].mean().reset_index())
    pairs = found.set_index([*keys, "table"]).unstack("taken as").swaplevel(axis=1)
    gain = (pairs["ordered"] - pairs["states"]).groupby(["levels", "rows"])
    print_table(gain.mean().join(gain.sem(), rsuffix="_se").reset_index(), title="gain of the order")


def tables(n, levels, rng):
    """(rows, held-out rows, clusters of the rows)"""
    y = rng.integers(0, 3, n + 2000)
    if levels == "runs":
        X = np.column_stack([answers_in_runs(y, rng) for _ in range(6)] + [rng.integers(1, 8, (len(y), 2))])
    else:
        shift = np.column_stack([rng.permutation(3)[y] for _ in range(6)] + [np.ones((len(y), 2))])
        X = np.clip(np.round(rng.normal(2.6 + 1.4 * shift, 1.3)), 1, 7).astype(int)
    if levels == "shuffled":
        X = np.column_stack([(1 + rng.permutation(7))[column - 1] for column in X.T])
    frame = pd.DataFrame(X).add_prefix("answer")
    return frame.iloc[:n], frame.iloc[n:], y[:n]


def answers_in_runs(y, rng):
    """Answers to one question whose runs 1 to 2, 3 to 5 and 6 to 7 depend on the cluster."""
    run = np.array([0, 0, 1, 1, 1, 2, 2])
    of_run, of_level = rng.dirichlet(np.full(3, 0.7), 3), rng.dirichlet(np.full(7, 5.0))
    table = (of_run[:, run] * of_level / np.bincount(run, of_level)[run]).cumsum(axis=1)
    return 1 + np.minimum((rng.random(len(y))[:, None] > table[y]).sum(axis=1), 6)


if __name__ == "__main__":
    run(main)
