"""Slow twins of the averages over discretisations: every partition is written down, every row left out is a new sum."""

from itertools import pairwise, product
from math import exp, lgamma, log


def dirichlet_multinomial(counts, strength, shares):
    value = lgamma(strength) - lgamma(strength + sum(counts))
    return value + sum(lgamma(strength * p + n) - lgamma(strength * p) for n, p in zip(counts, shares))


def interval_partitions(m):
    """[(list of (first, stop), number of cuts)] of all partitions of m bins into intervals."""
    for flags in product([False, True], repeat=m - 1):
        bounds = [0, *(i + 1 for i, flag in enumerate(flags) if flag), m]
        yield list(pairwise(bounds)), flags


def halvings(sides, halves=(True, True)):
    """[(list of rectangles, probability)] of all recursive partitions; a side is (start, stop)."""
    open_sides = [k for k, (a, b) in enumerate(sides) if b - a > 1]
    if not open_sides:
        yield [sides], 1.0
        return
    yield [sides], 0.5
    for k in open_sides:
        a, b = sides[k]
        bounds = [a, (a + b) // 2, b] if halves[k] else list(range(a, b + 1))
        parts = [tuple(part if j == k else sides[j] for j in (0, 1)) for part in pairwise(bounds)]
        for chosen in product(*(list(halvings(part, halves)) for part in parts)):
            cells = [cell for part, _ in chosen for cell in part]
            probability = 1 / (2 * len(open_sides))
            for _, share in chosen:
                probability *= share
            yield cells, probability


def mixture(weighted, bin_of, shares):
    """P(class | bin) of weighted partitions: weighted = [(log weight, strength, [(holds(bin), counts)])]."""
    top = max(w for w, _, _ in weighted)
    total, result = 0.0, [0.0] * len(shares)
    for w, strength, cells in weighted:
        total += exp(w - top)
        (counts,) = [counts for holds, counts in cells if holds(bin_of)]
        for c, p in enumerate(shares):
            result[c] += exp(w - top) * (counts[c] + strength * p) / (sum(counts) + strength)
    return [r / total for r in result], top + log(total)


def weigh_intervals(counts, shares, strengths, cut_priors):
    """All (partition, strength, cut prior) with their log weights, and the cut flags of each."""
    m = len(counts)
    weighted, flags_of = [], []
    for strength in strengths:
        for rho in cut_priors:
            for cells, flags in interval_partitions(m):
                w = sum(log(rho) if flag else log(1 - rho) for flag in flags)
                held = []
                for a, b in cells:
                    n = [sum(counts[i][c] for i in range(a, b)) for c in range(len(shares))]
                    w += dirichlet_multinomial(n, strength, shares)
                    held.append((lambda i, a=a, b=b: a <= i < b, n))
                weighted.append((w, strength, held))
                flags_of.append(flags)
    return weighted, flags_of


def weigh_rectangles(counts, shares, strengths, halves=(True, True)):
    weighted = []
    for strength in strengths:
        for cells, probability in halvings(((0, len(counts)), (0, len(counts[0]))), halves):
            w, held = log(probability), []
            for (a, b), (e, f) in cells:
                n = [sum(counts[i][j][c] for i in range(a, b) for j in range(e, f)) for c in range(len(shares))]
                w += dirichlet_multinomial(n, strength, shares)
                held.append((lambda ij, a=a, b=b, e=e, f=f: a <= ij[0] < b and e <= ij[1] < f, n))
            weighted.append((w, strength, held))
    return weighted
