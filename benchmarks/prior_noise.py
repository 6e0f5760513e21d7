"""Noise columns of 2 to 2000 states: the probability of their arcs under every averaging estimator; and columns that matter.

690 rows, two classes; the noise is next to four columns that agree with the class in 80 % of the rows. "averaged NB" and "forest
selective" print P(class -> noise), "EMA" P(cluster -> noise), "forest" and "orders" the expected number of arcs from other columns
into the noise; means over the repetitions. The aim under the default prior is at most 0.3 everywhere. The last column is the
adjusted Rand index between EMA's clusters with and without the noise column (aim at 200 states: 0.95). The second table is the mean
P(class -> column) of real tables, whose columns should keep theirs: on all rows, and on 200 rows drawn with seed 0.
"""

import inspect
import itertools
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import pgm_bma

from ._common import Skip, need_dataset, parser, print_line, print_table, run, save_csv

STATES = (2, 20, 100, 200, 350, 2000)
DOMAINS = ("voting", "mushroom", "lymphography", "breast-LJ")


def main(argv=None):
    options = parser(__doc__).parse_args(argv)
    warnings.simplefilter("ignore")
    repeats = 30 if options.full else 10
    rows = [noise(n_states, prior, options.seed, repeats) for prior in ("consistent", "paper") for n_states in STATES]
    print_table(rows, "noise: P(arc into it)")
    save_csv(rows, "prior_noise", options.out)
    kept = [line for name in DOMAINS for line in relevant(name)]
    print_table(kept, "real tables: mean P(class -> column), averaged naive Bayes")
    save_csv(kept, "prior_noise_relevant", options.out)


def noise(n_states, prior, seed, repeats):
    found = []
    for repeat in range(repeats):
        rng = np.random.default_rng([seed, repeat, n_states])
        y = rng.integers(0, 2, 690)
        X = pd.DataFrame({f"c{i}": np.where(rng.random(690) < 0.8, y, 1 - y) for i in range(4)})
        with_noise = X.assign(noise=rng.integers(0, n_states, 690))
        many = pd.DataFrame(rng.integers(0, n_states, (690, 20)))
        clusters = built("EMAClusterer", prior, n_clusters=2, random_state=seed).fit(with_noise)
        without = built("EMAClusterer", prior, n_clusters=2, random_state=seed).fit(X)
        line = {
            "averaged NB": built("AveragedNaiveBayesClassifier", prior).fit(many, y).arc_posterior_.mean(),
            "EMA": clusters.arc_posterior_["noise"],
            "forest selective": built("ForestAveragedClassifier", prior, class_arcs="selective")
            .fit(with_noise, y)
            .class_arc_posterior_["noise"],
            "forest": built("ForestAveragedClassifier", prior).fit(with_noise, y).edge_posterior_["noise"].sum(),
            "orders": order_arcs(with_noise, prior),
            "EMA, same clusters": adjusted_rand_score(clusters.labels_, without.labels_),
        }
        found.append(line)
    line = {"prior": prior, "states": n_states, **pd.DataFrame(found).mean().to_dict()}
    print_line(line)
    return line


def order_arcs(X, prior):
    return built("OrderPosterior", prior, method="exact", max_indegree=2).fit(X).edge_posterior_["noise"].sum()


def built(name, prior, **parameters):
    kind = getattr(pgm_bma, name)
    if "parameter_prior" in inspect.signature(kind).parameters:
        parameters["parameter_prior"] = prior
    return kind(**parameters)


def relevant(name):
    try:
        data, target = pgm_bma.load_dataset(name) if name in pgm_bma.list_datasets() else need_dataset(name)
    except Skip as reason:
        print(f"{name} left out: {reason}")
        return
    tables = [data] if len(data) <= 200 else [data, data.sample(200, random_state=0)]
    for rows, prior in itertools.product(tables, ("consistent", "paper")):
        arcs = built("AveragedNaiveBayesClassifier", prior).fit(rows, y=target).arc_posterior_
        yield {"data": name, "rows": len(rows), "prior": prior, "columns": len(arcs), "mean P(arc)": arcs.mean()}


if __name__ == "__main__":
    run(main)
