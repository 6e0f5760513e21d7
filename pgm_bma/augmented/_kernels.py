"""Compiled passes over the rows for augmented naive Bayes, and its best structure: arrays in, arrays filled.

A parameter lives in a flat table (n_cells, n_clusters): the cell of attribute i, parent value v and value x is
offset_i + v r_i + x. Probabilities are multiplied in the linear domain; a row whose product vanishes is done in logs.

The best structure is a maximum-weight arborescence of a dense graph (Chu and Liu 1965; Edmonds 1967). Every node takes its best
incoming arc; a cycle is contracted into one node, whose arcs know the members they came from, and opened again at the end where the
best arc from outside enters. Contracting leaves the best arcs of all other nodes as they are, so the whole costs O(n^2), where
networkx, which it is tested against, rebuilds graphs.
"""

from math import exp, inf, log
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.numbers._kernels import larger, largest
from pgm_bma.foundation.runtime.compiling import compiled

_SMALL = 1e-100


class StructurePassSpace(NamedTuple):
    """Of the passes over rows with missing cells."""

    messages: np.ndarray  # (n_features, most states)
    marginal: np.ndarray  # (n_features, most states)
    conditional: np.ndarray  # (most states, most states)
    needed: np.ndarray  # (n_features,) bool
    logs: np.ndarray  # (n_clusters,)


@compiled
def expand(table, links, out):
    """Tables of super-columns: every row of `out` (size, k), ones, is multiplied by the cells linked to it."""
    for s in range(links.shape[1]):
        row, cell = links[0, s], links[1, s]
        for c in range(table.shape[1]):
            out[row, c] *= table[cell, c]


@compiled
def fold_back(grouped, links, counts):
    """Counts of super-columns added to the cells they are made of."""
    for s in range(links.shape[1]):
        row, cell = links[0, s], links[1, s]
        for c in range(counts.shape[1]):
            counts[cell, c] += grouped[row, c]


@compiled
def em_pass(columns, weights, class_probs, table, class_counts, counts, hard, class_hard, counts_hard, p):
    """E step and counts in one sweep over complete rows; returns the weighted log-likelihood.

    columns : (n, n_groups) int32   table : (size, k)   adds to class_counts (k,) and counts (size, k), and when `hard` also
    to class_hard and counts_hard, where a row counts for its most probable cluster (the lowest on a tie)     p : space, (k,)
    """
    n, n_groups = columns.shape
    k = len(class_probs)
    log_likelihood = 0.0
    for s in range(n):
        total = _multiply(columns, s, class_probs, table, p)
        shift = 0.0
        if total <= _SMALL:
            shift = _in_logs(columns, s, class_probs, table, p)
            total = _sum(p)
        if total == 0.0:
            log_likelihood = -inf
            for c in range(k):
                p[c] = 1.0
            total = k
        else:
            log_likelihood += weights[s] * (log(total) + shift)
        if hard:
            winner = 0
            for c in range(1, k):
                if p[c] / total > p[winner] / total:  # as responsibilities compare
                    winner = c
            class_hard[winner] += weights[s]
            for g in range(n_groups):
                counts_hard[columns[s, g], winner] += weights[s]
        scale = weights[s] / total
        for c in range(k):
            p[c] *= scale
            class_counts[c] += p[c]
        for g in range(n_groups):
            t = columns[s, g]
            for c in range(k):
                counts[t, c] += p[c]
    return log_likelihood


@compiled
def complete_pass(columns, class_probs, table, joint, shift):
    """p(cluster, row) exp(-shift) of rows without missing cells: fills joint (n, k) and shift (n,)."""
    for s in range(len(columns)):
        total = _multiply(columns, s, class_probs, table, joint[s])
        shift[s] = 0.0 if total > _SMALL else _in_logs(columns, s, class_probs, table, joint[s])


@compiled(inline="always")  # a quarter faster: no reference counts at the call
def _multiply(columns, s, class_probs, table, p):
    """Fill p with p(cluster, row) and return its sum; one that vanishes is to be done again `_in_logs`."""
    k = len(class_probs)
    for c in range(k):
        p[c] = class_probs[c]
    for g in range(columns.shape[1]):
        t = columns[s, g]
        for c in range(k):
            p[c] *= table[t, c]
    return _sum(p)


