"""Slow, literal definitions for region graphs and Kikuchi-Bayes; shares no code with the package.

Variables are columns of a table of rows (lists of integers), the class is one of them, regions are frozensets of column numbers.
"""

import itertools
import math


def literal_region_graph(initial):
    """{region: counting number}: intersections until nothing new comes, then c_R = 1 - sum of c over strict supersets."""
    regions = {frozenset(r) for r in initial if r}
    regions = {r for r in regions if not any(r < other for other in regions)}
    while True:
        met = {a & b for a in regions for b in regions} - {frozenset()} - regions
        if not met:
            break
        regions |= met
    numbers = {}
    for region in sorted(regions, key=len, reverse=True):
        numbers[region] = 1 - sum(c for other, c in numbers.items() if region < other)
    return numbers


def literal_covers(regions):
    """Pairs (larger, smaller) with nothing between them."""
    return {(a, b) for a in regions for b in regions if b < a and not any(b < between < a for between in regions)}


def count(rows, columns, values):
    return sum(all(row[c] == v for c, v in zip(columns, values)) for row in rows)


def cells(cardinalities, columns):
    return itertools.product(*(range(cardinalities[c]) for c in columns))


def n_cells(cardinalities, columns):
    return math.prod(cardinalities[c] for c in columns)


def region_probability(rows, cardinalities, region, row, prior="laplace", strength=2.0):
    """P(y_R) of one assignment, every region on its own ("laplace", "consistent")."""
    columns = sorted(region)
    n = count(rows, columns, [row[c] for c in columns])
    size = n_cells(cardinalities, columns)
    if prior == "laplace":
        return (n + 1) / (len(rows) + size)
    return (n + strength / size) / (len(rows) + strength)


def marginal_probability(rows, cardinalities, maximal, region, row):
    """P(y_R) when only the maximal regions are estimated: mean of the marginals of those that hold R."""
    columns = sorted(region)
    holders = [m for m in maximal if region <= m]
    total = 0.0
    for holder in holders:
        others = sorted(holder - region)
        for values in cells(cardinalities, others):
            full = dict(zip(columns, (row[c] for c in columns))) | dict(zip(others, values))
            total += region_probability(rows, cardinalities, holder, full)
    return total / len(holders)


def log_potential(rows, cardinalities, initial, row, only=None, prior="laplace", strength=2.0):
    """ln Phi(y) = sum over regions of c_R ln P(y_R) (eq. 2); `only` keeps the regions that hold that column."""
    numbers = literal_region_graph(initial)
    maximal = [r for r in numbers if not any(r < other for other in numbers)]
    total = 0.0
    for region, number in numbers.items():
        if only is not None and only not in region:
            continue
        if prior == "marginal":
            p = marginal_probability(rows, cardinalities, maximal, region, row)
        else:
            p = region_probability(rows, cardinalities, region, row, prior, strength)
        total += number * math.log(p)
    return total


def log_scores(rows, cardinalities, initial, class_column, attributes, **options):
    """One number per class for a row of attribute values (given in column order, class left out)."""
    scores = []
    for c in range(cardinalities[class_column]):
        row = [*attributes[:class_column], c, *attributes[class_column:]]
        scores.append(log_potential(rows, cardinalities, initial, row, only=class_column, **options))
    return scores


def normalise(scores):
    top = max(scores)
    weights = [math.exp(s - top) for s in scores]
    return [w / sum(weights) for w in weights]


def loss(rows, cardinalities, initial, focus, class_column, **options):
    """D(P(C | X_F) || Phi(C | X_F)), the left side empirical; initial regions are cut down to the focus."""
    focus = frozenset(focus)
    local = [frozenset(r) & focus for r in initial if frozenset(r) & focus]
    others = sorted(focus - {class_column})
    total = 0.0
    for values in cells(cardinalities, others):
        row = dict(zip(others, values))
        n_x = count(rows, others, values)
        if n_x == 0:
            continue
        logs = [
            log_potential(rows, cardinalities, local, row | {class_column: c}, only=class_column, **options)
            for c in range(cardinalities[class_column])
        ]
        phi = normalise(logs)
        for c, q in enumerate(phi):
            n = count(rows, [*others, class_column], [*values, c])
            if n:
                total += n / len(rows) * math.log(n / n_x / q)
    return total


def self_loss(resample, rows, cardinalities, focus, class_column):
    """D(P'(C | X_F) || P(C | X_F)): the resample is empirical, the right side is the Laplace table of the data."""
    others = sorted(set(focus) - {class_column})
    total = 0.0
    for values in cells(cardinalities, others):
        n_x = count(resample, others, values)
        if n_x == 0:
            continue
        table = [count(rows, [*others, class_column], [*values, c]) + 1 for c in range(cardinalities[class_column])]
        for c, weight in enumerate(table):
            n = count(resample, [*others, class_column], [*values, c])
            if n:
                total += n / len(resample) * math.log(n / n_x / (weight / sum(table)))
    return total


def leave_one_out_log_scores(rows, cardinalities, sets, weights, class_column, index, strength=2.0):
    """Weighted interaction terms of row `index` with that row taken out of every table (total prior mass `strength`).

    The normaliser N + strength is left out: it is the same for every class and cancels.
    """
    rest = rows[:index] + rows[index + 1 :]
    row = rows[index]
    scores = []
    for c in range(cardinalities[class_column]):
        total = 0.0
        for attributes, weight in zip(sets, weights):
            for size in range(len(attributes) + 1):
                for part in itertools.combinations(attributes, size):
                    columns = [*part, class_column]
                    n = count(rest, columns, [*(row[a] for a in part), c])
                    sign = (-1) ** (len(attributes) - size)
                    total += weight * sign * math.log(n + strength / n_cells(cardinalities, columns))
        scores.append(total)
    return scores


def iterative_proportional_fitting(cardinalities, marginals, n_sweeps=500):
    """Maximum-entropy joint {assignment: p} with the given {region: {values: p}}; for small domains only."""
    columns = range(len(cardinalities))
    joint = {y: 1.0 / math.prod(cardinalities) for y in cells(cardinalities, columns)}
    for _ in range(n_sweeps):
        for region, table in marginals.items():
            order = sorted(region)
            current = dict.fromkeys(table, 0.0)
            for y, p in joint.items():
                current[tuple(y[c] for c in order)] += p
            for y in joint:
                key = tuple(y[c] for c in order)
                joint[y] *= table[key] / current[key] if current[key] > 0 else 0.0
    return joint


def spanning_tree_probabilities(n_nodes, edges):
    """Share of spanning trees (of a connected graph) that hold each edge, by listing all of them."""
    trees = []
    for chosen in itertools.combinations(range(len(edges)), n_nodes - 1):
        group = list(range(n_nodes))
        for e in chosen:
            a, b = group[edges[e][0]], group[edges[e][1]]
            if a == b:
                break
            group = [a if g == b else g for g in group]
        else:
            trees.append(set(chosen))
    return [sum(e in tree for tree in trees) / len(trees) for e in range(len(edges))]
