"""Arc posteriors that converge: error of Gibbs chains over family lists against CPU time, from 12 to 500 variables.

K2 with alpha = 1, "mdl", at most three parents. A run is four tempered chains ("dag": four chains with edge reversals) of a
fixed number of sweeps, the second half kept; its time is the process's CPU time for families and chains together, compiled
before. Where exact sums exist the error is against them, else it is the largest difference of any arc between two runs.
"""

import time

import numpy as np

import pgm_bma
from pgm_bma.foundation.table import encode
from pgm_bma.orders import convergence, exact_dags, exact_orders
from pgm_bma.orders.family_lists import grow_lists, prune_table
from pgm_bma.orders.family_table import MAX_FAMILIES, family_table, n_families
from pgm_bma.orders.relocation import prepare_lists
from pgm_bma.orders.weighting import WEIGHTINGS

from ._common import parser, print_table, results_folder, run, save_csv

TEMPERATURES = {"win95pts": 6}  # others: 3
# name -> (network or size, columns, weighting, rows, sweeps, largest error aimed at, in seconds)
PROBLEMS = {
    "child": ("child", None, "order", 1000, (256, 512, 1024), 0.03, 1.5),
    "child, 12 columns, dag": ("child", 12, "dag", 1000, (128, 256, 512), 0.03, 0.6),
    "alarm": ("alarm", None, "order", 1000, (128, 256, 448), 0.04, 1.5),
    "alarm, dag": ("alarm", None, "dag", 1000, (128, 256), 0.08, 6.0),
    "win95pts": ("win95pts", None, "order", 1000, (160, 320), 0.1, 20.0),
    "200 variables": (200, None, "order", 1000, (128, 256), 0.1, 30.0),
    "500 variables": (500, None, "order", 500, (32,), 0.1, 60.0),
}


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument("--only", nargs="*", choices=PROBLEMS, help="some of the problems")
    reader.add_argument("--seeds", type=int, default=10, help="runs of every kind")
    reader.add_argument("--sweeps", type=int, nargs="*", help="sweeps instead of the listed ones")
    reader.add_argument("--temperatures", type=int, help="replicas of a chain over orders")
    options = reader.parse_args(argv)
    rows = []
    for name in options.only or PROBLEMS:
        rows += measure(name, options)
        print_table(rows, "largest error of an arc by CPU time", 3)
    save_csv(rows, "orders_convergence", options.out)
    draw(rows, results_folder(options.out) / "orders_convergence.png")


def measure(name, options):
    network, n_columns, weighting, n_rows, sweeps, aim, seconds = PROBLEMS[name]
    codes, cards, truth = data(network, n_rows, options.seed)
    codes, cards = codes[:, :n_columns], cards[:n_columns]
    temperatures = options.temperatures or TEMPERATURES.get(name, 3)
    one_run(codes[:50], cards, weighting, 8, 0, temperatures)  # compiled before the clock runs
    exact = exact_edges(codes, cards, weighting)
    for n_sweeps in options.sweeps or sweeps:
        runs = [one_run(codes, cards, weighting, n_sweeps, seed, temperatures) for seed in range(options.seeds)]
        edges = np.array([found.chain_means.mean(0) for found, *_ in runs])
        if exact is not None:
            errors = np.abs(edges - exact).max((1, 2))
        else:
            errors = np.array([np.abs(a - b).max() for a, b in zip(edges, np.roll(edges, 1, axis=0))])
        yield {
            "problem": name,
            "variables": len(cards),
            "sweeps": n_sweeps,
            "temperatures": temperatures if WEIGHTINGS[weighting].ladder else 1,
            "runs": len(runs),
            "families_s": np.median([t for _, t, _, _ in runs]),
            "cpu_s": np.median([t + u for _, t, u, _ in runs]),
            "against": "exact" if exact is not None else "another run",
            "median_error": np.median(errors),
            "largest_error": errors.max(),
            "apart_by_0.2": max(found.n_apart for found, *_ in runs),
            "exchange_rate_low": min(
                (found.exchange_rates.mean(0).min(initial=1.0) for found, *_ in runs), default=np.nan
            ),
            "exchange_rate_high": max(
                (found.exchange_rates.mean(0).max(initial=0.0) for found, *_ in runs), default=np.nan
            ),
            "average_precision": np.nan if n_columns else average_precision(truth, edges[0]),
            "sets": runs[0][3],
            "aim": f"{aim} in {seconds} s",
        }


