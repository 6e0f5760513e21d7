"""Compiled steps of latent-class EM, EMA and variational EMA: the pass over a block of rows, and what lies between two passes.

Columns are grouped into super-columns of a few dozen joint states: their tables are multiplied together once per
iteration, so that a row costs one look-up per group instead of one per column, and the counts of the groups are summed
back onto the columns. Rows are multiplied up in the linear domain; a run of groups whose product could underflow is
closed by a logarithm (`_chunks`), so that wide tables are exact too. A missing cell is one more state of its column,
with factor 1 (exact marginalisation) and no count.

Arrays: states of all columns stand one after another, ``(n_states_total, n_clusters)``; of expected counts line 0 holds those of
the clusters, ``(1 + n_states_total, n_clusters)``. Numeric columns stand behind the others, with three lines each, which
n_states_total counts too. `_column_kernels` has what numeric and ordered columns do otherwise; a table without them passes None,
and nothing of it is compiled. Both kernels, `expect` and `step`, take all active starts in one call.
"""

from math import exp, inf, log, nan, sqrt
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers._kernels import (
    copy_into,
    digamma,
    larger,
    log_add,
    log_gamma,
    logistic,
    stirling,
)
from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.latent_class._column_kernels import (
    Merges,
    NormalPrior,
    average_merged,
    average_numbers,
    expected_log_lines,
    expected_log_merged,
    keep_proper,
    log_density_lines,
    log_prior_density,
    merge_scores,
    number_scores,
)

EM, LINEAR, VARIATIONAL = 0, 1, 2  # the step
CONVERGED, EXHAUSTED, COLLAPSED = 0, 1, 2  # how a start ended
PATIENCE = 5  # updates in a row that see no arc before a start counts as collapsed: an early lull may pass

# where a start stands: of the last pass, of the acceleration, and how it ended
PLACE = np.dtype(
    [(name, np.float64) for name in ("total", "bound", "value", "known", "limit")]
    + [(name, np.int64) for name in ("n_iter", "n_idle", "cycle", "is_trial", "is_taken_back", "is_last", "ended")]
)


class ColumnGroups(NamedTuple):
    """Layout of columns in super-columns."""

    group_start: np.ndarray  # (n_groups + 1,) first column of a group
    table_start: np.ndarray  # (n_groups + 1,) first joint state of a group
    state_start: np.ndarray  # (n_columns + 1,) first state of a column
    slots: np.ndarray  # (n_columns,) states of a column, one more if it has missing cells
    log_scale: np.ndarray  # (n_numbers,) log standard deviation of every numeric column, which comes after the others


class LatentClassPriors(NamedTuple):
    """Pseudo-counts, and the half of the averaging that the clusters do not change."""

    cluster: float  # per cell of the cluster variable
    dependent: np.ndarray  # (n_columns,) per cell of P(column | cluster)
    log_arc: np.ndarray  # (n_columns + n_numbers,) log prior of the arc
    log_alone: np.ndarray  # (n_columns + n_numbers,) log p(column on its own)
    log_independent: np.ndarray  # (n_columns + n_numbers,) log prior of no arc + log_alone
    independent_mean: np.ndarray  # (n_states_total,) posterior mean without the arc
    has_scores: bool  # whether every pseudo-count is positive: EM without a prior has no scores
    numbers: NormalPrior | None  # where there are numeric columns
    merges: Merges | None  # where there are ordered columns


class Walkers(NamedTuple):
    """A batch of starts on their way; `step` takes them further in place."""

    theta_c: np.ndarray  # (n_starts, n_clusters)
    theta: np.ndarray  # (n_starts, n_states_total, n_clusters)
    factor_c: np.ndarray  # what variational EMA multiplies in place of the tables: exp of expected logs
    factors: np.ndarray
    arcs: np.ndarray  # (n_starts, n_columns + n_numbers) the weights of the arcs that built the tables
    log_factors: np.ndarray  # (n_starts, n_states_total, n_clusters)
    kept: np.ndarray  # (n_starts, 3, 1 + n_states_total, n_clusters) counts of the last updates, for the acceleration
    places: np.ndarray  # (n_starts,) of `PLACE`


class StepRules(NamedTuple):
    """mode: the step     stops: whether collapsed starts end     accelerate: every third update goes on from extrapolated counts
    (SQUAREM: Varadhan and Roland 2008), taken back where the objective would fall"""

    mode: int
    stops: bool
    max_iter: int
    tol: float
    accelerate: bool


