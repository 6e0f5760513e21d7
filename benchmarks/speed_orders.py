"""Averaging over orders: family scores, swaps per second, drift, quality per second, exact sums, prediction; against sumu.

All times are CPU seconds of one thread.
"""

import time

import numpy as np
from scipy.special import logsumexp

from pgm_bma import load_network, simulate
from pgm_bma.foundation.numbers.families import family_counts, log_marginal_likelihood
from pgm_bma.foundation.tables.table import encode
from pgm_bma.orders.chains import order_mcmc
from pgm_bma.orders.chains._swap_kernels import run_swaps, score_order
from pgm_bma.orders.families.arcs import random_order
from pgm_bma.orders.families.family_table import family_table, parent_sets
from pgm_bma.orders.structure_average import LOST_MASS, WEIGHTINGS, state_edges
from pgm_bma.orders.sums import exact_dags, exact_orders, fixed_order

from . import _sumu
from ._common import Skip, parser, print_table, run, save_csv

SAMPLE_SIZE = 10.0
N_CANDIDATES = 10


def main(argv=None):
    options = parser(__doc__)
    options.add_argument(
        "--seconds", type=float, default=2.0, help="our time in the quality race; sumu gets five times it"
    )
    options = options.parse_args(argv)
    codes, cards = table("alarm", 1000, options.seed)
    rows = []
    for part in (scoring, swaps, drift, quality, arc_error, exact, prediction):
        found = []
        try:
            for line in part(codes, cards, options):
                found.append(line)
        except Skip as reason:
            found.append({"what": part.__doc__, "note": f"skipped: {reason}"})
        print_table(found, part.__name__, 4)
        rows += found
    save_csv(rows, "speed_orders", options.out)


def cpu_seconds(function, repeats):
    """Smallest CPU time of several calls: everything here runs in one thread, and other work on the machine is not counted."""
    best = np.inf
    for _ in range(repeats):
        start = time.thread_time()
        function()
        best = min(best, time.thread_time() - start)
    return best


def table(network, n_rows, seed):
    read = encode(simulate(load_network(network), n_rows, random_state=seed))
    return np.ascontiguousarray(read.codes, dtype=np.int64), read.schema.cardinalities


def scoring(codes, cards, options):
    """All families of alarm up to in-degree 3, BDeu and K2, against sumu's scorer and a plain numpy loop."""
    codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in codes.T])
    cards = codes.max(0) + 1  # sumu knows only the states that occur
    bdeu = {"equivalent_sample_size": SAMPLE_SIZE, "structure_prior": "friedman_koller"}
    scored = family_table(codes, cards, **bdeu)
    seconds_k2 = cpu_seconds(lambda: family_table(codes, cards), 15)
    ours = cpu_seconds(lambda: family_table(codes, cards, **bdeu), 15)
    sets = [[np.array(z, dtype=np.int64) for z in parent_sets(scored, child)] for child in range(len(cards))]
    some = [(child, tuple(z)) for child in range(0, len(cards), 6) for z in sets[child][::40]]
    start = time.thread_time()
    for child, z in some:
        counts = family_counts(codes, cards, child, z)
        log_marginal_likelihood(counts, SAMPLE_SIZE / counts.size)
    plain = (time.thread_time() - start) / len(some) * scored.offsets[-1]
    n = int(scored.offsets[-1])
    yield {"what": f"score {n} families, K2, N=1000", "seconds": seconds_k2}
    yield {
        "what": f"score {n} families, BDeu: plain numpy twin (extrapolated)",
        "seconds": plain,
        "ratio": plain / ours,
    }
    scorer = _sumu.local_score(codes, 3, SAMPLE_SIZE)
    start = time.thread_time()
    theirs = _sumu.score_all(scorer, sets)
    seconds = time.thread_time() - start
    difference = max(
        np.abs(np.array(node) - scored.log_marginal[scored.offsets[child] : scored.offsets[child + 1]]).max()
        for child, node in enumerate(theirs)
    )
    ours = min(ours, cpu_seconds(lambda: family_table(codes, cards, **bdeu), 15))
    yield {
        "what": f"score {n} families, BDeu, ours against sumu's scorer",
        "seconds": ours,
        "peer_seconds": seconds,
        "ratio": seconds / ours,
        "aim": 50,
        "note": f"largest difference of a score {difference:.1e}",
    }


