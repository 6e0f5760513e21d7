"""EMA Fig. 6: does EMA find which variables do not depend on the cluster? I_P by number of rows.

The paper draws rows from two selective naive Bayes models (Fig. 5: four variables, X4 independent; six variables, X4 and X6
independent) without giving their parameters. Chosen here: binary variables, P(C = 0) = 0.5, and the tables in MODELS.
I_P (eq. 16) is averaged over the 30 starts, as in the paper; bits, and averaged over several samples.
"""

import numpy as np

from pgm_bma.foundation.numbers.graphs import sample_codes
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.problem import cluster_dependence

from ._common import parser, print_table, run, save_csv

TABLE = True
# P(X_i = 1 | C = 0), P(X_i = 1 | C = 1)
MODELS = {
    "a: four variables": [(0.15, 0.80), (0.75, 0.20), (0.30, 0.85), (0.40, 0.40)],
    "b: six variables": [(0.15, 0.80), (0.75, 0.20), (0.30, 0.85), (0.40, 0.40), (0.80, 0.30), (0.60, 0.60)],
}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--sizes", type=int, nargs="+", default=[25, 50, 100, 200, 400, 800, 1600])
    options.add_argument("--samples", type=int, help="data sets per size")
    chosen = options.parse_args(argv)
    n_samples = chosen.samples or (50 if chosen.full else 10)
    lines = []
    for name, tables in MODELS.items():
        for size in chosen.sizes:
            found = np.mean([dependence(tables, size, [chosen.seed, size, s]) for s in range(n_samples)], axis=0)
            independent = [i for i, (p, q) in enumerate(tables) if p == q]
            weakest = min(value for i, value in enumerate(found) if i not in independent)
            line = {"model": name, "N": size} | {f"X{i + 1}": value for i, value in enumerate(found)}
            lines.append(
                line | {"weakest dependent - strongest independent": weakest - max(found[i] for i in independent)}
            )
    print_table(
        lines, f"mean I_P over 30 EMA starts, bits, {n_samples} data sets a size; X4 (and X6) are independent", 4
    )
    for name in MODELS:
        gaps = [line["weakest dependent - strongest independent"] for line in lines if line["model"] == name]
        print(
            f"{name}: the gap {'grows' if gaps[-1] > gaps[0] else 'does not grow'} from N = {chosen.sizes[0]} to {chosen.sizes[-1]}"
        )
    save_csv(lines, "ema_fig6", chosen.out)


def dependence(tables, size, seed):
    """Mean I_P over 30 starts of EMA on one sample, bits."""
    rng = np.random.default_rng(seed)
    cpts = [[[0.5, 0.5]], *([[1 - p, p], [1 - q, q]] for p, q in tables)]
    codes = sample_codes(cpts, [(), *[(0,)] * len(tables)], size, rng)[:, 1:]
    fit = fit_latent_class(
        table_rows(codes, np.full(len(tables), 2)),
        2,
        averaging="linear",
        rng=rng,
        n_init=30,
        collapse="ignore",
        tol=1e-4,
    )
    starts = zip(fit.starts.theta_c, fit.starts.theta)
    return np.mean([cluster_dependence(c, t, fit.state_start) for c, t in starts], axis=0) / np.log(2)


if __name__ == "__main__":
    run(main)
