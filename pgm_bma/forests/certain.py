"""Forest weights brought into the range of doubles where some arcs are certain, without changing the sum.

With many rows of data two dependent columns hold each other with e^1000 and more against their roots, past what a double can tell
beside 1. The dual of the best forest (Chu and Liu 1965; Edmonds 1967) says which sets of columns hold together: every forest
enters a set K at least once, from outside or from the root, and pays a price y_K for it,

    log a_ij = z_i - sum over sets K with i inside and j outside of y_K - slack_ij,    y_K, slack_ij >= 0.

Prices above a cap are lowered to it. Forests that enter every such set once gain the same known amount, which is taken off the
log sum again; those that enter one twice keep at most exp(-cap) of the best. Sums under two caps that agree prove that these do
not show.
"""

from typing import NamedTuple

import numpy as np

CAP = 100.0  # nats; exp(-100) of the sum is beyond any digit
RANGE = 600.0  # nats between the largest and the smallest weight of a node that the sums in doubles can hold


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
    for node, weights in entering.items():
        weights[node] = -np.inf
    members, label, done, found = {i: [i] for i in range(n)}, list(range(n)), set(), []
    for start in range(n):
        path, node = [], label[start]
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
