"""All log family scores up to an in-degree, once: everything about orders and DAGs is then sums over this table.

ORD eq. 7 and 13. Goes in: codes, cardinalities, weights, priors, arc constraints. Comes out: a `FamilyTable`, in which the
parent sets of a child stand by size and, within a size, in colexicographic order of their positions among the child's
candidates. Compiled in `_family_kernels`.

Chains over any number of variables walk on short lists of parent sets (`FamilyLists`), which are pruned from a full table, or grown
where that is too large. `_list_kernels` says what is dropped and what it costs at most.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations_with_replacement
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.runtime.jobs import MOMENT, map_jobs
from pgm_bma.orders.families import _list_kernels as kernels
from pgm_bma.orders.families._family_kernels import score_families

STRUCTURE_PRIORS = ("mdl", "friedman_koller", "fair", "fair+", "uniform")
MAX_FAMILIES = 10_000_000  # a table of this size takes 160 MB; beyond it lists are grown, and may miss strong sets
MAX_BIT_ROWS = 2_000_000  # rows written out from integer weights, 0.25 MB per state
MAX_CELL_BYTES = 50_000_000  # of the bitsets of the cells of one set of variables
MAX_LGAMMA = 5_000_000  # entries of the lgamma tables


class Scoring(NamedTuple):
    """Families that are allowed, and their priors."""

    max_indegree: int = 3
    alpha: float = 1.0  # K2's pseudo-count per cell
    equivalent_sample_size: float | None = None  # BDeu's total instead
    max_total: float | None = None  # most of a table; where alpha in every cell is more, it is spread evenly
    structure_prior: str = "mdl"  # or another of STRUCTURE_PRIORS
    required: Sequence = ()  # pairs (parent, child) of positions
    forbidden: Sequence = ()
    odds: np.ndarray | None = None  # (n, n) log prior odds of arcs, row parent, which are added to the structure prior
    soft: bool = False  # rows in which a variable was set have a table of their own with the same parents

    @property
    def prior(self):
        """Arguments of `bounds`."""
        return self.alpha, self.equivalent_sample_size, self.max_total


SCORING = Scoring()


def family_table(codes, cardinalities, weights=None, scoring=SCORING, held=None, **changes):
    """Score every family.

    Parameters
    ----------
    codes : (n_samples, n_variables) integers without missing values
    cardinalities : (n_variables,)
    weights : (n_samples,) or None; integers are repetitions, fractions are exact
    scoring : Scoring        changes : fields of it that differ
    held : (n_samples, n_variables) bool or None; rows in which a variable was set do not count in its own families, or under
        `scoring.soft` have a table of their own there

    Returns
    -------
    FamilyTable

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma.orders.families.family_table import family_table, parent_sets
    >>> table = family_table(np.array([[0, 0], [1, 1], [1, 1]]), np.array([2, 2]), max_indegree=1)
    >>> parent_sets(table, 1), table.log_marginal[table.offsets[1] :].round(4)
    ([(), (0,)], array([-2.4849, -1.7918]))
    """
    cardinalities = np.asarray(cardinalities, dtype=np.int64)
    scoring = scoring._replace(**changes)
    scoring = scoring._replace(max_indegree=min(scoring.max_indegree, len(cardinalities) - 1))
    prepared = prepare_rows(codes, cardinalities, weights, scoring.max_indegree)
    table, layout = family_layout(cardinalities, scoring)
    scores = _score(prepared, scoring.prior, table, layout)
    for child in () if held is None else np.flatnonzero(held.any(0)):
        others = [(p, c) for p in range(len(cardinalities)) for c in range(len(cardinalities)) if c not in (p, child)]
        alone = scoring._replace(required=(), forbidden=[*scoring.forbidden, *others])
        small, places = family_layout(cardinalities, alone)
        parts = regimes(codes, cardinalities, weights, held[:, child], scoring.soft)
        prepared = [prepare_rows(rows, cards, mass, scoring.max_indegree) for rows, cards, mass in parts]
        own = np.sum([_score(some, scoring.prior, small, places) for some in prepared], axis=0)
        scores[table.offsets[child] : table.offsets[child + 1]] = own[small.offsets[child] : small.offsets[child + 1]]
    return with_priors(table, scores, scoring)


def regimes(codes, cardinalities, weights, held, soft=False):
    """[(codes, cardinalities, weights)] of the rows that share a table of one child: those in which it was not set and, if its
    interventions are `soft`, those in which it was. held : (n_samples,) bool"""
    found = []
    for rows in (~held, held) if soft else (~held,):
        found.append((np.asarray(codes)[rows], cardinalities, None if weights is None else np.asarray(weights)[rows]))
    return found


def family_layout(cardinalities, scoring):
    """(a `FamilyTable` still without scores, its places as the kernels want them)."""
    n, max_indegree = len(cardinalities), scoring.max_indegree
    table = _layout(cardinalities, _allowed(n, scoring.required, scoring.forbidden, max_indegree), max_indegree)
    local = np.full((n, n), -1, dtype=np.int64)
    for child in range(n):
        k = table.n_candidates[child]
        local[child, table.candidates[child, :k]] = np.arange(k)
    return table, (local, table.offsets, table.n_candidates, binomials(n, max_indegree), max_indegree)


def with_priors(table, log_marginal, scoring):
    """The table with its log marginal likelihoods and priors of structures and arcs; -inf where a required arc is missing."""
    log_prior = _log_prior(table, scoring.structure_prior)
    if scoring.odds is not None:
        children = range(len(table.cardinalities))
        log_prior += np.concatenate([set_odds(scoring.odds[:, child], members(table, child)) for child in children])
    for parent, child in scoring.required:
        start, stop = table.offsets[child], table.offsets[child + 1]
        lacks = np.array([parent not in parents for parents in parent_sets(table, child)])
        log_prior[start:stop][lacks] = -np.inf
    return table._replace(log_marginal=log_marginal, log_prior=log_prior)


def set_odds(odds, sets):
    """(n_sets,) sum of the log odds (n,) over the members of every set, padded with -1."""
    return np.append(odds, 0.0)[sets].sum(1)


def parent_sets(table, child):
    """Parent sets of `child` in the order of the table, as sorted tuples of variables."""
    return [tuple(int(v) for v in row if v >= 0) for row in members(table, child)]


def members(table, child):
    """(n_sets, max_indegree) the parent sets of `child` in a `FamilyTable` or in `FamilyLists`: variables, padded with -1."""
    if not isinstance(table, FamilyTable):
        return table.sets[table.offsets[child] : table.offsets[child + 1]]
    k = int(table.n_candidates[child])
    return np.append(table.candidates[child, :k], -1)[local_sets(k, table.max_indegree)]


@lru_cache(maxsize=64)
def local_sets(n_candidates, max_indegree):
    """(n_sets, max_indegree) positions among the candidates, ascending, padded with -1: by size, then colexicographic."""
    blocks = [np.full((1, max_indegree), -1, dtype=np.int64)]
    block = np.zeros((1, 0), dtype=np.int64)
    for size in range(1, min(max_indegree, n_candidates) + 1):
        # sets of `size` with largest element k: every set of size - 1 below k, which is a prefix of the previous block
        parts = [
            np.column_stack([block[: comb(k, size - 1)], np.full(comb(k, size - 1), k)])
            for k in range(size - 1, n_candidates)
        ]
        block = np.concatenate(parts)
        blocks.append(np.pad(block, ((0, 0), (0, max_indegree - size)), constant_values=-1))
    sets = np.concatenate(blocks)
    sets.flags.writeable = False  # shared by all callers
    return sets


def tie(score):
    """Scores of this size that lie closer together than this are equal: rounding of sums is some 10 units in the last place."""
    return max(1e-8, 64 * np.finfo(float).eps * abs(float(score)))


def n_families(n_variables, n_candidates, max_indegree):
    """Return how many families a table would hold."""
    return n_variables * sum(comb(n_candidates, size) for size in range(max_indegree + 1))


def binomials(n, max_indegree):
    """(n + 1, max_indegree + 2) table of binomial coefficients."""
    return np.array([[comb(i, k) for k in range(max_indegree + 2)] for i in range(n + 1)], dtype=np.int64)


def _allowed(n, required, forbidden, max_indegree):
    """(n, n) allowed[child, parent]; contradictions are errors."""
    allowed = ~np.eye(n, dtype=bool)
    for parent, child in forbidden:
        allowed[child, parent] = False
    for child in range(n):
        wanted = sorted({p for p, c in required if c == child})
        if len(wanted) > max_indegree:
            raise ValueError(
                f"{len(wanted)} arcs into variable {child} are required, but max_indegree={max_indegree}; raise max_indegree"
            )
        for parent in wanted:
            if parent == child or not allowed[child, parent]:
                raise ValueError(f"arc {parent} -> {child} is both required and forbidden")
    return allowed


def _layout(cardinalities, allowed, max_indegree):
    counts = allowed.sum(1)
    candidates = np.full((len(allowed), max(int(counts.max(initial=0)), 1)), -1, dtype=np.int64)
    for child, row in enumerate(allowed):
        candidates[child, : counts[child]] = np.flatnonzero(row)
    sizes = [n_families(1, int(k), max_indegree) for k in counts]
    offsets = state_offsets(sizes)
    empty = np.zeros(0)
    return FamilyTable(cardinalities, max_indegree, candidates, counts.astype(np.int64), offsets, empty, empty)


def _log_prior(table, structure_prior):
    by_size = size_priors(len(table.cardinalities), table.max_indegree, structure_prior)
    widths = [[comb(int(k), size) for size in range(table.max_indegree + 1)] for k in table.n_candidates]
    return np.concatenate([np.repeat(by_size, width) for width in widths])


def size_priors(n, max_indegree, structure_prior):
    """(max_indegree + 1,) log prior of a parent set by its size."""
    sizes = range(max_indegree + 1)
    if structure_prior == "mdl":
        return np.array([-np.log(n * comb(n, size)) for size in sizes])  # ORD eq. 13, read as 1/(n binom(n, size))
    if structure_prior in ("friedman_koller", "fair"):
        return np.array([-np.log(comb(n - 1, size)) for size in sizes])
    if structure_prior == "fair+":
        return np.array([-np.log(comb(n - 1, size) * (size + 1.0) ** 2) for size in sizes])
    if structure_prior == "uniform":
        return np.zeros(max_indegree + 1)
    raise ValueError(f"structure_prior={structure_prior!r} is not one of {', '.join(STRUCTURE_PRIORS)}")


def _score(prepared, prior, table, layout):
    cards, max_indegree = prepared.cardinalities, table.max_indegree
    prior = lgamma_tables(prepared, prior, max_indegree)
    data = prepared.bits, prepared.first_value, prepared.codes, prepared.weights, cards
    scores = np.zeros(table.offsets[-1])
    n, n_levels = len(cards), max_indegree + 1
    space = scratch(prepared, max_indegree, n_levels)
    walk = (
        np.ones((n_levels, n), dtype=bool),
        np.zeros((3, n_levels), dtype=np.int64),
        np.zeros(n + 2, dtype=bool),
        np.zeros(n + 2),
    )
    use_bits, n_sets = prepared.bits.shape[1] > 0, max(int(MOMENT / (n * prepared.codes.shape[1] + 1)), 1)
    depth = score_families(data, prior, layout, use_bits, space, walk, scores, -1, n_sets)
    while depth >= 0:
        depth = score_families(data, prior, layout, use_bits, space, walk, scores, depth, n_sets)
    return scores


def scratch(prepared, max_indegree, n_levels):
    """Space of the kernels that split cells: of the sets of a path, the cells as bits or by row, counts, numbers, products."""
    cards, n_rows, use_bits = prepared.cardinalities, prepared.codes.shape[1], prepared.bits.shape[1] > 0
    widest = np.prod(np.sort(cards)[::-1][:max_indegree], dtype=float)
    max_cells = int(max(min(widest, n_rows), 1))  # of max_indegree variables
    max_split = most_cells(cards, n_rows, max_indegree)  # with the states of one more
    return (
        np.zeros((n_levels, max_cells if use_bits else 1, prepared.bits.shape[1]), dtype=np.uint64),
        np.zeros((n_levels, 1 if use_bits else n_rows), dtype=np.int64),
        np.zeros((n_levels, max_cells)),
        np.zeros(max_split),
        np.zeros(max_split, dtype=np.int64),
        np.ones(n_levels, dtype=np.int64),
        np.ones(n_levels),
    )


def most_cells(cardinalities, n_rows, max_indegree):
    """Most cells of a family: what its parents can have in `n_rows` rows, times the states of the child."""
    cards = np.sort(np.asarray(cardinalities, dtype=float))[::-1]
    parents = np.array(
        [np.prod(np.delete(cards, child)[:max_indegree]) for child in range(min(len(cards), max_indegree + 1))]
    )
    return int((cards[: len(parents)] * np.maximum(np.minimum(parents, n_rows), 1)).max(initial=1))


def bounds(alpha, equivalent_sample_size, max_total=None):
    """(most pseudo-counts per cell, most per table): a cell has the smaller of the first and the second over all cells."""
    if equivalent_sample_size is not None:
        return np.inf, float(equivalent_sample_size)
    return float(alpha), np.inf if max_total is None else float(max_total)


def lgamma_tables(prepared, prior, max_indegree):
    """The parameter prior as the kernels want it: (most per cell, most per table, tables of lgamma or empty, row per child,
    products). prior : arguments of `bounds`

    The rows: per cardinality of a child, what a parent state holds if cells hold `alpha`; then per product of cardinalities what a
    cell of a table with so many cells holds; then what a parent state holds, of so many, if the table is full.
    """
    alpha, most = bounds(*prior)
    cards, total = prepared.cardinalities, prepared.weights.sum()
    distinct = np.unique(cards)
    limited = np.isfinite(most)
    n_products = sum(comb(len(distinct) + size - 1, size) for size in range(max_indegree + 2)) if limited else 1
    fits = prepared.integral and (2 * n_products + len(distinct)) * (total + 1) <= MAX_LGAMMA
    products = np.full(1, np.inf)  # no number of cells is past it
    if limited and fits:
        sets = (some for size in range(1, max_indegree + 2) for some in combinations_with_replacement(distinct, size))
        products = np.unique([1.0, *(np.prod(some, dtype=float) for some in sets)])
    tables = np.zeros((0, 0))
    if fits:
        whole = most / products if limited else np.ones(1)
        plain = alpha * distinct if np.isfinite(alpha) else np.zeros(0)
        alphas = np.concatenate([plain, np.minimum(alpha, whole) if limited else [alpha], whole])
        tables = gammaln(alphas[:, None] + np.arange(total + 1)) - gammaln(alphas[:, None])
    child_row = np.searchsorted(distinct, cards) if np.isfinite(alpha) else np.zeros(len(cards), dtype=np.int64)
    return alpha, most, tables, child_row, products


def prepare_rows(codes, cardinalities, weights, max_indegree):
    """Rows as the kernel wants them: bitsets when rows can be counted as bits, else codes with weights."""
    codes = np.asarray(codes)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    integral = bool((weights == np.rint(weights)).all())
    first_value = state_offsets(cardinalities)[:-1]
    n_values = int(cardinalities.sum())
    bits = np.zeros((n_values, 0), dtype=np.uint64)
    if integral and _bits_pay(cardinalities, len(codes), weights.sum(), max_indegree):
        codes = np.repeat(codes, weights.astype(np.int64), axis=0)
        weights = np.ones(len(codes))
        bits = _bitsets(codes, first_value, n_values)
    # one column after another: with a single row, a transposed array would count as another type and compile again
    codes = np.ascontiguousarray(codes.T, dtype=np.int32)
    return _Prepared(bits, first_value, codes, weights, cardinalities, integral)


def _bits_pay(cardinalities, n_distinct, total, max_indegree):
    """A bitset touches every 64-row word of about r^3 cells, row lists touch every distinct row."""
    typical = float(cardinalities.mean())
    widest = min(np.prod(np.sort(cardinalities)[::-1][:max_indegree], dtype=float), total)
    if total > MAX_BIT_ROWS or widest * total / 8 > MAX_CELL_BYTES:
        return False
    return min(typical**3, total) * typical * total / 64 <= 3.0 * n_distinct or total <= 1000


def _bitsets(codes, first_value, n_values):
    n_words = max(-(-len(codes) // 64), 1)
    rows = np.zeros((n_values, n_words * 64), dtype=np.uint8)
    for column, first in enumerate(first_value):
        rows[first + codes[:, column].astype(np.int64), np.arange(len(codes))] = 1
    return np.packbits(rows, axis=1, bitorder="little").view(np.uint64)


class FamilyTable(NamedTuple):
    """Log scores of all families; those of child i are at ``offsets[i] : offsets[i + 1]`` (see `parent_sets`)."""

    cardinalities: np.ndarray
    max_indegree: int
    candidates: np.ndarray  # (n_variables, most candidates), ascending, padded with -1
    n_candidates: np.ndarray
    offsets: np.ndarray  # (n_variables + 1,)
    log_marginal: np.ndarray  # (n_families,)
    log_prior: np.ndarray  # (n_families,), -inf where a required arc is missing

    @property
    def log_scores(self):
        """log S = log prior + log marginal likelihood, (n_families,)."""
        return self.log_marginal + self.log_prior


class _Prepared(NamedTuple):
    bits: np.ndarray
    first_value: np.ndarray
    codes: np.ndarray  # (n_variables, n_rows)
    weights: np.ndarray
    cardinalities: np.ndarray
    integral: bool


# ---------------------------------------------------------------------------------------------------- lists

EPS = 0.01
GROWN = 0.1  # of eps: the share of its best subset below which a set is left out of a grown list
# on 80 binary columns of 320 rows, given an order, an arc was off by .60 with 60, by .04 with 120 and with 200
BEAM = 120


def prune_table(table, eps=EPS):
    """A `FamilyLists` of the sets of a `FamilyTable` without those that have less than eps of any node's sum together."""
    kept, lost = prune_scores(table.log_scores, table.offsets, table.n_candidates, table.max_indegree, eps)
    sets = [members(table, child)[kept[a:b]] for child, (a, b) in enumerate(zip(table.offsets, table.offsets[1:]))]
    return _join(
        table.cardinalities, table.max_indegree, sets, table.log_marginal[kept], table.log_prior[kept], lost, 0
    )


