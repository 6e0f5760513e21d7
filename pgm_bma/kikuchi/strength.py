"""Strength of the interactions of a model's pairs of columns: interaction information, corrected for its bias.

I(X_i; X_j | C) - I(X_i; X_j) of a table of counts is too large, by about its cells over twice its rows. Here the mean over tables
with the same margins, the classes dealt anew to the rows, is taken off, so that noise is centred at 0 however many states there
are. What varies from table to table and what varies from row to row (delta method) give the interval.
"""

import numpy as np
from scipy.stats import random_table

from pgm_bma.kikuchi.selection import content_generator
from pgm_bma.kikuchi.terms import flat_table

_DEALT, SURE = 50, 1.96  # tables with classes dealt anew; standard errors on either side
_MOST_PAIRS = 200  # of many pairs those whose plug-in values are largest


def interaction_lines(terms, names):
    """Pairs in the model: [(first, second, importance in nats, low, high)], by falling importance."""
    tables = {s: flat_table(terms.counts, terms.layout, t) for t, s in enumerate(terms.layout.sets) if len(s) == 2}
    pairs = sorted(tables, key=lambda s: -abs(plug_in(tables[s])[0]))[:_MOST_PAIRS]
    lines = [(names[i], names[j], *corrected(tables[i, j])) for i, j in pairs]
    return sorted(lines, key=lambda line: -line[2])


def corrected(counts):
    """(strength, low, high) in nats of a table (n_first, n_second, n_classes)."""
    found, error = plug_in(counts)
    whole = np.rint(counts).astype(np.int64).reshape(-1, counts.shape[-1])
    cells, classes = whole.sum(axis=1), whole.sum(axis=0)
    if cells.sum() == 0:
        return 0.0, 0.0, 0.0
    dealt = random_table(cells[cells > 0], classes[classes > 0]).rvs(_DEALT, random_state=content_generator(counts))
    noise = np.zeros((_DEALT, *whole.shape))
    noise[np.ix_(np.arange(_DEALT), cells > 0, classes > 0)] = dealt
    values = np.array([plug_in(table.reshape(counts.shape))[0] for table in noise])
    strength = found - float(values.mean())
    reach = SURE * float(np.hypot(error, values.std()))
    return strength, strength - reach, strength + reach


def plug_in(counts):
    """I(first; second | class) - I(first; second) of a table of counts, and its standard error over rows."""
    n = counts.sum()
    seen = counts > 0
    if n <= 0:
        return 0.0, 0.0
    sums = [counts.sum(axis=axes, keepdims=True) for axes in (2, 1, 0, (1, 2), (0, 2), (0, 1))]
    both, first, second, one, two, classes = (np.broadcast_to(s, counts.shape)[seen] for s in sums)
    cells = counts[seen]
    # ln P(x, y | c) / (P(x | c) P(y | c)) - ln P(x, y) / (P(x) P(y))
    logs = np.log(cells) + np.log(classes) - np.log(first) - np.log(second)
    logs -= np.log(both) + np.log(n) - np.log(one) - np.log(two)
    mean = float(cells @ logs / n)
    return mean, float(np.sqrt(max(cells @ (logs - mean) ** 2 / n, 0.0) / n))
