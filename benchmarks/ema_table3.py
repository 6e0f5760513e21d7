"""EMA Table III: two clusters in the leukemia data against the two kinds of leukemia, all genes, labels used only to score.

Each array is binarised at its own quantile, genes that are then constant are dropped; gene by gene
at the median is shown for contrast. Methods: EM, EMA with the three policies of the paper, variational EMA; and both with an
arc prior that expects few genes to matter. "gap" is the distance in nats between the two best starts, the one thing besides the
data that a user without labels can look at. Needs PGM_BMA_DATA with golub.csv; the quick version repeats twice.
"""

import time

import numpy as np

from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class.loop import LatentClassSettings, conclude, run_all_starts, start_scores
from pgm_bma.latent_class.problem import PriorSettings, log_joint, make_problem
from pgm_bma.metrics import clustering_accuracy

from ._common import need_dataset, paper_table, parser, print_table, run, save_csv

TABLE = True
SPARSE = 0.007  # about 50 of 7129 genes, Golub's number
VERY_SPARSE = 1e-6
# name -> (averaging, init, arc prior, ways to combine the starts)
LOOPS = {
    "EM": (None, "random", 0.5, ("best",)),
    "EMA": ("linear", "random", 0.5, ("best", "uniform", "likelihood")),
    "EMA, sparse prior": ("linear", "random", SPARSE, ("best", "uniform", "likelihood")),
    "twin": ("variational", "em", 0.5, ("evidence",)),
    "twin, sparse prior": ("variational", "em", SPARSE, ("evidence",)),
    "twin, very sparse prior": ("variational", "em", VERY_SPARSE, ("evidence",)),
}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--quantiles", type=float, nargs="+", default=[0.7, 0.8, 0.9, 0.95])
    options.add_argument("--repeats", type=int, help="runs with fresh starts")
    options.add_argument("--starts", type=int, help="starts per run (paper: 100)")
    chosen = options.parse_args(argv)
    n_repeats = chosen.repeats or (10 if chosen.full else 2)
    n_starts = chosen.starts or (100 if chosen.full else 10)
    frame, target = need_dataset("golub")
    kinds = frame[target].to_numpy()
    values = frame.drop(columns=target).to_numpy(dtype=float)
    print_table(paper_table("ema_table3_leukemia"), "published, accuracy in %", 2)
    tables = {"genes at their medians": (values > np.median(values, axis=0)).astype(np.int8)}
    for q in chosen.quantiles:
        binary = values > np.quantile(values, q, axis=1, keepdims=True)
        tables[f"arrays at their {100 * q:g} % quantile"] = binary.astype(np.int8)
    lines = []
    for preparation, codes in tables.items():
        codes = np.asfortranarray(codes[:, codes.min(axis=0) < codes.max(axis=0)])
        for name, loop in LOOPS.items():
            began = time.perf_counter()
            found, gaps = repeat(codes, kinds, loop, n_repeats, n_starts, chosen.seed)
            for rule, accuracies in found.items():
                lines.append(
                    {
                        "preparation": preparation,
                        "genes": codes.shape[1],
                        "method": f"{name}, {rule}",
                        "accuracy %": 100 * np.mean(accuracies),
                        "sd": 100 * np.std(accuracies, ddof=1) if n_repeats > 1 else np.nan,
                        "gap (nats)": np.mean(gaps),
                    }
                )
            print(preparation, name, f"{time.perf_counter() - began:.1f} s", flush=True)
    print_table(lines, f"ours: mean and sd over {n_repeats} runs of {n_starts} starts", 1)
    save_csv([{**line, "repeats": n_repeats, "starts": n_starts} for line in lines], "ema_table3", chosen.out)


def repeat(codes, kinds, loop, n_repeats, n_starts, seed):
    """Accuracies {rule: list} after label matching, and the gaps between the two best starts."""
    averaging, init, arc_prior, rules = loop
    cardinalities = np.full(codes.shape[1], 2)
    settings = PriorSettings(arc_prior=arc_prior)
    problem = make_problem(table_rows(codes, cardinalities), 2, settings, averaging)
    found, gaps = {rule: [] for rule in rules}, []
    for r in range(n_repeats):
        how = LatentClassSettings(n_init=n_starts, init=init, max_iter=300, tol=1e-4)
        starts = run_all_starts(problem, how, np.random.default_rng([seed, r]))
        scores = np.sort(start_scores(problem, starts)[~starts.collapsed])[::-1]
        gaps.append(scores[0] - scores[1] if len(scores) > 1 else np.nan)
        for rule in rules:
            fit = conclude(problem, starts, LatentClassSettings(combine_starts=rule))
            labels = log_joint(codes, fit.theta_c, fit.theta, fit.state_start).argmax(axis=1)
            found[rule].append(clustering_accuracy(kinds, labels))
    return found, gaps


if __name__ == "__main__":
    run(main)
