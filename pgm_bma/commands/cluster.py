"""``pgm-bma cluster``: how many clusters, how large, what marks them, which columns matter, what the model leaves unexplained.

An estimator is asked for what it has (fit statistics of every number tried, profiles with errors, starts, ...); see `findings`.
Columns set aside are related to the clusters afterwards: covariates that may predict them, an outcome that may differ.
"""

from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import chi2

import pgm_bma
from pgm_bma import plotting
from pgm_bma.commands.findings import (
    CLUSTER,
    MORE,
    NOTHING_KNOWN,
    PATH,
    Findings,
    NumberChosen,
    column_dependence,
    fewer_with_arcs,
    fit_words,
    number_words,
    numbers_tried,
    percent,
    relevance,
    start_findings,
    with_method,
)
from pgm_bma.commands.output import UsageError, collected_warnings, count, listed
from pgm_bma.commands.session import (
    CommandRun,
    as_seen,
    last_step,
    scaled,
    with_last_step,
    with_row_names,
)
from pgm_bma.commands.structure import arc_findings
from pgm_bma.commands.tabular_files import is_scanned
from pgm_bma.foundation.tables.cut_points import state_text
from pgm_bma.latent_class.fit_tests import bootstrap_profiles
from pgm_bma.report.live_data import cluster_data

ESTIMATED = "Sizes of clusters are those that the model estimates."
SIZE = "(size of the cluster)"
MARKED = 1.05  # times as often as overall: less does not mark a cluster
TINY_CLUSTER = 5
MOST_PARAMETERS = 400  # with more, standard errors of profiles take long
MOST_PAIRS = 40  # in the table of pairs that stay dependent
UNLIKELY = 0.001  # of a pair's residual under the model, by its limiting law
N_BOOTSTRAP = 99  # tables drawn for p-values, where that takes seconds
MOST_WORK = 400_000  # distinct rows x columns x clusters (of all numbers tried) for it
SIGNIFICANT = 0.05

HOW = {
    "ml": "The error of classification is corrected by maximum likelihood",
    "bch": "The error of classification is corrected by Bolck, Croon and Hagenaars' weights",
    "none": "The error of classification is not corrected",
}
RELATION_COLUMNS = {
    "standard_error": "standard error",
    "p_value": "p",
    "odds_ratio": "odds ratio",
    "wald": "Wald",
    "df": "degrees of freedom",
}


def cluster(arguments, console):
    """Find clusters, and say what marks them."""
    if arguments.discretize == "mdl":
        raise UsageError("--discretize mdl needs classes, which clustering does not have; use frequency or width")
    _check_criterion(arguments)
    run = CommandRun(arguments, console, "clusterer")
    target = arguments.target if arguments.target is not None else run.raw.target
    run.read(target)
    if target is not None:
        run.note(f"{target!r} takes no part in the clustering and is compared with the clusters afterwards")
    frame = run.data.frame
    model = run.fit(frame, weights=run.data.weights, n_clusters=arguments.clusters)
    if run.scanned is not None:
        return _finish_scan(run, model)
    estimator, seen, weights = last_step(model), as_seen(model, frame), run.data.weights
    weights = None if weights is None else scaled(weights)
    estimator, one_more = _chosen(estimator, seen, weights, arguments, console)
    model = with_last_step(model, estimator)
    proba = model.predict_proba(frame)
    residuals = residual_findings(estimator, seen, weights, arguments.words)
    number = NumberChosen(
        arguments.criterion or "evidence",
        goodness_of_fit(estimator, seen, weights, arguments.seed, arguments.jobs),
        fewer_with_arcs(estimator, seen, weights, arguments.seed)
        if _is_latent_class(estimator) and not _has_numbers(estimator)
        else None,
        residuals.numbers.get("dependent_pairs", 0) > 0,
        arguments.words,
        one_more,
    )
    found = cluster_findings(estimator, seen, proba, run.data.target, number, run.data.weights is not None)
    if not _is_latent_class(estimator):
        found.add(fit_findings(estimator, seen, proba, weights))
    profiles, files = profile_findings(estimator, seen, weights, arguments)
    run.tables.update(files)
    if estimator.n_clusters_ > 1:
        found.add(profiles).add(residuals)
    aside = run.set_aside()
    covariates = aside if arguments.outcome is None else aside[:-1]
    related, files = relation_findings(estimator, seen, run.data.aside, covariates, arguments.outcome, run.data.weights)
    found.add(related)
    run.tables.update(files)
    labels = pd.DataFrame({estimator.cluster_name: estimator.labels_, "probability": proba.max(axis=1)})
    labels = labels.join(pd.DataFrame(proba, columns=[f"P({k})" for k in range(proba.shape[1])]))
    labels = with_row_names(labels, run.data.index)
    run.finish(f"Clusters in {run.name}", found, model, "labels.csv", labels)