def one_run(codes, cards, weighting, n_sweeps, seed, n_temperatures):
    """(Converged, seconds for families, seconds for chains, sets in the lists), CPU time."""
    began = time.process_time()
    n, kind = len(cards), WEIGHTINGS[weighting]
    full = n_families(n, n - 1, 3) <= MAX_FAMILIES
    lists = prune_table(family_table(codes, cards)) if full else grow_lists(codes, cards)
    scored = time.process_time()
    rngs = [np.random.default_rng([seed, k]) for k in range(4)]
    starts = [kind.start(n, rng, ()) for rng in rngs]
    settings = {"max_sweeps": n_sweeps, "tol": 1e-12, "n_temperatures": n_temperatures if kind.ladder else 1}
    found = convergence.run_until_converged(kind.gibbs, prepare_lists(lists), starts, rngs, **settings)
    return found, scored - began, time.process_time() - scored, len(lists.log_marginal)


def exact_edges(codes, cards, weighting):
    if weighting == "order" and len(cards) <= exact_orders.MAX_VARIABLES:
        return exact_orders.edge_posterior(exact_orders.sum_over_orders(family_table(codes, cards)))
    if weighting == "dag" and len(cards) <= exact_dags.MAX_VARIABLES:
        return exact_dags.edge_posterior(exact_dags.sum_over_dags(family_table(codes, cards)))
    return None


def data(network, n_rows, seed):
    """(codes, cardinalities, (n, n) true arcs); a number: a random network of 1.5 arcs a node and 2-4 states."""
    if isinstance(network, str):
        model = pgm_bma.load_network(network)
        read = encode(pgm_bma.simulate(model, n_rows, random_state=seed))
        place = {name: k for k, name in enumerate(read.schema.names)}
        truth = np.zeros((len(place), len(place)), dtype=bool)
        for u, v in model.edges():
            truth[place[u], place[v]] = True
        return np.ascontiguousarray(read.codes), read.schema.cardinalities, truth
    rng = np.random.default_rng([seed, network])
    return random_network(network, n_rows, rng)


def random_network(n, n_rows, rng):
    cards = rng.integers(2, 5, n)
    truth = np.zeros((n, n), dtype=bool)
    while truth.sum() < 1.5 * n:
        u, v = np.sort(rng.choice(n, 2, replace=False))
        if truth[:, v].sum() < 3:
            truth[u, v] = True
    codes = np.zeros((n_rows, n), dtype=np.int64)
    for v in range(n):
        parents = np.flatnonzero(truth[:, v])
        state = np.zeros(n_rows, dtype=np.int64)
        for p in parents:
            state = state * cards[p] + codes[:, p]
        tables = rng.dirichlet(np.full(cards[v], 0.5), int(np.prod(cards[parents])))
        codes[:, v] = (rng.random(n_rows)[:, None] > np.cumsum(tables[state], axis=1)[:, :-1]).sum(1)
    return codes, cards, truth


def average_precision(truth, edges):
    from sklearn.metrics import average_precision_score

    off = ~np.eye(len(truth), dtype=bool)
    return average_precision_score(truth[off], edges[off])


def draw(rows, path):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4.5))
    for kind in dict.fromkeys((row["problem"], row["temperatures"]) for row in rows):
        mine = [row for row in rows if (row["problem"], row["temperatures"]) == kind]
        label = f"{kind[0]}, {kind[1]} temperatures"
        ax.plot([row["cpu_s"] for row in mine], [row["largest_error"] for row in mine], marker="o", label=label)
    ax.set(xscale="log", yscale="log", xlabel="CPU seconds of a run", ylabel="largest error of an arc, all runs")
    ax.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    run(main)
