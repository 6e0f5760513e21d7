"""Five near-copies of a column, each different in one row of 1000: how far P moves from what one column gives, by kind of weights.

In addition two other columns, all pairs as regions, ten tables. "agree" is the largest move of a row in which the five agree (995
rows; aim 0.02), "differ" the smallest and the largest move of the five rows in which one of them differs: there a fifth of the
evidence says something else.
"""

import itertools

import numpy as np
import pandas as pd

from pgm_bma import KikuchiBayesClassifier

from ._common import parser, print_table, run, save_csv

N_ROWS, N_COPIES = 1000, 5


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    rows = [line for seed in range(10) for line in moves(options.seed + seed)]
    frame = pd.DataFrame(rows)
    print_table(frame)
    print_table(
        frame.groupby("weights").agg({"agree": "max", "differ, least": "min", "differ, most": "max"}).reset_index()
    )
    save_csv(frame, "kikuchi_copies", options.out)


def moves(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N_ROWS)
    a = np.where(rng.random(N_ROWS) < 0.8, y, 1 - y)
    b, d = (np.where(rng.random(N_ROWS) < 0.65, source, rng.integers(0, 2, N_ROWS)) for source in (a, y))
    alone = pd.DataFrame({"a": a, "b": b, "d": d})
    near = pd.DataFrame({**{f"a{k}": a for k in range(N_COPIES)}, "b": b, "d": d})
    odd = rng.choice(N_ROWS, N_COPIES, replace=False)
    for k, row in enumerate(odd):
        near.loc[row, f"a{k}"] = 1 - a[row]
    for weights in ("tree", "counting"):
        one = probabilities(alone, y, "tree")
        moved = np.abs(probabilities(near, y, weights) - one).max(axis=1)
        yield {
            "seed": seed,
            "weights": weights,
            "agree": np.delete(moved, odd).max(),
            "differ, least": moved[odd].min(),
            "differ, most": moved[odd].max(),
        }


def probabilities(X, y, weights):
    every = [[*pair, "class"] for pair in itertools.combinations(X.columns, 2)]
    return KikuchiBayesClassifier(regions=every, weights=weights).fit(X, y).predict_proba(X)


if __name__ == "__main__":
    run(main)
