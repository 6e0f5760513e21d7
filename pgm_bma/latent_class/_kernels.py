"""Compiled loop of latent-class EM, EMA and its variational twin: one loop, the step that renews the tables is swapped.

Columns are grouped into super-columns of a few dozen joint states: their tables are multiplied together once per
iteration, so that a row costs one look-up per group instead of one per column, and the counts of the groups are summed
back onto the columns. Rows are multiplied up in the linear domain; a run of groups whose product could underflow is
closed by a logarithm (`_chunks`), so that wide tables are exact too. A missing cell is one more state of its column,
with factor 1 (exact marginalisation) and no count.

Arrays: states of all columns stand one after another, ``(n_states_total, n_clusters)``.
"""

from math import exp, inf, log, nan, sqrt
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers._special_kernels import (
    copy_into,
    digamma,
    larger,
    log_add,
    log_gamma,
    logistic,
    smaller,
    stirling,
)
from pgm_bma.foundation.runtime.compiling import compiled

EM, LINEAR, VARIATIONAL = 0, 1, 2  # the step
CONVERGED, EXHAUSTED, COLLAPSED = 0, 1, 2  # how a start ended
PATIENCE = 5  # updates in a row that see no arc before a start counts as collapsed: an early lull may pass
BLOCK = 128  # rows handled together: their products stay in the first-level cache
TINY = 1e-280  # products are kept above this
FLOOR = 1e-39  # smallest positive factor: at most 7 columns (128 joint states) are multiplied in a group


class Layout(NamedTuple):
    """What the loop knows of the data."""

    codes: np.ndarray  # (n_groups, n_rows) joint state of every super-column
    weights: np.ndarray  # (n_rows,)
    group_start: np.ndarray  # (n_groups + 1,) first column of a group
    table_start: np.ndarray  # (n_groups + 1,) first joint state of a group
    state_start: np.ndarray  # (n_columns + 1,) first state of a column
    slots: np.ndarray  # (n_columns,) states of a column, one more if it has missing cells


class Priors(NamedTuple):
    """Pseudo-counts, and the half of the averaging that the clusters do not change."""

    cluster: float  # per cell of the cluster variable
    dependent: np.ndarray  # (n_columns,) per cell of P(column | cluster)
    log_arc: np.ndarray  # (n_columns,) log prior of the arc
    log_alone: np.ndarray  # (n_columns,) log p(column on its own)
    log_independent: np.ndarray  # (n_columns,) log prior of no arc + log_alone
    independent_mean: np.ndarray  # (n_states_total,) posterior mean without the arc


class Runs(NamedTuple):
    """A batch of starts on their way; `advance` takes them further in place."""

    theta_c: np.ndarray  # (n_starts, n_clusters)
    theta: np.ndarray  # (n_starts, n_states_total, n_clusters)
    factor_c: np.ndarray  # what the expectation step multiplies: the tables, or exp of expected logs (variational)
    factors: np.ndarray
    arcs: np.ndarray  # (n_starts, n_columns) the weights of the arcs that built the tables
    idle: np.ndarray  # (n_starts,) updates in a row that saw no arc


class Work(NamedTuple):
    """Space for one call of `advance`; what it found stays in `found` and `path`, the counts of the last start in `counts`."""

    tables: np.ndarray  # (2, n_joint_states, n_clusters) of the super-columns, and their counts
    block: np.ndarray  # (2, BLOCK, n_clusters) joint probabilities of the rows at hand, and their logarithms
    chunk_end: np.ndarray  # (n_groups,)
    counts: np.ndarray  # (1 + n_states_total, n_clusters) expected: of the clusters, and below them of all states
    kept: np.ndarray  # (3, 1 + n_states_total, n_clusters) counts of the last updates; empty without acceleration
    log_factors: np.ndarray  # (n_states_total, n_clusters)
    log_dependent: np.ndarray  # (n_columns,)
    found: np.ndarray  # (n_starts, 4) sum of log normalisers, evidence bound, updates, how it ended
    path: np.ndarray  # the paths of the objective one after another, each of updates + 1 values


def make_work(layout, n_starts, n_clusters, max_iter, accelerate):
    """Space for a batch of starts and at most `max_iter` updates of each."""
    n_states, n_columns = layout.state_start[-1], len(layout.slots)
    counts = np.empty((1 + n_states, n_clusters))
    return Work(
        np.empty((2, layout.table_start[-1], n_clusters)),
        np.empty((2, BLOCK, n_clusters)),
        np.empty(len(layout.codes), dtype=np.int64),
        counts,
        np.empty((3 if accelerate else 0, *counts.shape)),
        np.empty((n_states, n_clusters)),
        np.empty(n_columns),
        np.empty((n_starts, 4)),
        np.empty(n_starts * (max_iter + 1)),
    )


