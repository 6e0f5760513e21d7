"""Public results of a Kikuchi-Bayes fit: names on regions, tests and terms; region graphs, Markov and Bayesian networks.

Inside, a region is a tuple of attribute numbers and the class is implied. Here the class is the variable after the last
attribute. Factors are exp(weight x interaction term), so their product is Phi with the class-free regions included, and
each of them stays finite where P^c would overflow.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import bounded
from pgm_bma.kikuchi.regions import elimination_order, region_closure
from pgm_bma.kikuchi.terms import term_table
from pgm_bma.networks.graphs import directed_graph
from pgm_bma.networks.objects import bayesian_network, markov_network

if TYPE_CHECKING:
    import networkx as nx


def named_region(attributes, names, target):
    """frozenset of column names and the class."""
    return frozenset([*(names[a] for a in attributes), target])


def tests_frame(tests, names, target):
    """All tests of region selection, level by level, as a DataFrame with one row per focus."""
    columns = ["region", "level", "loss", "mean_self_loss", "p", "z", "resampled", "taken"]
    parts = []
    for level, test in enumerate(tests, start=1):
        regions = np.empty(len(test.sets), dtype=object)
        regions[:] = [named_region(s, names, target) for s in test.sets]
        values = regions, level, test.loss, test.mean, test.p, test.z, test.resampled, test.taken
        parts.append(pd.DataFrame(dict(zip(columns, values))))
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def region_series(sets, values, names, target, name):
    """Series of one number per term, indexed by its region."""
    index = pd.Index([named_region(s, names, target) for s in sets], dtype=object, tupleize_cols=False, name="region")
    return pd.Series(values, index=index, name=name)


def region_labels(sets, names):
    """Readable names of terms: the attributes, "(prior)" for the class alone."""
    return [", ".join(str(names[a]) for a in s) or "(prior)" for s in sets]


def log_factors(fit, free_terms, n_features):
    """[(variables, logs)]: weighted terms with the class as the last axis, then terms without it.

    free_terms : Terms of a table without the class (one state), or None
    """
    factors = []
    for t, s in enumerate(fit.terms.layout.sets):
        if fit.weights[t] != 0:
            factors.append(((*s, n_features), fit.weights[t] * term_table(fit.terms, t)))
    if free_terms is not None:
        own = set(fit.terms.layout.sets)
        for t, s in enumerate(free_terms.layout.sets):
            if s not in own:  # else the class-holding term has it already
                factors.append((s, term_table(free_terms, t)[..., 0]))
    return factors


def kikuchi_markov_network(factors, names, states):
    """The model as a pgmpy ``DiscreteMarkovNetwork``; `names` and `states` end with the class."""
    return markov_network(names, states, [(variables, np.exp(values)) for variables, values in factors])


def kikuchi_bayesian_network(factors, regions, names, states):
    """The normalised model as a pgmpy ``DiscreteBayesianNetwork``, when its regions are acyclic.

    regions : sets of positions in `names`, the class last
    """
    target = len(names) - 1
    steps, core = elimination_order(regions, last=target)
    if steps is None:
        shown = ", ".join("{" + ", ".join(str(names[v]) for v in sorted(region)) + "}" for region in core[:4])
        more = f" and {len(core) - 4} more" if len(core) > 4 else ""
        raise ValueError(
            f"the regions have a loop, so that no Bayesian network of their size equals the model: {shown}{more}; fit with "
            "cycles='gated' or give acyclic regions=, or use model_ (a Markov network)"
        )
    cardinalities = {k: len(s) for k, s in enumerate(states)}
    families = directed_tables(factors, cardinalities, steps)
    order = list(families)
    position = {v: k for k, v in enumerate(order)}
    return bayesian_network(
        [names[v] for v in order],
        [states[v] for v in order],
        [[position[p] for p in families[v][0]] for v in order],
        [families[v][1] for v in order],
    )


def directed_tables(log_factors, cardinalities, steps):
    """Parents and conditional tables of the network that equals the normalised product.

    Parameters
    ----------
    log_factors : list of (variables, array of logs with one axis per variable)
    cardinalities : dict variable -> number of states
    steps : list of (variable, other variables of its region at that moment), the order of elimination

    Returns
    -------
    dict variable -> (parents, table (*parent cardinalities, n_states)), the last variable eliminated first
    """
    waiting: dict[Any, list] = {}  # variable that goes first among those of the factor -> factors
    when = {variable: step for step, (variable, _) in enumerate(steps)}
    for variables, values in log_factors:
        _wait(waiting, when, tuple(variables), np.asarray(values, dtype=float))
    families = {}
    for variable, others in steps:
        parents = tuple(sorted(others, key=when.__getitem__, reverse=True))
        family = (*parents, variable)
        total = np.zeros([cardinalities[v] for v in family])
        for variables, values in waiting.pop(variable, []):
            total = total + aligned(values, variables, family)
        normaliser = np.logaddexp.reduce(total, axis=-1, keepdims=True)
        families[variable] = parents, np.exp(total - normaliser)
        if parents:
            _wait(waiting, when, parents, normaliser[..., 0])
    return dict(reversed(families.items()))


def aligned(values, variables, family):
    """View of a table with the axes of `family`; variables that it does not hold get length 1."""
    order = sorted(range(len(variables)), key=lambda k: family.index(variables[k]))
    values = np.transpose(values, order)
    held = [variables[k] for k in order]
    return values.reshape([values.shape[held.index(v)] if v in held else 1 for v in family])


def _wait(waiting, when, variables, values):
    if variables:
        waiting.setdefault(min(variables, key=when.__getitem__), []).append((variables, values))


def region_graph(initial_regions: Any) -> nx.DiGraph:
    """Region graph of the cluster variation method.

    The nodes are the maximal initial regions and all their non-empty intersections. Counting numbers make every subset of a
    region count once: c_R = 1 - (sum over strict supersets).

    Parameters
    ----------
    initial_regions : iterable of iterables of names
        Regions inside others drop out, and so do empty ones.

    Returns
    -------
    networkx.DiGraph
        Nodes are frozensets with the attributes ``counting_number`` (int; may be 0) and ``level`` (0 for a maximal region, else
        one more than the deepest region above it). An edge goes from a region to each largest one inside it.

    Examples
    --------
    >>> from pgm_bma import region_graph
    >>> graph = region_graph(["AB", "BC", "CA"])
    >>> {"".join(sorted(region)): number for region, number in graph.nodes(data="counting_number")}
    {'AB': 1, 'AC': 1, 'BC': 1, 'A': -1, 'B': -1, 'C': -1}
    """
    if isinstance(initial_regions, str) or not hasattr(initial_regions, "__iter__"):
        raise ValueError(f"initial_regions must be several regions, got {initial_regions!r}; pass a list")
    initial_regions = list(bounded("initial_regions", initial_regions))
    for region in initial_regions:
        if not hasattr(region, "__iter__"):
            raise ValueError(f"a region must be several names, got {region!r}; write [{region!r}]")
    initial_regions = [list(region) for region in initial_regions]
    for name in (name for region in initial_regions for name in region):
        if not isinstance(name, Hashable):
            raise ValueError(f"a name in a region must be hashable, got {name!r}; a region is a flat list of names")
    numbers, levels, covers = region_closure(initial_regions)
    nodes = list(numbers)
    position = {region: k for k, region in enumerate(nodes)}
    return directed_graph(
        nodes,
        [(position[larger], position[smaller]) for larger, smaller in covers],
        node_data={"counting_number": list(numbers.values()), "level": [levels[region] for region in nodes]},
    )
