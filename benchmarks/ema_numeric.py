"""Clustering numeric columns with EMA: one cut, several views, averaged cuts; adjusted Rand index with the known classes.

"width" and "frequency" cut every column once, into 3, 5 or 8 bins. "views": each column three times, in 2, 3 and 5 bins of equal
frequency. "ensemble": eight EMA fits, on 3 to 8 bins with shifted places, cluster numbers matched, responsibilities averaged.
"averaged cuts": EM whose M step averages every column over all ways to join 16 bins of equal frequency, given expected counts (as
AveragedNaiveBayesClassifier does with classes), from five starts by k-means on half of the columns. Peers on raw numbers: normal
mixtures (full and diagonal covariance) and k-means. The number of clusters is that of the classes; 20 starts. Seconds are CPU.
"""

import time
import warnings

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler

from pgm_bma import EMAClusterer, FrequencyDiscretizer, WidthDiscretizer
from pgm_bma.naive_bayes.cut_average import average_cuts

from ._common import parser, print_line, print_table, run, save_csv

STARTS = 20
FINE_BINS = 16


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--tables", type=int, default=3, help="tables of each kind that is generated")
    options = arguments.parse_args(argv)
    rows = []
    for name, X, y in tables(options):
        for method, partition in METHODS.items():
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                labels = partition(X, len(np.unique(y)), options.seed)
            seconds = time.process_time() - start
            rows.append({"table": name, "method": method, "rand": adjusted_rand_score(y, labels), "seconds": seconds})
            print_line(rows[-1])
        save_csv(rows, "ema_numeric", options.out)
    results = pd.DataFrame(rows)
    table = results.pivot_table(index="method", columns="table", values="rand", sort=False)
    table.insert(0, "mean", table.mean(axis=1))
    table["seconds"] = results.groupby("method")["seconds"].sum()
    print_table(table.sort_values("mean", ascending=False).reset_index())


def tables(options):
    """(name, numbers, classes): three real tables, and mixtures; those of one kind share their name."""
    for name, load in (("iris", load_iris), ("wine", load_wine), ("wdbc", load_breast_cancer)):
        yield name, *load(return_X_y=True)
    for kind in ("normal", "correlated", "skewed", "noise"):
        for number in range(options.tables):
            yield kind, *mixture(kind, np.random.default_rng([options.seed, number]))


def mixture(kind, rng, n=400, d=6, k=3):
    """Three clusters, means 1.5 apart in every column: independent or correlated inside, exponentials, six columns of noise."""
    y = rng.integers(0, k, n)
    x = rng.normal(size=(n, d))
    if kind == "correlated":
        x = 0.6 * x + 0.8 * rng.normal(size=(n, 1))
    x += 1.5 * rng.permuted(np.tile(np.arange(k), (d, 1)), axis=1).T[y]
    if kind == "noise":
        x = np.column_stack([x, rng.normal(size=(n, 6))])
    return np.exp(x) if kind == "skewed" else x, y


def cut(X, n_bins, discretizer):
    return pd.DataFrame(X).rename(columns=str).pipe(lambda frame: discretizer(n_bins).fit(frame).transform(frame))


def ema(frame, n_clusters, seed):
    return EMAClusterer(n_clusters, n_init=STARTS, random_state=seed).fit(frame)


def once(discretizer, n_bins):
    return lambda X, n_clusters, seed: ema(cut(X, n_bins, discretizer), n_clusters, seed).labels_


def views(X, n_clusters, seed):
    """All views as columns of one table."""
    parts = [pd.DataFrame(cut(X, m, FrequencyDiscretizer)).add_suffix(f" in {m}") for m in (2, 3, 5)]
    return ema(pd.concat(parts, axis=1), n_clusters, seed).labels_


def ensemble(X, n_clusters, seed, n_views=8):
    """Responsibilities of several fits, clusters matched with those of the first one, averaged."""
    rng = np.random.default_rng(seed)
    ranks = np.argsort(np.argsort(X, axis=0), axis=0) / len(X)
    total = None
    for view in range(n_views):
        m = 3 + view % 6
        codes = np.floor(ranks * m + rng.random(X.shape[1])).astype(int)  # the places of the cuts are shifted
        found = ema(pd.DataFrame(codes).rename(columns=str).astype("category"), n_clusters, seed)
        share = found.transform(pd.DataFrame(codes).rename(columns=str))
        share = np.asarray(share)
        if total is None:
            total = share
        else:
            _, match = linear_sum_assignment(-total.T @ share)
            total = total + share[:, match]
    return total.argmax(axis=1)


def averaged_cuts(X, n_clusters, seed, max_iter=60):
    """EM over averaged cuts; the start of the largest likelihood."""
    rng = np.random.default_rng(seed)
    ranks = np.argsort(np.argsort(X, axis=0), axis=0)
    codes = ranks * FINE_BINS // len(X)
    best = (-np.inf, None)
    for _ in range(5):  # fewer starts, but from k-means of a random half of the columns: an iteration is dear
        columns = rng.permutation(X.shape[1])[: max(X.shape[1] // 2, 2)]
        first = KMeans(n_clusters, n_init=1, random_state=int(rng.integers(1 << 30))).fit_predict(ranks[:, columns])
        share = np.where(first[:, None] == np.arange(n_clusters), 0.9, 0.1 / max(n_clusters - 1, 1))
        before = -np.inf
        for _ in range(max_iter):
            logs = np.log((share.sum(axis=0) + 1) / (len(X) + n_clusters))[None, :].repeat(len(X), axis=0)
            for j in range(X.shape[1]):
                counts = np.stack(
                    [np.bincount(codes[:, j], share[:, c], minlength=FINE_BINS) for c in range(n_clusters)]
                )
                alpha = 2.0 / FINE_BINS  # the mass of a column with two states
                logs += np.log(average_cuts(counts, alpha, n_clusters * alpha, 0.5).tables.T[codes[:, j]])
            norm = np.logaddexp.reduce(logs, axis=1)
            share = np.exp(logs - norm[:, None])
            if norm.sum() < before + 1e-3 * len(X):
                break
            before = norm.sum()
        if norm.sum() > best[0]:
            best = norm.sum(), share
    return best[1].argmax(axis=1)


def normals(covariance):
    def partition(X, n_clusters, seed):
        return GaussianMixture(
            n_clusters, covariance_type=covariance, n_init=STARTS, random_state=seed, reg_covar=1e-4
        ).fit_predict(StandardScaler().fit_transform(X))

    return partition


def k_means(X, n_clusters, seed):
    return KMeans(n_clusters, n_init=STARTS, random_state=seed).fit_predict(StandardScaler().fit_transform(X))


METHODS = {
    **{f"width, {m}": once(WidthDiscretizer, m) for m in (3, 5, 8)},
    **{f"frequency, {m}": once(FrequencyDiscretizer, m) for m in (3, 5, 8)},
    "views": views,
    "ensemble": ensemble,
    "averaged cuts": averaged_cuts,
    "normal mixture": normals("full"),
    "normal mixture, diagonal": normals("diag"),
    "k-means": k_means,
}


if __name__ == "__main__":
    run(main)
