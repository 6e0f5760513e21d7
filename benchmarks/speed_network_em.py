"""Network EM and inference on alarm and asia against pyAgrum, pgmpy (DiscreteEM, predict_probability) and LatentClassClusterer."""

import time

import numpy as np
import pandas as pd
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgm_bma import EMEstimator, LatentClassClusterer, load_network, predict_proba, simulate
from pgm_bma.networks import _junction_tree_kernels as kernels
from pgm_bma.networks import evidence
from pgm_bma.networks.em import make_problem
from pgm_bma.networks.reading import read_network

from ._common import Skip, best_of, best_of_each, need, parser, print_table, run, save_csv


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, default=1000, help="rows of the alarm table")
    arguments.add_argument("--missing", type=float, default=0.2, help="share of missing cells")
    options = arguments.parse_args(argv)
    parts = {
        "alarm": lambda: against_pyagrum(options.rows, options.missing, options.full, options.seed),
        "discrete_em": lambda: against_discrete_em(options.full, options.seed),
        "naive_bayes": lambda: against_latent_class(options.seed),
        "predict_proba": lambda: against_predict_probability(options.full, options.seed),
        "kernel": lambda: against_plain_twin(options.seed),
    }
    rows = []
    for name, part in parts.items():
        try:
            rows.append({"part": name, **part()})
        except Skip as reason:
            print(f"{name} skipped: {reason}")
    print_table(rows, "seconds of the peer and ours; ratio = peer / ours", 5)
    save_csv(rows, "speed_network_em", options.out)


def alarm_rows(n_rows, missing, seed):
    model = load_network("alarm")
    rows = simulate(model, n_rows, random_state=seed)
    return model, rows.mask(np.random.default_rng(seed).random(rows.shape) < missing)


def seconds_per_update(model, rows, updates=200, **keywords):
    """Difference of a long and a short fit: what one more update costs, the reading of the table left out."""

    def fit(n):
        structure = DiscreteBayesianNetwork(model.edges())
        structure.add_nodes_from(model.nodes())
        structure.latents = set(model.latents)
        EMEstimator(max_iter=n, atol=0, n_init=1, seed=0, show_progress=False, **keywords).fit(structure, rows)

    fit(1)
    seconds = best_of_each({1: lambda: fit(1), updates: lambda: fit(updates)}, 5)
    return (seconds[updates] - seconds[1]) / (updates - 1), seconds[1]


def against_pyagrum(n_rows, missing, full, seed):
    model, rows = alarm_rows(n_rows, missing, seed)
    ours, first = seconds_per_update(model, rows)
    result = {"what": f"EM update, alarm, {n_rows} rows, {missing:.0%} missing", "ours": ours, "aim": 20}
    print(f"alarm: {ours:.5f} s per update, {first:.3f} s for the first one with reading and planning")
    gum = need("pyagrum")
    seconds = {}
    for updates in (1, 6 if full else 3):
        seconds[updates] = pyagrum_seconds(gum, model, rows, updates)
    (a, b) = seconds
    peer = (seconds[b] - seconds[a]) / (b - a)
    return {**result, "peer": peer, "ratio": peer / ours, "by": "pyAgrum"}


def pyagrum_seconds(gum, model, rows, updates):
    network = gum.BayesNet()
    for node in model.nodes():
        network.add(gum.LabelizedVariable(node, node, list(model.get_cpds(node).state_names[node])))
    for a, b in model.edges():
        network.addArc(a, b)
    learner = gum.BNLearner(rows.astype(object).where(rows.notna(), "?"), network, ["?"])
    learner.useSmoothingPrior(1)
    learner.useEM(1e-12)
    learner.EMsetMaxIter(updates)
    learner.EMdisableEpsilon()
    learner.EMdisableMinEpsilonRate()
    start = time.perf_counter()
    learner.learnParameters(network.dag())
    return time.perf_counter() - start


