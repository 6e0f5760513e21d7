"""Family lists as the relocation kernels want them."""

import numpy as np

from pgm_bma.orders.chains._relocation_kernels import STEP, Lists, to_the_end


def prepare_lists(lists):
    """(x, level) weights of every family, and for every variable the families that hold it: a `Lists`."""
    scores, n = lists.log_scores, len(lists.cardinalities)
    sizes = np.diff(lists.offsets)
    if (sizes == 0).any():
        child = int(np.argmin(sizes))
        raise ValueError(f"variable {child} has no parent set left; loosen required or forbidden arcs, or max_indegree")
    tops = np.maximum.reduceat(scores, lists.offsets[:-1])
    behind = np.repeat(tops, sizes) - scores
    levels = np.floor(behind / STEP).astype(np.int32)
    weights = np.exp(STEP * levels - behind)
    bounds = zip(lists.offsets, lists.offsets[1:])
    ranked = np.concatenate([start + np.argsort(behind[start:end], kind="stable") for start, end in bounds])
    levels, weights, sets = levels[ranked], weights[ranked], lists.sets[ranked]
    width = max(lists.max_indegree, 3)
    sets = np.pad(np.where(sets < 0, n, sets), ((0, 0), (0, width - sets.shape[1])), constant_values=n).astype(
        np.uint16
    )
    children = np.repeat(np.arange(n), sizes)
    ends = _ends(np.flatnonzero(_changes(children, levels)), len(weights))
    family, slot = np.nonzero(sets < n)
    member, child = sets[family, slot].astype(np.int64), children[family]  # 16 bits are too few for pairs
    pairs = member * n + child  # few enough for numpy's linear sort of short integers, where n is below 256
    ranked = np.argsort(pairs.astype(np.uint16 if n < 256 else np.int64), kind="stable")
    family, slot, member, child = family[ranked], slot[ranked], member[ranked], child[ranked]
    # members ascend and the padding n is last, so the members without one are a row closed up at its slot
    others = np.where(np.arange(width - 1) < slot[:, None], sets[family, : width - 1], sets[family, 1:])
    starts = np.flatnonzero(_changes(member, child, levels[family]))
    held_offsets, by_slot = np.searchsorted(member[starts], np.arange(n + 1)), np.ascontiguousarray(sets.T)
    return Lists(
        tops, lists.offsets, by_slot, weights, levels, to_the_end(weights, ends), ends,
        held_offsets, child[starts], levels[family[starts]],
        np.append(starts, len(family)), np.ascontiguousarray(others.T), weights[family],
        to_the_end(weights[family], _ends(starts, len(family))), family,
    )  # fmt: skip


def _changes(*columns):
    """Where a row differs from the one before it; the first does."""
    differs = np.zeros(len(columns[0]), dtype=bool)
    differs[:1] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


def _ends(starts, n):
    """For each of n places, the end of its stretch; `starts` are the first places of all."""
    bounds = np.append(starts, n)
    return np.repeat(bounds[1:], np.diff(bounds))
