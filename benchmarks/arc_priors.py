"""Priors of arcs: which prior of tables and parent sets finds the arcs of known networks, and how honest its probabilities are.

Ten networks and random ones, 100 to 5000 rows, three tables each, columns in random order, default settings otherwise (exact up to
20 variables). Half of the networks are for choosing, half for reporting. Scores: average precision of directed arcs and of the
skeleton, mean log score and Brier score of arcs, expected structural Hamming distance, and of edges above .95 how many there are
and how many are false. BDeu "averaged" weighs sample sizes by their evidence (beyond exact sums, by the score of the best network).
"default" is the size of most evidence, "consistent" the default before it. ``--choice`` compares, on tables of at most 20 columns,
the size that good orders choose with the one that the sum over all orders chooses, and its arcs with the averaged ones. ``--noise``
counts the edges that independent columns of equally frequent states get.
"""

import time
import warnings
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.metrics import average_precision_score

from pgm_bma import GibbsSampler, OrderPosterior, load_network, random_dag, simulate
from pgm_bma.orders import consensus, search

from ._common import parser, print_line, print_table, run, save_csv

SIZES = search.SAMPLE_SIZES
CONSISTENT = {"parameter_prior": "consistent"}  # the default before evidence chose
PRIORS = {
    "default": {},
    "consistent": CONSISTENT,
    "consistent, fair": {"structure_prior": "fair", **CONSISTENT},
    "consistent, fair+": {"structure_prior": "fair+", **CONSISTENT},
    "consistent, price .2": {"arc_prior": 0.2, **CONSISTENT},
    "consistent, price .05": {"arc_prior": 0.05, **CONSISTENT},
    **{f"BDeu {size:g}": {"equivalent_sample_size": size} for size in (*SIZES, 30.0)},
    "BDeu 10, fair": {"structure_prior": "fair", "equivalent_sample_size": 10.0},
    "BDeu 10, fair+": {"structure_prior": "fair+", "equivalent_sample_size": 10.0},
    "BDeu 10, price .2": {"arc_prior": 0.2, "equivalent_sample_size": 10.0},
    "BDeu 10, price .05": {"arc_prior": 0.05, "equivalent_sample_size": 10.0},
    "BDeu 3, price .2": {"arc_prior": 0.2, "equivalent_sample_size": 3.0},
}
CHOOSE = ("cancer", "sachs", "insurance", "hailfinder", "random 0", "random 2")
REPORT = ("asia", "survey", "child", "alarm", "win95pts", "random 1", "random 3")
SCORES = ["arcs", "skeleton", "log_score", "brier", "shd"]
QUICK = [*CHOOSE[:2], *CHOOSE[4:], *REPORT[:2], *REPORT[5:]]


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument("--networks", nargs="+", default=QUICK, choices=[*CHOOSE, *REPORT])
    reader.add_argument("--rows", nargs="+", type=int, default=(100, 1000))
    reader.add_argument("--tables", type=int, default=3)
    reader.add_argument("--priors", nargs="+", default=list(PRIORS), choices=list(PRIORS))
    reader.add_argument("--choice", action="store_true", help="how sizes are chosen, instead of the priors")
    reader.add_argument("--noise", action="store_true", help="edges of independent columns")
    options = reader.parse_args(argv)
    warnings.simplefilter("ignore")
    if options.noise:
        sizes = [(n, k, states) for n in (80, 300, 1000) for k in (20, 60) for states in (2, 3)]
        found = [line for size in sizes for line in noise(*size, options.tables)]
        save_csv(found, "arc_priors_noise", options.out, keys=["rows", "columns", "states", "prior"])
        return print_table(found)
    if options.choice:
        networks = [(name, a_network(name)) for name in options.networks]
        cells = [(*each, n, k) for each in networks for n in options.rows for k in range(options.tables)]
        save_csv([choice(*cell) for cell in cells], "arc_priors_choice", options.out, keys=["network", "rows", "table"])
        return
    for name in options.networks:
        network = a_network(name)
        for n_rows in options.rows:
            rows = []
            for number in range(options.tables):
                rows += one_table(name, network, n_rows, number, options.priors)
            save_csv(rows, "arc_priors", options.out, keys=["network", "rows", "table", "prior"])
            means = pd.DataFrame(rows).groupby("prior", sort=False)[[*SCORES, "cpu_s"]].mean()
            print_table(means.reset_index(), f"{name}, {n_rows} rows")


