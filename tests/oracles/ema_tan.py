"""Oracle for EMA with one attribute parent: the literal sum over every structure that an order allows."""

from itertools import product
from math import exp, inf, lgamma, log


def structures(order):
    """All choices of (takes the cluster?, attribute parent or None) per column, parents before children in the order."""
    choices = []
    for place, _ in enumerate(order):
        parents = [None, *order[:place]]
        choices.append([(cluster, parent) for cluster in (False, True) for parent in parents])
    for combination in product(*choices):
        yield dict(zip(order, combination))


def family(X, R, cards, child, cluster, parent):
    """Counts {parent configuration: list over states}, the cluster and the attribute parent in the configuration."""
    n_clusters = len(R[0])
    keys = product(range(n_clusters) if cluster else [None], range(cards[parent]) if parent is not None else [None])
    counts = {key: [0.0] * cards[child] for key in keys}
    for row, r in zip(X, R):
        for c in range(n_clusters):
            key = (c if cluster else None, row[parent] if parent is not None else None)
            counts[key][row[child]] += r[c]
    return counts


def log_score(counts, alpha):
    total = 0.0
    for values in counts.values():
        total += lgamma(alpha * len(values)) - lgamma(alpha * len(values) + sum(values))
        total += sum(lgamma(alpha + n) - lgamma(alpha) for n in values)
    return total


def averaged_log_joint(X, R, cards, order, alpha=1.0):
    """(log p(c, x) for every row and cluster, log sum of the weights of all structures) at responsibilities R."""
    n_clusters = len(R[0])
    sizes = [sum(r[c] for r in R) for c in range(n_clusters)]
    theta_c = [(n + alpha) / (sum(sizes) + alpha * n_clusters) for n in sizes]
    log_class = lgamma(alpha * n_clusters) - lgamma(alpha * n_clusters + sum(sizes))
    log_class += sum(lgamma(alpha + n) - lgamma(alpha) for n in sizes)
    found = []
    for structure in structures(list(order)):
        tables = {i: family(X, R, cards, i, cluster, parent) for i, (cluster, parent) in structure.items()}
        found.append((log_class + sum(log_score(table, alpha) for table in tables.values()), structure, tables))
    top = max(weight for weight, _, _ in found)
    total = sum(exp(weight - top) for weight, _, _ in found)
    joint = [[0.0] * n_clusters for _ in X]
    for weight, structure, tables in found:
        share = exp(weight - top) / total
        for line, row in enumerate(X):
            for c in range(n_clusters):
                p = theta_c[c]
                for i, (cluster, parent) in structure.items():
                    values = tables[i][c if cluster else None, row[parent] if parent is not None else None]
                    p *= (values[row[i]] + alpha) / (sum(values) + alpha * cards[i])
                joint[line][c] += share * p
    log_joint = [[log(p) if p > 0 else -inf for p in line] for line in joint]
    return log_joint, top + log(total)
