"""Brute-force model averaging for clustering: every selective structure fitted by EM and weighted by its marginal likelihood.

p(D | S) has no closed form when the cluster is latent. Two estimates: annealed importance sampling over the cluster labels,
from their prior to their posterior by collapsed Gibbs sweeps (unbiased in p), and the Candidate method, Bayes' theorem at
the MAP tables with the posterior density averaged over Gibbs samples and over all permutations of the labels (without
them a chain that stays in one labelling misses a factor of up to r_C!).
"""

from itertools import permutations, product
from math import lgamma

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln, logsumexp

from pgm_bma.foundation.numbers.families import log_marginal_likelihood, posterior_mean
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.runtime.compiling import compiled
from pgm_bma.latent_class.loop import fit_latent_class
from pgm_bma.latent_class.problem import log_joint

SCREEN = 60  # temperatures of the two short runs that screen a structure
MARGIN = 20.0  # nats behind the best within which a structure is estimated with care and fitted by EM


def brute_force(codes, cardinalities, n_clusters, rng, n_starts=30, n_temperatures=300, n_runs=8, method="annealed"):
    """The average over all 2^n structures, each at its MAP tables, as a dict.

    All structures are screened by short annealing runs; those that could have weight are estimated again and fitted by EM.
    The rest, each below about e^-20 of the best, keep their screened log p and no weight.

    log_p : {structure: log p(D | S)}      joint : (n_clusters, n_joint_states) P_BF(c, x)      states : (n_joint_states, n)
    error : standard error of log p(D | S) over runs, averaged with the posterior of the structures (annealed only)
    """
    n = codes.shape[1]
    alone = [np.bincount(codes[:, i], minlength=r).astype(float) for i, r in enumerate(cardinalities)]
    log_alone = [float(log_marginal_likelihood(counts[None], 1.0)) for counts in alone]
    means = [posterior_mean(counts, 1.0) for counts in alone]

    def parts(structure):
        inside = [i for i in range(n) if structure[i]]
        rest = sum(log_alone[i] for i in range(n) if not structure[i])
        return inside, np.ascontiguousarray(codes[:, inside]), rest

    log_p = {}
    for structure in product((1, 0), repeat=n):
        inside, part, rest = parts(structure)
        log_p[structure] = annealed(part, cardinalities[inside], n_clusters, rng, SCREEN, 2)[0] + rest
    best = max(log_p.values())
    careful = [structure for structure, value in log_p.items() if value > best - MARGIN]
    models, errors, reference = {}, {}, None
    for structure in sorted(careful, key=log_p.get, reverse=True):  # the likeliest first: it sets the labels
        inside, part, rest = parts(structure)
        fit = _map_model(part, cardinalities[inside], n_clusters, rng, n_starts)
        estimate = annealed if method == "annealed" else candidate
        value, errors[structure] = estimate(part, cardinalities[inside], n_clusters, rng, n_temperatures, n_runs, fit)
        log_p[structure] = value + rest
        reference = fit[2] if reference is None else reference
        order = linear_sum_assignment(reference.T @ fit[2], maximize=True)[1]  # the labels of the first model
        tables = [np.tile(mean, (n_clusters, 1)) for mean in means]
        for i, table in zip(inside, fit[1]):
            tables[i] = table[order]
        models[structure] = fit[0][order], tables
    posterior = _normalised({structure: log_p[structure] for structure in careful})
    states = np.array(list(product(*[range(r) for r in cardinalities])), dtype=np.int8)
    joint = np.zeros((n_clusters, len(states)))
    for structure, weight in posterior.items():
        if weight > 1e-12:
            joint += weight * np.exp(joint_log(states, *models[structure])).T
    error = sum(weight * errors[structure] for structure, weight in posterior.items())
    return {"log_p": log_p, "posterior": posterior, "joint": joint, "states": states, "error": error}


def _map_model(codes, cardinalities, n_clusters, rng, n_starts):
    """(cluster sizes, tables, responsibilities) of the best EM start on the dependent columns."""
    if codes.shape[1] == 0:
        sizes = np.full(n_clusters, 1.0 / n_clusters)
        return sizes, [], np.tile(sizes, (len(codes), 1))
    fit = fit_latent_class(
        table_rows(codes, cardinalities), n_clusters, rng=rng.spawn(1)[0], n_init=n_starts, collapse="ignore", tol=1e-4
    )
    log_p = log_joint(np.asfortranarray(codes), fit.theta_c, fit.theta, fit.state_start)
    return fit.theta_c, fit.tables, np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))


