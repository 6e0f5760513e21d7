"""Arcs of binary tables against a published comparison of structure learners: true and false edges along the threshold.

The design of benchpress (Rios, Moffa and Kuipers): 320 rows of binary data; graphs in which every pair has an arc with the same
probability, four neighbours on average, drawn again until no node has more than five parents, or the graph of hepar2. Tables as
its code draws them: a node without parents is 1 with a probability between .1 and .9 (.03 without children); with parents, between
.01 and .1 where all are 0, else the sum of what those that are 1 have, between .4 and .9 each, at most .95. Its page says that all
probabilities are uniform between .1 and .9 ("uniform"). Which of the two made the published points is not known.

Graphs are compared as patterns: the edges, of which only those of v-structures have a direction. P is the number of true edges. An
edge that is not there counts one as false. An edge that is there with another direction counts half as true and half as false. The
published points are medians of 100 tables.

A default fit of every table, columns in random order. "arcs": arcs of at least the threshold, the most probable first, without
cycles (`consensus`). "edges": edges of at least the threshold, in the more probable direction. "data": `consensus("data")`, one
graph. "climbing" is pyAgrum's greedy hill climbing by BIC on the same tables: it shows how far they are like the published ones.
"""

import time
import warnings

import numpy as np
import pandas as pd

from pgm_bma import OrderPosterior
from pgm_bma.orders import consensus

from ._common import need, parser, print_line, run, save_csv
from .orders_convergence import known

ROWS, NODES, NEIGHBOURS, MOST = 320, 80, 4.0, 5
ALONE, BETWEEN, OFF, ON, CERTAIN = 0.03, (0.1, 0.9), (0.01, 0.1), (0.4, 0.9), 0.95
# of each design, learner -> (FP/P, TP/P, seconds where they are published)
_RANDOM = {
    "BOSS": (0.064, 0.645, 6.0), "GRaSP": (0.063, 0.63, None), "BiDAG, order MCMC": (0.112, 0.588, 650.0),
    "hill climbing": (0.222, 0.546, None),
}  # fmt: skip
PUBLISHED = {
    "random": _RANDOM,
    "uniform": _RANDOM,  # one of the two rules made these points
    "hepar2": {"GRaSP": (0.071, 0.68, None), "BOSS": (0.138, 0.62, None), "BiDAG, order MCMC": (0.146, 0.585, None)},
}
THRESHOLDS = (0.02, 0.05, *np.arange(0.1, 0.95, 0.05).round(2), 0.95, 0.98)


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument("--designs", nargs="+", default=["random", "hepar2"], choices=list(PUBLISHED))
    reader.add_argument("--tables", type=int, default=20)
    options = reader.parse_args(argv)
    warnings.simplefilter("ignore")
    for design in options.designs:
        draw = hepar2 if design == "hepar2" else random_graph
        for number in range(options.tables):
            rows = one_table(design, draw, number, options.seed)
            first = rows[0]
            print_line({name: first[name] for name in ("design", "table", "edges", "converged", "cpu_s")})
            path = save_csv(rows, "structure_curves", options.out, keys=["design", "table", "way", "threshold"])
    print(as_markdown(pd.read_csv(path)))


def one_table(design, draw, number, seed):
    rng = np.random.default_rng([seed, number, len(design)])
    truth = draw(rng)
    table = binary_rows(truth, uniform if design == "uniform" else additive, rng)
    began = time.process_time()
    fitted = OrderPosterior(random_state=number).fit(table)
    seconds, posterior = time.process_time() - began, fitted.edge_posterior_.to_numpy()
    about = {"design": design, "table": number, "edges": int(truth.sum())}
    mine = {"converged": fitted.converged_, "cpu_s": round(seconds, 2)}
    rows = []
    for threshold in THRESHOLDS:
        for way, arcs in (
            ("arcs", consensus.above_threshold(posterior, threshold)),
            ("edges", edges(posterior, threshold)),
        ):
            rows.append({**about, "way": way, "threshold": threshold, **compared(arcs, truth), **mine})
    found = consensus.least_expected_distance(posterior)
    rows.append({**about, "way": "data", "threshold": 0.0, **compared(found, truth), **mine})
    began = time.process_time()
    found = climbed(table)
    seconds = {"converged": True, "cpu_s": round(time.process_time() - began, 2)}
    rows.append({**about, "way": "climbing", "threshold": 0.0, **compared(found, truth), **seconds})
    return rows