def a_network(name):
    """(DataFrame of rows from n_rows and a seed, set of true arcs) of a published network or of a random one."""
    if not name.startswith("random"):
        model = load_network(name)
        return (lambda n_rows, seed: simulate(model, n_rows, random_state=seed)), set(model.edges)
    rng = np.random.default_rng([77, int(name.split()[1])])
    graph = random_dag(16, 3, connected=False, n_arcs=20, random_state=rng)
    cards = rng.integers(2, 5, size=16)
    parents = {v: sorted(graph.predecessors(v)) for v in graph}
    order, tables = [], {}
    while len(order) < 16:
        order += [v for v in range(16) if v not in order and set(parents[v]) <= set(order)]
    for v in order:
        tables[v] = rng.dirichlet(np.full(cards[v], 0.5), size=cards[parents[v]].prod(dtype=int))

    def draw(n_rows, seed):
        chance, codes = np.random.default_rng([78, seed]), np.zeros((n_rows, 16), dtype=int)
        for v in order:
            line = np.zeros(n_rows, dtype=int)
            for p in parents[v]:
                line = line * cards[p] + codes[:, p]
            codes[:, v] = (chance.random(n_rows)[:, None] > tables[v].cumsum(1)[line][:, :-1]).sum(1)
        return pd.DataFrame(codes, columns=[f"v{k}" for k in range(16)]).astype(str)

    return draw, {(f"v{p}", f"v{v}") for v in order for p in parents[v]}


def one_table(name, network, n_rows, number, priors):
    draw, arcs = network
    data = draw(n_rows, 1000 + number)
    columns = np.random.default_rng([n_rows, number]).permutation(data.shape[1])
    data = data.iloc[:, columns]
    names = list(data.columns)
    truth = np.array([[(a, b) in arcs for b in names] for a in names])
    rows, sized = [], []
    for prior in priors:
        began = time.process_time()
        fitted = OrderPosterior(sampler=GibbsSampler(max_time=12), random_state=number, **PRIORS[prior]).fit(data)
        seconds, edges = time.process_time() - began, fitted.edge_posterior_.to_numpy()
        about = {"network": name, "half": "choose" if name in CHOOSE else "report", "rows": n_rows, "table": number}
        found = {"converged": fitted.converged_, "cpu_s": seconds, "sample_size": fitted.equivalent_sample_size_}
        rows.append({**about, "prior": prior, **judge(edges, truth), **found})
        if prior in [f"BDeu {size:g}" for size in SIZES]:
            evidence = fitted.log_evidence_ if fitted.method_ == "exact" else fitted.best_log_score_
            sized.append((evidence, edges))
    if len(sized) == len(SIZES):
        logs = np.array([evidence for evidence, _ in sized])
        weights = np.exp(logs - logs.max())
        edges = np.tensordot(weights / weights.sum(), np.array([edges for _, edges in sized]), axes=1)
        rows.append({**about, "prior": "BDeu averaged", **judge(edges, truth), "converged": True, "cpu_s": np.nan})
        best = float(np.asarray(SIZES)[weights.argmax()])
        print_line({"network": name, "rows": n_rows, "table": number, "size of most evidence": best})
    return [{key: round(v, 4) if isinstance(v, float) else v for key, v in row.items()} for row in rows]