def _check_criterion(arguments):
    """A UsageError where ``--criterion`` has nothing to choose from, or ``--blrt`` nothing to test."""
    wanted = arguments.criterion
    option = "--blrt" if arguments.blrt else f"--criterion {wanted}"
    if wanted in (None, "evidence") and not arguments.blrt:
        return
    if arguments.method in ("structural", "forest"):
        raise UsageError(
            f"{option} is for --method em and ema; --method {arguments.method} chooses by its own evidence"
        )
    if (arguments.blrt or wanted == "blrt") and is_scanned(arguments):
        raise UsageError(f"{option} draws tables like the one given; give one file, without --memory and --workers")
    if wanted in (None, "evidence"):
        return
    if not isinstance(arguments.clusters, range) or len(arguments.clusters) < 2:
        raise UsageError(f"--criterion {wanted} chooses among several numbers: give --clusters 1:8 or the like")


def _chosen(estimator, seen, weights, arguments, console):
    """(the clusterer with the number that ``--criterion`` chooses, p-value of one more cluster where a single number was tried)"""
    criterion = arguments.criterion or "evidence"
    how = {"sample_weight": weights, "random_state": arguments.seed, "n_jobs": arguments.jobs}
    how["verbose"] = int(console.is_terminal)
    if arguments.blrt or criterion == "blrt":
        console.step("testing whether one more cluster fits better")
        if not hasattr(estimator, "n_clusters_path_"):
            return estimator, pgm_bma.likelihood_ratio_test(estimator, seen, **how).p_value
        tested = estimator.chosen_by("blrt", seen, **how)
        estimator.n_clusters_path_ = tested.n_clusters_path_
        if criterion == "blrt":
            return tested, None
    return estimator if criterion == "evidence" else estimator.chosen_by(criterion, seen), None


def _finish_scan(run, estimator):
    """Findings of clusters in a scan, made on its sample; the labels of all rows go to separate files."""
    seen, criterion = run.scanned.table.frame[list(run.data.frame.columns)], run.arguments.criterion or "evidence"
    if criterion != "evidence":
        estimator = estimator.chosen_by(criterion)
    residuals = residual_findings(estimator, seen, None, run.arguments.words)
    number = NumberChosen(criterion, is_dependent=residuals.numbers.get("dependent_pairs", 0) > 0)
    found = cluster_findings(estimator, seen, estimator.predict_proba(seen), run.data.target, number)
    if estimator.n_clusters_ > 1:
        found.add(residuals)
    run.finish_scan(f"Clusters in {run.name}", found, estimator, "labels")