@compiled(inline="always")  # a quarter faster: no reference counts at the call
def _sum(p):
    total = 0.0
    for c in range(len(p)):
        total += p[c]
    return total


@compiled
def responsibilities_pass(joint, shift, weights):
    """Turn joints into responsibilities in place; returns the weighted log-likelihood. Impossible rows become uniform."""
    n, k = joint.shape
    log_likelihood = 0.0
    for s in range(n):
        total = 0.0
        for c in range(k):
            total += joint[s, c]
        if total > 0.0:
            for c in range(k):
                joint[s, c] /= total
            log_likelihood += weights[s] * (log(total) + shift[s])
        else:
            for c in range(k):
                joint[s, c] = 1.0 / k
            log_likelihood = -inf
    return log_likelihood


@compiled
def complete_counts(columns, weights, resp, class_counts, counts, w):
    """Add weight x responsibility of every row to the cells it falls in. w : space, (k,)"""
    n, n_groups = columns.shape
    k = resp.shape[1]
    for s in range(n):
        for c in range(k):
            w[c] = weights[s] * resp[s, c]
            class_counts[c] += w[c]
        for g in range(n_groups):
            t = columns[s, g]
            for c in range(k):
                counts[t, c] += w[c]


@compiled
def missing_pass(codes, cards, parents, order, offsets, class_probs, table, joint, shift, space):
    """p(cluster, observed cells) of rows with missing cells: messages from the leaves of each row's forest to its roots."""
    n, k = len(codes), len(class_probs)
    messages, needed, logs = space.messages, space.needed, space.logs
    for s in range(n):
        _needed(codes[s], parents, order, needed)
        for c in range(k):
            logs[c] = _up(codes[s], cards, parents, order, offsets, table, c, needed, messages)
            logs[c] += log(class_probs[c]) if class_probs[c] > 0.0 else -inf
        top = largest(logs)
        shift[s] = top
        for c in range(k):
            joint[s, c] = exp(logs[c] - top) if top > -inf else 0.0


@compiled
def missing_counts(
    codes, cards, parents, order, offsets, weights, table, resp, every_cell, class_counts, counts, space
):
    """Add the expected counts of rows with missing cells.

    every_cell : False leaves out the missing cells below which nothing was observed (they carry no information and EM is
    exact, and faster, without them); True completes them as well.
    """
    n, n_features = codes.shape
    k = resp.shape[1]
    messages, marginal, conditional, needed = space.messages, space.marginal, space.conditional, space.needed
    for s in range(n):
        _needed(codes[s], parents, order, needed)
        for c in range(k):
            w = weights[s] * resp[s, c]
            class_counts[c] += w
            if w == 0.0:
                continue
            _up(codes[s], cards, parents, order, offsets, table, c, needed, messages)
            for step in range(n_features):
                i = order[step]
                if not (needed[i] or every_cell):
                    continue
                x, parent = codes[s, i], parents[i]
                if parent >= 0 and codes[s, parent] < 0:
                    if x >= 0:
                        for v in range(cards[parent]):
                            counts[offsets[i] + v * cards[i] + x, c] += w * marginal[parent, v]
                    else:
                        _condition(i, cards, parents, offsets, table, c, messages, conditional)
                        for y in range(cards[i]):
                            marginal[i, y] = 0.0
                        for v in range(cards[parent]):
                            for y in range(cards[i]):
                                p = marginal[parent, v] * conditional[v, y]
                                marginal[i, y] += p
                                counts[offsets[i] + v * cards[i] + y, c] += w * p
                else:
                    base = offsets[i] + (codes[s, parent] * cards[i] if parent >= 0 else 0)
                    if x >= 0:
                        counts[base + x, c] += w
                    else:
                        _root_marginal(base, cards[i], table, c, messages[i], marginal[i])
                        for y in range(cards[i]):
                            counts[base + y, c] += w * marginal[i, y]


