"""Forest sums, forest-averaged prediction and the clustering iteration: times, and ratios against plain matrix products."""

import numpy as np

from pgm_bma import ForestAveragedClassifier, load_dataset, random_augmented_naive_bayes, simulate
from pgm_bma.forests.clustering import Settings, make_rows, run_start
from pgm_bma.forests.sums import forest_sum
from pgm_bma.foundation.pairs import indicators, pair_counts
from pgm_bma.foundation.table import encode, fold

from ._common import best_of, best_of_each, parser, print_table, run, save_csv


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    rng = np.random.default_rng(options.seed)
    rows = [*sums(rng), prediction(), iteration(options.seed)]
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


def iteration(seed, n_iter=10):
    model = random_augmented_naive_bayes(20, 4, 10, cardinalities=[2] * 20, random_state=seed)
    data = encode(simulate(model, 8000, random_state=seed))
    codes, weights, _ = fold(data.codes, None)
    rows = make_rows(codes, data.schema.cardinalities, weights)
    q = np.random.default_rng(seed).dirichlet(np.full(4, 0.3), len(codes))
    q = run_start(rows, q, Settings(max_iter=30)).responsibilities
    flags = indicators(codes, data.schema.cardinalities)
    seconds = best_of_each(
        {
            "ours": lambda: run_start(rows, q, Settings(max_iter=n_iter, tol=-np.inf)),
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
