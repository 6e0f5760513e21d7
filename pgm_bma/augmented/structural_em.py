"""Structural EM and BC+EM: the loops of the paper, over any family of structures, and the two families that are searched.

Paper: SEM (Peña, Lozano, Larrañaga 2000), Figs. 1 to 3. EM alternates expected counts and posterior means. BC+EM assigns the
cases whose cluster is clear (posterior above a threshold), runs Bound and Collapse on that partly completed table, and goes on
with EM from there. Structural EM fits the parameters by one of them, completes the data, takes the best structure, and repeats.

What is watched for convergence is a choice: "log_posterior", the penalised log-likelihood that the update climbs;
"log_likelihood"; or "completed_score" (paper), the log marginal likelihood of the data completed with the most probable cluster,
which has plateaus and stops early. A fit ends when the value changes by less than tol times itself, or after max_iter updates.

A round of structural EM that lowers the score of the run is not kept. With completion "most_probable" that score is the completed
score, the sc of the paper's tables. With "expectation" it is the expected log score over all completions plus the entropy of the
completion: different models complete differently, and only with its entropy is the score of one completion comparable with that
of another. The sum is a lower bound of log p(data | structure). With "expected" the score at the expected counts stands for the
expectation, which it bounds from below, by Jensen, the score being convex in the counts.

The loops see a model, a structure with its data: `structures.AugmentedModel` or `general.GeneralModel`,
and its parameters, whatever they are. The methods they call:

    e_step(parameters, hard) -> log-likelihood, expected counts, counts completed with the most probable cluster or None
    update(counts) -> parameters             log_prior(parameters), log_score(counts) -> float
    responsibilities(parameters) -> (n, n_clusters)             collapse(assigned (n,), n_clusters) -> parameters
    next_structure(parameters, responsibilities, search, completion) -> None, or a new model, its parameters, the arcs changed
    completed_score(parameters, completion) -> float            run_score(parameters, completion) -> float, as above
    cheeseman_stutz(parameters) -> float                        weights : (n,)

`AUGMENTED` is augmented naive Bayes, `GENERAL` any directed acyclic graph over cluster and columns. Such a kind knows how to hold a
structure and its parameters, and how to turn them into a network: families and tables of the cluster, node 0, and the columns.
"""

from typing import Any, NamedTuple

import numpy as np

from pgm_bma.augmented import general
from pgm_bma.augmented import model as anb
from pgm_bma.augmented.model import Prior
from pgm_bma.augmented.search import family_scores
from pgm_bma.augmented.structures import AugmentedModel, BlocksModel, attribute_families
from pgm_bma.foundation.numbers.pairs import MANY_STATES, WIDE, plan_groups
from pgm_bma.foundation.numbers.starts import choose_starts
from pgm_bma.foundation.rows.blocks import Rows
from pgm_bma.networks.em import relabel
from pgm_bma.networks.given import as_augmented

PARAMETERS = ("em", "bound_collapse")
LOOPS = ("released", "alternating")
CONVERGENCES = ("log_posterior", "log_likelihood", "completed_score")
_MAX_ROUNDS = 150  # a bound that no run has come near: every kept round gains
# Steps of compiled code, of about a nanosecond each. The limits are by size, not by the clock, so that fits repeat.
_ALL_STARTS = 6e10  # of a fit that runs all its starts to the end
_AFFORDABLE = 2e11  # of a fit with up to as many starts as there are by default
FEWEST_STARTS = 2  # that are run to the end
# of a run, as measured; of columns with many states fewer rounds, and of starts the default
_USUAL_STARTS, _USUAL_ROUNDS, _USUAL_UPDATES = 20, 7, 10
_FIRST_UPDATES = 15  # that tell starts apart


