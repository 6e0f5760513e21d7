"""Input of the pgmpy estimators: a network's structure and a table become arrays, with the tables that a user gave.

The order of the nodes inside: latent variables first, then the columns as they stand in the data, so that a seed draws the
same starts here as in the scikit-learn estimators, which never see the network's own order.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.foundation.faces.validation import Fitted, Integer, as_numbers, brief, check
from pgm_bma.foundation.numbers.families import PSEUDO_COUNT, cell_alpha
from pgm_bma.foundation.rows.blocks import as_is
from pgm_bma.foundation.rows.scanned_rows import scanned_rows
from pgm_bma.foundation.runtime.jobs import progress
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.networks.given import cpt_array
from pgm_bma.networks.objects import bayesian_network

NETWORK = Fitted("a DiscreteBayesianNetwork, or a DAG with its latent variables", "nodes", "latents")


def read_network(model, data, state_names=None, latent_card=None, given=({}, {}), sample_weight=None, experiments=None):
    """Arrays of a structure and its data.

    Parameters
    ----------
    model : DiscreteBayesianNetwork; only structure and latents are read
    data : DataFrame with a column for every node that is not latent
    state_names : dict node -> states      latent_card : dict latent -> number of states
    given : (dict node -> TabularCPD for the start, dict node -> TabularCPD to keep)
    experiments : `interventions.Experiments`, optional

    Returns
    -------
    NetworkData
    """
    check("model", model, NETWORK)
    nodes = dict.fromkeys(model.nodes())  # in their order, and quick to ask
    hidden = set(model.latents)
    latents = tuple(node for node in nodes if node in hidden)
    columns = [column for column in data.columns if column in nodes and column not in hidden]
    lacking = nodes.keys() - hidden - set(columns)
    if lacking:
        node = next(node for node in nodes if node in lacking)
        raise ValueError(
            f"node {node!r} is not a column of data; add it (NaN where unknown), or make it a latent variable"
        )
    declared = declared_states(nodes, state_names, given)
    if latent_card is not None and not isinstance(latent_card, dict):
        raise ValueError(f"latent_card={brief(latent_card)} must be a dict latent variable -> number of states")
    latent_card = latent_card or {}
    for node in latent_card:
        if node not in nodes:
            raise ValueError(f"latent_card names {node!r}, which is not a node of the network")
    for node in latents:
        if node in data.columns and not _is_empty(data[node]):
            raise ValueError(
                f"{node!r} is a latent variable of the network but also a column with values; drop the column, or take "
                f"{node!r} out of the latents to use its values (NaN where unknown)"
            )
    for node in [*latents, *(c for c in columns if c in latent_card)]:
        declared.setdefault(node, range(_latent_cardinality(node, latent_card)))
        declared[node] = table.check_states(node, declared[node])
        if node in latent_card and len(declared[node]) != latent_card[node]:
            raise ValueError(
                f"latent_card gives {node!r} {latent_card[node]} states, but {len(declared[node])} are declared: "
                f"{list(declared[node])}"
            )
    read = table.encode(data[columns], {c: declared[c] for c in columns if c in declared}, sample_weight)
    whole = read.codes
    if experiments is not None:
        whole = np.column_stack([whole, experiments.held(columns, whole, sample_weight)])
    rows, weights, inverse = table.fold(whole, read.weights)
    codes = np.full((len(rows), len(latents) + len(columns)), -1, dtype=rows.dtype, order="F")
    codes[:, len(latents) :] = rows[:, : len(columns)]
    held = None
    if experiments is not None:
        held = np.zeros(codes.shape, dtype=bool)
        held[:, len(latents) :] = rows[:, len(columns) :]
    names = (*latents, *columns)
    states = (*(tuple(declared[node]) for node in latents), *read.schema.states)
    position = {node: i for i, node in enumerate(names)}
    parents = tuple(tuple(position[p] for p in model.predecessors(node)) for node in names)
    by_name = dict(zip(names, states))

    def arrays(cpds, argument):
        return {
            node: cpt_array(cpd, [names[p] for p in parents[position[node]]], by_name, argument)
            for node, cpd in cpds.items()
        }

    kept = np.arange(len(data)) if sample_weight is None else np.flatnonzero(np.asarray(sample_weight) > 0)
    return NetworkData(
        names=names,
        states=states,
        parents=parents,
        latents=latents,
        codes=codes,
        weights=weights,
        held=held,
        init=arrays(given[0], "init_cpds"),
        fixed=arrays(given[1], "fixed_cpds"),
        inverse=inverse,
        kept=kept,
    )


def check_structure(model):
    """pgmpy says NotImplementedError to whatever is no network."""
    if not hasattr(model, "latents") or not hasattr(model, "predecessors"):
        raise TypeError(f"model must be a DiscreteBayesianNetwork or a DAG of pgmpy, got {brief(model, 60)}")


def read_network_rows(model, scan, state_names=None, latent_card=None, given=({}, {}), sample_weight=None):
    """`read_network` of a scan that does not fold: `codes` are `Rows`, visited in passes, and there are no distinct rows."""
    nodes = dict.fromkeys(model.nodes())
    hidden = [node for node in nodes if node in model.latents]
    columns = [name for name in scan.names if name in nodes and name not in hidden]
    declared = declared_states(nodes, state_names, given)
    wanted = columns if sample_weight is None else [*columns, sample_weight]
    rows = scanned_rows(scan.select(wanted), {c: declared[c] for c in columns if c in declared}, sample_weight)
    states = dict(zip(rows.schema.names, rows.schema.states))
    # one row that has every column with all its states tells the rest
    head = pd.DataFrame(
        {name: pd.Categorical([known[0]], pd.Index(known, dtype=object)) for name, known in states.items()}
    )
    network = read_network(model, head, {**states, **(state_names or {})}, latent_card, given)
    n_latents = len(network.latents)
    unseen = np.zeros(int(network.cardinalities[:n_latents].sum()))
    profile = rows.profile._replace(
        schema=table.Schema(network.names, network.states),
        state_counts=np.concatenate([unseen, rows.state_counts]),
        has_missing=np.concatenate([np.ones(n_latents, dtype=bool), rows.has_missing]),
    )
    codes = rows.prepared(as_is).viewed(with_latents, n_latents, profile=profile)
    return replace(network, codes=codes, weights=None)


def with_latents(block, n_latents):
    """A block with unobserved columns before its own."""
    codes = np.full((len(block.codes), n_latents + block.codes.shape[1]), -1, dtype=block.codes.dtype, order="F")
    codes[:, n_latents:] = block.codes
    return block._replace(codes=codes)


def set_tables(estimator, model, network, tables):
    """`parameters_` and `state_names_` of a pgmpy estimator from the estimated tables, nodes in the order of `model`."""
    built = bayesian_network(network.names, network.states, network.parents, tables, network.latents)
    cpds, states = {cpd.variable: cpd for cpd in built.cpds}, dict(zip(network.names, network.states))
    estimator.parameters_ = [cpds[node] for node in model.nodes()]
    estimator.state_names_ = {node: list(states[node]) for node in model.nodes()}


def warn_unless_converged(estimator):
    """A warning if the best start of a pgmpy estimator was stopped by `max_iter`."""
    if not estimator.converged_ and estimator.max_iter > 0 and estimator.atol > 0:
        warn(
            f"the best start did not converge in max_iter={estimator.max_iter} updates; raise max_iter or atol",
            ConvergenceWarning,
        )


def check_frame(data):
    """pgmpy reads `data.columns` without asking."""
    if not hasattr(data, "columns"):
        raise ValueError(f"data is a {type(data).__name__}; pass a DataFrame whose columns are nodes of the network")


def declared_states(nodes, state_names, given):
    """States by node: from `state_names`, else from the node's own given table, else from one that has it as a parent."""
    declared = {}
    if state_names is not None:
        if not isinstance(state_names, dict):
            raise ValueError(f"state_names must be a dict node -> states, got {type(state_names).__name__}")
        for node in state_names:
            if node not in nodes:
                raise ValueError(f"state_names declares {node!r}, which is not a node of the network")
        declared.update(state_names)
    cpds = [cpd for tables in given for cpd in tables.values()]
    for cpd in cpds:
        declared.setdefault(cpd.variable, list(cpd.state_names[cpd.variable]))
    for cpd in cpds:
        for node in cpd.variables[1:]:
            declared.setdefault(node, list(cpd.state_names[node]))
    return declared


