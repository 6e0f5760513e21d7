"""What a fit costs: CPU seconds and memory of every estimator against rows (20 columns) and against columns (500 rows).

Columns of three states, three clusters (or classes), half of the columns copy their left neighbour half of the time; default
settings. Every fit is a process of its own with a limit of CPU time, forked after the imports, a small fit and the making of
the table. Memory is the peak of that process above what it had before the fit. The exponent is the slope between the two
largest sizes that ended within the limit. ``--picture docs/cost.png`` draws; ``--kept`` reads the kept CSV instead of
measuring. The tables of docs/cost.md are printed.
"""

import math
import warnings

from ._child import in_child
from ._common import kept_rows, parser, print_line, replace_table, run, save_csv

CLASSIFIERS = (
    "NaiveBayesClassifier",
    "AveragedNaiveBayesClassifier",
    "TANClassifier",
    "ForestAveragedClassifier",
    "KikuchiBayesClassifier",
    "FixedOrderClassifier",
    "OrderAveragedClassifier",
)
OTHERS = (
    "LatentClassClusterer",
    "EMAClusterer",
    "StructuralEMClusterer",
    "ForestAveragedClusterer",
    "OrderPosterior",
)
SWEEPS = {  # what grows -> (rows, columns) of every fit
    "rows": [(1_000, 20), (10_000, 20), (100_000, 20)],
    "columns": [(500, 10), (500, 40), (500, 160), (500, 500)],
}
COLUMN_BY_COLUMN = (
    "NaiveBayesClassifier",
    "AveragedNaiveBayesClassifier",
    "LatentClassClusterer",
    "EMAClusterer",
)  # no pairs
MEMORY = 8_000  # MB that the table of the page allows


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--only", default="", help="estimators, separated by commas; others stay as kept")
    options.add_argument("--limit", type=int, default=20, help="CPU seconds a fit may take (default 20)")
    options.add_argument("--picture", default="", help="draw the costs to this file")
    options.add_argument("--page", default="", help="write the tables into this page (docs/cost.md)")
    options.add_argument("--kept", action="store_true", help="read the kept CSV instead of measuring")
    arguments = options.parse_args(argv)
    if arguments.kept:
        rows = kept_rows("sizes", arguments.out, "estimator", ())
    else:
        names = [name for name in CLASSIFIERS + OTHERS if not arguments.only or name in arguments.only.split(",")]
        rows = kept_rows("sizes", arguments.out, "estimator", names) + measure(names, arguments.limit, arguments.seed)
        rows.sort(key=lambda one: (CLASSIFIERS + OTHERS).index(one["estimator"]))
        save_csv(rows, "sizes", arguments.out)
    for grows in SWEEPS:
        print(f"\n{as_markdown(capacity(rows), grows)}")
        if arguments.page:
            replace_table(arguments.page, as_markdown(capacity(rows), grows))
    if arguments.picture:
        draw(rows, arguments.picture)


def measure(names, limit, seed):
    """A dict for every fit: estimator, what grows, rows, columns, CPU seconds, MB and how it ended."""
    rows = []
    for name in names:
        fit(name, table(200, 6, seed))  # imports and compiled code
        for grows, sizes in SWEEPS.items():
            line = []
            for n_rows, n_columns in sizes:
                size = {"rows": n_rows, "columns": n_columns}
                expected = extrapolate(line, grows, size[grows])
                if (line and line[-1]["ended"] != "whole") or expected > 3 * limit:
                    told = {"ended": "left out"}  # it would be stopped too
                else:
                    data = table(n_rows, n_columns, seed)
                    told = in_child(lambda n=name, d=data: fit(n, d), limit)
                line.append({"estimator": name, "grows": grows, **size, "cpu": math.nan, "mb": math.nan, **told})
                print_line(line[-1])
            rows += line
    return rows


def extrapolate(line, grows, size):
    """CPU seconds at `size` by the slope of the last two fits of a sweep; 0 as long as there are not two."""
    whole = [one for one in line if one["ended"] == "whole"]
    if len(whole) < 2:
        return 0.0
    return whole[-1]["cpu"] * (size / whole[-1][grows]) ** slope(whole, grows, "cpu")


def slope(whole, grows, what):
    """Slope between the last two fits on log-log axes."""
    before, last = whole[-2:]
    ratio = max(last[what], 1e-3) / max(before[what], 1e-3)
    return math.log(ratio) / math.log(last[grows] / before[grows])


