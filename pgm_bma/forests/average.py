"""Exact average over all forest-augmented naive Bayes structures, class observed.

Every column takes the class as a parent (or, selectively, may go without) and at most one other column, without cycles. The
weight of a structure is a product over columns, so the evidence of the data is one forest sum (`forests.sums`), and the
joint probability of a new row and a class is the ratio of two: multiply every family weight by the posterior-mean probability of
the row's value under that family.

Missing training cells: an arc is judged on the rows that have both its cells, against the same rows without the arc.
Missing query cells: summed out over their completions while these are few, else averaged over sampled forests, each of which is a
tree with exact inference.
"""

from itertools import product
from typing import NamedTuple

import numpy as np

from pgm_bma.augmented.model import Parameters, log_joint, make_layout
from pgm_bma.forests._row_kernels import BLOCK, blocked_row_log_sums, row_log_sums
from pgm_bma.forests.sums import best_forest, forest_sum, lifts, log_forest_sums, sample_forests, uniform_forest_mass
from pgm_bma.foundation.numbers.families import (
    cell_alpha,
    log_marginal_likelihood,
    posterior_mean,
    state_offsets,
)
from pgm_bma.foundation.numbers.families import (
    class_information as column_information,
)
from pgm_bma.foundation.numbers.pairs import (
    count_classes_and_pairs,
    mass_consistent_prior,
    pair_means,
    pair_prior,
    pair_scores,
)
from pgm_bma.foundation.runtime.jobs import in_moments

STRUCTURE_PRIORS = ("arc_cost", "friedman_koller", "uniform")
PARAMETER_PRIORS = ("consistent", "paper")
WEIGHTS_AT_ONCE = 4_000_000  # of rows x classes x arcs, where doubles did not decide a sum
ROWS_AT_ONCE = 1000  # rows with missing cells whose completions are summed together
FEW = 16  # rows that tell whether doubles will do as they are
AGREED = 1e-9  # log sums under two caps (`sums.lifts`): the forests that a cap favours do not show
DOUBT = 1e-12  # of a log forest sum in doubles; past it, wide exponents


class ForestAverage(NamedTuple):
    """Log weights of all families and the posterior means behind them; axes [child, parent], last axis with / without class.

    class_probability (n_classes,)
    log_arcs (n, n, 2), log_roots (n, 2): [..., 0] without the class (-inf unless selective), [..., 1] with it
    log_means (n_classes, S, S), log_singles (n_classes, S): posterior means given the class; rows of the pair table are parents
    log_free_means (S, S), log_free_singles (S,): posterior means without the class
    log_sum: log forest sum     arc_posterior (n, n)     class_arc_posterior (n,)     log_evidence: log p(data)
    """

    cardinalities: np.ndarray
    class_probability: np.ndarray
    log_arcs: np.ndarray
    log_roots: np.ndarray
    log_means: np.ndarray
    log_singles: np.ndarray
    log_free_means: np.ndarray
    log_free_singles: np.ndarray
    log_sum: float
    arc_posterior: np.ndarray
    class_arc_posterior: np.ndarray
    log_evidence: float


class ForestPrior(NamedTuple):
    """Priors of arcs and tables.

    alpha, equivalent_sample_size : pseudo-counts, see `family_priors`     parameter_prior : one of `PARAMETER_PRIORS`
    structure_prior : one of `STRUCTURE_PRIORS`
    class_arcs : None (the class is a parent of every column) or (n_columns,) prior of each class arc (selective)
    forbidden : (n, n) bool [child, parent], arcs between columns that no structure may have, or None
    """

    alpha: float = 1.0
    equivalent_sample_size: float | None = None
    parameter_prior: str = "consistent"
    structure_prior: str = "arc_cost"
    class_arcs: np.ndarray | None = None
    forbidden: np.ndarray | None = None


