"""Does a scan over numbers of clusters miss? The default scan (two stages of starts, splits and merges) against many full starts.

Tables drawn from latent-class models (200 to 1500 rows, 8 to 20 columns, 3 to 6 clusters), scanned over 2 to 7 clusters by EM.
"missed" counts (table, number) pairs whose log posterior is more than 0.1 nat below the best of all runs; CPU time against 30 full
plain starts at each number.
"""

import time

import numpy as np

from pgm_bma.latent_class.cluster_number import Search
from pgm_bma.latent_class.loop import Settings, fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings

from ._common import parser, print_table, run, save_csv
from .ema_starts import hard

NUMBERS = range(2, 8)


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=5)
    options.add_argument("--starts", type=int, default=200, help="full starts that the scan is compared with")
    chosen = options.parse_args(argv)
    found = [one(seed, chosen.starts) for seed in range(chosen.tables)]
    lines = []
    best = np.concatenate([np.max([scores for scores, _ in table.values()], axis=0) for table in found])
    for method in found[0]:
        scores = np.concatenate([table[method][0] for table in found])
        seconds = sum(table[method][1] for table in found)
        line = {"method": method, "pairs": len(scores), "missed": int((scores < best - 0.1).sum())}
        lines.append(line | {"mean loss (nats)": (best - scores).mean(), "CPU (s)": seconds})
    print_table(lines, f"{chosen.tables} tables, {NUMBERS[0]} to {NUMBERS[-1]} clusters", 3)
    save_csv(lines, "ema_scan", chosen.out)


def one(seed, n_starts):
    """{method: (best log posterior at every number, CPU seconds)}."""
    codes, n_states, _, alpha = hard(seed)
    cardinalities = np.full(codes.shape[1], n_states)
    base = Settings(priors=PriorSettings(alpha, alpha, alpha), collapse="ignore", max_iter=3000)
    default = base._replace(n_final=8, accelerate=True)
    found = {}
    for name, settings in (("scan, default", default._replace(moves=True)), ("scan without moves", default)):
        began = time.process_time()
        search = Search(
            np.asfortranarray(codes), cardinalities, np.ones(len(codes)), np.random.default_rng(seed), settings
        )
        fits = search.fit_numbers([1, *NUMBERS])
        found[name] = [best(fits[k]) for k in NUMBERS], time.process_time() - began
    for name, settings in (
        ("30 full plain starts", base),
        (f"{n_starts} full starts", default._replace(n_init=n_starts, n_final=None)),
    ):
        began = time.process_time()
        fits = {
            k: fit_latent_class(codes, cardinalities, k, settings, rng=np.random.default_rng(seed)) for k in NUMBERS
        }
        found[name] = [best(fits[k]) for k in NUMBERS], time.process_time() - began
    return found


def best(fit):
    """The best log posterior of the finished starts."""
    return max(path[-1] for path, finished in zip(fit.starts.paths, fit.starts.finished) if finished)


if __name__ == "__main__":
    run(main)
