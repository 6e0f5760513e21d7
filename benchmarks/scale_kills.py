"""Every method in passes while a worker is killed: the bits are those of the fit from files.

Two workers on this machine, 900 rows in three parts (blocks of 97 rows, so that there are sums to lose). Half-way through the
passes of the fit, counted in a first run, one worker is ended by ``kill -9`` inside a block; dask starts another and makes up for
what was lost. Kept for every method: the passes, the one in which the worker died, and whether all predictions have equal bits.
Lines of other methods in the kept file stay.
"""

import os
import signal
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma.foundation.rows import blocks
from pgm_bma.foundation.rows.dask_scan import local_workers

from ._common import need, parser, print_table, run, save_csv

BLOCK_ROWS, N_PARTS = 97, 3
METHODS = {
    "naive Bayes": pgm_bma.NaiveBayesClassifier,
    "averaged naive Bayes": pgm_bma.AveragedNaiveBayesClassifier,
    "TAN": pgm_bma.TANClassifier,
    "forest classifier": lambda: pgm_bma.ForestAveragedClassifier(random_state=0),
    "Kikuchi, counting": lambda: pgm_bma.KikuchiBayesClassifier(weights="counting", random_state=0),
    "Kikuchi, learned": lambda: pgm_bma.KikuchiBayesClassifier(ridge=5.0, random_state=0),
    "fixed order": lambda: pgm_bma.FixedOrderClassifier(random_state=0),
    "orders": lambda: pgm_bma.OrderAveragedClassifier(max_indegree=2, random_state=0),
    "EM": lambda: pgm_bma.LatentClassClusterer(2, n_init=2, random_state=0),
    "EMA, linear": lambda: pgm_bma.EMAClusterer(2, averaging="linear", n_init=2, random_state=0),
    "EMA, variational": lambda: pgm_bma.EMAClusterer(2, n_init=2, random_state=0),
    "structural EM": lambda: pgm_bma.StructuralEMClusterer(2, n_init=1, random_state=0),
    "forest clusters": lambda: pgm_bma.ForestAveragedClusterer(2, n_init=1, random_state=0),
    "network EM": None,
}


def main(argv=None):
    arguments = parser(__doc__)
    arguments.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS), help="default: all")
    options = arguments.parse_args(argv)
    need("distributed", "pip install 'pgm_bma[dask]'")
    frames = need("dask.dataframe")
    warnings.simplefilter("ignore")
    told = []
    with tempfile.TemporaryDirectory() as folder, local_workers(2, "1.5GB") as client:
        set_block_rows()
        client.register_plugin(small_blocks())
        table = generate(options.seed)
        paths, watch = [str(Path(folder) / f"part-{i}.parquet") for i in range(N_PARTS)], Watch()
        for path, part in zip(paths, np.array_split(np.arange(len(table)), N_PARTS)):
            table.iloc[part].to_parquet(path, index=False)
        for name in options.methods:
            settings = {"memory": 1000, "sample_rows": None}
            want = fitted(name, pgm_bma.scan_parquet(paths, **settings), table)
            partitions = pgm_bma.scan_table(frames.from_map(pd.read_parquet, paths), **settings)
            n_passes = watch.passes_of(fitted, name, partitions, table)
            number = n_passes // 2 + 1
            watch.kill(number, Path(folder) / f"died {name}")
            began = time.perf_counter()
            got = fitted(name, partitions, table)
            died = int(watch.mark.read_text())
            row = {"method": name, "passes": n_passes, "killed in pass": number, "equal bits": got == want}
            row |= {"worker is gone": died not in client.run(os.getpid).values()}
            told.append({**row, "wall s": time.perf_counter() - began})
            save_csv(told, "scale_kills", options.out, ["method"])  # after every method
    print_table(told, "a worker killed with -9 in the middle")


def fitted(name, scan, table):
    """Bits of what a method predicts for all rows, after a fit on a scan of them."""
    if METHODS[name] is None:
        from pgmpy.models import DiscreteBayesianNetwork

        arcs = [("h", "c0"), ("c0", "c1"), ("h", "c1"), ("c1", "class"), ("h", "c2"), ("h", "c3")]
        model = DiscreteBayesianNetwork(arcs, latents={"h"})
        estimator = pgm_bma.EMEstimator(latent_card={"h": 2}, n_init=1, max_iter=20, seed=0, show_progress=False)
        found = estimator.fit(model, scan)
        return b"".join(cpd.values.tobytes() for cpd in found.parameters_), found.log_likelihood_
    estimator, target = METHODS[name](), "class"
    if hasattr(estimator, "n_clusters"):
        found = estimator.fit(scan)
        return found.predict_proba(table).tobytes(), found.log_likelihood_
    return estimator.fit(scan, target).predict_proba(table.drop(columns=target)).tobytes()


class Watch:
    """Counts the passes that a cluster sums, and lets a worker die in one of them."""

    def __init__(self):
        self.n_passes, self.number, self.mark = 0, None, None
        real = blocks.ClusterRows.sums

        def sums(rows, f, *args):
            self.n_passes += 1
            if self.n_passes == self.number:
                return real(rows, die_once, str(self.mark), f, args)
            return real(rows, f, *args)

        blocks.ClusterRows.sums = sums

    def passes_of(self, fit, *args):
        self.n_passes, self.number = 0, None
        fit(*args)
        return self.n_passes

    def kill(self, number, mark):
        self.n_passes, self.number, self.mark = 0, number, mark


def die_once(block, mark, f, args):
    """Kill the worker in the middle of a pass, the first time."""
    try:
        with open(mark, "x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return f(block, *args)
    os.kill(os.getpid(), signal.SIGKILL)


def set_block_rows():
    blocks.BLOCK_ROWS = BLOCK_ROWS


def small_blocks():
    """A plugin, so that workers which come later have small blocks too."""
    from distributed import WorkerPlugin

    class SmallBlocks(WorkerPlugin):
        def setup(self, worker):
            set_block_rows()

    return SmallBlocks()


def generate(seed):
    """Two groups, four columns of texts, and a class."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, 900)
    shares = rng.dirichlet(np.ones(3), size=(4, 2)).cumsum(axis=2)
    codes = [(rng.random(900)[:, None] > shares[i][group][:, :-1]).sum(axis=1) for i in range(4)]
    columns = {f"c{i}": np.array(["a", "b", "c"])[code] for i, code in enumerate(codes)}
    return pd.DataFrame(
        {**columns, "class": np.array(["no", "yes"])[np.where(rng.random(900) < 0.8, group, 1 - group)]}
    )


if __name__ == "__main__":
    run(main)
