"""Compiled pass over a block of rows for latent-class models: expected counts of all active starts, and the log joint.

`_kernels` has the idea: tables of super-columns are multiplied out once for all rows, and their counts are summed back.
"""

from math import exp, inf, log

from pgm_bma.foundation.numbers._special_kernels import larger, smaller
from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.latent_class._number_kernels import (
    add_log_densities,
    add_sums,
)

BLOCK = 128  # rows handled together: their products stay in the first-level cache
TINY = 1e-280  # products are kept above this
FLOOR = 1e-39  # smallest positive factor: at most 7 columns (128 joint states) are multiplied in a group


@compiled
def expect(
    layout, codes, values, weights, all_factor_c, all_factors, all_counts, totals, group_tables, block, chunk_end
):
    """E step (EMA eq. 4, 5) of every start on a block: fills the expected counts and the sums of log normalisers (log-likelihoods).

    codes : (n_groups, n_rows) joint state of every super-column     weights : (n_rows,)
    values : (n_numbers, n_rows) standardised, NaN = missing
    group_tables, block, chunk_end : space, see `problem.expect_block`
    """
    for start in range(len(totals)):
        totals[start] = _expect_start(
            layout,
            codes,
            values,
            weights,
            all_factor_c[start],
            all_factors[start],
            all_counts[start],
            group_tables,
            block,
            chunk_end,
        )


@compiled
def _expect_start(layout, all_codes, values, weights, factor_c, factors, counts, group_tables, block, chunk_end):
    class_counts, tables, group_counts = counts[0], group_tables[0], group_tables[1]
    p, logs = block[0], block[1]
    n_groups, n_rows = all_codes.shape
    n_clusters = len(factor_c)
    n_chunks = _chunks(layout, factors, chunk_end)
    in_logs = n_chunks > 1 or len(values) > 0
    number_factors, number_counts = factors[layout.state_start[-1] :], counts[1 + layout.state_start[-1] :]
    for line in range(len(number_counts)):
        for k in range(n_clusters):
            number_counts[line, k] = 0.0
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
        group = 0
        for chunk in range(n_chunks):
            while group < chunk_end[chunk]:
                base, codes = layout.table_start[group], all_codes[group]
                for row in range(size):
                    cell = base + codes[start + row]
                    for k in range(n_clusters):
                        p[row, k] *= tables[cell, k]
                group += 1
            if in_logs:
                for row in range(size):
                    for k in range(n_clusters):
                        value = log(p[row, k])
                        logs[row, k] = value if chunk == 0 else logs[row, k] + value
                        p[row, k] = 1.0
        add_log_densities(values, start, size, number_factors, logs)
        for row in range(size):
            weight = weights[start + row]
            shift = 0.0
            if in_logs:
                shift = logs[row, 0]
                for k in range(1, n_clusters):
                    shift = larger(shift, logs[row, k])
                for k in range(n_clusters):
                    p[row, k] = exp(logs[row, k] - shift) if shift > -inf else 0.0
            norm = 0.0
            for k in range(n_clusters):
                norm += p[row, k]
            if norm == 0.0:  # impossible under every cluster: it says nothing about the cluster
                total = -inf
                for k in range(n_clusters):
                    p[row, k] = factor_c[k]
                    norm += p[row, k]
            elif in_logs or norm < 1e-100:
                total += weight * (shift + log(norm))
            else:  # one logarithm for many rows: their normalisers are multiplied up while the weight stays the same
                if weight != product_weight or product < 1e-200:
                    total += product_weight * log(product)
                    product, product_weight = 1.0, weight
                product *= norm
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
        add_sums(values, start, size, p, number_counts)
    for g in range(n_groups):
        _sum_back(layout, group_counts, g, counts[1:])
    return total + product_weight * log(product)


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