def swaps(codes, cards, options, n_steps=50_000):
    """Swap proposals per second on all families, layered moves per second, against sumu's iterations."""
    empty = np.zeros((0, len(cards)), dtype=np.int64), np.zeros(0)
    chain = None
    try:
        chain = _sumu.partition_chain(codes, best_candidates(codes, cards, N_CANDIDATES), 3, SAMPLE_SIZE, options.seed)
        _sumu.walk(chain, 1.0)
    except Skip as reason:
        print(f"no peer: {reason}")
    for n_rows in (100, 1000):
        families = order_mcmc.prepare(family_table(codes[:n_rows], cards))
        rng = np.random.default_rng(options.seed)
        order = rng.permutation(len(cards))
        run_swaps(rng, order, families, 20_000, 1, 0, 1, *empty)
        speeds, theirs = [], []
        for _ in range(5):
            start = time.thread_time()
            run_swaps(rng, order, families, n_steps, 1, 0, 1, *empty)
            speeds.append(n_steps / (time.thread_time() - start))
            if chain is not None:
                theirs.append(_sumu.walk(chain, 0.5)[0] / 0.5)
        line = {"what": f"swaps per second, alarm, in-degree 3, N={n_rows}", "per_second": max(speeds), "aim": 60_000}
        if theirs:
            line |= {
                "peer_per_second": max(theirs),
                "ratio": max(speeds) / max(theirs),
                "note": f"sumu: PartitionMCMC, {N_CANDIDATES} candidates per node, N=1000",
            }
        yield line
        start = time.thread_time()
        for _ in range(200):
            order_mcmc.order_log_score(families, order)
        full = 200 / (time.thread_time() - start)
        yield {"what": f"full rescorings per second, N={n_rows} (the kernel's plain twin)", "per_second": full}


def drift(codes, cards, options):
    """A million swaps on 1000 rows of alarm: the incremental score against a full rescoring."""
    families = order_mcmc.prepare(family_table(codes, cards))
    rng = np.random.default_rng(options.seed)
    order = rng.permutation(len(cards))
    empty = np.zeros((0, len(cards)), dtype=np.int64), np.zeros(0)
    logs = np.zeros(len(cards))
    accepted, score, *_ = run_swaps(rng, order, families, 1_000_000, 1, 0, 1, *empty)
    full = score_order(order, families, np.zeros(len(cards)), logs)
    yield {
        "what": "drift after 1,000,000 swaps, N=1000",
        "error": abs(score - full),
        "aim": 1e-9,
        "note": f"{accepted} accepted; sums down to exp({(logs - families.tops).min():.0f}) of the best set",
    }


def quality(codes, cards, options):
    """Best DAG score within 2 s against sumu's within 10 s, same candidates, in-degree and scorer."""
    candidates = best_candidates(codes, cards, N_CANDIDATES)
    bdeu = {"equivalent_sample_size": SAMPLE_SIZE, "structure_prior": "friedman_koller"}
    forbidden = [(p, c) for c in range(len(cards)) for p in range(len(cards)) if p != c and p not in candidates[c]]
    scored = family_table(codes, cards, forbidden=forbidden, **bdeu)
    n_seeds = 5 if options.full else 3
    ours, theirs = [], []
    for seed in range(n_seeds):
        start = time.thread_time()
        families = order_mcmc.prepare(family_table(codes, cards, forbidden=forbidden, **bdeu))
        rng = np.random.default_rng(seed)
        order, best, states = random_order(len(cards), rng), -np.inf, []
        empty = np.zeros((0, len(cards)), dtype=np.int64), np.zeros(0)
        while time.thread_time() - start < options.seconds:
            _, _, score, state = run_swaps(rng, order, families, 10_000, 1, 0, 1, *empty)
            if score > best:
                best, states = score, [*states, state]
        found = fixed_order.order_masks(np.array(states))
        ours.append(max(fixed_order.best_parents(scored, before)[1] for before in found))
        chain = _sumu.partition_chain(codes, candidates, 3, SAMPLE_SIZE, seed)
        _, partitions = _sumu.walk(chain, 5 * options.seconds)
        theirs.append(max(best_of_partition(scored, partition) for partition in partitions[-50:]))
    yield {
        "what": f"best BDeu DAG score on alarm N=1000, median of {n_seeds} seeds: ours in {options.seconds:g} s, sumu in 5 x that",
        "score": np.median(ours),
        "peer_score": np.median(theirs),
        "aim": "score >= peer",
        "note": f"ours {np.round(ours, 1).tolist()}, sumu {np.round(theirs, 1).tolist()}; sumu's is the best DAG of its partitions",
    }


def best_of_partition(scored, partition):
    layers = np.empty(len(scored.cardinalities), dtype=np.int64)
    for level, nodes in enumerate(partition):
        layers[list(nodes)] = level
    return fixed_order.best_parents(scored, fixed_order.layer_masks(layers[None])[0][0])[1]


