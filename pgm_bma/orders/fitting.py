"""From parameters and a table to an average over structures: what the order classifiers and `OrderPosterior` share in fit."""

import hashlib
import os

import numpy as np

from pgm_bma.foundation import table
from pgm_bma.foundation.priors import check_prior
from pgm_bma.foundation.validation import check_choice, check_number
from pgm_bma.foundation.warn import warn
from pgm_bma.orders import exact_dags, exact_orders
from pgm_bma.orders.family_table import STRUCTURE_PRIORS, family_table, fitting_candidates
from pgm_bma.orders.fixed_order import Training
from pgm_bma.orders.structure_average import average_structures

MISSING = ("sum_out", "impute", "state")
MAX_WEIGHT = 1e11  # rows; their log scores, near 1e12, are rounded to 1e-4; of more rows, sums over orders are noise
PRESETS = {
    # ORD sections III-B and IV: the chain keeps iterations 10,001 + 1667 t, t = 0 .. 29
    "paper": {
        "method": "mcmc",
        "n_orders": 30,
        "burn_in": 10_000,
        "thin": 1667,
        "n_chains": 1,
        "structure_weighting": "order",
        "max_indegree": 3,
        "alpha": 1.0,
        "equivalent_sample_size": None,
        "structure_prior": "mdl",
        "n_candidates": None,
    }
}
# what a checkpoint must share, beside the data, the seed and the version
_FINGERPRINT = (
    "structure_weighting", "n_orders", "burn_in", "thin", "n_chains", "max_indegree", "alpha", "equivalent_sample_size",
    "structure_prior", "n_candidates", "required_arcs", "forbidden_arcs", "init", "missing", "checkpoint_every",
)  # fmt: skip


def add_missing_state(schema, codes, missing):
    """(schema, codes) in which missing is one more state of every column that has it, under missing="state"."""
    if missing != "state":
        return schema, codes
    states, codes = list(schema.states), codes.astype(np.int64)
    for column in np.flatnonzero((codes < 0).any(0)):
        label = "missing"
        while label in states[column]:
            label += "_"
        codes[codes[:, column] < 0, column] = len(states[column])
        states[column] = (*states[column], label)
    return table.Schema(schema.names, tuple(states)), codes


def complete_training(schema, codes, weights, values):
    """Folded complete rows with the parameter prior. Scores of families are comparable only on the same rows, so a row with a
    missing cell is left out as a whole."""
    holes = (codes < 0).any(1)
    if holes.any():
        name = schema.names[int(np.argmax((codes < 0).sum(0)))]
        if holes.all():
            raise ValueError(
                f"every row has a missing value (most in {name!r}); pass missing='state', or drop columns or impute before"
            )
        warn(
            f"{int(holes.sum())} of {len(holes)} rows have missing values (most in {name!r}) and are left out of the scores; "
            "missing='state' keeps them"
        )
        codes = codes[~holes]
        weights = None if weights is None else weights[~holes]
    rows, row_weights, _ = table.fold(codes, weights)
    if row_weights.sum() > MAX_WEIGHT:
        raise ValueError(
            f"sample_weight adds up to {row_weights.sum():.3g} rows, more than {MAX_WEIGHT:.3g}: log scores of so many are lost in "
            "rounding; scale the weights down"
        )
    return Training(
        np.asfortranarray(rows, dtype=np.int32),
        row_weights,
        schema.cardinalities,
        values["alpha"],
        values["equivalent_sample_size"],
    )


def score(training, names, values):
    """The family table, with checked parameters; many variables get candidates chosen by score."""
    check_prior(values["alpha"], values["equivalent_sample_size"])
    check_number("max_indegree", values["max_indegree"], 0, integer=True)
    check_choice("structure_prior", values["structure_prior"], STRUCTURE_PRIORS)
    n = len(names)
    max_indegree = min(values["max_indegree"], n - 1)
    n_candidates = values["n_candidates"]
    if n_candidates is None:
        n_candidates = fitting_candidates(n, max_indegree)
        if n_candidates < n - 1:
            warn(
                f"{n} variables with max_indegree={max_indegree} have too many families to score them all: every variable "
                f"chooses its parents among {n_candidates} candidates; set n_candidates or lower max_indegree"
            )
    else:
        check_number("n_candidates", n_candidates, max_indegree, integer=True)
    required = arc_positions("required_arcs", values["required_arcs"], names)
    forbidden = arc_positions("forbidden_arcs", values["forbidden_arcs"], names)
    _check_arcs(required, forbidden, names, max_indegree)
    return family_table(
        training.codes,
        training.cardinalities,
        training.weights,
        max_indegree=max_indegree,
        alpha=values["alpha"],
        equivalent_sample_size=values["equivalent_sample_size"],
        structure_prior=values["structure_prior"],
        required=required,
        forbidden=forbidden,
        n_candidates=n_candidates,
    )


