"""Oracle for latent-class EM, EMA and its variational twin: plain loops over structures, completions and cells.

Shares no code with the package. Rows are lists of ints, a missing cell is -1. ``theta_c`` is a list over clusters,
``theta[i][j][k]`` is P(X_i = k | C = j). Sizes are tiny: sums run over all 2^n selective structures and, where exact
marginal likelihoods are wanted, over all r_C^N completions of the cluster column.
"""

from itertools import product
from math import exp, inf, lgamma, log


def row_joint(row, theta_c, theta):
    """p(c, observed cells of row) for every c, by adding up all completions of the missing cells."""
    holes = [i for i, value in enumerate(row) if value < 0]
    joint = [0.0] * len(theta_c)
    for filling in product(*[range(len(theta[i][0])) for i in holes]):
        full = list(row)
        for i, value in zip(holes, filling):
            full[i] = value
        for j, p in enumerate(theta_c):
            for i, value in enumerate(full):
                p *= theta[i][j][value]
            joint[j] += p
    return joint


def responsibilities(X, theta_c, theta):
    return [[p / sum(joint) for p in joint] for joint in (row_joint(row, theta_c, theta) for row in X)]


def log_likelihood(X, theta_c, theta):
    return sum(log(sum(row_joint(row, theta_c, theta))) for row in X)


def expected_counts(X, R, cards):
    """(class counts, counts[i][j][k], independent counts[i][k]); a missing cell adds nothing to its column."""
    n_clusters = len(R[0])
    class_counts = [sum(r[j] for r in R) for j in range(n_clusters)]
    counts = [[[0.0] * r for _ in range(n_clusters)] for r in cards]
    alone = [[0.0] * r for r in cards]
    for row, r in zip(X, R):
        for i, value in enumerate(row):
            if value >= 0:
                alone[i][value] += 1.0
                for j in range(n_clusters):
                    counts[i][j][value] += r[j]
    return class_counts, counts, alone


def log_dirichlet_multinomial(counts, alpha):
    total = lgamma(alpha * len(counts)) - lgamma(alpha * len(counts) + sum(counts))
    return total + sum(lgamma(alpha + n) - lgamma(alpha) for n in counts)


def mean(counts, alpha):
    total = sum(counts) + alpha * len(counts)
    return [(n + alpha) / total for n in counts]


def em_step(X, theta_c, theta, alpha=1.0):
    cards = [len(t[0]) for t in theta]
    class_counts, counts, _ = expected_counts(X, responsibilities(X, theta_c, theta), cards)
    return mean(class_counts, alpha), [[mean(row, alpha) for row in table] for table in counts]


def ema_step(X, theta_c, theta, alpha=1.0, prior_dep=0.5, alpha_alone=None):
    """One EMA update as the literal sum over all 2^n structures (EMA eq. 9): the averaged joint, then its conditionals.

    alpha_alone : pseudo-count of a cell of a column that does not depend on the cluster; the paper's is `alpha`
    """
    alpha_alone = alpha if alpha_alone is None else alpha_alone
    cards = [len(t[0]) for t in theta]
    n, n_clusters = len(cards), len(theta_c)
    class_counts, counts, alone = expected_counts(X, responsibilities(X, theta_c, theta), cards)
    log_weight = {}
    for structure in product((0, 1), repeat=n):
        log_weight[structure] = log_dirichlet_multinomial(class_counts, alpha) + sum(
            log_dirichlet_family(counts[i], alpha) + log(prior_dep)
            if dep
            else log_dirichlet_multinomial(alone[i], alpha_alone) + log(1 - prior_dep)
            for i, dep in enumerate(structure)
        )
    top = max(log_weight.values())
    weight = {s: exp(w - top) for s, w in log_weight.items()}
    scale = sum(weight.values())
    new_c = mean(class_counts, alpha)
    joint = {}
    for j in range(n_clusters):
        for x in product(*[range(r) for r in cards]):
            p = 0.0
            for structure, w in weight.items():
                term = w / scale * new_c[j]
                for i, dep in enumerate(structure):
                    term *= mean(counts[i][j], alpha)[x[i]] if dep else mean(alone[i], alpha_alone)[x[i]]
                p += term
            joint[j, x] = p
    cluster = [sum(p for (c, _), p in joint.items() if c == j) for j in range(n_clusters)]
    new = [
        [
            [sum(p for (c, x), p in joint.items() if c == j and x[i] == k) / cluster[j] for k in range(cards[i])]
            for j in range(n_clusters)
        ]
        for i in range(n)
    ]
    arcs = [sum(w for s, w in weight.items() if s[i]) / scale for i in range(n)]
    return cluster, new, arcs


