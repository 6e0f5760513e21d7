"""Exact answers from a discrete network for whole tables at once: log-likelihood, posteriors, and missing values filled in.

`data` is a table whose columns are nodes of the network. A missing cell (NaN, None) and a node without a column are
unobserved and are summed out exactly, latent variables included; columns that are no nodes are ignored. All rows share one
junction tree, and equal pieces of evidence are computed once, so a thousand rows cost little more than one.
"""

from typing import Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import Choice, Flag, Number, bounded, brief, check, is_hashable
from pgm_bma.foundation.runtime.jobs import random_generator
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.missing import as_frame, labelled
from pgm_bma.networks import evidence
from pgm_bma.networks.em import flatten
from pgm_bma.networks.junction_tree import MAX_CLIQUE_SIZE, CliqueTooLarge, build_tree, relevant_variables
from pgm_bma.networks.objects import network_arrays


def log_likelihood(
    model: Any,
    data: Any,
    sample_weight: Any = None,
    per_row: bool = False,
    handle_unknown: str = "error",
    max_clique_size: int = MAX_CLIQUE_SIZE,
) -> float | pd.Series:
    """Natural log probability of the observed cells of `data` under a network.

    Parameters
    ----------
    model : DiscreteBayesianNetwork
        A pgmpy network with its tables.
    data : table
        Columns are nodes of the network; others are ignored.
    sample_weight : (n_samples,) array, optional
        Weights of the rows in the sum.
    per_row : bool, default=False
        Return a Series with one value per row instead of the (weighted) sum.
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of values that are not states of their node.
    max_clique_size : int, default=4194304
        Joint states of a clique beyond which the network is refused.

    Returns
    -------
    float or Series
        Nats; -inf for impossible rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import load_network, log_likelihood
    >>> rows = pd.DataFrame({"smoke": ["yes", "no"], "lung": ["yes", None]})
    >>> log_likelihood(load_network("asia"), rows, per_row=True).round(4).tolist()
    [-2.9957, -0.6931]
    """
    check("per_row", per_row, Flag())
    asked = _Question(model, data, (), handle_unknown, max_clique_size)
    values = evidence.row_log_likelihood(asked.plan(), asked.theta)[asked.inverse]
    if per_row:
        return pd.Series(values, index=asked.index, name="log_likelihood")
    weights = table.check_weights(sample_weight, len(values))
    if weights is None:
        return float(values.sum())
    return float(weights[weights > 0] @ values[weights > 0])


def predict_proba(
    model: Any,
    data: Any,
    variables: Any = None,
    handle_unknown: str = "error",
    max_clique_size: int = MAX_CLIQUE_SIZE,
) -> pd.DataFrame:
    """Posterior probabilities of variables given each row, everything unobserved summed out.

    Parameters
    ----------
    model : DiscreteBayesianNetwork
        A pgmpy network with its tables.
    data : table
        Columns are nodes of the network; others are ignored.
    variables : node or list of nodes, optional
        What to predict; None takes all nodes that are not columns of `data`. A variable that is observed in a row has
        probability one at its value there: drop its column to predict it.
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of values that are not states of their node.
    max_clique_size : int, default=4194304
        Joint states of a clique beyond which the network is refused.

    Returns
    -------
    DataFrame
        A row per row of `data`. One node: a column per state. A list: columns (variable, state).

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import load_network, predict_proba
    >>> rows = pd.DataFrame({"smoke": ["yes", "no"], "xray": ["yes", None]})
    >>> predict_proba(load_network("asia"), rows, "lung").round(4)
    lung    yes     no
    0     0.646  0.354
    1     0.010  0.990
    """
    nodes = dict.fromkeys(network_arrays(model).names)
    single = isinstance(variables, str) or (is_hashable(variables) and variables in nodes)
    if variables is None:
        present = set(table.read_columns(data)[0])
        wanted = [node for node in nodes if node not in present]
        if not wanted:
            raise ValueError("every node is a column of data; name the variables to predict, or drop their columns")
    else:
        wanted = list(bounded("variables", variables)) if not single and np.iterable(variables) else [variables]
    for node in wanted:
        if not is_hashable(node) or node not in nodes:
            raise ValueError(f"variables names {brief(node)}, which is not a node of the network")
    asked = _Question(model, data, wanted, handle_unknown, max_clique_size)
    found = asked.answer(lambda plan: evidence.posteriors(plan, asked.theta, [asked.position[v] for v in wanted]))
    values = (
        np.concatenate([rows[asked.inverse] for rows in found], axis=1) if found else np.zeros((len(asked.index), 0))
    )
    if single:
        columns = pd.Index(list(asked.states[variables]), name=variables, tupleize_cols=False)
    else:
        pairs = [(node, state) for node in wanted for state in asked.states[node]]
        columns = pd.MultiIndex.from_tuples(pairs, names=["variable", "state"])
    return pd.DataFrame(values, index=asked.index, columns=columns)


