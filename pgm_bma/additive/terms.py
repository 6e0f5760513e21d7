"""Terms of numeric and categorical columns, averaged over discretisations: tables for new rows, contrasts of training rows.

A term gives every class a log evidence. "single": ln P(c | bin) - ln p_c of a column, averaged over all ways to cut it. "pair":
ln P(c | i, j) - ln P(c | i) - ln P(c | j) + ln p_c, averaged over recursive averages. "gaussian": how the numeric columns vary
together (see `gaussian`). These have one weight each. "linear" (standardised values of the numeric columns), "state" (indicators of
the states of the others) and "cell" (indicators of the cells of two of these) have one weight per class, as in logistic regression.

The contrasts of a training row are those of terms that were made without it. Of a wide table the columns whose single terms say
most have terms, the others none.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pgm_bma.additive import averages
from pgm_bma.additive.averages import N_STRENGTHS, GaussianTerms, fit_gaussian, gaussian_terms
from pgm_bma.additive.choice import cell_indicators, choose_cells, choose_pairs, coarse, pair_gains, unexplained
from pgm_bma.additive.solve import KINDS, Contrasts, against_own, class_directions
from pgm_bma.foundation.faces.validation import bounded
from pgm_bma.foundation.numbers.folds import weigh_repeats
from pgm_bma.foundation.tables.table import fold

CLIP = 4.0  # standard deviations at which a value stops to pull
MOST_INDICATORS = 300  # states x classes
MOST_COLUMNS = 500  # with terms: more of them cost memory and time, and most say nothing
WIDE = 50  # columns above which held-out rows decide whether those that say little alone have terms
_FEWEST_COLUMNS = 2


def make_terms(data, kinds, columns=None):
    """All terms of training data, and their left-out contrasts: (AverageTerms, Contrasts).

    columns : positions of the columns that have terms, in order; default all
    """
    shares = averages.class_shares(data.target, data.weights, data.n_classes)
    gammas = averages.gamma_tables(data.weights.sum(), data.weights, shares)
    columns = np.arange(len(data.n_bins)) if columns is None else columns
    numbers = data.positions_of_numbers(columns)
    data = data.take_columns(columns)
    singles = [_single(data, j, shares, gammas) for j in range(len(columns))]
    logs = [left_out_logs(data, j, single) for j, single in enumerate(singles)]
    values = [_prior(data, shares)]
    for j, log in enumerate(logs):
        values.append(against_own(log - np.where((data.codes[:, j] >= 0)[:, None], np.log(shares), 0.0), data.target))
    gaussian = None
    if "gaussian" in kinds:
        free = data.monotone[data.numeric] == 0
        gaussian = fit_gaussian(data.values, data.target, data.n_classes, data.weights, free)
    terms = AverageTerms(
        columns=columns,
        numbers=numbers,
        numeric=data.numeric,
        shares=shares,
        singles=[np.log(t.probability) - np.log(shares) for t in singles],
        cut_posteriors=[t.cut_posterior for t in singles],
        kinds=["prior"] + ["single"] * len(singles),
        sets=[(), *((j,) for j in range(len(singles)))],
        scale=standardisation(data),
        linear="linear" in kinds,
        levels=level_scale(data) if "linear" in kinds else [],
        indicated=_indicated(data) if "state" in kinds else [],
        gaussian=gaussian,
    )
    densities = []
    if gaussian is not None:
        found = gaussian_terms(gaussian, data.values, data.target, data.left_out_weights())
        densities = [against_own(found[:, :, g], data.target) for g in range(N_STRENGTHS)]
    x = design(terms, data.codes, data.values)
    contrasts = _contrasts(data, terms, values, densities, x)
    if len(data.target) and {"pair", "cell"} & set(kinds):
        left = unexplained(data, contrasts)
        pairs, tables, more = [], [], []
        if "pair" in kinds:
            pairs, tables, more = choose_pairs(data, shares, singles, logs, left, gammas)
        cells = choose_cells(data, left, len(contrasts.kinds)) if "cell" in kinds else []
        terms = terms._replace(
            pairs=pairs,
            tables=tables,
            kinds=terms.kinds + ["pair"] * len(pairs),
            sets=terms.sets + pairs,
            cells=cells,
        )
        x = np.concatenate([x, cell_design(terms, data.codes)], axis=1)
        contrasts = _contrasts(data, terms, values + more, densities, x)
    return terms, contrasts


def _contrasts(data, terms, values, densities, x):
    term_kinds = terms.kinds + ["gaussian"] * len(densities)
    return Contrasts(
        np.stack(values + densities, axis=2), x, data.target, data.n_classes, term_kinds, design_kinds(terms)
    )


def column_gains(data, with_pairs=False):
    """Log evidence of the classes given a column, less that without it: (n_columns,); None unless there are many columns.

    with_pairs : what a column says in a product with another counts too
    """
    n_columns = len(data.n_bins)
    if n_columns <= WIDE:
        return None
    shares = averages.class_shares(data.target, data.weights, data.n_classes)
    gammas = averages.gamma_tables(data.weights.sum(), data.weights, shares)
    gains = np.full(n_columns, -np.inf)
    for j in np.flatnonzero(np.asarray(data.n_bins) > 1):
        together = _counts(data, j).sum(axis=0, keepdims=True)
        alone = averages.average_categories(together, shares, data.unit).log_evidence
        gains[j] = _single(data, j, shares, gammas).log_evidence - alone
    return np.maximum(gains, pair_gains(data, shares)) if with_pairs else gains


def strong_columns(gains, bar):
    """Positions of the columns whose gain reaches the bar, at most `MOST_COLUMNS` and at least two; None where all have terms."""
    if gains is None:
        return None
    best = np.argsort(-gains, kind="stable")[:MOST_COLUMNS]
    return np.sort(best[: max(int((gains[best] >= bar).sum()), _FEWEST_COLUMNS)])


def _single(data, j, shares, gammas):
    if data.n_bins[j] == 1:  # says nothing
        return averages.ColumnAverage(shares[None], np.tile(shares, (1, len(shares), 1)), np.zeros(0), 0.0)
    counts = _counts(data, j)
    if data.numeric[j]:
        return averages.average_intervals(counts, shares, data.unit, gammas=gammas)
    return averages.average_categories(counts, shares, data.unit)


def _counts(data, j):
    seen = data.codes[:, j] >= 0
    counts = np.zeros((int(data.n_bins[j]), data.n_classes))
    np.add.at(counts, (data.codes[seen, j], data.target[seen]), data.weights[seen])
    return counts


def _prior(data, shares):
    return against_own(np.tile(np.log(shares), (len(data.target), 1)), data.target)


def left_out_logs(data, j, table):
    """ln P(c | bin) without the row, zero where the cell is missing: (n, n_classes)."""
    bins = data.codes[:, j]
    logs = np.log(table.left_out[np.maximum(bins, 0), data.target])
    return np.where((bins >= 0)[:, None], logs, 0.0)


# ------------------------------------------------------------------------------------- terms with a weight per class


def standardisation(data):
    """(2, n_numeric) mean and spread of the numeric columns, by weight; a constant column has spread 1."""
    weights = np.where(np.isnan(data.values), 0.0, data.weights[:, None])
    total = np.maximum(weights.sum(axis=0), 1e-300)
    filled = np.nan_to_num(data.values)
    mean = (weights * filled).sum(axis=0) / total
    spread = np.sqrt((weights * (filled - mean) ** 2).sum(axis=0) / total)
    return np.stack([mean, np.where(spread > 0, spread, 1.0)])


def level_scale(data):
    """Columns of whole numbers that are states: [(column, (n_states,) standardised numbers, clipped)]; at least three states."""
    found = []
    for j, levels in enumerate(data.levels):
        if levels is None or len(levels) < 3:
            continue
        seen = data.codes[:, j] >= 0
        mass = np.bincount(data.codes[seen, j], data.weights[seen], minlength=len(levels))
        mean = mass @ levels / max(mass.sum(), 1e-300)
        spread = np.sqrt(mass @ (levels - mean) ** 2 / max(mass.sum(), 1e-300))
        if spread > 0:
            found.append((j, np.clip((levels - mean) / spread, -CLIP, CLIP)))
    return found


def _indicated(data):
    """Categorical columns whose states get their own weights: those of fewest states, while these are few in all."""
    columns = [j for j in range(len(data.n_bins)) if not data.numeric[j] and data.n_bins[j] > 1]
    columns.sort(key=lambda j: data.n_bins[j])
    total = np.cumsum([data.n_bins[j] for j in columns]) * (data.n_classes - 1)
    return sorted(j for j, size in zip(columns, total) if size <= MOST_INDICATORS)


def design(terms, codes, values):
    """(n_samples, n_columns): 1, standardised numbers (clipped), indicators of states and of cells; zero where missing."""
    n = len(codes)
    parts = []
    if has_level(terms):
        parts.append(np.ones((n, 1)))
    if terms.linear and values.shape[1]:
        parts.append(np.nan_to_num(np.clip((values - terms.scale[0]) / terms.scale[1], -CLIP, CLIP)))
    for j, levels in terms.levels:
        parts.append(np.where(codes[:, j] >= 0, levels[np.maximum(codes[:, j], 0)], 0.0)[:, None])
    for j in terms.indicated:
        parts.append((codes[:, j, None] == np.arange(len(terms.singles[j]))[None, :]).astype(float))
    parts.append(cell_design(terms, codes))
    return np.concatenate(parts, axis=1)


def cell_design(terms, codes):
    """Indicators of the cells of all pairs that have weights of cells: (n_samples, n_cells)."""
    n_bins = [len(single) for single in terms.singles]
    parts = [cell_indicators(codes, pair, n_bins) for pair in terms.cells]
    return np.concatenate(parts, axis=1) if parts else np.zeros((len(codes), 0))


def has_level(terms):
    """Return whether every class has a free level."""
    return bool(terms.linear or terms.indicated)


def design_kinds(terms):
    """Kinds of the columns of `design`."""
    kinds = ["level"] if has_level(terms) else []
    kinds += ["linear"] * ((terms.scale.shape[1] if terms.linear else 0) + len(terms.levels))
    kinds += ["state"] * sum(len(terms.singles[j]) for j in terms.indicated)
    return kinds + ["cell"] * sum(len(terms.singles[i]) * len(terms.singles[j]) for i, j in terms.cells)


def design_owners(terms):
    """[(set of columns, kind, columns of the design)]: levels belong to the empty set, slopes and states to their column."""
    parts: list[tuple[tuple[int, ...], str, int]] = [((), "level", 1)] if has_level(terms) else []
    if terms.linear:
        parts += [((int(j),), "linear", 1) for j in np.flatnonzero(terms.numeric)]
    parts += [((j,), "linear", 1) for j, _ in terms.levels]
    parts += [((j,), "state", len(terms.singles[j])) for j in terms.indicated]
    parts += [((i, j), "cell", len(terms.singles[i]) * len(terms.singles[j])) for i, j in terms.cells]
    ends = np.cumsum([size for _, _, size in parts])
    return [(members, kind, slice(int(end) - size, int(end))) for (members, kind, size), end in zip(parts, ends)]


# -------------------------------------------------------------------------------------------------------- new rows


def set_features(terms, codes):
    """Prior, single and pair terms of rows: (n_samples, n_classes, n_sets); a term with a missing cell is zero."""
    columns = [np.tile(np.log(terms.shares), (len(codes), 1))]
    for j, logs in enumerate(terms.singles):
        columns.append(np.where((codes[:, j] >= 0)[:, None], logs[np.maximum(codes[:, j], 0)], 0.0))
    singles = columns[1:]
    for (i, j), table in zip(terms.pairs, terms.tables):
        first = coarse(codes[:, i], len(terms.singles[i]), terms.numeric[i])
        second = coarse(codes[:, j], len(terms.singles[j]), terms.numeric[j])
        seen = (first >= 0) & (second >= 0)
        both = table[np.maximum(first, 0), np.maximum(second, 0)]
        columns.append(np.where(seen[:, None], both - singles[i] - singles[j], 0.0))
    return np.stack(columns, axis=2)


def row_features(terms, codes, values):
    """`RowFeatures` of new rows, which have all columns of the table."""
    if len(terms.columns) < codes.shape[1]:
        codes, values = codes[:, terms.columns], values[:, terms.numbers]
    shape = len(codes), len(terms.shares), 0
    densities = np.zeros(shape) if terms.gaussian is None else gaussian_terms(terms.gaussian, values)
    return RowFeatures(set_features(terms, codes), densities, design(terms, codes, values))


def check_terms(terms):
    """The kinds of terms in their order, or an error."""
    if isinstance(terms, str) or not hasattr(terms, "__iter__"):
        raise ValueError(f"terms={terms!r} must be a sequence such as {KINDS!r}")
    unknown = [kind for kind in bounded("terms", terms) if kind not in KINDS]
    if unknown:
        raise ValueError(f"terms holds {unknown[0]!r}, which is not one of {', '.join(map(repr, KINDS))}")
    if "single" not in terms:
        raise ValueError(f"terms={tuple(terms)!r} lacks 'single', which the other kinds are built on; add it")
    return tuple(kind for kind in KINDS if kind in terms)


def effective_weights(weights, sampling):
    """Weights as numbers of rows. Of sampling weights, and of those that are not whole and so count no rows, only the proportions
    tell: they are scaled to the effective number of rows, (sum w)^2 / sum w^2 (Kish)."""
    if weights is None or not (sampling or np.any(weights != np.floor(weights))):
        return weights
    weights = weights / weights.max()
    weights = weights * (weights.sum() / (weights @ weights))
    return weights.astype(np.float32).astype(float)  # so that a factor on all weights changes no digit


def additive_data(training, values, numeric, monotone=None, groups=None):
    """`AdditiveData` of a table that was read and cut; equal rows are folded, in sorted order, so that weights are repetitions.

    What repeats weigh is decided by `folds.weigh_repeats`; where there are groups, repeats in one group are copies, others data.

    monotone : sign for each column, default 0     groups : (n_samples,) codes
    """
    ranks = [np.unique(column, return_inverse=True)[1].ravel() for column in values.T]  # NaN is one value, the last
    grouped = [] if groups is None else [groups]
    keys = np.column_stack([training.codes, *ranks, training.target, *grouped]).astype(np.int64)
    rows, weights, inverse = fold(keys, training.weights)
    first = np.full(len(rows), len(keys))
    np.minimum.at(first, inverse, np.arange(len(keys)))
    target = np.asarray(training.target, dtype=np.int64)[first]
    cells = np.column_stack(
        [training.codes[first][:, ~np.array(numeric, dtype=bool)], *(rank[first] for rank in ranks)]
    )
    groups = None if groups is None else groups[first]
    weights, repeats = weigh_repeats(cells, target, weights, groups is not None)
    total = weights.sum()
    return AdditiveData(
        np.asfortranarray(training.codes[first], dtype=np.int32),
        values[first],
        np.array(numeric, dtype=bool),
        training.schema.cardinalities,
        target,
        len(training.classes),
        weights,
        min(float(weights @ weights / total), 1.0) if total > 0 else 1.0,
        [None if is_number else _whole_levels(s) for s, is_number in zip(training.schema.states, numeric)],
        np.zeros(len(numeric), dtype=int) if monotone is None else np.asarray(monotone),
        repeats,
        groups,
    )


def _whole_levels(states):
    """States as numbers where all of them are numbers whose squares can be added, else None."""
    if all(isinstance(s, (int, float, np.integer, np.floating)) and not isinstance(s, bool) for s in states):
        return np.array(states, dtype=float) if all(-1e100 < s < 1e100 for s in states) else None
    return None


class RowFeatures(NamedTuple):
    """sets (n, n_classes, n_sets), densities (n, n_classes, 3 or 0), design (n, n_columns)."""

    sets: np.ndarray
    densities: np.ndarray
    design: np.ndarray

    def scores(self, weights):
        return self.sets @ weights.sets + self.densities @ weights.densities + self.design @ weights.slopes


class TermWeights(NamedTuple):
    """sets (n_sets,), densities (3 or 0,), slopes (n_columns of the design, n_classes)."""

    sets: np.ndarray
    densities: np.ndarray
    slopes: np.ndarray

    @classmethod
    def from_flat(cls, theta, terms):
        """From the weights of the contrasts of `make_terms`."""
        n_sets = len(terms.sets)
        n_densities = 0 if terms.gaussian is None else N_STRENGTHS
        directions = class_directions(len(terms.shares))
        slopes = theta[n_sets + n_densities :].reshape(-1, directions.shape[1]) @ directions.T
        return cls(theta[:n_sets], theta[n_sets : n_sets + n_densities], slopes)


class AdditiveData(NamedTuple):
    """codes (n, d) elementary bins or states, -1 = missing; values (n, d_numeric) raw numbers, NaN = missing; numeric (d,) bool.

    n_bins (d,); target (n,); weights (n,); unit : weight of a row that is left out
    levels : for each column the numbers that are its states, or None
    monotone (d,) : 1 or -1 where a curve must rise or fall (see `monotone`), else 0
    repeats : how repeats of rows were taken, see `folds.weigh_repeats`
    groups : (n,) codes of groups whose rows stay together in folds, or None
    """

    codes: np.ndarray
    values: np.ndarray
    numeric: np.ndarray
    n_bins: np.ndarray
    target: np.ndarray
    n_classes: int
    weights: np.ndarray
    unit: float
    levels: list
    monotone: np.ndarray
    repeats: str = "none"
    groups: np.ndarray | None = None

    def take(self, rows, weights):
        return self._replace(
            codes=self.codes[rows],
            values=self.values[rows],
            target=self.target[rows],
            weights=weights,
            groups=None if self.groups is None else self.groups[rows],
        )

    def without(self, part):
        """The rows that are left when `part` (n,) of their weights is taken away."""
        rest = self.weights - part
        return self.take(rest > 0, rest[rest > 0])

    def take_columns(self, columns):
        if len(columns) == len(self.n_bins):
            return self
        return self._replace(
            codes=np.asfortranarray(self.codes[:, columns]),
            values=self.values[:, self.positions_of_numbers(columns)],
            numeric=self.numeric[columns],
            n_bins=self.n_bins[columns],
            levels=[self.levels[j] for j in columns],
            monotone=self.monotone[columns],
        )

    def left_out_weights(self):
        """Return what is taken away where a row is left out: all copies of it, else one unit."""
        return self.weights if self.repeats == "copies" else np.minimum(self.weights, self.unit)

    def positions_of_numbers(self, columns):
        """Return where the numeric ones of these columns stand in `values`."""
        return (np.cumsum(self.numeric) - 1)[columns][self.numeric[columns]]

    def bin_middles(self):
        """Mean of the numbers in every bin of every numeric column; of a bin without rows that of the last one before: list."""
        middles = []
        for k, j in enumerate(np.flatnonzero(self.numeric)):
            seen = self.codes[:, j] >= 0
            rows, size = self.codes[seen, j], int(self.n_bins[j])
            mass = np.bincount(rows, self.weights[seen], minlength=size)
            total = np.bincount(rows, self.weights[seen] * self.values[seen, k], minlength=size)
            last = np.maximum.accumulate(np.where(mass > 0, np.arange(size), 0))
            middles.append((total / np.maximum(mass, 1e-300))[last])
        return middles

    def bin_shares(self):
        """Share of the rows in every bin or state of every column, of those that have a value: list."""
        shares = []
        for j, size in enumerate(self.n_bins):
            seen = self.codes[:, j] >= 0
            mass = np.bincount(self.codes[seen, j], self.weights[seen], minlength=int(size))
            shares.append(mass / max(mass.sum(), 1e-300))
        return shares


class AverageTerms(NamedTuple):
    """Tables of all terms, ln P(c | ...) - ln p_c: singles (n_bins, n_classes) each, pairs of columns; scale of linear terms.

    columns : positions in the table of the columns that have terms; all other fields count them only
    numbers : positions in the raw values of the numeric ones
    kinds and sets name the terms with one weight; indicated : columns with a weight per state; linear : numbers have weights;
    levels : columns whose states are numbers with weights, see `level_scale`; cells : pairs of columns with a weight per cell
    """

    columns: np.ndarray
    numbers: np.ndarray
    numeric: np.ndarray
    shares: np.ndarray
    singles: list
    cut_posteriors: list
    kinds: list
    sets: list
    scale: np.ndarray
    linear: bool
    levels: Sequence
    indicated: list
    gaussian: GaussianTerms | None
    pairs: Sequence = ()
    tables: Sequence = ()
    cells: Sequence = ()


@dataclass(frozen=True)
class AdditiveRows:
    """Rows to be scored: codes of all columns and raw values of the numeric ones."""

    codes: np.ndarray
    values: np.ndarray

    def __len__(self):
        return len(self.codes)
