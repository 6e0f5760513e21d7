"""Sums over all rooted forests: every node has one parent or is a root, without cycles.

With arc weights a_ij (j is the parent of i) and root weights r_i, the sum over all forests of the product of their weights is
det(diag(r + row sums of a) - a) (directed matrix-tree theorem). The determinant is never formed: nodes are eliminated one by one
without a subtraction (k = n-1 .. 0, the weights of the nodes that remain absorb the paths through k):

    s_k = r_k + sum_j a_kj        a_ij += a_ik a_kj / s_k        r_i += a_ik r_k / s_k        log sum = sum_k log s_k

and the reverse sweep of the same steps gives the posterior of every arc and root.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.augmented._branching_kernels import maximum_arborescence
from pgm_bma.forests import _kernels as kernels

NO_FOREST = "every forest has weight 0; allow a root or break the cycles of required arcs"


class ForestSum(NamedTuple):
    """log_sum: log of the sum over all forests; arc_posterior (n, n), [child, parent]; root_posterior (n,)."""

    log_sum: float
    arc_posterior: np.ndarray
    root_posterior: np.ndarray


def forest_sum(log_arc_weights, log_root_weights):
    """Sum over all rooted forests with the posterior of every arc and root.

    Parameters
    ----------
    log_arc_weights : (n, n), [child, parent]; the diagonal is ignored; -inf forbids an arc
    log_root_weights : (n,)

    Returns
    -------
    ForestSum; the posteriors of a node's arcs and of its being a root sum to 1

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma.forests.sums import forest_sum
    >>> result = forest_sum(np.zeros((3, 3)), np.zeros(3))  # 16 forests on three labelled nodes
    >>> round(float(np.exp(result.log_sum)), 9), result.root_posterior.round(9).tolist()
    (16.0, [0.5, 0.5, 0.5])
    """
    weights, shift = _with_roots(log_arc_weights, log_root_weights)
    n = len(weights)
    if n == 0:
        return ForestSum(0.0, np.zeros((0, 0)), np.zeros(0))
    block = n if n <= 200 else int(np.ceil(np.sqrt(n)))
    posterior = np.zeros((n, n + 1))
    log_sum = kernels.log_sum_and_posteriors(weights, kernels.make_space(n, block, -(-n // block)), posterior)
    if log_sum == -np.inf:
        raise ValueError(NO_FOREST)
    return ForestSum(float(log_sum + shift), posterior[:, :n], posterior[:, n])


def log_forest_sums(log_arc_weights, log_root_weights):
    """Log sums alone, batched: (batch, n, n) and (batch, n) -> (batch,)."""
    weights, shift = _with_roots(log_arc_weights, log_root_weights)
    return _log_sums(weights) + shift


def uniform_forest_mass(log_weight, n):
    """Log sum over all forests whose arcs all weigh the same: (1 + n w) ** (n - 1), Cayley's formula with weights."""
    return float((n - 1) * np.log1p(n * np.exp(log_weight)))


def sample_forests(log_arc_weights, log_root_weights, n_samples, rng):
    """Independent forests with probability proportional to their weight: (n_samples, n) parents, -1 = root.

    Nodes draw their parents one after another from the exact conditional posterior. (Wilson's random walk would be shorter, but
    two columns that depend on each other are a cycle it leaves once in exp(Bayes factor) steps; here its chances are solved for.)
    """
    weights, _ = _with_roots(log_arc_weights, log_root_weights)
    n = len(weights)
    if n and _log_sums(weights[None])[0] == -np.inf:
        raise ValueError(NO_FOREST)
    block = int(np.ceil((n**3 / 3) ** 0.25)) or 1  # eliminations for n / block blocks against block ** 3 for every node
    uniforms = rng.random((n_samples, n))
    return draw_forests(weights, uniforms, block)


def draw_forests(weights, uniforms, block):
    """A forest for every line of `uniforms` (n_samples, n), see `_kernels.draw_forest`."""
    parents = np.empty(uniforms.shape, dtype=np.int64)
    space = kernels.make_draw_space(len(weights), block)
    for line, u in zip(parents, uniforms):
        kernels.draw_forest(weights, u, space, line)
    return parents


def best_forest(log_arc_weights, log_root_weights):
    """The forest of highest weight: (n,) parents, -1 = root (Edmonds); every root weight must be finite."""
    weights, _ = _with_roots(log_arc_weights, log_root_weights)
    n = len(weights)
    if not np.isfinite(weights[:, n]).all():
        raise ValueError("every node must be allowed to be a root; give it a small weight instead of none")
    arcs = np.full((n + 1, n + 1), -np.inf)
    arcs[:, :n] = weights.T  # [parent, child], the last node is the root
    parents = maximum_arborescence(arcs)
    return np.where(parents == n, -1, parents)


def _log_sums(weights):
    """(batch,) log sums of (batch, n, n + 1) weights, the last column the roots."""
    result = np.empty(len(weights))
    kernels.log_sums(weights, kernels.make_space(weights.shape[1], 0, 0), result)
    return result


def _with_roots(log_arc_weights, log_root_weights):
    """(..., n, n + 1) with every row's largest weight at 0, and the sum of what was taken out."""
    arcs = np.array(log_arc_weights, dtype=float)
    n = arcs.shape[-1]
    arcs[..., np.arange(n), np.arange(n)] = -np.inf
    weights = np.concatenate([arcs, np.asarray(log_root_weights, dtype=float)[..., None]], axis=-1)
    if np.isnan(weights).any() or (weights == np.inf).any():
        raise ValueError("log weights must be numbers or -inf")
    peak = weights.max(axis=-1, keepdims=True, initial=-np.inf)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    return np.ascontiguousarray(weights - peak), peak.sum(axis=(-2, -1))
