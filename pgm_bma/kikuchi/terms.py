"""Interaction terms of Kikuchi-Bayes: what a set of attributes says about the class beyond its subsets (KIK eq. 2, rewritten).

With the regions that hold the class C, ln Phi(x, c) = sum of c_R ln P(x_R, c) is the same as a sum over every attribute
set A whose {C} + A lies in a region, of

    t_A(x_A, c) = sum over B in A of (-1)^(size of A - size of B) ln P(x_B, c),

so t_{} = ln P(c), t_{i} = ln P(x_i | c), and a pair's term is its conditional dependence. Terms are additive: a further
region changes none of them (but for prior="marginal"), a missing attribute only takes out those that hold it, and none
overflows as P^c does.

Tables of all sets lie in one flat array (`Layout`); log P comes from one of three priors:
"laplace" (paper): (n + 1) / (N + cells), every region on its own; "consistent": (n + s / cells) / (N + s) with one total mass s;
"marginal": only the maximal regions are estimated (Laplace), smaller ones are the mean of their marginals.
"""

from contextlib import contextmanager
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.numbers.pairs import count_classes_and_pairs
from pgm_bma.foundation.rows.blocks import Rows
from pgm_bma.kikuchi import _kernels as kernels

# cells of all tables together; 50 million numbers are 400 MB
MAX_CELLS = 50_000_000
MAX_SETS = 2**13  # subsets of one region: 13 attributes, some 5 s
_MANY_ROWS = 20_000  # from which on it pays to count all pairs of columns together
_PAIR_CELLS = 10_000_000  # of their tables
COLUMNS = "<columns>"  # where an error names them


def interaction_terms(data, sets, prior="consistent", strength=2.0, leave_one_out=False):
    """Terms of a downward closed family of attribute sets.

    Parameters
    ----------
    data : ClassData
    sets : iterable of tuples of attribute numbers; every subset of a member must be a member (see `downward_closure`)
    leave_one_out : also return the terms with one row less in every cell, for the row's own class

    Returns
    -------
    Terms, with `reduced` None unless `leave_one_out`
    """
    layout = make_layout(sets, data.cardinalities, data.n_classes)
    taken = data.unit if leave_one_out else None
    counts, totals = count_tables(data, layout)
    return terms_of_tables(layout, set_faces(layout), counts, totals, prior, strength, taken)


def terms_of_tables(layout, faces, counts, totals, prior, strength, left_out=None):
    """Compute `interaction_terms` from counts and the `faces` of the layout's sets.

    left_out : weight of the row that `reduced` lacks, None for no such terms
    """
    tables = []
    for taken in (0.0,) if left_out is None else (0.0, left_out):
        values = log_tables(counts, totals, layout, prior, strength, taken)
        kernels.subtract_faces(layout.offsets, *faces, values)
        tables.append(values)
    return Terms(layout, counts, totals, tables[0], None if left_out is None else tables[1])


def log_scores(terms, codes, weights=None):
    """Sum of the (weighted) terms at every row: (n_samples, n_classes). Terms with a missing cell are left out."""
    layout = terms.layout
    values = terms.values if weights is None else terms.values * np.repeat(weights, np.diff(layout.offsets))
    scores = np.zeros((len(codes), layout.n_classes))
    kernels.add_scores(as_codes(codes), layout.tables, values, scores)
    return scores


def term_evidence(terms, codes, weights=None):
    """The terms of one row, apart: (n_sets, n_classes); rows of zeros where a cell is missing."""
    layout = terms.layout
    evidence = np.zeros((len(layout.sets), layout.n_classes))
    for t, attributes in enumerate(layout.sets):
        digits = [int(codes[a]) for a in attributes]
        if min(digits, default=0) >= 0:
            start = layout.offsets[t] + layout.n_classes * int(np.dot(digits, layout.strides[t, : len(digits)]))
            evidence[t] = terms.values[start : start + layout.n_classes]
    return evidence if weights is None else evidence * np.asarray(weights)[:, None]


def term_table(terms, t):
    """Table of set number `t`: shape (*cardinalities, n_classes)."""
    return flat_table(terms.values, terms.layout, t)


def flat_table(values, layout, t):
    shape = [*layout.cards[t, : len(layout.sets[t])], layout.n_classes]
    return values[layout.offsets[t] : layout.offsets[t + 1]].reshape(shape)


