"""Compiled pass over a block of rows for latent-class models: expected counts of all active starts, and the log joint.

`_kernels` has the idea: tables of super-columns are multiplied out once for all rows, and their counts are summed back. Numbers add
log densities. Their rows are handled many at a time, with the clusters apart (n_clusters, n_rows), so that the processor takes
several rows in one instruction. Tables without numbers pass None in their place, and nothing of this is compiled for them.
"""

from math import exp, floor, inf, log
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers._kernels import larger, smaller
from pgm_bma.foundation.runtime.compiling import compiled

BLOCK = 128  # rows handled together: their products stay in the first-level cache
TINY = 1e-280  # products are kept above this
FLOOR = 1e-39  # smallest positive factor: at most 7 columns (128 joint states) are multiplied in a group
LOWEST = -700.0  # exponentials of less are 0


class PassSpace(NamedTuple):
    """Memory that a pass works in."""

    tables: np.ndarray  # (2, n_joint_states, n_clusters) tables of the super-columns, and their counts
    chunk_end: np.ndarray  # (n_groups,)
    p: np.ndarray  # (BLOCK, n_clusters) products of factors, then responsibilities
    logs: np.ndarray  # (n_clusters, BLOCK) what is added in logs: numbers, and groups whose products could underflow
    parts: np.ndarray  # (n_clusters, BLOCK) exponentials of the logs, then responsibilities
    shifts: np.ndarray  # (BLOCK,) largest log of a row
    bits: np.ndarray  # (BLOCK,) powers of two as whole numbers
    powers: np.ndarray  # (BLOCK,) the same memory as floats


def pass_space(layout, n_clusters):
    """`PassSpace` for a number of clusters."""
    p, logs, parts = np.empty((BLOCK, n_clusters)), np.empty((n_clusters, BLOCK)), np.empty((n_clusters, BLOCK))
    powers = np.empty(BLOCK)
    tables = np.empty((2, layout.table_start[-1], n_clusters))
    chunk_end = np.empty(len(layout.table_start) - 1, dtype=np.int64)
    return PassSpace(tables, chunk_end, p, logs, parts, np.empty(BLOCK), powers.view(np.int64), powers)


@compiled
def expect(layout, codes, values, weights, all_factor_c, all_factors, all_counts, totals, space):
    """E step (EMA eq. 4, 5) of every start on a block: fills the expected counts and the sums of log normalisers (log-likelihoods).

    codes : (n_groups, n_rows) joint state of every super-column     weights : (n_rows,)
    values : (n_numbers, n_rows) standardised, NaN = missing; or None
    """
    for start in range(len(totals)):
        factors, counts = all_factors[start], all_counts[start]
        totals[start] = _expect_start(layout, codes, values, weights, all_factor_c[start], factors, counts, space)


@compiled
def _expect_start(layout, all_codes, values, weights, factor_c, factors, counts, space):
    class_counts, tables, group_counts = counts[0], space.tables[0], space.tables[1]
    p, logs, parts, chunk_end = space.p, space.logs, space.parts, space.chunk_end
    n_groups, n_rows = all_codes.shape
    n_clusters = len(factor_c)
    n_chunks = _chunks(layout, factors, chunk_end)
    in_logs = n_chunks > 1 or values is not None
    for line in range(1 + layout.state_start[-1], len(counts)):  # of numbers
        for k in range(n_clusters):
            counts[line, k] = 0.0
    for g in range(n_groups):
        _multiply_out(layout, factors, g, tables)
    for k in range(n_clusters):
        class_counts[k] = 0.0
        for cell in range(len(group_counts)):
            group_counts[cell, k] = 0.0
    total, product, product_weight = 0.0, 1.0, 1.0
    for start in range(0, n_rows, BLOCK):
        size = smaller(BLOCK, n_rows - start)
        for row in range(size):
            for k in range(n_clusters):
                p[row, k] = factor_c[k]
                if in_logs:
                    logs[k, row] = 0.0
        group = 0
        for chunk in range(n_chunks):
            while group < chunk_end[chunk]:
                base, codes = layout.table_start[group], all_codes[group]
                for row in range(size):
                    cell = base + codes[start + row]
                    for k in range(n_clusters):
                        p[row, k] *= tables[cell, k]
                group += 1
            if n_chunks > 1:
                for row in range(size):
                    for k in range(n_clusters):
                        logs[k, row] += log(p[row, k])
                        p[row, k] = 1.0
        if values is not None:
            add_log_densities(values, start, size, factors[layout.state_start[-1] :], logs)
        if in_logs:
            _exponentials(size, space)
        for row in range(size):
            weight = weights[start + row]
            norm, shift = 0.0, 0.0
            if in_logs:
                for k in range(n_clusters):
                    parts[k, row] *= p[row, k]
                    norm += parts[k, row]
                shift = space.shifts[row]
                if norm < TINY:  # the products and the numbers speak for different clusters
                    shift = _row_in_logs(row, p, logs, parts)
                norm = 0.0
                for k in range(n_clusters):
                    p[row, k] = parts[k, row]
            for k in range(n_clusters):
                norm += p[row, k]
            if norm == 0.0:  # impossible under every cluster: it says nothing about the cluster
                total = -inf
                for k in range(n_clusters):
                    p[row, k] = factor_c[k]
                    norm += p[row, k]
            elif norm < 1e-100:
                total += weight * (shift + log(norm))
            else:  # one logarithm for many rows: their normalisers are multiplied up while the weight stays the same
                if weight != product_weight or product < 1e-200:
                    total += product_weight * log(product)
                    product, product_weight = 1.0, weight
                product *= norm
                total += weight * shift
            scale = weight / norm
            for k in range(n_clusters):
                p[row, k] *= scale
                class_counts[k] += p[row, k]
        for group in range(n_groups):
            base, codes = layout.table_start[group], all_codes[group]
            for row in range(size):
                cell = base + codes[start + row]
                for k in range(n_clusters):
                    group_counts[cell, k] += p[row, k]
        if values is not None:
            for k in range(n_clusters):
                for row in range(size):
                    parts[k, row] = p[row, k]
            _add_sums(values, start, size, parts, counts[1 + layout.state_start[-1] :])
    for g in range(n_groups):
        _sum_back(layout, group_counts, g, counts[1:])
    return total + product_weight * log(product)


