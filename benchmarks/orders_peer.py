"""The peer sumu 0.1.2 on child's first 12 columns, every DAG once, against the exact sums: error of an arc by CPU time.

sumu's Gadget wants an older numpy and Cython, so it runs in a separate environment: ``python3.9 -m venv peer``, then in it
``pip install "numpy<1.24" "setuptools<65" "Cython<3" wheel`` and ``pip install --no-build-isolation sumu==0.1.2``; name its Python
with --python. Both have BDeu with a total of 10, sumu's prior of parent sets (ours: "friedman_koller"; single scores agree to
1e-11), at most three parents, and all 11 others as candidates. sumu has 16 tempered chains (its MC3), half of the iterations are
burn-in, a DAG is drawn from every tenth partition; a start whose sums are NaN is drawn again. Ours are four chains of Gibbs moves
over layers with reversals. CPU time of scores and chains, compiled before.

sumu takes its sums by differences, which lose all digits where scores lie far apart: `nan_sums` and `wrong_sums` are shares of the
sums of nodes in random partitions that are NaN, or differ by more than .001 from the sum over its own table of scores, `most_wrong`
the largest such difference. A run with wrong sums is a run over another distribution: no comparison.
"""

import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from pgm_bma.orders.chains import gibbs
from pgm_bma.orders.chains.gibbs import prepare_lists
from pgm_bma.orders.families.family_table import family_table, prune_table
from pgm_bma.orders.structure_average import WEIGHTINGS
from pgm_bma.orders.sums import exact_dags

from ._common import Skip, parser, print_table, run, save_csv
from .orders_convergence import data

SCORING = {"equivalent_sample_size": 10.0, "structure_prior": "friedman_koller"}
N_COLUMNS = 12
SWEEPS = (128, 512)
ITERATIONS = (2000, 10_000)
PEER = """
import sys, time
import numpy as np
from sumu import gadget
from sumu.gadget import Data, Gadget


class Finite(gadget.PartitionMCMC):
    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        while not np.isfinite(self.R_score):
            super().__init__(*given, **more)


def sums(sampler, n, n_partitions=40):
    # of nodes in random partitions: as the sampler takes them, and over its table of scores
    chain, found = sampler.mcmc.chains[-1], []
    for _ in range(n_partitions):
        partition = chain._random_partition()
        layer = {v: k for k, part in enumerate(partition) for v in part}
        for v, theirs in enumerate(chain._pi(partition)):
            held = [[layer[u] for k, u in enumerate(sampler.C[v]) if b >> k & 1] for b in range(2 ** (n - 1))]
            tops = [max(some, default=-1) for some in held]
            found.append((theirs, np.logaddexp.reduce(sampler.score_array[v][np.array(tops) == layer[v] - 1])))
    return np.array(found).T


gadget.PartitionMCMC = Finite
table, seed, iterations, chains, out = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
codes = np.load(table).astype(np.int32)
n = codes.shape[1]
np.random.seed(seed)
began = time.process_time()
sampler = Gadget(
    data=Data(codes), scoref="bdeu", ess=10, max_id=3, K=n - 1, d=3, cp_algo="top", mc3_chains=chains,
    burn_in=iterations // 2, iterations=iterations // 2, thinning=10, tolerance=2**-32,
)
dags, _ = sampler.sample()
seconds = time.process_time() - began
arcs = np.zeros((n, n))
for dag in dags:
    for family in dag:
        for parent in family[1] if len(family) > 1 else ():
            arcs[parent, family[0]] += 1 / len(dags)
np.savez(out, arcs=arcs, seconds=seconds, sums=sums(sampler, n))
"""


def main(argv=None):
    reader = parser(__doc__)
    reader.add_argument("--python", type=Path, help="Python of the environment that has sumu")
    reader.add_argument("--runs", type=int, default=4, help="runs of every length")
    reader.add_argument("--rows", type=int, nargs="+", default=[100, 1000], help="rows of the table")
    options = reader.parse_args(argv)
    if options.python is None:
        raise Skip("no environment with sumu: pass --python (see --help)")
    rows = []
    for n_rows in options.rows:
        rows += compare(n_rows, options)
        print_table(rows, "child's first 12 columns, every DAG once, against the exact sums", 3)
        save_csv(rows, "orders_peer", options.out)


def compare(n_rows, options):
    """Lines of both samplers on the first rows; states that do not occur there are no states to the peer, so neither to us."""
    codes, _, _ = data("child", 1000, options.seed)
    codes = np.column_stack([np.unique(column, return_inverse=True)[1] for column in codes[:n_rows, :N_COLUMNS].T])
    cards = codes.max(0) + 1
    exact = exact_dags.edge_posterior(exact_dags.sum_over_dags(family_table(codes, cards, **SCORING)))
    ours(codes, cards, 8, 0)  # compiled before the clock runs
    rows = []
    for n_sweeps in SWEEPS:
        runs = [ours(codes, cards, n_sweeps, seed) for seed in range(options.runs)]
        rows.append(line(n_rows, "this package, four chains", f"{n_sweeps} sweeps", runs, exact))
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "codes.npy", codes)
        for iterations in ITERATIONS:
            runs = [peer(options.python, Path(folder), seed, iterations) for seed in range(options.runs)]
            rows.append(line(n_rows, "sumu 0.1.2, 16 tempered chains", f"{iterations} iterations", runs, exact))
    return rows


def ours(codes, cards, n_sweeps, seed):
    """(arcs, CPU seconds)"""
    began, kind = time.process_time(), WEIGHTINGS["dag"]
    lists = prepare_lists(prune_table(family_table(codes, cards, **SCORING)))
    rngs = [np.random.default_rng([seed, k]) for k in range(4)]
    starts = [kind.start(len(cards), rng, ()) for rng in rngs]
    found = gibbs.run_gibbs(kind.gibbs, lists, starts, rngs, max_sweeps=n_sweeps, tol=1e-12, n_temperatures=1)
    return found.chains.means.mean(0), time.process_time() - began, None


def peer(python, folder, seed, iterations):
    """(arcs, CPU seconds, sums of nodes: theirs, over their table)"""
    (folder / "peer.py").write_text(PEER)
    words = [folder / "codes.npy", seed, iterations, 16, folder / "out.npz"]
    subprocess.run([python, folder / "peer.py", *map(str, words)], check=True, capture_output=True)
    found = np.load(folder / "out.npz")
    return found["arcs"], float(found["seconds"]), found["sums"]


def line(n_rows, method, length, runs, exact):
    errors = [np.abs(arcs - exact).max() for arcs, _, _ in runs]
    found = {
        "rows": n_rows,
        "method": method,
        "length": length,
        "runs": len(runs),
        "cpu_s": np.median([seconds for _, seconds, _ in runs]),
        "median_error": np.median(errors),
        "largest_error": max(errors),
    }
    if runs[0][2] is None:
        return found
    theirs, true = np.concatenate([sums for *_, sums in runs], axis=1)
    apart = np.abs(theirs - true)[~np.isnan(theirs)]
    wrong = {"nan_sums": np.isnan(theirs).mean(), "wrong_sums": (apart > 1e-3).mean(), "most_wrong": apart.max()}
    return {**found, **wrong}


if __name__ == "__main__":
    run(main)
