"""Distances between two partitions, two networks, two orders or two series of results.

Everything here is exact unless it says otherwise, and works on plain labels or on pgmpy networks (read, never built).
The definitions follow the papers: co-membership distance and wins/draws/losses (EMA section VI), Kullback-Leibler
divergence (EMA eq. 15), bits per holdout case (SEM section 5), rank correlation of orders (ORD section IV).
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment

from pgm_bma.foundation.faces.validation import (
    Choice,
    Flag,
    Integer,
    Number,
    as_numbers,
    check,
    check_arguments,
    is_hashable,
    reading,
    refuse_no_rows,
)
from pgm_bma.foundation.tables.table import Schema, as_column, check_weights, column_names, encode_like
from pgm_bma.networks.divergence import BLOCK, LogNetwork, divergence, row_log_likelihood, state_blocks
from pgm_bma.networks.objects import network_arrays

__all__ = [
    "WinsDrawsLosses",
    "clustering_accuracy",
    "holdout_log2_likelihood",
    "kl_divergence",
    "order_correlation",
    "partition_distance",
    "wins_draws_losses",
]


def partition_distance(
    labels_a: Any, labels_b: Any, *, normalize: bool = False, sample_weight: Any = None
) -> int | float:
    """Hamming distance between the co-membership matrices of two partitions (EMA section VI).

    Entry (i, j) of the N x N matrix of a partition is 1 if rows i and j share a cluster. The distance counts the entries in
    which two such matrices differ, every pair of rows twice as in the paper's matrices. It does not depend on how clusters are
    named. The matrices are never built: the distance is sum a^2 + sum b^2 - 2 sum n^2 over the contingency table.

    Parameters
    ----------
    labels_a, labels_b : (n_samples,) array
        Cluster labels of any kind.
    normalize : bool, default=False
        Divide by N^2, for a share between 0 and 1.
    sample_weight : (n_samples,) array, optional
        A weight means that many equal rows.

    Returns
    -------
    int or float
        The distance; a float if weighted or normalised.

    Examples
    --------
    >>> from pgm_bma.metrics import partition_distance
    >>> partition_distance([0, 0, 1, 1], ["b", "b", "a", "a"])
    0
    >>> partition_distance([0, 0, 1, 1], [0, 0, 0, 1])
    6
    >>> partition_distance([0, 0, 1, 1], [0, 0, 0, 1], normalize=True)
    0.375
    """
    check("normalize", normalize, Flag())
    a, b, weights = _paired_codes(labels_a, labels_b, sample_weight)
    _, pairs = np.unique(a * (b.max() + 1) + b, return_inverse=True)  # only the cells that occur
    squares = [np.square(np.bincount(codes, weights)).sum() for codes in (a, b, pairs)]
    distance = squares[0] + squares[1] - 2 * squares[2]
    if normalize:
        return float(distance / (len(a) if weights is None else weights.sum()) ** 2)
    return int(distance) if weights is None else float(distance)


def clustering_accuracy(labels_true: Any, labels_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of rows that are right after the best one-to-one matching of cluster names to class names.

    With unequal numbers of clusters and classes the surplus ones stay unmatched, and their rows count as wrong.

    Parameters
    ----------
    labels_true : (n_samples,) array
        Classes of any kind.
    labels_pred : (n_samples,) array
        Clusters of any kind.
    sample_weight : (n_samples,) array, optional
        A weight means that many equal rows.

    Returns
    -------
    float
        Share between 0 and 1.

    Examples
    --------
    >>> from pgm_bma.metrics import clustering_accuracy
    >>> clustering_accuracy(["u", "u", "v", "v"], [1, 1, 0, 1])
    0.75
    """
    a, b, weights = _paired_codes(labels_true, labels_pred, sample_weight)
    table = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(table, (a, b), 1.0 if weights is None else weights)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(table[rows, columns].sum() / table.sum())


