"""EMA Table II: partitions by EM, EMA and its variational twin on data from random Bayesian network classifiers.

Models: a random connected network over the variables with at most 2 or 3 parents, 2 to 5 states, and a cluster on which
each variable depends with probability 1/2. The quick version takes a few of the cells; --full is the paper's size.
"""

from pgm_bma.simulate import random_network_classifier

from ._common import run
from ._ema_tables import SIZES, arguments, read, run_table

TABLE = True
QUICK = {"variables": [6, 20], "sizes": [10, 40, 160], "models": 8, "starts": 10, "parents": [2]}
FULL = {"variables": [4, 6, 8, 10, 20, 40], "sizes": list(SIZES), "models": 50, "starts": 30, "parents": [2, 3]}


def main(argv=None):
    options, quick, full = arguments(__doc__, QUICK, FULL)
    options.add_argument("--parents", type=int, nargs="+", help="largest numbers of parents")
    chosen = read(options, quick, full, argv)
    rows = [
        {"n_variables": n, "n_clusters": k, "max_parents": parents}
        for k in chosen.clusters
        for parents in chosen.parents
        for n in chosen.variables
    ]
    run_table("ema_table2", "ema_table2_general_networks", rows, draw, chosen)


def draw(row, rng):
    return random_network_classifier(
        row["n_variables"], row["n_clusters"], row["max_parents"], random_state=rng, as_arrays=True
    )


if __name__ == "__main__":
    run(main)
