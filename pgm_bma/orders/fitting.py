"""From parameters and a table to an average over structures: what the order classifiers and `OrderPosterior` share in fit."""

import math
import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from pgm_bma.foundation.faces.validation import (
    Choice,
    Integer,
    Jobs,
    Verbose,
    brief,
    check_parameters,
)
from pgm_bma.foundation.numbers.families import PARAMETER_PRIOR, check_prior, most_mass, state_offsets
from pgm_bma.foundation.rows.scan import NeedsRows
from pgm_bma.foundation.runtime.jobs import n_workers, progress
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.orders import search, structure_average
from pgm_bma.orders.chains.runner import R_HAT, teller
from pgm_bma.orders.checkpoints import check_checkpoint, fingerprint
from pgm_bma.orders.families import counted
from pgm_bma.orders.families.arcs import arc_log_odds, named_arcs, order_positions, random_order, start_orders
from pgm_bma.orders.families.counted import CountedTraining
from pgm_bma.orders.families.family_table import (
    MAX_FAMILIES,
    STRUCTURE_PRIORS,
    Scoring,
    family_table,
    grow_lists,
    n_families,
    prune_table,
)
from pgm_bma.orders.gaps import augmented_average
from pgm_bma.orders.gaps.augment import GapTable
from pgm_bma.orders.gaps.augment_lists import LOST, expected_loss
from pgm_bma.orders.limits import (
    GAP_SECONDS,
    SCORING,
    SWEEPING,
    check_pairs,
    check_soft_families,
    check_widest_family,
    counting_steps,
    lists_of,
)
from pgm_bma.orders.samplers import SAMPLER, GibbsSampler, SwapSampler
from pgm_bma.orders.structure_average import WEIGHTINGS
from pgm_bma.orders.sums.exact_orders import AUTO_PREDICTION
from pgm_bma.orders.sums.fixed_order import Training

MISSING = ("auto", "augment", "drop", "state")
UNOBSERVED = ("sum_out", "fill")
PRESETS = {
    # ORD sections III-B and IV: the chain keeps iterations 10,001 + 1667 t, t = 0 .. 29
    "paper": {
        "method": "mcmc",
        "sampler": SwapSampler(n_orders=30, burn_in=10_000, thin=1667, n_chains=1),
        "structure_weighting": "order",
        "max_indegree": 3,
        "alpha": 1.0,
        "equivalent_sample_size": None,
        "parameter_prior": "paper",
        "structure_prior": "mdl",
        "missing": "drop",
    }
}
FAMILY_RULES = {
    "max_indegree": Integer(0),
    "parameter_prior": PARAMETER_PRIOR,
    "structure_prior": Choice(*STRUCTURE_PRIORS),
    "missing": Choice(*MISSING),
    "unobserved": Choice(*UNOBSERVED),
}
RUN_RULES = {
    "method": Choice("auto", "exact", "mcmc"),
    "sampler": SAMPLER,
    "structure_weighting": Choice(*WEIGHTINGS),
    "n_jobs": Jobs(),
    "verbose": Verbose(),
}


class OrderSettings(NamedTuple):
    """The parameters of a fit, preset and sampler resolved; those that an estimator does not have keep their defaults."""

    sampler: GibbsSampler | SwapSampler
    max_indegree: int
    alpha: float
    equivalent_sample_size: float | None
    parameter_prior: str
    structure_prior: str
    expert_knowledge: Any
    missing: str
    required_arcs: Any = None
    forbidden_arcs: Any = None
    arc_prior: Any = 0.5
    method: str = "auto"
    structure_weighting: str = "order"
    n_jobs: int | None = None
    verbose: Any = False
    quiet: bool = False  # arcs need not have converged
    by_default: bool = False  # no sampler was given: a fit ends after some minutes

    @property
    def swaps(self) -> bool:
        """Return whether orders are sampled by the paper's swaps."""
        return isinstance(self.sampler, SwapSampler)


def checked_settings(estimator, values):
    """The parameters of an estimator, `values` after its preset, checked: an `OrderSettings`."""
    check_parameters(estimator, values)
    check_prior(values["alpha"], values["equivalent_sample_size"])
    settings = OrderSettings(**{name: values[name] for name in OrderSettings._fields if name in values})
    if settings.sampler is None:
        settings = settings._replace(sampler=estimator._default_records["sampler"], by_default=True)
    settings.sampler.check()
    if settings.swaps and settings.structure_weighting == "dag":
        raise ValueError(
            "SwapSampler works with structure_weighting='order' only; pass sampler=GibbsSampler() for structure_weighting='dag'"
        )
    if settings.swaps and settings.method == "given":
        raise ValueError(
            "method='given' takes its orders from sampler=GibbsSampler(init=[...]), not from a SwapSampler"
        )
    if settings.sampler.checkpoint is not None:
        check_checkpoint(settings.sampler.checkpoint)
    return settings


