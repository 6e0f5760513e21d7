"""Structural EM, Table 2 in kind: random networks of 20 binary columns and 4 clusters, EM against BC+EM, held-out likelihood."""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import pgm_bma

from ._common import paper_table, parser, print_table, run, save_csv
from ._random_models import random_augmented_naive_bayes

TABLE = True
ARCS = (0, 2, 5, 10, 15, 18)  # in addition to the 20 arcs from the cluster
WAYS = {
    "BS-EM": {"preset": "paper"},
    "BS-BC+EM": {"preset": "paper", "parameters": "bound_collapse"},
    "default, EM": {"n_init": 6},
    "default, BC+EM": {"n_init": 6, "parameters": "bound_collapse"},
    "expectation, EM": {"n_init": 6, "completion": "expectation"},
    "most probable, EM": {"n_init": 6, "completion": "most_probable"},
}


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--arcs", type=int, nargs="+", default=None, help="attribute arcs (quick 0 10 18)")
    arguments.add_argument("--rows", type=int, default=None, help="training rows (quick 2000, full 8000)")
    arguments.add_argument("--networks", type=int, default=None, help="networks per number of arcs (quick 2, full 5)")
    arguments.add_argument("--runs", type=int, default=None, help="runs per network (quick 3, full 5)")
    arguments.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS), help="algorithms to run")
    options = arguments.parse_args(argv)
    arcs = options.arcs or (ARCS if options.full else (0, 10, 18))
    n_rows = options.rows or (8000 if options.full else 2000)
    n_networks = options.networks or (5 if options.full else 2)
    n_runs = options.runs or (5 if options.full else 3)
    rows = []
    for n_arcs in arcs:
        for network in range(n_networks):
            rows += one_network(n_arcs, n_rows, network, n_runs, options)
        cell = pd.DataFrame(rows).query("arcs == @n_arcs")
        print_table(
            summary(cell), f"d{20 + n_arcs}: {n_arcs} arcs, {n_rows} rows, {n_networks} networks, {n_runs} runs each"
        )
    frame = pd.DataFrame(rows)
    print_table(differences(frame), "BC+EM minus EM, the same networks and seeds: mean and standard error", 3)
    published = paper_table("structural_em_tables").query("L_test.notna()")
    print_table(published, "published (other networks of the same kind, 8000 rows, 5 runs)", 3)
    save_csv(frame, f"structural_em_table2_{n_rows}", options.out)


def one_network(n_arcs, n_rows, network, n_runs, options):
    rng = np.random.default_rng([options.seed, n_arcs, network])
    model = random_augmented_naive_bayes(20, 4, n_arcs, cardinalities=[2] * 20, random_state=rng)
    train = pgm_bma.simulate(model, n_rows, random_state=rng, include_latents=True)
    test = pgm_bma.simulate(model, 2000, random_state=rng, include_latents=True)
    X, X_test = train.drop(columns="cluster"), test.drop(columns="cluster")
    guess = pgm_bma.predict_proba(model, X_test, "cluster").to_numpy().argmax(1)
    shared = {"arcs": n_arcs, "rows": n_rows, "network": network}
    truth = pgm_bma.log_likelihood(model, X_test) / len(X_test) / np.log(2)
    yield {**shared, "algorithm": "(true model)", "L_test": truth, "ari": adjusted_rand_score(test["cluster"], guess)}
    for name in options.ways:
        how = WAYS[name]
        for i in range(n_runs):
            clusterer = pgm_bma.StructuralEMClusterer(4, random_state=i, **how)
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clusterer.fit(X)
            found = sum("cluster" not in arc for arc in clusterer.model_.edges())
            yield {
                **shared,
                "algorithm": name,
                "run": i,
                "sc_initial": clusterer.score_path_[0] / np.log(10) if "preset" in how else np.nan,
                "sc_final": clusterer.completed_score(X) / np.log(10),
                "L_test": clusterer.score(X_test) / np.log(2),
                "ari": adjusted_rand_score(test["cluster"], clusterer.predict(X_test)),
                "found_arcs": found,
                "em_updates": clusterer.starts_["em_updates"].sum(),
                "seconds": time.perf_counter() - began,
            }


def summary(cell):
    order = list(dict.fromkeys(cell["algorithm"]))
    columns = ["sc_initial", "sc_final", "L_test", "ari", "found_arcs", "em_updates", "seconds"]
    means = cell.groupby("algorithm")[columns].mean().loc[order]
    # spread between runs on the same network, as in the paper; networks differ far more
    spread = cell.groupby(["algorithm", "network"])[["sc_final", "L_test"]].std().groupby("algorithm").mean()
    means.insert(2, "sc_final_sd", spread["sc_final"])
    means.insert(4, "L_test_sd", spread["L_test"])
    return means.reset_index()


def differences(frame):
    rows = []
    for left, right in (("BS-BC+EM", "BS-EM"), ("default, BC+EM", "default, EM")):
        if not {left, right} <= set(frame["algorithm"]):
            continue
        pair = [frame[frame["algorithm"] == name].set_index(["arcs", "network", "run"]) for name in (left, right)]
        for measure in ("sc_final", "L_test", "ari", "em_updates"):
            gap = pair[0][measure] - pair[1][measure]
            error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else np.nan
            wins = int((gap > 0).sum())
            rows.append(
                {
                    "pair": f"{left} - {right}",
                    "measure": measure,
                    "mean": gap.mean(),
                    "standard_error": error,
                    "higher": wins,
                    "of": len(gap),
                }
            )
    return rows


if __name__ == "__main__":
    run(main)
