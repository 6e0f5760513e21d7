"""Sampling the layers of DAGs in proportion to the DAGs' posterior: one DAG, one vote, for any number of variables."""

import numpy as np

from pgm_bma.orders.chains._partition_kernels import run_layers, score_layers
from pgm_bma.orders.chains.chains import run_chains


def sample_layers(families, starts, rngs, **settings):
    """Chains over layer numbers from `starts`; settings and result as in `chains.run_chains`."""
    return run_chains(run_layers, families, starts, rngs, **settings)


def layers_log_score(families, layers):
    """Log of the summed weight of all DAGs with these layers."""
    return score_layers(np.asarray(layers, dtype=np.int64), families, np.zeros(len(layers)))


def dag_layers(parents):
    """Layer number of every node of a DAG given as parent tuples: one more than the highest layer among its parents."""
    layers = np.full(len(parents), -1, dtype=np.int64)
    while (layers < 0).any():
        ready = [v for v, z in enumerate(parents) if layers[v] < 0 and all(layers[p] >= 0 for p in z)]
        if not ready:
            raise ValueError("the parents form a cycle")
        for v in ready:
            layers[v] = max((layers[p] + 1 for p in parents[v]), default=0)
    return layers


def start_layers(n, required=()):
    """Layers to start a chain from: one layer, or what the required arcs ask for."""
    return dag_layers([tuple(p for p, c in required if c == v) for v in range(n)])