def run_structural_em(model, parameters, settings, max_rounds=_MAX_ROUNDS):
    """One run from a model and its first parameters; returns a StructuralRun (SEM Figs. 1 and 3)."""
    scores = [model.run_score(parameters, settings.completion)]
    best: Any = None
    change, changes, updates, converged = None, [], 0, False
    while True:
        fitted = fit_parameters(model, parameters, settings)  # step 1
        updates += fitted.n_updates
        score = model.run_score(fitted.parameters, settings.completion)
        # 1e-9 relative: rounding of sums over all rows
        if best is not None and score < scores[-1] - 1e-9 * abs(scores[-1]):
            converged = True  # the last structure promised a gain that its own fit does not keep
            break
        best = model, fitted
        scores.append(score)
        if change is not None:
            changes.append(change)
        if len(scores) > max_rounds:
            break
        found = model.next_structure(fitted.parameters, fitted.responsibilities, settings.search, settings.completion)
        if found is None:  # step 4
            converged = True
            break
        model, parameters, change = found
    model, fitted = best
    return StructuralRun(
        model,
        fitted.parameters,
        fitted.responsibilities,
        fitted.log_likelihood,
        scores,
        changes,
        updates,
        converged and fitted.converged,
        model.completed_score(fitted.parameters, "most_probable"),
        model.cheeseman_stutz(fitted.parameters),
    )


def first_fit(model, parameters, settings):
    """The same after some updates of its first parameters, to tell starts apart."""
    return run_structural_em(model, parameters, settings._replace(max_iter=min(settings.max_iter, _FIRST_UPDATES)), 1)


def fit_parameters(model, parameters, settings):
    """EM, or BC+EM, with the choices of a StructuralEMSettings record; returns a FitResult."""
    common = settings.convergence, settings.max_iter, settings.tol
    if settings.parameters == "em":
        return fit_em(model, parameters, *common)
    loop, threshold = settings.bound_collapse_loop, settings.fixing_probability_threshold
    return fit_bound_collapse_em(model, parameters, *common, loop=loop, threshold=threshold)


def fit_em(model, parameters, convergence="log_posterior", max_iter=150, tol=1e-6):
    """EM from given parameters."""
    log_likelihood, counts, value = _evaluate(model, parameters, convergence)
    path, converged = [value], False
    for _ in range(max_iter):
        parameters = model.update(counts)
        log_likelihood, counts, value = _evaluate(model, parameters, convergence)
        path.append(value)
        if _settled(path[-2], value, tol):
            converged = True
            break
    responsibilities = model.responsibilities(parameters)
    return FitResult(parameters, responsibilities, log_likelihood, value, path, len(path) - 1, converged, ())


def _evaluate(model, parameters, convergence):
    """Log-likelihood, counts for the next update, and the watched value at these parameters."""
    log_likelihood, counts, completed = model.e_step(parameters, convergence == "completed_score")
    if completed is not None:
        return log_likelihood, counts, model.log_score(completed)
    if convergence == "log_posterior":
        return log_likelihood, counts, log_likelihood + model.log_prior(parameters)
    return log_likelihood, counts, log_likelihood


def _settled(old, new, tol):
    return abs(new - old) < tol * abs(old) or (new == old and (old == 0 or np.isinf(old)))


def fit_bound_collapse_em(
    model, parameters, convergence="log_posterior", max_iter=150, tol=1e-6, loop="released", threshold=0.51
):
    """BC+EM (SEM Fig. 2).

    loop : "released" runs EM to convergence after each Bound and Collapse and keeps the better model when a round does not
    gain; "alternating" makes one EM update after each. `max_iter` bounds the EM updates of all rounds together.
    """
    start = fit_em(model, parameters, convergence, 0, tol)
    best, path, rounds, updates, converged = None, list(start.path), [], 0, False
    responsibilities = start.responsibilities
    while updates < max_iter and not converged:
        assigned = assign_clear_cases(responsibilities, threshold)  # step 1
        collapsed = model.collapse(assigned, responsibilities.shape[1])  # steps 2 and 3
        steps = 1 if loop == "alternating" else max_iter - updates
        result = fit_em(model, collapsed, convergence, steps, tol)  # step 4
        updates += result.n_updates
        path += result.path[1:]
        rounds.append(BoundCollapseRound(float(model.weights[assigned < 0].sum()), result.n_updates, result.value))
        if best is not None:  # step 5
            old, new = best.value, result.value
            # 1e-9: the same model met again differs in the last digits only
            if loop == "released" and new < old - 1e-9:
                converged = result.converged  # cut short by max_iter it proves nothing
                break
            converged = _settled(old, new, tol)
        best, responsibilities = result, result.responsibilities
    best = start if best is None else best  # no update was allowed
    return best._replace(path=path, n_updates=updates, converged=converged, rounds=tuple(rounds))