def attribute_importances(terms, weights, n_features):
    """Mean over the training rows of the standard deviation over the classes of the weighted terms: (n_features,) in nats.

    The term of several attributes counts for each of them in equal parts.
    """
    result = np.zeros(n_features)
    for t, s in enumerate(terms.layout.sets):
        if s and weights[t] != 0 and terms.totals[t] > 0:
            share = flat_table(terms.counts, terms.layout, t).sum(axis=-1) / terms.totals[t]
            result[list(s)] += abs(weights[t]) * float(np.sum(share * term_table(terms, t).std(axis=-1))) / len(s)
    return result


def downward_closure(regions):
    """All subsets of the given attribute tuples, the empty one included, by size and then in order."""
    found = {tuple(sorted(region)) for region in regions}
    closure = set(chain.from_iterable(combinations(r, k) for r in found for k in range(len(r) + 1))) | {()}
    return sorted(closure, key=lambda s: (len(s), s))


def check_regions(regions, cardinalities, n_classes):
    """An error, before anything is built, when the subsets of the regions or their tables are too many."""
    cards = np.asarray(cardinalities, dtype=float)
    for region in regions:
        subsets, cells = 2.0 ** len(region), float(np.prod(cards[list(region)] + 1)) * n_classes
        if subsets > MAX_SETS or cells > MAX_CELLS:
            raise TablesTooLarge(
                f"a region of {len(region)} attributes has {subsets:.3g} subsets (limit {MAX_SETS}) with {cells:.3g} cells "
                f"(limit {MAX_CELLS:.3g}), that of {COLUMNS}; give smaller regions, or merge rare states",
                region,
            )
    total = sum(2.0 ** len(region) for region in regions)
    if total > 10 * MAX_SETS + 8 * len(regions):
        raise ValueError(
            f"{len(regions)} regions have up to {total:.3g} subsets (limit {10 * MAX_SETS}); give fewer or smaller regions"
        )


class TablesTooLarge(ValueError):
    """A refusal that knows columns by their positions; `naming` puts their names in."""

    def __init__(self, words, columns, names=None):
        self.words, self.columns = words, tuple(columns)
        shown = [repr(names[a]) if names is not None else f"column {a}" for a in self.columns[:8]]
        shown += [f"{len(self.columns) - 8} more"] if len(self.columns) > 8 else []
        super().__init__(
            words.replace(COLUMNS, " and ".join([", ".join(shown[:-1]), *shown[-1:]] if shown[1:] else shown))
        )


@contextmanager
def naming(names):
    """Within this block refusals name the columns."""
    try:
        yield
    except TablesTooLarge as error:
        raise TablesTooLarge(error.words, error.columns, names) from None


def make_layout(sets, cardinalities, n_classes):
    """Return where the tables of `sets` lie in one flat array."""
    sets = tuple(map(tuple, sets))  # of whole numbers
    groups = _by_size(sets)
    width = max(groups, default=0) or 1
    columns = np.full((len(sets), width), -1, dtype=np.int64)
    cards = np.ones((len(sets), width), dtype=np.int64)
    for size, (rows, members) in groups.items():
        columns[rows, :size] = members
        cards[rows, :size] = np.asarray(cardinalities)[members]
    strides = np.ones_like(cards)
    for j in range(width - 2, -1, -1):
        strides[:, j] = strides[:, j + 1] * cards[:, j + 1]
    sizes = np.prod(cards.astype(float), axis=1) * n_classes
    if sizes.sum() > MAX_CELLS:
        worst = sets[int(np.argmax(sizes))]
        raise TablesTooLarge(
            f"the tables of {len(sets)} regions have {sizes.sum():.3g} cells, more than {MAX_CELLS:.3g}; the largest, of "
            f"{COLUMNS}, has {sizes.max():.3g}: merge rare states or give smaller regions",
            worst,
        )
    offsets = state_offsets(sizes.astype(np.int64))
    return Layout(sets, columns, cards, strides, offsets, int(n_classes))


def count_tables(data, layout):
    """Flat weighted counts of every set with the class, and the weight counted per set (complete rows of the set only).

    A layout of one class counts all rows as of one class.
    """
    if isinstance(data.codes, Rows):
        return data.codes.reduce(count_block, data.cardinalities, layout)
    if counts_all_pairs(layout.sets, data.cardinalities, layout.n_classes, len(data.codes)):
        return _count_by_pairs(data, layout)
    counts, totals = np.zeros(int(layout.offsets[-1])), np.zeros(len(layout.sets))
    kernels.count_cells(
        data.codes,
        data.target if layout.n_classes > 1 else np.zeros_like(data.target),
        data.weights,
        layout.tables,
        counts,
        totals,
    )
    return counts, totals


