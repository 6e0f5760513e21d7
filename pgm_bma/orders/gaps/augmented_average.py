"""From a table with missing values to an average over structures and completions: what `fitting.average` is for complete rows.

Chains over structures and missing cells (`augment`) run until their arcs agree: 20 sweeps of burn-in and 20 that count, doubled
again and again. Which families they move over, and what is left out: `augment_lists`.
Every kept state predicts with the weights of its own completed table. Posterior means come from one training table, in which at
most TABLES kept completions are stacked and folded, each row with weight 1 / (number of tables).
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import unfold_incomplete
from pgm_bma.orders.chains.runner import (
    APART,
    ChainRecord,
    Checkpoint,
    Moves,
    all_kept,
    cut_short,
    difference,
    effective_size,
    expected_error,
    new_window,
    run_chains,
    split_r_hat,
)
from pgm_bma.orders.families.family_table import BEAM, EPS, FamilyLists, choose, n_families
from pgm_bma.orders.gaps import augment_lists
from pgm_bma.orders.gaps.augment import (
    AugmentedChain,
    GapTable,
    completed,
    draw_cells,
    draw_tables,
    make_move,
    score,
    sweep,
)
from pgm_bma.orders.structure_average import LOST_MASS, MANY_FAMILIES, WEIGHTINGS, StructureAverage, best_within
from pgm_bma.orders.sums import exact_orders, fixed_order
from pgm_bma.orders.sums.fixed_order import Training

FIRST = 40  # sweeps of the first window, of which half count
ORDER_SWEEPS = 4  # that a sweep over structures and missing cells counts for at most in max_sweeps
# families x rows to which it counts for one: up to 20 columns and 1000 rows, where it takes some 20 ms and chains that need some
# hundred sweeps, as with 30 % missing values, shall have them
ONE_SWEEP = 25_000_000
SHORT = 10  # sweeps before a table is completed once, for the evidence of priors
TABLES = 16  # completed tables behind posterior means; more move no class probability by .001


def gap_table(names, codes, weights, cardinalities, alpha, sample_size, max_total, held=None, soft=False):
    """Rows with missing cells as a `GapTable`; weights of incomplete rows must be whole numbers."""
    n = codes.shape[1]
    if held is not None:  # equal rows of different experiments stay apart
        codes = np.column_stack([codes, held])
    rows, row_weights = unfold_incomplete(names, codes, weights, "missing='drop' or 'state'")
    held = None if held is None else rows[:, n:].astype(bool)
    return GapTable(
        np.ascontiguousarray(rows[:, :n], dtype=np.int32), row_weights, np.asarray(cardinalities, dtype=np.int64),
        (float(alpha), sample_size, max_total), held, soft,
    )  # fmt: skip


def counts_for(gaps, max_indegree):
    """Return how many of `max_sweeps` a sweep over structures and cells of a `GapTable` counts for: by size, not by the clock."""
    n = len(gaps.cardinalities)
    work = n_families(n, n - 1, min(max_indegree, n - 1)) * len(gaps.codes)
    return min(-(-work // ONE_SWEEP), ORDER_SWEEPS)


def augmented_average(gaps, weighting, starts, rngs, families, **run):
    """(average, mixture) of chains over states and completed tables; arguments as in `run_augmented`."""
    found = run_augmented(gaps, weighting, starts, rngs, families, **run)
    return _average(gaps, weighting, found, "mcmc")


def given_augmented(gaps, orders, rngs, families, **run):
    """(average, mixture) over given orders with equal weight, the missing cells sampled given each of them.

    rngs : as many for every order, order after order
    """
    each = len(rngs) // len(orders)
    starts = [order for order in orders for _ in range(each)]
    found = run_augmented(gaps, "order", starts, rngs, families, fixed=True, group=each, **run)
    return _average(gaps, "order", found, "given")


def _average(gaps, weighting, found, method):
    flat = found.filled.reshape(-1, found.filled.shape[2])
    marginal = _marginals(gaps, weighting, found.lists, flat)
    lists = found.lists._replace(log_marginal=marginal.mean(0))
    states = found.states.reshape(len(flat), -1)
    n = len(gaps.cardinalities)
    if method == "mcmc" and n <= exact_orders.AUTO_PREDICTION:
        best = exact_orders.best_dag(lists)
    else:
        best = best_within(lists, states, weighting)
    record = MissingCells(gaps.codes, gaps.weights, found.filled, found.spread, found.by_cells, gaps.held)
    average = StructureAverage(
        lists, stacked(gaps, flat), method, weighting, found.states, found.log_scores, np.full(len(found.states), np.nan),
        found.chains.means.mean(0), np.nan, [tuple(z) for z in best[0]], float(best[1]), found.finished, found.chains, record,
    )  # fmt: skip
    return average, _mixture(average, states, marginal)


def stacked(gaps, filled):
    """One training table of evenly spaced completed tables, each with the weight 1 / (number of them): a `Training`."""
    chosen = filled[np.unique(np.linspace(0, len(filled) - 1, TABLES).round().astype(int))]
    holes, n = (gaps.codes < 0).any(1), gaps.codes.shape[1]
    tables = [completed(gaps, some) for some in chosen]
    if gaps.held is not None:
        tables = [np.column_stack([some, gaps.held]) for some in tables]
    rows = np.concatenate([tables[0][~holes], *(some[holes] for some in tables)])
    weights = np.concatenate([gaps.weights[~holes], np.full(len(rows) - int((~holes).sum()), 1.0 / len(chosen))])
    rows, weights, _ = table.fold(rows, weights)
    held = None if gaps.held is None else rows[:, n:].astype(bool)
    codes = np.asfortranarray(rows[:, :n], dtype=np.int32)
    training = Training(codes, weights, gaps.cardinalities, *gaps.prior)
    return training._replace(held=held, soft=gaps.soft)


def one_completion(gaps, scoring, required):
    """The rows with the missing cells drawn once: a `Training`, from the end of a short chain whose seed is always the same.

    scoring : `family_table.Scoring`        required : arcs, pairs of positions
    """
    rng, kind = np.random.default_rng(0), WEIGHTINGS["order"]
    start = kind.start(len(gaps.cardinalities), rng, required)
    found = run_augmented(gaps, kind.name, [start], [rng], scoring, n_kept=1, max_sweeps=SHORT)
    codes = np.asfortranarray(completed(gaps, found.filled[0, -1]))
    training = Training(codes, gaps.weights, gaps.cardinalities, *gaps.prior)
    return training._replace(held=gaps.held, soft=gaps.soft)


def own_mixture(average):
    """The `Mixture` of an augmented average: every state with the weights of its own table."""
    gaps = gaps_of(average)
    flat = average.gaps.filled.reshape(-1, average.gaps.filled.shape[2])
    marginal = _marginals(gaps, average.weighting, average.table, flat)
    return _mixture(average, average.states.reshape(len(flat), -1), marginal)


def _marginals(gaps, weighting, lists, flat):
    """(n_tables, n_families) log marginal likelihoods of families on completed tables; flat : (n_tables, n_cells)"""
    move = make_move(lists, gaps, weighting)
    marginal, last = np.empty((len(flat), len(move.children))), None
    for k, filled in enumerate(flat):
        last = marginal[k] = score(move, gaps, completed(gaps, filled), last)
    return marginal


def _mixture(average, states, marginal):
    lists = average.table
    before, touching = WEIGHTINGS[average.weighting].masks(states)
    lost = LOST_MASS if len(lists.log_prior) > MANY_FAMILIES else 0.0
    return fixed_order.mixture(lists, average.training, before, touching, lost, marginal + lists.log_prior)


def gaps_of(average):
    """The `GapTable` of an augmented average."""
    training, record = average.training, average.gaps
    codes = np.ascontiguousarray(record.codes, dtype=np.int32)
    return GapTable(codes, record.weights, training.cardinalities, training.prior, record.held, training.soft)


def completed_training(average, state):
    """The `Training` that a kept state was drawn on: its own completed table."""
    gaps = gaps_of(average)
    rows = completed(gaps, average.gaps.filled.reshape(-1, average.gaps.filled.shape[2])[state])
    return average.training._replace(codes=rows, weights=gaps.weights, held=gaps.held)


def draw_completions(average, mix, codes, n_tables, rng):
    """(n_tables, n_rows, n) `codes` with the missing cells drawn: each time from another structure with its own drawn tables."""
    training = average.training
    n_states = len(mix.weights[0])
    structures = rng.permutation(n_states)[np.arange(n_tables) % n_states]
    asked = GapTable(
        np.ascontiguousarray(codes, dtype=np.int32), np.ones(len(codes)), training.cardinalities, training.prior
    )
    tables = []
    for structure in structures:
        dag = fixed_order.draw_dags(mix, [structure], rng)[0]
        parents = [tuple(int(p) for p in row if p >= 0) for row in dag]
        if average.gaps is not None:
            training = completed_training(average, structure)
        theta = draw_tables(training.prior, [training.family_counts(v, z) for v, z in enumerate(parents)], rng)
        start = np.zeros(int((asked.codes < 0).sum()), dtype=np.int32)
        tables.append(completed(asked, draw_cells(asked, start, parents, theta, rng)[0]))
    return np.array(tables).reshape(n_tables, *codes.shape)


class MissingCells(NamedTuple):
    """The table with missing cells behind an average, and how its cells were filled."""

    codes: np.ndarray  # (n_rows, n) int32, -1 = missing
    weights: np.ndarray
    filled: np.ndarray  # (n_chains, n_kept, n_cells) the missing cells, row by row, on which every kept state was drawn
    spread: np.ndarray  # (n, n) standard deviation of the arc posteriors from completed table to completed table
    by_cells: float  # share of sweeps in which cells were drawn one by one
    held: np.ndarray | None = None  # (n_rows, n) bool: where a variable was set by an experiment


# ---------------------------------------------------------------------------------------------------- the chains


def run_augmented(
    gaps, weighting, starts, rngs, scoring, *, fixed=False, group=None, n_kept=30, tol=0.05, max_sweeps=1024, max_time=None,
    eps=EPS, beam=BEAM, checkpoint=None, checkpoint_every=16, fingerprint=None, n_jobs=1, tell=None,
):  # fmt: skip
    """Run one chain per generator until their arcs agree.

    Parameters
    ----------
    `gaps` : `augment.GapTable`
    starts : per chain, (n,) order or layers; they stay under `fixed`
    group : chains that have the same law, one after the other; by default all of them
    scoring : `family_table.Scoring`, with the parameter prior of `gaps`
    tol : of the pooled arcs    max_sweeps : sweeps of a chain; the last window of 40 x 2^k sweeps below it is the last
    checkpoint_every : sweeps between two writes

    Returns
    -------
    AugmentedRun
    """
    families = augment_lists.AugmentedFamilies(gaps, weighting, scoring, fixed, eps, beam)
    nothing = np.zeros(0, dtype=np.int32)
    chains = [AugmentedChain(np.asarray(start, dtype=np.int64), nothing, rng) for start, rng in zip(starts, rngs)]
    moves = AugmentedMoves(families, n_kept, tol, max_sweeps, group or len(chains))
    file = Checkpoint(checkpoint, checkpoint_every, fingerprint)
    stopped = run_chains(moves, chains, file, max_time=max_time, n_jobs=n_jobs, tell=tell)
    return _collect(moves, chains, stopped)


class AugmentedMoves(Moves):
    """Sweeps of `augment.sweep`; group : chains that have the same law."""

    def __init__(self, families, n_kept, tol, max_sweeps, group):
        self.families, self.tol, self.group = families, tol, group
        self.ends = [min(FIRST, max_sweeps)]
        while 2 * self.ends[-1] <= max_sweeps:
            self.ends.append(2 * self.ends[-1])
        self.n_kept = min(n_kept, self.ends[-1] - self.ends[-1] // 2)

    def begin(self, chains, map_chains, saved):
        """Return which families the chains move over."""
        if saved is None:
            self.move = augment_lists.first_move(self.families, chains, map_chains)
        elif saved:
            shape = self.families.gaps.cardinalities, saved.pop("max_indegree")
            nothing = np.zeros(len(saved["sets"]))
            self.move = self.families.move(FamilyLists(*shape, log_marginal=nothing, **saved))
        else:
            self.move = augment_lists.whole_move(self.families, chains[0].filled)

    def saved(self):
        """The lists, where they were grown."""
        names = ("max_indegree", "beam", "offsets", "sets", "log_prior", "lost_mass")
        grown = self.families.size > augment_lists.SCORED
        return {name: getattr(self.move.lists, name) for name in names} if grown else {}

    def block(self, step):
        """A sweep over structures and cells takes long."""
        return 1

    def advance(self, chain, count, first, end):
        """One sweep, added to the window; of the first one, half is burn-in."""
        first = first or end // 2
        table_before = chain.filled
        swept = sweep(self.move, self.families.gaps, chain)
        if chain.now.end != end:
            chain.last, chain.now = chain.now, new_window(first, end, len(swept.edges), self._to_keep(chain))
        if chain.step <= first:
            return
        now = chain.now
        batch, quarter = now.batch(chain.step - 1)
        now.sums[batch] += swept.edges
        now.squares[quarter] += swept.edges**2
        now.counts[batch] += 1
        if (place := now.place(chain.step)) >= 0:
            now.keep(place, state=chain.state, filled=table_before, score=swept.log_score)
            if swept.held is not None:
                now.keep(place, held=np.packbits(swept.held), lost=swept.lost)
            elif place in (0, self.n_kept - 1):  # more would cost more than the sweeps
                lost = augment_lists.missed(self.families, self.move, table_before)
                now.keep(place, lost=np.nan if lost is None else lost)

    def _to_keep(self, chain):
        n, n_families = len(chain.state), len(self.move.children) if self.move.n_candidates is not None else 0
        return {
            "state": np.zeros((self.n_kept, n), dtype=np.int64),
            "filled": np.zeros((self.n_kept, len(chain.filled)), dtype=np.int32),
            "score": np.zeros(self.n_kept),
            "held": np.zeros((self.n_kept, -(-n_families // 8)), dtype=np.uint8),  # families moved over, as bits
            "lost": np.full((self.n_kept, n), np.nan),  # bound on what was left out, by node; NaN: not measured
        }

    def difference(self, chains):
        """Of the last window."""
        last = [chain.last for chain in chains]
        return difference(last) if last[0].length else None

    def settled(self, chains, first):
        """Return whether chains of the same law agree."""
        return settled(self.groups([chain.now for chain in chains]), self.tol)

    def groups(self, windows):
        """Windows of chains with the same law together."""
        return [windows[k : k + self.group] for k in range(0, len(windows), self.group)]

    def adapt(self, chains, map_chains):
        """Lists grow where a measured table wanted more than they have, or none could be measured."""
        if self.families.size <= augment_lists.SCORED:
            return
        lost = np.concatenate([chain.now.kept["lost"] for chain in chains])
        if not (np.nanmax(lost, initial=-1.0) <= augment_lists.LOST) or np.isnan(lost).all():
            self.move = augment_lists.grown_move(self.families, self.move, chains, map_chains)


def settled(groups, tol):
    """Return whether the pooled arcs of every group are expected to be within `tol`."""
    return all(expected_error(windows) < tol for windows in groups)


def _collect(moves, chains, stopped):
    windows = [chain.last if cut_short(chains, stopped) else chain.now for chain in chains]
    if any(not w.kept for w in windows) or not np.logical_and.reduce([w.has for w in windows]).any():
        raise KeyboardInterrupt("interrupted before the first sweeps were done")
    means, groups = np.array([w.mean for w in windows]), moves.groups(windows)
    squares = np.sum([w.squares.sum(0) for w in windows], axis=0) / sum(w.length for w in windows)
    within = np.max([np.ptp([w.mean for w in some], axis=0) for some in groups], axis=0)
    states, filled, scores, held, lost = (all_kept(windows, k) for k in ("state", "filled", "score", "held", "lost"))
    lists, lost = moves.move.lists, lost.reshape(-1, lost.shape[-1])
    if moves.move.n_candidates is not None:
        bits = np.bitwise_or.reduce(held.reshape(-1, held.shape[-1]), axis=0)
        lists = choose(lists, np.unpackbits(bits, count=len(moves.move.children)).astype(bool))
    if not np.isnan(lost).all():
        lists = lists._replace(lost_mass=lost)
    with np.errstate(invalid="ignore"):
        r_hat = np.fmax.reduce([split_r_hat(some) for some in groups])
    record = ChainRecord(
        means, r_hat, effective_size(windows), max(difference(some) for some in groups), int((within > APART).sum()),
        chains[0].step, np.ones((len(chains), 1)), np.zeros((len(chains), 0)), stopped is None and settled(groups, moves.tol),
        max(expected_error(some) for some in groups),
    )  # fmt: skip
    spread = np.sqrt(np.maximum(squares - means.mean(0) ** 2, 0.0))
    by_cells = sum(chain.n_by_cells for chain in chains) / sum(chain.step for chain in chains)
    return AugmentedRun(lists, states, filled, scores, record, spread, by_cells, stopped != "interrupted")


class AugmentedRun(NamedTuple):
    """Result of `run_augmented`."""

    lists: FamilyLists  # those of all kept tables; lost_mass (n_chains * n_kept, n), where it was measured
    states: np.ndarray  # (n_chains, n_kept, n)
    filled: np.ndarray  # (n_chains, n_kept, n_cells) missing cells of the table that each state was drawn on
    log_scores: np.ndarray  # (n_chains, n_kept)
    chains: ChainRecord
    spread: np.ndarray  # (n, n) standard deviation of arc posteriors from table to table
    by_cells: float  # share of sweeps in which cells were drawn one by one
    finished: bool
