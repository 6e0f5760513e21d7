"""Latent-class EM and EMA: time of an iteration against plain numpy (and stepmix), its growth, memory, and wide data.

Everything runs on one thread except the last line. Plain numpy is the usual way: a one-hot matrix, two matrix products and
a log-sum-exp per iteration.
"""

import time
import tracemalloc
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.latent_class import _kernels as kernels
from pgm_bma.latent_class.loop import advance, draw_starts, fit_latent_class
from pgm_bma.latent_class.problem import make_problem

from ._common import Skip, best_of, need, parser, print_table, run, save_csv

TALL = (10_000, 20, 2, 4)  # rows, columns, states, clusters
SMALL = (1000, 10, 3, 3)
WIDE = (72, 7129, 2, 2)


def main(argv=None):
    options = parser(__doc__)
    options.add_argument("--repeats", type=int, default=25, help="the best of so many short timings counts")
    chosen = options.parse_args(argv)
    with threadpool_limits(1):
        lines = [*against_numpy(chosen), *averaging_cost(chosen), *numbers_cost(chosen), *against_stepmix(chosen)]
    lines += wide_run(chosen)
    print_table(lines, "ratios and times, with what is asked for", digits=4)
    curve = growth(chosen)
    print_table(curve, "seconds per EM iteration as the table grows; nanoseconds per row, column and cluster", digits=4)
    footprint = memory(chosen)
    print_table(footprint, "peak memory against codes + responsibilities (asked: 3)", digits=2)
    save_csv(lines + curve + footprint, "speed_latent_class", chosen.out)


def against_numpy(chosen):
    """One EM iteration, ours over numpy's."""
    lines = []
    for (n_rows, n_columns, n_states, n_clusters), n_starts, wanted in ((TALL, 1, 0.35), (SMALL, 30, 0.5)):
        codes = table(n_rows, n_columns, n_states, chosen.seed)
        plain = numpy_iteration(codes, n_states, n_clusters)
        plain()
        ratios = []
        for _ in range(3):  # the two take turns, so that a busy spell hits both
            theirs = best_of(plain, chosen.repeats)
            n_updates = 4 if n_starts == 1 else 1  # short runs: on a busy machine a long one is always interrupted
            ours = iteration_time(codes, n_states, n_clusters, None, n_starts, chosen.repeats, n_updates)
            ratios.append((ours / theirs, ours, theirs))
        ratio, ours, theirs = min(ratios)
        name = f"EM iteration {n_rows} x {n_columns} x {n_states} states, {n_clusters} clusters, {n_starts} starts, per start"
        lines.append(
            {"what": name, "ours (ms)": ours * 1e3, "other (ms)": theirs * 1e3, "ratio": ratio, "asked": wanted}
        )
    return lines


def averaging_cost(chosen):
    """EMA's iteration (and variational EMA's) over EM's."""
    lines = []
    for (n_rows, n_columns, n_states, n_clusters), wanted in ((TALL, 1.15), (WIDE, 2.5)):
        codes = table(n_rows, n_columns, n_states, chosen.seed)
        for averaging in ("linear", "variational"):
            ratios = []
            for _ in range(3):
                em = iteration_time(codes, n_states, n_clusters, None, 1, chosen.repeats)
                other = iteration_time(codes, n_states, n_clusters, averaging, 1, chosen.repeats)
                ratios.append((other / em, other, em))
            ratio, other, em = sorted(ratios)[1]  # the middle one: the smallest would flatter
            name = f"EMA ({averaging}) over EM, {n_rows} x {n_columns}, {n_clusters} clusters"
            asked = wanted if averaging == "linear" else np.nan
            lines.append(
                {"what": name, "ours (ms)": other * 1e3, "other (ms)": em * 1e3, "ratio": ratio, "asked": asked}
            )
    return lines