def choice(name, network, n_rows, number):
    """One table, 15 columns of a large network: sizes by both ways, and how far arcs of the chosen one are from averaged."""
    draw, arcs = network
    data = draw(n_rows, 1000 + number)
    if data.shape[1] > 20:
        data = data.iloc[:, np.random.default_rng([n_rows, number]).permutation(data.shape[1])[:15]]
    data = data.loc[:, data.nunique() > 1]
    fits = [OrderPosterior(method="exact", equivalent_sample_size=size).fit(data) for size in SIZES]
    evidence = np.array([each.log_evidence_ for each in fits])
    weights = np.exp(evidence - evidence.max()) / np.exp(evidence - evidence.max()).sum()
    with mock.patch.object(search, "EXACT", 0):
        chosen = SIZES.index(OrderPosterior(method="exact").fit(data).equivalent_sample_size_)
    edges = np.array([each.edge_posterior_.to_numpy() for each in fits])
    averaged, best = np.tensordot(weights, edges, axes=1), int(weights.argmax())
    truth = np.array([[(a, b) in arcs for b in data] for a in data])
    line = {
        "network": name, "rows": n_rows, "table": number, "columns": data.shape[1], "by_sums": SIZES[best],
        "by_orders": SIZES[chosen], "nats_lost": round(float(evidence[best] - evidence[chosen]), 2),
        "weight": round(float(weights[best]), 4), "arcs_apart": round(float(abs(edges[best] - averaged).max()), 4),
        "arcs": round(judge(edges[best], truth)["arcs"], 4), "arcs_averaged": round(judge(averaged, truth)["arcs"], 4),
    }  # fmt: skip
    print_line(line)
    return line


def noise(n_rows, n_columns, states, n_tables):
    """A line for each prior: edges of independent columns, means of some tables."""
    found = {"default": [], "BDeu 30": []}
    for number in range(n_tables):
        rng = np.random.default_rng([n_rows, n_columns, states, number])
        data = pd.DataFrame(rng.integers(states, size=(n_rows, n_columns))).add_prefix("c")
        for prior, lines in found.items():
            size = {"equivalent_sample_size": 30.0} if prior != "default" else {}
            fitted = OrderPosterior(method="mcmc", random_state=0, **size).fit(data)
            edges = fitted.skeleton_posterior_.to_numpy()[np.triu_indices(n_columns, 1)]
            lines.append([edges.sum(), (edges >= 0.5).sum(), (edges >= 0.9).sum()])
    about = {"rows": n_rows, "columns": n_columns, "states": states}
    names = "expected edges", "edges of .5", "edges of .9"
    return [
        {**about, "prior": prior, **dict(zip(names, np.mean(lines, axis=0).round(2)))} for prior, lines in found.items()
    ]


def judge(edges, truth):
    """Scores of arc posteriors (n, n), row parent, against the true arcs."""
    pairs = ~np.eye(len(edges), dtype=bool)
    upper = np.triu(pairs)
    p, edge = np.clip(edges, 1e-6, 1 - 1e-6), np.minimum(edges + edges.T, 1.0)
    either = truth | truth.T
    right = np.where(truth, edges, 0.0) + np.where(truth.T, edges.T, 0.0)  # probability of the true direction
    sure = edge[upper] > 0.95
    return {
        "arcs": average_precision_score(truth[pairs], edges[pairs]),
        "skeleton": average_precision_score(either[upper], edge[upper]),
        "log_score": float(-np.where(truth, np.log(p), np.log1p(-p))[pairs].mean()),
        "brier": float(np.square(edges - truth)[pairs].mean()),
        "shd": float(np.where(either, 1.0 - right, edge)[upper].sum()),
        "sure": int(sure.sum()),
        "sure_false": int((sure & ~either[upper]).sum()),
        "shd_half": distance(consensus.above_threshold(edges, 0.5), truth),
        "shd_data": distance(consensus.least_expected_distance(edges), truth),
    }


def distance(arcs, truth):
    """Structural Hamming distance of some arcs to the true ones."""
    right, joined = sum(truth[u, v] for u, v in arcs), sum(truth[u, v] or truth[v, u] for u, v in arcs)
    return int(truth.sum() + len(arcs) - right - joined)


if __name__ == "__main__":
    run(main)