def average(training, names, values, random_state, root, predicts):
    """Resolve `values` (parameters by name, preset applied) and run them: a `StructureAverage`.

    random_state, root : the seed as given, and the SeedSequence behind it
    predicts : whether joints of rows will be asked for, which "exact" can do for fewer variables than arcs
    """
    _check_run(values)
    scores = score(training, names, values)
    required = arc_positions("required_arcs", values["required_arcs"], names)
    orders = values.get("orders")
    method = "given" if orders is not None else choose_method(values, len(names), predicts)
    if orders is not None:
        if values["structure_weighting"] == "dag":
            raise ValueError("orders= averages over orders; structure_weighting='dag' cannot be had from given orders")
        if isinstance(orders, str) or not hasattr(orders, "__len__") or len(orders) == 0:
            raise ValueError(f"orders={orders!r} must be a list of at least one order, each a list of all variables")
        orders = [order_positions("orders", order, names, required) for order in orders]
    rngs = [np.random.default_rng(child) for child in root.spawn(values["n_chains"])]
    run = {}
    bar = None
    if method == "mcmc":
        last_step = values["burn_in"] + 1 + values["thin"] * (values["n_orders"] - 1)
        bar = _progress_bar(values["show_progress"], last_step * values["n_chains"])
        run = {
            "burn_in": values["burn_in"],
            "thin": values["thin"],
            "checkpoint": values["checkpoint"],
            "checkpoint_every": values["checkpoint_every"],
            "fingerprint": fingerprint(training, names, values, random_state, root) if values["checkpoint"] else None,
            "n_jobs": _workers(values["n_jobs"]),
            "progress": bar.update if bar is not None else None,
            "starts": _starts(values["init"], names, values["n_chains"], required),
        }
    try:
        result = average_structures(
            scores,
            training,
            method,
            values["structure_weighting"],
            n_kept=values["n_orders"],
            rngs=rngs,
            orders=orders,
            required=required,
            **run,
        )
    finally:
        if bar is not None:
            bar.close()
    if not result.finished:
        warn(f"interrupted: {result.states.shape[1]} of {values['n_orders']} orders per chain were kept")
    return result


def choose_method(values, n, predicts):
    """ "exact" or "mcmc"; an explicit "exact" beyond reach is an error."""
    by_order = values["structure_weighting"] == "order"
    limit = exact_orders.MAX_VARIABLES if by_order else exact_dags.MAX_VARIABLES
    if predicts:
        limit = exact_orders.MAX_PREDICTION if by_order else exact_dags.MAX_PREDICTION
    if n < 2:
        return "exact"
    if values["method"] == "auto":
        auto = min(limit, exact_orders.AUTO_PREDICTION) if predicts else limit
        return "exact" if n <= auto else "mcmc"
    if values["method"] == "exact" and n > limit:
        what = "predictions" if predicts else "arc posteriors"
        raise ValueError(
            f"method='exact' with structure_weighting={values['structure_weighting']!r} reaches {limit} variables for {what}, "
            f"here are {n}; pass method='mcmc' or 'auto'"
        )
    return values["method"]


def order_positions(parameter, order, names, required=()):
    """An order of names as positions; every variable must occur once, behind its parents in `required` (positions)."""
    if isinstance(order, str) or not hasattr(order, "__iter__"):
        raise ValueError(f"{parameter}: an order is a list of all variables, earliest first, got {order!r}")
    order = list(order)
    unknown = [name for name in order if name not in names]
    if unknown:
        raise ValueError(f"{parameter} names {unknown[0]!r}, which is no variable; the variables are {names}")
    absent = [name for name in names if name not in order]
    if absent or len(order) != len(names):
        wrong = f"lacks {absent[0]!r}" if absent else "names a variable twice"
        raise ValueError(f"{parameter}: an order names every variable once, this one {wrong}")
    position = {name: k for k, name in enumerate(names)}
    order = [position[name] for name in order]
    for parent, child in required:
        if order.index(parent) > order.index(child):
            raise ValueError(
                f"{parameter} puts {names[parent]!r}, a required parent of {names[child]!r}, behind it; change the order or "
                "required_arcs"
            )
    return order