def prune_scores(scores, offsets, n_candidates, max_indegree, eps):
    """(which sets stay (n_families,), bound on the share that every child loses) of scores in the layout of a `FamilyTable`."""
    kept, lost, ranks = np.zeros(len(scores), dtype=bool), np.zeros(len(n_candidates)), {}
    for child, m in enumerate(n_candidates.tolist()):
        here = slice(offsets[child], offsets[child + 1])
        if m not in ranks:
            ranks[m] = binomials(max(m, 1), max_indegree)
        lost[child] = kernels.prune(
            scores[here], local_sets(m, max_indegree), ranks[m], m, max_indegree, eps, kept[here]
        )
    return kept, lost


def choose(lists, kept):
    """The families of `lists` that are marked in `kept` (n_families,)."""
    offsets = np.append(0, np.cumsum(kept))[lists.offsets]
    return lists._replace(
        offsets=offsets, sets=lists.sets[kept], log_marginal=lists.log_marginal[kept], log_prior=lists.log_prior[kept]
    )


def grow_lists(
    codes,
    cardinalities,
    weights=None,
    scoring=SCORING,
    held=None,
    *,
    eps=EPS,
    beam=BEAM,
    n_jobs=None,
    progress=None,
    most_steps=np.inf,
    **changes,
):
    """Score parent sets size by size, extending the best `beam` of every size by every variable; arguments as `family_table`.

    most_steps : of compiled code; where the first variables let expect more, or more than MAX_FAMILIES, a `TooLarge` is raised

    Returns
    -------
    FamilyLists
    """
    cardinalities = np.asarray(cardinalities, dtype=np.int64)
    n = len(cardinalities)
    scoring = scoring._replace(**changes)
    max_indegree = min(scoring.max_indegree, n - 1)

    def prepared(codes, cardinalities, weights):
        rows = prepare_rows(codes, cardinalities, weights, 1)
        data = rows.bits, rows.first_value, rows.codes, rows.weights, cardinalities
        return data, lgamma_tables(rows, scoring.prior, max_indegree)

    everything = prepared(codes, cardinalities, weights)
    log_priors = size_priors(n, max_indegree, scoring.structure_prior)
    words = np.random.default_rng(0).integers(2**64, size=n, dtype=np.uint64)  # names of the variables, not chance
    odds = np.zeros((n, n)) if scoring.odds is None else np.ascontiguousarray(scoring.odds.T)  # row child
    allowed = ~np.eye(n, dtype=bool)
    for parent, child in scoring.forbidden:
        allowed[child, parent] = False

    def one(child):
        first = np.array(sorted({p for p, c in scoring.required if c == child}), dtype=np.int64)
        is_set = held is not None and held[:, child].any()
        rows = prepared(*regimes(codes, cardinalities, weights, held[:, child])[0]) if is_set else everything
        *found, steps = kernels.grow(
            child, first, allowed[child], *rows, log_priors, odds[child], words, beam, GROWN * eps
        )
        made.append((steps, len(found[0])))
        steps, families = n * np.mean(made, axis=0)
        if max(steps / most_steps, families / MAX_FAMILIES) > 1 + 4 / len(made):  # few variables may mislead
            raise TooLarge(steps, families)
        if progress:
            progress(1)
        return found

    made: list[tuple[float, int]] = []  # steps and families
    found = map_jobs(one, [(child,) for child in range(n)], n_jobs, threads=True)
    sets, values, lost = zip(*found)
    sizes = np.concatenate([(some >= 0).sum(1) for some in sets])
    own = np.concatenate([set_odds(odds[child], some) for child, some in enumerate(sets)])
    return _join(cardinalities, max_indegree, sets, np.concatenate(values), log_priors[sizes] + own, lost, beam)


