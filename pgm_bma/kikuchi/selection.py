"""Selection of the regions of a Kikuchi-Bayes model: local loss against the self-loss of the focus (KIK section 5).

A focus {C} + A is tested against the approximation that the regions chosen at lower levels give inside it. Loss and
self-loss are conditional on the attributes, empirical on the left and smoothed on the right; resampling rows inside a
focus is one multinomial draw of its cell counts. The focus is taken when the share of self-losses >= loss is below
`significance_level`. All foci of a level are tested before any is added, so their order does not matter. The foci of a level
are all sets of so many attributes; where these are too many, from three attributes on, they are the regions that the level below
took, each with one attribute more.

Screen: 2 N (self-loss - floor) is close to chi-square with sum over observed x of (classes seen - 1) degrees of
freedom, where `floor` is the loss of the smoothed table itself. Only foci whose chi-square tail lies near the threshold
are resampled.
"""

import hashlib
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from pgm_bma.foundation.rows.blocks import Rows
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.kikuchi import _kernels as kernels
from pgm_bma.kikuchi.terms import (
    Layout,
    count_tables,
    counts_all_pairs,
    downward_closure,
    flat_table,
    interaction_terms,
    log_tables,
    make_layout,
    strict_parts,
    subtract,
)

_CHUNK_CELLS, _CHUNK_ROWS = 4_000_000, 100_000_000
_MAX_CANDIDATES = 2_000_000  # foci of up to three attributes; of more attributes fewer, because each has more subsets
_MAX_COUNTED = 6e9  # rows times groups of a level
_MAX_TESTED = 1e9  # cells of all tables of a level: about a minute
MAX_TAKEN = 20_000  # regions of a level, likewise: more of them are noise that a fit drags along
_MANY_FOCI = 200_000  # of a level, from which on the band of those that are resampled narrows
# the screen decides outside (low * gamma, high * gamma); see benchmarks/speed_kikuchi.py for how often it errs
SCREEN_LOW, SCREEN_HIGH = 0.1, 2.0


def select_regions(data, level, test, cycles="allow", significance_level=0.1):
    """Attribute sets of the initial regions, level by level (KIK algorithm 2).

    Parameters
    ----------
    data : ClassData
    test : function (chosen sets, candidates, size) -> FocusTests, `taken` filled in by its own rule or None
    cycles : "allow"; "gated": significant foci by rising p, skipping those that close a cycle; "table": all foci likewise
    significance_level : gamma; 1 takes every focus

    Returns
    -------
    chosen : list of tuples, maximal sets only; [()] when nothing but the class is left
    tests : list of FocusTests, one per level
    """
    chosen, tests = [()], []
    for size in range(1, min(level, len(data.cardinalities)) + 1):
        candidates = find_candidates(len(data.cardinalities), size, chosen)
        if not candidates:
            break
        check_cells(data, candidates)
        result = test(chosen, candidates, size)
        significant = result.taken if result.taken is not None else result.p < significance_level
        if significance_level >= 1:
            significant = np.ones(len(candidates), dtype=bool)
        order = np.lexsort((-result.z, result.p))
        most = _of_size(MAX_TAKEN, size)
        if size >= 2 and significant.sum() > most and significance_level < 1:
            warn(
                f"{significant.sum()} of {len(candidates)} regions of {size} attributes pass significance_level="
                f"{significance_level}; only the {most} with the lowest p are kept: lower it, or give regions="
            )
            significant[order[significant[order]][most:]] = False
        if size >= 2 and cycles != "allow":
            allowed = order if cycles == "table" else order[significant[order]]
            significant = acyclic_subset(candidates, allowed, chosen)
        chosen = maximal_sets([*chosen, *(candidates[k] for k in np.flatnonzero(significant))])
        tests.append(result._replace(taken=significant))
    return chosen, tests


def find_candidates(n_features, size, chosen):
    """All sets of `size` attributes, or, where they are too many, the chosen sets of one attribute less with one more."""
    limit, n_all = _of_size(_MAX_CANDIDATES, size), comb(n_features, size)
    if n_all <= limit:
        return list(combinations(range(n_features), size))
    smaller = [s for s in chosen if len(s) == size - 1]
    n_larger = len(smaller) * (n_features - size + 1)
    cure = "drop columns that say nothing (level=1 tests them one by one), lower the level or give regions="
    if size < 3 or n_larger > limit:
        means = (
            f"{n_all} groups" if size < 3 else f"{n_all} groups, and {n_larger} that hold a region of level {size - 1},"
        )
        raise ValueError(f"level {size} with {n_features} columns means {means} (limit {limit}); {cure}")
    warn(
        f"level {size} with {n_features} columns means {n_all} groups (limit {limit}): only those are tested that hold a region "
        f"of level {size - 1}, so an interaction of {size} columns without one of {size - 1} of them is not found; {cure}"
    )
    return sorted({tuple(sorted((*s, a))) for s in smaller for a in range(n_features) if a not in s})


