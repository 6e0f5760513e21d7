"""Two kinds of leukemia found without labels: the preparation, the clustering and the genes that matter, step by step.

A tutorial-sized script over the public classes. Three things make it work: every array is cut at its own quantile (otherwise
the brightness of the arrays is the strongest cluster), genes that never cross it are dropped, and the prior expects few genes to
matter. The labels are used once, at the end, to score. Needs PGM_BMA_DATA with golub.csv.
"""

import pandas as pd

from pgm_bma import EMAClusterer, LatentClassClusterer
from pgm_bma.metrics import clustering_accuracy

from ._common import need_dataset, parser, print_table, run, save_csv


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--quantile", type=float, default=0.8)
    options.add_argument("--starts", type=int, default=30)
    chosen = options.parse_args(argv)
    frame, target = need_dataset("golub")
    arrays = frame.drop(columns=target)

    binary = arrays.gt(arrays.quantile(chosen.quantile, axis=1), axis=0)
    genes = binary.loc[:, binary.nunique() > 1]
    print(
        f"{genes.shape[1]} of {arrays.shape[1]} genes are above the {chosen.quantile:.0%} quantile in some array, not in all"
    )

    few = 50 / arrays.shape[1]  # about fifty genes are expected to matter
    settings = {"n_init": chosen.starts, "tol": 1e-4, "random_state": chosen.seed}
    clusterers = {
        "EM": LatentClassClusterer(2, **settings),
        "EMA, every gene as likely as not": EMAClusterer(2, **settings),
        "EMA, few genes expected": EMAClusterer(2, arc_prior=few, **settings),
    }
    lines = []
    for name, clusterer in clusterers.items():
        clusterer.fit(genes)
        starts = clusterer.starts_["score"].sort_values(ascending=False)
        lines.append(
            {
                "clusterer": name,
                "accuracy %": 100 * clustering_accuracy(frame[target], clusterer.labels_),
                "genes with P(arc) > 1/2": int(clusterer.get_support().sum()),
                "gap between the two best starts (nats)": starts.iloc[0] - starts.iloc[1],
            }
        )
    print_table(lines, "two clusters against ALL and AML", 1)
    best = clusterers["EMA, few genes expected"]
    print(pd.crosstab(best.labels_, frame[target].to_numpy(), rownames=["cluster"], colnames=["kind"]))
    top = best.cluster_dependence_.sort_values(ascending=False).head(10)
    print_table([{"gene": name, "I_P (nats)": value} for name, value in top.items()], "the genes that matter most")
    save_csv(lines, "leukemia", chosen.out)


if __name__ == "__main__":
    run(main)
