"""Arcs and orders that users name, as positions: required and forbidden arcs, background knowledge, orders to start from."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from pgm_bma.foundation.faces.validation import bounded, brief

KNOWLEDGE = ("required_edges", "forbidden_edges", "temporal_order", "search_space")  # pgmpy's words


class Arcs(NamedTuple):
    """Pairs (parent, child) of positions."""

    required: list
    forbidden: list
    odds: np.ndarray | None = None  # (n, n) log prior odds, row parent


def named_arcs(required, forbidden, knowledge, names, max_indegree):
    """The arcs of all three sources, checked: an `Arcs`.

    knowledge : pgmpy's `ExpertKnowledge`, a dict in its words, or None; its temporal order forbids arcs from later groups to
    earlier ones, its search space forbids all other arcs
    """
    required = arc_positions("required_arcs", required, names)
    forbidden = arc_positions("forbidden_arcs", forbidden, names)
    if knowledge is not None:
        knowledge = _knowledge(knowledge)
        for attribute in KNOWLEDGE:
            if not hasattr(knowledge, attribute):
                raise ValueError(
                    f"expert_knowledge={brief(knowledge)} is not an ExpertKnowledge of pgmpy: it has no {attribute}"
                )
        required += arc_positions("expert_knowledge.required_edges", knowledge.required_edges, names)
        forbidden += arc_positions("expert_knowledge.forbidden_edges", knowledge.forbidden_edges, names)
        groups = [list(group) for group in knowledge.temporal_order or [] if len(group)]
        later = [(b, a) for i, group in enumerate(groups) for b in group for earlier in groups[:i] for a in earlier]
        forbidden += arc_positions("expert_knowledge.temporal_order", later, names)
        space = set(arc_positions("expert_knowledge.search_space", knowledge.search_space, names))
        if space:
            n = len(names)
            forbidden += [(p, c) for p in range(n) for c in range(n) if p != c and (p, c) not in space]
    required, forbidden = sorted(set(required)), sorted(set(forbidden))
    _check_arcs(required, set(forbidden), names, max_indegree)
    return Arcs(required, forbidden)


def _knowledge(given):
    """pgmpy's `ExpertKnowledge`, or what a dict in its words says."""
    if not isinstance(given, dict):
        return given
    unknown = [word for word in given if word not in KNOWLEDGE]
    if unknown:
        raise ValueError(f"expert_knowledge has {unknown[0]!r}; its fields are {', '.join(KNOWLEDGE)}")
    return SimpleNamespace(**{**dict.fromkeys(KNOWLEDGE), **given})


def arc_positions(parameter, arcs, names):
    """Pairs (parent, child) of names as pairs of positions."""
    position = {name: k for k, name in enumerate(names)}
    pairs = []
    if arcs is not None and (not hasattr(arcs, "__iter__") or hasattr(arcs, "tocsr")):
        raise ValueError(f"{parameter} needs pairs (parent, child), got {arcs!r}")
    for arc in () if arcs is None else arcs:
        if isinstance(arc, str) or not hasattr(arc, "__len__") or len(arc) != 2:
            raise ValueError(f"{parameter} needs pairs (parent, child), got {arc!r}")
        for name in arc:
            if name not in names:
                raise ValueError(f"{parameter} names {name!r}, which is not a variable; the variables are {names}")
        pairs.append((position[arc[0]], position[arc[1]]))
    return pairs


def arc_log_odds(arc_prior, names):
    """(n, n) log prior odds of every arc, row parent, or None for even odds.

    arc_prior : number, dict (parent, child) -> number, or DataFrame parent x child
    """
    n = len(names)
    if hasattr(arc_prior, "columns"):
        cells = arc_prior.to_numpy()
        places = [(i, j, p, c) for i, p in enumerate(arc_prior.index) for j, c in enumerate(arc_prior.columns)]
        items = [((p, c), cells[i, j]) for i, j, p, c in places if p != c]
        items = [(arc, value) for arc, value in items if value == value]  # NaN: no opinion
    elif isinstance(arc_prior, dict):
        items = list(arc_prior.items())
    else:
        same = _log_odds("arc_prior", arc_prior)
        return np.where(np.eye(n, dtype=bool), 0.0, same) if same else None
    odds = np.zeros((n, n))
    pairs = arc_positions("arc_prior", [arc for arc, _ in items], names)
    for (arc, value), (parent, child) in zip(items, pairs):
        if parent == child:
            raise ValueError(f"arc_prior names the loop {arc!r}; an arc has two different ends")
        odds[parent, child] = _log_odds(f"arc_prior of {arc[0]!r} -> {arc[1]!r}", value)
    return odds