def assign_clear_cases(responsibilities, threshold):
    """The most probable cluster where its posterior is above the threshold, else -1: (n,)."""
    winner = responsibilities.argmax(axis=1)
    clear = responsibilities[np.arange(len(winner)), winner] > threshold
    return np.where(clear, winner, -1)


class StructuralEMSettings(NamedTuple):
    """Choices of a run; the values of each are those of the estimator's parameters of the same name."""

    prior: Prior = Prior()
    parameters: str = "em"
    bound_collapse_loop: str = "released"
    fixing_probability_threshold: float = 0.51
    search: str = "branching"
    max_indegree: int = 3
    completion: str = "expected"
    convergence: str = "log_posterior"
    max_iter: int = 150
    tol: float = 1e-6

    @classmethod
    def read(cls, values):
        """The record of checked parameter values."""
        parameters, alternating, _ = values["parameters"].partition("_alternating")
        return cls(
            prior=Prior(float(values["alpha"]), values["equivalent_sample_size"]),
            parameters=parameters,
            bound_collapse_loop="alternating" if alternating else "released",
            **{
                name: values[name]
                for name in ("search", "max_indegree", "completion", "convergence", "max_iter", "tol")
            },
        )


class FitResult(NamedTuple):
    """Fitted parameters, their responsibilities (n, n_clusters) in the order of the model's rows, their log-likelihood and watched
    value; that value at the start and after each EM update, how many these were, whether the fit settled, and one
    BoundCollapseRound per round of BC+EM."""

    parameters: Any
    responsibilities: np.ndarray
    log_likelihood: float
    value: float
    path: list
    n_updates: int
    converged: bool
    rounds: tuple


class BoundCollapseRound(NamedTuple):
    """One round of BC+EM: weight of the unassigned cases, EM updates, value reached."""

    unassigned: float
    n_updates: int
    value: float


class StructuralRun(NamedTuple):
    """Result of one start: the last model kept and its parameters, responsibilities in the order of its rows, the score of the
    run at the start and after each round, the arcs changed between rounds, EM updates, whether it ended by itself, and two
    scores of the result in nats: completed with the most probable cluster, and Cheeseman-Stutz."""

    model: Any
    parameters: Any
    responsibilities: np.ndarray
    log_likelihood: float
    scores: list
    changes: list
    n_em_updates: int
    converged: bool
    completed_score: float
    cheeseman_stutz: float

    @property
    def parents(self):
        return self.model.parents

    def scaled(self, factor):
        """The run with its scores on the scale of more rows than it saw."""
        names = ("log_likelihood", "completed_score", "cheeseman_stutz")
        return self._replace(**{name: factor * getattr(self, name) for name in names})


# ------------------------------------------------------------------------------------- kinds of structures, and starts


class ClusterTable(NamedTuple):
    """Rows in memory: codes (n, n_columns), weights (n,), cardinalities (n_columns,)."""

    codes: np.ndarray
    weights: np.ndarray
    cardinalities: np.ndarray


