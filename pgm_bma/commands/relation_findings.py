"""What predicts the cluster of a row, and what differs between clusters: covariates and outcomes, in words and tables."""

import numpy as np
import pandas as pd

import pgm_bma
from pgm_bma.commands.console import count
from pgm_bma.commands.findings import Findings
from pgm_bma.commands.validation import collected_warnings

SIGNIFICANT = 0.05
HOW = {
    "ml": "The error of classification is corrected by maximum likelihood",
    "bch": "The error of classification is corrected by Bolck, Croon and Hagenaars' weights",
    "none": "The error of classification is not corrected",
}


def relation_findings(estimator, frame, aside, covariates, outcome, weights=None):
    """(findings, tables for files): membership regressed on the columns `covariates` of `aside`, `outcome` compared."""
    found, files = Findings(), {}
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
    found.words.append(
        f"What predicts the cluster: {said}." if said else "None of the covariates clearly predicts the cluster."
    )
    if len(likely) and len(likely) < len(tests):
        rest = ", ".join(str(name) for name in tests["test"][len(likely) :])
        found.words[-1] += f" Not clearly: {rest}."
    reference = sorted(set(range(estimator.n_clusters_)) - set(result.estimates["cluster"]))[0]
    caption = (
        f"Log odds of a cluster against cluster {reference}: positive where the covariate makes it more probable. "
        f"{HOW[result.correction]}. {_rows(result)}"
    )
    shown = result.estimates.rename(columns=_NAMES)
    found.tables += [
        ("What predicts the cluster", shown, caption),
        ("Tests of the covariates", result.tests.rename(columns=_NAMES), "Wald tests over all clusters."),
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
        (f"{column.name} by cluster", result.estimates.rename(columns=_NAMES), caption),
        (f"Tests of {column.name}", result.tests.rename(columns=_NAMES), "Wald tests: all clusters, and every two."),
        _classification(result),
    ]
    found.numbers["outcome"] = {str(column.name): overall["p_value"]}
    return found, result.estimates


_NAMES = {
    "standard_error": "standard error",
    "p_value": "p",
    "odds_ratio": "odds ratio",
    "wald": "Wald",
    "df": "degrees of freedom",
}


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
    text = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"Wald {test.wald:.1f}, {count(int(test.df), 'degree')} of freedom, {text}"


def _rows(result):
    missing = f", {count(result.n_left_out, 'row')} without a value left out" if result.n_left_out else ""
    return f"{count(result.n_samples, 'row')}{missing}."


def _classification(result):
    frame = result.classification.reset_index()
    caption = "Share of the rows of a cluster (line) that are given each cluster (column): the error that is corrected."
    return "How sure the clusters are", pd.DataFrame(frame), caption
