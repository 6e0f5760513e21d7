"""Sums over the joint states of small networks: divergence of two networks, likelihood of rows with hidden cells.

A network is its parents and tables as arrays; some of its variables are observed, the others hidden. All sums are literal
(every hidden state of every row), in logs and in blocks of rows, so memory stays small.
"""

import math
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from pgm_bma.foundation.numbers.graphs import ancestors

BLOCK = 2**16  # cells of a joint table held at once
MAX_RENAMINGS = 50_000


class LogNetwork(NamedTuple):
    """parents[i] : positions    log_tables[i] : (*parent_cardinalities, n_states)    observed, hidden : positions"""

    parents: tuple
    log_tables: tuple
    observed: tuple
    hidden: tuple

    @property
    def cardinalities(self):
        return [table.shape[-1] for table in self.log_tables]

    @property
    def n_hidden_states(self):
        return math.prod(self.cardinalities[v] for v in self.hidden)


def log_joint(network, codes, nodes=None):
    """log P(row, hidden state).

    codes : (n_rows, n_observed)     nodes : variables whose tables are multiplied, None for all
    returns (n_rows, n_hidden_states), hidden states in C order
    """
    shape = [network.cardinalities[v] for v in network.hidden]
    grid = np.unravel_index(np.arange(math.prod(shape)), shape) if shape else ()
    columns = {v: codes[:, j, None] for j, v in enumerate(network.observed)}
    columns |= {v: states[None, :] for v, states in zip(network.hidden, grid)}
    total = np.zeros((len(codes), math.prod(shape)))
    for v in range(len(network.parents)) if nodes is None else nodes:
        total += network.log_tables[v][tuple(columns[u] for u in (*network.parents[v], v))]
    return total


def state_blocks(shape, n_hidden_states):
    """All joint states of variables with these cardinalities, as blocks of rows (n_rows, n_variables)."""
    n_states, step = math.prod(shape), max(1, BLOCK // n_hidden_states)
    for start in range(0, n_states, step):
        index = np.arange(start, min(start + step, n_states))
        yield np.column_stack(np.unravel_index(index, shape)) if shape else np.empty((1, 0), dtype=int)


def divergence(p, q, blocks, *, joint=True, align=True, sampled=False):
    """D(p, q) = sum p log(p / q) in nats and its standard error (EMA eq. 15).

    blocks : observed rows, each state once (the row counts with its probability under p), or drawn from p (`sampled`)
    joint : over observed and hidden variables, else over the observed ones with the hidden ones summed out
    align : rename the states of the hidden variables of q so that the divergence is smallest

    With costs[l, m] = -sum_x p(l, x) log q(m, x) over hidden states l of p and m of q, a renaming only picks other entries of
    that matrix, so one pass over the rows serves all renamings.
    """
    log_p_mean, kept = 0.0, []
    costs: np.ndarray | float = 0.0
    for codes in blocks:
        log_p, log_q = log_joint(p, codes), log_joint(q, codes)
        log_x = logsumexp(log_p, axis=1, keepdims=True)
        if not joint:
            log_p, log_q = log_x, logsumexp(log_q, axis=1, keepdims=True)
        # share of a hidden state in its row, times the weight of the row
        mass = np.exp(log_p - np.where(np.isfinite(log_x), log_x, 0.0)) * (1.0 if sampled else np.exp(log_x))
        log_p_mean += np.where(mass > 0, mass * np.where(mass > 0, log_p, 0.0), 0.0).sum()
        costs = costs - _expected_log(mass, log_q)
        if sampled:
            kept.append((mass, log_p, log_q))
    costs = np.asarray(costs)
    pairing = np.arange(len(costs))
    if joint and align and p.hidden:
        pairing = best_pairing(costs, [p.cardinalities[v] for v in p.hidden])
    if not sampled:
        return max(log_p_mean + costs[np.arange(len(costs)), pairing].sum(), 0.0), 0.0
    with np.errstate(invalid="ignore"):
        parts = [np.where(m > 0, m * (a - b[:, pairing]), 0.0).sum(axis=1) for m, a, b in kept]
        terms = np.concatenate(parts)
        return terms.mean(), terms.std(ddof=1) / math.sqrt(len(terms)) if np.isfinite(terms).all() else math.inf


def best_pairing(costs, shape):
    """Renaming of hidden states with the smallest total cost: the state m of q for every state l of p.

    costs : (n_hidden_states, n_hidden_states), inf allowed     shape : cardinalities of the hidden variables
    """
    # a cost that no sum of finite ones reaches: inf is taken only where it must be
    large = 1 + 2 * len(costs) * np.abs(costs[np.isfinite(costs)]).max(initial=0.0)
    capped = np.where(np.isfinite(costs), costs, large)
    if len(shape) == 1:
        return linear_sum_assignment(capped)[1]
    # several hidden variables are renamed one by one, which an assignment of their joint states would not respect
    if math.prod(math.factorial(r) for r in shape) > MAX_RENAMINGS:
        raise ValueError(f"hidden variables with {shape} states have too many renamings; pass align=False")
    states = np.arange(len(costs)).reshape(shape)
    pairings = (states[np.ix_(*chosen)].ravel() for chosen in product(*(permutations(range(r)) for r in shape)))
    return min(pairings, key=lambda pairing: capped[np.arange(len(costs)), pairing].sum())


def row_log_likelihood(network, codes, max_states):
    """log P(known cells of each row): (n_rows,). Missing cells (-1) and hidden variables are summed out.

    codes : (n_rows, n_observed). Rows are grouped by the cells they miss; what has no known descendant drops out first.
    """
    out = np.zeros(len(codes))
    patterns, group = np.unique(codes >= 0, axis=0, return_inverse=True)
    for i, pattern in enumerate(patterns):
        known = tuple(v for v, here in zip(network.observed, pattern) if here)
        nodes = sorted({*known, *ancestors(network.parents, known)})
        part = network._replace(observed=known, hidden=tuple(v for v in nodes if v not in known))
        if part.n_hidden_states > max_states:
            raise ValueError(
                f"{part.n_hidden_states} joint states of {len(part.hidden)} hidden or missing variables are more than "
                f"max_states={max_states}; raise it, or drop the rows that miss so many cells"
            )
        rows = np.flatnonzero(group.ravel() == i)
        step = max(1, BLOCK // part.n_hidden_states)
        for start in range(0, len(rows), step):
            block = rows[start : start + step]
            out[block] = logsumexp(log_joint(part, codes[np.ix_(block, pattern)], nodes), axis=1)
    return out


def _expected_log(mass, log_q):
    """sum_x mass(l, x) log q(m, x): (n_states_p, n_states_q), -inf where q excludes what p allows."""
    excluded = np.isneginf(log_q)
    finite = mass.T @ np.where(excluded, 0.0, log_q)
    return np.where(mass.T @ excluded > 0, -np.inf, finite) if excluded.any() else finite
