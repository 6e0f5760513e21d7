"""Structures and missing cells sampled together: one sweep of a chain whose state is a structure and a completed table.

The target is p(state, DAG, tables, missing cells | observed cells), for cells that are missing at random. One sweep:

1. score the families that hold a column with missing values again, on the completed table;
2. move the state (order, or layers): an independent draw while the sums over all structures are cheap, else Gibbs relocations;
3. draw parents of every node given the state, and their tables from the Dirichlet posterior on the completed table;
4. draw the missing cells of every incomplete row from that network: those that share families jointly; where their joint states
   are too many, block by block, which has the same law in the long run.

Every step is exact given the rest. Arc posteriors are those of step 2, with the parents (and, where they are summed, the states)
averaged out, not the drawn arcs.
"""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.families import family_counts, state_offsets
from pgm_bma.networks import evidence
from pgm_bma.networks.junction_tree import CliqueTooLarge, build_tree
from pgm_bma.orders.chains._layer_kernels import add_edges
from pgm_bma.orders.chains.gibbs import prepare_lists, walk
from pgm_bma.orders.families.family_table import (
    bounds,
    lgamma_tables,
    prepare_rows,
    regimes,
    scratch,
)
from pgm_bma.orders.gaps import _augment_kernels as kernels
from pgm_bma.orders.structure_average import WEIGHTINGS

EXACT = {"order": 12, "dag": 7}  # most variables for independent draws of the state; their sums are made in every sweep
# sweeps of relocations over all variables per completed table, beyond; on alarm 25 have half the variance of 5 for half more time,
# on child the same variance
MOVES = 10
ROUNDS = 2  # of moves of single arcs and draws of the missing cells, per sweep; scores take longer
TOGGLES = 8  # moves of single arcs in a round
BLOCK = 128  # joint states of missing cells that are drawn together
MAX_CLIQUE = 2**16  # joint states of rows that are drawn afresh, by junction tree
MAX_ROWS_AT_ONCE = 20_000  # on a junction tree
AFRESH = 10  # passes over the blocks, where a clique would be too large
TINY = 1e-300  # least probability of a drawn table: keeps every row possible


class _GapFields(NamedTuple):
    """Fields of a `GapTable`."""

    codes: np.ndarray  # (n_rows, n) int32, -1 = missing
    weights: np.ndarray  # (n_rows,), 1 for incomplete rows
    cardinalities: np.ndarray
    prior: tuple  # arguments of `family_table.bounds`
    # (n_rows, n) bool: where a variable was set by an experiment; see `fixed_order.Training`
    held: np.ndarray | None = None
    soft: bool = False


class GapTable(_GapFields):
    """Rows with missing values and the parameter prior. Complete rows are folded; incomplete ones are repeated as they occur."""

    def sized(self, total):
        """The same with a total pseudo-count of every table (BDeu)."""
        return self._replace(prior=(1.0, total, None))

    @property
    def digested(self):
        """Arrays by which the data are known again."""
        parts = self.codes, self.weights, self.cardinalities
        return parts if self.held is None else (*parts, self.held, np.array(self.soft))

    @cached_property  # every sweep asks for them several times
    def cells(self):
        """(rows, columns) of the missing cells, row by row."""
        return np.nonzero(self.codes < 0)

    @property
    def set_columns(self):
        """Variables that were set in some row."""
        return np.zeros(0, dtype=np.int64) if self.held is None else np.flatnonzero(self.held.any(0))

    def regimes(self, codes, child):
        """[(codes, cardinalities, weights)] of the completed rows that share a table of `child`; see `family_table.regimes`."""
        if self.held is None:
            return [(codes, self.cardinalities, self.weights)]
        return regimes(codes, self.cardinalities, self.weights, self.held[:, child], self.soft)


class Sets(NamedTuple):
    """The sets of variables behind the scores of some families; every set stands behind its own beginnings, which share work."""

    sizes: np.ndarray  # (n_sets,)
    last: np.ndarray  # (n_sets,) last member
    first_pair: np.ndarray  # (n_sets + 1,) pairs of a set of parents and the cardinality of a child
    pair_child: np.ndarray  # (n_pairs,) one such child
    whole: np.ndarray  # (n_families,) set of child and parents
    pair: np.ndarray  # (n_families,)


