"""What was missing in the table, what was done about it, and how much uncertainty it adds; completed copies of the table."""

import pandas as pd

from pgm_bma.commands.console import count, listed
from pgm_bma.commands.findings import Findings, percent

DONE = {
    "augment": "they were sampled together with the structures (missing at random), so every row counts",
    "drop": "the rows that lack one were left out",
    "state": "missing was taken as a value of its own",
}


def gap_findings(estimator):
    """Missing cells by column, for methods that tell (`gaps_`); nothing where every cell was there."""
    gaps = getattr(estimator, "gaps_", None)
    if gaps is None or not gaps.attrs["incomplete_rows"]:
        return Findings()
    told = gaps.attrs
    open_columns = gaps[gaps["missing"] > 0].sort_values("missing", ascending=False, kind="stable")
    total = int(open_columns["missing"].sum().round())
    words = (
        f"{count(total, 'cell')} in {count(len(open_columns), 'column')} are missing ({listed(list(open_columns.index))}), in "
        f"{percent(told['incomplete_rows'] / told['rows'])} of the rows; {DONE[told['treatment']]}."
    )
    if told["treatment"] == "augment":
        words += (
            f" From one completed table to the next, the probability of an arc varies by up to {told['arc_spread']:.2f} (standard "
            "deviation)."
        )
    table = open_columns.rename_axis("column").reset_index()
    return Findings([words], tables=[("Missing cells", table, "Cells without a value, and their share of the rows.")])


def completed_table(copies):
    """All copies below each other; the first column counts them from 1."""
    parts = []
    for k, frame in enumerate(copies, 1):
        part = frame.reset_index(drop=True)
        part.insert(0, "copy" if "copy" not in part else "copy_number", k)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