def family_priors(prior, n_classes, cardinalities):
    """Pseudo-counts of all tables: (with the class, without it), two `PairPrior`.

    "paper": alpha in every cell. "consistent": all tables of a column hold the same pseudo-counts in sum, so that none
    gains by being larger: alpha in a cell of the table below the class and a parent of two states, 2 alpha below the class
    alone, n_classes times that without the class, and in general the sum divided by the cells of the table. A column that no
    arc may enter has alpha below the class (naive Bayes). An equivalent sample size overrides both: it is consistent already.
    """
    cardinalities = np.asarray(cardinalities)
    if prior.equivalent_sample_size is not None or prior.parameter_prior == "paper":
        amount = prior.alpha, prior.equivalent_sample_size
        return pair_prior(n_classes, cardinalities, *amount), pair_prior(1, cardinalities, *amount)
    n = len(cardinalities)
    closed = np.eye(n, dtype=bool) if prior.forbidden is None else np.asarray(prior.forbidden) | np.eye(n, dtype=bool)
    alone = prior.alpha * np.where(closed.all(1), 1.0, 2.0)
    return mass_consistent_prior(cardinalities, alone), mass_consistent_prior(cardinalities, n_classes * alone)


def fit_forest_average(codes, cardinalities, target, n_classes, weights=None, prior=None):
    """Weigh all families of complete or incomplete rows, or of `Rows`, under a `ForestPrior`."""
    pairs, totals = count_classes_and_pairs(codes, cardinalities, target, n_classes, weights)
    return average_from_counts(pairs, totals, np.asarray(cardinalities), prior)


def average_from_counts(pairs, totals, cardinalities, prior=None):
    """The average behind observed or expected counts: pairs (n_classes, S, S), totals (n_classes,)."""
    prior = ForestPrior() if prior is None else prior
    n, n_classes = len(cardinalities), len(totals)
    lone = (
        np.asarray(cardinalities) < 2
    )  # a column of one state adds nothing: no arcs, and the others' prior without it
    if lone.any():
        idle = lone[:, None] | lone
        prior = prior._replace(
            forbidden=idle if prior.forbidden is None else idle | np.asarray(prior.forbidden, dtype=bool)
        )
    free = pairs.sum(0, keepdims=True)
    cells, free_cells = family_priors(prior, n_classes, cardinalities)
    log_cost = np.full((n, n), log_arc_prior(prior.structure_prior, n - int(lone.sum())))
    if prior.forbidden is not None:
        log_cost[np.asarray(prior.forbidden, dtype=bool)] = -np.inf
    log_roots = np.full((n, 2), -np.inf)
    log_arcs = np.full((n, n, 2), -np.inf)
    with_class = pair_scores(pairs, cardinalities, cells)
    log_roots[:, 1] = with_class.alone
    base = with_class.alone[:, None] - with_class.without_parent + log_cost
    log_arcs[:, :, 1] = base + with_class.with_parent
    if prior.class_arcs is not None:
        without = pair_scores(free, cardinalities, free_cells)
        with np.errstate(divide="ignore"):
            log_in, log_out = np.log(prior.class_arcs), np.log1p(-np.asarray(prior.class_arcs))
        log_roots[:, 0] = without.alone + log_out
        log_roots[:, 1] += log_in
        log_arcs[:, :, 0] = base + without.with_parent + log_out[:, None]
        log_arcs[:, :, 1] += log_in[:, None]
    arcs, roots = np.logaddexp(log_arcs[..., 0], log_arcs[..., 1]), np.logaddexp(log_roots[:, 0], log_roots[:, 1])
    result = forest_sum(arcs, roots)
    share = np.exp(log_arcs[..., 1] - np.where(np.isfinite(arcs), arcs, 0.0))  # of the arc's weight that has the class
    class_arc = (result.arc_posterior * share).sum(1) + result.root_posterior * np.exp(log_roots[:, 1] - roots)
    means, singles = pair_means(pairs, cardinalities, cells)
    free_means, free_singles = pair_means(free, cardinalities, free_cells)
    class_alpha = cell_alpha(1, n_classes, prior.alpha, prior.equivalent_sample_size)
    log_class = float(log_marginal_likelihood(totals[None], class_alpha))
    return ForestAverage(
        cardinalities=cardinalities,
        class_probability=posterior_mean(totals, class_alpha),
        log_arcs=log_arcs,
        log_roots=log_roots,
        log_means=np.log(means),
        log_singles=np.log(singles),
        log_free_means=np.log(free_means[0]),
        log_free_singles=np.log(free_singles[0]),
        log_sum=result.log_sum,
        arc_posterior=result.arc_posterior,
        class_arc_posterior=np.ones(n) if prior.class_arcs is None else np.minimum(class_arc, 1.0),
        log_evidence=log_class + result.log_sum - _log_prior_mass(log_cost, prior.forbidden is None),
    )


