"""Junction trees for exact inference: moral graph, triangulation, cliques, and where every family's table lives.

Only variables that are hidden in some row of the data need a tree; a variable that is always observed cuts the graph and
never enlarges a clique. So the moral graph of the hidden variables alone is triangulated (Lauritzen and Spiegelhalter 1988;
greedy by fill-in and by table size, the smaller result is kept), and a family with observed members hangs on its clique as a
leaf with its own table. Cliques and leaves together are called clusters.

Goes in: cardinalities (n_variables,), parents (a tuple of positions per variable), hidden (positions), and optionally more
scopes whose joint counts are wanted. Comes out: a `JunctionTree`, an immutable record of plain arrays, made once for any
number of parameter tables. `evidence.plan_rows` joins it with rows; the kernels do the rest.
"""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf, prod

import numpy as np

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.numbers.graphs import ancestors

# neighbours from which a variable waits until the others are gone: its exact cost would take quadratic time
CROWDED = 64
MAX_TOTAL_SIZE = 2**31  # cells of all tables, which are counted in 32 bits
MAX_CLIQUE_SIZE = 2**22  # joint states; a row that hides them all costs about 0.1 s and 100 MB


def build_tree(cardinalities, parents, hidden, extra_scopes=(), max_clique_size=MAX_CLIQUE_SIZE):
    """Junction tree of a network for data in which only `hidden` variables are ever unobserved.

    Parameters
    ----------
    cardinalities : (n_variables,) ints
    parents : sequence of tuples of positions; the scope of family i is ``(*parents[i], i)``
    hidden : positions of the variables that are unobserved in some row
    extra_scopes : tuples of positions; each gets a place for its joint counts, as the families have
    max_clique_size : joint states of a cluster beyond which `CliqueTooLarge` is raised, before any table is made

    Returns
    -------
    JunctionTree

    Examples
    --------
    >>> from pgm_bma.networks.junction_tree import build_tree
    >>> tree = build_tree([2, 3, 2, 2], [(), (0,), (0,), (1, 2)], hidden=[0, 1, 2, 3])
    >>> tree.scopes
    ((1, 2, 3), (0, 1, 2))
    >>> build_tree([2, 3, 2, 2], [(), (0,), (0,), (1, 2)], hidden=[0]).scopes
    ((0,), (0, 1), (0, 2), (1, 2, 3))
    """
    cards = [int(r) for r in cardinalities]
    hidden = frozenset(int(v) for v in hidden)
    families = [(*map(int, ps), child) for child, ps in enumerate(parents)]
    scopes = families + [tuple(map(int, scope)) for scope in extra_scopes]
    _refuse_large(scopes, cards, max_clique_size)
    neighbours = hidden_moral_graph(scopes, hidden)
    bags, links = min(
        (_clique_tree(*triangulate(neighbours, cards, by)) for by in ("fill", "weight")),
        key=lambda found: sum(prod(cards[v] for v in bag) for bag in found[0]),
    )
    _refuse_large(bags, cards, max_clique_size)
    total = sum(prod(cards[v] for v in scope) for scope in [*scopes, *bags])
    if total >= MAX_TOTAL_SIZE:
        raise ValueError(
            f"the tables of the junction tree hold {total:,} numbers together; the limit is {MAX_TOTAL_SIZE:,}"
        )
    return _place_families(cards, hidden, scopes, len(families), bags, links)


def hidden_moral_graph(scopes, hidden):
    """{hidden variable: set of hidden variables that share a scope with it}."""
    neighbours: dict[int, set] = {v: set() for v in sorted(hidden)}
    for scope in scopes:
        inside = [v for v in scope if v in hidden]
        for v in inside:
            neighbours[v].update(inside)
    for v, near in neighbours.items():
        near.discard(v)
    return neighbours


