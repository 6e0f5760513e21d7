"""Default chains on small networks with experiments: largest error of an arc against the exact sum, in 40 fits.

Eight variables of two or three states, networks and tables from the prior, 300 rows of which 30 % have a variable set.
"""

import time
import warnings

import numpy as np

from pgm_bma import OrderPosterior

from ._common import parser, print_table, run, save_csv
from ._effects import as_frame, network_from_prior, simulate_experiments


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--fits", type=int, default=40)
    chosen = options.parse_args(argv)
    lines = []
    for number in range(chosen.fits):
        rng = np.random.default_rng([chosen.seed, number])
        cards = rng.integers(2, 4, 8)
        parents, tables = network_from_prior(rng, cards)
        codes, targets = simulate_experiments(rng, cards, parents, tables, 300, 0.3)
        line = {"fit": number}
        for weighting in ("order", "dag"):
            edges = []
            for method in ("exact", "mcmc"):
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    posterior = OrderPosterior(method=method, structure_weighting=weighting, random_state=number)
                    posterior.fit(as_frame(codes, cards), interventions=targets)
                edges.append(posterior.edge_posterior_.to_numpy())
            line[f"error, {weighting}"] = np.abs(edges[0] - edges[1]).max()
            line[f"CPU s, {weighting}"] = time.process_time() - start
        lines.append(line)
    save_csv(lines, "effects_chains", chosen.out)
    summary = []
    for weighting in ("order", "dag"):
        errors = np.array([line[f"error, {weighting}"] for line in lines])
        within = int((errors <= 0.05).sum())
        summary.append({"weighting": weighting, "fits": len(lines), "within .05": within, "largest": errors.max()})
    print_table(summary, "Largest error of an arc", 3)


if __name__ == "__main__":
    run(main)
