"""Tests of what a fitted model leaves open: one more cluster, patterns of answers, pairs of columns that stay dependent."""

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit, softmax
from sklearn.base import clone

from pgm_bma.foundation.faces.clusterer import MAX_DRAWN_CELLS
from pgm_bma.foundation.faces.docstrings import fill
from pgm_bma.foundation.faces.validation import brief, check, check_number
from pgm_bma.foundation.numbers.pairs import indicators
from pgm_bma.foundation.runtime.jobs import map_jobs, progress, random_generator
from pgm_bma.foundation.tables import table
from pgm_bma.latent_class.problem import log_joint
from pgm_bma.latent_class.results import (
    CLUSTERER,
    SIGNIFICANT,
    LatentClassResults,
    NoProfiles,
    profile_frame,
    refuse_numbers,
    weighted_rows,
)
from pgm_bma.latent_class.statistics import (
    bootstrap,
    expected_pairs,
    fit_statistics,
    goodness,
    likelihood_ratio,
    mixed_residuals,
    p_value,
    pair_residuals,
    refit,
)

BOOTSTRAP = """random_state : int, Generator, RandomState or None, default=None
        Seed of the tables; the same seed gives the same p.
    n_jobs : int or None, default=None
        Threads over the tables, as joblib reads it; the result does not depend on it.
    verbose : int, default=0
        1 shows a progress bar."""
N_TABLES = 99  # of the tests that choose a number of clusters
EXPECTED_ROWS = 200_000  # drawn from a model whose pair probabilities have no closed form here


class LikelihoodRatioTest(NamedTuple):
    """Result of `likelihood_ratio_test`: 2 x the gain in log-likelihood, its p-value, and the values of the bootstrap."""

    statistic: float
    p_value: float
    n_clusters: int
    bootstrap: np.ndarray

    def __repr__(self) -> str:
        found = f"statistic={self.statistic:.1f}, p_value={self.p_value:.3g}, {len(self.bootstrap)} tables"
        return f"LikelihoodRatioTest({self.n_clusters} against {self.n_clusters + 1} clusters: {found})"


