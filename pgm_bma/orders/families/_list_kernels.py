"""Compiled making of family lists: parent sets that their subsets do not outweigh, taken from a full table or grown.

A dropped set Z is charged to one of its kept subsets, as a share of that one's weight. The subset is allowed wherever Z is. So the
largest total that a set is charged with bounds what all dropped sets together have of the sum over the kept ones, whatever the
variables before a node are. `prune` reads a full table and charges no set with more than eps. Sets go by size and, within a size,
those first that have least of their best subset: most can go so. `grow` scores sets size by size: the best `beam` sets of a size
are extended by every variable. It drops what has less than a given share of its best subset, and returns what was charged. Sets
are known there by the XOR of random words of their members.
"""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.orders.families._family_kernels import _log_rising, by_cell, by_parent_state, popcount

SPARSE = 4  # cells for a row, past which most are empty


@compiled
def prune(scores, sets, binomials, m, max_indegree, eps, kept):
    """Mark in `kept` the sets of one child that stay; returns the bound on what is lost, a share of what stays.

    scores : (n_sets,) log scores by size and colexicographic rank    sets : (n_sets, max_indegree) positions, padded with -1
    """
    best = np.empty(scores.size)  # of every set, the best of its kept subsets
    holder = np.empty(scores.size, dtype=np.int64)  # and its place
    charged = np.zeros(scores.size)  # to every set, as a share of its weight
    size_start = size_starts(binomials, m, max_indegree)
    for size in range(max_indegree + 1):
        start, stop = size_start[size], size_start[size + 1]
        behind = np.empty(stop - start)
        for k in range(start, stop):
            below = best_below(sets[k], binomials, size_start, best)
            holder[k], best[k] = (holder[below], best[below]) if below >= 0 else (np.int64(-1), -np.inf)
            behind[k - start] = scores[k] - best[k] if best[k] > -np.inf else np.inf
            kept[k] = scores[k] > -np.inf
        limit = budget(size, max_indegree, eps)
        for place in np.argsort(behind):
            k = start + place
            if behind[place] > np.log(limit):
                break
            if not kept[k]:
                continue
            pays, share = holder[k], np.exp(behind[place])
            if charged[pays] + share > limit:
                pays, share = _who_pays(k, sets[k], size, scores, kept, charged, binomials, size_start, limit)
            if pays >= 0:
                charged[pays] += share
                kept[k] = False
        for k in range(start, stop):
            if kept[k] and scores[k] >= best[k]:
                best[k], holder[k] = scores[k], k
    return charged.max()


@compiled
def budget(size, max_indegree, eps):
    """Most that a set may be charged with by sets up to this size: half, and the rest by the largest sets, the most numerous."""
    return eps if size == max_indegree else eps / 2


