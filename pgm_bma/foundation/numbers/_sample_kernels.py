"""Compiled step of ancestral sampling: the states of one node in all rows."""

import numpy as np

from pgm_bma.foundation.runtime.compiling import compiled


@compiled
def draw_states(uniform, codes, node, family, cpt, cardinalities, index):
    """Write ``codes[node]``: the number of thresholds of the row's parent state at or below its uniform draw.

    codes : (n_nodes, n_rows)    family : (n_parents,) nodes, first slowest    cpt : (n_parent_states, n_states)
    cardinalities : (n_nodes,)   index : (n_rows,) working space
    returns False, and writes nothing, where a row of the table is no distribution
    """
    thresholds = np.empty((cpt.shape[1] - 1, cpt.shape[0]))
    for row in range(cpt.shape[0]):
        total = 0.0
        for k in range(cpt.shape[1]):
            if not cpt[row, k] >= 0:
                return False
            total += cpt[row, k]
        if not 0 < total < np.inf:
            return False
        # dividing the running sum by its own last entry makes it exactly 1 once the mass is used up: a state of
        # probability 0 is never drawn
        running = 0.0
        for k in range(cpt.shape[1] - 1):
            running += cpt[row, k]
            thresholds[k, row] = running / total
    index[:] = 0
    for j in range(len(family)):
        parent, cardinality = codes[family[j]], cardinalities[family[j]]
        for i in range(len(index)):
            index[i] = index[i] * cardinality + parent[i]
    states = codes[node]
    states[:] = 0
    for k in range(len(thresholds)):
        threshold = thresholds[k]
        for i in range(len(index)):
            states[i] += uniform[i] >= threshold[index[i]]
    return True
