"""What a fitted estimator found, in words, tables and pictures that a person from the field can read.

Each function takes what was fitted and returns `Findings`; the command line prints its words and tables, the report shows
all of it. An estimator is asked for what it has (arc posteriors, starts, tests of regions, ...), so a new method needs
nothing here unless it has something new to tell.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from pgm_bma import plotting
from pgm_bma.commands.console import count, listed
from pgm_bma.foundation.numbers.averaging import information
from pgm_bma.report.live_data import interaction_data, with_target

CLUSTER = "the cluster"
SURE = 0.9
TURNED = 0.8  # of the probability that two columns are connected: with less for its better way, an arc has no direction
FAINT = 0.05  # of the strongest dependence: weaker ones are not named
MANY_REGIONS = 60  # with more, the interactions are drawn in place of the regions


@dataclass
class Findings:
    """words : paragraphs   tables : (title, frame, caption)   figures : (title, function -> axes, caption)   warnings : lines

    `live` holds what the report lets its reader explore: (title, kind, function -> data, caption, function -> axes or None);
    see `report.page.Report.live`. `headline` holds the tables that the command line prints too; `numbers` goes to run.json.
    """

    words: list = field(default_factory=list)
    headline: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    figures: list = field(default_factory=list)
    live: list = field(default_factory=list)
    warnings: list = field(default_factory=list)
    numbers: dict = field(default_factory=dict)

    def head(self, title, frame, caption):
        self.headline.append((title, frame, caption))

    def table(self, title, frame, caption):
        self.tables.append((title, frame, caption))

    def figure(self, title, draw, caption):
        self.figures.append((title, draw, caption))

    def explore(self, title, kind, make, caption, draw=None):
        self.live.append((title, kind, make, caption, draw))

    def add(self, other):
        for name in ("words", "headline", "tables", "figures", "live", "warnings"):
            getattr(self, name).extend(getattr(other, name))
        self.numbers.update(other.numbers)
        return self


def relevance(estimator, root, dependence):
    """Which columns depend on the class or cluster: how much they tell about it, and the posteriors of its arcs."""
    posterior = next(
        (getattr(estimator, n) for n in ("arc_posterior_", "class_arc_posterior_") if hasattr(estimator, n)), None
    )
    if not hasattr(estimator, "arc_prior") or getattr(estimator, "class_arcs", "selective") != "selective":
        posterior = None  # the method does not ask the question
    found, silent = Findings(), []
    dependence = dependence.astype(float).sort_values(ascending=False, kind="stable")
    table = pd.DataFrame({"dependence (nats)": dependence})
    if posterior is not None:
        table[f"probability that it depends on {root}"] = posterior.astype(float)
        silent = [name for name in dependence.index if posterior[name] < 0.5]
        if root != CLUSTER:
            likely = len(posterior) - len(silent)
            depend = f"of {len(posterior)} columns {'depends' if likely == 1 else 'depend'}"
            found.words.append(f"{likely} {depend} on {root} with a probability above one half.")
        if silent:
            found.words.append(f"Columns that probably say nothing about {root}: {listed(silent, 8)}.")
    strong = [name for name in dependence.index[dependence > FAINT * dependence.iloc[0]] if name not in silent]
    if strong:
        what = "What differs most between the clusters" if root == CLUSTER else f"What tells most about {root}"
        found.words.insert(0, f"{what}: {listed(strong[:5])}.")
    caption = f"Sorted by how much a column tells about {root}: 0 is no more than chance."
    found.table("Relevance of the columns", table.rename_axis("column").reset_index(), caption)
    if dependence.iloc[0] > 0:
        label = f"dependence on {root} (nats)"
        if posterior is not None:
            caption += " The darker a bar, the more probable that the column depends on it at all."
        picture = lambda: plotting.plot_relevance(dependence, posterior=posterior, label=label)  # noqa: E731
        found.figure("Which columns matter", picture, caption)
    return found


def column_dependence(frame, proba):
    """Mutual information in nats of every column with the clusters, rows counted by their probabilities; missing cells left out.

    What columns without any dependence reach by chance, (states - 1)(clusters - 1) / (2 rows) on average, is taken off: else a
    column of many states would seem to matter.

    frame : DataFrame of categoricals      proba : (n_samples, n_clusters), of ones and zeros where the class is known
    """
    values = {}
    for name, column in frame.items():
        codes = column.cat.codes.to_numpy()
        known = codes >= 0
        joint = np.stack([np.bincount(codes[known], p[known], len(column.cat.categories)) for p in proba.T])
        n_known = max(int(known.sum()), 1)
        chance = ((joint.sum(1) > 0).sum() - 1) * ((joint.sum(0) > 0).sum() - 1) / (2 * n_known)
        values[name] = max(float(information(joint / n_known) - chance), 0.0) if known.any() else 0.0
    return pd.Series(values)


def arc_findings(estimator):
    """Posteriors of the arcs between columns, where the method has them."""
    posterior = getattr(estimator, "edge_posterior_", None)
    if not isinstance(posterior, pd.DataFrame):
        return Findings()
    arcs = arc_table(posterior)
    likely = arcs[arcs["posterior"] >= 0.5]
    many = {0: "none has", 1: "1 has"}.get(len(likely), f"{len(likely)} have")
    words = [f"Of {count(len(arcs), 'possible arc')} between columns, {many} a probability of at least one half."]
    if not len(arcs):
        words = ["There is one column only, and nothing that it could depend on."]
    if len(likely):
        said = [f"{row[0]} -> {row[1]} ({row[2]:.2f})" for row in likely.head(8).itertuples(index=False, name=None)]
        words.append(f"The most probable: {', '.join(said)}.")
    undecided = _undecided(posterior)
    if undecided:
        pairs = ", ".join(f"{a} - {b}" for a, b in undecided[:8])
        words.append(f"Connected almost surely, but the data do not tell which way: {pairs}.")
    caption = "Arcs with a probability of at least 0.01."
    if hasattr(estimator, "structure_weighting_"):  # posteriors mean little without their prior
        once = "order" if estimator.structure_weighting_ == "order" else "network"
        caption += (
            f" Prior: {estimator.structure_prior!r} for sets of parents; every {once} of the columns counts once."
        )
    found = Findings(words)
    found.table("Arcs and their probabilities", arcs[arcs["posterior"] >= 0.01], caption)
    if len(posterior) <= 80:
        picture = lambda: plotting.plot_arc_posteriors(posterior)  # noqa: E731
        found.figure("Probability of every arc", picture, "From the row to the column.")
    return found


def arc_table(posterior):
    """DataFrame parent x child -> (from, to, posterior), the most probable first."""
    long = posterior.rename_axis(index="from", columns="to").stack().rename("posterior").reset_index()
    long = long[[a != b for a, b in zip(long["from"], long["to"])]]
    return long.sort_values("posterior", ascending=False, kind="stable").reset_index(drop=True)


def _undecided(posterior):
    names, values = list(posterior.index), posterior.to_numpy()
    either = np.tril(values + values.T, -1)
    found = np.argwhere((either >= SURE) & (np.maximum(values, values.T) < TURNED * either))
    return [(names[j], names[i]) for i, j in sorted(found.tolist(), key=lambda pair: -either[*pair])]


def region_findings(estimator, frame, target):
    """Groups of columns that speak together about the class (Kikuchi-Bayes and additive terms)."""
    if not hasattr(estimator, "interaction_strength_"):
        return Findings()
    rows, target = with_target(frame, target), estimator.target_name_
    if hasattr(estimator, "pairs_"):
        regions, drawn = [frozenset(pair) for pair in estimator.pairs_], True
        alone = set(estimator.schema_.names).difference(*regions)
        regions += [frozenset([name]) for name in alone]
    else:
        regions = [region - {target} for region in estimator.initial_regions_]
        drawn = estimator.region_graph_.number_of_nodes() <= MANY_REGIONS
    together = sorted(
        (sorted(region, key=str) for region in regions if len(region) > 1), key=lambda r: [str(c) for c in r]
    )
    several = "none holds" if not together else "1 holds" if len(together) == 1 else f"{len(together)} hold"
    words = [f"{count(len(regions), 'group')} of columns taken, of which {several} more than one column."]
    strength = estimator.interaction_strength_
    kinds: dict[str, list] = {
        f"They tell more about {target!r} together than apart": [],
        "They tell partly the same": [],
        "Larger groups": [],
    }
    more, same, larger = kinds.values()
    for region in together:
        (larger if len(region) > 2 else more if strength.loc[*region] > 0 else same).append(region)
    for saying, groups in kinds.items():
        if groups:
            said = "; ".join(" with ".join(map(str, region)) for region in groups[:8])
            words.append(f"{saying}: {said}{' and others' if len(groups) > 8 else ''}.")
    found = Findings(words)
    if 1 < len(strength) and drawn:
        found.explore(
            "Interactions between pairs of columns",
            "graph",
            lambda: interaction_data(estimator, rows),
            "Solid: two columns together tell more about the class than the sum of both. Dashed: they tell partly the same.",
            lambda: plotting.plot_interactions(estimator),
        )
    tests = getattr(estimator, "tests_", None)
    if isinstance(tests, pd.DataFrame) and len(tests):
        tests = tests.assign(region=[" + ".join(map(str, sorted(region, key=str))) for region in tests["region"]])
        tests = tests.sort_values(["taken", "p"], ascending=[False, True], kind="stable")
        tests = tests.rename(columns={"mean_self_loss": "loss by chance"})
        for name in tests.columns.intersection(["resampled", "taken"]):
            tests[name] = ["yes" if flag else "no" for flag in tests[name]]
        found.table("Tests of the groups", tests, "Loss of a group against what chance would give.")
    return found


def percent(share):
    return f"{100 * share:.{0 if share in (0.0, 1.0) else 1}f}\u00a0%"  # not torn apart at a line end