def kl_divergence(
    p: Any,
    q: Any,
    *,
    base: str = "bits",
    over: str = "joint",
    align: bool = True,
    latents: Iterable | None = None,
    method: str = "exact",
    n_samples: int = 10_000,
    random_state: Any = None,
    max_states: int = 2**22,
    return_error: bool = False,
) -> float | tuple[float, float]:
    """Kullback-Leibler divergence D(p, q) of two pgmpy networks over the same variables (EMA eq. 15).

    Parameters
    ----------
    p, q : DiscreteBayesianNetwork
        Networks with the same variables and states, in any order.
    base : {"bits", "nats"}, default="bits"
        Unit of the result.
    over : {"joint", "observed"}, default="joint"
        Over all variables with the latent ones, as in EMA eq. 15, or with the latent ones summed out.
    align : bool, default=True
        Rename the latent states of q so that the divergence is smallest (over="joint"; exact, by assignment).
    latents : iterable of names, optional
        The latent variables; None takes those that either network declares.
    method : {"exact", "sample"}, default="exact"
        Enumerate every joint state, or draw `n_samples` rows from p.
    n_samples : int, default=10000
        Rows that "sample" draws, at least 2.
    random_state : int, Generator, RandomState or None
        Seed of "sample".
    max_states : int, default=4194304
        Refuse "exact" above this number of joint states.
    return_error : bool, default=False
        Return (divergence, standard error) instead; the error of "exact" is 0.

    Returns
    -------
    float or (float, float)
        The divergence, inf where q excludes what p allows; or the pair.

    Examples
    --------
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgm_bma.metrics import kl_divergence
    >>> def network(weight, tables):
    ...     model = DiscreteBayesianNetwork([("c", "x")], latents={"c"})
    ...     model.add_cpds(TabularCPD("c", 2, weight), TabularCPD("x", 2, tables, ["c"], [2]))
    ...     return model
    >>> p = network([[0.5], [0.5]], [[0.9, 0.2], [0.1, 0.8]])
    >>> q = network([[0.5], [0.5]], [[0.2, 0.9], [0.8, 0.1]])  # the same clusters under other names
    >>> round(kl_divergence(p, q), 6)
    0.0
    >>> round(kl_divergence(p, q, align=False), 4)
    1.8095
    """
    units, parts, ways = Choice("bits", "nats"), Choice("joint", "observed"), Choice("exact", "sample")
    check_arguments(locals(), base=units, over=parts, method=ways, n_samples=Integer(2, 10**9), align=Flag())
    check_arguments(locals(), return_error=Flag(), max_states=Number(1))
    unit = math.log(2) if base == "bits" else 1.0
    net_p, net_q = _comparable(p, q, latents, over)
    if method == "exact":
        total = net_p.n_hidden_states * math.prod(net_p.cardinalities[v] for v in net_p.observed)
        if total > max_states:
            raise ValueError(
                f"{total} joint states are more than max_states={max_states}; pass method='sample' for an estimate "
                f"with its standard error, or a larger max_states"
            )
        width = max(net_p.n_hidden_states, net_q.n_hidden_states)
        blocks = state_blocks([net_p.cardinalities[v] for v in net_p.observed], width)
    else:
        blocks = _sampled_blocks(net_p, n_samples, random_state)
    value, error = divergence(net_p, net_q, blocks, joint=over == "joint", align=align, sampled=method == "sample")
    value, error = float(value / unit), float(error / unit)
    return (value, error) if return_error else value


def holdout_log2_likelihood(model: Any, X: Any, *, sample_weight: Any = None, max_states: int = 2**20) -> float:
    """Mean log2 likelihood per case of rows that were not used to fit, L_test of SEM section 5. Higher is better.

    Parameters
    ----------
    model : estimator or DiscreteBayesianNetwork
        A fitted clusterer (anything with `score_samples`), or a pgmpy network.
    X : table
        Rows; for a network a DataFrame whose columns are matched by name. Latent variables, absent columns and missing
        cells are summed out exactly.
    sample_weight : (n_samples,) array, optional
        Weight of every row.
    max_states : int, default=1048576
        Refuse rows with more joint states of hidden variables than this (variables without observed descendants do not
        count).

    Returns
    -------
    float
        Bits per case.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgm_bma.metrics import holdout_log2_likelihood
    >>> model = DiscreteBayesianNetwork([("c", "x")], latents={"c"})
    >>> model.add_cpds(TabularCPD("c", 2, [[0.5], [0.5]]), TabularCPD("x", 2, [[0.9, 0.1], [0.1, 0.9]], ["c"], [2]))
    >>> round(holdout_log2_likelihood(model, pd.DataFrame({"x": [0, 1, 1]})), 9)
    -1.0
    """
    check("max_states", max_states, Number(1))
    if hasattr(model, "score_samples"):
        log_likelihood = np.asarray(model.score_samples(X), dtype=float)
    else:
        names, states, tables = _read(model)
        columns, latents = set(column_names(X)), set(model.latents)
        known = [v for v in names if v in columns and v not in latents]
        if not known:
            raise ValueError(f"X has none of the network's observed variables {[v for v in names if v not in latents]}")
        codes = encode_like(X, Schema(tuple(known), tuple(tuple(states[v]) for v in known)), of_network=True)
        log_likelihood = row_log_likelihood(_log_network(names, states, tables, known), codes, max_states)
    refuse_no_rows(log_likelihood)
    weights = check_weights(sample_weight, len(log_likelihood))
    return float(np.average(log_likelihood, weights=weights) / math.log(2))