def triangulate(neighbours, cardinalities, by="fill"):
    """Eliminate greedily: the fewest fill-in edges ("fill") or the smallest new table ("weight") first.

    Returns (order, bags): bags[i] is order[i] with its neighbours at that moment. Ties: the other criterion, then the
    lowest position, so the result does not depend on hashing.
    """
    near = {v: set(others) for v, others in neighbours.items()}
    cost = {v: _elimination_cost(v, near, cardinalities, by) for v in near}
    heap = [(c, v) for v, c in cost.items()]
    heapify(heap)
    order, bags = [], []
    while near:
        known, v = heappop(heap)
        if v not in near or known != cost[v]:  # a stale entry: the current one is in the heap as well
            continue
        around = near.pop(v)
        order.append(v)
        bags.append(frozenset(around | {v}))
        stale = set(around)
        for u in around:
            added = around - near[u] - {u}
            if added:
                stale |= near[u]  # fill-in between u's neighbours may have joined others around them
            near[u] |= added
            near[u].discard(v)
        stale.discard(v)
        for u in stale:
            cost[u] = _elimination_cost(u, near, cardinalities, by)
            heappush(heap, (cost[u], u))
    return order, bags


def _elimination_cost(v, near, cardinalities, by):
    around = near[v]
    if len(around) > CROWDED:
        return (inf, len(around))
    fill = sum(len(around) - 1 - len(around & near[u]) for u in around)
    weight = cardinalities[v] * prod(cardinalities[u] for u in around)
    return (fill, weight) if by == "fill" else (weight, fill)


def _clique_tree(order, bags):
    """Maximal bags and the position of each one's parent (-1 for a root), parents before children."""
    position = {v: i for i, v in enumerate(order)}
    cliques: list[frozenset] = []
    links: list[int] = []
    clique_of: dict[int, int] = {}
    for v, bag in zip(reversed(order), reversed(bags)):
        separator = bag - {v}
        above = clique_of[min(separator, key=position.__getitem__)] if separator else -1
        if separator and cliques[above] == separator:
            cliques[above] = bag  # the new bag swallows the one it hangs on
            clique_of[v] = above
        else:
            clique_of[v] = len(cliques)
            cliques.append(bag)
            links.append(above)
    return cliques, links


def _place_families(cards, hidden, scopes, n_families, bags, links):
    """Give every scope a cluster: its clique when all its members are hidden, else a leaf of its own below one."""
    members: list[list[int]] = [[] for _ in bags]
    leaves = []  # (scope number, clique above or -1)
    holding: dict[int, list[int]] = {v: [] for v in hidden}
    for position, bag in enumerate(bags):
        for v in bag:
            holding[v].append(position)
    sizes = [prod(cards[v] for v in bag) for bag in bags]
    smallest: dict[frozenset, int] = {frozenset(): -1}  # set of hidden variables -> the smallest clique that holds it
    for number, scope in enumerate(scopes):
        inside = frozenset(v for v in scope if v in hidden)
        if inside not in smallest:
            rarest = min(inside, key=lambda v: len(holding[v]))
            fitting = [c for c in holding[rarest] if bags[c].issuperset(inside)]
            smallest[inside] = min(fitting, key=lambda c: (sizes[c], c))
        above = smallest[inside]
        if inside and len(inside) == len(scope):
            members[above].append(number)
        else:
            leaves.append((number, above))
    clusters = [_clique_scope(bag, [scopes[m] for m in inside]) for bag, inside in zip(bags, members)]
    parent = list(links)
    home = np.empty(len(scopes), dtype=np.int64)
    for position, own in enumerate(members):
        home[own] = position
    for number, above in leaves:
        home[number] = len(clusters)
        clusters.append(scopes[number])
        parent.append(above)
    separators = tuple(
        () if above < 0 else tuple(v for v in scope if v in hidden and v in clusters[above])
        for scope, above in zip(clusters, parent)
    )
    maps = [_cell_map(clusters[c], scope, cards) for c, scope in zip(home, scopes)]
    map_start = state_offsets([0 if m is None else len(m) for m in maps])[:-1]
    map_start[[m is None for m in maps]] = -1
    return JunctionTree(
        cardinalities=np.array(cards, dtype=np.int64),
        hidden=tuple(sorted(hidden)),
        scopes=tuple(clusters),
        parent=np.array(parent, dtype=np.int64),
        separators=separators,
        table_start=state_offsets([prod(cards[v] for v in scope) for scope in clusters]),
        families=tuple(scopes),
        n_families=n_families,
        home=home,
        family_start=state_offsets([prod(cards[v] for v in scope) for scope in scopes]),
        map_start=map_start,
        maps=np.concatenate([np.zeros(0, dtype=np.int32), *(m for m in maps if m is not None)]),
    )


