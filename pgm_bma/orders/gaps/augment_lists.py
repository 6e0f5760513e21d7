"""The families that chains over structures and missing cells move over, and what is left out.

Few (ALL_FAMILIES): all of them, and nothing is left out. More (SCORED): every sweep scores all of them on its own completed table
and moves over those that no subset outweighs there, so what is left out is small on every table, whatever the chain comes to; up to
FINE, smaller still.
Beyond: lists that every chain grows on its first completed tables, joined, because chains with different lists would have
different laws. They are fixed while sweeps count; where they have missed something, they are grown further between two windows.
"""

from typing import Any, NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.orders.families.family_table import (
    MAX_FAMILIES,
    FamilyLists,
    binomials,
    choose,
    family_table,
    grow_lists,
    local_sets,
    members,
    n_families,
    prune_table,
)
from pgm_bma.orders.gaps import _augment_kernels as kernels
from pgm_bma.orders.gaps.augment import completed, first_filling, make_move, sweep

ALL_FAMILIES = 3_000  # up to which nothing is left out: 12 variables with three parents
# up to which a tenth as much is left out as beyond: 20 variables with three parents. On child a sweep over all families takes
# 22 ms, over those that count 12 ms, by this eps or by ten times that
FINE = 30_000
# up to which every sweep scores all families: 50 variables with three parents. At 51, 1000 rows of three states, a sweep takes
# .23 s, against .07 s over lists, which need 24 sweeps and seven growings of .3 s first: chains of 40 sweeps cost the same
SCORED = 1_000_000
PILOT = (2, 3, 3, 4, 4, 4)  # sweeps between two growings of the lists
ROUNDS = 4  # of growing, the last ones, whose families are kept
SLACK = 0.3  # of eps: what one table drops another may want
LOST = 0.05  # past which lists grow further, and users are warned: arcs of a node move by as much, which is `tol` of complete rows


class AugmentedFamilies(NamedTuple):
    """Settings of the lists: the arguments of `run_augmented` that say which families there are."""

    gaps: Any  # `augment.GapTable`
    weighting: str
    scoring: Any  # `family_table.Scoring`
    fixed: bool
    eps: float
    beam: int

    @property
    def size(self):
        """Return how many there are."""
        n = len(self.gaps.cardinalities)
        return n_families(n, n - 1, min(self.scoring.max_indegree, n - 1))

    @property
    def slack(self):
        """The share of its best subset below which a set is left out on one table."""
        return SLACK * self.eps * (0.1 if self.size <= FINE else 1.0)

    def table(self, filled):
        """The `FamilyTable` of a completed table."""
        gaps = self.gaps
        return family_table(completed(gaps, filled), gaps.cardinalities, gaps.weights, self.scoring, gaps.held)

    def move(self, lists, n_candidates=None):
        """The `Move` over some lists."""
        return make_move(lists, self.gaps, self.weighting, self.fixed, n_candidates, self.slack)


def first_move(families, chains, map_chains):
    """The `Move` to begin with; every chain gets its first completed table on the way."""
    for chain in chains:
        chain.filled = first_filling(families.gaps, chain.rng)
    if families.size > SCORED:
        return families.move(join_lists(map_chains(_pilot, [(families, chain) for chain in chains])))
    return whole_move(families, chains[0].filled)


def whole_move(families, filled):
    """The `Move` over all families."""
    table = families.table(filled)
    if families.size <= ALL_FAMILIES:
        return families.move(all_families(table))
    return families.move(_everything(table), table.n_candidates)


def grown_move(families, move, chains, map_chains):
    """The `Move` over lists that also have what the chains' present tables want."""
    more = map_chains(_grow, [(families, chain.filled) for chain in chains])
    for chain in chains:
        chain.log_marginal = None
    return families.move(join_lists([move.lists, *more]))


