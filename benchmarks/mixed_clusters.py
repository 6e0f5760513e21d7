"""Clusters of tables with numbers and categories, and columns of noise: adjusted Rand index with the known classes, and relevance.

Nine real tables and four kinds of generated ones (three each), at most 300 rows, with 0, 10 and 50 columns of noise: normal
numbers, and in tables with categories every second one of three states. The number of clusters is that of the classes; "evidence",
"ICL" and "BIC" choose it among 1 to 6 (tables without noise). EMA and EM of this package, StepMix (mixed), GaussianMixture (diag,
full), BayesianGaussianMixture and k-means on standardised numbers and one-hot states, k-prototypes (kmodes; k-means where a table
has one kind of columns only). Peers that take no missing cells get means and most frequent states. Ten starts of each. "auc": how
well `arc_posterior_` tells the columns of the table from the noise. Seconds are CPU.
"""

import time
import warnings

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

from pgm_bma import EMAClusterer, LatentClassClusterer, load_dataset

from ._common import Skip, need, need_dataset, parser, print_line, print_table, run, save_csv

STARTS = 10
EMBEDDED = ("iris", "wine")
GIVEN = ("heart", "australian", "crx", "ecoli", "ionosphere", "horse-colic")
NOISE = (0, 10, 50)
MOST_STATES = 20  # distinct whole numbers that are states, as in the package


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=300, help="rows of a table at most")
    arguments.add_argument("--only", default="", help="tables, separated by commas")
    options = arguments.parse_args(argv)
    need("stepmix"), need("kmodes")
    rows = []
    for name, X, y in tables(options):
        for n_noise in NOISE:
            noisy = with_noise(X, n_noise, np.random.default_rng([options.seed, n_noise]))
            for method, partition in METHODS.items():
                if n_noise and "by" in method:
                    continue
                rows.append({"table": name, "noise": n_noise, "method": method})
                rows[-1] |= measure(partition, noisy, y, X.shape[1], options.seed)
        print_line({"table": name, "rows": len(X), "columns": X.shape[1], "classes": y.nunique()})
        save_csv(rows, "mixed_clusters", options.out)
    results = pd.DataFrame(rows)
    table = results.pivot_table(index="method", columns="noise", values="rand", sort=False)
    table["seconds"] = results.groupby("method")["seconds"].sum()
    table["auc"] = results.groupby("method")["auc"].mean()
    print_table(table.reset_index())


def measure(partition, X, y, n_real, seed):
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels, relevance = partition(X, y.nunique(), seed)
    seconds, auc = time.process_time() - start, np.nan
    if relevance is not None and X.shape[1] > n_real:
        auc = roc_auc_score(np.arange(X.shape[1]) < n_real, relevance)
    found = {"rand": adjusted_rand_score(y, labels), "clusters": len(np.unique(labels)), "auc": auc}
    return {**found, "seconds": seconds}


# ------------------------------------------------------------------------------------------------------- tables


def tables(options):
    """(name, columns, classes)"""
    only = options.only.split(",") if options.only else None
    for name in (*EMBEDDED, *GIVEN, "wdbc"):
        if only and name not in only:
            continue
        try:
            yield name, *real(name, options)
        except Skip as reason:
            print(f"skipped {name}: {reason}")
    for kind in ("normal", "mixed", "ordered", "skewed"):
        for number in range(3):
            if not only or kind in only:
                yield f"{kind} {number}", *generated(kind, np.random.default_rng([options.seed, number]))


def real(name, options):
    if name == "wdbc":
        numbers, classes = load_breast_cancer(return_X_y=True)
        frame, target = pd.DataFrame(numbers).add_prefix("x").assign(y=classes), "y"
    else:
        frame, target = load_dataset(name) if name in EMBEDDED else need_dataset(name)
    frame = frame.sample(min(options.rows, len(frame)), random_state=options.seed).reset_index(drop=True)
    frame = frame[frame[target].notna()].reset_index(drop=True)
    X = frame.drop(columns=target).apply(as_numbers)
    return X.loc[:, X.nunique() > 1], frame[target].astype(str)


def as_numbers(column):
    """Texts that are all numbers as numbers: tables from a folder are read as texts."""
    numbers = pd.to_numeric(column, errors="coerce")
    return numbers if numbers.notna().equals(column.notna()) else column


def generated(kind, rng, n=300):
    """Three clusters: numbers alone, numbers and states, answers from 1 to 7 and states, or exponentials and states."""
    y = rng.integers(0, 3, n)
    centers = rng.permuted(np.tile(np.arange(3), (4, 1)), axis=1).T[y]
    numbers = rng.normal(size=(n, 4)) + 1.2 * centers
    states = np.where(rng.random((n, 4)) < 0.45, (y[:, None] + np.arange(4)) % 3, rng.integers(0, 3, (n, 4)))
    X = pd.DataFrame(numbers).add_prefix("x")
    if kind == "ordered":
        X = pd.DataFrame(np.clip(np.round(numbers + 2.5), 1, 7).astype(int)).add_prefix("answer")
        X = X.apply(lambda column: pd.Series(pd.Categorical(column, ordered=True)))
    if kind == "skewed":
        X = np.exp(X)
    if kind != "normal":
        X = X.join(pd.DataFrame(np.array(list("abc"))[states]).add_prefix("s"))
    return X, pd.Series(y)