def numbers_cost(chosen):
    """An iteration with 10 columns of numbers and 10 of states over one with 20 of states, and peers on the same rows."""
    n_rows, n_columns, _, n_clusters = TALL
    half, lines = n_columns // 2, []
    numbers = np.random.default_rng(chosen.seed).standard_normal((n_rows, half))
    numbers = (numbers - numbers.mean(0)) / numbers.std(0)
    what = f"{n_rows} x ({half} numbers + {half} of states), {n_clusters} clusters"
    for n_states in (3, 2):  # columns of two states are joined, many to one, so the numbers weigh more beside them
        codes, ratios = table(n_rows, n_columns, n_states, chosen.seed), []
        for _ in range(3):
            plain = iteration_time(codes, n_states, n_clusters, None, 1, chosen.repeats)
            mixed = iteration_time(codes[:, :half], n_states, n_clusters, None, 1, chosen.repeats, numbers=numbers)
            ratios.append((mixed / plain, mixed, plain))
        ratio, mixed, plain = sorted(ratios)[1]
        name = f"{what}, over {n_columns} columns of {n_states} states"
        line = {"what": name, "ours (ms)": mixed * 1e3, "other (ms)": plain * 1e3, "ratio": ratio, "asked": 1.5}
        lines.append(line)
    both = np.column_stack([numbers, codes[:, :half]])
    warnings.filterwarnings("ignore", category=ConvergenceWarning)  # peers are stopped on purpose

    def gaussians(n_iter):
        how = {"covariance_type": "diag", "init_params": "random", "random_state": 0, "tol": 0.0}
        GaussianMixture(n_clusters, max_iter=n_iter, **how).fit(both)

    def mixed_stepmix(n_iter):
        models = {"numbers": "gaussian_diag", "states": "binary"}
        parts = {name: {"model": model, "n_columns": half} for name, model in models.items()}
        how = {"abs_tol": 0, "rel_tol": 0, "random_state": 0, "progress_bar": 0}
        need("stepmix.stepmix").StepMix(n_clusters, measurement=parts, max_iter=n_iter, **how).fit(both)

    peers = {"GaussianMixture (diag, all columns as numbers)": gaussians, "StepMix (mixed)": mixed_stepmix}
    for peer, fit in peers.items():
        try:
            theirs = (cpu_seconds(lambda: fit(22)) - cpu_seconds(lambda: fit(2))) / 20  # noqa: B023
        except Skip as reason:
            print(f"without {peer}: {reason}")
            continue
        line = {"what": f"{what}, over {peer}", "ours (ms)": mixed * 1e3, "other (ms)": theirs * 1e3}
        lines.append(line | {"ratio": mixed / theirs})
    return lines


