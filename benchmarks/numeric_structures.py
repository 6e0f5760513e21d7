"""Forests, orders and TAN on numeric columns: one MDL cut, equal bins, many bins, the mean over cut sets from their posterior.

Log loss over five folds, p >= 1e-5, everything fitted inside the folds. "MDL": as the classifiers do by default. "5 bins" and
"16 bins": equal frequency, 16 standing for the elementary bins. "8 cut sets": eight tables, every column cut by a partition that is
drawn from its exact posterior given the class (32 bins, Dirichlet strength 10, cut prior 0.1); one fit each, probabilities
averaged. Averaged naive Bayes, which is exact over all cuts, and averaged additive terms ("Kikuchi-Bayes"
in the kept table) are shown with them. Seconds are CPU.
"""

import numpy as np
import pandas as pd
from scipy.special import gammaln

from pgm_bma import (
    AdditiveBayesClassifier,
    AveragedNaiveBayesClassifier,
    ForestAveragedClassifier,
    FrequencyDiscretizer,
    MDLDiscretizer,
    OrderAveragedClassifier,
    TANClassifier,
)
from pgm_bma.foundation.tables.cut_points import bin_values, elementary_edges

from ._common import parser, print_line, print_table, run, save_csv
from .classifiers import evaluate, load

QUICK = ("iris", "wine", "ecoli", "heart")
ORDERS = ("iris", "ecoli")  # tables on which orders are averaged
STRENGTH, CUT_PRIOR, N_SETS = 10.0, 0.1, 8


class Cut:
    """A classifier behind one or several tables in which the numbers are cut; probabilities are averaged."""

    def __init__(self, make, how, seed):
        self.make, self.how, self.seed = make, how, seed

    def fit(self, X, y):
        self.numeric_ = [name for name in X if pd.api.types.is_float_dtype(X[name]) or X[name].nunique() > 20]
        self.numeric_ = [name for name in self.numeric_ if pd.api.types.is_numeric_dtype(X[name])]
        rng = np.random.default_rng(self.seed)
        self.cuts_ = [self._find(X, y, rng) for _ in range(N_SETS if self.how == "sets" else 1)]
        self.models_ = [self.make().fit(self._cut(X, cuts), y) for cuts in self.cuts_]
        self.classes_ = self.models_[0].classes_
        return self

    def predict_proba(self, X):
        return np.mean([m.predict_proba(self._cut(X, cuts)) for m, cuts in zip(self.models_, self.cuts_)], axis=0)

    def _find(self, X, y, rng):
        if self.how == "sets":
            return {name: draw_cuts(X[name].to_numpy(float), y, rng) for name in self.numeric_}
        cutter = MDLDiscretizer() if self.how == "mdl" else FrequencyDiscretizer(self.how)
        cutter.fit(X[self.numeric_], y)
        return {name: cutter.cut_points_[name] for name in self.numeric_}

    def _cut(self, X, cuts):
        bins = {
            name: pd.Categorical(bin_values(X[name].to_numpy(float), np.asarray(edges))) for name, edges in cuts.items()
        }
        for name, column in bins.items():
            column = column.remove_categories([-1]) if -1 in column.categories else column
            bins[name] = column.set_categories(range(len(cuts[name]) + 1))
        return X.assign(**bins)


def draw_cuts(values, y, rng):
    """Edges of a partition of the 32 elementary bins, drawn from its posterior given the classes: forward sums, drawn backward."""
    edges = elementary_edges(values)
    bins, (classes, target) = bin_values(values, edges), np.unique(y, return_inverse=True)
    m = len(edges) + 1
    counts = np.zeros((m, len(classes)))
    np.add.at(counts, (bins[bins >= 0], target[bins >= 0]), 1.0)
    prior = STRENGTH * (counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * len(classes))
    below = np.concatenate([np.zeros((1, len(classes))), np.cumsum(counts, axis=0)])
    forward = np.full(m + 1, -np.inf)
    forward[0] = 0.0
    evidence = np.empty((m + 1, m + 1))
    for b in range(1, m + 1):
        inside = below[b] - below[:b]
        evidence[:b, b] = (gammaln(prior + inside) - gammaln(prior)).sum(axis=1)
        evidence[:b, b] += (
            gammaln(STRENGTH) - gammaln(STRENGTH + inside.sum(axis=1)) + np.log1p(-CUT_PRIOR) * (b - 1 - np.arange(b))
        )
        forward[b] = np.logaddexp.reduce(forward[:b] + evidence[:b, b] + np.log(CUT_PRIOR) * (np.arange(b) > 0))
    found, b = [], m
    while b > 0:
        logs = forward[:b] + evidence[:b, b] + np.log(CUT_PRIOR) * (np.arange(b) > 0)
        b = int(rng.choice(b, p=np.exp(logs - np.logaddexp.reduce(logs))))
        if b > 0:
            found.append(edges[b - 1])
    return np.array(found[::-1])


def methods(seed):
    makers = {
        "forest": ForestAveragedClassifier,
        "TAN": TANClassifier,
        "orders": lambda: OrderAveragedClassifier(random_state=seed).set_params(sampler__n_orders=100),
    }
    ways = {"MDL": "mdl", "5 bins": 5, "16 bins": 16, f"{N_SETS} cut sets": "sets"}
    found = {
        (name, way): (lambda make=make, how=how: Cut(make, how, seed))
        for name, make in makers.items()
        for way, how in ways.items()
    }
    found["averaged naive Bayes", "MDL"] = lambda: Cut(AveragedNaiveBayesClassifier, "mdl", seed)
    found["averaged naive Bayes", "averaged"] = lambda: AveragedNaiveBayesClassifier(numeric="average")
    found["Kikuchi-Bayes", "averaged"] = AdditiveBayesClassifier
    return found


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--domains", nargs="+", default=QUICK)
    options = arguments.parse_args(argv)
    rows = []
    for domain in options.domains:
        loaded = load(domain)
        if loaded is None:
            continue
        for (name, way), make in methods(options.seed).items():
            if name == "orders" and domain not in ORDERS:
                continue
            found = evaluate(make, *loaded, options.seed)
            rows.append(
                {"domain": domain, "method": name, "cuts": way}
                | {k: found[k] for k in ("log_loss", "error", "seconds")}
            )
            print_line(rows[-1])
        save_csv(rows, "numeric_structures", options.out)
    table = pd.DataFrame(rows).pivot_table(index=["method", "cuts"], columns="domain", values="log_loss", sort=False)
    print_table(table.reset_index())


if __name__ == "__main__":
    run(main)