def counts_all_pairs(sets, cardinalities, n_classes, n_rows):
    """Return whether the tables of many pairs of columns are read off one sweep that counts all pairs; nanoseconds, measured."""
    if n_rows < _MANY_ROWS or len(sets) < 2 or max(map(len, sets)) != 2:
        return False
    members = np.unique([a for s in sets for a in s])
    states = float(np.sum(np.asarray(cardinalities)[members]))
    sweep = 0.75 * (len(members) / 3) ** 2 + 8 * len(members)  # of a row, some three columns joined to one
    together = n_rows * sweep + 60 * n_classes * states**2 + 20_000 * len(sets)
    return n_classes * states**2 <= _PAIR_CELLS and together < 4 * n_rows * len(sets)


def _count_by_pairs(data, layout):
    """`count_tables` of sets of at most two columns (see `pair_groups`): the same counts, whole weights to the bit."""
    members = sorted({a for s in layout.sets for a in s})
    cards = np.asarray(data.cardinalities)[members]
    target = data.target if layout.n_classes > 1 else np.zeros_like(data.target)
    codes = data.codes if len(members) == data.codes.shape[1] else data.codes[:, members]
    pairs, classes = count_classes_and_pairs(codes, cards, target, layout.n_classes, data.weights)
    pairs = np.moveaxis(pairs, 0, -1)
    first = dict(zip(members, state_offsets(cards)))
    counts, totals = np.empty(int(layout.offsets[-1])), np.empty(len(layout.sets))
    for t, s in enumerate(layout.sets):
        places = [slice(first[a], first[a] + data.cardinalities[a]) for a in s]
        if len(s) == 2:
            table = pairs[places[0], places[1]]
        else:
            table = pairs[places[0], places[0]].diagonal().T if s else classes
        flat_table(counts, layout, t)[...] = table
        totals[t] = table.sum()
    return counts, totals


def count_block(block, cardinalities, layout):
    """`count_tables` of a block of rows that are visited in passes."""
    data = class_data(block.codes, block.target, cardinalities, layout.n_classes, block.weights)
    return count_tables(data, layout)


def log_tables(counts, totals, layout, prior, strength, taken=0.0):
    """Flat ln P(x_A, c) of every set under a prior.

    taken : rows less in each cell, as seen by a row that is left out (the total is the same for every class and stays)
    """
    if prior == "marginal":
        return _marginal_log_tables(counts, totals, layout, taken)
    sizes = np.diff(layout.offsets)
    # alpha per cell, and the mass that it adds in total
    alpha, mass = (np.ones(len(sizes)), sizes) if prior == "laplace" else (strength / sizes, strength)
    values = np.empty(len(counts))
    kernels.fill_logs(counts, float(taken), alpha, np.log(totals + mass), layout.offsets, values)
    return values


def _marginal_log_tables(counts, totals, layout, taken):
    """Mean of the marginals of the maximal sets; a maximal set is its own Laplace table."""
    inside = {part for s in layout.sets if s for part in combinations(s, len(s) - 1)}
    maximal = [t for t, s in enumerate(layout.sets) if s not in inside]
    sums, holders = np.zeros(len(counts)), np.zeros(len(layout.sets))
    index = {s: t for t, s in enumerate(layout.sets)}
    for m in maximal:
        region = layout.sets[m]
        table = flat_table(counts, layout, m)
        for size in range(len(region) + 1):
            for keep in combinations(range(len(region)), size):
                t = index[tuple(region[k] for k in keep)]
                others = tuple(k for k in range(len(region)) if k not in keep)
                marginal = np.maximum(table.sum(axis=others) - taken, 0.0)
                flat_table(sums, layout, t)[...] += (marginal + table.size / marginal.size) / (totals[m] + table.size)
                holders[t] += 1
    return np.log(sums / np.repeat(holders, np.diff(layout.offsets)))


def set_faces(layout):
    """Every set of a downward closed layout with each of its `faces` (itself without one attribute), attribute by attribute.

    Returns `(owners, faces, inner)`, see the kernel.
    """
    index = {s: t for t, s in enumerate(layout.sets)}
    found = sorted((a, t, j) for t, s in enumerate(layout.sets) for j, a in enumerate(s))
    owners = np.array([t for _, t, _ in found], dtype=np.int64)
    position = np.array([j for _, _, j in found], dtype=np.int64)
    faces = np.array([index[layout.sets[t][:j] + layout.sets[t][j + 1 :]] for _, t, j in found], dtype=np.int64)
    return owners, faces, layout.strides[owners, position] * layout.n_classes