class Move(NamedTuple):
    """Families that move a chain (a `FamilyLists`, scores of any table), and those that missing values touch."""

    lists: Any
    children: np.ndarray  # (n_families,)
    parts: list  # (child or None, places, `Sets`) of the families that hold a column with missing values, as `_parts` has them
    prior: tuple  # `family_table.lgamma_tables`, the same for every completed table
    weighting: str
    fixed: bool  # the state is given and stays
    priors: dict  # (child, *parents) -> log prior, filled when it is first asked for

    def log_prior(self, child, parents):
        """Log prior of a family, None where the lists do not have it."""
        if not self.priors:
            keys = np.column_stack([self.children, self.lists.sets]).tolist()
            self.priors.update(zip(map(tuple, keys), self.lists.log_prior.tolist()))
        width = self.lists.sets.shape[1]
        found = self.priors.get((child, *parents, *[-1] * (width - len(parents))))
        return None if found is None or found == -np.inf else found


def make_move(lists, gaps, weighting, fixed=False):
    """A `Move` over the families of `lists`."""
    children = np.repeat(np.arange(len(lists.cardinalities)), np.diff(lists.offsets))
    open_columns = np.append((gaps.codes < 0).any(0), False)
    touched = open_columns[children] | open_columns[lists.sets].any(1)
    rows = prepare_rows(np.maximum(gaps.codes, 0), gaps.cardinalities, gaps.weights, lists.max_indegree)
    prior = lgamma_tables(rows, gaps.prior, lists.max_indegree)
    parts = _parts(lists, children, touched, gaps)
    return Move(lists, children, parts, prior, weighting, fixed, {})


def _parts(lists, children, asked, gaps):
    """[(child, places, `Sets`)] of the families marked in `asked`: child None for those that count all rows, then one part for
    every variable that was set in some."""
    alone = gaps.set_columns
    groups = [(None, asked & ~np.isin(children, alone)), *((child, asked & (children == child)) for child in alone)]
    found = [(child, np.flatnonzero(some)) for child, some in groups if some.any()]
    return [(child, at, needed_sets(lists.sets[at], children[at], lists.cardinalities)) for child, at in found]