def _latent_cardinality(node, latent_card):
    cardinality = latent_card.get(node, 2)
    check(f"latent_card[{node!r}]", cardinality, Integer(1))
    return int(cardinality)


def _is_empty(column):
    return bool(pd.isna(np.asarray(column, dtype=object)).all())


def alpha_per_node(alpha, network, equivalent_sample_size=None):
    """Pseudo-counts for every node: numbers, or arrays (n_parent_states, n_states) made from pgmpy's transposed layout."""
    if equivalent_sample_size is not None:
        check("equivalent_sample_size", equivalent_sample_size, PSEUDO_COUNT)
        if isinstance(alpha, dict) or alpha != 1.0:
            raise ValueError(f"alpha={alpha!r} and {equivalent_sample_size=} exclude each other; pass one of them")
        cards = network.cardinalities
        sizes = [int(np.prod(cards[[*ps, node]], dtype=np.int64)) for node, ps in enumerate(network.parents)]
        return [cell_alpha(size, 1, equivalent_sample_size=equivalent_sample_size) for size in sizes]
    by_node = alpha if isinstance(alpha, dict) else dict.fromkeys(network.names, alpha)
    names = set(network.names)
    for node in by_node:
        if node not in names:
            raise ValueError(f"alpha names {node!r}, which is not a node of the network")
    found = []
    for i, node in enumerate(network.names):
        values = as_numbers(f"alpha[{node!r}]", by_node.get(node, 1.0), "a number or an array of numbers")
        n_states = int(network.cardinalities[i])
        n_parent_states = int(np.prod(network.cardinalities[list(network.parents[i])], dtype=np.int64))
        if not (
            np.isfinite(values) & (values <= PSEUDO_COUNT.high) & ((values == 0) | (values >= PSEUDO_COUNT.tiny))
        ).all():
            raise ValueError(
                f"alpha of {node!r} must be 0 or between {PSEUDO_COUNT.tiny} and {PSEUDO_COUNT.high}, got {by_node[node]!r}"
            )
        if values.ndim:
            if values.size != n_states * n_parent_states or values.shape[0] != n_states:
                raise ValueError(
                    f"alpha[{node!r}] has shape {values.shape}, expected a number or (n_states, n_parent_states) = "
                    f"({n_states}, {n_parent_states})"
                )
            values = values.reshape(n_states, n_parent_states).T
        found.append(values)
    return found


