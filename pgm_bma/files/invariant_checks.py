"""Invariants between the fields of a record in a saved file: one function per record, named in `pgm_bma.files.invariants`."""

from math import comb, prod

import numpy as np

from pgm_bma.files.invariant_rules import (
    NEGATIVE_INFINITY,
    Array,
    Probability,
    want,
    want_acyclic,
    want_indices,
    want_tables,
)
from pgm_bma.foundation.numbers.families import state_offsets

_SUM = 1e-6  # what rounding may leave
_FOREST_BINS = 62  # most bins or states of a column in the forest of the additive model
_PAIR_BINS = 16  # most bins of a numeric column in a pair of the additive model


# ------------------------------------------------------------------------------------- probabilities of single columns


def _family_sizes(parents, cards):
    return [(1 if p < 0 else int(cards[p]), int(card)) for p, card in zip(parents, cards)]


def want_augmented(parents, parameters, scope):
    """The structure and the table of augmented naive Bayes."""
    Array("n", "i", 0, below="n", empty=(-1,))("parents", parents, scope)
    want_acyclic("parents", [() if p < 0 else (int(p),) for p in parents])
    sizes = _family_sizes(parents, scope["cards"])
    want(len(parameters.table) == sum(rows * states for rows, states in sizes), "table", "does not fit the parents")
    want_tables("table", parameters.table, sizes)


def check_tan(fit, scope):
    want_augmented(fit.parents, fit.parameters, scope)
    sizes = _family_sizes(fit.parents, scope["cards"])
    want(len(fit.tables) == scope["n"], "tables", "has not one entry per column")
    for table, (rows, states) in zip(fit.tables, sizes):
        Probability(f"k {rows} {states}", sums=2 if states else None)("tables", table, scope)


def want_families(parents, tables, cards, scope):
    """The structure and the tables of a network, by nodes that have `cards` states."""
    want(isinstance(parents, (tuple, list)) and len(parents) == len(tables) == len(cards), "parents", "has other nodes")
    for above, table, card in zip(parents, tables, cards):
        want_indices("parents", above, len(cards))
        Probability(f"{prod(cards[p] for p in above)} {card}", sums=1)("tables", table, scope)
    want_acyclic("parents", parents)


def check_network(network, scope):
    n = len(network.names)
    want(len(network.states) == n, "network", "has parts of other sizes")
    want_families(network.parents, network.cpts, [len(states) for states in network.states], scope)


# -------------------------------------------------------------------------------------------------- clusters, forests


def check_latent_class(fit, scope):
    states = fit.theta[: scope["S"]]
    want(bool(((states >= 0) & (states <= 1 + 1e-9)).all()), "theta", "holds no probabilities")
    want_tables("theta", states, [(1, int(card)) for card in scope["cards"]])
    want(bool((fit.counts[: scope["S"]] >= -1e-9).all()), "counts", "holds counts below 0")
    want(type(fit.best) is int and 0 <= fit.best < len(fit.weights), "best", f"is {fit.best!r}")


def check_forest(average, scope):
    want((average.log_roots > NEGATIVE_INFINITY).any(axis=1).all(), "log_roots", "gives a column no weight")


# ---------------------------------------------------------------------------------------------------------- orders


def check_family_lists(lists, scope):
    offsets = lists.offsets
    rises = offsets[0] == 0 and offsets[-1] == len(lists.sets) and (np.diff(offsets) > 0).all()
    want(rises, "offsets", "does not rise from 0 to the number of families")
    sets, children = lists.sets, np.repeat(np.arange(scope["v"]), np.diff(lists.offsets))
    want(not (sets == children[:, None]).any(), "sets", "makes a variable its own parent")
    left, right = sets[:, :-1], sets[:, 1:]
    want(((right == -1) | ((left >= 0) & (left < right))).all(), "sets", "does not rise")


def check_family_table(table, scope):
    want(
        type(table.max_indegree) is int and 0 <= table.max_indegree < max(scope["v"], 1), "max_indegree", "is too large"
    )
    sizes = [sum(comb(int(c), size) for size in range(table.max_indegree + 1)) for c in table.n_candidates]
    want(np.array_equal(table.offsets, state_offsets(sizes)), "offsets", "does not fit the candidates")
    want(len(table.log_marginal) == table.offsets[-1], "log_marginal", "does not fit the offsets")
    for child, (some, count) in enumerate(zip(table.candidates, table.n_candidates)):
        used = some[:count]
        good = (used >= 0).all() and (np.diff(used) > 0).all() and (some[count:] == -1).all() and child not in used
        want(good, "candidates", f"of variable {child} do not rise")