def _pilot(families, chain):
    """Grow a list on the chain's table, walk some sweeps over it, and again: all families of the last rounds."""
    kept: list[FamilyLists] = []
    for count in (*PILOT, 0):
        kept = [*kept, _grow(families, chain.filled)][-ROUNDS:]
        move = families.move(join_lists(kept))
        chain.log_marginal = None
        for _ in range(count):
            sweep(move, families.gaps, chain)
    chain.step = chain.n_by_cells = 0
    chain.log_marginal = None
    return join_lists(kept)


def _grow(families, filled):
    if families.size <= MAX_FAMILIES:
        return prune_table(families.table(filled), families.slack)
    gaps = families.gaps
    codes = completed(gaps, filled)
    limits = {"eps": families.slack, "beam": families.beam}
    return grow_lists(codes, gaps.cardinalities, gaps.weights, families.scoring, gaps.held, **limits)


def all_families(table):
    """All possible families of a full table as lists."""
    return choose(_everything(table), table.log_prior > -np.inf)


def _everything(table):
    sets = [members(table, child) for child in range(len(table.cardinalities))]
    return _lists(table, sets, table.log_marginal, table.log_prior, np.zeros(len(sets)), 0)


def join_lists(many):
    """The families that are in any of the lists, in the order of full tables: by size, the last member slowest."""
    first = many[0]
    parts = []
    for child in range(len(first.cardinalities)):
        sets = np.concatenate([members(lists, child) for lists in many])
        priors = np.concatenate([lists.log_prior[lists.offsets[child] : lists.offsets[child + 1]] for lists in many])
        sets, at = np.unique(sets, axis=0, return_index=True)
        sizes, width = (sets >= 0).sum(1), sets.shape[1]
        last_first = np.where(sizes[:, None] > np.arange(width), np.sort(sets, axis=1)[:, ::-1], -1)
        ranked = np.lexsort((*last_first.T[::-1], sizes))
        parts.append((sets[ranked], priors[at[ranked]]))
    sets, priors = zip(*parts)
    lost, log_prior = np.max([lists.lost_mass for lists in many], axis=0), np.concatenate(priors)
    return _lists(first, sets, np.zeros(len(log_prior)), log_prior, lost, first.beam)


def _lists(like, sets, log_marginal, log_prior, lost, beam):
    offsets = state_offsets([len(some) for some in sets])
    sets = np.concatenate(sets).astype(np.int32)
    return FamilyLists(like.cardinalities, like.max_indegree, offsets, sets, log_marginal, log_prior, lost, beam)


def held_by(lists, table):
    """(n_families,) whether `lists` have the families of a full table."""
    radix = (len(table.cardinalities) + 1) ** np.arange(table.max_indegree, dtype=np.int64)  # a set as one number
    return np.concatenate(
        [
            np.isin((members(table, child) + 1) @ radix, (members(lists, child).astype(np.int64) + 1) @ radix)
            for child in range(len(table.cardinalities))
        ]
    )


def lost_on(held, table):
    """(n,) bound on the share of a node's sum that the families outside `held` have on the rows behind a full table."""
    lost, scores = np.zeros(len(table.cardinalities)), table.log_scores
    for child, m in enumerate(table.n_candidates.tolist()):
        here = slice(table.offsets[child], table.offsets[child + 1])
        ranks = binomials(max(m, 1), table.max_indegree)
        sets = local_sets(m, table.max_indegree)
        lost[child] = kernels.lost_share(scores[here], sets, ranks, m, table.max_indegree, held[here])
    return lost


def missed(families, move, filled):
    """(n,) bound on what lists leave out of a completed table; None where nothing is, or where all families are too many."""
    if move.n_candidates is not None or not ALL_FAMILIES < families.size <= MAX_FAMILIES:
        return None
    table = families.table(filled)
    return lost_on(held_by(move.lists, table), table)


def expected_loss(lists):
    """(n,) bound on what the arcs into every node lose by parent sets left out: mean over the measured tables, else 0."""
    measured = np.atleast_2d(lists.lost_mass)
    measured = measured[~np.isnan(measured).any(1)] if lists.lost_mass.ndim == 2 else measured[:0]
    return np.minimum(measured, 1.0).mean(0) if len(measured) else np.zeros(len(lists.cardinalities))
