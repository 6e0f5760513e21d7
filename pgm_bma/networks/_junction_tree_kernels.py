"""Compiled message passing over the jobs of an evidence plan (see `evidence`): linear domain with scaling.

A job is a list of entries, parents first. An entry is a cluster with its observed variables fixed: it walks the cells
``base + index[CELLS + k]`` of the cluster's table. Columns of the `entries` array:

    CELLS start in `index`   N number of cells   UP start in `index` of each cell's place in the message to the parent
    SEP length of that message   PARENT entry of the job   IN_PARENT start in `index` of each parent cell's place in it
    BUFFER, MESSAGE places in the scratch arrays   VECTOR 1 when the message is the entry itself   PLAN number of its plan

A vector entry is a leaf that hides nothing but its separator. It needs no separate buffer: its CELLS, N and BUFFER are
those of its parent's cells, so the parent's numbers are its numbers too.
"""

import numpy as np

from pgm_bma.foundation.numbers._kernels import larger
from pgm_bma.foundation.runtime.compiling import compiled

CELLS, N, UP, SEP, PARENT, IN_PARENT, BUFFER, MESSAGE, VECTOR, PLAN = range(10)
N_FIELDS = 10

# beyond these a scale factor moves into the logarithm; what is inside can still be multiplied by a table value of 1e-270
_SMALL, _LARGE = 1e-30, 1e30


@compiled
def cluster_tables(theta, cluster_start, cluster_size, family_start, map_start, maps, tables):
    """tables[cluster cell] = product of the family tables that live in the cluster."""
    for k in range(len(tables)):
        tables[k] = 1.0
    for f in range(len(family_start)):
        first, table, place = family_start[f], cluster_start[f], map_start[f]
        if place < 0:
            for k in range(cluster_size[f]):
                tables[table + k] *= theta[first + k]
        else:
            for k in range(cluster_size[f]):
                tables[table + k] *= theta[first + maps[place + k]]


@compiled
def family_tables(counts, cluster_start, cluster_size, family_start, map_start, maps, family_counts):
    """The reverse way: add the counts of cluster cells into the families."""
    for k in range(len(family_counts)):
        family_counts[k] = 0.0
    for f in range(len(family_start)):
        first, table, place = family_start[f], cluster_start[f], map_start[f]
        if place < 0:
            for k in range(cluster_size[f]):
                family_counts[first + k] += counts[table + k]
        else:
            for k in range(cluster_size[f]):
                family_counts[first + maps[place + k]] += counts[table + k]


@compiled
def _collect(psi, entries, first, m, bases, b0, index, buffer, message, use_max):
    """Messages from the leaves to entry 0; leaves the root's total in the scale it returns. -inf: impossible evidence."""
    scale = 1.0
    log_z = 0.0
    for i in range(m):
        e = entries[first + i]
        if e[VECTOR] == 0:
            base = bases[b0 + i]
            for k in range(e[N]):
                buffer[e[BUFFER] + k] = psi[base + index[e[CELLS] + k]]
    for i in range(m - 1, 0, -1):
        e = entries[first + i]
        above = entries[first + e[PARENT]]
        place, n_above, to = above[BUFFER], above[N], e[IN_PARENT]
        top = 0.0
        if e[VECTOR] == 1:
            base, start = bases[b0 + i], e[CELLS]
            for k in range(n_above):
                value = buffer[place + k] * psi[base + index[start + k]]
                buffer[place + k] = value
                if value > top:
                    top = value
        else:
            here, out, up = e[BUFFER], e[MESSAGE], e[UP]
            for s in range(e[SEP]):
                message[out + s] = 0.0
            if use_max:
                for k in range(e[N]):
                    s = out + index[up + k]
                    message[s] = larger(message[s], buffer[here + k])
            else:
                for k in range(e[N]):
                    message[out + index[up + k]] += buffer[here + k]
            largest = 0.0
            for s in range(e[SEP]):
                largest = larger(largest, message[out + s])
            if largest == 0.0:
                return -np.inf
            inverse = 1.0 / largest
            scale *= largest
            if scale < _SMALL or scale > _LARGE:
                log_z += np.log(scale)
                scale = 1.0
            for k in range(n_above):
                value = buffer[place + k] * (message[out + index[to + k]] * inverse)
                buffer[place + k] = value
                if value > top:
                    top = value
        if top == 0.0:
            return -np.inf
        if top < _SMALL:
            inverse = 1.0 / top
            for k in range(n_above):
                buffer[place + k] *= inverse
            scale *= top
            if scale < _SMALL:
                log_z += np.log(scale)
                scale = 1.0
    root = entries[first]
    total = 0.0
    for k in range(root[N]):
        value = buffer[root[BUFFER] + k]
        total = larger(total, value) if use_max else total + value
    if total == 0.0:
        return -np.inf
    inverse = 1.0 / total
    for k in range(root[N]):
        buffer[root[BUFFER] + k] *= inverse
    return log_z + np.log(scale) + np.log(total)