# ---------------------------------------------------------------------------------------------- numbers and logs


@compiled
def add_log_densities(values, start, size, factors, logs):
    """Add the factors of numeric cells to logs (n_clusters, n_rows); a missing cell (NaN) adds nothing.

    values : (n_numbers, n_rows)
    """
    for i in range(len(values)):
        column = values[i, start : start + size]
        for k in range(factors.shape[1]):
            c0, c1, c2 = factors[3 * i, k], factors[3 * i + 1, k], factors[3 * i + 2, k]
            line = logs[k]
            for row in range(size):
                x = column[row]
                added = c0 + x * (c1 + x * c2)
                line[row] += added if x == x else 0.0


@compiled(fastmath={"reassoc", "contract"})  # measured: sums of several rows at a time
def _add_sums(values, start, size, parts, lines):
    """Add weight, value and square of numeric cells, shared out by parts (n_clusters, n_rows), to lines."""
    for i in range(len(values)):
        column = values[i, start : start + size]
        for k in range(lines.shape[1]):
            line = parts[k]
            n, s1, s2 = 0.0, 0.0, 0.0
            for row in range(size):
                x = column[row]
                share = line[row] if x == x else 0.0
                known = x if x == x else 0.0
                n += share
                s1 += share * known
                s2 += share * known * known
            lines[3 * i, k] += n
            lines[3 * i + 1, k] += s1
            lines[3 * i + 2, k] += s2


