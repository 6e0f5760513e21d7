"""How many clusters, in words: by which criterion, whether others disagree, and whether dependent columns made the number.

A latent-class model knows no dependence inside a cluster, so a pair of columns that has one is paid for with further clusters;
no criterion of that model can see it, because they all compare such models with each other. The average over forests has arcs
between columns: where it needs fewer clusters for the same rows, the further ones stand for its arcs.
"""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma import plotting
from pgm_bma.commands.console import UsageError, count
from pgm_bma.commands.findings import Findings
from pgm_bma.commands.session import collected_warnings
from pgm_bma.latent_class.results import CRITERIA
from pgm_bma.latent_class.statistics import ROWS_PER_CELL

NAMES = {"evidence": "the evidence", "bic": "BIC", "icl": "ICL", "caic": "CAIC"}
COMPARED = ("evidence", "bic", "icl")  # criteria whose disagreement is said
STARTS = 6  # of the forests, at each number
MOST_CELLS = 400_000  # distinct rows x columns x clusters of all numbers tried, for the forests
LIKELY = 0.5  # posterior of an arc that is named

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
    """What is known of the number of clusters.

    goodness : what `pgm_bma.goodness_of_fit` found, or None      fewer : FewerClusters or None
    is_dependent : whether pairs of columns stay dependent inside the clusters      words : of the command
    """

    criterion: str = "evidence"
    goodness: pd.DataFrame | None = None
    fewer: FewerClusters | None = None
    is_dependent: bool = False
    words: Sequence[str] = ()


NOTHING_KNOWN = NumberChosen()


def check_criterion(arguments):
    """A UsageError where ``--criterion`` has nothing to choose from."""
    wanted = arguments.criterion
    if wanted is None or wanted == "evidence":
        return
    if arguments.method in ("structural", "forest"):
        raise UsageError(
            f"--criterion {wanted} is for --method em and ema; --method {arguments.method} has its evidence"
        )
    if not isinstance(arguments.clusters, range) or len(arguments.clusters) < 2:
        raise UsageError(f"--criterion {wanted} chooses among several numbers: give --clusters 1:8 or the like")


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
        return Findings([f"{text}."])
    found = Findings([f"{text}{_tried(path, k, number.criterion)}."])
    if "bic" in path:
        found.add(_disagreement(path, number.criterion))
    if number.fewer is not None:
        found.add(_inflated(number.fewer, number.words))
    return found


def _tried(path, k, criterion):
    best = path.groupby("n_clusters")["score"].max().sort_values(ascending=False)
    tried = f"{best.index.min()} to {best.index.max()} were tried"
    by = f" by {NAMES[criterion]}" if "bic" in path else ""
    if len(best) < 2 or k != best.index[0]:
        return f"{by} ({tried})"
    gap = best.iloc[0] - best.iloc[1]
    return f"{by} ({tried}; the next best number, {best.index[1]}, scores {gap:.1f} lower in natural logs)"


def _disagreement(path, criterion):
    """Which criteria would take another number."""
    known = {name: CRITERIA[name](path) for name in {criterion: None, **dict.fromkeys(COMPARED)}}
    best = {name: int(path.loc[v.idxmax(), "n_clusters"]) for name, v in known.items() if v.notna().all()}
    taken, numbers = best[criterion], {name: best[name] for name in COMPARED if name in best}
    found = Findings(numbers={"n_clusters_by": numbers})
    others = [f"{NAMES[name]} would take {number}" for name, number in numbers.items() if number != taken]
    agreed = [NAMES[name] for name, number in numbers.items() if number == taken and name != criterion]
    if others:
        found.words.append(f"The criteria disagree: {', '.join(others)}{_same(agreed)}.")
    elif agreed:
        found.words.append(f"{' and '.join(agreed)} {'choose' if len(agreed) > 1 else 'chooses'} the same number.")
    found.words = [f"{words[0].upper()}{words[1:]}" for words in found.words]
    return found