@fill(bootstrap=BOOTSTRAP)
def likelihood_ratio_test(
    clusterer: Any,
    X: Any,
    *,
    sample_weight: Any = None,
    n_bootstrap: int = 99,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> LikelihoodRatioTest:
    """Bootstrapped likelihood-ratio test: does one more cluster fit better than chance?

    Tables are drawn from the fitted model with k clusters; to each, and to `X`, models with k and with k + 1 clusters are fitted
    by EM with the prior of the clusterer. The p-value is the share of tables, `X` among them, whose gain is at least that of `X`.
    Ten such tables end the test early, with p = 10 / tables drawn. ``clusterer.chosen_by("blrt", X)`` tests number after number.

    Parameters
    ----------
    clusterer : LatentClassClusterer or EMAClusterer
        Fitted; its `n_clusters_` is k.
    X : table of discrete values
        The rows that it was fitted to.
    sample_weight : array-like (n_samples,), optional
        A weight is a repetition of the row.
    n_bootstrap : int, default=99
        Tables drawn at most.
    {bootstrap}

    Returns
    -------
    LikelihoodRatioTest
        The fields are statistic, p_value, n_clusters (k) and bootstrap (the values under k clusters, of the tables drawn).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import LatentClassClusterer, likelihood_ratio_test
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(0, 2, 300)
    >>> X = pd.DataFrame({name: np.where(rng.random(300) < 0.85, z, 1 - z) for name in "abcde"})
    >>> one, two = (LatentClassClusterer(k, n_init=4, random_state=0).fit(X) for k in (1, 2))
    >>> bool(likelihood_ratio_test(one, X, n_bootstrap=19, random_state=0).p_value <= 0.05)
    True
    >>> bool(likelihood_ratio_test(two, X, n_bootstrap=19, random_state=0).p_value <= 0.05)
    False
    """
    check_number("n_bootstrap", n_bootstrap, 1, integer=True)
    _refuse_others("likelihood_ratio_test", clusterer)
    codes, weights = _folded_rows(clusterer, X, sample_weight, drawn=True)
    with progress(verbose, "tables", total=n_bootstrap) as bar:
        rng = random_generator(random_state)
        return _one_more(clusterer, clusterer._result, codes, weights, n_bootstrap, rng, n_jobs, bar)


def one_more_cluster(clusterer, X, fits, sample_weight=None, random_state=None, n_jobs=None, verbose=0):
    """{number of clusters: p-value of one more}, from the smallest number of `fits` on, up to the first above `SIGNIFICANT`.

    fits : {number: LatentClassFit}; a number is tested if the next one is among them, and both have as many clusters
    """
    codes, weights = _folded_rows(clusterer, X, sample_weight, drawn=True)
    whole = {k for k, fit in fits.items() if len(fit.theta_c) == k}
    numbers = [k for k in sorted(whole) if k + 1 in whole]
    found: dict[int, float] = {}
    with progress(verbose, "tables", total=N_TABLES * len(numbers)) as bar:
        for k, rng in zip(numbers, random_generator(random_state).spawn(len(numbers))):
            found[k] = _one_more(clusterer, fits[k], codes, weights, N_TABLES, rng, n_jobs, bar).p_value
            if found[k] > SIGNIFICANT:
                break
    return found


def _one_more(clusterer, fit, codes, weights, n_bootstrap, rng, n_jobs, bar):
    """`LikelihoodRatioTest` of one of the clusterer's fits."""
    cardinalities, settings = clusterer.schema_.cardinalities, clusterer._settings(clusterer.schema_)
    statistic, small = likelihood_ratio(codes, weights, cardinalities, fit, settings, rng.spawn(1)[0])

    def again(drawn, drawn_weights, child):
        return likelihood_ratio(drawn, drawn_weights, cardinalities, small, settings, child)[0]

    values = bootstrap(codes, weights, cardinalities, small, again, n_bootstrap, rng, n_jobs, bar, statistic)
    return LikelihoodRatioTest(float(statistic), p_value(values, statistic, n_bootstrap), len(fit.theta_c), values)


@fill(bootstrap=BOOTSTRAP)
def goodness_of_fit(
    clusterer: Any,
    X: Any,
    *,
    sample_weight: Any = None,
    n_bootstrap: int = 99,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> pd.DataFrame:
    """Test whether the model fits: G-squared and X-squared of the patterns, X-squared of all pairs, with bootstrap p-values.

    The usual law of both needs some five rows for every possible pattern, which questionnaires never have. Here tables are drawn
    from the fitted model, fitted again from its tables on, and compared in the same way; the p-value is the share of tables, `X`
    among them, that fit no better than `X`. Where most patterns occur once or never, G-squared has little power; `pairs`, the sum
    of X-squared over the tables of all pairs of columns, keeps it.

    Parameters
    ----------
    clusterer : LatentClassClusterer or EMAClusterer
        Fitted. After a choice among several numbers of clusters each of them is tested; a copy or a file holds only the chosen one.
    X : table of discrete values
        The rows that it was fitted to; those with missing cells take part in the fits, not in the comparison.
    sample_weight : array-like (n_samples,), optional
        A weight is a repetition of the row.
    n_bootstrap : int, default=99
        Tables drawn for each number.
    {bootstrap}

    Returns
    -------
    DataFrame
        A line per number of clusters: `n_clusters`, `g2`, `x2`, `df`, `g2_p`, `x2_p` (bootstrap), `g2_asymptotic_p` and
        `x2_asymptotic_p`, which are NaN where there are too few rows for the cells, and `pairs`, `pairs_p` (bootstrap).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import LatentClassClusterer, goodness_of_fit
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(0, 2, 300)
    >>> X = pd.DataFrame({name: np.where(rng.random(300) < 0.85, z, 1 - z) for name in "abcde"})
    >>> clusterer = LatentClassClusterer(range(1, 3), n_init=4, random_state=0).fit(X)
    >>> found = goodness_of_fit(clusterer, X, n_bootstrap=39, random_state=0)
    >>> (found["g2_p"] > 0.05).tolist()
    [False, True]
    """
    check_number("n_bootstrap", n_bootstrap, 1, integer=True)
    _refuse_others("goodness_of_fit", clusterer)
    codes, weights = _folded_rows(clusterer, X, sample_weight, drawn=True)
    cardinalities, settings = clusterer.schema_.cardinalities, clusterer._settings(clusterer.schema_)
    fits = clusterer.__dict__.get("_cached_fits") or {clusterer.n_clusters_: clusterer._result}
    lines = []
    with progress(verbose, "tables", total=n_bootstrap * len(fits)) as bar:
        for (k, fit), child in zip(fits.items(), random_generator(random_state).spawn(len(fits))):
            found = fit_statistics(codes, weights, cardinalities, fit.theta_c, fit.theta, fit.state_start)
            pairs = _total_of_pairs(codes, weights, cardinalities, fit)

            def again(drawn, drawn_weights, _, fit=fit):
                renewed = refit(drawn, drawn_weights, cardinalities, fit, settings)
                log_p = log_joint(np.asfortranarray(drawn), renewed.theta_c, renewed.theta, renewed.state_start)
                patterns = goodness(drawn, drawn_weights, np.logaddexp.reduce(log_p, axis=1))
                return *patterns, _total_of_pairs(drawn, drawn_weights, cardinalities, renewed)

            values = bootstrap(codes, weights, cardinalities, fit, again, n_bootstrap, child, n_jobs, bar)
            seen = (found.g2, found.x2, pairs)
            g2_p, x2_p, pairs_p = (
                p_value(drawn, value * (1 - 1e-9), n_bootstrap) for drawn, value in zip(values.T, seen)
            )
            lines.append((k, found.g2, found.x2, found.df, g2_p, x2_p, found.g2_p, found.x2_p, pairs, pairs_p))
    names = ["n_clusters", "g2", "x2", "df", "g2_p", "x2_p", "g2_asymptotic_p", "x2_asymptotic_p", "pairs", "pairs_p"]
    return pd.DataFrame(lines, columns=names)


@fill(bootstrap=BOOTSTRAP)
def bivariate_residuals(
    clusterer: Any,
    X: Any,
    *,
    sample_weight: Any = None,
    n_bootstrap: int = 0,
    random_state: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> pd.DataFrame:
    """Pairs of columns that the clusters leave dependent: observed against expected tables, largest residual first.

    Numbers are compared inside clusters: two numbers by their correlation, a number and a column of states by the variance of the
    number between the states.

    Where pairs stay dependent, `StructuralEMClusterer` or `ForestAveragedClusterer` model the dependence; the same table of
    their fit shows what is left.

    Parameters
    ----------
    clusterer : fitted clusterer
        Any clusterer of the package. The expected tables of latent-class models are exact, those of the others are taken from
        200,000 rows drawn from the model.
    X : table
        The rows to compare with; a pair is compared on the rows that have both values.
    sample_weight : array-like (n_samples,), optional
        A weight is a repetition of the row.
    n_bootstrap : int, default=0
        Tables drawn from the model, and fitted again, for the p-values; 0 leaves them out. 99 is a usual number.
    {bootstrap}

    Returns
    -------
    DataFrame
        Columns `first`, `second`, `residual` (X2 / degrees of freedom; about 1 or less where nothing is left), `x2`, `df` and
        `p_value` (NaN without a bootstrap); with numeric columns also `correlation` of two numbers inside clusters.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from pgm_bma import LatentClassClusterer, bivariate_residuals
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(0, 2, 300)
    >>> X = pd.DataFrame({name: np.where(rng.random(300) < 0.85, z, 1 - z) for name in "abcd"})
    >>> X["copy"] = np.where(rng.random(300) < 0.95, X["a"], 1 - X["a"])
    >>> clusterer = LatentClassClusterer(2, alpha=0.01, n_init=4, random_state=0).fit(X[list("abcd")])
    >>> found = bivariate_residuals(clusterer, X[list("abcd")])
    >>> list(found), len(found), bool(found["residual"].max() < 4)
    (['first', 'second', 'residual', 'x2', 'df', 'p_value'], 6, True)
    """
    check_number("n_bootstrap", n_bootstrap, 0, integer=True)
    codes, weights = _folded_rows(clusterer, X, sample_weight, drawn=n_bootstrap > 0, numbers=True)
    rng = random_generator(random_state)
    found = _residuals(clusterer, codes, weights, rng)
    p_values = np.full(found.x2.shape, np.nan)
    if n_bootstrap:
        with progress(verbose, "tables", total=n_bootstrap) as bar:
            values = _bootstrap_residuals(clusterer, codes, weights, n_bootstrap, rng, n_jobs, bar)
        p_values = (1 + (values >= found.x2 * (1 - 1e-9)).sum(axis=0)) / (1 + n_bootstrap)
    names = list(getattr(clusterer, "_loop_names", clusterer.schema_.names))
    a, b = np.triu_indices(len(names), 1)
    frame = pd.DataFrame(
        {
            "first": [names[i] for i in a],
            "second": [names[j] for j in b],
            "residual": found.x2[a, b] / np.maximum(found.df[a, b], 1),
            "x2": found.x2[a, b],
            "df": found.df[a, b],
            "p_value": p_values[a, b],
        }
    )
    if found.correlation is not None:
        frame["correlation"] = found.correlation[a, b]
    return frame.sort_values("residual", ascending=False, kind="stable", ignore_index=True)


def bootstrap_profiles(clusterer, X, *, sample_weight=None, n_bootstrap=N_TABLES, random_state=None, n_jobs=None):
    """Profiles with standard errors and 95 % intervals of a clusterer that has arcs between columns; a table like `profiles_`.

    The rows get random weights (exponential: the Bayesian bootstrap). Structure and tables are fitted again, from the network of
    the clusterer or a few starts, and the clusters are matched. Intervals are symmetric on the logit scale. Latent-class models
    have `profiles_`, which needs no second fit.
    """
    check("clusterer", clusterer, CLUSTERER)
    codes, weights = weighted_rows(clusterer, X, sample_weight)
    weights = np.ones(len(codes)) if weights is None else weights
    states = dict(zip(clusterer.schema_.names, map(list, clusterer.schema_.states)))
    how = {"n_clusters": clusterer.n_clusters_, "state_names": states, "n_jobs": 1, "verbose": 0, "random_state": 0}
    takes_network = "n_final" not in clusterer.get_params(deep=False)
    how.update({"init": clusterer.model_, "n_init": 1} if takes_network else {"init": "em", "n_init": 4, "n_final": 1})
    own = softmax(clusterer._log_joint(codes), axis=1)

    def again(child):
        drawn = weights * child.standard_exponential(len(weights))
        found = clone(clusterer).set_params(**how).fit(X, sample_weight=drawn)
        if found.n_clusters_ < clusterer.n_clusters_:
            return None
        overlap = own.T @ (softmax(found._log_joint(codes), axis=1) * weights[:, None])
        order = linear_sum_assignment(overlap, maximize=True)[1]
        return _stacked(*found._profiles())[:, order]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jobs = [(child,) for child in random_generator(random_state).spawn(n_bootstrap)]
        values = [each for each in map_jobs(again, jobs, n_jobs, threads=True) if each is not None]
    if len(values) <= n_bootstrap // 2:
        raise NoProfiles(f"most of {n_bootstrap} fits to reweighted rows found fewer clusters")
    shares = _stacked(*clusterer._profiles())
    bounded = np.clip([shares, *values], 1e-12, 1 - 1e-12)
    width = 1.959964 * np.std(logit(bounded[1:]), axis=0, ddof=1)
    low, high = (expit(logit(bounded[0]) + sign * width) for sign in (-1, 1))
    return profile_frame(clusterer.schema_, shares, np.std(values, axis=0, ddof=1), low, high)


def _stacked(sizes, tables):
    """(1 + n_states_total, n_clusters): sizes, then the probabilities of all states."""
    return np.vstack([sizes, *(np.asarray(each).T for each in tables)])


def _total_of_pairs(codes, weights, cardinalities, fit):
    """X2 summed over the tables of all pairs of columns; NaN with a single column."""
    found = pair_residuals(codes, weights, cardinalities, expected_pairs(fit.theta_c, fit.theta))
    return float(found.x2.sum() / 2) if len(cardinalities) > 1 else np.nan


def _refuse_others(function, clusterer):
    if not isinstance(clusterer, LatentClassResults):
        raise TypeError(
            f"{function} is for latent-class models, got clusterer={brief(clusterer)}; bivariate_residuals takes any clusterer"
        )


def _residuals(clusterer, encoded, weights, rng):
    """`PairResiduals` of encoded rows under a fitted clusterer."""
    cardinalities = clusterer.schema_.cardinalities
    if not _has_numbers(clusterer):
        return pair_residuals(encoded, weights, cardinalities, _pair_probabilities(clusterer, rng))
    codes, values = clusterer._split(encoded)
    numbers = clusterer._numbers.standardised(values)
    return mixed_residuals(codes, numbers, weights, cardinalities, clusterer._result)


def _has_numbers(clusterer):
    return bool(getattr(clusterer, "numeric_columns_", ()))


def _bootstrap_residuals(clusterer, codes, weights, n_bootstrap, rng, n_jobs, bar):
    cardinalities = clusterer.schema_.cardinalities
    if isinstance(clusterer, LatentClassResults) and not _has_numbers(clusterer):
        settings, fit = clusterer._settings(clusterer.schema_), clusterer._result

        def again(drawn, drawn_weights, child):
            renewed = refit(drawn, drawn_weights, cardinalities, fit, settings)
            return pair_residuals(
                drawn, drawn_weights, cardinalities, expected_pairs(renewed.theta_c, renewed.theta)
            ).x2

        return bootstrap(codes, weights, cardinalities, fit, again, n_bootstrap, rng, n_jobs, bar)
    values = []
    for child in rng.spawn(n_bootstrap):
        drawn = clusterer.sample(round(float(weights.sum())), random_state=child)[0]
        renewed = clone(clusterer).set_params(n_clusters=clusterer.n_clusters_, **_kinds(clusterer)).fit(drawn)
        rows, counts = _folded_rows(renewed, drawn, None, numbers=True)
        values.append(_residuals(renewed, rows, counts, child).x2)
        if bar is not None:
            bar(1)
    return np.array(values)


def _pair_probabilities(clusterer, rng):
    """(n_states_total, n_states_total) under the model."""
    if isinstance(clusterer, LatentClassResults):
        return expected_pairs(clusterer._result.theta_c, clusterer._result.theta)
    codes = clusterer._sample_codes(EXPECTED_ROWS, rng.spawn(1)[0])[0]
    one_hot = indicators(codes, clusterer.schema_.cardinalities, np.float32)
    return (one_hot.T @ one_hot).astype(float) / len(codes)


def _kinds(clusterer):
    """Parameters by which a table that was drawn has the columns and states of the fit."""
    schema = clusterer.schema_
    kinds = {"state_names": {name: list(states) for name, states in zip(schema.names, schema.states)}}
    return {**kinds, "numeric_columns": clusterer.numeric_columns_} if _has_numbers(clusterer) else kinds


def _folded_rows(clusterer, X, sample_weight, drawn=False, numbers=False):
    """Distinct rows and their weights; where tables of as many rows are `drawn`, their size is checked.

    numbers : whether numeric columns are admitted
    """
    check("clusterer", clusterer, CLUSTERER)
    if not numbers:
        refuse_numbers(clusterer, "this test", "leave it out")
    codes, weights = weighted_rows(clusterer, X, sample_weight)
    rows, weights, _ = clusterer._fold(table.Table(clusterer.schema_, codes, weights))
    if drawn and weights.sum() * codes.shape[1] > MAX_DRAWN_CELLS:
        raise ValueError(
            f"the bootstrap draws tables of {weights.sum():.3g} rows (what the weights add up to) and {codes.shape[1]} columns, "
            f"more than {MAX_DRAWN_CELLS:.3g} cells; divide the weights by a constant, or take a sample of the rows"
        )
    return rows[weights > 0], weights[weights > 0]
