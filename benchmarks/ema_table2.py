"""EMA Table II: partitions by EM, EMA and variational EMA on data from random Bayesian network classifiers.

Models: a random connected network over the variables with at most 2 or 3 parents, 2 to 5 states, and a cluster on which
each variable depends with probability 1/2. The quick version takes a few of the cells; --full is the paper's size. --tan adds EMA
with one attribute parent, given the true order of the variables and given a random one.
"""

import numpy as np

from ._common import run
from ._ema_tables import SIZES, arguments, read, run_table
from ._ema_tan import fit_ema_tan
from ._random_models import random_network_classifier

TABLE = True
QUICK = {"variables": [6, 20], "sizes": [10, 40, 160], "models": 8, "starts": 10, "parents": [2]}
FULL = {"variables": [4, 6, 8, 10, 20, 40], "sizes": list(SIZES), "models": 50, "starts": 30, "parents": [2, 3]}


def main(argv=None):
    options, quick, full = arguments(__doc__, QUICK, FULL)
    options.add_argument("--parents", type=int, nargs="+", help="largest numbers of parents")
    options.add_argument("--tan", action="store_true", help="add EMA with one attribute parent")
    chosen = read(options, quick, full, argv)
    rows = [
        {"n_variables": n, "n_clusters": k, "max_parents": parents}
        for k in chosen.clusters
        for parents in chosen.parents
        for n in chosen.variables
    ]
    name = "ema_table2_tan" if chosen.tan else "ema_table2"
    run_table(
        name, "ema_table2_general_networks", rows, draw, chosen, extra=with_attribute_parents if chosen.tan else None
    )


def with_attribute_parents(network, rows, cardinalities, n_clusters, rng):
    """Labels by EMA with one attribute parent: variables in a true order, and shuffled."""
    orders = {
        "EMA-TAN, true order": true_order(network.parents),
        "EMA-TAN, random order": rng.permutation(rows.shape[1]),
    }
    found = {}
    for name, order in orders.items():
        fit = fit_ema_tan(rows, cardinalities, n_clusters, order=order, rng=rng, n_init=5, averaging="variational")
        found[name] = fit.log_joint.argmax(axis=1)
    return found


def true_order(parents):
    """Variables (cluster left out, positions from 0) so that parents come first."""
    order, waiting = [], list(range(1, len(parents)))
    while waiting:
        node = next(v for v in waiting if all(p == 0 or p in order for p in parents[v]))
        order.append(node)
        waiting.remove(node)
    return np.array(order) - 1


def draw(row, rng):
    return random_network_classifier(
        row["n_variables"], row["n_clusters"], row["max_parents"], random_state=rng, as_arrays=True
    )


if __name__ == "__main__":
    run(main)
