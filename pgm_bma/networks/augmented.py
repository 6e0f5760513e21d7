"""Naive Bayes and augmented naive Bayes as pgmpy networks: a class or cluster, and columns with at most one other parent."""

import numpy as np

from pgm_bma.networks.objects import bayesian_network


def augmented_network(class_name, class_states, class_probability, names, states, tables, parents=None, latent=False):
    """Network with `class_name` as a parent of every column.

    class_probability : (n_classes,)     parents : (n_columns,) attribute parents, -1 = none (default: naive Bayes)
    tables : per column (n_classes, cardinality) or (n_classes, cardinality of the parent, cardinality)
    latent : the class is a cluster that nobody observed
    """
    parents = [-1] * len(names) if parents is None else parents
    families = [(0,) if parent < 0 else (0, int(parent) + 1) for parent in parents]
    cpts = [np.reshape(table, (-1, np.shape(table)[-1])) for table in tables]
    return bayesian_network(
        [class_name, *names],
        [class_states, *states],
        [(), *families],
        [np.reshape(class_probability, (1, -1)), *cpts],
        latents=[class_name] if latent else [],
    )
