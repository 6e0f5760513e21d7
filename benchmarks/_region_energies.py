"""Region-based entropy and free energy of a distribution over a region graph (KIK section 4); tests of its theorems use them."""

import numpy as np


def region_entropy(graph, joint, variables):
    """Region-based entropy in nats: sum over regions of c_R H(P_R), H = -sum P ln P (the paper's H_R lacks its minus sign).

    graph : as made by `region_graph`     joint : probabilities, one axis per name in `variables`
    """
    total = 0.0
    for region, number in graph.nodes(data="counting_number"):
        p = np.ravel(_marginal(joint, variables, region))
        p = p[p > 0]
        total -= number * float(p @ np.log(p))
    return total


def region_free_energy(graph, joint, energies, variables):
    """F = U - H in nats, U = sum over regions of c_R sum P(y_R) E_R(y_R).

    energies : region -> array with the axes of its marginal, 0 where a region is not named. For a product of factors,
        E_R = -sum of ln f over the factors inside R.
    """
    average = 0.0
    for region, energy in energies.items():
        number = graph.nodes[region]["counting_number"]
        average += number * float(np.sum(_marginal(joint, variables, region) * energy))
    return average - region_entropy(graph, joint, variables)


def _marginal(joint, variables, region):
    return joint.sum(axis=tuple(k for k, name in enumerate(variables) if name not in region))
