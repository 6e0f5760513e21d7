"""Covariates and outcomes by three steps: how far off without a correction, and do the 95 % intervals cover?

Tables of 1000 rows and six binary columns drawn from three clusters that overlap (a tenth to a quarter of the rows are given
a wrong cluster). Membership follows a number and a group; a numeric outcome and one of three states follow the cluster. For every
correction: the mean error of the estimates in units of what the clusters truly differ by, the share of 95 % intervals that hold
the truth, and the same with the clusters taken as known (without the uncertainty of step one).
"""

import numpy as np
import pandas as pd

from pgm_bma import LatentClassClusterer, three_step
from pgm_bma.latent_class import three_step_results

from ._common import parser, print_table, run, save_csv

ITEMS = np.array([[0.85, 0.8, 0.2, 0.3, 0.8, 0.2], [0.2, 0.85, 0.8, 0.7, 0.3, 0.2], [0.2, 0.15, 0.3, 0.8, 0.85, 0.75]])
BETA = np.array([[0.2, 0.8, -0.5], [-0.4, -0.6, 0.7]])  # intercept, number, group; against cluster 0
MEANS, SPREADS = np.array([0.0, 1.0, -1.5]), np.array([1.0, 0.7, 1.3])
STATES = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
N_ROWS = 1000


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=300)
    chosen = options.parse_args(argv)
    found = pd.concat([one_table(np.random.default_rng([chosen.seed, s])) for s in range(chosen.tables)])
    lines = []
    for (what, correction), group in found.groupby(["what", "correction"], sort=False):
        lines.append(
            {
                "what": what,
                "correction": correction,
                "tables": chosen.tables,
                "shrinkage": (group["estimate"] * group["truth"]).sum() / (group["truth"] ** 2).sum(),
                "coverage": group["covered"].mean(),
                "coverage, clusters taken as known": group["covered_known"].mean(),
            }
        )
    print_table(lines, f"{N_ROWS} rows, three clusters; shrinkage: 1 is unbiased", 3)
    save_csv(lines, "ema_three_step", chosen.out)


def one_table(rng):
    number, group = rng.normal(size=N_ROWS), rng.integers(0, 2, N_ROWS)
    eta = np.column_stack([np.zeros(N_ROWS), np.column_stack([np.ones(N_ROWS), number, group]) @ BETA.T])
    p = np.exp(eta) / np.exp(eta).sum(axis=1, keepdims=True)
    z = pick(p, rng)
    X = pd.DataFrame((rng.random((N_ROWS, 6)) < ITEMS[z]).astype(int), columns=[f"q{i}" for i in range(6)])
    clusterer = LatentClassClusterer(3, alpha=0.1, n_init=20, random_state=0).fit(X)
    covariates = pd.DataFrame({"number": number, "group": group})
    outcomes = {
        "mean": pd.Series(rng.normal(MEANS[z], SPREADS[z])),
        "state": pd.Series(pick(STATES[z], rng)).astype(str),
    }
    tables = np.stack([table[:, 1] for table in clusterer._profiles()[1]], axis=1)
    order = np.array(
        [int(np.abs(tables - ITEMS[c]).sum(axis=1).argmin()) for c in range(3)]
    )  # place of the true clusters
    if len(set(order)) < 3:
        return pd.DataFrame()
    lines = []
    for correction in ("none", "ml", "bch"):
        reference = int(order[0])
        truths = {
            "covariates": {int(order[c + 1]): BETA[c] for c in range(2)},
            "mean": {int(order[c]): MEANS[c : c + 1] for c in range(3)},
            "state": {int(order[c]): STATES[c] for c in range(3)},
        }
        for what, truth in truths.items():
            data = {"covariates": covariates} if what == "covariates" else {"outcome": outcomes[what]}
            wanted = {**data, "correction": correction, "reference": reference}
            full = three_step(clusterer, X, **wanted).estimates
            known = taken_as_known(clusterer, X, wanted)
            for cluster, values in truth.items():
                here = (full["cluster"] == cluster).to_numpy()
                shift = 1 / 3 if what == "state" else 0.0
                for (_, a), (_, b), value in zip(full[here].iterrows(), known[here].iterrows(), values):
                    lines.append(
                        {
                            "what": what,
                            "correction": correction,
                            "estimate": a["estimate"] - shift,
                            "truth": value - shift,
                            "covered": a["low"] <= value <= a["high"],
                            "covered_known": b["low"] <= value <= b["high"],
                        }
                    )
    return pd.DataFrame(lines)


def taken_as_known(clusterer, X, wanted):
    kept = three_step_results._first_step
    three_step_results._first_step = lambda *_: None
    try:
        return three_step(clusterer, X, **wanted).estimates
    finally:
        three_step_results._first_step = kept


def pick(p, rng):
    return (rng.random(len(p))[:, None] > p.cumsum(axis=1)[:, :-1]).sum(axis=1)


if __name__ == "__main__":
    run(main)