def order_correlation(order: Sequence, reference: Sequence) -> float | np.ndarray:
    """Spearman's rank correlation of two orders of the same nodes (ORD section IV): 1 equal, -1 reversed.

    Parameters
    ----------
    order : sequence of nodes, or list of such sequences
        One order, or many.
    reference : sequence of nodes
        The partition that they are compared with.

    Returns
    -------
    float or array
        The correlation; one value per order where many were given.

    Examples
    --------
    >>> from pgm_bma.metrics import order_correlation
    >>> order_correlation("abcd", "dcba")
    -1.0
    >>> order_correlation([["a", "b", "c"], ["b", "a", "c"]], ["a", "b", "c"])
    array([1. , 0.5])
    """
    with reading("reference", reference, "a list of nodes"):
        reference = list(reference)
        position = {node: i for i, node in enumerate(reference)}
    with reading("order", order, "a list of nodes, or several of them"):
        order = list(order)
    first = order[0] if order else None
    many = isinstance(first, list | tuple | np.ndarray) and not (is_hashable(first) and first in position)
    n = len(reference)
    if n < 2 or len(position) != n:
        raise ValueError("an order needs at least two nodes, each of them once")
    ranks = []
    for nodes in order if many else [order]:
        with reading("order", nodes, "a list of nodes"):
            nodes, found = list(nodes), set(nodes)
        if len(nodes) != n or found != set(position):
            odd = sorted(map(str, found ^ set(position))) or "a node that occurs twice"
            raise ValueError(f"the two orders do not hold the same nodes: {odd}")
        ranks.append([position[node] for node in nodes])
    squares = np.square(np.asarray(ranks) - np.arange(n)).sum(axis=1)
    correlation = 1 - 6 * squares / (n * (n * n - 1))
    return correlation if many else float(correlation[0])


class WinsDrawsLosses(NamedTuple):
    """Comparison of two methods over the same cases; prints as the cells of EMA Tables I and II do."""

    wins: int
    draws: int
    losses: int
    p_value: float

    def __str__(self):
        return f"{self.wins}/{self.draws}/{self.losses}"


def wins_draws_losses(a: Any, b: Any, *, lower_is_better: bool = True, tolerance: float = 0.0) -> WinsDrawsLosses:
    """Count how often method a beats, equals and loses against method b, with Wilcoxon's signed rank test (EMA Tables I, II).

    A draw is an equal result (in the paper: equal Hamming distances to the true partition). Draws are left out of the
    test, which is two-sided; if all are draws p is 1.

    Parameters
    ----------
    a, b : (n_cases,) array
        Results of the two methods on the same cases.
    lower_is_better : bool, default=True
        True for distances and errors, False for accuracies and likelihoods.
    tolerance : float, default=0.0
        Results at most this far apart are a draw.

    Returns
    -------
    WinsDrawsLosses
        Record with the fields wins, draws, losses and p_value.

    Examples
    --------
    >>> from pgm_bma.metrics import wins_draws_losses
    >>> result = wins_draws_losses([10, 8, 6, 12, 5], [14, 8, 9, 13, 7])
    >>> print(result, result.p_value)
    4/1/0 0.125
    """
    from scipy.stats import wilcoxon

    check_arguments(locals(), tolerance=Number(0), lower_is_better=Flag())
    a, b = as_numbers("a", a, "a number for each case"), as_numbers("b", b, "a number for each case")
    if a.shape != b.shape or a.ndim != 1 or len(a) == 0:
        raise ValueError(f"a and b must be results on the same cases; their shapes are {a.shape} and {b.shape}")
    if np.isnan(a).any() or np.isnan(b).any():
        raise ValueError("a or b holds NaN; leave out the cases that one method did not finish")
    with np.errstate(invalid="ignore"):  # equal infinities have no difference: a draw
        gain = b - a if lower_is_better else a - b
    gain[(np.abs(gain) <= tolerance) | (a == b)] = 0.0
    wins, losses = int((gain > 0).sum()), int((gain < 0).sum())
    p_value = float(wilcoxon(gain[gain != 0]).pvalue) if wins + losses else 1.0
    return WinsDrawsLosses(wins, len(gain) - wins - losses, losses, p_value)


