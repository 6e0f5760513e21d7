"""Effects without experiments: error of P(y | do(x)) over all pairs, averaged over structures and from one network.

1000 rows of asia, child and alarm, no row set; and networks drawn from the prior "paper", for which this prior is right. "mean"
and "median" are taken value by value over the networks of 1000 drawn DAGs with posterior-mean tables, "best network" is the best
DAG of the same posterior, "hill climbing" pgmpy's HillClimbSearch at its defaults with its Bayesian estimator (BDeu). The last
two have one direction for every arc, also where the rows cannot tell it. The mean is best for squared errors, the median for
absolute ones. Columns are shuffled: of equivalent networks, which have the same score, their order decides which is the best one.
"""

import logging
import warnings

import numpy as np

from pgm_bma import OrderPosterior, load_network, simulate
from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.networks.objects import bayesian_network
from pgm_bma.orders import effects

from ._common import parser, print_table, run, save_csv
from ._effects import all_effects, network_from_prior

NETWORKS = ("asia", "child", "alarm")
PRIOR = "from the prior"
VARIANTS = {  # settings of OrderPosterior; "" is the default
    "": {},
    " (consistent)": {"parameter_prior": "consistent"},
    " (paper)": {"parameter_prior": "paper"},  # of networks drawn from it
    " (every DAG once)": {"structure_weighting": "dag"},  # where DAGs can be summed
}
ERRORS = ("mean absolute error", "root mean squared error")


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--tables", type=int, default=5, help="tables of each network")
    options.add_argument("--networks", type=int, default=40, help="networks drawn from the prior")
    options.add_argument("--rows", type=int, default=1000)
    chosen = options.parse_args(argv)
    logging.disable(logging.INFO)
    lines = []
    for name in NETWORKS:
        model = load_network(name)
        for seed in range(chosen.tables):
            lines += one(name, model, seed, chosen.rows)
    for seed in range(chosen.networks):
        lines += one(PRIOR, from_prior(seed), seed, chosen.rows // 5)
    save_csv(lines, "effects_accuracy", chosen.out)
    summary = []
    for name in (*NETWORKS, PRIOR):
        for method in dict.fromkeys(line["method"] for line in lines if line["network"] == name):
            found = [line for line in lines if line["network"] == name and line["method"] == method]
            means = {error: np.mean([line[error] for line in found]) for error in ERRORS}
            summary.append({"network": name, "method": method, "tables": len(found)} | means)
    print_table(summary, f"{chosen.tables} tables of {chosen.rows} rows", 4)


def one(name, model, seed, n_rows):
    """Lines of one table."""
    states = {node: list(model.get_cpds(node).state_names[node]) for node in model.nodes}
    X = simulate(model, n_rows, random_state=seed)
    # the files list parents before children, and ties between equivalent networks fall by the order of the columns
    X = X[np.random.default_rng(seed).permutation(X.columns)]
    names = list(X.columns)
    truth = effects_of(model, names, states)
    inside = outside_blocks([len(states[v]) for v in names])
    lines = []

    def judge(method, found):
        off = np.abs(found - truth)[inside]
        errors = dict(zip(ERRORS, (float(off.mean()), float(np.sqrt((off**2).mean())))))
        lines.append({"network": name, "seed": seed, "method": method} | errors)

    for label, settings in VARIANTS.items():
        is_asked = {" (paper)": name == PRIOR, " (every DAG once)": name != PRIOR and len(names) <= 10}
        if not is_asked.get(label, True):
            continue
        posterior = OrderPosterior(state_names=states, random_state=seed, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior.fit(X)
        values = of_networks(posterior)
        judge(f"mean{label}", values.mean(0))
        judge(f"median{label}", np.median(values, axis=0))
        judge(f"best network{label}", effects_of(posterior.model_, names, states))
    if name != PRIOR:
        judge("hill climbing", effects_of(climbed(X, states), names, states))
    return lines


def of_networks(posterior):
    """(n_dags, states of all x, states of all y) effects in drawn DAGs with posterior-mean tables."""
    sample = posterior._drawn_dags()
    everything = list(range(len(posterior._variables.names)))
    asked = posterior._question(sample, everything, everything)
    return np.concatenate([found for _, found in effects.effect_blocks(asked)])


def from_prior(seed, n=6):
    """A network of three-state variables with tables from Dirichlet(1) lines, as the prior "paper" has them."""
    rng = np.random.default_rng(seed)
    cards = [3] * n
    parents, tables = network_from_prior(rng, cards)
    return bayesian_network([f"v{k}" for k in range(n)], [tuple(range(r)) for r in cards], parents, tables)


def climbed(X, states):
    from pgmpy.causal_discovery import HillClimbSearch
    from pgmpy.models import DiscreteBayesianNetwork
    from pgmpy.parameter_estimator import DiscreteBayesianEstimator

    search = HillClimbSearch(return_type="dag", show_progress=False).fit(X)
    model = DiscreteBayesianNetwork()
    model.add_nodes_from(list(X.columns))
    model.add_edges_from(search.causal_graph_.edges)
    return model.fit(X, estimator=DiscreteBayesianEstimator(prior_type="BDeu", state_names=states))


def effects_of(model, names, states):
    """All effects of a pgmpy network, states in the given order."""
    place = {name: k for k, name in enumerate(names)}
    parents, tables = [], []
    for name in names:
        cpd = model.get_cpds(name)
        above = sorted((v for v in cpd.variables if v != name), key=place.get)
        values = np.moveaxis(cpd.values, [cpd.variables.index(v) for v in (*above, name)], range(len(above) + 1))
        for axis, v in enumerate((*above, name)):
            own = list(cpd.state_names[v])
            values = np.take(values, [own.index(state) for state in states[v]], axis=axis)
        parents.append(tuple(place[v] for v in above))
        tables.append(values.reshape(-1, values.shape[-1]))
    return all_effects([len(states[v]) for v in names], parents, tables)


def outside_blocks(cards):
    """Mask of the pairs of different variables."""
    owner = np.repeat(np.arange(len(cards)), np.diff(state_offsets(cards)))
    return owner[:, None] != owner


if __name__ == "__main__":
    run(main)
