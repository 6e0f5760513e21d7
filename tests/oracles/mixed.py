"""Oracle for latent-class models with numeric columns: the Normal-inverse-gamma formulas and the sum over structures, literally.

Shares no code with the package. A column is ("number", values), ("states", codes, cardinality) or ("ordered", codes, cardinality);
a missing cell is None. An ordered column is summed over all 2^(r - 1) ways to merge neighbouring levels into runs, one at a time.
``R[row][j]`` are responsibilities, which stay fixed. Numbers are taken as they are given: a caller standardises them.
"""

from itertools import product
from math import exp, lgamma, log, pi

from scipy.integrate import dblquad
from scipy.special import digamma

PRIOR = (0.0, 0.1, 2.0, 1.0)  # mean, strength, shape, scale


def sums(values, weights):
    """n, sum of x, sum of x squared over the cells that are there."""
    seen = [(x, w) for x, w in zip(values, weights) if x is not None]
    return sum(w for _, w in seen), sum(w * x for x, w in seen), sum(w * x * x for x, w in seen)


def posterior(n, s1, s2, prior=PRIOR):
    m0, k0, a0, b0 = prior
    strength = k0 + n
    mean = (k0 * m0 + s1) / strength
    return mean, strength, a0 + n / 2, b0 + (s2 + k0 * m0**2 - strength * mean**2) / 2


def log_evidence(n, s1, s2, prior=PRIOR):
    _, k0, a0, b0 = prior
    _, strength, a, b = posterior(n, s1, s2, prior)
    gammas = lgamma(a) - lgamma(a0) + a0 * log(b0) - a * log(b)
    return gammas + (log(k0) - log(strength)) / 2 - n / 2 * log(2 * pi)


def evidence_by_quadrature(values, prior=PRIOR):
    """Integral of likelihood x prior over the mean and the log variance."""
    m0, k0, a0, b0 = prior

    def joint(mean, log_variance):
        v = exp(log_variance)
        log_p = a0 * log(b0) - lgamma(a0) - a0 * log_variance - b0 / v  # with the Jacobian of the logarithm
        log_p += -0.5 * log(2 * pi * v / k0) - k0 * (mean - m0) ** 2 / (2 * v)
        log_p += sum(-0.5 * log(2 * pi * v) - (x - mean) ** 2 / (2 * v) for x in values)
        return exp(log_p)

    return dblquad(joint, -6, 6, -12, 12, epsabs=1e-13, epsrel=1e-9)[0]


def expected_log_density(x, n, s1, s2, prior=PRIOR):
    """E log N(x | mean, variance) under the posterior of a cluster; 0 for a missing cell."""
    if x is None:
        return 0.0
    mean, strength, a, b = posterior(n, s1, s2, prior)
    return (digamma(a) - log(b)) / 2 - log(2 * pi) / 2 - ((x - mean) ** 2 * a / b + 1 / strength) / 2


def log_dirichlet(counts, alpha):
    total = lgamma(alpha * len(counts)) - lgamma(alpha * len(counts) + sum(counts))
    return total + sum(lgamma(alpha + n) - lgamma(alpha) for n in counts)


def column_evidence(column, R):
    """(log evidence with the arc, without it): alpha = 1 with it, k without ("consistent")."""
    n_clusters = len(R[0])
    if column[0] == "number":
        per_cluster = [log_evidence(*sums(column[1], [r[j] for r in R])) for j in range(n_clusters)]
        return sum(per_cluster), log_evidence(*sums(column[1], [1.0] * len(R)))
    _, codes, cardinality = column
    counts = [
        [sum(r[j] for r, c in zip(R, codes) if c == state) for state in range(cardinality)] for j in range(n_clusters)
    ]
    alone = [sum(1.0 for c in codes if c == state) for state in range(cardinality)]
    if column[0] == "ordered":
        found = [score for _, score in merged(column, R)]
        return log(sum(exp(x - max(found)) for x in found)) + max(found), log_dirichlet(alone, float(n_clusters))
    return sum(log_dirichlet(line, 1.0) for line in counts), log_dirichlet(alone, float(n_clusters))


def merges(n_levels):
    """All ways to merge neighbouring levels that leave two runs or more, each a list of lists of levels."""
    for cuts in product((False, True), repeat=n_levels - 1):
        runs = [[0]]
        for level, cut in zip(range(1, n_levels), cuts):
            if cut:
                runs.append([level])
            else:
                runs[-1].append(level)
        if len(runs) > 1:
            yield runs


def level_counts(column, R):
    """Soft counts [cluster][level]."""
    return [
        [sum(r[j] for r, c in zip(R, column[1]) if c == level) for level in range(column[2])] for j in range(len(R[0]))
    ]