@compiled
def _distribute(entries, first, m, index, buffer, message, ratio):
    """After `_collect`: turn every entry's part of the buffer into its posterior (it sums to one)."""
    for i in range(1, m):
        e = entries[first + i]
        if e[VECTOR] == 1:
            continue
        above = entries[first + e[PARENT]]
        place, to, here, out, up = above[BUFFER], e[IN_PARENT], e[BUFFER], e[MESSAGE], e[UP]
        for s in range(e[SEP]):
            ratio[s] = 0.0
        for k in range(above[N]):
            ratio[index[to + k]] += buffer[place + k]
        for s in range(e[SEP]):
            if message[out + s] > 0.0:  # else the posterior there is zero as well
                ratio[s] /= message[out + s]
        for k in range(e[N]):
            buffer[here + k] *= ratio[index[up + k]]


@compiled
def collect(psi, kind_start, kind_jobs, kind_base, entries, bases, index, sizes, log_z):
    """log_z[job] = log probability of the job's evidence."""
    buffer, message = np.empty(sizes[0]), np.empty(sizes[1])
    for kind in range(len(kind_start) - 1):
        first, m = kind_start[kind], kind_start[kind + 1] - kind_start[kind]
        for job in range(kind_jobs[kind], kind_jobs[kind + 1]):
            b0 = kind_base[kind] + (job - kind_jobs[kind]) * m
            log_z[job] = _collect(psi, entries, first, m, bases, b0, index, buffer, message, False)


@compiled
def calibrate(psi, kind_start, kind_jobs, kind_base, entries, bases, index, sizes, weights, counts):
    """Add weight x posterior of every job to `counts` (cluster cells). Returns (weighted log_z, impossible job or -1)."""
    buffer, message, ratio = np.empty(sizes[0]), np.empty(sizes[1]), np.empty(sizes[1])
    total = 0.0
    for kind in range(len(kind_start) - 1):
        first, m = kind_start[kind], kind_start[kind + 1] - kind_start[kind]
        for job in range(kind_jobs[kind], kind_jobs[kind + 1]):
            b0 = kind_base[kind] + (job - kind_jobs[kind]) * m
            log_z = _collect(psi, entries, first, m, bases, b0, index, buffer, message, False)
            if log_z == -np.inf:
                return log_z, job
            _distribute(entries, first, m, index, buffer, message, ratio)
            weight = weights[job]
            total += weight * log_z
            for i in range(m):
                e = entries[first + i]
                base, here, start = bases[b0 + i], e[BUFFER], e[CELLS]
                for k in range(e[N]):
                    counts[base + index[start + k]] += weight * buffer[here + k]
    return total, -1