def cluster_findings(estimator, frame, proba, truth=None, number=NOTHING_KNOWN, weighted=False):
    """Clusters: how many, how large, what marks them, which columns matter, how they compare with known classes.

    number : `NumberChosen`, what is known of the number of clusters
    """
    labels, k = np.argmax(proba, axis=1), estimator.n_clusters_
    sizes = np.bincount(labels, minlength=k)
    found = Findings(numbers={"n_clusters": int(k), "cluster_sizes": sizes.tolist()})
    n_filled = int((sizes > 0).sum())
    found.add(number_words(estimator, n_filled, number))
    path = getattr(estimator, "n_clusters_path_", None)
    if path is not None:
        is_dependent = number.is_dependent or number.fewer is not None
        tried = numbers_tried(path, number.goodness, is_dependent)
        found.headline += tried.headline
    n_patterns = float(np.prod([float(r) for r in estimator.schema_.cardinalities]))
    found.add(fit_words(number.goodness, k, int(frame.notna().all(axis=1).sum()), n_patterns, N_BOOTSTRAP))
    marks = estimator.describe(n_states=4)
    if _has_numbers(estimator):
        idle = [name for name in estimator.numeric_columns_ if estimator.arc_posterior_[name] < 0.5]
        marks = marks[~marks["column"].isin(idle)]
        found.words += [f"{hint[0].upper()}{hint[1:]}." for hint in estimator.hints_]
    if n_filled > 1:
        certainty = float(proba.max(axis=1).mean())
        found.words.append(f"A row belongs to its cluster with a probability of {certainty:.2f} on average.")
        estimated = np.asarray(estimator._profiles()[0])
        overall = {name: _overall(frame[name]) for name in getattr(estimator, "numeric_columns_", ()) if not weighted}
        found.words += [_one_cluster(c, sizes, marks[marks["cluster"] == c], overall) for c in range(k) if sizes[c]]
        if np.abs(estimated - sizes / sizes.sum()).max() >= 0.005:
            shares = ", ".join(percent(share) for share in estimated)
            found.words.append(
                "Shares above count every row in its most probable cluster (assigned); the sizes that the model estimates, which "
                f"pictures and profiles show, are {shares}."
            )
        dependence = getattr(estimator, "cluster_dependence_", None)
        found.add(relevance(estimator, CLUSTER, column_dependence(frame, proba) if dependence is None else dependence))
        found.figure(
            "What the clusters look like",
            lambda: plotting.plot_cluster_profiles(estimator),
            "Bars: how often each value occurs inside a cluster. Black ticks: how often overall. Columns that differ most "
            f"between the clusters come first. {ESTIMATED}",
        )
        found.explore(
            "Explore the clusters",
            "clusters",
            lambda: cluster_data(estimator),
            f"Choose a cluster: the columns that mark it come first. Choose a second one to compare both. {ESTIMATED}",
        )
        names = {"probability": "share in the cluster", "lift": "times as often as overall"}
        shown = marks[marks["lift"] > MARKED].drop(columns="size").rename(columns=names)
        shown["state"] = shown["state"].map(state_text)
        found.table("What marks each cluster", shown, "Values that a cluster has more often than the rest.")
    found.add(arc_findings(estimator))
    if truth is not None and k > 1:
        found.add(_against_classes(labels, truth))
    found.add(start_findings(estimator))
    if path is not None:
        found.figures += tried.figures  # behind what the clusters look like
    if path is not None and number.fewer is None and k == path["n_clusters"].max() > path["n_clusters"].min():
        found.warnings.append(f"the largest number of clusters tried, {k}, is the best one; try more with --clusters")
    small = [c for c in range(k) if 0 < sizes[c] < TINY_CLUSTER]
    if small and k > 1:
        rows = count(int(sizes[small].sum()), "row")
        found.warnings.append(
            f"{'cluster' if len(small) == 1 else 'clusters'} {listed(small)}: only {rows}; too few to rely on"
        )
    return found


def goodness_of_fit(estimator, frame, weights, seed, jobs):
    """`pgm_bma.goodness_of_fit` where the method has it and it takes seconds, else None."""
    if not _is_latent_class(estimator) or _has_numbers(estimator) or not _is_quick(estimator, frame):
        return None  # numbers have no table of counts
    return pgm_bma.goodness_of_fit(
        estimator, frame, sample_weight=weights, n_bootstrap=N_BOOTSTRAP, random_state=seed, n_jobs=jobs
    )


def _is_latent_class(estimator):
    return hasattr(type(estimator), "profiles_")


def _has_numbers(estimator):
    return bool(getattr(estimator, "numeric_columns_", ()))


def _is_quick(estimator, frame):
    path = getattr(estimator, "n_clusters_path_", None)
    numbers = estimator.n_clusters_ if path is None else path["n_clusters"].sum()
    return len(frame.drop_duplicates()) * frame.shape[1] * numbers <= MOST_WORK


