"""Rows of a scan that do not collapse: one pass finds the states, further passes read codes block by block."""

import numpy as np

from pgm_bma.foundation.numbers.counts import state_offsets
from pgm_bma.foundation.rows.blocks import Block, ClusterRows, Profile, Rows, StreamedRows, cut_blocks, n_blocks
from pgm_bma.foundation.rows.pieces import row_weights
from pgm_bma.foundation.rows.texts import texts_like
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.columns import (
    check_states,
    is_missing,
    order_states,
    plain,
    refuse_floats,
    smallest_dtype,
    unseen,
)

# of a column whose rows are visited in passes: more is a key, and its tables would be larger than the rows
MAX_STATES = 100_000
_STRANGE = -2  # code of a value that no state is


def scanned_rows(scan, declared=None, weight=None):
    """The `Rows` of a scan: streamed from files, or on the workers that hold the partitions of a dask DataFrame.

    declared : dict column -> states, optional     weight : column that holds the weight of every row, optional
    """
    engine = scan._rows
    scan.check_weight(weight)
    names = [name for name in scan.names if name != weight]
    profile = find_profile(engine, names, declared or {}, weight)
    coder = Coder(profile.schema, engine.texts, weight)
    wanted = names if weight is None else [*names, weight]
    rows: Rows
    if hasattr(engine, "shards"):
        sizes = [n_blocks(n_rows) for n_rows in engine.part_rows]
        rows = ClusterRows(profile, engine.shards(code_blocks, coder, wanted), sizes)
    else:
        rows = StreamedRows(profile, lambda: _read(engine, coder, wanted))
    if weight is not None:
        n_rows, total, counts = rows.reduce(weighed, profile.schema.cardinalities)
        Rows.__init__(rows, profile._replace(n_rows=int(n_rows), total_weight=float(total), state_counts=counts))
    return rows


def _read(engine, coder, names):
    for part in range(len(engine.parts)):
        yield from code_blocks(engine.batches(part, names), coder)


def find_profile(engine, names, declared, weight=None):
    """Pass 1: states, counts and missing cells of every column, over the rows of positive weight."""
    found = engine.profile(names, weight, MAX_STATES)
    n_rows = found[0][2]
    if n_rows == 0:
        positive = "" if weight is None else f" whose sample_weight={weight!r} is a positive number"
        raise ValueError(f"the scan has no rows{positive}")
    categories = engine.categories([name for name in names if name not in declared])
    states, counts, has_missing = [], [], []
    for name, (values, occurrences, _) in zip(names, found):
        if len(values) > MAX_STATES:
            raise ValueError(
                f"column {name!r} has more than {MAX_STATES} different values, too many for a variable; leave it out if it is a "
                f"key: scan.drop({name!r})"
            )
        count: dict = {}
        for value, occurs in zip(map(plain, engine.typed(list(values))), occurrences):
            if not is_missing(value):
                count[value] = count.get(value, 0) + int(occurs)
        floats = [value for value in count if isinstance(value, float)]
        if floats:
            refuse_floats(name, floats, sum(count.values()) < n_rows, name in declared)
        known = check_states(name, declared[name]) if name in declared else categories.get(name)
        known = order_states(count) if known is None else known
        strange = [value for value in count if value not in set(known)]
        if strange:
            raise unseen(name, strange[0], "undeclared")
        if not known:  # as in memory: a column that holds nothing has one state, which is always there
            known, count = [table.NO_VALUE], {table.NO_VALUE: n_rows}
        states.append(tuple(known))
        counts += [float(count.get(state, 0)) for state in known]
        has_missing.append(sum(count.values()) < n_rows)
    nothing = {name for name, (values, *_) in zip(names, found) if all(map(is_missing, values))}
    table.warn_of_idle(names, states, nothing, declared)
    schema = table.Schema(tuple(names), tuple(states))
    return Profile(schema, n_rows, float(n_rows), np.array(counts), np.array(has_missing))


class Coder:
    """Turns (values, codes into them) of every column into codes of the schema, in the smallest dtype.

    schema : Schema     texts : texts that mean missing where cells are texts, else None
    weight : name of the column of weights, which comes last, optional
    """

    def __init__(self, schema, texts, weight):
        self.schema, self.texts, self.weight = schema, texts, weight
        self.positions = [{state: code for code, state in enumerate(states)} for states in schema.states]
        self.dtype = smallest_dtype(int(schema.cardinalities.max()))

    def block(self, columns, n_rows):
        """A Block of one batch; rows of weight 0 are absent."""
        codes, strange = np.empty((n_rows, len(self.positions)), dtype=self.dtype, order="F"), {}
        for i, (position, (values, raw)) in enumerate(zip(self.positions, columns)):
            values = texts_like(values, self.schema.states[i], self.texts)
            look_up = [-1 if is_missing(value) else position.get(plain(value), _STRANGE) for value in values]
            codes[:, i] = np.array([*look_up, -1], dtype=self.dtype)[raw]
            if table.NO_VALUE in position and len(position) == 1:
                codes[:, i] = 0
            elif _STRANGE in look_up:
                strange[i] = values[look_up.index(_STRANGE)]
        block = Block(codes, None)
        if self.weight is not None:
            values, raw = columns[-1]
            weights = row_weights(self.weight, texts_like(values, (0.0,), self.texts), raw)
            block = Block(codes[weights > 0], weights[weights > 0])
        for i, value in strange.items():  # categories that no row has, and rows of weight 0, may hold anything
            if (block.codes[:, i] == _STRANGE).any():
                raise ValueError(
                    f"column {self.schema.names[i]!r} holds {value!r:.60}, which the first pass over the rows did not find: they "
                    f"were changed meanwhile, or {type(value).__name__} is a type that its engine reads otherwise (write texts)"
                )
        return block


def code_blocks(batches, coder):
    """Blocks of the batches of one part."""
    return cut_blocks(coder.block(columns, n_rows) for columns, n_rows in batches)


def weighed(block, cardinalities):
    """(rows, weight, weighted counts of all states) of one block."""
    offsets = state_offsets(cardinalities)
    counts = np.zeros(offsets[-1])
    for i, first in enumerate(offsets[:-1]):
        seen = block.codes[:, i] >= 0
        counts[first : offsets[i + 1]] += np.bincount(
            block.codes[seen, i], block.weights[seen], minlength=cardinalities[i]
        )
    return len(block.codes), block.weights.sum(), counts
