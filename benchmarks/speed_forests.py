"""Forest sums, forest-averaged prediction and the clustering iteration: times, and ratios against plain matrix products."""

import time

import numpy as np

from pgm_bma import ForestAveragedClassifier, load_dataset, simulate
from pgm_bma.forests.average import complete_log_joint, fit_forest_average, row_weights
from pgm_bma.forests.clustering import ForestLoop, run_start
from pgm_bma.forests.rows import hold_rows
from pgm_bma.forests.sums import forest_sum, log_forest_sums
from pgm_bma.foundation.numbers.pairs import indicators, pair_counts
from pgm_bma.foundation.tables.table import encode, fold

from ._common import best_of, best_of_each, parser, print_table, run, save_csv
from ._random_models import random_augmented_naive_bayes


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    rng = np.random.default_rng(options.seed)
    rows = [*sums(rng), prediction(), *row_sums(rng), iteration(options.seed)]
    print_table(rows, "times in milliseconds, best of several", 3)
    save_csv(rows, "speed_forests", options.out)


def sums(rng):
    for n, aim in ((36, 1.0), (200, 100.0)):
        arcs, roots = rng.normal(0, 20, (n, n)), rng.normal(0, 20, n)
        forest_sum(arcs, roots)
        plain = best_of_each(
            {"ours": lambda a=arcs, r=roots: forest_sum(a, r), "inverse": lambda a=arcs: np.linalg.inv(a)}, 20
        )
        yield {
            "what": f"forest sum with all posteriors, n={n}",
            "ms": 1e3 * plain["ours"],
            "aim_ms": aim,
            "peer": "numpy matrix inverse (unsafe: weights over- and underflow)",
            "ratio": plain["ours"] / plain["inverse"],
        }


def prediction():
    frame, target = load_dataset("krkp")
    X, y = frame.drop(columns=target), frame[target]
    some = X.sample(500, random_state=0).index
    classifier = ForestAveragedClassifier(handle_unknown="missing").fit(X.loc[some], y.loc[some])
    complete = X[(classifier._encode(X) >= 0).all(axis=1)].head(3000)
    classifier.predict_proba(complete.head(10))
    seconds = best_of(lambda: classifier.predict_proba(complete), 3)
    return {"what": f"predict {len(complete)} rows x 2 classes x 36 columns", "ms": 1e3 * seconds, "aim_ms": 3000.0}


def row_sums(rng):
    """CPU time of a row and class, against the same sums with wide exponents."""
    for n, n_rows, aim in ((50, 400, 0.1), (500, 60, 5.0)):
        y = rng.integers(0, 2, 1000)
        X = np.where(rng.random((1000, n)) < 0.6, y[:, None], rng.integers(0, 2, (1000, n)))
        X[:, 1::3] = np.where(
            rng.random(X[:, 1::3].shape) < 0.7, X[:, : n - 1 : 3][:, : X[:, 1::3].shape[1]], X[:, 1::3]
        )
        average = fit_forest_average(X, np.full(n, 2), y, 2)
        rows = X[:n_rows]
        complete_log_joint(average, rows[:2])
        seconds = cpu_seconds(lambda a=average, r=rows: complete_log_joint(a, r)) / n_rows / 2
        few = rows[: 2 if n > 100 else 20]
        wide = cpu_seconds(lambda a=average, r=few: wide_sums(a, r)) / len(few) / 2
        yield {
            "what": f"forest sum of a row and class, {n} columns, {n_rows} rows, CPU",
            "ms": 1e3 * seconds,
            "aim_ms": aim,
            "peer": "the same with wide exponents",
            "ratio": seconds / wide,
        }


def wide_sums(average, rows):
    arcs, roots = row_weights(average, rows)
    n = rows.shape[1]
    arcs, roots = np.logaddexp(arcs[..., 0], arcs[..., 1]), np.logaddexp(roots[..., 0], roots[..., 1])
    return log_forest_sums(arcs.reshape(-1, n, n), roots.reshape(-1, n))


def cpu_seconds(function, repeats=3):
    best = np.inf
    for _ in range(repeats):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def iteration(seed, n_iter=10):
    model = random_augmented_naive_bayes(20, 4, 10, cardinalities=[2] * 20, random_state=seed)
    data = encode(simulate(model, 8000, random_state=seed))
    codes, weights, _ = fold(data.codes, None)
    rows = hold_rows(codes, data.schema.cardinalities, weights)
    q = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), len(codes))
    q = run_start(rows, q, ForestLoop(max_iter=30)).state.responsibilities
    flags = indicators(codes, data.schema.cardinalities)
    seconds = best_of_each(
        {
            "ours": lambda: run_start(rows, q, ForestLoop(max_iter=n_iter, tol=-np.inf)),
            "products": lambda: [pair_counts(flags, q * weights[:, None]) for _ in range(n_iter)],
        },
        7,
    )
    return {
        "what": f"clustering iteration, 8000 x 20 binary ({len(codes)} distinct), 4 clusters",
        "ms": 1e3 * seconds["ours"] / n_iter,
        "peer": "pair-count matrix products alone (aim: at most 3)",
        "ratio": seconds["ours"] / seconds["products"],
    }


if __name__ == "__main__":
    run(main)
