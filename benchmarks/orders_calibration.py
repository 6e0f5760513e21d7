"""Simulation-based calibration: structures and tables drawn from the prior, arc posteriors against what was drawn.

If the posterior is right, arcs of posterior p are there in a share p of the data sets, whatever the data. Exact and sampled
posteriors are judged, under both weightings; the last lines take the wrong weighting on purpose.
"""

import warnings
from itertools import combinations, product
from math import comb

import numpy as np
import pandas as pd

from pgm_bma import GibbsSampler, OrderPosterior

from ._common import parser, print_table, results_folder, run, save_csv

N_VARIABLES, MAX_INDEGREE, CARDS = 4, 3, (2, 3, 2, 2)


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--sets", type=int, default=None, help="data sets per weighting")
    options.add_argument("--rows", type=int, default=40, help="rows of a data set")
    options.add_argument(
        "--gaps", type=float, default=0.0, help="share of cells that are missing, sampled with the structures"
    )
    options = options.parse_args(argv)
    if options.gaps:
        return with_gaps(options)
    n_sets = options.sets or (2000 if options.full else 300)
    judged = {}
    for weighting in ("order", "dag"):
        rng = np.random.default_rng([options.seed, len(weighting)])
        for k in range(n_sets):
            parents = draw_structure(weighting, rng)
            frame = draw_rows(parents, options.rows, rng)
            truth = np.array([[u in parents[v] for v in range(N_VARIABLES)] for u in range(N_VARIABLES)])
            other = "dag" if weighting == "order" else "order"
            jobs = {
                f"{weighting}, exact": {"method": "exact", "structure_weighting": weighting},
                f"{weighting}, taken as {other}": {"method": "exact", "structure_weighting": other},
            }
            if k < n_sets // 3:
                jobs[f"{weighting}, chain"] = {"method": "mcmc", "structure_weighting": weighting}
            for name, settings in jobs.items():
                # tables are drawn from alpha = 1 in every cell; chains agree to 0.05 or walk 4096 sweeps
                common = {"parameter_prior": "paper", "max_indegree": MAX_INDEGREE, "state_names": STATES}
                edges = OrderPosterior(**settings, **common, random_state=k).fit(frame)
                off = ~np.eye(N_VARIABLES, dtype=bool)
                judged.setdefault(name, []).append((edges.edge_posterior_.to_numpy()[off], truth[off]))
    rows = [judge(name, pairs) for name, pairs in judged.items()]
    print_table(rows, f"calibration of arc posteriors, {n_sets} data sets of {options.rows} rows from the prior")
    draw(judged, results_folder(options.out) / "orders_calibration.png")
    save_csv(rows, "orders_calibration", options.out)


def with_gaps(options):
    """The same with missing cells: cells and structures are sampled together, or incomplete rows are left out."""
    n_sets = options.sets or (1000 if options.full else 150)
    judged = {}
    off = ~np.eye(N_VARIABLES, dtype=bool)
    for weighting in ("order", "dag"):
        rng = np.random.default_rng([options.seed, len(weighting), 1])
        for k in range(n_sets):
            parents = draw_structure(weighting, rng)
            frame = draw_rows(parents, options.rows, rng).astype(object)
            frame = frame.mask(rng.random(frame.shape) < options.gaps)
            truth = np.array([[u in parents[v] for v in range(N_VARIABLES)] for u in range(N_VARIABLES)])
            common = {
                "parameter_prior": "paper",
                "max_indegree": MAX_INDEGREE,
                "state_names": STATES,
                "random_state": k,
                "sampler": GibbsSampler(max_sweeps=160),
            }
            for how in ("augment", "state"):
                posterior = OrderPosterior(structure_weighting=weighting, missing=how, **common)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    edges = posterior.fit(frame).edge_posterior_.to_numpy()
                judged.setdefault(f"{weighting}, {how}", []).append((edges[off], truth[off]))
    rows = [judge(name, pairs) for name, pairs in judged.items()]
    print_table(
        rows, f"{n_sets} data sets of {options.rows} rows from the prior, {options.gaps:.0%} of the cells missing"
    )
    save_csv(rows, "orders_calibration_gaps", options.out)
    return None


STATES = {f"v{k}": list(range(card)) for k, card in enumerate(CARDS)}


def prior(size):
    """ORD eq. 13 as read: 1/(n binom(n, size))."""
    return 1 / (N_VARIABLES * comb(N_VARIABLES, size))


