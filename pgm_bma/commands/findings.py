"""Findings of a fitted estimator, in sentences, tables and pictures that a person from the field can read.

Each function takes what was fitted and returns `Findings`; the command line prints its words and tables, the report shows
all of it. An estimator is asked for what it has (arc posteriors, starts, tests of regions, ...), so a new method needs
nothing here unless it has something new to tell.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import chi2

import pgm_bma
from pgm_bma import plotting
from pgm_bma.commands.output import collected_warnings, count, joined, listed
from pgm_bma.foundation.numbers.families import information
from pgm_bma.latent_class.results import CRITERIA, SIGNIFICANT
from pgm_bma.latent_class.statistics import ROWS_PER_CELL
from pgm_bma.report.live_data import INTERACTIONS, interaction_data, with_target
from pgm_bma.report.page import column_cell

CLUSTER = "the cluster"
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
    """List the columns that depend on the class or cluster: how much they say about it, and the posteriors of its arcs."""
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
        what = (
            "Columns that differ most between the clusters"
            if root == CLUSTER
            else f"Columns that say most about {root}"
        )
        found.words.insert(0, f"{what}: {listed(strong[:5])}.")
    caption = f"Sorted by how much a column alone says about {root}: 0 is no more than chance."
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
    column of many states would seem to matter. What chance reaches in one of a hundred columns counts as nothing.

    frame : DataFrame of categoricals      proba : (n_samples, n_clusters), of ones and zeros where the class is known
    """
    values = {}
    for name, column in frame.items():
        codes = column.cat.codes.to_numpy()
        known = codes >= 0
        joint = np.stack([np.bincount(codes[known], p[known], len(column.cat.categories)) for p in proba.T])
        n_known = max(int(known.sum()), 1)
        free = int(((joint.sum(1) > 0).sum() - 1) * ((joint.sum(0) > 0).sum() - 1))
        found = float(information(joint / n_known)) if known.any() and free > 0 else 0.0
        values[name] = found - free / (2 * n_known) if found > 0 and chi2.sf(2 * n_known * found, free) < 0.01 else 0.0
    return pd.Series(values)