def cpu_seconds(function, repeats=3):
    """Smallest CPU time of some calls: these are long, so a busy machine would interrupt every one."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def against_stepmix(chosen):
    """One EM iteration of stepmix over the same numpy version, if it is installed."""
    try:
        stepmix = need("stepmix.stepmix")
    except Skip as reason:
        print(f"without stepmix: {reason}")
        return []
    n_rows, n_columns, n_states, n_clusters = TALL
    codes = table(n_rows, n_columns, n_states, chosen.seed)
    warnings.filterwarnings("ignore", category=ConvergenceWarning)  # it is stopped on purpose

    def fit(n_iter):
        model = stepmix.StepMix(
            n_clusters,
            measurement="binary",
            n_init=1,
            max_iter=n_iter,
            abs_tol=0,
            rel_tol=0,
            random_state=0,
            progress_bar=0,
        )
        model.fit(codes.astype(float))

    theirs = (best_of(lambda: fit(22), 3) - best_of(lambda: fit(2), 3)) / 20
    plain = best_of(numpy_iteration(codes, n_states, n_clusters), chosen.repeats)
    name = f"stepmix over numpy, EM iteration {n_rows} x {n_columns}, {n_clusters} clusters"
    return [{"what": name, "ours (ms)": theirs * 1e3, "other (ms)": plain * 1e3, "ratio": theirs / plain}]


def wide_run(chosen):
    """30 starts on a table like the leukemia data, two threads, to tol=1e-4."""
    n_rows, n_columns, n_states, n_clusters = WIDE
    rng = np.random.default_rng(chosen.seed)
    groups = rng.integers(0, n_clusters, n_rows)
    level = 0.1 + 0.4 * rng.random(n_columns) + 0.1 * rng.standard_normal((n_rows, 1))  # rows differ in brightness
    level += 0.15 * (rng.random(n_columns) < 0.03) * groups[:, None]  # few columns know the groups
    codes = (rng.random((n_rows, n_columns)) < level).astype(np.int8)
    lines = []
    for averaging in (None, "linear", "variational"):

        def fit(averaging=averaging):
            return fit_latent_class(
                table_rows(codes, np.full(n_columns, n_states)),
                n_clusters,
                averaging=averaging,
                rng=np.random.default_rng(0),
                n_init=30,
                combine_starts="best",
                tol=1e-4,
                n_jobs=2,
            )

        fitted = fit()
        seconds = best_of(fit, 2)
        name = f"30 starts, {n_rows} x {n_columns}, tol 1e-4, 2 threads, {averaging or 'EM'}: seconds"
        lines.append({"what": name, "ours (ms)": seconds * 1e3, "ratio": seconds, "asked": 20.0})
        print(f"{name} {seconds:.2f} (updates per start: {fitted.starts.n_iter.mean():.0f})", flush=True)
    return lines


def growth(chosen):
    """Cost should be linear in rows, columns and clusters."""
    shapes = [(10_000, 50, 4), (100_000, 50, 4), (1_000_000, 50, 4), (10_000, 20, 4), (10_000, 200, 4)]
    shapes += [(10_000, 50, 2), (10_000, 50, 8), (10_000, 50, 16), (72, 700, 2), (72, 7129, 2)]
    lines = []
    for n_rows, n_columns, n_clusters in shapes:
        codes = table(n_rows, n_columns, 2, chosen.seed)
        seconds = iteration_time(codes, 2, n_clusters, None, 1, 3, n_updates=3)
        each = seconds / (n_rows * n_columns * n_clusters) * 1e9
        lines.append(
            {"rows": n_rows, "columns": n_columns, "clusters": n_clusters, "seconds": seconds, "ns each": each}
        )
    return lines


def memory(chosen):
    """Peaks by tracemalloc (numpy reports to it): the loop over encoded rows, and a whole public fit."""
    from pgm_bma import EMAClusterer

    lines = []
    for n_rows, n_columns, n_clusters in ((1_000_000, 50, 4), (72, 7129, 2)):
        codes = table(n_rows, n_columns, 2, chosen.seed)
        base = codes.nbytes + n_rows * n_clusters * 8
        keywords = {"averaging": "linear", "init": "random", "n_init": 1, "max_iter": 2, "tol": 0}
        for name in ("loop", "whole fit"):
            tracemalloc.start()
            if name == "loop":
                fit_latent_class(table_rows(codes, np.full(n_columns, 2)), n_clusters, **keywords)
            else:
                EMAClusterer(n_clusters, **keywords).fit(codes)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            lines.append(
                {
                    "what": f"memory, {name}",
                    "rows": n_rows,
                    "columns": n_columns,
                    "peak beyond the input (MB)": peak / 1e6,
                    "codes + responsibilities (MB)": base / 1e6,
                    "one set of parameters (MB)": n_columns * 2 * n_clusters * 8 / 1e6,
                    "ratio": peak / base,
                }
            )
    return lines


def table(n_rows, n_columns, n_states, seed):
    rng = np.random.default_rng(seed)
    return np.asfortranarray(rng.integers(0, n_states, (n_rows, n_columns), dtype=np.int8))


def iteration_time(codes, n_states, n_clusters, averaging, n_starts, repeats, n_updates=4, numbers=None):
    """Seconds per iteration and start of the compiled loop; a run of u updates makes u + 1 expectation steps."""
    cardinalities = np.full(codes.shape[1], n_states)
    problem = make_problem(table_rows(codes, cardinalities, None, numbers), n_clusters, None, averaging)
    begin = draw_starts(problem.layout, n_clusters, np.random.default_rng(0).spawn(n_starts))

    n_columns = codes.shape[1] + (0 if numbers is None else numbers.shape[1])
    rules = kernels.StepRules(problem.mode, False, n_updates, 0.0, False)

    def iterate():
        tables = [part.copy() for part in begin]
        arcs, idle = np.empty((n_starts, n_columns)), np.zeros(n_starts, dtype=np.int64)
        advance(problem, (*tables, *(part.copy() for part in tables), arcs, idle), rules)

    iterate()
    return best_of(iterate, repeats) / (n_updates + 1) / n_starts


def numpy_iteration(codes, n_states, n_clusters):
    """One EM iteration in plain numpy on a one-hot matrix."""
    n_columns = codes.shape[1]
    one_hot = np.concatenate([codes[:, [i]] == np.arange(n_states) for i in range(n_columns)], axis=1).astype(float)
    rng = np.random.default_rng(0)
    state = {
        "log_c": np.log(rng.dirichlet(np.ones(n_clusters))),
        "log_theta": np.log(rng.dirichlet(np.ones(n_states), size=(n_columns, n_clusters)))
        .transpose(0, 2, 1)
        .reshape(-1, n_clusters),
    }

    def iterate():
        log_p = one_hot @ state["log_theta"] + state["log_c"]
        top = log_p.max(axis=1, keepdims=True)
        p = np.exp(log_p - top)
        norm = p.sum(axis=1, keepdims=True)
        p /= norm
        state["log_likelihood"] = (top + np.log(norm)).sum()
        sizes = p.sum(axis=0) + 1
        counts = (one_hot.T @ p + 1).reshape(n_columns, n_states, n_clusters)
        state["log_c"] = np.log(sizes / sizes.sum())
        state["log_theta"] = np.log(counts / counts.sum(axis=1, keepdims=True)).reshape(-1, n_clusters)

    return iterate


if __name__ == "__main__":
    run(main)