def random_graph(rng):
    """(n, n) arcs, row parent, nodes in random order."""
    while True:
        arcs = np.triu(rng.random((NODES, NODES)) < NEIGHBOURS / (NODES - 1), 1)
        if arcs.sum(0).max() <= MOST:
            places = rng.permutation(NODES)
            return arcs[np.ix_(places, places)]


def hepar2(rng):
    """(70, 70) arcs of the published network, nodes in random order."""
    model = known("hepar2")
    place = dict(zip(model.nodes, rng.permutation(len(model.nodes))))
    arcs = np.zeros((len(place), len(place)), dtype=bool)
    for parent, child in model.edges:
        arcs[place[parent], place[child]] = True
    return arcs


def binary_rows(arcs, chances, rng):
    """DataFrame of rows from a network with these arcs and random tables."""
    n = len(arcs)
    codes, done = np.zeros((ROWS, n), dtype=int), np.zeros(n, dtype=bool)
    while not done.all():
        for v in np.flatnonzero(~done & ~arcs[~done].any(0)):  # all of its parents are there
            codes[:, v] = rng.random(ROWS) < chances(codes[:, arcs[:, v]], arcs[v].any(), rng)
            done[v] = True
    return pd.DataFrame(codes, columns=[f"v{k}" for k in range(n)]).astype(str)


def additive(parents, has_children, rng):
    """(n_rows,) probability of a 1, from the parents (n_rows, n_parents), as the code of benchpress has it."""
    if not parents.shape[1]:
        return rng.uniform(*BETWEEN) if has_children else ALONE
    off, on = rng.uniform(*OFF), rng.uniform(*ON, size=parents.shape[1])
    return np.where(parents.any(1), np.minimum(parents @ on, CERTAIN), off)


def uniform(parents, has_children, rng):
    """The same as its page has it: one for every state of the parents."""
    return rng.uniform(*BETWEEN, size=1 << parents.shape[1])[parents @ (1 << np.arange(parents.shape[1]))]


def edges(posterior, threshold):
    """Arcs of the pairs that are joined with at least this probability, without cycles."""
    joined = posterior + posterior.T >= threshold
    return consensus.above_threshold(np.where(joined, posterior, 0.0), np.finfo(float).tiny)


def climbed(table):
    """Arcs by pyAgrum's greedy hill climbing."""
    learner = need("pyagrum").BNLearner(table)
    learner.useGreedyHillClimbing()
    learner.useScoreBIC()
    return list(learner.learnDAG().arcs())


def compared(arcs, truth):
    """Rates of false and of true edges, both by the number of true ones."""
    found = np.zeros_like(truth)
    for parent, child in arcs:
        found[parent, child] = True
    mine, true = pattern(found), pattern(truth)
    joined, wanted = np.triu(mine | mine.T), np.triu(true | true.T)
    both = joined & wanted
    turned = both & ((mine != true) | (mine != true).T)
    n_true, half = wanted.sum(), turned.sum() / 2
    return {
        "false": round(float(((joined & ~wanted).sum() + half) / n_true), 4),
        "true": round(float((both.sum() - half) / n_true), 4),
    }


def pattern(arcs):
    """(n, n) an edge in both places, but one of a v-structure in that of its direction alone."""
    joined = arcs | arcs.T
    found = joined.copy()
    for child in range(len(arcs)):
        parents = np.flatnonzero(arcs[:, child])
        apart = ~joined[np.ix_(parents, parents)]
        np.fill_diagonal(apart, False)
        found[child, parents[apart.any(1)]] = False
    return found


def as_markdown(rows):
    """The table of docs/evidence.md: most true edges of the median curves at no more false ones than published."""
    lines = ["| design | published | FP/P | TP/P | TP/P, arcs | TP/P, edges |", "|---|---|---|---|---|---|"]
    for design, learners in PUBLISHED.items():
        own = rows[rows.design == design]
        medians = own.groupby(["way", "threshold"])[["false", "true"]].median()
        for name, (false, true, seconds) in learners.items() if len(own) else ():
            took = f", {seconds:g} s" if seconds else ""
            few = medians[medians["false"] <= false]["true"]
            reached = " | ".join(f"{few.loc[way].max() if way in few else 0.0:.3f}" for way in ("arcs", "edges"))
            lines.append(f"| {design} | {name}{took} | {false:.3f} | {true:.3f} | {reached} |")
    return "\n".join(lines)


if __name__ == "__main__":
    run(main)
