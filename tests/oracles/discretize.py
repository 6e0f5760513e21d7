"""Discretisation the slow way: every cut tried, class counts by looping over the rows, fractions where they decide."""

import math
from collections import Counter
from itertools import pairwise


def entropy(labels):
    total = len(labels)
    return -sum(n / total * math.log2(n / total) for n in Counter(labels).values())


def mdl_cuts(x, y):
    """Fayyad and Irani (1993): recursive minimum-entropy cuts, each kept if its gain pays for its description."""
    rows = sorted((a, b) for a, b in zip(x, y) if a == a)
    found = []
    _split(rows, found)
    return sorted(found)


def _split(rows, found):
    labels = [b for _, b in rows]
    n = len(rows)
    best = None
    for i in range(1, n):
        if rows[i - 1][0] == rows[i][0]:
            continue
        left, right = labels[:i], labels[i:]
        cost = (len(left) * entropy(left) + len(right) * entropy(right)) / n
        if best is None or cost < best[0] - 1e-10:  # the lowest cut among equals
            best = (cost, i)
    if best is None:
        return
    cost, i = best
    k, k_left, k_right = len(set(labels)), len(set(labels[:i])), len(set(labels[i:]))
    spread = k * entropy(labels) - k_left * entropy(labels[:i]) - k_right * entropy(labels[i:])
    delta = math.log2(3**k - 2) - spread
    if entropy(labels) - cost > (math.log2(n - 1) + delta) / n:
        found.append((rows[i - 1][0] + rows[i][0]) / 2)
        _split(rows[:i], found)
        _split(rows[i:], found)


def frequency_cuts(x, n_bins):
    """Between distinct neighbours, where the share to the left is nearest to k / n_bins (the lower one of equals)."""
    values = sorted(a for a in x if a == a)
    n = len(values)
    distinct = sorted(set(values))
    cuts = set()
    for k in range(1, n_bins):
        best = None
        for low, high in pairwise(distinct):
            # in units of 1 / n_bins: integers, so that equals are equal
            distance = abs(n_bins * sum(v <= low for v in values) - k * n)
            if best is None or distance < best[0]:
                best = (distance, (low + high) / 2)
        if best is not None:
            cuts.add(best[1])
    return sorted(cuts)


def width_cuts(x, n_bins):
    values = [a for a in x if a == a]
    low, high = min(values), max(values)
    return [low + (high - low) * k / n_bins for k in range(1, n_bins)] if high > low else []


def bin_of(value, cuts):
    """Number of the bin, counted by comparing with one cut after the other; None where the value is missing."""
    return None if value != value else sum(value >= cut for cut in cuts)


def quantile_of_row(row, quantile):
    """Linear interpolation between order statistics, missing cells left out."""
    values = sorted(v for v in row if v == v)
    position = quantile * (len(values) - 1)
    low = math.floor(position)
    high = min(low + 1, len(values) - 1)
    return values[low] + (position - low) * (values[high] - values[low])