@compiled
def _who_pays(k, members, size, scores, kept, charged, binomials, size_start, limit):
    """(place of the kept subset that has most left, the share of it that set k is); (-1, 0) where no one has enough."""
    pays, most = np.int64(-1), 0.0
    for chosen in range((1 << size) - 1):
        place, taken = np.int64(0), 0
        for t in range(size):
            if chosen >> t & 1:
                taken += 1
                place += binomials[members[t], taken]
        place += size_start[taken]
        if kept[place]:
            share = np.exp(scores[k] - scores[place])
            if charged[place] + share <= limit and (limit - charged[place]) / share > most:
                pays, most = place, (limit - charged[place]) / share
    return pays, np.exp(scores[k] - scores[pays]) if pays >= 0 else 0.0


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
def grow(child, first, allowed, data, prior, log_priors, odds, words, beam, margin):
    """The list of one child: (members (n_sets, max_indegree) ascending, padded with -1, log marginal likelihoods, lost share,
    steps that were made).

    first : (k,) members that every set must have    allowed : (n,) variables that may be parents
    data : (bits, first_value, codes, weights, cards) as in `_family_kernels.score_families`
    prior : as in `_family_kernels.score_families`
    log_priors : (max_indegree + 1,) structure prior by size    odds : (n,) log prior odds of every parent
    words : (n,) random uint64
    margin : a set with less than this share of its best subset is dropped
    The lost share is a bound for the sets that were scored, as in `prune`; sets that were never reached are not in it.
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
    count, steps = 1, 0.0
    holders, charged = (
        np.zeros(1, dtype=np.int64),
        np.zeros(room),
    )  # the best subset of every base, and what it is charged with
    single_best, single_holder = np.full(n, empty_best), np.zeros(n, dtype=np.int64)
    while size < max_indegree and keys.size:
        size += 1
        n_bases = keys.size
        ranked = np.argsort(keys)
        sorted_keys = keys[ranked]
        new = np.empty((n_bases * n, 3), dtype=np.int64)  # base, added variable, place of the best subset
        new_scores, new_bests, new_values = np.empty(n_bases * n), np.empty(n_bases * n), np.empty(n_bases * n)
        n_new = 0
        wanted = np.empty(n, dtype=np.bool_)
        below, holds = np.empty(n), np.empty(n, dtype=np.int64)
        for i in range(n_bases):
            for x in range(n):
                wanted[x] = allowed[x]
            for t in range(size - 1):
                wanted[base[i, t]] = False
            for x in range(n):
                if not wanted[x]:
                    continue
                below[x], holds[x] = bests[i], holders[i]
                if single_best[x] > below[x]:
                    below[x], holds[x] = single_best[x], single_holder[x]
                for t in range(size - 1):
                    other = keys[i] ^ words[base[i, t]] ^ words[x]
                    place = np.searchsorted(sorted_keys, other)
                    if place < n_bases and sorted_keys[place] == other:
                        if ranked[place] < i:  # scored before, as an extension of that set
                            wanted[x] = False
                            break
                        if bests[ranked[place]] > below[x]:
                            below[x], holds[x] = bests[ranked[place]], holders[ranked[place]]
            carried = log_priors[size]
            for t in range(size - 1):
                carried += odds[base[i, t]]
            steps += extend(child, base[i], size - 1, wanted, data, prior, marginal)
            for x in range(n):
                if not wanted[x]:
                    continue
                score = marginal[x] + carried + odds[x]
                new[n_new, 0], new[n_new, 1], new[n_new, 2] = i, x, holds[x]
                new_scores[n_new], new_bests[n_new], new_values[n_new] = score, below[x], marginal[x]
                n_new += 1
        stays = np.ones(n_new, dtype=np.bool_)
        for k in range(n_new):
            share = np.exp(new_scores[k] - new_bests[k])
            if share < margin:
                charged[new[k, 2]] += share
                stays[k] = False
        kept = np.flatnonzero(stays)
        chosen = kept[np.argsort(-new_scores[kept], kind="mergesort")[:beam]]
        while count + kept.size > room:
            room *= 2
        if room > values.size:
            more, more_values = np.full((room, max_indegree), np.int32(-1)), np.empty(room)
            more[:count], more_values[:count] = members[:count], values[:count]
            members, values = more, more_values
            charged = np.append(charged, np.zeros(room - charged.size))
        for at in kept:
            _insert(base[new[at, 0]], size - 1, new[at, 1], members[count])
            values[count] = new_values[at]
            if new_scores[at] >= new_bests[at]:
                new_bests[at], new[at, 2] = new_scores[at], count
            if first.size == 0 and size == 1:
                single_best[new[at, 1]], single_holder[new[at, 1]] = new_bests[at], new[at, 2]
            count += 1
        next_keys = np.empty(chosen.size, dtype=np.uint64)
        next_base = np.full((chosen.size, max_indegree), np.int32(-1))
        for k in range(chosen.size):
            next_keys[k] = keys[new[chosen[k], 0]] ^ words[new[chosen[k], 1]]
            _insert(base[new[chosen[k], 0]], size - 1, new[chosen[k], 1], next_base[k])
        keys, base, bests, holders = next_keys, next_base, new_bests[chosen], new[chosen, 2]
    return members[:count].copy(), values[:count].copy(), charged.max(), steps


@compiled
def _insert(members, size, x, found):
    """found = the first `size` members, ascending, with x among them."""
    place = 0
    while place < size and members[place] < x:
        found[place] = members[place]
        place += 1
    found[place] = x
    for t in range(place, size):
        found[t + 1] = members[t]


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
