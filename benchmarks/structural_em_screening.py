"""Structural EM that runs two of its 20 starts to the end, the best after 15 updates, against all 20: scores and CPU seconds.

On large tables as many starts are finished as end in about a minute, two at least. Here it is two whatever the size, so that
tables of some seconds say how well these updates choose; ``--tables wide`` has a size at which it begins. "rank" is the place of
what is found among the 20 full starts, by the completed score; "screened" is how far it lies below the best of them, "median
start" how far their median does, "two by chance" the better one of two drawn starts on average.
"""

import time
import warnings
from unittest import mock

import numpy as np
import pandas as pd

from pgm_bma import StructuralEMClusterer
from pgm_bma.augmented import structural_em

from ._common import parser, print_table, run, save_csv
from .growth import table

KEYS = ["table", "clusters", "seed"]
TABLES = {
    "hidden causes": lambda seed: table(10_000, 40, 2, seed),
    "five states": lambda seed: table(10_000, 30, 5, seed),
    "clusters and arcs": lambda seed: (clusters_and_arcs(10_000, 30, seed), None),
    "ten states": lambda seed: table(10_000, 30, 10, seed),
    "many columns": lambda seed: table(1000, 200, 2, seed),
    "wide": lambda seed: table(10_000, 500, 2, seed),
}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", nargs="+", choices=TABLES, default=[name for name in TABLES if name != "wide"])
    options.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options.add_argument("--clusters", type=int, nargs="+", default=[2, 4])
    arguments = options.parse_args(argv)
    rows = []
    for name in arguments.tables:
        for seed in arguments.seeds:
            X, _ = TABLES[name](seed)
            for k in arguments.clusters:
                rows.append({"table": name, "clusters": k, "seed": seed, **compare(X, k, seed)})
                save_csv(rows[-1:], "structural_em_screening", arguments.out, KEYS)
    print_table(rows)


def compare(X, n_clusters, seed):
    """Both fits of a table."""
    whole, seconds = fit(X, n_clusters, seed, np.inf)
    screened, fewer = fit(X, n_clusters, seed, 0.0)
    scores, found = whole.starts_["score"].sort_values(), screened.starts_.query("stage == 2")["score"].max()
    # of n sorted starts, the better one of two is the one at position i in i of n (n - 1) / 2 pairs
    chance = np.average(scores, weights=np.arange(len(scores)))
    assert len(screened.starts_.query("stage == 2")) <= structural_em.FEWEST_STARTS < len(scores)
    return {
        "score": scores.max(),
        "median start": scores.max() - scores.median(),
        "two by chance": scores.max() - chance,
        "screened": scores.max() - found,
        "rank": int((scores > found + 1e-9 * abs(found)).sum()) + 1,
        "log likelihood": whole.log_likelihood_,
        "log likelihood screened": whole.log_likelihood_ - screened.log_likelihood_,
        "CPU s": seconds,
        "CPU s screened": fewer,
    }


def fit(X, n_clusters, seed, limit):
    """A fit that runs all starts to the end where they take `limit` steps at most, and its CPU seconds."""
    with mock.patch.multiple(structural_em, _ALL_STARTS=limit, _AFFORDABLE=np.inf), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.process_time()
        clusterer = StructuralEMClusterer(n_clusters, random_state=seed).fit(X)
        return clusterer, time.process_time() - began


def clusters_and_arcs(n_rows, n_columns, seed):
    """Four clusters of columns with three states, every other column a copy of its neighbour in a third of the rows."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 2.0), (n_columns, 4)).cumsum(axis=2)
    cluster = rng.integers(0, 4, n_rows)
    codes = np.column_stack([(rng.random(n_rows)[:, None] > each[cluster, :-1]).sum(axis=1) for each in shares])
    for i in range(1, n_columns, 2):
        copied = rng.random(n_rows) < 1 / 3
        codes[copied, i] = codes[copied, i - 1]
    return pd.DataFrame(codes, columns=[f"c{i}" for i in range(n_columns)]).astype("category")


if __name__ == "__main__":
    run(main)
