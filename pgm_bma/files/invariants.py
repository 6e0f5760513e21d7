"""Invariants between the arrays of a fitted estimator: one table per record, keyed as in saved files, read by `load`.

A checksum finds damage, not a stranger's hand. Kernels index with these arrays and check nothing, so a file whose arrays do not fit
each other would be read outside of memory. Shapes are written in symbols that stand for one number in an estimator: n columns,
S states of all columns together, k classes or clusters, v variables (columns and class) of the order methods; other symbols are
bound where they are first met inside a record.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pgm_bma import catalogue
from pgm_bma.files import invariant_checks as between
from pgm_bma.files.invariant_rules import (
    NAN,
    NEGATIVE_INFINITY,
    Array,
    Each,
    Indices,
    Log,
    Long,
    Maybe,
    Probability,
    Rising,
    Scalar,
    Scope,
    want,
)
from pgm_bma.foundation.numbers.families import state_offsets

_KEYS = {path: key for key, path in catalogue.RECORDS.items()}


def invariants(check=None, /, **fields):
    """Invariants of a record: a rule for each field, and rules between fields."""
    return check, fields


FAMILY_PRIOR = {
    "cardinalities": Array("v", "i", 0, same="variable_cards"),
    "alpha": Scalar(0, empty=True),
    "equivalent_sample_size": Scalar(0, empty=True),
    "max_total": Scalar(0, empty=True),
}

RECORDS: dict[str, tuple] = {
    "schema": invariants(between.check_schema),
    "network": invariants(between.check_network),
    "naive-bayes-fit": invariants(
        class_probability=Probability("k", sums=0),
        tables=Probability("k S", by_state=True),
        arc_posterior=Probability("n"),
        log_evidence=Scalar(),
        cut_posteriors=Maybe(Each(Maybe(Probability("*")))),
    ),
    "tan-fit": invariants(between.check_tan, information=Array("n n")),
    "augmented-parameters": invariants(class_probs=Probability("k", sums=0), table=Probability("* k")),
    "latent-class-fit": invariants(
        between.check_latent_class,
        theta_c=Probability("k", sums=0),
        theta=Array("lines k"),
        state_start=Array("n+1", "i", 0, same="starts"),
        arc_posterior=Probability("arcs"),
        class_counts=Array("k", low=0),
        counts=Array("lines k"),
        log_likelihood=Scalar(),
        score_path=Array("*"),
        weights=Probability("*"),
    ),
    "latent-class-starts": invariants(
        theta_c=Probability("s tried"),  # clusters that were asked for; all may have collapsed into one
        theta=Array("s lines tried"),
        arcs=Probability("s arcs"),
        log_likelihood=Array("s", empty=(NAN, NEGATIVE_INFINITY)),
        evidence_bound=Array("s", empty=(NAN, NEGATIVE_INFINITY)),
        n_iter=Array("s", "i", 0),
        converged=Array("s", "b"),
        paths=Each(Array("*", empty=(NAN, NEGATIVE_INFINITY)), "s"),
        collapsed=Array("s", "b"),
        finished=Array("s", "b"),
    ),
    "latent-class-numbers": invariants(centers=Array("n_numbers"), scales=Array("n_numbers", low=0)),
    "latent-class-uncertainty": invariants(
        size_error=Array("k", empty=(NAN,)),
        size_low=Array("k", empty=(NAN,)),
        size_high=Array("k", empty=(NAN,)),
        error=Array("profiled k", empty=(NAN,)),
        low=Array("profiled k", empty=(NAN,)),
        high=Array("profiled k", empty=(NAN,)),
    ),
    "forest-average": invariants(
        between.check_forest,
        cardinalities=Array("n", "i", 0, same="cards"),
        class_probability=Probability("k", sums=0),
        log_arcs=Log("n n 2"),
        log_roots=Log("n 2"),
        log_means=Array("k S S", high=0),
        log_singles=Array("k S", high=0, by_state=True, log=True),
        log_free_means=Array("S S", high=0),
        log_free_singles=Array("S", high=0, by_state=True, log=True),
        log_sum=Scalar(empty=True),
        arc_posterior=Probability("n n"),
        class_arc_posterior=Probability("n"),
    ),
    "family-table": invariants(
        between.check_family_table,
        cardinalities=Array("v", "i", 0, same="variable_cards"),
        candidates=Array("v m", "i", 0, below="v", empty=(-1,)),
        n_candidates=Array("v", "i", 0, below="v"),
        offsets=Array("v+1", "i", 0),
        log_marginal=Array("f"),
        log_prior=Log("f"),
    ),
    "family-lists": invariants(
        between.check_family_lists,
        cardinalities=Array("v", "i", 0, same="variable_cards"),
        max_indegree=Scalar(0, 64, whole=True),
        offsets=Array("v+1", "i", 0),
        sets=Array("f m", "i", 0, below="v", empty=(-1,)),
        log_marginal=Array("f"),
        log_prior=Array("f"),
    ),
    "order-chains": invariants(
        means=Probability("c v v"),
        r_hat=Array("v v", empty=(NAN, float("inf"))),
        effective_size=Array("v v", low=0, empty=(NAN, float("inf"))),
        betas=Probability("c t"),
        exchange_rates=Probability("c t-1", empty=(NAN,)),
    ),
    "order-gaps": invariants(
        between.check_missing_cells,
        codes=Array("r v", "i", -1, below="variable_cards"),
        weights=Array("r", low=0),
        filled=Array("* * *", "i", 0),
        spread=Array("v v", low=0, empty=(NAN,)),
    ),
    "order-training": invariants(
        codes=Array("r v", "i", 0, below="variable_cards"),
        weights=Array("r", low=0),
        **FAMILY_PRIOR,
    ),
    "order-counted-training": invariants(
        between.check_counted,
        width=Scalar(1, 64, whole=True),
        first_rows=Array("* v", "i", 0, below="variable_cards"),
        weights=Array("1", low=0),
        **FAMILY_PRIOR,
    ),
    "order-scores-only": invariants(cardinalities=Array("v", "i", 0, same="variable_cards")),
    "order-set-counts": invariants(keys=Array("q", "i", 0), starts=Array("q+1", "i", 0), counts=Array("*", low=0)),
    "structure-average": invariants(
        between.check_structure_average,
        states=Array("c s v", "i", 0, below="v"),
        log_scores=Log("c s"),
        acceptance=Probability("c", empty=(NAN,)),
        edges=Probability("v v"),
        log_evidence=Scalar(empty=True),
        best_parents=Each(Indices("v"), "v"),
    ),
    "kikuchi-fit": invariants(
        between.check_kikuchi,
        regions=Each(Indices("n")),
        weights=Array("*"),
        strength=Scalar(0),
    ),
    "kikuchi-tests": invariants(
        sets=Each(Indices("n"), "t"),
        **dict.fromkeys(("loss", "mean", "sd", "p", "z", "resampled", "taken"), Maybe(Long("t"))),
    ),
    "kikuchi-layout": invariants(
        between.check_layout,
        sets=Each(Indices("n"), "t"),
        columns=Array("t w", "i", 0, below="n", empty=(-1,)),
        cards=Array("t w", "i", 0),
        strides=Array("t w", "i", 0),
        offsets=Array("t+1", "i", 0),
        n_classes=Scalar(1, whole=True),
    ),
    "kikuchi-terms": invariants(
        between.check_terms,
        counts=Array("*"),
        totals=Array("*"),
        values=Array("*"),
        reduced=Maybe(Array("*")),
    ),
    "kikuchi-learned-weights": invariants(weights=Array("*")),
    "additive-fit": invariants(between.check_additive),
    "additive-terms": invariants(
        between.check_additive_terms,
        columns=Array("c", "i", 0, below="n"),
        numbers=Array("d", "i", 0, below="numbers"),
        numeric=Array("c", "b"),
        shares=Probability("k", sums=0),
        cut_posteriors=Each(Probability("*"), "c"),
        scale=Array("2 d"),
        indicated=Indices("c"),
        sets=Each(Indices("c")),
        pairs=Each(Indices("c", 2)),
        cells=Each(Indices("c", 2)),
    ),
    "additive-term-weights": invariants(sets=Array("*"), densities=Array("*"), slopes=Array("* k")),
    "additive-gaussian-terms": invariants(
        between.check_gaussian,
        masses=Array("k", low=1e-12),
        means=Array("k d"),
        scatters=Array("k d d"),
        pooled=Array("d d"),
    ),
    "additive-trees": invariants(splits=Array("t e 2", "i", 0), leaves=Array("t * k")),
    "additive-forest": invariants(
        between.check_additive_forest,
        numbers=Array("d", "i", 0, below="n"),
        edges=Each(Rising(), "d"),
        columns=Array("m", "i", 0, below="n"),
        masks=Array("m", "i", 0),
        children=Array("m", "i"),
        leaves=Probability("l k", sums=1),
        roots=Array("t", "i", 0, below="m"),
        shares=Probability("k", sums=0),
        weight=Scalar(0),
    ),
    "kikuchi-cuts": invariants(names=Long("q"), edges=Each(Rising(), "q")),
}
# what any estimator keeps, under any class
ATTRIBUTES: dict[str, Callable] = {
    "class_probability_": Probability("k", sums=0),
    "labels_": Array("*", "i", 0, below="k"),
    "score_path_": Array("*"),
    "_state_columns": Array("*", "i", 0, below="n"),
    "_middles": Each(Array("*")),
    "_bin_shares": Each(Probability("*")),
    "feature_importances_": Array("n", low=0),
}


def check_record(key, record, scope):
    """Raise `Damaged` unless the fields of a record fit each other, and those of the records inside it."""
    check, rules = RECORDS.get(key, (None, {}))
    for name, value in record._asdict().items() if hasattr(record, "_asdict") else ():
        if name in rules:
            rules[name](name, value, scope)
        else:
            check_value(value, scope)
    if check is not None:
        check(record, scope)


def check_value(value, scope):
    """`check_record` of every record inside a value."""
    if (key := record_key(type(value))) is not None:
        check_record(key, value, scope.inner())
    elif isinstance(value, (list, tuple)):
        for item in value:
            check_value(item, scope)


def record_key(kind):
    """The key of a class in saved files, None if it has none."""
    return _KEYS.get((kind.__module__.removeprefix("pgm_bma."), kind.__qualname__))


def check_estimator(estimator):
    """Raise `Damaged` unless everything that was learned fits the schema and each other."""
    state = vars(estimator)
    if "cut_points_" in state:
        _check_discretizer(state)
    if "schema_" not in state:
        return
    scope = _scope(state)
    _check_columns(state, scope)
    for name, value in state.items():
        if name in ATTRIBUTES:
            ATTRIBUTES[name](name, value, scope)
        elif name.endswith("_") or name.startswith("_"):
            check_value(value, scope)
    if "_parents" in state:
        _check_structure(state, scope)


def _scope(state):
    schema = state["schema_"]
    want(record_key(type(schema)) == "schema", "schema_", "is no schema")
    between.check_schema(schema, None)
    cards = schema.cardinalities.copy()
    scope = Scope(n=len(cards), S=int(cards.sum()), cards=cards)
    if "target_states_" in state:
        scope["k"] = len(state["target_states_"])
    elif "n_clusters_" in state:
        Scalar(1, whole=True)("n_clusters_", state["n_clusters_"], scope)
        scope["k"] = int(state["n_clusters_"])
    if "_variables" in state:
        between.check_schema(state["_variables"], None)
        scope["variable_cards"] = state["_variables"].cardinalities
        scope["v"] = len(scope["variable_cards"])
    cuts = state.get("_cuts")
    # numeric columns of clusters: three lines of a table each, after those of the states
    numbers = getattr(state.get("_numbers"), "names", ())
    scope["n_numbers"], scope["arcs"], scope["lines"] = (
        len(numbers),
        scope["n"] + len(numbers),
        scope["S"] + 3 * len(numbers),
    )
    scope["profiled"] = scope["S"] + 2 * len(numbers)  # their means and standard deviations
    scope["numbers"] = 0 if cuts is None else len(cuts.names)
    if isinstance(state.get("_state_columns"), np.ndarray) and len(columns := state["_state_columns"]):
        Array("*", "i", 0, below="n")("_state_columns", columns, scope)
        cards[columns] += 1  # being missing is a state of theirs
    scope["starts"] = state_offsets(cards)
    return scope


def _check_columns(state, scope):
    """Names, classes and cut points against the schema."""
    schema = state["schema_"]
    names = schema.names if not scope["n_numbers"] else tuple(state["_numbers"].order)
    want(state.get("n_features_in_") == len(names) == scope["arcs"], "n_features_in_", "does not fit the schema")
    if "feature_names_in_" in state:
        want(tuple(state["feature_names_in_"]) == names, "feature_names_in_", "does not fit the schema")
    if "classes_" in state:
        want(np.shape(state["classes_"]) == (scope["k"],), "classes_", "does not fit the states of the target")
    cuts: Any = state.get("_cuts")
    for name, edges in () if cuts is None else zip(cuts.names, cuts.edges):
        want(name in schema.names, "_cuts", f"speaks of {name!r:.60}, which is not a column")
        want(
            len(schema.states[schema.index(name)]) == len(edges) + 1,
            "_cuts",
            f"does not fit the bins of {name!r:.60}",
        )


def _check_structure(state, scope):
    """Structural EM: arrays of augmented naive Bayes, or the families of a general network."""
    parents, parameters = state["_parents"], state["_parameters"]
    if isinstance(parents, np.ndarray):
        want(record_key(type(parameters)) == "augmented-parameters", "_parameters", "does not fit the structure")
        between.want_augmented(parents, parameters, scope)
        return
    between.want_families(parents, parameters, [scope["k"], *map(int, scope["cards"])], scope)


def _check_discretizer(state):
    cuts, labels = state["cut_points_"], state["bin_labels_"]
    want(
        isinstance(cuts, dict) and isinstance(labels, dict) and list(cuts) == list(labels),
        "bin_labels_",
        "has other columns",
    )
    for name, edges in cuts.items():
        Rising()("cut_points_", edges, None)
        want(len(labels[name]) == len(edges) + 1, "bin_labels_", f"does not fit the bins of {name!r:.60}")