def needed_sets(parents, children, cardinalities):
    """The `Sets` behind families. parents : (n_families, width) ascending, padded with -1"""
    n, width = len(cardinalities), parents.shape[1] + 1
    kind = np.int64 if (n + 1) ** width < 2**63 else object
    # a set as one number, the first member in the highest digit: sorted, every set stands behind its beginnings
    radix = np.array([(n + 1) ** k for k in range(width)][::-1], dtype=kind)
    above = (parents + 1).astype(kind) @ radix[:-1]
    families = np.column_stack([parents, children])
    families = np.sort(np.where(families < 0, n, families), axis=1)  # padding to the end
    whole = ((families + 1) % (n + 1)).astype(kind) @ radix
    distinct = found = np.unique(np.concatenate([above, whole, np.zeros(1, dtype=kind)]))
    for step in radix[::-1][1:]:
        found = np.unique(found // step * step)
        distinct = np.union1d(distinct, found)
    digits = np.column_stack([distinct // step % (n + 1) for step in radix]).astype(np.int64)
    sizes = (digits > 0).sum(1)
    last = digits[np.arange(len(digits)), np.maximum(sizes - 1, 0)] - 1
    cards = np.asarray(cardinalities)[children]
    owner = np.searchsorted(distinct, above)
    pairs = owner * (cards.max(initial=0) + 1) + cards
    _, first, pair = np.unique(pairs, return_index=True, return_inverse=True)
    first_pair = np.searchsorted(owner[first], np.arange(len(distinct) + 1))
    return Sets(sizes, last, first_pair, children[first], np.searchsorted(distinct, whole), pair)


def first_filling(gaps, rng, alike=False):
    """(n_cells,) states of the missing cells, drawn from what their columns hold: each alone, or `alike`: at the same quantile as a
    cell that is seen in the row. So chains begin on both sides, with columns that depend too little and too much."""
    rows, columns = gaps.cells
    cards, n = gaps.cardinalities, gaps.codes.shape[1]
    bounds = np.ones((n, int(cards.max(initial=1)) + 1))  # cumulated shares of the states of every column
    for column in range(n):
        seen, card = gaps.codes[:, column] >= 0, int(cards[column])
        shares = np.bincount(gaps.codes[seen, column], gaps.weights[seen], minlength=card) + 1.0 / card
        bounds[column, : card + 1] = np.append(0.0, np.cumsum(shares) / shares.sum())
    quantiles = rng.random(len(rows))
    if alike:
        seen = gaps.codes >= 0
        chosen = np.argmax(rng.random(seen.shape) * seen, axis=1)
        state = np.maximum(gaps.codes[np.arange(len(seen)), chosen], 0)
        low, high = bounds[chosen, state], bounds[chosen, state + 1]
        own = np.where(seen.any(1), low + rng.random(len(seen)) * (high - low), rng.random(len(seen)))
        quantiles = own[rows]
    return np.minimum((quantiles[:, None] >= bounds[columns, 1:]).sum(1), cards[columns] - 1).astype(np.int32)


def completed(gaps, filled):
    """Return complete codes (n_rows, n)."""
    codes = gaps.codes.copy()
    codes[gaps.cells] = filled
    return codes


def score(move, gaps, codes, log_marginal):
    """Return (n_families,) log marginal likelihoods on completed codes; `log_marginal`: those of complete families, or is None."""
    parts, n_families = move.parts, len(move.children)
    if log_marginal is None:
        log_marginal = np.zeros(n_families)
        if sum(len(places) for _, places, _ in parts) < n_families:
            parts = _parts(move.lists, move.children, np.ones(n_families, dtype=bool), gaps)
    log_marginal = log_marginal.copy()
    everything = [(codes, gaps.cardinalities, gaps.weights)]
    for child, places, sets in parts:
        tables = everything if child is None else gaps.regimes(codes, child)
        log_marginal[places] = sum(_score_sets(move, sets, *rows) for rows in tables)
    return log_marginal


def _score_sets(move, sets, codes, cardinalities, weights):
    max_indegree = move.lists.max_indegree
    rows = prepare_rows(codes, cardinalities, weights, max_indegree)
    data = rows.bits, rows.first_value, rows.codes, rows.weights, cardinalities
    by_cells, by_parents = np.zeros(len(sets.sizes)), np.zeros(len(sets.pair_child))
    n_levels = sets.sizes.max() + 1  # one more than are split: the largest sets are only counted
    space = scratch(rows, max_indegree, n_levels)
    kernels.score_sets(data, move.prior, sets[:4], rows.bits.shape[1] > 0, space, by_cells, by_parents)
    return by_cells[sets.whole] - by_parents[sets.pair]


def sweep(move, gaps, chain):
    """One sweep; `chain` (an `augmented_chains.AugmentedChain`) is changed in place. Returns a `Swept`."""
    codes = completed(gaps, chain.filled)
    chain.log_marginal = score(move, gaps, codes, chain.log_marginal)
    lists = move.lists._replace(log_marginal=chain.log_marginal)
    edges, log_score, prepared = _move_state(move, lists, chain)
    parents = _draw_parents(move, prepared, lists, chain)
    for _ in range(ROUNDS):
        chain.filled, cut = redraw(move, gaps, codes, parents, chain)
        chain.cut += cut / ROUNDS
        codes[gaps.cells] = chain.filled
    chain.step += 1
    return Swept(edges, log_score)


def redraw(move, gaps, codes, parents, chain):
    """The result of `draw_cells` from tables drawn given a structure and the completed rows, after moves of single arcs."""
    rng = chain.rng
    if len(chain.pairs) and move.weighting == "order" and gaps.held is None:
        position = np.argsort(chain.state)
        for pair in rng.choice(len(chain.pairs), TOGGLES, p=chain.shares):
            ends = sorted(chain.pairs[pair].tolist(), key=lambda v: position[v])
            toggle(gaps, codes, parents, move.log_prior, ends, rng)
    network = _network(gaps.cardinalities, parents)
    cards, starts = network[0], network[2]
    held = np.zeros((0, 0), dtype=bool) if gaps.held is None else gaps.held
    counts = np.zeros(starts[-1])
    kernels.count_cells(codes, gaps.weights, held, network, counts)
    by_node = [part.reshape(-1, card) for part, card in zip(np.split(counts, starts[1:-1]), cards)]
    theta, switched = draw_tables(gaps.prior, by_node, rng), {}
    for child in gaps.set_columns if gaps.soft else ():
        some, _, weights = gaps.regimes(codes, child)[1]
        switched[child] = draw_tables(gaps.prior, [family_counts(some, cards, child, parents[child], weights)], rng)
    return draw_cells(gaps, codes, parents, theta, rng, switched, network)


def toggle(gaps, codes, parents, log_prior, pair, rng):
    """Take away or add one arc: a Metropolis move with the missing cells around it, all tables summed out.

    `codes` (completed rows) and `parents` are changed in place.

    pair : (u, v), u before v       log_prior : (v, parents of v, ascending) -> log prior, None where they are not possible

    A table that was completed under an arc supports it, so a chain that draws structures given tables and tables given
    structures keeps an arc, or does without it, for long: where a column that is rarely in one of its states has many missing
    cells, for hundreds of sweeps. Here an arc u -> v is taken away or added given the order and all other arcs, and the missing
    cells of v and of all its parents change on the way (annealed importance sampling; Neal 2001, and Karagiannis and Andrieu
    2013 for moves between models): the old and the new family of v share the likelihood, the new one with a power that rises
    from 0 to 1, and at every power all these cells are drawn once, one by one. The product of the ratios by which the powers
    change the likelihood is accepted or not; the way back draws cells in reverse.
    """
    u, v = pair
    now = parents[v]
    new = tuple(sorted({*now} ^ {u}))
    before, after = log_prior(v, now), log_prior(v, new)
    if before is None or after is None:
        return
    free = {*now, *new, v}
    others = [(c, some) for c, some in enumerate(parents) if c != v and not free.isdisjoint((c, *some))]
    children, families = zip((v, now), (v, new), *others)
    width = max(map(len, families))
    padded = np.array([(*some, *[-1] * (width - len(some))) for some in families], dtype=np.int64)
    if kernels.anneal(
        rng, gaps.codes, codes, gaps.weights, gaps.cardinalities, np.array(sorted(free)), padded, np.array(children),
        tuple(map(float, bounds(*gaps.prior))), after - before, u in new,
    ):  # fmt: skip
        parents[v] = new


def _move_state(move, lists, chain):
    kind, n = WEIGHTINGS[move.weighting], len(lists.cardinalities)
    prepared = prepare_lists(lists)
    if move.fixed:
        edges, squares = np.zeros((n, n)), np.zeros((n, n))
        log_score = add_edges(
            kind.numbers(chain.state), move.weighting == "dag", prepared, np.zeros(n + 1), edges, squares
        )
        return edges, float(log_score), prepared
    if n <= EXACT[move.weighting]:
        sums = kind.sum_all(lists)
        chain.state = kind.draw(sums, 1, chain.rng)[0]
        return kind.edges(sums), float(sums.log_evidence), prepared
    states, scores, edges = walk(kind.gibbs, prepared, chain.state, MOVES, chain.rng)
    chain.state = states[-1].copy()
    return edges / MOVES, float(scores[-1]), prepared


def _draw_parents(move, prepared, lists, chain):
    """Parents of every node, drawn given the state."""
    n = len(lists.cardinalities)
    chosen = np.zeros(n, dtype=np.int64)
    numbers = WEIGHTINGS[move.weighting].numbers(chain.state)
    kernels.draw_parents(chain.rng.random(n), numbers, move.weighting == "dag", prepared, chosen)
    sets = prepared.sets[:, chosen].T
    return [tuple(int(p) for p in row if p < n) for row in sets]


def draw_tables(prior, counts, rng):
    """Flat tables of all nodes, lines drawn from their Dirichlet posteriors.

    prior : arguments of `family_table.bounds`     counts : per node, (n_parent_states, n_states)
    """
    alpha, total = bounds(*prior)
    lines = [np.full(found.shape[0], found.shape[1]) for found in counts]
    shape = np.concatenate([found.ravel() + min(alpha, total / found.size) for found in counts])
    # log of a gamma variable of shape a: that of shape a + 1 times U^(1/a), which does not underflow for small a
    logs = np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(len(shape))) / shape
    starts = state_offsets(np.concatenate(lines))
    lengths = np.diff(starts)
    theta = np.exp(logs - np.repeat(np.maximum.reduceat(logs, starts[:-1]), lengths))
    theta /= np.repeat(np.add.reduceat(theta, starts[:-1]), lengths)
    return np.maximum(theta, TINY)


def draw_cells(gaps, codes, parents, theta, rng, switched=(), network=None):
    """(states of the missing cells, share of the incomplete rows that were drawn in blocks) from a network, given completed codes.

    switched : tables of variables in the rows in which they were set; the others are flat there
    network : of `_network`, where it is at hand
    """
    rows, columns = gaps.cells
    if not len(rows):
        return np.zeros(0, dtype=np.int32), 0.0
    if len(gaps.set_columns):
        gaps, codes, parents, theta = _with_switches(gaps, codes, parents, theta, dict(switched))
        network = None
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    codes, offsets = codes.copy(), np.append(starts, len(rows))
    uniforms, turn = rng.random(len(rows)), rng.integers(2**20)
    network = network or _network(gaps.cardinalities, parents)
    n_cut = kernels.draw_blocks(uniforms, turn, rows[starts], offsets, columns, codes, network, theta, BLOCK)
    return codes[rows, columns], n_cut / len(starts)


def draw_afresh(gaps, parents, theta, rng):
    """States of the missing cells, drawn from a network whatever they were before: by junction tree, else by many passes."""
    rows, columns = gaps.cells
    try:
        tree = build_tree(gaps.cardinalities, parents, np.unique(columns), max_clique_size=MAX_CLIQUE)
    except CliqueTooLarge:
        codes = np.maximum(gaps.codes, 0)
        for _ in range(AFRESH):
            codes[rows, columns], _ = draw_cells(gaps, codes, parents, theta, rng)
        return codes[rows, columns]
    parts = np.split(gaps.codes, range(MAX_ROWS_AT_ONCE, len(gaps.codes), MAX_ROWS_AT_ONCE))
    drawn = [evidence.completions(evidence.plan_rows(tree, some, fold=False), theta, rng) for some in parts]
    return np.concatenate(drawn)[rows, columns].astype(np.int32)


def _network(cardinalities, parents):
    """A network as the kernels want it, see `_augment_kernels.count_cells`."""
    n, width = len(parents), max(map(len, parents))
    padded = np.array([(*some, *[-1] * (width - len(some))) for some in parents], dtype=np.int64).reshape(n, width)
    below: list[list[int]] = [[] for _ in parents]
    for child, some in enumerate(parents):
        for v in some:
            below[v].append(child)
    children = np.array([c for some in below for c in some], dtype=np.int64)
    cards = np.asarray(cardinalities, dtype=np.int64)
    return cards, padded, _table_starts(cards, parents), state_offsets([len(some) for some in below]), children


def _table_starts(cardinalities, parents):
    """(n + 1,) where the flat table of every node starts."""
    cards = np.asarray(cardinalities).tolist()
    return state_offsets([math.prod(cards[v] for v in (*some, c)) for c, some in enumerate(parents)])


def _with_switches(gaps, codes, parents, theta, switched):
    """The rows, completed codes, parents and tables in which every variable that was set somewhere has one more parent: whether it
    was set."""
    n, cards, columns = len(parents), gaps.cardinalities, gaps.set_columns
    tables, parents = np.split(theta, _table_starts(cards, parents)[1:-1]), list(parents)
    for k, child in enumerate(columns.tolist()):
        off = tables[child].reshape(-1, 1, cards[child])
        on = switched[child].reshape(off.shape) if child in switched else np.full_like(off, 1.0 / cards[child])
        tables[child] = np.concatenate([off, on], axis=1).ravel()
        parents[child] = (*parents[child], n + k)
    seen, codes = (np.column_stack([some, gaps.held[:, columns]]).astype(np.int32) for some in (gaps.codes, codes))
    wider = GapTable(seen, gaps.weights, np.append(cards, np.full(len(columns), 2)), gaps.prior)
    flat = np.full(2 * len(columns), 0.5)
    return wider, codes, [*parents, *[()] * len(columns)], np.concatenate([*tables, flat])


class Swept(NamedTuple):
    """Result of one sweep."""

    edges: np.ndarray  # (n, n) arc posteriors given the table
    log_score: float