def annealed(codes, cardinalities, n_clusters, rng, n_temperatures=300, n_runs=8, fit=None):
    """(log p(D | S), standard error) by annealed importance sampling, S = all columns of `codes` depend on the cluster."""
    if codes.shape[1] == 0:
        return 0.0, 0.0
    ladder = np.linspace(0.0, 1.0, n_temperatures + 1)  # even steps had the smallest spread among powers 1, 2, 3, 5
    logs = np.array([anneal(codes, cardinalities, n_clusters, ladder, rng) for _ in range(n_runs)])
    weights = np.exp(logs - logs.max())
    error = weights.std(ddof=1) / weights.mean() / np.sqrt(n_runs) if n_runs > 1 else np.nan
    return float(logsumexp(logs) - np.log(n_runs)), float(error)


def candidate(codes, cardinalities, n_clusters, rng, n_sweeps=200, n_runs=8, fit=None, symmetrise=True):
    """(log p(D | S), nan) by the Candidate method at the MAP tables `fit`; `n_runs` chains of `n_sweeps` sweeps."""
    if codes.shape[1] == 0:
        return 0.0, np.nan
    fit = _map_model(codes, cardinalities, n_clusters, rng, 30) if fit is None else fit
    sizes, tables, _ = fit
    log_sizes, log_tables = np.log(sizes), [np.log(table) for table in tables]
    prior = gammaln(n_clusters) + sum(n_clusters * gammaln(r) for r in cardinalities)  # Dirichlet(1) densities
    samples = gibbs(codes, n_clusters, n_sweeps, n_runs, rng)
    orders = list(permutations(range(n_clusters))) if symmetrise else [tuple(range(n_clusters))]
    logs = []
    for labels in samples:
        class_counts = np.bincount(labels, minlength=n_clusters)
        counts = [
            np.array([np.bincount(codes[labels == k, i], minlength=r) for k in range(n_clusters)])
            for i, r in enumerate(cardinalities)
        ]
        for order in map(list, orders):
            log_density = _log_dirichlet(log_sizes, class_counts[order] + 1.0)
            for log_table, count in zip(log_tables, counts):
                log_density += sum(_log_dirichlet(log_table[k], count[order[k]] + 1.0) for k in range(n_clusters))
            logs.append(log_density)
    log_posterior = logsumexp(logs) - np.log(len(logs))
    log_p = np.stack([log_sizes] * len(codes))
    for i, log_table in enumerate(log_tables):
        log_p = log_p + log_table[:, codes[:, i]].T
    return float(logsumexp(log_p, axis=1).sum() + prior - log_posterior), np.nan


def gibbs(codes, n_clusters, n_sweeps, n_chains, rng):
    """Label samples of collapsed Gibbs chains, the first half of each left out: (n_samples, n_rows)."""
    cardinalities = codes.max(axis=0).astype(np.int64) + 1
    kept = []
    for _ in range(n_chains):
        labels, class_counts, counts = start_labels(codes, cardinalities, n_clusters, rng)
        for sweep in range(n_sweeps):
            sweep_labels(codes, cardinalities, 1.0, labels, class_counts, counts, rng)
            if sweep >= n_sweeps // 2:
                kept.append(labels.copy())
    return np.array(kept)


def _log_dirichlet(log_values, alpha):
    return gammaln(alpha.sum()) - gammaln(alpha).sum() + (alpha - 1.0) @ log_values


def _normalised(logs):
    values = np.array(list(logs.values()))
    weights = np.exp(values - logsumexp(values))
    return dict(zip(logs, weights))


def joint_log(states, sizes, tables):
    """log p(c, x) for all rows of `states`, (n_joint_states, n_clusters)."""
    log_p = np.tile(np.log(sizes), (len(states), 1))
    for i, table in enumerate(tables):
        log_p += np.log(table)[:, states[:, i]].T
    return log_p