@compiled
def missing_pair_counts(codes, cards, parents, order, offsets, starts, weights, table, resp, c, pairs, space, joint):
    """Add to pairs (n_states, n_states) the expected counts, in cluster c, of all pairs of cells with a missing member.

    Given the parent, a missing cell is independent of every cell that is not below it: walking the forest from its roots
    gives joint(i, j) = joint(i, parent of j) x conditional of j. joint : space, as pairs
    """
    n, n_features = codes.shape
    messages, marginal, conditional, needed = space.messages, space.marginal, space.conditional, space.needed
    for s in range(n):
        w = weights[s] * resp[s, c]
        if w == 0.0:
            continue
        _needed(codes[s], parents, order, needed)
        _up(codes[s], cards, parents, order, offsets, table, c, needed, messages)
        for step in range(n_features):
            j = order[step]
            if codes[s, j] >= 0:
                continue
            parent = parents[j]
            linked = parent >= 0 and codes[s, parent] < 0
            if linked:
                _condition(j, cards, parents, offsets, table, c, messages, conditional)
                for y in range(cards[j]):
                    marginal[j, y] = 0.0
                    for v in range(cards[parent]):
                        marginal[j, y] += marginal[parent, v] * conditional[v, y]
            else:
                base = offsets[j] + (codes[s, parent] * cards[j] if parent >= 0 else 0)
                _root_marginal(base, cards[j], table, c, messages[j], marginal[j])
            for y in range(cards[j]):
                pairs[starts[j] + y, starts[j] + y] += w * marginal[j, y]
            for before in range(step):
                i = order[before]
                if codes[s, i] >= 0:
                    continue
                for a in range(cards[i]):
                    for y in range(cards[j]):
                        if not linked:
                            p = marginal[i, a] * marginal[j, y]
                        elif i == parent:
                            p = marginal[i, a] * conditional[a, y]
                        else:
                            p = 0.0
                            for v in range(cards[parent]):
                                p += joint[starts[i] + a, starts[parent] + v] * conditional[v, y]
                        joint[starts[i] + a, starts[j] + y] = p
                        joint[starts[j] + y, starts[i] + a] = p
                        pairs[starts[i] + a, starts[j] + y] += w * p
                        pairs[starts[j] + y, starts[i] + a] += w * p
        for j in range(n_features):
            if codes[s, j] >= 0:
                continue
            for i in range(n_features):
                if codes[s, i] < 0:
                    continue
                a = starts[i] + codes[s, i]
                for y in range(cards[j]):
                    pairs[a, starts[j] + y] += w * marginal[j, y]
                    pairs[starts[j] + y, a] += w * marginal[j, y]


@compiled
def _needed(row, parents, order, needed):
    """Return which cells of a row matter: the observed ones and every missing one above an observed one."""
    for i in range(len(row)):
        needed[i] = row[i] >= 0
    for step in range(len(order) - 1, -1, -1):
        i = order[step]
        if needed[i] and parents[i] >= 0:
            needed[parents[i]] = True


@compiled
def _up(row, cards, parents, order, offsets, table, c, needed, messages):
    """Log p(observed cells | cluster c); leaves in messages[i] the evidence below each missing cell i, up to a factor."""
    log_p = 0.0
    product = 1.0
    for i in range(len(row)):
        for y in range(cards[i]):
            messages[i, y] = 1.0
    for step in range(len(order) - 1, -1, -1):
        i = order[step]
        if not needed[i]:
            continue
        parent, x = parents[i], row[i]
        if parent >= 0 and row[parent] < 0:
            top = 0.0
            for v in range(cards[parent]):
                base = offsets[i] + v * cards[i]
                if x >= 0:
                    p = table[base + x, c]
                else:
                    p = 0.0
                    for y in range(cards[i]):
                        p += table[base + y, c] * messages[i, y]
                messages[parent, v] *= p
                top = larger(top, messages[parent, v])
            if top < _SMALL:
                if top == 0.0:
                    return -inf
                log_p += log(top)
                for v in range(cards[parent]):
                    messages[parent, v] /= top
        else:
            base = offsets[i] + (row[parent] * cards[i] if parent >= 0 else 0)
            if x >= 0:
                p = table[base + x, c]
            else:
                p = 0.0
                for y in range(cards[i]):
                    p += table[base + y, c] * messages[i, y]
            if p == 0.0:
                return -inf
            product *= p
            if product < _SMALL:
                log_p += log(product)
                product = 1.0
    return log_p + log(product)


