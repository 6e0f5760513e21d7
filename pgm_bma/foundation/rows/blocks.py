"""Rows as blocks whose sums are all that an algorithm sees: in memory, on disk, streamed from a scan, or on a dask cluster.

The protocol: `schema`; `n_rows`, `total_weight`, `state_counts` and `has_missing`, known from one pass; ``reduce(f, *args)``, the
sum over all blocks of ``f(block, *args)`` (a tuple of arrays and numbers) in one pass; ``collect(f, *args)``, the list of them;
``prepared(f, *args)``, the same rows with ``f(block, *args)`` in place of every block, kept for many passes; ``viewed(f, *args)``,
the same made anew in every pass. A counting function that is marked `over_rows` takes rows in place of codes.

A block has at most `BLOCK_ROWS` rows, cut inside a part of the table. Sums are added in a tree that is fixed by the numbers of
the blocks, so that the bits do not depend on who computed which block, nor on when.
"""

import itertools
import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pgm_bma.foundation.runtime.messages import needed
from pgm_bma.foundation.tables.table import Schema

BLOCK_ROWS = 1 << 18  # larger blocks gain nothing, and their copies would not fit a small worker


_watchers: list = []


@contextmanager
def watching(tell):
    """``tell()`` after every pass that sums over rows, while the context is open."""
    _watchers.append(tell)
    try:
        yield
    finally:
        _watchers.remove(tell)


SHARDS_PER_THREAD = 2
MAX_RESULTS = 16  # sums of shards that are sent to the client; of more, workers add up FAN_IN at a time
FAN_IN = 8


class Block(NamedTuple):
    """Codes (n_rows, n_columns), column-contiguous, -1 = missing; weights (n_rows,), or None for one each; numbers
    (n_rows, n_numbers), NaN = missing, or None."""

    codes: np.ndarray
    weights: np.ndarray | None
    numbers: np.ndarray | None = None


class ClassBlock(NamedTuple):
    """A `Block` whose class stands apart: codes (n_rows, n_columns), target (n_rows,) and weights, None for one each."""

    codes: np.ndarray
    target: np.ndarray
    weights: np.ndarray | None


class Profile(NamedTuple):
    """Result of one pass over all rows: the states of all columns one after another in `state_counts`; of standardised numbers
    the weights, sums and sums of squares (n_numbers, 3), and the log of what one unit of them is in the table."""

    schema: Schema
    n_rows: int
    total_weight: float
    state_counts: np.ndarray
    has_missing: np.ndarray
    number_sums: np.ndarray = np.zeros((0, 3))
    log_scale: np.ndarray = np.zeros(0)