def with_noise(X, n_noise, rng):
    has_states = len(split(X)[0]) < X.shape[1]
    noise = {}
    for i in range(n_noise):
        is_states = has_states and i % 2
        noise[f"noise{i}"] = rng.choice(list("abc"), len(X)) if is_states else rng.normal(size=len(X))
    return X.assign(**noise)


def split(X):
    """(numeric columns, others) by the rule of the package."""
    numeric = [
        name
        for name, column in X.items()
        if pd.api.types.is_numeric_dtype(column)
        and ((column.dropna() % 1 != 0).any() or column.nunique() > MOST_STATES)
    ]
    return numeric, [name for name in X if name not in numeric]


def filled(X):
    """(standardised numbers, codes of states), missing cells filled."""
    numeric, others = split(X)
    numbers = X[numeric].astype(float)
    numbers = ((numbers - numbers.mean()) / numbers.std().replace(0, 1)).fillna(0.0).to_numpy()
    codes = np.empty((len(X), len(others)), dtype=int)
    for i, name in enumerate(others):
        codes[:, i] = X[name].fillna(X[name].mode()[0]).astype("category").cat.codes
    return numbers, codes


def dense(X):
    numbers, codes = filled(X)
    hot = [pd.get_dummies(column).to_numpy(dtype=float) for column in codes.T]
    return np.column_stack([numbers, *hot])


# ------------------------------------------------------------------------------------------------------ methods


def ours(kind, n_clusters=None, criterion="evidence"):
    def partition(X, k, seed):
        numeric, others = split(X)
        plain = [name for name in others if not isinstance(X[name].dtype, pd.CategoricalDtype)]
        model = kind(
            k if n_clusters is None else n_clusters,
            n_init=STARTS,
            random_state=seed,
            numeric_columns=numeric,
            categorical_columns=plain,
        ).fit(X)
        model = model if criterion == "evidence" else model.chosen_by(criterion, X)
        return model.labels_, model.arc_posterior_.reindex(X.columns)

    return partition


def stepmix(X, k, seed):
    from stepmix.stepmix import StepMix
    from stepmix.utils import get_mixed_descriptor

    numeric, others = split(X)
    coded = X[numeric].astype(float)
    coded = (coded - coded.mean()) / coded.std().replace(0, 1)
    for name in others:
        codes = X[name].astype("category").cat.codes.astype(float)
        coded[name] = codes.where(codes >= 0)
    kinds = {"continuous_nan": numeric, "categorical_nan": others}
    data, descriptor = get_mixed_descriptor(coded, **{kind: names for kind, names in kinds.items() if names})
    model = StepMix(k, measurement=descriptor, n_init=STARTS, random_state=seed, verbose=0, progress_bar=0)
    return model.fit(data).predict(data), None


def dense_peer(build):
    def partition(X, k, seed):
        return build(k, seed).fit_predict(dense(X)), None

    return partition


def by_bic(X, _, seed):
    data = dense(X)
    models = [
        GaussianMixture(k, covariance_type="diag", n_init=STARTS, random_state=seed).fit(data) for k in range(1, 7)
    ]
    return min(models, key=lambda model: model.bic(data)).predict(data), None


def k_prototypes(X, k, seed):
    from kmodes.kprototypes import KPrototypes

    numbers, codes = filled(X)
    if not codes.shape[1] or not numbers.shape[1]:  # it wants both kinds
        return KMeans(k, n_init=STARTS, random_state=seed).fit_predict(dense(X)), None
    columns = list(range(numbers.shape[1], numbers.shape[1] + codes.shape[1]))
    data = np.column_stack([numbers.astype(object), codes.astype(object)])
    return KPrototypes(k, n_init=STARTS, random_state=seed, max_iter=30).fit_predict(data, categorical=columns), None


METHODS = {
    "EMA": ours(EMAClusterer),
    "EM": ours(LatentClassClusterer),
    "StepMix": stepmix,
    "GaussianMixture diag": dense_peer(
        lambda k, seed: GaussianMixture(k, covariance_type="diag", n_init=STARTS, random_state=seed)
    ),
    "GaussianMixture full": dense_peer(
        lambda k, seed: GaussianMixture(k, n_init=STARTS, reg_covar=1e-3, random_state=seed)
    ),
    "BayesianGaussianMixture": dense_peer(
        lambda k, seed: BayesianGaussianMixture(
            n_components=k, covariance_type="diag", n_init=STARTS, random_state=seed
        )
    ),
    "k-means": dense_peer(lambda k, seed: KMeans(k, n_init=STARTS, random_state=seed)),
    "k-prototypes": k_prototypes,
    "EMA by the evidence": ours(EMAClusterer, range(1, 7)),
    "EMA by ICL": ours(EMAClusterer, range(1, 7), "icl"),
    "GaussianMixture diag by BIC": by_bic,
}


if __name__ == "__main__":
    run(main)
