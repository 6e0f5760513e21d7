"""Starts in two stages and accelerated (the default) against all starts run to the end by the plain loop: scores and CPU time.

Tables drawn from latent-class models: 30 of 2000 x 50 (binary, 3 clusters, from clear to overlapping), hard ones (few columns,
up to 8 clusters, more clusters asked for than there are), where most starts end in different optima; with --full also one of
50,000 x 50 per sharpness. "worse" counts tables on which the best score is lower by more than 0.1 nat. CPU time of both in one run.
"""

import time

import numpy as np

from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.problem import PriorSettings

from ._common import parser, print_table, run, save_csv

METHODS = {"EM": (None, "random"), "EMA (variational)": ("variational", "em")}
DEFAULT = {"n_final": 8, "accelerate": True}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=30, help="tables of 2000 x 50")
    options.add_argument("--hard", type=int, default=10, help="hard tables")
    chosen = options.parse_args(argv)
    lines = []
    for name, method in METHODS.items():
        lines.append(
            summary(f"{name}, 2000 x 50, 3 clusters", [compare(usual(s), method, s) for s in range(chosen.tables)])
        )
        lines.append(summary(f"{name}, hard", [compare(hard(s), method, s) for s in range(chosen.hard)]))
        if chosen.full:
            for sharpness in (1.0, 5.0, 10.0):
                case = draw(50_000, 50, 3, sharpness, 2, 1), 2, 3, 1.0
                lines.append(
                    summary(f"{name}, 50,000 x 50, 3 clusters, Dirichlet({sharpness:g})", [compare(case, method, 0)])
                )
    print_table(lines, "two stages and acceleration against 30 full plain starts", 3)
    save_csv(lines, "ema_starts", chosen.out)


def usual(seed):
    return draw(2000, 50, 3, (1.0, 5.0, 10.0)[seed % 3], 2, seed), 2, 3, 1.0


def hard(seed):
    rng = np.random.default_rng([seed, 1])
    n_rows, n_columns, n_clusters = (int(rng.choice(some)) for some in ([200, 500, 1500], [8, 12, 20], [3, 4, 6]))
    n_states, alpha = int(rng.choice([2, 3, 4])), float(rng.choice([1, 0.1]))
    codes = draw(n_rows, n_columns, n_clusters, float(rng.choice([0.5, 1, 2])), n_states, seed)
    return codes, n_states, n_clusters + int(rng.choice([0, 2])), alpha


def draw(n_rows, n_columns, n_clusters, sharpness, n_states, seed):
    """Rows of a latent-class model whose tables are Dirichlet(sharpness): small is clear, large overlaps."""
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.full(n_states, sharpness), size=(n_columns, n_clusters)).cumsum(axis=2)
    labels = rng.integers(0, n_clusters, n_rows)
    codes = np.empty((n_rows, n_columns), dtype=np.int8, order="F")
    for i, table in enumerate(tables):
        codes[:, i] = (rng.random(n_rows)[:, None] >= table[labels, :-1]).sum(axis=1)
    return codes


def compare(case, method, seed):
    """(difference of the best scores, CPU seconds of the default, of all plain starts)."""
    codes, n_states, n_clusters, alpha = case
    averaging, init = method
    cardinalities = np.full(codes.shape[1], n_states)
    fit_latent_class(
        table_rows(codes[:50], cardinalities),
        n_clusters,
        averaging=averaging,
        init=init,
        n_init=1,
        max_iter=30,
        **DEFAULT,
    )
    found = []
    for how in (DEFAULT, {}):
        began = time.process_time()
        fit = fit_latent_class(
            table_rows(codes, cardinalities),
            n_clusters,
            rng=np.random.default_rng(seed),
            averaging=averaging,
            init=init,
            priors=PriorSettings(alpha, alpha, alpha),
            **how,
        )
        ends = [path[-1] for path, finished in zip(fit.starts.paths, fit.starts.finished) if finished]
        found.append((max(ends), time.process_time() - began))
    (ours, seconds), (theirs, plain) = found
    return ours - theirs, seconds, plain


def summary(name, results):
    gain, seconds, plain = np.array(results).T
    return {
        "tables": name,
        "number": len(gain),
        "worse": int((gain < -0.1).sum()),
        "better": int((gain > 0.1).sum()),
        "mean gain (nats)": gain.mean(),
        "CPU (s)": seconds.sum(),
        "CPU of all plain (s)": plain.sum(),
        "ratio": seconds.sum() / plain.sum(),
    }


if __name__ == "__main__":
    run(main)
