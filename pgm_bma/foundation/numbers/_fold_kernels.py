"""Compiled colours of rows."""

import numpy as np

from pgm_bma.foundation.numbers._special_kernels import largest
from pgm_bma.foundation.runtime.compiling import compiled


@compiled
def refine_colours(codes, rows, n_rounds):
    """Colours of rows by the colours of their states, and back; the last column is the class. Sums of hashes, so no order counts.

    codes : (n_rows, n_columns) int64, -1 = missing     rows : (n_rows,) uint64, what tells rows apart beforehand
    """
    n_rows, n = codes.shape
    colours = np.empty(n_rows, np.uint64)
    for r in range(n_rows):
        colours[r] = _mix(rows[r])
    totals = np.empty(n_rows, np.uint64)
    for _ in range(n_rounds):
        totals[:] = np.uint64(0)
        for j in range(n):
            states = np.zeros(largest(codes[:, j]) + 2, np.uint64)  # the first is for missing cells
            for r in range(n_rows):
                states[codes[r, j] + 1] += _mix(colours[r])
            column = np.uint64(1 if j == n - 1 else 2)
            for s in range(1, len(states)):
                column += _mix(states[s])
            states[0] = _mix(states[0] + np.uint64(3))
            for r in range(n_rows):
                totals[r] += _mix(_mix(states[codes[r, j] + 1]) ^ column)
        for r in range(n_rows):
            colours[r] = _mix(colours[r] + totals[r])
    return colours


@compiled
def _mix(x):
    """A 64-bit hash (splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