def check_cells(data, candidates):
    """Raise an error where the tables of all candidates, which are of one size, would take minutes to fill and to test."""
    size = len(candidates[0])
    n_rows = 0 if isinstance(data.codes, Rows) else len(data.codes)
    if size > 1 and float(n_rows) * len(candidates) > _MAX_COUNTED:
        raise ValueError(
            f"level {size} counts {len(candidates)} groups of columns in {n_rows:,} rows (limit of the product "
            f"{_MAX_COUNTED:.0g}): take a sample of the rows, drop columns that say nothing, lower the level or give regions="
        )
    cells = _n_cells(candidates, data).sum()
    if size > 1 and cells > _MAX_TESTED:
        widest = int(np.max(data.cardinalities))
        raise ValueError(
            f"level {size} tests {len(candidates)} groups of columns, and their tables have {cells:.2g} cells (limit "
            f"{_MAX_TESTED:.0g}); a column has {widest} states: merge rare states, drop columns that say nothing, lower the level "
            "or give regions="
        )


def _n_cells(candidates, data):
    """(n_candidates,) cells of their tables."""
    cards = np.asarray(data.cardinalities, dtype=float)
    return cards[np.asarray(candidates, dtype=np.int64)].prod(axis=1) * data.n_classes


def _of_size(limit, size):
    """A limit on the number of sets, lower where each has more subsets than one of three attributes."""
    return max(limit >> max(size - 3, 0), 1)


def maximal_sets(sets):
    """Those sets that lie in no other one, in order of size and value."""
    inside: set[tuple] = set()
    for s in sets:
        for size in range(len(s)):
            inside.update(combinations(s, size))
    return sorted(set(sets) - inside, key=lambda s: (len(s), s))


def acyclic_subset(candidates, order, chosen):
    """Mask of the candidates taken, one after the other in `order`, while the attribute sets stay without a cycle."""
    from pgm_bma.kikuchi.regions import elimination_order

    taken = np.zeros(len(candidates), dtype=bool)
    regions = [s for s in chosen if len(s) > 1]
    component: dict[int, int] = {}
    neighbours: dict[int, set[int]] = {}
    for region in regions:
        _join(region, component, neighbours)
    for k in order:
        focus = candidates[k]
        if not _may_be_acyclic(focus, component, neighbours):
            continue
        if len(focus) > 2 and elimination_order([*regions, focus])[0] is None:
            continue
        taken[k] = True
        regions.append(focus)
        _join(focus, component, neighbours)
    return taken


def _may_be_acyclic(focus, component, neighbours):
    """Necessary, for pairs also sufficient: linked attributes are neighbours already, or of one third inside the focus."""
    for i, j in combinations(focus, 2):
        linked = _root(i, component) == _root(j, component)
        if linked and len(focus) == 2:
            return False
        if linked and j not in neighbours.get(i, ()):
            between = [k for k in focus if k in neighbours.get(i, ()) and k in neighbours.get(j, ())]
            if not between:
                return False
    return True


def _join(region, component, neighbours):
    for i, j in combinations(region, 2):
        neighbours.setdefault(i, set()).add(j)
        neighbours.setdefault(j, set()).add(i)
        component[_root(i, component)] = _root(j, component)


def _root(node, component):
    while component.get(node, node) != node:
        node = component[node]
    return node


