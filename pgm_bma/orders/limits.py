"""Sizes that the order methods do not take: each raises an error that names what to change."""

from contextlib import contextmanager

import numpy as np

from pgm_bma.orders.families.family_table import MAX_FAMILIES, TooLarge, most_cells, n_families

MAX_CELLS = 2**26  # of one family's table
# What a fit may take where no sampler was given: on tables of hundreds of columns, chains end before max_sweeps. The limit is by
# size, not by the clock, so that fits repeat.
SCORING = 6e10  # steps of compiled code, of about a nanosecond each
WIDE = 3  # steps to count a row of a column with many states, all over memory
SWEEPING = 60  # CPU seconds of all chains
GAP_SECONDS = 80  # the same with missing values


def check_soft_families(scoring, n):
    """Raise an error where soft interventions would need lists."""
    size = n_families(n, n - 1, scoring.max_indegree)
    if scoring.soft and size > MAX_FAMILIES:
        raise ValueError(
            f"intervention_type='soft' needs all families in one table, but {n} variables with max_indegree={scoring.max_indegree} "
            f"have {size}, more than {MAX_FAMILIES}; lower max_indegree, drop columns, or pass intervention_type='perfect'"
        )


def check_widest_family(training, names, max_indegree):
    """Raise an error where the table of a family would be too large."""
    cells = most_cells(training.cardinalities, len(training.codes), max_indegree)
    if cells > MAX_CELLS:
        many = np.argsort(-training.cardinalities)[: max_indegree + 1]
        states = ", ".join(f"{names[column]!r} {training.cardinalities[column]}" for column in many)
        raise ValueError(
            f"a family of the columns with the most states ({states}) has {cells:,} cells, more than {MAX_CELLS:,}; merge rare "
            "states, drop columns, or lower max_indegree"
        )


def counting_steps(training, n_families):
    """Steps of compiled code that count so many families in all rows."""
    of_a_row = np.where(np.asarray(training.cardinalities) > 2, WIDE, 1.0 / 64)  # binary columns have 64 rows in a word
    return float(len(training.codes)) * n_families * of_a_row.mean()


def check_pairs(training):
    """Raise `TooLarge` where already the pairs of columns, with which lists begin, take longer than SCORING."""
    steps = counting_steps(training, len(training.cardinalities) ** 2)
    if steps > SCORING:
        raise TooLarge(steps, 0)


@contextmanager
def lists_of(n, n_rows, max_indegree, sampler):
    """Say what to change where lists of families take too long, or too much memory."""
    try:
        yield
    except TooLarge as error:
        steps, families = error.args
    else:
        return
    if families > MAX_FAMILIES:
        raise ValueError(
            f"{n_rows:,} rows of {n} variables leave about {families:.1e} parent sets that matter, more than {MAX_FAMILIES:,}: "
            f"the rows say little about so many states. Merge rare states, drop columns, lower max_indegree (now {max_indegree}), "
            f"or raise eps (now {sampler.eps}) in sampler=GibbsSampler(eps=...)"
        )
    raise ValueError(
        f"scoring the parent sets of {n} variables takes {steps * 1e-9:,.0f} CPU seconds or more for {n_rows:,} rows. Drop "
        f"columns, take a sample of the rows, or lower max_indegree (now {max_indegree}); sampler=GibbsSampler(beam=10) scores "
        "fewer sets, and any sampler that is given takes the time that it needs"
    )