@compiled
def advance(layout, priors, runs, work, mode, stop_collapsed, max_iter, tol, accelerate):
    """Iterate a batch of starts in place, at most `max_iter` updates each.

    accelerate : every third update goes on from extrapolated counts (SQUAREM: Varadhan and Roland 2008), taken back where the
        objective would fall
    """
    n_columns = len(layout.slots)
    has_scores = priors.cluster > 0.0  # EM without a prior has none
    for i in range(n_columns):
        has_scores = has_scores and priors.dependent[i] > 0.0
    counts, kept, log_factors, log_dependent = work.counts, work.kept, work.log_factors, work.log_dependent
    class_counts, state_counts = counts[0], counts[1:]
    n_path = 0
    for start in range(len(runs.theta_c)):
        theta_c, theta, arcs = runs.theta_c[start], runs.theta[start], runs.arcs[start]
        factor_c, factors = runs.factor_c[start], runs.factors[start]
        bound, n_iter, n_idle, ended, is_last = nan, 0, runs.idle[start], EXHAUSTED, max_iter == 0
        cycle, is_trial, known, limit = 0, False, -inf, 4.0  # of the acceleration
        while True:
            if mode != VARIATIONAL:
                _copy_tables(theta_c, theta, factor_c, factors)
            if has_scores and ((mode != VARIATIONAL and is_last) or n_iter == 0):
                log_into(factors, log_factors)
            total = expectation(
                layout, factor_c, factors, class_counts, state_counts, work.tables, work.block, work.chunk_end
            )
            if has_scores and (mode != EM or is_last):
                family_scores(layout, priors, class_counts, state_counts, log_dependent)
                if mode == VARIATIONAL or is_last:
                    bound = bound_at(
                        layout, priors, total, factor_c, log_factors, class_counts, state_counts, log_dependent
                    )
            value = objective(layout, priors, mode, total, bound, theta_c, theta)
            is_taken_back = is_trial and not value >= known - 1e-12 * abs(known)  # less is the rounding of a sum
            if is_taken_back:
                copy_into(kept[2], counts)
                limit = larger(limit / 4.0, 1.0)
            else:
                work.path[n_path] = value
                n_path += 1
                if is_last:
                    break
                n_iter += 1
            is_trial = False
            if accelerate and not is_taken_back:
                copy_into(counts, kept[cycle])
                if cycle == 2:
                    step = step_length(kept)
                    if step > limit:
                        step, limit = limit, 4.0 * limit
                    is_trial = step > 1.0
                    if is_trial:
                        extrapolate(kept, step, counts)
                known, cycle = value, (cycle + 1) % 3
            if has_scores and mode != EM and (is_trial or is_taken_back):
                family_scores(layout, priors, class_counts, state_counts, log_dependent)
            change = average(
                layout, priors, class_counts, state_counts, mode != EM, log_dependent, theta_c, theta, arcs
            )
            if mode == VARIATIONAL:
                expected_logs(layout, priors, class_counts, state_counts, arcs, factor_c, factors, log_factors)
            if mode != EM and stop_collapsed:
                n_idle = n_idle + 1 if no_arc(priors, log_dependent) else 0
            if n_idle >= PATIENCE or (n_idle > 0 and change < tol):
                ended = COLLAPSED
            elif change < tol and not is_trial and not is_taken_back and (mode != VARIATIONAL or n_iter > 1):
                # the change of a plain update; a first variational one repeats given tables: its factors were those tables
                ended = CONVERGED
            is_last = ended != EXHAUSTED or n_iter == max_iter
        if mode == EM or max_iter == 0:
            arc_posteriors(priors, log_dependent, has_scores, arcs)
        runs.idle[start] = n_idle
        found = work.found[start]
        found[0], found[1], found[2], found[3] = total, bound, n_iter, ended


@compiled
def arc_posteriors(priors, log_dependent, has_scores, arcs):
    """P(arc) of every column at given scores, NaN where there are none."""
    for i in range(len(arcs)):
        log_odds = priors.log_arc[i] + log_dependent[i] - priors.log_independent[i]
        arcs[i] = logistic(log_odds) if has_scores else nan


@compiled
def step_length(kept):
    """SQUAREM's step: length of the first of two plain changes over the length of their difference; 1 is the plain update."""
    first, difference = 0.0, 0.0
    for s in range(kept.shape[1]):
        for k in range(kept.shape[2]):
            r = kept[1, s, k] - kept[0, s, k]
            v = kept[2, s, k] - kept[1, s, k] - r
            first += r * r
            difference += v * v
    return sqrt(first / difference) if difference > 0.0 else 1.0


