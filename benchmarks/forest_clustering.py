"""Forest-averaged clustering against EM, EMA and structural EM: networks with 0 to 18 attribute arcs, and real data."""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import pgm_bma

from ._common import Skip, need_dataset, parser, print_table, run, save_csv
from ._random_models import random_augmented_naive_bayes, random_network_classifier

REAL = ["voting", "zoo", "lymphography", "soybean-small", "nursery"]


def methods(n_clusters, n_init, seed):
    """Equal numbers of starts for all."""
    common = {"n_clusters": n_clusters, "n_init": n_init, "random_state": seed}
    return {
        "EM": pgm_bma.LatentClassClusterer(**common),
        "EMA linear": pgm_bma.EMAClusterer(**common, averaging="linear", combine_starts="likelihood"),
        "EMA variational": pgm_bma.EMAClusterer(
            **common, averaging="variational", combine_starts="evidence", init="em"
        ),
        "structural EM": pgm_bma.StructuralEMClusterer(**common),
        "structural EM, hill climbing": pgm_bma.StructuralEMClusterer(**common, search="hill_climb"),
        "forest average": pgm_bma.ForestAveragedClusterer(**common),
    }


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--n-init", type=int, default=6, help="starts of every method")
    arguments.add_argument("--networks", type=int, default=None, help="random networks per cell (quick 2, full 6)")
    arguments.add_argument("--arcs", type=int, nargs="+", default=None, help="attribute arcs (quick 10 18)")
    arguments.add_argument("--rows", type=int, nargs="+", default=None, help="training rows (quick 300 1000)")
    arguments.add_argument("--general", action="store_true", help="also EMA's Table II generator (random networks)")
    options = arguments.parse_args(argv)
    networks = options.networks or (6 if options.full else 2)
    arcs = options.arcs or ([0, 2, 5, 10, 15, 18] if options.full else [10, 18])
    sizes = options.rows or ([300, 1000, 4000, 8000] if options.full else [300, 1000])
    rows = []
    for n_arcs in arcs:
        for n_rows in sizes:
            for network in range(networks):
                rows += synthetic(n_arcs, n_rows, [options.seed, n_arcs, network], options.n_init)
            cell = pd.DataFrame(rows).query("arcs == @n_arcs and rows == @n_rows")
            print_table(summary(cell), f"{n_arcs} arcs, {n_rows} rows, {networks} networks")
    frame = pd.DataFrame(rows)
    print_table(summary(frame), "all cells")
    save_csv(frame, "forest_clustering_synthetic", options.out)
    if options.general:
        general = pd.DataFrame([r for i in range(networks) for r in general_network(i, options)])
        print_table(summary(general), "random network classifiers, 10 columns, 3 clusters (EMA's Table II generator)")
        save_csv(general, "forest_clustering_general", options.out)
    real = [row for name in REAL for row in real_data(name, options)]
    print_table(real, "real data: clusters against the class (never shown to the methods)")
    save_csv(real, "forest_clustering_real", options.out)


def synthetic(n_arcs, n_rows, seed, n_init):
    rng = np.random.default_rng(seed)
    model = random_augmented_naive_bayes(20, 4, n_arcs, cardinalities=[2] * 20, random_state=rng)
    train = pgm_bma.simulate(model, n_rows, random_state=rng, include_latents=True)
    test = pgm_bma.simulate(model, 2000, random_state=rng, include_latents=True)
    true_arcs = {frozenset(arc) for arc in model.edges() if "cluster" not in arc}
    rows = [{"arcs": n_arcs, "rows": n_rows, **result} for result in compare(train, test, 4, n_init, true_arcs)]
    X = test.drop(columns="cluster")
    guess = pgm_bma.predict_proba(model, X, "cluster").to_numpy().argmax(1)
    truth = {
        "method": "(true model)",
        "ari": adjusted_rand_score(test["cluster"], guess),
        "L_test": pgm_bma.log_likelihood(model, X) / len(X) / np.log(2),
    }
    return [*rows, {"arcs": n_arcs, "rows": n_rows, **truth}]


def general_network(index, options):
    rng = np.random.default_rng([options.seed, 999, index])
    model = random_network_classifier(10, 3, random_state=rng)
    train = pgm_bma.simulate(model, 640, random_state=rng, include_latents=True)
    test = pgm_bma.simulate(model, 2000, random_state=rng, include_latents=True)
    true_arcs = {frozenset(arc) for arc in model.edges() if "cluster" not in arc}
    return compare(train, test, 3, options.n_init, true_arcs)


def compare(train, test, n_clusters, n_init, true_arcs):
    X, X_test = train.drop(columns="cluster"), test.drop(columns="cluster")
    for name, clusterer in methods(n_clusters, n_init, 0).items():
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clusterer.fit(X)
        seconds = time.perf_counter() - began
        yield {
            "method": name,
            "ari": adjusted_rand_score(test["cluster"], clusterer.predict(X_test)),
            "L_test": clusterer.score(X_test) / np.log(2),
            "arc_f1": arc_f1(clusterer, true_arcs),
            "seconds": seconds,
        }


def arc_f1(clusterer, true_arcs):
    """F1 of the undirected attribute arcs; for the average, pairs with more posterior for an arc than against."""
    if hasattr(clusterer, "edge_posterior_"):
        strength = clusterer.edge_posterior_ + clusterer.edge_posterior_.T
        found = {frozenset((a, b)) for a in strength for b in strength if a != b and strength.loc[a, b] > 0.5}
    else:
        found = {frozenset(arc) for arc in clusterer.model_.edges() if clusterer.cluster_name not in arc}
    if not true_arcs and not found:
        return 1.0
    hits = len(true_arcs & found)
    return 2 * hits / max(len(true_arcs) + len(found), 1)


def real_data(name, options):
    try:
        frame, target = pgm_bma.load_dataset(name) if name != "soybean-small" else need_dataset(name)
    except Skip as reason:
        print(f"{name}: {reason}")
        return
    X, y = frame.drop(columns=target), frame[target]
    if len(X) > 2000 and not options.full:
        keep = np.random.default_rng(options.seed).permutation(len(X))[:2000]
        X, y = X.iloc[keep], y.iloc[keep]
    for label, clusterer in methods(int(y.nunique()), options.n_init, options.seed).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = clusterer.fit_predict(X)
        yield {
            "data": name,
            "method": label,
            "ari": adjusted_rand_score(y, labels),
            "accuracy": pgm_bma.metrics.clustering_accuracy(y, labels),
            "n_clusters": clusterer.n_clusters_,
        }


def summary(frame):
    order = list(dict.fromkeys(frame["method"]))
    columns = [c for c in ("ari", "L_test", "arc_f1", "seconds") if c in frame]
    return frame.groupby("method")[columns].mean().loc[order].reset_index()


if __name__ == "__main__":
    run(main)
