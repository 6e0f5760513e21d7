"""``pgm-bma structure`` and ``impute``: probabilities of the arcs between all columns, and completed copies of the table.

Also what a sampler says of itself: whether its chains agree, and what was done about missing cells.
"""

import numpy as np
import pandas as pd

from pgm_bma import plotting
from pgm_bma.commands import methods
from pgm_bma.commands.console import UsageError, count, listed
from pgm_bma.commands.findings import Findings, arc_findings, arc_table, percent
from pgm_bma.commands.session import CommandRun, as_seen, last_step, with_row_names
from pgm_bma.commands.tabular_files import is_scanned

DONE = {
    "augment": "they were sampled together with the structures (missing at random), so every row counts",
    "drop": "the rows that lack one were left out",
    "state": "missing was taken as a value of its own",
}


def structure(arguments, console):
    """Posterior probabilities of the arcs between all columns."""
    run, model, estimator = _fit_structures(arguments, console)
    found = arc_findings(estimator).add(gap_findings(estimator)).add(chain_findings(estimator))
    run.finish(f"Structure of {run.name}", found, model, "arcs.csv", arc_table(estimator.edge_posterior_))


def impute(arguments, console):
    """Completed copies of the table, drawn from the posterior over structures and their parameters."""
    if is_scanned(arguments):
        raise UsageError("impute completes tables that are read whole; give one file, without --memory and --workers")
    run, model, estimator = _fit_structures(arguments, console)
    rows = as_seen(model, run.data.frame)
    if not pd.DataFrame(rows).isna().to_numpy().any():
        run.note("no cell is missing: every copy is the table itself")
    found = gap_findings(estimator).add(chain_findings(estimator))
    copies = estimator.complete(rows, arguments.copies, random_state=arguments.seed)
    found.words.insert(
        0,
        f"completed.csv holds {count(arguments.copies, 'completed copy', 'completed copies')} of the table, one below the other. "
        "Analyse each by itself and pool the results: how the copies differ is what the gaps leave open.",
    )
    index = pd.Index(np.tile(run.data.index, len(copies)), name=run.data.index.name)
    run.finish(f"Completed {run.name}", found, model, "completed.csv", with_row_names(completed_table(copies), index))


def _fit_structures(arguments, console):
    """The run, what was fitted to all columns of its table, and the estimator in it."""
    if arguments.discretize == "mdl":
        raise UsageError(
            f"--discretize mdl needs a class, and {arguments.command} treats all columns alike; take frequency or width"
        )
    run = CommandRun(arguments, console, methods.STRUCTURES)
    run.read(None)
    model = run.fit(run.data.frame, weights=run.data.weights)
    return run, model, last_step(model)


def chain_findings(estimator):
    """Whether the chains of a sampler agree; nothing where the sum was exact."""
    if getattr(estimator, "method_", None) != "mcmc":
        return Findings()
    worst = estimator.diagnostics_.sort_values("difference_of_chains", ascending=False, kind="stable").head(30)
    swaps = f"{percent(estimator.acceptance_rate_)} of the swaps were accepted"
    if estimator.n_sweeps_:
        end = worst.attrs
        said = "have agreed" if estimator.converged_ else "HAVE NOT AGREED"
        swaps = f"after {count(estimator.n_sweeps_, 'sweep')} they {said}: no arc differs by more than {end['difference']:.2f}"
        swaps += "" if estimator.converged_ else f", {count(end['n_apart'], 'arc')} by more than 0.2"
    kept = len(estimator.order_log_scores_) // estimator.n_chains_
    found = Findings([f"{count(estimator.n_chains_, 'chain')} of {kept} kept orders; {swaps}."])
    means = "Means over all chains, R-hat (near 1 is good) and effective sizes."
    found.table("Where the chains differ most", worst, means)
    caption = "Chains that have met run through each other."
    if estimator.n_chains_ == 1:
        caption = "One chain has nothing to agree with: --set sampler__n_chains=4 runs several."
    found.figure("Scores along the chains", lambda: plotting.plot_score_traces(estimator), caption)
    return found


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
