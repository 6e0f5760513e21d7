"""Rows of a scan that do not collapse: one pass finds the states, further passes read codes block by block.

The smallest table with given counts of every column under every class: all that the naive Bayes family sees of its rows.

Columns are independent given the class there, so any table with the same counts of class and column is as good as the rows. Under
a class, every column's states are laid one after another over the rows of that class; between two cuts of any column all rows are
equal, and become one row with their number as its weight. That leaves at most one row per class and state of any column.
"""

import numpy as np
import pandas as pd

from pgm_bma.foundation.numbers.families import state_offsets
from pgm_bma.foundation.rows.blocks import Block, ClusterRows, Profile, Rows, StreamedRows, cut_blocks, n_blocks
from pgm_bma.foundation.rows.pieces import row_weights, texts_like
from pgm_bma.foundation.rows.scan import FoldedScan
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
from pgm_bma.foundation.tables.kinds import LARGEST

# of a column whose rows are visited in passes: more is a key, and its tables would be larger than the rows
MAX_STATES = 100_000
_STRANGE = -2  # code of a value that no state is


def scanned_rows(scan, declared=None, weight=None, numbers=()):
    """The `Rows` of a scan: streamed from files, or on the workers that hold the partitions of a dask DataFrame.

    declared : dict column -> states, optional     weight : column that holds the weight of every row, optional
    numbers : numeric columns, which have no states; `standardised_rows` brings them to a mean of 0 and a deviation of 1
    """
    engine = scan._rows
    scan.check_weight(weight)
    names = [name for name in scan.names if name != weight and name not in set(numbers)]
    profile = find_profile(engine, names, declared or {}, weight)
    coder = Coder(profile.schema, engine.texts, weight, list(numbers))
    wanted = [*names, *numbers, *([] if weight is None else [weight])]
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


def standardised_rows(rows):
    """(the same rows with their numbers standardised, means, standard deviations), by two passes over them.

    A column of one value, or of none, has deviation 1.
    """
    (sums,) = rows.reduce(sums_of_numbers, 0.0)
    n = np.where(sums[0] > 0, sums[0], 1.0)
    (centred,) = rows.reduce(sums_of_numbers, sums[1] / n)
    centers = sums[1] / n + centred[1] / n  # the first sum was rounded
    variances = np.maximum(centred[2] / n - (centred[1] / n) ** 2, 0.0)
    is_flat = np.sqrt(variances) <= 1e-12 * np.abs(centers)
    scales = np.where(is_flat, 1.0, np.sqrt(variances))
    squares = np.where(is_flat, 0.0, sums[0])
    profile = rows.profile._replace(
        number_sums=np.stack([sums[0], np.zeros_like(n), squares], axis=1), log_scale=np.log(scales)
    )
    return rows.viewed(standardise, centers, scales, profile=profile), centers, scales


def sums_of_numbers(block, centers):
    """((3, n_numbers) weights, sums and sums of squares of the numbers of a block, less the centers)."""
    seen, values = ~np.isnan(block.numbers), np.nan_to_num(block.numbers - centers)
    weights = np.ones(len(values)) if block.weights is None else block.weights
    return (np.stack([weights @ seen, weights @ values, weights @ values**2]),)


def standardise(block, centers, scales):
    """The block with its numbers less the centers, divided by the scales."""
    return block._replace(numbers=(block.numbers - centers) / scales)


def _read(engine, coder, names):
    for part in range(len(engine.parts)):
        yield from code_blocks(engine.batches(part, names), coder)


def find_profile(engine, names, declared, weight=None):
    """Pass 1: states, counts and missing cells of every column, over the rows of positive weight."""
    found = engine.profile(names, weight, MAX_STATES)
    n_rows = found[0][2] if names else engine.count(weight)
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
    return Profile(schema, n_rows, float(n_rows), np.array(counts), np.array(has_missing, dtype=bool))