def training_rows(schema, codes, weights, settings, held=None, soft=False):
    """Folded rows with the parameter prior: a `Training` of complete rows, or a `GapTable` if missing cells are to be sampled.

    Scores of families are comparable only on the same rows, so under "drop" a row with a missing cell is left out as a whole.
    held : (n_rows, n) bool, where variables were set by an experiment, or None     soft : see `interventions`
    """
    prior = schema.cardinalities, settings.alpha, settings.equivalent_sample_size
    holes = (codes < 0).any(1)
    if holes.any():
        name = schema.names[int(np.argmax((codes < 0).sum(0)))]
        if samples_gaps(settings, int((codes < 0).sum()), name):
            most = max_total(settings, _total(codes, weights))
            return augmented_average.gap_table(schema.names, codes, weights, *prior, most, held, soft)
        _tell_of_dropped(int(holes.sum()), len(holes), name)
        codes = codes[~holes]
        weights = None if weights is None else weights[~holes]
        held = None if held is None else held[~holes]
    n, most = codes.shape[1], max_total(settings, _total(codes, weights))
    if held is not None:  # equal rows of different experiments stay apart
        codes = np.column_stack([codes, held])
    rows, row_weights, _ = table.fold(codes, weights)
    held = None if held is None else rows[:, n:].astype(bool)
    return Training(np.asfortranarray(rows[:, :n], dtype=np.int32), row_weights, *prior, most, held, soft)


def counted_rows(schema, rows, settings, columns=()):
    """(`CountedTraining`, weight of the incomplete rows) of rows that are visited in passes, a class behind their columns.

    schema : of all variables     columns : those with a state for missing cells, under missing="state"
    """
    n_missing = rows.has_missing if not len(columns) else np.zeros(0)
    if n_missing.any():
        offsets = state_offsets(rows.schema.cardinalities)
        n_missing = rows.total_weight - np.add.reduceat(rows.state_counts, offsets[:-1])
        name = rows.schema.names[int(np.argmax(n_missing))]
        if samples_gaps(settings, int(n_missing.sum()), name):
            raise NeedsRows(
                f"missing={settings.missing!r} with missing cells (most in {name!r})", "missing='drop' or 'state'"
            )
    names, cardinalities = schema.names, schema.cardinalities
    max_indegree, _ = reach(names, settings)
    counted.check_size(names, cardinalities, max_indegree)
    sets, first, n_dropped, weight = counted.count_rows(rows, cardinalities, max_indegree, columns)
    if n_dropped and not len(columns):
        _tell_of_dropped(n_dropped, rows.n_rows, name)
    total = sets.counts[:1].copy()  # of the empty set
    prior = cardinalities, settings.alpha, settings.equivalent_sample_size
    return CountedTraining(sets, max_indegree + 1, first, total, *prior, max_total(settings, float(total[0]))), weight


def samples_gaps(settings, n_missing, name):
    """Return whether missing cells are to be sampled, else their rows are left out; `name` is the column that lacks most."""
    needs = "method='exact'" if settings.method == "exact" else "SwapSampler" if settings.swaps else None
    if settings.missing == "augment" and needs:
        raise ValueError(
            f"{needs} needs complete rows, but {n_missing} cells are missing (most in {name!r}); leave it at "
            "its default, or pass missing='drop' or 'state'"
        )
    return settings.missing == "augment" or (settings.missing == "auto" and not needs)


def _tell_of_dropped(n_dropped, n_rows, name):
    if n_dropped == n_rows:
        raise ValueError(
            f"every row has a missing value (most in {name!r}); pass missing='augment' or 'state', or drop columns or impute "
            "before"
        )
    warn(
        f"{n_dropped} of {n_rows} rows have missing values (most in {name!r}) and are left out of the scores; "
        "missing='augment' or 'state' keeps them"
    )


def _total(codes, weights):
    return len(codes) if weights is None else math.fsum(weights)


