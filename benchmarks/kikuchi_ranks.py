"""Kikuchi-Bayes with learned weights against its peers on domains that chose nothing: mean ranks, critical difference."""

import pandas as pd

from . import _kikuchi as kikuchi
from ._common import parser, print_table, results_folder, run, save_csv

REAL = [
    "balance-scale", "breast-wisc", "iris", "krkp", "lenses", "monk1", "monk3", "mushroom", "nursery", "soybean-small",
    "titanic", "wdbc",
]  # fmt: skip
QUICK = ["K1", "TAN", "TK", "K2", "tree", "learned", "learned, all pairs", "logistic", "averaged NB"]


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=None, help="at most this many rows of a domain (quick: 600)")
    arguments.add_argument("--methods", nargs="+", default=None, help=f"of {', '.join(kikuchi.METHODS)}")
    arguments.add_argument("--domains", nargs="+", default=None)
    options = arguments.parse_args(argv)
    n_rows = options.rows or (2000 if options.full else 600)
    methods = options.methods or (kikuchi.METHODS if options.full else QUICK)
    rows = []
    for domain, X, y in domains(options.domains, n_rows, options.seed):
        for method in methods:
            found = kikuchi.evaluate(method, X, y, "honest", 1, options.seed)
            rows.append({"domain": domain, "method": method, **found})
        print_table([r for r in rows if r["domain"] == domain])
    results = pd.DataFrame(rows)
    for measure in ("log_loss", "error"):
        ranks, n_domains = kikuchi.mean_ranks(results, measure, methods)
        width = kikuchi.critical_difference(len(methods), n_domains)
        table = pd.DataFrame({"mean rank": ranks, "mean": results.groupby("method")[measure].mean()})
        table = table.sort_values("mean rank").rename_axis("method").reset_index()
        print_table(table, f"by {measure}, {n_domains} domains; ranks closer than {width:.2f} are not told apart (5 %)")
        path = results_folder(options.out) / f"kikuchi_ranks_unseen_{measure}.png"
        kikuchi.plot_ranks(ranks, n_domains, f"mean rank by {measure.replace('_', ' ')}, unseen domains", path)
    save_csv(results, "kikuchi_ranks", options.out)


def domains(wanted, n_rows, seed):
    """(name, X, y) of the real domains that were not used for choices, and of the simulated ones."""
    for name in REAL:
        if wanted is not None and name not in wanted:
            continue
        loaded = kikuchi.load_domain(name)
        if loaded is None:
            print(f"{name}: not at hand; set PGM_BMA_DATA to a folder that holds {name}.csv")
            continue
        X, y = loaded
        if len(X) > n_rows:
            chosen = X.sample(n_rows, random_state=seed).index
            X, y = X.loc[chosen].reset_index(drop=True), y.loc[chosen].reset_index(drop=True)
        yield name, X, y
    for network in kikuchi.SIMULATED:
        if wanted is None or f"{network} (simulated)" in wanted:
            yield f"{network} (simulated)", *kikuchi.simulated_domain(network, n_rows, seed)


if __name__ == "__main__":
    run(main)