def merged(column, R):
    """[(runs, log prior + log evidence)]: runs have pseudo-count 1 per level and cluster, levels in a run one of k.

    Levels that all stay apart have prior 1/2; the ways that merge some of them share the other half.
    """
    n_levels, n_clusters = column[2], len(R[0])
    counts = level_counts(column, R)
    alone = [sum(line[level] for line in counts) for level in range(n_levels)]
    found = []
    for runs in merges(n_levels):
        score = log(0.5) if len(runs) == n_levels else log(0.5 / (2 ** (n_levels - 1) - 2))
        for line in counts:
            total = sum(line)
            score += lgamma(n_levels) - lgamma(n_levels + total)
            for run in runs:
                score += lgamma(len(run) + sum(line[level] for level in run)) - lgamma(len(run))
        for run in runs:
            score += log_dirichlet([alone[level] for level in run], float(n_clusters))
        found.append((runs, score))
    return found


def merge_weights(column, R):
    """[(runs, posterior given the arc)]."""
    found = merged(column, R)
    top = max(score for _, score in found)
    total = sum(exp(score - top) for _, score in found)
    return [(runs, exp(score - top) / total) for runs, score in found]


def expected_log_run(column, R, level, j):
    """E log P(run of a level | cluster j), averaged over the merges; 0 for a missing cell."""
    line = level_counts(column, R)[j]
    value = 0.0
    for runs, weight in merge_weights(column, R):
        (run,) = [run for run in runs if level in run]
        value += weight * (digamma(len(run) + sum(line[i] for i in run)) - digamma(column[2] + sum(line)))
    return value


def mean_table(column, R, arc):
    """[cluster][level] posterior means, averaged over merges and the arc."""
    n_levels, n_clusters = column[2], len(R[0])
    counts = level_counts(column, R)
    alone = [n_clusters + sum(line[level] for line in counts) for level in range(n_levels)]
    table = [[(1 - arc) * alone[level] / sum(alone) for level in range(n_levels)] for _ in range(n_clusters)]
    for runs, weight in merge_weights(column, R):
        for j, line in enumerate(counts):
            for run in runs:
                of_run = (len(run) + sum(line[i] for i in run)) / (n_levels + sum(line))
                for level in run:
                    table[j][level] += arc * weight * of_run * alone[level] / sum(alone[i] for i in run)
    return table


def structure_sum(columns, R, arc_prior=0.5):
    """(P(arc) of every column, log of the sum), one term for each of the 2^n structures."""
    evidence = [column_evidence(column, R) for column in columns]
    terms = {}
    for structure in product((0, 1), repeat=len(columns)):
        terms[structure] = sum(
            log(arc_prior) + with_arc if dep else log(1 - arc_prior) + without
            for dep, (with_arc, without) in zip(structure, evidence)
        )
    top = max(terms.values())
    total = sum(exp(t - top) for t in terms.values())
    arcs = [sum(exp(t - top) for s, t in terms.items() if s[i]) / total for i in range(len(columns))]
    return arcs, top + log(total)


def bound(columns, R):
    """Evidence bound at responsibilities: structures summed out, log p(cluster counts), entropy."""
    n_clusters = len(R[0])
    entropy = -sum(p * log(p) for r in R for p in r if p > 0)
    return (
        structure_sum(columns, R)[1] + log_dirichlet([sum(r[j] for r in R) for j in range(n_clusters)], 1.0) + entropy
    )


def update(columns, R):
    """Responsibilities after one variational update."""
    n_rows, n_clusters = len(R), len(R[0])
    arcs, _ = structure_sum(columns, R)
    sizes = [sum(r[j] for r in R) for j in range(n_clusters)]
    renewed = []
    for row in range(n_rows):
        logs = [digamma(1.0 + sizes[j]) - digamma(n_clusters + n_rows) for j in range(n_clusters)]
        for arc, column in zip(arcs, columns):
            for j in range(n_clusters):
                weights = [r[j] for r in R]
                if column[0] == "number":
                    logs[j] += arc * expected_log_density(column[1][row], *sums(column[1], weights))
                elif column[0] == "ordered" and column[1][row] is not None:
                    logs[j] += arc * expected_log_run(column, R, column[1][row], j)
                elif column[1][row] is not None:
                    counts = [sum(w for w, c in zip(weights, column[1]) if c == s) for s in range(column[2])]
                    logs[j] += arc * (digamma(1.0 + counts[column[1][row]]) - digamma(column[2] + sum(counts)))
        top = max(logs)
        values = [exp(value - top) for value in logs]
        renewed.append([value / sum(values) for value in values])
    return renewed