def fit_findings(estimator, frame, proba, weights):
    """Likelihood, BIC, ICL and entropy of a model with arcs between columns; latent-class models have them for every number."""
    weights = np.ones(len(frame)) if weights is None else weights
    entropy = float(weights @ -(proba * np.log(np.maximum(proba, 1e-300))).sum(axis=1))
    k, bic = estimator.n_clusters_, estimator.bic(frame, weights)
    figures = {
        "n_clusters": k,
        "log_likelihood": float(estimator.log_likelihood_),
        "n_parameters": estimator._n_parameters(),
        "bic": bic,
        "icl": bic + 2 * entropy,
        "entropy_r2": 1.0 if k == 1 else float(1 - entropy / (weights.sum() * np.log(k))),
    }
    caption = "Criteria: lower is better."
    if not estimator.model_is_exact_:
        caption += " Parameters are those of the most probable structure, the likelihood is that of the average."
    table = pd.DataFrame([figures]).rename(columns={**PATH, **MORE})
    kept = {name: value for name, value in figures.items() if name != "n_clusters"}
    return Findings(headline=[("Fit of the model", table, caption)], numbers=kept)


def profile_findings(estimator, frame, weights, arguments):
    """(findings, tables for files): shares of every value in every cluster, with standard errors where they take seconds."""
    sizes, tables = estimator._profiles()
    schema = estimator.schema_
    lines = [(name, state) for name, states in zip(schema.names, schema.states) for state in states]
    shares = [sizes, *(line for each in tables for line in np.asarray(each).T)]
    wide = pd.DataFrame([(SIZE, ""), *lines], columns=["column", "state"])
    for c in range(estimator.n_clusters_):
        wide[f"cluster {c}"] = [float(line[c]) for line in shares]
    long = wide.melt(["column", "state"], var_name="cluster", value_name="probability")
    long["cluster"] = long["cluster"].str.removeprefix("cluster ").astype(int)
    files = {"profiles.csv": long[["cluster", "column", "state", "probability"]], "profiles_wide.csv": wide}
    found, profiles, by = Findings(), None, ""
    why = (
        "the model has too many parameters" if _is_latent_class(estimator) else "the table is too large to fit it often"
    )
    try:
        if not _is_latent_class(estimator) and _is_quick(estimator, frame):
            how = {"sample_weight": weights, "random_state": arguments.seed, "n_jobs": arguments.jobs}
            how["n_bootstrap"] = N_BOOTSTRAP
            profiles, by = bootstrap_profiles(estimator, frame, **how), f", by {N_BOOTSTRAP} fits to reweighted rows"
        elif _is_latent_class(estimator) and estimator.fit_statistics_["n_parameters"] <= MOST_PARAMETERS:
            profiles = estimator.profiles_
    except ValueError as reason:
        why = str(reason)
        found.warnings.append(f"no standard errors of the profiles: {reason}")
    caption = f"Share of each value inside each cluster. No standard errors: {why}. {ESTIMATED}"
    if profiles is not None:
        named = {"column": profiles["column"].fillna(SIZE), "state": profiles["state"].fillna("")}
        files["profiles.csv"] = profiles.assign(**named)
        caption = f"Share of each value inside each cluster, its standard error and 95 % interval{by}. {ESTIMATED}"
        if estimator.n_clusters_ > 1 and len(schema.names):
            of_states = profiles[~profiles["column"].isin(getattr(estimator, "numeric_columns_", ()))]
            picture = partial(plotting.plot_profile_intervals, of_states)
            said = "Share of a value inside each cluster, with its 95 % interval; of two values the second."
            found.figure("Profiles with intervals", picture, said)
    if _has_numbers(estimator):
        files["densities.csv"] = estimator.densities_
        said = "Normal density of every numeric column in each cluster, times the size of the cluster; ticks are rows."
        found.figure("Numbers in the clusters", lambda: plotting.plot_densities(estimator, frame), said)
    shown = files["profiles.csv"].rename(columns={"standard_error": "standard error"})
    found.table("Profiles of the clusters", shown, caption)
    return found, files