def divergence_tests(data, chosen, candidates, options, progress=None):
    """Loss, self-loss and p of every candidate focus (the criterion of the paper).

    options : SelectionOptions
    """
    n = len(candidates)
    loss, floor, freedom, mean, sd, p = (np.zeros(n) for _ in range(6))
    resampled = np.zeros(n, dtype=bool)
    gamma, width = options.significance_level, min(_MANY_FOCI / max(n, 1), 1.0)
    low, high = gamma * (1 - width * (1 - SCREEN_LOW)), gamma * (1 + width * (SCREEN_HIGH - 1))
    for foci in focus_tables(data, chosen, candidates, options):
        part, layout, focus_totals = foci.part, foci.layout, foci.totals
        focus_losses(foci, loss[part], floor[part], freedom[part])
        with np.errstate(divide="ignore", invalid="ignore"):
            mean[part] = np.where(focus_totals > 0, floor[part] + freedom[part] / (2 * focus_totals), 0.0)
            sd[part] = np.where(focus_totals > 0, np.sqrt(2 * freedom[part]) / (2 * focus_totals), 0.0)
        excess = 2 * focus_totals * (loss[part] - floor[part])
        p[part] = np.where(freedom[part] > 0, chdtrc(np.maximum(freedom[part], 1), np.maximum(excess, 0)), excess <= 0)
        near = (p[part] > low) & (p[part] < high)
        near |= freedom[part] == 0  # a focus that decides the class varies by its smoothing only: no chi-square there
        if gamma >= 1:
            near[:] = False
        if not options.screen:
            near[:] = True
        near &= focus_totals > 0
        for t in np.flatnonzero(near):
            k = part.start + t
            cells = slice(layout.offsets[t], layout.offsets[t + 1])
            shape = -1, layout.n_classes
            counts, own = resampling_order(foci.counts[cells].reshape(shape), foci.smoothed[cells].reshape(shape))
            draws = self_losses(counts, own, options.n_resamples, content_generator(counts))
            p[k], mean[k], sd[k] = tail_share(draws, loss[k]), draws.mean(), draws.std()
            resampled[k] = True
        if progress is not None:
            progress(part.stop - part.start)
    return FocusTests(candidates, loss, mean, sd, p, z_scores(loss, mean, sd), resampled, None)


def focus_tables(data, chosen, candidates, options, leave_one_out=False):
    """Yield the tables of the foci chunk by chunk as `Foci`: counts, own smoothed log P, and log Phi' of the chosen regions."""
    marginal = options.prior == "marginal"
    base = None
    if not marginal:
        base = interaction_terms(data, downward_closure(chosen), options.prior, options.strength, leave_one_out)
    for first, stop in _chunks(candidates, data):
        layout = make_layout(candidates[first:stop], data.cardinalities, data.n_classes)
        counts, totals = count_tables(data, layout)
        own_prior = "laplace" if marginal else options.prior  # a focus on its own is a maximal region
        tables = []
        for taken in (0.0, data.unit) if leave_one_out else (0.0,):
            smoothed = log_tables(counts, totals, layout, own_prior, options.strength, taken)
            local = np.zeros_like(counts)
            if base is None:
                for t, focus in enumerate(layout.sets):
                    flat_table(local, layout, t)[...] = local_approximation(data, chosen, focus, options, taken)
            else:
                source = base.reduced if taken else base.values
                subtract(local, layout, strict_parts(layout.sets, base.layout), source, base.layout)
                np.negative(local, out=local)
            tables += [smoothed, local]
        yield Foci(slice(first, stop), layout, counts, totals, *tables)


def _chunks(candidates, data):
    """Parts of the candidates, all of one size, whose tables and whose counting are done in a moment, so that Ctrl-C is heard."""
    cells = _n_cells(candidates, data)
    n_rows = 0 if isinstance(data.codes, Rows) else len(data.codes)  # in passes every chunk reads all rows
    if counts_all_pairs(candidates, data.cardinalities, data.n_classes, n_rows):
        n_rows = 0  # counted once for all, block by block
    work = np.cumsum(np.maximum(cells / _CHUNK_CELLS, n_rows / _CHUNK_ROWS))
    first = 0
    while first < len(candidates):
        done = work[first - 1] if first else 0.0
        stop = max(int(np.searchsorted(work, done + 1.0, side="right")), first + 1)
        yield first, stop
        first = stop


def local_approximation(data, regions, focus, options, taken=0.0):
    """log Phi'(x_A, c) from the regions (attribute sets that hold the class) cut down to the focus: (*cardinalities, n_classes)."""
    local = downward_closure([tuple(a for a in region if a in focus) for region in regions])
    terms = interaction_terms(data, local, options.prior, options.strength, leave_one_out=bool(taken))
    layout = make_layout([focus], data.cardinalities, data.n_classes)
    table = np.zeros(int(layout.offsets[-1]))
    source = terms.reduced if taken else terms.values
    subtract(table, layout, strict_parts([focus], terms.layout), source, terms.layout)
    if focus in local:
        table -= source[terms.layout.offsets[-2] :]  # the largest set comes last
    return -flat_table(table, layout, 0)


def region_loss(data, regions, focus, options, rng):
    """Loss of the approximation that `regions` give inside one focus, with the self-losses of resamples.

    regions : attribute tuples (each with the class)     focus : attribute tuple
    returns RegionLoss
    """
    focus = tuple(sorted(focus))
    layout = make_layout([focus], data.cardinalities, data.n_classes)
    counts, totals = count_tables(data, layout)
    prior = "laplace" if options.prior == "marginal" else options.prior
    smoothed = log_tables(counts, totals, layout, prior, options.strength)
    local = np.ravel(local_approximation(data, regions, focus, options))
    loss, floor, freedom = np.zeros(1), np.zeros(1), np.zeros(1)
    focus_losses(Foci(slice(0, 1), layout, counts, totals, smoothed, local), loss, floor, freedom)
    draws = self_losses(flat_table(counts, layout, 0), flat_table(smoothed, layout, 0), options.n_resamples, rng)
    return RegionLoss(float(loss[0]), draws)


