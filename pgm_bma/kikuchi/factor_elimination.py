"""An acyclic product of factors as a Bayesian network, exactly and without fill-in.

Variables go one after the other (`regions.elimination_order`). When a variable goes, every factor that holds it lies
inside one region; their product, normalised over the variable, is its conditional table given the rest of the region, and
the normaliser is passed on as a factor of that rest. What comes out is the normalised product: the directed tables multiply
to it, whatever the factors were.
"""

import numpy as np


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
    waiting = {}  # variable that goes first among those of the factor -> factors
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