def max_total(settings, total):
    """Most pseudo-counts that a table may hold, or None. Under "consistent", a share of the rows: small tables have alpha in every
    cell, and of large ones, all that compete for a child hold the same mass, so that no arc gains from a larger table."""
    if settings.equivalent_sample_size is not None or settings.parameter_prior != "consistent":
        return None
    return most_mass(total)


def with_sample_size(training, names, settings):
    """The rows with the total pseudo-count (BDeu) of most evidence, where parameter_prior="evidence" asks for it."""
    if settings.parameter_prior != "evidence" or settings.equivalent_sample_size is not None:
        return training
    quick = settings._replace(sampler=GibbsSampler(beam=search.BEAM), verbose=False)
    rows = training
    max_indegree, arcs = reach(names, quick)
    if isinstance(training, GapTable):
        sized = training.sized(search.COMPLETED)
        rows = augmented_average.one_completion(sized, _scoring(sized, max_indegree, quick, arcs), arcs.required)
    full = len(names) <= search.EXACT
    how = {"full": full, "grown": not full and not getattr(rows, "soft", False)}
    families = [score(rows.sized(size), names, quick, **how)[0] for size in search.SAMPLE_SIZES]
    evidence = search.log_evidences(families, arcs.required)
    return training.sized(search.SAMPLE_SIZES[int(np.argmax(evidence))])


def score(training, names, settings, full, *, exact=False, grown=False):
    """(families, arcs): a full `FamilyTable`, or `FamilyLists`; arcs as `arcs.Arcs`.

    full : whether a full table is wanted where it fits; else lists are pruned from it
    exact : whether nothing else will do     grown : whether lists are grown even if a full table fits
    """
    n = len(names)
    max_indegree, arcs = reach(names, settings)
    size = n_families(n, n - 1, max_indegree)
    scoring = _scoring(training, max_indegree, settings, arcs)
    if isinstance(training, CountedTraining):
        families = counted.counted_table(training, scoring)
        return (families if full else prune_table(families, settings.sampler.eps)), arcs
    rows = training.codes, training.cardinalities, training.weights
    quick = exact or not settings.by_default or counting_steps(training, size) <= SCORING
    if size <= MAX_FAMILIES and quick and not grown:
        check_widest_family(training, names, max_indegree)
        families = family_table(*rows, scoring, training.held)
        return (families if full else prune_table(families, settings.sampler.eps)), arcs
    if exact:
        raise ValueError(
            f"{n} variables with max_indegree={max_indegree} have {size} families, more than {MAX_FAMILIES}, which method='exact' "
            "and SwapSampler need all of; lower max_indegree, or pass method='mcmc' with sampler=GibbsSampler()"
        )
    check_soft_families(scoring, n)
    sizes = n, len(training.codes), max_indegree, settings.sampler
    with progress(settings.verbose, "variables", total=n, label="families") as tick, lists_of(*sizes):
        limits = {"eps": settings.sampler.eps, "beam": settings.sampler.beam}
        limits["most_steps"] = SCORING if settings.by_default else np.inf
        if settings.by_default:
            check_pairs(training)
        lists = grow_lists(*rows, scoring, training.held, **limits, n_jobs=settings.n_jobs, progress=tick)
    return lists, arcs


def _scoring(training, max_indegree, settings, arcs):
    alpha, equivalent_sample_size, most = training.prior
    prior = settings.structure_prior
    soft = getattr(training, "soft", False)
    own = max_indegree, alpha, equivalent_sample_size, most, prior
    return Scoring(*own, arcs.required, arcs.forbidden, arcs.odds, soft)


def reach(names, settings):
    """(max_indegree that is possible, `arcs.Arcs`)"""
    most = min(settings.max_indegree, len(names) - 1)
    arcs = named_arcs(settings.required_arcs, settings.forbidden_arcs, settings.expert_knowledge, names, most)
    return most, arcs._replace(odds=arc_log_odds(settings.arc_prior, names))