def strict_parts(sets, layout):
    """For every set, its strict subsets that `layout` holds: (pointers, parts, part_strides), see the kernels.

    Sets of one size are looked up together, one choice of positions after the other.
    """
    groups = _by_size(sets)
    width = max(groups, default=0) or 1
    index = {s: t for t, s in enumerate(layout.sets)}
    owners, parts, strides = [], [], []
    for size, (rows, members) in groups.items():
        for keep in (keep for n in range(size) for keep in combinations(range(size), n)):
            found = _positions(members[:, keep], index)
            held = found >= 0
            if not held.any():
                continue
            owners.append(rows[held])
            parts.append(found[held])
            spread = np.zeros((int(held.sum()), width), dtype=np.int64)
            spread[:, keep] = layout.strides[found[held], : len(keep)]
            strides.append(spread)
    if not owners:
        return (
            np.zeros(len(sets) + 1, dtype=np.int64),
            np.zeros(0, dtype=np.int64),
            np.zeros((0, width), dtype=np.int64),
        )
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    pointers = state_offsets(np.bincount(owner, minlength=len(sets)))
    return pointers, np.concatenate(parts)[order], np.concatenate(strides)[order]


def _by_size(sets):
    """{size: (positions of the sets of that size, their members (n, size))} of all sets but empty ones; there may be millions."""
    sizes = np.fromiter(map(len, sets), dtype=np.int64, count=len(sets))
    groups = {}
    for size in np.unique(sizes[sizes > 0]).tolist():
        rows = np.flatnonzero(sizes == size)
        chosen = sets if len(rows) == len(sets) else [sets[k] for k in rows.tolist()]
        flat = np.fromiter(chain.from_iterable(chosen), dtype=np.int64, count=len(rows) * size)
        groups[size] = rows, flat.reshape(len(rows), size)
    return groups


def _positions(members, index):
    """Return where the sets that are the rows of `members` stand, -1 for those that `index` does not hold."""
    if members.shape[1] == 0:
        return np.full(len(members), index.get((), -1))
    if members.shape[1] == 1:  # of a million pairs the members are few, and each is looked up once
        singles = np.array([index.get((a,), -1) for a in range(int(members.max(initial=-1)) + 1)], dtype=np.int64)
        return singles[members[:, 0]]
    return np.array([index.get(part, -1) for part in map(tuple, members.tolist())], dtype=np.int64)


def subtract(values, layout, parts, source, source_layout):
    """In place: the table of every set of `layout` minus the tables of its parts, which lie in `source`."""
    pointers, members, part_strides = parts
    kernels.subtract_parts(
        layout.cards,
        layout.offsets,
        pointers,
        members,
        part_strides,
        source_layout.offsets,
        layout.n_classes,
        source,
        values,
    )


def class_data(codes, target, cardinalities, n_classes, weights=None, unit=1.0, repeats="none"):
    """Bring codes into the form that the kernels want."""
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=float)
    return ClassData(
        as_codes(codes),
        np.asarray(target, dtype=np.int32),
        np.asarray(cardinalities, np.int64),
        int(n_classes),
        weights,
        unit,
        repeats,
    )


def as_codes(codes):
    return np.asfortranarray(codes, dtype=np.int32)


class ClassData(NamedTuple):
    """codes (n_samples, n_features) column-contiguous, -1 = missing; target (n_samples,); weights (n_samples,).

    unit : weight of a row that is left out of its own tables; 1 unless the rows weigh less
    repeats : how repeats of rows were taken, see `folds.weigh_repeats`

    Rows that are visited in passes stand in `codes`, as `Rows` of `ClassBlock`; then `target` is None and `weights` has one entry,
    the sum.
    """

    codes: Any
    target: np.ndarray | None
    cardinalities: np.ndarray
    n_classes: int
    weights: np.ndarray
    unit: float = 1.0
    repeats: str = "none"


class Layout(NamedTuple):
    """Attribute sets and the place of their tables (cells, n_classes) in one flat array; see the kernels."""

    sets: tuple
    columns: np.ndarray
    cards: np.ndarray
    strides: np.ndarray
    offsets: np.ndarray
    n_classes: int

    @property
    def tables(self):
        """Return the arrays that kernels take."""
        return kernels.Tables(self.columns, self.strides, self.offsets, self.n_classes)


class Terms(NamedTuple):
    """Interaction terms with the counts they come from; flat arrays over `layout`."""

    layout: Layout
    counts: np.ndarray
    totals: np.ndarray
    values: np.ndarray
    reduced: np.ndarray | None