@compiled
def extrapolate(kept, step, counts):
    """Counts further along the parabola through the last three; never below a tenth of the last, so that all stay positive."""
    for s in range(kept.shape[1]):
        for k in range(kept.shape[2]):
            r = kept[1, s, k] - kept[0, s, k]
            v = kept[2, s, k] - kept[1, s, k] - r
            counts[s, k] = larger(kept[0, s, k] + 2.0 * step * r + step * step * v, 0.1 * kept[2, s, k])


@compiled
def objective(layout, priors, mode, total, bound, theta_c, theta):
    """What the step climbs: log posterior (EM), bound (variational); EMA climbs nothing, its log-likelihood is shown."""
    if mode == VARIATIONAL:
        return bound
    if mode == LINEAR:
        return total
    if priors.cluster > 0.0:
        for k in range(len(theta_c)):
            total += priors.cluster * log(theta_c[k])
    product, a = 1.0, 0.0
    for i in range(len(layout.slots)):
        if priors.dependent[i] != a:
            total += a * log(product)
            product, a = 1.0, priors.dependent[i]
        if a > 0.0:
            for s in range(layout.state_start[i], layout.state_start[i + 1]):
                for k in range(len(theta_c)):
                    product *= theta[s, k]
                    if product < 1e-150:  # theta >= a / (n + a r) in EM with a prior, far above 1e-150
                        total += a * log(product)
                        product = 1.0
    return total + a * log(product)


# ------------------------------------------------------------------------------------------------------- the steps


@compiled
def average(layout, priors, class_counts, counts, is_averaged, log_dependent, theta_c, theta, arcs):
    """EMA's step, eq. 14: posterior means with and without the arc, mixed by the arc's posterior. EM's step, eq. 7, is the case in
    which every arc is certain (`is_averaged` False). Returns the largest change."""
    n_clusters = len(theta_c)
    change = _renew_clusters(priors, class_counts, theta_c)
    for i in range(len(layout.slots)):
        first, last = layout.state_start[i], layout.state_start[i + 1]
        a, arc = priors.dependent[i], 1.0
        if is_averaged:
            arc = logistic(priors.log_arc[i] + log_dependent[i] - priors.log_independent[i])
            arcs[i] = arc
        for k in range(n_clusters):
            total = (last - first) * a
            for s in range(first, last):
                total += counts[s, k]
            scale = arc / total if total > 0.0 else 0.0
            for s in range(first, last):
                # neither counts nor prior: uniform
                value = (counts[s, k] + a) * scale if total > 0.0 else arc / (last - first)
                if is_averaged:
                    value += (1.0 - arc) * priors.independent_mean[s]
                change = larger(change, abs(value - theta[s, k]))
                theta[s, k] = value
    return change


@compiled
def expected_logs(layout, priors, class_counts, counts, arcs, factor_c, factors, log_factors):
    """Factors of the variational expectation step: exp(E log theta_C) and exp(P(arc) E log theta_ijk)."""
    n_clusters = len(factor_c)
    total = n_clusters * priors.cluster
    for k in range(n_clusters):
        total += class_counts[k]
    for k in range(n_clusters):
        factor_c[k] = exp(digamma(class_counts[k] + priors.cluster) - digamma(total))
    for i in range(len(layout.slots)):
        first, last = layout.state_start[i], layout.state_start[i + 1]
        a = priors.dependent[i]
        for k in range(n_clusters):
            total = (last - first) * a
            for s in range(first, last):
                total += counts[s, k]
            base = digamma(total)
            for s in range(first, last):
                log_factors[s, k] = arcs[i] * (digamma(counts[s, k] + a) - base)
                factors[s, k] = exp(log_factors[s, k])


@compiled
def _renew_clusters(priors, class_counts, theta_c):
    total = len(theta_c) * priors.cluster
    for k in range(len(theta_c)):
        total += class_counts[k]
    change = 0.0
    for k in range(len(theta_c)):
        value = (class_counts[k] + priors.cluster) / total if total > 0.0 else 1.0 / len(theta_c)
        change = larger(change, abs(value - theta_c[k]))
        theta_c[k] = value
    return change


@compiled
def no_arc(priors, log_dependent):
    """Collapse: no column's counts speak for its arc (with an even prior: every arc posterior is below 1/2)."""
    for i in range(len(log_dependent)):
        is_open = priors.log_arc[i] > -inf
        # a column with one state (or no rows) has ratio 1 up to rounding and speaks for nothing
        if priors.log_arc[i] == 0.0 or (is_open and log_dependent[i] > priors.log_alone[i] + 1e-9):
            return False
    return True