def impute(
    model: Any,
    data: Any,
    method: str = "marginal",
    random_state: Any = None,
    handle_unknown: str = "error",
    max_clique_size: int = MAX_CLIQUE_SIZE,
) -> pd.DataFrame:
    """Fill the missing cells of a table from a network.

    Parameters
    ----------
    model : DiscreteBayesianNetwork
        A pgmpy network with its tables.
    data : table
        Columns that are no nodes stay as they are.
    method : {"marginal", "joint", "sample"}, default="marginal"
        "marginal": each cell its own most probable state, which gets the most cells right. "joint": the jointly most
        probable states of all unobserved nodes, latent variables and nodes without a column included. "sample": one
        draw per row from the joint posterior, for multiple imputation. Ties go to the first state.
    random_state : int, Generator, RandomState or None
        Seed of "sample".
    handle_unknown : {"error", "missing"}, default="error"
        Treatment of values that are not states of their node.
    max_clique_size : int, default=4194304
        Joint states of a clique beyond which the network is refused.

    Returns
    -------
    DataFrame
        Like `data`, without missing values in the columns that are nodes.

    Examples
    --------
    >>> import pandas as pd
    >>> from pgm_bma import impute, load_network
    >>> rows = pd.DataFrame({"smoke": ["yes", None], "lung": [None, "yes"], "note": ["a", None]})
    >>> impute(load_network("asia"), rows)
      smoke lung note
    0   yes   no    a
    1   yes  yes  NaN
    """
    check("method", method, Choice("marginal", "joint", "sample"))
    # nodes below all columns sum to one and may be cut off, but not where the maximum over them counts
    wanted = list(network_arrays(model).names) if method == "joint" else ()
    asked = _Question(model, data, wanted, handle_unknown, max_clique_size)
    open_columns = [v for v in asked.columns if (asked.codes[:, asked.position[v]] < 0).any()]
    positions = [asked.position[v] for v in open_columns]
    if method == "marginal":
        found = asked.answer(lambda plan: evidence.posteriors(plan, asked.theta, positions))
        states = [np.argmax(rows, axis=1)[asked.inverse] for rows in found]
    elif method == "joint":
        found = asked.answer(lambda plan: evidence.completions(plan, asked.theta))
        states = [found[asked.inverse, p] for p in positions]
    else:
        asked = asked.unfolded()
        rng = random_generator(random_state)
        found = asked.answer(lambda plan: evidence.completions(plan, asked.theta, rng), fold=False)
        states = [found[:, p] for p in positions]
    filled = data.copy() if isinstance(data, pd.DataFrame) else as_frame(data)
    for column, codes in zip(open_columns, states):
        filled[column] = labelled(filled[column], asked.states[column], codes)
    return filled


class _Question:
    """A network without what cannot matter, and the table as folded codes, one column per node that is left."""

    def __init__(self, model, data, variables, handle_unknown, max_clique_size):
        network = network_arrays(model)
        check("handle_unknown", handle_unknown, Choice("error", "missing"))
        states = dict(zip(network.names, network.states))
        self.states, self.max_clique_size = states, max_clique_size
        check("max_clique_size", max_clique_size, Number(1))
        names, read, n_rows = table.read_columns(data)
        if not read.named and n_rows:
            raise ValueError(
                "the columns of data have no names; pass a DataFrame whose columns are nodes of the network"
            )
        self.columns = [name for name in names if name in states]
        self.index = data.index if isinstance(data, pd.DataFrame) else pd.RangeIndex(n_rows)
        self.schema = table.Schema(tuple(self.columns), tuple(states[c] for c in self.columns))
        if self.columns:
            self.given_codes = table.encode_like(data, self.schema, handle_unknown, of_network=True)
        else:
            self.given_codes = np.zeros((n_rows, 0), dtype=np.int8)
        place = {name: i for i, name in enumerate(network.names)}
        kept = relevant_variables(network.parents, [place[v] for v in [*self.columns, *variables]])
        self.names = [network.names[v] for v in kept]
        self.position = {name: i for i, name in enumerate(self.names)}
        new = {v: i for i, v in enumerate(kept)}
        self.parents = [tuple(new[p] for p in network.parents[v]) for v in kept]
        self.cardinalities = np.array([len(states[name]) for name in self.names], dtype=np.int64)
        self.theta = flatten([network.cpts[v] for v in kept])
        rows, _, self.inverse = table.fold(self.given_codes)
        self.codes = self._spread(rows)

    def _spread(self, rows):
        """Codes of the columns at the places of their nodes, -1 for the nodes without a column."""
        codes = np.full((len(rows), len(self.names)), -1, dtype=rows.dtype, order="F")
        codes[:, [self.position[c] for c in self.columns]] = rows
        return codes

    def unfolded(self):
        self.codes = self._spread(self.given_codes)
        self.inverse = np.arange(len(self.codes))
        return self

    def plan(self, fold=True):
        hidden = np.flatnonzero((self.codes < 0).any(axis=0))
        try:
            tree = build_tree(self.cardinalities, self.parents, hidden, max_clique_size=self.max_clique_size)
        except CliqueTooLarge as error:
            raise error.named(self.names) from None
        return evidence.plan_rows(tree, self.codes, fold=fold)

    def answer(self, question, fold=True):
        """Ask the plan; impossible rows are named as they stand in the data."""
        plan = self.plan(fold)
        try:
            possible = evidence.observed_rows_possible(plan, self.theta)
            if not possible.all():
                raise evidence.ImpossibleEvidence(int(np.argmin(possible)))
            return question(plan)
        except evidence.ImpossibleEvidence as error:
            row = int(np.argmax(self.inverse == error.row))
            raise evidence.ImpossibleEvidence(row, self.index[row]) from None
