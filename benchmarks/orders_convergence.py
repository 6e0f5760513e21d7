"""Arc posteriors that converge: error of Gibbs chains over family lists against CPU time, from 12 to 724 variables.

K2 with alpha = 1, "mdl", at most three parents. A run is four tempered chains, on win95pts one (--chains), under "dag" chains with
moves of single DAGs, of a fixed number of sweeps, the last half to three quarters kept, with the default number of temperatures;
its time is the process's CPU time for families and chains together, compiled before. Where exact sums exist the error is against
them; on alarm against a long run that two others from other starts confirm; else it is the largest difference of any arc between
two runs, over all pairs of runs. `chain_difference` is that between two single chains of a run, `chain_s` the time of families
and one chain.

andes, pigs and link are data of an older pgmpy: ``pip download --no-deps pgmpy==0.1.26``, unzip the wheel, and name its folder
pgmpy/utils/example_models with --networks. The kept CSV keeps the lines of problems that are not run again.
"""

import time
from pathlib import Path

import numpy as np

import pgm_bma
from pgm_bma.foundation.tables.table import encode
from pgm_bma.orders.chains import gibbs
from pgm_bma.orders.chains.gibbs import prepare_lists
from pgm_bma.orders.families.family_table import MAX_FAMILIES, family_table, grow_lists, n_families, prune_table
from pgm_bma.orders.structure_average import WEIGHTINGS
from pgm_bma.orders.sums import exact_dags, exact_orders

from ._common import Skip, parser, print_table, results_folder, run, save_csv

# name -> (network or size, columns, weighting, rows, ((sweeps, runs), ...), largest error aimed at, in seconds)
PROBLEMS = {
    "child": ("child", None, "order", 1000, ((256, 10), (512, 10), (1152, 10)), 0.03, 1.5),
    "child, 12 columns, dag": ("child", 12, "dag", 1000, ((132, 10), (264, 10), (528, 10)), 0.03, 0.6),
    "alarm": ("alarm", None, "order", 1000, ((128, 10), (432, 10)), 0.04, 1.5),
    "alarm, dag": ("alarm", None, "dag", 1000, ((224, 10), (640, 10)), 0.08, 6.0),
    "win95pts": ("win95pts", None, "order", 1000, ((400, 2), (1200, 10)), 0.1, 20.0),
    "200 variables": (200, None, "order", 1000, ((32, 2), (384, 10)), 0.1, 30.0),
    "500 variables": (500, None, "order", 500, ((32, 2), (512, 2)), 0.1, 600.0),
    "andes": ("andes", None, "order", 1000, ((64, 2),), 0.1, 60.0),
    "pigs": ("pigs", None, "order", 1000, ((32, 2),), 0.1, 60.0),
    "link": ("link", None, "order", 1000, ((16, 2),), 0.1, 60.0),
}
CHAINS = {"win95pts": 1}  # of a run; else four. Its modes ask for long chains, and four would pay for four burn-ins
KNOWN = ("andes", "pigs", "link")
LONG = 3072  # sweeps of the runs that stand for the truth on alarm
TRUTH_FROM = (101, 102, 103)  # their seeds


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument("--only", nargs="*", choices=PROBLEMS, help="some of the problems")
    reader.add_argument("--runs", type=int, help="runs of every kind instead of the listed ones")
    reader.add_argument("--sweeps", type=int, nargs="*", help="sweeps instead of the listed ones")
    reader.add_argument("--chains", type=int, help="chains of a run instead of the listed ones")
    reader.add_argument("--temperatures", type=int, help="replicas of a chain over orders instead of the default")
    reader.add_argument("--networks", type=Path, help="folder with andes.bif.gz, pigs.bif.gz and link.bif.gz")
    options = reader.parse_args(argv)
    chosen = options.only or [name for name in PROBLEMS if options.networks or name not in KNOWN]
    path = results_folder(options.out) / "orders_convergence.csv"
    rows = _kept(path, chosen if not options.sweeps else [])
    for name in chosen:
        rows += measure(name, options)
        rows.sort(key=lambda row: list(PROBLEMS).index(row["problem"]))
        print_table(rows, "largest error of an arc by CPU time", 3)
        save_csv(rows, "orders_convergence", options.out)
    print(as_markdown(rows))
    draw(rows, path.with_suffix(".png"))


def _kept(path, chosen):
    """Lines of an earlier run, without those of the chosen problems."""
    import pandas as pd

    if not path.exists():
        return []
    return [row for row in pd.read_csv(path).to_dict("records") if row["problem"] not in chosen]


