"""Shared parts of Tables I and II of the EMA paper: the loop over cells, the printing and the files."""

import time

import numpy as np
import pandas as pd

from ._common import paper_table, parser, print_line, print_table, save_csv
from ._ema_grid import METHODS, add_up, compare, run_cell

SIZES = (10, 20, 40, 80, 160, 320, 640)


def arguments(description, quick, full):
    """The parser of both tables; `quick` and `full` give variables, sizes, models and starts."""
    options = parser(description)
    options.add_argument("--variables", type=int, nargs="+", help="numbers of variables")
    options.add_argument("--clusters", type=int, nargs="+", default=[2, 3])
    options.add_argument("--sizes", type=int, nargs="+", help="numbers of rows")
    options.add_argument("--models", type=int, help="random models per cell (paper: 50)")
    options.add_argument("--starts", type=int, help="starts per fit (paper: 30)")
    return options, quick, full


def read(options, quick, full, argv):
    chosen = options.parse_args(argv)
    for name, value in (full if chosen.full else quick).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    return chosen


def run_table(name, published, rows, draw, chosen, methods=METHODS, extra=None):
    """Run every cell, print paper against ours, and save two files: cells and means.

    rows : list of dicts with n_variables, n_clusters (and max_parents)      draw : (row, rng) -> NetworkArrays
    """
    paper = paper_table(published)
    cells, means, shares = [], [], []
    for row in rows:
        for size in chosen.sizes:
            began = time.perf_counter()
            seed = chosen.seed * 1000 + sum(row.values())

            def draw_model(rng, row=row):
                return draw(row, rng)

            distances, collapsed = run_cell(
                draw_model, size, row["n_clusters"], chosen.models, chosen.starts, seed, methods, extra=extra
            )
            line = paper
            for key, value in row.items():
                line = line[line[key] == value]
            cell = {**row, "N": size, "paper EMA": line[f"N={size}"].iloc[0]}
            cell |= {method: compare(distances, method) for method in distances if method != "EM"}
            cells.append(cell)
            means.append({**row, "N": size, **{name: values.mean() for name, values in distances.items()}})
            shares.append({"N": size, **{f"{loop[0]} from {loop[1]}": np.mean(v) for loop, v in collapsed.items()}})
            shown = {key: cell[key] for key in ("paper EMA", "EMA", "twin from EM")}
            print_line({**row, "N": size, **shown, "seconds": time.perf_counter() - began})
    cells, means, shares = pd.DataFrame(cells), pd.DataFrame(means), pd.DataFrame(shares)
    title = f"{chosen.models} models a cell, {chosen.starts} starts (paper: 50 and 30)"
    print_table(cells, f"{name}: wins/draws/losses against EM; {title}; ** 1 %, * 10 % (Wilcoxon)")
    named = list(distances)
    overall = means[[*named, "N"]].groupby("N").mean()
    overall.loc["all"] = overall.mean()
    print_table(
        overall.T.rename_axis("method").reset_index(), "mean co-membership distance / N^2 by N, lower is better"
    )
    sums = [{"method": method, "wins/draws/losses against EM": add_up(cells[method])} for method in named[1:]]
    sums.append({"method": "paper EMA", "wins/draws/losses against EM": add_up(cells["paper EMA"])})
    print_table(sums, "over all cells")
    collapse = shares.groupby("N").mean()
    collapse.loc["all"] = collapse.mean()
    print_table(collapse.reset_index(), "share of starts that collapsed")
    save_csv(cells, name, chosen.out)
    save_csv(means.assign(models=chosen.models, starts=chosen.starts), f"{name}_means", chosen.out)