def affordable_starts(kind, rows, candidates, n_starts):
    """Number of starts that are run to the end, so that a fit takes about a minute: all of them but on large tables in memory.

    candidates : numbers of clusters
    An error says what to do where even the fewest starts take too long.
    """
    if n_starts <= FEWEST_STARTS or kind is not AUGMENTED or not isinstance(rows, ClusterTable):
        return n_starts
    n_rows, cards = len(rows.codes), rows.cardinalities
    groups, n_states, n = plan_groups(cards), int(cards.sum()), len(cards)
    pairs = len(groups.members) ** 2 / 2
    cells = min(groups.total, n_rows * pairs)
    if WIDE < n_states <= MANY_STATES * n:  # products of indicators
        pairs, cells = n_states**2 / 60, n_states**2 / 8
    # of a start per cluster: counts of pairs, scores of their cells and updates of EM; and the first fit alone
    start = _USUAL_ROUNDS * (n_rows * pairs + 20 * cells + _USUAL_UPDATES * n_rows * n)
    first = _FIRST_UPDATES * n_rows * n
    if sum(candidates) * n_starts * start <= _ALL_STARTS:
        return n_starts
    fewest = max(candidates) * (min(n_starts, _USUAL_STARTS) * first + FEWEST_STARTS * start)
    if fewest > _AFFORDABLE:
        raise ValueError(
            f"structural EM from {n_starts} starts can take {fewest * 1e-9:.0f} CPU seconds for {n_rows:,} distinct rows of {n} "
            f"columns with {n_states} states: drop columns, merge rare states, or take a sample of the rows; "
            f"n_init={FEWEST_STARTS} takes the time that it needs"
        )
    return int(np.clip((_ALL_STARTS / sum(candidates) - n_starts * first) / start, FEWEST_STARTS, n_starts))


def best_first_fits(runs, inits, n_chosen):
    """Positions of the best runs of every first structure, as many of each, after one round: runs of one structure compare."""
    scores, chosen = np.array([run.scores[-1] for run in runs]), []
    for kind, most in most_per_structure(inits, n_chosen).items():
        own = np.flatnonzero([init == kind for init in inits])
        chosen.append(own[choose_starts(scores[own], np.ones(len(own), dtype=bool), most)])
    return np.sort(np.concatenate(chosen))


