"""Compiled making of family lists: parent sets that no subset of theirs outweighs, taken from a full table or grown.

A set Z whose best subset Z' has score(Z') > score(Z) + log(1/eps) is dropped. Z' is allowed wherever Z is. So in any order the
dropped sets that are held against Z' have at most w(Z') = sum exp(score(Z) - score(Z')) of its weight, and what a node's sum loses
is at most the largest w. `prune` reads a full table; `grow` scores sets size by size: the best
`beam` sets of a size are extended by every variable. Sets are known by the XOR of random words of their members.
"""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.families._family_kernels import _log_rising, by_cell, by_parent_state, popcount

SPARSE = 4  # cells for a row, past which most are empty


@compiled
def prune(scores, sets, binomials, m, max_indegree, log_margin, kept):
    """Mark in `kept` the sets of one child that stay; returns the bound on the share that is lost.

    scores : (n_sets,) log scores by size and colexicographic rank    sets : (n_sets, max_indegree) positions, padded with -1
    """
    best = np.empty(scores.size)  # of every set, the best of its kept subsets
    holder = np.empty(scores.size, dtype=np.int64)  # and its place
    shares = np.zeros(scores.size)
    size_start = size_starts(binomials, m, max_indegree)
    for k in range(scores.size):
        below = best_below(sets[k], binomials, size_start, best)
        top = best[below] if below >= 0 else -np.inf
        kept[k] = scores[k] > -np.inf and scores[k] >= top - log_margin
        enter(k, kept[k], scores[k], below, top, best, holder, shares)
    return shares.max()


@compiled
def enter(k, kept, score, below, top, best, holder, shares):
    """Note the best kept subset of set k, and what is lost of it if the set is dropped; below, top : best of its subsets."""
    if below < 0 or (kept and score >= top):
        best[k], holder[k] = score if kept else -np.inf, k
        return
    best[k], holder[k] = top, holder[below]
    if not kept and score > -np.inf:
        shares[holder[k]] += np.exp(score - top)


@compiled
def size_starts(binomials, m, max_indegree):
    """(max_indegree + 2,) where the sets of every size begin."""
    starts = np.zeros(max_indegree + 2, dtype=np.int64)
    for size in range(max_indegree + 1):
        starts[size + 1] = starts[size] + binomials[m, size]
    return starts


@compiled
def best_below(members, binomials, size_start, best):
    """Place of the highest `best` among the subsets with one member less; -1 for the empty set. members : padded with -1"""
    size = 0
    while size < members.size and members[size] >= 0:
        size += 1
    place = np.int64(-1)
    for left_out in range(size):
        rank, taken = size_start[size - 1], 0
        for t in range(size):
            if t != left_out:
                taken += 1
                rank += binomials[members[t], taken]
        if place < 0 or best[rank] > best[place]:
            place = rank
    return place