def check_counted(training, scope):
    keys, starts, counts = training.sets
    v, width = scope["v"], training.width
    want(0 < width <= v and (v + 1.0) ** width < 2**62, "width", f"is {width}")
    want((keys >= 0).all() and (keys < (v + 1) ** width).all() and (np.diff(keys) > 0).all(), "keys", "do not rise")
    sizes, rest = np.ones(len(keys), dtype=np.int64), keys.copy()
    for _ in range(width):
        rest, member = np.divmod(rest, v + 1)
        sizes *= np.append(1, scope["variable_cards"])[member]
    want(np.array_equal(starts, state_offsets(sizes)), "starts", "does not fit the sets")
    want(len(counts) == starts[-1], "counts", "does not fit the sets")


def check_missing_cells(cells, scope):
    column = np.nonzero(cells.codes < 0)[1]
    want(cells.filled.shape[2] == len(column), "filled", "has not one value per missing cell")
    want(((cells.filled >= 0) & (cells.filled < scope["variable_cards"][column])).all(), "filled", "is out of range")


def check_structure_average(average, scope):
    v, states = scope["v"], average.states
    want(average.weighting in ("order", "dag"), "weighting", f"is {average.weighting!r:.40}")
    ordered = average.weighting == "dag" or (np.sort(states, axis=2) == np.arange(v)).all()
    want(ordered, "states", "holds what is no order")
    want_acyclic("best_parents", average.best_parents)
    if average.gaps is not None:
        want(average.gaps.filled.shape[:2] == states.shape[:2], "filled", "has not one table per state")
    if hasattr(average.training, "find"):
        _all_counted(average)
    if average.weighting == "order":
        _all_orders_possible(average, v)


def _all_counted(average):
    """Counts in passes must be there for every family of the lists."""
    table, training = average.table, average.training
    if hasattr(table, "sets"):
        children = np.repeat(np.arange(len(table.cardinalities)), np.diff(table.offsets))
        everyone = np.column_stack([table.sets, children]).astype(np.int64)
        want(
            (everyone >= 0).sum(axis=1).max(initial=0) <= training.width,
            "width",
            "is smaller than a family of the table",
        )
        at = training.find(children, table.sets.astype(np.int64))
        size = np.append(table.cardinalities, 1)[everyone].prod(axis=1)
        found = at < len(training.sets.keys)
        want(found.all() and (np.diff(training.sets.starts)[at] == size).all(), "keys", "lacks a family of the table")


def _all_orders_possible(average, v):
    """Every variable needs a family above it in every order kept; the empty one usually is among them."""
    table = average.table
    if not hasattr(table, "sets") or average.states.size == 0:
        return
    orders = average.states.reshape(-1, v)
    places = np.append(np.argsort(orders, axis=1), np.full((len(orders), 1), -1), axis=1)
    for child in range(v):
        sets = table.sets[table.offsets[child] : table.offsets[child + 1]]
        if (sets < 0).all(axis=1).any():
            continue
        good = np.zeros(len(orders), dtype=bool)
        for members in sets:
            good |= (places[:, members] < places[:, [child]]).all(axis=1)
        want(good.all(), "sets", f"leaves variable {child} without a family in an order")


# ---------------------------------------------------------------------------------------------- regions, additive terms


def check_layout(layout, scope):
    sets, width = layout.sets, layout.columns.shape[1]
    want(isinstance(sets, tuple) and layout.n_classes in (1, scope["k"]), "n_classes", f"is {layout.n_classes!r}")
    columns, cards = np.full(layout.columns.shape, -1), np.ones(layout.columns.shape, dtype=np.int64)
    for t, members in enumerate(sets):
        want(len(members) <= width, "columns", "is too narrow")
        columns[t, : len(members)] = members
        cards[t, : len(members)] = scope["cards"][list(members)]
    strides = np.cumprod(np.append(cards[:, 1:], np.ones((len(cards), 1), dtype=np.int64), axis=1)[:, ::-1], axis=1)
    for name, wanted in (("columns", columns), ("cards", cards), ("strides", strides[:, ::-1])):
        want(np.array_equal(getattr(layout, name), wanted), name, "does not fit the sets")
    want(
        np.array_equal(layout.offsets, state_offsets(cards.prod(axis=1) * layout.n_classes)),
        "offsets",
        "does not fit the sets",
    )


def check_terms(terms, scope):
    want(len(terms.totals) == len(terms.layout.sets), "totals", "has not one entry per set")
    for name in ("counts", "values", "reduced"):
        value = getattr(terms, name)
        want(value is None or len(value) == terms.layout.offsets[-1], name, "does not fit the layout")


def check_kikuchi(fit, scope):
    want(fit.terms.layout.n_classes == scope["k"], "n_classes", f"is {fit.terms.layout.n_classes!r}")
    want(len(fit.weights) == len(fit.terms.layout.sets), "weights", "has not one entry per set")


