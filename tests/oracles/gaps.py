"""Slow truth for tables with gaps: every completion of all missing cells, times every order or every DAG.

Missing at random: the joint posterior of structure and missing cells is proportional to prior x marginal likelihood of the
completed table. Nothing here comes from pgm_bma. A missing cell is None.
"""

from itertools import product
from math import exp

from tests.oracles.orders import Problem, log_sum


def completed_tables(data, cards):
    """Every way to fill all missing cells of all rows."""
    cells = [(i, j) for i, row in enumerate(data) for j, value in enumerate(row) if value is None]
    for values in product(*(range(cards[j]) for _, j in cells)):
        table = [list(row) for row in data]
        for (i, j), value in zip(cells, values):
            table[i][j] = value
        yield table, values


def posterior(data, cards, max_indegree, weighting, **prior):
    """(arcs (n, n), [P(the k-th missing cell = state)], log evidence) with completions and structures summed over.

    Cells are numbered row by row.
    """
    n = len(cards)
    parts = []
    for table, values in completed_tables(data, cards):
        problem = Problem(table, cards, max_indegree, **prior)
        parts.append((problem.evidence(weighting), problem.edges(weighting), values))
    total = log_sum([evidence for evidence, _, _ in parts])
    arcs = [[0.0] * n for _ in range(n)]
    columns = [j for row in data for j, value in enumerate(row) if value is None]
    cells = [[0.0] * cards[j] for j in columns]
    for evidence, edges, values in parts:
        share = exp(evidence - total)
        for u, v in product(range(n), repeat=2):
            arcs[u][v] += share * edges[u][v]
        for k, value in enumerate(values):
            cells[k][value] += share
    return arcs, cells, total


def class_posterior(data, cards, max_indegree, weighting, row, class_index, **prior):
    """P(class | row) with the training table's completions and all structures summed over."""
    joints = []
    for state in range(cards[class_index]):
        full = list(row)
        full[class_index] = state
        terms = []
        for table, _ in completed_tables(data, cards):
            problem = Problem(table, cards, max_indegree, **prior)
            terms.append(problem.evidence(weighting) + problem.log_joint(full, weighting))
        joints.append(log_sum(terms))
    total = log_sum(joints)
    return [exp(value - total) for value in joints]