def residual_findings(estimator, frame, weights, words):
    """Pairs of columns that depend on each other more than the clusters explain, and the method that models them.

    words : of the command line
    """
    if frame.shape[1] < 2 or estimator.n_clusters_ < 2:
        return Findings()
    is_latent = _is_latent_class(estimator)
    is_quick = is_latent and not _has_numbers(estimator) and _is_quick(estimator, frame)
    n_bootstrap = N_BOOTSTRAP if is_quick else 0
    pairs = pgm_bma.bivariate_residuals(
        estimator, frame, sample_weight=weights, random_state=0, n_bootstrap=n_bootstrap
    )
    left = pairs[chi2.sf(pairs["x2"], np.maximum(pairs["df"], 1)) < UNLIKELY / len(pairs)]
    found = Findings(numbers={"dependent_pairs": len(left)})
    if len(left):
        said = "; ".join(f"{row.first} with {row.second}" for row in left.head(5).itertuples())
        who, more = "The clusters" if is_latent else "The clusters and arcs", " and others" if len(left) > 5 else ""
        found.words.append(
            f"{who} leave {count(len(left), 'pair')} of columns dependent: {said}{more}.{_cure(estimator, words)}"
        )
    else:
        where = f"Inside these {estimator.n_clusters_} clusters" if is_latent else "Beyond the clusters and arcs"
        found.words.append(f"{where} no pair of columns is clearly dependent.")
    names = {"x2": "X2", "df": "degrees of freedom", "p_value": "p (bootstrap)"}
    shown = pairs.dropna(axis=1, how="all").head(MOST_PAIRS).rename(columns=names)
    caption = (
        "X2 of the observed and expected table of each pair, divided by its degrees of freedom; chance gives about 1."
    )
    heading = "Pairs that the clusters leave dependent" if is_latent else "Pairs that clusters and arcs leave dependent"
    if not len(left):
        heading = "Pairs of columns inside the clusters"
    found.table(heading, shown, caption)
    found.figure(heading, lambda: plotting.plot_residuals(pairs), caption)
    return found


def _cure(estimator, words):
    """Return what to do about pairs that stay dependent; arcs join columns of states only."""
    if not _is_latent_class(estimator):
        return ""
    risk = " Such pairs can make the number of clusters too large"
    if _has_numbers(estimator):
        return f"{risk}: compare ICL, or model them with states in place of numbers: {with_method(words, True)}."
    return f"{risk}; --method structural or forest models them."


def _overall(values):
    """Mean and standard deviation of a number in all rows, as `describe` writes those of a cluster."""
    return f" (overall {float(f'{values.mean():.4g}'):g} ± {float(f'{values.std():.2g}'):g})"


def _one_cluster(c, sizes, marks, overall):
    said = [
        f"{row.column} {row.state}{overall.get(row.column, '')}"
        if np.isnan(row.lift)  # a number: its mean and standard deviation
        else f"{row.column} = {state_text(row.state)} ({percent(row.probability)}, overall {percent(row.probability / row.lift)})"
        for row in marks.itertuples()
        if not row.lift <= MARKED
    ]
    share = percent(sizes[c] / max(sizes.sum(), 1))
    return f"Cluster {c} ({share}, {count(int(sizes[c]), 'row')}) stands out for {'; '.join(said) or 'nothing much'}."


def _against_classes(labels, truth):
    from sklearn.metrics import adjusted_rand_score

    known = truth.notna().to_numpy()
    index = float(adjusted_rand_score(truth[known].cat.codes, labels[known]))
    table = pd.crosstab(pd.Series(labels[known], name="cluster"), truth[known].astype(object).to_numpy())
    table.columns = [str(c) for c in table.columns]
    text = f"Agreement with {truth.name!r}, which took no part: adjusted Rand index {index:.2f} (1 same partition, 0 chance)."
    table = table.rename_axis("cluster").reset_index(allow_duplicates=True)
    headline = (f"Clusters and {truth.name}", table, "Rows of each class in each cluster.")
    return Findings([text], [headline], numbers={"adjusted_rand_index": index})


# ---------------------------------------------------------------------------------------- covariates and outcome


