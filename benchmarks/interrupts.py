"""Ctrl-C: CPU seconds from the signal until a long call has ended, for every estimator and every function that may run long.

Each case runs in a separate process, with compiled code in the cache, on a table that keeps it busy for longer than the last
signal. SIGINT comes after so many seconds as the line says; the call ends by KeyboardInterrupt, or by a result with a warning.
The limit is 2 s. "fast" is a case that ended before the signal came. Chains of swaps stop at once, and then average as many
of the orders that they have kept as is done in a moment.
"""

import json
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from ._common import parser, print_line, run, save_csv

LIMIT = 2.0
MOMENTS = (0.7, 2.0, 4.5)  # seconds after the call began


def table(n_rows, n_columns, n_states, missing=0.0, seed=0):
    """Columns that hang together in threes, so that searches have something to find."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(0, n_states, (n_rows, -(-n_columns // 3)))
    codes = np.repeat(hidden, 3, axis=1)[:, :n_columns]
    noise = rng.random(codes.shape) < 0.4
    codes = np.where(noise, rng.integers(0, n_states, codes.shape), codes)
    frame = pd.DataFrame(codes, columns=[f"c{i}" for i in range(n_columns)]).astype(str)
    return frame.mask(rng.random(codes.shape) < missing) if missing else frame


def numbers(n_rows, n_columns, seed=0):
    """Numeric columns and a class that depends on some of them."""
    X = np.random.default_rng(seed).normal(size=(n_rows, n_columns))
    return pd.DataFrame(X, columns=[f"c{i}" for i in range(n_columns)]), np.where(X[:, 0] * X[:, 1] > 0, "u", "v")


def clusterer(name, *size, **parameters):
    """A fit of a clusterer, or of `OrderPosterior`."""
    import pgm_bma

    X = table(*size)
    return lambda: getattr(pgm_bma, name)(**parameters).set_params(random_state=0).fit(X)


def classifier(name, *size, **parameters):
    """A fit of a classifier."""
    import pgm_bma

    X = table(*size)
    y = X.pop(X.columns[-1]).fillna("0")
    return lambda: getattr(pgm_bma, name)(**parameters).fit(X, y)


def predictions(name, n_fit, n_rows, *size, **parameters):
    """predict_proba of many rows."""
    import pgm_bma

    X = table(n_rows, *size)
    y = X.pop(X.columns[-1])
    fitted = getattr(pgm_bma, name)(**parameters).fit(X[:n_fit], y[:n_fit])
    return lambda: fitted.predict_proba(X)


def network(function, n_rows, **options):
    """A function of networks, on rows of alarm."""
    import pgm_bma

    model = pgm_bma.load_network("alarm")
    if function == "simulate":
        return lambda: pgm_bma.simulate(model, n_rows, random_state=0)
    X = pgm_bma.simulate(model, n_rows, random_state=0)
    X = X.mask(np.random.default_rng(0).random(X.shape) < 0.3)
    if function == "EMEstimator":
        from pgmpy.models import DiscreteBayesianNetwork

        bare = DiscreteBayesianNetwork(list(model.edges))
        estimator = pgm_bma.EMEstimator(seed=0, show_progress=False, **options)
        return lambda: bare.copy().fit(X, estimator=estimator)
    return lambda: getattr(pgm_bma, function)(model, X, **options)


def tests_of_fit(function, **options):
    """A test that fits tables drawn from a model."""
    import pgm_bma

    X = table(2000, 15, 3)
    fitted = pgm_bma.LatentClassClusterer(3, random_state=0).fit(X)
    return lambda: getattr(pgm_bma, function)(fitted, X, random_state=0, **options)


def discretizer(name):
    """Cut points of many numbers."""
    import pgm_bma

    X, y = numbers(300_000, 30)
    return lambda: getattr(pgm_bma, name)().fit(X, y)


def swaps(n_rows, n_columns, n_states, **options):
    """Chains of swaps over orders."""
    import pgm_bma

    sampler = pgm_bma.SwapSampler(n_orders=100_000, burn_in=1000, **options)
    return clusterer("OrderPosterior", n_rows, n_columns, n_states, method="mcmc", sampler=sampler, max_indegree=3)


def additive():
    """The default classifier on numbers."""
    import pgm_bma

    X, y = numbers(30_000, 60)
    return lambda: pgm_bma.AdditiveBayesClassifier().fit(X, y)


def random_graphs():
    """Uniform DAGs of many nodes."""
    import pgm_bma

    return lambda: [pgm_bma.random_dag(300, random_state=i) for i in range(1000)]


CASES = {
    "EMA": lambda: clusterer("EMAClusterer", 50_000, 40, 4, n_clusters=8, n_init=60),
    "EMA, missing": lambda: clusterer("EMAClusterer", 50_000, 40, 4, 0.1, n_clusters=8, n_init=60),
    "EMA, wide": lambda: clusterer("EMAClusterer", 300, 20_000, 3, n_clusters=8, n_init=60),
    "latent classes": lambda: clusterer("LatentClassClusterer", 50_000, 40, 4, n_clusters=8, n_init=60),
    "latent classes, scan over k": lambda: clusterer(
        "LatentClassClusterer", 20_000, 30, 4, n_clusters=range(2, 9), n_init=30
    ),
    "structural EM": lambda: clusterer("StructuralEMClusterer", 30_000, 40, 4, n_clusters=4),
    "structural EM, missing": lambda: clusterer("StructuralEMClusterer", 10_000, 30, 4, 0.1, n_clusters=4),
    "structural EM, wide": lambda: clusterer("StructuralEMClusterer", 500, 800, 3, n_clusters=3),
    "structural EM, expectation": lambda: clusterer(
        "StructuralEMClusterer", 5000, 20, 4, n_clusters=3, completion="expectation"
    ),
    "structural EM, general": lambda: clusterer(
        "StructuralEMClusterer", 5000, 15, 3, n_clusters=3, structures="general", n_init=4
    ),
    "bound and collapse": lambda: clusterer(
        "StructuralEMClusterer", 10_000, 30, 4, 0.1, n_clusters=4, parameters="bound_collapse"
    ),
    "forest clusters": lambda: clusterer("ForestAveragedClusterer", 20_000, 40, 4, n_clusters=4),
    "forest classifier": lambda: classifier("ForestAveragedClassifier", 200_000, 150, 4),
    "forest classifier, missing": lambda: classifier("ForestAveragedClassifier", 3000, 40, 3, 0.2),
    "forest predictions": lambda: predictions("ForestAveragedClassifier", 2000, 100_000, 60, 3),
    "TAN": lambda: classifier("TANClassifier", 300_000, 200, 4),
    "naive Bayes": lambda: classifier("AveragedNaiveBayesClassifier", 300_000, 200, 4),
    "additive": additive,
    "additive, categorical": lambda: classifier("AdditiveBayesClassifier", 20_000, 80, 4),
    "Kikuchi": lambda: classifier("KikuchiBayesClassifier", 20_000, 60, 4),
    "Kikuchi, level 3": lambda: classifier("KikuchiBayesClassifier", 5000, 30, 4, level=3, random_state=0),
    "orders, exact": lambda: clusterer("OrderPosterior", 1000, 20, 3, method="exact"),
    "orders, Gibbs": lambda: clusterer("OrderPosterior", 5000, 100, 4, method="mcmc"),
    "orders, Gibbs, dag": lambda: clusterer("OrderPosterior", 5000, 60, 4, method="mcmc", structure_weighting="dag"),
    "orders, many states": lambda: clusterer("OrderPosterior", 100_000, 60, 20, method="mcmc"),
    "orders, missing": lambda: clusterer("OrderPosterior", 2000, 40, 3, 0.2, method="mcmc"),
    "orders, swaps": lambda: swaps(2000, 30, 3),
    "orders, swaps, 60 columns": lambda: swaps(2000, 60, 3),
    "order classifier": lambda: classifier("OrderAveragedClassifier", 5000, 60, 4, random_state=0),
    "order predictions": lambda: predictions("OrderAveragedClassifier", 1000, 100_000, 20, 3, random_state=0),
    "fixed order": lambda: classifier("FixedOrderClassifier", 20_000, 100, 4, random_state=0),
    "network EM": lambda: network("EMEstimator", 5000, max_iter=10_000, atol=1e-12),
    "network probabilities": lambda: network("predict_proba", 50_000, variables=["HISTORY", "CVP"]),
    "impute": lambda: network("impute", 50_000, random_state=0),
    "simulate": lambda: network("simulate", 20_000_000),
    "random_dag": random_graphs,
    "goodness of fit": lambda: tests_of_fit("goodness_of_fit", n_bootstrap=1000),
    "likelihood ratio test": lambda: tests_of_fit("likelihood_ratio_test", n_bootstrap=1000),
    "residuals": lambda: tests_of_fit("bivariate_residuals", n_bootstrap=1000),
    "MDL cut points": lambda: discretizer("MDLDiscretizer"),
}


def delay(call, moment):
    """CPU and wall seconds from the signal until `call` ended, None if it ended before."""
    sent = []

    def send():
        sent[:] = time.process_time(), time.perf_counter()
        signal.raise_signal(signal.SIGINT)

    timer = threading.Timer(moment, send)
    timer.start()
    try:
        call()
    except KeyboardInterrupt:
        pass
    finally:
        timer.cancel()
    if not sent:
        return None
    return time.process_time() - sent[0], time.perf_counter() - sent[1]


def child(name, moments):
    """All signals of one case; a line of JSON each."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import numba  # noqa: F401  # an import or a compilation that is interrupted is not what is measured

    call = CASES[name]()
    for _ in range(3):
        delay(call, moments[-1])  # code is compiled, or read from the cache
    for moment in moments:
        found = delay(call, moment)
        print(json.dumps({"moment": moment, "found": found}), flush=True)


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", default=list(CASES), help="names of the cases")
    options.add_argument("--child", default="", help="run one case in this process")
    arguments = options.parse_args(argv)
    if arguments.child:
        return child(arguments.child, MOMENTS)
    rows = []
    for name in arguments.only:
        words = [sys.executable, "-m", "benchmarks", "interrupts", "--child", name]
        done = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[1], timeout=300)
        if done.returncode:
            print(done.stderr[-600:], file=sys.stderr)
        for line in done.stdout.splitlines():
            told = json.loads(line)
            cpu, wall = told["found"] or (float("nan"), float("nan"))
            row = {"case": name, "signal_after_s": told["moment"], "cpu_s": cpu, "wall_s": wall}
            row["outcome"] = "fast" if told["found"] is None else "within" if cpu <= LIMIT else "later"
            rows.append(row)
            print_line(row)
        if done.returncode:
            rows.append({"case": name, "outcome": f"exit {done.returncode}"})
            print_line(rows[-1])
    save_csv(rows, "interrupts", arguments.out, keys=["case", "signal_after_s"])
    return None


if __name__ == "__main__":
    run(main)
