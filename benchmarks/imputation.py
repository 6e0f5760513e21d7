"""Multiple imputation by the log score of hidden cells: averaged structures, one network, chained equations, most frequent value.

Cells of complete tables are hidden completely at random. Every method gives the same number of completed copies; the score of a
hidden cell is the log of the share of copies with its true value, smoothed by one pseudo-copy of the uniform law.
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from pgm_bma import OrderPosterior, impute, load_dataset, load_network, simulate

from ._common import parser, print_line, run, save_csv

TABLES = {"asia": (500, 0.2), "child": (300, 0.3), "voting": (None, 0.2)}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--copies", type=int, default=20, help="completed copies of every method")
    options.add_argument("--sets", type=int, default=None, help="times that cells are hidden (default 2; --full 10)")
    options = options.parse_args(argv)
    rows = []
    for name, (n_rows, share) in TABLES.items():
        for k in range(options.sets or (10 if options.full else 2)):
            rng = np.random.default_rng([options.seed, k])
            frame = complete_table(name, n_rows, k)
            hidden = rng.random(frame.shape) < share
            holes = frame.mask(hidden)
            for method, function in METHODS.items():
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    copies = function(holes, options.copies, rng)
                line = {"table": name, "rows": len(frame), "hidden": share, "set": k, "method": method}
                rows.append(line | scores(frame, hidden, copies) | {"CPU seconds": time.process_time() - start})
                print_line(rows[-1])
        save_csv(rows, "imputation", options.out)
    means = pd.DataFrame(rows).groupby(["table", "method"])[["log score", "right"]].mean().unstack(0)
    print(means.round(3).to_string())


def complete_table(name, n_rows, seed):
    if n_rows is None:
        return load_dataset(name)[0].dropna().astype(object).reset_index(drop=True)
    return simulate(load_network(name), n_rows, random_state=seed).astype(object)


def averaged(holes, n_copies, rng):
    posterior = OrderPosterior(random_state=0, max_sweeps=320).fit(holes)
    return posterior.complete(holes, n_copies, random_state=rng)


def one_network(holes, n_copies, rng):
    """The best single DAG of the same posterior with posterior-mean tables."""
    model = OrderPosterior(random_state=0, max_sweeps=320).fit(holes).model_
    return [impute(model, holes, "sample", random_state=rng) for _ in range(n_copies)]


def most_frequent(holes, n_copies, rng):
    return [holes.fillna(holes.mode().iloc[0])] * n_copies


def chained_equations(holes, n_copies, rng):
    """Every column drawn from a multinomial logistic regression on all others, round by round; every second round is a copy."""
    current = holes.copy()
    for name in holes:
        empty = holes[name].isna().to_numpy()
        current.loc[empty, name] = rng.choice(holes[name].dropna(), empty.sum())
    copies = []
    for round_number in range(10 + 2 * n_copies):
        for name in holes:
            empty = holes[name].isna().to_numpy()
            if not empty.any() or holes[name].nunique() < 2:
                continue
            X = OneHotEncoder(drop="if_binary", handle_unknown="ignore").fit_transform(current.drop(columns=name))
            fitted = LogisticRegression(max_iter=200).fit(X[~empty], holes[name][~empty].astype(str))
            labels = {str(value): value for value in holes[name].dropna().unique()}
            proba = fitted.predict_proba(X[empty])
            drawn = (rng.random((len(proba), 1)) > np.cumsum(proba, axis=1)[:, :-1]).sum(1)
            current.loc[empty, name] = [labels[fitted.classes_[k]] for k in drawn]
        if round_number >= 10 and round_number % 2:
            copies.append(current.copy())
    return copies


METHODS = {
    "averaged structures": averaged,
    "one network": one_network,
    "chained equations": chained_equations,
    "most frequent": most_frequent,
}


def scores(frame, hidden, copies):
    """Mean log score of the hidden cells, and the share of them that a copy has right."""
    n_states = frame.nunique().to_numpy()
    hits = np.mean([(copy.to_numpy() == frame.to_numpy()) for copy in copies], axis=0)
    m = len(copies)
    log_score = np.log((m * hits + 1 / n_states) / (m + 1))[hidden]
    return {"log score": float(log_score.mean()), "right": float(hits[hidden].mean())}


if __name__ == "__main__":
    run(main)
