"""Several starts, one model: two stages of running them, their weights and their table; the table of the numbers tried.

Many starts are run for a few updates, and the best few of them to the end (`finish_best`). `starts_table` is the `starts_` of
every estimator that has starts.

Weights are kept in logs: on wide data log-likelihoods differ by hundreds of nats and one start takes all.
"""

import numpy as np
import pandas as pd
from scipy.special import softmax

NEGLIGIBLE = 1e-12  # a start of smaller weight is left out of the average: it would not show
SHORT, FINISHED = 1, 2  # stages
SAME = 1e-7  # relative difference of the scores of two starts in the same optimum

# what `starts_` holds, for the docstrings of the estimators (`docstrings.fill`)
STARTS_DOC = """starts_ : DataFrame
        One line per start: `start` (its number), `stage` (1: stopped after the short first stage, 2: run to the end), `score`
        (what ranks the starts) and further scores, `converged`, `n_iter`, `weight` (in the result; 0 at stage 1)."""


def finish_best(scores, alive, n_final, finish):
    """Second stage: run the best `n_final` starts to the end; while none of those survives, the next ones.

    scores, alive : (n_starts,) after the first stage; starts that are not alive come last
    n_final : how many, None for all
    finish : (positions) -> (len(positions),) whether each of them is still alive at its end
    returns (n_starts,) whether a start was finished
    """
    order = np.lexsort((np.arange(len(scores)), -np.nan_to_num(scores, nan=-np.inf), ~np.asarray(alive)))
    finished = np.zeros(len(order), dtype=bool)
    step = len(order) if n_final is None else min(n_final, len(order))
    for first in range(0, len(order), max(step, 1)):
        chosen = np.sort(order[first : first + step])
        finished[chosen] = True
        if np.any(finish(chosen)):
            break
    return finished


def choose_starts(scores, alive, n_chosen):
    """Positions of the best starts that ended in different optima; where none is alive, the best of all."""
    scores = np.nan_to_num(np.asarray(scores, dtype=float), nan=-np.inf)
    order = np.lexsort((np.arange(len(scores)), -scores, ~np.asarray(alive)))
    chosen: list[int] = []
    for start in order:
        if chosen and not alive[start]:
            break
        if all(abs(scores[start] - scores[other]) > SAME * abs(scores[other]) for other in chosen):
            chosen.append(int(start))
        if len(chosen) == n_chosen:
            break
    return np.sort(np.array(chosen, dtype=np.int64))


def starts_table(score, converged, n_iter, weight, finished=None, **more):
    """`starts_`: one line per start, columns start, stage, score, the other scores (`more`), converged, n_iter, weight."""
    n_starts = len(np.atleast_1d(score))
    stage = np.full(n_starts, FINISHED) if finished is None else np.where(finished, FINISHED, SHORT)
    return pd.DataFrame(
        {
            "start": np.arange(n_starts),
            "stage": stage,
            "score": np.asarray(score, dtype=float),
            **more,
            "converged": np.asarray(converged, dtype=bool),
            "n_iter": np.asarray(n_iter, dtype=np.int64),
            "weight": np.asarray(weight, dtype=float),
        }
    )


def path_table(n_clusters, score, **more):
    """`n_clusters_path_`: one line per fit, columns n_clusters, score, probability and the others (`more`).

    The probability of a number follows from its best score, a log evidence; before the data were seen, all numbers are alike.
    """
    path = pd.DataFrame({"n_clusters": n_clusters, "score": np.asarray(score, dtype=float), **more})
    best = path.groupby("n_clusters")["score"].max()
    path.insert(2, "probability", path["n_clusters"].map(pd.Series(softmax(best.to_numpy()), index=best.index)))
    return path


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