def _paired_codes(labels_a, labels_b, sample_weight):
    codes = []
    for name, labels in (("first", labels_a), ("second", labels_b)):
        labels = as_column(labels)
        if np.ndim(labels) != 1 or len(labels) == 0:
            raise ValueError(f"the {name} labels must be one label per row; their shape is {np.shape(labels)}")
        try:
            values, _ = pd.factorize(labels)
        except TypeError as error:
            raise ValueError(f"the {name} labels must be one label per row ({error})") from None
        if (values < 0).any():
            raise ValueError(f"the {name} labels hold {(values < 0).sum()} missing values; drop those rows")
        codes.append(values.astype(np.int64))
    if len(codes[0]) != len(codes[1]):
        raise ValueError(f"the partitions have {len(codes[0])} and {len(codes[1])} rows")
    return *codes, check_weights(sample_weight, len(codes[0]))


def _comparable(p, q, latents, over):
    """Both networks as arrays whose observed variables, and their states, stand in the same order."""
    names_p, states_p, tables_p = _read(p)
    names_q, states_q, tables_q = _read(q)
    with reading("latents", latents, "a list of variables, or None"):
        hidden = set(p.latents) | set(q.latents) if latents is None else set(latents)
    odd = set(names_p) ^ set(names_q)
    if odd - (hidden if over == "observed" else set()):
        raise ValueError(f"the networks differ in their variables: {sorted(map(str, odd))}")
    for v in names_q:
        if set(states_q[v]) == set(states_p.get(v, ())):
            states_q[v] = states_p[v]
        elif v not in hidden:
            raise ValueError(f"variable {v!r} has states {states_p[v]} in p and {states_q[v]} in q")
        elif over == "joint" and len(states_q[v]) != len(states_p[v]):
            raise ValueError(
                f"latent {v!r} has {len(states_p[v])} states in p and {len(states_q[v])} in q; "
                f"compare the observed variables with over='observed'"
            )
    observed = [v for v in names_p if v not in hidden]
    latent = [v for v in names_p if v in hidden]
    net_p = _log_network(names_p, states_p, tables_p, observed, latent)
    net_q = _log_network(names_q, states_q, tables_q, observed, latent if over == "joint" else None)
    return net_p, net_q


def _read(model):
    """Names, states by name and TabularCPDs of a pgmpy network."""
    arrays = network_arrays(model)  # checks the network
    cpds = {cpd.variable: cpd for cpd in model.cpds}
    return list(arrays.names), dict(zip(arrays.names, map(list, arrays.states))), cpds


def _log_network(names, states, cpds, observed, hidden=None):
    """Log tables with the states in the given order; `hidden` None means all that is not observed."""
    position = {v: i for i, v in enumerate(names)}
    parents, tables = [], []
    for v in names:
        family = cpds[v].variables
        axes = [[cpds[v].state_names[u].index(state) for state in states[u]] for u in family]
        with np.errstate(divide="ignore"):
            tables.append(np.log(np.moveaxis(np.asarray(cpds[v].values, dtype=float)[np.ix_(*axes)], 0, -1)))
        parents.append(tuple(position[u] for u in family[1:]))
    seen = set(observed)
    hidden = [v for v in names if v not in seen] if hidden is None else hidden
    where = [tuple(position[v] for v in part) for part in (observed, hidden)]
    return LogNetwork(tuple(parents), tuple(tables), *where)


def _sampled_blocks(network, n_samples, random_state):
    """Observed parts of rows drawn from the network."""
    from pgm_bma.foundation.numbers.graphs import sample_codes
    from pgm_bma.foundation.runtime.jobs import random_generator

    rng = random_generator(random_state)
    tables = [np.exp(table) for table in network.log_tables]
    step = max(1, BLOCK // network.n_hidden_states)
    for start in range(0, n_samples, step):
        codes = sample_codes(tables, network.parents, min(step, n_samples - start), rng)
        yield codes[:, list(network.observed)].astype(np.intp)
