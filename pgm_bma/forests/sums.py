"""Sums over all rooted forests: every node has one parent or is a root, without cycles.

With arc weights a_ij (j is the parent of i) and root weights r_i, the sum over all forests of the product of their weights is
det(diag(r + row sums of a) - a) (directed matrix-tree theorem). The determinant is never formed: nodes are eliminated one by one
without a subtraction (k = n-1 .. 0, the weights of the nodes that remain absorb the paths through k):

    s_k = r_k + sum_j a_kj        a_ij += a_ik a_kj / s_k        r_i += a_ik r_k / s_k        log sum = sum_k log s_k

and the reverse sweep of the same steps gives the posterior of every arc and root.

Where some arcs are certain, weights are brought into the range of doubles without changing the sum (`lifts`).
With many rows of data two dependent columns hold each other with e^1000 and more against their roots, past what a double can tell
from 1. The dual of the best forest (Chu and Liu 1965; Edmonds 1967) says which sets of columns hold together: every forest
enters a set K at least once, from outside or from the root, and pays a price y_K for it,

    log a_ij = z_i - sum over sets K with i inside and j outside of y_K - slack_ij,    y_K, slack_ij >= 0.

Prices above a cap are lowered to it. Forests that enter every such set once gain the same known amount, which is taken off the
log sum again; those that enter one twice keep at most exp(-cap) of the best. Sums under two caps that agree prove that these do
not show.
"""

from typing import NamedTuple

import numpy as np

from pgm_bma.augmented.search import maximum_arborescence
from pgm_bma.forests import _kernels as kernels

CAP = 100.0  # nats; exp(-100) of the sum is beyond any digit
RANGE = 600.0  # nats between the largest and the smallest weight of a node that the sums in doubles can hold
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


class Lift(NamedTuple):
    """amounts (n, n + 1): added to the log weights of arcs [child, parent] and roots (last); total: what the log sum gains."""

    amounts: np.ndarray
    total: float


def lifts(log_arcs, log_roots):
    """Two `Lift` of log weights (n, n) and (n,), the cap of the first at 0.7 of the second."""
    sets = priced_sets(log_arcs, log_roots)
    depth = np.zeros(len(log_roots))
    for members, price in sets:
        depth[members] += price > 1.0
    cap = min(CAP, RANGE / max(depth.max(initial=0.0), 1.0))
    return [_lift(sets, len(log_roots), share * cap) for share in (0.7, 1.0)]


def _lift(sets, n, cap):
    amounts, total = np.zeros((n, n + 1)), 0.0
    for members, price in sets:
        if price > cap:
            outside = np.ones(n + 1, dtype=bool)
            outside[members] = False
            amounts[np.ix_(members, outside)] += price - cap
            total += price - cap
    return Lift(amounts, total)


def priced_sets(log_arcs, log_roots):
    """Sets of two or more nodes that the best forest enters, as (members, price) pairs; they are nested or apart."""
    n = len(log_roots)
    entering = dict(enumerate(np.column_stack([np.asarray(log_arcs, dtype=float), log_roots])))
    for child, weights in entering.items():
        weights[child] = -np.inf
    members, label, done, found = {i: [i] for i in range(n)}, list(range(n)), set(), []
    for start in range(n):
        path: list[int] = []
        node: int | None = label[start]
        while node is not None and node not in done:
            if node in path:  # a cycle of best arcs becomes one node
                cycle = path[path.index(node) :]
                del path[path.index(node) :]
                node = len(entering)
                members[node] = [i for part in cycle for i in members[part]]
                entering[node] = np.max([entering[part] for part in cycle], axis=0)
                entering[node][members[node]] = -np.inf
                for i in members[node]:
                    label[i] = node
            best = int(np.argmax(entering[node]))
            price = -float(entering[node][best])
            entering[node] = entering[node] + price
            if len(members[node]) > 1:
                found.append((np.array(members[node]), price))
            path.append(node)
            node = None if best == n else label[best]
        done.update(path)
    return found