@compiled
def step(layout, priors, numbers, merges, walkers, active, all_counts, totals, log_dependent, rules):
    """From the expected counts of a pass to the tables of the next, for every active start; a start that ended has is_last = 2.

    active : (n_active,) positions     all_counts : (n_active, 1 + n_states_total, n_clusters), overwritten     totals : (n_active,)
    log_dependent : (n_columns + n_numbers,) space     numbers, merges : of the priors, or None
    """
    mode, is_averaged = rules.mode, rules.mode != EM
    for position in range(len(active)):
        start, counts = active[position], all_counts[position]
        class_counts, state_counts = counts[0], counts[1:]
        place, kept, arcs = walkers.places[start], walkers.kept[start], walkers.arcs[start]
        theta_c, theta, log_factors = walkers.theta_c[start], walkers.theta[start], walkers.log_factors[start]
        factor_c, factors = walkers.factor_c[start], walkers.factors[start]
        is_last = place.is_last == 1
        place.total = totals[position]
        if priors.has_scores and (is_averaged or is_last):
            family_scores(layout, priors, numbers, merges, class_counts, state_counts, log_dependent)
            if mode == VARIATIONAL or is_last:
                if mode != VARIATIONAL or place.n_iter == 0:
                    _log_into(layout, numbers, mode, factors if mode == VARIATIONAL else theta, log_factors)
                sizes = factor_c if mode == VARIATIONAL else theta_c
                place.bound = _bound_at(layout, priors, place.total, sizes, log_factors, counts, log_dependent)
        place.value = _objective(layout, priors, numbers, mode, place.total, place.bound, theta_c, theta)
        # less is the rounding of a sum
        is_taken_back = place.is_trial == 1 and not place.value >= place.known - 1e-12 * abs(place.known)
        place.is_taken_back, place.is_trial = is_taken_back, 0
        if is_taken_back:
            copy_into(kept[2], counts)
            place.limit = larger(place.limit / 4.0, 1.0)
        elif is_last:
            if not is_averaged or rules.max_iter == 0:
                _arc_posteriors(priors, log_dependent, arcs)
            place.is_last = 2
            continue
        else:
            place.n_iter += 1
            if rules.accelerate:
                _extrapolate(kept, place, counts, 1 + layout.state_start[-1], numbers)
        is_plain = not is_taken_back and place.is_trial == 0
        if is_averaged and not is_plain:
            family_scores(layout, priors, numbers, merges, class_counts, state_counts, log_dependent)
        if is_averaged:
            _arc_posteriors(priors, log_dependent, arcs)
        change = _average(
            layout, priors, numbers, merges, class_counts, state_counts, is_averaged, theta_c, theta, arcs
        )
        if mode == VARIATIONAL:
            _expected_logs(
                layout, priors, numbers, merges, class_counts, state_counts, arcs, factor_c, factors, log_factors
            )
        if is_averaged and rules.stops:
            place.n_idle = place.n_idle + 1 if _no_arc(priors, log_dependent) else 0
        if place.n_idle >= PATIENCE or (place.n_idle > 0 and change < rules.tol):
            place.ended = COLLAPSED
        elif change < rules.tol and is_plain and (mode != VARIATIONAL or place.n_iter > 1):
            # the change of a plain update; a first variational one repeats given tables: its factors were those tables
            place.ended = CONVERGED
        place.is_last = place.ended != EXHAUSTED or place.n_iter == rules.max_iter


@compiled
def _arc_posteriors(priors, log_dependent, arcs):
    """P(arc) of every column at given scores, NaN where there are none."""
    for i in range(len(arcs)):
        log_odds = priors.log_arc[i] + log_dependent[i] - priors.log_independent[i]
        arcs[i] = logistic(log_odds) if priors.has_scores else nan


@compiled
def _extrapolate(kept, place, counts, first_number, numbers):
    """Keep the counts; at every third update go on further along the parabola through the last three, by SQUAREM's step: the
    length of the first of two plain changes over the length of their difference (1 is the plain update)."""
    copy_into(counts, kept[place.cycle])
    if place.cycle == 2:
        first, difference = 0.0, 0.0
        for s in range(kept.shape[1]):
            for k in range(kept.shape[2]):
                r = kept[1, s, k] - kept[0, s, k]
                v = kept[2, s, k] - kept[1, s, k] - r
                first += r * r
                difference += v * v
        length = sqrt(first / difference) if difference > 0.0 else 1.0
        if length > place.limit:
            length, place.limit = place.limit, 4.0 * place.limit
        if length > 1.0:
            place.is_trial = 1
            for s in range(kept.shape[1]):
                for k in range(kept.shape[2]):
                    r = kept[1, s, k] - kept[0, s, k]
                    v = kept[2, s, k] - kept[1, s, k] - r
                    # never below a tenth of the last, so that all stay positive
                    further = kept[0, s, k] + 2.0 * length * r + length * length * v
                    is_signed = s > first_number and (s - first_number) % 3 == 1  # a sum of numbers
                    counts[s, k] = further if is_signed else larger(further, 0.1 * kept[2, s, k])
            if numbers is not None:
                keep_proper(counts[first_number:], kept[2, first_number:])
    place.known, place.cycle = place.value, (place.cycle + 1) % 3


