"""Structural EM over augmented naive Bayes: fit the parameters, complete the data, take the best structure, repeat.

Paper: SEM (Peña, Lozano, Larrañaga 2000), Figs. 1 and 3. In: rows, a start (structure and parameters), the choices of a
`Settings` record. Out: a `StructuralRun`. The score of a round is the log marginal likelihood of the data completed by the
fitted model, with the most probable cluster or with expected counts (then with the entropy of the completion added). A
round that lowers it is not kept, so the scores never fall once the first parameters are fitted.
"""

from typing import NamedTuple

import numpy as np

from . import augmented_naive_bayes as anb
from .augmented_em import fit_bound_collapse_em, fit_em
from .structure_search import (
    best_structure,
    family_scores,
    maximum_branching,
    one_hot_rows,
    pair_counts,
    state_starts,
    structure_change,
)

COMPLETIONS = ("expected", "most_probable")
_MAX_ROUNDS = 150  # a bound that no run has come near: every kept round gains


def structural_em(cases, parents, parameters, settings, indicators=None):
    """One run from one start.

    cases : anb.Cases     parents : (n_features,)     parameters : anb.Parameters of that structure
    """
    indicators = one_hot_rows(cases.codes, cases.cardinalities) if indicators is None else indicators
    layout = anb.make_layout(parents, cases.cardinalities)
    scores = [round_score(cases, layout, parameters, settings.completion, settings.prior)]
    best, change, changes, updates, converged = None, None, [], 0, False
    while len(changes) < _MAX_ROUNDS:
        fitted = fit_parameters(cases, layout, parameters, settings)
        updates += fitted.n_updates
        score = round_score(cases, layout, fitted.parameters, settings.completion, settings.prior)
        # 1e-9 relative: rounding of sums over all rows
        if best is not None and score < scores[-1] - 1e-9 * abs(scores[-1]):
            converged = True  # the last structure promised a gain that its own fit does not keep
            break
        best = layout, fitted
        scores.append(score)
        if change is not None:
            changes.append(change)
        found = _next_structure(cases, layout, fitted, settings, indicators)
        if np.array_equal(found, layout.parents):  # SEM Fig. 1, step 4
            converged = True
            break
        change = structure_change(layout.parents, found)
        # the completion by the last model makes the first parameters of the new structure
        new = anb.make_layout(found, cases.cardinalities)
        parameters = anb.update(_counts_of_new_structure(cases, layout, fitted, new, indicators), new, settings.prior)
        layout = new
    layout, fitted = best
    return StructuralRun(
        layout.parents,
        fitted.parameters,
        fitted.responsibilities,
        fitted.log_likelihood,
        scores,
        changes,
        updates,
        converged and fitted.converged,
        anb.cheeseman_stutz(cases, layout, fitted.parameters, settings.prior),
    )


def fit_parameters(cases, layout, parameters, settings):
    """SEM Fig. 1 or Fig. 3, step 1: EM, or BC+EM."""
    common = settings.prior, settings.convergence, settings.max_iter, settings.tol
    if settings.parameters == "em":
        return fit_em(cases, layout, parameters, *common)
    return fit_bound_collapse_em(
        cases, layout, parameters, *common, loop=settings.loop, threshold=settings.fixing_probability_threshold
    )


def completed_score(cases, layout, parameters, completion, prior):
    """Log marginal likelihood of the data completed by a model: at expected counts, or with the most probable cluster."""
    counts, _ = anb.completed_counts(cases, layout, parameters, completion)
    return anb.log_score(counts, layout, prior)


def round_score(cases, layout, parameters, completion, prior):
    """What the loop watches: the completed score plus the entropy of the completion (0 for the most probable cluster).

    Different models complete differently, and only with its entropy is the score of one completion comparable with that of
    another: the sum is a lower bound of log p(data | structure), by Jensen, because the score is convex in the counts.
    """
    counts, entropy = anb.completed_counts(cases, layout, parameters, completion)
    return anb.log_score(counts, layout, prior) + entropy


def _next_structure(cases, layout, fitted, settings, indicators):
    weights = fitted.responsibilities
    if settings.completion == "most_probable":
        weights = anb.one_hot(weights.argmax(axis=1), weights.shape[1])
    scores = family_scores(cases, weights, settings.prior, layout, fitted.parameters, indicators)
    return best_structure(scores, layout.parents, settings.search)


def _counts_of_new_structure(cases, layout, fitted, new, indicators):
    """Expected counts, under the old model, of the families of the new structure."""
    if cases.n_complete == len(cases.codes):
        return anb.expected_counts(cases, new, None, fitted.responsibilities)
    k = fitted.responsibilities.shape[1]
    table = np.empty((new.offsets[-1], k))
    starts = state_starts(cases.cardinalities)
    for c in range(k):
        pairs = pair_counts(cases, fitted.responsibilities, c, layout, fitted.parameters, indicators)
        for i, parent in enumerate(new.parents):
            own = slice(starts[i], starts[i + 1])
            block = np.diagonal(pairs)[own] if parent < 0 else pairs[starts[parent] : starts[parent + 1], own]
            table[new.offsets[i] : new.offsets[i + 1], c] = block.ravel()
    return anb.Counts(cases.weights @ fitted.responsibilities, table)


def tree_structure(cases, prior=None):
    """The best structure without a cluster: a start that already knows the dependences all clusters share.

    Pairs of cells with a missing member are left out of the counts, so this is a start and not a score.
    """
    complete = cases._replace(n_complete=len(cases.codes))
    return maximum_branching(family_scores(complete, np.ones((len(cases.codes), 1)), prior))


def order_clusters(parameters):
    """Clusters by falling probability (ties keep their order): the permutation."""
    return np.argsort(-parameters.class_probs, kind="stable")


class Settings(NamedTuple):
    """Choices of a run; the values of each are those of the estimator's parameters of the same name."""

    prior: anb.Prior = anb.Prior()
    parameters: str = "em"
    loop: str = "released"
    fixing_probability_threshold: float = 0.51
    search: str = "branching"
    completion: str = "expected"
    convergence: str = "log_posterior"
    max_iter: int = 150
    tol: float = 1e-6


class StructuralRun(NamedTuple):
    """Result of one start: the structure and its parameters, responsibilities in the order of the cases, the score at the
    start and after each round, the arcs changed between rounds, EM updates, and Cheeseman-Stutz (nats)."""

    parents: np.ndarray
    parameters: anb.Parameters
    responsibilities: np.ndarray
    log_likelihood: float
    scores: list
    changes: list
    n_em_updates: int
    converged: bool
    cheeseman_stutz: float