def draw_structure(weighting, rng):
    """Parents from the prior: under "order" a uniform order and then parents among the predecessors; under "dag" one of all
    DAGs. Written out, without the package."""
    if weighting == "dag":
        dags, shares = all_dags()
        return dags[rng.choice(len(dags), p=shares)]
    order = rng.permutation(N_VARIABLES)
    parents = [()] * N_VARIABLES
    for place, node in enumerate(order):
        before = sorted(int(v) for v in order[:place])
        sets = [z for size in range(MAX_INDEGREE + 1) for z in combinations(before, size)]
        weights = np.array([prior(len(z)) for z in sets])
        parents[node] = sets[rng.choice(len(sets), p=weights / weights.sum())]
    return parents


def all_dags(known={}):  # noqa: B006  filled once
    if not known:
        sets = [
            [
                z
                for size in range(MAX_INDEGREE + 1)
                for z in combinations([u for u in range(N_VARIABLES) if u != v], size)
            ]
            for v in range(N_VARIABLES)
        ]
        dags = [dag for dag in product(*sets) if acyclic(dag)]
        weights = np.array([np.prod([prior(len(z)) for z in dag]) for dag in dags])
        known["all"] = dags, weights / weights.sum()
    return known["all"]


def acyclic(parents):
    left = set(range(len(parents)))
    while left:
        free = {v for v in left if not left & set(parents[v])}
        if not free:
            return False
        left -= free
    return True


def draw_rows(parents, n_rows, rng):
    """Tables from Dirichlet(1), the K2 prior, and rows from them."""
    columns, done = {}, set()
    while len(done) < N_VARIABLES:
        for v in range(N_VARIABLES):
            if v in done or not done.issuperset(parents[v]):
                continue
            index = np.zeros(n_rows, dtype=int)
            for p in parents[v]:
                index = index * CARDS[p] + columns[p]
            cpt = rng.dirichlet(np.ones(CARDS[v]), int(np.prod([CARDS[p] for p in parents[v]])))
            columns[v] = (rng.random(n_rows)[:, None] > np.cumsum(cpt, axis=1)[index][:, :-1]).sum(1)
            done.add(v)
    return pd.DataFrame({f"v{v}": columns[v] for v in range(N_VARIABLES)})


def judge(name, pairs):
    """Mean posterior against share of true arcs, overall and in ten bins; a data set is the unit of the standard error."""
    p, truth = (np.array([pair[k] for pair in pairs], dtype=float) for k in (0, 1))
    surplus = (truth - p).mean(1)
    bins = np.minimum((p * 10).astype(int), 9)
    z_scores = []
    for b in range(10):
        inside = bins == b
        gap = ((truth - p) * inside).sum(1)
        if inside.sum() >= 30:
            z_scores.append(gap.mean() / (gap.std(ddof=1) / np.sqrt(len(pairs))))
    z_scores = np.array(z_scores)
    brier = ((truth - p) ** 2).mean()
    return {
        "posterior": name,
        "data sets": len(pairs),
        "mean posterior": p.mean(),
        "share of true arcs": truth.mean(),
        "z overall": surplus.mean() / (surplus.std(ddof=1) / np.sqrt(len(pairs))),
        "largest |z| of a bin": np.abs(z_scores).max(),
        "mean z^2 of bins": (z_scores**2).mean(),
        "Brier": brier,
    }


def draw(judged, path):
    import matplotlib.pyplot as plt

    from pgm_bma.plotting import plot_calibration

    figure, axes = plt.subplots(1, 2, figsize=(10, 5), layout="constrained")
    for ax, weighting in zip(axes, ("order", "dag")):
        names = [name for name in judged if name.startswith(f"{weighting},")]
        names.sort(key=lambda name: "taken as" in name)
        first = [pair[1] for pair in judged[names[0]]]
        same_sets = [name for name in names if len(judged[name]) == len(first)]
        plot_calibration(
            np.concatenate(first).astype(int),
            {name: np.concatenate([pair[0] for pair in judged[name]]) for name in same_sets},
            positive=1,
            title=f"structures drawn by {weighting}",
            ax=ax,
        )
        ax.set_xlabel("posterior of the arc")
        ax.set_ylabel("share of arcs that are there")
    figure.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(figure)
    print(f"saved {path}")


if __name__ == "__main__":
    run(main)