class TooLarge(Exception):
    """Lists would take so many steps and have so many families, the arguments."""


def _join(cardinalities, max_indegree, sets, log_marginal, log_prior, lost, beam):
    offsets = state_offsets([len(some) for some in sets])
    sets = np.concatenate(sets).astype(np.int32)
    return FamilyLists(
        cardinalities, max_indegree, offsets, sets, log_marginal, log_prior, np.array(lost, dtype=float), beam
    )


class FamilyLists(NamedTuple):
    """Log scores of chosen families; those of child i are at ``offsets[i] : offsets[i + 1]``."""

    cardinalities: np.ndarray
    max_indegree: int
    offsets: np.ndarray  # (n_variables + 1,)
    sets: np.ndarray  # (n_families, max_indegree) int32, ascending variables, padded with -1
    log_marginal: np.ndarray  # (n_families,)
    log_prior: np.ndarray  # (n_families,), finite
    # (n_variables,) bound on what dropped sets had, as a share of a node's sum over the kept ones, of all sets scored; with missing
    # values a row for every kept table, NaN where it was not measured; there, what was left out while the chain was on that table
    lost_mass: np.ndarray
    beam: int  # 0: pruned from a full table, in which every set was scored

    @property
    def log_scores(self):
        """log S = log prior + log marginal likelihood, (n_families,)."""
        return self.log_marginal + self.log_prior