def measure(name, options):
    network, n_columns, weighting, n_rows, sizes, aim, seconds = PROBLEMS[name]
    codes, cards, truth = data(network, n_rows, options.seed, options.networks)
    codes, cards = codes[:, :n_columns], cards[:n_columns]
    temperatures = options.temperatures or "auto"
    n_chains = options.chains or CHAINS.get(name, 4)
    one_run(codes[:50], cards, weighting, 8, 0, temperatures, n_chains)  # compiled before the clock runs
    exact, against = reference(name, codes, cards, weighting)
    sizes = [(sweeps, options.runs or sizes[-1][1]) for sweeps in options.sweeps or ()] or sizes
    for n_sweeps, n_runs in sizes:
        runs = [
            one_run(codes, cards, weighting, n_sweeps, seed, temperatures, n_chains)
            for seed in range(options.runs or n_runs)
        ]
        edges = np.array([found.chains.means.mean(0) for found, *_ in runs])
        if exact is not None:
            errors = np.abs(edges - exact).max((1, 2))
        else:
            errors = np.array([np.abs(a - b).max() for k, a in enumerate(edges) for b in edges[:k]])
        rates = np.concatenate(
            [found.chains.exchange_rates.mean(0) for found, *_ in runs]
        )  # ladders may differ in length
        yield {
            "problem": name,
            "variables": len(cards),
            "sweeps": n_sweeps,
            "temperatures": max(found.chains.betas.shape[1] for found, *_ in runs),
            "chains": n_chains,
            "runs": len(runs),
            "families_s": np.median([t for _, t, _, _ in runs]),
            "cpu_s": np.median([t + u for _, t, u, _ in runs]),
            "cpu_s_most": max(t + u for _, t, u, _ in runs),
            "against": against,
            "median_error": np.median(errors),
            "largest_error": errors.max(),
            "chain_s": np.median([t + u / n_chains for _, t, u, _ in runs]),
            "chain_difference": max(found.chains.difference for found, *_ in runs),
            "apart_by_0.2": max(found.chains.n_apart for found, *_ in runs),
            "exchange_rate_low": rates.min(initial=1.0) if rates.size else np.nan,
            "exchange_rate_high": rates.max(initial=0.0) if rates.size else np.nan,
            "average_precision": np.nan if n_columns else average_precision(truth, edges.mean(0)),
            "sets": runs[0][3],
            "aim": f"{aim} in {seconds} s",
        }


def one_run(codes, cards, weighting, n_sweeps, seed, n_temperatures, n_chains=4):
    """(GibbsRun, seconds for families, seconds for chains, sets in the lists), CPU time."""
    began = time.process_time()
    n, kind = len(cards), WEIGHTINGS[weighting]
    full = n_families(n, n - 1, 3) <= MAX_FAMILIES
    lists = prune_table(family_table(codes, cards)) if full else grow_lists(codes, cards)
    scored = time.process_time()
    rngs = [np.random.default_rng([seed, k]) for k in range(n_chains)]
    starts = [kind.start(n, rng, ()) for rng in rngs]
    settings = {"max_sweeps": n_sweeps, "tol": 1e-12, "n_temperatures": n_temperatures if kind.ladder else 1}
    found = gibbs.run_gibbs(kind.gibbs, prepare_lists(lists), starts, rngs, **settings)
    return found, scored - began, time.process_time() - scored, len(lists.log_marginal)


def reference(name, codes, cards, weighting):
    """(arc posteriors or None, what they are)"""
    exact = exact_edges(codes, cards, weighting)
    if exact is not None:
        return exact, "exact"
    if name != "alarm":
        return None, "another run"
    runs = [one_run(codes, cards, weighting, LONG, seed, "auto")[0].chains.means.mean(0) for seed in TRUTH_FROM]
    apart = max(np.abs(runs[0] - other).max() for other in runs[1:])
    return runs[0], f"a run of {LONG} sweeps; two others differ by at most {apart:.3f}"


def exact_edges(codes, cards, weighting):
    if weighting == "order" and len(cards) <= exact_orders.MAX_VARIABLES:
        return exact_orders.edge_posterior(exact_orders.sum_over_orders(family_table(codes, cards)))
    if weighting == "dag" and len(cards) <= exact_dags.MAX_VARIABLES:
        return exact_dags.edge_posterior(exact_dags.sum_over_dags(family_table(codes, cards)))
    return None


def data(network, n_rows, seed, folder=None):
    """(codes, cardinalities, (n, n) true arcs); a number: a random network of 1.5 arcs a node and 2-4 states."""
    if isinstance(network, str):
        if network in KNOWN and folder is None:
            raise Skip(f"{network} is no part of this package: pass --networks (see --help)")
        model = pgm_bma.read_bif(folder / f"{network}.bif.gz") if network in KNOWN else pgm_bma.load_network(network)
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


def as_markdown(rows):
    """Return the table of docs/evidence.md: the longest runs of every problem."""
    lines = ["| problem (variables) | sweeps, temperatures, chains | runs | CPU s (most) | largest error (median) | exchange rates "
             "| average precision of arcs |", "|" + "---|" * 7]  # fmt: skip
    longest = {row["problem"]: row for row in sorted(rows, key=lambda row: row["sweeps"])}
    for name in PROBLEMS:
        if name in longest:
            row = longest[name]
            rates = f"{row['exchange_rate_low']:.2f} to {row['exchange_rate_high']:.2f}"
            lines.append(
                f"| {name} ({row['variables']}), against {row['against'].partition(';')[0]} "
                f"| {row['sweeps']}, {row['temperatures']}, {row['chains']} | {row['runs']} "
                f"| {row['cpu_s']:.2f} ({row['cpu_s_most']:.2f}) | {row['largest_error']:.3f} ({row['median_error']:.3f}) "
                f"| {'' if row['temperatures'] == 1 else rates} "
                f"| {'' if np.isnan(row['average_precision']) else format(row['average_precision'], '.3f')} |"
            )
    return "\n".join(lines)


def draw(rows, path):
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(8.5, 4.5))
    for name in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == name]
        label = f"{name}{' (one chain a run)' * (mine[0]['chains'] == 1)}"
        ax.plot([row["cpu_s"] for row in mine], [row["largest_error"] for row in mine], marker="o", label=label)
    ax.set(xscale="log", yscale="log", xlabel="CPU seconds of a run", ylabel="largest error of an arc, all runs")
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


if __name__ == "__main__":
    run(main)
