"""Search for an augmented naive Bayes structure given (expected or hard) cluster membership.

Paper: SEM (Peña, Lozano, Larrañaga 2000), sections 3 and 5. The score decomposes over attributes, and an attribute has the
cluster and at most one other attribute as parents: all n^2 family scores come from one matrix product per cluster. The best
structure is then a maximum-weight branching (exact), or what greedy hill climbing from the current structure finds (paper).
"""

import numpy as np
from scipy.special import gammaln

from . import _augmented_kernels as kernels
from .augmented_naive_bayes import Prior
from .forests import best_forest

_GAIN = 1e-9  # smaller gains are rounding


def one_hot_rows(codes, cardinalities):
    """0/1 matrix (n, total number of states); a missing cell is all zeros."""
    codes = np.asarray(codes)
    starts = state_starts(cardinalities)
    out = np.zeros((len(codes), starts[-1]))
    for i in range(codes.shape[1]):
        seen = np.flatnonzero(codes[:, i] >= 0)
        out[seen, starts[i] + codes[seen, i]] = 1.0
    return out


def state_starts(cardinalities):
    return np.concatenate([[0], np.cumsum(cardinalities)]).astype(np.int64)


def family_scores(cases, responsibilities, prior=None, layout=None, parameters=None, indicators=None):
    """Log marginal likelihood of every family: entry [i, j + 1] is attribute i with the cluster and attribute j as parents.

    responsibilities : (n, n_clusters) in the order of `cases`
    layout, parameters : the model that completes missing cells; needed only when cells are missing
    indicators : `one_hot_rows` of the cases, if at hand
    returns (n_features, n_features + 1); column 0 is the cluster alone, [i, i + 1] is nan
    """
    prior = (Prior() if prior is None else prior).for_scores()
    cards = cases.cardinalities
    n_features, k = len(cards), responsibilities.shape[1]
    indicators = one_hot_rows(cases.codes, cards) if indicators is None else indicators
    scores = np.zeros((n_features, n_features + 1))
    scratch = np.empty_like(indicators)
    for c in range(k):
        pairs = pair_counts(cases, responsibilities, c, layout, parameters, indicators, scratch)
        scores += _scores_of_one_cluster(pairs, cards, k, prior)
    scores[np.arange(n_features), np.arange(n_features) + 1] = np.nan
    return scores


def pair_counts(cases, responsibilities, c, layout, parameters, indicators, scratch=None):
    """Expected counts in cluster c of every pair of states, (n_states, n_states); the diagonal holds the single states."""
    scratch = np.empty_like(indicators) if scratch is None else scratch
    np.multiply(indicators, (cases.weights * responsibilities[:, c])[:, None], out=scratch)
    pairs = indicators.T @ scratch
    m = cases.n_complete
    if m < len(cases.codes):
        kernels.missing_pair_counts(
            cases.codes[m:],
            cases.cardinalities,
            layout.parents,
            layout.order,
            layout.offsets,
            state_starts(cases.cardinalities),
            cases.weights[m:],
            parameters.table,
            np.ascontiguousarray(responsibilities[m:]),
            c,
            pairs,
        )
    return pairs


def _scores_of_one_cluster(pairs, cards, n_clusters, prior):
    """Family scores inside one cluster from its pair counts (n_states, n_states), whose diagonal is the single counts."""
    starts = state_starts(cards)[:-1]
    n_features = len(cards)
    single = np.diagonal(pairs).copy()
    if prior.equivalent_sample_size is None:
        alone = np.full(n_features, float(prior.alpha))
        paired = np.full((n_features, n_features), float(prior.alpha))
        spread = prior.alpha
    else:
        alone = prior.equivalent_sample_size / (n_clusters * cards)
        paired = prior.equivalent_sample_size / (n_clusters * np.outer(cards, cards))
        spread = np.repeat(np.repeat(paired, cards, axis=0), cards, axis=1)
    total = np.add.reduceat(single, starts)
    own = np.add.reduceat(gammaln(single + np.repeat(alone, cards)), starts)
    scores = np.empty((n_features, n_features + 1))
    scores[:, 0] = own - cards * gammaln(alone) + gammaln(cards * alone) - gammaln(cards * alone + total)
    cells = np.add.reduceat(np.add.reduceat(gammaln(pairs + spread), starts, axis=0), starts, axis=1)
    cells -= np.outer(cards, cards) * gammaln(paired)
    # a line per value of parent j; its prior mass r_i alpha_ij depends on the child too, but only through a few values
    line_alpha = cards[:, None] * paired
    lines = np.empty((n_features, n_features))
    for value in np.unique(line_alpha):
        per_parent = np.add.reduceat(gammaln(value) - gammaln(value + single), starts)
        where = line_alpha == value
        lines[where] = np.broadcast_to(per_parent, lines.shape)[where]
    scores[:, 1:] = cells + lines
    return scores


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
    gains = scores[:, 1:] - scores[:, :1]
    with np.errstate(invalid="ignore"):  # a column is never its own parent: nan compares false
        return best_forest(np.where(gains > _GAIN, gains, -np.inf), np.zeros(len(scores)))


def hill_climb(scores, parents):
    """Greedy search over removals, reversals and additions of one arc.

    The best move is taken, the first found on a tie: children ascending, for each its removal, its reversal, then
    additions by parent ascending. Returns the parents and the moves, tuples ("add" | "remove" | "reverse", parent, child).
    """
    parents = np.array(parents)
    moves = []
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


def structure_change(old, new):
    """Arcs added, removed and reversed between two structures, as lists of (parent, child)."""
    before = {(int(p), i) for i, p in enumerate(old) if p >= 0}
    after = {(int(p), i) for i, p in enumerate(new) if p >= 0}
    turned = sorted((p, i) for p, i in before - after if (i, p) in after)
    added = sorted(a for a in after - before if (a[1], a[0]) not in before)
    removed = sorted(a for a in before - after if (a[1], a[0]) not in after)
    return {"added": added, "removed": removed, "reversed": turned}
