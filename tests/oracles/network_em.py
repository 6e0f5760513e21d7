"""Oracle for EM in any discrete network: every row is completed in all possible ways, one completion at a time.

Shares no code with the package. A network is ``cards`` (number of states of every node), ``parents`` (a tuple of node
numbers for every node) and ``cpts`` (for every node a list over joint parent states, first parent slowest, of lists over
states). Rows are lists of ints, -1 is missing or latent.
"""

from itertools import product
from math import inf, log


def completions(row, cards):
    yield from product(*[range(r) if value < 0 else (value,) for value, r in zip(row, cards)])


def parent_state(full, node, cards, parents):
    index = 0
    for parent in parents[node]:
        index = index * cards[parent] + full[parent]
    return index


def joint(full, cards, parents, cpts, held=()):
    p = 1.0
    for node in range(len(cards)):
        if node not in held:
            p *= cpts[node][parent_state(full, node, cards, parents)][full[node]]
    return p


def evidence_probability(row, cards, parents, cpts, held=()):
    return sum(joint(full, cards, parents, cpts, held) for full in completions(row, cards))


def log_likelihood(rows, cards, parents, cpts, weights=None, held=None):
    weights = [1.0] * len(rows) if weights is None else weights
    total = 0.0
    for k, (row, weight) in enumerate(zip(rows, weights)):
        p = evidence_probability(row, cards, parents, cpts, held[k] if held else ())
        total += weight * (log(p) if p > 0 else -inf)
    return total


def expected_counts(rows, cards, parents, cpts, weights=None, held=None):
    """counts[node][parent_state][state]: each completion adds its responsibility to one cell of every node that was not set."""
    weights = [1.0] * len(rows) if weights is None else weights
    counts = [[[0.0] * len(states) for states in table] for table in cpts]
    for k, (row, weight) in enumerate(zip(rows, weights)):
        was_set = held[k] if held else ()
        evidence = evidence_probability(row, cards, parents, cpts, was_set)
        for full in completions(row, cards):
            responsibility = joint(full, cards, parents, cpts, was_set) / evidence
            for node in range(len(cards)):
                if node not in was_set:
                    counts[node][parent_state(full, node, cards, parents)][full[node]] += weight * responsibility
    return counts


def em_update(rows, cards, parents, cpts, alpha=0.0, weights=None, fixed=(), held=None):
    """Posterior means of the expected counts; a line with neither counts nor prior becomes uniform."""
    updated = []
    for node, table in enumerate(expected_counts(rows, cards, parents, cpts, weights, held)):
        if node in fixed:
            updated.append(cpts[node])
            continue
        new = []
        for line in table:
            total = sum(line) + alpha * len(line)
            new.append([(n + alpha) / total if total > 0 else 1.0 / len(line) for n in line])
        updated.append(new)
    return updated


def objective(rows, cards, parents, cpts, alpha=0.0, weights=None, held=None):
    """What the update climbs: log-likelihood + alpha times the sum of all log parameters."""
    penalty = sum(log(p) for table in cpts for line in table for p in line) * alpha if alpha else 0.0
    return log_likelihood(rows, cards, parents, cpts, weights, held) + penalty


def marginal(row, node, cards, parents, cpts):
    """P(node | row), by adding up completions."""
    found = [0.0] * cards[node]
    for full in completions(row, cards):
        found[full[node]] += joint(full, cards, parents, cpts)
    total = sum(found)
    return [p / total for p in found]


def completion_probabilities(row, cards, parents, cpts):
    """{completion: P(completion | row)}; its largest entries are the jointly most probable completions."""
    found = {full: joint(full, cards, parents, cpts) for full in completions(row, cards)}
    total = sum(found.values())
    return {full: p / total for full, p in found.items()}