@compiled
def grow(child, first, allowed, data, prior, log_priors, odds, words, beam, log_margin):
    """The list of one child: (members (n_sets, max_indegree) ascending, padded with -1, log marginal likelihoods, lost share,
    steps that were made).

    first : (k,) members that every set must have    allowed : (n,) variables that may be parents
    data : (bits, first_value, codes, weights, cards) as in `_family_kernels.score_families`
    prior : as in `_family_kernels.score_families`
    log_priors : (max_indegree + 1,) structure prior by size    odds : (n,) log prior odds of every parent
    words : (n,) random uint64
    The share is of the sets that were scored, summed over all of them; sets that were never reached are not in it.
    """
    n, max_indegree = allowed.size, log_priors.size - 1
    room = 64
    members, values = np.full((room, max_indegree), np.int32(-1)), np.empty(room)
    base = np.full((1, max_indegree), np.int32(-1))
    key = np.uint64(0)
    for k in range(first.size):
        base[0, k] = first[k]
        key ^= words[first[k]]
    size = first.size
    keys = np.array([key])
    marginal = np.empty(n)
    values[0] = score_set(child, base[0], size, data, prior)
    members[0] = base[0]
    bests = np.array([values[0] + log_priors[size]])
    for k in range(first.size):
        bests[0] += odds[first[k]]
    empty_best = bests[0]
    count, lost, steps = 1, 0.0, 0.0
    single_best = np.full(n, empty_best)
    while size < max_indegree and keys.size:
        size += 1
        n_bases = keys.size
        ranked = np.argsort(keys)
        sorted_keys = keys[ranked]
        new = np.empty((n_bases * n, 2), dtype=np.int64)  # base and added variable
        new_scores, new_bests, new_values = np.empty(n_bases * n), np.empty(n_bases * n), np.empty(n_bases * n)
        n_new = 0
        wanted = np.empty(n, dtype=np.bool_)
        below = np.empty(n)
        for i in range(n_bases):
            for x in range(n):
                wanted[x] = allowed[x]
            for t in range(size - 1):
                wanted[base[i, t]] = False
            for x in range(n):
                if not wanted[x]:
                    continue
                below[x] = max(bests[i], single_best[x])
                for t in range(size - 1):
                    other = keys[i] ^ words[base[i, t]] ^ words[x]
                    place = np.searchsorted(sorted_keys, other)
                    if place < n_bases and sorted_keys[place] == other:
                        if ranked[place] < i:  # scored before, as an extension of that set
                            wanted[x] = False
                            break
                        below[x] = max(below[x], bests[ranked[place]])
            carried = log_priors[size]
            for t in range(size - 1):
                carried += odds[base[i, t]]
            steps += extend(child, base[i], size - 1, wanted, data, prior, marginal)
            for x in range(n):
                if not wanted[x]:
                    continue
                score = marginal[x] + carried + odds[x]
                if first.size == 0 and size == 1:
                    single_best[x] = max(score, empty_best)
                if score < below[x] - log_margin:
                    lost += np.exp(score - below[x])
                    continue
                new[n_new, 0], new[n_new, 1] = i, x
                new_scores[n_new], new_bests[n_new], new_values[n_new] = score, max(score, below[x]), marginal[x]
                n_new += 1
        while count + n_new > room:
            room *= 2
        if room > values.size:
            more, more_values = np.full((room, max_indegree), np.int32(-1)), np.empty(room)
            more[:count], more_values[:count] = members[:count], values[:count]
            members, values = more, more_values
        for k in range(n_new):
            place, x = 0, new[k, 1]
            while place < size - 1 and base[new[k, 0], place] < x:
                members[count + k, place] = base[new[k, 0], place]
                place += 1
            members[count + k, place] = x
            for t in range(place, size - 1):
                members[count + k, t + 1] = base[new[k, 0], t]
            values[count + k] = new_values[k]
        chosen = np.argsort(-new_scores[:n_new], kind="mergesort")[:beam]
        next_keys = np.empty(chosen.size, dtype=np.uint64)
        next_base = np.empty((chosen.size, max_indegree), dtype=np.int32)
        for k in range(chosen.size):
            next_keys[k] = keys[new[chosen[k], 0]] ^ words[new[chosen[k], 1]]
            next_base[k] = members[count + chosen[k]]
        keys, base, bests = next_keys, next_base, new_bests[chosen]
        count += n_new
    return members[:count].copy(), values[:count].copy(), lost, steps


@compiled
def score_set(child, members, size, data, prior):
    """Log marginal likelihood of one family."""
    _, _, codes, weights, cards = data
    if weights.size == 0:
        return 0.0
    cells, n_cells, product = _cells_of(members, size, codes, cards)
    counts = np.zeros((n_cells, cards[child]))
    for row in range(weights.size):
        counts[cells[row], codes[child, row]] += weights[row]
    a, row_a, b, row_b = _pseudo_counts(child, product, cards, prior)
    total = 0.0
    for c in range(n_cells):
        total -= _log_rising(b, counts[c].sum(), prior[2], row_b)
        for k in range(cards[child]):
            if counts[c, k] > 0.0:
                total += _log_rising(a, counts[c, k], prior[2], row_a)
    return total


@compiled
def _pseudo_counts(child, product, cards, prior):
    """(per cell, its row of the lgamma tables, per parent state, its row) of a family whose parents have `product` states."""
    a, row_a = by_cell(product * cards[child], prior)
    b, row_b = by_parent_state(cards[child], child, product, prior)
    return a, row_a, b, row_b


@compiled
def _cells_of(members, size, codes, cards):
    """(cell of every row under the members, number of cells, product of cardinalities): empty cells have no number."""
    n_rows = codes.shape[1]
    cells = np.zeros(n_rows, dtype=np.int64)
    n_cells, product = np.int64(1), 1.0
    for t in range(size):
        v = members[t]
        product *= cards[v]
        label = np.full(n_cells * cards[v], np.int64(-1))
        n_next = np.int64(0)
        for row in range(n_rows):
            place = cells[row] * cards[v] + codes[v, row]
            if label[place] < 0:
                label[place] = n_next
                n_next += 1
            cells[row] = label[place]
        n_cells = n_next
    return cells, n_cells, product