def arc_positions(parameter, arcs, names):
    """Pairs (parent, child) of names as pairs of positions."""
    position = {name: k for k, name in enumerate(names)}
    pairs = []
    if not hasattr(arcs, "__iter__") and arcs is not None:
        raise ValueError(f"{parameter} wants pairs (parent, child), got {arcs!r}")
    for arc in () if arcs is None else arcs:
        if isinstance(arc, str) or not hasattr(arc, "__len__") or len(arc) != 2:
            raise ValueError(f"{parameter} wants pairs (parent, child), got {arc!r}")
        for name in arc:
            if name not in names:
                raise ValueError(f"{parameter} names {name!r}, which is no variable; the variables are {names}")
        pairs.append((position[arc[0]], position[arc[1]]))
    return pairs


def fingerprint(training, names, values, random_state, root):
    """What a checkpoint must share with the run that reads it: field -> text."""
    import pgm_bma

    digest = hashlib.sha256()
    for part in (training.codes, training.weights, training.cardinalities):
        digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(repr(names).encode())
    fields = {"version": pgm_bma.__version__, "data": digest.hexdigest()}
    fields.update({name: repr(values.get(name)) for name in _FINGERPRINT})
    for parameter in ("required_arcs", "forbidden_arcs"):  # a set is written in another order every time
        arcs = sorted(set(arc_positions(parameter, values[parameter], names)))
        fields[parameter] = repr([(names[p], names[c]) for p, c in arcs])
    # a fresh seed is new at every start: then the generators in the file carry on
    fields["random_state"] = "None" if random_state is None else repr((root.entropy, root.spawn_key))
    return fields


def _check_run(values):
    check_choice("method", values["method"], ("auto", "exact", "mcmc"))
    check_choice("structure_weighting", values["structure_weighting"], ("order", "dag"))
    check_number("n_orders", values["n_orders"], 1, integer=True)
    check_number("burn_in", values["burn_in"], 0, integer=True)
    check_number("thin", values["thin"], 1, integer=True)
    check_number("n_chains", values["n_chains"], 1, integer=True)
    check_number("checkpoint_every", values["checkpoint_every"], 1, integer=True)
    checkpoint = values["checkpoint"]
    if checkpoint is not None:
        if not isinstance(checkpoint, (str, os.PathLike)):
            raise ValueError(f"checkpoint={checkpoint!r} must be the name of a file")
        folder = os.path.dirname(os.path.abspath(checkpoint))
        if os.path.isdir(checkpoint) or not os.path.isdir(folder):
            wrong = "it is a folder" if os.path.isdir(checkpoint) else f"there is no folder {folder!r}"
            raise ValueError(f"checkpoint={str(checkpoint)!r} cannot be written: {wrong}")


def _check_arcs(required, forbidden, names, max_indegree):
    """Errors with names instead of the positions that the room would give."""
    for parent, child in required:
        if (parent, child) in forbidden or parent == child:
            raise ValueError(
                f"arc {names[parent]!r} -> {names[child]!r} is required, and forbidden or a loop; drop one"
            )
    for child in {c for _, c in required}:
        parents = {p for p, c in required if c == child}
        if len(parents) > max_indegree:
            raise ValueError(
                f"required_arcs gives {names[child]!r} {len(parents)} parents, but max_indegree={max_indegree}; raise it"
            )
    cycle = set(required)
    while ends := {arc for arc in cycle if arc[0] not in {c for _, c in cycle} or arc[1] not in {p for p, _ in cycle}}:
        cycle -= ends
    if cycle:
        among = ", ".join(f"{names[p]!r} -> {names[c]!r}" for p, c in sorted(cycle))
        raise ValueError(f"required_arcs hold a cycle among {among}; drop one of them")


def _starts(init, names, n_chains, required):
    """Starting orders: one for all chains, or one each."""
    if init is None:
        return None
    first = next(iter(init), "") if hasattr(init, "__iter__") else ""
    if (
        not isinstance(init, str)
        and not isinstance(first, str)
        and hasattr(first, "__iter__")
        and tuple(first) not in names
    ):
        if len(init) != n_chains:
            raise ValueError(f"init holds {len(init)} orders for n_chains={n_chains}; give one order, or one per chain")
        return [order_positions("init", order, names, required) for order in init]
    return [order_positions("init", init, names, required)] * n_chains


def _workers(n_jobs):
    if n_jobs is None:
        return 1
    check_number("n_jobs", abs(n_jobs) if isinstance(n_jobs, int) else n_jobs, 1, integer=True)
    return n_jobs if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + n_jobs)


def _progress_bar(show, total):
    if not show:
        return None
    from tqdm.auto import tqdm

    return tqdm(total=total, unit="step", unit_scale=True, desc="orders")