def best_candidates(codes, cards, k):
    """(n, k) the parents with the best scores alone, ascending."""
    scored = family_table(codes, cards, max_indegree=1, equivalent_sample_size=SAMPLE_SIZE)
    alone = [scored.log_marginal[a + 1 : b] for a, b in zip(scored.offsets, scored.offsets[1:])]
    chosen = [np.sort(np.argsort(-scores, kind="stable")[:k]) for scores in alone]
    return np.array([row[some] for row, some in zip(scored.candidates, chosen)])


def arc_error(codes, cards, options):
    """Sampled arcs of a 20-variable network against the exact ones, by effective sample size."""
    from arviz_stats.base import array_stats

    child, child_cards = table("child", 500, options.seed)
    scored = family_table(child, child_cards)
    families = order_mcmc.prepare(scored)
    exact_edges = exact_orders.edge_posterior(exact_orders.sum_over_orders(scored))
    n_chains, n_repeats = 4, 4
    for n_kept in (100, 400, 1600):
        squares, expected, sizes = [], [], []
        for repeat in range(n_repeats):
            rngs = [np.random.default_rng([options.seed, repeat, k]) for k in range(n_chains)]
            starts = [random_order(20, rng) for rng in rngs]
            run = order_mcmc.sample_orders(families, starts, rngs, n_kept=n_kept, burn_in=20_000, thin=50)
            edges = state_edges(scored, WEIGHTINGS["order"], run.states.reshape(-1, 20)).reshape(
                n_chains, n_kept, 20, 20
            )
            moving = edges.std((0, 1)) > 0.01
            values = edges[:, :, moving]
            size = array_stats.ess(values, chain_axis=0, draw_axis=1)
            squares.append(((values.mean((0, 1)) - exact_edges[moving]) ** 2).mean())
            expected.append((values.var((0, 1)) / size).mean())
            sizes.append(size.mean())
        error = np.sqrt(np.mean(squares))
        yield {
            "what": f"arc error, child N=500, {n_chains} chains x {n_kept} orders, every 50th swap, {n_repeats} repeats",
            "error": error,
            "expected": np.sqrt(np.mean(expected)),
            "ratio": error / np.sqrt(np.mean(expected)),
            "note": f"mean effective size {np.mean(sizes):.0f}, error x sqrt(size) {error * np.sqrt(np.mean(sizes)):.3f}",
        }


def exact(codes, cards, options):
    """Sums over all orders and all DAGs."""
    for n, aim in ((16, 0.5), (20, 5.0)):
        scored = family_table(codes[:, :n], cards[:n])
        seconds = cpu_seconds(lambda s=scored: exact_orders.edge_posterior(exact_orders.sum_over_orders(s)), 3)
        yield {"what": f"all arcs over all orders, n={n}", "seconds": seconds, "aim": aim}
    scored = family_table(codes[:, :12], cards[:12])
    seconds = cpu_seconds(lambda: exact_dags.edge_posterior(exact_dags.sum_over_dags(scored)), 2)
    yield {"what": "all arcs, every DAG once, n=12", "seconds": seconds}


def prediction(codes, cards, options):
    """3000 rows x 30 orders x 2 classes at N=100; pruned against unpruned."""
    test, _ = table("alarm", 3000, options.seed + 1)
    train = codes[:100]
    scored = family_table(train, cards)
    training = fixed_order.Training(np.asfortranarray(train, dtype=np.int32), np.ones(100), cards, 1.0, None)
    rng = np.random.default_rng(options.seed)
    start = [random_order(len(cards), rng)]
    run = order_mcmc.sample_orders(order_mcmc.prepare(scored), start, [rng], n_kept=30, burn_in=10_000, thin=500)
    before = fixed_order.order_masks(run.states[0])
    target = int(np.flatnonzero(cards == 2)[0])

    def predict(lost_mass):
        mix = fixed_order.mixture(scored, training, before, lost_mass=lost_mass)
        joint = logsumexp(fixed_order.log_joints(mix, test, target, 2), axis=0)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    pruned, whole = predict(LOST_MASS), predict(0.0)
    seconds = cpu_seconds(lambda: predict(LOST_MASS), 3)
    yield {
        "what": "predict 3000 rows x 30 orders x 2 classes, alarm N=100, weights of the sets included",
        "seconds": seconds,
        "aim": 5.0,
        "error": np.abs(pruned - whole).max(),
        "note": "error: largest change of a probability by dropping sets (aim 1e-4)",
    }


if __name__ == "__main__":
    run(main)
