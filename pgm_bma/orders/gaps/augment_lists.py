"""The families that chains over structures and missing cells move over, and what is left out.

Few (ALL_FAMILIES): all of them, and nothing is left out. More (SCORED): lists of those that no subset outweighs on the first
completed tables of any chain. Beyond: lists that every chain grows on its first completed tables. Lists of different chains are
joined, because chains with different lists would have different laws.
Now and then a chain looks at all families on its present table. What counts there in any state and is not in the lists goes into
those of all chains, and what it had in the chain's state is measured: lists that lack much do not converge, and users are warned.
"""

from typing import Any, NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.orders.families.family_table import (
    MAX_FAMILIES,
    FamilyLists,
    choose,
    family_table,
    grow_lists,
    members,
    n_families,
    prune_scores,
    prune_table,
)
from pgm_bma.orders.gaps.augment import completed, first_filling, make_move, sweep
from pgm_bma.orders.structure_average import WEIGHTINGS

ALL_FAMILIES = 3_000  # up to which nothing is left out: 12 variables with three parents
FINE = 30_000  # up to which a tenth as much is left out as beyond: 20 variables with three parents
SCORED = 1_000_000  # up to which a look scores all families: 50 variables with three parents
FIRST = 3  # sweeps over the families that count on the present table, before lists are joined
# Looks at all families: sweeps before the first ones, then between two. A look takes as long as six sweeps on alarm, two on child.
EARLY, LOOKS = (1, 2, 4, 7, 11, 17, 24, 36), 48
PILOT = (2, 3, 3, 4, 4, 4)  # sweeps between two growings of the lists, where all families are more
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

    def move(self, lists):
        """The `Move` over some lists."""
        return make_move(lists, self.gaps, self.weighting, self.fixed)

    def pruned(self, table):
        """(n_families,) which families count on a full table, whatever the state is."""
        return prune_scores(table.log_scores, table.offsets, table.n_candidates, table.max_indegree, self.slack)[0]


def first_lists(families, chains, map_chains, saved):
    """The `Lists` to begin with; every chain gets its first completed table on the way. saved : of a run that goes on, or None"""
    if saved is None:
        for k, chain in enumerate(chains):
            chain.filled = first_filling(families.gaps, chain.rng, alike=k % 2 == 1)
    kind = Lists if families.size <= ALL_FAMILIES else Pruned if families.size <= SCORED else Grown
    return kind(families, chains, map_chains, saved)


class Lists:
    """All families; `move` is the `Move` over them."""

    def __init__(self, families, chains, map_chains, saved):
        self.families = families
        self.move = families.move(all_families(families.table(chains[0].filled)))

    def due(self, step):
        """Return whether a chain looks at all families after `step` sweeps."""
        return False

    def look(self, chain):
        """(n,) what the lists lack on the chain's table, see `lost_on`; what they lack is noted in `chain.wanted`."""
        return np.zeros(len(chain.state))

    def lost(self, chain, held, table):
        """`lost_on` of the chain's state."""
        weighting = self.families.weighting
        return lost_on(held, table, WEIGHTINGS[weighting].numbers(chain.state), weighting == "dag")

    def grow(self, chains, map_chains, judged):
        """Add what the chains have wanted; judged : whether chains are judged now."""

    def saved(self):
        """Arrays and numbers that a run needs to go on."""
        return {}


