"""``pgm-bma structure`` and ``impute``: probabilities of the arcs between all columns, and completed copies of the table.

Also what a sampler says of itself: whether its chains agree, and what was done about missing cells.
"""

import numpy as np
import pandas as pd

from pgm_bma import plotting
from pgm_bma.commands.findings import Findings, percent
from pgm_bma.commands.output import UsageError, count, joined, listed
from pgm_bma.commands.session import CommandRun, as_seen, last_step, with_row_names
from pgm_bma.commands.tabular_files import closest, is_scanned

SURE = 0.9
TURNED = 0.8  # of the probability that two columns are connected: with less for its better way, an arc has no direction
MANY_COLUMNS = 40  # with more, the model is drawn by its strongest arcs only
LEAST_EFFECT = 0.01  # smaller ones are not drawn
LEAST_DRAWN = 0.05  # with no arc above, a picture of all would show nothing
DONE = {
    "augment": "they were sampled together with the structures (missing at random), so every row counts",
    "drop": "the rows that lack one were left out",
    "state": "missing was taken as one more state",
}


def structure(arguments, console):
    """Posterior probabilities of the arcs between all columns."""
    run, model, estimator = _fit_structures(arguments, console)
    opinions = opinion_findings(arguments)
    decided = None
    if not opinions.words and not arguments.interventions and len(estimator.edge_posterior_) <= MANY_COLUMNS:
        decided = estimator.compelled_posterior_  # else a direction may come from options or experiments
    found = arc_findings(estimator, decided).add(opinions)
    found.add(gap_findings(estimator)).add(chain_findings(estimator))
    n_rows, n_columns = run.data.frame.shape if run.scanned is None else (np.inf, 0)
    if n_columns > n_rows:
        found.warnings.append(
            f"{n_columns} columns in {n_rows} rows: among {n_columns * (n_columns - 1) // 2} pairs, some that do not depend on "
            "each other have probable arcs by chance; --set arc_prior=0.01 makes all arcs less probable"
        )
    if arguments.effects or arguments.interventions:
        found.add(effect_findings(run, estimator, arguments))
    run.finish(f"Structure of {run.name}", found, model, "arcs.csv", arc_table(estimator.edge_posterior_))


def impute(arguments, console):
    """Completed copies of the table, drawn from the posterior over structures and their parameters."""
    if is_scanned(arguments):
        raise UsageError("impute completes tables that are read whole; give one file, without --memory and --workers")
    run, model, estimator = _fit_structures(arguments, console)
    rows = as_seen(model, run.data.frame)
    found = gap_findings(estimator).add(chain_findings(estimator))
    copies = estimator.complete(rows, arguments.copies, random_state=arguments.seed)
    words = [
        f"completed.csv holds {count(arguments.copies, 'completed copy', 'completed copies')} of the table, one below the other."
    ]
    if pd.DataFrame(rows).isna().to_numpy().any():
        words[0] += (
            " Analyse each by itself and pool the results: how the copies differ is what the missing values leave open."
        )
    else:
        words[0] += " No cell is missing, so the copies are equal."
    if run.data.to_bin:
        words.append(
            f"In the copies, intervals stand in place of the numbers of {listed(run.data.to_bin)}, also where a number was known: "
            "lt_5 is below 5, ge_5 at least 5."
        )
    found.words[:0] = words
    index = pd.Index(np.tile(run.data.index, len(copies)), name=run.data.index.name)
    run.finish(f"Completed {run.name}", found, model, "completed.csv", with_row_names(completed_table(copies), index))


def _fit_structures(arguments, console):
    """The run, what was fitted to all columns of its table, and the estimator in it."""
    if arguments.discretize == "mdl":
        raise UsageError(
            f"--discretize mdl needs a class, and {arguments.command} treats all columns alike; use frequency or width"
        )
    run = CommandRun(arguments, console, "structure")
    run.read(None)
    rows = None
    if getattr(arguments, "interventions", None):
        if run.scanned is not None:
            raise UsageError("--interventions reads tables whole; give one file, without --memory and --workers")
        column, names = run.data.aside[arguments.interventions], list(run.data.frame.columns)
        rows = {"interventions": [_targets(cell, names) for cell in column]}
    _pairs("effects", arguments, ",", run.data.frame.columns)  # what is wrong is said before the work
    model = run.fit(run.data.frame, weights=run.data.weights, rows=rows, **_opinions(arguments, run.data.frame.columns))
    return run, model, last_step(model)


def _targets(cell, names):
    """The variables that a cell names: None, a name, or several with ; between them."""
    if pd.isna(cell) or not str(cell).strip():
        return None
    return cell if cell in names else [part.strip() for part in str(cell).split(";")]