def relation_findings(estimator, frame, aside, covariates, outcome, weights=None):
    """(findings, tables for files): membership regressed on the columns `covariates` of `aside`, `outcome` compared."""
    found = Findings()
    files: dict[str, pd.DataFrame] = {}
    if not covariates and outcome is None:
        return found, files
    if estimator.n_clusters_ < 2:
        return Findings(warnings=["covariates and outcome say nothing about a single cluster"]), files
    if covariates:
        each, files["covariates.csv"] = _covariates(estimator, frame, aside[list(covariates)], weights)
        found.add(each)
    if outcome is not None:
        each, files["outcome.csv"] = _outcome(estimator, frame, aside[outcome], weights)
        found.add(each)
    return found, files


def _covariates(estimator, frame, columns, weights):
    result, warnings = _three_step(estimator, frame, weights, covariates=columns)
    found = Findings(warnings=warnings)
    tests = result.tests.sort_values("p_value", kind="stable")
    likely = tests[tests["p_value"] < SIGNIFICANT]
    said = "; ".join(f"{row.test} ({_wald(row)})" for row in likely.itertuples())
    none = "None of the covariates clearly predicts the cluster."
    found.words.append(f"Covariates that predict the cluster: {said}." if said else none)
    if len(likely) and len(likely) < len(tests):
        rest = ", ".join(str(name) for name in tests["test"][len(likely) :])
        found.words[-1] += f" Not clearly: {rest}."
    reference = sorted(set(range(estimator.n_clusters_)) - set(result.estimates["cluster"]))[0]
    caption = (
        f"Log odds of a cluster against cluster {reference}: positive where the covariate makes it more probable. "
        f"{HOW[result.correction]}. {_rows(result)}"
    )
    shown = result.estimates.rename(columns=RELATION_COLUMNS)
    found.tables += [
        ("What predicts the cluster", shown, caption),
        ("Tests of the covariates", result.tests.rename(columns=RELATION_COLUMNS), "Wald tests over all clusters."),
        _classification(result),
    ]
    found.numbers["covariates"] = {str(row.test): row.p_value for row in tests.itertuples()}
    return found, result.estimates


def _outcome(estimator, frame, column, weights):
    result, warnings = _three_step(estimator, frame, weights, outcome=column)
    found = Findings(warnings=warnings)
    overall = result.tests.iloc[0]
    verb = "differs" if overall["p_value"] < SIGNIFICANT else "does not clearly differ"
    text = f"{column.name} {verb} between the clusters ({_wald(overall)})"
    if "state" not in result.estimates:
        means = ", ".join(_mean(row.estimate, row.standard_error) for row in result.estimates.itertuples())
        text += f": means {means} in clusters 0 to {estimator.n_clusters_ - 1}"
    found.words.append(f"{text}.")
    what = "Mean" if "state" not in result.estimates else "Probability of each value"
    caption = f"{what} in every cluster. {HOW[result.correction]}. {_rows(result)}"
    found.tables += [
        (f"{column.name} by cluster", result.estimates.rename(columns=RELATION_COLUMNS), caption),
        (
            f"Tests of {column.name}",
            result.tests.rename(columns=RELATION_COLUMNS),
            "Wald tests: all clusters, and every two.",
        ),
        _classification(result),
    ]
    found.numbers["outcome"] = {str(column.name): overall["p_value"]}
    return found, result.estimates


def _three_step(estimator, frame, weights, **what):
    with collected_warnings() as messages:
        result = pgm_bma.three_step(estimator, frame, sample_weight=weights, **what)
    return result, list(messages)


def _mean(estimate, error):
    """12.3 ± 0.4, 1950 ± 60: as many digits as the error lets stand."""
    digits = 0 if not 0 < error < 10 else int(np.ceil(1 - np.log10(error)))
    return f"{estimate:.{digits}f} ± {error:.{digits}f}"


def _wald(test):
    p = test.p_value
    text = "p < .001" if p < 0.001 else f"p = {p:.3f}"
    return f"Wald {test.wald:.1f}, {count(int(test.df), 'degree')} of freedom, {text}"


def _rows(result):
    missing = f", {count(result.n_left_out, 'row')} without a value left out" if result.n_left_out else ""
    return f"{count(result.n_samples, 'row')}{missing}."


def _classification(result):
    frame = result.classification.reset_index()
    caption = "Share of the rows of a cluster (line) that are given each cluster (column): the error that is corrected."
    return "How sure the clusters are", pd.DataFrame(frame), caption