@compiled
def marginals(
    psi,
    kind_start,
    kind_jobs,
    kind_base,
    entries,
    bases,
    index,
    sizes,
    query_start,
    query_stride,
    query_card,
    query_column,
    out,
):
    """out[job, column + state] = P(state of a query variable | evidence), for the queries of every plan. Returns a bad job."""
    buffer, message, ratio = np.empty(sizes[0]), np.empty(sizes[1]), np.empty(sizes[1])
    for kind in range(len(kind_start) - 1):
        first, m = kind_start[kind], kind_start[kind + 1] - kind_start[kind]
        asked = False
        for i in range(m):
            plan = entries[first + i, PLAN]
            asked = asked or query_start[plan] < query_start[plan + 1]
        for job in range(kind_jobs[kind], kind_jobs[kind + 1]):
            b0 = kind_base[kind] + (job - kind_jobs[kind]) * m
            log_z = _collect(psi, entries, first, m, bases, b0, index, buffer, message, False)
            if log_z == -np.inf:
                return job
            if not asked:
                continue
            _distribute(entries, first, m, index, buffer, message, ratio)
            for i in range(m):
                e = entries[first + i]
                for q in range(query_start[e[PLAN]], query_start[e[PLAN] + 1]):
                    stride, card, column = query_stride[q], query_card[q], query_column[q]
                    for k in range(e[N]):
                        out[job, column + (index[e[CELLS] + k] // stride) % card] += buffer[e[BUFFER] + k]
    return -1


@compiled
def complete(psi, kind_start, kind_jobs, kind_base, entries, bases, index, space, picks, uniforms, use_max, chosen):
    """chosen[place of base] = offset of the cell taken by that entry: the most probable completion, or one drawn.

    `uniforms` has one number in [0, 1) per entry of every job when drawing. Ties of the maximum go to the lowest cell.
    space, picks : buffer and messages, and a number for every entry of a job
    """
    buffer, message = space
    for kind in range(len(kind_start) - 1):
        first, m = kind_start[kind], kind_start[kind + 1] - kind_start[kind]
        for job in range(kind_jobs[kind], kind_jobs[kind + 1]):
            b0 = kind_base[kind] + (job - kind_jobs[kind]) * m
            log_z = _collect(psi, entries, first, m, bases, b0, index, buffer, message, use_max)
            if log_z == -np.inf:
                return job
            for i in range(m):
                e = entries[first + i]
                here, up = e[BUFFER], e[UP]
                if e[VECTOR] == 1:
                    chosen[b0 + i] = index[e[CELLS] + picks[e[PARENT]]]
                    continue
                wanted = -1 if i == 0 else index[e[IN_PARENT] + picks[e[PARENT]]]
                if use_max:
                    pick, best = -1, -1.0
                    for k in range(e[N]):
                        if (i == 0 or index[up + k] == wanted) and buffer[here + k] > best:
                            pick, best = k, buffer[here + k]
                else:
                    total = 0.0
                    for k in range(e[N]):
                        if i == 0 or index[up + k] == wanted:
                            total += buffer[here + k]
                    left, pick = uniforms[b0 + i] * total, -1
                    for k in range(e[N]):
                        if (i == 0 or index[up + k] == wanted) and buffer[here + k] > 0.0:
                            pick = k
                            left -= buffer[here + k]
                            if left < 0.0:
                                break
                picks[i] = pick
                chosen[b0 + i] = index[e[CELLS] + pick]
    return -1


@compiled
def normalise_tables(counts, alpha, line_start, free, theta, updated):
    """updated = (counts + alpha) / row sum for every line of every free table; uniform where there is nothing.

    line_start : (n_lines + 1,) where the lines (one parent state each) begin. Returns the largest absolute change.
    """
    change = 0.0
    for line in range(len(line_start) - 1):
        low, high = line_start[line], line_start[line + 1]
        if not free[line]:
            for k in range(low, high):
                updated[k] = theta[k]
            continue
        total = 0.0
        for k in range(low, high):
            total += counts[k] + alpha[k]
        for k in range(low, high):
            value = (counts[k] + alpha[k]) / total if total > 0.0 else 1.0 / (high - low)
            change = larger(change, abs(value - theta[k]))
            updated[k] = value
    return change


@compiled
def mixed_radix(cards, steps, out):
    """out[cell] = sum of digit x step over all cells of a table with these cardinalities, first digit slowest."""
    out[0] = 0
    size = 1
    for d in range(len(cards) - 1, -1, -1):
        for digit in range(1, cards[d]):
            for k in range(size):
                out[digit * size + k] = out[k] + digit * steps[d]
        size *= cards[d]


@compiled
def link_rows(plans, joined, parent, job_start, entries, job_of, space):
    """Split every row's active clusters (plan >= 0) into connected jobs.

    plans, joined : (n_rows, n_clusters); joined says that the separator to the parent is not fully observed.
    job_start : (n_jobs + 1,) zeros, filled with where the entries of every job begin
    entries : (3, n_entries), filled with row, cluster and parent of every entry: the entries of a job are consecutive with parents
        first, and the parent counts inside the job, -1 for none
    job_of : (n_rows, n_clusters) of -1, filled with jobs, -1 where the cluster is fully observed     space : (2, n_clusters)
    """
    n_rows, n_clusters = plans.shape
    entry_row, entry_cluster, entry_parent = entries[0], entries[1], entries[2]
    local, filled = space[0], space[1]
    job = 0
    for row in range(n_rows):
        row_first = job
        for c in range(n_clusters):
            if plans[row, c] >= 0:
                if joined[row, c]:
                    job_of[row, c] = job_of[row, parent[c]]
                else:
                    job_of[row, c] = job
                    job += 1
                job_start[job_of[row, c] + 1] += 1
        for j in range(row_first, job):
            job_start[j + 1] += job_start[j]
        for j in range(job - row_first):
            filled[j] = 0
        for c in range(n_clusters):
            j = job_of[row, c]
            if j >= 0:
                here = filled[j - row_first]
                filled[j - row_first] += 1
                local[c] = here
                place = job_start[j] + here
                entry_row[place] = row
                entry_cluster[place] = c
                entry_parent[place] = local[parent[c]] if joined[row, c] else -1


@compiled
def hash_jobs(job_start, values, salt, out):
    """out[job] = 64-bit hash of the job's sequence of values; equality is checked by `same_jobs` afterwards."""
    for job in range(len(job_start) - 1):
        h = np.uint64(salt)
        for i in range(job_start[job], job_start[job + 1]):
            h = (h ^ np.uint64(values[i])) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        out[job] = h


@compiled
def same_jobs(job_start, values, representative):
    """Is every job's sequence equal to its representative's?"""
    for job in range(len(job_start) - 1):
        other = representative[job]
        length = job_start[job + 1] - job_start[job]
        if job_start[other + 1] - job_start[other] != length:
            return False
        for i in range(length):
            if values[job_start[job] + i] != values[job_start[other] + i]:
                return False
    return True
