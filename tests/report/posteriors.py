"""A posterior over structures of any size without a fit: what a report needs of an estimator, and rows to count."""

from types import SimpleNamespace

import numpy as np
import pandas as pd

from pgm_bma.networks.graphs import posterior_graph
from pgm_bma.networks.objects import bayesian_network


def posterior(n_nodes, seed=0, n_rows=200):
    """(estimator, rows): arcs along an order with posteriors of all sizes; a fifth of the nodes has none."""
    rng = np.random.default_rng(seed)
    names = [f"{word}_{i}" for i, word in zip(range(n_nodes), ["income", "age", "vote", "region", "smoker"] * n_nodes)]
    arcs, parents = {}, []
    for j in range(n_nodes):
        near = [i for i in range(max(0, j - 12), j) if i % 5 and j % 5]
        taken = rng.choice(near, min(len(near), 6), replace=False) if near else []
        for i in taken:
            p = float(rng.beta(0.3, 0.6))
            arcs[names[i], names[j]] = p
            arcs[names[j], names[i]] = 0.3 * (1 - p)
        parents.append(tuple(sorted(int(i) for i in taken if arcs[names[i], names[j]] > 0.5))[:3])
    states = [["no", "yes", "often"][: 2 + i % 2] for i in range(n_nodes)]
    cpts = [
        rng.dirichlet(np.ones(len(states[j])), int(np.prod([len(states[i]) for i in parents[j]], dtype=int)))
        for j in range(n_nodes)
    ]
    model = bayesian_network(names, states, parents, cpts)
    rows = pd.DataFrame({name: pd.Categorical(rng.choice(s, n_rows), s) for name, s in zip(names, states)})
    estimator = SimpleNamespace(edge_graph_=posterior_graph(names, arcs), model_=model, model_is_exact_=False)
    return estimator, rows
