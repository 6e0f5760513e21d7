"""Bound and Collapse for any discrete network with missing cells: intervals of the probabilities, and one value in each."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from pgm_bma.augmented.bound_collapse import bound_and_collapse_families, check_table_sizes
from pgm_bma.foundation.faces.validation import Instance, Optional, check
from pgm_bma.networks.reading import alpha_per_node, check_frame, read_network


def bound_and_collapse(
    model: Any,
    data: Any,
    missing_pattern: dict | None = None,
    *,
    alpha: float | dict = 1.0,
    equivalent_sample_size: float | None = None,
    state_names: dict | None = None,
    latent_card: dict | None = None,
    sample_weight: ArrayLike | None = None,
) -> dict:
    """Bound every conditional probability over all completions of the missing cells, then collapse each interval.

    Parameters
    ----------
    model : pgmpy DAG or DiscreteBayesianNetwork
        Only the structure, the latents and, where there are tables, the state names are read.
    data : DataFrame
        A column for every node that is not latent; NaN and None are missing.
    missing_pattern : dict, optional
        Node -> P(a missing case takes this state): (n_states,) or (n_parent_states, n_states), parents in the order of
        ``model.predecessors(node)``, the first slowest. Nodes that are left out are missing at random: their weights are
        the estimates from the complete cases.
    alpha : float or dict, default=1.0
        Pseudo-count of every cell, by node where a dict; the intervals hold the posterior means of all completions.
    equivalent_sample_size : float, optional
        Total prior mass of every table (BDeu), instead of `alpha`.
    state_names : dict, optional
        Node -> states that the data do not show.
    latent_card : dict, optional
        Latent node -> number of states.
    sample_weight : array of shape (n_samples,), optional
        A weight is a repetition of the row.

    Returns
    -------
    dict
        Node -> `NodeBounds`: arrays `lower`, `upper`, `collapsed`, `counts`, `possible`, `weights`, all (n_parent_states,
        n_states); `to_frame()` is a table to look at, and ``plotting.plot_bound_collapse(b.lower, b.upper, b.collapsed,
        labels=b.labels)`` a picture.

    References
    ----------
    Ramoni, Sebastiani: Parameter estimation in Bayesian networks from incomplete databases. Intelligent Data Analysis 2
    (1998).

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.base import DAG
    >>> from pgm_bma import bound_and_collapse
    >>> data = pd.DataFrame({"a": ["x", "x", "y", None], "b": ["u", "v", None, "v"]})
    >>> bounds = bound_and_collapse(DAG([("a", "b")]), data)
    >>> bounds["a"].to_frame()[["a", "lower", "collapsed", "upper"]].round(3)
       a  lower  collapsed  upper
    0  x  0.500        0.6  0.667
    1  y  0.333        0.4  0.500
    """
    if not hasattr(model, "predecessors"):
        raise TypeError(f"expected a pgmpy DAG or DiscreteBayesianNetwork, got {type(model).__name__}")
    check_frame(data)
    tables = {cpd.variable: cpd for cpd in getattr(model, "cpds", None) or []}
    network = read_network(model, data, _all_states(tables, state_names), latent_card, sample_weight=sample_weight)
    check_table_sizes(network.cardinalities, network.parents, network.names)
    alphas = alpha_per_node(alpha, network, equivalent_sample_size)
    for node, values in zip(network.names, alphas):
        if np.ndim(values):
            raise ValueError(f"alpha[{node!r}] is an array; pass one pseudo-count per table")
    patterns = _patterns(missing_pattern, network)
    records = bound_and_collapse_families(
        network.codes,
        network.cardinalities,
        network.parents,
        network.weights,
        [float(a) for a in alphas],
        patterns,
    )
    found = {}
    for node, states, ps, record in zip(network.names, network.states, network.parents, records):
        parents = tuple(network.names[p] for p in ps)
        found[node] = NodeBounds(node, tuple(states), parents, tuple(network.states[p] for p in ps), *record)
    return {node: found[node] for node in model.nodes()}


def _all_states(tables, state_names):
    """Declared states, else those of the network's own tables."""
    known = {node: list(cpd.state_names[node]) for node, cpd in tables.items()}
    check("state_names", state_names, Optional(Instance(dict, "a dict node -> list of its states")))
    return {**known, **(state_names or {})} or None


def _patterns(missing_pattern, network):
    if missing_pattern is None:
        return None
    if not isinstance(missing_pattern, dict):
        raise ValueError(f"missing_pattern must be a dict node -> array, got {type(missing_pattern).__name__}")
    for node in missing_pattern:
        if node not in network.names:
            raise ValueError(f"missing_pattern names {node!r}, which is not a node of the network")
    found: list[np.ndarray | None] = []
    for i, node in enumerate(network.names):
        if missing_pattern.get(node) is None:
            found.append(None)
            continue
        shape = int(np.prod(network.cardinalities[list(network.parents[i])], dtype=np.int64)), len(network.states[i])
        try:
            values = np.asarray(missing_pattern[node], dtype=float)
        except (TypeError, ValueError):
            raise ValueError(f"missing_pattern[{node!r}]={missing_pattern[node]!r} must hold numbers") from None
        if values.shape not in (shape, shape[1:]):
            raise ValueError(
                f"missing_pattern[{node!r}] has shape {values.shape}, expected (n_states,) = {shape[1:]} or "
                f"(n_parent_states, n_states) = {shape}"
            )
        if not np.isfinite(values).all() or (values < 0).any() or (values.sum(axis=-1) <= 0).any():
            raise ValueError(f"missing_pattern[{node!r}] needs weights >= 0 with a positive sum in every line")
        found.append(np.broadcast_to(values, shape))
    return found


@dataclass(frozen=True)
class NodeBounds:
    """Bounds and collapsed values of one node; every array is (n_parent_states, n_states), first parent slowest.

    lower, upper : extremes of the estimate over all completions of the missing cells
    collapsed : the value chosen between them, a weighted mean of the tables in which all uncertain cases go to one state
    counts : complete cases      possible : incomplete cases that could become this cell
    weights : collapse weights, P(a missing case takes this state)
    """

    node: object
    states: tuple
    parents: tuple
    parent_states: tuple
    lower: np.ndarray
    upper: np.ndarray
    collapsed: np.ndarray
    counts: np.ndarray
    possible: np.ndarray
    weights: np.ndarray

    def to_frame(self):
        """The intervals as a DataFrame: one line per parent state and state, `width` the length of the interval."""
        rows = [(*above, state) for above in product(*self.parent_states) for state in self.states]
        frame = pd.DataFrame(rows, columns=pd.Index([*self.parents, self.node], dtype=object))
        for name in ("lower", "collapsed", "upper"):
            frame[name] = getattr(self, name).ravel()
        frame["width"] = frame["upper"] - frame["lower"]
        frame["counts"], frame["possible"] = self.counts.ravel(), self.possible.ravel()
        return frame

    @property
    def labels(self):
        """One text per cell, "state | parent=state, ...", for pictures."""
        texts = []
        for above in product(*self.parent_states):
            given = ", ".join(f"{parent}={state}" for parent, state in zip(self.parents, above))
            texts += [f"{state} | {given}" if given else str(state) for state in self.states]
        return texts