def against_discrete_em(full, seed):
    """pgmpy's own EM on what it can do (complete columns, one latent): the same start, the same answer."""
    from pgmpy.parameter_estimator import DiscreteEM

    n_rows, updates = (2000, 3) if full else (500, 2)
    rows = simulate(load_network("asia"), n_rows, random_state=seed).drop(columns="either").astype(object)
    model = DiscreteBayesianNetwork(load_network("asia").edges(), latents={"either"})
    cards = {node: 2 for node in model.nodes()}
    names = {node: [0, 1] if node == "either" else ["yes", "no"] for node in model.nodes()}
    start = {}
    for number, node in enumerate(model.nodes()):
        family = [node, *model.get_parents(node)]
        keywords = {"state_names": {v: names[v] for v in family}, "seed": number}
        start[node] = TabularCPD.get_random(node, family[1:], {v: cards[v] for v in family}, **keywords)
    peer = DiscreteEM(init_cpds=start, state_names=names, max_iter=updates, atol=0, show_progress=False)
    begin = time.perf_counter()
    peer.fit(model, rows)
    peer_seconds = (time.perf_counter() - begin) / updates
    ours = EMEstimator(alpha=0, init_cpds=start, state_names=names, n_init=1, max_iter=updates, atol=0).fit(model, rows)
    theirs = {cpd.variable: cpd for cpd in peer.parameters_}
    gap = max(np.abs(cpd.values - aligned(theirs[cpd.variable], cpd)).max() for cpd in ours.parameters_)
    seconds, _ = seconds_per_update(model, rows, 500, alpha=0, init_cpds=start, state_names=names)
    print(f"DiscreteEM: the largest difference of the tables after {updates} updates is {gap:.1e}")
    what = f"EM update, asia without 'either', {n_rows} rows"
    return {
        "what": what,
        "ours": seconds,
        "aim": 1000,
        "peer": peer_seconds,
        "ratio": peer_seconds / seconds,
        "by": "pgmpy",
    }


def aligned(theirs, ours):
    return np.transpose(theirs.values, [theirs.variables.index(v) for v in ours.variables])


def against_latent_class(seed):
    """Naive Bayes with a latent root: both estimators, whole fits from the same DataFrame, 100 updates of one start."""
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.integers(0, 2, (10_000, 20)), columns=[f"x{i}" for i in range(20)])
    model = DiscreteBayesianNetwork([("cluster", c) for c in rows], latents={"cluster"})
    estimator = EMEstimator(latent_card={"cluster": 4}, n_init=1, max_iter=100, atol=0, seed=0)
    clusterer = LatentClassClusterer(n_clusters=4, n_init=1, max_iter=100, tol=0, random_state=0)
    estimator.fit(model, rows)
    clusterer.fit(rows)
    calls = {"ours": lambda: estimator.fit(model, rows), "peer": lambda: clusterer.fit(rows)}
    seconds = best_of_each(calls, 7)
    what = "EMEstimator, naive Bayes, 10,000 x 20, 4 clusters, 100 updates (ratio at least 1 / 1.5)"
    return {
        "what": what,
        **seconds,
        "aim": 1 / 1.5,
        "ratio": seconds["peer"] / seconds["ours"],
        "by": "LatentClassClusterer",
    }


def against_predict_probability(full, seed):
    n_rows, n_peer = 1000, 100 if full else 20
    model, rows = alarm_rows(n_rows, 0.0, seed)
    hidden = ["HYPOVOLEMIA", "LVFAILURE", "KINKEDTUBE"]
    evidence_rows = rows.drop(columns=hidden)
    predict_proba(model, evidence_rows, hidden)
    ours = best_of(lambda: predict_proba(model, evidence_rows, hidden), 5) / n_rows
    begin = time.perf_counter()
    theirs = model.predict_probability(evidence_rows[:n_peer])
    peer = (time.perf_counter() - begin) / n_peer
    found = predict_proba(model, evidence_rows[:n_peer], hidden)
    gap = max(np.abs(found[v, s] - theirs[f"{v}_{s}"]).max() for v, s in found.columns)
    print(f"predict_probability: the largest difference on {n_peer} rows is {gap:.1e}")
    what = f"predict_proba per row, alarm, {n_rows} rows, 3 unobserved"
    return {"what": what, "ours": ours, "aim": 100, "peer": peer, "ratio": peer / ours, "by": "pgmpy"}


def against_plain_twin(seed):
    """The compiled expectation step against the same code interpreted."""
    model, rows = alarm_rows(100, 0.2, seed)
    network = read_network(model, rows)
    plan = make_problem(network.codes, network.cardinalities, network.parents, network.weights).rows.plans.blocks[0]
    theta = np.random.default_rng(seed).random(plan.tree.family_start[-1])
    psi = evidence.cluster_tables(plan.tree, theta)
    counts = plan.constant.copy()
    kernels.calibrate(psi, *plan.jobs, plan.job_weights, counts)
    ours = best_of(lambda: kernels.calibrate(psi, *plan.jobs, plan.job_weights, counts), 20)
    peer = best_of(lambda: interpreted(psi, plan, counts), 2)
    what = "expectation step, alarm, 100 rows, 20% missing"
    return {"what": what, "ours": ours, "aim": np.nan, "peer": peer, "ratio": peer / ours, "by": "plain Python twin"}


def interpreted(psi, plan, counts):
    compiled = kernels._collect, kernels._distribute
    kernels._collect, kernels._distribute = (function.py_func for function in compiled)
    try:
        return kernels.calibrate.py_func(psi, *plan.jobs, plan.job_weights, counts)
    finally:
        kernels._collect, kernels._distribute = compiled


if __name__ == "__main__":
    run(main)
