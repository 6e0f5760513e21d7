"""Several starts, one model: weights of the starts, and the alignment of their cluster labels before tables are averaged.

Cluster labels mean nothing across starts, so tables are averaged only after every start's labels were matched to those
of a reference start: the assignment (Hungarian method) that maximises the overlap of the responsibilities. Weights are
kept in logs: on wide data log-likelihoods differ by hundreds of nats and one start takes all.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import softmax

NEGLIGIBLE = 1e-12  # a start of smaller weight is left out of the average: it would not show


def start_weights(rule, log_likelihood, evidence_bound, alive, best):
    """Weights (n_starts,) that sum to 1; starts that are not `alive` get 0.

    rule : "best" (all on `best`), "uniform", "likelihood" (EMA's policy Av) or "evidence"
    """
    log_weights = {
        "best": np.where(np.arange(len(alive)) == best, 0.0, -np.inf),
        "uniform": np.zeros(len(alive)),
        "likelihood": np.asarray(log_likelihood),
        "evidence": np.asarray(evidence_bound),
    }[rule]
    log_weights = np.where(alive, log_weights, -np.inf)
    if log_weights.max() == -np.inf:  # every start alive finds the data impossible: none is better than another
        log_weights = np.where(alive, 0.0, -np.inf)
    weights = softmax(log_weights)
    weights[weights < NEGLIGIBLE] = 0.0
    return weights / weights.sum()


def align_labels(reference, responsibilities, weights):
    """Permutation `order` such that cluster ``order[k]`` of the second partition is cluster k of the reference.

    reference, responsibilities : (n_rows, n_clusters)     weights : (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> from pgm_bma.foundation.starts import align_labels
    >>> reference = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> align_labels(reference, reference[:, ::-1], np.ones(2))
    array([1, 0])
    """
    overlap = reference.T @ (responsibilities * weights[:, None])
    return linear_sum_assignment(overlap, maximize=True)[1]
