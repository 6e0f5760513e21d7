"""The code that the package writes for kernels does what numba's does: every kind of index, row, loop and length."""

import numba
import numpy as np
import pytest

from pgm_bma.foundation.runtime import compiling


def read_cells(a, b, at):
    """Two, three and one places; negative ones; one that is computed; one that a loop counts; a cell that is written."""
    total = a[0, 1] + a[-1, -2] + b[1, 0, -1] + b[at, at - 1, at]
    for i in range(a.shape[0]):
        for j in range(-1, a.shape[1] - 1):
            total += a[i, j] * (i + 1) - a[-i - 1, j] * j
    a[at, -1] = total
    a[0, 0] += at
    return total


def rows(a, b):
    """Rows of arrays as arrays of their own, and rows of these; written through them."""
    row, page = a[1], b[-1]
    total = row[0] + page[1, -1] + page[0][1] + len(row) + len(page) + page.shape[1]
    row[-1] = total
    page[-1][0] = -total
    return total


def loops(start, stop, n, a):
    """Ranges up, down, by steps, empty, and a counter that the body changes."""
    total = 0
    for i in range(start, stop):
        total = total * 3 + i
    for i in range(stop, start, -1):
        total = total * 5 + i
    for i in range(0, n, 3):
        total += i * i
    for i in range(n, 0, -2):
        total -= i
    for i in range(n):
        i -= 2
        total += a[i]
        if total % 7 == 3:
            break
    for _ in range(stop, start):
        total += 1000
    return total


def numbers(small, flag, single, a):
    """Cells of other types, read and written with a change of type, and found by small or unsigned indices."""
    total = 0.0
    for k in range(len(small)):
        if flag[k]:
            total += single[small[k]] + small[k]
        flag[k] = not flag[k]
        single[k] = total
        small[k] += 1
    a[np.uint8(1)] = total
    return total + a[np.int8(-1)]


def inside(a, at):
    """A kernel called by a kernel, with a row."""
    return _sum(a[at]) + _sum(a[-1])


@compiling.compiled_loops
def _sum(row):
    total = 0.0
    for x in row:
        total += x
    for k in range(row.size):
        total += row[k]
    return total


def tables(transposed=False):
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (3, 4)).astype(float), rng.integers(-9, 9, (3, 3, 4)).astype(float)
    return (a.T.copy().T, b[:, :, ::-1]) if transposed else (a, b)


def arguments():
    one = np.arange(9, dtype=np.int64)
    for transposed in (False, True):
        yield read_cells, (*tables(transposed), 2)
        yield rows, tables(transposed)
        yield inside, (tables(transposed)[0], 1)
    yield inside, (tables()[0][:, ::2], 1)  # rows with gaps between their cells
    for start, stop, n in ((0, 5, 9), (-3, 4, 8), (5, 5, 0), (6, 2, 7)):
        yield loops, (start, stop, n, one)
    other = np.arange(5, dtype=np.int8), np.array([True, False, True, True, False]), np.ones(6, dtype=np.float32)
    yield numbers, (*other, np.zeros(3))


@pytest.mark.parametrize(("function", "given"), arguments())
@pytest.mark.parametrize("compiled", [compiling.compiled, compiling.compiled_loops])
def test_our_code_does_what_numbas_does(function, given, compiled):
    ours, theirs = ([x.copy(order="K") if isinstance(x, np.ndarray) else x for x in given] for _ in range(2))
    assert compiled(function)(*ours) == numba.njit(error_model="numpy")(function)(*theirs)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(mine, other)


def test_a_numba_that_was_not_tried_compiles_in_its_own_way(monkeypatch):
    from pgm_bma.foundation.runtime import kernel_compiler

    ours = compiling.compiled(loops)
    monkeypatch.setattr(kernel_compiler, "TRIED", ((0, 1), (0, 2)))
    theirs = compiling.compiled(loops)
    assert ours._compiler.pipeline_class is kernel_compiler._KernelCompiler
    assert theirs._compiler.pipeline_class is numba.core.compiler.Compiler
