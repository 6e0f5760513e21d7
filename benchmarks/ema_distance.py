"""Distance of EMA to brute-force averaging, from update to update, and with the number of rows.

The paper asks (section VII) whether the distance falls at every iteration and how it depends on the size of the data. Printed, no
theorem claimed: KL in bits to the brute-force model (six binary variables, two clusters, see ema_figs34) after 0, 1, 2, ...
updates from random tables, the share of updates at which it fell, and the distance of the final averaged model by N.
"""

import numpy as np

from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.loop import fit_latent_class

from ._brute_force import brute_force, divergence_bits
from ._common import parser, print_table, run, save_csv
from ._random_models import random_selective_naive_bayes

N_VARIABLES = 6
UPDATES = (0, 1, 2, 3, 5, 8, 12, 20, 40)


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", help="numbers of rows")
    options.add_argument("--tests", type=int, help="models per size")
    options.add_argument("--starts", type=int, default=10)
    chosen = options.parse_args(argv)
    sizes = chosen.sizes or ([50, 100, 200, 400, 800, 1600] if chosen.full else [50, 200, 800])
    n_tests = chosen.tests or (10 if chosen.full else 3)
    lines = []
    for size in sizes:
        paths, finals, falls = [], {"EMA": [], "twin": []}, []
        for test in range(n_tests):
            path, final, fell = one_test(size, [chosen.seed, test], chosen.starts)
            paths.append(path)
            falls += fell
            for name, value in final.items():
                finals[name].append(value)
        line = {"N": size} | {f"update {t}": value for t, value in zip(UPDATES, np.mean(paths, axis=0))}
        line |= {"updates that came closer": np.mean(falls)}
        lines.append(line | {f"{name}, 30 starts": np.mean(values) for name, values in finals.items()})
    print_table(lines, f"mean KL to brute force, bits; {n_tests} models a size, {chosen.starts} EMA starts each", 4)
    save_csv(lines, "ema_distance", chosen.out)


def one_test(size, seed, n_starts):
    """Mean distance after some updates, distances of the final averages, and for every update whether it came closer."""
    rng = np.random.default_rng(seed)
    cards = np.full(N_VARIABLES, 2)
    network = random_selective_naive_bayes(
        N_VARIABLES, 2, cardinalities=cards.tolist(), min_cluster_arcs=3, random_state=rng, as_arrays=True
    )
    codes = np.ascontiguousarray(sample_codes(network.cpts, network.parents, size, rng)[:, 1:])
    truth = brute_force(codes, cards, 2, rng, 20, 200, 4)

    def distance(fit):
        return float(divergence_bits(truth["joint"], truth["states"], fit.theta_c, fit.tables))

    def ema(start, n_updates):
        keywords = {"averaging": "linear", "n_init": 1, "collapse": "ignore", "combine_starts": "best"}
        rng = np.random.default_rng([*seed, start])
        return fit_latent_class(table_rows(codes, cards), 2, rng=rng, max_iter=n_updates, tol=0.0, **keywords)

    by_update = np.array([[distance(ema(start, t)) for t in range(UPDATES[-1] + 1)] for start in range(n_starts)])
    fell = (np.diff(by_update, axis=1) < 0).ravel().tolist()
    final = {}
    for name, averaging, init, combine in (
        ("EMA", "linear", "random", "likelihood"),
        ("twin", "variational", "em", "evidence"),
    ):
        fit = fit_latent_class(
            table_rows(codes, cards),
            2,
            averaging=averaging,
            init=init,
            combine_starts=combine,
            rng=np.random.default_rng(seed),
            collapse="ignore",
        )
        final[name] = distance(fit)
    return by_update.mean(axis=0)[list(UPDATES)], final, fell


if __name__ == "__main__":
    run(main)
