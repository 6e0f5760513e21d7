"""Metrics by definition: whole matrices, all permutations, every joint state looked up cell by cell."""

import math
from itertools import permutations, product


def partition_distance(a, b):
    n = len(a)
    return sum((a[i] == a[j]) != (b[i] == b[j]) for i in range(n) for j in range(n))


def clustering_accuracy(truth, labels):
    truth_names, names = sorted(set(truth)), sorted(set(labels))
    padded = truth_names + [None] * max(0, len(names) - len(truth_names))
    return max(
        sum(dict(zip(names, chosen))[b] == a for a, b in zip(truth, labels)) / len(truth)
        for chosen in permutations(padded, len(names))
    )


def joint_probability(model, state):
    """state : dict variable -> state name"""
    value = 1.0
    for cpd in model.get_cpds():
        value *= cpd.get_value(**{v: state[v] for v in cpd.variables})
    return value


def joint_states(model, variables):
    names = {cpd.variable: cpd.state_names[cpd.variable] for cpd in model.get_cpds()}
    for values in product(*(names[v] for v in variables)):
        yield dict(zip(variables, values))


def kl_joint(p, q, latents):
    """Bits, the best relabelling of each latent of q by trying all of them."""
    variables = sorted(p.nodes())
    names = {v: p.get_cpds(v).state_names[v] for v in variables}
    best = math.inf
    for relabelling in product(*(permutations(q.get_cpds(v).state_names[v]) for v in latents)):
        maps = {v: dict(zip(names[v], new)) for v, new in zip(latents, relabelling)}
        total = 0.0
        for state in joint_states(p, variables):
            a = joint_probability(p, state)
            b = joint_probability(q, {v: maps[v][s] if v in maps else s for v, s in state.items()})
            total += 0.0 if a == 0 else math.inf if b == 0 else a * math.log2(a / b)
        best = min(best, total)
    return best


def marginal(model, observed, hidden):
    """P(observed), hidden variables summed out.   observed : dict variable -> state"""
    return sum(joint_probability(model, {**observed, **rest}) for rest in joint_states(model, hidden))


def kl_observed(p, q, latents):
    variables = sorted(set(p.nodes()) - set(latents))
    total = 0.0
    for state in joint_states(p, variables):
        a, b = marginal(p, state, latents), marginal(q, state, latents)
        total += 0.0 if a == 0 else math.inf if b == 0 else a * math.log2(a / b)
    return total


def holdout_log2_likelihood(model, rows):
    """rows : list of dicts variable -> state; what is not in a row is summed out"""
    return sum(math.log2(marginal(model, row, sorted(set(model.nodes()) - set(row)))) for row in rows) / len(rows)


def spearman(a, b):
    n = len(a)
    return 1 - 6 * sum((i - list(b).index(node)) ** 2 for i, node in enumerate(a)) / (n * (n * n - 1))


def signed_rank_p(differences):
    """Two-sided exact p of Wilcoxon's test for distinct non-zero differences, by all choices of signs."""
    sizes = sorted(abs(d) for d in differences)
    ranks = [sizes.index(abs(d)) + 1 for d in differences]
    middle = sum(ranks) / 2
    seen = abs(sum(r for r, d in zip(ranks, differences) if d > 0) - middle)
    extreme = sum(
        abs(sum(r for r, s in zip(ranks, signs) if s) - middle) >= seen - 1e-9
        for signs in product([0, 1], repeat=len(ranks))
    )
    return extreme / 2 ** len(ranks)
