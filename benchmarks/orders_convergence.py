"""Default fits until they converge: CPU seconds, memory and error of the arc posteriors, from 20 to 724 variables.

`OrderPosterior()` with nothing set but the method, the weighting and the seed, each fit in a process of its own; 1000 rows (500
variables: 500). Columns stand in random order. Fits of one table differ in their seeds. The error is the largest of any arc:
against the exact sums where they exist, else against the mean of the other fits of the table. "20 % missing": cells are hidden at
random. A fit that takes more CPU time than LIMIT is ended and counts as not converged. `peak_mb` is what a fit takes above the
table and the imports.

Problems are saved as they are done, and --only runs some of them. Those of LARGE run only by name.
"""

import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma import OrderPosterior
from pgm_bma.foundation.tables.table import encode
from pgm_bma.orders.sums import exact_orders

from ._child import in_child
from ._common import Skip, need, parser, print_line, run, save_csv

# name -> (network or size, weighting, share of missing cells, rows, tables, seeds of a table, CPU s aimed at)
PROBLEMS = {
    "child": ("child", "order", 0.0, 1000, 10, 1, "0.5 (most 1)"),
    "alarm": ("alarm", "order", 0.0, 1000, 2, 5, "1.5 (most 3)"),
    "win95pts": ("win95pts", "order", 0.0, 1000, 2, 5, "12 (most 25)"),
    "200 variables": (200, "order", 0.0, 1000, 2, 5, "20 (most 40)"),
    "child, dag": ("child", "dag", 0.0, 1000, 2, 5, "2 (most 4)"),
    "alarm, dag": ("alarm", "dag", 0.0, 1000, 2, 5, "5 (most 10)"),
    "win95pts, dag": ("win95pts", "dag", 0.0, 1000, 2, 5, "40 (most 90)"),
    "child, 20 % missing": ("child", "order", 0.2, 1000, 4, 5, "10 (most 20)"),
    "alarm, 20 % missing": ("alarm", "order", 0.2, 1000, 4, 5, "20 (most 40)"),
}
LARGE = {
    "500 variables": (500, "order", 0.0, 500, 1, 2, None),
    "andes": ("andes", "order", 0.0, 1000, 1, 2, None),
    "pigs": ("pigs", "order", 0.0, 1000, 1, 2, None),
    "link": ("link", "order", 0.0, 1000, 1, 2, None),
}
KNOWN = ("andes", "pigs", "link")  # from pgmpy's files
LIMIT = 150  # CPU seconds of a fit; of large ones, LONG
LONG = 900


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument("--only", nargs="*", default=list(PROBLEMS), choices=[*PROBLEMS, *LARGE], help="some problems")
    reader.add_argument("--fits", type=int, help="fits of a table instead of the listed ones")
    options = reader.parse_args(argv)
    for name in options.only:
        rows = measure(name, options.seed, options.fits)
        path = save_csv(rows, "orders_convergence", options.out, keys=["problem", "table", "seed"])
    print(as_markdown(pd.read_csv(path)))


def measure(name, seed, most):
    """Rows of one problem, a fit each; most : fits of a table, or None."""
    network, weighting, missing, n_rows, n_tables, n_seeds, aim = {**PROBLEMS, **LARGE}[name]
    limit, rows = LONG if name in LARGE else LIMIT, []
    for number in range(n_tables):
        table = columns_at_random(network, n_rows, missing, seed + number)
        fitted(table.iloc[:60, :6], weighting, 0)  # compiled before the clock runs
        fits = [in_child(partial(fitted, table, weighting, k), limit) for k in range(most or n_seeds)]
        arcs = {k: np.array(fit["arcs"]) for k, fit in enumerate(fits) if "arcs" in fit}
        for k, fit in enumerate(fits):
            others = [found for j, found in arcs.items() if j != k]
            reference, against = np.mean(others, axis=0) if others else np.nan, f"mean of other fits ({len(others)})"
            if weighting == "order" and not missing and table.shape[1] <= exact_orders.MAX_VARIABLES:
                exact = OrderPosterior(method="exact").fit(table)
                reference, against = exact.edge_posterior_.to_numpy(), "exact sums"
            error = float(np.abs(arcs[k] - reference).max()) if k in arcs else np.nan
            rows.append(
                {
                    "problem": name, "table": seed + number, "seed": k, "variables": table.shape[1], "against": against,
                    "converged": bool(fit.get("converged", False)), "sweeps": fit.get("sweeps"),
                    "cpu_s": round(fit.get("cpu", limit), 2), "largest_error": round(error, 4),
                    "lost_mass": fit.get("lost_mass"), "peak_mb": round(fit.get("mb", 0)) or None,
                    "aim_cpu_s": aim,
                }
            )  # fmt: skip
            print_line(rows[-1])
    return rows


def columns_at_random(network, n_rows, missing, seed):
    """DataFrame of rows of a network, columns in random order, some cells hidden."""
    codes, cards, _ = data(network, n_rows, seed)
    rng = np.random.default_rng([seed, len(cards)])
    table = pd.DataFrame(codes[:, rng.permutation(len(cards))], columns=[f"v{k}" for k in range(len(cards))])
    return table.astype(object).mask(rng.random(table.shape) < missing)


def fitted(table, weighting, seed):
    """What a fit says of itself, and its arcs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = OrderPosterior(method="mcmc", structure_weighting=weighting, random_state=seed).fit(table)
    arcs = fit.edge_posterior_.to_numpy().round(4).tolist()
    return {"converged": fit.converged_, "sweeps": fit.n_sweeps_, "lost_mass": round(fit.lost_mass_, 5), "arcs": arcs}


def data(network, n_rows, seed):
    """(codes, cardinalities, (n, n) true arcs); a number: a random network of 1.5 arcs a node and 2-4 states."""
    if isinstance(network, str):
        model = known(network) if network in KNOWN else pgm_bma.load_network(network)
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


def known(name):
    """A network that pgmpy brings as a file."""
    path = Path(need("pgmpy").__file__).parent / "utils" / "example_models" / f"{name}.bif.gz"
    if not path.exists():
        raise Skip(f"this version of pgmpy comes without {name}")
    return pgm_bma.read_bif(path)


def as_markdown(rows):
    """Return the table of docs/evidence.md."""
    titles = "problem (variables)", "fits, converged", "CPU s (most)", "largest error (median)", "against", "peak MB"
    lines = [f"| {' | '.join(titles)} |", "|" + "---|" * len(titles)]
    for name in (*PROBLEMS, *LARGE):
        own = rows[rows.problem == name]
        if not len(own):
            continue
        fits = f"{len(own)}, {'all' if own.converged.all() else int(own.converged.sum())}"
        error = f"{own.largest_error.max():.3f} ({own.largest_error.median():.3f})"
        time = f"{own.cpu_s.median():.1f} ({own.cpu_s.max():.1f})"
        cells = f"{name} ({own.variables.iloc[0]})", fits, time, error, own.against.iloc[0], f"{own.peak_mb.max():.0f}"
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run(main)