def most_per_structure(inits, n_chosen):
    """{first structure: number of its starts that are run to the end, at most}."""
    kinds = list(dict.fromkeys(inits))
    return {kind: min(-(-n_chosen // len(kinds)), inits.count(kind)) for kind in kinds}


def most_run_again(inits, n_final, is_sampled):
    """Number of starts that are run a second time, at most."""
    if is_sampled:
        return min(FEWEST_STARTS + ("network" in inits), len(inits))
    return sum(most_per_structure(inits, n_final).values()) if n_final < len(inits) else 0


class Start(NamedTuple):
    """Origin of a start ("naive_bayes", "tree" or "network"), its first structure and its first parameters."""

    init: str
    model: Any
    parameters: Any


def make_starts(kind, rows, n_clusters, generators, inits, settings, given=None):
    """One Start per generator.

    rows : ClusterTable, or for augmented naive Bayes `Rows` of `Block`
    inits : of every start     given : (families, tables, node names) of the network behind "network"
    """
    n_columns = len(rows.schema.names) if isinstance(rows, Rows) else len(rows.cardinalities)
    naive = kind.model(rows, n_clusters, kind.structure(np.full(n_columns, -1), settings.max_indegree), settings)
    models = {"naive_bayes": naive}
    if "tree" in inits:
        models["tree"] = naive.with_structure(kind.structure(naive.tree(), settings.max_indegree))
    starts = []
    for init, rng in zip(inits, generators):
        if init == "network":
            parents, parameters = kind.read(*given)
            starts.append(Start(init, naive.with_structure(parents), parameters))
        else:
            starts.append(Start(init, models[init], models[init].random_parameters(n_clusters, rng)))
    return starts


class _Augmented:
    """Parents: (n_columns,) other parent of every column, -1 = none. Parameters: `model.Parameters`."""

    def model(self, rows, n_clusters, parents, settings):
        """A structure with its rows, for the loops."""
        if isinstance(rows, Rows):
            return BlocksModel.build(rows, parents, settings.prior)
        cases = anb.make_cases(rows.codes, rows.cardinalities, rows.weights)
        return AugmentedModel.build(cases, parents, settings.prior)

    def structure(self, parents, max_indegree):
        """The structure in which every column has the cluster and, where `parents` names it, one other column above it."""
        return parents

    def read(self, families, tables, names):
        """(parents, parameters) of a network; an arc that does not fit is an error."""
        parents, class_probs, tables = as_augmented(families, tables, names)
        return parents, anb.Parameters(np.ascontiguousarray(class_probs), anb.pack_tables(tables))

    def by_size(self, run, renumber):
        """(parents, parameters) of a run, clusters by falling probability where `renumber`."""
        class_probs, table = run.parameters
        order = np.argsort(-class_probs, kind="stable") if renumber else slice(None)
        parameters = anb.Parameters(np.ascontiguousarray(class_probs[order]), np.ascontiguousarray(table[:, order]))
        return run.model.parents, parameters

    def network(self, parents, parameters, cardinalities):
        """(families, tables): parents of every node as positions, and (n_parent_states, n_states) of each."""
        tables = anb.unpack_tables(parameters.table, anb.make_layout(parents, cardinalities))
        return attribute_families(parents), [
            parameters.class_probs[None],
            *(t.reshape(-1, t.shape[-1]) for t in tables),
        ]

    def log_joint(self, codes, cardinalities, parents, parameters):
        """Natural log p(cluster, row), missing cells summed out: (n_samples, n_clusters)."""
        return anb.log_joint(codes, cardinalities, parents, parameters)

    def family_scores(self, model, parameters, responsibilities, names):
        """Scores of every column below the cluster alone and below the cluster and one other, see the estimator."""
        n_clusters = len(parameters.class_probs)
        if model.cases.n_complete < len(model.cases.codes) and responsibilities.shape[1] != n_clusters:
            raise ValueError(
                f"responsibilities has {responsibilities.shape[1]} clusters, the model that completes the missing cells "
                f"{n_clusters}"
            )
        return model.family_scores(parameters, np.ascontiguousarray(responsibilities[model.order]))


class _General:
    """Parents: a tuple of tuples of nodes. Parameters: a list of tables (n_parent_states, n_states)."""

    def model(self, rows, n_clusters, parents, settings):
        cards = np.array([n_clusters, *rows.cardinalities])
        codes = general.with_cluster(rows.codes)
        return general.GeneralModel(codes, rows.weights, cards, parents, settings.prior, settings.max_indegree)

    def structure(self, parents, max_indegree):
        return attribute_families(parents if max_indegree > 1 else np.full(len(parents), -1))

    def read(self, families, tables, names):
        return families, tables

    def by_size(self, run, renumber):
        parents, tables = tuple(run.model.parents), list(run.parameters)
        if renumber:
            order = np.argsort(-(run.model.weights @ run.responsibilities), kind="stable")
            tables = relabel(tables, parents, run.model.cardinalities, 0, order)
        return parents, tables

    def network(self, parents, parameters, cardinalities):
        return parents, parameters

    def log_joint(self, codes, cardinalities, parents, parameters):
        return general.log_joint(codes, np.array([parameters[0].shape[-1], *cardinalities]), parents, parameters)

    def family_scores(self, model, parameters, responsibilities, names):
        codes = model.codes[:, 1:]
        if (codes < 0).any():
            name = names[int(np.argmax((codes < 0).any(axis=0)))]
            raise ValueError(
                f"column {name!r} has missing cells; with structures='general' pass complete rows, or impute"
            )
        cases = anb.make_cases(codes, model.cardinalities[1:], model.weights)
        return family_scores(cases, responsibilities[cases.order], model.prior)


AUGMENTED, GENERAL = _Augmented(), _General()
KINDS = {"augmented": AUGMENTED, "general": GENERAL}


def kind_of(parameters):
    """The kind of fitted parameters."""
    return AUGMENTED if isinstance(parameters, anb.Parameters) else GENERAL
