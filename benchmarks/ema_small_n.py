"""EMA Table I at small N: what makes the published wins? EM's prior and the sizes of the true clusters are varied.

The published wins of EMA at N = 10 and 20 do not repeat with a Dirichlet prior in EM and true cluster sizes from Dirichlet(1).
At these sizes EMA mostly collapses to one cluster, so the comparison asks how good "one cluster" is: good when one true
cluster dominates. Printed: wins/draws/losses of EMA (30 random starts, likelihood average) against EM (best of 30).
"""

import numpy as np

from ._common import paper_table, parser, print_line, print_table, run, save_csv
from ._ema_grid import METHODS, compare, run_cell
from ._random_models import random_selective_naive_bayes

TABLE = True
CELLS = [(6, 2, 10), (8, 2, 20), (6, 3, 10), (10, 3, 10), (8, 3, 20), (6, 2, 640)]
SKEWS = (1.0, 0.5, 0.25)  # Dirichlet of the true cluster sizes: 1 is uniform over the simplex, 0.25 makes one dominate


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--models", type=int, help="models a cell (paper: 50)")
    chosen = options.parse_args(argv)
    n_models = chosen.models or (50 if chosen.full else 20)
    paper = paper_table("ema_table1_selective_naive_bayes")
    chosen_methods = {name: METHODS[name] for name in ("EM", "EMA")}
    lines = []
    for n, n_clusters, size in CELLS:
        row = paper[(paper["n_variables"] == n) & (paper["n_clusters"] == n_clusters)]
        for skew in SKEWS:
            line = {"variables": n, "clusters": n_clusters, "N": size, "paper (50)": row[f"N={size}"].iloc[0]}
            line["cluster sizes"] = f"Dirichlet({skew:g})"
            for name, alpha in (("EM with prior", 1.0), ("EM without prior", 0.0)):

                def draw(rng, n=n, n_clusters=n_clusters, skew=skew):
                    network = random_selective_naive_bayes(n, n_clusters, random_state=rng, as_arrays=True)
                    sizes = rng.dirichlet(np.full(n_clusters, skew))[None]
                    return network._replace(cpts=(sizes, *network.cpts[1:]))

                distances, _ = run_cell(draw, size, n_clusters, n_models, 30, chosen.seed, chosen_methods, alpha)
                line[f"against {name}"] = compare(distances, "EMA")
                line[f"distance, {name}"] = distances["EM"].mean()
            line["distance, EMA"] = distances["EMA"].mean()
            lines.append(line)
            print_line(line)
    print_table(lines, f"EMA against EM, {n_models} models a cell")
    save_csv(lines, "ema_small_n", chosen.out)


if __name__ == "__main__":
    run(main)