class Pruned(Lists):
    """Families that counted on a table that some chain looked at."""

    def __init__(self, families, chains, map_chains, saved):
        self.families = families
        table = families.table(chains[0].filled)
        self.everything = _everything(table)
        if saved is None:
            found = map_chains(self._walk, [(chain,) for chain in chains])
            self._set(np.logical_or.reduce(found), chains)
        else:
            listed = np.unpackbits(saved["listed"], count=len(table.log_prior)).astype(bool)
            self.listed, self.move = listed, families.move(choose(self.everything, listed))

    def _walk(self, chain):
        listed = np.zeros(len(self.everything.log_prior), dtype=bool)
        for _ in range(FIRST):
            listed |= self.families.pruned(self.families.table(chain.filled))
            chain.log_marginal = None
            sweep(self.families.move(choose(self.everything, listed)), self.families.gaps, chain)
        return listed | self.families.pruned(self.families.table(chain.filled))

    def _set(self, listed, chains):
        self.listed, self.move = listed, self.families.move(choose(self.everything, listed))
        for chain in chains:
            chain.log_marginal, chain.wanted = None, np.zeros(len(np.packbits(listed)), dtype=np.uint8)
        if chains[0].trace.at[0] == 0:
            _begin_anew(chains)

    def due(self, step):
        return step in EARLY or (step > 0 and step % LOOKS == 0)

    def look(self, chain):
        table = self.families.table(chain.filled)
        chain.wanted |= np.packbits(self.families.pruned(table) & ~self.listed)
        return self.lost(chain, self.listed, table)

    def grow(self, chains, map_chains, judged):
        wanted = np.unpackbits(np.bitwise_or.reduce([chain.wanted for chain in chains]), count=len(self.listed))
        if wanted.any():
            self._set(self.listed | wanted.astype(bool), chains)

    def saved(self):
        return {"listed": np.packbits(self.listed)}


class Grown(Lists):
    """Lists grown on the first tables, and on later ones where they lack much or where what they lack cannot be measured."""

    SAVED = ("max_indegree", "beam", "offsets", "sets", "log_prior", "lost_mass")

    def __init__(self, families, chains, map_chains, saved):
        self.families = families
        if saved is None:
            lists = join_lists(map_chains(_pilot, [(families, chain) for chain in chains]))
            _begin_anew(chains)
        else:
            shape, nothing = (families.gaps.cardinalities, saved.pop("max_indegree")), np.zeros(len(saved["sets"]))
            lists = FamilyLists(*shape, log_marginal=nothing, **saved)
        self.move = families.move(lists)

    def due(self, step):
        return self.families.size <= MAX_FAMILIES and step in (1, 12, 48, 192, 768)

    def look(self, chain):
        table = self.families.table(chain.filled)
        return self.lost(chain, held_by(self.move.lists, table), table)

    def grow(self, chains, map_chains, judged):
        last = [chain.trace.lost[-1:] for chain in chains]
        if judged and (not all(map(len, last)) or np.max(last) > LOST):
            more = map_chains(_grow, [(self.families, chain.filled) for chain in chains])
            self.move = self.families.move(join_lists([self.move.lists, *more]))
            for chain in chains:
                chain.log_marginal = None

    def saved(self):
        return {name: getattr(self.move.lists, name) for name in self.SAVED}


def _begin_anew(chains):
    """Sweeps before the first lists do not count."""
    for chain in chains:
        chain.step, chain.cut, chain.log_marginal = 0, 0.0, None


def _pilot(families, chain):
    """Grow a list on the chain's table, walk some sweeps over it, and again: all families of the last rounds."""
    kept: list[FamilyLists] = []
    for count in (*PILOT, 0):
        kept = [*kept, _grow(families, chain.filled)][-ROUNDS:]
        move = families.move(join_lists(kept))
        chain.log_marginal = None
        for _ in range(count):
            sweep(move, families.gaps, chain)
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


def lost_on(held, table, numbers, reach_only):
    """(n,) share of every node's sum that the families outside `held` have on the rows behind a full table, in one state.

    numbers : (n + 1,) positions of the nodes, or layers, as `draw_parents` reads them
    """
    lost, log_scores = np.zeros(len(table.cardinalities)), table.log_scores
    for child in range(len(lost)):
        here = slice(table.offsets[child], table.offsets[child + 1])
        highest = numbers[members(table, child)].max(1, initial=-1)
        allowed = highest == numbers[child] - 1 if reach_only else highest < numbers[child]
        scores, outside = log_scores[here][allowed], ~held[here][allowed]
        shares = np.exp(scores - scores.max(initial=-np.inf))
        lost[child] = shares[outside].sum() / shares.sum()
    return lost


def expected_loss(lost):
    """(n,) what the arcs into every node lose by parent sets left out: mean over (n_looks, n) measured shares, else 0."""
    measured = lost if lost.ndim == 2 else lost[None, :0]
    return measured.mean(0) if len(measured) else np.zeros(lost.shape[-1])
