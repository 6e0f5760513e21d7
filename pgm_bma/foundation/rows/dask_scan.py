"""Rows of a dask DataFrame: every partition is folded where it lies, and the folded pieces are joined in a tree of tasks."""

from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.rows.pieces import PieceBuilder, join_pieces, pandas_codes
from pgm_bma.foundation.runtime.messages import needed

BATCH = 1 << 16  # rows predicted at once
FAN_IN = 8  # pieces joined by one task
SAMPLED_PARTITIONS = 4


# clocks of dask that serve its dashboard: the defaults keep a client with a scheduler busy for one part in thirty of the time;
# workers look at their memory twice a second instead of ten times, which is most of what an idle one does
QUIET = {
    # a worker that died is started again, which takes time on a busy machine: dask would give it up after 15 seconds, and a fit
    # whose last worker was given up waits for ever
    "distributed.deploy.lost-worker-timeout": "10 minutes",
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.tick.limit": "30s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.worker.memory.monitor-interval": "500ms",
    "distributed.worker.profile.enabled": False,
}


@contextmanager
def local_workers(n_workers, memory):
    """A client of `n_workers` processes of one thread on this machine, `memory` for each, without a dashboard and its clocks."""
    dask, distributed = (needed(name, "workers on this machine") for name in ("dask", "distributed"))
    options = {"n_workers": n_workers, "threads_per_worker": 1, "memory_limit": memory, "dashboard_address": None}
    with dask.config.set(QUIET), distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


class DaskRows:
    """The partitions of a dask DataFrame; tasks run wherever dask runs them, on a cluster when a client is open.

    frame : dask DataFrame
    """

    def __init__(self, frame):
        self.texts = None  # cells have their types
        self.dask = needed("dask", "reading a dask DataFrame")
        self.names = list(frame.columns)
        self.frame = frame
        self.parts = [(f"partition {i}", part) for i, part in enumerate(frame.to_delayed())]

    def n_rows(self):
        """Return how many rows there are."""
        return len(self.frame)

    def sample(self, names, size):
        """A Piece of about `size` rows from evenly spaced partitions."""
        chosen = np.unique(np.linspace(0, len(self.parts) - 1, SAMPLED_PARTITIONS).astype(int))
        per_part = max(size // len(chosen), 1)
        pieces = self._compute([self._task(fold_partition)(self.parts[i][1], names, per_part) for i in chosen])
        return join_pieces(names, pieces)

    def approximate_distinct(self, names):
        """Nothing is known between the bounds: folding is tried, and stops at the limit."""
        return 0

    def fold(self, names, limit):
        """A Piece of all rows, or None where there are more than `limit` distinct ones."""
        tasks = [self._task(fold_partition)(part, names) for _, part in self.parts]
        while len(tasks) > 1:
            tasks = [self._task(join_some)(names, tasks[i : i + FAN_IN], limit) for i in range(0, len(tasks), FAN_IN)]
        (piece,) = self._compute(tasks)
        return piece if piece is not None and len(piece.counts) <= limit else None

    def categories(self, names):
        """dict column -> categories, of those columns that have the same ones in every partition."""
        coded = [name for name in names if str(self.frame.dtypes[name]) == "category"]
        if not coded:
            return {}
        found = self._compute([self._task(partition_categories)(part, coded) for _, part in self.parts])
        return {n: found[0][n] for n in coded if found[0][n] and all(f[n] == found[0][n] for f in found)}

    def typed(self, values):
        """The values of a column: as they are."""
        return values

    def profile(self, names, weight=None, limit=None):
        """(values, how often each occurs, number of rows) of every column, over rows of positive weight; sets `part_rows`. At most
        `limit` + 1 values of a partition are sent, which is too many.
        """
        found = self._compute([self._task(partition_values)(part, names, weight, limit) for _, part in self.parts])
        self.part_rows = [n_rows for n_rows, _ in found]
        return [join_values([columns[i] for _, columns in found]) for i in range(len(names))]

    def count(self, weight=None):
        """Return how many rows `profile` found."""
        return sum(self.part_rows)

    def shards(self, code, coder, names):
        """Delayed lists of blocks, one per partition."""
        return [self._task(partition_blocks)(part, code, coder, list(names)) for _, part in self.parts]

    def arrow_types(self, names):
        """Arrow types of columns, categoricals as what they hold."""
        import pyarrow as pa

        schema = pa.Schema.from_pandas(self.frame._meta[list(names)], preserve_index=False)
        return [field.type.value_type if pa.types.is_dictionary(field.type) else field.type for field in schema]

    def map_parts(self, function, job, names):
        """``[function(job, number, source, batches)]`` over the partitions, each where it lies."""
        run = self._task(run_on_partition)
        return self._compute([run(function, job, i, part, list(names)) for i, (_, part) in enumerate(self.parts)])

    def _task(self, function):
        return self.dask.delayed(function, pure=False)

    def _compute(self, tasks):
        return list(self.dask.compute(*tasks))


def fold_partition(partition: Any, names, size=None):
    """A Piece of the rows of one partition, of `size` evenly spaced ones at most."""
    partition = partition[list(names)]
    if size is not None and len(partition) > size:
        partition = partition.iloc[:: -(-len(partition) // size)]
    builder = PieceBuilder(list(names))
    builder.add([pandas_codes(partition[name]) for name in names], np.ones(len(partition), dtype=np.int64))
    return builder.finish()


def join_some(names, pieces, limit):
    """One Piece of several, or None past the limit."""
    if any(piece is None for piece in pieces):
        return None
    joined = join_pieces(names, pieces)
    return joined if len(joined.counts) <= limit else None


def partition_categories(partition, names):
    """dict column -> categories of one partition."""
    return {name: partition[name].cat.categories.tolist() for name in names}


def run_on_partition(function, job, number, partition, names):
    """``function(job, number, source, batches)`` on one partition, in batches of at most `BATCH` rows."""
    return function(job, number, {"partition": number, "rows": len(partition)}, partition_batches(partition, names))


def partition_batches(partition, names):
    """Lists of (values, codes), one pair per column, with the number of rows."""
    for start in range(0, len(partition), BATCH):
        part = partition.iloc[start : start + BATCH]
        yield [pandas_codes(part[name]) for name in names], len(part)


def partition_values(partition, names, weight, limit=None):
    """(number of rows, [(values, how often each occurs, number of rows)]) of one partition, of at most `limit` + 1 values."""
    if weight is not None:
        partition = partition[pd.to_numeric(partition[weight], errors="coerce") > 0]
    most = None if limit is None else limit + 1
    found = []
    for name in names:
        values, codes = pandas_codes(partition[name])
        counts = np.bincount(np.asarray(codes)[np.asarray(codes) >= 0], minlength=len(values))
        occurring = np.flatnonzero(counts)[:most]
        found.append(([values[i] for i in occurring], counts[occurring].tolist(), len(partition)))
    return len(partition), found


def join_values(pieces):
    """The same of several partitions."""
    count: dict = {}
    for values, occurrences, _ in pieces:
        for value, occurs in zip(values, occurrences):
            count[value] = count.get(value, 0) + occurs
    return list(count), list(count.values()), sum(n_rows for _, _, n_rows in pieces)


def partition_blocks(partition, code, coder, names):
    """Blocks of one partition."""
    return list(code(partition_batches(partition, names), coder))
