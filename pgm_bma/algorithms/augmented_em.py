"""EM and BC+EM for an augmented naive Bayes of fixed structure.

Paper: SEM (Peña, Lozano, Larrañaga 2000), sections 3 and 4, Fig. 2. EM alternates expected counts and posterior means. BC+EM
assigns the cases whose cluster is clear (posterior above a threshold), runs Bound and Collapse on that partly completed
table, and goes on with EM from there.

What is watched for convergence is a choice: "log_posterior", the penalised log-likelihood that the update climbs;
"log_likelihood"; or "completed_score", the score of the data completed with the most probable cluster (the paper; it has
plateaus and stops early). A run ends when the value changes by less than tol times itself, or after max_iter updates.
"""

from typing import NamedTuple

import numpy as np

from . import augmented_naive_bayes as anb
from .bound_collapse import bound_and_collapse_families

CONVERGENCES = ("log_posterior", "log_likelihood", "completed_score")
LOOPS = ("released", "alternating")


def fit_em(cases, layout, parameters, prior, convergence="log_posterior", max_iter=150, tol=1e-6):
    """Run EM; returns a FitResult whose counts and responsibilities belong to the returned parameters."""
    groups = anb.group_columns(cases, layout)
    return _em(cases, layout, groups, parameters, prior, convergence, max_iter, tol)


def _em(cases, layout, groups, parameters, prior, convergence, max_iter, tol):
    counts, value = _evaluate(cases, layout, groups, parameters, prior, convergence)
    path, converged = [value], False
    for _ in range(max_iter):
        parameters = anb.update(counts, layout, prior)
        counts, value = _evaluate(cases, layout, groups, parameters, prior, convergence)
        path.append(value)
        if _settled(path[-2], value, tol):
            converged = True
            break
    responsibilities, log_likelihood = anb.expect(cases, layout, parameters, groups)
    return FitResult(parameters, responsibilities, log_likelihood, path, len(path) - 1, converged, ())


def _evaluate(cases, layout, groups, parameters, prior, convergence):
    """Counts for the next update and the watched value at these parameters."""
    hard = convergence == "completed_score"
    log_likelihood, counts, completed = anb.em_counts(cases, layout, parameters, groups, hard)
    if hard:
        return counts, anb.log_score(completed, layout, prior)
    if convergence == "log_posterior":
        return counts, log_likelihood + anb.log_prior(parameters, layout, prior)
    return counts, log_likelihood


def _settled(old, new, tol):
    return abs(new - old) < tol * abs(old) or new == old


def fit_bound_collapse_em(
    cases,
    layout,
    parameters,
    prior,
    convergence="log_posterior",
    max_iter=150,
    tol=1e-6,
    loop="released",
    threshold=0.51,
):
    """Run BC+EM (SEM Fig. 2).

    loop : "released" runs EM to convergence after each Bound and Collapse and keeps the better model when a round does not
    gain; "alternating" makes one EM update after each. `max_iter` bounds the EM updates of all rounds together.
    """
    groups = anb.group_columns(cases, layout)
    responsibilities, _ = anb.expect(cases, layout, parameters, groups)
    best, path, rounds, updates, converged = None, [], [], 0, False
    while updates < max_iter and not converged:
        assigned = assign_clear_cases(responsibilities, threshold)  # Fig. 2, step 1
        collapsed = collapse(cases, layout, assigned, responsibilities.shape[1], prior)  # steps 2 and 3
        steps = 1 if loop == "alternating" else max_iter - updates
        result = _em(cases, layout, groups, collapsed, prior, convergence, steps, tol)  # step 4
        updates += result.n_updates
        rounds.append(BoundCollapseRound(float(cases.weights[assigned < 0].sum()), result.n_updates, result.path[-1]))
        if best is not None:
            old, new = best.path[-1], result.path[-1]
            # 1e-9: the same model met again differs in the last digits only
            if loop == "released" and new < old - 1e-9:
                converged = True
                break
            converged = _settled(old, new, tol)
        best, responsibilities = result, result.responsibilities
        path += result.path[1:] if path else result.path
    return best._replace(path=path, n_updates=updates, converged=converged, rounds=tuple(rounds))


def assign_clear_cases(responsibilities, threshold):
    """The most probable cluster where its posterior is above the threshold, else -1: (n,)."""
    winner = responsibilities.argmax(axis=1)
    clear = responsibilities[np.arange(len(winner)), winner] > threshold
    return np.where(clear, winner, -1)


def collapse(cases, layout, assigned, n_clusters, prior):
    """Parameters by Bound and Collapse from the rows and a partly known cluster column (-1 = unknown)."""
    codes = np.column_stack([cases.codes, assigned])
    cluster = len(cases.cardinalities)
    cards = [*cases.cardinalities.tolist(), n_clusters]
    families = [(cluster,) if p < 0 else (cluster, int(p)) for p in layout.parents]
    alpha_class, alpha_cells = anb.prior_cells(layout, n_clusters, prior)
    alphas = [*alpha_cells[layout.offsets[:-1]], alpha_class]
    records = bound_and_collapse_families(codes, cards, [*families, ()], cases.weights, alphas)
    tables = [r.collapsed.reshape(n_clusters, -1) for r in records[:-1]]
    return anb.Parameters(records[-1].collapsed[0], np.ascontiguousarray(anb.pack_tables(tables, layout)))


class FitResult(NamedTuple):
    """A fitted model: parameters, their responsibilities (n, n_clusters) in the order of the cases, the log-likelihood, the
    watched values, EM updates, whether it settled, and one BoundCollapseRound per round of BC+EM."""

    parameters: anb.Parameters
    responsibilities: np.ndarray
    log_likelihood: float
    path: list
    n_updates: int
    converged: bool
    rounds: tuple


class BoundCollapseRound(NamedTuple):
    """One round of BC+EM: weight of the unassigned cases, EM updates, value reached."""

    unassigned: float
    n_updates: int
    value: float
