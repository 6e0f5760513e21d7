"""Compiled passes over the rows for augmented naive Bayes: arrays in, arrays filled.

A parameter lives in a flat table (n_cells, n_clusters): the cell of attribute i, parent value v and value x is
offset_i + v r_i + x. Probabilities are multiplied in the linear domain and rescaled before they underflow; a row whose
product still vanishes is done again in logs.
"""

import numpy as np
from numba import njit

_SMALL = 1e-100


@njit(cache=True, nogil=True)
def complete_pass(cells, class_probs, table, joint, shift):
    """p(cluster, row) exp(-shift) of rows without missing cells, by one gather per attribute.

    cells : (n, n_features) int32   table : (n_cells, k)   fills joint : (n, k) and shift : (n,)
    """
    n, n_features = cells.shape
    k = len(class_probs)
    for s in range(n):
        p = joint[s]
        total_shift = 0.0
        for c in range(k):
            p[c] = class_probs[c]
        for i in range(n_features):
            row = table[cells[s, i]]
            for c in range(k):
                p[c] *= row[c]
            if i & 3 == 3:
                total_shift += _rescale(p)
        shift[s] = total_shift + _rescale(p)
        if shift[s] == -np.inf:
            shift[s] = _complete_row_in_logs(cells[s], class_probs, table, p)


@njit(cache=True, nogil=True)
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
            log_likelihood += weights[s] * (np.log(total) + shift[s])
        else:
            for c in range(k):
                joint[s, c] = 1.0 / k
            log_likelihood = -np.inf
    return log_likelihood


@njit(cache=True, nogil=True)
def complete_counts(cells, weights, resp, class_counts, counts):
    """Add weight x responsibility of every row to the cells it falls in."""
    n, n_features = cells.shape
    k = resp.shape[1]
    w = np.empty(k)
    for s in range(n):
        for c in range(k):
            w[c] = weights[s] * resp[s, c]
            class_counts[c] += w[c]
        for i in range(n_features):
            row = counts[cells[s, i]]
            for c in range(k):
                row[c] += w[c]


@njit(cache=True, nogil=True)
def hard_counts(cells, weights, winner, class_counts, counts):
    """The same when every row belongs to one cluster."""
    n, n_features = cells.shape
    for s in range(n):
        c = winner[s]
        class_counts[c] += weights[s]
        for i in range(n_features):
            counts[cells[s, i], c] += weights[s]


@njit(cache=True, nogil=True)
def missing_pass(codes, cards, parents, order, offsets, class_probs, table, joint, shift):
    """p(cluster, observed cells) of rows with missing cells: messages from the leaves of each row's forest to its roots."""
    n, n_features = codes.shape
    k = len(class_probs)
    widest = _largest(cards)
    messages = np.empty((n_features, widest))
    needed = np.empty(n_features, dtype=np.bool_)
    logs = np.empty(k)
    for s in range(n):
        _needed(codes[s], parents, order, needed)
        for c in range(k):
            logs[c] = _up(codes[s], cards, parents, order, offsets, table, c, needed, messages)
            logs[c] += np.log(class_probs[c]) if class_probs[c] > 0.0 else -np.inf
        top = logs.max()
        shift[s] = top
        for c in range(k):
            joint[s, c] = np.exp(logs[c] - top) if top > -np.inf else 0.0


@njit(cache=True, nogil=True)
def missing_counts(codes, cards, parents, order, offsets, weights, table, resp, every_cell, class_counts, counts):
    """Add the expected counts of rows with missing cells.

    every_cell : False leaves out the missing cells below which nothing was observed (they carry no information and EM is
    exact, and faster, without them); True completes them as well.
    """
    n, n_features = codes.shape
    k = resp.shape[1]
    widest = _largest(cards)
    messages = np.empty((n_features, widest))
    marginal = np.empty((n_features, widest))
    conditional = np.empty((widest, widest))
    needed = np.empty(n_features, dtype=np.bool_)
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


@njit(cache=True, nogil=True)
def missing_pair_counts(codes, cards, parents, order, offsets, starts, weights, table, resp, c, pairs):
    """Add to pairs (n_states, n_states) the expected counts, in cluster c, of all pairs of cells with a missing member.

    Given the parent, a missing cell is independent of every cell that is not below it: walking the forest from its roots
    gives joint(i, j) = joint(i, parent of j) x conditional of j.
    """
    n, n_features = codes.shape
    widest = _largest(cards)
    messages = np.empty((n_features, widest))
    marginal = np.empty((n_features, widest))
    conditional = np.empty((widest, widest))
    joint = np.empty((n_features, n_features, widest, widest))
    needed = np.empty(n_features, dtype=np.bool_)
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
                                p += joint[i, parent, a, v] * conditional[v, y]
                        joint[i, j, a, y] = p
                        joint[j, i, y, a] = p
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


@njit(cache=True, nogil=True)
def _needed(row, parents, order, needed):
    """Which cells of a row matter: the observed ones and every missing one above an observed one."""
    for i in range(len(row)):
        needed[i] = row[i] >= 0
    for step in range(len(order) - 1, -1, -1):
        i = order[step]
        if needed[i] and parents[i] >= 0:
            needed[parents[i]] = True


@njit(cache=True, nogil=True)
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
                top = max(top, messages[parent, v])
            if top < _SMALL:
                if top == 0.0:
                    return -np.inf
                log_p += np.log(top)
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
                return -np.inf
            product *= p
            if product < _SMALL:
                log_p += np.log(product)
                product = 1.0
    return log_p + np.log(product)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _root_marginal(base, card, table, c, message, marginal):
    total = 0.0
    for y in range(card):
        marginal[y] = table[base + y, c] * message[y]
        total += marginal[y]
    for y in range(card):
        marginal[y] = marginal[y] / total if total > 0.0 else 1.0 / card


@njit(cache=True, nogil=True)
def _rescale(p):
    """Divide a vanishing product by its largest entry; returns the log of the divisor (-inf when nothing is left)."""
    top = 0.0
    for c in range(len(p)):
        top = max(top, p[c])
    if top >= _SMALL:
        return 0.0
    if top == 0.0:
        return -np.inf
    for c in range(len(p)):
        p[c] /= top
    return np.log(top)


@njit(cache=True, nogil=True)
def _complete_row_in_logs(cells, class_probs, table, p):
    for c in range(len(p)):
        p[c] = np.log(class_probs[c]) if class_probs[c] > 0.0 else -np.inf
        for i in range(len(cells)):
            value = table[cells[i], c]
            p[c] += np.log(value) if value > 0.0 else -np.inf
    top = p.max()
    for c in range(len(p)):
        p[c] = np.exp(p[c] - top) if top > -np.inf else 0.0
    return top


@njit(cache=True, nogil=True)
def _largest(cards):
    widest = 1
    for i in range(len(cards)):
        widest = max(widest, cards[i])
    return widest