def average(training, names, settings, random_state, root, predicts, families=None):
    """(average, what predictions are made of): run what `settings` asks for; the second are the sums of an exact average, the
    mixture of one over tables with missing cells, else None.

    random_state, root : the seed as given, and the SeedSequence behind it
    predicts : whether joints of rows will be asked for, which "exact" can do for fewer variables than arcs
    families : where they are scored already, a table of them: full if it can be
    """
    if isinstance(training, GapTable):
        return augment(training, names, settings, random_state, root)
    sampler, method, began = settings.sampler, choose_method(settings, len(names), predicts), time.monotonic()
    swap = method == "mcmc" and settings.swaps
    if families is None:
        families, arcs = score(training, names, settings, method != "mcmc" or swap, exact=method == "exact" or swap)
    else:
        arcs = reach(names, settings)[1]
    if method == "given":
        return structure_average.given_average(families, training, _given_orders(settings, names, arcs)), None
    rngs = [np.random.default_rng(child) for child in root.spawn(sampler.n_chains)]
    if method == "exact":
        weighting = settings.structure_weighting
        return structure_average.exact_average(families, training, weighting, sampler.n_orders, rngs[0])
    marks = fingerprint(training, names, settings, arcs, random_state, root) if sampler.checkpoint else None
    result = _sample(families, training, names, settings, arcs, rngs, marks, began)
    _warn_of_the_end(result, settings)
    return result, None


def _sample(families, training, names, settings, arcs, rngs, marks, began):
    """The average over orders that chains visit.

    marks : the fingerprint of a checkpoint, or None        began : on the clock, from when `max_time` counts
    """
    kind, sampler = WEIGHTINGS[settings.structure_weighting], settings.sampler
    given = start_orders(sampler.init, names, sampler.n_chains, arcs.required)
    starts = given or [random_order(len(names), rng, arcs.required) for rng in rngs]
    run = {
        "n_kept": sampler.n_orders,
        "checkpoint": sampler.checkpoint,
        "checkpoint_every": sampler.checkpoint_every,
        "fingerprint": marks,
        "n_jobs": n_workers(settings.n_jobs),
    }
    if settings.swaps:
        steps = sampler.burn_in + 1 + sampler.thin * (sampler.n_orders - 1)
        with progress(settings.verbose, "steps", total=steps * sampler.n_chains, label="orders") as tick:
            run.update(burn_in=sampler.burn_in, thin=sampler.thin, progress=tick)
            return structure_average.swapped_average(families, training, kind.name, starts, rngs, **run)
    run.update({name: getattr(sampler, name) for name in ("tol", "max_sweeps", "n_temperatures")})
    run.update(
        seconds=SWEEPING if settings.by_default else None,
        climbs=given is None,
        max_time=sampler.max_time and sampler.max_time - (time.monotonic() - began),
    )
    with progress(settings.verbose, "sweeps", label=kind.words) as tick:
        run["tell"] = teller(tick, settings.verbose)
        return structure_average.sampled_average(families, training, kind.name, starts, rngs, **run)


def _given_orders(settings, names, arcs):
    """The orders that method="given" averages, as positions."""
    init = settings.sampler.init
    if settings.structure_weighting == "dag":
        raise ValueError(
            "method='given' averages over orders; structure_weighting='dag' cannot be computed from given orders"
        )
    listed = isinstance(init, (list, tuple)) or (isinstance(init, np.ndarray) and init.ndim)
    orders = list(init) if listed else []
    if not orders:
        raise ValueError(
            f"method='given' averages the orders in sampler=GibbsSampler(init=...), a list of at least one order, each a list of "
            f"all variables; here init={brief(init)}"
        )
    return [order_positions("init", order, names, arcs.required) for order in orders]