def log_arc_prior(structure_prior, n_columns):
    """Log prior weight of one arc between columns."""
    if structure_prior == "uniform":
        return 0.0
    return -float(np.log(max(n_columns - (structure_prior == "friedman_koller"), 1)))


def _log_prior_mass(log_cost, is_uniform):
    """Log sum over all forests under the prior alone."""
    if is_uniform:
        return uniform_forest_mass(log_cost[0, 0], len(log_cost)) if len(log_cost) else 0.0
    return float(log_forest_sums(log_cost[None], np.zeros((1, len(log_cost))))[0])


def row_weights(average, codes):
    """Family weights times the probability of each row's values: (rows, n_classes, n, n, 2) and (rows, n_classes, n, 2)."""
    position = codes.astype(np.int64) + state_offsets(average.cardinalities)[:-1]
    arcs = np.empty((len(codes), len(average.class_probability), codes.shape[1], codes.shape[1], 2))
    parent, child = position[:, None, :], position[:, :, None]  # axes: row, child, parent
    arcs[..., 1] = average.log_means[:, parent, child].swapaxes(0, 1) + average.log_arcs[..., 1]
    arcs[..., 0] = (average.log_free_means[parent, child] + average.log_arcs[..., 0])[:, None]
    roots = np.empty((*arcs.shape[:3], 2))
    roots[..., 1] = average.log_singles[:, position].swapaxes(0, 1) + average.log_roots[:, 1]
    roots[..., 0] = (average.log_free_singles[position] + average.log_roots[:, 0])[:, None]
    return arcs, roots


