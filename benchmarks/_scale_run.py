"""One way of `scale_tables` in a separate process: ``python _scale_run.py WAY FILES MEMORY WORKERS`` prints figures as JSON."""

import json
import resource
import sys
import time
import warnings

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma.foundation.rows.blocks import Block, MemoryRows, Profile
from pgm_bma.latent_class import base, loop
from pgm_bma.latent_class.problem import expect_block, make_problem


def main(way, files, memory, workers):
    warnings.simplefilter("ignore")
    screening: list = []
    loop.run_all_starts = timed(loop.run_all_starts, screening)  # on the sample, where starts are screened
    load()
    screening.clear()
    before = peak()
    began = time.perf_counter()
    if way == "orders":
        return {"memory before, MB": before, **orders(files, memory), "peak, MB": peak()}
    if way == "dask":
        found, told = on_dask(files, memory, workers)
    else:
        cpu = time.process_time()
        found = fit(pgm_bma.scan_parquet(files, memory=memory))
        told = {"CPU s": time.process_time() - cpu}
    starts = found.starts_
    return {
        "memory before, MB": before,
        **told,
        "of it screening": sum(screening),
        "wall s": time.perf_counter() - began,
        "peak, MB": peak(),
        "starts on all rows": int((starts["stage"] == 2).sum()),
        "updates on all rows": int(starts.loc[starts["stage"] == 2, "n_iter"].sum()),
        "log-likelihood a row": found.log_likelihood_ / found.n_samples_,
    }


def load():
    """Compiled code, as far as it is needed; of passes too."""
    some = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (500, 4)))
    problem = fit(some)
    codes, tables = some.to_numpy().astype(np.int8, order="F"), problem._result
    rows = MemoryRows(Profile(problem.schema_, 500, 500.0, np.ones(8), np.zeros(4, dtype=bool)), [Block(codes, None)])
    make_problem(rows, len(tables.theta_c)).expected_counts(tables.theta_c, tables.theta)


def fit(X):
    return pgm_bma.EMAClusterer(4, n_init=30, random_state=0).fit(X)


def orders(files, memory):
    """CPU seconds of an exact average over orders of all columns, and of counting its families."""
    from pgm_bma.orders.families import counted

    counting: list = []
    some = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (500, 4)))
    pgm_bma.OrderPosterior(random_state=0).fit(some)
    counted.count_rows = timed(counted.count_rows, counting)
    cpu, began = time.process_time(), time.perf_counter()
    pgm_bma.OrderPosterior(random_state=0).fit(pgm_bma.scan_parquet(files, memory=memory))
    told = {"CPU s": time.process_time() - cpu, "wall s": time.perf_counter() - began}
    return {**told, "of it counting": sum(counting)}


def timed(run, seconds):
    def counted(*args):
        began = time.process_time()
        found = run(*args)
        seconds.append(time.process_time() - began)
        return found

    return counted


def peak():
    """Largest resident memory of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def on_dask(files, memory, workers):
    """(estimator, figures): CPU seconds of the client with the scheduler, of the workers by step, and of the kernel alone."""
    import dask.dataframe as dd

    from pgm_bma.foundation.rows.dask_scan import local_workers

    with local_workers(workers, memory) as client:
        client.run(load)
        used = Used(client)
        cpu, before = time.process_time(), used.now()
        found = fit(pgm_bma.scan_table(dd.read_parquet(files, split_row_groups=True), memory="100MB"))
        told = {"CPU s": time.process_time() - cpu, "worker CPU s": used.now() - before}
        ends = [before, used.at["states"], used.at["codes"], used.now()]
        told.update({f"of it {word}": b - a for word, a, b in zip(("states", "codes", "passes"), ends, ends[1:])})
        told["worker peak, MB"] = max(client.run(peak).values())
        told["plain kernel CPU s"] = plain(used.passes, used.rows, client, at_once=True)
        told["one worker at a time"] = plain(used.passes, used.rows, client, at_once=False)
        n_bytes, n_rows = map(sum, zip(*used.rows.collect(size)))
        told["bytes a row"] = n_bytes / n_rows
    return found, told


class Used:
    """CPU seconds that the workers had used at the end of each step; the passes with their arguments, and their rows."""

    def __init__(self, client):
        from pgm_bma.foundation.rows import blocks as rows
        from pgm_bma.foundation.rows.blocks import scanned_rows as scan_rows

        self.client, self.at, self.passes, self.rows = client, {}, [], None
        self._at_end(scan_rows, "find_profile", "states")
        self._at_end(base, "sample_codes", "codes")  # waits until all blocks are there
        real = rows.ClusterRows.reduce

        def reduce(rows, f, *args):
            if f is expect_block:
                self.passes.append(args)
                self.rows = rows
            return real(rows, f, *args)

        rows.ClusterRows.reduce = reduce

    def now(self):
        return sum(self.client.run(time.process_time).values())

    def _at_end(self, owner, name, word):
        real = getattr(owner, name)

        def told(*args):
            found = real(*args)
            self.at[word] = self.now()
            return found

        setattr(owner, name, told)


def plain(seen, rows, client, at_once):
    """CPU seconds of the kernel alone for the same passes: every worker goes through its own blocks in a plain loop, in one
    thread. All of them at once (as in the passes: two busy cores share their way to memory), or one after the other.

    Every fourth pass is gone through: they cost the same for each start.
    """
    where = {key: places[0] for key, places in client.who_has(rows.shards).items()}
    kept = {worker: [shard for shard in rows.shards if where[shard.key] == worker] for worker in set(where.values())}
    some, run = seen[::4], rows.dask.delayed(kernel_alone, pure=False)
    tasks = [(run(shards, some), worker) for worker, shards in kept.items()]
    futures, used = [], 0.0
    for task, worker in tasks:
        futures.append(client.compute(task, workers=[worker]))
        if not at_once:
            used += futures.pop().result()
    used += sum(client.gather(futures))
    n_starts, n_some = (sum(len(tables[0]) for _, *tables in passed) for passed in (seen, some))
    return used * n_starts / n_some


def kernel_alone(shards, seen):
    """CPU seconds of this thread."""
    blocks = [block for shard in shards for block in shard]
    began = time.thread_time()
    for layout, *tables in seen:
        for block in blocks:
            expect_block(block, layout, *tables)
    return time.thread_time() - began


def size(block):
    """(bytes, rows) of a block."""
    return sum(0 if array is None else array.nbytes for array in block), len(block.codes[0])


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:4], int(sys.argv[4]))))