@compiled
def _condition(i, cards, parents, offsets, table, c, messages, conditional):
    """P(value of missing cell i | value of its missing parent, the row, cluster c)."""
    for v in range(cards[parents[i]]):
        base = offsets[i] + v * cards[i]
        total = 0.0
        for y in range(cards[i]):
            conditional[v, y] = table[base + y, c] * messages[i, y]
            total += conditional[v, y]
        for y in range(cards[i]):
            conditional[v, y] = conditional[v, y] / total if total > 0.0 else 1.0 / cards[i]


@compiled
def _root_marginal(base, card, table, c, message, marginal):
    total = 0.0
    for y in range(card):
        marginal[y] = table[base + y, c] * message[y]
        total += marginal[y]
    for y in range(card):
        marginal[y] = marginal[y] / total if total > 0.0 else 1.0 / card


@compiled
def _in_logs(columns, s, class_probs, table, p):
    """Fill p with p(cluster, row) exp(-shift) and return the shift; a logarithm is taken where a product becomes small."""
    for c in range(len(p)):
        log_p, product = log(class_probs[c]) if class_probs[c] > 0.0 else -inf, 1.0
        for g in range(columns.shape[1]):
            value = table[columns[s, g], c]
            if value < _SMALL:
                log_p += log(value) if value > 0.0 else -inf
                continue
            product *= value
            if product < _SMALL:
                log_p += log(product)
                product = 1.0
        p[c] = log_p + log(product)
    top = largest(p)
    for c in range(len(p)):
        p[c] = exp(p[c] - top) if top > -inf else 0.0
    return top


# ---------------------------------------------------------------------------------------------------- the best structure


@compiled
def branch(w, active, best, integers, lines, status, replaced):
    """Fill `best` with the parents of all nodes but the root, which is the last.

    status : (m,) zeros; 1: on the current walk, 2: known to lead to the root     integers, lines, replaced : space
    """
    root = len(w) - 1
    node_of, cycle = integers[0], integers[1]
    inside, enter, leave = lines[0], lines[1], lines[2]
    levels = 0
    top = replaced
    for u in range(root + 1):  # along the lines, which lie side by side in memory
        for v in range(root):
            if u != v and (best[v] < 0 or w[u, v] > top[v]):
                best[v], top[v] = u, w[u, v]
    for s in range(root):
        if not active[s]:
            continue
        v = s
        while v != root and status[v] != 2:
            if status[v] == 0:
                status[v] = 1
                v = best[v]
                continue
            size = 0
            x = v
            while size == 0 or x != v:
                cycle[size] = x
                size += 1
                x = best[x]
            _contract(w, active, best, root, cycle, size, inside[levels], enter[levels], leave[levels], replaced)
            status[v] = 0
            node_of[levels] = v
            levels += 1
            best[v] = _best_parent(w, active, v)
        for x in range(root):
            if status[x] == 1:
                status[x] = 2
    for level in range(levels - 1, -1, -1):
        rep = node_of[level]
        outside = best[rep]
        for v in range(root):
            if active[v] and v != rep and best[v] == rep:
                best[v] = leave[level, v]
        for x in range(root):
            if inside[level, x] >= 0:
                best[x] = inside[level, x]
                active[x] = True
        best[enter[level, outside]] = outside


@compiled
def _contract(w, active, best, root, cycle, size, inside, enter, leave, replaced):
    """Merge a cycle into its first node; an arc from outside is worth what it gains over the arc that it replaces."""
    node = cycle[0]
    for u in range(len(w)):
        inside[u] = enter[u] = leave[u] = -1
    for position in range(size):
        x = cycle[position]
        active[x] = False
        inside[x] = best[x]
        replaced[position] = w[best[x], x]
    for u in range(len(w)):
        if not active[u]:
            continue
        top_in, top_out = -inf, -inf
        for position in range(size):
            x = cycle[position]
            if enter[u] < 0 or w[u, x] - replaced[position] > top_in:
                top_in, enter[u] = w[u, x] - replaced[position], x
            if leave[u] < 0 or w[x, u] > top_out:
                top_out, leave[u] = w[x, u], x
        w[u, node], w[node, u] = top_in, top_out
        if u != root and inside[best[u]] >= 0:
            best[u] = node
    active[node] = True


@compiled
def _best_parent(w, active, v):
    found = -1
    for u in range(len(w)):
        if active[u] and u != v and (found < 0 or w[u, v] > w[found, v]):
            found = u
    return found