def focus_losses(foci, loss, floor, freedom):
    """Fill loss, floor and degrees of freedom of every focus (see the kernel)."""
    layout = foci.layout
    kernels.focus_losses(
        foci.counts, foci.totals, foci.smoothed, foci.local, layout.offsets, layout.n_classes, loss, floor, freedom
    )


def self_losses(counts, smoothed, n_resamples, rng):
    """D(P'(C | X) || P(C | X)) of multinomial resamples P' of a table against its smoothed self: (n_resamples,).

    counts, smoothed : (..., n_classes), smoothed = log P(x, c)
    """
    n_classes = counts.shape[-1]
    counts, smoothed = counts.reshape(-1, n_classes), smoothed.reshape(-1, n_classes)
    seen = counts.sum(axis=1) > 0
    counts, smoothed = counts[seen], smoothed[seen]
    if not len(counts) or n_resamples == 0:
        return np.zeros(n_resamples)
    # rows in a resample: at least one of fractional weights, and what fits an integer where weights are huge
    n = min(max(round(counts.sum()), 1), 2**62)
    conditional = smoothed - np.logaddexp.reduce(smoothed, axis=1, keepdims=True)
    filled = np.flatnonzero(counts)
    draws = rng.multinomial(n, counts.ravel()[filled] / counts.sum(), size=n_resamples)
    losses = np.empty(n_resamples)
    kernels.resampled_losses(draws, filled // n_classes, conditional.ravel()[filled], losses)
    return losses / n


def resampling_order(counts, values):
    """Both tables (cells, n_classes) with their entries sorted by count inside a cell, and cells by their counts."""
    inside = np.argsort(counts, axis=1, kind="stable")
    counts, values = np.take_along_axis(counts, inside, axis=1), np.take_along_axis(values, inside, axis=1)
    cells = np.lexsort(counts.T)
    return counts[cells], values[cells]


def content_generator(counts):
    """A generator that is seeded by the numbers of an array."""
    digest = hashlib.blake2b(np.ascontiguousarray(counts, dtype=np.float64).tobytes(), digest_size=16).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))


def tail_share(draws, loss):
    """Share of self-losses >= loss; equal up to rounding counts as equal."""
    return float(np.mean(draws >= loss - 1e-12)) if len(draws) else np.nan


def z_scores(loss, mean, sd):
    """(loss - mean self-loss) / sd; a self-loss that does not vary gives +-inf, or 0 when the loss equals it."""
    difference = loss - mean
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sd > 0, difference / sd, np.where(difference == 0, 0.0, np.inf * difference))


class FocusTests(NamedTuple):
    """Tests of one level: sets (n,), and arrays (n,) loss, mean and sd of the self-loss, p, z, resampled, taken."""

    sets: list
    loss: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    p: np.ndarray
    z: np.ndarray
    resampled: np.ndarray
    taken: np.ndarray | None


class Foci(NamedTuple):
    """Tables of a chunk of foci, flat over `layout`: counts, their log P, log Phi' of the chosen regions.

    The `reduced` tables have one row less in every cell.
    """

    part: slice
    layout: Layout
    counts: np.ndarray
    totals: np.ndarray
    smoothed: np.ndarray
    local: np.ndarray
    smoothed_reduced: np.ndarray | None = None
    local_reduced: np.ndarray | None = None


class SelectionOptions(NamedTuple):
    """prior and its total mass, the threshold gamma, resamples per focus, and whether the chi-square screen may decide."""

    prior: str = "consistent"
    strength: float = 2.0
    significance_level: float = 0.1
    n_resamples: int = 100
    screen: bool = True


class RegionLoss(float):
    """The loss of an approximation inside a focus, in nats, with the self-losses of the focus' resamples."""

    self_losses: np.ndarray
    mean_self_loss: float
    p: float
    z: float

    def __new__(cls, loss: float, self_losses: np.ndarray) -> "RegionLoss":
        value = super().__new__(cls, loss)
        value.self_losses = self_losses
        value.mean_self_loss = float(np.mean(self_losses)) if len(self_losses) else np.nan
        value.p = tail_share(self_losses, loss)
        spread = float(np.std(self_losses)) if len(self_losses) else np.nan
        value.z = float(z_scores(np.float64(loss), np.float64(value.mean_self_loss), np.float64(spread)))
        return value

    def __getnewargs__(self):
        return float(self), self.self_losses
