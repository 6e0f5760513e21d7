"""A column of noise with many states next to a table with two clusters: P(arc) and the partition, under both parameter priors.

300 rows, three columns that know the clusters, two of noise, and one of noise with 2 to 2000 states. "Rand index" is the adjusted
one with the partition that the same method finds without that column.
"""

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from pgm_bma import EMAClusterer, LatentClassClusterer

from ._common import parser, print_table, run, save_csv

STATES = (2, 10, 50, 100, 200, 500, 2000)
METHODS = {"EM": None, "EMA (linear)": "linear", "EMA (variational)": "variational"}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=5, help="tables of each kind")
    chosen = options.parse_args(argv)
    lines = []
    for name, averaging in METHODS.items():
        for prior in ("paper", "consistent"):
            for n_states in STATES:
                found = [one(averaging, prior, n_states, seed) for seed in range(chosen.tables)]
                arc, relevant, index = np.array(found).T
                line = {
                    "method": name,
                    "parameter_prior": prior,
                    "states": n_states,
                    "mean P(arc) of the noise": arc.mean(),
                }
                line |= {
                    "largest": arc.max(),
                    "smallest of the relevant": relevant.min(),
                    "smallest Rand index": index.min(),
                }
                lines.append(line)
    print_table(lines, f"{chosen.tables} tables of 300 rows", 3)
    save_csv(lines, "ema_noise", chosen.out)


def one(averaging, prior, n_states, seed):
    """(P(arc) of the noise, smallest P(arc) of the columns that know the clusters, adjusted Rand index)."""
    rng = np.random.default_rng([seed, 7])
    z = rng.integers(0, 2, 300)
    X = pd.DataFrame({f"q{i}": np.where(rng.random(300) < 0.85, z, 1 - z) for i in range(3)})
    X = X.assign(**{f"noise{i}": rng.integers(0, 2 + i, 300) for i in range(2)})
    noisy = X.assign(many=rng.integers(0, n_states, 300))
    build = LatentClassClusterer if averaging is None else EMAClusterer
    parameters = {"parameter_prior": prior, "n_init": 10, "random_state": 0}
    if averaging is not None:
        parameters["averaging"] = averaging
    without, with_noise = (build(2, **parameters).fit(rows) for rows in (X, noisy))
    posterior = with_noise.arc_posterior_
    return (
        posterior["many"],
        posterior[["q0", "q1", "q2"]].min(),
        adjusted_rand_score(without.labels_, with_noise.labels_),
    )


if __name__ == "__main__":
    run(main)
