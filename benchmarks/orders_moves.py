"""OrderAveragedClassifier on the paper's two problems of alarm: Gibbs chains until they agree against the paper's swaps.

catechol and shunt, training sets of N rows, 1000 test rows; K2 with alpha = 1 and at most three parents in both. Swaps have the
paper's length (one chain, 30 orders); Gibbs chains are the default (four, 30 orders each). Accuracy in per cent and log loss, mean
and standard error over training sets; `difference` is Gibbs less swaps, paired by training set.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import pgm_bma

from ._common import parser, print_table, run, save_csv

TARGETS = {"catechol": "CATECHOL", "shunt": "SHUNT"}
MOVES = {"swap": {"preset": "paper"}, "gibbs": {"parameter_prior": "paper", "max_indegree": 3}}
N_TEST = 1000


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument("--sizes", type=int, nargs="+", default=[100, 1000], help="training rows")
    reader.add_argument("--sets", type=int, default=5, help="training sets per size")
    options = reader.parse_args(argv)
    alarm = pgm_bma.load_network("alarm")
    states = {node: list(alarm.get_cpds(node).state_names[node]) for node in alarm.nodes}
    rows = []
    for problem, target in TARGETS.items():
        for size in options.sizes:
            found = {moves: [] for moves in MOVES}
            for number in range(options.sets):
                train = pgm_bma.simulate(alarm, size, random_state=options.seed + 1000 * size + number)
                test = pgm_bma.simulate(alarm, N_TEST, random_state=options.seed + 77 + number)
                for moves, settings in MOVES.items():
                    found[moves].append(judge(settings, states, train, test, target, options.seed + number))
            rows += [line(problem, size, moves, values, found["swap"]) for moves, values in found.items()]
            print_table(rows, "classes of alarm by moves", 3)
            save_csv(rows, "orders_moves", options.out)


def judge(settings, states, train, test, target, seed):
    """(accuracy in per cent, log loss, CPU seconds of fit and prediction, converged)"""
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = pgm_bma.OrderAveragedClassifier(**settings, state_names=states, random_state=seed).fit(train, y=target)
    shares = model.predict_proba(test.drop(columns=target))
    seconds = time.process_time() - began
    true = np.array([list(model.classes_).index(value) for value in test[target]])
    loss = -np.log(shares[np.arange(len(true)), true]).mean()
    return 100 * (shares.argmax(1) == true).mean(), loss, seconds, model.converged_


def line(problem, size, moves, values, swaps):
    right, loss, seconds, converged = np.array(values, dtype=float).T
    gain = loss - np.array(swaps, dtype=float)[:, 1]
    root = np.sqrt(len(values))
    return {
        "problem": problem,
        "N": size,
        "moves": moves,
        "sets": len(values),
        "accuracy": right.mean(),
        "accuracy_error": right.std(ddof=1) / root,
        "log_loss": loss.mean(),
        "log_loss_error": loss.std(ddof=1) / root,
        "difference": gain.mean(),
        "difference_error": gain.std(ddof=1) / root,
        "cpu_s": np.median(seconds),
        "converged": int(converged.sum()) if moves == "gibbs" else np.nan,
    }


if __name__ == "__main__":
    run(main)