def fit(name, data):
    import pgm_bma

    X, y = data
    estimator = getattr(pgm_bma, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in CLASSIFIERS:
            return estimator().fit(X, y)
        return estimator(**({"n_clusters": 3} if name.endswith("Clusterer") else {})).fit(X)


def table(n_rows, n_columns, seed, n_classes=3):
    """A frame of categoricals and the clusters that its rows come from."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, n_classes, n_rows)
    weights = rng.dirichlet(np.full(3, 2.0), (n_columns, n_classes)).cumsum(axis=2)
    columns = {}
    for j in range(n_columns):
        states = (rng.random(n_rows)[:, None] > weights[j, cluster, :2]).sum(axis=1).astype(np.int8)
        if j % 2:
            states = np.where(rng.random(n_rows) < 0.5, columns[f"x{j - 1}"].codes, states)
        columns[f"x{j}"] = pd.Categorical.from_codes(states, categories=["low", "middle", "high"])
    return pd.DataFrame(columns), pd.Series(cluster.astype(str), name="y")


def capacity(rows):
    """For every estimator exponents, costs of the largest fit, and the sizes that 10 s and 10 minutes would take.

    Extrapolated from the largest fit by the exponent, at least 1 (a table must be read), 2 for columns where all pairs are
    looked at; a fit that was stopped counts with the limit where that makes the exponent larger. Never past `MEMORY` by the
    growth of memory, at least linear too: every size has a second entry that is True where memory ends it.
    """
    lines = []
    for name in dict.fromkeys(one["estimator"] for one in rows):
        for grows in SWEEPS:
            sweep = [one for one in rows if (one["estimator"], one["grows"]) == (name, grows)]
            whole = [one for one in sweep if one["ended"] == "whole"]
            if len(whole) < 2:
                continue
            stopped = [
                {**one, "cpu": float(one["ended"].split()[1])} for one in sweep if one["ended"].startswith("over ")
            ]
            exponent = max(slope([*whole, *more], grows, "cpu") for more in ([], stopped))
            last, least = whole[-1], 2.0 if grows == "columns" and name not in COLUMN_BY_COLUMN else 1.0
            line = {"estimator": name, "grows": grows, "exponent": exponent, "stopped": bool(stopped)}
            line |= {"size": last[grows], "cpu": last["cpu"], "mb": last["mb"]}
            by_memory = last[grows] * (MEMORY / max(last["mb"], 1.0)) ** (1 / max(1.0, slope(whole, grows, "mb")))
            for label, seconds in (("10 s", 10.0), ("10 min", 600.0)):
                by_time = last[grows] * (seconds / last["cpu"]) ** (1 / max(least, exponent))
                line[label] = (min(by_time, by_memory), by_memory < by_time)
            lines.append(line)
    return lines


def as_markdown(lines, grows):
    """A table of docs/cost.md."""
    said = [f"| estimator | largest fit, {grows} | CPU s | MB | exponent | {grows} in 10 s | {grows} in 10 min |"]
    said.append("|---|---|---|---|---|---|---|")
    for one in lines:
        if one["grows"] == grows:
            sizes = [rounded(size) + (" m" if memory else "") for size, memory in (one["10 s"], one["10 min"])]
            cells = [f"`{one['estimator']}`", f"{one['size']:,}", f"{one['cpu']:.2g}", f"{one['mb']:.0f}"]
            said.append(f"| {' | '.join([*cells, said_exponent(one), *sizes])} |")
    return "\n".join(said)


def said_exponent(line):
    return ("at least " if line["stopped"] else "") + f"{line['exponent']:.1f}"


def rounded(size):
    """Two digits, rounded down: 123,456 -> "120,000"."""
    unit = 10 ** max(0, math.floor(math.log10(size)) - 1)
    return f"{math.floor(size / unit) * unit:,}"


def draw(rows, path):
    """CPU seconds against rows and columns, classifiers above, the others below."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    exponents = {(line["estimator"], line["grows"]): said_exponent(line) for line in capacity(rows)}
    fig, axes = plt.subplots(2, 2, figsize=(11, 8.5), sharey=True, layout="constrained")
    for row, names in zip(axes, (CLASSIFIERS, OTHERS), strict=True):
        for ax, grows in zip(row, SWEEPS, strict=True):
            for name, marker in zip(names, "osD^vPX", strict=False):
                line = [one for one in rows if (one["estimator"], one["grows"], one["ended"]) == (name, grows, "whole")]
                if line:
                    label = f"{name}, {exponents.get((name, grows), 'none')}"
                    ax.plot([one[grows] for one in line], [one["cpu"] for one in line], marker=marker, label=label)
            ax.set(xscale="log", yscale="log", xlabel=f"{grows} ({'20 columns' if grows == 'rows' else '500 rows'})")
            ax.axhline(10, color="0.6", linewidth=1, linestyle=":")
            ax.grid(color="0.92")
            ax.set_axisbelow(True)
            ax.legend(fontsize=8, title="estimator, exponent", title_fontsize=8, loc="upper left", framealpha=0.8)
        row[0].set_ylabel("CPU seconds of the fit")
    axes[0, 0].set_ylim(1e-3, 2e3)  # room for the legends
    fig.savefig(path, dpi=100)
    plt.close(fig)
    print(f"wrote {path}")


if __name__ == "__main__":
    run(main)