class Rows:
    """Base of the backends, which say how blocks are visited (`collect`) and kept (`prepared`).

    profile : Profile     in_memory : whether blocks lie here, so that a pass costs nothing but its work
    """

    in_memory = False
    blocks: list  # where they lie here or in files

    def __init__(self, profile):
        self.profile = profile
        self.schema, self.n_rows, self.total_weight, self.state_counts, self.has_missing = profile[:5]
        self.number_sums, self.log_scale = profile.number_sums, profile.log_scale

    def reduce(self, f, *args):
        """The sum over all blocks of the tuples ``f(block, *args)``, in one pass."""
        found = self.sums(f, *args)
        for tell in () if self.in_memory else _watchers:
            tell()
        return found

    def visit(self, f, *args) -> Iterator[Any]:
        """``f(block, *args)``, block by block."""
        raise NotImplementedError

    def sums(self, f, *args):
        """Result of `reduce`."""
        return tree_sum(self.visit(f, *args))

    def collect(self, f, *args):
        """``[f(block, *args)]`` over all blocks, in their order."""
        return list(self.visit(f, *args))

    def viewed(self, f, *args, profile=None):
        """The same rows with ``f(block, *args)`` in place of every block, made anew in every pass; perhaps of fewer columns."""
        return ViewedRows(self.profile if profile is None else profile, self, f, args)

    def sample(self, size):
        """At most about `size` evenly spaced rows as one block, with the share of the rows that they are."""
        parts = self.collect(every_row, max(-(-self.n_rows // size), 1))
        joined = [None if column[0] is None else np.concatenate(column) for column in zip(*parts)]
        block = type(parts[0])(*joined)
        total = len(block.codes) if block.weights is None else block.weights.sum()
        return block, total / self.total_weight


class ViewedRows(Rows):
    """Blocks that are made of those of other rows whenever they are visited.

    profile : Profile     rows : Rows     f, args : what makes a block of ``f(block, *args)``
    """

    def __init__(self, profile, rows, f, args):
        super().__init__(profile)
        self.rows, self.f, self.args = rows, f, args

    def visit(self, f, *args):
        """``f(block, *args)``, block by block."""
        return self.rows.visit(through, self.f, self.args, f, args)

    def sums(self, f, *args):
        """Result of `reduce`."""
        return self.rows.sums(through, self.f, self.args, f, args)

    def prepared(self, f, *args):
        """The same rows with ``f(block, *args)`` in place of every block, kept."""
        kept = self.rows.prepared(through, self.f, self.args, f, args)
        Rows.__init__(kept, self.profile)
        return kept


def through(block, first, first_args, second, second_args):
    """``second(first(block))``, each with its arguments."""
    return second(first(block, *first_args), *second_args)


def every_row(block, step):
    """Every `step`-th row of a block whose arrays have rows first."""
    return type(block)(*(None if array is None else np.array(array[::step]) for array in block))


def as_is(block):
    """The block itself: ``rows.prepared(as_is)`` keeps rows for many passes."""
    return block


def split_target(block, position, places):
    """A `ClassBlock` of a block whose column `position` is the class; `places` are the codes of its states in sorted order."""
    others = np.delete(np.arange(block.codes.shape[1]), position)
    return ClassBlock(np.asfortranarray(block.codes[:, others]), places[block.codes[:, position]], block.weights)


def over_rows(count):
    """Mark a counting function: given `Rows` of `ClassBlock` in place of codes, it is the sum over all blocks, in one pass.

    count : (codes, cardinalities, target, n_classes, weights) -> tuple of arrays that add up
    """

    @wraps(count)
    def counted(codes, cardinalities, target, n_classes, weights=None):
        if isinstance(codes, Rows):
            return codes.reduce(_count_block, counted, cardinalities, n_classes)
        return count(codes, cardinalities, target, n_classes, weights)

    return counted


def _count_block(block, count, cardinalities, n_classes):
    return count(block.codes, cardinalities, block.target, n_classes, block.weights)


class MemoryRows(Rows):
    """Blocks in memory.

    profile : Profile     blocks : list
    """

    in_memory = True

    def __init__(self, profile, blocks):
        super().__init__(profile)
        self.blocks = list(blocks)

    def visit(self, f, *args):
        """``f(block, *args)``, block by block."""
        return (f(block, *args) for block in self.blocks)

    def prepared(self, f, *args):
        """The same rows with ``f(block, *args)`` in place of every block."""
        return MemoryRows(self.profile, self.visit(f, *args))


def table_rows(codes, cardinalities, weights=None, numbers=None, log_scale=None):
    """`Rows` of one block: a table of codes (n_rows, n_columns) in memory, -1 = missing; columns and states have numbers.

    numbers : (n_rows, n_numbers) standardised numeric columns, NaN = missing     log_scale : (n_numbers,) see `Profile`
    """
    codes, cardinalities = np.asfortranarray(codes), np.asarray(cardinalities, dtype=np.int64)
    weights = None if weights is None else np.asarray(weights, dtype=float)
    has_missing = np.array([len(codes) > 0 and column.min() < 0 for column in codes.T], dtype=bool)
    counts = [
        np.bincount(column.astype(np.int64) + 1, weights, minlength=1 + r)[1:].astype(float)
        for column, r in zip(codes.T, cardinalities.tolist())
    ]
    schema = Schema(tuple(range(len(cardinalities))), tuple(tuple(range(r)) for r in cardinalities.tolist()))
    total = float(len(codes) if weights is None else weights.sum())
    profile = Profile(schema, len(codes), total, np.concatenate([np.empty(0), *counts]), has_missing)
    if numbers is None:
        return MemoryRows(profile, [Block(codes, weights)])
    numbers, of_rows = np.asfortranarray(numbers, dtype=float), np.ones(len(codes)) if weights is None else weights
    powers = [~np.isnan(numbers), np.nan_to_num(numbers), np.nan_to_num(numbers) ** 2]
    log_scale = np.zeros(numbers.shape[1]) if log_scale is None else np.asarray(log_scale, dtype=float)
    profile = profile._replace(number_sums=np.stack([of_rows @ power for power in powers], axis=1), log_scale=log_scale)
    return MemoryRows(profile, [Block(codes, weights, numbers)])


class StreamedRows(Rows):
    """Blocks that are read and coded anew in every pass; `prepared` keeps what is made of them in files.

    profile : Profile     read : () -> iterator of blocks
    """

    def __init__(self, profile, read):
        super().__init__(profile)
        self.read = read

    def visit(self, f, *args):
        """``f(block, *args)``, block by block."""
        return (f(block, *args) for block in self.read())

    def prepared(self, f, *args):
        """The same rows with ``f(block, *args)``, a named tuple of arrays, in place of every block, mapped from local files."""
        return MappedRows(self.profile, self.visit(f, *args))


class MappedRows(MemoryRows):
    """Blocks in files of a temporary folder, mapped into memory while they are read; the folder goes with the object.

    profile : Profile     blocks : iterator of named tuples of arrays and None
    """

    in_memory = False

    def __init__(self, profile, blocks):
        self.folder = Path(tempfile.mkdtemp(prefix="pgm_bma_rows_"))
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        super().__init__(profile, [self._keep(i, block) for i, block in enumerate(blocks)])

    def _keep(self, number, block):
        kept: list[Path | None] = []
        for field, array in zip(block._fields, block):
            if array is None:
                kept.append(None)
                continue
            path = self.folder / f"{number}_{field}.npy"
            np.save(path, array)
            kept.append(path)
        return type(block)(*kept)

    def visit(self, f, *args):
        """``f(block, *args)``, block by block."""
        return (f(_mapped(block), *args) for block in self.blocks)

    def prepared(self, f, *args):
        """The same rows with ``f(block, *args)`` in place of every block."""
        return MappedRows(self.profile, self.visit(f, *args))


def _mapped(block):
    # "c" and plain arrays: of read-only ones, compiled functions would be compiled once more, or a copy be made in every pass
    return type(block)(*(None if path is None else np.asarray(np.load(path, mmap_mode="c")) for path in block))


class ClusterRows(Rows):
    """Blocks on the workers of a dask cluster (or on dask's local threads), in lists: one per partition, and when they are prepared
    a few per thread, because every list costs the scheduler some milliseconds a pass.

    profile : Profile     shards : list of delayed lists of blocks     sizes : number of blocks of every shard
    """

    def __init__(self, profile, shards, sizes):
        super().__init__(profile)
        self.dask = needed("dask", "rows on a cluster")
        self.shards, self.sizes = list(shards), list(sizes)

    def visit(self, f, *args):
        """``f(block, *args)`` of all blocks in their order; one round trip."""
        task = self.dask.delayed(map_shard, pure=False)
        # one argument object for all tasks, sent with them: scattered data would have no recipe when a worker dies
        results = self.dask.compute(*[task(shard, f, args) for shard in self.shards])
        return itertools.chain.from_iterable(results)

    def sums(self, f, *args):
        """The workers add up what the tree over the blocks lets them, and send the rest; one round trip."""
        first = np.cumsum([0, *self.sizes]).tolist()
        task, join = (self.dask.delayed(function, pure=False) for function in (sum_shard, join_trees))
        trees = [task(shard, k, f, args) for shard, k in zip(self.shards, first)]
        while len(trees) > MAX_RESULTS:
            trees = [join(trees[i : i + FAN_IN]) for i in range(0, len(trees), FAN_IN)]
        return finish_tree(join_trees(self.dask.compute(*trees)))

    def prepared(self, f, *args):
        """The same rows with ``f(block, *args)`` in place of every block, kept where they are made."""
        task = self.dask.delayed(extend_shard, pure=False)
        longer, sizes = [], []
        for group in np.array_split(
            np.arange(len(self.shards)), min(SHARDS_PER_THREAD * n_threads(), len(self.shards))
        ):
            made: Any = []
            for i in group:  # one partition after the other: the list stays where it began
                made = task(made, self.shards[i], f, args)
            longer.append(made)
            sizes.append(sum(self.sizes[i] for i in group))
        return ClusterRows(self.profile, self.dask.persist(*longer), sizes)


def n_threads():
    """Threads that dask has here: of the cluster whose client is open, else of this machine."""
    distributed: Any = sys.modules.get("distributed")
    try:
        return max(sum(distributed.get_client().nthreads().values()), 1)
    except (AttributeError, ValueError):  # not imported, or no client
        return os.cpu_count() or 1


def extend_shard(made, blocks, f, args):
    """`made`, and behind it ``f(block, *args)`` of further blocks."""
    return [*made, *map_shard(blocks, f, args)]


def map_shard(blocks, f, args):
    """``[f(block, *args)]`` of one shard."""
    return [f(block, *args) for block in blocks]


def tree_sum(parts: Any) -> tuple:
    """The sum of tuples in a fixed binary tree over their positions: neighbours first, then neighbours of those.

    Examples
    --------
    >>> from pgm_bma.foundation.rows.blocks import tree_sum
    >>> tree_sum([(1, 2.0), (3, 4.0), (5, 6.0)])
    (9, 12.0)
    """
    return finish_tree(join_trees([((0, position, tuple(part)) for position, part in enumerate(parts))]))


def sum_shard(blocks, first, f, args):
    """The largest complete subtrees of ``f(block, *args)`` over the blocks of one shard, numbered from `first` on."""
    return join_trees([((0, position, tuple(f(block, *args))) for position, block in enumerate(blocks, first))])


def join_trees(trees):
    """Neighbouring lists of complete subtrees (level, position in the level, sum) as one, siblings added up."""
    joined: list = []
    for level, position, value in itertools.chain.from_iterable(trees):
        while position % 2 and joined and joined[-1][:2] == (level, position - 1):
            value = _add(joined.pop()[2], value)
            level, position = level + 1, position // 2
        joined.append((level, position, value))
    return joined


def finish_tree(trees):
    """The sum of complete subtrees that cover all blocks, the last ones first."""
    if not trees:
        raise ValueError("there are no rows to sum over")
    total = trees.pop()[2]
    while trees:
        total = _add(trees.pop()[2], total)
    return total


def _add(left, right):
    return tuple(a + b for a, b in zip(left, right))


def n_blocks(n_rows):
    """Return how many blocks `cut_blocks` makes of a part."""
    return -(-n_rows // BLOCK_ROWS)


def cut_blocks(pieces):
    """Blocks of exactly `BLOCK_ROWS` rows (the last may be smaller) from an iterator of pieces of one part, however it is cut."""
    waiting: list[Block] = []
    size = 0
    for piece in pieces:
        start = 0
        while len(piece.codes) - start >= BLOCK_ROWS - size:
            end = start + BLOCK_ROWS - size
            yield _joined([*waiting, _slice(piece, start, end)])
            waiting, size, start = [], 0, end
        if start < len(piece.codes):
            waiting.append(_slice(piece, start, len(piece.codes)))
            size += len(piece.codes) - start
    if size:
        yield _joined(waiting)


def _slice(piece, start, end):
    return Block._make(None if array is None else array[start:end] for array in piece)


def _joined(pieces):
    codes, weights, numbers = (None if part[0] is None else np.concatenate(part) for part in zip(*pieces))
    return Block(np.asfortranarray(codes), weights, numbers)
