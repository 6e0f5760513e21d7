"""Number of clusters: how often the right one is found, and whether the warning of too many comes when it should.

Forty tables with three classes and eight columns of two or three states, 300 to 3000 rows. No, one or two pairs of columns are
dependent inside the classes: the second one copies the first in six of ten rows. Numbers from 1 to 5 are tried by every criterion
of the latent-class model (EMA's evidence, and BIC, ICL, CAIC and the bootstrapped likelihood-ratio test of EM), by structural EM
and by the average over forests.

A warning that the evidence takes too many clusters may follow several rules. The first twenty tables choose among them, by warnings
at too large numbers minus warnings at others; the other twenty are the ones to report.
"""

import time
import warnings

import numpy as np
import pandas as pd
from scipy.stats import chi2

import pgm_bma

from ._common import parser, print_table, run, save_csv

N_TABLES, N_CLASSES, N_COLUMNS, NUMBERS = 40, 3, 8, range(1, 6)
COPIED = 0.6
RULES = {
    "forests need fewer": lambda line: line["forest"] < line["evidence"] and line["n_arcs"] > 0,
    "structural EM needs fewer": lambda line: line["structural"] < line["evidence"],
    "both need fewer": lambda line: max(line["forest"], line["structural"]) < line["evidence"],
    "a pair stays dependent": lambda line: line["n_pairs"] > 0,
    "BIC takes fewer": lambda line: line["bic"] < line["evidence"],
}


def main(argv=None):
    arguments = parser(__doc__).parse_args(argv)
    lines = []
    for number in range(N_TABLES):
        began = time.process_time()
        lines.append(one_table(number, arguments.seed))
        print(f"table {number + 1} of {N_TABLES}: {time.process_time() - began:.1f} CPU s", flush=True)
    found = pd.DataFrame(lines)
    save_csv(found, "how_many", arguments.out)
    criteria = ["evidence", "bic", "icl", "caic", "blrt", "structural", "forest"]
    right = found.assign(**{name: found[name] == N_CLASSES for name in criteria})
    share = right.groupby("dependent")[criteria].sum().T
    share.columns = [f"{n} pairs (of {(found['dependent'] == n).sum()})" for n in share]
    print("\ntables on which three clusters are found")
    print_table(share.rename_axis("by").reset_index())
    print("\nwarnings where the evidence takes more than three clusters, and where it does not")
    print_table(rules_table(found))


def rules_table(found):
    half, is_high = found["table"] < N_TABLES // 2, found["evidence"] > N_CLASSES
    lines = []
    for name, rule in RULES.items():
        warned = found.apply(rule, axis=1)
        counts = [
            f"{int((warned & high & part).sum())} of {int((high & part).sum())}"
            for part in (half, ~half)
            for high in (is_high, ~is_high)
        ]
        lines.append((name, *counts))
    columns = ["rule", "choosing: too many", "choosing: others", "reported: too many", "reported: others"]
    return pd.DataFrame(lines, columns=columns)


def one_table(number, seed):
    rng = np.random.default_rng([seed, number])
    n_rows, dependent = int(np.exp(rng.uniform(np.log(300), np.log(3000)))), number % 3
    X = draw(n_rows, dependent, rng)
    how = {"n_init": 6, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        averaged = pgm_bma.EMAClusterer(NUMBERS, random_state=0).fit(X)
        plain = pgm_bma.LatentClassClusterer(NUMBERS, random_state=0).fit(X)
        chosen = {name: plain.chosen_by(name, X, random_state=0).n_clusters_ for name in ("bic", "icl", "caic", "blrt")}
        structural = pgm_bma.StructuralEMClusterer(NUMBERS, **how).fit(X)
        forests = pgm_bma.ForestAveragedClusterer(NUMBERS, **how).fit(X)
        pairs = pgm_bma.bivariate_residuals(averaged, X)
    either = forests.edge_posterior_.to_numpy() + forests.edge_posterior_.to_numpy().T
    return {
        "table": number,
        "rows": n_rows,
        "dependent": dependent,
        "evidence": averaged.n_clusters_,
        **chosen,
        "structural": structural.n_clusters_,
        "forest": forests.n_clusters_,
        "n_arcs": int((np.triu(either, 1) >= 0.5).sum()),
        "n_pairs": int((chi2.sf(pairs["x2"], pairs["df"]) < 0.001 / len(pairs)).sum()),
    }


def draw(n_rows, dependent, rng):
    z = rng.choice(N_CLASSES, n_rows, p=rng.dirichlet(np.full(N_CLASSES, 8.0)))
    columns = []
    for i in range(N_COLUMNS):
        tables = rng.dirichlet(np.ones(2 + i % 2), N_CLASSES)
        columns.append((rng.random(n_rows)[:, None] >= np.cumsum(tables[z], axis=1)[:, :-1]).sum(axis=1))
    for pair in range(dependent):
        first, second = columns[4 * pair], columns[4 * pair + 2]  # both of two states
        columns[4 * pair + 2] = np.where(rng.random(n_rows) < COPIED, first, second)
    return pd.DataFrame({f"q{i}": column for i, column in enumerate(columns)})


if __name__ == "__main__":
    run(main)