def complete_log_joint(average, codes):
    """log p(class, row | data) of complete rows: (n_samples, n_classes)."""
    sums = np.full((len(codes), len(average.class_probability)), np.nan)
    weights = row_tables(average, codes)
    _sums_in_doubles(weights, slice(FEW), sums)
    if len(codes) > FEW and np.isnan(sums[:FEW]).mean() < 0.5:
        _sums_in_doubles(weights, slice(FEW, None), sums)
    undecided = np.flatnonzero(np.isnan(sums).any(axis=1))
    if len(undecided):
        low, high = (_lifted_sums(average, codes[undecided], lift) for lift in lifts(*average_weights(average)))
        agreed = np.maximum(AGREED, 1e-14 * np.abs(high))  # or differ by rounding
        sums[undecided] = np.where(np.abs(low - high) <= agreed, high, np.nan)
    undecided = np.flatnonzero(np.isnan(sums).any(axis=1))
    n_classes, n = sums.shape[1], codes.shape[1]
    step = max(WEIGHTS_AT_ONCE // (n_classes * n * n), 1)
    for start in range(0, len(undecided), step):
        rows = undecided[start : start + step]
        arcs, roots = row_weights(average, codes[rows])
        arcs = np.logaddexp(arcs[..., 0], arcs[..., 1]).reshape(-1, n, n)
        roots = np.logaddexp(roots[..., 0], roots[..., 1]).reshape(-1, n)
        sums[rows] = log_forest_sums(arcs, roots).reshape(-1, n_classes)
    return sums - average.log_sum + np.log(average.class_probability)


def _lifted_sums(average, codes, lift):
    sums = np.empty((len(codes), len(average.class_probability)))
    _sums_in_doubles(row_tables(average, codes, lift), slice(None), sums)
    return sums - lift.total


def _sums_in_doubles(weights, rows, sums):
    """Log forest sums of some of the rows of `row_tables` into `sums`, nan where doubles do not decide them."""
    cells, tables, scales = weights
    if len(cells):
        sum_rows(cells[rows], tables, scales, DOUBT, sums[rows])


def sum_rows(cells, tables, scales, tolerance, sums):
    """Fill `sums`, see `_row_kernels.row_log_sums`."""
    n = cells.shape[1]
    kernel = row_log_sums if n <= 2 * BLOCK else blocked_row_log_sums
    space = np.empty((n, n + 2)), np.empty(n)
    for rows in in_moments(len(cells), len(tables) * n**3 / 3):
        kernel(cells[rows], tables, scales, tolerance, sums[rows], *space)


def row_tables(average, codes, lift=None):
    """Family weights times posterior means as `sum_rows` wants them, for the states that occur in these rows.

    returns cells (rows, n), tables (n_classes, U, U + 1), scales (n_classes, U)
    """
    offsets = state_offsets(average.cardinalities)
    position = codes.astype(np.int64) + offsets[:-1]
    used = np.flatnonzero(np.bincount(position.ravel(), minlength=offsets[-1]))
    column = np.repeat(np.arange(codes.shape[1]), average.cardinalities)[used]
    below, same = np.ix_(used, used), column[:, None] == column
    selective = bool(np.isfinite(average.log_roots[:, 0]).any())  # else every family has the class
    with_class = _by_state(average.log_arcs[..., 1], column)
    if selective:
        free = average.log_free_means[below].T + _by_state(average.log_arcs[..., 0], column)
        free_root = average.log_free_singles[used] + average.log_roots[column, 0]
    tables = np.empty((len(average.class_probability), len(used), len(used) + 1))
    scales = np.empty(tables.shape[:2])
    for c, table in enumerate(tables):
        arcs, roots = table[:, :-1], table[:, -1]
        np.add(average.log_means[c][below].T, with_class, out=arcs)
        roots[:] = average.log_singles[c, used] + average.log_roots[column, 1]
        if selective:
            np.logaddexp(arcs, free, out=arcs)
            np.logaddexp(roots, free_root, out=roots)
        arcs[same] = -np.inf
        if lift is not None:
            table += lift.amounts[column][:, [*column, codes.shape[1]]]
        scales[c] = table.max(axis=1, initial=-np.inf)
        table -= scales[c][:, None]
        np.exp(table, out=table)
    return np.searchsorted(used, position), tables, scales


def _by_state(by_column, column):
    """(n, n) -> (U, U), the value of their columns for every two states."""
    return by_column[column][:, column]


def log_joint_with_error(average, codes, max_completions, n_forests, rng):
    """log p(class, row | data), missing cells summed out: (n_samples, n_classes), and the relative standard error of each
    (0 where exact). Rows with more than `max_completions` completions are averaged over `n_forests` sampled forests."""
    result = np.empty((len(codes), len(average.class_probability)))
    error = np.zeros_like(result)
    codes = np.where(average.cardinalities == 1, 0, codes)  # a cell with one possible value is never missing
    missing = codes < 0
    n_completions = np.exp((missing * np.log(average.cardinalities)).sum(1)).round()
    whole = n_completions == 1
    result[whole] = complete_log_joint(average, codes[whole])
    few = ~whole & (n_completions <= max_completions)
    for rows in np.array_split(np.flatnonzero(few), max(len(codes) // ROWS_AT_ONCE, 1)):
        filled = [completions(codes[row], average.cardinalities) for row in rows]
        joint = complete_log_joint(average, np.concatenate(filled)) if filled else result[:0]
        for row, part in zip(rows, np.split(joint, np.cumsum([len(f) for f in filled])[:-1])):
            result[row] = np.logaddexp.reduce(part)
    many = ~whole & ~few
    if many.any():
        draws = np.array([log_joint(codes[many], average.cardinalities, parents, parameters)
                          for parents, _, parameters in sample_trees(average, n_forests, rng)])  # fmt: skip
        peak = draws.max(0)
        scaled = np.exp(draws - peak)
        mean = scaled.mean(0)
        result[many] = np.log(mean) + peak
        error[many] = scaled.std(0, ddof=1) / np.sqrt(n_forests) / mean
    return result, error


def completions(row, cardinalities):
    """All complete rows that agree with `row` where it is known."""
    choices = [range(r) if value < 0 else (int(value),) for value, r in zip(row, cardinalities)]
    return np.array(list(product(*choices)))


def expected_evidence(average, codes):
    """Return the evidence of each column for each class in one complete row.

    Under the structures as re-weighted by the row, the expected log probability of every column's value, and what the
    re-weighting itself costs (minus a divergence): columns and cost sum to log p(row | class). Returns (n + 1, n_classes).
    """
    arcs, roots = (a[0] for a in row_weights(average, codes))
    n_classes, n = roots.shape[:2]
    evidence = np.zeros((n + 1, n_classes))
    for c in range(n_classes):
        result = forest_sum(
            np.logaddexp(arcs[c, ..., 0], arcs[c, ..., 1]), np.logaddexp(roots[c, :, 0], roots[c, :, 1])
        )
        for posterior, after, before in (
            (result.arc_posterior, arcs[c], average.log_arcs),
            (result.root_posterior, roots[c], average.log_roots),
        ):
            split = np.exp(after - np.logaddexp(after[..., :1], after[..., 1:]).clip(min=-1e300))
            gain = np.where(np.isfinite(after), after, 0.0) - np.where(np.isfinite(before), before, 0.0)
            spoken = (posterior[..., None] * split * gain).sum(-1)
            evidence[:n, c] += spoken.sum(-1) if spoken.ndim == 2 else spoken
        evidence[n, c] = result.log_sum - average.log_sum - evidence[:n, c].sum()
    return evidence


def sample_trees(average, n_samples, rng):
    """Forests drawn from their posterior, as (parents, with_class, Parameters); class arcs are drawn too."""
    arcs, roots = average_weights(average)
    for parents in sample_forests(arcs, roots, n_samples, rng):
        with_class = np.array([
            rng.random() < np.exp(_pick(average, i, p, 1) - (roots[i] if p < 0 else arcs[i, p])) for i, p in enumerate(parents)
        ])  # fmt: skip
        yield parents, with_class, tree_parameters(average, parents, with_class)


def best_tree(average):
    """The structure of highest posterior probability: (parents, with_class)."""
    arcs, roots = average.log_arcs.max(-1), average.log_roots.max(-1)
    parents = best_forest(arcs, roots)
    with_class = np.array([_pick(average, i, p, 1) >= _pick(average, i, p, 0) for i, p in enumerate(parents)])
    return parents, with_class


def class_information(average):
    """Information of every column about the class, nats, times the posterior of the class arc: (n,)."""
    share = average.class_probability[:, None]
    information = column_information(share * np.exp(average.log_singles), share, average.cardinalities)
    return average.class_arc_posterior * information


def average_weights(average):
    """Log weights of arcs (n, n) and roots (n,), with and without the class together."""
    return (
        np.logaddexp(average.log_arcs[..., 0], average.log_arcs[..., 1]),
        np.logaddexp(average.log_roots[:, 0], average.log_roots[:, 1]),
    )


def _pick(average, child, parent, with_class):
    return average.log_roots[child, with_class] if parent < 0 else average.log_arcs[child, parent, with_class]


def family_mean(average, child, parent, with_class):
    """Posterior-mean table of one family: (n_classes or 1, parent cardinality or 1, cardinality)."""
    offsets = state_offsets(average.cardinalities)
    own = slice(offsets[child], offsets[child + 1])
    if parent < 0:
        table = average.log_singles[:, None, own] if with_class else average.log_free_singles[None, None, own]
    else:
        lines = slice(offsets[parent], offsets[parent + 1])
        table = average.log_means[:, lines, own] if with_class else average.log_free_means[None, lines, own]
    return np.exp(table)


def tree_tables(average, parents, with_class):
    """(families, tables) of one structure over the class, node 0, and the columns: tables (n_parent_states, n_states)."""
    families: list[tuple[int, ...]] = [()]
    tables = [average.class_probability[None]]
    for i, (parent, flag) in enumerate(zip(parents, with_class)):
        families.append(((0,) if flag else ()) + ((int(parent) + 1,) if parent >= 0 else ()))
        table = family_mean(average, i, parent, flag)
        tables.append(table.reshape(-1, table.shape[-1]))
    return families, tables


def tree_parameters(average, parents, with_class):
    """Posterior-mean tables of one structure in the layout of `augmented.model` (columns without the class repeat)."""
    n_classes = len(average.class_probability)
    layout = make_layout(parents, average.cardinalities)
    table = np.empty((layout.offsets[-1], n_classes))
    for i, (parent, flag) in enumerate(zip(parents, with_class)):
        mean = family_mean(average, i, parent, flag).reshape(n_classes if flag else 1, -1)
        table[layout.offsets[i] : layout.offsets[i + 1]] = np.broadcast_to(mean, (n_classes, mean.shape[1])).T
    return Parameters(average.class_probability, table)