def log_dirichlet_family(table, alpha):
    return sum(log_dirichlet_multinomial(row, alpha) for row in table)


def em_objective(X, theta_c, theta, alpha=1.0):
    cells = [p for p in theta_c] + [p for t in theta for row in t for p in row]
    return log_likelihood(X, theta_c, theta) + alpha * sum(log(p) for p in cells)


def evidence_bound(X, R, cards, alpha=1.0, prior_dep=0.5):
    """Bound at responsibilities R: sum_i log(w_dep + w_ind) + log p(class counts) + entropy of R."""
    class_counts, counts, alone = expected_counts(X, R, cards)
    bound = log_dirichlet_multinomial(class_counts, alpha)
    for i in range(len(cards)):
        dependent = log(prior_dep) + log_dirichlet_family(counts[i], alpha)
        independent = log(1 - prior_dep) + log_dirichlet_multinomial(alone[i], alpha)
        bound += _log_add(dependent, independent)
    return bound - sum(p * log(p) for r in R for p in r if p > 0)


def cheeseman_stutz(X, theta_c, theta, alpha=1.0, averaged=False, prior_dep=0.5):
    """log p(W) - sum W log theta' + log p(D | theta'), W the expected counts, theta' their posterior mean."""
    cards = [len(t[0]) for t in theta]
    class_counts, counts, alone = expected_counts(X, responsibilities(X, theta_c, theta), cards)
    new_c, new = mean(class_counts, alpha), [[mean(row, alpha) for row in table] for table in counts]
    score = log_dirichlet_multinomial(class_counts, alpha)
    for i in range(len(cards)):
        dependent = log_dirichlet_family(counts[i], alpha)
        if averaged:
            independent = log(1 - prior_dep) + log_dirichlet_multinomial(alone[i], alpha)
            dependent = _log_add(log(prior_dep) + dependent, independent)
        score += dependent
    score -= sum(n * log(p) for n, p in zip(class_counts, new_c))
    for table, probabilities in zip(counts, new):
        score -= sum(n * log(p) for row, ps in zip(table, probabilities) for n, p in zip(row, ps))
    return score + log_likelihood(X, new_c, new)


def exact_log_p_structure(X, structure, cards, n_clusters, alpha=1.0):
    """log p(D | S): all n_clusters^N completions of the cluster column, parameters integrated out."""
    total = -inf
    for z in product(range(n_clusters), repeat=len(X)):
        R = [[1.0 if z_l == j else 0.0 for j in range(n_clusters)] for z_l in z]
        class_counts, counts, alone = expected_counts(X, R, cards)
        term = log_dirichlet_multinomial(class_counts, alpha)
        for i, dep in enumerate(structure):
            term += log_dirichlet_family(counts[i], alpha) if dep else log_dirichlet_multinomial(alone[i], alpha)
        total = _log_add(total, term)
    return total


def exact_log_evidence(X, cards, n_clusters, alpha=1.0, prior_dep=0.5):
    """log p(D): the exact average over all 2^n structures."""
    total = -inf
    for structure in product((0, 1), repeat=len(cards)):
        prior = sum(log(prior_dep if dep else 1 - prior_dep) for dep in structure)
        total = _log_add(total, prior + exact_log_p_structure(X, structure, cards, n_clusters, alpha))
    return total


def cluster_dependence(theta_c, theta):
    """I_P of every variable, nats (EMA eq. 16)."""
    found = []
    for table in theta:
        marginal = [sum(p * row[k] for p, row in zip(theta_c, table)) for k in range(len(table[0]))]
        found.append(sum(p * log(p / row[k]) for row in table for k, p in enumerate(marginal)) / len(table))
    return found


def _log_add(a, b):
    top = max(a, b)
    return top if top == -inf else top + log(exp(a - top) + exp(b - top))