def _opinions(arguments, names):
    """Parameters of the estimator from --tiers, --forbid and --require."""
    given = {}
    for option, parameter in (("forbid", "forbidden_arcs"), ("require", "required_arcs")):
        if arcs := _pairs(option, arguments, ":", names):
            given[parameter] = arcs
    if getattr(arguments, "tiers", None):
        tiers = [[part.strip() for part in group.split(",")] for group in arguments.tiers.split("|")]
        listed_names = [name for group in tiers for name in group]
        for name in listed_names:
            _check_name("tiers", name, names)
        lacking = [str(name) for name in names if name not in listed_names]
        if lacking:
            raise UsageError(f"--tiers leaves out {listed(lacking)}; name every column in one group")
        given["expert_knowledge"] = {"temporal_order": tiers}
    return given


def _pairs(option, arguments, separator, names):
    """Pairs of columns that an option gives, as A:B or A,B."""
    found = []
    for text in getattr(arguments, option, []):
        parts = tuple(part.strip() for part in text.split(separator))
        if len(parts) != 2:
            raise UsageError(f"--{option} {text}: give two columns as A{separator}B")
        for name in parts:
            _check_name(option, name, names)
        found.append(parts)
    return found


def _check_name(option, name, names):
    if name not in names:
        raise UsageError(f"--{option} names {name!r}, which is not a column here: {closest(name, names)}")


def opinion_findings(arguments):
    """A sentence about arcs that the options rule out or ask for."""
    used = [f"--{option}" for option in ("tiers", "forbid", "require") if getattr(arguments, option, None)]
    if not used:
        return Findings()
    return Findings(
        [f"{joined(used)} settled some arcs and directions before the data were seen: their 0 and 1 are not findings."]
    )


EQUIVALENT = (
    "DAGs that imply the same independences fit rows without experiments equally well. Where such rows alone decide, the direction "
    "of an arc, and an effect that rests on it, come from the prior. Causes that are not in the table are not accounted for."
)


def effect_findings(run, estimator, arguments):
    """Effects of setting columns on others: of all pairs in brief, of the pairs that were asked for in full."""
    names = run.data.frame.columns
    table = estimator.effects()
    run.tables["effects.csv"] = table
    words = []
    if len(table) and table["size"].iloc[0] > 0:
        top = [f"{row.of} on {row.on} ({row.size:.2f})" for row in table.head(5).itertuples()]
        words.append(
            f"The strongest effects of setting a column: {', '.join(top)}. 0 is no effect, 1 decides the other column."
        )
    if arguments.interventions:
        words.append(
            f"In {percent(run.data.aside[arguments.interventions].notna().mean())} of the rows a column was set."
        )
    found = Findings([*words, EQUIVALENT])
    caption = (
        "size: largest total variation between two states that the column is set to, with a 90 % interval. ancestor: probability "
        "of a directed path; zero: probability of no effect; jensen_shannon: divergence between all states, in nats."
    )
    found.table("Effects of setting a column", table.head(50), caption)
    seen = table[table["size"] >= LEAST_EFFECT]
    if len(seen):
        found.figure(
            "Effects of setting a column",
            lambda: plotting.plot_effects(seen),
            f"The strongest of those above {LEAST_EFFECT}, with 90 % intervals.",
        )
    if len(names) <= 80:
        draw = lambda: plotting.plot_effects(table, kind="matrix")  # noqa: E731
        found.figure("Effects of every column on every other", draw, "Setting the row moves the column.")
    for of, on in _pairs("effects", arguments, ",", names):
        own = estimator.effect(of, on)
        caption = f"P({on} | do({of})) with 90 % intervals. Probability of no effect: {own.attrs['zero']:.2f}."
        found.head(f"{on} when {of} is set", own, caption)
    return found


def chain_findings(estimator):
    """Return whether the chains of a sampler agree; nothing where the sum was exact."""
    if getattr(estimator, "method_", None) != "mcmc":
        return Findings()
    worst = estimator.diagnostics_.sort_values("difference_of_chains", ascending=False, kind="stable").head(30)
    swaps = f"{percent(estimator.acceptance_rate_)} of the swaps were accepted"
    if estimator.n_sweeps_:
        end = worst.attrs
        said = "agree" if estimator.converged_ else "DO NOT AGREE"
        swaps = f"they {said} after {count(estimator.n_sweeps_, 'sweep')}: no arc differs by more than {end['difference']:.2f}"
        swaps += "" if estimator.converged_ else f", {count(end['n_apart'], 'arc')} by more than 0.2"
    kept = len(estimator.order_log_scores_) // estimator.n_chains_
    found = Findings([f"{count(estimator.n_chains_, 'chain')} of {kept} kept orders; {swaps}."])
    means = "Means over all chains, R-hat (near 1 is good) and effective sizes."
    found.table("Where the chains differ most", worst, means)
    caption = "Chains that agree overlap."
    if estimator.n_chains_ == 1:
        caption = "One chain has nothing to agree with: --set sampler__n_chains=4 runs several."
    found.figure("Scores along the chains", lambda: plotting.plot_score_traces(estimator), caption)
    return found


