"""Search for an augmented naive Bayes structure given (expected or hard) cluster membership.

Paper: SEM (Peña, Lozano, Larrañaga 2000), sections 3 and 5. The score decomposes over attributes, and an attribute has the
cluster and at most one other attribute as parents: all n^2 family scores come from one table of pairs per cluster. The best
structure is then a maximum-weight branching (exact), or what greedy hill climbing from the current structure finds (paper).
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.augmented import _kernels as kernels
from pgm_bma.augmented._expectation_kernels import N_POWERS
from pgm_bma.augmented.expectation import Completion
from pgm_bma.augmented.model import Prior, make_space
from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.numbers.pairs import (
    WIDE,
    PairGroups,
    complete_pair_scores,
    grouped_pair_counts,
    indicators,
    make_pair_groups,
    pair_counts,
    pair_prior,
    pair_scores,
    plan_groups,
    products_are_faster,
)

_GAIN = 1e-9  # smaller gains are rounding
# pairs of states in every cluster: half a GB, and some three times that while they are counted and scored
MAX_PAIR_CELLS = 2**26
MAX_BLOCKED_CELLS = 2**29  # of pairs that are counted some columns at a time: of 500 rows in 3 to 10 s
MAX_POSTERIOR_CELLS = 2**26  # half a GB


def check_pairs(names, cardinalities, n_clusters, in_blocks, n_tables=1):
    """Refuse a search before memory or hours are taken; in_blocks : pairs may be counted some columns at a time."""
    n_states, worst = int(cardinalities.sum()), int(np.argmax(cardinalities))
    in_blocks = in_blocks and n_states > WIDE and n_clusters * n_states * cardinalities[worst] <= MAX_PAIR_CELLS
    limit = MAX_BLOCKED_CELLS if in_blocks else MAX_PAIR_CELLS // n_tables
    if n_clusters * n_states**2 > limit:
        raise ValueError(
            f"the {len(names)} columns have {n_states} states together, {names[worst]!r} alone "
            f"{cardinalities[worst]}; the search for structure counts all pairs of them in {n_clusters} clusters, "
            f"{n_clusters * n_states**2:,} cells, and the limit is {limit:,}: select columns first, or merge rare states"
        )


def family_scores(cases, responsibilities, prior=None, layout=None, parameters=None, source=None):
    """Log marginal likelihood of every family: entry [i, j + 1] is attribute i with the cluster and attribute j as parents.

    responsibilities : (n, n_clusters) in the order of `cases`
    layout, parameters : the model that completes missing cells. Without it a pair is judged on the rows that have both cells,
    by its gain over the cluster alone on those rows.
    source : `make_pair_source(cases)`, if at hand
    returns (n_features, n_features + 1); column 0 is the cluster alone, [i, i + 1] is nan
    """
    source = make_pair_source(cases) if source is None else source
    if source.groups is None:
        return _scores_in_blocks(cases, responsibilities, prior)
    pairs = completed_pairs(cases, responsibilities, layout, parameters, source)
    return scores_of_pairs(
        pairs, cases.cardinalities, prior, parameters is None and cases.n_complete < len(cases.codes)
    )


def _scores_in_blocks(cases, responsibilities, prior):
    prior = (Prior() if prior is None else prior).for_scores()
    weights = cases.weights[:, None] * responsibilities
    cells = pair_prior(weights.shape[1], cases.cardinalities, prior.alpha, prior.equivalent_sample_size)
    found = complete_pair_scores(cases.codes, cases.cardinalities, weights, cells)
    return _side_by_side(found.alone, found.with_parent)


def scores_of_pairs(pairs, cardinalities, prior=None, has_gaps=False):
    """`family_scores` from the counts of all pairs; has_gaps : pairs with a missing cell were left out of them."""
    prior = (Prior() if prior is None else prior).for_scores()
    cells = pair_prior(len(pairs), cardinalities, prior.alpha, prior.equivalent_sample_size)
    found = pair_scores(pairs, cardinalities, cells)
    paired = found.with_parent
    if has_gaps:
        paired = found.alone[:, None] + found.with_parent - found.without_parent
    return _side_by_side(found.alone, paired)


def _side_by_side(alone, paired):
    scores = np.column_stack([alone, paired])
    scores[np.arange(len(scores)), np.arange(len(scores)) + 1] = np.nan
    return scores


def make_pair_source(cases):
    """Rows prepared once for pair counts: joined columns of the complete ones, indicators of the others.

    Nothing where all rows are complete and their pairs are better counted and scored some columns at a time.
    """
    n, cards = len(cases.codes), cases.cardinalities
    if cases.n_complete == n and (cards.sum() > WIDE or products_are_faster(n, plan_groups(cards), 1)):
        return PairSource(None, None)
    return _held_source(cases)


def _held_source(cases):
    m = cases.n_complete
    groups = make_pair_groups(cases.codes[:m], cases.cardinalities, products=True)
    return PairSource(groups, indicators(cases.codes[m:], cases.cardinalities) if m < len(cases.codes) else None)


def completed_pairs(cases, responsibilities, layout=None, parameters=None, source=None):
    """Expected counts of every pair of states in every cluster, (n_clusters, n_states, n_states).

    Missing cells are completed by the model; without one, pairs with a missing member are left out.
    """
    source = _held_source(cases) if source is None else source
    weights = cases.weights[:, None] * responsibilities
    m = cases.n_complete
    pairs = grouped_pair_counts(source.groups, weights[:m])
    if m < len(cases.codes):
        pairs += pair_counts(source.flags, weights[m:])
        if parameters is not None:
            _add_missing_pairs(cases, slice(m, None), cases.weights[m:], responsibilities, layout, parameters, pairs)
    return pairs


def _add_missing_pairs(cases, rows, weights, responsibilities, layout, parameters, pairs):
    """Add the expected counts of all pairs with a missing member."""
    for c in range(len(pairs)):
        kernels.missing_pair_counts(
            cases.codes[rows],
            cases.cardinalities,
            layout.parents,
            layout.order,
            layout.offsets,
            state_offsets(cases.cardinalities),
            weights,
            parameters.table,
            np.ascontiguousarray(responsibilities[rows]),
            c,
            pairs[c],
            make_space(cases.cardinalities, len(pairs)),
            np.empty(pairs[c].shape),
        )


def complete(cases, responsibilities, layout, parameters, source):
    """`Completion` of the rows by a model: what expectations over all completions need."""
    k, m, n_states = responsibilities.shape[1], cases.n_complete, int(cases.cardinalities.sum())
    n_cells = (len(cases.codes) - m) * k * n_states**2
    if n_cells > MAX_POSTERIOR_CELLS:
        raise ValueError(
            f"completion='expectation' takes the posteriors of all pairs of cells in {len(cases.codes) - m} rows with missing "
            f"cells, {n_cells:,} numbers, and the limit is {MAX_POSTERIOR_CELLS:,}: pass completion='expected'"
        )
    source = _held_source(cases) if source.groups is None else source
    weights = np.empty((len(cases.codes), N_POWERS, k))
    product = cases.weights[:, None]
    for j in range(N_POWERS):
        product = weights[:, j] = product * responsibilities
    powers = grouped_pair_counts(source.groups, weights[:m].reshape(m, N_POWERS * k))
    powers = powers.reshape(N_POWERS, k, n_states, n_states)
    posteriors = np.empty((len(cases.codes) - m, k, n_states, n_states))
    one = np.ones(1)
    for s, found in enumerate(posteriors):
        row = slice(m + s, m + s + 1)
        found[:] = pair_counts(source.flags[s : s + 1], responsibilities[row])
        _add_missing_pairs(cases, row, one, responsibilities, layout, parameters, found)
        products = found * cases.weights[m + s]
        for power in powers:
            power += products
            products *= found
    shares = np.ascontiguousarray(responsibilities)
    return Completion(
        cases.codes[:m], cases.weights, shares, cases.cardinalities, posteriors, powers, weights.sum(axis=0)
    )


class PairSource(NamedTuple):
    """groups : PairGroups of the complete rows     flags : indicators of the incomplete ones, None when there are none

    Both None: counted some columns at a time."""

    groups: PairGroups | None
    flags: np.ndarray | None


def total_score(scores, parents):
    """Sum of the family scores of a structure."""
    parents = np.asarray(parents)
    return float(scores[np.arange(len(parents)), parents + 1].sum())


def best_structure(scores, parents, search="branching"):
    """The structure to go on with: (n_features,) attribute parents, -1 = none. The current one stays when nothing gains."""
    if search == "hill_climb":
        return hill_climb(scores, parents)[0]
    found = maximum_branching(scores)
    return found if total_score(scores, found) > total_score(scores, parents) + _GAIN else np.asarray(parents)


def maximum_branching(scores):
    """Best structure of all: the maximum-weight branching over the gains score[i, j + 1] - score[i, 0] (Edmonds)."""
    n = len(scores)
    weights = np.zeros((n + 1, n + 1))  # the last node is the root: no parent, no gain
    gains = weights[:n, :n]
    np.subtract(scores[:, 1:].T, scores[:, 0], out=gains)
    with np.errstate(invalid="ignore"):  # a column is never its own parent: nan compares false
        gains[~(gains > _GAIN)] = -np.inf
    parents = maximum_arborescence(weights)
    return np.where(parents == n, -1, parents)


def maximum_arborescence(weights):
    """Parents (n,) of all nodes but the root in the arborescence of highest total weight.

    weights : (n + 1, n + 1), [u, v] for the arc u -> v, -inf where there is none; the last node is the root, and it has an arc
    to every other. They are overwritten. Ties go to the lowest parent.
    """
    m = len(weights)
    best, replaced = np.full(m, -1), np.empty(m)
    integers = np.empty((2, m), dtype=np.int64)
    # one line per contraction: its node, the members of its cycle with their parents in it, and the member through which an arc
    # enters from each outside node and leaves to each
    lines = np.empty((3, m, m), dtype=np.int32)  # most are never touched: contractions are few
    kernels.branch(weights, np.ones(m, dtype=bool), best, integers, lines, np.zeros(m, dtype=np.int8), replaced)
    return best[:-1]


def hill_climb(scores, parents):
    """Greedy search over removals, reversals and additions of one arc.

    The best move is taken, the first found on a tie: children ascending, for each its removal, its reversal, then
    additions by parent ascending. Returns the parents and the moves, tuples ("add" | "remove" | "reverse", parent, child).
    """
    parents = np.array(parents)
    moves: list[tuple] = []
    while True:
        best, best_gain = None, _GAIN
        for move, gain in _moves(scores, parents):
            # 1e-11 relative: equal sums of the same families may differ in the last digit
            if gain > best_gain + 1e-11 * abs(gain) and _is_legal(parents, move):
                best, best_gain = move, gain
        if best is None:
            return parents, moves
        _apply(parents, best)
        moves.append(best)


def _moves(scores, parents):
    n_features = len(parents)
    for child in range(n_features):
        parent = int(parents[child])
        if parent >= 0:
            removal = scores[child, 0] - scores[child, parent + 1]
            yield ("remove", parent, child), removal
            if parents[parent] < 0:
                yield ("reverse", parent, child), removal + scores[parent, child + 1] - scores[parent, 0]
        else:
            for new in range(n_features):
                if new != child:
                    yield ("add", new, child), scores[child, new + 1] - scores[child, 0]


def _is_legal(parents, move):
    """Adding parent -> child closes a cycle when child is above parent. Removal and reversal never do: a reversed arc's old
    parent had none itself, so its chain upward ends at the old child, now a root."""
    kind, node, child = move
    if kind != "add":
        return True
    while node >= 0:
        if node == child:
            return False
        node = parents[node]
    return True


def _apply(parents, move):
    kind, parent, child = move
    parents[child] = parent if kind == "add" else -1
    if kind == "reverse":
        parents[parent] = child


def graph_change(old, new):
    """Arcs added, removed and reversed between two graphs, as lists of (parent, child)."""
    before = {(p, i) for i, ps in enumerate(old) for p in ps}
    after = {(p, i) for i, ps in enumerate(new) for p in ps}
    return {
        "added": sorted(a for a in after - before if a[::-1] not in before),
        "removed": sorted(a for a in before - after if a[::-1] not in after),
        "reversed": sorted(a for a in before - after if a[::-1] in after),
    }
