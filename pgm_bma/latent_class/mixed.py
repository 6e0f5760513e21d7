"""Tables of states and numbers: rows that hold codes first and numbers after them.

An encoded row of such a table is a line of floats: the codes of the columns of states (-1 = missing), then the numbers as they
were given (NaN = missing). Without numeric columns it is a line of codes, as everywhere else. Numbers are standardised where the
model sees them, so that the prior means the same whatever their units are.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from pgm_bma.foundation.faces.validation import brief
from pgm_bma.foundation.rows.blocks import table_rows
from pgm_bma.foundation.rows.pieces import folded_frame
from pgm_bma.foundation.rows.scan import SAMPLE_ROWS
from pgm_bma.foundation.runtime.messages import warn
from pgm_bma.foundation.tables import table
from pgm_bma.foundation.tables.kinds import MOST_STATES, check_size, numbers
from pgm_bma.latent_class._column_kernels import NormalPrior, log_evidence

MIN_SPIKE = 10  # rows of a cluster; fewer may share a value by chance


class NumberColumns(NamedTuple):
    """Numeric columns of a fit: their names, weighted means and standard deviations, and the names of all columns of the table."""

    names: tuple
    centers: np.ndarray
    scales: np.ndarray
    order: tuple

    def standardised(self, values):
        """(n_rows, n_numbers) with mean 0 and standard deviation 1 in the rows of fit."""
        return (values - self.centers) / self.scales


def standardisation(values, weights):
    """Weighted (means, standard deviations) over the cells that are there; a column of one value, or none, has deviation 1."""
    seen = ~np.isnan(values)
    shares = np.where(seen, weights[:, None], 0.0)
    totals = shares.sum(axis=0)
    shares = shares / np.where(totals > 0, totals, 1.0)
    rough = (shares * np.where(seen, values, 0.0)).sum(axis=0)
    centers = rough + (shares * np.where(seen, values - rough, 0.0)).sum(axis=0)  # the first sum was rounded
    scales = np.sqrt((shares * np.where(seen, values - centers, 0.0) ** 2).sum(axis=0))
    is_flat = scales <= 1e-12 * np.abs(centers)
    return centers, np.where(is_flat, 1.0, scales)


def read_numbers(frame, names, handle_unknown):
    """(n_rows, n_numbers) floats, NaN = missing; a text that is not a number is an error, or missing with a warning."""
    columns = []
    for name in names:
        values = numbers(frame[name])
        strange = np.isnan(values) & ~frame[name].isna().to_numpy()
        if strange.any():
            value = frame[name].iloc[int(np.argmax(strange))]
            if handle_unknown == "error":
                raise ValueError(
                    f"column {name!r} is numeric and holds {brief(value)}, which is not a number; set it to NaN if it is missing, "
                    f"or name the column in categorical_columns"
                )
            warn(f"numeric column {name!r} holds {int(strange.sum())} texts such as {brief(value)}: taken as missing")
        check_size(name, values)
        columns.append(values)
    return np.column_stack(columns)


def split_rows(encoded, n_states):
    """(codes, numbers) of encoded rows whose first `n_states` columns are codes."""
    return np.asfortranarray(np.nan_to_num(encoded[:, :n_states], nan=-1.0).astype(np.int64)), encoded[:, n_states:]


def fold_rows(encoded, n_states, weights):
    """As `table.fold`; numbers are folded by their ranks."""
    distinct, ranks = zip(*(np.unique(column, return_inverse=True) for column in encoded[:, n_states:].T))
    joined = np.column_stack([encoded[:, :n_states].astype(np.int64), *ranks])
    rows, weights, inverse = table.fold(joined, weights)
    back = [values[rows[:, n_states + i]] for i, values in enumerate(distinct)]
    return np.column_stack([rows[:, :n_states].astype(float), *back]), weights, inverse


def standardised_table(codes, values, cardinalities, weights, columns):
    """(`Rows` of codes and standardised numbers, `NumberColumns` with the means and standard deviations that were found)."""
    centers, scales = standardisation(values, np.ones(len(codes)) if weights is None else weights)
    columns = columns._replace(centers=centers, scales=scales)
    return table_rows(codes, cardinalities, weights, columns.standardised(values), np.log(scales)), columns


def numbers_of_scan(frame, scan):
    """The frame with numbers as numbers, which the fold of a scan makes categoricals of; declared categories stay."""
    declared = scan._rows.categories([name for name in frame.columns if name in scan.names])
    return frame.assign(
        **{
            name: pd.to_numeric(column.astype(object))
            for name, column in frame.items()
            if isinstance(column.dtype, pd.CategoricalDtype)
            and name not in declared
            and pd.api.types.is_numeric_dtype(column.dtype.categories.dtype)
            and not pd.api.types.is_bool_dtype(column.dtype.categories.dtype)
        }
    )


def sampled_frame(scan, weight):
    """Some rows of a scan that does not fold, which tell the kinds of its columns."""
    rows, names = scan._rows, scan.names
    piece = rows.sample(names, SAMPLE_ROWS)
    piece = piece._replace(values=[rows.typed(values) for values in piece.values])
    categories = rows.categories([name for name in names if name != weight])
    return folded_frame(names, piece, categories, weight)[0]


def log_gain(values, shares):
    """Nats by which the evidence of log(values) inside clusters exceeds that of the values; -inf where some are not positive.

    shares : (n_rows, n_clusters) responsibilities times weights
    """
    seen = ~np.isnan(values)
    values, shares = values[seen], shares[seen]
    if not len(values) or values.min() <= 0 or values.max() == values.min():
        return -np.inf
    weights, prior = shares.sum(axis=1), NormalPrior()
    found = []
    for column in (values, np.log(values)):
        centers, scales = standardisation(column[:, None], weights)
        z = (column - centers) / scales
        sums = np.stack([shares.sum(axis=0), z @ shares, z**2 @ shares], axis=1)
        found.append(sum(log_evidence(prior, *line) for line in sums.tolist()) - weights.sum() * np.log(scales[0]))
    return float(found[1] - weights @ np.log(values) - found[0])  # the density of x is that of log x, divided by x


def spike_hint(name, values, shares):
    """[a sentence] about the largest cluster in which one value has half of the rows, or []: its normal density is a spike there.

    shares : (n_rows, n_clusters) responsibilities times weights
    """
    seen = ~np.isnan(values)
    distinct, codes = np.unique(values[seen], return_inverse=True)
    counts = np.zeros((len(distinct), shares.shape[1]))
    np.add.at(counts, codes, shares[seen])
    sizes = counts.sum(axis=0)
    is_spike = (counts.max(axis=0) >= 0.5 * sizes) & (sizes >= MIN_SPIKE)
    if len(distinct) < 2 or not is_spike.any():
        return []
    cluster = int(np.argmax(np.where(is_spike, sizes, -1.0)))
    top = int(np.argmax(counts[:, cluster]))
    share, value = counts[top, cluster] / sizes[cluster], f"{distinct[top]:.6g}"
    if len(distinct) <= MOST_STATES:
        cure = f"take it as states by categorical_columns=[{name!r}]"
    else:
        cure = f"make a flag of X[{name!r}] == {value}, and set those cells of the column to NaN"
    return [
        f"column {name!r} repeats a value: {share:.0%} of cluster {cluster} are {value}, which a normal density follows as a "
        f"spike, so that the column may decide the clusters alone; {cure}"
    ]