# ------------------------------------------------------------------------------------------------ expectation


@compiled
def expectation(layout, factor_c, factors, class_counts, counts, group_tables, block, chunk_end):
    """E step (EMA eq. 4, 5): fills the expected counts, returns the sum of log normalisers (the log-likelihood).

    group_tables, block, chunk_end : space, see `Work`
    """
    tables, group_counts = group_tables[0], group_tables[1]
    p, logs = block[0], block[1]
    n_groups, n_rows = layout.codes.shape
    n_clusters = len(factor_c)
    n_chunks = _chunks(layout, factors, chunk_end)
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
                base, codes = layout.table_start[group], layout.codes[group]
                for row in range(size):
                    cell = base + codes[start + row]
                    for k in range(n_clusters):
                        p[row, k] *= tables[cell, k]
                group += 1
            if n_chunks > 1:
                for row in range(size):
                    for k in range(n_clusters):
                        value = log(p[row, k])
                        logs[row, k] = value if chunk == 0 else logs[row, k] + value
                        p[row, k] = 1.0
        for row in range(size):
            weight = layout.weights[start + row]
            shift = 0.0
            if n_chunks > 1:
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
            elif n_chunks > 1 or norm < 1e-100:
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
            base, codes = layout.table_start[group], layout.codes[group]
            for row in range(size):
                cell = base + codes[start + row]
                for k in range(n_clusters):
                    group_counts[cell, k] += p[row, k]
    for g in range(n_groups):
        _sum_back(layout, group_counts, g, counts)
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


# -------------------------------------------------------------------------------------------- scores and bound


@compiled
def family_scores(layout, priors, class_counts, counts, log_dependent):
    """Log marginal likelihood of every column given the cluster (the Gammas of EMA eq. 11), at expected counts.

    Gamma functions are shifted upwards by products, and one logarithm per family closes all the products: the price of
    a cell is one logarithm.
    """
    n_clusters = len(class_counts)
    whole_prior, whole = -1.0, 0.0
    for i in range(len(layout.slots)):
        first, last = layout.state_start[i], layout.state_start[i + 1]
        a = priors.dependent[i]
        score, up = 0.0, 1.0
        is_complete = layout.slots[i] == last - first
        if is_complete and whole_prior == (last - first) * a:
            score = whole  # without missing cells the row totals are the cluster sizes, whatever the column
        else:
            for k in range(n_clusters):
                total = 0.0
                for s in range(first, last):
                    total += counts[s, k]
                if is_complete:
                    total = class_counts[k]
                score += log_gamma((last - first) * a) - log_gamma(total + (last - first) * a)
            score -= (last - first) * n_clusters * log_gamma(a)
            if is_complete:
                whole_prior, whole = (last - first) * a, score
        for s in range(first, last):
            for k in range(n_clusters):
                x = counts[s, k] + a
                while x < 10.0:
                    up *= x
                    x += 1.0
                score += stirling(x)
                if up > 1e250:
                    score -= log(up)
                    up = 1.0
        log_dependent[i] = score - log(up)


@compiled
def bound_at(layout, priors, total, factor_c, log_factors, class_counts, counts, log_dependent):
    """Evidence bound: sum_i log(w_dep + w_ind) + log p(class counts) + entropy of q.

    The entropy is the sum of log normalisers minus the expected log factors.
    """
    if total == -inf:  # a row that the start finds impossible
        return total
    n_clusters = len(factor_c)
    bound = total
    n = 0.0
    for k in range(n_clusters):
        n += class_counts[k]
        bound += log_gamma(class_counts[k] + priors.cluster) - log_gamma(priors.cluster)
        if class_counts[k] > 0.0:
            bound -= class_counts[k] * log(factor_c[k])
    bound += log_gamma(n_clusters * priors.cluster) - log_gamma(n + n_clusters * priors.cluster)
    for i in range(len(layout.slots)):
        bound += log_add(priors.log_arc[i] + log_dependent[i], priors.log_independent[i])
        for s in range(layout.state_start[i], layout.state_start[i + 1]):
            for k in range(n_clusters):
                if counts[s, k] > 0.0:
                    bound -= counts[s, k] * log_factors[s, k]
    return bound


@compiled
def _copy_tables(theta_c, theta, factor_c, factors):
    for k in range(len(theta_c)):
        factor_c[k] = theta_c[k]
        for s in range(len(theta)):
            factors[s, k] = theta[s, k]


@compiled
def log_into(values, logs):
    for s in range(values.shape[0]):
        for k in range(values.shape[1]):
            logs[s, k] = log(values[s, k])


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
