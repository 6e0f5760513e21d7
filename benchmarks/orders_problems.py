"""Random problems with exact sums: how often chains say that they have converged while an arc is off.

5 to 20 columns ("dag": 5 to 12) of two or three states, 10 to 1,000,000 rows, networks with at most three parents, up to a third of
the columns copies of others, exact or with noise, columns in random order. Default settings, method="mcmc" against method="exact".
"""

import time
import warnings

import numpy as np
import pandas as pd

from pgm_bma import OrderPosterior

from ._common import parser, print_table, run, save_csv


def problem(seed):
    """(DataFrame, weighting, what it is like) of one problem."""
    rng, weighting = np.random.default_rng([31, seed]), ("order", "dag")[seed % 2]
    n, n_rows = int(rng.integers(5, (20 if weighting == "order" else 12) + 1)), round(10 ** rng.uniform(1, 6))
    n_copies, noise = int(rng.integers(0, min(4, n // 3) + 1)), (0.0, 0.0, 1e-4, 1e-3, 0.01)[rng.integers(5)]
    most, concentration = int(rng.integers(1, 4)), rng.choice([0.3, 1.0])
    m = n - n_copies
    sizes = rng.integers(2, 4, size=m) if rng.random() < 0.5 else np.full(m, 2)
    codes = np.zeros((n_rows, m), dtype=np.int8)
    for v in range(m):
        k = min(v, int(rng.integers(0, most + 1)))
        line, n_lines = np.zeros(n_rows, dtype=int), 1
        for p in rng.choice(v, k, replace=False) if k else ():
            line, n_lines = line * sizes[p] + codes[:, p], n_lines * sizes[p]
        chances = rng.dirichlet(np.full(sizes[v], concentration), size=n_lines).cumsum(1)
        codes[:, v] = np.minimum((rng.random(n_rows)[:, None] > chances[line]).sum(1), sizes[v] - 1)
    origin = rng.choice(m, n_copies, replace=True)
    copies = codes[:, origin].copy()
    if noise:
        changed = rng.random(copies.shape) < noise
        for j, column in enumerate(origin):
            copies[changed[:, j], j] = rng.integers(sizes[column], size=changed[:, j].sum())
    codes = np.column_stack([codes, copies])[:, rng.permutation(n)]
    about = {"weighting": weighting, "columns": n, "rows": n_rows, "copies": n_copies, "noise": noise}
    return pd.DataFrame(codes, columns=[f"v{k}" for k in range(n)]), weighting, about


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument(
        "--problems", type=int, nargs=2, default=(0, 60), help="first, and one past the last (--full: 0 500)"
    )
    options = reader.parse_args(argv)
    rows = []
    for seed in range(*((0, 500) if options.full else options.problems)):
        table, weighting, about = problem(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            law = {"structure_weighting": weighting}
            exact = OrderPosterior(method="exact", **law, random_state=0).fit(table)
            began = time.process_time()
            sampled = OrderPosterior(method="mcmc", **law, random_state=seed).fit(table)
        seconds = time.process_time() - began
        off = np.abs(exact.edge_posterior_.to_numpy() - sampled.edge_posterior_.to_numpy())
        rows.append(
            {
                "problem": seed, **about, "converged": sampled.converged_, "largest_error": round(float(off.max()), 4),
                "beyond_0.1": int((off > 0.1).sum()), "sweeps": sampled.n_sweeps_, "cpu_s": round(seconds, 2),
            }
        )  # fmt: skip
    save_csv(rows, "orders_problems", options.out, keys=["problem"])
    found = pd.DataFrame(rows)
    good = found[found.converged]
    print_table(
        [
            {
                "problems": len(found), "converged": len(good), "off_by_.05": int((good.largest_error > 0.05).sum()),
                "off_by_.1": int((good.largest_error > 0.1).sum()), "largest": good.largest_error.max(), "cpu_s": found.cpu_s.sum(),
            }
        ]
    )  # fmt: skip


if __name__ == "__main__":
    run(main)