def _coarse(size, numeric):
    """Bins of a numeric column in the table of a pair: `additive.choice.coarse`."""
    if not numeric or size <= _PAIR_BINS:
        return size
    return (size - 1) // -(-size // _PAIR_BINS) + 1


def check_additive_terms(terms, scope):
    want((np.diff(terms.columns) > 0).all(), "columns", "does not rise")
    n = scope["c"]
    bins = [int(scope["cards"][j]) for j in terms.columns]
    want(isinstance(terms.singles, list) and len(terms.singles) == n, "singles", "has not one table per column")
    want(
        isinstance(terms.numeric, np.ndarray) and terms.numeric.sum() == len(terms.numbers),
        "numbers",
        "does not fit numeric",
    )
    for size, table in zip(bins, terms.singles):
        Array(f"{size} k")("singles", table, scope)
    want((terms.shares > 0).all(), "shares", "holds a zero")
    want((terms.scale[1] > 0).all(), "scale", "holds a spread that is not positive")
    for item in terms.levels:
        want(isinstance(item, tuple) and len(item) == 2, "levels", "holds no pair")
        want_indices("levels", item[:1], n)
        Array(str(bins[item[0]]))("levels", item[1], scope)
    want(len(terms.tables) == len(terms.pairs), "tables", "has not one table per pair")
    for (i, j), table in zip(terms.pairs, terms.tables):
        sizes = [_coarse(bins[a], terms.numeric[a]) for a in (i, j)]
        Array(f"{sizes[0]} {sizes[1]} k")("tables", table, scope)
    want(len(terms.sets) == len(terms.kinds) == 1 + n + len(terms.pairs), "sets", "does not fit the terms")
    if terms.gaussian is not None:
        want(len(terms.gaussian.knots) == len(terms.numbers), "knots", "has not one entry per numeric column")


def check_gaussian(terms, scope):
    d = scope["d"]
    for distinct, scores in terms.knots:
        Array("q")("knots", distinct, inner := scope.inner())
        Array("q")("knots", scores, inner)
        want(len(distinct) > 0 and (np.diff(distinct) > 0).all(), "knots", "does not rise")
    for nu in (d + 3.0, 4.0 * (d + 3), 1e6):
        for scatter in terms.scatters:
            np.linalg.cholesky((nu - d - 1) * terms.pooled + scatter)  # an error unless it is positive definite
    for matrix in (terms.pooled, *terms.scatters):
        want(
            np.abs(matrix - matrix.T).max(initial=0) <= _SUM * np.abs(matrix).max(initial=0),
            "scatters",
            "is not symmetric",
        )


def check_additive(fit, scope):
    terms, weights = fit.terms, fit.weights
    bins = [len(single) for single in terms.singles]
    linear = (terms.scale.shape[1] if terms.linear else 0) + len(terms.levels)
    states = sum(bins[j] for j in terms.indicated) + sum(bins[i] * bins[j] for i, j in terms.cells)
    design = int(bool(terms.linear or terms.indicated)) + linear + states
    want(len(weights.sets) == len(terms.sets), "sets", "has not one weight per term")
    want(len(weights.densities) == (0 if terms.gaussian is None else 3), "densities", "does not fit the terms")
    want(len(weights.slopes) == design, "slopes", "does not fit the terms")
    if fit.trees is not None:
        splits, leaves = fit.trees
        want(leaves.shape[1] == 2 ** splits.shape[1], "leaves", "does not fit splits")
        want((splits[:, :, 0] < len(bins)).all(), "splits", "names a column that has no terms")


def check_additive_forest(forest, scope):
    numbers, children = scope["numbers"], forest.children
    want(len(forest.numbers) == numbers and len(forest.roots) > 0, "forest", "does not fit the columns")
    want(all(len(edge) < _FOREST_BINS for edge in forest.edges), "edges", "has too many bins")
    inner = np.flatnonzero(children >= 0)
    want((children[inner] > inner).all() and (children[inner] < scope["m"] - 1).all(), "children", "leads astray")
    want((-1 - children[children < 0] < scope["l"]).all(), "children", "names no leaf")
    sizes = scope["cards"].copy()
    sizes[forest.numbers] = 1
    want((sizes[forest.columns[inner]] <= _FOREST_BINS).all(), "columns", "names a column of too many states")


def check_schema(schema, scope):
    good = (
        isinstance(schema.names, tuple) and isinstance(schema.states, tuple) and len(schema.names) == len(schema.states)
    )
    want(good and len(set(schema.names)) == len(schema.names), "schema", "does not name every column once")
    for states in schema.states:
        want(isinstance(states, tuple) and len(set(states)) == len(states), "schema", "has a state twice")