def _same(agreed):
    return f"; {' and '.join(agreed)} {'agree' if len(agreed) > 1 else 'agrees'} with it" if agreed else ""


def _inflated(fewer, words):
    pairs = f"{'; '.join(fewer.pairs[:3])}{' and others' if len(fewer.pairs) > 3 else ''}"
    text = (
        f"This number is probably too large: the model takes columns as independent inside a cluster, and {pairs} are not, which "
        f"is paid for with further clusters. With arcs between such columns {count(fewer.n_clusters, 'cluster')} "
        f"{'is' if fewer.n_clusters == 1 else 'are'} enough. Run: {_with_method(words)} (or structural)."
    )
    warning = (
        f"the number of clusters rests on independence inside clusters, which does not hold ({pairs}); its probability means "
        "little, --method forest or structural models the dependence"
    )
    return Findings([text], warnings=[warning], numbers={"n_clusters_with_arcs": fewer.n_clusters})


def _with_method(words):
    """The command with ``--method forest``, without what only latent-class models take."""
    kept, skip = [], False
    for word in (word for word in words if word != "--overwrite"):
        option = word.partition("=")[0]
        if skip or option in ("--method", "--criterion", "--set", "--out"):
            skip = not skip and "=" not in word
            continue
        kept.append(word)
    return shlex.join(["pgm-bma", *kept, "--method", "forest"])


def numbers_tried(path, goodness=None, is_dependent=False):
    """The tables of the numbers tried: score and main criteria, and all further ones; and a picture of them.

    is_dependent : whether columns were found dependent inside clusters, so that probabilities of numbers need a condition
    """
    text = "Higher scores are better; natural logs."
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
    how = "no p: too few rows for it"
    if goodness is not None:
        tested = goodness.set_index("n_clusters")[["g2_p", "x2_p", "pairs", "pairs_p"]].reindex(path["n_clusters"])
        path, how = path.assign(**{name: tested[name].to_numpy() for name in tested}), "p by parametric bootstrap"
    more = [name for name in ("n_clusters", *MORE) if name in path and path[name].notna().any()]
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
    tests = [(f"{name} {line[name.lower()]:.4g}", line[f"{name.lower()}_p"]) for name in ("G2", "X2")]
    patterns = _tested(tests)
    pairs = _tested([(f"X2 {line['pairs']:.4g}", line["pairs_p"])])
    is_sparse, possible = (
        n_rows < ROWS_PER_CELL * n_patterns,
        f"{n_patterns:.0f}" if n_patterns < 1e6 else f"{n_patterns:.1e}",
    )
    rejected = [p for _, p in [*tests, ("", line["pairs_p"])] if p <= 0.05]
    how = f"p by {n_bootstrap} tables drawn from the model"
    said = f"tables of pairs of columns ({pairs}), patterns of answers ({patterns}); {how}"
    if rejected:
        text = f"The model does not fit everywhere: {said}."
    elif is_sparse:
        text = (
            f"Whether all patterns of answers occur as often as the model expects, {n_rows} rows cannot tell: {possible} patterns "
            f"are possible. The test with power here, of all pairs of columns, finds no misfit ({pairs}; {how}){_power(lines, k)}."
        )
    else:
        text = f"No test finds a misfit: {said}{_power(lines, k)}."
    names = ("g2", "g2_p", "x2", "x2_p", "pairs", "pairs_p")
    return Findings([text], numbers={name: float(line[name]) for name in names})


def _tested(tests):
    return ", ".join(f"{text}, p {'≤' if p <= 0.01 else '='} {p:.2f}" for text, p in tests if pd.notna(p))


def _power(lines, k):
    """Whether the same test can tell this number from one cluster less."""
    if k - 1 not in lines.index:
        return ""
    p = lines.loc[k - 1, "pairs_p"]
    if p <= 0.05:
        return f"; it does find one with {count(k - 1, 'cluster')} (p {'≤' if p <= 0.01 else '='} {p:.2f})"
    return f"; but it finds none with {count(k - 1, 'cluster')} either (p = {p:.2f}), so it cannot tell the two apart"
