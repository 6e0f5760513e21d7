"""Region-based entropy and free energy of a distribution over a region graph (KIK section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pgm_bma.foundation.faces.validation import as_numbers, reading
from pgm_bma.foundation.numbers.graphs import check_region_graph

if TYPE_CHECKING:
    import networkx as nx


def region_entropy(graph: nx.DiGraph, marginals: Any, variables: Any = None) -> float:
    """Region-based entropy in nats: sum over regions of c_R H(P_R), H = -sum P ln P.

    With the marginals of one joint distribution P this equals -sum_y P(y) ln Phi(y), Phi = prod P(y_R)^c_R (KIK theorem 2; the
    paper's H_R lacks its minus sign), and it is the entropy of P itself when the regions are acyclic and P factorises over them.

    Parameters
    ----------
    graph : networkx.DiGraph
        Region graph, as made by `region_graph`.
    marginals : array, Series or dict
        A joint distribution: array with one axis per name in `variables`, or Series with a MultiIndex that is named like the
        variables, such as ``frame.value_counts(normalize=True)``. Or a dict region -> array of its probabilities.
    variables : sequence of names, optional
        Names of the axes, when `marginals` is an array.

    Returns
    -------
    float
        The entropy in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma import region_entropy, region_graph
    >>> fair = np.full((2, 2, 2), 1 / 8)
    >>> print(round(region_entropy(region_graph(["AB", "BC"]), fair, "ABC") / np.log(2), 12))
    3.0
    """
    check_region_graph(graph)
    table = _marginal_reader(marginals, variables)
    total = 0.0
    for region, number in graph.nodes(data="counting_number"):
        if number:
            p = np.ravel(table(region))
            if not abs(p.sum() - 1) <= 1e-6 or p.min() < 0:
                raise ValueError(
                    f"the probabilities of region {sorted(map(str, region))} sum to {p.sum():.6g} with a smallest one of "
                    f"{p.min():.6g}; pass a distribution, such as frame.value_counts(normalize=True)"
                )
            p = p[p > 0]
            total -= number * float(p @ np.log(p))
    return total


def region_free_energy(graph: nx.DiGraph, marginals: Any, energies: dict, variables: Any = None) -> float:
    """Region-based free energy F = U - H in nats, U = sum over regions of c_R sum P(y_R) E_R(y_R).

    Parameters
    ----------
    graph : networkx.DiGraph
        Region graph, as made by `region_graph`.
    marginals : array, Series or dict
        The distribution, as in `region_entropy`.
    energies : dict
        Region -> array E_R(y_R) with the axes of that region's marginal (in the order of `variables`, or of the index); regions
        that are not named have energy 0. For a product of factors, E_R = -sum of ln f over the factors inside R.
    variables : sequence of names, optional
        Names of the axes, when `marginals` is an array.

    Returns
    -------
    float
        The free energy in nats.

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma import region_free_energy, region_graph
    >>> p = np.array([[0.4, 0.1], [0.2, 0.3]])
    >>> round(region_free_energy(region_graph(["AB"]), p, {frozenset("AB"): -np.log(p)}, "AB"), 12) == 0
    True
    """
    table = _marginal_reader(marginals, variables)
    check_region_graph(graph)
    with reading("energies", energies, "a dict region -> array of numbers"):
        energies = {frozenset(region): np.asarray(energy, dtype=float) for region, energy in energies.items()}
    unknown = [region for region in energies if region not in graph]
    if unknown:
        raise ValueError(f"energies name {sorted(map(str, unknown[0]))}, which is no region of the graph")
    average = 0.0
    for region, energy in energies.items():
        p = np.asarray(table(region), dtype=float)
        if energy.shape != p.shape:
            raise ValueError(
                f"the energy of {sorted(map(str, region))} has shape {energy.shape}, its marginal {p.shape}"
            )
        filled = p > 0
        average += graph.nodes[region]["counting_number"] * float(p[filled] @ energy[filled])
    return average - region_entropy(graph, marginals, variables)


def _marginal_reader(marginals, variables):
    """Function region -> array of its probabilities."""
    if hasattr(marginals, "index") and hasattr(marginals, "groupby"):
        levels = list(marginals.index.names)
        if None in levels:
            raise ValueError("the index of the joint distribution must be named like the variables")

        def from_series(region):
            _refuse_unknown(region, levels)
            kept = [level for level in levels if level in region]
            return marginals.groupby(level=kept, observed=False).sum().to_numpy()

        return from_series
    if hasattr(marginals, "keys"):
        with reading("marginals", marginals, "a dict region -> array of its probabilities"):
            tables = {frozenset(region): np.asarray(table, dtype=float) for region, table in marginals.items()}

        def from_dict(region):
            if region not in tables:
                raise ValueError(f"no marginal is given for region {sorted(map(str, region))}")
            return tables[region]

        return from_dict
    joint = as_numbers("marginals", marginals, "a joint distribution, or a dict region -> array of probabilities")
    if variables is None or len(variables) != joint.ndim:
        raise ValueError(f"name the {joint.ndim} axes of the joint distribution by variables=")
    names = list(variables)

    def from_joint(region):
        _refuse_unknown(region, names)
        return joint.sum(axis=tuple(k for k, name in enumerate(names) if name not in region))

    return from_joint


def _refuse_unknown(region, known):
    unknown = [name for name in region if name not in known]
    if unknown:
        raise ValueError(f"region {sorted(map(str, region))} holds {unknown[0]!r}, which the joint distribution lacks")