@compiled
def extend(child, members, size, wanted, data, prior, marginal):
    """marginal[x] = log marginal likelihood of the child with `members` and x, for every wanted x; returns the steps made."""
    bits, first_value, codes, weights, cards = data
    tables = prior[2]
    n_rows, n_words, r = weights.size, bits.shape[1], cards[child]
    if n_rows == 0:
        marginal[:] = 0.0
        return 0.0
    cells, n_cells, product = _cells_of(members, size, codes, cards)
    use_bits = n_words > 0 and n_cells * r * n_words <= 2 * n_rows + 64
    largest, n_wanted = np.int64(1), 0
    for x in range(cards.size):
        if wanted[x]:
            largest = max(largest, cards[x])
            n_wanted += 1
    if not use_bits and n_cells * r * largest > SPARSE * n_rows:
        extend_by_rows(child, cells, n_cells, product, wanted, largest, data, prior, marginal)
        return 4.0 * n_wanted * n_rows
    inside = np.zeros((n_cells * r if use_bits else 1, n_words), dtype=np.uint64)
    held = np.zeros(n_cells * r)
    for row in range(n_rows):
        held[cells[row] * r + codes[child, row]] += weights[row]
    if use_bits:
        for row in range(n_rows):
            inside[cells[row] * r + codes[child, row], row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    counts = np.zeros(n_cells * r * largest)
    by_parents = np.zeros(largest)
    for x in range(cards.size):
        if not wanted[x]:
            continue
        a, row_a, b, row_b = _pseudo_counts(child, product * cards[x], cards, prior)
        total, width = 0.0, cards[x]
        if not use_bits:
            counts[: n_cells * r * width] = 0.0
            for row in range(n_rows):
                counts[(cells[row] * r + codes[child, row]) * width + codes[x, row]] += weights[row]
        for c in range(n_cells):
            by_parents[:width] = 0.0
            for k in range(c * r, c * r + r):
                rest = held[k]
                if rest == 0.0:
                    continue
                for s in range(width):
                    if use_bits and s < width - 1:
                        found, value = np.int64(0), first_value[x] + s
                        for w in range(n_words):
                            found += popcount(inside[k, w] & bits[value, w])
                        number = float(found)
                    elif use_bits:  # the last state takes what is left
                        number = rest
                    else:
                        number = counts[k * width + s]
                    if number > 0.0:
                        total += _log_rising(a, number, tables, row_a)
                        by_parents[s] += number
                        rest -= number
            for s in range(width):
                if by_parents[s] > 0.0:
                    total -= _log_rising(b, by_parents[s], tables, row_b)
        marginal[x] = total
    cells_of_all = 1.0 * n_wanted * n_cells * r * largest
    return (
        cells_of_all * (16.0 + n_words / 16.0) if use_bits else cells_of_all + n_wanted * n_rows
    )  # words: eight at a time


@compiled
def extend_by_rows(child, cells, n_cells, product, wanted, largest, data, prior, marginal):
    """`extend` where most cells are empty: only those that rows are in are read and cleared."""
    _, _, codes, weights, cards = data
    tables, r = prior[2], cards[child]
    label, pairs, n_pairs = np.full(n_cells * r, np.int64(-1)), np.empty_like(cells), np.int64(0)
    for row in range(weights.size):  # cells of the members and the child, numbered as they come
        place = cells[row] * r + codes[child, row]
        if label[place] < 0:
            label[place] = n_pairs
            n_pairs += 1
        pairs[row] = label[place]
    with_child, without = np.zeros(n_pairs * largest), np.zeros(n_cells * largest)
    for x in range(cards.size):
        if not wanted[x]:
            continue
        a, row_a, b, row_b = _pseudo_counts(child, product * cards[x], cards, prior)
        one_a, one_b = _log_rising(a, 1.0, tables, row_a), _log_rising(b, 1.0, tables, row_b)
        total, width = 0.0, cards[x]
        for row in range(weights.size):
            with_child[pairs[row] * width + codes[x, row]] += weights[row]
            without[cells[row] * width + codes[x, row]] += weights[row]
        for row in range(weights.size):
            place = pairs[row] * width + codes[x, row]
            if with_child[place] == 1.0:
                total += one_a
            elif with_child[place] > 0.0:
                total += _log_rising(a, with_child[place], tables, row_a)
            with_child[place] = 0.0
            place = cells[row] * width + codes[x, row]
            if without[place] == 1.0:
                total -= one_b
            elif without[place] > 0.0:
                total -= _log_rising(b, without[place], tables, row_b)
            without[place] = 0.0
        marginal[x] = total
