"""Kikuchi-Bayes, Table 1: how often each of five methods is best or worst, and the gain in rank between them."""

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from . import _kikuchi as kikuchi
from . import kikuchi_table2
from ._common import paper_table, parser, print_table, results_folder, run, save_csv

TABLE = True
METHODS = ["NB", "K1", "TAN", "TK", "K2"]
# shares of best and worst as printed; they come from unrounded results, the rows computed here from printed ones
PRINTED = {
    "error": ([27.3, 47.7, 20.5, 15.9, 29.5], [22.7, 20.5, 25.0, 20.5, 29.5]),
    "log_loss": ([9.1, 29.5, 27.3, 13.6, 34.1], [18.2, 15.9, 34.1, 11.4, 22.7]),
}


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument(
        "--again", action="store_true", help="measure anew instead of reading kikuchi_table2_paper.csv"
    )
    options = arguments.parse_args(argv)
    options.protocol = "paper"
    ours = own_results(options)
    published = published_results()
    shared = [domain for domain in published["error"].index if domain in ours["error"].index]
    rows = []
    for measure in ("error", "log_loss"):
        for method, best, worst in zip(METHODS, *PRINTED[measure]):
            rows.append(
                {"measure": measure, "source": "paper, printed", "method": method, "best": best, "worst": worst}
            )
        tables = {
            "paper, 44 domains": published[measure],
            f"paper, {len(shared)} shared": published[measure].loc[shared],
            f"ours, {len(shared)} shared": ours[measure].loc[shared],
        }
        for source, table in tables.items():
            rows += summary(table, measure, source)
    print_table(
        rows, "share of domains (%) where a method is best or worst; gain in mean rank over each other method", 1
    )
    save_csv(rows, "kikuchi_table1", options.out)


def own_results(options):
    path = results_folder(options.out) / "kikuchi_table2_paper.csv"
    if path.exists() and not options.again:
        results = pd.read_csv(path)
        print(f"reading {path} ({results.domain.nunique()} domains)")
    else:
        limit = 10**9 if options.full else 3200
        results = kikuchi_table2.measure(kikuchi.all_domains(), METHODS, options, limit)
    # the paper rounds before it ranks, so ties are ties of printed numbers
    return {
        "error": results.pivot(index="domain", columns="method", values="paper_error")[METHODS].round(1),
        "log_loss": results.pivot(index="domain", columns="method", values="log_loss")[METHODS].round(2),
    }


def published_results():
    table = paper_table("kikuchi_table2").set_index("domain")
    return {
        measure: table[[f"{short}_{kikuchi.PAPER[m]}" for m in METHODS]].set_axis(METHODS, axis=1)
        for measure, short in (("error", "err"), ("log_loss", "nll"))
    }


def summary(table, measure, source):
    values = table.to_numpy()
    best = np.isclose(values, values.min(axis=1, keepdims=True)).mean(axis=0)
    worst = np.isclose(values, values.max(axis=1, keepdims=True)).mean(axis=0)
    ranks = rankdata(values, axis=1).mean(axis=0)
    for k, method in enumerate(METHODS):
        gains = {f"gain over {other}": ranks[j] - ranks[k] for j, other in enumerate(METHODS) if j != k}
        yield {
            "measure": measure,
            "source": source,
            "method": method,
            "best": 100 * best[k],
            "worst": 100 * worst[k],
            **gains,
        }


if __name__ == "__main__":
    run(main)