@compiled
def _exponentials(size, space):
    """Fill shifts with the largest log of every row, and parts with exp(log - shift).

    x = n log 2 + r: the exponential of r is a polynomial (|r| < 0.35: its first 14 terms are exact to rounding), and 2^n is put
    together from bits. Measured: several times as fast as a call of `exp` for every cell.
    """
    logs, parts, shifts, bits, powers = space.logs, space.parts, space.shifts, space.bits, space.powers
    for row in range(size):
        shifts[row] = logs[0, row]
    for k in range(1, len(logs)):
        for row in range(size):
            shifts[row] = larger(shifts[row], logs[k, row])
    for row in range(size):
        shifts[row] = shifts[row] if shifts[row] > -inf else 0.0
    for k in range(len(logs)):
        line, found = logs[k], parts[k]
        for row in range(size):
            x = larger(line[row] - shifts[row], LOWEST)
            n = floor(x * 1.4426950408889634 + 0.5)
            r = (x - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10
            y = 1.0 + r / 13.0
            y = 1.0 + r * y * (1.0 / 12.0)
            y = 1.0 + r * y * (1.0 / 11.0)
            y = 1.0 + r * y * (1.0 / 10.0)
            y = 1.0 + r * y * (1.0 / 9.0)
            y = 1.0 + r * y * (1.0 / 8.0)
            y = 1.0 + r * y * (1.0 / 7.0)
            y = 1.0 + r * y * (1.0 / 6.0)
            y = 1.0 + r * y * (1.0 / 5.0)
            y = 1.0 + r * y * (1.0 / 4.0)
            y = 1.0 + r * y * (1.0 / 3.0)
            y = 1.0 + r * y * (1.0 / 2.0)
            found[row] = 1.0 + r * y if x > LOWEST else 0.0
            bits[row] = (np.int64(n) + 1023) << 52
        for row in range(size):
            found[row] *= powers[row]


@compiled
def _row_in_logs(row, p, logs, parts):
    """The parts of one row from the logs of its products; returns its shift."""
    shift = -inf
    for k in range(len(logs)):
        logs[k, row] += log(p[row, k])
        shift = larger(shift, logs[k, row])
    for k in range(len(logs)):
        parts[k, row] = exp(logs[k, row] - shift) if shift > -inf else 0.0
    return shift


# ------------------------------------------------------------------------------------------------------- tables


@compiled
def _chunks(layout, factors, chunk_end):
    """Ends of the runs of groups whose products stay above TINY whatever the row holds; returns their number.

    Positive factors below FLOOR are raised to it. Exact zeros stay and are left out of the bound: a product that meets
    one is zero, as it should be.
    """
    n_groups = len(chunk_end)
    smallest, n_chunks = 1.0, 0
    for g in range(n_groups):
        group_smallest = 1.0
        for i in range(layout.group_start[g], layout.group_start[g + 1]):
            low = 1.0
            for s in range(layout.state_start[i], layout.state_start[i + 1]):
                for k in range(factors.shape[1]):
                    value = factors[s, k]
                    if 0.0 < value < low:
                        if value < FLOOR:
                            value = FLOOR
                            factors[s, k] = FLOOR
                        low = value
            group_smallest *= low
        if smallest * group_smallest < TINY and g > 0:
            chunk_end[n_chunks] = g
            n_chunks += 1
            smallest = 1.0
        smallest *= group_smallest
    chunk_end[n_chunks] = n_groups
    return n_chunks + 1


@compiled
def _multiply_out(layout, factors, g, tables):
    """Joint table of one group, column by column, the last column fastest; a missing cell has factor 1."""
    n_clusters = factors.shape[1]
    base = layout.table_start[g]
    for k in range(n_clusters):
        tables[base, k] = 1.0
    size = 1
    for i in range(layout.group_start[g], layout.group_start[g + 1]):
        first, slots = layout.state_start[i], layout.slots[i]
        n_states = layout.state_start[i + 1] - first
        for cell in range(size - 1, -1, -1):  # backwards, so that a cell is read before it is overwritten
            source, target = base + cell, base + cell * slots
            if n_states < slots:
                for k in range(n_clusters):
                    tables[target + n_states, k] = tables[source, k]
            for state in range(n_states - 1, -1, -1):
                for k in range(n_clusters):
                    tables[target + state, k] = tables[source, k] * factors[first + state, k]
        size *= slots


@compiled
def _sum_back(layout, group_counts, g, counts):
    """Counts of one group onto its columns, last column first; overwrites the group's counts."""
    n_clusters = counts.shape[1]
    base = layout.table_start[g]
    size = layout.table_start[g + 1] - base
    for i in range(layout.group_start[g + 1] - 1, layout.group_start[g] - 1, -1):
        first, slots = layout.state_start[i], layout.slots[i]
        n_states = layout.state_start[i + 1] - first
        for s in range(first, first + n_states):
            for k in range(n_clusters):
                counts[s, k] = 0.0
        size //= slots
        for cell in range(size):
            source, target = base + cell * slots, base + cell
            for k in range(n_clusters):
                total = 0.0
                for state in range(n_states):
                    value = group_counts[source + state, k]
                    counts[first + state, k] += value
                    total += value
                if n_states < slots:
                    total += group_counts[source + n_states, k]
                group_counts[target, k] = total


@compiled
def log_joint(codes, state_start, log_theta_c, log_theta, joint):
    """Fill joint (n_rows, n_clusters) with log p(cluster, row); a missing cell (-1) adds nothing."""
    n_rows, n_columns = codes.shape
    n_clusters = len(log_theta_c)
    for row in range(n_rows):
        for k in range(n_clusters):
            joint[row, k] = log_theta_c[k]
    for i in range(n_columns):
        first = state_start[i]
        for row in range(n_rows):
            code = codes[row, i]
            if code >= 0:
                for k in range(n_clusters):
                    joint[row, k] += log_theta[first + code, k]
