"""What effects() costs at the defaults on 1000 rows, and whether the Monte Carlo error of ancestors is what it says.

One table of asia, child and alarm, fitted with several seeds, each fit in a separate process; child also by chains. "error
reported" is the largest of the fits (`ancestor_posterior_.attrs["monte_carlo_error"]`), "error seen" the standard deviation of a
share from fit to fit, of the pair of variables where it is largest.
"""

import time
from functools import partial

import numpy as np

from pgm_bma import OrderPosterior, load_network, simulate

from ._child import in_child, peak
from ._common import parser, print_table, run, save_csv

PROBLEMS = {
    "asia": ("asia", {}),
    "child": ("child", {}),
    "child, by chains": ("child", {"method": "mcmc"}),
    "alarm": ("alarm", {}),
}
LIMIT = 300


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--fits", type=int, default=8)
    chosen = options.parse_args(argv)
    lines, summary = [], []
    for name, (network, settings) in PROBLEMS.items():
        X = simulate(load_network(network), 1000, random_state=chosen.seed)
        found = [in_child(partial(one, X, settings, seed), LIMIT) for seed in range(chosen.fits)]
        shares = np.array([each.pop("ancestors") for each in found])
        for seed, each in enumerate(found):
            lines.append({"problem": name, "seed": seed} | each)
        worst = {key: max(each[key] for each in found) for key in ("CPU s of effects", "MB in all")}
        seen = float(shares.std(0, ddof=1).max())
        told = max(each["error reported"] for each in found)
        summary.append({"problem": name, "fits": len(found)} | worst | {"error reported": told, "error seen": seen})
    save_csv(lines, "effects_cost", chosen.out)
    save_csv(summary, "effects_cost_summary", chosen.out)
    print_table(summary, "Largest of the fits", 3)


def one(X, settings, seed):
    """Costs and shares of one fit."""
    start = time.process_time()
    posterior = OrderPosterior(random_state=seed, **settings).fit(X)
    fitted = time.process_time()
    found = posterior.effects()
    ended = time.process_time()
    costs = {"CPU s of the fit": fitted - start, "CPU s of effects": ended - fitted, "MB in all": peak()}
    told = {"draws": found.attrs["n_dags"], "error reported": found.attrs["monte_carlo_error"]}
    return costs | told | {"ancestors": posterior.ancestor_posterior_.to_numpy().ravel().tolist()}


if __name__ == "__main__":
    run(main)
