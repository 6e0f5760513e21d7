"""The peer of the order benchmarks: sumu's scorer and its partition chain, set up with our candidates."""

import time

import numpy as np

from ._common import need


def local_score(codes, max_indegree, sample_size):
    """sumu's BDeu scorer over complete integer codes."""
    gadget = need("sumu.gadget", "pip install sumu")
    return gadget.LocalScore(
        gadget.Data(np.ascontiguousarray(codes, dtype=np.int32)), maxid=max_indegree, ess=sample_size
    )


def score_all(scorer, sets):
    """Every family, one call of the compiled scorer each, without the structure prior.

    sets : arrays of parents by child, prepared outside the clock
    """
    return [[scorer.scorer.local(child, z) for z in node_sets] for child, node_sets in enumerate(sets)]


def partition_chain(codes, candidates, max_indegree, sample_size, seed):
    """sumu's PartitionMCMC over the given candidates, parent sets of at most `max_indegree`, nothing outside them."""
    gadget = need("sumu.gadget", "pip install sumu")
    scores = local_score(codes, max_indegree, sample_size)
    chosen = np.sort(np.asarray(candidates, dtype=np.int32), axis=1)
    names = {v: tuple(int(u) for u in row) for v, row in enumerate(chosen)}
    array = _score_array(scores, chosen, max_indegree)
    restricted = gadget.CandidateRestrictedScore(array, chosen, chosen.shape[1])
    score = gadget.Score(C=names, score_array=array, c_r_score=restricted, c_c_score=None)
    np.random.seed(seed)  # noqa: NPY002  sumu draws from the global generator
    while True:
        chain = gadget.PartitionMCMC(names, score, 0)
        if np.isfinite(chain.R_score):  # a start whose sums cancelled to NaN never moves: draw another
            return chain


def _score_array(scores, chosen, max_indegree):
    """Their table by bit map of candidates; their own builder fails under Cython 3, so their scorer is called set by set."""
    n, k = chosen.shape
    array = np.full((n, 2**k), -np.inf)
    for v in range(n):
        for mask in range(2**k):
            if mask.bit_count() <= max_indegree:
                parents = chosen[v][[bit for bit in range(k) if mask >> bit & 1]].astype(np.int64)
                array[v, mask] = scores._local(v, parents)
    return array


def walk(chain, seconds):
    """Run the chain for so many CPU seconds; returns (iterations, partitions that raised the best score)."""
    best, improved, steps = -np.inf, [], 0
    stop = time.thread_time() + seconds
    while time.thread_time() < stop:
        partition, score = chain.sample()
        steps += 1
        if score > best:
            best = score
            improved.append(partition)
    return steps, improved