def region_findings(estimator, frame, target):
    """Groups of columns that speak together about the class (Kikuchi-Bayes and additive terms)."""
    if not hasattr(estimator, "interactions_"):
        return Findings()
    rows, target = with_target(frame, target), estimator.target_name_
    if hasattr(estimator, "pairs_"):
        return _pair_findings(estimator, target)
    regions = [region - {target} for region in estimator.initial_regions_]
    drawn = (
        estimator.region_graph_.number_of_nodes() <= MANY_REGIONS
    )  # else the model itself is shown by its interactions
    together = sorted(
        (sorted(region, key=str) for region in regions if len(region) > 1), key=lambda r: [str(c) for c in r]
    )
    several = "none holds" if not together else "1 holds" if len(together) == 1 else f"{len(together)} hold"
    words = [f"{count(len(regions), 'group')} of columns taken, of which {several} more than one column."]
    kinds: dict[str, list] = {
        f"They tell more about {target!r} together than apart": [],
        "They tell partly the same": [],
        "Larger groups": [],
    }
    more, same, larger = kinds.values()
    for first, second, importance, low, high in estimator.interactions_.itertuples(index=False):
        if low > 0 or high < 0:  # beyond chance
            (more if importance > 0 else same).append([first, second])
    larger += [region for region in together if len(region) > 2]
    for saying, groups in kinds.items():
        if groups:
            said = "; ".join(" with ".join(map(str, region)) for region in groups[:8])
            words.append(f"{saying}: {said}{' and others' if len(groups) > 8 else ''}.")
    found = Findings(words)
    if 1 < len(estimator.schema_.names) and drawn:
        found.explore(
            "Interactions between pairs of columns",
            "graph",
            lambda: interaction_data(estimator, rows),
            INTERACTIONS[0],
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


def _pair_findings(estimator, target):
    """Pairs of an additive model; the picture of the model shows them."""
    sure = estimator.interactions_.query("low > 0").head(8)
    if not len(sure):
        return Findings([f"No pair of columns clearly says more about {target!r} together than apart."])
    said = "; ".join(
        f"{a} with {b} ({percent(share)} of the explained log odds, 95 % interval {100 * low:.1f} to {percent(high)})"
        for a, b, share, low, high in sure.itertuples(index=False, name=None)
    )
    return Findings([f"Pairs of columns that say more about {target!r} together than apart: {said}."])


def start_findings(estimator):
    """Scores of the starts of a search, and a warning where the best one was found once."""
    starts = getattr(estimator, "starts_", None)
    if not isinstance(starts, pd.DataFrame) or len(starts) < 2 or "score" not in starts:
        return Findings()
    found = Findings()
    found.figure(
        "Were the best clusters found again?",
        lambda: plotting.plot_starts(estimator),
        "Scores of all starts. When several starts reach the best score, the search has probably found it.",
    )
    finished = starts[starts["stage"] == 2] if "stage" in starts else starts
    ranked = finished["score"].dropna().sort_values(ascending=False).to_numpy()
    if len(ranked) > 1 and ranked[0] - ranked[1] > 1.0:
        found.warnings.append(
            f"the best of {len(starts)} starts was found once only (the next scores {ranked[0] - ranked[1]:.1f} lower); "
            f"more starts, --set n_init={4 * len(starts)}, may find better clusters"
        )
    return found


def percent(share):
    return f"{100 * share:.{0 if share in (0.0, 1.0) else 1}f}\u00a0%"  # not torn apart at a line end


# ---------------------------------------------------------------------------------------------- how many clusters
#
# A latent-class model knows no dependence inside a cluster, so a pair of columns that has one is paid for with further clusters;
# no criterion of that model can see it, because they all compare such models with each other. The average over forests has
# arcs between columns: where it needs fewer clusters for the same rows, the further ones stand for its arcs.

NAMES = {
    "evidence": "the evidence",
    "bic": "BIC",
    "icl": "ICL",
    "caic": "CAIC",
    "blrt": "the bootstrapped likelihood-ratio test",
}
COMPARED = ("evidence", "bic", "icl", "blrt")  # criteria whose disagreement is said
STARTS = 6  # of the forests, at each number
MOST_CELLS = 400_000  # distinct rows x columns x clusters of all numbers tried, for the forests
LIKELY = 0.5  # posterior of an arc that is named
# nats: with less, the second number of clusters has more than a twentieth of the probability of the first
CLEAR_GAP = 3.0

# columns of `n_clusters_path_` in words; the first ones are printed, all are in the report
PATH = {
    "n_clusters": "clusters",
    "score": "score",
    "probability": "probability",
    "log_likelihood": "log likelihood",
    "completed_score": "completed score",
    "n_parameters": "parameters",
    "bic": "BIC",
    "entropy_r2": "entropy R2",
    "n_occupied": "clusters with rows",
    "blrt_p": "p of one more",
}
MORE = {
    "aic": "AIC", "adjusted_bic": "adjusted BIC", "caic": "CAIC", "icl": "ICL", "g2": "G2", "x2": "X2", "pairs": "X2 of pairs",
    "df": "degrees of freedom", "g2_p": "p of G2", "x2_p": "p of X2", "pairs_p": "p of pairs",
    "smallest_cluster": "smallest cluster",
}  # fmt: skip


class FewerClusters(NamedTuple):
    """n_clusters : that forests need      pairs : columns with an arc between them, the surest first, as texts"""

    n_clusters: int
    pairs: list


class NumberChosen(NamedTuple):
    """Summary of the numbers of clusters.

    goodness : what `pgm_bma.goodness_of_fit` found, or None      fewer : FewerClusters or None
    is_dependent : whether pairs of columns stay dependent inside the clusters      words : of the command
    one_more : p-value of one more cluster, where a single number was tested
    """

    criterion: str = "evidence"
    goodness: pd.DataFrame | None = None
    fewer: FewerClusters | None = None
    is_dependent: bool = False
    words: Sequence[str] = ()
    one_more: float | None = None


NOTHING_KNOWN = NumberChosen()


def fewer_with_arcs(estimator, frame, weights, seed):
    """`FewerClusters` where forests need fewer clusters for the rows than the latent-class model, else None."""
    k = estimator.n_clusters_
    n_cells = len(frame.drop_duplicates()) * frame.shape[1] * k * (k + 1) // 2
    if not hasattr(estimator, "n_clusters_path_") or k < 2 or frame.shape[1] < 2 or n_cells > MOST_CELLS:
        return None
    forests = pgm_bma.ForestAveragedClusterer(range(1, k + 1), n_init=STARTS, random_state=seed)
    try:
        with collected_warnings():
            forests.fit(frame, sample_weight=weights)
    except (ValueError, MemoryError):  # too many missing cells or columns for it: nothing is known
        return None
    names = list(forests.edge_posterior_.index)
    either = forests.edge_posterior_.to_numpy() + forests.edge_posterior_.to_numpy().T
    likely = np.argwhere(np.triu(either, 1) >= LIKELY).tolist()
    pairs = [(names[i], names[j]) for i, j in sorted(likely, key=lambda pair: -either[*pair])]
    if forests.n_clusters_ >= k or not pairs:
        return None
    return FewerClusters(forests.n_clusters_, [f"{a} with {b}" for a, b in pairs])


def number_words(estimator, n_filled, number):
    """Findings that open the result. n_filled : clusters with rows      number : NumberChosen"""
    k, path = estimator.n_clusters_, getattr(estimator, "n_clusters_path_", None)
    text = "The rows form one group: no clusters were found" if k == 1 else f"The rows fall into {k} clusters"
    if n_filled < k:
        empty = f"of {k} clusters only {n_filled} {'has' if n_filled == 1 else 'have'} rows"
        text = (
            f"The rows form one group: {empty}" if n_filled == 1 else f"The rows fall into {n_filled} clusters: {empty}"
        )
    if path is None or len(path) < 2:
        return Findings([f"{text}.", *_one_more(number.one_more)])
    found = Findings([f"{text}{_tried(path, k, number.criterion)}."])
    if "bic" in path:
        found.add(_disagreement(path, number.criterion))
    if number.fewer is not None:
        found.add(_inflated(number.fewer, number.words))
    return found


def _one_more(p):
    if p is None:
        return []
    verb = "would fit better than chance allows" if p <= SIGNIFICANT else "is not called for"
    return [f"One more cluster {verb} (bootstrapped likelihood-ratio test, p = {p:.2f})."]


def _tried(path, k, criterion):
    best = path.groupby("n_clusters")["score"].max().sort_values(ascending=False)
    tried = f"{best.index.min()} to {best.index.max()} were tried"
    by = f" by {NAMES[criterion]}"
    if len(best) < 2 or k != best.index[0]:
        return f"{by} ({tried})"
    gap = best.iloc[0] - best.iloc[1]
    if gap < CLEAR_GAP:
        other = count(best.index[1], "cluster")
        verb = "is" if best.index[1] == 1 else "are"
        return f"{by}, but {other} {verb} almost as probable ({gap:.1f} nats less; {tried})"
    return f"{by} ({tried}; the next best number, {best.index[1]}, scores {gap:.1f} nats lower)"


def _disagreement(path, criterion):
    """Name the criteria that would take another number."""
    names = [name for name in dict.fromkeys([criterion, *COMPARED]) if name != "blrt" or "blrt_p" in path]
    known = {name: CRITERIA[name](path) for name in names}
    best = {name: int(path.loc[v.idxmax(), "n_clusters"]) for name, v in known.items() if v.notna().all()}
    taken, numbers = best[criterion], {name: best[name] for name in COMPARED if name in best}
    found = Findings(numbers={"n_clusters_by": numbers})
    wanted = dict.fromkeys(number for number in numbers.values() if number != taken)
    others = [f"{joined([NAMES[n] for n in numbers if numbers[n] == number])} would take {number}" for number in wanted]
    agreed = [NAMES[name] for name, number in numbers.items() if number == taken and name != criterion]
    if others:
        found.words.append(f"The criteria disagree: {', '.join(others)}{_same(agreed)}.")
    elif agreed:
        found.words.append(f"{joined(agreed)} {'choose' if len(agreed) > 1 else 'chooses'} the same number.")
    found.words = [f"{words[0].upper()}{words[1:]}" for words in found.words]
    return found


def _same(agreed):
    return f"; {joined(agreed)} {'agree' if len(agreed) > 1 else 'agrees'} with it" if agreed else ""


def _inflated(fewer, words):
    pairs = f"{'; '.join(fewer.pairs[:3])}{' and others' if len(fewer.pairs) > 3 else ''}"
    text = (
        f"This number is probably too large. The model assumes that columns are independent inside a cluster, but they are not: "
        f"{pairs}. Further clusters stand in for that dependence. With arcs between such columns "
        f"{count(fewer.n_clusters, 'cluster')} {'is' if fewer.n_clusters == 1 else 'are'} enough. Run: {with_method(words)} "
        "(or structural)."
    )
    warning = (
        f"the number of clusters rests on independence inside clusters, which does not hold ({pairs}), so its probability means "
        "little; --method forest or structural models the dependence"
    )
    return Findings([text], warnings=[warning], numbers={"n_clusters_with_arcs": fewer.n_clusters})


def with_method(words, has_numbers=False):
    """The command with ``--method forest``, without what only latent-class models take; numbers are cut into states."""
    kept, skip = [], False
    for word in (word for word in words if word != "--overwrite"):
        option = word.partition("=")[0]
        if skip or option in ("--method", "--criterion", "--set", "--out"):
            skip = not skip and "=" not in word
            continue
        kept.append(word)
    return shlex.join(["pgm-bma", *kept, "--method", "forest", *(["--discretize", "frequency"] if has_numbers else [])])


def numbers_tried(path, goodness=None, is_dependent=False):
    """The tables of the numbers tried: score and main criteria, and all further ones; and a picture of them.

    is_dependent : whether columns were found dependent inside clusters, so that probabilities of numbers need a condition
    """
    text = "Higher scores are better; natural logs."
    if "blrt_p" in path:
        text += " p of one more: does one more cluster fit better than chance allows? By bootstrap, up to the first above 0.05."
    best = path.loc[path.groupby("n_clusters")["score"].idxmax()]
    if "log_likelihood" in path and (best["log_likelihood"].diff() < -0.0005).any():
        text += (
            " The log likelihood can fall with more clusters: the parameters are not those of highest likelihood but averages "
            "over structures and a prior, which pull harder the fewer rows a cluster has."
        )
    names = dict(PATH)
    if is_dependent:
        names["probability"] = "probability if independent"
        text += " The probabilities hold only if columns were independent inside clusters; some are not."
    shown = [name for name in PATH if name in path]
    found = Findings(headline=[("Numbers of clusters tried", path[shown].rename(columns=names), text)])
    how = "no p, because this table takes too long for a bootstrap"
    if goodness is not None:
        tested = goodness.set_index("n_clusters")[["g2_p", "x2_p", "pairs", "pairs_p"]].reindex(path["n_clusters"])
        path, how = path.assign(**{name: tested[name].to_numpy() for name in tested}), "p by parametric bootstrap"
    more = [name for name in ("n_clusters", *MORE) if name in path and path[name].notna().any()]
    if "g2" not in more and "df" in more:  # of numbers
        more.remove("df")
    if len(more) > 1:
        caption = (
            f"Criteria: lower is better. G2 and X2 compare observed with expected patterns of answers, X2 of pairs the tables of "
            f"all pairs of columns; {how}."
        )
        found.head("Fit of every number of clusters", path[more].rename(columns={**PATH, **MORE}), caption)
    if path["n_clusters"].nunique() > 1 and "bic" in path:
        caption = "Each criterion as its distance from its own best, at 0; lower is better. Shaded: the number that was taken."
        found.figure("Criteria of every number of clusters", lambda: plotting.plot_criteria(path), caption)
    return found


# ------------------------------------------------------------------------------------------------ goodness of fit


def fit_words(goodness, k, n_rows, n_patterns, n_bootstrap):
    """Does the model fit, by tests that could have seen a misfit?

    goodness : what `pgm_bma.goodness_of_fit` found, or None      n_rows : complete ones      n_patterns : possible ones
    """
    if goodness is None or k not in goodness["n_clusters"].to_numpy():
        return Findings()
    lines = goodness.set_index("n_clusters")
    line = lines.loc[k]
    tests = [(f"{name} {column_cell(name, line[name.lower()], 1)}", line[f"{name.lower()}_p"]) for name in ("G2", "X2")]
    patterns = _tested(tests)
    pairs = _tested([(f"X2 {column_cell('X2', line['pairs'], 1)}", line["pairs_p"])])
    is_sparse, possible = (
        n_rows < ROWS_PER_CELL * n_patterns,
        f"{n_patterns:.0f}" if n_patterns < 1e6 else f"{n_patterns:.1e}",
    )
    is_rejected = 3 * np.nanmin([line["g2_p"], line["x2_p"], line["pairs_p"]]) <= SIGNIFICANT  # Bonferroni
    how = f"p by {n_bootstrap} tables drawn from the model"
    said = f"tables of pairs of columns ({pairs}), patterns of answers ({patterns}); {how}"
    if is_rejected:
        text = f"The model does not fit everywhere: {said}."
    elif is_sparse:
        text = (
            f"{n_rows} complete rows are too few to test whether all {possible} possible patterns of answers occur as often as "
            f"the model expects. The test that has power here, of all pairs of columns, finds no misfit ({pairs}; {how})"
            f"{_power(lines, k)}."
        )
    else:
        text = f"No test finds a misfit: {said}{_power(lines, k)}."
    names = ("g2", "g2_p", "x2", "x2_p", "pairs", "pairs_p")
    return Findings([text], numbers={name: float(line[name]) for name in names})


def _tested(tests):
    return ", ".join(f"{text}, p {'≤' if p <= 0.01 else '='} {p:.2f}" for text, p in tests if pd.notna(p))


def _power(lines, k):
    """Return whether the same test can tell this number from one cluster less."""
    if k - 1 not in lines.index:
        return ""
    p = lines.loc[k - 1, "pairs_p"]
    if p <= 0.05:
        return f"; it does find one with {count(k - 1, 'cluster')} (p {'≤' if p <= 0.01 else '='} {p:.2f})"
    return f"; but it finds none with {count(k - 1, 'cluster')} either (p = {p:.2f}), so it cannot tell the two apart"
