"""Short lists of parent sets, for chains over any number of variables: pruned from a full table, or grown where that is too large.

Out comes a `FamilyLists`, which everything that reads a `FamilyTable` by its sets (`family_table.members`) reads as well. See
`_list_kernels` for what is dropped and what it costs at most.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.foundation.runtime.parallel import map_jobs
from pgm_bma.orders.families import _list_kernels as kernels
from pgm_bma.orders.families.family_table import (
    SCORING,
    binomials,
    free_rows,
    lgamma_tables,
    local_sets,
    members,
    prepare_rows,
    set_odds,
    size_priors,
)

EPS = 1e-3  # on alarm, arcs from 9,866 of 288,859 sets have the same error as with 1e-6
BEAM = 60


def prune_table(table, eps=EPS):
    """The sets of a `FamilyTable` that no subset outweighs by more than 1 / eps: a `FamilyLists`."""
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
            scores[here], local_sets(m, max_indegree), ranks[m], m, max_indegree, -np.log(eps), kept[here]
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
    **changes,
):
    """Score parent sets size by size, extending the best `beam` of every size by every variable; arguments as `family_table`.

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
        rows = prepared(*free_rows(codes, cardinalities, weights, held, child)) if is_set else everything
        found = kernels.grow(child, first, allowed[child], *rows, log_priors, odds[child], words, beam, -np.log(eps))
        if progress:
            progress(1)
        return found

    found = map_jobs(one, [(child,) for child in range(n)], n_jobs, threads=True)
    sets, values, lost = zip(*found)
    sizes = np.concatenate([(some >= 0).sum(1) for some in sets])
    own = np.concatenate([set_odds(odds[child], some) for child, some in enumerate(sets)])
    return _join(cardinalities, max_indegree, sets, np.concatenate(values), log_priors[sizes] + own, lost, beam)


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
    # (n_variables,) bound on the share of a node's sum that dropped sets had, of all sets scored; of tables with gaps a row for
    # every kept table, NaN where it was not measured; there, what was left out while the chain was on that table
    lost_mass: np.ndarray
    beam: int  # 0: pruned from a full table, in which every set was scored

    @property
    def log_scores(self):
        """log S = log prior + log marginal likelihood, (n_families,)."""
        return self.log_marginal + self.log_prior
