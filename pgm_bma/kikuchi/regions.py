"""Region graphs by the cluster variation method: closure, counting numbers, cover relations, acyclicity (KIK section 4).

A region is a set of variables. The maximal initial regions and all their non-empty intersections form the closure; its counting
numbers c_R = 1 - (sum over strict supersets) make every subset of a region count exactly once. Algorithm 1 as printed in the paper
needs intersections of intersections; here every subset of the maximal regions is visited once, by falling size, and the closure of
a subset is the intersection of the maximal regions that hold it. Sets that are not closed get the number 0 and are left out.

Inside, regions are bit masks (Python integers of any length), because subset walks over thousands of frozensets are slow.
"""

from collections.abc import Hashable

# subsets walked before the pairwise-intersection way is taken instead (one region of 30 names has 2^30 subsets)
_MAX_SUBSETS = 4_000_000


def region_closure(initial_regions):
    """Closure of the initial regions with counting numbers, levels and cover edges.

    Parameters
    ----------
    initial_regions : iterable of iterables of hashable names; empty ones are ignored, redundant ones drop out

    Returns
    -------
    counting_numbers : dict frozenset -> int, by falling size; zero numbers of closed sets are kept
    levels : dict frozenset -> int, 0 for the maximal regions, else 1 + the deepest region that covers it
    covers : list of (larger, smaller) frozensets with no region of the closure between them
    """
    names, masks = _as_masks(initial_regions)
    numbers = counting_numbers(masks)
    edges = _cover_edges(list(numbers))
    levels = dict.fromkeys(numbers, 0)
    for larger, smaller in edges:  # edges come by falling size of the larger side, so its level is final
        levels[smaller] = max(levels[smaller], levels[larger] + 1)
    sets = {mask: _as_frozenset(mask, names) for mask in numbers}
    return (
        {sets[mask]: number for mask, number in numbers.items()},
        {sets[mask]: level for mask, level in levels.items()},
        [(sets[a], sets[b]) for a, b in edges],
    )


def counting_numbers(masks):
    """{mask: counting number} of the closure of `masks`, by falling size (ties by value, so that the answer has one order)."""
    masks = sorted(set(masks) - {0}, key=_falling_size)
    if sum(2.0 ** mask.bit_count() for mask in masks) <= _MAX_SUBSETS:
        return _numbers_by_subsets(masks)
    return _numbers_by_intersections(masks)


def _numbers_by_subsets(masks):
    hull: dict[int, int] = {}  # subset -> intersection of the maximal regions that hold it
    for mask in masks:
        if mask in hull:  # inside a larger region: redundant
            continue
        for part in _submasks(mask):
            hull[part] = hull.get(part, mask) & mask
    owed = dict.fromkeys(sorted((part for part, closed in hull.items() if part == closed), key=_falling_size), 1)
    for mask, number in owed.items():  # every larger region has been taken off already: this number is final
        if number:
            for part in _submasks(mask):
                if part in owed and part != mask:
                    owed[part] -= number
    return owed


def _numbers_by_intersections(masks):
    maximal = maximal_masks(masks)
    closed, fresh = set(maximal), set(maximal)
    while fresh:
        fresh = {a & b for a in fresh for b in maximal} - closed - {0}
        closed |= fresh
    numbers: dict[int, int] = {}
    for mask in sorted(closed, key=_falling_size):
        numbers[mask] = 1 - sum(number for other, number in numbers.items() if mask & other == mask)
    return numbers


def maximal_masks(masks):
    """Those masks that lie inside no other, by falling size."""
    kept: list[int] = []
    for mask in sorted(set(masks) - {0}, key=_falling_size):
        if not any(mask & other == mask for other in kept):
            kept.append(mask)
    return kept


def _cover_edges(closed):
    """Pairs (larger, smaller) of the closed masks (by falling size) with nothing between."""
    members = set(closed)
    by_subsets = sum(2.0 ** mask.bit_count() for mask in closed) <= _MAX_SUBSETS
    edges = []
    for position, mask in enumerate(closed):
        if by_subsets:
            below = sorted((part for part in _submasks(mask) if part in members and part != mask), key=_falling_size)
        else:
            below = [other for other in closed[position + 1 :] if other & mask == other]
        kept: list[int] = []
        for part in below:
            if not any(part & other == part for other in kept):
                kept.append(part)
        edges += [(mask, part) for part in kept]
    return edges


def elimination_order(initial_regions, last=None):
    """Order in which an acyclic set of regions is taken apart variable by variable, or the loop that forbids it.

    A variable goes when only one region is left that holds it, a region when it lies inside another (the reduction of Graham, and
    of Yu and Ozsoyoglu): all goes if and only if the regions have a junction tree. `last` stays to the end.

    Returns
    -------
    steps : list of (variable, frozenset of the other variables of its region at that moment), or None if there is a loop
    core : list of frozensets, the regions that remain in the loop (empty when acyclic)
    """
    regions = [set(region) for region in {frozenset(r) for r in initial_regions} if region]
    regions.sort(key=lambda region: (len(region), sorted(map(repr, region))))
    holders: dict[Hashable, list[set]] = {}
    for region in regions:
        for name in region:
            holders.setdefault(name, []).append(region)
    for region in regions:
        _drop_if_redundant(region, holders)
    order = {name: k for k, name in enumerate(holders)}
    steps = []
    moved = True
    while moved and holders:
        moved = False
        for name in sorted(holders, key=order.__getitem__):
            if len(holders[name]) > 1 or (name == last and len(holders) > 1):
                continue
            (region,) = holders.pop(name)
            region.discard(name)
            steps.append((name, frozenset(region)))
            _drop_if_redundant(region, holders)
            moved = True
    if not holders:
        return steps, []
    core = {frozenset(region) for group in holders.values() for region in group}
    return None, sorted(
        (r for r in core if not any(r < other for other in core)), key=lambda r: (len(r), sorted(map(repr, r)))
    )


def _drop_if_redundant(region, holders):
    """Remove `region` from the books when another region holds all of it."""
    if not region:
        return
    fewest = min((holders[name] for name in region), key=len)
    if any(other is not region and region <= other for other in fewest):
        for name in region:
            holders[name] = [other for other in holders[name] if other is not region]


def _as_masks(initial_regions):
    regions = [list(region) for region in initial_regions]
    names = list(dict.fromkeys(name for region in regions for name in region))
    bit = {name: 1 << k for k, name in enumerate(names)}
    return names, [sum(bit[name] for name in set(region)) for region in regions]


def _as_frozenset(mask, names):
    found = []
    while mask:
        low = mask & -mask
        found.append(names[low.bit_length() - 1])
        mask ^= low
    return frozenset(found)


def _submasks(mask):
    """All non-empty subsets of a mask, itself first, each once."""
    part = mask
    while part:
        yield part
        part = (part - 1) & mask


def _falling_size(mask):
    return -mask.bit_count(), mask