def _clique_scope(bag, inside):
    """Order of a clique's variables: a family's own order where one fills the clique, so that its table is used as it is."""
    return next((scope for scope in inside if len(scope) == len(bag)), tuple(sorted(bag)))


def _cell_map(cluster, scope, cards):
    """For every cell of the cluster table the cell of the scope's table; None when the two are laid out alike."""
    if cluster == scope:
        return None
    stride = dict(zip(scope, strides(scope, cards)))
    index = np.zeros(1, dtype=np.int32)
    for v in cluster:
        step = np.arange(cards[v], dtype=np.int32) * np.int32(stride.get(v, 0))
        index = (index[:, None] + step).ravel()
    return index


def strides(scope, cards):
    """Steps of a table over `scope`, first variable slowest."""
    steps = [1]
    for v in reversed(scope[1:]):
        steps.append(steps[-1] * int(cards[v]))
    return steps[::-1] if scope else []


def _refuse_large(scopes, cards, max_clique_size):
    largest = max(scopes, key=lambda scope: prod(cards[v] for v in scope), default=())
    size = prod(cards[v] for v in largest)
    if size > max_clique_size:
        raise CliqueTooLarge(tuple(sorted(largest)), size, max_clique_size)


def relevant_variables(parents, seeds):
    """Positions of `seeds` and all their ancestors, sorted; the rest sums to one and may be cut off (barren nodes)."""
    return sorted({*seeds, *ancestors(parents, seeds)})


class CliqueTooLarge(ValueError):
    """Exact inference would need a table that is too large; `variables` are positions, `size` its joint states."""

    def __init__(self, variables, size, limit, names=None):
        self.variables, self.size, self.limit = variables, size, limit
        shown = [repr(names[v]) if names is not None else f"variable {v}" for v in variables[:8]]
        more = f" and {len(variables) - 8} more" if len(variables) > 8 else ""
        super().__init__(
            f"exact inference needs a clique of {size:,} joint states over {len(variables)} variables "
            f"({', '.join(shown)}{more}); the limit is {limit:,}. Remove arcs, merge states, observe more variables, "
            "or raise max_clique_size"
        )

    def named(self, names):
        """The same refusal with names in place of positions."""
        return CliqueTooLarge(self.variables, self.size, self.limit, names)


@dataclass(frozen=True)
class JunctionTree:
    """Clusters in an order with parents first, and flat vectors for the tables of clusters and of families.

    scopes : variables of every cluster, first slowest      parent : (n_clusters,) position of the cluster above, -1 = root
    separators : hidden variables shared with the cluster above, in the order of the cluster's own scope
    table_start : (n_clusters + 1,) where each cluster's table begins in the flat vector of all cluster tables
    families : scopes of the model's families ``(*parents, child)``, then of the extra scopes
    home : cluster of every family      family_start : (n_all_families + 1,) its place in the flat vector of family tables
    maps, map_start : the family cell of each cluster cell, for every family; start -1 stands for the identity
    """

    cardinalities: np.ndarray
    hidden: tuple
    scopes: tuple
    parent: np.ndarray
    separators: tuple
    table_start: np.ndarray
    families: tuple
    n_families: int
    home: np.ndarray
    family_start: np.ndarray
    map_start: np.ndarray
    maps: np.ndarray

    @property
    def largest_clique(self):
        """Joint states of the largest cluster."""
        return int(np.diff(self.table_start).max(initial=0))