def _log_odds(what, value):
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < 1:
        raise ValueError(
            f"{what} is {brief(value)}; it must be a probability between 0 and 1, both excluded: forbidden_arcs and required_arcs "
            "say 0 and 1"
        )
    return np.log(value) - np.log1p(-value)


def order_positions(parameter, order, names, required=()):
    """An order of names as positions; every variable must occur once, behind its parents in `required` (positions)."""
    if isinstance(order, str) or not hasattr(order, "__iter__") or hasattr(order, "tocsr"):
        raise ValueError(f"{parameter}: an order is a list of all variables, earliest first, got {brief(order)}")
    order = list(bounded(parameter, order))
    unknown = [name for name in order if name not in names]
    if unknown:
        raise ValueError(f"{parameter} names {unknown[0]!r}, which is not a variable; the variables are {names}")
    absent = [name for name in names if name not in order]
    if absent or len(order) != len(names):
        wrong = f"lacks {absent[0]!r}" if absent else "names a variable twice"
        raise ValueError(f"{parameter}: an order names every variable once, this one {wrong}")
    position = {name: k for k, name in enumerate(names)}
    order = [position[name] for name in order]
    for parent, child in required:
        if order.index(parent) > order.index(child):
            raise ValueError(
                f"{parameter} puts {names[parent]!r}, a required parent of {names[child]!r}, behind it; change the order or "
                "required_arcs"
            )
    return order


def start_orders(init, names, n_chains, required):
    """Starting orders: one for all chains, or one each."""
    if init is None:
        return None
    first = next(iter(init), "") if hasattr(init, "__iter__") else ""
    if (
        not isinstance(init, str)
        and not isinstance(first, str)
        and hasattr(first, "__iter__")
        and tuple(first) not in names
    ):
        if len(init) != n_chains:
            raise ValueError(f"init holds {len(init)} orders for n_chains={n_chains}; give one order, or one per chain")
        return [order_positions("init", order, names, required) for order in init]
    return [order_positions("init", init, names, required)] * n_chains


def random_order(n, rng, required=()):
    """A random order in which every required parent stands before its child (uniform when nothing is required)."""
    priority = rng.random(n)
    waiting = {v: {p for p, c in required if c == v} for v in range(n)}
    order = []
    while waiting:
        free = [v for v, parents in waiting.items() if not parents]
        if not free:
            raise ValueError(f"the required arcs form a cycle among the variables {sorted(waiting)}")
        chosen = min(free, key=lambda v: priority[v])
        order.append(chosen)
        del waiting[chosen]
        for parents in waiting.values():
            parents.discard(chosen)
    return np.array(order, dtype=np.int64)


def _check_arcs(required, forbidden, names, max_indegree):
    """Errors with names instead of the positions that the room would give."""
    for parent, child in required:
        if (parent, child) in forbidden or parent == child:
            raise ValueError(
                f"arc {names[parent]!r} -> {names[child]!r} is required, and forbidden or a loop; drop one"
            )
    for child in {c for _, c in required}:
        parents = {p for p, c in required if c == child}
        if len(parents) > max_indegree:
            raise ValueError(
                f"required_arcs gives {names[child]!r} {len(parents)} parents, but max_indegree={max_indegree}; raise it"
            )
    cycle = set(required)
    while ends := {arc for arc in cycle if arc[0] not in {c for _, c in cycle} or arc[1] not in {p for p, _ in cycle}}:
        cycle -= ends
    if cycle:
        among = ", ".join(f"{names[p]!r} -> {names[c]!r}" for p, c in sorted(cycle))
        raise ValueError(f"required_arcs hold a cycle among {among}; drop one of them")
