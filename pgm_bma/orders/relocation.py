"""Family lists as the relocation kernels want them."""

import numpy as np

from pgm_bma.orders._relocation_kernels import STEP, Lists


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
    ranked = np.lexsort((levels, np.repeat(np.arange(n), sizes)))
    levels, weights, sets = levels[ranked], weights[ranked], lists.sets[ranked]
    width = max(lists.max_indegree, 2)
    sets = np.pad(np.where(sets < 0, n, sets), ((0, 0), (0, width - sets.shape[1])), constant_values=n).astype(np.int32)
    family, slot = np.nonzero(sets < n)
    member, child = sets[family, slot], np.repeat(np.arange(n), sizes)[family]
    ranked = np.lexsort((family, levels[family], child, member))
    family, slot, member, child = family[ranked], slot[ranked], member[ranked], child[ranked]
    others = sets[family]
    others[np.arange(len(family)), slot] = n
    others = np.sort(others, axis=1)[:, : max(width - 1, 2)]
    key = np.column_stack([member, child, levels[family]])
    starts = np.flatnonzero(np.r_[True, (key[1:] != key[:-1]).any(1)]) if len(key) else np.zeros(0, dtype=np.int64)
    return Lists(
        tops, lists.offsets, np.ascontiguousarray(sets.T), weights, levels,
        np.searchsorted(member[starts], np.arange(n + 1)), child[starts], levels[family[starts]],
        np.append(starts, len(family)), np.ascontiguousarray(others.T), weights[family], family,
    )  # fmt: skip