@compiled
def _objective(layout, priors, numbers, mode, total, bound, theta_c, theta):
    """Return what the step climbs: log posterior (EM), bound (variational); EMA climbs nothing, its log-likelihood is shown."""
    if mode == VARIATIONAL:
        return bound
    if mode == LINEAR:
        return total
    if priors.cluster > 0.0:
        for k in range(len(theta_c)):
            total += priors.cluster * log(theta_c[k])
    if numbers is not None:
        total += log_prior_density(numbers, theta[layout.state_start[-1] :])
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
def _average(layout, priors, numbers, merges, class_counts, counts, is_averaged, theta_c, theta, arcs):
    """EMA's step, eq. 14: posterior means with and without the arc, mixed by the arc's posterior. EM's step, eq. 7, is the case in
    which every arc is certain (`is_averaged` False). Returns the largest change."""
    n_clusters = len(theta_c)
    change = _renew_clusters(priors, class_counts, theta_c)
    for i in range(len(layout.slots)):
        first, last = layout.state_start[i], layout.state_start[i + 1]
        a, arc = priors.dependent[i], arcs[i] if is_averaged else 1.0
        alone, table = priors.independent_mean[first:last], theta[first:last]
        if merges is not None:
            if is_averaged and merges.which[i] >= 0:
                change = larger(change, average_merged(merges, i, a, counts[first:last], arc, alone, table))
                continue
        for k in range(n_clusters):
            total = (last - first) * a
            for s in range(first, last):
                total += counts[s, k]
            scale = arc / total if total > 0.0 else 0.0
            for s in range(first, last):
                # neither counts nor prior: uniform
                value = (counts[s, k] + a) * scale if total > 0.0 else arc / (last - first)
                if is_averaged:
                    value += (1.0 - arc) * alone[s - first]
                change = larger(change, abs(value - theta[s, k]))
                theta[s, k] = value
    if numbers is not None:
        first, n_columns = layout.state_start[-1], len(layout.slots)
        lines, alone = counts[first:], priors.independent_mean[first:]
        moved = average_numbers(numbers, lines, arcs[n_columns:], alone, is_averaged, theta[first:])
        change = larger(change, moved)
    return change


@compiled
def _expected_logs(layout, priors, numbers, merges, class_counts, counts, arcs, factor_c, factors, log_factors):
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
        if merges is not None:
            if merges.which[i] >= 0:
                expected_log_merged(
                    merges, i, a, counts[first:last], arcs[i], log_factors[first:last], factors[first:last]
                )
                continue
        for k in range(n_clusters):
            total = (last - first) * a
            for s in range(first, last):
                total += counts[s, k]
            base = digamma(total)
            for s in range(first, last):
                log_factors[s, k] = arcs[i] * (digamma(counts[s, k] + a) - base)
                factors[s, k] = exp(log_factors[s, k])
    if numbers is not None:
        first, n_columns = layout.state_start[-1], len(layout.slots)
        expected_log_lines(numbers, counts[first:], arcs[n_columns:], factors[first:])
        copy_into(factors[first:], log_factors[first:])


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
def _no_arc(priors, log_dependent):
    """Collapse: no column's counts speak for its arc (with an even prior: every arc posterior is below 1/2)."""
    for i in range(len(log_dependent)):
        is_open = priors.log_arc[i] > -inf
        # a column with one state (or no rows) has ratio 1 up to rounding and speaks for nothing
        if priors.log_arc[i] == 0.0 or (is_open and log_dependent[i] > priors.log_alone[i] + 1e-9):
            return False
    return True


# -------------------------------------------------------------------------------------------- scores and bound


@compiled
def family_scores(layout, priors, numbers, merges, class_counts, counts, log_dependent):
    """Log marginal likelihood of every column given the cluster (the Gammas of EMA eq. 11), at expected counts.

    Gamma functions are shifted upwards by products, and one logarithm per family closes all the products: the price of
    a cell is one logarithm.
    """
    n_clusters = len(class_counts)
    whole_prior, whole = -1.0, 0.0
    for i in range(len(layout.slots)):
        first, last = layout.state_start[i], layout.state_start[i + 1]
        a = priors.dependent[i]
        if merges is not None:
            if merges.which[i] >= 0:
                log_dependent[i] = merge_scores(merges, i, a, counts[first:last])
                continue
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
    if numbers is not None:
        n_columns, lines = len(layout.slots), counts[layout.state_start[-1] :]
        number_scores(numbers, layout.log_scale, lines, log_dependent[n_columns:])


@compiled
def _bound_at(layout, priors, total, factor_c, log_factors, all_counts, log_dependent):
    """Evidence bound: sum_i log(w_dep + w_ind) + log p(class counts) + entropy of q.

    The entropy is the sum of log normalisers minus the expected log factors.
    """
    if total == -inf:  # a row that the start finds impossible
        return total
    n_clusters, class_counts, counts = len(factor_c), all_counts[0], all_counts[1:]
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
    for i in range(len(layout.slots), len(log_dependent)):
        bound += log_add(priors.log_arc[i] + log_dependent[i], priors.log_independent[i])
    for s in range(layout.state_start[-1], len(counts)):
        for k in range(n_clusters):
            bound -= counts[s, k] * log_factors[s, k]
    return bound


@compiled
def _log_into(layout, numbers, mode, values, logs):
    """Logs of factors (variational) or tables."""
    first = layout.state_start[-1]
    for s in range(first):
        for k in range(values.shape[1]):
            logs[s, k] = log(values[s, k])
    if numbers is not None:
        if mode == VARIATIONAL:
            copy_into(values[first:], logs[first:])
        else:
            log_density_lines(layout.log_scale, values[first:], logs[first:])