def augment(gaps, names, settings, random_state, root, orders=None):
    """(average, mixture) over structures and completions of a `GapTable`; orders : positions, instead of sampling any."""
    kind, sampler, n = WEIGHTINGS[settings.structure_weighting], settings.sampler, len(names)
    max_indegree, arcs = reach(names, settings)
    scoring = _scoring(gaps, max_indegree, settings, arcs)
    check_soft_families(scoring, n)
    if settings.method == "given":
        orders = _given_orders(settings, names, arcs)
    run = {
        "n_kept": sampler.n_orders,
        "tol": sampler.tol,
        "max_sweeps": max(sampler.max_sweeps // augmented_average.counts_for(gaps, max_indegree), 1),
        "max_time": sampler.max_time,
        "eps": sampler.eps,
        "beam": sampler.beam,
        "n_jobs": n_workers(settings.n_jobs),
        "checkpoint": sampler.checkpoint,
        "checkpoint_every": max(sampler.checkpoint_every // (augmented_average.ORDER_SWEEPS * n), 1),
    }
    if settings.by_default and not settings.quiet:
        run["max_sweeps"] = min(
            sampler.max_sweeps, augmented_average.affordable_sweeps(GAP_SECONDS, gaps, sampler.n_chains)
        )
    if sampler.checkpoint:
        run["fingerprint"] = fingerprint(gaps, names, settings, arcs, random_state, root, orders)
    sizes = n, len(gaps.codes), max_indegree, sampler
    with progress(settings.verbose, "sweeps", label=f"{kind.words} and missing cells") as tick, lists_of(*sizes):
        run["tell"] = teller(tick, settings.verbose)
        if orders is not None:
            each = sampler.n_chains if len(orders) == 1 else 1
            rngs = [np.random.default_rng(child) for child in root.spawn(each * len(orders))]
            found = augmented_average.given_augmented(gaps, orders, rngs, scoring, **run)
        else:
            rngs = [np.random.default_rng(child) for child in root.spawn(sampler.n_chains)]
            given = start_orders(sampler.init, names, sampler.n_chains, arcs.required)
            starts = [kind.start(n, rng, arcs.required) for rng in rngs]
            if given and kind.name == "order":
                starts = given
            found = augmented_average.augmented_average(gaps, kind.name, starts, rngs, scoring, **run)
    if not settings.quiet:
        _warn_of_gaps(found[0], names, settings)
    return found


def _warn_of_gaps(result, names, settings):
    if not result.finished:
        warn(f"interrupted: {result.states.shape[1]} of {settings.sampler.n_orders} orders per chain were kept")
    loss = expected_loss(result.table.lost_mass)
    if loss.max(initial=0.0) > LOST:
        node = int(np.argmax(loss))
        warn(
            f"parent sets of {names[node]!r} that were left out have {loss[node]:.2f} of its weight on the completed tables "
            f"(more than {LOST}), so arcs into it may be off by as much; lower eps (now {settings.sampler.eps}), or drop columns"
        )
    if result.chains.converged:
        return
    apart = np.ptp(result.chains.means, axis=0)
    doubtful = ~(result.chains.r_hat <= R_HAT)  # few sweeps have none
    worst = np.argsort(np.where(doubtful, apart, -1.0), axis=None)[::-1][:3]
    pairs = [np.unravel_index(k, apart.shape) for k in worst]
    listed = ", ".join(f"{names[u]!r} -> {names[v]!r} by {apart[u, v]:.2f}" for u, v in pairs if apart[u, v] > 0)
    warn(
        f"with the missing cells, the chains have not converged after {result.chains.n_sweeps} sweeps: arc posteriors may be off "
        f"by {result.chains.error:.2f} (tol={settings.sampler.tol}). Arcs differ between the chains, most {listed or 'none'}; "
        f"{result.chains.n_apart} by more than 0.2. Raise max_sweeps or max_time in sampler=GibbsSampler(...); diagnostics_ has "
        "all arcs",
        ConvergenceWarning,
    )


def _warn_of_the_end(result, settings):
    if not result.finished:
        warn(f"interrupted: {result.states.shape[1]} of {settings.sampler.n_orders} orders per chain were kept")
    if result.chains is not None and not result.chains.converged:
        warn(
            f"the chains have not converged after {result.chains.n_sweeps} sweeps: arc posteriors may be off by "
            f"{result.chains.error:.2f} (tol={settings.sampler.tol}), or a chain is far from the best scores; "
            f"{result.chains.n_apart} arcs differ by more than 0.2 between chains. Raise max_sweeps or max_time in "
            "sampler=GibbsSampler(...); diagnostics_ has all arcs",
            ConvergenceWarning,
        )


def choose_method(settings, n, predicts):
    """ "exact", "mcmc" or "given"; an explicit "exact" beyond reach is an error."""
    if settings.method == "given":
        return "given"
    kind = WEIGHTINGS[settings.structure_weighting]
    limit = kind.exact_rows if predicts else kind.exact_arcs
    if n < 2:
        return "exact"
    if settings.method == "auto":
        reach = min(limit, AUTO_PREDICTION) if predicts else limit
        fits = n_families(n, n - 1, min(settings.max_indegree, n - 1)) <= MAX_FAMILIES
        return "exact" if n <= reach and fits else "mcmc"
    if settings.method == "exact" and n > limit:
        what = "predictions" if predicts else "arc posteriors"
        raise ValueError(
            f"method='exact' with structure_weighting={kind.name!r} reaches {limit} variables for {what}, here are {n}; pass "
            "method='mcmc' or 'auto'"
        )
    return settings.method