def progress_bar(show, unit):
    """`progress` of a pgmpy estimator: shown where both it and pgmpy's own switch allow it."""
    from pgmpy import config

    return progress(show and config.SHOW_PROGRESS, unit, label="EM")


@dataclass(frozen=True)
class NetworkData:
    """A structure and its folded data; `init` and `fixed` hold the given tables as arrays by node name.

    codes : (n_distinct_rows, n_nodes), -1 = unobserved      weights : (n_distinct_rows,); or `Rows` of `Block`, and None
    held : (n_distinct_rows, n_nodes) where an experiment set a node, or None
    inverse, kept : distinct row of every row used, and the positions of the rows used in the data
    """

    names: tuple
    states: tuple
    parents: tuple
    latents: tuple
    codes: Any
    weights: np.ndarray | None
    held: np.ndarray | None
    init: dict
    fixed: dict
    inverse: np.ndarray
    kept: np.ndarray

    @cached_property
    def cardinalities(self):
        return np.array([len(states) for states in self.states], dtype=np.int64)

    def init_tables(self, uniform=False):
        """Given tables by node position: fixed ones, else start tables, else uniform ones or None."""
        tables = []
        for i, node in enumerate(self.names):
            found = self.fixed.get(node, self.init.get(node))
            if found is None and uniform:
                shape = (int(np.prod(self.cardinalities[list(self.parents[i])], dtype=np.int64)), len(self.states[i]))
                found = np.full(shape, 1.0 / shape[1])
            tables.append(found)
        return tables

    def first_row(self, distinct):
        """Position in the data of the first row that was folded into `distinct`."""
        return int(self.kept[np.argmax(self.inverse == distinct)])
