"""Chance that comes from the data: folds and resamples are a function of the table's content alone.

A fit that shuffles rows by a seed gives another answer for another seed, and for other names or orders of columns, rows
and states too. Here rows are shuffled by a hash of what they hold, in which only counts enter: colours of rows and states
are refined in turn (as in graph isomorphism tests), so that two rows share a colour only where the table is symmetric in
them. A focus is resampled from a generator that is seeded by its counts, its cells put in order of their counts.
"""

import hashlib

import numpy as np

from pgm_bma.kikuchi import _kernels as kernels

_ROUNDS = 3


def row_colours(data):
    """(n_samples,) uint64, pseudo-random, the same under any order and names of rows, columns, states and classes."""
    codes = np.column_stack([data.codes, data.target]).astype(np.int64)
    rows = np.ascontiguousarray(data.weights, dtype=np.float64).view(np.uint64)
    return kernels.refine_colours(codes, rows, _ROUNDS)


def some_rows(data, size):
    """`ClassData` of about `size` of the rows, the same under any order and names of rows, columns and states.

    Rows are taken by a hash of how often their cells' states occur.
    """
    keys = np.zeros(len(data.codes), dtype=np.uint64)
    for column in [*data.codes.T, data.target]:
        counts = np.bincount(column + 1, data.weights)
        keys += _hashed(counts.view(np.uint64))[column + 1]
    chosen = np.sort(np.argpartition(_hashed(keys), size)[:size]) if size < len(keys) else slice(None)
    codes = np.asfortranarray(data.codes[chosen])
    return data._replace(codes=codes, target=data.target[chosen], weights=data.weights[chosen])


def _hashed(values):
    """64-bit hashes (splitmix64)."""
    values = values + np.uint64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def resampling_order(counts, values):
    """Both tables (cells, n_classes) with their entries sorted by count inside a cell, and cells by their counts."""
    inside = np.argsort(counts, axis=1, kind="stable")
    counts, values = np.take_along_axis(counts, inside, axis=1), np.take_along_axis(values, inside, axis=1)
    cells = np.lexsort(counts.T)
    return counts[cells], values[cells]


def content_generator(counts):
    """A generator that is seeded by the numbers of an array."""
    digest = hashlib.blake2b(np.ascontiguousarray(counts, dtype=np.float64).tobytes(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
