"""Multiple imputation by the log score of hidden cells: averaged structures, one network, chained equations, most frequent value.

Cells of complete tables are hidden completely at random. The score of a hidden cell is the log of the probability that a method's
completions give its true value. Of networks that is the share of many completed copies (`--copies`), smoothed by one pseudo-copy of
the uniform law: few copies score low by chance, by about (1 - p) / (2 p copies). Chained equations are slow, so their copies are
few, but each tells the probabilities that it was drawn from, and these are averaged.
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from pgm_bma import GibbsSampler, OrderPosterior, impute, load_dataset, load_network, simulate

from ._common import parser, print_line, run, save_csv

BURN_IN, ROUNDS = 10, 20  # of chained equations
TABLES = {"asia": (500, 0.2), "child": (300, 0.3), "voting": (None, 0.2)}


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--copies", type=int, default=200, help="completed copies of the networks")
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
                    found = function(holes, frame, options.copies, rng)
                line = {"table": name, "rows": len(frame), "hidden": share, "set": k, "method": method}
                score = {"log score": float(np.log(found[hidden]).mean()), "right": float(found[hidden].mean())}
                rows.append(line | score | {"CPU seconds": time.process_time() - start})
                print_line(rows[-1])
        save_csv(rows, "imputation", options.out)
    means = pd.DataFrame(rows).groupby(["table", "method"])[["log score", "right"]].mean().unstack(0)
    print(means.round(3).to_string())


def complete_table(name, n_rows, seed):
    if n_rows is None:
        return load_dataset(name)[0].dropna().astype(object).reset_index(drop=True)
    return simulate(load_network(name), n_rows, random_state=seed).astype(object)


def averaged(holes, frame, n_copies, rng):
    posterior = OrderPosterior(parameter_prior="consistent", random_state=0, sampler=GibbsSampler(max_sweeps=80)).fit(
        holes
    )
    return shares(posterior.complete(holes, n_copies, random_state=rng), frame)


def one_network(holes, frame, n_copies, rng):
    """The best single DAG of the same posterior with posterior-mean tables."""
    model = (
        OrderPosterior(parameter_prior="consistent", random_state=0, sampler=GibbsSampler(max_sweeps=80))
        .fit(holes)
        .model_
    )
    return shares([impute(model, holes, "sample", random_state=rng) for _ in range(n_copies)], frame)


def most_frequent(holes, frame, n_copies, rng):
    """With as much doubt as ten copies that are all alike leave."""
    return shares([holes.fillna(holes.mode().iloc[0])] * 10, frame)


def chained_equations(holes, frame, n_copies, rng):
    """Every column drawn from a multinomial logistic regression on all others, round by round: ROUNDS after BURN_IN count."""
    current, found = holes.copy(), np.zeros(frame.shape)
    for name in holes:
        empty = holes[name].isna().to_numpy()
        current.loc[empty, name] = rng.choice(holes[name].dropna(), empty.sum())
    for round_number in range(BURN_IN + ROUNDS):
        for k, name in enumerate(holes):
            empty = holes[name].isna().to_numpy()
            if not empty.any() or holes[name].nunique() < 2:
                found[:, k] = 1.0
                continue
            X = OneHotEncoder(drop="if_binary", handle_unknown="ignore").fit_transform(current.drop(columns=name))
            fitted = LogisticRegression(max_iter=200).fit(X[~empty], holes[name][~empty].astype(str))
            labels = {str(value): value for value in holes[name].dropna().unique()}
            proba = fitted.predict_proba(X[empty])
            drawn = (rng.random((len(proba), 1)) > np.cumsum(proba, axis=1)[:, :-1]).sum(1)
            current.loc[empty, name] = [labels[fitted.classes_[k]] for k in drawn]
            if round_number >= BURN_IN:
                truth = frame[name][empty].astype(str).to_numpy()
                found[empty, k] += (proba * (fitted.classes_ == truth[:, None])).sum(1) / ROUNDS
    n_states = frame.nunique().to_numpy()
    return (n_copies * found + 1 / n_states) / (n_copies + 1)  # as the shares: states that were never seen have none


def shares(copies, frame):
    """Probability of every cell's true value: its share of the copies, smoothed by one pseudo-copy of the uniform law."""
    hits = np.sum([copy.to_numpy() == frame.to_numpy() for copy in copies], axis=0)
    return (hits + 1 / frame.nunique().to_numpy()) / (len(copies) + 1)


METHODS = {
    "averaged structures": averaged,
    "one network": one_network,
    "chained equations": chained_equations,
    "most frequent": most_frequent,
}


if __name__ == "__main__":
    run(main)