class Coder:
    """Turns (values, codes into them) of every column into codes of the schema, in the smallest dtype.

    schema : Schema     texts : texts that mean missing where cells are texts, else None
    weight : name of the column of weights, which comes last, optional
    numbers : names of numeric columns, which come after those of the schema
    """

    def __init__(self, schema, texts, weight, numbers=()):
        self.schema, self.texts, self.weight, self.numbers = schema, texts, weight, numbers
        self.positions = [{state: code for code, state in enumerate(states)} for states in schema.states]
        self.dtype = smallest_dtype(int(schema.cardinalities.max(initial=1)))

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
        measured = columns[len(self.positions) : len(self.positions) + len(self.numbers)]
        numbers = [
            finite(name, texts_like(values, (0.0,), self.texts), raw)
            for name, (values, raw) in zip(self.numbers, measured)
        ]
        block = Block(codes, None, np.stack(numbers, axis=1) if numbers else None)
        if self.weight is not None:
            values, raw = columns[-1]
            weights = row_weights(self.weight, texts_like(values, (0.0,), self.texts), raw)
            kept = weights > 0
            block = Block(codes[kept], weights[kept], None if block.numbers is None else block.numbers[kept])
        for i, value in strange.items():  # categories that no row has, and rows of weight 0, may hold anything
            if (block.codes[:, i] == _STRANGE).any():
                raise ValueError(
                    f"column {self.schema.names[i]!r} holds {value!r:.60}, which the first pass over the rows did not find: they "
                    f"were changed meanwhile, or {type(value).__name__} is a type that its engine reads otherwise (write texts)"
                )
        return block


def finite(name, values, raw):
    """Floats of a numeric column from (values, codes into them), NaN where a cell is missing; what is not a number is an error."""
    found = as_numbers(values)
    for position in np.flatnonzero(~(np.abs(found[:-1]) <= LARGEST)):
        if not is_missing(values[position]):
            raise ValueError(
                f"column {name!r} is numeric and holds {values[position]!r:.60}, which is not a number below {LARGEST:g}; "
                "write it as missing, or name the column in categorical_columns"
            )
    return found[raw]


def as_numbers(values):
    """Floats, NaN for what is none, and one more NaN for missing cells, which have the code -1."""
    return np.append(pd.to_numeric(pd.Series(values, dtype=object), errors="coerce").to_numpy(dtype=float), np.nan)


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


def margin_table(scan, target, declared=None, weight=None):
    """`FoldedScan` rows with the same counts of every column of the scan under every value of the column `target`."""
    rows = scanned_rows(scan, declared, weight)
    schema, cardinalities = rows.schema, rows.schema.cardinalities
    position = schema.index(target)
    # one more slot for missing cells, of the target too
    (counts,) = rows.reduce(count_block, position, cardinalities)
    columns, weights = [], []
    for by_column in counts:
        codes, sizes = lay_out(np.split(by_column, state_offsets(cardinalities + 1)[1:-1]))
        columns.append(codes)
        weights.append(sizes)
    codes = np.concatenate(columns)
    frame = pd.DataFrame(
        {
            name: pd.Categorical.from_codes(codes[:, i], categories=pd.Index(states, dtype=object))
            for i, (name, states) in enumerate(zip(schema.names, schema.states))
        }
    )
    return FoldedScan(frame, np.concatenate(weights), rows.n_rows)


def count_block(block, target, cardinalities):
    """(counts (n_classes + 1, sum of cardinalities + n_columns),) of a block, missing cells in the last slot of each."""
    slots = cardinalities + 1
    offsets = state_offsets(slots)
    n_classes = slots[target]
    classes = np.where(block.codes[:, target] < 0, n_classes - 1, block.codes[:, target]).astype(np.int64)
    counts = np.zeros((n_classes, offsets[-1]))
    for i, (first, n) in enumerate(zip(offsets, slots)):
        cell = classes * n + np.where(block.codes[:, i] < 0, n - 1, block.codes[:, i])
        counts[:, first : first + n] = np.bincount(cell, block.weights, minlength=n_classes * n).reshape(n_classes, n)
    return (counts,)


def lay_out(counts):
    """(codes (n_rows, n_columns), weights) of the smallest table whose columns have these counts, missing in the last slot."""
    ends = [np.cumsum(column) for column in counts]
    cuts = np.unique(np.concatenate([[0.0], *ends]))
    cuts = cuts[cuts <= ends[0][-1]]  # sums of fractions differ in their last digit
    starts = cuts[:-1]
    codes = [np.searchsorted(end, starts, side="right") for end in ends]
    codes = [np.where(code >= len(end) - 1, -1, code) for code, end in zip(codes, ends)]
    return np.stack(codes, axis=1), np.diff(cuts)
