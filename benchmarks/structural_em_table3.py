"""Structural EM, Table 3: tic-tac-toe and nursery, EM against BC+EM, the paper's way and ours; published against measured."""

import time
import warnings

import numpy as np

from pgm_bma import StructuralEMClusterer, load_dataset

from ._common import paper_table, parser, print_table, run, save_csv

TABLE = True
CLUSTERS = {"tic-tac-toe": 2, "nursery": 5}
WAYS = {
    "BS-EM": {"preset": "paper"},
    "BS-BC+EM": {"preset": "paper", "parameters": "bound_collapse"},
    "BS-BC+EM, alternating": {"preset": "paper", "parameters": "bound_collapse_alternating"},
    "default, EM": {},
    "default, BC+EM": {"parameters": "bound_collapse"},
}


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--data", nargs="+", default=list(CLUSTERS), choices=list(CLUSTERS))
    arguments.add_argument("--runs", type=int, default=20, help="runs of the paper's way (default 20; the paper has 5)")
    arguments.add_argument("--default-runs", type=int, default=None, help="runs of ours (quick 5, full 20)")
    options = arguments.parse_args(argv)
    default_runs = options.default_runs or (20 if options.full else 5)
    published = paper_table("structural_em_tables").set_index(["database", "algorithm"])
    rows = []
    for data in options.data:
        X = load_dataset(data)[0].drop(columns="class")
        for name, how in WAYS.items():
            count = options.runs if "preset" in how else default_runs
            row = {"data": data, "algorithm": name, **measure(X, CLUSTERS[data], how, count, options.seed)}
            paper = published.loc[(data, name.split(",")[0])] if (data, name.split(",")[0]) in published.index else None
            if paper is not None and "alternating" not in name:
                row.update(paper_final=paper["sc_final"], paper_sd=paper["sc_final_sd"], paper_seconds=paper["seconds"])
            elif paper is not None:
                row.update(paper_seconds=paper["seconds"])
            rows.append(row)
        rows.append({"data": data, "algorithm": "one cluster", **measure(X, 1, {"n_init": 1}, 1, options.seed)})
        print_table([r for r in rows if r["data"] == data], f"{data}: log10 scores", 1)
    for data in options.data:
        seconds = {r["algorithm"]: r["seconds"] for r in rows if r["data"] == data}
        updates = {r["algorithm"]: r["em_updates"] for r in rows if r["data"] == data}
        paper = published["seconds"][data]
        print(
            f"{data}: time of BC+EM / EM: paper {paper['BS-BC+EM'] / paper['BS-EM']:.2f}, released "
            f"{seconds['BS-BC+EM'] / seconds['BS-EM']:.2f}, alternating "
            f"{seconds['BS-BC+EM, alternating'] / seconds['BS-EM']:.2f}; EM updates: released "
            f"{updates['BS-BC+EM'] / updates['BS-EM']:.2f}, alternating "
            f"{updates['BS-BC+EM, alternating'] / updates['BS-EM']:.2f}"
        )
    save_csv(rows, "structural_em_table3", options.out)


def measure(X, n_clusters, how, n_runs, seed):
    """Completed scores (most probable cluster, log10), EM updates and seconds of runs that differ by their seed."""
    initial, final, updates, arcs, clusters = [], [], [], [], []
    began = time.perf_counter()
    for i in range(n_runs):
        clusterer = StructuralEMClusterer(n_clusters, random_state=1000 * seed + i, **how)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # starts that max_iter cuts short
            clusterer.fit(X)
        initial.append(clusterer.score_path_[0] if "preset" in how else np.nan)
        final.append(clusterer.completed_score(X))
        updates.append(clusterer.starts_["em_updates"].sum())
        arcs.append(sum(clusterer.cluster_name not in arc for arc in clusterer.model_.edges()))
        clusters.append(len(np.unique(clusterer.labels_)))
    seconds = (time.perf_counter() - began) / n_runs
    final = np.array(final) / np.log(10)
    return {
        "sc_initial": np.mean(initial) / np.log(10),
        "sc_final": final.mean(),
        "sd": final.std(ddof=1) if n_runs > 1 else 0.0,
        "median": np.median(final),
        "best": final.max(),
        "arcs": np.mean(arcs),
        "clusters_used": np.mean(clusters),
        "em_updates": np.mean(updates),
        "seconds": seconds,
        "runs": n_runs,
    }


if __name__ == "__main__":
    run(main)