def divergence_bits(joint, states, sizes, tables):
    """KL(P_BF, naive Bayes) in bits (EMA eq. 15), the labels of the second matched to the first.

    sizes : (..., n_clusters)      tables : list of (..., n_clusters, cardinality); leading axes are several models
    """
    marginals = []
    for i, table in enumerate(tables):
        marginals.append(np.array([[row[states[:, i] == s].sum() for s in range(table.shape[-1])] for row in joint]))
    entropy = (joint[joint > 0] * np.log(joint[joint > 0])).sum()
    best = np.inf
    for order in map(list, permutations(range(len(joint)))):
        cross = np.log(sizes[..., order]) @ joint.sum(axis=1)
        for table, marginal in zip(tables, marginals):
            cross = cross + (np.log(table[..., order, :]) * marginal).sum(axis=(-2, -1))
        best = np.minimum(best, entropy - cross)
    return best / np.log(2)


# ----------------------------------------------------------------------------------------------------- kernels
# Not cached on disk: this file is imported under two names (benchmarks, pgm_bma._benchmarks), and numba's cache remembers one.


@compiled
def start_labels(codes, cardinalities, n_clusters, rng):
    """Labels from their prior (Dirichlet(1) integrated out), and their counts."""
    n_rows, n_columns = codes.shape
    labels = np.zeros(n_rows, np.int64)
    class_counts = np.zeros(n_clusters)
    counts = np.zeros((n_columns, n_clusters, cardinalities.max()))
    for row in range(n_rows):
        u = rng.random() * (row + n_clusters)
        k = 0
        while k < n_clusters - 1 and u >= class_counts[k] + 1.0:
            u -= class_counts[k] + 1.0
            k += 1
        labels[row] = k
        class_counts[k] += 1.0
        for i in range(n_columns):
            counts[i, k, codes[row, i]] += 1.0
    return labels, class_counts, counts


@compiled
def sweep_labels(codes, cardinalities, beta, labels, class_counts, counts, rng):
    """One collapsed Gibbs sweep for p(z) p(D | z)^beta."""
    n_rows, n_columns = codes.shape
    n_clusters = len(class_counts)
    p = np.empty(n_clusters)
    for row in range(n_rows):
        old = labels[row]
        class_counts[old] -= 1.0
        for i in range(n_columns):
            counts[i, old, codes[row, i]] -= 1.0
        total, first = 0.0, 1.0
        for k in range(n_clusters):
            above, below = 1.0, 1.0
            for i in range(n_columns):
                above *= counts[i, k, codes[row, i]] + 1.0
                below *= class_counts[k] + cardinalities[i]
            if k == 0:  # predictive probabilities relative to cluster 0: one power less
                first = above / below
            p[k] = class_counts[k] + 1.0
            if k > 0:
                p[k] *= (above / below / first) ** beta
            total += p[k]
        u = rng.random() * total
        new = 0
        while new < n_clusters - 1 and u >= p[new]:
            u -= p[new]
            new += 1
        labels[row] = new
        class_counts[new] += 1.0
        for i in range(n_columns):
            counts[i, new, codes[row, i]] += 1.0


@compiled
def log_data_given_labels(class_counts, counts, cardinalities):
    total = 0.0
    for i in range(len(cardinalities)):
        r = cardinalities[i]
        for k in range(len(class_counts)):
            total += _log_factorial(r - 1.0) - _log_factorial(class_counts[k] + r - 1.0)
            for s in range(r):
                total += _log_factorial(counts[i, k, s])
    return total


@compiled
def _log_factorial(x):
    return lgamma(x + 1.0)


@compiled
def anneal(codes, cardinalities, n_clusters, ladder, rng):
    """Log weight of one run: labels from their prior, sweeps at rising powers of the likelihood."""
    labels, class_counts, counts = start_labels(codes, cardinalities, n_clusters, rng)
    log_weight = 0.0
    for t in range(1, len(ladder)):
        log_weight += (ladder[t] - ladder[t - 1]) * log_data_given_labels(class_counts, counts, cardinalities)
        if t < len(ladder) - 1:
            sweep_labels(codes, cardinalities, ladder[t], labels, class_counts, counts, rng)
    return log_weight
