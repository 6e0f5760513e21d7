"""Rows from the alarm network: simulate against pgmpy's own, and the random-DAG chain against plain Python."""

import numpy as np

from pgm_bma import load_network, simulate
from pgm_bma.networks._random_dag_kernels import walk

from ._common import best_of, best_of_each, parser, print_table, run, save_csv


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--network", default="alarm")
    arguments.add_argument(
        "--rows", type=int, nargs="+", default=None, help="default 10000; with --full 1000 to 1000000"
    )
    arguments.add_argument("--repeats", type=int, default=10)
    options = arguments.parse_args(argv)
    sizes = options.rows or ([1000, 10_000, 100_000, 1_000_000] if options.full else [10_000])
    model = load_network(options.network)
    simulate(model, 10)
    rows = [compare(model, n, options) for n in sizes]
    print_table(
        rows,
        f"{options.network}: seconds, best of {options.repeats}; the aim is a ratio of at least 80 at 10000 rows",
        4,
    )
    save_csv(rows, "speed_simulate", options.out)
    chain = [compare_chain(n_nodes, bound, options) for n_nodes, bound in [(10, 2), (20, 3), (40, 3)]]
    print_table(chain, "random DAG chain: microseconds per step", 2)
    save_csv(chain, "speed_random_dag", options.out)


def compare(model, n, options):
    seconds = best_of_each(
        {
            "pgm_bma": lambda: simulate(model, n, options.seed),
            "pgmpy": lambda: model.simulate(n, seed=options.seed, show_progress=False),
        },
        options.repeats if n < 10**6 else 1,
    )
    return {"network": options.network, "rows": n, **seconds, "ratio": seconds["pgmpy"] / seconds["pgm_bma"]}


def compare_chain(n_nodes, bound, options):
    rng, n_steps = np.random.default_rng(options.seed), 4000
    kinds, uniforms = rng.integers(0, 4, n_steps), rng.random(n_steps)
    first, second = rng.integers(0, n_nodes, n_steps), rng.integers(0, n_nodes - 1, n_steps)
    second += second >= first

    def steps(function):
        source, target = np.zeros((2, n_nodes * bound), dtype=np.int64)
        target[: n_nodes - 1] = np.arange(1, n_nodes)  # a star; source is 0 already
        function(source, target, n_nodes - 1, n_nodes, bound, True, kinds, uniforms, first, second)

    steps(walk)
    compiled = best_of(lambda: steps(walk), 10)
    plain = best_of(lambda: steps(walk.py_func), 2)
    scale = 1e6 / n_steps
    return {
        "nodes": n_nodes,
        "max_indegree": bound,
        "compiled": compiled * scale,
        "plain": plain * scale,
        "ratio": plain / compiled,
    }


if __name__ == "__main__":
    run(main)
