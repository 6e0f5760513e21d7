"""EMA Table I: partitions by EM, EMA and variational EMA on data from random selective naive Bayes models.

Models: each variable depends on the cluster with probability 1/2, has 2 to 5 states, tables and cluster sizes from
Dirichlet(1). The quick version takes a few of the cells; --full is the paper's size (50 models a cell, 30 starts; hours).
"""

from ._common import run
from ._ema_tables import SIZES, arguments, read, run_table
from ._random_models import random_selective_naive_bayes

TABLE = True
QUICK = {"variables": [6, 20], "sizes": [10, 40, 160], "models": 8, "starts": 10}
FULL = {"variables": [4, 6, 8, 10, 20, 40], "sizes": list(SIZES), "models": 50, "starts": 30}


def main(argv=None):
    chosen = read(*arguments(__doc__, QUICK, FULL), argv)
    rows = [{"n_variables": n, "n_clusters": k} for k in chosen.clusters for n in chosen.variables]
    run_table("ema_table1", "ema_table1_selective_naive_bayes", rows, draw, chosen)


def draw(row, rng):
    return random_selective_naive_bayes(row["n_variables"], row["n_clusters"], random_state=rng, as_arrays=True)


if __name__ == "__main__":
    run(main)