def arc_findings(estimator, decided=None):
    """Posteriors of the arcs between columns, where the method has them.

    decided : DataFrame parent x child, the probability that the data show the direction; the arc posterior where None
    """
    posterior = getattr(estimator, "edge_posterior_", None)
    if not isinstance(posterior, pd.DataFrame):
        return _arcs_of_one(estimator)
    arcs = arc_table(posterior)
    likely = arcs[arcs["posterior"] >= 0.5]
    many = {0: "none has", 1: "1 has"}.get(len(likely), f"{len(likely)} have")
    words = [f"Of {count(len(arcs), 'possible arc')} between columns, {many} a probability of at least one half."]
    if not len(arcs):
        words = ["There is one column only, and nothing that it could depend on."]
    if len(likely):
        said = [f"{row[0]} -> {row[1]} ({row[2]:.2f})" for row in likely.head(8).itertuples(index=False, name=None)]
        words.append(f"The most probable: {', '.join(said)}.")
    undecided = _undecided(posterior, posterior if decided is None else decided)
    if undecided:
        pairs = ", ".join(f"{a} - {b}" for a, b in undecided[:8])
        more = f" and {len(undecided) - 8} more" if len(undecided) > 8 else ""
        words.append(
            f"Connected with a probability of at least {SURE}, but the data do not show the direction: {pairs}{more}."
        )
        if decided is not None:
            words.append(
                "Networks that fit equally well turn these arcs round; which direction is more probable rests on the prior."
            )
    caption = "Arcs with a probability of at least 0.01."
    if hasattr(estimator, "structure_weighting_"):  # posteriors mean little without their prior
        once = "order" if estimator.structure_weighting_ == "order" else "network"
        caption += f" Prior: {estimator.structure_prior!r} for sets of parents; every {once} of the columns counts once"
        size = getattr(estimator, "equivalent_sample_size_", None)
        caption += f"; tables with an equivalent sample size of {size:g}." if size else "."
    found = Findings(words)
    found.table("Arcs and their probabilities", arcs[arcs["posterior"] >= 0.01], caption)
    if len(posterior) <= MANY_COLUMNS and posterior.to_numpy().max(initial=0.0) >= LEAST_DRAWN:
        picture = lambda: plotting.plot_arc_posteriors(posterior)  # noqa: E731
        found.figure("Probability of every arc", picture, "From the row to the column.")
    return found


def _arcs_of_one(estimator):
    """Arcs between columns of a clusterer that keeps one structure."""
    root = getattr(estimator, "cluster_name", None)
    if root is None or not hasattr(estimator, "causal_graph_"):
        return Findings()
    arcs = [f"{a} -> {b}" for a, b in estimator.causal_graph_.edges() if root not in (a, b)]
    if not arcs:
        return Findings(["The model needs no arc between columns."])
    more = f" and {len(arcs) - 8} more" if len(arcs) > 8 else ""
    return Findings([f"The model has {count(len(arcs), 'arc')} between columns: {', '.join(arcs[:8])}{more}."])


def arc_table(posterior):
    """DataFrame parent x child -> (from, to, posterior), the most probable first."""
    long = posterior.rename_axis(index="from", columns="to").stack().rename("posterior").reset_index()
    long = long[[a != b for a, b in zip(long["from"], long["to"])]]
    return long.sort_values("posterior", ascending=False, kind="stable").reset_index(drop=True)


def _undecided(posterior, decided):
    names, values, shown = list(posterior.index), posterior.to_numpy(), decided.to_numpy()
    either = np.tril(values + values.T, -1)
    found = np.argwhere((either >= SURE) & (np.maximum(shown, shown.T) < TURNED * either))
    return [(names[j], names[i]) for i, j in sorted(found.tolist(), key=lambda pair: -either[*pair])]


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
    if (table["missing"] == table["missing"].round()).all():  # weights may leave parts of cells
        table["missing"] = table["missing"].astype(int)
    return Findings([words], tables=[("Missing cells", table, "Cells without a value, and their share of the rows.")])


def completed_table(copies):
    """All copies below each other; the first column counts them from 1."""
    parts = []
    for k, frame in enumerate(copies, 1):
        part = frame.reset_index(drop=True)
        part.insert(0, "copy" if "copy" not in part else "copy_number", k)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)
